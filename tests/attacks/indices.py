"""Damage to the files of a prepared index, at random places of all of them, the manifest too.

Each damaged index is opened and searched in a child process that does many and is replaced when it dies. The outcome is
`right` (the same answers as before), `refused` (one sentence), `wrong` (other answers) or `crashed`.
"""

import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from neupath import HIN, PathSim, open_index, prepare
from neupath.engine.prepared import PreparedIndex
from neupath.errors import SourceError
from tests.attacks.mutation import mutate
from tests.graphs import shop_graph
from tests.patience import PATIENCE
from tests.processes import run_process

PATH = "user-item-tag-item-user"


def attack_indices(count: int, seed: int = 0) -> dict[str, dict[str, int]]:
    """Damage the files of an index `count` times in all, and remove each once; return outcomes by kind of file."""
    with TemporaryDirectory() as folder:
        index = prepare(shop_graph(), PathSim(PATH), Path(folder) / "index")
        outcomes: dict[str, Counter[str]] = {}
        done, total = 0, count + len(_files(Path(index)))
        while done < total:
            command = [sys.executable, "-m", __name__, index, str(done), str(count), str(seed)]
            with run_process(command, stdout=subprocess.PIPE, cwd=Path(__file__).parent.parent.parent) as process:
                lines = process.communicate(timeout=PATIENCE)[0].splitlines()
            assert lines or done, "the index does not open undamaged"
            for line in lines:
                kind, outcome = line.split()
                outcomes.setdefault(kind, Counter())[outcome] += 1
            done += len(lines)
            if done < total:
                outcomes.setdefault("unknown", Counter())["crashed"] += 1
                done += 1
        return {kind: dict(counts) for kind, counts in sorted(outcomes.items())}


def _files(index: Path) -> list[Path]:
    return sorted(path.relative_to(index) for path in index.rglob("*") if path.is_file())


def _answers(index: PreparedIndex, hin: HIN) -> list[object]:
    """Return what an index answers by all its arrays: of single queries, of all at once, by names, and why."""
    users = hin.nodes["user"].ids.to_pylist()
    answers: list[object] = [index.top_k(query, 5).to_dict() for query in ("u0", "User 7", "u39")]
    answers += [[hits.to_dict() for hits in index.top_k([*users, *users], 5)], index.scores("u1").tolist()]
    shared = index.explain("u0", index.top_k("u0", 1)[0].id).to_dict()
    names = [index.hin_.nodes[node_type].names for node_type in ("user", "tag")]
    return [*answers, shared, [None if own is None else own.to_pylist() for own in names]]


def _run(source: str, first: int, count: int, seed: int) -> None:
    hin, intact = shop_graph(), Path(source)
    files, expected = _files(intact), _answers(open_index(intact), hin)
    sizes = np.array([(intact / file).stat().st_size for file in files], dtype=np.float64)
    with TemporaryDirectory() as scratch:
        for number in range(first, count + len(files)):
            rng = np.random.default_rng([seed, number])
            # half of the places by the size of the files, half in any of them
            weights = sizes / sizes.sum() if number % 2 else None
            at = int(rng.choice(len(files), p=weights)) if number < count else number - count
            folder = Path(shutil.copytree(intact, Path(scratch) / str(number)))
            if number < count:
                (folder / files[at]).write_bytes(mutate((intact / files[at]).read_bytes(), rng)[1])
            else:
                (folder / files[at]).unlink()
            sys.stdout.write(f"{files[at].name} {_outcome(folder, hin, expected)}\n")
            sys.stdout.flush()
            shutil.rmtree(folder)


def _outcome(folder: Path, hin: HIN, expected: list[object]) -> str:
    try:
        return "right" if _answers(open_index(folder), hin) == expected else "wrong"
    except SourceError as error:
        return "refused" if "\n" not in str(error) else "crashed"
    except Exception as error:
        sys.stderr.write(f"{folder.name}: {error!r}\n")
        return "crashed"


if __name__ == "__main__":
    _run(sys.argv[1], *map(int, sys.argv[2:5]))

"""Damage to the files of saved scorers and of unfinished joins, at random places.

Each damaged file is loaded and searched, or its join resumed, in a child process that does many and is replaced when it
dies. The outcome is `right` (the same scores or result as before), `rebuilt` (the same result, after damaged blocks
were ranked again), `refused` (one sentence), `wrong` (other scores or another result) or `crashed`.
"""

import logging
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa

from neupath import HIN, Combination, NeuPathError, PathSim, join, load_scorer
from neupath.graph.hin import Edges
from neupath.graph.metapath import Relation
from neupath.graph.nodes import Nodes
from neupath.measures.combination import Part
from tests.attacks.mutation import mutate
from tests.patience import PATIENCE
from tests.processes import run_process

PATH = "user-item-user"
BLOCK = 5
MEASURES = ("pathsim", "combination")


def attack_models(count: int, seed: int = 0, kinds: tuple[str, ...] | None = None) -> dict[str, dict[str, int]]:
    """Damage each kind of file of each kind of saved scorer `count` times; return outcomes by kind."""
    from neupath.learn.registry import ARCHITECTURES

    outcomes = {}
    for kind in kinds or (*MEASURES, *ARCHITECTURES):
        with TemporaryDirectory() as folder:
            make_scorer(kind).save(folder)
            for file in sorted(Path(folder).iterdir()):
                outcomes[f"{kind}/{file.name}"] = _attack("model", Path(folder), file.name, count, seed)
    return outcomes


def attack_joins(count: int, seed: int = 0) -> dict[str, dict[str, int]]:
    """Damage each kind of file of an unfinished join `count` times; return outcomes by kind."""
    outcomes = {}
    for name in ("top.parquet", "top"):
        with TemporaryDirectory() as folder:
            begin_join(Path(folder), name)
            for file in ("join.json", "000001.parquet", "000001.sha256"):
                kind = f"{'folder' if name == 'top' else 'file'}/{file.replace('000001', 'part')}"
                outcomes[kind] = _attack("join", Path(folder), f"{name}.parts/{file}", count, seed)
    return outcomes


# ---- What is attacked ----------------------------------------------------------------------------
def graph() -> HIN:
    rng = np.random.default_rng(1)
    users, items = Nodes("user", pa.array([f"u{i}" for i in range(20)])), Nodes("item", pa.array(np.arange(12)))
    edges = Edges(Relation("user", "buys", "item"), rng.integers(0, 20, 60), rng.integers(0, 12, 60), rng.random(60))
    return HIN.build([users, items], [edges])


def make_scorer(kind: str) -> Any:
    """Return a small scorer of a kind, trained where it learns."""
    hin = graph()
    if kind == "pathsim":
        return PathSim(PATH).fit(hin)
    if kind == "combination":
        return Combination([Part("pathsim", PATH, 0.3), Part("joinsim", PATH, 0.7)]).fit(hin)
    from neupath.learn.registry import ARCHITECTURES, make_model

    source = ARCHITECTURES[kind].learns_from
    if source != "labels":
        settings = {"metapath": {"metapath": PATH}, "node_type": {"node_type": "user"}}[source]
        return make_model(kind, dim=4, walks=2, epochs=1, device="cpu", **settings).fit(hin)
    labels = [("u1", "u2", 1.0), ("u1", "u3", 0.5), ("u4", "u5", 0.2)]
    size = {"pathboost": {"trees": 3}, "linear": {}, "countpath": {"epochs": 1}}.get(kind, {"epochs": 1, "dim": 4})
    return make_model(kind, device="cpu", **size).fit(hin, labels)


def begin_join(folder: Path, name: str) -> None:
    """Interrupt a join after two of its blocks."""

    def stop(_: str, done: int, __: int | None) -> None:
        if done >= 2 * BLOCK:
            raise KeyboardInterrupt

    hin = graph()
    try:
        join(hin, PathSim(PATH).fit(hin), folder / name, 3, block=BLOCK, progress=stop)
    except KeyboardInterrupt:
        return


# ---- In a child process --------------------------------------------------------------------------
def _attack(attack: str, folder: Path, file: str, count: int, seed: int) -> dict[str, int]:
    """Let child processes damage a file; each begins after the one that died before."""
    outcomes: Counter[str] = Counter()
    while (done := sum(outcomes.values())) < count:
        command = [sys.executable, "-m", __name__, attack, str(folder), file, str(done), str(count), str(seed)]
        with run_process(command, stdout=subprocess.PIPE, cwd=Path(__file__).parent.parent.parent) as process:
            lines = process.communicate(timeout=PATIENCE)[0].split()
        outcomes.update(lines)
        assert lines or done, f"{folder} does not load undamaged"
        if sum(outcomes.values()) < count:
            outcomes["crashed"] += 1
    return dict(outcomes)


def _outcome_of_model(folder: Path, hin: HIN, expected: np.ndarray) -> str:
    scores = load_scorer(folder, hin, "cpu").score_rows(np.arange(20))
    return "right" if np.array_equal(scores, expected, equal_nan=True) else "wrong"


def _outcome_of_join(folder: Path, name: str, hin: HIN, expected: dict[str, bytes]) -> str:
    joined = join(hin, PathSim(PATH).fit(hin), folder / name, 3, block=BLOCK)
    if contents(joined.path) != expected:
        return "wrong"
    return "right" if joined.resumed == 2 else "rebuilt"


def contents(path: Path) -> dict[str, bytes]:
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    return {file.name: file.read_bytes() for file in files}


def _run(attack: str, source: str, file: str, first: int, last: int, seed: int) -> None:
    logging.disable(logging.WARNING)
    hin, whole = graph(), (Path(source) / file).read_bytes()
    name = file.partition(".parts")[0]
    with TemporaryDirectory() as scratch:
        intact = shutil.copytree(source, Path(scratch) / "intact")
        if attack == "model":
            scores = load_scorer(intact, hin, "cpu").score_rows(np.arange(20))
        else:
            result = contents(join(hin, PathSim(PATH).fit(hin), intact / name, 3, block=BLOCK).path)
        for number in range(first, last):
            folder = shutil.copytree(source, Path(scratch) / str(number))
            (folder / file).write_bytes(mutate(whole, np.random.default_rng([seed, number]))[1])
            try:
                outcome = (
                    _outcome_of_model(folder, hin, scores)
                    if attack == "model"
                    else _outcome_of_join(folder, name, hin, result)
                )
            except NeuPathError:
                outcome = "refused"
            except Exception as error:
                sys.stderr.write(f"{attack} {file} {number}: {error!r}\n")
                outcome = "crashed"
            sys.stdout.write(f"{outcome}\n")
            sys.stdout.flush()
            shutil.rmtree(folder)


if __name__ == "__main__":
    _run(*sys.argv[1:4], *map(int, sys.argv[4:7]))  # type: ignore[arg-type]

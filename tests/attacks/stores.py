"""Damage to every kind of file of a store: whoever opens it must get the right graph or a refusal.

The tries run one after another in a child process (`python -m tests.attacks.stores`), which is started again at the
next try when a damaged file kills it.
"""

import logging
import shutil
import subprocess
import sys
from argparse import Namespace
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa

from neupath import HIN, PathSim, load
from neupath.errors import NeuPathError
from neupath.graph.hin import Edges, digest
from neupath.graph.metapath import Relation
from neupath.graph.nodes import Nodes
from neupath.graph.summary import summarise
from neupath.store import Edge, Node, Update, check, open_store, write_store
from tests.attacks.mutation import mutate
from tests.patience import PATIENCE
from tests.processes import run_process

KINDS = {
    "indptr": "snapshot-*/edges-*-indptr.npy",
    "indices": "snapshot-*/edges-*-indices.npy",
    "weights": "snapshot-*/edges-*-data.npy",
    "nodes": "snapshot-*/nodes-*.arrow",
    "edge rows": "snapshot-*/edge-rows-*.arrow",
    "manifest": "snapshot-*/manifest.json",
    "marker": "store.json",
    "acknowledged": "acknowledged",
    "database": "graph.duckdb",
    "log": "graph.duckdb.wal",
}
"""The files of a store, by kind."""
_UPDATES = 8
_SIZE = 40


def attack_stores(options: Namespace) -> dict[str, dict[str, int]]:
    """Damage each kind of file `count` times; return how often each outcome came of it, by kind."""
    tries = [kind for kind in KINDS for _ in range(options.count)]
    outcomes: dict[str, Counter[str]] = {kind: Counter() for kind in KINDS}
    with TemporaryDirectory() as folder:
        make_store(Path(folder))
        done = 0
        while done < len(tries):
            lines, died = _run_child(options, done, folder)
            for kind, outcome in zip(tries[done:], [*lines, *(["crashed"] if died else [])], strict=False):
                outcomes[kind][outcome] += 1
            done += len(lines) + died
            assert lines or died, "the child did nothing"
    return {kind: dict(counts) for kind, counts in outcomes.items()}


def _run_child(options: Namespace, first: int, folder: str) -> tuple[list[str], bool]:
    """Run the tries from one on; return the outcomes, and whether the last try killed the process."""
    numbers = map(str, (options.count, options.seed, first))
    command = [sys.executable, "-m", "tests.attacks.stores", folder, *numbers]
    with run_process(command, stdout=subprocess.PIPE, cwd=Path(__file__).parents[2]) as process:
        assert process.stdout is not None
        lines = process.stdout.read().splitlines()
        return lines, process.wait(PATIENCE) != 0


def make_store(folder: Path) -> None:
    """Write a store with a snapshot, changes in the database and changes in its log, as a killed writer leaves it."""
    with open_store(write_store(_graph(), folder / "open.store")) as store:
        for number in range(_UPDATES // 2):
            store.update(_update(number))
        store.close()  # moves the log into the database
        for number in range(_UPDATES // 2, _UPDATES):
            store.update(_update(number))
        shutil.copytree(store.folder, folder / "sound.store")


def _graph() -> HIN:
    rng = np.random.default_rng(0)
    years = pa.table({"year": rng.integers(1950, 2020, _SIZE), "kind": [f"kind {i % 3}" for i in range(_SIZE)]})
    people = Nodes("person", pa.array([f"p{i}" for i in range(_SIZE)]), pa.array([f"P. {i}" for i in range(_SIZE)]))
    works = Nodes("work", pa.array(np.arange(_SIZE)), None, years)
    wrote, knows = Relation("person", "wrote", "work"), Relation("person", "knows", "person", directed=False)
    ends = rng.integers(0, _SIZE, (4, 8 * _SIZE))
    weights = rng.random(8 * _SIZE) + 0.5
    attributes = pa.table(
        {"pages": rng.integers(1, 99, 8 * _SIZE), "role": [f"role {i % 5}" for i in range(8 * _SIZE)]}
    )
    edges = [Edges(wrote, ends[0], ends[1], weights, attributes), Edges(knows, ends[2], ends[3])]
    return HIN.build([people, works], edges)


def _update(number: int) -> Update:
    new = f"new {number}"
    known = {"pages": number, "role": f"role {number}"}
    edges = [Edge("wrote", new, (7 * number + i) % _SIZE, 1.0 + number, known) for i in range(3)]
    return Update([*edges, Edge("knows", "p1", f"p{number + 2}")], add_nodes=[Node("person", new, f"N. {number}")])


@cache
def _fingerprints() -> dict[int, str]:
    """Return the fingerprint of the graph by version, from a store that nothing happens to."""
    with TemporaryDirectory() as folder, open_store(write_store(_graph(), Path(folder) / "s")) as store:
        fingerprints = {0: _fingerprint(store.hin())}
        for number in range(_UPDATES + 1):
            store.update(_update(number))
            fingerprints[number + 1] = _fingerprint(store.hin())
        return fingerprints


def _fingerprint(hin: HIN) -> str:
    """Return a text that differs between graphs that differ in anything, names and attributes too."""
    nodes = [(n.names and n.names.to_pylist(), n.attributes.to_pylist()) for n in hin.nodes.values()]
    return f"{digest(hin)} {nodes}"


# ---- In the child --------------------------------------------------------------------------------
class _Notes(logging.Handler):
    """Counts what the store logs."""

    count = 0

    def emit(self, record: logging.LogRecord) -> None:  # noqa: ARG002
        self.count += 1


def run_tries(folder: Path, count: int, seed: int, first: int) -> Iterator[str]:
    """Damage a file and use the store, once per try; yield each outcome."""
    notes = _Notes()
    logging.getLogger("neupath.store").addHandler(notes)
    logging.getLogger("neupath.store").propagate = False
    for number in range(first, count * len(KINDS)):
        rng = np.random.default_rng([seed, number])
        store = folder / f"try-{number}"
        shutil.copytree(folder / "sound.store", store)
        files = sorted(store.glob(list(KINDS.values())[number // count]))
        file = files[int(rng.integers(len(files)))]
        mutation, content = mutate(file.read_bytes(), rng)
        file.write_bytes(content)
        notes.count = 0
        outcome = _use(store, update_first=number % 3 == 2)
        if outcome in ("wrong", "crashed"):
            print(f"{outcome}: {mutation} of {file.name}, seed {seed}, try {number}", file=sys.stderr, flush=True)
        yield "rebuilt" if outcome == "right" and notes.count else outcome
        shutil.rmtree(store)


def _use(folder: Path, *, update_first: bool) -> str:
    """Check, search, describe and update a store, or update it first; return what came of it."""
    steps = (_update_and_read,) if update_first else (_check_and_read, _update_and_read)
    try:
        return "right" if all(step(folder) for step in steps) and not check(folder).problems else "wrong"
    except NeuPathError as error:
        return "refused" if "\n" not in str(error) else "wrong"
    except Exception as error:
        print(repr(error), file=sys.stderr, flush=True)
        return "crashed"


def _check_and_read(folder: Path) -> bool:
    """Whether a store is read as the right graph; `check`, which is stricter, must not end the process."""
    check(folder)
    hin = load(folder)
    summarise(hin)
    PathSim("person-work-person").fit(hin).top_k("p1", k=3)
    return _fingerprint(hin) == _fingerprints()[_UPDATES]


def _update_and_read(folder: Path) -> bool:
    with open_store(folder) as store:
        change = store.update(_update(_UPDATES))
        return change.version == _UPDATES + 1 and _fingerprint(store.hin()) == _fingerprints()[_UPDATES + 1]


if __name__ == "__main__":
    for line in run_tries(Path(sys.argv[1]), *map(int, sys.argv[2:])):
        print(line, flush=True)

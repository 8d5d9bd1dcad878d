"""Damage to every kind of file of a store: whoever opens it must get the right graph or a refusal."""

import logging
import shutil
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa

from neupath import HIN, PathSim, load
from neupath.graph.hin import Edges, digest
from neupath.graph.metapath import Relation
from neupath.graph.nodes import Nodes
from neupath.graph.summary import summarise
from neupath.store import Edge, Node, Update, check, open_store, write_store
from tests.attacks.damage import Target

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


@cache
def _sound_store() -> TemporaryDirectory[str]:
    """A store with a snapshot, changes in the database and changes in its log, as a killed writer leaves it."""
    folder = TemporaryDirectory()
    with open_store(write_store(_graph(), Path(folder.name) / "open.store")) as store:
        for number in range(_UPDATES // 2):
            store.update(_update(number))
        store.close()  # moves the log into the database
        for number in range(_UPDATES // 2, _UPDATES):
            store.update(_update(number))
        shutil.copytree(store.folder, Path(folder.name) / "sound.store")
    return folder


def _write(folder: Path) -> None:
    shutil.copytree(Path(_sound_store().name) / "sound.store", folder, dirs_exist_ok=True)


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


# ---- Using it ------------------------------------------------------------------------------------
class _Notes(logging.Handler):
    """Counts what the store logs."""

    count = 0

    def emit(self, record: logging.LogRecord) -> None:  # noqa: ARG002
        self.count += 1


def _use(folder: Path, number: int) -> str:
    """Check, search, describe and update a store, or every third time update it first; return what came of it."""
    notes, log = _Notes(), logging.getLogger("neupath.store")
    log.handlers, log.propagate = [notes], False
    steps = (_update_and_read,) if number % 3 == 2 else (_check_and_read, _update_and_read)
    if not all(step(folder) for step in steps) or check(folder).problems:
        return "wrong"
    return "rebuilt" if notes.count else "right"


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


TARGETS = {kind: Target(_write, _use, files) for kind, files in KINDS.items()}

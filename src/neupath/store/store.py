"""Store: an open store, which reads versions of its graph and takes updates."""

from pathlib import Path
from threading import RLock
from typing import Any, Self

import numpy as np

from neupath.errors import NeuPathError, WriteError
from neupath.graph import HIN
from neupath.nodes import Rows
from neupath.store.batch import Batch
from neupath.store.checking import Checked, check
from neupath.store.database import VersionFacts, connect, read_facts, reading, run
from neupath.store.folding import RETAINED, fold, is_due
from neupath.store.layout import check_marker
from neupath.store.reading import read_version
from neupath.store.updates import Change, apply_batch


class Store:
    """A graph on disk: one process writes to it at a time, and every version that is kept can be read.

    >>> from tempfile import TemporaryDirectory
    >>> from neupath import load
    >>> from neupath.store import EdgeLine, write_store
    >>> edge = EdgeLine("writes", "Mike", "Jim-SIGMOD-1")
    >>> with TemporaryDirectory() as parent, open_store(write_store(load("toy"), parent + "/store")) as store:
    ...     store.update(Batch(add_edges=[edge])).version
    1
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._writer: Any = None
        self._lock = RLock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @property
    def version(self) -> int:
        """The number of the last version."""
        return self.facts().version

    def facts(self) -> VersionFacts:
        """Return the last version, with how many nodes and edges it has."""
        with self._lock:
            if self._writer is not None:
                return read_facts(self._writer)
        with reading(self.folder) as connection:
            return read_facts(connection)

    def hin(self, as_of: int | None = None) -> HIN:
        """Return the graph as it is, or as it was at a version."""
        with self._lock:
            if self._writer is not None:
                return read_version(self._writer, self.folder, as_of)
        with reading(self.folder) as connection:
            return read_version(connection, self.folder, as_of)

    def keyed(self) -> tuple[int, HIN, dict[str, Rows]]:
        """Return the last version, its graph, and the keys of its nodes by type, in the order of their rows."""
        with self._lock:
            writer = self._open_writer()
            hin = read_version(writer, self.folder)
            keys = {
                node_type: np.array(run(writer, f"SELECT key FROM nodes_{n} WHERE died IS NULL ORDER BY key")).ravel()  # noqa: S608
                for n, node_type in enumerate(hin.schema.node_types)
            }
            return read_facts(writer).version, hin, {name: found.astype(np.int64) for name, found in keys.items()}

    def update(self, batch: Batch) -> Change:
        """Write a batch, all of it or nothing; when this returns, it is on disk."""
        with self._lock:
            writer = self._open_writer()
            try:
                change = apply_batch(writer, self.folder, batch)
            except WriteError:
                self.close()  # a database that could not write is opened anew
                raise
            except NeuPathError:
                run(writer, "ROLLBACK")
                raise
            if is_due(writer):
                fold(writer, self.folder)
            return change

    def compact(self, retained: int = RETAINED) -> None:
        """Fold all but the retained versions into the tables, and write a snapshot of the last one."""
        with self._lock:
            try:
                fold(self._open_writer(), self.folder, retained)
            except WriteError:
                self.close()
                raise

    def check(self) -> Checked:
        """Read all of the store and compare it with what was written down."""
        self.close()
        return check(self.folder)

    def close(self) -> None:
        """Let other processes write; the next update opens the database again."""
        with self._lock:
            if self._writer is not None:
                self._writer.close()
                self._writer = None

    def _open_writer(self) -> Any:
        if self._writer is None:
            self._writer = connect(self.folder, write=True)
        return self._writer


def open_store(path: str | Path) -> Store:
    """Open a store that is there."""
    folder = Path(path)
    check_marker(folder)
    return Store(folder)

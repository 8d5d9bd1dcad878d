"""Store: an open store, which reads versions of its graph and takes updates."""

import logging
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from threading import RLock
from typing import Any, Self

import numpy as np

from neupath.errors import NeuPathError, WriteError
from neupath.graph import HIN
from neupath.nodes import Rows
from neupath.store import database
from neupath.store.batch import Batch
from neupath.store.checking import Checked, check
from neupath.store.claims import claim, give_up
from neupath.store.database import (
    VersionFacts,
    checkpoint_if_due,
    connect,
    duckdb,
    read_facts,
    reading,
    run,
    telling_reads,
)
from neupath.store.folding import RETAINED, fold, is_due
from neupath.store.grouping import Grouped
from neupath.store.layout import DATABASE, check_marker
from neupath.store.reading import read_version
from neupath.store.standing import Standing
from neupath.store.updates import Change, write_batches

_log = logging.getLogger("neupath.store")


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
        self._file: tuple[int, int] | None = None
        self._standing: Standing | None = None
        self._lock = RLock()
        self._grouped: Grouped[Batch, Change] = Grouped(self.update_many)

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
        with self._reading() as connection:
            return read_facts(connection)

    def hin(self, as_of: int | None = None) -> HIN:
        """Return the graph as it is, or as it was at a version."""
        with self._reading() as connection:
            return read_version(connection, self.folder, as_of)

    def keyed(self) -> tuple[VersionFacts, HIN, dict[str, Rows]]:
        """Return the last version, its graph, and the keys of its nodes by type, in the order of their rows."""
        with self._reading() as connection:
            hin = read_version(connection, self.folder)
            keys = {
                node_type: np.array(run(connection, f"SELECT key FROM nodes_{n} WHERE died IS NULL ORDER BY key"))  # noqa: S608
                for n, node_type in enumerate(hin.schema.node_types)
            }
            keys = {node_type: found.ravel().astype(np.int64) for node_type, found in keys.items()}
            return read_facts(connection), hin, keys

    @contextmanager
    def _reading(self) -> Iterator[Any]:
        """Lend the connection that writes, where there is one, or else one for reading."""
        with ExitStack() as held:
            with self._lock:  # so that none is opened for writing at the same time, which a database does not allow
                if self._writer is not None:
                    held.enter_context(telling_reads(self.folder))
                    yield self._writer
                    return
                connection = held.enter_context(reading(self.folder))
            yield connection

    def hold(self) -> None:
        """Let no other process write, from now until this store is closed."""
        with self._lock:
            self._open_writer()

    def update(self, batch: Batch) -> Change:
        """Write a batch, all of it or nothing; when this returns, it is on disk.

        Batches of threads that wait for each other go to disk together, each as a version of its own.
        """
        return self._grouped(batch)

    def update_many(self, batches: Sequence[Batch]) -> list[Change | BaseException]:
        """Write batches at once, each all or nothing; return what each did, or why it was refused."""
        with self._lock:
            try:
                writer = self._open_writer()
                self._standing = self._standing or Standing(writer, self.folder)
                outcomes = write_batches(writer, self.folder, self._standing, batches)
            except BaseException:
                self.close()  # what could not be written is not in memory either, once it is opened anew
                raise
            self._tidy()
            return outcomes

    def _tidy(self) -> None:
        """Fold where it is time; where that fails, the batches are on disk all the same, and the next tries again.

        Ctrl-C ends the folding alone: it must not be taken for an end of the batches, which would be given again.
        """
        try:
            if self._standing is not None and is_due(self._standing):
                self.compact()
            else:
                checkpoint_if_due(self._writer, self.folder)
        except (NeuPathError, KeyboardInterrupt) as error:
            self.close()  # a database that could not write takes nothing more until it is opened anew
            _log.warning("the store %s could not be compacted: %s", self.folder, str(error) or "interrupted")

    def compact(self, retained: int = RETAINED) -> None:
        """Fold all but the retained versions into the tables, and write a snapshot of the last one."""
        with self._lock:
            try:
                fold(self._open_writer(), self.folder, retained)
                self._standing = None  # the next one is over the new snapshot
            except BaseException:
                self.close()  # and leave no transaction open
                raise

    def check(self) -> Checked:
        """Read all of the store and compare it with what was written down."""
        self.close()
        return check(self.folder)

    def close(self) -> None:
        """Let other processes write; the next update opens the database again."""
        with self._lock:
            if self._writer is not None:
                if self._is_where_it_was():  # or it would remove the log of another store that has its name now
                    with suppress(duckdb().Error):  # the log is read when the database is opened next
                        run(self._writer, "CHECKPOINT")
                self._writer.close()
                self._writer, self._standing = None, None
                give_up(self)

    def _open_writer(self) -> Any:
        if self._writer is None:
            claim(self.folder, self, database.PATIENCE)
            try:
                self._check_place()
                self._writer = connect(self.folder, write=True)
                self._file = _file_of(self.folder)
            except BaseException:
                give_up(self)
                raise
        else:
            self._check_place()
        return self._writer

    def _check_place(self) -> None:
        """Refuse to write to another store than before, or to a file without a name, where it would be lost."""
        if not self._is_where_it_was():
            raise WriteError(
                f"the store {self.folder} was moved or replaced while it was open; nothing was changed; open it anew"
            )

    def _is_where_it_was(self) -> bool:
        return self._file is None or _file_of(self.folder) == self._file


def _file_of(folder: Path) -> tuple[int, int] | None:
    """Return which file the database of a folder is, or nothing where it has none."""
    try:
        found = (folder / DATABASE).stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def open_store(path: str | Path) -> Store:
    """Open a store that is there."""
    folder = Path(path)
    check_marker(folder)
    return Store(folder)

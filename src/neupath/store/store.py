"""An open store: it reads versions of its graph, takes updates, and compacts itself.

Crash recovery needs no code here. An update is one DuckDB transaction: after a crash, opening the database replays its
write-ahead log, and an update is there whole or not at all. New stores and snapshots get their name when they are
complete, and a snapshot can always be built again from the database.
"""

import logging
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Condition, RLock
from typing import Any, Self
from weakref import WeakValueDictionary

import numpy as np

from neupath._runtime.group_commit import GroupCommit
from neupath.errors import NeuPathError, SourceError, WriteError
from neupath.graph.hin import HIN, Edges
from neupath.graph.nodes import Rows
from neupath.store import database
from neupath.store.checks import CheckReport, check
from neupath.store.database import VersionFacts, duckdb, read_facts, read_layout, run
from neupath.store.snapshots import write_snapshot
from neupath.store.update import Update
from neupath.store.versions import Change, Head, disk_cache, read_version, rebuild, write_updates

# ---- Writer lock ---------------------------------------------------------------------------------
# DuckDB locks out other processes only; these lock out other `Store` objects of this process.
_writers: "WeakValueDictionary[Path, Store]" = WeakValueDictionary()
"""By folder: the store that may write; one that is garbage collected without being closed loses its lock."""
_writers_changed = Condition()


def _acquire_writer_lock(store: "Store", patience: float) -> None:
    path = store.folder.resolve()
    with _writers_changed:
        if not _writers_changed.wait_for(lambda: _writers.setdefault(path, store) is store, patience):
            raise SourceError(f"the store {store.folder} is open for writing in this process; use that, or close it")


def _release_writer_lock(store: "Store") -> None:
    with _writers_changed:
        for path in [path for path, writer in _writers.items() if writer is store]:
            del _writers[path]
        _writers_changed.notify_all()


# ---- Compaction ----------------------------------------------------------------------------------
RETAINED = 1000  # versions before the newest one that stay readable
_SHARE = 0.2  # changes per edge at which compaction is due: replaying them takes as long as reading a snapshot


def is_compaction_due(head: Head) -> bool:
    """Whether so many changes came since the last compaction that opening the store gets slow."""
    has_many_changes = head.changes > max(_SHARE * head.facts.edges, RETAINED)
    return has_many_changes and head.facts.version - head.layout.base_version > 2 * RETAINED


def compact_database(connection: Any, folder: Path, retained: int = RETAINED) -> None:
    """Merge all but the retained versions into the edge tables, in one transaction; then write a snapshot.

    What is cached of other versions than the newest goes.
    """
    with database.transaction(connection, folder):
        layout, newest = read_layout(connection), read_facts(connection)
        base = max(layout.base_version, newest.version - retained)
        if base > layout.base_version:
            snapshot = rebuild(connection, layout, base)
            for number, relation in enumerate(layout.schema.relations):
                edges = Edges.of(relation, snapshot.matrices[number])
                database.replace_table(connection, f"edges_{number}", database.edge_table(*edges.triplets))
            for number in layout.described_relations:
                run(connection, f"DELETE FROM edge_rows_{number} WHERE died <= ?", [base])  # noqa: S608
            run(connection, "DELETE FROM changes WHERE version <= ?", [base])
            run(connection, "DELETE FROM versions WHERE version < ?", [base])
            database.write_layout(connection, replace(layout, base_version=base))
    with database.raising_write_errors(folder):  # if this fails, the store is complete with its old snapshot or none
        run(connection, "CHECKPOINT")
        write_snapshot(folder, rebuild(connection, read_layout(connection), newest.version), newest)
    disk_cache(folder, newest).remove_other_versions()


# ---- Store ---------------------------------------------------------------------------------------
_log = logging.getLogger("neupath.store")


class Store:
    """A graph on disk. One process writes at a time; every retained version can be read.

    A version is the graph after one update; versions are numbered from 0.

    >>> from tempfile import TemporaryDirectory
    >>> from neupath import load
    >>> from neupath.store import Edge, write_store
    >>> edge = Edge("writes", "Mike", "Jim-SIGMOD-1")
    >>> with TemporaryDirectory() as parent, open_store(write_store(load("toy"), parent + "/store")) as store:
    ...     store.update(Update(add_edges=[edge])).version
    1
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._writer: Any = None  # the connection that writes, while this store has the writer lock
        self._file: tuple[int, int] | None = None  # device and inode of the database, once it was opened for writing
        self._head: Head | None = None
        self._lock = RLock()
        self._commit: GroupCommit[Update, Change] = GroupCommit(self.update_many)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @property
    def version(self) -> int:
        return self.facts().version

    def facts(self) -> VersionFacts:
        """Return the number of the newest version, and how many nodes and edges it has."""
        with self._reading() as connection:
            return read_facts(connection)

    def hin(self, as_of: int | None = None) -> HIN:
        """Return the newest version of the graph, or the one numbered `as_of`.

        The files of its snapshot are verified when they are first used.
        """
        with self._reading() as connection:
            return read_version(connection, self.folder, as_of, partial(_reading_again, self.folder.absolute()))

    def keyed(self) -> tuple[VersionFacts, HIN, dict[str, Rows]]:
        """Return the newest version with the keys of its nodes by type, in the order of their rows.

        All files of its snapshot are verified first: updates build on it.
        """
        with self._reading() as connection:
            hin, keys = read_version(connection, self.folder), {}
            for number, node_type in enumerate(hin.schema.node_types):
                alive = run(connection, f"SELECT key FROM nodes_{number} WHERE died IS NULL ORDER BY key")  # noqa: S608
                keys[node_type] = np.array(alive).ravel().astype(np.int64)
            return read_facts(connection), hin, keys

    @contextmanager
    def _reading(self) -> Iterator[Any]:
        """Lend the writing connection if the store has one, else a reading one."""
        with ExitStack() as stack:
            with self._lock:  # DuckDB opens a database either for reading or for writing, not both at once
                if self._writer is not None:
                    stack.enter_context(database.raising_source_errors(self.folder))
                    yield self._writer
                    return
                connection = stack.enter_context(database.reading(self.folder))
            yield connection

    def hold(self) -> None:
        """Keep other processes from opening the store until it is closed."""
        with self._lock:
            self._open_writer()

    def update(self, update: Update) -> Change:
        """Write an update, all of it or nothing. It is durable when this returns.

        Updates of concurrent threads share one commit, each as its own version.
        """
        return self._commit(update)

    def update_many(self, updates: Sequence[Update]) -> list[Change | BaseException]:
        """Write updates in one commit, each all or nothing; return the change or the error of each."""
        with self._lock:
            try:
                writer = self._open_writer()
                with database.raising_source_errors(self.folder):
                    self._head = self._head or Head.read(writer, self.folder)
                outcomes = write_updates(writer, self.folder, self._head, updates)
            except BaseException:
                self.close()  # drops the head, which may be ahead of the database
                raise
            self._acknowledge(self._head.facts)
            self._maintain()
            return outcomes

    def _acknowledge(self, facts: VersionFacts) -> None:
        """Write down a committed version. If that fails, the updates are durable all the same."""
        try:
            database.write_acknowledged(self.folder, facts)
        except OSError as error:
            _log.warning(
                "version %d of the store %s is saved, but cannot be written down beside its database: %s",
                facts.version,
                self.folder,
                error.strerror,
            )

    def _maintain(self) -> None:
        """Compact or checkpoint if due. If that fails, the updates are durable all the same, and the next one retries.

        Ctrl-C ends the compaction only. Raising it would look like a failed update, which the caller would repeat.
        """
        try:
            if self._head is not None and is_compaction_due(self._head):
                self.compact()
            else:
                database.checkpoint_if_due(self._writer, self.folder)
        except (NeuPathError, KeyboardInterrupt) as error:
            self.close()  # DuckDB accepts nothing after a failed write until the database is opened again
            _log.warning(
                "the updates of the store %s are saved, but its maintenance failed: %s; the next update tries again",
                self.folder,
                str(error) or "interrupted",
            )

    def compact(self, retained: int = RETAINED) -> None:
        """Merge all but the newest `retained` versions into the tables, and write a snapshot of the newest one."""
        with self._lock:
            try:
                compact_database(self._open_writer(), self.folder, retained)
                self._head = None  # the next one reads the new snapshot
            except BaseException:
                self.close()  # leaves no transaction open
                raise

    def check(self) -> CheckReport:
        """Read all of the store and compare it with the counts and checksums written with each update."""
        self.close()
        return check(self.folder)

    def close(self) -> None:
        """Let other processes write; the next update opens the database again."""
        with self._lock:
            if self._writer is not None:
                if self._is_in_place():  # a checkpoint would remove the log of the store that has this name now
                    with suppress(duckdb().Error):  # the log is replayed when the database is opened next
                        run(self._writer, "CHECKPOINT")
                self._writer.close()
                self._writer, self._head = None, None
                _release_writer_lock(self)

    def _open_writer(self) -> Any:
        if self._writer is not None:
            self._check_in_place()
            return self._writer
        _acquire_writer_lock(self, database.PATIENCE)
        try:
            self._check_in_place()
            self._writer = database.connect(self.folder, write=True)
            self._file = _inode_of(self.folder)
            self._acknowledge(read_facts(self._writer))
        except BaseException:
            _release_writer_lock(self)
            raise
        return self._writer

    def _check_in_place(self) -> None:
        """Raise if the folder now holds another store or none: the update would go to the wrong one, or be lost."""
        if not self._is_in_place():
            raise WriteError(
                f"the store {self.folder} was moved or replaced while open; nothing was changed; reopen it"
            )

    def _is_in_place(self) -> bool:
        return self._file is None or _inode_of(self.folder) == self._file


@contextmanager
def _reading_again(folder: Path) -> Iterator[Any]:
    """Lend a connection to the store in a folder: that of this process's writer, as DuckDB gives out no other."""
    writer = _writers.get(folder.resolve())
    with database.reading(folder) if writer is None else writer._reading() as connection:
        yield connection


def _inode_of(folder: Path) -> tuple[int, int] | None:
    try:
        stat = (folder / database.DATABASE).stat()
    except OSError:
        return None
    return stat.st_dev, stat.st_ino


def open_store(path: str | Path) -> Store:
    """Open an existing store.

    Parameters
    ----------
    path
        The folder of the store; `write_store` or `neupath import` makes one.

    >>> from tempfile import TemporaryDirectory
    >>> from neupath import load
    >>> from neupath.store import write_store
    >>> with TemporaryDirectory() as parent:
    ...     open_store(write_store(load("toy"), parent + "/store")).version
    0
    """
    folder = Path(path)
    database.check_marker(folder)
    return Store(folder)

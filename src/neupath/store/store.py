"""Store: an open store, which reads versions of its graph and takes updates."""

import logging
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from threading import Condition, RLock
from typing import Any, Self
from weakref import WeakValueDictionary

import numpy as np
import pyarrow as pa

from neupath._runtime.group_commit import GroupCommit
from neupath.errors import NeuPathError, SourceError, WriteError
from neupath.graph.hin import HIN
from neupath.graph.nodes import Rows
from neupath.store import database
from neupath.store.checks import Checked, check
from neupath.store.commit import write_updates
from neupath.store.database import (
    DATABASE,
    StoreLayout,
    VersionFacts,
    check_marker,
    checkpoint_if_due,
    connect,
    duckdb,
    read_facts,
    read_layout,
    reading,
    run,
    run_on,
    telling_reads,
    telling_writes,
    transaction,
    write_layout,
)
from neupath.store.edge_matrices import once
from neupath.store.snapshots import Snapshot, write_snapshot
from neupath.store.update import Update
from neupath.store.versions import Change, Head, read_version, rebuild

# ---- Claims --------------------------------------------------------------------------------------
_holders: "WeakValueDictionary[Path, object]" = WeakValueDictionary()
"""By folder: who writes to it; one that is forgotten without being closed writes no longer."""
_changed = Condition()


def claim(folder: Path, holder: object, patience: float) -> None:
    """Let nobody else of this process write, waiting some seconds for one who does."""
    place = folder.resolve()
    with _changed:
        if not _changed.wait_for(lambda: _holders.setdefault(place, holder) is holder, patience):
            raise SourceError(f"the store {folder} is open for writing in this process already; use that, or close it")


def give_up(holder: object) -> None:
    """Let others of this process write to what a holder has claimed."""
    with _changed:
        for place in [place for place, found in _holders.items() if found is holder]:
            del _holders[place]
        _changed.notify_all()


# ---- Folding -------------------------------------------------------------------------------------
RETAINED = 1000
"""Versions before the last one that can still be read."""
_SHARE = 0.2
"""Changes for each edge from which a snapshot is written anew: replaying them takes as long as reading one."""


def is_due(standing: Head) -> bool:
    """Whether so much has changed since the edges were folded that opening the store gets slow."""
    is_much = standing.changes > max(_SHARE * standing.facts.edges, RETAINED)
    return is_much and standing.facts.version - standing.layout.folded > 2 * RETAINED  # so that many are folded at once


def fold(connection: Any, folder: Path, retained: int = RETAINED) -> None:
    """Fold what is older than the retained versions, in one transaction, and write a snapshot of the last version."""
    with transaction(connection, folder):
        layout, last = read_layout(connection), read_facts(connection).version
        until = max(layout.folded, last - retained)
        if until > layout.folded:
            _replace_edges(connection, layout, rebuild(connection, layout, until))
            run(connection, "DELETE FROM changes WHERE version <= ?", [until])
            run(connection, "DELETE FROM versions WHERE version < ?", [until])
            write_layout(connection, replace(layout, folded=until))
    with telling_writes(folder):  # whatever fails here, the store does with the snapshot it has, or without
        run(connection, "CHECKPOINT")
        write_snapshot(folder, rebuild(connection, read_layout(connection), last))


def _replace_edges(connection: Any, layout: StoreLayout, state: Snapshot) -> None:
    for number, relation in enumerate(layout.schema.relations):
        sources, targets, weights = once(state.matrices[number], relation.directed)
        given = pa.table({"source": sources, "target": targets, "weight": weights})
        run_on(connection, given, f"CREATE OR REPLACE TABLE edges_{number} AS SELECT * FROM given")  # noqa: S608


# ---- Store ---------------------------------------------------------------------------------------
_log = logging.getLogger("neupath.store")


class Store:
    """A graph on disk: one process writes to it at a time, and every version that is kept can be read.

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
        self._writer: Any = None
        self._file: tuple[int, int] | None = None
        self._standing: Head | None = None
        self._lock = RLock()
        self._grouped: GroupCommit[Update, Change] = GroupCommit(self.update_many)

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

    def update(self, update: Update) -> Change:
        """Write an update, all of it or nothing; when this returns, it is on disk.

        Updates of threads that wait for each other go to disk together, each as a version of its own.
        """
        return self._grouped(update)

    def update_many(self, updates: Sequence[Update]) -> list[Change | BaseException]:
        """Write updates at once, each all or nothing; return what each did, or why it was refused."""
        with self._lock:
            try:
                writer = self._open_writer()
                self._standing = self._standing or Head.read(writer, self.folder)
                outcomes = write_updates(writer, self.folder, self._standing, updates)
            except BaseException:
                self.close()  # what could not be written is not in memory either, once it is opened anew
                raise
            self._tidy()
            return outcomes

    def _tidy(self) -> None:
        """Fold where it is time; where that fails, the updates are on disk all the same, and the next tries again.

        Ctrl-C ends the folding alone: it must not be taken for an end of the updates, which would be given again.
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

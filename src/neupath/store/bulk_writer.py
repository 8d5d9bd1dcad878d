"""Filling a new store a part at a time, with less memory than it has edges."""

import re
import shutil
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from neupath._runtime.files import whole_folder
from neupath._runtime.progress import Progress, no_progress, track
from neupath._runtime.resources import total_memory
from neupath.errors import QueryError, WriteError, first_line
from neupath.graph.hin import HIN
from neupath.graph.metapath import Relation
from neupath.store.database import (
    DATABASE,
    SNAPSHOT,
    StoreLayout,
    VersionFacts,
    create_tables,
    duckdb,
    node_table,
    run,
    run_on,
    sync,
    write_facts,
    write_marker,
)
from neupath.store.edge_matrices import Triplets, add, edge_sum, node_sum, once
from neupath.store.snapshots import Snapshot, map_nodes, seal, write_matrix, write_snapshot, writing_nodes


# ---- Writing a graph as a new store --------------------------------------------------------------
def write_store(hin: HIN, path: str | Path, progress: Progress = no_progress) -> Path:
    """Write a graph as a store of version 0; the folder appears whole or not at all.

    >>> from tempfile import TemporaryDirectory
    >>> from neupath import load
    >>> with TemporaryDirectory() as parent:
    ...     load(write_store(load("toy"), parent + "/store")).num_nodes("author")
    5
    """
    with _new_folder(Path(path)) as temporary:
        _fill(hin, temporary, progress)
    return Path(path)


@contextmanager
def _new_folder(target: Path) -> Iterator[Path]:
    """Lend a temporary folder for a new store, then give it its name."""
    if target.exists():
        raise WriteError(f"{target} exists already; give a new folder, or remove it first")
    library = duckdb()
    try:
        target.absolute().parent.mkdir(parents=True, exist_ok=True)
        with whole_folder(target) as temporary:
            yield temporary
    except library.Error as error:
        raise WriteError(f"cannot write {target}: {first_line(error)}") from error
    except OSError as error:
        raise WriteError(f"cannot write {target}: {error.strerror or error}") from error
    sync(target.absolute().parent)


def _fill(hin: HIN, folder: Path, progress: Progress) -> None:
    tables = [node_table(nodes.ids, nodes.names, nodes.attributes) for nodes in hin.nodes.values()]
    connection = duckdb().connect(str(folder / DATABASE))
    try:
        run(connection, "SET enable_progress_bar = false")
        run(connection, "BEGIN TRANSACTION")
        create_tables(connection, StoreLayout.of(hin))
        write_facts(connection, _insert(connection, hin, tables, progress))
        run(connection, "COMMIT")
        run(connection, "CHECKPOINT")
    finally:
        connection.close()
    write_snapshot(folder, Snapshot(0, tuple(hin.matrices[r] for r in hin.schema.relations), tuple(tables)))
    write_marker(folder)


def _insert(connection: Any, hin: HIN, tables: list[pa.Table], progress: Progress) -> VersionFacts:
    nodes, total = 0, 0
    for number in track(range(len(tables)), "nodes", progress):
        run_on(connection, tables[number], f"CREATE TABLE nodes_{number} AS SELECT * FROM given")  # noqa: S608
        nodes += node_sum(connection, number, "true", [])
    count = 0
    for number in track(range(len(hin.schema.relations)), "edges", progress):
        relation = hin.schema.relations[number]
        sources, targets, weights = once(hin.matrices[relation], relation.directed)
        given = pa.table({"source": sources, "target": targets, "weight": weights})
        run_on(connection, given, f"CREATE TABLE edges_{number} AS SELECT * FROM given")  # noqa: S608
        count += len(sources)
        total = add(total, edge_sum(number, sources, targets, weights))
    return VersionFacts(0, sum(map(len, tables)), count, nodes, total)


# ---- Filling a new store a part at a time, with less memory than it has edges --------------------
BATCH = 1 << 18
"""Rows that are in memory at a time, of each thing that goes through it."""
_SCRATCH = "scratch"
_SIZE = re.compile(r"\d+(\.\d+)?\s*([KMGT]i?)?B", re.IGNORECASE)


class BulkWriter:
    """A store in the making: its database, its snapshot, and a scratch database.

    `connection` sees the store's own tables, and as `scratch.…` what is thrown away at the end. Nodes and edges are
    written by number, in the order that the layout given to `finish` has.
    """

    def __init__(self, folder: Path, connection: Any) -> None:
        self.connection = connection
        self.scratch = folder / _SCRATCH
        """A folder for temporary files, removed at the end."""
        self._snapshot = folder / f"{SNAPSHOT}0"
        self._snapshot.mkdir()
        self._edges, self._edge_sum = 0, 0

    def writing_nodes(self, number: int, schema: pa.Schema) -> AbstractContextManager[Any]:
        """Lend what takes the nodes of a type, as tables made by `node_table`."""
        return writing_nodes(self._snapshot, number, schema)

    def write_edges(self, number: int, batches: Iterable[Triplets]) -> None:
        """Write the edges of a relation, each once and in order of its ends."""
        run(self.connection, "PRAGMA force_compression = 'auto'")
        run(self.connection, f"CREATE TABLE edges_{number} (source BIGINT, target BIGINT, weight DOUBLE)")
        for sources, targets, weights in batches:
            given = pa.table({"source": sources, "target": targets, "weight": weights})
            run_on(self.connection, given, f"INSERT INTO edges_{number} SELECT * FROM given")  # noqa: S608
            self._edges += len(sources)
            self._edge_sum = add(self._edge_sum, edge_sum(number, sources, targets, weights))

    def finish(self, layout: StoreLayout) -> None:
        """Make a store of what was written."""
        run(self.connection, "PRAGMA force_compression = 'auto'")
        create_tables(self.connection, layout)
        sizes, total = {}, 0
        for number, node_type in enumerate(layout.schema.node_types):
            nodes = map_nodes(self._snapshot, number)
            run_on(self.connection, nodes, f"CREATE TABLE nodes_{number} AS SELECT * FROM given")  # noqa: S608
            sizes[node_type] = len(nodes)
            total += node_sum(self.connection, number, "true", [])
        shapes = [(sizes[relation.source], sizes[relation.target]) for relation in layout.schema.relations]
        for number, (relation, shape) in enumerate(zip(layout.schema.relations, shapes, strict=True)):
            write_matrix(self._snapshot, number, shape, *self._entries(number, relation))
        seal(self._snapshot, shapes, len(sizes))
        write_facts(self.connection, VersionFacts(0, sum(sizes.values()), self._edges, total, self._edge_sum))
        run(self.connection, f"DETACH {_SCRATCH}")
        run(self.connection, "CHECKPOINT")

    def _entries(self, number: int, relation: Relation) -> tuple[int, Iterator[Triplets]]:
        """Return how many entries the matrix of a relation has, and these in order."""
        query = f"SELECT source, target, weight FROM edges_{number}"  # noqa: S608
        if not relation.directed:
            other = f"SELECT target, source, weight FROM edges_{number} WHERE source <> target"  # noqa: S608
            query = f"{query} UNION ALL {other} ORDER BY source, target"
        ((count,),) = run(self.connection, f"SELECT count(*) FROM ({query})")  # noqa: S608
        return count, fetch_entries(self.connection, query)


def fetch(connection: Any, query: str) -> Iterator[pa.RecordBatch]:
    """Yield what a query finds, some rows at a time."""
    cursor = connection.cursor()
    try:
        yield from cursor.sql(query).to_arrow_reader(BATCH)
    finally:
        cursor.close()


def fetch_entries(connection: Any, query: str) -> Iterator[Triplets]:
    """Yield the sources, targets and weights that a query finds, some at a time."""
    for batch in fetch(connection, query):
        sources, targets, weights = (column.to_numpy(zero_copy_only=False) for column in batch.columns)
        yield sources.astype(np.int64, copy=False), targets.astype(np.int64, copy=False), weights


@contextmanager
def new_store(target: Path, memory_limit: str | None = None) -> Iterator[BulkWriter]:
    """Lend a writer of a new store, which the caller must `finish`; the folder appears whole or not at all.

    The limit, such as 2GiB, is that of the database, which uses the disk where it needs more; half of the machine's
    memory by default.
    """
    limit = memory_limit or f"{total_memory() // 2**21}MiB"
    with _new_folder(target) as folder, _filling(folder, limit) as writer:
        yield writer


@contextmanager
def _filling(folder: Path, memory_limit: str) -> Iterator[BulkWriter]:
    """Lend an empty store in a folder that is there."""
    if not _SIZE.fullmatch(memory_limit.strip()):
        raise QueryError(f"the memory limit {memory_limit!r} is no size; write it as 512MiB or 2GiB")
    library = duckdb()
    scratch = folder / _SCRATCH
    scratch.mkdir()
    connection = library.connect(str(folder / DATABASE))
    try:
        run(connection, "SET enable_progress_bar = false")
        run(connection, f"SET memory_limit = '{memory_limit.strip()}'")
        run(connection, f"SET temp_directory = '{_quoted(scratch / 'spilled')}'")
        run(connection, "PRAGMA force_compression = 'uncompressed'")  # of what is soon thrown away
        run(connection, f"ATTACH '{_quoted(scratch / DATABASE)}' AS {_SCRATCH}")
        yield BulkWriter(folder, connection)
    except library.Error as error:
        if not isinstance(error, library.OutOfMemoryException) and "could not allocate" not in str(error):
            raise
        raise WriteError(f"{memory_limit} of memory are not enough for this; give more, such as 4GiB") from error
    finally:
        connection.close()
    shutil.rmtree(scratch)
    write_marker(folder)


def _quoted(path: Path) -> str:
    return str(path).replace("'", "''")

"""Filling a new store a part at a time, with less memory than it has edges."""

import re
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from neupath.errors import QueryError, WriteError
from neupath.machine import total_memory
from neupath.schema import Relation
from neupath.store.database import Layout, VersionFacts, create_tables, duckdb, run, run_on, write_facts
from neupath.store.layout import DATABASE, SNAPSHOT, write_marker
from neupath.store.snapshots import Entries, map_nodes, seal, write_matrix, writing_nodes
from neupath.store.sums import add, edge_sum, node_sum
from neupath.store.writing import write_new

BATCH = 1 << 18
"""Rows that are in memory at a time, of each thing that goes through it."""
_ROOM = "room"
_SIZE = re.compile(r"\d+(\.\d+)?\s*([KMGT]i?)?B", re.IGNORECASE)


class Filling:
    """A store in the making: its database, its snapshot, and room for tables that are needed on the way.

    `connection` sees the store's own tables, and as `room.…` what is thrown away at the end. Nodes and edges are
    written by number, in the order that the layout given to `finish` has.
    """

    def __init__(self, folder: Path, connection: Any) -> None:
        self.connection = connection
        self._snapshot = folder / f"{SNAPSHOT}0"
        self._snapshot.mkdir()
        self._edges, self._edge_sum = 0, 0

    def writing_nodes(self, number: int, schema: pa.Schema) -> AbstractContextManager[Any]:
        """Lend what takes the nodes of a type, as tables made by `node_table`."""
        return writing_nodes(self._snapshot, number, schema)

    def write_edges(self, number: int, batches: Iterable[Entries]) -> None:
        """Write the edges of a relation, each once and in order of its ends."""
        run(self.connection, "PRAGMA force_compression = 'auto'")
        run(self.connection, f"CREATE TABLE edges_{number} (source BIGINT, target BIGINT, weight DOUBLE)")
        for sources, targets, weights in batches:
            given = pa.table({"source": sources, "target": targets, "weight": weights})
            run_on(self.connection, given, f"INSERT INTO edges_{number} SELECT * FROM given")  # noqa: S608
            self._edges += len(sources)
            self._edge_sum = add(self._edge_sum, edge_sum(number, sources, targets, weights))

    def finish(self, layout: Layout) -> None:
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
        run(self.connection, f"DETACH {_ROOM}")
        run(self.connection, "CHECKPOINT")

    def _entries(self, number: int, relation: Relation) -> tuple[int, Iterator[Entries]]:
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


def fetch_entries(connection: Any, query: str) -> Iterator[Entries]:
    """Yield the sources, targets and weights that a query finds, some at a time."""
    for batch in fetch(connection, query):
        sources, targets, weights = (column.to_numpy(zero_copy_only=False) for column in batch.columns)
        yield sources.astype(np.int64, copy=False), targets.astype(np.int64, copy=False), weights


def write_filled(target: Path, fill: Callable[[Filling], None], memory_limit: str | None = None) -> Path:
    """Let `fill` write a new store and finish it; the folder appears whole or not at all.

    The limit, such as 2GiB, is that of the database, which uses the disk where it needs more; half of the machine's
    memory by default.
    """
    limit = memory_limit or f"{total_memory() // 2**21}MiB"

    def write(folder: Path) -> None:
        with _filling(folder, limit) as store:
            fill(store)

    return write_new(target, write)


@contextmanager
def _filling(folder: Path, memory_limit: str) -> Iterator[Filling]:
    """Lend an empty store in a folder that is there."""
    if not _SIZE.fullmatch(memory_limit.strip()):
        raise QueryError(f"the memory limit {memory_limit!r} is no size; write it as 512MiB or 2GiB")
    library = duckdb()
    room = folder / _ROOM
    room.mkdir()
    connection = library.connect(str(folder / DATABASE))
    try:
        run(connection, "SET enable_progress_bar = false")
        run(connection, f"SET memory_limit = '{memory_limit.strip()}'")
        run(connection, f"SET temp_directory = '{_quoted(room / 'spilled')}'")
        run(connection, "PRAGMA force_compression = 'uncompressed'")  # of what is soon thrown away
        run(connection, f"ATTACH '{_quoted(room / DATABASE)}' AS {_ROOM}")
        yield Filling(folder, connection)
    except library.Error as error:
        if not isinstance(error, library.OutOfMemoryException) and "could not allocate" not in str(error):
            raise
        raise WriteError(f"{memory_limit} of memory are not enough for this; give more, such as 4GiB") from error
    finally:
        connection.close()
    shutil.rmtree(room)
    write_marker(folder)


def _quoted(path: Path) -> str:
    return str(path).replace("'", "''")

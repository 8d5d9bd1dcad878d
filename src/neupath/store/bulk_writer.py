"""Write a new store: from a graph in memory, or in batches with less memory than its edges need."""

import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from neupath._runtime.files import sync, whole_folder
from neupath._runtime.lazy_module import LazyModule
from neupath._runtime.progress import Progress, no_progress, track
from neupath._runtime.resources import total_memory
from neupath.errors import QueryError, WriteError, first_line
from neupath.graph.edge_attributes import TEXT
from neupath.graph.hin import HIN, Edges, check_graph
from neupath.graph.metapath import Relation
from neupath.store import database, snapshots
from neupath.store.database import DATABASE, StoreLayout, VersionFacts, duckdb, edge_row_table, node_table, run
from neupath.store.snapshots import Triplets, add_checksums, edge_checksum, node_checksum, row_checksum

pc = LazyModule("pyarrow.compute")


# ---- From a graph in memory ----------------------------------------------------------------------
def write_store(hin: HIN, path: str | Path, progress: Progress = no_progress) -> Path:
    """Write a graph as a new store, at version 0; the folder appears complete or not at all.

    Parameters
    ----------
    hin
        The graph.
    path
        The folder, which must not exist.
    progress
        Called as work goes on.

    >>> from tempfile import TemporaryDirectory
    >>> from neupath import load
    >>> with TemporaryDirectory() as parent:
    ...     load(write_store(load("toy"), parent + "/store")).num_nodes("author")
    5
    """
    check_graph(hin)
    with _new_folder(Path(path)) as temporary:
        _write(hin, temporary, progress)
    return Path(path)


@contextmanager
def _new_folder(target: Path) -> Iterator[Path]:
    """Lend a temporary folder for a new store, then rename it."""
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


def _write(hin: HIN, folder: Path, progress: Progress) -> None:
    tables = [node_table(nodes.ids, nodes.names, nodes.attributes) for nodes in hin.nodes.values()]
    layout = StoreLayout.of(hin)
    rows = {n: edge_row_table(hin.edge_tables[hin.schema.relations[n]]) for n in layout.described_relations}
    matrices = {number: hin.matrices[relation] for number, relation in enumerate(hin.schema.relations)}
    snapshot = snapshots.Snapshot(0, matrices, dict(enumerate(tables)), rows)
    connection = database.open_duckdb(folder / DATABASE, write=True)
    try:
        database.hide_progress_bar(connection)
        run(connection, "BEGIN TRANSACTION")
        database.create_tables(connection, layout)
        for number in track(range(len(tables)), "nodes", progress):
            database.replace_table(connection, f"nodes_{number}", tables[number])
        for number in track(range(len(matrices)), "edges", progress):
            edges = Edges.of(hin.schema.relations[number], matrices[number])
            database.replace_table(connection, f"edges_{number}", database.edge_table(*edges.triplets))
        for number, table in rows.items():
            columns = database.edge_row_columns(layout.edge_attributes[number])
            database.create_table(connection, f"edge_rows_{number}", columns)
            database.insert_edge_rows(connection, number, table)
        facts = snapshots.facts_of(connection, layout, snapshot)
        database.write_facts(connection, facts)
        run(connection, "COMMIT")
        run(connection, "CHECKPOINT")
    finally:
        connection.close()
    snapshots.write_snapshot(folder, snapshot, facts)
    database.write_marker(folder, layout)


# ---- In batches ----------------------------------------------------------------------------------
BATCH_ROWS = 1 << 18
_SCRATCH = "scratch"
_SIZE = re.compile(r"\d+(\.\d+)?\s*([KMGT]i?)?B", re.IGNORECASE)


class EdgeCount(NamedTuple):
    """How many edges of a relation were written, and how many of them join a node with itself."""

    edges: int
    loops: int


class BulkWriter:
    """Writes a new store in batches. `connection` sees its tables, and those of a scratch database as `scratch.…`.

    Node types and relations are numbered as in the layout passed to `finish`. Relations with few edges share a
    transaction, since every commit waits for the disk.
    """

    def __init__(self, folder: Path, connection: Any) -> None:
        self.connection = connection
        self.scratch = folder / _SCRATCH  # for temporary files, removed at the end
        self._snapshot = folder / f"{database.SNAPSHOT}0"
        self._snapshot.mkdir()
        self._edge_counts: dict[int, EdgeCount] = {}
        self._edge_checksum = 0
        self._uncommitted: int | None = None
        """The edges of the transaction that is open, if one is."""
        self.layout: StoreLayout | None = None

    def writing_nodes(self, number: int, schema: pa.Schema) -> AbstractContextManager[Any]:
        """Lend a writer for the nodes of a type, as tables of `node_table`."""
        return snapshots.writing_table(snapshots.node_file(self._snapshot, number), schema)

    def write_edges(self, number: int, batches: Iterable[Triplets]) -> None:
        """Write the edges of a relation, each once, ordered by source and target."""
        self._begin()
        database.create_table(self.connection, f"edges_{number}", database.EDGE_COLUMNS)
        count, loops = 0, 0
        for edges in batches:
            if not len(edges[0]):
                continue
            uncommitted = self._begin() + len(edges[0])
            database.insert(self.connection, f"edges_{number}", database.edge_table(*edges))
            count += len(edges[0])
            loops += int(np.count_nonzero(edges[0] == edges[1]))
            self._edge_checksum = add_checksums(self._edge_checksum, edge_checksum(number, *edges))
            self._uncommitted = uncommitted
            if uncommitted >= BATCH_ROWS:
                self._commit()
        self._edge_counts[number] = EdgeCount(count, loops)

    def _begin(self) -> int:
        """Begin a transaction unless one is open; return how many edges it has."""
        if self._uncommitted is None:
            run(self.connection, "PRAGMA force_compression = 'auto'")
            run(self.connection, "BEGIN TRANSACTION")
            self._uncommitted = 0
        return self._uncommitted

    def _commit(self) -> None:
        if self._uncommitted is not None:
            run(self.connection, "COMMIT")
            self._uncommitted = None

    def write_edge_rows(self, number: int, attributes: pa.Schema, batches: Iterable[pa.Table]) -> None:
        """Write the single edges of a relation, as tables of `edge_row_schema`, in the order in which they came."""
        self._commit()  # a cursor of its own reads the rows back
        database.create_table(self.connection, f"edge_rows_{number}", database.edge_row_columns(attributes))
        for rows in batches:
            database.insert_edge_rows(self.connection, number, rows)
        schema = database.edge_row_schema(attributes)
        texts = {field.name: self._texts(number, field.name) for field in schema if field.type == TEXT}
        query = f"SELECT {', '.join(schema.names)} FROM edge_rows_{number}"  # noqa: S608
        with snapshots.writing_table(snapshots.row_file(self._snapshot, number), schema) as out:
            for batch in fetch(self.connection, query):
                table = _encoded(pa.Table.from_batches([batch]), schema, texts)
                self._edge_checksum = add_checksums(self._edge_checksum, row_checksum(number, table))
                out.write_table(table)

    def _texts(self, number: int, column: str) -> pa.Array:
        """Return the distinct texts of an attribute in the order in which they came."""
        query = (
            f"SELECT {column} FROM edge_rows_{number} WHERE {column} IS NOT NULL "  # noqa: S608
            f"GROUP BY {column} ORDER BY min(row)"
        )
        column_batches = [batch.column(0).cast(pa.string()) for batch in fetch(self.connection, query)]
        return pa.chunked_array(column_batches, pa.string()).combine_chunks()

    def finish(self, layout: StoreLayout) -> None:
        """Complete the store: node tables, snapshot and facts."""
        self._commit()
        self.layout = layout
        run(self.connection, "PRAGMA force_compression = 'auto'")
        database.create_tables(self.connection, layout)
        sizes, node_sum = {}, 0
        for number, node_type in enumerate(layout.schema.node_types):
            nodes = snapshots.map_nodes(self._snapshot, number)
            database.replace_table(self.connection, f"nodes_{number}", nodes)
            sizes[node_type] = len(nodes)
            node_sum += node_checksum(self.connection, number, "true", [])
        shapes = [(sizes[relation.source], sizes[relation.target]) for relation in layout.schema.relations]
        for number, (relation, shape) in enumerate(zip(layout.schema.relations, shapes, strict=True)):
            snapshots.write_matrix(self._snapshot, number, shape, *self._entries(number, relation))
        num_edges = sum(count.edges for count in self._edge_counts.values())
        facts = VersionFacts(0, sum(sizes.values()), num_edges, node_sum, self._edge_checksum)
        snapshots.seal(self._snapshot, facts)
        database.write_facts(self.connection, facts)
        run(self.connection, f"DETACH {_SCRATCH}")
        run(self.connection, "CHECKPOINT")

    def _entries(self, number: int, relation: Relation) -> tuple[int, Iterator[Triplets]]:
        """Return how many entries the matrix of a relation has, and batches of them in order."""
        query = f"SELECT source, target, weight FROM edges_{number}"  # noqa: S608
        edges, loops = self._edge_counts[number]
        if not relation.directed:
            other = f"SELECT target, source, weight FROM edges_{number} WHERE source <> target"  # noqa: S608
            query = f"{query} UNION ALL {other} ORDER BY source, target"
        return edges if relation.directed else 2 * edges - loops, fetch_entries(self.connection, query)


def _encoded(table: pa.Table, schema: pa.Schema, texts: Mapping[str, pa.Array]) -> pa.Table:
    """Return rows with their texts as numbers in dictionaries that all batches share."""
    columns = []
    for field in schema:
        column = table[field.name].combine_chunks()
        if field.name in texts:
            indices = pc.index_in(column.cast(pa.string()), value_set=texts[field.name])
            column = pa.DictionaryArray.from_arrays(indices, texts[field.name])
        columns.append(column.cast(field.type))
    return pa.table(columns, schema=schema)


def fetch(connection: Any, query: str) -> Iterator[pa.RecordBatch]:
    """Yield the result of a query in batches."""
    cursor = connection.cursor()
    try:
        yield from cursor.sql(query).to_arrow_reader(BATCH_ROWS)
    finally:
        cursor.close()


def fetch_entries(connection: Any, query: str) -> Iterator[Triplets]:
    """Yield the sources, targets and weights of a query in batches."""
    for batch in fetch(connection, query):
        sources, targets, weights = (column.to_numpy(zero_copy_only=False) for column in batch.columns)
        yield sources.astype(np.int64, copy=False), targets.astype(np.int64, copy=False), weights


@contextmanager
def new_store(target: Path, memory_limit: str | None = None) -> Iterator[BulkWriter]:
    """Lend a writer of a new store, which the caller must `finish`; the folder appears complete or not at all.

    The memory limit, such as 2GiB, is the database's, which spills to disk beyond it; by default half of the memory.
    """
    limit = memory_limit or f"{total_memory() // 2**21}MiB"
    with _new_folder(target) as folder, _bulk_writer(folder, limit) as writer:
        yield writer


@contextmanager
def _bulk_writer(folder: Path, memory_limit: str) -> Iterator[BulkWriter]:
    if not _SIZE.fullmatch(memory_limit.strip()):
        raise QueryError(f"the memory limit {memory_limit!r} is no size; write it as 512MiB or 2GiB")
    library, scratch = duckdb(), folder / _SCRATCH
    scratch.mkdir()
    connection = library.connect(str(folder / DATABASE))
    try:
        database.hide_progress_bar(connection)
        run(connection, f"SET memory_limit = '{memory_limit.strip()}'")
        run(connection, f"SET temp_directory = '{_quoted(scratch / 'spilled')}'")
        run(connection, f"SET allowed_directories = ['{_quoted(folder)}']")
        run(connection, "SET enable_external_access = false")
        run(connection, "PRAGMA force_compression = 'uncompressed'")  # for the scratch tables
        run(connection, f"ATTACH '{_quoted(scratch / DATABASE)}' AS {_SCRATCH}")
        writer = BulkWriter(folder, connection)
        yield writer
    except library.Error as error:
        if not isinstance(error, library.OutOfMemoryException) and "could not allocate" not in str(error):
            raise
        raise WriteError(f"{memory_limit} of memory are not enough for this; give more, such as 4GiB") from error
    finally:
        connection.close()
    shutil.rmtree(scratch)
    assert writer.layout is not None, "the caller finishes the store"
    database.write_marker(folder, writer.layout)


def _quoted(path: Path) -> str:
    return str(path).replace("'", "''")

"""Import a graph into a store, its tables in batches, so that its edges may be larger than memory.

`StoreAssembler` takes the path of `io.assemble`; edges go to disk there, and a database sorts them. The store is the
one that a graph in memory gives.
"""

# ruff: noqa: S608  the names of tables and columns in statements are made here, never given by users

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from neupath._runtime.progress import Progress, no_progress
from neupath.errors import QueryError
from neupath.graph.edge_attributes import TEXT
from neupath.graph.edges import check_sums, repeated_edge
from neupath.graph.hin import Duplicates, Floats, check_counts
from neupath.graph.metapath import Relation, Schema
from neupath.graph.nodes import Rows
from neupath.io.assemble import ENDS, Assembler, EdgeGroup, NodePool, TypedNodes, edges_say_types, group_rows, take_rows
from neupath.io.ids import note_ids
from neupath.io.load import load, show_notes
from neupath.io.plan import Plan, SelectedRows, Selection
from neupath.io.registry import find_tables
from neupath.io.tables import Types
from neupath.io.values import TextsOf
from neupath.store import BulkWriter, StoreLayout, Triplets, fetch, fetch_entries, new_store, node_table, write_store
from neupath.store.database import attribute_columns, run, run_on


# ---- Importing -----------------------------------------------------------------------------------
def import_store(
    source: Any,
    to: str | Path,
    *,
    config: str | Path | None = None,
    duplicates: Duplicates | None = None,
    data: str | Path | None = None,
    schema: str | None = None,
    tables: str | Sequence[str] | None = None,
    memory_limit: str | None = None,
    progress: Progress = no_progress,
) -> Path:
    """Write a graph as a new store, the same one that `write_store(load(source), to)` writes.

    Tables are read in batches. Their edges are sorted by a database, which uses the disk beyond its memory limit; the
    ids of nodes stay in memory. Other sources, and the few tables that batches would change, are read whole.

    Parameters
    ----------
    source, config, duplicates, data, schema, tables
        The graph, as `load` takes it.
    to
        The folder of the store; it must not exist yet.
    memory_limit
        Memory of the database, such as 2GiB; by default half of the machine's. The process needs about half a GiB more,
        and some 100 bytes for each node.
    progress
        Called with the stage, how much of it is done, and how much there is.

    Returns
    -------
    Path
        The folder of the store.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as parent:
    ...     load(import_store("toy", parent + "/store")).num_nodes("author")
    5

    """
    by_name = isinstance(source, str | os.PathLike) and schema is None and tables is None
    plan = find_tables(source, config, duplicates, data) if by_name else None
    if plan is None or not _can_stream(plan):
        if memory_limit is not None:
            raise QueryError(f"{source} is not read in batches, so ‹memory_limit› has no effect; leave it out")
        options: dict[str, Any] = {"config": config, "duplicates": duplicates, "data": data, "progress": progress}
        return write_store(load(source, schema=schema, tables=tables, **options), to, progress)
    with new_store(Path(to), memory_limit) as writer:
        notes = StoreAssembler(plan, writer, progress).write()
    show_notes(source, notes)
    return Path(to)


def _can_stream(plan: Plan) -> bool:
    """Whether the tables of a plan are read in batches.

    They are not if attributes of Parquet have dictionaries, which differ from batch to batch, or if several tables hold
    nodes of all types, or if edges say the types of their ends.
    """
    if plan.shared is not None and (edges_say_types(plan) or len(plan.nodes) > 1):
        return False
    types = [(node.selection.declared_types, node.selection.attributes) for node in plan.nodes]
    return not any("dictionary" in str(own[name]) for own, names in types for name in names if name in own)


# ---- Writing a store -----------------------------------------------------------------------------
BATCH_ROWS = 1 << 22
_BATCH_BYTES = 1 << 27
"""Rows of a table are taken together up to these bounds, since each time all ids are hashed."""


@dataclass(frozen=True)
class _StoredEdges:
    """The edges of a relation: a query for them, sorted by their ends, then by their rows in the tables."""

    relation: Relation
    query: str
    count: int
    attributes: pa.Schema
    """The attributes of the edges, if they have any."""
    columns: Sequence[str]
    """What those are called in the query."""


class StoreAssembler(Assembler):
    """Reads tables in batches into a store; ids stay in memory, edges are sorted in its scratch database."""

    def __init__(self, plan: Plan, writer: BulkWriter, progress: Progress) -> None:
        super().__init__(plan)
        self._writer, self._connection, self._progress = writer, writer.connection, progress
        self._spools = [writer.scratch / f"edges_{group.number}" for group in self.groups]
        self._open_spools = ExitStack()
        self._outputs: dict[int, Any] = {}

    def write(self) -> Sequence[str]:
        """Write the store; return the notes on its tables."""
        with self._open_spools:
            self.read_all()
        nodes = [each for pool in self.pools.values() for each in self.typed_nodes(pool)]
        edges = [each for group in self.groups for each in self._sort_edges(group)]
        check_counts(len(nodes), len(edges))
        options, writer = self.options, self._writer
        schema = Schema(tuple(n.node_type for n in nodes), tuple(e.relation for e in edges), options.abbreviations)
        for pool in self.pools.values():
            self._write_nodes(
                pool, {each.code: (number, each) for number, each in enumerate(nodes) if each.pool is pool}
            )
        ids = {each.node_type: each.ids for each in nodes}
        for number, each in enumerate(edges):
            if options.duplicates == "error":
                self._refuse_parallel(each, ids)
            writer.write_edges(number, self._merged(each))
        for node_type, own in ids.items():
            self.notes += note_ids(node_type, own, options, partial(self._count_edges, edges, node_type))
        described = {number: each.attributes for number, each in enumerate(edges) if len(each.attributes)}
        for number, attributes in described.items():
            writer.write_edge_rows(number, attributes, self._single_edges(edges[number]))
        named = tuple(each.pool.has_names for each in nodes)
        known = tuple(_node_schema(each.pool) for each in nodes)
        notes = tuple(dict.fromkeys(self.notes))
        writer.finish(StoreLayout(schema, named, known, notes, edge_attributes=described))
        return notes

    def _run(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        return run(self._connection, statement, values)

    # ---- Tables ----
    def first_pass(self, selection: Selection) -> Iterator[SelectedRows]:
        """Read a table in batches; text columns come as bytes, since their types are known after the last value."""
        types = dict.fromkeys(selection.inferred_attributes, pa.binary())
        read = selection.read_batches(types, partial(self._progress, f"reading {selection.table.label}"))
        for batch in _in_batches(read):
            columns = [pa.table(dict(rows.columns)) for rows in batch]
            whole = pa.concat_tables(columns)
            attributes = pa.concat_tables(rows.attributes for rows in batch)
            yield SelectedRows({role: whole[role] for role in whole.column_names}, attributes)

    def second_pass(self, selection: Selection, types: Types) -> Iterator[SelectedRows]:
        """Read a table in batches again."""
        yield from selection.read_batches(types, partial(self._progress, f"reading {selection.table.label}"))

    def texts_of(self, selection: Selection) -> TextsOf:
        """Return what reads an attribute once more."""

        def read(column: str) -> Iterator[pa.Array]:
            own = replace(selection, attributes=[column])
            for rows in own.read_batches({column: pa.string()}):
                yield rows.attributes[column].combine_chunks()

        return read

    def keep_edges(self, group: EdgeGroup, numbers: pa.Table) -> None:
        """Write the next edges of a group to a file."""
        if group.number not in self._outputs:
            sink = self._open_spools.enter_context(pa.OSFile(str(self._spools[group.number]), "wb"))
            self._outputs[group.number] = self._open_spools.enter_context(pa.ipc.new_stream(sink, numbers.schema))
        self._outputs[group.number].write_table(numbers, max_chunksize=_WRITTEN_ROWS)

    def kept_edges(self, group: EdgeGroup) -> Iterator[pa.Table]:
        """Read the edges of a group from their file, which goes then."""
        with pa.OSFile(str(self._spools[group.number])) as source, pa.ipc.open_stream(source) as batches:
            yield batches.schema.empty_table()
            for batch in batches:
                yield pa.Table.from_batches([batch])
        self._spools[group.number].unlink()

    # ---- Edges ----
    def _sort_edges(self, group: EdgeGroup) -> Iterator[_StoredEdges]:
        """Sort the edges of a group by relation, ends and rows; the source of an undirected one is its smaller end."""
        name, attributes = f"scratch.edges_{group.number}", group.attributes.kinds
        columns = [f"c{at}" for at in range(len(attributes))]
        for number, table in enumerate(self._edge_tables(group, columns)):
            verb = f"INSERT INTO {name}" if number else f"CREATE TABLE {name} AS"
            run_on(self._connection, table, f"{verb} SELECT * FROM given")
        filled = "".join(f", count({column})" for column in columns)
        counts = self._run(f"SELECT kind, count(*){filled} FROM {name} GROUP BY kind ORDER BY kind")
        if self.shared is None and not counts:
            counts = [(0, 0, *(0 for _ in columns))]
        relations = {kind: self.relation_of(group, kind) for kind, *_ in counts}
        undirected = [str(kind) for kind, each in relations.items() if each is not None and not each.directed]
        stage = f"sorting edges_{group.number}"
        self._progress(stage, 0, 1)
        self._run(f"""
            CREATE TABLE {name}_sorted AS
            SELECT * REPLACE (if(swapped, target, source) AS source, if(swapped, source, target) AS target)
            FROM (SELECT *, kind IN ({", ".join(undirected) or "NULL"}) AND source > target AS swapped FROM {name})
            ORDER BY kind, source, target, row
        """)
        self._run(f"DROP TABLE {name}")
        self._progress(stage, 1, 1)
        for kind, count, *values in counts:
            relation = relations[kind]
            if relation is not None:
                own = [at for at, each in enumerate(values) if each or self.shared is None]
                schema = pa.schema([list(attributes.items())[at] for at in own])
                query = f"(FROM {name}_sorted WHERE kind = {kind})"
                yield _StoredEdges(relation, query, count, schema, [columns[at] for at in own])

    def _edge_tables(self, group: EdgeGroup, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Yield the edges of a group as rows of their nodes, with their attributes as c0, c1, …"""
        done, most = 0, max(group.count, *(len(pool.ids) for pool in self.ends(group)))
        narrow = np.int32 if most < 2**31 else np.int64  # narrow integers sort in half the time
        for rows, attributes in self.edges(group):
            count = len(rows["source"])
            table = {
                "kind": rows.get("kind", np.zeros(count, dtype=narrow)),
                "source": rows["source"].astype(narrow),
                "target": rows["target"].astype(narrow),
                "row": np.arange(done, done + count, dtype=narrow),
                "weight": rows.get("weight", np.ones(count)),
            }
            plain = [column.cast(pa.string()) if column.type == TEXT else column for column in attributes.columns]
            yield pa.table(table | dict(zip(columns, plain, strict=True)))
            done += count

    def _merged(self, edges: _StoredEdges) -> Iterator[Triplets]:
        """Yield the edges of a relation, each once; raise if the weights of parallel edges add up to infinity."""
        for entries in merge(self._entries(edges), self.options.duplicates):
            check_sums(edges.relation, entries[2])
            yield entries

    def _entries(self, edges: _StoredEdges) -> Iterator[Triplets]:
        done = 0
        for entries in fetch_entries(self._connection, f"SELECT source, target, weight FROM {edges.query}"):
            yield entries
            done += len(entries[0])
            self._progress(f"writing {edges.relation.name}", done, edges.count)

    def _single_edges(self, edges: _StoredEdges) -> Iterator[pa.Table]:
        """Yield the single edges of a relation with their attributes, as rows of a store's table."""
        names = attribute_columns(len(edges.columns))
        columns = ", ".join(f"{column} AS {name}" for column, name in zip(edges.columns, names, strict=True))
        ends = "if(swapped, target, source)::BIGINT AS source, if(swapped, source, target)::BIGINT AS target"
        first = "QUALIFY row_number() OVER (PARTITION BY e.source, e.target ORDER BY row) = 1"
        rows = f"(SELECT * FROM {edges.query} e {first if self.options.duplicates == 'drop' else ''})"
        query = f"SELECT {ends}, weight, {columns} FROM {rows} WHERE weight > 0 ORDER BY row"
        done = 0
        for batch in fetch(self._connection, query):
            numbers = pa.array(np.arange(done, done + len(batch)))
            yield pa.Table.from_batches([batch]).add_column(0, "row", numbers)
            done += len(batch)
            self._progress(f"writing the attributes of {edges.relation.name}", done, edges.count)

    def _refuse_parallel(self, edges: _StoredEdges, ids: Mapping[str, pa.Array]) -> None:
        """Raise at the first edge that repeats another."""
        repeated = f"SELECT source, target, min(row) AS first FROM {edges.query} GROUP BY ALL HAVING count(*) > 1"
        later = f"FROM {edges.query} JOIN ({repeated}) USING (source, target) WHERE row > first"
        ((row, source, target),) = self._run(f"SELECT min(row), arg_min(source, row), arg_min(target, row) {later}")
        if row is not None:
            ((before,),) = self._run(f"SELECT count(*) FROM {edges.query} WHERE row < ?", row)
            relation = edges.relation
            first, second = ids[relation.source][source].as_py(), ids[relation.target][target].as_py()
            raise repeated_edge(relation, first, second, before + 1)

    def _count_edges(self, edges: Sequence[_StoredEdges], node_type: str, row: int) -> int:
        """Count the edges at a node."""
        ends = [(each, end) for each in edges for end in ENDS if getattr(each.relation, end) == node_type]
        return sum(self._run(f"SELECT count(*) FROM {each.query} WHERE {end} = ?", row)[0][0] for each, end in ends)

    # ---- Nodes ----
    def _write_nodes(self, pool: NodePool, types: Mapping[int, tuple[int, TypedNodes]]) -> None:
        with ExitStack() as stack:
            writers = {}
            for code, (number, each) in types.items():
                empty = node_table(each.ids[:0], None, _node_schema(pool).empty_table())
                writers[code] = stack.enter_context(self._writer.writing_nodes(number, empty.schema))
            done, first = dict.fromkeys(types, 0), 0
            for names, attributes in self.described(pool):
                rows = slice(first, first + len(attributes))
                first += len(attributes)
                codes = np.zeros(len(attributes), dtype=np.int16) if pool.types is None else pool.types[rows]
                for code, places in group_rows(codes):
                    each = types[code][1]
                    ids = each.ids[done[code] : done[code] + len(places)]
                    own = None if names is None else names.take(pa.array(places))
                    table = node_table(ids, own, take_rows(attributes, places), done[code])
                    writers[code].write_table(table, max_chunksize=_WRITTEN_ROWS)
                    done[code] += len(places)
                    self._progress(f"writing {each.node_type}", done[code], len(each.ids))


_WRITTEN_ROWS = 1 << 18


def _node_schema(pool: NodePool) -> pa.Schema:
    return pool.attributes[0].schema if pool.attributes else pa.schema([])


def _in_batches(read: Iterator[SelectedRows]) -> Iterator[list[SelectedRows]]:
    """Take small batches together."""
    batch: list[SelectedRows] = []
    rows = size = 0
    for each in read:
        batch.append(each)
        rows, size = rows + len(each), size + each.attributes.nbytes + sum(c.nbytes for c in each.columns.values())
        if rows >= BATCH_ROWS or size >= _BATCH_BYTES:
            yield batch
            batch, rows, size = [], 0, 0
    if batch:
        yield batch


# ---- Parallel edges ------------------------------------------------------------------------------
def merge(batches: Iterable[Triplets], duplicates: Duplicates) -> Iterator[Triplets]:
    """Yield every pair of ends once, with the sum of its weights (`count`) or else the first weight.

    `batches` are sorted by ends. Weights add up in the order of the stream. Edges of weight 0 are dropped.

    >>> ends, weights = np.array([3, 3]), np.array([0.5, 1.0])
    >>> [w.tolist() for _, _, w in merge([(ends, ends, weights), (ends, ends, weights)], "count")]
    [[], [], [3.0]]
    """
    last: Triplets = (np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))
    for batch in batches:
        sources, targets, weights = (np.concatenate(both) for both in zip(last, batch, strict=True))
        if not len(sources):
            continue
        new = np.ones(len(sources), dtype=np.bool_)
        new[1:] = (sources[1:] != sources[:-1]) | (targets[1:] != targets[:-1])
        summed = duplicates == "count"
        merged = np.bincount(np.cumsum(new) - 1, weights=weights).astype(float) if summed else weights[new]
        sources, targets = sources[new], targets[new]
        last = sources[-1:], targets[-1:], merged[-1:]  # its edges may continue in the next batch
        yield _positive(sources[:-1], targets[:-1], merged[:-1])
    yield _positive(*last)


def _positive(sources: Rows, targets: Rows, weights: Floats) -> Triplets:
    positive = weights > 0
    return sources[positive], targets[positive], weights[positive]

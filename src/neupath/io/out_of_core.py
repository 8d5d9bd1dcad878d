"""Import a graph into a store, its tables in batches, so that it may be larger than memory.

`StoreAssembler` takes the path of `io.assemble`; where a graph in memory numbers ids and merges parallel edges there,
a database does it here, on disk. The store is the same.
"""

# ruff: noqa: S608  the names of tables and columns in statements are made here, never given by users

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neupath._runtime.progress import Progress, no_progress
from neupath.errors import GraphError, QueryError
from neupath.graph.edge_attributes import TEXT
from neupath.graph.hin import Duplicates, Floats, check_counts, check_sums, repeated_edge
from neupath.graph.metapath import Relation, Schema
from neupath.graph.nodes import Id, Rows
from neupath.io.assemble import Assembler, EdgeGroup, NodePool
from neupath.io.ids import INTEGERS, IdFacts, empty_cell, empty_end, empty_looking, similar_id, to_weights, unknown_end
from neupath.io.load import load, show_notes
from neupath.io.plan import Plan, SelectedRows, Selection
from neupath.io.recognition import find_tables
from neupath.io.tables import Place
from neupath.io.values import TextsOf
from neupath.store import BulkWriter, StoreLayout, Triplets, fetch, fetch_entries, new_store, node_table, write_store
from neupath.store.bulk_writer import BATCH_ROWS
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

    Tables are streamed through a database that uses the disk beyond its memory limit. Other sources, and the few
    tables that batches would change, are read whole.

    Parameters
    ----------
    source, config, duplicates, data, schema, tables
        The graph, as `load` takes it.
    to
        The folder of the store; it must not exist yet.
    memory_limit
        Memory of the database, such as 2GiB; by default half of the machine's. The process needs about half a GiB more.
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
    """Whether the tables of a plan give the same store in batches as they do whole.

    They do not if attributes of Parquet have dictionaries, which differ from batch to batch, or if types and relations
    are numbers, or if types have to be worked out from ids or cells.
    """
    if plan.options.fold_ids or any(_has_dictionary(node.selection) for node in plan.nodes):
        return False
    if plan.shared is None:
        return True
    described = any({"source_type", "source_name"} & set(edge.selection.columns) for edge in plan.edges)
    if plan.shared.prefixed or plan.shared.labels or described or len(plan.nodes) > 1:
        return False
    words = [(edge.selection, "relation") for edge in plan.edges] + [(node.selection, "type") for node in plan.nodes]
    return all(
        selection.all_text or pa.types.is_string(selection.declared_types[selection.columns[word]])
        for selection, word in words
        if word in selection.columns
    )


def _has_dictionary(selection: Selection) -> bool:
    types = selection.declared_types
    return any("dictionary" in str(types[name]) for name in selection.attributes if name in types)


# ---- What is in the database ---------------------------------------------------------------------
@dataclass
class _StoredNodes:
    """The nodes of a pool in the database: a query for their ids, types as codes, and keys in their types."""

    table: str
    """Their ids, and perhaps types, by row."""
    id_type: pa.DataType
    keyed: str = ""
    type_names: Sequence[str] = ()


@dataclass(frozen=True)
class _StoredType:
    """The nodes of one type: a query for their ids and keys."""

    node_type: str
    pool: NodePool
    code: int
    query: str
    count: int
    id_type: pa.DataType
    """The type of ids in the store: texts that all read as integers are integers."""


@dataclass
class _StoredEdges:
    """The edges of a group in the database: by ids first, then by keys in the table `joined`."""

    table: str
    kinds: Mapping[str, pa.DataType]
    rows: int
    weight_error: GraphError | None
    """The error of the first bad weight, which counts after those of ids."""
    joined: str = ""


@dataclass(frozen=True)
class _KeyedEdges:
    """The edges of a relation: a query for their keys, rows and weights, sorted by keys, then rows."""

    relation: Relation
    query: str
    rows: int
    attributes: pa.Schema = field(default_factory=lambda: pa.schema([]))
    """The attributes of the edges, if they have any."""
    described: str = ""
    """A query for the edges with their attributes: columns c0, c1, …"""
    columns: Sequence[str] = ()
    """Those of its columns that hold the attributes."""


class StoreAssembler(Assembler):
    """Streams tables through the scratch database of a store that is being written, into the store."""

    def __init__(self, plan: Plan, writer: BulkWriter, progress: Progress) -> None:
        super().__init__(plan)
        self._writer, self._connection, self._progress = writer, writer.connection, progress
        self._nodes: dict[str, _StoredNodes] = {}
        self._edges: list[_StoredEdges] = []

    def write(self) -> Sequence[str]:
        """Write the store; return the notes on its tables."""
        self.read_all()
        types = [each for pool in self.pools.values() for each in self._types_of(pool)]
        edges = [each for group in self.groups for each in self._relations_of(group)]
        check_counts(len(types), len(edges))
        options, writer = self.options, self._writer
        schema = Schema(tuple(t.node_type for t in types), tuple(e.relation for e in edges), options.abbreviations)
        self._write_nodes(types)
        type_named = {each.node_type: each for each in types}
        for number, keyed in enumerate(edges):
            if options.duplicates == "error":
                self._refuse_parallel(keyed, type_named)
            writer.write_edges(number, self._merged(keyed))
        for each in types:
            self.note_ids(each.node_type, self._look_at_ids(each, edges))
        described = {number: keyed.attributes for number, keyed in enumerate(edges) if len(keyed.attributes)}
        for number, attributes in described.items():
            writer.write_edge_rows(number, attributes, self._single_edges(edges[number]))
        named = tuple(_has_names(each.pool) for each in types)
        known = tuple(_node_schema(each.pool) for each in types)
        notes = tuple(dict.fromkeys(self.notes))
        writer.finish(StoreLayout(schema, named, known, notes, edge_attributes=described))
        return notes

    def _run(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        return run(self._connection, statement, values)

    # ---- Tables ----
    def first_pass(self, selection: Selection) -> Iterator[SelectedRows]:
        """Read a table in batches; text columns come as bytes, since their types are known after the last value."""
        types = dict.fromkeys(selection.inferred_attributes, pa.binary())
        yield from selection.read_batches(types, self._progress, f"reading {selection.table.label}")

    def _texts_of(self, selection: Selection) -> TextsOf:
        def read(column: str) -> Iterator[pa.Array]:
            own = Selection(selection.table, dict(list(selection.columns.items())[:1]), [column])
            for rows in own.read_batches({column: pa.string()}):
                yield rows.attributes[column].combine_chunks()

        return read

    def _put(self, name: str, tables: Iterable[pa.Table]) -> tuple[dict[str, pa.DataType], int]:
        """Write tables one after the other into one of scratch; return its columns' types and its number of rows."""
        schema, rows = None, 0
        for table in _in_batches(tables):
            verb = f"CREATE TABLE scratch.{name} AS" if schema is None else f"INSERT INTO scratch.{name}"
            run_on(self._connection, table, f"{verb} SELECT * FROM given")
            schema, rows = table.schema, rows + len(table)
        assert schema is not None, "there is at least one table"
        return dict(zip(schema.names, schema.types, strict=True)), rows

    def put_edges(self, group: EdgeGroup, batches: Iterator[pa.Table]) -> None:
        errors: list[GraphError] = []
        name = f"edges_{group.number}"
        kinds, rows = self._put(name, (_with_weights(table, group, errors) for table in batches))
        self._edges.append(_StoredEdges(f"scratch.{name}", kinds, rows, errors[0] if errors else None))

    def put_nodes(self, pool: NodePool, batches: Iterator[pa.Table]) -> None:
        name = f"ids_{len(self._nodes)}"
        kept = [column for column in ("id", "type") if column == "id" or self.plan.shared is not None]
        kinds, _ = self._put(name, (table.select(kept) for table in batches))
        self._nodes[pool.name] = _StoredNodes(f"scratch.{name}", kinds["id"])
        for attributes in pool.attributes:
            self.notes += attributes.notes(self._texts_of(attributes.selection))

    def put_ends(self, pool: NodePool) -> None:
        columns = [
            (self._edges[group.number], end)
            for group in self.groups
            for end, name in zip(("source", "target"), self.ends(group), strict=True)
            if name == pool.name
        ]
        kinds = {edges.kinds[end] for edges, end in columns}
        kind = kinds.pop() if len(kinds) == 1 else pa.string()
        parts, before = [], 0
        for edges, end in columns:
            id_ = _as_text(end, edges.kinds[end]) if kind == pa.string() else end
            not_empty = f"WHERE NOT {_is_empty(end, edges.kinds[end])}"
            parts.append(f"SELECT {id_} AS id, rowid + {before} AS place FROM {edges.table} {not_empty}")
            before += edges.rows
        name = f"scratch.ids_{len(self._nodes)}"
        first = f"SELECT id, min(place) AS place FROM ({' UNION ALL '.join(parts)}) GROUP BY id"
        self._run(f"CREATE TABLE {name} AS SELECT id FROM ({first}) ORDER BY place")
        self._nodes[pool.name] = _StoredNodes(name, kind)

    # ---- Ids ----
    def first_empty_id(self, pool: NodePool) -> int | None:
        nodes = self._nodes[pool.name]
        return self._first_empty(nodes.table, "id", nodes.id_type)

    def _first_empty(self, table: str, column: str, kind: pa.DataType) -> int | None:
        row: int | None = self._run(f"SELECT min(rowid) FROM {table} WHERE {_is_empty(column, kind)}")[0][0]
        return row

    def first_repeated_id(self, pool: NodePool) -> tuple[int, object] | None:
        table = self._nodes[pool.name].table
        repeated = f"SELECT id, min(rowid) AS first FROM {table} GROUP BY id HAVING count(*) > 1"
        query = f"SELECT min(n.rowid), arg_min(id, n.rowid) FROM {table} n JOIN ({repeated}) USING (id)"
        ((row, value),) = self._run(f"{query} WHERE n.rowid > first")
        return None if row is None else (row, value)

    def find_ends(self, group: EdgeGroup) -> None:
        """Write the edges by the keys of their ends into a new, sorted table.

        The source of an undirected edge is the smaller key.
        """
        edges = self._edges[group.number]
        pools = [self.pools[name] for name in self.ends(group)]
        for pool in pools:
            self._number_nodes(pool)
        edges.joined = f"scratch.joined_{group.number}"
        stage = f"sorting {edges.table.removeprefix('scratch.')}"
        self._progress(stage, 0, 1)
        self._join(group, edges, pools)
        self._progress(stage, 1, 1)
        for column, pool in zip(("source", "target"), pools, strict=True):
            empty = self._first_empty(edges.table, column, edges.kinds[column])
            if empty is not None:
                raise empty_end(group.place(empty), pool.name)
            ((row, count),) = self._run(f"SELECT min(row), count(*) FROM {edges.joined} WHERE {column} IS NULL")
            if count:
                ((value,),) = self._run(f"SELECT {column} FROM {edges.table} WHERE rowid = ?", row)
                similar = self._similar_id(pool, value)
                raise unknown_end(group.place(row), pool.name, value, count, self.table_of_nodes, similar)
        if edges.weight_error is not None:
            raise edges.weight_error
        self._refuse_empty_words(group, edges)
        self._run(f"DROP TABLE {edges.table}")
        if group.attributes.names:
            self._describe(group, edges)

    def _number_nodes(self, pool: NodePool) -> None:
        """Give each node the code of its type and a key among the nodes of that type."""
        nodes = self._nodes[pool.name]
        if nodes.keyed:
            return
        if self.plan.shared is None or not pool.plans:
            nodes.type_names = [pool.node_type]
            nodes.keyed = f"(SELECT id, 0 AS type, rowid AS key FROM {nodes.table})"
            if not pool.plans and self.plan.shared is not None and not self._run(f"FROM {nodes.table} LIMIT 1"):
                nodes.type_names = []
            return
        names = self._run(f"SELECT type FROM {nodes.table} GROUP BY type ORDER BY min(rowid)")
        nodes.type_names = [name for (name,) in names]
        check_counts(len(nodes.type_names), 0)
        nodes.keyed = "scratch.keys"
        kind = "VARCHAR" if pa.types.is_string(nodes.id_type) else "BIGINT"
        self._run(f"CREATE TABLE scratch.keys (id {kind}, type INTEGER, key BIGINT)")
        for code, name in enumerate(nodes.type_names):
            numbered = f"SELECT id, {code}, row_number() OVER () - 1 FROM {nodes.table}"
            self._run(f"INSERT INTO scratch.keys {numbered} WHERE type IS NOT DISTINCT FROM ?", name)

    def _join(self, group: EdgeGroup, edges: _StoredEdges, pools: Sequence[NodePool]) -> None:
        relation, ends = group.plans[0].relation, [self._nodes[pool.name] for pool in pools]
        kind, undirected, more = "0", str(not relation.directed).lower(), ""
        if self.plan.shared is not None:
            names, types = self._relation_names(edges), len(ends[0].type_names)
            check_counts(types, len(names))
            self._put("relations", [pa.table({"name": pa.array(names, pa.string()), "code": np.arange(len(names))})])
            codes = [str(names.index(name)) for name in self.options.undirected if name in names]
            kind = f"(r.code * {types} + a.type) * {types} + b.type"
            undirected = f"a.type = b.type AND r.code IN ({', '.join(codes) or 'NULL'})"
            more = "LEFT JOIN scratch.relations r ON e.relation = r.name"
        swapped = f"({undirected}) AND a.key > b.key"
        joins = []
        for letter, column, end in zip("ab", ("source", "target"), ends, strict=True):
            own, other = f"e.{column}", f"{letter}.id"
            if edges.kinds[column] != end.id_type:
                own, other = _as_text(own, edges.kinds[column]), _as_text(other, end.id_type)
            joins.append(f"LEFT JOIN {end.keyed} {letter} ON {own} = {other}")
        keys = zip(("a.key", "b.key"), ends, strict=True)
        first, second = (f"CAST({key} AS {self._narrow(end.table)})" for key, end in keys)
        self._run(f"""
            CREATE TABLE {edges.joined} AS SELECT
                {kind} AS kind,
                CASE WHEN {swapped} THEN {second} ELSE {first} END AS source,
                CASE WHEN {swapped} THEN {first} ELSE {second} END AS target,
                CAST(e.rowid AS {self._narrow(edges.table)}) AS row, e.weight AS weight, {swapped} AS swapped
            FROM {edges.table} e {" ".join(joins)} {more} ORDER BY 1, 2, 3, 4
        """)

    def _narrow(self, table: str) -> str:
        """Return the narrowest integer type for the rows of a table; narrow integers sort in half the time."""
        ((count,),) = self._run(f"SELECT count(*) FROM {table}")
        return "INTEGER" if count < 2**31 else "BIGINT"

    def _relation_names(self, edges: _StoredEdges) -> list[str]:
        """Return the names of relations in order of appearance."""
        names = self._run(f"SELECT relation FROM {edges.table} GROUP BY relation ORDER BY min(rowid)")
        return [name for (name,) in names]

    def _refuse_empty_words(self, group: EdgeGroup, edges: _StoredEdges) -> None:
        """Raise at the first empty type or relation, or at an option that names no relation."""
        if self.plan.shared is None:
            return
        pool = self.pools["node"]
        row = self._first_empty(self._nodes["node"].table, "type", pa.string()) if pool.plans else None
        if row is not None:
            raise empty_cell(pool.place(row), "type")
        row = self._first_empty(edges.table, "relation", pa.string())
        if row is not None:
            raise empty_cell(group.place(row), "relation")
        self.options.check_names(self._relation_names(edges))

    def _similar_id(self, pool: NodePool, value: object) -> str | None:
        """Return the first id of a pool that is a value but for case or spaces."""
        ids = fetch(self._connection, f"SELECT CAST(id AS VARCHAR) AS id FROM {self._nodes[pool.name].table}")
        return next(filter(None, (similar_id(value, batch.column(0)) for batch in ids)), None)

    # ---- Attributes of edges ----
    def _describe(self, group: EdgeGroup, edges: _StoredEdges) -> None:
        """Write the edges by keys with their attributes c0, c1, … into a new table, in the order of their tables."""
        attributes = group.attributes
        self.note(attributes.decide(lambda number: self._texts_of(attributes.selections[number])))
        if not attributes.kinds:
            return
        values = f"values_{group.number}"
        self._put(values, self._attribute_tables(group))
        columns = [
            f"{'j.weight' if attributes.is_weight_of_any(name) else f'a.c{at}'} AS c{at}"
            for at, name in enumerate(attributes.kinds)
        ]
        first = "CASE WHEN j.swapped THEN j.target ELSE j.source END"
        second = "CASE WHEN j.swapped THEN j.source ELSE j.target END"
        self._run(f"""
            CREATE TABLE scratch.described_{group.number} AS
            SELECT j.kind, j.row, {first} AS source, {second} AS target, j.weight,
                row_number() OVER (PARTITION BY j.kind, j.source, j.target ORDER BY j.row) = 1 AS is_first,
                {", ".join(columns)}
            FROM {edges.joined} j JOIN scratch.{values} a ON j.row = a.row ORDER BY j.kind, j.row
        """)
        self._run(f"DROP TABLE scratch.{values}")

    def _attribute_tables(self, group: EdgeGroup) -> Iterator[pa.Table]:
        """Read the attributes of a group's tables again; yield them as c0, c1, … with the rows of their edges."""
        attributes, done = group.attributes, 0
        for number, plan in enumerate(group.plans):
            types = attributes.read_types(number)
            for rows in plan.selection.read_batches(types, self._progress, f"reading {plan.selection.table.label}"):
                table = attributes.convert(number, rows.attributes, None, _after(group.place, done))
                plain = [column.cast(pa.string()) if column.type == TEXT else column for column in table.columns]
                numbers = pa.array(np.arange(done, done + len(rows)))
                yield pa.table([numbers, *plain], names=["row", *(f"c{at}" for at in range(len(plain)))])
                done += len(rows)

    # ---- Types and relations ----
    def _types_of(self, pool: NodePool) -> Iterator[_StoredType]:
        """Describe the types of a pool; ids are integers if all read as integers, unless their table declares them."""
        self._number_nodes(pool)
        nodes = self._nodes[pool.name]
        is_declared = self.plan.shared is None and pool.is_typed
        inferred = pa.types.is_string(nodes.id_type) and not is_declared
        whole = f"count(*) FILTER (WHERE regexp_full_match(id, '{INTEGERS}'))" if inferred else "0"
        for code, name in enumerate(nodes.type_names):
            query = f"(SELECT id, key FROM {nodes.keyed} WHERE type = {code})"
            ((count, integers),) = self._run(f"SELECT count(*), {whole} FROM {query}")
            yield _StoredType(name, pool, code, query, count, pa.int64() if 0 < count == integers else nodes.id_type)

    def _relations_of(self, group: EdgeGroup) -> Iterator[_KeyedEdges]:
        """Yield the edges of each relation between each two types, in their order, with the attributes they have."""
        edges, attributes = self._edges[group.number], pa.schema(list(group.attributes.kinds.items()))
        columns, described = [f"c{at}" for at in range(len(attributes))], f"scratch.described_{group.number}"
        if self.plan.shared is None:
            yield _KeyedEdges(group.plans[0].relation, edges.joined, edges.rows, attributes, described, columns)
            return
        types = self._nodes["node"].type_names
        names = [name for (name,) in self._run("SELECT name FROM scratch.relations ORDER BY code")]
        filled: dict[int, list[int]] = {}
        if columns:
            counts = ", ".join(f"count({column})" for column in columns)
            for kind, *own in self._run(f"SELECT kind, {counts} FROM {described} GROUP BY kind"):
                filled[kind] = [at for at, count in enumerate(own) if count]
        for kind, rows in self._run(f"SELECT kind, count(*) FROM {edges.joined} GROUP BY kind ORDER BY kind"):
            code, source, target = map(int, np.unravel_index(kind, (len(names), len(types), len(types))))
            relation = self.options.relation(types[source], names[code], types[target])
            if relation is not None:
                own, query = filled.get(kind, []), f"(SELECT * FROM {{}} WHERE kind = {kind})"
                yield _KeyedEdges(
                    relation, query.format(edges.joined), rows, pa.schema([attributes.field(at) for at in own]),
                    query.format(described), [columns[at] for at in own],
                )  # fmt: skip

    # ---- Writing ----
    def _write_nodes(self, types: Sequence[_StoredType]) -> None:
        for pool in self.pools.values():
            with ExitStack() as stack:
                own = {each.code: (number, each) for number, each in enumerate(types) if each.pool is pool}
                writers = {}
                for code, (number, each) in own.items():
                    empty = node_table(pa.array([], each.id_type), None, _node_schema(pool).empty_table())
                    writers[code] = stack.enter_context(self._writer.writing_nodes(number, empty.schema))
                done = dict.fromkeys(own, 0)
                for code, ids, names, attributes in self._nodes_again(pool, own):
                    each = own[code][1]
                    writers[code].write_table(node_table(ids.cast(each.id_type), names, attributes, done[code]))
                    done[code] += len(ids)
                    self._progress(f"writing {each.node_type}", done[code], each.count)

    def _nodes_again(
        self, pool: NodePool, types: Mapping[int, tuple[int, _StoredType]]
    ) -> Iterator[tuple[int, pa.Array, pa.Array | None, pa.Table]]:
        """Read the nodes of a pool again; yield the code of a type with the ids, names and attributes of some of it."""
        if not pool.plans:
            for code, (_, each) in types.items():
                for batch in fetch(self._connection, f"SELECT id FROM {each.query} ORDER BY key"):
                    yield code, batch.column(0), None, pa.table({})
            return
        (plan,), (attributes,) = pool.plans, pool.attributes
        codes = pa.array([each.node_type for _, each in types.values()])
        first = 0
        for rows in plan.selection.read_batches(attributes.read_types):
            for code in types:
                places = np.arange(len(rows))
                if "type" in rows.columns:
                    is_own = pc.equal(rows.columns["type"], codes[code])
                    places = np.flatnonzero(pc.fill_null(is_own, False).to_numpy(zero_copy_only=False))
                if len(places):
                    yield code, *self._converted(pool, rows, places, first)
            first += len(rows)

    def _converted(
        self, pool: NodePool, rows: SelectedRows, places: Rows, first: int
    ) -> tuple[pa.Array, pa.Array | None, pa.Table]:
        """Return the ids, names and attributes of some rows of a batch, which begins at the row `first`."""
        own = pa.array(places)
        ids, names = (None if role not in rows.columns else rows.columns[role].take(own) for role in ("id", "name"))
        if not rows.attributes.num_columns:
            return ids, names, rows.attributes
        place: Place = lambda row: pool.place(first + int(places[row]))  # noqa: E731
        return ids, names, pool.attributes[0].convert(rows.attributes.take(own), place)

    def _single_edges(self, edges: _KeyedEdges) -> Iterator[pa.Table]:
        """Yield the single edges of a relation with their attributes, as rows of a store's table."""
        names = attribute_columns(len(edges.columns))
        columns = ", ".join(f"{column} AS {name}" for column, name in zip(edges.columns, names, strict=True))
        kept = "weight > 0 AND is_first" if self.options.duplicates == "drop" else "weight > 0"
        query = f"SELECT source, target, weight, {columns} FROM {edges.described} WHERE {kept} ORDER BY row"
        done = 0
        for batch in fetch(self._connection, query):
            numbers = pa.array(np.arange(done, done + len(batch)))
            yield pa.Table.from_batches([batch]).add_column(0, "row", numbers)
            done += len(batch)
            self._progress(f"writing the attributes of {edges.relation.name}", done, edges.rows)

    def _merged(self, edges: _KeyedEdges) -> Iterator[Triplets]:
        """Yield the edges of a relation, each once; raise if the weights of parallel edges add up to infinity."""
        for entries in merge(self._entries(edges), self.options.duplicates):
            check_sums(edges.relation, entries[2])
            yield entries

    def _entries(self, edges: _KeyedEdges) -> Iterator[Triplets]:
        done = 0
        for entries in fetch_entries(self._connection, f"SELECT source, target, weight FROM {edges.query}"):
            yield entries
            done += len(entries[0])
            self._progress(f"writing {edges.relation.name}", done, edges.rows)

    def _refuse_parallel(self, edges: _KeyedEdges, types: Mapping[str, _StoredType]) -> None:
        """Raise at the first edge that repeats another."""
        repeated = f"SELECT source, target, min(row) AS first FROM {edges.query} GROUP BY ALL HAVING count(*) > 1"
        later = f"FROM {edges.query} JOIN ({repeated}) USING (source, target) WHERE row > first"
        ((row, source, target),) = self._run(f"SELECT min(row), arg_min(source, row), arg_min(target, row) {later}")
        if row is not None:
            ((before,),) = self._run(f"SELECT count(*) FROM {edges.query} WHERE row < ?", row)
            first = self._id_of(types[edges.relation.source], source)
            second = self._id_of(types[edges.relation.target], target)
            raise repeated_edge(edges.relation, first, second, before + 1)

    def _id_of(self, nodes: _StoredType, key: int) -> Id:
        ((value,),) = self._run(f"SELECT id FROM {nodes.query} WHERE key = ?", key)
        return int(value) if pa.types.is_integer(nodes.id_type) else value

    # ---- Notes on ids ----
    def _look_at_ids(self, nodes: _StoredType, edges: Sequence[_KeyedEdges]) -> IdFacts:
        if not pa.types.is_string(nodes.id_type):
            return IdFacts()
        found: dict[str, int] = {}
        counts: dict[str, int] = {}
        if self.options.missing_ids is None:
            for batch in fetch(self._connection, f"SELECT id, key FROM {nodes.query} ORDER BY key"):
                rows = pa.array(empty_looking(batch.column(0)))
                found |= dict(zip(*(batch.column(at).take(rows).to_pylist() for at in (0, 1)), strict=True))
        for name, key in found.items():
            ends = [(each, end) for each in edges for end in ("source", "target") if _is_end(nodes, each, end)]
            queries = [f"SELECT count(*) FROM {each.query} WHERE {end} = ?" for each, end in ends]
            counts[name] = sum(self._run(query, key)[0][0] for query in queries)
        if self.options.fold_ids is not None:
            return IdFacts(counts)
        return IdFacts(counts, self._twins(nodes), self._fractions(nodes))

    def _twins(self, nodes: _StoredType) -> tuple[int, list[str]]:
        """Return how many ids differ from others only by case or spaces, and the first two that do."""
        folded = f"SELECT {_FOLDED} AS folded, count(*) AS ids, min(key) AS first FROM {nodes.query} GROUP BY ALL"
        ((count, first),) = self._run(f"SELECT sum(ids - 1), min(first) FROM ({folded}) WHERE ids > 1")
        if not count:
            return 0, []
        same = f"SELECT {_FOLDED} FROM {nodes.query} WHERE key = ?"
        pair = self._run(f"SELECT id FROM {nodes.query} WHERE {_FOLDED} = ({same}) ORDER BY key LIMIT 2", first)
        return int(count), [value for (value,) in pair]

    def _fractions(self, nodes: _StoredType) -> tuple[int, str]:
        """Return how many ids are others with .0 behind, and the first of them."""
        found = self._run(
            f"SELECT id FROM {nodes.query} WHERE regexp_full_match(id, '[0-9]+\\.0') "
            f"AND left(id, length(id) - 2) IN (SELECT id FROM {nodes.query}) ORDER BY key"
        )
        return len(found), str(found[0][0]) if found else ""


_FOLDED = r"trim(regexp_replace(lower(id), '[\s\x{a0}\x{2000}-\x{200b}\x{202f}\x{3000}\x{feff}]+', ' ', 'g'))"


def _is_end(nodes: _StoredType, edges: _KeyedEdges, end: str) -> bool:
    return bool(getattr(edges.relation, end) == nodes.node_type)


def _has_names(pool: NodePool) -> bool:
    return any("name" in plan.selection.columns for plan in pool.plans)


def _node_schema(pool: NodePool) -> pa.Schema:
    return pool.attributes[0].schema if pool.attributes else pa.schema([])


def _in_batches(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Combine small tables into batches, which the database inserts faster."""
    batch: list[pa.Table] = []
    for table in tables:
        batch.append(table)
        if sum(map(len, batch)) >= BATCH_ROWS:
            yield pa.concat_tables(batch)
            batch = []
    if batch:
        yield pa.concat_tables(batch)


def _with_weights(edges: pa.Table, group: EdgeGroup, errors: list[GraphError]) -> pa.Table:
    """Return edges with their weights as numbers; keep the error of the first that is bad."""
    before = sum(group.lengths) - len(edges)
    weights: Floats | None = np.ones(len(edges))
    if group.is_weighted and not errors:
        texts = (
            edges["weight"].combine_chunks() if "weight" in edges.column_names else pa.nulls(len(edges), pa.string())
        )
        try:
            weights = to_weights(texts, lambda row: group.place(before + row))
        except GraphError as error:  # raised after the ends of all edges are checked, as in memory
            errors.append(error)
    others = [column for column in edges.column_names if column != "weight"]
    return edges.select(others).append_column("weight", pa.array(weights))


def _after(place: Place, first: int) -> Place:
    """Return the places of rows that are counted from the row `first` on."""
    return lambda row: place(first + row)


def _as_text(column: str, kind: pa.DataType) -> str:
    return column if pa.types.is_string(kind) else f"CAST({column} AS VARCHAR)"


def _is_empty(column: str, kind: pa.DataType) -> str:
    return f"({column} IS NULL OR {column} = '')" if pa.types.is_string(kind) else f"({column} IS NULL)"


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

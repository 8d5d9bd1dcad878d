"""Edges of all relations in one table, and nodes of all types in another or in the edges alone, as a stream."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neupath.graph.hin import repeated_edge
from neupath.graph.nodes import Id
from neupath.graph.schema import Relation
from neupath.io.assembly import INTEGERS, refuse_unknown_names
from neupath.io.out_of_core.staging import StagedEdges, StagedNodes, Staging, as_text
from neupath.io.row_errors import empty_end, empty_word, lost_end, table_of
from neupath.io.sources import EdgeSource, FilePart, RelationTables, Selection, TripleTables
from neupath.store import BulkWriter, fetch, node_table

# ---- Edges by ids become edges by keys, in the database


# ruff: noqa: S608  the names of tables and columns in statements are made here, never given


@dataclass(frozen=True)
class StagedType:
    """The nodes of a type: a query for their ids and keys, whether ids are integers, their names and attributes."""

    node_type: str
    query: str
    kind: pa.DataType
    count: int
    integers: bool
    named: bool
    attributes: pa.Schema


@dataclass(frozen=True)
class Ends:
    """The nodes that one end of an edge may be: a query for them, the type of ids, their number, and their name."""

    query: str
    kind: pa.DataType
    count: int
    node_type: str
    where: str


@dataclass(frozen=True)
class EdgeOptions:
    """What else a join does: number the kinds of edges, and say which have no direction."""

    kind: str = "0"
    undirected: str = "false"
    join: str = ""


@dataclass(frozen=True)
class KeyedEdges:
    """The edges of a relation: a query for their keys, rows and weights, sorted by keys and then rows."""

    relation: Relation
    query: str
    rows: int


def join_ids(staging: Staging, name: str, edges: StagedEdges, ends: tuple[Ends, Ends], terms: EdgeOptions) -> None:
    """Write edges by the keys of their ends, sorted, into a new table; refuse the first that is wrong.

    An edge without a direction has the smaller key as its source.
    """
    swapped = f"({terms.undirected}) AND a.key > b.key"
    first, second = (f"CAST({key} AS {_narrow(end.count)})" for key, end in zip(("a.key", "b.key"), ends, strict=True))
    source, target = (
        f"LEFT JOIN {end.query} {letter} ON {_same(f'e.{column}', edges.kinds[column], f'{letter}.id', end.kind)}"
        for letter, column, end in zip("ab", ("source", "target"), ends, strict=True)
    )
    title = f"sorting {edges.name.removeprefix('room.')}"
    staging.progress(title, 0, 1)
    staging.run(f"""
        CREATE TABLE {name} AS SELECT
            {terms.kind} AS kind,
            CASE WHEN {swapped} THEN {second} ELSE {first} END AS source,
            CASE WHEN {swapped} THEN {first} ELSE {second} END AS target,
            CAST(e.rowid AS {_narrow(edges.rows)}) AS row, e.weight AS weight
        FROM {edges.name} e {source} {target} {terms.join} ORDER BY 1, 2, 3, 4
    """)
    staging.progress(title, 1, 1)
    for column, end in zip(("source", "target"), ends, strict=True):
        _refuse_lost(staging, name, edges, column, end)
    if edges.fault is not None:
        raise edges.fault
    staging.run(f"DROP TABLE {edges.name}")


def _narrow(count: int) -> str:
    """Return the integers that can count something; narrow ones are sorted in half the time."""
    return "INTEGER" if count < 2**31 else "BIGINT"


def _same(first: str, first_kind: pa.DataType, second: str, second_kind: pa.DataType) -> str:
    if first_kind == second_kind:
        return f"{first} = {second}"
    return f"{as_text(first, first_kind)} = {as_text(second, second_kind)}"


def _refuse_lost(staging: Staging, name: str, edges: StagedEdges, column: str, end: Ends) -> None:
    """Refuse the first edge that names no end, or else the first whose end is not there."""
    empty = staging.first_empty(edges, column)
    if empty is not None:
        raise empty_end(edges.place(empty), end.node_type)
    ((row, count),) = staging.run(f"SELECT min(row), count(*) FROM {name} WHERE {column} IS NULL")
    if count:
        ((value,),) = staging.run(f"SELECT {column} FROM {edges.name} WHERE rowid = ?", row)
        raise lost_end(edges.place(row), end.node_type, value, end.where, count)


def refuse_parallel(staging: Staging, joined: KeyedEdges, types: Mapping[str, StagedType]) -> None:
    """Refuse the first edge whose ends have been joined before."""
    repeated = f"SELECT source, target, min(row) AS first FROM {joined.query} GROUP BY ALL HAVING count(*) > 1"
    later = f"FROM {joined.query} JOIN ({repeated}) USING (source, target) WHERE row > first"
    ((row, source, target),) = staging.run(f"SELECT min(row), arg_min(source, row), arg_min(target, row) {later}")
    if row is not None:
        ((before,),) = staging.run(f"SELECT count(*) FROM {joined.query} WHERE row < ?", row)
        ends = (types[joined.relation.source], source), (types[joined.relation.target], target)
        first, second = (_id(staging, end, key) for end, key in ends)
        raise repeated_edge(joined.relation, first, second, before + 1)


def _id(staging: Staging, of: StagedType, key: int) -> Id:
    ((found,),) = staging.run(f"SELECT id FROM {of.query} WHERE key = ?", key)
    return int(found) if of.integers else found


# ---- Nodes of a stream


def staged_type(
    staging: Staging, node_type: str, query: str, staged: StagedNodes, *, typed: bool, named: bool
) -> StagedType:
    """Describe the nodes of a type; ids that all read as integers are integers, unless their table is typed."""
    kind = staged.kinds["id"]
    guessed = pa.types.is_string(kind) and not typed
    whole = f"count(*) FILTER (WHERE regexp_full_match(id, '{INTEGERS}'))" if guessed else "0"
    ((count, integers),) = staging.run(f"SELECT count(*), {whole} FROM {query}")
    return StagedType(node_type, query, kind, count, 0 < count == integers, named, staged.attributes)


def write_named(filling: BulkWriter, number: int, node_type: StagedType) -> None:
    """Write the nodes of a type of which only ids are known."""
    with filling.writing_nodes(number, _schema(node_type)) as out:
        first = 0
        for batch in fetch(filling.connection, f"SELECT id FROM {node_type.query} ORDER BY key"):
            ids = _ids(batch.column(0), node_type)
            out.write_table(node_table(ids, None, pa.table({}), first))
            first += len(ids)


def write_selected(
    filling: BulkWriter, staging: Staging, selection: Selection, types: Mapping[int, StagedType]
) -> None:
    """Write the nodes of a file under the number of their type: the one that their row says, or the only one."""
    attributes = next(iter(types.values())).attributes
    kinds = {name: attributes.field(name).type for name in selection.guessed}
    firsts = dict.fromkeys(types, 0)
    with ExitStack() as stack:
        out = {n: stack.enter_context(filling.writing_nodes(n, _schema(types[n]))) for n in types}
        for part in staging.read("writing", selection, kinds):
            for number, rows in _rows_by_type(part, types):
                names = part.columns.get("name")
                ids = _ids(part.columns["id"].take(rows), types[number])
                table = node_table(
                    ids, None if names is None else names.take(rows), part.attributes.take(rows), firsts[number]
                )
                out[number].write_table(table)
                firsts[number] += len(ids)


def _rows_by_type(part: FilePart, types: Mapping[int, StagedType]) -> Iterator[tuple[int, pa.Array]]:
    """Yield the number of each type that stands in a part, with its rows."""
    if "type" not in part.columns:
        yield next(iter(types)), pa.array(np.arange(len(part)))
        return
    for number, node_type in types.items():
        rows = np.flatnonzero(pc.equal(part.columns["type"], node_type.node_type).to_numpy(zero_copy_only=False))
        if len(rows):
            yield number, pa.array(rows)


def _ids(ids: pa.Array, node_type: StagedType) -> pa.Array:
    return ids.cast(pa.int64() if node_type.integers else node_type.kind)


def _schema(node_type: StagedType) -> pa.Schema:
    ids = _ids(pa.array([], node_type.kind), node_type)
    return node_table(ids, None, node_type.attributes.empty_table()).schema


# ---- A table a relation, and tables of nodes for some types, as a stream


class RelationStream:
    """Numbers the nodes of each type, and joins each table of edges with those of its two types."""

    def __init__(self, staging: Staging, source: RelationTables) -> None:
        self._staging = staging
        self._source = source
        self._selections = {node.node_type: node.selection for node in source.nodes}

    def stage(self) -> tuple[list[StagedType], list[KeyedEdges]]:
        """Put all tables into the database, and refuse what is wrong with them."""
        edges = [
            self._staging.stage_edges(f"room.edges_{number}", [edge.selection])
            for number, edge in enumerate(self._source.edges)
        ]
        nodes = self._stage_nodes(edges)
        types = {}
        for node_type, staged in nodes.items():
            self._staging.refuse_repeats(staged)
            types[node_type] = self._to_type(node_type, staged)
        joined = [self._join(number, edge, edges[number], types) for number, edge in enumerate(self._source.edges)]
        return list(types.values()), joined

    def _stage_nodes(self, edges: Sequence[StagedEdges]) -> dict[str, StagedNodes]:
        nodes: dict[str, StagedNodes] = {}
        for node_type, selection in self._selections.items():
            nodes[node_type] = self._staging.stage_nodes(f"room.ids_{len(nodes)}", selection)
        ends = [
            (node_type, staged, column)
            for edge, staged in zip(self._source.edges, edges, strict=True)
            for node_type, column in ((edge.relation.source, "source"), (edge.relation.target, "target"))
        ]
        for node_type in dict.fromkeys(end for end, _, _ in ends if end not in nodes):
            columns = [(staged, column) for end, staged, column in ends if end == node_type]
            nodes[node_type] = self._staging.stage_named(f"room.ids_{len(nodes)}", columns)
        return nodes

    def _to_type(self, node_type: str, staged: StagedNodes) -> StagedType:
        query = f"(SELECT id, rowid AS key FROM {staged.name})"
        selection = self._selections.get(node_type)
        typed = selection is not None and selection.file.is_parquet
        named = selection is not None and "name" in selection.columns
        return staged_type(self._staging, node_type, query, staged, typed=typed, named=named)

    def _join(self, number: int, edge: EdgeSource, staged: StagedEdges, types: dict[str, StagedType]) -> KeyedEdges:
        first, second = (
            Ends(types[end].query, types[end].kind, types[end].count, end, table_of(end))
            for end in (edge.relation.source, edge.relation.target)
        )
        name = f"room.joined_{number}"
        undirected = "false" if edge.relation.directed else "true"
        join_ids(self._staging, name, staged, (first, second), EdgeOptions(undirected=undirected))
        return KeyedEdges(edge.relation, name, staged.rows)

    def write_nodes(self, filling: BulkWriter, types: Sequence[StagedType]) -> None:
        """Write the nodes of each type: from their table, or else as edges named them."""
        for number, node_type in enumerate(types):
            selection = self._selections.get(node_type.node_type)
            if selection is None:
                write_named(filling, number, node_type)
            else:
                write_selected(filling, self._staging, selection, {number: node_type})


# ---- Edges of all relations in one table, and nodes of all types in another or in the edges alone, as a stream


# ruff: noqa: S608  the names of tables and columns in statements are made here, never given


_OPEN = 100
"""Types whose nodes are written at a time, each into a file of its own."""


class TripleStream:
    """Numbers the nodes within their types, and joins the edges with all nodes at once, by relation and types."""

    def __init__(self, staging: Staging, source: TripleTables) -> None:
        self._staging = staging
        self._source = source

    def stage(self) -> tuple[list[StagedType], list[KeyedEdges]]:
        """Put all tables into the database, and refuse what is wrong with them."""
        edges = self._staging.stage_edges("room.edges", self._source.edges)
        nodes = self._stage_nodes(edges)
        self._staging.refuse_repeats(nodes)
        type_names, relation_names = self._type_names(nodes), self._distinct(edges.name, "relation")
        self._number_nodes(nodes, type_names)
        no_relation = self._staging.first_empty(edges, "relation")
        self._join(edges, nodes, type_names, relation_names)
        no_type = self._staging.first_empty(nodes, "type") if "type" in nodes.kinds else None
        for what, row, place in (("type", no_type, nodes.place), ("relation", no_relation, edges.place)):
            if row is not None:
                raise empty_word(place(row), what)
        refuse_unknown_names(self._source.choices, relation_names)
        joined = self._split(type_names, relation_names)
        return [self._to_type(code, name, nodes) for code, name in enumerate(type_names)], joined

    def _stage_nodes(self, edges: StagedEdges) -> StagedNodes:
        if self._source.nodes is None:
            return self._staging.stage_named("room.nodes", [(edges, "source"), (edges, "target")])
        return self._staging.stage_nodes("room.nodes", self._source.nodes)

    def _type_names(self, nodes: StagedNodes) -> list[str]:
        if "type" in nodes.kinds:
            return self._distinct(nodes.name, "type")
        return [self._source.node_type] if nodes.rows else []

    def _distinct(self, table: str, column: str) -> list[str]:
        """Return the words of a column in order of appearance."""
        query = f"SELECT {column} FROM {table} GROUP BY {column} ORDER BY min(rowid)"
        return [word for (word,) in self._staging.run(query)]

    def _number_nodes(self, nodes: StagedNodes, type_names: Sequence[str]) -> None:
        """Write down the type of each node, and its key among the nodes of that type."""
        kind = "VARCHAR" if pa.types.is_string(nodes.kinds["id"]) else "BIGINT"
        self._staging.run(f"CREATE TABLE room.keys (id {kind}, type INTEGER, key BIGINT)")
        typed = "type IS NOT DISTINCT FROM ?" if "type" in nodes.kinds else "? IS NOT NULL"
        for code, name in enumerate(type_names):
            numbered = f"SELECT id, {code}, row_number() OVER () - 1 FROM {nodes.name} WHERE {typed}"
            self._staging.run(f"INSERT INTO room.keys {numbered}", name)

    def _join(
        self, edges: StagedEdges, nodes: StagedNodes, type_names: Sequence[str], relation_names: Sequence[str]
    ) -> None:
        codes = pa.table({"name": pa.array(relation_names, pa.string()), "code": np.arange(len(relation_names))})
        self._staging.put("room.relations", [codes])
        undirected = [str(relation_names.index(n)) for n in self._source.choices.undirected if n in relation_names]
        terms = EdgeOptions(
            kind=f"(r.code * {len(type_names)} + a.type) * {len(type_names)} + b.type",
            undirected=f"a.type = b.type AND r.code IN ({', '.join(undirected) or 'NULL'})",
            join="LEFT JOIN room.relations r ON e.relation = r.name",
        )
        end = Ends("room.keys", nodes.kinds["id"], nodes.rows, "node", "nodes table")
        join_ids(self._staging, "room.joined", edges, (end, end), terms)

    def _split(self, type_names: Sequence[str], relation_names: Sequence[str]) -> list[KeyedEdges]:
        """Return the edges of each relation between each two types, in the order of these."""
        choices, joined = self._source.choices, []
        for kind, rows in self._staging.run("SELECT kind, count(*) FROM room.joined GROUP BY kind ORDER BY kind"):
            shape = len(relation_names), len(type_names), len(type_names)
            relation, source, target = (int(code) for code in np.unravel_index(kind, shape))
            name = relation_names[relation]
            if choices.take and name not in choices.take:
                continue
            directed = not (name in choices.undirected and source == target)
            found = Relation(type_names[source], name, type_names[target], directed)
            joined.append(KeyedEdges(found, f"(SELECT * FROM room.joined WHERE kind = {kind})", rows))
        return joined

    def _to_type(self, code: int, name: str, nodes: StagedNodes) -> StagedType:
        query = f"(SELECT id, key FROM room.keys WHERE type = {code})"
        named = self._source.nodes is not None and "name" in self._source.nodes.columns
        return staged_type(self._staging, name, query, nodes, typed=False, named=named)

    def write_nodes(self, filling: BulkWriter, types: Sequence[StagedType]) -> None:
        """Write the nodes of all types in one pass over their table, or else as edges named them."""
        selection = self._source.nodes
        if selection is None:
            for number, node_type in enumerate(types):
                write_named(filling, number, node_type)
            return
        for first in range(0, len(types), _OPEN):
            some = dict(enumerate(types[first : first + _OPEN], first))
            write_selected(filling, self._staging, selection, some)

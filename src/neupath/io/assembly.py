"""Read the tables of a graph into memory: ids become rows, and errors name the bad row.

This is the first of three readers (see `io.sources`), for graphs that fit into memory.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from neupath.errors import GraphError
from neupath.graph.hin import HIN, Edges
from neupath.graph.metapath import Relation
from neupath.graph.nodes import Nodes, Rows
from neupath.io.sources import (
    EdgeSource,
    NodeSource,
    Place,
    ReadOptions,
    TableSource,
    TripleTables,
    all_read_as_integers,
    empty_cell,
    empty_end,
    empty_id,
    missing_ids,
    place_in_files,
    repeated_id,
    to_weights,
    unknown_end,
)


# ---- Reading the tables of a source --------------------------------------------------------------
def read_tables(source: TableSource) -> HIN:
    """Read the tables of a source as a graph."""
    if isinstance(source, TripleTables):
        return _read_triples(source)
    edges = [_read_edges(edge) for edge in source.edges]
    return assemble([_read_nodes(node) for node in source.nodes], edges, source.options)


def _read_nodes(node: NodeSource) -> "NodeTable":
    file, rows = node.selection.file, node.selection.read()
    ids, names = rows.columns["id"], rows.columns.get("name")
    return NodeTable(node.node_type, ids, file.place, names, rows.attributes, typed=file.is_parquet)


def _read_edges(edge: EdgeSource) -> "EdgeTable":
    columns = edge.selection.read().columns
    place = edge.selection.file.place
    return EdgeTable(edge.relation, columns["source"], columns["target"], place, columns.get("weight"))


def _read_triples(source: TripleTables) -> HIN:
    files = [selection.read() for selection in source.edges]
    triples = pa.concat_tables([pa.table(dict(rows.columns)) for rows in files], promote_options="default")
    columns = {name: triples[name].combine_chunks() for name in triples.column_names}
    place = place_in_files(source.edges, list(map(len, files)))
    edges = TripleTable(columns["source"], columns["relation"], columns["target"], place, columns.get("weight"))
    if source.nodes is None:
        ids = distinct_ids([edges.sources, edges.targets])
        return assemble_typed(TypedTable(ids, pa.repeat(source.node_type, len(ids)), place), edges, source.options)
    rows = source.nodes.read()
    types = rows.columns.get("type", pa.repeat(source.node_type, len(rows)))
    nodes = TypedTable(rows.columns["id"], types, source.nodes.file.place, rows.columns.get("name"), rows.attributes)
    return assemble_typed(nodes, edges, source.options)


# ---- One table per node type and relation: ids become rows ---------------------------------------
@dataclass(frozen=True)
class NodeTable:
    """The nodes of one type: ids, and optional names and attributes."""

    node_type: str
    ids: pa.Array
    place: Place
    names: pa.Array | None = None
    attributes: pa.Table = field(default_factory=lambda: pa.table({}))
    typed: bool = False
    """Whether the table declares which ids are integers; in text tables their looks decide."""


@dataclass(frozen=True)
class EdgeTable:
    """The edges of one relation: the ids at both ends, and optional weights."""

    relation: Relation
    sources: pa.Array
    targets: pa.Array
    place: Place
    weights: pa.Array | None = None


def assemble(nodes: Iterable[NodeTable], edges: Iterable[EdgeTable], options: ReadOptions) -> HIN:
    """Build a graph from one table per node type and one per relation.

    The nodes of a type without a table are those that its edges name, in order of appearance. With a table, both ends
    of every edge must be in it. Ids become integers if all of them read as integers.
    """
    edge_tables = list(edges)
    tables: dict[str, NodeTable] = {}
    for table in nodes:
        if tables.setdefault(table.node_type, table) is not table:
            raise GraphError(f"nodes of type {table.node_type!r} are given in two tables; give each type once")
    columns: dict[str, list[pa.Array]] = {}
    for edge in edge_tables:
        for end, ids in ((edge.relation.source, edge.sources), (edge.relation.target, edge.targets)):
            columns.setdefault(end, []).append(ids)
    for end, id_columns in columns.items():
        if end not in tables:
            tables[end] = NodeTable(end, distinct_ids(id_columns), lambda row: f"row {row + 1}")
    all_nodes = [_to_nodes(table) for table in tables.values()]
    built = [
        Edges(
            edge.relation,
            _find_rows(edge.sources, tables[edge.relation.source].ids, edge.relation.source, edge.place),
            _find_rows(edge.targets, tables[edge.relation.target].ids, edge.relation.target, edge.place),
            to_weights(edge.weights, edge.place),
        )
        for edge in edge_tables
    ]
    return _build(all_nodes, built, options)


def distinct_ids(columns: Sequence[pa.Array]) -> pa.Array:
    """List the distinct ids of some columns in order of appearance; the check of edges reports empty ones."""
    same = len({column.type for column in columns}) == 1
    distinct = pc.unique(pa.chunked_array(columns if same else [pc.cast(column, pa.string()) for column in columns]))
    return pc.array_filter(distinct, pa.array(np.isin(np.arange(len(distinct)), missing_ids(distinct), invert=True)))


def _to_nodes(table: NodeTable) -> Nodes:
    _refuse_repeats(table.ids, table.place)
    ids = table.ids
    if not table.typed and pa.types.is_string(ids.type) and len(ids) and all_read_as_integers(ids):
        ids = pc.cast(ids, pa.int64())
    return Nodes(table.node_type, ids, table.names, table.attributes)


def _refuse_repeats(ids: pa.Array, place: Place) -> None:
    missing = missing_ids(ids)
    if len(missing):
        raise empty_id(place(int(missing[0])))
    encoded = ids.dictionary_encode()
    if len(encoded.dictionary) < len(ids):
        codes = encoded.indices.to_numpy(zero_copy_only=False)
        row = int(np.setdiff1d(np.arange(len(codes)), np.unique(codes, return_index=True)[1])[0])
        raise repeated_id(place(row), ids[row].as_py())


def _find_rows(ids: pa.Array, table: pa.Array, node_type: str, place: Place, where: str | None = None) -> Rows:
    """Return the row of each id in a table of ids; the table is hashed once per column of edges."""
    missing = missing_ids(ids)
    if len(missing):
        raise empty_end(place(int(missing[0])), node_type)
    same = ids.type == table.type
    keys, table_keys = (ids, table) if same else (pc.cast(ids, pa.string()), pc.cast(table, pa.string()))
    rows = pc.index_in(keys, value_set=table_keys)
    if rows.null_count:
        first = int(np.flatnonzero(pc.is_null(rows).to_numpy(zero_copy_only=False))[0])
        raise unknown_end(place(first), node_type, ids[first].as_py(), rows.null_count, where)
    numbers: Rows = rows.to_numpy(zero_copy_only=False).astype(np.int64)
    return numbers


def _build(nodes: Iterable[Nodes], edges: Iterable[Edges], options: ReadOptions) -> HIN:
    return HIN.build(
        nodes, edges, duplicates=options.duplicates, abbreviations=options.abbreviations, notes=options.notes
    )


# ---- One table of all nodes and one of all edges -------------------------------------------------
@dataclass(frozen=True)
class TypedTable:
    """Nodes of all types in one table; ids are unique across types."""

    ids: pa.Array
    types: pa.Array
    place: Place
    names: pa.Array | None = None
    attributes: pa.Table = field(default_factory=lambda: pa.table({}))


@dataclass(frozen=True)
class TripleTable:
    """Edges of all relations in one table."""

    sources: pa.Array
    relations: pa.Array
    targets: pa.Array
    place: Place
    weights: pa.Array | None = None


def assemble_typed(nodes: TypedTable, edges: TripleTable, options: ReadOptions) -> HIN:
    """Build a graph from one table of typed nodes and one of named edges.

    A relation's name may join several pairs of types: each pair becomes its own relation.
    """
    _refuse_repeats(nodes.ids, nodes.place)
    sources, targets = (
        _find_rows(ids, nodes.ids, "node", edges.place, "nodes table") for ids in (edges.sources, edges.targets)
    )
    weights = to_weights(edges.weights, edges.place)
    for what, column, place in (("type", nodes.types, nodes.place), ("relation", edges.relations, edges.place)):
        missing = missing_ids(column)
        if len(missing):
            raise empty_cell(place(int(missing[0])), what)
    type_names, type_codes = _encode(nodes.types)
    relation_names, relation_codes = _encode(edges.relations)
    options.check_names(relation_names)
    typed_nodes, row_in_type = [], np.empty(len(type_codes), dtype=np.int64)
    for code, node_type in enumerate(type_names):
        rows = np.flatnonzero(type_codes == code)
        row_in_type[rows] = np.arange(len(rows))
        names = None if nodes.names is None else nodes.names.take(pa.array(rows))
        ids, attributes = nodes.ids.take(pa.array(rows)), nodes.attributes.take(pa.array(rows))
        typed_nodes.append(_to_nodes(NodeTable(node_type, ids, nodes.place, names, attributes)))
    shape = (len(relation_names), len(type_names), len(type_names))
    kinds = np.ravel_multi_index((relation_codes, type_codes[sources], type_codes[targets]), shape)
    built = []
    for kind, rows in _groups(kinds):
        name, source, target = np.unravel_index(kind, shape)
        relation = options.relation(type_names[source], relation_names[name], type_names[target])
        if relation is not None:
            chosen = None if weights is None else weights[rows]
            built.append(Edges(relation, row_in_type[sources[rows]], row_in_type[targets[rows]], chosen))
    return _build(typed_nodes, built, options)


def _groups(codes: NDArray[np.int64]) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """Yield each distinct code, ascending, with its positions, ascending."""
    order = np.argsort(codes, kind="stable")
    distinct, starts = np.unique(codes[order], return_index=True)
    yield from zip(distinct.tolist(), np.split(order, starts[1:]), strict=False)


def _encode(column: pa.Array) -> tuple[list[str], NDArray[np.int64]]:
    encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    return encoded.dictionary.to_pylist(), encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)

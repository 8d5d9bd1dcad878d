"""Reading a source of tables into memory: every table as a whole, then ids become rows."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from neupath.datasets.assemble import (
    EdgeTable,
    NodeTable,
    Place,
    TripleTable,
    TypedTable,
    assemble,
    assemble_typed,
    distinct_ids,
)
from neupath.datasets.sources import EdgeSource, NodeSource, RelationTables, Selection, TableSource, TripleTables
from neupath.graph import HIN


def read_tables(source: TableSource) -> HIN:
    """Read the tables of a source as a graph."""
    return _read_relations(source) if isinstance(source, RelationTables) else _read_triples(source)


def _read_relations(source: RelationTables) -> HIN:
    edges = [_edge_table(edge) for edge in source.edges]
    return assemble([_node_table(node) for node in source.nodes], edges, source.choices)


def _node_table(node: NodeSource) -> NodeTable:
    file, part = node.selection.file, node.selection.read()
    ids, names = part.columns["id"], part.columns.get("name")
    return NodeTable(node.node_type, ids, file.place, names, part.attributes, typed=file.is_parquet)


def _edge_table(edge: EdgeSource) -> EdgeTable:
    columns = edge.selection.read().columns
    place = edge.selection.file.place
    return EdgeTable(edge.relation, columns["source"], columns["target"], place, columns.get("weight"))


def _read_triples(source: TripleTables) -> HIN:
    parts = [selection.read() for selection in source.edges]
    triples = pa.concat_tables([pa.table(dict(part.columns)) for part in parts], promote_options="default")
    columns = {name: triples[name].combine_chunks() for name in triples.column_names}
    place = place_in_parts(source.edges, list(map(len, parts)))
    edges = TripleTable(columns["source"], columns["relation"], columns["target"], place, columns.get("weight"))
    if source.nodes is None:
        ids = distinct_ids([edges.sources, edges.targets])
        return assemble_typed(TypedTable(ids, _all_of(source.node_type, len(ids)), place), edges, source.choices)
    part = source.nodes.read()
    types = part.columns.get("type", _all_of(source.node_type, len(part)))
    nodes = TypedTable(part.columns["id"], types, source.nodes.file.place, part.columns.get("name"), part.attributes)
    return assemble_typed(nodes, edges, source.choices)


def _all_of(node_type: str, count: int) -> pa.Array:
    return pa.array(np.full(count, node_type), pa.string())


def place_in_parts(parts: Sequence[Selection], lengths: Sequence[int]) -> Place:
    """Return what finds the file and line of a row of several files, read one after the other as far as lengths go."""

    def find(row: int) -> str:
        left = row
        for part, length in zip(parts, lengths, strict=False):
            if left < length:
                return part.file.place(left)
            left -= length
        return f"row {row + 1}"

    return find

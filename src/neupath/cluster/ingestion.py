"""Read a folder of Parquet tables on workers: the third reader, for graphs that fit into no process.

`io.assembly` reads a graph into memory and `io.out_of_core` into a store on disk, each in one process. Here workers
number the ids and edges; the process that runs the command sees the names of tables and columns and what
Parquet says of them, but never an id, an edge or a matrix. Nodes, their order, matrices and errors are those of `load`.
"""

import json
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import pyarrow as pa

from neupath.cluster.edge_encoding import EdgeChunk, EdgeChunks, End, cut_edges, number_chunks
from neupath.cluster.id_encoding import (
    Chunk,
    IdColumn,
    IdColumns,
    IdFiles,
    NumberedIds,
    copy_names,
    cut_table,
    digest_part,
    number_ids,
)
from neupath.cluster.tiles import Tiles
from neupath.cluster.workers import Workers
from neupath.graph.metapath import Link, Relation, Schema
from neupath.io.plan import EdgePlan, NodePlan, Plan, Selection
from neupath.io.tables import TableFile

_NAMES_AT_ONCE = 1 << 18


@dataclass(frozen=True)
class TiledGraph:
    """A graph on disk: the ids of each node type in files, the matrix of each relation in tiles."""

    schema: Schema
    ids: Mapping[str, IdFiles]
    tiles: Mapping[Relation, Tiles]
    digest: str  # a hash of the tables' content

    def links(self, links: tuple[Link, ...]) -> tuple[tuple[Tiles, bool], ...]:
        """Return the tiles of some links, and whether they are to be transposed."""
        return tuple((self.tiles[link.relation], link.reverse) for link in links)


class IngestionPlan:
    """What is known of the tables of a folder before they are read."""

    def __init__(self, tables: Plan) -> None:
        self.options = tables.options
        self.nodes: dict[str, NodePlan] = {node.node_type: node for node in tables.nodes}
        self.edges: Sequence[EdgePlan] = tables.edges
        self._tables = tables.tables
        relations = tuple(edge.relation for edge in tables.edges)
        ends = (end for relation in relations for end in (relation.source, relation.target))
        node_types = tuple(dict.fromkeys([*self.nodes, *ends]))
        self.schema = Schema(node_types, relations, self.options.abbreviations)

    @property
    def description(self) -> list[object]:
        """What determines the graph besides its files: the schema, and which columns of which parts are what."""
        selections = [*(node.selection for node in self.nodes.values()), *(edge.selection for edge in self.edges)]
        columns = [[dict(selection.columns), len(selection.table.parts)] for selection in selections]
        return [self.schema.node_types, [*map(str, self.schema.relations)], self.options.duplicates, columns]

    @property
    def parts(self) -> list[Path]:
        return [part.absolute() for table in self._tables for part in table.parts]


def ingest(
    plan: IngestionPlan, relations: AbstractSet[Relation], folder: Path, workers: Workers, most: int
) -> TiledGraph:
    """Read the tables of a folder; a task holds about `most` ids or edges at once.

    All tables are numbered, so that bad ones raise as in `load`; only some relations become tiles.
    """
    folder.mkdir()
    digests = workers.each(digest_part, [(part,) for part in plan.parts])
    tables = [cut_table(_file(e.selection), list(e.selection.columns.values()), most) for e in plan.edges]
    columns, numbered = {}, {}
    for number, node_type in enumerate(plan.schema.node_types):
        own = columns[node_type] = _id_columns(node_type, plan, tables, most)
        buckets = max(workers.count, -(-sum(chunk.rows for _, chunk in own.chunks) // most))
        numbered[node_type] = number_ids(own, folder / f"nodes-{number:02}", buckets, workers)
    tiles = {}
    for number, edge in enumerate(plan.edges):
        place, relation, names = folder / f"edges-{number:02}", edge.relation, edge.selection.columns
        edges = EdgeChunks(relation, _file(edge.selection), [
            EdgeChunk(
                chunk,
                _end(names["source"], (number, 0), at, columns[relation.source], numbered[relation.source]),
                _end(names["target"], (number, 1), at, columns[relation.target], numbered[relation.target]),
                names.get("weight"), relation.directed, place / f"out-{at:06}", place / f"back-{at:06}",
            )
            for at, chunk in enumerate(tables[number])
        ])  # fmt: skip
        place.mkdir()
        counts = number_chunks(edges, workers)
        if relation in relations:
            tiles[relation] = cut_edges(edges, counts, place, most, plan.options.duplicates, workers)
    digest = sha256(json.dumps([plan.description, digests]).encode()).hexdigest()
    return TiledGraph(plan.schema, {node_type: own.ids for node_type, own in numbered.items()}, tiles, digest)


def write_names(plan: IngestionPlan, node_type: str, folder: Path, workers: Workers) -> IdFiles | None:
    """Write the names of a node type, which stand in its table in node order, on the workers; None if it has none."""
    node = plan.nodes.get(node_type)
    if node is None or "name" not in node.selection.columns:
        return None
    number = plan.schema.node_types.index(node_type)
    chunks = cut_table(_file(node.selection), [node.selection.columns["name"]], _NAMES_AT_ONCE)
    files = tuple(folder / f"names-{number:02}-{at:06}" for at in range(len(chunks)))
    column = node.selection.columns["name"]
    workers.each(copy_names, [(chunk, column, path) for chunk, path in zip(chunks, files, strict=True)])
    return IdFiles(pa.string(), files, (*(chunk.first for chunk in chunks), chunks[-1].first + chunks[-1].rows))


def _id_columns(node_type: str, plan: IngestionPlan, tables: Sequence[tuple[Chunk, ...]], most: int) -> IdColumns:
    """Return the columns that name the nodes of a type, in the order in which `load` numbers them."""
    columns = [
        IdColumn(_file(edge.selection), edge.selection.columns[name], tables[number], (number, end))
        for number, edge in enumerate(plan.edges)
        for end, (name, end_type) in enumerate((("source", edge.relation.source), ("target", edge.relation.target)))
        if end_type == node_type
    ]
    table = plan.nodes.get(node_type)
    if table is not None:
        file, name = _file(table.selection), table.selection.columns["id"]
        columns.insert(0, IdColumn(file, name, cut_table(file, [name], most)))
    kinds = [column.file.declared_types([column.name], {column.name: pa.string()})[column.name] for column in columns]
    as_text = len(set(kinds)) > 1
    kind = kinds[0] if table is not None or not as_text else pa.string()
    return IdColumns(tuple(columns), table is not None, kind, as_text)


def _file(selection: Selection) -> TableFile:
    assert isinstance(selection.table, TableFile), "plan_folder finds files only"
    return selection.table


def _end(column: str, end: tuple[int, int], at: int, columns: IdColumns, numbered: NumberedIds) -> End:
    chunk = columns.first_chunk(end) + at
    return End(column, columns.as_text, len(numbered.ids), numbered.folder, chunk, numbered.stretches(chunk))

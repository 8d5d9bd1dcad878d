"""Ingestion: a folder of Parquet tables as a graph in tiles, read, numbered and written by the workers.

The process that gives the command sees the names of tables and columns and what Parquet says of them; it never holds an
id, an edge or a matrix. Nodes and their order are those of `load`, and so are matrices, to the bit.
"""

import json
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import pyarrow as pa

from neupath.cluster.chunks import Chunk, cut_table, digest_part, key_type
from neupath.cluster.ids import Ids
from neupath.cluster.numbered_edges import EdgeChunk, EdgeChunks, End, cut_edges, number_chunks
from neupath.cluster.numbering import IdColumn, IdColumns, NumberedIds, number_ids
from neupath.cluster.tiles import Tiles
from neupath.cluster.workers import Workers
from neupath.datasets.assemble import choose
from neupath.datasets.detection import NodeFile, RelationFile
from neupath.datasets.folder import Tables
from neupath.schema import Link, Relation, Schema


@dataclass(frozen=True)
class TiledGraph:
    """A graph on disk: the ids of each node type in files, the matrix of each relation in tiles."""

    schema: Schema
    ids: Mapping[str, Ids]
    tiles: Mapping[Relation, Tiles]
    digest: str
    """Differs between tables of different content."""

    def links(self, links: tuple[Link, ...]) -> tuple[tuple[Tiles, bool], ...]:
        """Return the tiles of some links, and whether they are to be transposed."""
        return tuple((self.tiles[link.relation], link.reverse) for link in links)


class Plan:
    """What the tables of a folder hold, as it is known before they are read."""

    def __init__(self, tables: Tables) -> None:
        found = [(file, Relation(file.source, file.name, file.target, directed)) for file, directed in tables.relations]
        chosen = choose([relation for _, relation in found], tables.choices)
        self.choices = tables.choices
        self.nodes: dict[str, NodeFile] = {node.node_type: node for node in tables.nodes}
        self.relations: list[tuple[RelationFile, Relation]] = [
            (file, relation) for (file, _), relation in zip(found, chosen, strict=True) if relation is not None
        ]
        ends = (end for _, relation in self.relations for end in (relation.source, relation.target))
        node_types = tuple(dict.fromkeys([*self.nodes, *ends]))
        self.schema = Schema(node_types, tuple(relation for _, relation in self.relations), self.choices.abbreviations)

    @property
    def described(self) -> list[str]:
        """What of the graph does not stand in its files."""
        return [*self.schema.node_types, *map(str, self.schema.relations), self.choices.duplicates]

    @property
    def parts(self) -> list[Path]:
        """The files of all tables."""
        files = [*(node.file for node in self.nodes.values()), *(file.file for file, _ in self.relations)]
        return [part.absolute() for file in files for part in file.parts]


def ingest(plan: Plan, relations: AbstractSet[Relation], folder: Path, workers: Workers, most: int) -> TiledGraph:
    """Read the tables of a folder; a task holds about `most` ids or edges at once.

    All are numbered, so that what `load` refuses is refused; only some relations become tiles.
    """
    folder.mkdir()
    digests = workers.each(digest_part, [(part,) for part in plan.parts])
    tables = [cut_table(file.file, _columns(file), most) for file, _ in plan.relations]
    columns, numbered = {}, {}
    for number, node_type in enumerate(plan.schema.node_types):
        own = columns[node_type] = _id_columns(node_type, plan, tables, most)
        buckets = max(workers.count, -(-sum(chunk.rows for _, chunk in own.chunks) // most))
        numbered[node_type] = number_ids(own, folder / f"nodes-{number:02}", buckets, workers)
    tiles = {}
    for number, (file, relation) in enumerate(plan.relations):
        place = folder / f"edges-{number:02}"
        edges = EdgeChunks(relation, file.file, [
            EdgeChunk(
                chunk,
                _end(file.columns[0], (number, 0), at, columns[relation.source], numbered[relation.source]),
                _end(file.columns[1], (number, 1), at, columns[relation.target], numbered[relation.target]),
                file.weight, relation.directed, place / f"out-{at:06}", place / f"back-{at:06}",
            )
            for at, chunk in enumerate(tables[number])
        ])  # fmt: skip
        place.mkdir()
        counted = number_chunks(edges, workers)
        if relation in relations:
            tiles[relation] = cut_edges(edges, counted, place, most, plan.choices.duplicates, workers)
    digest = sha256(json.dumps([plan.described, digests]).encode()).hexdigest()
    return TiledGraph(plan.schema, {t: found.ids for t, found in numbered.items()}, tiles, digest)


def _columns(file: RelationFile) -> list[str]:
    return [*file.columns, *([file.weight] if file.weight else [])]


def _id_columns(node_type: str, plan: Plan, tables: Sequence[tuple[Chunk, ...]], most: int) -> IdColumns:
    """Find the columns that name the nodes of a type, in the order in which `load` numbers them."""
    columns = [
        IdColumn(file.file, file.columns[end], tables[number], (number, end))
        for number, (file, relation) in enumerate(plan.relations)
        for end, name in enumerate((relation.source, relation.target))
        if name == node_type
    ]
    table = plan.nodes.get(node_type)
    if table is not None:
        columns.insert(0, IdColumn(table.file, table.id, cut_table(table.file, [table.id], most)))
    kinds = [key_type(column.file, column.name) for column in columns]
    as_text = len(set(kinds)) > 1
    kind = kinds[0] if table is not None or not as_text else pa.string()
    return IdColumns(tuple(columns), table is not None, kind, as_text)


def _end(column: str, end: tuple[int, int], at: int, columns: IdColumns, numbered: NumberedIds) -> End:
    chunk = columns.first_chunk(end) + at
    return End(column, columns.as_text, len(numbered.ids), numbered.folder, chunk, numbered.stretches(chunk))

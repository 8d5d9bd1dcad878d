"""Reading a source of tables into memory: every table as a whole, then ids become rows."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from neupath.graph.hin import HIN
from neupath.graph.schema import Relation
from neupath.io.assembly import (
    Choices,
    EdgeTable,
    NodeTable,
    Place,
    TripleTable,
    TypedTable,
    assemble,
    assemble_typed,
    distinct_ids,
)
from neupath.io.tables import Advance, TableFile, unseen

# ---- What a source of tables holds


@dataclass(frozen=True)
class FilePart:
    """Rows of a selection: its columns under their new names, and its attributes under their own."""

    columns: Mapping[str, pa.Array]
    attributes: pa.Table

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))


@dataclass(frozen=True)
class Selection:
    """Columns of a file to be read: ids, names and the like under new names, and attributes."""

    file: TableFile
    columns: Mapping[str, str]
    """What a column is (id, name, source, …), and what it is called in the file."""
    attributes: Sequence[str] = ()
    all_text: bool = False
    """Whether integers of Parquet are read as text too, as in triples."""

    def read(self) -> FilePart:
        """Read all rows; attributes of text tables get the types that their values suggest."""
        table = self.file.read([*self.columns.values(), *self.attributes], self._texts)
        return self._part(table)

    def read_batches(self, types: Mapping[str, pa.DataType], advance: Advance = unseen) -> Iterator[FilePart]:
        """Read some rows at a time, none at first; `types` are those of the attributes that do not say theirs."""
        for table in self.file.batches([*self.columns.values(), *self.attributes], {**types, **self._texts}, advance):
            yield self._part(table)

    @property
    def guessed(self) -> list[str]:
        """The attributes whose types are found out from their values."""
        return [] if self.file.is_parquet else [a for a in self.attributes if a not in self._texts]

    @property
    def told_types(self) -> dict[str, pa.DataType]:
        """The types of all other columns, by their names in the file."""
        return self.file.told_types([*self.columns.values(), *self.attributes], self._texts)

    @property
    def _texts(self) -> dict[str, pa.DataType]:
        return dict.fromkeys(self.columns.values(), pa.string())

    def _part(self, table: pa.Table) -> FilePart:
        columns = {name: table[column].combine_chunks() for name, column in self.columns.items()}
        if self.all_text:
            columns = {name: column.cast(pa.string()) for name, column in columns.items()}
        return FilePart(columns, table.select(list(self.attributes)))


@dataclass(frozen=True)
class NodeSource:
    """The nodes of one type: id, perhaps name, attributes."""

    node_type: str
    selection: Selection


@dataclass(frozen=True)
class EdgeSource:
    """The edges of one relation: source, target, perhaps weight."""

    relation: Relation
    selection: Selection


@dataclass(frozen=True)
class RelationTables:
    """A table a relation and, for some types, a table of its nodes."""

    nodes: Sequence[NodeSource]
    edges: Sequence[EdgeSource]
    choices: Choices

    @property
    def files(self) -> list[TableFile]:
        """The tables of nodes, and then of edges."""
        return [*(node.selection.file for node in self.nodes), *(edge.selection.file for edge in self.edges)]


@dataclass(frozen=True)
class TripleTables:
    """One table of edges of all relations, perhaps in parts, and one of nodes of all types, or one type for all."""

    nodes: Selection | None
    node_type: str
    edges: Sequence[Selection]
    choices: Choices

    @property
    def files(self) -> list[TableFile]:
        """The table of nodes, if there is one, and then those of edges."""
        return [selection.file for selection in (*([self.nodes] if self.nodes else []), *self.edges)]


TableSource = RelationTables | TripleTables


def present(**columns: str | None) -> dict[str, str]:
    """Return the columns that a file has; the others are None."""
    return {name: column for name, column in columns.items() if column is not None}


# ---- Reading a source of tables into memory


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

"""What a source of tables holds: which columns of which files are nodes and edges; their rows are not read yet."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from neupath.datasets.assemble import Choices
from neupath.datasets.tables import Advance, TableFile, unseen
from neupath.schema import Relation


@dataclass(frozen=True)
class Part:
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

    def read(self) -> Part:
        """Read all rows; attributes of text tables get the types that their values suggest."""
        table = self.file.read([*self.columns.values(), *self.attributes], self._texts)
        return self._part(table)

    def read_batches(self, types: Mapping[str, pa.DataType], advance: Advance = unseen) -> Iterator[Part]:
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

    def _part(self, table: pa.Table) -> Part:
        columns = {name: table[column].combine_chunks() for name, column in self.columns.items()}
        if self.all_text:
            columns = {name: column.cast(pa.string()) for name, column in columns.items()}
        return Part(columns, table.select(list(self.attributes)))


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

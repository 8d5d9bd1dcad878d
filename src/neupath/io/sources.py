"""The tables of a graph: which columns of which files hold its nodes and edges, and the checks of their rows.

Three readers turn them into a graph, because a graph may fit into memory, on a disk, or on a cluster only:
`io.assembly` reads whole tables, `io.out_of_core` streams them through a database, and `cluster.ingestion` shares them
out to workers. All three number ids in the same order, merge parallel edges alike and raise the same errors;
tests/test_readers_contract.py holds them to it.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neupath._runtime.progress import Progress, no_progress
from neupath.errors import GraphError, listed
from neupath.graph.hin import Duplicates, Floats
from neupath.graph.metapath import Relation
from neupath.graph.nodes import Rows
from neupath.io.tables import TableFile

Place = Callable[[int], str]
"""Return the file and line of a row of a table, for error messages."""


@dataclass(frozen=True)
class ReadOptions:
    """The user's settings for a graph, and notes on what is not read."""

    duplicates: Duplicates = "count"
    take: Sequence[str] = ()
    """Names of the relations to read; empty means all."""
    undirected: Sequence[str] = ()
    """Names of the relations of a type to itself that have no direction."""
    abbreviations: Mapping[str, str] = field(default_factory=dict)
    notes: Sequence[str] = ()

    def check_names(self, names: Sequence[str]) -> None:
        """Raise if an option names a relation that does not exist."""
        for name in (*self.take, *self.undirected):
            if name not in names:
                raise GraphError(
                    f"no relation named {name!r} to take or to read as undirected (the relations are {listed(names)})"
                )

    def relation(self, source: str, name: str, target: str) -> Relation | None:
        """Return a relation of triples as the options read it, or None if they leave it out."""
        if self.take and name not in self.take:
            return None
        return Relation(source, name, target, directed=not (name in self.undirected and source == target))


# ---- Columns of one file -------------------------------------------------------------------------
@dataclass(frozen=True)
class SelectedRows:
    """Rows of a selection: its columns by what they are, its attributes by their own names."""

    columns: Mapping[str, pa.Array]
    attributes: pa.Table

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))


@dataclass(frozen=True)
class Selection:
    """The columns of a file to read: ids, names and the like, and attributes."""

    file: TableFile
    columns: Mapping[str, str]
    """What a column is (id, name, source, …) -> what it is called in the file."""
    attributes: Sequence[str] = ()
    all_text: bool = False
    """Whether integers of Parquet are read as text too, as in triples."""

    def read(self) -> SelectedRows:
        """Read all rows; attributes of text tables get the types that their values suggest."""
        return self._split(self.file.read([*self.columns.values(), *self.attributes], self._text_types))

    def read_batches(
        self, types: Mapping[str, pa.DataType], progress: Progress = no_progress, stage: str = "reading"
    ) -> Iterator[SelectedRows]:
        """Read some rows at a time, an empty batch first; `types` gives the types of the inferred attributes."""
        columns = [*self.columns.values(), *self.attributes]
        for table in self.file.batches(columns, {**types, **self._text_types}, progress, stage):
            yield self._split(table)

    @property
    def inferred_attributes(self) -> list[str]:
        """The attributes whose types follow from their values."""
        return [] if self.file.is_parquet else [name for name in self.attributes if name not in self._text_types]

    @property
    def declared_types(self) -> dict[str, pa.DataType]:
        """The types of all other columns, by their names in the file."""
        return self.file.declared_types([*self.columns.values(), *self.attributes], self._text_types)

    @property
    def _text_types(self) -> dict[str, pa.DataType]:
        return dict.fromkeys(self.columns.values(), pa.string())

    def _split(self, table: pa.Table) -> SelectedRows:
        columns = {name: table[column].combine_chunks() for name, column in self.columns.items()}
        if self.all_text:
            columns = {name: column.cast(pa.string()) for name, column in columns.items()}
        return SelectedRows(columns, table.select(list(self.attributes)))


def existing(**columns: str | None) -> dict[str, str]:
    """Return the columns that a file has, those that are not None."""
    return {name: column for name, column in columns.items() if column is not None}


# ---- The tables of a graph -----------------------------------------------------------------------
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
    """One table per relation and, for some node types, one table of their nodes."""

    nodes: Sequence[NodeSource]
    edges: Sequence[EdgeSource]
    options: ReadOptions

    @property
    def files(self) -> list[TableFile]:
        """The node tables, then the edge tables."""
        return [*(node.selection.file for node in self.nodes), *(edge.selection.file for edge in self.edges)]


@dataclass(frozen=True)
class TripleTables:
    """One table of all edges, perhaps in several files, and one of all nodes, or one type for all nodes."""

    nodes: Selection | None
    node_type: str
    edges: Sequence[Selection]
    options: ReadOptions

    @property
    def files(self) -> list[TableFile]:
        """The node table, if there is one, then the edge tables."""
        return [selection.file for selection in (*([self.nodes] if self.nodes else []), *self.edges)]


TableSource = RelationTables | TripleTables


def place_in_files(selections: Sequence[Selection], lengths: Sequence[int]) -> Place:
    """Return a function that finds the file and line of a row in several files that were read one after the other."""

    def find(row: int) -> str:
        left = row
        for selection, length in zip(selections, lengths, strict=False):
            if left < length:
                return selection.file.place(left)
            left -= length
        return f"row {row + 1}"

    return find


# ---- Checks of ids and weights, shared by the three readers --------------------------------------
INTEGERS = r"^(0|-?[1-9][0-9]{0,17})$"
_WEIGHT = r"^\+?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"


def missing_ids(ids: pa.Array) -> Rows:
    """Return the rows whose id is null or an empty text."""
    empty = pc.is_null(ids)
    if pa.types.is_string(ids.type):
        empty = pc.or_(empty, pc.fill_null(pc.equal(ids, ""), True))
    return np.flatnonzero(empty.to_numpy(zero_copy_only=False)).astype(np.int64)


def all_read_as_integers(texts: pa.Array) -> bool:
    """Whether all texts are integers that print the same again."""
    return bool(pc.all(pc.match_substring_regex(texts, INTEGERS)).as_py() is not False)


def to_weights(column: pa.Array | None, place: Place) -> Floats | None:
    """Return weights as numbers; raise at the first that is not a finite number of 0 or more."""
    if column is None:
        return None
    numbers = column
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        texts = pc.utf8_trim_whitespace(column)
        numbers = pc.utf8_ltrim(pc.if_else(pc.match_substring_regex(texts, _WEIGHT), texts, None), "+")
    try:
        weights = pc.cast(numbers, pa.float64()).to_numpy(zero_copy_only=False)
    except pa.ArrowException as error:
        raise GraphError(f"{place(0)}: weights of type {column.type} are not numbers") from error
    bad = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if len(bad):
        raise bad_weight(place(int(bad[0])), column[int(bad[0])].as_py())
    return np.asarray(weights, dtype=np.float64)


# ---- Errors of one row, shared by the three readers; a place is the file and the line ------------
def empty_id(place: str) -> GraphError:
    """Return the error of a node without an id."""
    return GraphError(f"{place}: the node has an empty id; every node needs one")


def repeated_id(place: str, value: object) -> GraphError:
    """Return the error of a node with the id of another."""
    return GraphError(f"{place}: node id {value!r} is repeated; node ids must be unique")


def empty_cell(place: str, what: str) -> GraphError:
    """Return the error of a row without a type or a relation."""
    return GraphError(f"{place}: the {what} is empty; every row needs one")


def empty_end(place: str, node_type: str) -> GraphError:
    """Return the error of an edge without the id of one end."""
    return GraphError(f"{place}: the edge has an empty {node_type} id; every edge needs two ids")


def unknown_end(place: str, node_type: str, value: object, count: int, where: str | None = None) -> GraphError:
    """Return the error of an edge to a node that is not in `where`, by default the node table of its type."""
    table = where or f"node table of {node_type}"
    return GraphError(
        f"{place}: the edge leads to {node_type} {value!r}, which is not in the {table} "
        f"({count:,} such edge ends in all); add it there, or leave the edge out"
    )


def bad_weight(place: str, value: object) -> GraphError:
    """Return the error of a weight that is not a finite number of 0 or more."""
    comma = re.fullmatch(r"[0-9.]*,[0-9]+", str(value).strip())
    hint = ", with a point and no comma in them" if comma else ""
    return GraphError(f"{place}: weight {value!r} is not allowed; weights are finite numbers, 0 or more{hint}")

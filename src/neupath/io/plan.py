"""The plan of a graph: which columns of which tables hold its nodes and edges.

`io.assemble` follows it, into memory or in batches into a store; tests/io/test_out_of_core.py
holds the two to the same graph and the same errors.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neupath.errors import GraphError, listed
from neupath.graph.hin import Duplicates
from neupath.graph.metapath import Relation
from neupath.graph.nodes import Rows
from neupath.io.ids import are_words, as_ids, clean_ids, missing_ids
from neupath.io.tables import Report, Table, Types, is_list_type, no_report


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
    missing_ids: Sequence[str] | None = None
    """Texts that mean that there is no id; None until graph.toml says, and then a note names ids that look empty."""
    fold_ids: bool | None = None
    """Whether ids that differ only by case or spaces are one; None until graph.toml says, and a note names some."""
    in_tables: bool = True
    """Whether the ids are in tables, so that graph.toml can leave out or merge some."""

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


# ---- Columns of one table ------------------------------------------------------------------------
LISTS = "[]"
"""How a cell such as ["a", "b"], or a list of Parquet, is split."""


@dataclass(frozen=True)
class SelectedRows:
    """Rows of a selection: its columns by what they are, its attributes by their own names."""

    columns: Mapping[str, pa.Array]
    attributes: pa.Table

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))


@dataclass(frozen=True)
class Selection:
    """The columns of a table to read: ids, names and the like, and attributes."""

    table: Table
    columns: Mapping[str, str]
    """What a column is (id, name, source, …) -> what it is called in the table."""
    attributes: Sequence[str] = ()
    all_text: bool = False
    """Whether integers of Parquet are read as text too, as in triples."""
    split: str | None = None
    """What is between several targets in one cell, or `LISTS`; each makes a row."""
    optional: bool = False
    """Whether a row without a target is skipped, as where a foreign key is empty or NULL."""
    spaces: Mapping[str, str] = field(default_factory=dict)
    """What a column is (id, source, target) -> the space of its ids, as neo4j-admin has them: ids are unique in one."""
    kinds: Mapping[str, str] = field(default_factory=dict)
    """An attribute -> what graph.toml says that it is: text, time, …; the others follow from their values."""
    declared_in: str = ""
    """Where a user can say so, for notes; empty if nowhere."""
    missing_ids: Sequence[str] = ()
    """Texts that mean that there is no id; rows with one are skipped."""
    fold_ids: bool = False
    """Whether ids are read in lower case, without spaces around them and with one between words."""

    def read(self, types: Types | None = None) -> SelectedRows:
        """Read all rows; attributes of text tables get their type in `types`, or else the one that values suggest."""
        columns = [*self.columns.values(), *self.attributes]
        return self._select(self.table.read(columns, {**(types or {}), **self._text_types}))[0]

    def read_batches(self, types: Types, report: Report = no_report) -> Iterator[SelectedRows]:
        """Read some rows at a time, an empty batch first; `types` gives the types of the inferred attributes."""
        columns = [*self.columns.values(), *self.attributes]
        for table in self.table.batches(columns, {**types, **self._text_types}, report):
            yield self._select(table)[0]

    def place(self, row: int) -> str:
        """Return where the row of the table is that a selected row (from 0) comes from."""
        if self.is_plain:
            return self.table.place(row)
        before, left, ends = 0, row, replace(self, attributes=())
        for table in self.table.batches(list(self.columns.values()), ends._text_types):
            rows = ends._select(table)[1]
            if left < len(rows):
                return self.table.place(before + int(rows[left]))
            before, left = before + len(table), left - len(rows)
        return self.table.place(row)

    @property
    def is_plain(self) -> bool:
        """Whether each row of the table is a row of the selection."""
        return self.split is None and not (self.optional or self.missing_ids or self.fold_ids)

    @property
    def inferred_attributes(self) -> list[str]:
        """The attributes whose types follow from their values."""
        return [] if self.table.typed else [name for name in self.attributes if name not in self._text_types]

    @property
    def declared_types(self) -> dict[str, pa.DataType]:
        """The types of all other columns, by their names in the table."""
        return self.table.declared_types([*self.columns.values(), *self.attributes], self._text_types)

    @property
    def _text_types(self) -> dict[str, pa.DataType]:
        lists = self.split == LISTS and self.table.is_list(self.columns["target"])
        declared = () if self.table.typed else self.kinds
        columns = [name for role, name in self.columns.items() if not (lists and role == "target")]
        return dict.fromkeys([*columns, *declared], pa.string())

    def _select(self, table: pa.Table) -> tuple[SelectedRows, Rows]:
        """Return the rows of the selection, and for each the row of the table that it comes from."""
        columns = {role: table[name] for role, name in self.columns.items()}
        rows, attributes = np.empty(0, dtype=np.int64), table.select(list(self.attributes))
        if not self.is_plain:  # in a plain selection, all rows are as they are in the table
            columns = {role: column.combine_chunks() for role, column in columns.items()}
            rows = np.arange(len(table))
        if self.split is not None or self.optional:
            parents, targets = split_cells(columns["target"], self.split, NULLS if self.optional else ())
            rows = parents.to_numpy(zero_copy_only=False)
            columns = {role: column.take(parents) for role, column in columns.items()} | {"target": targets}
            attributes = attributes.take(parents)
        for role in ("id", "source", "target"):
            if role in columns:
                columns[role] = clean_ids(as_ids(columns[role], self.columns[role]), (), self.fold_ids)
        if self.missing_ids:
            kept = self._without_missing(columns)
            rows, attributes = rows[kept], attributes.take(pa.array(kept))
            columns = {role: column.take(pa.array(kept)) for role, column in columns.items()}
        as_text = columns if self.all_text else ("name",)
        columns |= {role: columns[role].cast(pa.string()) for role in as_text if role in columns}
        return SelectedRows(columns, attributes), rows

    def _without_missing(self, columns: Mapping[str, pa.Array]) -> Rows:
        """Return the rows without an id in `missing_ids`."""
        kept = np.ones(len(next(iter(columns.values()))), dtype=np.bool_)
        for role in ("id", "source", "target"):
            if role in columns and pa.types.is_string(columns[role].type):
                kept &= ~are_words(columns[role], self.missing_ids, self.fold_ids)
        return np.flatnonzero(kept).astype(np.int64)


NULLS = ("NULL", "\\N")
"""What databases write into a text table where a foreign key has no value."""


def split_cells(cells: pa.Array, split: str | None, missing: Sequence[str] = ()) -> tuple[pa.Array, pa.Array]:
    """Return the parts of all cells that are not empty or `missing`, after the number of the cell that each is in.

    >>> [part.to_pylist() for part in split_cells(pa.array(["a| b", "", None, "c"]), "|")]
    [[0, 0, 3], ['a', 'b', 'c']]
    """
    if split == LISTS and not is_list_type(cells.type):
        encoded = cells.dictionary_encode()
        lists = [parse_list(cell) for cell in encoded.dictionary.to_pylist()]
        cells = pa.array(lists, pa.list_(pa.string())).take(encoded.indices)
    elif split is not None and split != LISTS:
        cells = pc.split_pattern(cells.cast(pa.string()), split)
    parents, parts = pa.array(np.arange(len(cells))), cells
    if is_list_type(cells.type):
        parents, parts = pc.list_parent_indices(cells), pc.list_flatten(cells)
        if pa.types.is_large_string(parts.type) or pa.types.is_integer(parts.type):
            parts = parts.cast(pa.int64() if pa.types.is_integer(parts.type) else pa.string())
    if split is not None and pa.types.is_string(parts.type):
        parts = pc.utf8_trim_whitespace(parts)
    filled = np.ones(len(parts), dtype=np.bool_)
    filled[missing_ids(parts)] = False
    if missing and pa.types.is_string(parts.type):
        filled &= ~pc.is_in(parts, pa.array(missing)).to_numpy(zero_copy_only=False)
    if pa.types.is_floating(parts.type):
        filled &= ~np.isnan(parts.to_numpy(zero_copy_only=False))
    return parents.cast(pa.int64()).filter(pa.array(filled)), parts.filter(pa.array(filled))


_LIST_ITEM = re.compile(r"""\s*(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"|([^,'"]+))\s*(?:,|$)""")


def parse_list(cell: str | None) -> list[str] | None:
    """Return the items of a list as JSON or Python writes it, or None if the cell is not such a list.

    >>> parse_list('["a", "b"]'), parse_list("['c', 1]"), parse_list("d")
    (['a', 'b'], ['c', '1'], None)
    """
    text = (cell or "").strip()
    if not (text.startswith("[") and text.endswith("]")):
        return None
    try:
        items = json.loads(text)
    except (ValueError, RecursionError):
        inner = text[1:-1].strip()
        matches = list(_LIST_ITEM.finditer(inner))
        if sum(len(match[0]) for match in matches) != len(inner):
            return None
        return [next(part for part in match.groups() if part is not None).strip() for match in matches]
    if not all(isinstance(item, str | int) for item in items):
        return None
    return [str(item) for item in items]


def existing(**columns: str | None) -> dict[str, str]:
    """Return the columns that a table has, those that are not None."""
    return {name: column for name, column in columns.items() if column is not None}


# ---- The tables of a graph -----------------------------------------------------------------------
@dataclass(frozen=True)
class NodePlan:
    """A table of nodes: id, perhaps name and type, attributes."""

    node_type: str
    """The type of all nodes, or, if the column `type` has types, nothing that counts."""
    selection: Selection


@dataclass(frozen=True)
class EdgePlan:
    """A table of edges: source, target, perhaps weight."""

    relation: Relation
    """Where ids are shared, only its name counts, and that only if no column `relation` has names."""
    selection: Selection


@dataclass(frozen=True)
class SharedIds:
    """Ids that no two nodes of any types share, so that an edge names its ends by id alone, and nodes have their types.

    Edges may say the types and names of their ends themselves, in the columns source_type, target_type, source_name
    and target_name; then nodes of two types may share an id.
    """

    node_type: str = "entity"
    """The type of nodes that nothing else gives a type."""
    prefixed: bool = False
    """Whether the types of nodes are the prefixes of their ids, as in Gene::2157."""
    labels: str | None = None
    """What is between several types of one node, of which one is read; the prefix `biolink:` is left out then."""


@dataclass(frozen=True)
class Plan:
    """What the tables of a source hold: nodes of some types, and the edges of relations.

    The nodes of a type without a table are those that edges name.
    """

    nodes: Sequence[NodePlan]
    edges: Sequence[EdgePlan]
    options: ReadOptions
    shared: SharedIds | None = None
    """Set if ids are shared; otherwise each type has ids of its own."""

    @property
    def selections(self) -> list[Selection]:
        """The columns of the node tables, then those of the edge tables."""
        return [*(node.selection for node in self.nodes), *(edge.selection for edge in self.edges)]

    @property
    def tables(self) -> list[Table]:
        """The node tables, then the edge tables; one may give several relations."""
        return [selection.table for selection in self.selections]

"""The plan of a graph: which columns of which tables hold its nodes and edges, and the checks of their rows.

`io.assemble` follows it, into memory or, streamed through a database, into a store; tests/test_readers_contract.py
holds the two to the same graph and the same errors.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from neupath._runtime.progress import Progress, no_progress
from neupath.errors import GraphError, listed
from neupath.graph.hin import Duplicates, Floats
from neupath.graph.metapath import Relation
from neupath.graph.nodes import Rows
from neupath.graph.notations import EMPTY_WORDS, UNKNOWN_WORDS
from neupath.io.tables import Table, is_list_type

Place = Callable[[int], str]
"""Returns the file and line of a row of a table, for error messages."""


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

    def read(self, types: Mapping[str, pa.DataType] | None = None) -> SelectedRows:
        """Read all rows; attributes of text tables get their type in `types`, or else the one that values suggest."""
        columns = [*self.columns.values(), *self.attributes]
        return self._select(self.table.read(columns, {**(types or {}), **self._text_types}))[0]

    def read_batches(
        self, types: Mapping[str, pa.DataType], progress: Progress = no_progress, stage: str = "reading"
    ) -> Iterator[SelectedRows]:
        """Read some rows at a time, an empty batch first; `types` gives the types of the inferred attributes."""
        columns = [*self.columns.values(), *self.attributes]
        for table in self.table.batches(columns, {**types, **self._text_types}, progress, stage):
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
        columns = {role: table[name].combine_chunks() for role, name in self.columns.items()}
        rows, attributes = np.arange(len(table)), table.select(list(self.attributes))
        if self.split is not None or self.optional:
            parents, targets = split_cells(columns["target"], self.split, NULLS if self.optional else ())
            rows = parents.to_numpy(zero_copy_only=False)
            columns = {role: column.take(parents) for role, column in columns.items()} | {"target": targets}
            attributes = attributes.take(parents)
        for role in ("id", "source", "target"):
            if role in columns:
                columns[role] = clean_ids(_as_ids(columns[role], self.columns[role]), (), self.fold_ids)
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
                kept &= ~_are_missing(columns[role], self.missing_ids, self.fold_ids)
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


def _as_ids(values: pa.Array, column: str) -> pa.Array:
    """Return ids as texts or integers; raise if they are neither."""
    if pa.types.is_string(values.type) or pa.types.is_int64(values.type):
        return values
    if pa.types.is_null(values.type):
        return values.cast(pa.string())
    if pa.types.is_floating(values.type):  # pandas turns integers into fractions if one is missing
        numbers = pc.if_else(pc.is_nan(values), None, values)
        if pc.all(pc.equal(numbers, pc.floor(numbers))).as_py() is not False:
            return numbers.cast(pa.int64())
    raise GraphError(f"column {column!r} holds {values.type} values, but ids are texts or integers; convert them first")


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


def place_in_files(places: Sequence[Place], lengths: Sequence[int]) -> Place:
    """Return a function that finds the file and line of a row in several files that were read one after the other."""

    def find(row: int) -> str:
        left = row
        for place, length in zip(places, lengths, strict=False):
            if left < length:
                return place(left)
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
        inexact = _first_inexact(column)
        if inexact is not None:
            raise inexact_weight(place(inexact), column[inexact].as_py()) from error
        raise GraphError(f"{place(0)}: weights of type {column.type} are not numbers") from error
    bad = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if len(bad):
        raise bad_weight(place(int(bad[0])), column[int(bad[0])].as_py())
    return np.asarray(weights, dtype=np.float64)


def _first_inexact(column: pa.Array) -> int | None:
    """Return the row of the first integer that a float cannot hold exactly, or None."""
    if not pa.types.is_integer(column.type):
        return None
    numbers = column.to_pylist()
    return next(
        (row for row, number in enumerate(numbers) if number is not None and int(float(number)) != number), None
    )


# ---- Ids that look empty, and ids that differ only by case or spaces -------------------------------
_EMPTY_IDS = sorted(
    {
        spelled
        for word in (*EMPTY_WORDS[1:], *UNKNOWN_WORDS)
        for spelled in (word, word.upper(), word.title(), word.replace("nan", "NaN"))
    }
)
_EMPTY_PHRASE = r"^\((no|none|not|without) [^()]{1,40}\)$"
"""Also looks empty: (no genres listed), (not given)."""
_SPACES = r"[\s\x{a0}\x{2000}-\x{200b}\x{202f}\x{3000}\x{feff}]+"
_SHOWN_IDS = 4


def fold(texts: pa.Array) -> pa.Array:
    """Return texts in lower case, without spaces around them and with one between words.

    >>> fold(pa.array([" Ann  LEE", "ann lee"])).to_pylist()
    ['ann lee', 'ann lee']
    """
    is_ascii = pc.string_is_ascii(texts)
    plain_letters = pc.all(is_ascii, min_count=0).as_py()
    lower = pc.ascii_lower(texts) if plain_letters else pc.utf8_lower(texts)
    lower = pc.ascii_trim_whitespace(lower) if plain_letters else pc.utf8_trim_whitespace(lower)
    odd = [pc.match_substring(lower, space) for space in ("  ", "\t", "\n")]
    odd += [] if plain_letters else [pc.invert(is_ascii)]
    rows = np.flatnonzero(np.any([each.fill_null(False).to_numpy(zero_copy_only=False) for each in odd], axis=0))
    if not len(rows):
        return lower
    spaced = np.zeros(len(lower), dtype=np.bool_)
    spaced[rows] = True
    plain = pc.utf8_trim(pc.replace_substring_regex(lower.take(pa.array(rows)), _SPACES, " "), " ")
    return pc.replace_with_mask(lower, pa.array(spaced), plain)


def clean_ids(ids: pa.Array, missing: Sequence[str], is_folded: bool) -> pa.Array:
    """Return ids as graph.toml says that they are read; those that mean none are null."""
    if not pa.types.is_string(ids.type):
        return ids
    cleaned = fold(ids) if is_folded else ids
    return pc.if_else(pa.array(_are_missing(ids, missing, is_folded)), None, cleaned) if missing else cleaned


def _are_missing(ids: pa.Array, missing: Sequence[str], is_folded: bool) -> NDArray[np.bool_]:
    words = pa.array(list(missing), pa.string())
    found: NDArray[np.bool_] = pc.is_in(
        fold(ids) if is_folded else ids, value_set=fold(words) if is_folded else words
    ).to_numpy(zero_copy_only=False)
    return found


def empty_looking(ids: pa.Array) -> Rows:
    """Return the rows of the ids that look like an empty cell, such as NULL, N/A or -."""
    if not pa.types.is_string(ids.type) or not len(ids):
        return np.empty(0, dtype=np.int64)
    used = _bytes_used(ids)
    words = pc.utf8_trim_whitespace(ids) if used[_ODD_BYTES].any() else ids
    looks_empty = pc.is_in(words, value_set=pa.array(_EMPTY_IDS)).to_numpy(zero_copy_only=False)
    if used[ord("(")]:
        phrases = np.flatnonzero(pc.starts_with(words, "(").to_numpy(zero_copy_only=False))
        found = pc.match_substring_regex(fold(words.take(pa.array(phrases))), _EMPTY_PHRASE)
        looks_empty = looks_empty.copy()
        looks_empty[phrases] |= found.to_numpy(zero_copy_only=False)
    return np.flatnonzero(looks_empty).astype(np.int64)


def find_twins(ids: pa.Array) -> tuple[int, Rows]:
    """Return how many distinct ids are another one but for case or spaces, and the rows of the first two that are."""
    if not pa.types.is_string(ids.type) or not len(ids):
        return 0, np.empty(0, dtype=np.int64)
    used = _bytes_used(ids)
    if not used[_ODD_BYTES].any() and not (used[_CAPITALS].any() and used[_SMALL_LETTERS].any()):
        return 0, np.empty(0, dtype=np.int64)
    encoded = fold(ids).dictionary_encode()
    if len(encoded.dictionary) == len(ids):
        return 0, np.empty(0, dtype=np.int64)
    codes = encoded.indices.to_numpy(zero_copy_only=False)
    first = int(np.flatnonzero(np.bincount(codes)[codes] > 1)[0])
    return len(ids) - len(encoded.dictionary), np.flatnonzero(codes == codes[first])[:2].astype(np.int64)


_ODD_BYTES = [*range(33), *range(127, 256)]
"""White space, and the parts of letters that are not ASCII."""
_CAPITALS, _SMALL_LETTERS = slice(ord("A"), ord("Z") + 1), slice(ord("a"), ord("z") + 1)


def _bytes_used(texts: pa.Array) -> NDArray[np.bool_]:
    """Mark the bytes that occur in texts; shape (256,). Most ids are ruled out by them alone, which is quick."""
    _, starts, content = texts.buffers()
    if content is None:
        return np.zeros(256, dtype=np.bool_)
    ends = np.frombuffer(starts, dtype=np.int32)[[texts.offset, texts.offset + len(texts)]]
    return np.bincount(np.frombuffer(content, dtype=np.uint8)[ends[0] : ends[1]], minlength=256) > 0


def similar_id(value: object, ids: pa.Array) -> str | None:
    """Return the first of some ids that is a value but for case or spaces, or else the same number, as 7 is 007."""
    if not isinstance(value, str) or not (pa.types.is_string(ids.type) or pa.types.is_integer(ids.type)):
        return None
    texts = ids.cast(pa.string())
    for alike in (fold, _plain_numbers):
        row = pc.index(alike(texts), alike(pa.array([value]))[0]).as_py()
        if row >= 0:
            return str(texts[row].as_py())
    return None


def _plain_numbers(texts: pa.Array) -> pa.Array:
    """Return whole numbers without zeros in front, a fraction of zeros, or commas before thousands."""
    grouped = pc.match_substring_regex(texts, r"^[0-9]{1,3}(,[0-9]{3})+$")
    plain = pc.if_else(grouped, pc.replace_substring(texts, ",", ""), texts)
    return pc.replace_substring_regex(plain, r"^0*([0-9]+)(\.0+)?$", r"\1")


def note_empty_ids(node_type: str, counts: Mapping[str, int], options: ReadOptions) -> list[str]:
    """Note the ids of a type that look empty, each with the number of its edges."""
    if options.missing_ids is not None or not counts:
        return []
    shown = list(counts)[:_SHOWN_IDS]
    more = f" and {len(counts) - len(shown)} more" if len(counts) > len(shown) else ""
    several = len(counts) > 1
    edges = (f"{name!r} ({counts[name]:,} edge{'s' * (counts[name] != 1)})" for name in shown)
    what = f"the ids {listed(edges)}{more} look like empty cells" if several else (
        f"the id {next(edges)} looks like an empty cell"
    )  # fmt: skip
    given = json.dumps(list(counts), ensure_ascii=False)
    leave = f"missing_ids = {given} in graph.toml leaves out {'their' if several else 'its'} rows, and "
    keep = f"missing_ids = [] {'' if options.in_tables else 'in graph.toml '}keeps {'them' if several else 'it'}"
    return [f"{node_type}: {what}; {leave if options.in_tables else ''}{keep}"]


def note_twins(node_type: str, count: int, pair: Sequence[str], options: ReadOptions) -> list[str]:
    """Note how many ids of a type differ from another one only by case or spaces, with the first two."""
    if options.fold_ids is not None or not count:
        return []
    differ = "ids differ from others" if count > 1 else "id differs from another"
    merge = "fold_ids = true in graph.toml makes them one, and " if options.in_tables else ""
    keep = f"fold_ids = false {'' if options.in_tables else 'in graph.toml '}keeps them apart"
    example = f"{pair[0]!r} and {pair[1]!r}"
    return [f"{node_type}: {count:,} {differ} only by case or spaces, such as {example}; {merge}{keep}"]


def find_fractions(ids: pa.Array) -> Rows:
    """Return the rows of the ids such as 1.0 where 1 is an id too, as if one file had its ids as fractions."""
    if not pa.types.is_string(ids.type) or not len(ids) or not _bytes_used(ids)[ord(".")]:
        return np.empty(0, dtype=np.int64)
    rows = np.flatnonzero(pc.match_substring_regex(ids, r"^[0-9]+\.0$").to_numpy(zero_copy_only=False))
    whole = pc.utf8_slice_codeunits(ids.take(pa.array(rows)), 0, -2)
    found: Rows = rows[pc.is_in(whole, value_set=ids).to_numpy(zero_copy_only=False)]
    return found


def note_fractions(node_type: str, count: int, sample: str, options: ReadOptions) -> list[str]:
    """Note how many ids of a type are another one with .0 behind it, with the first."""
    if options.fold_ids is not None or not count:
        return []
    are = "ids are others" if count > 1 else "id is another"
    keep = "fold_ids = false in graph.toml keeps them apart"
    return [f"{node_type}: {count:,} {are} with .0 behind, such as {sample!r}; write them alike, or {keep}"]


# ---- Errors of one row, shared by the three readers; a place is the file and the line ------------
UNIQUE_IDS = (
    "keep one row for each node, or name another id under [nodes] or the two ends of an edge under [[edges]] in a "
    "graph.toml (‹config›)"
)
"""What to do where the id of a node is repeated."""


def empty_id(place: str) -> GraphError:
    """Return the error of a node without an id."""
    return GraphError(f"{place}: the node has an empty id; every node needs one; fill it in, or leave the row out")


def repeated_id(place: str, value: object) -> GraphError:
    """Return the error of a node with the id of another."""
    return GraphError(f"{place}: node id {value!r} is repeated; node ids must be unique; {UNIQUE_IDS}")


def empty_cell(place: str, what: str) -> GraphError:
    """Return the error of a row without a type or a relation."""
    return GraphError(f"{place}: the {what} is empty; every row needs one")


def empty_end(place: str, node_type: str) -> GraphError:
    """Return the error of an edge without the id of one end."""
    return GraphError(
        f"{place}: the edge has an empty {node_type} id; every edge needs two ids; fill it in, or leave the row out"
    )


def unknown_end(
    place: str, node_type: str, value: object, count: int, where: str | None = None, similar: str | None = None
) -> GraphError:
    """Return the error of an edge to a node that is not in `where`, by default the node table of its type.

    `similar` is the id there that differs only by case or spaces, or is the same number in another spelling.
    """
    table = where or f"node table of {node_type}"
    hint = "add it there, or leave the edge out"
    if isinstance(value, str) and len(empty_looking(pa.array([value]))):
        hint = f"{hint}; missing_ids = [{json.dumps(value, ensure_ascii=False)}] in graph.toml leaves out such rows"
    elif similar is not None and fold(pa.array([similar])) != fold(pa.array([str(value)])):
        hint = f"did you mean {similar!r}? write the id alike in both tables"
    elif similar is not None:
        hint = (
            f"did you mean {similar!r}? the ids differ only by case or spaces, and fold_ids = true in graph.toml makes "
            f"them one"
        )
    return GraphError(
        f"{place}: the edge leads to {node_type} {value!r}, which is not in the {table} "
        f"({count:,} such edge ends in all); {hint}"
    )


def bad_weight(place: str, value: object) -> GraphError:
    """Return the error of a weight that is not a finite number of 0 or more."""
    comma = re.fullmatch(r"[0-9.]*,[0-9]+", str(value).strip())
    hint = ", with a point and no comma in them" if comma else ""
    return GraphError(f"{place}: weight {value!r} is not allowed; weights are finite numbers, 0 or more{hint}")


def inexact_weight(place: str, value: int) -> GraphError:
    """Return the error of an integer weight that a float cannot hold."""
    return GraphError(
        f"{place}: weight {value} cannot be held exactly, because weights are floats, which are exact up to 2^53; "
        f"round it, or scale the weights down"
    )

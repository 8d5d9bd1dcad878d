"""Ids and weights as tables write them: their checks, the notes on ids that look wrong, and the errors of a bad row."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from neupath.errors import GraphError, listed
from neupath.graph.edge_attributes import decimals_to_floats
from neupath.graph.hin import Floats
from neupath.graph.nodes import Rows
from neupath.graph.notations import EMPTY_WORDS, UNKNOWN_WORDS
from neupath.io.tables import Place

if TYPE_CHECKING:
    from neupath.io.plan import ReadOptions

# ---- Reading ids ---------------------------------------------------------------------------------
INTEGERS = r"^(0|-?[1-9][0-9]{0,17})$"
_SPACES = r"[\s\x{a0}\x{2000}-\x{200b}\x{202f}\x{3000}\x{feff}]+"


def as_ids(values: pa.Array, column: str) -> pa.Array:
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
    return pc.if_else(pa.array(are_words(ids, missing, is_folded)), None, cleaned) if missing else cleaned


def are_words(ids: pa.Array, words: Sequence[str], is_folded: bool) -> NDArray[np.bool_]:
    """Mark the ids that are one of some words."""
    wanted = pa.array(list(words), pa.string())
    if is_folded:
        ids, wanted = fold(ids), fold(wanted)
    marked: NDArray[np.bool_] = pc.is_in(ids, value_set=wanted).to_numpy(zero_copy_only=False)
    return marked


def missing_ids(ids: pa.Array) -> Rows:
    """Return the rows whose id is null or an empty text."""
    empty = pc.is_null(ids)
    if pa.types.is_string(ids.type):
        empty = pc.or_(empty, pc.fill_null(pc.equal(ids, ""), True))
    return np.flatnonzero(empty.to_numpy(zero_copy_only=False)).astype(np.int64)


Numbers = NDArray[np.integer]


class Numbering:
    """Distinct values, numbered in order of appearance, batch by batch.

    Integers become texts once a batch of texts comes.

    >>> ids = Numbering()
    >>> ids.number(pa.array(["b", "a"])).tolist(), ids.number(pa.array(["c", "b"])).tolist(), ids.values.to_pylist()
    ([0, 1], [2, 0], ['b', 'a', 'c'])
    """

    def __init__(self) -> None:
        self.values: pa.Array = pa.nulls(0)

    def __len__(self) -> int:
        return len(self.values)

    def number(self, column: Any) -> Numbers:
        """Return the number of each value, with new ones for values that are new; null has none of its own."""
        if pa.types.is_null(self.values.type):
            self.values = self.values.cast(column.type)
        if self.values.type != column.type:
            self.values, column = self.values.cast(pa.string()), column.cast(pa.string())
        if not len(column):
            return np.empty(0, dtype=np.int32)
        if not len(self):
            chunked = column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])
            chunks = chunked.dictionary_encode().chunks
            self.values = chunks[-1].dictionary
            return np.concatenate([chunk.indices.fill_null(0).to_numpy() for chunk in chunks])
        numbers = self.find(column)
        new = numbers < 0
        if new.any():
            more = Numbering()
            numbers = numbers.copy()
            numbers[new] = len(self) + more.number(column.filter(pa.array(new)))
            try:
                self.values = pa.concat_arrays([self.values, more.values])
            except pa.ArrowInvalid as error:
                raise GraphError("the ids take more than 2 GiB of text; give nodes shorter ids, or integers") from error
        return numbers

    def find(self, column: Any) -> Numbers:
        """Return the number of each value, or -1 if it has none."""
        values = self.values
        if values.type != column.type:
            values, column = values.cast(pa.string()), column.cast(pa.string())
        found = pc.index_in(column, value_set=values)
        numbers: Numbers = (found.fill_null(-1) if found.null_count else found).to_numpy()
        return numbers


def first_repeat(ids: pa.Array) -> int | None:
    """Return the first row with the id of another above it, or None.

    >>> first_repeat(pa.array(["a", "b", "b", "a"]))
    2
    """
    are_first = are_new(Numbering().number(ids), 0)
    return None if are_first.all() else int(np.argmin(are_first))


def are_new(numbers: Numbers, known: int) -> NDArray[np.bool_]:
    """Mark the rows in which a number from `known` on occurs for the first time; new numbers come in order."""
    marks: NDArray[np.bool_] = np.diff(np.maximum.accumulate(np.maximum(numbers, known - 1)), prepend=known - 1) > 0
    return marks


def all_read_as_integers(texts: pa.Array) -> bool:
    """Whether all texts are integers that print the same again."""
    return bool(pc.all(pc.match_substring_regex(texts, INTEGERS)).as_py() is not False)


def read_as_integers(ids: pa.Array) -> pa.Array:
    """Return texts as integers if all of them read as integers."""
    is_text = pa.types.is_string(ids.type) and len(ids) > 0
    return ids.cast(pa.int64()) if is_text and all_read_as_integers(ids) else ids


# ---- Weights -------------------------------------------------------------------------------------
_WEIGHT = r"^\+?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"


def to_weights(column: pa.Array | None, place: Place) -> Floats | None:
    """Return weights as numbers; raise at the first that is not a finite number of 0 or more."""
    if column is None:
        return None
    numbers = column
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        texts = pc.utf8_trim_whitespace(column)
        numbers = pc.utf8_ltrim(pc.if_else(pc.match_substring_regex(texts, _WEIGHT), texts, None), "+")
    elif pa.types.is_decimal(column.type):
        numbers = decimals_to_floats(column)
    try:
        weights = pc.cast(numbers, pa.float64()).to_numpy(zero_copy_only=False)
    except pa.ArrowException as error:
        values = column.to_pylist() if pa.types.is_integer(column.type) else ()
        for row, value in enumerate(values):
            if value is not None and int(float(value)) != value:
                raise GraphError(
                    f"{place(row)}: weight {value} cannot be held exactly, because weights are floats, which are "
                    f"exact up to 2^53; round it, or scale the weights down"
                ) from error
        raise GraphError(f"{place(0)}: weights of type {column.type} are not numbers") from error
    bad = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if len(bad):
        raise bad_weight(place(int(bad[0])), column[int(bad[0])].as_py())
    return np.asarray(weights, dtype=np.float64)


# ---- Ids that look empty, and ids that look like others ------------------------------------------
_EMPTY_IDS = sorted(
    {
        spelled
        for word in (*EMPTY_WORDS[1:], *UNKNOWN_WORDS)
        for spelled in (word, word.upper(), word.title(), word.replace("nan", "NaN"))
    }
)
_EMPTY_PHRASE = r"^\((no|none|not|without) [^()]{1,40}\)$"
"""Also looks empty: (no genres listed), (not given)."""
_ODD_BYTES = [*range(33), *range(127, 256)]
"""White space, and the parts of letters that are not ASCII."""
_CAPITALS, _SMALL_LETTERS = slice(ord("A"), ord("Z") + 1), slice(ord("a"), ord("z") + 1)
_SHOWN_IDS = 4


def note_ids(node_type: str, ids: pa.Array, options: "ReadOptions", count_edges: Callable[[int], int]) -> list[str]:
    """Return notes on the ids of a type that look empty, and on those that may mean another one.

    `count_edges` counts the edges at a node. Ids that are in no table cannot be left out or merged.
    """
    notes, in_tables = [], options.in_tables
    rows = empty_looking(ids).tolist() if options.missing_ids is None else []
    if rows:
        notes.append(_note_empty_looking({ids[row].as_py(): count_edges(row) for row in rows}, in_tables))
    count, pair = find_twins(ids) if options.fold_ids is None else (0, [])
    if count:
        differ = "ids differ from others" if count > 1 else "id differs from another"
        merge = "fold_ids = true in graph.toml makes them one, and " if in_tables else ""
        keep = f"fold_ids = false {'' if in_tables else 'in graph.toml '}keeps them apart"
        notes.append(f"{count:,} {differ} only by case or spaces, such as {pair[0]!r} and {pair[1]!r}; {merge}{keep}")
    count, sample = find_fractions(ids) if options.fold_ids is None else (0, "")
    if count:
        are = "ids are others" if count > 1 else "id is another"
        keep = "fold_ids = false in graph.toml keeps them apart"
        notes.append(f"{count:,} {are} with .0 behind, such as {sample!r}; write them alike, or {keep}")
    return [f"{node_type}: {note}" for note in notes]


def _note_empty_looking(counts: Mapping[str, int], in_tables: bool) -> str:
    """Return the note on the ids that look empty, each with the number of its edges."""
    shown = list(counts)[:_SHOWN_IDS]
    more = f" and {len(counts) - len(shown)} more" if len(counts) > len(shown) else ""
    edges = [f"{name!r} ({counts[name]:,} edge{'s' * (counts[name] != 1)})" for name in shown]
    what, their, them = f"the id {edges[0]} looks like an empty cell", "its", "it"
    if len(counts) > 1:
        what, their, them = f"the ids {listed(edges)}{more} look like empty cells", "their", "them"
    given = json.dumps(list(counts), ensure_ascii=False)
    leave = f"missing_ids = {given} in graph.toml leaves out {their} rows, and " if in_tables else ""
    return f"{what}; {leave}missing_ids = [] {'' if in_tables else 'in graph.toml '}keeps {them}"


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


def find_twins(ids: pa.Array) -> tuple[int, list[str]]:
    """Count the ids that equal an earlier one except for case or spaces; return the first such pair, too."""
    if not pa.types.is_string(ids.type) or not len(ids):
        return 0, []
    used = _bytes_used(ids)
    if not used[_ODD_BYTES].any() and not (used[_CAPITALS].any() and used[_SMALL_LETTERS].any()):
        return 0, []
    encoded = fold(ids).dictionary_encode()
    if len(encoded.dictionary) == len(ids):
        return 0, []
    codes = encoded.indices.to_numpy(zero_copy_only=False)
    first = int(np.flatnonzero(np.bincount(codes)[codes] > 1)[0])
    pair = np.flatnonzero(codes == codes[first])[:2]
    return len(ids) - len(encoded.dictionary), ids.take(pa.array(pair)).to_pylist()


def find_fractions(ids: pa.Array) -> tuple[int, str]:
    """Count the ids such as 1.0 where 1 is an id, too; return the first of them, too."""
    if not pa.types.is_string(ids.type) or not len(ids) or not _bytes_used(ids)[ord(".")]:
        return 0, ""
    candidates = ids.filter(pc.match_substring_regex(ids, r"^[0-9]+\.0$"))
    found = candidates.filter(pc.is_in(pc.utf8_slice_codeunits(candidates, 0, -2), value_set=ids))
    return len(found), found[0].as_py() if len(found) else ""


def _bytes_used(texts: pa.Array) -> NDArray[np.bool_]:
    """Mark the bytes that occur in texts; shape (256,). Most ids are ruled out by them alone, which is quick."""
    _, starts, content = texts.buffers()
    if content is None:
        return np.zeros(256, dtype=np.bool_)
    ends = np.frombuffer(starts, dtype=np.int32)[[texts.offset, texts.offset + len(texts)]]
    return np.bincount(np.frombuffer(content, dtype=np.uint8)[ends[0] : ends[1]], minlength=256) > 0


def similar_id(value: object, ids: pa.Array) -> str | None:
    """Return the first id that equals a value except for case or spaces, or else as a number, as 7 equals 007."""
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


# ---- Errors of one row; a place is the file and the line -----------------------------------------
def empty_id(place: str) -> GraphError:
    """Return the error of a node without an id."""
    return GraphError(f"{place}: the node has an empty id; every node needs one; fill it in, or leave the row out")


def repeated_id(place: str, value: object) -> GraphError:
    """Return the error of a node with the id of another."""
    return GraphError(
        f"{place}: node id {value!r} is repeated; node ids must be unique; keep one row for each node, or name another "
        f"id under [nodes] or the two ends of an edge under [[edges]] in a graph.toml (‹config›)"
    )


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

"""Columns of tables that become attributes: which ones those of edges are, what their values are, and notes on them."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from neupath.errors import GraphError, SourceError, did_you_mean, listed
from neupath.graph.edge_attributes import (
    TEXT,
    common_type,
    from_unix,
    kept_type,
    names_time,
    to_attribute,
    unix_unit_of,
)
from neupath.graph.hin import Floats
from neupath.graph.notations import (
    KIND_WORDS,
    Fit,
    are_perhaps_thousands,
    cast_values,
    count_empty_words,
    find_fit,
    format_problem,
    may_be_values,
    toml_key,
)
from neupath.io.column_types import TIMES, ColumnType, convert
from neupath.io.columns import find_ends, is_end_role, is_measure, snake
from neupath.io.plan import Place, Selection
from neupath.io.tables import ArrowTable, Table, TableFile

# ---- Which columns ------------------------------------------------------------------------------
_MOST_ATTRIBUTES = 64
_LONG_TEXT = 200
"""Letters that the texts of a column have on average from which on they are prose, and read only if graph.toml says."""
_UNIX_NAMES = {"s": "seconds", "ms": "milliseconds", "us": "microseconds"}
_WEIGHT_REASON = "weight is the name of the weight itself, and that is another column"


@dataclass(frozen=True)
class ChosenColumns:
    """The columns of a table that are attributes of its edges, and why others are not."""

    columns: Sequence[str] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)
    kinds: Mapping[str, str] = field(default_factory=dict)

    def notes(self, label: str) -> list[str]:
        """Return a note for each reason."""
        by_reason: dict[str, list[str]] = {}
        for column, reason in self.left_out.items():
            by_reason.setdefault(reason, []).append(column)
        return [f"{label}: {_were(columns)} left out: {reason}" for reason, columns in by_reason.items()]


def _were(columns: Sequence[str]) -> str:
    return f"the columns {listed(columns, 4)} were" if columns[1:] else f"the column {columns[0]} was"


def choose_columns(
    table: Table,
    taken: Iterable[str],
    weight: str | None = None,
    named: Sequence[str] | None = None,
    kinds: Mapping[str, str] | None = None,
) -> ChosenColumns:
    """Choose the attributes of edges: the `named` columns, or else all that are not `taken` and can be kept.

    The column of the weight is an attribute too, unless it is called weight: that name always stands for the weight.
    """
    words = checked_kinds(table, kinds or {})
    if named is not None:
        columns = [table.column(column, "attributes") for column in named]
        for column in columns:
            if column != weight and (reason := _why_not(table, column)):
                raise SourceError(f"{table.title}: {column} cannot be an attribute of edges: {reason}")
        columns = [column for column in columns if attribute_name(column) != "weight"]
        return ChosenColumns(columns, {}, {column: word for column, word in words.items() if column in columns})
    used = {*taken} - {weight}
    others = [column for column in table.columns if column and column not in used and not _is_weight(column, weight)]
    left_out = {c: why for c in others if c != weight and c not in words and (why := _why_left_out(table, c))}
    names = [attribute_name(column) for column in others]
    repeated = [column for at, column in enumerate(others) if names[at] in names[:at]]
    left_out |= dict.fromkeys(repeated, "another column has the same name")
    kept = [column for column in others if column not in left_out]
    too_many = f"edges have at most {_MOST_ATTRIBUTES} attributes unless graph.toml names them under attributes"
    left_out |= dict.fromkeys(kept[_MOST_ATTRIBUTES:], too_many)
    return ChosenColumns(kept[:_MOST_ATTRIBUTES], left_out, words)


def _is_weight(column: str, weight: str | None) -> bool:
    return column == weight and attribute_name(column).lower() == "weight"


def checked_kinds(table: Table, kinds: Mapping[str, str]) -> dict[str, str]:
    """Return what graph.toml says that columns are; raise if the table has no such column, or the word says nothing."""
    names = {attribute_name(column): column for column in table.columns}
    columns = {name: table.column(names.get(name, name), "attribute_types") for name in kinds}
    return {columns[name]: checked_kind(name, word) for name, word in kinds.items()}


def node_kinds(table: Table, kinds: Mapping[str, str], roles: Mapping[str, str]) -> dict[str, str]:
    """Return what graph.toml says that attributes of nodes are; raise if it says so of the id, name or type."""
    words = checked_kinds(table, kinds)
    for role, column in roles.items():
        if column in words:
            raise SourceError(
                f"attribute_types in graph.toml says that {column} is {words[column]!r}, but it is the {role} of the "
                f"nodes; name attributes only"
            )
    return words


def checked_kind(column: str, word: str) -> str:
    """Return what graph.toml says that a column is; raise if the word says nothing."""
    problem = format_problem(word) if "%" in word else None
    if problem is not None:
        raise SourceError(
            f"attribute_types in graph.toml says that {column} has the format {word!r}, but {problem}; write how a "
            f"date looks, such as '%d.%m.%Y' for 31.12.2019"
        )
    if word not in KIND_WORDS and "%" not in word:
        raise SourceError(
            f"attribute_types in graph.toml says that {column} is {word!r}; it can be {listed(KIND_WORDS, 11)} or a "
            f"format of dates such as '%d.%m.%Y'{did_you_mean(word, KIND_WORDS)}"
        )
    return word


def _why_left_out(table: Table, column: str) -> str | None:
    if attribute_name(column).lower() == "weight":
        return _WEIGHT_REASON
    if _describes_end(table, column):
        return "what describes an end is no attribute of the edge, unless attributes in graph.toml names it"
    if (reason := _why_not(table, column)) is not None:
        return reason
    cells = [cell for cell in table.sample[column] if cell]
    if sum(map(len, cells)) > _LONG_TEXT * max(1, len(cells)):
        return "its texts are long; attributes in graph.toml would read it"
    return None


def _why_not(table: Table, column: str) -> str | None:
    """Return why a column cannot be an attribute of edges, or None."""
    if attribute_name(column) == "weight":
        return _WEIGHT_REASON
    declared = table.declared_types([column], {}).get(column) if table.typed else None
    if declared is not None and kept_type(declared) is None:
        return f"its values are of type {declared}"
    return None


def _describes_end(table: Table, column: str) -> bool:
    """Whether a column belongs to an end: beside x_id and y_id, x_name does, and x_source beside y_source."""
    ends, word = find_ends(table), snake(column)
    if ends is None:
        return False
    begin, _, rest = word.partition("_")
    ours = [snake(each).partition("_")[0] for each in ends.ids]
    if begin not in ours or not rest or names_time(rest) or is_measure(rest):
        return False
    other = ours[1 - ours.index(begin)]
    return is_end_role(rest) or any(snake(each) == f"{other}_{rest}" for each in table.columns)


_NEO4J_TYPE = re.compile(
    r"(?<=.):(int|long|float|double|boolean|byte|short|char|string|date|time|datetime|local\w+|duration|point)(\[\])?$",
    re.IGNORECASE,
)


def attribute_name(column: str) -> str:
    """Return what the attribute of a column is called; meta-paths can name it.

    >>> attribute_name("since:int"), attribute_name("4")
    ('since', 'column_4')
    """
    plain = _NEO4J_TYPE.sub("", column)
    return f"column_{plain}" if plain.isdigit() else plain


# ---- What their values are -----------------------------------------------------------------------
def read_attributes(
    selections: Sequence[Selection], files: Sequence[pa.Table], weights: Floats | None, place: Place
) -> tuple[pa.Table, list[str]]:
    """Return the attributes of edges that were read from one or several files, and notes on them.

    Parameters
    ----------
    selections, files
        The columns of each file, and the rows that were read of their attributes.
    weights
        The weights of all edges, in the order of the files.
    place
        Where an edge was read.

    """
    names = dict.fromkeys(attribute_name(column) for selection in selections for column in selection.attributes)
    starts = [sum(map(len, files[:number])) for number in range(len(files))]
    columns, notes = {}, []
    for name in names:
        parts: list[pa.Array | None] = []
        for number, (selection, rows) in enumerate(zip(selections, files, strict=True)):
            column = column_of(selection, name)
            if column is not None and column == selection.columns.get("weight") and weights is not None:
                parts.append(pa.array(weights[starts[number] : starts[number] + len(rows)]))
                continue
            after = _after(place, starts[number])
            parts.append(None if column is None else converted(selection, column, rows[column], after))
        kinds = [part.type for part in parts if part is not None]
        if not kinds:
            notes.append(left_out_note(selections, name))
            continue
        kind = common_type(kinds)
        whole = [
            _as_kind(part, kind, selection, name, len(rows))
            for part, selection, rows in zip(parts, selections, files, strict=True)
        ]
        value = pa.chunked_array(whole, kind).unify_dictionaries().combine_chunks()
        unit = unix_unit_of(value) if may_be_unix(selections, name, kind) else None
        if unit is not None:
            value = from_unix(value, unit)
            notes.append(unix_note(selections, name, unit))
        columns[name] = value
    for selection, rows in zip(selections, files, strict=True):
        others = {column: rows.schema.field(column).type for column in own_columns(selection)}
        notes += note_texts(selection, others, lambda column, rows=rows: [rows[column]])  # type: ignore[misc]
    return pa.table(columns), notes


def own_columns(selection: Selection) -> list[str]:
    """Return the attributes of a selection but for its weight."""
    return [column for column in selection.attributes if column != selection.columns.get("weight")]


def _after(place: Place, first: int) -> Place:
    return lambda row: place(first + row)


def column_of(selection: Selection, name: str) -> str | None:
    """Return the column of a selection that is an attribute of this name."""
    return next((column for column in selection.attributes if attribute_name(column) == name), None)


def converted(selection: Selection, column: str, values: pa.ChunkedArray, place: Place) -> pa.Array | None:
    """Return the values of one column as an attribute keeps them, or None if there are none, or of another kind."""
    word = selection.kinds.get(column)
    if word is not None:
        if word == "text" and selection.table.typed and kept_type(values.type) == TEXT:
            return to_attribute(values)
        return _declared(values.combine_chunks(), word, column, place)
    if not selection.table.typed:
        if pa.types.is_time(values.type):  # 12:30 stays as it is written, and is not 12:30:00
            values = _texts_of(selection, column)
        return to_attribute(without_empty(values))
    attribute = to_attribute(values)
    return attribute if attribute is None or attribute.type != TEXT else _as_written_times(attribute)


def _as_written_times(texts: pa.Array) -> pa.Array:
    """Return texts as dates or times if all of them are written so, as 2020-03-31 or 2020-03-31T12:00:00Z is."""
    kind = TextType()
    kind.update(texts)
    return texts if kind.type == pa.string() else kind.convert(texts)


class TextType:
    """Whether the texts of a column are all dates or times, batch by batch.

    >>> days = TextType()
    >>> days.update(pa.array(["2020-03-31", None]))
    >>> days.convert(pa.array(["2020-03-31"]))[0].as_py()
    datetime.date(2020, 3, 31)
    """

    def __init__(self) -> None:
        self._type = ColumnType(TIMES)
        self._is_empty = True

    @property
    def type(self) -> pa.DataType:
        return pa.string() if self._is_empty else self._type.type

    def update(self, texts: pa.Array) -> None:
        """Rule out the types that some texts do not fit."""
        distinct = (texts.dictionary if pa.types.is_dictionary(texts.type) else texts.unique()).drop_null()
        if not len(distinct) or (not self._is_empty and self.type == pa.string()):
            return
        self._is_empty = False
        is_iso = pc.all(pc.match_substring_regex(distinct, r"^\d{4}-\d\d-\d\d")).as_py()
        self._type.update(distinct if is_iso else pa.array(["no time"]))

    def convert(self, texts: pa.Array) -> pa.Array:
        """Return texts as an attribute of this type keeps them."""
        plain = texts.dictionary_decode() if pa.types.is_dictionary(texts.type) else texts
        attribute = to_attribute(plain if self.type == pa.string() else convert(plain.fill_null(""), self.type))
        assert attribute is not None
        return attribute


def without_empty(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the texts of a text table, where an empty cell is a missing value."""
    if not pa.types.is_string(values.type):
        return values
    return pc.if_else(pc.equal(values, ""), pa.scalar(None, pa.string()), values)


def _texts_of(selection: Selection, column: str) -> pa.ChunkedArray:
    """Read a column of a text table as it is written."""
    return replace(selection, kinds={**selection.kinds, column: "text"}).read().attributes[column]


def _as_kind(part: pa.Array | None, kind: pa.DataType, selection: Selection, name: str, length: int) -> pa.Array:
    """Return one file's part of an attribute as the kind that fits all files."""
    if part is None:
        return pa.nulls(length, kind)
    if part.type == kind:
        return part
    if kind == TEXT and not selection.table.typed:  # as it is written there, such as 007
        column = column_of(selection, name)
        assert column is not None
        return to_attribute(without_empty(_texts_of(selection, column)))
    return to_attribute(part.cast(pa.string())) if kind == TEXT else part.cast(kind)


def may_be_unix(selections: Sequence[Selection], name: str, kind: pa.DataType) -> bool:
    """Whether an attribute holds integers under a name of times, and graph.toml does not say what they are."""
    said = any(column_of(selection, name) in selection.kinds for selection in selections)
    return kind == pa.int64() and not said and names_time(snake(name))


def unix_note(selections: Sequence[Selection], name: str, unit: str) -> str:
    """Return the note on integers that are read as times."""
    long = _UNIX_NAMES[unit]
    in_file = any(isinstance(selection.table, TableFile) for selection in selections)
    hint = f'; attribute_types = {{{name} = "integer"}} in graph.toml would read numbers' if in_file else ""
    return f"{_label(selections, name)}: {name} was read as times, as its integers are {long} since 1970{hint}"


def left_out_note(selections: Sequence[Selection], name: str) -> str:
    """Return the note on a column that turned out to hold no values, or none that can be kept."""
    return f"{_label(selections, name)}: the column {name} was left out: it holds no values that can be kept"


def _label(selections: Sequence[Selection], name: str) -> str:
    return next(s.table.label for s in selections if column_of(s, name) is not None)


# ---- Values as graph.toml declares them ----------------------------------------------------------
def _declared(values: pa.Array, word: str, column: str, place: Place) -> pa.Array:
    """Return values as what graph.toml says they are; raise at the first that is not that."""
    try:
        return cast_values(values, word)
    except (pa.ArrowException, OverflowError) as error:
        bad = next((row for row in range(len(values)) if not _is_of(values[row : row + 1], word)), 0)
        allowed = "change the value or the type, which can be"
        raise GraphError(
            f"{place(bad)}: {column} is {values[bad].as_py()!r}, and attribute_types in graph.toml says it is "
            f"{word!r}; {allowed} {listed(KIND_WORDS, 11)} or a format of dates such as '%d.%m.%Y'"
        ) from error


def _is_of(values: pa.Array, word: str) -> bool:
    try:
        cast_values(values, word)
    except (pa.ArrowException, OverflowError):
        return False
    return True


# ---- Attributes of nodes -------------------------------------------------------------------------
def read_node_attributes(
    attributes: pa.Table, kinds: Mapping[str, str], place: Place, *, typed: bool = True
) -> pa.Table:
    """Return the attributes of nodes as `kinds` declares them; other texts become dates or times if all are written so.

    Text tables that are not `typed` have looked for dates and times already.
    """
    columns = {}
    for name in attributes.column_names:
        values = attributes[name]
        if name in kinds:
            values = declared_values(values.combine_chunks(), kinds[name], name, place, typed=typed)
        elif typed and may_be_times(values):
            values = plain_texts(_as_written_times(values.combine_chunks()))
        columns[name] = values
    return pa.table(columns) if columns else attributes


def attributes_in_memory(selection: Selection, place: Place) -> tuple[pa.Table, list[str]]:
    """Return the attributes of nodes in a table in memory as they are kept, and notes on them."""
    attributes = selection.table.read(selection.attributes, {})
    kinds = {name: attributes.schema.field(name).type for name in attributes.column_names}
    notes = note_texts(selection, kinds, lambda column: [attributes[column]])
    return read_node_attributes(attributes, selection.kinds, place), notes


def undeclared_attributes(columns: Mapping[str, pa.Array] | pa.Table, node_type: str) -> tuple[pa.Table, list[str]]:
    """Return the attributes of nodes of which no graph.toml speaks as they are kept, and notes on them."""
    content = columns if isinstance(columns, pa.Table) else pa.table(dict(columns))
    table = ArrowTable(content, node_type, node_type)
    return attributes_in_memory(Selection(table, {}, table.columns), lambda row: f"{node_type} {row + 1}")


def declared_values(values: pa.Array, word: str, column: str, place: Place, *, typed: bool) -> pa.Array:
    """Return an attribute of nodes as graph.toml declares it; raise at the first value that is something else.

    Texts of a typed table stay as they are, blanks too.
    """
    if word == "text" and typed and kept_type(values.type) == TEXT:
        return plain_texts(values)
    return plain_texts(_declared(values, word, column, place))


def plain_texts(values: pa.Array) -> pa.Array:
    """Return texts as nodes keep them, each by itself."""
    return values.cast(pa.string()) if values.type == TEXT else values


def may_be_times(values: pa.ChunkedArray) -> bool:
    """Whether the first text of a column is written as a date or a time, so that all may be."""
    if not is_text(values.type) or pa.types.is_dictionary(values.type):
        return False
    starts = range(0, len(values), _FIRST_TEXTS)
    first = next((text for start in starts for text in values.slice(start, _FIRST_TEXTS).to_pylist() if text), "")
    return re.match(r"\d{4}-\d\d-\d\d", first) is not None


# ---- Notes on texts ------------------------------------------------------------------------------
_FIRST_TEXTS = 64
TextsOf = Callable[[str], Iterable[Any]]
"""Return the values of a column as they were read, in one or several arrays."""


def note_texts(selection: Selection, columns: Mapping[str, pa.DataType | None], texts_of: TextsOf) -> list[str]:
    """Note the columns that hold texts although their values are numbers or dates, and words read as missing values.

    Parameters
    ----------
    selection
        The columns of a table.
    columns
        The attributes to look at, and the types that they got.
    texts_of
        Returns the values of one; those whose first values are neither numbers nor dates are not looked at.

    """
    notes = []
    table = selection.table
    for column, kind in columns.items():
        word = selection.kinds.get(column)
        if word is not None:
            notes += [] if word == "text" else _note_empty_words(table, column, texts_of(column))
        elif kind is not None and is_text(kind):
            fit = find_fit(texts_of(column)) if may_be_values(table.sample[column]) else None
            if fit is not None and (not _is_typed_already(fit) or _is_spoiled(fit, texts_of(column))):
                advice = fit.advice(column, selection.declared_in)
                notes.append(f"{table.label}: {column} was read as text; {advice}")
        elif kind is not None and not table.typed and pa.types.is_floating(kind):
            notes += _note_thousands(selection, column)
    return notes


def _note_thousands(selection: Selection, column: str) -> list[str]:
    """Note numbers such as 1.200 and 15.000, whose points may stand before thousands."""
    cells = selection.table.sample[column]
    if not are_perhaps_thousands(cells):
        return []
    sample = next(cell for cell in cells if "." in cell).strip()
    declared = " or ".join(f'{{{toml_key(column)} = "{word}"}}' for word in ("decimal comma", "number"))
    meanings = f"{sample} was read as {float(sample):g}, and may mean {sample.replace('.', '')}"
    decides = f"decide by attribute_types = {declared} {selection.declared_in}"
    return [f"{selection.table.label}: {column}: {meanings}; {decides}"]


def _is_typed_already(fit: Fit) -> bool:
    """Whether texts are read right without a declaration, or are such as 007, which may be no numbers."""
    whole = fit.misfit is None and fit.words[0] in ("date", "time")
    return whole or fit.words[0] in ("integer", "number")


def _is_spoiled(fit: Fit, arrays: Iterable[Any]) -> bool:
    """Whether numbers are texts only because of words for missing values."""
    return fit.misfit is None and fit.words[0] == "number" and bool(_count_words(arrays))


def _count_words(arrays: Iterable[Any]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for values in arrays:
        for chunk in values.chunks if isinstance(values, pa.ChunkedArray) else [values]:
            counts.update(count_empty_words(chunk))
    return counts


def _note_empty_words(table: Table, column: str, arrays: Iterable[Any]) -> list[str]:
    counts = _count_words(arrays)
    if not counts:
        return []
    words = listed(f"{word!r} ({count:,})" for word, count in counts.items())
    return [f"{table.label}: {column}: {sum(counts.values()):,} values were read as missing: {words}"]


def declared_in(table: Table, section: str) -> str:
    """Return where `attribute_types` stands that is about a table, for notes."""
    if isinstance(table, TableFile):
        return f"under {section} in graph.toml"
    return 'beside its table, as (table, {"attribute_types": …})'


def is_text(kind: pa.DataType) -> bool:
    """Whether values of a type are texts."""
    return kept_type(kind) == TEXT and not pa.types.is_time(kind)

"""Attributes of nodes and edges: what the values of a column are, and their conversion to what a graph keeps.

A table passes by twice, whole or in batches. First `look` finds the type of each attribute: that of text tables follows
from all values, as Arrow infers it. Then `convert` returns the values, read with `read_types`.
"""

import io
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from neupath.errors import GraphError, listed
from neupath.graph.edge_attributes import (
    TEXT,
    TIME,
    are_digits_of_dates,
    common_type,
    from_unix,
    kept_type,
    names_time,
    to_attribute,
    unix_unit,
)
from neupath.graph.hin import Floats
from neupath.graph.notations import (
    KIND_WORDS,
    Fit,
    are_perhaps_thousands,
    cast_values,
    count_empty_words,
    find_fit,
    kind_named,
    may_be_values,
    toml_key,
)
from neupath.io.plan import SelectedRows, Selection
from neupath.io.tables import ArrowTable, Place, Table, TableFile
from neupath.io.words import snake

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


def is_text(kind: pa.DataType) -> bool:
    """Whether values of a type are texts."""
    return kept_type(kind) == TEXT and not pa.types.is_time(kind)


# ---- The type of a text column -------------------------------------------------------------------
_TEXT = (pa.string(), pa.binary())
_LADDER = (
    pa.null(), pa.int64(), pa.bool_(), pa.date32(), pa.time32("s"), pa.timestamp("s"), pa.timestamp("s", "UTC"),
    pa.timestamp("ns"), pa.timestamp("ns", "UTC"), pa.float64(), *_TEXT,
)  # fmt: skip
"""In Arrow's order: a column gets the first type that all its values fit."""
_TIMES = (*(kind for kind in _LADDER if pa.types.is_date(kind) or pa.types.is_timestamp(kind)), pa.string())
"""What a column of texts may hold: dates, times or, if none fits, texts."""
_ISO_DATE = r"^\d{4}-\d\d-\d\d"


class ColumnType:
    """The type of a text column, inferred batch by batch as Arrow infers it from a whole table.

    >>> year = ColumnType()
    >>> year.update(pa.array([b"1999", b""]))
    >>> year.update(pa.array([b"about 2000"]))
    >>> year.type
    DataType(string)
    """

    def __init__(self, candidates: Sequence[pa.DataType] = _LADDER) -> None:
        self._candidates = list(candidates)

    @property
    def type(self) -> pa.DataType:
        return self._candidates[0]

    def update(self, texts: pa.Array) -> None:
        """Rule out the types that some values, given as bytes, do not fit."""
        if self.type == pa.binary() or not len(texts):
            return
        try:
            strings = texts.cast(pa.string())
        except pa.ArrowInvalid:
            self._candidates = [pa.binary()]
            return
        if self.type not in _TEXT:
            written = _as_csv(strings)
            self._candidates = [kind for kind in self._candidates if kind in _TEXT or _fits(written, kind)]


def _as_csv(strings: pa.Array) -> bytes:
    """Write values as a table, so that the rules of tables decide what is missing and what is true."""
    sink = io.BytesIO()
    options = pa.csv.WriteOptions(include_header=False, quoting_style="all_valid")
    pa.csv.write_csv(pa.table({"value": strings}), sink, options)
    return sink.getvalue()


def _read_csv(written: bytes, kind: pa.DataType) -> pa.Array:
    if not written:
        return pa.array([], kind)
    table = pa.csv.read_csv(
        io.BytesIO(written),
        read_options=pa.csv.ReadOptions(column_names=["value"]),
        parse_options=pa.csv.ParseOptions(newlines_in_values=True),
        convert_options=pa.csv.ConvertOptions(column_types={"value": kind}),
    )
    return table["value"].combine_chunks()


def _fits(written: bytes, kind: pa.DataType) -> bool:
    try:
        _read_csv(written, kind)
    except pa.ArrowInvalid:
        return False
    return True


class DateTexts:
    """Whether the texts of a column are all dates or times, batch by batch.

    >>> days = DateTexts()
    >>> days.update(pa.array(["2020-03-31", None]))
    >>> days.convert(pa.array(["2020-03-31"]))[0].as_py()
    datetime.date(2020, 3, 31)
    """

    def __init__(self) -> None:
        self._type = ColumnType(_TIMES)
        self._is_empty = True

    @property
    def type(self) -> pa.DataType:
        return pa.string() if self._is_empty else self._type.type

    def update(self, texts: pa.Array) -> None:
        """Rule out the types that some texts do not fit; the first ones rule them out for most columns."""
        values = texts.dictionary if pa.types.is_dictionary(texts.type) else texts
        for some in (values.slice(0, _FIRST_TEXTS), values):
            if not self._is_empty and self.type == pa.string():
                return
            distinct = some.unique().drop_null()
            if len(distinct):
                self._is_empty = False
                is_iso = pc.all(pc.match_substring_regex(distinct, _ISO_DATE)).as_py()
                self._type.update(distinct if is_iso else pa.array(["no time"]))

    def convert(self, texts: pa.Array) -> pa.Array:
        """Return texts as an attribute of this type keeps them."""
        plain = texts.dictionary_decode() if pa.types.is_dictionary(texts.type) else texts
        if self.type != pa.string():
            plain = _read_csv(_as_csv(plain.fill_null("").cast(pa.string())), self.type)
        attribute = to_attribute(plain)
        assert attribute is not None
        return attribute


_FIRST_TEXTS = 64


# ---- One column ----------------------------------------------------------------------------------
class AttributeColumn:
    """One column of a table: its type is found batch by batch, then its batches are converted.

    Parameters
    ----------
    selection
        The columns that are read of the table.
    column
        One of its attributes.
    of_nodes
        Whether it is an attribute of nodes, which keep any value; edges keep `KINDS` of values.
    """

    def __init__(self, selection: Selection, column: str, *, of_nodes: bool = False) -> None:
        self._of_nodes = of_nodes
        self.column, self.name = column, attribute_name(column)
        self.word = selection.kinds.get(column)
        """What graph.toml says that it is."""
        self.is_typed = selection.table.typed
        self.type: pa.DataType = pa.null()
        """The type of its values as the table holds them."""
        self.dates = DateTexts()
        self.unix: list[tuple[int, int, bool]] = []
        """Of each batch of integers that may be Unix times the bounds, and whether all read as YYMMDDhhmm."""
        self._ladder = ColumnType()
        self._is_kept = True
        self._may_be_unix = self.word is None and names_time(snake(self.name))

    def look(self, values: pa.Array) -> None:
        """Take a batch of values into account: bytes of a text table that is read in batches, or typed values."""
        if self.word is not None:
            return
        if not self.is_typed and pa.types.is_binary(values.type):
            self._ladder.update(values)
            self.type = self._ladder.type
        else:
            self.type = values.type
        if self._may_be_unix and pa.types.is_integer(self.type) and len(values):
            integers = values if self.type == values.type else _read_csv(_as_csv(values.cast(pa.string())), self.type)
            numbers = integers.drop_null().to_numpy(zero_copy_only=False)
            if len(numbers):
                self.unix.append((int(numbers.min()), int(numbers.max()), bool(are_digits_of_dates(numbers).all())))
        if not self.is_typed:
            return
        if not is_text(self.type):
            self._is_kept = self._is_kept and to_attribute(values) is not None
        elif not (self._of_nodes and pa.types.is_dictionary(self.type)):
            self.dates.update(values)

    @property
    def edge_kind(self) -> pa.DataType | None:
        """The kind of an attribute of edges, or None if it has no values that can be kept."""
        if self.word is not None:
            return kind_named(self.word)
        if not self._is_kept:
            return None
        return kept_type(self.dates.type) if self.dates.type != pa.string() else kept_type(self.type)

    def read_type(self, kind: pa.DataType | None) -> pa.DataType | None:
        """Return the type to read it with, if it is to become `kind`; None for that of a typed table."""
        if self.is_typed:
            return None
        return pa.string() if self.word is not None or kind == TEXT else self.type

    def convert_edges(self, values: pa.Array, kind: pa.DataType, place: Place) -> pa.Array:
        """Return values, read with `read_type`, as an attribute of edges of a kind that fits all tables."""
        if self.edge_kind is None:
            return pa.nulls(len(values), kind)
        part = self._converted(values, kind, place)
        if part.type != kind:
            part = to_attribute(part.cast(pa.string())) if kind == TEXT else part.cast(kind)
        return part

    def _converted(self, values: pa.Array, kind: pa.DataType, place: Place) -> pa.Array:
        if self.word == "text" and self.is_typed and kept_type(values.type) == TEXT:
            return to_attribute(values)
        if self.word is not None:
            return _declared(values, self.word, self.column, place)
        if self.dates.type != pa.string() and kind != TEXT:
            return self.dates.convert(values)
        return to_attribute(values if self.is_typed else _without_empty(values))

    @property
    def node_type(self) -> pa.DataType:
        """The type of an attribute of nodes."""
        if self.word is not None:
            kind = kind_named(self.word)
            return pa.string() if kind == TEXT else kind
        return kept_type(self.dates.type) if self.dates.type != pa.string() else self.type

    def convert_nodes(self, values: pa.Array, place: Place) -> pa.Array:
        """Return values, read with `read_type`, as an attribute of nodes."""
        if self.word is not None:
            converted = self._converted(values, TEXT, place)
            return converted.cast(pa.string()) if converted.type == TEXT else converted
        return self.dates.convert(values) if self.dates.type != pa.string() else values


def _without_empty(values: pa.Array) -> pa.Array:
    """Return the values of a text table, where an empty cell is a missing value."""
    if not pa.types.is_string(values.type):
        return values
    return pc.if_else(pc.equal(values, ""), pa.scalar(None, pa.string()), values)


def _declared(values: pa.Array, word: str, column: str, place: Place) -> pa.Array:
    """Return values as what graph.toml says they are; raise at the first that is not that."""
    converted = _cast(values, word)
    if converted is not None:
        return converted
    bad = next((row for row in range(len(values)) if _cast(values[row : row + 1], word) is None), 0)
    raise GraphError(
        f"{place(bad)}: {column} is {values[bad].as_py()!r}, and attribute_types in graph.toml says it is {word!r}; "
        f"change the value or the type, which can be {listed(KIND_WORDS, 11)} or a format of dates such as '%d.%m.%Y'"
    )


def _cast(values: pa.Array, word: str) -> pa.Array | None:
    try:
        return cast_values(values, word)
    except (pa.ArrowException, OverflowError):
        return None


# ---- Attributes of nodes -------------------------------------------------------------------------
class NodeAttributeColumns:
    """The attributes of the nodes in one table."""

    def __init__(self, selection: Selection) -> None:
        self.selection = selection
        self.columns = [AttributeColumn(selection, column, of_nodes=True) for column in selection.attributes]

    def look(self, rows: pa.Table) -> None:
        """Take a batch of rows into account."""
        for each in self.columns:
            each.look(rows[each.column].combine_chunks())

    @property
    def schema(self) -> pa.Schema:
        """The types of the attributes, once all rows have passed by."""
        return pa.schema([(each.column, each.node_type) for each in self.columns])

    @property
    def read_types(self) -> dict[str, pa.DataType]:
        """The types to read the rows with for `convert`."""
        kinds = {each.column: each.read_type(None) for each in self.columns}
        return {column: kind for column, kind in kinds.items() if kind is not None}

    def convert(self, rows: pa.Table, place: Place) -> pa.Table:
        """Return a batch of rows as nodes keep them."""
        if not self.columns:
            return rows
        converted = {
            each.column: each.convert_nodes(rows[each.column].combine_chunks(), place) for each in self.columns
        }
        return pa.table(converted)

    def notes(self, texts_of: "TextsOf") -> list[str]:
        """Return notes on texts that are numbers or dates, and on words that were read as missing values."""
        return note_texts(self.selection, {each.column: each.type for each in self.columns}, texts_of)


def undeclared_attributes(columns: Mapping[str, pa.Array], node_type: str) -> tuple[pa.Table, list[str]]:
    """Return the attributes of nodes of which no graph.toml speaks as they are kept, and notes on them."""
    rows = pa.table(dict(columns))
    table = ArrowTable(rows, node_type, node_type)
    attributes = NodeAttributeColumns(Selection(table, {}, table.columns))
    attributes.look(rows)
    return attributes.convert(rows, table.place), attributes.notes(lambda column: [rows[column]])


# ---- Attributes of edges -------------------------------------------------------------------------
class EdgeAttributeColumns:
    """The attributes of edges that are read from one or several tables, under the names of their columns."""

    def __init__(self, selections: Sequence[Selection]) -> None:
        self.selections = selections
        self.names = list(dict.fromkeys(attribute_name(c) for each in selections for c in each.attributes))
        self.tables = [
            {a.name: a for c in each.attributes if c != each.columns.get("weight") and (a := AttributeColumn(each, c))}
            for each in selections
        ]
        """The attributes of each table but for its weight."""
        self.kinds: dict[str, pa.DataType] = {}
        """The attributes that can be kept, set by `decide`."""
        self._units: dict[str, str] = {}

    def look(self, table: int, rows: pa.Table) -> None:
        """Take a batch of rows of one of the tables into account."""
        for each in self.tables[table].values():
            each.look(rows[each.column].combine_chunks())

    def decide(self, texts_of: "Callable[[int], TextsOf]") -> list[str]:
        """Decide the kind of each attribute, once all rows have passed by; return notes."""
        notes = []
        for name in self.names:
            columns = [table[name] for table in self.tables if name in table]
            known = [kind for each in columns if (kind := each.edge_kind) is not None]
            known += [pa.float64()] * self.is_weight_of_any(name)
            if not known:
                notes.append(
                    f"{self._label(name)}: the column {name} was left out: it holds no values that can be kept"
                )
                continue
            self.kinds[name] = kind = common_type(known)
            if kind == pa.int64() and (unit := _unit_of(columns)) is not None:
                self.kinds[name], self._units[name] = TIME, unit
                notes.append(self._unix_note(name, unit))
        for number, table in enumerate(self.tables):
            read = {each.column: each.type for each in table.values()}
            notes += note_texts(self.selections[number], read, texts_of(number))
        return notes

    def read_types(self, table: int) -> dict[str, pa.DataType]:
        """Return the types to read the rows of a table with for `convert`."""
        own = self.tables[table]
        kinds = {own[name].column: own[name].read_type(kind) for name, kind in self.kinds.items() if name in own}
        return {column: kind for column, kind in kinds.items() if kind is not None}

    def convert(self, table: int, rows: SelectedRows, weights: Floats | None, place: Place) -> pa.Table:
        """Return a batch of rows of one of the tables, with their weights, as edges keep them."""
        columns: dict[str, pa.Array] = {}
        for name, kind in self.kinds.items():
            own, unit = self.tables[table].get(name), self._units.get(name)
            if own is not None:
                values = rows.attributes[own.column].combine_chunks()
                column = own.convert_edges(values, kind if unit is None else pa.int64(), place)
                columns[name] = column if unit is None else from_unix(column, unit)
            elif weights is not None and self._is_weight(table, name):
                columns[name] = pa.array(weights).cast(kind)
            else:
                columns[name] = pa.nulls(len(rows), kind)
        return pa.table(columns)

    def is_weight_of_any(self, name: str) -> bool:
        """Whether an attribute is the weight of a table's edges, under the name of its column."""
        return any(self._is_weight(table, name) for table in range(len(self.tables)))

    def _is_weight(self, table: int, name: str) -> bool:
        selection = self.selections[table]
        weight = selection.columns.get("weight")
        return weight in selection.attributes and attribute_name(weight or "") == name

    def _label(self, name: str) -> str:
        holders = (each for each in self.selections if name in map(attribute_name, each.attributes))
        return next(holders).table.label

    def _unix_note(self, name: str, unit: str) -> str:
        in_file = any(isinstance(selection.table, TableFile) for selection in self.selections)
        hint = f'; attribute_types = {{{name} = "integer"}} in graph.toml would read numbers' if in_file else ""
        long = {"s": "seconds", "ms": "milliseconds", "us": "microseconds"}[unit]
        return f"{self._label(name)}: {name} was read as times, as its integers are {long} since 1970{hint}"


def _unit_of(columns: Sequence[AttributeColumn]) -> str | None:
    """Return the unit of an attribute of integers that are plainly Unix times in all tables, or None."""
    if not columns or any(each.word is not None for each in columns) or not names_time(snake(columns[0].name)):
        return None
    bounds = [batch for each in columns for batch in each.unix]
    if not bounds:
        return None
    lows, highs, are_dates = zip(*bounds, strict=True)
    return unix_unit(min(lows), max(highs), all(are_dates))


# ---- Notes on texts ------------------------------------------------------------------------------
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

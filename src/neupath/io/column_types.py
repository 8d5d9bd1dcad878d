"""The type of a text column: what Arrow infers from a whole table, batch by batch."""

import io
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.csv

_TEXT = (pa.string(), pa.binary())
_LADDER = (
    pa.null(), pa.int64(), pa.bool_(), pa.date32(), pa.time32("s"), pa.timestamp("s"), pa.timestamp("s", "UTC"),
    pa.timestamp("ns"), pa.timestamp("ns", "UTC"), pa.float64(), *_TEXT,
)  # fmt: skip
"""In Arrow's order: a column gets the first type that all its values fit."""
TIMES = (*(kind for kind in _LADDER if pa.types.is_date(kind) or pa.types.is_timestamp(kind)), pa.string())
"""What a column of texts may hold: dates, times or, if none fits, texts."""


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


def convert(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return the texts of a column, given as bytes or texts, as a type that they fit."""
    if values.type == kind:
        return values
    strings = values.cast(pa.string())
    return strings if kind == pa.string() else _read_csv(_as_csv(strings), kind)


def _as_csv(strings: pa.Array) -> bytes:
    """Write values as a table, so that the rules of tables decide what is missing and what is true."""
    sink = io.BytesIO()
    options = pa.csv.WriteOptions(include_header=False, quoting_style="all_valid")
    pa.csv.write_csv(pa.table({"value": strings}), sink, options)
    return sink.getvalue()


def _read_csv(written: bytes, kind: pa.DataType) -> pa.Array:
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

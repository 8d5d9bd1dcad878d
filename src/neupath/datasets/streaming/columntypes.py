"""The type of a text column, found block by block as Arrow finds it for a whole table."""

import io

import pyarrow as pa
import pyarrow.csv

_TEXT = (pa.string(), pa.binary())
_LADDER = (
    pa.null(), pa.int64(), pa.bool_(), pa.date32(), pa.time32("s"), pa.timestamp("s"), pa.timestamp("s", "UTC"),
    pa.timestamp("ns"), pa.timestamp("ns", "UTC"), pa.float64(), *_TEXT,
)  # fmt: skip
"""In Arrow's order: a column gets the first type that all its values fit."""


class ColumnType:
    """The type that a column gets, as far as its values have been seen.

    >>> year = ColumnType()
    >>> year.see(pa.array([b"1999", b""]))
    >>> year.see(pa.array([b"about 2000"]))
    >>> year.found
    DataType(string)
    """

    def __init__(self) -> None:
        self._left = list(_LADDER)

    @property
    def found(self) -> pa.DataType:
        return self._left[0]

    def see(self, texts: pa.Array) -> None:
        """Go through some values, given as bytes."""
        if self.found == pa.binary() or not len(texts):
            return
        try:
            strings = texts.cast(pa.string())
        except pa.ArrowInvalid:
            self._left = [pa.binary()]
            return
        if self.found not in _TEXT:
            written = _as_csv(strings)
            self._left = [kind for kind in self._left if kind in _TEXT or _fit(written, kind)]


def _as_csv(strings: pa.Array) -> bytes:
    """Write values as a table, so that they are read by the very rules of tables: what is missing, what is true."""
    sink = io.BytesIO()
    options = pa.csv.WriteOptions(include_header=False, quoting_style="all_valid")
    pa.csv.write_csv(pa.table({"value": strings}), sink, options)
    return sink.getvalue()


def _fit(written: bytes, kind: pa.DataType) -> bool:
    try:
        pa.csv.read_csv(
            io.BytesIO(written),
            read_options=pa.csv.ReadOptions(column_names=["value"]),
            parse_options=pa.csv.ParseOptions(newlines_in_values=True),
            convert_options=pa.csv.ConvertOptions(column_types={"value": kind}),
        )
    except pa.ArrowInvalid:
        return False
    return True

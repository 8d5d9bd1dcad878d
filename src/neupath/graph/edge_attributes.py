"""The values that attributes of edges have: integers, numbers, truth values, texts, dates and times."""

import math
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from hashlib import blake2b
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from neupath._runtime.lazy_module import LazyModule

pc = LazyModule("pyarrow.compute")  # takes longer to import than most searches
TEXT = pa.dictionary(pa.int32(), pa.string())
TIME = pa.timestamp("us")
KINDS: Mapping[str, pa.DataType] = {
    "integer": pa.int64(),
    "number": pa.float64(),
    "boolean": pa.bool_(),
    "text": TEXT,
    "date": pa.date32(),
    "time": TIME,
}
"""What an attribute is called -> how its values are kept. Texts are kept once each, times are in UTC."""
_EXACT_DIGITS = 15
"""Integers of so many digits are exact as floats, and so are the powers of ten up to them."""
_WORDS = {kind: word for word, kind in KINDS.items()}


def kind_of(attribute: pa.DataType) -> str:
    """Return what an attribute of a type is called.

    >>> kind_of(pa.int64()), kind_of(pa.string())
    ('integer', 'text')
    """
    kept = kept_type(attribute)
    return str(attribute) if kept is None else _WORDS[kept]


def kept_type(declared: pa.DataType) -> pa.DataType | None:
    """Return the type that values of an Arrow type are kept as, or None for lists, bytes and other nested values.

    >>> kept_type(pa.int16()), kept_type(pa.timestamp("s", "UTC")), kept_type(pa.list_(pa.int64()))
    (DataType(int64), TimestampType(timestamp[us]), None)
    """
    kind, types = declared, pa.types
    if types.is_dictionary(kind):
        kind = kind.value_type
    if types.is_integer(kind):
        return pa.int64()
    if types.is_floating(kind) or types.is_decimal(kind):
        return pa.float64()
    if types.is_string(kind) or types.is_large_string(kind) or str(kind) == "string_view" or types.is_time(kind):
        return TEXT
    if types.is_date(kind):
        return pa.date32()
    if types.is_timestamp(kind):
        return TIME
    return pa.bool_() if types.is_boolean(kind) else None


def to_attribute(values: pa.Array | pa.ChunkedArray) -> pa.Array | None:
    """Return values as an attribute keeps them, or None if they are of another kind or too large for it.

    A number that is not a number is missing; a time with a zone becomes one in UTC; beyond microseconds it is cut.

    >>> to_attribute(pa.array([1.5, float("nan")])).to_pylist()
    [1.5, None]
    """
    column = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    kind = kept_type(column.type)
    if kind is None or column.type == kind:
        return column if kind == column.type and kind != pa.float64() else without_nan(column) if kind else None
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    try:
        if kind == TEXT:
            return _encoded(column.cast(pa.string()))
        if kind == TIME:
            return column.cast(pa.timestamp("us", column.type.tz), safe=column.type.unit != "ns").cast(TIME)
        return decimals_to_floats(column) if pa.types.is_decimal(column.type) else without_nan(column.cast(kind))
    except pa.ArrowInvalid:
        return None


def decimals_to_floats(column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Return decimals as the nearest floats; Arrow's own cast gives 847.6700000000001 for 847.67.

    >>> decimals_to_floats(pa.array([Decimal("847.67"), None])).to_pylist()
    [847.67, None]
    """
    if column.type.precision > _EXACT_DIGITS or not 0 <= column.type.scale <= _EXACT_DIGITS:
        return column.cast(pa.string()).cast(pa.float64())
    power = 10**column.type.scale
    whole = pc.multiply(column, pa.scalar(Decimal(power))).cast(pa.int64())
    return pc.divide(whole.cast(pa.float64()), float(power))


def without_nan(column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Return a column whose numbers that are not numbers are missing values."""
    if not pa.types.is_floating(column.type) or not pc.any(pc.is_nan(column), min_count=0).as_py():
        return column
    return pc.if_else(pc.is_nan(column), pa.scalar(None, column.type), column)


def _encoded(texts: pa.Array) -> pa.Array:
    encoded = texts.dictionary_encode()
    return encoded if encoded.type == TEXT else encoded.cast(TEXT)


def to_attributes(table: pa.Table) -> pa.Table:
    """Return the columns of a table that can be attributes of edges, as they are kept."""
    kept = {name: to_attribute(table[name]) for name in table.column_names}
    return pa.table({name: column for name, column in kept.items() if column is not None})


def common_type(types: Sequence[pa.DataType]) -> pa.DataType:
    """Return the type for one attribute that several tables have: numbers or times if all can be that, or else text.

    >>> common_type([pa.int64(), pa.float64()]), common_type([pa.int64(), pa.bool_()]) == TEXT
    (DataType(double), True)
    """
    distinct = set(types)
    if len(distinct) == 1:
        return types[0]
    if distinct == {pa.int64(), pa.float64()}:
        return pa.float64()
    return TIME if distinct == {pa.date32(), TIME} else TEXT


def attribute_value(value: object, kind: pa.DataType) -> object:
    """Return one value as an attribute of a kind that is kept; raise ArrowException or ValueError if it is not one.

    An empty text is a missing value; integers are times if they are plainly Unix times.

    >>> attribute_value("4.5", pa.float64()), attribute_value("2020-03-31T12:00:00Z", TIME)
    (4.5, datetime.datetime(2020, 3, 31, 12, 0))
    """
    if value is None or value == "":
        return None
    plain = pa.string() if kind == TEXT else kind
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("not a number")
    if kind == TIME:
        return _time_value(value)
    if isinstance(value, str) and plain != pa.string():
        value = value.strip().lower() if kind == pa.bool_() else value.strip()
    elif isinstance(value, bool) != (kind == pa.bool_()) and plain != pa.string():
        raise ValueError("a truth value is no number")
    return pa.scalar(value).cast(plain).as_py()


def _time_value(value: object) -> object:
    text = value.strip() if isinstance(value, str) else value
    if isinstance(text, str) and text.isdecimal() and len(text) < 19:
        text = int(text)
    if isinstance(text, int) and not isinstance(text, bool):
        unit = unix_unit(text, text, all_digits_of_dates=False)
        if unit is None:
            raise ValueError("no Unix time")
        return from_unix(pa.array([text]), unit)[0].as_py()
    if isinstance(text, datetime | date):
        attribute = to_attribute(pa.array([text]))
        assert attribute is not None
        return attribute.cast(TIME)[0].as_py()
    if not isinstance(text, str):
        raise ValueError("no time")
    return to_times(pa.scalar(text)).as_py()


def to_times(texts: Any) -> Any:
    """Return texts, or one, as times in UTC, whether they have a zone or not; raise ArrowInvalid if one is no time."""
    try:
        return texts.cast(TIME)
    except pa.ArrowInvalid:  # with a zone
        return texts.cast(pa.timestamp("us", "UTC")).cast(TIME)


_MISSING = 0x8CB92BA72F3D8DD7
"""What stands for a missing value in a checksum."""


def value_hashes(values: pa.ChunkedArray) -> NDArray[np.uint64]:
    """Return a number for each value of an attribute, for checksums: its bits, or the hash of a text."""
    column = values.combine_chunks()
    if pa.types.is_string(column.type):
        column = column.dictionary_encode()
    if pa.types.is_dictionary(column.type):
        texts = column.dictionary.to_pylist()
        digests = [blake2b(text.encode(), digest_size=8).digest() for text in texts]
        hashes = np.frombuffer(b"".join([*digests, bytes(8)]), dtype=np.uint64)  # one more, for missing values
        numbers = hashes[column.indices.fill_null(len(texts)).to_numpy(zero_copy_only=False)]
    elif pa.types.is_floating(column.type):
        numbers = np.ascontiguousarray(column.fill_null(0.0).to_numpy(zero_copy_only=False)).view(np.uint64)
    else:
        wide = column.cast(pa.int32()) if pa.types.is_date(column.type) else column
        whole = wide.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
        numbers = whole.astype(np.int64).view(np.uint64)
    missing = column.is_null().to_numpy(zero_copy_only=False)
    hashes_of: NDArray[np.uint64] = np.where(missing, np.uint64(_MISSING), numbers).astype(np.uint64)
    return hashes_of


# ---- Unix times ----------------------------------------------------------------------------------
# Integers are times only where their column is called so and no value can be anything else: all of them lie between
# 1985 and 2033, and they are not all written as dates are, such as 2403311200 for a minute of March 2024.
UNIX_UNITS = {"s": 1, "ms": 1000, "us": 1_000_000}
FIRST_UNIX, LAST_UNIX = 500_000_000, 2_000_000_000
_TIME_NAMES = {"timestamp", "ts", "time", "unixtime", "epoch", "date", "datetime", "when"}
_TIME_ENDINGS = ("_timestamp", "_ts", "_time", "_at", "_epoch", "_unixtime")


def names_time(column: str) -> bool:
    """Whether a column, by its name in lower case with underscores, may hold times."""
    return column in _TIME_NAMES or column.endswith(_TIME_ENDINGS)


def unix_unit(low: int | None, high: int | None, all_digits_of_dates: bool) -> str | None:
    """Return whether integers between two bounds are plainly seconds (s), ms or us since 1970, or None.

    >>> unix_unit(964_982_703, 1_537_799_250, False), unix_unit(1, 5, False)
    ('s', None)
    """
    if low is None or high is None or all_digits_of_dates:
        return None
    return next((u for u, per in UNIX_UNITS.items() if FIRST_UNIX * per <= low and high < LAST_UNIX * per), None)


def are_digits_of_dates(values: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Mark the numbers that read as YYMMDDhhmm."""
    month, day, hour, minute = (values // 10**at % 100 for at in (6, 4, 2, 0))
    result: NDArray[np.bool_] = (
        (month >= 1) & (month <= 12) & (day >= 1) & (day <= 31) & (hour <= 23) & (minute <= 59) & (values < 10**10)
    )
    return result


def from_unix(numbers: pa.Array, unit: str) -> pa.Array:
    """Return Unix times as times.

    >>> from_unix(pa.array([964982703]), "s")[0].as_py()
    datetime.datetime(2000, 7, 30, 18, 45, 3)
    """
    return numbers.cast(pa.timestamp(unit)).cast(TIME)

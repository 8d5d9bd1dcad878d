"""Which values attributes of edges keep, and which integers are taken as times."""

from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from neupath.graph.edge_attributes import (
    TEXT,
    TIME,
    are_digits_of_dates,
    attribute_value,
    kind_of,
    names_time,
    to_attribute,
    unix_unit,
)


@pytest.mark.parametrize(
    ("values", "kind", "kept"),
    [
        (pa.array([1, None], pa.uint8()), "integer", [1, None]),
        (pa.array([1.5, float("nan")], pa.float32()), "number", [1.5, None]),
        (pa.array([Decimal("1.25")]), "number", [1.25]),
        (pa.array([True, None]), "boolean", [True, None]),
        (pa.array(["a", None, "a"], pa.large_string()), "text", ["a", None, "a"]),
        (pa.array(["a"]).dictionary_encode(), "text", ["a"]),
        (pa.array([date(2020, 2, 29)], pa.date64()), "date", [date(2020, 2, 29)]),
        (pa.array([datetime(2020, 1, 1, 12)], pa.timestamp("s")), "time", [datetime(2020, 1, 1, 12)]),
        (pa.array([1577880000_000000001], pa.timestamp("ns", "Europe/Berlin")), "time", [datetime(2020, 1, 1, 12)]),
        (pa.array([time(12, 30)]), "text", ["12:30:00.000000"]),
    ],
)
def test_values_are_kept_as_few_kinds(values: pa.Array, kind: str, kept: list[object]) -> None:
    attribute = to_attribute(values)
    assert attribute is not None
    assert (kind_of(attribute.type), attribute.to_pylist()) == (kind, kept)
    assert to_attribute(attribute).equals(attribute)  # type: ignore[union-attr]


@pytest.mark.parametrize("values", [pa.array([[1]]), pa.array([b"x"]), pa.array([{"a": 1}]), pa.nulls(2)])
def test_nested_values_and_no_values_are_not_kept(values: pa.Array) -> None:
    assert to_attribute(values) is None
    assert to_attribute(pa.array([2**64 - 1], pa.uint64())) is None


@pytest.mark.parametrize(
    ("numbers", "unit"),
    [
        ([964982703, None, 1537799250], "s"),
        ([964982703000, 1537799250123], "ms"),
        ([964982703000000], "us"),
        ([964982703, 0], None),  # 0 may mean that the time is not known
        ([2020, 1999], None),
        ([20200101, 20191231], None),
        ([1911011200, 1912312359], None),  # YYMMDDhhmm
        ([964982703, 4102444800], None),
        ([964982703, 964982703000], None),
        ([None], None),
    ],
)
def test_only_plain_unix_times_are_times(numbers: list[int | None], unit: str | None) -> None:
    known = np.array([number for number in numbers if number is not None], dtype=np.int64)
    ends = (int(known.min()), int(known.max())) if len(known) else (None, None)
    assert unix_unit(*ends, bool(are_digits_of_dates(known).all())) == unit


def test_names_of_times() -> None:
    assert all(map(names_time, ("timestamp", "ts", "created_at", "unix_review_time", "date")))
    assert not any(map(names_time, ("rating", "count", "times_seen", "id", "format")))


@pytest.mark.parametrize(
    ("value", "kind", "kept"),
    [
        ("", pa.int64(), None),
        (" 7 ", pa.int64(), 7),
        (7.0, pa.int64(), 7),
        ("TRUE", pa.bool_(), True),
        (5, TEXT, "5"),
        ("2020-03-31", pa.date32(), date(2020, 3, 31)),
        ("2020-03-31T12:00:00+02:00", TIME, datetime(2020, 3, 31, 10)),
        (date(2020, 3, 31), TIME, datetime(2020, 3, 31)),
        ("964982703", TIME, datetime(2000, 7, 30, 18, 45, 3)),
    ],
)
def test_single_values(value: Any, kind: pa.DataType, kept: object) -> None:
    assert attribute_value(value, kind) == kept


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("7.5", pa.int64()), (True, pa.int64()), (1, pa.bool_()), ("maybe", pa.bool_()), (float("inf"), pa.float64()),
        ("2020-02-31", pa.date32()), (7, TIME), (7.5, TIME), ("noon", TIME), ([1], TEXT), (2**70, pa.int64()),
    ],
)  # fmt: skip
def test_values_of_other_kinds_are_refused(value: Any, kind: pa.DataType) -> None:
    with pytest.raises((pa.ArrowException, ValueError, OverflowError)):
        attribute_value(value, kind)

"""Append-only columns and tables: what a reader holds never changes, whatever is appended."""

import numpy as np
import pyarrow as pa
import pytest

from neupath.errors import GraphError
from neupath.live import append_arrays as columns
from neupath.live.append_arrays import AppendColumn, AppendTable

TEXTS = ["", "a", "ü💥", None, "x" * 300]


def draw_values(rng: np.random.Generator, kind: pa.DataType) -> pa.Array:
    """Draw some values, now and then as a slice of a longer array."""
    count = int(rng.integers(0, 12))
    values = rng.integers(-9, 9, count) if pa.types.is_int64(kind) else [TEXTS[n] for n in rng.integers(0, 5, count)]
    return pa.array(values, kind).slice(int(rng.integers(0, 3)))


@pytest.mark.parametrize("kind", [pa.string(), pa.int64(), pa.large_string()])
def test_appending_equals_concatenation(kind: pa.DataType) -> None:
    rng = np.random.default_rng(0)
    column = AppendColumn(draw_values(rng, kind))
    seen: list[tuple[pa.Array, list[object]]] = []
    for _ in range(60):
        more = draw_values(rng, kind)
        expected = pa.concat_arrays([column.array, more])
        if rng.integers(0, 5) == 0:
            column.append(draw_values(rng, kind))  # a branch that is dropped
        column = column.append(more)
        column.array.validate(full=True)
        assert column.array.equals(expected)
        assert column.array.null_count == expected.null_count
        seen.append((column.array, expected.to_pylist()))
    assert all(array.to_pylist() == values for array, values in seen)


def test_appending_copies_no_existing_values() -> None:
    column = AppendColumn(pa.array(["Mike"] * 1000)).append(pa.array(["Zoe"]))
    after = column.append(pa.array(["Ida"]))
    assert [b and b.address for b in after.array.buffers()] == [b and b.address for b in column.array.buffers()]


def test_more_text_than_an_array_can_hold_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "_MOST_BYTES", 5)
    with pytest.raises(GraphError, match="would have 6 bytes"):
        AppendColumn(pa.array(["abc"])).append(pa.array(["def"]))


def test_tables_stay_in_few_parts_that_are_rarely_copied() -> None:
    rng = np.random.default_rng(0)
    table, expected, seen = AppendTable((pa.table({"year": [0] * 1000}),)), [0] * 1000, []
    copied = 0
    for _ in range(600):
        more = rng.integers(1, 9, int(rng.integers(0, 4))).tolist()
        before, table = table, table.append(pa.table({"year": pa.array(more, pa.int64())}))
        expected = expected + more
        assert len(table.parts) <= 12
        copied += len(table.parts[-1])
        seen.append((before.table(), len(expected) - len(more)))
    assert table.table()["year"].to_pylist() == expected
    assert all(past["year"].to_pylist() == expected[:size] for past, size in seen)
    assert copied < 12 * len(expected)

"""Columns that grow: what was read stays as it is, whatever is put behind it."""

import numpy as np
import pyarrow as pa
import pytest

import neupath as npth
from neupath import Nodes
from neupath.errors import GraphError
from neupath.live import LiveGraph, columns
from neupath.live.columns import GrowingColumn

TEXTS = ["", "a", "ü💥", None, "x" * 300]


def drawn(rng: np.random.Generator, kind: pa.DataType) -> pa.Array:
    """Draw some values, as a part of a longer array now and then."""
    count = int(rng.integers(0, 12))
    values = rng.integers(-9, 9, count) if pa.types.is_int64(kind) else [TEXTS[n] for n in rng.integers(0, 5, count)]
    return pa.array(values, kind).slice(int(rng.integers(0, 3)))


@pytest.mark.parametrize("kind", [pa.string(), pa.int64(), pa.large_string()])
def test_every_array_is_the_one_that_is_put_together(kind: pa.DataType) -> None:
    rng = np.random.default_rng(0)
    column = GrowingColumn(drawn(rng, kind))
    seen: list[tuple[pa.Array, list[object]]] = []
    for _ in range(60):
        more = drawn(rng, kind)
        expected = pa.concat_arrays([column.array, more])
        if rng.integers(0, 5) == 0:
            column.append(drawn(rng, kind))  # which nobody goes on with
        column = column.append(more)
        column.array.validate(full=True)
        assert column.array.equals(expected)
        assert column.array.null_count == expected.null_count
        seen.append((column.array, expected.to_pylist()))
    assert all(array.to_pylist() == values for array, values in seen)


def test_what_is_there_is_not_copied_for_what_comes() -> None:
    column = GrowingColumn(pa.array(["Mike"] * 1000)).append(pa.array(["Zoe"]))
    after = column.append(pa.array(["Ida"]))
    assert [b and b.address for b in after.array.buffers()] == [b and b.address for b in column.array.buffers()]


def test_more_text_than_an_array_can_hold_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "_MOST_BYTES", 5)
    with pytest.raises(GraphError, match="would have 6 bytes"):
        GrowingColumn(pa.array(["abc"])).append(pa.array(["def"]))


def test_new_nodes_are_compared_with_no_array_of_all_others(monkeypatch: pytest.MonkeyPatch) -> None:
    live = LiveGraph(npth.load("toy"))
    new = [{"author": Nodes("author", pa.array([name]))} for name in ("Zoe", "Ida", "Zoe")]
    monkeypatch.setattr(Nodes, "_refuse_repeated_ids", lambda nodes: pytest.fail(f"{len(nodes)} were compared"))
    assert [live.put([], nodes) for nodes in new[:2]] == [1, 2]
    with pytest.raises(GraphError, match="author id 'Zoe' is given 2 times; node ids must be unique"):
        live.put([], new[2])
    live.compact()
    with pytest.raises(GraphError, match="author id 'Mike' is given 2 times"):
        live.put([], {"author": Nodes("author", pa.array(["Mike"]), distinct=True)})
    assert live.view().hin.nodes["author"].ids.to_pylist()[5:] == ["Zoe", "Ida"]


@pytest.mark.parametrize(
    ("new", "told"),
    [
        (
            Nodes("item", pa.array([1]), pa.array(["a"]), pa.table({"year": [1999]})),
            "ids of item are string, and int64",
        ),
        (Nodes("item", pa.array(["a"]), None, pa.table({"year": [1999]})), "names of item are string, and none"),
        (Nodes("item", pa.array(["a"]), pa.array(["a"])), "attributes of item are year: int64, and none"),
    ],
)
def test_nodes_with_other_columns_are_refused_before_anything_changes(new: Nodes, told: str) -> None:
    live = LiveGraph(
        npth.HIN.build(
            [Nodes("item", pa.array(["x"]), pa.array(["X"]), pa.table({"year": [2000]})), Nodes("tag", pa.array([1]))],
            [npth.Edges(npth.Relation("item", "has", "tag"), np.array([0]), np.array([0]))],
        )
    )
    with pytest.raises(GraphError, match=f"{told} are given; the columns of new nodes are those of the others"):
        live.put([], {"item": new})
    assert live.view().version == 0
    assert live.put([], {"item": Nodes("item", pa.array(["y"]), pa.array(["Y"]), pa.table({"year": [2001]}))}) == 1
    assert live.view().hin.nodes["item"].names.to_pylist() == ["X", "Y"]

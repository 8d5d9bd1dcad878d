"""Columns that grow: what was read stays as it is, whatever is put behind it."""

import numpy as np
import pyarrow as pa
import pytest

import neupath as npth
from neupath import Nodes
from neupath.errors import GraphError
from neupath.live import LiveGraph
from neupath.live import append_arrays as columns
from neupath.live.append_arrays import GrowingColumn, GrowingTable
from neupath.live.live_graph import Recent

TEXTS = ["", "a", "ü💥", None, "x" * 300]


def shop() -> npth.HIN:
    return npth.HIN.build(
        [Nodes("item", pa.array(["x"]), pa.array(["X"]), pa.table({"year": [2000]})), Nodes("tag", pa.array([1]))],
        [npth.Edges(npth.Relation("item", "has", "tag"), np.array([0]), np.array([0]))],
    )


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


def test_attributes_stay_in_few_parts_that_are_rarely_copied() -> None:
    rng = np.random.default_rng(0)
    table, expected, seen = GrowingTable((pa.table({"year": [0] * 1000}),)), [0] * 1000, []
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


def test_attributes_of_new_nodes_are_put_together() -> None:
    live = LiveGraph(shop())
    for number in range(200):
        live.put([], {"item": Nodes("item", pa.array([f"i{number}"]), pa.array(["I"]), pa.table({"year": [number]}))})
    years = live.view().hin.nodes["item"].attributes["year"]
    assert years.num_chunks <= 9
    live.compact()
    compacted = live.view().hin.nodes["item"]
    assert compacted.attributes["year"].num_chunks == 1
    assert compacted.attributes["year"].to_pylist() == [2000, *range(200)] == years.to_pylist()
    assert compacted.find("i7") == 8


def test_the_bytes_of_attributes_that_stay_are_counted_once() -> None:
    asked: list[int] = []

    class Counted:
        """A table that notes who asks for its size, which takes as long as it has chunks."""

        def __init__(self, table: pa.Table) -> None:
            self._table = table

        def __getattr__(self, name: str) -> object:
            return getattr(self._table, name)

        @property
        def nbytes(self) -> int:
            asked.append(1)
            return int(self._table.nbytes)

    hin = shop()
    object.__setattr__(hin.nodes["item"], "attributes", Counted(hin.nodes["item"].attributes))
    live, recent = LiveGraph(hin), Recent()
    for number in range(20):
        live.put([(hin.schema.relations[0], 0, 0, float(number + 1))])
        recent.keep(live.view())
    assert len(recent) == 20
    assert len(asked) == 1


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
    live = LiveGraph(shop())
    with pytest.raises(GraphError, match=f"{told} are given; the columns of new nodes are those of the others"):
        live.put([], {"item": new})
    assert live.view().version == 0
    assert live.put([], {"item": Nodes("item", pa.array(["y"]), pa.array(["Y"]), pa.table({"year": [2001]}))}) == 1
    assert live.view().hin.nodes["item"].names.to_pylist() == ["X", "Y"]

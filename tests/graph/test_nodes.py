import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neupath.errors import GraphError, NodeError
from neupath.graph.nodes import Nodes

MOVIES = Nodes(
    "movie",
    pa.array([10, 11, 12, 13]),
    pa.array(["Avatar", "Heat", "Heat", None]),
    pa.table({"year": [2009, 1995, 1986, None], "country": ["USA", "USA", "South Korea", "France"]}),
)


def test_finds_by_id_then_by_name() -> None:
    assert MOVIES.find(10) == 0
    assert MOVIES.find("11") == 1
    assert MOVIES.find("Avatar") == 0
    for spelling in (13, np.int64(13), np.uint8(13), np.float64(13.0), np.float32(13.0), "13", np.str_("13")):
        assert MOVIES.find(spelling) == 3
    texts = Nodes("paper", pa.array(["13", "x"]))
    assert [texts.find(spelling) for spelling in (13, np.int32(13), np.str_("13"))] == [0, 0, 0]
    assert MOVIES.find_many(["Avatar", 12]).tolist() == [0, 2]
    assert Nodes("t", pa.array(["x", "y"]), pa.array(["y", "z"])).find("y") == 1, "an id goes before a name"


@pytest.mark.parametrize(("few", "listed"), [(1000, 1 << 20), (0, 1 << 20), (0, 0)])
@settings(max_examples=40)
@given(st.data())
@pytest.mark.slow
def test_hashed_nodes_are_found_as_scanned_ones(few: int, listed: int, data: st.DataObject) -> None:
    """Ids are texts or numbers, names may be ids of other nodes, numbers, or those of several nodes."""
    texts = st.sampled_from(["1", "2", "3", "a", "b", "A", "c", ""])
    ids = data.draw(st.lists(texts, unique=True, max_size=6) | st.lists(st.integers(0, 5), unique=True, max_size=6))
    kind = pa.string() if ids and isinstance(ids[0], str) else pa.int64()
    names = data.draw(st.none() | st.lists(st.none() | texts, min_size=len(ids), max_size=len(ids)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("neupath.graph.nodes._FEW_NODES", few)
        patch.setattr("neupath.graph.nodes._MOST_LISTED", listed)
        nodes = Nodes("t", pa.array(ids, kind), None if names is None else pa.array(names, pa.string()))
        queries = [*data.draw(st.lists(texts | st.integers(0, 5) | st.booleans(), max_size=4)), *ids]
        patch.setattr("neupath.graph.nodes._SCANS", 10**9)
        scanned = [_found(nodes, query) for query in queries]
        labels = nodes.ids_at(range(len(ids))), nodes.names_at(range(len(ids)))
        patch.setattr("neupath.graph.nodes._SCANS", 0)
        for _ in range(2):
            assert [_found(nodes, query) for query in queries] == scanned
            assert (nodes.ids_at(range(len(ids))), nodes.names_at(range(len(ids)))) == labels
    assert labels == (tuple(ids), tuple(names or [None] * len(ids)))


def _found(nodes: Nodes, query: str | int) -> int | str:
    try:
        return nodes.find(query)
    except NodeError as error:
        return str(error)


def test_hashed_integer_ids_are_found_in_every_spelling() -> None:
    nodes = Nodes("paper", pa.array([10, 76, 7]), names=pa.array(["76", "8", None]))
    nodes.find(10)
    for spelling in (76, "76", " +76 ", np.int64(76), np.uint8(76), np.str_("76")):
        assert nodes.look_up(spelling) == nodes.find(spelling) == 1
    assert nodes.look_up("8") == 1
    assert [nodes.look_up(query) for query in (True, "9", 2**70, "7.0")] == [None] * 4


def test_labels() -> None:
    assert MOVIES.label(0) == "Avatar"
    assert MOVIES.label(3) == "13"
    assert MOVIES.name(3) is None


def test_an_id_that_is_another_nodes_name_is_known() -> None:
    films = Nodes("movie", pa.array([300, 412]), pa.array(["End of Days", "300"]))
    assert films.find("300") == 0
    assert films.also_named("300", 0) == [1]
    assert films.also_named("412", 1) == []
    with pytest.raises(NodeError, match="is not valid text"):
        films.find("\udcff")


def test_an_ambiguous_name_lists_the_candidates() -> None:
    with pytest.raises(
        NodeError, match=r"2 nodes of type movie are named 'Heat'; give an id: 11 \(Heat\) \[year 1995, .*12 \(Heat\)"
    ):
        MOVIES.find("Heat")


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("Avtar", r"no movie with the id or name 'Avtar' among 4; did you mean 10 \(Avatar\)"),
        ("heat", r"2 nodes of type movie are called, but for case and accents, 'heat'; give an id: 11 \(Heat\)"),
        ("zzzzzz", "the ids look like 10, 11, 12"),
        (99, "no movie with the id or name '99'"),
        (1.5, "no movie with the id or name '1.5'"),
        (None, "no movie with the id or name 'None'"),
        (2**70, "no movie with"),
        ("", "no movie with the id or name ''"),
    ],
)
def test_an_unknown_node_suggests_the_nearest(query, message: str) -> None:
    with pytest.raises(NodeError, match=message):
        MOVIES.find(query)


def test_a_type_without_nodes() -> None:
    with pytest.raises(NodeError, match="no city with the id 'Ulm' among 0; the graph has no nodes of this type"):
        Nodes("city", pa.array([], pa.string())).find("Ulm")


def test_unicode_ids() -> None:
    nodes = Nodes("city", pa.array(["Zürich", "東京", "🙂"]))
    assert nodes.find("東京") == 1
    assert nodes.find("zurich") == 0
    with pytest.raises(NodeError, match="no city with the id 'Zurihc' among 3; did you mean 'Zürich'"):
        nodes.find("Zurihc")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Nodes("t", pa.array([1, 2, 1])), "t id 1 is given 2 times; node ids must be unique"),
        (lambda: Nodes("t", pa.array(["a", None])), "t number 2 has no id"),
        (lambda: Nodes("t", pa.array([1.5])), "ids of t are of type double; give strings or integers"),
        (lambda: Nodes("t", pa.array([1]), pa.array(["a", "b"])), "2 names are given for 1 nodes of type t"),
        (lambda: Nodes("t", pa.array([1]), None, pa.table({"x": [1, 2]})), "2 x are given for 1 nodes"),
    ],
)
def test_refuses(make, message: str) -> None:
    with pytest.raises(GraphError, match=message):
        make()


def test_many_ascending_ids_are_found_by_bisection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("neupath.graph.nodes._MANY", 5)
    nodes = Nodes("t", pa.array([2, 3, 5, 8, 13]), pa.array(["a", "b", "c", "d", "21"]))
    assert nodes.find_many([13, "2", 8, "c", 21]).tolist() == [4, 0, 3, 2, 4]
    assert "row_of_id" not in vars(nodes)
    with pytest.raises(NodeError, match="no t with the id or name '4' among 5"):
        nodes.find(4)
    unordered = Nodes("t", pa.array([3, 2, 5, 8, 13]))
    assert unordered.find_many([2, 3]).tolist() == [1, 0]

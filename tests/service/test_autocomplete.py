"""The rows, ids and names of a type that grows."""

import pyarrow as pa

from neupath.graph.name_search import search_names
from neupath.graph.nodes import Nodes
from neupath.service.autocomplete import NameIndex

TITLES = ["The Dark Knight", "Dark City", "Avatar", "Knight and Day", "avatar", None, "Straße", "İstanbul", ""]


def test_find_row_agrees_with_nodes_find() -> None:
    by_text = Nodes("a", pa.array(["x", "7", "y"]), pa.array(["seven", "both", "both"]))
    for query in ("x", "7", 7, "seven"):
        assert NameIndex(by_text).find_row(query) == by_text.find(query)
    assert NameIndex(by_text).find_row("both") is None
    by_number = Nodes("b", pa.array([10, 20]), pa.array(["ten", "10"]))
    for query in ("10", 10, " 20", "ten"):
        assert NameIndex(by_number).find_row(query) == by_number.find(query)
    assert NameIndex(by_number).find_row("30") is None
    assert NameIndex(by_number).find_row("2_0") is None


def test_a_grown_index_matches_like_a_new_one() -> None:
    ids = [f"m{i}" for i in range(len(TITLES) + 3)]
    titles = [*TITLES, "Darkness", "Avatar", "new"]
    whole = NameIndex(Nodes("movie", pa.array(ids), pa.array(titles)))
    names = NameIndex(Nodes("movie", pa.array(ids[: len(TITLES)]), pa.array(TITLES)))
    for count in (len(TITLES) + 1, len(ids)):
        names = names.grown(Nodes("movie", pa.array(ids[:count]), pa.array(titles[:count])))
    for typed in ("dark", "ava", "new", "m1", "avtar", ""):
        assert search_names(names.searches, typed).best(50) == search_names(whole.searches, typed).best(50)
    for query in (*ids, "Darkness", "new", "Dark City", "Avatar", "nothing"):  # one Avatar is old and one is new
        assert names.find_row(query) == whole.find_row(query)
    rows = [0, len(ids) - 1, 3]
    assert names.ids_at(rows) == whole.ids_at(rows) == tuple(ids[row] for row in rows)
    assert names.names_at(rows) == whole.names_at(rows) == tuple(titles[row] for row in rows)
    assert names.grown(names.nodes) is names


def test_many_new_nodes_rebuild_the_index() -> None:
    few = Nodes("a", pa.array(["b1", "b3"]))
    many = Nodes("a", pa.array(["b1", "b3", *(f"b2{i}" for i in range(1001))]))
    some = NameIndex(few).grown(Nodes("a", pa.array(["b1", "b3", "b2"])))
    assert [len(part) for part in some.searches] == [2, 1]
    assert [len(part) for part in NameIndex(few).grown(many).searches] == [1003]

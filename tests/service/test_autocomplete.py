"""Nodes by what a person types."""

import pyarrow as pa
import pytest

from neupath import Nodes
from neupath.service.autocomplete import NameIndex

TITLES = ["The Dark Knight", "Dark City", "Avatar", "Knight and Day", "avatar", None, "Straße", "İstanbul", ""]


@pytest.fixture(scope="module")
def names() -> NameIndex:
    return NameIndex(Nodes("movie", pa.array([f"m{i}" for i in range(len(TITLES))]), pa.array(TITLES)))


@pytest.mark.parametrize(
    ("typed", "rows", "match"),
    [
        ("dark", [1, 0], ["prefix", "inside"]),
        ("AVA", [2, 4], ["prefix", "prefix"]),
        ("m3", [3], ["prefix"]),
        ("strasse", [6], ["prefix"]),
        ("nigh", [0, 3], None),
        ("the drak knigth", [0], ["spelling"]),
        ("avtar", [2, 4], ["spelling", "spelling"]),
        ("istanbul", [7], None),
    ],
)
def test_prefix_then_inside_then_spelling(
    names: NameIndex, typed: str, rows: list[int], match: list[str] | None
) -> None:
    page = names.find(typed, 10)
    assert set(rows) <= set(page.rows)
    assert page.rows[: len(rows)] == rows or match is None
    if match is not None:
        assert page.matches[: len(rows)] == match


def test_pages_do_not_overlap(names: NameIndex) -> None:
    whole = names.find("a", 100)
    pages = [names.find("a", 2, offset).rows for offset in range(0, whole.total, 2)]
    assert [row for page in pages for row in page] == whole.rows
    assert names.find("a", 2, 1000).rows == []
    assert names.find("", 3, 7).rows == [7, 8]
    assert names.find("  ", 3).total == len(TITLES)


@pytest.mark.parametrize("typed", ["\x00", "%", "x" * 20_000, "\ud800", "🙂", "(", "\\"])
def test_odd_texts_match_nothing(names: NameIndex, typed: str) -> None:
    assert names.find(typed, 5).rows == []


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


def test_an_index_without_nodes() -> None:
    names = NameIndex(Nodes("a", pa.array([], pa.string())))
    assert names.find("x", 5).rows == []
    assert names.find("", 5).total == 0


def test_a_grown_index_matches_like_a_new_one() -> None:
    ids = [f"m{i}" for i in range(len(TITLES) + 3)]
    titles = [*TITLES, "Darkness", "Avatar", "new"]
    whole = NameIndex(Nodes("movie", pa.array(ids), pa.array(titles)))
    names = NameIndex(Nodes("movie", pa.array(ids[: len(TITLES)]), pa.array(TITLES)))
    for count in (len(TITLES) + 1, len(ids)):
        names = names.grown(Nodes("movie", pa.array(ids[:count]), pa.array(titles[:count])))
    for typed in ("dark", "ava", "new", "m1", "avtar", ""):
        page, expected = names.find(typed, 50), whole.find(typed, 50)
        assert page.total == expected.total
        assert set(zip(page.rows, page.matches, strict=True)) == set(zip(expected.rows, expected.matches, strict=True))
    for query in (*ids, "Darkness", "new", "Dark City", "Avatar", "nothing"):  # one Avatar is old and one is new
        assert names.find_row(query) == whole.find_row(query)
    rows = [0, len(ids) - 1, 3]
    assert names.labels(rows) == whole.labels(rows)
    assert names.grown(names.nodes) is names


def test_many_new_nodes_rebuild_the_index() -> None:
    few = Nodes("a", pa.array(["b1", "b3"]))
    many = Nodes("a", pa.array(["b1", "b3", *(f"b2{i}" for i in range(1001))]))
    assert NameIndex(few).grown(Nodes("a", pa.array(["b1", "b3", "b2"]))).find("b", 3).rows == [0, 1, 2]
    assert NameIndex(few).grown(many).find("b", 3).rows == [0, 2, 3]

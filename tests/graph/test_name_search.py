"""Nodes by what a person types."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neupath import HIN, NeuPathError, load
from neupath.graph.name_search import NameSearch, _count_edits, _letters, _positions, search_names
from neupath.graph.nodes import Nodes

TITLES = ["The Dark Knight", "Dark City", "Avatar", "Knight and Day", "avatar", None, "Straße", "İstanbul", ""]


@pytest.fixture(scope="module")
def names() -> NameSearch:
    return NameSearch(pa.array([f"m{i}" for i in range(len(TITLES))]), pa.array(TITLES))


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("dark", [(1, "prefix"), (0, "inside")]),
        ("AVA", [(2, "prefix"), (4, "prefix")]),
        ("avatar", [(2, "exact"), (4, "exact")]),
        ("m3", [(3, "exact")]),
        ("strasse", [(6, "exact")]),
        ("istanbul", [(7, "exact")]),
        ("nigh", [(3, "inside"), (0, "inside")]),
        ("the drak knigth", [(0, "spelling")]),
        ("avtar", [(2, "spelling"), (4, "spelling")]),
        ("drak", [(1, "spelling"), (0, "spelling")]),
        ("kinght", [(3, "spelling"), (0, "spelling")]),
        ("", [(row, "any") for row in range(9)]),
    ],
)
def test_exact_then_prefix_then_inside_then_spelling(names: NameSearch, typed: str, expected: list) -> None:
    assert search_names([names], typed).best(len(expected)) == expected


def test_pages_do_not_overlap(names: NameSearch) -> None:
    matches = search_names([names], "a")
    whole = matches.best(100)
    pages = [matches.best(2, offset) for offset in range(0, len(matches), 2)]
    assert [match for page in pages for match in page] == whole
    assert matches.best(2, 1000) == []
    assert [row for row, _ in search_names([names], "").best(3, 7)] == [7, 8]
    assert len(search_names([names], "  ")) == len(TITLES)


@pytest.mark.parametrize("typed", ["\x00", "%", "x" * 20_000, "\ud800", "🙂", "(", "\\"])
def test_odd_texts_match_nothing(names: NameSearch, typed: str) -> None:
    assert len(search_names([names], typed)) == 0


def test_no_nodes() -> None:
    none = NameSearch(pa.array([], pa.string()))
    assert len(search_names([none], "x")) == 0
    assert len(search_names([none], "")) == 0
    assert search_names([], "x").best(3) == []


def test_numbers_are_not_spelled_alike() -> None:
    numbers = NameSearch(pa.array([12345, 12346, 99912345]))
    assert search_names([numbers], "12345").best(9) == [(0, "exact"), (2, "inside")]
    assert len(search_names([numbers], "12354")) == 0


def test_parts_are_ranked_together() -> None:
    parts = [NameSearch(pa.array(["x dark", "no"])), NameSearch(pa.array(["darker", "dark"]))]
    assert search_names(parts, "dark").best(9) == [(3, "exact"), (2, "prefix"), (0, "inside")]


def count_edits(a: str, b: str) -> int:
    """Count additions, deletions, replacements and swaps of neighbours, by the table of all prefixes."""
    table = np.zeros((len(a) + 1, len(b) + 1), dtype=int)
    table[:, 0], table[0, :] = np.arange(len(a) + 1), np.arange(len(b) + 1)
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            replaced = table[i - 1, j - 1] + (a[i - 1] != b[j - 1])
            table[i, j] = min(table[i - 1, j] + 1, table[i, j - 1] + 1, replaced)
            if i > 1 and j > 1 and a[i - 1] == b[j - 2] and a[i - 2] == b[j - 1]:
                table[i, j] = min(table[i, j], table[i - 2, j - 2] + 1)
    return int(table[-1, -1])


@given(st.text("abä", min_size=1, max_size=9), st.lists(st.text("abcä", max_size=9), min_size=1, max_size=5))
def test_edits_are_those_of_the_table(pattern: str, texts: list[str]) -> None:
    positions, lengths = _positions(pattern, _letters(texts)), np.array([len(text) for text in texts])
    whole = _count_edits(pattern, positions, lengths, whole=True)
    assert whole.tolist() == [count_edits(pattern, text) for text in texts]
    part = _count_edits(pattern, positions, lengths, whole=False)
    parts = [[text[i:j] for i in range(len(text) + 1) for j in range(i, len(text) + 1)] for text in texts]
    assert part.tolist() == [min(count_edits(pattern, each) for each in every) for every in parts]


@pytest.fixture(scope="module")
def hin() -> HIN:
    people = Nodes("person", pa.array(["p1", "p2", "p3"]), pa.array(["Zoë Müller", "zoe muller", "Ann"]))
    return HIN.build([people, Nodes("town", pa.array(["Ann Arbor", "p1"]))], [])


def test_a_graph_is_searched_over_all_types(hin: HIN) -> None:
    found = [(node.node_type, node.id, node.name, node.match) for node in hin.find("ann")]
    assert found == [("person", "p3", "Ann", "exact"), ("town", "Ann Arbor", None, "prefix")]
    assert [node.id for node in hin.find("ann", node_type="town")] == ["Ann Arbor"]
    assert len(hin.find("p", 2)) == 2
    with pytest.raises(NeuPathError, match="no node type 'city'"):
        hin.find("ann", node_type="city")
    with pytest.raises(NeuPathError, match="k is 0; find at least 1 node"):
        hin.find("ann", 0)


def test_a_unique_name_is_found_whatever_its_case(hin: HIN) -> None:
    person = hin.nodes["person"]
    assert [person.find(query) for query in ("ANN", "P2", "Zoë Müller", "zoe muller")] == [2, 1, 0, 1]
    with pytest.raises(
        NeuPathError, match=r"2 nodes .* called, but for case and accents, 'ZOE MÜLLER'; give an id: 'p1"
    ):
        person.find("ZOE MÜLLER")
    with pytest.raises(NeuPathError, match=r"no person with the id or name 'An'"):
        person.find_many(["An"], exact=True)


def test_ids_win_over_names() -> None:
    nodes = Nodes("a", pa.array(["Mike", "2"]), pa.array(["two", "MIKE"]))
    assert (nodes.find("Mike"), nodes.find("MIKE"), nodes.find("mike")) == (0, 1, 0)


def test_an_error_says_that_a_node_is_of_another_type(hin: HIN) -> None:
    with pytest.raises(NeuPathError, match="'Ann Arbor' is a node of type town, and here one of type person is needed"):
        hin.row("person", "Ann Arbor")
    with pytest.raises(NeuPathError, match="no person with the id or name 'Anm' among 3; did you mean 'p3'"):
        hin.row("person", "Anm")


def test_types_are_told_by_ids_as_they_are_written() -> None:
    hin = HIN.build([Nodes("a", pa.array(["x1"])), Nodes("b", pa.array(["X1"]))], [])
    assert hin.find_type(["x1"], "the query") == "a"
    hin = HIN.build([Nodes("a", pa.array(["X1"])), Nodes("b", pa.array(["y"]))], [])
    assert hin.find_type(["x1"], "the query") == "a"


@pytest.mark.slow
def test_misspelled_names_of_a_real_graph() -> None:
    """A letter is dropped, doubled, or swapped with the next, in turn."""
    hin = load("stdlib")
    names = sorted({name for name in hin.nodes["class"].names.to_pylist() if name and len(name) >= 8})
    rng = np.random.default_rng(0)
    for number, at in enumerate(rng.choice(len(names), 20, replace=False)):
        name = names[at]
        cut = int(rng.integers(1, len(name) - 2))
        typed = (
            name[:cut] + name[cut + 1 :],
            name[:cut] + name[cut] + name[cut:],
            name[:cut] + name[cut + 1] + name[cut] + name[cut + 2 :],
        )[number % 3]
        assert name in [node.name for node in hin.find(typed.lower())], typed

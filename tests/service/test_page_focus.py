"""The explorer for who works without a mouse, on a slow service, on a large schema, and with a broken address."""

import threading
from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest

from neupath import HIN, Edges, Nodes, Relation
from tests.patience import PATIENCE
from tests.service.browser import PARSER, Browser, Explorer, explore, needs_chromium
from tests.service.conftest import Running, Start

pytestmark = needs_chromium
BOXES = """(selector) => [...document.querySelectorAll(selector)].map((one) => {
  const box = one.getBoundingClientRect();
  return [box.left, box.top, box.right, box.bottom];
})"""


def focused(explorer: Explorer) -> str:
    return str(explorer.page.evaluate("document.activeElement.id || document.activeElement.tagName"))


@pytest.mark.parametrize("selector", ["#next .chip", "#suggestions button", ".schema .relation[role=button]"])
def test_the_focus_is_not_lost_where_a_path_is_built(explorer: Explorer, selector: str) -> None:
    explorer.open(g="stdlib", p="class-module")
    explorer.at(selector).first.focus()
    explorer.page.keyboard.press("Enter")
    explorer.see("#path-a").not_to_have_value("class-module")
    explorer.see("#status-a").to_contain_text("✓")
    assert focused(explorer) != "BODY"


def test_a_chip_moves_the_focus_to_the_hits(explorer: Explorer) -> None:
    explorer.open(g="stdlib", p="class-method-class")
    explorer.at("#start .chip").first.focus()
    explorer.page.keyboard.press("Enter")
    explorer.hits()
    assert focused(explorer) == "found"


def test_the_focus_stays_at_more_paths(explorer: Explorer) -> None:
    explorer.open(**PARSER, t="optparse.OptionParser", n=1)
    explorer.at(".more button").focus()
    explorer.page.keyboard.press("Enter")
    explorer.see("ol.instances li:nth-child(2)").to_be_visible()
    assert focused(explorer) in ("why-title", "BUTTON")


def test_the_focus_stays_when_pairs_are_removed_and_inferred_from(explorer: Explorer) -> None:
    pairs = '[["Mike","Bob",1],["Mike","Mary",0.8],["Mary","Ann",0.2857]]'
    explorer.open(g="toy", v="example", type="author", pairs=pairs, p="APA")
    explorer.see(".pair").to_have_count(3)
    explorer.at(".pair button").first.focus()
    explorer.page.keyboard.press("Enter")
    explorer.see(".pair").to_have_count(2)
    assert explorer.page.evaluate("document.activeElement.closest('.pair') !== null")
    explorer.at("#infer").focus()
    explorer.page.keyboard.press("Enter")
    explorer.see("#inferred .verdict").to_be_visible()
    assert focused(explorer) == "inferred"


def test_a_measure_over_the_whole_graph_needs_no_meta_path(explorer: Explorer, explored: Running) -> None:
    explorer.open(**PARSER)
    explorer.hits()
    explorer.at("#measure-a").select_option("measure:ppr")
    explorer.see("#status-a").to_contain_text("ppr needs no meta-path")
    explorer.see("#note-a").to_contain_text("Compared with pathsim on class-method-class")
    words = {"query": PARSER["q"], "measure": "ppr", "node_type": "class"}
    answer = explored.get("/api/graphs/stdlib/search", params=words).json()
    assert explorer.hits() == [str(hit["id"]) for hit in answer["hits"]]


def test_a_slow_search_shows_that_it_runs(browser: Browser, start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    running = start()
    go_on = threading.Event()
    measure = running.service.registry.measure

    def slow(*arguments: str) -> object:
        assert go_on.wait(PATIENCE)
        return measure(*arguments)

    monkeypatch.setattr(running.service.registry, "measure", slow)
    with explore(browser, running.url) as explorer:
        explorer.open(g="toy", p="APVPA", q="Mike", qt="author")
        explorer.see("#found").to_have_text("Searching …")
        explorer.see("#live").to_contain_text("searching")
        go_on.set()
        explorer.hits()
        explorer.see("#found").to_contain_text("3 hits, exact")


@pytest.mark.parametrize(
    "words",
    [
        {"v": "nothing", "k": "-3", "n": "x", "side": "c"},
        {"k": "1e99", "n": "Infinity", "skip": "[[{},null]]", "mix": '[["pathsim","APA","0.5"]]'},
        {"mix": '[["pathsim",7,1],[null,"APA",1],["pathsim","APA",-1]]', "pairs": '[[{},[],1],["Mike",null,"x"]]'},
        {"v": "example", "type": "author", "pairs": '[[{"a":1},"Bob",1],["Mike","Bob",1]]', "skip": "7"},
    ],
)
def test_invalid_addresses_show_the_page(explorer: Explorer, words: dict[str, str]) -> None:
    explorer.open(g="toy", p="APVPA", q="Mike", **words)
    if words.get("v") == "example":
        explorer.see(".pair").to_have_count(1)
    else:
        assert explorer.hits() == ["Bob", "Mary", "Jim"]


def crowded() -> HIN:
    """A graph with eleven types, some with long names, and several relations between most."""
    names = [f"type number {place}" if place % 3 else f"t{place}" for place in range(11)]
    edges = [
        Edges(Relation(names[a], f"relation {a} {b} {copy}", names[b]), np.array([0]), np.array([0]))
        for a, b in combinations(range(11), 2)
        if (a * b) % 3 != 1
        for copy in range(1 + (a + b) % 3)
    ]
    return HIN.build([Nodes(name, pa.array(["x"])) for name in names], edges)


def test_nothing_overlaps_in_the_picture_of_a_large_schema(browser: Browser, start: Start) -> None:
    running = start(graphs={"crowded": crowded()})
    joined = {frozenset((relation.source, relation.target)) for relation in crowded().schema.relations}
    with explore(browser, running.url, viewport={"width": 1280, "height": 900}) as explorer:
        explorer.open(g="crowded", p="t0")
        explorer.see(".schema .type").to_have_count(11)
        explorer.see(".schema .relation").to_have_count(len(joined))
        types = explorer.page.evaluate(BOXES, ".schema .type > rect")
        labels = explorer.page.evaluate(BOXES, ".schema .relation .label")
        assert labels
        for a, b in combinations([*types, *labels], 2):
            assert a[2] <= b[0] + 4 or b[2] <= a[0] + 4 or a[3] <= b[1] + 4 or b[3] <= a[1] + 4, (a, b)

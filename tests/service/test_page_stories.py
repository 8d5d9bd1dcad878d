"""The explorer by keyboard alone, to a screen reader, with odd names, in two tabs, at a service that restarts."""

import csv
import io
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from neupath import HIN, Edges, Nodes, Relation
from tests.service.browser import MIKE, Browser, Explorer, expect, explore, needs_chromium
from tests.service.conftest import Running, Start, start_service

pytestmark = needs_chromium


def clinic() -> HIN:
    """Diseases and their genes; asthma shares most with COPD, then with allergy."""
    genes = {"asthma": "ABCDE", "COPD": "ABCDF", "allergy": "ABG", "flu": "AHI", "anaemia": "JK", "gout": "EJ"}
    names = sorted(set("".join(genes.values())))
    pairs = [(place, names.index(gene)) for place, own in enumerate(genes.values()) for gene in own]
    rows, columns = np.array(pairs).T
    diseases = Nodes("Disease", pa.array([f"D{place}" for place in range(len(genes))]), pa.array(list(genes)))
    kinds = [diseases, Nodes("Gene", pa.array(names))]
    return HIN.build(kinds, [Edges(Relation("Disease", "associates", "Gene"), rows, columns)])


def cinema() -> HIN:
    """Films with actors and genres: those of the first actor are alike, whatever their genre."""
    films = Nodes("film", pa.array(range(12)), pa.array([f"Film {place}" for place in range(12)]))
    actors, genres = Nodes("actor", pa.array(["Ada", "Bea", "Cyd"])), Nodes("genre", pa.array(["drama", "crime"]))
    plays = [(place, place // 4) for place in range(12)] + [(0, 1), (4, 0), (8, 0)]
    of = [(place, place % 2) for place in range(12)]
    edges = [
        Edges(Relation("film", relation, kind), *np.array(pairs).T)
        for relation, kind, pairs in (("stars", "actor", plays), ("of", "genre", of))
    ]
    return HIN.build([films, actors, genres], edges)


ODD = ("x" * 200, "שלום עולם", "", "same", "same", "word " * 40, "\u202ereversed", "plain")


def odd() -> HIN:
    """Items of one tag whose names are long, right to left, empty and equal."""
    items = Nodes("item", pa.array([f"i{place}" for place in range(len(ODD))]), pa.array(ODD))
    return one_tag(items)


def tied(count: int) -> HIN:
    return one_tag(Nodes("item", pa.array(range(count))))


def one_tag(items: Nodes) -> HIN:
    rows = np.arange(len(items))
    has = Edges(Relation("item", "has", "tag"), rows, np.zeros_like(rows))
    return HIN.build([items, Nodes("tag", pa.array(["t"]))], [has])


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    graphs = {"clinic": clinic(), "cinema": cinema(), "odd": odd(), "tied": tied(10_001)}
    service = start_service(tmp_path_factory.mktemp("told"), graphs)
    yield service
    service.stop()


@pytest.fixture
def teller(browser: Browser, told: Running) -> Iterator[Explorer]:
    with explore(browser, told.url, viewport={"width": 1280, "height": 900}) as window:
        yield window


# ---- Keyboard and screen reader ------------------------------------------------------------------
def test_a_newcomer_explains_a_hit_by_keyboard(teller: Explorer) -> None:
    teller.open(g="clinic")
    teller.see(".starter").not_to_have_count(0)
    teller.type_in_box("asthma")
    teller.see(".card").not_to_have_count(0)
    teller.see("#node-title").to_be_focused()
    teller.enter(".card .hit-link")
    teller.see("#why-title").to_have_text("asthma and COPD")
    assert teller.actions <= 3
    teller.enter("#why .group > .open")
    teller.see(".instances li").to_have_count(1)


def test_a_biologist_exports_diseases_like_asthma_by_keyboard(teller: Explorer) -> None:
    teller.open(g="clinic")
    teller.see(".starter").not_to_have_count(0)
    teller.type_in_box("asthma")
    teller.see(".card h3 a").to_have_text(["shared Genes"])
    teller.enter(".card h3 a")
    assert teller.hits() == ["D1", "D2", "D5", "D3"]
    teller.enter("#hits-a .open")
    teller.see(".group .name").to_have_text(["A", "B", "C", "D"])
    teller.enter("#share", "Shift+Tab")
    with teller.page.expect_download() as table:
        teller.enter("#csv")
    rows = list(csv.DictReader(io.StringIO(Path(table.value.path()).read_text(encoding="utf-8"))))
    assert [row["name"] for row in rows] == ["COPD", "allergy", "gout", "flu"]
    assert teller.actions <= 6


def test_a_film_fan_ranks_by_five_marks_by_keyboard(teller: Explorer) -> None:
    teller.open(g="cinema")
    teller.see(".starter").not_to_have_count(0)
    teller.type_in_box("film 0")
    teller.see(".card h3 a").not_to_have_count(0)
    teller.tab_to(".card h3 a")
    title = teller.page.evaluate("document.activeElement.textContent")
    teller.page.keyboard.press("Enter")
    teller.see("#search-title").to_contain_text(title)
    ids = teller.hits()
    for place, sign in enumerate(("yes", "yes", "no", "yes", "no")):
        teller.enter(f"#hits-a .hit[data-id='{ids[place]}'] .{sign}")
        expect(teller.hit(ids[place]).locator(f".{sign}")).to_have_attribute("aria-pressed", "true")
    last = teller.hit(ids[4]).locator(".name").inner_text()
    teller.hear(f"{last} is marked as not similar")
    teller.enter("#rerank", "Shift+Tab")
    teller.see("#search-title").to_contain_text("your examples")
    teller.see(".move").not_to_have_count(0)
    assert teller.actions <= 12


def test_a_screen_reader_is_told_why_a_hit_is_similar(teller: Explorer) -> None:
    """Defect 16: choosing a hit announced nothing."""
    teller.open(g="clinic", q="D0", qt="Disease", p="Disease-Gene-Disease")
    teller.hear("4 hits, exact, the best is COPD")
    teller.see("#live").to_have_attribute("aria-live", "polite")
    teller.tab_to("#hits-a .open")
    name = teller.page.evaluate("document.activeElement.textContent")
    assert name.startswith("1rank 1, COPD")
    assert teller.page.evaluate("document.activeElement.getAttribute('aria-pressed')") == "false"
    teller.page.keyboard.press("Enter")
    teller.hear("Why COPD: Both connect through 4 nodes of type Gene, each with 25 %.")
    expect(teller.hit("D1").locator(".open")).to_be_focused()
    expect(teller.hit("D1").locator(".open")).to_have_attribute("aria-pressed", "true")


# ---- Names and ties ------------------------------------------------------------------------------
def test_long_empty_equal_and_reversed_names_are_told_apart(browser: Browser, told: Running) -> None:
    with explore(browser, told.url, viewport={"width": 390, "height": 844}) as explorer:
        explorer.open(g="odd", q="i7", qt="item", p="item-tag-item", t="i0")
        assert explorer.hits() == [f"i{place}" for place in range(7)]
        names = explorer.at("#hits-a .name").all_inner_texts()
        assert names[2] == "i2"  # a node without a name has its id
        expect(explorer.hit("i3").locator(".id")).to_be_visible()  # two are called the same
        expect(explorer.hit("i4").locator(".id")).to_be_visible()
        explorer.see("#why .paths .spot").not_to_have_count(0)
        assert explorer.overflow() <= 0
        for words in ({"q": "i0", "qt": "item"}, {"q": "i1", "qt": "item"}, {"q": "i2", "qt": "item"}):
            explorer.open(g="odd", **words)
            explorer.see(".card .hit-link").not_to_have_count(0)
            assert explorer.overflow() <= 0, words
        explorer.at("button", has_text="Draw its neighbourhood").click()
        explorer.see(".neighbourhood .spot").to_have_count(2)
        explorer.open(g="odd", q="i7", qt="item", p="item-tag-item", show="map")
        explorer.see(".hit-map .spot").to_have_count(8)
        assert explorer.overflow() <= 0


def test_ten_thousand_ties_share_a_rank(teller: Explorer) -> None:
    teller.open(g="tied", q="0", qt="item", p="item-tag-item")
    assert teller.hits() == [str(place) for place in range(1, 11)]
    teller.see(".tie-head").to_have_text("100 or more tie at 1.0000; they are in the order of the graph")
    teller.see(".hit .rank > span:first-child").to_have_text(["=1"] * 10)
    teller.at("#k").select_option("1000")
    teller.see(".tie-head").to_have_text("1,000 or more tie at 1.0000; they are in the order of the graph")
    teller.see("#hits-a .hit").to_have_count(1000)
    teller.at("#k").select_option("10")
    teller.at("#map").click()
    teller.see(".hit-map .spot").to_have_count(11)
    teller.at(".logo").click()
    teller.look_up("7")
    teller.see(".card").to_contain_text("100 or more hits, 100 or more tie at 1.0000")


# ---- What changes meanwhile ----------------------------------------------------------------------
def test_a_service_that_is_restarted_goes_on_and_asks_for_its_new_token(browser: Browser, start: Start) -> None:
    first = start(token="the first token")
    port = int(first.url.rpartition(":")[2])
    with explore(browser, first.url) as explorer:
        explorer.open(**MIKE)
        explorer.at("#token").fill("the first token")
        explorer.at("#token").press("Enter")
        assert explorer.hits()[0] == "Bob"
        first.stop()
        explorer.hit("Mary").locator(".open").click()
        explorer.see("#why .problem").to_contain_text("The service does not answer.")
        start(token="another token", port=port)
        explorer.see("#token-dialog").to_be_visible()  # it was tried again without a click
        explorer.see("#token-problem").to_have_text("the token is wrong")
        explorer.at("#token-dialog button[value=cancel]").click()
        explorer.see("#why .problem").to_contain_text("the token is wrong")
        explorer.at("#why .problem button").click()
        explorer.at("#token").fill("another token")
        explorer.at("#token").press("Enter")
        explorer.see("#why .group").not_to_have_count(0)
        explorer.see("#why-title").to_have_text("Mike and Mary")
        assert explorer.hits()[0] == "Bob"  # nothing was lost
        explorer.complaints.clear()  # a browser logs every request that fails


def test_two_tabs_do_not_disturb_each_other(teller: Explorer) -> None:
    teller.open(g="clinic", q="D0", qt="Disease", p="Disease-Gene-Disease")
    teller.hits()
    other = Explorer(teller.page.context.new_page(), teller.url)
    other.open(g="cinema", q="0", qt="film", p="film-actor-film")
    ids = other.hits()
    other.hit(ids[0]).locator(".yes").click()
    teller.hit("D1").locator(".no").click()
    other.see("#pair-count").to_have_text("1")
    expect(teller.hit("D1").locator(".no")).to_have_attribute("aria-pressed", "true")
    assert other.hits() == ids
    teller.page.reload()
    expect(teller.hit("D1").locator(".no")).to_have_attribute("aria-pressed", "true")
    teller.at(".logo").click()
    teller.see(".recent a").to_have_text(["Diseases like asthma by shared Genes"])
    other.at(".logo").click()
    other.see(".recent a").to_have_text(["Films like Film 0 by shared actors"])
    assert not other.complaints

"""The explorer in a real Chromium: from the box to an explained hit, meta-paths, comparison, addresses, exports."""

import io
import json
import re
import shlex
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import neupath as npth
from neupath import HIN
from neupath.cli import main
from neupath.graph.nodes import Nodes
from tests.graphs import graph_of
from tests.service.browser import CLIPBOARD, MIKE, PARSER, Browser, Explorer, Route, expect, explore, needs_chromium
from tests.service.conftest import Running, Start, start_service

pytestmark = needs_chromium
COUNT_ANIMATIONS = "() => { window.animated = 0; Element.prototype.animate = () => { window.animated += 1; }; }"
SVG = "{http://www.w3.org/2000/svg}"


def ranked(explored: Running, **words: object) -> list[str]:
    answer = explored.get("/api/graphs/stdlib/search", params={"query": PARSER["q"], **words}).json()
    return [str(hit["id"]) for hit in answer["hits"]]


# ---- Stories -------------------------------------------------------------------------------------
def test_a_hit_is_explained_after_two_actions(explorer: Explorer, explored: Running) -> None:
    explorer.open()
    explorer.look_up("argumentparser")
    explorer.see("#node-title").to_have_text("ArgumentParser")
    cards = explored.get("/api/graphs/stdlib/similar?node_type=class&query=argparse.ArgumentParser").json()["metapaths"]
    explorer.see(".card .path").to_have_text([card["metapath"] for card in cards])
    explorer.see(".card:first-child h3").to_have_text("shared methods")
    explorer.click(".card .hit-link", has_text="OptionParser")
    explorer.see("#why-title").to_have_text("ArgumentParser and OptionParser")
    explorer.see("#why .summary").to_contain_text("Both connect through 7 nodes of type method")
    assert explorer.hits() == ranked(explored, metapath="class-method-class")
    expect(explorer.page).to_have_title("Classes like ArgumentParser by shared methods · stdlib")
    explorer.hear("Why OptionParser: Both connect through", is_start=True)
    assert explorer.actions <= 3


def test_stories_on_public_graphs(browser: Browser, data: Path, start: Start) -> None:
    served = start(graphs={name: npth.load(data / name) for name in ("imdb", "hetionet", "kg20c")})
    for graph, name in {"imdb": "the dark knight rises", "hetionet": "asthma", "kg20c": "jiawei han"}.items():
        with explore(browser, served.url) as explorer:
            explorer.open(g=graph)
            explorer.look_up(name)
            explorer.click(".card .hit-link")
            explorer.see("#why .groups li").not_to_have_count(0)
            assert explorer.actions <= 3


def test_everything_works_by_keyboard_alone(explorer: Explorer) -> None:
    explorer.open()
    explorer.see(".starter").not_to_have_count(0)
    press = explorer.page.keyboard.press
    press("/")
    explorer.see("#query").to_be_focused()
    explorer.page.keyboard.type("argumentp")
    expect(explorer.option()).to_contain_text("ArgumentParser")
    press("ArrowDown")
    active = explorer.at("#query").get_attribute("aria-activedescendant")
    explorer.see(f"#{active}").to_have_attribute("aria-selected", "true")
    press("Enter")
    explorer.see(".card").not_to_have_count(0)
    explorer.see("#node-title").to_be_focused()
    explorer.at(".card .hit-link").first.focus()
    press("Enter")
    explorer.see(".group").not_to_have_count(0)
    explorer.at(".group .open, .reason").nth(1).focus()
    press("Enter")
    explorer.see(".instances li").to_have_count(1)
    explorer.at(".paths .spot[tabindex='0']").focus()
    press("ArrowRight")
    explorer.see(".details").to_contain_text("method")
    press("ArrowRight")
    explorer.see(".details").to_contain_text("OptionParser")
    explorer.at("#why-close").focus()
    press("Enter")
    explorer.see("#why").to_have_count(0)
    expect(explorer.hit("optparse.OptionParser").locator(".open")).to_be_focused()


def test_the_box_is_reached_by_few_tabs(explorer: Explorer) -> None:
    """Defect 16: 52 Tabs to the query."""
    explorer.open(**PARSER)
    explorer.hits()
    for _ in range(5):
        explorer.page.keyboard.press("Tab")
        if explorer.page.evaluate("document.activeElement.id") == "query":
            return
    pytest.fail("the box is more than five Tabs away")


# ---- The box -------------------------------------------------------------------------------------
def test_the_box_finds_nodes_of_all_types_and_meta_paths(explorer: Explorer) -> None:
    """Defect 2: the box knew one type, and Enter chose what was merely spelled alike."""
    explorer.open(**MIKE)
    explorer.hits()
    explorer.look_up("sigmod")
    explorer.see("#node-title").to_have_text("SIGMOD")
    explorer.see(".node-card .type").to_have_text("venue")
    explorer.at("#query").fill("sigmd")
    explorer.at("#query").press("Enter")
    expect(explorer.option()).to_contain_text("similar spelling")
    explorer.see("#node-title").to_have_text("SIGMOD")  # it was not chosen for them
    explorer.at("#query").fill("m")
    explorer.at(".filter .chip", has_text="author").click()
    explorer.see("li.option .type").to_have_text(["author"] * 3)
    explorer.look_up("APVPA")
    explorer.see(".landing").to_contain_text("author-paper-venue-paper-author: choose the node")
    explorer.look_up("mike")
    assert explorer.hits() == ["Bob", "Mary", "Jim"]


def test_one_starts_from_well_connected_nodes(explorer: Explorer) -> None:
    """Defect 13: the first nodes of the file were offered, and ties ranked 1 to 10."""
    explorer.open(g="toy")
    explorer.see(".starter").not_to_have_count(0)
    assert explorer.at(".starter", has_text="author").locator(".chip").first.inner_text() == "Jim"
    explorer.open(g="hostile", p="<b>user-tag-<b>user", q="ü💥", qt="<b>user")
    explorer.see(".tie-head").to_have_text("6 tie at 1.0000; they are in the order of the graph")
    explorer.see(".hit .rank > span:first-child").to_have_text(["=1"] * 6)


def test_the_words_fit_the_types(explorer: Explorer) -> None:
    """Defect 19: "a author", and one placeholder everywhere."""
    explorer.open(g="toy")
    explorer.see(".landing label").to_have_text("Look up an author, a paper …")
    explorer.open(g="toy", v="examples", type="author")
    explorer.see("#pair-query").to_have_attribute("placeholder", "Name or id of an author")


# ---- Node and pair -------------------------------------------------------------------------------
def test_a_node_shows_its_neighbours_and_leads_to_them(explorer: Explorer) -> None:
    explorer.open(g="toy", q="Mike", qt="author")
    explorer.see(".links dt").to_have_text(["3 papers -writes->"])
    explorer.at("button", has_text="Draw its neighbourhood").click()
    explorer.see(".neighbourhood .spot").to_have_count(4)
    explorer.at(".neighbourhood .spot[data-id='Mike-SIGMOD-1']").click()
    explorer.see(".neighbourhood .spot").to_have_count(5)
    explorer.hear("1 more neighbour of Mike-SIGMOD-1 drawn")
    explorer.at(".neighbourhood .spot[data-id=SIGMOD]").focus()
    explorer.page.keyboard.press("Enter")
    explorer.see(".neighbourhood .spot").to_have_count(5 + 10)  # of the 12 that were asked for, two were there
    explorer.see(".neighbourhood figcaption").to_contain_text("venue SIGMOD")
    explorer.page.keyboard.press("Enter")
    explorer.see(".neighbourhood .spot").to_have_count(5)
    explorer.at(".neighbourhood .spot[data-id='Mike-SIGMOD-1']").click()
    explorer.see(".neighbourhood .spot").to_have_count(4)
    explorer.at(".neighbourhood a", has_text="Search from here").click()
    explorer.see("#node-title").to_have_text("Mike-SIGMOD-1")
    explorer.at(".links a", has_text="SIGMOD").last.click()
    explorer.see("#node-title").to_have_text("SIGMOD")


def test_two_nodes_are_related(explorer: Explorer) -> None:
    explorer.open(g="toy", v="relate", q="Mike", qt="author")
    explorer.look_up("sigmod", "#relate-target")
    explorer.see("#relate-title").to_have_text("How Mike and SIGMOD are related")
    paths = ["author-paper-venue", "author-paper-venue-paper-venue", "author-paper-author-paper-venue"]
    explorer.see(".related .path").to_have_text(paths)
    explorer.at(".related .path").first.click()
    explorer.see("#why-title").to_have_text("Mike and SIGMOD")


def test_it_says_why_a_node_is_not_among_the_hits(explorer: Explorer) -> None:
    explorer.open(**PARSER)
    explorer.hits()
    explorer.at(".filters summary").click()
    explorer.look_up("csv.DictReader", "#missing")
    hits = npth.PathSim(PARSER["p"]).fit(npth.load("stdlib")).top_k(PARSER["q"], k=100_000)
    rank = hits.ids.index("csv.DictReader") + 1
    explorer.see(".why-not").to_contain_text(f"DictReader ranks {rank} of {len(hits):,} targets of ArgumentParser")


# ---- Why -----------------------------------------------------------------------------------------
def test_why_is_a_summary_by_group_that_unfolds(explorer: Explorer, explored: Running) -> None:
    """Defect 1: a long meta-path showed ten paths of 0.0 %; the groups hold the whole score."""
    explorer.open(g="toy", p="APVPA", q="Jim", qt="author", t="Mike")
    why = explored.get("/api/graphs/toy/explain?query=Jim&target=Mike&metapath=APVPA&limit=12").json()
    explorer.see("#why .summary").to_have_text(why["summary"])
    explorer.see(".group .name").to_have_text([group["id"] for group in why["groups"]])
    shares = [float(text.split()[0]) for text in explorer.at(".group > .open .share").all_inner_texts()]
    assert sum(shares) == pytest.approx(100, abs=1)
    explorer.see(".formula").to_contain_text(f"pathsim = {why['formula']}")
    explorer.at(".group .open").first.click()
    explorer.see(".instances li").to_have_count(12)
    explorer.see(".group .quiet").to_contain_text([f"{why['groups'][0]['paths']} path"])
    explorer.see(".paths .spot").not_to_have_count(0)
    explorer.at("#by").select_option("paper")
    explorer.see(".groups-head h3").to_have_text("By paper")
    assert "by=paper" in explorer.page.url


def test_what_would_change_a_rank_and_whether_it_is_chance(explorer: Explorer) -> None:
    """Defect 9: the text of a job read ": 24 of 24 tried"."""
    explorer.open(**MIKE, t="Mary", k=2)
    explorer.at("#why button", has_text="What if venues were missing?").click()
    explorer.see(".what-if li").to_contain_text(["Without SIGMOD: rank 2 → none"])
    explorer.at(".filters summary").click()
    explorer.at("button", has_text="Could these scores be chance?").click()
    explorer.see(".p-value").to_have_count(2)
    explorer.at("nav a", has_text="Jobs").click()
    explorer.see(".job").to_have_count(2)
    assert all(text.startswith("done, ") for text in explorer.at(".job .quiet").all_inner_texts())


# ---- Meaning -------------------------------------------------------------------------------------
def test_types_clicked_in_turn_make_a_meta_path(explorer: Explorer) -> None:
    explorer.open(**PARSER, build="1")
    explorer.hits()
    explorer.at("#clear-a").click()
    explorer.see("#path-a").to_have_value("class")
    for node_type in ("module", "class"):
        explorer.at(f".schema [data-type='{node_type}']").click()
    explorer.see("#status-a").to_have_text("✓ class-module-class, out and back")
    explorer.see(".schema [data-type=class] .order text").to_have_text("1·3")
    explorer.see("#search-title").to_contain_text("shared modules")
    explorer.at(".schema [data-type=import]").focus()
    explorer.page.keyboard.press("Enter")
    explorer.see("#status-a").to_have_text("No step leads from the end of this meta-path to import.")
    explorer.at("#undo-a").click()
    explorer.see("#path-a").to_have_value("class-module")
    explorer.at("#path-a").fill("class-ba")
    explorer.see("#next-a .chip").to_have_text(["-extends->base"])
    explorer.at("#next-a .chip").click()
    explorer.at(".suggestion", has_text="shared bases").click()
    explorer.see("#search-title").to_contain_text("shared bases")


def test_fast_clicks_are_not_lost_on_a_slow_line(explorer: Explorer) -> None:
    """Defect 14: what was clicked before the last click was answered was lost."""
    explorer.open(**PARSER, build="1")
    explorer.hits()
    held: list[Route] | None = []

    def hold(route: Route) -> None:
        if held is None:
            route.continue_()
        else:
            held.append(route)

    explorer.page.route("**/metapaths?prefix=*", hold)
    explorer.at("#clear-a").click()
    explorer.see("#path-a").to_have_value("class")
    for node_type in ("module", "class"):
        explorer.at(f".schema [data-type='{node_type}']").click()
    routes, held = held, None
    for route in routes:
        route.continue_()
    explorer.see("#path-a").to_have_value("class-module-class")


def test_ranks_move_when_the_measure_changes(explorer: Explorer, explored: Running) -> None:
    explorer.open(**PARSER)
    before = explorer.hits()
    explorer.at("#measure-a").select_option("measure:pcrw")
    explorer.see("#note-a").to_contain_text("Compared with pathsim on class-method-class")
    after = explorer.hits()
    assert after == ranked(explored, metapath="class-method-class", measure="pcrw") != before
    best = ranked(explored, metapath="class-method-class", k=100)
    shown = explorer.at("#hits-a .move > span:first-child").all_inner_texts()
    assert shown == [moved(best.index(id) - place) if id in best else "new" for place, id in enumerate(after)]


def moved(by: int) -> str:
    return "=" if by == 0 else f"▲{by}" if by > 0 else f"▼{-by}"


@pytest.mark.parametrize("wish", ["reduce", "no-preference"])
def test_rows_move_only_where_motion_is_welcome(browser: Browser, explored: Running, wish: str) -> None:
    with explore(browser, explored.url, reduced_motion=wish) as explorer:
        explorer.open(**PARSER)
        explorer.hits()
        explorer.page.evaluate(COUNT_ANIMATIONS)
        explorer.at("#measure-a").select_option("measure:pcrw")
        explorer.see("#note-a").to_contain_text("Compared with")
        assert (explorer.page.evaluate("animated") > 0) == (wish == "no-preference")


def test_two_meanings_side_by_side(explorer: Explorer, explored: Running) -> None:
    """Defect 5: comparing stuck on "Searching …" though it was done."""
    explorer.open(**PARSER)
    explorer.hits()
    explorer.at("#compare").click()
    explorer.at("#measure-b").select_option("measure:pcrw")
    explorer.see("#title-b").to_contain_text("pcrw on class-method-class")
    a, b = explorer.hits("a"), explorer.hits("b")
    assert b == ranked(explored, metapath="class-method-class", measure="pcrw")
    common = [id for id in a if id in b]
    explorer.see(".ties path").to_have_count(len(common))
    explorer.see("#found").to_have_text("the best 10, exact")
    expect(explorer.hit(common[-1]).locator(".elsewhere > span").first).to_have_text(f"↔{b.index(common[-1]) + 1}")
    explorer.at("#measure-b").select_option("model:by-base")
    explorer.see("#title-b").to_contain_text("the model by-base")
    expect(explorer.at("#hits-b .hit").first).to_have_attribute("data-id", ranked(explored, model="by-base")[0])
    explorer.at("#hits-b .open").first.click()
    explorer.see("#why-title").to_contain_text("ArgumentParser and")
    explorer.at("#compare").click()
    explorer.see("#hits-b").to_have_count(0)


def test_a_measure_over_the_whole_graph_needs_no_meta_path(explorer: Explorer, explored: Running) -> None:
    explorer.open(**PARSER)
    explorer.hits()
    explorer.at("#measure-a").select_option("measure:ppr")
    explorer.see("#note-a").to_contain_text("Compared with pathsim on class-method-class")
    words = {"query": PARSER["q"], "measure": "ppr", "node_type": "class"}
    answer = explored.get("/api/graphs/stdlib/search", params=words).json()
    assert explorer.hits() == [str(hit["id"]) for hit in answer["hits"]]
    explorer.at("#hits-a .open").first.click()
    explorer.see("#why").to_contain_text("there are no paths to show")


# ---- Several nodes as one query ------------------------------------------------------------------
def test_hits_are_added_to_the_query_and_removed(explorer: Explorer, explored: Running, browser: Browser) -> None:
    explorer.open(**MIKE)
    explorer.hits()
    explorer.hit("Mary").locator(".add").click()
    explorer.see("#search-title").to_have_text("Authors like Mike and Mary by venues of their papers")
    body = {"queries": ["Mike", "Mary"], "together": True, "metapath": MIKE["p"]}
    answer = explored.post("/api/graphs/toy/search", body).json()[0]
    explorer.see("#hits-a .hit").to_have_count(len(answer["hits"]))
    assert explorer.hits() == [hit["id"] for hit in answer["hits"]]
    explorer.hear("Mary is now part of the query")
    explorer.hit("Bob").locator(".open").click()
    explorer.see("#why-title").to_have_text("2 nodes and Bob")
    why = explored.post("/api/graphs/toy/explain", {k: body[k] for k in ("queries", "metapath")} | {"target": "Bob"})
    explorer.see("#why .summary").to_have_text(why.json()["summary"])
    explorer.see("#why .weights .score").to_have_text(["56 %", "44 %"])
    explorer.see("#why .paths .spot").to_have_count(10)  # paths of both members
    with explore(browser, explored.url) as other:
        other.page.goto(explorer.page.url)
        assert other.hits() == explorer.hits()
        other.see(".member").to_have_text(["Mike ✕", "Mary ✕"])
    explorer.hit("Ann").locator(".open").click(modifiers=["Control"])
    explorer.see(".member").to_have_count(3)
    explorer.look_up("jim", "#add-member")
    explorer.see("#search-title").to_have_text("Authors like Mike, Mary and 2 others by venues of their papers")
    explorer.at("#map").click()
    explorer.see(".hit-map .spot").to_have_count(5)
    explorer.at("#map").click()
    for name in ("Mike", "Ann", "Jim"):
        explorer.at(f".member[data-id={name}]").click()
    explorer.see(".members").to_have_count(0)
    explorer.see("#search-title").to_have_text("Authors like Mary by venues of their papers")


def test_hits_related_otherwise_are_left_out(browser: Browser, explored: Running) -> None:
    with explore(browser, explored.url, permissions=CLIPBOARD) as explorer:
        explorer.open(**PARSER | {"with": '["optparse.OptionParser"]'})
        explorer.hits()
        explorer.at(".filters summary").click()
        explorer.see("#unless-options option").not_to_have_count(0)
        explorer.at("#unless").fill("class-module-class")
        explorer.at("#unless").press("Enter")
        explorer.see(".conditions .chip").to_have_text("not by class-module-class ✕")
        queries = [PARSER["q"], "optparse.OptionParser"]
        body = {"queries": queries, "together": True, "metapath": PARSER["p"], "unless": ["class-module-class"]}
        answer = explored.post("/api/graphs/stdlib/search", body).json()[0]
        expect(explorer.at("#hits-a .hit").first).to_have_attribute("data-id", answer["hits"][0]["id"])
        ids = explorer.hits()
        assert ids == [hit["id"] for hit in answer["hits"]]
        explorer.at("#share").click()
        assert printed(explorer.copied("command line")) == ids
        names: dict[str, object] = {}
        text = explorer.copied("Python")
        exec(text.replace("\nClient(", "\nclient = Client(").replace(").search(", ")\nhits = client.search("), names)
        assert [str(hit.id) for hit in names["hits"]] == ids  # type: ignore[attr-defined]
        names["client"].close()  # type: ignore[attr-defined]
        table = pq.read_table(io.BytesIO(explorer.download("#parquet")))
        assert table["id"].to_pylist() == ids
        origin = json.loads(table.schema.metadata[b"neupath"])
        assert origin["graph"] == "stdlib"
        assert origin["unless"] == ["class-module-class"]
        explorer.page.keyboard.press("Escape")
        explorer.at(".conditions .chip").click()
        del body["unless"]
        best = explored.post("/api/graphs/stdlib/search", body).json()[0]["hits"][0]["id"]
        assert best not in ids
        explorer.see(f"#hits-a .hit[data-id='{best}']").to_have_count(1)


def test_a_command_takes_ids_that_start_with_a_dash(browser: Browser, start: Start, tmp_path: Path) -> None:
    (tmp_path / "item_tag.csv").write_text("item,tag\n-1,--k\n-x,--k\nplain's,--k\n-x,b\n-1,b\n")
    served = start(graphs={"dashes": npth.load(tmp_path)})
    with explore(browser, served.url, permissions=CLIPBOARD) as explorer:
        for query in ("-1", "-x", "plain's"):
            others = {"with": '["-x"]' if query == "-1" else "[]"}
            explorer.open(g="dashes", p="item-tag-item", q=query, qt="item", **others)
            ids = explorer.hits()
            explorer.at("#share").click()
            line = explorer.copied("command line").replace("'dashes'", shlex.quote(str(tmp_path)))
            assert printed(line) == ids != []


def printed(line: str) -> list[str]:
    """Run a command line in this process; return the ids of the hits that it prints."""
    output = io.StringIO()
    with redirect_stdout(output), pytest.raises(SystemExit):
        program, command, *arguments = shlex.split(line)
        assert program == "neupath"
        main([command, "--json", *arguments])
    return [str(hit["id"]) for hit in json.loads(output.getvalue())["hits"]]


def test_searches_are_saved_by_their_words(explorer: Explorer) -> None:
    explorer.open(**PARSER | {"where": '["name ~ parser"]', "unless": '["class-module-class"]'})
    explorer.at("#save").click()
    explorer.see("#save").to_have_text("★ Saved")
    words = "Classes like ArgumentParser by shared methods, name ~ parser, not by class-module-class"
    other = explorer.page.context.new_page()
    other.goto(f"{explorer.url}/#g=stdlib")
    expect(other.locator(".saved a")).to_have_text([words])
    explorer.at(".logo").click()
    explorer.at(".saved a").click()
    explorer.see("#search-title").to_contain_text("ArgumentParser")
    assert "unless=" in explorer.page.url
    explorer.at("#save").click()
    explorer.see("#save").to_have_text("☆ Save")
    expect(other.locator(".saved")).to_have_count(0)  # two tabs share them
    explorer.at("#save").click()
    other.locator(".saved .remove").click()
    explorer.see("#save").to_have_text("☆ Save")
    explorer.see(".hit").not_to_have_count(0)


# ---- Filters, map, exports, addresses ------------------------------------------------------------
def films() -> HIN:
    """Ten films of one genre, half of them of each country."""
    attributes = pa.table({"year": range(2000, 2010), "country": ["Korea", "France"] * 5})
    film = Nodes("film", pa.array(range(10)), pa.array([f"film {place}" for place in range(10)]), attributes)
    return graph_of({"film": film, "genre": ["drama"]}, {"film -of-> genre": [(place, 0) for place in range(10)]})


def crowded() -> HIN:
    """A graph of 25 types, some with long names, and 60 relations."""
    names = [f"type number {place}" if place % 3 else f"t{place}" for place in range(25)]
    pairs = [(a, (a * step + step) % 25) for step in (1, 3, 7) for a in range(25)]
    chosen = [(a, b) for a, b in dict.fromkeys((min(pair), max(pair)) for pair in pairs) if a != b][:60]
    edges = {f"{names[a]} -relation {place}-> {names[b]}": [(0, 0)] for place, (a, b) in enumerate(chosen)}
    return graph_of({name: ["x"] for name in names}, edges)


CROSSED = """() => {
  const boxes = [...document.querySelectorAll(".schema .type-box")]
    .map((one) => [one.dataset.type, one.querySelector("rect").getBoundingClientRect()]);
  const crossed = new Set();
  for (const line of document.querySelectorAll(".schema .relation")) {
    const [ends, path] = [line.querySelector("title").textContent, line.querySelector("path")];
    const matrix = path.getScreenCTM();
    for (let at = 0; at <= path.getTotalLength(); at += 3) {
      const { x, y } = path.getPointAtLength(at).matrixTransform(matrix);
      const isInside = ([, box]) => x > box.left + 2 && x < box.right - 2 && y > box.top + 2 && y < box.bottom - 2;
      for (const [name] of boxes.filter(isInside)) if (!ends.includes(name)) crossed.add(`${ends} through ${name}`);
    }
  }
  const labels = [...document.querySelectorAll(".schema .relation .label")].map((one) => one.getBoundingClientRect());
  const apart = (a, b) =>
    a.left >= b.right - 2 || b.left >= a.right - 2 || a.top >= b.bottom - 2 || b.top >= a.bottom - 2;
  labels.forEach((one, place) => {
    const others = [...boxes.map(([, box]) => box), ...labels.slice(place + 1)];
    if (!others.every((other) => apart(one, other))) crossed.add(`label ${place}`);
  });
  return [...crossed];
}"""


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    service = start_service(tmp_path_factory.mktemp("shelf"), {"films": films(), "crowded": crowded()})
    yield service
    service.stop()


def test_no_line_of_a_crowded_schema_touches_another_type(browser: Browser, shelf: Running) -> None:
    """Defect 3: with many relations, lines ran through types that they do not touch, and labels vanished."""
    with explore(browser, shelf.url, viewport={"width": 1280, "height": 900}) as explorer:
        explorer.open(g="crowded")
        explorer.see(".schema .type-box").to_have_count(25)
        explorer.see(".schema .relation .label").to_have_count(60)
        assert explorer.page.evaluate(CROSSED) == []
        explorer.at("summary", has_text="All relations").click()
        explorer.see("table.relations tbody tr").to_have_count(60)


def test_hits_are_filtered_by_attributes(browser: Browser, shelf: Running) -> None:
    with explore(browser, shelf.url) as explorer:
        explorer.open(g="films", p="film-genre-film", q="0", qt="film")
        assert len(explorer.hits()) == 9
        explorer.at(".filters summary").click()
        explorer.at(".facets .chip", has_text="Korea").click()
        explorer.see("#found").to_contain_text("4 hits")
        explorer.at("#where").fill("year >= 2006")
        explorer.at("#where").press("Enter")
        explorer.see("#found").to_contain_text("2 hits")
        assert explorer.hits() == ["6", "8"]
        explorer.at(".conditions .chip").first.click()
        explorer.see("#found").to_contain_text("4 hits")


def test_the_map_of_the_hits_is_linked_with_the_list(explorer: Explorer) -> None:
    explorer.open(**PARSER)
    explorer.hits()
    explorer.at("#map").click()
    explorer.see(".hit-map .spot").to_have_count(11)
    assert explorer.download(".hit-map button", has_text="PNG").startswith(b"\x89PNG")
    explorer.at(".hit-map .spot[data-id='optparse.OptionParser']").click()
    explorer.see("#why-title").to_have_text("ArgumentParser and OptionParser")
    explorer.at("#map").click()
    expect(explorer.hit("optparse.OptionParser").locator(".open")).to_have_attribute("aria-pressed", "true")


def test_the_address_holds_the_view_and_back_returns(explorer: Explorer, browser: Browser, explored: Running) -> None:
    explorer.open(**PARSER)
    first = explorer.hits()
    explorer.at("#measure-a").select_option("measure:pcrw")
    explorer.see("#note-a").to_contain_text("Compared with")
    explorer.at("#hits-a .open").first.click()
    explorer.see(".group").not_to_have_count(0)
    shared, hits = explorer.page.url, explorer.hits("a")
    with explore(browser, explored.url) as other:
        other.page.goto(shared)
        assert other.hits("a") == hits
        other.see("#why-title").to_have_text(explorer.at("#why-title").inner_text())
        other.see("#measure-a").to_have_value("measure:pcrw")
    for _ in range(2):
        explorer.page.go_back()
    explorer.see("#measure-a").to_have_value("measure:pathsim")
    explorer.see("#why").to_have_count(0)
    expect(explorer.at("#hits-a .hit").nth(2)).to_have_attribute("data-id", first[2])
    explorer.at(".logo").click()
    explorer.see(".recent a").to_contain_text(["Classes like ArgumentParser by shared methods"])


def test_what_leaves_the_page_says_where_it_is_from(browser: Browser, explored: Running) -> None:
    """Defect 19: the CSV held neither measure, nor path, nor graph."""
    with explore(browser, explored.url, permissions=CLIPBOARD) as explorer:
        explorer.open(**PARSER, t="optparse.OptionParser")
        ids = explorer.hits()
        explorer.at("#share").click()
        rows = explorer.table("#csv")
        assert [row["id"] for row in rows] == ids
        origin = {"query": PARSER["q"], "graph": "stdlib", "metapath": PARSER["p"], "measure": "pathsim"}
        assert all(row.items() >= origin.items() for row in rows)
        assert json.loads(explorer.download("#json"))["hits"][0]["id"] == ids[0]
        explorer.at("#share-panel summary").click()
        explorer.at("#batch").fill("OptionParser\nargparse.Action\nno such class\n")
        assert [row["query"] for row in explorer.table("#batch-csv")] == ["optparse.OptionParser"] * 10 + [
            "argparse.Action"
        ] * 10
        explorer.see("#share-panel details").to_contain_text("Not found: no such class.")
        url = explorer.copied("curl").removeprefix("curl '").removesuffix("'")
        assert [str(hit["id"]) for hit in explored.get(url).json()["hits"]] == ids
        options = "-p 'class-method-class' --measure='pathsim' -k '10'"
        assert explorer.copied("command line") == f"neupath search {options} -- 'stdlib' 'argparse.ArgumentParser'"
        explorer.page.keyboard.press("Escape")
        drawn = ElementTree.fromstring(explorer.download(".save-svg"))
        texts = [text.text for text in drawn.iter(f"{SVG}text")]
        assert {"class", "method", "format_help", "OptionParser"} <= set(texts)
        assert "stdlib" in str(next(drawn.iter(f"{SVG}desc")).text)


def test_the_reference_of_the_api_is_rendered(explorer: Explorer, explored: Running) -> None:
    explorer.page.goto(f"{explored.url}/docs")
    paths = explored.get("/api/openapi.json").json()["paths"]
    explorer.see(".call").to_have_count(sum(len(methods) for methods in paths.values()))
    explorer.at(".call", has_text="Search along the promising").locator("summary").click()
    explorer.see(".call[open] td code").to_contain_text(["node_type", "query", "k", "limit"])
    explorer.see(".call[open] pre").to_contain_text("author-paper-venue-paper-author")


# ---- Layers, lines and what the browser forbids -----------------------------------------------------
def test_nothing_covers_the_header(explorer: Explorer) -> None:
    """Hits of cards lay above it when scrolled, and took its clicks."""
    explorer.page.set_viewport_size({"width": 1280, "height": 420})
    explorer.open(g="stdlib", q=PARSER["q"], qt="class")
    explorer.see(".card").not_to_have_count(0)
    covers = """() => [...document.querySelectorAll("header nav a, #theme, #query, #graph")].map((one) => {
      const box = one.getBoundingClientRect();
      const top = document.elementFromPoint(box.left + box.width / 2, box.top + box.height / 2);
      return one === top || one.contains(top) ? null : top?.outerHTML.slice(0, 80);
    }).filter(Boolean)"""
    height = explorer.page.evaluate("document.documentElement.scrollHeight - innerHeight")
    assert height > 200
    for scroll in range(0, height, 12):
        explorer.page.evaluate("(top) => scrollTo(0, top)", scroll)
        assert explorer.page.evaluate(covers) == [], scroll


def test_lines_of_a_comparison_end_at_their_rows(browser: Browser, explored: Running) -> None:
    """After a change of measure they ended where the rows had been."""
    with explore(
        browser, explored.url, viewport={"width": 1280, "height": 900}, reduced_motion="no-preference"
    ) as window:
        window.open(**PARSER, vs="1", p2="class-method-class", m2="jaccard")
        window.hits("b")
        window.at("#measure-b").select_option("measure:dwpc")
        window.see("#note-b").to_contain_text("jaccard")
        window.page.wait_for_function("() => document.getAnimations().every((one) => one.playState === 'finished')")
        apart = """() => {
          const svg = document.querySelector(".ties"), { top } = svg.getBoundingClientRect();
          const middles = (side) => new Map([...document.querySelectorAll(`#hits-${side} .hit`)].map((row) => {
            const box = row.getBoundingClientRect();
            return [row.dataset.id, Math.round(box.top + box.height / 2 - top)];
          }));
          const [left, right] = [middles("a"), middles("b")];
          const wanted = [...left].filter(([id]) => right.has(id)).map(([id, y]) => `${y} ${right.get(id)}`);
          const drawn = [...svg.querySelectorAll("path")].map((path) => {
            const numbers = path.getAttribute("d").match(/[-\\d.]+/g).map(Number);
            return `${Math.round(numbers[1])} ${Math.round(numbers.at(-1))}`;
          });
          return { wanted, drawn };
        }"""
        lines = window.page.evaluate(apart)
        assert len(lines["wanted"]) > 3
        numbers = [[int(number) for pair in lines[kind] for number in pair.split()] for kind in ("drawn", "wanted")]
        assert np.allclose(*numbers, atol=2), lines


def test_the_page_works_where_site_data_is_blocked(browser: Browser, explored: Running) -> None:
    """It was blank: reading localStorage throws."""
    blocked = """for (const name of ["localStorage", "sessionStorage"])
      Object.defineProperty(window, name, { get() { throw new DOMException("denied", "SecurityError"); } });"""
    with explore(browser, explored.url) as window:
        window.page.add_init_script(blocked)
        window.open(**MIKE)
        assert window.hits()[0] == "Bob"
        before = window.at("html").get_attribute("data-theme")
        window.at("#theme").click()
        assert window.at("html").get_attribute("data-theme") != before
        window.at("#save").click()
        window.at(".logo").click()
        window.see(".saved a").to_have_count(1)


def test_a_dark_page_is_dark_before_its_script_runs(browser: Browser, explored: Running) -> None:
    with explore(browser, explored.url, color_scheme="dark") as window:
        window.page.route("**/*.js", lambda route: route.abort())
        window.open()
        colour = window.page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert max(int(part) for part in re.findall(r"\d+", colour)) < 64
        window.complaints.clear()  # a browser logs what does not load

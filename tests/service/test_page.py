"""The explorer in a real Chromium: meta-paths, search, comparison, explanation, addresses, exports."""

import csv
import io
from pathlib import Path
from xml.etree import ElementTree

import pytest

import neupath as npth
from tests.service.browser import PARSER, Browser, Explorer, expect, explore, needs_chromium
from tests.service.conftest import HOSTILE, Running, Start

pytestmark = needs_chromium
COUNT_ANIMATIONS = "() => { window.animated = 0; Element.prototype.animate = () => { window.animated += 1; }; }"
SVG = "{http://www.w3.org/2000/svg}"


def ranked(explored: Running, **words: object) -> list[str]:
    answer = explored.get("/api/graphs/stdlib/search", params={"query": PARSER["q"], **words}).json()
    return [str(hit["id"]) for hit in answer["hits"]]


def test_it_opens_ready_to_search(explorer: Explorer) -> None:
    explorer.open()
    explorer.see(".schema .type").to_have_count(5)
    explorer.see(".schema .relation").to_have_count(4)
    explorer.see(".schema .type[data-type=class] .count").to_have_text("2,443")
    explorer.see("#path-a").to_have_value("class-method-class")
    explorer.see("#query-label").to_have_text("Find what is similar to a class")
    explorer.at("#start .chip").first.click()
    assert explorer.hits()


def test_types_clicked_in_turn_make_a_meta_path(explorer: Explorer) -> None:
    explorer.open(**PARSER)
    explorer.hits()
    explorer.at("#clear-a").click()
    for node_type, path in (("class", "class"), ("module", "class-module"), ("class", "class-module-class")):
        explorer.click_type(node_type)
        explorer.see("#path-a").to_have_value(path)
    explorer.see("#status-a").to_have_text("✓ class-module-class, out and back")
    explorer.see(".schema .type[data-type=class] .order text").to_have_text("1·3")
    explorer.at(".schema .type[data-type=import]").click(force=True)  # no step leads there
    explorer.see("#schema-hint").to_contain_text("No step leads from the end of this meta-path to import")
    explorer.at("#undo-a").click()
    explorer.see("#path-a").to_have_value("class-module")
    explorer.see("#note-a").to_contain_text("pathsim needs a meta-path that goes out and back")
    explorer.at("#suggestions button", has_text="class-module-class").first.click()
    assert explorer.hits()[0].startswith("argparse.")
    explorer.at("#undo-a").click()
    explorer.at("#undo-a").click()
    explorer.see("#path-a").to_have_value("class")
    explorer.at("#undo-a").click()
    explorer.see("#path-a").to_have_value("")


def test_the_schema_works_by_keyboard(explorer: Explorer) -> None:
    explorer.open(g="stdlib", p="module")
    explorer.at(".schema .type[data-type=import]").focus()
    explorer.page.keyboard.press("Enter")
    explorer.see("#path-a").to_have_value("module-import")
    explorer.see(".schema .type[data-type=import]").to_be_focused()
    explorer.at(".schema .relation[role=button]").first.focus()
    explorer.page.keyboard.press("Space")
    explorer.see("#path-a").to_have_value("module-import-module")


def test_a_meta_path_is_read_while_it_is_typed(explorer: Explorer) -> None:
    explorer.open(**PARSER)
    before = explorer.hits()
    explorer.at("#path-a").fill("class-ba")
    explorer.see("#status-a").to_contain_text("no node type 'ba' in this graph")
    explorer.see("#note-a").to_contain_text("These are the hits of pathsim on class-method-class")
    explorer.see("li.option").to_have_text(["class-base-extends->"])
    explorer.page.keyboard.press("ArrowDown")
    explorer.page.keyboard.press("Enter")
    explorer.see("#path-a").to_have_value("class-base")
    explorer.at("#next button", has_text="class").click()
    explorer.see("#status-a").to_have_text("✓ class-base-class, out and back")
    assert explorer.hits() != before


def test_search_completes_by_keyboard(explorer: Explorer, explored: Running) -> None:
    explorer.open(g="stdlib", p="class-method-class")
    box = explorer.at("#query")
    box.press_sequentially("argumentp")
    explorer.see("#query").to_have_attribute("aria-expanded", "true")
    expect(explorer.option()).to_contain_text("argparse.ArgumentParser")
    box.press("Escape")
    explorer.see("#query").to_have_attribute("aria-expanded", "false")
    box.press("ArrowDown")
    expect(explorer.option()).to_be_visible()
    box.press("ArrowDown")
    active = box.get_attribute("aria-activedescendant")
    explorer.see(f"#{active}").to_have_attribute("aria-selected", "true")
    box.press("Enter")
    assert explorer.hits() == ranked(explored, metapath="class-method-class")
    explorer.see("#query").to_have_value("ArgumentParser")
    explorer.see("#live").to_contain_text("10 hits, the best is OptionParser")
    assert "q=argparse.ArgumentParser" in explorer.page.url


def test_ranks_move_when_the_measure_changes(explorer: Explorer, explored: Running) -> None:
    explorer.open(**PARSER)
    before = explorer.hits()
    explorer.at("#measure-a").select_option("measure:pcrw")
    explorer.see("#note-a").to_contain_text("Compared with pathsim on class-method-class")
    after = explorer.hits()
    assert after == ranked(explored, metapath="class-method-class", measure="pcrw") != before
    shown = explorer.at("#hits-a .move > span:first-child").all_inner_texts()
    assert shown == [moved(before.index(id) - place) if id in before else "new" for place, id in enumerate(after)]


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


def test_two_measures_meta_paths_or_models_side_by_side(explorer: Explorer, explored: Running) -> None:
    explorer.open(**PARSER)
    explorer.hits()
    explorer.at("#compare").click()
    explorer.at("#measure-b").select_option("measure:pcrw")
    explorer.see("#title-b").to_contain_text("pcrw on class-method-class")
    a, b = explorer.hits("a"), explorer.hits("b")
    assert b == ranked(explored, metapath="class-method-class", measure="pcrw")
    common = [id for id in a if id in b]
    explorer.see("#ties path").to_have_count(len(common))
    expect(explorer.hit(common[-1]).locator(".elsewhere > span").first).to_have_text(f"↔{b.index(common[-1]) + 1}")
    explorer.hit(common[-1]).hover()
    expect(explorer.hit(common[-1], "b")).to_have_class("hit tied")
    explorer.at("#path-b").fill("class-module-class")
    explorer.see("#title-b").to_contain_text("pcrw on class-module-class")
    expect(explorer.at("#hits-b .hit").first).to_have_attribute("data-id", "argparse._AttributeHolder")
    explorer.at("#measure-b").select_option("model:by-base")
    explorer.see("#title-b").to_contain_text("model by-base")
    expect(explorer.at("#hits-b .hit").first).to_have_attribute("data-id", ranked(explored, model="by-base")[0])
    explorer.at("#hits-b .open").first.click()
    explorer.see("#why-title").to_contain_text("ArgumentParser and")
    explorer.at("#compare").click()
    explorer.see("#editor-b").to_be_hidden()


def test_paths_behind_a_hit_are_drawn_and_listed(explorer: Explorer, explored: Running) -> None:
    explorer.open(**PARSER)
    explorer.hit("optparse.OptionParser").locator(".open").click()
    why = explored.get(
        "/api/graphs/stdlib/explain",
        params={"query": PARSER["q"], "target": "optparse.OptionParser", "metapath": PARSER["p"]},
    ).json()
    explorer.see("#why-title").to_have_text("ArgumentParser and OptionParser")
    explorer.see("#why .formula").to_have_text("pathsim = 2 × 7 / (29 + 37) = 0.2121")
    methods = {instance["nodes"][1]["id"] for instance in why["instances"]}
    explorer.see(".paths .spot").to_have_count(2 + len(methods))
    explorer.see(".paths .line").to_have_count(2 * len(methods))
    explorer.see(".instances li").to_have_count(len(why["instances"]))
    explorer.see(".instances li .score").to_have_text([f"{one['share']:.4f}" for one in why["instances"]])
    explorer.at(".paths .spot", has_text="format_help").hover()
    explorer.see(".details").to_contain_text("on 1 path shown, 0.0303 of the score, 14 %")
    explorer.see(".paths .line.on").to_have_count(2)
    explorer.at(".instances li").first.hover()
    explorer.see(".paths .spot.on").to_have_count(3)
    explorer.at(".paths .spot[tabindex='0']").focus()
    explorer.page.keyboard.press("ArrowRight")
    explorer.see(".details").to_contain_text("method")
    explorer.page.keyboard.press("ArrowRight")
    explorer.see(".details").to_contain_text("class \u2068OptionParser\u2069")
    explorer.at("#why-close").click()
    explorer.see("#why").to_be_hidden()
    expect(explorer.hit("optparse.OptionParser").locator(".open")).to_be_focused()


def test_more_paths_are_loaded(explorer: Explorer) -> None:
    explorer.open(g="toy", p="APVPA", q="Jim", qt="author", t="Mike")
    explorer.see(".instances li").to_have_count(10)
    explorer.at(".more button").click()
    explorer.see(".instances li").to_have_count(30)
    assert "n=30" in explorer.page.url


def test_the_address_holds_the_view_and_back_returns(explorer: Explorer, browser: Browser, explored: Running) -> None:
    explorer.open(**PARSER)
    first = explorer.hits()
    explorer.at("#measure-a").select_option("measure:pcrw")
    explorer.see("#note-a").to_contain_text("Compared with")
    explorer.at("#compare").click()
    explorer.at("#hits-b .open").first.click()
    explorer.see(".instances li").not_to_have_count(0)
    shared, hits = explorer.page.url, (explorer.hits("a"), explorer.hits("b"))
    with explore(browser, explored.url) as other:
        other.page.goto(shared)
        assert (other.hits("a"), other.hits("b")) == hits
        other.see("#why-title").to_have_text(explorer.at("#why-title").inner_text())
        other.see("#measure-a").to_have_value("measure:pcrw")
    for _ in range(3):
        explorer.page.go_back()
    explorer.see("#measure-a").to_have_value("measure:pathsim")
    explorer.see("#why").to_be_hidden()
    expect(explorer.at("#hits-a .hit").nth(2)).to_have_attribute("data-id", first[2])
    explorer.page.go_forward()
    explorer.see("#measure-a").to_have_value("measure:pcrw")


def test_hits_are_exported_as_csv_and_drawings_as_svg(explorer: Explorer) -> None:
    explorer.open(**PARSER, t="optparse.OptionParser")
    ids = explorer.hits()
    with explorer.page.expect_download() as table:
        explorer.at("#csv").click()
    rows = list(csv.DictReader(io.StringIO(Path(table.value.path()).read_text(encoding="utf-8"))))
    assert [row["id"] for row in rows] == ids
    with explorer.page.expect_download() as picture:
        explorer.at(".save-svg").click()
    assert picture.value.suggested_filename == "paths-argparse.ArgumentParser-optparse.OptionParser.svg"
    drawn = ElementTree.parse(picture.value.path()).getroot()
    texts = [text.text for text in drawn.iter(f"{SVG}text")]
    assert {"class", "method", "ArgumentParser", "format_help", "OptionParser"} <= set(texts)
    assert all(line.get("stroke", "").startswith("rgb") for line in drawn.iter(f"{SVG}path"))


def test_another_graph_is_chosen(explorer: Explorer) -> None:
    explorer.open(**PARSER)
    explorer.hits()
    explorer.at("#graph").select_option("toy")
    explorer.see(".schema .type").to_have_count(3)
    explorer.see("#path-a").to_have_value("paper-author-paper")
    explorer.see("#query").to_have_value("")


def test_search_explain_and_compare_movies(browser: Browser, data: Path, tmp_path: Path, start: Start) -> None:
    config = tmp_path / "imdb.toml"
    config.write_text('ignore = ["movie_genre*", "movie_keyword*", "movie_metadata*"]\n')
    served = start(graphs={"imdb": npth.load(data / "imdb", config=config)})
    with explore(browser, served.url) as explorer:
        explorer.open()
        explorer.see("#path-a").to_have_value("movie-actor-movie")
        explorer.at("#query").fill("the dark knight ri")
        explorer.at("#query").press("Enter")
        hits = explorer.hits()
        answer = served.get("/api/graphs/imdb/search", params={"query": 3, "metapath": "MAM"}).json()
        assert hits == [str(hit["id"]) for hit in answer["hits"]]
        explorer.at("#hits-a .open").first.click()
        explorer.see("#why-title").to_contain_text("The Dark Knight Rises and ")
        explorer.see(".paths .spot").not_to_have_count(0)
        explorer.at("#compare").click()
        explorer.at("#path-b").fill("movie-director-movie")
        explorer.see("#title-b").to_contain_text("movie-director-movie")
        expect(explorer.at("#hits-b .name", has_text="Batman Begins")).to_be_visible()


def test_hostile_names_are_shown_harmlessly(explorer: Explorer) -> None:
    explorer.open(g="hostile", p="<b>user-tag-<b>user", q=HOSTILE[0], qt="<b>user")
    assert set(explorer.hits()) == set(HOSTILE[1:])
    for name in HOSTILE[1:]:
        explorer.at("#hits-a .hit").nth(explorer.hits().index(name)).locator(".open").click()
        explorer.see("#why-title bdi").to_have_count(2)
        explorer.see(".paths .spot").to_have_count(3)
    for name in ("<img", "b>", "\x00", "להת"):
        explorer.at("#query").fill(name)
        expect(explorer.option()).to_be_visible()
    explorer.see("#status-a").to_have_text("✓ <b>user-tag-<b>user, out and back")
    assert explorer.at("img, main b, .side b").count() == 0
    assert explorer.overflow() <= 0

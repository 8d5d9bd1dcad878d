"""The explorer where things are not as usual: a token, a slow or lost service, a phone, hostile names, a live store."""

import threading
from pathlib import Path

import pytest

import neupath as npth
from neupath.live import LiveStore
from neupath.store import write_store
from tests.patience import PATIENCE
from tests.service.browser import MIKE, PARSER, Browser, Explorer, expect, explore, needs_chromium
from tests.service.conftest import HOSTILE, Running, Start

pytestmark = needs_chromium


def test_the_page_asks_for_the_token_and_keeps_it(browser: Browser, start: Start) -> None:
    served = start(token="größer als 8")
    with explore(browser, served.url) as explorer:
        explorer.open(**MIKE)
        expect(explorer.page.get_by_role("dialog")).to_be_visible()
        explorer.at("#token-dialog button[value=cancel]").click()
        explorer.see(".problem").to_contain_text(["this service needs its token"])
        explorer.page.reload()
        explorer.at("#token").fill("wrong")
        explorer.at("#token-use").click()
        explorer.see("#token-problem").to_have_text("the token is wrong")
        explorer.at("#token").fill("größer als 8")
        explorer.at("#token").press("Enter")
        assert explorer.hits()[0] == "Bob"
        explorer.page.reload()
        assert explorer.hits()[0] == "Bob"
        assert explorer.page.evaluate("sessionStorage.length") == 1
        explorer.complaints.clear()  # a browser logs every 401


def test_the_page_shows_the_messages_of_the_service(explorer: Explorer) -> None:
    explorer.open(**MIKE | {"q": "Nobody"})
    explorer.see(".problem").to_contain_text(["no author with the id 'Nobody' among 5"])
    explorer.open(**MIKE | {"t": "Nobody"})
    explorer.see("#why .problem").to_contain_text("no author with the id 'Nobody' among 5")
    explorer.open(**MIKE | {"p": "author-venue"})
    explorer.see(".problem").to_contain_text("one step from author leads to paper")
    explorer.open(g="nosuch")  # defect 17: another graph was opened
    explorer.see(".problem").to_contain_text("No graph nosuch is served here.")
    explorer.at(".problem .chip", has_text="toy").click()
    explorer.see(".landing").to_contain_text("90 nodes of 3 types")
    explorer.complaints.clear()  # a browser logs every 404


@pytest.mark.parametrize(
    "words",
    [
        {"v": "nothing", "k": "-3", "side": "c", "where": "[1]", "show": "x"},
        {"k": "1e99", "mix": '[["pathsim","APA","0.5"]]', "pairs": '[[{},[],1],["Mike",null,"x"]]', "type": "author"},
    ],
)
def test_invalid_addresses_do_no_harm(explorer: Explorer, words: dict[str, str]) -> None:
    explorer.open(g="toy", p="APVPA", q="Mike", **words)
    assert explorer.hits() == ["Bob", "Mary", "Jim"]


def test_the_page_goes_on_when_the_service_is_back(browser: Browser, explored: Running) -> None:
    """Defect 7: nothing was tried again after the network came back."""
    with explore(browser, explored.url) as explorer:
        explorer.page.route("**/api/**", lambda route: route.abort())
        explorer.open(**MIKE)
        explorer.see(".problem").to_contain_text(["The service does not answer."])
        explorer.page.unroute("**/api/**")
        assert explorer.hits()[0] == "Bob"  # without a click
        explorer.see(".problem").to_have_count(0)
        explorer.complaints.clear()


def test_a_slow_search_says_what_runs_and_can_be_left(
    browser: Browser, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Defects 6 and 8: a title stood over another measure's scores, and the list stayed pale when it was left."""
    running = start()
    go_on = threading.Event()
    measure = running.service.registry.measure

    def slow(graph: str, name: str, *rest: str) -> object:
        assert name == "pathsim" or go_on.wait(PATIENCE)
        return measure(graph, name, *rest)

    monkeypatch.setattr(running.service.registry, "measure", slow)
    with explore(browser, running.url) as explorer:
        explorer.open(**MIKE)
        explorer.hits()
        explorer.at("#measure-a").select_option("measure:hetesim")
        explorer.see("#found").to_contain_text("Below are the hits of pathsim on author-paper-venue-paper-author.")
        explorer.see(".columns.stale").to_have_count(1)
        explorer.at("#search-title a").click()
        explorer.see("#node-title").to_have_text("Mike")
        explorer.see(".stale").to_have_count(0)
        explorer.page.go_back()
        explorer.see("#found").to_contain_text("Searching by")
        go_on.set()
        explorer.see("#found").to_have_text("3 hits, exact")
        explorer.page.route("**/search?*", lambda route: route.fulfill(status=504, json={"error": "it takes long"}))
        explorer.at("#measure-a").select_option("measure:joinsim")
        explorer.see(".problem button", has_text="as a job").to_have_count(1)
        explorer.complaints.clear()  # a browser logs every 504


LABELLED = {"g": "toy", "v": "examples", "type": "author", "pairs": '[["Mike","Bob",1],["Mike","Ann",0]]'}
VIEWS = {
    "landing": ({"g": "toy"}, ".starter"),
    "node": ({"g": "toy", "q": "Mike", "qt": "author"}, ".card"),
    "why": (MIKE | {"t": "Mary", "group": "venue:SIGMOD"}, ".instances"),
    "compare": (MIKE | {"vs": "1", "build": "1", "p2": "APA", "m2": "pathsim"}, "#hits-a .hit"),
    "set": (MIKE | {"with": '["Mary"]', "unless": '["author-paper-author"]', "t": "Bob"}, "#why .weights"),
    "map": (MIKE | {"show": "map"}, ".hit-map .spot"),
    "relate": ({"g": "toy", "v": "relate", "q": "Mike", "qt": "author", "t": "SIGMOD", "tt": "venue"}, ".related"),
    "examples": (LABELLED, ".weights"),
    "jobs": ({"g": "toy", "v": "jobs"}, ".jobs"),
}  # fmt: skip


@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (1280, "light")])
def test_every_view_is_accessible_in_both_colours(browser: Browser, explored: Running, width: int, scheme: str) -> None:
    with explore(browser, explored.url, color_scheme=scheme, viewport={"width": width, "height": 844}) as explorer:
        for name, (words, awaited) in VIEWS.items():
            explorer.open(**words)
            explorer.see(awaited).not_to_have_count(0)
            explorer.page.wait_for_load_state("networkidle")
            assert explorer.overflow() <= 0, name
            assert explorer.violations() == [], name
            explorer.at("#theme").click()
            assert explorer.violations("color-contrast") == [], name
            explorer.at("#theme").click()
        explorer.page.goto(f"{explored.url}/docs")
        explorer.at(".call summary").first.click()
        assert explorer.violations() == []
        assert explorer.at("html").get_attribute("data-theme") == scheme
        explorer.at("#theme").click()
        explorer.page.reload()
        explorer.see("#theme").to_be_visible()
        assert explorer.at("html").get_attribute("data-theme") != scheme


def test_a_phone_shows_names_and_both_ends_of_a_path(browser: Browser, explored: Running) -> None:
    """Defect 18: names were cut while ids had a line, and the target of a long path was off the screen."""
    with explore(browser, explored.url, viewport={"width": 390, "height": 844}) as explorer:
        explorer.open(**PARSER)
        explorer.hits()
        explorer.see(".hit .id:visible").to_have_count(0)
        cut = "names => names.filter((name) => name.scrollWidth > name.clientWidth + 1).length"
        assert explorer.at(".hit .name").evaluate_all(cut) == 0
        explorer.open(**MIKE, t="Mary")
        explorer.see(".paths .spot").to_have_count(5)
        boxes = [spot.bounding_box() for spot in explorer.at(".paths .spot").all()]
        assert all(box and box["x"] >= 0 and box["x"] + box["width"] <= 390 for box in boxes)


def test_hostile_names_are_shown_harmlessly(explorer: Explorer) -> None:
    explorer.open(g="hostile", p="<b>user-tag-<b>user", q=HOSTILE[0], qt="<b>user")
    ids = explorer.hits()
    assert set(ids) == set(HOSTILE[1:])
    for place in range(len(ids)):
        explorer.at("#hits-a .open").nth(place).click()
        explorer.see("#why-title bdi").to_have_count(2)
        explorer.see(".paths .spot").to_have_count(3)
    for name in ("<img", "b>", "\x00", "להת"):
        explorer.at("#query").fill(name)
        expect(explorer.option()).to_be_visible()
    assert explorer.at("img, main b").count() == 0
    assert explorer.overflow() <= 0


def test_nothing_comes_from_other_sites_and_little_in_all(browser: Browser, explored: Running) -> None:
    """Defect 15: 20 files, uncompressed, one after another."""
    with explore(browser, explored.url) as explorer:
        urls: list[str] = []
        explorer.page.on("request", lambda request: urls.append(request.url))
        explorer.open(**MIKE)
        explorer.hits()
        assert all(url.startswith((explored.url, "about:")) for url in urls)
        files = [url for url in urls if "/api/" not in url and not url.startswith("about:")]
        assert len(files) <= 4
        script = next(url for url in files if url.endswith(".js"))
        response = explored.get(script, headers={"accept-encoding": "gzip"})
        assert response.headers["content-encoding"] == "gzip"
        assert "immutable" in response.headers["cache-control"]
        assert int(response.headers["content-length"]) < 80_000


def test_an_update_is_noticed_and_shown_with_its_version(browser: Browser, start: Start, tmp_path: Path) -> None:
    edge = {"relation": "writes", "source": "Mike", "target": "Jim-SIGMOD-1"}
    with LiveStore(write_store(npth.load("toy"), tmp_path / "live")) as live:
        running = start(graphs={"live": live})
        with explore(browser, running.url) as explorer:
            explorer.open(**MIKE | {"g": "live"})
            explorer.see("#found").to_have_text("3 hits, exact, version 0")
            score = explorer.hit("Bob").locator(".score").inner_text()
            assert running.post("/api/graphs/live/updates", {"add_edges": [edge]}).json()["version"] == 1
            explorer.hit("Bob").locator(".open").click()
            explorer.see(".changed").to_contain_text("the list is of version 0, this explanation of version 1.")
            explorer.at(".changed button").click()
            explorer.see("#found").to_have_text("3 hits, exact, version 1")
            expect(explorer.hit("Bob").locator(".score")).not_to_have_text(score)
            explorer.see(".changed").to_have_count(0)
            explorer.open(g="live", p="author-paper-author", q="Mike", qt="author")
            explorer.see("#found").to_have_text("1 hit, exact, version 1")
            assert explorer.hits() == ["Jim"]
            explorer.hit("Jim").locator(".open").click()
            explorer.see(".group .name").to_have_text(["Jim-SIGMOD-1"])
            explorer.at("#search-title a").click()
            explorer.see(".card h3").to_have_text(["venues of their papers", "shared papers"])

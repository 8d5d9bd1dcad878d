"""The explorer where things are not as usual: a token, errors, a phone, colours, other ways to use a page."""

import pytest

from tests.service.browser import Browser, expect, explore, needs_chromium
from tests.service.conftest import Running, Start

pytestmark = needs_chromium
MIKE = {"g": "toy", "p": "author-paper-venue-paper-author", "q": "Mike", "qt": "author"}
UNNAMED = """
() => [...document.querySelectorAll("button, input, select, textarea, [role=button], [role=img]")]
    .filter((one) => one.getClientRects().length && !one.getAttribute("aria-label") && !one.textContent.trim()
        && !(one.labels && one.labels.length))
    .map((one) => one.outerHTML)
"""
PALE = """
() => {
    const parse = (colour) => colour.match(/[\\d.]+/g).map(Number);
    const light = ([r, g, b]) => [r, g, b].map((v) => v / 255)
        .map((v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
        .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
    const behind = (one) => {
        for (; one; one = one.parentElement) {
            const colour = parse(getComputedStyle(one).backgroundColor);
            if (colour.length === 3 || colour[3] === 1) return colour;
        }
        return [255, 255, 255];
    };
    const texts = [...document.querySelectorAll("body *")].filter((one) => one.getClientRects().length
        && !one.closest("svg, option, :disabled")
        && [...one.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim()));
    return texts.map((one) => {
        const [dark, bright] = [light(parse(getComputedStyle(one).color)), light(behind(one))].sort((a, b) => a - b);
        return [(bright + 0.05) / (dark + 0.05), one.outerHTML.slice(0, 120)];
    }).filter(([contrast]) => contrast < 4.5);
}
"""


def test_the_page_asks_for_the_token_and_keeps_it(browser: Browser, start: Start) -> None:
    served = start(token="größer als 8")
    with explore(browser, served.url) as explorer:
        explorer.open(**MIKE)
        expect(explorer.page.get_by_role("dialog")).to_be_visible()
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


def test_the_token_can_be_entered_later(browser: Browser, start: Start) -> None:
    served = start(token="s3cret")
    with explore(browser, served.url) as explorer:
        explorer.open(**MIKE)
        explorer.at("#token-dialog button[value=cancel]").click()
        explorer.see("#failure").to_contain_text("this service needs its token")
        explorer.at("#failure button").click()
        explorer.at("#token").fill("s3cret")
        explorer.at("#token").press("Enter")
        assert explorer.hits()[0] == "Bob"
        explorer.complaints.clear()


def test_the_page_shows_the_messages_of_the_service(browser: Browser, explored: Running) -> None:
    with explore(browser, explored.url) as explorer:
        explorer.open(**MIKE | {"q": "Nobody"})
        explorer.see("#note-a .problem").to_contain_text("no author with the id 'Nobody' among 5")
        explorer.open(**MIKE | {"m": "nosuch"})
        explorer.see("#start .empty, #start .problem, #note-a .problem").to_contain_text("nosuch")
        explorer.open(**MIKE | {"t": "Nobody"})
        explorer.see("#why .problem").to_contain_text("no author with the id 'Nobody' among 5")
        explorer.open(**MIKE | {"p": "author-venue"})
        explorer.see("#status-a").to_contain_text("one step from author leads to paper")
        explorer.complaints.clear()  # a browser logs every 404


def test_the_page_reconnects_to_the_service(browser: Browser, explored: Running) -> None:
    with explore(browser, explored.url) as explorer:
        explorer.page.route("**/api/graphs", lambda route: route.abort())
        explorer.open(**MIKE)
        explorer.see("#failure").to_contain_text("The service does not answer. Is it still running?")
        explorer.page.unroute("**/api/graphs")
        explorer.at("#failure button").click()
        assert explorer.hits()[0] == "Bob"
        explorer.complaints.clear()


def test_invalid_addresses_do_no_harm(browser: Browser, explored: Running) -> None:
    with explore(browser, explored.url) as explorer:
        explorer.open(g="nosuch", k="x", pairs="{", mix="[1]", type="author", v="example", n="-3")
        explorer.see("#graph").to_have_value("stdlib")
        explorer.see("#pairs").to_contain_text("No pairs yet")


@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (1280, "light")])
def test_it_is_readable_at_every_width_in_both_colours(
    browser: Browser, explored: Running, width: int, scheme: str
) -> None:
    with explore(browser, explored.url, color_scheme=scheme, viewport={"width": width, "height": 844}) as explorer:
        for words in ({"t": "Mary"}, {"vs": "1", "p2": "APA", "m2": "pathsim"}, {"v": "example"}):
            explorer.open(**MIKE | words)
            explorer.see(".add-pair" if "v" in words else "#hits-a .hit").not_to_have_count(0)
            if width < 900 and "v" not in words:
                explorer.at("#means-toggle").click()
            for _ in range(2):
                assert explorer.overflow() <= 0
                assert explorer.page.evaluate(PALE) == []
                assert explorer.page.evaluate(UNNAMED) == []
                explorer.at("#theme").click()
        assert explorer.at("html").get_attribute("data-theme") == scheme
        explorer.at("#theme").click()
        explorer.page.reload()
        assert explorer.at("html").get_attribute("data-theme") != scheme


def test_everything_is_reached_by_tab(browser: Browser, explored: Running) -> None:
    with explore(browser, explored.url) as explorer:
        explorer.open(**MIKE)
        explorer.hits()
        seen = set()
        for _ in range(60):
            explorer.page.keyboard.press("Tab")
            seen.add(explorer.page.evaluate("document.activeElement.id || document.activeElement.dataset.type"))
        assert {"skip", "graph", "view-search", "view-example", "theme", "author", "paper", "path-a", "undo-a",
                "measure-a", "query", "k", "compare", "csv"} <= seen  # fmt: skip
        for role in ("banner", "navigation", "main", "contentinfo"):
            expect(explorer.page.get_by_role(role)).to_have_count(1)  # type: ignore[arg-type]


def test_the_page_loads_nothing_from_other_sites(browser: Browser, explored: Running) -> None:
    with explore(browser, explored.url) as explorer:
        urls: list[str] = []
        explorer.page.on("request", lambda request: urls.append(request.url))
        explorer.open(**MIKE, t="Mary")
        explorer.see(".paths .spot").not_to_have_count(0)
        assert all(url.startswith((explored.url, "about:")) for url in urls)

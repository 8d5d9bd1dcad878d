"""The explorer by keyboard alone, to a screen reader, with odd names, in two tabs, at a service that restarts."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import neupath as npth
from neupath import HIN
from neupath.graph.hin import Edges
from neupath.graph.nodes import Nodes
from neupath.learn.auto import train_auto
from neupath.learn.labels import Pairs
from tests.graphs import graph_of, shop_graph
from tests.service.browser import MIKE, Browser, Explorer, Route, expect, explore, needs_chromium
from tests.service.conftest import Running, Start, start_service

pytestmark = needs_chromium


def clinic() -> HIN:
    """Diseases and their genes; asthma shares most with COPD, then with allergy."""
    genes = {"asthma": "ABCDE", "COPD": "ABCDF", "allergy": "ABG", "flu": "AHI", "anaemia": "JK", "gout": "EJ"}
    names = sorted(set("".join(genes.values())))
    pairs = [(place, names.index(gene)) for place, own in enumerate(genes.values()) for gene in own]
    diseases = Nodes("Disease", pa.array([f"D{place}" for place in range(len(genes))]), pa.array(list(genes)))
    return graph_of({"Disease": diseases, "Gene": names}, {"Disease -associates-> Gene": pairs})


def cinema() -> HIN:
    """Films with actors and genres: those of the first actor are alike, whatever their genre."""
    films = Nodes("film", pa.array(range(12)), pa.array([f"Film {place}" for place in range(12)]))
    plays = [(place, place // 4) for place in range(12)] + [(0, 1), (4, 0), (8, 0)]
    nodes = {"film": films, "actor": ["Ada", "Bea", "Cyd"], "genre": ["drama", "crime"]}
    return graph_of(nodes, {"film -stars-> actor": plays, "film -of-> genre": [(row, row % 2) for row in range(12)]})


def one_tag(items: Nodes | int) -> HIN:
    count = items if isinstance(items, int) else len(items)
    return graph_of({"item": items, "tag": ["t"]}, {"item -has-> tag": [(row, 0) for row in range(count)]})


ODD = ("x" * 200, "שלום עולם", "", "same", "same", "word " * 40, "\u202ereversed", "plain")
"""Names that are long, right to left, empty and equal."""


def ward() -> HIN:
    """Two diseases share 30 genes, each with another number of further diseases, the first with the most."""
    shared = [(disease, gene) for disease in (0, 1) for gene in range(30)]
    further = [(2 + place, gene) for gene in range(30) for place in range(30 - gene)]
    nodes = {"Disease": [f"D{place}" for place in range(32)], "Gene": [f"G{place}" for place in range(30)]}
    return graph_of(nodes, {"Disease -associates-> Gene": shared + further})


def archive() -> HIN:
    """Three films are called King Kong, of which the second has the most actors; only years tell the others apart."""
    facts = pa.table({"colour": ["yes"] * 4, "year": [1933, 1976, 2005, 1979]})
    films = Nodes("film", pa.array([7, 8, 9, 10]), pa.array([*["King Kong"] * 3, "Alien"]), facts)
    plays = [(0, 0), (1, 0), (1, 1), (1, 2), (2, 2), (3, 0)]
    return graph_of({"film": films, "actor": ["a", "b", "c"]}, {"film -stars-> actor": plays})


def padded() -> HIN:
    """Item 1 has both tags of item 0, and 150 others have one."""
    has = [(0, 0), (0, 1), (1, 0), (1, 1), *((place, 0) for place in range(2, 152))]
    return graph_of({"item": 152, "tag": ["t", "u"]}, {"item -has-> tag": has})


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    odd = Nodes("item", pa.array([f"i{place}" for place in range(len(ODD))]), pa.array(ODD))
    graphs = {"clinic": clinic(), "cinema": cinema(), "odd": one_tag(odd), "tied": one_tag(10_001)}
    graphs |= {"ward": ward(), "archive": archive(), "padded": padded()}
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
    teller.see(".group .name").to_have_text(["C", "D", "B", "A"])
    teller.enter("#share", "Shift+Tab")
    assert [row["name"] for row in teller.table("#csv", by_key="Tab")] == ["COPD", "allergy", "gout", "flu"]
    teller.page.keyboard.press("Escape")
    rows = teller.table("#reasons-csv", by_key="Tab")
    assert [(row["id"], row["node_type"], row["paths"]) for row in rows] == [
        (gene, "Gene", "1") for gene in teller.at(".group .name").all_inner_texts()
    ]
    assert teller.actions <= 7


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


# ---- Reasons --------------------------------------------------------------------------------------
WARD = {"g": "ward", "p": "Disease-Gene-Disease", "q": "D0", "qt": "Disease", "t": "D1"}


def test_all_reasons_can_be_read(teller: Explorer) -> None:
    """Equal reasons are a compact list, the rarest first, and none is beyond reach."""
    teller.open(**WARD)
    teller.see("#why .reason").to_have_count(12)
    teller.see("#why .tied p").to_contain_text("12 with 3.3 % each; the rarest, which have the fewest edges, first")
    assert teller.at("#why .reason").first.inner_text() == "G29"
    teller.see("#why .picture figcaption").to_contain_text("10 of 30 are drawn")
    teller.at("#why .show-all").click()
    teller.see("#why .reason").to_have_count(30)
    assert teller.at("#why .reason").all_inner_texts() == [f"G{place}" for place in reversed(range(30))]
    teller.page.reload()
    teller.see("#why .reason").to_have_count(30)
    teller.at("#why .reason").nth(20).click()
    teller.see("#why .instances li").to_have_count(1)
    teller.see("#why .instances").to_contain_text("G9")


def test_all_reasons_are_exported(teller: Explorer) -> None:
    teller.open(**WARD)
    teller.see("#why .reason").not_to_have_count(0)
    rows = teller.table("#reasons-csv")
    assert [row["id"] for row in rows] == [f"G{place}" for place in reversed(range(30))]
    assert {row["metapath"] for row in rows} == {WARD["p"]}
    assert sum(float(row["share"]) for row in rows) == pytest.approx(1)
    assert len(json.loads(teller.download("#reasons-json"))["groups"]) == 30


def node(node_type: str, id: str) -> dict[str, str | None]:
    return {"node_type": node_type, "id": id, "name": None}


def test_a_model_is_explained_whatever_its_paths_are(teller: Explorer) -> None:
    """Paths of different lengths, groups without paths, and shares of attention without scores."""
    ends = node("Disease", "D0"), node("Disease", "D1")
    long = [ends[0], node("Gene", "G1"), node("Disease", "D5"), node("Gene", "G2"), ends[1]]
    paths = [
        {"nodes": [ends[0], node("Gene", "G0"), ends[1]], "links": ["-a->", "<-a-"], "weight": 0.9, "share": 0.9},
        {"nodes": long, "links": ["-a->", "<-a-", "-a->", "<-a-"], "weight": 0.1, "share": 0.1},
    ]
    groups = [
        {**node("Gene", "G0"), "paths": 1, "score": None, "share": 0.9, "instances": paths[:1]},
        {**node("Disease", "D5"), "paths": 1, "score": None, "share": 0.1, "instances": paths[1:]},
        {**node("Gene", "G9"), "score": None, "share": 0.0},
    ]
    answer = {"query": "D0", "target": "D1", "measure": "neupath", "score": -1.5, "summary": "It attends to genes."}
    answer |= {"groups": groups, "paths": paths}  # type: ignore[dict-item]
    teller.page.route("**/explain?*", lambda route: route.fulfill(json=answer))
    teller.open(**WARD)
    teller.see("#why .summary").to_have_text("It attends to genes.")
    teller.see("#why .picture .spot").to_have_count(6)
    teller.see("#why .group").to_have_count(3)
    teller.at("#why .group .open").first.click()
    teller.see("#why .instances .share").to_have_text("100 %")
    teller.see("#why .picture .spot").to_have_count(3)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[HIN, Path]:
    """Users with a town and an age, and a mix of trees and of the paths that infer finds, learned from noisy labels."""
    pytest.importorskip("lightgbm")
    rng = np.random.default_rng(0)
    plain = shop_graph()
    facts = pa.table({"age": rng.integers(20, 70, 40), "town": [f"town {place % 3}" for place in range(40)]})
    edges = [Edges(relation, *plain.matrices[relation].nonzero()) for relation in plain.schema.relations]
    hin = HIN.build([replace(plain.nodes["user"], attributes=facts), plain.nodes["item"], plain.nodes["tag"]], edges)
    queries, targets = np.repeat(np.arange(20), 12), np.tile(np.arange(20, 32), 20)
    near = npth.PathSim("user-item-user").fit(hin).score_rows(np.arange(20))[queries, targets] > 0
    similar = (near | (queries % 3 == targets % 3)) ^ (rng.random(len(near)) < 0.1)
    labels = Pairs("user", queries, targets, similar.astype(np.float64))
    folder = tmp_path_factory.mktemp("mix")
    report = train_auto(hin, labels, folder, learners=["pathboost", "infer"])
    assert report.chosen == ("pathboost", "infer")
    return hin, folder


@pytest.fixture(scope="module")
def mixed(trained: tuple[HIN, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    hin, folder = trained
    service = start_service(
        tmp_path_factory.mktemp("mixed"), {"shop": hin}, models={"mix": folder, "trees": folder / "members" / "0"}
    )
    yield service
    service.stop()


@pytest.mark.slow
def test_a_mix_of_learners_is_explained_by_what_each_adds(browser: Browser, mixed: Running) -> None:
    """Weights, scores and shares of the learners, and all that raised or lowered that of the trees, with signs."""
    with explore(browser, mixed.url) as explorer:
        explorer.open(g="shop", q="u3", qt="user", model="mix")
        target = explorer.hits()[0]
        explorer.hit(target).locator(".open").click()
        why = mixed.get(f"/api/graphs/shop/explain?query=u3&target={target}&model=mix").json()
        explorer.see("#why .summary").to_contain_text("pathboost (weight 0.")
        rows = explorer.at("#why .learners tbody tr")
        expect(rows).to_have_count(2)
        for row, learner in zip(rows.all(), why["learners"], strict=True):
            name, weight, score, adds = row.locator("td").all_inner_texts()
            assert (name, weight) == (learner["name"], f"{learner['weight']:.2f}")
            assert float(score) == pytest.approx(learner["score"], abs=1e-4)
            assert float(adds) == pytest.approx(learner["share"], abs=1e-4)
        assert float(explorer.at("#why .learners tfoot td").inner_text()) == pytest.approx(why["score"], abs=1e-4)
        explorer.see("#why .contributions h3").to_have_text("What decides the score of pathboost")
        split = next(each["explanation"] for each in why["learners"] if each["name"] == "pathboost")
        if len(split["contributions"]) > 12:
            explorer.at("#why .contributions .show-all").click()
        bars = explorer.at("#why .contributions li")
        expect(bars).to_have_count(len(split["contributions"]))
        for bar, each in zip(bars.all(), split["contributions"], strict=True):
            assert bar.locator(".name").inner_text() == each["name"]
            assert float(bar.locator(".score").inner_text().replace("−", "-")) == pytest.approx(
                each["value"], rel=0.01, abs=1e-4
            )
            assert bar.locator(".bar.below").count() == (each["value"] < 0)
        saved = explorer.table("#reasons-csv")
        adds = [(row["learner"], row["name"], float(row["adds"])) for row in saved if row["adds"]]
        assert adds == [
            *((each["name"], "", each["share"]) for each in why["learners"]),
            *(("pathboost", each["name"], each["value"]) for each in split["contributions"]),
        ]
        explorer.open(g="shop", q="u39", qt="user", model="mix")
        explorer.see(".results").to_contain_text("The model mix leads to no other node")
        explorer.open(g="shop", q="u3", qt="user", model="trees", t=target)
        explorer.see("#why .contributions h3").to_have_text("What decides the score")
        explorer.see("#why .learners").to_have_count(0)


@pytest.mark.slow
def test_the_mix_is_among_what_was_tried(browser: Browser, mixed: Running, trained: tuple[HIN, Path]) -> None:
    report = json.loads((trained[1] / "auto.json").read_text(encoding="utf-8"))
    with explore(browser, mixed.url) as explorer:
        job = {"id": "j", "kind": "train", "graph": "shop", "state": "done", "created": 0}
        explorer.page.route("**/api/jobs", lambda route: route.fulfill(json=job))
        end = f"id: 1\nevent: end\ndata: {json.dumps(job)}\n\n"
        explorer.page.route("**/api/jobs/j/events", lambda route: route.fulfill(body=end))
        explorer.page.route("**/api/jobs/j/result", lambda route: route.fulfill(json=report))
        explorer.open(g="shop", v="examples", type="user", pairs=json.dumps([["u0", "u1", 1], ["u0", "u2", 0]]))
        explorer.at(".train button").click()
        explorer.see(".trained").to_contain_text("Kept: pathboost and infer.")
        explorer.at(".trained summary").click()
        rows = [row.locator("td").all_inner_texts() for row in explorer.at(".trained tbody tr").all()]
        assert [row[0] for row in rows] == ["pathboost", "infer", "the mix"]
        for row, each in zip(rows, [*report["tried"], report["mix"]], strict=True):
            assert [float(text) for text in row[1:]] == pytest.approx(
                [each["score"], each["ndcg"], each["weight"]], abs=6e-3
            )


def test_a_part_that_fails_leaves_the_others(teller: Explorer) -> None:
    teller.page.route("**/explain?*", lambda route: route.fulfill(json={"groups": [None], "summary": "x"}))
    teller.open(**WARD)
    teller.see(".problem").to_contain_text("This explanation cannot be shown")
    assert teller.hits()[0] == "D1"
    teller.page.unroute("**/explain?*")
    teller.at(".problem button", has_text="Try again").click()
    teller.see("#why .reason").to_have_count(12)


# ---- Homonyms, less like, long ties ------------------------------------------------------------------
def test_of_equal_names_the_best_connected_node_opens(teller: Explorer) -> None:
    teller.open(g="archive")
    teller.at("#query").fill("king kong")
    teller.see(".option").to_have_count(3)
    teller.see(".option").to_contain_text(["3 edges", "1 edge", "1 edge"])
    teller.see(".option").to_contain_text(["year 1976", "year 1933", "year 2005"])
    teller.at("#query").press("Enter")
    teller.see(".node-page .id").to_have_text("8")


def test_homonyms_are_named_with_their_ids_and_not_missing(teller: Explorer) -> None:
    teller.open(g="archive", v="examples", type="film")
    teller.at(".paste summary").click()
    teller.at("#paste").fill("King Kong,Alien,1\nNobody,Alien,1")
    teller.at("#paste-check").click()
    teller.see(".preview").to_contain_text(
        "3 films are called “King Kong”: 8 (3 edges), 7 (1 edge), 9 (1 edge). Write the id of one."
    )
    teller.see(".preview").to_contain_text("No film is called “Nobody”")
    teller.open(g="archive", q="10", qt="film", p="film-actor-film")
    teller.hits()
    teller.at("#share").click()
    teller.at("#share-panel summary").click()
    teller.at("#batch").fill("Alien\nKing Kong\nNobody")
    teller.download("#batch-csv")
    note = teller.at("#share-panel details [role=status]")
    expect(note).to_contain_text("Searched from 1 node. Not found: Nobody. 3 films are called “King Kong”: 8 (3 edges)")


def test_a_search_for_less_like_a_hit(teller: Explorer, told: Running) -> None:
    teller.open(g="clinic", q="D0", qt="Disease", p="Disease-Gene-Disease")
    assert teller.hits() == ["D1", "D2", "D5", "D3"]
    teller.hit("D1").locator(".less").click()
    teller.see("#search-title").to_have_text("Diseases like asthma, less like COPD by shared Genes")
    body = {"metapath": "Disease-Gene-Disease", "queries": ["D0", "D1"], "weights": [1, -1], "together": True}
    (answer,) = told.post("/api/graphs/clinic/search", body).json()
    assert teller.hits() == [hit["id"] for hit in answer["hits"]]
    teller.page.reload()
    assert teller.hits() == [hit["id"] for hit in answer["hits"]]
    teller.hit(teller.hits()[0]).locator(".yes").click()
    teller.see("#pair-count").to_have_text("1")
    teller.at(".member.less").click()
    assert teller.hits() == ["D1", "D2", "D5", "D3"]
    teller.hit("D1").locator(".add").click()
    teller.see(".hit .yes").not_to_have_count(0)


def test_a_tie_that_is_longer_than_the_list_does_not_fill_it(teller: Explorer) -> None:
    teller.open(g="padded", q="0", qt="item", p="item-tag-item")
    teller.see("#hits-a .hit").to_have_count(4)
    teller.at(".more-ties", has_text="Show 6 more of those that tie").click()
    teller.see("#hits-a .hit").to_have_count(10)


# ---- What a link holds ------------------------------------------------------------------------------
def test_a_link_holds_the_steps_what_if_and_p_values(teller: Explorer) -> None:
    teller.open(g="clinic", v="relate", q="D0", qt="Disease", t="A", tt="Gene")
    teller.see(".related .path").not_to_have_count(0)
    assert teller.at(".related .path").first.inner_text() == "Disease-Gene"
    teller.at("#steps").select_option("2")
    teller.page.reload()
    teller.see("#steps").to_have_value("2")
    teller.open(g="clinic", q="D0", qt="Disease", p="Disease-Gene-Disease", t="D1")
    teller.at(".job-run button", has_text="What if").click()
    teller.see(".what-if").to_be_visible()
    teller.page.reload()
    teller.see(".what-if").to_be_visible()
    teller.hit("D2").locator(".open").click()
    teller.see("#why-title").to_have_text("asthma and allergy")
    teller.see(".what-if").to_have_count(0)
    teller.at(".filters summary").click()
    teller.at(".filters .job-run button").click()
    teller.see(".p-value").to_have_count(4)
    teller.page.reload()
    teller.see(".p-value").to_have_count(4)


def test_p_values_are_of_the_filtered_list_and_say_why_there_is_none(teller: Explorer) -> None:
    asked = []

    def answer(route: Route) -> None:
        if route.request.method == "POST":
            asked.append(route.request.post_data_json)
        route.continue_()

    def forget(route: Route) -> None:
        content = route.fetch().json()
        content["results"][0]["hits"].pop()
        route.fulfill(json=content)

    teller.page.route("**/api/jobs", answer)
    teller.page.route("**/api/jobs/*/result", forget)
    teller.open(g="clinic", q="D0", qt="Disease", p="Disease-Gene-Disease", where=json.dumps(["id != D1"]))
    assert teller.hits() == ["D2", "D5", "D3"]
    teller.at(".filters .job-run button").click()
    teller.see(".p-value").to_have_count(3)
    assert asked[0]["where"] == ["id != D1"]
    teller.see(".hit .p-value").to_contain_text(["p 0", "p 0", "was not among the hits that were compared with chance"])


def test_the_explanation_prints_whole_and_without_buttons(teller: Explorer) -> None:
    teller.open(**WARD, all="1")
    teller.see("#why .reason").to_have_count(30)
    teller.page.emulate_media(media="print")
    cut = "box => box.scrollHeight - box.clientHeight"
    assert teller.page.evaluate(f"({cut})(document.querySelector('#why'))") <= 1
    assert teller.page.evaluate("getComputedStyle(document.querySelector('#why')).overflowY") == "visible"
    for hidden in ("#share", "#why-close", ".judge", ".top", "#reasons-csv", ".save-svg"):
        expect(teller.at(hidden).first).to_be_hidden()
    expect(teller.at("#why .reason").last).to_be_visible()

"""The explorer by example: pairs in, what they mean out, at once or as a job, and on to the search it gives."""

import json

import neupath as npth
from tests.service.browser import PARSER, Browser, Explorer, expect, explore, needs_chromium
from tests.service.conftest import Running, Start

pytestmark = needs_chromium
PAIRS = [["Mike", "Bob", 1], ["Mike", "Mary", 0.8], ["Mike", "Ann", 0], ["Mary", "Ann", 2 / 7]]
LABELLED = {"g": "toy", "v": "example", "type": "author", "pairs": json.dumps(PAIRS)}
APVPA = "author-paper-venue-paper-author"


def test_hits_are_labelled_and_become_a_search(explorer: Explorer) -> None:
    explorer.open(**PARSER)
    hits = explorer.hits()
    for id, word in ((hits[0], "is similar"), (hits[1], "is similar"), (hits[8], "is not similar")):
        explorer.hit(id).get_by_title(word, exact=True).click()
    explorer.see("#pair-count").to_have_text("3")
    explorer.at("#view-example").click()
    explorer.see(".pair").to_have_count(3)
    explorer.see(".pair .name").to_contain_text(["ArgumentParser", "OptionParser"])
    expect(explorer.at(".pair input[type=number]").last).to_have_value("0")
    slider = explorer.at(".pair input[type=range]").last
    slider.focus()
    slider.press("ArrowRight")
    expect(explorer.at(".pair input[type=number]").last).to_have_value("0.01")
    explorer.at(".pair input[type=number]").last.fill("0.2")
    explorer.at(".pair input[type=number]").last.press("Enter")
    assert "0.2" in explorer.page.url
    explorer.at("#infer").click()
    explorer.see(".verdict").to_be_visible()
    explorer.see("#hits-try .hit").not_to_have_count(0)
    explorer.at(".pair button").last.click()
    explorer.see(".pair").to_have_count(2)
    explorer.see(".stale").to_contain_text("The pairs have changed since")


def test_pairs_are_typed(explorer: Explorer) -> None:
    explorer.open(g="toy", v="example")
    explorer.at("#pair-type").select_option("author")
    for field, text in (("#pair-query", "mik"), ("#pair-target", "bo")):
        explorer.at(field).press_sequentially(text)
        explorer.at(field).press("Enter")
    explorer.see("#pair-target").to_have_value("Bob")
    explorer.at("#add-pair").click()
    explorer.see(".pair").to_have_count(1)
    explorer.at("#add-pair").click()
    explorer.see(".add-pair .status.bad").to_contain_text("Choose both nodes")
    explorer.at("summary").click()
    explorer.at("#paste").fill("query,target,score\nMike,Mary,0.8\nMike,,1")
    explorer.at("#paste-add").click()
    explorer.see("details .status").to_contain_text("“Mike,,1” is not a pair")
    explorer.at("#paste").fill("query,target,score\nMike,Mary,0.8\nMary\tAnn\t0.2")
    explorer.at("#paste-add").click()
    explorer.see(".pair").to_have_count(3)


def test_inferred_weights_are_shown_with_intervals(explorer: Explorer, explored: Running) -> None:
    explorer.open(**LABELLED)
    explorer.at("#infer").click()
    pairs = [{"query": query, "target": target, "score": score} for query, target, score in PAIRS]
    inferred = explored.post("/api/graphs/toy/infer", {"pairs": pairs, "node_type": "author", "suggest": 1}).json()
    assert inferred["metapaths"][0]["metapath"] == APVPA
    explorer.see(".weights .name").to_have_text([part["metapath"] for part in inferred["metapaths"]])
    explorer.see(".weights .score").to_have_text([f"{part['weight']:.4f}" for part in inferred["metapaths"]])
    explorer.see(".verdict").to_have_text(f"{inferred['verdict'][0].upper()}{inferred['verdict'][1:]}.")
    explorer.see(".alternatives li").to_have_count(len(inferred["alternatives"]))
    expect(explorer.at("#hits-try .hit").first).to_have_attribute("data-id", "Bob")
    explorer.at("#try").fill("ji")
    explorer.at("#try").press("Enter")
    expect(explorer.at("#hits-try .hit").first).to_have_attribute("data-id", "Mike")
    explorer.page.reload()  # the address says that it was inferred
    explorer.see(".weights .name").to_have_text([part["metapath"] for part in inferred["metapaths"]])
    explorer.see("#try").to_have_value("Jim")
    explorer.at("#open-search").click()
    assert explorer.hits()[0] == "Mike"
    explorer.see("#measure-a").to_have_value("mix:")
    explorer.at("#hits-a .open").first.click()
    explorer.see("#why h3").to_contain_text([APVPA])
    explorer.see(".paths .spot").not_to_have_count(0)
    explorer.at("#measure-a").select_option("measure:pathsim")
    explorer.see("#path-a").to_be_enabled()


def test_the_next_pair_is_labelled_or_skipped(explorer: Explorer) -> None:
    few = json.dumps([["Mike", "Bob", 1], ["Mike", "Ann", 0]])
    explorer.open(**LABELLED | {"pairs": few, "ran": "1"})
    pair = explorer.at(".suggested .who").inner_text()
    explorer.at("#skip-next").click()
    explorer.see(".suggested .who").not_to_have_text(pair)
    explorer.at(".suggested input[type=number]").fill("0.5")
    explorer.at("#label-next").click()
    explorer.see(".pair").to_have_count(3)
    expect(explorer.at(".pair input[type=number]").last).to_have_value("0.5")
    explorer.see(".verdict").to_be_visible()


def test_a_job_shows_its_progress_and_result(explorer: Explorer, browser: Browser, explored: Running) -> None:
    explorer.open(**LABELLED)
    explorer.at("#infer-job").click()
    explorer.see(".waiting progress").to_be_visible()
    explorer.see(".weights .name").to_have_text([APVPA])
    assert "job=" in explorer.page.url
    with explore(browser, explored.url) as other:  # the job's result is there for whoever has the address
        other.page.goto(explorer.page.url)
        other.see(".weights .name").to_have_text([APVPA])


def test_a_job_is_cancelled(browser: Browser, start: Start) -> None:
    served = start(running_jobs=0)  # one that never begins
    with explore(browser, served.url) as explorer:
        explorer.open(**LABELLED)
        explorer.at("#infer-job").click()
        explorer.see(".waiting").to_contain_text("Waiting for its turn")
        explorer.at("#cancel").click()
        explorer.see("#inferred .problem").to_have_text("The job was cancelled.")
        assert [job["state"] for job in served.get("/api/jobs").json()] == ["cancelled"]


def test_many_pairs_are_a_job(explorer: Explorer) -> None:
    people = ["Mike", "Jim", "Mary", "Bob", "Ann"]
    score = npth.PathSim(APVPA).fit(npth.load("toy")).score
    pairs = [[a, b, score(a, b)] for a in people for b in people if a != b]
    lines = "\n".join(f"{a},{b},{value}" for a, b, value in pairs)
    explorer.open(g="toy", v="example", type="author")
    explorer.at("summary").click()
    explorer.at("#paste").fill(lines)
    explorer.at("#paste-add").click()
    explorer.see(".pair").to_have_count(len(pairs))
    explorer.page.route("**/api/graphs/toy/infer", lambda route: route.fulfill(status=504, json={"error": "too long"}))
    explorer.at("#infer").click()  # what takes too long at once goes on as a job
    explorer.see(".weights .name").to_have_text([APVPA])
    explorer.see(".verdict").to_have_text("Explained exactly, and by nothing else that was tried.")
    explorer.complaints.clear()  # a browser logs every 504

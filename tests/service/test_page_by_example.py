"""The explorer by example: marks that stay, a list ranked anew by them, pairs pasted, and what they mean."""

import json
from typing import Any

from tests.service.browser import MIKE, PARSER, Browser, Explorer, Route, expect, explore, needs_chromium
from tests.service.conftest import Running, Start

pytestmark = needs_chromium
PAIRS = [["Mike", "Bob", 1], ["Mike", "Mary", 0.8], ["Mike", "Ann", 0], ["Mary", "Ann", 2 / 7]]
LABELLED = {"g": "toy", "v": "examples", "type": "author", "pairs": json.dumps(PAIRS)}
APVPA = "author-paper-venue-paper-author"


def test_marks_stay_and_rank_the_same_list(explorer: Explorer, explored: Running) -> None:
    """Defects 10 and 12: a mark left no trace, and a path was highlighted that was not searched."""
    explorer.open(**PARSER)
    hits = explorer.hits()
    for id, sign in ((hits[0], "yes"), (hits[1], "yes"), (hits[8], "no")):
        explorer.see("#rerank").to_have_count(0)
        explorer.mark(**{id: sign})
    explorer.hit(hits[8]).locator(".no").click()
    expect(explorer.hit(hits[8]).locator(".no")).to_have_attribute("aria-pressed", "false")
    explorer.hit(hits[8]).locator(".no").click()
    explorer.see("#pair-count").to_have_text("3")
    explorer.at("#rerank").click()
    explorer.at("#rank-anyway").click()  # both similar ones lead the list already
    explorer.see("#note-a").to_contain_text("Compared with pathsim on class-method-class")
    explorer.see("#measure-a").to_have_value("mix:")
    pairs = [{"query": PARSER["q"], "target": hits[place], "score": score} for place, score in ((0, 1), (1, 1), (8, 0))]
    body = {"pairs": pairs, "node_type": "class", "suggest": 0, "max_length": 4}
    inferred = explored.post("/api/graphs/stdlib/infer", body).json()
    parts = [
        {"measure": inferred["measure"]} | {k: part[k] for k in ("metapath", "weight")}
        for part in inferred["metapaths"]
    ]
    answer = explored.post("/api/graphs/stdlib/search", {"queries": [PARSER["q"]], "combination": parts}).json()
    assert explorer.hits() == [str(hit["id"]) for hit in answer[0]["hits"]]
    explorer.at("#change").click()
    explorer.see(".builder").to_contain_text("ranked by your examples")
    explorer.see(".schema .relation.walked").to_have_count(0)
    explorer.at("#undo-rank").click()
    explorer.see("#search-title").to_contain_text("shared methods")
    assert explorer.hits() == hits


def test_what_pairs_mean_is_said_without_statistics(explorer: Explorer) -> None:
    """Defect 11: it spoke of AUC first, and the next pair to label was two strangers."""
    explorer.open(**LABELLED)
    explorer.see(".weights .name").to_have_text([APVPA])
    explorer.see(".verdict").to_contain_text("One meta-path explains your examples.")
    explorer.see(".fit").to_be_hidden()
    explorer.at(".statistics summary").click()
    explorer.see(".fit").to_contain_text("RMSE")
    explorer.at("#open-search").click()
    assert explorer.hits()[0] == "Bob"
    few = json.dumps([["Mike", "Bob", 1], ["Mike", "Ann", 0]])
    explorer.open(**LABELLED | {"pairs": few})
    first = explorer.at(".suggested p").inner_text()
    assert {"Mike", "Bob", "Ann"} & set(first.split())
    explorer.at(".suggested button", has_text="✓ similar").click()
    explorer.see(".pair").to_have_count(3)


def test_pairs_are_added_scored_and_removed(explorer: Explorer) -> None:
    explorer.open(g="toy", v="examples", type="author")
    for box, text in (("#pair-query", "mike"), ("#pair-target", "bob")):
        explorer.look_up(text, box)
        explorer.see(box).to_have_value(text.capitalize())
    explorer.at("#add-similar").click()
    explorer.see(".pair").to_have_count(1)
    number = explorer.at(".pair input[type=number]")
    number.fill("0.2")
    explorer.page.evaluate("dispatchEvent(new Event('storage'))")  # draws the page anew, as a late answer does
    expect(number).to_have_value("0.2")
    number.press("Tab")
    expect(explorer.at(".pair input[type=range]")).to_have_value("0.2")
    assert "0.2" in explorer.page.url
    explorer.at(".pair button").click()
    explorer.see("#pairs").to_contain_text("No pairs yet")


def test_pasted_pairs_are_looked_up_first(explorer: Explorer) -> None:
    """Defect 19: unknown names were accepted, and names with commas rejected."""
    explorer.open(g="toy", v="examples", type="author")
    explorer.at(".paste summary").click()
    explorer.at("#paste").fill('query,target,score\nMike,Mary,0.8\n"Mary",Ann\t\nMike,Nobody,1\nMike')
    explorer.at("#paste-check").click()
    explorer.see(".preview").to_contain_text("No author is called “Nobody”")
    explorer.see(".preview").to_contain_text("“Mike” is no pair")
    explorer.at("#paste-add").click()
    explorer.see(".pair").not_to_have_count(0)
    explorer.open(g="hostile", v="examples", type="<b>user")
    explorer.at(".paste summary").click()
    explorer.at("#paste").fill("a/b?c=d&e#f%20+,ü💥,1\n")
    explorer.at("#paste-check").click()
    explorer.see(".preview").to_contain_text("1 pair found.")


def test_a_job_is_watched_and_cancelled(browser: Browser, start: Start) -> None:
    """Defect 9: its text began with a colon."""
    served = start(running_jobs=0)  # one that never begins
    with explore(browser, served.url) as explorer:
        explorer.open(**LABELLED)
        explorer.at("#inferred button", has_text="as a job").click()
        explorer.see(".job-progress p").to_have_text("waiting for its turn …")
        explorer.at(".cancel").click()
        explorer.see("#inferred .problem").to_have_text("The job was cancelled.")
        explorer.at(".train button", has_text="Train on 4 pairs").click()
        explorer.see(".train .job-progress p").to_have_text("waiting for its turn …")
        explorer.at(".train .cancel").click()
        explorer.see(".train .problem").to_have_text("The job was cancelled.")
        assert [job["state"] for job in served.get("/api/jobs").json()] == ["cancelled"] * 2


def time_of(explorer: Explorer, job: dict[str, Any]) -> str:
    """The time of a job, as the clock of the browser has it."""
    options = '{day: "numeric", month: "short", hour: "2-digit", minute: "2-digit"}'
    return str(
        explorer.page.evaluate(f'(time) => new Date(1000 * time).toLocaleString("en-GB", {options})', job["created"])
    )


def test_a_model_is_trained_and_searched_by(browser: Browser, start: Start) -> None:
    served = start()
    with explore(browser, served.url) as explorer:
        explorer.open(**LABELLED)
        explorer.at(".train button").click()
        explorer.see(".trained").to_contain_text("Kept: infer. 4 labels of 2 queries: too few to train a model on")
        (job,) = served.get("/api/jobs").json()
        explorer.at("#search-model").click()
        explorer.see("#measure-a").to_have_value(f"model:{job['id']}")
        answer = served.get(f"/api/graphs/toy/search?query=Mike&model={job['id']}").json()
        assert explorer.hits() == [hit["id"] for hit in answer["hits"]]
        explorer.at("nav a", has_text="Jobs").click()
        explorer.see(".job").to_contain_text("Train: auto on 4 pairs of author on toy")
        title = f"auto on 4 pairs of author, {time_of(explorer, job)}"
        explorer.see(".job").to_contain_text(time_of(explorer, job))
        explorer.at(".job a", has_text="Search by it").click()
        explorer.see(".landing").to_contain_text(f"By the model {title}: choose the author to start from.")
        explorer.look_up("mary")
        explorer.see("#search-title").to_have_text(f"Authors like Mary by the model {title}")
        explorer.see("#measure-a option:checked").to_have_text(title)


def test_the_page_says_where_no_jobs_are_taken(browser: Browser, start: Start) -> None:
    with explore(browser, start(waiting_jobs=0).url) as explorer:
        explorer.open(**LABELLED)
        explorer.at(".train button").click()
        explorer.see(".train .problem").to_contain_text("this service takes no jobs")
        explorer.complaints.clear()  # a browser logs every 403


def test_a_link_with_a_job_that_is_gone_still_works(explorer: Explorer) -> None:
    """Defect 17: an error of the API was shown, though the pairs are in the link."""
    explorer.open(**LABELLED | {"v": "example"}, ran="1", job="000000000000")
    explorer.see(".pair").to_have_count(4)
    explorer.see(".weights .name").to_have_text([APVPA])


def test_marks_belong_to_their_graph(explorer: Explorer) -> None:
    """Defect 4: hits of another graph stayed, and a mark stored a pair without an id."""
    explorer.open(**MIKE)
    explorer.hits()
    explorer.page.evaluate("location.hash = '#g=stdlib&p=class-method-class&q=argparse.ArgumentParser&qt=class'")
    explorer.see("#search-title").to_contain_text("ArgumentParser")
    assert "Bob" not in explorer.hits()
    explorer.at("#hits-a .yes").first.click()
    pairs = json.loads(explorer.page.evaluate("new URLSearchParams(location.hash.slice(1)).get('pairs')"))
    assert pairs == [["argparse.ArgumentParser", "optparse.OptionParser", 1]]
    explorer.at("#graph").select_option("toy")
    explorer.see("#hits-a").to_have_count(0)
    explorer.see(".landing .starter").not_to_have_count(0)


def test_marks_and_their_details_are_one_inference(explorer: Explorer) -> None:
    """The list was ranked by another mixture than the one that Details explained."""
    asked = []
    explorer.page.on("request", lambda one: asked.append(one.post_data_json) if one.url.endswith("/infer") else None)
    explorer.open(**PARSER)
    hits = explorer.hits()
    explorer.mark(**{hits[0]: "yes", hits[1]: "yes", hits[8]: "no"})
    explorer.at("#rerank").click()
    explorer.at("#rank-anyway").click()
    explorer.see("#search-title").to_contain_text("your examples")
    explorer.see("#marks-verdict").not_to_be_empty()
    verdict = explorer.at("#marks-verdict").inner_text()
    mixture = explorer.at(".search-head .path").inner_text()
    explorer.at(".marks a", has_text="Details").click()
    explorer.see(".verdict").to_have_text(verdict)
    for metapath in explorer.at(".weights .name").all_inner_texts():
        assert metapath in mixture
    assert len({json.dumps([one["pairs"], one.get("max_length")]) for one in asked}) == 1


def test_a_list_that_fits_the_marks_better_stays(explorer: Explorer) -> None:
    """Re-ranking lost the examples without a word."""

    def worse(route: Route) -> None:
        content = route.fetch().json()
        content["metapaths"] = [content["metapaths"][0] | {"metapath": "class-module-class", "weight": 1.0}]
        route.fulfill(json=content)

    explorer.page.route("**/infer", worse)
    explorer.open(**PARSER)
    hits = explorer.hits()
    explorer.mark(**dict(zip(hits, ("yes", "yes", "yes", "no"), strict=False)))
    explorer.at("#rerank").click()
    explorer.see("#marks-kept").to_contain_text("This list stays, since it fits your marks better: 3 similar and 1 not")
    assert explorer.hits() == hits
    explorer.at("#rank-anyway").click()
    explorer.see("#search-title").to_contain_text("your examples")
    assert explorer.hits() != hits


def test_a_verdict_does_not_contradict_the_details(explorer: Explorer) -> None:
    def unsure(route: Route) -> None:
        content = route.fetch().json()
        route.fulfill(json=content | {"kind": "ranking", "auc": 1.0, "held_out_auc": 0.7, "explains": False})

    explorer.page.route("**/infer", unsure)
    explorer.open(**LABELLED)
    explorer.see(".verdict").to_contain_text("fits your examples, but does not foretell those that are held out")

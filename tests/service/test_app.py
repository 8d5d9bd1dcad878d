"""Every endpoint: it answers what the command line prints, and refuses with the same sentences."""

import io
import json
import re
from hashlib import sha256
from pathlib import Path
from urllib.parse import quote

import httpx
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import neupath as npth
from neupath.cli import main
from neupath.graph.nodes import Nodes
from neupath.measures import GRAPH_MEASURES, MEASURES
from neupath.service import app, handlers, schemas
from neupath.service.graph_registry import GraphHandle, GraphRegistry
from neupath.service.limits import Limits
from neupath.service.schemas import read_examples
from tests.graphs import graph_of
from tests.service.conftest import HOSTILE, Running, Start

PATH = "author-paper-venue-paper-author"


def cli(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[str, str]:
    with pytest.raises(SystemExit):
        main(list(arguments))
    printed = capsys.readouterr()
    return printed.out.rstrip("\n"), printed.err.rstrip("\n")


def searched(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Return what `search --json` prints, without `ties`, which the service does not count."""
    printed, _ = cli(capsys, "search", *arguments, "--json")
    return re.sub(r', "ties": \d+}$', "}", printed)


@pytest.mark.parametrize(
    "name", sorted(set(read_examples()) - {"job", "jobs", "events", "metrics", "models", "graphs", "updates"})
)
def test_examples_are_real_answers(running: Running, name: str) -> None:
    example = read_examples()[name]
    method, _, url = example["request"].partition(" ")
    response = running.client.request(method, url, json=example.get("body"))
    assert response.status_code == 200
    assert response.json() == example["answer"]


def test_the_example_of_an_update_is_a_real_answer(writable: Running) -> None:
    example = read_examples()["updates"]
    method, _, url = example["request"].partition(" ")
    answer = writable.client.request(method, url, json=example["body"]).json()
    assert answer == example["answer"] | {"version": answer["version"]}


@pytest.mark.parametrize("query", ["Mike", "Mary", "Jim"])
@pytest.mark.parametrize("k", [1, 3, 100])
@pytest.mark.parametrize("measure", ["pathsim", "pcrw"])
def test_search_answers_what_the_command_line_prints(
    running: Running, capsys: pytest.CaptureFixture[str], query: str, k: int, measure: str
) -> None:
    printed = searched(capsys, "toy", query, "--metapath", PATH, "-k", str(k), "-m", measure)
    for _ in range(2):  # by a thread, then at once
        response = running.get(f"/api/graphs/toy/search?query={query}&metapath={PATH}&k={k}&measure={measure}")
        assert response.text == printed
    many = running.post(
        "/api/graphs/toy/search", {"queries": [query, "Ann"], "metapath": PATH, "k": k, "measure": measure}
    )
    assert many.text.startswith(f"[{printed}, {{")


@pytest.mark.parametrize("measure", [*GRAPH_MEASURES, "simrank:seed=1"])
def test_measures_over_the_whole_graph_answer_what_the_command_line_prints(
    running: Running, capsys: pytest.CaptureFixture[str], measure: str
) -> None:
    printed = searched(capsys, "toy", "Mike", "-m", measure, "-k", "3")
    assert json.loads(printed)["metapath"] is None
    words = f"query=Mike&measure={measure}&k=3"
    assert running.get(f"/api/graphs/toy/search?{words}").text == printed
    assert running.get(f"/api/graphs/toy/search?{words}&node_type=author").text == printed
    request = {"queries": ["Mike"], "measure": measure, "k": 3}
    assert running.post("/api/graphs/toy/search", request).text == f"[{printed}]"
    response = running.get(f"/api/graphs/toy/explain?query=Mike&target=Bob&measure={measure}")
    assert response.status_code == 422
    assert response.json()["error"].startswith(f"{measure} looks at the whole graph, not along a meta-path")


def test_an_ambiguous_query_needs_a_node_type(start: Start) -> None:
    twice = graph_of({"one": ["x", "y"], "two": ["x", "y"]}, {"one -r-> two": [(0, 0), (1, 0)]})
    running = start(graphs={"twice": twice})
    response = running.get("/api/graphs/twice/search?query=x&measure=ppr")
    assert response.json() == {"error": "the query could be of type one or two; say which with node_type"}
    assert running.get("/api/graphs/twice/search?query=x&measure=ppr&node_type=one").json()["hits"][0]["id"] == "y"


def test_every_measure_is_listed(running: Running) -> None:
    metapaths_of = {measure["name"]: measure["metapaths"] for measure in running.get("/api/measures").json()}
    assert list(metapaths_of) == [*MEASURES, *GRAPH_MEASURES]
    assert {name for name, metapaths in metapaths_of.items() if metapaths == "none"} == set(GRAPH_MEASURES)


def test_search_takes_the_options_of_the_command_line(running: Running, capsys: pytest.CaptureFixture[str]) -> None:
    printed = searched(
        capsys, "toy", "Mike", "--metapath", "APVPA", "--include-query", "--zeros", "--where", "id != Bob",
        "--among", "Mike", "--among", "Ann",
    )  # fmt: skip
    words = "query=Mike&metapath=APVPA&include_query=true&zeros=true&where=id+!%3D+Bob&among=Mike&among=Ann"
    assert running.get(f"/api/graphs/toy/search?{words}").text == printed
    assert json.loads(printed)["hits"][0]["id"] == "Mike"


def test_explain_infer_and_info_answer_what_the_command_line_prints(
    running: Running, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert running.get("/api/graphs/toy").text == cli(capsys, "info", "toy", "--json")[0]
    explained = running.get("/api/graphs/toy/explain?query=Mike&target=Mary&metapath=APVPA&limit=2").text
    assert (
        explained == cli(capsys, "explain", "toy", "Mike", "Mary", "--metapath", "APVPA", "--limit", "2", "--json")[0]
    )
    words, options = "by=paper&paths=2&k=2", ("--by", "paper", "--paths", "2", "-k", "2")
    explained = running.get(f"/api/graphs/toy/explain?query=Mike&target=Jim&metapath=APVPA&{words}").text
    assert explained == cli(capsys, "explain", "toy", "Mike", "Jim", "-p", "APVPA", *options, "--json")[0]
    related = running.get("/api/graphs/toy/relate?query=Mike&target=SIGMOD&max_steps=3&measure=dwpc").text
    assert related == cli(capsys, "relate", "toy", "Mike", "SIGMOD", "--max-steps", "3", "-m", "dwpc", "--json")[0]
    (tmp_path / "pairs.csv").write_text("query,target,score\nMike,Bob,1\nMike,Mary,0.8\nMike,Ann,0\n")
    rows = [("Mike", "Bob", 1.0), ("Mike", "Mary", 0.8), ("Mike", "Ann", 0.0)]
    pairs = [{"query": query, "target": target, "score": score} for query, target, score in rows]
    answer = running.post("/api/graphs/toy/infer", {"pairs": pairs}).text
    assert answer == cli(capsys, "infer", "toy", str(tmp_path / "pairs.csv"), "--json")[0]


@pytest.mark.parametrize(
    ("words", "arguments", "status"),
    [
        ("query=nobody&metapath=APVPA", ["nobody", "--metapath", "APVPA"], 404),
        ("query=Mike&metapath=author-venue", ["Mike", "--metapath", "author-venue"], 422),
        ("query=Mike&metapath=APVPX", ["Mike", "--metapath", "APVPX"], 422),
        ("query=Mike&metapath=APV", ["Mike", "--metapath", "APV"], 422),
        ("query=Mike&metapath=APVPA&measure=simrank", ["Mike", "--metapath", "APVPA", "-m", "simrank"], 422),
        ("query=Mike&measure=ppr:damping=nan", ["Mike", "-m", "ppr:damping=nan"], 422),
        ("query=Mike&measure=simrank:seed=x", ["Mike", "-m", "simrank:seed=x"], 422),
        (f"query=Mike&measure=simrank:seed={10**30}", ["Mike", "-m", f"simrank:seed={10**30}"], 422),
        ("query=Mike&metapath=APVPA&where=age+%3E+3", ["Mike", "--metapath", "APVPA", "--where", "age > 3"], 422),
    ],
)
def test_errors_are_those_of_the_command_line(
    running: Running, capsys: pytest.CaptureFixture[str], words: str, arguments: list[str], status: int
) -> None:
    _, message = cli(capsys, "search", "toy", *arguments)
    response = running.get(f"/api/graphs/toy/search?{words}")
    assert (response.status_code, response.json()) == (status, {"error": message.removeprefix("error: ")})


@pytest.mark.parametrize(
    ("url", "status", "message"),
    [
        ("graphs/tyo", 404, "no graph 'tyo' is served (there are toy, hostile); did you mean 'toy'?"),
        ("graphs/toy/search?metapath=APA", 422, "query is missing"),
        ("graphs/toy/search?query=Mike", 422, "no meta-path is given; say what makes two nodes similar with metapath, "
         "such as author-paper-author, paper-author-paper, venue-paper-venue"),
        ("graphs/toy/search?query=Mike&metapath=APA&k=x", 422, "k is 'x': input should be a valid integer, unable to "
         "parse string as an integer"),
        ("graphs/toy/search?query=Mike&metapath=APA&k=0", 422, "k is '0': input should be greater than or equal to 1"),
        ("graphs/toy/search?query=Mike&metapath=APA&k=1001", 422, "k is 1001; this service gives at most 1,000 hits"),
        ("graphs/toy/search?query=Mike&query=Bob&metapath=APA", 422, "'query' is given twice; give it once"),
        ("graphs/toy/search?query=Mike&metapath=APA&limit=3", 422, "limit is not a parameter or field of this request"),
        ("graphs/toy/search?query=Mike&model=mine", 404, "no model 'mine' is served (there are saved)"),
        ("graphs/hostile/search?query=x&model=saved", 422, "the model 'saved' does not fit the graph 'hostile', whose "
         "schema is another; it fits toy"),
        ("graphs/toy/search?query=Mike&metapath=APA&model=saved", 422, "a saved model knows what similar means; give "
         "either model or metapath"),
        ("graphs/toy/search?query=Mike&measure=pcrw&model=saved", 422, "a saved model knows what similar means; give "
         "either model or measure"),
        ("graphs/toy/search?query=Mike&metapath=APA&node_type=author", 422, "pathsim takes its node types from "
         "metapath; node_type is for measures over the whole graph: ppr, rwr, simrank, scan, commutetime"),
        ("graphs/toy/metapaths?source_type=author&limit=1001", 422, "limit is 1001; this service lists at most "
         "1,000 paths"),
        ("graphs/toy/search?query=Mike&metapath=" + "AP" * 11, 422, "the meta-path has 21 steps; this service walks at "
         "most 20"),
        ("graphs/toy/nodes?node_type=venue&limit=201", 422, "limit is 201; this service lists at most 200 nodes "
         "at a time"),
        ("graphs/toy/nodes?node_type=venues", 404, "no node type 'venues' in this graph (it has author, paper, "
         "venue); did you mean 'venue'?"),
        ("graphs/toy/explain?query=Mike&target=Bob&metapath=APA&limit=1001", 422, "limit is 1001; this service lists "
         "at most 1,000 paths"),
        ("graphs/toy/explain?query=Mike&target=Bob&metapath=APA&limit=100&paths=11", 422, "limit is 100 and paths is "
         "11; this service lists at most 1,000 paths of all groups together"),
        ("graphs/toy/explain?query=Mike&target=Bob&metapath=APA&by=venue", 422, "by is 'venue', but the nodes on "
         "author-paper-author are of type author, paper; give one of these, or a number of steps from the query, "
         "0 to 2"),
        ("graphs/toy/relate?query=Mike&target=Bob&max_steps=21", 422, "max_steps is 21; this service walks at most 20"),
        ("graphs/toy/relate?query=Mike&target=Bob&limit=1001", 422, "limit is 1001; this service lists at most 1,000 "
         "paths"),
        ("jobs/1", 404, "no job '1' is known; GET /api/jobs lists them"),
        ("nothing", 404, "there is nothing at '/api/nothing'; GET /api/openapi.json lists what there is"),
    ],
)  # fmt: skip
def test_errors_name_the_next_step(running: Running, url: str, status: int, message: str) -> None:
    response = running.get(f"/api/{url}")
    assert (response.status_code, response.json()) == (status, {"error": message})


@pytest.mark.parametrize(
    ("path", "content", "message"),
    [
        ("search", {"queries": []}, "queries is []: list should have at least 1 item after validation, not 0"),
        ("search", {"queries": ["Mike"] * 1001, "metapath": "APA"}, "1,001 queries are given; this service takes at "
         "most 1,000 a call"),
        ("search", {"queries": ["Mike"] * 1000, "metapath": "APA", "k": 101}, "1,000 queries for 101 hits each are "
         "more than the 100,000 hits a call may ask for; ask in parts, or start a join job"),
        ("search", {"queries": ["Mike"], "path": "APA"}, "path is not a parameter or field of this request"),
        ("search", {"queries": [True], "metapath": "APA"}, "queries.0 is True: input should be a valid string"),
        ("search", {"k": "x", "wher": [], "among": 1, "zeros": 7}, "among is 1: input should be a valid list; k is "
         "'x': input should be a valid integer, unable to parse string as an integer; zeros is 7: input should be a "
         "valid boolean, unable to interpret input (and 2 more)"),
        ("infer", {"pairs": [{"query": "Mike", "target": "Bob", "score": 1}, {"query": "Mike", "target": "Ann"}]},
         "some pairs have a score and some have none; give all a score, or none"),
        ("search", {"queries": ["x" * 20_001], "metapath": "APA"}, "queries.0 is '" + "x" * 99 +
         "…: string should have at most 20000 characters"),
        ("infer", {"pairs": "/etc/passwd"}, "pairs is '/etc/passwd': input should be a valid list"),
        ("explain", {"query": "Mike", "target": "Bob", "combination": []}, "a combination needs at least one measure "
         "over a meta-path"),
    ],
)  # fmt: skip
def test_invalid_bodies_are_errors(running: Running, path: str, content: object, message: str) -> None:
    response = running.post(f"/api/graphs/toy/{path}", content)
    assert (response.status_code, response.json()) == (422, {"error": message})


def test_bodies_that_are_not_json_are_errors(running: Running) -> None:
    def sent(body: bytes, **headers: str) -> httpx.Response:
        return running.client.post("/api/graphs/toy/search", content=body, headers=headers)

    is_json = {"content-type": "application/json"}
    for body in (b"{", b"\xff", b"[" * 100_000, b'{"queries": [' + b"9" * 5000 + b"]}", b"", b"null"):
        response = sent(body, **is_json)
        assert 400 <= response.status_code < 500, body[:20]
        assert list(response.json()) == ["error"]
    for body, headers, message in (
        (b"{", is_json, "the body is no JSON: expecting property name enclosed in double quotes at character 1"),
        (b"[" * 100_000, is_json,
         "the body cannot be read as JSON: it is no UTF-8, is nested too deep, or has too long a number"),
        (b"{}", {}, "the body is not marked as JSON; send the header 'Content-Type: application/json' with it"),
    ):  # fmt: skip
        assert sent(body, **headers).json() == {"error": message}
    assert running.client.put("/api/graphs").json() == {"error": "PUT is not possible at '/api/graphs'"}


def test_errors_shorten_long_ids(running: Running) -> None:
    for request in ({"queries": ["x" * 20_000], "metapath": "APA"}, {"queries": ["Mike"], "metapath": "A" * 20_000}):
        response = running.post("/api/graphs/toy/search", request)
        assert response.status_code in (404, 422)
        assert len(response.json()["error"]) <= 6000
    response = running.post("/api/graphs/toy/search", {"queries": [2**70], "metapath": "APA"})
    assert response.status_code in (404, 422)


def test_many_pairs_need_a_job(running: Running) -> None:
    pairs = [{"query": "Mike", "target": "Bob", "score": 1.0}] * 501
    response = running.post("/api/graphs/toy/infer", {"pairs": pairs})
    assert response.status_code == 413
    assert "start a job" in response.json()["error"]


def test_accept_selects_json_arrow_parquet_or_csv(running: Running) -> None:
    request = {"queries": ["Mike", "Mary"], "metapath": "APVPA", "k": 2}
    hits = npth.PathSim("APVPA").fit(npth.load("toy")).top_k(["Mike", "Mary"], 2)
    rows = [(hit_list.query, hit.rank, hit.id, hit.score) for hit_list in hits for hit in hit_list]
    arrow = running.post("/api/graphs/toy/search", request, headers={"accept": "application/vnd.apache.arrow.stream"})
    assert arrow.headers["content-type"] == "application/vnd.apache.arrow.stream"
    text = running.post("/api/graphs/toy/search", request, headers={"accept": "text/csv"})
    assert text.headers["content-type"] == "text/csv; charset=utf-8"
    file = running.post("/api/graphs/toy/search", request, headers={"accept": "application/vnd.apache.parquet"})
    assert file.headers["content-type"] == "application/vnd.apache.parquet"
    parquet = pa.parquet.read_table(io.BytesIO(file.content))
    origin = json.loads(parquet.schema.metadata[b"neupath"])
    assert origin.pop("time").endswith("+00:00")
    assert origin == {"graph": "toy", "metapath": PATH, "measure": "pathsim", "k": 2}
    arrow_table = pa.ipc.open_stream(arrow.content).read_all()
    for table in (arrow_table, parquet, pa.csv.read_csv(io.BytesIO(text.content))):
        assert list(zip(*(table[name].to_pylist() for name in ("query", "rank", "id", "score")), strict=True)) == rows
    one = running.get("/api/graphs/toy/search?query=Mike&metapath=APVPA", headers={"accept": "text/csv"})
    assert one.text.splitlines()[1] == '"Mike",1,"Bob",,1'


@pytest.mark.parametrize("weights", [(0.75, 0.25), (1.0, -0.5)])
def test_a_combination_is_searched_and_explained(
    running: Running, capsys: pytest.CaptureFixture[str], weights: tuple[float, float]
) -> None:
    texts = ["author-paper-venue-paper-author", "author-paper-author"]
    parts = [
        {"measure": "pathsim", "metapath": text, "weight": weight} for text, weight in zip(texts, weights, strict=True)
    ]
    answer = running.post("/api/graphs/toy/search", {"queries": ["Mike"], "combination": parts})
    options = ("-p", "APVPA", "-p", "APA", "--weights", ",".join(f"{weight:g}" for weight in weights))
    assert answer.text == f"[{searched(capsys, 'toy', 'Mike', *options)}]"
    (hits,) = answer.json()
    assert hits["parts"] == parts
    assert hits["measure"] == "combination"
    score = 0.8 * weights[0]
    assert hits["hits"][1] == {"rank": 2, "id": "Mary", "name": None, "score": pytest.approx(score)}
    request = {"query": "Mike", "target": "Mary", "combination": parts}
    assert running.post("/api/graphs/toy/explain", request).json()["score"] == pytest.approx(score)


def test_a_saved_model_is_searched_and_explained(running: Running) -> None:
    by_path = running.get("/api/graphs/toy/search?query=Mike&metapath=APVPA")
    assert running.get("/api/graphs/toy/search?query=Mike&model=saved").text == by_path.text
    explained = running.get("/api/graphs/toy/explain?query=Mike&target=Mary&metapath=APVPA")
    assert running.get("/api/graphs/toy/explain?query=Mike&target=Mary&model=saved").text == explained.text
    assert running.get("/api/models").json()[0] == {
        "name": "saved", "title": "saved", "created": None, "graphs": ["toy"], "measure": "pathsim", "exact": True,
        "source_type": "author", "target_type": "author", "metapath": PATH, "explains": True,
    }  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE, ids=["html", "10 KB", "right to left", "NUL", "address", "quotes", "emoji"])
def test_hostile_names_are_not_changed(running: Running, name: str) -> None:
    words = f"query={quote(name, safe='')}&metapath={quote('<b>user-tag-<b>user')}&k=20"
    for _ in range(2):
        response = running.get(f"/api/graphs/hostile/search?{words}")
        assert response.status_code == 200
        assert response.headers["content-type"] == "application/json"
        assert response.json()["query"] == name
        assert {hit["id"] for hit in response.json()["hits"]} == set(HOSTILE) - {name}
        assert {hit["name"] for hit in response.json()["hits"]} == {n[::-1] for n in HOSTILE} - {name[::-1]}
    looked_up = running.get(f"/api/graphs/hostile/nodes?node_type={quote('<b>user')}&text={quote(name, safe='')}")
    assert looked_up.json()["nodes"][0]["id"] == name
    wrong = running.get(f"/api/graphs/hostile/search?query={quote(name + '?', safe='')}&metapath=%3Cb%3Euser-tag")
    assert wrong.status_code in (404, 422)
    assert list(wrong.json()) == ["error"]


def test_openapi_describes_every_call_with_an_example(running: Running) -> None:
    content = running.get("/api/openapi.json").json()
    calls = [(path, method, call) for path, calls in content["paths"].items() for method, call in calls.items()]
    assert len(calls) == 27
    for path, _, call in calls:
        answers = {status: answer for status, answer in call["responses"].items() if status.startswith("2")}
        assert any("example" in kind for answer in answers.values() for kind in answer["content"].values()), path
        assert "default" in call["responses"]
        assert call["summary"]
    assert running.get("/redoc").status_code == 404  # it would load scripts from other sites
    assert running.get("/docs").text == running.get("/").text  # the page renders it


def test_health_and_metrics(running: Running) -> None:
    assert running.get("/api/health").json() == {"status": "ok", "version": npth.__version__}
    running.get("/api/graphs/toy/search?query=Mike&metapath=APVPA")
    running.post("/api/graphs/toy/search", {"queries": ["Mike"], "metapath": "APVPA"})
    running.get("/api/graphs/toy/no-such-thing")
    lines = running.get("/api/metrics").text.splitlines()
    for method in ("GET", "POST"):
        counter = f'neupath_requests_total{{method="{method}",route="/api/graphs/{{graph}}/search",status="200"}}'
        assert len([line for line in lines if line.startswith(counter)]) == 1
    assert any(line.startswith('neupath_jobs{state="running"}') for line in lines)
    assert 'neupath_request_seconds_bucket{route="/api/graphs/{graph}/search",le="+Inf"}' in "\n".join(lines)
    assert not any("no-such-thing" in line for line in lines)


@pytest.mark.parametrize(
    "path", ["/", "/api/health", "/api/graphs/toy/search?query=Mike&metapath=APVPA", "/api/graphs/x"]
)
def test_head_has_the_headers_of_get(running: Running, path: str) -> None:
    head, full = running.client.head(path), running.get(path)
    assert (head.status_code, head.content) == (full.status_code, b"")
    same = ("content-length", "content-type", "content-security-policy")
    assert [head.headers[name] for name in same] == [full.headers[name] for name in same]


def test_nodes_are_shown_looked_up_and_started_from() -> None:
    scores = pa.table({"score": pa.array([float("nan"), 7.5, 1.0, 2.0])})
    films = Nodes("film", pa.array([1, 2, 3, 4]), pa.array(["Up", "Alien", "Twin", "Twin"]), scores)
    of = [(0, 0), (1, 0), (1, 1), (2, 1), (3, 1)]
    hin = graph_of({"film": films, "genre": ["drama", "horror"]}, {"film -of-> genre": of})
    registry = GraphRegistry({"films": GraphHandle("films", hin)}, Limits())
    card = handlers.describe_node(registry, "films", schemas.NodeRequestedById(node_type="film", id="Alien", limit=1))
    assert card["attributes"] == {"score": 7.5}
    (link,) = card["links"]  # type: ignore[misc]
    assert (link["link"], link["degree"], [node["id"] for node in link["neighbours"]]) == ("-of->", 2, ["drama"])
    found = handlers.look_up_nodes(
        registry, "films", schemas.NodesLookup(node_type="film", ids=["Up", 2, "Twin", "nobody"])
    )
    nodes: list[dict[str, object] | None] = found["nodes"]  # type: ignore[assignment]
    assert [node and node["id"] for node in nodes] == [1, 2, None, None]  # two are called Twin
    assert {name: [node["id"] for node in same] for name, same in found["ambiguous"].items()} == {"Twin": [3, 4]}  # type: ignore[attr-defined]
    assert nodes[0] == {"node_type": "film", "id": 1, "name": "Up", "attributes": {"score": None}}  # NaN is no JSON
    hubs: list[dict[str, object]] = handlers.find_hubs(registry, "films", schemas.HubsRequest(limit=1))["nodes"]  # type: ignore[assignment]
    assert [(hub["id"], hub["degree"]) for hub in hubs] == [(2, 2), ("horror", 3)]
    similar = handlers.find_similar(registry, "films", schemas.SimilarRequest(node_type="film", query="Alien", k=2))
    (path,) = similar["metapaths"]  # type: ignore[misc]
    assert (path["metapath"], path["targets"], path["ties"], path["more"]) == ("film-genre-film", 3, 3, False)
    assert [hit["id"] for hit in path["hits"]] == [1, 3]


def test_the_bundle_of_the_page_is_as_new_as_its_sources() -> None:
    page = Path(app.__file__).parent / "page"
    digest = sha256()
    for path in sorted(page.iterdir()):
        if path.suffix in (".js", ".jsx", ".css", ".html", ".svg"):
            digest.update(path.name.encode() + path.read_bytes())
    built = (page / "bundle" / "sources.sha256").read_text().strip()
    assert built == digest.hexdigest(), "the bundle is older than its sources; run 'make page' and commit it"


def test_the_page_has_security_headers_and_an_etag(running: Running) -> None:
    response = running.get("/")
    assert response.status_code == 200
    assert response.headers["content-type"] == "text/html; charset=utf-8"
    assert "unsafe" not in response.headers["content-security-policy"]
    assert "script-src 'self'" in response.headers["content-security-policy"]
    again = running.get("/", headers={"if-none-match": response.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    for path in ("/../service/app.py", "/%2e%2e/app.py", "/app.py", "//etc/passwd"):
        assert running.get(path).status_code == 404


def test_metapaths_are_completed_and_suggested(running: Running) -> None:
    def read(prefix: str) -> dict[str, object]:
        answer = running.get("/api/graphs/toy/metapaths", params={"prefix": prefix}).json()
        description: dict[str, object] = answer["prefix"]
        return description

    whole = read("APVPA")
    assert (whole["valid"], whole["metapath"], whole["round_trip"]) == (True, PATH, True)
    assert "pathsim" in whole["measures"]  # type: ignore[operator]
    assert [step["metapath"] for step in read("author-")["next"]] == ["author-paper"]  # type: ignore[attr-defined]
    begun = read("author-paper-v")
    assert [step["metapath"] for step in begun["next"]] == ["author-paper-venue"]  # type: ignore[attr-defined]
    assert "no node type 'v'" in str(begun["error"])
    starts = [step["metapath"] for step in read("")["next"]]  # type: ignore[attr-defined]
    assert starts == ["author", "paper", "venue"]
    assert [step["metapath"] for step in read("pa")["next"]] == ["paper", "paper-author-paper"]  # type: ignore[attr-defined]
    suggested = running.get("/api/graphs/toy/metapaths?source_type=author&target_type=venue&max_length=3").json()[
        "suggestions"
    ]
    assert [path["metapath"] for path in suggested] == ["author-paper-venue"]


def test_unless_in_a_query_string_may_be_repeated(running: Running) -> None:
    url = f"/api/graphs/toy/search?query=Mike&metapath={PATH}"
    scorer = npth.PathSim(PATH).fit(npth.load("toy"))
    for unless in (["APA"], ["APA", "APVPA"]):
        response = running.get("&unless=".join([url, *unless]))
        assert response.status_code == 200
        assert [hit["id"] for hit in response.json()["hits"]] == list(scorer.top_k("Mike", unless=unless).ids)


@pytest.mark.parametrize("bound", ["since", "until", "now", "half_life"])
def test_a_time_without_its_attribute_is_refused_at_once_too(running: Running, bound: str) -> None:
    url = f"/api/graphs/toy/search?query=Mike&metapath={PATH}"
    for _ in range(2):  # by a thread, then at once
        assert running.get(url).status_code == 200
        refused = running.get(f"{url}&{bound}=2020")
        assert refused.status_code == 422
        assert f"{bound} needs time" in refused.text

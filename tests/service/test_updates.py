"""A store over HTTP: updates are on disk and known at once, refused whole with every bad line, and kept by version."""

import errno
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlencode

import pyarrow as pa
import pytest

import neupath as npth
from neupath.client import Client, ServiceError
from neupath.errors import WriteError
from neupath.learn.registry import make_model
from neupath.learn.stack import Stack
from neupath.live import LiveStore
from neupath.store import check, write_store
from tests.patience import PATIENCE
from tests.service.conftest import Running, Start

GRAPH = "/api/graphs/live"
SEARCH = f"{GRAPH}/search?query=Mike&metapath=APA"
JOIN = {"add_edges": [{"relation": "writes", "source": "Mike", "target": "Jim-SIGMOD-1"}]}


@pytest.fixture
def live(start: Start, tmp_path: Path) -> Iterator[Running]:
    """A service of a store that takes updates, of one that does not, and of a graph that is none."""
    toy = npth.load("toy")
    stores = [LiveStore(write_store(toy, tmp_path / n), read_only=n == "kept") for n in ("live", "kept")]
    graphs = {"live": stores[0], "kept": stores[1], "toy": toy}
    saved = npth.PathSim("APA").fit(toy).save(tmp_path / "model")
    yield start(graphs=graphs, models={"saved": saved}, lines=30)
    for store in stores:
        store.close()


def ids(running: Running, url: str) -> tuple[int, list[str]]:
    result = running.get(url).json()
    return result["version"], [hit["id"] for hit in result["hits"]]


def test_a_search_sees_an_update_at_once(live: Running, tmp_path: Path) -> None:
    for _ in range(2):
        assert ids(live, SEARCH) == (0, [])
    answer = live.post(f"{GRAPH}/updates", JOIN)
    assert (answer.status_code, answer.json()) == (200, {"version": 1, "lines": 1})
    assert ids(live, SEARCH) == (1, ["Jim"])
    assert ids(live, f"{SEARCH}&as_of=0") == (0, [])
    assert ids(live, f"{SEARCH}&as_of=1") == (1, ["Jim"])
    many = live.post(f"{GRAPH}/search", {"queries": ["Mike", "Jim"], "metapath": "APA"}).json()
    assert [result["version"] for result in many] == [1, 1]
    table = live.get(SEARCH, headers={"accept": "text/csv"})
    assert table.headers["neupath-version"] == "1"
    gone = {"remove_edges": JOIN["add_edges"]}
    assert live.post(f"{GRAPH}/updates", gone).json()["version"] == 2
    assert ids(live, SEARCH) == (2, [])
    live.service.registry.handle("live")._live.close()  # type: ignore[union-attr]
    assert not check(tmp_path / "live").problems


def test_edges_are_added_with_attributes(start: Start, tmp_path: Path) -> None:
    ratings = pa.table({"user": ["a", "b"], "movie": ["x", "x"], "stars": [5, 3], "at": ["2020-01-01", "2021-01-01"]})
    hin = npth.load({("user", "rates", "movie"): ratings})
    with LiveStore(write_store(hin, tmp_path / "live")) as store:
        service = start(graphs={"live": store})
        assert service.get(f"{GRAPH}/schema").json()["relations"][0]["attributes"] == {"stars": "integer", "at": "date"}
        edge = {"relation": "rates", "source": "a", "target": "x", "attributes": {"stars": 1, "at": None}}
        assert service.post(f"{GRAPH}/updates", {"add_edges": [edge]}).json()["version"] == 1
        bad = edge | {"attributes": {"stras": 1}}
        answer = service.post(f"{GRAPH}/updates", {"add_edges": [bad]})
        assert answer.status_code == 422
        assert "have no attribute 'stras' (they have stars, at); did you mean 'stars'?" in answer.json()["error"]
        with Client(service.url, timeout=PATIENCE) as client:
            assert client.update("live", add_edges=[("rates", "b", "x", 2.0, {"stars": 4})]) == 2
        (table,) = store.view().hin.edge_tables.values()
        assert table.attributes["stars"].to_pylist() == [5, 3, 1, 4]


@pytest.mark.parametrize(
    "words",
    ["metapath=APA&measure=pathcount", "measure=ppr&node_type=author", "model=saved", "metapath=AP&measure=hetesim"],
)
@pytest.mark.slow
def test_every_kind_of_search_uses_the_newest_version(live: Running, words: str) -> None:
    url = f"{GRAPH}/search?query=Mike&k=100&{words}"
    before = live.get(url).json()
    live.post(f"{GRAPH}/updates", JOIN)
    after = live.get(url).json()
    assert (before["version"], after["version"]) == (0, 1)
    assert after["hits"] != before["hits"]
    assert live.get(f"{url}&as_of=0").json() == before


def test_explanations_use_the_newest_version(live: Running) -> None:
    parts = [{"measure": "pathsim", "metapath": "APA", "weight": 1.0}]
    one = f"{GRAPH}/explain?query=Mike&target=Jim&metapath=APA"
    both = {"query": "Mike", "target": "Jim", "combination": parts}
    live.get(SEARCH)
    assert live.get(one).json()["score"] == 0.0
    live.post(f"{GRAPH}/updates", JOIN)
    live.get(SEARCH)
    explanation, combined = live.get(one).json(), live.post(f"{GRAPH}/explain", both).json()
    assert explanation["version"] == combined["version"] == 1
    assert explanation["score"] == combined["score"] > 0
    assert explanation["instances"][0]["nodes"][1]["id"] == "Jim-SIGMOD-1"
    assert live.post(f"{GRAPH}/explain", both | {"as_of": 0}).json()["score"] == 0.0
    searched = live.post(f"{GRAPH}/search", {"queries": ["Mike"], "combination": parts}).json()[0]
    assert (searched["version"], searched["hits"][0]["id"]) == (1, "Jim")


def test_an_earlier_version_is_asked_for_nodes_that_it_alone_has(live: Running) -> None:
    path = "author-paper{Mike-VLDB-3, Mike-SIGMOD-1}-author"
    paper = {"node_type": "paper", "id": "Mike-VLDB-3"}
    edges = [("writes", "Mike", "Mike-VLDB-3"), ("appears_at", "Mike-VLDB-3", "VLDB")]
    gone = [dict(zip(("relation", "source", "target"), edge, strict=True)) for edge in edges]
    assert live.post(f"{GRAPH}/updates", {"remove_edges": gone, "remove_nodes": [paper]}).json()["version"] == 1
    past, pair = {"as_of": "0", "metapath": path}, {"query": "Mike", "target": "Mike"}
    parts = [{"measure": "pathsim", "metapath": path, "weight": 1.0}]
    one, many = pair | past, {"queries": ["Mike"], "include_query": True, "as_of": 0}
    searches = [
        live.get(f"{GRAPH}/search?{urlencode(past | {'query': 'Mike', 'include_query': 'true'})}"),
        live.post(f"{GRAPH}/search", many | {"metapath": path}),
        live.post(f"{GRAPH}/search", many | {"metapath": path, "together": True}),
        live.post(f"{GRAPH}/search", many | {"combination": parts}),
    ]
    for answer in searches:
        content = answer.json()
        (result,) = content if isinstance(content, list) else [content]
        assert (result["version"], [hit["score"] for hit in result["hits"]]) == (0, [1.0])
    unless = live.post(f"{GRAPH}/search", many | {"metapath": "APA", "unless": [path]}).json()[0]
    assert (unless["version"], unless["hits"]) == (0, [])
    explanations = [
        live.get(f"{GRAPH}/explain?{urlencode(one)}"),
        live.post(f"{GRAPH}/explain", pair | {"combination": parts, "as_of": 0}),
        live.post(f"{GRAPH}/explain", {"queries": ["Mike"], "target": "Mike", "metapath": path, "as_of": 0}),
    ]
    assert [(answer.json()["version"], answer.json()["score"]) for answer in explanations] == [(0, 1.0)] * 3
    removed = {"query": "Mike-VLDB-3", "as_of": "0"}
    related = live.get(f"{GRAPH}/relate?{urlencode(removed | {'target': 'Mike-SIGMOD-1'})}").json()
    assert related["version"] == 0
    walk = live.get(f"{GRAPH}/search?{urlencode(removed | {'measure': 'ppr', 'k': '1'})}").json()
    assert (walk["version"], len(walk["hits"])) == (0, 1)
    for words in ("search?query=Mike", "explain?query=Mike&target=Mike"):  # the newest version lacks the paper
        assert live.get(f"{GRAPH}/{words}&{urlencode({'metapath': path})}").status_code == 404


def test_a_cached_measure_follows_what_its_pinned_name_means(start: Start, tmp_path: Path) -> None:
    edges = pa.table({"user": ["u", "v", "v"], "film": ["f1", "f1", "f2"]})
    films = pa.table({"id": ["f1", "f2"], "name": ["Heat", "Up"]})
    hin = npth.load({("user", "sees", "film"): edges, "film": films})
    with LiveStore(write_store(hin, tmp_path / "live"), compaction_share=float("inf")) as store:
        service = start(graphs={"live": store})
        url = f"{GRAPH}/search?query=v&metapath=user-film{{Heat}}-user&measure=pathcount&include_query=true"

        def scores(words: str = "") -> dict[str, float]:
            return {hit["id"]: hit["score"] for hit in service.get(url + words).json()["hits"]}

        for _ in range(2):
            assert scores() == {"u": 1.0, "v": 1.0}
        heat = {"node_type": "film", "id": "Heat", "name": "Other"}
        seen = [{"relation": "sees", "source": "v", "target": "Heat"}]
        service.post(f"{GRAPH}/updates", {"add_nodes": [heat], "add_edges": seen})
        for words in ("", "", "&zeros=true&k=1", "&as_of=1"):
            assert scores(words) == {"v": 1.0}
        assert scores("&as_of=0") == {"u": 1.0, "v": 1.0}
        service.post(f"{GRAPH}/updates", {"remove_edges": seen, "remove_nodes": [{"node_type": "film", "id": "Heat"}]})
        assert scores() == {"u": 1.0, "v": 1.0}
        service.post(f"{GRAPH}/updates", {"add_nodes": [{"node_type": "film", "id": "f3", "name": "Heat"}]})
        assert "2 nodes of type film are named 'Heat'" in service.get(url).json()["error"]


def test_autocomplete_finds_new_nodes(live: Running) -> None:
    url = f"{GRAPH}/nodes?node_type=author&text=zo"
    assert live.get(url).json()["nodes"] == []
    zoe = {"add_nodes": [{"node_type": "author", "id": "Zoe"}]}
    assert live.post(f"{GRAPH}/updates", zoe).json()["version"] == 1
    assert [node["id"] for node in live.get(url).json()["nodes"]] == ["Zoe"]
    assert live.get(f"{GRAPH}/schema").json()["node_types"][0]["nodes"] == 6
    assert live.get(GRAPH).json()["version"] == 1
    assert live.get(f"{GRAPH}/search?query=Zoe&metapath=APA").json()["hits"] == []
    edge = [{"relation": "writes", "source": "Zoe", "target": "Jim-SIGMOD-1"}]
    live.post(f"{GRAPH}/updates", {"add_edges": edge})
    assert ids(live, f"{GRAPH}/search?query=Zoe&metapath=APA") == (2, ["Jim"])
    live.post(f"{GRAPH}/updates", {"remove_edges": edge, "remove_nodes": zoe["add_nodes"]})
    assert live.get(url).json()["nodes"] == []
    assert live.get(f"{GRAPH}/search?query=Zoe&metapath=APA").status_code == 404


def test_graphs_are_listed_as_writable_or_not(live: Running) -> None:
    graphs = {graph["name"]: (graph.get("version"), graph.get("writable")) for graph in live.get("/api/graphs").json()}
    assert graphs == {"live": (0, True), "kept": (0, False), "toy": (None, None)}
    assert "version" not in live.get("/api/graphs/toy/search?query=Mike&metapath=APA").json()
    assert live.get("/api/graphs/kept/search?query=Mike&metapath=APA").json()["version"] == 0


@pytest.mark.parametrize(
    ("graph", "status", "message"),
    [
        ("toy", 409, "the graph 'toy' is no store, and takes no updates"),
        ("kept", 403, "the store 'kept' is served read-only; start the service as writable to update it"),
        ("nothing", 404, "no graph 'nothing' is served"),
    ],
)
@pytest.mark.slow
def test_updates_of_a_read_only_graph_are_errors(live: Running, graph: str, status: int, message: str) -> None:
    response = live.post(f"/api/graphs/{graph}/updates", JOIN)
    assert response.status_code == status
    assert response.json()["error"].startswith(message)


def test_a_bad_batch_changes_nothing_and_its_error_names_every_bad_line(live: Running) -> None:
    bad = [{"relation": "writes", "source": f"nobody {i}", "target": "Jim-SIGMOD-1"} for i in range(21)]
    response = live.post(f"{GRAPH}/updates", {"add_edges": [*JOIN["add_edges"], *bad]})
    assert response.status_code == 422
    message = response.json()["error"]
    for place in range(20):
        assert f"add_edges[{place + 1}]: no author with the id 'nobody {place}'" in message
    assert message.endswith("and 1 more bad lines")
    assert ids(live, SEARCH) == (0, [])
    more = live.post(f"{GRAPH}/updates", {"add_edges": bad, "remove_edges": bad})
    assert more.json()["error"].startswith("42 nodes and edges are given; this service takes at most 30 an update")
    assert live.post(f"{GRAPH}/updates", {}).json()["error"].startswith("nothing to change")
    assert (
        live.post(f"{GRAPH}/updates", {"edges": []}).json()["error"]
        == "edges is not a parameter or field of this request"
    )
    weight = {"add_edges": [JOIN["add_edges"][0] | {"weight": -1}]}
    assert "add_edges[0]: weight -1.0 is not allowed" in live.post(f"{GRAPH}/updates", weight).json()["error"]
    for no_number in (True, "2"):
        refused = live.post(f"{GRAPH}/updates", {"add_edges": [JOIN["add_edges"][0] | {"weight": no_number}]})
        assert refused.status_code == 422
        assert "weight is" in refused.json()["error"]


def test_a_full_disk_is_an_error_without_the_path(
    live: Running, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise WriteError("cannot write to the store /home/secret: full") from OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(LiveStore, "update", fail)
    response = live.post(f"{GRAPH}/updates", JOIN)
    message = "this cannot be written: no space left on device; nothing was changed"
    assert (response.status_code, response.json()) == (507, {"error": message})
    assert "/home/secret" in caplog.text


def test_a_model_that_is_removed_leaves_the_cache(live: Running) -> None:
    live.post(f"{GRAPH}/updates", JOIN)
    for words in ("metapath=APA", "model=saved", "model=saved&as_of=0"):
        assert live.get(f"{GRAPH}/search?query=Mike&{words}").status_code == 200
    registry = live.service.registry
    caches = registry.cache, registry._past_cache
    models = [[key for key in cache._entries if key[1] == "model saved"] for cache in caches]
    assert all(models)
    others = [len(cache) - len(keys) for cache, keys in zip(caches, models, strict=True)]
    registry.drop_model("saved")
    assert [len(cache) for cache in caches] == others


@pytest.mark.parametrize(("url", "message"), [
    (f"{SEARCH}&as_of=7", "version 7 is not kept; the store has versions 0 to 0"),
    ("/api/graphs/toy/search?query=Mike&metapath=APA&as_of=0", "as_of is 0, but the graph 'toy' is not a store"),
])  # fmt: skip
@pytest.mark.slow
def test_a_missing_version_is_an_error(live: Running, url: str, message: str) -> None:
    response = live.get(url)
    assert (response.status_code, response.json()["error"][: len(message)]) == (422, message)


def test_the_client_updates_and_searches_versions(live: Running) -> None:
    with Client(live.url, timeout=PATIENCE) as client:
        paper = {"node_type": "paper", "id": "Mike-KDD-9"}
        edges = [("writes", "Mike", "Mike-KDD-9", 2.0), ("appears_at", "Mike-KDD-9", "KDD")]
        assert client.update("live", add_edges=edges, add_nodes=[paper, ("author", "Zoe")]) == 1
        assert client.update("live", remove_edges=[edges[0][:3]], remove_nodes=[("author", "Zoe")]) == 2
        results = [client.search("live", "Mike", metapath="APV", measure="pathcount", as_of=v).ids for v in range(3)]
        assert ["KDD" in hits for hits in results] == [False, True, False]
        with pytest.raises(npth.NeuPathError, match="is no line of an update; give"):
            client.update("live", add_nodes=["Zoe"])
        with pytest.raises(ServiceError, match=r"add_nodes\[0\]: author 'Mike' is there already"):
            client.update("live", add_nodes=[("author", "Mike")])


@pytest.mark.slow
def test_many_clients_write_while_others_read(live: Running) -> None:
    def write(number: int) -> int:
        with Client(live.url, timeout=PATIENCE) as client:
            edge = ("writes", "Mike", "Jim-SIGMOD-1", float(number))
            return max(client.update("live", add_edges=[edge]) for _ in range(10))

    def read() -> list[int]:
        with Client(live.url, timeout=PATIENCE) as client:
            return [client._session.read_object("GET", SEARCH)["version"] for _ in range(30)]

    with ThreadPoolExecutor(8) as pool:
        writers, readers = [pool.submit(write, 1) for _ in range(4)], [pool.submit(read) for _ in range(4)]
        assert max(writer.result(PATIENCE) for writer in writers) == 40
        assert all(versions == sorted(versions) for versions in (reader.result(PATIENCE) for reader in readers))
    count = live.get(f"{GRAPH}/search?query=Mike&metapath=AP&measure=pathcount&k=100").json()
    assert {hit["id"]: hit["score"] for hit in count["hits"]}["Jim-SIGMOD-1"] == 40.0


@pytest.mark.slow
def test_a_job_uses_the_version_at_its_start(live: Running, tmp_path: Path) -> None:
    live.post(f"{GRAPH}/updates", JOIN)
    with Client(live.url, timeout=PATIENCE) as client:
        client.start("join", "live", metapath="APA", k=1).save(tmp_path / "top.parquet")
    assert (tmp_path / "top.parquet").stat().st_size > 0


@pytest.mark.slow
def test_a_trained_model_follows_the_store(start: Start, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    toy = npth.load("toy")
    labels = [("Mike", "Bob", 1.0), ("Mike", "Mary", 0.8), ("Mike", "Ann", 0.0)]
    model = npth.NeuPath(dim=8, layers=2, epochs=2, device="cpu").fit(toy, labels)
    with LiveStore(write_store(toy, tmp_path / "s")) as store:
        running = start(graphs={"live": store}, models={"learned": model.save(tmp_path / "model")})
        search = f"{GRAPH}/search?query=Mike&model=learned&zeros=true"
        assert running.get(search).json()["version"] == 0
        assert running.post(f"{GRAPH}/updates", JOIN).status_code == 200
        result = running.get(search).json()
        assert result["version"] == 1
        assert len(store.view().bindings) == 1  # followed from here on, not bound anew
        expected = model.bind(store.store.hin()).top_k("Mike", zeros=True)
        assert [hit["score"] for hit in result["hits"]] == pytest.approx([hit.score for hit in expected], abs=1e-5)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::neupath.errors.SourceWarning")
def test_a_stack_goes_on_without_the_members_that_an_update_makes_useless(start: Start, tmp_path: Path) -> None:
    """An embedding knows the nodes that it was trained on, and no other; the list of models says what is left out."""
    pytest.importorskip("torch")
    toy = npth.load("toy")
    labels = [("Mike", "Bob", 1.0), ("Mike", "Mary", 0.8), ("Mike", "Ann", 0.0)]
    network = make_model("rgcn", dim=4, epochs=1, device="cpu").fit(toy, labels)
    parts = [{"weight": 0.5, "mean": 0.0, "spread": 1.0}] * 2
    model = Stack.of([npth.PathSim("APVPA").fit(toy), network], parts).save(tmp_path / "model")
    with LiveStore(write_store(toy, tmp_path / "s")) as store:
        running = start(graphs={"live": store}, models={"learned": model})
        search = f"{GRAPH}/search?query=Mike&model=learned"
        assert running.get(search).json()["version"] == 0
        assert "left_out" not in running.get("/api/models").json()[0]
        assert running.post(f"{GRAPH}/updates", {"add_nodes": [{"node_type": "venue", "id": "WWW"}]}).status_code == 200
        result = running.get(search).json()
        exact = running.get(f"{GRAPH}/search?query=Mike&metapath=APVPA").json()
        assert result["version"] == 1
        assert [hit["id"] for hit in result["hits"]] == [hit["id"] for hit in exact["hits"]]
        assert running.get("/api/models").json()[0]["left_out"] == {"live": ["rgcn"]}

"""The client: every call, the service's own sentences as errors, and jobs from start to result."""

import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import neupath as npth
from neupath.client import Client, Event, RemoteJob, ServiceError
from neupath.errors import QueryError
from neupath.evidence.explanation import explain_set
from neupath.evidence.significance import hits_with
from tests.patience import PATIENCE, wait_until
from tests.service.conftest import Running, Start

PAIRS = [("Mike", "Bob", 1.0), ("Mike", "Mary", 0.8), ("Mary", "Ann", 2 / 7)]


@pytest.fixture
def client(running: Running) -> Iterator[Client]:
    with Client(running.url, timeout=PATIENCE) as connected:
        yield connected


def test_search_returns_what_the_library_returns(client: Client) -> None:
    scorer = npth.PathSim("APVPA").fit(npth.load("toy"))
    hits = client.search("toy", "Mike", metapath="APVPA", k=2)
    assert hits == scorer.top_k("Mike", 2)
    assert client.search("toy", ["Mike", "Jim"], metapath="APVPA", k=2) == scorer.top_k(["Mike", "Jim"], 2)
    assert client.search("toy", "Mike", metapath="APVPA", where="id != Bob").ids == ("Mary", "Jim")
    assert client.search("toy", "Mike", metapath="APVPA", among="Mary").ids == ("Mary",)
    table = client.search_table("toy", ["Mike", "Mary"], metapath="APVPA", k=1)
    assert table.to_pydict()["id"] == ["Bob", "Mike"]


@pytest.mark.slow
def test_meta_paths_with_conditions_and_weights(client: Client) -> None:
    toy = npth.load("toy")
    text = 'author-paper[id ~ "sigmod"]-venue{SIGMOD}-paper[id ~ "sigmod"]-author'
    scorer = npth.PathSim(text).fit(toy)
    for _ in range(2):  # by a thread, then at once
        assert client.search("toy", "Mike", metapath=text, k=2) == scorer.top_k("Mike", 2)
    assert client.explain("toy", "Mike", "Mary", metapath=text) == npth.explain(toy, text, "Mike", "Mary").to_dict()
    path = toy.metapath("APVPA", weights={"writes": "weight * 3", "appears_at": "sqrt(weight)"})
    options = {"metapath": "APVPA", "weight": ["writes=weight * 3", "appears_at=sqrt(weight)"]}
    assert client.search("toy", "Mike", k=2, **options) == npth.PathSim(path).fit(toy).top_k("Mike", 2)
    assert client.explain("toy", "Mike", "Mary", **options)["metapath"] == str(path)
    with pytest.raises(ServiceError, match="at character 14: paper has no attribute 'year'"):
        client.search("toy", "Mike", metapath="author-paper[year > 3]-author")
    with pytest.raises(ServiceError, match="time is 'year', but no node or edge on"):
        client.search("toy", "Mike", metapath="APA", time="year", since="2000")
    with pytest.raises(ServiceError, match="give either model or time"):
        client.search("toy", "Mike", model="saved", time="year", since="2000")
    typed = client.metapaths("toy", "author-paper[id ~ sigmod]")["prefix"]
    assert typed["metapath"] == 'author-paper[id ~ "sigmod"]'
    assert [step["metapath"] for step in typed["next"]][-1] == 'author-paper[id ~ "sigmod"]-venue'
    assert "at character 14" in client.metapaths("toy", "author-paper[year > 3]")["prefix"]["error"]
    job = client.start("join", "toy", metapath="APVPA", k=1, weight=["writes=weight + 1"])
    assert job.wait()["state"] == "done"


def test_sets_exclusions_and_diversity(client: Client) -> None:
    toy = npth.load("toy")
    scorer = npth.PathSim("APVPA").fit(toy)
    members = {"Mike": 1.0, "Jim": -0.01}
    assert client.search("toy", members, metapath="APVPA").to_dict() == scorer.top_k(members).to_dict()
    mean = client.search("toy", ["Mike", "Mary"], together=True, metapath="APVPA", k=2)
    assert mean == scorer.top_k(["Mike", "Mary"], 2, together=True)
    assert client.search("toy", "Mike", metapath="APVPA", unless="APVPA").ids == ()
    diverse = client.search("toy", "Mike", metapath="APVPA", diverse=0.3)
    assert diverse.to_dict() == scorer.top_k("Mike", diverse=0.3).to_dict()
    assert client.search_table("toy", members, metapath="APVPA", k=1).to_pydict()["query"] == ["Mike - 0.01·Jim"]
    why = client.explain("toy", members, "Mary", metapath="APVPA", by="venue")
    assert why == explain_set(toy, "APVPA", members, "Mary", by="venue").to_dict()
    combination = [{"measure": "pathsim", "metapath": "APVPA", "weight": 2.0}]
    with pytest.raises(ServiceError, match="give either query and combination, for one node, or queries and metapath"):
        client.explain("toy", members, "Mary", metapath="APVPA", combination=combination)
    with pytest.raises(ServiceError, match="all weights of query are below 0"):
        client.search("toy", {"Mike": -1}, metapath="APVPA")
    with pytest.raises(ServiceError, match="unless is author-paper, which leads from author to paper"):
        client.search("toy", "Mike", metapath="APVPA", unless="AP")


@pytest.mark.slow
def test_a_join_with_filters_and_a_combination(client: Client, tmp_path: Path) -> None:
    toy = npth.load("toy")
    parts = [
        {"measure": "pathsim", "metapath": "APVPA", "weight": 2.0},
        {"measure": "joinsim", "metapath": "APVPA", "weight": 1.0},
    ]
    filters = {"where_query": ["id = Mike"], "among": ["Bob", "Mary"], "unless": ["APA"]}
    job = client.start("join", "toy", combination=parts, k=5, **filters)
    rows = pq.read_table(job.save(tmp_path / "top.parquet")).to_pylist()
    expected = npth.Combination(parts).fit(toy).top_k("Mike", 5, among=["Bob", "Mary"], unless="APA")
    assert [(row["target"], row["score"]) for row in rows] == list(zip(expected.ids, expected.scores, strict=True))


def test_all_other_endpoints(client: Client) -> None:
    assert client.health()["status"] == "ok"
    assert [graph["name"] for graph in client.graphs()] == ["toy", "hostile"]
    assert client.describe("toy")["node_types"][0]["node_type"] == "author"
    assert client.schema("toy")["steps"][0]["link"] == "-writes->"
    assert [node["id"] for node in client.nodes("toy", "author", "m")["nodes"]] == ["Mike", "Mary", "Jim"]
    assert [node["node_type"] for node in client.nodes("toy", text="sigmod", limit=1)["nodes"]] == ["venue"]
    assert client.metapaths("toy", "APA")["prefix"]["valid"]
    assert client.metapaths("toy", source_type="venue", limit=1)["suggestions"][0]["metapath"] == "venue-paper-venue"
    assert client.measures()[0]["name"] == "pathsim"
    assert client.models()[0]["name"] == "saved"
    assert client.explain("toy", "Mike", "Mary", metapath="APVPA")["formula"] == "2 × 4 / (5 + 5)"
    toy = npth.load("toy")
    grouped = client.explain("toy", "Mike", "Jim", metapath="APVPA", by="paper", limit=2, paths=0, k=2)
    assert grouped == npth.explain(toy, "APVPA", "Mike", "Jim", by="paper", limit=2, paths=0, k=2).to_dict()
    related = client.relate("toy", "Mike", "SIGMOD", max_steps=3)
    assert related == npth.relate(toy, "Mike", "SIGMOD", max_steps=3).to_dict()
    parts = [{"measure": "pathsim", "metapath": "APVPA", "weight": 1.0}]
    assert client.explain("toy", "Mike", "Mary", combination=parts)["score"] == 0.8
    assert client.explain("toy", "Mike", "Mary", combination=parts, by=1)["parts"][0]["by"]["step"] == 1
    assert client.infer("toy", PAIRS, max_length=4)["metapaths"][0]["weight"] == 1.0


def test_errors_have_the_message_of_the_service(client: Client) -> None:
    with pytest.raises(ServiceError, match=r"no author with the id 'nobody' among 5") as refused:
        client.search("toy", "nobody", metapath="APVPA")
    assert refused.value.status == 404
    with pytest.raises(ServiceError, match="nowhere is not a parameter or field of this request"):
        client.search("toy", "Mike", metapath="APVPA", nowhere=1)  # type: ignore[call-overload]
    with socket.socket() as silent:  # bound, so that nobody else takes its port, but nobody listens
        silent.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(ServiceError, match=rf"no service answers at {address} .*is neupath serve running there\?"):
            Client(f"http://{address}").graphs()


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:x", "http://127.0.0.1:99999", "http://[", "ftp://x", "http://", "localhost:8000"]
)
def test_invalid_addresses_are_errors(url: str) -> None:
    with pytest.raises(QueryError, match="is no address of a service; give one such as"):
        Client(url)


@pytest.mark.parametrize("token", ["two\nlines", "é", ""])
def test_invalid_tokens_are_errors(token: str) -> None:
    with pytest.raises(QueryError, match="the token has characters that no header can hold"):
        Client(token=token)


def test_values_that_json_cannot_hold_are_errors(client: Client) -> None:
    for pair in (("Mike", "Bob", 1.0, 2.0), "AB"):
        with pytest.raises(QueryError, match="is no labelled pair"):
            client.infer("toy", [pair])
    with pytest.raises(QueryError, match="cannot be sent; give texts, numbers, or lists of them"):
        client.search("toy", "Mike", metapath=object())  # type: ignore[call-overload]


def test_numpy_numbers_are_sent_as_numbers(client: Client) -> None:
    hits = client.search("hostile", np.int64(1), metapath="tag-<b>user-tag", k=np.int64(2))  # type: ignore[call-overload]
    assert hits.query == 1
    many = client.search("hostile", np.array([1]), metapath="tag-<b>user-tag")  # type: ignore[call-overload]
    assert [hits.query for hits in many] == [1]


def test_hits_and_matches_are_sent_as_their_ids(client: Client, toy: npth.HIN) -> None:
    first, match = client.search("toy", "Mike", metapath="APVPA", k=1)[0], toy.find("Mary", 1)[0]
    alone = client.search("toy", "Bob", metapath="APVPA")
    assert client.search("toy", first, metapath="APVPA") == alone
    assert client.search("toy", [first, match], metapath="APVPA")[0] == alone
    assert (
        client.search("toy", {first: 1}, metapath="APVPA").ids == client.search("toy", {"Bob": 1}, metapath="APVPA").ids
    )
    assert client.explain("toy", first, match, metapath="APVPA")["score"] == 0.8
    assert client.relate("toy", first, match)["target"]["id"] == "Mary"


def test_an_address_that_is_no_service_is_an_error() -> None:
    def answer(listening: socket.socket) -> None:
        connection, _ = listening.accept()
        with connection:
            connection.recv(65536)
            connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\n<html>")

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=answer, args=(listening,))
        thread.start()
        with (
            Client(f"http://127.0.0.1:{listening.getsockname()[1]}") as other,
            pytest.raises(ServiceError, match="is no neupath service; check the address"),
        ):
            other.graphs()
        thread.join(PATIENCE)


@pytest.mark.slow
def test_a_broken_event_stream_is_reopened_after_a_pause(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    job = client.start("join", "toy", metapath="APVPA", k=1)
    pauses: list[float] = []
    listen = RemoteJob._listen
    broken = iter([1, None, 0])

    def listen_badly(self: RemoteJob, after: int) -> Iterator[Event]:
        left = next(broken, -1)
        if left is None:
            raise ServiceError(503, "the service is busy")
        for place, event in enumerate(listen(self, after)):
            if place == left:
                return
            yield event

    monkeypatch.setattr(RemoteJob, "_listen", listen_badly)
    monkeypatch.setattr("neupath.client.time.sleep", pauses.append)
    events = list(job.events())
    assert [event.number for event in events] == sorted({event.number for event in events})
    assert events[-1].name == "end"
    assert len(pauses) == 3


def test_a_closed_connection_is_reopened(start: Start) -> None:
    running = start(token="correct-horse")
    with Client(running.url, token="correct-horse", timeout=PATIENCE) as client:
        assert client.graphs()
        running.server.server_state.connections.copy().pop().transport.abort()  # type: ignore[union-attr]
        assert client.graphs()
        running.server.server_state.connections.copy().pop().transport.abort()  # type: ignore[union-attr]
        wait_until(lambda: not running.server.server_state.connections, "a connection is still open")
        assert len(client.search("toy", ["Mike", "Mary"], metapath="APVPA")) == 2  # which is not sent twice
    with (
        Client(running.url, token="wrong", timeout=PATIENCE) as client,
        pytest.raises(ServiceError, match="the token is wrong"),
    ):
        client.graphs()


@pytest.mark.slow
def test_what_if_and_significance_answer_as_the_library(client: Client) -> None:
    toy = npth.load("toy")
    answer = npth.what_if(toy, "APVPA", "Mike", "Mary", k=2, remove="paper", limit=1)
    asked = client.what_if("toy", "Mike", "Mary", metapath="APVPA", k=2, remove="paper", limit=1)
    assert asked == answer.to_dict()
    scorer = npth.PathSim("APVPA").fit(toy)
    hits = scorer.top_k("Mike", 2)
    [tested] = npth.significance(scorer, [hits], permutations=9)
    steady = npth.stability(scorer, hits, by="paper")
    [result] = client.significance("toy", ["Mike"], metapath="APVPA", k=2, permutations=9, stability_by="paper")
    assert result == json.loads(json.dumps(hits_with(hits, significance=tested, stability=steady)))


@pytest.mark.slow
def test_jobs_from_start_to_result(client: Client, tmp_path: Path) -> None:
    job = client.start("join", "toy", metapath="APVPA", k=1)
    names = [event.name for event in job.events()]
    assert names[-1] == "end"
    assert "progress" in names
    assert client.job(job.id).status()["state"] == "done"
    assert pq.read_table(job.save(tmp_path / "top.parquet")).num_rows == 5
    meaning = client.start("infer", "toy", pairs=PAIRS, max_length=4)
    assert meaning.result()["measure"] == "pathsim"
    assert client.search("toy", "Mike", model=meaning.id, k=1).ids == ("Bob",)
    assert meaning.cancel()["state"] == "done"
    assert meaning.wait()["state"] == "done"
    assert meaning.remove()["state"] == "done"
    with pytest.raises(ServiceError, match=f"no job '{meaning.id}' is known"):
        meaning.wait()
    assert meaning.id not in [job["id"] for job in client.jobs()]

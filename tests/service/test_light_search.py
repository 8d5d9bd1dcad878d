"""Light searches give the answers that others give, in order, for every way to send a request."""

from dataclasses import replace
from pathlib import Path

import pytest

import neupath as npth
from neupath.live import LiveStore
from neupath.service.light_search import search_light
from neupath.service.schemas import SearchOne
from neupath.store import write_store
from tests.service.conftest import Running, Start, read_all


def test_two_requests_at_once_are_answered_in_order(running: Running) -> None:
    with running.connect() as connection:
        one = b"GET /api/graphs/toy/search?query=Mike&metapath=APVPA HTTP/1.1\r\nhost: localhost\r\n\r\n"
        two = b"GET /api/health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"
        connection.sendall(one + two)
        answer = read_all(connection)
    assert answer.count(b"HTTP/1.1 200") == 2
    assert answer.index(b'"query": "Mike"') < answer.index(b'"status": "ok"')


@pytest.mark.parametrize(
    "more",
    ["", "accept: */*", "connection: close", "connection: keep-alive", "content-length: 0", "expect: 100-continue"],
)
def test_headers_do_not_change_the_answer(running: Running, more: str) -> None:
    url = "/api/graphs/toy/search?query=Mike&metapath=APVPA&k=2"
    expected = running.get(url)
    with running.connect() as connection:
        headers = f"host: localhost\r\n{more}\r\n" if more else "host: localhost\r\n"
        connection.sendall(f"GET {url} HTTP/1.1\r\n{headers}\r\n".encode())
        if more != "connection: close":  # whoever sends more after that may be reset before the answer is read
            connection.sendall(b"GET /api/health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
        answer = read_all(connection)
    first = answer.split(b"HTTP/1.1 200 OK\r\n")[1]
    assert first.partition(b"\r\n\r\n")[2] == expected.content
    for name in ("date", "content-type", "content-security-policy", "x-content-type-options"):
        assert f"{name}: {expected.headers[name]}".partition("GMT")[0][:30].encode() in first


def test_many_requests_at_once_are_answered_in_order(running: Running) -> None:
    names = ["Mike", "Mary", "Bob", "Jim", "Ann"] * 20
    running.get("/api/graphs/toy/search?query=Mike&metapath=APVPA")
    sent = [f"GET /api/graphs/toy/search?query={name}&metapath=APVPA HTTP/1.1\r\nhost: localhost\r\n" for name in names]
    with running.connect() as connection:
        connection.sendall("\r\n".join(sent).encode() + b"connection: close\r\n\r\n")
        answer = read_all(connection)
    assert [part[:6].partition(b'"')[0].decode() for part in answer.split(b'{"query": "')[1:]] == names


def test_light_searches_are_answered_before_the_routes(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    url = "/api/graphs/toy/search?query=Mike&metapath=APVPA"
    expected = running.get(url).text
    monkeypatch.setattr("neupath.service.handlers.search", lambda *_: pytest.fail("the route is asked"))
    assert running.get(url).text == expected
    assert 'route="/api/graphs/{graph}/search",status="200"' in running.get("/api/metrics").text


def test_only_light_searches_of_cached_measures_are_answered_without_a_thread(start: Start) -> None:
    running = start()
    registry = running.service.registry
    request = SearchOne(query="Mike", metapath="APVPA", k=2)
    assert search_light(registry, "toy", request) is None
    expected = running.get("/api/graphs/toy/search?query=Mike&metapath=APVPA&k=2").text
    assert search_light(registry, "toy", request) == expected
    for more in ({"where": ["id != Bob"]}, {"among": ["Bob"]}, {"zeros": True}, {"query": "nobody"}, {"k": 1001}):
        assert search_light(registry, "toy", replace(request, **more)) is None


def test_light_searches_follow_updates(start: Start, tmp_path: Path) -> None:
    authors = ["Mike", "Jim", "Mary", "Bob", "Ann"]
    with LiveStore(write_store(npth.load("toy"), tmp_path / "store")) as store:
        running = start(graphs={"live": store})
        for number, author in enumerate(authors):
            request = {"queries": authors, "metapath": "APVPA", "k": 3}
            by_thread = running.post("/api/graphs/live/search", request).json()
            urls = [f"/api/graphs/live/search?query={author}&metapath=APVPA&k=3" for author in authors]
            assert [running.get(url).json() for url in urls] == by_thread
            assert {hits["version"] for hits in by_thread} == {number}
            edge = {"relation": "writes", "source": author, "target": "Ann-KDD-2", "weight": number + 1}
            running.post("/api/graphs/live/updates", {"add_edges": [edge]})

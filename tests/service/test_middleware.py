"""What is refused before anything else looks at it: hosts, origins, tokens, sizes, and what takes too long."""

import contextlib
import threading
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from neupath.service.middleware import is_loopback
from tests.service.conftest import Running, Start

TOKEN = "correct-horse-battery"


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8000", "127.0.0.1.evil.example", "", "[::2]"])
def test_other_hosts_are_refused_on_loopback(running: Running, host: str) -> None:
    found = running.get("/api/graphs", headers={"host": host})
    assert found.status_code == 421
    assert found.json()["error"].startswith(f"the host {host!r} is not this service")


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1", "127.0.0.1:8000", "[::1]:8000"])
def test_the_names_of_loopback_are_not(running: Running, host: str) -> None:
    assert running.get("/api/graphs", headers={"host": host}).status_code == 200


def test_pages_of_other_sites_are_refused(running: Running) -> None:
    asked = {"kind": "join", "graph": "toy", "metapath": "APA"}
    for origin in ("https://evil.example", "null", "http://localhost:1"):
        found = running.post("/api/jobs", asked, headers={"origin": origin})
        assert (found.status_code, found.json()) == (403, {"error": "pages of other sites may not call this service"})
    assert running.get("/api/graphs", headers={"origin": running.url}).status_code == 200
    assert "access-control-allow-origin" not in running.get("/api/graphs").headers


def test_every_answer_has_its_rules(running: Running) -> None:
    words = "query=Mike&metapath=APVPA"
    for url in ("/", "/api/graphs", "/api/nothing", f"/api/graphs/toy/search?{words}", "/api/graphs/toy/search"):
        headers = running.get(url).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "server" not in headers


def test_a_token_is_needed(start: Start) -> None:
    running = start(token=TOKEN)
    said = "this service needs its token, as the header 'Authorization: Bearer TOKEN'"
    for url in ("/api/graphs", "/api/graphs/toy/search?query=Mike&metapath=APVPA", "/api/metrics", "/api/openapi.json"):
        found = running.get(url)
        assert (found.status_code, found.json()) == (401, {"error": said})
        assert found.headers["www-authenticate"] == "Bearer"
        for wrong in ("Bearer wrong", TOKEN, f"Bearer {TOKEN}x", "Bearer \xff"):
            found = running.get(url, headers={"authorization": wrong.encode("latin-1")})  # type: ignore[dict-item]
            assert (found.status_code, found.json()) == (401, {"error": "the token is wrong"})
        for scheme in ("Bearer", "bearer", "BEARER"):
            assert running.get(url, headers={"authorization": f"{scheme} {TOKEN}"}).status_code == 200
    for url in ("/", "/api/health"):
        assert running.get(url).status_code == 200


def test_health_metrics_and_the_page_are_answered_however_busy_it_is(start: Start) -> None:
    running = start(active=2)
    running.service.metrics.active = 2
    for url in ("/api/health", "/api/metrics", "/"):
        assert running.get(url).status_code == 200
    found = running.get("/api/graphs")
    assert (found.status_code, found.headers["retry-after"]) == (503, "1")
    running.service.metrics.active = 0


@pytest.mark.parametrize("name", ["host", "authorization", "origin"])
def test_headers_given_twice_are_refused(running: Running, name: str) -> None:
    value = "localhost" if name == "host" else "x"
    with running.connect() as connection:
        twice = f"{name}: {value}\r\n{name}: {value}\r\n"
        host = "" if name == "host" else "host: localhost\r\n"
        url = "/api/graphs/toy/search?query=Mike&metapath=APVPA"
        connection.sendall(f"GET {url} HTTP/1.1\r\n{host}{twice}\r\n".encode())
        answer = connection.recv(65536)
    assert answer.startswith(b"HTTP/1.1 400")
    assert f"the header '{name}' is given twice".encode() in answer


def test_work_that_takes_too_long_is_given_up_and_does_not_pile_up(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = start(seconds=0.2, heavy=2)
    over = threading.Event()
    monkeypatch.setattr("neupath.service.handlers.read_prefix", lambda *_: over.wait(30))

    def ask(_: object = None) -> httpx.Response:
        return httpx.get(f"{running.url}/api/graphs/toy/metapaths?prefix=APA", timeout=30)

    found = ask()
    said = "this takes longer than 0.2 seconds; ask for less, or start a job"
    assert (found.status_code, found.json()) == (504, {"error": said})
    with ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(ask, range(12)))
    assert {answer.status_code for answer in answers} == {503, 504}
    assert {answer.headers.get("retry-after") for answer in answers} == {"2", None}
    assert running.service.workers.busy == 4  # the threads, each with work that nobody waits for
    assert running.get("/api/graphs").status_code == 200
    over.set()
    while running.service.workers.busy:
        pass
    assert ask().status_code == 200


def test_loopback_is_known() -> None:
    assert all(map(is_loopback, ("127.0.0.1", "127.1.2.3", "localhost", "::1")))
    assert not any(map(is_loopback, ("127.example.org", "0.0.0.0", "::", "192.168.0.1", "example.org")))


def test_an_error_of_our_own_is_a_sentence(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    running = start()

    def fail(*_: object) -> None:
        raise ZeroDivisionError("secret")

    monkeypatch.setattr("neupath.service.handlers.describe_measures", fail)
    found = running.get("/api/measures")
    assert found.status_code == 500
    assert found.json() == {"error": "something went wrong in the service; its log has the details"}


def test_the_rest_of_a_refused_body_is_not_awaited_for_ever(start: Start) -> None:
    running = start(body=1000, head_seconds=0.3)
    with running.connect() as connection:
        connection.sendall(b"POST /api/jobs HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2000\r\n\r\n")
        assert connection.recv(65536).startswith(b"HTTP/1.1 413")
        with contextlib.suppress(ConnectionResetError):
            assert connection.recv(1) == b""

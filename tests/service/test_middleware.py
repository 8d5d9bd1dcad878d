"""What is refused before anything else looks at it: hosts, origins, tokens, sizes, and what takes too long."""

import contextlib
import threading
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from neupath.service.middleware import is_loopback
from tests.patience import PATIENCE, wait_until
from tests.service.conftest import Running, Start

TOKEN = "correct-horse-battery"


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8000", "127.0.0.1.evil.example", "", "[::2]"])
def test_other_hosts_are_refused_on_loopback(running: Running, host: str) -> None:
    response = running.get("/api/graphs", headers={"host": host})
    assert response.status_code == 421
    assert response.json()["error"].startswith(f"the host {host!r} is not this service")


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1", "127.0.0.1:8000", "[::1]:8000"])
def test_names_of_loopback_are_accepted(running: Running, host: str) -> None:
    assert running.get("/api/graphs", headers={"host": host}).status_code == 200


def test_pages_of_other_sites_are_refused(running: Running) -> None:
    request = {"kind": "join", "graph": "toy", "metapath": "APA"}
    for origin in ("https://evil.example", "null", "http://localhost:1"):
        response = running.post("/api/jobs", request, headers={"origin": origin})
        assert response.status_code == 403
        assert response.json() == {"error": "pages of other sites may not call this service"}
    assert running.get("/api/graphs", headers={"origin": running.url}).status_code == 200
    assert "access-control-allow-origin" not in running.get("/api/graphs").headers


def test_every_response_has_security_headers(running: Running) -> None:
    words = "query=Mike&metapath=APVPA"
    for url in ("/", "/api/graphs", "/api/nothing", f"/api/graphs/toy/search?{words}", "/api/graphs/toy/search"):
        headers = running.get(url).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "server" not in headers


def test_a_token_is_needed(start: Start) -> None:
    running = start(token=TOKEN)
    message = "this service needs its token, as the header 'Authorization: Bearer TOKEN'"
    for url in ("/api/graphs", "/api/graphs/toy/search?query=Mike&metapath=APVPA", "/api/metrics", "/api/openapi.json"):
        response = running.get(url)
        assert (response.status_code, response.json()) == (401, {"error": message})
        assert response.headers["www-authenticate"] == "Bearer"
        for wrong in ("Bearer wrong", TOKEN, f"Bearer {TOKEN}x", "Bearer \xff"):
            response = running.get(url, headers={"authorization": wrong.encode("latin-1")})  # type: ignore[dict-item]
            assert (response.status_code, response.json()) == (401, {"error": "the token is wrong"})
        for scheme in ("Bearer", "bearer", "BEARER"):
            assert running.get(url, headers={"authorization": f"{scheme} {TOKEN}"}).status_code == 200
    for url in ("/", "/api/health"):
        assert running.get(url).status_code == 200


def test_a_busy_service_answers_health_metrics_and_the_page(start: Start) -> None:
    running = start(active=2)
    running.service.metrics.active = 2
    for url in ("/api/health", "/api/metrics", "/"):
        assert running.get(url).status_code == 200
    response = running.get("/api/graphs")
    assert (response.status_code, response.headers["retry-after"]) == (503, "1")
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


@pytest.mark.slow
def test_slow_requests_time_out_and_do_not_pile_up(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    running = start(seconds=0.2, heavy=2)
    over = threading.Event()
    monkeypatch.setattr("neupath.service.handlers.complete", lambda *_, **__: over.wait(PATIENCE))

    def ask(_: object = None) -> httpx.Response:
        return httpx.get(f"{running.url}/api/graphs/toy/metapaths?prefix=APA", timeout=PATIENCE)

    response = ask()
    message = "this takes longer than 0.2 seconds and was stopped; ask for less, or start a job"
    assert (response.status_code, response.json()) == (504, {"error": message})
    with ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(ask, range(12)))
    assert {answer.status_code for answer in answers} == {503, 504}
    assert {answer.headers.get("retry-after") for answer in answers} == {"2", None}
    busy = "the threads, each with work that nobody waits for, are not all that is busy"
    wait_until(lambda: running.service.lookups.busy == 4, busy)
    wait_until(lambda: running.get("/api/graphs").status_code == 200, "other requests are not answered")
    over.set()
    wait_until(lambda: not running.service.workers.busy, "threads are still busy")
    wait_until(lambda: ask().status_code == 200, "a thread is not free again")


def test_is_loopback() -> None:
    assert all(map(is_loopback, ("127.0.0.1", "127.1.2.3", "localhost", "::1")))
    assert not any(map(is_loopback, ("127.example.org", "0.0.0.0", "::", "192.168.0.1", "example.org")))


def test_internal_errors_are_answered_as_json(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    running = start()

    def fail(*_: object) -> None:
        raise ZeroDivisionError("secret")

    monkeypatch.setattr("neupath.service.app.describe_measures", fail)
    response = running.get("/api/measures")
    assert response.status_code == 500
    assert response.json() == {"error": "something went wrong in the service; its log has the details"}


def test_the_rest_of_a_refused_body_has_a_time_limit(start: Start) -> None:
    running = start(body=1000, idle_seconds=1)
    with running.connect() as connection:
        connection.sendall(b"POST /api/jobs HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2000\r\n\r\n")
        assert connection.recv(65536).startswith(b"HTTP/1.1 413")
        with contextlib.suppress(ConnectionResetError):
            assert connection.recv(1) == b""

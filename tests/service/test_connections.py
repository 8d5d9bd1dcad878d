"""Connections and requests beyond the limits: pipelines, bodies, headers, times, open files."""

import contextlib
import json
import socket
import threading

import numpy as np
import pytest

from neupath.service.limits import Limits
from neupath.service.server import Connection, Connections, limited_connections, raise_file_limit
from tests.patience import PATIENCE, wait_until
from tests.service.conftest import Running, Start, read_all

HEALTH = b"GET /api/health HTTP/1.1\r\nhost: localhost\r\n\r\n"
LAST = b"GET /api/health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"
SEARCH = b"GET /api/graphs/toy/search?query=Mike&metapath=APVPA HTTP/1.1\r\nhost: localhost\r\n\r\n"
SLOW_BODY = b"POST /api/jobs HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9\r\n\r\n{"


def connections_of(running: Running) -> list[Connection]:
    return list(running.server.server_state.connections)  # type: ignore[arg-type]


def shared_by(running: Running) -> Connections:
    kind = running.server.config.http
    assert isinstance(kind, type)
    assert issubclass(kind, Connection)
    return kind.shared


# ---- Pipelines -----------------------------------------------------------------------------------
@pytest.mark.slow
def test_pipelined_requests_wait_as_bytes(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    running, began, over = start(), threading.Event(), threading.Event()

    def wait(*_: object) -> dict[str, object]:
        began.set()
        over.wait(PATIENCE)
        return {}

    monkeypatch.setattr("neupath.service.handlers.complete_metapath", wait)
    first = b"GET /api/graphs/toy/metapaths?prefix=APA HTTP/1.1\r\nhost: localhost\r\n\r\n"
    with running.connect() as connection:
        connection.sendall(first + HEALTH * 2000 + LAST)
        assert began.wait(PATIENCE)
        (served,) = connections_of(running)
        wait_until(lambda: served.shared.unparsed, "the pipelined requests are read")
        assert (len(running.server.server_state.tasks), len(served.pipeline)) == (1, 0)
        over.set()
        assert read_all(connection).count(b"HTTP/1.1 200") == 2002
    wait_until(lambda: not connections_of(running), "the connection is closed")
    assert served.shared.unparsed == 0


def test_requests_are_the_same_however_they_are_cut(running: Running) -> None:
    body = b'{"queries": ["Mike"],\r\n\r\n"metapath": "APVPA"}'
    head = b"POST /api/graphs/toy/search HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    whole = head + b"content-length: %d\r\n\r\n" % len(body) + body
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (body[:7], body[7:24], body[24:]))
    chunked = head + b"transfer-encoding: chunked\r\n\r\n" + chunks + b"0\r\n\r\n"
    upgrade = b"GET /api/health HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: other\r\n\r\n"
    sent = (SEARCH + whole + HEALTH + chunked + upgrade) * 3 + LAST
    rng = np.random.default_rng(0)
    for size in (len(sent), 400, 40, 3):
        with running.connect() as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            start = 0
            while start < len(sent):
                end = start + int(rng.integers(1, size + 1))
                connection.sendall(sent[start:end])
                start = end
            answers = read_all(connection).split(b"HTTP/1.1 200 OK\r\n")[1:]
        contents = [json.loads(answer.partition(b"\r\n\r\n")[2]) for answer in answers]
        kinds = ["".join(sorted(content)) if isinstance(content, dict) else "list" for content in contents]
        search, health = "exacthitsmeasuremetapathquery", "statusversion"
        assert kinds == [search, "list", health, "list", health] * 3 + [health]


def test_clients_that_are_not_let_in_are_refused_once(start: Start) -> None:
    running = start(token="correct-horse")
    slow = b"POST /api/jobs HTTP/1.1\r\nhost: localhost\r\ncontent-length: 90000\r\n\r\n"
    for request, status in ((b"GET / HTTP/1.1\r\n\r\n", b"421"), (SEARCH, b"401"), (slow, b"401")):
        with running.connect() as connection:
            connection.sendall(request * 500)
            answer = read_all(connection)
        assert answer.startswith(b"HTTP/1.1 " + status)
        assert answer.count(b"HTTP/1.1") == 1
        assert b"connection: close\r\n" in answer
    metrics = running.get("/api/metrics", headers={"authorization": "Bearer correct-horse"}).text
    assert [line[-5:] for line in metrics.splitlines() if 'route="other",status="4' in line] == ['1"} 1'] * 3


@pytest.mark.slow
def test_clients_that_never_read_are_closed(start: Start) -> None:
    running = start(seconds=0.5)
    page = b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n"
    with running.connect(receive_buffer=4096) as connection:
        with pytest.raises(OSError, match=r"reset|pipe"):
            while True:
                connection.sendall(page * 100)
                assert shared_by(running).unparsed < 1 << 20
        wait_until(lambda: not connections_of(running), "the connection is closed")
    assert running.get("/api/health").status_code == 200


def test_unparsed_requests_have_a_size_limit(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    running, over = start(bodies=1000), threading.Event()
    monkeypatch.setattr("neupath.service.handlers.complete_metapath", lambda *_: over.wait(PATIENCE))
    first = b"GET /api/graphs/toy/metapaths?prefix=APA HTTP/1.1\r\nhost: localhost\r\n\r\n"
    with running.connect() as connection, contextlib.suppress(ConnectionResetError):
        connection.sendall(first + HEALTH * 100)
        assert read_all(connection) == b""
    over.set()


# ---- Headers and connections ---------------------------------------------------------------------


@pytest.mark.parametrize("sent", [b"", b"GET /api/graphs HTTP/1.1\r\nhost: localhost\r\nx-a"])
@pytest.mark.parametrize("before", [b"", HEALTH])
def test_headers_have_a_time_limit(start: Start, sent: bytes, before: bytes) -> None:
    running = start(idle_seconds=1)
    with running.connect() as connection:
        connection.sendall(before + sent)
        assert read_all(connection).count(b"HTTP/1.1") == before.count(b"HTTP/1.1")


def test_headers_have_a_size_limit(start: Start) -> None:
    running = start(head=1000)
    with running.connect() as connection:
        connection.sendall(b"GET /api/graphs?" + b"x" * 2000)
        answer = read_all(connection)
    assert answer.startswith(b"HTTP/1.1 431")
    assert b"longer than 1,000 bytes" in answer


def test_headers_in_one_packet_have_a_size_limit(start: Start) -> None:
    running = start(head=1000)
    padding = b"x-padding: " + b"x" * 2000 + b"\r\n"
    for head in (
        b"GET /api/health HTTP/1.1\r\nhost: localhost\r\n",
        b"POST /api/jobs HTTP/1.1\r\ncontent-length: 3\r\n",
    ):
        with running.connect() as connection:
            connection.sendall(head + padding + b"\r\n" + b"abc" * head.startswith(b"POST"))
            answer = read_all(connection)
        assert answer.startswith(b"HTTP/1.1 431")
        assert answer.count(b"HTTP/1.1") == 1
    with running.connect() as connection:  # a long body is no long head
        body = b" " * 3000
        connection.sendall(b"POST /api/jobs HTTP/1.1\r\nhost: localhost\r\ncontent-length: 3000\r\n\r\n" + body)
        assert connection.recv(65536).startswith(b"HTTP/1.1 422")


def test_the_longest_idle_connection_is_closed_first(start: Start) -> None:
    running = start()
    shared_by(running).most = 4
    held = [running.connect() for _ in range(4)]
    with running.connect() as connection:
        connection.sendall(b"GET /api/health HTTP/1.1\r\nhost: localhost\r\n\r\n")
        assert connection.recv(65536).startswith(b"HTTP/1.1 200")
    with contextlib.suppress(ConnectionResetError):
        assert held[0].recv(1) == b""
    for connection in held:
        connection.close()


def test_slow_senders_are_closed_where_files_are_short(start: Start) -> None:
    running = start()
    shared_by(running).most = 4
    with contextlib.ExitStack() as stack:
        for _ in range(30):
            slow = stack.enter_context(running.connect())
            slow.sendall(SLOW_BODY)
            with running.connect() as connection:
                connection.sendall(LAST)
                assert read_all(connection).startswith(b"HTTP/1.1 200")
        wait_until(lambda: len(connections_of(running)) <= 4, "the oldest connections are closed")


def test_bytes_that_are_not_http_are_an_error(running: Running) -> None:
    for noise in (
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET http://[ HTTP/1.1\r\nhost: localhost\r\n\r\n",
    ):
        with running.connect() as connection:
            connection.sendall(noise)
            answer = read_all(connection)
            assert answer.startswith(b"HTTP/1.1 400")
            assert b'{"error": "this is no HTTP/1.1 request that can be read"}' in answer
    assert running.get("/api/health").status_code == 200


def test_the_limit_of_open_files_is_raised() -> None:
    shared = limited_connections(Limits(head=7)).shared
    assert shared.limits.head == 7
    assert shared.most < raise_file_limit()


def test_bodies_have_a_size_limit(start: Start) -> None:
    running = start(body=10_000)
    error = {"error": "the request's body is larger than 10,000 bytes, the most this service reads"}
    headers = {"content-type": "application/json"}
    at_once = running.client.post("/api/graphs/toy/search", content=b" " * 10_001, headers=headers)
    assert (at_once.status_code, at_once.json()) == (413, error)
    in_parts = running.client.post("/api/graphs/toy/search", content=iter([b" " * 6000] * 2), headers=headers)
    assert (in_parts.status_code, in_parts.json()) == (413, error)
    with running.connect() as connection:
        connection.sendall(b"POST /api/jobs HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9999999999\r\n\r\n")
        assert connection.recv(65536).startswith(b"HTTP/1.1 413")
    with running.connect() as connection:  # its sender hears of it though it sends all before it listens
        connection.sendall(b"POST /api/jobs HTTP/1.1\r\nhost: localhost\r\ncontent-length: 8000000\r\n\r\n")
        connection.sendall(b" " * 8_000_000)
        connection.sendall(b"GET /api/health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
        answer = b"".join(iter(lambda: connection.recv(65536), b""))
        assert answer.startswith(b"HTTP/1.1 413")
        assert b"HTTP/1.1 200" in answer
    assert running.get("/api/health").status_code == 200


def test_a_length_of_many_digits_is_a_number(running: Running) -> None:
    for digits, status in ((b"0" * 5000 + b"2", b"422"), (b"9" * 5001, b"400")):
        with running.connect() as connection:
            head = b"POST /api/jobs HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
            connection.sendall(head + b"content-length: %s\r\n\r\n{}" % digits)
            assert connection.recv(65536).startswith(b"HTTP/1.1 " + status)


def test_bodies_have_a_time_limit(start: Start) -> None:
    running = start(body_seconds=0.2)
    with running.connect() as connection:
        connection.sendall(
            b"POST /api/jobs HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
            b"content-length: 9\r\n\r\n{"
        )
        answer = b"".join(iter(lambda: connection.recv(65536), b""))
    assert answer.startswith(b"HTTP/1.1 408")
    assert b"did not come within 0.2 seconds" in answer


def test_slow_senders_do_not_block_others(start: Start) -> None:
    running = start(active=2)
    with contextlib.ExitStack() as stack:
        for _ in range(10):
            stack.enter_context(running.connect()).sendall(SLOW_BODY)
        for url in ("/api/health", "/api/metrics", "/", "/api/graphs"):
            assert running.get(url).status_code == 200
        assert running.post("/api/graphs/toy/search", {"queries": ["Mike"], "metapath": "APA"}).status_code == 200


def test_all_bodies_together_have_a_size_limit(start: Start) -> None:
    running = start(bodies=100)
    response = running.post("/api/graphs/toy/search", {"queries": ["Mike"] * 50, "metapath": "APA"})
    assert (response.status_code, response.headers["retry-after"]) == (503, "2")
    assert running.post("/api/graphs/toy/search", {"queries": ["Mike"], "metapath": "APA"}).status_code == 200

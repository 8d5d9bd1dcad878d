"""Connections that are held open for nothing, and the end of a service."""

import contextlib
import socket
import threading
import time

import httpx
import pytest

from neupath.service.limits import Limits
from neupath.service.server import allow_files, limited
from tests.service.conftest import Running, Start


def read_all(connection: socket.socket) -> bytes:
    return b"".join(iter(lambda: connection.recv(65536), b""))


def test_headers_that_never_end_are_given_up(start: Start) -> None:
    running = start(head_seconds=0.3)
    with running.connect() as connection:
        connection.sendall(b"GET /api/graphs HTTP/1.1\r\nhost: localhost\r\nx-a")
        answer = read_all(connection)
    assert answer.startswith(b"HTTP/1.1 408")
    assert b"did not end within 0.3 seconds" in answer


def test_a_second_requests_headers_have_their_time_too(start: Start) -> None:
    running = start(head_seconds=0.3)
    with running.connect() as connection:
        connection.sendall(b"GET /api/health HTTP/1.1\r\nhost: localhost\r\n\r\n")
        assert connection.recv(65536).startswith(b"HTTP/1.1 200")
        connection.sendall(b"GET /api/health HTTP/1.1\r\n")
        assert read_all(connection).startswith(b"HTTP/1.1 408")


def test_connections_that_say_nothing_are_closed(start: Start) -> None:
    running = start(head_seconds=0.3)
    with running.connect() as connection:
        assert read_all(connection) == b""


def test_endless_headers_are_refused(start: Start) -> None:
    running = start(head=1000)
    with running.connect() as connection:
        connection.sendall(b"GET /api/graphs?" + b"x" * 2000)
        answer = read_all(connection)
    assert answer.startswith(b"HTTP/1.1 431")
    assert b"longer than 1,000 bytes" in answer


def test_a_long_head_in_one_piece_is_refused(start: Start) -> None:
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


def test_the_longest_idle_makes_room(start: Start) -> None:
    running = start()
    kind = running.server.config.http
    assert isinstance(kind, type)
    kind.most = 4  # type: ignore[attr-defined]
    held = [running.connect() for _ in range(4)]
    with running.connect() as connection:
        connection.sendall(b"GET /api/health HTTP/1.1\r\nhost: localhost\r\n\r\n")
        assert connection.recv(65536).startswith(b"HTTP/1.1 200")
    with contextlib.suppress(ConnectionResetError):
        assert held[0].recv(1) == b""
    for connection in held:
        connection.close()


def test_what_is_no_http_is_refused(running: Running) -> None:
    for noise in (
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET http://[ HTTP/1.1\r\n\r\n",
    ):
        with running.connect() as connection:
            connection.sendall(noise)
            answer = read_all(connection)
            assert answer.startswith(b"HTTP/1.1 400")
            assert b'{"error": "this is no HTTP/1.1 request that can be read"}' in answer
    assert running.get("/api/health").status_code == 200


def test_two_requests_at_once_are_answered_in_order(running: Running) -> None:
    with running.connect() as connection:
        one = b"GET /api/graphs/toy/search?query=Mike&metapath=APVPA HTTP/1.1\r\nhost: localhost\r\n\r\n"
        two = b"GET /api/health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"
        connection.sendall(one + two)
        answer = read_all(connection)
    assert answer.count(b"HTTP/1.1 200") == 2
    assert answer.index(b'"query": "Mike"') < answer.index(b'"status": "ok"')


def test_a_limit_on_files() -> None:
    kind = limited(Limits(head=7))
    assert kind.limits.head == 7
    assert kind.most < allow_files()


def test_running_requests_are_finished_at_the_end(start: Start) -> None:
    running = start()
    began = threading.Event()
    original = running.service.catalogue.measure

    def slow(*arguments: str) -> object:
        began.set()
        time.sleep(0.5)
        return original(*arguments)

    running.service.catalogue.measure = slow  # type: ignore[method-assign, assignment]
    found: list[httpx.Response] = []
    asking = threading.Thread(
        target=lambda: found.append(running.get("/api/graphs/toy/search?query=Mike&metapath=APVPA&measure=joinsim"))
    )
    asking.start()
    assert began.wait(10)
    running.server.should_exit = True
    asking.join(20)
    assert found[0].status_code == 200
    running.thread.join(20)
    assert not running.thread.is_alive()


@pytest.mark.parametrize(
    "more",
    ["", "accept: */*", "connection: close", "connection: keep-alive", "content-length: 0", "expect: 100-continue"],
)
def test_every_way_to_ask_has_the_same_answer(running: Running, more: str) -> None:
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
    asked = ["Mike", "Mary", "Bob", "Jim", "Ann"] * 20
    running.get("/api/graphs/toy/search?query=Mike&metapath=APVPA")
    sent = [f"GET /api/graphs/toy/search?query={name}&metapath=APVPA HTTP/1.1\r\nhost: localhost\r\n" for name in asked]
    with running.connect() as connection:
        connection.sendall("\r\n".join(sent).encode() + b"connection: close\r\n\r\n")
        answer = read_all(connection)
    assert [part[:6].partition(b'"')[0].decode() for part in answer.split(b'{"query": "')[1:]] == asked

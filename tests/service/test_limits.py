"""Requests and connections beyond the limits: bodies, headers, times, open files."""

import contextlib

from neupath.service.limits import Connection, Limits, raise_file_limit
from tests.service.conftest import Running, Start, read_all


def test_headers_have_a_time_limit(start: Start) -> None:
    running = start(head_seconds=0.3)
    with running.connect() as connection:
        connection.sendall(b"GET /api/graphs HTTP/1.1\r\nhost: localhost\r\nx-a")
        answer = read_all(connection)
    assert answer.startswith(b"HTTP/1.1 408")
    assert b"did not end within 0.3 seconds" in answer


def test_headers_of_a_second_request_have_a_time_limit(start: Start) -> None:
    running = start(head_seconds=0.3)
    with running.connect() as connection:
        connection.sendall(b"GET /api/health HTTP/1.1\r\nhost: localhost\r\n\r\n")
        assert connection.recv(65536).startswith(b"HTTP/1.1 200")
        connection.sendall(b"GET /api/health HTTP/1.1\r\n")
        assert read_all(connection).startswith(b"HTTP/1.1 408")


def test_silent_connections_are_closed(start: Start) -> None:
    running = start(head_seconds=0.3)
    with running.connect() as connection:
        assert read_all(connection) == b""


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


def test_bytes_that_are_not_http_are_an_error(running: Running) -> None:
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


def test_the_limit_of_open_files_is_raised() -> None:
    kind = Connection.limited(Limits(head=7))
    assert kind.limits.head == 7
    assert kind.most < raise_file_limit()


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
    begun = b"POST /api/jobs HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9\r\n\r\n{"
    with contextlib.ExitStack() as stack:
        for _ in range(10):
            stack.enter_context(running.connect()).sendall(begun)
        for url in ("/api/health", "/api/metrics", "/", "/api/graphs"):
            assert running.get(url).status_code == 200
        assert running.post("/api/graphs/toy/search", {"queries": ["Mike"], "metapath": "APA"}).status_code == 200


def test_all_bodies_together_have_a_size_limit(start: Start) -> None:
    running = start(bodies=100)
    response = running.post("/api/graphs/toy/search", {"queries": ["Mike"] * 50, "metapath": "APA"})
    assert (response.status_code, response.headers["retry-after"]) == (503, "2")
    assert running.post("/api/graphs/toy/search", {"queries": ["Mike"], "metapath": "APA"}).status_code == 200

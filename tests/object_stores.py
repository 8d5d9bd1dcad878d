"""Object stores for tests: a real server of moto, and a proxy before it that is slow or fails some times."""

import http.client
import socket
import sys
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.patience import PATIENCE, wait_until
from tests.processes import run_process


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


def _answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


@contextmanager
def moto_server() -> Iterator[str]:
    """Start a server of S3; yield its address."""
    pytest.importorskip("moto", reason="needs the extra dev")
    port = free_port()
    with run_process([sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)], stderr=-3) as process:
        wait_until(lambda: process.poll() is not None or _answers(port), "moto does not answer")
        assert process.poll() is None
        yield f"http://127.0.0.1:{port}"


def set_s3(monkeypatch: pytest.MonkeyPatch, endpoint: str) -> None:
    """Let the environment lead to a server of S3."""
    settings = {"AWS_ENDPOINT_URL": endpoint, "AWS_ACCESS_KEY_ID": "ann", "AWS_SECRET_ACCESS_KEY": "secret"}
    for key, value in settings.items():
        monkeypatch.setenv(key, value)


def put(store: Any, path: str, content: str | bytes) -> None:
    """Write an object to the bucket `graphs`."""
    with store.open_output_stream(f"graphs/{path}", compression=None) as stream:
        stream.write(content.encode() if isinstance(content, str) else content)


@dataclass
class Proxy:
    """What a proxy does with the next requests, and what it has seen."""

    seconds: float = 0.0
    """How long it waits before it passes on a request."""
    statuses: deque[int] = field(default_factory=deque)
    """What it answers itself, before it passes on any."""
    requests: list[str] = field(default_factory=list)
    address: str = ""


@contextmanager
def proxy_of(endpoint: str) -> Iterator[Proxy]:
    """Start a proxy before a server of HTTP."""
    proxy, place, ended = Proxy(), urlsplit(endpoint), Event()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_any(self) -> None:
            body = self._read_body()
            proxy.requests.append(f"{self.command} {self.path}")
            ended.wait(proxy.seconds)
            status, headers, answer = (proxy.statuses.popleft(), [], b"") if proxy.statuses else self._pass_on(body)
            self.send_response(status)
            for name, value in headers:
                if name.lower() not in ("connection", "transfer-encoding", "content-length", "server", "date"):
                    self.send_header(name, value)
            length = {name.lower(): value for name, value in headers}.get("content-length", str(len(answer)))
            self.send_header("Content-Length", length if self.command == "HEAD" else str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = handle_any  # noqa: N815

        def _read_body(self) -> bytes:
            if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
                return self.rfile.read(int(self.headers.get("Content-Length") or 0))
            chunks = []
            while size := int(self.rfile.readline().split(b";")[0], 16):
                chunks.append(self.rfile.read(size))
                self.rfile.readline()
            while self.rfile.readline().strip():
                continue  # what follows the last chunk
            return b"".join(chunks)

        def _pass_on(self, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
            connection = http.client.HTTPConnection(str(place.hostname), place.port, timeout=PATIENCE)
            try:
                left_out = ("transfer-encoding", "content-length", "expect", "connection")
                headers = {name: value for name, value in self.headers.items() if name.lower() not in left_out}
                connection.request(self.command, self.path, body, headers | {"Content-Length": str(len(body))})
                response = connection.getresponse()
                return response.status, response.getheaders(), response.read()
            finally:
                connection.close()

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    class Server(ThreadingHTTPServer):
        daemon_threads, block_on_close = True, False

    with Server(("127.0.0.1", 0), Handler) as server:
        proxy.address = f"http://127.0.0.1:{server.server_address[1]}"
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield proxy
        finally:
            ended.set()
            server.shutdown()
            thread.join(PATIENCE)

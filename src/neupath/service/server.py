"""Server: a service on a socket, from its start to its orderly end."""

import asyncio
import resource
import socket
from collections.abc import Callable
from typing import Any, ClassVar

from uvicorn import Server
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from neupath.errors import QueryError
from neupath.service.limits import Limits
from neupath.service.middleware import Guard
from neupath.service.responses import sentence_bytes
from neupath.service.service import Service

# ---- Connections ---------------------------------------------------------------------------------
# uvicorn waits for ever for the end of a request's headers, and for a client that does not read its answer. Here each
# has its time, headers have a size, and where there are more connections than the process may open files, the one that
# has been idle the longest makes room.
# A light search takes less time than the way to the application and back: it is answered here, in the same breath.
AtOnce = Callable[[str, bytes, list[tuple[bytes, bytes]]], bytes | None]
"""Takes a path, a query string and headers; returns an answer, all but its first line and date, or nothing."""
_MOST_AT_ONCE = 16
"""Requests of one client, sent without waiting for answers, that are answered before others have their turn."""
_MORE_IS_ASKED = frozenset((b"content-length", b"transfer-encoding", b"upgrade", b"expect"))
"""Headers of requests that are not just a question."""
_SPARE_FILES = 128
"""Open files that are left for other things than connections."""


class Connection(HttpToolsProtocol):
    """One client's connection, with limits; `limited` makes the class for some."""

    limits: ClassVar[Limits] = Limits()
    at_once: ClassVar[AtOnce] = lambda *_: None
    most: ClassVar[int] = 1 << 30
    idle: ClassVar[dict["Connection", None]] = {}
    """Connections without a request under way, the longest idle first."""

    def __init__(self, config: Config, server_state: ServerState, app_state: dict[str, Any], _loop: Any = None) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._deadline: asyncio.TimerHandle | None = None
        self._stalled: asyncio.TimerHandle | None = None
        self._head = 0
        self._in_head = True
        self._in_body = False
        self._answered = 0
        self._was_answered = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.idle[self] = None
        self._expect_head()
        if len(self.connections) > self.most and self.idle:
            next(iter(self.idle)).give_way()

    def give_way(self) -> None:
        """Close a connection that has no request under way."""
        self.idle.pop(self, None)
        self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self.idle.pop(self, None)
        self._stop_timers()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._answered = 0
        if self._in_head:
            self._head += len(data)
            if self._deadline is None:
                self._expect_head()
        super().data_received(data)
        if self._in_head and self._head > self.limits.head and not self.transport.is_closing():
            self._refuse_head()

    def _refuse_head(self) -> None:
        self._refuse(431, f"the request's first line and headers are longer than {self.limits.head:,} bytes")

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002
        """Refuse what the parser cannot read; a head that was refused has its answer."""
        if not self.transport.is_closing():
            self._refuse(400, "this is no HTTP/1.1 request that can be read")

    def on_headers_complete(self) -> None:
        if len(self.url) + sum([len(name) + len(value) + 4 for name, value in self.headers]) > self.limits.head:
            self._refuse_head()
            raise ValueError("the head is too long")  # so that the parser stops
        self._in_head, self._in_body = False, True
        self.idle.pop(self, None)
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        answer = self._answer_at_once()
        self._was_answered = answer is not None
        if answer is None:
            super().on_headers_complete()
        else:
            self._answered += 1
            date = b"".join([b"%s: %s\r\n" % header for header in self.server_state.default_headers])
            self.transport.write(b"HTTP/1.1 200 OK\r\n%s%s" % (date, answer))

    def _answer_at_once(self) -> bytes | None:
        """Return the answer to a light request, unless another stands before it, or more is asked."""
        is_free = (self.cycle is None or self.cycle.response_complete) and not self.flow.write_paused
        if not is_free or self._answered >= _MOST_AT_ONCE or self.parser.get_method() != b"GET":
            return None
        if self.parser.get_http_version() != "1.1" or not self.parser.should_keep_alive():
            return None
        for name, value in self.headers:
            if name in _MORE_IS_ASKED or (name == b"accept" and (b"csv" in value or b"arrow" in value)):
                return None
        path, _, query_string = self.url.partition(b"?")
        return type(self).at_once(path.decode("ascii", "replace"), query_string, self.headers)

    def on_message_complete(self) -> None:
        self._in_body = False
        if self._deadline is not None:  # the rest of a body that was refused
            self._become_idle()
        if self._was_answered:
            self._was_answered = False
            self.on_response_complete()
        else:
            super().on_message_complete()

    def on_response_complete(self) -> None:
        if self._in_body:  # what is left of a refused body is thrown away for a while, so that its sender hears why
            self._deadline = self.loop.call_later(self.limits.head_seconds, self.transport.abort)
        else:
            self._become_idle()
        super().on_response_complete()

    def _become_idle(self) -> None:
        self._in_head, self._head = True, 0
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        if not self.transport.is_closing() and not self.pipeline:
            self.idle[self] = None

    def pause_writing(self) -> None:
        super().pause_writing()
        self._stalled = self.loop.call_later(self.limits.seconds, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None

    def _expect_head(self) -> None:
        self._deadline = self.loop.call_later(self.limits.head_seconds, self._give_up)

    def _give_up(self) -> None:
        """Close a connection whose headers did not come; a client that has begun to send some is told why."""
        self._deadline = None
        if self.transport.is_closing():
            return
        if self._head:
            self._refuse(408, f"the request's headers did not end within {self.limits.head_seconds:g} seconds")
        else:
            self.transport.close()

    def _refuse(self, status: int, sentence: str) -> None:
        body = sentence_bytes(sentence)
        head = f"HTTP/1.1 {status} Refused\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n"
        self.transport.write(head.encode("ascii") + b"connection: close\r\n\r\n" + body)
        self.transport.close()

    def _stop_timers(self) -> None:
        for timer in (self._deadline, self._stalled):
            if timer is not None:
                timer.cancel()
        self._deadline = self._stalled = None


def limited(limits: Limits, at_once: AtOnce = lambda *_: None) -> type[Connection]:
    """Return the class of connections under some limits, for as many as the process may open files."""
    members: dict[str, Any] = {
        "limits": limits,
        "at_once": staticmethod(at_once),
        "most": allow_files() - _SPARE_FILES,
        "idle": {},
    }
    return type("LimitedConnection", (Connection,), members)


def allow_files() -> int:
    """Let this process open as many files as the system allows it, and return how many."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 1 << 16 if hard == resource.RLIM_INFINITY else min(hard, 1 << 16)
    soft = max(resource.getrlimit(resource.RLIMIT_NOFILE)[0], wanted)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return soft


# ---- Server --------------------------------------------------------------------------------------
_BACKLOG = 4096


class GracefulServer(Server):
    """A server that finishes running requests when it stops, and ends streams, which would never finish."""

    def __init__(self, config: Config, service: Service, started: Callable[[], None]) -> None:
        super().__init__(config)
        self._service, self._when_started = service, started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._when_started()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._service.jobs.stop()
        await super().shutdown(sockets)


def bind(host: str, port: int) -> socket.socket:
    """Take a port, or say why it cannot be taken."""
    if not 0 <= port < 2**16:
        raise QueryError(f"port is {port}; it must lie between 0 and 65535")
    bound: socket.socket | None = None
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        bound = socket.socket(family, kind, protocol)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
    except OSError as error:
        if bound is not None:
            bound.close()
        raise QueryError(
            f"cannot serve at {host} port {port}: {(error.strerror or str(error)).lower()}; choose another ‹port›"
        ) from error
    bound.setblocking(False)
    return bound


def address_of(bound: socket.socket) -> str:
    """Return the address of a socket as a browser takes it."""
    host, port = bound.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def make_server(app: Guard, service: Service, started: Callable[[], None] = lambda: None) -> GracefulServer:
    """Make a server whose `run` serves at sockets until a signal says to stop, and then finishes what is running."""
    limits = service.limits
    config = Config(
        app, http=limited(limits, app.answer_at_once), loop="uvloop", ws="none", lifespan="on", log_level="error",
        access_log=False, server_header=False, proxy_headers=False, backlog=_BACKLOG,
        timeout_keep_alive=int(limits.idle_seconds), timeout_graceful_shutdown=int(limits.seconds) + 5,
    )  # fmt: skip
    return GracefulServer(config, service, started)

"""The server: a socket, and uvicorn on it until a signal stops it."""

import asyncio
import socket
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import islice
from typing import ClassVar

from uvicorn import Server
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from neupath.errors import QueryError
from neupath.service.app import Service
from neupath.service.limits import Limits
from neupath.service.middleware import SECURITY_HEADERS, GuardMiddleware, content_length
from neupath.service.schemas import RequestError, error_response

_BACKLOG = 4096
_SPARE_FILES = 128  # open files for everything that is not a connection
_MOST_FILES = 1 << 16


# ---- Connections ---------------------------------------------------------------------------------
_END_OF_HEAD = b"\r\n\r\n"
_MOST_IN_A_ROW = 16  # pieces of one client's requests that are parsed before other clients have their turn
_MOST_IN_A_TURN = 8  # connections whose pipelined requests go on in one turn of the event loop


@dataclass
class Connections:
    """What all connections of a service share."""

    limits: Limits = field(default_factory=Limits)
    most: int = 1 << 30
    waiting: dict["Connection", None] = field(default_factory=dict)
    """Connections that wait for their client to send a request, the longest first."""
    unparsed: int = 0
    """Bytes that came and are not parsed yet."""
    backlog: dict["Connection", None] = field(default_factory=dict)
    """Connections that may parse on, in the order of their turn."""
    is_working_off: bool = False
    """Whether the event loop is going to work off the backlog."""

    def continue_soon(self, connection: "Connection") -> None:
        """Let a connection parse on when it is its turn: few have one at once, so that others get through."""
        self.backlog[connection] = None
        if not self.is_working_off:
            self.is_working_off = True
            connection.loop.call_soon(self._work_off, connection.loop)

    def _work_off(self, loop: asyncio.AbstractEventLoop) -> None:
        for connection in list(islice(self.backlog, _MOST_IN_A_TURN)):
            del self.backlog[connection]
            loop.call_soon(connection.parse)
        self.is_working_off = bool(self.backlog)
        if self.backlog:
            loop.call_soon(self._work_off, loop)


class Connection(HttpToolsProtocol):
    """A connection that parses a request when the one before it is answered, and whose headers have limits.

    uvicorn parses all that it reads at once, so that 256 KB of pipelined requests become 14,000 requests in memory. Its
    other parser, h11, takes one at a time, but a light search then costs twice the time.
    """

    shared: ClassVar[Connections] = Connections()
    _in_head = True
    _head_bytes = _body_bytes = 0  # of the present request so far

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._unparsed = bytearray()
        self._wait_for_client()
        self.timeout_keep_alive_task = self.loop.call_later(self.timeout_keep_alive, self.timeout_keep_alive_handler)
        if len(self.connections) > self.shared.most:
            longest = next(iter(self.shared.waiting))
            del self.shared.waiting[longest]
            longest.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self.shared.waiting.pop(self, None)
        self.shared.backlog.pop(self, None)
        self.shared.unparsed -= len(self._unparsed)
        self._unparsed.clear()
        super().connection_lost(exc)

    def _wait_for_client(self) -> None:
        """Move this connection to the end of those that wait for their client."""
        self.shared.waiting.pop(self, None)
        self.shared.waiting[self] = None

    def data_received(self, data: bytes) -> None:
        self._unparsed += data
        self.shared.unparsed += len(data)
        self.parse()

    def parse(self) -> None:
        """Parse what came until a request waits for its answer, and read no more until then."""
        is_held = False
        for _ in range(_MOST_IN_A_ROW):
            length = self._length_of_piece()
            is_held = length > 0 and self._is_answering()
            if self.transport.is_closing() or is_held or not length:
                break
            self._parse_piece(length)
        else:
            is_held = True
            self.shared.continue_soon(self)
        if self.transport.is_closing():
            return
        if self.shared.unparsed > self.shared.limits.bodies:
            self.transport.abort()
        elif is_held:
            self.transport.pause_reading()  # not by `flow`, which the application resumes
        elif not self.flow.read_paused:
            self.transport.resume_reading()

    def _length_of_piece(self) -> int:
        """Return the length of the next bytes to parse, which hold the end of one request at most."""
        length = None if self._in_head else content_length(self.headers)
        if length is not None:
            return min(len(self._unparsed), max(1, length - self._body_bytes))
        end = self._unparsed.find(_END_OF_HEAD)
        if end >= 0:
            return end + len(_END_OF_HEAD)
        kept = len(_END_OF_HEAD) - 1 if self._in_head else 0  # bytes that may be a part of the end
        return max(0, len(self._unparsed) - kept)

    def _parse_piece(self, length: int) -> None:
        piece = bytes(self._unparsed[:length])
        del self._unparsed[:length]
        self.shared.unparsed -= length
        if self._in_head:
            self._head_bytes += length
            if self._head_bytes > self.shared.limits.head:
                most = self.shared.limits.head
                self._refuse(431, f"the request's first line and headers are longer than {most:,} bytes")
                return
        super().data_received(piece)

    def _is_answering(self) -> bool:
        """Whether a whole request waits for its answer."""
        return self._in_head and self.cycle is not None and not self.cycle.response_complete

    def _unset_keepalive_if_required(self) -> None:
        """End the time limit with the head of a request, where uvicorn ends it with the first byte."""
        if self.transport.is_closing() or (self.cycle is not None and not self.cycle.response_complete):
            super()._unset_keepalive_if_required()

    def on_headers_complete(self) -> None:
        self._in_head, self._body_bytes = False, 0
        super().on_headers_complete()
        self._unset_keepalive_if_required()

    def on_body(self, body: bytes) -> None:
        self._body_bytes += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._in_head, self._head_bytes = True, 0
        self.shared.waiting.pop(self, None)
        super().on_message_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._wait_for_client()
        if self._unparsed:
            self.shared.continue_soon(self)

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002
        self._refuse(400, "this is no HTTP/1.1 request that can be read")

    def _refuse(self, status: int, message: str) -> None:
        """Answer with an error as the application would, and close."""
        if self._is_answering():  # an earlier request, with whose answer the connection closes
            self.cycle.keep_alive = False
            return
        if self.cycle is not None:  # its body broke off
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        response = error_response(RequestError(status, message, Connection="close"))
        headers = [*self.server_state.default_headers, *response.raw_headers, *SECURITY_HEADERS]
        lines = [b"%s: %s\r\n" % header for header in headers]
        self.transport.write(b"".join([STATUS_LINE[status], *lines, b"\r\n", bytes(response.body)]))
        self.transport.close()


def limited_connections(limits: Limits) -> type[Connection]:
    """Return the class of the connections of one service, as many as the process may open files."""
    files = raise_file_limit()
    shared = Connections(limits, max(files - _SPARE_FILES, files // 2))
    return type("LimitedConnection", (Connection,), {"shared": shared})


def raise_file_limit() -> int:
    """Let this process open as many files as the system allows, and return how many."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return _MOST_FILES
    before, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    soft = max(before, _MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, _MOST_FILES))
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    except (ValueError, OSError):  # macOS says infinity and allows less
        return before
    return soft


# ---- Server --------------------------------------------------------------------------------------


class GracefulServer(Server):
    """A server that finishes running requests when it stops, and ends event streams, which would never finish."""

    def __init__(self, config: Config, service: Service, on_start: Callable[[], None]) -> None:
        super().__init__(config)
        self._service, self._on_start = service, on_start

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        for listener in sockets or ():
            if sys.platform == "linux":  # the kernel resets connections whose client has read nothing for that long
                milliseconds = int(1000 * self._service.limits.seconds)
                listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, milliseconds)
        await super().startup(sockets)
        self._on_start()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._service.jobs.stop()
        await super().shutdown(sockets)


def bind(host: str, port: int) -> socket.socket:
    """Return a socket bound to a port; port 0 takes a free one."""
    if not 0 <= port < 2**16:
        raise QueryError(f"‹port› is {port}; it must lie between 0 and 65535", parameter="port")
    bound: socket.socket | None = None
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        bound = socket.socket(family, kind, protocol)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
    except OSError as error:
        if bound is not None:
            bound.close()
        reason = (error.strerror or str(error)).lower()
        raise QueryError(f"cannot serve at {host} port {port}: {reason}; choose another ‹port›") from error
    bound.setblocking(False)
    return bound


def address_of(bound: socket.socket) -> str:
    """Return the address of a socket as a browser takes it."""
    host, port = bound.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def make_server(app: GuardMiddleware, service: Service, on_start: Callable[[], None] = lambda: None) -> GracefulServer:
    """Make a server; its `run` serves at sockets until a signal, and then finishes running requests."""
    limits = service.limits
    config = Config(
        app, http=limited_connections(limits), loop="uvloop", ws="none", lifespan="on", log_level="error",
        access_log=False, server_header=False, proxy_headers=False, backlog=_BACKLOG,
        timeout_keep_alive=int(limits.idle_seconds), timeout_graceful_shutdown=int(limits.seconds) + 5,
    )  # fmt: skip
    return GracefulServer(config, service, on_start)

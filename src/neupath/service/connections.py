"""Connections: one request of a client at a time, within limits on sizes, times and open files."""

import asyncio
import socket
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, ClassVar, Self

from uvicorn.config import Config
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT, FlowControl
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol
from uvicorn.server import ServerState

from neupath.service.limits import Limits
from neupath.service.middleware import SECURITY_HEADERS, content_length
from neupath.service.schemas import RequestError, error_response

_SPARE_FILES = 128  # open files for everything that is not a connection
_MOST_IN_A_ROW = 16  # pieces of one client's requests that are parsed before other clients have their turn
_MOST_IN_A_TURN = 8  # connections whose pipelined requests go on in one turn of the event loop
_END_OF_HEAD = b"\r\n\r\n"


@dataclass
class ConnectionTotals:
    """What all connections of a service share."""

    waiting: dict["Connection", None] = field(default_factory=dict)
    """Connections that wait for their client, to send a request or to read an answer, the longest first."""
    unparsed: int = 0
    """Bytes of pipelined requests that wait for the answer to the one before them."""
    backlog: dict["Connection", None] = field(default_factory=dict)
    """Connections whose next pipelined request may be parsed, in the order of their turn."""
    is_working_off: bool = False
    """Whether the event loop is going to work off the backlog."""


class _Flow(FlowControl):
    """Flow control that does not read on while requests wait; uvicorn would, for each request that it hands over."""

    is_held = False

    def resume_reading(self) -> None:
        if not self.is_held:
            super().resume_reading()


class Connection(HttpToolsProtocol):
    """One client's connection; `limited` returns a subclass with other limits.

    uvicorn parses all that it reads at once, and waits without limit for the end of headers and for a client that does
    not read its answers. Here a request is parsed when the one before it is answered and the client reads; what else
    it has sent stays bytes, and no more is read meanwhile. Headers have a limit on size and time, and unread answers
    one on time. Where there are more connections than the process may open files, the one that has waited the longest
    for its client is closed.
    """

    limits: ClassVar[Limits] = Limits()
    most: ClassVar[int] = 1 << 30
    totals: ClassVar[ConnectionTotals] = ConnectionTotals()

    @classmethod
    def limited(cls, limits: Limits) -> type[Self]:
        """Return this class under some limits, for as many connections as the process may open files."""
        files = raise_file_limit()
        own = {"limits": limits, "most": max(files - _SPARE_FILES, files // 2), "totals": ConnectionTotals()}
        return type(f"Limited{cls.__name__}", (cls,), own)

    def __init__(self, config: Config, server_state: ServerState, app_state: dict[str, Any], _loop: Any = None) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._deadline: asyncio.TimerHandle | None = None
        self._write_deadline: asyncio.TimerHandle | None = None
        self._unparsed, self._parsed_to = b"", 0  # bytes that came, and how many of them are parsed
        self._tail = b""  # the last bytes that are parsed, where they may be the beginning of the end of a head
        self._head_bytes = self._body_bytes = 0  # bytes of the present request so far
        self._in_head, self._in_body = True, False
        self._is_refused = False  # whether the client has its last answer, and all else that it sends is dropped

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.flow: _Flow = _Flow(transport)
        self._wait_for_client()
        self._set_deadline(self._give_up)
        if len(self.connections) > self.most:
            oldest = next(iter(self.totals.waiting))
            del self.totals.waiting[oldest]
            oldest.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self.totals.waiting.pop(self, None)
        self.totals.backlog.pop(self, None)
        self._take_unparsed()
        for timer in (self._deadline, self._write_deadline):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)

    # ---- Parsing ---------------------------------------------------------------------------------
    def data_received(self, data: bytes) -> None:
        if self._is_refused:
            return
        if self._unparsed:
            unparsed, parsed_to = self._take_unparsed()
            data = unparsed[parsed_to:] + data
        self._parse(data, 0)

    def _parse(self, data: bytes, start: int) -> None:
        """Parse until a request waits for its answer, or until other connections should have their turn."""
        for _ in range(_MOST_IN_A_ROW):
            if start == len(data) or self._is_answering():
                break
            end = self._end_of_piece(data, start)
            if self._in_head:
                self._head_bytes += end - start
            super().data_received(data[start:end])
            start = end
            if self._in_head and self._head_bytes > self.limits.head:
                self._refuse_head()
            if self._is_refused or self.transport.is_closing():
                return
        else:
            self._continue_soon()
        if start < len(data):
            self._keep_unparsed(data, start)
        else:
            self._tail = b"" if data.endswith(_END_OF_HEAD) else (self._tail + data[-3:])[-3:]
            self._await_data()

    def _end_of_piece(self, data: bytes, start: int) -> int:
        """Return the end of the next bytes to parse, which hold the end of one request at most."""
        length = content_length(self.headers) if self._in_body else None
        if length is not None:
            return min(len(data), max(start + 1, start + length - self._body_bytes))
        seam = (self._tail + data[start : start + 3]).find(_END_OF_HEAD) if self._tail else -1
        if seam >= 0:
            seam, self._tail = seam - len(self._tail), b""
            return start + seam + len(_END_OF_HEAD)
        end = data.find(_END_OF_HEAD, start)
        return len(data) if end < 0 else end + len(_END_OF_HEAD)

    def _is_answering(self) -> bool:
        """Whether a whole request waits for its answer, or the client for earlier answers to be read."""
        return not self._in_body and (self.flow.write_paused or self._has_open_cycle())

    def _has_open_cycle(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _keep_unparsed(self, data: bytes, parsed_to: int) -> None:
        """Keep what comes after the present request, and read no more for now."""
        self._unparsed, self._parsed_to = data, parsed_to
        self.totals.unparsed += len(data)
        self.flow.is_held = True
        self.flow.pause_reading()
        if self.totals.unparsed > self.limits.bodies:
            self.transport.abort()

    def _take_unparsed(self) -> tuple[bytes, int]:
        unparsed = self._unparsed, self._parsed_to
        self.totals.unparsed -= len(self._unparsed)
        self._unparsed, self._parsed_to, self.flow.is_held = b"", 0, False
        return unparsed

    def _continue_soon(self) -> None:
        """Parse what was kept when it is this connection's turn: few have one at once, so that others get through."""
        self.totals.backlog[self] = None
        if not self.totals.is_working_off:
            self.totals.is_working_off = True
            self.loop.call_soon(self._work_off_backlog)

    def _work_off_backlog(self) -> None:
        backlog = self.totals.backlog
        for connection in list(islice(backlog, _MOST_IN_A_TURN)):
            del backlog[connection]
            self.loop.call_soon(connection._continue)  # an error of one is its own
        self.totals.is_working_off = bool(backlog)
        if backlog:
            self.loop.call_soon(self._work_off_backlog)

    def _continue(self) -> None:
        """Parse what was kept."""
        if self._unparsed and not self._is_refused and not self.transport.is_closing():
            self._parse(*self._take_unparsed())

    def _await_data(self) -> None:
        """Read on, now that all is parsed; uvicorn itself does where the application is behind with a body."""
        if self._in_head and self._head_bytes and self._deadline is None:
            self._set_deadline(self._give_up)
        if not (self._in_body and self._has_open_cycle() and len(self.cycle.body) > HIGH_WATER_LIMIT):
            self.flow.resume_reading()

    # ---- One request -----------------------------------------------------------------------------
    def on_headers_complete(self) -> None:
        if len(self.url) + sum([len(name) + len(value) + 4 for name, value in self.headers]) > self.limits.head:
            self._refuse_head()
            raise ValueError("the head is too long")  # stops the parser
        self._in_head, self._in_body, self._body_bytes = False, True, 0
        self._cancel_deadline()
        self.dispatch()

    def dispatch(self) -> None:
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._body_bytes += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._in_body = False
        self.totals.waiting.pop(self, None)
        if self._deadline is not None:  # this was the rest of a body that was refused
            self._become_idle()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        if self._in_body:  # discard the rest of a refused body for a while, so that its sender reads the answer
            self._set_deadline(self.transport.abort)
        else:
            self._become_idle()
        super().on_response_complete()
        if self._unparsed:
            self._continue_soon()

    def _become_idle(self) -> None:
        self._in_head, self._head_bytes = True, 0
        self._cancel_deadline()
        if not self.transport.is_closing() and not self.pipeline:
            self._wait_for_client()

    def _wait_for_client(self) -> None:
        self.totals.waiting.pop(self, None)
        self.totals.waiting[self] = None

    # ---- Deadlines and refusals ------------------------------------------------------------------
    def pause_writing(self) -> None:
        super().pause_writing()
        self._wait_for_client()
        self._write_deadline = self.loop.call_later(self.limits.seconds, self._reset)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._write_deadline is not None:
            self._write_deadline.cancel()
            self._write_deadline = None
        if self._is_answering():
            self.totals.waiting.pop(self, None)
        elif self._unparsed:
            self._continue_soon()

    def _reset(self) -> None:
        """Reset a connection: the kernel would keep what a closed one has not sent, for a client that reads nothing."""
        at_once = struct.pack("ii", 1, 0)
        self.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, at_once)
        self.transport.abort()

    def _set_deadline(self, give_up: Callable[[], None]) -> None:
        self._cancel_deadline()
        self._deadline = self.loop.call_later(self.limits.head_seconds, give_up)

    def _cancel_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _give_up(self) -> None:
        """Close a connection whose headers did not come; say why to a client that has sent some."""
        if self._head_bytes:
            message = f"the request's headers did not end within {self.limits.head_seconds:g} seconds"
            self.refuse(RequestError(408, message, Connection="close"))
        else:
            self.transport.close()

    def _refuse_head(self) -> None:
        message = f"the request's first line and headers are longer than {self.limits.head:,} bytes"
        self.refuse(RequestError(431, message, Connection="close"))

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002
        """Refuse what the parser cannot read."""
        self.refuse(RequestError(400, "this is no HTTP/1.1 request that can be read", Connection="close"))

    def refuse(self, error: RequestError) -> None:
        """Answer with an error and drop all else that the client sends, until it closes or the deadline comes.

        Closing at once would reset the connection of a client that is still sending, before it reads the answer.
        """
        if self._is_refused or self.transport.is_closing():
            return
        self._is_refused = True
        if self._has_open_cycle() and not self._in_body:  # an earlier request; the connection closes with its answer
            self.cycle.keep_alive = False
            return
        if self._has_open_cycle():
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        response = error_response(error)
        headers = [*self.server_state.default_headers, *response.raw_headers, *SECURITY_HEADERS]
        lines = [b"%s: %s\r\n" % header for header in headers]
        self.transport.write(b"".join([STATUS_LINE[error.status], *lines, b"\r\n", bytes(response.body)]))
        self.transport.write_eof()
        self._wait_for_client()
        self._set_deadline(self.transport.abort)


_MOST_FILES = 1 << 16


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

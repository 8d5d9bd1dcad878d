"""The limits of the service, and what enforces them: checks of requests, worker threads, bodies and connections."""

import asyncio
import logging
import os
import resource
import sys
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, ClassVar, ParamSpec, Self, TypeVar

from starlette.types import Message, Receive, Scope
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from neupath._runtime.resources import total_memory
from neupath.errors import QueryError
from neupath.graph.metapath import MetaPath
from neupath.service.schemas import RequestError, error_body


# ---- Limits --------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Limits:
    """How much one request, one client and all of them together may ask for; `--limit NAME=VALUE` sets one."""

    body: int = 4 << 20  # bytes of a request's body
    bodies: int = 256 << 20  # bytes of all bodies that are being received
    head: int = 64 << 10  # bytes of a request's first line and headers
    k: int = 1000
    queries: int = 1000  # queries per request
    hits: int = 100_000  # queries times k per request
    pairs: int = 10_000  # labelled pairs per job; `infer` without a job takes 500
    lines: int = 10_000  # nodes and edges per update
    steps: int = 20  # steps of a meta-path
    text: int = 20_000  # characters of an id, a name, a meta-path or a condition
    page: int = 200  # nodes that one look-up returns
    paths: int = 1000  # path instances of an explanation, and meta-paths of a list
    rows: int = 50_000_000  # pairs in the result of a join job
    epochs: int = 200  # epochs of a training job
    width: int = 1024  # the widest embedding of a training job
    seconds: float = 30.0  # seconds from a whole request to its answer; jobs may take longer
    head_seconds: float = 10.0
    """Seconds from the first byte of a request, or from connecting, to the end of its headers."""
    body_seconds: float = 10.0  # seconds from a request's headers to the end of its body
    idle_seconds: float = 20.0  # seconds that an idle connection stays open
    active: int = 256  # requests in progress; a request counts from the end of its body
    heavy: int = 32  # requests that wait for a thread
    streams: int = 64  # clients that listen to jobs
    waiting_jobs: int = 8
    running_jobs: int = 1
    kept_jobs: int = 100  # finished jobs; the oldest is removed first
    scorers: int = 64  # entries in the cache of fitted scorers
    scorer_bytes: int = field(default_factory=lambda: total_memory() // 4)  # bytes in the cache of fitted scorers

    def check_k(self, k: int, queries: int = 1) -> None:
        if k > self.k:
            raise QueryError(f"k is {k}; this service gives at most {self.k:,} hits")
        if queries > self.queries:
            raise QueryError(f"{queries:,} queries are given; this service takes at most {self.queries:,} a call")
        if k * queries > self.hits:
            raise QueryError(
                f"{queries:,} queries for {k:,} hits each are more than the {self.hits:,} hits a call may ask for; "
                f"ask in parts, or start a join job"
            )

    def check_pairs(self, count: int) -> None:
        if count > self.pairs:
            raise QueryError(f"{count:,} pairs are given; this service takes at most {self.pairs:,} a call")

    def check_lines(self, count: int) -> None:
        if count > self.lines:
            raise QueryError(
                f"{count:,} nodes and edges are given; this service takes at most {self.lines:,} an update; "
                f"'neupath update' takes any number at once"
            )

    def check_paths(self, limit: int) -> None:
        if limit > self.paths:
            raise QueryError(f"limit is {limit}; this service lists at most {self.paths:,} paths")

    def check_text(self, what: str, text: object) -> None:
        if isinstance(text, str) and len(text) > self.text:
            raise QueryError(f"{what} has {len(text):,} characters; this service reads at most {self.text:,}")

    def check_metapath(self, metapath: MetaPath) -> MetaPath:
        if len(metapath) > self.steps:
            raise QueryError(f"the meta-path has {len(metapath)} steps; this service walks at most {self.steps}")
        return metapath


# ---- Worker threads ------------------------------------------------------------------------------
P = ParamSpec("P")
T = TypeVar("T")


class WorkerThreads:
    """A thread pool with a bounded queue; `free_memory` is called when a call runs out of memory.

    A thread cannot be stopped: a call whose request has timed out goes on, and counts as busy until it ends.
    """

    def __init__(self, threads: int, waiting: int, seconds: float, free_memory: Callable[[], None]) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="neupath-service")
        self._most = threads + waiting
        self._seconds, self._free_memory = seconds, free_memory
        self.busy = 0

    async def run(self, function: Callable[P, T], *arguments: P.args, **options: P.kwargs) -> T:
        """Call a function in a thread; 503 where too many wait, 504 where it takes too long."""
        if self.busy >= self._most:
            message = f"the service is busy with {self.busy} other requests; try again soon"
            raise RequestError(503, message, Retry_After="2")
        loop = asyncio.get_running_loop()
        future: Future[T] = self._pool.submit(function, *arguments, **options)
        self.busy += 1
        future.add_done_callback(lambda _: None if loop.is_closed() else loop.call_soon_threadsafe(self._leave))
        try:
            return await asyncio.wait_for(asyncio.wrap_future(future), self._seconds)
        except TimeoutError as error:
            message = f"this takes longer than {self._seconds:g} seconds; ask for less, or start a job"
            raise RequestError(504, message) from error
        except MemoryError as error:
            self._free_memory()
            message = "there is not enough memory for this now; try again, or ask for less"
            raise RequestError(503, message, Retry_After="5") from error

    def _leave(self) -> None:
        self.busy -= 1

    def close(self) -> None:
        """Take no more calls; running ones end by themselves."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def exit_if_busy(self) -> None:
        """Exit the process at once if a call still runs, because its thread cannot be stopped."""
        if self.busy:
            logging.shutdown()
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(0)


# ---- Bodies --------------------------------------------------------------------------------------
class BodyReader:
    """Reads the whole body before the request counts as active, so that a slow sender holds up nobody."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._buffered = 0  # bytes of bodies that have not come to their end

    async def read(self, scope: Scope, receive: Receive) -> bytes:
        declared = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
        if int(declared) > self._limits.body:
            raise self._too_large()
        try:
            async with asyncio.timeout(self._limits.body_seconds):
                return await self._collect(receive)
        except TimeoutError:
            message = f"the request's body did not come within {self._limits.body_seconds:g} seconds"
            raise RequestError(408, message, Connection="close") from None

    async def _collect(self, receive: Receive) -> bytes:
        """Join the parts of a body; count them as they come, because its headers may lie."""
        body, is_more = bytearray(), True
        try:
            while is_more:
                message = await receive()
                if message["type"] != "http.request":
                    raise RequestError(400, "the request's body broke off")
                part, is_more = message.get("body", b""), message.get("more_body", False)
                body += part
                self._buffered += len(part)
                if len(body) > self._limits.body:
                    raise self._too_large()
                if self._buffered > self._limits.bodies:
                    reason = "too much is sent to the service at a time; try again soon"
                    raise RequestError(503, reason, Retry_After="2")
        finally:
            self._buffered -= len(body)
        return bytes(body)

    def _too_large(self) -> RequestError:
        most = self._limits.body
        return RequestError(413, f"the request's body is larger than {most:,} bytes, the most this service reads")


def with_body(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that gives the application a body that was read before, then what `receive` gives."""
    unread = [body]

    async def receive_body() -> Message:
        return {"type": "http.request", "body": unread.pop(), "more_body": False} if unread else await receive()

    return receive_body


# ---- Connections ---------------------------------------------------------------------------------
# uvicorn waits without limit for the end of a request's headers, and for a client that does not read its answer. Here
# both have a time limit and headers have a size limit. Where there are more connections than the process may open
# files, the one that has been idle the longest is closed.
_SPARE_FILES = 128  # open files for everything that is not a connection


class Connection(HttpToolsProtocol):
    """One client's connection; `limited` returns a subclass with other limits."""

    limits: ClassVar[Limits] = Limits()
    most: ClassVar[int] = 1 << 30
    idle: ClassVar[dict["Connection", None]] = {}  # connections without a request in progress, the longest idle first

    @classmethod
    def limited(cls, limits: Limits) -> type[Self]:
        """Return this class under some limits, for as many connections as the process may open files."""
        own = {"limits": limits, "most": raise_file_limit() - _SPARE_FILES, "idle": {}}
        return type(f"Limited{cls.__name__}", (cls,), own)

    def __init__(self, config: Config, server_state: ServerState, app_state: dict[str, Any], _loop: Any = None) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._deadline: asyncio.TimerHandle | None = None
        self._write_deadline: asyncio.TimerHandle | None = None
        self._head_bytes = 0
        self._in_head = True
        self._in_body = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.idle[self] = None
        self._expect_head()
        if len(self.connections) > self.most and self.idle:
            oldest = next(iter(self.idle))
            del self.idle[oldest]
            oldest.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self.idle.pop(self, None)
        for timer in (self._deadline, self._write_deadline):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._in_head:
            self._head_bytes += len(data)
            if self._deadline is None:
                self._expect_head()
        super().data_received(data)
        if self._in_head and self._head_bytes > self.limits.head and not self.transport.is_closing():
            self._refuse_head()

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002
        """Refuse what the parser cannot read; a head that was refused has its answer already."""
        if not self.transport.is_closing():
            self._refuse(400, "this is no HTTP/1.1 request that can be read")

    def on_headers_complete(self) -> None:
        if len(self.url) + sum([len(name) + len(value) + 4 for name, value in self.headers]) > self.limits.head:
            self._refuse_head()
            raise ValueError("the head is too long")  # stops the parser
        self._in_head, self._in_body = False, True
        self.idle.pop(self, None)
        self._cancel_deadline()
        self.dispatch()

    def dispatch(self) -> None:
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._in_body = False
        if self._deadline is not None:  # this was the rest of a body that was refused
            self._become_idle()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        if self._in_body:  # discard the rest of a refused body for a while, so that its sender reads the answer
            self._deadline = self.loop.call_later(self.limits.head_seconds, self.transport.abort)
        else:
            self._become_idle()
        super().on_response_complete()

    def _become_idle(self) -> None:
        self._in_head, self._head_bytes = True, 0
        self._cancel_deadline()
        if not self.transport.is_closing() and not self.pipeline:
            self.idle[self] = None

    def pause_writing(self) -> None:
        super().pause_writing()
        self._write_deadline = self.loop.call_later(self.limits.seconds, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._write_deadline is not None:
            self._write_deadline.cancel()
            self._write_deadline = None

    def _expect_head(self) -> None:
        self._deadline = self.loop.call_later(self.limits.head_seconds, self._give_up)

    def _cancel_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _give_up(self) -> None:
        """Close a connection whose headers did not come; say why to a client that has sent some."""
        self._deadline = None
        if self.transport.is_closing():
            return
        if self._head_bytes:
            self._refuse(408, f"the request's headers did not end within {self.limits.head_seconds:g} seconds")
        else:
            self.transport.close()

    def _refuse_head(self) -> None:
        self._refuse(431, f"the request's first line and headers are longer than {self.limits.head:,} bytes")

    def _refuse(self, status: int, message: str) -> None:
        body = error_body(message)
        head = f"HTTP/1.1 {status} Refused\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n"
        self.transport.write(head.encode("ascii") + b"connection: close\r\n\r\n" + body)
        self.transport.close()


def raise_file_limit() -> int:
    """Let this process open as many files as the system allows, and return how many."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    soft = max(soft, 1 << 16 if hard == resource.RLIM_INFINITY else min(hard, 1 << 16))
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return soft

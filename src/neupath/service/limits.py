"""The limits of the service, the checks of requests against them, and the worker threads."""

import asyncio
import logging
import os
import sys
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from typing import ParamSpec, TypeVar

from starlette.types import Receive

from neupath._runtime.progress import Cancellation, WorkCancelled, current
from neupath._runtime.resources import total_memory
from neupath.errors import QueryError
from neupath.graph.metapath import MetaPath
from neupath.service.schemas import RequestError


# ---- Limits --------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Limits:
    """How much one request, one client and all of them together may ask for; `--limit NAME=VALUE` sets one."""

    body: int = 4 << 20  # bytes of a request's body
    bodies: int = 256 << 20  # bytes of all bodies that are being received, and of all requests that wait to be parsed
    head: int = 64 << 10  # bytes of a request's first line and headers
    k: int = 1000
    queries: int = 1000  # queries per request
    hits: int = 100_000  # queries times k per request
    pairs: int = 10_000  # labelled pairs per job; `infer` without a job takes 500
    lines: int = 10_000  # nodes and edges per update
    steps: int = 20  # steps of a meta-path
    text: int = 20_000  # characters of an id, a name, a meta-path or a condition
    page: int = 200  # nodes that one look-up returns
    paths: int = (
        1000  # path instances of an explanation, also those of all its groups together, and meta-paths of a list
    )
    rows: int = 50_000_000  # pairs in the result of a join job
    permutations: int = 1000  # permuted graphs of a significance job
    work: int = 10_000_000_000  # the largest budget of a what-if job
    epochs: int = 200  # epochs of a training job
    width: int = 1024  # the widest embedding of a training job
    seconds: float = 30.0  # seconds from a whole request to its answer; jobs may take longer
    body_seconds: float = 10.0  # seconds from a request's headers to the end of its body
    idle_seconds: float = 20.0
    """Seconds from connecting, or from an answer, to the end of the next request's headers."""
    active: int = 256  # requests in progress; a request counts from the end of its body
    heavy: int = 32  # requests that wait for a thread
    streams: int = 64  # clients that listen to jobs
    waiting_jobs: int = 8
    running_jobs: int = 1
    kept_jobs: int = 100  # finished jobs; the oldest is removed first
    job_seconds: float = 6 * 3600.0  # seconds that a job may run
    job_bytes: int = field(default_factory=lambda: max(1 << 30, total_memory() // 4))
    """Bytes of memory that the process of a job, or of a measure over the whole graph, may take."""
    result_bytes: int = 16 << 30  # bytes on disk of the results of all jobs; the oldest is removed first
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

    def check_groups(self, limit: int, paths: int) -> None:
        self.check_paths(limit)
        if limit * paths > self.paths:
            raise QueryError(
                f"limit is {limit} and paths is {paths}; this service lists at most {self.paths:,} paths of all groups "
                f"together"
            )

    def check_steps(self, steps: int) -> None:
        if steps > self.steps:
            raise QueryError(f"max_steps is {steps}; this service walks at most {self.steps}")

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


_LONG = 1.0  # seconds after which a call looks whether its client is still there
receiving: ContextVar[Receive | None] = ContextVar("receiving", default=None)
"""What tells the request at work that its client has gone."""


class WorkerThreads:
    """A thread pool with a bounded queue; `free_memory` is called when a call runs out of memory.

    A call is cancelled when its request has timed out or its client has gone: it ends at its next `check_cancelled`,
    and counts as busy until then.
    """

    def __init__(
        self, threads: int, waiting: int, seconds: float, free_memory: Callable[[], None],
        advice: str = "ask for less, or start a job",
    ) -> None:  # fmt: skip
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="neupath-service")
        self._most = threads + waiting
        self._seconds, self._free_memory, self._advice = seconds, free_memory, advice
        self._running: set[Cancellation] = set()

    @property
    def busy(self) -> int:
        return len(self._running)

    async def run(self, function: Callable[P, T], *arguments: P.args, **options: P.kwargs) -> T:
        """Call a function in a thread; 503 where too many wait or memory runs out, 504 where it takes too long."""
        return await self.run_or_advise(self._advice, partial(function, *arguments, **options))

    async def run_or_advise(self, advice: str, function: Callable[[], T]) -> T:
        """Call a function in a thread like `run`, with advice of its own where it takes too long."""
        if self.busy >= self._most:
            message = f"the service is busy with {self.busy} other requests; try again soon"
            raise RequestError(503, message, Retry_After="2")
        loop, cancellation = asyncio.get_running_loop(), Cancellation()
        future: Future[T] = self._pool.submit(_call, cancellation, function)
        self._running.add(cancellation)

        def leave(_: Future[T]) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(self._running.discard, cancellation)

        future.add_done_callback(leave)
        try:
            return await self._wait(asyncio.wrap_future(future))
        except TimeoutError as error:
            message = f"this takes longer than {self._seconds:g} seconds and was stopped; {advice}"
            raise RequestError(504, message) from error
        except MemoryError as error:
            self._free_memory()
            message = str(error) or "there is not enough memory for this now; try again, or ask for less"
            raise RequestError(503, message, Retry_After="5") from error
        finally:
            cancellation.is_cancelled = True

    async def _wait(self, call: "asyncio.Future[T]") -> T:
        """Wait for the result of a call; after a second, also for its client to go."""
        gone: asyncio.Future[None] | None = None
        try:
            await asyncio.wait((call,), timeout=min(_LONG, self._seconds))
            if not call.done():
                gone = asyncio.ensure_future(_client_to_go())
                rest = max(0.0, self._seconds - _LONG)
                await asyncio.wait((call, gone), timeout=rest, return_when=asyncio.FIRST_COMPLETED)
            if call.done():
                return call.result()
            if gone is not None and gone.done():
                raise RequestError(499, "the client has gone")
            raise TimeoutError
        finally:
            call.cancel()  # one that has not begun never will
            if gone is not None:
                gone.cancel()

    def close(self) -> None:
        """Take no more calls, and cancel running ones."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        for cancellation in self._running:
            cancellation.cancel()

    def exit_if_busy(self) -> None:
        """Exit the process at once if a call still runs, because its thread cannot be stopped."""
        if self.busy:
            logging.shutdown()
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(0)


def _call(cancellation: Cancellation, function: Callable[[], T]) -> T:
    """Call a function in this thread, where it can be cancelled."""
    current.cancellation = cancellation
    try:
        return function()
    except WorkCancelled:
        message = ""  # which nobody waits for
    except MemoryError as error:
        message = str(error)
    finally:
        current.cancellation = None
    raise MemoryError(message)  # without the frames of the error that came, which hold the arrays that must go


async def _client_to_go() -> None:
    """Return when the client of this request has closed its connection."""
    receive = receiving.get()
    if receive is None:  # this is no request over HTTP
        await asyncio.Event().wait()
        return
    while (await receive())["type"] != "http.disconnect":
        pass

"""Workers: threads for work that would hold up others, bounded in number, in waiting room and in time."""

import asyncio
import logging
import os
import sys
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from neupath.service.refusals import Refusal

P = ParamSpec("P")
T = TypeVar("T")


class Workers:
    """Some threads and a bounded queue before them.

    A thread cannot be stopped: work whose request has run out of time goes on, and counts as busy until it ends, so
    that there are never more than `threads` at work and `waiting` behind them. `relieve` frees what memory it can
    where some work ran out of it.
    """

    def __init__(self, threads: int, waiting: int, seconds: float, relieve: Callable[[], None] = lambda: None) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="neupath-service")
        self._room = threads + waiting
        self._seconds = seconds
        self._relieve = relieve
        self.busy = 0

    async def run(self, work: Callable[P, T], *arguments: P.args, **options: P.kwargs) -> T:
        """Do some work in a thread; refuse it where too much is waiting, give up on it where it takes too long."""
        if self.busy >= self._room:
            raise Refusal(503, f"the service is busy with {self.busy} other requests; try again soon", Retry_After="2")
        loop = asyncio.get_running_loop()
        future: Future[T] = self._pool.submit(work, *arguments, **options)
        self.busy += 1
        future.add_done_callback(lambda _: _tell(loop, self._leave))
        try:
            return await asyncio.wait_for(asyncio.wrap_future(future), self._seconds)
        except TimeoutError as error:
            raise Refusal(
                504, f"this takes longer than {self._seconds:g} seconds; ask for less, or start a job"
            ) from error
        except MemoryError as error:
            self._relieve()
            raise Refusal(
                503, "there is not enough memory for this now; try again, or ask for less", Retry_After="5"
            ) from error

    def _leave(self) -> None:
        self.busy -= 1

    def close(self) -> None:
        """Take no more work; what is running ends by itself."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def abandon(self) -> None:
        """End this process at once where some work is still running: a thread cannot be stopped otherwise."""
        if self.busy:
            logging.shutdown()
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(0)


def _tell(loop: asyncio.AbstractEventLoop, done: Callable[[], None]) -> None:
    if not loop.is_closed():
        loop.call_soon_threadsafe(done)

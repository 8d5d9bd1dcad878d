"""Threads: blocks of queries worked on side by side, and the scratch arrays that each thread keeps for its next one."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from threading import local

import numpy as np
from numpy.typing import NDArray

from neupath.errors import QueryError
from neupath.machine import count_cores

_BLOCK = 1024
"""Queries a thread takes at a time."""
FEW = 16
"""Queries that are not worth a second thread."""
_QUICK = 1_000_000
"""Additions that are done before another thread has begun."""
_A_QUERY = 50
"""What a query costs besides, in additions."""
_MOST_KEPT = 1 << 24
_scratch = local()
Scratch = tuple[NDArray[np.float64], NDArray[np.uint32], NDArray[np.float64]]


def borrow_scratch(size: int) -> Scratch:
    """Lend sums, all 0, and room for one more column and score than there are; kept for this thread's next search.

    A search that breaks off does not return them, and leaves nothing behind.
    """
    kept: Scratch | None = getattr(_scratch, "arrays", None)
    _scratch.arrays = None
    if kept is None or len(kept[0]) < size:
        return np.zeros(size), np.empty(size + 1, dtype=np.uint32), np.empty(size + 1)
    return kept


def return_scratch(scratch: Scratch) -> None:
    """Take back what was borrowed, with sums that are 0 again."""
    if len(scratch[0]) <= _MOST_KEPT:
        _scratch.arrays = scratch


def in_blocks(search: Callable[[slice], None], count: int, threads: int | None, work: float) -> None:
    """Search blocks of queries on some threads, each writing its own part of the result.

    `work` is how many additions a mean query takes: what is done in no time is not worth a second thread.
    """
    is_quick = threads is None and count * (work + _A_QUERY) < _QUICK
    workers = 1 if is_quick else _count_threads(threads)
    if count <= FEW or workers < 2:
        search(slice(0, count))
        return
    step = min(_BLOCK, -(-count // workers))
    for _ in _pool(workers).map(search, (slice(at, at + step) for at in range(0, count, step))):
        pass


@cache
def _pool(workers: int) -> ThreadPoolExecutor:
    """Return threads that wait for work; they are started once."""
    return ThreadPoolExecutor(workers, thread_name_prefix="neupath")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)  # a child has none of its parent's threads


def check_threads(threads: int | None) -> None:
    """Refuse a number of threads that is none."""
    if threads is not None and threads < 1:
        raise QueryError(f"threads is {threads}; use at least 1, or None for one a core")


def _count_threads(threads: int | None) -> int:
    if threads is None:
        return count_cores()
    check_threads(threads)
    return threads

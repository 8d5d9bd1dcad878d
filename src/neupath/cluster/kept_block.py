"""What each thread of a worker read last, for its next task; one at a time, so that its memory is bounded."""

from collections.abc import Callable, Hashable
from threading import get_ident
from typing import TypeVar, cast

T = TypeVar("T")
_last: dict[int, tuple[Hashable, object]] = {}


def keep_last(key: Hashable, build: Callable[[], T]) -> T:
    """Return what this thread was asked for last, if the key is the same, or build it."""
    thread = get_ident()
    if thread not in _last or _last[thread][0] != key:
        _last.pop(thread, None)  # what was kept goes before the next one comes
        _last[thread] = key, build()
    return cast(T, _last[thread][1])


def forget() -> None:
    """Keep nothing any more: the work is done, and the worker may live on."""
    _last.clear()

"""What a worker read last, for its next task; one at a time, so that its memory is bounded."""

from collections.abc import Callable, Hashable
from threading import local
from typing import TypeVar, cast

T = TypeVar("T")
_last = local()


def keep_last(key: Hashable, build: Callable[[], T]) -> T:
    """Return what this thread was asked for last, if the key is the same, or build it."""
    if getattr(_last, "key", None) != key:
        _last.key = _last.value = None  # what was kept goes before the next one comes
        _last.value = build()
        _last.key = key
    return cast(T, _last.value)

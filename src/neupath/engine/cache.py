"""Kept: what was computed of a graph, for the next who asks; the least recently used goes when it is too much."""

import os
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from threading import Lock, RLock
from typing import Generic, TypeVar, cast
from weakref import WeakKeyDictionary

import numpy as np
from scipy.sparse import csr_array

from neupath._runtime.resources import total_memory
from neupath.errors import QueryError
from neupath.graph.hin import HIN

# ---- Shelf


K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class LRU(Generic[K, V]):
    """Keeps values by key; the least recently used goes when there are too many, or they are too large together.

    Each key is built by one thread at a time: who asks for the same waits for it, and nobody waits for another.

    >>> shelf = LRU(2, 100, len)
    >>> [shelf.get(word, word.upper) for word in ("a", "b", "c", "b")]
    ['A', 'B', 'C', 'B']
    >>> shelf.find("a") is None, len(shelf)
    (True, 2)
    """

    def __init__(self, most: int, most_bytes: int, size_of: Callable[[V], int]) -> None:
        self._most, self._most_bytes, self._size_of = most, most_bytes, size_of
        self._entries: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self._building: dict[K, Lock] = {}
        self._lock = Lock()
        self.bytes = 0

    def __len__(self) -> int:
        return len(self._entries)

    def find(self, key: K) -> V | None:
        """Return what is kept under a key, which is now the one used last; nothing where it is not."""
        with self._lock:
            found = self._entries.get(key)
            if found is None:
                return None
            self._entries.move_to_end(key)
            return found[0]

    def get(self, key: K, build: Callable[[], V], fits: Callable[[V], bool] = lambda _: True) -> V:
        """Return what is kept under a key, building it where it is not, or where it fits no longer."""
        found = self.find(key)
        if found is not None and fits(found):
            return found
        with self._lock:
            building = self._building.setdefault(key, Lock())
        try:
            with building:
                found = self.find(key)
                return self.keep(key, build()) if found is None or not fits(found) else found
        finally:
            with self._lock:
                self._building.pop(key, None)

    def keep(self, key: K, value: V) -> V:
        """Keep a value under a key, instead of the one there was, and return it."""
        size = self._size_of(value)
        with self._lock:
            self._remove(key)
            if size <= self._most_bytes:
                self._entries[key] = value, size
                self.bytes += size
            while len(self._entries) > self._most or self.bytes > self._most_bytes:
                self._remove(next(iter(self._entries)))
        return value

    def _remove(self, key: K) -> None:
        _, size = self._entries.pop(key, (None, 0))
        self.bytes -= size

    def clear(self) -> None:
        """Keep nothing more, where memory is short."""
        with self._lock:
            self._entries.clear()
            self.bytes = 0


# ---- Kept


T = TypeVar("T")
LIMIT = "NEUPATH_CACHE_BYTES"
"""The environment variable that says how many bytes are kept of one graph; a quarter of the memory without it."""


@dataclass
class _GraphCache:
    """What is kept of one graph, the last used last, and a lock for each thing that is being built."""

    entries: OrderedDict[Hashable, object] = field(default_factory=OrderedDict)
    building: dict[Hashable, RLock] = field(default_factory=dict)


_kept: WeakKeyDictionary[HIN, _GraphCache] = WeakKeyDictionary()
_changing = Lock()
"""Held for the time that a dictionary takes to change, never while anything is built."""


def cached(hin: HIN, key: Hashable, build: Callable[[], T]) -> T:
    """Return what was built for this graph under this key, building it where it is not kept.

    Two threads that ask for the same build it once; those who ask for something else do not wait.
    """
    found = find_cached(hin, key)
    if found is not None:
        return cast(T, found)
    with _changing:
        building = _kept.setdefault(hin, _GraphCache()).building.setdefault(key, RLock())
    with building:
        found = find_cached(hin, key)
        if found is None:
            found = build()
            _keep(_kept[hin], key, found)
        return cast(T, found)


def find_cached(hin: HIN, key: Hashable) -> object | None:
    """Return what is kept under a key, which is now the one used last; nothing where it is not."""
    kept = _kept.get(hin)
    if kept is None:
        return None
    with _changing:
        found = kept.entries.get(key)
        if found is not None:
            kept.entries.move_to_end(key)
        return found


def _keep(kept: _GraphCache, key: Hashable, value: object) -> None:
    limit = _limit()
    with _changing:
        kept.entries[key] = value
        kept.building.pop(key, None)
        while len(kept.entries) > 1 and bytes_of(list(kept.entries.values())) > limit:
            kept.entries.popitem(last=False)


def bytes_of(value: object) -> int:
    """Return how many bytes of arrays a value holds, each array once however often it is held."""
    arrays: dict[int, int] = {}
    _count(value, arrays)
    return sum(arrays.values())


def _count(value: object, arrays: dict[int, int]) -> None:
    if isinstance(value, np.ndarray):
        arrays[id(value)] = value.nbytes
    elif isinstance(value, csr_array):
        _count((value.data, value.indices, value.indptr), arrays)
    elif isinstance(value, tuple | list):
        for part in value:
            _count(part, arrays)
    elif isinstance(size := getattr(value, "num_bytes", None), int):
        arrays[id(value)] = size
    else:
        for name in getattr(value, "__dataclass_fields__", {}):
            _count(getattr(value, name), arrays)


def _limit() -> int:
    given = os.environ.get(LIMIT)
    if given is None:
        return total_memory() // 4
    if not given.isdecimal():
        raise QueryError(f"{LIMIT} is {given!r}; give a number of bytes, such as 2000000000")
    return int(given)

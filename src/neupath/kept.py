"""Kept: what was computed of a graph, for the next who asks; the least recently used goes when it is too much."""

import os
from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import RLock
from typing import TypeVar, cast
from weakref import WeakKeyDictionary

import numpy as np
from scipy.sparse import csr_array

from neupath.errors import QueryError
from neupath.graph import HIN

T = TypeVar("T")
LIMIT = "NEUPATH_CACHE_BYTES"
"""The environment variable that says how many bytes are kept of one graph; a quarter of the memory without it."""
_kept: WeakKeyDictionary[HIN, OrderedDict[Hashable, object]] = WeakKeyDictionary()
_building = RLock()


def cached(hin: HIN, key: Hashable, build: Callable[[], T]) -> T:
    """Return what was built for this graph under this key, building it where it is not kept."""
    found = find_kept(hin, key)
    if found is not None:
        return cast(T, found)
    with _building:  # two threads that ask for the same build it once
        found = find_kept(hin, key)
        if found is None:
            found = build()
            _keep(_kept.setdefault(hin, OrderedDict()), key, found)
        return cast(T, found)


def find_kept(hin: HIN, key: Hashable) -> object | None:
    """Return what is kept under a key, which is now the one used last; nothing where it is not."""
    entries = _kept.get(hin)
    if entries is None or key not in entries:
        return None
    with _building:
        found = entries.get(key)
        if found is not None:
            entries.move_to_end(key)
        return found


def _keep(entries: OrderedDict[Hashable, object], key: Hashable, value: object) -> None:
    entries[key] = value
    sizes = {name: bytes_of(entry) for name, entry in entries.items()}
    total, limit = sum(sizes.values()), _limit()
    for name in list(entries)[:-1]:
        if total <= limit:
            return
        total -= sizes[name]
        del entries[name]


def bytes_of(value: object) -> int:
    """Return how many bytes of arrays a value holds."""
    if isinstance(value, np.ndarray):
        return value.nbytes
    if isinstance(value, csr_array):
        return int(value.data.nbytes + value.indices.nbytes + value.indptr.nbytes)
    if isinstance(value, (tuple, list)):
        return sum(bytes_of(part) for part in value)
    fields = getattr(value, "__dataclass_fields__", {})
    return sum(bytes_of(getattr(value, name)) for name in fields)


def _limit() -> int:
    given = os.environ.get(LIMIT)
    if given is None:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 4
    if not given.isdecimal():
        raise QueryError(f"{LIMIT} is {given!r}; give a number of bytes, such as 2000000000")
    return int(given)

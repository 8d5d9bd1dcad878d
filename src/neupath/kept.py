"""Kept: what was computed of a graph, for the next who asks; the least recently used goes when it is too much."""

import os
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from threading import Lock, RLock
from typing import TypeVar, cast
from weakref import WeakKeyDictionary

import numpy as np
from scipy.sparse import csr_array

from neupath.errors import QueryError
from neupath.graph import HIN
from neupath.machine import total_memory

T = TypeVar("T")
LIMIT = "NEUPATH_CACHE_BYTES"
"""The environment variable that says how many bytes are kept of one graph; a quarter of the memory without it."""


@dataclass
class _Kept:
    """What is kept of one graph, the last used last, and a lock for each thing that is being built."""

    entries: OrderedDict[Hashable, object] = field(default_factory=OrderedDict)
    building: dict[Hashable, RLock] = field(default_factory=dict)


_kept: WeakKeyDictionary[HIN, _Kept] = WeakKeyDictionary()
_changing = Lock()
"""Held for the time that a dictionary takes to change, never while anything is built."""


def cached(hin: HIN, key: Hashable, build: Callable[[], T]) -> T:
    """Return what was built for this graph under this key, building it where it is not kept.

    Two threads that ask for the same build it once; those who ask for something else do not wait.
    """
    found = find_kept(hin, key)
    if found is not None:
        return cast(T, found)
    with _changing:
        building = _kept.setdefault(hin, _Kept()).building.setdefault(key, RLock())
    with building:
        found = find_kept(hin, key)
        if found is None:
            found = build()
            _keep(_kept[hin], key, found)
        return cast(T, found)


def find_kept(hin: HIN, key: Hashable) -> object | None:
    """Return what is kept under a key, which is now the one used last; nothing where it is not."""
    kept = _kept.get(hin)
    if kept is None:
        return None
    with _changing:
        found = kept.entries.get(key)
        if found is not None:
            kept.entries.move_to_end(key)
        return found


def _keep(kept: _Kept, key: Hashable, value: object) -> None:
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

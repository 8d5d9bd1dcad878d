"""LRU cache, and one per graph for the matrices derived from it.

What is cached of a graph, by key:

    ("W·Wᵀ", half)                       product of a symmetric meta-path, shared by all measures that do not scale it
    ("link", link)                       weights of a link with conditions: a relation of which some edges are left out
    ("product", steps)                   product of consecutive steps, where all weights are whole numbers
    (measure, params, metapath)          product of any other measure over a meta-path
    "A", "N", "U"                        adjacency matrix of all nodes, for measures over the whole graph; normalised
    ("commutetime", …), ("simrank", …)   what these measures compute once per graph
    ("explain", …), ("scaled step", …)   step matrices of `explain` and of `infer`
    ("leg", …), ("norms", …), …          step matrices and norms of `relate`
    ("steps", …), ("walk counts", …)     step matrices and numbers of walks of DWPC over paths without repeated nodes
    ("permutations", …), ("mixing", …)   permuted edges of a relation, and how well they are mixed
    ("null scores", …)                   scores in permuted graphs, by degrees

The least recently used entries go when the entries of one graph together exceed the byte limit: NEUPATH_CACHE_BYTES,
by default a quarter of the memory. The newest entry stays, however large. The cache of a graph goes with the graph.

A graph of a store has a disk cache besides (`_runtime/disk_cache.py`). An entry with a `FileForm`, which says how it is
written to files, is read from there in the next process.
"""

import os
import sys
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import partial
from threading import Lock, RLock
from typing import Any, Generic, TypeVar, cast
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from neupath._runtime.disk_cache import Arrays
from neupath.errors import QueryError
from neupath.graph.hin import HIN, Csr

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
T = TypeVar("T")


class LRU(Generic[K, V]):
    """Least-recently-used cache of at most `most` entries and `most_bytes` (by `size_of`) that builds what it lacks.

    A value of more than `most_bytes` is returned but not cached. One thread at a time builds a key: others wait for it
    if they need the same key, and go on if they need another. A build may get other keys.

    >>> cache = LRU(2, 100, len)
    >>> [cache.get(word, word.upper) for word in ("a", "b", "c", "b")]
    ['A', 'B', 'C', 'B']
    >>> cache.find("a") is None, len(cache)
    (True, 2)
    """

    def __init__(self, most: int, most_bytes: int, size_of: Callable[[V], int]) -> None:
        self._most, self._most_bytes, self._size_of = most, most_bytes, size_of
        self._entries: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self._building: dict[K, RLock] = {}
        self._lock = Lock()
        self.bytes = 0

    def __len__(self) -> int:
        return len(self._entries)

    def values(self) -> list[V]:
        """Return all cached values, the least recently used first."""
        return [value for value, _ in self._entries.values()]

    def find(self, key: K) -> V | None:
        """Return the cached value of a key and mark it as used, or None."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                return None
            self._entries.move_to_end(key)
            return entry[0]

    def get(self, key: K, build: Callable[[], V], is_valid: Callable[[V], bool] = lambda _: True) -> V:
        """Return the cached value of a key; build and cache it where there is no valid one."""
        value = self.find(key)
        if value is not None and is_valid(value):
            return value
        with self._lock:
            building = self._building.setdefault(key, RLock())
        try:
            with building:
                value = self.find(key)
                return self.put(key, build()) if value is None or not is_valid(value) else value
        finally:
            with self._lock:
                self._building.pop(key, None)

    def put(self, key: K, value: V) -> V:
        """Cache a value in place of the one that the key had, evict what exceeds the limits, and return the value."""
        size = self._size_of(value)
        with self._lock:
            self._remove(key)
            if size <= self._most_bytes:
                self._entries[key] = value, size
                self.bytes += size
            while self._is_too_full():
                self._remove(next(iter(self._entries)))
        return value

    def drop(self, is_dropped: Callable[[K], bool]) -> None:
        """Remove the entries of some keys."""
        with self._lock:
            for key in filter(is_dropped, list(self._entries)):
                self._remove(key)

    def clear(self) -> None:
        with self._lock:
            self._entries.clear()
            self.bytes = 0

    def _is_too_full(self) -> bool:
        return len(self._entries) > self._most or self.bytes > self._most_bytes

    def _remove(self, key: K) -> None:
        _, size = self._entries.pop(key, (None, 0))
        self.bytes -= size


# ---- Matrices derived from a graph ---------------------------------------------------------------
LIMIT_VARIABLE = "NEUPATH_CACHE_BYTES"
"""The environment variable that limits the cache of one graph, in bytes."""
_LITTLE = 1 << 26  # bytes below which the cache does not look up how much memory there is


class _GraphCache(LRU[Hashable, object]):
    """The derived matrices of one graph. Entries may share arrays, so the size is that of all distinct arrays."""

    def __init__(self) -> None:
        super().__init__(most=sys.maxsize, most_bytes=sys.maxsize, size_of=lambda _: 0)

    def _is_too_full(self) -> bool:
        if len(self) < 2 and LIMIT_VARIABLE not in os.environ:
            return False
        size = bytes_of(self.values())
        return size > _limit(size) and len(self) > 1


_caches: WeakKeyDictionary[HIN, _GraphCache] = WeakKeyDictionary()
_creating = Lock()


def graph_cache(hin: HIN) -> LRU[Hashable, object]:
    """Return the cache of a graph."""
    cache = _caches.get(hin)
    if cache is None:
        with _creating:
            cache = _caches.setdefault(hin, _GraphCache())
    return cache


@dataclass(frozen=True)
class FileForm(Generic[T]):
    """How a value is written to files and read back.

    Parameters
    ----------
    pack
        Returns the arrays of a value, which become read-only, and facts that JSON can hold.
    unpack
        Returns the value; raises ValueError if the arrays do not fit together. Kernels check no bounds, so it must.
    """

    pack: Callable[[T], Arrays]
    unpack: Callable[[Arrays], T]


def cached(hin: HIN, key: Hashable, build: Callable[[], T], form: FileForm[T] | None = None) -> T:
    """Return what the cache of a graph holds under a key; build it the first time.

    Parameters
    ----------
    hin
        The graph.
    key
        Numbers, texts and relations, or tuples of them: with a form, the key on disk is their `repr`.
    build
        Computes the value.
    form
        How the value is written to files, where the graph has a disk cache.
    """
    make = build if form is None else partial(_read_or_build, hin, key, build, form)
    return cast(T, graph_cache(hin).get(key, make))


def is_cached(hin: HIN, key: Hashable) -> bool:
    """Whether a value is in the memory cache of a graph, or on disk."""
    return graph_cache(hin).find(key) is not None or (hin.disk_cache is not None and hin.disk_cache.has(repr(key)))


def _read_or_build(hin: HIN, key: Hashable, build: Callable[[], T], form: FileForm[T]) -> T:
    disk, text = hin.disk_cache, repr(key)
    if disk is not None and (entry := disk.find(text)) is not None:
        try:
            return form.unpack(entry)
        except (ValueError, TypeError, KeyError, IndexError):  # its checksums are right, and it is not what was written
            disk.remove(text)
    value = build()
    entry = form.pack(value)
    for array in entry.arrays.values():
        array.flags.writeable = False  # as those from disk: kernels are compiled once for both
    if disk is not None:
        disk.put(text, entry)
    return value


_PARTS = ("data", "indices", "indptr")


def pack_matrix(name: str, matrix: Csr) -> dict[str, NDArray[Any]]:
    """Return the arrays of a matrix by name, for a `FileForm`."""
    return {f"{name}.{part}": getattr(matrix, part) for part in _PARTS}


def unpack_matrix(name: str, entry: Arrays, shape: tuple[int, int]) -> Csr:
    """Return the matrix that `pack_matrix` gave its arrays; raise ValueError if they make none of this shape."""
    parts = tuple(entry.arrays[f"{name}.{part}"] for part in _PARTS)
    matrix = csr_array(parts, shape=shape, copy=False)
    matrix.check_format(full_check=True)
    return matrix


def check_lengths(entry: Arrays, **lengths: int) -> None:
    """Raise ValueError unless some arrays of an entry are of one dimension and have these lengths.

    >>> check_lengths(Arrays({"roots": np.ones(3)}), roots=3)
    """
    for name, length in lengths.items():
        if entry.arrays[name].shape != (length,):
            raise ValueError(f"{name} has shape {entry.arrays[name].shape} instead of ({length},)")


def bytes_of(value: object) -> int:
    """Return how many bytes of arrays a value holds, each array once."""
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
    elif isinstance(size := getattr(value, "num_bytes", getattr(value, "nbytes", None)), int):  # `nbytes`: a tensor
        arrays[id(value)] = size
    elif hasattr(value, "state_dict"):  # a module of tensors
        for tensor in value.state_dict(keep_vars=True).values():
            _count(tensor, arrays)
    else:
        for name in getattr(value, "__dataclass_fields__", {}):
            _count(getattr(value, name), arrays)


def _limit(size: int) -> int:
    """Return the byte limit of a cache that holds `size` bytes."""
    text = os.environ.get(LIMIT_VARIABLE)
    if text is None:
        if size <= _LITTLE:
            return _LITTLE
        from neupath._runtime.resources import total_memory

        return total_memory() // 4
    if not text.isdecimal():
        raise QueryError(f"{LIMIT_VARIABLE} is {text!r}; give a number of bytes, such as 2000000000")
    return int(text)

"""Shelf: what is fitted once and asked for often, bounded in number and in bytes."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Shelf(Generic[K, V]):
    """Keeps values by key; the least recently used goes when there are too many, or they are too large together.

    Each key is built by one thread at a time: who asks for the same waits for it, and nobody waits for another.

    >>> shelf = Shelf(2, 100, len)
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

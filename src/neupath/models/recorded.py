"""Recorded: an array that one writer changes in place, and of which readers can have every version."""

from collections.abc import Callable
from weakref import ref

import numpy as np

from neupath.models.flat_graph import Ints

_MOST_RECORDS = 128
Record = tuple[Ints, Ints]
"""Places, and what stands there from then on."""


class Version:
    """An array as it was: a base, and the first records of a list that only grows.

    The array itself is made when it is asked for. The newest version keeps it; others do while somebody uses it, so
    that many old versions take little memory.
    """

    def __init__(self, base: Ints, records: list[Record], length: int) -> None:
        self.base = base
        self._records, self._length = records, length
        self._newest = True
        self._made: Callable[[], Ints | None] = lambda: None

    @property
    def array(self) -> Ints:
        """The whole array."""
        found = self._made()
        if found is None:
            found = self._make()
            self._made = (lambda: found) if self._newest else ref(found)
        return found

    def _make(self) -> Ints:
        if not self._length:
            return self.base
        found = self.base.copy()
        places, values = (np.concatenate(part) for part in zip(*self._records[: self._length], strict=True))
        found[places] = values  # of two records of one place the last one stands
        return found

    def retire(self) -> None:
        """Be the newest no longer."""
        self._newest, found = False, self._made()
        if found is not None:
            self._made = ref(found)


class Recorded:
    """An array of numbers, and the records of its changes since a copy; a new copy is made where they outweigh it.

    >>> numbers = Recorded(np.array([1, 2, 3]))
    >>> before = numbers.as_it_is()
    >>> numbers.put(np.array([1]), np.array([7]))
    >>> before.array, numbers.now, numbers.as_it_is().array
    (array([1, 2, 3]), array([1, 7, 3]), array([1, 7, 3]))
    """

    def __init__(self, values: Ints) -> None:
        self.now = values
        self._begin()

    def _begin(self) -> None:
        self._records, self._entries = list[Record](), 0
        self._version = Version(self.now.copy(), self._records, 0)

    def put(self, places: Ints, values: Ints) -> None:
        """Change some entries."""
        if not len(places):
            return
        self.now[places] = values
        self._records.append((places, values))
        self._entries += len(places)
        self._version.retire()
        if self._entries > len(self.now) or len(self._records) > _MOST_RECORDS:
            self._begin()
        else:
            self._version = Version(self._version.base, self._records, len(self._records))

    def as_it_is(self) -> Version:
        """Return this version, which stays as it is."""
        return self._version

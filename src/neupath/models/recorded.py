"""Recorded: an array that one writer changes in place, and of which readers can have every version."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from neupath.models.flat_graph import Ints

_MOST_RECORDS = 128
Record = tuple[Ints, Ints]
"""Places, and what stands there from then on."""


@dataclass(frozen=True)
class Version:
    """An array as it was: a base, and the first records of a list that only grows."""

    base: Ints
    records: list[Record]
    length: int

    @cached_property
    def array(self) -> Ints:
        """The array itself, made when it is first asked for."""
        if not self.length:
            return self.base
        found = self.base.copy()
        places, values = (np.concatenate(part) for part in zip(*self.records[: self.length], strict=True))
        found[places] = values  # of two records of one place the last one stands
        return found


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
        if self._entries > len(self.now) or len(self._records) > _MOST_RECORDS:
            self._begin()
        else:
            self._version = Version(self._version.base, self._records, len(self._records))

    def as_it_is(self) -> Version:
        """Return this version, which stays as it is."""
        return self._version

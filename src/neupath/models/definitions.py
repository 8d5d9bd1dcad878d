"""Definitions: what the classes after one layer are made of, and the numbers they are known by."""

import copy
from dataclasses import dataclass, fields

import numpy as np

from neupath.models.flat_graph import Ints, positions

Key = tuple[int, int]
"""The 128 bits that stand for a class."""


@dataclass(frozen=True)
class Members:
    """Some classes after a layer.

    Class k was `own[k]`, and has `counts[i]` neighbours of class `classes[i]` along edges of kind `kinds[i]`, for every
    i with `to[i]` = k; `to` ascends.
    """

    own: Ints
    to: Ints
    kinds: Ints
    classes: Ints
    counts: Ints


class Definitions:
    """The definitions of classes, in arrays that only grow: what is there never changes."""

    def __init__(self) -> None:
        self._size, self._used = 0, 0
        self._own, self._first, self._last, self._kinds, self._classes, self._counts = np.zeros((6, 16), dtype=np.int64)

    def __len__(self) -> int:
        return self._size

    def add(self, new: Members) -> None:
        """Define classes that follow those known so far."""
        ends = self._used + np.cumsum(np.bincount(new.to, minlength=len(new.own)))
        begins = np.concatenate([[self._used], ends])[:-1]
        size, used = self._size + len(new.own), self._used + len(new.to)
        for name, values in (("_own", new.own), ("_first", begins), ("_last", ends)):
            self._write(name, self._size, values)
        for name, values in (("_kinds", new.kinds), ("_classes", new.classes), ("_counts", new.counts)):
            self._write(name, self._used, values)
        self._size, self._used = size, used

    def _write(self, name: str, at: int, values: Ints) -> None:
        array, end = getattr(self, name), at + len(values)
        if end > len(array):
            array = np.resize(array, max(end, 2 * len(array)))  # a longer copy; the old one stays with its readers
            setattr(self, name, array)
        array[at:end] = values

    def take(self, classes: Ints) -> Members:
        """Return the definitions of some classes, numbered in the order given."""
        first = self._first[classes]
        to, at = positions(first, self._last[classes] - first)
        return Members(self._own[classes], to, self._kinds[at], self._classes[at], self._counts[at])


class Layer:
    """Every class met after one layer, in the order they were met: perhaps those of another layer, and then its own."""

    def __init__(self, known: "Layer | None" = None) -> None:
        self._known = known
        self._before = 0 if known is None else len(known)
        self._numbers: dict[Key, int] = {}
        self._own = Definitions()
        self._kept: Layer | None = None

    def __len__(self) -> int:
        return self._before + len(self._own)

    def as_it_is(self) -> "Layer":
        """Return a layer that never changes, and knows what this one knows now; the same one until there is more."""
        if self._kept is None or len(self._kept) != len(self):
            kept = copy.copy(self)
            kept._own, kept._kept = copy.copy(self._own), None
            self._kept = kept
        return self._kept

    def fork(self) -> "Layer":
        """Return a layer that knows the same classes and may learn others on its own."""
        return Layer(self.as_it_is())

    def find(self, keys: list[Key]) -> Ints:
        """Return the numbers of some classes, -1 for those not met yet."""
        get = self._numbers.get
        found = np.array([get(key, -1) for key in keys], dtype=np.int64)
        found[found >= len(self)] = -1  # what the layer that this one was has learned since
        missing = np.flatnonzero(found < 0)
        if self._known is not None and len(missing):
            found[missing] = self._known.find([keys[i] for i in missing.tolist()])
        return found

    def add(self, keys: list[Key], new: Members) -> Ints:
        """Define classes that were not met before; return their numbers."""
        found = np.arange(len(self), len(self) + len(keys))
        self._own.add(new)
        self._numbers.update(zip(keys, found.tolist(), strict=True))
        return found

    def take(self, classes: Ints) -> Members:
        """Return the definitions of some classes, numbered in the order given."""
        if self._known is None:
            return self._own.take(classes)
        old = classes < self._before
        which = np.flatnonzero(old), np.flatnonzero(~old)
        parts = self._known.take(classes[old]), self._own.take(classes[~old] - self._before)
        own = np.empty(len(classes), dtype=np.int64)
        own[which[0]], own[which[1]] = parts[0].own, parts[1].own
        to = np.concatenate([places[part.to] for places, part in zip(which, parts, strict=True)])
        order = np.argsort(to, kind="stable")
        names = [field.name for field in fields(Members)][2:]
        rest = (np.concatenate([getattr(part, name) for part in parts])[order] for name in names)
        return Members(own, to[order], *rest)

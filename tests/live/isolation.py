"""Detect torn reads: authors exchange papers, so that some sums never change."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from unittest.mock import patch

import numpy as np

from neupath.graph.hin import Floats
from neupath.graph.nodes import Id, Rows
from neupath.live import LiveScorer, LiveStore
from neupath.live.live_kernels import NEVER
from neupath.live.live_product import LiveProduct
from neupath.measures import PathCount
from neupath.store import Edge, Node, Update

MEASURE = PathCount("author-paper-venue")
_PAUSE = 0.0005
"""Seconds that an unprotected writer pauses in the middle of a change, so that readers can read."""


class Exchange:
    """Two authors of their own who exchange two papers with every update.

    What each has written in all stays the same, and so does what both have at each venue; a read that sees one half
    of an update finds another sum. The papers are at one venue each, which are two.
    """

    def __init__(self, authors: tuple[Id, Id], papers: tuple[Id, Id]) -> None:
        self.authors, self._papers = authors, papers

    def start(self) -> Update:
        """Return the update that adds the authors, with a paper each."""
        nodes = [Node("author", author) for author in self.authors]
        return Update(self._edges(), add_nodes=nodes)

    def next(self) -> Update:
        """Return the update by which each takes the other's paper."""
        removed = self._edges()
        self._papers = self._papers[1], self._papers[0]
        return Update(self._edges(), removed)

    def _edges(self) -> list[Edge]:
        return [Edge("writes", *edge) for edge in zip(self.authors, self._papers, strict=True)]


Seen = tuple[int, Floats]
"""A version, and how often each of two authors is at each venue; shape (2, venues)."""


def see(live: LiveStore, authors: tuple[Id, Id]) -> Seen:
    """Return what the newest view has of two authors."""
    view = live.view()
    rows = np.array([view.hin.row("author", author) for author in authors])
    return view.version, view.scorer(MEASURE).score_rows(rows)


class Watcher:
    """Reads again and again, and counts torn reads and reads that go back to an older version."""

    def __init__(self, exchanges: Sequence[Exchange], see: Callable[[tuple[Id, Id]], Seen]) -> None:
        self._authors, self._see = [exchange.authors for exchange in exchanges], see
        self._expected = [_sums(see(authors)[1]) for authors in self._authors]
        self._newest = 0
        self.looks, self.torn, self.backwards = 0, 0, 0

    def look(self) -> None:
        """Read one of the exchanges, in turn."""
        place = self.looks % len(self._authors)
        version, counts = self._see(self._authors[place])
        self.looks += 1
        self.backwards += version < self._newest
        self._newest = version
        self.torn += not np.array_equal(_sums(counts), self._expected[place])


def _sums(counts: Floats) -> Floats:
    """Return what each author has, and what both have at each venue."""
    return np.concatenate([counts.sum(axis=1), counts.sum(axis=0)])


@contextmanager
def unprotected() -> Iterator[None]:
    """Let readers see entries of every version, and writers pause in the middle of a change."""
    with reading_newest(), between_entries(lambda: time.sleep(_PAUSE)):
        yield


def reading_newest() -> AbstractContextManager[object]:
    """Let readers see entries of every version."""
    original = LiveScorer.__init__

    def newest(self: LiveScorer, *arguments: object) -> None:
        measure, hin, halves, _, key = arguments
        original(self, measure, hin, halves, halves[0].version + NEVER - 1, key)  # type: ignore[arg-type, index]

    return patch.object(LiveScorer, "__init__", newest)


def between_entries(act: Callable[[], object]) -> AbstractContextManager[object]:
    """Act in the middle of every change, after each entry of a half-path matrix that it sets."""
    write = LiveProduct.write

    def one_by_one(self: LiveProduct, rows: Rows, columns: Rows, values: Floats, version: int) -> None:
        for entry in range(len(rows)):
            write(self, rows[[entry]], columns[[entry]], values[[entry]], version)
            act()

    return patch.object(LiveProduct, "write", one_by_one)

"""A checker that would catch a torn read: authors who exchange papers, so that some sums never change."""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from unittest.mock import patch

import numpy as np

from neupath import PathCount
from neupath.graph import Floats
from neupath.live import View
from neupath.live.halves import LiveHalf
from neupath.live.scorer import LiveScorer
from neupath.nodes import Id
from neupath.store import Batch, EdgeLine, NodeLine

MEASURE = PathCount("author-paper-venue")
_PAUSE = 0.0005
"""Seconds in the middle of a change, without protection: time enough to read."""


class Exchange:
    """Two authors of their own who exchange two papers with every batch.

    What each has written in all stays the same, and so does what both have at each venue; a read that sees one half
    of a batch finds another sum. The papers are at one venue each, which are two.
    """

    def __init__(self, authors: tuple[Id, Id], papers: tuple[Id, Id]) -> None:
        self._authors, self._papers = authors, papers

    def start(self) -> Batch:
        """Return the batch that brings the authors, with a paper each."""
        nodes = [NodeLine("author", author) for author in self._authors]
        return Batch(self._edges(), add_nodes=nodes)

    def next(self) -> Batch:
        """Return the batch by which each takes the other's paper."""
        removed = self._edges()
        self._papers = self._papers[1], self._papers[0]
        return Batch(self._edges(), removed)

    def _edges(self) -> list[EdgeLine]:
        return [EdgeLine("writes", *edge) for edge in zip(self._authors, self._papers, strict=True)]

    def sums(self, view: View) -> Floats:
        """Return what each author has, and what both have at each venue, as a view knows it."""
        rows = np.array([view.hin.find("author", author) for author in self._authors])
        counts = view.fit(MEASURE).score_rows(rows)
        return np.concatenate([counts.sum(axis=1), counts.sum(axis=0)])


class Watcher:
    """Looks at views as a reader takes them: none is torn, and none is older than the one before."""

    def __init__(self, exchanges: list[Exchange], view: View) -> None:
        self._exchanges = exchanges
        self._expected = [exchange.sums(view) for exchange in exchanges]
        self._newest = view.version
        self.looks, self.torn, self.backwards = 0, 0, 0

    def look(self, view: View) -> None:
        """Take a view into account: one of the exchanges, in turn."""
        place = self.looks % len(self._exchanges)
        self.looks += 1
        self.backwards += view.version < self._newest
        self._newest = view.version
        self.torn += not np.array_equal(self._exchanges[place].sums(view), self._expected[place])


@contextmanager
def unprotected() -> Iterator[None]:
    """Let readers see what is there, whatever its version, and writers pause in the middle of a change."""
    with reading_newest(), between_rows(lambda: time.sleep(_PAUSE)):
        yield


def reading_newest() -> AbstractContextManager[object]:
    """Let readers see what is there, whatever its version."""
    original = LiveScorer.__init__

    def newest(self: LiveScorer, *arguments: object) -> None:
        original(self, *arguments[:3], 2**62)  # type: ignore[arg-type, call-arg]

    return patch.object(LiveScorer, "__init__", newest)


def between_rows(act: Callable[[], object]) -> AbstractContextManager[object]:
    """Act in the middle of every change, after each row of a half-path matrix that it brings up to date."""
    recompute = LiveHalf.recompute

    def row_by_row(self: LiveHalf, rows: np.ndarray, version: int) -> None:
        for row in rows:
            recompute(self, np.array([row]), version)
            act()

    return patch.object(LiveHalf, "recompute", row_by_row)

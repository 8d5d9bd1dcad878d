"""Detect torn reads: authors exchange papers, so that some sums never change."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from unittest.mock import patch

import numpy as np

from neupath.engine.scorer import RowChange, RowEdge
from neupath.graph.hin import Floats
from neupath.graph.nodes import Id
from neupath.live import LiveStore
from neupath.live.live_graph import _State
from neupath.live.live_product import LiveHalf
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
    """Let readers see changes by parts, and writers pause in the middle of a change."""
    with publishing_parts(), between_edges(lambda: time.sleep(_PAUSE)):
        yield


def publishing_parts() -> AbstractContextManager[object]:
    """Publish a view after every edge of a change, all with the version of the change."""
    apply = _State.apply

    def by_parts(self: _State, change: RowChange) -> None:
        for edge in change.edges:
            apply(self, replace(change, edges=[edge]))
        if not change.edges:
            apply(self, change)

    return patch.object(_State, "apply", by_parts)


def between_edges(act: Callable[[], object]) -> AbstractContextManager[object]:
    """Act in the middle of every change, after the rows of each half-path matrix are computed."""
    follow = LiveHalf.follow

    def followed_by_act(self: LiveHalf, edges: Sequence[RowEdge]) -> None:
        follow(self, edges)
        act()

    return patch.object(LiveHalf, "follow", followed_by_act)

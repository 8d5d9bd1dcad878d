"""Thresholds: every target whose score with a query reaches a least score, exactly, without ranking the others."""

from dataclasses import dataclass

import numpy as np

from neupath.graph import Floats
from neupath.halfpath import Factors
from neupath.index import index_of
from neupath.nodes import Rows
from neupath.threads import borrow_scratch, in_blocks, return_scratch


@dataclass(frozen=True)
class Reached:
    """The targets of each query that reach a score: those of query q are `rows[starts[q]:starts[q+1]]`, best first."""

    starts: Rows
    rows: Rows
    scores: Floats


def reached_of_product(
    factors: Factors, normalisation: int, queries: Rows, skipped: Rows, least: float, threads: int | None = None
) -> Reached:
    """Find the targets whose normalised product with each query is at least `least`, which is above 0.

    By Cauchy-Schwarz only targets with a norm near the query's can, and these alone are added up.
    """
    from neupath.index import member_kernels

    index = index_of(factors)
    parts: dict[int, Reached] = {}

    def search(block: slice) -> None:
        groups, place = np.unique(index.group_of[queries[block]], return_inverse=True)
        room = np.empty(index.widest, dtype=np.int64), np.empty(index.widest, dtype=np.int64)
        scratch = borrow_scratch(index.num_labels)
        found = member_kernels.reach_groups(
            index.left, index.left_norms, index.postings, index.norms, int(normalisation), least, groups,
            (*scratch[:2], *room),
        )  # fmt: skip
        return_scratch(scratch)
        parts[block.start] = Reached(
            *member_kernels.expand_reached(place.ravel(), *found, index.members, skipped[block])
        )

    in_blocks(search, len(queries), threads, factors.work)
    return _put_together([parts[start] for start in sorted(parts)])


def reached_of_scores(scores: Floats, skipped: Rows, least: float) -> Reached:
    """Find the targets whose given scores are at least `least`; shape of scores (queries, targets)."""
    found = []
    for q, row in enumerate(scores):
        targets = np.flatnonzero(row >= least)
        targets = targets[targets != skipped[q]]
        order = targets[np.argsort(-row[targets], kind="stable")]
        found.append(Reached(np.array([0, len(order)]), order, row[order]))
    return _put_together(found)


def _put_together(parts: list[Reached]) -> Reached:
    sizes = np.concatenate([np.zeros(1, dtype=np.int64), *(np.diff(part.starts) for part in parts)])
    rows = [part.rows for part in parts] or [np.zeros(0, dtype=np.int64)]
    scores = [part.scores for part in parts] or [np.zeros(0)]
    return Reached(np.cumsum(sizes), np.concatenate(rows), np.concatenate(scores))

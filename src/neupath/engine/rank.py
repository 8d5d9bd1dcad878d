"""Rank: where a target stands among those that a search ranks, by score; ties are in node order."""

import numpy as np

from neupath.graph.hin import Floats
from neupath.graph.nodes import Mask, Rows

_NO_ROWS = np.zeros(0, dtype=np.int64)


def best_first(scores: Floats, rows: Rows) -> Rows:
    """Return some rows, which ascend, by their scores, the highest first.

    >>> best_first(np.array([0.5, 0.9, 0.5]), np.array([0, 1, 2])).tolist()
    [1, 0, 2]
    """
    return rows[np.argsort(-scores[rows], kind="stable")]


def related(scores: Floats, left_out: Rows = _NO_ROWS, candidates: Mask | None = None) -> Rows:
    """Return the rows that a search ranks: those with a score above 0, but for some; ascending."""
    is_ranked = scores > 0 if candidates is None else (scores > 0) & candidates
    is_ranked[left_out] = False
    return np.flatnonzero(is_ranked)


def rank_of(scores: Floats, target: int, left_out: Rows = _NO_ROWS, rounding: float = 0.0) -> tuple[int | None, int]:
    """Return the rank of a target in a search, None if it is not among the hits, and the number of hits.

    Parameters
    ----------
    scores
        The score of every target.
    target
        The row of the target.
    left_out
        Rows that the search leaves out, such as the query.
    rounding
        Scores that differ by no more than this fraction count as equal.

    >>> rank_of(np.array([0.5, 0.9, 0.5, 0.0]), 2), rank_of(np.array([0.5, 0.0]), 1)
    ((3, 3), (None, 1))
    """
    rows = related(scores, left_out)
    at = int(np.searchsorted(rows, target))
    if at == len(rows) or rows[at] != target:
        return None, len(rows)
    own, others = scores[target], scores[rows]
    is_higher = others > own * (1 + rounding)
    is_tied_before = ~is_higher[:at] & (others[:at] >= own * (1 - rounding))
    return 1 + int(np.count_nonzero(is_higher)) + int(np.count_nonzero(is_tied_before)), len(rows)

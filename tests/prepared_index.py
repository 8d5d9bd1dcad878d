"""What a prepared index answers, compared with the fitted measure that it was made of: all is equal to the bit."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from neupath import HIN, open_index, prepare
from neupath.engine import prepared
from neupath.engine.prepared import PreparedIndex
from neupath.measures import PathMeasure

WAYS = ("parts", "whole")
"""How an index searches: over the parts of the product that some queries need, or over the whole one."""


@contextmanager
def searching(way: str) -> Iterator[None]:
    """Let every index search one way while the block runs."""
    with pytest.MonkeyPatch.context() as patch:
        if way == "parts":
            patch.setattr(PreparedIndex, "_whole_product", lambda *_: None)
        else:
            patch.setattr(prepared, "_MANY_QUERIES", 0)
        yield


def prepare_and_open(hin: HIN, measure: PathMeasure, folder: Path) -> PreparedIndex:
    return open_index(prepare(hin, measure, folder / "index"))


def assert_same_answers(index: PreparedIndex, measure: PathMeasure, seed: int = 0) -> None:
    """Compare all searches of all queries, and those of some sets."""
    for way in WAYS:
        with searching(way):
            _assert_same_rows(index, measure, np.random.default_rng(seed))


def _assert_same_rows(index: PreparedIndex, measure: PathMeasure, rng: np.random.Generator) -> None:
    assert (index.source_type, index.target_type) == (measure.source_type, measure.target_type)
    num_queries, num_targets = (measure.hin_.num_nodes(t) for t in (measure.source_type, measure.target_type))
    queries = rng.permutation(num_queries)
    skipped = queries if measure.source_type == measure.target_type else np.full(num_queries, -1)
    candidates = rng.random(num_targets) < 0.7
    assert np.array_equal(index.score_rows(queries), measure.score_rows(queries))
    for k in (1, 3, num_targets + 5):
        for mask in (None, candidates):
            for own in (queries, queries[:1]):
                ours, theirs = (s.rank_rows(own, skipped[: len(own)], k, mask, 1) for s in (index, measure))
                _assert_same_arrays((*_hits(ours), ours.sizes), (*_hits(theirs), theirs.sizes))
    for least in (0.0, 0.3, 1.0):
        ours, theirs = (s.range_rows(queries, skipped, least) for s in (index, measure))
        _assert_same_arrays(vars(ours).values(), vars(theirs).values())
    for row in queries[:3].tolist():
        targets = rng.integers(0, max(1, num_targets), 7 if num_targets else 0)
        assert np.array_equal(index.score_targets(row, targets), measure.score_targets(row, targets))
    for size in range(1, min(4, num_queries) + 1):
        members, weights = queries[:size], rng.choice([-2.0, -0.5, 0.25, 1.0, 3.0], size)
        assert np.array_equal(index.set_scores(members, weights), measure.set_scores(members, weights))
        left_out = members if measure.source_type == measure.target_type else members[:0]
        pair = (s.rank_set(members, weights, left_out, 3, candidates) for s in (index, measure))
        _assert_same_arrays(*pair)


def _hits(ranking) -> tuple[np.ndarray, np.ndarray]:
    filled = np.arange(ranking.rows.shape[1]) < ranking.sizes[:, None]
    return ranking.rows[filled], ranking.scores[filled]


def _assert_same_arrays(ours, theirs) -> None:
    for own, other in zip(ours, theirs, strict=True):
        assert np.array_equal(own, other)

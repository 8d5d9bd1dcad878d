"""The kernel without an index against all scores sorted: many targets per query, so that its bounds matter."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neupath.engine import topk
from neupath.engine.formula import Formula, Normalisation
from neupath.engine.products import symmetric_factors
from tests.engine.matrices import FORMULAS, KINDS, expected, matrix


@settings(max_examples=60, deadline=None)
@given(KINDS, st.integers(0, 99), FORMULAS, st.sampled_from([1, 3, 16, 17, 40, 500]))
@pytest.mark.slow
def test_the_best_targets_in_order(kind: str, seed: int, normalisation: int | Formula, k: int) -> None:
    factors = symmetric_factors(matrix(kind, seed))
    factors.work = 0.0  # so light that no index is built
    every = np.arange(factors.left.shape[0])
    ranking = topk.top_k_of_product(factors, normalisation, every, every, k, threads=1)
    assert factors.index is None
    assert [
        list(zip(rows[:size].tolist(), scores[:size].tolist(), strict=True))
        for rows, scores, size in zip(ranking.rows, ranking.scores, ranking.sizes, strict=True)
    ] == expected(factors, normalisation, k)
    for rows, scores, size in zip(ranking.rows, ranking.scores, ranking.sizes, strict=True):
        assert (rows[size:] == -1).all()
        assert (scores[size:] == 0).all()


def test_only_candidates_count() -> None:
    factors = symmetric_factors(matrix("counts", 5))
    every = np.arange(300)
    allowed = every % 3 == 0
    ranking = topk.top_k_of_product(factors, Normalisation.DICE, every, every, 8, allowed)
    for row, wanted in zip(ranking.rows, expected(factors, Normalisation.DICE, 300), strict=True):
        assert row.tolist() == [y for y, _ in wanted if allowed[y]][:8]

"""Every target that reaches a score, against all scores: like rows, ties, weights, any number of threads."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neupath.engine.products import Factors, Normalisation, make_factors, symmetric_factors
from neupath.engine.topk import HitLists, range_of_product, range_of_scores, score_product
from tests.engine.matrices import KINDS, matrix


def as_lists(reached: HitLists) -> list[list[tuple[int, float]]]:
    pairs = list(zip(reached.rows.tolist(), reached.scores.tolist(), strict=True))
    return [pairs[a:b] for a, b in zip(reached.starts, reached.starts[1:], strict=False)]


def expected(factors: Factors, normalisation: int, least: float) -> list[list[tuple[int, float]]]:
    scores = score_product(factors, normalisation, np.arange(factors.left.shape[0]))
    return [
        sorted(
            ((y, float(score)) for y, score in enumerate(row) if score >= least and y != query),
            key=lambda pair: (-pair[1], pair[0]),
        )
        for query, row in enumerate(scores)
    ]


@settings(max_examples=60, deadline=None)
@given(KINDS, st.integers(0, 99), st.sampled_from(Normalisation), st.floats(0.001, 1.0), st.booleans())
def test_all_that_reach_a_score_and_no_others(
    kind: str, seed: int, normalisation: Normalisation, share: float, is_mirrored: bool
) -> None:
    w = matrix(kind, seed)
    factors = symmetric_factors(w) if is_mirrored else make_factors(w, matrix("floats", seed + 1).T.tocsr())
    every = np.arange(w.shape[0])
    scores = score_product(factors, normalisation, every)
    least = float(np.quantile(scores[scores > 0], share)) if scores.any() else 0.5  # often a score that some have
    reached = range_of_product(factors, normalisation, every, every, least, threads=1)
    assert as_lists(reached) == expected(factors, normalisation, least)


def test_threads_and_blocks_make_no_difference() -> None:
    factors = symmetric_factors(matrix("counts", 3, rows=3000, columns=20))
    every = np.arange(3000)
    one = as_lists(range_of_product(factors, Normalisation.DICE, every, every, 0.7, threads=1))
    assert one == as_lists(range_of_product(factors, Normalisation.DICE, every, every, 0.7, threads=3))
    assert one[17:18] == as_lists(range_of_product(factors, Normalisation.DICE, every[17:18], every[17:18], 0.7))


@pytest.mark.parametrize("least", [0.0, 0.5, 2.0])
def test_given_scores(least: float) -> None:
    scores = np.array([[0.5, 1.0, 0.5, 0.1], [0.0, 0.0, 0.0, 0.0]])
    reached = range_of_scores(scores, np.array([0, -1]), least)
    wanted = {0.0: [[1, 2, 3], [0, 1, 2, 3]], 0.5: [[1, 2], []], 2.0: [[], []]}[least]
    assert [[y for y, _ in row] for row in as_lists(reached)] == wanted


def test_no_queries() -> None:
    none = np.zeros(0, dtype=np.int64)
    reached = range_of_product(symmetric_factors(matrix("ones", 0)), Normalisation.DICE, none, none, 0.5)
    assert (len(reached.rows), reached.starts.tolist()) == (0, [0])

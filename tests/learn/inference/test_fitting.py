"""The parts of the fit: errors, folds, AUC."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from neupath.learn.evaluation import auc, r_squared
from neupath.learn.inference.fitting import FeatureTable, find_hypotheses, folds_of, rest_of


def test_r_squared() -> None:
    truth = np.array([0.0, 0.5, 1.0])
    assert r_squared(truth, truth) == 1.0
    assert r_squared(truth, np.full(3, 0.5)) == 0.0
    assert r_squared(truth, 5 - truth) == 0.0, "worse than the mean is 0, not less"
    assert r_squared(np.ones(3), np.ones(3)) == 1.0
    assert r_squared(np.ones(3), np.zeros(3)) == 0.0


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 4)), min_size=2, max_size=30))
def test_auc_is_scikit_learns(rows: list[tuple[bool, int]]) -> None:
    labels, scores = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    if len(set(labels)) == 2:
        assert auc(labels, scores) == pytest.approx(roc_auc_score(labels, scores))
    else:
        assert auc(labels, scores) == 0.5


@given(st.lists(st.integers(0, 8), min_size=1, max_size=40), st.integers(0, 5))
def test_folds_are_whole_queries_and_cover_all(groups: list[int], seed: int) -> None:
    folds = folds_of(np.array(groups), seed)
    assert sorted(np.concatenate(folds).tolist()) == list(range(len(groups)))
    if len(set(groups)) > 1:
        owners = [set(np.array(groups)[fold].tolist()) for fold in folds]
        assert sum(len(own) for own in owners) == len(set(groups))


@given(
    st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)), min_size=1, max_size=40, unique=True), st.integers(0, 5)
)
def test_mirror_images_of_held_out_pairs_are_not_learned_from(pairs: list[tuple[int, int]], seed: int) -> None:
    queries, targets = np.array(pairs).T
    for fold in folds_of(queries, seed):
        held_out = {pairs[place] for place in fold.tolist()}
        rest = [pairs[place] for place in rest_of(fold, queries, targets).tolist()]
        assert sorted(rest) == sorted(set(pairs) - held_out - {(target, query) for query, target in held_out})
        across = rest_of(fold, queries, np.full(len(pairs), -1))
        assert sorted(across.tolist() + fold.tolist()) == list(range(len(pairs))), "between two types, all others"


def test_of_equal_paths_the_shorter_is_preferred() -> None:
    rng = np.random.default_rng(0)
    one, other = rng.random(30), rng.random(30)
    features = {"pathsim": np.column_stack([one, one, other])}
    table = FeatureTable(features, 0.6 * one + 0.4 * other, np.arange(30), [2, 4, 4])
    best = find_hypotheses(table, ["pathsim"])[0]
    assert best.columns == (0, 2)
    assert best.weights == pytest.approx((0.6, 0.4))

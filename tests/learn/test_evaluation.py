import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import neupath as npth
from neupath import HIN, NeuPathError
from neupath.learn.evaluation import evaluate, ndcg, ndcg_released, recall, rmse, split_queries
from neupath.measures import JoinSim
from tests.graphs import graph_of

AUTHORS = ["Mike", "Jim", "Mary", "Bob", "Ann"]
TRUTH = np.array([0.0, 0.9, 0.5, 0.0, 0.1, 0.0])


def test_a_perfect_ranking() -> None:
    assert ndcg(TRUTH, TRUTH) == pytest.approx(1)
    assert ndcg_released(TRUTH, TRUTH, k=3) == pytest.approx(1)
    assert recall(TRUTH, TRUTH, k=3) == 1
    assert rmse(TRUTH, TRUTH) == 0


def test_a_reversed_ranking() -> None:
    worst = -TRUTH
    assert ndcg(TRUTH, worst, k=3) == 0
    assert recall(TRUTH, worst, k=3) == 0
    assert ndcg_released(TRUTH, worst, k=3) > 0.5, "the released metric is never cut, so even the worst scores high"


def test_a_random_ranking_lies_between() -> None:
    rng = np.random.default_rng(0)
    truth = np.where(rng.random(500) < 0.1, rng.random(500), 0)
    scores = [ndcg(truth, rng.random(500)) for _ in range(200)]
    assert 0.02 < np.mean(scores) < 0.2
    assert ndcg_released(truth, rng.random(500)) > 0.15


def test_ties_are_worth_their_expectation() -> None:
    truth, tied = np.array([1.0, 0.0, 0.5]), np.array([0.3, 0.3, 0.3])
    rng = np.random.default_rng(0)
    orders = [ndcg(truth, rng.permutation(3).astype(float), k=2) for _ in range(6000)]
    assert ndcg(truth, tied, k=2) == pytest.approx(np.mean(orders), abs=0.01)


@given(st.lists(st.tuples(st.floats(0, 1), st.integers(0, 5)), min_size=2, max_size=30), st.integers(1, 25))
def test_equals_scikit_learn(rows: list[tuple[float, int]], k: int) -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    truth, scores = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    if truth.max() < 1e-6:
        return
    assert ndcg(truth, scores, k) == pytest.approx(metrics.ndcg_score([truth], [scores], k=k), abs=1e-9)


def test_no_related_target_has_no_ranking() -> None:
    with pytest.raises(NeuPathError, match="nDCG is not defined where no target is related"):
        ndcg(np.zeros(3), np.zeros(3))


def test_splits_are_disjoint_and_repeatable() -> None:
    hin = graph_of({"a": 2000}, {})
    split = split_queries(hin, "a", seed=3)
    parts = [split.train, split.validation, split.test]
    assert [len(part) for part in parts] == [400, 100, 400]
    assert len({query for part in parts for query in part}) == 900
    assert split_queries(hin, "a", seed=3).test == split.test
    more = split_queries(hin, "a", seed=3, most_test=5000)
    assert more.train == split.train
    assert len(more.test) == 1500
    assert not set(more.test) & set(split.train)
    with pytest.raises(NeuPathError, match="3 nodes are too few"):
        split_queries(graph_of({"a": 3}, {}), "a")


def test_a_measure_against_itself_and_another(toy: HIN) -> None:
    teacher = npth.PathSim("APVPA").fit(toy)
    found = evaluate(teacher, teacher, AUTHORS)
    assert (found.rmse_all, found.rmse_top, found.rmse_nonzero) == (0, 0, 0)
    assert found.ndcg == pytest.approx(1)
    assert found.ranked_queries == 5
    other = evaluate(JoinSim("APVPA").fit(toy), teacher, AUTHORS)
    assert other.rmse_all > 0.1
    assert other.to_dict()["ndcg@20"] < 1
    nothing = npth.PathSim("author-paper-author").fit(toy)
    unrelated = evaluate(nothing, nothing, AUTHORS)
    assert unrelated.ndcg is unrelated.rmse_nonzero is None, "no pair is related"
    with pytest.raises(NeuPathError, match="the model ranks venue nodes for a venue, but .* ranks author nodes"):
        evaluate(npth.PathSim("VPV").fit(toy), teacher, ["SIGMOD", "VLDB"])

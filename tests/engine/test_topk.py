"""Top-k and range search against all scores, sorted."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import neupath as npth
from neupath import HIN
from neupath.engine import products, topk
from neupath.engine.formula import Formula, Normalisation, formula_of
from neupath.engine.hits import Hit
from neupath.engine.products import Factors, make_factors, symmetric_factors
from neupath.engine.topk import (
    HitLists,
    load_kernels,
    range_of_product,
    range_of_scores,
    score_product,
    score_targets,
    top_k_of_product,
    top_k_of_row,
)
from neupath.errors import GraphError, QueryError
from neupath.graph.hin import Edges
from neupath.graph.metapath import MetaPath, Relation
from neupath.graph.nodes import Nodes
from neupath.measures import MEASURES, PathCount, measure_named
from tests.engine.matrices import FORMULAS, KINDS, matrix
from tests.graphs import hins_with_path


@given(hins_with_path(symmetric=True), st.sampled_from(sorted(MEASURES)), st.integers(1, 7), st.booleans())
@pytest.mark.slow
def test_top_k_is_the_head_of_the_sorted_scores(case: tuple[HIN, MetaPath], name: str, k: int, keep: bool) -> None:
    hin, path = case
    scorer = measure_named(name, path).fit(hin)
    ids = hin.nodes[path.source].ids.to_pylist()
    for hits, query in zip(scorer.top_k(ids, k, include_query=keep), ids, strict=True):
        scores = scorer.scores(query)
        ranked = sorted(range(len(ids)), key=lambda row: (-scores[row], row))
        expected = [row for row in ranked if scores[row] > 0 and (keep or ids[row] != query)][:k]
        assert hits.ids == tuple(ids[row] for row in expected)
        assert hits.scores == tuple(scores[row] for row in expected)


@given(hins_with_path(symmetric=True), st.integers(1, 7))
@pytest.mark.slow
def test_zeros_fill_up_in_node_order(case: tuple[HIN, MetaPath], k: int) -> None:
    hin, path = case
    scorer = npth.PathSim(path).fit(hin)
    ids = hin.nodes[path.source].ids.to_pylist()
    for hits, query in zip(scorer.top_k(ids, k, zeros=True), ids, strict=True):
        scores = scorer.scores(query)
        ranked = sorted(range(len(ids)), key=lambda row: (-scores[row], row))
        assert hits.ids == tuple(ids[row] for row in ranked if ids[row] != query)[:k]


def big(n: int = 1500) -> HIN:
    rng = np.random.default_rng(7)
    nodes = [Nodes("a", pa.array(np.arange(n))), Nodes("b", pa.array(np.arange(60)))]
    edges = Edges(Relation("a", "r", "b"), rng.integers(0, n, 4 * n), rng.integers(0, 60, 4 * n), rng.random(4 * n))
    return HIN.build(nodes, [edges])


@pytest.mark.parametrize("name", ["pathsim", "joinsim", "hetesim", "pcrw", "dwpc"])
@pytest.mark.slow
def test_any_number_of_threads_and_any_batch_give_the_same(name: str) -> None:
    scorer = measure_named(name, "a-b-a").fit(big())
    queries = list(range(1500))
    one = scorer.top_k(queries, 10, threads=1)
    assert scorer.top_k(queries, 10, threads=4) == one
    assert scorer.top_k(queries[700:703], 10) == one[700:703]
    assert scorer.top_k(701, 10) == one[701]


def test_queries_come_in_any_sequence(toy: HIN) -> None:
    scorer = npth.PathSim("APVPA").fit(toy)
    expected = scorer.top_k(["Mike", "Jim"])
    assert scorer.top_k(("Mike", "Jim")) == scorer.top_k(np.array(["Mike", "Jim"])) == expected
    assert scorer.top_k(toy.nodes["author"].ids.to_pandas()[:2]) == expected


@pytest.mark.parametrize("weight", [1e-100, 1e-50, 1e50, 1e70])
@pytest.mark.parametrize("name", ["pathsim", "joinsim", "hetesim"])
def test_extreme_weights_keep_twins_at_1(name: str, weight: float) -> None:
    edges = Edges(Relation("a", "r", "b"), np.array([0, 1]), np.array([0, 0]), np.full(2, weight))
    hin = HIN.build([Nodes("a", pa.array(["x", "y"])), Nodes("b", pa.array(["m"]))], [edges])
    assert measure_named(name, "a-b-a").fit(hin).score("x", "y") == pytest.approx(1.0)


def test_weights_past_all_bounds_are_refused() -> None:
    edges = Edges(Relation("a", "r", "b"), np.array([0]), np.array([0]), np.array([1e200]))
    hin = HIN.build([Nodes("a", pa.array(["x"])), Nodes("b", pa.array(["m"]))], [edges])
    with pytest.raises(GraphError, match="add up to more than a float can hold; shorten it, or scale"):
        npth.PathSim("a-b-a").fit(hin)


def test_threads_build_a_product_once(monkeypatch) -> None:
    hin, built = npth.load("toy"), []
    monkeypatch.setattr(products, "symmetric_factors", lambda left: built.append(1) or symmetric_factors(left))
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: npth.PathSim("APVPA").fit(hin), range(16)))
    assert len(built) == 1


def test_candidates_restrict_the_targets(toy: HIN) -> None:
    scorer = npth.PathSim("APVPA").fit(toy)
    assert scorer.top_k("Mike", among=["Jim", "Mary", "Ann"]).ids == ("Mary", "Jim")
    assert scorer.top_k("Mike", where="id ~ j").ids == ("Jim",)
    assert scorer.top_k("Mike", among=["Jim", "Ann"], zeros=True).ids == ("Jim", "Ann")
    assert scorer.top_k("Mike", where=["id ~ m", "id ~ j"]).ids == ("Jim",)


def test_explains_why_there_are_fewer_than_k_hits(toy: HIN) -> None:
    scorer = npth.PathSim("APVPA").fit(toy)
    assert scorer.top_k("Mike", k=3).shortfall is None
    assert scorer.top_k("Mike", k=10).shortfall == (
        "3 of 4 author nodes are related by this path; the others have score 0"
    )
    assert scorer.top_k("Mike", k=10, zeros=True).shortfall == ("k is 10, but there are only 4 author nodes to rank")
    assert scorer.top_k("Mike", k=10, include_query=True).shortfall == (
        "4 of 5 author nodes are related by this path; the others have score 0"
    )
    assert scorer.top_k("Mike", k=2, among=["Jim", "Mike"]).shortfall == (
        "k is 2, but there is only 1 author node to rank"
    )
    assert scorer.top_k("Mike", among=["Mike"]).shortfall == "no author node is left to rank"


@pytest.mark.parametrize("k", [0, -3, True])
def test_refuses_a_k_that_makes_no_sense(toy: HIN, k) -> None:
    with pytest.raises(QueryError, match=f"k is {k}; give a whole number of at least 1"):
        npth.PathSim("APVPA").fit(toy).top_k("Mike", k=k)


@pytest.mark.parametrize("k", [1.5, 3.0, "3", None, float("nan")])
def test_refuses_a_k_that_is_no_whole_number(toy: HIN, k) -> None:
    with pytest.raises(QueryError, match=f"k is {k!r}; give a whole number of at least 1"):
        npth.PathSim("APVPA").fit(toy).top_k("Mike", k=k)


def test_refuses_no_threads_and_unknown_options(toy: HIN) -> None:
    scorer = npth.PathSim("APVPA").fit(toy)
    with pytest.raises(QueryError, match="threads is 0"):
        scorer.top_k("Mike", threads=0)
    with pytest.raises(TypeError, match="unexpected keyword argument 'filter'"):
        scorer.top_k("Mike", filter="x")


def test_targets_of_another_type_keep_the_query_row(toy: HIN) -> None:
    hits = PathCount("author-paper-venue").fit(toy).top_k("Mike")
    assert list(zip(hits.ids, hits.scores, strict=True)) == [("SIGMOD", 2.0), ("VLDB", 1.0)]


def test_hits_read_like_a_list(toy: HIN) -> None:
    hits = npth.PathSim("APVPA").fit(toy).top_k("Mike")
    assert hits[0] == Hit(1, "Bob", None, 1.0)
    assert [hit.rank for hit in hits[1:]] == [2, 3]
    assert len(hits) == 3
    assert hits.to_arrow().to_pydict()["id"] == ["Bob", "Mary", "Jim"]
    assert hits.to_dict() == {
        "query": "Mike",
        "metapath": "author-paper-venue-paper-author",
        "measure": "pathsim",
        "exact": True,
        "hits": [
            {"rank": 1, "id": "Bob", "name": None, "score": 1.0},
            {"rank": 2, "id": "Mary", "name": None, "score": 0.8},
            {"rank": 3, "id": "Jim", "name": None, "score": 0.08261617900172118},
        ],
    }


# ---- All targets of at least a score -------------------------------------------------------------
def hit_pairs(hits: HitLists) -> list[list[tuple[int, float]]]:
    pairs = list(zip(hits.rows.tolist(), hits.scores.tolist(), strict=True))
    return [pairs[a:b] for a, b in zip(hits.starts, hits.starts[1:], strict=False)]


def sorted_above(factors: Factors, normalisation: int, least: float) -> list[list[tuple[int, float]]]:
    scores = score_product(factors, normalisation, np.arange(factors.left.shape[0]))
    return [
        sorted(
            ((y, float(score)) for y, score in enumerate(row) if score >= least and y != query),
            key=lambda pair: (-pair[1], pair[0]),
        )
        for query, row in enumerate(scores)
    ]


@settings(max_examples=60, deadline=None)
@given(KINDS, st.integers(0, 99), FORMULAS, st.floats(0.001, 1.0), st.booleans())
@pytest.mark.slow
def test_a_range_has_all_targets_of_at_least_a_score(
    kind: str, seed: int, normalisation: int | Formula, share: float, is_mirrored: bool
) -> None:
    w = matrix(kind, seed)
    factors = symmetric_factors(w) if is_mirrored else make_factors(w, matrix("floats", seed + 1).T.tocsr())
    every = np.arange(w.shape[0])
    scores = score_product(factors, normalisation, every)
    least = float(np.quantile(scores[scores > 0], share)) if scores.any() else 0.5  # often a score that a pair has
    hits = range_of_product(factors, normalisation, every, every, least, threads=1)
    is_same = hit_pairs(hits) == sorted_above(factors, normalisation, least)
    assert is_same  # the difference of so many pairs would take minutes to print


def test_a_range_is_the_same_on_any_number_of_threads() -> None:
    factors = symmetric_factors(matrix("counts", 3, rows=3000, columns=20))
    every = np.arange(3000)
    one = hit_pairs(range_of_product(factors, Normalisation.DICE, every, every, 0.7, threads=1))
    assert one == hit_pairs(range_of_product(factors, Normalisation.DICE, every, every, 0.7, threads=3))
    assert one[17:18] == hit_pairs(range_of_product(factors, Normalisation.DICE, every[17:18], every[17:18], 0.7))


@pytest.mark.parametrize("least", [0.0, 0.5, 2.0])
def test_the_range_of_a_score_matrix(least: float) -> None:
    scores = np.array([[0.5, 1.0, 0.5, 0.1], [0.0, 0.0, 0.0, 0.0]])
    hits = range_of_scores(scores, np.array([0, -1]), least)
    expected = {0.0: [[1, 2, 3], [0, 1, 2, 3]], 0.5: [[1, 2], []], 2.0: [[], []]}[least]
    assert [[y for y, _ in row] for row in hit_pairs(hits)] == expected


def test_the_range_of_no_queries() -> None:
    none = np.zeros(0, dtype=np.int64)
    hits = range_of_product(symmetric_factors(matrix("ones", 0)), Normalisation.DICE, none, none, 0.5)
    assert (len(hits.rows), hits.starts.tolist()) == (0, [0])


# ---- One query -----------------------------------------------------------------------------------
@settings(max_examples=30)
@given(KINDS, st.integers(0, 1000), st.sampled_from([1, 5, 100]), FORMULAS)
def test_one_query_is_answered_to_the_bit_as_many(kind: str, seed: int, k: int, normalisation: int | Formula) -> None:
    load_kernels()
    factors = symmetric_factors(matrix(kind, seed, rows=60))
    every = np.arange(60)
    for skipped in (every, np.full(60, -1)):
        best = top_k_of_product(factors, normalisation, every, skipped, k)
        for row in range(60):
            size = best.sizes[row]
            expected = best.rows[row, :size].tolist(), best.scores[row, :size].tolist()
            assert top_k_of_row(factors, formula_of(normalisation), row, int(skipped[row]), k) == expected


@settings(max_examples=30)
@given(KINDS, KINDS, st.integers(0, 1000), FORMULAS)
def test_scores_of_some_targets_are_those_of_all_to_the_bit(
    kind: str, other: str, seed: int, normalisation: int | Formula
) -> None:
    load_kernels()
    factors = make_factors(matrix(kind, seed, rows=30), products.freeze(matrix(other, seed + 1, rows=40).T.tocsr()))
    every = score_product(factors, normalisation, np.arange(30))
    targets = np.random.default_rng(seed).integers(0, 40, 9)
    for row in range(30):
        assert score_targets(factors, normalisation, row, targets).tolist() == every[row, targets].tolist()


@settings(max_examples=30)
@given(KINDS, st.integers(0, 1000), FORMULAS)
def test_scipy_scores_to_the_bit_as_the_kernels(kind: str, seed: int, normalisation: int | Formula) -> None:
    some = np.arange(0, 60, 7)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(topk, "_kernels_pay", lambda *_: False)
        by_scipy = score_product(symmetric_factors(matrix(kind, seed, rows=60)), normalisation, some)
    load_kernels()
    by_kernels = score_product(symmetric_factors(matrix(kind, seed, rows=60)), normalisation, some)
    assert by_scipy.tolist() == by_kernels.tolist()


@given(hins_with_path(symmetric=True), st.sampled_from(sorted(MEASURES)), st.integers(1, 7))
@pytest.mark.slow
def test_one_call_is_the_call_with_a_list(case: tuple[HIN, MetaPath], name: str, k: int) -> None:
    hin, path = case
    load_kernels()
    scorer = measure_named(name, path).fit(hin)
    ids = hin.nodes[path.source].ids.to_pylist()
    many = scorer.top_k(ids, k)
    assert [scorer.top_k(query, k) for query in ids] == many
    assert [scorer.top_k(query, k).shortfall for query in ids] == [hits.shortfall for hits in many]
    for query, hits in zip(ids, many, strict=True):
        assert tuple(scorer.scores(query, list(hits.ids)).tolist()) == hits.scores


def test_a_scorer_that_is_fitted_again_answers_anew() -> None:
    hin = npth.load("toy")
    scorer = npth.PathSim("APVPA").fit(hin)
    assert scorer.top_k("Mike", 2).ids == ("Bob", "Mary")
    scorer.metapath = "venue-paper-venue"
    assert scorer.fit(hin).top_k("KDD", 2).metapath == "venue-paper-venue"
    scorer.metapath = "APVPA"
    people = Nodes("author", pa.array(["Mike", "Zoe"]))
    papers, venues = Nodes("paper", pa.array(["p", "q"])), Nodes("venue", pa.array(["v"]))
    writes = Edges(Relation("author", "writes", "paper"), np.array([0, 1]), np.array([0, 1]))
    appears = Edges(Relation("paper", "appears_at", "venue"), np.array([0, 1]), np.array([0, 0]))
    assert scorer.fit(HIN.build([people, papers, venues], [writes, appears])).top_k("Mike", 2).ids == ("Zoe",)


@pytest.mark.parametrize("k", [True, 0, -1, 1.0, "2"])
def test_k_is_checked_on_every_call(k) -> None:
    scorer = npth.PathSim("APVPA").fit(npth.load("toy"))
    for _ in range(2):
        assert scorer.top_k("Mike", 1).ids == ("Bob",)
        with pytest.raises(QueryError, match="^k is"):
            scorer.top_k("Mike", k)


def test_threads_that_search_at_once_do_not_disturb_each_other() -> None:
    load_kernels()
    factors = symmetric_factors(matrix("counts", 3, rows=400))
    expected = [top_k_of_row(factors, formula_of(Normalisation.DICE), row, row, 7) for row in range(400)]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(5):
            rows = pool.map(lambda row: top_k_of_row(factors, formula_of(Normalisation.DICE), row, row, 7), range(400))
            assert list(rows) == expected


def test_queries_go_on_without_kernels_that_cannot_be_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    factors = symmetric_factors(matrix("counts", 0))
    for kernel in {kernel for kernels in topk.SEARCHES.values() for kernel in kernels}:
        monkeypatch.setattr(kernel, "code", {})
    monkeypatch.setattr(topk, "load_in_background", lambda _: None)  # no more threads
    for _ in range(3):
        assert len(top_k_of_product(factors, Normalisation.DICE, np.arange(9), np.arange(9), 3).sizes) == 9


@pytest.mark.parametrize("at", [0, 1, 5])
def test_queries_go_on_by_kernels_once_these_are_compiled(at: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first `at` queries of a batch go by scipy; all are answered to the bit as by kernels alone."""

    every = np.arange(60)
    load_kernels()
    for kind in ("counts", "floats"):
        asked: list[str] = []
        factors = symmetric_factors(matrix(kind, 1, rows=60))
        expected = [top_k_of_row(factors, formula_of(Normalisation.COSINE), row, row, 7) for row in every.tolist()]
        factors = symmetric_factors(matrix(kind, 1, rows=60))
        monkeypatch.setattr(topk, "_are_loaded", lambda _, search: asked.append(search) or len(asked) > at)  # noqa: B023
        hits = top_k_of_product(factors, Normalisation.COSINE, every, every, 7)
        sizes = hits.sizes.tolist()
        assert [(hits.rows[q, :n].tolist(), hits.scores[q, :n].tolist()) for q, n in enumerate(sizes)] == expected
        monkeypatch.undo()

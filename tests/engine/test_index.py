"""The index against all scores: equal rows, ties, weights, pruning, any number of threads."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from neupath.engine import topk
from neupath.engine.formula import Formula, Normalisation, formula_of
from neupath.engine.index import build_index
from neupath.engine.products import Factors, make_factors, symmetric_factors
from neupath.engine.topk import index_of
from neupath.graph.hin import freeze
from tests.conditioned import Case
from tests.engine.matrices import FORMULAS, KINDS, expected, matrix
from tests.graphs import hins_with_path
from tests.walks import by_walks


def by_index(factors: Factors, normalisation: int | Formula, k: int, threads: int) -> list[list[tuple[int, float]]]:
    every = np.arange(factors.left.shape[0])
    best = topk._top_k_by_index(factors, topk.index_of(factors), normalisation, every, every, k, threads)
    return [
        list(zip(rows[:size].tolist(), scores[:size].tolist(), strict=True))
        for rows, scores, size in zip(best.rows, best.scores, best.sizes, strict=True)
    ]


@settings(max_examples=40)
@given(KINDS, st.integers(0, 1000), st.sampled_from([1, 3, 10]), FORMULAS)
@pytest.mark.slow
def test_pruned_search_finds_what_sorting_all_scores_finds(
    kind: str, seed: int, k: int, normalisation: int | Formula
) -> None:
    factors = symmetric_factors(matrix(kind, seed))
    assert by_index(factors, normalisation, k, 1) == expected(factors, normalisation, k)


@settings(max_examples=20)
@given(KINDS, KINDS, st.integers(0, 1000), FORMULAS)
@pytest.mark.slow
def test_products_of_two_different_factors(kind: str, other: str, seed: int, normalisation: int | Formula) -> None:
    factors = make_factors(matrix(kind, seed), freeze(csr_array(matrix(other, seed + 1).T)))
    assert by_index(factors, normalisation, 4, 1) == expected(factors, normalisation, 4)


@given(hins_with_path(symmetric=True), st.integers(1, 4))
@pytest.mark.slow
def test_small_graphs_with_everything(hin_and_path, k: int) -> None:
    from neupath import PathSim

    hin, path = hin_and_path
    factors = PathSim(path).fit(hin).factors_
    assert by_index(factors, Normalisation.DICE, k, 1) == expected(factors, Normalisation.DICE, k)


@settings(max_examples=15)
@given(st.integers(0, 2**32), st.integers(1, 4))
def test_small_graphs_with_conditions(seed: int, k: int) -> None:
    from neupath import PathSim

    case = Case(seed)
    path = case.path(symmetric=True)
    factors = PathSim(path).fit(case.hin).factors_
    hits = by_index(factors, Normalisation.DICE, k, 1)
    assert hits == expected(factors, Normalisation.DICE, k)
    scores = by_walks("pathsim", case.hin, path)
    assert all(score == pytest.approx(scores[x, y], rel=1e-9) for x, own in enumerate(hits) for y, score in own)


def test_threads_and_blocks_make_no_difference() -> None:
    factors = symmetric_factors(matrix("counts", 3, rows=2000, columns=20))
    one = by_index(factors, Normalisation.DICE, 7, 1)
    assert one == by_index(factors, Normalisation.DICE, 7, 3)
    for query in (0, 17, 1999):
        alone = topk._top_k_by_index(factors, topk.index_of(factors), 1, np.array([query]), np.array([query]), 7, None)
        assert list(zip(alone.rows[0].tolist(), alone.scores[0].tolist(), strict=True)) == one[query]


def test_equal_rows_are_one_label() -> None:
    index = build_index(symmetric_factors(matrix("few rows", 0)))
    assert index.num_labels <= 9
    assert int(index.counts.sum()) == len(index.members[1])
    assert (np.diff(index.norms) >= 0).all()


def test_different_rows_of_one_hash_stay_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    from neupath.engine import index_kernels as kernels

    monkeypatch.setattr(kernels, "hash_rows", lambda indptr, *_: np.zeros(len(indptr) - 1, dtype=np.uint64))
    factors = symmetric_factors(matrix("counts", 1))
    assert by_index(factors, Normalisation.DICE, 5, 1) == expected(factors, Normalisation.DICE, 5)


def test_an_index_is_built_when_it_pays() -> None:
    topk.load_kernels()
    heavy = symmetric_factors(matrix("ones", 0, rows=4000, columns=5))
    few = np.arange(3)
    topk.top_k_of_product(heavy, 1, few, few, 5)
    assert heavy.index is None, "three queries do not pay for it"
    every = np.arange(4000)
    topk.top_k_of_product(heavy, 1, every, every, 5)
    assert heavy.index is index_of(heavy)
    light = symmetric_factors(freeze(csr_array(np.eye(500))))
    topk.top_k_of_product(light, 1, np.arange(500), np.arange(500), 5)
    assert light.index is None, "what is light is done faster without"


def test_norms_at_the_end_of_a_floats_range_are_searched_without_bounds() -> None:
    topk.load_kernels()
    rows = matrix("ones", 0, rows=3000, columns=5)
    tiny = symmetric_factors(freeze(csr_array(rows * 1e-160)))
    every = np.arange(3000)
    topk.top_k_of_product(tiny, Normalisation.COSINE, every, every, 3)
    assert tiny.index is None


@settings(max_examples=30)
@given(KINDS, st.integers(0, 1000), st.sampled_from([1, 5]), FORMULAS)
def test_scipy_answers_to_the_same_bit(kind: str, seed: int, k: int, normalisation: int | Formula) -> None:
    factors = symmetric_factors(matrix(kind, seed, rows=60))
    every = np.arange(60)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(topk, "_are_loaded", lambda *_: False)  # kernels would take over
        best = topk._top_k_by_scipy(factors, normalisation, every, every, k, None)
    hits = [
        list(zip(rows[:size].tolist(), scores[:size].tolist(), strict=True))
        for rows, scores, size in zip(best.rows, best.scores, best.sizes, strict=True)
    ]
    assert hits == expected(factors, normalisation, k)


def test_one_search_does_not_load_the_compiler() -> None:
    code = (
        "import sys, neupath as npth; hits = npth.PathSim('APVPA').fit(npth.load('toy')).top_k('Mike'); "
        "assert hits.ids == ('Bob', 'Mary', 'Jim'), hits; print('numba' in sys.modules)"
    )
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert process.stdout == "False\n"


SEARCHES = """
import os, sys, threading, time
import neupath as npth
from neupath.engine import product_kernels

scorer = npth.PathSim("APVPA").fit(npth.load("toy"))
first = scorer.top_k(["Mike", "Mary"] * 4)[0]
assert "numba" not in sys.modules and threading.active_count() == 1
assert scorer.top_k("Mike") == first
assert [thread.name for thread in threading.enumerate()][1:] == ["neupath-kernels"]
child = os.fork()
while "int32" not in product_kernels.top_k_of_row.code:  # the child asks for what its parent had not begun to load
    assert scorer.top_k("Mike") == first
    time.sleep(0.01)
assert all(scorer.top_k("Mike") == first for _ in range(50))
if child == 0:
    sys.exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
print("equal")
"""


@pytest.mark.slow
def test_the_ninth_search_loads_the_kernels_in_the_background_and_a_fork_waits_for_them() -> None:
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", SEARCHES]
    process = subprocess.run(command, capture_output=True, text=True, check=True)
    assert process.stdout == "equal\n"


@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from(["ones", "counts", "floats", "few rows", "one hub"]), st.integers(0, 99),
    FORMULAS, st.sampled_from([1, 3, 10]),
)  # fmt: skip
def test_pruning_changes_nothing(kind: str, seed: int, normalisation: int | Formula, k: int) -> None:
    """Rows of many sizes, enough of them that a search begins with a stretch of the likely labels."""
    from neupath.engine import index_kernels as kernels

    rng = np.random.default_rng(seed)
    scale = rng.integers(1, 60, 1500)[:, None] if kind in ("ones", "few rows") else rng.random(1500)[:, None] * 50
    w = freeze(csr_array(matrix(kind, seed, rows=1500, columns=14).toarray() * scale))
    factors = symmetric_factors(w)
    index = index_of(factors)
    groups = np.arange(len(index.left_norms))
    results = []
    for prune in (False, True):
        rows, scores = np.full((len(groups), k), -1, dtype=np.int64), np.zeros((len(groups), k))
        room = (np.zeros(index.num_labels), np.empty(index.num_labels + 1, dtype=np.uint32),
                np.empty(index.widest, dtype=np.int64), np.empty(index.widest, dtype=np.int64))  # fmt: skip
        sizes = kernels.rank_groups(
            index.left, index.left_norms, index.postings, index.targets(k), formula_of(normalisation), prune, groups,
            room, rows, scores,
        )  # fmt: skip
        assert not room[0].any(), "the kernel must reset its sums"
        filled = np.arange(k) < sizes[:, None]
        results.append((sizes.tolist(), rows[filled].tolist(), scores[filled].tolist()))
    assert results[0] == results[1]
    work = factors.work * len(w.indptr) / max(1, len(groups))
    assert index.num_labels > 16 * k
    assert work > 2048, "so that queries are pruned at all"


def test_the_band_holds_just_what_can_reach_a_score() -> None:
    """All labels in it could, by Cauchy-Schwarz, and none outside."""
    from neupath.engine import index_kernels as kernels

    w = matrix("counts", 1, rows=1500, columns=14)
    index = index_of(symmetric_factors(w))
    low, high = kernels.band(formula_of(Normalisation.DICE), 0.9, float(index.norms[700]), index.norms)
    assert 0 < low < 700 < high < index.num_labels
    inside = (index.norms >= index.norms[low]) & (index.norms <= index.norms[high - 1])
    reach = 2 * np.sqrt(index.norms * index.norms[700]) / (index.norms + index.norms[700])
    assert (reach[~inside] < 0.9).all()
    assert (reach[inside] >= 0.9 - 1e-5).all()

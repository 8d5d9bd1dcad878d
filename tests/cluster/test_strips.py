"""Matrices in strips and their products: the same as of whole matrices, to the bit."""

import pickle
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import random_array

import neupath as npth
from neupath import HIN
from neupath.cluster import strips
from neupath.cluster.strips import Strips, cut_evenly, cut_steps, multiply_halves, multiply_strip
from neupath.cluster.workers import clear_cache
from neupath.engine.products import Factors
from neupath.measures import PCRW, HeteSim, walk_measures
from tests.cluster.clusters import InlineWorkers


@given(st.lists(st.sampled_from([0.0, 1.0, 2.0, 50.0]), max_size=30), st.integers(1, 12))
def test_a_cut_covers_all_and_is_even(weights: list[float], count: int) -> None:
    cut = cut_evenly(np.array(weights), count)
    assert (cut[0], cut[-1]) == (0, len(weights))
    assert all(a < b for a, b in pairwise(cut)) or len(weights) == 0
    assert len(cut) - 1 <= count
    heaviest = max((sum(weights[a:b]) for a, b in pairwise(cut)), default=0)
    assert heaviest <= sum(weights) / count + max(weights, default=0)


def test_strips_equal_the_matrix(tmp_path: Path) -> None:
    matrix = random_array((20, 30), density=0.3, format="csr", rng=np.random.default_rng(0))
    (factor,) = cut_steps([matrix], tmp_path, 20)
    cut = factor.strips.cut
    assert len(cut) > 4
    assert (factor.strips.read(range(1, 3)) != matrix[cut[1] : cut[3]]).nnz == 0
    assert np.array_equal(factor.row_counts, np.diff(matrix.indptr))
    assert np.array_equal(factor.column_counts, np.diff(matrix.tocsc().indptr))


@pytest.mark.parametrize("measure", walk_measures())
@pytest.mark.parametrize(
    ("path", "most"), [("APVPA", 700), ("APVPA", 10**9), ("paper-author-paper-venue-paper-author-paper", 40_000)]
)
def test_products_equal_those_of_one_machine(
    weighted: HIN, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, measure: str, path: str, most: int
) -> None:
    monkeypatch.setattr(strips, "_BLOCK_ENTRIES", 100)
    scorer = npth.measures.measure_named(measure, path).fit(weighted)
    assert_same(scorer, tmp_path, most)


@pytest.mark.parametrize("measure", ["hetesim", "pathcount", "pcrw", "dwpc"])
@pytest.mark.parametrize(
    ("path", "most"), [("author-paper", 500), ("author-paper-venue", 500), ("author-paper-venue-paper", 15_000)]
)
def test_paths_between_types(weighted: HIN, tmp_path: Path, measure: str, path: str, most: int) -> None:
    assert_same(npth.measures.measure_named(measure, path).fit(weighted), tmp_path, most)


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_any_graph(data: st.DataObject) -> None:
    from tests.graphs import hins_with_path

    hin, path = data.draw(hins_with_path(symmetric=True))
    measure = data.draw(st.sampled_from([npth.PathSim, HeteSim, PCRW]))
    with TemporaryDirectory() as folder:
        assert_same(measure(path).fit(hin), Path(folder), data.draw(st.integers(1, 5)))


def assert_same(scorer, folder: Path, most: int) -> None:
    """Compare the factors in strips with those of the whole matrices."""
    local = scorer.factors_
    assert isinstance(local, Factors)
    product = multiply_halves(scorer.halves(scorer.hin_, scorer.metapath_), folder, InlineWorkers(), most)
    right = local.right.T.tocsr()
    for factor, whole in ((product.left, local.left), (product.right, right)):
        assert_equal_rows([factor.read(range(i, i + 1)) for i in factor.numbers], whole)
    assert np.array_equal(product.left_norms, local.left_norms)
    assert np.array_equal(product.right_norms, local.right_norms)
    assert product.entries.sum() == right.nnz
    assert np.array_equal(product.row_counts, np.diff(local.left.indptr))


def assert_equal_rows(parts, whole) -> None:
    assert np.array_equal(np.concatenate([np.diff(part.indptr) for part in parts]), np.diff(whole.indptr))
    for name in ("indices", "data"):
        assert np.array_equal(np.concatenate([getattr(part, name) for part in parts]), getattr(whole, name))


def test_strips_that_all_tasks_need_are_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    matrix = random_array((20, 20), density=0.3, format="csr", rng=np.random.default_rng(0))
    left, right = (next(cut_steps([matrix], tmp_path / name, 20)).strips for name in ("left", "right"))
    product = Strips(tmp_path / "product", left.cut, 20)
    product.folder.mkdir()
    whole_reads: list[Strips] = []
    read = Strips.read
    monkeypatch.setattr(Strips, "read", lambda own, of: (own == right and whole_reads.append(own)) or read(own, of))
    for i in left.numbers:  # a task gets copies of its arguments
        multiply_strip(*pickle.loads(pickle.dumps((left, right, product, i, 10**6))))
    assert len(left.numbers) > 2
    assert len(whole_reads) == 1
    clear_cache()

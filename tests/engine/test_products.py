"""Products along a meta-path: chains, half-paths, cached products, and products too large for memory."""

from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array, random_array

import neupath as npth
from neupath import HIN, NeuPathError
from neupath._runtime import resources
from neupath._runtime.progress import Cancellation, WorkCancelled, cancelled_by
from neupath.engine import products, topk
from neupath.engine.formula import Normalisation
from neupath.engine.join import join
from neupath.engine.products import Chain, Factors
from neupath.engine.scorer import Scorer
from neupath.engine.topk import top_k_of_product
from neupath.graph.hin import Csr, Edges, freeze
from neupath.graph.metapath import Relation
from neupath.graph.nodes import Nodes
from neupath.measures import DWPC, PCRW, HeteSim, JoinSim, PathCount
from tests.graphs import hins_with_path
from tests.patience import PATIENCE

MEASURES = [npth.PathSim, JoinSim, HeteSim, PathCount, PCRW, DWPC]
PATHS = ["class-method-class", "class-module-class-module-class", "class-module-class-method"]


@pytest.fixture
def no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine on which no product fits."""
    monkeypatch.setattr(products, "_SMALL", 0)
    monkeypatch.setattr(resources, "free_memory", lambda: 10)
    monkeypatch.setattr(products, "_BLOCK", 100_000)  # so that there are several blocks


def fitted(measure: type, path: str, hin: HIN) -> Scorer | None:
    try:
        return measure(path).fit(hin)
    except NeuPathError:  # not defined on this path
        return None


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.slow
def test_rows_are_propagated_to_the_same_answers(measure, path, request, tmp_path) -> None:
    plain = fitted(measure, path, npth.load("stdlib"))
    request.getfixturevalue("no_memory")
    scorer = fitted(measure, path, npth.load("stdlib"))
    if plain is None or scorer is None:
        assert plain is scorer
        return
    assert isinstance(plain.factors_, Factors)
    assert isinstance(scorer.factors_, Chain) == (len(path.split("-")) > 3)
    queries = np.arange(0, 900, 37)
    np.testing.assert_allclose(scorer.score_rows(queries), plain.score_rows(queries), rtol=1e-12)
    ids = plain.hin_.nodes[plain.source_type].ids.take(queries).to_pylist()
    for hits, expected in zip(scorer.top_k(ids, k=7), plain.top_k(ids, k=7), strict=True):
        np.testing.assert_allclose(hits.scores, expected.scores, rtol=1e-12)
        if measure in (npth.PathSim, PathCount):  # whole numbers, so that ties are ties
            assert hits.ids == expected.ids
    pairs = [
        join(each.hin_, each, tmp_path / f"{number}.parquet", None, queries=ids, min_score=0.3).pairs
        for number, each in enumerate((plain, scorer))
    ]
    assert pairs[0] == pairs[1]


@pytest.mark.usefixtures("no_memory")
def test_a_type_without_nodes() -> None:
    nodes = [Nodes("a", pa.array(["x", "y"])), Nodes("b", pa.array(["z"])), Nodes("c", pa.array([], pa.string()))]
    none = np.zeros(0, dtype=np.int64)
    edges = [
        Edges(Relation("a", "r", "b"), np.array([0, 1]), np.array([0, 0])),
        Edges(Relation("b", "t", "c"), none, none),
    ]
    scorer = PathCount("a-b-a-b-c").fit(HIN.build(nodes, edges))
    assert isinstance(scorer.factors_, Chain)
    assert len(scorer.top_k("x")) == 0


def test_propagation_is_logged(no_memory, caplog: pytest.LogCaptureFixture) -> None:  # noqa: ARG001
    npth.PathSim("APVPA").fit(npth.load("toy"))
    assert "join up to 15 pairs of nodes" in caplog.text
    assert "rows are propagated query by query instead" in caplog.text


def test_a_prefix_is_multiplied_once(monkeypatch: pytest.MonkeyPatch) -> None:
    hin = npth.load("stdlib")
    npth.PathSim("class-module-class-module-class").fit(hin)
    short, long = "class-module-class-module-class", "class-module-class-method-class-module-class"
    counted: list[int] = []
    real = products.multiplications
    monkeypatch.setattr(products, "multiplications", lambda a, b: counted.append(1) or real(a, b))
    npth.PathSim(long).fit(hin)
    assert len(counted) == 2, "the first two steps are cached; left is their product with the third, twice"
    assert npth.PathSim(short).fit(hin).factors_ is JoinSim(short).fit(hin).factors_


def test_the_last_digit_does_not_depend_on_earlier_queries() -> None:
    def graph() -> HIN:
        rng = np.random.default_rng(0)
        sizes = {"author": 60, "paper": 80, "venue": 5}
        authors, papers, venues = rng.integers(0, 60, 400), rng.integers(0, 80, 400), rng.integers(0, 5, 80)
        return HIN.build(
            [Nodes(name, pa.array(range(size))) for name, size in sizes.items()],
            [
                Edges(Relation("author", "writes", "paper"), authors, papers, rng.random(400)),
                Edges(Relation("paper", "at", "venue"), np.arange(80), venues, rng.random(80)),
            ],
        )

    path, used = "paper-author-paper-venue-paper-author-paper", graph()
    npth.PathSim("paper-author-paper-author-paper").fit(used)
    first, second = (npth.PathSim(path).fit(hin).factors_.left for hin in (graph(), used))
    assert np.array_equal(first.data, second.data)


@pytest.mark.parametrize(("weight", "word"), [(1e154, "more"), (1e-170, "less")])
def test_weights_that_norms_cannot_hold_are_refused(weight: float, word: str) -> None:
    import pyarrow as pa

    nodes = [Nodes("a", pa.array(["x", "y", "z"])), Nodes("b", pa.array(["hub"]))]
    edges = Edges(Relation("a", "r", "b"), np.arange(3), np.zeros(3, dtype=np.int64), np.full(3, weight))
    with pytest.raises(NeuPathError, match=f"add up to {word} than a float can hold"):
        npth.PathSim("a-b-a").fit(HIN.build(nodes, [edges]))


def test_paths_that_no_float_holds_are_refused() -> None:
    """Without the check, paths of weight 1e-324 would be lost, and x and y would not be similar."""
    tiny = np.array([1e-162, 1e-162])
    hin = HIN.build(
        [Nodes("a", pa.array(["x", "y"])), Nodes("m", pa.array([1])), Nodes("b", pa.array([1]))],
        [
            Edges(Relation("a", "to", "m"), np.array([0, 1]), np.array([0, 0]), tiny),
            Edges(Relation("m", "to", "b"), np.array([0]), np.array([0]), tiny[:1]),
        ],
    )
    for measure in MEASURES:
        if measure in (HeteSim, PCRW, DWPC):  # they divide by sums of weights first
            assert measure("a-m-b-m-a").fit(hin).score("x", "y") > 0
            continue
        with pytest.raises(NeuPathError, match="may have the weight 1e-324, the product of .* 2 steps, less than a"):
            measure("a-m-b-m-a").fit(hin)


def test_a_minimal_score_near_the_limit_of_a_float(tmp_path) -> None:
    import pyarrow as pa

    nodes = [Nodes("a", pa.array(["x", "y", "z"])), Nodes("b", pa.array(["hub"]))]
    edges = Edges(Relation("a", "r", "b"), np.arange(3), np.zeros(3, dtype=np.int64), np.full(3, 1e85))
    scorer = PathCount("a-b-a").fit(HIN.build(nodes, [edges]))
    assert join(scorer.hin_, scorer, tmp_path / "a.parquet", None, min_score=1e160).pairs == 6


@pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")  # Python 3.12 warns where threads run
def test_a_child_process_searches_on_threads_of_its_own() -> None:
    import os
    import signal

    from neupath.engine.topk import in_blocks

    done: list[int] = []
    in_blocks(lambda block: done.append(block.start), 100, 2, 1e6)
    child = os.fork()
    if child == 0:
        signal.alarm(int(PATIENCE))  # a child that hangs fails the test
        in_blocks(lambda block: done.append(block.start), 100, 2, 1e6)
        os._exit(0 if len(done) == 4 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


# ---- Multiplication ------------------------------------------------------------------------------
@given(st.lists(st.integers(1, 6), min_size=2, max_size=6), st.integers(0, 2**32 - 1))
def test_chain_product_equals_dense(shape: list[int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    chain = [csr_array(random_array((rows, columns), density=0.5, rng=rng)) for rows, columns in pairwise(shape)]
    dense = np.eye(shape[0])
    for matrix in chain:
        dense = dense @ matrix.toarray()
    product = products.multiply_chain(chain)[0]
    np.testing.assert_allclose(product.toarray(), dense, rtol=1e-12, atol=1e-15)
    assert product.has_sorted_indices


def test_chain_product_starts_where_work_is_least(monkeypatch) -> None:
    """(1×50)·(50×1)·(1×50) costs 50 + 50 from the left and 2500 + 50 from the right."""
    order: list[int] = []
    counted = products.multiplications
    monkeypatch.setattr(products, "multiplications", lambda a, b: order.append(counted(a, b)) or counted(a, b))
    wide, tall = csr_array(np.ones((1, 50))), csr_array(np.ones((50, 1)))
    products.multiply_chain([wide, tall, wide])
    assert order == [50, 2500, 50]


@given(hins_with_path(symmetric=True))
@pytest.mark.slow
def test_half_path_times_its_transpose_is_the_path(case) -> None:
    hin, path = case
    factors = products.symmetric_product(hin, path)
    m = products.multiply_chain(products.adjacencies(hin, path))[0].toarray()
    np.testing.assert_allclose((factors.left @ factors.right).toarray(), m, rtol=1e-12)
    np.testing.assert_allclose(factors.left_norms, np.diag(m), rtol=1e-12)


def test_edges_of_weight_zero_are_no_paths() -> None:
    relation = Relation("a", "r", "b")
    nodes = [Nodes("a", pa.array(["x", "y"])), Nodes("b", pa.array(["m"]))]
    edges = Edges(relation, np.array([0, 1]), np.array([0, 0]), np.array([1.0, 0.0]))
    hin = HIN.build(nodes, [edges])
    assert npth.PathSim("a-b-a").fit(hin).factors_.left.nnz == 1
    assert len(npth.PathSim("a-b-a").fit(hin).top_k("x")) == 0


# ---- Large products ------------------------------------------------------------------------------
@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every product count as large, with several blocks of rows."""
    monkeypatch.setattr(products, "_SMALL", 0)
    monkeypatch.setattr(products, "_BLOCK_WORK", 50_000)


@pytest.mark.usefixtures("large")
def test_a_product_in_blocks_is_the_same_to_the_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "_BLOCK_WORK", 1000)
    rng = np.random.default_rng(3)
    a, b = (csr_array(random_array(shape, density=0.05, rng=rng)) for shape in ((300, 80), (80, 200)))
    b.data[:40] = 1e-300
    a.data[:400] = 1e-300  # products that underflow to 0 are left out
    whole, blocks = products.tidy(a @ b), products._multiply(a, b, products.multiplications(a, b))
    for name in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(blocks, name), getattr(whole, name), strict=True)


@pytest.mark.usefixtures("large")
def test_parallel_products_do_not_count_on_the_same_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    hin, paths = npth.load("stdlib"), ("class-module-class-module-class", "class-base-class-base-class")
    halves = [products.adjacencies(hin, hin.metapath(path).half()) for path in paths]
    largest = max(4 * 12 * products._max_entries(*half) for half in halves)
    monkeypatch.setattr(resources, "_memory_groups", lambda: [resources._MemoryGroup(largest, 0)])
    monkeypatch.setattr(resources, "_read_field", lambda *_: 1 << 62)
    vstack, meanwhile = products.vstack, []

    def multiply_another(*arguments: Any, **options: Any) -> Any:
        monkeypatch.setattr(products, "vstack", vstack)
        meanwhile.append(products.multiply_chain(halves[1]))
        return vstack(*arguments, **options)

    monkeypatch.setattr(products, "vstack", multiply_another)
    assert len(products.multiply_chain(halves[0])) == 1
    assert len(meanwhile[0]) == 2  # a chain, whose rows are propagated
    assert len(products.multiply_chain(halves[1])) == 1


@pytest.mark.usefixtures("large")
def test_a_cancelled_product_ends_between_two_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    cancellation, blocks, tidy = Cancellation(), [], products.tidy

    def cancel_at_the_third(matrix: Csr) -> Csr:
        blocks.append(matrix)
        if len(blocks) == 3:
            cancellation.cancel()
        return tidy(matrix)

    hin = npth.load("stdlib")
    monkeypatch.setattr(products, "tidy", cancel_at_the_third)
    with cancelled_by(cancellation), pytest.raises(WorkCancelled):
        npth.PathSim("class-method-class-method-class").fit(hin)
    assert len(blocks) == 3
    monkeypatch.undo()
    assert isinstance(npth.PathSim("class-method-class-method-class").fit(hin).factors_, Factors)


@pytest.mark.usefixtures("no_memory")
def test_a_cancelled_chain_ends_between_two_blocks() -> None:
    cancellation = Cancellation()
    chain = npth.PathSim("class-module-class-module-class").fit(npth.load("stdlib"))
    cancellation.cancel()
    with cancelled_by(cancellation), pytest.raises(WorkCancelled):
        chain.top_k("abc.ABC")


# ---- Large matrices ------------------------------------------------------------------------------
@pytest.mark.parametrize("shape", [(40, 60), (1, 5), (7, 1)])
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_threads_transpose_as_scipy_does(shape: tuple[int, int], index: type) -> None:
    matrix = csr_array(random_array(shape, density=0.3, rng=np.random.default_rng(1), format="csr"))
    wide = csr_array((matrix.data, matrix.indices.astype(index), matrix.indptr.astype(index)), shape=shape)
    transposed, expected = products._transposed_on_threads(wide), freeze(matrix.T.tocsr())
    for part in ("indptr", "indices", "data"):
        assert np.array_equal(getattr(transposed, part), getattr(expected, part))
        assert getattr(transposed, part).dtype == getattr(expected, part).dtype


@pytest.mark.parametrize("size", [1, 7, 100])
def test_parts_of_a_matrix_give_the_same_norms_and_counts(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    matrix = csr_array(random_array((50, 30), density=0.2, rng=np.random.default_rng(2), format="csr"))
    expected = products.row_norms(matrix), products.multiplications(matrix, csr_array(matrix.T))
    monkeypatch.setattr(products, "_PART", size)
    assert np.array_equal(products.row_norms(matrix), expected[0])
    factors = products.symmetric_factors(freeze(matrix))
    assert products.multiplications(factors.left, factors.right) == expected[1] == round(factors.work * 50)
    assert not products.is_whole(matrix)


@pytest.mark.slow
def test_indices_of_64_bits_give_the_same_hits(monkeypatch: pytest.MonkeyPatch) -> None:
    matrix = csr_array(random_array((300, 60), density=0.2, rng=np.random.default_rng(3), format="csr"))
    narrow, rows = products.symmetric_factors(freeze(csr_array(matrix))), np.arange(300)
    monkeypatch.setattr("neupath.graph.edges.index_type", lambda *_: np.dtype(np.int64))
    monkeypatch.setattr(products, "index_type", lambda *_: np.dtype(np.int64))
    monkeypatch.setattr(products, "_LARGE", 0)  # transposed on threads
    wide_indices = matrix.indices.astype(np.int64), matrix.indptr.astype(np.int64)
    wide = products.symmetric_factors(freeze(csr_array((matrix.data, *wide_indices), shape=matrix.shape)))
    assert {part.dtype for part in (wide.left.indices, wide.right.indptr)} == {np.dtype(np.int64)}
    for k in (5, 200):  # by the index, and by the kernels of products
        first, second = (top_k_of_product(factors, Normalisation.DICE, rows, rows, k) for factors in (narrow, wide))
        assert np.array_equal(first.rows, second.rows)
        assert np.array_equal(first.scores, second.scores)


def test_sums_of_many_targets_start_at_0(monkeypatch: pytest.MonkeyPatch) -> None:
    factors = products.symmetric_factors(
        freeze(csr_array(random_array((300, 60), density=0.2, rng=np.random.default_rng(3), format="csr")))
    )
    rows = np.arange(300)
    expected = top_k_of_product(factors, Normalisation.DICE, rows, rows, 200, threads=1)
    monkeypatch.setattr(topk, "_MOST_KEPT", 10)
    monkeypatch.setattr(topk._scratch, "arrays", None, raising=False)
    found = top_k_of_product(factors, Normalisation.DICE, rows, rows, 200, threads=1)
    assert np.array_equal(found.scores, expected.scores)

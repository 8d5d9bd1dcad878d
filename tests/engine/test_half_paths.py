from itertools import pairwise

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array, random_array

import neupath as npth
from neupath import HIN
from neupath.engine import products as chains
from neupath.engine import products as halfpath
from tests.graphs import hins_with_path


@given(st.lists(st.integers(1, 6), min_size=2, max_size=6), st.integers(0, 2**32 - 1))
def test_chain_product_equals_dense(shape: list[int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    chain = [csr_array(random_array((rows, columns), density=0.5, rng=rng)) for rows, columns in pairwise(shape)]
    dense = np.eye(shape[0])
    for matrix in chain:
        dense = dense @ matrix.toarray()
    product = chains.multiply_chain(chain)[0]
    np.testing.assert_allclose(product.toarray(), dense, rtol=1e-12, atol=1e-15)
    assert product.has_sorted_indices


def test_chain_product_starts_where_work_is_least(monkeypatch) -> None:
    """(1×50)·(50×1)·(1×50) costs 50 + 50 from the left and 2500 + 50 from the right."""
    order: list[int] = []
    counted = chains.multiplications
    monkeypatch.setattr(chains, "multiplications", lambda a, b: order.append(counted(a, b)) or counted(a, b))
    wide, tall = csr_array(np.ones((1, 50))), csr_array(np.ones((50, 1)))
    chains.multiply_chain([wide, tall, wide])
    assert order == [50, 2500, 50]


@given(hins_with_path(symmetric=True))
def test_half_path_times_its_transpose_is_the_path(case) -> None:
    hin, path = case
    factors = halfpath.symmetric_product(hin, path)
    m = chains.multiply_chain(halfpath.adjacencies(hin, path))[0].toarray()
    np.testing.assert_allclose((factors.left @ factors.right).toarray(), m, rtol=1e-12)
    np.testing.assert_allclose(factors.left_norms, np.diag(m), rtol=1e-12)


def test_edges_of_weight_zero_are_no_paths() -> None:
    relation = npth.Relation("a", "r", "b")
    nodes = [npth.Nodes("a", pa.array(["x", "y"])), npth.Nodes("b", pa.array(["m"]))]
    edges = npth.Edges(relation, np.array([0, 1]), np.array([0, 0]), np.array([1.0, 0.0]))
    hin = HIN.build(nodes, [edges])
    assert npth.PathSim("a-b-a").fit(hin).factors_.left.nnz == 1
    assert len(npth.PathSim("a-b-a").fit(hin).top_k("x")) == 0

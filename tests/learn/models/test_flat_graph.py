"""The graph as torch sees it, against its matrices."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings

pytest.importorskip("torch")

import torch

from neupath import HIN, load
from neupath.learn.models import GTN, NBFNet, flat_graph
from neupath.learn.models.flat_graph import GraphTensors, add_in_order
from tests.graphs import hins
from tests.learn.models.small_graphs import dense_kinds


@settings(max_examples=40)
@given(hin=hins())
def test_spread_is_a_weighted_sum_over_kinds(hin: HIN) -> None:
    graph = GraphTensors.of(hin, torch.device("cpu"))
    kinds = dense_kinds(hin)
    weights = torch.arange(1.0, len(kinds) + 1)
    h = torch.randn(graph.numbering.total, 2, 3, requires_grad=True)
    spread = graph.spread(h, weights)
    total = torch.tensor(sum(w * m for w, m in zip(weights.tolist(), kinds, strict=True)), dtype=torch.float32)
    torch.testing.assert_close(spread, torch.einsum("ts,sij->tij", total, h), atol=1e-5, rtol=0)
    spread.sum().backward()
    expected = total.sum(0)[:, None, None].expand_as(h)
    torch.testing.assert_close(h.grad, expected, atol=1e-5, rtol=0)


@settings(max_examples=40)
@given(hin=hins())
def test_adding_in_order_is_a_product(hin: HIN) -> None:
    for _, matrix, transposed in GraphTensors.of(hin, torch.device("cpu")).blocks:
        for each in (matrix, transposed):
            x = torch.randn(each.shape[1], 5)
            torch.testing.assert_close(add_in_order(each, x), each @ x, atol=1e-5, rtol=0)


def test_adding_in_order_in_slices(toy: HIN, monkeypatch: pytest.MonkeyPatch) -> None:
    matrix = GraphTensors.of(toy, torch.device("cpu")).blocks[0][1]
    x = torch.randn(matrix.shape[1], 7)
    whole = add_in_order(matrix, x)
    monkeypatch.setattr(flat_graph, "_MAX_ENTRIES", 3 * len(matrix.col_indices()))
    assert torch.equal(add_in_order(matrix, x), whole)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device; run the tests on a machine with one")
@pytest.mark.parametrize("model", [GTN, NBFNet])
def test_training_on_cuda_repeats_to_the_digit(model: type) -> None:
    stdlib = load("stdlib")
    labels = [(query, target, 1.0) for query, target in pairwise(stdlib.nodes["module"].ids[:200].to_pylist())]
    first, second = (model(dim=32, epochs=2, device="cuda").fit(stdlib, labels) for _ in range(2))
    assert np.array_equal(first.scores(labels[0][0]), second.scores(labels[0][0]))


@settings(max_examples=40)
@given(hin=hins())
def test_edges_of_each_kind_are_those_of_the_matrices(hin: HIN) -> None:
    graph = GraphTensors.of(hin, torch.device("cpu"))
    for (source, _, target), edges, whole in zip(*_parts(graph), dense_kinds(hin), strict=True):
        block = whole[graph.numbering.rows(target), graph.numbering.rows(source)]
        assert sorted(zip(*edges.tolist(), strict=True)) == sorted(zip(*block.T.nonzero(), strict=True))


def _parts(graph: GraphTensors):
    edges = graph.edges_by_kind()
    return edges.keys(), edges.values()

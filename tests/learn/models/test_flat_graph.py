"""The graph as torch sees it, against its matrices."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings

pytest.importorskip("torch")

import torch

from neupath import HIN, load
from neupath.learn.models import RGCN, NBFNet, NeuPath, flat_graph
from neupath.learn.models.flat_graph import GraphTensors, RowIndex, add_in_chunks
from neupath_paper.message_passing import GAT, HGT
from neupath_paper.metapath_gnns import GTN
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
def test_sums_of_gathered_rows_are_products(hin: HIN) -> None:
    """As on CUDA without Triton."""
    graph = GraphTensors.of(hin, torch.device("cpu"))
    for adjacency in (graph.adjacency, *(block for _, block in graph.blocks)):
        for way in adjacency._ways:
            x = torch.randn(way.shape[1], 5)
            torch.testing.assert_close(way.add_gathered(x), way.of(x), atol=1e-5, rtol=0)


def test_gathered_rows_are_added_up_in_slices(toy: HIN, monkeypatch: pytest.MonkeyPatch) -> None:
    way = GraphTensors.of(toy, torch.device("cpu")).adjacency._ways[0]
    x = torch.randn(way.shape[1], 7)
    whole = way.add_gathered(x)
    monkeypatch.setattr(flat_graph, "_MAX_ENTRIES", 3 * len(way.columns))
    assert torch.equal(way.add_gathered(x), whole)


@pytest.mark.parametrize("is_sorted", [True, False])
def test_entries_are_added_up_in_chunks_of_chunks(is_sorted: bool) -> None:
    """A row of thousands of entries, some of a few, some of none, as they are added up on CUDA."""
    generator = torch.Generator().manual_seed(0)
    rows = torch.cat([torch.zeros(5000, dtype=torch.int64), torch.randint(1, 40, (300,), generator=generator)])
    rows = rows.sort().values if is_sorted else rows[torch.randperm(len(rows), generator=generator)]
    index = RowIndex(rows, 60)
    assert len(index.chunks) > 2
    entries = torch.randn(len(rows), 2, 3, generator=generator, dtype=torch.float64)
    ordered = entries if index.order is None else entries[index.order]
    expected = torch.zeros(60, 2, 3, dtype=torch.float64).index_add(0, rows, entries)
    torch.testing.assert_close(add_in_chunks(ordered, index.chunks), expected)
    torch.testing.assert_close(index.add_up(entries), expected)
    for row, largest in enumerate(index.largest(entries)):
        own = entries[rows == row]
        torch.testing.assert_close(largest, own.amax(0) if len(own) else torch.full_like(largest, -torch.inf))


def test_taking_and_adding_up_have_the_gradients_of_each_other() -> None:
    index = RowIndex(torch.tensor([2, 0, 2, 3]), 5)
    x = torch.randn(5, 2, dtype=torch.float64, requires_grad=True)
    entries = torch.randn(4, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(index.take, x)
    assert torch.autograd.gradcheck(index.add_up, entries)
    assert torch.autograd.gradcheck(index.softmax, entries)
    torch.testing.assert_close(index.add_up(index.softmax(entries)), (index.sizes > 0).double()[:, None].expand(5, 2))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device; run the tests on a machine with one")
@pytest.mark.parametrize("model", [GAT, GTN, HGT, NBFNet, NeuPath, RGCN])
def test_training_on_cuda_repeats_to_the_digit(model: type) -> None:
    stdlib = load("stdlib")
    labels = [(query, target, 1.0) for query, target in pairwise(stdlib.nodes["module"].ids[:200].to_pylist())]
    first, second = (model(dim=32, epochs=4, device="cuda").fit(stdlib, labels) for _ in range(2))
    assert np.array_equal(first.scores(labels[0][0]), second.scores(labels[0][0]))

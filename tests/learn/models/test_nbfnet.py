"""NBFNet against a plain pass over edges, and what it can learn."""

import numpy as np
import pytest

pytest.importorskip("torch")

import torch

import neupath as npth
from neupath import HIN
from neupath.learn.evaluation import evaluate
from neupath.learn.models import NBFNet
from neupath.learn.models.flat_graph import GraphTensors
from neupath.learn.models.nbfnet import BellmanFord
from tests.learn.models.small_graphs import library, users


def plain(network: BellmanFord, query: int) -> torch.Tensor:
    """The states of all nodes for one query, edge by edge."""
    graph = network.graph
    h = [torch.zeros(len(network.boundary)) for _ in range(graph.numbering.total)]
    h[network.rows.start + query] = network.boundary
    edges = list(zip(*graph.edges.tolist(), graph.kinds.tolist(), strict=True))
    for relations, update in zip(network.relations, network.updates, strict=True):
        after = []
        for v in range(graph.numbering.total):
            messages = [h[u] * relations[kind] for u, to, kind in edges if to == v]
            stacked = torch.stack(messages or [torch.zeros_like(h[v])])
            variance = (stacked**2).mean(0) - stacked.mean(0) ** 2
            mean, std = stacked.mean(0), variance.clamp(min=1e-6).sqrt()
            total = stacked.sum(0)
            pooled = [h[v], total.sign() * (1 + total.abs()).log(), mean, std]
            if network.aggregation == "pna":
                degrees = [max(1, sum(to == u for _, to, _ in edges)) for u in range(graph.numbering.total)]
                scale = np.log(degrees[v] + 1) / np.mean(np.log(np.array(degrees) + 1))
                parts = (mean, stacked.max(0).values, stacked.min(0).values, std)
                pooled = [h[v], *(part * by for part in parts for by in (1, scale, 1 / scale))]
            after.append(h[v] + update(torch.cat(pooled)).relu())
        h = after
    return torch.stack(h)[network.rows]


@pytest.mark.parametrize("aggregation", ["logsum", "pna"])
@pytest.mark.slow
def test_equals_a_plain_pass(toy: HIN, aggregation: str) -> None:
    torch.manual_seed(2)
    types = ("author", "author")
    network = BellmanFord(GraphTensors.of(toy, torch.device("cpu")), types, 4, 3, aggregation)
    states = network.propagate(torch.tensor([0, 3]))[network.rows]
    for at, query in enumerate((0, 3)):
        expected = plain(network, query)
        torch.testing.assert_close(states[:, at], expected, atol=1e-4, rtol=1e-4)
        scores = network.decoder(torch.cat([expected, expected[query].expand_as(expected)], dim=-1)).squeeze(-1)
        torch.testing.assert_close(network.score_all([query])[0], scores, atol=1e-4, rtol=1e-4)
    pairs = network(torch.tensor([0, 3]), torch.tensor([1, 0, 1]), torch.tensor([1, 2, 3]))  # 3, 0, 3 and 1, 2, 3
    rows = network.score_all([3, 0])
    torch.testing.assert_close(pairs, torch.stack([rows[0, 1], rows[1, 2], rows[0, 3]]), atol=1e-4, rtol=1e-4)


@pytest.mark.slow
def test_learns_a_path_it_was_not_told() -> None:
    hin = library()
    teacher = npth.PathSim("user-item-user").fit(hin)
    model = NBFNet(dim=16, layers=2, epochs=20, device="cpu").fit(hin, teacher=teacher, queries=users(50))
    evaluation = evaluate(model, teacher, users(55, 79))
    assert evaluation.ndcg is not None
    assert evaluation.ndcg > 0.9
    other = library(seed=8, users=100)
    moved = evaluate(model.bind(other), npth.PathSim("user-item-user").fit(other), users(99))
    assert moved.ndcg is not None
    assert moved.ndcg > 0.85

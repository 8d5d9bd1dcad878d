"""LightGCN (He et al., SIGIR 2020) with a gate for each kind of edge, so that it can choose what to follow."""

import torch
from torch import Tensor, nn

from neupath.learn.models.embedding_baseline import EmbeddingBaseline
from neupath.learn.models.flat_graph import GraphTensors, edge_kinds

_GATE_PACE = 10
"""How much faster gates learn than weights: they must move far from 1 within a few hundred steps."""


class LightGCN(EmbeddingBaseline):
    """Add up what neighbours have, step by step, without matrices in between.

        h⁰ = x        h^k = D^-½·Σ_φ g_φ^k·A_φ·D^-½·h^(k-1)        h = Σ_k a_k·h^k

    LightGCN has g = 1 and a = 1/(L + 1), and knows one kind of edge. Here the gates g > 0 and the shares a (a softmax)
    are trained, since a graph of many relations has few that matter to some labels.

    Parameters
    ----------
    dim, layers, attributes, training
        See `EmbeddingBaseline`.

    >>> import neupath as npth
    >>> model = LightGCN(dim=8, epochs=2).fit(npth.load("toy"), [("Mike", "Bob", 1.0), ("Mike", "Ann", 0.0)])
    >>> len(model.top_k("Jim", k=2))
    2
    """

    name = "lightgcn"

    def _make_encoder(self, graph: GraphTensors) -> nn.Module:
        return GatedSteps(graph, self.layers)


class GatedSteps(nn.Module):
    """The gates of every step and the shares of the steps."""

    def __init__(self, graph: GraphTensors, steps: int) -> None:
        super().__init__()
        self.graph = graph
        degrees = torch.bincount(graph.edges[1], minlength=graph.numbering.total)
        self.scale = degrees.clamp(min=1).float().rsqrt()[:, None]  # D^-½, (nodes, 1)
        self.slow_gates = nn.Parameter(torch.zeros(steps, len(edge_kinds(graph.schema))))
        self.slow_shares = nn.Parameter(torch.zeros(steps + 1))

    def gates(self) -> Tensor:
        """Return g, the gate of each kind of edge at each step; shape (steps, kinds)."""
        return (_GATE_PACE * self.slow_gates).exp()

    def shares(self) -> Tensor:
        """Return a, the share of what each node has after each number of steps; shape (steps + 1,)."""
        return (_GATE_PACE * self.slow_shares).softmax(0)

    def forward(self, x: Tensor) -> Tensor:
        """Return the vectors of all nodes; (nodes, d) to (nodes, d)."""
        h, shares = x, self.shares()
        total = shares[0] * h
        for share, gates in zip(shares[1:], self.gates(), strict=True):
            h = self.scale * self.graph.spread(self.scale * h, gates)
            total = total + share * h
        return total

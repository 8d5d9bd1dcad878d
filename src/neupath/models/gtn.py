"""GTN (Yun et al., NeurIPS 2019): graph convolution over softly chosen products of relations."""

from typing import Unpack

import torch
from torch import Tensor, nn

from neupath.models.baseline import TrainingOptions
from neupath.models.embedding import EmbeddingScorer
from neupath.models.graph_tensors import GraphTensors
from neupath.models.model import check_counts

PACE = 100
"""How much faster gates learn than weights, as in the authors' code; at the pace of weights they stay near even."""


class GTN(EmbeddingScorer):
    """Choose a chain of relations, softly, and average over the nodes it leads to.

    H_c = Π_steps (Σ_φ gate_φ·A_φ + gate_stay·I)    h = W·‖_c ReLU(D_c⁻¹·(H_c + I)·x·W_c),  D_c = row sums of H_c + I

    A chain has `layers` steps, each with a softmax gate, in each of `channels`. H_c is never formed: the features, and
    a column of ones for the row sums, are passed along the chain step by step.

    >>> import neupath as npth
    >>> labels = [("Mike", "Bob", 1.0), ("Mike", "Mary", 0.8), ("Mike", "Ann", 0.0)]
    >>> model = GTN(dim=8, epochs=2).fit(npth.load("toy"), labels)
    >>> len(model.top_k("Jim", k=2))
    2
    """

    name = "gtn"
    settings = ("channels",)

    def __init__(self, dim: int = 256, layers: int = 2, *, channels: int = 2, **rest: Unpack[TrainingOptions]) -> None:
        super().__init__(dim, layers, **rest)
        check_counts(channels=channels)
        self.channels = channels

    def _make_encoder(self, graph: GraphTensors) -> nn.Module:
        return SoftChains(graph, self.dim, self.layers, self.channels)


class SoftChains(nn.Module):
    """The gates of every channel and step, and the convolution over the chains they choose."""

    def __init__(self, graph: GraphTensors, dim: int, steps: int, channels: int) -> None:
        super().__init__()
        self.graph = graph
        kinds = len(graph.blocks) + 1  # the last is "stay"
        self.slow_gates = nn.Parameter(0.1 / PACE * torch.randn(steps, kinds, channels))
        self.project = nn.Linear(dim, channels * dim, bias=False)
        self.combine = nn.Linear(channels * dim, dim)

    def gates(self) -> Tensor:
        """Return the share of each kind of edge, and of staying, at each step; shape (steps, kinds, channels)."""
        return (PACE * self.slow_gates).softmax(1)

    def forward(self, x: Tensor) -> Tensor:
        """Return the vectors of all nodes; shapes (nodes, dim) both."""
        channels = self.slow_gates.shape[-1]
        features = self.project(x).unflatten(1, (channels, -1))  # (nodes, channels, dim)
        start = torch.cat([features, torch.ones_like(features[..., :1])], dim=-1)
        y = start
        for gate in self.gates().flip(0):  # the last step of a chain is the first to be multiplied
            y = self.graph.spread(y, gate[:-1, :, None]) + y * gate[-1, :, None]
        y = y + start
        found: Tensor = self.combine((y[..., :-1] / y[..., -1:]).relu().flatten(1))
        return found

"""NBFNet (Zhu, Zhang, Xhonneux, Tang, NeurIPS 2021): learned Bellman-Ford iterations from the query to all nodes."""

from collections.abc import Sequence
from typing import Unpack

import torch
from torch import Tensor, nn

from neupath.graph.hin import HIN
from neupath.learn.models.flat_graph import GraphTensors
from neupath.learn.models.model import TRAINING_PARAMS, PairModel, PairNetwork, TrainingOptions, check_counts


class NBFNet(PairModel):
    """Send a vector from the query along all paths, changed by each kind of edge, and read the score off the target.

    h⁰_v = [v = q]·b        m_v = {h_u ∘ w_φ : u -φ-> v}        h'_v = h_v + ReLU(W·(h_v ‖ log Σm ‖ mean m ‖ std m))
    s(q, t) = MLP(h_t ‖ h_q)

    Messages and boundary condition are NBFNet's with DistMult. Pooling is its PNA with a sum instead of degree
    scalers, maximum and minimum. The sum counts paths, which number thousands through hubs, so it enters as its
    logarithm, ±log(1 + |Σm|). There is no layer norm: with it, 4-step paths through hubs were learned later. There are
    no node features, so the model binds to other graphs.

    Parameters
    ----------
    dim
        The width. Each query passes over the whole graph by itself, so it is 32 by default, as in the paper.
    layers
        The length of the paths it can see.
    training
        The fields of `TrainingOptions`.

    >>> import neupath as npth
    >>> model = NBFNet(dim=8, layers=4, epochs=2).fit(npth.load("toy"), [("Mike", "Bob", 1.0), ("Mike", "Ann", 0.0)])
    >>> len(model.top_k("Jim", k=2))
    2
    """

    name = "nbfnet"
    param_names = ("dim", "layers", *TRAINING_PARAMS)
    queries_per_batch = 16

    def __init__(self, dim: int = 32, layers: int = 2, **training: Unpack[TrainingOptions]) -> None:
        super().__init__(**(TrainingOptions(learning_rate=5e-3) | training))
        check_counts(dim=dim, layers=layers)
        self.dim, self.layers = dim, layers

    def _make_network(self, hin: HIN) -> PairNetwork:
        return BellmanFord(GraphTensors.of(hin, self.device), self.node_type_, self.dim, self.layers)


class BellmanFord(PairNetwork):
    """The query's vector, a vector for each kind of edge and layer, the updates and the decoder."""

    def __init__(self, graph: GraphTensors, node_type: str, dim: int, layers: int) -> None:
        super().__init__()
        self.graph, self.rows = graph, graph.numbering.rows(node_type)
        degrees = torch.bincount(graph.edges[1], minlength=graph.numbering.total)
        self.degrees = degrees.clamp(min=1).float()[:, None, None]  # (nodes, 1, 1)
        self.boundary = nn.Parameter(torch.ones(dim))  # b
        self.relations = nn.Parameter(1 + 0.3 * torch.randn(layers, len(graph.blocks), dim))  # w_φ of each layer
        self.updates = nn.ModuleList(nn.Linear(4 * dim, dim) for _ in range(layers))  # W of each layer
        self.decoder = nn.Sequential(nn.Linear(2 * dim, dim), nn.ReLU(), nn.Linear(dim, 1))

    def propagate(self, queries: Tensor) -> Tensor:
        """Return h of every target for each query; shape (targets, queries, d)."""
        start = self.rows.start + queries
        h = self.boundary.new_zeros(self.graph.numbering.total, len(queries), len(self.boundary))
        h = h.index_put((start, torch.arange(len(queries), device=start.device)), self.boundary)
        for relations, update in zip(self.relations, self.updates, strict=True):
            total = self.graph.spread(h, relations)
            mean = total / self.degrees
            square = self.graph.spread(h**2, relations**2) / self.degrees
            std = (square - mean**2).clamp(min=1e-6).sqrt()
            h = h + update(torch.cat([h, total.sign() * total.abs().log1p(), mean, std], dim=-1)).relu()
        return h[self.rows]

    def forward(self, queries: Tensor, targets: Tensor) -> Tensor:
        distinct, which = torch.unique(queries, return_inverse=True)
        h = self.propagate(distinct)
        return self._decode(h[targets, which], h[queries, which])

    def score_all(self, queries: Sequence[int]) -> Tensor:
        scores = [self.boundary.new_zeros(0, self.rows.stop - self.rows.start)]
        for query in queries:
            h = self.propagate(torch.tensor([query], device=self.boundary.device))[:, 0]
            scores.append(self._decode(h, h[query].expand_as(h))[None])
        return torch.cat(scores)

    def _decode(self, h_target: Tensor, h_query: Tensor) -> Tensor:
        scores: Tensor = self.decoder(torch.cat([h_target, h_query], dim=-1)).squeeze(-1)
        return scores

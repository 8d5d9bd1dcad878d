"""NBFNet (Zhu, Zhang, Xhonneux, Tang, NeurIPS 2021): Bellman-Ford iterations, learned, from the query to all nodes."""

from collections.abc import Sequence
from typing import Unpack

import torch
from torch import Tensor, nn

from neupath.graph.hin import HIN
from neupath.learn.models.embedding_baseline import PairBaseline, PairNetwork, TrainingOptions
from neupath.learn.models.flat_graph import GraphTensors


class NBFNet(PairBaseline):
    """Send a vector from the query along all paths, changed by each kind of edge, and read the score off the target.

    h⁰_v = [v = q]·b        m_v = {h_u ∘ w_φ : u -φ-> v}        h'_v = h_v + ReLU(W·(h_v ‖ log Σm ‖ mean m ‖ std m))
    s(q, t) = MLP(h_t ‖ h_q)

    The messages and the boundary condition are NBFNet's with DistMult; the pooling is its PNA with a sum instead of
    degree scalers, maximum and minimum. The sum counts paths, which go through hubs by the thousands: so it enters as
    its logarithm, ±log(1 + |Σm|). There is no layer norm: with it, 4-step paths through hubs were learned later. It has
    no features of nodes, so it binds to other graphs. `layers` is the length of the paths it can see. Each query passes
    over the whole graph for itself, so the width is 32 unless said, as in the NBFNet paper.

    >>> import neupath as npth
    >>> labels = [("Mike", "Bob", 1.0), ("Mike", "Mary", 0.8), ("Mike", "Ann", 0.0)]
    >>> model = NBFNet(dim=8, layers=4, epochs=2).fit(npth.load("toy"), labels)
    >>> len(model.top_k("Jim", k=2))
    2
    """

    name = "nbfnet"
    queries_a_batch = 16

    def __init__(self, dim: int = 32, layers: int = 2, **rest: Unpack[TrainingOptions]) -> None:
        options: TrainingOptions = {"learning_rate": 5e-3, **rest}
        super().__init__(dim, layers, **options)

    def _make_network(self, hin: HIN) -> PairNetwork:
        return BellmanFord(GraphTensors.of(hin, self.device), self.node_type_, self.dim, self.layers)


class BellmanFord(PairNetwork):
    """What is learned: the query's vector, one for each kind of edge and layer, the updates and the decoder."""

    def __init__(self, graph: GraphTensors, node_type: str, dim: int, layers: int) -> None:
        super().__init__()
        self.graph, self.rows = graph, graph.rows_of(node_type)
        degrees = torch.bincount(graph.edges[1], minlength=graph.num_nodes)
        self.degrees = degrees.clamp(min=1).float()[:, None, None]  # (nodes, 1, 1)
        self.boundary = nn.Parameter(torch.ones(dim))
        self.relations = nn.Parameter(1 + 0.3 * torch.randn(layers, len(graph.blocks), dim))
        self.updates = nn.ModuleList(nn.Linear(4 * dim, dim) for _ in range(layers))
        self.decoder = nn.Sequential(nn.Linear(2 * dim, dim), nn.ReLU(), nn.Linear(dim, 1))

    def propagate(self, queries: Tensor) -> Tensor:
        """Return the state of every target for each query; shape (targets, queries, dim)."""
        start = self.rows.start + queries
        h = self.boundary.new_zeros(self.graph.num_nodes, len(queries), len(self.boundary))
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
        """Return the scores of each query, one query after the other: each needs a pass of its own."""
        found = [self.boundary.new_zeros(0, self.rows.stop - self.rows.start)]
        for query in queries:
            h = self.propagate(torch.tensor([query], device=self.boundary.device))[:, 0]
            found.append(self._decode(h, h[query].expand_as(h))[None])
        return torch.cat(found)

    def _decode(self, there: Tensor, here: Tensor) -> Tensor:
        scores: Tensor = self.decoder(torch.cat([there, here], dim=-1)).squeeze(-1)
        return scores

"""HGT (Hu, Dong, Wang, Sun, WWW 2020): attention with weights for each node type and kind of edge."""

import torch
from torch import Tensor, nn

from neupath.models.embedding import EmbeddingScorer, Layers, geometric, num_heads
from neupath.models.graph_tensors import GraphTensors


class HGT(EmbeddingScorer):
    """Let each node choose among its neighbours by attention, with weights by the types of both and the kind of edge.

    h'_t = h_t + W_τ(t)·GELU(Σ_s α_ts·M_φ·V_τ(s)·h_s),  α_ts = softmax_s (K_τ(s)·h_s)·A_φ·(Q_τ(t)·h_t), by heads; the
    shares of old and new are trained.

    >>> import neupath as npth
    >>> labels = [("Mike", "Bob", 1.0), ("Mike", "Mary", 0.8), ("Mike", "Ann", 0.0)]
    >>> model = HGT(dim=8, epochs=2).fit(npth.load("toy"), labels)
    >>> len(model.top_k("Jim", k=2))
    2
    """

    name = "hgt"

    def _make_encoder(self, graph: GraphTensors) -> nn.Module:
        edges = graph.edges_by_kind()
        about = (list(graph.schema.node_types), list(edges))
        layers = [geometric().HGTConv(self.dim, self.dim, about, heads=num_heads(self.dim)) for _ in range(self.layers)]

        def call(layer: nn.Module, x: Tensor) -> Tensor:
            found = layer(graph.by_type(x), edges)
            kept = graph.by_type(x)  # a type that no edge leads to stays what it is
            return torch.cat([kept[name] if found.get(name) is None else found[name] for name in kept])

        return Layers(layers, call)

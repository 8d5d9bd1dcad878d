"""RGCN (Schlichtkrull et al., ESWC 2018): weights of its own for each kind of edge."""

from torch import nn

from neupath.models.embedding import EmbeddingScorer, Layers, geometric
from neupath.models.flat_graph import edge_kinds
from neupath.models.graph_tensors import GraphTensors


class RGCN(EmbeddingScorer):
    """Average over the neighbours along each kind of edge, and add up.

    h'_t = W_0·h_t + Σ_φ W_φ·mean_{s along φ} h_s

    >>> import neupath as npth
    >>> labels = [("Mike", "Bob", 1.0), ("Mike", "Mary", 0.8), ("Mike", "Ann", 0.0)]
    >>> model = RGCN(dim=8, epochs=2).fit(npth.load("toy"), labels)
    >>> len(model.top_k("Jim", k=2))
    2
    """

    name = "rgcn"

    def _make_encoder(self, graph: GraphTensors) -> nn.Module:
        kinds = max(1, len(edge_kinds(graph.schema)))
        layers = [geometric().RGCNConv(self.dim, self.dim, kinds) for _ in range(self.layers)]
        return Layers(layers, lambda layer, x: layer(x, graph.edges, graph.kinds))

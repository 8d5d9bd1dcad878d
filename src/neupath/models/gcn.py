"""GCN (Kipf, Welling, ICLR 2017): the graph without its types."""

from torch import nn

from neupath.models.embedding import EmbeddingScorer, Layers, geometric
from neupath.models.graph_tensors import GraphTensors


class GCN(EmbeddingScorer):
    """Average over neighbours, each joined to itself, weighted by degrees.

    h' = D^-½·(A + I)·D^-½·h·W

    >>> import neupath as npth
    >>> labels = [("Mike", "Bob", 1.0), ("Mike", "Mary", 0.8), ("Mike", "Ann", 0.0)]
    >>> model = GCN(dim=8, epochs=2).fit(npth.load("toy"), labels)
    >>> len(model.top_k("Jim", k=2))
    2
    """

    name = "gcn"

    def _make_encoder(self, graph: GraphTensors) -> nn.Module:
        layers = [geometric().GCNConv(self.dim, self.dim, cached=True) for _ in range(self.layers)]
        return Layers(layers, lambda layer, x: layer(x, graph.edges))

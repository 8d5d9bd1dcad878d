"""GraphSAGE (Hamilton, Ying, Leskovec, NeurIPS 2017), without types."""

from torch import nn

from neupath.models.embedding import EmbeddingScorer, Layers, geometric
from neupath.models.graph_tensors import GraphTensors


class SAGE(EmbeddingScorer):
    """Put each node beside the mean of its neighbours.

    h'_t = W_1·h_t + W_2·mean_s h_s

    >>> import neupath as npth
    >>> labels = [("Mike", "Bob", 1.0), ("Mike", "Mary", 0.8), ("Mike", "Ann", 0.0)]
    >>> model = SAGE(dim=8, epochs=2).fit(npth.load("toy"), labels)
    >>> len(model.top_k("Jim", k=2))
    2
    """

    name = "sage"

    def _make_encoder(self, graph: GraphTensors) -> nn.Module:
        layers = [geometric().SAGEConv(self.dim, self.dim) for _ in range(self.layers)]
        return Layers(layers, lambda layer, x: layer(x, graph.edges))

"""GIN (Xu, Hu, Leskovec, Jegelka, ICLR 2019): sums, which tell neighbourhoods apart; without types."""

from torch import nn

from neupath.models.embedding import EmbeddingScorer, Layers, geometric
from neupath.models.graph_tensors import GraphTensors


class GIN(EmbeddingScorer):
    """Add up the neighbours, and pass the sum through two linear layers.

    h'_t = MLP((1 + ε)·h_t + Σ_s h_s),  ε trained; the MLP's inner layer is normalised, since sums grow with degrees.

    >>> import neupath as npth
    >>> labels = [("Mike", "Bob", 1.0), ("Mike", "Mary", 0.8), ("Mike", "Ann", 0.0)]
    >>> model = GIN(dim=8, epochs=2).fit(npth.load("toy"), labels)
    >>> len(model.top_k("Jim", k=2))
    2
    """

    name = "gin"

    def _make_encoder(self, graph: GraphTensors) -> nn.Module:
        layers = [geometric().GINConv(self._mlp(), train_eps=True) for _ in range(self.layers)]
        return Layers(layers, lambda layer, x: layer(x, graph.edges))

    def _mlp(self) -> nn.Module:
        inner, outer = nn.Linear(self.dim, self.dim), nn.Linear(self.dim, self.dim)
        return nn.Sequential(inner, nn.LayerNorm(self.dim), nn.ReLU(), outer)

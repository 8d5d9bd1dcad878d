"""MLP: what a node's features alone say, without the graph."""

from torch import nn

from neupath.models.embedding import EmbeddingScorer, Layers
from neupath.models.graph_tensors import GraphTensors


class MLP(EmbeddingScorer):
    """Pass each node's features through linear layers; no edge is seen.

    h_v = W_L·ReLU(… W_1·x_v)

    >>> import neupath as npth
    >>> labels = [("Mike", "Bob", 1.0), ("Mike", "Mary", 0.8), ("Mike", "Ann", 0.0)]
    >>> model = MLP(dim=8, epochs=2).fit(npth.load("toy"), labels)
    >>> len(model.top_k("Jim", k=2))
    2
    """

    name = "mlp"

    def _make_encoder(self, graph: GraphTensors) -> nn.Module:  # noqa: ARG002
        return Layers([nn.Linear(self.dim, self.dim) for _ in range(self.layers)], lambda layer, x: layer(x))

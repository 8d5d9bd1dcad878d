"""GAT (Veličković et al., ICLR 2018): attention over neighbours, without types."""

from torch import nn

from neupath.models.embedding import EmbeddingScorer, Layers, geometric, num_heads
from neupath.models.graph_tensors import GraphTensors


class GAT(EmbeddingScorer):
    """Let each node choose, by attention, whom of its neighbours to listen to.

    h'_t = Σ_s α_ts·W·h_s,  α_ts = softmax_s LeakyReLU(a·W·h_s + b·W·h_t),  s over the neighbours of t and t itself;
    four such heads side by side, one where the width is odd.

    >>> import neupath as npth
    >>> labels = [("Mike", "Bob", 1.0), ("Mike", "Mary", 0.8), ("Mike", "Ann", 0.0)]
    >>> model = GAT(dim=8, epochs=2).fit(npth.load("toy"), labels)
    >>> len(model.top_k("Jim", k=2))
    2
    """

    name = "gat"

    def _make_encoder(self, graph: GraphTensors) -> nn.Module:
        heads = num_heads(self.dim)
        layers = [geometric().GATConv(self.dim, self.dim // heads, heads) for _ in range(self.layers)]
        return Layers(layers, lambda layer, x: layer(x, graph.edges))

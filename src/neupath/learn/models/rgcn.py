"""RGCN: a relational graph convolution, with a matrix for each kind of edge.

The layer and the names of its weights are those of torch_geometric, which the tests compare it with; it adds up in a
fixed order without sorting, and can be recorded as CUDA graphs.
"""

import torch
from torch import Tensor, nn

from neupath.learn.models.embedding_baseline import EmbeddingBaseline, LayerStack, glorot
from neupath.learn.models.flat_graph import GraphTensors


class RGCN(EmbeddingBaseline):
    """Average over the neighbours along each kind of edge, and add up these means (Schlichtkrull et al., ESWC 2018).

    h'_t = W_0·h_t + Σ_φ W_φ·mean_{s along φ} h_s

    It takes the parameters of `EmbeddingBaseline`.

    >>> import neupath as npth
    >>> hin, labels = npth.load("toy"), [("Mike", "Bob", 1.0), ("Mike", "Ann", 0.0)]
    >>> len(RGCN(dim=8, epochs=2).fit(hin, labels).top_k("Jim", k=2))
    2
    """

    name = "rgcn"

    def _make_encoder(self, graph: GraphTensors) -> nn.Module:
        return LayerStack(RGCNLayer(self.dim, graph) for _ in range(self.layers))


class RGCNLayer(nn.Module):
    """One layer."""

    def __init__(self, dim: int, graph: GraphTensors) -> None:
        super().__init__()
        self.graph = graph
        self.weight = nn.Parameter(torch.empty(max(1, len(graph.blocks)), dim, dim))  # W_φ
        self.root = nn.Parameter(torch.empty(dim, dim))  # W_0
        self.bias = nn.Parameter(torch.zeros(dim))
        glorot(self.weight)
        glorot(self.root)

    def forward(self, h: Tensor) -> Tensor:
        after = self.graph.by_type(h @ self.root + self.bias)
        for weight, (link, block) in zip(self.weight, self.graph.blocks, strict=False):
            sent = h[self.graph.numbering.rows(link.source)]
            after[link.target] = after[link.target] + block.mean(sent) @ weight
        return torch.cat(list(after.values()))

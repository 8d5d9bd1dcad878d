"""Simple-HGN (Lv et al., KDD 2021): GAT that sees kinds of edges, with residual connections and vectors of length 1."""

from collections.abc import Sequence
from typing import Unpack, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from neupath.errors import QueryError
from neupath.learn.models.embedding_baseline import EmbeddingBaseline
from neupath.learn.models.flat_graph import GraphTensors, RowIndex, edge_kinds
from neupath.learn.models.model import TrainingOptions
from neupath_paper.message_passing import num_heads

_SLOPE = 0.05
"""Of the LeakyReLU, as in the authors' code."""


class SimpleHGN(EmbeddingBaseline):
    """Weigh a node's neighbours by attention that also sees the kind of edge.

        α_ts = softmax_s LeakyReLU(a·W·h_s + b·W·h_t + c·W_r·r_φ),  s over the neighbours of t and t itself
        α'_ts = (1 - β)·α_ts + β·α_ts of the layer before        h'_t = ELU(Σ_s α'_ts·W·h_s + W_res·h_t)

    by heads side by side, as in GAT. The last layer has no ELU, and its vectors are scaled to length 1.

    Parameters
    ----------
    dim, layers, attributes, training
        See `EmbeddingBaseline`.
    residual
        β, how much attention comes from the layer before; 0.05 in the paper.

    >>> import neupath as npth
    >>> model = SimpleHGN(dim=8, epochs=2).fit(npth.load("toy"), [("Mike", "Bob", 1.0), ("Mike", "Ann", 0.0)])
    >>> len(model.top_k("Jim", k=2))
    2
    """

    name = "simplehgn"
    param_names = (*EmbeddingBaseline.param_names, "residual")

    def __init__(
        self,
        dim: int = 256,
        layers: int = 2,
        *,
        residual: float = 0.05,
        attributes: bool = False,
        **training: Unpack[TrainingOptions],
    ) -> None:
        super().__init__(dim, layers, attributes=attributes, **training)
        if not 0 <= residual < 1:
            raise QueryError(f"‹residual› is {residual}; it must be at least 0 and below 1", parameter="residual")
        self.residual = residual

    def _make_encoder(self, graph: GraphTensors) -> nn.Module:
        return EdgeTypeAttention(graph, self.dim, self.layers, self.residual)


class EdgeTypeAttention(nn.Module):
    """All layers; the attention of each goes on into the next."""

    def __init__(self, graph: GraphTensors, dim: int, layers: int, residual: float) -> None:
        super().__init__()
        total, kinds = graph.numbering.total, len(edge_kinds(graph.schema))
        itself = torch.arange(total, device=graph.types.device)
        ends = torch.cat([graph.edges, itself.expand(2, total)], dim=1)
        numbers = torch.cat([graph.kinds, torch.full_like(itself, kinds)])  # the last kind is a node itself
        order = torch.argsort(ends[1], stable=True)
        self.sources, self.targets = (RowIndex(end, total) for end in ends[:, order])
        self.kinds, self.residual = RowIndex(numbers[order], kinds + 1), residual
        self.layers = nn.ModuleList(HGNLayer(dim, kinds + 1) for _ in range(layers))

    def forward(self, x: Tensor) -> Tensor:
        """Return the vectors of all nodes; (nodes, d) to (nodes, d)."""
        h, before = x, None
        for number, layer in enumerate(cast(Sequence[HGNLayer], self.layers)):
            h = h if number == 0 else functional.elu(h)
            projected = layer.project(h).unflatten(1, (layer.heads, -1))  # (nodes, heads, d/heads)
            source, target, kind = layer(projected)
            logits = self.sources.take(source) + self.targets.take(target) + self.kinds.take(kind)
            attention = self.targets.softmax(functional.leaky_relu(logits, _SLOPE))  # (E, heads)
            if before is not None:
                attention = (1 - self.residual) * attention + self.residual * before
            before = attention
            h = self.targets.add_up(attention[..., None] * self.sources.take(projected)).flatten(1) + layer.keep(h)
        return functional.normalize(h, dim=-1)


class HGNLayer(nn.Module):
    """The matrices of one layer."""

    def __init__(self, dim: int, kinds: int) -> None:
        super().__init__()
        heads = self.heads = num_heads(dim)
        self.project = nn.Linear(dim, dim, bias=False)  # W of all heads
        self.keep = nn.Linear(dim, dim, bias=False)  # W_res
        self.kind = nn.Embedding(kinds, dim // heads)  # r_φ
        self.project_kind = nn.Linear(dim // heads, dim, bias=False)  # W_r of all heads
        self.ends = nn.Parameter(torch.randn(3, heads, dim // heads) / (dim // heads) ** 0.5)  # a, b, c

    def forward(self, projected: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return what sources, targets and kinds of edges add to the logits; (nodes, heads) twice, (kinds, heads)."""
        of_kinds = self.project_kind(self.kind.weight).unflatten(1, (self.heads, -1))  # (kinds, heads, d/heads)
        source, target = ((projected * end).sum(-1) for end in self.ends[:2])
        return source, target, (of_kinds * self.ends[2]).sum(-1)

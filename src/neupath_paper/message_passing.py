"""Baselines that pass messages along edges: MLP, GCN, GAT, GraphSAGE, GIN and HGT.

All take the parameters of `EmbeddingBaseline`. Layers and the names of their weights are those of torch_geometric,
which the tests compare them with; these add up in a fixed order without sorting, and can be recorded as CUDA graphs.

>>> import neupath as npth
>>> hin, labels = npth.load("toy"), [("Mike", "Bob", 1.0), ("Mike", "Ann", 0.0)]
>>> models = [model(dim=8, epochs=2).fit(hin, labels) for model in (MLP, GCN, GAT, SAGE, GIN, HGT)]
>>> [len(model.top_k("Jim", k=2)) for model in models]
[2, 2, 2, 2, 2, 2]
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from neupath.learn.models.embedding_baseline import EmbeddingBaseline, LayerStack, glorot
from neupath.learn.models.flat_graph import EdgeMatrix, GraphTensors, RowIndex, edge_kinds


class MLP(EmbeddingBaseline):
    """Pass each node's features through linear layers, without edges.

    h_v = W_L·ReLU(… W_1·x_v)
    """

    name = "mlp"

    def _make_encoder(self, graph: GraphTensors) -> nn.Module:  # noqa: ARG002
        return LayerStack(nn.Linear(self.dim, self.dim) for _ in range(self.layers))


# ---- GCN -----------------------------------------------------------------------------------------
class GCN(EmbeddingBaseline):
    """Average over a node's neighbours and itself, weighted by degrees (Kipf, Welling, ICLR 2017).

    h' = D^-½·(A + I)·D^-½·h·W
    """

    name = "gcn"

    def _make_encoder(self, graph: GraphTensors) -> nn.Module:
        (sources, targets), total = graph.edges_with_loops, graph.numbering.total
        adjacency = EdgeMatrix(sources, targets, (total, total))
        return LayerStack(GCNLayer(self.dim, adjacency) for _ in range(self.layers))


class GCNLayer(nn.Module):
    """One layer; `adjacency` is A + I."""

    def __init__(self, dim: int, adjacency: EdgeMatrix) -> None:
        super().__init__()
        self.adjacency, self.scale = adjacency, adjacency.degrees.float().rsqrt()[:, None]  # D^-½, (nodes, 1)
        self.lin = nn.Linear(dim, dim, bias=False)
        self.bias = nn.Parameter(torch.zeros(dim))
        glorot(self.lin.weight)

    def forward(self, h: Tensor) -> Tensor:
        return self.scale * self.adjacency.sum(self.scale * self.lin(h)) + self.bias


# ---- GAT -----------------------------------------------------------------------------------------
class GAT(EmbeddingBaseline):
    """Weigh a node's neighbours by attention (Veličković et al., ICLR 2018).

    h'_t = Σ_s α_ts·W·h_s,  α_ts = softmax_s LeakyReLU(a·W·h_s + b·W·h_t),  s over the neighbours of t and t itself;
    four such heads side by side, one if the width is not a multiple of four.
    """

    name = "gat"

    def _make_encoder(self, graph: GraphTensors) -> nn.Module:
        sources, targets = (RowIndex(ends, graph.numbering.total) for ends in graph.edges_with_loops)
        return LayerStack(GATLayer(self.dim, sources, targets) for _ in range(self.layers))


class GATLayer(nn.Module):
    """One layer over the edges with these ends."""

    def __init__(self, dim: int, sources: RowIndex, targets: RowIndex) -> None:
        super().__init__()
        self.sources, self.targets, self.heads = sources, targets, num_heads(dim)
        self.lin = nn.Linear(dim, dim, bias=False)  # W of all heads
        self.att_src, self.att_dst = (nn.Parameter(torch.empty(1, self.heads, dim // self.heads)) for _ in range(2))
        self.bias = nn.Parameter(torch.zeros(dim))
        for weight in (self.lin.weight, self.att_src, self.att_dst):
            glorot(weight)

    def forward(self, h: Tensor) -> Tensor:
        projected = self.lin(h).unflatten(1, (self.heads, -1))  # (nodes, heads, d/heads)
        return attend(projected, self.att_src, self.att_dst, self.sources, self.targets) + self.bias


def num_heads(dim: int) -> int:
    """Return the number of attention heads: 4 if the width divides evenly, else 1."""
    return 4 if dim % 4 == 0 else 1


def attend(projected: Tensor, source: Tensor, target: Tensor, sources: RowIndex, targets: RowIndex) -> Tensor:
    """Return Σ_s α_ts·h_s with α_ts = softmax_s LeakyReLU(a·h_s + b·h_t), by heads; shape (nodes, d).

    `projected` are the h, shape (nodes, heads, d/heads); `source` and `target` are a and b, shape (1, heads, d/heads).
    """
    logits = sources.take((projected * source).sum(-1)) + targets.take((projected * target).sum(-1))
    attention = targets.softmax(functional.leaky_relu(logits, 0.2))  # (E, heads)
    return targets.add_up(attention[..., None] * sources.take(projected)).flatten(1)


# ---- GraphSAGE and GIN ---------------------------------------------------------------------------
class SAGE(EmbeddingBaseline):
    """Combine each node with the mean of its neighbours (Hamilton, Ying, Leskovec, NeurIPS 2017).

    h'_t = W_1·h_t + W_2·mean_s h_s
    """

    name = "sage"

    def _make_encoder(self, graph: GraphTensors) -> nn.Module:
        return LayerStack(SAGELayer(self.dim, graph.adjacency) for _ in range(self.layers))


class SAGELayer(nn.Module):
    """One layer."""

    def __init__(self, dim: int, adjacency: EdgeMatrix) -> None:
        super().__init__()
        self.adjacency = adjacency
        self.lin_l = nn.Linear(dim, dim)  # W_2
        self.lin_r = nn.Linear(dim, dim, bias=False)  # W_1

    def forward(self, h: Tensor) -> Tensor:
        after: Tensor = self.lin_l(self.adjacency.mean(h)) + self.lin_r(h)
        return after


class GIN(EmbeddingBaseline):
    """Add up the neighbours, and pass the sum through an MLP (Xu, Hu, Leskovec, Jegelka, ICLR 2019).

    h'_t = MLP((1 + ε)·h_t + Σ_s h_s),  with trained ε; a layer norm in the MLP, since sums grow with degrees.
    """

    name = "gin"

    def _make_encoder(self, graph: GraphTensors) -> nn.Module:
        return LayerStack(GINLayer(self.dim, graph.adjacency) for _ in range(self.layers))


class GINLayer(nn.Module):
    """One layer."""

    def __init__(self, dim: int, adjacency: EdgeMatrix) -> None:
        super().__init__()
        self.adjacency = adjacency
        self.eps = nn.Parameter(torch.zeros(1))  # ε
        self.nn = nn.Sequential(nn.Linear(dim, dim), nn.LayerNorm(dim), nn.ReLU(), nn.Linear(dim, dim))

    def forward(self, h: Tensor) -> Tensor:
        after: Tensor = self.nn((1 + self.eps) * h + self.adjacency.sum(h))
        return after


# ---- HGT -----------------------------------------------------------------------------------------
class HGT(EmbeddingBaseline):
    """Weigh neighbours by attention, with matrices for each node type and kind of edge (Hu et al., WWW 2020).

    h'_t = β·W_τ(t)·GELU(Σ_s α_ts·M_φ·V_τ(s)·h_s) + (1 - β)·h_t
    α_ts = softmax_s p_φ·(A_φ·K_τ(s)·h_s)·(Q_τ(t)·h_t) / √(d/heads),  by heads; β is trained for each node type.
    """

    name = "hgt"

    def _make_encoder(self, graph: GraphTensors) -> nn.Module:
        edges = TypedEdges.of(graph)
        return LayerStack(HGTLayer(self.dim, graph, edges) for _ in range(self.layers))


@dataclass(frozen=True)
class TypedEdges:
    """The ends of all edges; each kind of edge has rows of its own for the nodes that it comes from."""

    sources: RowIndex
    targets: RowIndex
    kinds: RowIndex
    receives: tuple[bool, ...]
    """Whether any kind of edge leads to each node type."""

    @classmethod
    def of(cls, graph: GraphTensors) -> "TypedEdges":
        kinds, numbering = edge_kinds(graph.schema), graph.numbering
        ranges = [numbering.rows(link.source) for link in kinds]
        firsts = np.cumsum([0, *(rows.stop - rows.start for rows in ranges)])
        shifts = [int(first) - rows.start for first, rows in zip(firsts, ranges, strict=False)]
        shift = torch.tensor(shifts, dtype=torch.int64, device=graph.kinds.device)[graph.kinds]
        reached = {link.target for link in kinds}
        return cls(
            RowIndex(graph.edges[0] + shift, int(firsts[-1])),
            RowIndex(graph.edges[1], numbering.total),
            RowIndex(graph.kinds, len(kinds)),
            tuple(name in reached for name in graph.schema.node_types),
        )


class HGTLayer(nn.Module):
    """One layer."""

    def __init__(self, dim: int, graph: GraphTensors, edges: TypedEdges) -> None:
        super().__init__()
        self.graph, self.edges, self.heads = graph, edges, num_heads(dim)
        kinds, types, width = edge_kinds(graph.schema), graph.schema.node_types, dim // self.heads
        self.key, self.query, self.value, self.out = (TypedLinear(dim, graph) for _ in range(4))  # K, Q, V, W
        bound = width**-0.5
        self.key_of_kind, self.value_of_kind = (  # A_φ and M_φ
            nn.Parameter(torch.empty(len(kinds), self.heads, width, width).uniform_(-bound, bound)) for _ in range(2)
        )
        self.prior = nn.Parameter(torch.ones(len(kinds), self.heads))  # p_φ
        self.skip = nn.Parameter(torch.ones(len(types)))  # β before the sigmoid

    def forward(self, h: Tensor) -> Tensor:
        edges = self.edges
        keys, queries, values = (part(h).unflatten(1, (self.heads, -1)) for part in (self.key, self.query, self.value))
        keys, values = self._for_kinds(keys, self.key_of_kind), self._for_kinds(values, self.value_of_kind)
        logits = (edges.targets.take(queries) * edges.sources.take(keys)).sum(-1) * edges.kinds.take(self.prior)
        attention = edges.targets.softmax(logits / keys.shape[-1] ** 0.5)  # (E, heads)
        received = edges.targets.add_up(attention[..., None] * edges.sources.take(values)).flatten(1)
        after, before = self.graph.by_type(self.out(functional.gelu(received))), self.graph.by_type(h)
        shares = self.skip.sigmoid()
        return torch.cat([
            share * after[name] + (1 - share) * own if is_reached else own
            for (name, own), share, is_reached in zip(before.items(), shares, edges.receives, strict=True)
        ])  # fmt: skip

    def _for_kinds(self, x: Tensor, weights: Tensor) -> Tensor:
        """Return what each kind of edge makes of the nodes it comes from, one kind after the other; (…, heads, d)."""
        parts = [
            torch.einsum("nhi,hij->nhj", x[self.graph.numbering.rows(link.source)], weight)
            for weight, link in zip(weights, edge_kinds(self.graph.schema), strict=True)
        ]
        return torch.cat(parts) if parts else x[:0]


class TypedLinear(nn.Module):
    """A linear layer with a matrix and a bias for each node type."""

    def __init__(self, dim: int, graph: GraphTensors) -> None:
        super().__init__()
        self.graph, types = graph, len(graph.schema.node_types)
        bound = dim**-0.5
        self.weight = nn.Parameter(torch.empty(types, dim, dim).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(types, dim).uniform_(-bound, bound))

    def forward(self, x: Tensor) -> Tensor:
        """Return the features of all nodes, each by the matrix of its type; (nodes, d) to (nodes, d)."""
        parts = zip(self.graph.by_type(x).values(), self.weight, self.bias, strict=True)
        return torch.cat([part @ weight + bias for part, weight, bias in parts])

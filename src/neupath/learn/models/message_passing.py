"""Baselines by layers of torch_geometric: MLP, GCN, GAT, GraphSAGE, GIN, RGCN and HGT.

All take the parameters of `EmbeddingBaseline`.

>>> import neupath as npth
>>> hin, labels = npth.load("toy"), [("Mike", "Bob", 1.0), ("Mike", "Ann", 0.0)]
>>> models = [model(dim=8, epochs=2).fit(hin, labels) for model in (MLP, GCN, GAT, SAGE, GIN, RGCN, HGT)]
>>> [len(model.top_k("Jim", k=2)) for model in models]
[2, 2, 2, 2, 2, 2, 2]
"""

import torch
from torch import Tensor, nn

from neupath.learn.models.embedding_baseline import EmbeddingBaseline, LayerStack, geometric, num_heads
from neupath.learn.models.flat_graph import GraphTensors, edge_kinds


class MLP(EmbeddingBaseline):
    """Pass each node's features through linear layers, without edges.

    h_v = W_L·ReLU(… W_1·x_v)
    """

    name = "mlp"

    def _make_encoder(self, graph: GraphTensors) -> nn.Module:  # noqa: ARG002
        return LayerStack([nn.Linear(self.dim, self.dim) for _ in range(self.layers)], lambda layer, x: layer(x))


class GCN(EmbeddingBaseline):
    """Average over a node's neighbours and itself, weighted by degrees (Kipf, Welling, ICLR 2017).

    h' = D^-½·(A + I)·D^-½·h·W
    """

    name = "gcn"

    def _make_encoder(self, graph: GraphTensors) -> nn.Module:
        layers = [geometric().GCNConv(self.dim, self.dim, cached=True) for _ in range(self.layers)]
        return LayerStack(layers, lambda layer, x: layer(x, graph.edges))


class GAT(EmbeddingBaseline):
    """Weigh a node's neighbours by attention (Veličković et al., ICLR 2018).

    h'_t = Σ_s α_ts·W·h_s,  α_ts = softmax_s LeakyReLU(a·W·h_s + b·W·h_t),  s over the neighbours of t and t itself;
    four such heads side by side, one if the width is not a multiple of four.
    """

    name = "gat"

    def _make_encoder(self, graph: GraphTensors) -> nn.Module:
        heads = num_heads(self.dim)
        layers = [geometric().GATConv(self.dim, self.dim // heads, heads) for _ in range(self.layers)]
        return LayerStack(layers, lambda layer, x: layer(x, graph.edges))


class SAGE(EmbeddingBaseline):
    """Combine each node with the mean of its neighbours (Hamilton, Ying, Leskovec, NeurIPS 2017).

    h'_t = W_1·h_t + W_2·mean_s h_s
    """

    name = "sage"

    def _make_encoder(self, graph: GraphTensors) -> nn.Module:
        layers = [geometric().SAGEConv(self.dim, self.dim) for _ in range(self.layers)]
        return LayerStack(layers, lambda layer, x: layer(x, graph.edges))


class GIN(EmbeddingBaseline):
    """Add up the neighbours, and pass the sum through an MLP (Xu, Hu, Leskovec, Jegelka, ICLR 2019).

    h'_t = MLP((1 + ε)·h_t + Σ_s h_s),  with trained ε; a layer norm in the MLP, since sums grow with degrees.
    """

    name = "gin"

    def _make_encoder(self, graph: GraphTensors) -> nn.Module:
        def make_mlp() -> nn.Module:
            inner, outer = nn.Linear(self.dim, self.dim), nn.Linear(self.dim, self.dim)
            return nn.Sequential(inner, nn.LayerNorm(self.dim), nn.ReLU(), outer)

        layers = [geometric().GINConv(make_mlp(), train_eps=True) for _ in range(self.layers)]
        return LayerStack(layers, lambda layer, x: layer(x, graph.edges))


class RGCN(EmbeddingBaseline):
    """Average over the neighbours along each kind of edge, and add up these means (Schlichtkrull et al., ESWC 2018).

    h'_t = W_0·h_t + Σ_φ W_φ·mean_{s along φ} h_s
    """

    name = "rgcn"

    def _make_encoder(self, graph: GraphTensors) -> nn.Module:
        kinds = max(1, len(edge_kinds(graph.schema)))
        layers = [geometric().RGCNConv(self.dim, self.dim, kinds) for _ in range(self.layers)]
        return LayerStack(layers, lambda layer, x: layer(x, graph.edges, graph.kinds))


class HGT(EmbeddingBaseline):
    """Weigh neighbours by attention, with matrices for each node type and kind of edge (Hu et al., WWW 2020).

    h'_t = h_t + W_τ(t)·GELU(Σ_s α_ts·M_φ·V_τ(s)·h_s),  α_ts = softmax_s (K_τ(s)·h_s)·A_φ·(Q_τ(t)·h_t), by heads; the
    skip connection has a trained weight.
    """

    name = "hgt"

    def _make_encoder(self, graph: GraphTensors) -> nn.Module:
        edges = graph.edges_by_kind()
        metadata, heads = (list(graph.schema.node_types), list(edges)), num_heads(self.dim)
        layers = [geometric().HGTConv(self.dim, self.dim, metadata, heads=heads) for _ in range(self.layers)]

        def call(layer: nn.Module, x: Tensor) -> Tensor:
            before = graph.by_type(x)
            after = layer(before, edges)  # without the types that no edge leads to
            return torch.cat([h if after.get(name) is None else after[name] for name, h in before.items()])

        return LayerStack(layers, call)

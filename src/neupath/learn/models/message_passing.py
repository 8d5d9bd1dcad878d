"""HGT (Hu, Dong, Wang, Sun, WWW 2020): attention with weights for each node type and kind of edge."""

import torch
from torch import Tensor, nn

from neupath.learn.models.embedding_baseline import EmbeddingBaseline, Layers, geometric, num_heads
from neupath.learn.models.flat_graph import GraphTensors, edge_kinds


# ---- MLP -----------------------------------------------------------------------------------------
class MLP(EmbeddingBaseline):
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


# ---- GCN (Kipf, Welling, ICLR 2017) --------------------------------------------------------------
class GCN(EmbeddingBaseline):
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


# ---- GAT (Veličković et al., ICLR 2018) ----------------------------------------------------------
class GAT(EmbeddingBaseline):
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


# ---- GraphSAGE (Hamilton, Ying, Leskovec, NeurIPS 2017), without types ---------------------------
class SAGE(EmbeddingBaseline):
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


# ---- GIN (Xu, Hu, Leskovec, Jegelka, ICLR 2019) --------------------------------------------------
class GIN(EmbeddingBaseline):
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


# ---- RGCN (Schlichtkrull et al., ESWC 2018) ------------------------------------------------------
class RGCN(EmbeddingBaseline):
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


# ---- HGT (Hu, Dong, Wang, Sun, WWW 2020) ---------------------------------------------------------
class HGT(EmbeddingBaseline):
    """Let each node choose among its neighbours by attention, with weights by the types of both and the kind of edge.

    h'_t = h_t + W_τ(t)·GELU(Σ_s α_ts·M_φ·V_τ(s)·h_s),  α_ts = softmax_s (K_τ(s)·h_s)·A_φ·(Q_τ(t)·h_t), by heads; the
    shares of old and new are trained.

    >>> import neupath as npth
    >>> labels = [("Mike", "Bob", 1.0), ("Mike", "Mary", 0.8), ("Mike", "Ann", 0.0)]
    >>> model = HGT(dim=8, epochs=2).fit(npth.load("toy"), labels)
    >>> len(model.top_k("Jim", k=2))
    2
    """

    name = "hgt"

    def _make_encoder(self, graph: GraphTensors) -> nn.Module:
        edges = graph.edges_by_kind()
        about = (list(graph.schema.node_types), list(edges))
        layers = [geometric().HGTConv(self.dim, self.dim, about, heads=num_heads(self.dim)) for _ in range(self.layers)]

        def call(layer: nn.Module, x: Tensor) -> Tensor:
            found = layer(graph.by_type(x), edges)
            kept = graph.by_type(x)  # a type that no edge leads to stays what it is
            return torch.cat([kept[name] if found.get(name) is None else found[name] for name in kept])

        return Layers(layers, call)

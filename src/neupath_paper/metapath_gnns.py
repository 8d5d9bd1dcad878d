"""Baselines that choose among meta-paths: HAN among given ones, GTN among all chains of relations."""

from collections.abc import Sequence
from itertools import islice
from typing import Unpack

import numpy as np
import torch
from torch import Tensor, nn

from neupath.engine.products import Product, symmetric_product
from neupath.errors import QueryError
from neupath.graph.metapath import MetaPath, enumerate_metapaths
from neupath.learn.models.embedding_baseline import EmbeddingBaseline, LayerStack, glorot
from neupath.learn.models.flat_graph import GraphTensors, Ints, RowIndex
from neupath.learn.models.model import TrainingOptions, check_counts
from neupath_paper.message_passing import attend, num_heads

# ---- HAN (Wang et al., WWW 2019) -----------------------------------------------------------------
_MAX_METAPATHS = 8
_ROWS_PER_BLOCK = 256


class HAN(EmbeddingBaseline):
    """Weigh the nodes that a meta-path joins to a node by attention; then weigh the meta-paths.

    z_t^P = Σ_s α_ts^P·W·h_s over the neighbours s of t along P,  h'_t = Σ_P β_P·z_t^P,  α and β attention.

    Parameters
    ----------
    dim, attributes, training
        See `EmbeddingBaseline`.
    layers
        The number of layers; its paper has one.
    metapaths
        Symmetric meta-paths of the ranked type; by default the shortest 8 of up to 4 steps.
    neighbours
        How many neighbours along a meta-path a node keeps; through hubs, a path can join nearly all pairs. The seed
        draws one order of preference for all nodes, so that nodes with the same neighbours keep the same ones.

    >>> import neupath as npth
    >>> labels = [("Mike", "Bob", 1.0), ("Mike", "Ann", 0.0)]
    >>> model = HAN(dim=8, epochs=2, metapaths=["APA", "APVPA"]).fit(npth.load("toy"), labels)
    >>> len(model.top_k("Jim", k=2))
    2
    """

    name = "han"
    param_names = (*EmbeddingBaseline.param_names, "metapaths", "neighbours")

    def __init__(
        self,
        dim: int = 256,
        layers: int = 1,
        *,
        metapaths: Sequence[str] | None = None,
        neighbours: int = 32,
        attributes: bool = False,
        **training: Unpack[TrainingOptions],
    ) -> None:
        super().__init__(dim, layers, attributes=attributes, **training)
        check_counts(neighbours=neighbours)
        self.metapaths = None if metapaths is None else [str(metapath) for metapath in metapaths]
        self.neighbours = neighbours

    def _make_encoder(self, graph: GraphTensors) -> nn.Module:
        rows = graph.numbering.rows(self.node_type_)
        edges = []
        for metapath in self.candidate_metapaths():
            pairs = sample_neighbours(symmetric_product(self.hin_, metapath), self.neighbours, self.seed)
            ends = torch.from_numpy(pairs).to(graph.types.device)
            edges.append((RowIndex(ends[0], rows.stop - rows.start), RowIndex(ends[1], rows.stop - rows.start)))
        return LayerStack(HANLayer(self.dim, rows, edges) for _ in range(self.layers))

    def candidate_metapaths(self) -> list[MetaPath]:
        if self.metapaths is None:
            candidates = list(islice(enumerate_metapaths(self.hin_.schema, self.node_type_, 4), _MAX_METAPATHS))
        else:
            candidates = [self.hin_.metapath(text) for text in self.metapaths]
        for metapath in candidates:
            metapath.require_round_trip("HAN")
            if metapath.source != self.node_type_:
                raise QueryError(
                    f"{metapath} joins {metapath.source} nodes, and the labels are of {self.node_type_} nodes"
                )
        if not candidates:
            raise QueryError(f"HAN needs a symmetric meta-path of {self.node_type_} nodes, and this graph has none")
        return candidates


class HANLayer(nn.Module):
    """One layer, over the pairs (sources, targets) of each meta-path; `rows` are the nodes of the ranked type."""

    def __init__(self, dim: int, rows: slice, edges: Sequence[tuple[RowIndex, RowIndex]]) -> None:
        super().__init__()
        self.rows, self.edges, self.heads = rows, edges, num_heads(dim)
        self.project = nn.Linear(dim, dim)  # W of all heads
        shape = len(edges), 1, self.heads, dim // self.heads
        self.source, self.target = (nn.Parameter(torch.empty(shape)) for _ in range(2))  # of α, for each meta-path
        self.weigh = nn.Linear(dim, dim)
        self.preference = nn.Parameter(torch.empty(1, dim))  # of β
        for weight in (self.source, self.target, self.preference):
            glorot(weight)

    def forward(self, h: Tensor) -> Tensor:
        projected = self.project(h[self.rows]).unflatten(1, (self.heads, -1))  # (nodes, heads, d/heads)
        parts = zip(self.source, self.target, self.edges, strict=True)
        z = torch.stack([attend(projected, a, b, *ends).relu() for a, b, ends in parts])  # (paths, nodes, d)
        shares = (self.preference * self.weigh(z).tanh().mean(1)).sum(-1).softmax(0)  # β
        after = (shares[:, None, None] * z).sum(0)
        return torch.cat([h[: self.rows.start], after, h[self.rows.stop :]])


def sample_neighbours(product: Product, limit: int, seed: int) -> Ints:
    """Return the pairs (from, to) with an entry in a product, at most `limit` for each row; shape (2, pairs)."""
    turn = np.random.default_rng(seed).permutation(len(product.right_norms))
    rows = np.arange(len(product.left_norms))
    blocks: list[Ints] = [np.zeros((2, 0), dtype=np.int64)]
    for start in range(0, len(rows), _ROWS_PER_BLOCK):
        entries = product.rows(rows[start : start + _ROWS_PER_BLOCK]).tocoo()
        order = np.lexsort((turn[entries.col], entries.row))
        targets, sources = entries.row[order].astype(np.int64), entries.col[order].astype(np.int64)
        sizes = np.bincount(targets, minlength=_ROWS_PER_BLOCK)
        place = np.arange(len(targets)) - (np.cumsum(sizes) - sizes)[targets]
        blocks.append(np.stack([sources, targets + start])[:, place < limit])
    return np.concatenate(blocks, axis=1)


# ---- GTN (Yun et al., NeurIPS 2019) --------------------------------------------------------------
GATE_PACE = 100
"""How much faster gates learn than weights, as in the authors' code; at the same rate they stay nearly uniform."""


class GTN(EmbeddingBaseline):
    """Choose a chain of relations, softly, and average over the nodes it leads to.

    H_c = Π_steps (Σ_φ gate_φ·A_φ + gate_stay·I)    h = W·‖_c ReLU(D_c⁻¹·(H_c + I)·x·W_c),  D_c = row sums of H_c + I

    H_c is never formed: the features, and a column of ones for the row sums, pass along the chain step by step.

    Parameters
    ----------
    dim, attributes, training
        See `EmbeddingBaseline`.
    layers
        The number of steps of a chain; each has a softmax gate.
    channels
        The number of chains.

    >>> import neupath as npth
    >>> model = GTN(dim=8, epochs=2).fit(npth.load("toy"), [("Mike", "Bob", 1.0), ("Mike", "Ann", 0.0)])
    >>> len(model.top_k("Jim", k=2))
    2
    """

    name = "gtn"
    param_names = (*EmbeddingBaseline.param_names, "channels")

    def __init__(
        self,
        dim: int = 256,
        layers: int = 2,
        *,
        channels: int = 2,
        attributes: bool = False,
        **training: Unpack[TrainingOptions],
    ) -> None:
        super().__init__(dim, layers, attributes=attributes, **training)
        check_counts(channels=channels)
        self.channels = channels

    def _make_encoder(self, graph: GraphTensors) -> nn.Module:
        return SoftChains(graph, self.dim, self.layers, self.channels)


class SoftChains(nn.Module):
    """The gates of every channel and step, and the convolution over the chains they choose."""

    def __init__(self, graph: GraphTensors, dim: int, steps: int, channels: int) -> None:
        super().__init__()
        self.graph = graph
        kinds = len(graph.blocks) + 1  # the last is "stay"
        self.slow_gates = nn.Parameter(0.1 / GATE_PACE * torch.randn(steps, kinds, channels))
        self.project = nn.Linear(dim, channels * dim, bias=False)  # W_c of all channels
        self.combine = nn.Linear(channels * dim, dim)  # W

    def gates(self) -> Tensor:
        """Return the share of each kind of edge, and of staying, at each step; shape (steps, kinds + 1, channels)."""
        return (GATE_PACE * self.slow_gates).softmax(1)

    def forward(self, x: Tensor) -> Tensor:
        channels = self.slow_gates.shape[-1]
        features = self.project(x).unflatten(1, (channels, -1))  # (nodes, channels, d)
        start = torch.cat([features, torch.ones_like(features[..., :1])], dim=-1)  # (nodes, channels, d + 1)
        y = start
        for gate in self.gates().flip(0):  # the last step of a chain is multiplied first
            y = self.graph.spread(y, gate[:-1, :, None]) + y * gate[-1, :, None]
        y = y + start
        h: Tensor = self.combine((y[..., :-1] / y[..., -1:]).relu().flatten(1))
        return h

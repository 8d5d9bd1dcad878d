"""GTN (Yun et al., NeurIPS 2019): graph convolution over softly chosen products of relations."""

from collections.abc import Sequence
from itertools import islice
from typing import Unpack

import numpy as np
import torch
from torch import Tensor, nn

from neupath.engine.products import Product, symmetric_product
from neupath.errors import QueryError
from neupath.graph.metapath import MetaPath, enumerate_metapaths
from neupath.learn.models.embedding_baseline import EmbeddingBaseline, Layers, TrainingOptions, geometric, num_heads
from neupath.learn.models.flat_graph import GraphTensors, Ints
from neupath.learn.models.model import check_counts

# ---- HAN (Wang et al., WWW 2019) -----------------------------------------------------------------
_MOST_PATHS = 8
_ROWS_AT_ONCE = 256


class HAN(EmbeddingBaseline):
    """Listen, by attention, to the nodes that a meta-path joins to a node; then weigh the meta-paths.

    z_t^P = Σ_s α_ts^P·W·h_s over the neighbours s of t along P,  h'_t = Σ_P β_P·z_t^P,  α and β attention.

    `metapaths` are the candidates, symmetric ones of the type that is ranked; by default all of up to 4 steps, the
    shortest first, up to 8. A node joined to more than `neighbours` others along a meta-path keeps that many, since
    through hubs a path can join nearly all pairs. Who is kept first is drawn once from the seed for all nodes alike, so
    that nodes with the same neighbours keep the same ones.

    >>> import neupath as npth
    >>> labels = [("Mike", "Bob", 1.0), ("Mike", "Mary", 0.8), ("Mike", "Ann", 0.0)]
    >>> model = HAN(dim=8, epochs=2, metapaths=["APA", "APVPA"]).fit(npth.load("toy"), labels)
    >>> len(model.top_k("Jim", k=2))
    2
    """

    name = "han"
    settings = ("metapaths", "neighbours")

    def __init__(
        self,
        dim: int = 256,
        layers: int = 2,
        *,
        metapaths: Sequence[str] | None = None,
        neighbours: int = 32,
        **rest: Unpack[TrainingOptions],
    ) -> None:
        super().__init__(dim, layers, **rest)
        if neighbours < 1:
            raise QueryError(f"neighbours is {neighbours}; keep at least 1")
        self.metapaths = None if metapaths is None else [str(path) for path in metapaths]
        self.neighbours = neighbours

    def _make_encoder(self, graph: GraphTensors) -> nn.Module:
        rows, kind = graph.rows_of(self.node_type_), self.node_type_
        edges = {
            (kind, f"{number}", kind): torch.from_numpy(self._neighbours(path)).to(graph.types.device)
            for number, path in enumerate(self._candidates())
        }
        about = ([kind], list(edges))
        layers = [geometric().HANConv(self.dim, self.dim, about, heads=num_heads(self.dim)) for _ in range(self.layers)]

        def call(layer: nn.Module, x: Tensor) -> Tensor:
            found = layer({kind: x[rows]}, edges)[kind]
            return torch.cat([x[: rows.start], found, x[rows.stop :]])

        return Layers(layers, call)

    def _candidates(self) -> list[MetaPath]:
        """Return the meta-paths to choose from."""
        if self.metapaths is None:
            found = list(islice(enumerate_metapaths(self.hin_.schema, self.node_type_, 4), _MOST_PATHS))
        else:
            found = [self.hin_.metapath(text) for text in self.metapaths]
        for path in found:
            path.require_round_trip("HAN")
            if path.source != self.node_type_:
                raise QueryError(f"{path} joins {path.source} nodes, and the labels are of {self.node_type_} nodes")
        if not found:
            raise QueryError(f"HAN needs a symmetric meta-path of {self.node_type_} nodes, and this graph has none")
        return found

    def _neighbours(self, path: MetaPath) -> Ints:
        """Return the pairs that a meta-path joins, from and to, at most so many for each node; shape (2, pairs)."""
        return sample_neighbours(symmetric_product(self.hin_, path), self.neighbours, self.seed)


def sample_neighbours(product: Product, most: int, seed: int) -> Ints:
    """Return the pairs with an entry in a product, those drawn first where a row has too many; shape (2, pairs)."""
    turn = np.random.default_rng(seed).permutation(len(product.right_norms))
    every = np.arange(len(product.left_norms))
    found: list[Ints] = [np.zeros((2, 0), dtype=np.int64)]
    for start in range(0, len(every), _ROWS_AT_ONCE):
        block = product.rows(every[start : start + _ROWS_AT_ONCE]).tocoo()
        order = np.lexsort((turn[block.col], block.row))
        targets, sources = block.row[order].astype(np.int64), block.col[order].astype(np.int64)
        sizes = np.bincount(targets, minlength=_ROWS_AT_ONCE)
        place = np.arange(len(targets)) - (np.cumsum(sizes) - sizes)[targets]
        found.append(np.stack([sources, targets + start])[:, place < most])
    return np.concatenate(found, axis=1)


# ---- GTN (Yun et al., NeurIPS 2019) --------------------------------------------------------------
PACE = 100
"""How much faster gates learn than weights, as in the authors' code; at the pace of weights they stay near even."""


class GTN(EmbeddingBaseline):
    """Choose a chain of relations, softly, and average over the nodes it leads to.

    H_c = Π_steps (Σ_φ gate_φ·A_φ + gate_stay·I)    h = W·‖_c ReLU(D_c⁻¹·(H_c + I)·x·W_c),  D_c = row sums of H_c + I

    A chain has `layers` steps, each with a softmax gate, in each of `channels`. H_c is never formed: the features, and
    a column of ones for the row sums, are passed along the chain step by step.

    >>> import neupath as npth
    >>> labels = [("Mike", "Bob", 1.0), ("Mike", "Mary", 0.8), ("Mike", "Ann", 0.0)]
    >>> model = GTN(dim=8, epochs=2).fit(npth.load("toy"), labels)
    >>> len(model.top_k("Jim", k=2))
    2
    """

    name = "gtn"
    settings = ("channels",)

    def __init__(self, dim: int = 256, layers: int = 2, *, channels: int = 2, **rest: Unpack[TrainingOptions]) -> None:
        super().__init__(dim, layers, **rest)
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
        self.slow_gates = nn.Parameter(0.1 / PACE * torch.randn(steps, kinds, channels))
        self.project = nn.Linear(dim, channels * dim, bias=False)
        self.combine = nn.Linear(channels * dim, dim)

    def gates(self) -> Tensor:
        """Return the share of each kind of edge, and of staying, at each step; shape (steps, kinds, channels)."""
        return (PACE * self.slow_gates).softmax(1)

    def forward(self, x: Tensor) -> Tensor:
        """Return the vectors of all nodes; shapes (nodes, dim) both."""
        channels = self.slow_gates.shape[-1]
        features = self.project(x).unflatten(1, (channels, -1))  # (nodes, channels, dim)
        start = torch.cat([features, torch.ones_like(features[..., :1])], dim=-1)
        y = start
        for gate in self.gates().flip(0):  # the last step of a chain is the first to be multiplied
            y = self.graph.spread(y, gate[:-1, :, None]) + y * gate[-1, :, None]
        y = y + start
        found: Tensor = self.combine((y[..., :-1] / y[..., -1:]).relu().flatten(1))
        return found

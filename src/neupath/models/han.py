"""HAN (Wang et al., WWW 2019): attention over the neighbours along each meta-path, then over the meta-paths."""

from collections.abc import Sequence
from itertools import islice
from typing import Unpack

import numpy as np
import torch
from torch import Tensor, nn

from neupath.errors import QueryError
from neupath.halfpath import Product, out_and_back
from neupath.metapath import MetaPath, enumerate_metapaths
from neupath.models.baseline import TrainingOptions
from neupath.models.embedding import EmbeddingScorer, Layers, geometric, num_heads
from neupath.models.flat_graph import Ints
from neupath.models.graph_tensors import GraphTensors

_MOST_PATHS = 8
_ROWS_AT_ONCE = 256


class HAN(EmbeddingScorer):
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
        return sample_neighbours(out_and_back(self.hin_, path), self.neighbours, self.seed)


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

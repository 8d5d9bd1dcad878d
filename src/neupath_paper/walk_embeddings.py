"""node2vec and metapath2vec: vectors of nodes from random walks, without labels."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Self, cast

import numpy as np
import torch
from numpy.random import Generator
from scipy.sparse import csr_array
from torch import Tensor, nn
from torch.nn import functional

from neupath.engine.products import adjacency
from neupath.errors import MetaPathError, QueryError
from neupath.graph.hin import HIN, Csr, Floats, check_graph
from neupath.graph.metapath import MetaPath
from neupath.graph.nodes import Rows
from neupath.learn.models.flat_graph import Ints, edge_kinds, over_all_nodes
from neupath.learn.models.model import (
    Model,
    check_counts,
    check_seed,
    check_shapes,
    choose_device,
    reproducible,
    seeded,
)
from neupath.learn.models.training import Recipe, RunOptions, train

# ---- Skip-gram with negative samples -------------------------------------------------------------
_WALKS_PER_BATCH = 64


@dataclass(frozen=True)
class SkipGramSettings:
    """How to walk, and how to learn from the walks."""

    dim: int = 128
    walks: int = 10
    """The number of walks from each start."""
    length: int = 20
    window: int = 4
    negatives: int = 5
    epochs: int = 2
    learning_rate: float = 0.01
    seed: int = 0

    def __post_init__(self) -> None:
        names = ("dim", "walks", "length", "window", "negatives")
        check_counts(**{name: getattr(self, name) for name in names})
        check_seed(self.seed)

    def draw_starts(self, nodes: Ints) -> tuple[Ints, Generator]:
        """Return the starts of all walks, and the generator that goes on to draw the walks."""
        rng = np.random.default_rng(self.seed)
        return rng.permuted(np.tile(nodes, (self.walks, 1)), axis=1).ravel(), rng


class WalkEmbedding(Model):
    """Base class of models that learn a vector in_v of each node v, which says which nodes walks meet near it.

    Maximise Σ log σ(in_v·out_u) + negatives·mean_n log σ(-in_v·out_n), with u up to `window` steps from v on a walk,
    and n drawn for each walk by how often walks meet it, to the power ¾. The score is cos(in_x, in_y), from -1 to 1.
    """

    inductive = False
    vectors_: Floats  # (nodes of the type, dim), normalised

    def __init__(self, device: str | None, **settings: Any) -> None:
        self.settings, self.device = SkipGramSettings(**settings), choose_device(device)

    def params(self) -> dict[str, object]:
        return super().params() | asdict(self.settings)

    def _learn_vectors(self, walks: Ints) -> Self:
        settings, numbering = self.settings, self.hin_.numbering
        with seeded(settings.seed):
            network = SkipGram(walks, numbering.total, settings).to(self.device)
        epochs, batches = settings.epochs, range(-(-len(walks) // _WALKS_PER_BATCH))
        recipe = Recipe(epochs, settings.learning_rate, weight_decay=0.0, patience=epochs, seed=settings.seed)
        with reproducible(self.device):
            train(network, network.loss, batches, (), recipe, RunOptions())
        vectors = network.inner.detach()[numbering.rows(self.node_type_)]
        self.vectors_ = functional.normalize(vectors.double(), dim=-1).cpu().numpy()
        return self

    def _score_rows(self, queries: Rows) -> Floats:
        scores = np.empty((len(queries), len(self.vectors_)))
        for at, query in enumerate(queries):  # one by one, so that a score does not depend on the other queries
            scores[at] = (self.vectors_ * self.vectors_[query]).sum(axis=1)
        return scores

    def _tensors(self) -> dict[str, Tensor]:
        return {"vectors": torch.from_numpy(self.vectors_)}

    def _restore(self, hin: HIN, tensors: dict[str, Tensor]) -> None:
        check_shapes(tensors, vectors=(len(hin.nodes[self.node_type_]), self.settings.dim))
        self.hin_, self.vectors_ = hin, tensors["vectors"].numpy()


class SkipGram(nn.Module):
    """The vectors in_v and out_v, and the loss of a batch of walks."""

    def __init__(self, walks: Ints, nodes: int, settings: SkipGramSettings) -> None:
        super().__init__()
        self.settings = settings
        self.inner = nn.Parameter((torch.rand(nodes, settings.dim) - 0.5) / settings.dim)
        self.outer = nn.Parameter(torch.zeros(nodes, settings.dim))
        self.register_buffer("walks", torch.from_numpy(walks), persistent=False)
        visits = np.bincount(walks[walks >= 0], minlength=nodes) ** 0.75
        self.cumulative = np.cumsum(visits / max(visits.sum(), 1e-300))

    def loss(self, number: int) -> Tensor:
        """Return the mean loss of the pairs within the window on the walks of a batch."""
        walks = cast(Tensor, self.walks)[number * _WALKS_PER_BATCH : (number + 1) * _WALKS_PER_BATCH]
        place = torch.arange(walks.shape[1], device=walks.device)
        apart = (place[:, None] - place).abs()
        there = walks >= 0
        is_near = (apart > 0) & (apart <= self.settings.window)
        pairs = is_near & there[:, :, None] & there[:, None, :]  # (walks, length, length)
        v = functional.embedding(walks.clamp(min=0), self.inner)  # (walks, length, dim)
        near = functional.logsigmoid(v @ functional.embedding(walks.clamp(min=0), self.outer).mT)
        negatives = self._draw_negatives(number, len(walks))
        far = functional.logsigmoid(-(v @ functional.embedding(negatives, self.outer).mT))
        contexts = pairs.sum(-1)  # (walks, length)
        total = (near * pairs).sum() + self.settings.negatives * (far.mean(-1) * contexts).sum()
        return -total / contexts.sum().clamp(min=1)

    def _draw_negatives(self, number: int, count: int) -> Tensor:
        """Draw negative samples for each walk; shape (walks, 2·window·negatives)."""
        rng = np.random.default_rng([self.settings.seed, number])
        width = 2 * self.settings.window * self.settings.negatives
        drawn = np.searchsorted(self.cumulative, rng.random((count, width)))
        return torch.from_numpy(np.minimum(drawn, len(self.cumulative) - 1)).to(self.inner.device)


# ---- node2vec (Grover, Leskovec, KDD 2016), over the whole graph ---------------------------------
_MAX_FACTOR = 16
"""The bound of p and q, and of 1/p and 1/q; walks far from 1 are drawn many times until one is accepted."""


class Node2Vec(WalkEmbedding):
    """Learn vectors from second-order random walks over the whole graph, regardless of types.

    Parameters
    ----------
    node_type
        The type to rank.
    p
        The return parameter: above 1, walks return less often to the node that they came from.
    q
        The in-out parameter: above 1, walks leave the neighbourhood of that node less often.
    device, settings
        "cpu" or "cuda"; the fields of `SkipGramSettings`.

    >>> from neupath import load
    >>> model = Node2Vec("author", dim=16, seed=1).fit(load("toy"))
    >>> len(model.top_k("Mike", k=2))
    2
    """

    name = "node2vec"
    param_names = ("node_type", "p", "q")
    renamed_params: ClassVar = {"back": "p", "out": "q"}

    def __init__(
        self, node_type: str, *, p: float = 1.0, q: float = 1.0, device: str | None = None, **settings: Any
    ) -> None:
        super().__init__(device, **settings)
        for parameter, value in (("p", p), ("q", q)):
            if not 1 / _MAX_FACTOR <= value <= _MAX_FACTOR:
                raise QueryError(f"{parameter} is {value}; it must lie between 1/{_MAX_FACTOR} and {_MAX_FACTOR}")
        self.node_type, self.p, self.q = node_type, p, q

    def fit(self, hin: HIN) -> Self:
        """Draw the walks and learn the vectors."""
        check_graph(hin)
        self.node_type_, self.hin_ = hin.schema.node_type(self.node_type), hin
        kinds, total = edge_kinds(hin.schema), hin.numbering.total
        matrices = (over_all_nodes(hin.matrix(link), link.source, link.target, hin.numbering) for link in kinds)
        weights = csr_array(sum(matrices, start=csr_array((total, total))))
        weights.sort_indices()
        starts, rng = self.settings.draw_starts(np.arange(total))
        walks = walk_node2vec(starts, weights, self.settings.length, self.p, self.q, rng)
        return self._learn_vectors(walks)


def walk_node2vec(starts: Ints, weights: Csr, length: int, p: float, q: float, rng: Generator) -> Ints:
    """Walk from each start; -1 after the end of a walk; shape (starts, length).

    At v, coming from u, the weight of going to x is that of the edge (v, x), times 1/p if x = u, 1 if x is a neighbour
    of u, and 1/q otherwise: drawn by edge weight, and accepted in proportion to the factor.
    """
    walks = np.full((len(starts), length), -1, dtype=np.int64)
    walks[:, 0] = starts
    size = weights.shape[0]
    joined = np.repeat(np.arange(size), np.diff(weights.indptr)) * size + weights.indices
    largest = max(1.0, 1 / p, 1 / q)
    for at in range(1, length):
        pending = np.flatnonzero(walks[:, at - 1] >= 0)
        while len(pending):
            drawn = _draw_neighbours(weights, walks[pending, at - 1], rng)
            factor = np.full(len(pending), largest)
            if at > 1:
                before = walks[pending, at - 2]
                pairs = before * size + drawn
                near = joined[np.minimum(np.searchsorted(joined, pairs), len(joined) - 1)] == pairs
                factor = np.where(drawn == before, 1 / p, np.where(near, 1.0, 1 / q))
            accepted = (rng.random(len(pending)) * largest < factor) | (drawn < 0)
            walks[pending[accepted], at] = drawn[accepted]
            pending = pending[~accepted]
    return walks


# ---- metapath2vec (Dong, Chawla, Swami, KDD 2017) ------------------------------------------------
class MetaPath2Vec(WalkEmbedding):
    """Learn vectors from walks that follow a meta-path, again and again.

    Parameters
    ----------
    metapath
        A meta-path that ends at the type it starts from, which is ranked.
    device, settings
        "cpu" or "cuda"; the fields of `SkipGramSettings`.

    >>> from neupath import load
    >>> model = MetaPath2Vec("author-paper-venue-paper-author", dim=16, seed=1).fit(load("toy"))
    >>> len(model.top_k("Mike", k=2))
    2
    """

    name = "metapath2vec"
    param_names = ("metapath",)

    def __init__(self, metapath: str | MetaPath, *, device: str | None = None, **settings: Any) -> None:
        super().__init__(device, **settings)
        self.metapath = str(metapath)

    @property
    def metapath_text(self) -> str:
        return str(self._fitted().metapath(self.metapath))

    def fit(self, hin: HIN) -> Self:
        """Draw the walks and learn the vectors."""
        check_graph(hin)
        metapath = hin.metapath(self.metapath)
        if metapath.source != metapath.target:
            raise MetaPathError(
                f"'{metapath}' ends at {metapath.target}, and metapath2vec must be able to go on from there; "
                f"use a path that ends at {metapath.source}"
            )
        self.node_type_, self.hin_ = metapath.source, hin
        rows = hin.numbering.rows(self.node_type_)
        starts, rng = self.settings.draw_starts(np.arange(rows.start, rows.stop))
        steps = [over_all_nodes(adjacency(hin, s), s.source, s.target, hin.numbering) for s in metapath.steps]
        walks = walk_steps(starts, steps, self.settings.length, rng)
        return self._learn_vectors(walks)


def walk_steps(starts: Ints, steps: Sequence[Csr], length: int, rng: Generator) -> Ints:
    """Walk from each start along the steps, over and over; -1 after the end of a walk; shape (starts, length).

    A step is a matrix of weights between all nodes; the next node is drawn in proportion to them.
    """
    walks = np.full((len(starts), length), -1, dtype=np.int64)
    walks[:, 0] = starts
    for at in range(1, length):
        walks[:, at] = _draw_neighbours(steps[(at - 1) % len(steps)], walks[:, at - 1], rng)
    return walks


def _draw_neighbours(weights: Csr, nodes: Ints, rng: Generator) -> Ints:
    """Draw a neighbour of each node in proportion to the weights; -1 if it has none."""
    totals: Floats = np.asarray(weights.sum(axis=1)).repeat(np.diff(weights.indptr))
    sums = np.concatenate([[0.0], np.cumsum(weights.data / totals)])  # each row adds 1, so large rows cost no digits
    first, last = weights.indptr[nodes], weights.indptr[nodes + 1]
    drawn = sums[first] + rng.random(len(nodes)) * (sums[last] - sums[first])
    entry = np.clip(np.searchsorted(sums, drawn, side="right") - 1, first, np.maximum(first, last - 1))
    neighbours = np.full(len(nodes), -1, dtype=np.int64)
    has_neighbours = (nodes >= 0) & (last > first)
    neighbours[has_neighbours] = weights.indices[entry[has_neighbours]]
    return neighbours

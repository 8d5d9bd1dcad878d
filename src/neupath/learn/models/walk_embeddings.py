"""metapath2vec (Dong, Chawla, Swami, KDD 2017)."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Self, cast

import numpy as np
import torch
from numpy.random import Generator
from scipy.sparse import coo_array, csr_array
from torch import Tensor, nn
from torch.nn import functional

from neupath.engine.products import adjacency
from neupath.errors import MetaPathError, QueryError
from neupath.graph.hin import HIN, Csr, Floats
from neupath.graph.metapath import MetaPath, Step
from neupath.graph.nodes import Mask, Rows
from neupath.learn.models.countpath import whole_matrices
from neupath.learn.models.flat_graph import FlatGraph, Ints
from neupath.learn.models.model import Model, check_counts, choose_device, reproducible, seeded
from neupath.learn.models.training import Recipe, train


# ---- Random walks over sparse matrices, many at once ---------------------------------------------
def follow(starts: Ints, steps: Sequence[Csr], length: int, rng: Generator) -> Ints:
    """Walk from each start, taking the steps in turn and again; -1 where a walk has ended; shape (starts, length).

    Each step is a matrix of weights over all nodes; the next node is drawn in proportion to them.
    """
    walks = np.full((len(starts), length), -1, dtype=np.int64)
    walks[:, 0] = starts
    for at in range(1, length):
        walks[:, at] = _next_nodes(steps[(at - 1) % len(steps)], walks[:, at - 1], rng)
    return walks


def wander(starts: Ints, matrix: Csr, length: int, p: float, q: float, rng: Generator) -> Ints:
    """Walk from each start as node2vec does; -1 where a walk has ended; shape (starts, length).

    From v, come from u, the weight of going to x is that of the edge times 1/p where x is u, 1 where x is a
    neighbour of u, and 1/q elsewhere. Nodes are drawn by weight alone, and drawn again as often as the factor says.
    """
    walks = np.full((len(starts), length), -1, dtype=np.int64)
    walks[:, 0] = starts
    size = matrix.shape[0]
    joined = np.repeat(np.arange(size), np.diff(matrix.indptr)) * size + matrix.indices
    most = max(1.0, 1 / p, 1 / q)
    for at in range(1, length):
        open_ = np.flatnonzero(walks[:, at - 1] >= 0)
        while len(open_):
            drawn = _next_nodes(matrix, walks[open_, at - 1], rng)
            factor = np.full(len(open_), most)
            if at > 1:
                before = walks[open_, at - 2]
                near = _is_in(before * size + drawn, joined)
                factor = np.where(drawn == before, 1 / p, np.where(near, 1.0, 1 / q))
            taken = (rng.random(len(open_)) * most < factor) | (drawn < 0)
            walks[open_[taken], at] = drawn[taken]
            open_ = open_[~taken]
    return walks


def _next_nodes(matrix: Csr, nodes: Ints, rng: Generator) -> Ints:
    """Draw a neighbour of each node in proportion to the weights; -1 where there is none."""
    totals: Floats = np.asarray(matrix.sum(axis=1)).repeat(np.diff(matrix.indptr))
    sums = np.concatenate([[0.0], np.cumsum(matrix.data / totals)])  # each row adds 1, so that none drowns another
    first, last = matrix.indptr[nodes], matrix.indptr[nodes + 1]
    wanted = sums[first] + rng.random(len(nodes)) * (sums[last] - sums[first])
    place = np.clip(np.searchsorted(sums, wanted, side="right") - 1, first, np.maximum(first, last - 1))
    found = np.full(len(nodes), -1, dtype=np.int64)
    going = (nodes >= 0) & (last > first)
    found[going] = matrix.indices[place[going]]
    return found


def _is_in(values: Ints, ascending: Ints) -> Mask:
    found: Mask = ascending[np.minimum(np.searchsorted(ascending, values), len(ascending) - 1)] == values
    return found


# ---- WalkEmbedding -------------------------------------------------------------------------------
_WALKS_A_BATCH = 64


class WalkEmbedding(Model):
    """Give nodes that walks meet near each other like vectors (skip-gram with negative samples).

    Σ log σ(in_v·out_u) + negatives·mean_n log σ(-in_v·out_n),  u up to `window` steps from v on a walk, n drawn for
    each walk by how often walks meet them, to the power ¾;  s(x, y) = cos(in_x, in_y), so from -1 to 1.
    """

    inductive = False
    own: ClassVar[tuple[str, ...]]
    """What the constructor of a model takes besides what all do."""

    def __init__(
        self,
        *,
        dim: int = 128,
        walks: int = 10,
        length: int = 20,
        window: int = 4,
        negatives: int = 5,
        epochs: int = 2,
        learning_rate: float = 0.01,
        seed: int = 0,
        device: str | None = None,
    ) -> None:
        check_counts(dim=dim, walks=walks, length=length, window=window, negatives=negatives)
        self.dim, self.walks, self.length, self.window, self.negatives = dim, walks, length, window, negatives
        self.epochs, self.learning_rate, self.seed = epochs, learning_rate, seed
        self.device = choose_device(device)

    def params(self) -> dict[str, object]:
        shared = ("dim", "walks", "length", "window", "negatives", "epochs", "learning_rate", "seed")
        return {name: getattr(self, name) for name in (*self.own, *shared)}

    @abstractmethod
    def _find_type(self, hin: HIN) -> str:
        """Return the type of the nodes to rank."""

    @abstractmethod
    def _walk(self, hin: HIN, rng: Generator) -> Ints:
        """Return `walks` walks from every node to start from, all nodes in one numbering; shape (walks, length)."""

    def fit(self, hin: HIN) -> Self:
        """Walk over a graph and learn the vectors of its nodes."""
        if not 0 <= self.seed < 2**63:
            raise QueryError(f"seed is {self.seed}; it must lie between 0 and 2^63")
        self.node_type_, self.hin_ = self._find_type(hin), hin
        start = FlatGraph.of(hin).start
        rng = np.random.default_rng(self.seed)
        walks = self._walk(hin, rng)
        with seeded(self.seed):
            network = SkipGram(walks, int(start[-1]), self.dim, self.window, self.negatives, self.seed).to(self.device)
        recipe = Recipe(self.epochs, self.learning_rate, weight_decay=0.0, patience=self.epochs, seed=self.seed)
        with reproducible(self.device):
            train(network, network.loss, range(-(-len(walks) // _WALKS_A_BATCH)), (), recipe)
        at = hin.schema.node_types.index(self.node_type_)
        self._set_vectors(network.inner.detach()[start[at] : start[at + 1]])
        return self

    def _set_vectors(self, vectors: Tensor) -> None:
        self.vectors_: Floats = functional.normalize(vectors.double(), dim=-1).cpu().numpy()

    def score_rows(self, queries: Rows) -> Floats:
        """Return the score of each query with every target; shape (queries, targets)."""
        self._fitted()
        scores = np.empty((len(queries), len(self.vectors_)))
        for at, query in enumerate(queries):  # one by one, so that a score does not depend on the others asked for
            scores[at] = (self.vectors_ * self.vectors_[query]).sum(axis=1)
        return scores

    def _tensors(self) -> dict[str, Tensor]:
        return {"vectors": torch.from_numpy(self.vectors_)}

    def _restore(self, hin: HIN, tensors: dict[str, Tensor]) -> None:
        self.hin_, self.vectors_ = hin, tensors["vectors"].numpy()


class SkipGram(nn.Module):
    """Two vectors a node, and the loss of a batch of walks."""

    def __init__(self, walks: Ints, nodes: int, dim: int, window: int, negatives: int, seed: int) -> None:
        super().__init__()
        self.window, self.negatives, self.seed = window, negatives, seed
        self.inner = nn.Parameter((torch.rand(nodes, dim) - 0.5) / dim)
        self.outer = nn.Parameter(torch.zeros(nodes, dim))
        self.register_buffer("walks", torch.from_numpy(walks), persistent=False)
        met = np.bincount(walks[walks >= 0], minlength=nodes) ** 0.75
        self.chances = np.cumsum(met / max(met.sum(), 1e-300))

    def loss(self, batch: object) -> Tensor:
        """Return the mean loss of the pairs within the window on some walks."""
        number = cast(int, batch)
        walks = cast(Tensor, self.walks)[number * _WALKS_A_BATCH : (number + 1) * _WALKS_A_BATCH]
        place = torch.arange(walks.shape[1], device=walks.device)
        apart = (place[:, None] - place).abs()
        there = walks >= 0
        pairs = (apart > 0) & (apart <= self.window) & there[:, :, None] & there[:, None, :]  # (walks, length, length)
        v = functional.embedding(walks.clamp(min=0), self.inner)  # (walks, length, dim)
        near = functional.logsigmoid(v @ functional.embedding(walks.clamp(min=0), self.outer).mT)
        far = functional.logsigmoid(-(v @ functional.embedding(self._draw(number, len(walks)), self.outer).mT))
        met = pairs.sum(-1)
        total = (near * pairs).sum() + self.negatives * (far.mean(-1) * met).sum()
        return -total / met.sum().clamp(min=1)

    def _draw(self, number: int, count: int) -> Tensor:
        """Draw nodes that some walks do not mean, by how often walks meet them to the power ¾; shape (walks, drawn)."""
        rng = np.random.default_rng([self.seed, number])
        drawn = np.searchsorted(self.chances, rng.random((count, 2 * self.window * self.negatives)))
        return torch.from_numpy(np.minimum(drawn, len(self.chances) - 1)).to(self.inner.device)


# ---- node2vec (Grover, Leskovec, KDD 2016), over the whole graph ---------------------------------
_MOST = 16
"""How much more or less often a walk may go back, or out; where that is much, walks are drawn again and again."""


class Node2Vec(WalkEmbedding):
    """Learn vectors from second-order random walks over the whole graph, whatever the types.

    `p` makes walks less likely to return to the node that they came from, `q` to go on to nodes that are not its
    neighbours.

    >>> from neupath import load
    >>> model = Node2Vec("author", dim=16, seed=1).fit(load("toy"))
    >>> len(model.top_k("Mike", k=2))
    2
    """

    name = "node2vec"
    own = ("node_type", "p", "q")
    renamed_params: ClassVar = {"back": "p", "out": "q"}

    def __init__(self, node_type: str, *, p: float = 1.0, q: float = 1.0, **rest: Any) -> None:
        super().__init__(**rest)
        for what, value in (("p", p), ("q", q)):
            if not 1 / _MOST <= value <= _MOST:
                raise QueryError(f"{what} is {value}; it must lie between 1/{_MOST} and {_MOST}")
        self.node_type, self.p, self.q = node_type, p, q

    def _find_type(self, hin: HIN) -> str:
        return hin.schema.node_type(self.node_type)

    def _walk(self, hin: HIN, rng: Generator) -> Ints:
        size = sum(len(nodes) for nodes in hin.nodes.values())
        total = csr_array(sum(whole_matrices(hin), start=csr_array((size, size))))
        total.sort_indices()
        starts = rng.permuted(np.tile(np.arange(size), (self.walks, 1)), axis=1).ravel()
        return wander(starts, total, self.length, self.p, self.q, rng)


# ---- metapath2vec (Dong, Chawla, Swami, KDD 2017) ------------------------------------------------
class MetaPath2Vec(WalkEmbedding):
    """Learn vectors from walks that follow a meta-path, again and again.

    >>> from neupath import load
    >>> model = MetaPath2Vec("author-paper-venue-paper-author", dim=16, seed=1).fit(load("toy"))
    >>> len(model.top_k("Mike", k=2))
    2
    """

    name = "metapath2vec"
    own = ("metapath",)

    def __init__(self, metapath: str | MetaPath, **rest: Any) -> None:
        super().__init__(**rest)
        self.metapath = str(metapath)

    @property
    def metapath_text(self) -> str:
        return str(self._fitted().metapath(self.metapath))

    def _find_type(self, hin: HIN) -> str:
        path = hin.metapath(self.metapath)
        if path.source != path.target:
            raise MetaPathError(
                f"'{path}' ends at {path.target}, and metapath2vec must be able to go on from there; "
                f"use a path that ends at {path.source}"
            )
        return path.source

    def _walk(self, hin: HIN, rng: Generator) -> Ints:
        graph = FlatGraph.of(hin)
        at = hin.schema.node_types.index(self.node_type_)
        everyone = np.arange(graph.start[at], graph.start[at + 1])
        starts = rng.permuted(np.tile(everyone, (self.walks, 1)), axis=1).ravel()
        steps = [_over_all_nodes(hin, step, graph.start) for step in hin.metapath(self.metapath).steps]
        return follow(starts, steps, self.length, rng)


def _over_all_nodes(hin: HIN, step: Step, start: Ints) -> Csr:
    """Return the weights of a step, all nodes in one numbering; shape (nodes, nodes), sparse."""
    first = dict(zip(hin.schema.node_types, start[:-1], strict=True))
    entries = adjacency(hin, step).tocoo()
    places = (entries.row + first[step.source], entries.col + first[step.target])
    return coo_array((entries.data, places), shape=(start[-1], start[-1])).tocsr()

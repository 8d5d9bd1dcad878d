"""WalkEmbedding: vectors of nodes learned from random walks, without labels; scores are cosines."""

from abc import abstractmethod
from typing import ClassVar, Self, cast

import numpy as np
import torch
from numpy.random import Generator
from torch import Tensor, nn
from torch.nn import functional

from neupath.errors import QueryError
from neupath.graph import HIN, Floats
from neupath.models.flat_graph import FlatGraph, Ints
from neupath.models.model import Model, check_counts, choose_device, reproducible, seeded
from neupath.models.training import Recipe, train
from neupath.nodes import Rows

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

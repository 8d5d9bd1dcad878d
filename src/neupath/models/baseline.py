"""Baseline: what the paper's rivals share, from their settings and training to their scores."""

from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, TypedDict, cast

import numpy as np
import torch
from torch import Tensor, nn

from neupath.graph import HIN, Floats
from neupath.labels import Pairs
from neupath.models.learned import LearnedScorer
from neupath.models.model import check_counts, choose_device, reproducible, seeded
from neupath.models.training import Recipe, Watch, fingerprint_of, train
from neupath.nodes import Rows

Batch = tuple[Tensor, Tensor, Tensor]
"""The queries, targets and labels of some pairs; shape (pairs,) each, nodes as rows of their type."""


class TrainingOptions(TypedDict, total=False):
    """What all baselines can be told of their training."""

    epochs: int
    batch_size: int | None
    learning_rate: float
    seed: int
    device: str | None


class PairNetwork(nn.Module):
    """A network over one graph that scores pairs of nodes of one type."""

    @abstractmethod
    def forward(self, queries: Tensor, targets: Tensor) -> Tensor:
        """Return the score of each pair; shape (pairs,)."""

    @abstractmethod
    def score_all(self, queries: Sequence[int]) -> Tensor:
        """Return the score of each query with every target, each as if it were asked alone; (queries, targets)."""


class Baseline(LearnedScorer):
    """A model to compare with: one network over the whole graph, trained on the same labels by the same loop.

    Each step passes over the whole graph, for all labels of `batch_size` queries (`queries_a_batch` unless said).
    """

    settings: ClassVar[tuple[str, ...]] = ()
    """What the constructor takes beyond what all baselines do."""
    queries_a_batch: ClassVar[int] = 40
    network_: PairNetwork

    def __init__(
        self,
        dim: int = 256,
        layers: int = 2,
        *,
        epochs: int = 30,
        batch_size: int | None = None,
        learning_rate: float = 1e-3,
        seed: int = 0,
        device: str | None = None,
    ) -> None:
        check_counts(dim=dim, layers=layers, batch_size=batch_size)
        self.dim, self.layers, self.epochs, self.batch_size = dim, layers, epochs, batch_size
        self.learning_rate, self.seed = learning_rate, seed
        self.device = choose_device(device)
        self.log_ = []

    def params(self) -> dict[str, object]:
        names = ("dim", "layers", "epochs", "batch_size", "learning_rate", "seed", *self.settings)
        return {name: getattr(self, name) for name in names}

    @abstractmethod
    def _make_network(self, hin: HIN) -> PairNetwork:
        """Make the network for a graph, its weights drawn from torch's generator."""

    def _learn(self, hin: HIN, learn: Pairs, check: Pairs, folder: Path | None, watch: Watch) -> None:
        self.node_type_ = learn.node_type
        self._set_network(hin)
        recipe = Recipe(self.epochs, self.learning_rate, patience=self.epochs, seed=self.seed)
        batches, held_out = self._batches(learn), self._batches(check)
        made_by = fingerprint_of(hin, (learn, check), self.params())
        with reproducible(self.device):
            self.log_ = train(self.network_, self._loss, batches, held_out, recipe, folder, watch, fingerprint=made_by)
        self.validation_rmse_ = min(epoch.validation_rmse for epoch in self.log_) if len(check) else None

    def _set_network(self, hin: HIN) -> None:
        self.hin_ = hin
        with seeded(self.seed):
            self.network_ = self._make_network(hin).to(self.device)

    def _batches(self, pairs: Pairs) -> list[Batch]:
        """Cut pairs into batches of some queries each."""
        queries, step = np.unique(pairs.queries), self.batch_size or self.queries_a_batch
        found = []
        for start in range(0, len(queries), step):
            part = pairs.of_queries(queries[start : start + step])
            nodes = (torch.from_numpy(rows.astype(np.int64)).to(self.device) for rows in (part.queries, part.targets))
            found.append((*nodes, torch.tensor(part.scores, dtype=torch.float32, device=self.device)))
        return cast(list[Batch], found)

    def _loss(self, batch: object) -> Tensor:
        queries, targets, scores = cast(Batch, batch)
        found: Tensor = self.network_(queries, targets)
        return ((found - scores) ** 2).mean()

    def score_rows(self, queries: Rows) -> Floats:
        """Return the score of each query with every target; shape (queries, targets)."""
        self._fitted()
        with torch.no_grad(), reproducible(self.device):
            scores: Floats = self.network_.score_all(queries.tolist()).cpu().double().numpy()
        return scores

    def _tensors(self) -> dict[str, Tensor]:
        return self.network_.state_dict()

    def _restore(self, hin: HIN, tensors: dict[str, Tensor]) -> None:
        self._set_network(hin)
        self.network_.load_state_dict(tensors)

"""NeuPath (Xiao, Zhao, Zheng, Song, CIKM 2021): PathSim learned from labelled pairs, with no meta-path given."""

import copy
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self, cast

import numpy as np
import torch
from torch import Tensor, nn

from neupath.errors import QueryError
from neupath.graph import HIN, Floats
from neupath.labels import Pairs
from neupath.models.attention import Look, looked_at, used_metapaths
from neupath.models.batches import Batch, build_batch
from neupath.models.classes import ClassTable
from neupath.models.encoder import Decoder, Encoder, Pooling
from neupath.models.flat_graph import FlatGraph, Ints, edge_kinds
from neupath.models.learned import QUERIES_A_BATCH, LearnedScorer
from neupath.models.live_classes import LiveClasses
from neupath.models.model import check_counts, choose_device, reproducible, seeded
from neupath.models.training import Epoch, Recipe, Watch, fingerprint_of, train
from neupath.nodes import Id, Mask, Rows

_CLASSES_AT_ONCE = 20_000
_QUERIES_AT_ONCE = 64
_POOLINGS = ("tmax", "max", "mean", "sum")


@dataclass(frozen=True)
class _Labelled:
    """A batch of classes and the labels of its pairs."""

    batch: Batch | None  # none where there are fewer queries than processes
    which: Tensor  # (pairs,) the class of each pair's target
    scores: Tensor  # (pairs,)
    share: float  # of the pairs of the whole batch


class NeuPath(LearnedScorer):
    """Score pairs by an encoder that finds the T best path instances for each target and a decoder that weighs them.

    `layers` is the length of the paths it can see, `paths` how many (T), `dim` the width. See `models/encoder.py` for
    the formulas. `node_types`, `edge_types` and `pooling` are for ablations.

    >>> import neupath as npth
    >>> hin = npth.load("toy")
    >>> labels = [("Mike", "Bob", 1.0), ("Mike", "Mary", 0.8), ("Mike", "Ann", 0.0), ("Mary", "Ann", 0.3)]
    >>> model = NeuPath(dim=16, layers=4, paths=2, epochs=2, seed=0).fit(hin, labels)
    >>> len(model.top_k("Jim", k=2))
    2
    """

    name = "neupath"
    learns_together = True

    def __init__(
        self,
        dim: int = 256,
        layers: int = 2,
        paths: int = 2,
        *,
        pooling: Pooling = "tmax",
        node_types: bool = True,
        edge_types: bool = True,
        epochs: int = 30,
        batch_size: int | None = None,
        learning_rate: float = 5e-4,
        seed: int = 0,
        device: str | None = None,
    ) -> None:
        check_counts(2, dim=dim)
        check_counts(layers=layers, paths=paths, batch_size=batch_size)
        if pooling not in _POOLINGS:
            raise QueryError(f"pooling is {pooling!r}; it can be {', '.join(_POOLINGS)}")
        self.dim, self.layers, self.paths, self.pooling = dim, layers, paths, pooling
        self.node_types, self.edge_types = node_types, edge_types
        self.epochs, self.batch_size, self.learning_rate, self.seed = epochs, batch_size, learning_rate, seed
        self.device = choose_device(device)
        self.log_: list[Epoch] = []

    @property
    def slots(self) -> int:
        """How many path instances are kept apart: T, or 1 where pooling makes one of them."""
        return self.paths if self.pooling == "tmax" else 1

    def params(self) -> dict[str, object]:
        names = (
            "dim",
            "layers",
            "paths",
            "pooling",
            "node_types",
            "edge_types",
            "epochs",
            "batch_size",
            "learning_rate",
        )
        return {name: getattr(self, name) for name in (*names, "seed")}

    def _learn(self, hin: HIN, learn: Pairs, check: Pairs, folder: Path | None, watch: Watch) -> None:
        self.node_type_ = learn.node_type
        self._set_graph(hin)
        with seeded(self.seed):
            self.network_ = self._make_network(hin)
        recipe = Recipe(epochs=self.epochs, learning_rate=self.learning_rate, seed=self.seed)
        batches, held_out = self._batches(learn), self._batches(check)
        made_by = fingerprint_of(hin, (learn, check), self.params())
        with reproducible(self.device):
            self.log_ = train(
                self.network_, self._loss, batches, held_out, recipe, folder, watch, fingerprint=made_by, team=self.team
            )
        self.validation_rmse_ = min(epoch.validation_rmse for epoch in self.log_) if len(check) else None

    def _make_network(self, hin: HIN) -> nn.ModuleDict:
        num_types = len(hin.schema.node_types) if self.node_types else 1
        num_kinds = len(edge_kinds(hin.schema)) if self.edge_types else 1
        encoder = Encoder(self.dim, self.layers, self.slots, num_types, max(1, num_kinds), self.pooling)
        return nn.ModuleDict({"encoder": encoder, "decoder": Decoder(self.dim, self.slots)}).to(self.device)

    def _set_graph(self, hin: HIN) -> None:
        """Number the nodes of a graph and find its background, the classes of nodes without a query."""
        self.hin_, self.graph_, self.table_ = hin, self.seen(FlatGraph.of(hin)), self.new_table(hin)
        self.background_ = self.table_.background(self.graph_)

    def seen(self, graph: FlatGraph) -> FlatGraph:
        """Return a graph as the model sees it: perhaps without types of nodes, or kinds of edges."""
        if self.node_types and self.edge_types:
            return graph
        types = graph.types if self.node_types else np.broadcast_to(np.int64(0), graph.types.shape)
        kinds = graph.kinds if self.edge_types else np.broadcast_to(np.int64(0), graph.kinds.shape)
        return replace(graph, types=types, kinds=kinds)

    def new_table(self, hin: HIN) -> ClassTable:
        """Return a table that knows no classes yet."""
        cap = self.slots if self.pooling in ("tmax", "max") else 0
        return ClassTable(len(hin.schema.node_types) if self.node_types else 1, self.layers, cap)

    def follower(self, hin: HIN) -> LiveClasses:
        """Return what follows a graph's changes: its background, refreshed where a change reaches."""
        self.check_graph(self._about(), hin)
        return LiveClasses(copy.copy(self), hin)

    def over_classes(self, hin: HIN, graph: FlatGraph, table: ClassTable, background: list[Ints]) -> Self:
        """Return the same model over a graph whose background is known."""
        bound = copy.copy(self)
        bound.hin_, bound.graph_, bound.table_, bound.background_ = hin, self.seen(graph), table, background
        return bound

    @property
    def _first(self) -> int:
        return int(self.graph_.start[self.hin_.schema.node_types.index(self.node_type_)])

    def _batches(self, pairs: Pairs) -> list[_Labelled]:
        """Cut pairs into batches of some queries each, and take the own share, with the classes of its targets."""
        queries, step = np.unique(pairs.queries), self.batch_size or QUERIES_A_BATCH
        found = []
        for start in range(0, len(queries), step):
            together = queries[start : start + step]
            part = pairs.of_queries(self.team.share(together))
            classes = np.empty(len(part), dtype=np.int64)
            for query in np.unique(part.queries):
                own = part.queries == query
                targets = self._first + part.targets[own]
                reach = self.table_.reach(self.graph_, targets)
                classes[own] = self.table_.classes_of(self.graph_, self.background_, self._first + int(query), reach)[
                    targets
                ]
            distinct, which = np.unique(classes, return_inverse=True)
            batch = build_batch(self.table_, distinct, self.slots).to(self.device) if len(part) else None
            scores = torch.tensor(part.scores, dtype=torch.float32, device=self.device)
            share = len(part) / len(pairs.of_queries(together))
            found.append(_Labelled(batch, torch.from_numpy(which).to(self.device), scores, share))
        return found

    def _loss(self, labelled: object) -> Tensor:
        part = cast(_Labelled, labelled)
        if part.batch is None:
            return 0 * sum((parameter.sum() for parameter in self.network_.parameters()), torch.zeros(()))
        scores = self._score_classes(part.batch)[part.which]
        return part.share * ((scores - part.scores) ** 2).mean()

    def _score_classes(self, batch: Batch) -> Tensor:
        scores: Tensor = self.network_["decoder"](self.network_["encoder"](batch))
        return scores

    def score_rows(self, queries: Rows) -> Floats:
        """Return the score of each query with every target; shape (queries, targets)."""
        self._fitted()
        count = len(self.hin_.nodes[self.node_type_])
        scores = np.empty((len(queries), count))
        reach = self.table_.reach(self.graph_, np.arange(self._first, self._first + count))
        for start in range(0, len(queries), _QUERIES_AT_ONCE):
            block = slice(start, start + _QUERIES_AT_ONCE)
            scores[block] = self._score_block(queries[block], reach, count)
        return scores

    def _score_block(self, queries: Rows, reach: list[Mask], count: int) -> Floats:
        table = self.table_.fork()  # what these queries add is forgotten again
        targets = slice(self._first, self._first + count)
        classes: Ints = np.stack(
            [table.classes_of(self.graph_, self.background_, self._first + int(q), reach)[targets] for q in queries]
        )
        distinct, which = np.unique(classes, return_inverse=True)
        found = np.empty(len(distinct))
        with torch.no_grad():
            for start in range(0, len(distinct), _CLASSES_AT_ONCE):
                block = slice(start, start + _CLASSES_AT_ONCE)
                batch = build_batch(table, distinct[block], self.slots).to(self.device)
                found[block] = self._score_classes(batch).cpu().numpy()
        return found[which.reshape(classes.shape)]

    def looked_at(self, query: Id, target: Id, limit: int = 10) -> list[Look]:
        """Return the path instances that weigh most in one score, heaviest first."""
        if limit < 1:
            raise QueryError(f"limit is {limit}; show at least 1 path")
        here, there = (self._first + self._fitted().find(self.node_type_, node) for node in (query, target))
        return looked_at(self, here, there, limit)

    def used_metapaths(self, pairs: Iterable[tuple[Id, Id]]) -> list[tuple[str, float]]:
        """Return the meta-paths that the model uses over many pairs, with their share of its attention."""
        return used_metapaths(self.looked_at(query, target, 20) for query, target in pairs)

    def _tensors(self) -> dict[str, Tensor]:
        return self.network_.state_dict()

    def _restore(self, hin: HIN, tensors: dict[str, Tensor]) -> None:
        self._set_graph(hin)
        self.network_ = self._make_network(hin)
        self.network_.load_state_dict(tensors)

"""NeuPath (Xiao, Zhao, Zheng, Song, CIKM 2021): PathSim learned from labelled pairs, with no meta-path given.

These are the paper's equations, by their numbers there; (1) is PathSim itself. For a query c, every node t starts as

    h_t[i] = x_t = [1,0,0,…] where t = c, else [0,1,0,…]                                            (2)

Each of L encoder layers computes, along each edge (s, t) of a kind φ and for each path slot i = 1 … T,

    Extract   h̃_s[i] = W_τ(s)·h_s[i]        h̃_t[i] = W_τ(t)·h_t[i]                                (3)
              p_s[i] = W_m(h̃_s[i] ‖ e_φ ‖ h̃_t[i])                                                 (4)
    Compare   q_t[1..T] = the T largest p_s[i] over all s and i, element by element                 (5)
    Update    h_t[i] ← W_u(h_t[i] ‖ q_t[i])                                                         (6)

and the decoder scores t, which training compares with the labels b_ct:

    y_ct = W_1·ReLU(W_2·(h_t[1] ‖ … ‖ h_t[T]))                                                      (7)
    Loss = 1/M Σ_t (y_ct - b_ct)²                                                                   (8)

One thing differs from (2): only the first slot of a node starts with x_t. A slot without a path is zero and gives no
candidate, so the T slots hold T different paths. (With x_t in all of them, as printed, they would stay equal, and T-max
pooling would be max pooling.)

`NeuPath(variant="paper")` is this model. `improved_neupath.py` says what the default, `variant="improved"`, adds.

Two things make it fast without changing a score. Nodes that the model cannot tell apart form a class, and each class is
computed once (`class_table.py`): shapes below count classes, J before a layer and K after it. And since W_m is linear,
W_m(a ‖ e ‖ b) = A·a + e' + C·b, matrix products are over classes alone; candidates are only added up and compared.
"""

import copy
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, Unpack

import numpy as np
import torch
from torch import Tensor, nn

from neupath.engine.scorer import Updater
from neupath.errors import QueryError, SourceError
from neupath.graph.hin import HIN, Floats
from neupath.graph.nodes import Id, Mask, Rows
from neupath.learn.labels import Pairs
from neupath.learn.models.class_table import ClassBatch, ClassTable, Stage, build_batch
from neupath.learn.models.flat_graph import FlatGraph, Ints, edge_kinds, has_triton
from neupath.learn.models.improved_neupath import (
    FEATURES,
    CountBatch,
    CountChannels,
    Features,
    ImprovedNetwork,
    WalkCounter,
)
from neupath.learn.models.model import (
    TRAINING_PARAMS,
    PairModel,
    TrainingOptions,
    check_counts,
    names_full_gpu,
    weighted_error,
)
from neupath.learn.models.neupath_updates import NeuPathUpdater
from neupath.learn.models.training import Recipe

if TYPE_CHECKING:
    from neupath.evidence.model_explanation import AttentionPath

Variant = Literal["improved", "paper"]
_VARIANTS = ("improved", "paper")
_CLASSES_PER_BLOCK = 20_000
_QUERIES_PER_BLOCK = 64


# ---- The encoder: (2) to (6) ---------------------------------------------------------------------
class Encoder(nn.Module):
    """L layers of Extract, Compare and Update, with matrices of their own or, if `shared`, the same ones."""

    def __init__(
        self, layer: "type[EncoderLayer]", dim: int, layers: int, slots: int, num_types: int, num_kinds: int,
        shared: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        self.dim, self.slots = dim, slots
        self.uses = layers if shared else 1  # of each layer
        self.layers = nn.ModuleList(layer(dim, num_types, num_kinds) for _ in range(1 if shared else layers))

    def forward(self, batch: ClassBatch, traces: list["LayerTrace"] | None = None) -> Tensor:
        """Return the path embeddings h of the batch's classes, (K, T, d); append what each layer chose to `traces`."""
        h = torch.zeros(len(batch.queries), self.slots, self.dim, device=batch.queries.device)
        h[:, 0, 0] = batch.queries.to(h.dtype)  # (2)
        h[:, 0, 1] = 1 - h[:, 0, 0]
        h.requires_grad_(traces is not None)
        for layer, stage in zip(list(self.layers) * self.uses, batch.stages, strict=True):
            h = layer(h, stage, traces)
        return h


class EncoderLayer(nn.Module):
    """One layer, with its own matrices."""

    def __init__(self, dim: int, num_types: int, num_kinds: int) -> None:
        super().__init__()
        bound = dim**-0.5
        self.project = nn.Parameter(torch.empty(num_types, dim, dim).uniform_(-bound, bound))  # W_τ
        self.extract_source = nn.Linear(dim, dim, bias=False)  # A, the part of W_m for s
        self.extract_target = nn.Linear(dim, dim, bias=False)  # C, the part of W_m for t
        self.edge = nn.Parameter(torch.empty(num_kinds, dim).uniform_(-bound, bound))  # e', W_m's part for φ times e_φ
        self.update = nn.Linear(2 * dim, dim, bias=False)  # W_u

    def forward(self, h: Tensor, stage: Stage, traces: list["LayerTrace"] | None = None) -> Tensor:
        """Return the embeddings after the layer; (J, T, d) to (K, T, d)."""
        source, target = self.extract(h, stage)
        own = h[stage.before]  # (K, T, d)
        chosen, q = self.compare(source, target, stage)
        if traces is not None:
            traces.append(LayerTrace(chosen, q, own))
        after: Tensor = self.update(torch.cat([own, q], dim=-1))  # (6)
        return after * stage.filled.unsqueeze(-1)

    def extract(self, h: Tensor, stage: Stage) -> tuple[Tensor, Tensor]:
        """Return the parts of the candidates that are of s and of t; (J, T, d) to (J·T, d) twice."""
        projected = torch.zeros_like(h)
        for matrix, rows in zip(self.project, stage.rows_of_type, strict=True):
            projected = projected.index_copy(0, rows, h[rows] @ matrix)  # (3)
        return self.extract_source(projected).flatten(0, 1), self.extract_target(projected).flatten(0, 1)  # (4)

    def compare(self, source: Tensor, target: Tensor, stage: Stage) -> tuple[Tensor, Tensor]:
        """Return the T largest candidates, C for none, and their values, element by element; (K, T, d) twice."""
        chosen = find_tmax(source, target, self.edge, stage)  # (5)
        return chosen, _values_of(chosen, source, target, self.edge, stage)


@dataclass(frozen=True)
class LayerTrace:
    """What a layer chose: the T-max candidates (C for none), their values, and the embeddings before the layer."""

    tmax: Tensor  # (K, T, d)
    pooled: Tensor  # (K, T, d)
    own: Tensor  # (K, T, d)


# ---- T-max pooling: (5) --------------------------------------------------------------------------
# Which candidates are the T largest is found without gradients; gradients then flow through the chosen ones.
_MAX_VALUES = 1 << 26
"""Numbers compared at once, to bound memory."""


def find_tmax(source: Tensor, target: Tensor, edge: Tensor, stage: Stage) -> Tensor:
    """Return the T largest candidates of each class, element by element; (K, T, d), C for none.

    The value of a candidate is source + target + edge. Of equal values, the first candidate wins.
    """
    with torch.no_grad():
        if source.is_cuda and has_triton():
            from neupath.learn.models.cuda_kernels import find_tmax_cuda

            return find_tmax_cuda(source, target, edge, stage)
        return find_tmax_torch(source, target, edge, stage)


def find_tmax_torch(source: Tensor, target: Tensor, edge: Tensor, stage: Stage) -> Tensor:
    """Find the T largest candidates with T maxima per bucket, on any device; as `find_tmax`."""
    (size, slots), dim = stage.filled.shape, source.shape[1]
    none = len(stage.source)
    tmax = torch.full((size, slots, dim), none, device=source.device)
    for classes, candidates in stage.buckets:
        step = max(1, _MAX_VALUES // (candidates.shape[1] * dim))
        for start in range(0, len(classes), step):
            part = candidates[start : start + step]  # (n, width)
            known = part.clamp(max=none - 1)
            values = source[stage.source[known]] + target[stage.target[known]] + edge[stage.kind[known]]
            values.masked_fill_((part == none).unsqueeze(-1), -torch.inf)  # (n, width, d)
            for slot in range(slots):
                best, at = values.max(dim=1, keepdim=True)  # (n, 1, d)
                chosen = part.gather(1, at.squeeze(1)).masked_fill(best.squeeze(1) == -torch.inf, none)
                tmax[classes[start : start + step], slot] = chosen
                if slot + 1 < slots:
                    values.scatter_(1, at, -torch.inf)
    return tmax


def _values_of(tmax: Tensor, source: Tensor, target: Tensor, edge: Tensor, stage: Stage) -> Tensor:
    """Return the values of the chosen candidates; (K, T, d), zeros where a candidate is missing."""
    none = len(stage.source)
    if not none:
        return source.new_zeros(tmax.shape)
    chosen = tmax.clamp(max=none - 1).flatten(0, 1)
    value = source.gather(0, stage.source[chosen]) + target.gather(0, stage.target[chosen])
    value = value + edge.gather(0, stage.kind[chosen])
    return value.view(tmax.shape).masked_fill(tmax == none, 0.0)


# ---- The decoder: (7) ----------------------------------------------------------------------------
class Decoder(nn.Module):
    """y = W_1·ReLU(W_2·(h[1] ‖ … ‖ h[T]))."""

    def __init__(self, dim: int, slots: int) -> None:
        super().__init__()
        self.hidden = nn.Linear(dim * slots, dim)  # W_2
        self.score = nn.Linear(dim, 1)  # W_1

    def forward(self, h: Tensor) -> Tensor:
        """Return a score for each class; (K, T, d) to (K,)."""
        scores: Tensor = self.score(torch.relu(self.hidden(h.flatten(1)))).squeeze(-1)
        return scores


class PublishedNetwork(nn.Module):
    """The encoder and the decoder as published: the score of a target depends on its class alone.

    `ImprovedNetwork` has the same methods.
    """

    sees_query = False
    """Whether the decoder sees the embedding of the query, too."""
    counts: CountChannels | None = None

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        self.encoder = encoder
        self.decoder = Decoder(encoder.dim, encoder.slots)

    def decode(self, batch: ClassBatch) -> tuple[Tensor, ...]:
        """Return what can be computed of each class by itself: its score, (K,)."""
        return (self.decoder(self.encoder(batch)),)

    def score(self, parts: tuple[Tensor, ...], which: Tensor, which_query: Tensor, features: Tensor | None) -> Tensor:  # noqa: ARG002
        """Return the scores of pairs, given the classes of their targets and queries; shape (pairs,)."""
        return parts[0][which]

    def score_target(self, h: Tensor, features: Tensor | None) -> Tensor:  # noqa: ARG002
        """Return the score of the first class for the last as its query, as a function of the former; (K, T, d)."""
        score: Tensor = self.decoder(h).sum()
        return score


# ---- The model -----------------------------------------------------------------------------------
@dataclass(frozen=True)
class _LabelledBatch:
    """The classes of some pairs, and their labels."""

    batch: ClassBatch
    which: Tensor  # (pairs,) the class of each pair's target
    which_query: Tensor  # (pairs,) the class of each pair's query
    counts: CountBatch | None  # None without count channels
    labels: Tensor  # (2, pairs) and their weights


class NeuPath(PairModel):
    """Score pairs by an encoder that finds the T best path instances for each target, and a decoder that weighs them.

    Parameters
    ----------
    dim
        d, the width of a path embedding: 64 unless given, 256 in the paper's variant.
    layers
        L, the length of the paths it can see.
    paths
        T, the number of path instances it keeps for each target: 3 unless given, 2 in the paper's variant.
    variant
        "improved", or "paper" for the model as published.
    channels
        How many count channels there are beside T-max pooling, 0 for none; the paper's variant has none.
    features
        What of the channels the decoder sees: "all", or only "counts", without PathSim's ratio, or only the "ratio",
        without the encoder.
    shared
        Whether all layers have the same matrices, as the paper's notation has it.
    training
        The fields of `TrainingOptions`; by default 30 epochs, batches of 8 queries and a learning rate of 3e-3, or 5e-4
        in the paper's variant.

    >>> import neupath as npth
    >>> hin = npth.load("toy")
    >>> labels = [("Mike", "Bob", 1.0), ("Mike", "Mary", 0.8), ("Mike", "Ann", 0.0), ("Mary", "Ann", 0.3)]
    >>> model = NeuPath(dim=16, layers=4, epochs=2, seed=0).fit(hin, labels)
    >>> len(model.top_k("Jim", k=2))
    2
    """

    name = "neupath"
    param_names = (
        "dim", "layers", "paths", "variant", "channels", "features", "shared", *TRAINING_PARAMS,
    )  # fmt: skip
    supports_two_types = True
    records_steps = True
    queries_per_batch = 8
    network_: PublishedNetwork | ImprovedNetwork

    def __init__(
        self,
        dim: int | None = None,
        layers: int = 2,
        paths: int | None = None,
        *,
        variant: Variant = "improved",
        channels: int | None = None,
        features: Features = "all",
        shared: bool = False,
        **training: Unpack[TrainingOptions],
    ) -> None:
        if variant not in _VARIANTS:
            raise QueryError(f"‹variant› is {variant!r}; it can be {' or '.join(_VARIANTS)}", parameter="variant")
        as_published = variant == "paper"
        super().__init__(**(TrainingOptions(learning_rate=5e-4 if as_published else 3e-3) | training))
        check_counts(2, dim=dim)
        check_counts(layers=layers, paths=paths)
        check_counts(0, channels=channels)
        if as_published and channels:
            raise QueryError(
                f"‹channels› is {channels}, and the paper's variant has no count channels; leave it out, or use the "
                f"variant 'improved'",
                parameter="channels",
            )
        self.variant, self.layers, self.shared = variant, layers, shared
        self.dim, self.paths, self.channels = (
            own if given is None else given
            for given, own in zip((dim, paths, channels), (256, 2, 0) if as_published else (64, 3, 8), strict=True)
        )
        if features not in FEATURES or (features != "all" and not self.channels):
            without = "" if self.channels else ", and without count channels only 'all'"
            raise QueryError(
                f"‹features› is {features!r}; it can be {', '.join(FEATURES)}{without}", parameter="features"
            )
        self.features = features

    @classmethod
    def from_folder(cls, folder: Path, params: dict[str, Any], hin: HIN, device: str | None = None) -> Self:
        usual = {"pooling": "tmax", "node_types": True, "edge_types": True}
        for name, value in usual.items():
            if params.get(name, value) != value:
                raise SourceError(
                    f"{folder} holds an ablation of NeuPath, with {name}={params[name]!r}; train it again with "
                    f"AblatedNeuPath of neupath_paper.ablations"
                )
        settings = {"variant": "paper"} | {name: value for name, value in params.items() if name not in usual}
        return super().from_folder(folder, settings, hin, device)  # the first versions saved no variant

    def _set_network(self, hin: HIN) -> None:
        self.__dict__.pop("walk_counter_", None)
        self.graph_, self.table_ = self._flatten(hin), self.new_table(hin)
        self.background_ = self.table_.background(self.graph_)
        super()._set_network(hin)

    def _make_network(self, hin: HIN) -> PublishedNetwork | ImprovedNetwork:
        sizes = self.paths, len(hin.schema.node_types), max(1, len(edge_kinds(hin.schema)))
        encoder = Encoder(EncoderLayer, self.dim, self.layers, *sizes, self.shared)
        if self.variant == "paper":
            return PublishedNetwork(encoder)
        network = ImprovedNetwork(encoder, self.channels, self.features)
        if self.channels:
            network.counts = CountChannels(hin, (self.node_type_, self.target_type), self.channels, self.layers)
        return network

    @cached_property
    def walk_counter_(self) -> WalkCounter | None:
        """The count channels over the graph."""
        counts = self.network_.counts
        return None if counts is None else WalkCounter(self.hin_, (self.node_type_, self.target_type), counts)

    def counts_of(self, query: int) -> Tensor | None:
        """Return what the count channels tell of a query and every target; shape (targets, 6·channels)."""
        counter = self.walk_counter_
        return None if counter is None else counter.tell(np.array([query]))[0].to(self.device)

    def _flatten(self, hin: HIN) -> FlatGraph:
        """Return a graph as the model sees it."""
        return FlatGraph.of(hin)

    def new_table(self, hin: HIN) -> ClassTable:
        return ClassTable(len(hin.schema.node_types), self.layers, self.paths)

    @property
    def first_rows(self) -> tuple[int, int]:
        """The numbers of the first query and of the first target."""
        numbering = self.graph_.numbering
        return numbering.first(self.node_type_), numbering.first(self.target_type)

    # ---- Training --------------------------------------------------------------------------------
    def _recipe(self) -> Recipe:
        return replace(super()._recipe(), patience=max(10, self.epochs // 4))  # few labels need many short epochs

    def _batches(self, pairs: Pairs) -> list[_LabelledBatch]:
        counts = None
        if self.network_.counts is not None and len(pairs):
            counts = self.network_.counts.count(self.hin_, pairs)
        batches = []
        for queries in self._query_batches(pairs):
            own = np.flatnonzero(np.isin(pairs.queries, queries))
            batches.append(self._labelled_batch(pairs.take(own), counts and counts.take(own, self.device)))
        return batches

    def _labelled_batch(self, part: Pairs, counts: CountBatch | None) -> _LabelledBatch:
        classes = np.empty((2, len(part)), dtype=np.int64)  # of each pair's target and query
        first_query, first_target = self.first_rows
        for query in np.unique(part.queries):
            own = part.queries == query
            targets, source = first_target + part.targets[own], first_query + int(query)
            ends = np.append(targets, source) if self.network_.sees_query else targets
            reach = self.table_.reach(self.graph_, ends)
            traced = self.table_.trace(self.graph_, self.background_, source, reach)[-1]
            classes[0, own], classes[1, own] = traced[targets], traced[ends[-1]]
        distinct, which = np.unique(classes if self.network_.sees_query else classes[0], return_inverse=True)
        batch = build_batch(self.table_, distinct, self.paths).to(self.device)
        rows = torch.from_numpy(which.reshape(-1, len(part))).to(self.device)
        labels = torch.tensor(np.stack([part.scores, part.weights]), dtype=torch.float32, device=self.device)
        return _LabelledBatch(batch, rows[0], rows[-1], counts, labels)

    def _loss(self, batch: Any) -> Tensor:
        part: _LabelledBatch = batch
        return weighted_error(self._score_batch(part), part.labels)  # (8)

    def _score_batch(self, part: _LabelledBatch) -> Tensor:
        """Return the scores of a batch of pairs; shape (pairs,)."""
        decoded = self.network_.decode(part.batch)
        features = None if self.network_.counts is None else self.network_.counts(part.counts)
        return self.network_.score(decoded, part.which, part.which_query, features)

    # ---- Scoring ---------------------------------------------------------------------------------
    def _score_rows(self, queries: Rows) -> Floats:
        count, (_, first) = len(self.hin_.nodes[self.target_type]), self.first_rows
        scores = np.empty((len(queries), count))
        reach = self.table_.reach(self.graph_, np.arange(first, first + count))
        for start in range(0, len(queries), _QUERIES_PER_BLOCK):
            block = slice(start, start + _QUERIES_PER_BLOCK)
            with names_full_gpu():
                scores[block] = self._score_block(queries[block], reach, slice(first, first + count))
        return scores

    def _score_block(self, queries: Rows, reach: list[Mask], targets: slice) -> Floats:
        table = self.table_.fork()  # so that the classes of these queries are not kept
        sources = self.first_rows[0] + queries.astype(np.int64)
        traced = []
        for source in sources.tolist():
            wanted = reach
            if self.network_.sees_query and self.target_type != self.node_type_:  # h_c is wanted as well
                wanted = [a | b for a, b in zip(reach, table.reach(self.graph_, np.array([source])), strict=True)]
            traced.append(table.trace(self.graph_, self.background_, source, wanted)[-1])
        classes: Ints = np.stack([trace[targets] for trace in traced])
        own = np.array([trace[source] for trace, source in zip(traced, sources, strict=True)])
        distinct = np.unique(np.append(classes, own) if self.network_.sees_query else classes)
        blocks = [distinct[start : start + _CLASSES_PER_BLOCK] for start in range(0, len(distinct), _CLASSES_PER_BLOCK)]
        which, which_query = (torch.from_numpy(np.searchsorted(distinct, part)) for part in (classes, own))
        scores = np.empty(classes.shape)
        with torch.no_grad():
            parts = [self.network_.decode(build_batch(table, block, self.paths).to(self.device)) for block in blocks]
            decoded = tuple(torch.cat(part) for part in zip(*parts, strict=True))
            for number in range(len(queries)):
                ends = which[number].to(self.device), which_query[[number]].to(self.device)
                counts = self.counts_of(int(queries[number]))
                scores[number] = self.network_.score(decoded, *ends, counts).cpu().numpy()
        return scores

    def updater(self, hin: HIN) -> Updater | None:
        self.check_graph(self._trained_on(), hin)
        return NeuPathUpdater(copy.copy(self), hin)

    def over_background(self, hin: HIN, graph: FlatGraph, table: ClassTable, background: list[Ints]) -> Self:
        """Return the same model over a graph whose background is known."""
        bound = copy.copy(self)
        bound.__dict__.pop("walk_counter_", None)
        bound.hin_, bound.graph_, bound.table_, bound.background_ = hin, graph, table, background
        return bound

    # ---- Explaining ------------------------------------------------------------------------------
    def attention_paths(self, query: Id, target: Id, limit: int = 10) -> "list[AttentionPath]":
        """Return the path instances with the largest share in one score, heaviest first."""
        if limit < 1:
            raise QueryError(f"‹limit› is {limit}; show at least 1 path")
        if self.features == "ratio":
            raise QueryError("a model that sees only the ratio of its count channels picks no paths")
        from neupath.learn.models.neupath_attention import heaviest_paths

        rows = self._fitted().row(self.node_type_, query), self.hin_.row(self.target_type, target)
        return heaviest_paths(self, *rows, limit)

    def used_metapaths(self, pairs: Iterable[tuple[Id, Id]]) -> list[tuple[str, float]]:
        """Return the meta-paths from the query behind the scores of some pairs, with their shares; heaviest first."""
        weights: Counter[str] = Counter()
        for query, target in pairs:
            for path in self.attention_paths(query, target, 20):
                if path.from_query and path.links:
                    weights[path.metapath] += path.weight  # type: ignore[assignment]
        total = sum(weights.values())
        return [(metapath, weight / total) for metapath, weight in weights.most_common()]

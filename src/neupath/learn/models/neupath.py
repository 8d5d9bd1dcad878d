"""NeuPath (Xiao, Zhao, Zheng, Song, CIKM 2021): PathSim learned from labelled pairs, with no meta-path given.

For a query c, every node t starts as x_t = [0,1,0,…], the query as [1,0,0,…]. Each of L encoder layers computes

    Extract   p_s[i] = W_m(W_τ(s)·h_s[i] ‖ e_φ ‖ W_τ(t)·h_t[i])    one candidate for each neighbour s and path slot i
    Compare   q_t[1..T] = the T largest candidates, element by element (T-max pooling)
    Update    h_t[i] ← W_u(h_t[i] ‖ q_t[i])

and the decoder scores t by y_ct = W_1·ReLU(W_2·(h_t[1] ‖ … ‖ h_t[T])). A node starts with one path; a slot without a
path is zero and gives no candidate, so the T slots hold T different paths. (In the paper all T slots start with x_t;
they would stay equal, and T-max pooling would be max pooling.)

That is `variant="paper"`. The default, `variant="improved"`, differs in three points. The decoder also sees the query's
own embedding h_c and counts of walks f_ct (`walk_counts.py`), since PathSim divides by how many paths the query itself
has, and T slots cannot count beyond T:

    y_ct = W_1·ReLU(W_2·(h_t[1..T] ‖ h_c[1..T] ‖ f_ct)) + w·f_ct

And the encoder starts near the identity: W_τ and the part of W_m for s near I, the part for t near 0, W_u near half of
each of its two inputs. Otherwise some seeds do not learn.

Two things make it fast without changing a score. Nodes that the model cannot tell apart form a class, and each class is
computed once (`class_table.py`): shapes below count classes, J before a layer and K after it. And since W_m is linear,
W_m(a ‖ e ‖ b) = A·a + e' + C·b, matrix products are over classes alone; candidates are only added up and compared.
"""

import copy
import heapq
from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, Literal, Self, Unpack, cast

import numpy as np
import torch
from torch import Tensor, nn

from neupath.engine.scorer import Updater
from neupath.errors import QueryError, SourceError
from neupath.graph.hin import HIN, Floats
from neupath.graph.metapath import arrow
from neupath.graph.nodes import Id, Mask, Rows
from neupath.learn.attention import AttentionNode, AttentionPath
from neupath.learn.labels import Pairs
from neupath.learn.models.class_table import ClassBatch, ClassTable, Stage, build_batch
from neupath.learn.models.flat_graph import FlatGraph, Ints, edge_kinds, has_triton
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
from neupath.learn.models.walk_counts import COUNTS, FEATURES, CountBatch, CountChannels, WalkCounter

Variant = Literal["improved", "paper"]
Features = Literal["all", "counts", "ratio"]
_VARIANTS = ("improved", "paper")
_FEATURES = ("all", "counts", "ratio")
_NOISE = 0.3
"""How far the encoder's matrices start from the identity, relative to random ones."""
_CLASSES_PER_BLOCK = 20_000
_QUERIES_PER_BLOCK = 64


# ---- Encoder and decoder -------------------------------------------------------------------------
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

    def start_near_identity(self) -> None:
        """Let every layer start by passing on what it gets."""
        for layer in self.layers:
            cast(EncoderLayer, layer).start_near_identity()

    def forward(self, batch: ClassBatch, traces: list["LayerTrace"] | None = None) -> Tensor:
        """Return the path embeddings h of the batch's classes, (K, T, d); append what each layer chose to `traces`."""
        h = torch.zeros(len(batch.queries), self.slots, self.dim, device=batch.queries.device)
        h[:, 0, 0] = batch.queries.to(h.dtype)
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

    @torch.no_grad()
    def start_near_identity(self) -> None:
        """Move W_τ and A near I, C near 0, and W_u near the mean of what a node was and what it gets."""
        identity = torch.eye(len(self.extract_source.weight))
        self.project.mul_(_NOISE).add_(identity)
        self.extract_source.weight.mul_(_NOISE).add_(identity)
        self.extract_target.weight.mul_(_NOISE)
        self.update.weight.mul_(_NOISE).add_(torch.cat([identity, identity], dim=1) / 2)

    def forward(self, h: Tensor, stage: Stage, traces: list["LayerTrace"] | None = None) -> Tensor:
        """Return the embeddings after the layer; (J, T, d) to (K, T, d)."""
        source, target = self.extract(h, stage)
        own = h[stage.before]  # (K, T, d)
        # Compare
        tmax = find_tmax(source, target, self.edge, stage)
        pooled = _values_of(tmax, source, target, self.edge, stage)  # (K, T, d)
        if traces is not None:
            traces.append(LayerTrace(tmax, pooled, own))
        return self.updated(own, pooled, stage)

    def extract(self, h: Tensor, stage: Stage) -> tuple[Tensor, Tensor]:
        """Return the parts of the candidates that are of s and of t; (J, T, d) to (J·T, d) twice."""
        projected = torch.zeros_like(h)
        for matrix, rows in zip(self.project, stage.rows_of_type, strict=True):
            projected = projected.index_copy(0, rows, h[rows] @ matrix)
        return self.extract_source(projected).flatten(0, 1), self.extract_target(projected).flatten(0, 1)

    def updated(self, own: Tensor, pooled: Tensor, stage: Stage) -> Tensor:
        """Return what each class was and what it gets as one; (K, T, d) twice to (K, T, d)."""
        after: Tensor = self.update(torch.cat([own, pooled], dim=-1))
        return after * stage.filled.unsqueeze(-1)


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


class PairDecoder(nn.Module):
    """y = W_1·ReLU(W_2·(h_t ‖ h_c ‖ f)) + w·f, with W_2 in its three parts; f are some features of the channels.

    For the ratio alone, y = w·f + a constant.
    """

    def __init__(self, dim: int, slots: int, channels: int, features: Features) -> None:
        super().__init__()
        counts = COUNTS * channels
        self.seen = {"all": slice(None), "counts": slice(counts), "ratio": slice(counts, None)}[features]
        width = len(range(FEATURES * channels)[self.seen])
        self.target = nn.Linear(dim * slots, dim)
        self.query = nn.Linear(dim * slots, dim, bias=False)
        self.counts = nn.Linear(width, dim, bias=False) if width and features != "ratio" else None
        self.direct = nn.Linear(width, 1, bias=False) if width else None  # w
        self.score = nn.Linear(dim, 1)  # W_1

    def forward(self, target: Tensor, query: Tensor, counts: Tensor | None) -> Tensor:
        """Return the score of each pair, given W_2's parts for h_t and h_c, and f; (pairs, d) twice to (pairs,)."""
        hidden = target + query
        if counts is None or self.direct is None:
            scores: Tensor = self.score(torch.relu(hidden))
        elif self.counts is None:
            scores = self.direct(counts[..., self.seen]) + self.score.bias
        else:
            counts = counts[..., self.seen]
            scores = self.score(torch.relu(hidden + self.counts(counts))) + self.direct(counts)
        return scores.squeeze(-1)


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
        What of the channels the decoder sees, for ablations: "all", or only "counts", without PathSim's ratio, or only
        the "ratio", without the encoder.
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
    network_: nn.Sequential  # of the encoder, the decoder and, if there are any, the count channels

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
        if features not in _FEATURES or (features != "all" and not self.channels):
            without = "" if self.channels else ", and without count channels only 'all'"
            raise QueryError(
                f"‹features› is {features!r}; it can be {', '.join(_FEATURES)}{without}", parameter="features"
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

    def _make_network(self, hin: HIN) -> nn.Sequential:
        sizes = self.paths, len(hin.schema.node_types), max(1, len(edge_kinds(hin.schema)))
        encoder = Encoder(EncoderLayer, self.dim, self.layers, *sizes, self.shared)
        if self.variant == "paper":
            return nn.Sequential(OrderedDict(encoder=encoder, decoder=Decoder(self.dim, self.paths)))
        encoder.start_near_identity()
        parts = OrderedDict[str, nn.Module](
            encoder=encoder, decoder=PairDecoder(self.dim, self.paths, self.channels, self.features)
        )
        if self.channels:
            types = self.node_type_, self.target_type
            parts["counts"] = CountChannels(hin, types, self.channels, self.layers)
        return nn.Sequential(parts)

    @cached_property
    def walk_counter_(self) -> WalkCounter | None:
        """The count channels over the graph."""
        if not self.channels:
            return None
        channels = cast(CountChannels, self.network_[2])
        return WalkCounter(self.hin_, (self.node_type_, self.target_type), channels)

    def _flatten(self, hin: HIN) -> FlatGraph:
        """Return a graph as the model sees it."""
        return FlatGraph.of(hin)

    def new_table(self, hin: HIN) -> ClassTable:
        return ClassTable(len(hin.schema.node_types), self.layers, self.paths)

    @property
    def _coders(self) -> tuple[Any, Any]:
        """The encoder and the decoder."""
        return self.network_[0], self.network_[1]

    @property
    def _first(self) -> tuple[int, int]:
        """The numbers of the first query and of the first target."""
        numbering = self.graph_.numbering
        return numbering.first(self.node_type_), numbering.first(self.target_type)

    # ---- Training --------------------------------------------------------------------------------
    def _recipe(self) -> Recipe:
        return replace(super()._recipe(), patience=max(10, self.epochs // 4))  # few labels need many short epochs

    def _batches(self, pairs: Pairs) -> list[_LabelledBatch]:
        counts = None
        if self.channels and len(pairs):
            counts = cast(CountChannels, self.network_[2]).count(self.hin_, pairs)
        batches = []
        for queries in self._query_batches(pairs):
            own = np.flatnonzero(np.isin(pairs.queries, queries))
            batches.append(self._labelled_batch(pairs.take(own), counts and counts.take(own, self.device)))
        return batches

    def _labelled_batch(self, part: Pairs, counts: CountBatch | None) -> _LabelledBatch:
        classes = np.empty((2, len(part)), dtype=np.int64)  # of each pair's target and query
        first_query, first_target = self._first
        for query in np.unique(part.queries):
            own = part.queries == query
            targets, source = first_target + part.targets[own], first_query + int(query)
            ends = np.append(targets, source) if self.variant == "improved" else targets
            reach = self.table_.reach(self.graph_, ends)
            traced = self.table_.trace(self.graph_, self.background_, source, reach)[-1]
            classes[0, own], classes[1, own] = traced[targets], traced[ends[-1]]
        distinct, which = np.unique(classes if self.variant == "improved" else classes[0], return_inverse=True)
        batch = build_batch(self.table_, distinct, self.paths).to(self.device)
        rows = torch.from_numpy(which.reshape(-1, len(part))).to(self.device)
        labels = torch.tensor(np.stack([part.scores, part.weights]), dtype=torch.float32, device=self.device)
        return _LabelledBatch(batch, rows[0], rows[-1], counts, labels)

    def _loss(self, batch: Any) -> Tensor:
        part = cast(_LabelledBatch, batch)
        return weighted_error(self._score_batch(part), part.labels)

    def _encode(self, batch: ClassBatch) -> Tensor:
        """Return the path embeddings of the batch's classes, (K, T, d); zeros for the ratio alone."""
        if self.features == "ratio":
            return torch.zeros(len(batch.stages[-1].before), self.paths, self.dim, device=self.device)
        h: Tensor = self._coders[0](batch)
        return h

    def _score_batch(self, part: _LabelledBatch) -> Tensor:
        """Return the scores of a batch of pairs; shape (pairs,)."""
        _, decoder, *counts = cast(Any, self.network_)
        h = self._encode(part.batch)
        if self.variant == "paper":
            scores: Tensor = decoder(h)[part.which]
            return scores
        h = h.flatten(1)
        features = counts[0](part.counts) if counts else None
        improved: Tensor = decoder(decoder.target(h)[part.which], decoder.query(h)[part.which_query], features)
        return improved

    # ---- Scoring ---------------------------------------------------------------------------------
    def _score_rows(self, queries: Rows) -> Floats:
        count, (_, first) = len(self.hin_.nodes[self.target_type]), self._first
        scores = np.empty((len(queries), count))
        reach = self.table_.reach(self.graph_, np.arange(first, first + count))
        for start in range(0, len(queries), _QUERIES_PER_BLOCK):
            block = slice(start, start + _QUERIES_PER_BLOCK)
            with names_full_gpu():
                scores[block] = self._score_block(queries[block], reach, slice(first, first + count))
        return scores

    def _score_block(self, queries: Rows, reach: list[Mask], targets: slice) -> Floats:
        table = self.table_.fork()  # so that the classes of these queries are not kept
        sources = self._first[0] + queries.astype(np.int64)
        traced = []
        for source in sources.tolist():
            wanted = reach
            if self.variant == "improved" and self.target_type != self.node_type_:  # h_c is wanted as well
                wanted = [a | b for a, b in zip(reach, table.reach(self.graph_, np.array([source])), strict=True)]
            traced.append(table.trace(self.graph_, self.background_, source, wanted)[-1])
        classes: Ints = np.stack([trace[targets] for trace in traced])
        own = np.array([trace[source] for trace, source in zip(traced, sources, strict=True)])
        distinct = np.unique(np.append(classes, own) if self.variant == "improved" else classes)
        blocks = range(0, len(distinct), _CLASSES_PER_BLOCK)
        with torch.no_grad():
            parts = [self._decode(table, distinct[start : start + _CLASSES_PER_BLOCK]) for start in blocks]
            decoded = [torch.cat(part) for part in zip(*parts, strict=True)]
            which, which_query = np.searchsorted(distinct, classes), np.searchsorted(distinct, own)
            if self.variant == "paper":
                return decoded[0].cpu().double().numpy()[which]
            return self._score_pairs(queries, decoded[0], decoded[1], which, which_query)

    def _decode(self, table: ClassTable, classes: Ints) -> tuple[Tensor, ...]:
        """Return the score of each class, (K,), or the decoder's parts for it as a target and as a query, (K, d)."""
        decoder = self._coders[1]
        h = self._encode(build_batch(table, classes, self.paths).to(self.device))
        return (decoder(h),) if self.variant == "paper" else (decoder.target(h.flatten(1)), decoder.query(h.flatten(1)))

    def _score_pairs(self, queries: Rows, target: Tensor, query: Tensor, which: Ints, which_query: Ints) -> Floats:
        decoder, counter = cast(PairDecoder, self.network_[1]), self.walk_counter_
        scores = np.empty(which.shape)
        for number, own in enumerate(which_query.tolist()):
            counts = None if counter is None else counter.tell(queries[[number]])[0].to(self.device)
            hidden = target[torch.from_numpy(which[number]).to(self.device)]
            scores[number] = decoder(hidden, query[own], counts).cpu().numpy()
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
    def attention_paths(self, query: Id, target: Id, limit: int = 10) -> list[AttentionPath]:
        """Return the path instances with the largest share in one score, heaviest first."""
        if limit < 1:
            raise QueryError(f"‹limit› is {limit}; show at least 1 path")
        if self.features == "ratio":
            raise QueryError("a model that sees only the ratio of its count channels picks no paths")
        rows = self._fitted().row(self.node_type_, query), self.hin_.row(self.target_type, target)
        trace = _ScoreTrace(self, *rows)
        shares: Counter[tuple[tuple[int, ...], tuple[int, ...]]] = Counter()
        most = limit * self.paths**self.layers  # a path can occur once in each slot of each layer
        for share, nodes, kinds in islice(trace.paths(), most):
            shares[nodes, kinds] += share  # type: ignore[assignment]
        heaviest = sorted(shares.items(), key=lambda item: (-item[1], item[0]))[:limit]
        return [trace.describe(share, *path) for path, share in heaviest]

    def used_metapaths(self, pairs: Iterable[tuple[Id, Id]]) -> list[tuple[str, float]]:
        """Return the meta-paths from the query behind the scores of some pairs, with their shares; heaviest first."""
        weights: Counter[str] = Counter()
        for query, target in pairs:
            for path in self.attention_paths(query, target, 20):
                if path.from_query and path.links:
                    weights[path.metapath] += path.weight  # type: ignore[assignment]
        total = sum(weights.values())
        return [(metapath, weight / total) for metapath, weight in weights.most_common()]


# ---- T-max pooling -------------------------------------------------------------------------------
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


# ---- Attention paths -----------------------------------------------------------------------------
# After a layer, each slot of a node consists of what it was before and of the chosen candidates. The score y depends on
# such a part v by |∂y/∂v · v|, summed over the elements it was chosen for. From the target back through the layers,
# these shares multiply along a path; the shares of all paths of one pair add up to 1. A candidate is a class of
# neighbours, which share equally.
_STAY = -1


@dataclass(frozen=True)
class LayerTrace:
    """What a layer chose: the T-max candidates (C for none), their values, and the embeddings before the layer."""

    tmax: Tensor  # (K, T, d)
    pooled: Tensor  # (K, T, d)
    own: Tensor  # (K, T, d)


SlotPart = tuple[int, int, int]
"""Where a part of a slot comes from: a class before the layer, one of its slots, and the kind of edge (or stay)."""
SlotWeights = dict[tuple[int, int], dict[SlotPart, float]]
"""The weights of the parts of each slot (row, slot) after a layer."""


class _ScoreTrace:
    """How much each part of each layer's slots weighs in one score."""

    def __init__(self, model: NeuPath, query_row: int, target_row: int) -> None:
        query, target = (first + row for first, row in zip(model._first, (query_row, target_row), strict=True))
        self.model, self.query, self.target = model, query, target
        table = model.table_.fork()
        everywhere = [np.ones(len(model.graph_.types), dtype=np.bool_)] * (model.layers + 1)
        self.classes = table.trace(model.graph_, model.background_, query, everywhere)
        ends = [target] if model.variant == "paper" or query == target else [target, query]
        batch = build_batch(table, self.classes[-1][ends], model.paths).to(model.device)
        traces: list[LayerTrace] = []
        encoder, decoder = model._coders
        h = encoder(batch, traces)
        if model.variant == "paper":
            score = decoder(h).sum()
        else:  # how the score depends on what the target is; the query's own embedding and the counts stay as they are
            counter, h = model.walk_counter_, h.flatten(1)
            counts = None if counter is None else counter.tell(np.array([query_row]))[0, [target_row]].to(model.device)
            score = decoder(decoder.target(h[:1]), decoder.query(h[-1:].detach()), counts).sum()
        inputs = [tensor for trace in traces for tensor in (trace.pooled, trace.own)]
        slopes = torch.autograd.grad(score, inputs, allow_unused=True)
        products = (
            torch.zeros_like(value) if slope is None else (slope * value).abs()
            for slope, value in zip(slopes, inputs, strict=True)
        )
        self.row_of = [{int(number): row for row, number in enumerate(part)} for part in batch.classes]
        self.weights = [  # of each layer
            _weigh_parts(stage, trace.tmax, next(products), next(products), classes)
            for stage, trace, classes in zip(batch.stages, traces, batch.classes, strict=False)
        ]

    def paths(self) -> Iterator[tuple[float, tuple[int, ...], tuple[int, ...]]]:
        """Yield (share, nodes, kinds) from the far end to the target, heaviest first, by best-first search."""
        top = [self.weights[-1][0, slot] for slot in range(self.model.paths)]
        total = sum(sum(parts.values()) for parts in top) or 1.0
        queue = []
        for slot, parts in enumerate(top):
            share = sum(parts.values()) / total
            if share > 0:
                queue.append((-share, self.model.layers, (self.target,), (), slot))
        heapq.heapify(queue)
        while queue:
            negative, layer, nodes, kinds, slot = heapq.heappop(queue)
            if layer == 0:
                yield -negative, nodes, kinds
                continue
            for share, node, kind, earlier in self._origins(layer, nodes[0], slot):
                longer = (nodes, kinds) if kind == _STAY else ((node, *nodes), (kind, *kinds))
                heapq.heappush(queue, (negative * share, layer - 1, *longer, earlier))

    def _origins(self, layer: int, node: int, slot: int) -> Iterator[tuple[float, int, int, int]]:
        """Yield (share, node, kind, slot) of everything that a node's slot after a layer comes from."""
        graph, before = self.model.graph_, self.classes[layer - 1]
        parts = self.weights[layer - 1][self.row_of[layer][int(self.classes[layer][node])], slot]
        total = sum(parts.values())
        edges = slice(graph.first[node], graph.last[node])
        for (number, earlier, kind), weight in parts.items():
            if weight <= 0 or total <= 0:
                continue
            if kind == _STAY:
                yield weight / total, node, kind, earlier
                continue
            alike = (graph.kinds[edges] == kind) & (before[graph.sources[edges]] == number)
            neighbours = graph.sources[edges][alike]
            for neighbour in neighbours.tolist():
                yield weight / total / len(neighbours), neighbour, kind, earlier

    def describe(self, weight: float, nodes: tuple[int, ...], kinds: tuple[int, ...]) -> AttentionPath:
        hin, numbering = self.model.hin_, self.model.graph_.numbering
        named, links = [], edge_kinds(hin.schema)
        for node in nodes:
            position = int(np.searchsorted(numbering.starts, node, side="right")) - 1
            node_type, row = numbering.node_types[position], node - numbering.starts[position]
            named.append(AttentionNode(node_type, hin.nodes[node_type].id(row), hin.nodes[node_type].name(row)))
        arrows = tuple(arrow((links[kind],)) for kind in kinds)
        return AttentionPath(tuple(named), arrows, weight, nodes[0] == self.query)


def _weigh_parts(stage: Stage, tmax: Tensor, pooled: Tensor, own: Tensor, before: Ints) -> SlotWeights:
    """Add up the weights of the parts of each slot, given those of all elements."""
    size, slots, _ = tmax.shape
    none = len(stage.source)
    chosen, values, stays = tmax.cpu().numpy(), pooled.detach().cpu().numpy(), own.detach().sum(-1).cpu().numpy()
    source, kind, row_before = stage.source.cpu().numpy(), stage.kind.cpu().numpy(), stage.before.cpu().numpy()
    weights: SlotWeights = {}
    for row, slot in np.ndindex(size, slots):
        parts = weights[row, slot] = {(int(before[row_before[row]]), slot, _STAY): float(stays[row, slot])}
        for candidate in np.unique(chosen[row, slot]):
            if candidate < none:
                weight = float(values[row, slot][chosen[row, slot] == candidate].sum())
                origin, earlier = divmod(int(source[candidate]), slots)
                part = (int(before[origin]), earlier, int(kind[candidate]))
                parts[part] = parts.get(part, 0.0) + weight
    return weights

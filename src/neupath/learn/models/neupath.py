"""NeuPath (Xiao, Zhao, Zheng, Song, CIKM 2021): PathSim learned from labelled pairs, with no meta-path given."""

import copy
import heapq
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Literal, Self, cast

import numpy as np
import torch
from torch import Tensor, nn

from neupath.errors import QueryError
from neupath.graph.hin import HIN, Floats
from neupath.graph.metapath import arrow
from neupath.graph.nodes import Id, Mask, Rows
from neupath.learn.labels import Pairs
from neupath.learn.models.class_table import ClassBatch, ClassTable, Stage, build_batch
from neupath.learn.models.flat_graph import FlatGraph, Ints, edge_kinds
from neupath.learn.models.model import QUERIES_A_BATCH, PairModel, check_counts, choose_device, reproducible, seeded
from neupath.learn.models.neupath_updates import LiveClasses
from neupath.learn.models.training import Epoch, Recipe, Watch, fingerprint_of, train

# ---- Winners -------------------------------------------------------------------------------------
# In torch, for any device; on CUDA, where Triton is there, one kernel for all classes at once (`winners_cuda.py`), which
# agrees with it to the last index.
_MOST_AT_ONCE = 1 << 26
"""Numbers compared at once, to bound memory."""


def find_tmax(source: Tensor, target: Tensor, edge: Tensor, stage: Stage) -> Tensor:
    """Return the T largest candidates of each class, element by element; (K, T, d), the number of candidates for none.

    The value of a candidate is source + target + edge; of equal values the first candidate wins.
    """
    with torch.no_grad():
        if source.is_cuda and _has_triton():
            from neupath.learn.models.tmax_cuda import find_tmax_cuda

            return find_tmax_cuda(source, target, edge, stage)
        return find_tmax_torch(source, target, edge, stage)


@cache
def _has_triton() -> bool:
    try:
        import triton  # type: ignore[import-not-found,unused-ignore]  # noqa: F401
    except ImportError:
        return False
    return True


def find_tmax_torch(source: Tensor, target: Tensor, edge: Tensor, stage: Stage) -> Tensor:
    """Find the winners bucket by bucket, with T maxima each."""
    (size, slots), dim = stage.filled.shape, source.shape[1]
    nobody = len(stage.source)
    winners = torch.full((size, slots, dim), nobody, device=source.device)
    for classes, candidates in stage.buckets:
        step = max(1, _MOST_AT_ONCE // (candidates.shape[1] * dim))
        for at in range(0, len(classes), step):
            places = candidates[at : at + step]  # (n, width)
            known = places.clamp(max=nobody - 1)
            values = source[stage.source[known]] + target[stage.target[known]] + edge[stage.kind[known]]
            values.masked_fill_((places == nobody).unsqueeze(-1), -torch.inf)  # (n, width, d)
            winners[classes[at : at + step]] = _argmax_each(values, places, slots, nobody)
    return winners


def _argmax_each(values: Tensor, places: Tensor, slots: int, nobody: int) -> Tensor:
    """Return, element by element, which candidates have the T largest values; (n, width, d) to (n, T, d)."""
    found = []
    for slot in range(slots):
        best, at = values.max(dim=1, keepdim=True)  # (n, 1, d)
        which = places.gather(1, at.squeeze(1)).masked_fill(best.squeeze(1) == -torch.inf, nobody)
        found.append(which)
        if slot + 1 < slots:
            values.scatter_(1, at, -torch.inf)
    return torch.stack(found, dim=1)


# ---- The encoder and decoder of NeuPath (Xiao, Zhao, Zheng, Song, CIKM 2021), over classes of nodes
# For a query c every node starts as x = [0,1,0,…], the query as [1,0,0,…]. Each of L layers, for every node t:
#     Extract   p = W_m(W_τ(s)·h_s[i] ‖ e_φ ‖ W_τ(t)·h_t[i])    one candidate for each neighbour s and path slot i
#     Compare   q_t[1..T] = the T largest candidates, element by element
#     Update    h_t[i] ← W_u(h_t[i] ‖ q_t[i])
# and the score of t is W_1·ReLU(W_2·(h_t[1] ‖ … ‖ h_t[T])). A slot that holds no path yet is no candidate, and zeros
# elsewhere: a node starts with one path, so that T slots are T different paths and never copies of one.
# The message is linear, W_m(a ‖ e ‖ b) = A·a + b_φ + C·b, so all matrix products are over classes of nodes
# (`classes.py`), and candidates only add and compare. Which candidates win is found without gradients; gradients flow
# through the winners.
Pooling = Literal["tmax", "max", "mean", "sum"]


class Encoder(nn.Module):
    """L layers of Extract, Compare and Update."""

    def __init__(self, dim: int, layers: int, slots: int, num_types: int, num_kinds: int, pooling: Pooling) -> None:
        super().__init__()
        self.dim, self.slots, self.pooling = dim, slots, pooling
        self.layers = nn.ModuleList(EncoderLayer(dim, num_types, num_kinds) for _ in range(layers))

    def forward(self, batch: ClassBatch, record: list["Record"] | None = None) -> Tensor:
        """Return the path embeddings of the batch's classes; shape (classes, T, d).

        Where a list is given, what every layer took is added to it.
        """
        h = torch.zeros(len(batch.queries), self.slots, self.dim, device=batch.queries.device)
        h[:, 0, 0] = batch.queries.to(h.dtype)
        h[:, 0, 1] = 1 - h[:, 0, 0]
        h.requires_grad_(record is not None)
        for layer, stage in zip(self.layers, batch.stages, strict=True):
            h = layer(h, stage, self.pooling, record)
        return h


@dataclass(frozen=True)
class Record:
    """What a layer took: which candidates won (as many as there are: none), their values, and what was before."""

    winners: Tensor  # (K, T, d)
    pooled: Tensor  # (K, T, d)
    own: Tensor  # (K, T, d)


class EncoderLayer(nn.Module):
    """One layer, with matrices of its own."""

    def __init__(self, dim: int, num_types: int, num_kinds: int) -> None:
        super().__init__()
        bound = dim**-0.5
        self.project = nn.Parameter(torch.empty(num_types, dim, dim).uniform_(-bound, bound))  # W_τ
        self.extract_source = nn.Linear(dim, dim, bias=False)  # W_m, the part for s
        self.extract_target = nn.Linear(dim, dim, bias=False)  # W_m, the part for t
        self.edge = nn.Parameter(torch.empty(num_kinds, dim).uniform_(-bound, bound))  # W_m·e_φ
        self.update = nn.Linear(2 * dim, dim, bias=False)  # W_u

    def forward(self, h: Tensor, stage: Stage, pooling: Pooling, record: list["Record"] | None = None) -> Tensor:
        """Return the embeddings after the layer; (J, T, d) to (K, T, d)."""
        projected = torch.zeros_like(h)
        for matrix, rows in zip(self.project, stage.rows_of_type, strict=True):
            projected = projected.index_copy(0, rows, h[rows] @ matrix)
        source = self.extract_source(projected).flatten(0, 1)  # (J·T, d)
        target = self.extract_target(projected).flatten(0, 1)
        own = h[stage.before]  # (K, T, d)
        if pooling in ("tmax", "max"):
            winners = find_tmax(source, target, self.edge, stage)
            pooled = _values_of(winners, source, target, self.edge, stage)
            if record is not None:
                record.append(Record(winners, pooled, own))
        else:
            pooled = _total(source, target, self.edge, stage, pooling)
        updated: Tensor = self.update(torch.cat([own, pooled], dim=-1))
        return updated * stage.filled.unsqueeze(-1)


def _values_of(winners: Tensor, source: Tensor, target: Tensor, edge: Tensor, stage: Stage) -> Tensor:
    """Return the values of the winning candidates; (K, T, d), zeros where there is none."""
    nobody = len(stage.source)
    if not nobody:
        return source.new_zeros(winners.shape)
    chosen = winners.clamp(max=nobody - 1).flatten(0, 1)
    value = source.gather(0, stage.source[chosen]) + target.gather(0, stage.target[chosen])
    value = value + edge.gather(0, stage.kind[chosen])
    return value.view(winners.shape).masked_fill(winners == nobody, 0.0)


def _total(source: Tensor, target: Tensor, edge: Tensor, stage: Stage, pooling: Pooling) -> Tensor:
    """Add up, or average, the candidates of each class; (K, 1, d)."""
    count = stage.count.to(source.dtype).unsqueeze(-1)
    message = (source[stage.source] + target[stage.target] + edge[stage.kind]) * count
    total = source.new_zeros(len(stage.before), source.shape[1]).index_add(0, stage.to, message)
    if pooling == "mean":
        degree = source.new_zeros(len(total), 1).index_add(0, stage.to, count)
        total = total / degree.clamp(min=1.0)
    return total.unsqueeze(1)


class Decoder(nn.Module):
    """y = W_1·ReLU(W_2·(h[1] ‖ … ‖ h[T]))."""

    def __init__(self, dim: int, slots: int) -> None:
        super().__init__()
        self.hidden = nn.Linear(dim * slots, dim)
        self.score = nn.Linear(dim, 1)

    def forward(self, h: Tensor) -> Tensor:
        """Return a score for each class; shape (classes,)."""
        scores: Tensor = self.score(torch.relu(self.hidden(h.flatten(1)))).squeeze(-1)
        return scores


# ---- Attention -----------------------------------------------------------------------------------
# A layer hands on, for each slot, what a node was before and the largest candidates. How much the score y depends on
# one of these is |∂y/∂v · v|, added up over the elements it stands in. Going back from the target, layer by layer, these
# shares multiply along a path, and all paths of one pair share 1 between them. A candidate is a class of nodes, which
# share alike.
_STAY = -1


@dataclass(frozen=True)
class AttentionNode:
    """A node on a path that the model looked at."""

    node_type: str
    id: Id
    name: str | None


@dataclass(frozen=True)
class AttentionPath:
    """One path behind a score: its nodes from the far end to the target, the links between, and its share of 1."""

    nodes: tuple[AttentionNode, ...]
    links: tuple[str, ...]
    weight: float
    from_query: bool
    """Whether the path begins at the query; the others tell the model what the target itself is like."""

    @property
    def metapath(self) -> str:
        """The types and links along the path."""
        steps = zip(self.links, self.nodes[1:], strict=True)
        return self.nodes[0].node_type + "".join(f" {link} {node.node_type}" for link, node in steps)


def used_metapaths(looks: Iterable[list[AttentionPath]]) -> list[tuple[str, float]]:
    """Add up the weight of paths from the query by their meta-path; shares of 1, heaviest first."""
    totals: Counter[str] = Counter()
    for found in looks:
        for look in found:
            if look.from_query and look.links:
                totals[look.metapath] += look.weight  # type: ignore[assignment]
    whole = sum(totals.values())
    return [(text, weight / whole) for text, weight in totals.most_common()]


def attention_paths(model: "NeuPath", query: int, target: int, limit: int) -> list[AttentionPath]:
    """Return the paths that weigh most in the score of two nodes of the flat graph, heaviest first."""
    if model.pooling not in ("tmax", "max"):
        raise QueryError(f"a model that pools by {model.pooling} picks no paths; only tmax and max do")
    trace = _Trace(model, query, target)
    shares: Counter[tuple[tuple[int, ...], tuple[int, ...]]] = Counter()
    for share, nodes, kinds in islice(
        trace.paths(), limit * model.slots**model.layers
    ):  # one path may stand in each slot
        shares[nodes, kinds] += share  # type: ignore[assignment]
    heaviest = sorted(shares.items(), key=lambda item: (-item[1], item[0]))[:limit]
    return [trace.describe(share, *found) for found, share in heaviest]


Choice = tuple[int, int, int]
"""Where a slot's content comes from: a class before the layer, one of its slots, and the kind of edge (or stay)."""


class _Trace:
    """What every layer took for one pair."""

    def __init__(self, model: "NeuPath", query: int, target: int) -> None:
        self.model, self.query, self.target = model, query, target
        table = model.table_.fork()
        everywhere = [np.ones(len(model.graph_.types), dtype=np.bool_)] * (model.layers + 1)
        self.classes = table.trace(model.graph_, model.background_, query, everywhere)
        batch = build_batch(table, self.classes[-1][[target]], model.slots).to(model.device)
        record: list[Record] = []
        score = model.network_["decoder"](model.network_["encoder"](batch, record)).sum()
        inputs = [tensor for layer in record for tensor in (layer.pooled, layer.own)]
        slopes = torch.autograd.grad(score, inputs, allow_unused=True)
        self.choices: list[list[list[dict[Choice, float]]]] = []  # layer, row, slot
        self.row_of = [{int(number): row for row, number in enumerate(part)} for part in batch.classes]
        for number, (stage, layer) in enumerate(zip(batch.stages, record, strict=True)):
            pooled, own = (
                torch.zeros_like(value) if slope is None else (slope * value).abs()
                for slope, value in zip(slopes[2 * number : 2 * number + 2], (layer.pooled, layer.own), strict=True)
            )
            self.choices.append(_choices(stage, layer.winners, pooled, own, batch.classes[number]))

    def paths(self) -> Iterator[tuple[float, tuple[int, ...], tuple[int, ...]]]:
        """Yield (share, nodes, kinds) from the far end to the target, heaviest first, by best-first search."""
        top = self.choices[-1][0]
        whole = sum(sum(slot.values()) for slot in top) or 1.0
        queue = []
        for slot, parts in enumerate(top):
            share = sum(parts.values()) / whole
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
        """Yield (share, node, kind, slot) of what a node's slot after a layer comes from."""
        graph, before = self.model.graph_, self.classes[layer - 1]
        parts = self.choices[layer - 1][self.row_of[layer][int(self.classes[layer][node])]][slot]
        whole = sum(parts.values())
        edges = slice(graph.first[node], graph.last[node])
        for (number, earlier, kind), weight in parts.items():
            if weight <= 0 or whole <= 0:
                continue
            if kind == _STAY:
                yield weight / whole, node, kind, earlier
                continue
            alike = (graph.kinds[edges] == kind) & (before[graph.sources[edges]] == number)
            neighbours = graph.sources[edges][alike]
            for neighbour in neighbours.tolist():
                yield weight / whole / len(neighbours), neighbour, kind, earlier

    def describe(self, weight: float, nodes: tuple[int, ...], kinds: tuple[int, ...]) -> AttentionPath:
        """Name the nodes and links of a path."""
        hin, start = self.model.hin_, self.model.graph_.start
        names, links = [], edge_kinds(hin.schema)
        for node in nodes:
            number = int(np.searchsorted(start, node, side="right")) - 1
            node_type = hin.schema.node_types[number]
            row, own = node - int(start[number]), hin.nodes[node_type]
            names.append(AttentionNode(node_type, own.id(row), own.name(row)))
        told = tuple(arrow((links[kind],)) if self.model.edge_types else "-" for kind in kinds)
        return AttentionPath(tuple(names), told, weight, nodes[0] == self.query)


def _choices(
    stage: Stage, winners: torch.Tensor, pooled: torch.Tensor, own: torch.Tensor, before: np.ndarray
) -> list[list[dict[Choice, float]]]:
    """Add up, for each class and slot, the weight of everything its content comes from."""
    size, slots, _ = winners.shape
    nobody = len(stage.source)
    won, weights, stays = winners.cpu().numpy(), pooled.detach().cpu().numpy(), own.detach().sum(-1).cpu().numpy()
    source, kind, was = stage.source.cpu().numpy(), stage.kind.cpu().numpy(), stage.before.cpu().numpy()
    found: list[list[dict[Choice, float]]] = []
    for row in range(size):
        found.append([])
        for slot in range(slots):
            parts: dict[Choice, float] = {(int(before[was[row]]), slot, _STAY): float(stays[row, slot])}
            for candidate in np.unique(won[row, slot]):
                if candidate < nobody:
                    weight = float(weights[row, slot][won[row, slot] == candidate].sum())
                    origin, earlier = divmod(int(source[candidate]), slots)
                    key = (int(before[origin]), earlier, int(kind[candidate]))
                    parts[key] = parts.get(key, 0.0) + weight
            found[-1].append(parts)
    return found


# ---- NeuPath (Xiao, Zhao, Zheng, Song, CIKM 2021) ------------------------------------------------
_CLASSES_AT_ONCE = 20_000
_QUERIES_AT_ONCE = 64
_POOLINGS = ("tmax", "max", "mean", "sum")


@dataclass(frozen=True)
class _Labelled:
    """A batch of classes and the labels of its pairs."""

    batch: ClassBatch | None  # none where there are fewer queries than processes
    which: Tensor  # (pairs,) the class of each pair's target
    scores: Tensor  # (pairs,)
    share: float  # of the pairs of the whole batch


class NeuPath(PairModel):
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

    def updater(self, hin: HIN) -> LiveClasses:
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

    def _score_classes(self, batch: ClassBatch) -> Tensor:
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

    def attention_paths(self, query: Id, target: Id, limit: int = 10) -> list[AttentionPath]:
        """Return the path instances that weigh most in one score, heaviest first."""
        if limit < 1:
            raise QueryError(f"limit is {limit}; show at least 1 path")
        here, there = (self._first + self._fitted().find(self.node_type_, node) for node in (query, target))
        return attention_paths(self, here, there, limit)

    def used_metapaths(self, pairs: Iterable[tuple[Id, Id]]) -> list[tuple[str, float]]:
        """Return the meta-paths that the model uses over many pairs, with their share of its attention."""
        return used_metapaths(self.attention_paths(query, target, 20) for query, target in pairs)

    def _tensors(self) -> dict[str, Tensor]:
        return self.network_.state_dict()

    def _restore(self, hin: HIN, tensors: dict[str, Tensor]) -> None:
        self._set_graph(hin)
        self.network_ = self._make_network(hin)
        self.network_.load_state_dict(tensors)

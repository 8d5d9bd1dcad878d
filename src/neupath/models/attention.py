"""Attention: the path instances that a trained NeuPath looked at, followed back from a target through the winners.

A layer hands on, for each slot, what a node was before and the largest candidates. How much the score y depends on
one of these is |∂y/∂v · v|, added up over the elements it stands in. Going back from the target, layer by layer, these
shares multiply along a path, and all paths of one pair share 1 between them. A candidate is a class of nodes, which
share alike.
"""

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np
import torch

from neupath.errors import QueryError
from neupath.models.batches import Stage, build_batch
from neupath.models.encoder import Record
from neupath.models.flat_graph import edge_kinds
from neupath.nodes import Id
from neupath.parsing import arrow

if TYPE_CHECKING:
    from neupath.models.neupath import NeuPath

_STAY = -1


@dataclass(frozen=True)
class LookNode:
    """A node on a path that the model looked at."""

    node_type: str
    id: Id
    name: str | None


@dataclass(frozen=True)
class Look:
    """One path behind a score: its nodes from the far end to the target, the links between, and its share of 1."""

    nodes: tuple[LookNode, ...]
    links: tuple[str, ...]
    weight: float
    from_query: bool
    """Whether the path begins at the query; the others tell the model what the target itself is like."""

    @property
    def metapath(self) -> str:
        """The types and links along the path."""
        steps = zip(self.links, self.nodes[1:], strict=True)
        return self.nodes[0].node_type + "".join(f" {link} {node.node_type}" for link, node in steps)


def used_metapaths(looks: Iterable[list[Look]]) -> list[tuple[str, float]]:
    """Add up the weight of paths from the query by their meta-path; shares of 1, heaviest first."""
    totals: Counter[str] = Counter()
    for found in looks:
        for look in found:
            if look.from_query and look.links:
                totals[look.metapath] += look.weight  # type: ignore[assignment]
    whole = sum(totals.values())
    return [(text, weight / whole) for text, weight in totals.most_common()]


def looked_at(model: "NeuPath", query: int, target: int, limit: int) -> list[Look]:
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

    def describe(self, weight: float, nodes: tuple[int, ...], kinds: tuple[int, ...]) -> Look:
        """Name the nodes and links of a path."""
        hin, start = self.model.hin_, self.model.graph_.start
        names, links = [], edge_kinds(hin.schema)
        for node in nodes:
            number = int(np.searchsorted(start, node, side="right")) - 1
            node_type = hin.schema.node_types[number]
            row, own = node - int(start[number]), hin.nodes[node_type]
            names.append(LookNode(node_type, own.id(row), own.name(row)))
        told = tuple(arrow((links[kind],)) if self.model.edge_types else "-" for kind in kinds)
        return Look(tuple(names), told, weight, nodes[0] == self.query)


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

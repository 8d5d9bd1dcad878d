"""The attention paths of NeuPath: the path instances that a score depends on most.

After a layer, each slot of a node consists of what it was before and of the chosen candidates. The score y depends on
such a part v by |∂y/∂v · v|, summed over the elements it was chosen for. From the target back through the layers,
these shares multiply along a path; the shares of all paths of one pair add up to 1. A candidate is a class of
neighbours, which share equally.
"""

import heapq
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from neupath.evidence.groups import PathNode
from neupath.evidence.model_explanation import AttentionPath
from neupath.graph.metapath import arrow
from neupath.learn.models.class_table import Stage, build_batch
from neupath.learn.models.flat_graph import Ints, edge_kinds

if TYPE_CHECKING:
    from neupath.learn.models.neupath import LayerTrace, NeuPath

_STAY = -1
SlotPart = tuple[int, int, int]
"""Where a part of a slot comes from: a class before the layer, one of its slots, and the kind of edge (or stay)."""
SlotWeights = dict[tuple[int, int], dict[SlotPart, float]]
"""The weights of the parts of each slot (row, slot) after a layer."""


def heaviest_paths(model: "NeuPath", query_row: int, target_row: int, limit: int) -> list[AttentionPath]:
    """Return the path instances with the largest share in one score, heaviest first."""
    trace = _ScoreTrace(model, query_row, target_row)
    shares: Counter[tuple[tuple[int, ...], tuple[int, ...]]] = Counter()
    most = limit * model.paths**model.layers  # a path can occur once in each slot of each layer
    for share, nodes, kinds in islice(trace.paths(), most):
        shares[nodes, kinds] += share  # type: ignore[assignment]
    heaviest = sorted(shares.items(), key=lambda item: (-item[1], item[0]))[:limit]
    return [trace.describe(share, *path) for path, share in heaviest]


class _ScoreTrace:
    """How much each part of each layer's slots weighs in one score."""

    def __init__(self, model: "NeuPath", query_row: int, target_row: int) -> None:
        query, target = (first + row for first, row in zip(model.first_rows, (query_row, target_row), strict=True))
        self.model, self.query, self.target = model, query, target
        table = model.table_.fork()
        everywhere = [np.ones(len(model.graph_.types), dtype=np.bool_)] * (model.layers + 1)
        self.classes = table.trace(model.graph_, model.background_, query, everywhere)
        ends = [target, query] if model.network_.sees_query and query != target else [target]
        batch = build_batch(table, self.classes[-1][ends], model.paths).to(model.device)
        traces: list[LayerTrace] = []
        h, counts = model.network_.encoder(batch, traces), model.counts_of(query_row)
        score = model.network_.score_target(h, None if counts is None else counts[[target_row]])
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
            named.append(PathNode(node_type, hin.nodes[node_type].id(row), hin.nodes[node_type].name(row)))
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

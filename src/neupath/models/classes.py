"""Classes: nodes that a query-conditioned GNN cannot tell apart, so that each class is computed once.

Before any layer a node is known by its type and by whether it is the query. After layer l it is known by what it was
before, and by how many neighbours of each class it has along each kind of edge: exactly what the layer computes on. So
nodes of one class have one embedding, in any graph with the same schema and for any query. Where pooling looks at the T
largest candidates, more than T neighbours of one class are as good as T.

Only the ball of nodes within l hops of the query differs from the background, the classes of a graph without a query,
and only what lies within reach of the targets matters.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from neupath.graph import HIN
from neupath.kernels import compiled
from neupath.nodes import Mask
from neupath.schema import Link, Schema

Ints = NDArray[np.int64]


def edge_kinds(schema: Schema) -> list[Link]:
    """List the kinds of edges: each relation forward, then backward unless it has no direction."""
    forward = [Link(relation) for relation in schema.relations]
    return [way for link in forward for way in dict.fromkeys((link, link.reversed()))]


@dataclass(frozen=True)
class FlatGraph:
    """A graph with all nodes in one numbering, type after type, and the edges into each node.

    Node v is reached from `sources[indptr[v]:indptr[v+1]]` along edges of kinds `kinds[...]`. `start[t]` is the first
    node of the t-th type; one more entry ends the last.
    """

    start: Ints
    types: Ints
    indptr: Ints
    sources: Ints
    kinds: Ints

    @classmethod
    def of(cls, hin: HIN) -> "FlatGraph":
        """Number the nodes of a graph and sort its edges by the node they lead to."""
        names = hin.schema.node_types
        sizes = np.array([hin.num_nodes(name) for name in names], dtype=np.int64)
        start = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        first = dict(zip(names, start[:-1], strict=True))
        parts = [(np.zeros(0, np.int64),) * 3]
        for kind, link in enumerate(edge_kinds(hin.schema)):
            entries = hin.matrix(link).tocoo()
            parts.append(
                (entries.row + first[link.source], entries.col + first[link.target], np.full(entries.nnz, kind))
            )
        sources, targets, kinds = (np.concatenate(column).astype(np.int64) for column in zip(*parts, strict=True))
        order = np.lexsort((sources, kinds, targets))
        indptr = np.concatenate([[0], np.cumsum(np.bincount(targets, minlength=start[-1]))]).astype(np.int64)
        types = np.repeat(np.arange(len(names)), sizes).astype(np.int64)
        return cls(start, types, indptr, sources[order], kinds[order])

    def edges_of(self, nodes: Ints) -> tuple[Ints, Ints]:
        """Return the edges into some nodes: for each the position of its node among those given, and its number."""
        lengths = self.indptr[nodes + 1] - self.indptr[nodes]
        position = np.repeat(np.arange(len(nodes)), lengths)
        first = np.cumsum(lengths) - lengths
        return position, np.arange(len(position)) - first[position] + self.indptr[nodes][position]

    def with_neighbours(self, nodes: Mask) -> Mask:
        """Mark some nodes and all their neighbours; shape (nodes,)."""
        marked = nodes.copy()
        marked[self.sources[self.edges_of(np.flatnonzero(nodes))[1]]] = True
        return marked


@dataclass(frozen=True)
class Members:
    """Some classes after a layer.

    Class k was `own[k]`, and has `counts[i]` neighbours of class `classes[i]` along edges of kind `kinds[i]`, for every
    i with `to[i]` = k.
    """

    own: Ints
    to: Ints
    kinds: Ints
    classes: Ints
    counts: Ints


@dataclass
class Layer:
    """Every class met after one layer, in the order they were met."""

    numbers: dict[tuple[int, int], int] = field(default_factory=dict)
    _parts: list[Members] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.numbers)

    def add(self, new: Members) -> None:
        """Define classes that follow those known so far."""
        known = sum(len(part.own) for part in self._parts)
        self._parts.append(Members(new.own, new.to + known, new.kinds, new.classes, new.counts))

    def all(self) -> Members:
        """Return the definitions of all classes, sorted by class."""
        if len(self._parts) != 1:
            columns = zip(*((p.own, p.to, p.kinds, p.classes, p.counts) for p in self._parts), strict=True)
            self._parts = [Members(*(np.concatenate(column) for column in columns))] if self._parts else [_NOTHING]
        return self._parts[0]

    def take(self, classes: Ints) -> Members:
        """Return the definitions of some classes, numbered in the order given."""
        every = self.all()
        first = np.searchsorted(every.to, classes)
        lengths = np.searchsorted(every.to, classes, side="right") - first
        to = np.repeat(np.arange(len(classes)), lengths)
        at = np.arange(len(to)) - (np.cumsum(lengths) - lengths)[to] + first[to]
        return Members(every.own[classes], to, every.kinds[at], every.classes[at], every.counts[at])


_NOTHING = Members(*(np.zeros(0, dtype=np.int64),) * 5)


class ClassTable:
    """The classes of every layer; it grows with the graphs and queries it is shown.

    `cap` is how many neighbours of one class still make a difference; 0 means any number does.
    """

    def __init__(self, num_types: int, num_layers: int, cap: int) -> None:
        self.num_types = num_types
        self.cap = cap
        self.layers = [Layer() for _ in range(num_layers)]

    def fork(self) -> "ClassTable":
        """Return a table that knows the same classes and may learn others on its own."""
        copied = ClassTable(self.num_types, 0, self.cap)
        copied.layers = [Layer(dict(layer.numbers), [layer.all()]) for layer in self.layers]
        return copied

    def background(self, graph: FlatGraph) -> list[Ints]:
        """Return the class of every node before and after each layer in a graph without a query."""
        found = [2 * graph.types]
        for layer in self.layers:
            found.append(self._refine(graph, layer, np.arange(len(graph.types)), found[-1]))
        return found

    def reach(self, graph: FlatGraph, targets: Ints) -> list[Mask]:
        """Mark, before and after each layer, the nodes whose embeddings the targets depend on."""
        marks = [np.zeros(len(graph.types), dtype=np.bool_)]
        marks[0][targets] = True
        for _ in self.layers:
            marks.insert(0, graph.with_neighbours(marks[0]))
        return marks

    def classes_of(self, graph: FlatGraph, background: Sequence[Ints], query: int, reach: Sequence[Mask]) -> Ints:
        """Return the classes after the last layer for a query, true for the nodes that `reach` marks there."""
        return self.trace(graph, background, query, reach)[-1]

    def trace(self, graph: FlatGraph, background: Sequence[Ints], query: int, reach: Sequence[Mask]) -> list[Ints]:
        """Return the classes before and after each layer for a query, true for the nodes that `reach` marks."""
        ball = np.zeros(len(graph.types), dtype=np.bool_)
        ball[query] = True
        now = background[0].copy()
        now[query] += 1
        found = [now]
        for number, layer in enumerate(self.layers):
            ball = graph.with_neighbours(ball)
            nodes = np.flatnonzero(ball & reach[number + 1])
            after = self._refine(graph, layer, nodes, now)
            now = background[number + 1].copy()
            now[nodes] = after
            found.append(now)
        return found

    def _refine(self, graph: FlatGraph, layer: Layer, nodes: Ints, classes: Ints) -> Ints:
        """Return the classes of some nodes after a layer, given those of all nodes before it."""
        keys = _signatures(graph.indptr, graph.sources, graph.kinds, nodes, classes, self.cap)
        packed = keys.view([("a", "u8"), ("b", "u8")]).ravel()
        distinct, first, where = np.unique(packed, return_index=True, return_inverse=True)
        found = np.empty(len(distinct), dtype=np.int64)
        new = []
        for i, key in enumerate(distinct.tolist()):
            if key not in layer.numbers:
                layer.numbers[key] = len(layer.numbers)
                new.append(i)
            found[i] = layer.numbers[key]
        if new:
            layer.add(self._define(graph, nodes[first[new]], classes))
        return found[where.ravel()]

    def _define(self, graph: FlatGraph, nodes: Ints, classes: Ints) -> Members:
        """Say what the classes of some nodes are made of."""
        position, edges = graph.edges_of(nodes)
        kinds, neighbours = graph.kinds[edges], classes[graph.sources[edges]]
        order = np.lexsort((neighbours, kinds, position))
        position, kinds, neighbours = position[order], kinds[order], neighbours[order]
        changes = (np.diff(position) != 0) | (np.diff(kinds) != 0) | (np.diff(neighbours) != 0)
        begins = np.flatnonzero(np.concatenate([[True], changes])[: len(position)])
        counts = np.diff(np.append(begins, len(position)))
        return Members(
            classes[nodes],
            position[begins],
            kinds[begins],
            neighbours[begins],
            np.minimum(counts, self.cap) if self.cap else counts,
        )


@compiled
def _mixed(value):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Scatter the bits of a 64-bit number (the finaliser of splitmix64)."""
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


@compiled
def _signatures(indptr, sources, kinds, nodes, classes, cap):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Return 128 bits for each node that stand for its class and its neighbours' kinds, classes and capped counts."""
    keys = np.empty((len(nodes), 2), dtype=np.uint64)
    for n in range(len(nodes)):
        v = nodes[n]
        degree = indptr[v + 1] - indptr[v]
        codes = np.empty(degree, dtype=np.int64)
        for i in range(degree):
            edge = indptr[v] + i
            codes[i] = kinds[edge] * np.int64(1 << 40) + classes[sources[edge]]
        codes.sort()
        one = _mixed(np.uint64(classes[v]) + np.uint64(0x9E3779B97F4A7C15))
        two = _mixed(np.uint64(classes[v]) ^ np.uint64(0xD1B54A32D192ED03))
        i = 0
        while i < degree:
            j = i
            while j < degree and codes[j] == codes[i]:
                j += 1
            count = j - i if cap == 0 else min(j - i, cap)
            one += _mixed(_mixed(np.uint64(codes[i]) + np.uint64(0x2545F4914F6CDD1D)) + np.uint64(count))
            two += _mixed(_mixed(np.uint64(codes[i]) ^ np.uint64(0xA0761D6478BD642F)) ^ np.uint64(count << 32))
            i = j
        keys[n, 0], keys[n, 1] = one, two
    return keys

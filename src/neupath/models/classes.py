"""Classes: nodes that a query-conditioned GNN cannot tell apart, so that each class is computed once.

Before any layer a node is known by its type and by whether it is the query. After layer l it is known by what it was
before, and by how many neighbours of each class it has along each kind of edge: exactly what the layer computes on. So
nodes of one class have one embedding, in any graph with the same schema and for any query. Where pooling looks at the T
largest candidates, more than T neighbours of one class are as good as T.

Only the ball of nodes within l hops of the query differs from the background, the classes of a graph without a query,
and only what lies within reach of the targets matters.
"""

from collections.abc import Sequence

import numpy as np

from neupath.kernels import compiled
from neupath.models.definitions import Layer, Members
from neupath.models.flat_graph import FlatGraph, Ints
from neupath.nodes import Mask


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
        return self._with([layer.fork() for layer in self.layers])

    def as_it_is(self) -> "ClassTable":
        """Return a table that never changes, and knows what this one knows now."""
        return self._with([layer.as_it_is() for layer in self.layers])

    def _with(self, layers: list[Layer]) -> "ClassTable":
        copied = ClassTable(self.num_types, 0, self.cap)
        copied.layers = layers
        return copied

    def background(self, graph: FlatGraph) -> list[Ints]:
        """Return the class of every node before and after each layer in a graph without a query."""
        found = [2 * graph.types]
        for layer in self.layers:
            found.append(self.refine(graph, layer, np.arange(len(graph.types)), found[-1]))
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
            after = self.refine(graph, layer, nodes, now)
            now = background[number + 1].copy()
            now[nodes] = after
            found.append(now)
        return found

    def refine(self, graph: FlatGraph, layer: Layer, nodes: Ints, classes: Ints) -> Ints:
        """Return the classes of some nodes after a layer, given those of all nodes before it."""
        keys = _signatures(graph.first, graph.last, graph.sources, graph.kinds, nodes, classes, self.cap)
        packed = keys.view([("a", "u8"), ("b", "u8")]).ravel()
        found = layer.find(packed.tolist()) if len(layer) else np.full(len(packed), -1)
        missing = np.flatnonzero(found < 0)
        if len(missing):
            distinct, first, where = np.unique(packed[missing], return_index=True, return_inverse=True)
            new = layer.add(distinct.tolist(), self._define(graph, nodes[missing[first]], classes))
            found[missing] = new[where.ravel()]
        return found

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
def reached(first, last, sources, joined, changed):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """Return the nodes whose classes after a layer may be others, ascending.

    These are nodes whose edges changed, nodes whose class before the layer did, and the neighbours of the latter.
    """
    length = len(joined) + len(changed)
    for v in changed:
        length += last[v] - first[v]
    nodes = np.empty(length, dtype=np.int64)
    nodes[: len(joined)] = joined
    nodes[len(joined) : len(joined) + len(changed)] = changed
    at = len(joined) + len(changed)
    for v in changed:
        for edge in range(first[v], last[v]):
            nodes[at] = sources[edge]
            at += 1
    return np.unique(nodes)


@compiled
def _mixed(value):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Scatter the bits of a 64-bit number (the finaliser of splitmix64)."""
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


@compiled
def _signatures(first, last, sources, kinds, nodes, classes, cap):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Return 128 bits for each node that stand for its class and its neighbours' kinds, classes and capped counts."""
    keys = np.empty((len(nodes), 2), dtype=np.uint64)
    for n in range(len(nodes)):
        v = nodes[n]
        degree = last[v] - first[v]
        codes = np.empty(degree, dtype=np.int64)
        for i in range(degree):
            edge = first[v] + i
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

"""NeuPathUpdater: keeps a trained NeuPath up to date with a live graph.

NeuPath needs the background of a graph: the class of every node before and after each layer, without a query
(`class_table.py`). An edge changes the classes of its ends after the first layer, those of their neighbours after the
next, and so on. So a layer refines only nodes whose edges changed, nodes whose class before it changed, and the
neighbours of the latter. With counts capped at T, most changes end after a few nodes.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING
from weakref import ref

import numpy as np

from neupath.engine.scorer import Binding, RowChange, RowEdge, Updater
from neupath.graph.hin import HIN
from neupath.graph.metapath import Link, Relation
from neupath.learn.models.flat_graph import FlatGraph, Ints, edge_kinds

if TYPE_CHECKING:
    from neupath.learn.models.neupath import NeuPath

_SPARE_NODES = 16
"""The least number of new nodes that each type has room for."""
_MAX_GROWTH = 4
"""How many times its first length an append-only list may reach before everything is built again."""
_MAX_CHANGES = 128
"""How many changes a versioned array records before it is copied."""


# ---- The updater ---------------------------------------------------------------------------------
class NeuPathUpdater(Updater):
    """The edges, classes and background of a live graph; versions share whatever did not change."""

    def __init__(self, model: "NeuPath", hin: HIN) -> None:
        self._model = model
        self._build(hin)

    def _build(self, hin: HIN) -> None:
        self._graph = LiveFlatGraph(hin)
        self._table = self._model.new_table(hin)
        background = self._table.background(self._graph.current)
        self._background = [VersionedArray(classes) for classes in background]
        self._max_classes = _MAX_GROWTH * self._num_classes() + 4096

    def _num_classes(self) -> int:
        return sum(len(layer) for layer in self._table.layers)  # including those that no node has any more

    def apply(self, hin: HIN, change: RowChange) -> None:
        """Refine what the change reaches; rebuild everything when there is no room or too much is unused."""
        if not self._graph.has_room(hin) or self._num_classes() > self._max_classes:
            self._build(hin)
        else:
            self._refine(self._graph.put(change.edges))

    def _refine(self, edited: Ints) -> None:
        graph = self._graph.current
        changed = edited[:0]
        for layer, (before, after) in zip(self._table.layers, pairwise(self._background), strict=True):
            nodes = _reached(graph, edited, changed)
            classes = self._table.refine(graph, layer, nodes, before.current)
            differs = classes != after.current[nodes]
            changed = nodes[differs]
            after.put(changed, classes[differs])

    def snapshot(self) -> Binding:
        model, graph, table = self._model, self._graph.snapshot(), self._table.snapshot()
        background = [layer.version for layer in self._background]
        return lambda hin: model.over_background(hin, graph(), table, [layer.array for layer in background])


def _reached(graph: FlatGraph, edited: Ints, changed: Ints) -> Ints:
    """Return the edited nodes, the changed nodes and the neighbours of the latter, ascending."""
    edges = graph.edges_of(changed)[1]
    return np.unique(np.concatenate([edited, changed, graph.sources[edges]]))


# ---- The edges -----------------------------------------------------------------------------------
class LiveFlatGraph:
    """A flat graph with room for more nodes of every type.

    When the edges into a node change, its new list is appended, and readers of the old list can go on.
    """

    def __init__(self, hin: HIN) -> None:
        self._capacity = {name: len(nodes) + len(nodes) // 4 + _SPARE_NODES for name, nodes in hin.nodes.items()}
        graph = FlatGraph.of(hin, self._capacity)
        self._numbering, self._types = graph.numbering, graph.types
        self._first, self._last = VersionedArray(graph.first), VersionedArray(graph.last)
        self._sources, self._kinds = graph.sources, graph.kinds
        self._used, self._max_edges = len(graph.sources), _MAX_GROWTH * len(graph.sources) + 4096
        self._links: dict[Relation, list[tuple[int, Link, int, int]]] = defaultdict(list)
        for kind, link in enumerate(edge_kinds(hin.schema)):
            firsts = self._numbering.first(link.source), self._numbering.first(link.target)
            self._links[link.relation].append((kind, link, *firsts))

    def has_room(self, hin: HIN) -> bool:
        """Whether all nodes of a graph have a number, and not too many edges are unused."""
        fits = all(len(nodes) <= self._capacity[name] for name, nodes in hin.nodes.items())
        return fits and self._used <= self._max_edges

    @property
    def current(self) -> FlatGraph:
        """The graph as it is now; its arrays change."""
        first, last = self._first.current, self._last.current
        return FlatGraph(self._numbering, self._types, first, last, self._sources, self._kinds)

    def snapshot(self) -> Callable[[], FlatGraph]:
        """Return a function that makes the graph of this version."""
        first, last, sources, kinds = self._first.version, self._last.version, self._sources, self._kinds
        return lambda: FlatGraph(self._numbering, self._types, first.array, last.array, sources, kinds)

    def put(self, edges: Sequence[RowEdge]) -> Ints:
        """Add and remove edges; return the nodes whose edges changed, ascending."""
        exists: dict[int, dict[int, bool]] = defaultdict(dict)
        for relation, row, column, weight in edges:
            for node, code in self._codes(relation, row, column):
                exists[node][code] = weight > 0
        edited = [(node, self._edited_codes(node, exists[node])) for node in sorted(exists)]
        changed = [(node, codes) for node, codes in edited if codes is not None]
        nodes = np.array([node for node, _ in changed], dtype=np.int64)
        if len(nodes):
            lengths = np.array([len(codes) for _, codes in changed])
            first = self._used + np.cumsum(lengths) - lengths
            self._append(np.concatenate([codes for _, codes in changed]))
            self._first.put(nodes, first)
            self._last.put(nodes, first + lengths)
        return nodes

    def _codes(self, relation: Relation, row: int, column: int) -> list[tuple[int, int]]:
        """Return each node that an edge leads to, with a code of the edge's kind and source."""
        codes = []
        for kind, link, first_source, first_target in self._links[relation]:
            ends = [(column, row)] if link.reverse else [(row, column)]
            if not relation.directed and row != column:
                ends.append((column, row))
            codes += [(first_target + to, kind * len(self._types) + first_source + source) for source, to in ends]
        return codes

    def _edited_codes(self, node: int, exists: dict[int, bool]) -> Ints | None:
        """Return the codes of all edges into a node after a change, ascending; None if there is no change."""
        own = slice(self._first.current[node], self._last.current[node])
        codes = self._kinds[own] * len(self._types) + self._sources[own]
        there = [code for code, exist in exists.items() if exist]
        gone = [code for code, exist in exists.items() if not exist]
        edited: Ints = np.union1d(np.setdiff1d(codes, np.array(gone, np.int64)), np.array(there, np.int64))
        return None if np.array_equal(edited, codes) else edited

    def _append(self, codes: Ints) -> None:
        end = self._used + len(codes)
        if end > len(self._sources):  # longer copies; readers keep the old ones
            self._sources, self._kinds = (np.resize(a, 2 * end) for a in (self._sources, self._kinds))
        self._kinds[self._used : end], self._sources[self._used : end] = np.divmod(codes, len(self._types))
        self._used = end


# ---- Arrays with versions ------------------------------------------------------------------------
class VersionedArray:
    """An array of numbers, `current`, with cheap snapshots: `version` is an earlier copy and the changes since.

    >>> numbers = VersionedArray(np.array([1, 2, 3]))
    >>> before = numbers.version
    >>> numbers.put(np.array([1]), np.array([7]))
    >>> before.array, numbers.current, numbers.version.array
    (array([1, 2, 3]), array([1, 7, 3]), array([1, 7, 3]))
    """

    def __init__(self, values: Ints) -> None:
        self.current = values
        self._copy()

    def _copy(self) -> None:
        self._changes, self._entries = list[tuple[Ints, Ints]](), 0
        self.version = ArrayVersion(self.current.copy(), self._changes, 0)

    def put(self, places: Ints, values: Ints) -> None:
        if not len(places):
            return
        self.current[places] = values
        self._changes.append((places, values))
        self._entries += len(places)
        self.version.retire()
        if self._entries > len(self.current) or len(self._changes) > _MAX_CHANGES:
            self._copy()
        else:
            self.version = ArrayVersion(self.version.base, self._changes, len(self._changes))


class ArrayVersion:
    """One version: a base, and the first changes (places, values) of a list that only grows.

    The newest version keeps the array that it makes; older ones do only while someone uses it, to save memory.
    """

    def __init__(self, base: Ints, changes: list[tuple[Ints, Ints]], length: int) -> None:
        self.base = base
        self._changes, self._length = changes, length
        self._is_newest = True
        self._cached: Callable[[], Ints | None] = lambda: None

    @property
    def array(self) -> Ints:
        array = self._cached()
        if array is None:
            array = self.base
            if self._length:
                places, values = (np.concatenate(part) for part in zip(*self._changes[: self._length], strict=True))
                array = array.copy()
                array[places] = values  # of two changes at one place, the last one wins
            self._cached = (lambda: array) if self._is_newest else ref(array)
        return array

    def retire(self) -> None:
        """Stop being the newest version."""
        self._is_newest, array = False, self._cached()
        if array is not None:
            self._cached = ref(array)

"""LiveClasses: the background of a trained NeuPath over a graph that changes."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING
from weakref import ref

import numpy as np

from neupath.engine.product_kernels import compiled
from neupath.engine.scorer import Binding, RowChange, RowEdge, Updater
from neupath.graph.hin import HIN
from neupath.graph.schema import Link, Relation
from neupath.learn.models.class_table import reached
from neupath.learn.models.flat_graph import FlatGraph, Ints, edge_kinds

if TYPE_CHECKING:
    from neupath.learn.models.neupath import NeuPath


# ---- Recorded ------------------------------------------------------------------------------------
_MOST_RECORDS = 128
Record = tuple[Ints, Ints]
"""Places, and what stands there from then on."""


class ArrayVersion:
    """An array as it was: a base, and the first records of a list that only grows.

    The array itself is made when it is asked for. The newest version keeps it; others do while somebody uses it, so
    that many old versions take little memory.
    """

    def __init__(self, base: Ints, records: list[Record], length: int) -> None:
        self.base = base
        self._records, self._length = records, length
        self._newest = True
        self._made: Callable[[], Ints | None] = lambda: None

    @property
    def array(self) -> Ints:
        """The whole array."""
        found = self._made()
        if found is None:
            found = self._make()
            self._made = (lambda: found) if self._newest else ref(found)
        return found

    def _make(self) -> Ints:
        if not self._length:
            return self.base
        found = self.base.copy()
        places, values = (np.concatenate(part) for part in zip(*self._records[: self._length], strict=True))
        found[places] = values  # of two records of one place the last one stands
        return found

    def retire(self) -> None:
        """Be the newest no longer."""
        self._newest, found = False, self._made()
        if found is not None:
            self._made = ref(found)


class VersionedArray:
    """An array of numbers, and the records of its changes since a copy; a new copy is made where they outweigh it.

    >>> numbers = VersionedArray(np.array([1, 2, 3]))
    >>> before = numbers.snapshot()
    >>> numbers.put(np.array([1]), np.array([7]))
    >>> before.array, numbers.now, numbers.snapshot().array
    (array([1, 2, 3]), array([1, 7, 3]), array([1, 7, 3]))
    """

    def __init__(self, values: Ints) -> None:
        self.now = values
        self._begin()

    def _begin(self) -> None:
        self._records, self._entries = list[Record](), 0
        self._version = ArrayVersion(self.now.copy(), self._records, 0)

    def put(self, places: Ints, values: Ints) -> None:
        """Change some entries."""
        if not len(places):
            return
        self.now[places] = values
        self._records.append((places, values))
        self._entries += len(places)
        self._version.retire()
        if self._entries > len(self.now) or len(self._records) > _MOST_RECORDS:
            self._begin()
        else:
            self._version = ArrayVersion(self._version.base, self._records, len(self._records))

    def snapshot(self) -> ArrayVersion:
        """Return this version, which stays as it is."""
        return self._version


# ---- LiveFlatGraph -------------------------------------------------------------------------------
_ROOM = 16
"""The least number of new nodes that a type has room for."""
_WASTE = 4
"""How many times as long as at first the list of edges may get, where rows that changed stand again."""


class LiveFlatGraph:
    """A flat graph with room for more nodes of every type, which until then are nodes without edges.

    The edges into a node that change are written again behind all others, so that who reads the old ones may go on.
    """

    def __init__(self, hin: HIN) -> None:
        self._room = {name: len(nodes) + len(nodes) // 4 + _ROOM for name, nodes in hin.nodes.items()}
        graph = FlatGraph.of(hin, self._room)
        self._start, self._types = graph.start, graph.types
        self._first, self._last = VersionedArray(graph.first), VersionedArray(graph.last)
        self._sources, self._kinds = graph.sources, graph.kinds
        self._used, self._most = len(graph.sources), _WASTE * len(graph.sources) + 4096
        begins = dict(zip(hin.schema.node_types, graph.start.tolist(), strict=False))
        self._ways: dict[Relation, list[tuple[int, Link, int, int]]] = defaultdict(list)
        for kind, link in enumerate(edge_kinds(hin.schema)):
            self._ways[link.relation].append((kind, link, begins[link.source], begins[link.target]))

    def holds(self, hin: HIN) -> bool:
        """Whether there is room for the nodes of a graph, and not too much waste."""
        return self._used <= self._most and all(len(nodes) <= self._room[name] for name, nodes in hin.nodes.items())

    @property
    def now(self) -> FlatGraph:
        """The graph as it is; it changes."""
        return FlatGraph(self._start, self._types, self._first.now, self._last.now, self._sources, self._kinds)

    def snapshot(self) -> Callable[[], FlatGraph]:
        """Return what makes the graph of this version, whatever follows."""
        first, last, sources, kinds = self._first.snapshot(), self._last.snapshot(), self._sources, self._kinds
        return lambda: FlatGraph(self._start, self._types, first.array, last.array, sources, kinds)

    def put(self, edges: Sequence[RowEdge]) -> Ints:
        """Let edges come and go; return the nodes whose edges are others now, ascending."""
        wanted: dict[int, dict[int, bool]] = defaultdict(dict)
        for relation, row, column, weight in edges:
            for node, code in self._codes(relation, row, column):
                wanted[node][code] = weight > 0
        rows = [(node, self._changed(node, wanted[node])) for node in sorted(wanted)]
        changed = [(node, codes) for node, codes in rows if codes is not None]
        nodes = np.array([node for node, _ in changed], dtype=np.int64)
        if len(nodes):
            lengths = np.array([len(codes) for _, codes in changed])
            first = self._used + np.cumsum(lengths) - lengths
            self._append(np.concatenate([codes for _, codes in changed]))
            self._first.put(nodes, first)
            self._last.put(nodes, first + lengths)
        return nodes

    def _codes(self, relation: Relation, row: int, column: int) -> list[tuple[int, int]]:
        """Return the nodes that an edge leads to, each with a number for the kind it is there and where it is from."""
        found = []
        for kind, link, source, target in self._ways[relation]:
            ends = [(column, row)] if link.reverse else [(row, column)]
            if not relation.directed and row != column:
                ends.append((column, row))
            found += [(target + there, kind * len(self._types) + source + here) for here, there in ends]
        return found

    def _changed(self, node: int, wanted: dict[int, bool]) -> Ints | None:
        """Return the codes of all edges into a node when some come and go, ascending; nothing where that is as now."""
        own = slice(self._first.now[node], self._last.now[node])
        codes = self._kinds[own] * len(self._types) + self._sources[own]
        asked = np.array(sorted(wanted), dtype=np.int64)
        found: Ints = _edited(codes, asked, np.array([wanted[code] for code in asked.tolist()]))
        return None if np.array_equal(found, codes) else found

    def _append(self, codes: Ints) -> None:
        end = self._used + len(codes)
        if end > len(self._sources):  # longer copies; the old ones stay with their readers
            self._sources, self._kinds = (np.resize(a, 2 * end) for a in (self._sources, self._kinds))
        self._kinds[self._used : end], self._sources[self._used : end] = np.divmod(codes, len(self._types))
        self._used = end


@compiled
def _edited(codes, asked, comes):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Return some codes, ascending, with those asked for that come and without those that go."""
    found = np.empty(len(codes) + len(asked), dtype=np.int64)
    count, j = 0, 0
    for code in codes:
        while j < len(asked) and asked[j] < code:
            found[count] = asked[j]
            count += comes[j]
            j += 1
        found[count] = code
        if j < len(asked) and asked[j] == code:
            count += comes[j]
            j += 1
        else:
            count += 1
    for i in range(j, len(asked)):
        found[count] = asked[i]
        count += comes[i]
    return found[:count]


# ---- LiveClasses ---------------------------------------------------------------------------------
# An edge changes the classes of its ends after the first layer. After the next, those of their neighbours may be others,
# too, and so on: what a layer computes anew are the nodes whose edges changed, the nodes whose class did before it, and
# the neighbours of these. Where a class comes out as it was, the change has come to its end, which with counts of at most
# T is soon. Classes belong to no graph, so that the table only grows.
"""How many times as many classes as at first there may be, of which some are no node's any more."""


class LiveClasses(Updater):
    """The flat graph, the classes and the background of a model, where a version shares with others what is alike."""

    def __init__(self, model: "NeuPath", hin: HIN) -> None:
        self._model = model
        self._begin(hin)

    def _begin(self, hin: HIN) -> None:
        """Compute everything from scratch."""
        self._graph = LiveFlatGraph(hin)
        self._table = self._model.new_table(hin)
        self._background = [
            VersionedArray(found) for found in self._table.background(self._model.seen(self._graph.now))
        ]
        self._most = _WASTE * self._met() + 4096

    def _met(self) -> int:
        return sum(len(layer) for layer in self._table.layers)

    def apply(self, hin: HIN, change: RowChange) -> None:
        """Refresh what the change reaches; now and then, when too much is wasted or there is no room, everything."""
        if not self._graph.holds(hin) or self._met() > self._most:
            self._begin(hin)
        else:
            self._refresh(self._graph.put(change.edges))

    def _refresh(self, joined: Ints) -> None:
        """Find the classes of all nodes that a change reaches, given those whose edges are others now."""
        graph = self._model.seen(self._graph.now)
        changed = joined[:0]
        for layer, (before, after) in zip(self._table.layers, pairwise(self._background), strict=True):
            nodes = reached(graph.first, graph.last, graph.sources, joined, changed)
            found = self._table.refine(graph, layer, nodes, before.now)
            differs = found != after.now[nodes]
            changed = nodes[differs]
            after.put(changed, found[differs])

    def snapshot(self) -> Binding:
        """Return what makes the model over this version."""
        model, graph, table = self._model, self._graph.snapshot(), self._table.snapshot()
        background = [layer.snapshot() for layer in self._background]
        return lambda hin: model.over_classes(hin, graph(), table, [layer.array for layer in background])

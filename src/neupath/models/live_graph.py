"""LiveFlatGraph: a flat graph whose edges come and go and whose types grow, each version of which can be read."""

from collections import defaultdict
from collections.abc import Callable, Sequence

import numpy as np

from neupath.following import EdgeWeight
from neupath.graph import HIN
from neupath.kernels import compiled
from neupath.models.flat_graph import FlatGraph, Ints, edge_kinds
from neupath.models.recorded import Recorded
from neupath.schema import Link, Relation

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
        self._first, self._last = Recorded(graph.first), Recorded(graph.last)
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

    def as_it_is(self) -> Callable[[], FlatGraph]:
        """Return what makes the graph of this version, whatever follows."""
        first, last, sources, kinds = self._first.as_it_is(), self._last.as_it_is(), self._sources, self._kinds
        return lambda: FlatGraph(self._start, self._types, first.array, last.array, sources, kinds)

    def put(self, edges: Sequence[EdgeWeight]) -> Ints:
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

"""FlatGraph: a typed graph with all nodes in one numbering, as the learned models walk it."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from neupath.graph import HIN
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

    Node v is reached from `sources[first[v]:last[v]]` along edges of kinds `kinds[...]`. `start[t]` is the first node
    of the t-th type; one more entry ends the last.
    """

    start: Ints
    types: Ints
    first: Ints
    last: Ints
    sources: Ints
    kinds: Ints

    @classmethod
    def of(cls, hin: HIN, room: Mapping[str, int] | None = None) -> "FlatGraph":
        """Number the nodes of a graph and sort its edges by the node they lead to.

        Where there is `room` for more nodes of a type than there are, the numbers left over are nodes without edges.
        """
        names = hin.schema.node_types
        sizes = np.array([room[name] if room else hin.num_nodes(name) for name in names], dtype=np.int64)
        start = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        begin = dict(zip(names, start[:-1], strict=True))
        parts = [(np.zeros(0, np.int64),) * 3]
        for kind, link in enumerate(edge_kinds(hin.schema)):
            entries = hin.matrix(link).tocoo()
            parts.append(
                (entries.row + begin[link.source], entries.col + begin[link.target], np.full(entries.nnz, kind))
            )
        sources, targets, kinds = (np.concatenate(column).astype(np.int64) for column in zip(*parts, strict=True))
        order = np.lexsort((sources, kinds, targets))
        last = np.cumsum(np.bincount(targets, minlength=start[-1])).astype(np.int64)
        types = np.repeat(np.arange(len(names)), sizes).astype(np.int64)
        return cls(start, types, np.concatenate([[0], last])[:-1], last, sources[order], kinds[order])

    def edges_of(self, nodes: Ints) -> tuple[Ints, Ints]:
        """Return the edges into some nodes: for each the position of its node among those given, and its number."""
        first = self.first[nodes]
        return positions(first, self.last[nodes] - first)

    def with_neighbours(self, nodes: Mask) -> Mask:
        """Mark some nodes and all their neighbours; shape (nodes,)."""
        marked = nodes.copy()
        marked[self.sources[self.edges_of(np.flatnonzero(nodes))[1]]] = True
        return marked


def positions(first: Ints, lengths: Ints) -> tuple[Ints, Ints]:
    """List the places of some stretches: for each place the number of its stretch, and the place itself.

    >>> positions(np.array([5, 2]), np.array([2, 1]))
    (array([0, 0, 1]), array([5, 6, 2]))
    """
    which = np.repeat(np.arange(len(first)), lengths)
    return which, np.arange(len(which)) - (np.cumsum(lengths) - lengths - first)[which]

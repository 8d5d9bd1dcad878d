"""LiveClasses: the background of a trained NeuPath over a graph that changes.

An edge changes the classes of its ends after the first layer. After the next, those of their neighbours may be others,
too, and so on: what a layer computes anew are the nodes whose edges changed, the nodes whose class did before it, and
the neighbours of these. Where a class comes out as it was, the change has come to its end, which with counts of at most
T is soon. Classes belong to no graph, so that the table only grows.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from neupath.following import Binding, EdgeWeight, Follower
from neupath.graph import HIN
from neupath.models.classes import reached
from neupath.models.flat_graph import Ints
from neupath.models.live_graph import LiveFlatGraph
from neupath.models.recorded import Recorded

if TYPE_CHECKING:
    from neupath.models.neupath import NeuPath

_WASTE = 4
"""How many times as many classes as at first there may be, of which some are no node's any more."""


class LiveClasses(Follower):
    """The flat graph, the classes and the background of a model, where a version shares with others what is alike."""

    def __init__(self, model: "NeuPath", hin: HIN) -> None:
        self._model = model
        self._begin(hin)

    def _begin(self, hin: HIN) -> None:
        """Compute everything from scratch."""
        self._graph = LiveFlatGraph(hin)
        self._table = self._model.new_table(hin)
        self._background = [Recorded(found) for found in self._table.background(self._model.seen(self._graph.now))]
        self._most = _WASTE * self._met() + 4096

    def _met(self) -> int:
        return sum(len(layer) for layer in self._table.layers)

    def apply(self, hin: HIN, edges: Sequence[EdgeWeight]) -> None:
        """Refresh what the change reaches; now and then, when too much is wasted or there is no room, everything."""
        if not self._graph.holds(hin) or self._met() > self._most:
            self._begin(hin)
        else:
            self._refresh(self._graph.put(edges))

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

    def as_it_is(self) -> Binding:
        """Return what makes the model over this version."""
        model, graph, table = self._model, self._graph.as_it_is(), self._table.as_it_is()
        background = [layer.as_it_is() for layer in self._background]
        return lambda hin: model.over_classes(hin, graph(), table, [layer.array for layer in background])

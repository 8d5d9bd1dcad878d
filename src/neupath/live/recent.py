"""Recent: the last views of a store, for those who ask for an earlier version, as many as memory is worth."""

from copy import copy
from dataclasses import replace

from neupath.graph import HIN
from neupath.live.growing import Half
from neupath.live.matrices import LiveMatrices
from neupath.live.state import View
from neupath.nodes import Nodes

RECENT = 100
"""Versions of a store whose views are kept in memory."""
BYTES = 1 << 28
"""What these may hold that the newest does not: where nodes come or go, or the base is made anew, that is much."""

Parts = dict[int, int]
"""By what tells a part of a view from others for as long as the view is kept: its bytes."""


class Recent:
    """Views by version, each of which shares most of what it holds with the next."""

    def __init__(self) -> None:
        self._views: dict[int, View] = {}
        self._own: dict[int, int] = {}
        """By version: the bytes that no later view holds."""
        self._newest: Parts = {}

    def __len__(self) -> int:
        return len(self._views)

    def keep(self, view: View) -> None:
        """Keep the newest view, and let the oldest go where they are too many or too large."""
        parts = _parts(view, self._newest)
        if self._views:
            last = next(reversed(self._views))
            self._own[last] = sum(size for part, size in self._newest.items() if part not in parts)
        self._views[view.version], self._newest = untouched(view), parts
        while len(self._views) > RECENT or sum(self._own.values()) > BYTES:
            oldest = next(iter(self._views))
            self._views.pop(oldest)
            self._own.pop(oldest, None)

    def find(self, version: int) -> View | None:
        """Return the view of a version, where it is kept."""
        found = self._views.get(version)
        return None if found is None else untouched(found)


def untouched(view: View) -> View:
    """Return the same view with none of its matrices made, so that those who keep it keep little."""
    if not isinstance(view.hin.matrices, LiveMatrices):
        return view
    matrices = copy(view.hin.matrices)
    matrices._made = {}
    return replace(view, hin=HIN(view.hin.schema, view.hin.nodes, matrices, view.hin.notes))


def _parts(view: View, known: Parts) -> Parts:
    """Return the bytes of what views share or do not: nodes of a type, the base of all edges, and of each half.

    Those that are `known` of the view before, which is kept, are not counted again.
    """
    matrices = view.hin.matrices
    base = matrices.base if isinstance(matrices, LiveMatrices) else matrices
    found = {place: size for nodes in view.hin.nodes.values() for place, size in _bytes_of_nodes(nodes, known).items()}
    found[id(base)] = sum(m.data.nbytes + m.indices.nbytes + m.indptr.nbytes for m in base.values())
    return found | {id(half.rows.data): _bytes_of_half(half) for halves in view.halves.values() for half in halves}


def _bytes_of_nodes(nodes: Nodes, known: Parts) -> Parts:
    """Return the bytes of ids and names by where they lie, since one array may begin like another; and of the rest."""
    columns = [column for column in (nodes.ids, nodes.names) if column is not None]
    placed = ((column.buffers()[-1], column) for column in columns)
    found = {buffer.address: int(column.nbytes) for buffer, column in placed if buffer is not None}
    return found | {id(nodes): known[id(nodes)] if id(nodes) in known else int(nodes.attributes.nbytes)}


def _bytes_of_half(half: Half) -> int:
    return sum(array.nbytes for part in (half.rows, half.columns, half.norms) for array in part)

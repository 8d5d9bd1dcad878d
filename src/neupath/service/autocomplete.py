"""Autocomplete: the nodes of a type by what is typed, and their rows, ids and names at once, as the type grows."""

from bisect import bisect_right
from collections.abc import Sequence
from threading import Lock

from neupath.graph.name_search import NameSearch
from neupath.graph.nodes import Id, Nodes

_MOST_NEW = 1000  # new nodes, or a tenth of all, from which on everything is hashed and folded again


class NameIndex:
    """The nodes of a type that may grow, by id and name: those hashed and folded before, and those added since.

    Parameters
    ----------
    nodes : all nodes of the type.
    older : the first of them, if they are hashed and folded, or soon to be.
    """

    def __init__(self, nodes: Nodes, older: Nodes | None = None) -> None:
        self.nodes = nodes
        self._parts = [nodes] if older is None else [older, nodes.part(slice(len(older), None))]
        self._starts = [0, len(self._parts[0])][: len(self._parts)]
        self._building = Lock()

    def ids_at(self, rows: Sequence[int]) -> tuple[Id, ...]:
        return tuple([part.id_list[at] for part, at in map(self._place, rows)])

    def names_at(self, rows: Sequence[int]) -> tuple[str | None, ...]:
        return tuple([part.name_list[at] for part, at in map(self._place, rows)])

    def _place(self, row: int) -> tuple[Nodes, int]:
        number = bisect_right(self._starts, row) - 1
        return self._parts[number], row - self._starts[number]

    def find_row(self, query: Id) -> int | None:
        """Return the row of the node with this id, or else with this name as it is written; None if there is no one."""
        key, name = self.nodes.as_id(query), str(query)
        rows = [] if key is None else [part.row_of_id.get(key) for part in self._parts]
        if all(row is None for row in rows):
            rows = [part.row_of_name.get(name) for part in self._parts]
        found = [(start, row) for start, row in zip(self._starts, rows, strict=False) if row is not None]
        return sum(found[0]) if len(found) == 1 and found[0][1] >= 0 else None

    def grown(self, nodes: Nodes) -> "NameIndex":
        """Return an index of more nodes, of which these are the first; only the others are hashed and folded now."""
        older = self._parts[0]
        if nodes is self.nodes:
            return self
        return NameIndex(nodes, older if len(nodes) - len(older) <= max(_MOST_NEW, len(older) // 10) else None)

    def prepare(self) -> None:
        """Build everything, so that the first look-up is as fast as the others."""
        with self._building:
            for part in self._parts:
                part.row_of_id, part.row_of_name  # noqa: B018
                part.name_search.prepare()

    @property
    def searches(self) -> list[NameSearch]:
        """The parts in which the nodes are searched, in the order of their rows."""
        return [part.name_search for part in self._parts]

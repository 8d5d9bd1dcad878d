"""Autocomplete: the nodes of a type by what is typed, and their rows, ids and names at once, as the type grows."""

from collections.abc import Sequence
from functools import cached_property
from threading import Lock

from neupath.graph.name_search import NameSearch
from neupath.graph.nodes import Id, Nodes

_AMBIGUOUS = -1
_MOST_NEW = 1000  # new nodes, or a tenth of all, from which on everything is folded again


class NameIndex:
    """The names and ids of one node type, hashed and folded on first use."""

    def __init__(self, nodes: Nodes) -> None:
        self.nodes = nodes
        self._building = Lock()

    @cached_property
    def ids(self) -> list[Id]:
        return list(self.nodes.ids.to_pylist())

    @cached_property
    def names(self) -> list[str | None]:
        return [None] * len(self.nodes) if self.nodes.names is None else list(self.nodes.names.to_pylist())

    def ids_at(self, rows: Sequence[int]) -> tuple[Id, ...]:
        ids = self.ids
        return tuple([ids[row] for row in rows])

    def names_at(self, rows: Sequence[int]) -> tuple[str | None, ...]:
        names = self.names
        return tuple([names[row] for row in rows])

    @cached_property
    def _rows_by_id(self) -> dict[Id, int]:
        return {node_id: row for row, node_id in enumerate(self.ids)}

    @cached_property
    def _rows_by_name(self) -> dict[str, int]:
        rows: dict[str, int] = {}
        for row, name in enumerate(self.names):
            if name is not None:
                rows[name] = _AMBIGUOUS if name in rows else row
        return rows

    def find_row(self, query: Id) -> int | None:
        """Return the row of the node with this id, or else with this name as it is written; None if there is no one."""
        key = self.nodes.as_id(query)
        row = None if key is None else self._row_of_id(key)
        if row is not None:
            return row
        named = self._row_of_name(str(query))
        return None if named == _AMBIGUOUS else named

    def _row_of_id(self, key: Id) -> int | None:
        return self._rows_by_id.get(key)

    def _row_of_name(self, name: str) -> int | None:
        return self._rows_by_name.get(name)

    def grown(self, nodes: Nodes) -> "NameIndex":
        """Return an index of more nodes, of which these are the first; only the others are folded now."""
        return self if nodes is self.nodes else GrownNameIndex(self, nodes)

    def prepare(self) -> None:
        """Build everything, so that the first look-up is as fast as the others."""
        with self._building:
            self._rows_by_id, self._rows_by_name  # noqa: B018
            for search in self.searches:
                search.prepare()

    @property
    def searches(self) -> list[NameSearch]:
        """The parts in which the nodes are searched, in the order of their rows."""
        return [self.nodes.name_search]


class GrownNameIndex(NameIndex):
    """An index in two parts: the nodes folded before, and those added since."""

    def __init__(self, older: NameIndex, nodes: Nodes) -> None:
        super().__init__(nodes)
        base: NameIndex = older._older if isinstance(older, GrownNameIndex) else older
        start = len(base.nodes)
        are_many = len(nodes) - start > max(_MOST_NEW, start // 10)
        self._older: NameIndex = NameIndex(nodes) if are_many else base
        self._start = len(self._older.nodes)
        names = None if nodes.names is None else nodes.names.slice(self._start)
        self._newer = NameIndex(Nodes(nodes.node_type, nodes.ids.slice(self._start), names, distinct=True))

    def ids_at(self, rows: Sequence[int]) -> tuple[Id, ...]:
        return tuple([part.ids[at] for part, at in self._places(rows)])

    def names_at(self, rows: Sequence[int]) -> tuple[str | None, ...]:
        return tuple([part.names[at] for part, at in self._places(rows)])

    def _places(self, rows: Sequence[int]) -> list[tuple[NameIndex, int]]:
        return [(self._older, row) if row < self._start else (self._newer, row - self._start) for row in rows]

    def _row_of_id(self, key: Id) -> int | None:
        row = self._older._row_of_id(key)
        return self._shifted(self._newer._row_of_id(key)) if row is None else row

    def _row_of_name(self, name: str) -> int | None:
        older, newer = self._older._row_of_name(name), self._shifted(self._newer._row_of_name(name))
        return _AMBIGUOUS if older is not None and newer is not None else newer if older is None else older

    def _shifted(self, row: int | None) -> int | None:
        return row if row is None or row == _AMBIGUOUS else row + self._start

    @property
    def searches(self) -> list[NameSearch]:
        return [*self._older.searches, *self._newer.searches]

    def prepare(self) -> None:
        self._older.prepare()
        self._newer.prepare()

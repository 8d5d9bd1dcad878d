"""Nodes: the ids, names and attributes of one node type, and how to find nodes by them."""

import operator
import re
from collections.abc import Iterable, Sequence
from dataclasses import InitVar, dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from neupath._runtime.lazy_module import LazyModule
from neupath.errors import GraphError, NodeError, excerpt, listed
from neupath.graph.name_search import Match, NameSearch, search_names

if TYPE_CHECKING:
    from neupath.graph.conditions import Condition

Id = str | int


@runtime_checkable
class HasId(Protocol):
    """What carries the id of a node, such as a hit of a search or a match of `hin.find`."""

    @property
    def id(self) -> Id: ...


NodeRef = Id | HasId
"""How a caller names a node: by its id, an unambiguous name, or something that has the id."""
Rows = NDArray[np.int64]
Mask = NDArray[np.bool_]

_INTEGER = re.compile(r"\s*[+-]?[0-9]+\s*")
_FEW = 8
_SCANS = 32  # so many look-ups scan all nodes of a large type; then all ids and names are hashed
_FEW_NODES = 1000  # of so many nodes they are hashed at once
_MOST_LISTED = 1 << 20  # nodes up to which ids and names are also kept as Python objects, 200 bytes a node
_MANY = 1 << 20  # nodes from which on ascending integer ids are found by bisection
pc = LazyModule("pyarrow.compute")  # takes longer to import than most look-ups


def text_array(values: Sequence[str]) -> pa.Array:
    """Return texts as `pa.array` does, which imports pandas where it is installed, for longer than a search takes."""
    encoded = [value.encode() for value in values]
    offsets = np.cumsum([0, *map(len, encoded)], dtype=np.int32)
    return pa.StringArray.from_buffers(len(encoded), pa.py_buffer(offsets), pa.py_buffer(b"".join(encoded)))


@dataclass(frozen=True)
class NodeMatch:
    """A node that matches a text, and how: exactly, by its beginning, inside, or by its spelling."""

    node_type: str
    id: Id
    name: str | None
    match: Match
    degree: int
    """How many edges it has."""

    def to_dict(self) -> dict[str, object]:
        return dict(vars(self))


@dataclass(frozen=True, repr=False)
class Nodes:
    """The nodes of one type, in the order of their rows.

    Parameters
    ----------
    node_type
        The name of the type.
    ids
        Distinct strings or integers.
    names
        What people call the nodes, if they have names; several nodes may share one.
    attributes
        A table with a row per node, for conditions such as `year >= 2000`.
    distinct
        Whether the ids are known to be distinct, so that they need no check, as those of a store are.

    >>> nodes = Nodes("author", pa.array(["a1", "a2"]), names=pa.array(["Mike", "Jim"]))
    >>> nodes.find("a2"), nodes.find("Mike")
    (1, 0)
    """

    node_type: str
    ids: pa.Array
    names: pa.Array | None = None
    attributes: pa.Table = field(default_factory=lambda: pa.table({}))
    distinct: InitVar[bool] = False
    _scans: list[None] = field(default_factory=list, init=False, repr=False, compare=False)  # one per scan

    def __post_init__(self, distinct: bool) -> None:
        if not (pa.types.is_string(self.ids.type) or pa.types.is_int64(self.ids.type)):
            raise GraphError(f"ids of {self.node_type} are of type {self.ids.type}; give strings or integers")
        if self.ids.null_count:
            row = int(np.flatnonzero(self.ids.is_null().to_numpy(zero_copy_only=False))[0])
            raise GraphError(f"{self.node_type} number {row + 1} has no id; every node needs one")
        for what, column in [("names", self.names), *((n, self.attributes[n]) for n in self.attributes.column_names)]:
            if column is not None and len(column) != len(self):
                raise GraphError(f"{len(column):,} {what} are given for {len(self):,} nodes of type {self.node_type}")
        if not distinct:
            self._refuse_repeated_ids()

    def _refuse_repeated_ids(self) -> None:
        if len(self) <= _FEW_NODES and len(set(self.id_list)) == len(self):
            return
        codes = self.ids.dictionary_encode()
        if len(codes.dictionary) == len(self):
            return
        counts = np.bincount(codes.indices.to_numpy())
        repeated = codes.dictionary[int(np.argmax(counts > 1))].as_py()
        raise GraphError(f"{self.node_type} id {repeated!r} is given {counts.max()} times; node ids must be unique")

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        return f"<Nodes: {len(self):,} of type {one_line(self.node_type)}>"

    @property
    def id_type(self) -> pa.DataType:
        """The Arrow type of the ids, strings or integers."""
        return self.ids.type

    @property
    def has_names(self) -> bool:
        return self.names is not None

    def take_ids(self, rows: Rows) -> pa.Array:
        """Return the ids of some rows as an Arrow array."""
        return self.ids.take(pa.array(rows, pa.int64()))

    def take_names(self, rows: Rows) -> pa.Array:
        """Return the names of some rows, of nodes that have names, as an Arrow array."""
        return self.names.take(pa.array(rows, pa.int64()))  # type: ignore[union-attr]

    def id(self, row: int) -> Id:
        ids: list[Id] | None = self.__dict__.get("id_list")
        node_id: Id = self.ids[int(row)].as_py() if ids is None else ids[row]
        return node_id

    def name(self, row: int) -> str | None:
        return None if self.names is None else self.names[int(row)].as_py()

    def ids_at(self, rows: Sequence[int]) -> tuple[Id, ...]:
        """Return the ids of some rows."""
        ids: list[Id] | None = self.__dict__.get("id_list")
        if ids is None:
            if len(self) > _MOST_LISTED or not self._hashes_pay():
                return tuple(self.ids.take(pa.array(rows, type=pa.int64())).to_pylist())
            ids = self.id_list
        return tuple(map(ids.__getitem__, rows))

    def names_at(self, rows: Sequence[int]) -> tuple[str | None, ...]:
        """Return the names of some rows."""
        if self.names is None:
            return (None,) * len(rows)
        if len(self) <= _MOST_LISTED and self._hashes_pay():
            names = self.name_list
            return tuple([names[row] for row in rows])
        return tuple(self.names.take(pa.array(rows, type=pa.int64())).to_pylist())

    def label(self, row: int) -> str:
        """Return what to show a person: the name, or else the id."""
        return self.name(row) or str(self.id(row))

    def find(self, query: NodeRef) -> int:
        """Return the row of the node with this id, or else with this name, or else with either but for case."""
        row = self.look_up(query)
        return int(self.find_many([query])[0]) if row is None else row

    def find_many(self, queries: Sequence[NodeRef], *, exact: bool = False) -> Rows:
        """Return the row of each query, an id or an unambiguous name; case and accents matter if `exact`."""
        known = [self.look_up(query) for query in queries]
        if None not in known:
            return np.array(known, dtype=np.int64)
        asked = [self._own_id(query) for query in queries]
        self._check_texts(asked)
        keys = [self.as_id(query) for query in asked]
        if self._ascending_ids is not None:
            rows = np.array([-1 if key is None else self._find_ascending(key) for key in keys], dtype=np.int64)
        elif len(keys) <= _FEW or "row_of_id" in self.__dict__:
            rows = np.array([-1 if key is None else self._find_id(key) for key in keys], dtype=np.int64)
        else:
            places = pc.index_in(pa.array(keys, type=self.ids.type), value_set=self.ids, skip_nulls=True)
            rows = pc.fill_null(places, -1).to_numpy().astype(np.int64)
        for position in np.flatnonzero(rows < 0).tolist():
            rows[position] = self._find_by_name(str(asked[position]), exact)
        return rows

    def _check_texts(self, queries: Sequence[Id]) -> None:
        """Raise if a query has half of a surrogate pair, which no id or name can have."""
        for query in queries:
            if isinstance(query, str) and not query.isprintable() and any("\ud800" <= c <= "\udfff" for c in query):
                raise NodeError(f"{query!r} is not valid text, so no {self.node_type} can be called that")

    def _own_id(self, query: NodeRef) -> Id:
        """Return the id that a query carries, or the query itself; raise if it is a match of another type."""
        if isinstance(query, NodeMatch) and query.node_type != self.node_type:
            raise NodeError(
                f"{query.id!r} is a node of type {query.node_type}, and here one of type {self.node_type} is needed"
            )
        return id_of(query)

    def look_up(self, query: NodeRef) -> int | None:
        """Return the row of an id or unambiguous name if these are hashed already; where it is None, ask `find`."""
        rows: dict[Id, int] | None = self.__dict__.get("row_of_id")
        if rows is None or not isinstance(query, str | int | np.integer) or isinstance(query, bool):
            return None  # a boolean is no id, though it equals one
        row = rows.get(query)
        if row is None and (key := self.as_id(query)) is not None:
            row = rows.get(key)
        if row is not None or (len(self) > _MOST_LISTED and "row_of_name" not in self.__dict__):
            return row
        row = self.row_of_name.get(str(query))
        return None if row == -1 else row

    def _hashes_pay(self) -> bool:
        """Count a scan; return whether there have been so many that hashing all ids and names takes less time."""
        if len(self._scans) >= _SCANS or len(self) <= _FEW_NODES:
            return True
        self._scans.append(None)
        return False

    def _find_id(self, key: Id) -> int:
        return self.row_of_id.get(key, -1) if self._hashes_pay() else int(pc.index(self.ids, key).as_py())

    @cached_property
    def _ids_are_texts(self) -> bool:
        return bool(pa.types.is_string(self.ids.type))

    @cached_property
    def id_list(self) -> list[Id]:
        """The ids as Python objects."""
        return list(self.ids.to_pylist())

    @cached_property
    def name_list(self) -> list[str | None]:
        """The names as Python objects; None where a node has none."""
        return [None] * len(self) if self.names is None else list(self.names.to_pylist())

    @cached_property
    def _ascending_ids(self) -> Rows | None:
        """The ids of many nodes if they are ascending integers, which need no hash table of 100 bytes per node."""
        if len(self) < _MANY or not pa.types.is_int64(self.ids.type):
            return None
        ids: Rows = self.ids.to_numpy()
        return ids if (ids[1:] > ids[:-1]).all() else None

    def _find_ascending(self, key: Id) -> int:
        assert self._ascending_ids is not None
        row = int(np.searchsorted(self._ascending_ids, key))
        return row if row < len(self) and self._ascending_ids[row] == key else -1

    @cached_property
    def row_of_id(self) -> dict[Id, int]:
        """The row of each id."""
        ids = self.ids.to_pylist() if len(self) > _MOST_LISTED else self.id_list
        return {key: row for row, key in enumerate(ids)}

    @cached_property
    def row_of_name(self) -> dict[str, int]:
        """The row of each name, -1 for one that several nodes have."""
        rows: dict[str, int] = {}
        for row, name in enumerate(self.name_list if self.names is not None else ()):
            if name is not None:
                rows[name] = -1 if name in rows else row
        return rows

    def also_named(self, query: NodeRef, row: int) -> list[int]:
        """Return the other nodes whose name is the id by which a query was found."""
        if not isinstance(query, str | int) or str(self.id(row)) != str(query):
            return []
        return [other for other in self.named(str(query)) if other != row]

    def named(self, name: str) -> list[int]:
        """Return the rows of all nodes of this name, as it is written."""
        if self.names is None:
            return []
        rows: list[int] = np.flatnonzero(pc.fill_null(pc.equal(self.names, name), False)).tolist()
        return rows

    def describe(self, row: int) -> str:
        """Show a node by id and name, with its attributes to tell it from others of the same name."""
        facts = [f"{n} {self.attributes[n][int(row)].as_py()}" for n in self.attributes.column_names[:2]]
        name = self.name(row)
        label = f"{self.id(row)!r}" + (f" ({name})" if name and name != self.id(row) else "")
        return label + (f" [{', '.join(facts)}]" if facts and name else "")

    def as_id(self, query: Id | float) -> Id | None:
        """Return the query as a string or an integer, as the ids are, or None if it cannot be one."""
        if self._ids_are_texts:
            return str(query)
        if (
            isinstance(query, float | np.floating) and query.is_integer()
        ):  # as pandas gives integers of a column with gaps
            query = int(query)
        if isinstance(query, bool) or (isinstance(query, str) and not _INTEGER.fullmatch(query)):
            return None
        try:
            value = int(query) if isinstance(query, str) else operator.index(query)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            return None
        return value if abs(value) < 2**63 else None

    @cached_property
    def name_search(self) -> NameSearch:
        """Finds nodes by a text that is part of their name or id, or spelled like it."""
        return NameSearch(self.ids, self.names)

    def _find_by_name(self, query: str, exact: bool) -> int:
        row = self.look_up(query)
        if row is not None:
            return row
        rows, called = self.named(query), "named"
        if not rows and not exact:
            rows, called = self.name_search.equal(query).tolist(), "called, but for case and accents,"
        if len(rows) == 1:
            return rows[0]
        if len(rows) > 1:
            candidates = listed((self.describe(row) for row in rows), limit=6)
            raise NodeError(
                f"{len(rows)} nodes of type {self.node_type} are {called} {query!r}; give an id: {candidates}"
            )
        what = "id" if self.names is None else "id or name"
        close = search_names([self.name_search], query).best(3) if query.strip() and not exact else []
        hint = listed(self.describe(row) for row, _ in close)
        some = ", ".join(repr(self.id(row)) for row in range(min(3, len(self))))
        look = f"the ids look like {some}" if some else "the graph has no nodes of this type"
        advice = f"did you mean {hint}?" if hint else look
        error = NodeError(f"no {self.node_type} with the {what} {excerpt(query, 0)!r} among {len(self):,}; {advice}")
        error.query = query
        raise error

    def among(self, ids: Sequence[NodeRef]) -> Mask:
        """Mark the nodes with the given ids or names; shape (number of nodes,)."""
        mask = np.zeros(len(self), dtype=np.bool_)
        is_one = isinstance(ids, str) or not isinstance(ids, Iterable)
        mask[self.find_many([ids] if is_one else list(ids))] = True  # type: ignore[list-item]
        return mask

    def part(self, rows: slice) -> "Nodes":
        """Return some of the nodes, with their ids and names alone."""
        names = None if self.names is None else self.names[rows]
        return Nodes(self.node_type, self.ids[rows], names, distinct=True)

    def may_mean(self, query: Id, rows: slice) -> bool:
        """Whether a query is the id or the name of any of some nodes, case and accents aside."""
        some = self.part(rows)
        is_one = some.as_id(query) in some.id_list or str(query) in some.name_list
        return is_one or len(some.name_search.equal(str(query))) > 0

    # -- What conditions are about
    @property
    def title(self) -> str:
        """What errors call these nodes."""
        return self.node_type

    def column_names(self) -> list[str]:
        """Return what conditions can be about: the attributes, the name and the id."""
        own = self.attributes.column_names
        return [*own, *(n for n in (["id"] if self.names is None else ["name", "id"]) if n not in own)]

    def column(self, name: str) -> pa.Array | pa.ChunkedArray:
        """Return the values of an attribute, the names or the ids; shape (number of nodes,)."""
        if name in ("id", "name") and not (name == "name" and self.names is None):
            return self.ids if name == "id" else self.names
        return self.attributes[name]

    def where(self, condition: "str | Condition") -> Mask:
        """Mark the nodes that meet a condition such as `year >= 2000 and country ~ korea`; shape (number of nodes,).

        A node that lacks the attribute meets no comparison, nor its negation. `graph.conditions` has the grammar.
        """
        from neupath.graph.conditions import parse_condition  # takes a while to import

        parsed = parse_condition(condition, self.column_names()) if isinstance(condition, str) else condition
        return parsed.mask(self)


def id_of(node: NodeRef) -> Id:
    """Return the id of a hit or a match, and an id as it is.

    >>> id_of(NodeMatch("movie", "m1", "Heat", "exact", 3)), id_of("m1")
    ('m1', 'm1')
    """
    return node.id if not isinstance(node, str | int) and isinstance(node, HasId) else node


def in_lines(*lines: str) -> str:
    """Return lines below each other that a terminal shows as they are, as the `repr` of a result."""
    return "\n".join(one_line(line, len(line)) for line in lines)


def one_line(text: object, most: int = 80) -> str:
    r"""Return a text in one line that a terminal or a page shows as it is, shortened.

    >>> one_line("a\nb" + 99 * "c", 5)
    'a bc…'
    """
    plain = "".join(character if character.isprintable() else " " for character in str(text))
    return plain if len(plain) <= most else f"{plain[: most - 1]}…"

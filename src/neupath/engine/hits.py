"""Hits: the ranked targets of one query, with ids, names and scores."""

import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from json.encoder import encode_basestring as quoted
from typing import TYPE_CHECKING, NamedTuple, Protocol, overload

from neupath.errors import QueryError
from neupath.graph.nodes import Id

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Hit:
    """One result of a search."""

    rank: int
    id: Id
    name: str | None
    score: float


class Labels(Protocol):
    """What knows the ids and names of rows, as `Nodes` does."""

    def ids_at(self, rows: Sequence[int]) -> tuple[Id, ...]: ...
    def names_at(self, rows: Sequence[int]) -> tuple[str | None, ...]: ...


class Search(NamedTuple):
    """What the hits of a search say of it, and what tells the ids, names and number of its targets when asked."""

    metapath: str | None
    measure: str
    exact: bool
    targets: Labels
    target_type: str
    eligible: int
    """The number of targets that could be hits."""
    k: int
    zeros: bool = False
    others: str = "have score 0"
    """What to say of targets that are no hits."""

    def describe_shortfall(self, count: int) -> str | None:
        """Say why the search returned only `count` hits; None where it returned k."""
        if count >= self.k:
            return None
        if self.eligible < self.k and (self.zeros or count == self.eligible):
            if not self.eligible:
                return f"no {self.target_type} node is left to rank"
            return (
                f"k = {self.k:,} is more than the {self.eligible:,} {self.target_type} nodes there are to rank; "
                f"all are listed"
            )
        related = "related" if self.metapath is None else "related by this path"
        return f"{count:,} of {self.eligible:,} {self.target_type} nodes are {related}; the others {self.others}"


@dataclass(frozen=True)
class Hits(Sequence[Hit]):
    """The most similar targets of one query, best first, ties in node order.

    Hits of a search look up their ids and names when these are first read, so that a search costs little more than
    its additions.

    >>> from neupath import PathSim, load
    >>> hits = PathSim("APVPA").fit(load("toy")).top_k("Mike", k=2)
    >>> hits[0].id, hits.scores
    ('Bob', (1.0, 0.8))
    """

    query: Id
    metapath: str | None
    measure: str
    exact: bool
    ids: tuple[Id, ...]
    names: tuple[str | None, ...]
    scores: tuple[float, ...]
    shortfall: str | None = field(default_factory=lambda: None)
    """Why there are fewer than k hits, as a sentence."""

    @classmethod
    def of_rows(cls, query: Id, search: Search, rows: list[int], scores: list[float]) -> "Hits":
        """Return the hits of a search by their rows; `_LookedUp` gets their ids and names when they are read."""
        hits = object.__new__(cls)
        own = hits.__dict__
        own["query"], own["scores"], own["_rows"], own["_search"] = query, tuple(scores), rows, search
        return hits

    def __reduce__(self) -> tuple[object, ...]:
        return Hits, tuple(getattr(self, part.name) for part in fields(self))

    @overload
    def __getitem__(self, index: int) -> Hit: ...
    @overload
    def __getitem__(self, index: slice) -> list[Hit]: ...
    def __getitem__(self, index: int | slice) -> Hit | list[Hit]:
        return list(self)[index]

    def __iter__(self) -> Iterator[Hit]:
        ranked = enumerate(zip(self.ids, self.names, self.scores, strict=True), 1)
        return (Hit(rank, node_id, name, score) for rank, (node_id, name, score) in ranked)

    def __len__(self) -> int:
        return len(self.scores)

    def to_dict(self) -> dict[str, object]:
        """Return what `search --json` prints."""
        return {
            "query": self.query,
            "metapath": self.metapath,
            "measure": self.measure,
            "exact": self.exact,
            "hits": [vars(hit) for hit in self],
        }

    def to_json(self) -> str:
        """Return `to_dict` as one line of JSON, faster than the standard encoder."""
        hits = ", ".join(
            f'{{"rank": {rank}, "id": {_json_of(node_id)}, "name": {_json_of(name)}, "score": {score!r}}}'
            for rank, (node_id, name, score) in enumerate(zip(self.ids, self.names, self.scores, strict=True), 1)
        )
        return (
            f'{{"query": {_json_of(self.query)}, "metapath": {_json_of(self.metapath)}, "measure": "{self.measure}", '
            f'"exact": {"true" if self.exact else "false"}, "hits": [{hits}]}}'
        )

    def to_arrow(self) -> "pa.Table":
        """Return a table with the columns rank, id, name, score."""
        import pyarrow as pa

        columns = pa.array(self.ids), pa.array(self.names, pa.string()), pa.array(self.scores, pa.float64())
        ranks = pa.array(range(1, len(self) + 1), pa.int64())
        return pa.table([ranks, *columns], names=["rank", "id", "name", "score"])


class _LookedUp:
    """A field that `Hits.of_rows` leaves out. Python asks the class only for what an object does not have itself."""

    def __init__(self, look_up: Callable[[Search, list[int]], object]) -> None:
        self.look_up = look_up

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, hits: Hits | None, owner: type) -> object:
        if hits is None:
            raise AttributeError(f"{self.name} is a field of the objects of {owner.__name__}")
        own = hits.__dict__
        value = own[self.name] = self.look_up(own["_search"], own["_rows"])
        return value


for _name, _look_up in {
    "ids": lambda search, rows: search.targets.ids_at(rows),
    "names": lambda search, rows: search.targets.names_at(rows),
    "shortfall": lambda search, rows: search.describe_shortfall(len(rows)),
    "metapath": lambda search, _: search.metapath,
    "measure": lambda search, _: search.measure,
    "exact": lambda search, _: search.exact,
}.items():
    _field = _LookedUp(_look_up)
    _field.__set_name__(Hits, _name)
    setattr(Hits, _name, _field)  # after `dataclass`, which would take it for a default


def _json_of(label: Id | None) -> str:
    if isinstance(label, str):
        text: str = quoted(label)
        return text
    return "null" if label is None else str(label)


def check_k(k: int) -> int:
    """Return k as an int; raise if it is not a whole number of at least 1."""
    try:
        count = operator.index(k)
    except TypeError as error:
        raise QueryError(f"‹k› is {k!r}; give a whole number of hits, 1 or more", parameter="k") from error
    if isinstance(k, bool) or count < 1:
        raise QueryError(f"‹k› is {k}; ask for at least 1 hit", parameter="k")
    return count

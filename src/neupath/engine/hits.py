"""Hits: the ranked targets of one query, with ids, names and scores."""

import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from html import escape
from importlib import import_module
from itertools import islice
from json.encoder import encode_basestring as quoted
from math import fsum
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self, overload

from neupath.errors import MissingExtraError, QueryError
from neupath.graph.nodes import Id, NodeRef, id_of, in_lines, one_line

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd
    import polars as pl
    import pyarrow as pa
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Hit:
    """One result of a search."""

    rank: int
    id: Id
    name: str | None
    score: float

    @property
    def label(self) -> str:
        """What to show a person: the name, or else the id."""
        return self.name or str(self.id)

    @property
    def full_label(self) -> str:
        """The name with the id, which tells nodes of one name apart; the id alone where it is the name."""
        return f"{self.name} ({self.id})" if self.name and self.name != str(self.id) else str(self.id)


def score_text(score: float) -> str:
    """Write a score with four decimals, or with two digits where these would all be 0.

    >>> score_text(0.08264), score_text(0.0000014), score_text(-0.0)
    ('0.0826', '1.4e-6', '0.0000')
    """
    is_small = 0 < abs(score) < 0.00005
    return re.sub(r"e-0*", "e-", f"{score:.1e}") if is_small else f"{score + 0.0:.4f}"  # + 0.0: zero has no sign


# ---- Several nodes as one query ------------------------------------------------------------------
_SMALLEST_WEIGHT, _LARGEST_WEIGHT = 1e-9, 1e9


@dataclass(frozen=True)
class QuerySet:
    """Several nodes that are searched for together, each with a weight, which may be negative.

    >>> QuerySet.read(["a", "b"]).weights, QuerySet.read({"a": 2, "b": -1}).weights
    ((0.5, 0.5), (2.0, -1.0))
    """

    ids: tuple[Id, ...]
    weights: tuple[float, ...]

    @classmethod
    def read(cls, query: Mapping[Any, float] | Iterable[Any] | NodeRef) -> Self:
        """Return the set that a search asks for: nodes with weights or, all alike, nodes that share a weight of 1."""
        if isinstance(query, Mapping):
            return cls(
                tuple(map(id_of, query)), tuple(_checked_weight(node, weight) for node, weight in query.items())
            ).checked()
        ids = tuple(map(id_of, [query] if isinstance(query, str) or not isinstance(query, Iterable) else query))
        return cls(ids, (1.0 / max(1, len(ids)),) * len(ids)).checked()

    def checked(self) -> Self:
        """Return the set; raise if it has no member, one twice, or none that counts for it."""
        if not self.ids:
            raise QueryError("‹query› is an empty set; name at least one node", parameter="query")
        twice = {node for node in self.ids if self.ids.count(node) > 1} if len(set(self.ids)) < len(self.ids) else ()
        for node in twice:
            raise QueryError(f"‹query› names {node!r} twice; name it once, with its whole weight", parameter="query")
        if max(self.weights) < 0:
            raise QueryError(
                "all weights of ‹query› are below 0, so that nothing can score above 0; give a node a weight above 0",
                parameter="query",
            )
        return self

    def as_dict(self) -> dict[Id, float]:
        """Return the members with their weights, as `Scorer.top_k` takes them."""
        return dict(zip(self.ids, self.weights, strict=True))

    def to_dicts(self) -> list[dict[str, object]]:
        """Return what JSON says of the set."""
        return [{"id": node, "weight": weight} for node, weight in zip(self.ids, self.weights, strict=True)]

    @property
    def label(self) -> str:
        """The members in words.

        >>> QuerySet(("a", "b", "c"), (1.0, 0.5, -1.0)).label
        'a + 0.5·b - c'
        """
        even = fsum(map(abs, self.weights)) / len(self.weights) if len({*map(abs, self.weights)}) == 1 else 1.0
        text = ""
        for node, weight in zip(self.ids, self.weights, strict=True):
            size = abs(weight) / even
            sign = (" - " if weight < 0 else " + ") if text else "-" if weight < 0 else ""
            text += f"{sign}{'' if size == 1 else f'{size:g}·'}{node}"
        return text


def _checked_weight(node: Id, weight: float) -> float:
    try:
        value = float(weight)
    except (TypeError, ValueError):
        value = float("nan")
    if isinstance(weight, bool | str) or not _SMALLEST_WEIGHT <= abs(value) <= _LARGEST_WEIGHT:
        raise QueryError(
            f"the weight of {node!r} is {weight!r}; give a number between 1e-9 and 1e9, with a minus to count against",
            parameter="query",
        )
    return value


# ---- Hits ----------------------------------------------------------------------------------------
class Labels(Protocol):
    """What knows the ids and names of rows, as `Nodes` does."""

    def ids_at(self, rows: Sequence[int]) -> tuple[Id, ...]: ...
    def names_at(self, rows: Sequence[int]) -> tuple[str | None, ...]: ...


class Search(NamedTuple):
    """Metadata of a search, and lazy access to its targets."""

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
    excluded: int = 0
    """The number of targets that are left out because a path of `unless` relates them to the query."""
    unless: str = ""
    signed: bool = False
    """Whether scores may be below 0."""

    def describe_shortfall(self, count: int) -> str | None:
        """Say why the search returned only `count` hits; None where it returned k."""
        if count >= self.k:
            return None
        others = f", and {self.excluded:,} are left out, related by {self.unless}" if self.excluded else ""
        if self.signed and self.zeros and count < self.eligible:
            nodes = f"{count:,} of {self.eligible:,} {self.target_type} nodes"
            return f"{nodes} score 0 or more; the others score less{others}"
        if self.eligible < self.k and (self.zeros or count == self.eligible):
            if not self.eligible:
                return f"no {self.target_type} node is left to rank{others}"
            nodes = f"is only 1 {self.target_type} node"
            if self.eligible > 1:
                nodes = f"are only {self.eligible:,} {self.target_type} nodes"
            return f"k is {self.k:,}, but there {nodes} to rank{others}"
        related = "related" if self.metapath is None else "related by this path"
        below = "have score 0 or less" if self.signed else self.others
        return f"{count:,} of {self.eligible:,} {self.target_type} nodes are {related}; the others {below}{others}"


@dataclass(frozen=True, repr=False)
class Hits(Sequence[Hit]):
    """The most similar targets of one query, best first, ties in node order.

    Hits of a search look up their ids and names when these are first read, so that a search costs little more than
    its additions.

    >>> from neupath import PathSim, load
    >>> hits = PathSim("APVPA").fit(load("toy")).top_k("Mike", k=2)
    >>> hits[0].id, hits.scores
    ('Bob', (1.0, 0.8))
    """

    query: Id | QuerySet
    metapath: str | None
    measure: str
    exact: bool
    ids: tuple[Id, ...]
    names: tuple[str | None, ...]
    scores: tuple[float, ...]
    shortfall: str | None = field(default_factory=lambda: None)
    """Why there are fewer than k hits, as a sentence."""

    @property
    def query_id(self) -> Id:
        """The id of the query; a set has none."""
        if isinstance(self.query, QuerySet):
            raise QueryError("these are the hits of a set of nodes; this takes the hits of one node")
        return self.query

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

    def __contains__(self, node: object) -> bool:
        """Whether a hit has this id or name; another hit, or a match, stands for its id."""
        text = str(id_of(node))  # type: ignore[arg-type]
        return text in map(str, self.ids) or text in self.names

    def to_dict(self) -> dict[str, object]:
        """Return what `search --json` prints."""
        return {
            "query": self.query.to_dicts() if isinstance(self.query, QuerySet) else self.query,
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
            f'{{"query": {_json_of_query(self.query)}, "metapath": {_json_of(self.metapath)}, '
            f'"measure": "{self.measure}", "exact": {"true" if self.exact else "false"}, "hits": [{hits}]}}'
        )

    def to_arrow(self) -> "pa.Table":
        """Return a table with the columns rank, id, name, score."""
        import pyarrow as pa

        columns = pa.array(self.ids), pa.array(self.names, pa.string()), pa.array(self.scores, pa.float64())
        ranks = pa.array(range(1, len(self) + 1), pa.int64())
        return pa.table([ranks, *columns], names=["rank", "id", "name", "score"])

    def to_pandas(self) -> "pd.DataFrame":
        """Return a pandas data frame with the columns rank, id, name, score."""
        _needs("pandas")
        return self.to_arrow().to_pandas()

    def to_polars(self) -> "pl.DataFrame":
        """Return a Polars data frame with the columns rank, id, name, score."""
        return _needs("polars").from_arrow(self.to_arrow())  # type: ignore[no-any-return]

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Hand the table to any library that reads the Arrow interface, such as Polars, DuckDB or pandas."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def plot(self, path: "str | Path | None" = None) -> "Figure":
        """Draw the scores as bars; write them to a file where a path is given, and return the Matplotlib figure.

        Parameters
        ----------
        path
            A file to write, ending in .svg, .png or .pdf.
        """
        figure = _needs("matplotlib.figure", "neupath[plot]").Figure(
            figsize=(6, 0.8 + 0.3 * len(self)), layout="constrained"
        )
        axes = figure.add_subplot()
        axes.barh([f"{hit.rank}  {one_line(hit.label)}" for hit in self], self.scores)
        axes.invert_yaxis()
        axes.set_xlabel(self.measure)
        axes.set_title(one_line(self.title), fontsize="medium")
        for text in (axes.title, *axes.get_yticklabels()):
            text.set_parse_math(False)  # a dollar sign in a name is no formula
        if path is not None:
            figure.savefig(path)
        return figure  # type: ignore[no-any-return]

    @property
    def title(self) -> str:
        """The query, the meta-path and the measure in words."""
        query = self.query.label if isinstance(self.query, QuerySet) else self.query
        return f"most similar to {query} by {', '.join(filter(None, (self.metapath, self.measure)))}"

    def __repr__(self) -> str:
        lines = [f"{hit.rank:>4}  {hit.score:.4f}  {one_line(hit.full_label)}" for hit in islice(self, _MOST_SHOWN)]
        more = [f"      and {len(self) - _MOST_SHOWN:,} more"] if len(self) > _MOST_SHOWN else []
        return in_lines(f"Hits: {one_line(self.title)}", *(lines or ["      none"]), *more)

    def _repr_html_(self) -> str:
        best = max((abs(score) for score in self.scores), default=0.0) or 1.0
        cells = "".join(
            f"<tr><td>{hit.rank}</td><td style='text-align:left'><bdi>{escape(one_line(hit.full_label))}</bdi></td>"
            f"<td>{hit.score:.4f}</td><td style='width:8em'><div style='background:#3b6fb6;height:.7em;"
            f"width:{100 * abs(hit.score) / best:.0f}%'></div></td></tr>"
            for hit in islice(self, _MOST_SHOWN)
        )
        more = f"<p>and {len(self) - _MOST_SHOWN:,} more</p>" if len(self) > _MOST_SHOWN else ""
        return f"<table><caption>{escape(one_line(self.title))}</caption>{cells}</table>{more}"


def hits_of_rows(query: Id | QuerySet, search: Search, rows: list[int], scores: list[float]) -> Hits:
    """Return the hits of a search by their rows; `_LookedUp` gets their ids and names when they are read."""
    hits = object.__new__(Hits)
    own = hits.__dict__
    own["query"], own["scores"], own["_rows"], own["_search"] = query, tuple(scores), rows, search
    return hits


_MOST_SHOWN = 20  # hits that a repr lists


def _needs(module: str, requirement: str = "") -> Any:
    """Import an optional package."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        package = module.partition(".")[0]
        raise MissingExtraError(package, requirement or package) from error


class _LookedUp:
    """A field that `hits_of_rows` leaves out. Python asks the class only for what an object does not have itself."""

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


def _json_of_query(query: Id | QuerySet) -> str:
    if not isinstance(query, QuerySet):
        return _json_of(query)
    members = zip(query.ids, query.weights, strict=True)
    texts = [f'{{"id": {_json_of(node)}, "weight": {weight!r}}}' for node, weight in members]
    return f"[{', '.join(texts)}]"


def _json_of(label: Id | None) -> str:
    if isinstance(label, str):
        text: str = quoted(label)
        return text
    return "null" if label is None else str(label)


def check_whole(parameter: str, value: int, least: int, most: int | None = None) -> int:
    """Return the value of a parameter as an int; raise if it is not a whole number in a range.

    >>> check_whole("limit", 3, 0)
    3
    """
    try:
        number = operator.index(value)
    except TypeError:
        number = least - 1
    if isinstance(value, bool) or number < least or (most is not None and number > most):
        expected = f"of at least {least}" if most is None else f"from {least} to {most}"
        raise QueryError(f"‹{parameter}› is {value!r}; give a whole number {expected}", parameter=parameter)
    return number

"""Refinement: weights of edges and a time window for a search, put into its meta-path as conditions and weights."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, TypedDict

from neupath._runtime.lazy_module import LazyModule
from neupath.errors import QueryError, did_you_mean, listed
from neupath.graph.conditions import (
    Attribute,
    Comparison,
    Condition,
    Decay,
    Expression,
    Filter,
    Value,
    Values,
    all_of,
    narrowed,
    parse_expression,
    plain_values,
)
from neupath.graph.metapath import Link, MetaPath

if TYPE_CHECKING:
    from neupath.graph.hin import HIN

pc = LazyModule("pyarrow.compute")
Weights = Mapping[str, str | Expression]


class RefinementOptions(TypedDict, total=False):
    """The parameters of `Refinement`."""

    weights: Weights
    time: str | None
    since: Value | None
    until: Value | None
    now: Value | None
    half_life: str | float | None


@dataclass(frozen=True)
class Refinement:
    """Which edges of a meta-path count, and how much, besides what its text says.

    The time of an edge or a node is an attribute that holds dates, times or numbers such as years. It is looked for on
    the relations of the path and on the nodes between its two ends; who lacks it is left out. This is the time at which
    something happened; the versions of a store are another clock (`load(…, as_of=…)`).

    Parameters
    ----------
    weights
        The weight of the edges of a relation, by its name: an expression such as `log1p(count)` or `rating - 2.5`.
    time
        The attribute that holds times; `paper.year` or `rates.date` where several types or relations have it.
    since, until
        The first and the last time that counts.
    now
        The present: what is later is left out, and ages are counted from here. By default the newest time.
    half_life
        The age at which an edge or a node counts half: 2^(-age / half_life). A number with a unit for dates and times,
        such as "365d" (us, ms, s, min, h, d, w, y), and a number for numbers.

    >>> from neupath import load
    >>> hin = load("toy")
    >>> print(Refinement({"writes": "weight + 1"}).apply(hin, hin.metapath("author-paper")))
    author -writes[weight: weight + 1]-> paper
    """

    weights: Weights = field(default_factory=dict)
    time: str | None = None
    since: Value | None = None
    until: Value | None = None
    now: Value | None = None
    half_life: str | float | None = None

    def __post_init__(self) -> None:
        window = [name for name in ("since", "until", "now", "half_life") if getattr(self, name) is not None]
        if window and self.time is None:
            raise QueryError(f"‹{window[0]}› needs ‹time›, the attribute that holds the times", parameter="time")
        if not isinstance(self.weights, Mapping) or not all(
            isinstance(weight, str | Expression) for weight in self.weights.values()
        ):
            raise QueryError(
                f"‹weights› is {self.weights!r}; give expressions by the name of a relation, such as "
                f"{{'rates': 'rating - 2.5'}}",
                parameter="weights",
            )
        if self.time is not None and not window:
            raise QueryError("‹time› needs ‹since›, ‹until›, ‹now› or ‹half_life›", parameter="time")

    def __bool__(self) -> bool:
        return bool(self.weights) or self.time is not None

    def apply(self, hin: "HIN", metapath: MetaPath) -> MetaPath:
        """Return a meta-path with the conditions and weights that this means."""
        for relation, text in self.weights.items():
            expression = parse_expression(text) if isinstance(text, str) else text
            if any(link.edge_filter and link.edge_filter.weight for link in _links(metapath, {relation})):
                raise QueryError(f"'{metapath}' has a weight of {relation} in its text already; leave one of them out")
            metapath = metapath.where_edges(relation, Filter(weight=expression))
        return metapath if self.time is None else self._with_times(hin, metapath, *_places(hin, metapath, self.time))

    def _with_times(self, hin: "HIN", path: MetaPath, attribute: str, positions: set[int], names: set[str]) -> MetaPath:
        for place in sorted(positions):
            Values(hin.nodes[path.node_types[place]], attribute).check_times()
        for link in _links(path, names):
            Values(hin.edge_records(link.relation), attribute).check_times()
        conditions = self._conditions(attribute)
        decay = None if self.half_life is None else self._decay(hin, path, attribute, positions, names)
        extra = Filter(conditions, decay)

        def narrow(link: Link) -> Link:
            if link.relation.name not in names:
                return link
            own = link.edge_filter or Filter()
            own = own if decay is None or own.weight else replace(own, weight=Attribute("weight"))
            return replace(link, edge_filter=narrowed(own, extra))

        filters = (narrowed(own, extra) if place in positions else own for place, own in enumerate(path.filters))
        path = path.with_links(narrow) if names else path
        return path.with_filters(filters) if positions else path

    def _conditions(self, attribute: str) -> Condition | None:
        bounds = [(">=", self.since), ("<=", self.until), ("<=", self.now)]
        return all_of([Comparison(attribute, sign, bound) for sign, bound in bounds if bound is not None])

    def _decay(self, hin: "HIN", path: MetaPath, attribute: str, positions: set[int], names: set[str]) -> Decay:
        newest = self.now
        if newest is None:
            columns = [hin.nodes[path.node_types[place]].column(attribute) for place in positions]
            columns += [hin.edge_records(link.relation).column(attribute) for link in _links(path, names)]
            owner = min(names) if names else path.node_types[min(positions)]
            newest = _newest(f"{owner}.{attribute}", [plain_values(column) for column in columns])
            if newest is None:
                raise QueryError(
                    f"no {owner}.{attribute} has a value, so there is no newest time to count ‹half_life› from; give "
                    f"‹now›, or another ‹time›",
                    parameter="half_life",
                )
        reference = str(Comparison(attribute, "=", newest).value)
        return Decay(attribute, reference, str(self.half_life).removesuffix(".0"))


def _newest(time: str, columns: Sequence[Any]) -> Any:
    """Return the newest of the times that several node types or relations have; None if they have none."""
    newest = [pc.max(column).as_py() for column in columns]
    try:
        return max((each for each in newest if each is not None and each == each), default=None)  # noqa: PLR0124  NaN
    except TypeError as error:
        kinds = listed(dict.fromkeys(str(column.type) for column in columns))
        raise QueryError(
            f"‹time› stands for attributes of different types on this meta-path ({kinds}), which have no newest time; "
            f"name one of them, such as {time!r}, or give ‹now›",
            parameter="time",
        ) from error


def refinement_of(**options: Any) -> Refinement:
    """Return the refinement that some options describe, where None means that one is not given.

    >>> refinement_of(time="year", since=2020, until=None).since
    2020
    """
    unknown = options.keys() - {each.name for each in fields(Refinement)}
    if unknown:
        raise QueryError(
            f"a meta-path has no option {min(unknown)!r} (there are {listed(f.name for f in fields(Refinement))})"
        )
    return Refinement(**{name: value for name, value in options.items() if value is not None})


def parse_weights(texts: Sequence[str]) -> dict[str, str]:
    """Read weights as a command has them: `rates=rating - 2.5`.

    >>> parse_weights(["rates=rating - 2.5"])
    {'rates': 'rating - 2.5'}
    """
    weights: dict[str, str] = {}
    for text in texts:
        relation, equals, expression = text.partition("=")
        if not equals or not relation.strip() or not expression.strip():
            raise QueryError(
                f"‹weight› is {text[:100]!r}; write the name of a relation, =, and its weight, such as "
                f"'rates=rating - 2.5'",
                parameter="weight",
            )
        if weights.setdefault(relation.strip(), expression.strip()) != expression.strip():
            raise QueryError(f"‹weight› is given twice for {relation.strip()!r}; give it once", parameter="weight")
    return weights


def _links(path: MetaPath, names: set[str]) -> Iterator[Link]:
    return (link for link in path.links if link.relation.name in names)


def _places(hin: "HIN", path: MetaPath, time: str) -> tuple[str, set[int], set[str]]:
    """Return the attribute that holds times, the positions whose nodes have it, and the relations whose edges do."""
    owner, dot, attribute = time.rpartition(".")
    owners = {*path.node_types, *(link.relation.name for link in path.links)}
    if not dot or owner not in owners:
        owner, attribute = "", time
    nodes = {t: hin.nodes[t].attributes.column_names for t in path.node_types if owner in ("", t)}
    edges: dict[str, list[str]] = {}
    for link in (link for link in path.links if owner in ("", link.relation.name)):
        columns = hin.edge_kinds(link.relation)
        edges[link.relation.name] = list(dict.fromkeys([*edges.get(link.relation.name, ()), *columns]))
    positions = {place for place, t in enumerate(path.node_types) if attribute in nodes.get(t, ())}
    names = {name for name, columns in edges.items() if attribute in columns}
    if not positions and not names:
        known = listed([f"{at}.{column}" for at, columns in (nodes | edges).items() for column in columns]) or "none"
        every = [column for columns in (nodes | edges).values() for column in columns]
        raise QueryError(
            f"‹time› is {time!r}, but no node or edge on '{path}' has that attribute (there are {known})"
            f"{did_you_mean(attribute, every)}",
            parameter="time",
        )
    for step in path.steps if not owner else ():
        without = [link.relation.name for link in step.links if link.relation.name not in names]
        if without and len(without) < len(step.links):
            raise QueryError(
                f"‹time› is {time!r}, which edges of {without[0]} do not have, and a step from {step.source} to "
                f"{step.target} follows them as well; name the relation of that step that has it, "
                f"{listed(sorted(names))}, or let the others count at all times by ‹time› "
                f"'{min(names)}.{attribute}'",
                parameter="time",
            )
    between = positions - {0, len(path)}
    if not between and not names:
        node_type = path.node_types[min(positions)]
        raise QueryError(
            f"‹time› is {time!r}, an attribute of {node_type}, which stands only at the ends of '{path}'; leave nodes "
            f"there out by a condition, such as '{node_type}[{attribute} >= …]'",
            parameter="time",
        )
    return attribute, between, names

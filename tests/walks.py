"""Brute-force reference for every measure: enumerated walks, and the formulas as in their papers."""

import operator
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from functools import partial
from itertools import pairwise
from math import log1p, prod, sqrt

import numpy as np

from neupath import HIN
from neupath.graph.conditions import (
    All,
    AnyOf,
    Arithmetic,
    Attribute,
    Call,
    Comparison,
    Decay,
    Filter,
    Missing,
    Not,
    Number,
    OneOf,
    Pinned,
)
from neupath.graph.metapath import Link, MetaPath, Step
from neupath.measures import measure_named

Values = Mapping[str, object]


@dataclass(frozen=True)
class Walk:
    rows: tuple[int, ...]
    weights: tuple[float, ...]


def tversky(alpha: float, beta: float) -> Callable[[float, float, float], float]:
    return lambda m, dx, dy: m / (m + alpha * (dx - m) + beta * (dy - m))


FORMULAS: dict[str, Callable[[float, float, float], float]] = {
    "pathsim": lambda m, dx, dy: 2 * m / (dx + dy),
    "joinsim": lambda m, dx, dy: m / sqrt(dx * dy),
    "overlap": lambda m, dx, dy: m / min(dx, dy),
    "jaccard": tversky(1, 1),
    "tversky": tversky(0.5, 0.5),
    "tversky:alpha=0.9,beta=0.05": tversky(0.9, 0.05),
    "tversky:alpha=2,beta=1": tversky(2, 1),
}
"""A measure -> its score, by what two nodes share and what each shares with itself."""


class Walker:
    """Lists walks on plain dictionaries of edges, sharing no code with the product."""

    def __init__(self, hin: HIN, path: MetaPath) -> None:
        self.path = path
        self.edges = [self._edges(hin, step) for step in path.steps]
        self.sizes = [hin.num_nodes(node_type) for node_type in path.node_types]

    @staticmethod
    def _edges(hin: HIN, step: Step) -> dict[int, dict[int, float]]:
        weight_of: dict[int, dict[int, float]] = defaultdict(lambda: defaultdict(float))
        for link in step.links:
            nodes = [node_values(hin, node_type) for node_type in (link.source, link.target)]
            ends = link.source_filter, link.target_filter
            for i, j, values in single_edges(hin, link):
                u, v = (j, i) if link.reverse else (i, j)
                edge = weight_by(link.edge_filter, values, values["weight"])
                at_ends = (weight_by(f, known[row], 1.0) for f, known, row in zip(ends, nodes, (u, v), strict=True))
                weight = edge * prod(map(sqrt, at_ends))
                if weight > 0:
                    weight_of[u][v] += weight
        return weight_of

    def walks(self, start: int, steps: slice = slice(None)) -> list[Walk]:
        walks = [Walk((start,), ())]
        for edges in self.edges[steps]:
            walks = [
                Walk((*walk.rows, v), (*walk.weights, w))
                for walk in walks
                for v, w in edges.get(walk.rows[-1], {}).items()
            ]
        return walks

    def out(self, step: int, row: int) -> float:
        return sum(self.edges[step].get(row, {}).values())

    def into(self, step: int, row: int) -> float:
        return sum(targets.get(row, 0.0) for targets in self.edges[step].values())

    def count(self, x: int, y: int) -> float:
        return sum(prod(walk.weights) for walk in self.walks(x) if walk.rows[-1] == y)

    def similarity(self, formula: str, x: int, y: int) -> float:
        """Return a score that compares the walks between two nodes with those from each to itself."""
        shared = self.count(x, y)
        return FORMULAS[formula](shared, self.count(x, x), self.count(y, y)) if shared else 0.0

    def pathsim(self, x: int, y: int) -> float:
        return self.similarity("pathsim", x, y)

    def pcrw(self, x: int, y: int) -> float:
        return sum(
            prod(w / self.out(step, u) for step, (u, w) in enumerate(zip(walk.rows, walk.weights, strict=False)))
            for walk in self.walks(x)
            if walk.rows[-1] == y
        )

    def dwpc(self, x: int, y: int, damping: float, *, repeats: bool = True) -> float:
        total = 0.0
        for walk in self.walks(x):
            nodes = list(zip(self.path.node_types, walk.rows, strict=True))
            if walk.rows[-1] == y and (repeats or len(set(nodes)) == len(nodes)):
                steps = zip(pairwise(walk.rows), walk.weights, strict=True)
                total += prod(
                    w * (self.out(step, u) * self.into(step, v)) ** -damping for step, ((u, v), w) in enumerate(steps)
                )
        return total

    def hetesim(self, x: int, y: int) -> float:
        """Return the cosine of both walks' distributions at the middle, which is the edges of an odd middle step."""
        length = len(self.edges)
        k = length // 2
        here = self._arrivals(x, range(k), forward=True)
        there = self._arrivals(y, range(length - 1, length - 1 - k, -1), forward=False)
        if length % 2:
            middle = self.edges[k]
            edge_here: dict[object, float] = defaultdict(float)
            edge_there: dict[object, float] = defaultdict(float)
            for u, targets in middle.items():
                for v, w in targets.items():
                    edge_here[u, v] = here.get(u, 0.0) * sqrt(w) / self.out(k, u)
                    edge_there[u, v] = there.get(v, 0.0) * sqrt(w) / self.into(k, v)
            return _cosine(edge_here, edge_there)
        return _cosine(dict(here), dict(there))

    def _arrivals(self, start: int, steps: range, *, forward: bool) -> dict[int, float]:
        places = {start: 1.0}
        for step in steps:
            onward: dict[int, float] = defaultdict(float)
            for u, targets in self.edges[step].items():
                for v, w in targets.items():
                    if forward and u in places:
                        onward[v] += places[u] * w / self.out(step, u)
                    if not forward and v in places:
                        onward[u] += places[v] * w / self.into(step, v)
            places = onward
        return places


def _cosine(a: dict, b: dict) -> float:
    norms = sum(v * v for v in a.values()) * sum(v * v for v in b.values())
    return sum(v * b.get(k, 0.0) for k, v in a.items()) / sqrt(norms) if norms else 0.0


def every_score(name: str, hin: HIN, path: MetaPath) -> np.ndarray:
    scorer = measure_named(name, path).fit(hin)
    rows = np.arange(hin.num_nodes(path.source))
    return scorer.score_rows(rows)


def by_walks(name: str, hin: HIN, path: MetaPath) -> np.ndarray:
    walker = Walker(hin, path)
    formulas = {name: partial(walker.similarity, name) for name in FORMULAS} | {
        "pathcount": walker.count,
        "pcrw": walker.pcrw,
        "hetesim": walker.hetesim,
        "dwpc": partial(walker.dwpc, damping=0.4),
        "dwpc-no-repeats": partial(walker.dwpc, damping=0.4, repeats=False),
    }
    shape = (hin.num_nodes(path.source), hin.num_nodes(path.target))
    return np.array([[formulas[name](x, y) for y in range(shape[1])] for x in range(shape[0])]).reshape(shape)


# ---- Conditions, value by value ------------------------------------------------------------------
def node_values(hin: HIN, node_type: str) -> list[Values]:
    nodes = hin.nodes[node_type]
    rows = nodes.attributes.to_pylist() if nodes.attributes.num_columns else [{} for _ in range(len(nodes))]
    return [{**row, "id": nodes.id(i), "name": nodes.name(i)} for i, row in enumerate(rows)]


def single_edges(hin: HIN, link: Link) -> Iterator[tuple[int, int, Values]]:
    """Yield each edge of a relation, both ways if it is undirected; those without a table as their sums."""
    table = hin.edge_tables.get(link.relation)
    if table is None:
        dense = hin.matrices[link.relation].toarray()
        for i, row in enumerate(dense.tolist()):
            yield from ((i, j, {"weight": weight}) for j, weight in enumerate(row) if weight)
        return
    attributes = table.attributes.to_pylist()
    for i, j, weight, own in zip(table.sources, table.targets, table.weights, attributes, strict=True):
        values = {**own, "weight": float(weight)}
        yield int(i), int(j), values
        if not link.relation.directed and i != j:
            yield int(j), int(i), values


def weight_by(own: Filter | None, values: Values, weight: float) -> float:
    if own is None:
        return weight
    if own.where is not None and is_met(own.where, values) is not True:
        return 0.0
    if own.weight is None:
        return weight
    number = number_of(own.weight, values)
    return 0.0 if number is None else max(0.0, number)


def is_met(condition: object, values: Values) -> bool | None:  # noqa: PLR0911
    """Return whether a condition holds: None where that is not known."""
    match condition:
        case Comparison(attribute, sign, text):
            value = values[attribute]
            if value is None:
                return None
            if sign == "~":
                return str(text).lower() in str(value).lower()
            signs = {"=": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}
            return getattr(operator, signs[sign])(value, like(value, text))
        case OneOf(attribute, texts):
            value = values[attribute]
            return None if value is None else any(value == like(value, text) for text in texts)
        case Missing(attribute):
            return values[attribute] is None
        case Pinned(nodes):
            return str(values["id"]) in nodes or values["name"] in nodes
        case Not(part):
            met = is_met(part, values)
            return None if met is None else not met
        case All(parts):
            every = [is_met(part, values) for part in parts]
            return False if False in every else None if None in every else True
        case AnyOf(parts):
            every = [is_met(part, values) for part in parts]
            return True if True in every else None if None in every else False
    raise AssertionError(condition)


def like(value: object, text: str) -> object:
    """Return a text as a value of the same kind."""
    if isinstance(value, date):
        return date.fromisoformat(text)
    return text if isinstance(value, str) else float(text)


def number_of(expression: object, values: Values) -> float | None:
    match expression:
        case Number(value):
            return value
        case Attribute(name):
            return None if values[name] is None else float(values[name])
        case Arithmetic(left, sign, right):
            both = number_of(left, values), number_of(right, values)
            signs = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}
            return None if None in both else signs[sign](*both)
        case Call("log1p", (argument,)):
            number = number_of(argument, values)
            return None if number is None else log1p(number)
        case Decay(attribute, reference, half_life):
            value = values[attribute]
            if value is None:
                return None
            age = like(value, reference) - value
            days = age.days if isinstance(value, date) else age
            return 2.0 ** (-days / float(half_life.removesuffix("d")))
    raise AssertionError(expression)


# ---- Sets of nodes -------------------------------------------------------------------------------
def set_score(walker: Walker, measure: str, members: dict[int, float], y: int) -> float:
    """Return the score of a set along a symmetric path: of the weighted sum of the members' half-walks."""
    if measure in ("pathcount", "pcrw"):
        score = walker.count if measure == "pathcount" else walker.pcrw
        return sum(weight * score(x, y) for x, weight in members.items())
    half = len(walker.edges) // 2

    def row(x: int) -> dict[int, float]:
        if measure == "hetesim":
            return dict(walker._arrivals(x, range(half), forward=True))
        places: dict[int, float] = defaultdict(float)
        for walk in walker.walks(x, slice(half)):
            places[walk.rows[-1]] += prod(walk.weights)
        return dict(places)

    total: dict[int, float] = defaultdict(float)
    for x, weight in members.items():
        for v, value in row(x).items():
            total[v] += weight * value
    own = row(y)
    m = sum(total.get(v, 0.0) * value for v, value in own.items())
    dx, dy = (sum(value * value for value in places.values()) for places in (total, own))
    formula = FORMULAS["joinsim" if measure == "hetesim" else measure]  # both are cosines
    return formula(m, dx, dy) if m else 0.0


def hub_scores(hin: HIN, path: str) -> np.ndarray:
    """Return HubSim, a measure that tests and the example of a plug-in add: PathSim with hubs of each step damped."""
    half = hin.metapath(path).steps
    w = np.eye(hin.num_nodes(hin.metapath(path).source))
    for step in half[: len(half) // 2]:
        a = hin.matrix(step.links[0]).toarray()
        w = w @ (a / np.sqrt(np.maximum(a.sum(axis=0), 1e-300)))
    m = w @ w.T
    return 2 * m / (np.diag(m)[:, None] + np.diag(m))

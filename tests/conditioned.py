"""Random graphs with attributes, and meta-paths over them with conditions, weights and pinned nodes."""

from dataclasses import replace
from datetime import date, timedelta

import numpy as np
import pyarrow as pa

from neupath import HIN
from neupath.graph.conditions import (
    All,
    AnyOf,
    Arithmetic,
    Attribute,
    Call,
    Comparison,
    Condition,
    Decay,
    Expression,
    Filter,
    Missing,
    Not,
    Number,
    OneOf,
    Pinned,
)
from neupath.graph.hin import Edges
from neupath.graph.metapath import MetaPath, Step, enumerate_metapaths
from neupath.graph.nodes import Nodes
from tests.graphs import RELATIONS

WITH_EDGE_TABLES = ("r", "near")
KINDS = ("x", "y, z", "X")
SIGNS = ("=", "!=", "<", "<=", ">", ">=")


class Case:
    """What a seed makes: the same graph, path and conditions each time."""

    def __init__(self, seed: int, *, edge_tables: bool = True) -> None:
        self.rng, self.edge_tables = np.random.default_rng(seed), edge_tables
        self.hin = self._hin()

    def pick(self, choices):
        return choices[int(self.rng.integers(len(choices)))]

    def happens(self, share: float) -> bool:
        return bool(self.rng.random() < share)

    # -- Graphs
    def attributes(self, count: int, number: str) -> dict[str, list]:
        """A number, a text and a date for each record, one in five missing."""
        day = date(2020, 1, 1)
        columns = {
            number: self.rng.integers(0, 5, count).tolist(),
            "kind": [self.pick(KINDS) for _ in range(count)],
            "day": [day + timedelta(int(d)) for d in self.rng.integers(0, 5, count)],
        }
        return {name: [None if self.happens(0.2) else value for value in values] for name, values in columns.items()}

    def table(self, count: int, number: str) -> pa.Table:
        types = {number: pa.int64(), "kind": pa.string(), "day": pa.date32()}
        return pa.table({n: pa.array(v, types[n]) for n, v in self.attributes(count, number).items()})

    def _hin(self) -> HIN:
        sizes = {node_type: int(self.rng.integers(2, 6)) for node_type in "abc"}
        nodes = [
            Nodes(t, pa.array([f"{t}{i}" for i in range(n)]), attributes=self.table(n, "year"))
            for t, n in sizes.items()
        ]
        edges = []
        for relation in RELATIONS:
            count = int(self.rng.integers(0, 14))
            ends = (self.rng.integers(0, sizes[t], count) for t in (relation.source, relation.target))
            has_table = self.edge_tables and relation.name in WITH_EDGE_TABLES
            table = self.table(count, "rating") if has_table else pa.table({})
            edges.append(Edges(relation, *ends, self.rng.choice([0.0, 0.25, 0.5, 1.0, 2.0, 3.0], count), table))
        return HIN.build(nodes, edges)

    # -- Paths
    def path(self, *, symmetric: bool, max_length: int = 4) -> MetaPath:
        start = self.pick("abc")
        paths = list(enumerate_metapaths(self.hin.schema, start, max_length, symmetric=symmetric))
        paths += [self.hin.metapath(text) for text in ("a-b-a", "a-b-c-b-a") if start == "a"]  # over two relations
        return self.filtered(self.pick(paths))

    def filtered(self, path: MetaPath) -> MetaPath:
        """The path with conditions and weights on some of its nodes and edges; a symmetric one stays symmetric."""
        half = path.half() if path.is_round_trip else path
        last = len(half) if not path.is_round_trip else -1
        ends = [self._node_filter(t, is_end=place in (0, last)) for place, t in enumerate(half.node_types)]
        steps = [
            Step(tuple(replace(link, edge_filter=self._edge_filter(link.relation.name)) for link in step.links))
            for step in half.with_filters(ends).steps
        ]
        back = [step.reversed() for step in reversed(steps)] if path.is_round_trip else []
        return MetaPath(path.schema, tuple(steps + back))

    def _node_filter(self, node_type: str, *, is_end: bool) -> Filter | None:
        where = self.condition("year") if self.happens(0.35) else None
        if self.happens(0.1):
            pinned = Pinned(tuple({self.hin.nodes[node_type].id(self.rng.integers(2)) for _ in range(2)}))
            where = pinned if where is None else All((pinned, where))
        decays = [Decay("day", "2020-01-04", "2d"), Decay("year", "3", "1.5")]
        weight = self.pick([*decays, self.expression("year")]) if not is_end and self.happens(0.25) else None
        return None if where is None and weight is None else Filter(where, weight)

    def _edge_filter(self, relation: str) -> Filter | None:
        has_table = self.edge_tables and relation in WITH_EDGE_TABLES
        number = "rating" if has_table and self.happens(0.8) else "weight"
        where = self.condition(number, has_others=has_table) if self.happens(0.3) else None
        weight = self.expression(number) if self.happens(0.25) else None
        return None if where is None and weight is None else Filter(where, weight)

    def condition(self, number: str, *, has_others: bool = True, depth: int = 2) -> Condition:
        if depth and self.happens(0.35):
            parts = tuple(self.condition(number, has_others=has_others, depth=depth - 1) for _ in range(2))
            return self.pick([All(parts), AnyOf(parts), Not(parts[0])])
        numbers = (0, 1, 2, 2.5, 3)
        choices: list[Condition] = [
            Comparison(number, self.pick(SIGNS), self.pick(numbers)),
            OneOf(number, (self.pick(numbers), self.pick(numbers))),
        ]
        if has_others:
            choices += [
                Comparison("day", self.pick(SIGNS), date(2020, 1, int(self.rng.integers(1, 6)))),
                Comparison("kind", self.pick(["=", "!=", "~"]), self.pick(KINDS)),
                OneOf("kind", (self.pick(KINDS), "other")),
                Missing(self.pick([number, "kind", "day"])),
            ]
        return self.pick(choices)

    def expression(self, number: str) -> Expression:
        own = Attribute(number)
        third = Arithmetic(Number(1.0), "/", Number(3.0))
        return self.pick([own, Arithmetic(own, "-", Number(0.5)), Call("log1p", (own,)), third])

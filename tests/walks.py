"""Brute-force reference for every measure: enumerated walks, and the formulas as in their papers."""

from collections import defaultdict
from dataclasses import dataclass
from itertools import pairwise
from math import prod, sqrt

from neupath import HIN, MetaPath
from neupath.graph.metapath import Step


@dataclass(frozen=True)
class Walk:
    rows: tuple[int, ...]
    weights: tuple[float, ...]


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
            dense = hin.matrices[link.relation].toarray()
            for i in range(dense.shape[0]):
                for j in range(dense.shape[1]):
                    if dense[i, j]:
                        u, v = (j, i) if link.reverse else (i, j)
                        weight_of[u][v] += dense[i, j]
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

    def pathsim(self, x: int, y: int) -> float:
        both = self.count(x, x) + self.count(y, y)
        return 2 * self.count(x, y) / both if both else 0.0

    def tversky(self, x: int, y: int, alpha: float, beta: float) -> float:
        shared = self.count(x, y)
        alone = self.count(x, x) - shared, self.count(y, y) - shared
        return shared / (shared + alpha * alone[0] + beta * alone[1]) if shared else 0.0

    def overlap(self, x: int, y: int) -> float:
        shared = self.count(x, y)
        return shared / min(self.count(x, x), self.count(y, y)) if shared else 0.0

    def joinsim(self, x: int, y: int) -> float:
        both = self.count(x, x) * self.count(y, y)
        return self.count(x, y) / sqrt(both) if both else 0.0

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
    if not m:
        return 0.0
    below = {
        "pathsim": (dx + dy) / 2, "jaccard": dx + dy - m, "overlap": min(dx, dy), "tversky": (dx + dy) / 2,
        "joinsim": sqrt(dx * dy), "hetesim": sqrt(dx * dy),
    }  # fmt: skip
    return m / below[measure] if below[measure] > 0 else 0.0

"""Candidates: the meta-paths that may explain some labels, searched best first under a budget of work.

Half-paths are prefixes of each other, so the search walks their tree and computes each prefix once, for the labelled
nodes alone. The prefixes whose own meta-path explains the labels best are extended first; a prefix that leads nowhere
from the labelled nodes is never extended.
"""

import heapq
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import count

import numpy as np

from neupath.graph import HIN, Floats
from neupath.inference.walks import (
    MEASURES_INFERRED,
    Walk,
    entries_of,
    extend_walk,
    pair_features,
    start_walk,
    work_of,
)
from neupath.labels import Pairs
from neupath.metapath import MetaPath, Step
from neupath.schema import Schema

BUDGET = 20_000_000_000
"""Multiplications after which a search stops: some two minutes on two cores."""
_MOST_NODES = 256
"""Labelled nodes that the search looks at; the best candidates are then computed for all."""
_MOST_ENTRIES = 30_000_000
_MOST_BYTES = 1 << 29
_SETTLE = 0.02
"""The share of the budget that is spent on other explanations once one is exact."""

Progress = Callable[[int, int], None]
"""Hears how many candidates were tried, and how many there are."""


@dataclass(frozen=True)
class Searched:
    """What a search tried."""

    tried: int
    total: int
    too_large: int
    """Candidates left out because the labelled nodes reach too many others along them."""
    stopped: bool
    """Whether it ended early: the budget was spent, or an exact explanation was found."""


@dataclass(frozen=True)
class Candidate:
    """A meta-path and its scores of some labelled pairs, by measure."""

    metapath: MetaPath
    features: dict[str, Floats]


@dataclass(order=True)
class _Prefix:
    """A half-path in the queue; its rows may be forgotten and walked again."""

    priority: tuple[float, int, int]
    steps: tuple[Step, ...] = field(compare=False)
    walk: Walk | None = field(compare=False)


def steps_from(schema: Schema, node_type: str) -> list[Step]:
    """List the steps away from a type: every relation, and all relations to one type together where several join them.

    >>> from neupath import load
    >>> [step.target for step in steps_from(load("toy").schema, "paper")]
    ['author', 'venue']
    """
    single = [Step((link,)) for link in schema.links_from(node_type)]
    several = []
    for target in schema.neighbours(node_type):
        links = schema.links(node_type, target)
        directed = node_type == target and any(link.relation.directed for link in links)
        if len(links) > 1 and not directed:
            several.append(Step(links))
    return single + several


def count_halves(schema: Schema, node_type: str, half_length: int) -> int:
    """Count the half-paths of up to some steps, without listing them.

    >>> from neupath import load
    >>> count_halves(load("toy").schema, "author", 2)
    3
    """
    ways, total = {node_type: 1}, 0
    for _ in range(half_length):
        longer: dict[str, int] = {}
        for here, number in ways.items():
            for step in steps_from(schema, here):
                longer[step.target] = longer.get(step.target, 0) + number
        ways = longer
        total += sum(ways.values())
    return total


def search_candidates(
    hin: HIN, pairs: Pairs, half_length: int, budget: int = BUDGET, progress: Progress = lambda *_: None
) -> tuple[list[Candidate], Searched, Pairs]:
    """Try symmetric meta-paths, the most promising first; return them with their features of a sample of the pairs.

    The same pairs and budget give the same candidates on any machine: the budget counts work, not time.
    """
    sample = _sampled(pairs)
    search = _Search(hin, sample, half_length, budget, progress)
    search.run()
    return search.found, search.report(), sample


class _Search:
    def __init__(self, hin: HIN, pairs: Pairs, half_length: int, budget: int, progress: Progress) -> None:
        self.hin, self.pairs, self.half_length, self.budget = hin, pairs, half_length, budget
        self.progress = progress
        self.total = count_halves(hin.schema, pairs.node_type, half_length)
        nodes, where = np.unique(np.concatenate([pairs.queries, pairs.targets]), return_inverse=True)
        self.nodes, self.queries, self.targets = nodes, where[: len(pairs)], where[len(pairs) :]
        self.found: list[Candidate] = []
        self.work, self.too_large, self.kept_bytes = 0, 0, 0
        self.limit = budget
        self.stopped = False
        self.order = count()

    def report(self) -> Searched:
        return Searched(len(self.found), self.total, self.too_large, self.stopped)

    def run(self) -> None:
        start = start_walk(self.hin, self.pairs.node_type, self.nodes)
        queue = [_Prefix((0.0, 0, next(self.order)), (), start)]
        with ThreadPoolExecutor(2) as pool:
            while queue and not self.stopped:
                prefix = heapq.heappop(queue)
                walk = prefix.walk or self._walk_again(prefix.steps)
                self.kept_bytes -= prefix.walk.bytes if prefix.walk else 0
                steps = self._affordable(walk)
                for step, longer in zip(steps, pool.map(lambda s: self._extend(walk, s), steps), strict=True):  # noqa: B023
                    quality = self._record((*prefix.steps, step), longer[1])
                    if len(prefix.steps) + 1 < self.half_length and not longer[0].is_empty:
                        keeps = self.kept_bytes + longer[0].bytes <= _MOST_BYTES
                        self.kept_bytes += longer[0].bytes if keeps else 0
                        priority = (-round(quality, 9), len(prefix.steps) + 1, next(self.order))
                        heapq.heappush(queue, _Prefix(priority, (*prefix.steps, step), longer[0] if keeps else None))
                self.progress(len(self.found), self.total)

    def _affordable(self, walk: Walk) -> list[Step]:
        """Return the next steps that fit the budget, and account for their work."""
        chosen = []
        for step in steps_from(self.hin.schema, walk.end):
            if entries_of(self.hin, walk, step) > _MOST_ENTRIES:
                self.too_large += 1
                continue
            work = work_of(self.hin, walk, step)
            if self.work + work > self.limit:
                self.stopped = True
                break
            self.work += work
            chosen.append(step)
        return chosen

    def _extend(self, walk: Walk, step: Step) -> tuple[Walk, dict[str, Floats]]:
        longer = extend_walk(self.hin, walk, step)
        return longer, pair_features(longer, longer, self.queries, self.targets)

    def _walk_again(self, steps: Iterable[Step]) -> Walk:
        walk = start_walk(self.hin, self.pairs.node_type, self.nodes)
        for step in steps:
            self.work += work_of(self.hin, walk, step)
            walk = extend_walk(self.hin, walk, step)
        return walk

    def _record(self, steps: tuple[Step, ...], features: dict[str, Floats]) -> float:
        """Keep a candidate; return how much of the labels it explains alone."""
        self.found.append(Candidate(_round_trip(self.hin.schema, steps), features))
        scores = self.pairs.scores
        best = max(explained_alone(features[measure], scores) for measure in MEASURES_INFERRED)
        if best > 1 - 1e-12 and scores.any() and np.ptp(scores) > 0:
            self.limit = min(self.limit, self.work + max(self.work, int(_SETTLE * self.budget)))
        return best


def explained_alone(feature: Floats, scores: Floats) -> float:
    """Return the share of Σ score² that one feature explains with its best weight of 0 or more."""
    own, whole = float(feature @ feature), float(scores @ scores)
    return max(0.0, float(feature @ scores)) ** 2 / (own * whole) if own > 0 and whole > 0 else 0.0


def features_of(hin: HIN, metapaths: Iterable[MetaPath], pairs: Pairs) -> list[Candidate]:
    """Compute the features of given meta-paths for all pairs, in blocks of nodes; shared halves are walked once."""
    wanted = list(metapaths)
    order = np.argsort(pairs.queries, kind="stable")
    columns: list[dict[str, Floats]] = [{} for _ in wanted]
    for block in _blocks(pairs, order):
        part = Pairs(pairs.node_type, pairs.queries[block], pairs.targets[block], pairs.scores[block])
        for filled, features in zip(columns, _features_of_block(hin, wanted, part), strict=True):
            for measure, values in features.items():
                filled.setdefault(measure, np.zeros(len(pairs)))[block] = values
    return [Candidate(path, features) for path, features in zip(wanted, columns, strict=True)]


def _blocks(pairs: Pairs, order: np.ndarray) -> Iterable[np.ndarray]:
    """Cut pairs, in an order, into parts that name a limited number of nodes."""
    seen: set[int] = set()
    part: list[int] = []
    for at in order.tolist():
        seen |= {int(pairs.queries[at]), int(pairs.targets[at])}
        part.append(at)
        if len(seen) >= _MOST_NODES:
            yield np.array(part)
            seen, part = set(), []
    if part:
        yield np.array(part)


def _features_of_block(hin: HIN, metapaths: list[MetaPath], pairs: Pairs) -> list[dict[str, Floats]]:
    nodes, where = np.unique(np.concatenate([pairs.queries, pairs.targets]), return_inverse=True)
    queries, targets = where[: len(pairs)], where[len(pairs) :]
    walks: dict[tuple[Step, ...], Walk] = {(): start_walk(hin, pairs.node_type, nodes)}

    def walk(steps: tuple[Step, ...]) -> Walk:
        if steps not in walks:
            walks[steps] = extend_walk(hin, walk(steps[:-1]), steps[-1])
        return walks[steps]

    found = []
    for path in metapaths:
        middle = (len(path) + 1) // 2
        left, right = path.steps[:middle], path.reversed().steps[: len(path) - middle]
        features = pair_features(walk(left), walk(right), queries, targets)
        if len(path) % 2:
            del features["hetesim"]  # its walkers would meet on edges, which are no nodes of the walk
        found.append(features)
    return found


def one_way_metapaths(schema: Schema, node_type: str, max_length: int, most: int) -> list[MetaPath]:
    """List meta-paths from a type to itself that are not walked out and back, shortest first, up to a number."""
    found: list[MetaPath] = []
    frontier: list[tuple[Step, ...]] = [()]
    for _ in range(max_length):
        frontier = [
            (*steps, step)
            for steps in frontier
            for step in steps_from(schema, steps[-1].target if steps else node_type)
        ][: 50 * most]
        for steps in frontier:
            path = MetaPath(schema, steps)
            if path.target == node_type and not path.is_round_trip:
                found.append(path)
                if len(found) == most:
                    return found
    return found


def _round_trip(schema: Schema, steps: tuple[Step, ...]) -> MetaPath:
    return MetaPath(schema, steps + tuple(step.reversed() for step in reversed(steps)))


def _sampled(pairs: Pairs) -> Pairs:
    """Return the pairs of as many queries, evenly spread, as the search may look at."""
    queries = np.unique(pairs.queries)
    mean_nodes = len(np.unique(np.concatenate([pairs.queries, pairs.targets]))) / len(queries)
    most = max(2, int(_MOST_NODES / mean_nodes))
    if len(queries) <= most:
        return pairs
    return pairs.of_queries(queries[np.linspace(0, len(queries) - 1, most).round().astype(int)])

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
    too_large: int = 0
    """Candidates left out because the labelled nodes reach too many others along them."""
    leading_nowhere: int = 0
    """Candidates left out because they go on from where no labelled node gets."""
    stopped: str | None = None
    """Why it ended before all were tried, if it did."""

    def plus(self, other: "Searched") -> "Searched":
        """Return what two searches tried together."""
        return Searched(
            self.tried + other.tried, self.total + other.total, self.too_large + other.too_large,
            self.leading_nowhere + other.leading_nowhere, other.stopped or self.stopped,
        )  # fmt: skip


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


def count_ends(schema: Schema, node_type: str, length: int) -> list[dict[str, int]]:
    """Count, after 0, 1, … steps from a type, in how many ways each type is reached.

    >>> from neupath import load
    >>> count_ends(load("toy").schema, "author", 2)
    [{'author': 1}, {'paper': 1}, {'author': 1, 'venue': 1}]
    """
    ends = [{node_type: 1}]
    for _ in range(length):
        longer: dict[str, int] = {}
        for here, number in ends[-1].items():
            for step in steps_from(schema, here):
                longer[step.target] = longer.get(step.target, 0) + number
        ends.append(longer)
    return ends


def count_halves(schema: Schema, node_type: str, half_length: int) -> int:
    """Count the half-paths of up to some steps, without listing them.

    >>> from neupath import load
    >>> count_halves(load("toy").schema, "author", 2)
    3
    """
    return sum(sum(ways.values()) for ways in count_ends(schema, node_type, half_length)[1:])


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
        self.work, self.too_large, self.leading_nowhere, self.kept_bytes = 0, 0, 0, 0
        self.limit = budget
        self.stopped: str | None = None
        self.order = count()

    def report(self) -> Searched:
        return Searched(len(self.found), self.total, self.too_large, self.leading_nowhere, self.stopped)

    def run(self) -> None:
        start = start_walk(self.hin, self.pairs.node_type, self.nodes)
        queue = [_Prefix((0.0, 0, next(self.order)), (), start)]
        with ThreadPoolExecutor(2) as pool:
            while queue and not self.stopped:
                prefix = heapq.heappop(queue)
                walk = prefix.walk or self._walk_again(prefix.steps)
                self.kept_bytes -= prefix.walk.bytes if prefix.walk else 0
                steps = self._affordable(walk, len(prefix.steps))
                for step, longer in zip(steps, pool.map(lambda s: self._extend(walk, s), steps), strict=True):  # noqa: B023
                    quality = self._record((*prefix.steps, step), longer[1])
                    if longer[0].is_empty:
                        self.leading_nowhere += self._extensions(step, len(prefix.steps) + 1)
                    elif len(prefix.steps) + 1 < self.half_length:
                        keeps = self.kept_bytes + longer[0].bytes <= _MOST_BYTES
                        self.kept_bytes += longer[0].bytes if keeps else 0
                        priority = (-round(quality, 9), len(prefix.steps) + 1, next(self.order))
                        heapq.heappush(queue, _Prefix(priority, (*prefix.steps, step), longer[0] if keeps else None))
                self.progress(len(self.found), self.total)

    def _extensions(self, step: Step, length: int) -> int:
        """Count the half-paths that go on after a step, the prefix with it being of some length."""
        return count_halves(self.hin.schema, step.target, self.half_length - length)

    def _affordable(self, walk: Walk, length: int) -> list[Step]:
        """Return the next steps that fit the budget, and account for their work."""
        chosen = []
        for step in steps_from(self.hin.schema, walk.end):
            if entries_of(self.hin, walk, step) > _MOST_ENTRIES:
                self.too_large += 1 + self._extensions(step, length + 1)
                continue
            work = work_of(self.hin, walk, step)
            if self.work + work > self.limit:
                exact = self.limit < self.budget
                self.stopped = "an explanation is exact" if exact else "the budget of work is spent"
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
        best = max(explained_alone(values, scores) for values in features.values())
        if best > 1 - 1e-12 and scores.any() and np.ptp(scores) > 0:
            self.limit = min(self.limit, self.work + max(self.work, int(_SETTLE * self.budget)))
        return best


def explained_alone(feature: Floats, scores: Floats) -> float:
    """Return the share of Σ score² that one feature explains with its best weight of 0 or more."""
    highest, largest = float(np.abs(feature).max(initial=0.0)), float(np.abs(scores).max(initial=0.0))
    if not (0 < highest < np.inf and 0 < largest < np.inf):
        return 0.0
    own, labels = feature / highest, scores / largest
    return max(0.0, float(own @ labels)) ** 2 / float((own @ own) * (labels @ labels))


def _round_trip(schema: Schema, steps: tuple[Step, ...]) -> MetaPath:
    return MetaPath(schema, steps + tuple(step.reversed() for step in reversed(steps)))


def _sampled(pairs: Pairs) -> Pairs:
    """Return the pairs of as many queries, evenly spread, as the search may look at."""
    queries = np.unique(pairs.queries)
    mean_nodes = len(np.unique(np.concatenate([pairs.queries, pairs.targets]))) / len(queries)
    return spread_queries(pairs, max(2, int(_MOST_NODES / mean_nodes)))


def spread_queries(pairs: Pairs, most: int) -> Pairs:
    """Return the pairs of at most some queries, evenly spread over all."""
    queries = np.unique(pairs.queries)
    if len(queries) <= most:
        return pairs
    return pairs.of_queries(queries[np.linspace(0, len(queries) - 1, most).round().astype(int)])

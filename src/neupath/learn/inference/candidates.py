"""Candidates: the meta-paths that may explain the labels, searched best first within a budget of work."""

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from types import MappingProxyType

import numpy as np

from neupath._runtime.progress import Progress, no_progress
from neupath.errors import QueryError
from neupath.graph.conditions import Filter, parse_condition
from neupath.graph.hin import HIN, Floats
from neupath.graph.metapath import MetaPath, Schema, Step, count_ends
from neupath.learn.inference.features import (
    MOST_ENTRIES,
    MOST_NODES,
    PairWalks,
    Walk,
    bound_entries,
    count_work,
    extend_walk,
)
from neupath.learn.labels import Pairs

BUDGET = 20_000_000_000
"""Multiplications after which a search stops: about two minutes on two cores."""
_MOST_BYTES = 1 << 29
"""Bytes of walks that are kept to be extended."""
_MOST_ONE_WAY = 2000
"""One-way meta-paths that are tried at most."""
_SETTLE = 0.02
"""The least share of the budget for other explanations once one is exact; as much as was spent before, if more."""
_SPENT = "the budget of work is spent"


@dataclass(frozen=True)
class Candidate:
    """A meta-path and its scores of some labelled pairs, by measure."""

    metapath: MetaPath
    features: dict[str, Floats]


@dataclass(frozen=True)
class SearchReport:
    """How many candidates a search tried, of how many."""

    tried: int
    total: int
    too_large: int = 0
    """Candidates left out because the labelled nodes reach too many others along them."""
    leading_nowhere: int = 0
    """Candidates left out because they extend a half-path that leads no labelled node anywhere."""
    stopped: str | None = None
    """Why the search ended before all were tried, if it did."""

    def to_dict(self) -> dict[str, object]:
        return {
            "tried": self.tried, "candidates": self.total, "too_large": self.too_large,
            "leading_nowhere": self.leading_nowhere, "stopped": self.stopped,
        }  # fmt: skip

    def plus(self, other: "SearchReport") -> "SearchReport":
        return SearchReport(
            self.tried + other.tried, self.total + other.total, self.too_large + other.too_large,
            self.leading_nowhere + other.leading_nowhere, other.stopped or self.stopped,
        )  # fmt: skip


# ---- Half-paths of a schema ----------------------------------------------------------------------
Conditions = Mapping[str, Sequence[Filter]]
"""By node type, the conditions that are tried on the nodes of a half-path, besides none."""


@dataclass(frozen=True)
class Extent:
    """Which meta-paths a search tries, and for how long."""

    max_length: int
    asymmetric: bool = False
    """Whether to try also meta-paths that are not a half-path walked out and back."""
    conditions: Conditions = field(default_factory=dict)
    budget: int = BUDGET
    """The most multiplications."""


def read_conditions(hin: HIN, texts: Sequence[str]) -> dict[str, list[Filter]]:
    """Read conditions to try, such as "paper: year >= 2020", by node type.

    >>> from neupath import load
    >>> [str(own[0]) for own in read_conditions(load("toy"), ["venue: id = SIGMOD"]).values()]
    ['[id = "SIGMOD"]']
    """
    found: dict[str, list[Filter]] = {}
    for text in texts:
        word, colon, condition = text.partition(":")
        if not colon:
            raise QueryError(f"the condition {text[:100]!r} names no node type; write it as 'paper: year >= 2020'")
        nodes = hin.nodes[hin.schema.node_type(word.strip())]
        own = Filter(parse_condition(condition, nodes.column_names()))
        own.check(nodes)
        found.setdefault(nodes.node_type, []).append(own)
    return found


def steps_from(
    schema: Schema, node_type: str, conditions: Conditions = MappingProxyType({}), source_filter: Filter | None = None
) -> list[Step]:
    """List the steps away from a type: each relation, and all relations to one type together where there are several.

    Each leads to all nodes, or to those that meet a condition. `source_filter` is that of the nodes it starts from.

    >>> from neupath import load
    >>> [step.target for step in steps_from(load("toy").schema, "paper")]
    ['author', 'venue']
    """
    steps = [Step((link,)) for link in schema.links_from(node_type)]
    for target in schema.neighbours(node_type):
        links = schema.links(node_type, target)
        directed = node_type == target and any(link.relation.directed for link in links)
        if len(links) > 1 and not directed:
            steps.append(Step(links))
    return [
        Step(tuple(replace(link, source_filter=source_filter, target_filter=own) for link in step.links))
        for step in steps
        for own in (None, *conditions.get(step.target, ()))
    ]


def count_halves(
    schema: Schema, node_type: str, half_length: int, conditions: Conditions = MappingProxyType({})
) -> int:  # fmt: skip
    """Count the half-paths of up to `half_length` steps, without listing them."""
    ends = count_ends(node_type, half_length, lambda here: steps_from(schema, here, conditions))
    return sum(sum(ways.values()) for ways in ends[1:])


# ---- Symmetric meta-paths ------------------------------------------------------------------------
# Half-paths are prefixes of each other, so the search walks their tree and computes each prefix once, for the labelled
# nodes alone. It extends first the prefixes whose own meta-path explains the labels best, and never extends a prefix
# that leads nowhere from the labelled nodes.
def search_candidates(
    hin: HIN, pairs: Pairs, extent: Extent, progress: Progress = no_progress
) -> tuple[list[Candidate], SearchReport]:
    """Try symmetric meta-paths, the most promising first; return them with their features of the pairs.

    The same pairs and budget give the same candidates on any machine, because the budget counts work, not time.
    """
    search = _PrefixSearch(hin, pairs, extent, progress)
    search.run()
    report = SearchReport(
        len(search.candidates), search.total, search.too_large, search.leading_nowhere, search.stopped
    )
    return search.candidates, report


def sample_pairs(pairs: Pairs) -> Pairs:
    """Return the pairs of so many queries that the search for candidates takes all their nodes at once."""
    num_queries = len(np.unique(pairs.queries))
    mean_nodes = len(np.unique(np.concatenate([pairs.queries, pairs.targets]))) / num_queries
    return spread_queries(pairs, max(2, int(MOST_NODES / mean_nodes)))


def spread_queries(pairs: Pairs, most: int) -> Pairs:
    """Return the pairs of at most `most` queries, evenly spread over all."""
    queries = np.unique(pairs.queries)
    if len(queries) <= most:
        return pairs
    return pairs.of_queries(queries[np.linspace(0, len(queries) - 1, most).round().astype(int)])


@dataclass(order=True)
class _Prefix:
    """A half-path in the queue; its walk may have been dropped and is then walked again."""

    priority: tuple[float, int, int]
    steps: tuple[Step, ...] = field(compare=False)
    walk: Walk | None = field(compare=False)


class _PrefixSearch:
    def __init__(self, hin: HIN, pairs: Pairs, extent: Extent, progress: Progress) -> None:
        self.hin, self.pairs, self.progress = hin, pairs, progress
        self.half_length, self.conditions, self.budget = extent.max_length // 2, extent.conditions, extent.budget
        self.total = count_halves(hin.schema, pairs.node_type, self.half_length, self.conditions)
        self.walks = PairWalks(hin, pairs)
        self.start = self.walks.starts[pairs.node_type]
        self.candidates: list[Candidate] = []
        self.work, self.too_large, self.leading_nowhere, self.cached_bytes = 0, 0, 0, 0
        self.limit = self.budget
        self.stopped: str | None = None
        self.order = count()

    def run(self) -> None:
        queue = [_Prefix((0.0, 0, next(self.order)), (), self.start)]
        with ThreadPoolExecutor(2) as pool:
            while queue and not self.stopped:
                prefix = heapq.heappop(queue)
                walk = prefix.walk or self._walk_again(prefix.steps)
                self.cached_bytes -= prefix.walk.bytes if prefix.walk else 0
                length = len(prefix.steps) + 1
                last = prefix.steps[-1].target_filter if prefix.steps else None
                longer = [(*prefix.steps, step) for step in self._affordable(walk, length, last)]
                extended = pool.map(lambda steps: self._extend(walk, steps), longer)  # noqa: B023
                for steps, (longer_walk, candidate) in zip(longer, extended, strict=True):
                    quality = self._add(candidate)
                    if not len(longer_walk.indices):
                        self.leading_nowhere += self._count_extensions(steps[-1], length)
                    elif length < self.half_length:
                        fits = self.cached_bytes + longer_walk.bytes <= _MOST_BYTES
                        self.cached_bytes += longer_walk.bytes if fits else 0
                        priority = (-round(quality, 9), length, next(self.order))
                        heapq.heappush(queue, _Prefix(priority, steps, longer_walk if fits else None))
                self.progress("searching meta-paths", len(self.candidates), self.total)

    def _count_extensions(self, step: Step, length: int) -> int:
        """Count the half-paths that extend a prefix of some length, which ends with a step."""
        return count_halves(self.hin.schema, step.target, self.half_length - length, self.conditions)

    def _affordable(self, walk: Walk, length: int, last: Filter | None) -> list[Step]:
        """Return the steps to prefixes of some length that the budget allows, and charge their work to it."""
        chosen = []
        for step in steps_from(self.hin.schema, walk.end, self.conditions, last):
            if bound_entries(self.hin, walk, step) > MOST_ENTRIES:
                self.too_large += 1 + self._count_extensions(step, length)
                continue
            work = count_work(self.hin, walk, step)
            if self.work + work > self.limit:
                self.stopped = "an explanation is exact" if self.limit < self.budget else _SPENT
                break
            self.work += work
            chosen.append(step)
        return chosen

    def _extend(self, walk: Walk, steps: tuple[Step, ...]) -> tuple[Walk, Candidate]:
        longer = extend_walk(self.hin, walk, steps[-1])
        metapath = MetaPath(self.hin.schema, steps + tuple(step.reversed() for step in reversed(steps)))
        return longer, Candidate(metapath, self.walks.score(metapath, longer, longer))

    def _walk_again(self, steps: Iterable[Step]) -> Walk:
        walk = self.start
        for step in steps:
            self.work += count_work(self.hin, walk, step)
            walk = extend_walk(self.hin, walk, step)
        return walk

    def _add(self, candidate: Candidate) -> float:
        """Add a candidate; return how much of the labels it explains alone."""
        self.candidates.append(candidate)
        scores = self.pairs.scores
        best = max(explained_alone(values, scores) for values in candidate.features.values())
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


# ---- One-way meta-paths --------------------------------------------------------------------------
def search_one_way(hin: HIN, pairs: Pairs, extent: Extent) -> tuple[list[Candidate], SearchReport]:
    """Try meta-paths from queries to targets that are not walked out and back, the shortest first, within a budget."""
    schema, start, end, max_length = hin.schema, pairs.node_type, pairs.target_type, extent.max_length
    round_trips = 0 if pairs.is_across_types else count_halves(schema, start, max_length // 2)
    total = (
        sum(ways.get(end, 0) for ways in count_ends(start, max_length, partial(steps_from, schema))[1:]) - round_trips
    )
    walks = PairWalks(hin, pairs)
    candidates: list[Candidate] = []
    too_large, stopped = 0, None
    metapaths = (
        MetaPath(schema, steps)
        for length in range(1, max_length + 1)
        for steps in _sequences(schema, start, end, length)
    )
    for metapath in metapaths:
        if metapath.is_round_trip:
            continue
        if walks.work > extent.budget or len(candidates) >= _MOST_ONE_WAY:
            stopped = _SPENT
            break
        features = walks.features(metapath)
        if features:
            candidates.append(Candidate(metapath, features))
        else:
            too_large += 1
    return candidates, SearchReport(len(candidates), total, too_large, 0, stopped)


def _sequences(schema: Schema, here: str, end: str, length: int) -> Iterator[tuple[Step, ...]]:
    """List the sequences of `length` steps from one type to another, without dead ends."""
    if length == 0:
        yield ()
        return
    for step in steps_from(schema, here):
        if end in count_ends(step.target, length - 1, partial(steps_from, schema))[-1]:
            for rest in _sequences(schema, step.target, end, length - 1):
                yield (step, *rest)

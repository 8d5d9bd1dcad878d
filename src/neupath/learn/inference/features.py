"""Features: what given meta-paths say of labelled pairs, under every measure, in bounded memory."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from neupath.graph.hin import HIN, Floats
from neupath.graph.metapath import MetaPath, Step
from neupath.graph.nodes import Rows
from neupath.graph.schema import Schema
from neupath.learn.inference.candidates import (
    Candidate,
    CandidateSearch,
    Walk,
    count_ends,
    count_halves,
    entries_of,
    extend_walk,
    pair_features,
    start_walk,
    steps_from,
    work_of,
)
from neupath.learn.labels import Pairs

_MOST_NODES = 256
_MOST_ENTRIES = 30_000_000
_MOST_ONE_WAY = 2000
"""One-way meta-paths that are tried at most."""


def features_of(hin: HIN, metapaths: Iterable[MetaPath], pairs: Pairs) -> list[Candidate]:
    """Compute the features of given meta-paths for all pairs, in blocks of nodes; shared halves are walked once.

    A meta-path along which a block of nodes reaches too many others has none.
    """
    wanted = list(metapaths)
    columns: list[dict[str, Floats]] = [{} for _ in wanted]
    too_large: set[int] = set()
    for block in _blocks(pairs):
        rows = _Rows(hin, pairs.node_type, pairs.queries[block], pairs.targets[block])
        for place in sorted(range(len(wanted)), key=lambda p: _spelled(wanted[p])):
            found = {} if place in too_large else rows.features(wanted[place])
            if not found:
                too_large.add(place)
            for measure, values in found.items():
                columns[place].setdefault(measure, np.zeros(len(pairs)))[block] = values
    return [Candidate(path, {} if p in too_large else columns[p]) for p, path in enumerate(wanted)]


def _spelled(path: MetaPath) -> str:
    return "|".join(str(step.links) for step in path.steps)


def _blocks(pairs: Pairs) -> Iterator[NDArray[np.int64]]:
    """Cut pairs, query by query, into parts that name a limited number of nodes."""
    seen: set[int] = set()
    part: list[int] = []
    for at in np.argsort(pairs.queries, kind="stable").tolist():
        seen |= {int(pairs.queries[at]), int(pairs.targets[at])}
        part.append(at)
        if len(seen) >= _MOST_NODES:
            yield np.array(part)
            seen, part = set(), []
    if part:
        yield np.array(part)


class _Rows:
    """The walks from the nodes of some pairs; only those of the halves of the last path are kept."""

    def __init__(self, hin: HIN, node_type: str, queries: Rows, targets: Rows) -> None:
        self.hin, self.work = hin, 0
        nodes, where = np.unique(np.concatenate([queries, targets]), return_inverse=True)
        self.queries, self.targets = where[: len(queries)], where[len(queries) :]
        self.walks: dict[tuple[Step, ...], Walk] = {(): start_walk(hin, node_type, nodes)}

    def features(self, path: MetaPath) -> dict[str, Floats]:
        """Return every measure's scores of the pairs; nothing where too many nodes are reached."""
        left, right = halves_of(path)
        prefixes = {half[:size] for half in (left, right) for size in range(len(half) + 1)}
        self.walks = {steps: walk for steps, walk in self.walks.items() if steps in prefixes}
        walked = self._walk(left), self._walk(right)
        if walked[0] is None or walked[1] is None:
            return {}
        found = pair_features(walked[0], walked[1], self.queries, self.targets)
        if len(path) % 2:
            del found["hetesim"]  # its walkers would meet on edges, which are no nodes of the walk
        return found

    def _walk(self, steps: tuple[Step, ...]) -> Walk | None:
        if steps not in self.walks:
            before = self._walk(steps[:-1])
            if before is None or entries_of(self.hin, before, steps[-1]) > _MOST_ENTRIES:
                return None
            self.work += work_of(self.hin, before, steps[-1])
            self.walks[steps] = extend_walk(self.hin, before, steps[-1])
        return self.walks[steps]


def halves_of(path: MetaPath) -> tuple[tuple[Step, ...], tuple[Step, ...]]:
    """Return the steps from the query to the middle, and from the target to it.

    >>> from neupath import load
    >>> [len(half) for half in halves_of(load("toy").metapath("author-paper-venue-paper"))]
    [2, 1]
    """
    middle = (len(path) + 1) // 2
    return path.steps[:middle], path.reversed().steps[: len(path) - middle]


@dataclass(frozen=True)
class OneWay:
    """The one-way meta-paths that were tried, and how many there are."""

    candidates: list[Candidate]
    searched: CandidateSearch


def search_one_way(hin: HIN, pairs: Pairs, max_length: int, budget: int) -> OneWay:
    """Try meta-paths from a type to itself that are not walked out and back, the shortest first, within a budget."""
    total = _count_one_way(hin.schema, pairs.node_type, max_length)
    rows = _Rows(hin, pairs.node_type, pairs.queries, pairs.targets)
    found: list[Candidate] = []
    too_large, stopped = 0, None
    for path in _one_way(hin.schema, pairs.node_type, max_length):
        if rows.work > budget or len(found) >= _MOST_ONE_WAY:
            stopped = "the budget of work is spent"
            break
        features = rows.features(path)
        if features:
            found.append(Candidate(path, features))
        else:
            too_large += 1
    return OneWay(found, CandidateSearch(len(found), total, too_large, 0, stopped))


def _one_way(schema: Schema, node_type: str, max_length: int) -> Iterator[MetaPath]:
    for length in range(1, max_length + 1):
        for steps in _walked(schema, node_type, node_type, length):
            path = MetaPath(schema, steps)
            if not path.is_round_trip:
                yield path


def _walked(schema: Schema, here: str, end: str, length: int) -> Iterator[tuple[Step, ...]]:
    """List the sequences of so many steps from one type to another, without dead ends."""
    if length == 0:
        yield ()
        return
    for step in steps_from(schema, here):
        if end in count_ends(schema, step.target, length - 1)[-1]:
            for rest in _walked(schema, step.target, end, length - 1):
                yield (step, *rest)


def _count_one_way(schema: Schema, node_type: str, max_length: int) -> int:
    """Count them: all ways from the type to itself, less those walked out and back."""
    every = sum(ways.get(node_type, 0) for ways in count_ends(schema, node_type, max_length)[1:])
    return every - count_halves(schema, node_type, max_length // 2)

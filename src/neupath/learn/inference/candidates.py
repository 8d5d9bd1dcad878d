"""Candidates: the meta-paths that may explain some labels, searched best first under a budget of work."""

import heapq
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import count

import numpy as np
from numpy.typing import NDArray

from neupath._runtime.progress import Progress, no_progress
from neupath.engine.cache import cached
from neupath.engine.products import adjacency
from neupath.graph.hin import HIN, Csr, Floats
from neupath.graph.metapath import MetaPath, Step
from neupath.graph.nodes import Rows
from neupath.graph.schema import Schema
from neupath.learn.labels import Pairs

# ---- Walks ---------------------------------------------------------------------------------------
# A half-path H from the type of the queries gives each labelled node x three rows over the nodes of H's end type, which
# differ only in how a step is weighed: W[x] (path counts), U[x] (each step's rows sum to 1: a walk out), and C[x] (each
# step's columns sum to 1: the same walk, seen from its end). A meta-path is two half-paths with one end, H1 from the
# query and H2 from the target, the same one twice if it is symmetric; and every measure is a number of such rows:
#     pathsim   2⟨Wx,Wy⟩ / (⟨Wx,Wx⟩ + ⟨Wy,Wy⟩)      joinsim  ⟨Wx,Wy⟩ / √(⟨Wx,Wx⟩·⟨Wy,Wy⟩)
#     hetesim   ⟨Ux,Uy⟩ / √(⟨Ux,Ux⟩·⟨Uy,Uy⟩)        pcrw     ⟨Ux,Cy⟩        pathcount  ⟨Wx,Wy⟩
MEASURES_INFERRED = ("pathsim", "joinsim", "hetesim", "pcrw", "pathcount")
"""What can be inferred, in the order in which equally good ones are preferred."""

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Walk:
    """The rows of labelled nodes after a half-path: CSR with three values an entry, shape (nodes, nodes of the end)."""

    end: str
    width: int
    indptr: Ints
    indices: Ints
    values: Floats  # (entries, 3): W, U, C

    @property
    def arrays(self) -> tuple[Ints, Ints, Floats]:
        return self.indptr, self.indices, self.values

    @property
    def bytes(self) -> int:
        return self.indptr.nbytes + self.indices.nbytes + self.values.nbytes

    @property
    def is_empty(self) -> bool:
        return not len(self.indices)


def start_walk(hin: HIN, node_type: str, nodes: Rows) -> Walk:
    """Return the rows before any step: each node is where it is."""
    count = len(nodes)
    return Walk(node_type, hin.num_nodes(node_type), np.arange(count + 1), nodes.astype(np.int64), np.ones((count, 3)))


def work_of(hin: HIN, walk: Walk, step: Step) -> int:
    """Count the multiplications that one more step takes."""
    return int(np.diff(_step_matrix(hin, step)[0].indptr).astype(np.int64)[walk.indices].sum())


def entries_of(hin: HIN, walk: Walk, step: Step) -> int:
    """Bound the entries that the rows have after one more step."""
    degrees = np.diff(_step_matrix(hin, step)[0].indptr).astype(np.int64)
    totals = np.concatenate([[0], np.cumsum(degrees[walk.indices])])
    return int(np.minimum(totals[walk.indptr[1:]] - totals[walk.indptr[:-1]], hin.num_nodes(step.target)).sum())


def extend_walk(hin: HIN, walk: Walk, step: Step) -> Walk:
    """Walk one more step."""
    from neupath.learn.inference.feature_kernels import multiply_rows

    matrix, values = _step_matrix(hin, step)
    width = hin.num_nodes(step.target)
    return Walk(step.target, width, *multiply_rows(walk.arrays, (matrix.indptr, matrix.indices, values), width))


def _step_matrix(hin: HIN, step: Step) -> tuple[Csr, Floats]:
    """Return the edges of a step, and what each is worth to W, U and C; shape (edges, 3)."""

    def build() -> tuple[Csr, Floats]:
        matrix = adjacency(hin, step)
        row_sums: Floats = np.asarray(matrix.sum(axis=1)).repeat(np.diff(matrix.indptr))
        column_sums: Floats = np.asarray(matrix.sum(axis=0))[matrix.indices]
        return matrix, np.stack([matrix.data, _ratio(matrix.data, row_sums), _ratio(matrix.data, column_sums)], axis=1)

    return cached(hin, ("walked", step), build)


def pair_features(left: Walk, right: Walk, queries: Rows, targets: Rows) -> dict[str, Floats]:
    """Return every measure's score of pairs of labelled nodes, given as positions; shape (pairs,) each.

    `left` is walked from the queries, `right` from the targets. Where they are the same walk the meta-path is symmetric
    and all measures are defined; where not, only those for any path are.
    """
    from neupath.learn.inference.feature_kernels import pair_dots

    dots = pair_dots(left.arrays, right.arrays, queries, targets, left.width)
    both, met, walked = dots.T
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        out_norms = np.sqrt(_norms(left)[queries, 1] * _norms(right)[targets, 1])
        found = {"hetesim": _ratio(met, out_norms), "pcrw": walked, "pathcount": both}
        if left is right:
            own = _norms(left)[:, 0]
            found["pathsim"] = _ratio(2 * both, own[queries] + own[targets])
            found["joinsim"] = _ratio(both, np.sqrt(own[queries]) * np.sqrt(own[targets]))
    return {measure: np.where(np.isfinite(values).all(), values, np.nan) for measure, values in found.items()}


def _norms(walk: Walk) -> Floats:
    """Return the squared norms of each row of W and U; shape (nodes, 2)."""
    found = np.zeros((len(walk.indptr) - 1, 2))
    filled = np.flatnonzero(np.diff(walk.indptr))
    if len(filled):
        found[filled] = np.add.reduceat(walk.values[:, :2] ** 2, walk.indptr[filled])
    return found


def _ratio(a: Floats, b: Floats) -> Floats:
    return np.divide(a, b, out=np.zeros(len(a)), where=b > 0)


# ---- Candidates ----------------------------------------------------------------------------------
# Half-paths are prefixes of each other, so the search walks their tree and computes each prefix once, for the labelled
# nodes alone. The prefixes whose own meta-path explains the labels best are extended first; a prefix that leads nowhere
# from the labelled nodes is never extended.
BUDGET = 20_000_000_000
"""Multiplications after which a search stops: some two minutes on two cores."""
_MOST_NODES = 256
"""Labelled nodes that the search looks at; the best candidates are then computed for all."""
_MOST_ENTRIES = 30_000_000
_MOST_BYTES = 1 << 29
_SETTLE = 0.02
"""The share of the budget that is spent on other explanations once one is exact."""


@dataclass(frozen=True)
class CandidateSearch:
    """What a search tried."""

    tried: int
    total: int
    too_large: int = 0
    """Candidates left out because the labelled nodes reach too many others along them."""
    leading_nowhere: int = 0
    """Candidates left out because they go on from where no labelled node gets."""
    stopped: str | None = None
    """Why it ended before all were tried, if it did."""

    def plus(self, other: "CandidateSearch") -> "CandidateSearch":
        """Return what two searches tried together."""
        return CandidateSearch(
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
    hin: HIN, pairs: Pairs, half_length: int, budget: int = BUDGET, progress: Progress = no_progress
) -> tuple[list[Candidate], CandidateSearch, Pairs]:
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

    def report(self) -> CandidateSearch:
        return CandidateSearch(len(self.found), self.total, self.too_large, self.leading_nowhere, self.stopped)

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
                self.progress("searching meta-paths", len(self.found), self.total)

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

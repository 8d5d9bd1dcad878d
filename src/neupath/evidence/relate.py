"""Relate two nodes: every meta-path that joins them, with the score, its rank among the query's targets, and the paths.

The half-paths from both nodes are walked once each and meet in the middle, so that two vectors give the score along a
meta-path. Its rank needs the scores of all targets: one more vector, and the norms of all targets, which are computed
once per graph and half-path.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.sparse import csr_array, diags_array

from neupath._runtime.progress import check_cancelled
from neupath.engine.cache import cached
from neupath.engine.formula import Normalisation, normalised, rank_of
from neupath.engine.hits import check_whole
from neupath.engine.products import LARGEST, column_norms, multiplications, row_norms
from neupath.engine.walk import walk_rows
from neupath.errors import GraphError, QueryError, listed
from neupath.evidence.groups import PathGroup, PathNode, counted, joined, middle_of, node_at, shortened
from neupath.graph.hin import HIN, Csr, Floats, check_graph, html_table
from neupath.graph.metapath import Link, MetaPath, Step, count_ends
from neupath.graph.nodes import NodeRef, Rows, id_of, in_lines, one_line
from neupath.measures import (
    HeteSim,
    PathMeasure,
    PathSim,
    measure_named,
    read_measure,
    walk_measures,
)
from neupath.measures.path_measure import Leg

BUDGET = 2_000_000_000
"""Multiplications after which `relate` stops by default: some seconds."""
MOST_STEPS = 20
"""The most steps that `relate` takes."""
ROUNDING = 1e-12
"""Scores that differ by no more than this fraction count as equal."""
_STEP_WORK, _PATH_WORK = 20_000, 100_000  # what it costs to try one step, and to score one meta-path
_QUERY_SHARE, _TARGET_SHARE, _SCORE_SHARE = 0.2, 0.4, 0.6
"""The shares of the budget that are spent at most when the half-paths of the query, those of the target, and all scores
are known. The rest is for ranks, so that neither half nor the shortest meta-paths go without."""
_MOST_BYTES = 1 << 28  # bytes of half-paths that are kept at once
_HALF_PATH_BYTES = 1024  # what a half-path takes beside its counts
_MOST_PATHS = 200_000  # meta-paths that are scored and kept
_MEET_ROWS, _DENSE = 64, 8  # half-paths that are compared at once; dense multiplications in the time of a sparse one
_BLOCK_WORK = 1 << 25  # multiplications between two looks whether the work is cancelled


# ---- Results -------------------------------------------------------------------------------------
@dataclass(frozen=True)
class RelatedPath:
    """One meta-path that joins two nodes."""

    metapath: str
    measure: str
    score: float
    rank: int
    """The target's rank among those of the query along this meta-path; ties are in node order."""
    targets: int
    """How many targets the query has: nodes with a score above 0, without the query itself."""
    percentile: float
    """How many percent of these targets rank no higher, itself included: 100 for the first."""
    paths: int
    """The number of distinct paths."""
    group: PathGroup
    """The node in the middle through which most of the score runs."""
    steps: int
    """The length of the meta-path: 1 where an edge joins the two nodes."""

    def to_dict(self) -> dict[str, object]:
        group = self.group.to_dict()
        del group["instances"]
        return vars(self) | {"group": group}


@dataclass(frozen=True, repr=False)
class Related:
    """The meta-paths that join two nodes: edges first, then the shorter ones, then those with the higher rank."""

    query: PathNode
    target: PathNode
    max_steps: int
    metapaths: tuple[RelatedPath, ...]
    joining: int
    """How many meta-paths join the two nodes, listed or not; where not all were looked at, there may be more."""
    candidates: int
    """How many meta-paths of up to `max_steps` steps, each over one relation, the schema has between the two types, as
    far as the measure is defined on them."""
    unranked: int
    """How many join them but were not ranked, because the budget was spent on shorter ones."""
    complete: bool
    """Whether all candidates were looked at; otherwise the budget was spent, or they were too many to keep."""

    @property
    def summary(self) -> str:
        """Say in a sentence what joins them."""
        a, b = (shortened(node.label) for node in (self.query, self.target))
        if not self.joining and not self.complete:
            return f"No meta-path that was looked at joins {a} and {b}."
        if not self.joining:
            steps = f"{counted(self.max_steps, 'step')}, {'each ' * (self.max_steps > 1)}over one relation"
            return f"No meta-path of up to {steps}, gives {a} and {b} a score above 0."
        least = "" if self.complete else "at least "
        if not self.metapaths:
            number = f"{least.capitalize()}{counted(self.joining, 'meta-path')}"
            return f"{number} {'joins' if self.joining == 1 else 'join'} {a} and {b}."
        best = self.metapaths[0]
        others = f", one of {least}{self.joining:,} meta-paths that join them" if self.joining > 1 else ""
        if best.steps == 1:
            return f"An edge joins {a} and {b} directly: {best.metapath}{others}."
        standing = "is the best" if best.rank == 1 else f"ranks {best.rank:,}"
        return f"{b} {standing} of {counted(best.targets, 'target')} of {a} along {best.metapath}{others}."

    @property
    def left_out(self) -> str | None:
        """Say in a sentence what is not listed; None if everything is."""
        hidden = self.joining - self.unranked - len(self.metapaths)
        parts = []
        if hidden:
            label = shortened(self.target.label)
            standing = f" that are longer or along which {label} ranks no higher" if self.metapaths else ""
            parts.append(f"{counted(hidden, 'meta-path')}{standing}")
        if self.unranked:
            parts.append(f"{counted(self.unranked, 'meta-path')} that the budget was not enough to rank")
        if not self.complete:
            parts.append("meta-paths that were not looked at")
        return f"Not listed: {joined(parts)}." if parts else None

    def __repr__(self) -> str:
        lines = [
            f"  rank {path.rank:,} of {path.targets:,}  {path.measure} {path.score:.4g}  {one_line(path.metapath)}"
            for path in self.metapaths
        ]
        return in_lines(f"Related: {one_line(self.summary, 200)}", *lines, *filter(None, [self.left_out]))

    def _repr_html_(self) -> str:
        rows = [
            (path.metapath, f"{path.rank:,} of {path.targets:,}", path.measure, f"{path.score:.4g}", f"{path.paths:,}")
            for path in self.metapaths
        ]
        return html_table(("meta-path", "rank", "measure", "score", "paths"), rows, self.summary)

    def to_dict(self) -> dict[str, object]:
        """Return what `relate --json` prints."""
        return {
            "query": self.query.to_dict(),
            "target": self.target.to_dict(),
            "max_steps": self.max_steps,
            "summary": self.summary,
            "metapaths": [path.to_dict() for path in self.metapaths],
            "joining": self.joining,
            "candidates": self.candidates,
            "unranked": self.unranked,
            "complete": self.complete,
            "left_out": self.left_out,
        }


# ---- relate --------------------------------------------------------------------------------------
def relate(
    hin: HIN,
    query: NodeRef,
    target: NodeRef,
    *,
    max_steps: int = 4,
    measure: str | PathMeasure | None = None,
    query_type: str | None = None,
    target_type: str | None = None,
    limit: int = 20,
    budget: int | None = BUDGET,
) -> Related:
    """Find the meta-paths that join two nodes: edges between them first, then shorter meta-paths before longer ones.

    Each step of a meta-path follows one relation. Of equally long ones, that comes first along which the target ranks
    higher for the query, then the one with the higher score. The budget counts work, not time, so the result is the
    same on any machine.

    Parameters
    ----------
    hin
        The graph.
    query, target
        The two nodes, by id or unambiguous name; they may be of different types.
    max_steps
        The most steps of a meta-path, 20 at most.
    measure
        A name in `MEASURES`, or a measure with parameters of its own, along every meta-path on which it is defined. By
        default PathSim along symmetric meta-paths of even length, and HeteSim along all others.
    query_type, target_type
        The types of the two nodes, where nodes of several types are called so.
    limit
        How many meta-paths to list; the others are counted.
    budget
        How many multiplications to spend, on short meta-paths first; None for as many as it takes.

    >>> from neupath import load
    >>> related = relate(load("toy"), "Mike", "Jim")
    >>> [(path.metapath, round(path.score, 4), path.rank, path.group.node.id) for path in related.metapaths]
    [('author-paper-venue-paper-author', 0.0826, 3, 'SIGMOD')]
    >>> relate(load("toy"), "Mike", "SIGMOD", max_steps=2).summary
    'SIGMOD is the best of 2 targets of Mike along author-paper-venue.'
    """
    max_steps, limit = check_whole("max_steps", max_steps, 1, MOST_STEPS), check_whole("limit", limit, 0)
    budget = None if budget is None else check_whole("budget", budget, 1)
    _check_measure(measure)
    check_graph(hin)
    source_type = _type_of(hin, query, query_type, "query_type")
    end_type = _type_of(hin, target, target_type, "target_type")
    x, y = hin.row(source_type, query), hin.row(end_type, target)
    if (source_type, x) == (end_type, y):
        raise QueryError(f"both nodes are {source_type} {id_of(query)!r}; give two different nodes")
    search = _MetaPathSearch(hin, (source_type, x), (end_type, y), max_steps, _choice(measure), budget)
    with np.errstate(over="ignore", invalid="ignore"):  # `_checked` raises on overflow
        ranked = search.rank(search.join())
    shown = tuple(search.describe(path) for path in ranked[:limit])
    return Related(
        node_at(hin, source_type, x), node_at(hin, end_type, y), max_steps, shown, search.joining,
        search.candidates, search.joining - len(ranked), search.complete,
    )  # fmt: skip


def _check_measure(measure: str | PathMeasure | None) -> None:
    if measure is None:
        return
    kind = read_measure(measure)[0] if isinstance(measure, str) else type(measure)
    if not issubclass(kind, PathMeasure):
        raise QueryError(
            f"{kind.name} looks at the whole graph, not along meta-paths; relate takes one of "
            f"{listed(walk_measures())}",
            parameter="measure",
        )
    if not kind.counts_walks:
        raise QueryError(
            f"{kind.name} would list the paths along every meta-path, which takes too long for relate; use dwpc",
            parameter="measure",
        )


def _type_of(hin: HIN, node: NodeRef, node_type: str | None, parameter: str) -> str:
    if node_type is not None:
        return hin.schema.node_type(node_type)
    fitting = hin.types_with([node], repr(id_of(node)))
    if len(fitting) == 1:
        return fitting[0]
    raise QueryError(
        f"{id_of(node)!r} could be of type {' or '.join(fitting)}; say which with ‹{parameter}›",
        parameter=parameter,
        allowed=fitting,
    )


Choice = Callable[[MetaPath, bool], PathMeasure | None]
"""Returns the measure along a meta-path, given whether it is a round trip; None where it is not defined."""


def _choice(measure: str | PathMeasure | None) -> Choice:
    if measure is None:
        return lambda metapath, is_round_trip: PathSim(metapath) if is_round_trip else HeteSim(metapath)

    def choose(metapath: MetaPath, is_round_trip: bool) -> PathMeasure | None:
        scorer = over(measure, metapath)
        return None if scorer.symmetric_only and not is_round_trip else scorer

    return choose


def over(measure: str | PathMeasure, metapath: str | MetaPath) -> PathMeasure:
    """Return the measure of a name, or a copy of a measure, over a meta-path."""
    if isinstance(measure, str):
        return measure_named(measure, metapath)
    params: Any = measure.params() | {"metapath": metapath}
    return type(measure)(**params)


# ---- Half-paths ----------------------------------------------------------------------------------
@dataclass(frozen=True)
class _HalfPath:
    """The steps away from a node, and the number of walks along them to each node of the type they end at."""

    steps: tuple[Step, ...]
    end: str
    counts: Floats


@dataclass
class _Candidate:
    """A meta-path that joins the two nodes, and what is known of it."""

    scorer: PathMeasure
    metapath: MetaPath
    legs: tuple[Leg, ...]
    counts: tuple[Floats, Floats]
    """The number of walks from the query and from the target to each node in the middle."""
    numerator: float = 0.0
    query_norm: float = 0.0
    score: float = 0.0
    rank: int = 0
    targets: int = 0

    @property
    def middle(self) -> int:
        return middle_of(len(self.legs))

    @property
    def paths(self) -> int:
        return int(_dot(*self.counts))

    @property
    def order(self) -> tuple[int, float, str]:
        """Short meta-paths first, then high scores."""
        return len(self.legs), -self.score, str(self.metapath)


def _dot(first: Floats, second: Floats) -> float:
    """Return the product of two vectors, in one thread: those of BLAS wait for each other where cores are busy."""
    return float(np.einsum("i,i", first, second))


@dataclass
class _MetaPathSearch:
    """The search for the meta-paths between two nodes, within a budget."""

    hin: HIN
    query: tuple[str, int]
    target: tuple[str, int]
    max_steps: int
    choose: Choice
    budget: int | None
    work: int = 0
    joining: int = 0
    candidates: int = 0
    complete: bool = True
    only_round_trips: bool = False
    _vectors: dict[tuple[object, ...], Floats] = field(default_factory=dict)
    _vector_bytes: int = 0
    _charged: set[tuple[object, ...]] = field(default_factory=set)

    def _affords(self, work: int, share: float = 1.0) -> bool:
        """Charge some work to a share of the budget, if it is not more than what is left."""
        if self.budget is not None and self.work + work > share * self.budget:
            return False
        self.work += work
        return True

    # -- Which meta-paths join the two nodes
    def join(self) -> list[_Candidate]:
        """Return the meta-paths along which the two nodes have paths, with their scores."""
        links = self.hin.schema.links_from(self.query[0])
        one_step = [MetaPath(self.hin.schema, (Step((link,)),)) for link in links[:1]]
        self.only_round_trips = any(self.choose(path, False) is None for path in one_step)
        starts = self._half_paths(self.query, middle_of(self.max_steps), _QUERY_SHARE)
        backs = self._half_paths(self.target, self.max_steps - self.max_steps // 2, _TARGET_SHARE)
        self.candidates = self._count_candidates()
        found: list[_Candidate] = []
        for length in range(1, self.max_steps + 1):
            middle = middle_of(length)
            for node_type in self.hin.schema.node_types:
                lefts, rights = (
                    [half for half in halves if half.end == node_type]
                    for halves in (starts.get(middle, ()), backs.get(length - middle, ()))
                )
                for left, right in self._meet(lefts, rights):
                    check_cancelled()
                    if len(found) >= _MOST_PATHS or not self._affords(_PATH_WORK, _SCORE_SHARE):
                        self.complete = False
                        break
                    found.append(self._scored(left, right))
        self.joining = len(found)
        return found

    def _half_paths(self, start: tuple[str, int], depth: int, share: float) -> dict[int, list[_HalfPath]]:
        """Walk all half-paths of up to `depth` steps that lead somewhere; return them by their number of steps."""
        halves = {0: [_HalfPath((), start[0], self._start(start))]}
        num_bytes = 0
        for length in range(1, depth + 1):
            halves[length] = []
            for half in halves[length - 1]:
                for link in self.hin.schema.links_from(half.end):
                    check_cancelled()
                    back = _ones(self.hin, link.reversed())
                    if num_bytes > _MOST_BYTES or not self._affords(_STEP_WORK + back.nnz, share):
                        self.complete = False
                        return halves
                    counts = np.asarray(back @ half.counts, dtype=np.float64)
                    if counts.any():
                        num_bytes += counts.nbytes + _HALF_PATH_BYTES
                        halves[length].append(_HalfPath((*half.steps, Step((link,))), link.target, counts))
        return halves

    def _meet(self, lefts: Sequence[_HalfPath], rights: Sequence[_HalfPath]) -> Iterator[tuple[_HalfPath, _HalfPath]]:
        """Yield the pairs that end at a common node and that the measure is defined on, while the budget lasts."""
        blocks: list[tuple[Sequence[_HalfPath], Sequence[_HalfPath]]]
        if self.only_round_trips:
            same = {half.steps: [half] for half in rights}
            blocks = [([half], same[half.steps]) for half in lefts if half.steps in same]
        else:
            blocks = [(lefts[at : at + _MEET_ROWS], rights) for at in range(0, len(lefts) if rights else 0, _MEET_ROWS)]
        columns, stacked = np.empty((0, 0)), None
        for some, others in blocks:
            check_cancelled()
            if others is not stacked:
                columns, stacked = np.stack([half.counts for half in others]).T, others
            rows = np.stack([half.counts for half in some])
            if not self._affords(1 + rows.size * len(others) // _DENSE, _SCORE_SHARE):
                self.complete = False
                return
            counts = rows @ columns
            for i, j in np.argwhere(counts > 0):
                if not np.isfinite(counts[i, j]):
                    raise QueryError("these two nodes are joined by more paths than can be counted; allow fewer steps")
                yield some[i], others[j]

    def _scored(self, left: _HalfPath, right: _HalfPath) -> _Candidate:
        steps = left.steps + tuple(step.reversed() for step in reversed(right.steps))
        metapath = MetaPath(self.hin.schema, steps)
        scorer = self.choose(metapath, left.steps == right.steps)
        assert scorer is not None  # `_meet` yields only round trips where it would be
        path = _Candidate(scorer, metapath, tuple(scorer.legs(metapath)), (left.counts, right.counts))
        self._score(path)
        return path

    def _count_candidates(self) -> int:
        """Count the meta-paths of the schema between the two types on which the measure is defined."""
        schema, (source, _), (end, _) = self.hin.schema, self.query, self.target
        if self.only_round_trips:
            halves = count_ends(source, self.max_steps // 2, schema.links_from)
            return sum(sum(ways.values()) for ways in halves[1:]) if source == end else 0
        return sum(ways.get(end, 0) for ways in count_ends(source, self.max_steps, schema.links_from)[1:])

    # -- Scores
    def _score(self, path: _Candidate) -> None:
        forward, backward = self._forward(path.legs[: path.middle]), self._backward(path.legs[path.middle :])
        path.numerator = _dot(forward, backward)
        if path.scorer.normalisation == Normalisation.NONE:
            path.score = _checked(path.numerator, path)
            return
        if path.scorer.meets_at_nodes(path.metapath):
            path.query_norm, target_norm = _dot(forward, forward), _dot(backward, backward)
        else:
            k = len(path.legs) // 2
            to_edges, from_edges = self._edge_norms(path)
            path.query_norm = _dot(self._forward(path.legs[:k]) ** 2, to_edges)
            target_norm = _dot(self._backward(path.legs[k + 1 :]) ** 2, from_edges)
        for number in (path.numerator, path.query_norm, target_norm):
            _checked(number, path)
        numerators, norms = np.array([path.numerator]), np.array([target_norm])
        path.score = float(normalised(path.scorer.formula, numerators, path.query_norm, norms)[0])

    def _forward(self, legs: tuple[Leg, ...]) -> Floats:
        """Return the row of the query after some legs."""
        if not legs:
            return self._start(self.query)
        return self._vector(("forward", *legs), legs[-1].reversed(), lambda: self._forward(legs[:-1]))

    def _backward(self, legs: tuple[Leg, ...]) -> Floats:
        """Return the column of the target before some legs."""
        if not legs:
            return self._start(self.target)
        return self._vector(("backward", *legs), legs[0], lambda: self._backward(legs[1:]))

    def _start(self, node: tuple[str, int]) -> Floats:
        vector = np.zeros(self.hin.num_nodes(node[0]))
        vector[node[1]] = 1.0
        return vector

    def _vector(self, key: tuple[object, ...], leg: Leg, before: Callable[[], Floats]) -> Floats:
        vector = self._vectors.get(key)
        if vector is None:
            check_cancelled()
            vector = _product(self.hin, leg, before())
            self.work += _leg_matrix(self.hin, leg).nnz
            self._vector_bytes += vector.nbytes
            if self._vector_bytes > _MOST_BYTES:
                self._vectors.clear()
                self._vector_bytes = vector.nbytes
            self._vectors[key] = vector
        return vector

    def _edge_norms(self, path: _Candidate) -> tuple[Floats, Floats]:
        """Return what a walk to each end of the middle step adds to the norm of a path that meets on its edges.

        Each edge has one source and one target. So ‖L·E‖² = Σ_u L[u]²·‖E[u]‖² for the matrix E from nodes to edges.
        """
        step = path.metapath.steps[len(path.legs) // 2]

        def build() -> tuple[Floats, Floats]:
            one_step = MetaPath(self.hin.schema, (step,))
            halves = over(path.scorer, one_step).halves(self.hin, one_step)
            assert halves.rights is not None
            return row_norms(halves.lefts[0]), column_norms(halves.rights[0])

        return cached(self.hin, ("edge norms", path.scorer.name, _settings(path.scorer), step), build)

    # -- Ranks
    def rank(self, paths: list[_Candidate]) -> list[_Candidate]:
        """Rank the target among all targets along as many meta-paths as the budget allows; return them, best first."""
        chosen = [path for path in sorted(paths, key=lambda path: path.order) if self._affords_rank(path)]
        prefix: tuple[Leg, ...] | None = None
        vector = self._start(self.query)
        for path in sorted(chosen, key=lambda path: (path.scorer.name, str(path.metapath))):
            check_cancelled()
            if path.legs[:-1] != prefix:  # in this order, most paths begin like the one before
                prefix = path.legs[:-1]
                vector = self._forward(prefix[: path.middle])
                for leg in prefix[path.middle :]:
                    vector = _product(self.hin, leg.reversed(), vector)
            self._place(path, _product(self.hin, path.legs[-1].reversed(), vector))
        return sorted(chosen, key=lambda path: (len(path.metapath), path.rank, path.order))

    def _affords_rank(self, path: _Candidate) -> bool:
        check_cancelled()
        if self.budget is None:
            return True
        work = sum(_leg_matrix(self.hin, leg).nnz for leg in path.legs[path.middle :])
        key = self._norms_key(path)
        if path.scorer.normalisation != Normalisation.NONE and key not in self._charged:
            work += _norms_work(self._norms_chain(path)[0])
        if not self._affords(work):
            return False
        self._charged.add(key)
        return True

    def _place(self, path: _Candidate, numerators: Floats) -> None:
        """Rank the target of a meta-path, given the numerators of all its targets."""
        scores = numerators
        if path.scorer.normalisation != Normalisation.NONE:
            reached = np.flatnonzero(numerators > 0)
            scores = np.zeros(len(numerators))
            scores[reached] = normalised(
                path.scorer.formula, numerators[reached], path.query_norm, self._norms(path)[reached]
            )
        left_out = np.array([self.query[1]]) if self.query[0] == self.target[0] else np.zeros(0, np.int64)
        rank, path.targets = rank_of(scores, self.target[1], left_out, ROUNDING)
        assert rank is not None  # `_checked` raises where its score would be 0
        path.rank = rank

    def _norms_key(self, path: _Candidate) -> tuple[object, ...]:
        length = len(path.legs)
        return "norms", path.scorer.name, _settings(path.scorer), path.metapath.steps[length // 2 :], length % 2

    def _norms_chain(self, path: _Candidate) -> tuple[list[Csr], Floats | None]:
        """Return the matrices from the targets to the middle, and the weights of the nodes there."""
        if path.scorer.meets_at_nodes(path.metapath):
            legs, weights = path.legs[path.middle :], None
        else:
            legs, weights = path.legs[len(path.legs) // 2 + 1 :], self._edge_norms(path)[1]
        return [_leg_matrix(self.hin, leg.reversed()) for leg in reversed(legs)], weights

    def _norms(self, path: _Candidate) -> Floats:
        """Return the norm of every target."""
        return cached(self.hin, self._norms_key(path), lambda: chain_norms(*self._norms_chain(path)))

    # -- Results
    def describe(self, path: _Candidate) -> RelatedPath:
        """Return a ranked meta-path with the heaviest group of its paths."""
        weights = self._forward(path.legs[: path.middle]) * self._backward(path.legs[path.middle :])
        row = int(np.argmax(weights))
        share = float(weights[row] / weights.sum())
        node = node_at(self.hin, path.metapath.node_types[path.middle], row)
        return RelatedPath(
            metapath=str(path.metapath),
            measure=path.scorer.name,
            score=path.score,
            rank=path.rank,
            targets=path.targets,
            percentile=100.0 * (path.targets - path.rank + 1) / path.targets,
            paths=path.paths,
            group=PathGroup(node, int(path.counts[0][row] * path.counts[1][row]), share * path.score, share),
            steps=len(path.metapath),
        )


def _checked(number: float, path: _Candidate) -> float:
    """Return a sum of weights; raise if it overflows or underflows, since its path joins the two nodes."""
    if 0.5 * number > 0 and number <= LARGEST:
        return number
    amount = "more" if number else "less"
    raise GraphError(
        f"paths along {path.metapath} add up to {amount} than a float can hold; allow fewer steps, or scale the weights"
    )


def _settings(scorer: PathMeasure) -> str:
    return str({name: getattr(scorer, name) for name in scorer.settings})


# ---- Matrices and norms --------------------------------------------------------------------------
def _leg_matrix(hin: HIN, leg: Leg) -> Csr:
    return cached(hin, ("leg", leg), lambda: leg.matrix(hin)) if leg.is_scaled else leg.matrix(hin)


def _product(hin: HIN, leg: Leg, vector: Floats) -> Floats:
    return np.asarray(_leg_matrix(hin, leg) @ vector, dtype=np.float64)


def _ones(hin: HIN, link: Link) -> Csr:
    """Return the edges of a link, each with the weight 1."""
    matrix = hin.matrix(link)
    if cached(hin, ("all ones", link.relation), lambda: bool((matrix.data == 1).all())):
        return matrix  # which is not cached here, because a graph may have thousands of relations
    ones = csr_array((np.ones(matrix.nnz), matrix.indices, matrix.indptr), shape=matrix.shape)
    return cached(hin, ("ones", link), lambda: ones)


def chain_norms(chain: Sequence[Csr], weights: Floats | None = None) -> Floats:
    """Return Σ_v P[y,v]²·weights[v] for every row y of the product P of a chain, without the product.

    With two matrices A and B it computes the rows of A·B block by block, or B·diag(weights)·Bᵀ where that is less work.

    >>> a, b = csr_array([[1.0, 2.0], [0.0, 1.0]]), csr_array([[1.0], [3.0]])
    >>> chain_norms([a, b])
    array([49.,  9.])
    """
    if not chain:
        assert weights is not None
        return weights
    first, rest = chain[0], list(chain[1:])
    if weights is not None:
        rest = [*rest, csr_array(diags_array(np.sqrt(weights)))]
    if not rest:
        return row_norms(first)
    norms = np.zeros(first.shape[0])
    by_gram = len(rest) == 1 and _gram_work(first, rest[0]) < multiplications(first, rest[0])
    gram = csr_array(rest[0] @ rest[0].T) if by_gram else None
    for rows in _row_blocks(first, rest):
        check_cancelled()
        part = first[rows] if gram is not None else walk_rows([first, *rest], rows)
        other = part if gram is None else part @ gram
        norms[rows] = np.asarray(other.multiply(part).sum(axis=1)).ravel()
    norms.flags.writeable = False
    return norms


def _gram_work(first: Csr, second: Csr) -> int:
    """Bound the multiplications of first·(second·secondᵀ)."""
    per_column = np.bincount(second.indices, minlength=second.shape[1]).astype(np.int64)
    return int((per_column**2).sum()) + first.nnz * first.shape[1]


def _norms_work(chain: Sequence[Csr]) -> int:
    """Bound the multiplications of `chain_norms`."""
    if len(chain) < 2:
        return sum(matrix.nnz for matrix in chain)
    work = multiplications(chain[0], chain[1])
    if len(chain) == 2:
        return min(work, _gram_work(chain[0], chain[1]))
    entries = min(work, chain[0].shape[0] * chain[1].shape[1])
    for matrix in chain[2:]:
        work += int(entries * matrix.nnz / max(1, matrix.shape[0]))
        entries = min(work, chain[0].shape[0] * matrix.shape[1])
    return work


def _row_blocks(first: Csr, rest: Sequence[Csr]) -> list[Rows]:
    """Cut the rows of a chain into blocks of bounded work and memory."""
    count = first.shape[0]
    widest = max(matrix.shape[1] for matrix in rest)
    blocks = 1 + max(multiplications(first, rest[0]) // _BLOCK_WORK, count * widest // _BLOCK_WORK)
    step = max(1, -(-count // blocks))
    return [np.arange(at, min(at + step, count)) for at in range(0, count, step)]

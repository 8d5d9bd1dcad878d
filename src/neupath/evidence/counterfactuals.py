"""What if: the fewest edges or nodes whose removal, or addition, moves a target out of a query's k best, or into them.

A measure sees the graph through half-walks: those from the query and from each target to the middle of the meta-path.
`counterfactual_problem` lists them once, with the edges or nodes that each needs. Switching some of these off gives
the exact scores of the changed graph without building it. A greedy search finds a set, smaller sets are excluded by a
bound or by branch and bound within a budget, and whatever is returned is checked by changing the graph and searching
again.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from neupath._runtime.progress import check_cancelled
from neupath.engine.formula import rank_of
from neupath.engine.hits import check_whole, score_text
from neupath.engine.scorer import Scorer
from neupath.errors import QueryError, listed
from neupath.evidence import counterfactual_kernels as kernels
from neupath.evidence.counterfactual_problem import (
    EDGES,
    Additions,
    Element,
    Ints,
    Problem,
    Removals,
    check_new_node,
)
from neupath.evidence.groups import PathNode, node_at, shortened
from neupath.evidence.relate import over
from neupath.graph.hin import HIN, Floats
from neupath.graph.metapath import MetaPath
from neupath.graph.nodes import NodeRef, id_of, in_lines
from neupath.measures import PathMeasure, read_measure, walk_measures

BUDGET = 4_000_000_000
"""The work for one question by default, in half-walks that are added up: at most some ten seconds."""
_PROOF_SHARE = 20  # so much less than on finding a set is spent on proving that none is smaller
_WORK_AT_ONCE = 10_000_000  # between two looks at the budget, or at whether the question is cancelled
_DEEPEST_BOUND = 32  # the largest set that the bound can exclude
_MOST_LIFTS = 500  # elements far from the two nodes that the greedy search tries
_MOST_SHOWN = 20  # elements that a repr lists
_LARGEST_BLIND = 3  # the largest set to look for where the greedy search finds none


# ---- Results -------------------------------------------------------------------------------------
@dataclass(frozen=True)
class ChangedSet:
    """Elements that are changed together, and where the target stands then: its rank is None without any path."""

    elements: tuple[Element, ...]
    rank: int | None
    score: float

    def to_dict(self) -> dict[str, object]:
        elements = [element.to_dict() for element in self.elements]
        return {"size": len(elements), "elements": elements, "rank": self.rank, "score": self.score}


@dataclass(frozen=True, repr=False)
class WhatIf:
    """What moves a target out of, or into, the k best of a query."""

    query: PathNode
    target: PathNode
    metapath: str
    measure: str
    k: int
    change: str
    """ "remove" or "add"."""
    by: str
    """What is removed or added: "edges", or a node type."""
    rank: int | None
    """The rank of the target before; None without any path."""
    score: float
    smallest: ChangedSet | None
    """The smallest set that was found; None where no set does it, or none was found."""
    at_least: int
    """No set of fewer elements does it; of additions, none of those that were tried."""
    singles: tuple[ChangedSet, ...]
    """Single changes with the largest effect on the rank, then on the score."""
    reason: str | None = None
    """Why there is no set, as a sentence."""

    @property
    def title(self) -> str:
        """The question in words."""
        best = "as the best hit" if self.k == 1 else f"among the {self.k:,} best"
        ends = f"{shortened(self.target.label)} {best} of {shortened(self.query.label)}"
        return f"{ends} by {self.metapath}, {self.measure}"

    @property
    def now(self) -> str:
        """Where the target stands before any change."""
        place = "no path" if self.rank is None else f"rank {self.rank:,}"
        return f"{place}, score {score_text(self.score)}"

    @property
    def summary(self) -> str:
        """What the smallest set does, and whether a smaller one is excluded. Without a set, the reason."""
        if self.smallest is None:
            return str(self.reason)
        count = len(self.smallest.elements)
        which = "this" if count == 1 else f"these {count:,}"
        one, several = ("edge", "edges") if self.by == EDGES else (self.by, f"{self.by} nodes")
        verb = "without" if self.change == "remove" else "with"
        rank = "no path is left" if self.smallest.rank is None else f"rank {self.smallest.rank:,}"
        tried = "" if self.change == "remove" or self.optimal else " of the additions tried"
        proof = f"a smaller set needs at least {self.at_least}{tried}"
        if self.is_smallest_tried:
            proof = f"no smaller set{tried} does it"
        return f"{verb} {which} {one if count == 1 else several}: {rank} ({proof})"

    def __repr__(self) -> str:
        elements = [] if self.smallest is None else self.smallest.elements
        shown = [f"  {element}" for element in elements[:_MOST_SHOWN]]
        more = [f"  and {len(elements) - len(shown):,} more"] if len(elements) > len(shown) else []
        return in_lines(f"WhatIf: {self.title}", f"  now: {self.now}", self.summary, *shown, *more)

    @property
    def optimal(self) -> bool:
        """Whether no smaller set does it, by proof; several additions are never proven, as not all are tried."""
        return self.is_smallest_tried and (self.change == "remove" or self.at_least == 1)

    @property
    def is_smallest_tried(self) -> bool:
        """Whether no smaller set of the changes that were tried does it."""
        return self.smallest is not None and len(self.smallest.elements) <= self.at_least

    def to_dict(self) -> dict[str, object]:
        """Return what `whatif --json` prints."""
        return {
            "query": self.query.to_dict(), "target": self.target.to_dict(), "metapath": self.metapath,
            "measure": self.measure, "k": self.k, "change": self.change, "by": self.by, "rank": self.rank,
            "score": self.score, "smallest": None if self.smallest is None else self.smallest.to_dict(),
            "optimal": self.optimal, "at_least": self.at_least, "reason": self.reason,
            "singles": [single.to_dict() for single in self.singles],
        }  # fmt: skip


# ---- The question --------------------------------------------------------------------------------
def what_if(
    hin: HIN,
    metapath: str | MetaPath,
    query: NodeRef,
    target: NodeRef,
    *,
    measure: str | PathMeasure = "pathsim",
    k: int = 10,
    remove: str | None = None,
    add: str | None = None,
    limit: int = 10,
    budget: int = BUDGET,
) -> WhatIf:
    """Find the fewest edges, or nodes, whose change moves a target out of the k best of a query, or into them.

    Every edge of the relations on the meta-path may be removed, also one of another target, which may overtake without
    it. Edges are added from the target to nodes that the query reaches; a new node is linked to the target, to the
    query where the meta-path starts as it ends, and to one node that the query reaches. The set and every single change
    in the result are verified by changing the graph and searching again.

    Parameters
    ----------
    hin
        The graph.
    metapath
        The meta-path, as a text or a `MetaPath`.
    query, target
        The two nodes, by id or unambiguous name.
    measure
        A name in `MEASURES`, or a measure with parameters of its own.
    k
        How many hits count as the best: the target's rank must become larger than k, or at most k.
    remove
        "edges", or the type of the nodes to remove. "edges" by default where the target is among the k best.
    add
        "edges", or the type of the nodes to add. "edges" by default where the target is not.
    limit
        How many single changes to list.
    budget
        How much work to spend on finding a set, a twentieth as much on proving it smallest, and as much on checking
        single changes. Less may leave open whether a set, or a smaller one, exists, and list fewer single changes.

    >>> from neupath import load
    >>> answer = what_if(load("toy"), "APVPA", "Mike", "Mary", k=2, remove="paper")
    >>> answer.rank, [str(paper) for paper in answer.smallest.elements], answer.smallest.rank, answer.optimal
    (2, ['Mary-SIGMOD-1', 'Mary-SIGMOD-2'], None, True)
    """
    k, limit, budget = check_whole("k", k, 1), check_whole("limit", limit, 0), check_whole("budget", budget, 1)
    scorer = _made(measure, metapath).fit(hin)
    check_counts_walks(scorer)
    path = scorer.metapath_
    path.require_plain_edges("what-if", hin.parallel_relations)
    x, y = check_question(hin, path, query, target, remove, add)
    rank, score = rank_and_score(scorer, x, y)
    is_hit = rank is not None and rank <= k
    if remove is None and add is None:
        remove, add = (EDGES, None) if is_hit else (None, EDGES)
    by = _checked_kind(path, remove if remove is not None else add or EDGES)
    answer = WhatIf(
        node_at(hin, path.source, x), node_at(hin, path.target, y), str(path), scorer.name, k,
        "add" if remove is None else "remove", by, rank, score, None, 0, (),
    )  # fmt: skip
    label, query_label = answer.target.label, answer.query.label
    if remove is not None:
        if not is_hit:
            where = "has no path to it" if rank is None else f"has rank {rank:,}"
            return replace(answer, reason=f"{label} is not among the {k:,} best of {query_label}: it {where}")
        changes: Removals | Additions = Removals.of(hin, path, by, x, y)
    else:
        if is_hit:
            return replace(answer, reason=f"{label} is among the {k:,} best of {query_label} already, at rank {rank}")
        changes = Additions.of(hin, path, by, x, y)
    return _ChangeSearch(scorer, changes, x, y, answer, budget).run(limit)


def check_counts_walks(scorer: PathMeasure) -> None:
    """Raise if a measure leaves walks out."""
    if not scorer.counts_walks:
        raise QueryError(f"what-if follows walks, and {scorer.name} leaves some out; use dwpc", parameter="measure")


def check_question(
    hin: HIN, path: MetaPath, query: NodeRef, target: NodeRef, remove: str | None, add: str | None
) -> tuple[int, int]:  # fmt: skip
    """Raise an error for a question that has no answer; return the rows of the query and the target."""
    if remove is not None and add is not None:
        raise QueryError("give either ‹remove› or ‹add›, not both", parameter="add")
    x, y = hin.row(path.source, query), hin.row(path.target, target)
    if path.source == path.target and x == y:
        raise QueryError(f"{id_of(query)!r} is both the query and the target; give two nodes")
    if remove is not None:
        _checked_kind(path, remove)
    elif add is not None and (by := _checked_kind(path, add)) != EDGES:
        check_new_node(path, by)
    return x, y


def _made(measure: str | PathMeasure, metapath: str | MetaPath) -> PathMeasure:
    is_named = isinstance(measure, str) and issubclass(read_measure(measure)[0], PathMeasure)
    if is_named or isinstance(measure, PathMeasure):
        return over(measure, metapath)
    name = measure if isinstance(measure, str) else getattr(measure, "name", repr(measure))
    raise QueryError(
        f"what-if follows walks along a meta-path, which {name} is not made of; use one of {listed(walk_measures())}",
        parameter="measure",
    )


def _checked_kind(path: MetaPath, kind: str) -> str:
    if kind == EDGES:
        return kind
    node_type = path.schema.node_type(kind) if isinstance(kind, str) else repr(kind)
    if node_type not in path.node_types:
        raise QueryError(
            f"{node_type} is not on {path}; give edges, or one of {listed(dict.fromkeys(path.node_types))}"
        )
    return node_type


def rank_and_score(scorer: Scorer, x: int, y: int) -> tuple[int | None, float]:
    """Return the rank of a target among the hits of a query, None at score 0, and its score; both nodes as rows."""
    scores = scorer.score_rows(np.array([x]))[0]
    return rank_of(scores, y, scorer.own_targets(np.array([x])))[0], float(scores[y])


def ranks_without_each(scorer: PathMeasure, query: NodeRef, target: NodeRef, by: str) -> Floats:
    """Return the ranks of a target after each removal of a single edge or node near it or the query.

    A target without any path has a rank of at least 2**53. `by` is "edges" or a node type on the meta-path.
    """
    hin, path = scorer.hin_, scorer.metapath_
    x, y = hin.row(path.source, query), hin.row(path.target, target)
    kind = _checked_kind(path, by)
    ends = node_at(hin, path.source, x), node_at(hin, path.target, y)
    answer = WhatIf(*ends, str(path), scorer.name, 1, "remove", kind, 1, 0.0, None, 0, ())
    return _ChangeSearch(scorer, Removals.of(hin, path, kind, x, y), x, y, answer, sys.maxsize).near_ranks()


def _losses(targets: int, depth: int) -> tuple[Floats, ...]:
    """Return room for what single removals take away at most; see `counterfactual_kernels.evaluate_each`."""
    return np.zeros((targets, depth)), np.zeros((targets, depth)), np.zeros((2, depth)), np.zeros(depth)


# ---- The search ----------------------------------------------------------------------------------
class _ChangeSearch:
    """Greedy search for a set, a bound on its size, and branch and bound between the two."""

    def __init__(
        self, scorer: PathMeasure, changes: Removals | Additions, x: int, y: int, answer: WhatIf, budget: int
    ) -> None:
        self._scorer, self._changes, self._x, self._y, self._answer = scorer, changes, x, y, answer
        self._budget = self._left = budget
        self._removes = answer.change == "remove"
        self._problem = Problem(scorer, changes, x, y)
        # Only removals of walks of fixed weights lower every M and norm, which the bound needs.
        self._is_bounded = self._removes and not self._problem.is_scaled
        depth, targets = _DEEPEST_BOUND, len(self._problem.rows)
        self._is_short = False  # whether the budget ended before all was tried
        self._k = min(answer.k, targets)  # no rank is larger
        self._losses = _losses(targets, depth)

    def run(self, limit: int) -> WhatIf:
        """Evaluate changes near the two nodes; all others only where no single one of these does it."""
        self._reset()
        near, far = self._candidates()
        results = self._evaluate(near)
        done = np.flatnonzero(self._is_done(results[:, 1]))
        if len(done):
            gaps = (1 if self._removes else -1) * (results[done, 0] - results[done, 2])
            chosen: list[int] | None = [int(near[done[np.argmin(gaps)]])]
            at_least = 1
        elif len(results) < len(near):
            chosen, at_least = None, 1
        else:
            chosen, at_least = self._smallest_set(near, far, results)
        smallest = None if chosen is None else self._verify(chosen)
        return replace(
            self._answer, smallest=smallest, at_least=at_least, singles=self._singles(near, results, limit),
            reason=self._describe_failure(chosen) if smallest is None else None,
        )  # fmt: skip

    def near_ranks(self) -> Floats:
        """Return the rank after each single change near the two nodes."""
        self._reset()
        ranks: Floats = self._evaluate(self._candidates()[0])[:, 1]
        return ranks

    def _reset(self) -> None:
        self._left -= self._problem.reset()

    def _smallest_set(self, near: Ints, far: Ints, results: Floats) -> tuple[list[int] | None, int]:
        """Return the smallest set that is found, and a lower bound on the size of any."""
        is_complete = self._work_of(far) <= min(self._left, self._budget // _PROOF_SHARE)
        if is_complete:
            more = self._evaluate(far)
            is_complete, far = len(more) == len(far), far[: len(more)]
            results = np.concatenate([results, more])
            done = np.flatnonzero(self._is_done(results[:, 1]))
            if len(done):
                return [int(np.concatenate([near, far])[done[0]])], 1
        else:
            far = far[:0]
        candidates = np.concatenate([near, far])
        greedy = self._greedy(candidates, results, len(near))
        if not is_complete:
            self._is_short = True
            return greedy, 1
        self._left = self._budget // _PROOF_SHARE
        return self._tighten(candidates, results, greedy)

    def _describe_failure(self, chosen: list[int] | None) -> str:
        answer, what = self._answer, self._answer.by if self._answer.by == EDGES else f"{self._answer.by} nodes"
        if chosen is not None:
            return "a set was found, but ties that depend on rounding decide it, so it is left out"
        if self._is_short:
            return f"no set was found with a budget of {self._budget:,}; a larger one may find one"
        if self._removes:
            return f"no {what} that were tried take {answer.target.label} out of the {answer.k:,} best"
        return f"no {what} that were tried bring {answer.target.label} into the {answer.k:,} best"

    # -- Single changes
    def _candidates(self) -> tuple[Ints, Ints]:
        """Return the elements on half-walks of the query and the target, and all others that matter."""
        starts, targets, touches_query = self._problem.touched
        element = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
        near = touches_query.copy()
        near[element[targets == self._problem.target]] = True
        matters = np.zeros(self._problem.count + 1, np.bool_)
        if self._problem.is_scaled:  # by sums of weights, also those of edges on no half-walk
            for column in self._problem.entries[1:]:
                matters[column] = True
        matters[:-1] |= np.diff(starts) > 0
        return np.flatnonzero(near), np.flatnonzero(matters[:-1] & ~near)

    def _evaluate(self, candidates: Ints, losses: tuple[Floats, ...] | None = None) -> Floats:
        """Return (score, rank, k-th best other score) after each single change, of the first ones within the budget."""
        problem = self._problem
        results = np.zeros((len(candidates), 3))
        size = max(1, min(1024, _WORK_AT_ONCE // max(1, self._problem.work_of_all)))
        for start in range(0, len(candidates), size):
            check_cancelled()
            if self._left <= 0:
                self._is_short = True
                return results[:start]
            part = slice(start, start + size)
            self._left -= kernels.evaluate_each.run(
                len(results[part]) * problem.work_of_all,
                problem.arrays, self._scorer.formula, problem.rows, problem.target, candidates[part],
                problem.off, problem.base, problem.state, self._k, results[part], losses or self._losses,
            )  # fmt: skip
        return results

    def _work_of(self, candidates: Ints) -> int:
        """Estimate the work of evaluating each candidate alone."""
        problem = self._problem
        starts, targets, touches_query = problem.touched
        whole = self._problem.work_of_all
        if problem.is_scaled:
            return whole * len(candidates)
        lengths = np.concatenate([[0], np.cumsum(np.diff(problem.starts)[targets] + 24)])
        each = lengths[starts[1:]] - lengths[starts[:-1]]
        each[touches_query] = whole
        return int(each[candidates].sum())

    def _singles(self, candidates: Ints, results: Floats, limit: int) -> tuple[ChangedSet, ...]:
        """Verify and return the single changes with the largest effect, as many as the budget allows."""
        candidates = candidates[: len(results)]
        sign = 1 if self._removes else -1
        before = self._answer.rank if self._answer.rank is not None else np.inf
        is_distinct = np.isin(candidates, self._changes.distinct)
        candidates, results = candidates[is_distinct], results[is_distinct]
        ranks = np.minimum(results[:, 1], 2**53)
        helps = np.flatnonzero(sign * ranks > sign * min(before, 2**53))
        more = np.flatnonzero((ranks == min(before, 2**53)) & (sign * results[:, 0] < sign * self._answer.score))
        order = [
            part[np.lexsort((candidates[part], sign * results[part, 0], -sign * ranks[part]))] for part in (helps, more)
        ]
        work = sum(len(entries.rows) for entries in self._changes.entries.values()) + len(self._problem.right[0])
        chosen = candidates[np.concatenate(order)[: min(limit, self._budget // _PROOF_SHARE // max(1, work))]]
        return tuple(self._changed_set([int(element)]) for element in chosen)

    # -- Sets
    def _is_done(self, ranks: Any) -> Any:
        return (ranks > self._k) == self._removes

    def _greedy(self, candidates: Ints, results: Floats, num_near: int) -> list[int] | None:
        """Change the element that closes the gap to the k-th best most, again and again; then undo what is superfluous.

        The gap is the target's score less the k-th best other score. Besides the elements near the two nodes, those
        count that move the target alone.
        """
        problem, chosen = self._problem, list[int]()
        sign = 1 if self._removes else -1
        rank = 2**60 if self._answer.rank is None else self._answer.rank
        lifts = num_near + np.flatnonzero(sign * results[num_near:, 1] > sign * rank)[:_MOST_LIFTS]
        pool = np.concatenate([candidates[:num_near], candidates[lifts]])
        current = np.concatenate([results[:num_near], results[lifts]])
        unused = _losses(len(problem.rows), 1)
        is_done, last_gap = False, np.inf
        while len(pool):
            gaps = sign * (current[:, 0] - current[:, 2])
            done = np.flatnonzero(self._is_done(current[:, 1]))
            is_done = len(done) > 0
            at = int(done[0]) if is_done else int(np.argmin(gaps))
            if not is_done and not self._removes and gaps[at] >= last_gap:
                break
            last_gap = float(gaps[at])
            chosen.append(int(pool[at]))
            problem.off[pool[at]] ^= 1
            if is_done:
                break
            pool = np.delete(pool, at)
            self._reset()
            current = self._evaluate(pool, unused)
            if len(current) < len(pool):
                break
        if is_done:
            self._drop_superfluous(chosen)
        problem.off[chosen] ^= 1
        self._reset()
        return chosen if is_done else None

    def _drop_superfluous(self, chosen: list[int]) -> None:
        for element in list(chosen):
            if self._left <= 0:
                return
            self._problem.off[element] ^= 1
            self._reset()
            if self._is_done(self._rank()):
                chosen.remove(element)
            else:
                self._problem.off[element] ^= 1

    def _rank(self) -> float:
        problem = self._problem
        return float(kernels.standing.run(
            len(problem.rows),
            self._scorer.formula, problem.base_norm[0], problem.base, problem.rows, problem.target,
            np.empty(self._k),
        )[1])  # fmt: skip

    def _tighten(self, candidates: Ints, results: Floats, greedy: list[int] | None) -> tuple[list[int] | None, int]:
        """Look for a set smaller than the greedy one; return the smallest set and a lower bound on its size."""
        most = _LARGEST_BLIND if greedy is None else len(greedy) - 1
        gaps = (1 if self._removes else -1) * (results[:, 0] - results[:, 2])
        ordered = candidates[np.argsort(gaps, kind="stable")]
        size = self._first_open_size(2 if self._changes.largest_proof else 1)
        while size <= min(most, len(candidates), self._changes.largest_proof) and self._left > 0:
            chosen = self._find(self._relevant(ordered, size), size)
            if chosen is None:
                break
            if chosen:
                return chosen, size
            size = self._first_open_size(size + 1)
        return greedy, size if greedy is None else min(size, len(greedy))

    def _first_open_size(self, size: int) -> int:
        """Return the smallest number of removals, from `size` on, that the bound does not exclude."""
        while self._is_bounded and size <= _DEEPEST_BOUND and 0 <= self._count_crossers(size)[0] < self._k:
            size += 1
        return size

    def _count_crossers(self, size: int) -> tuple[int, NDArray[np.int8]]:
        problem, crossers = self._problem, np.zeros(len(self._problem.rows), np.int8)
        count = kernels.mark_crossers.run(
            size * size * len(problem.rows),
            self._scorer.formula, problem.base_norm[0], problem.base, problem.target, size, self._losses,
            crossers,
        )  # fmt: skip
        return count, crossers

    def _relevant(self, candidates: Ints, size: int) -> Ints:
        """Leave out elements that touch neither of the two nodes nor a target that so many removals may move before."""
        if not self._is_bounded or size > _DEEPEST_BOUND:
            return candidates
        count, crossers = self._count_crossers(size)
        if count < 0:
            return candidates
        starts, targets, touches_query = self._problem.touched
        matters = touches_query.copy()
        element = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
        matters[element[(crossers[targets] > 0) | (targets == self._problem.target)]] = True
        relevant: Ints = candidates[matters[candidates]]
        return relevant

    def _find(self, candidates: Ints, size: int) -> list[int] | None:
        """Return a set of this size, an empty list if no set does it, or None if the budget ends."""
        problem = self._problem
        check_cancelled()
        chosen, count, work = kernels.find_set.run(
            comb(len(candidates), size) * problem.work_of_all,
            problem.arrays, self._scorer.formula, problem.rows, problem.target, candidates, size,
            self._k, self._removes, self._is_bounded and size <= _DEEPEST_BOUND, problem.off, problem.base,
            problem.state, self._losses, self._left,
        )  # fmt: skip
        self._left -= work
        return None if count < 0 else [int(element) for element in chosen[:count]]

    # -- Claims
    def _changed_set(self, elements: Sequence[int]) -> ChangedSet:
        """Change the graph, search again, and return where the target stands."""
        scorer = self._scorer.bind(self._changes.apply(elements))
        rank, score = rank_and_score(scorer, self._x, self._y)
        described = tuple(self._changes.describe(element, number) for number, element in enumerate(elements, 1))
        return ChangedSet(described, rank, score)

    def _verify(self, elements: Sequence[int]) -> ChangedSet | None:
        changed = self._changed_set(sorted(elements))
        rank = np.inf if changed.rank is None else changed.rank
        return changed if self._is_done(rank) else None

"""Why a combination scores two nodes as it does: the share of each meta-path, and of each path instance in it."""

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice, pairwise
from typing import Any

import numpy as np

from neupath.engine.cache import cached
from neupath.engine.products import Normalisation
from neupath.engine.scorer import Scorer
from neupath.errors import QueryError
from neupath.graph.hin import HIN, Csr, Floats
from neupath.graph.metapath import MetaPath, Step, arrow
from neupath.graph.nodes import Id
from neupath.measures import Combination, PathMeasure, measure_named

# ---- Explanation


@dataclass(frozen=True)
class PathNode:
    """A node on a path."""

    node_type: str
    id: Id
    name: str | None

    @property
    def label(self) -> str:
        return self.name or str(self.id)

    def to_dict(self) -> dict[str, object]:
        return {"node_type": self.node_type, "id": self.id, "name": self.name}


@dataclass(frozen=True)
class PathInstance:
    """One path from the query to the target.

    `weight` is what it adds to the numerator: the product of what the measure gives each step, for path counts the
    number of parallel edges or their weight. `share` is what it adds to the score. `links` are the relations it
    follows, such as "-writes->".
    """

    nodes: tuple[PathNode, ...]
    links: tuple[str, ...]
    weight: float
    share: float

    def to_dict(self) -> dict[str, object]:
        return {
            "nodes": [node.to_dict() for node in self.nodes],
            "links": list(self.links),
            "weight": self.weight,
            "share": self.share,
        }


@dataclass(frozen=True)
class Explanation:
    """Why two nodes have their score: its parts, and the path instances that make it up."""

    query: PathNode
    target: PathNode
    metapath: str
    node_types: tuple[str, ...]
    measure: str
    normalisation: Normalisation
    score: float
    numerator: float
    """M[x,y], the paths between the two, weighted as the measure does."""
    query_norm: float
    """M[x,x], what normalises by the query."""
    target_norm: float
    """M[y,y], what normalises by the target."""
    instances: tuple[PathInstance, ...]
    num_instances: int
    """How many distinct paths there are, shown or not."""

    @property
    def num_hidden(self) -> int:
        return self.num_instances - len(self.instances)

    @property
    def hidden_weight(self) -> float:
        return max(0.0, self.numerator - sum(i.weight for i in self.instances)) if self.num_hidden else 0.0

    @property
    def hidden_share(self) -> float:
        """What the paths not shown add to the score; with the shares of those shown it makes the score."""
        return max(0.0, self.score - sum(i.share for i in self.instances)) if self.num_hidden else 0.0

    @property
    def formula(self) -> str:
        """The score as a calculation: "2 × 5 / (5 + 5)"."""
        m, dx, dy = (f"{value:.6g}" for value in (self.numerator, self.query_norm, self.target_norm))
        if self.normalisation == Normalisation.DICE:
            return f"2 × {m} / ({dx} + {dy})"
        return f"{m} / √({dx} × {dy})" if self.normalisation == Normalisation.COSINE else m

    def to_dict(self) -> dict[str, object]:
        """Return what `explain --json` prints."""
        normalised = self.normalisation != Normalisation.NONE
        return {
            "query": self.query.to_dict(),
            "target": self.target.to_dict(),
            "metapath": self.metapath,
            "measure": self.measure,
            "score": self.score,
            "formula": self.formula,
            "numerator": self.numerator,
            "denominators": [self.query_norm, self.target_norm] if normalised else [],
            "instances": [instance.to_dict() for instance in self.instances],
            "more": {"instances": self.num_hidden, "weight": self.hidden_weight, "share": self.hidden_share},
        }


def explain(
    hin: HIN,
    metapath: str | MetaPath,
    query: Id,
    target: Id,
    *,
    measure: str | PathMeasure = "pathsim",
    limit: int = 10,
) -> Explanation:
    """Find the path instances that make two nodes similar, heaviest first, ties in node order.

    Only the paths shown are ever listed one by one: the others are counted and summed, so millions of them are no harm.

    >>> from neupath import load
    >>> why = explain(load("toy"), "APVPA", "Mike", "Mary", limit=1)
    >>> why.formula, why.num_instances, [node.label for node in why.instances[0].nodes]
    ('2 × 4 / (5 + 5)', 4, ['Mike', 'Mike-SIGMOD-1', 'SIGMOD', 'Mary-SIGMOD-1', 'Mary'])
    """
    if limit < 0:
        raise QueryError(f"limit is {limit}; show 0 or more paths")
    if isinstance(measure, PathMeasure):  # one with settings of its own, such as DWPC's damping
        settings: Any = measure.params() | {"metapath": metapath}
        scorer = type(measure)(**settings).fit(hin)
    else:
        scorer = measure_named(measure, metapath).fit(hin)
    path = scorer.metapath_
    start, end = hin.find(path.source, query), hin.find(path.target, target)
    key = ("steps", scorer.name, str(scorer.params()), path)
    walks = _Walks(cached(hin, key, lambda: scorer.step_matrices(hin, path)), start, end)
    score = float(scorer.score_rows(np.array([start]))[0, end])
    unit = score / walks.total if walks.total else 0.0
    return Explanation(
        query=_node(hin, path.source, start),
        target=_node(hin, path.target, end),
        metapath=str(path),
        node_types=path.node_types,
        measure=scorer.name,
        normalisation=scorer.normalisation,
        score=score,
        numerator=walks.total,
        query_norm=float(scorer.factors_.left_norms[start]),
        target_norm=float(scorer.factors_.right_norms[end]),
        instances=tuple(_instance(hin, scorer, rows, weight, unit) for rows, weight in islice(walks.heaviest(), limit)),
        num_instances=walks.count,
    )


def _node(hin: HIN, node_type: str, row: int) -> PathNode:
    nodes = hin.nodes[node_type]
    return PathNode(node_type, nodes.id(row), nodes.name(row))


def _instance(hin: HIN, scorer: PathMeasure, rows: Sequence[int], weight: float, unit: float) -> PathInstance:
    path = scorer.metapath_
    return PathInstance(
        nodes=tuple(_node(hin, t, row) for t, row in zip(path.node_types, rows, strict=True)),
        links=tuple(_link(hin, step, u, v) for step, (u, v) in zip(path.steps, pairwise(rows), strict=True)),
        weight=weight,
        share=weight * unit,
    )


def _link(hin: HIN, step: Step, source: int, target: int) -> str:
    """Name the relations of a step that join these two nodes."""
    if len(step.links) == 1:
        return arrow(step.links)
    return arrow(tuple(link for link in step.links if hin.matrix(link)[source, target] > 0))


class _Walks:
    """The walks between two rows along a chain of matrices: their number, total weight, and the heaviest one by one.

    Going forward from the start, only rows that are reached are kept; going back from the end, each gets the number,
    the sum and the maximum of the weights of the walks from it to the end.
    """

    def __init__(self, chain: Sequence[Csr], start: int, end: int) -> None:
        self._reached = [np.array([start])]  # the rows at each position
        self._steps: list[Csr] = []  # the chain, cut down to rows reached; columns renumbered likewise
        for matrix in chain:
            step = matrix[self._reached[-1]]
            self._reached.append(np.unique(step.indices))
            self._steps.append(step[:, self._reached[-1]])
        last = self._reached[-1]
        ending = (last == end).astype(np.float64)
        sums, counts, self._best = ending, ending, [ending]
        for step in reversed(self._steps):
            sums, counts = step @ sums, (step > 0).astype(np.float64) @ counts
            self._best.insert(0, _best_onward(step, self._best[0]))
        if not np.isfinite([sums[0], counts[0]]).all():
            raise QueryError("these two nodes are joined by more paths than can be counted; use a shorter meta-path")
        self.total, self.count = float(sums[0]), int(counts[0])

    def heaviest(self) -> Iterator[tuple[tuple[int, ...], float]]:
        """Yield (rows, weight) of each walk, heaviest first, ties in row order.

        The queue holds beginnings of walks by the weight of their best continuation, so the first whole walk that comes
        out of it is the heaviest left.
        """
        queue: list[tuple[float, tuple[int, ...], float]] = []
        if self._best[0][0] > 0:
            queue.append((-float(self._best[0][0]), (0,), 1.0))
        while queue:
            _, places, weight = heapq.heappop(queue)
            position = len(places) - 1
            if position == len(self._steps):
                yield tuple(int(rows[at]) for rows, at in zip(self._reached, places, strict=True)), weight
                continue
            step, onward = self._steps[position], self._best[position + 1]
            for at in range(step.indptr[places[-1]], step.indptr[places[-1] + 1]):
                column = int(step.indices[at])
                if onward[column] > 0:
                    extended = weight * float(step.data[at])
                    heapq.heappush(queue, (-extended * float(onward[column]), (*places, column), extended))


def _best_onward(step: Csr, best: Floats) -> Floats:
    """Return for each row the maximum of step[row, column] · best[column]."""
    products = step.data * best[step.indices]
    result = np.zeros(step.shape[0])
    filled = np.flatnonzero(np.diff(step.indptr))
    if len(filled):
        result[filled] = np.maximum.reduceat(products, step.indptr[filled])
    return result


# ---- Why a combination scores two nodes as it does


@dataclass(frozen=True)
class ExplainedPart:
    """One meta-path of a combination: its weight, what it adds to the score, and the paths behind it."""

    weight: float
    share: float
    explanation: Explanation


@dataclass(frozen=True)
class CombinedExplanation:
    """The parts of one score, the largest first; their shares add up to it."""

    query: Id
    target: Id
    score: float
    parts: tuple[ExplainedPart, ...]

    def to_dict(self) -> dict[str, object]:
        """Return what `explain --model --json` prints."""
        parts = [
            {"weight": part.weight, "share": part.share} | part.explanation.to_dict() | {"instances": _shares(part)}
            for part in self.parts
        ]
        return {"query": self.query, "target": self.target, "score": self.score, "parts": parts}


def _shares(part: ExplainedPart) -> list[dict[str, object]]:
    """Return the instances of a part with their shares of the whole score."""
    return [instance.to_dict() | {"share": part.weight * instance.share} for instance in part.explanation.instances]


def explain_combination(combination: Combination, query: Id, target: Id, limit: int = 10) -> CombinedExplanation:
    """Find the meta-paths and path instances that make two nodes similar under a combination.

    >>> from neupath import load
    >>> from neupath.measures import Part
    >>> both = Combination([Part("pathsim", "APVPA", 0.75), Part("pathsim", "APA", 0.25)]).fit(load("toy"))
    >>> [(part.explanation.metapath, round(part.share, 4)) for part in explain_combination(both, "Mike", "Mary").parts]
    [('author-paper-venue-paper-author', 0.6), ('author-paper-author', 0.0)]
    """
    parts = []
    for part, measure in zip(combination.parts, combination.measures_, strict=True):
        why = explain(combination.hin_, measure.metapath_, query, target, measure=measure, limit=limit)
        parts.append(ExplainedPart(part.weight, part.weight * why.score, why))
    parts.sort(key=lambda part: -part.share)
    first = parts[0].explanation
    return CombinedExplanation(first.query.id, first.target.id, sum(part.share for part in parts), tuple(parts))


@dataclass(frozen=True)
class AttentionExplanation:
    """What a learned model looked at to score two nodes: paths, each with its share of the model's attention."""

    query: Id
    target: Id
    measure: str
    score: float
    looks: Sequence[Any]

    def to_dict(self) -> dict[str, object]:
        """Return what `explain --model --json` prints."""
        paths = [asdict(look) | {"metapath": look.metapath} for look in self.looks]
        return {
            "query": self.query, "target": self.target, "measure": self.measure, "score": self.score, "paths": paths
        }  # fmt: skip


def explain_model(scorer: Scorer, query: Id, target: Id, limit: int = 10) -> CombinedExplanation | AttentionExplanation:
    """Find what a saved combination or model says of two nodes.

    >>> from neupath import load
    >>> from neupath.measures import Part
    >>> explain_model(Combination([Part("pathsim", "APVPA", 1.0)]).fit(load("toy")), "Mike", "Mary").score
    0.8
    """
    if isinstance(scorer, Combination):
        return explain_combination(scorer, query, target, limit)
    if not hasattr(scorer, "attention_paths"):
        raise QueryError(f"the saved {scorer.name} shows no paths of its own; explain its meta-path instead")
    return AttentionExplanation(
        query, target, scorer.name, scorer.score(query, target), scorer.attention_paths(query, target, limit)
    )

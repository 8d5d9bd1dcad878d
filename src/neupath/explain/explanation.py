"""Explanations: the path instances, meta-paths or attention that make up the score of two nodes."""

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
from neupath.graph.nodes import Id, Rows
from neupath.measures import Combination, PathMeasure, measure_named


# ---- The explanation of one meta-path ------------------------------------------------------------
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
        return dict(vars(self))


@dataclass(frozen=True)
class PathInstance:
    """One path from the query to the target.

    `weight` is what it adds to the numerator: the product of the measure's entries at its steps, for path counts the
    number of parallel edges or their weights. `share` is what it adds to the score. `links` are the relations it
    follows, such as "-writes->".
    """

    nodes: tuple[PathNode, ...]
    links: tuple[str, ...]
    weight: float
    share: float

    def to_dict(self) -> dict[str, object]:
        return vars(self) | {"nodes": [node.to_dict() for node in self.nodes], "links": list(self.links)}


@dataclass(frozen=True)
class Explanation:
    """Why two nodes have their score: its formula, and the path instances that make it up."""

    query: PathNode
    target: PathNode
    metapath: str
    node_types: tuple[str, ...]
    measure: str
    normalisation: Normalisation
    score: float
    numerator: float
    """M[x,y], the paths between the two, as the measure weighs them."""
    query_norm: float
    """M[x,x], the norm of the query."""
    target_norm: float
    """M[y,y], the norm of the target."""
    instances: tuple[PathInstance, ...]
    num_instances: int
    """The number of distinct paths, shown or hidden."""

    @property
    def num_hidden(self) -> int:
        return self.num_instances - len(self.instances)

    @property
    def hidden_weight(self) -> float:
        return max(0.0, self.numerator - sum(i.weight for i in self.instances)) if self.num_hidden else 0.0

    @property
    def hidden_share(self) -> float:
        """What the hidden paths add to the score; all shares sum to the score."""
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

    Paths beyond the limit are counted and summed but never listed, so that millions of them cost little.

    Parameters
    ----------
    hin
        The graph.
    metapath
        The meta-path, as a text or a `MetaPath`.
    query, target
        The two nodes, by id or unambiguous name.
    measure
        A name in `MEASURES`, or a measure with parameters of its own, such as `DWPC("APA", damping=0.5)`.
    limit
        The number of paths to show.

    >>> from neupath import load
    >>> why = explain(load("toy"), "APVPA", "Mike", "Mary", limit=1)
    >>> why.formula, why.num_instances, [node.label for node in why.instances[0].nodes]
    ('2 × 4 / (5 + 5)', 4, ['Mike', 'Mike-SIGMOD-1', 'SIGMOD', 'Mary-SIGMOD-1', 'Mary'])
    """
    if limit < 0:
        raise QueryError(f"‹limit› is {limit}; show 0 or more paths", parameter="limit")
    scorer = _over(measure, metapath).fit(hin)
    path = scorer.metapath_
    x, y = hin.row(path.source, query), hin.row(path.target, target)
    key = ("explain", scorer.name, str(scorer.params()), path)
    walks = _Walks(cached(hin, key, lambda: scorer.step_matrices(hin, path)), x, y)
    score = float(scorer.score_targets(x, np.array([y]))[0])
    share_of_weight = score / walks.total if walks.total else 0.0
    return Explanation(
        query=_node(hin, path.source, x),
        target=_node(hin, path.target, y),
        metapath=str(path),
        node_types=path.node_types,
        measure=scorer.name,
        normalisation=scorer.normalisation,
        score=score,
        numerator=walks.total,
        query_norm=float(scorer.factors_.left_norms[x]),
        target_norm=float(scorer.factors_.right_norms[y]),
        instances=tuple(
            _instance(hin, path, rows, weight, weight * share_of_weight)
            for rows, weight in islice(walks.heaviest(), limit)
        ),
        num_instances=walks.count,
    )


def _over(measure: str | PathMeasure, metapath: str | MetaPath) -> PathMeasure:
    """Return the measure of a name, or a copy of a measure, over a meta-path."""
    if isinstance(measure, str):
        return measure_named(measure, metapath)
    params: Any = measure.params() | {"metapath": metapath}
    return type(measure)(**params)


def _node(hin: HIN, node_type: str, row: int) -> PathNode:
    nodes = hin.nodes[node_type]
    return PathNode(node_type, nodes.id(row), nodes.name(row))


def _instance(hin: HIN, path: MetaPath, rows: Sequence[int], weight: float, share: float) -> PathInstance:
    return PathInstance(
        nodes=tuple(_node(hin, t, row) for t, row in zip(path.node_types, rows, strict=True)),
        links=tuple(_link(hin, step, u, v) for step, (u, v) in zip(path.steps, pairwise(rows), strict=True)),
        weight=weight,
        share=share,
    )


def _link(hin: HIN, step: Step, source: int, target: int) -> str:
    """Name the relations of a step that join two nodes."""
    if len(step.links) == 1:
        return arrow(step.links)
    return arrow(tuple(link for link in step.links if hin.matrix(link)[source, target] > 0))


# ---- Walks between two rows ----------------------------------------------------------------------
class _Walks:
    """The walks between two rows along a chain of matrices: their number, total weight, and the heaviest one by one.

    A forward pass finds the rows that walks from the start can visit at each position. A backward pass gives each of
    them the number, the sum and the maximum of the weights of the walks from it to the end.
    """

    def __init__(self, chain: Sequence[Csr], start: int, end: int) -> None:
        self._rows = [np.array([start])]  # that walks visit at each position
        self._steps: list[_Step] = []  # the entries between these rows
        for matrix in chain:
            visited, step = _step_from(matrix, self._rows[-1])
            self._rows.append(visited)
            self._steps.append(step)
        ending = (self._rows[-1] == end).astype(np.float64)
        sums, counts, self._best = ending, ending, [ending]
        for step in reversed(self._steps):
            sums = step.add_up(step.weights * sums[step.columns])
            counts = step.add_up((step.weights > 0) * counts[step.columns])
            self._best.insert(0, step.best(step.weights * self._best[0][step.columns]))
        if not np.isfinite([sums[0], counts[0]]).all():
            raise QueryError("these two nodes are joined by more paths than can be counted; use a shorter meta-path")
        self.total, self.count = float(sums[0]), int(counts[0])

    def heaviest(self) -> Iterator[tuple[tuple[int, ...], float]]:
        """Yield (rows, weight) of each walk, heaviest first, ties in row order.

        The queue orders beginnings of walks by the weight of their best continuation, so the first whole walk that it
        returns is the heaviest one left.
        """
        queue: list[tuple[float, tuple[int, ...], float]] = []
        if self._best[0][0] > 0:
            queue.append((-float(self._best[0][0]), (0,), 1.0))
        while queue:
            _, places, weight = heapq.heappop(queue)
            position = len(places) - 1
            if position == len(self._steps):
                yield tuple(int(rows[at]) for rows, at in zip(self._rows, places, strict=True)), weight
                continue
            step, onward = self._steps[position], self._best[position + 1]
            for at in range(step.starts[places[-1]], step.starts[places[-1] + 1]):
                column = int(step.columns[at])
                if onward[column] > 0:
                    extended = weight * float(step.weights[at])
                    heapq.heappush(queue, (-extended * float(onward[column]), (*places, column), extended))


@dataclass(frozen=True)
class _Step:
    """The entries of a matrix from some of its rows: those of the i-th are at [starts[i], starts[i+1]).

    `columns` are places among the columns that the step reaches.
    """

    starts: Rows
    columns: Rows
    weights: Floats

    def add_up(self, values: Floats) -> Floats:
        """Return the sum of each row's values, added in their order, which scipy's product follows, too."""
        rows = np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))
        return np.bincount(rows, values, len(self.starts) - 1).astype(np.float64)

    def best(self, values: Floats) -> Floats:
        """Return the maximum of each row's values."""
        result = np.zeros(len(self.starts) - 1)
        filled = np.flatnonzero(np.diff(self.starts))
        if len(filled):
            result[filled] = np.maximum.reduceat(values, self.starts[filled])
        return result


def _step_from(matrix: Csr, rows: Rows) -> tuple[Rows, _Step]:
    """Return the columns that some rows of a matrix reach, ascending, and their entries.

    scipy's indexing does this, too, and takes ten times as long where rows are few.
    """
    firsts = matrix.indptr[rows].astype(np.int64)
    lengths = matrix.indptr[rows + 1] - firsts
    starts = np.concatenate([[0], np.cumsum(lengths)])
    places = np.arange(starts[-1]) + np.repeat(firsts - starts[:-1], lengths)
    reached, columns = np.unique(matrix.indices[places], return_inverse=True)
    return reached.astype(np.int64), _Step(starts, columns, matrix.data[places])


# ---- Combinations and learned models -------------------------------------------------------------
@dataclass(frozen=True)
class ExplainedPart:
    """One meta-path of a combination: its weight, what it adds to the score, and the paths behind it."""

    weight: float
    share: float
    explanation: Explanation

    def to_dict(self) -> dict[str, object]:
        """Return the part with the shares of its instances in the whole score."""
        instances = self.explanation.instances
        shares = [instance.to_dict() | {"share": self.weight * instance.share} for instance in instances]
        return {"weight": self.weight, "share": self.share} | self.explanation.to_dict() | {"instances": shares}


@dataclass(frozen=True)
class CombinedExplanation:
    """The parts of one score, the largest first; their shares add up to it."""

    query: Id
    target: Id
    score: float
    parts: tuple[ExplainedPart, ...]

    def to_dict(self) -> dict[str, object]:
        parts = [part.to_dict() for part in self.parts]
        return {"query": self.query, "target": self.target, "score": self.score, "parts": parts}


def explain_combination(combination: Combination, query: Id, target: Id, limit: int = 10) -> CombinedExplanation:
    """Find the meta-paths of a fitted combination that make two nodes similar, with up to `limit` paths each."""
    parts = []
    for part, measure in zip(combination.parts, combination.measures_, strict=True):
        explanation = explain(combination.hin_, measure.metapath_, query, target, measure=measure, limit=limit)
        parts.append(ExplainedPart(part.weight, part.weight * explanation.score, explanation))
    parts.sort(key=lambda part: -part.share)
    first = parts[0].explanation
    return CombinedExplanation(first.query.id, first.target.id, sum(part.share for part in parts), tuple(parts))


@dataclass(frozen=True)
class AttentionExplanation:
    """What a learned model attends to when it scores two nodes: paths, each with its share of the attention."""

    query: Id
    target: Id
    measure: str
    score: float
    paths: Sequence[Any]

    def to_dict(self) -> dict[str, object]:
        paths = [asdict(path) | {"metapath": path.metapath} for path in self.paths]
        return {
            "query": self.query, "target": self.target, "measure": self.measure, "score": self.score, "paths": paths
        }  # fmt: skip


def explain_model(scorer: Scorer, query: Id, target: Id, limit: int = 10) -> CombinedExplanation | AttentionExplanation:
    """Explain the score of two nodes under a combination or a learned model.

    Parameters
    ----------
    scorer
        A fitted combination, or a model that has `attention_paths`.
    query, target
        The two nodes, by id or unambiguous name.
    limit
        The number of paths to show.

    >>> from neupath import load
    >>> from neupath.measures import Part
    >>> explain_model(Combination([Part("pathsim", "APVPA", 1.0)]).fit(load("toy")), "Mike", "Mary").score
    0.8
    """
    if isinstance(scorer, Combination):
        return explain_combination(scorer, query, target, limit)
    if not hasattr(scorer, "attention_paths"):
        raise QueryError(f"the saved {scorer.name} shows no paths of its own; explain its meta-path instead")
    paths = scorer.attention_paths(query, target, limit)
    return AttentionExplanation(query, target, scorer.name, scorer.score(query, target), paths)

"""Evaluation: splits of queries, and how near a scorer's scores and rankings come to an exact measure's."""

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter

import numpy as np

from neupath.engine.scorer import Scorer
from neupath.errors import QueryError
from neupath.graph.hin import Floats
from neupath.graph.nodes import Rows
from neupath.learn.labels import PROTOCOLS, Protocol

_BLOCK = 64
TOP, CUT = 10, 20


@dataclass(frozen=True)
class Split:
    """Queries to train on, to choose the best epoch by, and to test on."""

    train: Rows
    validation: Rows
    test: Rows


def split_queries(
    count: int, sizes: tuple[int, int, int] = (400, 100, 400), seed: int = 0, most_test: int | None = None
) -> Split:
    """Draw disjoint queries at random from `count`; where there are too few, every part shrinks alike.

    With `most_test`, training and validation stay what they are, and the test takes that many of all others.

    >>> [len(part) for part in vars(split_queries(90)).values()]
    [40, 10, 40]
    """
    wanted = np.array(sizes)
    if wanted.sum() > count:
        wanted = wanted * count // wanted.sum()
    if wanted.min() < 1:
        raise QueryError(f"{count} nodes are too few to split into train, validation and test queries")
    if seed < 0:
        raise QueryError(f"seed is {seed}; it must be 0 or more")
    order = np.random.default_rng(seed).permutation(count)
    train, validation, test = np.split(order[: wanted.sum()], np.cumsum(wanted)[:-1])
    rest = order[wanted[0] + wanted[1] :]
    return Split(train, validation, test if most_test is None else rest[:most_test])


def rmse(truth: Floats, scores: Floats) -> float:
    """Return √(mean (s - b)²), 0 where there is nothing to compare."""
    return _root((scores - truth) ** 2)


def _root(squares: Floats) -> float:
    return float(np.sqrt(squares.mean())) if len(squares) else 0.0


def ndcg(truth: Floats, scores: Floats, k: int = CUT) -> float:
    """Return the graded nDCG@k: Σ_{r ≤ k} gain_r / log2(r + 1), over the same of the ideal order.

    Targets with equal scores share the mean of their gains, the expectation over their orders.

    >>> round(ndcg(np.array([1.0, 0.5, 0.0]), np.array([0.2, 0.2, 0.2])), 4)
    0.81
    """
    discounts = _discounts(len(truth), k)
    ideal = float(np.sort(truth)[::-1] @ discounts)
    if ideal == 0:
        raise QueryError("nDCG is not defined where no target is related")
    order = np.argsort(-scores, kind="stable")
    starts = np.flatnonzero(np.concatenate([[True], np.diff(scores[order]) != 0]))
    sizes = np.diff(np.append(starts, len(truth)))
    gains = np.repeat(np.add.reduceat(truth[order], starts) / sizes, sizes)
    return float(gains @ discounts) / ideal


def ndcg_released(truth: Floats, scores: Floats, k: int = CUT) -> float:
    """Return the ranking metric of the paper's released code, its sort turned the right way round.

    Membership in the true top k is the gain, and the ranking is never cut: a random ranking scores far above 0.
    """
    relevant = np.zeros(len(truth))
    relevant[np.lexsort((np.arange(len(truth)), -truth))[:k]] = 1
    order = np.lexsort((np.arange(len(truth)), -scores))
    return float(relevant[order] @ _discounts(len(truth), len(truth))) / float(_discounts(len(truth), k).sum())


def recall(truth: Floats, scores: Floats, k: int = CUT) -> float:
    """Return which share of the true top k, as far as it is related, stands in the scorer's top k."""
    ranked = np.arange(len(truth))
    best = np.lexsort((ranked, -truth))[:k]
    best = best[truth[best] > 0]
    return float(np.isin(best, np.lexsort((ranked, -scores))[:k]).mean()) if len(best) else 0.0


def _discounts(count: int, k: int) -> Floats:
    ranks = np.arange(1, count + 1)
    return np.where(ranks <= k, 1 / np.log2(ranks + 1), 0.0)


@dataclass(frozen=True)
class Evaluation:
    """How near a scorer comes to an exact measure, over test queries against all targets, the query left out."""

    metapath: str | None
    protocol: Protocol
    rmse_top: float
    rmse_all: float
    rmse_nonzero: float | None
    """Over the pairs that are related; nothing where none is."""
    ndcg: float | None
    """Nothing where no query has a related target: there is no ranking to judge."""
    ndcg_released: float | None
    recall: float | None
    queries: int
    ranked_queries: int
    """The queries that have any related target; rankings are judged on these."""
    seconds_per_query: float

    def to_dict(self) -> dict[str, object]:
        """Return what `evaluate --json` prints."""
        return {
            "metapath": self.metapath,
            "protocol": self.protocol,
            "rmse_top": self.rmse_top,
            "rmse_all": self.rmse_all,
            "rmse_nonzero": self.rmse_nonzero,
            f"ndcg@{CUT}": self.ndcg,
            "ndcg_released": self.ndcg_released,
            f"recall@{CUT}": self.recall,
            "queries": self.queries,
            "ranked_queries": self.ranked_queries,
            "seconds_per_query": self.seconds_per_query,
        }


def evaluate(scorer: Scorer, teacher: Scorer, queries: Rows, protocol: Protocol = "strict") -> Evaluation:
    """Compare a scorer with an exact measure on some queries."""
    if protocol not in PROTOCOLS:
        raise QueryError(f"protocol is {protocol!r}; it can be {' or '.join(PROTOCOLS)}")
    if not len(queries):
        raise QueryError("there are no queries to test on")
    if (scorer.source_type, scorer.target_type) != (teacher.source_type, teacher.target_type):
        raise QueryError(
            f"the model ranks {scorer.target_type} nodes for a {scorer.source_type}, "
            f"but {teacher.metapath_text} ranks {teacher.target_type} nodes for a {teacher.source_type}"
        )
    metrics: dict[str, Callable[[Floats, Floats], float]] = {"ndcg": ndcg, "released": ndcg_released, "recall": recall}
    ranking: dict[str, list[float]] = {name: [] for name in metrics}
    errors: dict[str, list[Floats]] = {"top": [], "all": [], "nonzero": []}
    seconds = 0.0
    for start in range(0, len(queries), _BLOCK):
        block = queries[start : start + _BLOCK]
        began = perf_counter()
        given = scorer.score_rows(block)
        seconds += perf_counter() - began
        for query, scores, truth in zip(block, given, teacher.score_rows(block), strict=True):
            kept = np.arange(len(truth)) != query if scorer.source_type == scorer.target_type else slice(None)
            b, s = truth[kept], scores[kept]
            top = np.lexsort((np.arange(len(b)), -b))[:TOP]
            squares = (s - b) ** 2
            for name, part in (("top", squares[top]), ("all", squares), ("nonzero", squares[b > 0])):
                errors[name].append(part)
            if b.max(initial=0.0) > 0:
                for name, metric in metrics.items():
                    ranking[name].append(metric(b, s))
    roots = {name: _root(np.concatenate([np.zeros(0), *parts])) for name, parts in errors.items()}
    means = {name: float(np.mean(values)) if values else None for name, values in ranking.items()}
    return Evaluation(
        teacher.metapath_text, protocol, roots["top"], roots["all"], roots["nonzero"] if ranking["ndcg"] else None,
        means["ndcg"], means["released"], means["recall"],
        len(queries), len(ranking["ndcg"]), seconds / max(1, len(queries)),
    )  # fmt: skip

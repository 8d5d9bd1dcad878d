"""Evaluation: splits of the queries, metrics, and how near a scorer comes to an exact measure or to labels."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow as pa

from neupath.engine.scorer import Scorer
from neupath.errors import QueryError
from neupath.graph.hin import HIN, Floats
from neupath.graph.nodes import Id, Rows
from neupath.learn.labels import Protocol, check_protocol, read_pairs

_BLOCK = 64
TOP, CUT = 10, 20
EXACT = 1e-7
"""The RMSE, relative to the largest label, below which labels are explained exactly."""


# ---- Splits --------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Split:
    """The ids of queries to train on, to choose the best epoch by, and to test on."""

    train: tuple[Id, ...]
    validation: tuple[Id, ...]
    test: tuple[Id, ...]


def split_queries(
    hin: HIN, node_type: str, sizes: tuple[int, int, int] = (400, 100, 400), seed: int = 0, most_test: int | None = None
) -> Split:
    """Draw disjoint queries at random from the nodes of a type.

    Parameters
    ----------
    hin
        The graph.
    node_type
        The type of the queries.
    sizes
        How many queries are for training, validation and testing. If there are too few nodes, all three shrink alike.
    seed
        Decides which queries are drawn.
    most_test
        If given, training and validation stay the same, and up to this many of all other nodes are for testing.

    >>> from neupath import load
    >>> split_queries(load("toy"), "author", sizes=(2, 1, 2))
    Split(train=('Mary', 'Ann'), validation=('Bob',), test=('Mike', 'Jim'))

    """
    nodes = hin.nodes[hin.schema.node_type(node_type)]
    counts = np.array(sizes)
    if counts.sum() > len(nodes):
        counts = counts * len(nodes) // counts.sum()
    if counts.min() < 1:
        raise QueryError(f"{len(nodes)} nodes are too few to split into train, validation and test queries")
    if seed < 0:
        raise QueryError(f"‹seed› is {seed}; it must be 0 or more", parameter="seed")
    order = np.random.default_rng(seed).permutation(len(nodes))
    ids = nodes.ids.take(pa.array(order)).to_pylist()
    train, trained_on, total = int(counts[0]), int(counts[:2].sum()), int(counts.sum())
    end = total if most_test is None else trained_on + most_test
    return Split(tuple(ids[:train]), tuple(ids[train:trained_on]), tuple(ids[trained_on:end]))


# ---- Metrics -------------------------------------------------------------------------------------
def rmse(truth: Floats, scores: Floats) -> float:
    """Return √(mean (s - b)²), 0 where there is nothing to compare."""
    return _root_mean_square(scores - truth)


def _root_mean_square(errors: Floats) -> float:
    return float(np.sqrt((errors**2).mean())) if len(errors) else 0.0


def ndcg(truth: Floats, scores: Floats, k: int = CUT) -> float:
    """Return the graded nDCG@k: Σ_{r ≤ k} gain_r / log2(r + 1), divided by the same sum in the ideal order.

    Targets with equal scores share the mean of their gains, which is the expectation over their orders.

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
    """Return the ranking metric of the paper's released code, with its sort order corrected.

    A target in the true top k has gain 1, and the ranking is not cut at k. So a random ranking scores far above 0.
    """
    relevant = np.zeros(len(truth))
    relevant[_ranked(truth)[:k]] = 1
    discounts = _discounts(len(truth), len(truth))
    return float(relevant[_ranked(scores)] @ discounts) / float(_discounts(len(truth), k).sum())


def recall(truth: Floats, scores: Floats, k: int = CUT) -> float:
    """Return the share of the related targets in the true top k that are also in the scorer's top k."""
    best = _ranked(truth)[:k]
    best = best[truth[best] > 0]
    return float(np.isin(best, _ranked(scores)[:k]).mean()) if len(best) else 0.0


def auc(labels: Floats, scores: Floats) -> float:
    """Return the probability that a similar pair scores above a dissimilar one; a tie counts half.

    >>> auc(np.array([1.0, 0.0, 0.0]), np.array([0.9, 0.9, 0.1]))
    0.75
    """
    positive = labels > 0.5
    if positive.all() or not positive.any():
        return 0.5
    _, place, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[place]
    n = int(positive.sum())
    return float((ranks[positive].sum() - n * (n + 1) / 2) / (n * (len(scores) - n)))


def r_squared(scores: Floats, predicted: Floats) -> float:
    """Return 1 - Σ(score - predicted)² / Σ(score - mean)², or 0 if the mean label predicts better.

    >>> r_squared(np.array([0.0, 1.0]), np.array([0.0, 1.0]))
    1.0
    """
    left, whole = float(((scores - predicted) ** 2).sum()), float(((scores - scores.mean()) ** 2).sum())
    largest = float(np.abs(scores).max(initial=0.0)) or 1.0
    if whole <= 1e-15 * largest**2 * len(scores):
        return 1.0 if left <= (EXACT * largest) ** 2 * len(scores) else 0.0
    return max(0.0, 1 - left / whole)


def _ranked(scores: Floats) -> Rows:
    return np.lexsort((np.arange(len(scores)), -scores))


def _discounts(count: int, k: int) -> Floats:
    ranks = np.arange(1, count + 1)
    return np.where(ranks <= k, 1 / np.log2(ranks + 1), 0.0)


# ---- A scorer against an exact measure -----------------------------------------------------------
@dataclass(frozen=True)
class Evaluation:
    """How near a scorer comes to an exact measure, over test queries against all targets but the query."""

    metapath: str | None
    protocol: Protocol
    rmse_top: float
    rmse_all: float
    rmse_nonzero: float | None
    """Over the related pairs; None if there are none."""
    ndcg: float | None
    """None if no query has a related target: there is no ranking to judge."""
    ndcg_released: float | None
    recall: float | None
    queries: int
    ranked_queries: int
    """The queries that have a related target; rankings are judged on these."""
    seconds_per_query: float

    def to_dict(self) -> dict[str, object]:
        return {f"{name}@{CUT}" if name in ("ndcg", "recall") else name: value for name, value in vars(self).items()}


def evaluate(scorer: Scorer, teacher: Scorer, queries: Sequence[Id], protocol: Protocol = "strict") -> Evaluation:
    """Compare a scorer with an exact measure on some queries.

    Parameters
    ----------
    scorer
        The scorer to judge, such as a trained model.
    teacher
        The exact measure, fitted to the same graph.
    queries
        Ids of the queries to test on, such as `split_queries(hin, node_type).test`.
    protocol
        How the scorer was trained: "strict" or "paper". It only names the result; all metrics are always computed.

    >>> from neupath import PathSim, load
    >>> from neupath.measures import JoinSim
    >>> hin = load("toy")
    >>> result = evaluate(JoinSim("APVPA").fit(hin), PathSim("APVPA").fit(hin), ["Mike", "Jim"])
    >>> round(result.rmse_all, 4), round(result.ndcg, 4)
    (0.6211, 0.9696)

    """
    check_protocol(protocol)
    if not len(queries):
        raise QueryError("there are no queries to test on")
    if (scorer.source_type, scorer.target_type) != (teacher.source_type, teacher.target_type):
        raise QueryError(
            f"the model ranks {scorer.target_type} nodes for a {scorer.source_type}, "
            f"but {teacher.metapath_text} ranks {teacher.target_type} nodes for a {teacher.source_type}"
        )
    rows = scorer.hin_.nodes[scorer.source_type].find_many(list(queries))
    metrics: dict[str, Callable[[Floats, Floats], float]] = {"ndcg": ndcg, "released": ndcg_released, "recall": recall}
    ranking: dict[str, list[float]] = {name: [] for name in metrics}
    errors: dict[str, list[Floats]] = {"top": [], "all": [], "nonzero": []}
    seconds = 0.0
    for start in range(0, len(rows), _BLOCK):
        block = rows[start : start + _BLOCK]
        began = perf_counter()
        predicted = scorer.score_rows(block)
        seconds += perf_counter() - began
        for row, scores, truth in zip(block, predicted, teacher.score_rows(block), strict=True):
            others = np.arange(len(truth)) != row if scorer.source_type == scorer.target_type else slice(None)
            b, s = truth[others], scores[others]
            differences = s - b
            errors["top"].append(differences[_ranked(b)[:TOP]])
            errors["all"].append(differences)
            errors["nonzero"].append(differences[b > 0])
            if b.max(initial=0.0) > 0:
                for name, metric in metrics.items():
                    ranking[name].append(metric(b, s))
    roots = {name: _root_mean_square(np.concatenate(parts)) for name, parts in errors.items()}
    means = {name: float(np.mean(values)) if values else None for name, values in ranking.items()}
    return Evaluation(
        teacher.metapath_text, protocol, roots["top"], roots["all"], roots["nonzero"] if ranking["ndcg"] else None,
        means["ndcg"], means["released"], means["recall"],
        len(rows), len(ranking["ndcg"]), seconds / len(rows),
    )  # fmt: skip


# ---- Intervals -----------------------------------------------------------------------------------
def bootstrap_interval(values: Floats, seed: int = 0, draws: int = 2000) -> tuple[float, float]:
    """Return the 95 % interval of a mean by bootstrap over its values, such as one per query.

    Over differences of two scorers on the same queries, it is the paired bootstrap.

    >>> low, high = bootstrap_interval(np.array([0.1, 0.2, 0.3, 0.2]))
    >>> 0.1 <= low <= 0.2 <= high <= 0.3
    True
    """
    rng = np.random.default_rng(seed)
    means = np.array([values[rng.integers(0, len(values), len(values))].mean() for _ in range(draws)])
    low, high = np.quantile(means, [0.025, 0.975])
    return float(low), float(high)


# ---- A scorer against labels ---------------------------------------------------------------------
@dataclass(frozen=True)
class LabelEvaluation:
    """How near a scorer comes to labelled pairs."""

    pairs: int
    queries: int
    rmse: float | None
    r2: float | None
    """Both are None where the scores only rank, as `note` says."""
    auc: float | None
    """Of pairs with a label above 0.5 against the others; None if all are of one kind."""
    note: str | None = None

    def to_dict(self) -> dict[str, object]:
        return dict(vars(self))


def evaluate_pairs(scorer: Scorer, pairs: Any) -> LabelEvaluation:
    """Compare a scorer with labelled pairs, such as people's labels that it has not seen.

    Parameters
    ----------
    scorer
        The scorer to judge. It knows the types of queries and targets, so ids that several types share are no problem.
    pairs
        A CSV file, a table, or tuples of (query, target, score).

    >>> from neupath import PathSim, load
    >>> evaluate_pairs(PathSim("APVPA").fit(load("toy")), [("Mike", "Bob", "yes"), ("Mike", "Ann", "no")]).auc
    1.0

    """
    labels = read_pairs(scorer.hin_, pairs, (scorer.source_type, scorer.target_type), bounded=False)
    predicted = np.zeros(len(labels))
    queries = np.unique(labels.queries)
    for start in range(0, len(queries), _BLOCK):
        block = queries[start : start + _BLOCK]
        own = np.flatnonzero(np.isin(labels.queries, block))
        scores = scorer.score_rows(block)
        predicted[own] = scores[np.searchsorted(block, labels.queries[own]), labels.targets[own]]
    error: tuple[float | None, float | None] = rmse(labels.scores, predicted), r_squared(labels.scores, predicted)
    note = None
    if scorer.ranks_only:
        error = None, None
        note = f"the scores of a {scorer.name} come from ranks and estimate no labels, so RMSE and R² are left out"
    both_kinds = 0 < np.count_nonzero(labels.scores > 0.5) < len(labels)
    return LabelEvaluation(
        len(labels), len(queries), *error, auc(labels.scores, predicted) if both_kinds else None, note
    )  # fmt: skip

"""HeldOut: labels that learners have not seen, random targets beside them, and how well scores rank both."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from neupath.graph.hin import Floats
from neupath.graph.nodes import Rows
from neupath.learn.evaluation import auc, bootstrap_interval, ndcg
from neupath.learn.inference.binary_labels import error_by_chance
from neupath.learn.labels import Pairs, with_negatives

Metric = Literal["AUC", "concordance"]
_OTHERS, _MOST_OTHERS = 100, 20_000
"""Random targets of each held-out query that are ranked beside its labels, and of all queries together."""


@dataclass(frozen=True)
class HeldOut:
    """Labels and others, which have the score 0; all methods take the scores of the labels, then of the others."""

    labels: Pairs
    others: Pairs
    """None where the labels say themselves what is dissimilar: at least as many are 0.5 or less as are more."""
    seed: int

    @classmethod
    def of(cls, given: Pairs, targets: int, seed: int) -> "HeldOut":
        """Add to labels, or examples, what they are judged among; `targets` is how many targets there are."""
        labels = given if given.scored else with_negatives(given, targets, seed)
        says_both = given.scored and 2 * int((given.scores > 0.5).sum()) <= len(given)
        none = labels.take(np.zeros(0, dtype=np.int64))
        return cls(labels, none if says_both else draw_others(labels, targets, seed), seed)

    def __len__(self) -> int:
        return len(self.labels) + len(self.others)

    @property
    def metric(self) -> Metric:
        """The metric that fits the labels: AUC for yes and no, concordance for others."""
        return "AUC" if np.isin(self.labels.scores, (0.0, 1.0)).all() else "concordance"

    @property
    def queries(self) -> Rows:
        return np.append(self.labels.queries, self.others.queries)

    @property
    def targets(self) -> Rows:
        return np.append(self.labels.targets, self.others.targets)

    def sample(self, most: int) -> tuple["HeldOut", Rows]:
        """Return the labels and others of at most so many queries, drawn at random, and their places among all."""
        queries = np.unique(self.labels.queries)
        if len(queries) > most:
            queries = np.random.default_rng(self.seed).choice(queries, most, replace=False)
        places = [np.flatnonzero(np.isin(side.queries, queries)) for side in (self.labels, self.others)]
        sampled = HeldOut(self.labels.take(places[0]), self.others.take(places[1]), self.seed)
        return sampled, np.append(places[0], len(self.labels) + places[1])

    # ---- By query --------------------------------------------------------------------------------
    def order_by_query(self, scores: Floats) -> Floats:
        """Return how well each query's labels are ordered; NaN where all its labels are equal.

        Of two different labels of a query, the higher should have the higher score; a tie counts half. For yes and no
        this is the AUC within the query.
        """
        values = []
        for own in _rows_by_query(self.labels.queries):
            truth, predicted = self.labels.scores[own], scores[own]
            above = truth[:, None] > truth[None, :]
            right = (predicted[:, None] > predicted[None, :]) + 0.5 * (predicted[:, None] == predicted[None, :])
            values.append(float(right[above].mean()) if above.any() else np.nan)
        return np.array(values)

    def ndcg_by_query(self, scores: Floats) -> Floats:
        """Return the nDCG@20 of each query's labels among the others; NaN if all its labels are 0."""
        truth = np.append(self.labels.scores, self.others.scores)
        rows = _rows_by_query(self.queries)
        return np.array([ndcg(truth[own], scores[own]) if truth[own].max() > 0 else np.nan for own in rows])

    def quality_by_query(self, scores: Floats) -> Floats:
        """Return the mean of both for each query, or the one that it has; NaN if it has none."""
        both = np.stack([self.order_by_query(scores), self.ndcg_by_query(scores)])
        known = np.isfinite(both)
        count = np.where(known.any(axis=0), known.sum(axis=0), np.nan)
        return np.asarray(np.where(known, both, 0.0).sum(axis=0) / count)

    # ---- Together --------------------------------------------------------------------------------
    def order(self, scores: Floats) -> float:
        """Return the mean order over queries; over all labels together if no query has two different ones."""
        by_query = self.order_by_query(scores)
        if np.isfinite(by_query).any():
            return float(np.nanmean(by_query))
        return auc(self._above().astype(np.float64), scores[: len(self.labels)])

    def _above(self) -> np.ndarray:
        """Return which labels are above the median."""
        return np.asarray(self.labels.scores > np.median(self.labels.scores))

    def interval(self, scores: Floats) -> tuple[float, float] | tuple[None, None]:
        """Return the 95 % interval of the mean order over queries; None where no query has two different labels."""
        by_query = _finite(self.order_by_query(scores))
        return mean_interval(by_query, self.seed) if len(by_query) else (None, None)

    def ndcg(self, scores: Floats) -> float:
        """Return the mean nDCG@20 over queries."""
        values = _finite(self.ndcg_by_query(scores))
        return float(values.mean()) if len(values) else 0.0

    def beats_chance(self, scores: Floats) -> bool:
        """Whether the labels are ordered better than at random by more than a standard error.

        The error is that of the mean over queries; where fewer than two queries have different labels, it is that of a
        random ranking of all labels together.
        """
        by_query = _finite(self.order_by_query(scores))
        if len(by_query) > 1:
            return bool(by_query.mean() - 0.5 > by_query.std(ddof=1) / np.sqrt(len(by_query)))
        above = int(self._above().sum())
        return self.order(scores) - 0.5 > error_by_chance(above, len(self.labels) - above)

    def is_faultless(self, scores: Floats, fewest: int) -> bool:
        """Whether the labels of every query are in the right order, of enough queries that have different ones."""
        by_query = _finite(self.order_by_query(scores))
        return len(by_query) >= fewest and bool((by_query == 1).all())


def _finite(values: Floats) -> Floats:
    return values[np.isfinite(values)]


def _rows_by_query(queries: Rows) -> list[Rows]:
    """Return the rows of each query, in the order of the queries."""
    order = np.argsort(queries, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(queries[order])) + 1)


def draw_others(labels: Pairs, targets: int, seed: int) -> Pairs:
    """Return random targets of each query of some labels that are not among them, with the score 0."""
    rng = np.random.default_rng(seed)
    queries = np.unique(labels.queries)
    count = min(_OTHERS, max(1, _MOST_OTHERS // len(queries)))
    columns = []
    for query in queries.tolist():
        known = labels.targets[labels.queries == query]
        drawn = np.setdiff1d(rng.integers(0, targets, count), known)
        drawn = drawn if labels.is_across_types else drawn[drawn != query]
        columns.append(np.stack([np.full(len(drawn), query), drawn]))
    rows = np.concatenate(columns, axis=1).astype(np.int64)
    return Pairs(labels.node_type, rows[0], rows[1], np.zeros(rows.shape[1]), target_type=labels.target_type)


def mean_interval(by_query: Floats, seed: int) -> tuple[float, float]:
    """Return the 95 % interval of the mean of values of 0 to 1, one per query, by bootstrap.

    Equal values have no spread to resample. Of n of them, it is only sure that at least a share p of all queries has
    this value, with pⁿ = 0.025; the others may have any.

    >>> mean_interval(np.ones(1), 0), mean_interval(np.ones(100), 0)
    ((0.025, 1.0), (0.964, 1.0))
    """
    if np.ptp(by_query) > 0:
        return bootstrap_interval(by_query, seed)
    share, value = 0.025 ** (1 / len(by_query)), float(by_query[0])
    return round(share * value, 3), round(1 - share * (1 - value), 3)

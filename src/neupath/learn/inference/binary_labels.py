"""Binary labels: weights of meta-paths from yes/no labels, or from examples of similar pairs alone.

Such labels give no scores to fit. The weights are those of a logistic regression with weights of 0 or more, made sparse
by a penalty on their sum,

    min  mean log(1 + exp(-±(b + Σ_p weight_p·feature_p))) + penalty·Σ_p weight_p

The measure and the penalty are those with the best cross-validated AUC.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from neupath.graph.hin import Floats
from neupath.learn.evaluation import auc
from neupath.learn.inference.fitting import FeatureTable, WeightedPaths, folds_of, rest_of, useful_columns

_PENALTIES = (0.1, 0.03, 0.01, 0.001, 1e-4, 1e-5)
_FEWEST = 5
"""Labels of each kind that are needed to hold some out."""
_LEAST_SHARE = 0.005


@dataclass(frozen=True)
class Ranker(WeightedPaths):
    """An explanation of a ranking, whose weights add up to 1; `auc` is the cross-validated AUC."""

    auc: float
    error: float
    """The standard error of the AUC over folds."""


def held_out_auc(table: FeatureTable, measures: Sequence[str], seed: int) -> float | None:
    """Return the AUC of pairs ranked by what the pairs of other queries lead to, including measure and penalty.

    It is None if there are fewer than five labels of either kind.
    """
    positive = table.scores > 0.5
    if min(positive.sum(), (~positive).sum()) < _FEWEST:
        return None
    predicted = np.zeros(len(table.scores))
    for fold in folds_of(table.groups, seed):
        rest = rest_of(fold, table.groups, table.partners)
        rankers = rank_hypotheses(table.take(rest), measures, seed, folds=3) if len(rest) else []
        if rankers:
            predicted[fold] = _percentiles(rankers[0].predict(table.take(rest)), rankers[0].predict(table.take(fold)))
    return auc(table.scores, predicted)


def _percentiles(known: Floats, scores: Floats) -> Floats:
    """Return the share of known scores below each score, which compares folds with different measures."""
    ordered = np.sort(known)
    below, above = np.searchsorted(ordered, scores, "left"), np.searchsorted(ordered, scores, "right")
    return (below + above) / (2 * len(ordered))


def chance_error(table: FeatureTable) -> float:
    """Return the standard deviation of the AUC of a random ranking of labels (Mann, Whitney 1947).

    Labels of a pair in both directions count as one, since they are no two opinions.
    """
    ends = np.sort(np.stack([table.groups, table.partners]), axis=0)
    two_types = bool((table.partners < 0).all())
    labels = table.scores if two_types else table.scores[np.unique(ends, axis=1, return_index=True)[1]]
    positive = int((labels > 0.5).sum())
    return error_by_chance(positive, len(labels) - positive)


def error_by_chance(positive: int, negative: int) -> float:
    """Return the standard deviation of the AUC of a random ranking of so many similar and other pairs."""
    return float(np.sqrt((positive + negative + 1) / (12 * positive * negative))) if positive and negative else np.inf


def rank_hypotheses(table: FeatureTable, measures: Sequence[str], seed: int, folds: int = 5) -> list[Ranker]:
    """Fit every measure with its best penalty; the best cross-validated AUC first, then the earlier measure."""
    rankers = [ranker for measure in measures if (ranker := _fit_measure(table, measure, seed, folds)) is not None]
    return sorted(rankers, key=lambda ranker: -round(ranker.auc, 4))


def _fit_measure(table: FeatureTable, measure: str, seed: int, most: int) -> Ranker | None:
    matrix = table.features[measure]
    usable = np.array(useful_columns(matrix), dtype=np.int64)
    if not len(usable):
        return None
    shapes = (matrix[:, usable] / matrix[:, usable].max(axis=0)).round(9)
    usable = usable[np.sort(np.unique(shapes, axis=1, return_index=True)[1])]  # the shorter of paths with equal scores
    scale = matrix[:, usable].max(axis=0)
    scaled = matrix[:, usable] / scale
    everything = np.arange(len(table.scores))
    folds = [fold for fold in folds_of(table.groups, seed, most) if np.ptp(table.scores[fold]) > 0]
    results = []
    for penalty in _PENALTIES:
        held_out = []
        for fold in folds:
            weights = _logistic(scaled, table, penalty, rest_of(fold, table.groups, table.partners))
            held_out.append(auc(table.scores[fold], scaled[fold] @ weights))
        mean, spread = (float(np.mean(held_out)), float(np.std(held_out))) if held_out else (0.5, 0.0)
        results.append((mean, spread / max(1, len(held_out)) ** 0.5, penalty))
    mean, error, penalty = max(results, key=lambda result: round(result[0], 6))  # the sparser one where equal
    weights = _logistic(scaled, table, penalty, everything) / scale
    used = np.flatnonzero(weights > _LEAST_SHARE * weights.sum())
    if not len(used):
        return None
    shares = weights[used] / weights[used].sum()
    return Ranker(measure, tuple(usable[used].tolist()), tuple(shares.tolist()), mean, error)


def _logistic(matrix: Floats, table: FeatureTable, penalty: float, rows: np.ndarray) -> Floats:
    """Return the weights of a penalised logistic regression with weights of 0 or more; shape (paths,)."""
    from scipy.optimize import minimize
    from scipy.special import expit

    features, signs, counts = matrix[rows], np.where(table.scores[rows] > 0.5, 1.0, -1.0), table.weights[rows]
    similar, others = (float(counts[kind].sum()) or 1.0 for kind in (signs > 0, signs < 0))
    importance = counts * np.where(signs > 0, 0.5 / similar, 0.5 / others)  # both kinds of labels weigh the same

    def loss(parameters: Floats) -> tuple[float, Floats]:
        margin = signs * (parameters[0] + features @ parameters[1:])
        slope = -importance * signs * expit(-margin)
        value = float(importance @ np.logaddexp(0, -margin)) + penalty * float(parameters[1:].sum())
        return value, np.concatenate([[slope.sum()], features.T @ slope + penalty])

    start = np.zeros(features.shape[1] + 1)
    bounds = [(None, None)] + [(0, None)] * features.shape[1]
    weights: Floats = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds).x[1:]
    return weights

"""Certainty: how well an explanation predicts labels it has not seen, and how sure its weights are."""

from collections.abc import Iterator, Sequence

import numpy as np

from neupath.graph import Floats
from neupath.inference.fitting import EXACT, Hypothesis, Table, choose_hypothesis, promising, swapped, useful_columns
from neupath.inference.gram import Gram, defined

_MOST_BLOCKS = 256


def r_squared(scores: Floats, predicted: Floats) -> float:
    """Return 1 - Σ(score - predicted)² / Σ(score - mean)², and 0 where the mean label does better.

    >>> r_squared(np.array([0.0, 1.0]), np.array([0.0, 1.0]))
    1.0
    """
    left, whole = float(((scores - predicted) ** 2).sum()), float(((scores - scores.mean()) ** 2).sum())
    largest = float(np.abs(scores).max(initial=0.0)) or 1.0
    if whole <= 1e-15 * largest**2 * len(scores):
        return 1.0 if left <= (EXACT * largest) ** 2 * len(scores) else 0.0
    return max(0.0, 1 - left / whole)


def folds_of(groups: np.ndarray, seed: int, most: int = 5) -> list[np.ndarray]:
    """Cut pairs into parts of whole queries, or of single pairs where there are fewer than two queries."""
    units = groups if len(np.unique(groups)) > 1 else np.arange(len(groups))
    distinct = np.random.default_rng(seed).permutation(np.unique(units))
    parts = np.array_split(distinct, min(most, len(distinct)))
    return [np.flatnonzero(np.isin(units, part)) for part in parts if len(part)]


def cross_validate(table: Table, measures: Sequence[str], seed: int) -> Floats:
    """Predict each pair by the hypothesis that the pairs of other queries lead to; shape (pairs,)."""
    predicted = np.zeros(len(table.scores))
    folds = folds_of(table.groups, seed)
    for fold in folds:
        rest = np.setdiff1d(np.arange(len(table.scores)), fold)
        chosen = choose_hypothesis(table.taken(rest), measures)[0] if len(rest) else None
        predicted[fold] = chosen.predict(table.taken(fold)) if chosen else 0.0
    return predicted


def bootstrap_weights(best: Hypothesis, table: Table, seed: int, rounds: int = 200) -> list[tuple[float, float]]:
    """Return the 5 % and 95 % quantiles of each path's weight over resampled queries.

    In every round the paths are chosen anew, as many as the best has: a path that others could replace has a low end
    of 0. So has one that a constant could replace, which goes along with the mean of the labels and not with them.
    """
    matrix = table.features[best.measure]
    usable = useful_columns(matrix)
    if not set(best.columns) <= set(usable):  # it relates none of the labelled pairs: any weight would do
        return [(0.0, weight) for weight in best.weights]
    varies = float(np.ptp(table.scores)) > 1e-12 * table.scale
    grams = _resampled_grams(np.column_stack([defined(matrix), np.ones(len(matrix))]), table, seed, rounds)
    found = np.zeros((2, rounds, len(best.columns)))
    for number, gram in enumerate(grams):
        found[0, number] = _resampled(gram.without_constant(), best, usable)
        found[1, number] = _resampled(gram.without_mean(), best, usable) if varies else found[0, number]
    low, high = np.quantile(found[0], [0.05, 0.95], axis=0)
    beside_constant = np.quantile(found[1], 0.05, axis=0)
    low = np.where(beside_constant <= 1e-9, 0.0, np.minimum(low, best.weights))
    return list(zip(low.tolist(), np.maximum(high, best.weights).tolist(), strict=True))


def _resampled_grams(matrix: Floats, table: Table, seed: int, rounds: int) -> Iterator[Gram]:
    """Yield the products of resampled queries; many queries are resampled in blocks."""
    units = table.groups if len(np.unique(table.groups)) > 1 else np.arange(len(table.scores))
    blocks = np.array_split(np.unique(units), min(len(np.unique(units)), _MOST_BLOCKS))
    parts = [Gram.of(matrix[own], table.scores[own]) for own in (np.isin(units, block) for block in blocks)]
    products, with_scores = np.stack([part.products for part in parts]), np.stack([part.with_scores for part in parts])
    of_scores = np.array([part.of_scores for part in parts])
    rng = np.random.default_rng(seed)
    for _ in range(rounds):
        times = np.bincount(rng.integers(0, len(parts), len(parts)), minlength=len(parts)).astype(np.float64)
        yield Gram(np.tensordot(times, products, 1), times @ with_scores, float(times @ of_scores))


def _resampled(gram: Gram, best: Hypothesis, usable: list[int]) -> Floats:
    """Return the weights of the best hypothesis's paths when as many paths are chosen from a resample."""
    least = 1e-12 * float(gram.products.diagonal().max(initial=0.0))
    usable_here = [p for p in usable if gram.products[p, p] > least]
    chosen: tuple[int, ...] = ()
    for _ in best.columns:
        options = [tuple(sorted((*chosen, p))) for p in promising(gram, chosen, usable_here)]
        if not options:
            break
        chosen = swapped(gram, min(options, key=gram.preference), usable_here)
    known = tuple(p for p in best.columns if p in usable_here)
    if known and gram.error(known) <= gram.error(chosen) * (1 + 1e-9) + 1e-12 * gram.of_scores:
        chosen = known
    weights = dict(zip(chosen, gram.weights(chosen).tolist(), strict=True))
    return np.array([weights.get(p, 0.0) for p in best.columns])

"""Fitting: few meta-paths under one measure, with weights of 0 or more, that explain labels; and what else would.

    score(x, y) = Σ_p weight_p · feature_p(x, y)

A hypothesis is a measure and a set of paths. Simpler ones are preferred as far as the labels allow it, by

    n·log(MSE + floor) + (weights that are free)·log n + 2·(paths)·log P

the extended Bayesian information criterion (Chen, Chen, Biometrika 2008) for P candidates; and then the simplest is
named that the labels do not tell from the best: fewer paths, fewer free weights, shorter paths, the earlier measure.
One path with the weight 1 has no free weight: labels that a measure made are found as that measure.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from neupath.graph import Floats
from neupath.inference.gram import Gram, defined
from neupath.inference.walks import MEASURES_INFERRED

_FLOOR = 1e-16
"""Mean squared errors, relative to the largest label, below this are rounding."""
EXACT = 1e-7
"""The RMSE, relative to the largest label, below which labels are explained exactly."""
MOST_PATHS = 5
_SWAPS = 12
_WORSE = 1.2
_TOLD_APART = 1.64
"""Standard errors by which the mean squared error of one hypothesis must exceed that of another to be worse."""


@dataclass(frozen=True)
class Table:
    """The features of labelled pairs: by measure, shape (pairs, paths), NaN where it is not defined on a path."""

    features: Mapping[str, Floats]
    scores: Floats
    groups: np.ndarray
    """Which query each pair is of."""
    lengths: Sequence[int]
    scale: float = 1.0
    """The largest label: what is small is small beside it."""

    def taken(self, pairs: np.ndarray) -> "Table":
        """Return the table of some pairs."""
        features = {measure: matrix[pairs] for measure, matrix in self.features.items()}
        return Table(features, self.scores[pairs], self.groups[pairs], self.lengths, self.scale)


@dataclass(frozen=True)
class Hypothesis:
    """An explanation of labels: a measure, its paths as columns of the table, and their weights."""

    measure: str
    columns: tuple[int, ...]
    weights: tuple[float, ...]
    free: int
    """How many of the weights were fitted; one path with weight 1 has none."""
    rmse: float
    exact: bool
    rank: tuple[float, int, int, int, tuple[int, ...]]

    def predict(self, table: Table) -> Floats:
        """Return the scores of the table's pairs."""
        prediction: Floats = table.features[self.measure][:, list(self.columns)] @ np.array(self.weights)
        return prediction

    @property
    def complexity(self) -> tuple[int, int, int, int, tuple[int, ...]]:
        """What makes one hypothesis simpler than another: paths, free weights, steps, and the order of measures."""
        paths, steps, measure, columns = self.rank[1:]
        return paths, self.free, steps, measure, columns


def choose_hypothesis(table: Table, measures: Sequence[str] = MEASURES_INFERRED) -> tuple[Hypothesis, list[Hypothesis]]:
    """Return the explanation to name, and every one that was compared.

    It is the simplest that the labels do not tell from the best one: leaving out a path, taking a shorter one in its
    place, or another measure, as long as the squared errors stay within 1.64 standard errors.
    """
    compared = find_hypotheses(table, measures)
    best = compared[0]
    errors = _squared(best, table)

    def as_good(other: Hypothesis) -> bool:
        return other.exact if best.exact else _excess(other, errors, table) <= _TOLD_APART

    chosen = min((h for h in compared if as_good(h)), key=lambda h: h.complexity, default=best)
    while True:
        simpler = [h for h in _variants(table, chosen) if h.complexity < chosen.complexity and as_good(h)]
        compared += simpler
        if not simpler:
            break
        chosen = min(simpler, key=lambda h: h.complexity)
    return chosen, sorted(compared, key=lambda hypothesis: hypothesis.rank)


def _variants(table: Table, of: Hypothesis) -> list[Hypothesis]:
    """Return the hypothesis with one path left out, or replaced by one that is not longer."""
    found = []
    matrix = table.features[of.measure]
    usable = useful_columns(matrix)
    for out in of.columns if len(of.columns) > 1 else ():
        rest = tuple(p for p in of.columns if p != out)
        found.append(_fitted(table, of.measure, rest))
        for p in usable:
            if p not in of.columns and table.lengths[p] <= table.lengths[out]:
                found.append(_fitted(table, of.measure, tuple(sorted((*rest, p)))))  # noqa: PERF401
    return found


def _squared(hypothesis: Hypothesis, table: Table) -> Floats:
    squared: Floats = (hypothesis.predict(table) - table.scores) ** 2
    return squared


def _excess(other: Hypothesis, errors: Floats, table: Table) -> float:
    """Return by how many standard errors a hypothesis's squared errors exceed given ones, pair by pair.

    A few errors that are far off make the standard error large as well: what is a fifth worse on the whole is worse.
    """
    difference = _squared(other, table) - errors
    if other.rmse > _WORSE * float(np.sqrt(errors.mean())):
        return np.inf
    spread = float(difference.std()) / np.sqrt(len(difference))
    return float(difference.mean()) / spread if spread > 0 else (0.0 if difference.mean() <= 0 else np.inf)


def find_hypotheses(table: Table, measures: Sequence[str] = MEASURES_INFERRED) -> list[Hypothesis]:
    """Return every hypothesis worth comparing, the best by the criterion first."""
    found: dict[tuple[str, tuple[int, ...], int], Hypothesis] = {}
    for measure in measures:
        for hypothesis in _of_measure(table, measure):
            found.setdefault((measure, hypothesis.columns, hypothesis.free), hypothesis)
    return sorted(found.values(), key=lambda hypothesis: hypothesis.rank)


def _of_measure(table: Table, measure: str) -> list[Hypothesis]:
    matrix = table.features[measure]
    useful = useful_columns(matrix)
    defined = np.flatnonzero(np.isfinite(matrix).all(axis=0)).tolist()
    singles = [_hypothesis(table, measure, (p,), np.ones(1), free=0) for p in defined]
    return [*singles, *(_fitted(table, measure, (p,)) for p in useful), *_sets(table, measure, useful)]


def useful_columns(matrix: Floats) -> list[int]:
    """Return the paths that a measure is defined on and that relate some pair."""
    with np.errstate(over="ignore", under="ignore"):
        squares = (matrix**2).sum(axis=0)
    return np.flatnonzero(np.isfinite(squares) & (squares > 0)).tolist()


def _sets(table: Table, measure: str, usable: list[int]) -> list[Hypothesis]:
    """Grow a set of paths one at a time, the one that helps most; after each, swap a path where another does better."""
    gram = Gram.of(defined(table.features[measure]), table.scores)
    chosen: tuple[int, ...] = ()
    found = []
    for _ in range(min(MOST_PATHS, len(usable))):
        options = [tuple(sorted((*chosen, p))) for p in promising(gram, chosen, usable)]
        if not options:
            break
        better = min(options, key=gram.preference)
        chosen = swapped(gram, better, usable)
        fitted = _fitted(table, measure, chosen)
        found.append(fitted)
        if fitted.exact or len(fitted.columns) < len(chosen):
            break
    return found


def promising_columns(table: Table, measure: str) -> list[int]:
    """Return the paths that a set of them, grown one at a time, would choose from."""
    matrix = table.features[measure]
    usable = useful_columns(matrix)
    gram = Gram.of(defined(matrix), table.scores)
    chosen: tuple[int, ...] = ()
    seen: dict[int, None] = {}
    for _ in range(min(MOST_PATHS, len(usable))):
        options = promising(gram, chosen, usable)
        if not options:
            break
        seen |= dict.fromkeys(options[:6])
        chosen = min((tuple(sorted((*chosen, p))) for p in options), key=gram.preference)
    return list(seen)


def promising(gram: Gram, chosen: tuple[int, ...], usable: list[int]) -> list[int]:
    """Return the paths that go most along with what is left to explain."""
    slopes = gram.slopes(chosen)
    scaled = {p: slopes[p] / np.sqrt(gram.products[p, p]) for p in usable if p not in chosen and slopes[p] > 0}
    return sorted(scaled, key=lambda p: (-round(scaled[p], 12), p))[:_SWAPS]


def swapped(gram: Gram, columns: tuple[int, ...], usable: list[int]) -> tuple[int, ...]:
    """Replace one path by another as long as that lowers the error."""
    best, error = columns, gram.error(columns)
    improved = len(columns) > 1
    while improved:
        improved = False
        for out in best:
            rest = tuple(p for p in best if p != out)
            for p in promising(gram, rest, usable):
                option = tuple(sorted((*rest, p)))
                if option != best and gram.error(option) < error * (1 - 1e-6) - 1e-15:
                    best, error, improved = option, gram.error(option), True
                    break
            if improved:
                break
    return best


def _fitted(table: Table, measure: str, columns: tuple[int, ...]) -> Hypothesis:
    """Fit the weights of some paths; those of weight 0 are left out."""
    from scipy.optimize import nnls

    matrix = table.features[measure][:, list(columns)]
    scale = np.sqrt((matrix**2).sum(axis=0))
    weights = nnls(matrix / scale, table.scores)[0] / scale
    used = np.flatnonzero(weights * scale > 1e-9 * max(1.0, float(np.sqrt(table.scores @ table.scores))))
    if not len(used):
        used = np.array([0])
    kept = tuple(columns[i] for i in used)
    return _hypothesis(table, measure, kept, weights[used], free=len(kept))


def _hypothesis(table: Table, measure: str, columns: tuple[int, ...], weights: Floats, free: int) -> Hypothesis:
    residual = table.features[measure][:, list(columns)] @ weights - table.scores
    squared, n = float(residual @ residual) / len(residual), len(residual)
    criterion = n * np.log(squared / table.scale**2 + _FLOOR)
    criterion += free * np.log(n) + 2 * len(columns) * np.log(max(2, len(table.lengths)))
    length = sum(table.lengths[p] for p in columns)
    rank = (round(criterion, 6), len(columns), length, MEASURES_INFERRED.index(measure), columns)
    rmse = float(np.sqrt(squared))
    return Hypothesis(measure, columns, tuple(weights.tolist()), free, rmse, rmse < EXACT * table.scale, rank)


def alternatives_of(best: Hypothesis, hypotheses: Sequence[Hypothesis], table: Table) -> list[Hypothesis]:
    """Return the hypotheses that these labels cannot tell from the best one, the simplest first.

    Where the best is exact, the others must be; where not, their squared errors are compared pair by pair, and the mean
    difference must be within 1.64 standard errors.
    """
    errors = _squared(best, table)
    found: list[Hypothesis] = []
    for other in sorted((*hypotheses, *_twins(table, best)), key=lambda hypothesis: hypothesis.complexity):
        taken = any(
            other.measure == known.measure and set(known.columns) <= set(other.columns) for known in (best, *found)
        )
        if taken:
            continue
        if other.exact if best.exact else _excess(other, errors, table) <= _TOLD_APART:
            found.append(other)
    return found


def _twins(table: Table, best: Hypothesis) -> list[Hypothesis]:
    """Return the hypothesis with one path replaced by another that scores every labelled pair alike."""
    matrix = table.features[best.measure]
    found = []
    for own in best.columns if len(best.columns) > 1 else ():
        for p in range(matrix.shape[1]):
            if p not in best.columns and np.allclose(matrix[:, p], matrix[:, own], rtol=1e-9, atol=1e-12):
                found.append(_fitted(table, best.measure, tuple(sorted({*best.columns, p} - {own}))))  # noqa: PERF401
    return found

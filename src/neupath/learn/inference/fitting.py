"""Fitting: measures, meta-paths and weights that explain scores, and how sure they are."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from neupath.graph.hin import Floats
from neupath.learn.evaluation import EXACT


# ---- Least squares -------------------------------------------------------------------------------
@dataclass
class Gram:
    """The products that least squares needs, of P paths; shapes (P, P), (P,) and a number."""

    products: Floats
    with_scores: Floats
    of_scores: float
    signed: bool = False
    """Whether weights may be negative."""

    @classmethod
    def of(cls, matrix: Floats, table: "FeatureTable", pairs: np.ndarray | slice = slice(None)) -> "Gram":
        """Multiply; paths that a measure is not defined on count as zeros, and are never chosen."""
        weights, scores = table.weights[pairs], table.scores[pairs]
        matrix = np.where(np.isfinite(matrix[pairs]), matrix[pairs], 0.0)
        weighted = matrix * weights[:, None]
        return cls(weighted.T @ matrix, weighted.T @ scores, float(scores @ (weights * scores)), table.signed)

    def without_constant(self) -> "Gram":
        return Gram(self.products[:-1, :-1], self.with_scores[:-1], self.of_scores, self.signed)

    def without_mean(self) -> "Gram":
        """Return the products after projecting a constant, the last column, out of the others and the scores."""
        constant, size = self.products[-1, :-1], float(self.products[-1, -1])
        mean = float(self.with_scores[-1]) / size
        return Gram(
            self.products[:-1, :-1] - np.outer(constant, constant) / size,
            self.with_scores[:-1] - constant * mean,
            self.of_scores - mean * mean * size,
            self.signed,
        )

    def weights(self, columns: tuple[int, ...]) -> Floats:
        from scipy.optimize import nnls

        chosen = list(columns)
        if not chosen:
            return np.zeros(0)
        products = self.products[np.ix_(chosen, chosen)]
        products = products + 1e-13 * np.trace(products) * np.eye(len(chosen))
        if self.signed:
            return np.linalg.solve(products, self.with_scores[chosen])
        root = np.linalg.cholesky(products)
        solved: Floats = nnls(root.T, np.linalg.solve(root, self.with_scores[chosen]))[0]
        return solved

    def error(self, columns: tuple[int, ...]) -> float:
        chosen, weights = list(columns), self.weights(columns)
        return float(
            self.of_scores
            - 2 * weights @ self.with_scores[chosen]
            + weights @ self.products[np.ix_(chosen, chosen)] @ weights
        )

    def errors(self, sets: Sequence[tuple[int, ...]]) -> Floats:
        """Return the error of each of some sets of equally many paths; shape (sets,).

        They are solved together without bounds on the weights, and again by themselves where a weight is below 0.
        """
        chosen = np.array(sets)
        products, with_scores = self.products[chosen[:, :, None], chosen[:, None, :]], self.with_scores[chosen]
        ridge = 1e-13 * np.trace(products, axis1=1, axis2=2)
        weights = np.linalg.solve(products + ridge[:, None, None] * np.eye(chosen.shape[1]), with_scores[:, :, None])
        fitted = products @ weights - 2 * with_scores[:, :, None]
        errors: Floats = self.of_scores + (weights * fitted).sum(axis=(1, 2))
        for i in () if self.signed else np.flatnonzero((weights < 0).any(axis=(1, 2))).tolist():
            errors[i] = self.error(sets[i])
        return errors

    def best_of(self, sets: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
        """Return the set with the least error and, where errors differ by rounding only, with the first columns."""
        relative = (self.errors(sets) / (self.of_scores or 1.0)).round(11).tolist()
        return min(zip(relative, sets, strict=True))[1]


# ---- Hypotheses ----------------------------------------------------------------------------------
#     score(x, y) = Σ_p weight_p · feature_p(x, y)
# A hypothesis is a measure, a set of paths and their weights. The best one minimises
#     n·log(MSE + floor) + (free weights)·log n + 2·(paths)·log P
# which is the extended Bayesian information criterion (Chen, Chen, Biometrika 2008) for P candidates. The one chosen
# is then the simplest that the labels cannot tell from the best: fewer paths, fewer free weights, shorter paths,
# the earlier measure. One path with weight 1 has no free weight, so labels made by a measure are explained by it.
_FLOOR = 1e-16
"""Mean squared errors below this, relative to the largest label, are rounding."""
MOST_PATHS = 5
_MOST_PROMISING = 12  # paths tried at each step: those that correlate most with the residual
_WORSE = 1.2
"""A hypothesis with an RMSE this many times as large is worse, whatever the standard error."""
_TOLD_APART = 1.64
"""A hypothesis is worse than the best if its mean squared error is this many standard errors larger; beside an exact
one, every hypothesis that is not exact is worse."""


@dataclass(frozen=True)
class FeatureTable:
    """The features of labelled pairs: by measure, shape (pairs, paths), NaN where it is not defined on a path.

    Of equally good measures, the earlier one is preferred.
    """

    features: Mapping[str, Floats]
    scores: Floats
    groups: np.ndarray
    """The query of each pair."""
    lengths: Sequence[int]
    partners: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """The target of each pair where it could be a query, else -1, which it is unless given; see `rest_of`."""
    scale: float = 1.0
    """The largest label."""
    weights: Floats = field(default_factory=lambda: np.zeros(0))
    """How much each label counts; 1 unless given."""
    signed: bool = False
    """Whether paths may have negative weights."""

    def __post_init__(self) -> None:
        if len(self.weights) != len(self.scores):
            object.__setattr__(self, "weights", np.ones(len(self.scores)))
        if len(self.partners) != len(self.scores):
            object.__setattr__(self, "partners", np.full(len(self.scores), -1))

    def take(self, pairs: np.ndarray) -> "FeatureTable":
        features = {measure: matrix[pairs] for measure, matrix in self.features.items()}
        columns = {name: getattr(self, name)[pairs] for name in ("scores", "groups", "partners", "weights")}
        return replace(self, features=features, **columns)

    def centre(self) -> tuple["FeatureTable", float]:
        """Return the table with the mean of every column and of the labels subtracted, and the mean label.

        Weights fitted to it are those beside a constant that is fitted as well.
        """
        mean = float(np.average(self.scores, weights=self.weights))
        features = {name: matrix - self.means(name) for name, matrix in self.features.items()}
        return replace(self, features=features, scores=self.scores - mean), mean

    def means(self, measure: str) -> Floats:
        """Return the mean of each path under a measure; shape (paths,)."""
        means: Floats = np.average(self.features[measure], axis=0, weights=self.weights)
        return means


@dataclass(frozen=True)
class WeightedPaths:
    """A measure, its paths as columns of the table, and their weights."""

    measure: str
    columns: tuple[int, ...]
    weights: tuple[float, ...]

    def predict(self, table: FeatureTable) -> Floats:
        prediction: Floats = table.features[self.measure][:, list(self.columns)] @ np.array(self.weights)
        return prediction


@dataclass(frozen=True)
class Hypothesis(WeightedPaths):
    """An explanation of scores."""

    free: int
    """How many of the weights were fitted; one path with weight 1 has none."""
    rmse: float
    exact: bool
    rank: tuple[float, int, int, int, tuple[int, ...]]

    def squared_errors(self, table: FeatureTable) -> Floats:
        return np.asarray((self.predict(table) - table.scores) ** 2)

    @property
    def complexity(self) -> tuple[int, int, int, int, tuple[int, ...]]:
        """Its number of paths, free weights and steps, and the place of its measure; the smaller, the simpler."""
        paths, steps, measure, columns = self.rank[1:]
        return paths, self.free, steps, measure, columns


def choose_hypothesis(table: FeatureTable, measures: Sequence[str]) -> tuple[Hypothesis, list[Hypothesis]]:
    """Return the simplest hypothesis that the labels cannot tell from the best one, and all that were compared."""
    compared = find_hypotheses(table, measures)
    best = compared[0]
    errors = best.squared_errors(table)

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


def _variants(table: FeatureTable, of: Hypothesis) -> list[Hypothesis]:
    """Return the hypothesis with one path left out, or replaced by one that is not longer."""
    variants = []
    useful = useful_columns(table.features[of.measure])
    for out in of.columns if len(of.columns) > 1 else ():
        rest = tuple(p for p in of.columns if p != out)
        shorter = [p for p in useful if p not in of.columns and table.lengths[p] <= table.lengths[out]]
        sets = [rest, *(tuple(sorted((*rest, p))) for p in shorter)]
        variants += [_fitted(table, of.measure, columns) for columns in sets]
    return variants


def _excess(other: Hypothesis, errors: Floats, table: FeatureTable) -> float:
    """Return by how many standard errors the squared errors of a hypothesis exceed given ones, pair by pair.

    A few large errors make the standard error large as well. So a hypothesis that is a fifth worse overall is worse.
    """
    difference = other.squared_errors(table) - errors
    if other.rmse > _WORSE * float(np.sqrt(errors.mean())):
        return np.inf
    spread = float(difference.std()) / np.sqrt(len(difference))
    return float(difference.mean()) / spread if spread > 0 else (0.0 if difference.mean() <= 0 else np.inf)


def find_hypotheses(table: FeatureTable, measures: Sequence[str]) -> list[Hypothesis]:
    """Return every hypothesis worth comparing, the best by the criterion first."""
    distinct: dict[tuple[str, tuple[int, ...], int], Hypothesis] = {}
    for measure in measures:
        useful = useful_columns(table.features[measure])
        defined = np.flatnonzero(np.isfinite(table.features[measure]).all(axis=0)).tolist()
        hypotheses = [_hypothesis(table, measure, (p,), np.ones(1), free=0) for p in defined]
        hypotheses += [_fitted(table, measure, (p,)) for p in useful]
        for hypothesis in (*hypotheses, *_grow_sets(table, measure, useful)):
            distinct.setdefault((measure, hypothesis.columns, hypothesis.free), hypothesis)
    return sorted(distinct.values(), key=lambda hypothesis: hypothesis.rank)


def useful_columns(matrix: Floats) -> list[int]:
    """Return the paths that a measure is defined on and that relate some pair."""
    with np.errstate(over="ignore", under="ignore"):
        squares = (matrix**2).sum(axis=0)
    return np.flatnonzero(np.isfinite(squares) & (squares > 0)).tolist()


def _grow_sets(table: FeatureTable, measure: str, useful: list[int]) -> list[Hypothesis]:
    hypotheses = []
    for columns in _grow(Gram.of(table.features[measure], table), useful, MOST_PATHS):
        hypotheses.append(_fitted(table, measure, columns))
        if hypotheses[-1].exact or len(hypotheses[-1].columns) < len(columns):
            break
    return hypotheses


def _grow(gram: Gram, useful: list[int], most: int) -> Iterator[tuple[int, ...]]:
    """Grow a set of paths one at a time, always by the best one; after each, swap a path where another does better."""
    chosen: tuple[int, ...] = ()
    for _ in range(min(most, len(useful))):
        options = [tuple(sorted((*chosen, p))) for p in _promising(gram, chosen, useful)]
        if not options:
            return
        chosen = _swapped(gram, gram.best_of(options), useful)
        yield chosen


def promising_columns(table: FeatureTable, measure: str) -> list[int]:
    """Return the paths that a set grown one path at a time would choose from."""
    useful = useful_columns(table.features[measure])
    gram = Gram.of(table.features[measure], table)
    chosen: tuple[int, ...] = ()
    seen: dict[int, None] = {}
    for _ in range(min(MOST_PATHS, len(useful))):
        options = _promising(gram, chosen, useful)
        if not options:
            break
        seen |= dict.fromkeys(options[:6])
        chosen = gram.best_of([tuple(sorted((*chosen, p))) for p in options])
    return list(seen)


def _promising(gram: Gram, chosen: tuple[int, ...], useful: list[int]) -> list[int]:
    """Return the paths that correlate most with what is left to explain."""
    slopes = gram.with_scores - gram.products[:, list(chosen)] @ gram.weights(chosen)  # of each path
    slopes = np.abs(slopes) if gram.signed else slopes
    others = np.array([p for p in useful if p not in chosen and slopes[p] > 0], dtype=np.int64)
    scaled = np.round(slopes[others] / np.sqrt(gram.products[others, others]), 12)
    best: list[int] = others[np.lexsort((others, -scaled))[:_MOST_PROMISING]].tolist()
    return best


def _swapped(gram: Gram, columns: tuple[int, ...], useful: list[int]) -> tuple[int, ...]:
    """Replace one path by another as long as that lowers the error."""
    best, error = columns, gram.error(columns)
    improved = len(columns) > 1
    while improved:
        improved = False
        for out in best:
            rest = tuple(p for p in best if p != out)
            options = [tuple(sorted((*rest, p))) for p in _promising(gram, rest, useful)]
            errors = gram.errors(options) if options else np.zeros(0)
            lower = np.flatnonzero(errors < error * (1 - 1e-6) - 1e-15)
            if len(lower):
                best, error, improved = options[lower[0]], float(errors[lower[0]]), True
                break
    return best


def _fitted(table: FeatureTable, measure: str, columns: tuple[int, ...]) -> Hypothesis:
    """Fit the weights of some paths, and leave out those of weight 0."""
    from scipy.optimize import nnls

    root = np.sqrt(table.weights)
    matrix, scores = table.features[measure][:, list(columns)] * root[:, None], table.scores * root
    scale = np.sqrt((matrix**2).sum(axis=0))
    solve = np.linalg.lstsq if table.signed else nnls
    weights = solve(matrix / scale, scores)[0] / scale
    used = np.flatnonzero(np.abs(weights) * scale > 1e-9 * max(1.0, float(np.sqrt(scores @ scores))))
    if not len(used):
        used = np.array([0])
    kept = tuple(columns[i] for i in used)
    return _hypothesis(table, measure, kept, weights[used], free=len(kept))


def _hypothesis(table: FeatureTable, measure: str, columns: tuple[int, ...], weights: Floats, free: int) -> Hypothesis:
    residual = table.features[measure][:, list(columns)] @ weights - table.scores
    squared, n = float(np.average(residual**2, weights=table.weights)), len(residual)
    criterion = n * np.log(squared / table.scale**2 + _FLOOR)
    criterion += free * np.log(n) + 2 * len(columns) * np.log(max(2, len(table.lengths)))
    length = sum(table.lengths[p] for p in columns)
    rank = (round(criterion, 6), len(columns), length, list(table.features).index(measure), columns)
    rmse = float(np.sqrt(squared))
    return Hypothesis(measure, columns, tuple(weights.tolist()), free, rmse, rmse < EXACT * table.scale, rank)


def alternatives_of(best: Hypothesis, hypotheses: Sequence[Hypothesis], table: FeatureTable) -> list[Hypothesis]:
    """Return the hypotheses that these labels cannot tell from the best one, the simplest first."""
    errors = best.squared_errors(table)
    alternatives: list[Hypothesis] = []
    for other in sorted((*hypotheses, *_twins(table, best)), key=lambda hypothesis: hypothesis.complexity):
        simpler = [each for each in (best, *alternatives) if each.measure == other.measure]
        if any(set(each.columns) <= set(other.columns) for each in simpler):
            continue
        if other.exact if best.exact else _excess(other, errors, table) <= _TOLD_APART:
            alternatives.append(other)
    return alternatives


def _twins(table: FeatureTable, best: Hypothesis) -> list[Hypothesis]:
    """Return the hypothesis with one path replaced by another that scores every labelled pair alike."""
    matrix = table.features[best.measure]
    others = [p for p in range(matrix.shape[1]) if p not in best.columns]
    return [
        _fitted(table, best.measure, tuple(sorted({*best.columns, p} - {own})))
        for own in (best.columns if len(best.columns) > 1 else ())
        for p in others
        if np.allclose(matrix[:, p], matrix[:, own], rtol=1e-9, atol=1e-12)
    ]


# ---- Certainty -----------------------------------------------------------------------------------
_MOST_BLOCKS = 256
"""Blocks of queries that are resampled."""


def folds_of(groups: np.ndarray, seed: int, most: int = 5) -> list[np.ndarray]:
    """Cut pairs into folds of whole queries, or of single pairs if they are all of one query."""
    units = groups if len(np.unique(groups)) > 1 else np.arange(len(groups))
    distinct = np.random.default_rng(seed).permutation(np.unique(units))
    parts = np.array_split(distinct, min(most, len(distinct)))
    return [np.flatnonzero(np.isin(units, part)) for part in parts if len(part)]


def rest_of(fold: np.ndarray, groups: np.ndarray, partners: np.ndarray) -> np.ndarray:
    """Return the pairs to learn from while a fold is held out: the others, without mirror images of the fold's pairs.

    A label that was given in both directions, as (a, b) and (b, a), would else be learned from and held out at once.

    >>> rest_of(np.array([0]), np.array([3, 4, 4]), np.array([4, 3, 5])).tolist()
    [2]
    """
    span = int(max(groups.max(initial=0), partners.max(initial=0))) + 1
    forth, back = groups * span + partners, partners * span + groups
    mirrored = np.isin(forth, back[fold][partners[fold] >= 0])
    return np.setdiff1d(np.flatnonzero(~mirrored), fold)


def cross_validate(table: FeatureTable, measures: Sequence[str], seed: int, centred: bool = False) -> Floats:
    """Predict each pair by the hypothesis chosen from the pairs of other queries; shape (pairs,).

    Where `centred`, a constant is fitted as well.
    """
    predicted = np.zeros(len(table.scores))
    for fold in folds_of(table.groups, seed):
        rest = rest_of(fold, table.groups, table.partners)
        if not len(rest):
            continue
        known, mean = table.take(rest).centre() if centred else (table.take(rest), 0.0)
        chosen = choose_hypothesis(known, measures)[0]
        predicted[fold] = chosen.predict(table.take(fold)) + mean
        if centred:
            predicted[fold] -= table.take(rest).means(chosen.measure)[list(chosen.columns)] @ np.array(chosen.weights)
    return predicted


def bootstrap_weights(best: Hypothesis, table: FeatureTable, seed: int, rounds: int = 200) -> list[tuple[float, float]]:
    """Return the 5 % and 95 % quantiles of each path's weight over resampled queries.

    Each round chooses the paths again, as many as the best has. So the lower bound is 0 for a path that others could
    replace, and for one that a constant could replace, because it fits only the mean of the labels.
    """
    matrix = table.features[best.measure]
    useful = useful_columns(matrix)
    if not set(best.columns) <= set(useful):  # it relates none of the labelled pairs, so any weight fits
        return [(0.0, weight) for weight in best.weights]
    varies = float(np.ptp(table.scores)) > 1e-12 * table.scale
    grams = _resampled_grams(np.column_stack([matrix, np.ones(len(matrix))]), table, seed, rounds)
    plain, beside_constant = np.zeros((2, rounds, len(best.columns)))
    for number, gram in enumerate(grams):
        plain[number] = _resampled(gram.without_constant(), best, useful)
        beside_constant[number] = _resampled(gram.without_mean(), best, useful) if varies else plain[number]
    low, high = np.quantile(plain, [0.05, 0.95], axis=0)
    if table.signed:
        return list(zip(np.minimum(low, best.weights).tolist(), np.maximum(high, best.weights).tolist(), strict=True))
    low = np.where(np.quantile(beside_constant, 0.05, axis=0) <= 1e-9, 0.0, np.minimum(low, best.weights))
    return list(zip(low.tolist(), np.maximum(high, best.weights).tolist(), strict=True))


def _resampled_grams(matrix: Floats, table: FeatureTable, seed: int, rounds: int) -> Iterator[Gram]:
    """Yield the products of resampled queries, or of resampled blocks of queries if there are many."""
    units = table.groups if len(np.unique(table.groups)) > 1 else np.arange(len(table.scores))
    blocks = np.array_split(np.unique(units), min(len(np.unique(units)), _MOST_BLOCKS))
    parts = [Gram.of(matrix, table, own) for own in (np.isin(units, block) for block in blocks)]
    products, with_scores = np.stack([part.products for part in parts]), np.stack([part.with_scores for part in parts])
    of_scores = np.array([part.of_scores for part in parts])
    rng = np.random.default_rng(seed)
    for _ in range(rounds):
        times = np.bincount(rng.integers(0, len(parts), len(parts)), minlength=len(parts)).astype(np.float64)
        yield Gram(np.tensordot(times, products, 1), times @ with_scores, float(times @ of_scores), table.signed)


def _resampled(gram: Gram, best: Hypothesis, useful: list[int]) -> Floats:
    """Return the weights of the paths of the best hypothesis when as many paths are chosen from a resample."""
    least = 1e-12 * float(gram.products.diagonal().max(initial=0.0))
    useful_here = [p for p in useful if gram.products[p, p] > least]
    chosen = ((), *_grow(gram, useful_here, len(best.columns)))[-1]
    known = tuple(p for p in best.columns if p in useful_here)
    if known and gram.error(known) <= gram.error(chosen) * (1 + 1e-9) + 1e-12 * gram.of_scores:
        chosen = known
    weights = dict(zip(chosen, gram.weights(chosen).tolist(), strict=True))
    return np.array([weights.get(p, 0.0) for p in best.columns])

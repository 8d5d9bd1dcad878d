"""Linear: a regularised logistic regression with signed weights, over the logarithms of path counts and over measures.

The simplest learner that can say "these paths count for a pair, and those against it". Each weight can be read.
"""

from pathlib import Path

import numpy as np
from scipy.special import expit

from neupath._runtime.resources import one_blas_thread
from neupath.graph.hin import Floats
from neupath.graph.nodes import Rows
from neupath.learn.inference.fitting import folds_of, rest_of
from neupath.learn.labels import Pairs
from neupath.learn.path_learner import COUNT, PathLearner

PENALTIES = (10.0, 3.0, 1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001, 0.0003, 0.0001)
"""The penalties that are tried, relative to the mean loss of a label."""
_UNJUDGED = 0.1
"""The penalty where no labels can be held out."""
_MOST_STEPS = 50


class Linear(PathLearner):
    """Rank the targets that paths reach by a weighted sum, in which a path can count against a pair.

        s(q, t) = 1 / (1 + exp(-(b + Σ_p Σ_m w_pm·x_pm(q, t))))

    For each candidate meta-path p of `infer`, the features x are PathSim (HeteSim along a path that is no round trip),
    a random walk (PCRW), and log(1 + the number of paths). The weights minimise, over features scaled to a standard
    deviation of 1,

        mean of -(y·log s + (1 - y)·log(1 - s)) + penalty / 2·Σ w²

    where labels y between 0 and 1 count as that share of a yes. The penalty is the one with the least loss on held-out
    queries; the larger one where equal. There is nothing random in it but which queries are held out together.

    Parameters
    ----------
    max_length
        The most steps of a meta-path.
    options
        The fields of `PathLearnerOptions`. The seed decides which queries are held out together.

    >>> from neupath import load
    >>> names = ["Mike", "Jim", "Mary", "Bob"]
    >>> labels = [(a, b, float((a, b) in {("Mike", "Bob"), ("Bob", "Mike")})) for a in names for b in names if a != b]
    >>> model = Linear().fit(load("toy"), labels)
    >>> model.top_k("Mike", k=1).ids
    ('Bob',)
    >>> model.weights_[0][0]
    'pathsim author-paper-venue-paper-author'
    """

    name = "linear"

    @property
    def weights_(self) -> list[tuple[str, float]]:
        """The features by name, with what one standard deviation of each adds to the margin; the largest first."""
        self._fitted()
        effects = np.array(self.learned["weights"]) * np.array(self.learned["deviations"])
        names = dict(zip(self.feature_names_, effects.tolist(), strict=True))
        return sorted(names.items(), key=lambda item: (-abs(item[1]), item[0]))

    # ---- Learning --------------------------------------------------------------------------------
    @one_blas_thread()
    def _learn(self, labels: Pairs) -> None:
        matrix = self._features_of(labels)
        means, deviations = matrix.mean(axis=0), matrix.std(axis=0)
        scaled = (matrix - means) / np.where(deviations > 0, deviations, np.inf)
        penalty = _choose_penalty(scaled, labels, self.seed)
        solution = fit_logistic(scaled, labels.scores, labels.weights, penalty)
        weights = solution[1:] / np.where(deviations > 0, deviations, np.inf)
        self.learned.update(
            used=np.flatnonzero(weights).tolist(), penalty=penalty, base=float(solution[0] - weights @ means),
            weights=weights.tolist(), deviations=deviations.tolist(),
        )  # fmt: skip

    def _describe(self, paths: Floats, queries: Rows, targets: Rows) -> Floats:  # noqa: ARG002
        counts = [column for column, name in enumerate(self.feature_names_) if name.startswith(COUNT)]
        features = paths.copy()
        features[:, counts] = np.log1p(features[:, counts])
        return np.nan_to_num(features, posinf=0.0)  # a count too large for a float says nothing

    def _margins(self, matrix: Floats) -> Floats:
        return np.asarray(self.learned["base"] + matrix @ np.array(self.learned["weights"]))

    def _shares(self, features: Floats) -> Floats:
        """Return each weight times its feature, and the margin of a pair without paths."""
        return np.append(features * np.array(self.learned["weights"]), self.learned["base"])

    # ---- Saving ----------------------------------------------------------------------------------
    def fingerprint(self) -> str:
        return str([self.learned["base"], *self.learned["weights"]])

    def _read(self, folder: Path) -> None:  # noqa: ARG002
        columns = np.array([self.learned.get(name) for name in ("weights", "deviations")], dtype=np.float64)
        base = np.array(self.learned.get("base"), dtype=np.float64)
        shapes, finite = (columns.shape, base.shape), np.isfinite(columns).all() and np.isfinite(base).all()
        if shapes != ((2, len(self.feature_names_)), ()) or not finite:
            raise ValueError("config.json does not hold a weight for each feature")


# ---- The regression ------------------------------------------------------------------------------
def _choose_penalty(matrix: Floats, labels: Pairs, seed: int) -> float:
    """Return the penalty with the least loss on held-out queries; `matrix` has the features of the labels."""
    losses, counts = np.zeros(len(PENALTIES)), 0.0
    for fold in folds_of(labels.queries, seed):
        rest = rest_of(fold, labels.queries, labels.partners)
        if not len(rest) or np.ptp(labels.scores[rest]) == 0:
            continue
        known, held_out = labels.take(rest), labels.take(fold)
        solution = None
        for number, penalty in enumerate(PENALTIES):
            solution = fit_logistic(matrix[rest], known.scores, known.weights, penalty, solution)
            margins = solution[0] + matrix[fold] @ solution[1:]
            losses[number] += held_out.weights @ (np.logaddexp(0, margins) - held_out.scores * margins)
        counts += held_out.weights.sum()
    return PENALTIES[int(np.argmin(np.round(losses / counts, 9)))] if counts else _UNJUDGED


def fit_logistic(matrix: Floats, scores: Floats, counts: Floats, penalty: float, start: Floats | None = None) -> Floats:
    """Return the constant and the weights of a logistic regression with a penalty, by Newton's method.

    Parameters
    ----------
    matrix
        The features; shape (pairs, features).
    scores
        The labels, between 0 and 1 and not all equal.
    counts
        How much each label counts.
    penalty
        That on half the sum of squared weights; more than 0, so there is one minimum.
    start
        Where to begin; what was returned for another penalty.

    >>> fit_logistic(np.array([[1.0], [0.0]]), np.array([1.0, 0.0]), np.ones(2), 0.1).round(2).tolist()
    [-0.78, 1.57]

    """
    design = np.column_stack([np.ones(len(matrix)), matrix])
    shares = counts / counts.sum()
    ridge = np.append(0.0, np.full(matrix.shape[1], penalty))

    def loss(at: Floats) -> float:
        margins = design @ at
        return float(shares @ (np.logaddexp(0, margins) - scores * margins) + at @ (ridge * at) / 2)

    solution = np.zeros(design.shape[1]) if start is None else start
    value = loss(solution)
    for _ in range(_MOST_STEPS):
        chances = expit(design @ solution)
        slope = design.T @ (shares * (chances - scores)) + ridge * solution
        curvature = (design * (shares * chances * (1 - chances))[:, None]).T @ design + np.diag(ridge)
        step = np.linalg.solve(curvature + 1e-12 * np.eye(len(curvature)), slope)
        length = 1.0
        while length > 1e-6 and (new := loss(solution - length * step)) > value - 1e-4 * length * float(slope @ step):
            length /= 2
        if length <= 1e-6 or value - new <= 1e-12 * max(1.0, abs(value)):
            return solution
        solution, value = solution - length * step, new
    return solution

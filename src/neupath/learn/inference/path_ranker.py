"""PathRanker: a regularised combination of many meta-paths and measures, after the path ranking algorithm.

Lao and Cohen (Machine Learning 2010) weight path-constrained random walks along many paths. Here every measure with a
bounded score gives a feature for every candidate meta-path. The weights are 0 or more, and a ridge penalty, chosen by
cross-validation, shares them among features that say the same:

    min  Σ (score - Σ_f weight_f·feature_f)² + penalty·Σ_f weight_f²
"""

from collections.abc import Iterable
from typing import Any, Self

import numpy as np

from neupath.errors import QueryError
from neupath.graph.hin import HIN, Floats
from neupath.learn.inference.fitting import FeatureTable, folds_of, rest_of
from neupath.learn.inference.infer import feature_table
from neupath.learn.labels import NodeTypes
from neupath.measures import MEASURES, Combination, Jaccard, Part

_PENALTIES = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)


class PathRanker(Combination):
    """Learn a weight for every candidate meta-path under every measure, from labelled pairs.

    Parameters
    ----------
    max_length
        The most steps of a meta-path.
    seed
        Decides the folds.
    parts
        The weights that were learned before; `params` returns them.

    >>> from neupath import load
    >>> labels = [("Mike", "Bob", 1.0), ("Mike", "Mary", 0.8), ("Mike", "Ann", 0.0), ("Mary", "Ann", 2 / 7)]
    >>> ranker = PathRanker(max_length=4).fit(load("toy"), labels)
    >>> ranker.top_k("Mike", k=1).ids
    ('Bob',)
    """

    name = "pathranker"
    exact = False

    def __init__(
        self, max_length: int = 6, seed: int = 0, parts: Iterable[Part | dict[str, object]] | None = None
    ) -> None:
        self.max_length, self.seed = max_length, seed
        self.parts = ()
        if parts is not None:
            super().__init__(parts)

    def params(self) -> dict[str, object]:
        return super().params() | {"max_length": self.max_length, "seed": self.seed}

    def fit(self, hin: HIN, pairs: Any = None, *, node_type: NodeTypes = None) -> Self:
        """Learn from labelled pairs; without pairs, use the weights learned before on another graph."""
        if pairs is not None:
            table, metapaths = feature_table(
                hin, pairs, node_type=node_type, max_length=self.max_length, seed=self.seed
            )
            weights = _fit_ridge(table, self.seed)
            used = [
                Part(measure, metapaths[p], float(weights[f]))
                for f, (measure, p) in enumerate(_feature_names(table))
                if weights[f] > 1e-6 * weights.max(initial=0.0)
            ]
            self.parts = tuple(used) or (Part("pathcount", metapaths[0], 0.0),)
        if not self.parts:
            raise QueryError("a PathRanker learns from labelled pairs: fit(hin, pairs)")
        return super().fit(hin)


def _feature_names(table: FeatureTable) -> list[tuple[str, int]]:
    """Return the measure and the path column of each feature."""
    return [
        (measure, p)
        for measure, scores in table.features.items()
        for p in range(len(table.lengths))
        if MEASURES[measure].bounded
        and measure != Jaccard.name  # which ranks as pathsim does
        and np.isfinite(scores[:, p]).all()
    ]


def _fit_ridge(table: FeatureTable, seed: int) -> Floats:
    """Return the weights with the penalty that predicts held-out queries best; shape (features,)."""
    matrix = np.stack([table.features[m][:, p] for m, p in _feature_names(table)], axis=1)
    folds = folds_of(table.groups, seed)
    errors = []
    for penalty in _PENALTIES:
        squared = 0.0
        for fold in folds:
            rest = rest_of(fold, table.groups, table.partners)
            predicted = matrix[fold] @ _ridge(matrix[rest], table.scores[rest], penalty)
            squared += float(((predicted - table.scores[fold]) ** 2).sum())
        errors.append(squared)
    return _ridge(matrix, table.scores, _PENALTIES[int(np.argmin(errors))])


def _ridge(matrix: Floats, scores: Floats, penalty: float) -> Floats:
    from scipy.optimize import nnls

    size = matrix.shape[1]
    root = np.linalg.cholesky(matrix.T @ matrix + penalty * np.eye(size))
    weights: Floats = nnls(root.T, np.linalg.solve(root, matrix.T @ scores), maxiter=30 * size)[0]
    return weights

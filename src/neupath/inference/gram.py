"""Gram: the products that least squares needs, instead of all the pairs; resamples are sums of them."""

from dataclasses import dataclass

import numpy as np

from neupath.graph import Floats


def defined(matrix: Floats) -> Floats:
    """Put zeros for paths that a measure is not defined on; these are never chosen."""
    return np.where(np.isfinite(matrix), matrix, 0.0)


@dataclass
class Gram:
    """The products that least squares needs; shapes (P, P), (P,) and a number."""

    products: Floats
    with_scores: Floats
    of_scores: float

    @classmethod
    def of(cls, matrix: Floats, scores: Floats) -> "Gram":
        return cls(matrix.T @ matrix, matrix.T @ scores, float(scores @ scores))

    def without_constant(self) -> "Gram":
        """Return the same without the last column."""
        return Gram(self.products[:-1, :-1], self.with_scores[:-1], self.of_scores)

    def without_mean(self) -> "Gram":
        """Return the products of what a constant, the last column, leaves of every other column and of the scores."""
        constant, size = self.products[-1, :-1], float(self.products[-1, -1])
        mean = float(self.with_scores[-1]) / size
        return Gram(
            self.products[:-1, :-1] - np.outer(constant, constant) / size,
            self.with_scores[:-1] - constant * mean,
            self.of_scores - mean * mean * size,
        )

    def weights(self, columns: tuple[int, ...]) -> Floats:
        """Solve for weights of 0 or more."""
        from scipy.optimize import nnls

        chosen = list(columns)
        if not chosen:
            return np.zeros(0)
        products = self.products[np.ix_(chosen, chosen)]
        root = np.linalg.cholesky(products + 1e-13 * np.trace(products) * np.eye(len(chosen)))
        solved: Floats = nnls(root.T, np.linalg.solve(root, self.with_scores[chosen]))[0]
        return solved

    def error(self, columns: tuple[int, ...]) -> float:
        """Return the sum of squared errors."""
        chosen, weights = list(columns), self.weights(columns)
        return float(
            self.of_scores
            - 2 * weights @ self.with_scores[chosen]
            + weights @ self.products[np.ix_(chosen, chosen)] @ weights
        )

    def preference(self, columns: tuple[int, ...]) -> tuple[float, tuple[int, ...]]:
        """Order sets of paths by their error; where that differs by rounding only, by their place."""
        return round(self.error(columns) / (self.of_scores or 1.0), 11), columns

    def slopes(self, columns: tuple[int, ...]) -> Floats:
        """Return how each path goes along with what the chosen ones leave; shape (P,)."""
        left: Floats = self.with_scores - self.products[:, list(columns)] @ self.weights(columns)
        return left

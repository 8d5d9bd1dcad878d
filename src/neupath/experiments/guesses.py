"""Guesses: rankings that know nothing of the meta-path, or all of it, to see what a metric gives them."""

from typing import Self

import numpy as np

from neupath.graph import HIN, Floats
from neupath.nodes import Rows
from neupath.scorer import Scorer


class Guess(Scorer):
    """Scores that are made of the true ones, or of nothing."""

    exact = False

    def __init__(self, teacher: Scorer, seed: int = 0) -> None:
        self.teacher, self.seed = teacher, seed
        self.hin_ = teacher.hin_

    def fit(self, hin: HIN) -> Self:
        self.hin_ = hin
        return self

    @property
    def source_type(self) -> str:
        return self.teacher.source_type

    @property
    def target_type(self) -> str:
        return self.teacher.target_type

    @property
    def metapath_text(self) -> None:
        return None

    def params(self) -> dict[str, object]:
        return {"seed": self.seed}

    def _noise(self, queries: Rows) -> Floats:
        """Return numbers between 0 and 1 that the seed and the query decide; shape (queries, targets)."""
        count = self.hin_.num_nodes(self.target_type)
        return np.stack([np.random.default_rng([self.seed, int(query)]).random(count) for query in queries])


class Exact(Guess):
    """The true scores."""

    name = "exact"

    def score_rows(self, queries: Rows) -> Floats:
        return self.teacher.score_rows(queries)


class NearlyExact(Guess):
    """The true scores, with noise of a millionth: as near as a learned model can be asked to come."""

    name = "exact + 1e-6 noise"

    def score_rows(self, queries: Rows) -> Floats:
        return self.teacher.score_rows(queries) + 1e-6 * self._noise(queries)


class Random(Guess):
    """Scores drawn at random."""

    name = "random"

    def score_rows(self, queries: Rows) -> Floats:
        return self._noise(queries)


class Reversed(Guess):
    """The true scores upside down: the most similar last."""

    name = "reversed"

    def score_rows(self, queries: Rows) -> Floats:
        return 1 - self.teacher.score_rows(queries)


class Constant(Guess):
    """One score for all."""

    name = "constant"

    def score_rows(self, queries: Rows) -> Floats:
        return np.full((len(queries), self.hin_.num_nodes(self.target_type)), 0.5)


class Popularity(Guess):
    """How many edges a target has, over the most that one has, whatever the query."""

    name = "popularity"

    def score_rows(self, queries: Rows) -> Floats:
        degrees = np.zeros(self.hin_.num_nodes(self.target_type))
        for relation, matrix in self.hin_.matrices.items():
            if relation.source == self.target_type:
                degrees += np.diff(matrix.indptr)
            if relation.target == self.target_type:
                degrees += np.bincount(matrix.indices, minlength=matrix.shape[1])
        return np.tile(degrees / max(1.0, degrees.max()), (len(queries), 1))


GUESSES: dict[str, type[Guess]] = {
    guess.name: guess for guess in (Exact, NearlyExact, Popularity, Constant, Random, Reversed)
}

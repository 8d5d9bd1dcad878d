"""Comparison: what closed forms and learned models make of the same labels, by their error on held-out queries."""

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from time import perf_counter
from typing import Any

import numpy as np

from neupath.errors import NeuPathError, QueryError
from neupath.graph import HIN, Floats
from neupath.inference import Inferred, PathRanker, infer
from neupath.inference.certainty import folds_of, r_squared
from neupath.inference.ranking import auc, with_negatives
from neupath.labels import Pairs
from neupath.scorer import Scorer

_FOLDS = 3
Fit = Callable[[HIN, Pairs], Scorer]


@dataclass(frozen=True)
class Compared:
    """How well one kind of scorer predicts labels of queries it has not seen; a reason where it could not be tried."""

    model: str
    rmse: float | None
    r2: float | None
    auc: float | None
    seconds: float
    reason: str | None = None

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def compare_models(found: Inferred, max_length: int, seed: int = 0) -> Iterator[Compared]:
    """Yield each kind of scorer with its error on held-out queries, all fitted to the same parts of the same labels.

    Where the labels make a ranking, the AUC says how good it is; otherwise RMSE and R² do.
    """
    hin, pairs = found.hin, found.pairs
    if not pairs.scored:
        pairs = with_negatives(pairs, hin.num_nodes(pairs.node_type), seed)
    for name, fit in _makers(max_length, seed):
        began = perf_counter()
        try:
            predicted = _held_out(hin, pairs, fit, seed)
        except NeuPathError as error:
            yield Compared(name, None, None, None, perf_counter() - began, str(error))
            continue
        seconds = perf_counter() - began
        if found.kind == "ranking":
            yield Compared(name, None, None, auc(pairs.scores, predicted), seconds)
        else:
            rmse = float(np.sqrt(np.mean((predicted - pairs.scores) ** 2)))
            yield Compared(name, rmse, r_squared(pairs.scores, predicted), None, seconds)


def _makers(max_length: int, seed: int) -> list[tuple[str, Fit]]:
    def inferred(hin: HIN, pairs: Pairs) -> Scorer:
        return infer(hin, pairs, max_length=max_length, seed=seed).scorer

    def path_ranker(hin: HIN, pairs: Pairs) -> Scorer:
        return PathRanker(max_length, seed).fit(hin, pairs)

    def countpath(hin: HIN, pairs: Pairs) -> Scorer:
        from neupath.models import CountPath

        return CountPath(half_length=max(1, max_length // 2), seed=seed).fit(hin, pairs)

    def neupath(hin: HIN, pairs: Pairs) -> Scorer:
        from neupath.models import NeuPath

        return NeuPath(dim=128, layers=min(4, max_length), paths=2, epochs=20, seed=seed).fit(hin, pairs)

    return [("infer", inferred), ("pathranker", path_ranker), ("countpath", countpath), ("neupath", neupath)]


def _held_out(hin: HIN, pairs: Pairs, fit: Fit, seed: int) -> Floats:
    """Predict the labels of each part of the queries by a scorer fitted to the others; shape (pairs,)."""
    predicted = np.zeros(len(pairs))
    everything = np.arange(len(pairs))
    folds = folds_of(pairs.queries, seed, _FOLDS)
    if len(folds) < 2:
        raise QueryError("one labelled pair leaves nothing to hold out")
    for fold in folds:
        rest = np.setdiff1d(everything, fold)
        scorer = fit(hin, Pairs(pairs.node_type, pairs.queries[rest], pairs.targets[rest], pairs.scores[rest]))
        for query in np.unique(pairs.queries[fold]):
            own = fold[pairs.queries[fold] == query]
            predicted[own] = scorer.score_rows(np.array([query]))[0][pairs.targets[own]]
    return predicted

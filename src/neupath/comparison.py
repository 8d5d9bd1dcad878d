"""Comparison: what closed forms and learned models make of the same labels, by their error on held-out queries."""

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from time import perf_counter
from typing import Any

import numpy as np

from neupath.errors import MissingExtraError, NeuPathError
from neupath.graph import HIN, Floats
from neupath.inference import Inferred, PathRanker
from neupath.inference.fitting import folds_of, r_squared
from neupath.labels import Pairs
from neupath.scorer import Scorer

_FOLDS = 3


@dataclass(frozen=True)
class Compared:
    """How well one kind of scorer predicts labels of queries it has not seen; a reason where it could not be tried."""

    model: str
    rmse: float | None
    r2: float | None
    seconds: float
    reason: str | None = None

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def compare_models(found: Inferred, max_length: int, seed: int = 0) -> Iterator[Compared]:
    """Yield what was inferred, then each learned model, by cross-validated error on the same pairs."""
    hin, pairs = found.hin, found.pairs
    if found.held_out_rmse is not None:
        plural = "s" if len(found.parts) > 1 else ""
        name = f"infer ({found.measure}, {len(found.parts)} path{plural})"
        yield Compared(name, found.held_out_rmse, found.held_out_r2, 0.0)
    for name, fit in _makers(max_length, seed):
        began = perf_counter()
        try:
            predicted = _held_out(hin, pairs, fit, seed)
        except NeuPathError as error:
            yield Compared(name, None, None, perf_counter() - began, str(error))
            continue
        rmse = float(np.sqrt(np.mean((predicted - pairs.scores) ** 2)))
        yield Compared(name, rmse, r_squared(pairs.scores, predicted), perf_counter() - began)


Fit = Callable[[HIN, Pairs], Scorer]


def _makers(max_length: int, seed: int) -> list[tuple[str, Fit]]:
    def path_ranker(hin: HIN, pairs: Pairs) -> Scorer:
        return PathRanker(max_length, seed).fit(hin, pairs)

    def countpath(hin: HIN, pairs: Pairs) -> Scorer:
        return _models().CountPath(half_length=max(1, max_length // 2), seed=seed).fit(hin, pairs)  # type: ignore[no-any-return]

    def neupath(hin: HIN, pairs: Pairs) -> Scorer:
        layers = min(4, max_length)
        return _models().NeuPath(dim=128, layers=layers, paths=2, epochs=20, seed=seed).fit(hin, pairs)  # type: ignore[no-any-return]

    return [("pathranker", path_ranker), ("countpath", countpath), ("neupath", neupath)]


def _models() -> Any:
    try:
        from neupath import models
    except MissingExtraError as error:
        raise NeuPathError(str(error)) from error
    return models


def _held_out(hin: HIN, pairs: Pairs, fit: Fit, seed: int) -> Floats:
    """Predict the labels of each part of the queries by a scorer fitted to the others; shape (pairs,)."""
    predicted = np.zeros(len(pairs))
    everything = np.arange(len(pairs))
    folds = folds_of(pairs.queries, seed, _FOLDS)
    if len(folds) < 2:
        raise NeuPathError("one labelled pair leaves nothing to hold out")
    for fold in folds:
        rest = np.setdiff1d(everything, fold)
        scorer = fit(hin, Pairs(pairs.node_type, pairs.queries[rest], pairs.targets[rest], pairs.scores[rest]))
        for query in np.unique(pairs.queries[fold]):
            own = fold[pairs.queries[fold] == query]
            predicted[own] = scorer.score_rows(np.array([query]))[0][pairs.targets[own]]
    return predicted

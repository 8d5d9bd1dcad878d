"""Training runs: train an architecture and save it; compare closed forms and models on held-out labels."""

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from neupath.engine.scorer import Scorer
from neupath.errors import NeuPathError, QueryError
from neupath.graph.hin import HIN, Floats
from neupath.learn.evaluation import auc, evaluate_pairs, r_squared, split_queries
from neupath.learn.inference import Inferred, infer
from neupath.learn.inference.fitting import folds_of, rest_of
from neupath.learn.labels import Pairs, Protocol, draw_pairs, with_negatives
from neupath.learn.models import Model
from neupath.learn.models.training import CHECKPOINT, EpochCallback, ignore_epoch
from neupath.learn.path_learner import PathLearner
from neupath.learn.registry import ARCHITECTURES, make_model
from neupath.measures import measure_named

CURVE = "curve.svg"


# ---- Learning ------------------------------------------------------------------------------------
@dataclass(frozen=True)
class TrainedModel:
    """The result of a training run."""

    folder: str
    architecture: str
    epochs: int
    best_epoch: int
    train_rmse: float
    validation_rmse: float | None
    """None if there were too few queries to hold some out."""
    seconds: float
    metapaths: list[tuple[str, float]] | None = None
    """What a model reads as that spells out meta-paths, with their weights."""

    def to_dict(self) -> dict[str, object]:
        return asdict(self) | {"metapaths": self.metapaths or []}


@dataclass(frozen=True)
class TrainedEmbedding:
    """The result of learning from random walks."""

    folder: str
    architecture: str
    node_type: str
    seconds: float

    def to_dict(self) -> dict[str, object]:
        return asdict(self)


def embed(
    hin: HIN, architecture: str, metapath: str | None, node_type: str | None, folder: Path, settings: dict[str, Any]
) -> TrainedEmbedding:
    """Learn vectors of nodes from random walks, along a meta-path or from the nodes of a type, and save them."""
    source = ARCHITECTURES[architecture].learns_from
    sources = {"metapath": metapath, "node_type": node_type}
    if [name for name, value in sources.items() if value is not None] != [source]:
        raise QueryError(f"{architecture} learns from walks, and needs ‹{source}› alone to know which")
    began = perf_counter()
    scorer: Model = make_model(architecture, **{source: sources[source]}, **settings).fit(hin)
    return TrainedEmbedding(str(scorer.save(folder)), architecture, scorer.node_type_, perf_counter() - began)


@dataclass(frozen=True)
class DrawnLabels:
    """Labels that a measure along a meta-path gives to the queries that training may see."""

    metapath: str
    measure: str = "pathsim"
    protocol: Protocol = "strict"


def learn(
    hin: HIN, architecture: str, labels: Pairs | DrawnLabels, folder: Path, settings: dict[str, Any],
    on_epoch: EpochCallback = ignore_epoch,
) -> TrainedModel:  # fmt: skip
    """Train a model with some settings, its seed among them; save it, with its log and learning curve if it has them.

    `on_epoch` is no `Progress`: it receives the errors of each epoch, which a progress bar does not know.
    """
    model = make_model(architecture, **settings)
    options: dict[str, Any] = {}
    if isinstance(labels, DrawnLabels):
        teacher = measure_named(labels.measure, labels.metapath).fit(hin)
        split = split_queries(hin, teacher.source_type, seed=model.seed)
        options = {"teacher": teacher, "queries": split.train, "protocol": labels.protocol}
    if isinstance(model, PathLearner):
        began = perf_counter()
        known = labels if isinstance(labels, Pairs) else draw_pairs(**options, seed=model.seed)
        model.fit(hin, known).save(folder)
        seconds, error = perf_counter() - began, evaluate_pairs(model, known).rmse or 0.0
        return TrainedModel(str(folder), architecture, model.rounds_, model.rounds_, error, None, seconds)
    if isinstance(labels, DrawnLabels):
        options["validation"] = split.validation
    model.fit(hin, labels if isinstance(labels, Pairs) else None, **options, folder=folder, on_epoch=on_epoch)
    model.save(folder)
    (folder / CHECKPOINT).unlink(missing_ok=True)  # the run is over; the same command again starts a new one
    from neupath.evidence.drawing import draw_curve

    draw_curve([asdict(epoch) for epoch in model.log_], folder / CURVE)
    best = min(model.log_, key=lambda epoch: epoch.validation_rmse)
    return TrainedModel(
        str(folder), architecture, len(model.log_), best.epoch, best.train_rmse, model.validation_rmse_,
        sum(epoch.seconds for epoch in model.log_), model.metapaths() if hasattr(model, "metapaths") else None,
    )  # fmt: skip


# ---- Comparison ----------------------------------------------------------------------------------
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


def compare_models(inferred: Inferred, max_length: int, seed: int = 0) -> Iterator[Compared]:
    """Yield each kind of scorer with its error on held-out queries, all fitted to the same parts of the same labels.

    Where the labels make a ranking, the AUC says how good it is; otherwise RMSE and R² do.
    """
    hin, pairs = inferred.hin, inferred.pairs
    if not pairs.scored:
        pairs = with_negatives(pairs, hin.num_nodes(pairs.target_type), seed)
    for name, fit in _fits(max_length, seed).items():
        began = perf_counter()
        try:
            predicted = _held_out(hin, pairs, fit, seed)
        except NeuPathError as error:
            yield Compared(name, None, None, None, perf_counter() - began, str(error))
            continue
        seconds = perf_counter() - began
        if inferred.kind == "ranking":
            yield Compared(name, None, None, auc(pairs.scores, predicted), seconds)
        else:
            rmse = float(np.sqrt(np.mean((predicted - pairs.scores) ** 2)))
            yield Compared(name, rmse, r_squared(pairs.scores, predicted), None, seconds)


def _fits(max_length: int, seed: int) -> dict[str, Fit]:
    def fit_model(architecture: str, **settings: Any) -> Fit:
        return lambda hin, pairs: make_model(architecture, seed=seed, **settings).fit(hin, pairs)

    return {
        "infer": lambda hin, pairs: infer(hin, pairs, max_length=max_length, seed=seed).scorer,
        "pathboost": fit_model("pathboost"),
        "neupath": fit_model("neupath", dim=128, layers=min(4, max_length), paths=2, epochs=20),
    }


def _held_out(hin: HIN, pairs: Pairs, fit: Fit, seed: int) -> Floats:
    """Predict the labels of each part of the queries by a scorer fitted to the others; shape (pairs,)."""
    predicted = np.zeros(len(pairs))
    folds = folds_of(pairs.queries, seed, _FOLDS)
    if len(folds) < 2:
        raise QueryError("one labelled pair leaves nothing to hold out")
    for fold in folds:
        rest = rest_of(fold, pairs.queries, pairs.partners)
        if not len(rest):
            raise QueryError(
                "the labels held out are the others in the other direction, which leaves none to learn from"
            )
        scorer = fit(hin, pairs.take(rest))
        for query in np.unique(pairs.queries[fold]):
            own = fold[pairs.queries[fold] == query]
            predicted[own] = scorer.score_rows(np.array([query]))[0][pairs.targets[own]]
    return predicted

"""Learning: from a graph, and labels where they are needed, to a saved model, as `neupath train` does it."""

from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

from neupath.drawing import draw_curve
from neupath.errors import QueryError, listed
from neupath.evaluation import split_queries
from neupath.graph import HIN
from neupath.labels import Protocol
from neupath.measures import measure_named
from neupath.models import EMBEDDINGS, CountPath, MetaPath2Vec, WalkEmbedding, model_named
from neupath.models.training import CHECKPOINT, Watch

CURVE = "curve.svg"


@dataclass(frozen=True)
class Learned:
    """What came of a training run."""

    folder: str
    model: str
    epochs: int
    best_epoch: int
    train_rmse: float
    validation_rmse: float | None
    """Nothing where there were too few queries to keep some for it."""
    seconds: float
    metapaths: list[tuple[str, float]]

    def to_dict(self) -> dict[str, object]:
        """Return what `train --json` prints."""
        return asdict(self)


@dataclass(frozen=True)
class Embedded:
    """What came of learning from walks alone."""

    folder: str
    model: str
    node_type: str
    seconds: float

    def to_dict(self) -> dict[str, object]:
        """Return what `train --json` prints."""
        return asdict(self)


def embed(
    hin: HIN, model: str, path: str | None, node_type: str | None, folder: Path, settings: dict[str, Any]
) -> Embedded:
    """Learn vectors of nodes from walks, without labels, along a meta-path or from nodes of a type; and save them."""
    wanted, other = ("--path", "--type") if model == MetaPath2Vec.name else ("--type", "--path")
    given = {"--path": path, "--type": node_type}
    if given[wanted] is None or given[other] is not None:
        raise QueryError(f"{model} learns from walks, and needs {wanted} alone to know which")
    made: Any = EMBEDDINGS[model]
    unknown = sorted({*settings} - {*made("").params(), "device"})
    if unknown:
        raise QueryError(f"a {model} model has no {listed(unknown)}; leave it out")
    began = perf_counter()
    scorer: WalkEmbedding = made(given[wanted], **settings).fit(hin)
    return Embedded(str(scorer.save(folder)), model, scorer.node_type_, perf_counter() - began)


def learn(
    hin: HIN,
    model: str,
    path: str | None,
    pairs: Any,
    folder: Path,
    *,
    measure: str,
    protocol: Protocol,
    seed: int,
    settings: dict[str, Any],
    watch: Watch = lambda *_: None,
    processes: int = 1,
) -> Learned:
    """Train a model on labels from a measure, or on labelled pairs, and save it with its log and learning curve."""
    scorer = model_named(model, seed=seed, **settings)
    labels: dict[str, Any] = {"pairs": pairs}
    if path is not None:
        teacher = measure_named(measure, path).fit(hin)
        split = split_queries(hin.num_nodes(teacher.source_type), seed=seed)
        labels = {"teacher": teacher, "queries": split.train, "validation": split.validation, "protocol": protocol}
    scorer.fit(hin, **labels, folder=folder, watch=watch, processes=processes)
    scorer.save(folder)
    (folder / CHECKPOINT).unlink(missing_ok=True)  # the run is over; the same command again starts a new one
    draw_curve([asdict(epoch) for epoch in scorer.log_], folder / CURVE)
    best = min(scorer.log_, key=lambda epoch: epoch.validation_rmse)
    return Learned(
        str(folder), model, len(scorer.log_), best.epoch, best.train_rmse, scorer.validation_rmse_,
        sum(epoch.seconds for epoch in scorer.log_), scorer.metapaths() if isinstance(scorer, CountPath) else [],
    )  # fmt: skip

"""Learning: from a graph and labels to a saved model, as `neupath train` does it."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from neupath.drawing import draw_curve
from neupath.errors import QueryError, did_you_mean, listed
from neupath.evaluation import split_queries
from neupath.graph import HIN
from neupath.labels import Protocol
from neupath.measures import measure_named
from neupath.models import MODELS, CountPath, NeuPath
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


def learn(
    hin: HIN,
    model: str,
    path: str | None,
    pairs: Any,
    folder: Path,
    *,
    measure: str,
    protocol: Protocol,
    layers: int,
    epochs: int,
    seed: int,
    device: str | None,
    settings: dict[str, Any],
    watch: Watch = lambda *_: None,
) -> Learned:
    """Train a model on labels from a measure, or on labelled pairs, and save it with its log and learning curve."""
    if model not in MODELS:
        raise QueryError(f"no model {model!r} (there are {listed(MODELS)}){did_you_mean(model, MODELS)}")
    scorer: NeuPath | CountPath
    common: dict[str, Any] = {"epochs": epochs, "seed": seed, "device": device} | settings
    scorer = NeuPath(layers=layers, **common) if model == "neupath" else CountPath(half_length=layers, **common)
    labels: dict[str, Any] = {"pairs": pairs}
    if path is not None:
        teacher = measure_named(measure, path).fit(hin)
        split = split_queries(hin.num_nodes(teacher.source_type), seed=seed)
        labels = {"teacher": teacher, "queries": split.train, "validation": split.validation, "protocol": protocol}
    scorer.fit(hin, **labels, folder=folder, watch=watch)
    scorer.save(folder)
    (folder / CHECKPOINT).unlink(missing_ok=True)  # the run is over; the same command again starts a new one
    draw_curve([asdict(epoch) for epoch in scorer.log_], folder / CURVE)
    best = min(scorer.log_, key=lambda epoch: epoch.validation_rmse)
    return Learned(
        str(folder), model, len(scorer.log_), best.epoch, best.train_rmse, scorer.validation_rmse_,
        sum(epoch.seconds for epoch in scorer.log_), scorer.metapaths() if isinstance(scorer, CountPath) else [],
    )  # fmt: skip

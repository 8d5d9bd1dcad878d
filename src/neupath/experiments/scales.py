"""Scales: how much of everything a reproduction takes."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field


@dataclass(frozen=True)
class Scale:
    """How many queries there are to learn from, to choose the best epoch by and to test on, and how models are set."""

    name: str
    queries: tuple[int, int, int]
    settings: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    """What models of some name are told; under "" what all learned ones are."""
    shares: tuple[float, ...] = (0.0125, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0)
    most_paths: int = 5
    tested: tuple[int, ...] = (1, 50, 100, 200, 400, 800, 1600)
    """Numbers of test nodes that are timed."""

    def settings_of(self, model: str) -> dict[str, object]:
        return {**self.settings.get("", {}), **self.settings.get(model, {})}

    def to_dict(self) -> dict[str, object]:
        """Return the scale as JSON can hold it."""
        return asdict(self)


FULL = Scale(
    "full",
    (400, 100, 400),
    {
        "": {"dim": 256, "epochs": 20},
        "neupath": {"epochs": 40},
        "countpath": {"epochs": 40},
        "nbfnet": {"dim": 32},  # as in its paper: each query passes over the whole graph
        "node2vec": {"dim": 128, "epochs": 2},
        "metapath2vec": {"dim": 128, "epochs": 2},
    },
)
QUICK = Scale(
    "quick",
    (40, 10, 30),
    {
        "": {"dim": 16, "epochs": 3},
        "countpath": {"epochs": 4},
        "nbfnet": {"dim": 4, "epochs": 1},
        "node2vec": {"dim": 16, "epochs": 1, "walks": 2, "length": 10},
        "metapath2vec": {"dim": 16, "epochs": 1, "walks": 2, "length": 10},
    },
    shares=(0.25, 1.0),
    most_paths=2,
    tested=(1, 10, 30),
)

"""Parts: the paper's tables and figures as plans of runs, and ours."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from neupath.experiments.columns import Column
from neupath.experiments.guesses import GUESSES
from neupath.experiments.runs import CLASSICAL, EXACT, INFERRED, Run
from neupath.experiments.scales import Scale
from neupath.labels import PROTOCOLS, Protocol

BASELINES = ("mlp", "gcn", "gat", "sage", "gin", "rgcn", "han", "hgt", "gtn", "nbfnet")
LEARNED = (*BASELINES, "neupath", "countpath")
VARIANTS: dict[str, tuple[tuple[str, object], ...]] = {
    "mean-pooling": (("pooling", "mean"),),
    "max-pooling": (("pooling", "max"),),
    "sum-pooling": (("pooling", "sum"),),
    "without-node-types": (("node_types", False),),
    "without-edge-types": (("edge_types", False),),
    "without-node-or-edge-types": (("node_types", False), ("edge_types", False)),
    "neupath": (),
}


@dataclass(frozen=True)
class Question:
    """What a reproduction is of: columns, seeds and a scale; `models` restricts those that are compared."""

    columns: Sequence[Column]
    seeds: Sequence[int]
    scale: Scale
    models: Sequence[str] | None = None

    def wanted(self, models: Sequence[str]) -> list[str]:
        return [model for model in models if self.models is None or model in self.models]

    @property
    def focus(self) -> list[Column]:
        """The two columns of the paper's figures, APA and APCPA, or the first two where these are not."""
        found = [column for column in self.columns if column.path in ("APA", "APCPA")]
        return found or list(self.columns[:2])

    @property
    def ablated(self) -> list[Column]:
        """The columns of the paper's ablations: those of one graph."""
        return [column for column in self.columns if column.graph == self.columns[0].graph]


def plan_comparison(question: Question) -> Iterator[Run]:
    """All models on all columns; those that learn from labels under both protocols."""
    for seed, column in product(question.seeds, question.columns):
        for model, protocol in product(question.wanted((*LEARNED, INFERRED)), PROTOCOLS):
            yield Run(model, column, _protocol(protocol), seed)
        for model in question.wanted(CLASSICAL):
            yield Run(model, column, "strict", seed)


def plan_ablation(question: Question) -> Iterator[Run]:
    """NeuPath with other poolings, and without types."""
    variants = VARIANTS.values() if question.wanted(("neupath",)) else ()
    for seed, column, settings, protocol in product(question.seeds, question.ablated, variants, PROTOCOLS):
        yield Run("neupath", column, _protocol(protocol), seed, settings)


def plan_paths(question: Question) -> Iterator[Run]:
    """NeuPath with T = 1, 2, … paths."""
    tried = range(1, question.scale.most_paths + 1) if question.wanted(("neupath",)) else ()
    for seed, column, paths in product(question.seeds, question.focus, tried):
        settings = () if paths == column.paths else (("paths", paths),)
        yield Run("neupath", column, "strict", seed, settings)


def plan_labels(question: Question) -> Iterator[Run]:
    """NeuPath and CountPath with a share of the training queries."""
    models = question.wanted(("neupath", "countpath"))
    for seed, column, model, share in product(question.seeds, question.focus, models, question.scale.shares):
        yield Run(model, column, "strict", seed, (), share)


def plan_runtime(question: Question) -> Iterator[Run]:
    """The time to score more and more test nodes: exactly, by NeuPath, by CountPath, and by two rivals."""
    models = (*question.wanted(("neupath", "countpath", "gcn", "nbfnet")), EXACT)
    for seed, model in product(question.seeds, models):
        yield Run(model, question.focus[0], "strict", seed, timed=True)


def plan_chance(question: Question) -> Iterator[Run]:
    """What rankings that know nothing, or all, get under each metric."""
    for seed, column, guess in product(question.seeds, question.columns, GUESSES):
        yield Run(guess, column, "strict", seed)


def _protocol(text: str) -> Protocol:
    return "paper" if text == "paper" else "strict"


PARTS: dict[str, tuple[str, Callable[[Question], Iterator[Run]]]] = {
    "rmse": ("how near scores come, all models on all columns (the paper's table 4)", plan_comparison),
    "ndcg": ("how good rankings are, all models on all columns (the paper's table 5)", plan_comparison),
    "ablation": ("NeuPath with other poolings and without types (tables 6 and 7)", plan_ablation),
    "paths": ("NeuPath with T = 1 to 5 paths (figure 5)", plan_paths),
    "labels": ("with 1.25 % to 100 % of the training queries (figure 7)", plan_labels),
    "runtime": ("the time to score test nodes, the more there are (figure 6)", plan_runtime),
    "chance": ("what random, reversed, constant and popular rankings get: the audit of the metrics", plan_chance),
}

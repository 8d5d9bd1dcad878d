"""Parts: the paper's tables and figures as plans of runs, and ours."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from time import perf_counter
from typing import Any, Self

import numpy as np

from neupath.engine.scorer import Scorer
from neupath.graph.hin import HIN, Floats
from neupath.graph.nodes import Rows
from neupath.learn.evaluation import Evaluation, Split, evaluate, split_queries
from neupath.learn.inference import infer
from neupath.learn.labels import PROTOCOLS, Protocol, draw_pairs
from neupath.learn.registry import ARCHITECTURES, learning_from, make_model, make_scorer
from neupath.learn.reproduce.protocol import Column, Preset, load_graph
from neupath.measures import GRAPH_MEASURES, PathSim


# ---- Guesses -------------------------------------------------------------------------------------
class ReferenceRanking(Scorer):
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


class Exact(ReferenceRanking):
    """The true scores."""

    name = "exact"

    def score_rows(self, queries: Rows) -> Floats:
        return self.teacher.score_rows(queries)


class NearlyExact(ReferenceRanking):
    """The true scores, with noise of a millionth: as near as a learned model can be asked to come."""

    name = "exact + 1e-6 noise"

    def score_rows(self, queries: Rows) -> Floats:
        return self.teacher.score_rows(queries) + 1e-6 * self._noise(queries)


class Random(ReferenceRanking):
    """Scores drawn at random."""

    name = "random"

    def score_rows(self, queries: Rows) -> Floats:
        return self._noise(queries)


class Reversed(ReferenceRanking):
    """The true scores upside down: the most similar last."""

    name = "reversed"

    def score_rows(self, queries: Rows) -> Floats:
        return 1 - self.teacher.score_rows(queries)


class Constant(ReferenceRanking):
    """One score for all."""

    name = "constant"

    def score_rows(self, queries: Rows) -> Floats:
        return np.full((len(queries), self.hin_.num_nodes(self.target_type)), 0.5)


class Popularity(ReferenceRanking):
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


GUESSES: dict[str, type[ReferenceRanking]] = {
    guess.name: guess for guess in (Exact, NearlyExact, Popularity, Constant, Random, Reversed)
}


# ---- Runs ----------------------------------------------------------------------------------------
INFERRED, EXACT = "infer", "pathsim"
CLASSICAL = (*GRAPH_MEASURES, *learning_from("metapath", "node_type"))
"""Those that learn nothing from labels."""


@dataclass(frozen=True)
class Run:
    """What is trained and tested: `settings` are a variant's own, `share` the part of the training queries it has."""

    model: str
    column: Column
    protocol: Protocol
    seed: int
    settings: tuple[tuple[str, Any], ...] = ()
    share: float = 1.0
    timed: bool = False
    """Whether scoring is timed for more and more test nodes, instead of being judged."""

    @property
    def key(self) -> str:
        """A name for the run's file."""
        parts = [self.model, self.column.graph, self.column.path, self.protocol, f"seed{self.seed}"]
        parts += [f"{name}-{value}" for name, value in self.settings]
        parts += [f"share-{self.share:g}"] if self.share < 1 else []
        text = "__".join([*parts, "timed"] if self.timed else parts)
        return re.sub(r"[^\w.-]+", "-", text)

    def to_dict(self) -> dict[str, object]:
        """Return what tables are made of."""
        return {
            "model": self.model, "graph": self.column.graph, "path": self.column.path, "protocol": self.protocol,
            "seed": self.seed, "settings": dict(self.settings), "share": self.share,
        }  # fmt: skip


def execute(run: Run, scale: Preset, data: Path | None, device: str | None) -> dict[str, object]:
    """Train and test; the same in any process."""
    hin = load_graph(run.column.graph, data)
    teacher = PathSim(run.column.path).fit(hin)
    split = split_queries(hin, teacher.source_type, scale.queries, seed=run.seed)
    labelled = replace(split, train=split.train[: max(1, round(run.share * len(split.train)))])
    began = perf_counter()
    scorer = _fit(run, scale, hin, teacher, labelled, device)
    found = run.to_dict() | {"train_seconds": perf_counter() - began}
    if run.timed:
        return found | {"timings": _time(scorer, scale, hin, teacher, run.seed)}
    tested: Evaluation = evaluate(scorer, teacher, split.test, run.protocol)
    return found | tested.to_dict() | {"metapath": teacher.metapath_text}


def _fit(run: Run, scale: Preset, hin: HIN, teacher: PathSim, split: Split, device: str | None) -> Scorer:
    if run.model in GUESSES:
        return GUESSES[run.model](teacher, run.seed)
    if run.model == EXACT:
        return teacher
    if run.model == INFERRED:
        return infer(hin, draw_pairs(teacher, split.train, run.protocol, seed=run.seed), max_length=4).scorer
    if run.model in GRAPH_MEASURES:
        return make_scorer(hin, measure=run.model, node_type=teacher.source_type)
    settings = scale.settings_of(run.model) | dict(run.settings) | {"seed": run.seed}
    return _train(run, settings, hin, teacher, split, device)


def _train(
    run: Run, settings: Mapping[str, Any], hin: HIN, teacher: PathSim, split: Split, device: str | None
) -> Scorer:
    source = ARCHITECTURES[run.model].learns_from
    if source != "labels":
        about = {"metapath": run.column.path, "node_type": teacher.source_type}[source]
        embedding: Scorer = make_model(run.model, **{source: about}, **settings, device=device).fit(hin)
        return embedding
    own: dict[str, Any] = {"layers": run.column.layers}
    if run.model == "countpath":
        own = {"layers": 2}
        settings = {name: value for name, value in settings.items() if name != "dim"}
    elif run.model == "neupath":
        own["paths"] = run.column.paths
    elif run.model == "han":
        own["metapaths"] = list(run.column.candidates)
    model = make_model(run.model, **(own | dict(settings)), device=device)
    labels: dict[str, Any] = {"teacher": teacher, "queries": split.train, "validation": split.validation}
    trained: Scorer = model.fit(hin, **labels, protocol=run.protocol)
    return trained


def _time(scorer: Scorer, scale: Preset, hin: HIN, teacher: PathSim, seed: int) -> list[tuple[int, float]]:
    """Return the seconds that scoring takes for more and more test nodes, against all targets."""
    order = np.random.default_rng(seed).permutation(hin.num_nodes(teacher.source_type))
    scorer.score_rows(order[:2])
    found = []
    for count in (n for n in scale.tested if n <= len(order)):
        began = perf_counter()
        for start in range(0, count, 64):
            scorer.score_rows(order[start : min(start + 64, count)])
        found.append((count, perf_counter() - began))
    return found


# ---- Parts ---------------------------------------------------------------------------------------
LEARNED = (*learning_from("labels", baseline=True), *learning_from("labels", baseline=False))
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
    scale: Preset
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

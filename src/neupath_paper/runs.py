"""Runs: what one run trains and tests, and the plan of runs of each table and figure."""

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
from neupath.learn.evaluation import Split, evaluate, split_queries
from neupath.learn.inference import infer
from neupath.learn.labels import PROTOCOLS, Protocol, draw_pairs
from neupath.learn.registry import ARCHITECTURES, make_model, make_scorer
from neupath.measures import GRAPH_MEASURES, PathSim
from neupath_paper.protocol import Column, Preset, load_graph


# ---- Reference rankings --------------------------------------------------------------------------
class ReferenceRanking(Scorer):
    """Scores that are made from the true ones, or without any knowledge, to calibrate the metrics."""

    exact = False

    def __init__(self, name: str, teacher: Scorer, seed: int = 0) -> None:
        self.name, self.teacher, self.seed = name, teacher, seed  # type: ignore[misc]
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

    def params(self) -> dict[str, object]:
        return {"seed": self.seed}

    def score_rows(self, queries: Rows) -> Floats:
        return REFERENCE_RANKINGS[self.name](self, queries)

    def truth(self, queries: Rows) -> Floats:
        return self.teacher.score_rows(queries)

    def noise(self, queries: Rows) -> Floats:
        """Return numbers between 0 and 1 that depend on the seed and the query; shape (queries, targets)."""
        count = self.hin_.num_nodes(self.target_type)
        return np.stack([np.random.default_rng([self.seed, int(query)]).random(count) for query in queries])

    def popularity(self, queries: Rows) -> Floats:
        """Return the number of edges of each target, relative to the largest; shape (queries, targets)."""
        degrees = np.zeros(self.hin_.num_nodes(self.target_type))
        for relation, matrix in self.hin_.matrices.items():
            if relation.source == self.target_type:
                degrees += np.diff(matrix.indptr)
            if relation.target == self.target_type:
                degrees += np.bincount(matrix.indices, minlength=matrix.shape[1])
        return np.tile(degrees / max(1.0, degrees.max()), (len(queries), 1))


REFERENCE_RANKINGS: dict[str, Callable[[ReferenceRanking, Rows], Floats]] = {
    "exact": ReferenceRanking.truth,
    "exact + 1e-6 noise": lambda own, queries: own.truth(queries) + 1e-6 * own.noise(queries),  # the best a model can
    "popularity": ReferenceRanking.popularity,
    "constant": lambda own, queries: np.full((len(queries), own.hin_.num_nodes(own.target_type)), 0.5),
    "random": ReferenceRanking.noise,
    "reversed": lambda own, queries: 1 - own.truth(queries),
}


# ---- Runs ----------------------------------------------------------------------------------------
INFERRED, EXACT = "infer", "pathsim"
PAPER = "neupath-paper"
"""NeuPath as published; "neupath" is the improved variant."""
CLASSICAL = (*GRAPH_MEASURES.built_in, "node2vec", "metapath2vec")
"""The measures and models that learn nothing from labels."""


@dataclass(frozen=True)
class Run:
    """One model on one column: `settings` are those of a variant, `share` is its share of the training queries."""

    model: str
    column: Column
    protocol: Protocol
    seed: int
    settings: tuple[tuple[str, Any], ...] = ()
    share: float = 1.0
    timed: bool = False
    """Whether scoring is timed for growing numbers of test nodes, instead of evaluated."""

    @property
    def key(self) -> str:
        """The key of the run in runs.jsonl."""
        parts = [self.model, self.column.graph, self.column.metapath, self.protocol, f"seed{self.seed}"]
        parts += [f"{name}-{value}" for name, value in self.settings]
        parts += [f"share-{self.share:g}"] if self.share < 1 else []
        text = "__".join([*parts, "timed"] if self.timed else parts)
        return re.sub(r"[^\w.-]+", "-", text)

    def to_dict(self) -> dict[str, object]:
        return {
            "model": self.model, "graph": self.column.graph, "path": self.column.metapath, "protocol": self.protocol,
            "seed": self.seed, "settings": dict(self.settings), "share": self.share,
        }  # fmt: skip


def execute(run: Run, preset: Preset, data: Path | None, device: str | None) -> dict[str, object]:
    """Train and test a model; the result is the same in any process."""
    hin = load_graph(run.column.graph, data)
    teacher = PathSim(run.column.metapath).fit(hin)
    split = split_queries(hin, teacher.source_type, preset.queries, seed=run.seed)
    labelled = replace(split, train=split.train[: max(1, round(run.share * len(split.train)))])
    began = perf_counter()
    scorer = _fit(run, preset, hin, teacher, labelled, device)
    result = run.to_dict() | {"train_seconds": perf_counter() - began}
    if run.timed:
        return result | {"timings": _time(scorer, preset, hin, teacher, run.seed)}
    evaluation = evaluate(scorer, teacher, split.test, run.protocol)
    return result | evaluation.to_dict() | {"metapath": teacher.metapath_text}


def _fit(run: Run, preset: Preset, hin: HIN, teacher: PathSim, split: Split, device: str | None) -> Scorer:
    if run.model in REFERENCE_RANKINGS:
        return ReferenceRanking(run.model, teacher, run.seed)
    if run.model == EXACT:
        return teacher
    if run.model == INFERRED:
        return infer(hin, draw_pairs(teacher, split.train, run.protocol, seed=run.seed), max_length=4).scorer
    if run.model in GRAPH_MEASURES:
        return make_scorer(hin, measure=run.model, node_type=teacher.source_type)
    settings = preset.settings_of(run.model) | dict(run.settings) | {"seed": run.seed}
    return _train(run, settings, hin, teacher, split, device)


def _train(
    run: Run, settings: Mapping[str, Any], hin: HIN, teacher: PathSim, split: Split, device: str | None
) -> Scorer:
    architecture = "neupath" if run.model == PAPER else run.model
    source = ARCHITECTURES[architecture].learns_from
    if source != "labels":
        about = {"metapath": run.column.metapath, "node_type": teacher.source_type}[source]
        embedding: Scorer = make_model(run.model, **{source: about}, **settings, device=device).fit(hin)
        return embedding
    labels: dict[str, Any] = {"teacher": teacher, "queries": split.train, "protocol": run.protocol}
    if run.model in ("pathboost", "linear"):
        boosted: Scorer = make_model(run.model, seed=run.seed).fit(hin, **labels)
        return boosted
    own: dict[str, Any] = {"layers": run.column.layers}
    if run.model == "countpath":
        own = {"layers": 2}
        settings = {name: value for name, value in settings.items() if name != "dim"}
    elif run.model == PAPER:
        own |= {"paths": run.column.paths, "variant": "paper"}
    elif run.model == "han":
        own["metapaths"] = list(run.column.candidates)
    if {"pooling", "node_types", "edge_types"} & dict(run.settings).keys():
        from neupath_paper.ablations import AblatedNeuPath

        own.pop("variant")
        model: Any = AblatedNeuPath(**(own | dict(settings)), device=device)
    else:
        model = make_model(architecture, **(own | dict(settings)), device=device)
    trained: Scorer = model.fit(hin, **labels, validation=split.validation)
    return trained


def _time(scorer: Scorer, preset: Preset, hin: HIN, teacher: PathSim, seed: int) -> list[tuple[int, float]]:
    """Return the seconds that scoring takes against all targets, for growing numbers of test nodes."""
    order = np.random.default_rng(seed).permutation(hin.num_nodes(teacher.source_type))
    scorer.score_rows(order[:2])
    timings = []
    for count in (n for n in preset.tested if n <= len(order)):
        began = perf_counter()
        for start in range(0, count, 64):
            scorer.score_rows(order[start : min(start + 64, count)])
        timings.append((count, perf_counter() - began))
    return timings


# ---- Plans ---------------------------------------------------------------------------------------
LEARNED = (
    "mlp", "gcn", "gat", "sage", "gin", "rgcn", "han", "hgt", "gtn", "simplehgn", "lightgcn", "nbfnet",
    PAPER, "neupath", "countpath", "pathboost", "linear",
)  # fmt: skip
"""What learns from labels, in the order of the tables."""
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
class Study:
    """The columns, seeds and preset of a reproduction; `models` restricts the models that are compared."""

    columns: Sequence[Column]
    seeds: Sequence[int]
    preset: Preset
    models: Sequence[str] | None = None

    def wanted(self, models: Sequence[str]) -> list[str]:
        return [model for model in models if self.models is None or model in self.models]

    @property
    def focus(self) -> list[Column]:
        """The two columns of the paper's figures, APA and APCPA, or the first two if these are missing."""
        figures = [column for column in self.columns if column.metapath in ("APA", "APCPA")]
        return figures or list(self.columns[:2])

    @property
    def ablated(self) -> list[Column]:
        """The columns of the paper's ablations: those of the first graph."""
        return [column for column in self.columns if column.graph == self.columns[0].graph]


def plan_comparison(study: Study) -> Iterator[Run]:
    """Plan all models on all columns; those that learn from labels under both protocols."""
    for seed, column in product(study.seeds, study.columns):
        for model, protocol in product(study.wanted((*LEARNED, INFERRED)), PROTOCOLS):
            yield Run(model, column, protocol, seed)
        for model in study.wanted(CLASSICAL):
            yield Run(model, column, "strict", seed)


def plan_ablation(study: Study) -> Iterator[Run]:
    """Plan NeuPath with other poolings, and without types."""
    variants = VARIANTS.values() if study.wanted((PAPER,)) else ()
    for seed, column, settings, protocol in product(study.seeds, study.ablated, variants, PROTOCOLS):
        yield Run(PAPER, column, protocol, seed, settings)


def plan_paths(study: Study) -> Iterator[Run]:
    """Plan NeuPath with T = 1, 2, … paths."""
    tried = range(1, study.preset.most_paths + 1) if study.wanted((PAPER,)) else ()
    for seed, column, paths in product(study.seeds, study.focus, tried):
        settings = () if paths == column.paths else (("paths", paths),)
        yield Run(PAPER, column, "strict", seed, settings)


def plan_labels(study: Study) -> Iterator[Run]:
    """Plan NeuPath and CountPath with a share of the training queries."""
    models = study.wanted((PAPER, "neupath", "countpath"))
    for seed, column, model, share in product(study.seeds, study.focus, models, study.preset.shares):
        yield Run(model, column, "strict", seed, (), share)


def plan_runtime(study: Study) -> Iterator[Run]:
    """Plan the timing of exact PathSim, NeuPath, CountPath and two baselines."""
    models = (*study.wanted((PAPER, "neupath", "countpath", "gcn", "nbfnet")), EXACT)
    for seed, model in product(study.seeds, models):
        yield Run(model, study.focus[0], "strict", seed, timed=True)


def plan_chance(study: Study) -> Iterator[Run]:
    """Plan the reference rankings, which show what each metric gives without any learning."""
    for seed, column, ranking in product(study.seeds, study.columns, REFERENCE_RANKINGS):
        yield Run(ranking, column, "strict", seed)


PARTS: dict[str, tuple[str, Callable[[Study], Iterator[Run]]]] = {
    "rmse": ("how near scores come, all models on all columns (the paper's table 4)", plan_comparison),
    "ndcg": ("how good rankings are, all models on all columns (the paper's table 5)", plan_comparison),
    "ablation": ("NeuPath with other poolings and without types (tables 6 and 7)", plan_ablation),
    "paths": ("NeuPath with T = 1 to 5 paths (figure 5)", plan_paths),
    "labels": ("with 1.25 % to 100 % of the training queries (figure 7)", plan_labels),
    "runtime": ("the time to score test nodes, the more there are (figure 6)", plan_runtime),
    "chance": ("what random, reversed, constant and popular rankings get: the audit of the metrics", plan_chance),
}

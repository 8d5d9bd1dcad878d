"""Runs: one model on one column under one protocol with one seed, trained and tested."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from neupath.evaluation import Evaluation, Split, evaluate, split_queries
from neupath.experiments.columns import Column, load_graph
from neupath.experiments.guesses import GUESSES
from neupath.experiments.scales import Scale
from neupath.graph import HIN
from neupath.inference import infer
from neupath.labels import Protocol, draw_pairs
from neupath.measures import GRAPH_MEASURES, PathSim, graph_measure_named
from neupath.scorer import Scorer

INFERRED, EXACT = "infer", "pathsim"
CLASSICAL = ("ppr", "rwr", "simrank", "scan", "commutetime", "node2vec", "metapath2vec")
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


def execute(run: Run, scale: Scale, data: Path | None, device: str | None) -> dict[str, object]:
    """Train and test; the same in any process."""
    hin = load_graph(run.column.graph, data)
    teacher = PathSim(run.column.path).fit(hin)
    split = split_queries(hin.num_nodes(teacher.source_type), scale.queries, seed=run.seed)
    labelled = replace(split, train=split.train[: max(1, round(run.share * len(split.train)))])
    began = perf_counter()
    scorer = _fit(run, scale, hin, teacher, labelled, device)
    found = run.to_dict() | {"train_seconds": perf_counter() - began}
    if run.timed:
        return found | {"timings": _time(scorer, scale, hin, teacher, run.seed)}
    tested: Evaluation = evaluate(scorer, teacher, split.test, run.protocol)
    return found | tested.to_dict() | {"metapath": teacher.metapath_text}


def _fit(run: Run, scale: Scale, hin: HIN, teacher: PathSim, split: Split, device: str | None) -> Scorer:
    if run.model in GUESSES:
        return GUESSES[run.model](teacher, run.seed)
    if run.model == EXACT:
        return teacher
    if run.model == INFERRED:
        return infer(hin, draw_pairs(teacher, split.train, run.protocol, seed=run.seed), max_length=4).scorer
    if run.model in GRAPH_MEASURES:
        return graph_measure_named(run.model, teacher.source_type).fit(hin)
    settings = scale.settings_of(run.model) | dict(run.settings) | {"seed": run.seed}
    return _train(run, settings, hin, teacher, split, device)


def _train(
    run: Run, settings: Mapping[str, Any], hin: HIN, teacher: PathSim, split: Split, device: str | None
) -> Scorer:
    from neupath.models import EMBEDDINGS, model_named

    if run.model in EMBEDDINGS:
        about: dict[str, Any] = {"metapath": run.column.path}
        if run.model == "node2vec":
            about = {"node_type": teacher.source_type}
        return EMBEDDINGS[run.model](**about, **settings, device=device).fit(hin)
    own: dict[str, Any] = {"layers": run.column.layers}
    if run.model == "countpath":
        own = {"layers": 2}
        settings = {name: value for name, value in settings.items() if name != "dim"}
    elif run.model == "neupath":
        own["paths"] = run.column.paths
    elif run.model == "han":
        own["metapaths"] = list(run.column.candidates)
    model = model_named(run.model, **(own | dict(settings)), device=device)
    return model.fit(hin, teacher=teacher, queries=split.train, validation=split.validation, protocol=run.protocol)


def _time(scorer: Scorer, scale: Scale, hin: HIN, teacher: PathSim, seed: int) -> list[tuple[int, float]]:
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

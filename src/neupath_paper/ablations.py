"""NeuPath as published with another pooling, or without types: the rows of the paper's tables 6 and 7."""

from dataclasses import replace
from typing import Literal, Unpack

import numpy as np
from torch import Tensor

from neupath.errors import QueryError
from neupath.evidence.model_explanation import AttentionPath
from neupath.graph.hin import HIN
from neupath.graph.nodes import Id
from neupath.learn.models.class_table import ClassTable, Stage
from neupath.learn.models.flat_graph import FlatGraph, edge_kinds
from neupath.learn.models.model import TRAINING_PARAMS, TrainingOptions
from neupath.learn.models.neupath import Encoder, EncoderLayer, NeuPath, PublishedNetwork

Pooling = Literal["tmax", "max", "mean", "sum"]
POOLINGS = ("tmax", "max", "mean", "sum")


class AblatedNeuPath(NeuPath):
    """NeuPath as published, with a part of it left out. It ranks, and shows no paths.

    Parameters
    ----------
    dim, layers, paths, shared, training
        See `NeuPath`.
    pooling
        How candidates are compared: "tmax" as in the paper, or "max", "mean" or "sum" of all of them.
    node_types, edge_types
        Whether it sees the types of nodes and the kinds of edges.

    >>> import neupath as npth
    >>> labels = [("Mike", "Bob", 1.0), ("Mike", "Mary", 0.8), ("Mike", "Ann", 0.0), ("Mary", "Ann", 0.3)]
    >>> model = AblatedNeuPath(dim=16, layers=4, epochs=2, pooling="mean").fit(npth.load("toy"), labels)
    >>> len(model.top_k("Jim", k=2))
    2
    """

    name = "neupath-ablation"
    param_names = ("dim", "layers", "paths", "shared", "pooling", "node_types", "edge_types", *TRAINING_PARAMS)

    def __init__(
        self,
        dim: int | None = None,
        layers: int = 2,
        paths: int | None = None,
        *,
        shared: bool = False,
        pooling: Pooling = "tmax",
        node_types: bool = True,
        edge_types: bool = True,
        **training: Unpack[TrainingOptions],
    ) -> None:
        if pooling not in POOLINGS:
            raise QueryError(f"pooling is {pooling!r}; it can be {', '.join(POOLINGS)}", allowed=POOLINGS)
        super().__init__(dim, layers, paths, variant="paper", shared=shared, **training)
        if pooling != "tmax":
            self.paths = 1  # all paths are merged into one slot
        self.pooling, self.node_types, self.edge_types = pooling, node_types, edge_types

    def _flatten(self, hin: HIN) -> FlatGraph:
        graph = FlatGraph.of(hin)
        types = graph.types if self.node_types else np.zeros_like(graph.types)
        kinds = graph.kinds if self.edge_types else np.zeros_like(graph.kinds)
        return replace(graph, types=types, kinds=kinds)

    def _make_network(self, hin: HIN) -> PublishedNetwork:
        layer = {"mean": MeanLayer, "sum": SumLayer}.get(self.pooling, EncoderLayer)
        num_types = len(hin.schema.node_types) if self.node_types else 1
        num_kinds = len(edge_kinds(hin.schema)) if self.edge_types else 1
        sizes = self.dim, self.layers, self.paths, num_types, max(1, num_kinds)
        return PublishedNetwork(Encoder(layer, *sizes, self.shared))

    def new_table(self, hin: HIN) -> ClassTable:
        cap = 0 if self.pooling in ("mean", "sum") else self.paths
        return ClassTable(len(hin.schema.node_types) if self.node_types else 1, self.layers, cap)

    def updater(self, hin: HIN) -> None:
        """Return None: a live graph binds it again at each version."""

    def attention_paths(self, query: Id, target: Id, limit: int = 10) -> list[AttentionPath]:  # noqa: ARG002
        raise QueryError("an ablation of NeuPath shows no paths; NeuPath does")


class SumLayer(EncoderLayer):
    """A layer that adds up all candidates."""

    is_mean = False

    def compare(self, source: Tensor, target: Tensor, stage: Stage) -> tuple[Tensor, Tensor]:
        """Return nothing chosen, and the sum or the mean of all candidates."""
        return stage.count[:0], sum_candidates(source, target, self.edge, stage, mean=self.is_mean)


class MeanLayer(SumLayer):
    """A layer that takes the mean of all candidates."""

    is_mean = True


def sum_candidates(source: Tensor, target: Tensor, edge: Tensor, stage: Stage, *, mean: bool) -> Tensor:
    """Return the sum or mean of the candidates of each class; (K, 1, d)."""
    count = stage.count.to(source.dtype).unsqueeze(-1)
    message = (source[stage.source] + target[stage.target] + edge[stage.kind]) * count
    total = source.new_zeros(len(stage.before), source.shape[1]).index_add(0, stage.to, message)
    if mean:
        degree = source.new_zeros(len(total), 1).index_add(0, stage.to, count)
        total = total / degree.clamp(min=1.0)
    return total.unsqueeze(1)

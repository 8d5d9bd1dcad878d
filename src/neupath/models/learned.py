"""LearnedScorer: what all models share, from their labels to their files."""

import copy
import os
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor

from neupath.errors import QueryError, SchemaError
from neupath.graph import HIN, digest_nodes
from neupath.labels import Pairs, Protocol, draw_pairs, read_pairs
from neupath.models.training import Epoch, Watch
from neupath.models.weights import WEIGHTS, About, schema_difference, schema_summary, write_weights
from neupath.nodes import Rows
from neupath.scorer import Scorer

QUERIES_A_BATCH = 8


class LearnedScorer(Scorer):
    """A scorer that learns from labelled pairs of one node type, and is never told a meta-path."""

    exact = False
    inductive: ClassVar[bool] = True
    """Whether it can score nodes that it was not trained with."""
    reach: ClassVar[str] = "layers"
    """The parameter that says how far it sees."""
    seed: int
    batch_size: int | None
    device: torch.device
    node_type_: str
    log_: list[Epoch]
    validation_rmse_: float | None = None
    """The error on the labels kept for choosing the best epoch; nothing where there were too few queries for it."""

    @property
    def source_type(self) -> str:
        self._fitted()
        return self.node_type_

    @property
    def target_type(self) -> str:
        return self.source_type

    @property
    def metapath_text(self) -> None:
        return None

    def fit(
        self,
        hin: HIN,
        pairs: Any = None,
        *,
        teacher: Scorer | None = None,
        queries: Rows | None = None,
        protocol: Protocol = "strict",
        validation: Rows | None = None,
        folder: str | Path | None = None,
        watch: Watch = lambda *_: None,
    ) -> Self:
        """Learn from labelled pairs, or from labels drawn from an exact measure, the `teacher`, for some queries.

        `pairs` is a CSV file, a table, or tuples of (query, target, score). One query in five is kept for choosing the
        best epoch, unless `validation` names such queries for the teacher; with fewer than five, none is. With a
        `folder`, an interrupted run goes on where it stopped.
        """
        learn, check = split_labels(hin, pairs, teacher, queries, protocol, validation, self.seed)
        labelled = len(np.unique(learn.queries))
        if self.batch_size is not None and self.batch_size > labelled:
            raise QueryError(
                f"batch_size is {self.batch_size} queries, and the labels to learn from are of {labelled}; "
                f"use at most {labelled}, or leave it out"
            )
        self._learn(hin, learn, check, None if folder is None else Path(folder), watch)
        return self

    @abstractmethod
    def _learn(self, hin: HIN, learn: Pairs, check: Pairs, folder: Path | None, watch: Watch) -> None:
        """Learn from some labels, and choose the best epoch by others."""

    @abstractmethod
    def _tensors(self) -> dict[str, Tensor]:
        """Return all that was learned."""

    @abstractmethod
    def _restore(self, hin: HIN, tensors: dict[str, Tensor]) -> None:
        """Take back what was learned, over a graph that fits."""

    def bind(self, hin: HIN) -> Self:
        """Return the same model over another graph with the same schema: new nodes, new edges, or all new."""
        self.check_graph(self._about(), hin)
        bound = copy.copy(self)
        bound._restore(hin, self._tensors())
        return bound

    def save(self, folder: str | Path) -> Path:
        """Write config.json, and weights.safetensors with the schema, to a folder."""
        target = Path(folder)
        target.mkdir(parents=True, exist_ok=True)
        tensors = {name: tensor.cpu().contiguous() for name, tensor in self._tensors().items()}
        write_weights(target / WEIGHTS, tensors, self._about())
        return super().save(target)

    def _about(self) -> About:
        hin = self._fitted()
        return {"node_type": self.node_type_, "schema": schema_summary(hin.schema), "nodes": digest_nodes(hin)}

    def check_graph(self, trained: About, hin: HIN) -> None:
        """Refuse a graph that the model does not fit."""
        given = schema_summary(hin.schema)
        if trained["schema"] != given:
            raise SchemaError(schema_difference(trained["schema"], given))
        if not self.inductive and trained.get("nodes") != digest_nodes(hin):
            raise QueryError(
                f"a {self.name} model knows each node by features of its own, and this graph has other nodes than the "
                f"one it was trained on; train it on this graph"
            )


def split_labels(
    hin: HIN,
    pairs: Any,
    teacher: Scorer | None,
    queries: Rows | None,
    protocol: Protocol,
    validation: Rows | None,
    seed: int,
) -> tuple[Pairs, Pairs]:
    """Return the labels to learn from and those to choose the best epoch by, a fifth of the queries unless given."""
    if not 0 <= seed < 2**63:
        raise QueryError(f"seed is {seed}; it must lie between 0 and 2^63")
    if (pairs is None) == (teacher is None):
        raise QueryError("give either labelled pairs or a teacher to draw labels from")
    if teacher is None:
        every = read_pairs(hin, pairs)
    else:
        if queries is None:
            raise QueryError("a teacher needs the queries to draw labels for, as rows")
        every = draw_pairs(teacher, queries, protocol, seed=seed)
        if validation is not None and len(validation):
            return every, draw_pairs(teacher, validation, protocol, seed=seed + 1)
    distinct = np.random.default_rng(seed).permutation(np.unique(every.queries))
    cut = len(distinct) // 5
    return every.of_queries(distinct[cut:]), every.of_queries(distinct[:cut])


@contextmanager
def reproducible(device: torch.device) -> Iterator[None]:
    """Make sums on CUDA come out the same every time, for a while; on the CPU they do anyway."""
    before = torch.are_deterministic_algorithms_enabled()
    if device.type == "cuda":
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before)


def choose_device(device: str | None) -> torch.device:
    """Return the device asked for, or CUDA where there is one, or the CPU."""
    if device is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        chosen = torch.device(device)
    except RuntimeError as error:
        raise QueryError(f"device is {device!r}; it can be 'cpu' or 'cuda'") from error
    if chosen.type not in ("cpu", "cuda"):
        raise QueryError(f"device is {device!r}; it can be 'cpu' or 'cuda'")
    if chosen.type == "cuda" and not torch.cuda.is_available():
        raise QueryError(f"device is {device!r}, but no CUDA device is available here; use 'cpu'")
    return chosen

"""LearnedScorer: what all models share, from their labels to their files."""

import json
import os
from abc import abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor

from neupath.errors import QueryError
from neupath.files import write_whole
from neupath.graph import HIN
from neupath.labels import Pairs, Protocol, draw_pairs, read_pairs
from neupath.models.training import Watch
from neupath.nodes import Rows
from neupath.schema import Schema
from neupath.scorer import Scorer

WEIGHTS = "weights.safetensors"
QUERIES_A_BATCH = 8


class LearnedScorer(Scorer):
    """A scorer that learns from labelled pairs of one node type, and is never told a meta-path."""

    exact = False
    seed: int
    batch_size: int | None
    node_type_: str
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


def write_weights(path: Path, tensors: dict[str, Tensor], node_type: str, schema: Schema) -> None:
    """Write the tensors of a model, with the node type it ranks and the schema it was trained on."""
    about = {"about": json.dumps({"node_type": node_type, "schema": schema_summary(schema)})}
    write_whole(path, lambda temporary: save_file(tensors, temporary, metadata=about))


def read_weights(path: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Read what `write_weights` wrote."""
    with safe_open(path, framework="pt") as file:
        about = json.loads((file.metadata() or {})["about"])
    return about, load_file(path)


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


def schema_summary(schema: Schema) -> dict[str, list[str]]:
    """Return what two graphs must share for one model to fit both."""
    return {"node_types": list(schema.node_types), "relations": [str(relation) for relation in schema.relations]}


def schema_difference(trained: dict[str, list[str]], given: dict[str, list[str]]) -> str:
    """Say what a graph lacks, or has too much, for a model."""
    missing = _differences(trained, given)
    extra = _differences(given, trained)
    told = "; ".join(
        f"{what} {', '.join(parts)}" for what, parts in (("missing:", missing), ("unknown:", extra)) if parts
    )
    return (
        f"the graph does not have the schema the model was trained on ({told or 'another order of types or relations'})"
    )


def _differences(one: dict[str, list[str]], other: dict[str, list[str]]) -> Iterable[str]:
    return [part for key in one for part in one[key] if part not in other[key]]

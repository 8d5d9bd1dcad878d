"""LearnedScorer: models that learn from labelled pairs."""

from abc import abstractmethod
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from neupath.errors import QueryError
from neupath.graph import HIN
from neupath.labels import Pairs, Protocol, draw_pairs, read_pairs
from neupath.models.model import Model
from neupath.models.training import Epoch, Watch
from neupath.nodes import Rows
from neupath.scorer import Scorer

QUERIES_A_BATCH = 8


class LearnedScorer(Model):
    """A scorer that learns from labelled pairs of one node type, and is never told a meta-path."""

    reach: ClassVar[str] = "layers"
    """The parameter that says how far it sees."""
    seed: int
    batch_size: int | None
    log_: list[Epoch]
    validation_rmse_: float | None = None
    """The error on the labels kept for choosing the best epoch; nothing where there were too few queries for it."""

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

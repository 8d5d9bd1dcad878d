"""LearnedScorer: models that learn from labelled pairs."""

from abc import abstractmethod
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch

from neupath.errors import QueryError
from neupath.graph import HIN
from neupath.labels import Pairs, Protocol, draw_pairs, read_pairs
from neupath.models.model import Model
from neupath.models.team import ALONE, Team, run_together
from neupath.models.training import Epoch, Watch
from neupath.nodes import Rows
from neupath.scorer import Scorer

QUERIES_A_BATCH = 8


class LearnedScorer(Model):
    """A scorer that learns from labelled pairs of one node type, and is never told a meta-path."""

    reach: ClassVar[str] = "layers"
    """The parameter that says how far it sees."""
    learns_together: ClassVar[bool] = False
    """Whether several processes can share its batches."""
    team: Team = ALONE
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
        processes: int = 1,
    ) -> Self:
        """Learn from labelled pairs, or from labels drawn from an exact measure, the `teacher`, for some queries.

        `pairs` is a CSV file, a table, or tuples of (query, target, score). One query in five is kept for choosing the
        best epoch, unless `validation` names such queries for the teacher; with fewer than five, none is. With a
        `folder`, an interrupted run goes on where it stopped. Several `processes` share the queries of each batch; a
        script that asks for them needs the usual `if __name__ == "__main__":`.
        """
        self.__dict__.pop("identity", None)
        learn, check = split_labels(hin, pairs, teacher, queries, protocol, validation, self.seed)
        labelled = len(np.unique(learn.queries))
        if self.batch_size is not None and self.batch_size > labelled:
            raise QueryError(
                f"batch_size is {self.batch_size} queries, and the labels to learn from are of {labelled}; "
                f"use at most {labelled}, or leave it out"
            )
        kept = None if folder is None else Path(folder)
        if processes == 1:
            self._learn(hin, learn, check, kept, watch)
        else:
            self._learn_together(hin, learn, check, kept, watch, processes)
        return self

    def _learn_together(
        self, hin: HIN, learn: Pairs, check: Pairs, folder: Path | None, watch: Watch, processes: int
    ) -> None:
        """Learn on several processes, of which this is the first."""
        if processes < 1:
            raise QueryError(f"processes is {processes}; use at least 1")
        if not self.learns_together:
            raise QueryError(f"a {self.name} model learns in one process; leave out processes")

        def learn_here(_: Any, team: Team, device: torch.device) -> None:
            self.team, before = team, self.device
            self.device = device
            try:
                self._learn(hin, learn, check, folder, watch)
            finally:
                self.team, self.device = ALONE, before

        given = type(self), self.params(), hin, learn, check, folder
        run_together(_learn_there, given, processes, self.device, here=learn_here)

    @abstractmethod
    def _learn(self, hin: HIN, learn: Pairs, check: Pairs, folder: Path | None, watch: Watch) -> None:
        """Learn from some labels, and choose the best epoch by others."""


def _learn_there(given: Any, team: Team, device: torch.device) -> None:
    """Learn in a process that is not the first, and whose model is forgotten when it ends."""
    kind, params, hin, learn, check, folder = given
    model: LearnedScorer = kind(**params, device=device.type)
    model.team, model.device = team, device
    model._learn(hin, learn, check, folder, lambda *_: None)


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

"""Work: what a job does, in a process of its own, which can be stopped and leaves a core to those who search."""

import contextlib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing import parent_process
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Thread
from time import monotonic
from typing import Any

import pyarrow.parquet as pq
from pydantic import TypeAdapter

from neupath._runtime.files import write_text
from neupath.engine.join import JoinEngine, JoinJob, LocalEngine, OnBlock, join
from neupath.engine.scorer import Scorer
from neupath.errors import NeuPathError, QueryError, WriteError
from neupath.graph.hin import HIN
from neupath.learn.registry import make_scorer
from neupath.service.handlers import find, labels_of
from neupath.service.limits import Limits
from neupath.service.schemas import InferJobRequest, Job, JoinRequest, TrainRequest

MODEL, REPORT, TABLE = "model", "result.json", "result.parquet"
_A_TELLING = 0.1
"""Seconds between two tellings of progress."""


class Reporter:
    """Tells the service how far a job is, not more often than anyone can follow."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._told = 0.0

    def __call__(self, done: int, total: int, text: str = "") -> None:
        if monotonic() - self._told < _A_TELLING and done < total:
            return
        self._told = monotonic()
        self.tell(progress={"done": done, "total": total, "text": text})

    def tell(self, **message: object) -> None:
        self._connection.send_bytes(json.dumps(message).encode())

    def epoch(self, epoch: Any, total: int) -> None:
        """Tell of an epoch of training."""
        errors = f"RMSE {epoch.train_rmse:.4f}, validation {epoch.validation_rmse:.4f}"
        self(epoch.epoch, total, errors)


@dataclass(frozen=True)
class JobSpec:
    """What a job's process is given: the graph, the request's text, and where its results belong."""

    hin: HIN
    content: str
    folder: Path
    model: Path | None
    """The folder of the model it uses."""
    limits: Limits


def run_job(connection: Connection, order: JobSpec, cores: int) -> None:
    """Do a job and tell how it goes; the last message says what came of it."""
    Thread(target=_end_with_parent, daemon=True).start()
    _step_back(cores)
    reporter = Reporter(connection)
    try:
        reporter.tell(done=_do(order, reporter))
    except WriteError as error:
        reporter.tell(failed=f"the job's result cannot be written: {_reason(error)}")
    except NeuPathError as error:
        reporter.tell(failed=str(error))
    except MemoryError:
        reporter.tell(failed="there is not enough memory for this job; ask for less")


def _reason(error: WriteError) -> str:
    """Return why something could not be written, but not where: that is the service's own affair."""
    cause = error.__cause__
    if isinstance(cause, OSError) and cause.errno is not None:
        return os.strerror(cause.errno).lower()
    return "the service's disk took no more"


def _do(order: JobSpec, reporter: Reporter) -> dict[str, object]:
    asked: Job = TypeAdapter(Job).validate_json(order.content)
    if isinstance(asked, InferJobRequest):
        return _infer(order, asked, reporter)
    if isinstance(asked, JoinRequest):
        return _join(order, asked, reporter)
    return _train(order.hin, asked, order.folder, reporter)


def _infer(order: JobSpec, asked: InferJobRequest, reporter: Reporter) -> dict[str, object]:
    found = find(
        order.hin,
        labels_of(order.hin, asked, order.limits),
        asked,
        progress=lambda _stage, done, total: reporter(done, total or done),
    )
    found.save(order.folder / MODEL)
    return _write(order.folder, found.report(asked.suggest, asked.skip))


def _join(order: JobSpec, asked: JoinRequest, reporter: Reporter) -> dict[str, object]:
    hin, model = order.hin, order.model
    scorer = (
        make_scorer(hin, model=model) if model else make_scorer(hin, metapath=asked.metapath, measure=asked.measure)
    )
    limit = 10 if asked.k is None and asked.min_score == 0 else asked.k
    engine = Bounded(order.limits.rows)
    joined = join(
        hin, scorer, order.folder / TABLE, limit, min_score=asked.min_score, engine=engine,
        progress=lambda _, done, total: reporter(done, total or 0),
    )  # fmt: skip
    return {"queries": joined.queries, "pairs": joined.pairs}


@dataclass(frozen=True)
class Bounded(JoinEngine):
    """The engine of a join that ends where its pairs would fill the disk."""

    most: int

    def run(self, scorer: Scorer, job: JoinJob, missing: Sequence[int], on_block: OnBlock) -> None:
        written = 0

        def count(number: int) -> None:
            nonlocal written
            written += pq.read_metadata(job.part(number)).num_rows
            if written > self.most:
                raise QueryError(
                    f"this join has more than {self.most:,} pairs, the most that this service writes; ask for a "
                    f"smaller k or a higher min_score, or use 'neupath join'"
                )
            on_block(number)

        LocalEngine().run(scorer, job, missing, count)


def _train(hin: HIN, asked: TrainRequest, folder: Path, reporter: Reporter) -> dict[str, object]:
    from neupath.learn.training_run import learn

    settings: dict[str, Any] = {"layers": asked.layers, "epochs": asked.epochs}
    given = {"dim": asked.dim, "paths": asked.paths, "learning_rate": asked.learning_rate}
    settings |= {name: value for name, value in given.items() if value is not None}
    pairs = None if asked.pairs is None else [(pair.query, pair.target, pair.score) for pair in asked.pairs]
    learned = learn(
        hin, asked.architecture, asked.metapath, pairs, folder / MODEL, measure=asked.measure, protocol=asked.protocol,
        seed=asked.seed, settings=settings, on_epoch=reporter.epoch,
    )  # fmt: skip
    content = learned.to_dict()
    del content["folder"]  # where it lies is the service's own affair
    return _write(folder, content)


def _write(folder: Path, content: dict[str, object]) -> dict[str, object]:
    write_text(folder / REPORT, json.dumps(content, ensure_ascii=False))
    return content


def _end_with_parent() -> None:
    """End this process when the service's is gone, however it went."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _step_back(cores: int) -> None:
    """Leave the first core, and precedence on the others, to those who search."""
    with contextlib.suppress(OSError):
        os.nice(10)
    if hasattr(os, "sched_setaffinity") and cores > 1:
        allowed = sorted(os.sched_getaffinity(0))
        with contextlib.suppress(OSError):
            os.sched_setaffinity(0, allowed[1:] or allowed)

"""Service: all parts of the service together, and how a job is checked and started."""

import asyncio
import logging
import os
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import ParamSpec, TypeVar

from neupath.errors import MissingExtraError, NeuPathError, QueryError, listed
from neupath.learn.labels import read_pairs
from neupath.learn.registry import (
    check_architecture,
    check_model_alone,
    is_graph_measure,
    learning_from,
    required_metapath,
)
from neupath.measures import MEASURES, measure_named
from neupath.service.graphs import GraphHandle, ScorerRegistry, StoreHandle
from neupath.service.handlers import labels_of
from neupath.service.job_process import MODEL
from neupath.service.jobs import Job, Jobs
from neupath.service.limits import Limits
from neupath.service.middleware import Metrics, Sample, metric
from neupath.service.responses import RequestError
from neupath.service.schemas import InferJobRequest, JoinRequest, TrainRequest

# ---- Workers -------------------------------------------------------------------------------------
P = ParamSpec("P")
T = TypeVar("T")


class WorkerThreads:
    """Some threads and a bounded queue before them.

    A thread cannot be stopped: work whose request has run out of time goes on, and counts as busy until it ends, so
    that there are never more than `threads` at work and `waiting` behind them. `relieve` frees what memory it can
    where some work ran out of it.
    """

    def __init__(self, threads: int, waiting: int, seconds: float, relieve: Callable[[], None] = lambda: None) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="neupath-service")
        self._room = threads + waiting
        self._seconds = seconds
        self._relieve = relieve
        self.busy = 0

    async def run(self, work: Callable[P, T], *arguments: P.args, **options: P.kwargs) -> T:
        """Do some work in a thread; refuse it where too much is waiting, give up on it where it takes too long."""
        if self.busy >= self._room:
            raise RequestError(
                503, f"the service is busy with {self.busy} other requests; try again soon", Retry_After="2"
            )
        loop = asyncio.get_running_loop()
        future: Future[T] = self._pool.submit(work, *arguments, **options)
        self.busy += 1
        future.add_done_callback(lambda _: _tell(loop, self._leave))
        try:
            return await asyncio.wait_for(asyncio.wrap_future(future), self._seconds)
        except TimeoutError as error:
            raise RequestError(
                504, f"this takes longer than {self._seconds:g} seconds; ask for less, or start a job"
            ) from error
        except MemoryError as error:
            self._relieve()
            raise RequestError(
                503, "there is not enough memory for this now; try again, or ask for less", Retry_After="5"
            ) from error

    def _leave(self) -> None:
        self.busy -= 1

    def close(self) -> None:
        """Take no more work; what is running ends by itself."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def abandon(self) -> None:
        """End this process at once where some work is still running: a thread cannot be stopped otherwise."""
        if self.busy:
            logging.shutdown()
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(0)


def _tell(loop: asyncio.AbstractEventLoop, done: Callable[[], None]) -> None:
    if not loop.is_closed():
        loop.call_soon_threadsafe(done)


# ---- Service -------------------------------------------------------------------------------------
_THREADS = 4
_WRITERS = 16
"""Updates that wait for the disk at a time, apart from those who search; they go there together."""


@dataclass
class Service:
    """What is served, by whom, within which limits."""

    catalogue: ScorerRegistry
    limits: Limits
    workers: WorkerThreads
    writers: WorkerThreads
    jobs: Jobs
    metrics: Metrics

    @property
    def busy(self) -> int:
        """Heavy requests at work or waiting."""
        return self.workers.busy + self.writers.busy

    def close(self) -> None:
        """Take no more work; what is running ends by itself."""
        self.workers.close()
        self.writers.close()

    def metrics_text(self) -> str:
        """Return all metrics in the text format of Prometheus."""
        states: list[Sample] = [({"state": state}, float(count)) for state, count in self.jobs.count().items()]
        lines = [
            *self.metrics.lines(),
            *metric("neupath_jobs", "gauge", "Jobs by state.", states),
            *metric("neupath_busy_workers", "gauge", "Heavy requests at work or waiting.", [({}, self.busy)]),
            *metric("neupath_ready_scorers", "gauge", "Measures kept ready.", [({}, self.catalogue.known_scorers())]),
            *metric("neupath_ready_bytes", "gauge", "Bytes they hold.", [({}, self.catalogue.known_bytes())]),
        ]
        return "\n".join(lines) + "\n"

    def check_job(self, asked: InferJobRequest | JoinRequest | TrainRequest) -> tuple[GraphHandle, Path | None]:
        """Refuse a job that cannot be done before it waits; return its graph, and the folder of the model it uses."""
        served = self.catalogue.graph(asked.graph)
        if isinstance(asked, InferJobRequest):
            labels_of(served.hin, asked, self.limits)
        elif isinstance(asked, JoinRequest):
            return served, self._check_join(served, asked)
        else:
            self._check_training(served, asked)
        return served, None

    def _check_join(self, served: GraphHandle, asked: JoinRequest) -> Path | None:
        if asked.k is not None:
            self.limits.check_k(asked.k)
        if asked.model is None:
            self._check_measure(served, asked)
            return None
        measure = asked.measure if "measure" in asked.model_fields_set else None
        check_model_alone(metapath=asked.metapath, measure=measure)
        self.catalogue.model(served.name, asked.model)
        return self.catalogue.folders[asked.model]

    def _check_training(self, served: GraphHandle, asked: TrainRequest) -> None:
        if (asked.metapath is None) == (asked.pairs is None):
            raise QueryError("give either metapath, to draw labels from a measure, or pairs, the labels themselves")
        check_architecture(asked.architecture, learning_from("labels"))
        if asked.epochs > self.limits.epochs:
            raise QueryError(f"epochs is {asked.epochs}; this service trains for at most {self.limits.epochs} epochs")
        if asked.dim is not None and asked.dim > self.limits.width:
            raise QueryError(f"dim is {asked.dim}; this service trains embeddings of at most {self.limits.width}")
        if find_spec("torch") is None:
            raise MissingExtraError("PyTorch", "neupath[learn]")
        if asked.pairs is None:
            self._check_measure(served, asked)
            return
        self.limits.check_pairs(len(asked.pairs))
        read_pairs(served.hin, [(pair.query, pair.target, pair.score) for pair in asked.pairs])

    def _check_measure(self, served: GraphHandle, asked: JoinRequest | TrainRequest) -> None:
        if is_graph_measure(asked.measure):
            raise QueryError(
                f"{asked.measure.lower()} looks at the whole graph, and jobs go along a meta-path; use one of "
                f"{listed(MEASURES)} with a metapath"
            )
        metapath = served.hin.metapath(str(required_metapath(served.hin.schema, asked.metapath)))
        measure_named(asked.measure, self.limits.check_metapath(metapath)).check(metapath)


def make_service(
    graphs: Mapping[str, GraphHandle | StoreHandle], models: dict[str, Path], state: Path, limits: Limits | None = None
) -> Service:
    """Put a service together; `state` is the folder that jobs keep their results in."""
    bounds = limits or Limits()
    catalogue = ScorerRegistry(graphs, bounds)
    for name, folder in models.items():
        catalogue.add_model(name, folder)

    def serve_model(job: Job) -> None:
        if (job.folder / MODEL).is_dir():
            catalogue.add_model(job.id, job.folder / MODEL, [job.graph])

    jobs = Jobs(state, bounds, serve_model, lambda job: catalogue.drop_model(job.id))
    for job in jobs.jobs.values():
        if job.state == "done" and job.graph in graphs:
            _serve_again(serve_model, job)
    workers = WorkerThreads(_THREADS, bounds.heavy, bounds.seconds, catalogue.relieve)
    writers = WorkerThreads(_WRITERS, bounds.heavy, bounds.seconds, catalogue.relieve)
    return Service(catalogue, bounds, workers, writers, jobs, Metrics())


def _serve_again(serve_model: Callable[[Job], None], job: Job) -> None:
    """Serve the model of an earlier service's job, unless its graph has changed since."""
    try:
        serve_model(job)
    except NeuPathError as error:
        job.error = str(error)

"""The service: its worker threads, its parts together, and the checks of a job before it starts."""

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
from neupath.service.graph_registry import GraphHandle, GraphRegistry, StoreHandle
from neupath.service.handlers import read_labels
from neupath.service.job_process import MODEL
from neupath.service.jobs import Job, Jobs
from neupath.service.limits import Limits
from neupath.service.middleware import Metrics, Sample, metric
from neupath.service.responses import RequestError
from neupath.service.schemas import InferJobRequest, JoinJobRequest, TrainJobRequest

# ---- Workers -------------------------------------------------------------------------------------
P = ParamSpec("P")
T = TypeVar("T")


class WorkerThreads:
    """A thread pool with a bounded queue.

    A thread cannot be stopped: a call whose request has timed out goes on, and counts as busy until it ends. So there
    are never more than `threads` calls running and `waiting` behind them. `free_memory` is called when one runs out
    of memory.
    """

    def __init__(self, threads: int, waiting: int, seconds: float, free_memory: Callable[[], None]) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="neupath-service")
        self._most = threads + waiting
        self._seconds, self._free_memory = seconds, free_memory
        self.busy = 0

    async def run(self, function: Callable[P, T], *arguments: P.args, **options: P.kwargs) -> T:
        """Call a function in a thread; 503 where too many wait, 504 where it takes too long."""
        if self.busy >= self._most:
            raise RequestError(
                503, f"the service is busy with {self.busy} other requests; try again soon", Retry_After="2"
            )
        loop = asyncio.get_running_loop()
        future: Future[T] = self._pool.submit(function, *arguments, **options)
        self.busy += 1
        future.add_done_callback(lambda _: None if loop.is_closed() else loop.call_soon_threadsafe(self._leave))
        try:
            return await asyncio.wait_for(asyncio.wrap_future(future), self._seconds)
        except TimeoutError as error:
            raise RequestError(
                504, f"this takes longer than {self._seconds:g} seconds; ask for less, or start a job"
            ) from error
        except MemoryError as error:
            self._free_memory()
            raise RequestError(
                503, "there is not enough memory for this now; try again, or ask for less", Retry_After="5"
            ) from error

    def _leave(self) -> None:
        self.busy -= 1

    def close(self) -> None:
        """Take no more calls; running ones end by themselves."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def abandon(self) -> None:
        """End this process where a call is still running, because a thread cannot be stopped otherwise."""
        if self.busy:
            logging.shutdown()
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(0)


# ---- Service -------------------------------------------------------------------------------------
_THREADS = 4
_WRITERS = 16
"""Threads for updates, apart from those for searches; updates that wait together are committed together."""


@dataclass
class Service:
    """All parts of the service."""

    registry: GraphRegistry
    limits: Limits
    workers: WorkerThreads
    writers: WorkerThreads
    jobs: Jobs
    metrics: Metrics

    def close(self) -> None:
        self.workers.close()
        self.writers.close()

    def metrics_text(self) -> str:
        """Return all metrics in the text format of Prometheus."""
        states: list[Sample] = [({"state": state}, float(count)) for state, count in self.jobs.count().items()]
        busy, cache = self.workers.busy + self.writers.busy, self.registry.cache
        lines = [
            *self.metrics.lines(),
            *metric("neupath_jobs", "gauge", "Jobs by state.", states),
            *metric("neupath_busy_workers", "gauge", "Heavy requests at work or waiting.", [({}, busy)]),
            *metric("neupath_ready_scorers", "gauge", "Cached measures.", [({}, len(cache))]),
            *metric("neupath_ready_bytes", "gauge", "Bytes of cached measures.", [({}, cache.bytes)]),
        ]
        return "\n".join(lines) + "\n"

    def check_job(self, request: InferJobRequest | JoinJobRequest | TrainJobRequest) -> tuple[GraphHandle, Path | None]:
        """Refuse a job that cannot succeed before it waits; return its graph, and the folder of the model it uses."""
        handle = self.registry.graph(request.graph)
        if isinstance(request, InferJobRequest):
            read_labels(handle.hin, request, self.limits)
        elif isinstance(request, JoinJobRequest):
            return handle, self._check_join(handle, request)
        else:
            self._check_training(handle, request)
        return handle, None

    def _check_join(self, handle: GraphHandle, request: JoinJobRequest) -> Path | None:
        if request.k is not None:
            self.limits.check_k(request.k)
        if request.model is None:
            self._check_measure(handle, request)
            return None
        check_model_alone(metapath=request.metapath, measure=request.given_measure)
        self.registry.model(handle.name, request.model)
        return self.registry.folders[request.model]

    def _check_training(self, handle: GraphHandle, request: TrainJobRequest) -> None:
        if (request.metapath is None) == (request.pairs is None):
            raise QueryError("give either metapath, to draw labels from a measure, or pairs, the labels themselves")
        check_architecture(request.architecture, learning_from("labels"))
        if request.epochs > self.limits.epochs:
            raise QueryError(f"epochs is {request.epochs}; this service trains for at most {self.limits.epochs} epochs")
        if request.dim is not None and request.dim > self.limits.width:
            raise QueryError(f"dim is {request.dim}; this service trains embeddings of at most {self.limits.width}")
        if find_spec("torch") is None:
            raise MissingExtraError("PyTorch", "neupath[learn]")
        if request.pairs is None:
            self._check_measure(handle, request)
            return
        self.limits.check_pairs(len(request.pairs))
        read_pairs(handle.hin, [(pair.query, pair.target, pair.score) for pair in request.pairs])

    def _check_measure(self, handle: GraphHandle, request: JoinJobRequest | TrainJobRequest) -> None:
        if is_graph_measure(request.measure):
            raise QueryError(
                f"{request.measure.lower()} looks at the whole graph, and jobs go along a meta-path; use one of "
                f"{listed(MEASURES)} with a metapath"
            )
        metapath = handle.hin.metapath(str(required_metapath(handle.hin.schema, request.metapath)))
        measure_named(request.measure, self.limits.check_metapath(metapath)).check(metapath)


def make_service(
    graphs: Mapping[str, GraphHandle | StoreHandle], models: dict[str, Path], state: Path, limits: Limits | None = None
) -> Service:
    """Put a service together.

    Parameters
    ----------
    graphs
        What is served, by name.
    models
        The folders of saved scorers, by name.
    state
        The folder of the jobs and their results.
    limits
        The defaults of `Limits` unless given.

    """
    bounds = limits or Limits()
    registry = GraphRegistry(graphs, bounds)
    for name, folder in models.items():
        registry.add_model(name, folder)

    def serve_model(job: Job) -> None:
        if (job.folder / MODEL).is_dir():
            registry.add_model(job.id, job.folder / MODEL, [job.graph])

    jobs = Jobs(state, bounds, serve_model, lambda job: registry.drop_model(job.id))
    for job in jobs.jobs.values():
        if job.state == "done" and job.graph in graphs:
            try:
                serve_model(job)
            except NeuPathError as error:  # the graph has changed since an earlier service did the job
                job.error = str(error)
    workers = WorkerThreads(_THREADS, bounds.heavy, bounds.seconds, registry.clear_cache)
    writers = WorkerThreads(_WRITERS, bounds.heavy, bounds.seconds, registry.clear_cache)
    return Service(registry, bounds, workers, writers, jobs, Metrics())

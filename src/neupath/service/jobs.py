"""Jobs: checks before they start, a bounded queue, a process for each, events, cancellation, and results on disk."""

import asyncio
import contextlib
import json
import logging
import shutil
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any, Literal, get_args
from uuid import uuid4

from neupath._runtime.files import write_text
from neupath._runtime.resources import count_cores, reserve_memory
from neupath.answers import check_training, given, settings_of
from neupath.errors import MissingExtraError, NeuPathError, QueryError, SourceError, WriteError, listed
from neupath.evidence.counterfactuals import check_counts_walks, check_question
from neupath.evidence.stability import type_on_path
from neupath.graph.hin import HIN
from neupath.graph.metapath import MetaPath
from neupath.learn.labels import check_one_type, join_types, read_pairs
from neupath.learn.registry import (
    ARCHITECTURES,
    check_architecture,
    check_model_alone,
    learning_from,
    required_metapath,
)
from neupath.measures import MEASURES, is_graph_measure, measure_named
from neupath.service.child_process import memory_for_child, start_child
from neupath.service.graph_registry import GraphHandle, GraphRegistry
from neupath.service.handlers import read_labels, refined
from neupath.service.job_process import REPORT, TABLE, JobSpec, run_in_child
from neupath.service.limits import Limits
from neupath.service.schemas import (
    InferJobRequest,
    JobRequest,
    JoinJobRequest,
    RequestError,
    SignificanceJobRequest,
    TrainJobRequest,
    WhatIfJobRequest,
    label_columns,
)

# ---- Job -----------------------------------------------------------------------------------------
State = Literal["waiting", "running", "done", "failed", "cancelled"]
RECORD = "job.json"
_MOST_EVENTS = 1000
_RESULTS = {"infer": REPORT, "train": REPORT, "whatif": REPORT, "significance": REPORT, "join": TABLE}
_log = logging.getLogger("neupath.service")


@dataclass
class Job:
    """One job: its request in short, its state, and its events."""

    id: str
    kind: str
    graph: str
    folder: Path
    created: float
    title: str = ""
    """What it is about in words, such as "auto on 120 pairs of movie"."""
    state: State = "waiting"
    started: float | None = None
    ended: float | None = None
    progress: dict[str, object] | None = None
    summary: dict[str, object] | None = None
    error: str | None = None
    events: list[tuple[int, str, dict[str, object]]] = field(default_factory=list)
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    _number: int = 0

    @property
    def is_over(self) -> bool:
        return self.state in ("done", "failed", "cancelled")

    @property
    def result(self) -> Path:
        return self.folder / _RESULTS[self.kind]

    def to_dict(self) -> dict[str, object]:
        return {
            "id": self.id, "kind": self.kind, "title": self.title, "graph": self.graph, "state": self.state,
            "created": self.created,
            "started": self.started, "ended": self.ended, "progress": self.progress, "summary": self.summary,
            "error": self.error,
        }  # fmt: skip

    def emit(self, event: str, content: dict[str, object]) -> None:
        """Record an event, and wake the streams that wait for one."""
        self._number += 1
        self.events.append((self._number, event, content))
        del self.events[:-_MOST_EVENTS]
        changed, self.changed = self.changed, asyncio.Event()
        changed.set()

    def set_state(self, state: State) -> None:
        """Change the state, write it to disk, and emit it."""
        self.state = state
        if state == "running":
            self.started = time.time()
        if self.is_over:
            self.ended = time.time()
        try:
            write_text(self.folder / RECORD, json.dumps(self.to_dict(), ensure_ascii=False))
        except WriteError as error:  # the job goes on, but a service that starts again will not know of it
            _log.warning("the job %s is %s, which cannot be written: %s", self.id, state, error)
        self.emit("end" if self.is_over else "state", self.to_dict())

    def bytes_on_disk(self) -> int:
        """Return the bytes of its results; 0 for what is being removed meanwhile."""
        try:
            files = (path for path in self.folder.rglob("*") if path.is_file() and path.name != RECORD)
            return sum(path.stat().st_size for path in files)
        except OSError:
            return 0

    def remove_partial_results(self) -> None:
        try:
            for path in self.folder.iterdir() if self.folder.is_dir() else ():
                if path.is_dir():
                    shutil.rmtree(path, ignore_errors=True)
                elif path.name != RECORD:
                    path.unlink(missing_ok=True)
        except OSError as error:
            _log.warning("partial results of the job %s cannot be removed: %s", self.id, error)


def read_jobs(folder: Path) -> list[Job]:
    """Read the jobs of an earlier service from its folder; mark unfinished ones as failed, on disk too."""
    jobs = []
    for record in sorted(folder.glob(f"*/{RECORD}")):
        try:
            content = json.loads(record.read_text(encoding="utf-8"))
            job = Job(**(content | {"folder": record.parent}))
        except (ValueError, TypeError, OSError) as error:
            raise SourceError(f"{record} is not the record of a job ({error}); remove its folder") from error
        if not job.is_over:
            job.error = "the service ended before the job did"
            job.set_state("failed")
        jobs.append(job)
    return sorted(jobs, key=lambda job: job.created)


# ---- Events --------------------------------------------------------------------------------------
HEARTBEAT = 10.0  # seconds of silence after which a comment shows that the connection is alive


async def stream_events(job: Job, after: int = 0, heartbeat: float = HEARTBEAT) -> AsyncIterator[bytes]:
    """Yield the events of a job with a number above `after` until its end, as server-sent events.

    The last event is always `end`, also for a client that reconnects after it.
    """
    newest = job.events[-1][0] if job.events else 0
    last, name = after if after <= newest else 0, ""
    yield b"retry: 1000\n\n"
    while True:
        changed = job.changed
        for number, event, content in [entry for entry in job.events if entry[0] > last]:
            last, name = number, event
            yield encode_event(number, event, content)
        if job.is_over:
            if name != "end":
                yield encode_event(last + 1, "end", job.to_dict())
            return
        try:
            await asyncio.wait_for(changed.wait(), heartbeat)
        except TimeoutError:
            yield b": alive\n\n"


def encode_event(number: int, event: str, content: dict[str, object]) -> bytes:
    r"""Encode one server-sent event.

    >>> encode_event(3, "progress", {"done": 1})
    b'id: 3\nevent: progress\ndata: {"done": 1}\n\n'
    """
    return f"id: {number}\nevent: {event}\ndata: {json.dumps(content)}\n\n".encode("ascii")


def last_event(header: str | None) -> int:
    """Read the header Last-Event-ID; anything but a number counts as 0.

    >>> last_event("7"), last_event(None), last_event("x")
    (7, 0, 0)
    """
    is_number = header is not None and header.isascii() and header.isdecimal() and len(header) < 19
    return int(header or 0) if is_number else 0


# ---- Checks --------------------------------------------------------------------------------------
def check_job(registry: GraphRegistry, request: JobRequest) -> tuple[GraphHandle, Path | None]:
    """Refuse a job that cannot succeed before it waits; return its graph, and the folder of the model it uses."""
    handle = registry.graph(request.graph)
    if isinstance(request, InferJobRequest):
        read_labels(handle.hin, request, registry.limits)
    elif isinstance(request, JoinJobRequest):
        return handle, _check_join(registry, handle, request)
    elif isinstance(request, WhatIfJobRequest):
        _check_what_if(registry.limits, handle, request)
    elif isinstance(request, SignificanceJobRequest):
        _check_significance(registry.limits, handle, request)
    else:
        _check_training(registry.limits, handle, request)
    return handle, None


def job_title(hin: HIN, request: JobRequest) -> str:
    """Say in a few words what a job is about; the request was checked.

    >>> from neupath import load
    >>> job_title(load("toy"), JoinJobRequest(kind="join", graph="toy", metapath="APVPA"))
    'all nodes by pathsim along APVPA'
    """
    if isinstance(request, JoinJobRequest):
        along = f"{request.chosen_measure} along {request.metapath}"
        parts = "a combination" if request.combination is not None else along
        return f"all nodes by {parts if request.model is None else f'the model {request.model}'}"
    if isinstance(request, InferJobRequest):
        return f"meta-paths from {_pairs_of(request)}"
    if isinstance(request, TrainJobRequest):
        learned_from = _pairs_of(request) if request.pairs else f"{request.measure} along {request.metapath}"
        return f"{request.chosen_architecture} on {learned_from}"
    path = hin.metapath(str(request.metapath))
    if isinstance(request, WhatIfJobRequest):
        ends = ((path.source, request.query), (path.target, request.target))
        return " and ".join(hin.nodes[kind].label(hin.row(kind, node_id)) for kind, node_id in ends)
    labels = [hin.nodes[path.source].label(hin.row(path.source, node_id)) for node_id in request.queries]
    return f"hits of {listed(labels, 3)}"


def _pairs_of(request: InferJobRequest | TrainJobRequest) -> str:
    pairs = request.pairs or []
    types = dict.fromkeys(filter(None, (request.node_type, request.query_type, request.target_type)))
    return f"{len(pairs):,} pair{'s' * (len(pairs) != 1)}{' of ' * bool(types)}{' and '.join(types)}"


def _check_join(registry: GraphRegistry, handle: GraphHandle, request: JoinJobRequest) -> Path | None:
    if request.k is not None:
        registry.limits.check_k(request.k)
    _check_unless(registry.limits, handle.hin, request.unless)
    if request.combination is not None:
        if request.metapath is not None or request.measure is not None or request.model is not None:
            raise QueryError("a combination has its own meta-paths and measures; leave out metapath, measure and model")
        registry.combination(handle.name, [part.to_part() for part in request.combination])
        return None
    if request.model is None:
        _check_measure(registry.limits, handle, request)
        return None
    check_model_alone(**given(request, "metapath", "measure"), **request.refinement)
    registry.model(handle.name, str(request.model))
    return registry.models[str(request.model)].folder


def _check_unless(limits: Limits, hin: HIN, unless: Sequence[str]) -> None:
    for text in unless:
        limits.check_text("the meta-path", text)
        limits.check_metapath(hin.metapath(text))


def _check_what_if(limits: Limits, handle: GraphHandle, request: WhatIfJobRequest) -> None:
    limits.check_k(request.k)
    limits.check_paths(request.limit)
    if request.budget is not None and request.budget > limits.work:
        raise QueryError(f"budget is {request.budget:,}; this service spends at most {limits.work:,} (the limit work)")
    metapath = _check_measure(limits, handle, request)
    check_counts_walks(measure_named(request.measure, metapath))
    check_question(handle.hin, metapath, request.query, request.target, request.remove, request.add)


def _check_significance(limits: Limits, handle: GraphHandle, request: SignificanceJobRequest) -> None:
    limits.check_k(request.k, len(request.queries))
    if request.permutations is not None and request.permutations > limits.permutations:
        raise QueryError(
            f"permutations is {request.permutations:,}; this service makes at most {limits.permutations:,} (the limit "
            f"permutations)"
        )
    metapath = _check_measure(limits, handle, request)
    _check_unless(limits, handle.hin, request.unless)
    for condition in request.where:
        handle.hin.nodes[metapath.target].where(condition)
    handle.hin.rows(metapath.source, request.queries)
    if request.stability_by is not None:
        type_on_path(metapath, request.stability_by)


_DEFAULT_DIM = 256  # the largest default of all architectures, for a request that names no dim


def _check_training(limits: Limits, handle: GraphHandle, request: TrainJobRequest) -> None:
    check_training(request)
    architecture = check_architecture(request.chosen_architecture, ("auto", *learning_from("labels")))
    if request.budget is not None and request.budget > limits.job_seconds:
        raise QueryError(
            f"budget is {request.budget:g} seconds; this service gives a job at most {limits.job_seconds:g} (the limit "
            f"job_seconds)"
        )
    lacks = () if architecture == "auto" else ARCHITECTURES[architecture].lacks
    for setting in settings_of(request):
        if setting in lacks:
            raise QueryError(f"a {architecture} model has no {setting}; leave it out")
    if request.epochs is not None and request.epochs > limits.epochs:
        raise QueryError(f"epochs is {request.epochs}; this service trains for at most {limits.epochs} epochs")
    dim = _DEFAULT_DIM if request.dim is None else request.dim
    if dim > limits.width and architecture != "auto":
        raise QueryError(f"dim is {dim}; this service trains embeddings of at most {limits.width}")
    if find_spec("torch") is None and architecture != "auto":
        raise MissingExtraError("PyTorch", "neupath[learn]")
    if request.pairs is None:
        _check_measure(limits, handle, request)
        return
    limits.check_pairs(len(request.pairs))
    types = join_types(request.node_type, request.query_type, request.target_type)
    labels = read_pairs(handle.hin, label_columns(request.pairs), types, examples=True)
    if architecture != "auto" and not ARCHITECTURES[architecture].two_types:
        check_one_type(labels, architecture)


def _check_measure(
    limits: Limits, handle: GraphHandle,
    request: JoinJobRequest | TrainJobRequest | WhatIfJobRequest | SignificanceJobRequest,
) -> MetaPath:  # fmt: skip
    measure = request.chosen_measure if isinstance(request, JoinJobRequest) else request.measure
    if is_graph_measure(measure):
        raise QueryError(
            f"{measure.lower()} looks at the whole graph, and jobs go along a meta-path; use one of "
            f"{listed(MEASURES)} with a metapath"
        )
    if isinstance(request, JoinJobRequest):
        metapath = refined(handle.hin, request)
    else:
        metapath = handle.hin.metapath(str(required_metapath(handle.hin.schema, request.metapath)))
    measure_named(measure, limits.check_metapath(metapath)).check(metapath)
    return metapath


# ---- Queue ---------------------------------------------------------------------------------------
_STOP_SECONDS = 3.0
_LONGEST_POLL = 3600.0  # seconds; the system takes no more than some weeks


@dataclass
class _Task:
    job: Job
    spec: JobSpec
    process: SpawnProcess | None = None  # while it runs


class Jobs:
    """All jobs by id, and the queue of those that wait; each runs in a process of its own."""

    def __init__(
        self, folder: Path, limits: Limits, on_finished: Callable[[Job], None] = lambda _: None,
        on_removed: Callable[[Job], None] = lambda _: None,
    ) -> None:  # fmt: skip
        self._folder, self._limits, self._on_finished, self._drop_model = folder, limits, on_finished, on_removed
        self._queue: list[_Task] = []
        self._active: dict[str, _Task] = {}
        self._running: set[asyncio.Task[None]] = set()
        self._stopping = False
        self.jobs: dict[str, Job] = {job.id: job for job in read_jobs(folder)}

    def find(self, job_id: str) -> Job:
        job = self.jobs.get(job_id)
        if job is None:
            raise RequestError(404, f"no job {job_id[:100]!r} is known; GET /api/jobs lists them")
        return job

    def check_room(self) -> None:
        """Raise a RequestError where too many jobs wait already, or none may."""
        if self._stopping:
            raise RequestError(503, "the service is stopping and starts no more jobs", Retry_After="30")
        if not self._limits.waiting_jobs:
            message = "this service takes no jobs (the limit waiting_jobs is 0); use the command line"
            raise RequestError(403, message)
        if len(self._queue) >= self._limits.waiting_jobs:
            message = f"{len(self._queue)} jobs are waiting already; try again when one is done"
            raise RequestError(429, message, Retry_After="10")

    def start(self, kind: str, graph: str, hin: HIN, request: str, model: Path | None = None, title: str = "") -> Job:
        """Put a job into the queue; `request` is JSON, and `model` the folder of a model that it uses."""
        self.check_room()
        job_id = uuid4().hex[:12]
        folder = self._folder / job_id
        try:
            folder.mkdir(parents=True)
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise WriteError(f"the service cannot keep another job: {reason}") from error
        job = self.jobs[job_id] = Job(job_id, kind, graph, folder, time.time(), title)
        job.set_state("waiting")
        self._queue.append(_Task(job, JobSpec(hin, request, folder, model, self._limits)))
        self._remove_oldest()
        self._start_next()
        return job

    def _start_next(self) -> None:
        while self._queue and len(self._active) < self._limits.running_jobs and not self._stopping:
            task = self._queue.pop(0)
            self._active[task.job.id] = task
            running = asyncio.get_running_loop().create_task(self._run(task))
            self._running.add(running)
            running.add_done_callback(self._running.discard)

    async def _run(self, task: _Task) -> None:
        try:
            await self._run_to_end(task)
        finally:
            del self._active[task.job.id]
            self._start_next()

    async def _run_to_end(self, task: _Task) -> None:
        """Run a job's process; afterwards the job is over and has no partial results, whatever happens."""
        job = task.job
        job.set_state("running")
        try:
            code = await asyncio.to_thread(_run_process, task, asyncio.get_running_loop())
            if job.summary is None and job.error is None:  # it sent no last message, so the system ended it
                job.error = f"the job's process ended with exit code {code}; it may have run out of memory"
            if job.summary is not None and not job.is_over:
                self._check_size(job)
                await asyncio.to_thread(self._on_finished, job)
        except NeuPathError as error:
            job.error = str(error)
        except Exception:
            _log.exception("the job %s failed by an error of the service", job.id)
            job.error = "something went wrong in the service; its log has the details"
        if not job.is_over:
            job.set_state("done" if job.error is None and job.summary is not None else "failed")
        if job.state != "done":
            self._drop_model(job)  # it may have been bound before the job was cancelled
            await asyncio.to_thread(job.remove_partial_results)
        self._remove_oldest()

    def _check_size(self, job: Job) -> None:
        size, most = job.bytes_on_disk(), self._limits.result_bytes
        if size > most:
            raise QueryError(
                f"the result has {size:,} bytes, and this service keeps {most:,} in all (the limit result_bytes); ask "
                f"for less"
            )

    def cancel(self, job: Job) -> None:
        """Stop a job; one that is over keeps its state."""
        if job.is_over:
            return
        self._queue = [task for task in self._queue if task.job is not job]
        task = self._active.get(job.id)
        job.set_state("cancelled")
        if task is not None and (process := task.process) is not None:
            with contextlib.suppress(ValueError):  # it ended and was closed this moment
                process.kill()

    def remove(self, job: Job) -> None:
        """Remove a job that is over, with its result."""
        if not job.is_over:
            raise RequestError(409, f"the job {job.id} is {job.state}; cancel it first: POST /api/jobs/{job.id}/cancel")
        self.jobs.pop(job.id, None)
        self._drop_model(job)
        shutil.rmtree(job.folder, ignore_errors=True)

    def _remove_oldest(self) -> None:
        """Remove the oldest finished jobs while these are too many, or their results too large."""
        over = sorted((job for job in self.jobs.values() if job.is_over), key=lambda job: job.created)
        sizes = [job.bytes_on_disk() for job in over]
        for at, job in enumerate(over):
            if len(over) - at <= self._limits.kept_jobs and sum(sizes[at:]) <= self._limits.result_bytes:
                return
            self.remove(job)

    def stop(self) -> None:
        """Cancel all jobs, which ends their event streams, so that the service can end."""
        self._stopping = True
        for task in [*self._queue, *self._active.values()]:
            if not task.job.is_over:
                task.job.error = "the service was stopped"
                self.cancel(task.job)

    async def wait(self) -> None:
        """Wait until the processes of cancelled jobs are gone."""
        await asyncio.gather(*self._running)

    def count(self) -> dict[State, int]:
        counts = Counter(job.state for job in self.jobs.values())
        return {state: counts[state] for state in get_args(State)}


async def _apply(job: Job, message: dict[str, Any]) -> None:
    """Apply a message of a job's process to the job."""
    if job.is_over:
        return
    if "progress" in message:
        job.progress = message["progress"]
        job.emit("progress", message["progress"])
    job.error = message.get("failed")
    job.summary = message.get("done")


def _run_process(task: _Task, loop: asyncio.AbstractEventLoop) -> int | None:
    """Run a job's process, apply its messages in the event loop, and return its exit code."""
    limits = task.spec.limits
    memory = memory_for_child(limits.job_bytes)
    with reserve_memory(memory, "the job") as reservation:
        process, receiver = start_child(run_in_child, task.spec, count_cores(), memory)
        reservation.process = process.pid
        task.process = process
        try:
            if task.job.is_over:  # cancelled while it started
                process.kill()
            with receiver, contextlib.suppress(EOFError, OSError):  # the process has ended
                for message in _messages(receiver, limits.job_seconds):
                    asyncio.run_coroutine_threadsafe(_apply(task.job, message), loop).result()
            process.join(_STOP_SECONDS)
            return process.exitcode
        finally:
            task.process = None  # nothing is left to kill
            if process.is_alive():
                process.kill()
            process.join()
            process.close()


def _messages(receiver: Connection, seconds: float) -> Iterator[dict[str, Any]]:
    """Yield what a job's process sends until it ends, or an error where it takes too long."""
    deadline = time.monotonic() + seconds
    while True:
        left = max(0.0, deadline - time.monotonic())
        if receiver.poll(min(left, _LONGEST_POLL)):
            yield json.loads(receiver.recv_bytes())
        elif not left:
            break
    yield {"failed": f"the job took longer than {seconds:g} seconds (the limit job_seconds); ask for less"}

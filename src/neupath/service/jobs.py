"""Jobs: long work in processes of its own, with a bounded queue, progress, cancelling, and results that stay."""

import asyncio
import contextlib
import json
import logging
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any, Literal
from uuid import uuid4

from neupath._runtime.files import write_text
from neupath._runtime.resources import count_cores
from neupath.errors import NeuPathError, SourceError, WriteError
from neupath.graph.hin import HIN
from neupath.service.job_process import REPORT, TABLE, JobSpec, run_job
from neupath.service.limits import Limits
from neupath.service.responses import RequestError

# ---- Job -----------------------------------------------------------------------------------------
State = Literal["waiting", "running", "done", "failed", "cancelled"]
RECORD = "job.json"
_MOST_EVENTS = 1000
_RESULTS = {"infer": REPORT, "train": REPORT, "join": TABLE}
_log = logging.getLogger("neupath.service")


@dataclass
class Job:
    """One piece of long work: what it is, how far it is, and what has been told of it."""

    id: str
    kind: str
    graph: str
    folder: Path
    created: float
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
            "id": self.id, "kind": self.kind, "graph": self.graph, "state": self.state, "created": self.created,
            "started": self.started, "ended": self.ended, "progress": self.progress, "summary": self.summary,
            "error": self.error,
        }  # fmt: skip

    def tell(self, event: str, content: dict[str, object]) -> None:
        """Record an event, and wake those who listen."""
        self._number += 1
        self.events.append((self._number, event, content))
        del self.events[:-_MOST_EVENTS]
        awake, self.changed = self.changed, asyncio.Event()
        awake.set()

    def enter(self, state: State) -> None:
        """Change the state, keep it on disk, and tell."""
        self.state = state
        if state == "running":
            self.started = time.time()
        if self.is_over:
            self.ended = time.time()
        try:
            write_text(self.folder / RECORD, json.dumps(self.to_dict(), ensure_ascii=False))
        except WriteError as error:  # the job goes on; a service that starts again will not know of it
            _log.warning("the job %s is %s, which cannot be kept: %s", self.id, state, error)
        self.tell("end" if self.is_over else "state", self.to_dict())

    def tidy(self) -> None:
        """Remove what was half done; what cannot be is told in the log."""
        try:
            for path in self.folder.iterdir() if self.folder.is_dir() else ():
                if path.is_dir():
                    shutil.rmtree(path, ignore_errors=True)
                elif path.name != RECORD:
                    path.unlink(missing_ok=True)
        except OSError as error:
            _log.warning("what the job %s had half done cannot be removed: %s", self.id, error)


def read_jobs(folder: Path) -> list[Job]:
    """Read the jobs that an earlier service left in a folder; those it did not finish have failed."""
    found = []
    for record in sorted(folder.glob(f"*/{RECORD}")):
        try:
            content = json.loads(record.read_text(encoding="utf-8"))
            job = Job(**(content | {"folder": record.parent}))
        except (ValueError, TypeError, OSError) as error:
            raise SourceError(f"{record} is not the record of a job ({error}); remove its folder") from error
        if not job.is_over:
            job.error = "the service ended before the job did"
            job.enter("failed")
        found.append(job)
    return sorted(found, key=lambda job: job.created)


# ---- Jobs ----------------------------------------------------------------------------------------
_SECONDS_TO_STOP = 3.0


@dataclass
class _Task:
    """A job, what its process is given, and the process while there is one."""

    job: Job
    order: JobSpec
    process: SpawnProcess | None = None


class Jobs:
    """The queue and the jobs that were done; each runs in a process of its own, some at a time."""

    def __init__(
        self,
        folder: Path,
        limits: Limits,
        finished: Callable[[Job], None] = lambda _: None,
        forgotten: Callable[[Job], None] = lambda _: None,
    ) -> None:
        self._folder, self._limits, self._finished, self._forgotten = folder, limits, finished, forgotten
        self._queue: list[_Task] = []
        self._at_work: dict[str, _Task] = {}
        self._running: set[asyncio.Task[None]] = set()
        self._stopping = False
        self.jobs: dict[str, Job] = {job.id: job for job in read_jobs(folder)}

    def find(self, job_id: str) -> Job:
        found = self.jobs.get(job_id)
        if found is None:
            raise RequestError(404, f"no job {job_id[:100]!r} is known; GET /api/jobs lists them")
        return found

    def check_room(self) -> None:
        """Refuse another job where too many are waiting."""
        if self._stopping:
            raise RequestError(503, "the service is stopping and starts no more jobs", Retry_After="30")
        if len(self._queue) >= self._limits.waiting_jobs:
            raise RequestError(
                429, f"{len(self._queue)} jobs are waiting already; try again when one is done", Retry_After="10"
            )

    def start(self, kind: str, graph: str, hin: HIN, content: str, model: Path | None = None) -> Job:
        """Put a job into the queue; `model` is the folder of a model it uses."""
        self.check_room()
        job_id = uuid4().hex[:12]
        folder = self._folder / job_id
        try:
            folder.mkdir(parents=True)
        except OSError as error:
            raise WriteError(
                f"the service cannot keep another job: {(error.strerror or str(error)).lower()}"
            ) from error
        job = self.jobs[job_id] = Job(job_id, kind, graph, folder, time.time())
        job.enter("waiting")
        self._queue.append(_Task(job, JobSpec(hin, content, folder, model, self._limits)))
        self._forget_oldest()
        self._go_on()
        return job

    def _go_on(self) -> None:
        while self._queue and len(self._at_work) < self._limits.running_jobs and not self._stopping:
            task = self._queue.pop(0)
            self._at_work[task.job.id] = task
            running = asyncio.get_running_loop().create_task(self._run(task))
            self._running.add(running)
            running.add_done_callback(self._running.discard)

    async def _run(self, task: _Task) -> None:
        try:
            await self._bring_to_end(task)
        finally:
            del self._at_work[task.job.id]
            self._go_on()

    async def _bring_to_end(self, task: _Task) -> None:
        """Run a job's process; whatever happens, the job is over then, and what was half done is gone."""
        job = task.job
        job.enter("running")
        try:
            code = await asyncio.to_thread(_follow, task, asyncio.get_running_loop(), lambda m: _hear(job, m))
            if job.summary is None and job.error is None:  # it said nothing, so the system ended it
                job.error = f"the job's process ended with exit code {code}; it may have run out of memory"
            if job.summary is not None and not job.is_over:
                await asyncio.to_thread(self._finished, job)
        except NeuPathError as error:
            job.error = str(error)
        except Exception:
            _log.exception("the job %s failed by an error that is ours", job.id)
            job.error = "something went wrong in the service; its log has the details"
        if not job.is_over:
            job.enter("done" if job.error is None and job.summary is not None else "failed")
        if job.state != "done":
            self._forgotten(job)  # its model, where it was cancelled while that was made ready
            await asyncio.to_thread(job.tidy)

    def cancel(self, job: Job) -> None:
        """Stop a job; one that is over stays as it is."""
        if job.is_over:
            return
        self._queue = [task for task in self._queue if task.job is not job]
        task = self._at_work.get(job.id)
        job.enter("cancelled")
        if task is not None:
            _stop(task)

    def remove(self, job: Job) -> None:
        """Forget a job that is over, as somebody asks; one that is not may be wanted yet."""
        if not job.is_over:
            raise RequestError(409, f"the job {job.id} is {job.state}; cancel it first: POST /api/jobs/{job.id}/cancel")
        self.forget(job)

    def forget(self, job: Job) -> None:
        """Remove a job and its result."""
        self.jobs.pop(job.id, None)
        self._forgotten(job)
        shutil.rmtree(job.folder, ignore_errors=True)

    def _forget_oldest(self) -> None:
        over = [job for job in self.jobs.values() if job.is_over]
        for job in sorted(over, key=lambda job: job.created)[: max(0, len(over) - self._limits.kept_jobs)]:
            self.forget(job)

    def stop(self) -> None:
        """Cancel all jobs and wake those who listen, so that the service can end."""
        self._stopping = True
        for task in [*self._queue, *self._at_work.values()]:
            if not task.job.is_over:
                task.job.error = "the service was stopped"
                self.cancel(task.job)

    async def wait(self) -> None:
        """Wait until the processes of cancelled jobs are gone."""
        await asyncio.gather(*self._running)

    def count(self) -> dict[State, int]:
        counted: dict[State, int] = dict.fromkeys(("waiting", "running", "done", "failed", "cancelled"), 0)
        for job in self.jobs.values():
            counted[job.state] += 1
        return counted


def _hear(job: Job, message: dict[str, Any]) -> None:
    """Take in what a job's process tells."""
    if job.is_over:
        return
    if "progress" in message:
        job.progress = message["progress"]
        job.tell("progress", message["progress"])
    job.error = message.get("failed")
    job.summary = message.get("done")


def _follow(task: _Task, loop: asyncio.AbstractEventLoop, hear: Callable[[dict[str, Any]], None]) -> int | None:
    """Start a job's process and pass on what it tells until it ends; return its exit code."""
    context = get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=run_job, args=(sender, task.order, count_cores()), daemon=True)
    process.start()
    sender.close()
    task.process = process
    try:
        if task.job.is_over:  # cancelled while it started
            process.kill()
        _listen(receiver, loop, hear)
        process.join(_SECONDS_TO_STOP)
        return process.exitcode
    finally:
        task.process = None  # who cancels from now on finds no process to stop
        if process.is_alive():
            process.kill()
        process.join()
        process.close()


def _listen(receiver: Connection, loop: asyncio.AbstractEventLoop, hear: Callable[[dict[str, Any]], None]) -> None:
    with receiver:
        while True:
            try:
                message = json.loads(receiver.recv_bytes())
            except (EOFError, OSError):
                return
            done = asyncio.run_coroutine_threadsafe(_call(hear, message), loop)
            done.result()  # one after the other, and heard before the process counts as ended


async def _call(hear: Callable[[dict[str, Any]], None], message: dict[str, Any]) -> None:
    hear(message)


def _stop(task: _Task) -> None:
    process = task.process
    if process is not None:
        with contextlib.suppress(ValueError):  # it ended and was closed this moment
            process.kill()

"""Overseeing: the endpoints by which jobs are started, followed, cancelled and removed."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import Body, FastAPI, Header
from pydantic import Field
from starlette.responses import FileResponse, Response, StreamingResponse

from neupath.service import schemas
from neupath.service.handlers import JSON
from neupath.service.jobs import Job
from neupath.service.responses import RequestError, answers, to_reply
from neupath.service.service import Service

# ---- Streaming -----------------------------------------------------------------------------------
HEARTBEAT = 10.0
"""Seconds of silence after which a comment shows that the connection is alive."""


async def stream_events(job: Job, after: int = 0, heartbeat: float = HEARTBEAT) -> AsyncIterator[bytes]:
    """Yield the events of a job with a number above `after`, those to come as well, until its end.

    The last is always `end`: also to who has heard it before, or heard an earlier service.
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
    r"""Return one event as the protocol writes it.

    >>> encode_event(3, "progress", {"done": 1})
    b'id: 3\nevent: progress\ndata: {"done": 1}\n\n'
    """
    return f"id: {number}\nevent: {event}\ndata: {json.dumps(content)}\n\n".encode("ascii")


def last_event(given: str | None) -> int:
    """Read the number of the last event a client has seen; what is no number means none.

    >>> last_event("7"), last_event(None), last_event("x")
    (7, 0, 0)
    """
    return int(given) if given and given.isascii() and given.isdecimal() and len(given) < 19 else 0


# ---- Overseeing ----------------------------------------------------------------------------------
def add_job_routes(app: FastAPI, service: Service) -> None:
    """Add what starts, lists, cancels and removes jobs."""
    jobs = service.jobs

    @app.post("/api/jobs", tags=["jobs"], status_code=202, responses=answers("job", 202))
    async def start_job(
        asked: Annotated[
            schemas.InferJobRequest | schemas.JoinRequest | schemas.TrainRequest, Field(discriminator="kind"), Body()
        ],
    ) -> Response:
        """Start long work in a process of its own: infer, join or train; 429 when too many are waiting."""
        jobs.check_room()
        served, model = await service.workers.run(service.check_job, asked)
        job = jobs.start(asked.kind, served.name, served.hin, asked.model_dump_json(), model)
        return to_reply(job.to_dict(), 202)

    @app.get("/api/jobs", tags=["jobs"], responses=answers("jobs"))
    async def list_jobs() -> Response:
        """List the jobs that wait, run, or are over, oldest first."""
        return to_reply([job.to_dict() for job in jobs.jobs.values()])

    @app.get("/api/jobs/{job}", tags=["jobs"], responses=answers("job"))
    async def show_job(job: str) -> Response:
        """Say how far a job is."""
        return to_reply(jobs.find(job).to_dict())

    @app.post("/api/jobs/{job}/cancel", tags=["jobs"], responses=answers("job"))
    async def cancel_job(job: str) -> Response:
        """Cancel a job that waits or runs; one that is over stays as it is, with its result."""
        found = jobs.find(job)
        jobs.cancel(found)
        return to_reply(found.to_dict())

    @app.delete("/api/jobs/{job}", tags=["jobs"], responses=answers("job"))
    async def remove_job(job: str) -> Response:
        """Remove a job that is over, with its result; 409 for one that is not."""
        found = jobs.find(job)
        jobs.remove(found)
        return to_reply(found.to_dict())


def add_result_routes(app: FastAPI, service: Service) -> None:
    """Add what tells how a job goes, and what it came to."""
    jobs = service.jobs
    streams = {"open": 0}

    @app.get("/api/jobs/{job}/events", tags=["jobs"], responses=answers("events"))
    async def listen(job: str, last_event_id: Annotated[str | None, Header()] = None) -> Response:
        """Tell how a job goes as server-sent events until it ends; Last-Event-ID resumes."""
        found = jobs.find(job)
        if streams["open"] >= service.limits.streams:
            raise RequestError(503, f"{streams['open']} clients listen to jobs already; poll GET /api/jobs/{found.id}")

        async def events() -> AsyncIterator[bytes]:
            streams["open"] += 1
            try:
                async for event in stream_events(found, last_event(last_event_id)):
                    yield event
            finally:
                streams["open"] -= 1

        return StreamingResponse(events(), media_type="text/event-stream", headers={"cache-control": "no-store"})

    @app.get("/api/jobs/{job}/result", tags=["jobs"], responses=answers("infer"))
    async def show_result(job: str) -> Response:
        """Return what a job came to: JSON, or for a join the Parquet file."""
        found = jobs.find(job)
        if found.state != "done":
            raise RequestError(409, f"the job {found.id} is {found.state}, and has no result{_because(found.error)}")
        kind = JSON if found.result.suffix == ".json" else "application/vnd.apache.parquet"
        name = None if kind == JSON else f"{found.id}.parquet"
        return FileResponse(found.result, media_type=kind, filename=name)


def _because(error: str | None) -> str:
    return f": {error}" if error else " yet"

"""Overseeing: the endpoints by which jobs are started, followed, cancelled and removed."""

from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import Body, FastAPI, Header
from pydantic import Field
from starlette.responses import FileResponse, Response, StreamingResponse

from neupath.service import requests as asks
from neupath.service.examples import answers
from neupath.service.refusals import Refusal
from neupath.service.replies import to_reply
from neupath.service.searching import JSON
from neupath.service.service import Service
from neupath.service.streaming import last_event, stream_events


def add_jobs(app: FastAPI, service: Service) -> None:
    """Add what starts, lists, cancels and removes jobs."""
    jobs = service.jobs

    @app.post("/api/jobs", tags=["jobs"], status_code=202, responses=answers("job", 202))
    async def start_job(
        asked: Annotated[asks.InferJob | asks.JoinJob | asks.TrainJob, Field(discriminator="kind"), Body()],
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


def add_results(app: FastAPI, service: Service) -> None:
    """Add what tells how a job goes, and what it came to."""
    jobs = service.jobs
    streams = {"open": 0}

    @app.get("/api/jobs/{job}/events", tags=["jobs"], responses=answers("events"))
    async def listen(job: str, last_event_id: Annotated[str | None, Header()] = None) -> Response:
        """Tell how a job goes as server-sent events until it ends; Last-Event-ID resumes."""
        found = jobs.find(job)
        if streams["open"] >= service.limits.streams:
            raise Refusal(503, f"{streams['open']} clients listen to jobs already; poll GET /api/jobs/{found.id}")

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
            raise Refusal(409, f"the job {found.id} is {found.state}, and has no result{_because(found.error)}")
        kind = JSON if found.result.suffix == ".json" else "application/vnd.apache.parquet"
        name = None if kind == JSON else f"{found.id}.parquet"
        return FileResponse(found.result, media_type=kind, filename=name)


def _because(error: str | None) -> str:
    return f": {error}" if error else " yet"

"""The application: the parts of a service, and every route as FastAPI documents it; `handlers.py` does the work."""

import gzip
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from fastapi import Body, FastAPI, Header, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import (
    FileResponse,
    MalformedRangeHeader,
    RangeNotSatisfiable,
    Response,
    StreamingResponse,
)

from neupath import __version__
from neupath.errors import NeuPathError, WriteError
from neupath.measures import is_graph_measure
from neupath.measures.completion import describe_measures
from neupath.requests import Search
from neupath.service import handlers, schemas
from neupath.service.graph_registry import GraphHandle, GraphRegistry, StoreHandle
from neupath.service.handlers import JSON
from neupath.service.job_process import MODEL
from neupath.service.jobs import Job, Jobs, check_job, job_title, last_event, stream_events
from neupath.service.light_search import SEARCH, LightSearchMiddleware
from neupath.service.limits import Limits, WorkerThreads
from neupath.service.middleware import GuardMiddleware, Metrics, Sample, metric
from neupath.service.schemas import (
    JOB_REQUEST,
    RequestError,
    describe_problems,
    error_response,
    example_responses,
    json_response,
    query_parameters,
    read_query,
)

# ---- Service -------------------------------------------------------------------------------------
_log = logging.getLogger("neupath.service")
_THREADS = 4
_LOOKUPS = 4  # threads for look-ups, which take milliseconds and must not wait for searches
_SOLVERS = 2  # threads for measures over the whole graph, and so as many of their processes at work
_WRITERS = 16  # threads for updates, apart from those for searches; updates that wait together are committed together


_WHOLE_GRAPH_ADVICE = (
    "choose ppr, rwr or scan, which prepare nothing, or a measure along a meta-path; 'neupath search' has no time limit"
)


@dataclass
class Service:
    """All parts of the service."""

    registry: GraphRegistry
    limits: Limits
    workers: WorkerThreads
    lookups: WorkerThreads
    solvers: WorkerThreads
    writers: WorkerThreads
    jobs: Jobs
    metrics: Metrics

    @property
    def pools(self) -> tuple[WorkerThreads, ...]:
        return self.workers, self.lookups, self.solvers, self.writers

    def close(self) -> None:
        for pool in self.pools:
            pool.close()
        self.registry.clear_cache()  # which ends the processes of measures

    def exit_if_busy(self) -> None:
        """Exit the process at once if a call still runs or kernels are compiled, whose threads cannot be stopped."""
        self.registry.exit_if_warming_up()
        for pool in self.pools:
            pool.exit_if_busy()

    def searchers(self, request: Search) -> WorkerThreads:
        """Return the threads for a search: one over the whole graph must not hold up those along meta-paths."""
        is_whole = request.model is None and request.metapath is None and is_graph_measure(request.chosen_measure)
        return self.solvers if is_whole else self.workers

    def metrics_text(self) -> str:
        """Return all metrics in the text format of Prometheus."""
        states: list[Sample] = [({"state": state}, float(count)) for state, count in self.jobs.count().items()]
        busy, cache = sum(pool.busy for pool in self.pools), self.registry.cache
        lines = [
            *self.metrics.lines(),
            *metric("neupath_jobs", "gauge", "Jobs by state.", states),
            *metric("neupath_busy_workers", "gauge", "Heavy requests at work or waiting.", [({}, busy)]),
            *metric("neupath_ready_scorers", "gauge", "Cached measures.", [({}, len(cache))]),
            *metric("neupath_ready_bytes", "gauge", "Bytes of cached measures.", [({}, cache.bytes)]),
        ]
        return "\n".join(lines) + "\n"


def make_service(
    graphs: Mapping[str, GraphHandle | StoreHandle], models: dict[str, Path], state: Path, limits: Limits | None = None
) -> Service:
    """Put a service together from graphs, folders of saved models, a folder for jobs, and limits."""
    bounds = limits or Limits()
    registry = GraphRegistry(graphs, bounds)
    for name, folder in models.items():
        registry.add_model(name, folder)

    def serve_model(job: Job) -> None:
        if (job.folder / MODEL).is_dir():
            registry.add_model(job.id, job.folder / MODEL, [job.graph], {"title": job.title, "created": job.created})

    jobs = Jobs(state, bounds, serve_model, lambda job: registry.drop_model(job.id))
    for job in jobs.jobs.values():
        if job.state == "done" and job.graph in graphs:
            try:
                serve_model(job)
            except NeuPathError as error:  # the graph has changed since an earlier service did the job
                job.error = str(error)

    def threads(count: int, advice: str = "ask for less, or start a job") -> WorkerThreads:
        return WorkerThreads(count, bounds.heavy, bounds.seconds, registry.clear_cache, advice)

    solvers = threads(_SOLVERS, _WHOLE_GRAPH_ADVICE)
    return Service(
        registry, bounds, threads(_THREADS), threads(_LOOKUPS), solvers, threads(_WRITERS), jobs, Metrics()
    )  # fmt: skip


# ---- Application ---------------------------------------------------------------------------------
_ABOUT = """Similarity search in typed graphs: exact, explained, learned.

Every error is `{"error": "one sentence"}`. The JSON of search, explain and infer is what the command line prints with
`--json`."""


def make_app(service: Service, token: str | None = None, hosts: frozenset[str] | None = None) -> GuardMiddleware:
    """Return the service as an ASGI application.

    Clients must send the token, if there is one. It answers to the Host names `hosts`, by default to any.
    """

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        service.jobs.stop()
        await service.jobs.wait()
        service.close()

    app = FastAPI(
        title="neupath", version=__version__, description=_ABOUT, openapi_url="/api/openapi.json", docs_url=None,
        redoc_url=None, lifespan=lifespan,
    )  # fmt: skip
    _add_graphs(app, service)
    _add_searches(app, service)
    for endpoint in _ENDPOINTS:
        _add_endpoint(app, service, endpoint)
    _add_jobs(app, service)
    _add_job_results(app, service)
    _add_health(app, service)
    for path, file in read_page().items():
        app.add_route(path, _page_route(file), include_in_schema=False)
    _add_error_handlers(app)
    route = next(route for route in app.routes if getattr(route, "path", None) == SEARCH)
    searches = LightSearchMiddleware(app, service.registry, route)
    return GuardMiddleware(searches, service.limits, service.metrics, token, hosts)


# ---- Graphs --------------------------------------------------------------------------------------
def _add_graphs(app: FastAPI, service: Service) -> None:
    registry, lookups = service.registry, service.lookups

    @app.get("/api/graphs", tags=["graphs"], responses=example_responses("graphs"))
    async def list_graphs() -> Response:
        """List the graphs that are served."""
        return json_response([handle.to_dict() for handle in registry.graphs.values()])

    @app.get("/api/graphs/{graph}", tags=["graphs"], responses=example_responses("graph"))
    async def describe_graph(graph: str) -> Response:
        """Describe a graph, as `neupath info --json` does."""
        handle = registry.graph(graph)
        summary = (await lookups.run(lambda: handle.summary)).to_dict()
        return json_response(summary if handle.version is None else summary | {"version": handle.version})

    @app.get("/api/graphs/{graph}/schema", tags=["graphs"], responses=example_responses("schema"))
    async def show_schema(graph: str) -> Response:
        """Return the node types, the relations, and every step a meta-path can take."""
        handle = registry.graph(graph)
        return json_response(handle.schema() if handle.version is None else await lookups.run(handle.schema))

    @app.get("/api/measures", tags=["graphs"], responses=example_responses("measures"))
    async def list_measures() -> Response:
        """List the measures, and on which meta-paths each is defined."""
        return json_response(describe_measures())

    @app.get("/api/models", tags=["graphs"], responses=example_responses("models"))
    async def list_models() -> Response:
        """List the saved models that are served, including those that jobs made."""
        return json_response(registry.describe_models())


# ---- Search --------------------------------------------------------------------------------------
def _add_searches(app: FastAPI, service: Service) -> None:
    registry = service.registry

    @app.get(
        SEARCH, tags=["search"], openapi_extra=query_parameters(schemas.SearchOne),
        responses=example_responses("search"),
    )  # fmt: skip
    async def search(graph: str, http: Request) -> Response:
        """Find the nodes most similar to one; the JSON is that of `neupath search --json`, without `ties`."""
        request = read_query(schemas.SearchOne, http.scope["query_string"])
        accept = http.headers.get("accept", JSON)
        result = await service.searchers(request).run(handlers.search, registry, graph, request)
        if handlers.is_table(accept):
            return handlers.encode_hits(result, accept)
        return Response(handlers.to_json(result.hits[0], result.version, result.parts), media_type=JSON)

    @app.post(SEARCH, tags=["search"], responses=example_responses("searches"))
    async def search_for_many(
        graph: str, request: schemas.SearchMany, accept: Annotated[str, Header()] = JSON
    ) -> Response:
        """Find the nodes most similar to each of many: a list, or by Accept an Arrow stream, a Parquet file or CSV."""
        result = await service.searchers(request).run(handlers.search, registry, graph, request)
        return await service.workers.run(handlers.encode_hits, result, accept)


class Endpoint(NamedTuple):
    """Where a question is asked over HTTP, and the function of `handlers.py` that answers it with JSON."""

    operation: str
    method: str
    path: str
    form: type[Any]
    handler: str
    threads: str
    example: str
    advice: str | None = None
    """What to do where it takes too long."""


_ENDPOINTS = (
    Endpoint("find_nodes", "GET", "nodes", schemas.NodesRequest, "find_nodes", "lookups", "nodes"),
    Endpoint("look_up_nodes", "POST", "nodes", schemas.NodesLookup, "look_up_nodes", "lookups", "lookup"),
    Endpoint("show_node", "GET", "node", schemas.NodeRequestedById, "describe_node", "lookups", "node"),
    Endpoint("list_hubs", "GET", "hubs", schemas.HubsRequest, "find_hubs", "lookups", "hubs"),
    Endpoint(
        "complete_metapath", "GET", "metapaths", schemas.MetapathsRequest, "complete_metapath", "lookups", "metapaths"
    ),
    Endpoint("update", "POST", "updates", schemas.UpdateRequest, "update_graph", "writers", "updates"),
    Endpoint(
        "find_similar", "GET", "similar", schemas.SimilarRequest, "find_similar", "workers", "similar",
        "search along one meta-path",
    ),
    Endpoint("explain", "GET", "explain", schemas.ExplainOne, "explain_one", "workers", "explain"),
    Endpoint(
        "explain_combined", "POST", "explain", schemas.ExplainCombination, "explain_combined", "workers",
        "explain_parts",
    ),
    Endpoint("relate", "GET", "relate", schemas.RelateRequest, "relate_nodes", "workers", "relate", "lower max_steps"),
    Endpoint("infer", "POST", "infer", schemas.InferRequest, "infer_without_job", "workers", "infer"),
)  # fmt: skip


def _add_endpoint(app: FastAPI, service: Service, endpoint: Endpoint) -> None:
    pool: WorkerThreads = getattr(service, endpoint.threads)

    async def answer(graph: str, request: Any) -> Response:
        work = partial(getattr(handlers, endpoint.handler), service.registry, graph, request)
        if endpoint.advice is None:
            return json_response(await pool.run(work))
        return json_response(await pool.run_or_advise(endpoint.advice, work))

    async def get(graph: str, http: Request) -> Response:
        return await answer(graph, read_query(endpoint.form, http.scope["query_string"]))

    async def post(graph: str, request: endpoint.form) -> Response:  # type: ignore[name-defined]
        return await answer(graph, request)

    is_search = endpoint.threads == "workers"
    app.add_api_route(
        f"/api/graphs/{{graph}}/{endpoint.path}", get if endpoint.method == "GET" else post, methods=[endpoint.method],
        name=endpoint.operation, description=getattr(handlers, endpoint.handler).__doc__,
        tags=["search" if is_search else "graphs"], responses=example_responses(endpoint.example),
        openapi_extra=query_parameters(endpoint.form) if endpoint.method == "GET" else None,
    )  # fmt: skip


# ---- Jobs ----------------------------------------------------------------------------------------
def _add_jobs(app: FastAPI, service: Service) -> None:
    jobs = service.jobs

    @app.post("/api/jobs", tags=["jobs"], status_code=202, responses=example_responses("job", 202))
    async def start_job(request: Annotated[schemas.JobRequest, Body()]) -> Response:
        """Start long work in a process of its own: infer, join, train, whatif or significance; 429 if too many wait."""
        jobs.check_room()
        handle, model = await service.workers.run(check_job, service.registry, request)
        title = await service.workers.run(job_title, handle.hin, request)
        job = jobs.start(request.kind, handle.name, handle.hin, JOB_REQUEST.dump_json(request).decode(), model, title)
        return json_response(job.to_dict(), 202)

    @app.get("/api/jobs", tags=["jobs"], responses=example_responses("jobs"))
    async def list_jobs() -> Response:
        """List all jobs, the oldest first."""
        return json_response([job.to_dict() for job in jobs.jobs.values()])

    @app.get("/api/jobs/{job}", tags=["jobs"], responses=example_responses("job"))
    async def show_job(job: str) -> Response:
        """Return the state of a job."""
        return json_response(jobs.find(job).to_dict())

    @app.post("/api/jobs/{job}/cancel", tags=["jobs"], responses=example_responses("job"))
    async def cancel_job(job: str) -> Response:
        """Cancel a job that waits or runs; one that is over keeps its result."""
        record = jobs.find(job)
        jobs.cancel(record)
        return json_response(record.to_dict())

    @app.delete("/api/jobs/{job}", tags=["jobs"], responses=example_responses("job"))
    async def remove_job(job: str) -> Response:
        """Remove a job that is over, with its result; 409 for one that is not."""
        record = jobs.find(job)
        jobs.remove(record)
        return json_response(record.to_dict())


def _add_job_results(app: FastAPI, service: Service) -> None:
    jobs = service.jobs
    streams = {"open": 0}

    @app.get("/api/jobs/{job}/events", tags=["jobs"], responses=example_responses("events"))
    async def listen(job: str, last_event_id: Annotated[str | None, Header()] = None) -> Response:
        """Stream the events of a job until it ends, as server-sent events; Last-Event-ID resumes."""
        record = jobs.find(job)
        if streams["open"] >= service.limits.streams:
            raise RequestError(503, f"{streams['open']} clients listen to jobs already; poll GET /api/jobs/{record.id}")

        async def events() -> AsyncIterator[bytes]:
            streams["open"] += 1
            try:
                async for event in stream_events(record, last_event(last_event_id)):
                    yield event
            finally:
                streams["open"] -= 1

        return StreamingResponse(events(), media_type="text/event-stream", headers={"cache-control": "no-store"})

    @app.get("/api/jobs/{job}/result", tags=["jobs"], responses=example_responses("infer"))
    async def show_result(job: str) -> Response:
        """Return the result of a job: JSON, or the Parquet file of a join."""
        record = jobs.find(job)
        if record.state != "done":
            reason = f": {record.error}" if record.error else " yet"
            raise RequestError(409, f"the job {record.id} is {record.state}, and has no result{reason}")
        if not record.result.is_file():
            raise RequestError(
                410, f"the result of the job {record.id} was removed from its folder; start the job again"
            )
        if record.result.suffix == ".json":
            return ResultResponse(record.result, media_type=JSON)
        return ResultResponse(
            record.result, media_type="application/vnd.apache.parquet", filename=f"{record.id}{record.result.suffix}"
        )


class ResultResponse(FileResponse):
    """A file, or a range of it; errors in the range are JSON as all others."""

    @classmethod
    def _parse_range_header(cls, http_range: str, file_size: int) -> list[tuple[int, int]]:
        try:
            return super()._parse_range_header(http_range, file_size)
        except MalformedRangeHeader:
            message = (
                f"the range {http_range[:100]!r} cannot be read; write it as bytes=0-{file_size - 1}, or leave it out"
            )
            raise RequestError(400, message) from None
        except RangeNotSatisfiable:
            message = f"the range {http_range[:100]!r} is not in the result, which has {file_size:,} bytes"
            raise RequestError(416, message, Content_Range=f"bytes */{file_size}") from None


# ---- The service itself --------------------------------------------------------------------------
def _add_health(app: FastAPI, service: Service) -> None:
    @app.get("/api/health", tags=["service"], responses=example_responses("health"))
    async def show_health() -> Response:
        """Say that the service is up; needs no token."""
        return json_response({"status": "ok", "version": __version__})

    @app.get("/api/metrics", tags=["service"], responses=example_responses("metrics"))
    async def show_metrics() -> Response:
        """Return counts and times in the text format of Prometheus."""
        return Response(service.metrics_text(), media_type="text/plain; version=0.0.4; charset=utf-8")


def _add_error_handlers(app: FastAPI) -> None:
    @app.exception_handler(NeuPathError)
    async def handle_user_error(_: Request, error: NeuPathError) -> Response:
        if isinstance(error, WriteError):
            _log.error("%s", error)
        return error_response(error)

    @app.exception_handler(Exception)
    async def handle_unknown(_: Request, __: Exception) -> Response:
        return error_response(RequestError(500, "something went wrong in the service; its log has the details"))

    @app.exception_handler(RequestValidationError)
    async def handle_invalid(_: Request, error: RequestValidationError) -> Response:
        return error_response(RequestError(422, describe_problems(error.errors())))

    @app.exception_handler(HTTPException)
    async def handle_http(http: Request, error: HTTPException) -> Response:
        if isinstance(error.__cause__, NeuPathError):  # raised while the body was read
            return error_response(error.__cause__)
        message = {
            400: "the body cannot be read as JSON: it is no UTF-8, is nested too deep, or has too long a number",
            404: f"there is nothing at {http.url.path[:200]!r}; GET /api/openapi.json lists what there is",
            405: f"{http.method[:20]} is not possible at {http.url.path[:200]!r}",
        }.get(error.status_code, str(error.detail))
        return error_response(RequestError(error.status_code, message, **dict(error.headers or {})))


# ---- Page ----------------------------------------------------------------------------------------
_BUNDLE = Path(__file__).parent / "page" / "bundle"
_MEDIA_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}
_FOREVER = "public, max-age=31536000, immutable"  # for files whose names change with their content


def read_page() -> dict[str, Path]:
    """Return the files of the explorer by their path on the site; index.html is the explorer and its API reference.

    >>> "/" in read_page()
    True
    """
    files = {f"/{path.name}": path for path in _BUNDLE.iterdir() if path.suffix in _MEDIA_TYPES}
    return {"/": _BUNDLE / "index.html", "/docs": _BUNDLE / "index.html"} | files


def _page_route(path: Path) -> Callable[[Request], Any]:
    content, media_type = path.read_bytes(), _MEDIA_TYPES[path.suffix]
    compressed = gzip.compress(content, mtime=0)
    etag = f'"{sha256(content).hexdigest()[:32]}"'
    caching = _FOREVER if path.suffix in (".css", ".js") else "no-cache"
    headers = {"etag": etag, "cache-control": caching, "vary": "accept-encoding"}

    async def show(http: Request) -> Response:
        if http.headers.get("if-none-match") == etag:
            return Response(status_code=304, headers=headers)
        if "gzip" in http.headers.get("accept-encoding", ""):
            return Response(compressed, headers=headers | {"content-encoding": "gzip"}, media_type=media_type)
        return Response(content, headers=headers, media_type=media_type)

    return show

"""App: every endpoint of the service, as FastAPI documents it, behind the guard."""

from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, TypeVar

from fastapi import FastAPI, Header, Request
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from neupath import __version__
from neupath.errors import NeuPathError
from neupath.service import schemas
from neupath.service.handlers import (
    JSON,
    SearchResult,
    answer_at_once,
    describe_measures,
    encode_hits,
    explain_one,
    explain_parts,
    infer_at_once,
    read_prefix,
    read_query_string,
    search_many,
    search_one,
    suggest_metapaths,
    to_json,
    update_graph,
)
from neupath.service.job_routes import add_job_routes, add_result_routes
from neupath.service.middleware import SEARCH, Guard
from neupath.service.responses import RequestError, answers, error_response, to_reply
from neupath.service.schemas import RequestModel
from neupath.service.service import Service

# ---- Page ----------------------------------------------------------------------------------------
FOLDER = Path(__file__).parent / "page"
_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".ico": "image/x-icon",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


@dataclass(frozen=True)
class File:
    """One file of the page."""

    content: bytes
    media_type: str
    etag: str


def read_page(folder: Path = FOLDER) -> dict[str, File]:
    """Read the files of the page by their path on the site; index.html is the site itself.

    >>> "/" in read_page()
    True
    """
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.suffix in _TYPES:
            content = path.read_bytes()
            file = File(content, _TYPES[path.suffix], f'"{sha256(content).hexdigest()[:32]}"')
            found[f"/{path.relative_to(folder).as_posix()}"] = file
    if "/index.html" in found:
        found["/"] = found["/index.html"]
    return found


# ---- Reading -------------------------------------------------------------------------------------
R = TypeVar("R", bound=RequestModel)
_MOST_SHOWN = 100
_PLACES = ("query", "body")
_CHOICES = ("str", "constrained-str", "int")
"""What pydantic adds to a place where a value may be of several kinds."""


def read(kind: type[R], query_string: bytes) -> R:
    """Read a query string as a request of some kind."""
    try:
        return kind.model_validate(read_query_string(query_string))
    except ValidationError as error:
        raise RequestError(422, sentence_of(error.errors(include_url=False, include_context=False))) from error


def sentence_of(problems: Iterable[Mapping[str, Any]]) -> str:
    """Say in a sentence what is wrong with a request, the first thing first.

    >>> sentence_of([{"loc": ("query", "k"), "msg": "Input should be a valid integer", "input": "x"}])
    "k is 'x': input should be a valid integer"
    """
    first, *others = problems
    told = _tell(first)
    return f"{told} (and {len(others)} more)" if others else told


def _tell(problem: Mapping[str, Any]) -> str:
    kind, place = problem.get("type"), problem["loc"]
    if kind == "json_invalid":
        return f"the body is no JSON: {problem['ctx']['error'].lower()} at character {place[-1]}"
    if isinstance(problem.get("input"), bytes):
        return "the body is not marked as JSON; send the header 'Content-Type: application/json' with it"
    parts = [str(part) for part in place if part not in _CHOICES and (part not in _PLACES or len(place) == 1)]
    where = ".".join(parts)[:_MOST_SHOWN] or "the body"
    if kind == "missing":
        return f"{where} is missing"
    if kind in ("extra_forbidden", "unexpected_keyword_argument"):
        return f"{where} is not a word that this request knows"
    shown = ascii(problem.get("input"))
    shown = shown if len(shown) <= _MOST_SHOWN else f"{shown[:_MOST_SHOWN]}…"
    said = str(problem["msg"])
    return f"{where} is {shown}: {said[:1].lower()}{said[1:]}"


def parameters_of(kind: type[RequestModel]) -> list[dict[str, Any]]:
    """Return the words of a query string as OpenAPI describes parameters."""
    schema = kind.model_json_schema()
    required = schema.get("required", ())
    return [_parameter(name, content, name in required) for name, content in schema["properties"].items()]


def _parameter(name: str, content: dict[str, Any], required: bool) -> dict[str, Any]:
    described = {key: value for key, value in content.items() if key not in ("title", "description", "anyOf")}
    given = [choice for choice in content.get("anyOf", ()) if choice.get("type") != "null"]
    if given and described.get("default", 0) is None:
        del described["default"]
    schema = described | (given[0] if len(given) == 1 else {})
    found = {"name": name, "in": "query", "required": required, "schema": schema}
    return found | ({"description": content["description"]} if "description" in content else {})


# ---- App -----------------------------------------------------------------------------------------
_ABOUT = """Similarity search in typed graphs: exact, explained, learned.

Every error is `{"error": "one sentence"}`. The JSON of search, explain and infer is what the command line prints with
`--json`."""


def make_app(service: Service, token: str | None = None, hosts: frozenset[str] | None = None) -> Guard:
    """Return the service as an ASGI application; `hosts` are the names it answers to, if not any."""

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
    _add_lookups(app, service)
    _add_updates(app, service)
    _add_searches(app, service)
    _add_explanations(app, service)
    add_job_routes(app, service)
    add_result_routes(app, service)
    _add_health(app, service)
    for path, file in read_page().items():
        app.add_route(path, _page_route(file), include_in_schema=False)
    _add_refusals(app)
    at_once = {SEARCH.format(graph=name): _search_at_once(service, name) for name in service.catalogue.graphs}
    return Guard(app, service.limits, service.metrics, at_once, token, hosts)


def _add_graphs(app: FastAPI, service: Service) -> None:
    catalogue, workers = service.catalogue, service.workers

    @app.get("/api/graphs", tags=["graphs"], responses=answers("graphs"))
    async def list_graphs() -> Response:
        """List the graphs that are served."""
        return to_reply([served.to_dict() for served in catalogue.graphs.values()])

    @app.get("/api/graphs/{graph}", tags=["graphs"], responses=answers("graph"))
    async def describe_graph(graph: str) -> Response:
        """Describe a graph, as `neupath info --json` does."""
        served = catalogue.graph(graph)
        found = (await workers.run(lambda: served.description)).to_dict()
        return to_reply(found if served.version is None else found | {"version": served.version})

    @app.get("/api/graphs/{graph}/schema", tags=["graphs"], responses=answers("schema"))
    async def show_schema(graph: str) -> Response:
        """Return the node types, the relations, and every step a meta-path can take."""
        served = catalogue.graph(graph)
        return to_reply(served.schema() if served.version is None else await workers.run(served.schema))

    @app.get("/api/measures", tags=["graphs"], responses=answers("measures"))
    async def list_measures() -> Response:
        """List the measures, and on which meta-paths each is defined."""
        return to_reply(describe_measures())

    @app.get("/api/models", tags=["graphs"], responses=answers("models"))
    async def list_models() -> Response:
        """List the saved models that are served, those that jobs made as well."""
        return to_reply(catalogue.describe_models())


def _add_lookups(app: FastAPI, service: Service) -> None:
    catalogue, workers = service.catalogue, service.workers
    nodes = {"parameters": parameters_of(schemas.NodesQuery)}

    @app.get("/api/graphs/{graph}/nodes", tags=["graphs"], openapi_extra=nodes, responses=answers("nodes"))
    async def find_nodes(graph: str, request: Request) -> Response:
        """Look up nodes by what was typed: those that begin with it, then that hold it, then that are spelled alike."""
        asked = read(schemas.NodesQuery, request.scope["query_string"])
        served = catalogue.graph(graph)
        return to_reply(await workers.run(served.find_nodes, asked, service.limits))

    metapaths = {"parameters": parameters_of(schemas.MetapathsQuery)}

    @app.get("/api/graphs/{graph}/metapaths", tags=["graphs"], openapi_extra=metapaths, responses=answers("metapaths"))
    async def read_metapath(graph: str, request: Request) -> Response:
        """Say what a meta-path typed so far means and what can follow, and suggest some from a type."""
        asked = read(schemas.MetapathsQuery, request.scope["query_string"])
        service.limits.check_paths(asked.limit)
        hin = catalogue.graph(graph).hin

        def find() -> dict[str, object]:
            told = None if asked.prefix is None else read_prefix(hin, asked.prefix)
            if asked.source_type is None:
                return {"prefix": told, "suggestions": []}
            listed = suggest_metapaths(hin.schema, asked.source_type, asked.target_type, asked.max_length, asked.limit)
            return {"prefix": told, "suggestions": listed}

        return to_reply(await workers.run(find))


def _add_updates(app: FastAPI, service: Service) -> None:
    @app.post("/api/graphs/{graph}/updates", tags=["graphs"], responses=answers("updates"))
    async def update(graph: str, asked: schemas.UpdateRequest) -> Response:
        """Add and remove nodes and edges of a store, all or nothing; what is answered is on disk, as a version."""
        return to_reply(await service.writers.run(update_graph, service.catalogue, graph, asked))


def _search_at_once(service: Service, graph: str) -> Callable[[bytes], str | None]:
    """Return what answers light searches of a graph at once."""
    return lambda query_string: answer_at_once(service.catalogue, graph, read(schemas.SearchOne, query_string))


def _add_searches(app: FastAPI, service: Service) -> None:
    catalogue, workers = service.catalogue, service.workers
    searched = {"parameters": parameters_of(schemas.SearchOne)}

    @app.get(SEARCH, tags=["search"], openapi_extra=searched, responses=answers("search"))
    async def search(graph: str, request: Request) -> Response:
        """Find the nodes most similar to one; the JSON is that of `neupath search --json`, to the byte."""
        asked = read(schemas.SearchOne, request.scope["query_string"])
        accept = request.headers.get("accept", JSON)
        text = None if _is_bulk(accept) else answer_at_once(catalogue, graph, asked)
        if text is not None:
            return Response(text, media_type=JSON)
        found = await workers.run(search_one, catalogue, graph, asked)
        if _is_bulk(accept):
            return _encoded(found, accept)
        return Response(to_json(found.hits[0], found.version), media_type=JSON)

    @app.post(SEARCH, tags=["search"], responses=answers("searches"))
    async def search_for_many(
        graph: str, asked: schemas.SearchMany, accept: Annotated[str, Header()] = JSON
    ) -> Response:
        """Find the nodes most similar to each of many: a list, or by Accept an Arrow stream or CSV."""
        found = await workers.run(search_many, catalogue, graph, asked)
        return await workers.run(_encoded, found, accept)


def _encoded(found: SearchResult, accept: str) -> Response:
    """Answer in the format that a client accepts; a table has no room for the version, so that a header tells it."""
    body, kind = encode_hits(found, accept)
    headers = {} if found.version is None or kind == JSON else {"neupath-version": str(found.version)}
    return Response(body, media_type=kind, headers=headers)


def _add_explanations(app: FastAPI, service: Service) -> None:
    catalogue, workers = service.catalogue, service.workers
    explained = {"parameters": parameters_of(schemas.ExplainOne)}

    @app.get("/api/graphs/{graph}/explain", tags=["search"], openapi_extra=explained, responses=answers("explain"))
    async def explain(graph: str, request: Request) -> Response:
        """Show the paths behind one score, heaviest first, each with its exact share."""
        asked = read(schemas.ExplainOne, request.scope["query_string"])
        return to_reply(await workers.run(explain_one, catalogue, graph, asked))

    @app.post("/api/graphs/{graph}/explain", tags=["search"], responses=answers("explain_parts"))
    async def explain_combined(graph: str, asked: schemas.ExplainCombination) -> Response:
        """Show the meta-paths and paths behind one score of a combination."""
        return to_reply(await workers.run(explain_parts, catalogue, graph, asked))

    @app.post("/api/graphs/{graph}/infer", tags=["search"], responses=answers("infer"))
    async def infer(graph: str, asked: schemas.Infer) -> Response:
        """Find the meta-paths, weights and measure that labelled pairs mean; many pairs are a job."""
        served = catalogue.graph(graph)
        return to_reply(await workers.run(infer_at_once, served.hin, asked, service.limits))


def _is_bulk(accept: str) -> bool:
    return "arrow" in accept or "text/csv" in accept


def _add_health(app: FastAPI, service: Service) -> None:
    @app.get("/api/health", tags=["service"], responses=answers("health"))
    async def show_health() -> Response:
        """Say that the service is up; needs no token."""
        return to_reply({"status": "ok", "version": __version__})

    @app.get("/api/metrics", tags=["service"], responses=answers("metrics"))
    async def show_metrics() -> Response:
        """Return counts and times in the text format of Prometheus."""
        return Response(service.metrics_text(), media_type="text/plain; version=0.0.4; charset=utf-8")


def _page_route(file: File) -> Callable[[Request], Any]:
    async def show(request: Request) -> Response:
        headers = {"etag": file.etag, "cache-control": "no-cache"}
        if request.headers.get("if-none-match") == file.etag:
            return Response(status_code=304, headers=headers)
        return Response(file.content, headers=headers, media_type=file.media_type)

    return show


def _add_refusals(app: FastAPI) -> None:
    """Answer every error with a sentence."""

    @app.exception_handler(NeuPathError)
    async def refuse_ours(_: Request, error: NeuPathError) -> Response:
        return error_response(error)

    @app.exception_handler(Exception)
    async def refuse_unknown(_: Request, __: Exception) -> Response:
        return error_response(RequestError(500, "something went wrong in the service; its log has the details"))

    @app.exception_handler(RequestValidationError)
    async def refuse_invalid(_: Request, error: RequestValidationError) -> Response:
        return error_response(RequestError(422, sentence_of(error.errors())))

    @app.exception_handler(HTTPException)
    async def refuse_http(request: Request, error: HTTPException) -> Response:
        if isinstance(error.__cause__, NeuPathError):  # raised while the body was read
            return error_response(error.__cause__)
        said = {
            400: "the body cannot be read as JSON: it is no UTF-8, is nested too deep, or has too long a number",
            404: f"there is nothing at {request.url.path[:200]!r}; GET /api/openapi.json lists what there is",
            405: f"{request.method[:20]} is not possible at {request.url.path[:200]!r}",
        }.get(error.status_code, str(error.detail))
        return error_response(RequestError(error.status_code, said, **dict(error.headers or {})))

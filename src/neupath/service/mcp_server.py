"""The MCP server: the tools by which an assistant looks up nodes, searches, and asks why.

Each tool calls the handler of the HTTP API, within the same limits, and answers with what fits into a context window:
the few best hits, each with its evidence, and ids that the other tools take.
"""

import json
from collections.abc import Awaitable, Callable
from dataclasses import MISSING, fields
from functools import partial, wraps
from inspect import Parameter, Signature
from typing import Annotated, Any, ParamSpec, TypeVar

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.transport_security import TransportSecuritySettings
from mcp_types import CallToolResult, InputRequiredResult, ToolAnnotations
from pydantic import BaseModel, Field, ValidationError
from starlette.types import Receive, Scope, Send

from neupath import __version__
from neupath.engine.prepared import PreparedIndex
from neupath.errors import NeuPathError, QueryError, listed
from neupath.evidence.explanation import explain
from neupath.graph import browsing
from neupath.graph.hin import HIN
from neupath.graph.metapath import Relation, arrow
from neupath.graph.nodes import Nodes
from neupath.measures import PathMeasure
from neupath.service import handlers, schemas
from neupath.service.app import Service
from neupath.service.graph_registry import FittedScorer
from neupath.service.middleware import GuardMiddleware

P = ParamSpec("P")
T = TypeVar("T")
Content = dict[str, Any]

PATH = "/api/mcp"
_INSTRUCTIONS = """Similarity search in typed graphs (papers, authors and venues; genes, diseases and drugs).

Start with `describe` to see node types and meta-paths, and `find` to turn a name into an id. A meta-path such as
author-paper-author says what similar means: authors who share papers. `search` ranks by it, `explain` says why two
nodes are similar, `relate` lists every meta-path that joins two nodes, `infer` finds the meta-paths behind examples.
Scores are exact. Cite the evidence that comes with each hit."""
_FEW = 3  # groups of evidence per hit
_MANY = 40  # types, relations and meta-paths of a description
_READ_ONLY = ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)

Graph = Annotated[str | None, Field(description="The graph's name; needed only where several are served.")]
_NODE = "The id or the name of a node, as `find` returns it."
_SENTENCES = {
    "query": _NODE, "target": _NODE, "measure": "pathsim, or another measure along a meta-path.",
    "metapath": "Such as author-paper-author, or its initials APA; `describe` lists some. An index needs none.",
}  # fmt: skip
"""What an assistant needs to know beyond the sentences of the questions."""


class Example(BaseModel):
    """A pair that a person calls similar or not."""

    query: str
    target: str
    score: float | None = Field(None, description="How similar, on any scale; leave it out of all pairs for examples.")


class _ToolServer(MCPServer[Any]):
    """An MCP server that describes arguments of the wrong kind in one sentence, as the HTTP API does."""

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        try:
            return await super().call_tool(name, arguments, context)
        except ToolError as error:
            if isinstance(error.__cause__, ValidationError):
                sentence = schemas.describe_problems(error.__cause__.errors())
                raise ToolError(f"Error executing tool {name}: {sentence}") from error
            raise


def make_mcp(service: Service) -> MCPServer[Any]:
    """Return the MCP server of a service: its tools, and the schema of each graph as a resource."""
    server = _ToolServer(
        "neupath", version=__version__, instructions=_INSTRUCTIONS, log_level="WARNING", warn_on_duplicate_tools=True
    )
    for tools in (_lookups, _searches, _inference):
        for function in tools(service):
            server.add_tool(_as_tool(function), annotations=_READ_ONLY, structured_output=False)
    for name in service.registry.graphs:
        server.resource(
            f"neupath://graphs/{name}", name=name, mime_type="application/json", description=f"The schema of {name}."
        )(_as_tool(partial(_schema, service, name)))
    return server


def make_mcp_app(service: Service, token: str | None, hosts: frozenset[str] | None) -> GuardMiddleware:
    """Return the MCP server as an ASGI application that speaks streamable HTTP at `PATH`.

    The service's middleware checks the host, the origin, the token, sizes and times, so the transport checks none. It
    takes POST only: without sessions, the stream that GET opens would carry nothing and keep one of the places.
    """
    streamable = make_mcp(service).streamable_http_app(
        streamable_http_path=PATH, json_response=True, stateless_http=True,
        max_request_body_size=service.limits.body,
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )  # fmt: skip

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] != PATH or scope["method"] == "POST":
            await streamable(scope, receive, send)
            return
        message = f"{scope['method'][:20]} is not possible at {PATH!r}, which has no sessions and no stream; use POST"
        await schemas.error_response(schemas.RequestError(405, message, Allow="POST"))(scope, receive, send)

    return GuardMiddleware(app, service.limits, service.metrics, token, hosts)


def _as_tool(function: Callable[P, Awaitable[Content]]) -> Callable[P, Awaitable[str]]:
    """Return a tool that answers with one line of JSON without nulls, or with the one sentence of an error."""

    @wraps(function)
    async def call(*arguments: P.args, **options: P.kwargs) -> str:
        try:
            return json.dumps(_without_nulls(await function(*arguments, **options)), ensure_ascii=False)
        except NeuPathError as error:
            raise ToolError(str(error)) from error

    return call


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list | tuple) else value


Asks = Callable[[T, str | None], Awaitable[Content]]


def _takes(kind: type[T], names: str, **limits: int) -> Callable[[Asks[T]], Callable[..., Awaitable[Content]]]:
    """Make a tool of a function of a question and a graph: it takes some fields of the question, and the graph.

    `limits` are the most that a field may be, and the value of a field that is not among `names`.
    """
    known = {each.name: each for each in fields(kind)}  # type: ignore[arg-type]
    parameters = [_parameter("graph", Graph, None)]
    for name in reversed(names.split()):
        each = known[name]
        default = Parameter.empty if each.default is MISSING else each.default
        hint: Any = str | None if name == "metapath" else each.type
        annotation = Annotated[hint, Field(le=limits.get(name), description=_SENTENCES.get(name))]
        parameters.insert(0, _parameter(name, annotation, [] if each.default_factory is list else default))
    fixed = {name: value for name, value in limits.items() if name not in names.split()}

    def make(function: Asks[T]) -> Callable[..., Awaitable[Content]]:
        @wraps(function)
        async def tool(graph: str | None = None, **values: Any) -> Content:
            return await function(schemas.read(kind, values | fixed), graph)

        tool.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
        return tool

    return make


def _parameter(name: str, annotation: Any, default: Any) -> Parameter:
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


# ---- Look-ups ------------------------------------------------------------------------------------
async def _schema(service: Service, graph: str) -> Content:
    handle = service.registry.graph(graph)
    return _describe((await service.lookups.run(lambda: handle.summary)).to_dict(), graph)


def _lookups(service: Service) -> list[Callable[..., Awaitable[Content]]]:
    registry = service.registry

    async def describe(graph: Graph = None) -> Content:
        """Describe a graph: its node types, relations, and the meta-paths to search with."""
        return await _schema(service, _only(service, graph))

    async def find(
        text: Annotated[str, Field(description="A name or an id, or a part of one; misspelled is fine.")],
        node_type: Annotated[str | None, Field(description="Only nodes of this type.")] = None,
        limit: Annotated[int, Field(ge=1, le=50)] = 8,
        graph: Graph = None,
    ) -> Content:
        """Find nodes by name or id over all types. Use the id, or the name if it is unique, in the other tools."""
        request = schemas.NodesRequest.model_validate({"node_type": node_type, "text": text, "limit": limit})
        handle = registry.graph(_only(service, graph))
        page = await service.lookups.run(handle.find_nodes, request, service.limits)
        return {"total": page["total"], "nodes": page["nodes"]}

    async def neighbours(
        node: Annotated[str, Field(description=_NODE)],
        node_type: Annotated[str | None, Field(description="The node's type, where several have its id.")] = None,
        limit: Annotated[int, Field(ge=1, le=50, description="How many per relation.")] = 8,
        graph: Graph = None,
    ) -> Content:
        """List a node's attributes and its neighbours by relation, the heaviest edges first."""
        hin = registry.graph(_only(service, graph)).hin
        return await service.lookups.run(describe_node, hin, node, node_type, limit)

    return [describe, find, neighbours]


def _only(service: Service, graph: str | None) -> str:
    """Return the name of the graph that is meant."""
    names = [*service.registry.graphs]
    if graph is None and len(names) > 1:
        raise QueryError(f"{len(names)} graphs are served; set graph to one of {listed(names)}")
    return names[0] if graph is None else graph


def _describe(summary: Content, graph: str) -> Content:
    """Shorten a summary: types with counts and attributes, relations, and the first meta-paths of each type."""
    types, relations = summary["node_types"], summary["relations"]
    return {
        "graph": graph,
        "node_types": {
            each["node_type"]: {"nodes": each["nodes"], "attributes": each["attributes"]} for each in types[:_MANY]
        },
        "relations": [
            f"{Relation(each['source'], each['name'], each['target'], each['directed'])} ({each['edges']:,} edges)"
            for each in relations[:_MANY]
        ],
        "metapaths": {node_type: paths[:4] for node_type, paths in [*summary["metapaths"].items()][:_MANY]},
        "left_out": {"node_types": max(0, len(types) - _MANY), "relations": max(0, len(relations) - _MANY)},
        "notes": summary["notes"][:3],
    }


def describe_node(hin: HIN, node: str, node_type: str | None, limit: int) -> Content:
    """Describe a node: its attributes, and by relation how many neighbours it has and the heaviest of them.

    >>> from neupath import load
    >>> describe_node(load("toy"), "Bob", None, 1)["neighbours"][0]["relation"]
    '-writes-> paper'
    """
    described = browsing.describe_node(hin, node, node_type, limit)
    chosen, row = described.node_type, described.row
    relations = [
        {
            "relation": f"{arrow((near.link,))} {near.link.target}",
            "count": near.degree,
            "nodes": [
                _node(hin.nodes[near.link.target], other) | _weight(weight)
                for other, weight in zip(near.rows, near.weights, strict=True)
            ],
        }
        for near in described.neighbours
    ]
    facts: Any = browsing.describe_row(hin, chosen, row)["attributes"]
    return {
        "node_type": chosen,
        **_node(hin.nodes[chosen], row),
        "attributes": {name: _start_of_text(value) for name, value in facts.items() if value is not None},
        "neighbours": relations,
    }


def _start_of_text(value: object) -> object:
    return value[:200] if isinstance(value, str) else value


def _node(nodes: Nodes, row: int) -> Content:
    name = nodes.name(row)
    return {"id": nodes.id(row)} | ({} if name is None else {"name": name})


def _weight(weight: float) -> Content:
    return {} if weight == 1.0 else {"weight": weight}


# ---- Search and explain --------------------------------------------------------------------------
def _searches(service: Service) -> list[Callable[..., Awaitable[Content]]]:
    registry = service.registry

    @_takes(schemas.SearchOne, "query metapath k measure where", k=50)
    async def search(request: schemas.SearchOne, graph: str | None) -> Content:
        """Find the nodes most similar to one along a meta-path, each with the nodes that make it similar."""
        return await service.workers.run(search_with_evidence, service, _only(service, graph), request)

    @_takes(schemas.ExplainOne, "query target metapath measure by", limit=8)
    async def explain(request: schemas.ExplainOne, graph: str | None) -> Content:
        """Say why two nodes are similar, or not: the nodes their paths run through, each with its share."""
        explanation = await service.workers.run(handlers.explain_one, registry, _only(service, graph), request)
        return _shorten(explanation)

    @_takes(schemas.RelateRequest, "query target query_type target_type max_steps", max_steps=6, limit=8)
    async def relate(request: schemas.RelateRequest, graph: str | None) -> Content:
        """List every meta-path that joins two nodes, also of different types, the most telling first."""
        work = partial(handlers.relate_nodes, registry, _only(service, graph), request)
        return await service.workers.run_or_advise("lower max_steps", work)

    return [search, explain, relate]


def search_with_evidence(service: Service, graph: str, request: schemas.SearchOne) -> Content:
    """Search, and explain each hit in a few words."""
    hits = handlers.search(service.registry, graph, request).hits[0]
    fitted = handlers.fitted_scorer(service.registry, graph, request, [request.query])
    return hits.to_dict() | {
        "hits": [vars(hit) | {"evidence": _evidence(fitted, hits.query, hit.id)} for hit in hits],
    }


def _evidence(fitted: FittedScorer, query: Any, target: Any) -> str:
    """Name the nodes that carry most of a score, with their shares."""
    if isinstance(fitted.scorer, PreparedIndex):
        return fitted.scorer.explain(query, target, _FEW).summary
    scorer = getattr(fitted.scorer, "measure", fitted.scorer)
    if not isinstance(scorer, PathMeasure):
        return ""
    explanation = explain(fitted.handle.hin, scorer.metapath_, query, target, measure=scorer, limit=_FEW, paths=0)
    return explanation.summary


def _shorten(explanation: Content) -> Content:
    """Keep the sentence, the formula and the groups; one path of each group as text."""
    kept = {
        key: explanation[key]
        for key in ("query", "target", "metapath", "measure", "score", "rank", "targets", "formula", "summary")
        if key in explanation
    }
    groups = [
        {key: group[key] for key in ("node_type", "id", "name", "paths", "share") if group.get(key) is not None}
        | {"path": [_path_text(path) for path in group.get("instances", ())][:1]}
        for group in explanation.get("groups", ())
    ]
    return kept | {"groups": groups, "more_groups": explanation.get("more_groups")}


def _path_text(path: Content) -> str:
    words = [str(node["name"] or node["id"]) for node in path["nodes"]]
    return words[0] + "".join(f" {link} {word}" for link, word in zip(path["links"], words[1:], strict=True))


# ---- Infer ---------------------------------------------------------------------------------------
def _inference(service: Service) -> list[Callable[..., Awaitable[Content]]]:
    async def infer(
        pairs: Annotated[list[Example], Field(min_length=1, max_length=200)],
        node_type: Annotated[
            str | None, Field(description="The type of the nodes, where their ids fit several.")
        ] = None,
        graph: Graph = None,
    ) -> Content:
        """Find the meta-paths, and their weights, that explain why a person calls pairs similar."""
        request = schemas.read(
            schemas.InferRequest, {"pairs": [pair.model_dump() for pair in pairs], "node_type": node_type, "suggest": 0}
        )
        work = partial(handlers.infer_without_job, service.registry, _only(service, graph), request)
        report = await service.workers.run(work)
        return {key: report[key] for key in ("verdict", "metapaths", "measure", "rmse", "r2", "auc")}

    return [infer]

"""Schemas: what requests may hold, how they are read, the errors and JSON that answer them, and OpenAPI examples."""

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, field, fields
from functools import cache
from inspect import get_annotations
from pathlib import Path
from types import NoneType, UnionType, new_class
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin
from urllib.parse import unquote_plus

from pydantic import BaseModel, ConfigDict, Field, StrictInt, StrictStr, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass
from pydantic.json_schema import SkipJsonSchema
from starlette.responses import Response

from neupath import errors, requests
from neupath.engine.hits import QuerySet
from neupath.errors import QueryError, spell_parameters
from neupath.learn.registry import learning_from
from neupath.measures import Part
from neupath.requests import TIMES, Option, options_of
from neupath.store import Edge, Node, Update

# ---- Errors --------------------------------------------------------------------------------------
_STATUSES: tuple[tuple[type[errors.NeuPathError], int], ...] = (
    (errors.NodeError, 404),
    (errors.SchemaError, 404),
    (errors.MissingExtraError, 501),
    (errors.WriteError, 507),
    (errors.NeuPathError, 422),
)
_LONGEST_MESSAGE = 6000  # letters of a message, which may quote what the client sent


class RequestError(errors.NeuPathError):
    """An error with an HTTP status of its own; headers are given as `Retry_After="2"`."""

    def __init__(self, status: int, message: str, **headers: str) -> None:
        super().__init__(message)
        self.status = status
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


def status_of(error: errors.NeuPathError) -> int:
    """Return the HTTP status of an error."""
    if isinstance(error, RequestError):
        return error.status
    return next(status for kind, status in _STATUSES if isinstance(error, kind))


def error_response(error: errors.NeuPathError) -> Response:
    """Return an error as a response."""
    headers = error.headers if isinstance(error, RequestError) else {}
    message = str(error)
    if isinstance(error, errors.WriteError):
        message = f"this cannot be written: {reason_without_path(error)}; nothing was changed"
    return Response(error_body(message), status_of(error), headers, "application/json")


def reason_without_path(error: errors.WriteError) -> str:
    """Say why a file could not be written, without its path, which clients need not know."""
    if error.__cause__ is None:  # nothing was tried
        return "the service's files were moved, or it may not write to them"
    number = getattr(error.__cause__, "errno", None)
    return "the service's disk took no more" if number is None else os.strerror(number).lower()


def error_body(message: str) -> bytes:
    """Return a message as the JSON of an error; cut a long one, and escape text that is not valid Unicode."""
    shown = message if len(message) <= _LONGEST_MESSAGE else f"{message[: _LONGEST_MESSAGE - 1]}…"
    return json.dumps({"error": shown}).encode("ascii")


def json_response(content: object, status: int = 200) -> Response:
    """Return JSON as a response."""
    return Response(json.dumps(content, ensure_ascii=False), status, media_type="application/json")


# ---- Examples ------------------------------------------------------------------------------------
_ERROR = {
    "type": "object",
    "properties": {"error": {"type": "string", "description": "One sentence: what was given, what is allowed."}},
    "required": ["error"],
}
_TEXT = {"type": "string"}
_MEDIA_TYPES = {"metrics": "text/plain", "events": "text/event-stream"}


@cache
def read_examples() -> dict[str, Any]:
    """Read the examples by name: a request, such as "GET /api/graphs", its body if it has one, and the answer."""
    return dict(json.loads(Path(__file__).with_name("examples.json").read_text(encoding="utf-8")))


def example_responses(name: str, status: int = 200) -> dict[int | str, dict[str, Any]]:
    """Describe the answers of an endpoint for OpenAPI, with an example."""
    media_type = _MEDIA_TYPES.get(name, "application/json")
    error = {"description": "An error", "content": {"application/json": {"schema": _ERROR}}}
    answer = {"example": read_examples()[name]["answer"], "schema": _TEXT if name in _MEDIA_TYPES else {}}
    content: dict[str, Any] = {media_type: answer}
    if name in ("search", "searches"):
        content |= {"application/vnd.apache.arrow.stream": {}, "application/vnd.apache.parquet": {}}
        content |= {"text/csv": {"schema": _TEXT}}
    return {status: {"description": "The answer", "content": content}, 422: error, "default": error}


# ---- Schemas -------------------------------------------------------------------------------------
_MOST_LETTERS = 20_000
Word = Annotated[StrictStr, Field(max_length=_MOST_LETTERS)]
Id = Annotated[Word | StrictInt, Field(description="An id, or a name where only one node bears it.")]
EndId = Annotated[Word | StrictInt, Field(description="An id, not a name.")]
Text = Annotated[str, Field(max_length=_MOST_LETTERS)]
Number = Annotated[float, Field(strict=True)]  # in a body, where true and "1" are no numbers
Seed = Annotated[int, Field(ge=0, lt=2**63)]


def _with_example(name: str) -> ConfigDict:
    """Show the body of an example in `examples.json` with a schema."""
    return ConfigDict(json_schema_extra={"example": read_examples()[name]["body"]})


class RequestModel(BaseModel):
    """The base of requests that are no questions; it refuses unknown fields."""

    model_config = ConfigDict(extra="forbid", protected_namespaces=(), allow_inf_nan=False)


_CONFIG = ConfigDict(extra="forbid", allow_inf_nan=False)


# ---- Forms: the questions of `requests.py` over HTTP -------------------------------------------------
T = TypeVar("T")


_LEFT_OUT = Annotated[SkipJsonSchema[Any], Field(exclude=True)]


def form(
    place: Literal["query", "body"], example: str | None = None, without: Sequence[str] = ()
) -> Callable[[type[T]], type[T]]:
    """Make a class that extends a question check what arrives, in a query string or in a body.

    It has the question's fields with their limits and sentences, those of its own, and none in `without`.
    """

    def make(kind: type[T]) -> type[T]:
        own = get_annotations(kind)
        offered = dict(options_of(kind, "http"))
        hints: dict[str, Any] = {}
        defaults: dict[str, Any] = {}
        for each in fields(kind):  # type: ignore[arg-type]
            about = each.metadata.get("option")
            if about is None or each.name in own:
                continue
            if each not in offered or each.name in without:
                default = None if each.default is MISSING else each.default
                hints[each.name], defaults[each.name] = _LEFT_OUT, field(default=default, init=False)
                continue
            sentence = Field(description=_sentence(about), **about.limits)
            hints[each.name] = Annotated[_http_type(each.type, place), sentence]
            is_list = each.default == () or each.default_factory is list
            made_by = {"default_factory": list} if is_list else {"default": each.default}
            defaults[each.name] = field(**made_by, metadata=each.metadata)
        names = {"__annotations__": hints, "__module__": kind.__module__, "__doc__": kind.__doc__, **defaults}
        made = new_class(kind.__name__, (kind,), {"is_form": True}, lambda own: own.update(names))
        config = _CONFIG | (_with_example(example) if example else {})
        return dataclass(made, config=config, kw_only=True)  # type: ignore[return-value]

    return make


def _sentence(about: Option) -> str:
    if about.http is not None:
        return about.http
    text = spell_parameters(about.help, str)
    return text if about.default_text is None else f"{text} By default {about.default_text}."


def _http_type(hint: Any, place: str) -> Any:
    """Return the type of a field as JSON or a query string has it; of meta-paths that add up, it is one."""
    parts = [part for part in get_args(hint) if part is not NoneType] if isinstance(hint, UnionType) else [hint]
    if str in parts:
        base: Any = Id if int in parts and place == "body" else Text
    elif get_origin(parts[0]) is Sequence:
        (item,) = get_args(parts[0])
        base = list[_http_type(item, place)]  # type: ignore[misc]
    else:
        base = Number if parts == [float] and place == "body" else parts[0]
    return base | None if NoneType in get_args(hint) else base


class CombinationPart(RequestModel):
    """One part of a combination: a measure along a meta-path, and its weight."""

    measure: Text
    metapath: Text
    weight: Number = Field(ge=-1e12, le=1e12)

    def to_part(self) -> Part:
        return Part(self.measure, self.metapath, self.weight)


_Combination = Annotated[
    list[CombinationPart] | None, Field(description="Measures to add up, instead of one meta-path.")
]


@form("query")
class SearchOne(requests.Search):
    """One query, in the query string."""

    query: Text


@form("body", "searches", without=("query",))
class SearchMany(requests.Search):
    """Many queries, in the body."""

    queries: Annotated[list[Id], Field(min_length=1)]
    combination: _Combination = None
    together: Annotated[bool, Field(description="Search for all queries together, as one set.")] = False
    weights: Annotated[
        list[Number] | None, Field(description="Of the set: one for each query, below 0 to count against.")
    ] = None

    @property
    def all_queries(self) -> list[str | int]:
        return self.queries

    @property
    def query_set(self) -> QuerySet | None:
        """The set to search for; None where each query is searched for alone."""
        return read_query_set(self.queries, self.weights) if self.together or self.weights is not None else None


def read_query_set(queries: Sequence[str | int], weights: Sequence[float] | None) -> QuerySet:
    """Return the set of some nodes; without weights, that of their mean."""
    if weights is None:
        return QuerySet.read(queries)
    if len(weights) != len(queries):
        raise QueryError(f"weights has {len(weights)} numbers for {len(queries)} queries; give one for each")
    if len(set(queries)) < len(queries):
        QuerySet.read(queries)  # says which
    return QuerySet.read(dict(zip(queries, weights, strict=True)))


@form("query")
class ExplainOne(requests.Explain):
    """One pair, in the query string."""


@form("body", "explain_parts", without=("model", "node_type", "k", "weight", *TIMES))
class ExplainCombination(requests.Explain):
    """One pair under a combination, or a set of nodes and a target along a meta-path, in the body."""

    query: Annotated[Id | None, Field(description="One node, with combination.")] = None  # type: ignore[assignment]
    combination: Annotated[list[CombinationPart] | None, Field(description="Measures that are added up.")] = None
    queries: Annotated[list[Id] | None, Field(min_length=1, description="The nodes of a set, instead of query.")] = None
    weights: Annotated[list[Number] | None, Field(description="Of the set: one for each node.")] = None


@form("query")
class RelateRequest(requests.Relate):
    """Two nodes, in the query string, and which meta-paths to look at."""


class LabelledPair(RequestModel):
    """A labelled pair; without a score or a rank it is an example of a similar one."""

    query: Id
    target: Id
    score: Number | Text | None = Field(None, description="A number on any scale, or a word such as yes or no.")
    rank: int | None = Field(None, ge=1, le=2**31, description="Instead of a score: 1 for the most similar target.")
    weight: Number | None = Field(None, gt=0, description="How much the label counts; 1 unless given.")
    rater: Text | None = Field(None, description="Who gave the label, where a pair has several.")
    query_type: Text | None = Field(None, description="The type of the query, where several types have its id.")
    target_type: Text | None = Field(None, description="The type of the target; to infer from, it may be another.")


def label_columns(pairs: Sequence[LabelledPair]) -> dict[str, list[Any]]:
    """Return pairs as the library takes them, with the columns that some pair has."""
    columns = {name: [getattr(pair, name) for pair in pairs] for name in LabelledPair.model_fields}
    return {name: values for name, values in columns.items() if any(value is not None for value in values)}


@form("body", "infer")
class InferRequest(requests.Infer):
    """Labelled pairs, and how to search for the meta-paths behind them."""

    pairs: Annotated[list[LabelledPair], Field(min_length=1)]
    skip: Annotated[list[tuple[Id, Id]], Field(description="Pairs not to suggest.")] = field(default_factory=list)


# ---- Jobs ----------------------------------------------------------------------------------------
@form("body")
class InferJobRequest(InferRequest):
    """Infer as a job; its result is a model of the job's name."""

    kind: Literal["infer"]
    graph: Text


@form("body", "job")
class JoinJobRequest(requests.Join):
    """The top k of every node of a type, or all pairs above a score; the result is a Parquet file."""

    kind: Literal["join"]
    graph: Text
    combination: _Combination = None


@form("body")
class TrainJobRequest(requests.Train):
    """Train a model on labelled pairs, or on labels that a measure along a meta-path gives."""

    kind: Literal["train"]
    graph: Text
    architecture: Annotated[
        Text | None,
        Field(
            json_schema_extra={"enum": ["auto", *learning_from("labels")]},
            description="auto tries several, and is the default with `pairs`; neupath is the default with `metapath`.",
        ),
    ] = None
    pairs: list[LabelledPair] | None = None


@form("body")
class WhatIfJobRequest(requests.Counterfactual):
    """What moves a target out of the k best of a query, or into them."""

    kind: Literal["whatif"]
    graph: Text


@form("body")
class SignificanceJobRequest(requests.TestedSearch):
    """A search with the p-value of every hit and, if asked for, the interval in which its rank stays."""

    kind: Literal["significance"]
    graph: Text


JobRequest = Annotated[
    InferJobRequest | JoinJobRequest | TrainJobRequest | WhatIfJobRequest | SignificanceJobRequest,
    Field(discriminator="kind"),
]
JOB_REQUEST: TypeAdapter[Any] = TypeAdapter(JobRequest)


# ---- Look-ups and updates ------------------------------------------------------------------------
class NodesRequest(RequestModel):
    """Which nodes to look up."""

    node_type: Text | None = Field(None, description="The type to look in; by default all.")
    text: Text = Field("", description="What was typed; all nodes in their order where it is empty.")
    limit: int = Field(20, ge=1, le=2**31)
    offset: int = Field(0, ge=0, le=2**31)


class NodeRequestedById(RequestModel):
    """One node, by its type and its id or name."""

    node_type: Text
    id: Text
    limit: int = Field(8, ge=0, le=2**31, description="How many neighbours to list of each relation.")


class NodesLookup(RequestModel):
    """Many nodes of a type, by their ids or names."""

    node_type: Text
    ids: list[Id] = Field(min_length=1)

    model_config = _with_example("lookup")


class SimilarRequest(RequestModel):
    """A node to find meta-paths for."""

    node_type: Text
    query: Text
    k: int = Field(3, ge=1, le=2**31, description="How many hits to list of each meta-path.")
    limit: int = Field(8, ge=1, le=2**31, description="How many meta-paths to list.")


class HubsRequest(RequestModel):
    """How many of the best connected nodes to list."""

    limit: int = Field(3, ge=1, le=2**31)


class MetapathsRequest(RequestModel):
    """A meta-path typed so far, or the node type to suggest some for."""

    prefix: Text | None = Field(None, description="A meta-path, or the beginning of one.")
    source_type: Text | None = Field(None, description="Suggest meta-paths from this node type.")
    target_type: Text | None = Field(None, description="To this node type; the same by default.")
    max_length: int = Field(4, ge=1, le=20)
    limit: int = Field(20, ge=1, le=2**31)


@dataclass(config=_CONFIG, frozen=True)
class EdgeEnds(Edge):
    """An edge by its relation and the ids of its ends."""

    relation: Annotated[Text, Field(description="Its name, or where names repeat 'author -writes-> paper'.")]
    source: EndId
    target: EndId
    weight: SkipJsonSchema[float] = field(default=1.0, init=False)
    attributes: SkipJsonSchema[Mapping[str, object]] = field(default_factory=dict, init=False)


@dataclass(config=_CONFIG, frozen=True)
class EdgeRequest(EdgeEnds):
    """An edge to add, with attributes where edges of its relation have them; it adds to the weight of its pair."""

    weight: Number = Field(1.0, description="Above 0.")
    attributes: dict[Text, str | int | float | bool | None] = field(default_factory=dict)


@dataclass(config=_CONFIG, frozen=True)
class NodeId(Node):
    """A node by its type and id."""

    node_type: Text
    id: EndId
    name: SkipJsonSchema[str | None] = field(default=None, init=False)
    attributes: SkipJsonSchema[Mapping[str, object]] = field(default_factory=dict, init=False)


@dataclass(config=_CONFIG, frozen=True)
class NodeRequest(NodeId):
    """A node to add, with a name and attributes where nodes of its type have them."""

    name: Word | None = None
    attributes: dict[Text, str | int | float | bool | None] = field(default_factory=dict)


@dataclass(config=_CONFIG | _with_example("updates"), frozen=True)
class UpdateRequest(Update):
    """An update, all or nothing: it removes edges, then nodes, and adds nodes, then edges."""

    add_edges: list[EdgeRequest] = field(default_factory=list)
    remove_edges: list[EdgeEnds] = field(default_factory=list)
    add_nodes: list[NodeRequest] = field(default_factory=list)
    remove_nodes: list[NodeId] = field(default_factory=list)
    places: SkipJsonSchema[Mapping[str, Sequence[str]]] = field(default_factory=dict, init=False)


# ---- Query strings -------------------------------------------------------------------------------
R = TypeVar("R")
_LISTS = frozenset({"where", "among", "weight", "unless"})


def read_query_string(query_string: bytes) -> dict[str, str | list[str]]:
    """Read a query string; refuse a parameter that is given twice but may be once.

    >>> read_query_string(b"query=Mike&k=3&where=year+%3E+2000")
    {'query': 'Mike', 'k': '3', 'where': ['year > 2000']}
    """
    parameters: dict[str, str | list[str]] = {}
    for part in query_string.decode("latin-1").split("&"):
        name, _, value = part.partition("=")
        if "%" in part or "+" in part:
            name, value = unquote_plus(name), unquote_plus(value)
        if not part:
            continue
        if name in _LISTS:
            parameters.setdefault(name, []).append(value)  # type: ignore[union-attr]
        elif name in parameters:
            raise QueryError(f"{name[:100]!r} is given twice; give it once")
        else:
            parameters[name] = value
    return parameters


def read(kind: type[R], content: Mapping[str, Any]) -> R:
    """Read a request of some kind, or raise pydantic's error."""
    request: R = _adapter(kind).validate_python(content)
    return request


def dump(request: Any, without: set[str]) -> dict[str, Any]:
    """Return the fields of a request that differ from their defaults, as JSON can hold them."""
    return dict(_adapter(type(request)).dump_python(request, mode="json", exclude_defaults=True, exclude=without))


def read_query(kind: type[R], query_string: bytes) -> R:
    """Read a query string as a request of some kind."""
    try:
        return read(kind, read_query_string(query_string))
    except ValidationError as error:
        raise RequestError(422, describe_problems(error.errors(include_url=False, include_context=False))) from error


_ADAPTERS: dict[type[Any], TypeAdapter[Any]] = {}


def _adapter(kind: type[Any]) -> TypeAdapter[Any]:
    if kind not in _ADAPTERS:
        _ADAPTERS[kind] = TypeAdapter(kind)
    return _ADAPTERS[kind]


def query_parameters(kind: type[Any]) -> dict[str, Any]:
    """Return the fields of a request as OpenAPI describes the parameters of a query string."""
    schema = _adapter(kind).json_schema()
    required, fields = schema.get("required", ()), schema["properties"]
    ordered = sorted(fields.items(), key=lambda item: item[0] not in required)
    return {"parameters": [_parameter(name, content, name in required) for name, content in ordered]}


def _parameter(name: str, content: dict[str, Any], required: bool) -> dict[str, Any]:
    schema = {key: value for key, value in content.items() if key not in ("title", "description", "anyOf")}
    choices = [choice for choice in content.get("anyOf", ()) if choice.get("type") != "null"]
    if choices and schema.get("default", 0) is None:
        del schema["default"]
    schema |= choices[0] if len(choices) == 1 else {}
    about = {"description": content["description"]} if "description" in content else {}
    return {"name": name, "in": "query", "required": required, "schema": schema, **about}


# ---- Problems ------------------------------------------------------------------------------------
_MOST_SHOWN = 100
_MOST_PROBLEMS = 3
_LOCATIONS = ("query", "body")
_UNION_TAGS = ("str", "constrained-str", "int")
"""What pydantic adds to the location of a value that may have several types."""


def describe_problems(problems: Iterable[Mapping[str, Any]]) -> str:
    """Say in one sentence what is wrong with a request: the first problem of each field, and at most three fields.

    >>> describe_problems([{"loc": ("query", "k"), "msg": "Input should be a valid integer", "input": "x"}])
    "k is 'x': input should be a valid integer"
    """
    of_field: dict[str, str] = {}
    for problem in problems:
        of_field.setdefault(_field_of(problem), _describe_problem(problem))
    shown = [*of_field.values()][:_MOST_PROBLEMS]
    more = len(of_field) - len(shown)
    return "; ".join(shown) + (f" (and {more} more)" if more else "")


def _field_of(problem: Mapping[str, Any]) -> str:
    """Return the field that a problem is about. A value that may have several types has a problem with each."""
    location = problem["loc"]
    parts = [str(part) for part in location if part not in _UNION_TAGS]
    parts = [part for part in parts if part not in _LOCATIONS or len(location) == 1]
    return ".".join(parts)


def _describe_problem(problem: Mapping[str, Any]) -> str:
    kind, location = problem.get("type"), problem["loc"]
    if kind == "json_invalid":
        return f"the body is no JSON: {problem['ctx']['error'].lower()} at character {location[-1]}"
    if isinstance(problem.get("input"), bytes):
        return "the body is not marked as JSON; send the header 'Content-Type: application/json' with it"
    name = _field_of(problem)[:_MOST_SHOWN] or "the body"
    if kind == "missing":
        return f"{name} is missing"
    if kind in ("extra_forbidden", "unexpected_keyword_argument"):
        return f"{name} is not a parameter or field of this request"
    value, message = ascii(problem.get("input")), str(problem["msg"])
    shown = value if len(value) <= _MOST_SHOWN else f"{value[:_MOST_SHOWN]}…"
    return f"{name} is {shown}: {message[:1].lower()}{message[1:]}"

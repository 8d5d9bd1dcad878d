"""Schemas: what requests may hold, how they are read, the errors and JSON that answer them, and OpenAPI examples."""

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar
from urllib.parse import unquote_plus

from pydantic import BaseModel, ConfigDict, Field, StrictInt, StrictStr, ValidationError
from pydantic.dataclasses import dataclass
from pydantic.json_schema import SkipJsonSchema
from starlette.responses import Response

from neupath import errors
from neupath.engine.hits import QuerySet
from neupath.errors import QueryError
from neupath.evidence.significance import PERMUTATIONS
from neupath.graph.hin import HIN
from neupath.graph.metapath import MetaPath
from neupath.graph.refinement import parse_weights
from neupath.learn.registry import learning_from, required_metapath
from neupath.measures import Part
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
    """The base of all requests; it refuses unknown fields."""

    model_config = ConfigDict(extra="forbid", protected_namespaces=(), allow_inf_nan=False)


_TIMES = ("time", "since", "until", "now", "half_life")
_REFINEMENT = frozenset({"weight", *_TIMES})


class ScorerRequest(RequestModel):
    """What similar means: a measure along a meta-path, or a saved model."""

    metapath: Text | None = Field(None, description="Such as author-paper-author, or APA.")
    measure: Text = Field("pathsim", description="One of GET /api/measures.")
    model: Text | None = Field(None, description="One of GET /api/models, instead of a measure and a meta-path.")
    weight: list[Text] = Field(
        default_factory=list, max_length=100, description="Weights of edges by relation, such as 'rates=rating - 2.5'."
    )
    time: Text | None = Field(None, description="The attribute that holds times, of edges or of nodes on the way.")
    since: Text | None = Field(None, description="The first time that counts.")
    until: Text | None = Field(None, description="The last time that counts.")
    now: Text | None = Field(None, description="Leave out what is later, and count ages from here.")
    half_life: Text | None = Field(None, description="The age at which edges and nodes count half, such as 365d.")

    @property
    def refinement(self) -> dict[str, Any]:
        """What the request says of the weights and times of its meta-path, as `HIN.metapath` takes it."""
        times = {name: getattr(self, name) for name in _TIMES}
        weights = {"weights": parse_weights(self.weight)} if self.weight else {}
        return weights | {name: value for name, value in times.items() if value is not None}

    def refined(self, hin: HIN) -> MetaPath:
        """Return the meta-path with the weights and times of the request."""
        return hin.metapath(str(required_metapath(hin.schema, self.metapath)), **self.refinement)

    @property
    def given_measure(self) -> str | None:
        return self.measure if "measure" in self.model_fields_set else None


AsOf = Annotated[int | None, Field(ge=0, le=2**62, description="An earlier version, of a graph that is a store.")]


class VersionedScorerRequest(ScorerRequest):
    """What similar means, also as a measure over the whole graph, and at which version of a store."""

    node_type: Text | None = Field(
        None, description="The type of the nodes, for a measure over the whole graph whose query fits several."
    )
    as_of: AsOf = None


class CombinationPart(RequestModel):
    """One part of a combination: a measure along a meta-path, and its weight."""

    measure: Text
    metapath: Text
    weight: Number = Field(ge=-1e12, le=1e12)

    def to_part(self) -> Part:
        return Part(self.measure, self.metapath, self.weight)


class SearchRequest(VersionedScorerRequest):
    """What every search takes."""

    k: int = Field(10, ge=1, le=2**31, description="How many hits.")
    where: list[Text] = Field(default_factory=list, description="Conditions on targets, such as 'year >= 2000'.")
    include_query: bool = Field(False, description="Rank the query itself, too.")
    zeros: bool = Field(False, description="Fill up with targets of score 0.")
    unless: list[Text] = Field(default_factory=list, description="Leave out targets that these meta-paths relate.")
    diverse: float | None = Field(None, gt=0, le=1, description="Prefer hits that differ; 1 ranks as ever.")

    @property
    def has_filters(self) -> bool:
        """Whether this is more than the k best along a meta-path at the newest version."""
        is_other = self.model is not None or self.node_type is not None or self.as_of is not None
        is_other = is_other or not _REFINEMENT.isdisjoint(self.model_fields_set)
        return is_other or bool(self.where) or self.zeros or bool(self.unless) or self.diverse is not None


class SearchOne(SearchRequest):
    """One query, in the query string."""

    query: Text
    among: list[Text] = Field(default_factory=list, description="Rank only these targets.")

    @property
    def queries(self) -> list[str]:
        return [self.query]


class SearchMany(SearchRequest):
    """Many queries, in the body."""

    queries: list[Id] = Field(min_length=1)
    among: list[Id] = Field(default_factory=list, description="Rank only these targets.")
    combination: list[CombinationPart] | None = Field(None, description="Measures to add up, instead of one meta-path.")
    together: bool = Field(False, description="Search for all queries together, as one set.")
    weights: list[Number] | None = Field(None, description="Of the set: one for each query, below 0 to count against.")

    model_config = _with_example("searches")

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


GroupBy = Annotated[
    Text | None,
    Field(description="The node type to group paths by, or the number of steps to it; by default the middle."),
]
PathsOfGroup = Annotated[int, Field(ge=0, le=2**31, description="How many paths to list of each group.")]


class ExplainOne(VersionedScorerRequest):
    """One pair, in the query string."""

    query: Text
    target: Text
    by: GroupBy = None
    limit: int = Field(10, ge=0, le=2**31, description="How many groups and paths to list; the others are summed.")
    paths: PathsOfGroup = 1
    k: int = Field(10, ge=1, le=2**31, description="Say why the target is not among the k best, if it is not.")


class ExplainCombination(RequestModel):
    """One pair under a combination, or a set of nodes and a target along a meta-path, in the body."""

    query: Id | None = Field(None, description="One node, with combination.")
    target: Id
    combination: list[CombinationPart] | None = Field(None, description="Measures that are added up.")
    queries: list[Id] | None = Field(None, min_length=1, description="The nodes of a set, instead of query.")
    weights: list[Number] | None = Field(None, description="Of the set: one for each node.")
    metapath: Text | None = Field(None, description="Of a set.")
    measure: Text = Field("pathsim", description="Of a set.")
    by: GroupBy = None
    limit: int = Field(10, ge=0, le=2**31)
    paths: PathsOfGroup = 1
    as_of: AsOf = None

    model_config = _with_example("explain_parts")


class RelateRequest(RequestModel):
    """Two nodes, in the query string, and which meta-paths to look at."""

    query: Text
    target: Text
    query_type: Text | None = Field(None, description="The type of the query, where several types have its id.")
    target_type: Text | None = Field(None, description="The type of the target, where several types have its id.")
    max_steps: int = Field(4, ge=1, le=2**31, description="The most steps of a meta-path.")
    measure: Text | None = Field(None, description="A measure along a meta-path; by default pathsim or hetesim.")
    limit: int = Field(20, ge=0, le=2**31, description="How many meta-paths to list; the others are counted.")
    as_of: AsOf = None


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


class InferRequest(RequestModel):
    """Labelled pairs, and how to search for the meta-paths behind them."""

    pairs: list[LabelledPair] = Field(min_length=1)
    node_type: Text | None = Field(None, description="The type of the nodes, where their ids fit several.")
    query_type: Text | None = Field(None, description="Instead: the type of the queries.")
    target_type: Text | None = Field(None, description="Instead: the type of the targets.")
    max_length: int = Field(6, ge=2, le=20, description="The most steps of a meta-path.")
    measures: list[Text] | None = Field(None, description="Only these measures.")
    asymmetric: bool = Field(False, description="Also try paths that are not walked out and back.")
    conditions: list[Text] = Field(
        [], max_length=20, description="Also try these conditions, such as 'paper: year >= 2020'."
    )
    suggest: int = Field(3, ge=0, le=100, description="How many pairs to suggest for labelling.")
    skip: list[tuple[Id, Id]] = Field([], description="Pairs not to suggest.")
    seed: Seed = 0

    model_config = _with_example("infer")


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


_UPDATE_CONFIG = ConfigDict(extra="forbid", allow_inf_nan=False)


@dataclass(config=_UPDATE_CONFIG, frozen=True)
class EdgeEnds(Edge):
    """An edge by its relation and the ids of its ends."""

    relation: Annotated[Text, Field(description="Its name, or where names repeat 'author -writes-> paper'.")]
    source: EndId
    target: EndId
    weight: SkipJsonSchema[float] = field(default=1.0, init=False)
    attributes: SkipJsonSchema[Mapping[str, object]] = field(default_factory=dict, init=False)


@dataclass(config=_UPDATE_CONFIG, frozen=True)
class EdgeRequest(EdgeEnds):
    """An edge to add, with attributes where edges of its relation have them; it adds to the weight of its pair."""

    weight: Number = Field(1.0, description="Above 0.")
    attributes: dict[Text, str | int | float | bool | None] = field(default_factory=dict)


@dataclass(config=_UPDATE_CONFIG, frozen=True)
class NodeId(Node):
    """A node by its type and id."""

    node_type: Text
    id: EndId
    name: SkipJsonSchema[str | None] = field(default=None, init=False)
    attributes: SkipJsonSchema[Mapping[str, object]] = field(default_factory=dict, init=False)


@dataclass(config=_UPDATE_CONFIG, frozen=True)
class NodeRequest(NodeId):
    """A node to add, with a name and attributes where nodes of its type have them."""

    name: Word | None = None
    attributes: dict[Text, str | int | float | bool | None] = field(default_factory=dict)


@dataclass(config=_UPDATE_CONFIG | _with_example("updates"), frozen=True)
class UpdateRequest(Update):
    """An update, all or nothing: it removes edges, then nodes, and adds nodes, then edges."""

    add_edges: list[EdgeRequest] = field(default_factory=list)
    remove_edges: list[EdgeEnds] = field(default_factory=list)
    add_nodes: list[NodeRequest] = field(default_factory=list)
    remove_nodes: list[NodeId] = field(default_factory=list)
    places: SkipJsonSchema[Mapping[str, Sequence[str]]] = field(default_factory=dict, init=False)


class InferJobRequest(InferRequest):
    """Infer as a job; its result is a model of the job's name."""

    kind: Literal["infer"]
    graph: Text


class JoinJobRequest(ScorerRequest):
    """The top k of every node of a type, or all pairs above a score; the result is a Parquet file."""

    kind: Literal["join"]
    graph: Text
    k: int | None = Field(None, ge=1, le=2**31)
    min_score: Number = Field(0.0, ge=0)
    where_query: list[Text] = Field(default_factory=list, description="Conditions on queries.")
    where: list[Text] = Field(default_factory=list, description="Conditions on targets.")
    unless: list[Text] = Field(default_factory=list, description="Leave out targets that these meta-paths relate.")
    among: list[Id] = Field(default_factory=list, description="Rank only these targets.")
    combination: list[CombinationPart] | None = Field(None, description="Measures to add up, instead of one meta-path.")

    model_config = _with_example("job")


class TrainJobRequest(RequestModel):
    """Train a model on labelled pairs, or on labels that a measure along a meta-path gives."""

    kind: Literal["train"]
    graph: Text
    architecture: Text | None = Field(
        None,
        json_schema_extra={"enum": ["auto", *learning_from("labels")]},
        description="auto tries several, and is the default with `pairs`; neupath is the default with `metapath`.",
    )
    budget: Number | None = Field(None, gt=0, le=86_400, description="Of auto: about how many seconds it may take.")
    metapath: Text | None = None
    measure: Text = "pathsim"
    pairs: list[LabelledPair] | None = None
    node_type: Text | None = Field(None, description="The type of the nodes in `pairs`, where their ids fit several.")
    query_type: Text | None = Field(None, description="Instead: the type of the queries in `pairs`.")
    target_type: Text | None = Field(None, description="Instead: the type of the targets in `pairs`.")
    protocol: Literal["strict", "paper"] = "strict"
    layers: int = Field(2, ge=1, le=8)
    paths: int | None = Field(None, ge=1, le=16, description="Of neupath: how many path instances it keeps.")
    dim: int | None = Field(None, ge=1, le=2**31, description="The width of its vectors.")
    epochs: int = Field(30, ge=1, le=2**31)
    learning_rate: Number | None = Field(None, gt=0)
    seed: Seed = 0

    @property
    def chosen_architecture(self) -> str:
        """The architecture, by what it learns from unless it is given."""
        return self.architecture or ("neupath" if self.pairs is None else "auto")


class WhatIfJobRequest(RequestModel):
    """What moves a target out of the k best of a query, or into them."""

    kind: Literal["whatif"]
    graph: Text
    query: Id
    target: Id
    metapath: Text | None = None
    measure: Text = "pathsim"
    k: int = Field(10, ge=1, le=2**31, description="How many hits count as the best.")
    remove: Text | None = Field(None, description="edges, or a node type.")
    add: Text | None = Field(None, description="edges, or a node type.")
    limit: int = Field(10, ge=0, le=2**31, description="How many single changes to list.")
    budget: int | None = Field(None, ge=1, le=2**62, description="How much work to spend.")


class SignificanceJobRequest(RequestModel):
    """A search with the p-value of every hit and, if asked for, the interval in which its rank stays."""

    kind: Literal["significance"]
    graph: Text
    queries: list[Id] = Field(min_length=1)
    metapath: Text | None = None
    measure: Text = "pathsim"
    where: list[Text] = Field(default_factory=list, description="Conditions on targets.")
    unless: list[Text] = Field(default_factory=list, description="Leave out targets that these meta-paths relate.")
    k: int = Field(10, ge=1, le=2**31)
    permutations: int = Field(PERMUTATIONS, ge=1, le=2**31, description="How many permuted graphs.")
    stability: bool = Field(False, description="Also find where ranks stay when a tenth of the edges is missing.")
    stability_by: Text | None = Field(None, description="Instead, when any one node of this type is missing.")
    seed: Seed = 0


JobRequest = Annotated[
    InferJobRequest | JoinJobRequest | TrainJobRequest | WhatIfJobRequest | SignificanceJobRequest,
    Field(discriminator="kind"),
]


# ---- Query strings -------------------------------------------------------------------------------
R = TypeVar("R", bound=RequestModel)
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


def read_query(kind: type[R], query_string: bytes) -> R:
    """Read a query string as a request of some kind."""
    try:
        return kind.model_validate(read_query_string(query_string))
    except ValidationError as error:
        raise RequestError(422, describe_problems(error.errors(include_url=False, include_context=False))) from error


def query_parameters(kind: type[RequestModel]) -> dict[str, Any]:
    """Return the fields of a request as OpenAPI describes the parameters of a query string."""
    schema = kind.model_json_schema()
    required, fields = schema.get("required", ()), schema["properties"]
    return {"parameters": [_parameter(name, content, name in required) for name, content in fields.items()]}


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

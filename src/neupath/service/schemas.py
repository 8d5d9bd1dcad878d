"""Requests: what the bodies and query strings of calls may hold."""

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictInt, StrictStr
from pydantic.dataclasses import dataclass
from pydantic.json_schema import SkipJsonSchema

from neupath.learn.registry import learning_from
from neupath.store import Edge, Node, Update

_MOST_LETTERS = 20_000
Word = Annotated[StrictStr, Field(max_length=_MOST_LETTERS)]
Id = Annotated[Word | StrictInt, Field(description="An id, or a name where only one node bears it.")]
EndId = Annotated[Word | StrictInt, Field(description="An id; names do not do here.")]
Text = Annotated[str, Field(max_length=_MOST_LETTERS)]
Seed = Annotated[int, Field(ge=0, lt=2**63)]


class RequestModel(BaseModel):
    """What all requests share: a word that is not known is refused, not dropped."""

    model_config = ConfigDict(extra="forbid", protected_namespaces=(), allow_inf_nan=False)


class Meaning(RequestModel):
    """What similar means: a measure over a meta-path, or a saved model, which knows its own."""

    metapath: Text | None = Field(None, description="Such as author-paper-author, or APA.")
    measure: Text = Field("pathsim", description="One of GET /api/measures.")
    model: Text | None = Field(None, description="One of GET /api/models, instead of a measure and a meta-path.")


AsOf = Annotated[int | None, Field(ge=0, le=2**62, description="An earlier version, of a graph that is a store.")]


class AnyMeaning(Meaning):
    """What similar means: also a measure over the whole graph, between nodes of one type."""

    node_type: Text | None = Field(
        None, description="The type of the nodes, for a measure over the whole graph whose query fits several."
    )
    as_of: AsOf = None


class CombinationPart(RequestModel):
    """One part of a combination: a measure over a meta-path, and its weight."""

    measure: Text
    metapath: Text
    weight: float = Field(ge=0, le=1e12)


class SearchRequest(AnyMeaning):
    """How to search."""

    k: int = Field(10, ge=1, le=2**31, description="How many hits.")
    where: list[Text] = Field(default_factory=list, description="Conditions on targets, such as 'year >= 2000'.")
    include_query: bool = Field(False, description="Rank the query itself, too.")
    zeros: bool = Field(False, description="Fill up with targets of score 0.")

    @property
    def is_special(self) -> bool:
        """Whether more is asked than the k best of a meta-path."""
        return bool(
            self.model is not None or self.node_type is not None or self.as_of is not None or self.where or self.zeros
        )


class SearchOne(SearchRequest):
    """One query, in the query string."""

    query: Text
    among: list[Text] = Field(default_factory=list, description="Rank only these targets.")


class SearchMany(SearchRequest):
    """Many queries, in the body."""

    queries: list[Id] = Field(min_length=1)
    among: list[Id] = Field(default_factory=list, description="Rank only these targets.")
    combination: list[CombinationPart] | None = Field(None, description="Measures to add up, instead of one meta-path.")

    model_config = ConfigDict(json_schema_extra={"example": {"queries": ["Mike", "Mary"], "metapath": "APVPA", "k": 2}})


class ExplainOne(AnyMeaning):
    """One pair, in the query string."""

    query: Text
    target: Text
    limit: int = Field(10, ge=0, le=2**31, description="How many paths to list; the others are counted and summed.")


class ExplainCombination(RequestModel):
    """One pair under a combination, in the body."""

    query: Id
    target: Id
    combination: list[CombinationPart]
    limit: int = Field(10, ge=0, le=2**31)
    as_of: AsOf = None

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "query": "Mike",
                "target": "Mary",
                "combination": [{"measure": "pathsim", "metapath": "APVPA", "weight": 1.0}],
            }
        }
    )


class LabelledPair(RequestModel):
    """A labelled pair; without a score it is an example of a similar one."""

    query: Id
    target: Id
    score: float | None = None


class Infer(RequestModel):
    """Labelled pairs, and how to search for what they mean."""

    pairs: list[LabelledPair] = Field(min_length=1)
    node_type: Text | None = Field(None, description="The type of the nodes, where their ids fit several.")
    max_length: int = Field(6, ge=2, le=20, description="The most steps of a meta-path.")
    measures: list[Text] | None = Field(None, description="Only these measures.")
    asymmetric: bool = Field(False, description="Also try paths that are not walked out and back.")
    suggest: int = Field(3, ge=0, le=100, description="How many pairs to suggest for labelling.")
    skip: list[tuple[Id, Id]] = Field([], description="Pairs not to suggest.")
    seed: Seed = 0

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "pairs": [
                    {"query": "Mike", "target": "Bob", "score": 1.0},
                    {"query": "Mike", "target": "Mary", "score": 0.8},
                    {"query": "Mary", "target": "Ann", "score": 0.2857142857},
                ],
                "max_length": 4,
            }
        }
    )

    def tuples(self) -> list[tuple[Any, ...]]:
        """Return the pairs as the library reads them; never a text, which would be read as a file."""
        scored = any(pair.score is not None for pair in self.pairs)
        if not scored:
            return [(pair.query, pair.target) for pair in self.pairs]
        return [(pair.query, pair.target, pair.score) for pair in self.pairs]


class NodesQuery(RequestModel):
    """Which nodes to look up."""

    node_type: Text
    text: Text = Field("", description="What was typed; all nodes in their order where it is empty.")
    limit: int = Field(20, ge=1, le=2**31)
    offset: int = Field(0, ge=0, le=2**31)


class MetapathsQuery(RequestModel):
    """A meta-path typed so far, or the type to suggest some for."""

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


@dataclass(config=_UPDATE_CONFIG, frozen=True)
class EdgeRequest(EdgeEnds):
    """An edge to add; one that exists gets heavier by the weight."""

    weight: float = Field(1.0, description="Above 0.")


@dataclass(config=_UPDATE_CONFIG, frozen=True)
class NodeId(Node):
    """A node by its type and id."""

    node_type: Text
    id: EndId
    name: SkipJsonSchema[str | None] = field(default=None, init=False)
    attributes: SkipJsonSchema[Mapping[str, object]] = field(default_factory=dict, init=False)


@dataclass(config=_UPDATE_CONFIG, frozen=True)
class NodeRequest(NodeId):
    """A node to add, with its name and attributes where nodes of its type have any."""

    name: Word | None = None
    attributes: dict[Text, str | int | float | bool | None] = field(default_factory=dict)


@dataclass(
    config=_UPDATE_CONFIG
    | ConfigDict(
        json_schema_extra={
            "example": {
                "add_nodes": [{"node_type": "paper", "id": "Mike-KDD-9"}],
                "add_edges": [
                    {"relation": "writes", "source": "Mike", "target": "Mike-KDD-9"},
                    {"relation": "appears_at", "source": "Mike-KDD-9", "target": "KDD"},
                ],
            }
        }
    ),
    frozen=True,
)
class UpdateRequest(Update):
    """What changes in one step, all or nothing: edges, then nodes are removed; nodes, then edges are added."""

    add_edges: list[EdgeRequest] = field(default_factory=list)
    remove_edges: list[EdgeEnds] = field(default_factory=list)
    add_nodes: list[NodeRequest] = field(default_factory=list)
    remove_nodes: list[NodeId] = field(default_factory=list)
    places: SkipJsonSchema[Mapping[str, Sequence[str]]] = field(default_factory=dict, init=False)


class InferJobRequest(Infer):
    """Infer as a job; what is found can be searched with as a model of the job's name."""

    kind: Literal["infer"]
    graph: Text


class JoinRequest(Meaning):
    """The top k of every node of a type, or all pairs above a score; the result is a Parquet file."""

    kind: Literal["join"]
    graph: Text
    k: int | None = Field(None, ge=1, le=2**31)
    min_score: float = Field(0.0, ge=0)

    model_config = ConfigDict(
        json_schema_extra={"example": {"kind": "join", "graph": "toy", "metapath": "APVPA", "k": 3}}
    )


class TrainRequest(RequestModel):
    """Train a model from labelled pairs, or from labels that a measure over a meta-path gives."""

    kind: Literal["train"]
    graph: Text
    architecture: Text = Field("neupath", json_schema_extra={"enum": [*learning_from("labels")]})
    metapath: Text | None = None
    measure: Text = "pathsim"
    pairs: list[LabelledPair] | None = None
    protocol: Literal["strict", "paper"] = "strict"
    layers: int = Field(2, ge=1, le=8)
    paths: int | None = Field(None, ge=1, le=16, description="Of neupath: how many path instances it keeps.")
    dim: int | None = Field(None, ge=1, le=2**31, description="The width of its vectors.")
    epochs: int = Field(30, ge=1, le=2**31)
    learning_rate: float | None = Field(None, gt=0)
    seed: Seed = 0


Job = Annotated[InferJobRequest | JoinRequest | TrainRequest, Field(discriminator="kind")]

"""Summary: what a graph holds, as `neupath info` shows it."""

from dataclasses import asdict, dataclass
from itertools import islice

import numpy as np

from neupath.graph.edge_attributes import kind_of
from neupath.graph.edges import edge_counts
from neupath.graph.hin import HIN
from neupath.graph.metapath import Relation, enumerate_metapaths
from neupath.graph.nodes import Rows

_PATHS_PER_TYPE = 8


@dataclass(frozen=True)
class NodeTypeSummary:
    """The nodes of one type; isolated ones have no edge at all."""

    node_type: str
    nodes: int
    isolated: int
    named: bool
    attributes: list[str]
    attribute_types: dict[str, str]  # a name -> text, number, time, …


@dataclass(frozen=True)
class RelationSummary:
    """The edges of one relation, and how many of them a source or target has."""

    source: str
    name: str
    target: str
    directed: bool
    edges: int
    weight: float  # the sum of all weights: more than there are edges if parallel edges were counted
    source_degree_mean: float
    source_degree_max: int
    target_degree_mean: float
    target_degree_max: int
    attributes: dict[str, str]  # what the edges have besides their weight: a name -> text, number, time, …


@dataclass(frozen=True)
class Summary:
    """A graph's types, relations, and the shortest symmetric meta-paths to search with."""

    node_types: list[NodeTypeSummary]
    relations: list[RelationSummary]
    metapaths: dict[str, list[str]]
    notes: list[str]

    def to_dict(self) -> dict[str, object]:
        """Return what `info --json` prints."""
        return asdict(self)


def summarise(hin: HIN, max_length: int = 4) -> Summary:
    """Count what a graph holds and list candidate meta-paths of each type.

    >>> from neupath import load
    >>> summarise(load("toy")).metapaths["venue"]
    ['venue-paper-venue', 'venue-paper-author-paper-venue', 'venue-paper-venue-paper-venue']
    """
    return Summary(
        [_describe_type(hin, node_type) for node_type in hin.schema.node_types],
        [_describe_relation(hin, relation) for relation in hin.schema.relations],
        {
            node_type: list(map(str, islice(enumerate_metapaths(hin.schema, node_type, max_length), _PATHS_PER_TYPE)))
            for node_type in hin.schema.node_types
            if hin.schema.neighbours(node_type)
        },
        list(hin.notes),
    )


def _describe_type(hin: HIN, node_type: str) -> NodeTypeSummary:
    nodes, isolated = hin.nodes[node_type], int(np.count_nonzero(hin.degrees(node_type) == 0))
    kinds = {column.name: kind_of(column.type) for column in nodes.attributes.schema}
    return NodeTypeSummary(node_type, len(nodes), isolated, nodes.names is not None, list(kinds), kinds)


def _describe_relation(hin: HIN, relation: Relation) -> RelationSummary:
    matrix = hin.matrices[relation]
    forward, backward = edge_counts(matrix)
    return RelationSummary(
        relation.source,
        relation.name,
        relation.target,
        relation.directed,
        hin.num_edges(relation),
        float(matrix.sum()) if relation.directed else float((matrix.sum() + matrix.diagonal().sum()) / 2),
        _mean(forward),
        int(forward.max(initial=0)),
        _mean(backward),
        int(backward.max(initial=0)),
        hin.edge_kinds(relation),
    )


def _mean(degrees: Rows) -> float:
    return round(float(degrees.mean()), 3) if len(degrees) else 0.0

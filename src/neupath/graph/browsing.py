"""Browsing: a node with its attributes and heaviest neighbours, nodes by their names, and the nodes with most edges."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from neupath.errors import NodeError
from neupath.graph.hin import HIN
from neupath.graph.metapath import Link, arrow
from neupath.graph.nodes import Id

Facts = dict[str, object]


class Neighbours(NamedTuple):
    """How many nodes a link joins to a node, and the heaviest of them."""

    link: Link
    degree: int
    rows: list[int]
    weights: list[float]


def neighbours_of(hin: HIN, node_type: str, row: int, limit: int) -> Iterator[Neighbours]:
    """Yield the heaviest neighbours of a node by each link that it has, ties in node order.

    >>> from neupath import load
    >>> [(near.link.target, near.degree) for near in neighbours_of(load("toy"), "author", 0, 1)]
    [('paper', 3)]
    """
    for link in hin.schema.links_from(node_type):
        matrix = hin.matrix(link)
        own = slice(*matrix.indptr[row : row + 2])
        rows, weights = matrix.indices[own], matrix.data[own]
        if len(rows):
            best = np.lexsort((rows, -weights))[:limit]
            yield Neighbours(link, len(rows), rows[best].tolist(), weights[best].tolist())


@dataclass(frozen=True)
class NodeDescription:
    """A node, and its heaviest neighbours by each relation."""

    hin: HIN
    node_type: str
    row: int
    neighbours: list[Neighbours]

    def to_dict(self) -> Facts:
        """Return what JSON says of the node."""
        links = [
            {
                "link": arrow((near.link,)), "relation": near.link.relation.name, "node_type": near.link.target,
                "degree": near.degree,
                "neighbours": [label_row(self.hin, near.link.target, row) for row in near.rows],
            }
            for near in self.neighbours
        ]  # fmt: skip
        return describe_row(self.hin, self.node_type, self.row) | {"links": links}


def describe_node(hin: HIN, node: Id, node_type: str | None = None, limit: int = 8) -> NodeDescription:
    """Describe a node by its attributes and, of each relation, its degree and heaviest neighbours.

    >>> from neupath import load
    >>> described = describe_node(load("toy"), "Bob", limit=1)
    >>> [(near.link.target, near.degree) for near in described.neighbours]
    [('paper', 3)]
    """
    chosen = hin.find_type([node], repr(node)) if node_type is None else hin.schema.node_type(node_type)
    row = hin.row(chosen, node)
    return NodeDescription(hin, chosen, row, list(neighbours_of(hin, chosen, row, limit)))


def label_row(hin: HIN, node_type: str, row: int) -> Facts:
    """Return the type, id and name of a node."""
    nodes = hin.nodes[node_type]
    return {"node_type": node_type, "id": nodes.id(row), "name": nodes.name(row)}


def describe_row(hin: HIN, node_type: str, row: int) -> Facts:
    """Return a node with its attributes, as JSON can hold them."""
    table = hin.nodes[node_type].attributes
    attributes = {name: json_value(table[name][row].as_py()) for name in table.column_names}
    return label_row(hin, node_type, row) | {"attributes": attributes}


def json_value(value: object) -> object:
    """Return a value as JSON can hold it."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)


def look_up(hin: HIN, node_type: str, ids: Sequence[Id]) -> Facts:
    """Find each of many nodes of a type by its id or its name; None for one that is not there or is ambiguous.

    `ambiguous` lists the nodes of each name that several bear, those with more edges first.
    """
    rows = [_row_or_none(hin, node_type, node_id) for node_id in ids]
    nodes = [None if row is None else describe_row(hin, node_type, row) for row in rows]
    missing = dict.fromkeys(str(node_id) for node_id, row in zip(ids, rows, strict=True) if row is None)
    ambiguous = {name: _homonyms(hin, node_type, name) for name in missing}
    return {
        "node_type": node_type, "nodes": nodes, "ambiguous": {name: same for name, same in ambiguous.items() if same}
    }  # fmt: skip


def _homonyms(hin: HIN, node_type: str, name: str) -> list[Facts]:
    degrees = hin.degrees(node_type)
    rows = sorted(hin.nodes[node_type].named(name), key=lambda row: (-degrees[row], row))
    return [describe_row(hin, node_type, row) | {"degree": int(degrees[row])} for row in rows]


def _row_or_none(hin: HIN, node_type: str, node_id: Id) -> int | None:
    try:
        return int(hin.nodes[node_type].find_many([node_id], exact=True)[0])
    except NodeError:
        return None


def hubs(hin: HIN, limit: int) -> list[Facts]:
    """List the nodes of each type with the most edges, to start from."""
    most: list[Facts] = []
    for node_type in hin.nodes:
        degrees = hin.degrees(node_type)
        best = np.argsort(-degrees, kind="stable")[:limit].tolist()
        most += [label_row(hin, node_type, row) | {"degree": int(degrees[row])} for row in best if degrees[row]]
    return most

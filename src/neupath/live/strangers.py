"""Strangers: what a change by rows names that the graph does not have; the kernels would write where nothing is."""

import math

from neupath.errors import GraphError
from neupath.graph import HIN
from neupath.live.state import RowChange
from neupath.nodes import Nodes
from neupath.schema import Relation


def refuse_strangers(hin: HIN, change: RowChange) -> None:
    """Refuse relations, types and rows that are not there, and weights that are none."""
    for node_type, nodes in change.nodes.items():
        _refuse_columns(hin.nodes[hin.schema.node_type(node_type)], nodes)
    for relation, row, column, weight in change.edges:
        if relation not in hin.schema.relations:
            raise GraphError(f"no relation {str(relation)!r} in this graph (it has {hin.schema.relations})")
        _refuse_row(hin, change, relation, relation.source, row)
        _refuse_row(hin, change, relation, relation.target, column)
        if not (math.isfinite(weight) and weight >= 0):
            raise GraphError(f"weight {weight} is not allowed; weights are finite numbers above 0, and 0 takes it away")


def _refuse_columns(nodes: Nodes, new: Nodes) -> None:
    """Refuse nodes that have other columns than those there are; names and attributes that these lack are left out."""
    for what, own, given in (
        ("ids", str(nodes.ids.type), str(new.ids.type)),
        ("names", *("" if names is None else str(names.type) for names in (nodes.names, new.names))),
        ("attributes", _columns(nodes), _columns(new)),
    ):
        if own and own != given:
            raise GraphError(
                f"{what} of {nodes.node_type} are {own}, and {given or 'none'} are given; the columns of new nodes are "
                f"those of the others"
            )


def _columns(nodes: Nodes) -> str:
    return ", ".join(f"{field.name}: {field.type}" for field in nodes.attributes.schema)


def _refuse_row(hin: HIN, change: RowChange, relation: Relation, node_type: str, row: int) -> None:
    count = len(hin.nodes[node_type]) + (len(change.nodes[node_type]) if node_type in change.nodes else 0)
    if not 0 <= row < count:
        raise GraphError(f"an edge of '{relation}' names row {row} of {node_type}, which has {count:,} nodes")

"""What is said of ids that make no graph, whoever reads the tables."""

from neupath.errors import GraphError


def empty_id(place: str) -> GraphError:
    """Refuse a node without an id."""
    return GraphError(f"{place}: the node has an empty id; every node needs one")


def repeated_id(place: str, given: object) -> GraphError:
    """Refuse a second node with the same id."""
    return GraphError(f"{place}: node id {given!r} is given a second time; node ids must be unique")


def empty_end(place: str, node_type: str) -> GraphError:
    """Refuse an edge without an id at one end."""
    return GraphError(f"{place}: the edge has an empty {node_type} id")


def dangling_end(place: str, node_type: str, given: object, where: str, count: int) -> GraphError:
    """Refuse an edge to a node that is not in a table, the first of `count`."""
    return GraphError(
        f"{place}: the edge leads to {node_type} {given!r}, "
        f"which is not in the {where} ({count:,} such edge ends in all)"
    )


def table_of(node_type: str) -> str:
    """Say which table edges must lead to."""
    return f"node table of {node_type}"

"""What can be wrong with a row of a table, whichever way it is read; a place is the file and the line."""

from neupath.errors import GraphError


def empty_id(place: str) -> GraphError:
    """Say that a node has no id."""
    return GraphError(f"{place}: the node has an empty id; every node needs one")


def repeated_id(place: str, value: object) -> GraphError:
    """Say that two nodes have one id."""
    return GraphError(f"{place}: node id {value!r} is given a second time; node ids must be unique")


def empty_word(place: str, what: str) -> GraphError:
    """Say that a type or a relation is not named."""
    return GraphError(f"{place}: the {what} is empty; every row needs one")


def empty_end(place: str, node_type: str) -> GraphError:
    """Say that an edge does not name its end."""
    return GraphError(f"{place}: the edge has an empty {node_type} id")


def lost_end(place: str, node_type: str, value: object, where: str, count: int) -> GraphError:
    """Say that an edge leads to a node that is not there."""
    return GraphError(
        f"{place}: the edge leads to {node_type} {value!r}, which is not in the {where} "
        f"({count:,} such edge ends in all)"
    )


def table_of(node_type: str) -> str:
    """Say which table edges must lead to."""
    return f"node table of {node_type}"


def bad_weight(place: str, value: object) -> GraphError:
    """Say that a weight is none."""
    return GraphError(f"{place}: weight {value!r} is not allowed; weights are finite numbers, 0 or more")

"""Updating: nodes and edges of a request, written to the store that is served, all or nothing."""

from neupath.errors import QueryError
from neupath.service.catalogue import Catalogue
from neupath.service.requests import Update
from neupath.store import Batch, EdgeLine, NodeLine


def update_graph(catalogue: Catalogue, graph: str, asked: Update) -> dict[str, object]:
    """Write what a request adds and removes; when this returns, it is on disk, and searches know it."""
    batch = to_batch(asked)
    catalogue.limits.check_lines(len(batch))
    if not len(batch):
        raise QueryError("nothing to change; give add_edges, remove_edges, add_nodes or remove_nodes")
    return {"version": catalogue.source(graph).update(batch), "lines": len(batch)}


def to_batch(asked: Update) -> Batch:
    """Return a request as the store reads it, each line with its place, for errors.

    >>> to_batch(Update(remove_nodes=[{"type": "author", "id": "Mike"}])).remove_nodes[0].place
    'remove_nodes[0]'
    """
    return Batch(
        [
            EdgeLine(line.relation, line.source, line.target, line.weight, f"add_edges[{place}]")
            for place, line in enumerate(asked.add_edges)
        ],
        [
            EdgeLine(line.relation, line.source, line.target, place=f"remove_edges[{place}]")
            for place, line in enumerate(asked.remove_edges)
        ],
        [
            NodeLine(line.type, line.id, line.name, line.attributes, f"add_nodes[{place}]")
            for place, line in enumerate(asked.add_nodes)
        ],
        [NodeLine(line.type, line.id, place=f"remove_nodes[{place}]") for place, line in enumerate(asked.remove_nodes)],
    )

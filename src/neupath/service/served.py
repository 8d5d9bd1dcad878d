"""Served: graphs under the names they are served by; one that is a store has versions, and may take updates."""

from collections.abc import Mapping
from dataclasses import asdict
from functools import cached_property
from threading import Lock

from neupath.description import Description, describe
from neupath.errors import QueryError
from neupath.graph import HIN
from neupath.live import LiveStore, View
from neupath.parsing import arrow
from neupath.scorer import Scorer
from neupath.service.limits import Limits
from neupath.service.names import Names
from neupath.service.refusals import Refusal
from neupath.service.requests import NodesQuery
from neupath.store import Batch


class Served:
    """One version of a graph under the name it is served by; a graph that is no store has no other."""

    def __init__(self, name: str, hin: HIN, view: View | None = None, names: Mapping[str, Names] | None = None) -> None:
        self.name, self.hin, self.view = name, hin, view
        self.names = names or {node_type: Names(nodes) for node_type, nodes in hin.nodes.items()}

    @property
    def version(self) -> int | None:
        return None if self.view is None else self.view.version

    def fit(self, measure: Scorer) -> Scorer:
        """Fit a measure, at once where it follows the changes of a store."""
        return measure.fit(self.hin) if self.view is None else self.view.fit(measure)

    def at(self, as_of: int | None = None) -> "Served":
        """Return the graph as it is now, or as it was at a version."""
        if as_of is not None:
            raise QueryError(f"as_of is {as_of}, and the graph {self.name!r} is no store: it has no versions")
        return self

    def is_newest(self, served: "Served") -> bool:
        """Whether there is nothing newer than what was served."""
        return served is self

    def follow(self, measure: Scorer) -> "Served":  # noqa: ARG002
        """Return the graph as it is now, for a measure that will be asked for again."""
        return self

    def update(self, batch: Batch) -> int:  # noqa: ARG002
        """Refuse to change."""
        raise Refusal(
            409, f"the graph {self.name!r} is no store, and takes no updates; make one with 'neupath import', "
            f"and serve that with --writable",
        )  # fmt: skip

    @cached_property
    def description(self) -> Description:
        return describe(self.hin)

    def schema(self) -> dict[str, object]:
        """Return the node types, the relations, and every step a meta-path can take."""
        schema = self.hin.schema
        return {
            "node_types": [
                {
                    "node_type": node_type,
                    "nodes": len(nodes),
                    "named": nodes.names is not None,
                    "attributes": nodes.attributes.column_names,
                }
                for node_type, nodes in self.hin.nodes.items()
            ],
            "relations": [asdict(relation) | {"edges": self.hin.num_edges(relation)} for relation in schema.relations],
            "steps": [
                {"source": node_type, "target": link.target, "relation": link.relation.name, "link": arrow((link,))}
                for node_type in schema.node_types
                for link in schema.links_from(node_type)
            ],
        }

    def find_nodes(self, asked: NodesQuery, limits: Limits) -> dict[str, object]:
        """Return a page of the nodes that a text leads to."""
        if asked.limit > limits.page:
            raise QueryError(f"limit is {asked.limit}; this service lists at most {limits.page} nodes at a time")
        node_type = self.hin.schema.node_type(asked.type)
        nodes = self.hin.nodes[node_type]
        found = self.names[node_type].find(asked.q, asked.limit, asked.offset)
        listed_nodes = [
            {"id": nodes.id(row), "name": nodes.name(row), "match": match}
            for row, match in zip(found.rows, found.matches, strict=True)
        ]
        return {"node_type": node_type, "total": found.total, "offset": asked.offset, "nodes": listed_nodes}

    def to_dict(self) -> dict[str, object]:
        nodes = sum(len(nodes) for nodes in self.hin.nodes.values())
        return _to_dict(self, nodes, sum(self.hin.num_edges(relation) for relation in self.hin.schema.relations))


class ServedStore:
    """A store under the name it is served by: every call is answered at the newest version, or at one it asks for."""

    def __init__(self, name: str, live: LiveStore) -> None:
        self.name, self._live = name, live
        self._graph = live.graph
        self._newest = Served(name, live.view().hin, live.view())
        self._renewing = Lock()

    def at(self, as_of: int | None = None) -> Served:
        """Return the graph as it is now, or as it was at a version."""
        if as_of is not None:
            view = self._live.view(as_of)
            return Served(self.name, view.hin, view)
        with self._renewing:  # so that none is made from the names of a later one
            graph = self._live.graph
            view = graph.view()
            if view is not self._newest.view:
                names = self._names(view) if graph is self._graph else None  # else its rows are others
                self._graph, self._newest = graph, Served(self.name, view.hin, view, names)
            return self._newest

    def _names(self, view: View) -> Mapping[str, Names]:
        """Return the names known so far, with those of nodes that came."""
        return {node_type: self._newest.names[node_type].grown(nodes) for node_type, nodes in view.hin.nodes.items()}

    def is_newest(self, served: Served) -> bool:
        """Whether there is nothing newer than what was served."""
        return served.version == self._live.graph.view().version

    def follow(self, measure: Scorer) -> Served:
        """Let a measure or a model follow the changes from now on, and return the graph as it is now."""
        self._live.follow(measure)
        return self.at()

    def update(self, batch: Batch) -> int:
        """Write a batch to disk, and return the version that it makes."""
        if self._live.read_only:
            raise Refusal(403, f"the store {self.name!r} is served to be read; --writable lets it take updates, too")
        return self._live.update(batch)

    def to_dict(self) -> dict[str, object]:
        facts = self._live.facts
        versions = {"version": facts.version, "writable": not self._live.read_only}
        return _to_dict(self._newest, facts.nodes, facts.edges) | versions


def _to_dict(served: Served, nodes: int, edges: int) -> dict[str, object]:
    schema = served.hin.schema
    return {
        "name": served.name,
        "nodes": nodes,
        "edges": edges,
        "node_types": list(schema.node_types),
        "relations": [str(relation) for relation in schema.relations],
    }

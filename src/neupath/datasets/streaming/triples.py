"""Edges of all relations in one table, and nodes of all types in another or in the edges alone, as a stream."""

# ruff: noqa: S608  the names of tables and columns in statements are made here, never given

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from neupath.datasets.assemble import refuse_unknown_names
from neupath.datasets.faults import empty_word
from neupath.datasets.sources import TripleTables
from neupath.datasets.streaming.joining import Ends, Joined, StagedType, Terms, join
from neupath.datasets.streaming.nodes import staged_type, write_named, write_selected
from neupath.datasets.streaming.staging import StagedEdges, StagedNodes, Staging
from neupath.schema import Relation
from neupath.store import Filling

_OPEN = 100
"""Types whose nodes are written at a time, each into a file of its own."""


class TripleStream:
    """Numbers the nodes within their types, and joins the edges with all nodes at once, by relation and types."""

    def __init__(self, staging: Staging, source: TripleTables) -> None:
        self._staging = staging
        self._source = source

    def stage(self) -> tuple[list[StagedType], list[Joined]]:
        """Put all tables into the database, and refuse what is wrong with them."""
        edges = self._staging.stage_edges("room.edges", self._source.edges)
        nodes = self._stage_nodes(edges)
        self._staging.refuse_repeats(nodes)
        type_names, relation_names = self._type_names(nodes), self._distinct(edges.name, "relation")
        self._number_nodes(nodes, type_names)
        no_relation = self._staging.first_empty(edges, "relation")
        self._join(edges, nodes, type_names, relation_names)
        no_type = self._staging.first_empty(nodes, "type") if "type" in nodes.kinds else None
        for what, row, place in (("type", no_type, nodes.place), ("relation", no_relation, edges.place)):
            if row is not None:
                raise empty_word(place(row), what)
        refuse_unknown_names(self._source.choices, relation_names)
        joined = self._split(type_names, relation_names)
        return [self._to_type(code, name, nodes) for code, name in enumerate(type_names)], joined

    def _stage_nodes(self, edges: StagedEdges) -> StagedNodes:
        if self._source.nodes is None:
            return self._staging.stage_named("room.nodes", [(edges, "source"), (edges, "target")])
        return self._staging.stage_nodes("room.nodes", self._source.nodes)

    def _type_names(self, nodes: StagedNodes) -> list[str]:
        if "type" in nodes.kinds:
            return self._distinct(nodes.name, "type")
        return [self._source.node_type] if nodes.rows else []

    def _distinct(self, table: str, column: str) -> list[str]:
        """Return the words of a column in order of appearance."""
        query = f"SELECT {column} FROM {table} GROUP BY {column} ORDER BY min(rowid)"
        return [word for (word,) in self._staging.run(query)]

    def _number_nodes(self, nodes: StagedNodes, type_names: Sequence[str]) -> None:
        """Write down the type of each node, and its key among the nodes of that type."""
        kind = "VARCHAR" if pa.types.is_string(nodes.kinds["id"]) else "BIGINT"
        self._staging.run(f"CREATE TABLE room.keys (id {kind}, type INTEGER, key BIGINT)")
        typed = "type IS NOT DISTINCT FROM ?" if "type" in nodes.kinds else "? IS NOT NULL"
        for code, name in enumerate(type_names):
            numbered = f"SELECT id, {code}, row_number() OVER () - 1 FROM {nodes.name} WHERE {typed}"
            self._staging.run(f"INSERT INTO room.keys {numbered}", name)

    def _join(
        self, edges: StagedEdges, nodes: StagedNodes, type_names: Sequence[str], relation_names: Sequence[str]
    ) -> None:
        codes = pa.table({"name": pa.array(relation_names, pa.string()), "code": np.arange(len(relation_names))})
        self._staging.put("room.relations", [codes])
        undirected = [str(relation_names.index(n)) for n in self._source.choices.undirected if n in relation_names]
        terms = Terms(
            kind=f"(r.code * {len(type_names)} + a.type) * {len(type_names)} + b.type",
            undirected=f"a.type = b.type AND r.code IN ({', '.join(undirected) or 'NULL'})",
            join="LEFT JOIN room.relations r ON e.relation = r.name",
        )
        end = Ends("room.keys", nodes.kinds["id"], nodes.rows, "node", "nodes table")
        join(self._staging, "room.joined", edges, (end, end), terms)

    def _split(self, type_names: Sequence[str], relation_names: Sequence[str]) -> list[Joined]:
        """Return the edges of each relation between each two types, in the order of these."""
        choices, joined = self._source.choices, []
        for kind, rows in self._staging.run("SELECT kind, count(*) FROM room.joined GROUP BY kind ORDER BY kind"):
            shape = len(relation_names), len(type_names), len(type_names)
            relation, source, target = (int(code) for code in np.unravel_index(kind, shape))
            name = relation_names[relation]
            if choices.take and name not in choices.take:
                continue
            directed = not (name in choices.undirected and source == target)
            found = Relation(type_names[source], name, type_names[target], directed)
            joined.append(Joined(found, f"(SELECT * FROM room.joined WHERE kind = {kind})", rows))
        return joined

    def _to_type(self, code: int, name: str, nodes: StagedNodes) -> StagedType:
        query = f"(SELECT id, key FROM room.keys WHERE type = {code})"
        named = self._source.nodes is not None and "name" in self._source.nodes.columns
        return staged_type(self._staging, name, query, nodes, typed=False, named=named)

    def write_nodes(self, filling: Filling, types: Sequence[StagedType]) -> None:
        """Write the nodes of all types in one pass over their table, or else as edges named them."""
        selection = self._source.nodes
        if selection is None:
            for number, node_type in enumerate(types):
                write_named(filling, number, node_type)
            return
        for first in range(0, len(types), _OPEN):
            some = dict(enumerate(types[first : first + _OPEN], first))
            write_selected(filling, self._staging, selection, some)

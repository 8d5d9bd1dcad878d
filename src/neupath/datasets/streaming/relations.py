"""A table a relation, and tables of nodes for some types, as a stream."""

from collections.abc import Sequence

from neupath.datasets.faults import table_of
from neupath.datasets.sources import EdgeSource, RelationTables
from neupath.datasets.streaming.joining import Ends, Joined, StagedType, Terms, join
from neupath.datasets.streaming.nodes import staged_type, write_named, write_selected
from neupath.datasets.streaming.staging import StagedEdges, StagedNodes, Staging
from neupath.store import Filling


class RelationStream:
    """Numbers the nodes of each type, and joins each table of edges with those of its two types."""

    def __init__(self, staging: Staging, source: RelationTables) -> None:
        self._staging = staging
        self._source = source
        self._selections = {node.node_type: node.selection for node in source.nodes}

    def stage(self) -> tuple[list[StagedType], list[Joined]]:
        """Put all tables into the database, and refuse what is wrong with them."""
        edges = [
            self._staging.stage_edges(f"room.edges_{number}", [edge.selection])
            for number, edge in enumerate(self._source.edges)
        ]
        nodes = self._stage_nodes(edges)
        types = {}
        for node_type, staged in nodes.items():
            self._staging.refuse_repeats(staged)
            types[node_type] = self._to_type(node_type, staged)
        joined = [self._join(number, edge, edges[number], types) for number, edge in enumerate(self._source.edges)]
        return list(types.values()), joined

    def _stage_nodes(self, edges: Sequence[StagedEdges]) -> dict[str, StagedNodes]:
        nodes: dict[str, StagedNodes] = {}
        for node_type, selection in self._selections.items():
            nodes[node_type] = self._staging.stage_nodes(f"room.ids_{len(nodes)}", selection)
        ends = [
            (node_type, staged, column)
            for edge, staged in zip(self._source.edges, edges, strict=True)
            for node_type, column in ((edge.relation.source, "source"), (edge.relation.target, "target"))
        ]
        for node_type in dict.fromkeys(end for end, _, _ in ends if end not in nodes):
            columns = [(staged, column) for end, staged, column in ends if end == node_type]
            nodes[node_type] = self._staging.stage_named(f"room.ids_{len(nodes)}", columns)
        return nodes

    def _to_type(self, node_type: str, staged: StagedNodes) -> StagedType:
        query = f"(SELECT id, rowid AS key FROM {staged.name})"  # noqa: S608
        selection = self._selections.get(node_type)
        typed = selection is not None and selection.file.is_parquet
        named = selection is not None and "name" in selection.columns
        return staged_type(self._staging, node_type, query, staged, typed=typed, named=named)

    def _join(self, number: int, edge: EdgeSource, staged: StagedEdges, types: dict[str, StagedType]) -> Joined:
        first, second = (
            Ends(types[end].query, types[end].kind, types[end].count, end, table_of(end))
            for end in (edge.relation.source, edge.relation.target)
        )
        name = f"room.joined_{number}"
        undirected = "false" if edge.relation.directed else "true"
        join(self._staging, name, staged, (first, second), Terms(undirected=undirected))
        return Joined(edge.relation, name, staged.rows)

    def write_nodes(self, filling: Filling, types: Sequence[StagedType]) -> None:
        """Write the nodes of each type: from their table, or else as edges named them."""
        for number, node_type in enumerate(types):
            selection = self._selections.get(node_type.node_type)
            if selection is None:
                write_named(filling, number, node_type)
            else:
                write_selected(filling, self._staging, selection, {number: node_type})

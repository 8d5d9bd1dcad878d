"""HIN: an immutable typed graph, with the nodes of each type and one sparse matrix per relation."""

import re
from collections import ChainMap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from html import escape
from itertools import accumulate
from pathlib import PurePath
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack
from weakref import WeakValueDictionary

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array

from neupath._runtime.disk_cache import DiskCache
from neupath.errors import GraphError, MetaPathError, MissingExtraError, NodeError, QueryError, excerpt, listed
from neupath.graph.metapath import Link, MetaPath, Relation, Schema
from neupath.graph.name_search import Match, search_types
from neupath.graph.nodes import Id, Mask, NodeMatch, NodeRef, Nodes, Rows, in_lines, one_line

Duplicates = Literal["count", "drop", "error"]
Floats = NDArray[np.float64]
MOST_KINDS = 20_000
"""The most node types and the most relations of a graph that is read. Wikidata has 12,000 kinds of statements."""
if TYPE_CHECKING:
    from hashlib import _Hash

    import networkx as nx
    from torch_geometric.data import HeteroData

    from neupath.graph.conditions import Filter, Records
    from neupath.graph.refinement import RefinementOptions

    Csr = csr_array[np.float64]
else:
    Csr = csr_array  # older scipy cannot subscript it


@dataclass(frozen=True)
class Edges:
    """The edges of one relation as rows: shape (number of edges,) each. No weights means 1 for every edge.

    `attributes` is a table with a row per edge, for conditions and weights along a meta-path; an edge's weight is one
    of its attributes already, called `weight`.
    """

    relation: Relation
    sources: Rows
    targets: Rows
    weights: Floats | None = None
    attributes: pa.Table = field(default_factory=lambda: pa.table({}))


@dataclass(frozen=True)
class NodeNumbering:
    """One numbering of all nodes, type after type in schema order: node `first(t) + row` is a row of type t.

    `starts` are the first numbers of the types, and the total.

    >>> numbering = NodeNumbering.of({"author": 5, "paper": 3})
    >>> numbering.first("paper"), numbering.rows("paper"), numbering.total
    (5, slice(5, 8, None), 8)
    """

    node_types: tuple[str, ...]
    starts: tuple[int, ...]

    @classmethod
    def of(cls, sizes: Mapping[str, int]) -> "NodeNumbering":
        return cls(tuple(sizes), (0, *accumulate(sizes.values())))

    @property
    def total(self) -> int:
        return self.starts[-1]

    def first(self, node_type: str) -> int:
        return self.starts[self.node_types.index(node_type)]

    def rows(self, node_type: str) -> slice:
        position = self.node_types.index(node_type)
        return slice(self.starts[position], self.starts[position + 1])

    def types(self) -> Rows:
        """Return the position in `node_types` of each node's type; shape (total,)."""
        return np.repeat(np.arange(len(self.node_types)), np.diff(self.starts)).astype(np.int64)


_MOST_SHOWN = 40  # node types and relations that a notebook shows


@dataclass(frozen=True, eq=False, repr=False)
class HIN:
    """A heterogeneous information network: typed nodes and typed, weighted edges. It never changes.

    `load` reads one from files, and `HIN.build` makes one of nodes and edges.

    Parameters
    ----------
    schema
        The node types and relations.
    nodes
        The nodes of each type.
    matrices
        The weights of each relation's edges; shape (nodes of its source type, nodes of its target type).
    notes
        What the reader of the graph wants its user to know, such as a file that it left out.
    edge_tables
        The single edges of each relation whose edges have attributes, parallel ones apart, in the order they were given
        and with their weights; an undirected relation lists each edge once. The other relations have a matrix alone.
    disk_cache
        Where arrays that are computed of this graph stay for the next process, if anywhere; see `engine.cache`.

    >>> from neupath.io import load
    >>> hin = load("toy")
    >>> hin.num_nodes("author"), hin.metapath("APVPA").source
    (5, 'author')
    """

    schema: Schema
    nodes: Mapping[str, Nodes]
    matrices: Mapping[Relation, Csr]
    notes: tuple[str, ...] = ()
    edge_tables: Mapping[Relation, Edges] = field(default_factory=dict)
    disk_cache: DiskCache | None = field(default=None, repr=False)
    _transposes: dict[Relation, Csr] = field(default_factory=dict, repr=False)
    _degrees: dict[str, Rows] = field(default_factory=dict, repr=False)

    @classmethod
    def build(
        cls,
        nodes: Iterable[Nodes],
        edges: Iterable[Edges],
        *,
        duplicates: Duplicates = "count",
        abbreviations: Mapping[str, str] | None = None,
        notes: Sequence[str] = (),
    ) -> "HIN":
        """Make a graph of nodes and edges.

        Parameters
        ----------
        nodes
            The nodes of each type.
        edges
            The edges of each relation. An undirected relation lists each edge once, in either direction.
        duplicates
            Parallel edges add up their weights ("count"), keep the first one's ("drop"), or are an error ("error").
        abbreviations
            Letters that stand for node types in meta-paths, besides their initials.
        notes
            What the user should know about how the graph was read.

        >>> people = Nodes("person", pa.array(["Ann", "Bob"]))
        >>> knows = Edges(Relation("person", "knows", "person"), np.array([0]), np.array([1]))
        >>> HIN.build([people], [knows]).num_edges(knows.relation)
        1
        """
        check_duplicates(duplicates)
        by_type: dict[str, Nodes] = {}
        for each in nodes:
            if by_type.setdefault(each.node_type, each) is not each:
                raise GraphError(f"nodes of type {each.node_type!r} are given twice; give each type once")
        all_edges = list(edges)
        check_counts(len(by_type), len(all_edges))
        schema = Schema(tuple(by_type), tuple(e.relation for e in all_edges), abbreviations or {})
        matrices = _read_only({e.relation: _to_matrix(e, by_type, duplicates) for e in all_edges})
        tables = {e.relation: _to_table(e, by_type, duplicates) for e in all_edges if e.attributes.num_columns}
        return cls(schema, MappingProxyType(by_type), matrices, tuple(notes), MappingProxyType(tables))

    def __reduce__(self) -> tuple[object, ...]:
        packed = self.matrices.packed if isinstance(self.matrices, _PackedMatrices) else self.matrices
        tables = dict(self.edge_tables)
        return _restore, (self.schema, dict(self.nodes), dict(packed), self.notes, tables, self.disk_cache)

    def __repr__(self) -> str:
        counts = [f"{node_type} {len(nodes):,}" for node_type, nodes in self.nodes.items()]
        names = ", ".join(counts[:6]) + (f" and {len(counts) - 6} more types" if len(counts) > 6 else "")
        count = len(self.schema.relations)
        return in_lines(f"<HIN: {names}; {count} relation{'s' * (count != 1)}>")

    def _repr_html_(self) -> str:
        types = [
            (node_type, f"{len(nodes):,}", ", ".join(nodes.attributes.column_names))
            for node_type, nodes in self.nodes.items()
        ]
        relations = [(relation, f"{self.num_edges(relation):,}") for relation in self.schema.relations[:_MOST_SHOWN]]
        return html_table(("node type", "nodes", "attributes"), types) + html_table(("relation", "edges"), relations)

    @cached_property
    def numbering(self) -> NodeNumbering:
        return NodeNumbering.of({node_type: len(self.nodes[node_type]) for node_type in self.schema.node_types})

    def num_nodes(self, node_type: str) -> int:
        return len(self.nodes[self.schema.node_type(node_type)])

    def num_edges(self, relation: Relation | str) -> int:
        """Count the pairs of nodes that a relation joins, an undirected pair once; a name of a relation will do."""
        if not isinstance(relation, Relation) or relation not in self.matrices:
            relation = self.schema.relation(str(relation))
        matrix = self.matrices[relation]
        if relation.directed:
            return int(matrix.nnz)
        loops = int(np.count_nonzero(matrix.diagonal()))
        return (int(matrix.nnz) - loops) // 2 + loops

    @property
    def parallel_relations(self) -> frozenset[Relation]:
        """The relations with parallel edges that are kept apart, because they have attributes."""
        return frozenset(
            relation for relation, own in self.edge_tables.items() if len(own.sources) > self.num_edges(relation)
        )

    def metapath(self, text: str, **options: "Unpack[RefinementOptions]") -> MetaPath:
        """Read a meta-path, and check that its conditions fit the nodes and edges of the graph.

        Parameters
        ----------
        text
            Such as "APA", "author-paper[year >= 2020]-author" or "user -rates[rating >= 4]-> film".
        options
            Weights of edges, and a time window (`Refinement`): they become conditions and weights of the meta-path.

        """
        if not isinstance(text, str):
            raise QueryError(
                f"a meta-path is a text such as 'author-paper-author', got {one_line(repr(text))}", parameter="metapath"
            )
        try:
            metapath = MetaPath.parse(self.schema, text)
        except MetaPathError as error:
            if not (hint := self._attributes_among(text)):
                raise
            raise MetaPathError(f"{error.args[0]}{hint}", parameter=error.parameter, allowed=error.allowed) from error
        if options:
            from neupath.graph.refinement import refinement_of  # takes a while to import

            metapath = refinement_of(**options).apply(self, metapath)
        if metapath.is_filtered:
            self.check_filters(metapath)
        return metapath

    def _attributes_among(self, text: str) -> str:
        """Say which word of a meta-path is no node type but an attribute, as the columns of a wide table are."""
        words = {word.strip().lower() for word in re.split(r"<?-+>?", text)}
        for node_type, nodes in self.nodes.items():
            for name in nodes.attributes.column_names:
                if name.lower() in words - {each.lower() for each in self.schema.node_types}:
                    return (
                        f"; {name!r} is an attribute of {node_type}, and 'A column of a node table' in "
                        f"docs/your-data.md says how to make it a node type"
                    )
        return ""

    def check_filters(self, metapath: MetaPath) -> None:
        """Raise if a meta-path has conditions on attributes, values or nodes that the graph does not have."""
        for node_type, node_filter in zip(metapath.node_types, metapath.filters, strict=True):
            if node_filter is not None:
                node_filter.check(self.nodes[node_type])
        for link in {link: None for step in metapath.steps for link in step.links}:
            if link.edge_filter is not None:
                link.edge_filter.check(self.edge_records(link.relation))

    def degrees(self, node_type: str) -> Rows:
        """Count the edges of each node of a type, over all relations; shape (nodes,).

        >>> from neupath.io import load
        >>> load("toy").degrees("venue").tolist()
        [56, 22, 2, 1]
        """
        if node_type not in self._degrees:
            degrees = np.zeros(self.num_nodes(node_type), dtype=np.int64)
            for relation in self.schema.relations:
                if node_type not in (relation.source, relation.target):
                    continue
                sources, targets = self._edge_counts(relation)
                if relation.source == node_type:
                    degrees += sources
                if relation.target == node_type and (relation.directed or relation.source != node_type):
                    degrees += targets
            degrees.flags.writeable = False
            self._degrees[node_type] = degrees
        return self._degrees[node_type]

    def _edge_counts(self, relation: Relation) -> tuple[Rows, Rows]:
        """Count the edges of each source and each target; a live graph need not build its matrices for it."""
        count: Callable[[Relation], tuple[Rows, Rows]] | None = getattr(self.matrices, "edge_counts", None)
        return edge_counts(self.matrices[relation]) if count is None else count(relation)

    def edge_records(self, relation: Relation) -> "EdgeRecords":
        """Return the edges of a relation with what conditions on them can be about."""
        table = self.edge_tables.get(relation)
        if table is not None and table.weights is not None:
            sources, targets = table.sources, table.targets
            return EdgeRecords(
                relation, table.weights, table.attributes, lambda row: (sources[row], targets[row]), self.nodes
            )
        matrix = self.matrices[relation]

        def ends(entry: int) -> tuple[int, int]:
            return int(np.searchsorted(matrix.indptr, entry, side="right")) - 1, int(matrix.indices[entry])

        return EdgeRecords(relation, matrix.data, pa.table({}), ends, self.nodes)

    def matrix(self, link: Link) -> Csr:
        """Return the weights of a link's edges; shape (nodes of its source type, nodes of its target type).

        Those of a link with filters are a derived matrix, computed at each call: `engine.products` caches it.
        """
        if link.is_filtered:
            return self._filtered(link)
        if not link.reverse:
            return self.matrices[link.relation]
        if link.relation not in self._transposes:
            self._transposes[link.relation] = freeze(self.matrices[link.relation].T.tocsr())
        return self._transposes[link.relation]

    def _filtered(self, link: Link) -> Csr:
        if link.reverse:
            return freeze(self._filtered(link.reversed()).T.tocsr())
        matrix = self.matrices[link.relation]
        if link.edge_filter is not None:
            matrix = self._filtered_edges(link.relation, link.edge_filter)
        rows, columns = LinkFilter(link, self.nodes).ends
        return _scaled(matrix, rows, columns)

    def _filtered_edges(self, relation: Relation, edge_filter: "Filter") -> Csr:
        weights = _edge_weights(edge_filter, self.edge_records(relation))
        table = self.edge_tables.get(relation)
        if table is not None:
            edges = Edges(relation, table.sources, table.targets, weights)
            filtered = _to_matrix(edges, self.nodes, "count")
            return filtered.unpack() if isinstance(filtered, _NonEmptyRows) else filtered
        matrix = self.matrices[relation]
        return csr_array((weights, matrix.indices, matrix.indptr), shape=matrix.shape)

    def with_matrices(self, changed: Mapping[Relation, Csr]) -> "HIN":
        """Return a graph of the same nodes whose edges differ in some relations; the others are shared.

        The changed relations have no edge table: their edges have no attributes but their weight.
        """
        tables = {relation: table for relation, table in self.edge_tables.items() if relation not in changed}
        return HIN(self.schema, self.nodes, ChainMap(dict(changed), self.matrices), self.notes, tables)  # type: ignore[arg-type]

    def row(self, node_type: str, query: NodeRef) -> int:
        """Return the row of the node with this id or name."""
        row = self.nodes[node_type].look_up(query)
        return int(self.rows(node_type, [query])[0]) if row is None else row

    def rows(self, node_type: str, queries: Sequence[NodeRef]) -> Rows:
        """Return the row of each query, an id or a name of nodes of a type; the error says if it is of another type."""
        try:
            return self.nodes[node_type].find_many(queries)
        except NodeError as error:
            others = [name for name in self.nodes if name != node_type and error.query is not None]
            fitting = [name for name in others if self._has(name, str(error.query))]
            if not fitting:
                raise
            raise NodeError(
                f"{error.query!r} is a node of type {' and '.join(fitting)}, and here one of type {node_type} is "
                f"needed; give a {node_type}, or start from {fitting[0]}"
            ) from error

    def _has(self, node_type: str, query: str) -> bool:
        try:
            return len(self.nodes[node_type].find_many([query], exact=True)) > 0
        except NodeError:
            return False

    def find(self, text: str, k: int = 10, *, node_type: str | None = None) -> list[NodeMatch]:
        """Find the k nodes whose name or id matches a text best, over all types, whatever its case and accents.

        First those that equal the text, then those that begin with it, that contain it and, where these are few, those
        that are spelled like it. Of those that match equally well, such as nodes of one name, the one with more edges
        comes first.

        Parameters
        ----------
        text
            A name or an id, or a part of one; an empty text matches all nodes.
        k
            How many nodes to return at most.
        node_type
            Search the nodes of this type only.

        >>> from neupath.io import load
        >>> [(node.node_type, node.id, node.match) for node in load("toy").find("sigmd", 1)]
        [('venue', 'SIGMOD', 'spelling')]
        """
        if not isinstance(text, str):
            raise QueryError(f"‹text› is {one_line(repr(text))}; give a text to search for", parameter="text")
        if k < 1:
            raise QueryError(f"‹k› is {k}; find at least 1 node", parameter="k")
        types = self.nodes if node_type is None else [self.schema.node_type(node_type)]
        _, found = search_types({name: [self.nodes[name].name_search] for name in types}, text, k, degrees=self.degrees)
        return [self.matched(name, row, match) for name, row, match in found]

    def matched(self, node_type: str, row: int, match: Match) -> NodeMatch:
        """Describe a node that matches a text."""
        nodes = self.nodes[node_type]
        return NodeMatch(node_type, nodes.id(row), nodes.name(row), match, int(self.degrees(node_type)[row]))

    def to_networkx(self) -> "nx.MultiDiGraph[Any]":
        """Return the graph as a NetworkX graph with (type, id) as nodes, and names and attributes as their data."""
        return to_networkx(self)

    def to_pyg(self) -> "HeteroData":
        """Return the graph as a `torch_geometric.data.HeteroData`, with the ids and names of its nodes."""
        return to_pyg(self)

    def to_dgl_dict(self) -> "DGLDict":
        """Return the graph as dictionaries for `dgl.heterograph`, with weights, ids and names."""
        return to_dgl_dict(self)

    def find_type(self, ids: Sequence[NodeRef], what: str) -> str:
        """Find the one node type that has all these ids or names; `what` names them in errors."""
        fitting = self.types_with(ids, f"all nodes of {what}")
        if len(fitting) == 1:
            return fitting[0]
        raise QueryError(
            f"{what} could be of type {' or '.join(fitting)}; say which with ‹node_type›",
            parameter="node_type",
            allowed=fitting,
        )

    def types_with(self, ids: Sequence[NodeRef], what: str) -> list[str]:
        """Find the node types that have all these ids or names, at least one; `what` names them in the error.

        Case and accents only matter where some type has them as they are written.
        """
        distinct = list(dict.fromkeys(ids))
        reasons: list[str] = []
        for exact in (True, False):
            fitting, reasons = [], []
            for name, nodes in self.nodes.items():
                try:
                    nodes.find_many(distinct, exact=exact)
                    fitting.append(name)
                except NodeError as error:
                    reasons.append(str(error))
            if fitting:
                return fitting
        raise NodeError(f"no node type has {excerpt(what, 0)}: {listed(reasons, 2)}")

    def candidates(
        self, node_type: str, *, among: Sequence[NodeRef] | None = None, where: str | Sequence[str] = ()
    ) -> Mask | None:
        """Mark the nodes that a filter leaves: given ids or names, and attribute conditions; None means all."""
        conditions = _conditions_of(where)
        if among is None and not conditions:
            return None
        nodes = self.nodes[self.schema.node_type(node_type)]
        mask = np.ones(len(nodes), dtype=np.bool_) if among is None else nodes.among(among)
        for condition in conditions:
            mask = mask & nodes.where(condition)
        return mask


def check_graph(hin: object) -> None:
    """Raise if something that is not a loaded graph, such as its path, was given for one."""
    if not isinstance(hin, HIN):
        load = f"neupath.load({hin!r})" if isinstance(hin, str | PurePath) else "neupath.load(…)"
        raise QueryError(
            f"‹hin› is {one_line(repr(hin))}, which is no loaded graph; give what {one_line(load)} returns",
            parameter="hin",
        )


def _conditions_of(where: Any) -> list[Any]:
    """Return conditions as a list; raise if they are something else, such as values by attribute."""
    if not where and not isinstance(where, str | Mapping):
        return []
    from neupath.graph.conditions import Comparison, Condition  # takes a while to import

    conditions = [where] if isinstance(where, str | Condition) else where
    if isinstance(conditions, Mapping):
        meant = [str(Comparison(str(name), "=", value)) for name, value in conditions.items()]
        such = " and ".join(meant) or "year >= 2000"
        raise QueryError(f"‹where› is {where!r}; write a condition as a text, such as {such!r}", parameter="where")
    if not isinstance(conditions, Sequence) or not all(isinstance(each, str | Condition) for each in conditions):
        raise QueryError(
            f"‹where› is {where!r}; write a condition as a text, such as 'year >= 2000', or several in a list",
            parameter="where",
        )
    return list(conditions)


def html_table(header: Sequence[str], rows: Sequence[Sequence[object]], caption: str = "") -> str:
    """Return a table for a notebook: the first rows, with all texts as texts.

    >>> html_table(["node"], [["<b>"]])
    '<table><tr><th>node</th></tr><tr><td>&lt;b&gt;</td></tr></table>'
    """

    def line(kind: str, cells: Sequence[object]) -> str:
        return f"<tr>{''.join(f'<{kind}>{escape(one_line(cell, 200))}</{kind}>' for cell in cells)}</tr>"

    title = f"<caption>{escape(one_line(caption, 500))}</caption>" if caption else ""
    more = f"<p>and {len(rows) - _MOST_SHOWN:,} more</p>" if len(rows) > _MOST_SHOWN else ""
    return f"<table>{title}{line('th', header)}{''.join(line('td', row) for row in rows[:_MOST_SHOWN])}</table>{more}"


def _restore(
    schema: Schema,
    nodes: dict[str, Nodes],
    matrices: "dict[Relation, Csr | _NonEmptyRows]",
    notes: tuple[str, ...],
    edge_tables: dict[Relation, Edges],
    disk_cache: DiskCache | None,
) -> HIN:
    for matrix in matrices.values():
        freeze(matrix.matrix if isinstance(matrix, _NonEmptyRows) else matrix)
    return HIN(schema, MappingProxyType(nodes), _read_only(matrices), notes, MappingProxyType(edge_tables), disk_cache)


# ---- Derived relations ---------------------------------------------------------------------------
@dataclass(frozen=True)
class EdgeRecords:
    """The edges of a relation with their attributes and their `weight`, for conditions and expressions.

    Where a relation has no edge table, parallel edges are one, and their weight is the sum.
    """

    relation: Relation
    weights: Floats
    attributes: pa.Table
    ends: Callable[[int], tuple[int, int]]  # the rows of an edge's two nodes
    nodes: Mapping[str, Nodes]

    @property
    def title(self) -> str:
        return f"relation {self.relation.name!r}"

    def __len__(self) -> int:
        return len(self.weights)

    def column_names(self) -> list[str]:
        return ["weight", *self.attributes.column_names]

    def column(self, name: str) -> pa.Array | pa.ChunkedArray:
        return pa.array(self.weights) if name == "weight" else self.attributes[name]

    def describe(self, row: int) -> str:
        source, target = self.ends(row)
        ids = self.nodes[self.relation.source].id(source), self.nodes[self.relation.target].id(target)
        return f"the edge {ids[0]!r} to {ids[1]!r} of '{self.relation}'"

    def among(self, ids: Sequence[Id]) -> Mask:
        raise QueryError(f"edges have no names, so {listed(map(str, ids))} cannot be among those of {self.title}")


def end_weights(node_filter: "Filter", nodes: "Records") -> Mask | Floats:
    """Return by what the edges at each node are multiplied: 0 where it does not meet the condition.

    A path that passes through a node has two edges there, so each is multiplied by the root of the node's weight.
    """
    if node_filter.weight is None:
        return np.ones(len(nodes), dtype=np.bool_) if node_filter.where is None else node_filter.where.mask(nodes)
    return np.sqrt(node_filter.weights(nodes))


def _edge_weights(edge_filter: "Filter", edges: EdgeRecords) -> Floats:
    """Return the weight of each edge: its own, or that of an expression; 0 where it does not meet the condition."""
    weights = edge_filter.weights(edges)
    return weights if edge_filter.weight is not None else weights * edges.weights


class LinkFilter:
    """The filters of a link over the nodes of a graph: what single edges with known weights count for.

    Parameters
    ----------
    link
        The link; edges have no attributes but their weight here.
    nodes
        The nodes of each type.
    """

    def __init__(self, link: Link, nodes: Mapping[str, Nodes]) -> None:
        self._link, self._nodes = link, nodes
        source, target = (
            None if end is None else end_weights(end, nodes[node_type])
            for end, node_type in ((link.source_filter, link.source), (link.target_filter, link.target))
        )
        self.ends = source, target

    def grow(self, nodes: Mapping[str, Nodes]) -> None:
        """Follow nodes that are new at the end of their types; raise if a pinned text may mean one of them."""
        from neupath.graph.conditions import AddedNodes

        self._nodes = nodes
        filters = (self._link.source_filter, self._link.source), (self._link.target_filter, self._link.target)
        ends = []
        for known, (own, node_type) in zip(self.ends, filters, strict=True):
            if known is None or own is None or len(known) == len(nodes[node_type]):
                ends.append(known)
            else:
                new = AddedNodes(nodes[node_type], slice(len(known), None))
                ends.append(np.concatenate([known, end_weights(own, new)]))
        self.ends = ends[0], ends[1]

    def weights(self, rows: Rows, columns: Rows, weights: Floats) -> Floats:
        """Return the weights that edges count with, from rows to columns as the link is walked; 0 leaves one out."""
        if self._link.edge_filter is not None:
            ends = (columns, rows) if self._link.reverse else (rows, columns)
            records = EdgeRecords(
                self._link.relation, weights, pa.table({}), lambda row: (ends[0][row], ends[1][row]), self._nodes
            )
            weights = np.where(weights > 0, _edge_weights(self._link.edge_filter, records), 0.0)
        return self._at_ends(rows, columns, weights)

    def weight_between(self, row: int, column: int, edges: Edges) -> float:
        """Return the weight that the single edges of one pair count with, added up in their order."""
        assert edges.weights is not None
        own = edges.weights
        if self._link.edge_filter is not None and len(own):
            records = EdgeRecords(
                self._link.relation,
                own,
                edges.attributes,
                lambda at: (edges.sources[at], edges.targets[at]),
                self._nodes,
            )
            own = _edge_weights(self._link.edge_filter, records)
        total = np.array([sum(own.tolist(), 0.0)])
        return float(self._at_ends(np.array([row]), np.array([column]), total)[0])

    def _at_ends(self, rows: Rows, columns: Rows, weights: Floats) -> Floats:
        for end, places in zip(self.ends, (rows, columns), strict=True):
            weights = weights if end is None else weights * end[places]
        return weights


def _scaled(matrix: Csr, rows: Mask | Floats | None, columns: Mask | Floats | None) -> Csr:
    """Return diag(rows)·matrix·diag(columns) without its zeros."""
    data = matrix.data
    if rows is not None:
        data = data * np.repeat(rows, np.diff(matrix.indptr))
    if columns is not None:
        data = data * columns[matrix.indices]
    kept = data > 0
    counts = np.zeros(len(kept) + 1, dtype=np.int64)
    np.cumsum(kept, out=counts[1:])
    return freeze(csr_array((data[kept], matrix.indices[kept], counts[matrix.indptr]), shape=matrix.shape))


# ---- Matrices with few entries -------------------------------------------------------------------
_ROWS_PER_ENTRY, _FEW_ROWS = 16, 1024
"""A matrix with more rows than this per entry, and than this in all, is kept without its empty rows."""


@dataclass(frozen=True)
class _NonEmptyRows:
    """A matrix of `height` rows: those that may have entries, and which they are."""

    rows: Rows
    matrix: Csr
    height: int

    def unpack(self) -> Csr:
        counts = np.zeros(self.height + 1, dtype=np.int64)
        counts[self.rows + 1] = np.diff(self.matrix.indptr)
        parts = self.matrix.data, self.matrix.indices, np.cumsum(counts)
        return freeze(csr_array(parts, shape=(self.height, self.matrix.shape[1])))


class _PackedMatrices(Mapping[Relation, Csr]):
    """The matrix of each relation; those kept without their empty rows are made when asked for, while anyone has them.

    A matrix takes 4 bytes per row even where it has no entries. A knowledge graph of 15,000 relations and 30,000 nodes
    would take 2 GB for that alone.
    """

    def __init__(self, packed: Mapping[Relation, "Csr | _NonEmptyRows"]) -> None:
        self.packed = packed
        self._unpacked: WeakValueDictionary[Relation, Csr] = WeakValueDictionary()

    def __getitem__(self, relation: Relation) -> Csr:
        matrix = self.packed[relation]
        if not isinstance(matrix, _NonEmptyRows):
            return matrix
        unpacked = self._unpacked.get(relation)
        if unpacked is None:
            unpacked = self._unpacked[relation] = matrix.unpack()
        return unpacked

    def __iter__(self) -> Iterator[Relation]:
        return iter(self.packed)

    def __len__(self) -> int:
        return len(self.packed)


def _read_only(matrices: "Mapping[Relation, Csr | _NonEmptyRows]") -> Mapping[Relation, Csr]:
    whole = {relation: matrix for relation, matrix in matrices.items() if not isinstance(matrix, _NonEmptyRows)}
    return MappingProxyType(whole) if len(whole) == len(matrices) else _PackedMatrices(matrices)


def index_type(shape: tuple[int, int], entries: int) -> np.dtype[Any]:
    """Return the type of a matrix's indices: 32 bits where they fit, and 64 where a number of 2³¹ or more occurs.

    >>> str(index_type((5, 5), 2**31 - 1)), str(index_type((5, 5), 2**31))
    ('int32', 'int64')
    """
    return np.dtype(np.int32 if max(*shape, entries) < 2**31 else np.int64)


def freeze(matrix: Csr) -> Csr:
    """Sort a matrix's indices, as 32 bits where they fit, and make its arrays read-only; returns the same matrix."""
    matrix.sort_indices()
    kind = index_type(matrix.shape, matrix.nnz)
    if kind == np.int32:
        matrix.indices, matrix.indptr = matrix.indices.astype(kind, copy=False), matrix.indptr.astype(kind, copy=False)
    for array in (matrix.data, matrix.indices, matrix.indptr):
        array.flags.writeable = False
    return matrix


def edge_counts(matrix: Csr) -> tuple[Rows, Rows]:
    """Count the entries of each row and each column of a matrix.

    >>> [counts.tolist() for counts in edge_counts(csr_array([[1, 1], [0, 1], [0, 0]]))]
    [[2, 1, 0], [1, 2]]
    """
    return np.diff(matrix.indptr).astype(np.int64), np.bincount(matrix.indices, minlength=matrix.shape[1])


def in_both_directions(
    sources: NDArray[Any], targets: NDArray[Any], values: NDArray[Any], directed: bool
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Return edges with their values, those of an undirected relation in both directions.

    >>> [each.tolist() for each in in_both_directions(np.array([0, 1]), np.array([2, 1]), np.array([5.0, 6.0]), False)]
    [[0, 1, 2], [2, 1, 0], [5.0, 6.0, 5.0]]
    """
    if directed:
        return sources, targets, values
    other = sources != targets
    rows, columns = np.concatenate([sources, targets[other]]), np.concatenate([targets, sources[other]])
    return rows, columns, np.concatenate([values, values[other]])


def edges_of(matrix: Csr, directed: bool) -> tuple[Rows, Rows, Floats]:
    """List the edges of a matrix in order, with their weights; those of an undirected relation once."""
    entries = matrix.tocoo()
    rows, columns, weights = entries.row.astype(np.int64), entries.col.astype(np.int64), entries.data
    if directed:
        return rows, columns, weights
    once = rows <= columns
    return rows[once], columns[once], weights[once]


def _to_matrix(edges: Edges, nodes: Mapping[str, Nodes], duplicates: Duplicates) -> "Csr | _NonEmptyRows":
    relation = edges.relation
    sources, targets = nodes[relation.source], nodes[relation.target]
    _check_rows(edges, len(sources), len(targets))
    weights = np.ones(len(edges.sources)) if edges.weights is None else np.asarray(edges.weights, dtype=np.float64)
    _check_weights(relation, weights)
    rows, columns = edges.sources, edges.targets
    if not relation.directed:
        rows, columns = _in_order(rows, columns)
    if duplicates != "count":
        first = first_of_each(rows, columns, len(targets))
        if duplicates == "error" and len(first) < len(rows):
            repeat = int(np.setdiff1d(np.arange(len(rows)), first)[0])
            raise repeated_edge(relation, sources.id(rows[repeat]), targets.id(columns[repeat]), repeat + 1)
        rows, columns, weights = rows[first], columns[first], weights[first]
    else:
        rows, columns, weights = summed_in_order(rows, columns, weights)
    rows, columns, weights = in_both_directions(rows, columns, weights, relation.directed)
    if len(sources) <= max(_FEW_ROWS, _ROWS_PER_ENTRY * len(rows)):
        return _sum_entries(relation, rows, columns, weights, (len(sources), len(targets)))
    filled, places = np.unique(rows, return_inverse=True)
    matrix = _sum_entries(relation, places, columns, weights, (len(filled), len(targets)))
    return _NonEmptyRows(filled, matrix, len(sources))


def _to_table(edges: Edges, nodes: Mapping[str, Nodes], duplicates: Duplicates) -> Edges:
    """Return the edges that make the matrix, one by one: without those of weight 0 and, if asked, without repeats."""
    if "weight" in edges.attributes.column_names:
        raise GraphError(
            f"relation '{edges.relation}' has an attribute called 'weight', which is what the weights themselves are "
            f"called; give it as the weights, or rename it"
        )
    weights = np.ones(len(edges.sources)) if edges.weights is None else np.asarray(edges.weights, dtype=np.float64)
    sources, targets = edges.sources, edges.targets
    kept = np.arange(len(sources), dtype=np.int64)
    if duplicates == "drop":
        ends = (sources, targets) if edges.relation.directed else _in_order(sources, targets)
        kept = first_of_each(*ends, len(nodes[edges.relation.target]))
    kept = kept[weights[kept] > 0]
    parts = (sources, targets, weights) if len(kept) == len(sources) else (sources[kept], targets[kept], weights[kept])
    table = edges.attributes if len(kept) == len(sources) else edges.attributes.take(pa.array(kept))
    return Edges(edges.relation, *parts, table)


def _in_order(rows: Rows, columns: Rows) -> tuple[Rows, Rows]:
    return np.minimum(rows, columns), np.maximum(rows, columns)


def _sum_entries(relation: Relation, rows: Rows, columns: Rows, weights: Floats, shape: tuple[int, int]) -> Csr:
    matrix = coo_array((weights, (rows, columns)), shape=shape).tocsr()
    matrix.eliminate_zeros()  # an edge of weight 0 is no path
    check_sums(relation, matrix.data)
    return freeze(matrix)


def check_sums(relation: Relation, weights: Floats) -> None:
    """Raise if the weights of parallel edges add up to infinity."""
    if not np.isfinite(weights).all():
        raise GraphError(
            f"weights of parallel edges of '{relation}' add up to more than a float can hold; scale them down"
        )


def check_counts(num_types: int, num_relations: int) -> None:
    """Raise if a graph has so many node types or relations that one of its columns must be mistaken for them."""
    for what, number in (("node types", num_types), ("relations", num_relations)):
        if number > MOST_KINDS:
            raise GraphError(
                f"the graph has {number:,} {what}, and at most {MOST_KINDS:,} can be read; check that the right column "
                f"holds the {what}, or leave some out"
            )


def check_duplicates(duplicates: str) -> None:
    """Raise if this is no way to treat parallel edges."""
    if duplicates not in ("count", "drop", "error"):
        raise QueryError(
            f"‹duplicates› is {duplicates!r}; it can be 'count', 'drop' or 'error'", parameter="duplicates"
        )


def repeated_edge(relation: Relation, source: Id, target: Id, number: int) -> GraphError:
    """Return the error for parallel edges that are not allowed."""
    return GraphError(
        f"relation '{relation}' has the edge {source!r} to {target!r} more than once (edge number {number}); "
        f"set ‹duplicates› to 'count' or 'drop' to allow it"
    )


def summed_in_order(rows: Rows, columns: Rows, weights: Floats) -> tuple[Rows, Rows, Floats]:
    """Return each pair once with the sum of its weights, added in the order of the edges.

    Whole numbers that floats add up exactly are left as they are: their sums are the same in any order.
    """
    with np.errstate(over="ignore"):
        is_exact = weights.sum() < 2**53
    if is_exact and not np.any(weights != np.rint(weights)):
        return rows, columns, weights
    order = np.lexsort((columns, rows))
    rows, columns = rows[order], columns[order]
    new = np.ones(len(order), dtype=np.bool_)
    new[1:] = (rows[1:] != rows[:-1]) | (columns[1:] != columns[:-1])
    sums = np.bincount(np.cumsum(new) - 1, weights=weights[order])
    return rows[new], columns[new], sums.astype(np.float64)


def first_of_each(rows: Rows, columns: Rows, width: int) -> Rows:
    """Return, ascending, the positions where a (row, column) pair stands for the first time."""
    pairs = rows.astype(np.int64) * width + columns
    return np.sort(np.unique(pairs, return_index=True)[1]).astype(np.int64)


def _check_rows(edges: Edges, num_sources: int, num_targets: int) -> None:
    if len(edges.sources) != len(edges.targets):
        raise GraphError(
            f"relation '{edges.relation}' has {len(edges.sources):,} sources but {len(edges.targets):,} targets"
        )
    if edges.weights is not None and len(edges.weights) != len(edges.sources):
        raise GraphError(
            f"relation '{edges.relation}' has {len(edges.weights):,} weights for {len(edges.sources):,} edges"
        )
    if edges.attributes.num_columns and len(edges.attributes) != len(edges.sources):
        raise GraphError(
            f"relation '{edges.relation}' has attributes of {len(edges.attributes):,} edges for "
            f"{len(edges.sources):,} edges"
        )
    for rows, count, node_type in (
        (edges.sources, num_sources, edges.relation.source),
        (edges.targets, num_targets, edges.relation.target),
    ):
        if len(rows) and (rows.min() < 0 or rows.max() >= count):
            bad = int(rows.min() if rows.min() < 0 else rows.max())
            raise GraphError(f"relation '{edges.relation}' names {node_type} row {bad}, but there are {count:,} rows")


def _check_weights(relation: Relation, weights: Floats) -> None:
    bad = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if len(bad):
        raise GraphError(
            f"relation '{relation}', edge number {bad[0] + 1}: weight {weights[bad[0]]} is not allowed; "
            f"weights are finite numbers, 0 or more"
        )


def digest_nodes(hin: HIN) -> str:
    """Return a text that differs between graphs with different nodes, or nodes in another order."""
    content = sha256(str([(t, len(nodes)) for t, nodes in hin.nodes.items()]).encode())
    for nodes in hin.nodes.values():
        sink = pa.BufferOutputStream()
        batch = pa.record_batch([nodes.ids], names=["id"])
        with pa.ipc.new_stream(sink, batch.schema) as stream:
            stream.write_batch(batch)
        content.update(sink.getvalue())
    return content.hexdigest()


def digest(hin: HIN) -> str:
    """Return a text that differs between graphs with different nodes, relations, edges, names or attributes."""
    content = sha256(digest_nodes(hin).encode())
    for nodes in hin.nodes.values():
        if nodes.names is not None:
            _update_by_values(content, "name", pa.chunked_array([nodes.names]))
        for name in nodes.attributes.column_names:
            _update_by_values(content, name, nodes.attributes[name])
    for relation, matrix in hin.matrices.items():
        content.update(str(relation).encode())
        for part in (matrix.indptr, matrix.indices, matrix.data):
            content.update(np.ascontiguousarray(part).data)
        if relation in hin.edge_tables:
            _update_digest(content, hin.edge_tables[relation])
    return content.hexdigest()


def _update_digest(content: "_Hash", edges: Edges) -> None:
    for part in (edges.sources, edges.targets, edges.weights):
        content.update(np.ascontiguousarray(part).data)
    from neupath.graph.edge_attributes import to_attributes  # takes a while to import

    attributes = to_attributes(edges.attributes)
    for name in attributes.column_names:
        _update_by_values(content, name, attributes[name])


_PLAIN = (
    pa.types.is_signed_integer,
    pa.types.is_boolean,
    pa.types.is_string,
    pa.types.is_timestamp,
    pa.types.is_date32,
)


def _update_by_values(content: "_Hash", name: str, values: pa.ChunkedArray) -> None:
    """Add an attribute to a digest by its values, however they are stored."""
    from neupath.graph.edge_attributes import value_hashes

    kind = values.type
    if pa.types.is_floating(kind):
        values = values.cast(pa.float64())
    elif not any(is_plain(kind) for is_plain in _PLAIN):
        texts = [None if value is None else str(value) for value in values.to_pylist()]
        values = pa.chunked_array([pa.array(texts, pa.string())])
    content.update(name.encode())
    content.update(np.ascontiguousarray(value_hashes(values)).data)


def mix64(value: Any) -> Any:
    """Scatter the bits of a 64-bit number, or of an array of them; numba can compile it.

    The finaliser of splitmix64 (Steele, Lea, Flood, OOPSLA 2014).

    >>> hex(mix64(np.array([1], dtype=np.uint64))[0])
    '0x5692161d100b05e5'
    """
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


# ---- Graphs as other libraries take them ---------------------------------------------------------
def to_networkx(hin: HIN) -> "nx.MultiDiGraph[Any]":
    """Return the graph as a NetworkX graph with (type, id) as nodes; `from_networkx` reads it back.

    >>> from neupath import load
    >>> to_networkx(load("toy")).number_of_nodes()
    90
    """
    try:
        import networkx as nx
    except ModuleNotFoundError as error:
        raise MissingExtraError("networkx", "networkx") from error
    graph: nx.MultiDiGraph[Any] = nx.MultiDiGraph(written_by="neupath")  # so that no attribute is taken for another
    for kind, nodes in hin.nodes.items():
        _refuse_names(nodes.attributes.column_names, ("type", "id", "name"), f"{kind} nodes", "NetworkX graph")
        columns = {name: nodes.attributes[name].to_pylist() for name in nodes.attributes.column_names}
        for row, node_id in enumerate(nodes.ids.to_pylist()):
            name, values = nodes.name(row), {column: own[row] for column, own in columns.items()}
            values |= {"type": kind, "id": node_id} | ({} if name is None else {"name": name})
            graph.add_nodes_from([((kind, node_id), values)])
    for relation in hin.schema.relations:
        sources, targets = hin.nodes[relation.source].ids.to_pylist(), hin.nodes[relation.target].ids.to_pylist()
        edges = single_edges(hin, relation)
        _refuse_names(edges.attributes.column_names, ("relation", "directed"), f"'{relation}'", "NetworkX graph")
        parts = edges.sources.tolist(), edges.targets.tolist(), np.asarray(edges.weights).tolist()
        rows = edges.attributes.to_pylist() if edges.attributes.num_columns else [{}] * len(edges.sources)
        for row, column, weight, own in zip(*parts, rows, strict=True):
            values = {name: value for name, value in own.items() if value is not None}
            values |= {"relation": relation.name, "weight": weight, "directed": relation.directed}
            graph.add_edges_from([((relation.source, sources[row]), (relation.target, targets[column]), values)])
    return graph


def _refuse_names(attributes: Sequence[str], taken: Sequence[str], owner: str, where: str) -> None:
    """Raise if an attribute has a name that means something else in the graph of another library."""
    for name in taken:
        if name in attributes:
            raise GraphError(
                f"the attribute {name!r} of {owner} cannot be written to a {where}, where neupath keeps its own "
                f"{name!r}; rename it in the source of the graph"
            )


def single_edges(hin: HIN, relation: Relation) -> Edges:
    """Return the edges of a relation, those of an undirected one once; parallel ones apart if they have attributes."""
    if relation in hin.edge_tables:
        return hin.edge_tables[relation]
    return Edges(relation, *edges_of(hin.matrices[relation], relation.directed))


def _edges_both_ways(hin: HIN, relation: Relation) -> Edges:
    """Return the edges of a relation, those of an undirected one in both directions."""
    if relation not in hin.edge_tables:
        entries = hin.matrices[relation].tocoo()
        return Edges(relation, entries.row.astype(np.int64), entries.col.astype(np.int64), entries.data.copy())
    edges = hin.edge_tables[relation]
    if relation.directed:
        return edges
    sources, targets, twice = in_both_directions(edges.sources, edges.targets, np.arange(len(edges.sources)), False)
    return Edges(relation, sources, targets, np.asarray(edges.weights)[twice], edges.attributes.take(pa.array(twice)))


def _attribute_arrays(edges: Edges) -> dict[str, NDArray[Any]]:
    """Return the attributes of edges as NumPy arrays: missing numbers are nan, missing texts None."""
    arrays = {}
    for name in edges.attributes.column_names:
        column = edges.attributes[name].combine_chunks()
        plain = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
        arrays[name] = plain.to_numpy(zero_copy_only=False).copy()
    return arrays


def to_pyg(hin: HIN) -> "HeteroData":
    """Return the graph as a `torch_geometric.data.HeteroData`, with `edge_weight` unless all weights are 1.

    The `ids` of each node type, and its `names` if it has any, are NumPy arrays in the order of the nodes; `load` reads
    them back. Attributes of edges are tensors under their names, or NumPy arrays if they are texts, dates or times.
    """
    try:
        import torch
        from torch_geometric.data import HeteroData
    except ModuleNotFoundError as error:
        raise MissingExtraError("torch_geometric", "torch_geometric") from error
    data = HeteroData()
    for kind, nodes in hin.nodes.items():
        data[kind].num_nodes = len(nodes)
        data[kind].ids = _ids(nodes)
        if nodes.names is not None:
            data[kind].names = _names(nodes)
    for relation in hin.schema.relations:
        edges = _edges_both_ways(hin, relation)
        weights = np.array(edges.weights)
        store = data[relation.source, relation.name, relation.target]
        store.edge_index = torch.from_numpy(np.stack([edges.sources, edges.targets]))
        arrays = _attribute_arrays(edges)
        _refuse_names(list(arrays), ("edge_index", "edge_weight"), f"'{relation}'", "HeteroData")
        if arrays or np.any(weights != 1):  # with attributes always: one of them could be taken for the weight
            store.edge_weight = torch.from_numpy(weights)
        for name, array in arrays.items():
            store[name] = torch.from_numpy(array) if array.dtype.kind in "bif" else array
    return data


class DGLDict(TypedDict):
    """What `dgl.heterograph` takes, `data_dict` and `num_nodes_dict`, and what belongs to its nodes and edges."""

    data_dict: dict[tuple[str, str, str], tuple[Rows, Rows]]
    num_nodes_dict: dict[str, int]
    weights: dict[tuple[str, str, str], Floats]
    attributes: dict[tuple[str, str, str], dict[str, NDArray[Any]]]
    ids: dict[str, NDArray[Any]]
    names: dict[str, NDArray[Any]]


def to_dgl_dict(hin: HIN) -> DGLDict:
    """Return the graph as dictionaries for DGL: `dgl.heterograph(parts["data_dict"], parts["num_nodes_dict"])`.

    The edges of each relation are the rows of their ends; weights and attributes are in the order of the edges, ids and
    names in that of the nodes. An undirected relation has each edge in both directions.

    >>> from neupath import load
    >>> parts = to_dgl_dict(load("toy"))
    >>> parts["num_nodes_dict"]["author"], len(parts["data_dict"]["author", "writes", "paper"][0])
    (5, 81)
    """
    parts = DGLDict(data_dict={}, num_nodes_dict={}, weights={}, attributes={}, ids={}, names={})
    for kind, nodes in hin.nodes.items():
        parts["num_nodes_dict"][kind], parts["ids"][kind] = len(nodes), _ids(nodes)
        if nodes.names is not None:
            parts["names"][kind] = _names(nodes)
    for relation in hin.schema.relations:
        edges, key = _edges_both_ways(hin, relation), (relation.source, relation.name, relation.target)
        parts["data_dict"][key] = edges.sources, edges.targets
        parts["weights"][key] = np.array(edges.weights)
        parts["attributes"][key] = _attribute_arrays(edges)
    return parts


def _ids(nodes: Nodes) -> NDArray[Any]:
    ids: NDArray[Any] = nodes.ids.to_numpy(zero_copy_only=False).copy()
    return ids


def _names(nodes: Nodes) -> NDArray[Any]:
    assert nodes.names is not None
    names: NDArray[Any] = nodes.names.to_numpy(zero_copy_only=False).copy()
    return names

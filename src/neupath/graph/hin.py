"""HIN: an immutable typed graph, with the nodes of each type and one sparse matrix per relation."""

import re
from collections import ChainMap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from html import escape
from itertools import accumulate
from pathlib import PurePath
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
import pyarrow as pa
from scipy.sparse import coo_array, csr_array

from neupath._runtime.disk_cache import DiskCache
from neupath._runtime.lazy_mapping import LazyMapping
from neupath.errors import GraphError, MetaPathError, NodeError, QueryError, excerpt, listed
from neupath.graph.edge_attributes import kind_of, to_attributes, value_hashes
from neupath.graph.edges import (
    Csr,
    Duplicates,
    EdgeIndex,
    EdgeRecords,
    Edges,
    EdgeTables,
    Floats,
    LinkFilter,
    check_duplicates,
    check_sums,
    checked_edges,
    edge_counts,
    edge_weights,
    freeze,
    scaled,
)
from neupath.graph.metapath import Link, MetaPath, Relation, Schema
from neupath.graph.name_search import Match, search_types
from neupath.graph.nodes import Mask, NodeMatch, NodeRef, Nodes, Rows, in_lines, one_line

__all__ = ["HIN", "Csr", "Duplicates", "Edges", "Floats", "NodeNumbering", "digest", "freeze"]
MOST_KINDS = 20_000
"""The most node types and the most relations of a graph that is read. Wikidata has 12,000 kinds of statements."""
if TYPE_CHECKING:
    from hashlib import _Hash

    import networkx as nx
    from torch_geometric.data import HeteroData

    from neupath.graph.conditions import Filter
    from neupath.graph.exports import DGLDict
    from neupath.graph.refinement import RefinementOptions


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
    _indices: dict[Relation, EdgeIndex] = field(default_factory=dict, repr=False)

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
        matrices, tables = {}, {}
        for own in all_edges:
            relation, checked = own.relation, checked_edges(own, by_type, duplicates)
            matrix = checked.matrix((len(by_type[relation.source]), len(by_type[relation.target])))
            check_sums(relation, matrix.data)
            matrices[relation] = _packed(matrix)
            if own.attributes.num_columns:
                tables[relation] = checked
        return cls(schema, MappingProxyType(by_type), _read_only(matrices), tuple(notes), MappingProxyType(tables))

    def __reduce__(self) -> tuple[object, ...]:
        packed = {relation: _packed(matrix) for relation, matrix in self.matrices.items()}
        tables = dict(self.edge_tables)
        return _restore, (self.schema, dict(self.nodes), packed, self.notes, tables, self.disk_cache)

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

    @property
    def without_edges(self) -> str | None:
        """Why this is no graph to follow edges in, as a sentence; None where it is one."""
        return None

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
        for link in dict.fromkeys(metapath.links):
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

    def edges(self, relation: Relation) -> Edges:
        """Return the edges of a relation, those of an undirected one once; parallel ones apart if they have attributes.

        >>> from neupath.io import load
        >>> hin = load("toy")
        >>> len(hin.edges(hin.schema.relation("writes")))
        81
        """
        return self.edge_tables[relation] if relation in self.edge_tables else self.pairs(relation)

    def edge_kinds(self, relation: Relation) -> dict[str, str]:
        """Return what the attributes of a relation's edges are called, and of which kind they are."""
        if relation not in self.edge_tables:
            return {}
        return {column.name: kind_of(column.type) for column in EdgeTables.schema_of(self.edge_tables, relation)}

    def pairs(self, relation: Relation) -> Edges:
        """Return the pairs of nodes that a relation joins in order, each once, with the sum of their weights."""
        return Edges.of(relation, self.matrices[relation])

    def edge_records(self, relation: Relation) -> EdgeRecords:
        """Return the edges of a relation with what conditions on them can be about.

        Without attributes they are the entries of its matrix: those of an undirected relation in both directions.
        """
        edges = self.edge_tables.get(relation)
        if edges is None:
            matrix = self.matrices[relation]
            rows = np.repeat(np.arange(matrix.shape[0], dtype=matrix.indices.dtype), np.diff(matrix.indptr))
            edges = Edges(relation, rows, matrix.indices, matrix.data)  # type: ignore[arg-type]  # narrow integers do
        return EdgeRecords(edges, self.nodes)

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
        return scaled(matrix, rows, columns)

    def _filtered_edges(self, relation: Relation, edge_filter: "Filter") -> Csr:
        matrix = self.matrices[relation]
        weights = edge_weights(edge_filter, self.edge_records(relation).edges, self.nodes)
        if relation in self.edge_tables:
            if relation not in self._indices:
                self._indices[relation] = EdgeIndex.over(self.edge_tables[relation], matrix)
            weights = self._indices[relation].sums(weights)
            check_sums(relation, weights)
        return csr_array((weights, matrix.indices, matrix.indptr), shape=matrix.shape)

    def with_matrices(self, changed: Mapping[Relation, Csr]) -> "HIN":
        """Return a graph of the same nodes whose edges differ in some relations; the others are shared.

        The changed relations have no edge table: their edges have no attributes but their weight.
        """
        tables = {relation: table for relation, table in self.edge_tables.items() if relation not in changed}
        return HIN(self.schema, self.nodes, ChainMap(dict(changed), self.matrices), self.notes, tables)  # type: ignore[arg-type]

    def with_pairs(self, changed: Iterable[Edges]) -> "HIN":
        """Return a graph that has other pairs of nodes in some relations, each pair once."""
        return self.with_matrices({each.relation: each.matrix(self.matrices[each.relation].shape) for each in changed})

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
        from neupath.graph.exports import to_networkx

        return to_networkx(self)

    def to_pyg(self) -> "HeteroData":
        """Return the graph as a `torch_geometric.data.HeteroData`, with the ids and names of its nodes."""
        from neupath.graph.exports import to_pyg

        return to_pyg(self)

    def to_dgl_dict(self) -> "DGLDict":
        """Return the graph as dictionaries for `dgl.heterograph`, with weights, ids and names."""
        from neupath.graph.exports import to_dgl_dict

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


def check_graph(hin: object, *, needs_edges: bool = True) -> None:
    """Raise if something that is not a loaded graph was given for one, such as its path, or nodes alone for edges."""
    if not isinstance(hin, HIN):
        load = f"neupath.load({hin!r})" if isinstance(hin, str | PurePath) else "neupath.load(…)"
        raise QueryError(
            f"‹hin› is {one_line(repr(hin))}, which is no loaded graph; give what {one_line(load)} returns",
            parameter="hin",
        )
    if needs_edges and hin.without_edges is not None:
        raise QueryError(hin.without_edges)


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
    matrices: "dict[Relation, Csr | coo_array]",
    notes: tuple[str, ...],
    edge_tables: dict[Relation, Edges],
    disk_cache: DiskCache | None,
) -> HIN:
    return HIN(schema, MappingProxyType(nodes), _read_only(matrices), notes, MappingProxyType(edge_tables), disk_cache)


# ---- Matrices with few entries -------------------------------------------------------------------
_ROWS_PER_ENTRY, _FEW_ROWS = 16, 1024
"""A matrix with more rows than this per entry, and than this in all, is kept as the coordinates of its entries."""


def _packed(matrix: Csr) -> "Csr | coo_array":
    """Return a matrix as it is kept: one takes 4 bytes per row even where it has no entries.

    A knowledge graph of 15,000 relations and 30,000 nodes would take 2 GB for that alone.
    """
    return matrix.tocoo() if matrix.shape[0] > max(_FEW_ROWS, _ROWS_PER_ENTRY * matrix.nnz) else matrix


def _read_only(packed: "Mapping[Relation, Csr | coo_array]") -> Mapping[Relation, Csr]:
    """Return matrices; those kept as coordinates are made when they are asked for, while anyone has them."""
    for matrix in packed.values():
        if isinstance(matrix, csr_array):
            freeze(matrix)
    if not any(isinstance(matrix, coo_array) for matrix in packed.values()):
        return MappingProxyType(packed)  # type: ignore[arg-type]
    return LazyMapping(packed, lambda relation: _unpacked(packed[relation]), weak=True)


def _unpacked(matrix: "Csr | coo_array") -> Csr:
    return freeze(matrix.tocsr()) if isinstance(matrix, coo_array) else matrix


def check_counts(num_types: int, num_relations: int) -> None:
    """Raise if a graph has so many node types or relations that one of its columns must be mistaken for them."""
    for what, number in (("node types", num_types), ("relations", num_relations)):
        if number > MOST_KINDS:
            raise GraphError(
                f"the graph has {number:,} {what}, and at most {MOST_KINDS:,} can be read; check that the right column "
                f"holds the {what}, or leave some out"
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
    kind = values.type
    if pa.types.is_floating(kind):
        values = values.cast(pa.float64())
    elif not any(is_plain(kind) for is_plain in _PLAIN):
        texts = [None if value is None else str(value) for value in values.to_pylist()]
        values = pa.chunked_array([pa.array(texts, pa.string())])
    content.update(name.encode())
    content.update(np.ascontiguousarray(value_hashes(values)).data)

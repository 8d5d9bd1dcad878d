"""The edges of a relation: the rows of a table, and the matrix that is an index over them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array

from neupath._runtime.lazy_mapping import LazyMapping
from neupath.errors import GraphError, QueryError, listed
from neupath.graph.metapath import Link, Relation
from neupath.graph.nodes import Id, Mask, Nodes, Rows

if TYPE_CHECKING:
    from neupath.graph.conditions import Filter, Records

    Csr = csr_array[np.float64]
else:
    Csr = csr_array  # older scipy cannot subscript it
Duplicates = Literal["count", "drop", "error"]
Floats = NDArray[np.float64]


# ---- Matrices ------------------------------------------------------------------------------------
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


def sorted_entries(rows: Rows, columns: Rows, values: NDArray[Any], shape: tuple[int, int]) -> Csr:
    """Return entries as a matrix sorted by row and column, those of one place apart, in the order they are given.

    It counts by column, then by row, which takes a third of the time of sorting unless most rows are empty.

    >>> sorted_entries(np.array([1, 0, 1]), np.array([2, 0, 2]), np.array([5.0, 6.0, 4.0]), (2, 3)).data.tolist()
    [6.0, 5.0, 4.0]
    """
    if 8 * len(rows) < max(shape):
        order, kind = np.lexsort((columns, rows)), index_type(shape, len(rows))
        starts = np.cumsum(np.bincount(rows + 1, minlength=shape[0] + 1), dtype=kind)
        few: Csr = csr_array((values[order], columns[order].astype(kind), starts), shape=shape)
        return few
    entries = coo_array((values, (rows, columns)), shape=shape)
    entries.has_canonical_format = True  # so that nothing is added up
    matrix: Csr = entries.tocsc().tocsr()
    return matrix


def edge_counts(matrix: Csr) -> tuple[Rows, Rows]:
    """Count the entries of each row and each column of a matrix.

    >>> [counts.tolist() for counts in edge_counts(csr_array([[1, 1], [0, 1], [0, 0]]))]
    [[2, 1, 0], [1, 2]]
    """
    return np.diff(matrix.indptr).astype(np.int64), np.bincount(matrix.indices, minlength=matrix.shape[1])


def mix64(value: Any) -> Any:
    """Scatter the bits of a 64-bit number, or of an array of them; numba can compile it.

    The finaliser of splitmix64 (Steele, Lea, Flood, OOPSLA 2014).

    >>> hex(mix64(np.array([1], dtype=np.uint64))[0])
    '0x5692161d100b05e5'
    """
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


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


# ---- Edges ---------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Edges:
    """The edges of one relation as rows: shape (number of edges,) each. No weights means 1 for every edge.

    An undirected relation lists each edge once, in either direction. `attributes` is a table with a row per edge, for
    conditions and weights along a meta-path; an edge's weight is one of its attributes already, called `weight`.

    >>> knows = Relation("person", "knows", "person", directed=False)
    >>> Edges(knows, np.array([0, 1]), np.array([2, 1]), np.array([3.0, 4.0])).matrix((3, 3)).toarray().tolist()
    [[0.0, 0.0, 3.0], [0.0, 4.0, 0.0], [3.0, 0.0, 0.0]]
    """

    relation: Relation
    sources: Rows
    targets: Rows
    weights: Floats | None = None
    attributes: pa.Table = field(default_factory=lambda: pa.table({}))

    @classmethod
    def of(cls, relation: Relation, matrix: Csr) -> "Edges":
        """List the pairs of nodes that a matrix joins, in order, with their weights."""
        entries = matrix.tocoo()
        pairs = cls(relation, entries.row.astype(np.int64), entries.col.astype(np.int64), entries.data)
        return pairs if relation.directed else pairs.take(pairs.sources <= pairs.targets)

    def __len__(self) -> int:
        return len(self.sources)

    @property
    def known_weights(self) -> Floats:
        """The weight of each edge; shape (number of edges,)."""
        return np.ones(len(self)) if self.weights is None else np.asarray(self.weights, dtype=np.float64)

    @property
    def triplets(self) -> tuple[Rows, Rows, Floats]:
        """The sources, targets and weights."""
        return self.sources, self.targets, self.known_weights

    def take(self, rows: Rows | Mask) -> "Edges":
        """Return some of the edges."""
        if len(rows) == len(self) and (rows.dtype == np.bool_ and rows.all()):
            return self
        attributes = self.attributes
        if attributes.num_columns:
            attributes = attributes.take(pa.array(np.flatnonzero(rows) if rows.dtype == np.bool_ else rows))
        return Edges(self.relation, self.sources[rows], self.targets[rows], self.known_weights[rows], attributes)

    def both_ways(self) -> "Edges":
        """Return the edges with those of an undirected relation in both directions, one after the other."""
        if self.relation.directed:
            return self
        sources, targets, rows = in_both_directions(self.sources, self.targets, np.arange(len(self)), directed=False)
        return replace(self.take(rows), sources=sources, targets=targets)

    def ends_in_order(self) -> tuple[Rows, Rows]:
        """Return the two ends of each edge, as `Relation.pair` does."""
        if self.relation.directed:
            return self.sources, self.targets
        return np.minimum(self.sources, self.targets), np.maximum(self.sources, self.targets)

    def matrix(self, shape: tuple[int, int]) -> Csr:
        """Return the weights by source and target; those of parallel edges are added up in the order of the edges."""
        matrix = sorted_entries(
            *in_both_directions(*self.ends_in_order(), self.known_weights, self.relation.directed), shape
        )
        matrix.sum_duplicates()
        return freeze(matrix)


class EdgeTables(LazyMapping[Relation, Edges]):
    """The edges of relations, made when they are asked for; their attributes are known before."""

    def __init__(self, schemas: Mapping[Relation, pa.Schema], make: Callable[[Relation], Edges]) -> None:
        super().__init__(schemas, make)
        self.schemas = schemas

    @staticmethod
    def schema_of(tables: Mapping[Relation, Edges], relation: Relation) -> pa.Schema:
        """Return the attributes of a relation's edges, without making the table of edges."""
        return tables.schemas[relation] if isinstance(tables, EdgeTables) else tables[relation].attributes.schema


@dataclass(frozen=True)
class EdgeIndex:
    """Where a matrix has each edge: the entry from source to target, and in an undirected relation the one back."""

    entries: Rows
    back: Rows | None
    count: int

    @classmethod
    def over(cls, edges: Edges, matrix: Csr) -> "EdgeIndex":
        """Find the edges in their matrix, which has an entry for each pair that they join and no other."""
        kind = index_type(matrix.shape, len(edges))
        sorted_ = sorted_entries(*edges.ends_in_order(), np.arange(len(edges), dtype=kind), matrix.shape)
        new = np.ones(len(edges), dtype=np.bool_)
        new[1:] = sorted_.indices[1:] != sorted_.indices[:-1]
        new[sorted_.indptr[:-1][np.diff(sorted_.indptr) > 0]] = True
        pairs = np.empty(len(edges), dtype=kind)
        pairs[sorted_.data] = np.cumsum(new, dtype=kind) - kind.type(1)
        if edges.relation.directed:
            return cls(pairs, None, matrix.nnz)
        places = csr_array((np.arange(matrix.nnz), matrix.indices, matrix.indptr), shape=matrix.shape)
        sources = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
        entries = np.flatnonzero(sources <= matrix.indices)[pairs]
        return cls(entries, places.T.tocsr().data[entries], matrix.nnz)

    def sums(self, weights: Floats) -> Floats:
        """Return the sum of some weights of the edges at each entry of the matrix, added in the order of the edges."""
        data = np.bincount(self.entries, weights=weights, minlength=self.count).astype(np.float64)
        if self.back is not None:
            data[self.back] = data[self.entries]
        return data


# ---- Edges as they are given ---------------------------------------------------------------------
def checked_edges(edges: Edges, nodes: Mapping[str, Nodes], duplicates: Duplicates) -> Edges:
    """Return the edges that count: without those of weight 0 and, if asked, without repeats; raise for wrong ones."""
    relation = edges.relation
    sources, targets = nodes[relation.source], nodes[relation.target]
    _check_rows(edges, len(sources), len(targets))
    if "weight" in edges.attributes.column_names:
        raise GraphError(
            f"relation '{relation}' has an attribute called 'weight', which is what the weights themselves are "
            f"called; give it as the weights, or rename it"
        )
    edges = replace(edges, weights=edges.known_weights)
    _check_weights(relation, edges.known_weights)
    if duplicates != "count":
        first = _first_of_each(*edges.ends_in_order(), len(targets))
        if duplicates == "error" and len(first) < len(edges):
            repeat = int(np.setdiff1d(np.arange(len(edges)), first)[0])
            source, target = (int(end[repeat]) for end in edges.ends_in_order())
            raise repeated_edge(relation, sources.id(source), targets.id(target), repeat + 1)
        edges = edges.take(first) if len(first) < len(edges) else edges
    return edges.take(edges.known_weights > 0)


def check_sums(relation: Relation, weights: Floats) -> None:
    """Raise if the weights of parallel edges add up to infinity."""
    if not np.isfinite(weights).all():
        raise GraphError(
            f"weights of parallel edges of '{relation}' add up to more than a float can hold; scale them down"
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


def _first_of_each(rows: Rows, columns: Rows, width: int) -> Rows:
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


# ---- Derived relations ---------------------------------------------------------------------------
@dataclass(frozen=True)
class EdgeRecords:
    """Edges with their attributes and their `weight`, for conditions and expressions."""

    edges: Edges
    nodes: Mapping[str, Nodes]

    @property
    def title(self) -> str:
        return f"relation {self.edges.relation.name!r}"

    def __len__(self) -> int:
        return len(self.edges)

    def column_names(self) -> list[str]:
        return ["weight", *self.edges.attributes.column_names]

    def column(self, name: str) -> pa.Array | pa.ChunkedArray:
        return pa.array(self.edges.known_weights) if name == "weight" else self.edges.attributes[name]

    def describe(self, row: int) -> str:
        relation = self.edges.relation
        source = self.nodes[relation.source].id(int(self.edges.sources[row]))
        target = self.nodes[relation.target].id(int(self.edges.targets[row]))
        return f"the edge {source!r} to {target!r} of '{relation}'"

    def among(self, ids: Sequence[Id]) -> Mask:
        raise QueryError(f"edges have no names, so {listed(map(str, ids))} cannot be among those of {self.title}")


def end_weights(node_filter: "Filter", nodes: "Records") -> Mask | Floats:
    """Return by what the edges at each node are multiplied: 0 where it does not meet the condition.

    A path that passes through a node has two edges there, so each is multiplied by the root of the node's weight.
    """
    if node_filter.weight is None:
        return np.ones(len(nodes), dtype=np.bool_) if node_filter.where is None else node_filter.where.mask(nodes)
    return np.sqrt(node_filter.weights(nodes))


def edge_weights(edge_filter: "Filter", edges: Edges, nodes: Mapping[str, Nodes]) -> Floats:
    """Return the weight of each edge: its own, or that of an expression; 0 where it does not meet the condition."""
    weights = edge_filter.weights(EdgeRecords(edges, nodes))
    return weights if edge_filter.weight is not None else weights * edges.known_weights


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
            edges = Edges(self._link.relation, *ends, weights)
            weights = np.where(weights > 0, edge_weights(self._link.edge_filter, edges, self._nodes), 0.0)
        return self._at_ends(rows, columns, weights)

    def weight_between(self, row: int, column: int, edges: Edges) -> float:
        """Return the weight that the single edges of one pair count with, added up in their order."""
        own = edges.known_weights
        if self._link.edge_filter is not None and len(edges):
            own = edge_weights(self._link.edge_filter, edges, self._nodes)
        total = np.array([sum(own.tolist(), 0.0)])
        return float(self._at_ends(np.array([row]), np.array([column]), total)[0])

    def _at_ends(self, rows: Rows, columns: Rows, weights: Floats) -> Floats:
        for end, places in zip(self.ends, (rows, columns), strict=True):
            weights = weights if end is None else weights * end[places]
        return weights


def scaled(matrix: Csr, rows: Mask | Floats | None, columns: Mask | Floats | None) -> Csr:
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

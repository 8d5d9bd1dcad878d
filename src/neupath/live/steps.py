"""LiveStep: one step of a meta-path over the live edges, with its weights scaled as a measure wants them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from neupath.graph import HIN, Floats
from neupath.live import edge_kernels as kernels
from neupath.live.edges import LiveEdges
from neupath.live.growing import grown
from neupath.live.matrices import Put
from neupath.metapath import Step
from neupath.nodes import Rows
from neupath.schema import Link, Relation


@dataclass(frozen=True)
class Scaling:
    """To which power of its sum each row and each column is scaled; 0 leaves it."""

    rows: float = 0.0
    columns: float = 0.0

    def reversed(self) -> "Scaling":
        return Scaling(self.columns, self.rows)


Pair = tuple[Relation, int, int]
"""The two ends of an edge, by row; an edge of an undirected relation is two pairs."""


class Adjacency:
    """The live edges of a graph by link, each made when it is first asked for, of the base and a log of changes."""

    def __init__(self, hin: HIN, version: int, log: Sequence[Put]) -> None:
        self._hin, self.version, self._log = hin, version, log
        self._edges: dict[Link, LiveEdges] = {}
        self.sizes = {node_type: len(nodes) for node_type, nodes in hin.nodes.items()}

    def edges(self, link: Link) -> LiveEdges:
        """Return the edges of a link as they are now."""
        if link not in self._edges:
            made = LiveEdges(self._hin.matrix(link))
            made.grow(self.sizes[link.source], self.sizes[link.target])
            for pair, weight in pairs_of(self._log):
                _put(made, link, pair, weight)
            self._edges[link] = made
        return self._edges[link]

    def put(self, pair: Pair, weight: float) -> Pair:
        """Set the weight of an edge, whichever way links read it; return its ends."""
        for link, edges in self._edges.items():
            _put(edges, link, pair, weight)
        return pair

    def grow(self, sizes: Mapping[str, int]) -> None:
        """Make room for new nodes."""
        self.sizes = dict(sizes)
        for link, edges in self._edges.items():
            edges.grow(sizes[link.source], sizes[link.target])


def _put(edges: LiveEdges, link: Link, pair: Pair, weight: float) -> None:
    relation, row, column = pair
    if link.relation is relation or link.relation == relation:  # the same object mostly, which is told faster
        edges.put(*((column, row) if link.reverse else (row, column)), weight)


def pairs_of(edges: Sequence[Put]) -> list[tuple[Pair, float]]:
    """Return edges as pairs with their weights, those of an undirected relation both ways."""
    found = []
    for relation, row, column, weight in edges:
        found.append(((relation, row, column), weight))
        if not relation.directed and row != column:
            found.append(((relation, column, row), weight))
    return found


class LiveStep:
    """A step of a meta-path: the links it follows, added up, and scaled by the sums of rows and columns."""

    def __init__(self, adjacency: Adjacency, step: Step, scaling: Scaling) -> None:
        self.step = step
        self._adjacency = adjacency
        self._scaling = scaling
        self._sums, self._touched = np.zeros(0), np.zeros(0, dtype=np.int64)
        self._scales = {True: np.zeros(0), False: np.zeros(0)}
        for rows, node_type in ((True, step.source), (False, step.target)):
            self._rescale(rows, np.arange(adjacency.sizes[node_type]))

    @property
    def is_scaled(self) -> bool:
        """Whether an edge changes more entries than its own."""
        return bool(self._scaling.rows or self._scaling.columns)

    @property
    def forward(self) -> list[LiveEdges]:
        return [self._adjacency.edges(link) for link in self.step.links]

    @property
    def backward(self) -> list[LiveEdges]:
        return [self._adjacency.edges(link.reversed()) for link in self.step.links]

    def row(self, row: int) -> tuple[Rows, Floats]:
        """Return one row of this step."""
        if len(self.step.links) == 1 and not self.is_scaled:
            columns, values = kernels.copy_row(self._adjacency.edges(self.step.links[0]).arrays, row)
            return columns, values
        return self.multiply(np.array([row]), np.ones(1))

    def multiply(self, columns: Rows, values: Floats) -> tuple[Rows, Floats]:
        """Return a sparse row times this step."""
        weights = values if not self._scaling.rows else values * self._scale(True)[columns]
        sums, touched = self.scratch()
        count = 0
        for edges in self.forward:
            count = kernels.multiply_row(columns, weights, edges.arrays, sums, touched, count)
        found, products = kernels.take_sums(sums, touched, count)
        return found, products if not self._scaling.columns else products * self._scale(False)[found]

    def scratch(self) -> tuple[Floats, Rows]:
        """Return sums, all 0, and room to list columns, for products with this step."""
        width = self._adjacency.sizes[self.step.target]
        if len(self._sums) < width:
            self._sums, self._touched = np.zeros(width), np.empty(width + 1, dtype=np.int64)
        return self._sums, self._touched

    def ends(self, pairs: Sequence[Pair]) -> list[tuple[int, int]]:
        """Return the entries of this step that some edges are, as (row, column)."""
        return [
            (column, row) if link.reverse else (row, column)
            for relation, row, column in pairs
            for link in self.step.links
            if link.relation is relation or link.relation == relation
        ]

    def changed_rows(self, pairs: Sequence[Pair]) -> Rows:
        """Return the rows that are others after some edges changed, and follow the sums."""
        ends = self.ends(pairs)
        if not ends:
            return np.empty(0, dtype=np.int64)
        rows = np.array(sorted({row for row, _ in ends}), dtype=np.int64)
        columns = np.array(sorted({column for _, column in ends}), dtype=np.int64)
        self._rescale(True, rows)
        self._rescale(False, columns)
        return np.union1d(rows, self.reaching(columns)) if self._scaling.columns else rows

    def reaching(self, columns: Rows) -> Rows:
        """Return the rows that have an edge to some columns."""
        found = [_union(edges, columns) for edges in self.backward]
        return found[0] if len(found) == 1 else np.unique(np.concatenate(found))

    def _scale(self, rows: bool) -> Floats:
        """Return the factor of every row or column."""
        size = self._adjacency.sizes[self.step.source if rows else self.step.target]
        self._scales[rows] = grown(self._scales[rows], size, 0)
        return self._scales[rows]

    def _rescale(self, rows: bool, which: Rows) -> None:
        """Compute the factors of some rows or columns from their edges."""
        power = self._scaling.rows if rows else self._scaling.columns
        if power:
            totals = sum(kernels.sum_rows(edges.arrays, which) for edges in (self.forward if rows else self.backward))
            with np.errstate(over="ignore"):  # what is too large for a norm is found there
                self._scale(rows)[which] = np.where(totals > 0, np.where(totals > 0, totals, 1.0) ** power, 0.0)


def _union(edges: LiveEdges, rows: Rows) -> Rows:
    found = np.empty(edges.num_columns, dtype=np.int64)
    count = kernels.union_rows(edges.arrays, rows, np.zeros(edges.num_columns, dtype=np.bool_), found)
    return found[:count]

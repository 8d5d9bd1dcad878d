"""Reach: which entries of a half-path matrix an edge can change, and what they are then, entry by entry."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock

import numpy as np

from neupath.graph.hin import HIN, Csr, Floats
from neupath.graph.metapath import Step
from neupath.graph.nodes import Rows
from neupath.graph.schema import Link, Relation
from neupath.live import edge_kernels as kernels
from neupath.live.append_arrays import NOWHERE, RowArrays, grown
from neupath.store.edge_matrices import both_ways, grown_matrix, overlaid

# ---- LiveEdges -----------------------------------------------------------------------------------
_FIRST = 64
"""Further edges that there is room for at first."""


class LiveEdges:
    """Rows of weights that change one entry at a time: those of the base in place, further ones beside it.

    An edge that is taken away stays with weight 0, so that whatever led over it can still be found.
    """

    def __init__(self, base: Csr) -> None:
        self.num_rows, self.num_columns = base.shape
        self.mean_size = base.nnz / max(1, base.shape[0])
        spans = np.full(self.num_rows, -1, dtype=np.int64)
        self._used = 0
        room = np.full(_FIRST, NOWHERE), np.zeros(_FIRST)
        self._take(RowArrays(base.indptr, base.indices, base.data.copy(), spans, *room))

    def _take(self, arrays: RowArrays) -> None:
        self.arrays, self.fields = arrays, tuple(arrays)

    def grow(self, num_rows: int, num_columns: int) -> None:
        """Make room for new nodes, which have no edges yet."""
        self.num_rows, self.num_columns = num_rows, num_columns
        self._take(self.arrays._replace(spans=grown(self.arrays.spans, num_rows, -1)))

    def put(self, row: int, column: int, weight: float) -> None:
        """Set the weight of an edge; 0 takes it away."""
        used = kernels.put_entry(self.fields, self._used, row, column, weight)
        while used < 0:
            self._lengthen()
            used = kernels.put_entry(self.fields, self._used, row, column, weight)
        self._used = used

    def _lengthen(self) -> None:
        wanted = 2 * len(self.arrays.columns)
        columns, values = grown(self.arrays.columns, wanted, NOWHERE), grown(self.arrays.values, wanted)
        self._take(self.arrays._replace(columns=columns, values=values))


# ---- LiveMatrices --------------------------------------------------------------------------------
Put = tuple[Relation, int, int, float]
"""The weight that an edge of a relation has from then on, by rows."""


class LiveMatrices(Mapping[Relation, Csr]):
    """The matrices of a base with the first changes of a log that only grows."""

    def __init__(self, base: Mapping[Relation, Csr], log: Sequence[Put], length: int, sizes: Mapping[str, int]) -> None:
        self._base, self._log, self._length, self._sizes = base, log, length, sizes
        self._made: dict[Relation, Csr] = {}
        self._lock = Lock()

    @property
    def base(self) -> Mapping[Relation, Csr]:
        """The matrices before the log, which views share."""
        return self._base

    def __getitem__(self, relation: Relation) -> Csr:
        with self._lock:
            if relation not in self._made:
                self._made[relation] = self._make(relation)
            return self._made[relation]

    def __iter__(self) -> Iterator[Relation]:
        return iter(self._base)

    def __len__(self) -> int:
        return len(self._base)

    def _make(self, relation: Relation) -> Csr:
        puts = (put for put in self._log[: self._length] if put[0] == relation)
        last = {
            (row, column) if relation.directed else (min(row, column), max(row, column)): weight
            for _, row, column, weight in puts
        }
        shape = self._sizes[relation.source], self._sizes[relation.target]
        rows, columns = np.array(list(last), dtype=np.int64).reshape(-1, 2).T
        changed = both_ways(rows, columns, np.array(list(last.values()), dtype=np.float64), relation.directed)
        return overlaid(grown_matrix(self._base[relation], shape), *changed)


# ---- LiveStep ------------------------------------------------------------------------------------
@dataclass(frozen=True)
class StepScaling:
    """To which power of its sum each row and each column is scaled; 0 leaves it."""

    rows: float = 0.0
    columns: float = 0.0

    def reversed(self) -> "StepScaling":
        return StepScaling(self.columns, self.rows)


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

    def __init__(self, adjacency: Adjacency, step: Step, scaling: StepScaling) -> None:
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


# ---- Reach ---------------------------------------------------------------------------------------
Entries = tuple[Rows, Rows, Floats]
"""Rows and columns, ascending, and values."""


class Reach:
    """The entries of W = S that edges are."""

    def __init__(self, step: LiveStep) -> None:
        self._step, self._edges = step, step.forward

    def entries(self, pairs: Sequence[Pair]) -> Entries | None:
        """Return the entries that may be others after some edges changed, as they are now; None if there is none."""
        ends = self._step.ends(pairs)
        if not ends:
            return None
        rows, columns = np.array(ends if len(ends) == 1 else sorted(set(ends))).T.copy()
        values = kernels.weights_of(self._edges[0].fields, rows, columns)
        for edges in self._edges[1:]:
            values += kernels.weights_of(edges.fields, rows, columns)
        return rows, columns, values


class ReachOfTwo:
    """The entries of W = S1·S2 on paths over an edge: of S1, a row and what it leads to; of S2, a column."""

    def __init__(self, first: LiveStep, second: LiveStep) -> None:
        self._steps = first, second
        (self._out,), (self._in,) = first.forward, first.backward
        (self._forward,), (self._back,) = second.forward, second.backward

    def entries(self, pairs: Sequence[Pair]) -> Entries | None:
        """Return the entries that may be others after some edges changed, as they are now; None if there is none."""
        first, second = (step.ends(pairs) for step in self._steps)
        parts = [self._of_row(*end) for end in first] + [self._of_column(*end) for end in second]
        return _joined(parts) if len(parts) > 1 else parts[0] if parts else None

    def _of_row(self, row: int, middle: int) -> Entries:
        out, back = self._out.fields, self._back.fields
        columns = kernels.reached(self._forward.fields, middle)
        rows = np.full(len(columns), row)
        if len(columns) > 1 and kernels.is_whole_cheaper(out, back, row, columns, self._forward.mean_size):
            return rows, columns, _picked(columns, *self._steps[1].multiply(*self._steps[0].row(row)))
        return rows, columns, kernels.multiply_entries(out, back, rows, columns)

    def _of_column(self, middle: int, column: int) -> Entries:
        rows = kernels.reached(self._in.fields, middle)
        columns = np.full(len(rows), column)
        return rows, columns, kernels.multiply_entries(self._out.fields, self._back.fields, rows, columns)


def reach_of(steps: Sequence[LiveStep]) -> Reach | ReachOfTwo | None:
    """Return the reach of edges over some steps; None where only whole rows can be computed."""
    if any(step.is_scaled for step in steps):
        return None
    if len(steps) == 1:
        return Reach(steps[0])
    return ReachOfTwo(*steps) if len(steps) == 2 and all(len(step.step.links) == 1 for step in steps) else None


def _picked(columns: Rows, found: Rows, values: Floats) -> Floats:
    """Return the values of some columns of a sparse row."""
    picked = np.zeros(len(columns))
    _, here, there = np.intersect1d(columns, found, assume_unique=True, return_indices=True)
    picked[here] = values[there]
    return picked


def _joined(parts: Sequence[Entries]) -> Entries:
    """Return all entries, each once, ascending."""
    rows, columns, values = (np.concatenate(part) for part in zip(*parts, strict=True))
    width = int(columns.max(initial=0)) + 1
    _, kept = np.unique(rows * width + columns, return_index=True)
    return rows[kept], columns[kept], values[kept]

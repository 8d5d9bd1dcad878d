"""Half-path matrices that follow edges under multi-version concurrency control (MVCC).

An edge changes the newest adjacency; propagation finds the entries of each half-path matrix that it can change, and
computes them again. One writer sets them from a version on; what they replace stays for readers of older versions.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from threading import Lock

import numpy as np

from neupath._runtime.lazy_mapping import LazyMapping
from neupath.engine.products import Chain, link_matrix
from neupath.engine.scorer import RowEdge
from neupath.errors import NeuPathError
from neupath.graph.edges import LinkFilter, edge_counts, in_both_directions
from neupath.graph.hin import HIN, Csr, Floats, freeze
from neupath.graph.metapath import Link, MetaPath, Relation
from neupath.graph.nodes import Nodes, Rows
from neupath.live import live_kernels as kernels
from neupath.live.live_edges import NewestEdges
from neupath.live.live_kernels import NEVER, EdgeArrays, MvccArrays, NormArrays, ProductArrays, grown
from neupath.measures.path_measure import Leg, PathMeasure, reversed_legs
from neupath.store.snapshots import Triplets, enlarged, overlaid

# ---- Edges of the newest version -----------------------------------------------------------------
_INITIAL_ROOM = 64  # entries or added edges


class LiveEdges:
    """The weights of one link by row: those of the base change in place, added edges are beside it.

    A removed edge stays with weight 0, so that the entries of products that it reached can still be found.
    """

    def __init__(self, base: Csr) -> None:
        num_rows, self.num_columns = base.shape
        self.mean_size = base.nnz / max(1, num_rows)
        self._used = 0
        spans = np.full(num_rows, -1, dtype=np.int64)
        room = np.full(_INITIAL_ROOM, kernels.NOWHERE), np.zeros(_INITIAL_ROOM)
        self._use(EdgeArrays(base.indptr, base.indices, base.data.copy(), spans, *room))

    def _use(self, arrays: EdgeArrays) -> None:
        self.arrays, self.fields = arrays, tuple(arrays)

    def grow(self, num_rows: int, num_columns: int) -> None:
        self.num_columns = num_columns
        self._use(self.arrays._replace(spans=grown(self.arrays.spans, num_rows, -1)))

    def put(self, row: int, column: int, weight: float) -> None:
        """Set the weight of an edge; 0 removes it."""
        while (used := kernels.put_entry(self.fields, self._used, row, column, weight)) < 0:
            size = 2 * len(self.arrays.columns)
            columns, values = grown(self.arrays.columns, size, kernels.NOWHERE), grown(self.arrays.values, size)
            self._use(self.arrays._replace(columns=columns, values=values))
        self._used = used


# ---- Matrices of one version ---------------------------------------------------------------------
class DegreeCounts:
    """How many edges of a relation each source and each target has, in the version that was asked for last."""

    def __init__(self, base: Csr, relation: Relation) -> None:
        self._base, self._relation, self._lock = base, relation, Lock()
        self._length: int | None = None  # edges of the log that are counted

    def at(self, log: Sequence[RowEdge], length: int, sizes: Mapping[str, int]) -> tuple[Rows, Rows]:
        """Return the counts with the first `length` edges of a log; a later version goes on where the last one was."""
        num_sources, num_targets = sizes[self._relation.source], sizes[self._relation.target]
        with self._lock:
            if self._length is None or self._length > length:
                self._sources, self._targets = edge_counts(self._base)
                self._is_there: dict[tuple[int, int], bool] = {}  # by the pairs that changed since the base
                self._length = 0
            self._sources, self._targets = grown(self._sources, num_sources, 0), grown(self._targets, num_targets, 0)
            for edge in log[self._length : length]:
                if edge[0] == self._relation:
                    self._put(edge)
            self._length = length
            return self._sources[:num_sources].copy(), self._targets[:num_targets].copy()

    def _put(self, edge: RowEdge) -> None:
        relation, source, target, weight = edge
        pair = (source, target) if relation.directed else (min(source, target), max(source, target))
        change = (weight != 0) - self._has(pair)
        self._is_there[pair] = weight != 0
        for row, column in {pair} if relation.directed else {pair, pair[::-1]}:
            self._sources[row] += change
            self._targets[column] += change

    def _has(self, pair: tuple[int, int]) -> bool:
        if pair in self._is_there or pair[0] >= self._base.shape[0]:
            return self._is_there.get(pair, False)
        start, end = self._base.indptr[pair[0] : pair[0] + 2]
        return bool((self._base.indices[start:end] == pair[1]).any())


class LiveMatrices(LazyMapping[Relation, Csr]):
    """The matrices of a base with the first `length` edges of a log that only grows, each computed on first use."""

    def __init__(
        self,
        base: Mapping[Relation, Csr],
        log: Sequence[RowEdge],
        length: int,
        sizes: Mapping[str, int],
        counts: dict[Relation, DegreeCounts] | None = None,
    ) -> None:
        super().__init__(base, partial(_matrix_after, base, log, length, sizes))
        self.base, self._log, self._length, self._sizes = base, log, length, sizes
        self._counts = {} if counts is None else counts  # of all versions over the base

    def fresh(self) -> "LiveMatrices":
        """Return a copy without the matrices that are computed."""
        return LiveMatrices(self.base, self._log, self._length, self._sizes, self._counts)

    def edge_counts(self, relation: Relation) -> tuple[Rows, Rows]:
        """Count the edges of each source and each target, without the matrix."""
        counts = self._counts.setdefault(relation, DegreeCounts(self.base[relation], relation))
        return counts.at(self._log, self._length, self._sizes)


def _matrix_after(
    base: Mapping[Relation, Csr], log: Sequence[RowEdge], length: int, sizes: Mapping[str, int], relation: Relation
) -> Csr:
    """Return the matrix of a relation with the first `length` edges of a log."""
    last = {
        (row, column) if relation.directed else (min(row, column), max(row, column)): weight
        for changed, row, column, weight in log[:length]
        if changed == relation
    }
    shape = sizes[relation.source], sizes[relation.target]
    rows, columns = np.array(list(last), dtype=np.int64).reshape(-1, 2).T
    changed = in_both_directions(rows, columns, np.array(list(last.values()), dtype=np.float64), relation.directed)
    return overlaid(enlarged(base[relation], shape), *changed)


# ---- Adjacency and steps of the newest version ---------------------------------------------------
class Adjacency:
    """The live edges of a graph by link; those of a link are built from the base and the log when first used.

    A link with filters has those edges that meet its conditions, with the weights that they count with. `unsound` are
    links for whose edges or nodes no weight can be computed any more, or whose pinned nodes have to be looked up again.
    """

    def __init__(self, hin: HIN, version: int, log: Sequence[RowEdge], single_edges: NewestEdges | None = None) -> None:
        self._hin, self.version, self._log = hin, version, log
        self._single_edges = single_edges or NewestEdges({}, [])
        self._edges: dict[Link, LiveEdges] = {}
        self._filters: dict[Link, LinkFilter] = {}
        self.unsound: set[Link] = set()
        self.sizes = {node_type: len(nodes) for node_type, nodes in hin.nodes.items()}

    def edges(self, link: Link) -> LiveEdges:
        if link not in self._edges:
            edges = LiveEdges(self._hin.matrix(link))
            edges.grow(self.sizes[link.source], self.sizes[link.target])
            self._put(edges, link, both_directions(self._log))
            self._edges[link] = edges
        return self._edges[link]

    def prepare(self, metapath: MetaPath, newest: HIN) -> None:
        """Build the live edges of links with filters from the newest version; the base may have no such weights."""
        for step in metapath.steps:
            for link in (*step.links, *step.reversed().links):
                if link.is_filtered and (link not in self._edges or link in self.unsound):
                    self._edges[link] = LiveEdges(link_matrix(newest, link))
                    self._filters[link] = LinkFilter(link, newest.nodes)
                    self.unsound.discard(link)

    def put(self, edges: Sequence[RowEdge]) -> None:
        """Set the weights of edges, undirected ones listed in both directions."""
        for link, own in self._edges.items():
            self._put(own, link, edges)

    def _put(self, own: LiveEdges, link: Link, edges: Sequence[RowEdge]) -> None:
        is_filtered = link.is_filtered
        for relation, row, column, weight in edges:
            if link.relation is relation or link.relation == relation:  # mostly the same object, which compares faster
                ends = (column, row) if link.reverse else (row, column)
                own.put(*ends, self._counted(link, *ends, weight) if is_filtered else weight)

    def _counted(self, link: Link, row: int, column: int, weight: float) -> float:
        """Return the weight that an edge counts with by the filters of a link."""
        if link in self.unsound:  # its filters do not know new nodes
            return 0.0
        try:
            if link.edge_filter is not None and link.relation in self._single_edges:
                pair = (column, row) if link.reverse else (row, column)
                pair = pair if link.relation.directed else (min(pair), max(pair))
                edges = self._single_edges.between(link.relation, [pair])
                return self._filters[link].weight_between(row, column, edges)
            return float(self._filters[link].weights(np.array([row]), np.array([column]), np.array([weight]))[0])
        except NeuPathError:
            self.unsound.add(link)
            return 0.0

    def grow(self, nodes: Mapping[str, Nodes]) -> None:
        """Follow nodes that are new at the end of their types."""
        self.sizes = {node_type: len(own) for node_type, own in nodes.items()}
        for link, edges in self._edges.items():
            edges.grow(self.sizes[link.source], self.sizes[link.target])
        for link, own in self._filters.items():
            try:
                own.grow(nodes)
            except NeuPathError:
                self.unsound.add(link)


def both_directions(edges: Sequence[RowEdge]) -> list[RowEdge]:
    """Return edges, those of undirected relations in both directions."""
    directions: list[RowEdge] = []
    for edge in edges:
        directions.append(edge)
        relation, row, column, weight = edge
        if not relation.directed and row != column:
            directions.append((relation, column, row, weight))
    return directions


class LiveLeg:
    """A leg of a measure over live edges: its links added up, scaled by powers of row and column sums."""

    def __init__(self, adjacency: Adjacency, leg: Leg) -> None:
        self.step = step = leg.step
        self._adjacency, self.leg = adjacency, leg
        self.filtered = [link for link in step.links if link.is_filtered]
        self._sums, self._touched = np.zeros(0), np.zeros(0, dtype=np.int64)
        self._scales = {True: np.zeros(0), False: np.zeros(0)}
        for rows, node_type in ((True, step.source), (False, step.target)):
            self._rescale(rows, np.arange(adjacency.sizes[node_type]))

    @property
    def is_sound(self) -> bool:
        """Whether all weights of its edges can be computed."""
        return self._adjacency.unsound.isdisjoint(self.filtered)

    @property
    def forward(self) -> list[LiveEdges]:
        return [self._adjacency.edges(link) for link in self.step.links]

    @property
    def backward(self) -> list[LiveEdges]:
        return [self._adjacency.edges(link.reversed()) for link in self.step.links]

    def row(self, row: int) -> tuple[Rows, Floats]:
        if len(self.step.links) == 1 and not self.leg.is_scaled:
            columns, values = kernels.copy_row(self._adjacency.edges(self.step.links[0]).arrays, row)
            return columns, values
        return self.multiply(np.array([row]), np.ones(1))

    def multiply(self, columns: Rows, values: Floats) -> tuple[Rows, Floats]:
        """Return a sparse row times this step."""
        weights = values if not self.leg.row_power else values * self._scale(True)[columns]
        width = self._adjacency.sizes[self.step.target]
        if len(self._sums) < width:
            self._sums, self._touched = np.zeros(width), np.empty(width + 1, dtype=np.int64)
        count = 0
        for edges in self.forward:
            count = kernels.multiply_row(columns, weights, edges.arrays, self._sums, self._touched, count)
        targets, products = kernels.take_sums(self._sums, self._touched, count)
        return targets, products if not self.leg.column_power else products * self._scale(False)[targets]

    def ends(self, edges: Sequence[RowEdge]) -> list[tuple[int, int]]:
        """Return the (row, column) of this step's entries that some edges set."""
        return [
            (column, row) if link.reverse else (row, column)
            for relation, row, column, _ in edges
            for link in self.step.links
            if link.relation is relation or link.relation == relation
        ]

    def rescale_changed_rows(self, edges: Sequence[RowEdge]) -> Rows:
        """Return the rows that the edges change, with their scaling factors updated."""
        ends = self.ends(edges)
        if not ends:
            return np.empty(0, dtype=np.int64)
        rows = np.array(sorted({row for row, _ in ends}), dtype=np.int64)
        columns = np.array(sorted({column for _, column in ends}), dtype=np.int64)
        self._rescale(True, rows)
        self._rescale(False, columns)
        return np.union1d(rows, self.reaching(columns)) if self.leg.column_power else rows

    def reaching(self, columns: Rows) -> Rows:
        """Return the rows that have an edge to one of the columns."""
        sources = [_union(edges, columns) for edges in self.backward]
        return sources[0] if len(sources) == 1 else np.unique(np.concatenate(sources))

    def _scale(self, rows: bool) -> Floats:
        size = self._adjacency.sizes[self.step.source if rows else self.step.target]
        self._scales[rows] = grown(self._scales[rows], size, 0)
        return self._scales[rows]

    def _rescale(self, rows: bool, which: Rows) -> None:
        power = self.leg.row_power if rows else self.leg.column_power
        if power:
            totals = sum(kernels.sum_rows(edges.arrays, which) for edges in (self.forward if rows else self.backward))
            with np.errstate(over="ignore"):  # the check of the norms finds it
                self._scale(rows)[which] = np.where(totals > 0, np.where(totals > 0, totals, 1.0) ** power, 0.0)


def _union(edges: LiveEdges, rows: Rows) -> Rows:
    columns = np.empty(edges.num_columns, dtype=np.int64)
    count = kernels.union_rows(edges.arrays, rows, np.zeros(edges.num_columns, dtype=np.bool_), columns)
    return columns[:count]


# ---- Propagation ---------------------------------------------------------------------------------
class OneStepPropagation:
    """Finds the entries of W = S that edges change: each edge changes one."""

    def __init__(self, step: LiveLeg) -> None:
        self._step, self._edges = step, step.forward

    def entries(self, edges: Sequence[RowEdge]) -> Triplets | None:
        """Return the entries that some edges may change, ascending, with their new values; None if there are none."""
        ends = self._step.ends(edges)
        if not ends:
            return None
        rows, columns = np.array(ends if len(ends) == 1 else sorted(set(ends))).T.copy()
        values = kernels.weights_of(self._edges[0].fields, rows, columns)
        for other in self._edges[1:]:
            values += kernels.weights_of(other.fields, rows, columns)
        return rows, columns, values


class TwoStepPropagation:
    """Finds the entries of W = S1·S2 that edges change: an edge of S1 part of one row, one of S2 part of one column."""

    def __init__(self, first: LiveLeg, second: LiveLeg) -> None:
        self._steps = first, second
        (self._out,), (self._in,) = first.forward, first.backward
        (self._forward,), (self._back,) = second.forward, second.backward

    def entries(self, edges: Sequence[RowEdge]) -> Triplets | None:
        first, second = (step.ends(edges) for step in self._steps)
        parts = [self._of_row(*end) for end in first] + [self._of_column(*end) for end in second]
        return _union_of(parts) if len(parts) > 1 else parts[0] if parts else None

    def _of_row(self, row: int, middle: int) -> Triplets:
        out, back = self._out.fields, self._back.fields
        columns = kernels.reached(self._forward.fields, middle)
        rows = np.full(len(columns), row)
        if len(columns) > 1 and kernels.is_whole_cheaper(out, back, row, columns, self._forward.mean_size):
            return rows, columns, _values_at(columns, *self._steps[1].multiply(*self._steps[0].row(row)))
        return rows, columns, kernels.multiply_entries(out, back, rows, columns)

    def _of_column(self, middle: int, column: int) -> Triplets:
        rows = kernels.reached(self._in.fields, middle)
        columns = np.full(len(rows), column)
        return rows, columns, kernels.multiply_entries(self._out.fields, self._back.fields, rows, columns)


def propagation_of(steps: Sequence[LiveLeg]) -> OneStepPropagation | TwoStepPropagation | None:
    """Return how edges propagate over some steps; None where only whole rows can be computed."""
    if any(step.leg.is_scaled for step in steps):  # an edge changes more entries than its own
        return None
    if len(steps) == 1:
        return OneStepPropagation(steps[0])
    is_pair = len(steps) == 2 and all(len(step.step.links) == 1 for step in steps)
    return TwoStepPropagation(*steps) if is_pair else None


def _values_at(columns: Rows, nonzero: Rows, values: Floats) -> Floats:
    dense = np.zeros(len(columns))
    _, here, there = np.intersect1d(columns, nonzero, assume_unique=True, return_indices=True)
    dense[here] = values[there]
    return dense


def _union_of(parts: Sequence[Triplets]) -> Triplets:
    rows, columns, values = (np.concatenate(part) for part in zip(*parts, strict=True))
    width = int(columns.max(initial=0)) + 1
    _, kept = np.unique(rows * width + columns, return_index=True)
    return rows[kept], columns[kept], values[kept]


# ---- Matrix by version ---------------------------------------------------------------------------
_EMPTY = np.array((0, 0.0, NEVER, NEVER), dtype=kernels.ENTRY)


class MvccMatrix:
    """The lines of a sparse matrix: its rows or its columns. One writer sets entries; readers use `arrays`."""

    def __init__(self, base: Csr) -> None:
        frozen = freeze(base)
        spans = np.full(base.shape[0], -1, dtype=np.int64)
        matrix = frozen.indptr, frozen.indices, frozen.data, np.full(base.nnz, NEVER, dtype=kernels.VERSION)
        self._used = 0
        self._use(MvccArrays(*matrix, spans, np.full(_INITIAL_ROOM, _EMPTY)), spans.copy())

    def _use(self, written: MvccArrays, spans: Rows) -> None:
        """Continue with other arrays; readers get their own `spans`, which change only when entries are complete."""
        self._written, self.fields = written, tuple(written)
        self.arrays = written._replace(spans=spans)

    def grow(self, count: int) -> None:
        written = self._written._replace(spans=grown(self._written.spans, count, -1))
        self._use(written, grown(self.arrays.spans, count, -1))

    def put(self, lines: Rows, places: Rows, values: Floats, version: int) -> tuple[Floats, int]:
        """Set ascending entries from a version on, 0 to remove one; return the old values, and how many differed."""
        old = np.empty(len(lines))
        done, changed = 0, 0
        while done < len(lines):
            done, self._used, more = kernels.write(self.fields, self._used, lines, places, values, old, version, done)
            changed += more
            if done < len(lines):
                self._extend()
        self.arrays.spans[lines] = self._written.spans[lines]
        return old, changed

    def differences(self, line: int, places: Rows, values: Floats) -> tuple[Rows, Floats]:
        """Return the places at which a line differs from some values, with the new value of each."""
        changed, wanted = kernels.differences(self._written, line, places, values)
        return changed, wanted

    def _extend(self) -> None:
        """Continue in longer arrays with a copy of the spans: the old ones must not lead past the old arrays' end."""
        longer = grown(self._written.entries, 2 * len(self._written.entries), _EMPTY)
        self._use(self._written._replace(entries=longer), self.arrays.spans.copy())


# ---- Norms by version ----------------------------------------------------------------------------
_MAX_NORMS = 1024
"""Most changed norms beside the base; more would be scattered in memory, and a new base then costs little per norm."""


class MvccNorms:
    """‖row‖² of every row. One writer updates them; readers use `arrays` and see their version."""

    def __init__(self, base: Floats, rows: MvccArrays) -> None:
        self._use(_without_changes(base.copy(), _MAX_NORMS))
        self._used = 0
        self.are_finite = True  # whether floats have held all norms so far; if not, a measure refuses to be fitted
        self._whole = kernels.find_whole(rows.indptr, rows.data, base)

    def _use(self, arrays: NormArrays) -> None:
        self.arrays, self._fields = arrays, tuple(arrays)

    def grow(self, count: int) -> None:
        base, heads = grown(self.arrays.base, count, 0), grown(self.arrays.heads, count, -1)
        self._use(self.arrays._replace(base=base, heads=heads))
        self._whole = grown(self._whole, count, 1)

    def put(self, fields: tuple[object, ...], rows: Rows, old: Floats, new: Floats, version: int) -> None:
        """Follow entries that changed, by row, from a version on; `fields` are those of the newest rows."""
        if self._used + len(rows) > len(self.arrays.since):  # a new base; readers of older versions keep theirs
            self._use(_without_changes(kernels.newest(self.arrays), max(_MAX_NORMS, len(rows))))
            self._used = 0
        written, finite = kernels.renew(self._fields, self._whole, fields, rows, old, new, self._used, version)
        self.are_finite &= finite
        self.arrays.heads[written] = np.arange(self._used, self._used + len(written))
        self._used += len(written)


def _without_changes(base: Floats, room: int) -> NormArrays:
    return NormArrays(base, np.full(len(base), -1, dtype=np.int32), np.zeros(room, dtype=kernels.NORM))


# ---- Half-path matrix ----------------------------------------------------------------------------
class LiveProduct:
    """W = S1·S2·…·Sl over live steps.

    An entry is never computed from its old value where that could round, so that rounding errors do not add up.
    """

    def __init__(self, steps: Sequence[LiveLeg], base: Csr, transposed: Csr, norms: Floats, version: int) -> None:
        self.steps, self._version = steps, version
        self._size, self._changed = max(1, base.nnz), 0
        self._rows, self._columns = MvccMatrix(base), MvccMatrix(transposed)
        self._norms = MvccNorms(norms, self._rows.arrays)
        self._propagation = propagation_of(steps)
        self._filtered = [step for step in steps if step.filtered]

    @property
    def arrays(self) -> ProductArrays:
        """The arrays for readers of the newest version; later writes only add entries that these readers skip."""
        return ProductArrays(self._rows.arrays, self._columns.arrays, self._norms.arrays, self._version)

    @property
    def changed_share(self) -> float:
        return self._changed / self._size

    @property
    def is_finite(self) -> bool:
        return self._norms.are_finite and (not self._filtered or all(step.is_sound for step in self._filtered))

    def grow(self, num_rows: int, num_columns: int) -> None:
        self._rows.grow(num_rows)
        self._columns.grow(num_columns)
        self._norms.grow(num_rows)

    def follow(self, edges: Sequence[RowEdge], version: int) -> None:
        """Update what some edges reach: single entries where these can be computed alone, else whole rows."""
        if self._propagation is not None:
            entries = self._propagation.entries(edges)
            if entries is not None:
                self.write(*entries, version)
            return
        for row in self._affected_rows(edges).tolist():
            columns, values = self.steps[0].row(row)
            for step in self.steps[1:]:
                columns, values = step.multiply(columns, values)
            changed, wanted = self._rows.differences(row, columns, values)
            self.write(np.full(len(changed), row), changed, wanted, version)

    def write(self, rows: Rows, columns: Rows, values: Floats, version: int) -> None:
        """Set entries, ascending, from a version on; those that have the value already stay."""
        since = version - self._version
        if since >= NEVER:
            raise OverflowError(f"{since:,} versions since the base was built; compact the live graph first")
        old, number = self._rows.put(rows, columns, values, since)
        if not number:
            return
        if number < len(rows):
            changed = np.flatnonzero(old != values)
            rows, columns, values, old = rows[changed], columns[changed], values[changed], old[changed]
        order = np.lexsort((rows, columns)) if number > 1 else slice(None)
        self._columns.put(columns[order], rows[order], values[order], since)
        self._norms.put(self._rows.fields, rows, old, values, since)
        self._changed += number

    def _affected_rows(self, edges: Sequence[RowEdge]) -> Rows:
        """Return the rows from which a path leads over one of the edges."""
        rows = np.empty(0, dtype=np.int64)
        for step in reversed(self.steps):
            through = step.reaching(rows) if len(rows) else rows
            rows = np.union1d(through, step.rescale_changed_rows(edges))
        return rows


def live_factors(measure: PathMeasure, adjacency: Adjacency) -> tuple[LiveProduct, LiveProduct] | None:
    """Return the half-path matrices of a fitted measure, from the queries and from the targets to the middle.

    None if the measure must be fitted to each version: its halves meet at edges, or their product is too large.
    """
    factors, version = measure.factors_, adjacency.version
    if isinstance(factors, Chain) or not measure.meets_at_nodes(measure.metapath_):
        return None
    adjacency.prepare(measure.metapath_, measure.hin_)
    lefts, rights = measure.half_legs(measure.metapath_)
    steps = [LiveLeg(adjacency, leg) for leg in lefts]
    if rights is None:
        half = LiveProduct(steps, factors.left, factors.right, factors.left_norms, version)
        return half, half
    others = [LiveLeg(adjacency, leg) for leg in reversed_legs(rights)]
    left = LiveProduct(steps, factors.left, factors.left.T.tocsr(), factors.left_norms, version)
    return left, LiveProduct(others, factors.right.T.tocsr(), factors.right, factors.right_norms, version)

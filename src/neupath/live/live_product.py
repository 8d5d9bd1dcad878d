"""Half-path matrices that follow edges under multi-version concurrency control (MVCC).

One writer sets entries from a version on. The entries they replace stay, so that readers of older versions go on.
"""

from collections.abc import Sequence

import numpy as np

from neupath.engine.products import Chain
from neupath.engine.scorer import RowEdge
from neupath.graph.hin import Csr, Floats, freeze
from neupath.graph.nodes import Rows
from neupath.live import version_kernels as kernels
from neupath.live.append_arrays import ENTRY, NEVER, NORM, VERSION, MvccArrays, NormArrays, ProductArrays, grown
from neupath.live.propagation import Adjacency, LiveStep, propagation_of
from neupath.measures.path_measure import PathMeasure, reversed_legs

# ---- Matrix by version ---------------------------------------------------------------------------
_INITIAL_ROOM = 64
"""Entries that there is room for at first."""
_EMPTY = np.array((0, 0.0, NEVER, NEVER), dtype=ENTRY)


class MvccMatrix:
    """The lines of a sparse matrix, its rows or its columns. One writer sets entries; readers see their version.

    `arrays` is what readers use.
    """

    def __init__(self, base: Csr) -> None:
        frozen = freeze(base)
        spans = np.full(base.shape[0], -1, dtype=np.int64)
        matrix = frozen.indptr, frozen.indices, frozen.data, np.full(base.nnz, NEVER, dtype=VERSION)
        self._used = 0
        self._use(MvccArrays(*matrix, spans, np.full(_INITIAL_ROOM, _EMPTY)), spans.copy())

    def _use(self, written: MvccArrays, spans: Rows) -> None:
        """Continue with other arrays; readers get their own `spans`, which change only when entries are complete."""
        self._written, self.fields = written, tuple(written)
        self.arrays = written._replace(spans=spans)

    def grow(self, count: int) -> None:
        """Add empty lines, up to `count`."""
        written = self._written._replace(spans=grown(self._written.spans, count, -1))
        self._use(written, grown(self.arrays.spans, count, -1))

    def put(self, lines: Rows, places: Rows, values: Floats, version: int) -> tuple[Floats, int]:
        """Set entries by line and place, both ascending, from a version on; 0 removes one.

        Returns the old values, and how many of them differed.
        """
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
        """Return the places at which a line differs from given values, with these."""
        changed, wanted = kernels.differences(self._written, line, places, values)
        return changed, wanted

    def _extend(self) -> None:
        """Continue in longer arrays with a copy of the spans: the old ones must not lead past the old arrays' end."""
        longer = grown(self._written.entries, 2 * len(self._written.entries), _EMPTY)
        self._use(self._written._replace(entries=longer), self.arrays.spans.copy())


# ---- Norms by version ----------------------------------------------------------------------------
_MAX_NORMS = 1024
"""Norms beside the base; more would be far apart in memory, and a new base costs little for each of so many."""


class MvccNorms:
    """‖row‖² of every row. One writer updates them; readers use `arrays` and see their version."""

    def __init__(self, base: Floats, rows: MvccArrays) -> None:
        self._use(_without_changes(base.copy(), _MAX_NORMS))
        self._used = 0
        self.are_finite = True
        """Whether floats have held all norms so far; where they have not, a measure refuses to be fitted."""
        self._whole = kernels.find_whole(rows.indptr, rows.data, base)

    def _use(self, arrays: NormArrays) -> None:
        self.arrays, self._fields = arrays, tuple(arrays)

    def grow(self, count: int) -> None:
        """Add empty rows, up to `count`."""
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
    return NormArrays(base, np.full(len(base), -1, dtype=np.int32), np.zeros(room, dtype=NORM))


# ---- Half-path matrix ----------------------------------------------------------------------------
class LiveProduct:
    """W = S1·S2·…·Sl over live steps: entries that an edge reaches are computed again, and those that differ are set.

    An entry is never computed from its old value where that could round, so that rounding errors do not add up.
    """

    def __init__(self, steps: Sequence[LiveStep], base: Csr, transposed: Csr, norms: Floats, version: int) -> None:
        self.steps, self._version = steps, version
        self._size, self._changed = max(1, base.nnz), 0
        self._rows, self._columns = MvccMatrix(base), MvccMatrix(transposed)
        self._norms = MvccNorms(norms, self._rows.arrays)
        self._propagation = propagation_of(steps)

    @property
    def arrays(self) -> ProductArrays:
        """What readers of the newest version need; later changes do not disturb them."""
        return ProductArrays(self._rows.arrays, self._columns.arrays, self._norms.arrays, self._version)

    @property
    def share(self) -> float:
        """Entries changed per entry of the base."""
        return self._changed / self._size

    @property
    def is_finite(self) -> bool:
        """Whether floats have held all norms so far."""
        return self._norms.are_finite

    def grow(self, num_rows: int, num_columns: int) -> None:
        """Make room for new nodes at both ends."""
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
            rows = np.union1d(through, step.changed_rows(edges))
        return rows


def live_factors(measure: PathMeasure, adjacency: Adjacency) -> tuple[LiveProduct, LiveProduct] | None:
    """Return the half-path matrices of a fitted measure, from the queries and from the targets to the middle.

    None where the measure must be fitted to each version: its halves meet at edges, or their product is too large.
    """
    factors, version = measure.factors_, adjacency.version
    if isinstance(factors, Chain) or not measure.meets_at_nodes(measure.metapath_):
        return None
    lefts, rights = measure.half_legs(measure.metapath_)
    steps = [LiveStep(adjacency, leg) for leg in lefts]
    if rights is None:
        half = LiveProduct(steps, factors.left, factors.right, factors.left_norms, version)
        return half, half
    others = [LiveStep(adjacency, leg) for leg in reversed_legs(rights)]
    left = LiveProduct(steps, factors.left, factors.left.T.tocsr(), factors.left_norms, version)
    return left, LiveProduct(others, factors.right.T.tocsr(), factors.right, factors.right_norms, version)

"""LiveHalf: a half-path matrix over an immutable base, of which every version can be read while the next is written."""

from collections.abc import Sequence

import numpy as np

from neupath.graph import Csr, Floats, freeze
from neupath.live import kernels
from neupath.live.growing import Half, grown
from neupath.live.steps import LiveStep
from neupath.nodes import Rows
from neupath.schema import Link

_ENTRIES = ("rows", "columns", "values", "born", "died", "row_next", "column_next")
_NORMS = ("norm_values", "norm_born", "norm_previous")
_FIRST = 64


class LiveHalf:
    """W = S1·S2·…·Sl over live steps: rows that an edge reaches are computed anew, and what differs is kept as entries.

    Nothing is ever computed from an older value, so that no rounding adds up.
    """

    def __init__(self, steps: Sequence[LiveStep], base: Csr, transposed: Csr, norms: Floats) -> None:
        self.steps = steps
        self._num_norms, self._num_entries = 0, 0
        whole, real = np.int64, np.float64
        parts = [getattr(freeze(m), part) for m in (base, transposed) for part in ("indptr", "indices", "data")]
        replaced = [np.full(base.nnz, kernels.NEVER) for _ in range(2)]
        changed = np.full(base.shape[1], kernels.NEVER)
        heads = [np.full(size, -1, dtype=whole) for size in (*base.shape, base.shape[0])]
        entries = [np.zeros(_FIRST, dtype=real if name == "values" else whole) for name in _ENTRIES]
        versions = [np.zeros(_FIRST, dtype=real if name == "norm_values" else whole) for name in _NORMS]
        self.arrays = Half._make([*parts, norms, *replaced, changed, *heads, *entries, *versions])
        """What readers need, as it is now; what is written later does not disturb them."""

    @property
    def share(self) -> float:
        """How many entries there are for each entry of the base."""
        return self._num_entries / max(1, len(self.arrays.data))

    def grow(self, num_rows: int, num_columns: int) -> None:
        """Make room for new nodes at either end."""
        now = self.arrays
        self.arrays = now._replace(
            changed=grown(now.changed, num_columns, kernels.NEVER),
            row_heads=grown(now.row_heads, num_rows, -1),
            column_heads=grown(now.column_heads, num_columns, -1),
            norm_heads=grown(now.norm_heads, num_rows, -1),
        )

    def affected(self, pairs: Sequence[tuple[Link, int, int]]) -> Rows:
        """Return the rows that may change with some edges: those from which a path leads over one of them."""
        rows = np.empty(0, dtype=np.int64)
        for step in reversed(self.steps):
            through = step.reaching(rows) if len(rows) else rows
            changed = step.changed_rows(pairs)
            rows = (
                np.union1d(through, changed) if len(through) and len(changed) else (through, changed)[len(changed) > 0]
            )
        return rows

    def recompute(self, rows: Rows, version: int) -> None:
        """Bring some rows up to date."""
        for row in rows.tolist():
            columns, values = self.steps[0].row(row)
            for step in self.steps[1:]:
                columns, values = step.multiply(columns, values)
            changed, wanted = kernels.differences(self.arrays, row, columns, values)
            if len(changed):
                self._make_room(len(changed))
                first, number = self._num_entries, self._num_norms
                last = kernels.fill_entries(self.arrays, row, changed, wanted, values, first, number, version)
                kernels.link_entries(self.arrays, row, changed, first, last, number, version)
                self._num_entries, self._num_norms = last, number + 1

    def _make_room(self, entries: int) -> None:
        if self._num_entries + entries > len(self.arrays.rows):
            self._lengthen(_ENTRIES, ("row_heads", "column_heads"), self._num_entries + entries)
        if self._num_norms == len(self.arrays.norm_born):
            self._lengthen(_NORMS, ("norm_heads",), self._num_norms + 1)

    def _lengthen(self, names: Sequence[str], heads: Sequence[str], wanted: int) -> None:
        """Go on in longer arrays, and in copies of the heads: old ones must not lead readers past their arrays' end."""
        longer = {name: grown(getattr(self.arrays, name), wanted) for name in names}
        copies = {name: getattr(self.arrays, name).copy() for name in heads}
        self.arrays = self.arrays._replace(**longer, **copies)


def _union(rows: Rows, others: Rows) -> Rows:
    if not len(rows) or not len(others):
        return rows if len(rows) else others
    return np.union1d(rows, others)

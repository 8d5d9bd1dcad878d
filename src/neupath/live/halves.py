"""LiveHalf: a half-path matrix over an immutable base, of which every version can be read while the next is written."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from neupath.graph import Csr, Floats
from neupath.live import kernels
from neupath.live.growing import Records, grown
from neupath.live.steps import LiveStep
from neupath.nodes import Rows
from neupath.schema import Link

_RECORD_FILLS = (0, 0, 0, kernels.NEVER, 0, -1, 0)  # starts, ends, norms, born, died, previous, owners
_FIRST = 16


@dataclass(frozen=True)
class HalfView:
    """What readers of one version need of a half: the base by row and by column, its norms, and the records."""

    rows: tuple[Any, ...]
    columns: tuple[Any, ...]
    norms: Floats
    records: Records


class LiveHalf:
    """W = S1·S2·…·Sl over live steps: a row that an edge reaches is computed anew and kept as a record beside the base.

    Nothing is ever computed from an older value, so that no rounding adds up.
    """

    def __init__(self, steps: Sequence[LiveStep], base: Csr, transposed: Csr, norms: Floats) -> None:
        self.steps = steps
        self._base, self._transposed, self._norms = base, transposed, norms
        self.num_records, self.num_entries = 0, 0
        whole, real = np.int64, np.float64
        latest, heads = np.full(base.shape[0], -1, dtype=whole), np.full(base.shape[1], -1, dtype=whole)
        records = [np.full(_FIRST, fill, dtype=real if at == 2 else whole) for at, fill in enumerate(_RECORD_FILLS)]
        pool = [np.zeros(_FIRST, dtype=real if at == 1 else whole) for at in range(4)]
        self._arrays = Records(latest, heads, *records, *pool)

    @property
    def share(self) -> float:
        """How many entries of records there are for each entry of the base."""
        return self.num_entries / max(1, self._base.nnz)

    def grow(self, num_rows: int, num_columns: int) -> None:
        """Make room for new nodes at either end."""
        latest, heads = grown(self._arrays.latest, num_rows, -1), grown(self._arrays.heads, num_columns, -1)
        self._arrays = self._arrays._replace(latest=latest, heads=heads)

    def affected(self, pairs: Sequence[tuple[Link, int, int]]) -> Rows:
        """Return the rows that change with some edges: those from which a path leads over one of them."""
        rows = np.empty(0, dtype=np.int64)
        for step in reversed(self.steps):
            through = step.reaching(rows) if len(rows) else rows
            rows = np.union1d(through, step.changed_rows(pairs))
        return rows

    def recompute(self, rows: Rows, version: int) -> None:
        """Give some rows a new record each."""
        for row in rows.tolist():
            columns, values = np.array([row]), np.ones(1)
            for step in self.steps:
                columns, values = step.multiply(columns, values)
            self._make_room(len(columns))
            number, place = self.num_records, self.num_entries
            kernels.fill_record(self._arrays, number, row, place, columns, values, version)
            self.num_records, self.num_entries = number + 1, place + len(columns)
            kernels.link_record(self._arrays, number, row, version)

    def _make_room(self, entries: int) -> None:
        latest, heads, *others = self._arrays
        if self.num_records < len(others[0]) and self.num_entries + entries <= len(others[-1]):
            return
        wanted = self.num_records + 1
        records = [grown(array, wanted, fill) for array, fill in zip(others[:7], _RECORD_FILLS, strict=True)]
        pool = [grown(array, self.num_entries + entries) for array in others[7:]]
        self._arrays = Records(latest, heads, *records, *pool)

    def view(self) -> HalfView:
        """Return what readers need, as it is now; what is written later does not disturb them."""
        base, transposed = ((m.indptr, m.indices, m.data) for m in (self._base, self._transposed))
        return HalfView(base, transposed, self._norms, self._arrays)

"""LiveHalf: a half-path matrix over an immutable base, of which every version can be read while the next is written."""

from collections.abc import Sequence

import numpy as np

from neupath.graph import Csr, Floats
from neupath.live.growing import NEVER, Half
from neupath.live.lines import LiveLines
from neupath.live.norms import LiveNorms
from neupath.live.reach import reach_of
from neupath.live.steps import LiveStep, Pair
from neupath.nodes import Rows


class LiveHalf:
    """W = S1·S2·…·Sl over live steps: what an edge reaches is computed anew, and what differs is kept as entries.

    Nothing is ever computed from an older value where that could round, so that no rounding adds up.
    """

    def __init__(self, steps: Sequence[LiveStep], base: Csr, transposed: Csr, norms: Floats, version: int) -> None:
        self.steps, self._version = steps, version
        self._size, self._written = max(1, base.nnz), 0
        self._rows, self._columns = LiveLines(base), LiveLines(transposed)
        self._norms = LiveNorms(norms, self._rows.arrays)
        self._reach = reach_of(steps)

    @property
    def arrays(self) -> Half:
        """What readers need, as it is now; what is written later does not disturb them."""
        return Half(self._rows.arrays, self._columns.arrays, self._norms.arrays, self._version)

    @property
    def share(self) -> float:
        """How many entries were written for each entry of the base."""
        return self._written / self._size

    @property
    def is_held(self) -> bool:
        """Whether floats have held all that was written so far."""
        return self._norms.are_held

    def grow(self, num_rows: int, num_columns: int) -> None:
        """Make room for new nodes at either end."""
        self._rows.grow(num_rows)
        self._columns.grow(num_columns)
        self._norms.grow(num_rows)

    def follow(self, pairs: Sequence[Pair], version: int) -> None:
        """Bring up to date what some edges reach: entries where these can be computed alone, and else rows."""
        if self._reach is not None:
            entries = self._reach.entries(pairs)
            if entries is not None:
                self.write(*entries, version)
            return
        for row in self._affected(pairs).tolist():
            columns, values = self.steps[0].row(row)
            for step in self.steps[1:]:
                columns, values = step.multiply(columns, values)
            changed, wanted = self._rows.differences(row, columns, values)
            self.write(np.full(len(changed), row), changed, wanted, version)

    def write(self, rows: Rows, columns: Rows, values: Floats, version: int) -> None:
        """Set entries, ascending, from a version on; those that are so already are left alone."""
        since = version - self._version
        if since >= NEVER:
            raise OverflowError(f"{since:,} versions since the base was made; compact the live graph before it goes on")
        old, number = self._rows.put(rows, columns, values, since)
        if not number:
            return
        if number < len(rows):
            changed = np.flatnonzero(old != values)
            rows, columns, values, old = rows[changed], columns[changed], values[changed], old[changed]
        order = np.lexsort((rows, columns)) if number > 1 else slice(None)
        self._columns.put(columns[order], rows[order], values[order], since)
        self._norms.put(self._rows.fields, rows, old, values, since)
        self._written += number

    def _affected(self, pairs: Sequence[Pair]) -> Rows:
        """Return the rows that may change with some edges: those from which a path leads over one of them."""
        rows = np.empty(0, dtype=np.int64)
        for step in reversed(self.steps):
            through = step.reaching(rows) if len(rows) else rows
            rows = np.union1d(through, step.changed_rows(pairs))
        return rows

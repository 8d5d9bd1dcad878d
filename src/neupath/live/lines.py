"""LiveLines: the rows or columns of a matrix over an immutable base, of which every version can be read."""

import numpy as np

from neupath.graph import Csr, Floats, freeze
from neupath.live import line_kernels as kernels
from neupath.live.growing import ENTRY, NEVER, VERSION, Lines, grown
from neupath.nodes import Rows

_FIRST = 64
"""Entries that there is room for at first."""
_EMPTY = np.array((0, 0.0, NEVER, NEVER), dtype=ENTRY)


class LiveLines:
    """Lines that one writer changes while any number of readers read `arrays`, each as of its own version."""

    def __init__(self, base: Csr) -> None:
        frozen = freeze(base)
        spans = np.full(base.shape[0], -1, dtype=np.int64)
        matrix = frozen.indptr, frozen.indices, frozen.data, np.full(base.nnz, NEVER, dtype=VERSION)
        self._used = 0
        self._take(Lines(*matrix, spans, np.full(_FIRST, _EMPTY)), spans.copy())

    def _take(self, written: Lines, spans: Rows) -> None:
        """Go on with some arrays; `spans` are those that readers see, who are not disturbed by what is written."""
        self._written, self.fields = written, tuple(written)
        self.arrays = written._replace(spans=spans)

    def grow(self, count: int) -> None:
        """Make room for new lines, which are empty yet."""
        written = self._written._replace(spans=grown(self._written.spans, count, -1))
        self._take(written, grown(self.arrays.spans, count, -1))

    def put(self, lines: Rows, places: Rows, values: Floats, version: int) -> tuple[Floats, int]:
        """Set entries by line and place, both ascending, from a version on; 0 takes one away.

        Returns what they were, and how many were others.
        """
        old = np.empty(len(lines))
        done, changed = 0, 0
        while done < len(lines):
            done, self._used, more = kernels.write(self.fields, self._used, lines, places, values, old, version, done)
            changed += more
            if done < len(lines):
                self._lengthen()
        self.arrays.spans[lines] = self._written.spans[lines]
        return old, changed

    def differences(self, line: int, places: Rows, values: Floats) -> tuple[Rows, Floats]:
        """Return where a line is to be another than it is, with the new values."""
        changed, wanted = kernels.differences(self._written, line, places, values)
        return changed, wanted

    def _lengthen(self) -> None:
        """Go on in longer arrays, and in a copy of the spans: the old must not lead readers past their arrays' end."""
        longer = grown(self._written.entries, 2 * len(self._written.entries), _EMPTY)
        self._take(self._written._replace(entries=longer), self.arrays.spans.copy())

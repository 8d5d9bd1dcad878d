"""LiveLines: the rows or columns of a matrix over an immutable base, of which every version can be read."""

import numpy as np

from neupath.graph import Csr, Floats, freeze
from neupath.live import line_kernels as kernels
from neupath.live.growing import Lines, grown
from neupath.nodes import Rows

_FIRST = 64
"""Entries that there is room for at first."""
_ENTRIES = {"places": None, "values": None, "born": kernels.NEVER, "died": kernels.NEVER}


class LiveLines:
    """Lines that one writer changes while any number of readers read `arrays`, each as of its own version."""

    def __init__(self, base: Csr) -> None:
        frozen = freeze(base)
        count = base.shape[0]
        none = np.full(_FIRST, kernels.NEVER)
        self._written = Lines(
            frozen.indptr, frozen.indices, frozen.data, np.full(base.nnz, kernels.NEVER),
            np.full(count, kernels.NEVER), np.full(count, -1, dtype=np.int64),
            np.zeros(_FIRST, dtype=np.int64), np.zeros(_FIRST), none, none.copy(),
        )  # fmt: skip
        self._used = 0
        self.arrays = self._written._replace(spans=self._written.spans.copy())
        """What readers need, as it is now; what is written later does not disturb them."""

    def grow(self, count: int) -> None:
        """Make room for new lines, which are empty yet."""
        changed = grown(self._written.changed, count, kernels.NEVER)
        self._written = self._written._replace(changed=changed, spans=grown(self._written.spans, count, -1))
        self.arrays = self.arrays._replace(changed=changed, spans=grown(self.arrays.spans, count, -1))

    def put(self, lines: Rows, places: Rows, values: Floats, version: int) -> Floats:
        """Set entries by line and place, both ascending, from a version on (0 takes one away); return what they were.

        Entries that are so already are left alone.
        """
        old = np.empty(len(lines))
        done = 0
        while done < len(lines):
            done, self._used = kernels.write(self._written, self._used, lines, places, values, old, version, done)
            if done < len(lines):
                self._lengthen()
        self.arrays.spans[lines] = self._written.spans[lines]
        return old

    def differences(self, line: int, places: Rows, values: Floats) -> tuple[Rows, Floats]:
        """Return where a line is to be another than it is, with the new values."""
        changed, wanted = kernels.differences(self._written, line, places, values)
        return changed, wanted

    def _lengthen(self) -> None:
        """Go on in longer arrays, and in a copy of the spans: the old must not lead readers past their arrays' end."""
        wanted = 2 * len(self._written.born)
        longer = {name: grown(getattr(self._written, name), wanted, fill) for name, fill in _ENTRIES.items()}
        self._written = self._written._replace(**longer)
        self.arrays = self._written._replace(spans=self.arrays.spans.copy())

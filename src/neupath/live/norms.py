"""LiveNorms: ‖row‖² of every row of a half-path matrix, of which every version can be read."""

import numpy as np

from neupath.graph import Floats
from neupath.live import norm_kernels as kernels
from neupath.live.growing import NORM, Lines, Norms, grown
from neupath.nodes import Rows

_ALWAYS = -1


class LiveNorms:
    """Norms that one writer changes with the entries of their rows, while any number of readers read `arrays`."""

    def __init__(self, base: Floats, rows: Lines) -> None:
        every = np.zeros(len(base) + 1, dtype=NORM)
        every["value"][1:] = base
        every["born"] = _ALWAYS
        self.arrays = Norms(np.arange(1, len(every)), every)
        """What readers need, as it is now; what is written later does not disturb them."""
        self._whole = kernels.find_whole(rows.indptr, rows.data, base)
        self._used = len(every)

    def grow(self, count: int) -> None:
        """Make room for new rows, which are empty yet."""
        self.arrays = self.arrays._replace(heads=grown(self.arrays.heads, count, 0))
        self._whole = grown(self._whole, count, 1)

    def put(self, lines: Lines, rows: Rows, old: Floats, new: Floats, version: int) -> None:
        """Follow entries that changed, by row, from a version on; `lines` are the rows as they are now."""
        if self._used + len(rows) > len(self.arrays.every):
            self._lengthen(self._used + len(rows))
        written = kernels.renew(self.arrays, self._whole, lines, rows, old, new, self._used, version)
        self.arrays.heads[written] = np.arange(self._used, self._used + len(written))
        self._used += len(written)

    def _lengthen(self, wanted: int) -> None:
        """Go on in a longer array, and in a copy of the heads: the old must not lead readers past the end of theirs."""
        self.arrays = self.arrays._replace(every=grown(self.arrays.every, wanted), heads=self.arrays.heads.copy())

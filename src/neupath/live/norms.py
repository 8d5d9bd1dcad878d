"""LiveNorms: ‖row‖² of every row of a half-path matrix, of which every version can be read."""

import numpy as np

from neupath.graph import Floats
from neupath.live import norm_kernels as kernels
from neupath.live.growing import NORM, Lines, Norms, grown
from neupath.nodes import Rows

_MOST = 1024
"""Norms beside the base; more would be far apart in memory, and a new base costs little for each of so many."""


class LiveNorms:
    """Norms that one writer changes with the entries of their rows, while any number of readers read `arrays`."""

    def __init__(self, base: Floats, rows: Lines) -> None:
        self._take(_without_changes(base.copy(), _MOST))
        self._used = 0
        self.are_held = True
        """Whether floats have held all norms so far; where they have not, a measure refuses to be fitted."""
        self._whole = kernels.find_whole(rows.indptr, rows.data, base)

    def _take(self, arrays: Norms) -> None:
        """Go on with some arrays, of which readers are not disturbed by what is written."""
        self.arrays, self._fields = arrays, tuple(arrays)

    def grow(self, count: int) -> None:
        """Make room for new rows, which are empty yet."""
        base, heads = grown(self.arrays.base, count, 0), grown(self.arrays.heads, count, -1)
        self._take(self.arrays._replace(base=base, heads=heads))
        self._whole = grown(self._whole, count, 1)

    def put(self, fields: tuple[object, ...], rows: Rows, old: Floats, new: Floats, version: int) -> None:
        """Follow entries that changed, by row, from a version on; `fields` are those of the rows as they are now."""
        if self._used + len(rows) > len(self.arrays.since):
            self._fold(len(rows))
        written, held = kernels.renew(self._fields, self._whole, fields, rows, old, new, self._used, version)
        self.are_held &= held
        self.arrays.heads[written] = np.arange(self._used, self._used + len(written))
        self._used += len(written)

    def _fold(self, wanted: int) -> None:
        """Take all norms as they are for a new base; readers of older versions keep theirs."""
        self._take(_without_changes(kernels.newest(self.arrays), max(_MOST, wanted)))
        self._used = 0


def _without_changes(base: Floats, room: int) -> Norms:
    return Norms(base, np.full(len(base), -1, dtype=np.int32), np.zeros(room, dtype=NORM))

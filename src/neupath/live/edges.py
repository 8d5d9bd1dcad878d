"""LiveEdges: the edges of one link by row, over an immutable base, as the writer changes and reads them."""

import numpy as np

from neupath.graph import Csr
from neupath.live import kernels
from neupath.live.growing import Rows, grown

_ROOM = 4
"""The least room that a row is given to grow into."""


class LiveEdges:
    """Rows of weights that change one entry at a time; a row that changes is copied once, with room to grow."""

    def __init__(self, base: Csr) -> None:
        self.num_rows, self.num_columns = base.shape
        place = np.full(self.num_rows, -1, dtype=np.int64)
        sizes = np.zeros(self.num_rows, dtype=np.int64)
        self._used = 0
        pool = np.zeros(16, dtype=np.int64), np.zeros(16)
        self.arrays = Rows(base.indptr, base.indices, base.data, place, sizes, sizes.copy(), *pool)

    def grow(self, num_rows: int, num_columns: int) -> None:
        """Make room for new nodes, which have no edges yet."""
        self.num_rows, self.num_columns = num_rows, num_columns
        start, size, room = grown(self.arrays.start, num_rows, -1), self.arrays.size, self.arrays.room
        self.arrays = self.arrays._replace(start=start, size=grown(size, num_rows, 0), room=grown(room, num_rows, 0))

    def put(self, row: int, column: int, weight: float) -> None:
        """Set the weight of an edge; 0 takes it away."""
        size = self._size(row)
        if self.arrays.start[row] < 0 or size == self.arrays.room[row]:
            room = size + max(_ROOM, size // 4)
            wanted = self._used + room
            columns, values = grown(self.arrays.columns, wanted), grown(self.arrays.values, wanted)
            self.arrays = self.arrays._replace(columns=columns, values=values)
            kernels.move_row(self.arrays, row, self._used, room)
            self._used += room
        kernels.put_entry(self.arrays, row, column, weight)

    def _size(self, row: int) -> int:
        """Count the entries of a row."""
        indptr, start = self.arrays.indptr, self.arrays.start
        if start[row] >= 0:
            return int(self.arrays.size[row])
        return int(indptr[row + 1] - indptr[row]) if row + 1 < len(indptr) else 0

"""LiveEdges: the edges of one link by row, over a base, as the writer changes and reads them."""

import numpy as np

from neupath.graph import Csr
from neupath.live import edge_kernels as kernels
from neupath.live.growing import Rows, grown

_ROOM = 4
"""The least room that a row is given for further edges."""


class LiveEdges:
    """Rows of weights that change one entry at a time: those of the base in place, further ones beside it.

    An edge that is taken away stays with weight 0, so that whatever led over it can still be found.
    """

    def __init__(self, base: Csr) -> None:
        self.num_rows, self.num_columns = base.shape
        self.mean_size = base.nnz / max(1, base.shape[0])
        place = np.full(self.num_rows, -1, dtype=np.int64)
        sizes = np.zeros(self.num_rows, dtype=np.int64)
        self._used = 0
        pool = np.zeros(16, dtype=np.int64), np.zeros(16)
        self.arrays = Rows(base.indptr, base.indices, base.data.copy(), place, sizes, sizes.copy(), *pool)

    def grow(self, num_rows: int, num_columns: int) -> None:
        """Make room for new nodes, which have no edges yet."""
        self.num_rows, self.num_columns = num_rows, num_columns
        start, size, room = grown(self.arrays.start, num_rows, -1), self.arrays.size, self.arrays.room
        self.arrays = self.arrays._replace(start=start, size=grown(size, num_rows, 0), room=grown(room, num_rows, 0))

    def put(self, row: int, column: int, weight: float) -> None:
        """Set the weight of an edge; 0 takes it away."""
        if not kernels.put_entry(self.arrays, row, column, weight):
            self._make_room(row)
            kernels.put_entry(self.arrays, row, column, weight)

    def _make_room(self, row: int) -> None:
        """Move the further edges of a row to where there is room for more."""
        room = max(_ROOM, 2 * int(self.arrays.size[row]))
        wanted = self._used + room
        columns, values = grown(self.arrays.columns, wanted), grown(self.arrays.values, wanted)
        self.arrays = self.arrays._replace(columns=columns, values=values)
        kernels.move_row(self.arrays, row, self._used, room)
        self._used = wanted

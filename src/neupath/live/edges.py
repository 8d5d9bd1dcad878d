"""LiveEdges: the edges of one link by row, over a base, as the writer changes and reads them."""

import numpy as np

from neupath.graph import Csr
from neupath.live import edge_kernels as kernels
from neupath.live.growing import NOWHERE, Rows, grown

_FIRST = 64
"""Further edges that there is room for at first."""


class LiveEdges:
    """Rows of weights that change one entry at a time: those of the base in place, further ones beside it.

    An edge that is taken away stays with weight 0, so that whatever led over it can still be found.
    """

    def __init__(self, base: Csr) -> None:
        self.num_rows, self.num_columns = base.shape
        self.mean_size = base.nnz / max(1, base.shape[0])
        spans = np.full(self.num_rows, -1, dtype=np.int64)
        self._used = 0
        room = np.full(_FIRST, NOWHERE), np.zeros(_FIRST)
        self._take(Rows(base.indptr, base.indices, base.data.copy(), spans, *room))

    def _take(self, arrays: Rows) -> None:
        self.arrays, self.fields = arrays, tuple(arrays)

    def grow(self, num_rows: int, num_columns: int) -> None:
        """Make room for new nodes, which have no edges yet."""
        self.num_rows, self.num_columns = num_rows, num_columns
        self._take(self.arrays._replace(spans=grown(self.arrays.spans, num_rows, -1)))

    def put(self, row: int, column: int, weight: float) -> None:
        """Set the weight of an edge; 0 takes it away."""
        used = kernels.put_entry(self.fields, self._used, row, column, weight)
        while used < 0:
            self._lengthen()
            used = kernels.put_entry(self.fields, self._used, row, column, weight)
        self._used = used

    def _lengthen(self) -> None:
        wanted = 2 * len(self.arrays.columns)
        columns, values = grown(self.arrays.columns, wanted, NOWHERE), grown(self.arrays.values, wanted)
        self._take(self.arrays._replace(columns=columns, values=values))

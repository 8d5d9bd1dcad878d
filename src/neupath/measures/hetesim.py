"""HeteSim: the cosine of where random walks from both ends meet."""

import numpy as np
from scipy.sparse import csr_array

from neupath.engine.formula import Normalisation
from neupath.engine.products import Halves, adjacency
from neupath.graph.hin import HIN, Csr
from neupath.graph.metapath import MetaPath
from neupath.measures.path_measure import Leg, PathMeasure, checked_sums


class HeteSim(PathMeasure):
    """Compare where random walks from both ends of a meta-path meet in its middle; any meta-path, also between types.

        s(x, y) = cos(L[x,:], R[:,y]),    L = U1·…·Uk,    R = Vk+1·…·V2k

    L leads from the query to the middle and R from the middle to the target; Ui is Ai with rows, Vi is Ai with columns
    divided by their sums. On a path of odd length the walkers meet on the edges of the middle step: each edge becomes a
    node of its own, and an edge of weight w counts as w parallel edges. Shi, Kong, Huang, Yu, Wu, TKDE 2014.

    >>> from neupath import load
    >>> round(HeteSim("author-paper-venue").fit(load("toy")).score("Mike", "SIGMOD"), 4)
    0.1543
    """

    name = "hetesim"
    normalisation = Normalisation.COSINE

    def legs(self, metapath: MetaPath) -> list[Leg]:
        k, steps = len(metapath) // 2, metapath.steps
        left = [Leg(step, row_power=-1.0) for step in steps[:k]]
        middle = [Leg(step, row_power=-1.0, column_power=-1.0) for step in steps[k : len(steps) - k]]
        return [*left, *middle, *(Leg(step, column_power=-1.0) for step in steps[len(steps) - k :])]

    def meets_at_nodes(self, metapath: MetaPath) -> bool:
        return len(metapath) % 2 == 0

    def halves(self, hin: HIN, metapath: MetaPath) -> Halves:
        if self.meets_at_nodes(metapath):
            return super().halves(hin, metapath)
        legs, k = self.legs(metapath), len(metapath) // 2
        to_edge, from_edge = _through_edges(adjacency(hin, metapath.steps[k]))
        before, after = ([leg.matrix(hin) for leg in side] for side in (legs[:k], legs[k + 1 :]))
        return Halves([*before, to_edge], [from_edge, *after])


def _through_edges(matrix: Csr) -> tuple[Csr, Csr]:
    """Put a node on every edge: shapes (sources, edges) and (edges, targets), √w over the end's total weight."""
    coo = matrix.tocoo()
    edges = np.arange(coo.nnz)
    row_sums, column_sums = (checked_sums(matrix, axis) for axis in (1, 0))
    weights = np.sqrt(coo.data)
    to_edge = csr_array((weights / row_sums[coo.row], (coo.row, edges)), shape=(matrix.shape[0], coo.nnz))
    from_edge = csr_array((weights / column_sums[coo.col], (edges, coo.col)), shape=(coo.nnz, matrix.shape[1]))
    return to_edge, from_edge

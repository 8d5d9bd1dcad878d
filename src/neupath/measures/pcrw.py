"""PCRW, the path-constrained random walk (Lao, Cohen, Machine Learning 2010)."""

from neupath.graph import HIN, Csr
from neupath.halfpath import Halves, adjacencies, halved
from neupath.measures.path_measure import PathMeasure, scaled
from neupath.metapath import MetaPath
from neupath.normalisation import Normalisation


class PCRW(PathMeasure):
    """Give the probability that a random walk along the meta-path, from the query, ends at the target; any meta-path.

    s(x, y) = (U1·U2·…·Un)[x,y],  Ui = Ai with every row divided by its sum.

    Not symmetric: where a walk from x is likely to end says nothing of walks from y.

    >>> from neupath import load
    >>> round(PCRW("author-paper-venue").fit(load("toy")).score("Mike", "SIGMOD"), 4)
    0.6667
    """

    name = "pcrw"
    normalisation = Normalisation.NONE

    def step_matrices(self, hin: HIN, metapath: MetaPath) -> list[Csr]:
        return [scaled(matrix, -1, rows=True) for matrix in adjacencies(hin, metapath)]

    def halves(self, hin: HIN, metapath: MetaPath) -> Halves:
        return halved(self.step_matrices(hin, metapath))

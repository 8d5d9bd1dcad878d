"""PCRW, the path-constrained random walk (Lao, Cohen, Machine Learning 2010)."""

from neupath.engine.products import Normalisation
from neupath.graph.metapath import MetaPath
from neupath.measures.path_measure import Leg, PathMeasure


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
    mirrors = False

    def legs(self, metapath: MetaPath) -> list[Leg]:
        return [Leg(step, -1.0) for step in metapath.steps]

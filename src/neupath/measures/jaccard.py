"""Jaccard: what half-path rows share, of what either has."""

from neupath.engine.formula import Normalisation
from neupath.measures.path_measure import PathMeasure


class Jaccard(PathMeasure):
    """Count the paths between two nodes, relative to all paths that either has to itself.

        s(x, y) = M[x,y] / (M[x,x] + M[y,y] - M[x,y]),    M = W·Wᵀ,    W = A1·A2·…·Al

    Where W holds 0 and 1 only, s = |X ∩ Y| / |X ∪ Y| of the sets X and Y of middle nodes that x and y reach. Counts and
    weights make it the extended Jaccard or Tanimoto coefficient, which is not Σmin / Σmax. It ranks as PathSim does:
    with p = PathSim(x, y), s = p / (2 - p). Jaccard, New Phytologist 1912; Tanimoto, IBM Technical Report 1958.

    >>> from neupath import load
    >>> round(Jaccard("APVPA").fit(load("toy")).score("Mike", "Mary"), 4)
    0.6667
    """

    name = "jaccard"
    normalisation = Normalisation.JACCARD
    symmetric_only = True
    inferred_by_default = False

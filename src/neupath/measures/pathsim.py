"""PathSim: the Dice coefficient of half-path rows."""

from neupath.engine.formula import Normalisation
from neupath.measures.path_measure import PathMeasure


class PathSim(PathMeasure):
    """Count the paths between two nodes, relative to how connected each is to itself.

        s(x, y) = 2·M[x,y] / (M[x,x] + M[y,y]),    M = W·Wᵀ,    W = A1·A2·…·Al

    W is the half-path matrix of a symmetric meta-path of even length. `engine.formula` computes
    this. Sun, Han, Yan, Yu, Wu: PathSim, VLDB 2011.

    >>> from neupath import load
    >>> hits = PathSim("author-paper-venue-paper-author").fit(load("toy")).top_k("Mike", k=3)
    >>> [(hit.id, round(hit.score, 4)) for hit in hits]
    [('Bob', 1.0), ('Mary', 0.8), ('Jim', 0.0826)]
    """

    name = "pathsim"
    normalisation = Normalisation.DICE
    symmetric_only = True

"""JoinSim: the cosine of half-path rows."""

from neupath.engine.formula import Normalisation
from neupath.measures.path_measure import PathMeasure


class JoinSim(PathMeasure):
    """Count the paths between two nodes, relative to the geometric mean of each one's paths to itself.

        s(x, y) = M[x,y] / √(M[x,x]·M[y,y]),    M = W·Wᵀ,    W = A1·A2·…·Al

    It is the cosine of the half-path rows W[x,:] and W[y,:] of a symmetric meta-path of even length.
    Xiong, Zhu, Yu, TKDE 2015.

    >>> from neupath import load
    >>> round(JoinSim("APVPA").fit(load("toy")).score("Mike", "Jim"), 4)
    0.9965
    """

    name = "joinsim"
    normalisation = Normalisation.COSINE
    symmetric_only = True

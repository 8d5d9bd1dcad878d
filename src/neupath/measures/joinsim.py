"""JoinSim (Xiong, Zhu, Yu, TKDE 2015): the cosine of half-path rows."""

from neupath.engine.products import Normalisation, Product, symmetric_product
from neupath.graph.hin import HIN
from neupath.graph.metapath import MetaPath
from neupath.measures.path_measure import Leg, PathMeasure


class JoinSim(PathMeasure):
    """Count the paths between two nodes, relative to the geometric mean of each one's paths to itself.

    s(x, y) = M[x,y] / √(M[x,x]·M[y,y]),  M = W·Wᵀ: the cosine of the half-path rows W[x,:] and W[y,:].

    >>> from neupath import load
    >>> round(JoinSim("APVPA").fit(load("toy")).score("Mike", "Jim"), 4)
    0.9965
    """

    name = "joinsim"
    normalisation = Normalisation.COSINE

    def check(self, metapath: MetaPath) -> None:
        metapath.require_round_trip("JoinSim")

    def legs(self, metapath: MetaPath) -> list[Leg]:
        return [Leg(step) for step in metapath.steps]

    def factors(self, hin: HIN, metapath: MetaPath) -> Product:
        return symmetric_product(hin, metapath)

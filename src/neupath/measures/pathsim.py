"""PathSim (Sun, Han, Yan, Yu, Wu, VLDB 2011)."""

from neupath.engine.products import Normalisation, Product, symmetric_product
from neupath.graph.hin import HIN
from neupath.graph.metapath import MetaPath
from neupath.measures.path_measure import Leg, PathMeasure


class PathSim(PathMeasure):
    """Count the paths between two nodes, relative to how connected each is to itself.

    s(x, y) = 2·M[x,y] / (M[x,x] + M[y,y]),  M = W·Wᵀ,  W the half-path matrix of a symmetric meta-path.

    >>> from neupath import load
    >>> hits = PathSim("author-paper-venue-paper-author").fit(load("toy")).top_k("Mike", k=3)
    >>> [(hit.id, round(hit.score, 4)) for hit in hits]
    [('Bob', 1.0), ('Mary', 0.8), ('Jim', 0.0826)]
    """

    name = "pathsim"
    normalisation = Normalisation.DICE

    def check(self, metapath: MetaPath) -> None:
        metapath.require_round_trip("PathSim")

    def legs(self, metapath: MetaPath) -> list[Leg]:
        return [Leg(step) for step in metapath.steps]

    def factors(self, hin: HIN, metapath: MetaPath) -> Product:
        return symmetric_product(hin, metapath)

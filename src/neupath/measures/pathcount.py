"""Path count: how many instances of a meta-path join two nodes."""

from neupath.engine.products import Normalisation, Product, symmetric_product
from neupath.graph.hin import HIN
from neupath.graph.metapath import MetaPath
from neupath.measures.path_measure import Leg, PathMeasure


class PathCount(PathMeasure):
    """Count the path instances between two nodes, or add up their weights; any meta-path.

    s(x, y) = M[x,y],  M = A1·A2·…·An.

    >>> from neupath import load
    >>> PathCount("author-paper-venue").fit(load("toy")).score("Jim", "SIGMOD")
    50.0
    """

    name = "pathcount"
    normalisation = Normalisation.NONE

    def legs(self, metapath: MetaPath) -> list[Leg]:
        return [Leg(step) for step in metapath.steps]

    def factors(self, hin: HIN, metapath: MetaPath) -> Product:
        return symmetric_product(hin, metapath) if metapath.is_round_trip else super().factors(hin, metapath)

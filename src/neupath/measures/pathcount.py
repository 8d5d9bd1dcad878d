"""Path count: how many instances of a meta-path join two nodes."""

from neupath.graph import HIN, Csr
from neupath.halfpath import Halves, Product, adjacencies, halved, mirrored_half, out_and_back
from neupath.measures.path_measure import PathMeasure
from neupath.metapath import MetaPath
from neupath.normalisation import Normalisation


class PathCount(PathMeasure):
    """Count the path instances between two nodes, or add up their weights; any meta-path.

    s(x, y) = M[x,y],  M = A1·A2·…·An.

    >>> from neupath import load
    >>> PathCount("author-paper-venue").fit(load("toy")).score("Jim", "SIGMOD")
    50.0
    """

    name = "pathcount"
    normalisation = Normalisation.NONE

    def step_matrices(self, hin: HIN, metapath: MetaPath) -> list[Csr]:
        return adjacencies(hin, metapath)

    def halves(self, hin: HIN, metapath: MetaPath) -> Halves:
        return mirrored_half(hin, metapath) if metapath.is_round_trip else halved(self.step_matrices(hin, metapath))

    def factors(self, hin: HIN, metapath: MetaPath) -> Product:
        return out_and_back(hin, metapath) if metapath.is_round_trip else super().factors(hin, metapath)

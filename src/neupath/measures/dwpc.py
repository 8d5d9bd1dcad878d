"""DWPC, the degree-weighted path count (Himmelstein, Baranzini, PLOS Computational Biology 2015)."""

from neupath.engine.products import Normalisation
from neupath.errors import QueryError
from neupath.graph.metapath import MetaPath
from neupath.measures.path_measure import Leg, PathMeasure


class DWPC(PathMeasure):
    """Count paths, each worth less the more it runs through hubs; any meta-path.

    s(x, y) = (D1·D2·…·Dn)[x,y],  Di[u,v] = Ai[u,v]·(deg u · deg v)^-damping, degrees within the step's relation.

    Every walk along the meta-path counts, also one that meets a node twice; hetnet tools call that the walk count
    (DWWC) and their DWPC leaves such walks out. The two agree where a path has no room to meet a node twice.

    >>> from neupath import load
    >>> round(DWPC("author-paper-venue", damping=0.5).fit(load("toy")).score("Mike", "SIGMOD"), 4)
    0.1543
    """

    name = "dwpc"
    normalisation = Normalisation.NONE

    def __init__(self, metapath: str | MetaPath, damping: float = 0.4) -> None:
        super().__init__(metapath)
        if not 0 <= damping <= 1:
            raise QueryError(f"damping is {damping}; it lies between 0 (hubs count in full) and 1")
        self.damping = float(damping)

    def params(self) -> dict[str, object]:
        return super().params() | {"damping": self.damping}

    def legs(self, metapath: MetaPath) -> list[Leg]:
        return [Leg(step, -self.damping, -self.damping) for step in metapath.steps]

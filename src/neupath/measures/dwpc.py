"""DWPC, the degree-weighted path count."""

from neupath.errors import QueryError
from neupath.graph.metapath import MetaPath
from neupath.measures.path_measure import PathMeasure


class DWPC(PathMeasure):
    """Count paths, each worth less the more it runs through hubs; any meta-path.

        s(x, y) = (D1·D2·…·Dn)[x,y],    Di[u,v] = Ai[u,v]·(deg u · deg v)^-damping

    Degrees are those within the relation of the step. Himmelstein, Baranzini, PLOS Computational Biology 2015.

    Every walk along the meta-path counts, even one that visits a node twice. Hetnet tools call that the walk count
    (DWWC), and their DWPC leaves such walks out. The two agree where a path is too short to visit a node twice.

    Parameters
    ----------
    metapath
        Any meta-path, as a text or a `MetaPath`.
    damping
        How much hubs are discounted, from 0 (not at all) to 1.
    device
        "cuda" ranks many queries on a GPU, as for every `PathMeasure`.

    >>> from neupath import load
    >>> round(DWPC("author-paper-venue", damping=0.5).fit(load("toy")).score("Mike", "SIGMOD"), 4)
    0.1543
    """

    name = "dwpc"
    bounded = False
    settings = ("damping",)

    def __init__(self, metapath: str | MetaPath, damping: float = 0.4, *, device: str = "cpu") -> None:
        super().__init__(metapath, device=device)
        if not 0 <= damping <= 1:
            raise QueryError(f"damping is {damping}; give a number from 0 (hubs count in full) to 1")
        self.damping = float(damping)
        self.row_power = self.column_power = -self.damping

"""AvgSim: the mean of a random walk there and one back."""

from neupath.graph.metapath import MetaPath
from neupath.measures.combination import Combination, Part
from neupath.measures.path_measure import PathMeasure
from neupath.measures.pcrw import PCRW


class BackwardPCRW(PathMeasure):
    """Give the probability that a random walk along the reversed meta-path, from the target, ends at the query.

        s(x, y) = (V1·V2·…·Vn)[x,y],    Vi = Ai with every column divided by its sum

    It is `PCRW` with the ends exchanged: s(x, y) along a meta-path is PCRW(y, x) along its reverse; any meta-path.
    Lao, Cohen, Machine Learning 2010.

    >>> from neupath import load
    >>> round(BackwardPCRW("author-paper-venue").fit(load("toy")).score("Mike", "SIGMOD"), 4)
    0.0357
    """

    name = "backward-pcrw"
    column_power = -1.0


class AvgSim(Combination):
    """Average the probabilities of two random walks: along the meta-path to the target, and back; any meta-path.

        s(x, y) = ½·(PCRW(x, y) along P + PCRW(y, x) along P⁻¹)

    It is the exact sum of two products, `PCRW` and `BackwardPCRW`, and is explained by both. On a symmetric meta-path
    it is symmetric, though PCRW is not. Meng, Shi, Li, Zhang, Wu, APWeb 2014.

    Parameters
    ----------
    metapath
        Any meta-path, as a text or a `MetaPath`.

    >>> from neupath import load
    >>> avgsim = AvgSim("author-paper-venue-paper-author").fit(load("toy"))
    >>> avgsim.score("Mike", "Jim") == avgsim.score("Jim", "Mike")
    True
    """

    name = "avgsim"

    def __init__(self, metapath: str | MetaPath) -> None:
        self.metapath = metapath
        super().__init__([Part("pcrw", metapath, 0.5), Part(BackwardPCRW.name, metapath, 0.5)])

    def _make_measures(self) -> list[PathMeasure]:
        return [PCRW(self.metapath), BackwardPCRW(self.metapath)]

    def params(self) -> dict[str, object]:
        return {"metapath": str(self.metapath) if not hasattr(self, "hin_") else self.metapath_text}

    @property
    def metapath_text(self) -> str | None:
        self._fitted()
        return self.measures_[0].metapath_text

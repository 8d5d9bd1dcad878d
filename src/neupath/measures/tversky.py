"""Tversky's index: what half-path rows share, with a weight for what each has alone."""

from math import sqrt

from neupath.engine.formula import Normalisation
from neupath.errors import QueryError
from neupath.graph.metapath import MetaPath
from neupath.measures.path_measure import PathMeasure

_MARGIN, _LARGEST = 1e-3, 1000.0  # beyond these, rounding would tell in the last digits that rankings need


class Tversky(PathMeasure):
    """Count the paths between two nodes, relative to these and to what each has besides, weighed by alpha and beta.

        s(x, y) = m / (m + α·(M[x,x] - m) + β·(M[y,y] - m)),    m = M[x,y],    M = W·Wᵀ,    W = A1·A2·…·Al

    Where W holds 0 and 1 only, s = |X ∩ Y| / (|X ∩ Y| + α·|X - Y| + β·|Y - X|) of the sets X and Y of middle nodes that
    x and y reach. α = β = ½ is PathSim and α = β = 1 is Jaccard; α = 1, β = 0 asks how much of the query the target
    has, α = 0, β = 1 how much of the target the query has. With counts and weights, M[x,x] - m can be negative and s
    above 1, at most 1 / (1 - (√α - √β)²). Tversky, Psychological Review 1977.

    Parameters
    ----------
    metapath
        A symmetric meta-path of even length, as a text or a `MetaPath`.
    alpha, beta
        The weight of what the query has alone, and of what the target has alone: from 0 to 1000, not both 0, and
        with α + β ≤ 1 or |√α - √β| < 0.9995, so that no denominator is 0.
    device
        "cuda" ranks many queries on a GPU, as for every `PathMeasure`.

    >>> from neupath import load
    >>> hin = load("toy")
    >>> round(Tversky("APVPA", alpha=1, beta=1).fit(hin).score("Mike", "Mary"), 4)
    0.6667
    >>> round(Tversky("APVPA", alpha=1, beta=0).fit(hin).score("Mike", "Jim"), 4)
    24.0
    """

    name = "tversky"
    normalisation = Normalisation.TVERSKY
    symmetric_only = True
    bounded = False
    settings = ("alpha", "beta")

    def __init__(self, metapath: str | MetaPath, alpha: float = 0.5, beta: float = 0.5, *, device: str = "cpu") -> None:
        super().__init__(metapath, device=device)
        for name, value in (("alpha", alpha), ("beta", beta)):
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _LARGEST:
                raise QueryError(f"‹{name}› is {value!r}; give a number from 0 to 1000", parameter=name)
        if alpha + beta == 0:
            raise QueryError(
                "‹alpha› and ‹beta› are 0, so that all related nodes score 1; raise one", parameter="alpha"
            )
        if alpha + beta > 1 and (sqrt(alpha) - sqrt(beta)) ** 2 > 1 - _MARGIN:
            raise QueryError(
                f"‹alpha› {alpha:g} and ‹beta› {beta:g} are so far apart that a denominator can be 0; bring them "
                f"nearer, or let them add up to at most 1",
                parameter="alpha",
            )
        self.alpha, self.beta = float(alpha), float(beta)
        self.formula = int(self.normalisation), self.alpha, self.beta

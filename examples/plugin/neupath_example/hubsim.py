"""HubSim: PathSim that gives less weight to hubs."""

from neupath import MetaPath
from neupath.measures import Leg, Normalisation, PathMeasure, reversed_legs


class HubSim(PathMeasure):
    """Count the paths between two nodes as PathSim does, each step divided by the root of the degree it leads to.

        s(x, y) = 2·M[x,y] / (M[x,x] + M[y,y]),    M = W·Wᵀ,    W = B1·B2·…·Bl,    B[u,v] = A[u,v] / √(Σ A[:,v])

    >>> from neupath import load
    >>> round(HubSim("APVPA").fit(load("toy")).score("Mike", "Mary"), 4)
    0.2075
    """

    name = "hubsim"
    normalisation = Normalisation.DICE
    symmetric_only = True

    def legs(self, metapath: MetaPath) -> list[Leg]:
        forward = [Leg(step, column_power=-0.5) for step in metapath.steps[: len(metapath) // 2]]
        return [*forward, *reversed_legs(forward)]

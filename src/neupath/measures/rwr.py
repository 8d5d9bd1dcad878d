"""RWR, random walk with restart."""

import numpy as np

from neupath.graph.hin import Floats
from neupath.measures.restart_walk import RestartWalk


class RWR(RestartWalk):
    """Walk and restart at the query, with edges weighted by the degrees of both their ends.

        r = damping·D^-½·A·D^-½·r + (1 - damping)·e_q,    D the degrees

    Personalised PageRank divides by the degree of the node it leaves; this divides by the roots of both degrees, so
    that scores are symmetric and hubs gain less. Tong, Faloutsos, Pan, ICDM 2006.

    Parameters
    ----------
    node_type
        The type of queries and targets.
    damping
        The weight of another step rather than a restart, between 0 and 1.
    tolerance
        The most by which a score may be wrong; 0 for exact scores. On small graphs all are exact: see `error_`.

    >>> from neupath import load
    >>> hits = RWR("author").fit(load("toy")).top_k("Mike", k=2)
    >>> [(hit.id, round(hit.score, 4)) for hit in hits]
    [('Jim', 0.0268), ('Bob', 0.0056)]
    """

    name = "rwr"

    def __init__(self, node_type: str, *, damping: float = 0.9, tolerance: float = 1e-6) -> None:
        super().__init__(node_type, damping=damping, tolerance=tolerance)

    def _scale(self, roots: Floats, query: int) -> Floats:  # noqa: ARG002
        return np.ones_like(roots)

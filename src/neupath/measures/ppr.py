"""PPR, personalised PageRank."""

from neupath.graph.hin import Floats
from neupath.measures.restart_walk import RestartWalk


class PPR(RestartWalk):
    """Return the share of visits to the target of a random walk that may restart at the query before each step.

        π = damping·A·D⁻¹·π + (1 - damping)·e_q,    D the degrees

    It favours nodes with many edges, and is not symmetric. Jeh, Widom, WWW 2003.

    Parameters
    ----------
    node_type
        The type of queries and targets.
    damping
        The probability of another step rather than a restart, between 0 and 1.
    tolerance
        The most by which a score may be wrong; 0 for exact scores. On small graphs all are exact: see `error_`.

    >>> from neupath import load
    >>> hits = PPR("author").fit(load("toy")).top_k("Mike", k=2)
    >>> [(hit.id, round(hit.score, 4)) for hit in hits]
    [('Jim', 0.0988), ('Bob', 0.0043)]
    """

    name = "ppr"

    def __init__(self, node_type: str, *, damping: float = 0.85, tolerance: float = 1e-6) -> None:
        super().__init__(node_type, damping=damping, tolerance=tolerance)

    def _scale(self, roots: Floats, query: int) -> Floats:
        scale: Floats = roots / self.roots_[query]
        return scale

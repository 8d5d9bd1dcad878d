"""PPR, personalised PageRank."""

from neupath.graph.hin import Csr
from neupath.measures.graph_measure import RestartWalk, degree_power


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
        A bound on the part of π that the finite sum leaves out.

    >>> from neupath import load
    >>> hits = PPR("author").fit(load("toy")).top_k("Mike", k=2)
    >>> [(hit.id, round(hit.score, 4)) for hit in hits]
    [('Jim', 0.0988), ('Bob', 0.0043)]
    """

    name = "ppr"

    def __init__(self, node_type: str, *, damping: float = 0.85, tolerance: float = 1e-9) -> None:
        super().__init__(node_type, damping=damping, tolerance=tolerance)

    def _transitions(self, adjacency: Csr) -> Csr:
        return adjacency @ degree_power(adjacency, -1)

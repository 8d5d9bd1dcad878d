"""RWR, random walk with restart."""

from neupath.graph.hin import Csr
from neupath.measures.graph_measure import RestartWalk, degree_power


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
        A bound on the part of r that the finite sum leaves out.

    >>> from neupath import load
    >>> hits = RWR("author").fit(load("toy")).top_k("Mike", k=2)
    >>> [(hit.id, round(hit.score, 4)) for hit in hits]
    [('Jim', 0.0268), ('Bob', 0.0056)]
    """

    name = "rwr"

    def __init__(self, node_type: str, *, damping: float = 0.9, tolerance: float = 1e-9) -> None:
        super().__init__(node_type, damping=damping, tolerance=tolerance)

    def _transitions(self, adjacency: Csr) -> Csr:
        roots = degree_power(adjacency, -0.5)
        return roots @ adjacency @ roots

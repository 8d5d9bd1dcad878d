"""RWR, random walk with restart."""

from scipy.sparse import csr_array

from neupath.graph.hin import Csr, Floats
from neupath.graph.nodes import Rows
from neupath.measures.graph_measure import GraphMeasure, check_share, degree_power, walk_with_restart


class RWR(GraphMeasure):
    """Walk and start again at the query, with edges weighted by the degrees of both their ends.

        r = damping·D^-½·A·D^-½·r + (1 - damping)·e_q,    D the degrees

    Personalised PageRank divides by the degree of the node it leaves; this divides by the roots of both degrees, so
    that scores are symmetric and hubs gain less. Tong, Faloutsos, Pan, ICDM 2006.

    Parameters
    ----------
    node_type
        The type of queries and targets.
    damping
        The weight of another step rather than a new start, between 0 and 1.
    tolerance
        A bound on the part of r that the finite sum leaves out.

    >>> from neupath import load
    >>> hits = RWR("author").fit(load("toy")).top_k("Mike", k=2)
    >>> [(hit.id, round(hit.score, 4)) for hit in hits]
    [('Jim', 0.0268), ('Bob', 0.0056)]
    """

    name = "rwr"
    settings = ("damping", "tolerance")

    def __init__(self, node_type: str, *, damping: float = 0.9, tolerance: float = 1e-9) -> None:
        super().__init__(node_type)
        self.damping = check_share("damping", damping)
        self.tolerance = check_share("tolerance", tolerance)

    def _prepare(self, adjacency: Csr) -> None:
        roots = degree_power(adjacency, -0.5)
        self.steps_ = csr_array(roots @ adjacency @ roots)

    def _score_nodes(self, nodes: Rows) -> Floats:
        return walk_with_restart(self.steps_, nodes, self.damping, self.tolerance)[self.rows_].T

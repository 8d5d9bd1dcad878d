"""PPR, personalised PageRank."""

from scipy.sparse import csr_array

from neupath.graph.hin import Csr, Floats
from neupath.graph.nodes import Rows
from neupath.measures.graph_measure import GraphMeasure, check_share, degree_power, walk_with_restart


class PPR(GraphMeasure):
    """Give how often a random walk visits the target that, before each step, may start again at the query.

        π = damping·A·D⁻¹·π + (1 - damping)·e_q,    D the degrees

    π is the share of its time that the walk spends at each node, so that it favours nodes with many edges. It is not
    symmetric. Jeh, Widom, WWW 2003.

    Parameters
    ----------
    node_type
        The type of queries and targets.
    damping
        The probability of another step rather than a new start, between 0 and 1.
    tolerance
        A bound on the part of π that the finite sum leaves out.

    >>> from neupath import load
    >>> hits = PPR("author").fit(load("toy")).top_k("Mike", k=2)
    >>> [(hit.id, round(hit.score, 4)) for hit in hits]
    [('Jim', 0.0988), ('Bob', 0.0043)]
    """

    name = "ppr"
    settings = ("damping", "tolerance")

    def __init__(self, node_type: str, *, damping: float = 0.85, tolerance: float = 1e-9) -> None:
        super().__init__(node_type)
        self.damping = check_share("damping", damping)
        self.tolerance = check_share("tolerance", tolerance)

    def _prepare(self, adjacency: Csr) -> None:
        self.steps_ = csr_array(adjacency @ degree_power(adjacency, -1))

    def _score_nodes(self, nodes: Rows) -> Floats:
        return walk_with_restart(self.steps_, nodes, self.damping, self.tolerance)[self.rows_].T

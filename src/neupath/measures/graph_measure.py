"""GraphMeasure, the base class of measures over the whole graph, and RestartWalk, that of PPR and RWR."""

from abc import abstractmethod
from math import ceil, log
from typing import ClassVar, Self

import numpy as np
from scipy.sparse import coo_array, csr_array, diags_array

from neupath._runtime.progress import check_cancelled
from neupath.engine.cache import cached
from neupath.engine.scorer import Scorer
from neupath.engine.topk import Ranking, related
from neupath.errors import QueryError
from neupath.graph.hin import HIN, Csr, Floats, freeze
from neupath.graph.nodes import Mask, Rows

_QUERIES_PER_BLOCK = 64


class GraphMeasure(Scorer):
    """A measure over all paths of the graph at once, between nodes of one type.

    A[u,v] is the weight of all edges between two nodes of any types: relations are added up, and every edge can be
    walked both ways, so that A is symmetric.

    Parameters
    ----------
    node_type
        The type of queries and targets.
    """

    exact = True
    settings: ClassVar[tuple[str, ...]] = ()  # the parameters of the constructor besides the node type
    is_heavy: ClassVar[bool] = False  # whether `fit` takes more than some passes over the edges

    def __init__(self, node_type: str) -> None:
        self.node_type = node_type

    def fit(self, hin: HIN) -> Self:
        self.node_type_ = hin.schema.node_type(self.node_type)
        self.hin_ = hin
        self.rows_ = hin.numbering.rows(self.node_type_)
        self._prepare(cached(hin, "A", lambda: whole_adjacency(hin)))
        return self

    @abstractmethod
    def _prepare(self, adjacency: Csr) -> None:
        """Compute what all queries need from A; shape (nodes, nodes), sparse."""

    @abstractmethod
    def _score_nodes(self, nodes: Rows) -> Floats:
        """Return the score of some nodes with every node of the type; shape (queries, targets)."""

    @property
    def source_type(self) -> str:
        self._fitted()
        return self.node_type_

    def params(self) -> dict[str, object]:
        node_type = {"node_type": getattr(self, "node_type_", self.node_type)}
        return node_type | {name: getattr(self, name) for name in self.settings}

    def score_rows(self, queries: Rows) -> Floats:
        nodes = self.rows_.start + np.asarray(queries, dtype=np.int64)
        starts = range(0, len(nodes), _QUERIES_PER_BLOCK)
        blocks = [self._score_nodes(nodes[start : start + _QUERIES_PER_BLOCK]) for start in starts]
        return np.concatenate([np.zeros((0, self.rows_.stop - self.rows_.start)), *blocks])

    def rank_rows(self, queries: Rows, skipped: Rows, k: int, candidates: Mask | None, threads: int | None) -> Ranking:
        return related(super().rank_rows(queries, skipped, k, candidates, threads))


def check_share(name: str, value: float) -> float:
    """Return the value of a parameter; raise if it is not between 0 and 1."""
    if not 0 < value < 1:
        raise QueryError(f"‹{name}› is {value}; it must lie between 0 and 1", parameter=name)
    return value


def whole_adjacency(hin: HIN) -> Csr:
    """Return A over all nodes in one numbering; shape (nodes, nodes), sparse."""
    size = hin.numbering.total
    total = csr_array((size, size), dtype=np.float64)
    for relation, matrix in hin.matrices.items():
        entries = matrix.tocoo()
        places = (
            entries.row + hin.numbering.first(relation.source),
            entries.col + hin.numbering.first(relation.target),
        )
        forth = coo_array((entries.data, places), shape=(size, size)).tocsr()
        back = forth.T - diags_array(forth.diagonal()) if relation.directed else csr_array((size, size))  # loops once
        total = total + forth + back
    return freeze(csr_array(total))


# ---- Walks with restart --------------------------------------------------------------------------
class RestartWalk(GraphMeasure):
    """The base of `PPR` and `RWR`: v = damping·T·v + (1 - damping)·e_q, with a matrix T of norm 1.

    v = (1 - damping)·Σ_k (damping·T)^k·e_q. The sum ends where the rest of it is less than the tolerance.
    """

    settings = ("damping", "tolerance")

    def __init__(self, node_type: str, *, damping: float, tolerance: float = 1e-9) -> None:
        super().__init__(node_type)
        self.damping = check_share("damping", damping)
        self.tolerance = check_share("tolerance", tolerance)

    @abstractmethod
    def _transitions(self, adjacency: Csr) -> Csr:
        """Return T; shape (nodes, nodes), sparse."""

    def _prepare(self, adjacency: Csr) -> None:
        self.transitions_ = csr_array(self._transitions(adjacency))

    def _score_nodes(self, nodes: Rows) -> Floats:
        start = np.zeros((self.transitions_.shape[0], len(nodes)))
        start[nodes, np.arange(len(nodes))] = 1.0
        visits = start
        for _ in range(ceil(log(self.tolerance) / log(self.damping))):
            check_cancelled()
            visits = self.damping * (self.transitions_ @ visits) + (1 - self.damping) * start
        return visits[self.rows_].T


def degree_power(adjacency: Csr, power: float) -> Csr:
    """Return the degrees to a power as a diagonal matrix; a degree of 0 stays 0."""
    degrees = np.asarray(adjacency.sum(axis=1), dtype=np.float64)
    powers = np.zeros_like(degrees)
    np.power(degrees, power, out=powers, where=degrees > 0)
    return csr_array(diags_array(powers))

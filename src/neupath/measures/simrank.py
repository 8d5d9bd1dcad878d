"""SimRank, one query at a time."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.sparse import csr_array, eye_array

from neupath.engine.cache import cached
from neupath.errors import QueryError
from neupath.graph.hin import Csr, Floats
from neupath.graph.nodes import Rows
from neupath.measures.graph_measure import GraphMeasure, check_share, degree_power

_ROWS_PER_BLOCK = 256
_DENSE = 0.05  # the share of entries above which a dense product is faster than a sparse one


class SimRank(GraphMeasure):
    """Two nodes are similar where their neighbours are.

        S_k(x, y) = decay·mean_{i ~ x, j ~ y} S_{k-1}(i, j),    S_k(x, x) = 1,    S_0 = I

    The mean weighs neighbours by their edges. The score is S_k after `iterations` steps, exactly, and less than
    decay^(iterations + 1) from its limit. Jeh, Widom, KDD 2002; Lizorkin et al., VLDB 2008.

    With U = D⁻¹·A a step is S_k = decay·U·S_{k-1}·Uᵀ + C_k, where the diagonal C_k restores the ones. So a query needs
    one vector, multiplied out and back, and no matrix of all pairs:

        S_k·e_q = Σ_j decay^j·U^j·C_{k-j}·(Uᵀ)^j·e_q

    The C_k are computed once per graph, from walks that start at every node.

    Parameters
    ----------
    node_type
        The type of queries and targets.
    decay
        How much similarity each step away loses, between 0 and 1.
    iterations
        The number of steps k.

    >>> from neupath import load
    >>> hits = SimRank("author").fit(load("toy")).top_k("Mike", k=2)
    >>> [(hit.id, round(hit.score, 4)) for hit in hits]
    [('Jim', 0.0771), ('Bob', 0.0685)]
    """

    name = "simrank"
    settings = ("decay", "iterations")
    is_heavy = True

    def __init__(self, node_type: str, *, decay: float = 0.6, iterations: int = 5) -> None:
        super().__init__(node_type)
        if iterations < 1:
            raise QueryError(f"iterations is {iterations}; it must be at least 1")
        self.decay, self.iterations = check_share("decay", decay), iterations

    def _prepare(self, adjacency: Csr) -> None:
        self.out_ = csr_array(degree_power(adjacency, -1) @ adjacency)  # U
        self.back_ = csr_array(self.out_.T)
        key = (self.name, self.decay, self.iterations)
        self.corrections_ = cached(self.hin_, key, self._find_corrections)

    def _find_corrections(self) -> list[Floats]:
        """Return C_0 to C_{iterations-1}; the last one is not needed, since a node scores 1 with itself."""
        corrections = [np.ones(self.out_.shape[0])]
        for k in range(1, self.iterations):
            meetings = [self._meetings(rows, corrections, k) for rows in self._blocks()]
            corrections.append(1 - np.concatenate([np.zeros(0), *meetings]))
        return corrections

    def _blocks(self) -> Iterator[Rows]:
        nodes = np.arange(self.out_.shape[0])
        return (nodes[start : start + _ROWS_PER_BLOCK] for start in range(0, len(nodes), _ROWS_PER_BLOCK))

    def _meetings(self, nodes: Rows, corrections: list[Floats], k: int) -> Floats:
        """Return decay·(U·S_{k-1}·Uᵀ)[q, q] of some nodes q; shape (nodes,)."""
        total = np.zeros(len(nodes))
        walks: Any = csr_array(eye_array(self.out_.shape[0], format="csr")[nodes])
        for step in range(1, k + 1):
            walks = walks @ self.out_
            if not isinstance(walks, np.ndarray) and walks.nnz > _DENSE * np.prod(walks.shape):
                walks = walks.toarray()
            squares = walks * walks if isinstance(walks, np.ndarray) else walks.multiply(walks)
            total += self.decay**step * np.asarray(squares @ corrections[k - step])
        return total

    def _score_nodes(self, nodes: Rows) -> Floats:
        columns = np.arange(len(nodes))
        start = np.zeros((self.out_.shape[0], len(nodes)))
        start[nodes, columns] = 1.0
        walks: list[Floats] = [start]
        for _ in range(self.iterations):
            walks.append(np.asarray(self.back_ @ walks[-1]))
        scores = walks.pop()
        for corrections in self.corrections_[1:]:
            scores = self.decay * np.asarray(self.out_ @ scores) + corrections[:, None] * walks.pop()
        scores = self.decay * np.asarray(self.out_ @ scores)
        scores[nodes, columns] = 1.0
        return scores[self.rows_].T

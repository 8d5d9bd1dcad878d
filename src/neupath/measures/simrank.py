"""SimRank (Jeh, Widom, KDD 2002), over the whole graph, one query at a time."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.sparse import csr_array, eye_array

from neupath.engine.cache import cached
from neupath.errors import QueryError
from neupath.graph.hin import Csr, Floats
from neupath.graph.nodes import Rows
from neupath.measures.graph_measure import GraphMeasure, check_share, degree_power

_ROWS_AT_ONCE = 256
_DENSE = 0.05
"""The share of entries above which a sparse product takes longer than a dense one."""


class SimRank(GraphMeasure):
    """Two nodes are similar where their neighbours are.

    S_k(x, y) = decay·mean_{i ~ x, j ~ y} S_{k-1}(i, j),  S_k(x, x) = 1,  S_0 = I; neighbours count by their weights.

    The score is S_k after `iterations` steps, exactly, and less than decay^(iterations + 1) from its limit (Lizorkin et
    al., VLDB 2008). With U = D⁻¹·A each step is S_k = decay·U·S_{k-1}·Uᵀ + C_k, where the diagonal C_k puts the ones
    back. So one query needs a single vector walked out and back,

        S_k·e_q = Σ_j decay^j·U^j·C_{k-j}·(Uᵀ)^j·e_q

    and no matrix of all pairs. The C_k are found once a graph, from walks that start at every node.

    >>> from neupath import load
    >>> hits = SimRank("author").fit(load("toy")).top_k("Mike", k=2)
    >>> [(hit.id, round(hit.score, 4)) for hit in hits]
    [('Jim', 0.0771), ('Bob', 0.0685)]
    """

    name = "simrank"
    settings = ("decay", "iterations")

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
        """Return C_0 to C_{iterations-1}, the last but one: the query's own score is 1 by definition."""
        found = [np.ones(self.out_.shape[0])]
        for k in range(1, self.iterations):
            met = [self._meetings(rows, found, k) for rows in self._blocks()]
            found.append(1 - np.concatenate([np.zeros(0), *met]))
        return found

    def _blocks(self) -> Iterator[Rows]:
        everyone = np.arange(self.out_.shape[0])
        return (everyone[at : at + _ROWS_AT_ONCE] for at in range(0, len(everyone), _ROWS_AT_ONCE))

    def _meetings(self, nodes: Rows, corrections: list[Floats], k: int) -> Floats:
        """Return decay·(U·S_{k-1}·Uᵀ)[q, q] of some nodes q; shape (nodes,)."""
        total = np.zeros(len(nodes))
        walked: Any = csr_array(eye_array(self.out_.shape[0], format="csr")[nodes])
        for step in range(1, k + 1):
            walked = walked @ self.out_
            if not isinstance(walked, np.ndarray) and walked.nnz > _DENSE * np.prod(walked.shape):
                walked = walked.toarray()
            squares = walked * walked if isinstance(walked, np.ndarray) else walked.multiply(walked)
            total += self.decay**step * np.asarray(squares @ corrections[k - step])
        return total

    def _score_nodes(self, nodes: Rows) -> Floats:
        columns = np.arange(len(nodes))
        start = np.zeros((self.out_.shape[0], len(nodes)))
        start[nodes, columns] = 1.0
        walked: list[Floats] = [start]
        for _ in range(self.iterations):
            walked.append(np.asarray(self.back_ @ walked[-1]))
        found = walked.pop()
        for corrections in self.corrections_[1:]:
            found = self.decay * np.asarray(self.out_ @ found) + corrections[:, None] * walked.pop()
        found = self.decay * np.asarray(self.out_ @ found)
        found[nodes, columns] = 1.0
        return found[self.rows_].T

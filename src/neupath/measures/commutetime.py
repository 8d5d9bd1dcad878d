"""Commute time, by effective resistance."""

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csc_array, diags_array

from neupath._runtime.progress import Progress
from neupath.engine.cache import cached
from neupath.errors import GraphError
from neupath.graph.hin import Csr, Floats
from neupath.graph.nodes import Rows
from neupath.measures.graph_measure import GraphMeasure

if TYPE_CHECKING:
    from scipy.sparse.linalg import SuperLU


@dataclass(frozen=True)
class _Grounded:
    """The factored Laplacian without one node of each component, its ground."""

    solver: "SuperLU | None"  # None where no node has an edge
    diagonal: Floats  # of the inverse, (nodes that remain,)
    place: Rows  # of each node in the diagonal, -1 for a ground, (nodes,)
    components: Rows  # (nodes,)

    @property
    def num_bytes(self) -> int:
        entries = 0 if self.solver is None else self.solver.nnz
        return 12 * entries + self.diagonal.nbytes + self.place.nbytes + self.components.nbytes


class CommuteTime(GraphMeasure):
    """Rank targets by how soon a random walk gets there from the query and back.

        s(x, y) = 1 / (1 + r(x, y)),    r(x, y) = L⁺[x,x] + L⁺[y,y] - 2·L⁺[x,y],    L = D - A

    r is the effective resistance: the expected time there and back, divided by the sum of all degrees, which is the
    same for all pairs. Nodes without a path between them score 0. Fouss, Pirotte, Renders, Saerens, TKDE 2007.

    One sparse factorisation of L serves all queries and solves to about 1e-12; the diagonal of the inverse comes from
    the factors. r is rounded to nine digits, so that nodes in equivalent places score the same on every machine.

    >>> from neupath import load
    >>> hits = CommuteTime("author").fit(load("toy")).top_k("Mike", k=2)
    >>> [(hit.id, round(hit.score, 4)) for hit in hits]
    [('Jim', 0.5898), ('Bob', 0.4286)]
    """

    name = "commutetime"
    is_heavy = True

    def _prepare(self, adjacency: Csr, progress: Progress) -> float:
        self.grounded_ = cached(self.hin_, self.name, lambda: _ground(adjacency))

    def _score_nodes(self, nodes: Rows) -> Floats:
        return np.stack([self._score_node(int(node)) for node in nodes])

    def _score_node(self, node: int) -> Floats:
        grounded = self.grounded_
        query, targets = int(grounded.place[node]), grounded.place[self.rows_]
        column = np.zeros(len(grounded.diagonal) + 1)  # the last entry, 0, is for grounds
        diagonal = np.append(grounded.diagonal, 0.0)
        if query >= 0 and grounded.solver is not None:
            column[query] = 1.0
            column[:-1] = grounded.solver.solve(column[:-1])
        resistance = np.maximum(np.round(diagonal[query] + diagonal[targets] - 2 * column[targets], 9), 0.0)
        if self.rows_.start <= node < self.rows_.stop:
            resistance[node - self.rows_.start] = 0.0
        is_connected = grounded.components[self.rows_] == grounded.components[node]
        return np.where(is_connected, 1 / (1 + resistance), 0.0)


def _ground(adjacency: Csr) -> _Grounded:
    from scipy.sparse.csgraph import connected_components
    from scipy.sparse.linalg import splu

    components = connected_components(adjacency, directed=False)[1].astype(np.int64)
    by_degree = np.lexsort((-adjacency.sum(axis=1), components))  # without its hub, a component has sparse factors
    grounds = by_degree[np.unique(components[by_degree], return_index=True)[1]]
    others = np.setdiff1d(np.arange(adjacency.shape[0]), grounds)
    place = np.full(adjacency.shape[0], -1, dtype=np.int64)
    place[others] = np.arange(len(others))
    if not len(others):
        return _Grounded(None, np.zeros(0), place, components)
    laplacian = csc_array(diags_array(adjacency.sum(axis=1)) - adjacency)[:, others][others]
    options = {"SymmetricMode": True}  # pivots stay on the diagonal, so that L and U have mirrored patterns
    try:
        solver = splu(csc_array(laplacian), permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options=options)
    except RuntimeError as error:
        least, most = adjacency.data.min(), adjacency.data.max()
        raise GraphError(
            f"cannot compute commute times with weights from {least:g} to {most:g}; scale them closer together"
        ) from error
    lower = csc_array(solver.L)
    lower.sort_indices()
    permuted = _inverse_diagonal_kernel()(lower.indptr, lower.indices, lower.data, solver.U.diagonal())
    return _Grounded(solver, permuted[solver.perm_c], place, components)


@cache
def _inverse_diagonal_kernel() -> Any:
    from neupath.engine.product_kernels import compiled  # loads numba

    return compiled(_inverse_diagonal)


def _inverse_diagonal(indptr: Rows, indices: Rows, data: Floats, pivots: Floats) -> Floats:
    """Return the diagonal of (L·D·Lᵀ)⁻¹ from its factors, L by sorted columns with a diagonal of ones.

    Takahashi's recurrence: with Z the inverse, Z·L = L⁻ᵀ·D⁻¹ is upper triangular, so that column j of Z below its
    diagonal is -Z[I,I]·L[I,j], I being the rows where L has an entry in column j. L has entries at all places of Z that
    this needs, so no others are computed.
    """
    count = len(pivots)
    z = np.zeros(len(data))
    column = np.full(count, -1)  # the last column that has an entry in this row
    weights = np.zeros(count)
    sums = np.zeros(count)
    for j in range(count - 1, -1, -1):
        first, last = indptr[j] + 1, indptr[j + 1]
        for at in range(first, last):
            i = indices[at]
            column[i], weights[i], sums[i] = j, data[at], 0.0
        for at in range(first, last):
            i = indices[at]
            weight, total = weights[i], z[indptr[i]] * weights[i]
            for other in range(indptr[i] + 1, indptr[i + 1]):
                r = indices[other]
                if column[r] == j:
                    total += z[other] * weights[r]
                    sums[r] += z[other] * weight
            sums[i] += total
        z[indptr[j]] = 1.0 / pivots[j]
        for at in range(first, last):
            z[at] = -sums[indices[at]]
            z[indptr[j]] += data[at] * sums[indices[at]]
    return z[indptr[:-1]]

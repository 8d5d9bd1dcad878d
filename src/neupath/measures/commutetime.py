"""Commute time."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csc_array, diags_array

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
    """Ask how soon a random walk gets from the query to the target and back.

        s(x, y) = 1 / (1 + r(x, y)),    r(x, y) = L⁺[x,x] + L⁺[y,y] - 2·L⁺[x,y],    L = D - A

    r is the effective resistance: the expected time there and back, divided by the sum of all degrees, which is the
    same for all pairs. Nodes that no walk joins score 0. Fouss, Pirotte, Renders, Saerens, TKDE 2007.

    One sparse factorisation of L serves all queries and solves to about 1e-12; the diagonal of the inverse comes from
    the factors. r is rounded to nine digits, so that nodes in equivalent places score the same on every machine.

    Parameters
    ----------
    node_type
        The type of queries and targets.

    >>> from neupath import load
    >>> hits = CommuteTime("author").fit(load("toy")).top_k("Mike", k=2)
    >>> [(hit.id, round(hit.score, 4)) for hit in hits]
    [('Jim', 0.5898), ('Bob', 0.4286)]
    """

    name = "commutetime"

    def _prepare(self, adjacency: Csr) -> None:
        self.grounded_ = cached(self.hin_, self.name, lambda: _ground(adjacency))

    def _score_nodes(self, nodes: Rows) -> Floats:
        return np.stack([self._score_node(int(node)) for node in nodes])

    def _score_node(self, node: int) -> Floats:
        grounded = self.grounded_
        query, targets = int(grounded.place[node]), grounded.place[self.rows_]
        column = np.zeros(len(grounded.diagonal) + 1)  # the last entry, 0, is that of grounds
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

    from neupath.measures.commutetime_kernels import inverse_diagonal

    components = connected_components(adjacency, directed=False)[1].astype(np.int64)
    by_degree = np.lexsort((-adjacency.sum(axis=1), components))  # without its hub a component factors sparsely
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
    permuted = inverse_diagonal(lower.indptr, lower.indices, lower.data, solver.U.diagonal())
    return _Grounded(solver, permuted[solver.perm_c], place, components)

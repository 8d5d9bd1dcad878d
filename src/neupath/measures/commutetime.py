"""Commute time (Fouss, Pirotte, Renders, Saerens, TKDE 2007), over the whole graph."""

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
    """The Laplacian with one node of each component taken out, factored; `place` is -1 for those taken out."""

    solver: "SuperLU | None"  # nothing where no node has an edge
    diagonal: Floats  # (kept,) of the inverse
    place: Rows  # (nodes,)
    components: Rows  # (nodes,)

    @property
    def num_bytes(self) -> int:
        entries = 0 if self.solver is None else self.solver.nnz
        return 12 * entries + self.diagonal.nbytes + self.place.nbytes + self.components.nbytes


class CommuteTime(GraphMeasure):
    """Ask how soon a random walk gets from the query to the target and back.

    s(x, y) = 1 / (1 + r(x, y)),  r(x, y) = L⁺[x,x] + L⁺[y,y] - 2·L⁺[x,y],  L = D - A

    r is the effective resistance: the expected time of the way there and back over the sum of all degrees, which is the
    same for all pairs. Nodes that no walk joins have score 0. One sparse factorisation of L serves all queries; it
    solves to rounding (about 1e-12), and the diagonal of the inverse comes from the factors themselves. r is rounded to
    nine digits, so that nodes placed alike are equal on every machine.

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
        ground = self.grounded_
        own, place = int(ground.place[node]), ground.place[self.rows_]
        column = np.zeros(len(ground.diagonal) + 1)  # the last entry is that of nodes taken out, 0
        diagonal = np.append(ground.diagonal, 0.0)
        if own >= 0 and ground.solver is not None:
            column[own] = 1.0
            column[:-1] = ground.solver.solve(column[:-1])
        resistance = np.maximum(np.round(diagonal[own] + diagonal[place] - 2 * column[place], 9), 0.0)
        if self.rows_.start <= node < self.rows_.stop:
            resistance[node - self.rows_.start] = 0.0
        joined = ground.components[self.rows_] == ground.components[node]
        return np.where(joined, 1 / (1 + resistance), 0.0)


def _ground(adjacency: Csr) -> _Grounded:
    from scipy.sparse.csgraph import connected_components
    from scipy.sparse.linalg import splu

    from neupath.measures.commutetime_kernels import inverse_diagonal

    components = connected_components(adjacency, directed=False)[1].astype(np.int64)
    busiest = np.lexsort((-adjacency.sum(axis=1), components))  # taking out the best joined keeps the rest apart
    taken = busiest[np.unique(components[busiest], return_index=True)[1]]
    kept = np.setdiff1d(np.arange(adjacency.shape[0]), taken)
    place = np.full(adjacency.shape[0], -1, dtype=np.int64)
    place[kept] = np.arange(len(kept))
    if not len(kept):
        return _Grounded(None, np.zeros(0), place, components)
    laplacian = csc_array(diags_array(adjacency.sum(axis=1)) - adjacency)[:, kept][kept]
    options = {"SymmetricMode": True}  # pivots stay on the diagonal, so that L and U have mirrored patterns
    try:
        solver = splu(csc_array(laplacian), permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options=options)
    except RuntimeError as error:
        least, most = adjacency.data.min(), adjacency.data.max()
        raise GraphError(
            f"commute times cannot be computed where weights lie as far apart as {least:g} and {most:g}; scale them"
        ) from error
    lower = csc_array(solver.L)
    lower.sort_indices()
    permuted = inverse_diagonal(lower.indptr, lower.indices, lower.data, solver.U.diagonal())
    return _Grounded(solver, permuted[solver.perm_c], place, components)

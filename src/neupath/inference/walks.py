"""Walks: the half-path rows of labelled nodes, for all measures at once, and the features of labelled pairs.

A half-path H from the type of the queries gives each labelled node x three rows over the nodes of H's end type, which
differ only in how a step is weighed: W[x] (path counts), U[x] (each step's rows sum to 1: a walk out), and C[x] (each
step's columns sum to 1: the same walk, seen from its end). A meta-path is two half-paths with one end, H1 from the
query and H2 from the target, the same one twice if it is symmetric; and every measure is a number of such rows:

    pathsim   2⟨Wx,Wy⟩ / (⟨Wx,Wx⟩ + ⟨Wy,Wy⟩)      joinsim  ⟨Wx,Wy⟩ / √(⟨Wx,Wx⟩·⟨Wy,Wy⟩)
    hetesim   ⟨Ux,Uy⟩ / √(⟨Ux,Ux⟩·⟨Uy,Uy⟩)        pcrw     ⟨Ux,Cy⟩        pathcount  ⟨Wx,Wy⟩
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from neupath.graph import HIN, Csr, Floats
from neupath.halfpath import adjacency
from neupath.kept import cached
from neupath.metapath import Step
from neupath.nodes import Rows

MEASURES_INFERRED = ("pathsim", "joinsim", "hetesim", "pcrw", "pathcount")
"""What can be inferred, in the order in which equally good ones are preferred."""

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Walk:
    """The rows of labelled nodes after a half-path: CSR with three values an entry, shape (nodes, nodes of the end)."""

    end: str
    width: int
    indptr: Ints
    indices: Ints
    values: Floats  # (entries, 3): W, U, C

    @property
    def arrays(self) -> tuple[Ints, Ints, Floats]:
        return self.indptr, self.indices, self.values

    @property
    def bytes(self) -> int:
        return self.indptr.nbytes + self.indices.nbytes + self.values.nbytes

    @property
    def is_empty(self) -> bool:
        return not len(self.indices)


def start_walk(hin: HIN, node_type: str, nodes: Rows) -> Walk:
    """Return the rows before any step: each node is where it is."""
    count = len(nodes)
    return Walk(node_type, hin.num_nodes(node_type), np.arange(count + 1), nodes.astype(np.int64), np.ones((count, 3)))


def work_of(hin: HIN, walk: Walk, step: Step) -> int:
    """Count the multiplications that one more step takes."""
    return int(np.diff(_step_matrix(hin, step)[0].indptr).astype(np.int64)[walk.indices].sum())


def entries_of(hin: HIN, walk: Walk, step: Step) -> int:
    """Bound the entries that the rows have after one more step."""
    degrees = np.diff(_step_matrix(hin, step)[0].indptr).astype(np.int64)
    totals = np.concatenate([[0], np.cumsum(degrees[walk.indices])])
    return int(np.minimum(totals[walk.indptr[1:]] - totals[walk.indptr[:-1]], hin.num_nodes(step.target)).sum())


def extend_walk(hin: HIN, walk: Walk, step: Step) -> Walk:
    """Walk one more step."""
    from neupath.inference.kernels import multiply_rows

    matrix, values = _step_matrix(hin, step)
    width = hin.num_nodes(step.target)
    return Walk(step.target, width, *multiply_rows(walk.arrays, (matrix.indptr, matrix.indices, values), width))


def _step_matrix(hin: HIN, step: Step) -> tuple[Csr, Floats]:
    """Return the edges of a step, and what each is worth to W, U and C; shape (edges, 3)."""

    def build() -> tuple[Csr, Floats]:
        matrix = adjacency(hin, step)
        row_sums: Floats = np.asarray(matrix.sum(axis=1)).repeat(np.diff(matrix.indptr))
        column_sums: Floats = np.asarray(matrix.sum(axis=0))[matrix.indices]
        return matrix, np.stack([matrix.data, _ratio(matrix.data, row_sums), _ratio(matrix.data, column_sums)], axis=1)

    return cached(hin, ("walked", step), build)


def pair_features(left: Walk, right: Walk, queries: Rows, targets: Rows) -> dict[str, Floats]:
    """Return every measure's score of pairs of labelled nodes, given as positions; shape (pairs,) each.

    `left` is walked from the queries, `right` from the targets. Where they are the same walk the meta-path is symmetric
    and all measures are defined; where not, only those for any path are.
    """
    from neupath.inference.kernels import pair_dots

    dots = pair_dots(left.arrays, right.arrays, queries, targets, left.width)
    both, met, walked = dots.T
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        out_norms = np.sqrt(_norms(left)[queries, 1] * _norms(right)[targets, 1])
        found = {"hetesim": _ratio(met, out_norms), "pcrw": walked, "pathcount": both}
        if left is right:
            own = _norms(left)[:, 0]
            found["pathsim"] = _ratio(2 * both, own[queries] + own[targets])
            found["joinsim"] = _ratio(both, np.sqrt(own[queries]) * np.sqrt(own[targets]))
    return {measure: np.where(np.isfinite(values).all(), values, np.nan) for measure, values in found.items()}


def _norms(walk: Walk) -> Floats:
    """Return the squared norms of each row of W and U; shape (nodes, 2)."""
    found = np.zeros((len(walk.indptr) - 1, 2))
    filled = np.flatnonzero(np.diff(walk.indptr))
    if len(filled):
        found[filled] = np.add.reduceat(walk.values[:, :2] ** 2, walk.indptr[filled])
    return found


def _ratio(a: Floats, b: Floats) -> Floats:
    return np.divide(a, b, out=np.zeros(len(a)), where=b > 0)

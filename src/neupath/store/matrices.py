"""Matrices of edges by key, changed, grown and cut down to the nodes that are there."""

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array

from neupath.graph import Csr, Floats, freeze
from neupath.nodes import Mask, Rows


def to_matrix(indptr: NDArray[np.integer], indices: NDArray[np.integer], data: Floats, shape: tuple[int, int]) -> Csr:
    """Return a matrix over arrays that are sorted already and may lie on disk, without a copy."""
    if len(indptr) != shape[0] + 1 or len(indices) != len(data) or int(indptr[-1]) != len(data):
        raise ValueError(f"arrays of {len(indptr)}, {len(indices)} and {len(data)} do not make a matrix of {shape}")
    matrix = csr_array((data, indices, indptr), shape=shape, copy=False)
    matrix.has_sorted_indices = True
    return matrix


def from_edges(sources: Rows, targets: Rows, weights: Floats, shape: tuple[int, int], directed: bool) -> Csr:
    """Return the matrix of edges that are listed once each; those of an undirected relation count both ways."""
    rows, columns, values = both_ways(sources, targets, weights, directed)
    return freeze(coo_array((values, (rows, columns)), shape=shape).tocsr())


def both_ways(sources: Rows, targets: Rows, weights: Floats, directed: bool) -> tuple[Rows, Rows, Floats]:
    """Return edges with those of the other direction, where the relation has none of its own."""
    if directed:
        return sources, targets, weights
    other = sources != targets
    rows, columns = np.concatenate([sources, targets[other]]), np.concatenate([targets, sources[other]])
    return rows, columns, np.concatenate([weights, weights[other]])


def once(matrix: Csr, directed: bool) -> tuple[Rows, Rows, Floats]:
    """List the edges of a matrix in order, those of an undirected relation once: sources, targets, weights."""
    entries = matrix.tocoo()
    rows, columns, weights = entries.row.astype(np.int64), entries.col.astype(np.int64), entries.data
    if directed:
        return rows, columns, weights
    kept = rows <= columns
    return rows[kept], columns[kept], weights[kept]


def grown(matrix: Csr, shape: tuple[int, int]) -> Csr:
    """Return the matrix with empty rows and columns at its end."""
    if matrix.shape == shape:
        return matrix
    indptr = np.concatenate([matrix.indptr, np.full(shape[0] - matrix.shape[0], matrix.indptr[-1])])
    return to_matrix(indptr.astype(matrix.indptr.dtype), matrix.indices, matrix.data, shape)


def overlaid(matrix: Csr, rows: Rows, columns: Rows, weights: Floats) -> Csr:
    """Return the matrix with some entries replaced, each named once; weight 0 takes an entry away."""
    if not len(rows):
        return matrix
    pattern = csr_array((np.ones(len(rows)), (rows, columns)), shape=matrix.shape)
    cleared = csr_array(matrix - matrix.multiply(pattern))
    result = csr_array(cleared + csr_array((weights, (rows, columns)), shape=matrix.shape))
    result.eliminate_zeros()
    return freeze(result)


def restricted(matrix: Csr, rows: Mask, columns: Mask) -> Csr:
    """Return the matrix of the marked rows and columns."""
    if not rows.all():
        matrix = csr_array(matrix[np.flatnonzero(rows)])
    if not columns.all():
        matrix = csr_array(matrix[:, np.flatnonzero(columns)])
    return freeze(matrix) if matrix.data.flags.writeable else matrix

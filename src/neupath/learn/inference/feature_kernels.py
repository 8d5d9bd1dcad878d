"""Numba kernels of inference: rows of labelled nodes after one more step, and the scores of pairs of them."""

import numpy as np

from neupath._runtime.kernels import kernel

_ROWS = "const int64[:]", "const int64[:]", "const float64[:,:]"


@kernel(_ROWS, ("const ?[:]", "const ?[:]", "const float64[:,:]"), "int64", variants=("int32", "int64"))
def multiply_rows(rows_of, step, width):
    """Multiply CSR rows by the matrix of a step, under three scalings at once."""
    indptr, indices, values = rows_of
    step_indptr, step_indices, step_values = step
    rows = len(indptr) - 1
    size = 0
    for r in range(rows):
        bound = 0
        for i in range(indptr[r], indptr[r + 1]):
            bound += step_indptr[indices[i] + 1] - step_indptr[indices[i]]
        size += min(bound, width)
    out_indptr = np.zeros(rows + 1, dtype=np.int64)
    out_indices = np.empty(size, dtype=np.int64)
    out_values = np.empty((size, 3))
    sums = np.zeros((width, 3))
    seen = np.full(width, -1, dtype=np.int64)
    at = 0
    for r in range(rows):
        begin = at
        for i in range(indptr[r], indptr[r + 1]):
            middle = indices[i]
            a, b, c = values[i, 0], values[i, 1], values[i, 2]
            for j in range(step_indptr[middle], step_indptr[middle + 1]):
                column = step_indices[j]
                if seen[column] != r:
                    seen[column] = r
                    out_indices[at] = column
                    at += 1
                    sums[column, 0] = a * step_values[j, 0]
                    sums[column, 1] = b * step_values[j, 1]
                    sums[column, 2] = c * step_values[j, 2]
                else:
                    sums[column, 0] += a * step_values[j, 0]
                    sums[column, 1] += b * step_values[j, 1]
                    sums[column, 2] += c * step_values[j, 2]
        for i in range(begin, at):
            column = out_indices[i]
            out_values[i, 0] = sums[column, 0]
            out_values[i, 1] = sums[column, 1]
            out_values[i, 2] = sums[column, 2]
        out_indptr[r + 1] = at
    return out_indptr, out_indices[:at].copy(), out_values[:at].copy()


@kernel(_ROWS, _ROWS, "const int64[:]", "const int64[:]", "int64")
def pair_dots(left, right, queries, targets, width):
    """Return three products of each pair's rows, by scalings 0 and 0, 1 and 1, 1 and 2; shape (pairs, 3).

    Consecutive pairs of one query share its scattered row.
    """
    left_indptr, left_indices, left_values = left
    right_indptr, right_indices, right_values = right
    products = np.zeros((len(queries), 3))
    row = np.zeros((width, 2))
    here = -1
    for p in range(len(queries)):
        if queries[p] != here:
            if here >= 0:
                for i in range(left_indptr[here], left_indptr[here + 1]):
                    row[left_indices[i], 0] = 0.0
                    row[left_indices[i], 1] = 0.0
            here = queries[p]
            for i in range(left_indptr[here], left_indptr[here + 1]):
                row[left_indices[i], 0] = left_values[i, 0]
                row[left_indices[i], 1] = left_values[i, 1]
        for j in range(right_indptr[targets[p]], right_indptr[targets[p] + 1]):
            column = right_indices[j]
            products[p, 0] += row[column, 0] * right_values[j, 0]
            products[p, 1] += row[column, 1] * right_values[j, 1]
            products[p, 2] += row[column, 1] * right_values[j, 2]
    return products

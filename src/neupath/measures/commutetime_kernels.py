"""Numba kernel of commute time."""

import numpy as np

from neupath.engine.product_kernels import compiled


@compiled
def inverse_diagonal(indptr, indices, data, pivots):
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

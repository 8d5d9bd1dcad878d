"""Numba kernels that build the index: like rows found and verified, and postings by column."""

import numpy as np

from neupath.kernels import compiled


@compiled
def hash_rows(indptr, indices, data):
    """Return 64 bits for each row, equal where its entries are."""
    found = np.empty(len(indptr) - 1, dtype=np.uint64)
    for r in range(len(found)):
        value = np.uint64(0x9E3779B97F4A7C15)
        for i in range(indptr[r], indptr[r + 1]):
            value = _scattered(value ^ np.uint64(indices[i]))
            value = _scattered(value + np.uint64(np.int64(min(data[i], 1e12) * 1048576.0)))
        found[r] = value
    return found


@compiled
def _scattered(value):
    """Scatter the bits of a 64-bit number (the finaliser of splitmix64)."""
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


@compiled
def _same_rows(indptr, indices, data, row, other):
    size = indptr[row + 1] - indptr[row]
    if indptr[other + 1] - indptr[other] != size:
        return False
    for i in range(size):
        a, b = indptr[row] + i, indptr[other] + i
        if indices[a] != indices[b] or data[a] != data[b]:
            return False
    return True


@compiled
def group_rows(indptr, indices, data, order, hashes):
    """Number rows so that rows with the same entries, verified one by one, have one number; -1 for empty rows.

    `order` sorts rows by hash, those of one hash by place. Returns the numbers and the first row of each group. Should
    different rows have one hash, a row is compared with the last one only: some groups may then be cut in two.
    """
    groups = np.full(len(indptr) - 1, -1, dtype=np.int64)
    first = np.empty(len(order), dtype=np.int64)
    count = 0
    for at in range(len(order)):
        row = order[at]
        if indptr[row + 1] == indptr[row]:
            continue
        if at > 0 and hashes[order[at - 1]] == hashes[row] and _same_rows(indptr, indices, data, row, order[at - 1]):
            groups[row] = groups[order[at - 1]]
            continue
        groups[row] = count
        first[count] = row
        count += 1
    return groups, first[:count].copy()


@compiled
def transpose_rows(indptr, indices, data, rows, width):
    """Return, for each column, the places in `rows` of the rows that have it, ascending, with their values."""
    starts = np.zeros(width + 1, dtype=np.int64)
    for label in range(len(rows)):
        for i in range(indptr[rows[label]], indptr[rows[label] + 1]):
            starts[indices[i] + 1] += 1
    for column in range(width):
        starts[column + 1] += starts[column]
    fill = starts[:-1].copy()
    labels = np.empty(starts[-1], dtype=np.uint32)  # without a sign, no index is asked whether it counts from the end
    values = np.empty(starts[-1])
    for label in range(len(rows)):
        for i in range(indptr[rows[label]], indptr[rows[label] + 1]):
            at = fill[indices[i]]
            labels[at] = label
            values[at] = data[i]
            fill[indices[i]] = at + 1
    return starts, labels, values

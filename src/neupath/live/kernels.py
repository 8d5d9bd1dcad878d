"""Numba kernels of the live graph: rows of edges that change in place, and half-path rows that never do.

A half-path row that changes gets a new record; the old one stays for those who read an older version. A record is born
with one version and dies with another, and a reader of version v sees the records with born ≤ v < died. Writers fill a
record first and link it then, in two calls, so that a reader never meets one that is half written.
"""

import numpy as np

from neupath.kernels import compiled, insert, normalised

NEVER = np.iinfo(np.int64).max


@compiled
def row_of(rows, row):
    """Return where the entries of a row of edges are: in the pool or not, the first, and the one after the last."""
    if rows.start[row] >= 0:
        return True, rows.start[row], rows.start[row] + rows.size[row]
    if row + 1 < len(rows.indptr):
        return False, np.int64(rows.indptr[row]), np.int64(rows.indptr[row + 1])
    return False, 0, 0


@compiled
def put_entry(rows, row, column, value):
    """Set one entry of a row that is in the pool and has room for one more; a value of 0 takes it away."""
    columns, values = rows.columns, rows.values
    first, last = rows.start[row], rows.start[row] + rows.size[row]
    at = first + np.searchsorted(columns[first:last], column)
    there = at < last and columns[at] == column
    if value == 0.0:
        if there:
            for i in range(at, last - 1):
                columns[i], values[i] = columns[i + 1], values[i + 1]
            rows.size[row] -= 1
        return
    if not there:
        for i in range(last, at, -1):
            columns[i], values[i] = columns[i - 1], values[i - 1]
        columns[at] = column
        rows.size[row] += 1
    values[at] = value


@compiled
def move_row(rows, row, place, room):
    """Copy a row to a place in the pool where it has room to grow."""
    in_pool, first, last = row_of(rows, row)
    for i in range(last - first):
        rows.columns[place + i] = rows.columns[first + i] if in_pool else rows.indices[first + i]
        rows.values[place + i] = rows.values[first + i] if in_pool else rows.data[first + i]
    rows.start[row], rows.size[row], rows.room[row] = place, last - first, room


@compiled
def sum_rows(rows, which):
    """Add up the entries of some rows of edges."""
    totals = np.zeros(len(which))
    for i in range(len(which)):
        in_pool, first, last = row_of(rows, which[i])
        for j in range(first, last):
            totals[i] += rows.values[j] if in_pool else rows.data[j]
    return totals


@compiled
def multiply_row(columns, values, rows, sums, touched, count):
    """Add a sparse row times the edges to `sums`, listing in `touched` the columns met after the first `count`."""
    for i in range(len(columns)):
        in_pool, first, last = row_of(rows, columns[i])
        for j in range(first, last):
            column = rows.columns[j] if in_pool else np.int64(rows.indices[j])
            added = values[i] * (rows.values[j] if in_pool else rows.data[j])
            before = sums[column]
            touched[count] = column
            count += (before == 0.0) & (added > 0.0)
            sums[column] = before + added
    return count


@compiled
def take_sums(sums, touched, count):
    """Return the columns met, ascending, and their sums, which are 0 again."""
    columns = np.sort(touched[:count])
    values = np.empty(count)
    for i in range(count):
        values[i] = sums[columns[i]]
        sums[columns[i]] = 0.0
    return columns, values


@compiled
def union_rows(rows, wanted, seen, found):
    """Mark in `seen` and list in `found` the columns of some rows of edges; return how many there are."""
    count = 0
    for i in range(len(wanted)):
        in_pool, first, last = row_of(rows, wanted[i])
        for j in range(first, last):
            column = rows.columns[j] if in_pool else np.int64(rows.indices[j])
            if not seen[column]:
                seen[column] = True
                found[count] = column
                count += 1
    for i in range(count):
        seen[found[i]] = False
    return count


@compiled
def fill_record(half, number, row, place, columns, values, version):
    """Write a record of a row, with entries from `place` of the pool on; nobody can reach it yet."""
    norm = 0.0
    for i in range(len(columns)):
        half.columns[place + i], half.values[place + i] = columns[i], values[i]
        half.record_of[place + i], half.following[place + i] = number, half.heads[columns[i]]
        norm += values[i] * values[i]
    half.starts[number], half.ends[number], half.norms[number] = place, place + len(columns), norm
    half.born[number], half.died[number] = version, NEVER
    half.previous[number], half.owners[number] = half.latest[row], row


@compiled
def link_record(half, number, row, version):
    """Let readers reach a record that is filled, and end the one before it."""
    if half.previous[number] >= 0:
        half.died[half.previous[number]] = version
    for i in range(half.starts[number], half.ends[number]):
        half.heads[half.columns[i]] = i
    half.latest[row] = number


@compiled
def record_at(half, row, version):
    """Return the record of a row at a version, or -1 where it is still that of the base."""
    record = half.latest[row]
    while record >= 0 and half.born[record] > version:
        record = half.previous[record]
    return record


@compiled
def norm_at(half, base_norms, row, version):
    """Return ‖row‖² at a version."""
    record = record_at(half, row, version)
    if record >= 0:
        return half.norms[record]
    return base_norms[row] if row < len(base_norms) else 0.0


@compiled
def _left_row(base, half, row, version):
    """Return the columns and values of a half-path row at a version."""
    indptr, indices, data = base
    record = record_at(half, row, version)
    if record >= 0:
        start, end = half.starts[record], half.ends[record]
        return half.columns[start:end].copy(), half.values[start:end].copy()
    if row + 1 < len(indptr):
        start, end = indptr[row], indptr[row + 1]
        return indices[start:end].astype(np.int64), data[start:end].copy()
    return np.empty(0, dtype=np.int64), np.empty(0)


@compiled
def _accumulate(left, right, row, version, sums, touched):
    """Add up M[row,:] at a version in `sums`, listing in `touched` the columns met; return how many.

    `left`: (base, half) with a row a source. `right`: (base by middle, half) with a row a target. First the base, whose
    sums mean nothing for targets with a record, and are forgotten; then their records. Either way a sum runs in the
    order of the left row, so that it is what a base made anew would give, to the last digit.
    """
    middles, weights = _left_row(left[0], left[1], row, version)
    (indptr, indices, data), half = right
    count = 0
    for i in range(len(middles)):
        if middles[i] + 1 < len(indptr):
            for j in range(indptr[middles[i]], indptr[middles[i] + 1]):
                column = indices[j]
                added = weights[i] * data[j]
                before = sums[column]
                touched[count] = column
                count += (before == 0.0) & (added > 0.0)
                sums[column] = before + added
    kept = 0
    for i in range(count):
        column = touched[i]
        if record_at(half, column, version) >= 0:
            sums[column] = 0.0
        else:
            touched[kept] = column
            kept += 1
    for i in range(len(middles)):
        entry = half.heads[middles[i]]
        while entry >= 0:
            record = half.record_of[entry]
            if half.born[record] <= version < half.died[record]:
                column = half.owners[record]
                added = weights[i] * half.values[entry]
                before = sums[column]
                touched[kept] = column
                kept += (before == 0.0) & (added > 0.0)
                sums[column] = before + added
            entry = half.following[entry]
    return kept


@compiled
def top_k(left, right, norms, normalisation, version, queries, skipped, candidates, scratch, best_rows, best_scores):
    """Write each query's best related targets at a version; return how many each has. See `neupath.kernels.top_k`.

    `norms`: those of the base rows on the left and on the right.
    """
    sums, touched = scratch[0], scratch[1]
    sizes = np.zeros(len(queries), dtype=np.int64)
    restricted = len(candidates) > 0
    for q in range(len(queries)):
        x = queries[q]
        dx = norm_at(left[1], norms[0], x, version)
        count = _accumulate(left, right, x, version, sums, touched)
        size = 0
        for i in range(count):
            y = np.int64(touched[i])
            m = sums[y]
            sums[y] = 0.0
            if y == skipped[q] or (restricted and not candidates[y]):
                continue
            score = normalised(normalisation, m, dx, norm_at(right[1], norms[1], y, version))
            size = insert(best_scores[q], best_rows[q], size, score, y)
        best_rows[q, size:] = -1
        best_scores[q, size:] = 0.0
        sizes[q] = size
    return sizes


@compiled
def score_rows(left, right, norms, normalisation, version, queries, scores):
    """Write the score at a version of each query with every target into `scores`, which holds zeros."""
    touched = np.empty(scores.shape[1] + 1, dtype=np.uint32)
    for q in range(len(queries)):
        x = queries[q]
        dx = norm_at(left[1], norms[0], x, version)
        for i in range(_accumulate(left, right, x, version, scores[q], touched)):
            y = touched[i]
            scores[q, y] = normalised(normalisation, scores[q, y], dx, norm_at(right[1], norms[1], y, version))

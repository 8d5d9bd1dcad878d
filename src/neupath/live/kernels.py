"""Numba kernels of the live graph: rows of edges that change in place, and half-path entries that never do.

An entry of a half-path matrix that changes gets a successor; the old one stays for those who read an older version. It
is born with one version and dies with another, and a reader of version v sees the entries with born ≤ v < died, and
those of the base that nothing has replaced by v. The writer fills entries first and links them then, in two calls, so
that a reader never meets one that is half written.
"""

import numpy as np

from neupath.kernels import compiled, insert, normalised

NEVER = np.iinfo(np.int64).max
_NOW = NEVER - 1


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
def copy_row(rows, row):
    """Return the columns and values of a row of edges."""
    in_pool, first, last = row_of(rows, row)
    if in_pool:
        return rows.columns[first:last].copy(), rows.values[first:last].copy()
    return rows.indices[first:last].astype(np.int64), rows.data[first:last].copy()


@compiled
def half_row(half, row, version):
    """Return the columns, ascending, and values of a half-path row at a version."""
    start, end = 0, 0
    if row + 1 < len(half.indptr):
        start, end = half.indptr[row], half.indptr[row + 1]
    head = half.row_heads[row]  # read once: the writer may link more meanwhile
    if half.norm_heads[row] < 0:  # a row that ever changed has a norm that did
        return half.indices[start:end].astype(np.int64), half.data[start:end].copy()
    length, entry = end - start, head
    while entry >= 0:
        length += 1
        entry = half.row_next[entry]
    columns, values = np.empty(length, dtype=np.int64), np.empty(length)
    size = 0
    for i in range(start, end):
        columns[size], values[size] = half.indices[i], half.data[i]
        size += half.row_replaced[i] > version
    kept, entry = size, head
    while entry >= 0:
        if half.born[entry] <= version < half.died[entry]:
            columns[size], values[size] = half.columns[entry], half.values[entry]
            size += 1
        entry = half.row_next[entry]
    if size == kept:
        return columns[:size], values[:size]
    order = np.argsort(columns[:size])
    return columns[:size][order], values[:size][order]


@compiled
def differences(half, row, columns, values):
    """Return the columns where a row is to be another than it is, with the new values, 0 for those that go."""
    old_columns, old_values = half_row(half, row, _NOW)
    length = len(columns) + len(old_columns)
    changed, wanted = np.empty(length, dtype=np.int64), np.empty(length)
    count, i, j = 0, 0, 0
    while i < len(columns) or j < len(old_columns):
        if j == len(old_columns) or (i < len(columns) and columns[i] < old_columns[j]):
            changed[count], wanted[count] = columns[i], values[i]
            count += 1
            i += 1
        elif i == len(columns) or old_columns[j] < columns[i]:
            changed[count], wanted[count] = old_columns[j], 0.0
            count += 1
            j += 1
        else:
            changed[count], wanted[count] = columns[i], values[i]
            count += values[i] != old_values[j]
            i += 1
            j += 1
    return changed[:count], wanted[:count]


@compiled
def fill_entries(half, row, columns, values, whole, first, number, version):
    """Write the new entries of a row from `first` on, and its new norm; nobody can reach them yet.

    `columns`, `values`: what changes; `whole`: all values of the row. Returns where the entries end.
    """
    entry, before = first, half.row_heads[row]
    for i in range(len(columns)):
        if values[i] > 0.0:
            half.rows[entry], half.columns[entry], half.values[entry] = row, columns[i], values[i]
            half.born[entry], half.died[entry] = version, NEVER
            half.row_next[entry], half.column_next[entry] = before, half.column_heads[columns[i]]
            before = entry
            entry += 1
    norm = 0.0
    for i in range(len(whole)):
        norm += whole[i] * whole[i]
    half.norm_values[number], half.norm_born[number] = norm, version
    half.norm_previous[number] = half.norm_heads[row]
    return entry


@compiled
def _find(indptr, indices, row, column):
    """Return the place of an entry of a base, or -1."""
    if row + 1 >= len(indptr):
        return -1
    at = indptr[row] + np.searchsorted(indices[indptr[row] : indptr[row + 1]], column)
    return at if at < indptr[row + 1] and indices[at] == column else -1


@compiled
def link_entries(half, row, columns, first, last, number, version):
    """End what the changed columns of a row were, and let readers reach the entries that are filled."""
    for column in columns:
        at = _find(half.indptr, half.indices, row, column)
        if at >= 0 and half.row_replaced[at] == NEVER:
            half.row_replaced[at] = version
            half.column_replaced[_find(half.column_indptr, half.column_indices, column, row)] = version
        if half.changed[column] == NEVER:
            half.changed[column] = version
    entry = half.row_heads[row]
    while entry >= 0:
        if half.died[entry] == NEVER:
            at = np.searchsorted(columns, half.columns[entry])
            if at < len(columns) and columns[at] == half.columns[entry]:
                half.died[entry] = version
        entry = half.row_next[entry]
    for entry in range(first, last):
        half.column_heads[half.columns[entry]] = entry
    if last > first:
        half.row_heads[row] = last - 1
    half.norm_heads[row] = number


@compiled
def norm_at(half, row, version):
    """Return ‖row‖² at a version."""
    number = half.norm_heads[row]
    while number >= 0 and half.norm_born[number] > version:
        number = half.norm_previous[number]
    if number >= 0:
        return half.norm_values[number]
    return half.base_norms[row] if row < len(half.base_norms) else 0.0


@compiled
def _add_stretch(columns, values, weight, sums, touched, count):
    """Add a stretch of the base at which nothing changed."""
    for j in range(len(columns)):
        column = columns[j]
        added = weight * values[j]
        before = sums[column]
        touched[count] = column
        count += (before == 0.0) & (added > 0.0)
        sums[column] = before + added
    return count


@compiled
def _accumulate(left, right, row, version, sums, touched):
    """Add up M[row,:] at a version in `sums`, listing in `touched` the columns met; return how many.

    Every middle adds to a target at most once, in the order of the left row: a sum is what a base made anew would give,
    to the last digit. Middles at which nothing changed are read as in `neupath.kernels`.
    """
    middles, weights = half_row(left, row, version)
    indptr, indices, data = right.column_indptr, right.column_indices, right.column_data
    count = 0
    for i in range(len(middles)):
        middle, weight = middles[i], weights[i]
        start, end = 0, 0
        if middle + 1 < len(indptr):
            start, end = indptr[middle], indptr[middle + 1]
        if right.changed[middle] > version:
            count = _add_stretch(indices[start:end], data[start:end], weight, sums, touched, count)
            continue
        for j in range(start, end):
            if right.column_replaced[j] > version:
                column = indices[j]
                added = weight * data[j]
                before = sums[column]
                touched[count] = column
                count += (before == 0.0) & (added > 0.0)
                sums[column] = before + added
        entry = right.column_heads[middle]
        while entry >= 0:
            if right.born[entry] <= version < right.died[entry]:
                column = right.rows[entry]
                added = weight * right.values[entry]
                before = sums[column]
                touched[count] = column
                count += (before == 0.0) & (added > 0.0)
                sums[column] = before + added
            entry = right.column_next[entry]
    return count


@compiled
def top_k(left, right, normalisation, version, queries, skipped, candidates, scratch, best_rows, best_scores):
    """Write each query's best related targets at a version; return how many each has. See `neupath.kernels.top_k`."""
    sums, touched = scratch[0], scratch[1]
    sizes = np.zeros(len(queries), dtype=np.int64)
    restricted = len(candidates) > 0
    changed, norms = right.norm_heads, right.base_norms  # to hand over all of `right` for each target would be slow
    for q in range(len(queries)):
        x = queries[q]
        dx = norm_at(left, x, version)
        count = _accumulate(left, right, x, version, sums, touched)
        size = 0
        for i in range(count):
            y = np.int64(touched[i])
            m = sums[y]
            sums[y] = 0.0
            if y == skipped[q] or (restricted and not candidates[y]):
                continue
            dy = norm_at(right, y, version) if changed[y] >= 0 else norms[y]
            score = normalised(normalisation, m, dx, dy)
            size = insert(best_scores[q], best_rows[q], size, score, y)
        best_rows[q, size:] = -1
        best_scores[q, size:] = 0.0
        sizes[q] = size
    return sizes


@compiled
def score_rows(left, right, normalisation, version, queries, scores):
    """Write the score at a version of each query with every target into `scores`, which holds zeros."""
    touched = np.empty(scores.shape[1] + 1, dtype=np.uint32)
    for q in range(len(queries)):
        x = queries[q]
        dx = norm_at(left, x, version)
        for i in range(_accumulate(left, right, x, version, scores[q], touched)):
            y = touched[i]
            scores[q, y] = normalised(normalisation, scores[q, y], dx, norm_at(right, y, version))

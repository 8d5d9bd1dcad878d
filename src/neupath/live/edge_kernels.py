"""Numba kernels of the live edges, which the writer alone reads: their rows, and their products."""

import numpy as np

from neupath.kernels import compiled


@compiled
def base_of(rows, row):
    """Return where a row is in the base: the first entry, and the one after the last."""
    if row + 1 < len(rows.indptr):
        return np.int64(rows.indptr[row]), np.int64(rows.indptr[row + 1])
    return np.int64(0), np.int64(0)


@compiled
def more_of(rows, row):
    """Return where the further edges of a row are: the first, and the one after the last."""
    return rows.start[row], rows.start[row] + rows.size[row]


@compiled
def length_of(rows, row):
    """Count the edges of a row, with those that were taken away."""
    first, last = base_of(rows, row)
    return last - first + rows.size[row]


@compiled
def put_entry(rows, row, column, value):
    """Set one entry of a row; return whether there was room for it."""
    first, last = base_of(rows, row)
    at = first + np.searchsorted(rows.indices[first:last], column)
    if at < last and rows.indices[at] == column:
        rows.data[at] = value
        return True
    columns, values = rows.columns, rows.values
    first, last = more_of(rows, row)
    at = first + np.searchsorted(columns[first:last], column)
    if at == last or columns[at] != column:
        if rows.size[row] == rows.room[row]:
            return value == 0.0
        for i in range(last, at, -1):
            columns[i], values[i] = columns[i - 1], values[i - 1]
        columns[at] = column
        rows.size[row] += 1
    values[at] = value
    return True


@compiled
def move_row(rows, row, place, room):
    """Copy the further edges of a row to a place where they have room to grow."""
    first, last = more_of(rows, row)
    for i in range(last - first):
        rows.columns[place + i], rows.values[place + i] = rows.columns[first + i], rows.values[first + i]
    rows.start[row], rows.room[row] = place, room


@compiled
def sum_rows(rows, which):
    """Add up the entries of some rows of edges."""
    totals = np.zeros(len(which))
    for i in range(len(which)):
        _, values = copy_row(rows, which[i])
        for value in values:
            totals[i] += value
    return totals


@compiled
def copy_row(rows, row):
    """Return the columns, ascending, and values of a row of edges, without those that were taken away."""
    first, last = base_of(rows, row)
    more, end = more_of(rows, row)
    columns, values = np.empty(length_of(rows, row), dtype=np.int64), np.empty(length_of(rows, row))
    size = 0
    while first < last or more < end:
        if more == end or (first < last and rows.indices[first] < rows.columns[more]):
            columns[size], values[size] = rows.indices[first], rows.data[first]
            first += 1
        else:
            columns[size], values[size] = rows.columns[more], rows.values[more]
            more += 1
        size += values[size] > 0.0
    return columns[:size], values[:size]


@compiled
def add_stretch(columns, values, weight, sums, touched, count):
    """Add entries times a weight to `sums`, listing in `touched` the columns met after the first `count`."""
    for j in range(len(columns)):
        column = columns[j]
        added = weight * values[j]
        before = sums[column]
        touched[count] = column
        count += (before == 0.0) & (added > 0.0)
        sums[column] = before + added
    return count


@compiled
def multiply_row(columns, values, rows, sums, touched, count):
    """Add a sparse row times the edges to `sums`, listing in `touched` the columns met after the first `count`."""
    for i in range(len(columns)):
        first, last = base_of(rows, columns[i])
        count = add_stretch(rows.indices[first:last], rows.data[first:last], values[i], sums, touched, count)
        first, last = more_of(rows, columns[i])
        count = add_stretch(rows.columns[first:last], rows.values[first:last], values[i], sums, touched, count)
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
def reached(rows, row):
    """Return the columns of a row of edges, ascending, with those of edges that were taken away."""
    first, last = base_of(rows, row)
    more, end = more_of(rows, row)
    columns = np.empty(length_of(rows, row), dtype=np.int64)
    columns[: last - first] = rows.indices[first:last]
    columns[last - first :] = rows.columns[more:end]
    return np.sort(columns) if end > more else columns


@compiled
def union_rows(rows, wanted, seen, found):
    """Mark in `seen` and list in `found` the columns of some rows of edges; return how many there are."""
    count = 0
    for i in range(len(wanted)):
        for column in reached(rows, wanted[i]):
            if not seen[column]:
                seen[column] = True
                found[count] = column
                count += 1
    for i in range(count):
        seen[found[i]] = False
    return count


@compiled
def _seek(columns, first, last, column):
    """Return the first place from `first` on that is not before a column, in few steps where it is near."""
    step = 1
    while first + step < last and columns[first + step] < column:
        first += step
        step *= 2
    return first + np.searchsorted(columns[first : min(first + step, last)], column)


@compiled
def weight_of(rows, row, column):
    """Return the weight of an edge, or 0."""
    first, last = base_of(rows, row)
    at = first + np.searchsorted(rows.indices[first:last], column)
    if at < last and rows.indices[at] == column:
        return rows.data[at]
    first, last = more_of(rows, row)
    at = first + np.searchsorted(rows.columns[first:last], column)
    return rows.values[at] if at < last and rows.columns[at] == column else 0.0


@compiled
def _multiply_entry(short, x, long, y):
    """Add up short[x,p]·long[y,p] over ascending p, looking each entry of the short row up in the long one."""
    columns, values = copy_row(short, x)
    at, last = base_of(long, y)
    more, end = more_of(long, y)
    total = 0.0
    for i in range(len(columns)):
        at = _seek(long.indices, at, last, columns[i])
        if at < last and long.indices[at] == columns[i]:
            total += values[i] * long.data[at]
            continue
        more = _seek(long.columns, more, end, columns[i])
        if more < end and long.columns[more] == columns[i]:
            total += values[i] * long.values[more]
    return total


@compiled
def multiply_entry(out, x, back, y):
    """Return entry (x, y) of the product of two steps: `out` by row, `back` by column, summed as a row would be."""
    if length_of(out, x) <= length_of(back, y):
        return _multiply_entry(out, x, back, y)
    return _multiply_entry(back, y, out, x)


@compiled
def multiply_entries(out, forward, back, rows, columns, mean_size, sums, touched):
    """Return some entries of the product of two steps: by row `out` and `forward`, and `back`, the second by column.

    `rows`: ascending. The entries of a row are added up one by one or, where that is more work, together with the whole
    row; `mean_size`: how many entries a row of the second step has. `sums` and `touched`: see `multiply_row`.
    """
    values = np.empty(len(rows))
    i = 0
    while i < len(rows):
        x, j, work = rows[i], i, 0
        length = length_of(out, x)
        while j < len(rows) and rows[j] == x:
            work += min(length, length_of(back, columns[j]))
            j += 1
        if work <= length * (1.0 + mean_size):
            for c in range(i, j):
                values[c] = multiply_entry(out, x, back, columns[c])
        else:
            middles, weights = copy_row(out, x)
            count = multiply_row(middles, weights, forward, sums, touched, 0)
            for c in range(i, j):
                values[c] = sums[columns[c]]
            for column in touched[:count]:
                sums[column] = 0.0
        i = j
    return values


@compiled
def weights_of(edges, rows, columns):
    """Return the weights of some edges."""
    values = np.empty(len(rows))
    for i in range(len(rows)):
        values[i] = weight_of(edges, rows[i], columns[i])
    return values

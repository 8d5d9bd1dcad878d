"""Numba kernels of the writer: rows of live edges, and products with them.

Kernels called for every edge take the fields of `EdgeArrays` as a plain tuple, `fields`: numba needs longer to
recognise the type of a named tuple than to do the work.
"""

import numpy as np

from neupath.engine.product_kernels import compiled
from neupath.live.append_arrays import NOWHERE, EdgeArrays

_BITS = 6
_LEAST = 1
"""Logarithm of the smallest room of a row."""


@compiled
def rows_of(fields):
    """Return `EdgeArrays` of their fields."""
    return EdgeArrays(fields[0], fields[1], fields[2], fields[3], fields[4], fields[5])


@compiled
def base_of(indptr, row):
    """Return where a row is in the base: the first entry, and the one after the last."""
    if row + 1 < len(indptr):
        return np.int64(indptr[row]), np.int64(indptr[row + 1])
    return np.int64(0), np.int64(0)


@compiled
def span_of(span):
    """Return the room of a row beside the base: its first entry, and the one after its last.

    A span is 64 times the first entry plus the logarithm of the size.
    """
    if span < 0:
        return np.int64(0), np.int64(0)
    first = span >> _BITS
    return first, first + (np.int64(1) << (span & ((1 << _BITS) - 1)))


@compiled
def room_for(wanted, used):
    """Return a span with room for some entries from `used` on, and where it ends."""
    size = _LEAST
    while np.int64(1) << size < wanted:
        size += 1
    return (used << _BITS) + size, used + (np.int64(1) << size)


@compiled
def more_of(spans, columns, row):
    """Return where the added edges of a row are: the first, and the one after the last."""
    first, last = span_of(spans[row])
    return first, first + np.searchsorted(columns[first:last], NOWHERE)


@compiled
def length_of(rows, row):
    """Count the edges of a row, with removed ones."""
    first, last = base_of(rows.indptr, row)
    more, end = more_of(rows.spans, rows.columns, row)
    return last - first + end - more


@compiled
def put_entry(fields, used, row, column, value):
    """Set one entry of a row; return how much room is used then, or -1 if there is too little."""
    rows = rows_of(fields)
    first, last = base_of(rows.indptr, row)
    at = first + np.searchsorted(rows.indices[first:last], column)
    if at < last and rows.indices[at] == column:
        rows.data[at] = value
        return used
    columns, values = rows.columns, rows.values
    first, last = more_of(rows.spans, rows.columns, row)
    at = first + np.searchsorted(columns[first:last], column)
    if at < last and columns[at] == column:
        values[at] = value
        return used
    if value == 0.0:
        return used
    if last == span_of(rows.spans[row])[1]:
        span, after = room_for(last - first + 1, used)
        if after > len(columns):
            return -1
        for i in range(last - first):
            columns[used + i], values[used + i] = columns[first + i], values[first + i]
        rows.spans[row] = span
        first, last, at, used = used, used + last - first, used + at - first, after
    for i in range(last, at, -1):
        columns[i], values[i] = columns[i - 1], values[i - 1]
    columns[at], values[at] = column, value
    return used


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
    """Return the columns, ascending, and values of a row of edges, without removed ones."""
    first, last = base_of(rows.indptr, row)
    more, end = more_of(rows.spans, rows.columns, row)
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
        first, last = base_of(rows.indptr, columns[i])
        count = add_stretch(rows.indices[first:last], rows.data[first:last], values[i], sums, touched, count)
        first, last = more_of(rows.spans, rows.columns, columns[i])
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
def reached(fields, row):
    """Return the columns of a row of edges, ascending, with those of removed edges."""
    rows = rows_of(fields)
    first, last = base_of(rows.indptr, row)
    more, end = more_of(rows.spans, rows.columns, row)
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
    last = min(first + step, last)
    while first < last:
        middle = (first + last) >> 1
        before = columns[middle] < column
        first, last = middle + 1 if before else first, last if before else middle
    return first


@compiled
def weight_of(rows, row, column):
    """Return the weight of an edge, or 0."""
    first, last = base_of(rows.indptr, row)
    at = first + np.searchsorted(rows.indices[first:last], column)
    if at < last and rows.indices[at] == column:
        return rows.data[at]
    first, last = more_of(rows.spans, rows.columns, row)
    at = first + np.searchsorted(rows.columns[first:last], column)
    return rows.values[at] if at < last and rows.columns[at] == column else 0.0


@compiled
def _multiply_entry(short, x, long, y):
    """Add up short[x,p]·long[y,p] over ascending p, looking each entry of the short row up in the long one."""
    columns, values = copy_row(short, x)
    at, last = base_of(long.indptr, y)
    more, end = more_of(long.spans, long.columns, y)
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
def multiply_entries(out_fields, back_fields, rows, columns):
    """Return some entries of the product of two steps, the first by row and the second by column."""
    out, back = rows_of(out_fields), rows_of(back_fields)
    values = np.empty(len(rows))
    for i in range(len(rows)):
        values[i] = multiply_entry(out, rows[i], back, columns[i])
    return values


@compiled
def is_whole_cheaper(out_fields, back_fields, row, columns, mean_size):
    """Whether a row of the product of two steps is less work than some of its entries.

    `mean_size`: how many entries a row of the second step has.
    """
    out, back = rows_of(out_fields), rows_of(back_fields)
    length, work = length_of(out, row), 0
    for column in columns:
        work += min(length, length_of(back, column))
    return work > length * (1.0 + mean_size)


@compiled
def weights_of(fields, rows, columns):
    """Return the weights of some edges."""
    edges = rows_of(fields)
    values = np.empty(len(rows))
    for i in range(len(rows)):
        values[i] = weight_of(edges, rows[i], columns[i])
    return values

"""Arrays of the live graph, and the numba kernels that read and write them.

They are the fourth shape of an update; see `neupath.store.update`. Kernels called for every edge take the fields of an
array tuple as a plain tuple, `fields`: numba needs longer to recognise the type of a named tuple than to do the work.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from neupath.engine.product_kernels import NO_ROWS, compiled, copy_to, keep_best, normalised
from neupath.engine.products import LARGEST

# ---- Arrays --------------------------------------------------------------------------------------
NOWHERE = np.iinfo(np.int64).max


class EdgeArrays(NamedTuple):
    """Rows of live edges: a base whose weights change in place, and for each row the edges added since."""

    indptr: NDArray[Any]
    indices: NDArray[Any]
    data: NDArray[Any]
    spans: NDArray[Any]  # by row: where its added edges are, see `_span_of`, or -1
    columns: NDArray[Any]  # by added edge: its column, ascending within its row, or NOWHERE for unused room
    values: NDArray[Any]


VERSION = np.int32
"""Versions count from the base's, in few bits: a query takes as long as the bytes it reads."""
NEVER = np.iinfo(VERSION).max
ENTRY = np.dtype([("place", np.int64), ("value", np.float64), ("born", VERSION), ("died", VERSION)])
"""A value at a place of a line, with the version it is valid from (NEVER: unused room) and the one it ends at."""
NORM = np.dtype([("value", np.float64), ("born", VERSION), ("previous", np.int32)])
"""A norm, the version it is valid from, and the index of the norm before it, or -1."""


class MvccArrays(NamedTuple):
    """The rows or columns of a matrix: a base, and entries that replace some of it, each from a version on."""

    indptr: NDArray[Any]
    indices: NDArray[Any]
    data: NDArray[Any]
    replaced: NDArray[Any]  # by place in the base: the version that replaces it
    spans: NDArray[Any]  # by line: where its entries are, see `_span_of`, or -1 where it never changed
    entries: NDArray[Any]


class NormArrays(NamedTuple):
    """‖row‖² of every row: at the base's version, and the few changes since."""

    base: NDArray[Any]
    heads: NDArray[Any]  # by row: the index of its newest norm in `since`, or -1
    since: NDArray[Any]


class ProductArrays(NamedTuple):
    """A half-path matrix by row and by column, with the norms of its rows; `version` is the base's."""

    rows: MvccArrays
    columns: MvccArrays
    norms: NormArrays
    version: int


def grown(array: NDArray[Any], wanted: int, fill: Any = None) -> NDArray[Any]:
    """Return the array, or, if it has fewer than `wanted` entries, one at least twice as long, filled with `fill`.

    >>> grown(np.array([1, 2]), 3, -1)
    array([ 1,  2, -1, -1])
    """
    if wanted <= len(array):
        return array
    longer = np.empty(max(wanted, 2 * len(array)), dtype=array.dtype)
    longer[: len(array)] = array
    if fill is not None:
        longer[len(array) :] = fill
    return longer


# ---- Edges of the newest version -----------------------------------------------------------------
_BITS = 6
_LEAST = 1  # log₂ of the smallest span


@compiled
def _rows_of(fields):
    return EdgeArrays(fields[0], fields[1], fields[2], fields[3], fields[4], fields[5])


@compiled
def _base_of(indptr, row):
    """Return where a row is in the base: the first entry, and the one after the last."""
    if row + 1 < len(indptr):
        return np.int64(indptr[row]), np.int64(indptr[row + 1])
    return np.int64(0), np.int64(0)


@compiled
def _span_of(span):
    """Return the first entry of a span, and the one after its last; span = 64·first + log₂(size), or -1 for none."""
    if span < 0:
        return np.int64(0), np.int64(0)
    first = span >> _BITS
    return first, first + (np.int64(1) << (span & ((1 << _BITS) - 1)))


@compiled
def _room_for(wanted, used):
    """Return a span with room for some entries from `used` on, and where it ends."""
    size = _LEAST
    while np.int64(1) << size < wanted:
        size += 1
    return (used << _BITS) + size, used + (np.int64(1) << size)


@compiled
def _more_of(spans, columns, row):
    """Return where the added edges of a row are: the first, and the one after the last."""
    first, last = _span_of(spans[row])
    return first, first + np.searchsorted(columns[first:last], NOWHERE)


@compiled
def _length_of(rows, row):
    first, last = _base_of(rows.indptr, row)
    more, end = _more_of(rows.spans, rows.columns, row)
    return last - first + end - more


@compiled
def put_entry(fields, used, row, column, value):
    """Set one entry of a row; return how much room is used then, or -1 if there is too little."""
    rows = _rows_of(fields)
    first, last = _base_of(rows.indptr, row)
    at = first + np.searchsorted(rows.indices[first:last], column)
    if at < last and rows.indices[at] == column:
        rows.data[at] = value
        return used
    columns, values = rows.columns, rows.values
    first, last = _more_of(rows.spans, rows.columns, row)
    at = first + np.searchsorted(columns[first:last], column)
    if at < last and columns[at] == column:
        values[at] = value
        return used
    if value == 0.0:
        return used
    if last == _span_of(rows.spans[row])[1]:
        span, after = _room_for(last - first + 1, used)
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
    first, last = _base_of(rows.indptr, row)
    more, end = _more_of(rows.spans, rows.columns, row)
    columns, values = np.empty(_length_of(rows, row), dtype=np.int64), np.empty(_length_of(rows, row))
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
def _add_stretch(columns, values, weight, sums, touched, count):
    """Add entries times a weight to `sums`; append the columns met to `touched`, which has `count` so far."""
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
    """Add a sparse row times the edges to `sums`; append the columns met to `touched`, which has `count` so far."""
    for i in range(len(columns)):
        first, last = _base_of(rows.indptr, columns[i])
        count = _add_stretch(rows.indices[first:last], rows.data[first:last], values[i], sums, touched, count)
        first, last = _more_of(rows.spans, rows.columns, columns[i])
        count = _add_stretch(rows.columns[first:last], rows.values[first:last], values[i], sums, touched, count)
    return count


@compiled
def take_sums(sums, touched, count):
    """Return the columns met, ascending, and their sums; clear these."""
    columns = np.sort(touched[:count])
    values = np.empty(count)
    for i in range(count):
        values[i] = sums[columns[i]]
        sums[columns[i]] = 0.0
    return columns, values


@compiled
def reached(fields, row):
    """Return the columns of a row of edges, ascending, with those of removed edges."""
    rows = _rows_of(fields)
    first, last = _base_of(rows.indptr, row)
    more, end = _more_of(rows.spans, rows.columns, row)
    columns = np.empty(_length_of(rows, row), dtype=np.int64)
    copy_to(columns, rows.indices[first:last])
    copy_to(columns[last - first :], rows.columns[more:end])
    return np.sort(columns) if end > more else columns


@compiled
def union_rows(rows, wanted, seen, columns):
    """List the distinct columns of some rows of edges in `columns`; return how many. `seen` is scratch."""
    count = 0
    for i in range(len(wanted)):
        for column in reached(rows, wanted[i]):
            if not seen[column]:
                seen[column] = True
                columns[count] = column
                count += 1
    for i in range(count):
        seen[columns[i]] = False
    return count


@compiled
def _seek(columns, first, last, column):
    """Return the first place from `first` on that is not before a column, by galloping search."""
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
def _weight_of(rows, row, column):
    first, last = _base_of(rows.indptr, row)
    at = first + np.searchsorted(rows.indices[first:last], column)
    if at < last and rows.indices[at] == column:
        return rows.data[at]
    first, last = _more_of(rows.spans, rows.columns, row)
    at = first + np.searchsorted(rows.columns[first:last], column)
    return rows.values[at] if at < last and rows.columns[at] == column else 0.0


@compiled
def _dot_rows(short, x, long, y):
    """Add up short[x,p]·long[y,p] over ascending p, looking each entry of the short row up in the long one."""
    columns, values = copy_row(short, x)
    at, last = _base_of(long.indptr, y)
    more, end = _more_of(long.spans, long.columns, y)
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
def _multiply_entry(out, x, back, y):
    """Return entry (x, y) of the product of two steps: `out` by row, `back` by column, summed as a row would be."""
    if _length_of(out, x) <= _length_of(back, y):
        return _dot_rows(out, x, back, y)
    return _dot_rows(back, y, out, x)


@compiled
def multiply_entries(out_fields, back_fields, rows, columns):
    """Return some entries of the product of two steps, the first by row and the second by column."""
    out, back = _rows_of(out_fields), _rows_of(back_fields)
    values = np.empty(len(rows))
    for i in range(len(rows)):
        values[i] = _multiply_entry(out, rows[i], back, columns[i])
    return values


@compiled
def is_whole_cheaper(out_fields, back_fields, row, columns, mean_size):
    """Whether a whole row of the product of two steps, with rows of `mean_size` entries, costs less than some of it."""
    out, back = _rows_of(out_fields), _rows_of(back_fields)
    length, work = _length_of(out, row), 0
    for column in columns:
        work += min(length, _length_of(back, column))
    return work > length * (1.0 + mean_size)


@compiled
def weights_of(fields, rows, columns):
    """Return the weights of some edges."""
    edges = _rows_of(fields)
    values = np.empty(len(rows))
    for i in range(len(rows)):
        values[i] = _weight_of(edges, rows[i], columns[i])
    return values


# ---- Lines of MVCC matrices ----------------------------------------------------------------------
# An entry that changes gets a successor; the old one stays for readers of older versions. A reader of version v sees
# the entries with born ≤ v < died, and those of the base that nothing has replaced by v. The entries of a line lie
# together. When their span is full, the writer copies them to a larger one, and publishes that when it is complete.
# All else that it writes has a version that no reader has yet.
NOW = np.int64(NEVER - 1)


@compiled
def _lines_of(fields):
    return MvccArrays(fields[0], fields[1], fields[2], fields[3], fields[4], fields[5])


@compiled
def _written(entries, span):
    """Return where the entries of a line are: the first, and the one after the last."""
    first, last = _span_of(span)
    return first, first + np.searchsorted(entries[first:last].born, NEVER)  # unused room is born NEVER


@compiled
def line_at(lines, line, version):
    """Return the places, ascending, and values of a line at a version."""
    start, end = _base_of(lines.indptr, line)
    first, last = _written(lines.entries, lines.spans[line])
    alive = lines.entries[first:last]
    alive = alive[(alive.born <= version) & (alive.died > version)]
    alive = alive[np.argsort(alive.place)]
    places, values = np.empty(end - start + len(alive), dtype=np.int64), np.empty(end - start + len(alive))
    size, more = 0, 0
    for i in range(start, end):
        while more < len(alive) and alive[more].place < lines.indices[i]:
            places[size], values[size] = alive[more].place, alive[more].value
            size += 1
            more += 1
        places[size], values[size] = lines.indices[i], lines.data[i]
        size += lines.replaced[i] > version
    for entry in alive[more:]:
        places[size], values[size] = entry.place, entry.value
        size += 1
    return places[:size], values[:size]


@compiled
def differences(lines, line, places, values):
    """Return the places at which a line differs from some values, with the new value of each, 0 if it is removed."""
    old_places, old_values = line_at(lines, line, NOW)
    length = len(places) + len(old_places)
    changed, wanted = np.empty(length, dtype=np.int64), np.empty(length)
    count, i, j = 0, 0, 0
    while i < len(places) or j < len(old_places):
        if j == len(old_places) or (i < len(places) and places[i] < old_places[j]):
            changed[count], wanted[count] = places[i], values[i]
            count += 1
            i += 1
        elif i == len(places) or old_places[j] < places[i]:
            changed[count], wanted[count] = old_places[j], 0.0
            count += 1
            j += 1
        else:
            changed[count], wanted[count] = places[i], values[i]
            count += values[i] != old_values[j]
            i += 1
            j += 1
    return changed[:count], wanted[:count]


@compiled
def _look_up(lines, line, places, old, in_base, in_span):
    """Fill in the values at some places of a line, and their index in base and span, or -1; count its entries."""
    start, end = _base_of(lines.indptr, line)
    for i in range(len(places)):
        at = start + np.searchsorted(lines.indices[start:end], places[i])
        there = at < end and lines.indices[at] == places[i] and lines.replaced[at] == NEVER
        old[i] = lines.data[at] if there else 0.0
        in_base[i], in_span[i] = at if there else -1, -1
    first, last = _written(lines.entries, lines.spans[line])
    least, most = places[0], places[-1]
    for at in range(first, last):
        entry = lines.entries[at]
        if least <= entry.place <= most and entry.died == NEVER:
            i = np.searchsorted(places, entry.place)
            if places[i] == entry.place:
                old[i], in_span[i] = entry.value, at - first
    return last - first


@compiled
def _make_room(lines, line, count, wanted, used):
    """Move the entries of a line to a larger span, by place, which is faster to read; return the room used, or -1."""
    first, last = _span_of(lines.spans[line])
    if lines.spans[line] >= 0 and wanted <= last - first:
        return used
    span, after = _room_for(wanted, used)
    if after > len(lines.entries):
        return -1
    for i, at in enumerate(np.argsort(lines.entries[first : first + count].place)):
        lines.entries[used + i] = lines.entries[first + at]
    lines.spans[line] = span
    return after


@compiled
def _replace(lines, first, at, places, values, differ, in_base, in_span, version):
    """End the entries that differ, and write their successors from `at` on; the span begins at `first`."""
    for i in range(len(places)):
        if not differ[i]:
            continue
        if in_base[i] >= 0:
            lines.replaced[in_base[i]] = version
        if in_span[i] >= 0:
            lines.entries[first + in_span[i]].died = version
        if values[i] > 0.0:
            entry = lines.entries[at]
            entry.place, entry.value, entry.born = places[i], values[i], version
            at += 1


@compiled
def write(fields, used, line, places, values, old, version, start):
    """Set entries from a version on, and fill in the old values; 0 removes an entry.

    `line` and `places` ascend from `start` on. Returns how far the room sufficed, the room used, and the number of
    entries that differed.
    """
    lines = _lines_of(fields)
    i, changed = start, 0
    while i < len(line):
        j = i + 1
        while j < len(line) and line[j] == line[i]:
            j += 1
        in_base, in_span = np.empty(j - i, dtype=np.int64), np.empty(j - i, dtype=np.int64)
        count = _look_up(lines, line[i], places[i:j], old[i:j], in_base, in_span)
        differ = values[i:j] != old[i:j]
        if np.any(differ):
            more = np.sum(differ & (values[i:j] > 0.0))
            after = _make_room(lines, line[i], count, count + more, used)
            if after < 0:
                return i, used, changed
            if after > used:  # moved
                _look_up(lines, line[i], places[i:j], old[i:j], in_base, in_span)
                used = after
            changed += np.sum(differ)
            first, _ = _span_of(lines.spans[line[i]])
            _replace(lines, first, first + count, places[i:j], values[i:j], differ, in_base, in_span, version)
        i = j
    return i, used, changed


# ---- Norms of MVCC matrices ----------------------------------------------------------------------
# If every entry of a row is a whole number and the norm is below 2⁵³, a float holds each sum of squares exactly, in any
# order. Entries that change from w to w + δ then add 2wδ + δ² to it, as exact as adding up the row. Otherwise the row
# is added up.
EXACT = 2.0**53  # below it a float holds every whole number


@compiled
def _norms_of(fields):
    return NormArrays(fields[0], fields[1], fields[2])


@compiled
def norm_at(norms, row, version):
    """Return ‖row‖² at a version."""
    number = norms.heads[row]
    while number >= 0 and norms.since[number].born > version:
        number = norms.since[number].previous
    return norms.since[number].value if number >= 0 else norms.base[row]


@compiled
def newest(norms):
    """Return the newest ‖row‖² of every row."""
    current = norms.base.copy()
    for row in range(len(current)):
        if norms.heads[row] >= 0:
            current[row] = norms.since[norms.heads[row]].value
    return current


@compiled
def _are_whole(values):
    return np.all(values == np.floor(values))


@compiled
def find_whole(indptr, data, norms):
    """Mark the rows of a matrix of whole numbers whose norms a float holds exactly."""
    whole = np.empty(len(norms), dtype=np.bool_)
    for row in range(len(norms)):
        whole[row] = norms[row] < EXACT and _are_whole(data[indptr[row] : indptr[row + 1]])
    return whole


@compiled
def _moved(norm, old, new):
    """Return a norm after whole-number entries of its row changed from old to new; ∞ if that is not exact."""
    for i in range(len(new)):
        norm += (new[i] - old[i]) * (new[i] + old[i])
        if norm >= EXACT:
            return np.inf
    return norm


@compiled
def _added_up(values):
    total = 0.0
    for value in values:
        total += value * value
    return total


@compiled
def renew(norm_fields, whole, line_fields, rows, old, new, number, version):
    """Write the norms of rows whose entries changed from old to new, from `number` on; no reader reaches them yet.

    `rows` ascend, one for each entry; `whole` is updated. Returns the distinct rows, and whether each norm is in
    range: twice it is finite, and half of it does not underflow.
    """
    norms, lines = _norms_of(norm_fields), _lines_of(line_fields)
    distinct = np.empty(len(rows), dtype=np.int64)
    count, i, held = 0, 0, True
    while i < len(rows):
        j = i + 1
        while j < len(rows) and rows[j] == rows[i]:
            j += 1
        row = rows[i]
        norm = np.inf
        if whole[row] and _are_whole(new[i:j]) and np.max(new[i:j]) ** 2 < EXACT:
            norm = _moved(norm_at(norms, row, NOW), old[i:j], new[i:j])
        if norm == np.inf:
            _, values = line_at(lines, row, NOW)
            norm = _added_up(values)
            whole[row] = norm < EXACT and _are_whole(values)
            held &= norm <= LARGEST and (0.5 * norm > 0.0 or len(values) == 0)
        now = norms.since[number + count]
        now.value, now.born, now.previous = norm, version, norms.heads[row]
        distinct[count] = row
        count += 1
        i = j
    return distinct[:count], held


# ---- Queries at a version ------------------------------------------------------------------------
_NO_SCORE = -1.0


@compiled
def _add_kept(targets, values, replaced, version, weight, sums, touched, count):
    """Add those entries of the base that nothing has replaced by a version."""
    for j in range(len(targets)):
        target = targets[j]
        product = weight * values[j]  # without a branch, which the processor would often mispredict
        added = product if replaced[j] > version else 0.0
        before = sums[target]
        touched[count] = target
        count += (before == 0.0) & (added > 0.0)
        sums[target] = before + added
    return count


@compiled
def _add_entries(entries, version, weight, sums, touched, count):
    """Add those entries that are valid at a version."""
    for j in range(len(entries)):
        target = entries[j].place
        product = weight * entries[j].value
        added = product if (entries[j].born <= version) & (version < entries[j].died) else 0.0
        before = sums[target]
        touched[count] = target
        count += (before == 0.0) & (added > 0.0)
        sums[target] = before + added
    return count


@compiled
def _add_middles(middles, weights, right, version, sums, touched):
    """Add up the columns of some middle nodes, each times its weight."""
    count = NO_ROWS
    for i in range(len(middles)):
        middle, weight = middles[i], weights[i]
        first, last = _base_of(right.indptr, middle)
        targets, values = right.indices[first:last], right.data[first:last]
        span = right.spans[middle]
        if span < 0:
            count = _add_stretch(targets, values, weight, sums, touched, count)
            continue
        count = _add_kept(targets, values, right.replaced[first:last], version, weight, sums, touched, count)
        first, last = _written(right.entries, span)
        count = _add_entries(right.entries[first:last], version, weight, sums, touched, count)
    return count


@compiled
def _accumulate(left, right, row, version, sums, touched):
    """Add up M[row,:] at a version in `sums`, listing in `touched` the columns met; return how many.

    Every middle node adds to a target at most once, in the order of the left row: sums equal a rebuilt base's exactly.
    """
    if left.spans[row] < 0:
        first, last = _base_of(left.indptr, row)
        return _add_middles(left.indices[first:last], left.data[first:last], right, version, sums, touched)
    middles, weights = line_at(left, row, version)
    return _add_middles(middles, weights, right, version, sums, touched)


@compiled
def _normalise(normalisation, sums, touched, count, dx, norms, version, scores):
    """Write the scores of the targets met into `scores`, and clear `sums`.

    It repeats `norm_at`: passing all norms for each target would take most of the time.
    """
    base, heads, since = norms.base, norms.heads, norms.since
    for i in range(count):
        y = np.int64(touched[i])
        number = heads[y]
        while number >= 0 and since[number].born > version:
            number = since[number].previous
        dy = since[number].value if number >= 0 else base[y]
        scores[i] = normalised(normalisation, sums[y], dx, dy)
        sums[y] = 0.0


@compiled
def _halves_of(halves):
    rows, columns, left_norms, right_norms = halves
    return _lines_of(rows), _lines_of(columns), _norms_of(left_norms), _norms_of(right_norms)


@compiled
def top_k(halves, normalisation, version, queries, skipped, candidates, scratch, best_rows, best_scores):
    """Write each query's best related targets at a version; return how many each has.

    `halves`: fields of the left half's rows, of the right half's columns, and of the norms of both.
    """
    left, right, left_norms, right_norms = _halves_of(halves)
    sums, touched, scores = scratch
    sizes = np.zeros(len(queries), dtype=np.int64)
    restricted = len(candidates) > 0
    for q in range(len(queries)):
        count = _accumulate(left, right, queries[q], version, sums, touched)
        dx = norm_at(left_norms, queries[q], version)
        _normalise(normalisation, sums, touched, count, dx, right_norms, version, scores)
        for i in range(count):
            if touched[i] == skipped[q] or (restricted and not candidates[touched[i]]):
                scores[i] = _NO_SCORE
        sizes[q] = keep_best(scores, touched, count, best_scores[q], best_rows[q])
    return sizes


@compiled
def score_rows(halves, normalisation, version, queries, scores):
    """Write the scores of each query with every target at a version into `scores`, which holds zeros."""
    left, right, left_norms, right_norms = _halves_of(halves)
    touched = np.empty(scores.shape[1] + 1, dtype=np.uint32)
    normal = np.empty(scores.shape[1] + 1)
    for q in range(len(queries)):
        x = queries[q]
        count = _accumulate(left, right, x, version, scores[q], touched)
        dx = norm_at(left_norms, x, version)
        _normalise(normalisation, scores[q], touched, count, dx, right_norms, version, normal)
        scores[q][touched[:count]] = normal[:count]


@compiled
def row_at(fields, row, version):
    """Return the places, ascending, and values of a row of the left half at a version."""
    lines = _lines_of(fields)
    if lines.spans[row] < 0:
        first, last = _base_of(lines.indptr, row)
        return lines.indices[first:last].astype(np.int64), lines.data[first:last].copy()
    return line_at(lines, row, version)


@compiled
def score_row(halves, normalisation, version, middles, weights, dx, scores):
    """Write the score of every target with a row of middle nodes into `scores`, which holds zeros.

    Weights may be negative: what they take away is added up apart, as `topk.score_set` does.
    """
    _, right, _, right_norms = _halves_of(halves)
    touched = np.empty(len(scores) + 1, dtype=np.uint32)
    less = np.zeros(len(scores))
    is_above = weights > 0.0
    _add_middles(middles[is_above], weights[is_above], right, version, scores, touched)
    _add_middles(middles[~is_above], -weights[~is_above], right, version, less, touched)
    for y in range(len(scores)):
        m = scores[y] - less[y]
        scores[y] = normalised(normalisation, m, dx, norm_at(right_norms, y, version)) if m != 0.0 else 0.0

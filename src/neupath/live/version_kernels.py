"""Numba kernels of MVCC matrices: lines and norms at a version, and setting their entries."""

import numpy as np

from neupath.engine.product_kernels import compiled
from neupath.engine.products import LARGEST
from neupath.live.append_arrays import NEVER, MvccArrays, NormArrays
from neupath.live.edge_kernels import base_of, room_for, span_of

# ---- Lines ---------------------------------------------------------------------------------------
# An entry that changes gets a successor; the old one stays for readers of older versions. A reader of version v sees
# the entries with born ≤ v < died, and those of the base that nothing has replaced by v. The entries of a line lie
# together. When their room is full, the writer copies them to a larger one, and shows that to readers when it is
# complete. All else that it writes has a version that no reader has yet.
NOW = NEVER - 1


@compiled
def lines_of(fields):
    """Return `MvccArrays` of their fields; `edge_kernels` says why these come as a plain tuple."""
    return MvccArrays(fields[0], fields[1], fields[2], fields[3], fields[4], fields[5])


@compiled
def written(entries, span):
    """Return where the entries of a line are: the first, and the one after the last."""
    first, last = span_of(span)
    return first, first + np.searchsorted(entries[first:last].born, NEVER)  # which only those bear that are not written


@compiled
def line_at(lines, line, version):
    """Return the places, ascending, and values of a line at a version."""
    start, end = base_of(lines.indptr, line)
    first, last = written(lines.entries, lines.spans[line])
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
    """Return the places where a line is to be another than it is, with the new values, 0 for those that go."""
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
    """Find some places of a line: what they are now, and where that is in the base or among the entries, or -1.

    Returns how many entries the line has.
    """
    start, end = base_of(lines.indptr, line)
    for i in range(len(places)):
        at = start + np.searchsorted(lines.indices[start:end], places[i])
        there = at < end and lines.indices[at] == places[i] and lines.replaced[at] == NEVER
        old[i] = lines.data[at] if there else 0.0
        in_base[i], in_span[i] = at if there else -1, -1
    first, last = written(lines.entries, lines.spans[line])
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
    """Move the entries of a line to where there is room for more; return how much is used then, or -1 for too much.

    They are put in the order of their places there: readers are faster where these lie side by side.
    """
    first, last = span_of(lines.spans[line])
    if lines.spans[line] >= 0 and wanted <= last - first:
        return used
    span, after = room_for(wanted, used)
    if after > len(lines.entries):
        return -1
    for i, at in enumerate(np.argsort(lines.entries[first : first + count].place)):
        lines.entries[used + i] = lines.entries[first + at]
    lines.spans[line] = span
    return after


@compiled
def _replace(lines, first, at, places, values, differ, in_base, in_span, version):
    """End what differs, and go on with entries from `at` on; the line's begin at `first`."""
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
    """Let some entries be others from a version on, and fill in what they were; a value of 0 takes one away.

    `line`, `places`: ascending, from `start` on. Returns up to where there was room, how much of it is used, and how
    many entries were others.
    """
    lines = lines_of(fields)
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
            first, _ = span_of(lines.spans[line[i]])
            _replace(lines, first, first + count, places[i:j], values[i:j], differ, in_base, in_span, version)
        i = j
    return i, used, changed


# ---- Norms ---------------------------------------------------------------------------------------
# Where every entry of a row is a whole number and the norm is below 2⁵³, a float holds each sum of squares exactly, in
# whatever order it is added up; then entries that change from w to w + δ add 2wδ + δ² to it, and the result is that of
# adding up the row. Otherwise the row is added up.
EXACT = 2.0**53
"""Below it a float holds every whole number."""


@compiled
def norms_of(fields):
    """Return `NormArrays` of their fields."""
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
    """Return ‖row‖² of every row as it is now."""
    found = norms.base.copy()
    for row in range(len(found)):
        if norms.heads[row] >= 0:
            found[row] = norms.since[norms.heads[row]].value
    return found


@compiled
def are_whole(values):
    """Whether all values are whole numbers."""
    return np.all(values == np.floor(values))


@compiled
def find_whole(indptr, data, norms):
    """Tell the rows of a matrix whose norms are sums of squares of whole numbers that a float holds exactly."""
    whole = np.empty(len(norms), dtype=np.bool_)
    for row in range(len(norms)):
        whole[row] = norms[row] < EXACT and are_whole(data[indptr[row] : indptr[row + 1]])
    return whole


@compiled
def _moved(norm, old, new):
    """Return a norm after its row's entries changed from old to new, all whole numbers, or ∞ where it is not exact."""
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
    """Write the norms of rows whose entries changed from old to new, from `number` on; nobody can reach them yet.

    `rows` ascending, one for each entry; `whole` follows what the rows are. Returns the rows, each once, and whether a
    float holds their norms, twice over, and tells those of rows with entries from 0.
    """
    norms, lines = norms_of(norm_fields), lines_of(line_fields)
    distinct = np.empty(len(rows), dtype=np.int64)
    count, i, held = 0, 0, True
    while i < len(rows):
        j = i + 1
        while j < len(rows) and rows[j] == rows[i]:
            j += 1
        row = rows[i]
        norm = np.inf
        if whole[row] and are_whole(new[i:j]) and np.max(new[i:j]) ** 2 < EXACT:
            norm = _moved(norm_at(norms, row, NOW), old[i:j], new[i:j])
        if norm == np.inf:
            _, values = line_at(lines, row, NOW)
            norm = _added_up(values)
            whole[row] = norm < EXACT and are_whole(values)
            held &= norm <= LARGEST and (norm > 0.0 or len(values) == 0)
        now = norms.since[number + count]
        now.value, now.born, now.previous = norm, version, norms.heads[row]
        distinct[count] = row
        count += 1
        i = j
    return distinct[:count], held

"""Numba kernels of lines: the rows or columns of a matrix of which every version can be read while the next is written.

An entry that changes gets a successor; the old one stays for those who read an older version. It is born with one
version and dies with another, and a reader of version v sees the entries with born ≤ v < died, and those of the base
that nothing has replaced by v. The entries of a line lie together; where they run out of room, they are copied to a
larger one, and the writer lets readers find that when it is filled. Whatever else it writes bears a version that no
reader has yet.
"""

import numpy as np

from neupath.kernels import compiled
from neupath.live.edge_kernels import base_of

NEVER = np.iinfo(np.int64).max
NOW = NEVER - 1
_BITS = 6
_LEAST = 1
"""The logarithm of the least room that a line is given."""


@compiled
def span_of(span):
    """Return where the entries of a line are: the first, and the one after the last there is room for.

    A span is 64 times the first, and the logarithm of the room.
    """
    if span < 0:
        return np.int64(0), np.int64(0)
    first = span >> _BITS
    return first, first + (np.int64(1) << (span & 63))


@compiled
def line_at(lines, line, version):
    """Return the places, ascending, and values of a line at a version."""
    start, end = base_of(lines, line)
    if lines.changed[line] > version:
        return lines.indices[start:end].astype(np.int64), lines.data[start:end].copy()
    first, last = span_of(lines.spans[line])
    last = first + np.searchsorted(lines.born[first:last], version, side="right")
    alive = first + np.flatnonzero(lines.died[first:last] > version)
    alive = alive[np.argsort(lines.places[alive])]
    places, values = np.empty(end - start + len(alive), dtype=np.int64), np.empty(end - start + len(alive))
    size, more = 0, 0
    for i in range(start, end):
        while more < len(alive) and lines.places[alive[more]] < lines.indices[i]:
            places[size], values[size] = lines.places[alive[more]], lines.values[alive[more]]
            size += 1
            more += 1
        places[size], values[size] = lines.indices[i], lines.data[i]
        size += lines.replaced[i] > version
    for entry in alive[more:]:
        places[size], values[size] = lines.places[entry], lines.values[entry]
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
    start, end = base_of(lines, line)
    for i in range(len(places)):
        at = start + np.searchsorted(lines.indices[start:end], places[i])
        there = at < end and lines.indices[at] == places[i] and lines.replaced[at] == NEVER
        old[i] = lines.data[at] if there else 0.0
        in_base[i], in_span[i] = at if there else -1, -1
    first, last = span_of(lines.spans[line])
    count = np.searchsorted(lines.born[first:last], NEVER)
    least, most = places[0], places[-1]
    for entry in range(count):
        place = lines.places[first + entry]
        if least <= place <= most and lines.died[first + entry] == NEVER:
            i = np.searchsorted(places, place)
            if places[i] == place:
                old[i], in_span[i] = lines.values[first + entry], entry
    return count


@compiled
def _make_room(lines, line, count, wanted, used):
    """Move the entries of a line where there are too many for their room; return how much is used then, -1 if too much."""
    first, last = span_of(lines.spans[line])
    if wanted <= last - first:
        return used
    size = _LEAST
    while np.int64(1) << size < wanted:
        size += 1
    after = used + (np.int64(1) << size)
    if after > len(lines.born):
        return -1
    for i in range(count):
        lines.places[used + i], lines.values[used + i] = lines.places[first + i], lines.values[first + i]
        lines.born[used + i], lines.died[used + i] = lines.born[first + i], lines.died[first + i]
    lines.spans[line] = (used << _BITS) + size
    return after


@compiled
def write(lines, used, line, places, values, old, version, start):
    """Let some entries be others from a version on, and fill in what they were; a value of 0 takes one away.

    `line`, `places`: ascending, from `start` on. Returns up to where there was room, and how much of it is used.
    """
    i = start
    while i < len(line):
        j = i + 1
        while j < len(line) and line[j] == line[i]:
            j += 1
        in_base, in_span = np.empty(j - i, dtype=np.int64), np.empty(j - i, dtype=np.int64)
        count = _look_up(lines, line[i], places[i:j], old[i:j], in_base, in_span)
        more = np.sum((values[i:j] != old[i:j]) & (values[i:j] > 0.0))
        after = _make_room(lines, line[i], count, count + more, used)
        if after < 0:
            return i, used
        used = after
        first, _ = span_of(lines.spans[line[i]])
        entry = first + count
        for c in range(i, j):
            if values[c] == old[c]:
                continue
            lines.changed[line[i]] = min(lines.changed[line[i]], version)
            if in_base[c - i] >= 0:
                lines.replaced[in_base[c - i]] = version
            if in_span[c - i] >= 0:
                lines.died[first + in_span[c - i]] = version
            if values[c] > 0.0:
                lines.places[entry], lines.values[entry], lines.born[entry] = places[c], values[c], version
                entry += 1
        i = j
    return i, used

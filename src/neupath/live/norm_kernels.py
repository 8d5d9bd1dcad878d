"""Numba kernels of norms: ‖row‖² at a version, and what it becomes where entries of the row change.

Where every entry of a row is a whole number and the norm is below 2⁵³, a float holds each sum of squares exactly, in
whatever order it is added up; then entries that change from w to w + δ add 2wδ + δ² to it, and the result is that of
adding up the row. Otherwise the row is added up.
"""

import numpy as np

from neupath.halfpath import LARGEST
from neupath.kernels import compiled
from neupath.live.growing import Norms
from neupath.live.line_kernels import NOW, line_at, lines_of

EXACT = 2.0**53
"""Below it a float holds every whole number."""


@compiled
def norms_of(fields):
    """Return norms by their fields; see `edge_kernels` on why these come as a plain tuple."""
    return Norms(fields[0], fields[1], fields[2])


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

"""Numba kernels of permuted graphs: swaps of edges that keep every degree, one by one or many between two rows."""

import numpy as np

from neupath._runtime.kernels import kernel, part
from neupath.graph.edges import mix64

_mix = part(mix64)
_STEP = np.uint64(0x9E3779B97F4A7C15)
_FREE = -1
_ENDS = "const int32[:]", "const int32[:]"


@part
def _place(keys, key):
    """Return where a key is in the set, or the free place where it would be."""
    mask = np.uint64(len(keys) - 1)
    at = _mix(np.uint64(key)) & mask
    while keys[at] != _FREE and keys[at] != key:
        at = (at + np.uint64(1)) & mask
    return at


@part
def _remove(keys, key):
    """Remove a key, and close the gap that it leaves in its run of keys."""
    mask = np.uint64(len(keys) - 1)
    gap = _place(keys, key)
    at = gap
    while True:
        at = (at + np.uint64(1)) & mask
        if keys[at] == _FREE:
            break
        home = _mix(np.uint64(keys[at])) & mask
        if ((at - home) & mask) >= ((at - gap) & mask):
            keys[gap] = keys[at]
            gap = at
    keys[gap] = _FREE


@part
def _key(source, target, width, undirected):
    if undirected and source > target:
        source, target = target, source
    return source * width + target


@kernel(*_ENDS, "int64", "boolean")
def edge_set(sources, targets, width, undirected):
    """Return a hash set of edges, at most half full."""
    size = 16
    while size < 2 * len(sources):
        size *= 2
    keys = np.full(size, _FREE, dtype=np.int64)
    for edge in range(len(sources)):
        key = _key(np.int64(sources[edge]), np.int64(targets[edge]), width, undirected)
        keys[_place(keys, key)] = key
    return keys


@kernel("const int64[:]", *_ENDS, "int64", "boolean")
def count_in(keys, sources, targets, width, undirected):
    """Count the edges that are in a set."""
    count = 0
    for edge in range(len(sources)):
        key = _key(np.int64(sources[edge]), np.int64(targets[edge]), width, undirected)
        count += keys[_place(keys, key)] == key
    return count


@kernel("int32[:]", "int32[:]", "int64[:]", "int64", "int64", "int64")
def swap_edges(sources, targets, keys, width, attempts, seed):
    """Swap the ends of random pairs of undirected edges where that makes no edge twice; return how many were swapped.

    (a, b), (c, d) become (a, d), (c, b) or, with c and d in other roles, (a, c), (d, b), so every node keeps its number
    of edges. Edges of a node with itself stay, and none are made. `keys` is the set of the edges, and is kept up to
    date.
    """
    count, swaps = np.uint64(len(sources)), 0
    state = np.uint64(seed)
    for _ in range(attempts):
        state += _STEP
        random = _mix(state)
        i = np.int64(((random >> np.uint64(32)) * count) >> np.uint64(32))
        state += _STEP
        random = _mix(state)
        j = np.int64(((random >> np.uint64(32)) * count) >> np.uint64(32))
        a, b, c, d = np.int64(sources[i]), np.int64(targets[i]), np.int64(sources[j]), np.int64(targets[j])
        if random & np.uint64(1):
            c, d = d, c
        if a in (b, c, d) or b in (c, d) or c == d:  # with i = j, too
            continue
        first, second = _key(a, d, width, True), _key(c, b, width, True)
        if first == second or keys[_place(keys, first)] == first or keys[_place(keys, second)] == second:
            continue
        _remove(keys, _key(a, b, width, True))
        _remove(keys, _key(c, d, width, True))
        keys[_place(keys, first)] = first
        keys[_place(keys, second)] = second
        sources[j], targets[i], targets[j] = c, d, b
        swaps += 1
    return swaps


@kernel("const int64[:]", "int32[:]", "int64", "boolean", "int64", "int64")
def trade_edges(  # noqa: PLR0912
    starts, targets, width, with_loops, trades, seed
):
    """Let random pairs of rows trade the targets that only one of them has; return how many trades moved any.

    A trade makes many swaps at once: both rows put such targets together, and draw as many as they gave. Without
    `with_loops` no row may get itself as a target. Rows are given by `starts`, as in CSR, and need not be sorted.
    """
    rows = np.flatnonzero(starts[1:] > starts[:-1])
    count = np.uint64(len(rows))
    owner = np.full(width, -1, dtype=np.int64)  # the number of the trade in which the first row has the target
    longest = 0
    for row in rows:
        longest = max(longest, starts[row + 1] - starts[row])
    places, pool = np.empty(2 * longest, dtype=np.int64), np.empty(2 * longest, dtype=targets.dtype)
    state, moved = np.uint64(seed), 0
    for trade in range(trades if len(rows) > 1 else 0):
        state += _STEP
        i = ((_mix(state) >> np.uint64(32)) * count) >> np.uint64(32)
        state += _STEP
        j = ((_mix(state) >> np.uint64(32)) * count) >> np.uint64(32)
        if i == j:
            continue
        a, b = rows[i], rows[j]
        for at in range(starts[a], starts[a + 1]):
            owner[targets[at]] = 2 * trade
        size = 0
        for at in range(starts[b], starts[b + 1]):
            if owner[targets[at]] == 2 * trade:
                owner[targets[at]] = 2 * trade + 1  # both have it
            elif with_loops or targets[at] != a:
                places[size] = at
                size += 1
        of_b = size
        for at in range(starts[a], starts[a + 1]):
            if owner[targets[at]] == 2 * trade and (with_loops or targets[at] != b):
                places[size] = at
                size += 1
        if of_b in (0, size):
            continue
        moved += 1
        for k in range(size):
            pool[k] = targets[places[k]]
        for k in range(size - 1, 0, -1):
            state += _STEP
            other = np.int64(((_mix(state) >> np.uint64(32)) * np.uint64(k + 1)) >> np.uint64(32))
            pool[k], pool[other] = pool[other], pool[k]
        for k in range(size):
            targets[places[k]] = pool[k]
    return moved


@part
def _find(starts, targets, row, target):
    """Return where a row has a target, -1 if it has not."""
    for at in range(starts[row], starts[row + 1]):
        if targets[at] == target:
            return at
    return -1


@kernel("const int64[:]", "const int32[:]", "int32[:]", "int64", "int64")
def turn_cycles(starts, sources, targets, attempts, seed):
    """Turn random cycles a → b → c → a round where that makes no edge twice; return how many were turned.

    A cycle is tried by one of its edges, then by an edge on from its end. So it is tried in proportion to the sum of
    1 / degree over its three nodes, which is the same for the cycle turned round: degrees are kept.
    """
    count, turned = np.uint64(len(targets)), 0
    state = np.uint64(seed)
    for _ in range(attempts if len(targets) else 0):
        state += _STEP
        first = np.int64(((_mix(state) >> np.uint64(32)) * count) >> np.uint64(32))
        a, b = np.int64(sources[first]), np.int64(targets[first])
        degree = np.uint64(starts[b + 1] - starts[b])
        if degree == 0:
            continue
        state += _STEP
        second = np.int64(starts[b]) + np.int64(((_mix(state) >> np.uint64(32)) * degree) >> np.uint64(32))
        c = np.int64(targets[second])
        if c == a:
            continue
        third = _find(starts, targets, c, a)
        if third < 0 or _find(starts, targets, a, c) >= 0:
            continue
        if _find(starts, targets, b, a) >= 0 or _find(starts, targets, c, b) >= 0:
            continue
        targets[first], targets[second], targets[third] = c, a, b
        turned += 1
    return turned

"""Numba kernels of measures over the whole graph: local push, meetings of walks, elimination of nodes.

All walk the rows of a sparse matrix in the order of their entries, so results depend neither on threads nor on blocks.
"""

import numpy as np

from neupath._runtime.kernels import kernel, part
from neupath.engine.product_kernels import CSR, INDEX_TYPES, NO_ROWS, copy_to

_ELIMINATED = "const int64[:]", "const float64[:]", "const int64[:]", "const int64[:]", "const float64[:]"
"""Nodes in the order of their elimination, pivots, and where their neighbours begin, these, and shares."""


# ---- PPR and RWR ---------------------------------------------------------------------------------
@kernel(*CSR, "const float64[:]", "float64", "int64", "float64", "int64", variants=INDEX_TYPES)
def push(indptr, indices, data, roots, damping, query, least, budget):
    """Push the residual e_q through N until no node has more than least·√degree, or the budget of edges is spent.

    Return the result so far, the residual, and the threshold that no residual exceeds. The threshold falls in steps, so
    that large residuals go first.
    """
    count = len(roots)
    walks, rest = np.zeros(count), np.zeros(count)
    queue = np.empty(count, np.int64)
    reached = np.empty(count, np.int64)
    state = np.zeros(count, np.uint8)  # 0: no residual so far, 1: reached, 2: waits in the queue
    rest[query] = 1.0
    reached[0], num_reached = query, 1
    state[query] = 1
    threshold, work = 1.0 / roots[query], 0
    while threshold > least:
        target = max(0.25 * threshold, least)
        first, waiting = 0, 0
        for at in range(num_reached):
            node = reached[at]
            if rest[node] > target * roots[node]:
                queue[waiting] = node
                state[node] = 2
                waiting += 1
        while waiting > 0:
            node = queue[first]
            first = first + 1 if first + 1 < count else 0
            waiting -= 1
            state[node] = 1
            mass = rest[node]
            rest[node] = 0.0
            walks[node] += (1.0 - damping) * mass
            mass *= damping
            for at in range(indptr[node], indptr[node + 1]):
                other = indices[at]
                rest[other] += mass * data[at]
                if state[other] == 0:
                    reached[num_reached] = other
                    num_reached += 1
                    state[other] = 1
                if state[other] == 1 and rest[other] > target * roots[other]:
                    last = first + waiting
                    queue[last if last < count else last - count] = other
                    state[other] = 2
                    waiting += 1
            work += indptr[node + 1] - indptr[node]
            if work > budget:
                return walks, rest, threshold
        threshold = target
    return walks, rest, threshold


# ---- SimRank -------------------------------------------------------------------------------------
@kernel(*CSR, "float64", "int64", "const int64[:]", "const float64[:]", "float64", variants=INDEX_TYPES)
def meetings(indptr, indices, data, decay, first, depths, guess, least):
    """Walk from some nodes, and return where two independent walks meet, each step worth `decay` less.

    Row x holds Σ_j decay^j·U^j[x,v]² for j from 1 to its depth, as (sizes of rows, columns, values). Entries below
    `least` are left out; their sums weighted by `guess`, and without weights, come fourth and fifth.
    """
    count = len(indptr) - 1
    now, after, total = np.zeros(count), np.zeros(count), np.zeros(count)
    support, reached, met = np.empty(count, np.int64), np.empty(count, np.int64), np.empty(count, np.int64)
    sizes = np.zeros(len(depths), np.int64)
    columns, values = np.empty(1024, np.int64), np.empty(1024)
    left_out, left_out_share = np.zeros(len(depths)), np.zeros(len(depths))
    size = NO_ROWS
    for row in range(len(depths)):
        now[first + row] = 1.0
        support[0], num_support, num_met = first + row, NO_ROWS + 1, NO_ROWS
        worth = 1.0
        for _ in range(depths[row]):
            worth *= decay
            num_support = _step(indptr, indices, data, now, support, num_support, after, reached)
            now, after = after, now
            support, reached = reached, support
            num_met = _meet(now, support, num_support, worth, total, met, num_met)
        for at in range(num_support):
            now[support[at]] = 0.0
        if size + num_met > len(columns):
            columns, values = _longer(columns, values, size, size + num_met)
        for at in range(num_met):
            node = met[at]
            if total[node] >= least:
                columns[size], values[size] = node, total[node]
                size += 1
                sizes[row] += 1
            else:
                left_out[row] += total[node] * guess[node]
                left_out_share[row] += total[node]
            total[node] = 0.0
    return sizes, columns[:size], values[:size], left_out, left_out_share


@part
def _step(indptr, indices, data, now, support, num_support, after, reached):
    """Take one step of a walk that is at the nodes of `support`, and clear `now`; return how many nodes it reaches."""
    num_reached = 0
    for at in range(num_support):
        node = support[at]
        share = now[node]
        now[node] = 0.0
        for edge in range(indptr[node], indptr[node + 1]):
            other, part = indices[edge], share * data[edge]
            if part > 0.0:  # it may be less than a float holds
                if after[other] == 0.0:
                    reached[num_reached] = other
                    num_reached += 1
                after[other] += part
    return num_reached


@part
def _meet(now, support, num_support, worth, total, met, num_met):
    """Add the chances that two walks meet after this step; return at how many nodes they may have met so far."""
    for at in range(num_support):
        node = support[at]
        chance = worth * now[node] * now[node]
        if chance > 0.0:
            if total[node] == 0.0:
                met[num_met] = node
                num_met += 1
            total[node] += chance
    return num_met


@part
def _longer(nodes, values, used, least):
    """Return longer arrays that begin like these."""
    room = max(2 * len(nodes), least)
    more_nodes, more_values = np.empty(room, np.int64), np.empty(room)
    copy_to(more_nodes, nodes[:used])
    copy_to(more_values, values[:used])
    return more_nodes, more_values


# ---- Commute time --------------------------------------------------------------------------------
_MANY = 50  # neighbours of the least connected node, from which on elimination leaves about a third of the nodes


@kernel(*CSR, "const boolean[:]", "int64", variants=INDEX_TYPES)
def eliminate(indptr, indices, data, is_ground, most_core):
    """Eliminate nodes of a graph without loops, fewest neighbours first, until the others all but form a clique.

    Eliminating x joins each two of its neighbours u, v by an edge of weight w_u·w_v / Σw, which leaves the potentials
    of the others as they were. Return the eliminated nodes in order, the sums of their weights, their neighbours at the
    time as (starts, nodes, shares w / Σw), which nodes are eliminated, the rows that remain as (starts, sizes, nodes,
    weights), and whether there are few enough: at most `most_core`. It ends early where that cannot be expected.
    """
    count = len(indptr) - 1
    nodes, weights = _longer(indices.astype(np.int64), data, len(indices), 2 * len(indices) + 16)
    starts, sizes = indptr[:-1].astype(np.int64), np.diff(indptr).astype(np.int64)
    rooms, used = sizes.copy(), len(indices)
    degrees = sizes.copy()  # without neighbours that are gone
    lists = np.full(count + 1, -1, np.int64), np.full(count, -1, np.int64), np.full(count, -1, np.int64)
    remaining = 0
    for node in range(count - 1, -1, -1):
        if not is_ground[node]:
            remaining += 1
            _link(lists, node, degrees[node])
    order, pivots, begins = np.empty(count, np.int64), np.empty(count), np.zeros(count + 1, np.int64)
    joined, shares = np.empty(len(indices) + 16, np.int64), np.empty(len(indices) + 16)
    is_gone = np.zeros(count, np.bool_)
    places = np.full(count, -1, np.int64)
    done, filled, least = 0, NO_ROWS, 1
    while remaining > 0:
        while lists[0][least] < 0:
            least += 1
        is_dense = 6 * least > remaining  # a dense matrix is faster from here on
        if is_dense or (least > _MANY and remaining > 3 * most_core):
            break
        x = _unlink(lists, lists[0][least], least)
        if filled + sizes[x] > len(joined):
            joined, shares = _longer(joined, shares, filled, filled + sizes[x])
        row = slice(starts[x], starts[x] + sizes[x])
        width, total = _take(nodes[row], weights[row], is_gone, joined[filled:], shares[filled:])
        is_gone[x] = True
        order[done], pivots[done], begins[done + 1] = x, total, filled + width
        done, remaining = done + 1, remaining - 1
        around = joined[filled : filled + width], shares[filled : filled + width]
        for i in range(width):
            u = around[0][i]
            if is_ground[u]:
                continue
            _unlink(lists, u, degrees[u])
            if width == 1:  # its row keeps the entry, which is gone
                degrees[u] -= 1
            else:
                if sizes[u] + width > rooms[u]:
                    rooms[u] = 2 * (sizes[u] + width)
                    if used + rooms[u] > len(nodes):
                        nodes, weights = _longer(nodes, weights, used, used + rooms[u])
                    _move(nodes, weights, starts[u], sizes[u], used)
                    starts[u], used = used, used + rooms[u]
                row = slice(starts[u], starts[u] + rooms[u])
                sizes[u] = _join(nodes[row], weights[row], sizes[u], i, total, around, is_gone, places)
                degrees[u] = sizes[u]
            _link(lists, u, degrees[u])
            least = min(least, degrees[u])
        filled += width
    return (
        order[:done], pivots[:done], begins[: done + 1], joined[:filled], shares[:filled],
        is_gone, starts, sizes, nodes, weights, remaining <= most_core,
    )  # fmt: skip


@kernel("const ?[:]", "const ?[:]", "int64", variants=INDEX_TYPES)
def count_core(indptr, indices, least):
    """Count the nodes that have at least so many neighbours among each other: those with fewer go, one by one."""
    count = len(indptr) - 1
    degrees, waiting = np.diff(indptr), np.empty(count, np.int64)
    gone, filled = 0, 0
    for node in range(count):
        if degrees[node] < least:
            waiting[filled] = node
            filled += 1
    while gone < filled:
        node = waiting[gone]
        gone += 1
        for at in range(indptr[node], indptr[node + 1]):
            other = indices[at]
            degrees[other] -= 1
            if degrees[other] == least - 1:
                waiting[filled] = other
                filled += 1
    return count - gone


@part
def _take(nodes, weights, is_gone, joined, shares):
    """Copy the neighbours of a row that are still there, with their shares; return how many, and their weight."""
    width, total = 0, 0.0
    for at in range(len(nodes)):
        if not is_gone[nodes[at]]:
            joined[width], shares[width] = nodes[at], weights[at]
            total += weights[at]
            width += 1
    shares[:width] /= total
    return width, total


@part
def _join(nodes, weights, size, i, total, around, is_gone, places):
    """Join neighbour i of a node that goes to the others, and drop the node from its row; return the row's size."""
    (joined, shares), kept = around, 0
    for at in range(size):
        v = nodes[at]
        if not is_gone[v]:
            nodes[kept], weights[kept] = v, weights[at]
            places[v] = kept
            kept += 1
    known = kept
    for at in range(len(joined)):
        v, weight = joined[at], total * shares[i] * shares[at]
        if at == i:
            continue
        if places[v] >= 0:
            weights[places[v]] += weight
        else:
            nodes[kept], weights[kept] = v, weight
            kept += 1
    for at in range(known):
        places[nodes[at]] = -1
    return kept


@part
def _move(nodes, weights, start, size, target):
    for at in range(size):
        nodes[target + at], weights[target + at] = nodes[start + at], weights[start + at]


@part
def _link(lists, node, degree):
    """Put a node at the head of the doubly linked list of its degree."""
    heads, following, leading = lists
    head = heads[degree]
    following[node], leading[node] = head, -1
    if head >= 0:
        leading[head] = node
    heads[degree] = node


@part
def _unlink(lists, node, degree):
    heads, following, leading = lists
    before, after = leading[node], following[node]
    if before >= 0:
        following[before] = after
    else:
        heads[degree] = after
    if after >= 0:
        leading[after] = before
    return node


@kernel(
    "const int64[:]", "const int64[:]", "const boolean[:]", "const boolean[:]", "const int64[:]", "const int64[:]",
    "const int64[:]", "const float64[:]",
)  # fmt: skip
def core_matrix(core, place, is_ground, is_gone, starts, sizes, nodes, weights):
    """Return the Laplacian of the nodes that remain, without the grounds; dense."""
    matrix = np.zeros((len(core), len(core)))
    for row in range(len(core)):
        node = core[row]
        for at in range(starts[node], starts[node] + sizes[node]):
            other = nodes[at]
            if is_gone[other]:
                continue
            matrix[row, row] += weights[at]
            if not is_ground[other]:
                matrix[row, place[other]] -= weights[at]
    return matrix


@kernel("const int64[:]", "const int64[:]", "const int64[:]", "int64")
def elimination_depths(order, begins, nodes, count):
    """Return how many eliminations in a row each node's entries of the inverse go through, 0 for those that remain."""
    depths = np.zeros(count)
    for step in range(len(order) - 1, -1, -1):
        most = 0.0
        for at in range(begins[step], begins[step + 1]):
            most = max(most, depths[nodes[at]])
        depths[order[step]] = most + 1.0
    return depths


@kernel(*_ELIMINATED, "const int64[:]", "const float64[:,:]")
def inverse_diagonal(order, pivots, begins, nodes, shares, place, core):
    """Return the diagonal of the inverse of the Laplacian without its grounds, 0 for these.

    Takahashi's recurrence, last eliminated first: with shares s over the neighbours N of x, Z[x,u] = Σ_v s_v·Z[v,u] for
    v, u in N, and Z[x,x] = 1/Σw + Σ_u s_u·Z[x,u]. Each Z[v,u] that this needs belongs to an edge that elimination has
    made, or to the core. `place` is the position of a node in the core, -1 elsewhere.
    """
    count = len(place)
    rank = np.full(count, -1, np.int64)
    for at in range(len(order)):
        rank[order[at]] = at
    z, diagonal = np.zeros(len(nodes)), np.zeros(count)
    stamps, weights, sums = np.full(count, -1, np.int64), np.zeros(count), np.zeros(count)
    for node in range(count):
        if place[node] >= 0:
            diagonal[node] = core[place[node], place[node]]
    for step in range(len(order) - 1, -1, -1):
        first, last = begins[step], begins[step + 1]
        for at in range(first, last):
            u = nodes[at]
            stamps[u], weights[u], sums[u] = step, shares[at], diagonal[u] * shares[at]
        for at in range(first, last):
            u, share = nodes[at], shares[at]
            if rank[u] >= 0:
                for other in range(begins[rank[u]], begins[rank[u] + 1]):
                    v = nodes[other]
                    if stamps[v] == step:
                        sums[u] += z[other] * weights[v]
                        sums[v] += z[other] * share
            elif place[u] >= 0:
                sums[u] += _core_sum(core[place[u]], place, u, nodes[first:last], shares[first:last])
        total = 1.0 / pivots[step]
        for at in range(first, last):
            z[at] = sums[nodes[at]]
            total += shares[at] * z[at]
        diagonal[order[step]] = total
    return diagonal


@part
def _core_sum(row, place, u, nodes, shares):
    total = 0.0
    for at in range(len(nodes)):
        if place[nodes[at]] >= 0 and nodes[at] != u:
            total += row[place[nodes[at]]] * shares[at]
    return total


@kernel(*_ELIMINATED, "const int64[:]", "const float64[:,:]", "int64", "int64")
def solve(order, pivots, begins, nodes, shares, core_nodes, core, size, query):
    """Return column `query` of the inverse of the Laplacian without its grounds, 0 at these; shape (size,)."""
    flows, potentials = np.zeros(size), np.zeros(size)
    flows[query] = 1.0
    for step in range(len(order)):
        flow = flows[order[step]]
        if flow != 0.0:
            for at in range(begins[step], begins[step + 1]):
                flows[nodes[at]] += shares[at] * flow
    for column in range(len(core_nodes)):
        flow = flows[core_nodes[column]]
        if flow != 0.0:
            for row in range(len(core_nodes)):
                potentials[core_nodes[row]] += flow * core[column, row]
    for step in range(len(order) - 1, -1, -1):
        node = order[step]
        potential = flows[node] / pivots[step]
        for at in range(begins[step], begins[step + 1]):
            potential += shares[at] * potentials[nodes[at]]
        potentials[node] = potential
    return potentials

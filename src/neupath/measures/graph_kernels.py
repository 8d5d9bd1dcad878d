"""Numba kernels of measures over the whole graph: local push, meetings of walks, elimination of nodes.

All walk the rows of a sparse matrix in the order of their entries, so results depend neither on threads nor on blocks.
"""

import numpy as np

from neupath.engine.product_kernels import compiled


# ---- PPR and RWR ---------------------------------------------------------------------------------
@compiled
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
@compiled
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
    size = 0
    for row in range(len(depths)):
        now[first + row] = 1.0
        support[0], num_support, num_met = first + row, 1, 0
        worth = 1.0
        for _ in range(depths[row]):
            worth *= decay
            num_reached = 0
            for at in range(num_support):
                node = support[at]
                share = now[node]
                now[node] = 0.0
                for edge in range(indptr[node], indptr[node + 1]):
                    other, part = indices[edge], share * data[edge]
                    if part == 0.0:
                        continue
                    if after[other] == 0.0:
                        reached[num_reached] = other
                        num_reached += 1
                    after[other] += part
            now, after = after, now
            support, reached = reached, support
            num_support = num_reached
            for at in range(num_support):
                node = support[at]
                chance = worth * now[node] * now[node]
                if chance == 0.0:
                    continue
                if total[node] == 0.0:
                    met[num_met] = node
                    num_met += 1
                total[node] += chance
        for at in range(num_support):
            now[support[at]] = 0.0
        if size + num_met > len(columns):
            room = max(2 * len(columns), size + num_met)
            more_columns, more_values = np.empty(room, np.int64), np.empty(room)
            more_columns[:size], more_values[:size] = columns[:size], values[:size]
            columns, values = more_columns, more_values
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


# ---- Commute time --------------------------------------------------------------------------------
@compiled
def eliminate(indptr, indices, data, is_ground, budget):
    """Eliminate nodes of a graph without loops, fewest neighbours first, until the others all but form a clique.

    Eliminating x joins each two of its neighbours u, v by an edge of weight w_u·w_v / (Σ w), which leaves the potentials
    of the others as they were. Return the eliminated nodes in order, the sums of their weights, their neighbours at the
    time as (starts, nodes, shares w / Σ w), and the rows that remain as (starts, sizes, nodes, weights); no nodes remain
    unknown where the budget of additions is spent, which the last value says.
    """
    count = len(indptr) - 1
    starts, sizes, rooms = np.empty(count, np.int64), np.empty(count, np.int64), np.empty(count, np.int64)
    nodes, weights = np.empty(2 * len(indices) + 16, np.int64), np.empty(2 * len(indices) + 16)
    used = 0
    for node in range(count):
        begin, size = indptr[node], indptr[node + 1] - indptr[node]
        starts[node], sizes[node], rooms[node] = used, size, size
        nodes[used : used + size] = indices[begin : begin + size]
        weights[used : used + size] = data[begin : begin + size]
        used += size
    degrees = sizes.copy()
    # nodes by degree, as doubly linked lists
    heads = np.full(count + 1, -1, np.int64)
    following, leading = np.full(count, -1, np.int64), np.full(count, -1, np.int64)
    remaining = 0
    for node in range(count - 1, -1, -1):
        if not is_ground[node] and degrees[node] > 0:
            remaining += 1
            _link(node, degrees[node], heads, following, leading)
    order, pivots = np.empty(count, np.int64), np.empty(count)
    begins = np.zeros(count + 1, np.int64)
    factor_nodes, factor_shares = np.empty(len(indices) + 16, np.int64), np.empty(len(indices) + 16)
    is_gone = np.zeros(count, np.bool_)
    stamps, places = np.full(count, -1, np.int64), np.empty(count, np.int64)
    done, filled, work, stamp, least = 0, 0, 0, 0, 1
    while remaining > 0:
        while heads[least] < 0:
            least += 1
        if 6 * least > remaining:  # a dense matrix is faster from here on
            break
        x = heads[least]
        _unlink(x, least, heads, following, leading)
        # its neighbours that are still there
        begin, width, total = starts[x], 0, 0.0
        if filled + degrees[x] > len(factor_nodes):
            factor_nodes, factor_shares = _longer(factor_nodes, factor_shares, filled, filled + degrees[x])
        for at in range(begin, begin + sizes[x]):
            if not is_gone[nodes[at]]:
                factor_nodes[filled + width], factor_shares[filled + width] = nodes[at], weights[at]
                total += weights[at]
                width += 1
        is_gone[x] = True
        remaining -= 1
        order[done], pivots[done] = x, total
        done += 1
        begins[done] = filled + width
        work += sizes[x]
        for i in range(filled, filled + width):
            u = factor_nodes[i]
            if is_ground[u]:
                continue
            if width == 1:
                degrees[u] -= 1
                _unlink(u, degrees[u] + 1, heads, following, leading)
                if degrees[u] > 0:
                    _link(u, degrees[u], heads, following, leading)
                least = min(least, max(1, degrees[u]))
                continue
            _unlink(u, degrees[u], heads, following, leading)
            if sizes[u] + width > rooms[u]:
                room = 2 * (sizes[u] + width)
                if used + room > len(nodes):
                    nodes, weights = _longer(nodes, weights, used, used + room)
                begin = starts[u]
                nodes[used : used + sizes[u]] = nodes[begin : begin + sizes[u]]
                weights[used : used + sizes[u]] = weights[begin : begin + sizes[u]]
                starts[u], rooms[u] = used, room
                used += room
            begin, kept = starts[u], starts[u]
            stamp += 1
            for at in range(begin, begin + sizes[u]):
                v = nodes[at]
                if not is_gone[v]:
                    nodes[kept], weights[kept] = v, weights[at]
                    stamps[v], places[v] = stamp, kept
                    kept += 1
            share = factor_shares[i] / total
            for j in range(filled, filled + width):
                v = factor_nodes[j]
                if v == u:
                    continue
                if stamps[v] == stamp:
                    weights[places[v]] += share * factor_shares[j]
                else:
                    nodes[kept], weights[kept] = v, share * factor_shares[j]
                    kept += 1
            work += sizes[u] + width
            sizes[u] = degrees[u] = kept - begin
            _link(u, degrees[u], heads, following, leading)
            least = min(least, degrees[u])
        for i in range(filled, filled + width):
            factor_shares[i] /= total
        filled += width
        if work > budget:
            break
    return (
        order[:done], pivots[:done], begins[: done + 1], factor_nodes[:filled], factor_shares[:filled],
        is_gone, starts, sizes, nodes, weights, work <= budget,
    )  # fmt: skip


@compiled
def _link(node, degree, heads, following, leading):
    head = heads[degree]
    following[node], leading[node] = head, -1
    if head >= 0:
        leading[head] = node
    heads[degree] = node


@compiled
def _unlink(node, degree, heads, following, leading):
    before, after = leading[node], following[node]
    if before >= 0:
        following[before] = after
    else:
        heads[degree] = after
    if after >= 0:
        leading[after] = before


@compiled
def _longer(nodes, weights, used, least):
    room = max(2 * len(nodes), least)
    more_nodes, more_weights = np.empty(room, np.int64), np.empty(room)
    more_nodes[:used], more_weights[:used] = nodes[:used], weights[:used]
    return more_nodes, more_weights


@compiled
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


@compiled
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
                for other in range(first, last):
                    v = nodes[other]
                    if v != u and place[v] >= 0:
                        sums[u] += core[place[u], place[v]] * shares[other]
        total = 1.0 / pivots[step]
        for at in range(first, last):
            z[at] = sums[nodes[at]]
            total += shares[at] * z[at]
        diagonal[order[step]] = total
    return diagonal


@compiled
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

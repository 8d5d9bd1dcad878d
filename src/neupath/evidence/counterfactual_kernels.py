"""Numba kernels of counterfactuals: the rank of one target after edges or nodes are switched off, and small such sets.

A problem is a table of half-walks: those from the query to the middle of the meta-path, and those from the middle to
each target. A half-walk counts unless one of its elements, edges or nodes, is off. Every evaluation adds up whole rows
again, in the same order, so no rounding errors build up.

`left`: (middles, elements, steps, weights) of the query's half-walks, and `right` of those of all targets, of which
starts[c] to starts[c+1] are those of target c. `elements` and `steps` have a row per half-walk: its elements, -1 where
there are fewer, and its entries, one per step.
`entries`: (weights, first_elements, second_elements) of each entry, -1 where it has none.
`scaling`: (legs, rows, columns, row_powers, column_powers, roots, sums, factors): how measures scale entries by sums of
weights; legs is empty where they don't, and then the weights of half-walks never change.
`touched`: (starts, targets, touches_query): the targets whose half-walks contain an element, and whether any of the
query's do.
"""

import numpy as np

from neupath._runtime.kernels import kernel, part
from neupath.engine.formula import COSINE, NONE, OVERLAP
from neupath.engine.product_kernels import FORMULA, copy_to, normalised

_NO_RANK = 1 << 60
_WALKS = "const int32[:]", "const int32[:,:]", "const int32[:,:]", "float64[:]"
_ENTRIES = "const float64[:]", "const int64[:]", "const int64[:]"
_SCALING = (
    "const int64[:]", "const int64[:]", "const int64[:]", "const float64[:]", "const float64[:]", "const boolean[:]",
    "float64[:]", "float64[:]",
)  # fmt: skip
_TOUCHED = "const int64[:]", "const int64[:]", "const boolean[:]"
_PROBLEM = (
    _WALKS, _WALKS, "const int64[:]", _ENTRIES, _SCALING, _TOUCHED, ("float64[:]", "int64[:]", "int8[:]"),
    "const float64[:]",
)  # fmt: skip
_STATE = "float64[:]", "float64[:]", "float64[:]"
_LOSSES = "float64[:,:]", "float64[:,:]", "float64[:,:]", "float64[:]"


@part
def _is_off(entry, entries, off):
    _, first, second = entries
    return (first[entry] >= 0 and off[first[entry]]) or (second[entry] >= 0 and off[second[entry]])


@part
def scale_walks(problem, off):
    """Weigh all half-walks by entries scaled by the sums of their rows and columns, over all that are not off."""
    left, right, _, entries, scaling = problem[:5]
    weights = entries[0]
    legs, rows, columns, row_powers, column_powers, roots, sums, factors = scaling
    sums[:] = 0.0
    for entry in range(len(weights)):
        if not _is_off(entry, entries, off):
            sums[rows[entry]] += weights[entry]
            sums[columns[entry]] += weights[entry]
    for entry in range(len(weights)):
        leg = legs[entry]
        factor = np.sqrt(weights[entry]) if roots[leg] else weights[entry]
        row_sum, column_sum = sums[rows[entry]], sums[columns[entry]]
        if row_powers[leg] != 0.0 and row_sum > 0.0:
            factor *= row_sum ** row_powers[leg]
        if column_powers[leg] != 0.0 and column_sum > 0.0:
            factor *= column_sum ** column_powers[leg]
        factors[entry] = factor
    for walks in (left, right):
        _, _, steps, walk_weights = walks
        for walk in range(len(walk_weights)):
            weight = 1.0
            for step in range(steps.shape[1]):
                weight *= factors[steps[walk, step]]
            walk_weights[walk] = weight


@part
def _counts(elements, walk, off):
    for i in range(elements.shape[1]):
        element = elements[walk, i]
        if element >= 0 and off[element]:
            return False
    return True


@part
def _walk_from_query(left, off, arrivals):
    """Write how much weight arrives at each middle; return its squared norm."""
    middles, elements, _, weights = left
    arrivals[:] = 0.0
    for walk in range(len(middles)):
        if _counts(elements, walk, off):
            arrivals[middles[walk]] += weights[walk]
    norm = 0.0
    for value in arrivals:
        norm += value * value
    return norm


@part
def _meet_target(right, starts, off, arrivals, target, sums, visited):
    """Return M[query, target] and the target's squared norm; `sums` is 0 before and after."""
    middles, elements, _, weights = right
    count = 0
    for walk in range(starts[target], starts[target + 1]):
        if _counts(elements, walk, off):
            middle = middles[walk]
            visited[count] = middle
            count += sums[middle] == 0.0
            sums[middle] += weights[walk]
    m, norm = 0.0, 0.0
    for i in range(count):
        value = sums[visited[i]]
        m += arrivals[visited[i]] * value
        norm += value * value
        sums[visited[i]] = 0.0
    return m, norm


@kernel(_PROBLEM, "const int8[:]", _STATE)
def revise_all(problem, off, state):
    """Evaluate every target as the elements are switched; return the query's norm and the work.

    `state`: (m, norms, arrivals), M[query, target] and the squared norm of each target, and what arrives at middles.
    """
    left, right, starts, entries, scaling, _, scratch, _ = problem
    sums, visited, _ = scratch
    m, norms, arrivals = state
    work = len(left[0]) + len(right[0]) + len(arrivals) + len(m)
    if len(scaling[0]) > 0:
        scale_walks(problem, off)
        work += 8 * len(entries[0])  # powers take longer than sums
    query_norm = _walk_from_query(left, off, arrivals)
    for target in range(len(m)):
        m[target], norms[target] = _meet_target(right, starts, off, arrivals, target, sums, visited)
    return query_norm, work


@part
def revise(problem, off, changed, state):
    """Bring `state` to the graph with `changed` elements switched; return the query's norm and the work.

    `restore` undoes it before the next call.
    """
    _, right, starts, _, scaling, touched, scratch, base_norm = problem
    sums, visited, marks = scratch
    m, norms, arrivals = state
    touched_starts, targets, touches_query = touched
    if len(scaling[0]) > 0:
        return revise_all(problem, off, state)
    for element in changed:
        if touches_query[element]:
            return revise_all(problem, off, state)
    work = 0
    for element in changed:
        for i in range(touched_starts[element], touched_starts[element + 1]):
            target = targets[i]
            if marks[target] == 0:
                marks[target] = 1
                m[target], norms[target] = _meet_target(right, starts, off, arrivals, target, sums, visited)
                work += starts[target + 1] - starts[target] + 8
    for element in changed:
        for i in range(touched_starts[element], touched_starts[element + 1]):
            marks[targets[i]] = 0
    return base_norm[0], work


@part
def restore(problem, changed, base, state):
    """Undo what `revise` wrote for some changed elements."""
    starts, targets, touches_query = problem[5]
    every = len(problem[4][0]) > 0
    for element in changed:
        every = every or touches_query[element]
    if every:
        for part in range(3):
            copy_to(state[part], base[part])
        return
    for element in changed:
        for i in range(starts[element], starts[element + 1]):
            state[0][targets[i]] = base[0][targets[i]]
            state[1][targets[i]] = base[1][targets[i]]


@kernel(FORMULA, "float64", _STATE, "const int64[:]", "int64", "float64[:]")
def standing(normalisation, query_norm, state, rows, target, best):
    """Return the target's score, its rank (very large without a path), and the score of the k-th best other target.

    `best`: room for k scores.
    """
    m, norms = state[0], state[1]
    score = normalised(normalisation, m[target], query_norm, norms[target])
    k, size, before = len(best), 0, 0
    for other in range(len(m)):
        if other == target or m[other] <= 0.0:
            continue
        value = normalised(normalisation, m[other], query_norm, norms[other])
        before += value > score or (value == score and rows[other] < rows[target])
        if size < k or value > best[k - 1]:
            at = size if size < k else k - 1
            size = min(size + 1, k)
            while at > 0 and best[at - 1] < value:
                best[at] = best[at - 1]
                at -= 1
            best[at] = value
    rank = before + 1 if score > 0.0 else _NO_RANK
    return score, rank, best[k - 1] if size == k else 0.0


@kernel(
    _PROBLEM, FORMULA, "const int64[:]", "int64", "const int64[:]", "int8[:]", _STATE, _STATE, "int64", "float64[:,:]",
    _LOSSES,
)  # fmt: skip
def evaluate_each(problem, normalisation, rows, target, candidates, off, base, state, k, results, losses):
    """Switch each candidate alone, and write (score, rank, k-th best other score) of the target; return the work.

    `losses`: (near, far, query, helped), what single candidates take away at most, largest first. near and far have
    shape (targets, depth): the decrease of each target's norm by a candidate on half-walks of the query or the target,
    and by another. query has shape (2, depth): of the query's norm, and of M[query, target]. helped (depth,): how many
    targets a far candidate touches.
    """
    starts, targets, touches_query = problem[5]
    base_norm = problem[7]
    near_losses, far_losses, query_losses, helped = losses
    best, changed = np.empty(k), np.empty(1, dtype=np.int64)
    before_score, before_rank, before_other = standing(normalisation, base_norm[0], base, rows, target, best)
    total = 0
    for i in range(len(candidates)):
        element = candidates[i]
        changed[0] = element
        off[element] ^= 1
        query_norm, work = revise(problem, off, changed, state)
        is_near = touches_query[element]
        for j in range(starts[element], starts[element + 1]):
            is_near |= targets[j] == target
        for j in range(starts[element], starts[element + 1]):
            other = targets[j]
            _keep_loss(near_losses[other] if is_near else far_losses[other], base[1][other] - state[1][other])
        if is_near:
            _keep_loss(query_losses[0], base_norm[0] - query_norm)
            _keep_loss(query_losses[1], base[0][target] - state[0][target])
        else:
            _keep_loss(helped, float(starts[element + 1] - starts[element]))
        crossed = 0
        if not is_near and len(problem[4][0]) == 0:  # only the touched targets can change places with the target
            for j in range(starts[element], starts[element + 1]):
                other = targets[j]
                old = normalised(normalisation, base[0][other], query_norm, base[1][other])
                new = normalised(normalisation, state[0][other], query_norm, state[1][other])
                crossed += _is_before(new, rows[other], before_score, rows[target])
                crossed -= _is_before(old, rows[other], before_score, rows[target])
        else:
            crossed = 1
        if crossed:
            results[i, 0], results[i, 1], results[i, 2] = standing(normalisation, query_norm, state, rows, target, best)
            work += len(rows)
        else:
            results[i, 0], results[i, 1], results[i, 2] = before_score, before_rank, before_other
        total += work + 16
        off[element] ^= 1
        restore(problem, changed, base, state)
    return total


@part
def _is_before(score, row, other_score, other_row):
    return score > 0.0 and (score > other_score or (score == other_score and row < other_row))


@part
def _keep_loss(largest, loss):
    at = len(largest) - 1
    if loss <= largest[at]:
        return
    while at > 0 and largest[at - 1] < loss:
        largest[at] = largest[at - 1]
        at -= 1
    largest[at] = loss


@part
def _bound(normalisation, m, query_norm, norm):
    """Return the largest score of a target with at most this m and at least these norms.

    By Cauchy-Schwarz m² is at most the product of the norms, so a norm cannot vanish while m stays.
    """
    kind, alpha, beta = normalisation
    if kind == NONE or m <= 0.0:
        return m
    if kind == COSINE:
        if query_norm <= 0.0 or norm <= 0.0:
            return 1.0
        return min(1.0, normalised(normalisation, m, query_norm, norm)) * (1.0 + 1e-12)
    if kind == OVERLAP:
        least = min(query_norm, norm)
        return m / least * (1.0 + 1e-12) if least > 0.0 else np.inf
    # 1/s = 1 - α - β + (α·dx + β·dy) / m, and α·dx + β·dy is at least 2·√(α·β)·m, as at dx = m·√(β/α)
    weighed = max((alpha * max(query_norm, 0.0) + beta * max(norm, 0.0)) / m, 2.0 * np.sqrt(alpha * beta))
    if query_norm > 0.0 and alpha * query_norm * query_norm > beta * m * m:  # dx is more, and dy at least m²/dx
        weighed = max(weighed, alpha * query_norm / m + beta * m / query_norm)
    inverse = 1.0 - alpha - beta + weighed
    return (1.0 + 1e-9) / inverse if inverse > 0.0 else np.inf


@kernel(FORMULA, "float64", _STATE, "int64", "int64", _LOSSES, "int8[:]")
def mark_crossers(normalisation, query_norm, state, target, remaining, losses, crossers):
    """Mark the targets that may come before the target once `remaining` more elements are removed; return how many.

    A removal takes away no more walks than all its elements do one by one, since weights are not negative. So the
    target keeps at least its M less the largest losses of M, and others lose no more of their norms than the largest
    losses of these. Of the removals, i are near the query or the target and the others are not: these lower no M of
    the target and no norm of the query, and each helps only the few targets that it touches. The result is the largest
    number over all i; -1 where the target may lose every path.
    """
    m, norms = state[0], state[1]
    near_losses, far_losses, query_losses, helped = losses
    crossers[:] = 0
    largest = 0
    query_loss, m_loss = 0.0, 0.0
    for near in range(remaining + 1):
        if near > 0:
            query_loss += query_losses[0, near - 1]
            m_loss += query_losses[1, near - 1]
        left = (m[target] - m_loss) * (1.0 - 1e-12)
        if left <= 0.0:
            return -1
        most_helped = 0.0
        for i in range(remaining - near):
            most_helped += helped[i]
        score = normalised(normalisation, left, query_norm, norms[target])
        alone, with_help = 0, 0
        for other in range(len(m)):
            if other == target or m[other] <= 0.0:
                continue
            norm = norms[other]
            for i in range(near):
                norm -= near_losses[other, i]
            if _bound(normalisation, m[other], query_norm - query_loss, norm) >= score:
                alone += 1
                crossers[other] = 1
                continue
            for i in range(remaining - near):
                norm -= far_losses[other, i]
            if _bound(normalisation, m[other], query_norm - query_loss, norm) >= score:
                with_help += 1
                crossers[other] = 1
        largest = max(largest, alone + int(min(float(with_help), most_helped)))
    return largest


@kernel(
    _PROBLEM, FORMULA, "const int64[:]", "int64", "const int64[:]", "int64", "int64", "boolean", "boolean", "int8[:]",
    _STATE, _STATE, _LOSSES, "int64",
)  # fmt: skip
def find_set(  # noqa: PLR0912
    problem, normalisation, rows, target, candidates, size, k, removes, is_bounded, off, base, state, losses, budget
):
    """Look for `size` candidates that together move the target out of, or into, the k best, by branch and bound.

    Returns the chosen elements, how many (0: there is no such set; -1: the budget ended), and the work.
    """
    chosen, places = np.empty(size, dtype=np.int64), np.empty(size, dtype=np.int64)
    best, crossers = np.empty(k), np.zeros(len(rows), dtype=np.int8)
    depth, work = 0, 0
    places[0] = 0
    while depth >= 0:
        if places[depth] > len(candidates) - (size - depth):
            depth -= 1
            if depth >= 0:
                off[chosen[depth]] ^= 1
                places[depth] += 1
            continue
        chosen[depth] = candidates[places[depth]]
        off[chosen[depth]] ^= 1
        changed = chosen[: depth + 1]
        is_last = depth + 1 == size
        if is_last or is_bounded:
            query_norm, cost = revise(problem, off, changed, state)
            work += cost + len(rows)
            is_open = True
            if is_last:
                _, rank, _ = standing(normalisation, query_norm, state, rows, target, best)
                if (rank > k) == removes:
                    restore(problem, changed, base, state)
                    for element in changed:
                        off[element] ^= 1
                    return chosen, size, work
            else:
                left = size - depth - 1
                count = mark_crossers(normalisation, query_norm, state, target, left, losses, crossers)
                work += left * (left + 1) * len(rows)
                is_open = count < 0 or count >= k
            restore(problem, changed, base, state)
        else:
            is_open = True
        if work > budget:
            for element in changed:
                off[element] ^= 1
            return chosen, -1, work
        if is_last or not is_open:
            off[chosen[depth]] ^= 1
            places[depth] += 1
        else:
            depth += 1
            places[depth] = places[depth - 1] + 1
    return chosen, 0, work

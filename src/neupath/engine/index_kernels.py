"""Numba kernels of the index: building it, ranking groups of equal queries, and expanding groups to rows.

Sums run in the order of the query's row, as in `product_kernels`, so scores are equal to the bit.
"""

import numpy as np

from neupath._runtime.kernels import kernel, part
from neupath.engine.formula import COSINE, NONE, OVERLAP, TVERSKY
from neupath.engine.product_kernels import (
    CSR,
    FORMULA,
    INDEX_TYPES,
    NO_ROWS,
    copy_to,
    insert,
    normalised,
    ranks_below,
)
from neupath.graph.edges import mix64

VALUE_TYPES = "float32", "float64"
"""The types of the values of postings; `index` takes the first one where that loses no digit."""
_ROWS = "const int64[:]", "const int32[:]", "const float64[:]"
_POSTINGS = "const int64[:]", "const uint32[:]", "const ?[:]"
_MEMBERS = "const int64[:]", "const int64[:]"
_STATE = "float64[:]", "uint32[:]", "int64[:]", "int64[:]"

# ---- Building the index --------------------------------------------------------------------------
_mix64 = part(mix64)


@kernel(*CSR, variants=INDEX_TYPES)
def hash_rows(indptr, indices, data):
    """Return a 64-bit hash of each row."""
    hashes = np.empty(len(indptr) - 1, dtype=np.uint64)
    for r in range(len(hashes)):
        value = np.uint64(0x9E3779B97F4A7C15)
        for i in range(indptr[r], indptr[r + 1]):
            value = _mix64(value ^ np.uint64(indices[i]))
            value = _mix64(value + np.uint64(np.int64(min(data[i], 1e12) * 1048576.0)))
        hashes[r] = value
    return hashes


@part
def _same_rows(indptr, indices, data, row, other):
    size = indptr[row + 1] - indptr[row]
    if indptr[other + 1] - indptr[other] != size:
        return False
    for i in range(size):
        a, b = indptr[row] + i, indptr[other] + i
        if indices[a] != indices[b] or data[a] != data[b]:
            return False
    return True


@kernel(*CSR, "const int64[:]", "const uint64[:]", variants=INDEX_TYPES)
def group_rows(indptr, indices, data, order, hashes):
    """Return each row's group, -1 if the row is empty, and each group's first row; equal rows share a group.

    `order` sorts rows by hash, and those of one hash by place. A row is compared with the one before it only, so
    different rows of one hash may cut a group in two.
    """
    groups = np.full(len(indptr) - 1, -1, dtype=np.int64)
    first = np.empty(len(order), dtype=np.int64)
    count = 0
    for at in range(len(order)):
        row = order[at]
        if indptr[row + 1] == indptr[row]:
            continue
        if at > 0 and hashes[order[at - 1]] == hashes[row] and _same_rows(indptr, indices, data, row, order[at - 1]):
            groups[row] = groups[order[at - 1]]
            continue
        groups[row] = count
        first[count] = row
        count += 1
    return groups, first[:count].copy()


# ---- Ranking groups ------------------------------------------------------------------------------
_SLACK = 1e-9  # the share by which bounds are widened against rounding
_STRIDE = 64
_TRIES = 32
_SCAN = 8  # labels that can be scanned in the time that listing one takes
_LIGHT = 2048  # additions below which a query is not worth the binary searches of a band


@part
def position(values, begin, end, value, is_after):
    """Return where a value belongs in a sorted stretch [begin, end), before its equals or after them.

    As `np.searchsorted` does, which numba compiles for a second.
    """
    while begin < end:
        middle = (begin + end) // 2
        if values[middle] < value or (is_after and values[middle] == value):
            begin = middle + 1
        else:
            end = middle
    return begin


@part
def scatter(labels, values, weight, sums):
    """Add a stretch of postings to the sums; no values mean that all are 1."""
    if len(values) == 0:
        for j in range(len(labels)):
            sums[labels[j]] += weight
    else:
        for j in range(len(labels)):
            sums[labels[j]] += weight * values[j]


@part
def _scatter_touched(labels, values, weight, sums, touched, count):
    """Add a stretch of postings to the sums and list the labels that are new; return how many are listed."""
    ones = len(values) == 0
    for j in range(len(labels)):
        label = labels[j]
        added = weight if ones else weight * values[j]
        if added > 0.0:
            if sums[label] == 0.0:
                touched[count] = label
                count += 1
            sums[label] += added
    return count


@part
def _likely(normalisation, dx, norms, low, high, reach):
    """Return the stretch of labels within [low, high) to scan first: scores are highest where norms are similar.

    A scan by ascending norm would find ever better labels, and offer nearly all of them.
    """
    kind, alpha, beta = normalisation
    middle = high
    if kind == TVERSKY and beta > 0.0:
        middle = position(norms, NO_ROWS, high, dx * (alpha / beta), False)
    middle = min(max(middle, low), high)
    return max(low, middle - reach), min(high, middle + reach)


@part
def _offer_group(best, held, score, label, targets):
    """Offer a group of equal targets to the list of the best; `held` is (groups, targets) in the list.

    Groups leave when enough targets have a higher score; at equal scores, any row may come first. A full list keeps the
    groups whose first rows rank best, and each group has one such row.
    """
    scores, rows = best
    _, ties, counts, label_of, wanted = targets
    size, total = held
    if size == len(rows):
        if not ranks_below(scores[size - 1], rows[size - 1], score, ties[label]):
            return size, total
        size -= 1
        total -= counts[label_of[rows[size]]]
    elif total >= wanted and score < scores[size - 1]:
        return size, total
    size = insert(scores, rows, size, score, ties[label])
    total += counts[label]
    while size > 1 and scores[size - 2] > scores[size - 1] and total - counts[label_of[rows[size - 1]]] >= wanted:
        size -= 1
        total -= counts[label_of[rows[size]]]
    return size, total


@part
def _scan(sums, listed, low, high, targets, normalisation, dx, best, held):
    """Offer every label of a stretch to the list of the best, and reset its sum to 0; return (groups, targets) held.

    Once the list is full, a sum must reach a + b·norm to matter (b·√norm for the cosine, b·min(dx, norm) for the
    overlap). A stride of labels is checked at once, without a branch, and few strides have a label that does.
    """
    kind = normalisation[0]
    is_linear = has_band(kind)
    norms, wanted = targets[0], targets[4]
    label = low
    while label < high and held[1] < wanted:
        if sums[label] > 0.0:
            score = normalised(normalisation, sums[label], dx, norms[label])
            held = _offer_group(best, held, score, label, targets)
            sums[label] = 0.0
        label += 1
    while label < high:
        end = min(label + _STRIDE, high)
        some, own = sums[label:end], norms[label:end]
        a, b = least_line(normalisation, best[0][held[0] - 1], dx)
        reached = 0
        if kind == COSINE:
            for y in range(len(some)):
                reached += 1 if some[y] >= b * np.sqrt(own[y]) else 0
        elif kind == OVERLAP:
            for y in range(len(some)):
                reached += 1 if some[y] >= b * min(dx, own[y]) else 0
        else:
            for y in range(len(some)):
                reached += 1 if some[y] >= a + b * own[y] else 0
        if reached:
            count = 0
            for y in range(len(some)):
                norm = own[y] if is_linear else _on_line(kind, dx, own[y])
                listed[count] = y
                count += (some[y] > 0.0) & (some[y] >= a + b * norm)
            for i in range(count):
                y = np.int64(listed[i])
                score = normalised(normalisation, some[y], dx, own[y])
                held = _offer_group(best, held, score, label + y, targets)
        some[:] = 0.0  # while they are in the cache
        label = end
    return held


@part
def least_line(normalisation, least, dx):
    """Return a and b so that m ≥ a + b·`_on_line` of dy wherever the score reaches `least`.

    With c = 1 - α - β, Tversky's is m ≥ least·(α·dx + β·dy) / (1 - least·c).
    """
    kind, alpha, beta = normalisation
    if kind == NONE:
        return least * (1.0 - _SLACK), 0.0
    if kind == COSINE:
        return 0.0, least * np.sqrt(dx) * (1.0 - _SLACK)
    if kind == OVERLAP:
        return 0.0, least * (1.0 - _SLACK)
    slope = least * (1.0 - _SLACK) / max(1.0 - least * (1.0 - alpha - beta) + _SLACK, _SLACK)
    return slope * alpha * dx, slope * beta


@part
def _on_line(kind, dx, dy):
    """Return what a bound on m is linear in: the norm, for the cosine its root, for the overlap the smaller norm."""
    if kind == COSINE:
        return np.sqrt(dy)
    return min(dx, dy) if kind == OVERLAP else dy


@part
def has_band(kind):
    """Whether the norm of a target bounds its score: not for the cosine, nor for the overlap."""
    return kind not in (COSINE, OVERLAP)


@part
def add_up(row, postings, low, high, num_labels, work, state):
    """Add up the products of a row with the labels in [low, high); return how many are listed, or -1 for no list.

    Where a row meets few labels, they are listed. Where it meets many, the inner loop only adds, and all labels are
    scanned afterwards. `work` is the number of additions of the whole row.
    """
    middles, weights = row
    starts, labels, values = postings
    sums, touched, begins, ends = state
    whole = low == 0 and high == num_labels
    if not whole:
        work = 0
        for i in range(len(middles)):
            first, last = starts[middles[i]], starts[middles[i] + 1]
            begins[i] = position(labels, first, last, low, False)
            ends[i] = position(labels, begins[i], last, high, False)
            work += ends[i] - begins[i]
    listing = _SCAN * work < high - low
    count = NO_ROWS
    for i in range(len(middles)):
        begin = starts[middles[i]] if whole else begins[i]
        end = starts[middles[i] + 1] if whole else ends[i]
        if listing:
            count = _scatter_touched(labels[begin:end], values[begin:end], weights[i], sums, touched, count)
        else:
            scatter(labels[begin:end], values[begin:end], weights[i], sums)
    return count if listing else -1


@part
def _search_stretch(row, postings, targets, normalisation, dx, low, high, work, state, best, held):
    """Offer the labels in [low, high) to the list of the best; return (groups, targets) held.

    `row`: the middle nodes of a query and their weights. `state`: sums (zeros), touched, begins and ends of postings.
    """
    sums, touched = state[0], state[1]
    norms, wanted = targets[0], targets[4]
    count = add_up(row, postings, low, high, len(norms), work, state)
    if count < 0:
        near, far = _likely(normalisation, dx, norms, low, high, 8 * wanted)
        for first, last in ((near, far), (low, near), (far, high)):
            held = _scan(sums, touched, first, last, targets, normalisation, dx, best, held)
        return held
    for i in range(count):
        label = touched[i]
        m = sums[label]
        sums[label] = 0.0
        if held[1] >= wanted:
            a, b = least_line(normalisation, best[0][held[0] - 1], dx)
            if m < a + b * _on_line(normalisation[0], dx, norms[label]):
                continue
        score = normalised(normalisation, m, dx, norms[label])
        held = _offer_group(best, held, score, label, targets)
    return held


@part
def count_work(middles, starts):
    """Return the number of additions of a row."""
    work = 0
    for i in range(len(middles)):
        work += starts[middles[i] + 1] - starts[middles[i]]
    return work


@part
def band(normalisation, least, dx, norms):
    """Return the labels [low, high) whose score can reach `least`, by Cauchy-Schwarz: M[x,y] ≤ √(dx·dy).

    Norms ascend. Tversky's reaches it where β·t² - b·t + α ≤ 0, with t = √(dy/dx) and b = 1/least - (1 - α - β). For
    Dice's, 2m/(dx+dy), that is dy in [dx/R, dx·R], √R = (1 + √(1 - least²)) / least.
    """
    kind, alpha, beta = normalisation
    if kind == TVERSKY:
        b = (1.0 + _SLACK) / least - (1.0 - alpha - beta)  # a score may be rounded to the highest there is
        most = b + np.sqrt(max(b * b - 4.0 * alpha * beta, 0.0))
        if most <= 0.0:  # no score is so high
            return 0, 0
        low = position(norms, NO_ROWS, len(norms), dx * (2.0 * alpha / most) ** 2 * (1.0 - 1e-6), False)
        if beta == 0.0:
            return low, len(norms)
        return low, position(norms, low, len(norms), dx * (most / (2.0 * beta)) ** 2 * (1.0 + 1e-6), True)
    return position(norms, NO_ROWS, len(norms), least * (least / dx) * (1.0 - 1e-6), False), len(norms)


@kernel(
    _ROWS, "const float64[:]", _POSTINGS,
    ("const float64[:]", "const int64[:]", "const int64[:]", "const int32[:]", "int64"), FORMULA, "boolean",
    "const int64[:]", _STATE, "int64[:,:]", "float64[:,:]", variants=VALUE_TYPES,
)  # fmt: skip
def rank_groups(left, left_norms, postings, targets, normalisation, prune, groups, state, best_rows, best_scores):
    """Write the best labels of each group of equal queries, each as its first row; return how many each has.

    `left`: (indptr, indices, data) of the groups. `postings`: (starts, labels, values) by middle node. `targets`: by
    label the norms, ascending, the first row and the number of rows; the label of each row; the number of rows wanted.
    `state`: sums, which are 0 before and after, and space for a list of labels and for begins and ends of postings.
    `best_rows`, `best_scores`: (groups, rows wanted), best first, ties by row.
    """
    indptr, indices, data = left
    starts, norms, wanted = postings[0], targets[0], targets[4]
    num_labels = len(norms)
    sizes = np.zeros(len(groups), dtype=np.int64)
    tried, paid = 0, 0
    for q in range(len(groups)):
        g = groups[q]
        if g < 0:  # queries without any edge
            continue
        row = (indices[indptr[g] : indptr[g + 1]], data[indptr[g] : indptr[g + 1]])
        dx, best = left_norms[g], (best_scores[q], best_rows[q])
        work = count_work(row[0], starts)
        low, high = 0, num_labels
        pays = tried < _TRIES or 2 * paid > tried or q % _TRIES == 0  # rarely tried where it has not paid
        if prune and pays and has_band(normalisation[0]) and work > _LIGHT and num_labels > 16 * wanted:
            tried += 1
            low, high = _likely(normalisation, dx, norms, NO_ROWS, num_labels, max(4 * wanted, num_labels // 64))
        held, first, last, highest = (NO_ROWS, NO_ROWS), low, high, num_labels
        for turn in range(3):  # the likely labels, then those below and above them: one call is compiled once
            if first < last:
                held = _search_stretch(row, postings, targets, normalisation, dx, first, last, work, state, best, held)
            if turn == 0:
                lowest = 0
                if held[1] >= wanted and (low > 0 or high < num_labels):
                    lowest, highest = band(normalisation, best[0][held[0] - 1], dx, norms)
                paid += 1 if 2 * (highest - lowest) < num_labels else 0
                first, last = lowest, low
            else:
                first, last = high, highest
        sizes[q] = held[0]
    return sizes


# ---- From groups to rows -------------------------------------------------------------------------
@kernel(
    "const int64[:]", "const int64[:,:]", "const float64[:,:]", "const int64[:]", "const int32[:]", _MEMBERS,
    "const int64[:]", "int64", "int64[:,:]", "float64[:,:]", "int64[:]",
)  # fmt: skip
def expand_groups(  # noqa: PLR0912
    group_of_query, best_rows, best_scores, best_sizes, label_of, members, skipped, k, rows, scores, sizes
):
    """Turn the best groups of targets into the best targets of each query, leaving out the skipped one.

    `group_of_query`: (q,) positions in the results of groups, -1 for none. `members`: (starts, rows) by label, with the
    rows of a label ascending.
    """
    starts, member_rows = members
    for q in range(len(group_of_query)):
        g = group_of_query[q]
        size = 0
        if g < 0:
            continue
        at = 0
        while at < best_sizes[g]:
            score = best_scores[g, at]
            label = label_of[best_rows[g, at]]
            after = at + 1
            alone = starts[label + 1] == starts[label] + 1
            while after < best_sizes[g] and best_scores[g, after] == score:
                other = label_of[best_rows[g, after]]
                alone = alone and starts[other + 1] == starts[other] + 1
                after += 1
            if alone:  # single rows are already in order
                after = at + 1
            if after == at + 1:
                for i in range(starts[label], starts[label + 1]):
                    if member_rows[i] != skipped[q] and size < k:
                        rows[q, size], scores[q, size] = member_rows[i], score
                        size += 1
                    if size == k:
                        break
            else:  # several groups of equal score: merge their rows, at most k of each
                merged = np.empty((after - at) * (k + 1), dtype=np.int64)
                count = 0
                for j in range(at, after):
                    label = label_of[best_rows[g, j]]
                    for i in range(starts[label], min(starts[label + 1], starts[label] + k + 1)):
                        merged[count] = member_rows[i]
                        count += 1
                merged = np.sort(merged[:count])
                for i in range(count):
                    if merged[i] != skipped[q] and size < k:
                        rows[q, size], scores[q, size] = merged[i], score
                        size += 1
            at = after
            if size == k:
                break
        sizes[q] = size


@kernel(
    _ROWS, "const float64[:]", _POSTINGS, "const float64[:]", FORMULA, "float64", "const int64[:]", _STATE,
    variants=VALUE_TYPES,
)  # fmt: skip
def reach_groups(left, left_norms, postings, norms, normalisation, least, groups, state):
    """Return the labels whose score with each group of equal queries reaches `least`: (starts, labels, scores).

    Only the labels that can reach it are added up. The other arguments are those of `rank_groups`.
    """
    indptr, indices, data = left
    sums, touched = state[0], state[1]
    ends = np.zeros(len(groups) + 1, dtype=np.int64)
    labels, scores = np.empty(1024, dtype=np.uint32), np.empty(1024)
    size = NO_ROWS
    for q in range(len(groups)):
        g = groups[q]
        if g >= 0:  # -1: queries without any edge
            row = (indices[indptr[g] : indptr[g + 1]], data[indptr[g] : indptr[g + 1]])
            dx = left_norms[g]
            low, high = 0, len(norms)
            if has_band(normalisation[0]):
                low, high = band(normalisation, least, dx, norms)
            count = add_up(row, postings, low, high, len(norms), count_work(row[0], postings[0]), state)
            labels, scores = _with_room(labels, scores, size, size + 1 + (high - low if count < 0 else count))
            a, b = least_line(normalisation, least, dx)
            for i in range(high - low if count < 0 else count):
                label = low + i if count < 0 else np.int64(touched[i])
                m = sums[label]
                sums[label] = 0.0
                if m > 0.0 and m >= a + b * _on_line(normalisation[0], dx, norms[label]):
                    labels[size], scores[size] = label, normalised(normalisation, m, dx, norms[label])
                    size += scores[size] >= least
        ends[q + 1] = size
    return ends, labels[:size], scores[:size]


@part
def _with_room(labels, scores, size, wanted):
    """Return both arrays, grown to hold `wanted` entries; the first `size` are kept."""
    if wanted <= len(labels):
        return labels, scores
    longer = max(wanted, 2 * len(labels))
    more_labels, more_scores = np.empty(longer, dtype=np.uint32), np.empty(longer)
    copy_to(more_labels, labels[:size])
    copy_to(more_scores, scores[:size])
    return more_labels, more_scores

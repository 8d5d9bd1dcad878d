"""Numba kernels of the index: the best labels of a query, pruned by what they can reach.

Sums run in the order of the query's row, as in the kernels without an index, so that scores are the same to the bit.
"""

import numpy as np

from neupath.kernels import compiled, insert, normalised, ranks_below
from neupath.normalisation import Normalisation

_NONE, _DICE, _COSINE = int(Normalisation.NONE), int(Normalisation.DICE), int(Normalisation.COSINE)
_SLACK = 1e-9
"""How far bounds are widened against rounding."""
_STRIDE = 64
_TRIES = 32
_SCAN = 8
"""Labels that are looked at in turn in the time that listing one takes."""
_LIGHT = 2048
"""Additions below which a query is not worth the binary searches of a band."""


@compiled
def _bounds(labels, begin, end, low, high):
    """Return where labels in [low, high) begin and end within a sorted stretch of postings."""
    a = begin + np.searchsorted(labels[begin:end], low)
    return a, a + np.searchsorted(labels[a:end], high)


@compiled
def _scatter(labels, values, weight, sums):
    """Add a stretch of postings to the sums; no values mean that all are 1."""
    if len(values) == 0:
        for j in range(len(labels)):
            sums[labels[j]] += weight
    else:
        for j in range(len(labels)):
            sums[labels[j]] += weight * values[j]


@compiled
def _scatter_touched(labels, values, weight, sums, touched, count):
    """Add a stretch of postings to the sums, listing the labels met for the first time; return how many are listed."""
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


@compiled
def _likely(normalisation, dx, norms, low, high, reach):
    """Return the stretch of labels within [low, high) to look at first: scores are highest where norms are alike.

    Looking elsewhere first, as norms ascend, each label would be better than the last.
    """
    middle = high
    if normalisation == _DICE:
        middle = np.searchsorted(norms, dx)
    middle = min(max(middle, low), high)
    return max(low, middle - reach), min(high, middle + reach)


@compiled
def _offer_group(best, held, score, label, targets):
    """Offer a group of like targets to the list of the best; `held` is its length, and how many targets are in it.

    Groups that rank behind enough targets leave: those with a lower score than all of these, since of equal scores any
    row may come first. A list that is full keeps the groups whose first rows rank best, and each has one such row.
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


@compiled
def _scan(sums, listed, low, high, targets, normalisation, dx, best, held):
    """Offer every label of a stretch to the list of the best, and set its sum back to 0; return what is held now.

    Once there are enough, a sum must reach a + b·norm to matter (b·√norm for the cosine). That is asked of a
    stride of labels at once, without a branch, and few strides have one that does.
    """
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
        if normalisation == _COSINE:
            for y in range(len(some)):
                reached += 1 if some[y] >= b * np.sqrt(own[y]) else 0
        else:
            for y in range(len(some)):
                reached += 1 if some[y] >= a + b * own[y] else 0
        if reached:
            count = 0
            for y in range(len(some)):
                norm = np.sqrt(own[y]) if normalisation == _COSINE else own[y]
                listed[count] = y
                count += (some[y] > 0.0) & (some[y] >= a + b * norm)
            for i in range(count):
                y = np.int64(listed[i])
                score = normalised(normalisation, some[y], dx, own[y])
                held = _offer_group(best, held, score, label + y, targets)
        some[:] = 0.0  # while they are at hand
        label = end
    return held


@compiled
def least_line(normalisation, least, dx):
    """Return a and b so that m ≥ a + b·dy (for the cosine b·√dy) wherever the score reaches `least`."""
    if normalisation == _DICE:
        return least * dx * (0.5 - _SLACK), least * (0.5 - _SLACK)
    if normalisation == _NONE:
        return least * (1.0 - _SLACK), 0.0
    return 0.0, least * np.sqrt(dx) * (1.0 - _SLACK)


@compiled
def add_up(row, postings, low, high, num_labels, work, state):
    """Add up the products of a row with the labels in [low, high); return how many are listed, or -1 for no list.

    Where many labels are met, all are to be looked at in turn, and the inner loop only adds; where few are, they are
    listed. `work` is how many additions the whole row takes.
    """
    middles, weights = row
    starts, labels, values = postings
    sums, touched, begins, ends = state
    whole = low == 0 and high == num_labels
    if not whole:
        work = 0
        for i in range(len(middles)):
            begins[i], ends[i] = _bounds(labels, starts[middles[i]], starts[middles[i] + 1], low, high)
            work += ends[i] - begins[i]
    listing = _SCAN * work < high - low
    count = 0
    for i in range(len(middles)):
        begin = starts[middles[i]] if whole else begins[i]
        end = starts[middles[i] + 1] if whole else ends[i]
        if listing:
            count = _scatter_touched(labels[begin:end], values[begin:end], weights[i], sums, touched, count)
        else:
            _scatter(labels[begin:end], values[begin:end], weights[i], sums)
    return count if listing else -1


@compiled
def _search_stretch(row, postings, targets, normalisation, dx, low, high, work, state, best, held):
    """Offer the targets with labels in [low, high) to the list of the best; return its length and how many are in it.

    `row`: the middles of a query and their weights. `state`: sums (zeros), touched, and where postings begin and end.
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
            norm = np.sqrt(norms[label]) if normalisation == _COSINE else norms[label]
            if m < a + b * norm:
                continue
        score = normalised(normalisation, m, dx, norms[label])
        held = _offer_group(best, held, score, label, targets)
    return held


@compiled
def count_work(middles, starts):
    """Return how many additions a row takes."""
    work = 0
    for i in range(len(middles)):
        work += starts[middles[i] + 1] - starts[middles[i]]
    return work


@compiled
def band(normalisation, least, dx, norms):
    """Return the labels [low, high) whose score can reach `least`, by Cauchy-Schwarz: M[x,y] ≤ √(dx·dy).

    Norms ascend. For 2m/(dx+dy) ≤ 2√(dx·dy)/(dx+dy) that is dy in [dx/R, dx·R], √R = (1 + √(1 - least²)) / least.
    """
    if normalisation == _DICE:
        bounded = min(least, 1.0)
        ratio = ((1.0 + np.sqrt(1.0 - bounded * bounded)) / bounded) ** 2
        low = np.searchsorted(norms, dx / ratio * (1.0 - 1e-6))
        high = np.searchsorted(norms, dx * ratio * (1.0 + 1e-6), side="right")
        return low, high
    return np.searchsorted(norms, least * (least / dx) * (1.0 - 1e-6)), len(norms)


@compiled
def rank_groups(left, left_norms, postings, targets, normalisation, prune, groups, state, best_rows, best_scores):
    """Write the best labels of each group of like queries, each as its first row; return how many each has.

    `left`: (indptr, indices, data) of the groups. `postings`: (starts, labels, values) by middle. `targets`: by label
    the norms, ascending, the first row and the number of rows; the label of each row; how many rows are wanted.
    `state`: sums, which are 0 before and after, and room to list labels and stretches of postings. `best_rows`,
    `best_scores`: (groups, rows wanted), best first, ties by row.
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
        pays = tried < _TRIES or 2 * paid > tried or q % _TRIES == 0  # where pruning does not pay it is rarely tried
        if prune and pays and normalisation != _COSINE and work > _LIGHT and num_labels > 16 * wanted:
            tried += 1
            low, high = _likely(normalisation, dx, norms, 0, num_labels, max(4 * wanted, num_labels // 64))
        held = _search_stretch(row, postings, targets, normalisation, dx, low, high, work, state, best, (0, 0))
        if low > 0 or high < num_labels:
            lowest, highest = 0, num_labels
            if held[1] >= wanted:
                lowest, highest = band(normalisation, best[0][held[0] - 1], dx, norms)
            paid += 1 if 2 * (highest - lowest) < num_labels else 0
            if lowest < low:
                held = _search_stretch(row, postings, targets, normalisation, dx, lowest, low, work, state, best, held)
            if highest > high:
                held = _search_stretch(
                    row, postings, targets, normalisation, dx, high, highest, work, state, best, held
                )
        sizes[q] = held[0]
    return sizes


@compiled
def scatter_only(left, postings, num_labels, groups):
    """Add up the products of some groups and do nothing with them: the most any kernel of this kind can reach."""
    indptr, indices, data = left
    starts, labels, values = postings
    sums = np.zeros(num_labels)
    total = 0.0
    for g in groups:
        for i in range(indptr[g], indptr[g + 1]):
            begin, end = starts[indices[i]], starts[indices[i] + 1]
            _scatter(labels[begin:end], values[begin:end], data[i], sums)
        total += sums[0]
    return total

"""Numba kernels from groups of like rows back to rows: the best targets of each query, and all that reach a score."""

import numpy as np

from neupath.index.kernels import add_up, band, count_work, least_line
from neupath.kernels import compiled, normalised
from neupath.normalisation import Normalisation

_COSINE = int(Normalisation.COSINE)


@compiled
def expand_groups(  # noqa: PLR0912
    group_of_query, group_rows_found, group_scores, group_sizes, label_of, members, skipped, k, rows, scores, sizes
):
    """Turn the best groups of targets into the best targets of each query, leaving out the skipped one.

    `group_of_query`: (q,) rows of the group results, -1 for a query that has none. `members`: (starts, rows) by label;
    those of one label ascend.
    """
    starts, member_rows = members
    for q in range(len(group_of_query)):
        g = group_of_query[q]
        size = 0
        if g < 0:
            continue
        at = 0
        while at < group_sizes[g]:
            score = group_scores[g, at]
            label = label_of[group_rows_found[g, at]]
            after = at + 1
            alone = starts[label + 1] == starts[label] + 1
            while after < group_sizes[g] and group_scores[g, after] == score:
                other = label_of[group_rows_found[g, after]]
                alone = alone and starts[other + 1] == starts[other] + 1
                after += 1
            if alone:  # single rows are in order as they are
                after = at + 1
            if after == at + 1:
                for i in range(starts[label], starts[label + 1]):
                    if member_rows[i] != skipped[q] and size < k:
                        rows[q, size], scores[q, size] = member_rows[i], score
                        size += 1
                    if size == k:
                        break
            else:  # several groups with one score: their rows in order, at most k of each
                merged = np.empty((after - at) * (k + 1), dtype=np.int64)
                count = 0
                for j in range(at, after):
                    label = label_of[group_rows_found[g, j]]
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


@compiled
def reach_groups(left, left_norms, postings, norms, normalisation, least, groups, state):
    """Return the labels whose score with each group of like queries reaches `least`: (starts, labels, scores).

    Only the band of labels that can reach it is added up; the other arguments are those of `rank_groups`.
    """
    indptr, indices, data = left
    sums, touched = state[0], state[1]
    found = np.zeros(len(groups) + 1, dtype=np.int64)
    labels, scores = np.empty(1024, dtype=np.uint32), np.empty(1024)
    size = 0
    for q in range(len(groups)):
        g = groups[q]
        if g >= 0:  # -1: queries without any edge
            row = (indices[indptr[g] : indptr[g + 1]], data[indptr[g] : indptr[g + 1]])
            dx = left_norms[g]
            low, high = 0, len(norms)
            if normalisation != _COSINE:
                low, high = band(normalisation, least, dx, norms)
            count = add_up(row, postings, low, high, len(norms), count_work(row[0], postings[0]), state)
            labels, scores = _with_room(labels, scores, size, size + 1 + (high - low if count < 0 else count))
            a, b = least_line(normalisation, least, dx)
            for i in range(high - low if count < 0 else count):
                label = low + i if count < 0 else np.int64(touched[i])
                m = sums[label]
                sums[label] = 0.0
                if m > 0.0 and m >= a + b * (np.sqrt(norms[label]) if normalisation == _COSINE else norms[label]):
                    labels[size], scores[size] = label, normalised(normalisation, m, dx, norms[label])
                    size += scores[size] >= least
        found[q + 1] = size
    return found, labels[:size], scores[:size]


@compiled
def _with_room(labels, scores, size, wanted):
    """Return both arrays with room for `wanted` entries, the first `size` as they were."""
    if wanted <= len(labels):
        return labels, scores
    longer = max(wanted, 2 * len(labels))
    more_labels, more_scores = np.empty(longer, dtype=np.uint32), np.empty(longer)
    more_labels[:size], more_scores[:size] = labels[:size], scores[:size]
    return more_labels, more_scores


@compiled
def expand_reached(place, found, labels, scores, members, skipped):
    """Turn the labels that reach a score into targets, best first, ties by row: (starts, rows, scores) by query.

    `place`: (q,) the group result of each query. `members`: (starts, rows) by label.
    """
    starts, member_rows = members
    begins = np.zeros(len(place) + 1, dtype=np.int64)
    for q in range(len(place)):
        count = 0
        for i in range(found[place[q]], found[place[q] + 1]):
            count += starts[labels[i] + 1] - starts[labels[i]]
        begins[q + 1] = begins[q] + count  # the skipped one has a place for now
    rows, own = np.empty(begins[-1], dtype=np.int64), np.empty(begins[-1])
    size = 0
    for q in range(len(place)):
        first = size
        for i in range(found[place[q]], found[place[q] + 1]):
            for j in range(starts[labels[i]], starts[labels[i] + 1]):
                rows[size], own[size] = member_rows[j], scores[i]
                size += member_rows[j] != skipped[q]
        by_row = np.argsort(rows[first:size])
        order = by_row[np.argsort(-own[first:size][by_row], kind="mergesort")]
        rows[first:size], own[first:size] = rows[first:size][order], own[first:size][order]
        begins[q] = first
    begins[-1] = size
    return begins, rows[:size], own[:size]

"""Numba kernels of queries at a version, as `engine.product_kernels` answers them over plain matrices."""

import numpy as np

from neupath.engine.product_kernels import compiled, keep_best, normalised
from neupath.live.edge_kernels import add_stretch, base_of
from neupath.live.version_kernels import line_at, lines_of, norm_at, norms_of, written

_NO_SCORE = -1.0


@compiled
def _add_kept(targets, values, replaced, version, weight, sums, touched, count):
    """Add those of a stretch of the base that nothing has replaced by a version."""
    for j in range(len(targets)):
        target = targets[j]
        product = weight * values[j]  # before it is known to be kept: a guess at a branch would often be wrong
        added = product if replaced[j] > version else 0.0
        before = sums[target]
        touched[count] = target
        count += (before == 0.0) & (added > 0.0)
        sums[target] = before + added
    return count


@compiled
def _add_entries(entries, version, weight, sums, touched, count):
    """Add those of some entries that are still there at a version."""
    for j in range(len(entries)):
        target = entries[j].place
        product = weight * entries[j].value
        added = product if (entries[j].born <= version) & (version < entries[j].died) else 0.0
        before = sums[target]
        touched[count] = target
        count += (before == 0.0) & (added > 0.0)
        sums[target] = before + added
    return count


@compiled
def _add_middles(middles, weights, right, version, sums, touched):
    """Add up the columns of some middles, each times its weight."""
    count = 0
    for i in range(len(middles)):
        middle, weight = middles[i], weights[i]
        first, last = base_of(right.indptr, middle)
        targets, values = right.indices[first:last], right.data[first:last]
        span = right.spans[middle]
        if span < 0:
            count = add_stretch(targets, values, weight, sums, touched, count)
            continue
        count = _add_kept(targets, values, right.replaced[first:last], version, weight, sums, touched, count)
        first, last = written(right.entries, span)
        count = _add_entries(right.entries[first:last], version, weight, sums, touched, count)
    return count


@compiled
def _accumulate(left, right, row, version, sums, touched):
    """Add up M[row,:] at a version in `sums`, listing in `touched` the columns met; return how many.

    Every middle adds to a target at most once, in the order of the left row: a sum is what a rebuilt base would give,
    to the last digit. Middles at which nothing changed are read as in `engine.product_kernels`.
    """
    if left.spans[row] < 0:
        first, last = base_of(left.indptr, row)
        return _add_middles(left.indices[first:last], left.data[first:last], right, version, sums, touched)
    middles, weights = line_at(left, row, version)
    return _add_middles(middles, weights, right, version, sums, touched)


@compiled
def _normalise(normalisation, sums, touched, count, dx, norms, version, scores):
    """Write the scores of the targets met into `scores`; `sums` are 0 again.

    What `norm_at` does stands here once more: to hand over all norms for each target would take most of the time.
    """
    base, heads, since = norms.base, norms.heads, norms.since
    for i in range(count):
        y = np.int64(touched[i])
        number = heads[y]
        while number >= 0 and since[number].born > version:
            number = since[number].previous
        dy = since[number].value if number >= 0 else base[y]
        scores[i] = normalised(normalisation, sums[y], dx, dy)
        sums[y] = 0.0


@compiled
def _halves_of(halves):
    rows, columns, left_norms, right_norms = halves
    return lines_of(rows), lines_of(columns), norms_of(left_norms), norms_of(right_norms)


@compiled
def top_k(halves, normalisation, version, queries, skipped, candidates, scratch, best_rows, best_scores):
    """Write each query's best related targets at a version; return how many each has.

    `halves`: the fields of the rows of the left half and the columns of the right one, and of the norms of both.
    """
    left, right, left_norms, right_norms = _halves_of(halves)
    sums, touched, scores = scratch
    sizes = np.zeros(len(queries), dtype=np.int64)
    restricted = len(candidates) > 0
    for q in range(len(queries)):
        count = _accumulate(left, right, queries[q], version, sums, touched)
        dx = norm_at(left_norms, queries[q], version)
        _normalise(normalisation, sums, touched, count, dx, right_norms, version, scores)
        for i in range(count):
            if touched[i] == skipped[q] or (restricted and not candidates[touched[i]]):
                scores[i] = _NO_SCORE
        sizes[q] = keep_best(scores, touched, count, best_scores[q], best_rows[q])
    return sizes


@compiled
def score_rows(halves, normalisation, version, queries, scores):
    """Write the score at a version of each query with every target into `scores`, which holds zeros."""
    left, right, left_norms, right_norms = _halves_of(halves)
    touched = np.empty(scores.shape[1] + 1, dtype=np.uint32)
    found = np.empty(scores.shape[1] + 1)
    for q in range(len(queries)):
        x = queries[q]
        count = _accumulate(left, right, x, version, scores[q], touched)
        _normalise(
            normalisation, scores[q], touched, count, norm_at(left_norms, x, version), right_norms, version, found
        )
        scores[q][touched[:count]] = found[:count]

"""Numba kernels of queries over the base and the entries beside it, as `neupath.kernels` answers them over matrices."""

import numpy as np

from neupath.kernels import compiled, keep_best, normalised
from neupath.live.edge_kernels import add_stretch, base_of
from neupath.live.line_kernels import line_at, span_of
from neupath.live.norm_kernels import norm_at

_NO_SCORE = -1.0


@compiled
def _add_kept(targets, values, ends, version, weight, sums, touched, count):
    """Add those of a stretch that are not at their end by a version."""
    for j in range(len(targets)):
        target = targets[j]
        added = weight * values[j] if ends[j] > version else 0.0
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
        first, last = base_of(right, middle)
        targets, values = right.indices[first:last], right.data[first:last]
        if right.changed[middle] > version:
            count = add_stretch(targets, values, weight, sums, touched, count)
            continue
        count = _add_kept(targets, values, right.replaced[first:last], version, weight, sums, touched, count)
        first, last = span_of(right.spans[middle])
        last = first + np.searchsorted(right.born[first:last], version, side="right")
        targets, values = right.places[first:last], right.values[first:last]
        count = _add_kept(targets, values, right.died[first:last], version, weight, sums, touched, count)
    return count


@compiled
def _accumulate(left, right, row, version, sums, touched):
    """Add up M[row,:] at a version in `sums`, listing in `touched` the columns met; return how many.

    Every middle adds to a target at most once, in the order of the left row: a sum is what a base made anew would give,
    to the last digit. Middles at which nothing changed are read as in `neupath.kernels`.
    """
    if left.changed[row] > version:
        first, last = base_of(left, row)
        return _add_middles(left.indices[first:last], left.data[first:last], right, version, sums, touched)
    middles, weights = line_at(left, row, version)
    return _add_middles(middles, weights, right, version, sums, touched)


@compiled
def top_k(
    left, right, left_norms, right_norms, normalisation, version, queries, skipped, candidates, scratch, best_rows,
    best_scores,
):  # fmt: skip
    """Write each query's best related targets at a version; return how many each has. See `neupath.kernels.top_k`.

    `left`: the rows of the left half, `right`: the columns of the right one.
    """
    sums, touched, scores = scratch
    sizes = np.zeros(len(queries), dtype=np.int64)
    restricted = len(candidates) > 0
    heads, norms = right_norms.heads, right_norms.base  # to hand over all norms for each target would be slow
    for q in range(len(queries)):
        x = queries[q]
        dx = norm_at(left_norms, x, version)
        count = _accumulate(left, right, x, version, sums, touched)
        for i in range(count):
            y = np.int64(touched[i])
            dy = norm_at(right_norms, y, version) if heads[y] >= 0 else norms[y]
            scores[i] = normalised(normalisation, sums[y], dx, dy)
            sums[y] = 0.0
            if y == skipped[q] or (restricted and not candidates[y]):
                scores[i] = _NO_SCORE
        sizes[q] = keep_best(scores, touched, count, best_scores[q], best_rows[q])
    return sizes


@compiled
def score_rows(left, right, left_norms, right_norms, normalisation, version, queries, scores):
    """Write the score at a version of each query with every target into `scores`, which holds zeros."""
    touched = np.empty(scores.shape[1] + 1, dtype=np.uint32)
    for q in range(len(queries)):
        x = queries[q]
        dx = norm_at(left_norms, x, version)
        for i in range(_accumulate(left, right, x, version, scores[q], touched)):
            y = touched[i]
            scores[q, y] = normalised(normalisation, scores[q, y], dx, norm_at(right_norms, y, version))

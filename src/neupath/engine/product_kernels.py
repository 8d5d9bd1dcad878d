"""Numba kernels of a product: one row of it, its normalisation and its top k in one pass, without the GIL.

Every exact measure is a normalised product M = left·right (see `products.Factors`). They normalise m =
M[x,y] by dx = ‖left[x,:]‖² and dy = ‖right[:,y]‖²; `normalisation` is a `formula.Formula`. Sums run in the order of
left's sorted row, so results depend neither on how queries are batched nor on which kernel adds them up.
"""

import numpy as np

from neupath._runtime.kernels import kernel, part
from neupath.engine import formula as formulas
from neupath.engine.formula import COSINE, NONE

INDEX_TYPES = "int32", "int64"
"""The types of the columns of a matrix and of where its rows begin: the second is that of huge ones."""
CSR = "const ?[:]", "const ?[:]", "const float64[:]"
FORMULA = "int64", "float64", "float64"
_FACTORS = CSR, CSR, "const float64[:]", "const float64[:]", FORMULA
_SCRATCH = "float64[:]", "uint32[:]", "float64[:]"

_SHORT = 32  # the largest k for which a sorted list is faster than a heap
_LANES = 32
_NO_SCORE = -1.0
NO_ROWS = np.int64(0)
"""Where a count begins that other kernels go on with: numba would compile these twice, once for the constant 0."""


_denominator = part(formulas.denominator)


@part
def normalised(normalisation, m, dx, dy):
    """Return the score of m = M[x,y], normalised by dx and dy; see `formula.normalised`."""
    if normalisation[0] == NONE or m == 0.0:
        return m
    if normalisation[0] != COSINE:
        below = _denominator(normalisation, m, dx, dy)
    elif 1e-290 < dx * dy < 1e290:
        below = np.sqrt(dx * dy)
    else:
        below = np.sqrt(dx) * np.sqrt(dy)
    return m / below if below > 0.0 else 0.0


@part
def ranks_below(score, row, other_score, other_row):
    """Whether (score, row) comes after the other: a lower score or, at equal scores, a later row."""
    return score < other_score or (score == other_score and row > other_row)


@part
def _sift_down(scores, rows, at, size):
    """Restore a heap whose root ranks last, below position `at`."""
    while True:
        last = at
        for child in (2 * at + 1, 2 * at + 2):
            if child < size and ranks_below(scores[child], rows[child], scores[last], rows[last]):
                last = child
        if last == at:
            return
        scores[at], scores[last] = scores[last], scores[at]
        rows[at], rows[last] = rows[last], rows[at]
        at = last


@part
def _offer(scores, rows, size, score, row):
    """Keep the best entries of a stream in a heap of fixed capacity; return its size."""
    if size < len(rows):
        at = size
        scores[at], rows[at] = score, row
        while at > 0 and ranks_below(scores[at], rows[at], scores[(at - 1) // 2], rows[(at - 1) // 2]):
            parent = (at - 1) // 2
            scores[at], scores[parent] = scores[parent], scores[at]
            rows[at], rows[parent] = rows[parent], rows[at]
            at = parent
        return size + 1
    if size > 0 and ranks_below(scores[0], rows[0], score, row):
        scores[0], rows[0] = score, row
        _sift_down(scores, rows, 0, size)
    return size


@part
def insert(scores, rows, size, score, row):
    """Keep the best entries of a stream in a short list, best first; return its length."""
    if size == len(rows):
        if not ranks_below(scores[size - 1], rows[size - 1], score, row):
            return size
        size -= 1
    at = size
    while at > 0 and ranks_below(scores[at - 1], rows[at - 1], score, row):
        scores[at], rows[at] = scores[at - 1], rows[at - 1]
        at -= 1
    scores[at], rows[at] = score, row
    return size + 1


@part
def copy_to(target, source):
    """Copy an array to the beginning of another; as a slice, numba compiles the message for shapes that differ, too."""
    for i in range(len(source)):
        target[i] = source[i]


@part
def _sort_heap(scores, rows, size):
    """Turn the heap into a list, best first."""
    for end in range(size - 1, 0, -1):
        scores[0], scores[end] = scores[end], scores[0]
        rows[0], rows[end] = rows[end], rows[0]
        _sift_down(scores, rows, 0, end)


@part
def _accumulate(left, right, row, sums, touched):
    """Add up M[row,:] in `sums` and list its columns in `touched`; return how many.

    A column is always written but counted only when it is new, since a branch would often be mispredicted.
    """
    left_indptr, left_indices, left_data = left
    right_indptr, right_indices, right_data = right
    count = 0
    for i in range(left_indptr[row], left_indptr[row + 1]):
        middle, weight = left_indices[i], left_data[i]
        for j in range(right_indptr[middle], right_indptr[middle + 1]):
            column = right_indices[j]
            added = weight * right_data[j]
            before = sums[column]
            touched[count] = column
            count += (before == 0.0) & (added > 0.0)  # products of tiny weights may underflow
            sums[column] = before + added
    return count


@part
def _lower_bound(scores, count, k, lanes):
    """Return a score that at least k of the first `count` scores reach, near the k-th best.

    The best scores of the lanes belong to different columns, so the k-th best of them is such a score.
    """
    lanes[:] = _NO_SCORE
    for start in range(0, count - len(lanes) + 1, len(lanes)):
        for lane in range(len(lanes)):
            score = scores[start + lane]
            lanes[lane] = score if score > lanes[lane] else lanes[lane]
    bound = 0.0
    for lane in range(len(lanes)):
        reached = 0
        for other in range(len(lanes)):
            reached += lanes[other] >= lanes[lane]
        if reached >= k and lanes[lane] > bound:
            bound = lanes[lane]
    return bound


@part
def keep_best(scores, rows, count, best_scores, best_rows):
    """Write the best of the first `count` scores, with their rows, best first, then 0 and -1; return how many.

    Scores below 0 don't count.
    """
    k = len(best_rows)
    short = k <= _SHORT
    bound = 0.0
    if 2 * k <= _LANES and count >= 2 * _LANES:
        bound = _lower_bound(scores, count, k, np.empty(_LANES))
    size = NO_ROWS
    for i in range(count):
        if scores[i] >= bound:
            if short:
                size = insert(best_scores, best_rows, size, scores[i], rows[i])
            else:
                size = _offer(best_scores, best_rows, size, scores[i], rows[i])
    if not short:
        _sort_heap(best_scores, best_rows, size)
    best_rows[size:] = -1
    best_scores[size:] = 0.0
    return size


@kernel(*_FACTORS, "int64", "int64", "const boolean[:]", _SCRATCH, "int64[:]", "float64[:]", variants=INDEX_TYPES)
def top_k_of_row(
    left, right, left_norms, right_norms, normalisation, x, skipped, candidates, scratch, best_rows, best_scores
):
    """Write the best related targets of one query; return how many it has. See `top_k`.

    `top_k` has the same steps in its loop: a call per query would take as long as a light one.
    """
    sums, touched, scores = scratch
    count = _accumulate(left, right, x, sums, touched)
    restricted = len(candidates) > 0
    for i in range(count):
        y = touched[i]
        scores[i] = normalised(normalisation, sums[y], left_norms[x], right_norms[y])
        sums[y] = 0.0
        if y == skipped or (restricted and not candidates[y]):
            scores[i] = _NO_SCORE
    return keep_best(scores, touched, count, best_scores, best_rows)


@kernel(
    *_FACTORS, "const int64[:]", "const int64[:]", "const boolean[:]", _SCRATCH, "int64[:,:]", "float64[:,:]",
    variants=INDEX_TYPES,
)  # fmt: skip
def top_k(
    left, right, left_norms, right_norms, normalisation, queries, skipped, candidates, scratch, best_rows, best_scores
):
    """Write each query's best related targets into `best_rows` and `best_scores`; return how many each has.

    `left`, `right`: (indptr, indices, data). `queries`, `skipped`: (q,) rows of left, and the target each leaves out
    (-1: none). `candidates`: (targets,) booleans, or empty for all. `scratch`: sums, which are 0 before and after, and
    space for a list of targets and their scores, one more than there are. `best_rows`, `best_scores`: (q, k), best
    first, ties by row, then -1 and 0. Targets of score 0 are not related, and left out.
    """
    sums, touched, scores = scratch
    sizes = np.zeros(len(queries), dtype=np.int64)
    restricted = len(candidates) > 0
    for q in range(len(queries)):
        x = queries[q]
        count = _accumulate(left, right, x, sums, touched)
        for i in range(count):
            y = touched[i]
            scores[i] = normalised(normalisation, sums[y], left_norms[x], right_norms[y])
            sums[y] = 0.0
            if y == skipped[q] or (restricted and not candidates[y]):
                scores[i] = _NO_SCORE
        sizes[q] = keep_best(scores, touched, count, best_scores[q], best_rows[q])
    return sizes


@kernel(*_FACTORS, "int64", "const int64[:]", "float64[:]", variants=INDEX_TYPES)
def score_targets(left, right, left_norms, right_norms, normalisation, x, targets, scores):
    """Write the score of one query with each of some targets; shape (targets,).

    A binary search finds a target among the entries of each middle node, in the order in which `_accumulate` adds.
    """
    left_indptr, left_indices, left_data = left
    right_indptr, right_indices, right_data = right
    for t in range(len(targets)):
        y = targets[t]
        m = 0.0
        for i in range(left_indptr[x], left_indptr[x + 1]):
            low, high = right_indptr[left_indices[i]], right_indptr[left_indices[i] + 1]
            while low < high:
                middle = (low + high) // 2
                if right_indices[middle] < y:
                    low = middle + 1
                else:
                    high = middle
            if low < right_indptr[left_indices[i] + 1] and right_indices[low] == y:
                m += left_data[i] * right_data[low]
        scores[t] = normalised(normalisation, m, left_norms[x], right_norms[y])


@kernel(*_FACTORS, "const int64[:]", "float64[:,:]", variants=INDEX_TYPES)
def score_rows(left, right, left_norms, right_norms, normalisation, queries, scores):
    """Write the score of each query with every target into `scores`, which holds zeros; shape (q, targets)."""
    touched = np.empty(len(right_norms) + 1, dtype=np.uint32)
    for q in range(len(queries)):
        x = queries[q]
        for i in range(_accumulate(left, right, x, scores[q], touched)):
            y = touched[i]
            scores[q, y] = normalised(normalisation, scores[q, y], left_norms[x], right_norms[y])


# ---- Transposing ---------------------------------------------------------------------------------
@kernel(*CSR, "int64", "int64", "int64[:]", "?[:]", "float64[:]", variants=INDEX_TYPES)
def transpose_columns(indptr, indices, data, first, last, ends, rows, values):
    """Write the columns [first, last) of a matrix as rows, each with its entries in order.

    `ends` are where the columns begin; it is counted up to where they end.
    """
    for row in range(len(indptr) - 1):
        for i in range(indptr[row], indptr[row + 1]):
            column = indices[i]
            if first <= column < last:
                at = ends[column]
                rows[at], values[at] = row, data[i]
                ends[column] = at + 1

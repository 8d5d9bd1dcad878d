"""Top-k and range search by a normalised product, exactly: choose the fastest way, run it on threads, return rows.

Queries go through scipy until their kernels are compiled, on a thread; then through `product_kernels`, and many heavy
ones through an `index`, built once it pays. All three add up in the same order, so their scores are equal to the bit.
"""

import logging
import mmap
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from threading import local
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from neupath._runtime.kernels import Kernel, Loading, load_in_background
from neupath._runtime.progress import check_cancelled
from neupath._runtime.resources import count_cores
from neupath.engine import index_kernels, product_kernels
from neupath.engine.formula import NONE, Formula, Normalisation, best_first, formula_of, normalised, related
from neupath.engine.hits import check_whole
from neupath.engine.index import Index, index_of
from neupath.engine.products import (
    HEAVY_ENOUGH_FOR_INDEX,
    Chain,
    CombinedRow,
    Factors,
    Product,
    combined_row,
    rows_of,
)
from neupath.errors import NotEnoughMemoryError, QueryError
from neupath.graph.hin import Floats
from neupath.graph.nodes import Mask, Rows


# ---- Results -------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Ranking:
    """The best targets of each query: `rows` and `scores` have shape (queries, k), of which `sizes` are filled."""

    rows: Rows
    scores: Floats
    sizes: NDArray[np.int64]


@dataclass(frozen=True)
class HitLists:
    """The hits of several queries: those of query q are `rows[starts[q]:starts[q+1]]`, best first, and their scores."""

    starts: Rows
    rows: Rows
    scores: Floats


def hit_lists(ranking: Ranking, min_score: float) -> HitLists:
    """Return the hits of a ranking that score at least `min_score`."""
    taken = (np.arange(ranking.rows.shape[1]) < ranking.sizes[:, None]) & (ranking.scores >= min_score)
    starts = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(taken.sum(axis=1))])
    return HitLists(starts, ranking.rows[taken], ranking.scores[taken])


def stacked(parts: Sequence[Ranking]) -> Ranking:
    """Concatenate the rankings of blocks of queries."""
    if len(parts) == 1:
        return parts[0]
    widest = max((part.rows.shape[1] for part in parts), default=0)
    rows = [np.pad(part.rows, ((0, 0), (0, widest - part.rows.shape[1])), constant_values=-1) for part in parts]
    scores = [np.pad(part.scores, ((0, 0), (0, widest - part.scores.shape[1]))) for part in parts]
    empty = np.zeros((0, widest))
    return Ranking(
        np.concatenate([empty.astype(np.int64), *rows]),
        np.concatenate([empty, *scores]),
        np.concatenate([np.zeros(0, dtype=np.int64), *(part.sizes for part in parts)]),
    )


def without_zeros(ranking: Ranking) -> Ranking:
    """Leave out the targets of score 0."""
    kept = (ranking.scores > 0) & (np.arange(ranking.rows.shape[1]) < ranking.sizes[:, None])
    return Ranking(np.where(kept, ranking.rows, -1), np.where(kept, ranking.scores, 0.0), kept.sum(axis=1))


def with_unrelated(
    ranking: Ranking, skipped: Rows, k: int, num_targets: int, candidates: Mask | None, excluded: Sequence[Rows] = ()
) -> Ranking:
    """Fill a ranking up to k with targets of score 0, in node order, but for the excluded ones of each query."""
    allowed = np.arange(num_targets) if candidates is None else np.flatnonzero(candidates)
    filled = empty_ranking(len(skipped), min(k, num_targets))
    rows, scores, sizes = filled.rows, filled.scores, filled.sizes
    for q, size in enumerate(ranking.sizes):
        rows[q, :size], scores[q, :size] = ranking.rows[q, :size], ranking.scores[q, :size]
        taken = np.append(rows[q, :size], skipped[q])
        taken = np.concatenate([taken, excluded[q]]) if excluded else taken
        fill = np.setdiff1d(allowed[: k + len(taken)], taken)[: rows.shape[1] - size]
        rows[q, size : size + len(fill)] = fill
        sizes[q] = size + len(fill)
    return filled


def without(ranking: Ranking, excluded: Sequence[Rows], k: int) -> Ranking:
    """Leave out the excluded targets of each query, and keep the k best of the others."""
    shorter = empty_ranking(len(ranking.sizes), min(k, ranking.rows.shape[1]))
    for q, size in enumerate(ranking.sizes.tolist()):
        kept = np.flatnonzero(~np.isin(ranking.rows[q, :size], excluded[q]))[:k]
        shorter.rows[q, : len(kept)], shorter.scores[q, : len(kept)] = ranking.rows[q, kept], ranking.scores[q, kept]
        shorter.sizes[q] = len(kept)
    return shorter


def empty_ranking(count: int, width: int) -> Ranking:
    """Return a ranking to fill: no targets yet, of so many queries with up to so many each."""
    return Ranking(np.full((count, width), -1), np.zeros((count, width)), np.zeros(count, dtype=np.int64))


def _trimmed(ranking: Ranking) -> Ranking:
    widest = int(ranking.sizes[0]) if len(ranking.sizes) == 1 else int(ranking.sizes.max(initial=0))
    if widest == ranking.rows.shape[1]:
        return ranking
    return Ranking(ranking.rows[:, :widest].copy(), ranking.scores[:, :widest].copy(), ranking.sizes)


# ---- Top k ---------------------------------------------------------------------------------------
# Costs are in additions of two floats.
_HEAVY = 2000  # from this cost of an average query on, the index is faster even where no two rows are alike
_BUILD = 20  # the cost of building an index, per entry of the rows
_MOST_BY_INDEX = 128  # the largest k for the index, which keeps a sorted list rather than a heap
_ALL, _NO_ROWS = np.zeros(0, dtype=np.bool_), np.zeros(0, dtype=np.int64)


def top_k_of_product(
    factors: Product,
    normalisation: int | Formula,
    queries: Rows,
    skipped: Rows,
    k: int,
    candidates: Mask | None = None,
    threads: int | None = None,
) -> Ranking:
    """Rank the targets with a score above 0 of each query, without the skipped one of each (-1: none)."""
    if isinstance(factors, Chain):
        return stacked([
            top_k_of_product(part, normalisation, part.all_rows, skipped[block], k, candidates, threads)
            for block, part in factors.blocks(queries)
        ])  # fmt: skip
    if not _kernels_pay(factors, "row" if len(queries) == 1 else "rows", len(queries)):
        ranking = _top_k_by_scipy(factors, normalisation, queries, skipped, k, candidates)
        done = len(ranking.sizes)
        if done == len(queries):
            return ranking
        factors.answered -= len(queries) - done
        others = top_k_of_product(factors, normalisation, queries[done:], skipped[done:], k, candidates, threads)
        return stacked([ranking, others])
    index = _index_for(factors, len(queries)) if candidates is None and k <= _MOST_BY_INDEX else None
    if index is not None:
        return _top_k_by_index(factors, index, normalisation, queries, skipped, k, threads)
    formula, search_rows = formula_of(normalisation), product_kernels.top_k.load(factors.index_type)
    mask = _ALL if candidates is None else candidates
    if len(queries) == 1:
        rows, scores = _search_row(factors, formula, int(queries[0]), int(skipped[0]), k, mask)
        return Ranking(rows[None].copy(), scores[None].copy(), np.array([len(rows)]))
    shape = len(queries), min(k, len(factors.right_norms))
    best = Ranking(np.empty(shape, dtype=np.int64), np.empty(shape), np.empty(len(queries), dtype=np.int64))

    def search(block: slice) -> None:
        scratch = borrow_scratch(len(factors.right_norms))
        best.sizes[block] = search_rows(
            *factors.arrays, formula, queries[block], skipped[block], mask, scratch, best.rows[block],
            best.scores[block],
        )  # fmt: skip
        return_scratch(scratch)

    in_blocks(search, len(queries), threads, factors.work)
    return _trimmed(best)


def top_k_of_row(
    factors: Product, formula: Formula, row: int, skipped: int, k: int
) -> tuple[list[int], list[float]] | None:
    """Return the rows and scores that `top_k_of_product` ranks for one query, without what many queries share.

    None where it takes another way: by scipy, by an index, or along a chain.
    """
    if not isinstance(factors, Factors) or factors.work >= _HEAVY:
        return None
    if factors.index_type not in product_kernels.top_k_of_row.code:
        return None
    factors.answered += 1
    rows, scores = _search_row(factors, formula, row, skipped, k, _ALL)
    return rows.tolist(), scores.tolist()


def _search_row(
    factors: Factors, formula: Formula, row: int, skipped: int, k: int, candidates: Mask
) -> tuple[Rows, Floats]:
    """Return the rows and scores of the best targets of one query, in arrays that this thread's next search reuses."""
    width = len(factors.right_norms)
    k = min(k, width)
    best: tuple[Rows, Floats] | None = getattr(_scratch, "best", None)
    if best is None or len(best[0]) != k:
        best = _scratch.best = np.empty(k, dtype=np.int64), np.empty(k)
    rows, scores = best
    scratch = borrow_scratch(width)
    search = product_kernels.top_k_of_row.load(factors.index_type)
    size = search(*factors.arrays, formula, row, skipped, candidates, scratch, rows, scores)
    return_scratch(scratch)
    return best if size == k else (rows[:size], scores[:size])


def _top_k_by_scipy(
    factors: Factors, normalisation: int | Formula, queries: Rows, skipped: Rows, k: int, candidates: Mask | None
) -> Ranking:
    """Rank queries without kernels, up to the one at which these are compiled.

    scipy adds up each row in the same order as the kernels, so the scores are equal to the bit.
    """
    ranking = empty_ranking(len(queries), min(k, len(factors.right_norms)))
    allowed = np.ones(len(factors.right_norms), dtype=np.bool_) if candidates is None else candidates
    for q, query in enumerate(queries):
        if q:
            check_cancelled()
        if q and len(queries) - q > 1 and _are_loaded(factors, "rows"):
            return _trimmed(Ranking(ranking.rows[:q], ranking.scores[:q], ranking.sizes[:q]))
        targets, m = _product_by_scipy(factors, query)
        scores = normalised(normalisation, m, float(factors.left_norms[query]), factors.right_norms[targets])
        kept = np.flatnonzero((m > 0) & (targets != skipped[q]) & allowed[targets])
        best = best_first(scores, kept)[: ranking.rows.shape[1]]
        ranking.sizes[q] = len(best)
        ranking.rows[q, : len(best)], ranking.scores[q, : len(best)] = targets[best], scores[best]
    return _trimmed(ranking)


def _product_by_scipy(factors: Factors, query: int) -> tuple[Rows, Floats]:
    """Return the columns of a row of the product, ascending, and their values."""
    product = factors.left[[query]] @ factors.right
    product.sort_indices()
    return product.indices.astype(np.int64), product.data


def _index_for(factors: Factors, num_queries: int) -> Index | None:
    """Return the index where it is faster, building it once the queries so far have cost more than it does."""
    if factors.work < (_HEAVY if num_queries <= FEW else HEAVY_ENOUGH_FOR_INDEX) or not factors.bounds_are_safe:
        return None
    if factors.index is None and factors.answered * factors.work < _BUILD * factors.left.nnz:
        return None
    if not _are_kernels_ready(factors, "index", is_worth_waiting=True):
        return None
    try:
        index = index_of(factors)
    except NotEnoughMemoryError:  # the kernels need none
        return None
    return index if factors.work >= _HEAVY or index.repeats else None


def _top_k_by_index(
    factors: Factors, index: Index, normalisation: int | Formula, queries: Rows, skipped: Rows, k: int,
    threads: int | None,
) -> Ranking:  # fmt: skip
    """Rank the labels for each group of equal queries once, then expand both to rows."""
    limit = min(k, len(factors.right_norms))
    wanted = min(limit + 1, len(index.members[1]))  # one more, since a query may be among its own hits
    groups = index.group_of[queries]
    place = np.arange(len(queries))
    if len(queries) > 1:
        groups, place = np.unique(groups, return_inverse=True)
        place = place.ravel()
    best = empty_ranking(len(groups), wanted)
    targets, rank_groups = index.targets(wanted), index_kernels.rank_groups.load(index.value_type)

    def search(block: slice) -> None:
        begins_and_ends = np.empty(index.widest, dtype=np.int64), np.empty(index.widest, dtype=np.int64)
        scratch = borrow_scratch(index.num_labels)
        best.sizes[block] = rank_groups(
            index.left, index.left_norms, index.postings, targets, formula_of(normalisation), True, groups[block],
            (*scratch[:2], *begins_and_ends), best.rows[block], best.scores[block],
        )  # fmt: skip
        return_scratch(scratch)

    in_blocks(search, len(groups), threads, factors.work)
    ranking = empty_ranking(len(queries), limit)
    index_kernels.expand_groups(
        place, best.rows, best.scores, best.sizes, index.label_of, index.members, skipped, limit, ranking.rows,
        ranking.scores, ranking.sizes,
    )  # fmt: skip
    return _trimmed(ranking)


def top_k_of_scores(scores: Floats, skipped: Rows, k: int, candidates: Mask | None = None) -> Ranking:
    """Rank all targets of each query by their scores; shape of scores (queries, targets)."""
    count = scores.shape[1]
    ranking = empty_ranking(len(scores), min(k, count))
    for q, row in enumerate(scores):
        allowed = np.ones(count, dtype=np.bool_) if candidates is None else candidates.copy()
        if skipped[q] >= 0:
            allowed[skipped[q]] = False
        order = best_first(row, np.flatnonzero(allowed))[: ranking.rows.shape[1]]
        ranking.sizes[q] = len(order)
        ranking.rows[q, : len(order)], ranking.scores[q, : len(order)] = order, row[order]
    return ranking


# ---- Several nodes as one query ------------------------------------------------------------------
def top_k_of_set(
    factors: Product, normalisation: int | Formula, members: Rows, weights: Floats, left_out: Rows, k: int,
    candidates: Mask | None = None,
) -> tuple[Rows, Floats]:  # fmt: skip
    """Rank the targets with a score above 0 of a set: of w = Σ c·left[x,:] over its members; see `score_set`.

    One kernel call ranks w as the row of one query, unless a weight is negative.
    """
    if isinstance(factors, Chain) or weights.min() < 0:
        return best_of(score_set(factors, normalisation, members, weights), left_out, k, candidates)
    row = combined_row(rows_of(factors.left, members), weights)
    rows, scores = top_k_of_combined_row(factors, normalisation, row, row.norm, k + len(left_out), candidates)
    kept = np.flatnonzero(~np.isin(rows, left_out))[:k]
    return rows[kept], scores[kept]


def top_k_of_combined_row(
    factors: Factors, normalisation: int | Formula, row: CombinedRow, norm: float, k: int,
    candidates: Mask | None = None,
) -> tuple[Rows, Floats]:  # fmt: skip
    """Rank the targets with a score above 0 of a row of middle nodes without negative values, and its ‖row‖²."""
    if not _kernels_pay(factors, "set", 1):
        return best_of(
            _normalised_set(normalisation, add_up(factors, row), norm, factors.right_norms), _NO_ROWS, k, candidates
        )
    width = len(factors.right_norms)
    most = min(k, width)
    rows, scores = np.empty(most, dtype=np.int64), np.empty(most)
    scratch = borrow_scratch(width)
    size = product_kernels.top_k_of_row.load(factors.index_type)(
        _as_left(factors, row), factors.arrays[1], np.array([norm]), factors.right_norms, formula_of(normalisation),
        0, -1, _ALL if candidates is None else candidates, scratch, rows, scores,
    )  # fmt: skip
    return_scratch(scratch)
    return rows[:size], scores[:size]


def score_set(factors: Product, normalisation: int | Formula, members: Rows, weights: Floats) -> Floats:
    """Return the score of every target with a set; shape (targets,).

    m is what the positive entries of w add, less what the negative ones do, each in order.
    """
    if is_one_node(weights):
        scores: Floats = score_product(factors, normalisation, members)[0]
        return scores
    norm = 0.0 if formula_of(normalisation)[0] == NONE else set_norm(factors, members, weights)
    if isinstance(factors, Chain):
        return _normalised_set(normalisation, np.asarray(weights @ factors.rows(members)), norm, factors.right_norms)
    row = combined_row(rows_of(factors.left, members), weights)
    m = add_up(factors, row.part(1.0)) - add_up(factors, row.part(-1.0))
    return _normalised_set(normalisation, m, norm, factors.right_norms)


def is_one_node(weights: Floats) -> bool:
    """Whether a set with these weights is a single node: a set of one."""
    return len(weights) == 1 and weights[0] == 1.0


def _as_left(factors: Factors, row: CombinedRow) -> tuple[NDArray[Any], ...]:
    """Return a row as the kernels read a left factor of one row."""
    kind = np.dtype(factors.index_type)
    return np.array([0, len(row.middles)], dtype=kind), row.middles.astype(kind, copy=False), row.values


def set_norm(factors: Product, members: Rows, weights: Floats) -> float:
    """Return ‖w‖² of w = Σ c·left[x,:] over the members x of a set."""
    if is_one_node(weights):
        return float(factors.left_norms[members[0]])
    if isinstance(factors, Factors):
        return combined_row(rows_of(factors.left, members), weights).norm
    if factors.left_norms is not factors.right_norms:
        raise QueryError("half-paths along this meta-path do not fit into memory; search for one node at a time")
    products = np.asarray(weights @ factors.rows(members))  # M = left·leftᵀ, so that ‖w‖² = Σ c·c'·M[x,x']
    return max(0.0, float(products[members] @ weights))


def add_up(factors: Factors, row: CombinedRow) -> Floats:
    """Return what the entries of a row, all positive, add to every target."""
    total = np.zeros(len(factors.right_norms))
    if not len(row.middles):
        return total
    if _are_loaded(factors, "set"):
        norms, only = factors.right_norms, np.zeros(1, dtype=np.int64)
        product_kernels.score_rows.load(factors.index_type)(
            _as_left(factors, row), factors.arrays[1], norms, norms, formula_of(Normalisation.NONE), only, total[None]
        )
        return total
    part = (
        csr_array((row.values, row.middles, [0, len(row.middles)]), shape=(1, factors.right.shape[0])) @ factors.right
    )
    total[part.indices] = part.data
    return total


def _normalised_set(normalisation: int | Formula, m: Floats, norm: float, norms: Floats) -> Floats:
    scores = np.zeros(len(m))
    met = np.flatnonzero(m)
    scores[met] = normalised(normalisation, m[met], norm, norms[met])
    return scores


def best_of(scores: Floats, left_out: Rows, k: int, candidates: Mask | None = None) -> tuple[Rows, Floats]:
    """Return the k best targets by their scores, of those above 0, and the scores."""
    order = best_first(scores, related(scores, left_out, candidates))[:k]
    return order, scores[order]


# ---- All scores, and all targets above a score ---------------------------------------------------
def score_product(factors: Product, normalisation: int | Formula, queries: Rows) -> Floats:
    """Return the score of each query with every target; shape (queries, targets)."""
    scores = np.zeros((len(queries), len(factors.right_norms)))
    if isinstance(factors, Chain):
        for block, part in factors.blocks(queries):
            scores[block] = score_product(part, normalisation, part.all_rows)
        return scores
    if _kernels_pay(factors, "scores", len(queries)):
        score_rows = product_kernels.score_rows.load(factors.index_type)
        score_rows(*factors.arrays, formula_of(normalisation), queries, scores)
        return scores
    for q, query in enumerate(queries):
        targets, m = _product_by_scipy(factors, query)
        scores[q, targets] = normalised(
            normalisation, m, float(factors.left_norms[query]), factors.right_norms[targets]
        )
    return scores


def score_targets(factors: Product, normalisation: int | Formula, row: int, targets: Rows) -> Floats:
    """Return the score of one query with some targets; shape (targets,)."""
    if isinstance(factors, Chain) or not _are_loaded(factors, "scores"):
        every = score_product(factors, normalisation, np.array([row]))
        return np.asarray(every[0][targets])
    factors.answered += 1
    scores = np.empty(len(targets))
    score_some = product_kernels.score_targets.load(factors.index_type)
    score_some(*factors.arrays, formula_of(normalisation), row, targets, scores)
    return scores


def range_of_product(
    factors: Factors, normalisation: int | Formula, queries: Rows, skipped: Rows, min_score: float,
    threads: int | None = None,
) -> HitLists:  # fmt: skip
    """Return the targets whose score with each query is at least `min_score`, which is above 0.

    By Cauchy-Schwarz only targets with a norm near the query's can reach it, and only these are added up.
    """
    if not _are_kernels_ready(factors, "range", is_worth_waiting=True):
        step = max(1, _DENSE // max(1, len(factors.right_norms)))
        blocks = (slice(at, at + step) for at in range(0, len(queries), step))
        return concatenated([
            range_of_scores(score_product(factors, normalisation, queries[block]), skipped[block], min_score)
            for block in blocks
        ])  # fmt: skip
    index = index_of(factors)
    parts: dict[int, HitLists] = {}

    def search(block: slice) -> None:
        groups, place = np.unique(index.group_of[queries[block]], return_inverse=True)
        begins_and_ends = np.empty(index.widest, dtype=np.int64), np.empty(index.widest, dtype=np.int64)
        scratch = borrow_scratch(index.num_labels)
        ends, labels, scores = index_kernels.reach_groups(
            index.left, index.left_norms, index.postings, index.norms, formula_of(normalisation), float(min_score),
            groups, (*scratch[:2], *begins_and_ends),
        )  # fmt: skip
        return_scratch(scratch)
        owners, reached = _stretches(ends[place.ravel()], np.diff(ends)[place.ravel()])
        parts[block.start] = _expand_labels(index, owners, labels[reached], scores[reached], skipped[block])

    in_blocks(search, len(queries), threads, factors.work)
    return concatenated([parts[start] for start in sorted(parts)])


def _stretches(starts: Rows, sizes: Rows) -> tuple[Rows, Rows]:
    """Return every position of some stretches, one stretch after the other, and the stretch that each belongs to."""
    owners = np.repeat(np.arange(len(sizes)), sizes)
    firsts = np.cumsum(sizes) - sizes
    return owners, np.arange(len(owners)) + (starts - firsts)[owners]


def _expand_labels(index: Index, queries: Rows, labels: Rows, scores: Floats, skipped: Rows) -> HitLists:
    """Turn the labels that each query reaches into targets, best first, ties by row."""
    starts, members = index.members
    owners, places = _stretches(starts[labels], index.counts[labels])
    queries, scores, rows = queries[owners], scores[owners], members[places]
    kept = rows != skipped[queries]
    queries, scores, rows = queries[kept], scores[kept], rows[kept]
    order = np.lexsort((rows, -scores, queries))
    sizes = np.bincount(queries, minlength=len(skipped))
    return HitLists(np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(sizes)]), rows[order], scores[order])


def range_of_scores(scores: Floats, skipped: Rows, min_score: float) -> HitLists:
    """Return the targets whose scores are at least `min_score`; shape of scores (queries, targets)."""
    parts = []
    for q, row in enumerate(scores):
        targets = np.flatnonzero(row >= min_score)
        order = best_first(row, targets[targets != skipped[q]])
        parts.append(HitLists(np.array([0, len(order)]), order, row[order]))
    return concatenated(parts)


def concatenated(parts: list[HitLists]) -> HitLists:
    """Concatenate the hits of blocks of queries."""
    sizes = np.concatenate([np.zeros(1, dtype=np.int64), *(np.diff(part.starts) for part in parts)])
    rows = [part.rows for part in parts] or [np.zeros(0, dtype=np.int64)]
    scores = [part.scores for part in parts] or [np.zeros(0)]
    return HitLists(np.cumsum(sizes), np.concatenate(rows), np.concatenate(scores))


# ---- Loading the kernels -------------------------------------------------------------------------
# A thread imports numba and reads kernels from its cache, or compiles them where the cache has none, when asked for.
_LOADING = 10_000_000  # the cost of loading numba and kernels from a cache, 0.3 seconds, in additions by scipy
_BY_SCIPY = 3000  # the cost of a query by scipy besides its additions
_SEVERAL = 8  # queries along a product after which more are expected
_PATIENCE = 1.0  # seconds that a long search waits for kernels, which suffice to read them from a cache
_DENSE = 1 << 24  # scores of a block of queries

_log = logging.getLogger("neupath.compilation")
_BUILDING = index_kernels.hash_rows, index_kernels.group_rows
SEARCHES: dict[str, tuple[Kernel, ...]] = {
    "row": (product_kernels.top_k_of_row,),
    "rows": (product_kernels.top_k,),
    "scores": (product_kernels.score_rows, product_kernels.score_targets),
    "set": (product_kernels.top_k_of_row, product_kernels.score_rows),
    "index": (*_BUILDING, index_kernels.rank_groups, index_kernels.expand_groups),
    "range": (*_BUILDING, index_kernels.reach_groups),
}
"""The kernels of each search: of one query, of many, all scores, of a set, and by an index, best or in a range."""


def _variant_of(kernel: Kernel, factors: Factors) -> str:
    if kernel.variants == product_kernels.INDEX_TYPES:
        return factors.index_type
    return kernel.variants[0 if factors.fits_single else -1]


def _are_loaded(factors: Factors, search: str) -> bool:
    return all(_variant_of(kernel, factors) in kernel.code for kernel in SEARCHES[search])


def _kernels_pay(factors: Factors, search: str, num_queries: int) -> bool:
    """Count a search; return whether to take its kernels, which are loaded once the queries so far cost more than that.

    After several searches a thread loads them, since more will come. A one-shot command goes without.
    """
    is_one_of_several = factors.answered >= _SEVERAL
    factors.answered += num_queries
    is_long = factors.answered * (factors.work + _BY_SCIPY) >= _LOADING
    if is_long or is_one_of_several:
        return _are_kernels_ready(factors, search, is_worth_waiting=is_long)
    return _are_loaded(factors, search)


def _are_kernels_ready(factors: Factors, search: str, *, is_worth_waiting: bool) -> bool:
    """Ask for the kernels of a search unless they are loaded; return whether they are."""
    if _are_loaded(factors, search):
        return True
    loading = _load(factors, search)
    if loading is None or not is_worth_waiting:
        return False
    left = _PATIENCE - loading.age
    if left > 0 and not loading.wait(left):
        _log.info("compiling the search for its first use on this machine; scipy searches meanwhile")
    return loading.is_loaded


def _load(factors: Factors, search: str) -> Loading | None:
    return load_in_background([(kernel, _variant_of(kernel, factors)) for kernel in SEARCHES[search]])


def load_kernels() -> None:
    """Load the kernels of all searches, for the usual types, on a thread, and wait for it."""
    for kernels in SEARCHES.values():
        loading = load_in_background([(kernel, kernel.variants[0]) for kernel in kernels])
        if loading is not None:
            loading.wait()


# ---- Threads and scratch memory ------------------------------------------------------------------
_BLOCK = 1024  # the number of queries that a thread takes at a time
FEW = 16  # up to so many queries get no second thread, and the index only if they are heavy
_QUICK = 1_000_000  # the cost that is done before a second thread has started
_LONG = 500_000_000  # the cost of about a second, after which a search may be cancelled
_QUERY = 50  # the cost of a query besides its additions
_MOST_KEPT = 1 << 24
_scratch = local()
Scratch = tuple[NDArray[np.float64], NDArray[np.uint32], NDArray[np.float64]]


def in_blocks(search: Callable[[slice], None], count: int, threads: int | None, work: float) -> None:
    """Search blocks of queries on threads, each of which writes its own part of the result.

    `work` is the cost of an average query: cheap searches stay on one thread.
    """
    is_quick = threads is None and count * (work + _QUERY) < _QUICK
    check_threads(threads)
    workers = 1 if is_quick else threads or count_cores()
    is_alone = count <= FEW or workers < 2
    step = count if is_alone else min(_BLOCK, -(-count // workers))
    if step * work > _LONG:  # smaller blocks, so that the search can be cancelled between them
        step = max(1, int(_LONG / work))
    if is_alone and step >= count:
        search(slice(0, count))
        return
    blocks = (slice(at, at + step) for at in range(0, count, step))
    for _ in map(search, blocks) if is_alone else _pool(workers).map(search, blocks):
        check_cancelled()


@cache
def _pool(workers: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(workers, thread_name_prefix="neupath")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)  # a forked child has none of its parent's threads


def check_threads(threads: int | None) -> None:
    """Raise unless the number of threads is at least 1, or None for one per core."""
    if threads is not None:
        check_whole("threads", threads, 1)


def borrow_scratch(size: int) -> Scratch:
    """Return `size` sums that are 0, and room for `size` + 1 columns and scores; reuse this thread's if they fit.

    A search that fails does not return them, so the next one starts with new arrays.
    """
    scratch: Scratch | None = getattr(_scratch, "arrays", None)
    _scratch.arrays = None
    if scratch is None or len(scratch[0]) < size:
        sums = np.zeros(size) if size <= _MOST_KEPT else _sparse_zeros(size)
        return sums, np.empty(size + 1, dtype=np.uint32), np.empty(size + 1)
    return scratch


def _sparse_zeros(size: int) -> NDArray[np.float64]:
    """Return zeros in small pages: a query reaches few of many targets, and each would clear a page of 2 MiB."""
    pages = mmap.mmap(-1, 8 * size)
    if hasattr(mmap, "MADV_NOHUGEPAGE"):  # on Linux
        pages.madvise(mmap.MADV_NOHUGEPAGE)
    return np.frombuffer(pages, dtype=np.float64)


def return_scratch(scratch: Scratch) -> None:
    """Keep borrowed arrays, with sums that are 0 again, for this thread's next search."""
    if len(scratch[0]) <= _MOST_KEPT:
        _scratch.arrays = scratch

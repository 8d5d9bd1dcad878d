"""Ranking: the one place that masks, sorts and breaks ties; the best targets of queries as rows, exactly."""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from threading import RLock, local

import numpy as np
from numpy.typing import NDArray

from neupath.errors import QueryError
from neupath.graph import Csr, Floats
from neupath.halfpath import Factors
from neupath.index import Index, build_index
from neupath.nodes import Mask, Rows
from neupath.normalisation import Normalisation

_BLOCK = 1024
"""Queries a thread takes at a time."""
_LIGHT = 500
"""Additions of a mean query below which listing what it meets is all there is to gain."""
_BUILD = 20
"""What building an index costs, in additions for each entry of the rows."""
_MOST_BY_INDEX = 128
"""Hits a query that the index keeps, in a sorted list; more are kept in a heap, without an index."""
_AT_ONCE = 100_000
"""Additions that scipy has done before the kernels would be loaded."""
_FEW = 16
"""Queries that are not worth a second thread."""
_MOST_KEPT = 1 << 24
_indexing = RLock()
_scratch = local()


@dataclass(frozen=True)
class Ranking:
    """The best targets of each query: `rows` and `scores` have shape (queries, k), of which `sizes` are filled."""

    rows: Rows
    scores: Floats
    sizes: NDArray[np.int64]


def top_k_of_product(
    factors: Factors,
    normalisation: int,
    queries: Rows,
    skipped: Rows,
    k: int,
    candidates: Mask | None = None,
    threads: int | None = None,
) -> Ranking:
    """Rank the related targets of each query by a normalised product, exactly.

    Few queries, or a restricted choice of targets, go straight through the factors; many are worth an index.
    """
    if "numba" not in sys.modules and len(queries) * max(factors.work, 1.0) < _AT_ONCE:
        return _top_k_by_scipy(factors, normalisation, queries, skipped, k, candidates)
    if candidates is None and k <= _MOST_BY_INDEX and _is_worth_an_index(factors, len(queries)):
        return _top_k_by_index(factors, normalisation, queries, skipped, k, threads)
    from neupath import kernels

    limit = min(k, len(factors.right_norms))
    mask = np.zeros(0, dtype=np.bool_) if candidates is None else np.array(candidates)

    found = _empty_ranking(len(queries), limit)

    def search(block: slice) -> None:
        with scratch_for(len(factors.right_norms)) as scratch:
            found.sizes[block] = kernels.top_k(
                _arrays(factors.left), _arrays(factors.right), factors.left_norms, factors.right_norms,
                int(normalisation), queries[block], skipped[block], mask, scratch, found.rows[block],
                found.scores[block],
            )  # fmt: skip

    _in_blocks(search, len(queries), threads)
    return _trimmed(found)


def _top_k_by_scipy(
    factors: Factors, normalisation: int, queries: Rows, skipped: Rows, k: int, candidates: Mask | None
) -> Ranking:
    """Rank a few light queries in a process that has not loaded the kernels yet, which takes longer than this.

    scipy adds up each row in the same order as the kernels, so that the scores are the same to the last bit.
    """
    found = _empty_ranking(len(queries), min(k, len(factors.right_norms)))
    allowed = np.ones(len(factors.right_norms), dtype=np.bool_) if candidates is None else candidates
    for q, query in enumerate(queries):
        product = factors.left[[query]] @ factors.right
        product.sort_indices()
        targets, m = product.indices.astype(np.int64), product.data
        scores = _normalised(normalisation, m, float(factors.left_norms[query]), factors.right_norms[targets])
        kept = np.flatnonzero((m > 0) & (targets != skipped[q]) & allowed[targets])
        best = kept[np.lexsort((targets[kept], -scores[kept]))[: found.rows.shape[1]]]
        found.sizes[q] = len(best)
        found.rows[q, : len(best)], found.scores[q, : len(best)] = targets[best], scores[best]
    return _trimmed(found)


def _normalised(normalisation: int, m: Floats, dx: float, dy: Floats) -> Floats:
    """Normalise products as the kernels do."""
    if normalisation == Normalisation.DICE:
        return 2.0 * m / (dx + dy)
    if normalisation == Normalisation.NONE:
        return m
    with np.errstate(all="ignore"):
        product = dx * dy
        inside = (product > 1e-290) & (product < 1e290)
        roots = np.sqrt(dx) * np.sqrt(dy)
        return np.where(inside, m / np.sqrt(product), np.where(roots > 0, m / roots, 0.0))


def _is_worth_an_index(factors: Factors, queries: int) -> bool:
    """Whether there is an index, or so much work so far that one pays; light queries never need one."""
    if factors.work < _LIGHT or not factors.is_moderate:
        return False
    if factors.index is not None:
        return True
    factors.answered += queries
    return factors.answered * factors.work >= _BUILD * factors.left.nnz


def _top_k_by_index(
    factors: Factors, normalisation: int, queries: Rows, skipped: Rows, k: int, threads: int | None
) -> Ranking:
    """Rank through the index: each group of like queries once, then their targets, without each query's own."""
    from neupath.index import kernels

    index = index_of(factors)
    limit = min(k, len(factors.right_norms))
    wanted = min(limit + 1, len(index.members[1]))
    groups = index.group_of[queries]
    place = np.arange(len(queries))
    if len(queries) > 1 and index.repeats:
        groups, place = np.unique(groups, return_inverse=True)
        place = place.ravel()

    best = _empty_ranking(len(groups), wanted)
    targets = index.targets(wanted)

    def search(block: slice) -> None:
        room = np.empty(index.widest, dtype=np.int64), np.empty(index.widest, dtype=np.int64)
        with scratch_for(index.num_labels) as scratch:
            best.sizes[block] = kernels.rank_groups(
                index.left, index.left_norms, index.postings, targets, int(normalisation), True, groups[block],
                (*scratch, *room), best.rows[block], best.scores[block],
            )  # fmt: skip

    _in_blocks(search, len(groups), threads)
    found = _empty_ranking(len(queries), limit)
    kernels.expand_groups(
        place, best.rows, best.scores, best.sizes, index.label_of, index.members, skipped, limit, found.rows,
        found.scores, found.sizes,
    )  # fmt: skip
    return _trimmed(found)


def _empty_ranking(count: int, width: int) -> Ranking:
    return Ranking(np.full((count, width), -1), np.zeros((count, width)), np.zeros(count, dtype=np.int64))


@contextmanager
def scratch_for(size: int) -> Iterator[tuple[Floats, NDArray[np.uint32]]]:
    """Lend sums, all 0, and room for as many labels; they are kept for the next search of this thread."""
    kept = getattr(_scratch, "arrays", None)
    _scratch.arrays = None  # a search that breaks off leaves nothing behind
    if kept is None or len(kept[0]) < size:
        kept = np.zeros(size), np.empty(size, dtype=np.uint32)
    yield kept[0][:size], kept[1][:size]
    _scratch.arrays = kept if len(kept[0]) <= _MOST_KEPT else None


def index_of(factors: Factors) -> Index:
    """Return the index of a product, building it the first time."""
    with _indexing:
        if factors.index is None:
            factors.index = build_index(factors)
        found: Index = factors.index
        return found


def _trimmed(ranking: Ranking) -> Ranking:
    widest = int(ranking.sizes.max(initial=0))
    if widest == ranking.rows.shape[1]:
        return ranking
    return Ranking(ranking.rows[:, :widest].copy(), ranking.scores[:, :widest].copy(), ranking.sizes)


def _in_blocks(search: Callable[[slice], None], count: int, threads: int | None) -> None:
    """Search blocks of queries on some threads, each writing its own part of the result."""
    workers = _count_threads(threads)
    if count <= _FEW or workers < 2:
        search(slice(0, count))
        return
    step = min(_BLOCK, -(-count // workers))
    for _ in _pool(workers).map(search, (slice(at, at + step) for at in range(0, count, step))):
        pass


@cache
def _pool(workers: int) -> ThreadPoolExecutor:
    """Return threads that wait for work; they are started once."""
    return ThreadPoolExecutor(workers, thread_name_prefix="neupath")


def stacked(parts: Sequence[Ranking]) -> Ranking:
    """Put rankings of blocks of queries below each other."""
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


def score_product(factors: Factors, normalisation: int, queries: Rows) -> Floats:
    """Return the score of each query with every target; shape (queries, targets)."""
    from neupath import kernels

    scores = np.zeros((len(queries), len(factors.right_norms)))
    kernels.score_rows(
        _arrays(factors.left), _arrays(factors.right), factors.left_norms, factors.right_norms, int(normalisation),
        queries, scores,
    )  # fmt: skip
    return scores


def top_k_of_scores(scores: Floats, skipped: Rows, k: int, candidates: Mask | None = None) -> Ranking:
    """Rank all targets of each query by given scores; shape of scores (queries, targets)."""
    count = scores.shape[1]
    limit = min(k, count)
    rows = np.full((len(scores), limit), -1, dtype=np.int64)
    best = np.zeros(rows.shape)
    sizes = np.zeros(len(scores), dtype=np.int64)
    for q, row in enumerate(scores):
        allowed = np.ones(count, dtype=np.bool_) if candidates is None else candidates.copy()
        if skipped[q] >= 0:
            allowed[skipped[q]] = False
        targets = np.flatnonzero(allowed)
        order = targets[np.lexsort((targets, -row[targets]))[:limit]]
        sizes[q] = len(order)
        rows[q, : len(order)], best[q, : len(order)] = order, row[order]
    return Ranking(rows, best, sizes)


def related(ranking: Ranking) -> Ranking:
    """Leave out the targets of score 0."""
    kept = (ranking.scores > 0) & (np.arange(ranking.rows.shape[1]) < ranking.sizes[:, None])
    return Ranking(np.where(kept, ranking.rows, -1), np.where(kept, ranking.scores, 0.0), kept.sum(axis=1))


def with_unrelated(ranking: Ranking, skipped: Rows, k: int, num_targets: int, candidates: Mask | None) -> Ranking:
    """Fill a ranking up to k with targets of score 0, in node order."""
    allowed = np.arange(num_targets) if candidates is None else np.flatnonzero(candidates)
    width = min(k, num_targets)
    rows = np.full((len(skipped), width), -1, dtype=np.int64)
    scores = np.zeros(rows.shape)
    sizes = ranking.sizes.copy()
    for q, size in enumerate(ranking.sizes):
        rows[q, :size], scores[q, :size] = ranking.rows[q, :size], ranking.scores[q, :size]
        taken = np.append(rows[q, :size], skipped[q])
        fill = np.setdiff1d(allowed[: k + len(taken)], taken)[: width - size]
        rows[q, size : size + len(fill)] = fill
        sizes[q] += len(fill)
    return Ranking(rows, scores, sizes)


def _arrays(matrix: Csr) -> tuple[NDArray[np.integer], NDArray[np.integer], Floats]:
    return matrix.indptr, matrix.indices, matrix.data


def _count_threads(threads: int | None) -> int:
    if threads is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if threads < 1:
        raise QueryError(f"threads is {threads}; use at least 1, or None for one a core")
    return threads

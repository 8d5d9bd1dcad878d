"""What a worker does of a join: some blocks of queries against every block of targets, merged exactly."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array, vstack

from neupath.cluster.id_encoding import IdFiles
from neupath.cluster.tiles import Tiles, keep_last
from neupath.engine.join import JoinJob, write_hits
from neupath.engine.products import Factors, symmetric_factors
from neupath.engine.topk import (
    HitLists,
    Ranking,
    hit_lists,
    range_of_product,
    range_of_scores,
    score_product,
    top_k_of_product,
)
from neupath.errors import QueryError
from neupath.graph.hin import Csr, Floats, freeze
from neupath.graph.nodes import Rows

# ---- Room ----------------------------------------------------------------------------------------
_BASE = 320 << 20
"""Bytes of a worker before it has any work: Python, the kernels, and what they compile."""
_AN_ENTRY = 96
"""Bytes that a task takes at its peak for each entry of a strip: its copies by row, by column and in the index."""
_A_HIT = 128
"""Bytes that a task takes at its peak for each hit: in two rankings that are merged, with its ids, and as written."""
_FEWEST = 1 << 18
_MOST_HITS = 1 << 22


@dataclass(frozen=True)
class MemoryBudget:
    """What a task may hold at once: entries of a factor, and hits."""

    entries: int
    hits: int


def memory_budget(memory: int, job: JoinJob | None = None) -> MemoryBudget:
    """Return what a task may hold in the memory of a worker, which must have room for the hits of a block."""
    free = memory - _BASE
    a_block = job.most_hits if job is not None else 0
    asked = a_block * job.num_blocks if job is not None else 0
    hits = max(a_block, min(asked, _MOST_HITS, free // 4 // _A_HIT))
    entries = (free - hits * _A_HIT) // _AN_ENTRY
    if entries >= _FEWEST:
        return MemoryBudget(entries, hits)
    least = (_BASE + _FEWEST * _AN_ENTRY + a_block * _A_HIT) >> 20
    told = f"a worker has {memory >> 20} MiB of memory, and needs at least {least}"
    if job is None or a_block * _A_HIT < _BASE // 10:
        raise QueryError(f"{told}; give it more")
    raise QueryError(
        f"{told} for a block of {job.block_size:,} queries with {a_block // job.block_size:,} hits each; give it more, or give a "
        f"smaller ‹block›"
    )


# ---- What a worker does of a join ----------------------------------------------------------------
QUERIES, LEFT_NORMS, RIGHT_NORMS = "queries.npy", "left-norms.npy", "right-norms.npy"


@dataclass(frozen=True)
class TaskSpec:
    """What is to be joined, as a worker needs to know it; arrays are files of the folder `work`."""

    work: Path
    parts: Path
    left: Tiles
    right: Tiles | None
    """Nothing where it is `left` transposed."""
    blocks: tuple[range, ...]
    """The strips of targets that are taken at once."""
    room: MemoryBudget
    sources: IdFiles
    targets: IdFiles
    normalisation: int
    step: int
    limit: int | None
    min_score: float
    leaves_itself_out: bool

    @property
    def fits(self) -> bool:
        """Whether a worker can hold the product as a whole."""
        return self.right is None and len(self.blocks) == 1

    def strips(self) -> tuple[int, ...]:
        """Where the strips of targets begin and end."""
        return self.left.rows if self.right is None else self.right.columns


@dataclass(frozen=True)
class _Block:
    """Some targets, from the row `first` on."""

    first: int
    right: Csr
    norms: Floats


@dataclass(frozen=True)
class _Meeting:
    """Some queries against some targets: rows of a product, the target each leaves out, and the first target's row."""

    factors: Factors
    rows: Rows
    skipped: Rows
    first: int


def rank_parts(order: TaskSpec, numbers: tuple[int, ...]) -> None:
    """Write the hits of some blocks of queries."""
    every = np.load(order.work / QUERIES, mmap_mode="r")
    asked = [np.array(every[n * order.step : (n + 1) * order.step]) for n in numbers]
    found = (_reach if order.limit is None else _rank)(order, np.concatenate(asked))
    first = 0
    for number, rows in zip(numbers, asked, strict=True):
        last = first + len(rows)
        starts = found.starts[first : last + 1]
        hits = slice(starts[0], starts[-1])
        own = HitLists(starts - starts[0], found.rows[hits], found.scores[hits])
        ids = order.sources.take(rows), order.targets.take(own.rows)
        written = order.work / f"{number:06}.parquet"
        write_hits(written, *ids, own)
        written.replace(order.parts / written.name)  # unless the join is over, and its folder gone
        first = last


def _meetings(order: TaskSpec, queries: Rows) -> Iterator[_Meeting]:
    """Yield some queries against each block of targets; a product that fits as a whole is kept with its index."""
    nobody = np.full(len(queries), -1)
    if order.fits:
        factors = keep_last(order.work, lambda: symmetric_factors(order.left.rows_in(order.blocks[0])))
        yield _Meeting(factors, queries, queries if order.leaves_itself_out else nobody, 0)
        return
    left, norms = _left_rows(order, queries), np.load(order.work / LEFT_NORMS, mmap_mode="r")[queries]
    for strips in order.blocks:
        block = keep_last((order.work, strips), lambda strips=strips: _read_block(order, strips))  # type: ignore[misc]
        own = queries - block.first
        inside = (own >= 0) & (own < len(block.norms)) & order.leaves_itself_out
        factors = Factors(left, block.right, norms, block.norms)
        yield _Meeting(factors, factors.all_rows, np.where(inside, own, -1), block.first)


def _left_rows(order: TaskSpec, queries: Rows) -> Csr:
    """Read the rows of the left factor that some queries have, from the strips they lie in."""
    cut = np.array(order.left.rows)
    strips = np.searchsorted(cut, queries, side="right") - 1
    places = np.argsort(strips, kind="stable")
    needed, starts = np.unique(strips[places], return_index=True)
    taken = [
        order.left.row_strip(int(strip))[queries[own] - cut[strip]]
        for strip, own in zip(needed, np.split(places, starts[1:]), strict=True)
    ]
    rows = csr_array(vstack(taken, format="csr"))
    if np.any(np.diff(places) < 0):
        rows = rows[np.argsort(places)]
    return freeze(rows)


def _rank(order: TaskSpec, queries: Rows) -> HitLists:
    """Keep the best targets of each query, block by block; at equal scores the earlier block's stay in front."""
    width = 0 if order.limit is None else order.limit
    best = Ranking(np.zeros((len(queries), 0), np.int64), np.zeros((len(queries), 0)), np.zeros(len(queries), np.int64))
    for meeting in _meetings(order, queries):
        found = top_k_of_product(meeting.factors, order.normalisation, meeting.rows, meeting.skipped, width, threads=1)
        if len(order.blocks) == 1:
            return hit_lists(found, order.min_score)
        rows = np.where(found.rows < 0, -1, found.rows + meeting.first)
        best = merge_rankings(best, replace(found, rows=rows), width)
    return hit_lists(best, order.min_score)


def _reach(order: TaskSpec, queries: Rows) -> HitLists:
    """Find all targets that reach the least score, block by block."""
    places, rows, scores = [], [], []
    for meeting in _meetings(order, queries):
        found = _reached(order, meeting)
        places.append(np.repeat(np.arange(len(queries)), np.diff(found.starts)))
        rows.append(found.rows + meeting.first)
        scores.append(found.scores)
    place, row, score = np.concatenate(places), np.concatenate(rows), np.concatenate(scores)
    ordered = np.lexsort((row, -score, place))
    starts = np.concatenate([[0], np.cumsum(np.bincount(place, minlength=len(queries)))])
    return HitLists(starts, row[ordered], score[ordered])


def _reached(order: TaskSpec, meeting: _Meeting) -> HitLists:
    factors, rows, skipped = meeting.factors, meeting.rows, meeting.skipped
    if factors.bounds_are_safe:
        return range_of_product(factors, order.normalisation, rows, skipped, order.min_score, 1)
    return range_of_scores(score_product(factors, order.normalisation, rows), skipped, order.min_score)


def merge_rankings(best: Ranking, other: Ranking, k: int) -> Ranking:
    """Return the k best of two rankings of the same queries, where all rows of the second come after the first's."""
    rows = np.concatenate([best.rows, other.rows], axis=1)
    scores = np.concatenate([best.scores, other.scores], axis=1)
    filled = np.concatenate([np.arange(r.rows.shape[1]) < r.sizes[:, None] for r in (best, other)], axis=1)
    order = np.argsort(np.where(filled, -scores, np.inf), axis=1, kind="stable")[:, :k]
    sizes = np.minimum(best.sizes + other.sizes, k)
    return Ranking(np.take_along_axis(rows, order, axis=1), np.take_along_axis(scores, order, axis=1), sizes)


def _read_block(order: TaskSpec, strips: range) -> _Block:
    cut = order.strips()
    if order.right is None:
        right = freeze(csr_array(order.left.rows_in(strips).T.tocsr()))
    else:
        right = order.right.columns_in(strips)
    first, last = cut[strips.start], cut[strips.stop]
    norms = np.array(np.load(order.work / RIGHT_NORMS, mmap_mode="r")[first:last])
    return _Block(first, right, norms)

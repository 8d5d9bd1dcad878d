"""The tasks of a join on a worker: blocks of queries against every block of targets, merged exactly."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

import numpy as np
import pyarrow as pa
from scipy.sparse import csr_array, vstack

from neupath._runtime.files import write_whole
from neupath.cluster.tile_products import TiledProduct
from neupath.cluster.tiles import Tiles, group
from neupath.cluster.workers import cache_last
from neupath.engine.join import JoinJob, JoinSide, checksum_of, hit_table, write_hits
from neupath.engine.products import Factors, Formula, symmetric_factors
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
from neupath.graph.hin import Csr, freeze
from neupath.graph.nodes import Rows

# ---- Memory budget -------------------------------------------------------------------------------
_BASE = 320 << 20  # bytes of a worker without work: Python, the kernels, and their compiler
_PER_ENTRY = 96  # bytes per entry of a strip at a task's peak: its copies by row, by column and in the index
_PER_HIT = 128  # bytes per hit at a task's peak: in two rankings that are merged, with its ids, and as written
_FEWEST = 1 << 18
_MOST_HITS = 1 << 22


@dataclass(frozen=True)
class MemoryBudget:
    """What a task may hold at once: entries of a factor, and hits."""

    entries: int
    hits: int


def memory_budget(memory: int, job: JoinJob | None = None) -> MemoryBudget:
    """Return what a task may hold in the memory of a worker; raise if the hits of a block do not fit."""
    free = memory - _BASE
    per_block = job.reserved_hits if job is not None else 0
    total = per_block * job.num_blocks if job is not None else 0
    hits = max(per_block, min(total, _MOST_HITS, free // 4 // _PER_HIT))
    entries = (free - hits * _PER_HIT) // _PER_ENTRY
    if entries >= _FEWEST:
        return MemoryBudget(entries, hits)
    least = (_BASE + _FEWEST * _PER_ENTRY + per_block * _PER_HIT) >> 20
    problem = f"a worker has {memory >> 20} MiB of memory, and needs at least {least}"
    if job is None or per_block * _PER_HIT < _BASE // 10:
        raise QueryError(f"{problem}; give it more (‹memory_limit›)", parameter="memory_limit")
    raise QueryError(
        f"{problem} for a block of {job.block_size:,} queries with {per_block // job.block_size:,} hits each; give it "
        f"more (‹memory_limit›), or use a smaller ‹block›",
        parameter="block",
    )


# ---- Tasks ---------------------------------------------------------------------------------------
_QUERIES, _LEFT_NORMS, _RIGHT_NORMS = "queries.npy", "left-norms.npy", "right-norms.npy"
_SOURCES, _TARGETS = "sources.arrow", "targets.arrow"


@dataclass(frozen=True)
class TaskSpec:
    """What a worker needs to know of a join; arrays are files in the folder `work`."""

    work: Path
    parts: Path
    left: Tiles
    right: Tiles | None  # None where it is `left` transposed
    target_blocks: tuple[range, ...]  # the strips of targets in each block
    budget: MemoryBudget
    formula: Formula
    block_size: int
    k: int | None
    min_score: float
    skips_query: bool

    @classmethod
    def write(cls, work: Path, job: JoinJob, product: TiledProduct, formula: Formula, budget: MemoryBudget) -> Self:
        """Write the arrays of a join to its working folder, and return the rest."""
        np.save(work / _QUERIES, job.queries)
        np.save(work / _LEFT_NORMS, product.left_norms)
        np.save(work / _RIGHT_NORMS, product.right_norms)
        _write_side(work / _SOURCES, job.sources)
        _write_side(work / _TARGETS, job.targets)
        blocks = tuple(group(product.entries.tolist(), budget.entries))
        return cls(
            work, job.parts.absolute(), product.left, product.right, blocks, budget, formula,
            job.block_size, job.k, job.min_score, job.skips_query,
        )  # fmt: skip

    @property
    def is_one_symmetric_block(self) -> bool:
        """Whether the product is W·Wᵀ and a worker can hold all of W."""
        return self.right is None and len(self.target_blocks) == 1


def _write_side(path: Path, side: JoinSide) -> None:
    """Write the ids of the queries or of the targets, and their names if they have any, to a file that workers map."""
    batch = pa.record_batch({"ids": side.ids} | ({} if side.names is None else {"names": side.names}))

    def write(temporary: Path) -> None:
        with pa.OSFile(str(temporary), "wb") as sink, pa.ipc.new_file(sink, batch.schema) as writer:
            writer.write_batch(batch)

    write_whole(path, write)


def _read_side(path: Path) -> JoinSide:
    """Map ids and names into memory. The type of the nodes is not in the file: a table of hits does not show it."""
    with pa.memory_map(str(path)) as source:
        batch = pa.ipc.open_file(source).get_batch(0)
    return JoinSide(path.stem, batch["ids"], batch["names"] if "names" in batch.schema.names else None)


def rank_parts(spec: TaskSpec, numbers: tuple[int, ...]) -> None:
    """Write the hits of some blocks of queries."""
    queries = np.load(spec.work / _QUERIES, mmap_mode="r")
    blocks = [np.array(queries[n * spec.block_size : (n + 1) * spec.block_size]) for n in numbers]
    hits = (_search_range if spec.k is None else _search_top_k)(spec, np.concatenate(blocks))
    sides = _read_side(spec.work / _SOURCES), _read_side(spec.work / _TARGETS)
    first = 0
    for number, rows in zip(numbers, blocks, strict=True):
        last = first + len(rows)
        starts = hits.starts[first : last + 1]
        stretch = slice(starts[0], starts[-1])
        own = HitLists(starts - starts[0], hits.rows[stretch], hits.scores[stretch])
        path = spec.work / f"{number:06}.parquet"
        write_hits(path, hit_table(*sides, rows, own))
        for file in (checksum_of(path), path):  # this fails if the join is over, since its folder is gone
            file.replace(spec.parts / file.name)
        first = last


def _target_blocks(spec: TaskSpec, queries: Rows) -> Iterator[tuple[Factors, Rows, Rows, int]]:
    """Yield, per block of targets, factors, the rows of the queries there, the target each skips, and the first target.

    A product that fits is cached with its index.
    """
    nobody = np.full(len(queries), -1)
    if spec.is_one_symmetric_block:
        factors = cache_last(spec.work, lambda: symmetric_factors(spec.left.rows_in(spec.target_blocks[0])))
        yield factors, queries, queries if spec.skips_query else nobody, 0
        return
    left, norms = _left_rows(spec, queries), np.load(spec.work / _LEFT_NORMS, mmap_mode="r")[queries]
    cut = spec.left.rows if spec.right is None else spec.right.columns
    right_norms = np.load(spec.work / _RIGHT_NORMS, mmap_mode="r")
    for strips in spec.target_blocks:
        right = cache_last((spec.work, strips), lambda strips=strips: _right_columns(spec, strips))  # type: ignore[misc]
        first, last = cut[strips.start], cut[strips.stop]
        own = queries - first
        is_target = (own >= 0) & (own < last - first) & spec.skips_query
        factors = Factors(left, right, norms, np.array(right_norms[first:last]))
        yield factors, factors.all_rows, np.where(is_target, own, -1), first


def _left_rows(spec: TaskSpec, queries: Rows) -> Csr:
    """Read the rows of the left factor for some queries, from their strips."""
    cut = np.array(spec.left.rows)
    strips = np.searchsorted(cut, queries, side="right") - 1
    places = np.argsort(strips, kind="stable")
    needed, starts = np.unique(strips[places], return_index=True)
    taken = [
        spec.left.row_strip(int(strip))[queries[own] - cut[strip]]
        for strip, own in zip(needed, np.split(places, starts[1:]), strict=True)
    ]
    rows = csr_array(vstack(taken, format="csr"))
    if np.any(np.diff(places) < 0):
        rows = rows[np.argsort(places)]
    return freeze(rows)


def _right_columns(spec: TaskSpec, strips: range) -> Csr:
    if spec.right is None:
        return freeze(csr_array(spec.left.rows_in(strips).T.tocsr()))
    return spec.right.columns_in(strips)


def _search_top_k(spec: TaskSpec, queries: Rows) -> HitLists:
    """Keep the best targets of each query, block by block; at equal scores those of the earlier block come first."""
    k = 0 if spec.k is None else spec.k
    best = Ranking(np.zeros((len(queries), 0), np.int64), np.zeros((len(queries), 0)), np.zeros(len(queries), np.int64))
    for factors, block, skipped, first in _target_blocks(spec, queries):
        ranking = top_k_of_product(factors, spec.formula, block, skipped, k, threads=1)
        if len(spec.target_blocks) == 1:
            return hit_lists(ranking, spec.min_score)
        rows = np.where(ranking.rows < 0, -1, ranking.rows + first)
        best = merge_rankings(best, replace(ranking, rows=rows), k)
    return hit_lists(best, spec.min_score)


def _search_range(spec: TaskSpec, queries: Rows) -> HitLists:
    """Return all targets with at least the minimal score, block by block."""
    places, rows, scores = [], [], []
    for factors, block, skipped, first in _target_blocks(spec, queries):
        if factors.bounds_are_safe:
            hits = range_of_product(factors, spec.formula, block, skipped, spec.min_score, 1)
        else:
            hits = range_of_scores(score_product(factors, spec.formula, block), skipped, spec.min_score)
        places.append(np.repeat(np.arange(len(queries)), np.diff(hits.starts)))
        rows.append(hits.rows + first)
        scores.append(hits.scores)
    place, row, score = np.concatenate(places), np.concatenate(rows), np.concatenate(scores)
    order = np.lexsort((row, -score, place))
    starts = np.concatenate([[0], np.cumsum(np.bincount(place, minlength=len(queries)))])
    return HitLists(starts, row[order], score[order])


def merge_rankings(best: Ranking, other: Ranking, k: int) -> Ranking:
    """Return the k best of two rankings of the same queries, where all rows of the second come after the first's."""
    rows = np.concatenate([best.rows, other.rows], axis=1)
    scores = np.concatenate([best.scores, other.scores], axis=1)
    filled = np.concatenate([np.arange(r.rows.shape[1]) < r.sizes[:, None] for r in (best, other)], axis=1)
    order = np.argsort(np.where(filled, -scores, np.inf), axis=1, kind="stable")[:, :k]
    sizes = np.minimum(best.sizes + other.sizes, k)
    return Ranking(np.take_along_axis(rows, order, axis=1), np.take_along_axis(scores, order, axis=1), sizes)

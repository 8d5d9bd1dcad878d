"""The tasks of a join on a worker: blocks of queries against every block of targets, merged exactly."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

import numpy as np
import pyarrow as pa
from scipy.sparse import csr_array, vstack

from neupath.cluster.strips import StripProduct, Strips, group
from neupath.cluster.workers import cache_last
from neupath.engine.formula import Formula
from neupath.engine.join import JoinJob, JoinSide, checksum_of, hit_table, write_hits
from neupath.engine.products import Factors, symmetric_factors
from neupath.engine.topk import (
    HitLists,
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
    job: JoinJob
    """The job without queries and ids, which `load_job` reads."""
    left: Strips
    right: Strips  # a row per target; equal to `left` where the path is symmetric
    target_blocks: tuple[range, ...]  # the strips of targets in each block
    budget: MemoryBudget
    formula: Formula

    @classmethod
    def write(cls, work: Path, job: JoinJob, product: StripProduct, formula: Formula, budget: MemoryBudget) -> Self:
        """Write the arrays of a join to its working folder, and return the rest."""
        np.save(work / _QUERIES, job.queries)
        np.save(work / _LEFT_NORMS, product.left_norms)
        np.save(work / _RIGHT_NORMS, product.right_norms)
        sources, targets = _write_side(work / _SOURCES, job.sources), _write_side(work / _TARGETS, job.targets)
        rest = replace(job, out=job.out.absolute(), queries=job.queries[:0], sources=sources, targets=targets)
        blocks = tuple(group(product.entries.tolist(), budget.entries))
        return cls(work, rest, product.left, product.right, blocks, budget, formula)

    def load_job(self) -> JoinJob:
        """Map the queries and ids of the job into memory."""
        sources = _read_side(self.work / _SOURCES, self.job.sources)
        targets = _read_side(self.work / _TARGETS, self.job.targets)
        queries = np.load(self.work / _QUERIES, mmap_mode="r")
        return replace(self.job, queries=queries, sources=sources, targets=targets)

    @property
    def is_one_symmetric_block(self) -> bool:
        """Whether the product is W·Wᵀ and a worker can hold all of W."""
        return self.right == self.left and len(self.target_blocks) == 1


def _write_side(path: Path, side: JoinSide) -> JoinSide:
    """Write the ids of queries or targets, and their names if they have any; return the side without them."""
    batch = pa.record_batch({"ids": side.ids} | ({} if side.names is None else {"names": side.names}))
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return JoinSide(side.node_type, side.ids[:0])


def _read_side(path: Path, side: JoinSide) -> JoinSide:
    with pa.memory_map(str(path)) as source:
        batch = pa.ipc.open_file(source).get_batch(0)
    return JoinSide(side.node_type, batch["ids"], batch["names"] if "names" in batch.schema.names else None)


def rank_parts(spec: TaskSpec, numbers: tuple[int, ...]) -> None:
    """Write the hits of some blocks of queries."""
    job = spec.load_job()
    blocks = [np.array(job.block(number)) for number in numbers]
    hits = _search(spec, np.concatenate(blocks))
    first = 0
    for number, rows in zip(numbers, blocks, strict=True):
        last = first + len(rows)
        starts = hits.starts[first : last + 1]
        stretch = slice(starts[0], starts[-1])
        own = HitLists(starts - starts[0], hits.rows[stretch], hits.scores[stretch])
        path = spec.work / job.part(number).name
        write_hits(path, hit_table(job.sources, job.targets, rows, own))
        for file in (checksum_of(path), path):  # this fails if the join is over, since its folder is gone
            file.replace(job.parts / file.name)
        first = last


def _target_blocks(spec: TaskSpec, queries: Rows) -> Iterator[tuple[Factors, Rows, Rows, int]]:
    """Yield, per block of targets, factors, the rows of the queries there, the target each skips, and the first target.

    A product that fits is cached with its index.
    """
    nobody = np.full(len(queries), -1)
    if spec.is_one_symmetric_block:
        factors = cache_last(spec.work, lambda: symmetric_factors(spec.left.read(spec.target_blocks[0])))
        yield factors, queries, queries if spec.job.skips_query else nobody, 0
        return
    left, norms = _left_rows(spec, queries), np.load(spec.work / _LEFT_NORMS, mmap_mode="r")[queries]
    right_norms = np.load(spec.work / _RIGHT_NORMS, mmap_mode="r")
    for strips in spec.target_blocks:
        right = cache_last((spec.work, strips), lambda strips=strips: _right_columns(spec, strips))  # type: ignore[misc]
        targets = spec.right.rows_of(strips)
        is_target = (queries >= targets.start) & (queries < targets.stop) & spec.job.skips_query
        factors = Factors(left, right, norms, np.array(right_norms[targets]))
        yield factors, factors.all_rows, np.where(is_target, queries - targets.start, -1), targets.start


def _left_rows(spec: TaskSpec, queries: Rows) -> Csr:
    """Read the rows of the left factor for some queries, from their strips."""
    cut = np.array(spec.left.cut)
    strips = np.searchsorted(cut, queries, side="right") - 1
    parts, places = [], []
    for strip in np.unique(strips).tolist():
        places.append(np.flatnonzero(strips == strip))
        parts.append(spec.left.read(range(strip, strip + 1))[queries[places[-1]] - cut[strip]])
    rows = csr_array(vstack(parts, format="csr"))
    return freeze(rows if len(parts) == 1 else rows[np.argsort(np.concatenate(places))])


def _right_columns(spec: TaskSpec, strips: range) -> Csr:
    return freeze(csr_array(spec.right.read(strips).T.tocsr()))


def _search(spec: TaskSpec, queries: Rows) -> HitLists:
    """Return the hits of some queries, searched in one block of targets after the other."""
    k, min_score = spec.job.k, spec.job.min_score
    parts: list[HitLists] = []
    for factors, block, skipped, first in _target_blocks(spec, queries):
        if k is not None:
            hits = hit_lists(top_k_of_product(factors, spec.formula, block, skipped, k, threads=1), min_score)
        elif factors.bounds_are_safe:
            hits = range_of_product(factors, spec.formula, block, skipped, min_score, 1)
        else:
            hits = range_of_scores(score_product(factors, spec.formula, block), skipped, min_score)
        parts.append(replace(hits, rows=hits.rows + first))
        if k is not None:
            parts = [merge_hits(parts, k)]
    return merge_hits(parts, k)


def merge_hits(parts: Sequence[HitLists], k: int | None) -> HitLists:
    """Return the k best, or all, of several lists of hits of the same queries, ties in the order of the targets."""
    if len(parts) == 1:
        return parts[0]
    query = np.concatenate([np.repeat(np.arange(len(hits.starts) - 1), np.diff(hits.starts)) for hits in parts])
    rows, scores = (np.concatenate([getattr(hits, name) for hits in parts]) for name in ("rows", "scores"))
    order = np.lexsort((rows, -scores, query))
    starts = np.searchsorted(query[order], np.arange(len(parts[0].starts)))
    if k is not None:
        order = order[np.arange(len(order)) - starts[query[order]] < k]
        starts = np.searchsorted(query[order], np.arange(len(starts)))
    return HitLists(starts, rows[order], scores[order])

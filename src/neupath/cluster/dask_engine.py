"""Joins on a Dask cluster, over a graph that this process holds or maps."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from neupath.cluster.join_tasks import TaskSpec, memory_budget, rank_parts
from neupath.cluster.strips import StripProduct, group, multiply_halves
from neupath.cluster.workers import PATIENCE, connect, parse_memory
from neupath.engine.join import JoinEngine, JoinJob, OnBlock, discard, make_work
from neupath.engine.scorer import Scorer
from neupath.errors import QueryError
from neupath.graph.hin import HIN
from neupath.measures import PathMeasure

_TASKS_PER_WORKER = 2


@dataclass(frozen=True)
class Dask(JoinEngine):
    """Join on a Dask cluster, with the same result to the byte as in one process.

    The workers of a scheduler must see the folder of the result and have neupath installed. The factors of the path
    are multiplied in strips, in files beside the result, so none of them needs to fit into a worker's memory. A script
    that starts workers needs the usual `if __name__ == "__main__":`.

    Parameters
    ----------
    scheduler
        The address of a scheduler, such as "tcp://10.0.0.1:8786"; without one, workers are started here.
    workers
        The number of processes to start here; one per core by default.
    memory_limit
        The memory of each of them, such as "2GiB".
    strip
        The entries of a factor that a task holds at once; by default as many as the workers' memory allows.
    patience
        Seconds to wait for new workers when all are gone; finished blocks are kept.

    >>> Dask(workers=4, memory_limit="2GiB").patience
    120.0
    """

    scheduler: str | None = None
    workers: int | None = None
    memory_limit: str | int | None = None
    strip: int | None = None
    patience: float = PATIENCE

    def __post_init__(self) -> None:
        if self.scheduler is not None and (self.workers is not None or self.memory_limit is not None):
            raise QueryError("a scheduler has workers of its own; leave out ‹workers› and ‹memory_limit›")
        if self.workers is not None and self.workers < 1:
            raise QueryError(
                f"‹workers› is {self.workers}; use at least 1, or leave it out for one per core", parameter="workers"
            )
        if self.strip is not None and self.strip < 1:
            raise QueryError(f"‹strip› is {self.strip}; hold at least 1 entry at once", parameter="strip")
        if not 0 < self.patience < np.inf:
            raise QueryError(
                f"‹patience› is {self.patience}; wait for some seconds, such as {PATIENCE:.0f}", parameter="patience"
            )
        limit = parse_memory(self.memory_limit)
        if limit is not None:
            memory_budget(limit)

    def prepare(self, hin: HIN, scorer: Scorer) -> Scorer:
        measure = _path_measure(scorer)
        return measure if getattr(measure, "hin_", None) is hin else measure.resolve(hin)

    def run(self, scorer: Scorer, job: JoinJob, missing: Sequence[int], on_block: OnBlock) -> None:
        measure = _path_measure(scorer)
        work = make_work(job.parts)  # a folder that all workers see
        try:
            with connect(self.scheduler, self.workers, parse_memory(self.memory_limit), work, self.patience) as workers:
                budget = memory_budget(workers.memory, job)
                if self.strip is not None:
                    budget = replace(budget, entries=self.strip)
                halves = measure.halves(measure.hin_, measure.metapath_)
                product = multiply_halves(halves, work, workers, budget.entries)
                spec = TaskSpec.write(work, job, product, measure.formula, budget)
                groups = _group_blocks(spec, product, job, missing, workers.count)

                def on_done(task: int) -> None:
                    for number in groups[task]:
                        on_block(number)

                workers.each(rank_parts, [(spec, numbers) for numbers in groups], on_done)
                workers.clear_caches()
        finally:
            discard(work)


def _path_measure(scorer: Scorer) -> PathMeasure:
    if isinstance(scorer, PathMeasure):
        return scorer
    raise QueryError(f"{scorer.name} cannot be joined on a cluster, only measures over a meta-path can")


def _group_blocks(
    spec: TaskSpec, product: StripProduct, job: JoinJob, missing: Sequence[int], workers: int
) -> list[tuple[int, ...]]:
    """Group the blocks of queries into tasks: one each where a worker caches the product, else few and large ones.

    A large task reads all targets, so it takes as many queries as it may hold at once.
    """
    if spec.is_one_symmetric_block:
        return [(number,) for number in missing]
    per_worker = -(-len(missing) // (_TASKS_PER_WORKER * workers))
    most_blocks = min(per_worker, max(1, spec.budget.hits // max(1, job.reserved_hits)))
    entries = [int(product.row_counts[job.block(number)].sum()) for number in missing]
    return [
        tuple(missing[first : min(first + most_blocks, blocks.stop)])
        for blocks in group(entries, spec.budget.entries // 2)
        for first in range(blocks.start, blocks.stop, most_blocks)
    ]

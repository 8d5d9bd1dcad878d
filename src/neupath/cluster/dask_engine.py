"""Joins on a Dask cluster, of a graph that this process holds (`Dask`) or of tables that workers read."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from neupath._runtime.progress import Progress, no_progress
from neupath.cluster.id_encoding import write_ids
from neupath.cluster.ingestion import IngestionPlan, ingest, write_names
from neupath.cluster.join_tasks import (
    LEFT_NORMS,
    QUERIES,
    RIGHT_NORMS,
    MemoryBudget,
    TaskSpec,
    memory_budget,
    rank_parts,
)
from neupath.cluster.tile_products import LegCutter, TiledProduct, multiply_halves, multiply_tiles
from neupath.cluster.tiles import group
from neupath.cluster.workers import PATIENCE, Workers, connect, parse_memory
from neupath.engine.join import (
    BLOCK,
    Joined,
    JoinEngine,
    JoinJob,
    JoinOptions,
    JoinSide,
    OnBlock,
    check_out,
    claim,
    discard,
    finish_job,
    make_work,
    open_job,
    parts_of,
)
from neupath.engine.products import Formula
from neupath.engine.scorer import Scorer
from neupath.errors import QueryError, SourceError
from neupath.graph.hin import HIN, Duplicates
from neupath.graph.metapath import MetaPath
from neupath.io.plan import Plan
from neupath.io.recognition import find_tables
from neupath.measures import PathMeasure

_TASKS_PER_WORKER = 2


@dataclass(frozen=True)
class Dask(JoinEngine):
    """Join on a Dask cluster, with the same result to the byte as in one process.

    The workers of a scheduler must see the folder of the result and have neupath installed. The factors of the path
    are multiplied in tiles, in files beside the result, so none of them needs to fit into a worker's memory. A script
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
        with self.work_in(job.parts) as (work, workers):
            budget = self.budget(workers, job)
            product = multiply_halves(measure.halves(measure.hin_, measure.metapath_), work, workers, budget.entries)
            sides = _write_side(job.sources, work / "sources"), _write_side(job.targets, work / "targets")
            spec = _make_task_spec(job, work, product, measure.formula, sides, budget)
            _rank_missing(spec, product, job, missing, workers, on_block)

    @contextmanager
    def work_in(self, folder: Path) -> Iterator[tuple[Path, Workers]]:
        """Connect to workers; yield a working folder that all of them see, and the workers."""
        work = make_work(folder)
        try:
            memory = parse_memory(self.memory_limit)
            with connect(self.scheduler, self.workers, memory, work, self.patience) as workers:
                yield work, workers
                workers.clear_caches()
        finally:
            discard(work)  # a join that is done has removed it already
            if folder.is_dir() and not any(folder.iterdir()):
                folder.rmdir()

    def budget(self, workers: Workers, job: JoinJob | None = None) -> MemoryBudget:
        budget = memory_budget(workers.memory, job)
        return budget if self.strip is None else replace(budget, entries=self.strip)


def _path_measure(scorer: Scorer) -> PathMeasure:
    if isinstance(scorer, PathMeasure):
        return scorer
    raise QueryError(f"{scorer.name} cannot be joined on a cluster, only measures over a meta-path can")


def _write_side(side: JoinSide, path: Path) -> JoinSide:
    """Write the ids and names that this process holds to files that workers read."""
    columns = {"ids": side.ids, "names": side.names}
    files = {
        what: write_ids(path.with_suffix(f".{what}"), column)
        for what, column in columns.items()
        if isinstance(column, pa.Array)
    }
    return JoinSide(side.node_type, files["ids"], files.get("names"))


def _make_task_spec(
    job: JoinJob, work: Path, product: TiledProduct, formula: Formula, sides: tuple[JoinSide, JoinSide],
    budget: MemoryBudget,
) -> TaskSpec:  # fmt: skip
    """Write the arrays of a join into the working folder, and return what its tasks need."""
    np.save(work / QUERIES, job.queries)
    np.save(work / LEFT_NORMS, product.left_norms)
    np.save(work / RIGHT_NORMS, product.right_norms)
    blocks = tuple(group(product.entries.tolist(), budget.entries))
    return TaskSpec(
        work, job.parts.absolute(), product.left, product.right, blocks, budget, *sides, formula,
        job.block_size, job.k, job.min_score, job.skips_query,
    )  # fmt: skip


def _rank_missing(
    spec: TaskSpec, product: TiledProduct, job: JoinJob, missing: Sequence[int], workers: Workers, on_block: OnBlock
) -> None:
    groups = _group_blocks(spec, product, job, missing, workers.count)

    def on_done(task: int) -> None:
        for number in groups[task]:
            on_block(number)

    workers.each(rank_parts, [(spec, numbers) for numbers in groups], on_done)


def _group_blocks(
    spec: TaskSpec, product: TiledProduct, job: JoinJob, missing: Sequence[int], workers: int
) -> list[tuple[int, ...]]:
    """Group the blocks of queries into tasks: one each where a worker caches the product, else few and large ones.

    A large task reads all targets, so it takes as many queries as it may hold at once.
    """
    if spec.is_one_symmetric_block:
        return [(number,) for number in missing]
    per_worker = -(-len(missing) // (_TASKS_PER_WORKER * workers))
    most_blocks = min(per_worker, max(1, spec.budget.hits // max(1, job.reserved_hits)))
    groups: list[list[int]] = []
    total = 0
    for number in missing:
        entries = int(product.row_counts[job.block(number)].sum())
        is_full = not groups or len(groups[-1]) >= most_blocks
        if is_full or total + entries > spec.budget.entries // 2:
            groups.append([])
            total = 0
        groups[-1].append(number)
        total += entries
    return [tuple(numbers) for numbers in groups]


# ---- Joins of tables that workers read -----------------------------------------------------------
def plan_folder(
    folder: str | Path,
    *,
    config: str | Path | None = None,
    duplicates: Duplicates | None = None,
    data: str | Path | None = None,
) -> IngestionPlan | None:
    """Find the Parquet tables of a folder; None where workers cannot read them.

    Workers read tables of one relation each, with an edge in each row, whose parallel edges are counted or dropped.
    The parameters are those of `neupath.load`.
    """
    tables = find_tables(folder, config, duplicates, data)
    if not isinstance(tables, Plan) or tables.options.duplicates == "error":
        return None
    readable = all(selection.table.typed and selection.is_plain for selection in tables.selections)
    return IngestionPlan(tables) if readable else None


def join_folder(
    measure: PathMeasure,
    folder: str | Path,
    out: str | Path,
    k: int | None = 10,
    *,
    min_score: float = 0.0,
    block: int = BLOCK,
    engine: Dask | None = None,
    progress: Progress = no_progress,
) -> Joined:
    """Join a folder of Parquet tables that workers read; the result is that of `join` over the loaded graph.

    Parameters
    ----------
    measure
        A measure over a meta-path.
    folder
        The folder of tables.
    out, k, min_score, block, progress
        As in `neupath.join`.
    engine
        The cluster; workers on this machine by default.
    """
    plan = plan_folder(folder)
    if plan is None:
        raise SourceError(
            f"{folder} is not a folder of Parquet tables, one per relation, of which parallel edges count or are "
            f"dropped; load it in this process, and give it to join"
        )
    return join_plan(measure, plan, out, JoinOptions(k, min_score, None, block), engine=engine, progress=progress)


def join_plan(
    measure: PathMeasure,
    plan: IngestionPlan,
    out: str | Path,
    options: JoinOptions | None = None,
    *,
    engine: Dask | None = None,
    progress: Progress = no_progress,
) -> Joined:
    """Join tables as `join_folder` does, once `plan_folder` has found them."""
    target, dask = Path(out), engine or Dask()
    metapath = MetaPath.parse(plan.schema, str(measure.metapath))
    measure.check(metapath)
    if not measure.meets_at_nodes(metapath):
        raise QueryError(
            f"{measure.name} along '{metapath}' is made of more than the relations' own matrices, and workers read "
            f"those; load the graph in this process instead, and give it to join (‹ingest› local)"
        )
    if metapath.is_filtered:
        raise QueryError(
            f"'{metapath}' has conditions, and workers that read tables do not read the attributes of nodes and edges; "
            f"load the graph in this process instead, and give it to join (‹ingest› local)"
        )
    check_out(target, None if options is None else options.format)
    with claim(target), dask.work_in(parts_of(target)) as (work, workers):
        lefts, rights = measure.half_legs(metapath)
        relations = {link.relation for leg in (*lefts, *(rights or ())) for link in leg.step.links}
        graph = ingest(plan, relations, work / "graph", workers, dask.budget(workers).entries)
        sides = [
            JoinSide(node_type, graph.ids[node_type], write_names(plan, node_type, work / "graph", workers))
            for node_type in (metapath.source, metapath.target)
        ]
        params = measure.params() | {"metapath": str(metapath)}
        job = JoinJob.of(target, options or JoinOptions(), *sides)
        open_job(job, {"scorer": measure.name, "params": params, "tables": graph.digest})

        def run(missing: Sequence[int], on_block: OnBlock) -> None:
            budget = dask.budget(workers, job)
            cutter = LegCutter(graph, work, workers, budget.entries)
            left = cutter.cut(lefts, "left", is_left=True)
            right = None if rights is None else cutter.cut(rights, "right", is_left=False)
            product = multiply_tiles(left, right, work, workers, budget.entries)
            spec = _make_task_spec(job, work, product, measure.formula, (job.sources, job.targets), budget)
            _rank_missing(spec, product, job, missing, workers, on_block)

        return finish_job(job, run, progress)

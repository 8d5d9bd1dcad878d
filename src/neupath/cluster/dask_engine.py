"""Joining a folder of Parquet tables on a cluster, from the tables to the result, where no process holds the graph."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from uuid import uuid4

import numpy as np

from neupath._runtime.progress import Progress, no_progress
from neupath.cluster.id_encoding import IdFiles, write_ids
from neupath.cluster.ingestion import IngestionPlan, ingest
from neupath.cluster.join_tasks import (
    LEFT_NORMS,
    QUERIES,
    RIGHT_NORMS,
    MemoryBudget,
    TaskSpec,
    memory_budget,
    rank_parts,
)
from neupath.cluster.tile_products import LegCutter, Multiplied, multiply_halves, multiply_tiles
from neupath.cluster.tiles import group
from neupath.cluster.workers import PATIENCE, Workers, connect, parse_memory
from neupath.engine.join import (
    BLOCK,
    Joined,
    JoinEngine,
    JoinJob,
    JoinOptions,
    OnBlock,
    check_out,
    claim,
    discard,
    finish_job,
    make_parts,
    make_work,
    open_job,
    parts_of,
)
from neupath.engine.scorer import Scorer
from neupath.errors import QueryError, SourceError
from neupath.graph.hin import HIN, Duplicates
from neupath.graph.metapath import MetaPath
from neupath.io.load import find_tables
from neupath.io.sources import RelationTables
from neupath.measures import PathMeasure

# ---- Dask ----------------------------------------------------------------------------------------
_TASKS_A_WORKER = 2


@dataclass(frozen=True)
class Dask(JoinEngine):
    """Join on a Dask cluster, with the same result to the byte as on one machine.

    With `scheduler`, such as tcp://10.0.0.1:8786, its workers do the work; they must see the folder of the result, and
    have neupath installed. Without, `workers` processes are started here, one a core, each with a `memory_limit` such
    as "2GiB". The factors of the path are multiplied in tiles and lie in files beside the result: none of them needs to
    fit into a worker's memory. Scripts that start workers need the usual `if __name__ == "__main__":`.
    """

    scheduler: str | None = None
    workers: int | None = None
    memory_limit: str | int | None = None
    strip: int | None = None
    """Entries of a factor that a task holds at once; as the workers' memory allows unless said."""
    patience: float = PATIENCE
    """Seconds to wait for workers once all are gone; blocks that are finished are kept."""

    def __post_init__(self) -> None:
        if self.scheduler is not None and (self.workers is not None or self.memory_limit is not None):
            raise QueryError("a scheduler has workers of its own; leave out how many, and their memory limit")
        if self.workers is not None and self.workers < 1:
            raise QueryError(f"workers is {self.workers}; use at least 1, or leave it out for one a core")
        if self.strip is not None and self.strip < 1:
            raise QueryError(f"strip is {self.strip}; hold at least 1 entry at once")
        if not 0 < self.patience < np.inf:
            raise QueryError(f"patience is {self.patience}; wait for some seconds, such as {PATIENCE:.0f}")
        limit = parse_memory(self.memory_limit)
        if limit is not None:
            memory_budget(limit)

    def prepare(self, hin: HIN, scorer: Scorer) -> Scorer:
        """Return the scorer over a graph, without its product."""
        if not isinstance(scorer, PathMeasure):
            raise QueryError(f"{scorer.name} cannot be joined on a cluster, only measures over a meta-path can")
        return scorer if getattr(scorer, "hin_", None) is hin else scorer.resolve(hin)

    def run(self, scorer: Scorer, job: JoinJob, missing: Sequence[int], on_block: OnBlock) -> None:
        """Write the missing blocks of a join over a graph that this process holds, on the workers."""
        if not isinstance(scorer, PathMeasure):
            raise QueryError(f"{scorer.name} cannot be joined on a cluster, only measures over a meta-path can")
        with self.work_in(job.parts) as (work, workers):
            room = self.room(workers, job)
            halves = scorer.halves(scorer.hin_, scorer.metapath_)
            nodes = scorer.hin_.nodes
            multiplied = multiply_halves(halves, work, workers, room.entries)
            sources = write_ids(work / "sources.arrow", nodes[scorer.source_type].ids)
            targets = write_ids(work / "targets.arrow", nodes[scorer.target_type].ids)
            order = make_task_spec(job, work, multiplied, scorer.normalisation, (sources, targets), room)
            rank_missing(order, multiplied, job, missing, workers, on_block)

    @contextmanager
    def work_in(self, folder: Path) -> Iterator[tuple[Path, Workers]]:
        """Connect to workers; yield a folder that all see, and them."""
        make_parts(folder)
        work = make_work(folder, uuid4().hex[:8])
        try:
            memory = parse_memory(self.memory_limit)
            with connect(self.scheduler, self.workers, memory, work, self.patience) as workers:
                yield work, workers
                workers.free()
        finally:
            discard(work)  # with a join that is done, it is gone already
            if folder.is_dir() and not any(folder.iterdir()):
                folder.rmdir()

    def room(self, workers: Workers, job: JoinJob | None = None) -> MemoryBudget:
        """Return how much a task may hold at once."""
        room = memory_budget(workers.memory, job)
        return room if self.strip is None else replace(room, entries=self.strip)


def make_task_spec(
    job: JoinJob,
    work: Path,
    multiplied: Multiplied,
    normalisation: int,
    ids: tuple[IdFiles, IdFiles],
    room: MemoryBudget,
) -> TaskSpec:
    """Write what the workers need to know of a join into a folder, and say where it lies."""
    np.save(work / QUERIES, job.queries)
    np.save(work / LEFT_NORMS, multiplied.left_norms)
    np.save(work / RIGHT_NORMS, multiplied.right_norms)
    blocks = tuple(group(multiplied.entries.tolist(), room.entries))
    return TaskSpec(
        work, job.parts.absolute(), multiplied.left, multiplied.right, blocks, room, *ids, int(normalisation),
        job.block_size, job.k, job.min_score, job.skips_query,
    )  # fmt: skip


def rank_missing(
    order: TaskSpec, multiplied: Multiplied, job: JoinJob, missing: Sequence[int], workers: Workers, on_block: OnBlock
) -> None:
    """Write the missing blocks of a join whose factors lie in tiles."""
    groups = _share_out(order, multiplied, job, missing, workers.count)
    workers.each(rank_parts, [(order, own) for own in groups], lambda at: _report(groups[at], on_block))


def _share_out(
    order: TaskSpec, multiplied: Multiplied, job: JoinJob, missing: Sequence[int], workers: int
) -> list[tuple[int, ...]]:
    """Group the blocks of queries for tasks: each alone where a worker keeps the product, else few and large ones.

    A task then reads all targets, so that it pays to have as many queries as may be held at once.
    """
    if order.fits:
        return [(number,) for number in missing]
    most_parts = min(-(-len(missing) // (_TASKS_A_WORKER * workers)), max(1, order.room.hits // max(1, job.most_hits)))
    groups: list[list[int]] = []
    held = 0
    for number in missing:
        entries = int(multiplied.row_counts[job.block(number)].sum())
        full = not groups or len(groups[-1]) >= most_parts
        if full or held + entries > order.room.entries // 2:
            groups.append([])
            held = 0
        groups[-1].append(number)
        held += entries
    return [tuple(own) for own in groups]


def _report(numbers: Sequence[int], on_block: OnBlock) -> None:
    for number in numbers:
        on_block(number)


# ---- Joining a folder of Parquet tables on a cluster, from the tables to the result, where no process holds the graph
def plan_folder(
    folder: str | Path,
    *,
    config: str | Path | None = None,
    duplicates: Duplicates | None = None,
    data: str | Path | None = None,
) -> IngestionPlan | None:
    """Find what a folder of Parquet tables holds; nothing where workers cannot read it by themselves.

    They read tables of one relation each, whose parallel edges count or are dropped.
    """
    tables = find_tables(folder, config, duplicates, data)
    if not isinstance(tables, RelationTables) or tables.options.duplicates == "error":
        return None
    return IngestionPlan(tables) if all(file.is_parquet for file in tables.files) else None


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
    """Write what `join` would over the graph that `load` makes of the same folder, with the tables read by workers."""
    plan = plan_folder(folder)
    if plan is None:
        raise SourceError(
            f"{folder} is not a folder of Parquet tables, one a relation, of which parallel edges count or are "
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
    """Join over tables that workers can read, as `plan_folder` found them."""
    chosen, target, dask = options or JoinOptions(), Path(out), engine or Dask()
    metapath = MetaPath.parse(plan.schema, str(measure.metapath))
    measure.check(metapath)
    if not measure.meets_at_nodes(metapath):
        raise QueryError(
            f"{measure.name} along '{metapath}' is made of more than the relations' own matrices, and workers read "
            f"those; load the graph in this process instead, and give it to join (‹ingest› local)"
        )
    check_out(target)
    with claim(target), dask.work_in(parts_of(target)) as (work, workers):
        lefts, rights = measure.half_legs(metapath)
        relations = {link.relation for leg in (*lefts, *(rights or ())) for link in leg.step.links}
        graph = ingest(plan, relations, work / "graph", workers, dask.room(workers).entries)
        sources, targets = graph.ids[metapath.source], graph.ids[metapath.target]
        params = measure.params() | {"metapath": str(metapath)}
        job = JoinJob.of(target, chosen, sources, targets, same_type=metapath.source == metapath.target)
        open_job(job, {"scorer": measure.name, "params": params, "tables": graph.digest})

        def run(missing: Sequence[int], on_block: OnBlock) -> None:
            room = dask.room(workers, job)
            cutter = LegCutter(graph, work, workers, room.entries)
            left = cutter.cut(lefts, "left", is_left=True)
            right = None if rights is None else cutter.cut(rights, "right", is_left=False)
            multiplied = multiply_tiles(left, right, work, workers, room.entries)
            order = make_task_spec(job, work, multiplied, measure.normalisation, (sources, targets), room)
            rank_missing(order, multiplied, job, missing, workers, on_block)

        return finish_job(job, run, progress)

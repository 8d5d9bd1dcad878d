"""Joining a folder of Parquet tables on a cluster, from the tables to the result, where no process holds the graph."""

from collections.abc import Sequence
from pathlib import Path

from neupath.blocks import Sides, claimed, parts_of
from neupath.cluster.engine import Dask, make_order, rank_missing
from neupath.cluster.ingestion import Plan, ingest
from neupath.cluster.legs import LegCutter
from neupath.cluster.products import multiply_tiles
from neupath.datasets.registry import find_tables
from neupath.datasets.sources import RelationTables
from neupath.errors import QueryError, SourceError
from neupath.graph import Duplicates
from neupath.join import BLOCK, Joined, Progress, Terms, Told, check_terms, finish_job, open_job
from neupath.measures import PathMeasure
from neupath.metapath import MetaPath


def plan_folder(
    folder: str | Path,
    *,
    config: str | Path | None = None,
    duplicates: Duplicates | None = None,
    data: str | Path | None = None,
) -> Plan | None:
    """Find what a folder of Parquet tables holds; nothing where workers cannot read it by themselves.

    They read tables of one relation each, whose parallel edges count or are dropped.
    """
    tables = find_tables(folder, config, duplicates, data)
    if not isinstance(tables, RelationTables) or tables.choices.duplicates == "error":
        return None
    return Plan(tables) if all(file.is_parquet for file in tables.files) else None


def join_folder(
    measure: PathMeasure,
    folder: str | Path,
    path: str | Path,
    k: int | None = 10,
    *,
    min_score: float = 0.0,
    block: int = BLOCK,
    engine: Dask | None = None,
    progress: Progress = lambda *_: None,
) -> Joined:
    """Write what `join` would over the graph that `load` makes of the same folder, with the tables read by workers."""
    plan = plan_folder(folder)
    if plan is None:
        raise SourceError(
            f"{folder} is not a folder of Parquet tables, one a relation, of which parallel edges count or are "
            f"dropped; load it in this process, and give it to join"
        )
    return join_plan(measure, plan, path, Terms(k, min_score, None, block), engine=engine, progress=progress)


def join_plan(
    measure: PathMeasure,
    plan: Plan,
    path: str | Path,
    terms: Terms | None = None,
    *,
    engine: Dask | None = None,
    progress: Progress = lambda *_: None,
) -> Joined:
    """Join over tables that workers can read, as `plan_folder` found them."""
    asked, target, dask = terms or Terms(), Path(path), engine or Dask()
    metapath = MetaPath.parse(plan.schema, str(measure.metapath))
    measure.check(metapath)
    if not measure.meets_at_nodes(metapath):
        raise QueryError(
            f"{measure.name} along '{metapath}' is made of more than the relations' own matrices, and workers read "
            f"those; load the graph in this process instead, and give it to join (--ingest local)"
        )
    check_terms(target, asked)
    with claimed(target), dask.work_in(parts_of(target)) as (work, workers):
        lefts, rights = measure.half_legs(metapath)
        relations = {link.relation for leg in (*lefts, *(rights or ())) for link in leg.step.links}
        graph = ingest(plan, relations, work / "graph", workers, dask.room(workers).entries)
        sources, targets = graph.ids[metapath.source], graph.ids[metapath.target]
        sides = Sides(len(sources), len(targets), sources.kind, targets.kind, metapath.source == metapath.target)
        params = measure.params() | {"metapath": str(metapath)}
        job = open_job(target, asked, sides, {"scorer": measure.name, "params": params, "tables": graph.digest})

        def run(missing: Sequence[int], told: Told) -> None:
            room = dask.room(workers, job)
            cutter = LegCutter(graph, work, workers, room.entries)
            left = cutter.cut(lefts, "left", is_left=True)
            right = None if rights is None else cutter.cut(rights, "right", is_left=False)
            multiplied = multiply_tiles(left, right, work, workers, room.entries)
            order = make_order(job, work, multiplied, measure.normalisation, (sources, targets), room)
            rank_missing(order, multiplied, job, missing, workers, told)

        return finish_job(job, run, progress)

"""join: the most similar targets of every node, as a Parquet file."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from neupath.cli.terminal import (
    ConfigFile,
    Data,
    DuplicatesOption,
    Graph,
    Json,
    Measure,
    MetaPathOption,
    Model,
    ProgressBars,
    StoppedError,
    err,
    load_graph,
    note_relations,
    print_json,
    required_path,
)
from neupath.engine.join import BLOCK, Joined, JoinEngine, JoinOptions, LocalEngine, count_finished, parts_of
from neupath.engine.join import join as join_all
from neupath.engine.scorer import Scorer
from neupath.errors import QueryError
from neupath.graph.hin import HIN
from neupath.graph.metapath import MetaPath
from neupath.learn.registry import make_scorer
from neupath.measures import measure_named

if TYPE_CHECKING:
    from neupath.cluster import Dask


def join(
    graph: Graph,
    out: Annotated[Path, typer.Option("--out", help="The .parquet file to write, or a folder of such.")],
    metapath: MetaPathOption = None,
    k: Annotated[int | None, typer.Option("-k", help="How many hits a query; 10, or all with --min-score.")] = None,
    min_score: Annotated[float, typer.Option("--min-score", help="Keep only pairs with at least this score.")] = 0.0,
    measure: Measure = "pathsim",
    model: Model = None,
    block: Annotated[int, typer.Option("--block", help="Queries done and kept at a time.")] = BLOCK,
    threads: Annotated[int | None, typer.Option("--threads", help="Threads; one a core by default.")] = None,
    engine: Annotated[
        Literal["local", "dask"], typer.Option("--engine", help="Work in this process, or on a cluster.")
    ] = "local",
    scheduler: Annotated[
        str | None, typer.Option("--scheduler", help="The address of a Dask scheduler, such as tcp://10.0.0.1:8786.")
    ] = None,
    workers: Annotated[
        int | None, typer.Option("--workers", help="Processes to start without a scheduler; one a core by default.")
    ] = None,
    memory_limit: Annotated[
        str | None, typer.Option("--memory-limit", help="Memory of each process that is started, such as 2GiB.")
    ] = None,
    patience: Annotated[
        float | None, typer.Option("--patience", help="Seconds to wait for workers once all are gone; 120 by default.")
    ] = None,
    ingest: Annotated[
        Literal["cluster", "local"] | None,
        typer.Option("--ingest", help="Who reads a folder of Parquet tables; the cluster, unless it cannot."),
    ] = None,
    config: ConfigFile = None,
    duplicates: DuplicatesOption = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Find the most similar targets of every node, and write them to a Parquet file.

    Its columns are query, rank, target, score, ordered by query and rank. A join that was interrupted goes on after its
    last finished block when the same command is given again, and the file is the same to the byte.

    With --engine dask, a folder of Parquet tables, whole or in folders of parts, is read by the workers: no process
    holds the graph.

    Examples:
      neupath join stdlib --metapath class-method-class -k 10 --out similar.parquet

      neupath join stdlib --metapath class-method-class --min-score 0.5 --out alike.parquet

      neupath join stdlib --metapath class-method-class --block 500 --out similar/

      neupath join stdlib --metapath class-method-class --engine dask --workers 2 --out similar.parquet

      neupath join tables/ --metapath author-paper-author --engine dask --memory-limit 2GiB --out similar.parquet

    """
    chosen = _engine(engine, threads, scheduler, workers, memory_limit, patience, model)
    if ingest is not None and engine == "local":
        raise QueryError("--ingest says who of a cluster reads the tables; give --engine dask, too")
    if model is not None and metapath is not None:
        raise QueryError("a saved model knows what similar means; give either --model or --metapath")
    terms = JoinOptions(10 if k is None and min_score == 0 else k, min_score, block=block)
    source = _Source(graph, config, duplicates, data)
    joined = None
    with _telling_what_is_kept(out):
        if not isinstance(chosen, LocalEngine) and ingest != "local":
            joined = _join_tables(source, measure, metapath, out, terms, chosen, ingest == "cluster")
        if joined is None:
            joined = _join_graph(source, model, measure, metapath, out, terms, chosen)
    if as_json:
        print_json(joined.to_dict())
        return
    resumed = f"; {joined.resumed:,} of {joined.blocks:,} blocks were done before" if joined.resumed else ""
    print(f"{joined.pairs:,} pairs of {joined.queries:,} queries written to {out}{resumed}")


def _engine(
    engine: str,
    threads: int | None,
    scheduler: str | None,
    workers: int | None,
    memory_limit: str | None,
    patience: float | None,
    model: Path | None,
) -> "LocalEngine | Dask":
    """Return the engine that was asked for, or say which options it does not take."""
    if engine == "local":
        if any(option is not None for option in (scheduler, workers, memory_limit, patience)):
            raise QueryError(
                "--scheduler, --workers, --memory-limit and --patience are of a cluster; give --engine dask, too"
            )
        return LocalEngine(threads)
    if threads is not None or model is not None:
        raise QueryError("--engine dask joins by --metapath, on --workers processes; leave out --threads and --model")
    from neupath.cluster import PATIENCE, Dask

    return Dask(scheduler, workers, memory_limit, patience=PATIENCE if patience is None else patience)


@contextmanager
def _telling_what_is_kept(out: Path) -> Iterator[None]:
    """Say to whom interrupts a join how much of it is not lost."""
    try:
        yield
    except KeyboardInterrupt as stop:
        finished = count_finished(out)
        if not finished:
            raise StoppedError("interrupted before a block was finished; the same command begins anew") from stop
        raise StoppedError(
            f"interrupted; {finished:,} finished blocks are kept in {parts_of(out)}, and the same command goes on with "
            f"the others"
        ) from stop


@dataclass(frozen=True)
class _Source:
    """The graph a command was given, and how to read it."""

    graph: str
    config: Path | None
    duplicates: Any
    data: Path | None


def _join_graph(
    source: _Source,
    model: Path | None,
    measure: str,
    path: str | None,
    out: Path,
    terms: JoinOptions,
    engine: JoinEngine,
) -> Joined:
    """Join over a graph that this process reads."""
    hin = load_graph(source.graph, source.config, source.duplicates, source.data)
    scorer = _scorer(hin, model, measure, path, bound=not isinstance(engine, LocalEngine))
    if scorer.metapath_text is not None:
        note_relations(hin.metapath(scorer.metapath_text).all_relations_steps())
    with ProgressBars(err).counter("joining") as bar:
        return join_all(
            hin, scorer, out, terms.k, min_score=terms.min_score, block=terms.block, engine=engine,
            progress=lambda _, done, total: bar(done, total or 0),
        )  # fmt: skip


def _join_tables(
    source: _Source, measure: str, path: str | None, out: Path, terms: JoinOptions, engine: "Dask", required: bool
) -> Joined | None:
    """Join over tables that the workers read; nothing where they cannot."""
    from neupath.cluster import join_plan, plan_folder

    plan = plan_folder(source.graph, config=source.config, duplicates=source.duplicates, data=source.data)
    if plan is None:
        if required:
            raise QueryError(
                f"{source.graph} is not a folder of Parquet tables, one a relation, of which parallel edges count or "
                f"are dropped; leave out --ingest cluster"
            )
        return None
    metapath = MetaPath.parse(plan.schema, required_path(plan.schema, path))
    chosen = measure_named(measure, metapath)
    if not required and not chosen.meets_at_nodes(metapath):
        return None
    note_relations(metapath.all_relations_steps())
    with ProgressBars(err).counter("joining") as bar:
        return join_plan(chosen, plan, out, terms, engine=engine, progress=lambda _, done, total: bar(done, total or 0))


def _scorer(hin: HIN, model: Path | None, measure: str, path: str | None, bound: bool) -> Scorer:
    """Return the saved model, or the measure; only bound to the graph where its product is made elsewhere."""
    if bound:
        return measure_named(measure, required_path(hin.schema, path)).resolve(hin)
    return make_scorer(hin, metapath=path, measure=None if model else measure, model=model)

"""join: the most similar targets of every node, as Parquet, CSV or files for Neo4j."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from neupath.cli.explain_commands import PermutationsOption, SeedOption, SignificanceOption, check_evidence_options
from neupath.cli.program import INTERRUPTED, CommandError
from neupath.cli.terminal import (
    AmongFileOption,
    AmongOption,
    AnyMeasureOption,
    GraphSource,
    JsonOption,
    MetaPathsOption,
    ModelOption,
    ProgressBars,
    RefinementFlags,
    UnlessOption,
    WeightsOption,
    WhereOption,
    note_relations,
    print_json,
    print_text,
    read_among,
    read_weights,
    reads_graph,
    refines_metapath,
)
from neupath.engine.join import BLOCK, Format, Joined, JoinEngine, JoinOptions, LocalEngine, count_finished, parts_of
from neupath.engine.join import join as join_all
from neupath.errors import QueryError, listed
from neupath.evidence.significance import PERMUTATIONS, add_p_values, check_significance, check_single_file
from neupath.graph.metapath import MetaPath
from neupath.learn.registry import check_model_alone, choose_measure, is_combined, make_scorer


@reads_graph
@refines_metapath
def join(
    source: GraphSource,
    refinement: RefinementFlags,
    out: Annotated[Path, typer.Option("--out", help="The .parquet or .csv file to write, or a folder for several.")],
    metapath: MetaPathsOption = None,
    k: Annotated[int | None, typer.Option("-k", help="Hits per query; 10, or all with --min-score.")] = None,
    min_score: Annotated[float, typer.Option("--min-score", help="Keep only pairs with at least this score.")] = 0.0,
    measure: AnyMeasureOption = None,
    node_type: Annotated[
        str | None, typer.Option("--node-type", help="The type to join, for a measure over the whole graph.")
    ] = None,
    model: ModelOption = None,
    where_query: Annotated[
        list[str] | None, typer.Option("--where-query", help="Join only queries that fit, such as 'year >= 2000'.")
    ] = None,
    where: WhereOption = None,
    unless: UnlessOption = None,
    among: AmongOption = None,
    among_file: AmongFileOption = None,
    weights: WeightsOption = None,
    format: Annotated[
        Format | None, typer.Option("--format", help="neo4j writes a folder for neo4j-admin; else as --out ends.")
    ] = None,
    block: Annotated[int, typer.Option("--block", help="Queries that are finished at a time.")] = BLOCK,
    threads: Annotated[int | None, typer.Option("--threads", help="Threads; by default one per core.")] = None,
    device: Annotated[
        str | None, typer.Option("--device", help="cpu or cuda; by default cpu, or for a model CUDA if there is one.")
    ] = None,
    engine: Annotated[
        Literal["local", "dask"], typer.Option("--engine", help="Work in this process, or on a cluster.")
    ] = "local",
    scheduler: Annotated[
        str | None, typer.Option("--scheduler", help="The address of a Dask scheduler, such as tcp://10.0.0.1:8786.")
    ] = None,
    workers: Annotated[
        int | None, typer.Option("--workers", help="Processes to start without a scheduler; by default one per core.")
    ] = None,
    memory_limit: Annotated[
        str | None, typer.Option("--memory-limit", help="Memory of each process that is started, such as 2GiB.")
    ] = None,
    patience: Annotated[
        float | None, typer.Option("--patience", help="Seconds to wait for workers once all are gone; 120 by default.")
    ] = None,
    ingest: Annotated[str | None, typer.Option("--ingest", hidden=True)] = None,
    with_significance: SignificanceOption = False,
    permutations: PermutationsOption = None,
    seed: SeedOption = None,
    as_json: JsonOption = False,
) -> None:
    """Find the most similar targets of every node, and write them to a Parquet or CSV file.

    Its columns are query, rank, target, score, ordered by query and rank, and
    query_name and target_name where nodes have names. An interrupted join
    resumes after its last finished block when the same command is run again,
    and the file is the same to the byte.

    With --format neo4j, --out is a folder with relationships.csv and the nodes
    of each type, as neo4j-admin database import reads them.

    With --significance, the columns p_value and q_value follow once all pairs
    are found, as search --significance shows them.

    With --device cuda, a GPU ranks, and with --engine dask, a cluster; the file
    is the same to the byte. Import a graph that is larger than memory into a
    store once (neupath import), and join the store: its files are mapped.

    Examples:
      neupath join stdlib -p class-method-class -k 10 --out similar.parquet
      neupath join stdlib -p class-method-class --min-score 0.5 --out near.csv
      neupath join toy -p APVPA --unless APA --out new.csv
      neupath join stdlib -p class-method-class --format neo4j --out similar
      neupath join stdlib -p class-method-class --block 500 --out similar/
      neupath join stdlib -p class-method-class --device cuda --out top.parquet
      neupath join stdlib -p class-method-class --engine dask --out top.parquet
      neupath join STORE -p APA --engine dask --memory-limit 2GiB --out top
    """
    cluster = {"scheduler": scheduler, "workers": workers, "memory_limit": memory_limit, "patience": patience}
    cluster = {option: value for option, value in cluster.items() if value is not None}
    if ingest is not None:  # an option of earlier versions
        raise QueryError(
            "--ingest is gone, since workers no longer read tables; import the folder into a store once "
            "(`neupath import FOLDER --to STORE`), and join the store"
        )
    if engine == "local" and cluster:
        flags = listed(f"‹{option}›" for option in cluster)
        raise QueryError(f"{flags} only works with a cluster; give --engine dask, too")
    if model is not None:
        check_model_alone(
            metapath=metapath or None, weights=weights, measure=measure, node_type=node_type, **refinement.options()
        )
    combines = weights is not None or len(metapath or ()) > 1 or is_combined(measure)
    request: dict[str, Any] = {
        "metapath": metapath[0] if metapath else None,
        "measure": measure,
        "node_type": node_type,
    }
    filters: dict[str, Any] = {
        "where_query": where_query or (), "where": where or (), "unless": unless or (),
        "among": read_among(among, among_file),
    }  # fmt: skip
    options = JoinOptions(10 if k is None and min_score == 0 else k, min_score, block=block, format=format)
    check_evidence_options(with_significance=with_significance, permutations=permutations, seed=seed)
    if with_significance:
        check_single_file(out)
        if engine != "local" or model is not None or format == "neo4j" or combines or any(filters.values()):
            raise QueryError("--significance needs an exact measure and --engine local; leave out the other options")
    with _reporting_finished_blocks(out):
        if engine == "local":
            count = PERMUTATIONS if permutations is None else permutations
            tests = (count, seed or 0) if with_significance else None
            request |= {"model": model, "device": device}
            if combines:
                request |= {"metapath": metapath, "weights": read_weights(weights)}
            joined = _join_graph(source, refinement, request, out, options, LocalEngine(threads), filters, tests)
        else:
            if threads is not None or model is not None or device is not None:
                raise QueryError(
                    "--engine dask joins by a measure, on --workers; leave out --threads, --device and --model"
                )
            if combines:
                raise QueryError(
                    "--engine dask joins along one meta-path; leave out --weights and the other meta-paths"
                )
            from neupath.cluster import Dask

            joined = _join_graph(source, refinement, request, out, options, Dask(**cluster), filters)  # type: ignore[arg-type]
    if as_json:
        print_json(joined.to_dict())
        return
    resumed = f"; {joined.resumed:,} of {joined.blocks:,} blocks were done before" if joined.resumed else ""
    print_text(f"{joined.pairs:,} pairs of {joined.queries:,} queries written to {out}{resumed}")


@contextmanager
def _reporting_finished_blocks(out: Path) -> Iterator[None]:
    """When the user interrupts a join, print how much of it is kept."""
    try:
        yield
    except KeyboardInterrupt as stop:
        finished = count_finished(out)
        message = "interrupted before a block was finished; the same command starts again"
        if finished:
            message = (
                f"interrupted; {finished:,} finished blocks are kept in {parts_of(out)}, and the same command resumes "
                f"with the others"
            )
        raise CommandError(message, INTERRUPTED) from stop


def _join_graph(
    source: GraphSource, refinement: RefinementFlags, request: dict[str, Any], out: Path, options: JoinOptions,
    engine: JoinEngine, filters: dict[str, Any], tests: tuple[int, int] | None = None,
) -> Joined:  # fmt: skip
    """Join over a graph that this process reads; `tests`, permutations and a seed, add p-values."""
    hin = source.load()
    request = request | {"metapath": refinement.refine(hin, request["metapath"])}
    if isinstance(request["metapath"], MetaPath):
        note_relations(request["metapath"])
    fits = isinstance(engine, LocalEngine)  # a cluster multiplies elsewhere
    with ProgressBars() as bars:
        scorer = make_scorer(hin, **request, progress=bars) if fits else choose_measure(hin.schema, **request)
        if tests is not None:
            check_significance(scorer, *tests)
        joined = join_all(
            hin, scorer, out, options.k, min_score=options.min_score, block=options.block, format=options.format,
            engine=engine, progress=bars, **filters,
        )  # fmt: skip
        if tests is not None:
            add_p_values(joined, scorer, permutations=tests[0], seed=tests[1], progress=bars)
        return joined

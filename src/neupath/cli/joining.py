"""join: the most similar targets of every node, as a Parquet file."""

from pathlib import Path
from typing import Annotated

import typer

from neupath.cli.console import err, load_graph, note_relations, print_json, required_path
from neupath.cli.options import ConfigFile, Data, DuplicatesOption, Graph, Json, Measure, MetaPathOption, Model
from neupath.errors import QueryError
from neupath.join import BLOCK
from neupath.join import join as join_all
from neupath.measures import measure_named
from neupath.progress import ProgressBars
from neupath.saved import load_scorer
from neupath.scorer import Scorer


def join(
    graph: Graph,
    out: Annotated[Path, typer.Option("--out", help="The .parquet file to write.")],
    path: MetaPathOption = None,
    k: Annotated[int | None, typer.Option("-k", help="How many hits a query; 10, or all with --min-score.")] = None,
    min_score: Annotated[float, typer.Option("--min-score", help="Keep only pairs with at least this score.")] = 0.0,
    measure: Measure = "pathsim",
    model: Model = None,
    block: Annotated[int, typer.Option("--block", help="Queries done and kept at a time.")] = BLOCK,
    threads: Annotated[int | None, typer.Option("--threads", help="Threads; one a core by default.")] = None,
    config: ConfigFile = None,
    duplicates: DuplicatesOption = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Find the most similar targets of every node, and write them to a Parquet file.

    Its columns are query, rank, target, score, ordered by query and rank. A join that was interrupted goes on after its
    last finished block when the same command is given again, and the file is the same to the byte.

    Examples:
      neupath join stdlib --path class-method-class -k 10 --out similar.parquet

      neupath join stdlib --path class-method-class --min-score 0.5 --out alike.parquet

    """
    if model is not None and path is not None:
        raise QueryError("a saved model knows what similar means; give either --model or --path")
    hin = load_graph(graph, config, duplicates, data)
    scorer: Scorer = load_scorer(model, hin) if model else measure_named(measure, required_path(hin, path)).fit(hin)
    if scorer.metapath_text is not None:
        note_relations(hin.metapath(scorer.metapath_text).all_relations_steps())
    limit = 10 if k is None and min_score == 0 else k
    with ProgressBars(err).counter("joining") as bar:
        joined = join_all(scorer, out, limit, min_score=min_score, block=block, threads=threads, progress=bar)
    if as_json:
        print_json(joined.to_dict())
        return
    resumed = f"; {joined.resumed:,} of {joined.blocks:,} blocks were done before" if joined.resumed else ""
    print(f"{joined.pairs:,} pairs of {joined.queries:,} queries written to {out}{resumed}")

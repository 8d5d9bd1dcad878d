"""prepare: an index of files that any process searches. join: the most similar targets of every node, as a file."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from neupath import answers, requests
from neupath.cli.program import INTERRUPTED, CommandError
from neupath.cli.terminal import (
    GraphSource,
    JsonOption,
    ProgressBars,
    note,
    note_relations,
    print_json,
    print_text,
    takes_options,
)
from neupath.engine.files import open_files
from neupath.engine.join import JoinEstimate, count_finished, parts_of
from neupath.errors import QueryError
from neupath.graph.hin import HIN
from neupath.requests import option


class JoinSource(GraphSource):
    """GRAPH or an index, and the options for reading it."""

    graph: str | None = option(  # type: ignore[assignment]
        "As for search; leave it out with ‹index›.", argument="[GRAPH]", default=None
    )
    index: str | None = option(
        "Join a prepared index, a folder or s3://bucket/prefix, in place of GRAPH.", default=None
    )

    def load(self, as_of: int | None = None, *, with_notes: bool = True) -> HIN:
        if (self.graph is None) == (self.index is None):
            raise QueryError("give either a graph or ‹index›, and one of them", parameter="index")
        chosen = replace(self, graph=self.graph or self.index)
        return GraphSource.load(chosen, as_of, with_notes=with_notes)

    def options(self) -> dict[str, object]:
        return {name: value for name, value in super().options().items() if name != "index"}


@takes_options
def prepare(source: GraphSource, asked: requests.Prepare, as_json: JsonOption = False) -> None:
    """Write an index of a measure along a meta-path, which any process opens and searches without the graph.

    The index is a folder of files, or the same objects under s3:// or gs://.
    It works as GRAPH in search, explain, join, serve and mcp, needs no -p
    there, and gives the hits and scores of the graph, to the last digit.
    Preparing it again replaces it at once; an interrupted preparation goes on
    where it was when the same command is run again.

    Examples:
      neupath prepare toy -p APVPA --to authors.index
      neupath search authors.index Mike
      neupath prepare STORE -p APA --where 'year >= 2000' --to s3://bucket/apa
      neupath prepare STORE -p APVPA --engine dask --to authors.index
    """
    hin = source.load(asked.as_of)
    with ProgressBars() as bars:
        url = answers.prepare(hin, asked, bars, note_relations)
    files = open_files(url)
    if as_json:
        print_json(
            {"index": url, "bytes": files.size, "metapath": files.manifest["metapath"], "measure": asked.measure}
        )
        return
    entries = len(files["left.data"])
    print_text(f"{entries:,} entries along {files.manifest['metapath']}, {_in_mib(files.size)}, written to {url}")


def _in_mib(size: int) -> str:
    return f"{size / 2**20:,.1f} MiB"


@takes_options
def join(source: JoinSource, asked: requests.Join, as_json: JsonOption = False) -> None:
    """Find the most similar targets of every node, and write them to a Parquet or CSV file.

    Its columns are query, rank, target, score, ordered by query and rank, and
    query_name and target_name where nodes have names. An interrupted join
    resumes after its last finished block when the same command is run again,
    and the file is the same to the byte, whoever ranks: with --device cuda a
    GPU, with --engine the workers of Dask, Ray or Spark, with --part 3/8 the
    third of eight such commands on machines that share the folder of --out.

    With --format neo4j, --out is a folder with relationships.csv and the nodes
    of each type, as neo4j-admin database import reads them, and load.cypher,
    which adds the pairs to a database that runs. --into writes them into a
    table of DuckDB or PostgreSQL.

    With --significance, the columns p_value and q_value follow once all pairs
    are found, as search --significance shows them.

    Examples:
      neupath join stdlib -p class-method-class -k 10 --out similar.parquet
      neupath join stdlib -p class-method-class --min-score 0.5 --out near.csv
      neupath join stdlib -p class-method-class --estimate --out all.parquet
      neupath join toy -p APVPA --unless APA --out new.csv
      neupath join toy -p APVPA --out top.parquet --into results.duckdb
      neupath join stdlib -p class-method-class --format neo4j --out similar
      neupath join stdlib -p class-method-class --engine dask --out top.parquet
      neupath join --index authors.index --part 3/8 --out top.parquet
    """
    answers.check_join(asked)
    with _reporting_finished_blocks(asked.out):
        hin = source.load()
        with ProgressBars() as bars:
            if asked.estimate:
                estimate = answers.estimate_join(hin, asked, bars)
            else:
                joined = answers.join(hin, asked, bars, note_relations, _say_what_it_takes)
    if asked.estimate:
        print_json(estimate.to_dict()) if as_json else print_text(estimate.text)
        return
    if as_json:
        print_json(joined.to_dict())
        return
    resumed = f"; {joined.resumed:,} of {joined.blocks:,} blocks were done before" if joined.resumed else ""
    done = f"{joined.pairs:,} pairs of {joined.queries:,} queries"
    if joined.left:
        print_text(f"{done} are in {parts_of(asked.out)}{resumed}; {joined.left:,} blocks of other parts are not yet")
    else:
        print_text(f"{done} written to {asked.out}{resumed}")


def _say_what_it_takes(estimate: JoinEstimate) -> None:
    note(f"this join takes {estimate.text}")


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

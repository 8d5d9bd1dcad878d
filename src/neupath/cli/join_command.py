"""join: the most similar targets of every node, as Parquet, CSV or files for Neo4j."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from neupath import answers, requests
from neupath.cli.program import INTERRUPTED, CommandError
from neupath.cli.terminal import (
    GraphSource,
    JsonOption,
    ProgressBars,
    note_relations,
    print_json,
    print_text,
    takes_options,
)
from neupath.engine.join import count_finished, parts_of
from neupath.errors import QueryError


@takes_options
def join(source: GraphSource, asked: requests.Join, as_json: JsonOption = False) -> None:
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
    if asked.ingest is not None:  # an option of earlier versions
        raise QueryError(
            "--ingest is gone, since workers no longer read tables; import the folder into a store once "
            "(`neupath import FOLDER --to STORE`), and join the store"
        )
    answers.check_join(asked)
    with _reporting_finished_blocks(asked.out):
        hin = source.load()
        with ProgressBars() as bars:
            joined = answers.join(hin, asked, bars, note_relations)
    if as_json:
        print_json(joined.to_dict())
        return
    resumed = f"; {joined.resumed:,} of {joined.blocks:,} blocks were done before" if joined.resumed else ""
    print_text(f"{joined.pairs:,} pairs of {joined.queries:,} queries written to {asked.out}{resumed}")


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

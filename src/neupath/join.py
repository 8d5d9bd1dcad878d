"""Join: the top K of every query, streamed to one Parquet file or a folder of them, resumable, in bounded memory.

Blocks of queries are finished one by one as files of their own beside the result, in FILE.parts, and put together in
their order, one row group a block, or left as the files of a folder. A join that was killed goes on with the blocks
that are missing, and its file is the same to the byte, whichever engine finished which block. Memory, besides the graph
and the product: some 130 bytes for each of `block` × K hits, until they are written.
"""

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import pyarrow as pa

from neupath.blocks import Job, Sides, claimed, open_parts, remove_parts
from neupath.errors import QueryError
from neupath.files import check_folder
from neupath.graph import digest
from neupath.hit_tables import Found, HitsFile, HitsFolder, found_of, hit_schema, write_hits
from neupath.nodes import Rows
from neupath.scorer import Scorer
from neupath.search import check_k
from neupath.threads import check_threads

BLOCK = 4096
_MOST_HITS, _MOST_REACHED = 1 << 22, 1 << 24
"""Hits held at once; blocks are smaller where K is large, or where all targets might reach a score."""

Progress = Callable[[int, int], None]
"""Hears how many queries are done, and how many there are."""


@dataclass(frozen=True)
class Joined:
    """What a join wrote."""

    path: Path
    queries: int
    pairs: int
    blocks: int
    resumed: int
    """Blocks that an earlier run had finished."""

    def to_dict(self) -> dict[str, object]:
        """Return what `join --json` prints."""
        return {
            "file": str(self.path), "queries": self.queries, "pairs": self.pairs, "blocks": self.blocks,
            "resumed": self.resumed,
        }  # fmt: skip


@dataclass(frozen=True)
class Terms:
    """What a join keeps: `k` hits a query or all that reach a score, of some queries or all, a block at a time."""

    k: int | None = 10
    min_score: float = 0.0
    queries: Rows | None = None
    block: int = BLOCK


Told = Callable[[int], None]
"""Hears which block is done."""


class Engine(Protocol):
    """Does the work of a join."""

    def run(self, scorer: Scorer, job: Job, missing: Sequence[int], told: Told) -> None:
        """Write the missing blocks in any order, each whole, and tell of each."""


@dataclass(frozen=True)
class Local:
    """The engine that works in this process; one thread a core unless said."""

    threads: int | None = None

    def run(self, scorer: Scorer, job: Job, missing: Sequence[int], told: Told) -> None:
        sources, targets = (scorer.hin_.nodes[node_type].ids for node_type in (scorer.source_type, scorer.target_type))
        for number in missing:
            queries = job.block(number)
            found = _rank(scorer, job, queries, self.threads)
            write_hits(job.part(number), sources.take(pa.array(queries)), targets.take(pa.array(found.rows)), found)
            told(number)


def join(
    scorer: Scorer,
    path: str | Path,
    k: int | None = 10,
    *,
    queries: Rows | None = None,
    min_score: float = 0.0,
    block: int = BLOCK,
    threads: int | None = None,
    engine: Engine | None = None,
    progress: Progress = lambda *_: None,
) -> Joined:
    """Write the k most similar targets of each query to a Parquet file with the columns query, rank, target, score.

    A path without an ending becomes a folder of such files, whose rows in the order of their names are the same.
    Queries are rows, all by default; each is left out of its own hits. With `min_score`, only pairs that reach it are
    kept, and `k` = None keeps all of them. The engine is this process with some `threads`, or `cluster.Dask`.

    >>> from tempfile import TemporaryDirectory
    >>> import pyarrow.parquet as pq
    >>> from neupath import PathSim, load
    >>> with TemporaryDirectory() as folder:
    ...     joined = join(PathSim("APVPA").fit(load("toy")), Path(folder) / "top.parquet", k=2)
    ...     pq.read_table(joined.path).slice(0, 2).to_pydict()["target"]
    ['Bob', 'Mary']
    """
    check_threads(threads)
    terms = Terms(k, min_score, queries, block)
    check_terms(Path(path), terms)
    source, target = (scorer.hin_.nodes[node_type] for node_type in (scorer.source_type, scorer.target_type))
    sides = Sides(len(source), len(target), source.ids.type, target.ids.type, source is target)
    about: dict[str, object] = {
        "scorer": scorer.name, "params": scorer.params(), "learned": scorer.fingerprint(), "graph": digest(scorer.hin_)
    }  # fmt: skip
    chosen = engine or Local(threads)
    with claimed(Path(path)):
        job = open_job(Path(path), terms, sides, about)
        return finish_job(job, lambda missing, told: chosen.run(scorer, job, missing, told), progress)


def open_job(target: Path, terms: Terms, sides: Sides, about: dict[str, object]) -> Job:
    """Make the folder of a join's blocks, or find those that an earlier run finished; `about` says what is joined."""
    asked = np.arange(sides.sources) if terms.queries is None else np.asarray(terms.queries, np.int64)
    limit = None if terms.k is None else check_k(terms.k)
    if len(asked) and not 0 <= asked.min() <= asked.max() < sides.sources:
        raise QueryError(f"queries are rows from 0 to {sides.sources - 1}; {asked.min()} to {asked.max()} are given")
    most, width = (_MOST_REACHED, sides.targets) if limit is None else (_MOST_HITS, min(limit, sides.targets))
    step = max(1, min(terms.block, most // max(1, width)))
    job = Job(asked, limit, terms.min_score, step, target, sides)
    open_parts(job.folder, job.describe(about))
    return job


def finish_job(job: Job, run: Callable[[Sequence[int], Told], None], progress: Progress) -> Joined:
    """Let `run` write the blocks that are missing, and put all together."""
    missing = job.missing()
    total = len(job.queries)
    done = total - sum(len(job.block(number)) for number in missing)
    progress(done, total)

    def told(number: int) -> None:
        nonlocal done
        done += len(job.block(number))
        hits.catch_up()  # while an engine elsewhere goes on with other blocks
        progress(done, total)

    try:
        with _open_hits(job) as hits:
            if missing:
                run(missing, told)
            hits.finish(job.target)
    except BaseException:
        if len(job.missing()) == job.count:  # nothing is lost, and the next join may be another
            shutil.rmtree(job.folder, ignore_errors=True)
        raise
    remove_parts(job.folder)
    return Joined(job.target, len(job.queries), hits.pairs, job.count, job.count - len(missing))


def _open_hits(job: Job) -> HitsFile | HitsFolder:
    """Begin to put blocks together."""
    schema = hit_schema(job.sides.source_kind, job.sides.target_kind)
    tables = [job.part(number) for number in range(job.count)]
    if not job.target.suffix:
        return HitsFolder(job.folder, schema, tables)
    return HitsFile(job.folder / "together", schema, tables)


def check_terms(target: Path, terms: Terms) -> None:
    """Refuse what cannot be joined, before work is done that ends in it."""
    if target.suffix not in ("", ".parquet"):
        raise QueryError(f"cannot join to {target}; the name must end in .parquet, or have no ending for a folder")
    if target.is_dir() or (not target.suffix and target.exists()):
        kind = "folder" if target.is_dir() else "file"
        raise QueryError(f"cannot join to {target}: a {kind} of that name is there; remove it, or give another name")
    check_folder(target.parent)
    if terms.k is not None:
        check_k(terms.k)
    if terms.block < 1:
        raise QueryError(f"block is {terms.block}; take at least 1 query at a time")
    if not 0 <= terms.min_score < np.inf:
        raise QueryError(f"min_score is {terms.min_score}; it must be 0 or more, and finite")
    if terms.k is None and terms.min_score == 0:
        raise QueryError("without k, say which pairs to keep with min_score, such as 0.5")
    if terms.queries is not None and len(np.unique(terms.queries)) < len(terms.queries):
        raise QueryError("a query is given twice; give each once")


def _rank(scorer: Scorer, job: Job, queries: Rows, threads: int | None) -> Found:
    """Return the hits of some queries."""
    skipped = queries if job.sides.are_one else np.full(len(queries), -1, dtype=np.int64)
    if job.limit is None:
        reached = scorer.reach_rows(queries, skipped, job.min_score, threads)
        return Found(np.diff(reached.starts), reached.rows, reached.scores)
    return found_of(scorer.rank_rows(queries, skipped, job.limit, None, threads), job.min_score)

"""Join: the top K of every query, streamed to one Parquet file, resumable, in bounded memory.

Blocks of queries are finished one by one as files of their own beside the result, in FILE.parts, and put together at
the end, one row group a block. A join that was killed goes on with the blocks that are missing, and its file is the
same to the byte, whichever engine finished which block. Memory, besides the graph and the product: some 24 bytes for
each of `block` × K hits.
"""

import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from neupath.errors import QueryError, SourceError, WriteError
from neupath.files import check_folder, write_text, write_whole
from neupath.graph import Floats, digest
from neupath.nodes import Rows
from neupath.ranking import Ranking
from neupath.scorer import Scorer
from neupath.search import check_k
from neupath.threads import check_threads

MANIFEST = "join.json"
BLOCK = 4096
_MOST_HITS = 1 << 24
"""Hits held at once; blocks are smaller where K is large."""

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
class Found:
    """The hits of some queries, one query after the other, best first; `sizes` says how many each has."""

    sizes: Rows
    rows: Rows
    scores: Floats


@dataclass(frozen=True)
class Job:
    """What a join is to find, and where its blocks go."""

    scorer: Scorer
    queries: Rows
    limit: int | None
    """How many hits a query; nothing for all that reach `min_score`."""
    min_score: float
    step: int
    """Queries in a block."""
    folder: Path

    @property
    def count(self) -> int:
        """How many blocks there are."""
        return -(-len(self.queries) // self.step)

    def block(self, number: int) -> Rows:
        return self.queries[number * self.step : (number + 1) * self.step]

    def part(self, number: int) -> Path:
        """Where the hits of a block go."""
        return self.folder / f"{number:06}.parquet"

    def missing(self) -> list[int]:
        """Return the blocks that are not there yet."""
        return [number for number in range(self.count) if not self.part(number).is_file()]

    @property
    def leaves_itself_out(self) -> bool:
        """Whether queries are targets, too, and each is left out of its own hits."""
        return self.scorer.source_type == self.scorer.target_type


class Engine(Protocol):
    """Does the work of a join."""

    def run(self, job: Job, missing: Sequence[int], told: Callable[[int], None]) -> None:
        """Write the missing blocks in any order, each whole, and tell of each."""


@dataclass(frozen=True)
class Local:
    """The engine that works in this process; one thread a core unless said."""

    threads: int | None = None

    def run(self, job: Job, missing: Sequence[int], told: Callable[[int], None]) -> None:
        hin, scorer = job.scorer.hin_, job.scorer
        ids = hin.nodes[scorer.source_type].ids, hin.nodes[scorer.target_type].ids
        for number in missing:
            queries = job.block(number)
            write_part(job.part(number), queries, _rank(job, queries, self.threads), *ids)
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

    Queries are rows, all by default; each is left out of its own hits. With `min_score`, only pairs that reach it are
    kept, and `k` = None keeps all of them. The engine is this process with some `threads`, or `cluster.Dask`.

    >>> from tempfile import TemporaryDirectory
    >>> from neupath import PathSim, load
    >>> with TemporaryDirectory() as folder:
    ...     joined = join(PathSim("APVPA").fit(load("toy")), Path(folder) / "top.parquet", k=2)
    ...     pq.read_table(joined.path).slice(0, 2).to_pydict()["target"]
    ['Bob', 'Mary']
    """
    target = Path(path)
    count = scorer.hin_.num_nodes(scorer.source_type)
    asked = np.arange(count) if queries is None else np.asarray(queries, np.int64)
    limit = None if k is None else check_k(k)
    check_threads(threads)
    _check(target, asked, k, min_score, block)
    if len(asked) and not 0 <= asked.min() <= asked.max() < count:
        raise QueryError(f"queries are rows from 0 to {count - 1}; {asked.min()} to {asked.max()} are given")
    targets = scorer.hin_.num_nodes(scorer.target_type)
    most = targets if limit is None else min(limit, targets)
    step = max(1, min(block, _MOST_HITS // max(1, most)))
    job = Job(scorer, asked, limit, min_score, step, target.with_name(f"{target.name}.parts"))
    _open_parts(job.folder, _describe(scorer, asked, limit, min_score, step))
    missing = job.missing()
    _run(engine or Local(threads), job, missing, progress)
    pairs = _put_together(job, target)
    _remove_parts(job.folder)
    return Joined(target, len(asked), pairs, job.count, job.count - len(missing))


def _run(engine: Engine, job: Job, missing: Sequence[int], progress: Progress) -> None:
    total = len(job.queries)
    done = total - sum(len(job.block(number)) for number in missing)
    progress(done, total)

    def told(number: int) -> None:
        nonlocal done
        done += len(job.block(number))
        progress(done, total)

    if missing:
        engine.run(job, missing, told)


def _check(target: Path, queries: Rows, k: int | None, min_score: float, block: int) -> None:
    if target.suffix != ".parquet":
        raise QueryError(f"cannot join to {target}; the name must end in .parquet")
    if target.is_dir():
        raise QueryError(f"cannot join to {target}: it is a folder")
    check_folder(target.parent)
    if block < 1:
        raise QueryError(f"block is {block}; take at least 1 query at a time")
    if not 0 <= min_score < np.inf:
        raise QueryError(f"min_score is {min_score}; it must be 0 or more, and finite")
    if k is None and min_score == 0:
        raise QueryError("without k, say which pairs to keep with min_score, such as 0.5")
    if len(np.unique(queries)) < len(queries):
        raise QueryError("a query is given twice; give each once")


def _describe(scorer: Scorer, queries: Rows, k: int | None, min_score: float, step: int) -> str:
    """Return what a join is of: finished blocks of another must not be mixed with its own."""
    content = {
        "scorer": scorer.name, "params": scorer.params(), "learned": scorer.fingerprint(),
        "graph": digest(scorer.hin_), "k": k, "min_score": min_score, "block": step,
        "queries": sha256(queries.tobytes()).hexdigest(),
    }  # fmt: skip
    return json.dumps(content, indent=2) + "\n"


def _open_parts(parts: Path, description: str) -> None:
    """Make the folder of finished blocks, or see that those in it are of the same join."""
    try:
        parts.mkdir(exist_ok=True)
    except OSError as error:
        raise WriteError(f"cannot write {parts}: {error.strerror}") from error
    manifest = parts / MANIFEST
    if not manifest.is_file():
        _remove_parts(parts)  # what is left of a join that was done
        parts.mkdir()
        write_text(manifest, description)
    elif manifest.read_text(encoding="utf-8") != description:
        raise SourceError(f"{parts} holds blocks of another join, of which this is no part; finish that, or remove it")


def _remove_parts(parts: Path) -> None:
    """Remove finished blocks, what they are of last: without it, nobody takes them for their own."""
    for part in parts.glob("*.parquet"):
        part.unlink()
    shutil.rmtree(parts)


def _rank(job: Job, queries: Rows, threads: int | None) -> Found:
    """Return the hits of some queries."""
    skipped = queries if job.leaves_itself_out else np.full(len(queries), -1, dtype=np.int64)
    if job.limit is None:
        reached = job.scorer.reach_rows(queries, skipped, job.min_score, threads)
        return Found(np.diff(reached.starts), reached.rows, reached.scores)
    return found_of(job.scorer.rank_rows(queries, skipped, job.limit, None, threads), job.min_score)


def found_of(ranking: Ranking, min_score: float) -> Found:
    """Return the hits of a ranking that reach a score."""
    kept = (np.arange(ranking.rows.shape[1]) < ranking.sizes[:, None]) & (ranking.scores >= min_score)
    return Found(kept.sum(axis=1), ranking.rows[kept], ranking.scores[kept])


def write_part(path: Path, queries: Rows, found: Found, sources: pa.Array, targets: pa.Array) -> None:
    """Write the hits of a block of queries as a table, whole or not at all; `sources` and `targets` are all ids."""
    first = np.repeat(np.cumsum(found.sizes) - found.sizes, found.sizes)
    columns = [
        sources.take(pa.array(np.repeat(queries, found.sizes))),
        pa.array(np.arange(1, len(found.rows) + 1) - first, pa.int64()),
        targets.take(pa.array(found.rows)),
        pa.array(found.scores, pa.float64()),
    ]
    table = pa.Table.from_arrays(columns, schema=_schema(sources, targets))
    write_whole(path, lambda temporary: pq.write_table(table, temporary))


def _schema(sources: pa.Array, targets: pa.Array) -> pa.Schema:
    return pa.schema([("query", sources.type), ("rank", pa.int64()), ("target", targets.type), ("score", pa.float64())])


def _put_together(job: Job, target: Path) -> int:
    """Write the blocks as row groups of one file, one after the other; return how many pairs there are."""
    nodes = job.scorer.hin_.nodes
    schema = _schema(nodes[job.scorer.source_type].ids, nodes[job.scorer.target_type].ids)
    total = 0

    def write(temporary: Path) -> None:
        nonlocal total
        with pq.ParquetWriter(temporary, schema) as writer:
            for number in range(job.count):
                table = pq.ParquetFile(job.part(number)).read()
                total += table.num_rows
                writer.write_table(table, row_group_size=max(1, table.num_rows))

    write_whole(target, write)
    return total

"""Join: the top K of every query, streamed to one Parquet file or a folder of them, resumable, in bounded memory."""

import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Protocol, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from neupath._runtime.files import check_folder, locked, write_text, write_whole
from neupath.engine.hits import check_k
from neupath.engine.scorer import Scorer
from neupath.engine.topk import Ranking, check_threads
from neupath.errors import QueryError, SourceError, WriteError, listed
from neupath.graph.hin import Floats, digest
from neupath.graph.nodes import Rows

# ---- Hit tables


@dataclass(frozen=True)
class BlockHits:
    """The hits of some queries, one query after the other, best first; `sizes` says how many each has."""

    sizes: Rows
    rows: Rows
    scores: Floats


def block_hits(ranking: Ranking, min_score: float) -> BlockHits:
    """Return the hits of a ranking that reach a score."""
    kept = (np.arange(ranking.rows.shape[1]) < ranking.sizes[:, None]) & (ranking.scores >= min_score)
    return BlockHits(kept.sum(axis=1), ranking.rows[kept], ranking.scores[kept])


def write_hits(path: Path, queries: pa.Array, targets: pa.Array, found: BlockHits) -> None:
    """Write the hits of some queries as a table, whole or not at all, given the ids of the queries and of all hits."""
    first = np.repeat(np.cumsum(found.sizes) - found.sizes, found.sizes)
    columns = [
        queries.take(pa.array(np.repeat(np.arange(len(queries)), found.sizes))),
        pa.array(np.arange(1, len(found.rows) + 1) - first, pa.int64()),
        targets,
        pa.array(found.scores, pa.float64()),
    ]
    table = pa.Table.from_arrays(columns, schema=hit_schema(queries.type, targets.type))
    write_whole(path, lambda temporary: pq.write_table(table, temporary))


def hit_schema(query_kind: pa.DataType, target_kind: pa.DataType) -> pa.Schema:
    """Return the columns of a join's result."""
    return pa.schema([("query", query_kind), ("rank", pa.int64()), ("target", target_kind), ("score", pa.float64())])


class HitsFile:
    """Writes tables of hits as row groups of one file, in their order, as far as they are there yet.

    Until it is finished it lies under another name, where nobody takes it for the result.
    """

    def __init__(self, path: Path, schema: pa.Schema, tables: Sequence[Path]) -> None:
        self.pairs = 0
        self._path, self._tables, self._next = path, tables, 0
        with _explained(path):
            self._writer = pq.ParquetWriter(path, schema)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._writer.close()
        self._path.unlink(missing_ok=True)

    def catch_up(self) -> None:
        """Write the tables that follow the last one written, up to the first that is missing."""
        with _explained(self._path):
            while self._next < len(self._tables) and self._tables[self._next].is_file():
                table = pq.ParquetFile(self._tables[self._next]).read()
                self._writer.write_table(table, row_group_size=max(1, table.num_rows))
                self.pairs += table.num_rows
                self._next += 1

    def finish(self, target: Path) -> None:
        """Write what is left, and give the file its name."""
        self.catch_up()
        if self._next < len(self._tables):
            raise WriteError(f"cannot write {target}: {self._tables[self._next]} is gone; give the same command again")
        with _explained(target):
            self._writer.close()
            self._path.replace(target)


class HitsFolder:
    """Leaves tables of hits as the files of one folder, whose names are in their order."""

    def __init__(self, folder: Path, schema: pa.Schema, tables: Sequence[Path]) -> None:
        self.pairs = 0
        self._folder, self._schema, self._tables = folder, schema, tables

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Leave all where it is: what is done is no part of a result before it is finished."""

    def catch_up(self) -> None:
        """Do nothing: tables are where they belong."""

    def finish(self, target: Path) -> None:
        """Remove what else lies in the folder, and give it its name; without tables, write one that has no rows."""
        with _explained(target):
            tables = list(self._tables) or [self._folder / "000000.parquet"]
            if not self._tables:
                pq.write_table(self._schema.empty_table(), tables[0])
            self.pairs = sum(pq.read_metadata(table).num_rows for table in tables)
            for other in set(self._folder.iterdir()) - set(tables):
                shutil.rmtree(other) if other.is_dir() else other.unlink()
            self._folder.rename(target)


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise WriteError(f"cannot write {path}: {error.strerror or error}") from error


# ---- Blocks


MANIFEST = "join.json"
_SHOWN = ("k", "min_score", "block")
_WORDS = {"scorer": "measure", "params": "path or parameter", "learned": "model or way to multiply", "tables": "graph"}
_WORK, _DISCARDED = "work-", "discarded-"


@dataclass(frozen=True)
class JoinSides:
    """Between what a join finds pairs: how many nodes there are, and what their ids are given as."""

    sources: int
    targets: int
    source_kind: pa.DataType
    target_kind: pa.DataType
    are_one: bool
    """Whether queries are targets, too, and each is left out of its own hits."""


@dataclass(frozen=True)
class JoinJob:
    """What a join is to find, and where its blocks go."""

    queries: Rows
    limit: int | None
    """How many hits a query; nothing for all that reach `min_score`."""
    min_score: float
    step: int
    """Queries in a block."""
    target: Path
    sides: JoinSides

    @property
    def folder(self) -> Path:
        """Where finished blocks lie until the result is whole."""
        return parts_of(self.target)

    @property
    def count(self) -> int:
        """How many blocks there are."""
        return -(-len(self.queries) // self.step)

    @property
    def most_hits(self) -> int:
        """How many hits a block has at most; none are counted where it is all that reach a score, mostly few."""
        return 0 if self.limit is None else self.step * min(self.limit, self.sides.targets)

    def block(self, number: int) -> Rows:
        return self.queries[number * self.step : (number + 1) * self.step]

    def part(self, number: int) -> Path:
        """Where the hits of a block go."""
        return self.folder / f"{number:06}.parquet"

    def missing(self) -> list[int]:
        """Return the blocks that are not there yet."""
        return [number for number in range(self.count) if not self.part(number).is_file()]

    def describe(self, about: dict[str, object]) -> dict[str, object]:
        """Return what a join is of: finished blocks of another must not be mixed with its own."""
        return about | {
            "k": self.limit, "min_score": self.min_score, "block": self.step,
            "queries": sha256(self.queries.tobytes()).hexdigest(),
        }  # fmt: skip


def parts_of(target: Path) -> Path:
    """Return where the finished blocks of a join lie until its file is whole."""
    return target.with_name(f"{target.name}.parts")


def count_finished(target: Path) -> int:
    """Return how many blocks of a join are finished, while its file is not."""
    return sum(1 for _ in parts_of(target).glob("[0-9]*.parquet"))


@contextmanager
def claimed(target: Path) -> Iterator[None]:
    """Let no other join write to a target, and no task of an earlier one that still runs somewhere."""
    lock = target.with_name(f"{target.name}.lock")
    with locked(lock, f"another join writes to {target}; wait until it is done, or give another name"):
        for left_over in parts_of(target).glob(f"{_WORK}*"):
            discard(left_over)
        yield


def make_parts(parts: Path) -> None:
    """Make the folder of finished blocks, unless it is there."""
    try:
        parts.mkdir(exist_ok=True)
    except OSError as error:
        raise WriteError(f"cannot write {parts}: {error.strerror}") from error


def make_work(parts: Path, name: str) -> Path:
    """Make a folder for what a join needs as long as it runs; a block is written there, and then moved to the others.

    So a task that outlives its join, whose folder is gone, writes no block into another one's.
    """
    work = (parts / f"{_WORK}{name}").absolute()
    work.mkdir()
    return work


def discard(folder: Path) -> None:
    """Remove a folder to which others may still write: they no longer find it."""
    if folder.is_dir():
        shutil.rmtree(folder.rename(folder.with_name(f"{_DISCARDED}{folder.name}")), ignore_errors=True)


def open_parts(parts: Path, description: dict[str, object]) -> None:
    """Make the folder of finished blocks, or see that those in it are of the same join."""
    make_parts(parts)
    manifest = parts / MANIFEST
    if not manifest.is_file():
        for part in parts.glob("*.parquet"):
            part.unlink()  # what is left of a join that was done
    elif any(parts.glob("[0-9]*.parquet")):
        _check_same(parts, _read(manifest), json.loads(json.dumps(description)))
        return
    write_text(manifest, json.dumps(description, indent=2) + "\n")


def _read(manifest: Path) -> dict[str, Any]:
    try:
        found = json.loads(manifest.read_text(encoding="utf-8"))
    except ValueError:
        found = None
    return found if isinstance(found, dict) else {}


def _check_same(parts: Path, theirs: dict[str, Any], ours: dict[str, Any]) -> None:
    """Refuse to go on with blocks of another join, and say in what it differs."""
    others = [name for name in {**ours, **theirs} if theirs.get(name) != ours.get(name)]
    if not others:
        return
    told = [f"{name} ({theirs.get(name)})" if name in _SHOWN else _WORDS.get(name, name) for name in others]
    if ("tables" in theirs) != ("tables" in ours):
        told = ["reader of the graph (--ingest)"]
    raise SourceError(
        f"{parts} holds blocks of another join, of which this is no part: it had another {listed(told)}; "
        f"finish that, or remove it"
    )


def remove_parts(parts: Path) -> None:
    """Remove finished blocks, what they are of last: without it, nobody takes them for their own."""
    for part in parts.glob("*.parquet"):
        part.unlink()
    if parts.is_dir():  # as a result that is a folder, it has another name
        shutil.rmtree(parts)


# ---- Join
# Blocks of queries are finished one by one as files of their own beside the result, in FILE.parts, and put together in
# their order, one row group a block, or left as the files of a folder. A join that was killed goes on with the blocks
# that are missing, and its file is the same to the byte, whichever engine finished which block. Memory, besides the graph
# and the product: some 130 bytes for each of `block` × K hits, until they are written.


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
class JoinOptions:
    """What a join keeps: `k` hits a query or all that reach a score, of some queries or all, a block at a time."""

    k: int | None = 10
    min_score: float = 0.0
    queries: Rows | None = None
    block: int = BLOCK


Told = Callable[[int], None]
"""Hears which block is done."""


class JoinEngine(Protocol):
    """Does the work of a join."""

    def run(self, scorer: Scorer, job: JoinJob, missing: Sequence[int], told: Told) -> None:
        """Write the missing blocks in any order, each whole, and tell of each."""


@dataclass(frozen=True)
class LocalEngine:
    """The engine that works in this process; one thread a core unless said."""

    threads: int | None = None

    def run(self, scorer: Scorer, job: JoinJob, missing: Sequence[int], told: Told) -> None:
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
    engine: JoinEngine | None = None,
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
    terms = JoinOptions(k, min_score, queries, block)
    check_terms(Path(path), terms)
    source, target = (scorer.hin_.nodes[node_type] for node_type in (scorer.source_type, scorer.target_type))
    sides = JoinSides(len(source), len(target), source.ids.type, target.ids.type, source is target)
    about: dict[str, object] = {
        "scorer": scorer.name, "params": scorer.params(), "learned": scorer.fingerprint(), "graph": digest(scorer.hin_)
    }  # fmt: skip
    chosen = engine or LocalEngine(threads)
    with claimed(Path(path)):
        job = open_job(Path(path), terms, sides, about)
        return finish_job(job, lambda missing, told: chosen.run(scorer, job, missing, told), progress)


def open_job(target: Path, terms: JoinOptions, sides: JoinSides, about: dict[str, object]) -> JoinJob:
    """Make the folder of a join's blocks, or find those that an earlier run finished; `about` says what is joined."""
    asked = np.arange(sides.sources) if terms.queries is None else np.asarray(terms.queries, np.int64)
    limit = None if terms.k is None else check_k(terms.k)
    if len(asked) and not 0 <= asked.min() <= asked.max() < sides.sources:
        raise QueryError(f"queries are rows from 0 to {sides.sources - 1}; {asked.min()} to {asked.max()} are given")
    most, width = (_MOST_REACHED, sides.targets) if limit is None else (_MOST_HITS, min(limit, sides.targets))
    step = max(1, min(terms.block, most // max(1, width)))
    job = JoinJob(asked, limit, terms.min_score, step, target, sides)
    open_parts(job.folder, job.describe(about))
    return job


def finish_job(job: JoinJob, run: Callable[[Sequence[int], Told], None], progress: Progress) -> Joined:
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


def _open_hits(job: JoinJob) -> HitsFile | HitsFolder:
    """Begin to put blocks together."""
    schema = hit_schema(job.sides.source_kind, job.sides.target_kind)
    tables = [job.part(number) for number in range(job.count)]
    if not job.target.suffix:
        return HitsFolder(job.folder, schema, tables)
    return HitsFile(job.folder / "together", schema, tables)


def check_terms(target: Path, terms: JoinOptions) -> None:
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


def _rank(scorer: Scorer, job: JoinJob, queries: Rows, threads: int | None) -> BlockHits:
    """Return the hits of some queries."""
    skipped = queries if job.sides.are_one else np.full(len(queries), -1, dtype=np.int64)
    if job.limit is None:
        reached = scorer.reach_rows(queries, skipped, job.min_score, threads)
        return BlockHits(np.diff(reached.starts), reached.rows, reached.scores)
    return block_hits(scorer.rank_rows(queries, skipped, job.limit, None, threads), job.min_score)

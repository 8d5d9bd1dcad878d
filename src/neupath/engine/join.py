"""Join: the top k of every query, written to one Parquet file or a folder of them, resumable and in bounded memory.

Each block of queries becomes a file of its own beside the result, in OUT.parts. Finished blocks are concatenated in
order, one row group per block, or become the files of a folder. A join that was killed resumes with the missing blocks,
and its result is the same to the byte, whichever engine wrote which block. Besides the graph and the product, a join
holds some 130 bytes for each of `block` × k hits.
"""

import json
import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, Protocol, Self
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from neupath._runtime.files import check_folder, locked, write_text, write_whole
from neupath._runtime.progress import Progress, no_progress
from neupath.engine.hits import check_k
from neupath.engine.scorer import Scorer
from neupath.engine.topk import HitLists, check_threads, hit_lists
from neupath.errors import QueryError, SourceError, WriteError, listed
from neupath.graph.hin import HIN, digest
from neupath.graph.nodes import Id, Rows

BLOCK = 4096
_MOST_RANKED, _MOST_IN_RANGE = 1 << 22, 1 << 24  # the most hits of a block: with k, and without
OnBlock = Callable[[int], None]  # called with the number of each finished block


# ---- Options and jobs ----------------------------------------------------------------------------
@dataclass(frozen=True)
class JoinOptions:
    """What a join finds: `k` hits per query, or with k = None all of at least `min_score`.

    `queries` are rows, all by default; `block` queries are finished at a time.
    """

    k: int | None = 10
    min_score: float = 0.0
    queries: Rows | None = None
    block: int = BLOCK

    def __post_init__(self) -> None:
        if self.k is not None:
            check_k(self.k)
        if self.block < 1:
            raise QueryError(f"‹block› is {self.block}; use at least 1 query at a time", parameter="block")
        if not 0 <= self.min_score < np.inf:
            raise QueryError(
                f"‹min_score› is {self.min_score}; it must be finite, and 0 or more", parameter="min_score"
            )
        if self.k is None and self.min_score == 0:
            raise QueryError("without ‹k›, give a ‹min_score› above 0, such as 0.5", parameter="min_score")
        if self.queries is not None and len(np.unique(self.queries)) < len(self.queries):
            raise QueryError("‹queries› names a node twice; give each once", parameter="queries")


class NodeIds(Protocol):
    """The ids of a node type, in memory or in files."""

    @property
    def type(self) -> pa.DataType: ...
    def __len__(self) -> int: ...


@dataclass(frozen=True)
class JoinJob:
    """A join whose nodes are known: its blocks of queries, and the files they go to."""

    out: Path
    queries: Rows
    k: int | None  # hits per query; None for all of at least `min_score`
    min_score: float
    block_size: int
    num_targets: int
    schema: pa.Schema  # the columns of the result
    skips_query: bool  # whether queries are targets, too, and each is left out of its own hits

    @classmethod
    def of(cls, out: Path, options: JoinOptions, sources: NodeIds, targets: NodeIds, *, same_type: bool) -> Self:
        """Cut the queries into blocks, smaller ones where a query may have many hits."""
        rows = np.arange(len(sources)) if options.queries is None else np.asarray(options.queries, np.int64)
        k = None if options.k is None else check_k(options.k)
        most, width = (_MOST_IN_RANGE, len(targets)) if k is None else (_MOST_RANKED, min(k, len(targets)))
        block_size = max(1, min(options.block, most // max(1, width)))
        schema = hit_schema(sources.type, targets.type)
        return cls(out, rows, k, options.min_score, block_size, len(targets), schema, same_type)

    @property
    def parts(self) -> Path:
        """The folder of finished blocks, until the result is complete."""
        return parts_of(self.out)

    @property
    def num_blocks(self) -> int:
        return -(-len(self.queries) // self.block_size)

    @property
    def reserved_hits(self) -> int:
        """Hits of a block to reserve memory for; none where k is None, because few targets reach a score as a rule."""
        return 0 if self.k is None else self.block_size * min(self.k, self.num_targets)

    def block(self, number: int) -> Rows:
        return self.queries[number * self.block_size : (number + 1) * self.block_size]

    def part(self, number: int) -> Path:
        return self.parts / f"{number:06}.parquet"

    def missing(self) -> list[int]:
        return [number for number in range(self.num_blocks) if not self.part(number).is_file()]


@dataclass(frozen=True)
class Joined:
    """The result of a join."""

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


# ---- The join ------------------------------------------------------------------------------------
class JoinEngine(ABC):
    """Ranks the queries of a join, in this process or elsewhere."""

    def prepare(self, hin: HIN, scorer: Scorer) -> Scorer:
        """Return the scorer over a graph; an engine that multiplies elsewhere overrides this to not fit it."""
        return scorer if getattr(scorer, "hin_", None) is hin else scorer.bind(hin)

    @abstractmethod
    def run(self, scorer: Scorer, job: JoinJob, missing: Sequence[int], on_block: OnBlock) -> None:
        """Write the missing blocks in any order, each atomically, and report each."""


@dataclass(frozen=True)
class LocalEngine(JoinEngine):
    """Ranks the queries in this process, with one thread per core by default."""

    threads: int | None = None

    def __post_init__(self) -> None:
        check_threads(self.threads)

    def run(self, scorer: Scorer, job: JoinJob, missing: Sequence[int], on_block: OnBlock) -> None:
        sources, targets = (scorer.hin_.nodes[node_type].ids for node_type in (scorer.source_type, scorer.target_type))
        for number in missing:
            queries = job.block(number)
            skipped = queries if job.skips_query else np.full(len(queries), -1, dtype=np.int64)
            if job.k is None:
                hits = scorer.range_rows(queries, skipped, job.min_score, self.threads)
            else:
                hits = hit_lists(scorer.rank_rows(queries, skipped, job.k, None, self.threads), job.min_score)
            write_hits(job.part(number), sources.take(pa.array(queries)), targets.take(pa.array(hits.rows)), hits)
            on_block(number)


def join(
    hin: HIN,
    scorer: Scorer,
    out: str | Path,
    k: int | None = 10,
    *,
    queries: Sequence[Id] | None = None,
    min_score: float = 0.0,
    block: int = BLOCK,
    threads: int | None = None,
    engine: JoinEngine | None = None,
    progress: Progress = no_progress,
) -> Joined:
    """Write the k most similar targets of each query to Parquet, with the columns query, rank, target and score.

    Parameters
    ----------
    hin
        The graph.
    scorer
        A measure or model; one that is not fitted to this graph is bound to it.
    out
        A file ending in .parquet, or a name without an ending for a folder of Parquet files.
    k
        The number of hits per query; None for all of at least `min_score`.
    queries
        Ids or unambiguous names; all nodes of the source type by default. A query is never its own hit.
    min_score
        Pairs of a lower score are left out.
    block
        The number of queries that are finished at a time; an interrupted join resumes with the missing blocks.
    threads
        The number of threads of this process; one per core by default.
    engine
        What ranks the queries: this process by default, or `neupath.cluster.Dask`.
    progress
        Called with "joining", the number of queries done, and of all.

    >>> from tempfile import TemporaryDirectory
    >>> import pyarrow.parquet as pq
    >>> from neupath import PathSim, load
    >>> with TemporaryDirectory() as folder:
    ...     joined = join(load("toy"), PathSim("APVPA"), out=f"{folder}/top.parquet", k=2, queries=["Mike"])
    ...     pq.read_table(joined.path).to_pydict()["target"]
    ['Bob', 'Mary']
    """
    options, target = JoinOptions(k, min_score, None, block), Path(out)
    check_out(target)
    chosen = LocalEngine(threads) if engine is None else engine
    ready = chosen.prepare(hin, scorer)
    source_nodes, target_nodes = (hin.nodes[node_type] for node_type in (ready.source_type, ready.target_type))
    if queries is not None:
        ids = [queries] if isinstance(queries, str) else list(queries)
        options = replace(options, queries=source_nodes.find_many(ids))
    job = JoinJob.of(
        target, options, source_nodes.ids, target_nodes.ids, same_type=ready.source_type == ready.target_type
    )
    description: dict[str, object] = {
        "scorer": ready.name, "params": ready.params(), "learned": ready.fingerprint(), "graph": digest(hin)
    }  # fmt: skip
    with claim(target):
        open_job(job, description)
        return finish_job(job, lambda missing, on_block: chosen.run(ready, job, missing, on_block), progress)


def open_job(job: JoinJob, description: dict[str, object]) -> None:
    """Create the folder of finished blocks; raise if it holds blocks of a join with another description."""
    description = description | {
        "k": job.k, "min_score": job.min_score, "block": job.block_size,
        "queries": sha256(job.queries.tobytes()).hexdigest(),
    }  # fmt: skip
    make_parts(job.parts)
    manifest = job.parts / MANIFEST
    if not manifest.is_file():
        for part in job.parts.glob("*.parquet"):
            part.unlink()  # of a join that was killed while its folder became the result
    elif any(job.parts.glob("[0-9]*.parquet")):
        _check_same(job.parts, _read_manifest(manifest), json.loads(json.dumps(description)))
        return
    write_text(manifest, json.dumps(description, indent=2) + "\n")


def finish_job(job: JoinJob, run: Callable[[Sequence[int], OnBlock], None], progress: Progress) -> Joined:
    """Let `run` write the missing blocks, and concatenate all of them."""
    missing, total = job.missing(), len(job.queries)
    done = total - sum(len(job.block(number)) for number in missing)
    progress("joining", done, total)

    def on_block(number: int) -> None:
        nonlocal done
        done += len(job.block(number))
        if file is not None:
            file.append_finished()  # while an engine elsewhere ranks other blocks
        progress("joining", done, total)

    tables = [job.part(number) for number in range(job.num_blocks)]
    try:
        with ResultFile(job, tables) if job.out.suffix else nullcontext() as file:
            if missing:
                run(missing, on_block)
            pairs = _finish_folder(job, tables) if file is None else file.finish()
    except BaseException:
        if len(job.missing()) == job.num_blocks:  # no block is lost, and the next join may be a different one
            shutil.rmtree(job.parts, ignore_errors=True)
        raise
    remove_parts(job.parts)
    return Joined(job.out, total, pairs, job.num_blocks, job.num_blocks - len(missing))


def check_out(out: Path) -> None:
    """Raise if the result cannot be written, before any work is done."""
    if out.suffix not in ("", ".parquet"):
        raise QueryError(f"cannot join to {out}; the name must end in .parquet, or have no ending for a folder")
    if out.is_dir() or (not out.suffix and out.exists()):
        kind = "folder" if out.is_dir() else "file"
        raise QueryError(f"cannot join to {out}: a {kind} of that name exists; remove it, or give another name")
    check_folder(out.parent)


# ---- The result ----------------------------------------------------------------------------------
def hit_schema(query_type: pa.DataType, target_type: pa.DataType) -> pa.Schema:
    """Return the columns of a join's result."""
    return pa.schema([("query", query_type), ("rank", pa.int64()), ("target", target_type), ("score", pa.float64())])


def write_hits(path: Path, queries: pa.Array, targets: pa.Array, hits: HitLists) -> None:
    """Write the hits of some queries to a Parquet file, given the ids of the queries and of all hits."""
    sizes = np.diff(hits.starts)
    columns = [
        queries.take(pa.array(np.repeat(np.arange(len(queries)), sizes))),
        pa.array(np.arange(1, len(hits.rows) + 1) - np.repeat(hits.starts[:-1], sizes), pa.int64()),
        targets,
        pa.array(hits.scores, pa.float64()),
    ]
    table = pa.Table.from_arrays(columns, schema=hit_schema(queries.type, targets.type))
    write_whole(path, lambda temporary: pq.write_table(table, temporary))


class ResultFile:
    """Writes the blocks as row groups of one file in order; it stays in the folder of blocks until it is complete."""

    def __init__(self, job: JoinJob, tables: Sequence[Path]) -> None:
        self._out, self._path = job.out, job.parts / "together"
        self._tables, self._next, self._pairs = tables, 0, 0
        with _writing(self._path):
            self._writer = pq.ParquetWriter(self._path, job.schema)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._writer.close()
        self._path.unlink(missing_ok=True)

    def append_finished(self) -> None:
        """Write the finished blocks that follow the last one written, up to the first that is missing."""
        with _writing(self._path):
            while self._next < len(self._tables) and self._tables[self._next].is_file():
                table = pq.ParquetFile(self._tables[self._next]).read()
                self._writer.write_table(table, row_group_size=max(1, table.num_rows))
                self._pairs += table.num_rows
                self._next += 1

    def finish(self) -> int:
        """Write the remaining blocks, move the file to its name, and return the number of pairs."""
        self.append_finished()
        if self._next < len(self._tables):
            raise WriteError(f"cannot write {self._out}: {self._tables[self._next]} is missing; run the join again")
        with _writing(self._out):
            self._writer.close()
            self._path.replace(self._out)
        return self._pairs


def _finish_folder(job: JoinJob, blocks: Sequence[Path]) -> int:
    """Make the folder of blocks, or of one empty block, the result; return the number of pairs."""
    with _writing(job.out):
        tables = list(blocks) or [job.parts / "000000.parquet"]
        if not blocks:
            pq.write_table(job.schema.empty_table(), tables[0])
        pairs: int = sum(pq.read_metadata(table).num_rows for table in tables)
        for other in set(job.parts.iterdir()) - set(tables):
            shutil.rmtree(other) if other.is_dir() else other.unlink()
        job.parts.rename(job.out)
    return pairs


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise WriteError(f"cannot write {path}: {error.strerror or error}") from error


# ---- The folder of finished blocks ---------------------------------------------------------------
MANIFEST = "join.json"
_SHOWN = ("k", "min_score", "block")
_WORDS = {
    "scorer": "measure", "params": "meta-path or parameter", "learned": "model or way to multiply", "tables": "graph"
}  # fmt: skip
_WORK, _DISCARDED = "work-", "discarded-"


def parts_of(out: Path) -> Path:
    """Return the folder of finished blocks."""
    return out.with_name(f"{out.name}.parts")


def count_finished(out: Path) -> int:
    """Return the number of finished blocks of an unfinished join."""
    return sum(1 for _ in parts_of(out).glob("[0-9]*.parquet"))


@contextmanager
def claim(out: Path) -> Iterator[None]:
    """Lock out other joins to the same result, and tasks of an earlier join that still run somewhere."""
    lock = out.with_name(f"{out.name}.lock")
    with locked(lock, f"another join writes to {out}; wait until it is done, or give another name"):
        for work in parts_of(out).glob(f"{_WORK}*"):
            discard(work)
        yield


def make_parts(parts: Path) -> None:
    """Create the folder of finished blocks, unless it exists."""
    with _writing(parts):
        parts.mkdir(exist_ok=True)


def make_work(parts: Path) -> Path:
    """Create the working folder of a running join, where blocks are written before they move to the finished ones.

    A task that outlives its join does not find the folder, and so cannot write a block into another join.
    """
    make_parts(parts)
    work = (parts / f"{_WORK}{uuid4().hex[:8]}").absolute()
    work.mkdir()
    return work


def discard(folder: Path) -> None:
    """Remove a folder to which tasks may still write; renaming it first hides it from them."""
    if folder.is_dir():
        shutil.rmtree(folder.rename(folder.with_name(f"{_DISCARDED}{folder.name}")), ignore_errors=True)


def remove_parts(parts: Path) -> None:
    """Remove the finished blocks, and then their manifest: blocks without one belong to no join."""
    for part in parts.glob("*.parquet"):
        part.unlink()
    if parts.is_dir():  # not where it became the result
        shutil.rmtree(parts)


def _read_manifest(manifest: Path) -> dict[str, Any]:
    try:
        content = json.loads(manifest.read_text(encoding="utf-8"))
    except ValueError:
        return {}
    return content if isinstance(content, dict) else {}


def _check_same(parts: Path, theirs: dict[str, Any], ours: dict[str, Any]) -> None:
    """Raise if the finished blocks belong to another join, and say how it differs."""
    names = [name for name in {**ours, **theirs} if theirs.get(name) != ours.get(name)]
    if not names:
        return
    differences = [f"{name} ({theirs.get(name)})" if name in _SHOWN else _WORDS.get(name, name) for name in names]
    if ("tables" in theirs) != ("tables" in ours):
        differences = ["reader of the graph (‹ingest›)"]
    raise SourceError(
        f"{parts} holds blocks of another join, with another {listed(differences)}; finish that join, or remove the "
        f"folder"
    )

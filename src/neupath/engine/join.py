"""Join: the top k of every query, as Parquet, CSV or files for Neo4j, resumable and in bounded memory.

Each block of queries becomes a Parquet file of its own beside the result, in OUT.parts, with its checksum. Finished
blocks are concatenated in order, one row group per block, or become the files of a folder. A join that was killed
resumes with the blocks that are missing or damaged, and its result is the same to the byte, whichever engine wrote
which block. Besides the graph and the product, a join holds some 130 bytes for each of `block` × k hits.
"""

import json
import logging
import re
import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from time import perf_counter, sleep
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack, get_args
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from neupath._runtime.files import check_folder, checksum, locked, sync, write_text, write_whole
from neupath._runtime.progress import Progress, no_progress
from neupath.engine.hits import check_whole
from neupath.engine.join_results import RESULTS, writing
from neupath.engine.scorer import MetaPaths, Scorer, check_names, metapath_list
from neupath.engine.topk import HitLists, check_threads, hit_lists
from neupath.errors import MissingExtraError, QueryError, SourceError, WriteError, listed
from neupath.graph.hin import HIN, check_graph, digest
from neupath.graph.metapath import MetaPath
from neupath.graph.nodes import Id, Mask, Nodes, Rows

if TYPE_CHECKING:
    import torch

Format = Literal["parquet", "csv", "neo4j"]
logger = logging.getLogger("neupath")
BLOCK = 4096
_MOST_RANKED, _MOST_IN_RANGE = 1 << 22, 1 << 24  # the most hits of a block: with k, and without
OnBlock = Callable[[int], None]  # called with the number of each finished block


# ---- Jobs ----------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class JoinFilter:
    """Which targets a join leaves out: those that are no candidates, and those that a path of `unless` relates."""

    candidates: Mask | None = None
    unless: tuple[MetaPath, ...] = ()

    def __bool__(self) -> bool:
        return self.candidates is not None or bool(self.unless)

    def describe(self) -> dict[str, object]:
        """Return what tells one filter from another."""
        mask = None if self.candidates is None else sha256(np.packbits(self.candidates).tobytes()).hexdigest()
        return {"filter": {"candidates": mask, "unless": [str(path) for path in self.unless]}} if self else {}

    def keep(self, hits: HitLists, excluded: Sequence[Rows]) -> HitLists:
        """Return the hits that pass."""
        kept = np.ones(len(hits.rows), dtype=np.bool_) if self.candidates is None else self.candidates[hits.rows]
        for q, rows in enumerate(excluded):
            own = slice(hits.starts[q], hits.starts[q + 1])
            kept[own] &= ~np.isin(hits.rows[own], rows)
        starts = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(kept)])[hits.starts]
        return HitLists(starts, hits.rows[kept], hits.scores[kept])


@dataclass(frozen=True)
class JoinJob:
    """A join whose nodes are known: its blocks of queries, and the files they go to."""

    out: Path
    queries: Rows
    k: int | None  # hits per query; None for all of at least `min_score`
    min_score: float
    block_size: int
    sources: Nodes
    targets: Nodes
    format: Format = "parquet"
    filter: JoinFilter = field(default_factory=JoinFilter)

    @property
    def num_targets(self) -> int:
        return len(self.targets)

    @property
    def schema(self) -> pa.Schema:
        """The columns of the result."""
        return hit_schema(self.sources, self.targets)

    @property
    def skips_query(self) -> bool:
        """Whether queries are targets, too, and each is left out of its own hits."""
        return self.sources.node_type == self.targets.node_type

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
    sides: tuple[Nodes, Nodes] = field(repr=False, compare=False)
    """The queries and the targets."""
    left: int = 0
    """Blocks that other parts of the join have not finished; the file is there when none is left."""

    def to_table(self) -> pa.Table:
        """Read the result: query, rank, target, score, and query_name and target_name where there are names."""
        if self.path.suffix == ".csv":
            types = {field.name: field.type for field in hit_schema(*self.sides)}
            lines = pa.csv.ParseOptions(newlines_in_values=True)
            missing: Any = {"null_values": [""], "strings_can_be_null": True, "quoted_strings_can_be_null": False}
            return pa.csv.read_csv(self.path, None, lines, pa.csv.ConvertOptions(column_types=types, **missing))
        if self.path.is_dir() and not any(self.path.glob("*.parquet")):
            raise QueryError(f"{self.path} holds files for Neo4j; join to Parquet or CSV to read the result back")
        return pq.read_table(self.path)

    def to_pandas(self) -> Any:
        """Read the result as a pandas DataFrame."""
        return self.to_table().to_pandas()

    def to_pyg(self) -> "tuple[torch.Tensor, torch.Tensor]":
        """Return the pairs as PyTorch Geometric takes them: `edge_index`, shape (2, pairs), and `edge_weight`.

        The numbers are the rows of the nodes in `hin.to_pyg()`, and the weights are the scores.
        """
        try:
            import torch
        except ModuleNotFoundError as error:
            raise MissingExtraError("PyTorch", "neupath[learn]") from error
        table = self.to_table()
        return torch.from_numpy(self.rows_of(table)), torch.from_numpy(table["score"].to_numpy().copy())

    def rows_of(self, table: pa.Table) -> Rows:
        """Return the queries and the targets of the result as rows; shape (2, pairs)."""
        columns = zip(("query", "target"), self.sides, strict=True)
        ends = [pc.index_in(table[column], value_set=side.ids) for column, side in columns]
        if any(end.null_count for end in ends):
            raise QueryError(f"{self.path} has ids that are not in this graph; it was written again since the join")
        return np.stack([end.to_numpy().astype(np.int64) for end in ends])

    def to_dict(self) -> dict[str, object]:
        """Return what `join --json` prints."""
        return {
            "file": str(self.path), "queries": self.queries, "pairs": self.pairs, "blocks": self.blocks,
            "resumed": self.resumed, **({"left": self.left} if self.left else {}),
        }  # fmt: skip


# ---- The join ------------------------------------------------------------------------------------
class JoinEngine(ABC):
    """Ranks the queries of a join, in this process or elsewhere."""

    def prepare(self, hin: HIN, scorer: Scorer) -> Scorer:
        """Return the scorer over a graph; an engine that multiplies elsewhere overrides this to not fit it."""
        return scorer if getattr(scorer, "hin_", None) is hin else scorer.bind(hin)

    def ranks_here(self, scorer: Scorer) -> bool:  # noqa: ARG002
        """Whether this process could rank some queries, too."""
        return True

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
        for number in missing:
            write_hits(job.part(number), rank_block(scorer, job, number, self.threads))
            on_block(number)


def rank_block(scorer: Scorer, job: JoinJob, number: int, threads: int | None) -> pa.Table:
    """Return the hits of one block of queries."""
    queries = job.block(number)
    skipped = queries if job.skips_query else np.full(len(queries), -1, dtype=np.int64)
    excluded = scorer.excluded_rows(queries, job.filter.unless)
    if job.k is None:
        hits = scorer.range_rows(queries, skipped, job.min_score, threads)
        hits = job.filter.keep(hits, excluded) if job.filter else hits
    else:
        ranking = scorer.rank_filtered(queries, skipped, job.k, job.filter.candidates, excluded, threads)
        hits = hit_lists(ranking, job.min_score)
    return hit_table(job.sources, job.targets, queries, hits)


class JoinRequest(TypedDict, total=False):
    """The options of `join`."""

    queries: Sequence[Id] | None
    where_query: str | Sequence[str]
    among: Sequence[Id] | None
    where: str | Sequence[str]
    unless: MetaPaths
    min_score: float
    block: int
    format: Format | None
    threads: int | None
    part: str | tuple[int, int] | None


def join(
    hin: HIN,
    scorer: Scorer,
    out: str | Path,
    k: int | None = 10,
    *,
    engine: JoinEngine | None = None,
    progress: Progress = no_progress,
    on_estimate: "Callable[[JoinEstimate], object] | None" = None,
    **options: Unpack[JoinRequest],
) -> Joined:
    """Write the k most similar targets of each query, with the columns query, rank, target and score.

    Where the nodes have names, query_name and target_name follow.

    Parameters
    ----------
    hin
        The graph.
    scorer
        A measure or model; one that is not fitted to this graph is bound to it.
    out
        A file ending in .parquet or .csv, or a name without an ending for a folder of Parquet files.
    k
        The number of hits per query; None for all of at least `min_score`.
    engine
        What ranks the queries: this process by default, or what `neupath.cluster.connect` returns.
    progress
        Called with "joining", the number of queries done, and of all.
    on_estimate
        Called with what the join will take, before it writes, if it has many queries and this process can rank some.
    queries
        Ids or unambiguous names; all nodes of the source type by default. A query is never its own hit.
    where_query
        Conditions on the attributes of queries, such as "year >= 2000": other queries are left out.
    among
        The ids or names of the only targets to rank.
    where
        Conditions on the attributes of targets.
    unless
        A meta-path, or several: targets that one of them relates to a query are no hits of it.
    min_score
        Pairs of a lower score are left out.
    block
        The number of queries that are finished at a time; an interrupted join resumes with the missing blocks.
    format
        "neo4j" for a folder with nodes and relationships as `neo4j-admin database import` reads them. Else it follows
        from the name of `out`: "parquet" or "csv".
    threads
        The number of threads of this process; one per core by default.
    part
        Which part of the join to do, such as "3/8", where several machines share the folder of the result. The process
        that is the last to end puts all parts together.

    >>> from tempfile import TemporaryDirectory
    >>> import pyarrow.parquet as pq
    >>> from neupath import PathSim, load
    >>> with TemporaryDirectory() as folder:
    ...     joined = join(load("toy"), PathSim("APVPA"), out=f"{folder}/top.parquet", k=2, queries=["Mike"])
    ...     pq.read_table(joined.path).to_pydict()["target"]
    ['Bob', 'Mary']
    """
    check_names("join", options, ["k", "engine", "progress", "on_estimate", *JoinRequest.__annotations__])
    part = options.get("part")
    if part is not None and engine is not None:
        raise QueryError("‹part› is for joins in several processes of their own; leave it out with an engine")
    engine = LocalEngine(options.get("threads")) if engine is None else engine
    ready, job = _start(hin, scorer, Path(out), k, engine, options)
    description: dict[str, object] = {
        "scorer": ready.name, "params": ready.params(), "learned": ready.fingerprint(),
        "graph": getattr(ready, "graph_digest", None) or digest(hin),
    }  # fmt: skip
    if on_estimate is not None and len(job.queries) >= _MANY_QUERIES and engine.ranks_here(ready):
        on_estimate(_estimate(ready, job, None))
    if part is not None:
        return _join_part(ready, job, description, parse_part(part), engine, progress)
    with claim(job.out):
        open_job(job, description)
        return finish_job(job, partial(engine.run, ready, job), progress)


def _start(
    hin: HIN, scorer: Scorer, out: Path, k: int | None, engine: JoinEngine, options: JoinRequest
) -> tuple[Scorer, JoinJob]:
    """Check the options of a join; return the scorer that is ready to rank, and the work to do."""
    check_graph(hin, needs_edges=False)
    min_score = options.get("min_score", 0.0)
    k, block = None if k is None else check_whole("k", k, 1), check_whole("block", options.get("block", BLOCK), 1)
    if not 0 <= min_score < np.inf:
        raise QueryError(f"‹min_score› is {min_score}; it must be finite, and 0 or more", parameter="min_score")
    if k is None and min_score == 0:
        raise QueryError("without ‹k›, give a ‹min_score› above 0, such as 0.5", parameter="min_score")
    format = check_out(out, options.get("format"))
    ready = engine.prepare(hin, scorer)
    queries, unless = _chosen_queries(hin, ready.source_type, options), metapath_list(options.get("unless"))
    if unless:
        ready.excluded_rows(np.zeros(0, dtype=np.int64), unless)  # raises where the scorer has no other paths
    chosen = JoinFilter(
        hin.candidates(ready.target_type, among=options.get("among"), where=options.get("where", ())),
        tuple(hin.metapath(str(text)) for text in unless),
    )
    sources, targets = (hin.nodes[node_type] for node_type in (ready.source_type, ready.target_type))
    most, width = (_MOST_IN_RANGE, len(targets)) if k is None else (_MOST_RANKED, min(k, len(targets)))
    block = max(1, min(block, most // max(1, width)))  # smaller where a query may have many hits
    return ready, JoinJob(out, queries, k, min_score, block, sources, targets, format, chosen)


# ---- Parts of a join -----------------------------------------------------------------------------
_SECONDS_BETWEEN_LOOKS = 0.1


def parse_part(text: str | tuple[int, int]) -> tuple[int, int]:
    """Read which part of a join to do, such as "3/8", the third of eight.

    >>> parse_part("3/8")
    (3, 8)
    """
    match = re.fullmatch(r"([0-9]{1,6})/([0-9]{1,6})", text) if isinstance(text, str) else None
    number, count = (int(match[1]), int(match[2])) if match else text if isinstance(text, tuple) else (0, 0)
    if not 1 <= number <= count:
        raise QueryError(f"‹part› is {text!r}; give a number and how many there are, such as 3/8", parameter="part")
    return number, count


def _join_part(
    scorer: Scorer, job: JoinJob, description: dict[str, object], part: tuple[int, int], engine: JoinEngine,
    progress: Progress,
) -> Joined:  # fmt: skip
    """Rank the blocks of one part; the process whose part is the last to end puts all blocks together."""
    _open_part(job, description)
    own = [number for number in range(job.num_blocks) if number % part[1] == part[0] - 1]
    total = sum(len(job.block(number)) for number in own)
    with locked(lock_of(job.out), f"another join writes to {job.out}; wait until it is done", shared=True):
        missing = [number for number in own if not job.part(number).is_file()]
        done = total - sum(len(job.block(number)) for number in missing)
        progress("joining", done, total)

        def on_block(number: int) -> None:
            nonlocal done
            done += len(job.block(number))
            progress("joining", done, total)

        engine.run(scorer, job, missing, on_block)
    sides = (job.sources, job.targets)
    resumed = len(own) - len(missing)
    with suppress(WriteError), claim(job.out):  # refused while others rank: the last of them puts the blocks together
        if job.parts.is_dir() and not job.missing():
            return replace(finish_job(job, lambda _missing, _on_block: None, progress), resumed=resumed)
    left = len(job.missing()) if job.parts.is_dir() else 0
    return Joined(job.out, total, _count_pairs(job, own), len(own), resumed, sides, left)


def _open_part(job: JoinJob, description: dict[str, object]) -> None:
    """Create the folder of finished blocks; where another part does so, wait for it."""
    while True:
        try:
            with claim(job.out):
                return open_job(job, description)
        except WriteError:
            manifest = job.parts / MANIFEST
            if manifest.is_file():
                ours = json.loads(json.dumps(_described(job, description)))
                return _check_same(job.parts, _read_manifest(manifest), ours)
        sleep(_SECONDS_BETWEEN_LOOKS)


def _count_pairs(job: JoinJob, numbers: Sequence[int]) -> int:
    return sum(pq.read_metadata(job.part(number)).num_rows for number in numbers if job.part(number).is_file())


# ---- Estimates -----------------------------------------------------------------------------------
_SAMPLED = 64  # queries, evenly spread
_MANY_QUERIES = 20_000  # from which on a join says what it will take


@dataclass(frozen=True)
class JoinEstimate:
    """What a join will take, by a sample of its queries."""

    queries: int
    pairs: int
    size: int
    """Bytes of the result."""
    seconds: float
    """Of ranking, in this process."""

    @property
    def text(self) -> str:
        """The estimate in words.

        >>> JoinEstimate(4_780, 47_113, 3_000_000, 2.4).text
        'about 47,000 pairs of 4,780 queries, 3 MiB, 2 seconds'
        """
        sizes, spans = ((1 << 30, "GiB"), (1 << 20, "MiB")), ((3600, "hours"), (60, "minutes"), (1, "seconds"))
        size = next((f"{self.size / each:.0f} {word}" for each, word in sizes if self.size >= each), "less than 1 MiB")
        time = next(
            (f"{self.seconds / each:.0f} {word}" for each, word in spans if self.seconds >= 2 * each), "a second"
        )
        digits = max(0, len(str(self.pairs)) - 2)
        return f"about {round(self.pairs, -digits):,} pairs of {self.queries:,} queries, {size}, {time}"

    def to_dict(self) -> dict[str, object]:
        return {"queries": self.queries, "pairs": self.pairs, "bytes": self.size, "seconds": round(self.seconds, 1)}


def estimate_join(
    hin: HIN, scorer: Scorer, out: str | Path, k: int | None = 10, **options: Unpack[JoinRequest]
) -> JoinEstimate:
    """Rank a sample of the queries of a join, and return what all of them will take; nothing is written.

    The parameters are those of `join`.
    """
    engine = LocalEngine(options.get("threads"))
    return _estimate(*_start(hin, scorer, Path(out), k, engine, options), engine.threads)


def _estimate(ready: Scorer, job: JoinJob, threads: int | None) -> JoinEstimate:
    chosen = np.unique(np.linspace(0, max(0, len(job.queries) - 1), _SAMPLED).astype(np.int64))
    sample = replace(job, queries=job.queries[chosen[: len(job.queries)]], block_size=_SAMPLED)
    rank_block(ready, sample, 0, threads)  # the first search loads kernels
    began = perf_counter()
    table = rank_block(ready, sample, 0, threads)
    seconds = perf_counter() - began
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    times = len(job.queries) / max(1, len(sample.queries))
    return JoinEstimate(
        len(job.queries), round(table.num_rows * times), round(sink.getvalue().size * times), seconds * times
    )


def _chosen_queries(hin: HIN, node_type: str, options: JoinRequest) -> Rows:
    """Return the rows of the queries, all nodes of their type by default."""
    queries = options.get("queries")
    if queries is None:
        rows = np.arange(hin.num_nodes(node_type))
    else:
        rows = hin.rows(node_type, [queries] if isinstance(queries, str) else list(queries))
        if len(np.unique(rows)) < len(rows):
            raise QueryError("‹queries› names a node twice; give each once", parameter="queries")
    # that of the base class: an index leaves out targets of its own, and no queries
    fits = HIN.candidates(hin, node_type, where=options.get("where_query") or ())
    return rows if fits is None else rows[fits[rows]]


def _described(job: JoinJob, description: dict[str, object]) -> dict[str, object]:
    """Return what tells a join from others that would write the same file."""
    own = {
        "k": job.k, "min_score": job.min_score, "block": job.block_size,
        "queries": sha256(job.queries.tobytes()).hexdigest(),
    }  # fmt: skip
    names = {"names": job.schema.names[4:]} if job.schema.names[4:] else {}
    return description | job.filter.describe() | own | names


def open_job(job: JoinJob, description: dict[str, object]) -> None:
    """Create the folder of finished blocks; raise if it holds blocks of a join with another description."""
    description = _described(job, description)
    make_parts(job.parts)
    manifest = job.parts / MANIFEST
    if not manifest.is_file():
        for part in job.parts.glob("*.parquet"):
            part.unlink()  # of a join that was killed while its folder became the result
    elif any(job.parts.glob("[0-9]*.parquet")):
        _check_same(job.parts, _read_manifest(manifest), json.loads(json.dumps(description)))
        _remove_damaged(job)
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
        with RESULTS[job.format](job, tables) if job.out.suffix or job.format == "neo4j" else nullcontext() as file:
            if missing:
                run(missing, on_block)
            pairs = _finish_folder(job, tables) if file is None else file.finish()
    except BaseException:
        if len(job.missing()) == job.num_blocks:  # no block is lost, and the next join may be a different one
            shutil.rmtree(job.parts, ignore_errors=True)
        raise
    remove_parts(job.parts)
    return Joined(job.out, total, pairs, job.num_blocks, job.num_blocks - len(missing), (job.sources, job.targets))


def format_of(out: Path, format: str | None = None) -> Format:
    """Return the format of a result: that of its name, or for a folder the one given, or Parquet."""
    if format not in (None, *get_args(Format)):
        raise QueryError(f"‹format› is {format!r}; it can be {listed(get_args(Format))}", parameter="format")
    by_suffix: dict[str, Format] = {
        ".parquet": "parquet",
        ".csv": "csv",
        "": "neo4j" if format == "neo4j" else "parquet",
    }
    if out.suffix not in by_suffix:
        raise QueryError(f"cannot join to {out}; the name must end in .parquet or .csv, or have no ending for a folder")
    chosen = by_suffix[out.suffix]
    if format not in (None, chosen):
        wanted = {"neo4j": "a name without an ending, for a folder"}.get(str(format), f"a name that ends in .{format}")
        raise QueryError(f"‹format› is {format}, and {out} is for {chosen}; give {wanted}", parameter="format")
    return chosen


def check_out(out: Path, format: str | None = None) -> Format:
    """Return the format of a result; raise if it cannot be written, before any work is done."""
    chosen = format_of(out, format)
    if out.is_dir() or (not out.suffix and out.exists()):
        kind = "folder" if out.is_dir() else "file"
        raise QueryError(f"cannot join to {out}: a {kind} of that name exists; remove it, or give another name")
    check_folder(out.parent)
    return chosen


# ---- The result ----------------------------------------------------------------------------------
def hit_schema(sources: Nodes, targets: Nodes) -> pa.Schema:
    """Return the columns of a join's result."""
    columns = [("query", sources.id_type), ("rank", pa.int64()), ("target", targets.id_type), ("score", pa.float64())]
    named = {"query_name": sources, "target_name": targets}
    return pa.schema([*columns, *((name, pa.string()) for name, side in named.items() if side.has_names)])


def hit_table(sources: Nodes, targets: Nodes, queries: Rows, hits: HitLists) -> pa.Table:
    """Return the hits of some queries, given as rows, with ids and names."""
    sizes = np.diff(hits.starts)
    query_of_hit = pa.array(np.repeat(np.arange(len(queries)), sizes))
    columns = [
        sources.take_ids(queries).take(query_of_hit),
        pa.array(np.arange(1, len(hits.rows) + 1) - np.repeat(hits.starts[:-1], sizes), pa.int64()),
        targets.take_ids(hits.rows),
        pa.array(hits.scores, pa.float64()),
    ]
    if sources.has_names:
        columns.append(sources.take_names(queries).take(query_of_hit).cast(pa.string()))
    if targets.has_names:
        columns.append(targets.take_names(hits.rows).cast(pa.string()))
    return pa.Table.from_arrays(columns, schema=hit_schema(sources, targets))


def write_hits(path: Path, table: pa.Table) -> None:
    """Write the hits of a block to a Parquet file, with its checksum beside it."""

    def write(temporary: Path) -> None:
        pq.write_table(table, temporary)
        sync(temporary)
        write_text(checksum_of(path), checksum(temporary, path.name))

    write_whole(path, write)


def _finish_folder(job: JoinJob, blocks: Sequence[Path]) -> int:
    """Make the folder of blocks, or of one empty block, the result; return the number of pairs."""
    with writing(job.out):
        tables = list(blocks) or [job.parts / "000000.parquet"]
        if not blocks:
            pq.write_table(job.schema.empty_table(), tables[0])
        pairs: int = sum(pq.read_metadata(table).num_rows for table in tables)
        for other in set(job.parts.iterdir()) - set(tables):
            shutil.rmtree(other) if other.is_dir() else other.unlink()
        job.parts.rename(job.out)
    return pairs


# ---- The folder of finished blocks ---------------------------------------------------------------
MANIFEST = "join.json"
_SHOWN = ("k", "min_score", "block")
_WORDS = {
    "scorer": "measure", "params": "meta-path or parameter", "learned": "model or way to multiply",
    "names": "set of names, as joins of earlier versions have none",
}  # fmt: skip
_WORK, _DISCARDED = "work-", "discarded-"


def parts_of(out: Path) -> Path:
    """Return the folder of finished blocks."""
    return out.with_name(f"{out.name}.parts")


def lock_of(out: Path) -> Path:
    """Return the file that keeps other joins from the same result."""
    return out.with_name(f"{out.name}.lock")


def checksum_of(part: Path) -> Path:
    """Return the file with the checksum of a finished block."""
    return part.with_suffix(".sha256")


def count_finished(out: Path) -> int:
    """Return the number of finished blocks of an unfinished join."""
    return sum(1 for _ in parts_of(out).glob("[0-9]*.parquet"))


@contextmanager
def claim(out: Path) -> Iterator[None]:
    """Lock out other joins to the same result, and tasks of an earlier join that still run somewhere."""
    if parts_of(out).is_symlink():  # what is not a finished block is removed from it
        raise WriteError(f"{parts_of(out)} is a symbolic link, where the blocks of this join would go; remove it")
    with locked(lock_of(out), f"another join writes to {out}; wait until it is done, or give another name"):
        for work in parts_of(out).glob(f"{_WORK}*"):
            discard(work)
        yield


def make_parts(parts: Path) -> None:
    """Create the folder of finished blocks, unless it exists."""
    with writing(parts):
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


def _remove_damaged(job: JoinJob) -> None:
    """Remove the finished blocks that do not fit their checksum, so that they are ranked again."""
    finished = [job.part(number) for number in range(job.num_blocks) if job.part(number).is_file()]
    damaged = [part for part in finished if not _is_intact(part)]
    for part in damaged:
        part.unlink()
    if damaged:
        logger.warning(
            "%d of %d finished blocks in %s do not fit their checksums and are ranked again",
            len(damaged), len(finished), job.parts,
        )  # fmt: skip


def _is_intact(part: Path) -> bool:
    try:
        return checksum_of(part).read_bytes() == checksum(part, part.name).encode()
    except OSError:
        return False


def _read_manifest(manifest: Path) -> dict[str, Any]:
    try:
        content = json.loads(manifest.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def _check_same(parts: Path, theirs: dict[str, Any], ours: dict[str, Any]) -> None:
    """Raise if the finished blocks belong to another join, and say how it differs."""
    names = [name for name in {**ours, **theirs} if theirs.get(name) != ours.get(name)]
    if not names:
        return
    differences = [f"{name} ({theirs.get(name)})" if name in _SHOWN else _WORDS.get(name, name) for name in names]
    raise SourceError(
        f"{parts} holds blocks of another join, with another {listed(differences)}; finish that join, or remove the "
        f"folder"
    )

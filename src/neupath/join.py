"""Join: the top K of every query, streamed to one Parquet file, resumable, in bounded memory.

Blocks of queries are finished one by one as files of their own beside the result, in FILE.parts, and put together at
the end, one row group a block. A join that was killed goes on after its last finished block, and its file is the same
to the byte. Memory, besides the graph and the product: some 24 bytes for each of `block` × K hits.
"""

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from neupath.errors import QueryError, SourceError, WriteError
from neupath.files import check_folder, write_text, write_whole
from neupath.graph import digest
from neupath.nodes import Nodes, Rows
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


def join(
    scorer: Scorer,
    path: str | Path,
    k: int | None = 10,
    *,
    queries: Rows | None = None,
    min_score: float = 0.0,
    block: int = BLOCK,
    threads: int | None = None,
    progress: Progress = lambda *_: None,
) -> Joined:
    """Write the k most similar targets of each query to a Parquet file with the columns query, rank, target, score.

    Queries are rows, all by default; each is left out of its own hits. With `min_score`, only pairs that reach it are
    kept, and `k` = None keeps all of them.

    >>> from tempfile import TemporaryDirectory
    >>> from neupath import PathSim, load
    >>> with TemporaryDirectory() as folder:
    ...     joined = join(PathSim("APVPA").fit(load("toy")), Path(folder) / "top.parquet", k=2)
    ...     pq.read_table(joined.path).slice(0, 2).to_pydict()["target"]
    ['Bob', 'Mary']
    """
    target = Path(path)
    nodes = scorer.hin_.nodes[scorer.source_type]
    asked = np.arange(len(nodes)) if queries is None else np.asarray(queries, dtype=np.int64)
    limit, count = None if k is None else check_k(k), len(scorer.hin_.nodes[scorer.target_type])
    most = count if limit is None else min(limit, count)
    check_threads(threads)
    _check(target, asked, k, min_score, block)
    if len(asked) and not 0 <= asked.min() <= asked.max() < len(nodes):
        raise QueryError(f"queries are rows from 0 to {len(nodes) - 1}; {asked.min()} to {asked.max()} are given")
    step = max(1, min(block, _MOST_HITS // max(1, most)))
    parts = target.with_name(f"{target.name}.parts")
    resumed = _open_parts(parts, _describe(scorer, asked, limit, min_score, step))
    starts = range(0, len(asked), step)
    for number, start in enumerate(starts):
        part = parts / f"{number:06}.parquet"
        if number >= resumed or not part.is_file():
            table = _rank(scorer, asked[start : start + step], limit, min_score, threads)
            write_whole(part, lambda temporary, table=table: pq.write_table(table, temporary))  # type: ignore[misc]
        progress(min(start + step, len(asked)), len(asked))
    pairs = _put_together(parts, len(starts), target, _schema(scorer))
    _remove_parts(parts)
    return Joined(target, len(asked), pairs, len(starts), min(resumed, len(starts)))


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


def _open_parts(parts: Path, description: str) -> int:
    """Make the folder of finished blocks, or return how many there are."""
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
    done = 0
    while (parts / f"{done:06}.parquet").is_file():
        done += 1
    return done


def _remove_parts(parts: Path) -> None:
    """Remove finished blocks, what they are of last: without it, nobody takes them for their own."""
    for part in parts.glob("*.parquet"):
        part.unlink()
    shutil.rmtree(parts)


def _rank(scorer: Scorer, queries: Rows, limit: int | None, min_score: float, threads: int | None) -> pa.Table:
    """Return the hits of some queries as a table."""
    same_type = scorer.source_type == scorer.target_type
    skipped = queries if same_type else np.full(len(queries), -1, dtype=np.int64)
    if limit is None:
        reached = scorer.reach_rows(queries, skipped, min_score, threads)
        sizes, rows, scores = np.diff(reached.starts), reached.rows, reached.scores
    else:
        found = scorer.rank_rows(queries, skipped, limit, None, threads)
        kept = (np.arange(found.rows.shape[1]) < found.sizes[:, None]) & (found.scores >= min_score)
        sizes, rows, scores = kept.sum(axis=1), found.rows[kept], found.scores[kept]
    columns = [
        _ids(scorer.hin_.nodes[scorer.source_type], np.repeat(queries, sizes)),
        pa.array(np.arange(1, len(rows) + 1) - np.repeat(np.cumsum(sizes) - sizes, sizes), pa.int64()),
        _ids(scorer.hin_.nodes[scorer.target_type], rows),
        pa.array(scores, pa.float64()),
    ]
    return pa.Table.from_arrays(columns, schema=_schema(scorer))


def _ids(nodes: Nodes, rows: Rows) -> pa.Array:
    return nodes.ids.take(pa.array(rows))


def _schema(scorer: Scorer) -> pa.Schema:
    hin = scorer.hin_
    return pa.schema(
        [
            ("query", hin.nodes[scorer.source_type].ids.type),
            ("rank", pa.int64()),
            ("target", hin.nodes[scorer.target_type].ids.type),
            ("score", pa.float64()),
        ]
    )


def _put_together(parts: Path, count: int, target: Path, schema: pa.Schema) -> int:
    """Write the blocks as row groups of one file, one after the other; return how many pairs there are."""
    total = 0

    def write(temporary: Path) -> None:
        nonlocal total
        with pq.ParquetWriter(temporary, schema) as writer:
            for number in range(count):
                table = pq.ParquetFile(parts / f"{number:06}.parquet").read()
                total += table.num_rows
                writer.write_table(table, row_group_size=max(1, table.num_rows))

    write_whole(target, write)
    return total

"""Chunks: the tables of a graph in pieces that a task reads: row groups of their Parquet files, or rows of one."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import file_digest
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from neupath.cluster.tiles import group
from neupath.datasets.faults import explained
from neupath.datasets.parts import as_wanted, check_alike
from neupath.datasets.tables import TableFile

_MOST_ROWS = 1 << 20
_BATCH_ROWS, _BATCH_BYTES = 1 << 16, 1 << 20


@dataclass(frozen=True)
class Chunk:
    """Some neighbouring row groups of a part of a table, or some rows of one, from the table's row `first` on."""

    path: Path
    groups: range
    first: int
    rows: int
    skipped: int | None = None
    """Rows of the group that stand before these; nothing where all rows of the groups are taken."""

    def read(self, columns: Sequence[str]) -> pa.Table:
        """Read some columns as `load` does, with texts for what are no integers."""
        with explained(self.path):
            table = self._read_groups(columns) if self.skipped is None else self._read_rows(columns, self.skipped)
            return as_wanted(table, columns, dict.fromkeys(columns, pa.string())).combine_chunks()

    def _read_groups(self, columns: Sequence[str]) -> pa.Table:
        return pq.ParquetFile(self.path).read_row_groups(self.groups, columns=list(columns), use_threads=False)

    def _read_rows(self, columns: Sequence[str], skipped: int) -> pa.Table:
        """Read a row group a batch at a time, and keep the rows from `skipped` on."""
        file = pq.ParquetFile(self.path, pre_buffer=False, buffer_size=_BATCH_BYTES)
        kept, at = [], 0
        for batch in file.iter_batches(_BATCH_ROWS, list(self.groups), list(columns), use_threads=False):
            if at + len(batch) > skipped:
                kept.append(batch.slice(max(0, skipped - at), skipped + self.rows - max(at, skipped)))
            at += len(batch)
            if at >= skipped + self.rows:
                break
        return pa.Table.from_batches(kept)


def cut_table(file: TableFile, columns: Sequence[str], most: int) -> tuple[Chunk, ...]:
    """Cut a table into chunks of at most so many rows; a row group is cut where a task could not hold it."""
    chunks: list[Chunk] = []
    first = 0
    check_alike(file.parts, columns, dict.fromkeys(columns, pa.string()))
    for part in file.parts:
        metadata = pq.read_metadata(part)
        sizes = [metadata.row_group(at).num_rows for at in range(metadata.num_row_groups)]
        for groups in group(sizes, min(most, _MOST_ROWS)):
            rows = sum(sizes[at] for at in groups)
            chunks += _cut_group(Chunk(part.absolute(), groups, first, rows), most)
            first += rows
    return tuple(chunks) or (Chunk(file.parts[0].absolute(), range(0), 0, 0),)


def _cut_group(chunk: Chunk, most: int) -> list[Chunk]:
    """Cut a row group that has more rows than a task may hold; others stay whole, since a piece reads all before it."""
    step = -(-chunk.rows // max(1, -(-chunk.rows // most)))
    if step >= chunk.rows:
        return [chunk]
    return [
        replace(chunk, first=chunk.first + at, rows=min(step, chunk.rows - at), skipped=at)
        for at in range(0, chunk.rows, step)
    ]


def key_type(file: TableFile, column: str) -> pa.DataType:
    """Return the type that the ids of a column are read as, the same in all parts."""
    return file.told_types([column], {column: pa.string()})[column]


def as_keys(ids: pa.Array, as_text: bool) -> pa.Array:
    """Return ids as they are compared: as texts, where one column of their type holds texts and another integers."""
    return pc.cast(ids, pa.string()) if as_text else ids


def digest_part(path: Path) -> str:
    """Return a text that differs between files of different content."""
    with explained(path), path.open("rb") as stream:
        return file_digest(stream, "sha256").hexdigest()

"""Chunks: the tables of a graph in pieces that a task reads, by row groups of their Parquet files."""

from collections.abc import Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Chunk:
    """Some neighbouring row groups of a part of a table, from the table's row `first` on."""

    path: Path
    groups: range
    first: int
    rows: int

    def read(self, columns: Sequence[str]) -> pa.Table:
        """Read some columns as `load` does, with texts for what are no integers."""
        with explained(self.path):
            table = pq.ParquetFile(self.path).read_row_groups(self.groups, columns=list(columns), use_threads=False)
            return as_wanted(table, columns, dict.fromkeys(columns, pa.string())).combine_chunks()


def cut_table(file: TableFile, columns: Sequence[str], most: int) -> tuple[Chunk, ...]:
    """Cut a table into chunks of at most so many rows, or one row group where that has more."""
    chunks: list[Chunk] = []
    first = 0
    check_alike(file.parts, columns, dict.fromkeys(columns, pa.string()))
    for part in file.parts:
        metadata = pq.read_metadata(part)
        sizes = [metadata.row_group(at).num_rows for at in range(metadata.num_row_groups)]
        for groups in group(sizes, min(most, _MOST_ROWS)):
            rows = sum(sizes[at] for at in groups)
            chunks.append(Chunk(part.absolute(), groups, first, rows))
            first += rows
    return tuple(chunks) or (Chunk(file.parts[0].absolute(), range(0), 0, 0),)


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

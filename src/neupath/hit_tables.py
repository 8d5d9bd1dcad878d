"""Hit tables: the hits of a block of queries as a Parquet file, and the files of all blocks as one or as a folder."""

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from neupath.errors import WriteError
from neupath.files import write_whole
from neupath.graph import Floats
from neupath.nodes import Rows
from neupath.ranking import Ranking


@dataclass(frozen=True)
class Found:
    """The hits of some queries, one query after the other, best first; `sizes` says how many each has."""

    sizes: Rows
    rows: Rows
    scores: Floats


def found_of(ranking: Ranking, min_score: float) -> Found:
    """Return the hits of a ranking that reach a score."""
    kept = (np.arange(ranking.rows.shape[1]) < ranking.sizes[:, None]) & (ranking.scores >= min_score)
    return Found(kept.sum(axis=1), ranking.rows[kept], ranking.scores[kept])


def write_hits(path: Path, queries: pa.Array, targets: pa.Array, found: Found) -> None:
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

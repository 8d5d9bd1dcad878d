"""Tables in Parquet: a file, or a folder of files that are the parts of one table."""

import os
from bisect import bisect
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import accumulate
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from neupath.errors import SourceError, listed
from neupath.io.tables import SAMPLE_ROWS, Report, TableFile, Types, no_report, sample_of
from neupath.io.text_files import file_errors

_BATCH_ROWS, _BUFFER_BYTES = 1 << 17, 1 << 20


class ParquetTable(TableFile):
    """A table in Parquet; `parts` are its files."""

    @cached_property
    def parts(self) -> Sequence[Path]:  # type: ignore[override]
        with file_errors(self.path):
            if not self.path.is_dir():
                return [self.path]
            parts = parquet_files(self.path)
        if not parts:
            raise SourceError(f"{self.path} is a folder without Parquet files; a table in parts has at least one")
        return parts

    @cached_property
    def _schema(self) -> pa.Schema:
        return _schema_of(self.parts[0])

    @cached_property
    def columns(self) -> list[str]:
        return self._checked(list(self._schema.names))

    @cached_property
    def sample(self) -> Mapping[str, Sequence[str]]:
        with file_errors(self.path):
            file = pq.ParquetFile(self.parts[0], pre_buffer=False)
            batch = next(file.iter_batches(SAMPLE_ROWS, columns=self.columns, use_threads=False), None)
            table = pa.table({}) if batch is None else pa.Table.from_batches([batch])
            table.validate(full=True)  # Arrow checks neither texts nor offsets when it reads them
            return sample_of(table, self.columns)

    def read(self, columns: Sequence[str], types: Types) -> pa.Table:
        names = list(dict.fromkeys(columns))
        self._check_parts(names, types)
        tables = []
        for part in self.parts:
            with file_errors(part):
                tables.append(_cast_columns(pq.ParquetFile(part).read(columns=names), names, types))
        return pa.concat_tables(tables)

    def batches(self, columns: Sequence[str], types: Types, report: Report = no_report) -> Iterator[pa.Table]:
        names = list(dict.fromkeys(columns))
        self._check_parts(names, types)
        with file_errors(self.path):
            empty = _cast_columns(self._schema.empty_table(), names, types)
        yield empty
        done, count = 0, sum(map(_count_rows, self.parts))
        report(done, count)
        for part in self.parts:
            with file_errors(part):
                file = pq.ParquetFile(part, pre_buffer=False, buffer_size=_BUFFER_BYTES)
                for batch in file.iter_batches(_BATCH_ROWS, columns=names, use_threads=False):
                    done += len(batch)
                    yield _cast_columns(pa.Table.from_batches([batch]), names, types)
                    report(done, count)

    def place(self, row: int) -> str:
        starts = [0, *accumulate(_count_rows(part) for part in self.parts[:-1])]
        at = bisect(starts, row) - 1
        return f"{self.parts[at]}, row {row - starts[at] + 1}"

    def _check_parts(self, columns: Sequence[str], types: Types) -> None:
        """Raise if a part has other columns than the first, or columns of other types."""
        first = self.parts[0]
        for part in self.parts[1:]:
            schema = _schema_of(part)
            _check_columns(part, schema.names, first, self._schema.names)
            with file_errors(part):
                own, expected = (_cast_columns(s.empty_table(), columns, types).schema for s in (schema, self._schema))
            if own != expected:
                kinds, others = (", ".join(f"{field.name}: {field.type}" for field in each) for each in (own, expected))
                raise SourceError(
                    f"{part} has other column types ({kinds}) than {first.name} ({others}); "
                    f"write all parts of a table with the same types"
                )


# Hive-style folders such as year=2020 may lie between; the values in their names are not read.
def parquet_files(folder: Path) -> list[Path]:
    """Return the Parquet files of a folder and of the partition folders in it; links cannot make it read one twice."""
    files: list[Path] = []
    seen: set[str] = set()
    folders = [folder]
    while folders:
        inner = folders.pop()
        if (real := os.path.realpath(inner)) in seen:
            continue
        seen.add(real)
        # names that begin with _ or . are marks of the writer, such as _SUCCESS or _metadata
        visible = [path for path in inner.iterdir() if not path.name.startswith(("_", "."))]
        files += [path for path in visible if path.suffix.lower() == ".parquet" and path.is_file()]
        folders += [path for path in visible if is_partition(path)]
    return sorted(files)


def is_partition(path: Path) -> bool:
    """Whether a folder is named after a value of a column, such as year=2020."""
    return "=" in path.name and path.is_dir()


def _schema_of(part: Path) -> pa.Schema:
    with file_errors(part):
        if not is_parquet(part):
            raise SourceError(f"{part} is named .parquet but is not a Parquet file")
        return pq.read_schema(part)


def is_parquet(path: Path) -> bool:
    """Whether a file begins as Parquet does, whatever its name says."""
    with path.open("rb") as stream:
        return stream.read(4) == b"PAR1"


def _check_columns(part: Path, names: Sequence[str], first: Path, expected: Sequence[str]) -> None:
    for column in expected:
        if column not in names:
            raise SourceError(f"{part} has no column {column!r} (it has {listed(names)}), but {first.name} has one")
    for column in names:
        if column not in expected:  # such as a weight, which would be ignored silently
            raise SourceError(
                f"{part} has a column {column!r}, but {first.name} has none; write all parts with the same columns"
            )


def _cast_columns(table: pa.Table, columns: Sequence[str], types: Types) -> pa.Table:
    """Return some columns of a Parquet table, each cast to its type in `types`, if any; raise if one is damaged."""
    for name in columns:
        table[name].validate(full=True)  # Arrow checks neither texts nor offsets when it reads them
    return pa.table({name: _cast(table[name], types.get(name)) for name in columns})


def _count_rows(part: Path) -> int:
    """Return the number of rows of a part."""
    with file_errors(part):
        return int(pq.read_metadata(part).num_rows)


def _cast(column: pa.ChunkedArray, kind: pa.DataType | None) -> pa.ChunkedArray:
    """Cast a column, but leave integers that should become text, such as ids, integers."""
    if kind is None:
        return column
    whole = pa.types.is_integer(column.type) or (
        pa.types.is_dictionary(column.type) and pa.types.is_integer(column.type.value_type)
    )
    if pa.types.is_floating(column.type) and pa.types.is_string(kind):
        column = pc.if_else(pc.is_nan(column), None, column)  # else a missing id would be called nan
    return column.cast(pa.int64() if whole and pa.types.is_string(kind) else kind)

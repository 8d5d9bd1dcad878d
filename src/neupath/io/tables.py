"""One table file as an Arrow table: CSV, TSV or Parquet, plain or gzipped; errors name the file and the line."""

import codecs
from bisect import bisect
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from neupath._runtime.progress import Progress, no_progress
from neupath.errors import SourceError, did_you_mean, first_line, listed
from neupath.io.text_files import Dialect, QuoteWatch, TextFile, file_errors, is_number, not_utf8, open_raw, unmarked

# ---- One table -----------------------------------------------------------------------------------
TEXT_SUFFIXES = (".csv", ".tsv", ".tab", ".txt", ".dat", ".sif")
TABLE_SUFFIXES = (*TEXT_SUFFIXES, ".parquet")
_PARQUET_MAGIC = b"PAR1"
_ROW_NUMBERS = ("", "Unnamed: 0")
"""What pandas and R call the column of row numbers when they write a data frame."""
_BATCH_ROWS, _BATCH_BYTES = 1 << 17, 1 << 20
"""Size of a batch: rows of a Parquet table, bytes of a text table."""


def is_table(path: Path) -> bool:
    """Whether a path is a table: a file with a suffix of tables, or a folder of Parquet files."""
    if path.name.startswith("."):
        return False
    if path.is_dir():
        return bool(parquet_files(path))
    return path.is_file() and _plain_suffix(path) in TABLE_SUFFIXES


def is_data_file(path: Path) -> bool:
    """Whether a file is named .dat, which may be a table or anything else."""
    return _plain_suffix(path) == ".dat" and path.is_file()


def stem(path: Path) -> str:
    """Return a table's name without its suffixes: movie_actor for movie_actor.tsv.gz."""
    name = _unzipped(path)
    return name[: len(name) - len(Path(name).suffix)]


def _plain_suffix(path: Path) -> str:
    return Path(_unzipped(path)).suffix.lower()


def _unzipped(path: Path) -> str:
    return path.name[:-3] if path.name.lower().endswith(".gz") else path.name


class TableFile:
    """A table on disk: CSV, TSV or Parquet, gzipped or not; `read` and `batches` read its columns.

    Columns of a table without a header are named "1", "2", … by position. A table may be a folder of Parquet `parts`.

    Parameters
    ----------
    path
        The file or folder.
    dialect
        How a text table is written; the file decides what it leaves open.

    """

    def __init__(self, path: Path, dialect: Dialect | None = None) -> None:
        self.path = path
        self._text = TextFile(path, dialect or Dialect(), stem(path), _plain_suffix(path))
        with file_errors(self.path):
            self.parts = parts_of(path)
            with open_raw(self.parts[0]) as stream:
                self._start = stream.read(4096)
            if not self._start:
                raise SourceError(f"{self.parts[0]} is empty; a table has at least a header line")
        self.is_parquet = self._start[:4] == _PARQUET_MAGIC
        if not self.is_parquet:
            self._check_text()

    def _check_text(self) -> None:
        if _plain_suffix(self.parts[0]) == ".parquet":
            raise SourceError(f"{self.parts[0]} is named .parquet but is not a Parquet file")
        if self._start[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
            raise SourceError(f"{self.path} is UTF-16 text; convert it, for example with iconv -f UTF-16 -t UTF-8")
        if b"\0" in self._start:
            raise SourceError(
                f"{self.path} is a binary file, not a text table (it has a zero byte at {self._start.index(0)}); "
                f"give CSV, TSV or Parquet"
            )

    @cached_property
    def columns(self) -> list[str]:
        """The column names, in order, without the row numbers of a data frame."""
        return [name for name in self._written_columns if name not in _ROW_NUMBERS or not self._is_counted(name)]

    def _is_counted(self, name: str) -> bool:
        """Whether a column of a text table counts the rows, from 0 or from 1."""
        if self.is_parquet:
            return False
        at = self._written_columns.index(name)
        cells = [row[at] for row in self._text.sample[1:] if len(row) > at]
        return any(cells == [str(row) for row in range(first, first + len(cells))] for first in (0, 1))

    @cached_property
    def _written_columns(self) -> list[str]:
        with file_errors(self.path):
            if self.is_parquet:
                names = list(pq.read_schema(self.parts[0]).names)
            elif self.has_header:
                first, *others = self._text.sample[0]
                names = [name.strip() for name in (unmarked(first), *others)]
            else:
                names = [str(number) for number in range(1, len(self._text.sample[0]) + 1)]
        if not names:
            raise SourceError(f"{self.path} has no columns")
        for name in names:
            if names.count(name) > 1:
                raise SourceError(f"{self.path} has {names.count(name)} columns named {name!r}; name each differently")
        return names

    @property
    def comments(self) -> int:
        """The number of lines above the table that are skipped as comments."""
        return 0 if self.is_parquet else self._text.comments

    @property
    def has_header(self) -> bool:
        """Whether the first line names the columns."""
        return self.is_parquet or self._text.has_header

    def column(self, name: str | None, purpose: str) -> str:
        """Return the name of a column as the table has it; raise if it has none."""
        plain = None if name is None else name if name in self.columns else unmarked(name)
        if plain not in self.columns:
            raise SourceError(
                f"{self.path} has no column {name!r} for the {purpose} (it has {listed(self.columns)})"
                f"{did_you_mean(name or '', self.columns)}"
            )
        return plain

    def read(self, columns: Sequence[str], types: Mapping[str, pa.DataType]) -> pa.Table:
        """Read some columns; those without a type in `types` get the one that their values suggest."""
        names = list(dict.fromkeys(columns))
        with file_errors(self.path):
            if self.is_parquet:
                check_parts(self.parts, names, types)
                return pa.concat_tables(_read_part(part, names, types) for part in self.parts).combine_chunks()
            zipped = self._text.compression
            with self._bad_lines(), pa.input_stream(self.path, compression=zipped) as raw, self._watched(raw) as text:
                return pa.csv.read_csv(text, **self._options(names, types)).combine_chunks()

    @contextmanager
    def _bad_lines(self) -> Iterator[None]:
        """Turn Arrow's error about a text table into one that names the line."""
        try:
            yield
        except pa.ArrowInvalid as error:
            if self.is_parquet:
                raise
            raise self._find_bad_line() or SourceError(f"{self.path}: {first_line(error)}") from error

    @contextmanager
    def _watched(self, stream: Any) -> Iterator[Any]:
        """Watch the quotes of a text while it is read; afterwards raise if one is not closed."""
        if not self._text.quote:
            yield stream
            return
        watch = QuoteWatch(stream, self._text.quote)
        yield pa.PythonFile(watch, mode="r")
        if watch.spans_lines:
            self._refuse_unclosed()

    def _refuse_unclosed(self) -> None:
        line = self._text.unclosed_line()
        if line is not None:
            raise SourceError(
                f"{self.path}, line {line}: a quote ({self._text.quote}) is not closed, so its cell swallows the lines "
                f'below; close it, or set quote = "" in graph.toml if quotes are ordinary characters'
            )

    def _options(
        self, columns: Sequence[str], types: Mapping[str, pa.DataType], block_size: int | None = None
    ) -> dict[str, Any]:
        text = self._text
        skipped = text.lines_above + int(text.has_header)
        return {
            "read_options": pa.csv.ReadOptions(
                column_names=self._written_columns, skip_rows=skipped, block_size=block_size
            ),
            "parse_options": pa.csv.ParseOptions(
                delimiter=text.delimiter, quote_char=text.quote or False, newlines_in_values=bool(text.quote)
            ),
            "convert_options": pa.csv.ConvertOptions(include_columns=list(columns), column_types=dict(types)),
        }

    def batches(
        self,
        columns: Sequence[str],
        types: Mapping[str, pa.DataType],
        progress: Progress = no_progress,
        stage: str = "reading",
    ) -> Iterator[pa.Table]:
        """Read some columns batch by batch, an empty batch first; each column of a text table needs a type."""
        names = list(dict.fromkeys(columns))
        read = self._parquet_batches if self.is_parquet else self._text_batches
        with file_errors(self.path), self._bad_lines():
            for table, done, total in read(names, types):
                yield cast_columns(table, names, types)
                progress(stage, done, total)

    def _text_batches(
        self, columns: list[str], types: Mapping[str, pa.DataType]
    ) -> Iterator[tuple[pa.Table, int, int]]:
        """Yield batches, with how many bytes of the file are read, and how many there are."""
        size = max(1, self.path.stat().st_size)
        with pa.OSFile(str(self.path)) as raw:
            stream = pa.CompressedInputStream(raw, self._text.compression) if self._text.compression else raw
            with self._watched(stream) as watched:
                reader = pa.csv.open_csv(watched, **self._options(columns, types, _BATCH_BYTES))
                yield reader.schema.empty_table(), 0, size
                for batch in reader:
                    yield pa.Table.from_batches([batch]), raw.tell(), size

    def _parquet_batches(
        self, columns: list[str], types: Mapping[str, pa.DataType]
    ) -> Iterator[tuple[pa.Table, int, int]]:
        """Yield batches, with how many rows are read, and how many there are."""
        check_parts(self.parts, columns, types)
        yield pq.read_schema(self.parts[0]).empty_table(), 0, self.num_rows
        done = 0
        for part in self.parts:
            with file_errors(part):
                file = pq.ParquetFile(part, pre_buffer=False, buffer_size=_BATCH_BYTES)
                for batch in file.iter_batches(_BATCH_ROWS, columns=columns, use_threads=False):
                    done += len(batch)
                    yield pa.Table.from_batches([batch]), done, self.num_rows

    @cached_property
    def num_rows(self) -> int:
        """The number of rows of a Parquet table."""
        with file_errors(self.path):
            return sum(count_rows(part) for part in self.parts)

    @cached_property
    def is_empty(self) -> bool:
        """Whether the table has no rows."""
        if self.is_parquet:
            return self.num_rows == 0
        return len(self._text.sample) <= int(self.has_header)

    def has_numbers(self, column: str) -> bool:
        """Whether the first values of a column are numbers."""
        if self.is_parquet:
            kind = pq.read_schema(self.parts[0]).field(column).type
            return not (pa.types.is_string(kind) or pa.types.is_large_string(kind))
        at = self._written_columns.index(column)
        return all(is_number(row[at]) for row in self._text.sample[1:] if len(row) > at)

    def declared_types(self, columns: Sequence[str], types: Mapping[str, pa.DataType]) -> dict[str, pa.DataType]:
        """Return the types that columns get when they are read, except those that follow from values."""
        if not self.is_parquet:
            return dict(types)
        empty = cast_columns(pq.read_schema(self.parts[0]).empty_table(), columns, types)
        return {name: empty.schema.field(name).type for name in columns}

    def place(self, row: int) -> str:
        """Return where a data row (from 0) is: the file and the line."""
        if self.is_parquet:
            starts = [0, *accumulate(count_rows(part) for part in self.parts[:-1])]
            at = bisect(starts, row) - 1
            return f"{self.parts[at]}, row {row - starts[at] + 1}"
        for number, (line, _) in enumerate(self._text.records()):
            if number == row + int(self.has_header):
                return f"{self.path}, line {line}"
        return f"{self.path}, row {row + 1}"

    def _find_bad_line(self) -> SourceError | None:
        """Search the file for the line that is not UTF-8, leaves a quote open or has a wrong number of columns."""
        width = len(self._written_columns)
        try:
            self._refuse_unclosed()
            for line, cells in self._text.records():
                if len(cells) != width:
                    return SourceError(
                        f"{self.path}, line {line}: expected {width} columns as in the "
                        f"{'header' if self.has_header else 'first line'} ({listed(self._written_columns)}), got "
                        f"{len(cells)}; the delimiter is {self._text.delimiter!r}"
                    )
        except UnicodeDecodeError as error:
            return SourceError(f"{self.path} {not_utf8(error)}")
        return None


# ---- A table in parts: a folder of Parquet files -------------------------------------------------
# Hive-style folders such as year=2020 may lie between; the values in their names are not read.
def parts_of(path: Path) -> list[Path]:
    """Return the files of a table: the file itself, or the Parquet files of a folder."""
    if not path.is_dir():
        return [path]
    parts = parquet_files(path)
    if not parts:
        raise SourceError(f"{path} is a folder without Parquet files; a table in parts has at least one")
    return parts


def parquet_files(folder: Path) -> list[Path]:
    """Return the Parquet files of a folder and of the partition folders in it."""
    # names that begin with _ or . are marks of the writer, such as _SUCCESS or _metadata
    visible = [path for path in folder.iterdir() if not path.name.startswith(("_", "."))]
    files = [path for path in visible if path.suffix.lower() == ".parquet" and path.is_file()]
    inner = [part for path in visible if is_partition(path) for part in parquet_files(path)]
    return sorted([*files, *inner])


def is_partition(path: Path) -> bool:
    """Whether a folder is named after a value of a column, such as year=2020."""
    return "=" in path.name and path.is_dir()


def _read_part(part: Path, columns: Sequence[str], types: Mapping[str, pa.DataType]) -> pa.Table:
    with file_errors(part):
        return cast_columns(pq.ParquetFile(part).read(columns=list(columns)), columns, types)


def check_parts(parts: Sequence[Path], columns: Sequence[str], types: Mapping[str, pa.DataType]) -> None:
    """Raise if a part has other columns than the first, or columns of other types."""
    schemas = []
    for part in parts:
        with file_errors(part):
            schemas.append(pq.read_schema(part))
    first: pa.Schema | None = None
    for part, schema in zip(parts, schemas, strict=True):
        _check_columns(part, schema.names, parts[0], schemas[0].names)
        with file_errors(part):
            own = cast_columns(schema.empty_table(), columns, types).schema
        first = first or own
        if own != first:
            kinds, others = (", ".join(f"{field.name}: {field.type}" for field in each) for each in (own, first))
            raise SourceError(
                f"{part} has other column types ({kinds}) than {parts[0].name} ({others}); "
                f"write all parts of a table with the same types"
            )


def _check_columns(part: Path, names: Sequence[str], first: Path, expected: Sequence[str]) -> None:
    for column in expected:
        if column not in names:
            raise SourceError(f"{part} has no column {column!r} (it has {listed(names)}), but {first.name} has one")
    for column in names:
        if column not in expected:  # such as a weight, which would be ignored silently
            raise SourceError(
                f"{part} has a column {column!r}, but {first.name} has none; write all parts with the same columns"
            )


def cast_columns(table: pa.Table, columns: Sequence[str], types: Mapping[str, pa.DataType]) -> pa.Table:
    """Return some columns of a Parquet table, each cast to its type in `types`, if any."""
    return pa.table({name: _cast(table[name], types.get(name)) for name in columns})


def count_rows(part: Path) -> int:
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
    return column.cast(pa.int64() if whole and pa.types.is_string(kind) else kind)

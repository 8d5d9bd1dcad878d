"""One table file as an Arrow table: CSV, TSV or Parquet, plain or gzipped; errors name the file and the line."""

import codecs
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from neupath.datasets.faults import explained
from neupath.datasets.parts import as_wanted, check_alike, count_rows, is_in_parts, parts_of, place_in, read_parts
from neupath.datasets.quotes import QuoteWatch
from neupath.datasets.textfiles import Dialect, TextFile, is_number, not_utf8, read_start, unmarked
from neupath.errors import SourceError, did_you_mean, first_line, listed

TEXT_SUFFIXES = (".csv", ".tsv", ".tab", ".txt", ".dat", ".sif")
TABLE_SUFFIXES = (*TEXT_SUFFIXES, ".parquet")
_PARQUET_MAGIC = b"PAR1"
_ROW_NUMBERS = ("", "Unnamed: 0")
"""What pandas and R call the column in which data frames have the numbers of their rows."""
_BATCH_ROWS, _BATCH_BYTES = 1 << 17, 1 << 20
"""Rows of a Parquet table, and bytes of any, that are read at a time where all do not fit."""
Advance = Callable[[float], object]
"""Is told which share of a table has been read."""


def unseen(_share: float) -> None:
    """Show nobody how far the reading is."""


def is_table(path: Path) -> bool:
    """Whether a file's name says that it is a table, or a folder holds one in parts."""
    if path.name.startswith("."):
        return False
    return is_in_parts(path) or (path.is_file() and _plain_suffix(path) in TABLE_SUFFIXES)


def is_data_file(path: Path) -> bool:
    """Whether a table is named .dat, as much else is."""
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
    """A table on disk: its column names are known at once, its columns are read when asked for.

    Columns of a table without a header are named "1", "2", … by position. A table may be a folder of Parquet `parts`.
    """

    def __init__(self, path: Path, dialect: Dialect | None = None) -> None:
        self.path = path
        self._text = TextFile(path, dialect or Dialect(), stem(path), _plain_suffix(path))
        with explained(self.path):
            self.parts = parts_of(path)
            self._start = read_start(self.parts[0])
            if not self._start:
                raise SourceError(f"{self.parts[0]} is empty; a table has at least a header line")
        self.is_parquet = self._start[:4] == _PARQUET_MAGIC
        if not self.is_parquet:
            self._check_text()

    def _check_text(self) -> None:
        if _plain_suffix(self.parts[0]) == ".parquet":
            raise SourceError(f"{self.parts[0]} is named as Parquet but is not a Parquet file")
        if self._start[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
            raise SourceError(f"{self.path} is UTF-16 text; convert it, for example with iconv -f UTF-16 -t UTF-8")
        if b"\0" in self._start:
            raise SourceError(
                f"{self.path} is a binary file, not a text table (it has a zero byte at {self._start.index(0)}); "
                f"give CSV, TSV or Parquet"
            )

    @cached_property
    def columns(self) -> list[str]:
        """The column names, in order, without the row numbers that data frames are written with."""
        return [name for name in self._written_columns if name not in _ROW_NUMBERS or not self._is_counted(name)]

    def _is_counted(self, name: str) -> bool:
        """Whether a column of a text table counts the rows, from 0 or from 1."""
        if self.is_parquet:
            return False
        at = self._written_columns.index(name)
        given = [row[at] for row in self._text.sample[1:] if len(row) > at]
        return any(given == [str(row) for row in range(first, first + len(given))] for first in (0, 1))

    @cached_property
    def _written_columns(self) -> list[str]:
        with explained(self.path):
            if self.is_parquet:
                names = list(pa.parquet.read_schema(self.parts[0]).names)
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
        """How many lines above the table are skipped as comments."""
        return 0 if self.is_parquet else self._text.comments

    @property
    def has_header(self) -> bool:
        """Whether the first line names the columns."""
        return self.is_parquet or self._text.has_header

    def column(self, name: str | None, purpose: str) -> str:
        """Return a column's name if the table has it."""
        plain = None if name is None else name if name in self.columns else unmarked(name)
        if plain not in self.columns:
            raise SourceError(
                f"{self.path} has no column {name!r} for the {purpose} (it has {listed(self.columns)})"
                f"{did_you_mean(name or '', self.columns)}"
            )
        return plain

    def read(self, columns: Sequence[str], types: Mapping[str, pa.DataType]) -> pa.Table:
        """Read some columns; those without a given type get the one their values suggest."""
        wanted = list(dict.fromkeys(columns))
        with explained(self.path):
            if self.is_parquet:
                return read_parts(self.parts, wanted, types).combine_chunks()
            try:
                return self._read_text(wanted, types).combine_chunks()
            except pa.ArrowInvalid as error:
                raise self._find_fault() or SourceError(f"{self.path}: {first_line(error)}") from error

    def _read_text(self, columns: Sequence[str], types: Mapping[str, pa.DataType]) -> pa.Table:
        with pa.input_stream(self.path, compression=self._text.compression) as stream, self._watched(stream) as watched:
            return pa.csv.read_csv(watched, **self._options(columns, types))

    @contextmanager
    def _watched(self, stream: Any) -> Iterator[Any]:
        """Watch the quotes of a text while it is read, and refuse one that is not closed once that is done."""
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
                f"{self.path}, line {line}: a quote ({self._text.quote}) is opened and not closed, so that the lines "
                f'behind it are in its cell; close it, or set quote = "" in graph.toml if quotes are mere characters'
            )

    def _options(
        self, columns: Sequence[str], types: Mapping[str, pa.DataType], block_size: int | None = None
    ) -> dict[str, Any]:
        text = self._text
        return {
            "read_options": pa.csv.ReadOptions(
                column_names=self._written_columns, skip_rows=text.header_lines, block_size=block_size
            ),
            "parse_options": pa.csv.ParseOptions(
                delimiter=text.delimiter, quote_char=text.quote or False, newlines_in_values=bool(text.quote)
            ),
            "convert_options": pa.csv.ConvertOptions(include_columns=list(columns), column_types=dict(types)),
        }

    def batches(
        self, columns: Sequence[str], types: Mapping[str, pa.DataType], advance: Advance = unseen
    ) -> Iterator[pa.Table]:
        """Read some columns a part at a time, an empty one first; those of a text table need a type each."""
        wanted = list(dict.fromkeys(columns))
        of_text = None if self.is_parquet else self._text_batches(wanted, types, advance)
        read = of_text or self._parquet_batches(wanted, types, advance)
        with explained(self.path):
            try:
                for table in read:
                    yield as_wanted(table, wanted, types)
            except pa.ArrowInvalid as error:
                if self.is_parquet:
                    raise
                raise self._find_fault() or SourceError(f"{self.path}: {first_line(error)}") from error

    def _text_batches(
        self, columns: list[str], types: Mapping[str, pa.DataType], advance: Advance
    ) -> Iterator[pa.Table]:
        size = max(1, self.path.stat().st_size)
        with pa.OSFile(str(self.path)) as raw:
            stream = pa.CompressedInputStream(raw, self._text.compression) if self._text.compression else raw
            with self._watched(stream) as watched:
                reader = pa.csv.open_csv(watched, **self._options(columns, types, _BATCH_BYTES))
                yield reader.schema.empty_table()
                for batch in reader:
                    yield pa.Table.from_batches([batch])
                    advance(raw.tell() / size)

    def _parquet_batches(
        self, columns: list[str], types: Mapping[str, pa.DataType], advance: Advance
    ) -> Iterator[pa.Table]:
        check_alike(self.parts, columns, types)
        yield pa.parquet.read_schema(self.parts[0]).empty_table()
        done = 0
        for part in self.parts:
            with explained(part):
                file = pa.parquet.ParquetFile(part, pre_buffer=False, buffer_size=_BATCH_BYTES)
                for batch in file.iter_batches(_BATCH_ROWS, columns=columns, use_threads=False):
                    yield pa.Table.from_batches([batch])
                    done += len(batch)
                    advance(done / self.num_rows)

    @cached_property
    def num_rows(self) -> int:
        """How many rows a Parquet table has."""
        with explained(self.path):
            return sum(count_rows(part) for part in self.parts)

    @cached_property
    def is_empty(self) -> bool:
        """Whether the table has a header at most."""
        if self.is_parquet:
            return self.num_rows == 0
        return len(self._text.sample) <= int(self.has_header)

    def has_numbers(self, column: str) -> bool:
        """Whether a column holds numbers, as its first values show."""
        if self.is_parquet:
            kind = pa.parquet.read_schema(self.parts[0]).field(column).type
            return not (pa.types.is_string(kind) or pa.types.is_large_string(kind))
        at = self._written_columns.index(column)
        return all(is_number(row[at]) for row in self._text.sample[1:] if len(row) > at)

    def told_types(self, columns: Sequence[str], types: Mapping[str, pa.DataType]) -> dict[str, pa.DataType]:
        """Return the types that columns have when they are read, as far as they need not be found out from values."""
        if not self.is_parquet:
            return dict(types)
        empty = as_wanted(pa.parquet.read_schema(self.parts[0]).empty_table(), columns, types)
        return {name: empty.schema.field(name).type for name in columns}

    def place(self, row: int) -> str:
        """Say where a data row (from 0) stands: the file and the line."""
        if self.is_parquet:
            return place_in(self.parts, row)
        for number, (line, _) in enumerate(self._text.records()):
            if number == row + int(self.has_header):
                return f"{self.path}, line {line}"
        return f"{self.path}, row {row + 1}"

    def _find_fault(self) -> SourceError | None:
        """Walk through the file for the line that is not UTF-8, opens a quote or has a wrong number of columns."""
        width = len(self._written_columns)
        try:
            self._refuse_unclosed()
            for line, cells in self._text.records():
                if len(cells) != width:
                    return SourceError(
                        f"{self.path}, line {line}: {len(cells)} column{'s' * (len(cells) != 1)} where {width} are "
                        f"expected ({listed(self._written_columns)}); the delimiter is {self._text.delimiter!r}"
                    )
        except UnicodeDecodeError as error:
            return SourceError(f"{self.path} {not_utf8(error)}")
        return None

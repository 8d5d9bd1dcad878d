"""Tables, on disk (CSV, TSV, Parquet, plain or gzipped) or in memory: columns, first values, rows and their places."""

import codecs
import json
import os
import re
from abc import ABC, abstractmethod
from bisect import bisect
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from neupath._runtime.progress import Progress, no_progress
from neupath.errors import SourceError, did_you_mean, first_line, listed
from neupath.io.text_files import (
    BoundedGzip,
    Dialect,
    QuoteWatch,
    TextFile,
    file_errors,
    is_number,
    not_utf8,
    open_raw,
    unmarked,
)

# ---- What a table is -----------------------------------------------------------------------------
SAMPLE_ROWS = 2048
"""How many rows of a table decide what its columns hold."""


class Table(ABC):
    """A table wherever it is: name, columns and first values say what it holds; `read` and `batches` read its columns.

    Columns of a table without a header are named "1", "2", … by position.
    """

    name: str
    """The name that says what the table holds, such as movie_actor; it may be empty."""
    label: str
    """What notes call it."""
    title: str
    """What errors call it."""
    parts: Sequence[Path] = ()
    """Its files, if it is on disk."""
    header_holds: str = ""
    """What the names of its columns are values of, where a data frame says so, as the axis of a pivot table does."""
    index: Sequence[str] = ()
    """The columns that were the index of a data frame; one without a name, which is not read, is an empty text."""
    in_python: str = ""
    """What calls it in Python, with its index as columns; empty if it is on disk."""

    @property
    @abstractmethod
    def columns(self) -> list[str]:
        """The column names, in order, without the row numbers of a data frame."""

    @property
    @abstractmethod
    def typed(self) -> bool:
        """Whether the table declares which values are integers; in text tables their looks decide."""

    @property
    def has_header(self) -> bool:
        """Whether the columns have names of their own."""
        return True

    @property
    def comments(self) -> int:
        """The number of lines above the table that are skipped as comments."""
        return 0

    @property
    def is_folder(self) -> bool:
        """Whether it is a folder, whose name may say nothing of what it holds."""
        return False

    @property
    @abstractmethod
    def is_empty(self) -> bool:
        """Whether the table has no rows."""

    @property
    @abstractmethod
    def sample(self) -> Mapping[str, Sequence[str]]:
        """The first values of each column as texts; empty cells are empty texts, and lists are JSON."""

    @abstractmethod
    def is_list(self, column: str) -> bool:
        """Whether a column is declared to hold lists."""

    @abstractmethod
    def read(self, columns: Sequence[str], types: Mapping[str, pa.DataType]) -> pa.Table:
        """Read some columns; those without a type in `types` get the one that their values suggest."""

    @abstractmethod
    def batches(
        self,
        columns: Sequence[str],
        types: Mapping[str, pa.DataType],
        progress: Progress = no_progress,
        stage: str = "reading",
    ) -> Iterator[pa.Table]:
        """Read some columns batch by batch, an empty batch first; each column of a text table needs a type."""

    @abstractmethod
    def declared_types(self, columns: Sequence[str], types: Mapping[str, pa.DataType]) -> dict[str, pa.DataType]:
        """Return the types that columns get when they are read, except those that follow from values."""

    @abstractmethod
    def place(self, row: int) -> str:
        """Return where a data row (from 0) is, for error messages."""

    def column(self, name: str | None, purpose: str) -> str:
        """Return the name of a column as the table has it; raise if it has none."""
        plain = None if name is None else name if name in self.columns else unmarked(name)
        if plain not in self.columns:
            raise SourceError(
                f"{self.title} has no column {name!r} for the {purpose} (it has {listed(self.columns)})"
                f"{did_you_mean(name or '', self.columns)}"
            )
        return plain

    def has_numbers(self, column: str) -> bool:
        """Whether the first values of a column are numbers."""
        if column not in self._has_numbers:
            self._has_numbers[column] = all(is_number(value) for value in self.sample[column] if value)
        return self._has_numbers[column]

    @cached_property
    def _has_numbers(self) -> dict[str, bool]:
        """The answers of `has_numbers`, which many rules ask for."""
        return {}


# ---- A table on disk -----------------------------------------------------------------------------
TEXT_SUFFIXES = (".csv", ".tsv", ".tab", ".txt", ".dat", ".sif")
TABLE_SUFFIXES = (*TEXT_SUFFIXES, ".parquet")
_PARQUET_MAGIC = b"PAR1"
_ROW_NUMBERS = ("", "Unnamed: 0")
"""What pandas and R call the column of row numbers when they write a data frame."""
_MOST_COLUMNS = 20_000
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


class TableFile(Table):
    """A table on disk: CSV, TSV or Parquet, gzipped or not. A table may be a folder of Parquet `parts`.

    It is opened when something of it is needed first.

    Parameters
    ----------
    path
        The file or folder.
    dialect
        How a text table is written; the file decides what it leaves open.

    """

    def __init__(self, path: Path, dialect: Dialect | None = None) -> None:
        self.path = path
        self.name, self.label, self.title = stem(path), path.name, str(path)
        self._text = TextFile(path, dialect or Dialect(), self.name, _plain_suffix(path))

    @cached_property
    def parts(self) -> Sequence[Path]:  # type: ignore[override]
        with file_errors(self.path):
            return parts_of(self.path)

    @cached_property
    def _start(self) -> bytes:
        with file_errors(self.path), open_raw(self.parts[0]) as stream:
            start = stream.read(4096)
        if not start:
            raise SourceError(f"{self.parts[0]} is empty; a table has at least a header line")
        return start

    @cached_property
    def is_parquet(self) -> bool:
        """Whether it is in Parquet; raise if it is neither Parquet nor text."""
        if self._start[:4] == _PARQUET_MAGIC:
            return True
        self._check_text()
        return False

    @property
    def typed(self) -> bool:
        return self.is_parquet

    @property
    def is_folder(self) -> bool:
        return self.path.is_dir()

    def _check_text(self) -> None:
        if _plain_suffix(self.parts[0]) == ".parquet":
            raise SourceError(f"{self.parts[0]} is named .parquet but is not a Parquet file")
        if self._start.startswith(2 * codecs.BOM_UTF8):
            raise SourceError(
                f"{self.path} begins with two byte-order marks, and the second would be part of its first cell; remove "
                f"both, for example with sed '1s/^\\(\\xef\\xbb\\xbf\\)*//'"
            )
        if self._start[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
            raise SourceError(f"{self.path} is UTF-16 text; convert it, for example with iconv -f UTF-16 -t UTF-8")
        if b"\0" in self._start:
            raise SourceError(
                f"{self.path} is a binary file, not a text table (it has a zero byte at {self._start.index(0)}); "
                f"give CSV, TSV or Parquet"
            )

    @cached_property
    def columns(self) -> list[str]:
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
        if len(names) > _MOST_COLUMNS:
            raise SourceError(
                f"{self.path} has {len(names):,} columns, and at most {_MOST_COLUMNS:,} are read; leave out those that "
                f"are neither ids nor attributes, or check the delimiter"
            )
        for name, times in Counter(names).items():
            if times > 1:
                raise SourceError(f"{self.path} has {times} columns named {name!r}; name each differently")
        return names

    @property
    def comments(self) -> int:
        return 0 if self.is_parquet else self._text.comments

    @property
    def has_header(self) -> bool:
        return self.is_parquet or self._text.has_header

    def read(self, columns: Sequence[str], types: Mapping[str, pa.DataType]) -> pa.Table:
        names = list(dict.fromkeys(columns))
        with file_errors(self.path):
            if self.is_parquet:
                check_parts(self.parts, names, types)
                return pa.concat_tables(_read_part(part, names, types) for part in self.parts).combine_chunks()
            with self._bad_lines(), self._open_text() as stream, self._watched(stream) as text:
                table = self._trimmed(pa.csv.read_csv(text, **self._options(names, types))).combine_chunks()
                self._refuse_joined(table, 0)
                return table

    def _open_text(self) -> Any:
        """Open a text table for Arrow, which reads plain files fastest itself."""
        return BoundedGzip(self.path) if self._text.is_zipped else pa.OSFile(str(self.path))

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
            yield pa.PythonFile(stream, mode="r") if isinstance(stream, BoundedGzip) else stream
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
        with self._open_text() as stream, self._watched(stream) as watched:
            reader = pa.csv.open_csv(watched, **self._options(columns, types, _BATCH_BYTES))
            yield reader.schema.empty_table(), 0, size
            before = 0
            for batch in reader:
                done = stream.zipped if isinstance(stream, BoundedGzip) else stream.tell()
                table = self._trimmed(pa.Table.from_batches([batch]))
                self._refuse_joined(table, before)
                before += len(table)
                yield table, done, size

    def _refuse_joined(self, table: pa.Table, before: int) -> None:
        """Raise if several files were joined to one: a byte-order mark or a second header is among the rows."""
        texts = [name for name in table.column_names if pa.types.is_string(table[name].type)]
        if not texts or not len(table):
            return
        marked = pc.starts_with(table[texts[0]], "\ufeff")
        if pc.any(marked).as_py():
            row = before + pc.index(marked, True).as_py()
            raise SourceError(
                f"{self.place(row)}: a byte-order mark is in the middle of the file, as where files are joined; it "
                f"would be part of an id; remove it, for example with sed 's/^\\xef\\xbb\\xbf//'"
            )
        heads = pc.equal(table[texts[0]], texts[0])
        if len(texts) > 1 and self.has_header and pc.any(heads).as_py():
            for row in np.flatnonzero(pc.fill_null(heads, False).to_numpy()):
                if all(table[name][int(row)].as_py() == name for name in texts):
                    raise SourceError(
                        f"{self.place(before + int(row))}: the header is repeated among the rows, as where files are "
                        f"joined; remove it there"
                    )

    def _trimmed(self, table: pa.Table) -> pa.Table:
        """Return a text table without the spaces that follow its delimiters."""
        if not self._text.is_spaced:
            return table
        return pa.table({name: _trim(table[name]) for name in table.column_names})

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
        if self.is_parquet:
            return self.num_rows == 0
        return len(self._text.sample) <= int(self.has_header)

    @cached_property
    def sample(self) -> Mapping[str, Sequence[str]]:
        with file_errors(self.path):
            if not self.is_parquet:
                width = len(self._written_columns)
                rows = self._text.sampled_rows(SAMPLE_ROWS)[int(self.has_header) :]
                whole = [row for row in rows if len(row) == width]
                cells = dict(zip(self._written_columns, zip(*whole, strict=True), strict=True)) if whole else {}
                return {name: cells.get(name, ()) for name in self.columns}
            file = pq.ParquetFile(self.parts[0], pre_buffer=False)
            batch = next(file.iter_batches(SAMPLE_ROWS, columns=self.columns, use_threads=False), None)
            table = pa.table({}) if batch is None else pa.Table.from_batches([batch])
            table.validate(full=True)  # Arrow checks neither texts nor offsets when it reads them
            return sample_of(table, self.columns)

    def is_list(self, column: str) -> bool:
        return self.is_parquet and is_list_type(pq.read_schema(self.parts[0]).field(column).type)

    def declared_types(self, columns: Sequence[str], types: Mapping[str, pa.DataType]) -> dict[str, pa.DataType]:
        if not self.is_parquet:
            return dict(types)
        empty = cast_columns(pq.read_schema(self.parts[0]).empty_table(), columns, types)
        return {name: empty.schema.field(name).type for name in columns}

    def place(self, row: int) -> str:
        """Return the file and the line of a data row (from 0)."""
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


# ---- A table in memory ---------------------------------------------------------------------------
class ArrowTable(Table):
    """A table in memory.

    Parameters
    ----------
    table
        Its content.
    name
        The name that says what it holds.
    title
        What errors call it.

    """

    def __init__(self, table: pa.Table, name: str, title: str) -> None:
        repeated = [column for column, times in Counter(table.column_names).items() if times > 1]
        if repeated:
            raise SourceError(f"{title} has several columns named {repeated[0]!r}; name each differently")
        self._table = table
        self.name, self.title = name, title
        self.label = name or title

    @property
    def columns(self) -> list[str]:
        return list(self._table.column_names)

    @property
    def typed(self) -> bool:
        return True

    @property
    def is_empty(self) -> bool:
        return len(self._table) == 0

    @cached_property
    def sample(self) -> Mapping[str, Sequence[str]]:
        return sample_of(self._table.slice(0, SAMPLE_ROWS), self.columns)

    def is_list(self, column: str) -> bool:
        return is_list_type(self._table.schema.field(column).type)

    def read(self, columns: Sequence[str], types: Mapping[str, pa.DataType]) -> pa.Table:
        return pa.table({name: _as_written(self._table[name], types.get(name)) for name in dict.fromkeys(columns)})

    def batches(
        self,
        columns: Sequence[str],
        types: Mapping[str, pa.DataType],
        progress: Progress = no_progress,
        stage: str = "reading",
    ) -> Iterator[pa.Table]:
        whole = self.read(columns, types)
        yield whole.slice(0, 0)
        yield whole
        progress(stage, len(whole), len(whole))

    def declared_types(self, columns: Sequence[str], types: Mapping[str, pa.DataType]) -> dict[str, pa.DataType]:
        schema = self.read(columns, types).schema
        return dict(zip(schema.names, schema.types, strict=True))

    def place(self, row: int) -> str:
        return f"{self.title}, row {row + 1}"


def _trim(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_binary(column.type):  # the types of attributes are not known yet
        return pc.ascii_trim_whitespace(column.cast(pa.string())).cast(pa.binary())
    return pc.utf8_trim_whitespace(column) if pa.types.is_string(column.type) else column


def is_list_type(kind: pa.DataType) -> bool:
    """Whether values of a type are lists."""
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def sample_of(table: pa.Table, columns: Sequence[str]) -> dict[str, list[str]]:
    """Return the values of some columns as texts."""
    return {name: [_as_text(value) for value in table[name].to_pylist()] if len(table) else [] for name in columns}


def _as_text(value: object) -> str:
    if value is None or value != value:  # noqa: PLR0124  a missing number of pandas is nan
        return ""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))  # integers with a missing value are floats in pandas
    return json.dumps(value, default=str, ensure_ascii=False) if isinstance(value, list) else str(value)


def _as_written(column: pa.ChunkedArray, kind: pa.DataType | None) -> pa.ChunkedArray:
    """Return a column as text or integers if `kind` is text; fractions, and what is neither, stay as they are."""
    if pa.types.is_dictionary(column.type):
        column = pa.chunked_array([chunk.dictionary_decode() for chunk in column.chunks], column.type.value_type)
    if kind is None or pa.types.is_floating(column.type) or is_list_type(column.type):
        return column
    try:
        return column.cast(pa.int64() if pa.types.is_integer(column.type) else kind)
    except pa.ArrowException:
        return column


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


_PART_WORD = re.compile(r"part|data|chunk|file|snappy|zstd|gzip|gz|lz4|c?\d*|(?=.*\d)[0-9a-f]{4,}")


def is_in_parts(folder: Path) -> bool:
    """Whether a folder is itself a table in parts: its tables are partition folders, or Parquet files with numbers."""
    tables = [path for path in folder.iterdir() if not path.name.startswith("_") and is_table(path)]
    return bool(tables) and all(is_partition(path) or _is_part(path) for path in tables)


def _is_part(path: Path) -> bool:
    """Whether the name of a Parquet file only counts it: part-00000-1c0ffee0.parquet, data_0.parquet."""
    name, numbered = stem(path).lower(), any(letter.isdigit() for letter in stem(path))
    parquet = path.is_file() and path.suffix.lower() == ".parquet"
    return parquet and numbered and all(_PART_WORD.fullmatch(word) for word in re.split(r"[-_.]", name))


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
    """Return some columns of a Parquet table, each cast to its type in `types`, if any; raise if one is damaged."""
    for name in columns:
        table[name].validate(full=True)  # Arrow checks neither texts nor offsets when it reads them
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
    if pa.types.is_floating(column.type) and pa.types.is_string(kind):
        column = pc.if_else(pc.is_nan(column), None, column)  # else a missing id would be called nan
    return column.cast(pa.int64() if whole and pa.types.is_string(kind) else kind)

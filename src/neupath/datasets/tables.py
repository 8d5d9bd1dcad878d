"""One table file as an Arrow table: CSV, TSV or Parquet, plain or gzipped; errors name the file and the line."""

import csv
import gzip
import io
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, cast

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from neupath.datasets.parts import is_in_parts, parts_of, place_in, read_parts
from neupath.errors import SourceError, did_you_mean, listed

TEXT_SUFFIXES = (".csv", ".tsv", ".tab", ".txt", ".sif")
TABLE_SUFFIXES = (*TEXT_SUFFIXES, ".parquet")
_GZIP_MAGIC, _PARQUET_MAGIC = b"\x1f\x8b", b"PAR1"
_SAMPLE_LINES = 200
HEADER_WORDS = {
    "id", "name", "title", "type", "kind", "weight", "source", "target", "src", "dst", "head", "tail", "subject",
    "object", "relation", "predicate", "metaedge", "from", "to", "start", "end", "entity", "entity1", "entity2",
}  # fmt: skip


@dataclass(frozen=True)
class Dialect:
    """How a text table is written; None means: find out from the file."""

    delimiter: str | None = None
    quote: str | None = None
    header: bool | None = None


def is_table(path: Path) -> bool:
    """Whether a file's name says that it is a table, or a folder holds the parts of one."""
    if path.name.startswith("."):
        return False
    return (path.is_file() and _plain_suffix(path) in TABLE_SUFFIXES) or is_in_parts(path)


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
        self._given = dialect or Dialect()
        with self._explained():
            self.parts = parts_of(path)
            self._start = _read_start(self.parts[0])
            if not self._start:
                raise SourceError(f"{path} is empty; a table has at least a header line")
        self.is_parquet = self._start[:4] == _PARQUET_MAGIC
        if not self.is_parquet:
            self._check_text()

    def _check_text(self) -> None:
        if _plain_suffix(self.path) == ".parquet":
            raise SourceError(f"{self.path} is named as Parquet but is not a Parquet file")
        if b"\0" in self._start:
            raise SourceError(
                f"{self.path} is a binary file, not a text table (it has a zero byte at {self._start.index(0)}); "
                f"give CSV, TSV or Parquet"
            )

    @cached_property
    def columns(self) -> list[str]:
        """The column names, in order."""
        with self._explained():
            if self.is_parquet:
                names = list(pa.parquet.read_schema(self.parts[0]).names)
            elif self.has_header:
                names = [name.strip() for name in self._sample[0]]
            else:
                names = [str(number) for number in range(1, len(self._sample[0]) + 1)]
        if not names:
            raise SourceError(f"{self.path} has no columns")
        for name in names:
            if names.count(name) > 1:
                raise SourceError(f"{self.path} has {names.count(name)} columns named {name!r}; name each differently")
        return names

    @property
    def num_rows(self) -> int:
        """How many rows a Parquet table has."""
        with self._explained():
            return sum(pa.parquet.read_metadata(part).num_rows for part in self.parts)

    @cached_property
    def has_header(self) -> bool:
        """Whether the first line names the columns; a line that looks like the data below it does not."""
        if self.is_parquet:
            return True
        if self._given.header is not None:
            return self._given.header
        first, later = self._sample[0], self._sample[1:]
        if any(_names_a_column(cell, stem(self.path)) for cell in first):
            return True
        if _plain_suffix(self.path) == ".txt":
            return False
        return not any(
            _is_number(cell) or any(len(row) > at and row[at] == cell for row in later) for at, cell in enumerate(first)
        )

    def column(self, name: str | None, purpose: str) -> str:
        """Return a column's name if the table has it."""
        if name is None or name not in self.columns:
            raise SourceError(
                f"{self.path} has no column {name!r} for the {purpose} (it has {listed(self.columns)})"
                f"{did_you_mean(name or '', self.columns)}"
            )
        return name

    def read(self, columns: Sequence[str], types: Mapping[str, pa.DataType]) -> pa.Table:
        """Read some columns; those without a given type get the one their values suggest."""
        wanted = list(dict.fromkeys(columns))
        with self._explained():
            if self.is_parquet:
                return read_parts(self.parts, wanted, types).combine_chunks()
            try:
                return self._read_text(wanted, types).combine_chunks()
            except pa.ArrowInvalid as error:
                raise self._find_fault() or SourceError(f"{self.path}: {_first_line(error)}") from error

    def _read_text(self, columns: Sequence[str], types: Mapping[str, pa.DataType]) -> pa.Table:
        with pa.input_stream(self.path, compression=self._compression) as stream:
            return pa.csv.read_csv(
                stream,
                read_options=pa.csv.ReadOptions(column_names=self.columns, skip_rows=self._header_lines),
                parse_options=pa.csv.ParseOptions(
                    delimiter=self._delimiter, quote_char=self._quote or False, newlines_in_values=bool(self._quote)
                ),
                convert_options=pa.csv.ConvertOptions(include_columns=list(columns), column_types=dict(types)),
            )

    def place(self, row: int) -> str:
        """Say where a data row (from 0) stands: the file and the line."""
        if self.is_parquet:
            return place_in(self.parts, row)
        for number, (line, _) in enumerate(self._records()):
            if number == row + int(self.has_header):
                return f"{self.path}, line {line}"
        return f"{self.path}, row {row + 1}"

    def _find_fault(self) -> SourceError | None:
        """Walk through the file for the line that is not UTF-8 or has a wrong number of columns."""
        width = len(self.columns)
        try:
            for line, cells in self._records():
                if len(cells) != width:
                    return SourceError(
                        f"{self.path}, line {line}: {len(cells)} column{'s' * (len(cells) != 1)} where {width} are "
                        f"expected ({listed(self.columns)}); the delimiter is {self._delimiter!r}"
                    )
        except UnicodeDecodeError as error:
            return SourceError(f"{self.path} {_not_utf8(error)}")
        return None

    def _records(self) -> Iterator[tuple[int, list[str]]]:
        """Yield every record that is not blank with the line it begins at, as the csv module reads it."""
        begins = 1
        with _open(self.path) as raw:
            reader = self._reader(io.TextIOWrapper(raw, encoding="utf-8-sig", newline=""))
            for cells in reader:
                if cells:
                    yield begins, cells
                begins = reader.line_num + 1

    def _reader(self, lines: Iterable[str]) -> Any:
        return _csv_reader(lines, self._delimiter, self._quote)

    @cached_property
    def _compression(self) -> str | None:
        with self.path.open("rb") as stream:
            zipped = stream.read(2) == _GZIP_MAGIC
        if not zipped and self.path.name.lower().endswith(".gz"):
            raise SourceError(f"{self.path} is named .gz but is not gzipped")
        return "gzip" if zipped else None

    @cached_property
    def _lines(self) -> list[str]:
        """The first lines of the file, without blank ones."""
        try:
            with _open(self.path) as raw:
                text = io.TextIOWrapper(raw, encoding="utf-8-sig")
                lines = [line.rstrip("\r\n") for line in islice(text, _SAMPLE_LINES)]
        except UnicodeDecodeError as error:
            raise SourceError(f"{self.path} {_not_utf8(error)}") from error
        found = [line for line in lines if line.strip()]
        if not found:
            raise SourceError(f"{self.path} has only blank lines; a table has at least a header line")
        return found

    @cached_property
    def _header_lines(self) -> int:
        """How many lines to skip: the header and the blank lines above it."""
        if not self.has_header:
            return 0
        with _open(self.path) as raw:
            text = io.TextIOWrapper(raw, encoding="utf-8-sig")
            return next(number for number, line in enumerate(text, 1) if line.strip())

    @cached_property
    def _sample(self) -> list[list[str]]:
        return list(self._reader(iter(self._lines)))

    @cached_property
    def _quote(self) -> str | None:
        """The quote character: `"` in comma-separated files, none in others, unless it was given ("" for none)."""
        if self._given.quote is not None:
            return self._given.quote or None
        return '"' if self._delimiter in ",;" else None

    @cached_property
    def _delimiter(self) -> str:
        """The delimiter that cuts the first line and at least half of the others into the same number of columns."""
        if self._given.delimiter is not None:
            return self._given.delimiter
        usual = "\t" if _plain_suffix(self.path) in (".tsv", ".tab", ".sif") else ","
        for delimiter in dict.fromkeys([usual, "\t", ",", ";", "|", " "]):
            rows = list(_csv_reader(self._lines, delimiter, '"' if delimiter in ",;" else None))
            alike = sum(len(row) == len(rows[0]) for row in rows)
            if len(rows[0]) > 1 and 2 * alike >= len(rows):
                return delimiter
        return usual

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn what the system says of a file into a sentence."""
        try:
            yield
        except FileNotFoundError as error:
            raise SourceError(f"no such file: {self.path}") from error
        except PermissionError as error:
            raise SourceError(f"no permission to read {self.path}") from error
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise SourceError(f"{self.path} is a damaged gzip file ({error}); make it or fetch it again") from error
        except (pa.ArrowException, csv.Error) as error:
            raise SourceError(f"{self.path} cannot be read: {_first_line(error)}") from error
        except OSError as error:
            raise SourceError(f"{self.path} cannot be read, it may be cut short: {_first_line(error)}") from error


def _csv_reader(lines: Iterable[str], delimiter: str, quote: str | None) -> Any:
    csv.field_size_limit(2**31 - 1)
    if quote:
        return csv.reader(lines, delimiter=delimiter, quotechar=quote)
    return csv.reader(lines, delimiter=delimiter, quoting=csv.QUOTE_NONE)


def _open(path: Path) -> BinaryIO:
    stream = path.open("rb")
    zipped = stream.peek(2)[:2] == _GZIP_MAGIC
    if not zipped:
        return stream
    stream.close()
    return cast(BinaryIO, gzip.open(path, "rb"))


def _read_start(path: Path) -> bytes:
    with _open(path) as stream:
        return stream.read(4096)


def _names_a_column(cell: str, name: str) -> bool:
    """Whether a cell of the first line is a word that headers have: an id, a usual name, or the file's own name."""
    word = cell.strip().lower()
    own = {part.removesuffix("s") for part in re.split(r"[_\-\s.]+", name.lower())}
    return word in HEADER_WORDS or word.endswith("_id") or cell.strip().endswith(("Id", "ID")) or word in own


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _not_utf8(error: UnicodeDecodeError) -> str:
    return f"is not UTF-8 text (byte {error.object[error.start]:#04x}); convert it, for example with iconv -t UTF-8"


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__

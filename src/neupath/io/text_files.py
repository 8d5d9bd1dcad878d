"""Text tables: the delimiter, the quotes, the header and the comments of a CSV or TSV file, gzipped or not."""

import csv
import gzip
import io
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import islice, takewhile
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa

from neupath._runtime.files import bounded_lines
from neupath.errors import SourceError, first_line

# ---- How a text table is written -----------------------------------------------------------------
_SAMPLE_LINES, _SAMPLE_LETTERS = 200, 1 << 22
"""How much of a table decides how it is written: the first lines, fewer where they are long."""
_COMMENT_MARKS = ("# ", "% ")
_GZIP_MAGIC = b"\x1f\x8b"
HEADER_WORDS = {
    "id", "name", "title", "type", "kind", "weight", "source", "target", "src", "dst", "head", "tail", "subject",
    "object", "relation", "predicate", "metaedge", "from", "to", "start", "end", "entity", "entity1", "entity2",
}  # fmt: skip


@dataclass(frozen=True)
class Dialect:
    """How a text table is written; None means that the file decides."""

    delimiter: str | None = None
    quote: str | None = None
    header: bool | None = None
    comments: bool = True
    """Whether the lines above a table may be comments."""


@dataclass(frozen=True)
class TextFile:
    """A text table: how it is written, as its dialect or else its first lines say, and its records."""

    path: Path
    dialect: Dialect
    name: str
    suffix: str

    @cached_property
    def has_header(self) -> bool:
        """Whether the first line names the columns; a line that looks like the data below does not."""
        if self.dialect.header is not None:
            return self.dialect.header
        first, later = self.sample[0], self.sample[1:]
        words = sum(names_a_column(cell, self.name) for cell in first)
        if words and any(map(is_number, first)) and 2 * words < len(first):  # a row with a word such as target in it
            return False
        if words or self._heads_numbers:
            return True
        if self.suffix == ".txt":
            return False
        return not any(
            is_number(cell) or any(len(row) > at and _looks_alike(cell, row[at]) for row in later)
            for at, cell in enumerate(first)
        )

    @cached_property
    def _heads_numbers(self) -> bool:
        """Whether the first line has words alone, one of them above a column of numbers."""
        first, *later = self.sample
        rows = [row for row in later if len(row) == len(first)]
        if not rows or any(is_number(cell) or not cell.strip() for cell in first):
            return False
        return any(all(is_number(row[at]) for row in rows) for at in range(len(first)))

    @cached_property
    def is_spaced(self) -> bool:
        """Whether a space follows every delimiter of the first lines, which belongs to no cell."""
        rows = [row for row in self.sample if len(row) > 1]
        return bool(rows) and self.delimiter != " " and all(c[:1] == " " for row in rows for c in row[1:])

    def records(self) -> Iterator[tuple[int, list[str]]]:
        """Yield every record that is not blank, as the csv module reads it, with its first line."""
        before = self.lines_above
        first = before + 1
        with open_lines(self.path, newline="") as lines:
            reader = self._reader(islice(lines, before, None))
            for cells in reader:
                if cells:
                    yield first, cells
                first = before + reader.line_num + 1

    def unclosed_line(self) -> int | None:
        """Return the line of the first record whose quote is not closed, or None."""
        if not self.quote:
            return None
        with open_lines(self.path, newline="", errors="replace") as lines:
            below = islice(lines, self.lines_above, None)
            line = find_unclosed(below, self.delimiter, self.quote)
            return None if line is None else self.lines_above + line

    def _reader(self, lines: Iterable[str]) -> Any:
        return csv_reader(lines, self.delimiter, self.quote)

    @cached_property
    def is_zipped(self) -> bool:
        """Whether the file is gzipped."""
        with self.path.open("rb") as stream:
            zipped = stream.read(2) == _GZIP_MAGIC
        if not zipped and self.path.name.lower().endswith(".gz"):
            raise SourceError(f"{self.path} is named .gz but is not gzipped; rename it, or compress it with gzip")
        return zipped

    @cached_property
    def _first_lines(self) -> list[str]:
        try:
            with open_lines(self.path) as lines:
                return [line.rstrip("\r\n") for line in _sampled(lines)]
        except UnicodeDecodeError as error:
            raise SourceError(f"{self.path} {not_utf8(error)}") from error

    @cached_property
    def _below(self) -> list[str]:
        """The first lines without blank ones and comments; if all lines start like comments, they are the table."""
        lines = list(filter(str.strip, self._first_lines[self._marked :])) or list(filter(str.strip, self._first_lines))
        if not lines:
            raise SourceError(f"{self.path} has only blank lines and comments; a table has at least a header line")
        return lines

    @cached_property
    def _marked(self) -> int:
        """The number of leading lines that are blank or start like comments."""
        is_above = _is_above if self.dialect.comments else _is_blank
        return sum(1 for _ in takewhile(is_above, self._first_lines))

    @cached_property
    def lines_above(self) -> int:
        """The number of blank lines and comments above the table."""
        marked = self._first_lines[: self._marked]
        if all(map(_is_blank, self._first_lines[self._marked :])):
            return sum(1 for _ in takewhile(_is_blank, marked))
        if self.delimiter == " ":  # a space cuts every comment into cells
            return self._marked
        above = [[] if _is_blank(line) else next(self._reader([line])) for line in marked]
        return self._marked - _count_own(above, list(self._reader(self._below)), self.name)

    @cached_property
    def comments(self) -> int:
        """The number of comments above the table."""
        return sum(not _is_blank(line) for line in self._first_lines[: self.lines_above])

    @cached_property
    def sample(self) -> list[list[str]]:
        """The first records, cut into cells."""
        return list(self._reader(filter(str.strip, self._first_lines[self.lines_above :])))

    def sampled_rows(self, most: int) -> list[list[str]]:
        """Return the first records, as many as decide what the columns hold; fewer decide how a table is written."""
        with open_lines(self.path, newline="", errors="replace") as lines:
            below = islice(_sampled(lines, most), self.lines_above, None)
            rows = list(self._reader(filter(str.strip, below)))
        return [[cell.strip() for cell in row] for row in rows] if self.is_spaced else rows

    @cached_property
    def quote(self) -> str | None:
        """The quote character: that of the dialect ("" means none), else `"` in files with commas or semicolons.

        In other files it is `"` if whole columns are quoted, as R writes them.
        """
        if self.dialect.quote is not None:
            return self.dialect.quote or None
        return '"' if self.delimiter in ",;" or self._quotes_columns else None

    @cached_property
    def _quotes_columns(self) -> bool:
        """Whether the first line and some columns below it have quotes around every cell, and others around none."""
        first, *rows = [line.split(self.delimiter) for line in self._below]
        quoted = [[len(cell) > 1 and cell[0] == cell[-1] == '"' for cell in row] for row in (first, *rows)]
        columns = [set(column) for column in zip(*(row for row in quoted[1:] if len(row) == len(first)), strict=True)]
        return all(quoted[0]) and (not columns or ({True} in columns and all(len(column) == 1 for column in columns)))

    @cached_property
    def delimiter(self) -> str:
        """The delimiter that cuts the first line and at least half of the others into equally many columns."""
        if self.dialect.delimiter is not None:
            return self.dialect.delimiter
        usual = "," if self.suffix == ".csv" else "\t"  # titles have commas; texts with tabs between them are rare
        if len({line.count("\t") for line in self._below}) == 1 and "\t" in self._below[0]:
            return "\t"
        for delimiter in dict.fromkeys([usual, "\t", ",", ";", "|", " "]):
            if delimiter in "| " and all("::" in line for line in self._below):
                raise SourceError(
                    f"{self.path} has '::' between its columns, but a delimiter is one character; replace it by "
                    f"tabs, for example with sed 's/::/\\t/g'"
                )
            rows = list(csv_reader(self._below, delimiter, '"' if delimiter in ",;" else None))
            alike = sum(len(row) == len(rows[0]) for row in rows)
            if len(rows[0]) > 1 and 2 * alike >= len(rows):
                return self._in_every_cell(rows) or delimiter
        return usual

    def _in_every_cell(self, rows: Iterable[Sequence[str]]) -> str | None:
        """Return a delimiter that all lines have equally often and all cells have: the other one is part of a text."""
        cells = [cell for row in rows for cell in row]
        for other in "\t;|,":
            if len({line.count(other) for line in self._below}) == 1 and all(other in cell for cell in cells):
                return other
        return None


def _sampled(lines: Iterable[str], most: int = _SAMPLE_LINES) -> Iterator[str]:
    letters = 0
    for line in islice(lines, most):
        yield line
        letters += len(line)
        if letters > _SAMPLE_LETTERS:
            return


def _is_above(line: str) -> bool:
    """Whether a line can stand above the table: blank, or a comment as in edge lists."""
    return _is_blank(line) or line.rstrip() in ("#", "%") or line.startswith(_COMMENT_MARKS)


def unmarked(cell: str) -> str:
    """Return the first cell of a header without its comment mark, if it has one."""
    return cell[2:] if cell.startswith(_COMMENT_MARKS) else cell


def _is_blank(line: str) -> bool:
    return not line.strip()


def _count_own(above: list[list[str]], below: list[list[str]], name: str) -> int:
    """Return how many of the lines above a table belong to it: a commented header, or ids such as `# 1 fan`.

    Such lines have as many cells as those below, and the line below them is no header. Above a table of numbers alone,
    a line without header words is a comment.
    """
    width = len(below[0])
    alike = [*takewhile(lambda row: len(row) in (0, width), reversed(above))]
    filled = [at for at, row in enumerate(alike, 1) if row]
    if not filled:
        return 0
    words, words_below = (sum(names_a_column(c, name) for c in row) for row in (alike[filled[0] - 1], below[0]))
    if words > words_below:
        return filled[0]
    return 0 if words_below or all(is_number(cell) for row in below for cell in row) else filled[-1]


def csv_reader(lines: Iterable[str], delimiter: str, quote: str | None) -> Any:
    """Read lines as records of cells; without a quote character, quotes are ordinary characters."""
    csv.field_size_limit(2**31 - 1)
    if quote:
        return csv.reader(lines, delimiter=delimiter, quotechar=quote)
    return csv.reader(lines, delimiter=delimiter, quoting=csv.QUOTE_NONE)


def names_a_column(cell: str, name: str) -> bool:
    """Whether a cell of the first line is a header word: an id, a usual name, or a word of the file's name."""
    word = unmarked(cell).strip().lower()
    own = {part.removesuffix("s") for part in re.split(r"[_\-\s.]+", name.lower())}
    return word in HEADER_WORDS or word.endswith("_id") or cell.strip().endswith(("Id", "ID")) or word in own


def _looks_alike(cell: str, below: str) -> bool:
    """Whether two cells are the same, or ids alike: Gene::1 and Gene::2, /m/1 and /m/2, u1 and u2."""
    namespace = cell[: max(cell.rfind(":"), cell.rfind("/")) + 1]
    if below == cell or (len(namespace) > 1 and below.startswith(namespace)):
        return True
    counted = re.fullmatch(r"([^\d]*)\d+", cell)  # u1 and u2 are ids
    return bool(counted and re.fullmatch(re.escape(counted[1]) + r"\d+", below))


def is_number(cell: str) -> bool:
    """Whether a cell reads as a number."""
    try:
        float(cell)
    except ValueError:
        return False
    return True


# ---- Quotes that are not closed ------------------------------------------------------------------
class QuoteWatch:
    """Wrap a stream of bytes and notice, while it is read, whether a line ends inside quotes.

    In nearly every table each quote is closed in its own line, and then no further check is needed.
    """

    def __init__(self, stream: Any, quote: str) -> None:
        self._stream = stream
        self._quote = ord(quote)
        self._open = 0
        self.spans_lines = False
        """Whether a quoted cell may contain a line end, or run into the end of the text."""

    def read(self, size: int = -1) -> bytes:
        block: bytes = self._stream.read(size)
        if not block:
            self.spans_lines |= bool(self._open)
        count = block.count(self._quote)
        if not self.spans_lines and (count or self._open):
            values = np.frombuffer(block, dtype=np.uint8)
            before = np.searchsorted(np.flatnonzero(values == self._quote), np.flatnonzero(values == ord("\n")))
            self.spans_lines = bool(((before + self._open) % 2).any())
        self._open = (self._open + count) % 2
        return block

    @property
    def closed(self) -> bool:  # Arrow needs both
        return bool(self._stream.closed)

    def close(self) -> None:
        self._stream.close()


def find_unclosed(lines: Iterable[str], delimiter: str, quote: str) -> int | None:
    """Return the first line of the record whose quote is not closed, or None.

    A quote is not closed if the text ends first, or if the quote that closes it, some lines below, is followed by more
    than blanks: that one opens another cell. Quotes inside a cell of one line are only untidy. No cell is kept in
    memory, because an unclosed one holds the whole rest of the file.

    >>> find_unclosed(["a,b", 'c,"two', 'lines" ,d', 'e,"f'], ",", '"')
    4
    """
    end_of_cell = re.compile(rf"[ \t]*({re.escape(delimiter)}|[\r\n]|$)")
    first, opened = 1, 0
    for number, line in enumerate(lines, start=1):
        first, at = first if opened else number, 0
        while True:
            if not opened:
                at = _find_opening(line, at, delimiter, quote)
                opened = number if at else 0
            closing = _find_closing(line, at, quote) if opened else -1
            if closing < 0:
                break
            if opened < number and not end_of_cell.match(line, closing + 1):
                return first
            opened, at = 0, closing + 1
    return first if opened else None


def _find_opening(line: str, at: int, delimiter: str, quote: str) -> int:
    """Return the position after the opening quote of the next quoted cell, or 0."""
    if at == 0 and line.startswith(quote):
        return 1
    opening = line.find(delimiter + quote, at)
    return opening + 2 if opening >= 0 else 0


def _find_closing(line: str, at: int, quote: str) -> int:
    """Return the position of the quote that closes a cell, or -1; a doubled quote is a character of the cell."""
    closing = line.find(quote, at)
    while closing >= 0 and line.startswith(quote, closing + 1):
        closing = line.find(quote, closing + 2)
    return closing


# ---- Opening a file, and errors about it ---------------------------------------------------------
_MOST_UNZIPPED, _MOST_RATIO = 1 << 26, 200
"""A gzip file may unzip to so many bytes, or to so many times its own size; tables shrink to a tenth, rarely less."""


def open_raw(path: Path) -> BinaryIO:
    """Open a file and unzip it if it is gzipped, whatever its name says."""
    refuse_special(path)
    stream = path.open("rb")
    if stream.peek(2)[:2] != _GZIP_MAGIC:
        return stream
    stream.close()
    return io.BufferedReader(BoundedGzip(path), 1 << 16)


class BoundedGzip(io.RawIOBase):
    """A gzip file that raises once it unzips to far more than a table does: it may be made to fill the memory."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._zipped = pa.OSFile(str(path))
        self._unzipped = pa.CompressedInputStream(self._zipped, "gzip")
        self._size = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        block = self._unzipped.read(len(buffer))
        buffer[: len(block)] = block
        self._size += len(block)
        if self._size > max(_MOST_UNZIPPED, _MOST_RATIO * self.zipped):
            raise SourceError(
                f"{self._path} unzips to more than {_MOST_RATIO} times its size ({self._size >> 20:,} MiB from "
                f"{self.zipped >> 10:,} KiB so far); if that is right, unzip it with gunzip and read the plain file"
            )
        return len(block)

    @property
    def zipped(self) -> int:
        """How many bytes of the file are read."""
        return int(self._zipped.tell())

    def close(self) -> None:
        self._zipped.close()
        super().close()


def refuse_special(path: Path) -> None:
    """Raise if a path is a pipe, a socket or a device, which would be waited for or read without end."""
    if path.exists() and not path.is_file() and not path.is_dir():
        raise SourceError(f"{path} is a pipe, a socket or a device; write its content to a file and give that")


@contextmanager
def open_lines(path: Path, *, newline: str | None = None, errors: str = "strict") -> Iterator[Iterator[str]]:
    """Open a text, gzipped or not, and yield its lines; raise at one that is too long to be a row of a table."""
    with open_raw(path) as raw, io.TextIOWrapper(raw, "utf-8-sig", errors, newline) as text:
        yield bounded_lines(text, path)


def not_utf8(error: UnicodeDecodeError) -> str:
    """Name the byte that is not UTF-8, and the next step."""
    byte = f"{error.object[error.start]:#04x}"
    return f"is not UTF-8 text (byte {byte}); convert it, for example with iconv -f WINDOWS-1252 -t UTF-8"


@contextmanager
def file_errors(path: Path) -> Iterator[None]:
    """Turn the errors of the system and of Arrow about a file into a SourceError that names it."""
    try:
        yield
    except FileNotFoundError as error:
        raise SourceError(f"no such file: {path}") from error
    except PermissionError as error:
        raise SourceError(f"no permission to read {path}") from error
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise SourceError(f"{path} is a damaged gzip file ({error}); compress it or download it again") from error
    except (pa.ArrowException, csv.Error) as error:
        raise SourceError(f"{path} cannot be read: {first_line(error)}") from error
    except OSError as error:
        raise SourceError(f"{path} cannot be read, it may be cut short: {first_line(error)}") from error

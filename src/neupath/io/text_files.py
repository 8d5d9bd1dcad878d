"""A table as text: opened whether gzipped or not, how it is written, and its records as the csv module cuts them."""

import csv
import gzip
import io
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice, takewhile
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np

from neupath.errors import SourceError

# ---- Quotes that are opened and not closed


class QuoteWatch:
    """A stream of bytes that is looked at while it is read: can a line end inside a pair of quotes?

    Where every quote is closed in its line, no cell has two lines. That is nearly every table, so that nothing else
    has to be looked at.
    """

    def __init__(self, stream: Any, quote: str) -> None:
        self._stream = stream
        self._quote = ord(quote)
        self._open = 0
        self.spans_lines = False
        """Whether a quoted cell may have a line end in it, or be cut off by the end of the text."""

    def read(self, size: int = -1) -> bytes:
        """Read on."""
        found: bytes = self._stream.read(size)
        if found:
            self._look(found)
        else:
            self.spans_lines |= bool(self._open)
        return found

    def _look(self, block: bytes) -> None:
        count = block.count(self._quote)
        if not self.spans_lines and (count or self._open):
            values = np.frombuffer(block, dtype=np.uint8)
            before = np.searchsorted(np.flatnonzero(values == self._quote), np.flatnonzero(values == ord("\n")))
            self.spans_lines = bool(((before + self._open) % 2).any())
        self._open = (self._open + count) % 2

    @property
    def closed(self) -> bool:
        """Whether the stream is closed, as Arrow asks."""
        return bool(self._stream.closed)

    def close(self) -> None:
        """Close the stream."""
        self._stream.close()


def find_unclosed(lines: Iterable[str], delimiter: str, quote: str) -> int | None:
    """Return the line at which a record begins whose quote is not closed, or nothing.

    A quote is not closed where the text ends first, or where it is closed some lines below by a quote with more text
    than blanks behind it, which is one that opens another cell. A cell of one line with quotes inside is only untidy.
    No cell is put together: one that is not closed holds all lines behind it, of a file of any size.

    >>> find_unclosed(["a,b", 'c,"two', 'lines" ,d', 'e,"f'], ",", '"')
    4
    """
    behind = re.compile(rf"[ \t]*({re.escape(delimiter)}|[\r\n]|$)")
    begins, opened = 1, 0
    for number, line in enumerate(lines, start=1):
        begins, at = begins if opened else number, 0
        while True:
            if not opened:
                at = _find_opening(line, at, delimiter, quote)
                opened = number if at else 0
            closing = _find_closing(line, at, quote) if opened else -1
            if closing < 0:
                break
            if opened < number and not behind.match(line, closing + 1):
                return begins
            opened, at = 0, closing + 1
    return begins if opened else None


def _find_opening(line: str, at: int, delimiter: str, quote: str) -> int:
    """Return the place behind the quote with which the next quoted cell begins, or 0."""
    if at == 0 and line.startswith(quote):
        return 1
    found = line.find(delimiter + quote, at)
    return found + 2 if found >= 0 else 0


def _find_closing(line: str, at: int, quote: str) -> int:
    """Return the place of the quote that closes a cell, or -1; two of them are a character of the cell."""
    found = line.find(quote, at)
    while found >= 0 and line.startswith(quote, found + 1):
        found = line.find(quote, found + 2)
    return found


# ---- A table as text


_SAMPLE_LINES = 200
_COMMENT_MARKS = ("# ", "% ")
_GZIP_MAGIC = b"\x1f\x8b"
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
    comments: bool = True
    """Whether lines above a table may be comments."""


class TextFile:
    """How a text table is written, as its dialect says or its first lines show, and its records."""

    def __init__(self, path: Path, given: Dialect, name: str, suffix: str) -> None:
        self._path = path
        self._given = given
        self._name = name
        self._suffix = suffix

    @cached_property
    def has_header(self) -> bool:
        """Whether the first line names the columns; a line that looks like the data below it does not."""
        if self._given.header is not None:
            return self._given.header
        first, later = self.sample[0], self.sample[1:]
        if any(names_a_column(cell, self._name) for cell in first):
            return True
        if self._suffix == ".txt":
            return False
        return not any(
            is_number(cell) or any(len(row) > at and row[at] == cell for row in later) for at, cell in enumerate(first)
        )

    def records(self) -> Iterator[tuple[int, list[str]]]:
        """Yield every record that is not blank with the line it begins at, as the csv module reads it."""
        before = self._lines_above
        begins = before + 1
        with open_raw(self._path) as raw:
            lines = io.TextIOWrapper(raw, encoding="utf-8-sig", newline="")
            reader = self._reader(islice(lines, before, None))
            for cells in reader:
                if cells:
                    yield begins, cells
                begins = before + reader.line_num + 1

    def unclosed_line(self) -> int | None:
        """Return the line of the first record with a quote that is not closed, if there is one."""
        if not self.quote:
            return None
        with open_raw(self._path) as raw:
            lines = io.TextIOWrapper(raw, encoding="utf-8-sig", errors="replace", newline="")
            below = islice(lines, self._lines_above, None)
            found = find_unclosed(below, self.delimiter, self.quote)
            return None if found is None else self._lines_above + found

    def _reader(self, lines: Iterable[str]) -> Any:
        return csv_reader(lines, self.delimiter, self.quote)

    @cached_property
    def compression(self) -> str | None:
        """How the file is compressed, if it is."""
        with self._path.open("rb") as stream:
            zipped = stream.read(2) == _GZIP_MAGIC
        if not zipped and self._path.name.lower().endswith(".gz"):
            raise SourceError(f"{self._path} is named .gz but is not gzipped")
        return "gzip" if zipped else None

    @cached_property
    def _first_lines(self) -> list[str]:
        try:
            with open_raw(self._path) as raw:
                text = io.TextIOWrapper(raw, encoding="utf-8-sig")
                return [line.rstrip("\r\n") for line in islice(text, _SAMPLE_LINES)]
        except UnicodeDecodeError as error:
            raise SourceError(f"{self._path} {not_utf8(error)}") from error

    @cached_property
    def _below(self) -> list[str]:
        """The first lines that neither are blank nor begin as comments do; where all do so, they are the table."""
        found = list(filter(str.strip, self._first_lines[self._marked :])) or list(filter(str.strip, self._first_lines))
        if not found:
            raise SourceError(f"{self._path} has only blank lines and comments; a table has at least a header line")
        return found

    @cached_property
    def _marked(self) -> int:
        """How many lines at the beginning are blank or begin as comments do."""
        is_above = _is_above if self._given.comments else _is_blank
        return sum(1 for _ in takewhile(is_above, self._first_lines))

    @cached_property
    def header_lines(self) -> int:
        """How many lines to skip: the header and what is above it."""
        return self._lines_above + int(self.has_header)

    @cached_property
    def _lines_above(self) -> int:
        """How many blank lines and comments stand above the table."""
        marked = self._first_lines[: self._marked]
        if all(map(_is_blank, self._first_lines[self._marked :])):
            return sum(1 for _ in takewhile(_is_blank, marked))
        if self.delimiter == " ":  # which cuts any comment
            return self._marked
        above = [[] if _is_blank(line) else next(self._reader([line])) for line in marked]
        return self._marked - _count_own(above, list(self._reader(self._below)), self._name)

    @cached_property
    def comments(self) -> int:
        """How many comments stand above the table."""
        return sum(not _is_blank(line) for line in self._first_lines[: self._lines_above])

    @cached_property
    def sample(self) -> list[list[str]]:
        """The first records, cut into cells."""
        return list(self._reader(filter(str.strip, self._first_lines[self._lines_above :])))

    @cached_property
    def quote(self) -> str | None:
        """The quote character: `"` in comma-separated files, none in others, unless it was given ("" for none)."""
        if self._given.quote is not None:
            return self._given.quote or None
        return '"' if self.delimiter in ",;" else None

    @cached_property
    def delimiter(self) -> str:
        """The delimiter that cuts the first line and at least half of the others into the same number of columns."""
        if self._given.delimiter is not None:
            return self._given.delimiter
        usual = "," if self._suffix == ".csv" else "\t"  # titles have commas; texts with tabs between them are rare
        for delimiter in dict.fromkeys([usual, "\t", ",", ";", "|", " "]):
            if delimiter in "| " and all("::" in line for line in self._below):
                raise SourceError(
                    f"{self._path} has '::' between its columns, and a delimiter is one character; put tabs there, for "
                    f"example with sed 's/::/\\t/g'"
                )
            rows = list(csv_reader(self._below, delimiter, '"' if delimiter in ",;" else None))
            alike = sum(len(row) == len(rows[0]) for row in rows)
            if len(rows[0]) > 1 and 2 * alike >= len(rows):
                return delimiter
        return usual


def _is_above(line: str) -> bool:
    """Whether a line above a table may be none of its own: blank, or a comment as edge lists have them."""
    return _is_blank(line) or line.rstrip() in ("#", "%") or line.startswith(_COMMENT_MARKS)


def unmarked(cell: str) -> str:
    """Return the first cell of a header without the mark of a comment, if it has one."""
    return cell[2:] if cell.startswith(_COMMENT_MARKS) else cell


def _is_blank(line: str) -> bool:
    return not line.strip()


def _count_own(above: list[list[str]], below: list[list[str]], name: str) -> int:
    """Return how many lines of those above a table are its own: a header that is marked, or ids such as `# 1 fan`.

    They are cut into as many cells as the lines below, and none is a header there. Above a table of numbers alone, a
    line without words of headers is a comment.
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
    """Read lines as records of cells; no quote means that quotes are characters like others."""
    csv.field_size_limit(2**31 - 1)
    if quote:
        return csv.reader(lines, delimiter=delimiter, quotechar=quote)
    return csv.reader(lines, delimiter=delimiter, quoting=csv.QUOTE_NONE)


def open_raw(path: Path) -> BinaryIO:
    """Open a file, unzipping it where it is gzipped, whatever its name says."""
    stream = path.open("rb")
    zipped = stream.peek(2)[:2] == _GZIP_MAGIC
    if not zipped:
        return stream
    stream.close()
    return cast(BinaryIO, gzip.open(path, "rb"))


def read_start(path: Path) -> bytes:
    """Return the first bytes of a file, unzipped."""
    with open_raw(path) as stream:
        return stream.read(4096)


def names_a_column(cell: str, name: str) -> bool:
    """Whether a cell of the first line is a word that headers have: an id, a usual name, or the file's own name."""
    word = unmarked(cell).strip().lower()
    own = {part.removesuffix("s") for part in re.split(r"[_\-\s.]+", name.lower())}
    return word in HEADER_WORDS or word.endswith("_id") or cell.strip().endswith(("Id", "ID")) or word in own


def is_number(cell: str) -> bool:
    """Whether a cell reads as a number."""
    try:
        float(cell)
    except ValueError:
        return False
    return True


def not_utf8(error: UnicodeDecodeError) -> str:
    """Say which byte is not text, and what to do."""
    byte = f"{error.object[error.start]:#04x}"
    return f"is not UTF-8 text (byte {byte}); convert it, for example with iconv -f WINDOWS-1252 -t UTF-8"

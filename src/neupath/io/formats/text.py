"""Text tables: CSV and TSV files, gzipped or not: the delimiter, the quotes, the header, the comments, the rows."""

import codecs
import csv
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from itertools import islice, takewhile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from neupath.errors import SourceError, first_line, listed
from neupath.io.tables import SAMPLE_ROWS, Report, TableFile, Types, no_report
from neupath.io.text_files import (
    COMMENT_MARKS,
    BoundedGzip,
    Dialect,
    file_errors,
    is_gzipped,
    is_number,
    not_utf8,
    open_lines,
    open_raw,
    unmarked,
)
from neupath.io.words import HEADER_WORDS

_SAMPLE_LINES, _SAMPLE_LETTERS = 200, 1 << 22
"""How much of a table decides how it is written: the first lines, fewer where they are long."""
_BATCH_BYTES = 1 << 20
ROW_NUMBERS = ("", "Unnamed: 0")
"""What pandas and R call the column of row numbers when they write a data frame."""


class TextTable(TableFile):
    """A text table: how it is written, as its dialect or else its first lines say, and its rows."""

    typed = False

    def __init__(self, path: Path, name: str, dialect: Dialect) -> None:
        super().__init__(path, name)
        self.parts = [path]
        self._dialect = dialect

    # ---- How it is written ----
    @cached_property
    def has_header(self) -> bool:  # type: ignore[override]
        """Whether the first line names the columns; a line that looks like the data below does not."""
        if self._dialect.header is not None:
            return self._dialect.header
        return is_header(self._first_rows, self.name, is_edge_list=self._suffix == ".txt")

    @cached_property
    def _is_spaced(self) -> bool:
        """Whether a space follows every delimiter of the first lines, which belongs to no cell."""
        rows = [row for row in self._first_rows if len(row) > 1]
        return bool(rows) and self._delimiter != " " and all(c[:1] == " " for row in rows for c in row[1:])

    def _records(self) -> Iterator[tuple[int, list[str]]]:
        """Yield every record that is not blank, as the csv module reads it, with its first line."""
        before = self._lines_above
        first = before + 1
        with open_lines(self.path, newline="") as lines:
            reader = self._reader(islice(lines, before, None))
            for cells in reader:
                if cells:
                    yield first, cells
                first = before + reader.line_num + 1

    def _reader(self, lines: Iterable[str]) -> Any:
        return csv_reader(lines, self._delimiter, self._quote)

    @cached_property
    def _first_lines(self) -> list[str]:
        self._check_bytes()
        try:
            with file_errors(self.path), open_lines(self.path) as lines:
                return [line.rstrip("\r\n") for line in _sampled(lines)]
        except UnicodeDecodeError as error:
            raise SourceError(f"{self.path} {not_utf8(error)}") from error

    @property
    def _suffix(self) -> str:
        return Path(self.path.name.lower().removesuffix(".gz")).suffix

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
        is_above = _is_above if self._dialect.comments else _is_blank
        return sum(1 for _ in takewhile(is_above, self._first_lines))

    @cached_property
    def _lines_above(self) -> int:
        """The number of blank lines and comments above the table."""
        marked = self._first_lines[: self._marked]
        if all(map(_is_blank, self._first_lines[self._marked :])):
            return sum(1 for _ in takewhile(_is_blank, marked))
        if self._delimiter == " ":  # a space cuts every comment into cells
            return self._marked
        above = [[] if _is_blank(line) else next(self._reader([line])) for line in marked]
        return self._marked - _count_own(above, list(self._reader(self._below)), self.name)

    @cached_property
    def comments(self) -> int:  # type: ignore[override]
        return sum(not _is_blank(line) for line in self._first_lines[: self._lines_above])

    @cached_property
    def _first_rows(self) -> list[list[str]]:
        """The first records, cut into cells; they decide how the table is written."""
        return list(self._reader(filter(str.strip, self._first_lines[self._lines_above :])))

    @cached_property
    def _quote(self) -> str | None:
        """The quote character: that of the dialect ("" means none), else `"` in files with commas or semicolons.

        In other files it is `"` if whole columns are quoted, as R writes them.
        """
        if self._dialect.quote is not None:
            return self._dialect.quote or None
        return '"' if self._delimiter in ",;" or self._quotes_columns else None

    @cached_property
    def _quotes_columns(self) -> bool:
        """Whether the first line and some columns below it have quotes around every cell, and others around none."""
        first, *rows = [line.split(self._delimiter) for line in self._below]
        quoted = [[len(cell) > 1 and cell[0] == cell[-1] == '"' for cell in row] for row in (first, *rows)]
        columns = [set(column) for column in zip(*(row for row in quoted[1:] if len(row) == len(first)), strict=True)]
        return all(quoted[0]) and (not columns or ({True} in columns and all(len(column) == 1 for column in columns)))

    @cached_property
    def _delimiter(self) -> str:
        """The delimiter that cuts the first line and at least half of the others into equally many columns."""
        if self._dialect.delimiter is not None:
            return self._dialect.delimiter
        usual = "," if self._suffix == ".csv" else "\t"  # titles have commas; texts with tabs between them are rare
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

    def _check_bytes(self) -> None:
        """Raise if the file is empty or plainly no text."""
        with file_errors(self.path), open_raw(self.path) as stream:
            start = stream.read(4096)
        if not start:
            raise SourceError(f"{self.path} is empty; a table has at least a header line")
        if self._suffix == ".parquet":
            raise SourceError(f"{self.path} is named .parquet but is not a Parquet file")
        if start.startswith(2 * codecs.BOM_UTF8):
            raise SourceError(
                f"{self.path} begins with two byte-order marks, and the second would be part of its first cell; remove "
                f"both, for example with sed '1s/^\\(\\xef\\xbb\\xbf\\)*//'"
            )
        if start[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
            raise SourceError(f"{self.path} is UTF-16 text; convert it, for example with iconv -f UTF-16 -t UTF-8")
        if b"\0" in start:
            raise SourceError(
                f"{self.path} is a binary file, not a text table (it has a zero byte at {start.index(0)}); "
                f"give CSV, TSV or Parquet"
            )

    # ---- What it holds ----
    @cached_property
    def columns(self) -> list[str]:
        counts = [
            name
            for at, name in enumerate(self._written_columns)
            if name in ROW_NUMBERS and counts_rows([row[at] for row in self._first_rows[1:] if len(row) > at])
        ]
        return [name for name in self._written_columns if name not in counts]

    @cached_property
    def _written_columns(self) -> list[str]:
        """The names of all columns, also of those that count the rows."""
        with file_errors(self.path):
            first, *others = self._first_rows[0]
            if self.has_header:
                return self._checked([name.strip() for name in (unmarked(first), *others)])
            return self._checked([str(number) for number in range(1, len(others) + 2)])

    @cached_property
    def sample(self) -> Mapping[str, Sequence[str]]:
        with file_errors(self.path), open_lines(self.path, newline="", errors="replace") as lines:
            below = islice(_sampled(lines, SAMPLE_ROWS), self._lines_above, None)
            rows = list(self._reader(filter(str.strip, below)))[int(self.has_header) :]
        whole = [row for row in rows if len(row) == len(self._written_columns)]
        cells = dict(zip(self._written_columns, zip(*whole, strict=True), strict=True)) if whole else {}
        sample = {name: cells.get(name, ()) for name in self.columns}
        return {name: [*map(str.strip, own)] for name, own in sample.items()} if self._is_spaced else sample

    # ---- Its rows ----
    def read(self, columns: Sequence[str], types: Types) -> pa.Table:
        options = self._options(columns, types)
        with file_errors(self.path), self._bad_lines(), self._open() as stream, self._watched(stream) as text:
            table = self._trimmed(pa.csv.read_csv(text, **options))
            self._refuse_joined(table, 0)
            return table

    def batches(self, columns: Sequence[str], types: Types, report: Report = no_report) -> Iterator[pa.Table]:
        options = self._options(columns, types, _BATCH_BYTES)
        size, before = max(1, self.path.stat().st_size), 0
        with file_errors(self.path), self._bad_lines(), self._open() as stream, self._watched(stream) as text:
            reader = pa.csv.open_csv(text, **options)
            yield reader.schema.empty_table()
            report(0, size)
            for batch in reader:
                done = stream.zipped if isinstance(stream, BoundedGzip) else stream.tell()
                table = self._trimmed(pa.Table.from_batches([batch]))
                self._refuse_joined(table, before)
                before += len(table)
                yield table
                report(done, size)

    def _options(self, columns: Sequence[str], types: Types, block_size: int | None = None) -> dict[str, Any]:
        skipped, names = self._lines_above + int(self.has_header), list(dict.fromkeys(columns))
        return {
            "read_options": pa.csv.ReadOptions(
                column_names=self._written_columns, skip_rows=skipped, block_size=block_size
            ),
            "parse_options": pa.csv.ParseOptions(
                delimiter=self._delimiter, quote_char=self._quote or False, newlines_in_values=bool(self._quote)
            ),
            "convert_options": pa.csv.ConvertOptions(include_columns=names, column_types=dict(types)),
        }

    def _open(self) -> Any:
        """Open the file for Arrow, which reads plain files fastest itself."""
        if is_gzipped(self.path):
            return BoundedGzip(self.path)
        if self.path.name.lower().endswith(".gz"):
            raise SourceError(f"{self.path} is named .gz but is not gzipped; rename it, or compress it with gzip")
        return pa.OSFile(str(self.path))

    def _trimmed(self, table: pa.Table) -> pa.Table:
        """Return the table without the spaces that follow its delimiters."""
        if not self._is_spaced:
            return table
        return pa.table({name: _trim(table[name]) for name in table.column_names})

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

    # ---- Places and bad lines ----
    def place(self, row: int) -> str:
        for number, (line, _) in enumerate(self._records()):
            if number == row + int(self.has_header):
                return f"{self.path}, line {line}"
        return f"{self.path}, row {row + 1}"

    @contextmanager
    def _watched(self, stream: Any) -> Iterator[Any]:
        """Watch the quotes of a text while it is read; afterwards raise if one is not closed."""
        if not self._quote:
            yield pa.PythonFile(stream, mode="r") if isinstance(stream, BoundedGzip) else stream
            return
        watch = QuoteWatch(stream, self._quote)
        yield pa.PythonFile(watch, mode="r")
        if watch.spans_lines:
            self._refuse_unclosed()

    def _refuse_unclosed(self) -> None:
        """Raise at the first record whose quote is not closed."""
        if not self._quote:
            return
        with open_lines(self.path, newline="", errors="replace") as lines:
            line = find_unclosed(islice(lines, self._lines_above, None), self._delimiter, self._quote)
        if line is not None:
            raise SourceError(
                f"{self.path}, line {self._lines_above + line}: a quote ({self._quote}) is not closed, so its cell "
                f'swallows the lines below; close it, or set quote = "" in graph.toml if quotes are ordinary characters'
            )

    @contextmanager
    def _bad_lines(self) -> Iterator[None]:
        """Turn Arrow's error about the text into one that names the line."""
        try:
            yield
        except pa.ArrowInvalid as error:
            raise self._find_bad_line() or SourceError(f"{self.path}: {first_line(error)}") from error

    def _find_bad_line(self) -> SourceError | None:
        """Search the file for the line that is not UTF-8, leaves a quote open or has a wrong number of columns."""
        width = len(self._written_columns)
        try:
            self._refuse_unclosed()
            for line, cells in self._records():
                if len(cells) != width:
                    return SourceError(
                        f"{self.path}, line {line}: expected {width} columns as in the "
                        f"{'header' if self.has_header else 'first line'} ({listed(self._written_columns)}), got "
                        f"{len(cells)}; the delimiter is {self._delimiter!r}"
                    )
        except UnicodeDecodeError as error:
            return SourceError(f"{self.path} {not_utf8(error)}")
        return None


def _trim(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_binary(column.type):  # the types of attributes are not known yet
        return pc.ascii_trim_whitespace(column.cast(pa.string())).cast(pa.binary())
    return pc.utf8_trim_whitespace(column) if pa.types.is_string(column.type) else column


def _sampled(lines: Iterable[str], most: int = _SAMPLE_LINES) -> Iterator[str]:
    letters = 0
    for line in islice(lines, most):
        yield line
        letters += len(line)
        if letters > _SAMPLE_LETTERS:
            return


def _is_above(line: str) -> bool:
    """Whether a line can stand above the table: blank, or a comment as in edge lists."""
    return _is_blank(line) or line.rstrip() in ("#", "%") or line.startswith(COMMENT_MARKS)


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


# ---- Headers, here and in sheets -----------------------------------------------------------------
def is_header(rows: Sequence[Sequence[str]], name: str, is_edge_list: bool = False) -> bool:
    """Whether the first of some rows names the columns of a table; one that looks like the data below does not.

    Without a clear sign, files that are usually lists of edges have no header.
    """
    first, *later = rows
    words = sum(names_a_column(cell, name) for cell in first)
    if words and any(map(is_number, first)) and 2 * words < len(first):  # a row with a word such as target in it
        return False
    if words or _heads_numbers(first, later):
        return True
    return not is_edge_list and not any(
        is_number(cell) or any(len(row) > at and _looks_alike(cell, row[at]) for row in later)
        for at, cell in enumerate(first)
    )


def _heads_numbers(first: Sequence[str], later: Sequence[Sequence[str]]) -> bool:
    """Whether the first row has words alone, one of them above a column of numbers."""
    rows = [row for row in later if len(row) == len(first)]
    if not rows or any(is_number(cell) or not cell.strip() for cell in first):
        return False
    return any(all(is_number(row[at]) for row in rows) for at in range(len(first)))


def counts_rows(cells: Sequence[str]) -> bool:
    """Whether the cells of a column count the rows, from 0 or from 1."""
    return any(list(cells) == [str(row) for row in range(first, first + len(cells))] for first in (0, 1))


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
    mark, between = re.escape(quote), re.escape(delimiter)
    opening, rest = re.compile(rf"(?:^|{between}){mark}"), rf"[^{mark}]*(?:{mark}{mark}[^{mark}]*)*"
    closing, end_of_cell = re.compile(rf"{rest}{mark}(?!{mark})"), re.compile(rf"[ \t]*({between}|[\r\n]|$)")
    first, opened = 1, 0
    for number, line in enumerate(lines, start=1):
        first, at = first if opened else number, 0
        while True:
            if not opened:
                begun = opening.search(line, at)
                if begun is None:
                    break
                opened, at = number, begun.end()
            closed = closing.match(line, at)
            if closed is None:
                break
            if opened < number and not end_of_cell.match(line, closed.end()):
                return first
            opened, at = 0, closed.end()
    return first if opened else None

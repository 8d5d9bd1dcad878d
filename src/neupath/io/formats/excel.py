"""Tables in Excel workbooks (.xlsx, .xlsm): each sheet is one, called BOOK#SHEET.

calamine reads 100,000 rows of six columns in 0.6 seconds, openpyxl in 6. It gives an empty text for an error and for a
formula without a value, so those are looked up in the XML.
"""

import posixpath
import re
import zlib
from collections.abc import Sequence
from contextlib import suppress
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree.ElementTree import ParseError, fromstring
from zipfile import BadZipFile, ZipFile

import pyarrow as pa

from neupath.errors import MissingExtraError, SourceError, first_line, listed
from neupath.io.formats.text import ROW_NUMBERS, counts_rows, is_header
from neupath.io.tables import ArrowTable, TableFile, as_text
from neupath.io.text_files import Dialect, file_errors, refuse_special

if TYPE_CHECKING:
    from python_calamine import CalamineWorkbook

WORKBOOK_SUFFIXES = (".xlsx", ".xlsm")
_SHEET = re.compile(r"(.+\.xls[xm])#(.+)", re.IGNORECASE)
_SAMPLE_ROWS, _MOST_TITLES = 200, 5
_MOST_BYTES, _MOST_RATIO = 1 << 28, 200
"""The XML of a workbook may have so many bytes, or so many times its packed size."""
_MOST_CELLS, _MOST_SPREAD = 1 << 24, 8
"""A sheet may span so many cells, or so many times the cells that it has: the reader keeps the empty ones too."""
_CELL = re.compile(rb"""\sr\s*=\s*["']([A-Z]{1,3})(\d{1,7})["']""")
_C, _R = rb"""<(?:\w+:)?c\s""", rb"""[^>]*?\br=["']([A-Z]+\d+)["'][^>]*>"""
_ERROR = re.compile(_C + rb"""(?=[^>]*\bt=["']e["'])""" + _R)
_FORMULA = re.compile(_C + _R + rb"""\s*<(?:\w+:)?f[\s/>]""")
_NO_VALUE = re.compile(
    _C + rb"""(?![^>]*\bt=["']str["'])""" + _R + rb"""\s*<(?:\w+:)?f(?:[^>]*/>|[^>]*>[^<]*</(?:\w+:)?f>)\s*"""
    rb"""(?:<(?:\w+:)?v\s*/>|<(?:\w+:)?v>\s*</(?:\w+:)?v>)?\s*</(?:\w+:)?c>"""
)  # fmt: skip
_DEFAULT_NAME = re.compile(r"[^\W\d_]+\s?\d{1,2}")
"""What Excel calls a sheet: Sheet1, Tabelle1."""


class SheetTable(ArrowTable, TableFile):
    """A sheet of a workbook, in memory; its `path` is that of the workbook, with # and the name of the sheet."""

    def __init__(self, path: Path, name: str, content: pa.Table, has_header: bool, row: int) -> None:
        ArrowTable.__init__(self, content, name, str(path))
        self.path, self.label, self.has_header, self._row = path, path.name, has_header, row

    def place(self, row: int) -> str:
        return f"{self.path}, row {self._row + row}"


def is_workbook(path: Path) -> bool:
    """Whether a file is a workbook by its name."""
    return path.suffix.lower() in WORKBOOK_SUFFIXES


def open_sheet(path: Path, dialect: Dialect) -> SheetTable | None:
    """Return the sheet that a path such as shop.xlsx#orders names, or the only one of a workbook; None for others."""
    named = _SHEET.fullmatch(path.name)
    if named is None and not is_workbook(path):
        return None
    sheets = open_sheets(path if named is None else path.with_name(named[1]), dialect)
    found = [sheet for sheet in sheets if named is None or sheet.path == path]
    if len(found) != 1:
        labels = listed(sheet.label for sheet in sheets)
        raise SourceError(f"{path} is not one sheet with rows; name one of {labels}")
    return found[0]


def open_sheets(path: Path, dialect: Dialect) -> list[SheetTable]:
    """Read the visible sheets of a workbook that are not empty."""
    try:
        from python_calamine import CalamineError, SheetVisibleEnum, load_workbook
    except ModuleNotFoundError as error:
        raise MissingExtraError("python-calamine", "neupath[io]") from error
    damaged = (BadZipFile, CalamineError, ParseError, KeyError, RuntimeError, zlib.error)
    refuse_special(path)
    notes, sheets = [], []
    with file_errors(path):
        try:
            with path.open("rb") as stream:  # by a path, the reader wants small letters in .xlsx
                xml = _sheet_xml(ZipFile(stream), path)
                stream.seek(0)
                book = load_workbook(stream)
            hidden = [each.name for each in book.sheets_metadata if each.visible != SheetVisibleEnum.Visible]
            for name, content in xml.items():
                sheet = None if name in hidden else _Sheet(path, name, content, book)
                if sheet is not None and sheet.rows:
                    sheets.append(sheet)
                else:
                    what = "hidden" if sheet is None else "empty"
                    notes.append(f"{path.name}#{name} was left out: the sheet is {what}")
        except damaged as error:
            raise SourceError(
                f"{path} cannot be read as an Excel workbook without a password: {first_line(error)}"
            ) from error
    if not sheets:
        raise SourceError(f"{path} has no visible sheet with rows; a table has at least a header")
    tables = []
    for sheet in sheets:
        name = path.stem if len(sheets) == 1 and _DEFAULT_NAME.fullmatch(sheet.name) else sheet.name
        tables.append(sheet.to_table(name, dialect))
        tables[-1].skipped = [*notes, *sheet.notes]
    return tables


def _sheet_xml(packed: ZipFile, path: Path) -> dict[str, bytes]:
    """Return the XML of each worksheet by its name; raise if it is far larger than the file, or has no values yet."""
    size = sum(each.file_size for each in packed.infolist())
    if size > max(_MOST_BYTES, _MOST_RATIO * path.stat().st_size):
        raise SourceError(
            f"{path} unpacks to {size >> 20:,} MiB, more than {_MOST_RATIO} times its size; save its sheets as CSV"
        )
    workbook, links = packed.read("xl/workbook.xml"), fromstring(packed.read("xl/_rels/workbook.xml.rels"))  # noqa: S314
    parts = {
        link.get("Id", ""): posixpath.join("/xl", link.get("Target", ""))[1:]
        for link in links
        if link.get("Type", "").endswith("/worksheet")  # others are charts and macros
    }
    sheets = {}
    for each in fromstring(workbook).iter():  # noqa: S314  expat stops entities that grow
        key = next((value for name, value in each.items() if name.endswith("}id")), "")
        if each.tag.endswith("}sheet") and key in parts:
            sheets[each.attrib["name"]] = packed.read(parts[key])
    is_uncomputed = re.search(rb"""\bfullCalcOnLoad=["'](1|true)""", workbook) is not None
    for name, content in sheets.items():
        if missing := (_FORMULA if is_uncomputed else _NO_VALUE).search(content):
            raise SourceError(
                f"{path}#{name}: the formula in {missing[1].decode()} has no value, as where a program wrote it; open "
                f"the workbook in Excel or LibreOffice and save it there"
            )
    return sheets


class _Sheet:
    """The cells of a sheet, and notes on those that are not read."""

    def __init__(self, path: Path, name: str, xml: bytes, book: "CalamineWorkbook") -> None:
        self.path, self.name, self.notes = path.with_name(f"{path.name}#{name}"), name, list[str]()
        self._check_cells(xml)
        sheet = book.get_sheet_by_name(name)
        self.rows: list[list[Any]] = sheet.to_python()
        self._start: tuple[int, int] = sheet.start or (0, 0)
        self._merged: Sequence[Sequence[tuple[int, int]]] = sheet.merged_cell_ranges or []

    def _check_cells(self, xml: bytes) -> None:
        """Raise if cells are far apart; note those that are errors."""
        cells = _CELL.findall(xml)
        height = max((int(row) for _, row in cells), default=0)
        width = max((_column_number(letters) for letters in {letters for letters, _ in cells}), default=0)
        if height * width > max(_MOST_CELLS, _MOST_SPREAD * len(cells)):
            raise SourceError(
                f"{self.path} has {len(cells):,} cells spread over {height:,} rows and {width:,} columns; clear those "
                f"that are far from the table"
            )
        if errors := _ERROR.findall(xml):
            cells_are = "1 cell is an error" if len(errors) == 1 else f"{len(errors):,} cells are errors"
            self.notes.append(
                f"{self.path.name}: {cells_are} such as #N/A, and read as empty (first {errors[0].decode()})"
            )

    def to_table(self, name: str, dialect: Dialect) -> SheetTable:
        """Return the table below the titles; raise if the sheet holds anything else."""
        is_wide = len(self.rows[0]) > 1
        top = next((at for at, row in enumerate(self.rows) if sum(cell != "" for cell in row) > is_wide), 0)
        sample = [[as_text(cell) for cell in row] for row in self.rows[top : top + _SAMPLE_ROWS]]
        has_header = is_header(sample, name) if dialect.header is None else dialect.header
        if top and (top > _MOST_TITLES or not has_header):
            raise SourceError(
                f"{self.path} has {top} rows with one cell or none above its table, and no header below; remove them"
            )
        first = top + int(has_header)
        names = [cell.strip() for cell in sample[0]] if has_header else [str(at + 1) for at in range(len(sample[0]))]
        self._check_rows(first)
        columns = {}
        for at, column in enumerate(names):
            if column in ROW_NUMBERS and counts_rows([row[at] for row in sample[1:]]):
                continue
            if not column or column in columns:
                what = f"another column called {column!r}" if column else "a column without a name"
                raise SourceError(
                    f"{self.path} has {what} in {_cell_name(self._start, top, at)}; name each differently"
                )
            columns[column] = _to_arrow([row[at] for row in self.rows[first:]])
        table = SheetTable(self.path, name, pa.table(columns), has_header, self._start[0] + first + 1)
        table.comments = sum(any(cell != "" for cell in row) for row in self.rows[:top])
        return table

    def _check_rows(self, first: int) -> None:
        """Raise if a row below the header is empty, or has merged cells."""
        for at, row in enumerate(self.rows[first:], self._start[0] + first + 1):
            if not any(cell != "" for cell in row):
                raise SourceError(
                    f"{self.path}: row {at} is empty, and others follow; a sheet holds one table, so remove the "
                    f"row, or move what is below to another sheet"
                )
        for start, end in self._merged:
            if end[0] >= self._start[0] + first and start[0] < self._start[0] + len(self.rows):
                cells = f"{_cell_name(start)}:{_cell_name(end)}"
                raise SourceError(f"{self.path}: the cells {cells} are merged, so all but one are empty; unmerge them")


def _to_arrow(cells: Sequence[Any]) -> pa.Array:
    """Return the cells of a column as what all are: truths, numbers, dates or times, or else texts."""
    values = [None if cell == "" else cell for cell in cells]
    kinds = {type(value) for value in values if value is not None}
    if kinds and kinds <= {int, float}:
        numbers = pa.array(values, pa.float64())
        with suppress(pa.ArrowInvalid):  # it has fractions
            return numbers.cast(pa.int64())
        return numbers
    if kinds in ({bool}, {date}, {datetime}):
        return pa.array(values)
    if kinds == {date, datetime}:  # a time at midnight comes as a date
        return pa.array([datetime(v.year, v.month, v.day) if type(v) is date else v for v in values])
    return pa.array([None if value is None else as_text(value) for value in values], pa.string())


def _column_number(letters: bytes) -> int:
    number = 0
    for letter in letters:
        number = 26 * number + letter - ord("A") + 1
    return number


def _cell_name(place: tuple[int, int], below: int = 0, right: int = 0) -> str:
    """Return the name of a cell, such as B3, some rows below and right of a place, all from 0."""
    letters, column = "", place[1] + right + 1
    while column:
        column, rest = divmod(column - 1, 26)
        letters = chr(ord("A") + rest) + letters
    return f"{letters}{place[0] + below + 1}"

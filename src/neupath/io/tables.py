"""Tables, on disk or in memory: what a reader knows of one, and tables in memory."""

import json
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path

import pyarrow as pa

from neupath.errors import SourceError, did_you_mean, listed
from neupath.io.text_files import is_number, unmarked

# ---- What a table is -----------------------------------------------------------------------------
_MOST_COLUMNS = 20_000
SAMPLE_ROWS = 2048
"""How many rows of a table decide what its columns hold."""
Place = Callable[[int], str]
"""Returns the file and line of a row of a table, for error messages."""
Types = Mapping[str, pa.DataType]
"""The types of some columns."""
Report = Callable[[int, int], object]
"""Called with how much of a table is read, and how much there is."""


def no_report(_done: int, _total: int) -> None:
    """Show nothing."""


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
    typed = True
    """Whether the table declares which values are integers; in text tables their looks decide."""
    has_header = True
    """Whether the columns have names of their own."""
    comments = 0
    """The number of lines above the table that are skipped as comments."""
    skipped: Sequence[str] = ()
    """Notes on what its file has beside it, which is not read."""
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
    def is_folder(self) -> bool:
        """Whether it is a folder, whose name may say nothing of what it holds."""
        return False

    @property
    @abstractmethod
    def sample(self) -> Mapping[str, Sequence[str]]:
        """The first values of each column as texts; empty cells are empty texts, and lists are JSON."""

    def is_list(self, column: str) -> bool:
        """Whether a column is declared to hold lists."""
        kind = self.declared_types([column], {}).get(column)
        return kind is not None and is_list_type(kind)

    @abstractmethod
    def read(self, columns: Sequence[str], types: Types) -> pa.Table:
        """Read some columns; those without a type in `types` get the one that their values suggest."""

    @abstractmethod
    def batches(self, columns: Sequence[str], types: Types, report: Report = no_report) -> Iterator[pa.Table]:
        """Read some columns batch by batch, an empty batch first; each column of a text table needs a type."""

    def declared_types(self, columns: Sequence[str], types: Types) -> dict[str, pa.DataType]:
        """Return the types that columns get when they are read, except those that follow from values."""
        if not self.typed:
            return dict(types)
        schema = next(self.batches(columns, types)).schema
        return dict(zip(schema.names, schema.types, strict=True))

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

    def _checked(self, names: list[str]) -> list[str]:
        """Return names of columns; raise if they are too many or not distinct."""
        if len(names) > _MOST_COLUMNS:
            raise SourceError(
                f"{self.title} has {len(names):,} columns, and at most {_MOST_COLUMNS:,} are read; leave out those "
                f"that are neither ids nor attributes, or check the delimiter"
            )
        for name, times in Counter(names).items():
            if times > 1:
                raise SourceError(f"{self.title} has {times} columns named {name!r}; name each differently")
        return names

    def has_numbers(self, column: str) -> bool:
        """Whether the first values of a column are numbers."""
        return column in self._numeric_columns

    @cached_property
    def _numeric_columns(self) -> set[str]:
        return {column for column, cells in self.sample.items() if all(is_number(cell) for cell in cells if cell)}


class TableFile(Table):
    """A table on disk; it is opened when something of it is needed first.

    Parameters
    ----------
    path
        The file or folder.
    name
        Its name without its suffixes.

    """

    def __init__(self, path: Path, name: str) -> None:
        self.path = path
        self.name, self.label, self.title = name, path.name, str(path)

    @property
    def is_folder(self) -> bool:
        return self.path.is_dir()


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
        self._table = table
        self.name, self.title = name, title
        self._checked(table.column_names)
        self.label = name or title

    @property
    def columns(self) -> list[str]:
        return list(self._table.column_names)

    @cached_property
    def sample(self) -> Mapping[str, Sequence[str]]:
        return sample_of(self._table.slice(0, SAMPLE_ROWS), self.columns)

    def read(self, columns: Sequence[str], types: Types) -> pa.Table:
        return pa.table({name: _as_written(self._table[name], types.get(name)) for name in dict.fromkeys(columns)})

    def batches(self, columns: Sequence[str], types: Types, report: Report = no_report) -> Iterator[pa.Table]:
        whole = self.read(columns, types)
        yield whole.slice(0, 0)
        yield whole
        report(len(whole), len(whole))

    def place(self, row: int) -> str:
        return f"{self.title}, row {row + 1}"


def is_list_type(kind: pa.DataType) -> bool:
    """Whether values of a type are lists."""
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def sample_of(table: pa.Table, columns: Sequence[str]) -> dict[str, list[str]]:
    """Return the values of some columns as texts."""
    return {name: [as_text(value) for value in table[name].to_pylist()] if len(table) else [] for name in columns}


def as_text(value: object) -> str:
    """Return a value as a text, an integer as a float holds it without its point, and a list as JSON."""
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

"""The files of tables: which files are tables, what they are called, and the reader of each."""

import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from neupath.io.formats.excel import WORKBOOK_SUFFIXES, is_workbook, open_sheet, open_sheets
from neupath.io.formats.parquet import ParquetTable, is_parquet, is_partition, parquet_files
from neupath.io.formats.text import TextTable
from neupath.io.tables import TableFile
from neupath.io.text_files import Dialect

TEXT_SUFFIXES = (".csv", ".tsv", ".tab", ".txt", ".dat", ".sif")
TABLE_SUFFIXES = (*TEXT_SUFFIXES, ".parquet", *WORKBOOK_SUFFIXES)


def is_table(path: Path) -> bool:
    """Whether a path is a table: a file with a suffix of tables, or a folder of Parquet files."""
    if path.name.startswith((".", "~$")):  # Excel locks a workbook with a file called ~$
        return False
    if path.is_dir():
        return bool(parquet_files(path))
    return path.is_file() and _plain_suffix(path) in TABLE_SUFFIXES


def is_text_table(path: Path) -> bool:
    """Whether a file is a text table by its name."""
    return _plain_suffix(path) in TEXT_SUFFIXES and path.is_file()


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


def open_table(path: Path, dialect: Dialect | None = None) -> TableFile:
    """Return the reader of a table; `dialect` says how a text table is written, and the file what it leaves open."""
    if (sheet := open_sheet(path, dialect or Dialect())) is not None:
        return sheet
    in_parquet = path.is_dir()
    with suppress(OSError):  # its reader says what is wrong
        in_parquet = in_parquet or (path.is_file() and is_parquet(path))
    return ParquetTable(path, stem(path)) if in_parquet else TextTable(path, stem(path), dialect or Dialect())


def open_tables(path: Path, dialect: Dialect | None = None) -> Sequence[TableFile]:
    """Return the readers of the tables at a path: the sheets of a workbook, or else one."""
    return open_sheets(path, dialect or Dialect()) if is_workbook(path) else [open_table(path, dialect)]


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

"""A table in parts: a folder of Parquet files, read one after the other in the order of their names."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from neupath.errors import SourceError, listed


def parts_of(path: Path) -> list[Path]:
    """Return the files of a table: itself, or those of a folder of parts."""
    if not path.is_dir():
        return [path]
    found = _parquet_files(path)
    if not found:
        raise SourceError(f"{path} is a folder without Parquet files; a table in parts has at least one")
    return found


def is_in_parts(path: Path) -> bool:
    """Whether a folder is a table: it holds Parquet files."""
    return path.is_dir() and bool(_parquet_files(path))


def _parquet_files(folder: Path) -> list[Path]:
    # what begins with _ or . is a writer's own mark, such as _SUCCESS or _metadata
    found = (path for path in folder.iterdir() if path.suffix.lower() == ".parquet" and path.is_file())
    return sorted(path for path in found if not path.name.startswith(("_", ".")))


def read_parts(parts: Sequence[Path], columns: Sequence[str], types: Mapping[str, pa.DataType]) -> pa.Table:
    """Read some columns of all parts; those with a given type are cast to it."""
    check_alike(parts, columns, types)
    read = (as_wanted(pq.ParquetFile(part).read(columns=list(columns)), columns, types) for part in parts)
    return pa.concat_tables(read)


def check_alike(parts: Sequence[Path], columns: Sequence[str], types: Mapping[str, pa.DataType]) -> None:
    """Refuse a part whose columns are missing, or of other types than those of the first."""
    first: pa.Schema | None = None
    for part in parts:
        check_columns(part, columns, parts[0])
        found = as_wanted(pq.read_schema(part).empty_table(), columns, types).schema
        first = first or found
        if found != first:
            raise SourceError(
                f"{part} has columns of other types ({_described(found)}) than {parts[0].name} "
                f"({_described(first)}); write all parts of a table alike"
            )


def check_columns(part: Path, columns: Sequence[str], first: Path) -> None:
    """Refuse a part without the columns that the first one has."""
    names = pq.read_schema(part).names
    for column in columns:
        if column not in names:
            raise SourceError(f"{part} has no column {column!r} (it has {listed(names)}), as {first.name} has")


def as_wanted(table: pa.Table, columns: Sequence[str], types: Mapping[str, pa.DataType]) -> pa.Table:
    """Return some columns of a Parquet table, each as the type wanted, if any."""
    return pa.table({name: _cast(table[name], types.get(name)) for name in columns})


def place_in(parts: Sequence[Path], row: int) -> str:
    """Say where a row (from 0) of a table stands: the part, and the row there."""
    left = row
    for part in parts:
        count = pq.read_metadata(part).num_rows
        if left < count or part == parts[-1]:
            return f"{part}, row {left + 1}"
        left -= count
    raise AssertionError("a table has at least one part")


def _cast(column: pa.ChunkedArray, wanted: pa.DataType | None) -> pa.ChunkedArray:
    """Return a column as the type wanted; integers that are wanted as text, such as ids, stay integers."""
    if wanted is None:
        return column
    whole = pa.types.is_integer(column.type) or (
        pa.types.is_dictionary(column.type) and pa.types.is_integer(column.type.value_type)
    )
    return column.cast(pa.int64() if whole and pa.types.is_string(wanted) else wanted)


def _described(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name}: {field.type}" for field in schema)

"""A table in parts: a folder of Parquet files, read one after the other in the order of their names.

They may lie in folders such as year=2020, as writers cut tables by a column: what such names say is not read.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from neupath.datasets.faults import explained
from neupath.errors import SourceError, listed


def parts_of(path: Path) -> list[Path]:
    """Return the files of a table: itself, or those of a folder of parts."""
    if not path.is_dir():
        return [path]
    found = parquet_files(path)
    if not found:
        raise SourceError(f"{path} is a folder without Parquet files; a table in parts has at least one")
    return found


def is_in_parts(path: Path) -> bool:
    """Whether a folder is a table: it holds Parquet files."""
    return path.is_dir() and bool(parquet_files(path))


def parquet_files(folder: Path) -> list[Path]:
    """Return the Parquet files of a folder, and of folders in it that are named for a value of a column."""
    # what begins with _ or . is a writer's own mark, such as _SUCCESS or _metadata
    visible = [path for path in folder.iterdir() if not path.name.startswith(("_", "."))]
    found = [path for path in visible if path.suffix.lower() == ".parquet" and path.is_file()]
    cut = [path for path in visible if is_cut(path)]
    return sorted([*found, *(part for path in cut for part in parquet_files(path))])


def is_cut(path: Path) -> bool:
    """Whether a folder is named for a value of a column, such as year=2020."""
    return "=" in path.name and path.is_dir()


def read_parts(parts: Sequence[Path], columns: Sequence[str], types: Mapping[str, pa.DataType]) -> pa.Table:
    """Read some columns of all parts; those with a given type are cast to it."""
    check_alike(parts, columns, types)
    return pa.concat_tables(_read_part(part, columns, types) for part in parts)


def _read_part(part: Path, columns: Sequence[str], types: Mapping[str, pa.DataType]) -> pa.Table:
    with explained(part):
        return as_wanted(pq.ParquetFile(part).read(columns=list(columns)), columns, types)


def check_alike(parts: Sequence[Path], columns: Sequence[str], types: Mapping[str, pa.DataType]) -> None:
    """Refuse a part that has other columns than the first, or columns of other types."""
    schemas = [_read_schema(part) for part in parts]
    first: pa.Schema | None = None
    for part, schema in zip(parts, schemas, strict=True):
        _check_names(part, schema.names, parts[0], schemas[0].names)
        with explained(part):
            found = as_wanted(schema.empty_table(), columns, types).schema
        first = first or found
        if found != first:
            raise SourceError(
                f"{part} has columns of other types ({_described(found)}) than {parts[0].name} "
                f"({_described(first)}); write all parts of a table alike"
            )


def _read_schema(part: Path) -> pa.Schema:
    with explained(part):
        return pq.read_schema(part)


def _check_names(part: Path, names: Sequence[str], first: Path, expected: Sequence[str]) -> None:
    for column in expected:
        if column not in names:
            raise SourceError(f"{part} has no column {column!r} (it has {listed(names)}), as {first.name} has")
    for column in names:
        if column not in expected:  # such as a weight, which would be left out without a word
            raise SourceError(f"{part} has a column {column!r}, which {first.name} has not; write all parts alike")


def as_wanted(table: pa.Table, columns: Sequence[str], types: Mapping[str, pa.DataType]) -> pa.Table:
    """Return some columns of a Parquet table, each as the type wanted, if any."""
    return pa.table({name: _cast(table[name], types.get(name)) for name in columns})


def count_rows(part: Path) -> int:
    """Return how many rows a part has."""
    with explained(part):
        return int(pq.read_metadata(part).num_rows)


def place_in(parts: Sequence[Path], row: int) -> str:
    """Say where a row (from 0) of a table stands: the part, and the row there."""
    left = row
    for part in parts:
        count = count_rows(part)
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

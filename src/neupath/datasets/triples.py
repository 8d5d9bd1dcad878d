"""Triples (head, relation, tail) as knowledge graphs have them, with a type for each entity or one for all."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from neupath.datasets.assemble import Choices, Place, TripleTable, TypedTable, assemble_typed, distinct_ids
from neupath.datasets.config import Config, TriplesConfig
from neupath.datasets.tables import Dialect, TableFile, stem
from neupath.errors import SourceError
from neupath.graph import HIN

_SPLITS = {"train", "valid", "validation", "val", "dev", "test"}
_HEADS = {"head", "h", "source", "src", "subject", "s", "from"}


def is_split(path: Path) -> bool:
    """Whether a file is the train, validation or test part of a knowledge graph, by its name."""
    return stem(path).lower() in _SPLITS


def read_triples(paths: Sequence[Path], folder: Path, settings: Config, choices: Choices) -> HIN:
    """Read one or more files of triples as one graph."""
    wanted = settings.triples or TriplesConfig()
    parts = [_read_part(path, settings.dialect, wanted.columns) for path in paths]
    places = _Places([(file, len(table)) for file, table in parts])
    triples = pa.concat_tables([table for _, table in parts]).combine_chunks()
    head, relation, tail = (triples[name].combine_chunks() for name in ("head", "relation", "tail"))
    if wanted.types is not None:
        nodes = _read_types(folder / wanted.types, settings.dialect)
    else:
        ids = distinct_ids([head, tail])
        nodes = TypedTable(ids, pa.array(np.full(len(ids), wanted.type)), places.place)
    return assemble_typed(nodes, TripleTable(head, relation, tail, places.place), choices)


def _read_part(path: Path, dialect: Dialect, columns: list[str] | None) -> tuple[TableFile, pa.Table]:
    file = TableFile(path, dialect)
    if dialect.header is None and not columns and file.has_header and file.columns[0].lower() not in _HEADS:
        file = TableFile(path, Dialect(dialect.delimiter, dialect.quote, header=False))
    wanted = [file.column(column, "triples") for column in columns] if columns else file.columns[:3]
    if len(wanted) != 3:
        raise SourceError(f"{path} has {len(file.columns)} columns; a file of triples has three: head, relation, tail")
    table = file.read(wanted, dict.fromkeys(wanted, pa.string()))
    return file, table.select(wanted).rename_columns(["head", "relation", "tail"])


def _read_types(path: Path, dialect: Dialect) -> TypedTable:
    """Read a type map: entity, type and, if there is a third column, its name."""
    file = TableFile(path, dialect)
    if len(file.columns) < 2:
        raise SourceError(f"{path} has one column; a type map has two: entity, type")
    columns = file.columns[:3]
    table = file.read(columns, dict.fromkeys(columns, pa.string()))
    names = table[columns[2]].combine_chunks() if len(columns) == 3 else None
    return TypedTable(table[columns[0]].combine_chunks(), table[columns[1]].combine_chunks(), file.place, names)


class _Places:
    """Finds the file and line of a row of several files read one after the other."""

    def __init__(self, parts: Sequence[tuple[TableFile, int]]) -> None:
        self._parts = parts

    @property
    def place(self) -> Place:
        def find(row: int) -> str:
            left = row
            for file, length in self._parts:
                if left < length:
                    return file.place(left)
                left -= length
            return f"row {row + 1}"

        return find

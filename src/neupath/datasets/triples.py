"""Triples (head, relation, tail) as knowledge graphs have them, with a type for each entity or one for all."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from neupath.datasets.assemble import Choices, Place, TripleTable, TypedTable, assemble_typed, distinct_ids
from neupath.datasets.config import Config, TriplesConfig
from neupath.datasets.detection import weight_column
from neupath.datasets.tables import HEADER_WORDS, Dialect, TableFile, stem
from neupath.errors import SourceError, listed
from neupath.graph import HIN

_COLUMN_WORDS = (
    ("head", "source", "subject", "entity1", "from", "src"),
    ("relation", "predicate", "rel", "type", "metaedge"),
    ("tail", "target", "object", "entity2", "to", "dst"),
)
_SPLITS = {"train", "valid", "validation", "val", "dev", "test"}


def is_split(path: Path) -> bool:
    """Whether a file is the train, validation or test part of a knowledge graph, by its name."""
    return stem(path).lower() in _SPLITS


def read_triples(paths: Sequence[Path], folder: Path, settings: Config, choices: Choices) -> HIN:
    """Read one or more files of triples as one graph."""
    wanted = settings.triples or TriplesConfig()
    parts = [_read_part(path, settings.dialect, wanted.columns) for path in paths]
    places = _Places([(file, len(table)) for file, table in parts])
    triples = pa.concat_tables([table for _, table in parts], promote_options="default").combine_chunks()
    head, relation, tail = (triples[name].combine_chunks() for name in ("head", "relation", "tail"))
    if wanted.types is not None:
        nodes = _read_types(folder / wanted.types, settings.dialect)
    else:
        ids = distinct_ids([head, tail])
        nodes = TypedTable(ids, pa.array(np.full(len(ids), wanted.type)), places.place)
    weights = triples["weight"].combine_chunks() if "weight" in triples.column_names else None
    return assemble_typed(nodes, TripleTable(head, relation, tail, places.place, weights), choices)


def _read_part(path: Path, dialect: Dialect, columns: list[str] | None) -> tuple[TableFile, pa.Table]:
    file = TableFile(path, dialect)
    if (
        dialect.header is None
        and not columns
        and not {c.lower().removesuffix("_id") for c in file.columns} & HEADER_WORDS
    ):
        file = TableFile(path, Dialect(dialect.delimiter, dialect.quote, header=False))
    wanted = [file.column(column, "triples") for column in columns] if columns else _usual_columns(file)
    if len(wanted) != 3:
        raise SourceError(
            f"{path} has {len(wanted)} columns for triples ({listed(wanted)}); they have three: head, relation, tail"
        )
    weight = weight_column(file, wanted)
    every = [*wanted, weight] if weight else wanted
    table = file.read(every, dict.fromkeys(every, pa.string())).select(every)
    texts = [table[column].cast(pa.string()) for column in every]
    return file, pa.table(dict(zip(("head", "relation", "tail", "weight"), texts, strict=False)))


def _usual_columns(file: TableFile) -> list[str]:
    """Return the columns of head, relation and tail by their names, or else the first three."""
    by_word = {column.lower().removesuffix("_id"): column for column in file.columns}
    found = [next((by_word[word] for word in words if word in by_word), None) for words in _COLUMN_WORDS]
    return [c for c in found if c is not None] if None not in found else file.columns[:3]


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

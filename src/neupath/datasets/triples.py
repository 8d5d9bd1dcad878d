"""Which columns are triples (head, relation, tail), as knowledge graphs have them, and which types entities have."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from neupath.datasets.assemble import Choices
from neupath.datasets.config import Config, TriplesConfig
from neupath.datasets.detection import weight_column
from neupath.datasets.sources import Selection, TripleTables, present
from neupath.datasets.tables import TableFile, stem
from neupath.datasets.textfiles import HEADER_WORDS, Dialect
from neupath.errors import SourceError, listed

_COLUMN_WORDS = (
    ("head", "source", "subject", "entity1", "from", "src"),
    ("relation", "predicate", "rel", "type", "metaedge"),
    ("tail", "target", "object", "entity2", "to", "dst"),
)
_SPLITS = {"train", "valid", "validation", "val", "dev", "test"}


def is_split(path: Path) -> bool:
    """Whether a file is the train, validation or test part of a knowledge graph, by its name."""
    return stem(path).lower() in _SPLITS


def find_triples(paths: Sequence[Path], folder: Path, settings: Config, choices: Choices) -> TripleTables:
    """Settle the columns of one or more files of triples, which are one graph."""
    wanted = settings.triples or TriplesConfig()
    parts = [_part(path, settings.dialect, wanted.columns) for path in paths]
    types = None if wanted.types is None else _type_map(folder / wanted.types, settings.dialect)
    return TripleTables(types, wanted.type, parts, choices)


def _part(path: Path, dialect: Dialect, columns: list[str] | None) -> Selection:
    file = TableFile(path, dialect)
    if (
        dialect.header is None
        and not columns
        and not {c.lower().removesuffix("_id") for c in file.columns} & HEADER_WORDS
    ):
        file = TableFile(path, replace(dialect, header=False))
    wanted = [file.column(column, "triples") for column in columns] if columns else _usual_columns(file)
    if len(wanted) != 3:
        raise SourceError(
            f"{path} has {len(wanted)} column{'s' * (len(wanted) != 1)} ({listed(wanted)}), and triples have three: "
            f"head, relation, tail; a relation is a file named after its types, such as movie_actor.csv, or say what "
            f"the columns are in a graph.toml (--config, in Python config)"
        )
    head, relation, tail = wanted
    weight = weight_column(file, wanted)
    return Selection(file, present(source=head, relation=relation, target=tail, weight=weight), all_text=True)


def has_triples(file: TableFile) -> bool:
    """Whether the header of a file names head, relation and tail."""
    return len(_named_columns(file)) == 3


def names_relations(file: TableFile) -> bool:
    """Whether a column is called what only the relation of a triple is; a type may be one's own of an edge."""
    return any(column.lower() in ("relation", "predicate", "metaedge") for column in file.columns)


def _usual_columns(file: TableFile) -> list[str]:
    """Return the columns of head, relation and tail by their names, or else the first three."""
    named = _named_columns(file)
    return named if len(named) == 3 else file.columns[:3]


def _named_columns(file: TableFile) -> list[str]:
    by_word = {column.lower().removesuffix("_id"): column for column in file.columns}
    found = (next((by_word[word] for word in words if word in by_word), None) for words in _COLUMN_WORDS)
    return [column for column in found if column is not None]


def _type_map(path: Path, dialect: Dialect) -> Selection:
    """Settle the columns of a type map: entity, type and, if there is a third column, its name."""
    file = TableFile(path, dialect)
    if len(file.columns) < 2:
        raise SourceError(f"{path} has one column; a type map has two: entity, type")
    return Selection(file, dict(zip(("id", "type", "name"), file.columns, strict=False)))

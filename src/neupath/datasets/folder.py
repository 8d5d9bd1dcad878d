"""What a folder of tables is: a file a relation, or the pair nodes + edges, or the triples of a knowledge graph."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from filecmp import cmp
from fnmatch import fnmatch
from itertools import combinations
from pathlib import Path
from typing import cast

from neupath.datasets import config as configuration
from neupath.datasets.assemble import Choices, refuse_unknown_names
from neupath.datasets.config import Config
from neupath.datasets.detection import NodeFile, RelationFile, as_node_file, classify, weight_column
from neupath.datasets.pair import as_pair, find_lone_edges, find_pair
from neupath.datasets.parts import parts_of
from neupath.datasets.sources import (
    EdgeSource,
    NodeSource,
    RelationTables,
    Selection,
    TableSource,
    present,
)
from neupath.datasets.tables import TABLE_SUFFIXES, TableFile, is_table, stem
from neupath.datasets.triples import find_triples, has_triples, is_split, names_relations
from neupath.datasets.unread import comments_above, folder_names, too_deep, unread_columns, without_data_files
from neupath.errors import SourceError, listed
from neupath.graph import Duplicates, check_duplicates
from neupath.schema import Relation

_ABOUT = re.compile(r"(readme|licen[cs]e|copying|changelog|notes?|about|citation)\b.*\.txt$", re.IGNORECASE)


def recognise_folder(folder: Path, config: Path | None = None, duplicates: Duplicates | None = None) -> TableSource:
    """Find out what the tables of a folder are, with its graph.toml or another one."""
    settings = settings_of(folder, config)
    tables = [path for path in sorted(folder.iterdir()) if is_table(path) and not _ABOUT.match(path.name)]
    paths, left_out = without_data_files(_not_ignored(tables, settings))
    notes = [] if settings.names_tables else [*left_out, *too_deep(folder, settings.ignore)]
    return recognise_files(paths, folder, settings, duplicates, notes)


def settings_of(folder: Path, config: Path | None) -> Config:
    """Read the graph.toml that is given, or else that of the folder."""
    own = folder / configuration.NAME
    if config is not None:
        return configuration.read_config(config)
    return configuration.read_config(own) if own.is_file() else Config()


def recognise_files(
    paths: Sequence[Path],
    folder: Path,
    settings: Config,
    duplicates: Duplicates | None,
    notes: Sequence[str] = (),
) -> TableSource:
    """Find out what some table files are, as one graph; `notes` are told with it."""
    choices = replace(choices_of(settings, duplicates), notes=notes)
    found = _recognise(_not_ignored(paths, settings), folder, settings, choices)
    return with_notes(found)


def with_notes(found: TableSource) -> TableSource:
    """Add notes on what is not read of the tables that were found."""
    notes = [*found.choices.notes, *folder_names(found.files), *comments_above(found.files)]
    return replace(found, choices=replace(found.choices, notes=notes))


def _not_ignored(paths: Iterable[Path], settings: Config) -> list[Path]:
    return [path for path in paths if not any(fnmatch(path.name, pattern) for pattern in settings.ignore)]


def _recognise(kept: list[Path], folder: Path, settings: Config, choices: Choices) -> TableSource:
    refuse_twice(kept)
    if settings.triples is not None:
        files = [folder / name for name in settings.triples.files or [path.name for path in kept]]
        refuse_twice(files)
        return find_triples(files, folder, settings, choices)
    if not kept and not settings.names_tables:
        held = listed((path.name for path in sorted(folder.iterdir()) if not path.name.startswith(".")), 4)
        raise SourceError(
            f"{folder} holds no tables{f' (it has {held})' if held else ''}; put one file a relation there, such as "
            f"movie_actor.csv, or nodes and edges ({', '.join(TABLE_SUFFIXES)}, also gzipped), or name the files in "
            f"graph.toml"
        )
    pair = find_pair(kept, folder, settings)
    if pair is not None:
        return as_pair(*pair, settings, replace(choices, notes=[*_left_out(kept, pair), *choices.notes]))
    triples = _triple_files(kept, settings)
    if triples:
        notes = [*_left_out(kept, triples), *choices.notes]
        return find_triples(triples, folder, settings, replace(choices, notes=notes))
    return _as_relations(kept, folder, settings, choices)


def _triple_files(paths: list[Path], settings: Config) -> list[Path]:
    """Find the parts of a knowledge graph: train, valid and test, or a lone table that names its relations."""
    splits = [path for path in paths if is_split(path)]
    # beside tables, a folder named train is more likely something else
    if any(stem(path).lower() == "train" and path.is_file() for path in splits) or len(splits) == len(paths):
        return splits
    if len(paths) == 1 and _is_all_triples(TableFile(paths[0], settings.dialect)):
        return paths
    return find_lone_edges(paths, settings)


def _is_all_triples(file: TableFile) -> bool:
    """Whether a lone table holds triples, and is not one relation whose edges have a type for an attribute."""
    return has_triples(file) and (names_relations(file) or not classify([file])[1])


def _left_out(paths: list[Path], used: Iterable[Path]) -> list[str]:
    taken = list(used)
    names = " and ".join(path.name for path in taken)
    return [f"{path.name} was left out: the graph is read from {names}" for path in paths if path not in taken]


def choices_of(settings: Config, duplicates: Duplicates | None) -> Choices:
    """Gather the choices of a graph.toml, the call's own first."""
    chosen = duplicates or settings.duplicates or "count"
    check_duplicates(chosen)
    return Choices(
        duplicates=cast(Duplicates, chosen),
        take=settings.take,
        undirected=settings.undirected,
        abbreviations=settings.abbreviations,
    )


def refuse_twice(paths: Iterable[Path]) -> None:
    """Refuse the same file given twice, under one name or two: its edges would count twice."""
    seen: dict[object, Path] = {}
    for path in (path for path in paths if path.exists()):
        for key in (path.resolve(), (path.parent.resolve(), stem(path).lower())):
            other = seen.setdefault(key, path)
            if other is not path:
                raise SourceError(
                    f"{other} and {path} are one table, given twice; leave one out, or its edges count double"
                )


def _refuse_copies(relations: Sequence[RelationFile]) -> None:
    """Refuse a relation that is another one's file under a second name."""
    filled = [relation.file.path for relation in relations if not relation.file.is_empty]
    for path, other in combinations(filled, 2):
        if _same_content(parts_of(path), parts_of(other)):
            raise SourceError(
                f"{path} and {other.name} have the same content: the same table, given twice; "
                f'leave one out with ignore = ["{other.name}"] in graph.toml'
            )


def _same_content(parts: Sequence[Path], others: Sequence[Path]) -> bool:
    return len(parts) == len(others) and all(
        part.stat().st_size == other.stat().st_size and cmp(part, other, shallow=False)
        for part, other in zip(parts, others, strict=True)
    )


def _as_relations(paths: list[Path], folder: Path, settings: Config, choices: Choices) -> RelationTables:
    named = _named_paths(folder, settings)
    detected = [TableFile(path, settings.dialect) for path in paths if path.resolve() not in named]
    nodes, relations, left_out = classify(detected)
    nodes += [
        as_node_file(
            TableFile(folder / entry.file, settings.dialect), node_type, entry.id, entry.name, entry.attributes
        )
        for node_type, entry in settings.nodes.items()
    ]
    _refuse_copies(relations)
    relations += _configured(folder, settings)
    if not relations:
        held = f"{listed(node.file.path.name for node in nodes)} hold{'s' * (len(nodes) == 1)} nodes"
        raise SourceError(
            f"no file of {folder} is a relation: {listed([*left_out, *choices.notes], 3) or held}; a relation is a "
            f"file such as movie_actor.csv whose first two columns are ids, or two columns of any file that [[edges]] "
            f"in graph.toml names"
        )
    _refuse_two_node_files(nodes)
    node_sources = [
        NodeSource(node.node_type, Selection(node.file, present(id=node.id, name=node.name), node.attributes))
        for node in nodes
    ]
    edges = _take(relations, choices)
    return RelationTables(
        node_sources, edges, replace(choices, notes=[*left_out, *unread_columns(edges, node_sources), *choices.notes])
    )


def _named_paths(folder: Path, settings: Config) -> set[Path]:
    """Return the tables that graph.toml names, and the folders they lie in."""
    files = [*(entry.file for entry in settings.nodes.values()), *(entry.file for entry in settings.edges)]
    paths = [(folder / file).resolve() for file in files]
    return {found for path in paths for found in (path, *path.parents)}


def _take(relations: list[RelationFile], choices: Choices) -> list[EdgeSource]:
    """Return the relations that were chosen, those without a direction as such."""
    refuse_unknown_names(choices, [relation.name for relation in relations])
    taken = []
    for found in relations:
        if choices.take and found.name not in choices.take:
            continue
        directed = found.directed and found.name not in choices.undirected
        columns = present(source=found.columns[0], target=found.columns[1], weight=found.weight)
        relation = Relation(found.source, found.name, found.target, directed)
        taken.append(EdgeSource(relation, Selection(found.file, columns)))
    return taken


def _refuse_two_node_files(nodes: list[NodeFile]) -> None:
    seen: dict[str, NodeFile] = {}
    for node in nodes:
        other = seen.setdefault(node.node_type, node)
        if other is not node:
            raise SourceError(
                f"{other.file.path.name} and {node.file.path.name} both hold the nodes of type {node.node_type!r}; "
                f'leave one out with ignore = ["{node.file.path.name}"] in graph.toml'
            )


def _configured(folder: Path, settings: Config) -> list[RelationFile]:
    seen: dict[tuple[object, ...], str] = {}
    found = []
    for entry in settings.edges:
        file = TableFile(folder / entry.file, settings.dialect)
        ends = entry.columns or file.columns[:2]
        if len(ends) != 2:
            raise SourceError(
                f"relation {entry.name!r} of graph.toml needs two id columns, and has {listed(ends) or 'none'}"
            )
        first, second = (file.column(column, "edges") for column in ends)
        key = (file.path.resolve(), first, second)
        if key in seen:
            raise SourceError(
                f"relations {seen[key]!r} and {entry.name!r} of graph.toml are both the columns {first}, {second} of "
                f"{entry.file}: the same file given twice"
            )
        seen[key] = entry.name
        weight = file.column(entry.weight, "weight") if entry.weight else weight_column(file, ends)
        columns, directed = (first, second), not entry.undirected
        found.append(RelationFile(file, entry.source, entry.name, entry.target, columns, weight, directed))
    return found

"""A folder of tables as a HIN: a file a relation, or the pair nodes + edges, or the triples of a knowledge graph."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from filecmp import cmp
from fnmatch import fnmatch
from itertools import combinations
from pathlib import Path
from typing import Any, cast

import pyarrow as pa

from neupath.datasets import config as configuration
from neupath.datasets.assemble import Choices, EdgeTable, NodeTable, TripleTable, TypedTable, assemble, assemble_typed
from neupath.datasets.config import Config, PairConfig
from neupath.datasets.detection import NodeFile, RelationFile, as_node_file, classify, weight_column
from neupath.datasets.parts import parts_of
from neupath.datasets.tables import TABLE_SUFFIXES, TableFile, is_table, stem
from neupath.datasets.triples import is_split, read_triples
from neupath.errors import SourceError, listed
from neupath.graph import HIN, Duplicates
from neupath.schema import Relation

_ABOUT = re.compile(r"(readme|licen[cs]e|copying|changelog|notes?|about|citation)\b.*\.txt$", re.IGNORECASE)
_NODES = ("nodes", "node", "vertices", "entities")
_EDGES = ("edges", "edge", "links", "relations", "triples")
_COLUMN_NAMES = {
    "id": ("id", "node_id", "identifier", "entity", "key"),
    "name": ("name", "title", "label"),
    "type": ("type", "kind", "node_type", "category", "class"),
    "source": ("source", "src", "head", "from", "start", "subject", "source_id"),
    "relation": ("relation", "metaedge", "rel", "edge_type", "type", "predicate", "kind", "label"),
    "target": ("target", "dst", "dest", "tail", "to", "end", "object", "target_id"),
}


@dataclass(frozen=True)
class Tables:
    """What the tables of a folder hold, before they are read: nodes, relations with whether they have a direction."""

    nodes: list[NodeFile]
    relations: list[tuple[RelationFile, bool]]
    detected: list[RelationFile]
    """The relations that no graph.toml names."""
    choices: Choices


def read_folder(folder: Path, config: Path | None = None, duplicates: Duplicates | None = None) -> HIN:
    """Read a folder of tables, with its graph.toml or another one."""
    settings = _settings(folder, config)
    return read_files(_tables_in(folder), folder, settings, duplicates)


def find_tables(folder: Path, config: Path | None = None, duplicates: Duplicates | None = None) -> Tables | None:
    """Find the Parquet tables of a folder, one a relation, for a reader of its own; nothing where it holds others."""
    settings = _settings(folder, config)
    kept = _kept(_tables_in(folder), settings)
    if settings.triples or not kept or _find_pair(kept, folder, settings) or _find_triples(kept, settings):
        return None
    found = _find_relations(kept, folder, settings, choices_of(settings, duplicates))
    files = [*(node.file for node in found.nodes), *(relation.file for relation, _ in found.relations)]
    if not all(file.is_parquet for file in files):
        return None
    refuse_twice(kept)
    _refuse_copies(found.detected, (relation.file.num_rows > 0 for relation in found.detected))
    return found


def _tables_in(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.iterdir()) if is_table(path) and not _ABOUT.match(path.name)]


def _kept(paths: Sequence[Path], settings: Config) -> list[Path]:
    return [path for path in paths if not any(fnmatch(path.name, pattern) for pattern in settings.ignore)]


def _settings(folder: Path, config: Path | None) -> Config:
    own = folder / configuration.NAME
    if config is not None:
        return configuration.read_config(config)
    return configuration.read_config(own) if own.is_file() else Config()


def read_files(paths: Sequence[Path], folder: Path, settings: Config, duplicates: Duplicates | None) -> HIN:
    """Read some table files as one graph."""
    kept = _kept(paths, settings)
    refuse_twice(kept)
    choices = choices_of(settings, duplicates)
    if settings.triples is not None:
        files = [folder / name for name in settings.triples.files or [path.name for path in kept]]
        refuse_twice(files)
        return read_triples(files, folder, settings, choices)
    if not kept:
        raise SourceError(
            f"{folder} holds no tables; put one file a relation there, such as movie_actor.csv, or nodes and edges "
            f"({', '.join(TABLE_SUFFIXES)}, also gzipped)"
        )
    pair = _find_pair(kept, folder, settings)
    if pair is not None:
        return _read_pair(*pair, settings, replace(choices, notes=_left_out(kept, pair)))
    triples = _find_triples(kept, settings)
    if triples:
        return read_triples(triples, folder, settings, replace(choices, notes=_left_out(kept, triples)))
    return _read_relations(kept, folder, settings, choices)


def _find_triples(paths: list[Path], settings: Config) -> list[Path]:
    """Find the parts of a knowledge graph: train, valid and test, or an edges table that names its relations."""
    splits = [path for path in paths if is_split(path)]
    if any(stem(path).lower() == "train" for path in splits) or len(splits) == len(paths):
        return splits
    edges = [path for path in paths if _last_word(path) in _EDGES]
    alone = len(edges) == 1 and not any(_last_word(path) in _NODES for path in paths)
    return edges if alone and _usual_column(TableFile(edges[0], settings.dialect), "relation", ()) else []


def _left_out(paths: list[Path], used: Iterable[Path]) -> list[str]:
    taken = list(used)
    names = " and ".join(path.name for path in taken)
    return [f"{path.name} was left out: the graph is read from {names}" for path in paths if path not in taken]


def choices_of(settings: Config, duplicates: Duplicates | None) -> Choices:
    """Gather the choices of a graph.toml, the call's own first."""
    return Choices(
        duplicates=duplicates or cast(Duplicates, settings.duplicates or "count"),
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


def _refuse_copies(relations: Sequence[RelationFile], have_edges: Iterable[bool]) -> None:
    """Refuse a relation that is another one's file under a second name."""
    filled = [relation.file.path for relation, has in zip(relations, have_edges, strict=False) if has]
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


def _find_pair(paths: list[Path], folder: Path, settings: Config) -> tuple[Path, Path] | None:
    """Find the nodes table and the edges table, by configuration or by the end of their names."""
    if settings.pair is not None and settings.pair.nodes and settings.pair.edges:
        return folder / settings.pair.nodes, folder / settings.pair.edges
    nodes = [path for path in paths if _last_word(path) in _NODES]
    edges = [path for path in paths if _last_word(path) in _EDGES]
    if len(nodes) == 1 and len(edges) == 1 and not settings.nodes and not settings.edges:
        return nodes[0], edges[0]
    return None


def _last_word(path: Path) -> str:
    return stem(path).lower().replace("-", "_").rsplit("_", 1)[-1]


def _read_pair(nodes_path: Path, edges_path: Path, settings: Config, choices: Choices) -> HIN:
    wanted = settings.pair or PairConfig()
    nodes_file, edges_file = (TableFile(path, settings.dialect) for path in (nodes_path, edges_path))
    id_ = _pair_column(nodes_file, wanted, "id")
    type_ = nodes_file.column(wanted.type, "type") if wanted.type else _usual_column(nodes_file, "type", (id_,))
    usual_name = _usual_column(nodes_file, "name", (id_, type_ or ""))
    name = nodes_file.column(wanted.name, "name") if wanted.name else usual_name
    attributes = [c for c in nodes_file.columns if c not in (id_, type_, name)]
    ends = [_pair_column(edges_file, wanted, purpose) for purpose in ("source", "relation", "target")]
    weight = edges_file.column(wanted.weight, "weight") if wanted.weight else weight_column(edges_file, ends)
    node_columns = [c for c in (id_, type_, name) if c is not None]
    table = nodes_file.read([*node_columns, *attributes], _as_text(node_columns))
    edges = edges_file.read([*ends, *([weight] if weight else [])], _as_text([*ends, *([weight] if weight else [])]))
    source, relation, target = (one(edges, end) for end in ends)
    return assemble_typed(
        TypedTable(one(table, id_), _types(table, type_), nodes_file.place, one(table, name), table.select(attributes)),
        TripleTable(source, relation, target, edges_file.place, one(edges, weight)),
        choices,
    )


def _pair_column(file: TableFile, wanted: PairConfig, purpose: str) -> str:
    given = getattr(wanted, purpose)
    if given is not None:
        return file.column(given, purpose)
    usual = _usual_column(file, purpose, ())
    if usual is None:
        raise SourceError(
            f"{file.path} has no column for the {purpose} (it has {listed(file.columns)}); "
            f'call it {purpose!r}, or name it in graph.toml under [pair] as {purpose} = "…"'
        )
    return usual


def _usual_column(file: TableFile, purpose: str, taken: tuple[str, ...]) -> str | None:
    by_lower = {column.lower(): column for column in file.columns if column not in taken}
    return next((by_lower[name] for name in _COLUMN_NAMES[purpose] if name in by_lower), None)


def _read_relations(paths: list[Path], folder: Path, settings: Config, choices: Choices) -> HIN:
    found = _find_relations(paths, folder, settings, choices)
    edges = [_read_relation(relation, directed=directed) for relation, directed in found.relations]
    _refuse_copies(found.detected, [bool(len(edge.sources)) for edge in edges])
    return assemble([_read_nodes(node) for node in found.nodes], edges, found.choices)


def _find_relations(paths: list[Path], folder: Path, settings: Config, choices: Choices) -> Tables:
    named = {entry.file for entry in settings.nodes.values()} | {entry.file for entry in settings.edges}
    given = [TableFile(path, settings.dialect) for path in paths if path.name not in named]
    nodes, detected, left_out = classify(given)
    nodes += [
        as_node_file(
            TableFile(folder / entry.file, settings.dialect), node_type, entry.id, entry.name, entry.attributes
        )
        for node_type, entry in settings.nodes.items()
    ]
    relations = [*((relation, True) for relation in detected), *_find_configured(folder, settings)]
    if not relations:
        raise SourceError(
            f"no file of {folder} is a relation: {listed(left_out, 3) or listed(path.name for path in paths)}; "
            f"a relation is a file such as movie_actor.csv whose first two columns are ids"
        )
    _refuse_two_node_files(nodes)
    return Tables(nodes, relations, detected, replace(choices, notes=left_out))


def _refuse_two_node_files(nodes: list[NodeFile]) -> None:
    seen: dict[str, NodeFile] = {}
    for node in nodes:
        other = seen.setdefault(node.node_type, node)
        if other is not node:
            raise SourceError(
                f"{other.file.path.name} and {node.file.path.name} both hold the nodes of type {node.node_type!r}; "
                f'leave one out with ignore = ["{node.file.path.name}"] in graph.toml'
            )


def _read_nodes(node: NodeFile) -> NodeTable:
    texts = [node.id, *([node.name] if node.name else [])]
    table = node.file.read([*texts, *node.attributes], _as_text(texts))
    names = one(table, node.name)
    ids, attributes = one(table, node.id), table.select(node.attributes)
    return NodeTable(node.node_type, ids, node.file.place, names, attributes, typed=node.file.is_parquet)


def _read_relation(found: RelationFile, *, directed: bool) -> EdgeTable:
    columns = [*found.columns, *([found.weight] if found.weight else [])]
    table = found.file.read(columns, _as_text(columns))
    return EdgeTable(
        Relation(found.source, found.name, found.target, directed),
        one(table, found.columns[0]),
        one(table, found.columns[1]),
        found.file.place,
        one(table, found.weight),
    )


def _find_configured(folder: Path, settings: Config) -> list[tuple[RelationFile, bool]]:
    seen: dict[tuple[object, ...], str] = {}
    relations = []
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
        found = RelationFile(file, entry.source, entry.name, entry.target, (first, second), weight)
        relations.append((found, not entry.undirected))
    return relations


def _types(table: pa.Table, column: str | None) -> pa.Array:
    """Return the type of each node; without a column for it all are of the type node."""
    return pa.array(["node"] * len(table), pa.string()) if column is None else one(table, column)


def one(table: pa.Table, column: str | None) -> Any:
    """Return a column as one array."""
    return None if column is None else table[column].combine_chunks()


def _as_text(columns: Iterable[str]) -> dict[str, pa.DataType]:
    return dict.fromkeys(columns, pa.string())

"""What a folder of tables is: a file a relation, or the pair nodes + edges, or the triples of a knowledge graph."""

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from filecmp import cmp
from fnmatch import fnmatch
from itertools import combinations
from pathlib import Path
from typing import cast

from neupath.errors import SourceError, listed
from neupath.graph.hin import Duplicates, check_duplicates
from neupath.graph.schema import Relation
from neupath.io import config as configuration
from neupath.io.assembly import Choices, refuse_unknown_names
from neupath.io.config import Config, PairConfig, TriplesConfig
from neupath.io.detection import NodeFile, RelationFile, as_node_file, classify, is_id, weight_column
from neupath.io.sources import EdgeSource, NodeSource, RelationTables, Selection, TableSource, TripleTables, present
from neupath.io.tables import TABLE_SUFFIXES, TableFile, is_cut, is_data_file, is_table, parquet_files, parts_of, stem
from neupath.io.text_files import HEADER_WORDS, Dialect

# ---- Unread


def folder_names(files: Iterable[TableFile]) -> list[str]:
    """Say which tables are cut into folders by a column that their files do not have; refuse where it names nodes."""
    notes = []
    for file in files:
        missing = [key for key in _cut_by(file) if key not in file.columns]
        ids = [key for key in missing if is_id(key)]
        if ids:
            raise SourceError(
                f"{file.path} is cut into folders by {ids[0]}, and the names of folders are not read; "
                f"write {ids[0]} as a column of its files, too"
            )
        if missing:
            notes.append(f"{file.path.name} is cut into folders by {listed(missing)}: what their names say is not read")
    return notes


def comments_above(files: Iterable[TableFile]) -> list[str]:
    """Say how many lines above the tables were skipped as comments."""
    counts = {file.path.name: file.comments for file in files if file.comments}
    return [
        f"of {name}, {count} comment line{'s' * (count != 1)} above the table {'were' if count != 1 else 'was'} skipped"
        for name, count in counts.items()
    ]


def _cut_by(file: TableFile) -> list[str]:
    """Return the columns by which a table is cut into folders such as year=2020."""
    inner = {folder for part in file.parts if part != file.path for folder in part.relative_to(file.path).parents}
    return sorted({folder.name.partition("=")[0] for folder in inner if folder.name})


def without_data_files(paths: Sequence[Path]) -> tuple[list[Path], list[str]]:
    """Return the tables of a folder without .dat files beside others, and say which were left out."""
    others = [path for path in paths if not is_data_file(path)]
    if not others:
        return list(paths), []
    left_out = [path for path in paths if is_data_file(path)]
    return others, [
        f"{path.name} was left out: a .dat file may be anything, so that beside other tables it is read only if "
        f"graph.toml names it"
        for path in left_out
    ]


def too_deep(folder: Path, ignored: Sequence[str]) -> list[str]:
    """Say which Parquet files lie deeper in a folder than parts of its tables do."""
    kept = [path for path in _folders(folder) if not any(fnmatch(path.name, pattern) for pattern in ignored)]
    found = [inner for path in kept for inner in _folders(path) if not is_cut(inner) and _holds_parquet(inner)]
    return [
        f"{inner.relative_to(folder)} was left out: parts of a table lie in its folder, or in some named as year=2020"
        for inner in found
    ]


def _holds_parquet(folder: Path) -> bool:
    with suppress(PermissionError):  # of a folder that is not read anyway
        return bool(parquet_files(folder))
    return False


def _folders(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.is_dir() and not path.name.startswith(("_", ".")))


def unread_columns(edges: Sequence[EdgeSource], nodes: Sequence[NodeSource]) -> list[str]:
    """Say which columns of relations are not read: ratings without their stars are another graph."""
    files = {edge.selection.file.path: edge.selection.file for edge in edges}
    selections = [*(edge.selection for edge in edges), *(node.selection for node in nodes)]
    read = {(s.file.path, column) for s in selections for column in (*s.columns.values(), *s.attributes)}
    weighted = {edge.selection.file.path for edge in edges if "weight" in edge.selection.columns}
    told = []
    for path, file in files.items():
        others = [column for column in file.columns if column and (path, column) not in read]
        if others:
            what = f"the columns {listed(others, 4)} were" if others[1:] else f"the column {others[0]} was"
            hint = "" if path in weighted else "; if one is the weight, name it in graph.toml"
            told.append(f"of {path.name}, {what} left out{hint}")
    return told


# ---- Which columns are triples (head, relation, tail), as knowledge graphs have them, and which types entities have


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


# ---- The pair nodes + edges


_NODES = ("nodes", "node", "vertices", "entities")
_EDGES = ("edges", "edge", "links", "relations", "triples")
_PERHAPS_EDGES = ("link", "relationships")
"""What a table of one relation is called, too: user_item_link."""
_COLUMN_NAMES = {
    "id": ("id", ":id", "node_id", "identifier", "entity", "key"),
    "name": ("name", "title", "label"),
    "type": ("type", "kind", "node_type", "category", "class", ":label"),
    "label": ("labels", "label"),
    "source": ("source", "src", "head", "from", "start", "subject", "source_id", ":start_id", "start_id"),
    "relation": ("relation", "metaedge", "rel", "edge_type", "type", ":type", "predicate", "kind", "label"),
    "target": ("target", "dst", "dest", "tail", "to", "end", "object", "target_id", ":end_id", "end_id"),
}
_NEO4J_ROLE = re.compile(r"^.*(:(?:id|label|type|start_id|end_id))(?:\(.*\))?$")
"""A column as neo4j-admin writes it: personId:ID(Person), :START_ID."""


def find_pair(paths: list[Path], folder: Path, settings: Config) -> tuple[Path, Path] | None:
    """Find the nodes table and the edges table, by configuration or by the end of their names."""
    if settings.pair is not None and settings.pair.nodes and settings.pair.edges:
        return folder / settings.pair.nodes, folder / settings.pair.edges
    nodes = [path for path in paths if _last_word(path) in _NODES]
    edges = _edge_tables(paths, settings)
    if len(nodes) == 1 and len(edges) == 1 and not settings.nodes and not settings.edges:
        return nodes[0], edges[0]
    return None


def find_lone_edges(paths: list[Path], settings: Config) -> list[Path]:
    """Find the table of all edges that is there without one of nodes, and names the relation of each."""
    edges = _edge_tables(paths, settings)
    alone = len(edges) == 1 and not any(_last_word(path) in _NODES for path in paths)
    return edges if alone and _is_edge_list(TableFile(edges[0], settings.dialect)) else []


def _edge_tables(paths: list[Path], settings: Config) -> list[Path]:
    """Find the tables of all edges by their names, or else by names that are less clear and their columns."""
    named = [path for path in paths if _last_word(path) in _EDGES]
    return named or [path for path in paths if _last_word(path) in _PERHAPS_EDGES and _has_ends(path, settings)]


def _has_ends(path: Path, settings: Config) -> bool:
    file = TableFile(path, settings.dialect)
    return all(_usual_column(file, purpose, ()) for purpose in ("source", "relation", "target"))


def _is_edge_list(file: TableFile) -> bool:
    """Whether a table of edges names the relation of each, under known names or between its ends."""
    relation = _usual_column(file, "relation", ())
    return relation is not None and (has_triples(file) or relation in file.columns[1:2])


def _last_word(path: Path) -> str:
    return stem(path).lower().replace("-", "_").rsplit("_", 1)[-1]


def as_pair(nodes_path: Path, edges_path: Path, settings: Config, choices: Choices) -> TripleTables:
    """Settle the columns of both tables."""
    wanted = settings.pair or PairConfig()
    nodes_file, edges_file = (TableFile(path, settings.dialect) for path in (nodes_path, edges_path))
    id_ = _pair_column(nodes_file, wanted, "id")
    type_ = nodes_file.column(wanted.type, "type") if wanted.type else _type_column(nodes_file, edges_file, id_)
    usual_name = _usual_column(nodes_file, "name", (id_, type_ or ""))
    name = nodes_file.column(wanted.name, "name") if wanted.name else usual_name
    attributes = [c for c in nodes_file.columns if c not in (id_, type_, name)]
    ends = [_pair_column(edges_file, wanted, purpose) for purpose in ("source", "relation", "target")]
    weight = edges_file.column(wanted.weight, "weight") if wanted.weight else weight_column(edges_file, ends)
    nodes = Selection(nodes_file, present(id=id_, type=type_, name=name), attributes)
    edges = Selection(edges_file, present(source=ends[0], relation=ends[1], target=ends[2], weight=weight))
    return TripleTables(nodes, "node", [edges], choices)


def _type_column(nodes: TableFile, edges: TableFile, id_: str) -> str | None:
    """Return the column of types; a label is one in the tables of a property graph alone, else a class or a name."""
    usual = _usual_column(nodes, "type", (id_,))
    label = _usual_column(nodes, "label", (id_,))
    if usual or label is None or _last_word(edges.path) not in _PERHAPS_EDGES:
        return usual
    return label if _usual_column(nodes, "name", (id_, label)) and not nodes.has_numbers(label) else None


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
    by_lower = {_NEO4J_ROLE.sub(r"\1", column.lower()): column for column in file.columns if column not in taken}
    return next((by_lower[name] for name in _COLUMN_NAMES[purpose] if name in by_lower), None)


# ---- What a folder of tables is


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

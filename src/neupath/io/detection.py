"""Recognise what the tables of a folder hold: relations and node types, all nodes and all edges, or triples.

Only graph.toml, the names of files and columns, and the first lines of a table decide; the tables are not read yet.
"""

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from filecmp import cmp
from fnmatch import fnmatch
from itertools import combinations, product
from pathlib import Path
from typing import cast

from neupath.errors import SourceError, listed
from neupath.graph.hin import Duplicates, check_duplicates
from neupath.graph.metapath import Relation
from neupath.io.config import GRAPH_TOML, Config, PairConfig, TriplesConfig, read_config
from neupath.io.sources import (
    EdgeSource,
    NodeSource,
    ReadOptions,
    RelationTables,
    Selection,
    TableSource,
    TripleTables,
    existing,
)
from neupath.io.tables import TABLE_SUFFIXES, TableFile, is_data_file, is_partition, is_table, parquet_files, stem
from neupath.io.text_files import HEADER_WORDS, Dialect

# ---- Recognising a folder ------------------------------------------------------------------------
_PROSE = re.compile(r"(readme|licen[cs]e|copying|changelog|notes?|about|citation)\b.*\.txt$", re.IGNORECASE)


def recognise_folder(
    folder: Path, config: str | Path | None = None, duplicates: Duplicates | None = None
) -> TableSource:
    """Recognise the tables of a folder, with its own graph.toml or another one."""
    settings = read_settings(folder, config)
    tables = [path for path in sorted(folder.iterdir()) if is_table(path) and not _PROSE.match(path.name)]
    paths, left_out = _without_data_files(_not_ignored(tables, settings))
    notes = [] if settings.names_tables else [*left_out, *_note_deep_folders(folder, settings)]
    return recognise_files(paths, folder, settings, duplicates, notes)


def read_settings(folder: Path, config: str | Path | None) -> Config:
    """Read the graph.toml `config`, or else that of the folder, or else return the defaults."""
    own = folder / GRAPH_TOML
    if config is not None:
        return read_config(Path(config))
    return read_config(own) if own.is_file() else Config()


def recognise_files(
    paths: Sequence[Path], folder: Path, settings: Config, duplicates: Duplicates | None, notes: Sequence[str] = ()
) -> TableSource:
    """Recognise some table files as one graph; `notes` are added to it."""
    options = replace(options_of(settings, duplicates), notes=notes)
    return with_notes(_recognise(_not_ignored(paths, settings), folder, settings, options))


def with_notes(source: TableSource) -> TableSource:
    """Add notes on folder names and comments, which are not read."""
    notes = [*source.options.notes, *_note_partitions(source.files), *_note_comments(source.files)]
    return replace(source, options=replace(source.options, notes=notes))


def _not_ignored(paths: Iterable[Path], settings: Config) -> list[Path]:
    return [path for path in paths if not any(fnmatch(path.name, pattern) for pattern in settings.ignore)]


def _recognise(paths: list[Path], folder: Path, settings: Config, options: ReadOptions) -> TableSource:
    """Recognise triples, or one table of nodes and one of edges, or else one table per relation."""
    refuse_twice(paths)
    if settings.triples is not None:
        files = [folder / name for name in settings.triples.files or [path.name for path in paths]]
        refuse_twice(files)
        return find_triples(files, folder, settings, options)
    if not paths and not settings.names_tables:
        content = listed((path.name for path in sorted(folder.iterdir()) if not path.name.startswith(".")), 4)
        raise SourceError(
            f"{folder} has no tables{f' (it has {content})' if content else ''}; put one file per relation there, such "
            f"as movie_actor.csv, or nodes and edges ({', '.join(TABLE_SUFFIXES)}, also gzipped), or name the files in "
            f"graph.toml"
        )
    pair = _find_pair(paths, folder, settings)
    if pair is not None:
        return _select_pair(*pair, settings, replace(options, notes=[*_note_others(paths, pair), *options.notes]))
    triples = _triple_files(paths, settings)
    if triples:
        notes = [*_note_others(paths, triples), *options.notes]
        return find_triples(triples, folder, settings, replace(options, notes=notes))
    return _select_relations(paths, folder, settings, options)


def _triple_files(paths: list[Path], settings: Config) -> list[Path]:
    """Find the files of a knowledge graph: train, valid and test, or a lone table that names its relations."""
    splits = [path for path in paths if stem(path).lower() in _SPLITS]
    # next to tables, a folder named train is more likely something else
    if any(stem(path).lower() == "train" and path.is_file() for path in splits) or len(splits) == len(paths):
        return splits
    if len(paths) == 1 and _is_all_triples(TableFile(paths[0], settings.dialect)):
        return paths
    edges = _edge_tables(paths, settings)
    alone = len(edges) == 1 and not any(_last_word(path) in _NODES for path in paths)
    return edges if alone and _is_edge_list(TableFile(edges[0], settings.dialect)) else []


def _is_all_triples(file: TableFile) -> bool:
    """Whether a lone table holds triples, and is not one relation whose edges have an attribute `type`."""
    clear = any(column.lower() in ("relation", "predicate", "metaedge") for column in file.columns)
    return len(_named_columns(file)) == 3 and (clear or not classify([file])[1])


def _note_others(paths: list[Path], used: Sequence[Path]) -> list[str]:
    names = " and ".join(path.name for path in used)
    return [f"{path.name} was left out: the graph is read from {names}" for path in paths if path not in used]


def options_of(settings: Config, duplicates: Duplicates | None) -> ReadOptions:
    """Return the options of a graph.toml; `duplicates` overrides its own."""
    chosen = duplicates or settings.duplicates or "count"
    check_duplicates(chosen)
    return ReadOptions(
        duplicates=cast(Duplicates, chosen),
        take=settings.take,
        undirected=settings.undirected,
        abbreviations=settings.abbreviations,
    )


# ---- Words in the names of files and columns -----------------------------------------------------
_GENERIC = {
    "id", "id1", "id2", "source", "src", "from", "start", "head", "subject", "target", "dst", "dest", "to", "end",
    "tail", "object", "node", "node1", "node2", "node_id", "identifier", "key", "fromnodeid", "tonodeid",
}  # fmt: skip
_ROLES = {
    "citing", "cited", "citer", "follower", "followee", "following", "followed", "friend", "parent", "child",
    "ancestor", "sibling", "neighbor", "neighbour", "leader", "sender", "receiver", "recipient", "truster", "trustee",
    "caller", "callee", "previous", "next", "first", "second", "left", "right", "other",
}  # fmt: skip
"""Roles of nodes in a relation of a type to itself."""
_STEM = 4
"""How many letters a role and a verb must share, as trustor and trusts do."""


def entity(column: str) -> str | None:
    """Return the entity that an id column names, or None.

    >>> [entity(c) for c in ("movie_id", "MovieID", "#Genre", "source", "3")]
    ['movie', 'Movie', 'Genre', None, None]
    """
    word = column.lstrip("# ")  # the header may be commented
    if word.lower() in _GENERIC or word.isdigit():
        return None
    return re.sub(r"[_\s-]?(?:id|ID|Id)[_\s-]?\d*$", "", word) or None


def singulars(word: str) -> list[str]:
    """Return the word and the singulars that it may be the plural of, in lower case.

    >>> singulars("Categories")
    ['categories', 'categorie', 'categori', 'category']
    """
    low = word.lower()
    endings = (("s", ""), ("es", ""), ("ies", "y"))
    return [low, *(low.removesuffix(plural) + singular for plural, singular in endings if low.endswith(plural))]


def split_words(name: str) -> list[str]:
    """Split the name of a file or column into words."""
    return [word for word in re.split(r"[_\-\s.]+", name) if word]


def is_id(column: str) -> bool:
    """Whether the name of a column says that it holds ids."""
    return bool(re.search(r"(?:_id|Id|ID)$", column))


def is_role(word: str, node_type: str, between: Iterable[str]) -> bool:
    """Whether a column called `word` may hold ids of `node_type`, given the words between the types of a file's name.

    >>> [is_role(word, "paper", ["cites"]) for word in ("papers", "cited_paper", "paper1", "p", "citing", "author")]
    [True, True, True, True, True, False]
    """
    low, kind = word.lower(), node_type.lower()
    if are_alike(low, kind) or kind.startswith(low) or low.endswith(kind) or low in _ROLES:
        return True
    if low.startswith(kind):
        rest = low.removeprefix(kind).strip("_- ")
        return rest.isdigit() or len(rest) <= 1 or rest in _ROLES or rest in _GENERIC
    return any(not are_alike(low, verb.lower()) and low[:_STEM] == verb.lower()[:_STEM] for verb in between)


def are_alike(word: str, other: str) -> bool:
    """Whether two words are the same, or one is the plural of the other."""
    return other.lower() in singulars(word) or word.lower() in singulars(other)


# ---- Node files and relation files ---------------------------------------------------------------
_ID_COLUMNS = ("id", "node_id", "identifier", "key")
_NAME_COLUMNS = ("name", "title", "label")
_JOINING_WORDS = {"to", "vs", "2"}


@dataclass(frozen=True)
class RelationFile:
    """A table of the edges of one relation: its two id columns, and the weight column if any."""

    file: TableFile
    source: str
    name: str
    target: str
    columns: tuple[str, str]
    weight: str | None
    directed: bool = True


def classify(files: Iterable[TableFile]) -> tuple[list[NodeSource], list[RelationFile], list[str]]:
    """Tell node files from relation files; the third list has a note on each other file."""
    all_files = list(files)
    types = _TypeNames(all_files)
    nodes, relations, left_out = [], [], []
    for file in all_files:
        if (node_type := types.of_node_file(file)) is not None:
            nodes.append(select_nodes(file, node_type))
        elif (relation := _as_relation(file, types)) is not None:
            relations.append(relation)
        else:
            left_out.append(
                f"{file.path.name} was left out: neither its name nor its first columns "
                f"({', '.join(file.columns[:2])}) name node types; name them in graph.toml"
            )
    return nodes, relations, left_out


def select_nodes(
    file: TableFile, node_type: str, id: str | None = None, name: str | None = None, attributes: list[str] | None = None
) -> NodeSource:
    """Choose the columns of a node file: by default the first for the id and one called name for the name."""
    id_column = file.column(id, "id") if id else file.columns[0]
    others = [column for column in file.columns if column != id_column]
    usual_names = (*_NAME_COLUMNS, f"{node_type}_name".lower())
    name_column = next((column for column in others if column.lower() in usual_names), None)
    if name is not None:
        name_column = file.column(name, "name") if name else None
    elif name_column is None and others and not file.has_header:
        name_column = others[0]
    if attributes is None:
        chosen = [column for column in others if column != name_column]
    else:
        chosen = [file.column(column, "attributes") for column in attributes]
    return NodeSource(node_type, Selection(file, existing(id=id_column, name=name_column), chosen))


def is_relation(file: TableFile) -> bool:
    """Whether a single file is clearly one relation: its header names two entities, or it has only two columns."""
    named = file.has_header and len(file.columns) >= 2 and all(entity(column) for column in file.columns[:2])
    return (named or len(file.columns) == 2) and _as_relation(file, _TypeNames([file])) is not None


def weight_column(file: TableFile, others: Iterable[str]) -> str | None:
    """Return the column called weight, unless it is one of the others."""
    return next((c for c in file.columns if c.lower() == "weight" and c not in set(others)), None)


class _TypeNames:
    """The node types that the files of a folder name, each in one spelling."""

    def __init__(self, files: list[TableFile]) -> None:
        self._spelling: dict[str, str] = {}
        stems = [stem(file.path) for file in files]
        compound = [file for file in files if len(split_words(stem(file.path))) >= 2]
        self._learn(map(self._own_entity, files))
        # a type of several words must be known before the names of relations are split into types
        self._learn(_mentioned(file, stems) for file in compound)
        for file in compound:
            if len(file.columns) >= 2 and self.of_node_file(file) is None:
                self._learn_ends(file)
        self._learn(_mentioned(file, stems) for file in files if self._spelled_as([stem(file.path)]) is None)

    def _learn(self, names: Iterable[str | None]) -> None:
        for name in names:
            if name is not None:
                self._spelling.setdefault(name.lower(), name)

    def _learn_ends(self, file: TableFile) -> None:
        """Learn the types of a relation whose name begins like its first column."""
        source, _, target = self.named_ends(stem(file.path))
        twice = source.lower() == target.lower() and not self.columns_differ(file)
        first, second = (
            end if twice else entity(column) or end for column, end in zip(file.columns, (source, target), strict=False)
        )
        if first.lower() in singulars(source):
            self._learn([first])
            self._learn([None if self.ending(second) else second])

    @staticmethod
    def _own_entity(file: TableFile) -> str | None:
        """Return the type of a node file whose first column and file name agree: movies with movie_id."""
        first = entity(file.columns[0])
        if first is None:
            return None
        ours, words = split_words(first.lower()), split_words(stem(file.path))
        alike = len(ours) == len(words) and all(our in singulars(word) for our, word in zip(ours, words, strict=True))
        return first if alike else None

    def named_ends(self, name: str) -> tuple[str, list[str], str]:
        """Return the types at the two ends of a file's name, and the words between; a type may have several words."""
        words = split_words(name)
        heads = max((n for n in range(1, len(words)) if self._spelled_as(words[:n])), default=1)
        tails = max((n for n in range(1, len(words) - heads + 1) if self._spelled_as(words[-n:])), default=1)
        source, target = (self._spelled_as(end) or "_".join(end) for end in (words[:heads], words[-tails:]))
        between = [word for word in words[heads : len(words) - tails] if word.lower() not in _JOINING_WORDS]
        return source, between, target

    def columns_differ(self, file: TableFile) -> bool:
        """Whether the first two columns hold ids of other types than those in the file's name.

        A role such as cited is not another type. Any other word is one, if both columns are called ids.
        """
        source, between, target = self.named_ends(stem(file.path))
        ends = zip(map(entity, file.columns[:2]), (source, target), strict=True)
        others = [word for word, end in ends if word is not None and self._is_other(word, end, between)]
        named = (self._spelled_as([word]) or any(are_alike(word, verb) for verb in between) for word in others)
        return any(named) or (bool(others) and all(map(is_id, file.columns[:2])))

    def _is_other(self, word: str, end: str, between: list[str]) -> bool:
        if len(word) == 1 or are_alike(word, end):
            return False
        return self._spelled_as([word]) is not None or not is_role(word, end, between)

    def _spelled_as(self, words: list[str]) -> str | None:
        return next((self._spelling[w] for w in singulars("_".join(words)) if w in self._spelling), None)

    def of_node_file(self, file: TableFile) -> str | None:
        """Return the type whose nodes a file holds, or None."""
        own = self._own_entity(file)
        if own is not None:
            return self._spelling.get(own.lower(), own)
        called_id = file.has_header and file.columns[0].lower() in _ID_COLUMNS
        if not called_id and file.has_header:
            return None
        name = re.sub(r"^id_", "", stem(file.path).lower())
        known = self._spelled_as([name])
        if known is not None:
            return known
        return singulars(name)[:2][-1] if called_id and len(split_words(stem(file.path))) == 1 else None

    def ending(self, word: str) -> str | None:
        """Return the known type at the end of a role such as cited_paper."""
        for known, spelling in self._spelling.items():
            if word.lower() == known or re.search(rf"[_\s-]{re.escape(known)}$", word.lower()):
                return spelling
        return None


def _mentioned(file: TableFile, stems: Iterable[str]) -> str | None:
    """Return the type of a node table whose name begins or ends the name of another file, as spelled there."""
    if file.columns[0].lower() not in _ID_COLUMNS or any(is_id(column) for column in file.columns[1:]):
        return None
    for name, other in product(singulars(stem(file.path)), stems):
        if other.lower().startswith(f"{name}_"):
            return other[: len(name)]
        if other.lower().endswith(f"_{name}"):
            return other[-len(name) :]
    return None


def _name_decides(file: TableFile, types: _TypeNames) -> bool:
    """Whether the file's name, and not its columns, decides which types it joins.

    It does if the columns name no entity; if the name has one type twice, as in paper_cites_paper; if it has two known
    types and the columns name no known type; or if the columns abbreviate its types. It never does if the columns are
    ids of other types.
    """
    columns = file.columns[:2]
    entities = [entity(column) for column in columns]
    if entities == [None, None]:
        return True
    if types.columns_differ(file):
        return False
    source, _, target = types.named_ends(stem(file.path))
    if source.lower() == target.lower():
        return True
    if all(end.lower().startswith(column.lower()) for end, column in zip((source, target), columns, strict=True)):
        return True
    return all(map(types.ending, (source, target))) and not any(word and types.ending(word) for word in entities)


def _as_relation(file: TableFile, types: _TypeNames) -> RelationFile | None:
    if len(file.columns) < 2:
        return None
    first, second = file.columns[:2]
    name = stem(file.path)
    words = split_words(name)
    source, target = entity(first), entity(second)
    if len(words) >= 2 and _name_decides(file, types):
        begin, middle, end = types.named_ends(name)
        ends = (begin, end)
    elif source is None or target is None:
        return None
    elif words and words[0].lower() in singulars(source) and len(words) >= 2:
        ends = (source, target)
        ignored = (*singulars(target), *split_words(target.lower()), *_JOINING_WORDS)
        middle = [w for w in words[1:] if w.lower() not in ignored and target.lower() not in singulars(w)]
    elif file.path.is_dir():  # its name says nothing, and it may hold copies of other tables
        return None
    elif (types.ending(source) and types.ending(target)) or (is_id(first) and is_id(second) and source != target):
        ends, middle = (source, target), []
    else:
        return None
    start, finish = (types.ending(end) or end for end in ends)
    weight = weight_column(file, (first, second))
    return RelationFile(file, start, "_".join(middle) or name, finish, (first, second), weight)


# ---- One table per relation ----------------------------------------------------------------------
def _select_relations(paths: list[Path], folder: Path, settings: Config, options: ReadOptions) -> RelationTables:
    """Choose the columns of one table per relation, and of the node tables beside them."""
    files = [entry.file for entry in settings.nodes.values()] + [entry.file for entry in settings.edges]
    named = {place for path in (folder / file for file in files) for place in (path.resolve(), *path.resolve().parents)}
    detected = [TableFile(path, settings.dialect) for path in paths if path.resolve() not in named]
    nodes, relations, left_out = classify(detected)
    nodes += [
        select_nodes(
            TableFile(folder / entry.file, settings.dialect), node_type, entry.id, entry.name, entry.attributes
        )
        for node_type, entry in settings.nodes.items()
    ]
    _refuse_copies(relations)
    relations += _configured(folder, settings)
    if not relations:
        only_nodes = f"{listed(node.selection.file.path.name for node in nodes)} hold{'s' * (len(nodes) == 1)} nodes"
        raise SourceError(
            f"no file of {folder} is a relation: {listed([*left_out, *options.notes], 3) or only_nodes}; give a file "
            f"such as movie_actor.csv whose first two columns are ids, or name two columns of any file under [[edges]] "
            f"in graph.toml"
        )
    _refuse_two_node_files(nodes)
    edges = _take(relations, options)
    notes = [*left_out, *_note_columns(edges, nodes), *options.notes]
    return RelationTables(nodes, edges, replace(options, notes=notes))


def _take(relations: list[RelationFile], options: ReadOptions) -> list[EdgeSource]:
    """Return the relations that the options take, directed or not as they say."""
    options.check_names([relation.name for relation in relations])
    edges = []
    for file in relations:
        if options.take and file.name not in options.take:
            continue
        directed = file.directed and file.name not in options.undirected
        columns = existing(source=file.columns[0], target=file.columns[1], weight=file.weight)
        relation = Relation(file.source, file.name, file.target, directed)
        edges.append(EdgeSource(relation, Selection(file.file, columns)))
    return edges


def _refuse_two_node_files(nodes: list[NodeSource]) -> None:
    names: dict[str, str] = {}
    for node in nodes:
        name = node.selection.file.path.name
        if node.node_type in names:
            raise SourceError(
                f"{names[node.node_type]} and {name} both hold the nodes of type {node.node_type!r}; "
                f'leave one out with ignore = ["{name}"] in graph.toml'
            )
        names[node.node_type] = name


def _configured(folder: Path, settings: Config) -> list[RelationFile]:
    """Return the relations that graph.toml describes."""
    seen: dict[tuple[object, ...], str] = {}
    relations = []
    for entry in settings.edges:
        file = TableFile(folder / entry.file, settings.dialect)
        ends = entry.columns or file.columns[:2]
        if len(ends) != 2:
            raise SourceError(
                f"relation {entry.name!r} in graph.toml needs two id columns, but has {listed(ends) or 'none'}"
            )
        first, second = (file.column(column, "edges") for column in ends)
        key = (file.path.resolve(), first, second)
        if key in seen:
            raise SourceError(
                f"relations {seen[key]!r} and {entry.name!r} in graph.toml both use the columns {first}, {second} of "
                f"{entry.file}; leave one out, or its edges count twice"
            )
        seen[key] = entry.name
        weight = file.column(entry.weight, "weight") if entry.weight else weight_column(file, ends)
        columns, directed = (first, second), not entry.undirected
        relations.append(RelationFile(file, entry.source, entry.name, entry.target, columns, weight, directed))
    return relations


# ---- One table of all nodes and one of all edges -------------------------------------------------
_NODES = ("nodes", "node", "vertices", "entities")
_EDGES = ("edges", "edge", "links", "relations", "triples")
_PERHAPS_EDGES = ("link", "relationships")
"""Also names of one relation, as in user_item_link."""
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
"""Matches column names of neo4j-admin: personId:ID(Person), :START_ID."""


def _find_pair(paths: list[Path], folder: Path, settings: Config) -> tuple[Path, Path] | None:
    """Find the tables of all nodes and of all edges, by graph.toml or by the last word of their names."""
    if settings.pair is not None and settings.pair.nodes and settings.pair.edges:
        return folder / settings.pair.nodes, folder / settings.pair.edges
    nodes = [path for path in paths if _last_word(path) in _NODES]
    edges = _edge_tables(paths, settings)
    if len(nodes) == 1 and len(edges) == 1 and not settings.nodes and not settings.edges:
        return nodes[0], edges[0]
    return None


def _edge_tables(paths: list[Path], settings: Config) -> list[Path]:
    """Find the tables of all edges by clear names, or else by less clear names and their columns."""
    named = [path for path in paths if _last_word(path) in _EDGES]
    return named or [
        path
        for path in paths
        if _last_word(path) in _PERHAPS_EDGES
        and all(_usual_column(TableFile(path, settings.dialect), end) for end in ("source", "relation", "target"))
    ]


def _is_edge_list(file: TableFile) -> bool:
    """Whether a table of edges has a relation column, with known names or between the two ends."""
    relation = _usual_column(file, "relation")
    return relation is not None and (len(_named_columns(file)) == 3 or relation in file.columns[1:2])


def _last_word(path: Path) -> str:
    return stem(path).lower().replace("-", "_").rsplit("_", 1)[-1]


def _select_pair(nodes_path: Path, edges_path: Path, settings: Config, options: ReadOptions) -> TripleTables:
    """Choose the columns of both tables."""
    pair = settings.pair or PairConfig()
    nodes_file, edges_file = (TableFile(path, settings.dialect) for path in (nodes_path, edges_path))
    id_ = _pair_column(nodes_file, pair, "id")
    type_ = nodes_file.column(pair.type, "type") if pair.type else _type_column(nodes_file, edges_file, id_)
    usual_name = _usual_column(nodes_file, "name", (id_, type_ or ""))
    name = nodes_file.column(pair.name, "name") if pair.name else usual_name
    attributes = [c for c in nodes_file.columns if c not in (id_, type_, name)]
    ends = [_pair_column(edges_file, pair, purpose) for purpose in ("source", "relation", "target")]
    weight = edges_file.column(pair.weight, "weight") if pair.weight else weight_column(edges_file, ends)
    nodes = Selection(nodes_file, existing(id=id_, type=type_, name=name), attributes)
    edges = Selection(edges_file, existing(source=ends[0], relation=ends[1], target=ends[2], weight=weight))
    return TripleTables(nodes, "node", [edges], options)


def _type_column(nodes: TableFile, edges: TableFile, id_: str) -> str | None:
    """Return the column of types; a `label` is one only in tables of a property graph, elsewhere a class or a name."""
    usual = _usual_column(nodes, "type", (id_,))
    label = _usual_column(nodes, "label", (id_,))
    if usual or label is None or _last_word(edges.path) not in _PERHAPS_EDGES:
        return usual
    return label if _usual_column(nodes, "name", (id_, label)) and not nodes.has_numbers(label) else None


def _pair_column(file: TableFile, pair: PairConfig, purpose: str) -> str:
    if getattr(pair, purpose) is not None:
        return file.column(getattr(pair, purpose), purpose)
    usual = _usual_column(file, purpose)
    if usual is None:
        raise SourceError(
            f"{file.path} has no column for the {purpose} (it has {listed(file.columns)}); "
            f'call it {purpose!r}, or name it in graph.toml under [pair] as {purpose} = "…"'
        )
    return usual


def _usual_column(file: TableFile, purpose: str, taken: tuple[str, ...] = ()) -> str | None:
    by_lower = {_NEO4J_ROLE.sub(r"\1", column.lower()): column for column in file.columns if column not in taken}
    return next((by_lower[name] for name in _COLUMN_NAMES[purpose] if name in by_lower), None)


# ---- Triples of a knowledge graph: head, relation, tail ------------------------------------------
_COLUMN_WORDS = (
    ("head", "source", "subject", "entity1", "from", "src"),
    ("relation", "predicate", "rel", "type", "metaedge"),
    ("tail", "target", "object", "entity2", "to", "dst"),
)
_SPLITS = {"train", "valid", "validation", "val", "dev", "test"}


def find_triples(paths: Sequence[Path], folder: Path, settings: Config, options: ReadOptions) -> TripleTables:
    """Choose the columns of one or more files of triples, which are one graph."""
    triples = settings.triples or TriplesConfig()
    edges = [_select_triples(path, settings.dialect, triples.columns) for path in paths]
    types = None if triples.types is None else _select_types(folder / triples.types, settings.dialect)
    return TripleTables(types, triples.type, edges, options)


def _select_triples(path: Path, dialect: Dialect, columns: list[str] | None) -> Selection:
    file = TableFile(path, dialect)
    if (
        dialect.header is None
        and not columns
        and not {c.lower().removesuffix("_id") for c in file.columns} & HEADER_WORDS
    ):
        file = TableFile(path, replace(dialect, header=False))
    named = _named_columns(file)
    usual = named if len(named) == 3 else file.columns[:3]
    names = [file.column(column, "triples") for column in columns] if columns else usual
    if len(names) != 3:
        raise SourceError(
            f"{path} has {len(names)} column{'s' * (len(names) != 1)} ({listed(names)}), but triples have three: head, "
            f"relation, tail; name a relation's file after its types, such as movie_actor.csv, or describe the columns "
            f"in a graph.toml (‹config›)"
        )
    head, relation, tail = names
    weight = weight_column(file, names)
    return Selection(file, existing(source=head, relation=relation, target=tail, weight=weight), all_text=True)


def _named_columns(file: TableFile) -> list[str]:
    """Return those of the columns head, relation and tail that the header names."""
    by_word = {column.lower().removesuffix("_id"): column for column in file.columns}
    columns = (next((by_word[word] for word in words if word in by_word), None) for words in _COLUMN_WORDS)
    return [column for column in columns if column is not None]


def _select_types(path: Path, dialect: Dialect) -> Selection:
    """Choose the columns of a table of types: entity, type and, if there is a third column, the name."""
    file = TableFile(path, dialect)
    if len(file.columns) < 2:
        raise SourceError(f"{path} has one column; a table of types has two: entity, type")
    return Selection(file, dict(zip(("id", "type", "name"), file.columns, strict=False)))


# ---- Tables that are given twice -----------------------------------------------------------------
def refuse_twice(paths: Iterable[Path]) -> None:
    """Raise if the same file is given twice, under one name or two: its edges would count twice."""
    seen: dict[object, Path] = {}
    for path in (path for path in paths if path.exists()):
        for key in (path.resolve(), (path.parent.resolve(), stem(path).lower())):
            other = seen.setdefault(key, path)
            if other is not path:
                raise SourceError(f"{other} and {path} are the same table; leave one out, or its edges count twice")


def _refuse_copies(relations: Sequence[RelationFile]) -> None:
    """Raise if two relations have files of the same content."""
    filled = [relation.file for relation in relations if not relation.file.is_empty]
    for file, other in combinations(filled, 2):
        if len(file.parts) == len(other.parts) and all(map(_same_content, file.parts, other.parts)):
            raise SourceError(
                f"{file.path} and {other.path.name} have the same content, so their edges would count twice; "
                f'leave one out with ignore = ["{other.path.name}"] in graph.toml'
            )


def _same_content(path: Path, other: Path) -> bool:
    return path.stat().st_size == other.stat().st_size and cmp(path, other, shallow=False)


# ---- Notes on what is not read -------------------------------------------------------------------
def _note_partitions(files: Iterable[TableFile]) -> list[str]:
    """Note the columns that only the names of partition folders give; raise if such a column holds ids."""
    notes = []
    for file in files:
        inner = {folder for part in file.parts if part != file.path for folder in part.relative_to(file.path).parents}
        keys = {folder.name.partition("=")[0] for folder in inner if folder.name}
        missing = sorted(keys.difference(file.columns))
        ids = [key for key in missing if is_id(key)]
        if ids:
            raise SourceError(
                f"{file.path} is partitioned into folders by {ids[0]}, and folder names are not read; "
                f"write {ids[0]} as a column of its files too"
            )
        if missing:
            notes.append(
                f"{file.path.name} is partitioned into folders by {listed(missing)}: folder names are not read"
            )
    return notes


def _note_comments(files: Iterable[TableFile]) -> list[str]:
    counts = {file.path.name: file.comments for file in files if file.comments}
    return [f"{name}: skipped {n} comment line{'s' * (n != 1)} above the table" for name, n in counts.items()]


def _without_data_files(paths: Sequence[Path]) -> tuple[list[Path], list[str]]:
    """Leave out .dat files beside other tables; return the others, and notes on those left out."""
    others = [path for path in paths if not is_data_file(path)]
    if not others:
        return list(paths), []
    return others, [
        f"{path.name} was left out: a .dat file can hold anything, so next to other tables it is read only if "
        f"graph.toml names it"
        for path in paths
        if is_data_file(path)
    ]


def _note_deep_folders(folder: Path, settings: Config) -> list[str]:
    """Note the Parquet files that are too deep in a folder to be parts of its tables."""
    return [
        f"{inner.relative_to(folder)} was left out: the parts of a table must be in its folder, or in folders such as "
        f"year=2020"
        for path in _not_ignored(_folders(folder), settings)
        for inner in _folders(path)
        if not is_partition(inner) and _holds_parquet(inner)
    ]


def _holds_parquet(folder: Path) -> bool:
    with suppress(PermissionError):  # the folder is not read anyway
        return bool(parquet_files(folder))
    return False


def _folders(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.is_dir() and not path.name.startswith(("_", ".")))


def _note_columns(edges: Sequence[EdgeSource], nodes: Sequence[NodeSource]) -> list[str]:
    """Note the columns of relations that are not read; one of them may be the weight."""
    files = {edge.selection.file.path: edge.selection.file for edge in edges}
    selections = [*(edge.selection for edge in edges), *(node.selection for node in nodes)]
    read = {(s.file.path, column) for s in selections for column in (*s.columns.values(), *s.attributes)}
    weighted = {edge.selection.file.path for edge in edges if "weight" in edge.selection.columns}
    notes = []
    for path, file in files.items():
        others = [column for column in file.columns if column and (path, column) not in read]
        if others:
            columns = f"the columns {listed(others, 4)} were" if others[1:] else f"the column {others[0]} was"
            hint = "" if path in weighted else "; if one is the weight, name it in graph.toml"
            notes.append(f"{path.name}: {columns} left out{hint}")
    return notes

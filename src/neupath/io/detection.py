"""Recognise what tables hold: relations and node types, all nodes and all edges, or triples.

Tables in files and in memory follow the same rules. graph.toml, the names of tables and columns, and the first rows
of a table decide; the tables are not read yet. What no rule recognises is refused, with a graph.toml that would read
it.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from filecmp import cmp
from fnmatch import fnmatch
from hashlib import blake2b
from pathlib import Path
from typing import cast

from neupath.errors import SourceError, listed
from neupath.graph.hin import Duplicates, check_duplicates
from neupath.graph.metapath import Relation
from neupath.graph.notations import are_perhaps_thousands, quoted, toml_key
from neupath.io.columns import (
    ChosenColumns,
    Ends,
    are_copies,
    choose_columns,
    declared_in,
    end_columns,
    end_entities,
    few_types,
    find_ends,
    find_split,
    has_prefixed_ids,
    holds_categories,
    holds_fractions,
    holds_marks,
    holds_measures,
    is_constant,
    is_sampled_whole,
    is_unique,
    likely_weight,
    look_like_triples,
    may_end_edges,
    names_entities,
    node_kinds,
    table_words,
    type_in_column,
)
from neupath.io.formats.parquet import is_partition, parquet_files
from neupath.io.graph_toml import GRAPH_TOML, Config, PairConfig, TriplesConfig, read_config, read_own_config
from neupath.io.plan import LISTS, NULLS, EdgePlan, NodePlan, Plan, ReadOptions, Selection, SharedIds, existing
from neupath.io.proposals import (
    UnrecognisedError,
    no_relation,
    propose_triples,
    refuse_crosstabs,
    refuse_repeated_ids,
    with_proposal,
)
from neupath.io.table_files import TABLE_SUFFIXES, is_data_file, is_in_parts, is_table, open_table, open_tables, stem
from neupath.io.tables import Table, TableFile
from neupath.io.words import (
    EDGE_TABLES,
    EDGE_WORDS,
    IDS,
    JOINING_WORDS,
    KINDS,
    NAMES,
    NODE_TABLES,
    ROLES_IN_TABLES,
    SPLIT_TABLES,
    WEAK_EDGE_TABLES,
    are_alike,
    entity,
    is_id,
    is_identifier,
    is_key,
    is_measure,
    is_own_role,
    is_role,
    is_weak_relation,
    is_word,
    name_words,
    names_no_end,
    singular,
    singulars,
    snake,
    split_words,
    usual_name,
)

# ---- Recognising a folder, files or tables in memory ---------------------------------------------
_PROSE = re.compile(r"(readme|licen[cs]e|copying|changelog|notes?|about|citation)\b.*\.txt$", re.IGNORECASE)


@dataclass(frozen=True)
class Tables:
    """The tables of a source."""

    all: Sequence[Table]
    find: Callable[[str], Table]
    """Find a table by the name that graph.toml gives it."""
    where: str
    """What errors call the source."""
    in_files: bool = True
    """Whether they are files, which a graph.toml can describe."""


def recognise_folder(folder: Path, config: str | Path | None = None, duplicates: Duplicates | None = None) -> Plan:
    """Recognise the tables of a folder, with its own graph.toml or another one."""
    settings = read_settings(folder, config)
    if is_in_parts(folder) and not any((folder / name).exists() for name in settings.files):
        whole = folder.resolve() if folder.name in ("", "..") else folder  # its name is that of the table
        return recognise_files([whole], whole.parent, settings, duplicates, where=whole)
    tables = sorted(filter(is_table_file, folder.iterdir()))
    paths, left_out = _without_data_files(_not_ignored(tables, settings))
    notes = [] if settings.names_tables else [*left_out, *_note_deep_folders(folder, settings)]
    return recognise_files(paths, folder, settings, duplicates, notes)


def is_table_file(path: Path) -> bool:
    """Whether a path of a folder is a table; a readme is not."""
    return is_table(path) and not _PROSE.match(path.name)


def read_settings(folder: Path, config: str | Path | None) -> Config:
    """Read the graph.toml `config`, or else that of the folder, or else return the defaults."""
    own = folder / GRAPH_TOML
    if config is not None:
        return read_config(Path(config))
    return read_own_config(own) if own.exists() and not own.is_dir() else Config()


def recognise_files(
    paths: Sequence[Path],
    folder: Path,
    settings: Config,
    duplicates: Duplicates | None,
    notes: Sequence[str] = (),
    where: Path | None = None,
) -> Plan:
    """Recognise some table files as one graph.

    graph.toml names files in `folder`; `notes` are added to the graph; errors call the source `where`.
    """
    used = _not_ignored(paths, settings)
    refuse_twice(used)
    if not used and not settings.names_tables:
        content = listed((path.name for path in sorted(folder.iterdir()) if not path.name.startswith(".")), 4)
        raise SourceError(
            f"{folder} has no tables{f' (it has {content})' if content else ''}; put one file per relation there, such "
            f"as movie_actor.csv, or nodes and edges ({', '.join(TABLE_SUFFIXES)}, also gzipped), or name the files in "
            f"graph.toml"
        )
    opened = {table.path: table for path in used for table in open_tables(path, settings.dialect)}
    files = {path: opened[path] for path in _not_ignored(opened, settings)}

    def find(name: str) -> Table:
        path = folder / name
        return files.get(path) or files.setdefault(path, open_table(path, settings.dialect))

    options = replace(options_of(settings, duplicates), notes=notes)
    given = Tables(list(files.values()), find, str(where or folder))
    return recognise(given, settings, options, duplicates)


def recognise(given: Tables, settings: Config, options: ReadOptions, duplicates: Duplicates | None = None) -> Plan:
    """Recognise triples, or one table of nodes and one of edges, or else one table per relation."""
    try:
        return _recognise_noted(given, settings, options, duplicates)
    except UnrecognisedError as error:

        def read_as(tables: Tables, proposed: Config) -> Plan:
            return _recognise_noted(tables, proposed, options_of(proposed, duplicates), duplicates)

        raise with_proposal(error, given, settings, read_as) from None


def _recognise_noted(given: Tables, settings: Config, options: ReadOptions, duplicates: Duplicates | None) -> Plan:
    plan = _recognise(given, settings, options, duplicates)
    if plan.shared is None:
        plan = refuse_crosstabs(plan, given, settings)
    tables = list({id(table): table for table in plan.tables}.values())
    edges = [edge.selection for edge in plan.edges]
    notes = [*plan.options.notes, *_note_partitions(tables), *_note_comments(tables), *_note_weights(edges)]
    return _with_settings(replace(plan, options=replace(plan.options, notes=notes)), settings)


_IN_OWN, _IN_WRITTEN = "in graph.toml", "in graph.toml, which `neupath init` writes"


def _with_settings(plan: Plan, settings: Config) -> Plan:
    """Let all selections read ids as graph.toml says, and say where it stands if it names no tables yet."""
    options = plan.options

    def clean(selection: Selection) -> Selection:
        place = selection.declared_in
        if not settings.names_tables and place.endswith(_IN_OWN):
            place = place.removesuffix(_IN_OWN) + _IN_WRITTEN
        missing, is_folded = options.missing_ids or (), bool(options.fold_ids)
        return replace(selection, missing_ids=missing, fold_ids=is_folded, declared_in=place)

    nodes = [replace(node, selection=clean(node.selection)) for node in plan.nodes]
    edges = [replace(edge, selection=clean(edge.selection)) for edge in plan.edges]
    return replace(plan, nodes=nodes, edges=edges)


def _recognise(given: Tables, settings: Config, options: ReadOptions, duplicates: Duplicates | None) -> Plan:
    if settings.triples is not None:
        names = settings.triples.files
        files = [given.find(name) for name in names] if names else list(given.all)
        refuse_twice(file.path for file in files if isinstance(file, TableFile))
        return find_triples(files, given, settings, options)
    if not settings.names_tables and (neo4j := _select_neo4j(given.all, options)) is not None:
        return neo4j
    pair = _find_pair(given, settings)
    if pair is not None:
        return _select_pair(*pair, settings, replace(options, notes=[*_note_others(given.all, pair), *options.notes]))
    triples = [] if settings.names_tables else _triple_tables(given.all)
    if triples:
        notes = [*_note_others(given.all, triples), *options.notes]
        return find_triples(triples, given, settings, replace(options, notes=notes))
    return _select_relations(given, settings, options, duplicates)


def _not_ignored(paths: Iterable[Path], settings: Config) -> list[Path]:
    return [path for path in paths if not any(fnmatch(path.name, pattern) for pattern in settings.ignore)]


def _note_others(tables: Sequence[Table], used: Sequence[Table]) -> list[str]:
    names = " and ".join(table.label for table in used)
    return [f"{table.label} was left out: the graph is read from {names}" for table in tables if table not in used]


def options_of(settings: Config, duplicates: Duplicates | None) -> ReadOptions:
    """Return the options of a graph.toml; `duplicates` overrides its own."""
    chosen = duplicates or settings.duplicates or "count"
    check_duplicates(chosen)
    return ReadOptions(
        duplicates=cast(Duplicates, chosen),
        take=settings.take,
        undirected=settings.undirected,
        abbreviations=settings.abbreviations,
        missing_ids=settings.missing_ids,
        fold_ids=settings.fold_ids,
    )


# ---- Node tables and relation tables -------------------------------------------------------------
@dataclass(frozen=True)
class RelationTable:
    """A table of the edges of one relation: its two id columns, and the weight column if any."""

    table: Table
    source: str
    name: str
    target: str
    columns: tuple[str, str]
    weight: str | None = None
    directed: bool = True
    split: str | None = None
    optional: bool = False
    by_rule: bool = False
    """Whether a rule on columns found it, which a note says."""
    attributes: Sequence[str] | None = None
    """The attributes of edges that graph.toml names; by default all other columns of a table that holds edges only."""
    kinds: Mapping[str, str] = field(default_factory=dict)
    """An attribute -> what graph.toml says that it is."""


def classify(
    tables: Iterable[Table], known: Iterable[str] = ()
) -> tuple[list[NodePlan], list[RelationTable], list[str], "TypeNames"]:
    """Tell node tables from relation tables; the third list has a note on each other table."""
    all_tables = list(tables)
    types = TypeNames(all_tables, known)
    nodes, relations, left_out = [], [], []
    for table in all_tables:
        if (own := types.of_node_table(table)) is not None:
            nodes.append(select_nodes(table, own[0], own[1]))
        elif (relation := _as_relation(table, types)) is not None:
            relations.append(relation)
        elif (own := types.of_named_nodes(table)) is not None:
            nodes.append(select_nodes(table, own[0], own[1]))
        else:
            left_out.append(
                f"{table.label} was left out: neither its name nor its first columns "
                f"({', '.join(table.columns[:2])}) name node types; name them in graph.toml"
            )
    return nodes, relations, left_out, types


def select_nodes(
    table: Table,
    node_type: str,
    id: str | None = None,
    name: str | None = None,
    attributes: list[str] | None = None,
    kinds: Mapping[str, str] | None = None,
) -> NodePlan:
    """Choose the columns of a node table: by default the first for the id and one called name for the name."""
    id_column = table.column(id, "id") if id else table.columns[0]
    others = [column for column in table.columns if column != id_column]
    name_column = usual_name([column for column in others if not _is_numeric(table, column)], node_type)
    if name is not None:
        name_column = table.column(name, "name") if name else None
    elif name_column is None and others and not table.has_header and not _is_numeric(table, others[0]):
        name_column = others[0]
    if attributes is None:
        chosen = [column for column in others if column != name_column]
    else:
        chosen = [table.column(column, "attributes") for column in attributes]
    own = existing(id=id_column, name=name_column)
    words, place = node_kinds(table, kinds or {}, own), declared_in(table, f"[nodes.{toml_key(node_type)}]")
    return NodePlan(node_type, Selection(table, own, chosen, kinds=words, declared_in=place))


def _is_numeric(table: Table, column: str) -> bool:
    """Whether a column holds numbers, which are no names."""
    return any(table.sample[column]) and table.has_numbers(column)


def weight_column(table: Table, others: Iterable[str | None]) -> str | None:
    """Return the column called weight, unless it is one of the others."""
    return next((c for c in table.columns if c.lower() == "weight" and c not in set(others)), None)


class TypeNames:
    """The node types that the tables of a source name, each in one spelling."""

    def __init__(self, tables: list[Table], known: Iterable[str] = ()) -> None:
        self._tables = tables
        self._spelling: dict[str, str] = {}
        self._by_singular: dict[str, str] = {}
        self._learn(known)
        mentions = _mentions(table.name for table in tables)
        compound = [table for table in tables if len(table_words(table)) >= 2]
        self._learn(own[0] for own in map(self._own_entity, tables) if own)
        # a type of several words must be known before the names of relations are split into types
        self._learn(_mentioned(table, mentions) for table in compound)
        for table in compound:
            if len(table.columns) >= 2 and self.of_node_table(table) is None:
                self._learn_ends(table)
        self._learn(_mentioned(table, mentions) for table in tables if self._spelled_as([table.name]) is None)

    def _learn(self, names: Iterable[str | None]) -> None:
        for name in names:
            if name is not None and self._spelled_as([name]) is None:
                self._spelling.setdefault(name.lower(), name)
                for one in singulars(name):
                    self._by_singular.setdefault(one, name)

    def _learn_ends(self, table: Table) -> None:
        """Learn the types of a relation whose name begins like its first column."""
        columns = end_columns(table)
        entities = (None, None) if columns is None else end_entities(table, columns)
        if columns is None or (not any(entities) and not _names_types(table, columns)):
            return
        source, _, target = self.named_ends(table)
        twice = source.lower() == target.lower() and not self.columns_differ(table)
        first, second = (
            end if twice else entity(column) or end for column, end in zip(columns, (source, target), strict=True)
        )
        if first.lower() in singulars(source):
            self._learn([first])
            is_type = _holds_nodes(table, columns, second) and not self.ending(second) and not is_own_role(second)
            self._learn([second if is_type else None])

    @staticmethod
    def _own_entity(table: Table) -> tuple[str, str] | None:
        """Return the type and id column of a node table whose name agrees with a column: movies with movie_id.

        A first column that is not called an id, as in tags.csv with tag, user_id and movie_id, may be an attribute.
        """
        ids = [column for column in table.columns if is_id(column)]
        words = table_words(table) or split_words(table.name)
        may_be_id = len(ids) < 2 and table.columns[0] not in ids and not is_measure(table.columns[0])
        first = table.columns[:1] if may_be_id else []
        for column in (*first, *ids):
            name = entity(column)
            ours = split_words(name.lower()) if name else []
            alike = len(ours) == len(words) and all(map(are_alike, ours, words))
            if name and alike and words:
                return name, column
        return None

    def named_ends(self, table: Table) -> tuple[str, list[str], str]:
        """Return the types at the two ends of a table's name, and the words between; a type may have several words."""
        words = table_words(table)
        heads = max((n for n in range(1, len(words)) if self._spelled_as(words[:n])), default=1)
        tails = max((n for n in range(1, len(words) - heads + 1) if self._spelled_as(words[-n:])), default=1)
        source, target = (self._spelled_as(end) or "_".join(end) for end in (words[:heads], words[-tails:]))
        between = [word for word in words[heads : len(words) - tails] if word.lower() not in JOINING_WORDS]
        return source, between, target

    def columns_differ(self, table: Table) -> bool:
        """Whether the two id columns hold ids of other types than those in the table's name.

        A role such as cited is not another type. Any other word is one, if both columns are called ids.
        """
        source, between, target = self.named_ends(table)
        columns = end_columns(table) or ("", "")
        ends = zip(end_entities(table, columns), (source, target), strict=True)
        others = [word for word, end in ends if word is not None and self._is_other(word, end, between)]
        named = (self._spelled_as([word]) or any(are_alike(word, verb) for verb in between) for word in others)
        return any(named) or (bool(others) and all(map(is_id, columns)))

    def _is_other(self, word: str, end: str, between: list[str]) -> bool:
        if len(word) == 1 or are_alike(word, end):
            return False
        return self._spelled_as([word]) is not None or not is_role(word, end, between)

    def _spelled_as(self, words: list[str]) -> str | None:
        word = "_".join(words)
        same = next((self._spelling[w] for w in singulars(word) if w in self._spelling), None)
        return same or self._by_singular.get(word.lower()) or self._by_singular.get(singular(word).lower())

    def of_node_table(self, table: Table) -> tuple[str, str] | None:
        """Return the type whose nodes a table holds, and its id column, or None."""
        own = self._own_entity(table)
        if own is not None:
            return self._spelling.get(own[0].lower(), own[0]), own[1]
        called_id = [column for column in table.columns if column.lower() in IDS] if table.has_header else []
        if not called_id and table.has_header:
            return None
        column = called_id[0] if called_id else table.columns[0]
        words = name_words(re.sub(r"^id_", "", table.name.lower()))
        known = self._spelled_as(words) if words else None
        if known is not None:
            return known, column
        return (singulars(words[0])[:2][-1], column) if called_id and len(words) == 1 and is_word(words[0]) else None

    def of_named_nodes(self, table: Table) -> tuple[str, str] | None:
        """Return the type of a table with one id column, first, and a column of names, whatever the table is called."""
        ids = [column for column in table.columns if is_id(column)]
        named = any(column.lower() in ("name", "title") for column in table.columns)
        if not named or ids[:1] != table.columns[:1] or not is_unique(table, ids[0]):
            return None
        word = entity(ids[0])
        return None if word is None else (self._spelled_as([word]) or word, ids[0])

    def ending(self, word: str) -> str | None:
        """Return the known type that a word is, or that is at the end of a role such as cited_paper."""
        low = word.lower()
        ends = [low, *(low[match.end() :] for match in re.finditer(r"[_\s-]", low))]
        same = next((self._spelling[end] for end in ends if end in self._spelling), None)
        return same or self._by_singular.get(low) or self._by_singular.get(singular(low))

    def share_columns(self, table: Table, columns: tuple[str, str]) -> bool:
        """Whether another table has these columns of a table as well."""
        return any(other is not table and {*columns} <= {*other.columns} for other in self._tables)

    def spelled(self, word: str) -> str | None:
        """Return the known type that a word is."""
        return self._spelling.get(word.lower())

    def known(self, word: str) -> str | None:
        """Return the known type that a word, or its singular, names."""
        return self._spelled_as([word]) or self.ending(word) or self.ending(singular(word))


def _mentions(names: Iterable[str]) -> dict[str, str]:
    """Return the words with which names of tables begin or end, in lower case -> as the first of them spells it."""
    mentions: dict[str, str] = {}
    for name in names:
        at = [match.start() for match in re.finditer("_", name)]
        for cut in at:
            mentions.setdefault(name[:cut].lower(), name[:cut])
            mentions.setdefault(name[cut + 1 :].lower(), name[cut + 1 :])
    return mentions


def _mentioned(table: Table, mentions: dict[str, str]) -> str | None:
    """Return the type of a node table whose name begins or ends the name of another table, as spelled there."""
    if table.columns[0].lower() not in IDS or any(is_id(column) for column in table.columns[1:]):
        return None
    return next((mentions[name] for name in singulars(table.name) if name in mentions), None)


def _name_decides(table: Table, columns: tuple[str, str], types: TypeNames) -> bool:
    """Whether the table's name, and not its columns, decides which types it joins.

    It does if the columns name no entity; if the name has one type twice, as in paper_cites_paper; if it has two known
    types and the columns name no known type; or if the columns abbreviate its types. It never does if the columns are
    ids of other types.
    """
    entities = end_entities(table, columns)
    source, _, target = types.named_ends(table)
    if entities == (None, None):
        return all(map(types.known, (source, target))) or _names_types(table, columns)
    if types.columns_differ(table):
        return False
    if source.lower() == target.lower():
        return True
    if all(end.lower().startswith(column.lower()) for end, column in zip((source, target), columns, strict=True)):
        return True
    return all(map(types.ending, (source, target))) and not any(word and types.ending(word) for word in entities)


def _names_types(table: Table, columns: tuple[str, str]) -> bool:
    """Whether a name such as paper_author may name two types; graph_edges does not, and two types share no texts.

    Without a header there are no more columns than the two, and perhaps a number; and the second holds no few words,
    which would rather be the relation or the kind of an edge.
    """
    words = table_words(table)
    others = [column for column in table.columns if column not in columns]
    if not table.has_header and (len(others) > 1 or not all(map(table.has_numbers, others))):
        return False
    few_words = len(table.sample[columns[1]]) > 2 and holds_categories(table, columns[1])
    if not table.has_header and others and (len(words) > 2 or few_words):
        return False
    if words[0].lower() != words[-1].lower() and (names_no_end(words[0]) or names_no_end(words[-1])):
        return False
    return not _share_ids(table, columns) or all(map(table.has_numbers, columns))


def _share_ids(table: Table, columns: tuple[str, str]) -> bool:
    """Whether some of the first values of one column are values of the other."""
    first, second = (set(table.sample[column]) for column in columns)
    return bool(first & second - {""})


def _as_relation(table: Table, types: TypeNames) -> RelationTable | None:
    columns = end_columns(table)
    if columns is None:
        return None
    if are_copies(table, columns) or any(holds_fractions(table, c) or is_constant(table, c) for c in columns):
        return None
    if len(table_words(table)) >= 2 and _name_decides(table, columns, types):
        begin, middle, end = types.named_ends(table)
        if is_own_role(singular(end)) and types.known(end) in (None, end):  # user_friends
            middle, end = [*middle, end], begin
        if begin == end and any(end_entities(table, columns)):
            columns = _role_columns(table, begin, middle)
            if columns is None:
                return None
        found: JoinedTypes | None = JoinedTypes(columns, (begin, end), middle)
    else:
        found = _joined_by_columns(table, columns, types)
    if found is None:
        return None
    start, finish = (types.ending(end) or end for end in found.ends)
    weight, split = weight_column(table, found.columns), find_split(table, found.columns[1])
    name = "_".join(found.between) or table.name or f"{start}_{finish}"
    if split is not None:
        finish = types.spelled(singular(finish)) or singular(finish)
    return RelationTable(table, start, name, finish, found.columns, weight, split=split, by_rule=split is not None)


def _role_columns(table: Table, node_type: str, between: Sequence[str]) -> tuple[str, str] | None:
    """Return the two columns whose names may be roles of one type, as citing and cited are of paper."""
    roles = [c for c in table.columns if (word := entity(c)) and is_role(word, node_type, between)]
    return end_columns(table, roles) if len(roles) == 2 else None


@dataclass(frozen=True)
class JoinedTypes:
    """The columns of a relation, the types that they hold, and the words between these in the table's name."""

    columns: tuple[str, str]
    ends: tuple[str, str]
    between: Sequence[str] = ()


def _joined_by_columns(table: Table, columns: tuple[str, str], types: TypeNames) -> JoinedTypes | None:
    """Return the types that the names of two columns say."""
    source, target = end_entities(table, columns)
    if source is None or target is None:
        return None
    if is_own_role(source) and not is_own_role(target):
        columns, source, target = (columns[1], columns[0]), target, source
    one = _one_type(table, columns, (source, target), types)
    if one is not None:
        return JoinedTypes(columns, (one, one), [w for w in table_words(table) if not are_alike(w, one)])
    if is_own_role(target) and types.known(target) is None:
        return None
    words = table_words(table)
    if len(words) >= 2 and words[0].lower() in singulars(source):
        end = _named_end(table, columns, target, types)
        return None if end is None else JoinedTypes(columns, (source, end), _words_between(words[1:], end))
    if len(words) >= 2 and words[0].lower() in singulars(target) and are_alike(words[-1], source):
        # the columns of movie_actor are actor, movie
        return JoinedTypes((columns[1], columns[0]), (target, source), _words_between(words[1:], source))
    return JoinedTypes(columns, (source, target)) if _are_two_ids(table, columns, (source, target), types) else None


def _holds_nodes(table: Table, columns: tuple[str, str], word: str) -> bool:
    """Whether the second column holds nodes called `word`: it is an id, in the table's name, or one of two words.

    In movies_2020, a title beside movie_id does not count as nodes: it may be an attribute.
    """
    are_words = len(table.columns) == 2 and not is_key(columns[0])
    return is_key(columns[1]) or are_words or any(are_alike(other, word) for other in table_words(table))


def _named_end(table: Table, columns: tuple[str, str], word: str, types: TypeNames) -> str | None:
    """Return the type that the second column holds, or None if it may be an attribute of the first."""
    words = table_words(table)[1:]
    if is_id(columns[1]) or types.spelled(word) is not None:
        return word
    if types.ending(word) is not None or (types.known(words[-1]) is not None and not are_alike(word, words[-1])):
        return None
    if _holds_nodes(table, columns, word):
        return word
    short = word.lower().removesuffix("name").rstrip("_- ")  # the disease_name of gene_disease
    return next((other for other in words if are_alike(other, short)), None)


def _one_type(table: Table, columns: tuple[str, str], words: tuple[str, str], types: TypeNames) -> str | None:
    """Return the type that both columns hold: protein1, protein2; citing_paper, cited_paper; user, friend."""
    source, target = words
    if source != target and _without_number(source) == _without_number(target):
        return _without_number(source)
    if is_own_role(target) and types.known(target) is None:
        named = any(are_alike(word, source) for word in table_words(table))
        return source if (named or all(map(is_id, columns))) and not is_own_role(source) else None
    ours, others = split_words(source), split_words(target)
    roles = [*ours[:-1], *others[:-1]]
    alike = are_alike(ours[-1], others[-1]) and ours[:-1] != others[:-1] and any(map(is_own_role, roles))
    return ours[-1] if alike else None


def _are_two_ids(table: Table, columns: tuple[str, str], words: tuple[str, str], types: TypeNames) -> bool:
    """Whether two columns hold ids of two types, whatever the table is called."""
    if words[0] == words[1] or (table.is_folder and not table_words(table) and types.share_columns(table, columns)):
        return False  # a folder called backup may hold copies of other tables
    if all(types.ending(w) if is_id(c) else types.spelled(w) for c, w in zip(columns, words, strict=True)):
        return True
    others = any(is_id(column) and is_identifier(word) for column, word in zip(columns, words, strict=True))
    keys = [snake(w) for c in table.columns if is_id(c) and (w := entity(c)) and not is_identifier(w)]
    apart = [key for key in keys if not any(key.startswith(f"{other}_") for other in keys)]  # not venue_category
    return all(map(is_key, columns)) and not others and len(apart) <= 2


def _without_number(word: str) -> str:
    return re.sub(r"[_\s-]?\d+$", "", word)


def _words_between(words: Sequence[str], target: str) -> list[str]:
    ignored = (*singulars(target), *split_words(target.lower()), *JOINING_WORDS)
    return [word for word in words if word.lower() not in ignored and target.lower() not in singulars(word)]


# ---- Columns of node tables that hold edges ------------------------------------------------------
def _held_relations(
    node: NodePlan, types: TypeNames, node_tables: dict[str, Table], taken: set[tuple[Table, str]]
) -> tuple[NodePlan, list[RelationTable], list[str]]:
    """Return the relations in the columns of a node table, what is left of it, and notes on other id columns."""
    table, relations, notes = node.selection.table, [], []
    for column in node.selection.attributes if table.has_header else ():
        if (table, column) in taken:
            continue
        found = _held_relation(node, column, types, node_tables)
        if isinstance(found, RelationTable):
            relations.append(found)
        elif found is not None:
            notes.append(f"{table.label}: {column} was read as an attribute, not as a relation: {found}")
    held = {relation.columns[1] for relation in relations}
    left = [column for column in node.selection.attributes if column not in held]
    return replace(node, selection=replace(node.selection, attributes=left)), relations, notes


def _held_relation(
    node: NodePlan, column: str, types: TypeNames, node_tables: dict[str, Table]
) -> RelationTable | str | None:
    """Return the relation that a column of a node table holds, or why it holds none, or None if it is no question."""
    table, split = node.selection.table, find_split(node.selection.table, column)
    word = singular(entity(column) or column) if split else entity(column) or column
    target = node.node_type if is_own_role(word) else types.known(word)
    if is_id(column) or re.search(r"(?:_ids|Ids|IDs)$", column):
        reason = _why_no_key(node, column, word, is_new=target is None and split is None)
        if reason is not None:
            return reason
    elif split is None:
        other = node_tables.get(target or "")
        if other is None or other is table or not are_alike(word, target or "") or not _leads_to(table, column, other):
            return None
    elif not any(table.sample[column]):
        return None
    target = target or word
    name = f"{node.node_type}_{target}" if are_alike(word, target) and target != node.node_type else word
    ends = (node.selection.columns["id"], column)
    return RelationTable(table, node.node_type, name, target, ends, split=split, optional=True, by_rule=True)


def _why_no_key(node: NodePlan, column: str, word: str, is_new: bool) -> str | None:
    """Return why an id column of a node table is no foreign key, or None if it is one; `is_new`: to an unknown type."""
    table = node.selection.table
    if is_identifier(word):
        return "it names identifiers of another system"
    if are_alike(word, node.node_type):
        return "it is another id of the same nodes"
    if not any(table.sample[column]):
        return "it is empty in the first rows"
    return (
        "its values are all different, as those of an identifier are" if is_new and is_unique(table, column) else None
    )


def _other_keys(
    relations: Sequence[RelationTable], nodes: Sequence[NodePlan], types: TypeNames
) -> tuple[list[RelationTable], list[str]]:
    """Return the relations to the other foreign keys of a table of edges, as of order_id, customer_id and product_id.

    A key counts if it is called an id, its type has a table of nodes, and its first values are in that table. The
    second list has a note on each key whose values are not.
    """
    of_type = {node.node_type: node for node in nodes}
    found, notes = [], []
    for relation in relations:
        table, ends = relation.table, (relation.source, relation.target)
        for column in table.columns if table.has_header and relation.split is None else ():
            word = entity(column)
            node = of_type.get(types.known(word) or "") if word is not None and is_id(column) else None
            if word is None or column in (*relation.columns, relation.weight):
                continue
            if node is None and is_id(column) and may_end_edges(table, column) and not is_unique(table, column):
                notes.append(
                    f"{table.label}: {column} was read as an attribute of {relation.name}, as no table holds its ids; "
                    f"another [[edges]] in graph.toml, which `neupath init` writes, can join it"
                )
            if node is None or node.node_type in ends:
                continue
            ids, others = set(node.selection.table.sample[node.selection.columns["id"]]), node.selection.table
            outside = next((cell for cell in table.sample[column] if cell and cell not in ids), None)
            if outside is not None and is_sampled_whole(others):
                reason = f"{outside!r} is no id in {others.label}"
                notes.append(f"{table.label}: {column} was read as an attribute, not as a relation: {reason}")
                continue
            name = f"{relation.source}_{node.node_type}" if are_alike(word, node.node_type) else word
            pair = (relation.columns[0], column)
            found.append(RelationTable(table, relation.source, name, node.node_type, pair, optional=True, by_rule=True))
    return found, notes


def _leads_to(table: Table, column: str, other: Table) -> bool:
    """Whether the first values of a column are ids of another table, of which all ids are among its first values."""
    ids = set(other.sample[other.columns[0]])
    cells = {cell for cell in table.sample[column] if cell}
    return bool(cells) and is_sampled_whole(other) and cells <= ids


def _note_rule(relation: RelationTable) -> str:
    table, column = relation.table, relation.columns[1]
    how = "" if relation.split is None else f", its cells split at {relation.split}"
    if relation.split == LISTS:
        how = ", its cells split as lists"
    nulls = [null for null in NULLS if relation.optional and null in table.sample[column]]
    how += f", where {' and '.join(nulls)} is no edge" if nulls else ""
    arrow = f"{relation.source} -{relation.name}-> {relation.target}"
    return f"{table.label}: {column} was read as the relation {arrow}{how}"


# ---- One table per relation ----------------------------------------------------------------------
def _select_relations(given: Tables, settings: Config, options: ReadOptions, duplicates: Duplicates | None) -> Plan:
    """Choose the columns of one table per relation, and of the node tables beside them."""
    if not settings.names_tables:
        _refuse_half_neo4j(given.all)
    configured = [given.find(e.file) for e in settings.nodes.values()] + [given.find(e.file) for e in settings.edges]
    detected = _not_named(given.all, configured)
    explicit = [*settings.nodes, *(end for edge in settings.edges for end in (edge.source, edge.target))]
    nodes, relations, left_out, types = classify(detected, explicit)
    open_nodes = [*nodes]
    for node_type, entry in settings.nodes.items():
        node = select_nodes(
            given.find(entry.file), node_type, entry.id, entry.name, entry.attributes, entry.attribute_types
        )
        (nodes if entry.attributes is not None else open_nodes).append(node)
        nodes += [node] if entry.attributes is None else []
    _refuse_copies(relations)
    keys, key_notes = _other_keys(relations, nodes, types)
    relations += [*keys, *_configured(given, settings)]
    nodes, held, notes = _hold_all(nodes, open_nodes, relations, types)
    relations += held
    notes += key_notes
    if not relations and not nodes and len(given.all) == 1 and not settings.names_tables:
        wide = _as_wide(given.all[0], options, settings, duplicates)
        if wide is not None:
            return wide
        named = _as_named_pair(given.all[0])
        edge_list = None if named is not None else _as_edge_list(given.all[0])
        if named is not None:
            relations, left_out = [named], []
        if edge_list is not None:
            relations, left_out = [edge_list], []
            notes.append(f"{edge_list.table.label}: all nodes were read as one type, node")
    if not relations:
        refuse_repeated_ids(nodes)
        _note_partitions(given.all)  # raises if ids are in the names of folders
        raise no_relation(given, nodes, [*left_out, *notes, *options.notes])
    _refuse_two_node_tables(nodes)
    refuse_repeated_ids(nodes)
    edges, unread = _take(relations, options, nodes)
    by_rule = [_note_rule(relation) for relation in relations if relation.by_rule]
    chosen = [given.find(entry.file) for entry in settings.nodes.values() if entry.attributes is not None]
    chosen += [given.find(entry.file) for entry in settings.edges if entry.attributes is not None]
    joined = {end for edge in edges for end in (edge.relation.source, edge.relation.target)}
    alone = [node.selection.table.label for node in nodes if node.node_type not in joined and not options.take]
    notes += [f"{name}: no relation leads to its nodes" for name in alone if not settings.names_tables]
    notes = [*left_out, *by_rule, *notes, *_note_columns(edges, nodes, unread, given.in_files, chosen), *options.notes]
    return Plan(nodes, edges, replace(options, notes=notes))


def _not_named(tables: Sequence[Table], configured: Sequence[Table]) -> list[Table]:
    """Return the tables that graph.toml does not name, nor files in them."""
    paths = [table.path.resolve() for table in configured if isinstance(table, TableFile)]
    named = {place for path in paths for place in (path, *path.parents)}
    return [
        table
        for table in tables
        if (table.path.resolve() not in named if isinstance(table, TableFile) else table not in configured)
    ]


def _hold_all(
    nodes: list[NodePlan], open_nodes: Sequence[NodePlan], relations: Sequence[RelationTable], types: TypeNames
) -> tuple[list[NodePlan], list[RelationTable], list[str]]:
    """Find the relations in the columns of all node tables whose columns graph.toml does not choose."""
    node_tables = {node.node_type: node.selection.table for node in nodes}
    taken = {(relation.table, column) for relation in relations for column in relation.columns}
    joined = {(relation.source, relation.target) for relation in relations}
    left, held, notes = [], [], []
    for node in nodes:
        if node not in open_nodes:
            left.append(node)
            continue
        rest, found, own_notes = _held_relations(node, types, node_tables, taken)
        twice = [r for r in found if {(r.source, r.target), (r.target, r.source)} & joined and r.split is not None]
        back = [relation.columns[1] for relation in twice]
        columns = [c for c in node.selection.attributes if c in rest.selection.attributes or c in back]
        left.append(replace(rest, selection=replace(rest.selection, attributes=columns)))
        held += [relation for relation in found if relation not in twice]
        notes += [
            *own_notes,
            *(
                f"{r.table.label}: {r.columns[1]} was read as an attribute, because another table joins {r.source} "
                f"and {r.target}"
                for r in twice
            ),
        ]
    return left, held, notes


def _take(
    relations: list[RelationTable], options: ReadOptions, nodes: Sequence[NodePlan]
) -> tuple[list[EdgePlan], list[str]]:
    """Return the relations that the options take, directed or not as they say, and notes on columns left out."""
    options.check_names([relation.name for relation in relations])
    edges, notes = [], []
    for each in relations:
        if options.take and each.name not in options.take:
            continue
        directed = each.directed and each.name not in options.undirected
        columns = existing(source=each.columns[0], target=each.columns[1], weight=each.weight)
        relation = Relation(each.source, each.name, each.target, directed)
        chosen = _attributes_of(each, relations, nodes)
        notes += [note for note in chosen.notes(each.table.label) if note not in notes]
        selection = Selection(
            each.table,
            columns,
            chosen.columns,
            split=each.split,
            optional=each.optional,
            kinds=chosen.kinds,
            declared_in=declared_in(each.table, "[[edges]]"),
        )
        edges.append(EdgePlan(relation, selection))
    return edges, notes


def _attributes_of(
    relation: RelationTable, relations: Sequence[RelationTable], nodes: Sequence[NodePlan]
) -> ChosenColumns:
    """Choose the attributes of a relation's edges.

    The other columns of a table of nodes describe the nodes; those beside several entities, as in a table of movies
    with their actors and directors, may describe any of them.
    """
    table, in_nodes = relation.table, any(node.selection.table is relation.table for node in nodes)
    if relation.attributes is None and in_nodes:
        return ChosenColumns()
    taken = {c for each in relations if each.table is table for c in (*each.columns, each.weight) if c is not None}
    return choose_columns(table, taken, relation.weight, relation.attributes, relation.kinds)


def _refuse_two_node_tables(nodes: list[NodePlan]) -> None:
    names: dict[str, str] = {}
    for node in nodes:
        name = node.selection.table.label
        if node.node_type in names:
            raise SourceError(
                f"{names[node.node_type]} and {name} both hold the nodes of type {node.node_type!r}; "
                f'leave one out with ignore = ["{name}"] in graph.toml'
            )
        names[node.node_type] = name


def _configured(given: Tables, settings: Config) -> list[RelationTable]:
    """Return the relations that graph.toml describes."""
    seen: dict[tuple[object, ...], str] = {}
    relations = []
    for entry in settings.edges:
        table = given.find(entry.file)
        ends = entry.columns or _columns_of_types(table, entry.source, entry.target)
        if len(ends) != 2:
            raise SourceError(
                f"relation {entry.name!r} in graph.toml needs two id columns, but has {listed(ends) or 'none'}"
            )
        first, second = (table.column(column, "edges") for column in ends)
        key = (table.path.resolve() if isinstance(table, TableFile) else table, first, second)
        if key in seen:
            raise SourceError(
                f"relations {seen[key]!r} and {entry.name!r} in graph.toml both use the columns {first}, {second} of "
                f"{entry.file}; leave one out, or its edges count twice"
            )
        seen[key] = entry.name
        weight = table.column(entry.weight, "weight") if entry.weight else weight_column(table, ends)
        split = entry.split or (LISTS if table.is_list(second) else None)
        relations.append(
            RelationTable(
                table,
                entry.source,
                entry.name,
                entry.target,
                (first, second),
                weight,
                not entry.undirected,
                split,
                entry.optional,
                attributes=entry.attributes,
                kinds=entry.attribute_types,
            )
        )
    return relations


def _columns_of_types(table: Table, source: str, target: str) -> list[str]:
    """Return the columns that are called like the two types of a relation, or else the first two."""
    first, second = (
        [column for column in table.columns if (word := entity(column)) and are_alike(word, end)]
        for end in (source, target)
    )
    if len(first) == len(second) == 1 and first != second:
        return [*first, *second]
    return list(table.columns[:2])


def _as_edge_list(table: Table) -> RelationTable | None:
    """Read a table of edges between nodes of one type: columns such as source and target, or two that share ids."""
    columns, ends = end_columns(table), find_ends(table)
    if columns is None or (ends is None and (table.has_header or len(table.columns) != 2)):
        return None
    if ends is not None and (ends.types or ends.half_typed or ends.rivals or ends.relation):
        return None
    if ends is None and not _share_ids(table, columns):
        return None
    return RelationTable(table, "node", "edge", "node", columns, weight_column(table, columns))


def _as_named_pair(table: Table) -> RelationTable | None:
    """Read a table of two columns of texts that name entities, such as customer and product, if both repeat some."""
    if not table.has_header or len(table.columns) != 2 or find_ends(table) is not None:
        return None
    first, second = table.columns
    for column in (first, second):
        plain = re.fullmatch(r"[^\W\d]{2,}", column) and snake(column) not in EDGE_WORDS
        if not plain or is_key(column) or is_measure(column) or is_own_role(column) or holds_measures(table, column):
            return None
        if column.lower() in (*NAMES, *KINDS) or not holds_categories(table, column):
            return None
    if _share_ids(table, (first, second)) or find_split(table, first) or find_split(table, second):
        return None
    return RelationTable(table, first, f"{first}_{second}", second, (first, second), by_rule=True)


def _as_wide(table: Table, options: ReadOptions, settings: Config, duplicates: Duplicates | None) -> Plan | None:
    """Read a table whose header names several entities, such as movie, actor, director, as relations of the first.

    The first column is read as it is; each other column is a relation if its texts occur again. A row may repeat what
    another row says of the first column, so parallel edges are dropped.
    """
    first, *others = table.columns
    source = entity(first)
    words = [snake(column) for column in table.columns]
    plain = all(re.fullmatch(r"[^\W\d]{2,}", column) for column in table.columns) and not set(words) & EDGE_WORDS
    if not table.has_header or len(others) < 2 or source is None or not plain or find_ends(table) is not None:
        return None
    if is_measure(first) or holds_measures(table, first) or first.lower() in (*NAMES, *KINDS):
        return None
    if any(map(is_key, table.columns)):
        return None
    columns = [column for column in others if names_entities(table, column)]
    texts = [column for column in others if not (table.has_numbers(column) or holds_fractions(table, column))]
    if (
        len(columns) < 2
        or columns != texts
        or holds_marks(table, columns)
        or any(_share_ids(table, (first, column)) for column in columns)
    ):
        return None
    relations = [
        RelationTable(
            table, source, f"{source}_{type_in_column(table, column)}", type_in_column(table, column), (first, column),
            split=find_split(table, column), optional=True, by_rule=True, attributes=(),
        )
        for column in columns
    ]  # fmt: skip
    if len({relation.target for relation in relations}) < len(relations):
        return None
    chosen = options if duplicates or settings.duplicates else replace(options, duplicates="drop")
    edges, _ = _take(relations, chosen, [])
    dropped = f"{table.label}: edges that several rows repeat were read once"
    notes = [*map(_note_rule, relations), *([dropped] if chosen is not options and not is_unique(table, first) else [])]
    notes += [*_note_columns(edges, [], [], weighted=True), *options.notes]
    return Plan([], edges, replace(chosen, notes=notes))


# ---- One table of all nodes and one of all edges -------------------------------------------------
_NEO4J_ROLE = re.compile(r"^.*(:(?:id|label|type|start_id|end_id))(?:\(.*\))?$")
"""Matches column names of neo4j-admin: personId:ID(Person), :START_ID."""


def _find_pair(given: Tables, settings: Config) -> tuple[Table, Table] | None:
    """Find the tables of all nodes and of all edges, by graph.toml or by the last word of their names."""
    if settings.pair is not None and settings.pair.nodes and settings.pair.edges:
        return given.find(settings.pair.nodes), given.find(settings.pair.edges)
    nodes = [table for table in given.all if _last_word(table) in NODE_TABLES]
    if len(nodes) != 1 or settings.nodes or settings.edges:
        return None
    edges = _edge_tables(given.all) or [table for table in given.all if table not in nodes and has_triple_header(table)]
    return (nodes[0], edges[0]) if len(edges) == 1 else None


def _edge_tables(tables: Sequence[Table]) -> list[Table]:
    """Find the tables of all edges by clear names, or else by less clear names and their columns."""
    named = [table for table in tables if _last_word(table) in EDGE_TABLES]
    return named or [
        table
        for table in tables
        if _last_word(table) in WEAK_EDGE_TABLES
        and all(_usual_column(table, end) for end in ("source", "relation", "target"))
    ]


def _is_edge_list(table: Table) -> bool:
    """Whether a table of edges has a relation column, with known names or between the two ends."""
    ends = find_ends(table)
    if ends is not None:
        return ends.relation is not None
    relation = _usual_column(table, "relation")
    if relation is None or relation not in table.columns[1:2] or len(table.columns) < 3:
        return False
    outer = (table.columns[0], table.columns[2])
    return not any(is_measure(column) or snake(column) in EDGE_WORDS for column in outer)


def _last_word(table: Table) -> str:
    return table.name.lower().replace("-", "_").rsplit("_", 1)[-1]


def _select_pair(nodes: Table, edges: Table, settings: Config, options: ReadOptions) -> Plan:
    """Choose the columns of both tables."""
    pair = settings.pair or PairConfig()
    id_ = _pair_id(nodes, edges, pair)
    type_ = nodes.column(pair.type, "type") if pair.type else _type_column(nodes, edges, id_)
    numbers = [column for column in nodes.columns if _is_numeric(nodes, column)]
    usual_name = _usual_column(nodes, "name", (id_, type_ or "", *numbers))
    name = nodes.column(pair.name, "name") if pair.name else usual_name
    attributes = [c for c in nodes.columns if c not in (id_, type_, name)]
    source, relation, target, directed = _pair_ends(edges, pair)
    weight = edges.column(pair.weight, "weight") if pair.weight else weight_column(edges, (source, relation, target))
    own = existing(id=id_, type=type_, name=name)
    of_nodes = {c: word for c, word in pair.attribute_types.items() if c in attributes}
    place = declared_in(nodes, "[pair]")
    chosen = Selection(nodes, own, attributes, kinds=node_kinds(nodes, of_nodes, own), declared_in=place)
    columns = existing(source=source, relation=relation, target=target, weight=weight)
    direction = _direction_column(edges, relation)
    of_edges = {c: word for c, word in pair.attribute_types.items() if c not in of_nodes or c in edges.columns}
    described = choose_columns(edges, {*columns.values(), *direction}, weight, pair.attributes, of_edges)
    triples = Selection(edges, columns, described.columns, kinds=described.kinds, declared_in=place)
    labels = None if type_ is None else _label_delimiter(nodes, type_)
    untyped = f"{nodes.label}: no column is known to hold types, so all nodes were read as one type, node"
    types = _note_labels(nodes, type_, labels) if type_ is not None else [untyped]
    words = [] if relation or direction else [c for c in described.columns if holds_categories(edges, c)]
    unnamed = f"{edges.label}: no column is known to hold relations, so {listed(words)} is an attribute of edges"
    notes = [*options.notes, *types, *([unnamed] if words else []), *described.notes(edges.label)]
    notes += [] if pair.attributes is not None else _note_weight(triples, "[pair]")
    options = replace(options, notes=notes)
    if relation is not None or type_ is not None:
        shared = SharedIds("node", labels=labels)
        return _shared_plan([chosen], [triples], options, shared, "edge" if relation is None else None)
    one = Relation("node", "edge", "node", directed and "edge" not in options.undirected)
    return Plan([NodePlan("node", chosen)], [EdgePlan(one, triples)], options)


def _pair_ends(edges: Table, pair: PairConfig) -> tuple[str, str | None, str, bool]:
    """Return the columns of source, relation and target, and whether the edges are directed.

    Edges may have no relation. Gephi's column Type says whether they are directed.
    """
    ends = find_ends(edges)
    if ends is None or pair.source or pair.relation or pair.target:
        source, relation, target = (_pair_column(edges, pair, purpose) for purpose in ("source", "relation", "target"))
        return source, relation, target, True
    _refuse_rivals(edges, ends)
    directions = set() if ends.relation is None else {cell.lower() for cell in edges.sample[ends.relation]}
    if not directions or not directions <= {"directed", "undirected"}:
        return ends.ids[0], ends.relation, ends.ids[1], True
    if len(directions) > 1:
        raise SourceError(
            f"{edges.title} has directed and undirected edges in {ends.relation}; write them to two tables, or leave "
            f"the column out to read all as directed"
        )
    return ends.ids[0], None, ends.ids[1], directions == {"directed"}


def _direction_column(edges: Table, relation: str | None) -> list[str]:
    """Return Gephi's column Type, which says whether edges are directed and so is no attribute of them."""
    ends = find_ends(edges)
    return [ends.relation] if relation is None and ends is not None and ends.relation is not None else []


def _pair_id(nodes: Table, edges: Table, pair: PairConfig) -> str:
    """Return the id column of the nodes: the one that is called like the ends of edges, as node_index is x_index."""
    ends = find_ends(edges)
    if pair.id is None and ends is not None:
        suffix = snake(ends.ids[0]).rpartition("_")[2]
        same = [column for column in nodes.columns if snake(column) == f"node_{suffix}"]
        if same:
            return same[0]
    return _pair_column(nodes, pair, "id")


def _label_delimiter(table: Table, column: str) -> str | None:
    """Return what is between several types of a node: a bar in Biolink's categories, a semicolon in Neo4j's labels."""
    cells = table.sample[column]
    if any("|" in cell or cell.startswith("biolink:") for cell in cells):
        return "|"
    is_label = bool(re.search(r":label$", column, re.IGNORECASE))
    return ";" if is_label and any(";" in cell for cell in cells) else None


def _note_labels(table: Table, column: str | None, labels: str | None) -> list[str]:
    if column is None or labels is None:
        return []
    prefix = "the prefix biolink: was left out" if any("biolink:" in cell for cell in table.sample[column]) else ""
    several = any(labels in cell for cell in table.sample[column])
    first = f"of several types in {column}, with {labels} between them, the first that is not a general class was read"
    found = [text for text in (prefix, first if several else "") if text]
    return [f"{table.label}: {'; '.join(found)}"] if found else []


def _type_column(nodes: Table, edges: Table, id_: str) -> str | None:
    """Return the column of types; a `label` is one only in tables of a property graph, elsewhere a class or a name."""
    usual = _usual_column(nodes, "type", (id_,))
    label = _usual_column(nodes, "label", (id_,))
    if usual or label is None or _last_word(edges) not in WEAK_EDGE_TABLES:
        return usual
    return label if _usual_column(nodes, "name", (id_, label)) and not nodes.has_numbers(label) else None


def _pair_column(table: Table, pair: PairConfig, purpose: str) -> str:
    if getattr(pair, purpose) is not None:
        return table.column(getattr(pair, purpose), purpose)
    usual = _usual_column(table, purpose)
    if usual is None:
        raise SourceError(
            f"{table.title} has no column for the {purpose} (it has {listed(table.columns)}); "
            f'call it {purpose!r}, or name it in graph.toml under [pair] as {purpose} = "…"'
        )
    return usual


def _usual_column(table: Table, purpose: str, taken: tuple[str, ...] = ()) -> str | None:
    by_lower = {_NEO4J_ROLE.sub(r"\1", column.lower()): column for column in table.columns if column not in taken}
    return next((by_lower[name] for name in ROLES_IN_TABLES[purpose] if name in by_lower), None)


# ---- Tables of neo4j-admin -----------------------------------------------------------------------
_NEO4J_COLUMN = re.compile(
    r"^(?P<name>.*):(?P<role>ID|LABEL|TYPE|START_ID|END_ID)(?:\((?P<space>.*)\))?$", re.IGNORECASE
)
_NEO4J_IGNORED = re.compile(r":IGNORE$", re.IGNORECASE)


def _select_neo4j(tables: Sequence[Table], options: ReadOptions) -> Plan | None:
    """Choose the columns of tables with the header of neo4j-admin, some of nodes and some of edges."""
    roles = {table: _neo4j_roles(table) for table in tables if table.has_header}
    nodes = [table for table, columns in roles.items() if "ID" in columns]
    edges = [table for table, columns in roles.items() if {"START_ID", "END_ID"} <= columns.keys()]
    if not nodes or not edges:
        return None
    node_tables = [_select_neo4j_nodes(table, roles[table]) for table in nodes]
    edge_tables = [_select_neo4j_edges(table, roles[table]) for table in edges]
    several = any(";" in cell for s in node_tables if "type" in s.columns for cell in s.table.sample[s.columns["type"]])
    notes = [*_note_others(tables, [*nodes, *edges]), *options.notes]
    notes += [
        n for s in node_tables if "type" in s.columns for n in _note_labels(s.table, s.columns["type"], ";") if several
    ]
    notes += [
        f"{s.table.label}: no column is called :LABEL, so its name or the space of its ids is the type"
        for s in node_tables
        if "type" not in s.columns
    ]
    notes += [
        f"{s.table.label}: no column is called :TYPE, so all its edges are of one type, {s.table.name}"
        for s in edge_tables
        if "relation" not in s.columns
    ]
    notes += [note for selection in edge_tables for note in _note_weight(selection, None)]
    shared = SharedIds("node", labels=";" if several else None)
    return _shared_plan(node_tables, edge_tables, replace(options, notes=notes), shared)


def _neo4j_roles(table: Table) -> dict[str, tuple[str, str]]:
    """Return the column and the id space of each role that the header of a table names."""
    matches = {column: match for column in table.columns if (match := _NEO4J_COLUMN.match(column))}
    return {match["role"].upper(): (column, match["space"] or "") for column, match in matches.items()}


def _refuse_half_neo4j(tables: Sequence[Table]) -> None:
    """Raise if tables have some columns of neo4j-admin, but not nodes and edges."""
    for table in tables:
        if table.has_header and _neo4j_roles(table).keys() & {"ID", "START_ID", "END_ID"}:
            raise SourceError(
                f"{table.title} has columns of neo4j-admin ({listed(table.columns)}), but there is no table of nodes "
                f"with :ID and one of edges with :START_ID and :END_ID; add them, or name the columns in graph.toml "
                f"(‹config›)"
            )


def _select_neo4j_nodes(table: Table, roles: dict[str, tuple[str, str]]) -> Selection:
    id_, space = roles["ID"]
    plain = {column.partition(":")[0].lower(): column for column in reversed(table.columns) if column[0] != ":"}
    name = next((plain[word] for word in NAMES if word in plain and plain[word] != id_), None)
    label = roles["LABEL"][0] if "LABEL" in roles else None
    others = [c for c in table.columns if c not in (id_, name, label) and not _NEO4J_IGNORED.search(c)]
    return Selection(table, existing(id=id_, type=label, name=name), others, spaces=existing(id=space or None))


def _select_neo4j_edges(table: Table, roles: dict[str, tuple[str, str]]) -> Selection:
    (source, source_space), (target, target_space) = roles["START_ID"], roles["END_ID"]
    relation = roles["TYPE"][0] if "TYPE" in roles else None
    weight = next((column for column in table.columns if column.partition(":")[0].lower() == "weight"), None)
    spaces = existing(source=source_space or None, target=target_space or None)
    columns = existing(source=source, relation=relation, target=target, weight=weight)
    ignored = [column for column in table.columns if _NEO4J_IGNORED.search(column)]
    chosen = choose_columns(table, {*columns.values(), *ignored}, weight)
    return Selection(table, columns, chosen.columns, spaces=spaces)


# ---- Triples of a knowledge graph: head, relation, tail ------------------------------------------
def _triple_tables(tables: Sequence[Table]) -> list[Table]:
    """Find the tables of a knowledge graph: train, valid and test, or tables whose headers name a relation and ends."""
    splits = [table for table in tables if table.name.lower() in SPLIT_TABLES and not table.is_folder]
    if splits and (any(table.name.lower() == "train" for table in splits) or len(splits) == len(tables)):
        named = all(has_triple_header(table) for table in splits)
        return splits if named or look_like_triples(splits, is_split=True) else []
    if len(tables) == 1:
        return list(tables) if _is_all_triples(tables[0]) else []
    headed = [table for table in tables if has_triple_header(table)]
    typed = [table for table in headed if (ends := find_ends(table)) and ends.types]
    if headed and len(headed) == len(tables):
        return headed
    if typed:
        return typed
    edges = _edge_tables(tables)
    alone = len(edges) == 1 and not any(_last_word(table) in NODE_TABLES for table in tables)
    return edges if alone and _is_edge_list(edges[0]) else []


def has_triple_header(table: Table) -> bool:
    """Whether the header of a table names a relation and the two ends of an edge."""
    ends = find_ends(table)
    return ends is not None and ends.relation is not None and not is_weak_relation(ends.relation)


def _is_all_triples(table: Table) -> bool:
    """Whether a lone table holds triples, and is not one relation whose edges have an attribute `type`."""
    ends = find_ends(table)
    if ends is not None and ends.relation is not None:
        clear = ends.types is not None or not is_weak_relation(ends.relation)
        return clear or not classify([table])[1]
    return look_like_triples([table]) or (_last_word(table) in EDGE_TABLES and _is_edge_list(table))


def find_triples(tables: Sequence[Table], given: Tables, settings: Config, options: ReadOptions) -> Plan:
    """Choose the columns of one or more tables of triples, which are one graph."""
    triples = settings.triples or TriplesConfig()
    edges = [_select_triples(table, triples) for table in tables]
    types = [] if triples.types is None else [_select_types(given.find(triples.types))]
    ends = ("source", "target")
    untyped = not types and triples.type is None and not any("source_type" in e.columns for e in edges)
    prefixed = untyped and all(has_prefixed_ids(e.table, [e.columns[end] for end in ends]) for e in edges)
    notes = [note for selection in edges for note in _note_triples(selection, triples, prefixed)]
    kinds = {
        _label_delimiter(e.table, e.columns[role])
        for e in edges
        for role in ("source_type", "target_type")
        if role in e.columns
    } - {None}
    labels = kinds.pop() if len(kinds) == 1 else None
    notes += [n for e in edges if labels for n in _note_labels(e.table, e.columns["source_type"], labels)]
    notes = [*notes, *options.notes]
    shared = SharedIds(triples.type or "entity", prefixed, labels)
    return _shared_plan(types, edges, replace(options, notes=notes), shared)


def _shared_plan(
    nodes: Sequence[Selection],
    edges: Sequence[Selection],
    options: ReadOptions,
    shared: SharedIds,
    relation: str | None = None,
) -> Plan:
    """Return the plan of tables whose ids are shared; edges without a name have that of their table."""
    kind = shared.node_type
    names = [relation or each.table.name.strip() or "edge" for each in edges]
    return Plan(
        [NodePlan(each.spaces.get("id") or kind, each) for each in nodes],
        [EdgePlan(Relation(kind, name, kind), each) for name, each in zip(names, edges, strict=True)],
        options,
        shared,
    )


def _select_triples(table: Table, triples: TriplesConfig) -> Selection:
    ends = find_ends(table)
    if triples.columns:
        names = [table.column(column, "triples") for column in triples.columns]
        ends = _named_ends(table, triples)
    elif ends is not None and ends.relation is not None:
        _refuse_rivals(table, ends)
        names = [ends.ids[0], ends.relation, ends.ids[1]]
    else:
        names, ends = table.columns[:3], _named_ends(table, triples)
    if len(names) != 3 or (len(table.columns) > 3 and not triples.columns and ends is None):
        count = len(table.columns)
        raise UnrecognisedError(
            f"{table.title} has {count} column{'s' * (count != 1)} ({listed(table.columns)}), "
            f"but triples have three: head, relation, tail; name them under [triples] in a graph.toml (‹config›)",
            [propose_triples(table)],
        )
    weight = table.column(triples.weight, "weight") if triples.weight else weight_column(table, names)
    columns = existing(source=names[0], relation=names[1], target=names[2], weight=weight)
    if ends is not None and ends.types is not None:
        if not few_types(table, ends.types):
            raise UnrecognisedError(
                f"{table.title} has too many different values in {ends.types[0]} and {ends.types[1]} to be types of "
                f"nodes; name the columns under [triples] in a graph.toml (‹config›)",
                [propose_triples(table)],
            )
        columns |= dict(zip(("source_type", "target_type"), ends.types, strict=True))
    if ends is not None and ends.names is not None:
        columns |= dict(zip(("source_name", "target_name"), ends.names, strict=True))
    chosen = _triple_attributes(table, columns, triples)
    place = declared_in(table, "[triples]")
    return Selection(table, columns, chosen.columns, all_text=True, kinds=chosen.kinds, declared_in=place)


def _triple_attributes(table: Table, columns: Mapping[str, str], triples: TriplesConfig) -> ChosenColumns:
    """Choose the attributes of triples; of several pairs of ids, one is read and the others are left out."""
    ends = None if triples.columns else find_ends(table)
    others = [] if ends is None else [column for both in ends.other_ids for column in both]
    taken = {*columns.values(), *others}
    return choose_columns(table, taken, columns.get("weight"), triples.attributes, triples.attribute_types)


def _named_ends(table: Table, triples: TriplesConfig) -> Ends | None:
    """Return the types and names of the ends that graph.toml names."""
    pairs = {"types": (triples.head_type, triples.tail_type), "names": (triples.head_name, triples.tail_name)}
    found = {
        what: tuple(table.column(column, what) for column in both) for what, both in pairs.items() if None not in both
    }
    if not found:
        return None
    return Ends(("", ""), cast("tuple[str, str]", found.get("types")), cast("tuple[str, str]", found.get("names")))


def _refuse_rivals(table: Table, ends: Ends) -> None:
    """Raise if a header names the type of one end only, or several pairs of ends."""
    if ends.half_typed is not None:
        raise UnrecognisedError(
            f"{table.title} has the types of one end in {ends.half_typed}, but none for the other (it has "
            f'{listed(table.columns)}); add them, or set type = "entity" and columns under [triples] in a graph.toml '
            f"(‹config›) to read all nodes as one type",
            [propose_triples(table)],
        )
    if ends.rivals:
        raise UnrecognisedError(
            f"the edges of {table.title} could lead from {ends.ids[0]} to {ends.ids[1]}, or between "
            f"{' and '.join(ends.rivals[:2])}; say which in a graph.toml (‹config›)",
            [propose_triples(table)],
        )


def _note_triples(selection: Selection, triples: TriplesConfig, prefixed: bool) -> list[str]:
    table, columns = selection.table, selection.columns
    notes = []
    ends = None if triples.columns else find_ends(table)
    if ends is not None and ends.other_ids:
        others = listed(column for both in ends.other_ids for column in both)
        notes.append(f"{table.label}: {columns['source']} and {columns['target']} were read as the ids, not {others}")
    if prefixed:
        notes.append(f"{table.label}: the types of nodes were read from their ids, before '::'")
    if "source_name" in columns and "source_type" not in columns and not prefixed:
        notes.append(f"{table.label}: no columns name the types of nodes, so all have one type")
    left_out = _triple_attributes(table, columns, triples).notes(table.label)
    weight = [] if triples.attributes is not None else _note_weight(selection, "[triples]")
    return [*notes, *left_out, *weight]


def _note_weight(selection: Selection, section: str | None) -> list[str]:
    """Note an attribute that may rather be the weight."""
    weight = None if "weight" in selection.columns else likely_weight(selection.table, selection.attributes)
    return [] if weight is None else [_weight_note(selection, weight, section)]


def _select_types(table: Table) -> Selection:
    """Choose the columns of a table of types: entity, type and, if there is a third column, the name."""
    if len(table.columns) < 2:
        raise SourceError(f"{table.title} has one column; a table of types has two: entity, type")
    return Selection(table, dict(zip(("id", "type", "name"), table.columns, strict=False)))


# ---- Tables that are given twice -----------------------------------------------------------------
def refuse_twice(paths: Iterable[Path]) -> None:
    """Raise if the same file is given twice, under one name or two: its edges would count twice."""
    seen: dict[object, tuple[int, Path]] = {}
    for number, path in enumerate(path for path in paths if path.exists()):
        for key in (path.resolve(), (path.parent.resolve(), stem(path).lower())):
            first, other = seen.setdefault(key, (number, path))
            if first != number:
                raise SourceError(f"{other} and {path} are the same table; leave one out, or its edges count twice")


def _refuse_copies(relations: Sequence[RelationTable]) -> None:
    """Raise if two relations have files of the same content."""
    filled = [relation.table for relation in relations if relation.table.parts and not relation.table.is_empty]
    by_size: dict[tuple[int, ...], list[Table]] = {}
    for table in filled:
        by_size.setdefault(tuple(part.stat().st_size for part in table.parts), []).append(table)
    for group in by_size.values():
        by_start: dict[tuple[bytes, ...], list[Table]] = {}
        for table in group if len(group) > 1 else ():
            others = by_start.setdefault(tuple(map(_digest_start, table.parts)), [])
            for other in others:
                if table is not other and all(map(_same_content, table.parts, other.parts)):
                    raise SourceError(
                        f"{other.title} and {table.label} have the same content, so their edges would count twice; "
                        f'leave one out with ignore = ["{table.label}"] in graph.toml'
                    )
            others.append(table)


def _digest_start(path: Path) -> bytes:
    with path.open("rb") as stream:
        return blake2b(stream.read(1 << 16)).digest()


def _same_content(path: Path, other: Path) -> bool:
    return path.stat().st_size == other.stat().st_size and cmp(path, other, shallow=False)


# ---- Notes on what is not read -------------------------------------------------------------------
def _note_partitions(tables: Iterable[Table]) -> list[str]:
    """Note the columns that only the names of partition folders give; raise if such a column holds ids."""
    notes = []
    for table in (table for table in tables if isinstance(table, TableFile)):
        inner = {part for each in table.parts if each != table.path for part in each.relative_to(table.path).parents}
        keys = {folder.name.partition("=")[0] for folder in inner if folder.name}
        missing = sorted(keys.difference(table.columns))
        ids = [key for key in missing if is_id(key)]
        if ids:
            raise SourceError(
                f"{table.title} is partitioned into folders by {ids[0]}, and folder names are not read; "
                f"write {ids[0]} as a column of its files too"
            )
        if missing:
            notes.append(f"{table.label} is partitioned into folders by {listed(missing)}: folder names are not read")
    return notes


def _note_weights(edges: Iterable[Selection]) -> list[str]:
    """Note weights such as 1.200, whose points may stand before thousands."""
    notes = []
    for selection in edges:
        cells = selection.table.sample[selection.columns["weight"]] if "weight" in selection.columns else []
        if not selection.table.typed and are_perhaps_thousands(cells):
            sample = next(cell for cell in cells if "." in cell).strip()
            notes.append(
                f"{selection.table.label}: weight {sample} is read as {float(sample):g}; write "
                f"{sample.replace('.', '')} if it means that, or else {float(sample):g}"
            )
    return list(dict.fromkeys(notes))


def _note_comments(tables: Iterable[Table]) -> list[str]:
    counts = {table.label: table.comments for table in tables if table.comments}
    skipped = dict.fromkeys(note for table in tables for note in table.skipped)
    return [
        *(f"{name}: skipped {n} comment line{'s' * (n != 1)} above the table" for name, n in counts.items()),
        *skipped,
    ]


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


def _note_columns(
    edges: Sequence[EdgePlan],
    nodes: Sequence[NodePlan],
    noted: Sequence[str],
    in_files: bool = True,
    chosen: Collection[Table] = (),
    weighted: bool = False,
) -> list[str]:
    """Note the columns of relations that are not read, and the attributes that may rather be the weight.

    There is no note on tables whose attributes are `chosen` in a graph.toml.
    """
    tables = {id(edge.selection.table): edge.selection.table for edge in edges if edge.selection.table not in chosen}
    selections = [*(edge.selection for edge in edges), *(node.selection for node in nodes)]
    read = {(id(s.table), column) for s in selections for column in (*s.columns.values(), *s.attributes)}
    with_weight = {id(edge.selection.table) for edge in edges if weighted or "weight" in edge.selection.columns}
    last = {id(edge.selection.table): edge.selection for edge in edges}
    notes = [*noted]
    for key, table in tables.items():
        others = [column for column in table.columns if column and (key, column) not in read]
        if others and not any(note.startswith(f"{table.label}: ") for note in noted):
            columns = f"the columns {listed(others, 4)} were" if others[1:] else f"the column {others[0]} was"
            notes.append(f"{table.label}: {columns} left out")
        weight = None if key in with_weight else likely_weight(table, last[key].attributes)
        if weight is not None:
            notes.append(_weight_note(last[key], weight, "[[edges]]" if in_files else None, in_files))
    return notes


def _weight_note(selection: Selection, column: str, section: str | None, in_files: bool = True) -> str:
    names = selection.attributes
    what = f"{listed(names, 8)} {'are attributes' if names[1:] else 'is an attribute'} of edges, and each edge weighs 1"
    if section is not None:
        kept = f"attributes = [{', '.join(map(quoted, names))}]" if len(names) <= 4 else "naming attributes"
        hint = f"weight = {quoted(column)} under {section} in graph.toml would make {column} the weight"
        hint += f", and {kept} there keeps it 1"
    elif in_files:
        hint = f"a column called weight would be the weight, as {column} may be"
    else:
        hint = f'(table, {{"weight": {quoted(column)}}}) instead of the table would make {column} the weight'
    return f"{selection.table.label}: {what}; {hint}"

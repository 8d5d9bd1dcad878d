"""Detect what tables hold: an ordered list of rules gives a `Plan`, or a refusal with a graph.toml that reads them.

Tables in files and in memory follow the same rules. graph.toml, the names of tables and columns, and the first rows of
a table decide; the tables are not read yet.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from filecmp import cmp
from fnmatch import fnmatch
from functools import partial
from pathlib import Path
from typing import Any, cast

from neupath.errors import SourceError, listed
from neupath.graph.hin import Duplicates, check_duplicates
from neupath.graph.metapath import Relation
from neupath.graph.notations import are_perhaps_thousands, toml_key
from neupath.io.columns import (
    ChosenColumns,
    are_copies,
    choose_columns,
    declared_in,
    end_columns,
    end_entities,
    find_ends,
    find_split,
    holds_categories,
    holds_fractions,
    holds_marks,
    holds_measures,
    is_constant,
    is_sampled_whole,
    is_unique,
    may_end_edges,
    names_entities,
    node_kinds,
    note_weight,
    table_words,
    type_in_column,
    weight_column,
)
from neupath.io.formats.parquet import is_partition, parquet_files
from neupath.io.graph_toml import GRAPH_TOML, Config, NodesConfig, read_config, read_own_config
from neupath.io.knowledge_graphs import find_pair, find_triple_tables, note_others, plan_neo4j, plan_pair, plan_triples
from neupath.io.plan import LISTS, NULLS, EdgePlan, NodePlan, Plan, ReadOptions, Selection, Tables, existing
from neupath.io.proposals import (
    UnrecognisedError,
    no_relation,
    refuse_crosstabs,
    refuse_repeated_ids,
    with_proposal,
)
from neupath.io.table_files import TABLE_SUFFIXES, is_data_file, is_in_parts, is_table, open_table, open_tables, stem
from neupath.io.tables import Table, TableFile
from neupath.io.words import (
    EDGE_WORDS,
    IDS,
    JOINING_WORDS,
    KINDS,
    NAMES,
    are_alike,
    entity,
    is_id,
    is_identifier,
    is_key,
    is_measure,
    is_own_role,
    is_role,
    is_word,
    name_words,
    names_no_end,
    singular,
    singulars,
    snake,
    split_words,
    usual_name,
)

# ---- The tables of a source ----------------------------------------------------------------------
_PROSE = re.compile(r"(readme|licen[cs]e|copying|changelog|notes?|about|citation)\b.*\.txt$", re.IGNORECASE)


def recognise_folder(folder: Path, config: str | Path | None = None, duplicates: Duplicates | None = None) -> Plan:
    """Recognise the tables of a folder, with its own graph.toml or another one."""
    settings = read_settings(folder, config)
    if is_in_parts(folder) and not any((folder / name).exists() for name in settings.files):
        whole = folder.resolve() if folder.name in ("", "..") else folder  # its name is that of the table
        return recognise_files([whole], whole.parent, settings, duplicates, where=whole)
    paths = _not_ignored(sorted(filter(is_table_file, folder.iterdir())), settings)
    tables = [path for path in paths if not is_data_file(path)] or paths
    notes = [
        f"{path.name} was left out: a .dat file can hold anything, so next to other tables it is read only if "
        f"graph.toml names it"
        for path in paths
        if path not in tables
    ]
    notes += _note_deep_folders(folder, settings)
    return recognise_files(tables, folder, settings, duplicates, [] if settings.names_tables else notes)


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

    given = Tables(list(files.values()), find, str(where or folder))
    return recognise(given, settings, replace(options_of(settings, duplicates), notes=notes), duplicates)


def _not_ignored(paths: Iterable[Path], settings: Config) -> list[Path]:
    return [path for path in paths if not any(fnmatch(path.name, pattern) for pattern in settings.ignore)]


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


# ---- The rules -----------------------------------------------------------------------------------
@dataclass(frozen=True)
class Source:
    """Tables to recognise, and what the user says of them."""

    given: Tables
    settings: Config
    options: ReadOptions
    duplicates: Duplicates | None = None

    def find(self, name: str) -> Table:
        """Return the table that graph.toml calls `name`."""
        return self.given.find(name)


@dataclass(frozen=True)
class Rule:
    """A way to read the tables of a source; the first that gives a plan reads them."""

    name: str
    looks_at: str
    plan: Callable[[Source], Plan | None]
    example: str
    """A source of tests/io/corpus that it reads."""


def _named_triples(source: Source) -> Plan | None:
    triples = source.settings.triples
    if triples is None:
        return None
    tables = [source.find(name) for name in triples.files or ()] or list(source.given.all)
    refuse_twice(table.path for table in tables if isinstance(table, TableFile))
    return plan_triples(tables, source.given, source.settings, source.options)


def _neo4j(source: Source) -> Plan | None:
    return None if source.settings.names_tables else plan_neo4j(source.given.all, source.options)


def _pair(source: Source) -> Plan | None:
    pair = find_pair(source.given, source.settings)
    if pair is None:
        return None
    notes = [*note_others(source.given.all, pair), *source.options.notes]
    return plan_pair(*pair, source.settings, replace(source.options, notes=notes))


def _triples(source: Source) -> Plan | None:
    tables = source.given.all
    used = [] if source.settings.names_tables else find_triple_tables(tables, lambda table: bool(Sorted([table]).edges))
    if not used:
        return None
    notes = [*note_others(tables, used), *source.options.notes]
    return plan_triples(used, source.given, source.settings, replace(source.options, notes=notes))


def recognise(given: Tables, settings: Config, options: ReadOptions, duplicates: Duplicates | None = None) -> Plan:
    """Return the plan of the first rule that gives one; raise with a graph.toml that would read the tables."""
    try:
        return _recognise(Source(given, settings, options, duplicates))
    except UnrecognisedError as error:

        def read_as(tables: Tables, proposed: Config) -> Plan:
            return _recognise(Source(tables, proposed, options_of(proposed, duplicates), duplicates))

        raise with_proposal(error, given, settings, read_as) from None


def _recognise(source: Source) -> Plan:
    rule, plan = next((rule, plan) for rule in RULES if (plan := rule.plan(source)) is not None)
    if plan.shared is None:
        plan = refuse_crosstabs(plan, source.given, source.settings)
    tables = list({id(table): table for table in plan.tables}.values())
    notes = [*plan.options.notes, *_note_partitions(tables), *_note_content(tables, plan.edges)]
    return _with_settings(replace(plan, options=replace(plan.options, notes=notes), rule=rule.name), source.settings)


def explain_rules(plan: Plan) -> list[tuple[str, str, bool]]:
    """Return the rules that were tried: the name, what each looks at, and whether it read the tables."""
    names = [rule.name for rule in RULES]
    return [(rule.name, rule.looks_at, rule.name == plan.rule) for rule in RULES[: names.index(plan.rule) + 1]]


_IN_OWN, _IN_WRITTEN = "in graph.toml", "in graph.toml, which `neupath init` writes"


def _with_settings(plan: Plan, settings: Config) -> Plan:
    """Let all selections read ids as graph.toml says, and say where it stands if it names no tables yet."""

    def clean(selection: Selection) -> Selection:
        place = selection.declared_in
        if not settings.names_tables and place.endswith(_IN_OWN):
            place = place.removesuffix(_IN_OWN) + _IN_WRITTEN
        missing, is_folded = plan.options.missing_ids or (), bool(plan.options.fold_ids)
        return replace(selection, missing_ids=missing, fold_ids=is_folded, declared_in=place)

    nodes = [replace(node, selection=clean(node.selection)) for node in plan.nodes]
    edges = [replace(edge, selection=clean(edge.selection)) for edge in plan.edges]
    return replace(plan, nodes=nodes, edges=edges)


# ---- The node types that tables name -------------------------------------------------------------
class TypeNames:
    """The node types that the tables of a source name, each in one spelling."""

    def __init__(self, tables: Sequence[Table], known: Iterable[str] = ()) -> None:
        self._tables = tables
        self._spelling: dict[str, str] = {}
        self._learn(known)
        mentions = _mentions(table.name for table in tables)
        compound = [table for table in tables if len(table_words(table)) >= 2]
        self._learn(own[0] for own in map(_own_entity, tables) if own)
        # a type of several words must be known before the names of relations are split into types
        self._learn(_mentioned(table, mentions) for table in compound)
        for table in compound:
            if len(table.columns) >= 2 and self.of_node_table(table) is None:
                self._learn_ends(table)
        self._learn(_mentioned(table, mentions) for table in tables if self.named(table.name) is None)

    def _learn(self, names: Iterable[str | None]) -> None:
        for name in names:
            if name is not None and self.named(name) is None:
                for word in singulars(name):
                    self._spelling.setdefault(word, name)

    def _learn_ends(self, table: Table) -> None:
        """Learn the types of a relation whose name begins like its first column."""
        columns = end_columns(table)
        entities = (None, None) if columns is None else end_entities(table, columns)
        if columns is None or (not any(entities) and not _names_types(table, columns)):
            return
        source, _, target = self.ends_of_name(table)
        twice = source.lower() == target.lower() and not self.columns_differ(table)
        first, second = (
            end if twice else entity(column) or end for column, end in zip(columns, (source, target), strict=True)
        )
        if first.lower() in singulars(source):
            self._learn([first])
            is_type = _holds_nodes(table, columns, second) and not self.known(second) and not is_own_role(second)
            self._learn([second if is_type else None])

    def named(self, word: str) -> str | None:
        """Return the known type that a word, or its singular, is."""
        words = (*singulars(word), singular(word).lower())
        return next((self._spelling[each] for each in words if each in self._spelling), None)

    def known(self, word: str) -> str | None:
        """Return the known type that a word is, or that is at the end of a role such as cited_paper."""
        low = word.lower()
        ends = [low, *(low[match.end() :] for match in re.finditer(r"[_\s-]", low))]
        return next((kind for end in ends if (kind := self.named(end)) is not None), None)

    def ends_of_name(self, table: Table) -> tuple[str, list[str], str]:
        """Return the types at the two ends of a table's name, and the words between; a type may have several words."""
        words = table_words(table)
        heads = max((n for n in range(1, len(words)) if self.named("_".join(words[:n]))), default=1)
        tails = max((n for n in range(1, len(words) - heads + 1) if self.named("_".join(words[-n:]))), default=1)
        source, target = (self.named("_".join(end)) or "_".join(end) for end in (words[:heads], words[-tails:]))
        between = [word for word in words[heads : len(words) - tails] if word.lower() not in JOINING_WORDS]
        return source, between, target

    def columns_differ(self, table: Table) -> bool:
        """Whether the two id columns hold ids of other types than those in the table's name.

        A role such as cited is not another type. Any other word is one, if both columns are called ids.
        """
        source, between, target = self.ends_of_name(table)
        columns = end_columns(table) or ("", "")
        ends = zip(end_entities(table, columns), (source, target), strict=True)
        others = [word for word, end in ends if word is not None and self._is_other(word, end, between)]
        named = (self.named(word) or any(are_alike(word, verb) for verb in between) for word in others)
        return any(named) or (bool(others) and all(map(is_id, columns)))

    def _is_other(self, word: str, end: str, between: list[str]) -> bool:
        if len(word) == 1 or are_alike(word, end):
            return False
        return self.named(word) is not None or not is_role(word, end, between)

    def share_columns(self, table: Table, columns: tuple[str, str]) -> bool:
        """Whether another table has these columns of a table as well."""
        return any(other is not table and {*columns} <= {*other.columns} for other in self._tables)

    def of_node_table(self, table: Table) -> tuple[str, str] | None:
        """Return the type whose nodes a table holds, and its id column, or None."""
        own = _own_entity(table)
        if own is not None:
            return self.named(own[0]) or own[0], own[1]
        called_id = [column for column in table.columns if column.lower() in IDS] if table.has_header else []
        if not called_id and table.has_header:
            return None
        column = called_id[0] if called_id else table.columns[0]
        words = name_words(re.sub(r"^id_", "", table.name.lower()))
        known = self.named("_".join(words)) if words else None
        if known is not None:
            return known, column
        return (singulars(words[0])[:2][-1], column) if called_id and len(words) == 1 and is_word(words[0]) else None

    def of_described_nodes(self, table: Table) -> tuple[str, str] | None:
        """Return the type of a table with one id column, first, and a column of names, whatever the table is called."""
        ids = [column for column in table.columns if is_id(column)]
        named = any(column.lower() in ("name", "title") for column in table.columns)
        if not named or ids[:1] != table.columns[:1] or not is_unique(table, ids[0]):
            return None
        word = entity(ids[0])
        return None if word is None else (self.named(word) or word, ids[0])


def _own_entity(table: Table) -> tuple[str, str] | None:
    """Return the type and id column of a node table whose name agrees with a column: movies with movie_id.

    A first column that is not called an id, as in tags.csv with tag, user_id and movie_id, may be an attribute.
    """
    ids = [column for column in table.columns if is_id(column)]
    words = table_words(table) or split_words(table.name)
    may_be_id = len(ids) < 2 and table.columns[0] not in ids and not is_measure(table.columns[0])
    for column in (*(table.columns[:1] if may_be_id else []), *ids):
        name = entity(column)
        ours = split_words(name.lower()) if name else []
        if name and words and len(ours) == len(words) and all(map(are_alike, ours, words)):
            return name, column
    return None


def _mentions(names: Iterable[str]) -> dict[str, str]:
    """Return the words with which names of tables begin or end, in lower case -> as the first of them spells it."""
    mentions: dict[str, str] = {}
    for name in names:
        for cut in (match.start() for match in re.finditer("_", name)):
            mentions.setdefault(name[:cut].lower(), name[:cut])
            mentions.setdefault(name[cut + 1 :].lower(), name[cut + 1 :])
    return mentions


def _mentioned(table: Table, mentions: dict[str, str]) -> str | None:
    """Return the type of a node table whose name begins or ends the name of another table, as spelled there."""
    if table.columns[0].lower() not in IDS or any(is_id(column) for column in table.columns[1:]):
        return None
    return next((mentions[name] for name in singulars(table.name) if name in mentions), None)


# ---- Tables of the edges of one relation ---------------------------------------------------------
def _edge_plan(
    table: Table, ends: tuple[str, str], name: str, columns: tuple[str, str], weight: str | None = None, **how: Any
) -> EdgePlan:
    """Return the plan of the edges in two columns; what else is read of them is chosen when all relations are known."""
    roles = existing(source=columns[0], target=columns[1], weight=weight)
    return EdgePlan(Relation(ends[0], name, ends[1]), Selection(table, roles, **how))


def _as_relation(table: Table, types: TypeNames) -> EdgePlan | None:
    """Return the relation that a table holds by its name, or else by its columns; None if it is no relation."""
    columns = end_columns(table)
    if columns is None or are_copies(table, columns):
        return None
    if any(holds_fractions(table, column) or is_constant(table, column) for column in columns):
        return None
    if len(table_words(table)) >= 2 and _name_decides(table, columns, types):
        joined = _joined_by_name(table, columns, types)
    else:
        joined = _joined_by_columns(table, columns, types)
    if joined is None:
        return None
    columns, (source, target), between = joined
    source, target = types.known(source) or source, types.known(target) or target
    name = "_".join(between) or table.name or f"{source}_{target}"
    split = find_split(table, columns[1])
    if split is not None:
        target = singular(target)
    return _edge_plan(table, (source, target), name, columns, weight_column(table, columns), split=split)


Joined = tuple[tuple[str, str], tuple[str, str], Sequence[str]]
"""The columns of a relation, the types that they hold, and the words between these in the table's name."""


def _name_decides(table: Table, columns: tuple[str, str], types: TypeNames) -> bool:
    """Whether the table's name, and not its columns, decides which types it joins.

    It does if the columns name no entity; if the name has one type twice, as in paper_cites_paper; if it has two known
    types and the columns name no known type; or if the columns abbreviate its types. It never does if the columns are
    ids of other types.
    """
    entities = end_entities(table, columns)
    source, _, target = types.ends_of_name(table)
    if entities == (None, None):
        return all(map(types.known, (source, target))) or _names_types(table, columns)
    if types.columns_differ(table):
        return False
    if source.lower() == target.lower():
        return True
    if all(end.lower().startswith(column.lower()) for end, column in zip((source, target), columns, strict=True)):
        return True
    return all(map(types.known, (source, target))) and not any(word and types.known(word) for word in entities)


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


def _joined_by_name(table: Table, columns: tuple[str, str], types: TypeNames) -> Joined | None:
    """Return the types that the name of a table says."""
    source, between, target = types.ends_of_name(table)
    if is_own_role(singular(target)) and types.known(target) in (None, target):  # user_friends
        between, target = [*between, target], source
    if source == target and any(end_entities(table, columns)):
        roles = [c for c in table.columns if (word := entity(c)) and is_role(word, source, between)]
        both = end_columns(table, roles) if len(roles) == 2 else None
        return None if both is None else (both, (source, target), between)
    return columns, (source, target), between


def _joined_by_columns(table: Table, columns: tuple[str, str], types: TypeNames) -> Joined | None:
    """Return the types that the names of two columns say."""
    source, target = end_entities(table, columns)
    if source is None or target is None:
        return None
    if is_own_role(source) and not is_own_role(target):
        columns, source, target = (columns[1], columns[0]), target, source
    words = table_words(table)
    one = _one_type(table, columns, (source, target), types)
    if one is not None:
        return columns, (one, one), [word for word in words if not are_alike(word, one)]
    if is_own_role(target) and types.known(target) is None:
        return None
    if len(words) >= 2 and words[0].lower() in singulars(source):
        end = _named_end(table, columns, target, types)
        return None if end is None else (columns, (source, end), _words_between(words[1:], end))
    if len(words) >= 2 and words[0].lower() in singulars(target) and are_alike(words[-1], source):
        # the columns of movie_actor are actor, movie
        return (columns[1], columns[0]), (target, source), _words_between(words[1:], source)
    return (columns, (source, target), []) if _are_two_ids(table, columns, (source, target), types) else None


def _holds_nodes(table: Table, columns: tuple[str, str], word: str) -> bool:
    """Whether the second column holds nodes called `word`: it is an id, in the table's name, or one of two words.

    In movies_2020, a title beside movie_id does not count as nodes: it may be an attribute.
    """
    are_words = len(table.columns) == 2 and not is_key(columns[0])
    return is_key(columns[1]) or are_words or any(are_alike(other, word) for other in table_words(table))


def _named_end(table: Table, columns: tuple[str, str], word: str, types: TypeNames) -> str | None:
    """Return the type that the second column holds, or None if it may be an attribute of the first."""
    if is_id(columns[1]) or types.named(word) is not None:
        return word
    last = table_words(table)[-1]
    if types.known(word) is not None or (types.known(last) is not None and not are_alike(word, last)):
        return None
    if _holds_nodes(table, columns, word):
        return word
    return last if re.fullmatch(rf"{re.escape(last)}[_ -]?name", word, re.IGNORECASE) else None


def _one_type(table: Table, columns: tuple[str, str], words: tuple[str, str], types: TypeNames) -> str | None:
    """Return the type that both columns hold: protein1, protein2; citing_paper, cited_paper; user, friend."""
    source, target = words
    plain, other = (re.sub(r"[_\s-]?\d+$", "", word) for word in words)
    if source != target and plain == other:
        return plain
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
    if all(types.known(w) if is_id(c) else types.named(w) for c, w in zip(columns, words, strict=True)):
        return True
    others = any(is_id(column) and is_identifier(word) for column, word in zip(columns, words, strict=True))
    keys = [snake(w) for c in table.columns if is_id(c) and (w := entity(c)) and not is_identifier(w)]
    apart = [key for key in keys if not any(key.startswith(f"{other}_") for other in keys)]  # not venue_category
    return all(map(is_key, columns)) and not others and len(apart) <= 2


def _words_between(words: Sequence[str], target: str) -> list[str]:
    ignored = (*singulars(target), *split_words(target.lower()), *JOINING_WORDS)
    return [word for word in words if word.lower() not in ignored and target.lower() not in singulars(word)]


class Sorted:
    """Tables of nodes, those of edges, and notes on the others."""

    def __init__(self, tables: Sequence[Table], known: Iterable[str] = ()) -> None:
        self.types = types = TypeNames(tables, known)
        self.nodes: list[NodePlan] = []
        self.edges: list[EdgePlan] = []
        self.notes: list[str] = []
        for table in tables:
            own = types.of_node_table(table)
            relation = _as_relation(table, types) if own is None else None
            own = own if own is not None or relation is not None else types.of_described_nodes(table)
            if relation is not None:
                self.edges.append(relation)
            elif own is not None:
                self.nodes.append(_node_plan(table, NodesConfig(table.label, own[1]), own[0]))
            else:
                self.notes.append(
                    f"{table.label} was left out: neither its name nor its first columns "
                    f"({', '.join(table.columns[:2])}) name node types; name them in graph.toml"
                )


def _node_plan(table: Table, entry: NodesConfig, node_type: str) -> NodePlan:
    """Choose the columns of a node table: by default the first for the id and one called name for the name."""
    id_ = table.column(entry.id, "id") if entry.id else table.columns[0]
    others = [column for column in table.columns if column != id_]
    texts = [column for column in others if not (any(table.sample[column]) and table.has_numbers(column))]
    name = usual_name(texts, node_type)
    if entry.name is not None:
        name = table.column(entry.name, "name") if entry.name else None
    elif name is None and not table.has_header and texts[:1] == others[:1]:
        name = next(iter(others), None)
    attributes = [column for column in others if column != name]
    if entry.attributes is not None:
        attributes = [table.column(column, "attributes") for column in entry.attributes]
    own = existing(id=id_, name=name)
    kinds, place = node_kinds(table, entry.attribute_types, own), declared_in(table, f"[nodes.{toml_key(node_type)}]")
    return NodePlan(node_type, Selection(table, own, attributes, kinds=kinds, declared_in=place))


# ---- Columns that hold further edges -------------------------------------------------------------
def _held_relation(node: NodePlan, column: str, types: TypeNames, tables: Mapping[str, Table]) -> EdgePlan | str | None:
    """Return the relation that a column of a node table holds, or why it holds none, or None if it is no question."""
    table, split = node.selection.table, find_split(node.selection.table, column)
    word = singular(entity(column) or column) if split else entity(column) or column
    target = node.node_type if is_own_role(word) else types.known(word)
    if is_id(column) or re.search(r"(?:_ids|Ids|IDs)$", column):
        reason = _why_no_key(node, column, word, is_new=target is None and split is None)
        if reason is not None:
            return reason
    elif split is None:
        other = tables.get(target or "")
        if other is None or other is table or not are_alike(word, target or "") or not _leads_to(table, column, other):
            return None
    elif not any(table.sample[column]):
        return None
    target = target or word
    name = f"{node.node_type}_{target}" if are_alike(word, target) and target != node.node_type else word
    ends = (node.selection.columns["id"], column)
    return _edge_plan(table, (node.node_type, target), name, ends, split=split, optional=True)


def _why_no_key(node: NodePlan, column: str, word: str, is_new: bool) -> str | None:
    """Return why an id column of a node table is no foreign key, or None if it is one; `is_new`: to an unknown type."""
    table = node.selection.table
    if is_identifier(word):
        return "it names identifiers of another system"
    if are_alike(word, node.node_type):
        return "it is another id of the same nodes"
    if not any(table.sample[column]):
        return "it is empty in the first rows"
    if is_new and is_unique(table, column):
        return "its values are all different, as those of an identifier are"
    return None


def _leads_to(table: Table, column: str, other: Table) -> bool:
    """Whether the first values of a column are ids of another table, of which all ids are among its first values."""
    ids = set(other.sample[other.columns[0]])
    cells = {cell for cell in table.sample[column] if cell}
    return bool(cells) and is_sampled_whole(other) and cells <= ids


def _hold(
    nodes: Sequence[NodePlan], open_nodes: Sequence[NodePlan], edges: Sequence[EdgePlan], types: TypeNames
) -> tuple[list[NodePlan], list[EdgePlan], list[str]]:
    """Find the relations in the columns of node tables whose columns graph.toml does not choose.

    Return what is left of the node tables, the relations, and notes on the columns that rather stay attributes.
    """
    tables = {node.node_type: node.selection.table for node in nodes}
    taken = {(edge.selection.table, column) for edge in edges for column in edge.selection.columns.values()}
    joined = {frozenset((edge.relation.source, edge.relation.target)) for edge in edges}
    left, held, notes = [], [], []
    for node in nodes:
        table, kept = node.selection.table, []
        for column in node.selection.attributes:
            is_open = node in open_nodes and table.has_header and (table, column) not in taken
            found = _held_relation(node, column, types, tables) if is_open else None
            if isinstance(found, EdgePlan) and found.selection.split is not None:
                relation = found.relation
                if frozenset((relation.source, relation.target)) in joined:
                    found = f"another table joins {relation.source} and {relation.target}"
            if isinstance(found, EdgePlan):
                held.append(found)
                continue
            kept.append(column)
            if found is not None:
                notes.append(f"{table.label}: {column} was read as an attribute, not as a relation: {found}")
        left.append(replace(node, selection=replace(node.selection, attributes=kept)))
    return left, held, notes


def _other_keys(
    edges: Sequence[EdgePlan], nodes: Sequence[NodePlan], types: TypeNames
) -> tuple[list[EdgePlan], list[str]]:
    """Return the relations to the other foreign keys of a table of edges, as of order_id, customer_id and product_id.

    A key counts if it is called an id, its type has a table of nodes, and its first values are in that table. The
    second list has a note on each key that does not.
    """
    of_type = {node.node_type: node.selection for node in nodes}
    found, notes = [], []
    for edge in edges:
        table, relation = edge.selection.table, edge.relation
        columns = table.columns if table.has_header and edge.selection.split is None else []
        for column in filter(is_id, columns):
            word, kind = entity(column), types.known(entity(column) or "")
            if word is None or column in edge.selection.columns.values() or kind in (relation.source, relation.target):
                continue
            if kind is None or kind not in of_type:
                if may_end_edges(table, column) and not is_unique(table, column):
                    notes.append(
                        f"{table.label}: {column} was read as an attribute of {relation.name}, as no table holds its "
                        f"ids; another [[edges]] in graph.toml, which `neupath init` writes, can join it"
                    )
                continue
            others = of_type[kind].table
            ids = set(others.sample[of_type[kind].columns["id"]])
            outside = next((cell for cell in table.sample[column] if cell and cell not in ids), None)
            if outside is not None and is_sampled_whole(others):
                reason = f"{outside!r} is no id in {others.label}"
                notes.append(f"{table.label}: {column} was read as an attribute, not as a relation: {reason}")
                continue
            name = f"{relation.source}_{kind}" if are_alike(word, kind) else word
            ends = (edge.selection.columns["source"], column)
            found.append(_edge_plan(table, (relation.source, kind), name, ends, optional=True))
    return found, notes


def _note_rule(edge: EdgePlan) -> str:
    selection = edge.selection
    column, split = selection.columns["target"], selection.split
    how = "" if split is None else ", its cells split as lists" if split == LISTS else f", its cells split at {split}"
    nulls = [null for null in NULLS if selection.optional and null in selection.table.sample[column]]
    how += f", where {' and '.join(nulls)} is no edge" if nulls else ""
    arrow = f"{edge.relation.source} -{edge.relation.name}-> {edge.relation.target}"
    return f"{selection.table.label}: {column} was read as the relation {arrow}{how}"


# ---- One table for each relation -----------------------------------------------------------------
def _relations(source: Source) -> Plan | None:
    """Choose the columns of one table for each relation, and of the node tables beside them."""
    settings, given = source.settings, source.given
    configured = [given.find(name) for name in settings.files]
    explicit = [*settings.nodes, *(end for entry in settings.edges for end in (entry.source, entry.target))]
    tables = Sorted(_not_named(given.all, configured), explicit)
    named = [_node_plan(given.find(entry.file), entry, kind) for kind, entry in settings.nodes.items()]
    open_nodes = [*tables.nodes, *(node for node in named if settings.nodes[node.node_type].attributes is None)]
    _refuse_copies(tables.edges)
    keys, key_notes = _other_keys(tables.edges, [*tables.nodes, *named], tables.types)
    own = _configured(source)
    nodes, held, held_notes = _hold([*tables.nodes, *named], open_nodes, [*tables.edges, *keys, *own], tables.types)
    edges = [*tables.edges, *keys, *own, *held]
    if not edges and not nodes and len(given.all) == 1 and not settings.names_tables:
        return None
    if not edges:
        refuse_repeated_ids(nodes)
        _note_partitions(given.all)  # raises if ids are in the names of folders
        raise no_relation(given, nodes, [*tables.notes, *held_notes, *key_notes, *source.options.notes])
    _refuse_two_node_tables(nodes)
    refuse_repeated_ids(nodes)
    by_rule = [edge for edge in tables.edges if edge.selection.split is not None]
    notes = [*tables.notes, *map(_note_rule, (*by_rule, *keys, *held)), *held_notes, *key_notes]
    attributes = {id(edge): entry.attributes for edge, entry in zip(own, settings.edges, strict=True)}
    return _finish(source, nodes, edges, notes, {key: names for key, names in attributes.items() if names is not None})


def _not_named(tables: Sequence[Table], configured: Sequence[Table]) -> list[Table]:
    """Return the tables that graph.toml does not name, nor files in them."""
    paths = [table.path.resolve() for table in configured if isinstance(table, TableFile)]
    named = {place for path in paths for place in (path, *path.parents)}
    return [
        table
        for table in tables
        if (table.path.resolve() not in named if isinstance(table, TableFile) else table not in configured)
    ]


def _configured(source: Source) -> list[EdgePlan]:
    """Return the relations that graph.toml describes."""
    seen: dict[tuple[object, ...], str] = {}
    edges = []
    for entry in source.settings.edges:
        table = source.given.find(entry.file)
        names = entry.columns or _columns_of_types(table, entry.source, entry.target)
        if len(names) != 2:
            raise SourceError(
                f"relation {entry.name!r} in graph.toml needs two id columns, but has {listed(names) or 'none'}"
            )
        first, second = (table.column(column, "edges") for column in names)
        key = (table.path.resolve() if isinstance(table, TableFile) else table, first, second)
        if key in seen:
            raise SourceError(
                f"relations {seen[key]!r} and {entry.name!r} in graph.toml both use the columns {first}, {second} of "
                f"{entry.file}; leave one out, or its edges count twice"
            )
        seen[key] = entry.name
        weight = table.column(entry.weight, "weight") if entry.weight else weight_column(table, names)
        roles = existing(source=first, target=second, weight=weight)
        split = entry.split or (LISTS if table.is_list(second) else None)
        relation = Relation(entry.source, entry.name, entry.target, directed=not entry.undirected)
        selection = Selection(table, roles, split=split, optional=entry.optional, kinds=entry.attribute_types)
        edges.append(EdgePlan(relation, selection))
    return edges


def _columns_of_types(table: Table, source: str, target: str) -> list[str]:
    """Return the columns that are called like the two types of a relation, or else the first two."""
    first, second = (
        [column for column in table.columns if (word := entity(column)) and are_alike(word, end)]
        for end in (source, target)
    )
    if len(first) == len(second) == 1 and first != second:
        return [*first, *second]
    return list(table.columns[:2])


def _finish(
    source: Source,
    nodes: Sequence[NodePlan],
    edges: Sequence[EdgePlan],
    notes: Sequence[str],
    attributes: Mapping[int, Sequence[str]] | None = None,
) -> Plan:
    """Return the plan of relations: choose the attributes of their edges, and note what is not read.

    `attributes` are those that are chosen already, by the `id` of a plan. Of others, the columns beside the ends are
    attributes; in a table of nodes these describe the nodes.
    """
    options, named = source.options, attributes or {}
    options.check_names([edge.relation.name for edge in edges])
    taken: dict[Table, set[str]] = {}
    for edge in edges:
        taken.setdefault(edge.selection.table, set()).update(edge.selection.columns.values())
    node_tables = {node.selection.table for node in nodes}
    finished, unread = [], list[str]()
    for edge in edges:
        selection, table, name = edge.selection, edge.selection.table, edge.relation.name
        if options.take and name not in options.take:
            continue
        chosen = ChosenColumns()
        if id(edge) in named or table not in node_tables:
            weight = selection.columns.get("weight")
            chosen = choose_columns(table, taken[table], weight, named.get(id(edge)), selection.kinds)
        unread += [note for note in chosen.notes(table.label) if note not in unread]
        relation = replace(edge.relation, directed=edge.relation.directed and name not in options.undirected)
        place = declared_in(table, "[[edges]]")
        read = replace(selection, attributes=chosen.columns, kinds=chosen.kinds, declared_in=place)
        finished.append(EdgePlan(relation, read))
    settings = source.settings
    settled = {source.given.find(each.file) for each in settings.nodes.values() if each.attributes is not None}
    settled |= {source.given.find(each.file) for each in settings.edges if each.attributes is not None}
    notes = [*notes, *_note_lone_nodes(source, nodes, finished), *unread]
    notes += _note_unread(finished, nodes, settled, unread, source.given.in_files)
    return Plan(nodes, finished, replace(options, notes=[*notes, *options.notes]))


def _note_lone_nodes(source: Source, nodes: Sequence[NodePlan], edges: Sequence[EdgePlan]) -> list[str]:
    joined = {end for edge in edges for end in (edge.relation.source, edge.relation.target)}
    if source.settings.names_tables or source.options.take:
        return []
    return [f"{n.selection.table.label}: no relation leads to its nodes" for n in nodes if n.node_type not in joined]


def _note_unread(
    edges: Sequence[EdgePlan],
    nodes: Sequence[NodePlan],
    settled: Collection[Table],
    noted: Sequence[str],
    in_files: bool,
) -> list[str]:
    """Note the columns of tables of edges that are not read, and the attributes that may rather be the weight."""
    selections = {edge.selection.table: edge.selection for edge in edges if edge.selection.table not in settled}
    read = {
        (each.table, column)
        for each in (*(edge.selection for edge in edges), *(node.selection for node in nodes))
        for column in (*each.columns.values(), *each.attributes)
    }
    weighted = {edge.selection.table for edge in edges if "weight" in edge.selection.columns}
    notes = []
    for table, selection in selections.items():
        others = [column for column in table.columns if column and (table, column) not in read]
        if others and not any(note.startswith(f"{table.label}: ") for note in noted):
            columns = f"the columns {listed(others, 4)} were" if others[1:] else f"the column {others[0]} was"
            notes.append(f"{table.label}: {columns} left out")
        notes += [] if table in weighted else note_weight(selection, "[[edges]]" if in_files else None, in_files)
    return notes


# ---- A lone table --------------------------------------------------------------------------------
def _wide(source: Source) -> Plan | None:
    """Read a lone table whose header names entities, such as movie, actor, director, as relations of the first.

    The first column is read as it is; each other column is a relation if its texts occur again. A row may repeat what
    another row says of the first column, so parallel edges are dropped. Of two columns, both repeat some texts.
    """
    (table,) = source.given.all
    first, *others = table.columns
    columns = [column for column in others if names_entities(table, column)]
    is_pair = len(others) == 1
    targets = [type_in_column(table, column) for column in columns]
    if not _has_plain_header(table) or len({*targets}) < max(len(targets), 1 if is_pair else 2):
        return None
    texts = [column for column in others if not (table.has_numbers(column) or holds_fractions(table, column))]
    if columns != texts or holds_marks(table, columns) or any(_share_ids(table, (first, other)) for other in columns):
        return None
    if is_pair and not all(_is_plain_entity(table, column) for column in table.columns):
        return None
    kind = entity(first) or first
    edges = [
        _edge_plan(table, (kind, target), f"{kind}_{target}", (first, column), split=split, optional=not is_pair)
        for column, target in zip(columns, targets, strict=True)
        for split in (find_split(table, column),)
    ]
    notes = [*map(_note_rule, edges)]
    if not (source.duplicates or source.settings.duplicates):
        source = replace(source, options=replace(source.options, duplicates="drop"))
        dropped = f"{table.label}: edges that several rows repeat were read once"
        notes += [] if is_unique(table, first) else [dropped]
    return _finish(source, [], edges, notes, dict.fromkeys(map(id, edges), ()))


def _has_plain_header(table: Table) -> bool:
    """Whether each column is called by one word that may be a type, and the first holds what the others describe."""
    first = table.columns[0]
    plain = all(re.fullmatch(r"[^\W\d]{2,}", column) and snake(column) not in EDGE_WORDS for column in table.columns)
    if not (table.has_header and plain) or any(map(is_key, table.columns)) or find_ends(table) is not None:
        return False
    return not (is_measure(first) or holds_measures(table, first) or first.lower() in (*NAMES, *KINDS))


def _is_plain_entity(table: Table, column: str) -> bool:
    """Whether a column is one of two that name entities, such as customer and product, and repeats some."""
    is_role = is_own_role(column) or is_measure(column) or column.lower() in (*NAMES, *KINDS)
    is_one_text = not holds_measures(table, column) and find_split(table, column) is None
    return not is_role and is_one_text and holds_categories(table, column)


def _edge_list(source: Source) -> Plan | None:
    """Read a table of edges between nodes of one type: columns such as source and target, or two that share ids."""
    (table,) = source.given.all
    columns, ends = end_columns(table), find_ends(table)
    if columns is None or (ends is None and (table.has_header or len(table.columns) != 2)):
        return None
    if ends is not None and (ends.types or ends.half_typed or ends.rivals or ends.relation):
        return None
    if ends is None and not _share_ids(table, columns):
        return None
    edge = _edge_plan(table, ("node", "node"), "edge", columns, weight_column(table, columns))
    return _finish(source, [], [edge], [f"{table.label}: all nodes were read as one type, node"])


def _nothing(source: Source) -> Plan | None:
    _note_partitions(source.given.all)  # raises if ids are in the names of folders
    raise no_relation(source.given, [], [*Sorted(source.given.all).notes, *source.options.notes])


RULES = (
    Rule("triples of graph.toml", "the section [triples]", _named_triples, "triples_by_graph_toml"),
    Rule("neo4j-admin", "headers such as id:ID, :START_ID and :END_ID", _neo4j, "neo4j_admin_files"),
    Rule("nodes and edges", "a table called nodes, and one called edges or with the header of triples", _pair, "kgx"),
    Rule("triples", "headers or rows of head, relation and tail", _triples, "drkg"),
    Rule("relations", "the names of tables, and which columns are called ids", _relations, "movielens"),
    Rule("wide table", "a lone table whose header names types, such as movie, actor", _wide, "wide_table"),
    Rule("edge list", "a lone table of two columns that share ids", _edge_list, "snap_edge_list"),
    Rule("nothing", "whether a graph.toml can be proposed", _nothing, "likes_without_types"),
)


# ---- Tables that are given twice -----------------------------------------------------------------
def _refuse_two_node_tables(nodes: Sequence[NodePlan]) -> None:
    names: dict[str, str] = {}
    for node in nodes:
        name = node.selection.table.label
        if node.node_type in names:
            raise SourceError(
                f"{names[node.node_type]} and {name} both hold the nodes of type {node.node_type!r}; "
                f'leave one out with ignore = ["{name}"] in graph.toml'
            )
        names[node.node_type] = name


def refuse_twice(paths: Iterable[Path]) -> None:
    """Raise if the same file is given twice, under one name or two: its edges would count twice."""
    seen: dict[object, tuple[int, Path]] = {}
    for number, path in enumerate(path for path in paths if path.exists()):
        for key in (path.resolve(), (path.parent.resolve(), stem(path).lower())):
            first, other = seen.setdefault(key, (number, path))
            if first != number:
                raise SourceError(f"{other} and {path} are the same table; leave one out, or its edges count twice")


def _refuse_copies(edges: Sequence[EdgePlan]) -> None:
    """Raise if two relations have files of the same content."""
    by_content: dict[object, Table] = {}
    for table in dict.fromkeys(edge.selection.table for edge in edges):
        if not table.parts or table.is_empty:
            continue
        key = tuple((part.stat().st_size, _first_bytes(part)) for part in table.parts)
        other = by_content.setdefault(key, table)
        if other is not table and all(map(partial(cmp, shallow=False), table.parts, other.parts)):
            raise SourceError(
                f"{other.title} and {table.label} have the same content, so their edges would count twice; "
                f'leave one out with ignore = ["{table.label}"] in graph.toml'
            )


def _first_bytes(path: Path) -> bytes:
    with path.open("rb") as stream:
        return stream.read(1 << 12)


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


def _note_content(tables: Sequence[Table], edges: Sequence[EdgePlan]) -> list[str]:
    """Note lines of comments, what a file has beside its table, and weights such as 1.200, perhaps with thousands."""
    counts = {table.label: table.comments for table in tables if table.comments}
    notes = [f"{name}: skipped {n} comment line{'s' * (n != 1)} above the table" for name, n in counts.items()]
    notes += dict.fromkeys(note for table in tables for note in table.skipped)
    for selection in (edge.selection for edge in edges if "weight" in edge.selection.columns):
        cells = selection.table.sample[selection.columns["weight"]]
        if not selection.table.typed and are_perhaps_thousands(cells):
            sample = next(cell for cell in cells if "." in cell).strip()
            notes.append(
                f"{selection.table.label}: weight {sample} is read as {float(sample):g}; write "
                f"{sample.replace('.', '')} if it means that, or else {float(sample):g}"
            )
    return list(dict.fromkeys(notes))


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

"""The node types that the names of tables and columns say, and which two of them a table of edges joins."""

import re
from collections.abc import Iterable, Sequence
from typing import Any

from neupath.graph.metapath import Relation
from neupath.io.columns import (
    are_copies,
    end_columns,
    end_entities,
    find_split,
    holds_categories,
    holds_fractions,
    is_constant,
    is_unique,
    table_words,
    weight_column,
)
from neupath.io.plan import EdgePlan, Selection, existing
from neupath.io.tables import Table
from neupath.io.words import (
    IDS,
    JOINING_WORDS,
    are_alike,
    describes,
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
)

_NAMES = ("name", "title")


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

    def of_described_nodes(self, table: Table, is_relation: bool = True) -> tuple[str, str] | None:
        """Return the type of a table whose first column is a unique id, and which has names, whatever it is called.

        Beside other ids, the names must be called after the first: product_id, product_name, aisle_id. A column called
        name does if the table cannot hold a relation (`is_relation`): employee_id, name, manager_id, department_id.
        """
        first, *others = table.columns
        word, may_be_named = entity(first), not (is_relation and any(map(is_id, others)))
        named = any(describes(column, first) or (may_be_named and column.lower() in _NAMES) for column in others)
        if word is None or not is_id(first) or not named or not is_unique(table, first):
            return None
        return self.named(word) or word, first


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
def edge_plan(
    table: Table, ends: tuple[str, str], name: str, columns: tuple[str, str], weight: str | None = None, **how: Any
) -> EdgePlan:
    """Return the plan of the edges in two columns; what else is read of them is chosen when all relations are known."""
    roles = existing(source=columns[0], target=columns[1], weight=weight)
    return EdgePlan(Relation(ends[0], name, ends[1]), Selection(table, roles, **how))


def relation_of(table: Table, types: TypeNames) -> EdgePlan | None:
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
    return edge_plan(table, (source, target), name, columns, weight_column(table, columns), split=split)


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
    return not share_ids(table, columns) or all(map(table.has_numbers, columns))


def share_ids(table: Table, columns: tuple[str, str]) -> bool:
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

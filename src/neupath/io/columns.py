"""What the columns of a table hold, by their names and first values: ids, ends of edges, lists of nodes, attributes."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from weakref import WeakKeyDictionary

from neupath.errors import SourceError, did_you_mean, listed
from neupath.graph.edge_attributes import kept_type, names_time
from neupath.graph.notations import KIND_WORDS, format_problem, quoted
from neupath.io.plan import LISTS, Selection, parse_list
from neupath.io.tables import SAMPLE_ROWS, Table, TableFile
from neupath.io.text_files import is_number, unmarked
from neupath.io.values import attribute_name
from neupath.io.words import (
    END_PAIRS,
    END_ROLES,
    KINDS,
    LETTER_RELATIONS,
    MARKS,
    RELATIONS,
    TIMES,
    VAGUE,
    WEAK_END_PAIRS,
    WEAK_RELATIONS,
    describes,
    entity,
    is_backwards,
    is_id,
    is_identifier,
    is_key,
    is_measure,
    is_plural,
    name_words,
    singular,
    snake,
)


# ---- Names of tables beside their columns --------------------------------------------------------
def table_words(table: Table) -> list[str]:
    """Split the name of a table into words, without those at its ends that name no type and no column.

    In order_file, file is a type if a column is called file_id, or if there are only the columns order and file.
    """
    keys = [column for column in table.columns if is_key(column)] if table.has_header else []
    columns = keys or (table.columns if table.has_header and len(table.columns) == 2 else [])
    return name_words(table.name, [word for column in columns if (word := entity(column)) is not None])


# ---- The ends of edges ---------------------------------------------------------------------------
@dataclass(frozen=True)
class Ends:
    """The columns of a table whose rows are edges: two ids, perhaps with types and names, and the relation."""

    ids: tuple[str, str]
    types: tuple[str, str] | None = None
    names: tuple[str, str] | None = None
    relation: str | None = None
    other_ids: Sequence[tuple[str, str]] = ()
    half_typed: str | None = None
    """The type column of one end, where the other end has none."""
    rivals: Sequence[str] = field(default=())
    """Other columns that could be the ends as well."""


_ENDS: WeakKeyDictionary[Table, Ends | None] = WeakKeyDictionary()
"""What `find_ends` found before: many rules ask for it."""


def find_ends(table: Table) -> Ends | None:
    """Find the columns of the two ends by a pair of words such as head and tail; None if there is no such pair."""
    if table not in _ENDS:
        _ENDS[table] = _find_ends(table) if table.has_header else None
    return _ENDS[table]


def _find_ends(table: Table) -> Ends | None:
    words = {snake(column): column for column in table.columns if column}
    begins = {word[: match.start()] for word in words for match in re.finditer(r"_|$", word)}
    pairs = [pair for pair in (*END_PAIRS, *WEAK_END_PAIRS) if begins.issuperset(pair)]
    found = [ends for pair in pairs if (ends := _ends_of(pair, words, table)) is not None]
    if not found:
        return None
    typed = [ends for ends in found if ends.types]
    best, *others = typed or found
    rivals = [column for other in others for column in other.ids if column not in best.ids]
    return Ends(best.ids, best.types, best.names, best.relation, best.other_ids, best.half_typed, tuple(rivals))


def _ends_of(pair: tuple[str, str], words: dict[str, str], table: Table) -> Ends | None:
    roles = {role: _both(pair, suffixes, words) for role, suffixes in END_ROLES.items()}
    if not roles["id"]:
        return None
    letters = LETTER_RELATIONS.get(pair[0])
    relation_words = (*RELATIONS, *WEAK_RELATIONS, *(letters or ()))
    relation = next((words[word] for word in relation_words if word in words), None)
    several = sum(map(len, roles.values())) > 1
    bare = roles["id"][0] == (words.get(pair[0]), words.get(pair[1]))
    if letters is not None and bare and not several and not any(letter in words for letter in letters):
        return None
    labels = _both(pair, ("label",), words)
    types = next(iter(roles["type"] or (both for both in labels if _are_types(table, both, roles["id"][0]))), None)
    names = [both for both in roles["name"] if both not in roles["id"] and both != types]
    ids = list(roles["id"])
    plain = (words.get(pair[0]), words.get(pair[1]))
    if len(ids) > 1 and plain in ids and ids[0] != plain and not names:  # source beside source_id is its name
        names = [both for both in ids if both == plain]
    ids = [both for both in ids if both not in names]
    chosen = next((both for both in ids if _identifies(table, both, types, names[0] if names else None)), ids[0])
    half = [words[f"{end}_{suffix}"] for end in pair for suffix in END_ROLES["type"] if f"{end}_{suffix}" in words]
    others = [both for both in ids if both != chosen]
    return Ends(
        chosen, types, names[0] if names else None, relation, others, half[0] if half and types is None else None
    )


def _both(pair: tuple[str, str], suffixes: Sequence[str], words: dict[str, str]) -> list[tuple[str, str]]:
    """Return the pairs of columns that are the words of both ends with the same suffix."""
    names = [tuple(f"{end}_{suffix}" if suffix else end for end in pair) for suffix in suffixes]
    return [(words[first], words[second]) for first, second in names if first in words and second in words]


def _are_types(table: Table, labels: tuple[str, str], ids: tuple[str, str]) -> bool:
    """Whether columns called label hold types and not names: at most half as many different ones as ids."""
    distinct, nodes = ({cell for column in both for cell in table.sample[column]} for both in (labels, ids))
    return 2 * len(distinct) <= len(nodes)


def _identifies(
    table: Table, ids: tuple[str, str], types: tuple[str, str] | None, names: tuple[str, str] | None
) -> bool:
    """Whether no two names share an id of a type, as far as the first rows say."""
    if names is None:
        return True
    name_of: dict[tuple[str, str], str] = {}
    for end in (0, 1):
        kinds = table.sample[types[end]] if types else [""] * len(table.sample[ids[end]])
        for key, name in zip(zip(kinds, table.sample[ids[end]], strict=True), table.sample[names[end]], strict=True):
            if name and name_of.setdefault(key, name) != name:
                return False
    return True


def end_columns(table: Table, among: Sequence[str] | None = None) -> tuple[str, str] | None:
    """Return the two columns of a relation's table that hold ids: by their names, or else the first two of `among`."""
    if len(table.columns) < 2:
        return None
    if not table.has_header:
        return table.columns[0], table.columns[1]
    ends = find_ends(table)
    if ends is not None:
        return ends.ids
    if among is not None:
        return (among[1], among[0]) if is_backwards(among[0], among[1]) else (among[0], among[1])
    ids = [column for column in table.columns if is_key(column) and not is_identifier(re.sub("[Ii][Dd]$", "", column))]
    if len(ids) < 2:
        ids = [column for column in table.columns if is_key(column)]
    others = [column for column in table.columns if not is_measure(column) and snake(column) not in ("id", "")]
    texts = [column for column in others if not table.has_numbers(column)]
    if len(ids) == 2 and len([column for column in texts if others.index(column) < others.index(ids[0])]) > 1:
        others = ids = []  # as in movie, actor, director_id, genre_id: each may be an end
    first, *rest = ids if len(ids) == 2 else others or [""]
    rest = [column for column in rest if not describes(column, first) and not describes(first, column)]
    if not rest:
        return None
    return (rest[0], first) if is_backwards(first, rest[0]) else (first, rest[0])


def end_entities(table: Table, columns: tuple[str, str]) -> tuple[str | None, str | None]:
    """Return the entities that the two columns of a relation name; a pair such as source_id, target_id names none."""
    ends = find_ends(table)
    if ends is not None and ends.ids == columns:
        return None, None
    first, second = (None if (word := entity(column)) and word.lower() in VAGUE else word for column in columns)
    return first, second


def are_copies(table: Table, columns: tuple[str, str]) -> bool:
    """Whether one column is a copy of the other: called alike, as user_id and user_id_2, with the same first values."""
    first, second = (table.sample[column] for column in columns)
    name, other = sorted(map(snake, columns), key=len)
    return other.startswith(name) and len(first) > 2 and list(first) == list(second)


# ---- Lists in cells ------------------------------------------------------------------------------
_DELIMITERS = "|;,"
_LONGEST_PART = 60


def find_split(table: Table, column: str) -> str | None:
    """Return what is between the nodes that the cells of a column list, or None if they hold one each.

    A column of lists, or cells such as ["a", "b"], say so themselves. A delimiter counts if the name of the column is
    a plural, or if the cells have different numbers of parts and fewer distinct parts than there are distinct cells.
    """
    cells = [cell for cell in table.sample[column] if cell]
    if table.is_list(column):
        return LISTS
    if cells and all(parse_list(cell) is not None for cell in cells) and any(len(cell) > 2 for cell in cells):
        return LISTS
    plural = table.has_header and is_plural(unmarked(column))
    return next((mark for mark in _DELIMITERS if _is_list(cells, mark, plural)), None)


def _is_list(cells: Sequence[str], mark: str, plural: bool) -> bool:
    if not any(mark in cell for cell in cells):
        return False
    parts = [[part.strip() for part in cell.split(mark)] for cell in cells]
    flat = list(chain.from_iterable(parts))
    if len(flat) == len(cells) or any(len(part) > _LONGEST_PART for part in flat):
        return False
    if mark == "," and any(cell.count(",") and not re.search(r",\S|, \S", cell) for cell in cells):
        return False
    distinct, varied = len(set(flat)), len(set(map(len, parts))) > 1
    if plural and mark != ",":
        return True
    fewer = distinct < len(set(cells)) and 2 * distinct <= len(flat)
    return fewer and (plural or (varied and mark != ","))


def is_unique(table: Table, column: str) -> bool:
    """Whether all first values of a column differ."""
    cells = [cell for cell in table.sample[column] if cell]
    return len(set(cells)) == len(cells)


def holds_categories(table: Table, column: str) -> bool:
    """Whether the first values of a column are texts of which at least some occur again."""
    cells = [cell for cell in table.sample[column] if cell]
    return bool(cells) and not any(map(is_number, cells)) and len(set(cells)) < len(cells)


def holds_fractions(table: Table, column: str) -> bool:
    """Whether the first values of a column are decimal numbers, and not all whole, which no ids are.

    A decimal comma counts as well, but not in a column of ids or in the plural, which may list some: "12,15".
    """
    cells = [cell for cell in table.sample[column][:256] if cell]
    if table.has_header and not is_id(column) and not is_plural(column):
        cells = [cell.replace(",", ".") for cell in cells]
    decimal = all(re.fullmatch(r"[+-]?\d+(\.\d+)?", cell) for cell in cells)
    return decimal and any(float(cell) % 1 for cell in cells)


def holds_marks(table: Table, columns: Sequence[str]) -> bool:
    """Whether all first values of some columns only tick a box, as x and yes do."""
    cells = {cell.lower() for column in columns for cell in table.sample[column] if cell}
    return bool(cells) and cells <= MARKS


def is_constant(table: Table, column: str) -> bool:
    """Whether a column that is not called an id has one number in all first rows."""
    cells = table.sample[column]
    return table.has_header and not is_key(column) and len(cells) > 2 and len(set(cells)) == 1 and is_number(cells[0])


def holds_measures(table: Table, column: str) -> bool:
    """Whether the first values of a column are numbers or dates."""
    cells = [cell for cell in table.sample[column] if cell]
    return all(is_number(cell) or re.match(r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}", cell) for cell in cells)


def is_sampled_whole(table: Table) -> bool:
    """Whether the first values of a table are all its values."""
    return len(next(iter(table.sample.values()), ())) < SAMPLE_ROWS - 1


# ---- Triples without a header --------------------------------------------------------------------
def look_like_triples(tables: Sequence[Table], is_split: bool = False) -> bool:
    """Whether the rows of tables of three columns without a header are head, relation and tail.

    The columns hold no numbers, and few relations. What the relations join must be recognisable as entities, too: heads
    that are tails elsewhere, or ids with a namespace, or one relation for all rows. A table of films with their
    genre and director has none of this. In files called train or test it is not needed.
    """
    if any(table.has_header or len(table.columns) != 3 for table in tables):
        return False
    columns = [[table.sample[column] for column in table.columns] for table in tables]
    heads, relations, tails = (list(chain.from_iterable(each)) for each in zip(*columns, strict=True))
    if not heads or any(all(map(is_number, column)) for column in (heads, relations, tails)):
        return False
    kinds, ends, fewest = set(relations), {*heads, *tails}, min(len(set(heads)), len(set(tails)))
    shared = set(heads) & set(tails) - {""}
    if (not shared and len(kinds) >= fewest) or kinds & ends or heads == tails:
        return False
    few = 2 * len(kinds) <= len(relations) or (len(heads) < 20 and len(kinds) < len(ends) < 2 * len(heads))
    named = is_split or bool(shared) or len(kinds) == 1 or all(re.search(r"[:/]", end) for end in ends if end)
    return few and named


_MOST_PREFIXES = 64


def has_prefixed_ids(table: Table, columns: Iterable[str]) -> bool:
    """Whether every id in some columns has its type in front, as in Gene::2157, and the types are few."""
    ids = {cell for column in columns for cell in table.sample[column] if cell}
    prefixes = {cell.partition("::")[0] for cell in ids}
    if not ids or not all("::" in cell and not cell.startswith("::") for cell in ids):
        return False
    return len(prefixes) <= min(_MOST_PREFIXES, max(8, len(ids) // 4))


def few_types(table: Table, columns: Iterable[str]) -> bool:
    """Whether some columns hold few distinct values, as types of nodes do."""
    cells = [cell for column in columns for cell in table.sample[column] if cell]
    return len(set(cells)) <= max(8, min(1000, len(cells) // 2))


def likely_weight(table: Table, columns: Iterable[str]) -> str | None:
    """Return the column that may be the weight: the first with numbers that is called a measure, or else any."""
    numbers = [
        column
        for column in columns
        if not is_id(column)
        and not any(word in snake(column) for word in TIMES)
        and any(table.sample[column])
        and table.has_numbers(column)
    ]
    return next(filter(is_measure, numbers), next(iter(numbers), None))


def weight_column(table: Table, others: Iterable[str]) -> str | None:
    """Return the column called weight, unless it is one of the others."""
    return next((c for c in table.columns if c.lower() == "weight" and c not in {*others}), None)


def note_weight(selection: Selection, section: str | None, in_files: bool = True) -> list[str]:
    """Note an attribute of edges that may rather be their weight; `section` of graph.toml would say so."""
    names = selection.attributes
    column = None if "weight" in selection.columns else likely_weight(selection.table, names)
    if column is None:
        return []
    what = f"{listed(names, 8)} {'are attributes' if names[1:] else 'is an attribute'} of edges, and each edge weighs 1"
    if section is not None:
        kept = f"attributes = [{', '.join(map(quoted, names))}]" if len(names) <= 4 else "naming attributes"
        hint = f"weight = {quoted(column)} under {section} in graph.toml would make {column} the weight"
        hint += f", and {kept} there keeps it 1"
    elif in_files:
        hint = f"a column called weight would be the weight, as {column} may be"
    else:
        hint = f'(table, {{"weight": {quoted(column)}}}) instead of the table would make {column} the weight'
    return [f"{selection.table.label}: {what}; {hint}"]


# ---- Columns that name nodes of another type than their table ------------------------------------
def names_entities(table: Table, column: str) -> bool:
    """Whether a column names entities that occur again, or lists of them."""
    if entity(column) is None or column.lower() in KINDS or holds_fractions(table, column):
        return False
    return find_split(table, column) is not None or holds_categories(table, column)


def may_end_edges(table: Table, column: str) -> bool:
    """Whether a column may hold nodes of another type than its table, by its name or because values occur again."""
    word = entity(column)
    if word is None or is_measure(column):
        return False
    if is_key(column):
        return not is_identifier(word) or not is_unique(table, column)
    return names_entities(table, column) and not holds_measures(table, column)


def type_in_column(table: Table, column: str) -> str:
    """Return the type that a column is called after, in the singular where its cells are lists."""
    word = entity(column) or column
    return singular(word) if find_split(table, column) else word


# ---- Which columns become attributes of edges ----------------------------------------------------
_MOST_ATTRIBUTES = 64
_LONG_TEXT = 200
"""Letters that the texts of a column have on average from which on they are prose, and read only if graph.toml says."""
_WEIGHT_REASON = "weight is the name of the weight itself, and that is another column"


@dataclass(frozen=True)
class ChosenColumns:
    """The columns of a table that are attributes of its edges, and why others are not."""

    columns: Sequence[str] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)
    kinds: Mapping[str, str] = field(default_factory=dict)

    def notes(self, label: str) -> list[str]:
        """Return a note for each reason."""
        by_reason: dict[str, list[str]] = {}
        for column, reason in self.left_out.items():
            by_reason.setdefault(reason, []).append(column)
        return [f"{label}: {_were(columns)} left out: {reason}" for reason, columns in by_reason.items()]


def _were(columns: Sequence[str]) -> str:
    return f"the columns {listed(columns, 4)} were" if columns[1:] else f"the column {columns[0]} was"


def choose_columns(
    table: Table,
    taken: Iterable[str],
    weight: str | None = None,
    named: Sequence[str] | None = None,
    kinds: Mapping[str, str] | None = None,
) -> ChosenColumns:
    """Choose the attributes of edges: the `named` columns, or else all that are not `taken` and can be kept.

    The column of the weight is an attribute too, unless it is called weight: that name always stands for the weight.
    """
    words = checked_kinds(table, kinds or {})
    if named is not None:
        columns = [table.column(column, "attributes") for column in named]
        for column in columns:
            if column != weight and (reason := _why_not(table, column)):
                raise SourceError(f"{table.title}: {column} cannot be an attribute of edges: {reason}")
        columns = [column for column in columns if attribute_name(column) != "weight"]
        return ChosenColumns(columns, {}, {column: word for column, word in words.items() if column in columns})
    used = {*taken} - {weight}
    others = [column for column in table.columns if column and column not in used and not _is_weight(column, weight)]
    left_out = {c: why for c in others if c != weight and c not in words and (why := _why_left_out(table, c))}
    names = [attribute_name(column) for column in others]
    repeated = [column for at, column in enumerate(others) if names[at] in names[:at]]
    left_out |= dict.fromkeys(repeated, "another column has the same name")
    kept = [column for column in others if column not in left_out]
    too_many = f"edges have at most {_MOST_ATTRIBUTES} attributes unless graph.toml names them under attributes"
    left_out |= dict.fromkeys(kept[_MOST_ATTRIBUTES:], too_many)
    return ChosenColumns(kept[:_MOST_ATTRIBUTES], left_out, words)


def _is_weight(column: str, weight: str | None) -> bool:
    return column == weight and attribute_name(column).lower() == "weight"


def checked_kinds(table: Table, kinds: Mapping[str, str]) -> dict[str, str]:
    """Return what graph.toml says that columns are; raise if the table has no such column, or the word says nothing."""
    names = {attribute_name(column): column for column in table.columns}
    columns = {name: table.column(names.get(name, name), "attribute_types") for name in kinds}
    return {columns[name]: checked_kind(name, word) for name, word in kinds.items()}


def node_kinds(table: Table, kinds: Mapping[str, str], roles: Mapping[str, str]) -> dict[str, str]:
    """Return what graph.toml says that attributes of nodes are; raise if it says so of the id, name or type."""
    words = checked_kinds(table, kinds)
    for role, column in roles.items():
        if column in words:
            raise SourceError(
                f"attribute_types in graph.toml says that {column} is {words[column]!r}, but it is the {role} of the "
                f"nodes; name attributes only"
            )
    return words


def checked_kind(column: str, word: str) -> str:
    """Return what graph.toml says that a column is; raise if the word says nothing."""
    problem = format_problem(word) if "%" in word else None
    if problem is not None:
        raise SourceError(
            f"attribute_types in graph.toml says that {column} has the format {word!r}, but {problem}; write how a "
            f"date looks, such as '%d.%m.%Y' for 31.12.2019"
        )
    if word not in KIND_WORDS and "%" not in word:
        raise SourceError(
            f"attribute_types in graph.toml says that {column} is {word!r}; it can be {listed(KIND_WORDS, 11)} or a "
            f"format of dates such as '%d.%m.%Y'{did_you_mean(word, KIND_WORDS)}"
        )
    return word


def _why_left_out(table: Table, column: str) -> str | None:
    if attribute_name(column).lower() == "weight":
        return _WEIGHT_REASON
    if _describes_end(table, column):
        return "what describes an end is no attribute of the edge, unless attributes in graph.toml names it"
    if (reason := _why_not(table, column)) is not None:
        return reason
    cells = [cell for cell in table.sample[column] if cell]
    if sum(map(len, cells)) > _LONG_TEXT * max(1, len(cells)):
        return "its texts are long; attributes in graph.toml would read it"
    return None


def _why_not(table: Table, column: str) -> str | None:
    """Return why a column cannot be an attribute of edges, or None."""
    if attribute_name(column) == "weight":
        return _WEIGHT_REASON
    declared = table.declared_types([column], {}).get(column) if table.typed else None
    if declared is not None and kept_type(declared) is None:
        return f"its values are of type {declared}"
    return None


def _describes_end(table: Table, column: str) -> bool:
    """Whether a column belongs to an end: beside x_id and y_id, x_name does, and x_source beside y_source."""
    ends, word = find_ends(table), snake(column)
    if ends is None:
        return False
    begin, _, rest = word.partition("_")
    ours = [snake(each).partition("_")[0] for each in ends.ids]
    if begin not in ours or not rest or names_time(rest) or is_measure(rest):
        return False
    other = ours[1 - ours.index(begin)]
    return any(rest in words for words in END_ROLES.values()) or any(
        snake(each) == f"{other}_{rest}" for each in table.columns
    )


def declared_in(table: Table, section: str) -> str:
    """Return where `attribute_types` stands that is about a table, for notes."""
    if isinstance(table, TableFile):
        return f"under {section} in graph.toml"
    return 'beside its table, as (table, {"attribute_types": …})'

"""Which columns of a table become attributes of its edges."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from neupath.errors import SourceError, did_you_mean, listed
from neupath.graph.edge_attributes import kept_type, names_time
from neupath.graph.notations import KIND_WORDS, format_problem
from neupath.io.columns import find_ends
from neupath.io.tables import Table, TableFile
from neupath.io.values import attribute_name
from neupath.io.words import END_ROLES, is_measure, snake

# ---- Which columns ------------------------------------------------------------------------------
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

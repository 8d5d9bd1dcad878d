"""Tables of the corpus with their columns and files changed: each gives the known graph or one sentence.

A case changes the tables of a source once or twice: columns change their order or their names, are dropped, doubled or
added, the header goes, the delimiter or the file's name changes. The roles of the columns tell which graph the changed
tables still describe. Types and relations may have other names, because headers and file names give them. The outcomes:
`right`; `refused` with one sentence; `noted`, if something is missing and a note names its file or column; `wrong`;
`crashed`.
"""

import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import combinations, product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import numpy as np

from neupath import HIN
from neupath.errors import NeuPathError
from neupath.io.values import attribute_name
from tests.io.corpus import TEXTS
from tests.io.corpus.frame import Column, Sample, Table, edges_of, names_of, read, with_tables

Ends = tuple[str, str]
Edges = Mapping[Ends, float]
Rng = np.random.Generator


# ---- Changes -------------------------------------------------------------------------------------
_SYNONYMS: Final = {
    "source": ("source", "src", "from", "head", "subject", "start_id"),
    "target": ("target", "dst", "to", "tail", "object", "end_id"),
    "relation": ("relation", "predicate", "rel", "edge_type", "type"),
    "source type": ("source_type", "head_type", "subject_category", "x_type"),
    "target type": ("target_type", "tail_type", "object_category", "y_type"),
    "source name": ("source_name", "head_name", "subject_label", "x_name"),
    "target name": ("target_name", "tail_name", "object_label", "y_name"),
    "weight": ("weight", "Weight", "strength", "count"),
    "id": ("id", "ID", "node_id", "key"),
    "type": ("type", "kind", "node_type", "category", "label"),
    "name": ("name", "title", "label", "Name"),
}
"""What people call a column of a role; one with a type of its own is named after that."""
_TYPED: Final = ("{}", "{}_id", "{}Id", "{}ID", "{} id", "{}s")
_ODD: Final = ("col1", "xyz", "Unnamed: 3", "foo bar", "Größe", "V2", "field_7", "a.b", "-", "x")
_EXTRAS: Final[dict[str, Callable[[int], str]]] = {
    "created_at": lambda row: f"2024-03-{row % 28 + 1:02}T10:00:00",
    "score": lambda row: f"0.{row % 7 + 1}5",
    "comment": lambda row: f"seen by reader number {row}, twice",
    "batch": lambda _: "17",
    "flag": lambda row: ("yes", "no")[row % 2],
    "empty": lambda _: "",
    "row_number": lambda row: str(row + 1),
}
_FILES: Final = ("data", "export_2024", "My Data", "x", "table1", "final-version(2)")


def reorder(table: Table, rng: Rng) -> Table:
    return replace(table, columns=tuple(table.columns[int(i)] for i in rng.permutation(len(table.columns))))


def rename(table: Table, rng: Rng) -> Table:
    """Give a column another name that people use for what it holds."""
    position = _any(rng, range(len(table.columns)))
    column = table.columns[position]
    role, _, kind = column.role.partition(":")
    names = [pattern.format(kind) for pattern in _TYPED] if kind else _SYNONYMS.get(role, ("notes", "misc"))
    return _renamed(table, position, str(_any(rng, names)))


def rename_oddly(table: Table, rng: Rng) -> Table:
    return _renamed(table, _any(rng, range(len(table.columns))), str(_any(rng, _ODD)))


def drop(table: Table, rng: Rng) -> Table:
    position = _any(rng, range(len(table.columns)))
    return _with(table, [column for place, column in enumerate(table.columns) if place != position])


def duplicate(table: Table, rng: Rng) -> Table:
    """Add a copy of a column, with the same header or a number after it."""
    column = _any(rng, table.columns)
    header = column.header + str(_any(rng, ("", ".1", "_2", " copy")))
    return _inserted(table, Column(header, f"copy:{column.role}", column.cells), rng)


def remove_header(table: Table, _: Rng) -> Table:
    return replace(table, has_header=False)


def add_column(table: Table, rng: Rng) -> Table:
    header = str(_any(rng, list(_EXTRAS)))
    cells = tuple(_EXTRAS[header](row) for row in range(len(table.rows)))
    return _inserted(table, Column(header, "extra", cells), rng)


def change_delimiter(table: Table, rng: Rng) -> Table:
    return replace(table, delimiter=str(_any(rng, [d for d in ",;\t|" if d != table.delimiter])))


def rename_file(table: Table, rng: Rng) -> Table:
    stem, dot, suffix = table.file.partition(".")
    names = [*_FILES, stem.upper(), f"{stem}_v2", f"all_{stem}"]
    return replace(table, file=str(_any(rng, names)) + dot + suffix)


CHANGES: Final = {
    change.__name__: change
    for change in (
        reorder, rename, rename_oddly, drop, duplicate, remove_header, add_column, change_delimiter, rename_file,
    )
}  # fmt: skip


def _any(rng: Rng, options: Sequence[Any]) -> Any:
    return options[int(rng.integers(len(options)))]


def _with(table: Table, columns: Sequence[Column]) -> Table:
    return replace(table, columns=tuple(columns))


def _renamed(table: Table, position: int, header: str) -> Table:
    columns = list(table.columns)
    columns[position] = replace(columns[position], header=header)
    return _with(table, columns)


def _inserted(table: Table, column: Column, rng: Rng) -> Table:
    columns = list(table.columns)
    columns.insert(int(rng.integers(len(columns) + 1)), column)
    return _with(table, columns)


def change_tables(tables: Sequence[Table], rng: Rng) -> tuple[list[str], list[Table]]:
    """Change one or two things; return what, and the changed tables."""
    changed, names = list(tables), []
    for _ in range(int(rng.integers(1, 3))):
        place, name = _any(rng, range(len(changed))), str(_any(rng, list(CHANGES)))
        table = CHANGES[name](changed[place], rng)
        others = {each.file for each in changed} - {changed[place].file}
        if not table.columns or table.file in others or _is_another(table):
            continue
        changed[place] = table
        names.append(f"{name} in {tables[place].file}")
    return names, changed


def _is_another(table: Table) -> bool:
    """Whether a change makes a table that rightly reads as something else, because position says what its columns are.

    These are the first column of a wide table, the first two of a relation without a header, and three columns without
    a header, of which a new one may be the relation.
    """
    roles = [column.role.partition(":")[0] for column in table.columns]
    if not table.has_header and len(roles) == 3 and "extra" in roles and {"source", "target"} & set(roles):
        return True
    if "first" in roles or "other" in roles:
        return roles[0] in ("extra", "copy")
    is_relation = "relation" not in roles and {"source", "target", "weight"} & set(roles)
    is_typed = any(column.role.startswith("source:") for column in table.columns)
    ends = [["source", "target"]] if is_typed else [["source", "target"], ["target", "source"]]
    return bool(is_relation) and not table.has_header and roles[:2] not in ends


# ---- The graph that tables describe --------------------------------------------------------------
@dataclass
class KnownRelation:
    """The edges between two types; `words` are the file and the headers that a note about its loss may name."""

    ends: Ends
    edges: dict[Ends, float]
    words: set[str]
    may_turn: bool
    """Whether the tables do not say which end is the source."""
    may_miss: bool = False
    """Whether the tables no longer say that there are edges."""
    weight_words: set[str] = field(default_factory=set)
    """The name of the weight column, if the tables no longer say that it is one."""

    def add(self, ends: Ends, weight: float) -> None:
        self.edges[ends] = self.edges.get(ends, 0.0) + weight


@dataclass
class KnownGraph:
    """What tables describe: the nodes of each type with their names, the relations, and what must be noted."""

    nodes: dict[str, dict[str, str | None]] = field(default_factory=dict)
    relations: dict[tuple[str, str, str], KnownRelation] = field(default_factory=dict)
    to_note: list[set[str]] = field(default_factory=list)
    """For each thing that is missing, the words of which a note must name one."""
    names_may_miss: bool = False
    names_may_differ: bool = False
    name_words: dict[str, set[str]] = field(default_factory=dict)
    """The files and headers of the names of each type."""

    def add_node(self, node_type: str, node_id: str, name: str | None = None) -> None:
        names = self.nodes.setdefault(node_type, {})
        names[node_id] = names.get(node_id) or name


@dataclass(frozen=True)
class Reading:
    """One way to read tables: which column takes the place of a missing id, and what is not read."""

    left_out: tuple[int, ...] = ()
    """The tables that are not read."""
    same: bool = False
    """Ids from the columns that could take their place."""
    merge_types: bool = False
    merge_relations: bool = False
    new_types: bool = False
    """An end whose column has a strange name is of a type of its own."""
    join_keys: bool = False
    """A table with two keys is a relation between them, whether it has ids or not."""


class Described:
    """The graphs that changed tables describe, compared with the tables before the change."""

    def __init__(self, tables: Sequence[Table], originals: Sequence[Table]) -> None:
        self.tables = tables
        self._headers = [{column.role: column.header for column in table.columns} for table in originals]
        self._files = [table.file for table in originals]
        self._had_header = [table.has_header for table in originals]

    def graphs(self) -> Iterator[KnownGraph]:
        """Yield the graphs that are right, then those that need a note."""
        for left_out in (some for count in range(3) for some in combinations(range(len(self.tables)), count)):
            for choice in sorted(product((False, True), repeat=5), key=sum):
                with suppress(LookupError):
                    yield self._graph(Reading(left_out, *choice))

    def _graph(self, reading: Reading) -> KnownGraph:
        graph = KnownGraph()
        self._types: dict[str, str] = {}
        tables = [(place, table) for place, table in enumerate(self.tables) if place not in reading.left_out]
        graph.to_note += [self._words(place, self.tables[place]) for place in reading.left_out]
        joins = {place for place, table in tables if reading.join_keys and len(_keys(table)) == 2}
        for place, table in tables:
            if place in joins:
                continue
            if _column(table, "id") is not None or (reading.same and _column(table, "same:id") is not None):
                self._add_nodes(graph, place, table, reading)
        for place, table in tables:
            roles = {column.role.partition(":")[0] for column in table.columns}
            if place in joins:
                self._add_join(graph, place, table)
            elif table.columns[0].role.partition(":")[0] in ("first", "other"):
                self._add_wide(graph, table)
            elif self._end(table, "source", reading) and self._end(table, "target", reading):
                self._add_edges(graph, place, table, reading)
            elif not roles & {"id"}:
                graph.to_note.append(self._words(place, table))
        if not graph.relations:
            raise LookupError("the tables describe no edges")
        return graph

    # -- nodes
    def _add_nodes(self, graph: KnownGraph, place: int, table: Table, reading: Reading) -> None:
        ids = _column(table, "same:id") if reading.same else _column(table, "id")
        if ids is None:
            raise LookupError("no ids")
        names, types = _column(table, "name"), _column(table, "type")
        own = _kind(ids) if not reading.same else ""
        if types is not None and reading.merge_types:
            graph.to_note.append({types.header, table.file})
        graph.names_may_miss |= names is not None and self._changed(place, table, names)
        if not table.has_header and names not in table.columns[1:2]:
            names = None  # the second column of a node table without a header is the name
            graph.names_may_differ = True
        for row, node_id in enumerate(ids.cells):
            node_type = own or "node"
            if types is not None and not reading.merge_types:
                node_type = types.cells[row]
            elif not own and types is None and "::" in node_id and not reading.merge_types:
                node_type = node_id.partition("::")[0]
            self._types[node_id] = node_type
            graph.add_node(node_type, node_id, names.cells[row] if names else None)
            graph.name_words[node_type] = {table.file, _called(table, names) if names else ""}
        self._add_keys(graph, place, table, ids)

    def _add_keys(self, graph: KnownGraph, place: int, table: Table, ids: Column) -> None:
        own = _kind(ids)
        for column in table.columns:
            role, _, kind = column.role.partition(":")
            if role not in ("key", "list"):
                continue
            relation = graph.relations.setdefault((own, column.header, kind), KnownRelation(
                (own, kind), {}, {column.header, table.file}, True, may_miss=self._changed(place, table, column)
            ))  # fmt: skip
            for node_id, cell in zip(ids.cells, column.cells, strict=True):
                for value in _listed(cell) if role == "list" else filter(None, [cell]):
                    graph.add_node(kind, value)
                    relation.add((node_id, value), 1.0)

    def _add_join(self, graph: KnownGraph, place: int, table: Table) -> None:
        first, second = _keys(table)
        ends = _kind(first), _kind(second)
        relation = graph.relations[ends[0], table.file, ends[1]] = KnownRelation(
            ends, {}, self._words(place, table), True
        )
        for pair in zip(first.cells, second.cells, strict=True):
            if all(pair):
                graph.add_node(ends[0], pair[0])
                graph.add_node(ends[1], pair[1])
                relation.add(pair, 1.0)

    # -- edges
    def _end(self, table: Table, end: str, reading: Reading) -> Column | None:
        return _column(table, f"same:{end}") if reading.same else _column(table, end)

    def _add_edges(self, graph: KnownGraph, place: int, table: Table, reading: Reading) -> None:
        ends = [self._end(table, end, reading) for end in ("source", "target")]
        if ends[0] is None or ends[1] is None:
            raise LookupError("no ends")
        labels, weights = _column(table, "relation"), _column(table, "weight")
        kinds = [_column(table, f"{end} type") for end in ("source", "target")]
        if (kinds[0] is None) != (kinds[1] is None) or (reading.merge_types and kinds[0] is not None):
            graph.to_note.append({table.file, *(kind.header for kind in kinds if kind is not None)})
            kinds = [None, None]
        if labels is not None and reading.merge_relations:
            graph.to_note.append({labels.header, table.file})
            labels = None
        names = [_column(table, f"{end} name") for end in ("source", "target")]
        graph.names_may_miss |= any(name is not None and self._changed(place, table, name) for name in names)
        typed = [self._typed(place, table, end, reading) for end in ends if end is not None]
        may_turn = bool(typed[0]) and typed[0] != typed[1]
        positional = any(self._changed(place, table, end) for end in ends if end is not None)
        for row, pair in enumerate(zip(ends[0].cells, ends[1].cells, strict=True)):
            types = [
                own or (kind.cells[row] if kind else "") or self._type_of(node_id, reading)
                for own, kind, node_id in zip(typed, kinds, pair, strict=True)
            ]
            for node_type, node_id, name in zip(types, pair, names, strict=True):
                graph.add_node(node_type, node_id, name.cells[row] if name else None)
                if name is not None:
                    graph.name_words[node_type] = {table.file, _called(table, name)}
            label = labels.cells[row] if labels else table.file
            relation = graph.relations.setdefault((types[0], label, types[1]), KnownRelation(
                (types[0], types[1]), {}, self._words(place, table), positional or may_turn,
                weight_words={_called(table, weights)} if weights and self._changed(place, table, weights) else set(),
            ))  # fmt: skip
            relation.add(pair, float(weights.cells[row]) if weights else 1.0)

    def _typed(self, place: int, table: Table, end: Column, reading: Reading) -> str:
        """Return the type that the role of an end names."""
        own = _kind(end)
        if not own or reading.same:
            return ""
        name = end.header if table.has_header else table.file
        is_strange = own.lower() not in name.lower() and self._changed(place, table, end)
        return f"{name} {end.role}" if reading.new_types and is_strange else own

    def _type_of(self, node_id: str, reading: Reading) -> str:
        if self._types:
            if node_id not in self._types:
                raise LookupError("an edge leads to a node that the node table does not have")
            return self._types[node_id]
        prefix, found, _ = node_id.partition("::")
        return prefix if found and not reading.merge_types else "node"

    def _add_wide(self, graph: KnownGraph, table: Table) -> None:
        first = table.columns[0]
        start = _kind(first)
        for column in table.columns[1:]:
            role, _, kind = column.role.partition(":")
            if role not in ("first", "other"):
                continue
            relation = KnownRelation((start, kind), {}, {column.header, table.file}, True)
            for pair in dict.fromkeys(zip(first.cells, column.cells, strict=True)):
                graph.add_node(start, pair[0])
                graph.add_node(kind, pair[1])
                relation.add(pair, 1.0)
            graph.relations[start, column.header, kind] = relation

    # -- what was changed
    def _changed(self, place: int, table: Table, column: Column) -> bool:
        """Whether a column lost the name that said what it holds, or never had one."""
        return not table.has_header or column.header != self._headers[place].get(column.role)

    def _words(self, place: int, table: Table) -> set[str]:
        return {table.file, self._files[place]}


def _column(table: Table, role: str) -> Column | None:
    """Return the column of a role, whatever its type, or a copy of it."""
    roles = (role, f"copy:{role}")
    return next((c for r in roles for c in table.columns if c.role == r or c.role.startswith(f"{r}:")), None)


def _called(table: Table, column: Column) -> str:
    """Return what notes call a column: its header or its number."""
    return column.header if table.has_header else str(table.columns.index(column) + 1)


def _kind(column: Column) -> str:
    """Return the node type that the role of a column names, or an empty text."""
    return column.role.removeprefix("copy:").partition(":")[2]


def _keys(table: Table) -> list[Column]:
    return [column for column in table.columns if column.role.startswith("key:")]


def _listed(cell: str) -> list[str]:
    return [part.strip(' "[]') for part in cell.replace("|", ",").split(",") if part.strip(' "[]')]


# ---- Comparison ----------------------------------------------------------------------------------
def judge(hin: HIN, tables: Sequence[Table], originals: Sequence[Table]) -> str:
    """Return "right", "noted", or what is wrong with a graph."""
    described = Described(tables, originals)
    problem = "the tables no longer describe a graph"
    for graph in described.graphs():
        losses = _compare(hin, graph, tables)
        if isinstance(losses, str):
            problem = losses if problem.startswith("the tables") else problem
            continue
        unsaid = [words for words in (*graph.to_note, *losses) if not _is_noted(hin, words)]
        if not unsaid:
            return "noted" if graph.to_note or losses else "right"
        problem = f"no note names {sorted(unsaid[0])}"
    return problem


def _is_noted(hin: HIN, words: set[str]) -> bool:
    """Whether a note names a column, or says of a file that it was left out, or that its nodes have no types."""
    files = [re.escape(word) for word in words if word.endswith((".csv", ".tsv", ".txt", ".dat", ".gz"))]
    patterns = [rf"{file}( was left out|: no relation|.* and \d+ more were left out|.*\btypes?\b)" for file in files]
    patterns += [rf"(?<!\w){re.escape(word)}(?!\w)" for word in words if word and re.escape(word) not in files]
    return any(re.search(pattern, note) for pattern in patterns for note in hin.notes)


def _compare(hin: HIN, graph: KnownGraph, tables: Sequence[Table]) -> list[set[str]] | str:
    """Return the words of what is missing from a graph, or in what it differs from the known one."""
    problem = "no types fit"
    for types in _matchings(hin, graph):
        losses = _compare_with(hin, graph, types, tables)
        if not isinstance(losses, str):
            return losses
        problem = losses
    return problem


def _matchings(hin: HIN, graph: KnownGraph) -> Iterator[dict[str, str]]:
    """Yield the ways to match known types with those of a graph, whose nodes must be among the known ones."""
    ids = {kind: set(map(str, nodes.ids.to_pylist())) for kind, nodes in hin.nodes.items()}
    kinds = list(graph.nodes)
    fitting = [[k for k in ids if ids[k] <= set(graph.nodes[kind])] for kind in kinds]
    fitting = [sorted(own, key=lambda k: -len(ids[k])) or [""] for own in fitting]
    for choice in product(*fitting):
        used = [kind for kind in choice if kind]
        if len(used) == len(set(used)):
            yield dict(zip(kinds, choice, strict=True))


def _compare_with(
    hin: HIN, graph: KnownGraph, types: Mapping[str, str], tables: Sequence[Table]
) -> list[set[str]] | str:
    losses: list[set[str]] = []
    left = dict.fromkeys(hin.matrices)
    for relation in graph.relations.values():
        ends = tuple(types[end] for end in relation.ends)
        match = next((m for m in left if _fit(hin, m, ends, relation) is not None), None)
        if match is None:
            is_mirror = any(_is_mirror(relation, other) for other in graph.relations.values() if other is not relation)
            if not relation.may_miss and not is_mirror:
                losses.append(relation.words)
            continue
        left.pop(match)
        losses += [relation.weight_words] if _fit(hin, match, ends, relation) == "counted" else []
    extra = [match for match in left if not _is_extra(hin, match, tables)]
    if extra:
        return f"relation '{extra[0]}' is not in the tables: {edges_of(hin, extra[0])}"
    strangers = {end for match in left for end in (match.source, match.target)}
    for unknown in set(hin.nodes) - set(types.values()) - strangers:
        ids = set(map(str, hin.nodes[unknown].ids.to_pylist()))
        alone = [table for table in tables if any(set(column.cells) == ids for column in table.columns)]
        if not alone:
            return f"node type {unknown!r} is not in the tables"
        losses.append({alone[0].file})
    for kind, own in types.items():
        problem = _compare_nodes(hin, graph, kind, own)
        if problem:
            return problem
        if own and not graph.names_may_miss and any(graph.nodes[kind].values()) and not names_of(hin, own):
            losses.append(graph.name_words.get(kind, set()))
    return losses


def _fit(hin: HIN, match: Any, ends: tuple[str, ...], relation: KnownRelation) -> str | None:
    """Return whether the edges of a relation are the known ones, with their weights or without ("counted")."""
    read = edges_of(hin, match)
    turned = {(b, a): weight for (a, b), weight in read.items()}
    if not match.directed:
        read = turned = read | turned
    own = dict(relation.edges)
    if not match.directed:
        own |= {(b, a): weight for (a, b), weight in own.items()}
    ways = [read] if (match.source, match.target) == ends else []
    if (match.target, match.source) == ends and (relation.may_turn or not match.directed):
        ways.append(turned)
    if own in ways:
        return "weighted"
    counted = any(way.keys() == own.keys() and set(way.values()) == {1.0} for way in ways)
    return "counted" if counted and relation.weight_words else None


def _is_mirror(relation: KnownRelation, other: KnownRelation) -> bool:
    """Whether one relation repeats another backwards, so that a reader may leave it out."""
    return {(b, a): weight for (a, b), weight in relation.edges.items()} == other.edges


def _is_extra(hin: HIN, match: Any, tables: Sequence[Table]) -> bool:
    """Whether a relation comes from a column that was added or doubled and may hold ids."""
    targets = {target for _, target in edges_of(hin, match)}
    return any(
        targets <= {*column.cells, *(part for cell in column.cells for part in _listed(cell))}
        for table in tables
        for column in table.columns
        if column.role.startswith(("copy:key", "copy:list", "copy:other"))
        or (column.role == "extra" and any(c.role.startswith("first") for c in table.columns))
    )


def _compare_nodes(hin: HIN, graph: KnownGraph, kind: str, own: str) -> str | None:
    known = graph.nodes[kind]
    if not own:
        return None
    lost = set(known) - set(map(str, hin.nodes[own].ids.to_pylist()))
    if lost:
        return f"{len(lost)} nodes of {own} are missing, such as {min(lost)!r}"
    names = names_of(hin, own)
    for node_id, name in known.items():
        read = names.get(node_id)
        if name is not None and read != name and names and not (graph.names_may_miss and read in (None, node_id)):
            return f"{own} {node_id!r} is called {read!r}, not {name!r}"
        if name is None and read not in (None, node_id) and not graph.names_may_differ:
            return f"{own} {node_id!r} is called {read!r}, but has no name"
    return None


# ---- Attacking -----------------------------------------------------------------------------------
def attack_layouts(count: int, seed: int = 0) -> dict[str, Any]:
    """Read `count` changed sources; return how many came out how, and what was wrong."""
    outcomes = [(number, *try_case(number, seed)) for number in range(count)]
    bad = [f"{number} {name}: {kind}: {what}" for number, name, kind, what in outcomes if kind in ("wrong", "crashed")]
    kinds = Counter(kind for _, _, kind, _ in outcomes)
    return {kind: kinds[kind] for kind in ("right", "refused", "noted", "wrong", "crashed")} | (
        {"bad": bad} if bad else {}
    )


def try_case(number: int, seed: int = 0) -> tuple[str, str, str]:
    """Change one source and read it; return its name, the outcome, and what happened."""
    rng = np.random.default_rng([seed, number])
    with TemporaryDirectory() as parent:
        name = str(_any(rng, _NAMES))
        original, folder = Path(parent) / "original", Path(parent) / "changed"
        original.mkdir()
        folder.mkdir()
        sample = TEXTS[name].write(original)
        changes, tables = change_tables(sample.tables, rng)
        changed = with_tables(sample, folder, tables)
        kind, what = _try(changed, sample.tables)
    return name, kind, f"{' and '.join(changes)}: {what}".replace(f"{folder}/", "")


def _try(sample: Sample, originals: Sequence[Table]) -> tuple[str, str]:
    try:
        hin = read(sample)
    except NeuPathError as error:
        return ("refused", str(error)) if str(error).strip() else ("crashed", repr(error))
    except Exception as error:
        return "crashed", f"{type(error).__name__}: {error}"[:300]
    verdict = judge(hin, sample.tables, originals)
    if (problem := _wrong_attributes(hin, sample.tables)) is not None:
        return "wrong", problem
    return (verdict, "") if verdict in ("right", "noted") else ("wrong", verdict)


def _wrong_attributes(hin: HIN, tables: Sequence[Table]) -> str | None:
    """Return an attribute of an edge that no row of a table has beside the ends of the edge, or None."""
    rows: dict[str, Counter[tuple[str, str, str]]] = {}
    for table in tables:
        for number, column in enumerate(table.columns):
            name = attribute_name(column.header if table.has_header else str(number + 1))
            known = rows.setdefault(name, Counter())
            for row in table.rows:
                cells = {cell.strip() for cell in row} | {part for cell in row for part in _listed(cell)}
                known.update((one, other, _as_read(row[number])) for one in cells for other in cells)
    for relation, edges in hin.edge_tables.items():
        ids = [list(map(str, hin.nodes[end].ids.to_pylist())) for end in (relation.source, relation.target)]
        for name, kind in hin.edge_kinds(relation).items():
            values = edges.attributes[name].to_pylist() if kind in ("integer", "number", "text") else []
            for source, target, value in zip(edges.sources.tolist(), edges.targets.tolist(), values, strict=False):
                ends = (ids[0][source], ids[1][target])
                if value is not None and name in rows and not rows[name][(*ends, _as_read(str(value)))]:
                    return f"{name} of the edge {ends} is {value!r}, which no row says"
    return None


def _as_read(cell: str) -> str:
    """Return a cell in one spelling: numbers as floats."""
    try:
        return str(float(cell))
    except ValueError:
        return cell.strip()


with TemporaryDirectory() as _folder:
    _NAMES: Final = [name for name, each in TEXTS.items() if each.write(Path(_folder)).tables]


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        print(*try_case(int(argument)), sep=": ")

"""Read the tables of a database as a Plan: tables with a key are node types, and foreign keys are relations.

`database_drivers` opens databases and reads their rows, all in one read-only transaction, so that they fit together.
This module says what the tables are, and resolves what only databases have: keys of several columns, foreign keys that
refer to another column than the key, and rows with keys instead of line numbers.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import chain, count
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neupath._runtime.progress import Progress
from neupath.errors import SourceError, did_you_mean, listed
from neupath.graph.hin import Duplicates
from neupath.graph.metapath import Relation
from neupath.graph.notations import quoted, toml_key
from neupath.io.columns import checked_kind, choose_columns
from neupath.io.detect import options_of
from neupath.io.formats.database_drivers import Database, DatabaseTable, ForeignKey, as_spelled, open_database
from neupath.io.graph_toml import Config, NodesConfig
from neupath.io.ids import clean_ids, unknown_end
from neupath.io.plan import EdgePlan, NodePlan, Plan, ReadOptions, Selection, existing
from neupath.io.tables import ArrowTable
from neupath.io.words import (
    are_alike,
    entity,
    is_own_role,
    singular,
    singulars,
    split_words,
    usual_name,
)


# ---- Reading a database --------------------------------------------------------------------------
@dataclass(frozen=True)
class TableChoice:
    """The tables of a database to read: of one schema, by default its own, and by name, by default all."""

    schema: str | None = None
    tables: str | Sequence[str] | None = None
    """Names, or one text with commas."""

    @property
    def names(self) -> list[str] | None:
        if self.tables is None:
            return None
        names = self.tables.split(",") if isinstance(self.tables, str) else self.tables
        return [name.strip() for name in names]


def read_database(
    source: str | Path,
    choice: TableChoice,
    settings: Config,
    duplicates: Duplicates | None,
    progress: Progress,
) -> Plan:
    """Read the tables of a database, and say what they hold.

    Parameters
    ----------
    source
        The URL of a database, or the file of a SQLite or DuckDB database.
    choice
        Which tables to read.
    settings
        A graph.toml, which names tables as files.
    duplicates
        What parallel edges mean, as in `load`.
    progress
        Called with the stage and how many rows are read.

    """
    with open_database(source, choice.schema) as database:
        tables, notes = _choose_tables(database, choice.names, settings)
        layout = Layout(tables, settings)
        if not layout.edges:
            raise _no_relation(database.title, tables)
        options = replace(options_of(settings, duplicates), notes=[*notes, *layout.notes])
        rows = {}
        for table in tables:
            ids, others = layout.columns(table)
            columns = [column for column in table.columns if column in ids | others]
            if columns:
                rows[table.name] = _with_clean_ids(database.read(table, columns, ids, progress), ids, options)
    return _make_plan(layout, rows, database.title, options)


def _choose_tables(
    database: Database, names: list[str] | None, settings: Config
) -> tuple[list[DatabaseTable], list[str]]:
    """Return the tables to read, the named ones or else all but views, and notes on what is left out."""
    by_name = {table.name: table for table in sorted(database.tables, key=lambda table: table.name)}
    tables = [_with_spelled_keys(table, by_name) for table in by_name.values()]
    if not tables:
        others = [name for name in database.schemas if name not in (database.schema, "information_schema")]
        hint = f" in this schema; choose one of {listed(others)} with ‹schema›" if others else ""
        raise SourceError(f"{database.title} has no tables{hint}")
    notes = []
    if names is None:
        kept = [table for table in tables if table.name not in settings.ignore]
        views = [table.name for table in kept if table.is_view and table.name not in settings.files]
        notes += _note(views, "view", "a view has no keys; name it in `tables` to read it by its column names")
        chosen = [table for table in kept if table.name not in views]
    else:
        wanted = as_spelled(names, by_name)
        for name in wanted:
            if name not in by_name:
                raise SourceError(
                    f"{database.title} has no table {name!r} (it has {listed(by_name)}){did_you_mean(name, by_name)}",
                    parameter="tables",
                    allowed=by_name,
                )
        chosen = [table for table in tables if table.name in wanted]
    why = "such values are computed as they are read; keep them in a plain column, or a STORED one of SQLite"
    for table in chosen:
        notes += _note(table.computed, "generated column", why, f" of the table {table.name}")
    return chosen, notes


def _with_spelled_keys(table: DatabaseTable, tables: Mapping[str, DatabaseTable]) -> DatabaseTable:
    """Return a table with its foreign keys in order, spelled as the tables are: in SQLite case makes no difference."""
    keys = []
    for fk in table.foreign_keys:
        (name,) = as_spelled([fk.table], tables)
        other = tables.get(name)
        referred = as_spelled(fk.referred or other.key, other.columns) if other else fk.referred
        keys.append(ForeignKey(as_spelled(fk.columns, table.columns), name, referred))
    places = {column: place for place, column in enumerate(table.columns)}
    keys = [fk for fk in dict.fromkeys(keys) if places.keys() >= {*fk.columns}]
    return replace(table, foreign_keys=tuple(sorted(keys, key=lambda fk: places[fk.columns[0]])))


def _note(names: Sequence[str], what: str, why: str, of: str = "") -> list[str]:
    if not names:
        return []
    return [f"the {what}{'s' * (len(names) > 1)} {listed(names)}{of} {'were' if names[1:] else 'was'} left out: {why}"]


def _no_relation(title: str, tables: Sequence[DatabaseTable]) -> SourceError:
    names = {table.name for table in tables}
    missing = {fk.table: table.name for table in tables for fk in table.foreign_keys if fk.table not in names}
    if missing:
        return SourceError(
            f"no two tables that are read are joined: {listed(sorted({*missing.values()}))} of {title} refer to "
            f"{listed(sorted(missing))}; read these as well (‹tables›, ‹schema›)"
        )
    seen = listed((f"{table.name} ({listed(table.columns, 4)})" for table in tables), 4)
    return SourceError(
        f"no foreign key joins two tables of {title}, and no names of columns show one, as venue_id and a table venues "
        f"with a key do: {seen}; declare the foreign keys, or give a graph.toml (‹config›) such as "
        f"{_suggested_toml(tables)}"
    )


def _suggested_toml(tables: Sequence[DatabaseTable]) -> str:
    """Return a line of graph.toml that reads two columns of a table as edges, those called ids where there are two."""

    def is_id(column: str) -> bool:
        return entity(column) not in (None, column)

    table = max(tables, key=lambda each: (sum(map(is_id, each.columns)) >= 2, len(each.columns) >= 2))
    columns = (sorted(table.columns, key=is_id, reverse=True) * 2)[:2]
    source, target = (singular(entity(column) or table.name) for column in columns)
    text = {"name": table.name, "file": table.name, "source": source, "target": target}
    pairs = ", ".join(f"{key} = {quoted(value)}" for key, value in text.items())
    return f"edges = [{{{pairs}, columns = [{', '.join(map(quoted, columns))}]}}]"


# ---- What the tables are -------------------------------------------------------------------------
@dataclass(frozen=True)
class NodeRole:
    """A table in the role of the nodes of one type; `key` are the columns of their ids."""

    node_type: str
    table: str
    key: tuple[str, ...]
    name: str | None
    attributes: Sequence[str]
    kinds: Mapping[str, str]
    """An attribute -> what graph.toml says that it is: text, time, …"""


@dataclass(frozen=True)
class EdgeRole:
    """A table in the role of the edges of one relation; each end is a foreign key, or the key of the table itself."""

    relation: Relation
    table: str
    ends: tuple[ForeignKey, ForeignKey]
    weight: str | None = None
    attributes: Sequence[str] = ()
    kinds: Mapping[str, str] = field(default_factory=dict)


class Layout:
    """Which tables are node types and which are relations.

    A table with a key is a node type, and each of its foreign keys a relation. A table is a relation between two
    others (`_is_link`) if it has two foreign keys and nothing else that makes it a thing of its own.

    Parameters
    ----------
    tables
        The tables to read.
    settings
        A graph.toml, which decides otherwise.

    """

    def __init__(self, tables: Sequence[DatabaseTable], settings: Config) -> None:
        known, notes = _with_keys(tables)
        self._tables = {table.name: table for table in known}
        self._settings = settings
        self._types = _type_names(known, settings)
        self.nodes: list[NodeRole] = []
        self.edges: list[EdgeRole] = []
        self._notes: list[str] = []
        for name in settings.files:
            if name not in self._tables:
                raise SourceError(
                    f"graph.toml names the table {name!r}, but the database has {listed(self._tables)}"
                    f"{did_you_mean(name, self._tables)}"
                )
        self._named_nodes = {entry.file for entry in settings.nodes.values()}
        named_edges = {entry.file for entry in settings.edges}
        left_out = []
        for table in known:
            if table.name in self._named_nodes:
                self._add_nodes(table)
            elif table.name in named_edges:
                continue
            elif _is_link(table, known):
                self._add_link(table)
            elif table.key:
                self._add_nodes(table)
            else:
                left_out.append(table.name)
        self._add_named_edges()
        why = "without a primary key it needs two foreign keys; name two columns in graph.toml under [[edges]]"
        self.notes = [*notes, *_note(left_out, "table", why), *self._notes]

    def columns(self, table: DatabaseTable) -> tuple[set[str], set[str]]:
        """Return the columns of a table to read: those that hold ids of nodes, its own or those of others, and more."""
        ids: set[str] = set()
        others: set[str | None] = {None}
        for node in self.nodes:
            if node.table == table.name:
                ids.update(node.key)
                others.update([node.name, *node.attributes])
        for edge in self.edges:
            if edge.table == table.name:
                ids.update(*(end.columns for end in edge.ends))
                others.update([edge.weight, *edge.attributes])
            ids.update(*(end.referred for end in edge.ends if end.table == table.name))
        return ids, {column for column in others if column is not None}

    def _add_nodes(self, table: DatabaseTable) -> None:
        """Add the node type of a table, and a relation for each of its foreign keys."""
        node_type = self._types[table.name]
        entry = self._settings.nodes.get(node_type) or NodesConfig(table.name)
        key = (_column(table, entry.id),) if entry.id else table.key
        if not key:
            raise SourceError(f'the table {table.name} has no primary key; name its ids in graph.toml as id = "…"')
        others = [column for column in table.columns if column not in key]
        for fk in table.foreign_keys:
            end = self._end(table, fk)
            if end is not None:
                others = [column for column in others if column not in end.columns]
                relation = self._relation(node_type, self._foreign_key_name(node_type, fk), self._types[end.table])
                self.edges.append(EdgeRole(relation, table.name, (ForeignKey(key, table.name, key), end)))
        name = usual_name([column for column in others if not table.is_measure(column)], node_type)
        if entry.name is not None:
            name = _column(table, entry.name) if entry.name else None
        attributes = [column for column in others if column != name]
        if entry.attributes is not None:
            attributes = [_column(table, column) for column in entry.attributes]
        words = entry.attribute_types.items()
        kinds = {_column(table, column): checked_kind(column, word) for column, word in words}
        kinds = {column: word for column, word in kinds.items() if column in attributes}
        self.nodes.append(NodeRole(node_type, table.name, key, name, attributes, kinds))

    def _add_link(self, table: DatabaseTable) -> None:
        """Add the relation that a table of two foreign keys is."""
        source, target = (self._end(table, fk) for fk in table.foreign_keys)
        if source is None or target is None:
            return
        used = {*source.columns, *target.columns}
        weight = next((c for c in table.columns if c.lower() == "weight" and c not in used), None)
        types = self._types[source.table], self._types[target.table]
        relation = self._relation(types[0], _link_name(table.name, *types), types[1])
        others = [column for column in table.columns if column not in {*used, weight, *table.key}]
        self.edges.append(EdgeRole(relation, table.name, (source, target), weight, others))
        if not used.issuperset(table.key):
            self._notes.append(
                f"{table.name} is read as a relation, because it links two tables and no other refers to it; to read "
                f'it as nodes, name it in graph.toml as [nodes.{self._types[table.name]}] file = "{table.name}"'
            )
        if weight is None and any(map(table.is_measure, others)):
            self._notes.append(
                f"{table.name}: {listed(others, 8)} {'are attributes' if others[1:] else 'is an attribute'} of edges, "
                f"and each edge weighs 1; if one is the weight, name it in graph.toml under [[edges]]"
            )

    def _add_named_edges(self) -> None:
        """Add the relations that graph.toml describes."""
        for entry in self._settings.edges:
            table = self._tables[entry.file]
            if entry.columns is None or len(entry.columns) != 2:
                raise SourceError(
                    f"relation {entry.name!r} in graph.toml needs two id columns of {table.name}: columns = "
                    f"[…, …] (it has {listed(table.columns)})"
                )
            first, second = (ForeignKey((_column(table, column),)) for column in entry.columns)
            weight = _column(table, entry.weight) if entry.weight else None
            relation = Relation(entry.source, entry.name, entry.target, directed=not entry.undirected)
            attributes = [_column(table, column) for column in entry.attributes or ()]
            if entry.attributes is None and table.name not in self._named_nodes:
                used = {*entry.columns, *table.key, *([weight] if weight and weight.lower() == "weight" else [])}
                attributes = [column for column in table.columns if column not in used]
            kinds = {_column(table, column): word for column, word in entry.attribute_types.items()}
            self.edges.append(EdgeRole(relation, table.name, (first, second), weight, attributes, kinds))

    def _end(self, table: DatabaseTable, fk: ForeignKey) -> ForeignKey | None:
        """Return a foreign key with the columns that it refers to, or None with a note if these are not read."""
        target = self._tables.get(fk.table)
        if target is None or not target.key or not set(fk.referred) <= set(target.columns):
            self._notes.append(f"{table.name}.{'+'.join(fk.columns)} is no relation: {fk.table} is not read as nodes")
            return None
        return replace(fk, referred=fk.referred or target.key)

    def _foreign_key_name(self, node_type: str, fk: ForeignKey) -> str:
        """Name a relation: manager_id gives manager; customer_id of orders, which says no more than its table, both."""
        target = self._types[fk.table]
        word = entity(fk.columns[0]) if len(fk.columns) == 1 else None
        if word is None or _is_singular(word, fk.table) or are_alike(word, target):
            return f"{node_type}_{target}" if target != node_type else word or target
        return _joined_words(word)

    def _relation(self, source: str, name: str, target: str) -> Relation:
        """Return a relation, numbered if there is one of that name between these types."""
        taken = {edge.relation for edge in self.edges}
        names = chain([name], (f"{name}_{number}" for number in count(2)))
        return next(r for r in (Relation(source, each, target) for each in names) if r not in taken)


def _is_link(table: DatabaseTable, tables: Sequence[DatabaseTable]) -> bool:
    """Whether the rows of a table only link two others.

    They do if it has two foreign keys, no table refers to it, and it has no key, or one that contains both foreign
    keys, or one of its own beside columns of numbers and times, as a table of ratings has.
    """
    if len(table.foreign_keys) != 2 or any(fk.table == table.name for t in tables for fk in t.foreign_keys):
        return False
    first, second = (set(fk.columns) for fk in table.foreign_keys)
    if first & second:
        return False
    if not table.key or first | second <= set(table.key):
        return True
    if set(table.key) <= first | second:  # each row belongs to one node, as a profile to its user
        return False
    return all(table.is_measure(column) for column in table.columns if column not in {*table.key, *first, *second})


def _column(table: DatabaseTable, name: str) -> str:
    """Return the name of a column that graph.toml names; raise if the table has none."""
    if name not in table.columns:
        raise SourceError(
            f"the table {table.name} has no column {name!r}, which graph.toml names (it has "
            f"{listed(table.columns)}){did_you_mean(name, table.columns)}"
        )
    return name


# ---- Names of types and relations ----------------------------------------------------------------
def _type_names(tables: Sequence[DatabaseTable], settings: Config) -> dict[str, str]:
    """Name the node type of each table: as its key or the columns that refer to it, else the singular of its name."""
    named = {entry.file: node_type for node_type, entry in settings.nodes.items()}
    types = dict(named)
    for table in tables:
        referring = [fk.columns for other in tables for fk in other.foreign_keys if fk.table == table.name]
        columns = [*table.key[:1], *(names[0] for names in referring if len(names) == 1)]
        words = (word for column in columns if (word := entity(column)) and _is_singular(word, table.name))
        types.setdefault(table.name, _joined_words(next(words, None) or singular(_joined_words(table.name))))
    counts = Counter(types.values())
    return {name: node_type if counts[node_type] == 1 or name in named else name for name, node_type in types.items()}


def _joined_words(name: str) -> str:
    """Join the words of a name by underscores: dashes and spaces have a meaning in meta-paths."""
    return "_".join(split_words(name)) or name


def _is_singular(word: str, table: str) -> bool:
    """Whether a word, such as order_item, is the singular of a table's name, such as OrderItems or order_items."""
    ours, words = split_words(word.lower()), split_words(table)
    if len(ours) == len(words) and all(our in singulars(w) for our, w in zip(ours, words, strict=True)):
        return True
    return "".join(ours) in singulars("".join(words))


def _link_name(table: str, source: str, target: str) -> str:
    """Name the relation of a table: user_rates_movie gives rates; others are called as the table is.

    >>> [_link_name(table, "user", "movie") for table in ("user_rates_movie", "user_movie", "ratings")]
    ['rates', 'user_movie', 'ratings']
    """
    words = split_words(table)
    both = len(words) > 2 and are_alike(words[0], source) and are_alike(words[-1], target)
    return "_".join(words[1:-1]) if both else _joined_words(table)


# ---- Keys that are not declared ------------------------------------------------------------------
def _with_keys(tables: Sequence[DatabaseTable]) -> tuple[list[DatabaseTable], list[str]]:
    """Complete the keys of tables: those that foreign keys refer to, and if none is declared, those that names show."""
    declared = [fk for table in tables for fk in table.foreign_keys]
    referred = {fk.table: fk.referred for fk in reversed(declared) if fk.referred}
    unknown = {table.name for table in tables if table.is_view or not declared}
    keyed = []
    for table in tables:
        key = table.key or referred.get(table.name) or (_key_by_name(table) if table.name in unknown else ())
        keyed.append(replace(table, key=key))
    by_name = {table.name: _foreign_keys_by_name(table, keyed) for table in keyed}
    complete = [replace(table, foreign_keys=by_name[table.name]) if table.name in unknown else table for table in keyed]
    found = [(name, fk) for name, keys in by_name.items() if name in unknown for fk in keys]
    if found:
        joined = (f"{name}.{fk.columns[0]} -> {fk.table}.{fk.referred[0]}" for name, fk in found)
        return complete, [f"these foreign keys are not declared, but found by their names: {listed(joined, 20)}"]
    columns = []
    for table in complete:
        used = {*table.key, *(column for fk in table.foreign_keys for column in fk.columns)}
        others = [fk.columns[0] for fk in by_name[table.name] if table.key and fk.columns[0] not in used]
        columns += [f"{table.name}.{column}" for column in others]
    why = "declared as no foreign key, so read as an attribute; name it in graph.toml under [[edges]] to join by it"
    return complete, [f"{listed(columns)}: named after a table, but {why}"] if columns else []


def _key_by_name(table: DatabaseTable) -> tuple[str, ...]:
    """Return the column that is called id, or after the table, as movie_id in movies."""
    columns = [c for c in table.columns if c.lower() == "id"]
    columns += [c for c in table.columns if (word := entity(c)) and word != c and _is_singular(word, table.name)]
    return tuple(columns[:1])


def _foreign_keys_by_name(table: DatabaseTable, tables: Sequence[DatabaseTable]) -> tuple[ForeignKey, ...]:
    """Return the columns that are named after a table's key, as venue_id or first_venue_id after that of venues."""
    keys = []
    for column in table.columns:
        word = entity(column)
        if (column,) != table.key and word is not None and word != column:
            target = _table_named(word, table, [each for each in tables if len(each.key) == 1])
            keys += [ForeignKey((column,), target.name, target.key)] if target is not None else []
    return tuple(keys)


def _table_named(word: str, own: DatabaseTable, tables: Sequence[DatabaseTable]) -> DatabaseTable | None:
    """Return the table that a word names as a whole, or else with its last words; parent and the like name its own."""
    if is_own_role(word) and len(own.key) == 1:
        return own
    words = split_words(word)
    ends = ("_".join(words[start:]) for start in range(len(words)))
    return next((table for end in ends for table in tables if _is_singular(end, table.name)), None)


# ---- Rows become the tables of a Plan ------------------------------------------------------------
class DatabaseRows(ArrowTable):
    """Rows of a table of a database. Errors name them by the values of their keys: they have no line numbers."""

    def __init__(self, rows: pa.Table, name: str, database: str, key: Sequence[str]) -> None:
        super().__init__(rows, name, f"{database}, table {name}")
        self._key = dict.fromkeys(key)

    def place(self, row: int) -> str:
        values = ", ".join(f"{column} {self._table[column][row].as_py()!r}" for column in self._key)
        return f"{self.title}, the row with {values}"


_ID, _SOURCE, _TARGET, _WEIGHT = "<id>", "<source>", "<target>", "<weight>"
"""Columns that are added to the rows of a table: the ids that its own columns make up, and a copy of the weights."""


def _make_plan(layout: Layout, rows: Mapping[str, pa.Table], title: str, options: ReadOptions) -> Plan:
    """Return the plan of the rows. Nodes are in order of their ids, since the rows of a database have no order."""
    options.check_names([edge.relation.name for edge in layout.edges])
    tables, nodes = dict(rows), []
    for node in layout.nodes:
        table = tables[node.table] = _nodes_in_order(tables[node.table], node.key, options)
        content = DatabaseRows(table.append_column(_ID, _ids(table, node.key)), node.table, title, node.key)
        columns, where = existing(id=_ID, name=node.name), f"under [nodes.{toml_key(node.node_type)}] in graph.toml"
        selection = Selection(content, columns, node.attributes, kinds=node.kinds, declared_in=where)
        nodes.append(NodePlan(node.node_type, selection))
    keys = {node.table: node.key for node in layout.nodes}
    edges, notes = [], list(options.notes)
    for edge in layout.edges:
        if not options.take or edge.relation.name in options.take:
            selection, more = _select_edges(edge, tables, keys, title)
            undirected = edge.relation.name in options.undirected
            edges.append(EdgePlan(replace(edge.relation, directed=False) if undirected else edge.relation, selection))
            notes += [note for note in more if note not in notes]
    return Plan(nodes, edges, replace(options, notes=notes))


def _nodes_in_order(rows: pa.Table, key: Sequence[str], options: ReadOptions) -> pa.Table:
    """Sort rows by their key, numbers by value and texts by bytes; graph.toml may leave out or merge some."""
    if options.missing_ids or options.fold_ids:
        rows = rows.filter(_ids(rows, key).is_valid())
    if options.fold_ids:
        codes = _ids(rows, key).dictionary_encode().indices
        rows = rows.take(pa.array(np.sort(np.unique(codes, return_index=True)[1])))
    if len(key) == 1 and pa.types.is_integer(rows[key[0]].type) and not rows[key[0]].null_count:
        numbers = rows[key[0]].to_numpy()
        if (numbers[1:] >= numbers[:-1]).all():
            return rows
    return rows.take(pc.sort_indices(rows, sort_keys=[(column, "ascending") for column in key]))


def _select_edges(
    edge: EdgeRole, tables: Mapping[str, pa.Table], keys: Mapping[str, tuple[str, ...]], title: str
) -> tuple[Selection, list[str]]:
    """Return the edges of a relation, and notes on them; a row in which a foreign key is null is no edge."""
    own = [column for end in edge.ends for column in end.columns]
    rows = tables[edge.table]
    rows = rows.select([name for name in rows.column_names if name in {*own, edge.weight, *edge.attributes}])
    ends = [_ids(rows, end.columns) for end in edge.ends]
    complete = pc.and_(*(ids.is_valid() for ids in ends))
    if not pc.all(complete, min_count=0).as_py():
        rows, ends = rows.filter(complete), [ids.filter(complete) for ids in ends]
    for at, node_type in enumerate((edge.relation.source, edge.relation.target)):
        end, values = edge.ends[at], ends[at]
        if end.table in keys and end.referred != keys[end.table]:
            nodes = tables[end.table]
            ends[at] = _translate(values, _ids(nodes, end.referred), _ids(nodes, keys[end.table]))
            if ends[at].null_count:
                row = pc.index(ends[at].is_null(), True).as_py()
                place = DatabaseRows(rows, edge.table, title, own).place(row)
                raise unknown_end(place, node_type, values[row].as_py(), ends[at].null_count)
    chosen = choose_columns(ArrowTable(rows.select(edge.attributes), edge.table, edge.table), (), kinds=edge.kinds)
    content = rows.append_column(_SOURCE, ends[0]).append_column(_TARGET, ends[1])
    if edge.weight is not None:
        weights = rows[edge.weight]
        is_truth = pa.types.is_boolean(weights.type)  # which weighs 1 or 0
        content = content.append_column(_WEIGHT, weights.cast(pa.int64()) if is_truth else weights)
    table = DatabaseRows(content, edge.table, title, own)
    columns = existing(source=_SOURCE, target=_TARGET, weight=edge.weight and _WEIGHT)
    where = "under [[edges]] in graph.toml"
    return Selection(table, columns, chosen.columns, kinds=chosen.kinds, declared_in=where), chosen.notes(edge.table)


def _translate(values: pa.Array, referred: pa.Array, ids: pa.Array) -> pa.Array:
    """Return the ids of the nodes whose other unique columns have these values, or null where there are none."""
    if values.type != referred.type:
        values, referred = values.cast(pa.string()), referred.cast(pa.string())
    return ids.take(pc.index_in(values, value_set=referred))


# ---- Ids -----------------------------------------------------------------------------------------
_BETWEEN = "|"
"""Between the parts of an id of several columns."""


def _ids(rows: pa.Table, columns: Sequence[str]) -> pa.Array:
    """Return ids as integers or texts; those of several columns are joined, and null if one of them is."""
    parts = [_as_id(rows[column].combine_chunks()) for column in columns]
    if len(parts) == 1:
        return parts[0]
    return pc.binary_join_element_wise(*(_escaped(part.cast(pa.string())) for part in parts), _BETWEEN)


def _escaped(part: pa.Array) -> pa.Array:
    """Mark what stands between parts where it is in one, so that different keys give different ids."""
    if not pc.any(pc.match_substring(part, _BETWEEN), min_count=0).as_py():
        return part
    return pc.replace_substring(pc.replace_substring(part, "\\", "\\\\"), _BETWEEN, f"\\{_BETWEEN}")


def _as_id(column: pa.Array) -> pa.Array:
    """Return integers as such, also those that pandas wrote as fractions beside nulls, and all else as text."""
    if pa.types.is_floating(column.type):
        column = pc.if_else(pc.is_nan(column), None, column)
    if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
        with suppress(pa.ArrowInvalid):  # an unsigned one may be too large, and another have a fraction
            return column.cast(pa.int64())
    return column.cast(pa.string())


def _with_clean_ids(rows: pa.Table, columns: Iterable[str], options: ReadOptions) -> pa.Table:
    """Return rows with ids as graph.toml says that they are read; those that mean none are null."""
    for column in columns:
        ids = clean_ids(rows[column].combine_chunks(), options.missing_ids or (), bool(options.fold_ids))
        rows = rows.set_column(rows.column_names.index(column), column, ids)
    return rows

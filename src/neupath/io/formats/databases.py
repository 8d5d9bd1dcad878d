"""Read a database as a Plan: tables with a key are node types, and foreign keys are relations.

Keys may have several columns, and foreign keys may refer to another unique column than the key; rows have keys instead
of line numbers. A database without a foreign key, declared or by the names of columns, is recognised as files are.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain, count
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neupath._runtime.progress import Progress
from neupath.errors import SourceError, did_you_mean, listed
from neupath.graph.hin import Duplicates
from neupath.graph.metapath import Relation
from neupath.graph.notations import toml_key
from neupath.io.columns import checked_kind, choose_columns
from neupath.io.detect import recognise
from neupath.io.formats.database_drivers import Database, DatabaseTable, ForeignKey, as_spelled, open_database
from neupath.io.graph_toml import Config, EdgesConfig, NodesConfig
from neupath.io.ids import clean_ids, unknown_end
from neupath.io.plan import EdgePlan, NodePlan, Plan, ReadOptions, Selection, existing
from neupath.io.sources import Source, options_of
from neupath.io.tables import ArrowTable
from neupath.io.words import are_alike, entity, is_key, is_own_role, singular, singulars, split_words, usual_name


@dataclass(frozen=True)
class TableChoice:
    """The tables of a database to read: of one schema, by default its own, and by name, by default all."""

    schema: str | None = None
    tables: str | Sequence[str] | None = None
    """Names, or one text with commas."""

    @property
    def names(self) -> list[str] | None:
        names = self.tables.split(",") if isinstance(self.tables, str) else self.tables
        return None if names is None else [name.strip() for name in names]


def read_database(
    source: str | Path,
    choice: TableChoice,
    settings: Config,
    duplicates: Duplicates | None,
    progress: Progress,
) -> Plan:
    """Read the tables of a database, which `settings` call files, and say what they hold."""
    with open_database(source, choice.schema) as database:
        tables, notes = _choose_tables(database, choice.names, settings)
        options = replace(options_of(settings, duplicates), notes=notes)
        keys = _Keys(tables, settings, options, database.title) if any(t.foreign_keys for t in tables) else None
        read = tables if keys is None else keys.tables
        rows = {table.name: database.read(table, _id_columns(table, tables, settings), progress) for table in read}
    if keys is not None:
        return keys.make_plan(rows)
    unkeyed = [DatabaseRows(rows[table.name], table.name, database.title, table.key) for table in tables]
    find = {table.name: table for table in unkeyed}.__getitem__
    return recognise(Source(unkeyed, find, database.title, settings, duplicates, notes))


def _choose_tables(
    database: Database, names: list[str] | None, settings: Config
) -> tuple[list[DatabaseTable], list[str]]:
    """Return the tables to read, the named ones or else all but views, and notes on what is left out."""
    tables = {table.name: table for table in sorted(database.tables, key=lambda table: table.name)}
    if not tables:
        schemas = [name for name in database.schemas if name not in (database.schema, "information_schema")]
        hint = f" in this schema; choose one of {listed(schemas)} with ‹schema›" if schemas else ""
        raise SourceError(f"{database.title} has no tables{hint}")
    wanted = as_spelled(names or (), tables)
    for name in (*wanted, *settings.files):
        if name not in tables:
            raise SourceError(
                f"{database.title} has no table {name!r}{'' if name in wanted else ', which graph.toml names'} (it has "
                f"{listed(tables)}){did_you_mean(name, tables)}",
                parameter="tables",
                allowed=tables,
            )
    notes = []
    if names is None:
        others = [table for table in tables.values() if table.name not in (*settings.files, *settings.ignore)]
        wanted = tuple(table.name for table in others if not table.is_view)
        views = [table.name for table in others if table.is_view]
        notes += _note(views, "view", "a view has no keys; name it in `tables` to read it by its column names")
    spelled = [_with_spelled_keys(tables[name], tables) for name in tables if name in (*wanted, *settings.files)]
    referred = {fk.table: fk.referred for table in reversed(spelled) for fk in reversed(table.foreign_keys)}
    read = [replace(table, key=table.key or referred.get(table.name, ())) for table in spelled]
    chosen, more = _with_named_keys(read)
    notes += more
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


def _with_named_keys(tables: Sequence[DatabaseTable]) -> tuple[list[DatabaseTable], list[str]]:
    """Add the keys that the names of columns show: of views, and of all tables if no foreign key is declared."""
    is_declared = any(table.foreign_keys for table in tables)
    unknown = [table.name for table in tables if table.is_view or not is_declared]
    keyed = [replace(t, key=_named_key(t)) if t.name in unknown and not t.key else t for t in tables]
    named = {table.name: _named_foreign_keys(table, keyed) for table in keyed}
    if any(named[t.name] and (t.key or len(named[t.name]) == 2) for t in keyed if t.name in unknown):
        joined = (f"{name}.{fk.columns[0]} -> {fk.table}.{fk.referred[0]}" for name in unknown for fk in named[name])
        note = f"these foreign keys are not declared, but found by their names: {listed(joined, 20)}"
        return [replace(t, foreign_keys=named[t.name]) if t.name in unknown else t for t in keyed], [note]
    used = {table.name: {*table.key, *chain(*(fk.columns for fk in table.foreign_keys))} for table in tables}
    others = [
        f"{t.name}.{fk.columns[0]}" for t in tables if t.key for fk in named[t.name] if not used[t.name] & {*fk.columns}
    ]
    why = "declared as no foreign key, so read as an attribute; name it in graph.toml under [[edges]] to join by it"
    return list(tables), [f"{listed(others)}: named after a table, but {why}"] if others and is_declared else []


def _named_key(table: DatabaseTable) -> tuple[str, ...]:
    """Return the column that is called id, or after the table, as movie_id in movies."""
    columns = [column for column in table.columns if column.lower() == "id"]
    columns += [c for c in table.columns if (word := entity(c)) and word != c and _is_singular(word, table.name)]
    return tuple(columns[:1])


def _named_foreign_keys(table: DatabaseTable, tables: Sequence[DatabaseTable]) -> tuple[ForeignKey, ...]:
    """Return the columns that are named after a table's key, as venue_id or first_venue_id after that of venues."""
    keyed = [other for other in tables if len(other.key) == 1]
    keys = []
    for column in table.columns:
        words = split_words(entity(column) or "")
        ends = ["_".join(words[start:]) for start in range(len(words))] if entity(column) != column else []
        others = [other for end in ends for other in keyed if _is_singular(end, other.name)]
        if ends and is_own_role(ends[0]) and table in keyed:
            others = [table]
        if others and (column,) != table.key:
            keys.append(ForeignKey((column,), others[0].name, others[0].key))
    return tuple(keys)


def _note(names: Sequence[str], what: str, why: str, of: str = "") -> list[str]:
    if not names:
        return []
    return [f"the {what}{'s' * (len(names) > 1)} {listed(names)}{of} {'were' if names[1:] else 'was'} left out: {why}"]


def _id_columns(table: DatabaseTable, tables: Sequence[DatabaseTable], settings: Config) -> set[str]:
    """Return the columns of a table that hold ids, as keys, graph.toml or their names say."""
    own = [table.key, *(fk.columns for fk in table.foreign_keys), filter(is_key, table.columns)]
    referred = [fk.referred for other in tables for fk in other.foreign_keys if fk.table == table.name]
    edges = [edges.columns or () for edges in settings.edges if edges.file == table.name]
    nodes = [nodes.id for nodes in settings.nodes.values() if nodes.file == table.name and nodes.id]
    return {*chain(*own, *referred, *edges), *nodes}


# ---- Tables with keys ----------------------------------------------------------------------------
class DatabaseRows(ArrowTable):
    """Rows of a table of a database. Errors name them by the values of their keys: they have no line numbers."""

    def __init__(self, rows: pa.Table, name: str, database: str, key: Collection[str]) -> None:
        super().__init__(rows, name, f"{database}, table {name}")
        self._key = dict.fromkeys(key or rows.column_names[:4])

    def place(self, row: int) -> str:
        values = ", ".join(f"{column} {self._table[column][row].as_py()!r}" for column in self._key)
        return f"{self.title}, the row with {values}"


_ID, _SOURCE, _TARGET, _WEIGHT = "<id>", "<source>", "<target>", "<weight>"
"""Columns that are added to the rows of a table: the ids that its own columns make up, and a copy of the weights."""


class _Keys:
    """What tables are by their keys, or by a graph.toml that decides otherwise.

    A table with a key is a node type, and each of its foreign keys a relation. A table is a relation between two
    others (`_is_link`) if it has two foreign keys and nothing else that makes it a thing of its own.
    """

    def __init__(self, tables: Sequence[DatabaseTable], settings: Config, options: ReadOptions, title: str) -> None:
        self._settings, self._options, self._title = settings, options, title
        self._notes = list(options.notes)
        self._all = {table.name: table for table in tables}
        self._types = _type_names(tables, settings)
        self._ends = {table.name: self._find_ends(table) for table in tables}
        self._named_nodes = {entry.file for entry in settings.nodes.values()}
        self._roles = {table.name: self._role(table) for table in tables}
        why = "without a primary key it needs two foreign keys; name two columns in graph.toml under [[edges]]"
        self._notes += _note([name for name, role in self._roles.items() if role is None], "table", why)
        read = [table for table in tables if self._roles[table.name] is not None]
        self.tables = [_without_own_key(t) if self._roles[t.name] == "link" else t for t in read]
        """Those to read."""
        if not any(self._ends[table.name] for table in read) and not settings.edges:
            missing = {fk.table for table in tables for fk in table.foreign_keys} - {*self._all}
            referring = [table.name for table in tables if {fk.table for fk in table.foreign_keys} & missing]
            absent = f"{listed(referring)} of {title} refer to {listed(sorted(missing))}"
            reason = f"{absent}; read these as well (‹tables›, ‹schema›)" if missing else listed(self._notes)
            raise SourceError(f"no two tables that are read are joined: {reason}")
        self._keys: dict[str, tuple[str, ...]] = {}
        self._nodes: list[NodePlan] = []
        self._edges: list[EdgePlan] = []
        self._names: dict[Relation, None] = {}

    def _role(self, table: DatabaseTable) -> Literal["nodes", "named edges", "link"] | None:
        """Return what the rows of a table are; None if they are neither."""
        if table.name in self._named_nodes:
            return "nodes"
        if any(entry.file == table.name for entry in self._settings.edges):
            return "named edges"
        if _is_link(table, list(self._all.values())):
            return "link"
        return "nodes" if table.key else None

    def _find_ends(self, table: DatabaseTable) -> list[ForeignKey]:
        """Return the foreign keys of a table that refer to nodes; note the others."""
        ends = []
        for fk in table.foreign_keys:
            target = self._all.get(fk.table)
            if target is not None and fk.referred and {*fk.referred} <= {*target.columns}:
                ends.append(fk)
            else:
                columns = "+".join(fk.columns)
                self._notes.append(f"{table.name}.{columns} is no relation: {fk.table} is not read as nodes")
        return ends

    def make_plan(self, rows: Mapping[str, pa.Table]) -> Plan:
        """Return the plan of the rows of the tables to read."""
        self._rows = dict(rows)
        for table in self.tables:
            if self._roles[table.name] == "nodes":
                self._add_nodes(table)
        for table in self.tables:
            if self._roles[table.name] == "nodes":
                self._add_foreign_keys(table)
            elif self._roles[table.name] == "link":
                self._add_link(table)
        for entry in self._settings.edges:
            self._add_named_edges(self._all[entry.file], entry)
        self._options.check_names([relation.name for relation in self._names])
        return Plan(self._nodes, self._edges, replace(self._options, notes=list(dict.fromkeys(self._notes))))

    def _add_nodes(self, table: DatabaseTable) -> None:
        """Add the nodes of a table in order of their ids, since the rows of a database have no order."""
        node_type = self._types[table.name]
        entry = self._settings.nodes.get(node_type) or NodesConfig(table.name)
        key = (_column(table, entry.id),) if entry.id else table.key
        if not key:
            raise SourceError(f'the table {table.name} has no primary key; name its ids in graph.toml as id = "…"')
        used = {*key, *chain(*(end.columns for end in self._ends[table.name]))}
        others = [column for column in table.columns if column not in used]
        name = usual_name([column for column in others if not table.is_measure(column)], node_type)
        if entry.name is not None:
            name = _column(table, entry.name) if entry.name else None
        attributes = [column for column in others if column != name]
        if entry.attributes is not None:
            attributes = [_column(table, column) for column in entry.attributes]
        kinds = {column: word for column, word in _kinds(table, entry).items() if column in attributes}
        self._keys[table.name] = key
        rows = self._rows[table.name] = _in_order(self._rows[table.name], key, self._options)
        content = DatabaseRows(rows.append_column(_ID, _ids(rows, key, self._options)), table.name, self._title, key)
        where = f"under [nodes.{toml_key(node_type)}] in graph.toml"
        selection = Selection(content, existing(id=_ID, name=name), attributes, kinds=kinds, declared_in=where)
        self._nodes.append(NodePlan(node_type, selection))

    def _add_foreign_keys(self, table: DatabaseTable) -> None:
        """Add a relation for each foreign key of a table of nodes."""
        key = self._keys[table.name]
        for end in self._ends[table.name]:
            types = self._types[table.name], self._types[end.table]
            self._add_edges(table, _foreign_key_name(end, *types), types, (ForeignKey(key, table.name, key), end))

    def _add_link(self, table: DatabaseTable) -> None:
        """Add the relation that a table of two foreign keys is."""
        if len(self._ends[table.name]) < 2:
            return
        source, target = self._ends[table.name]
        used = {*source.columns, *target.columns}
        weight = next((c for c in table.columns if c.lower() == "weight" and c not in used), None)
        types = self._types[source.table], self._types[target.table]
        others = [column for column in table.columns if column not in {*used, weight}]
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
        entry = EdgesConfig(_link_name(table.name, *types), table.name, *types, weight=weight, attributes=others)
        self._add_edges(table, entry.name, types, (source, target), entry)

    def _add_named_edges(self, table: DatabaseTable, entry: EdgesConfig) -> None:
        """Add a relation that graph.toml describes."""
        if entry.columns is None or len(entry.columns) != 2:
            raise SourceError(
                f"relation {entry.name!r} in graph.toml needs two id columns of {table.name}: columns = "
                f"[…, …] (it has {listed(table.columns)})"
            )
        weight = _column(table, entry.weight) if entry.weight else None
        attributes = entry.attributes
        if attributes is None:
            used = {*entry.columns, *table.key, *([weight] if weight and weight.lower() == "weight" else [])}
            is_node = table.name in self._named_nodes
            attributes = [] if is_node else [column for column in table.columns if column not in used]
        first, second = (ForeignKey((_column(table, column),)) for column in entry.columns)
        entry = replace(entry, attributes=[_column(table, column) for column in attributes])
        self._add_edges(table, entry.name, (entry.source, entry.target), (first, second), entry)

    def _add_edges(
        self,
        table: DatabaseTable,
        name: str,
        types: tuple[str, str],
        ends: tuple[ForeignKey, ForeignKey],
        entry: EdgesConfig | None = None,
    ) -> None:
        """Add the edges of a relation, numbered if there is one of that name; skip rows with a null at one end."""
        names = chain([name], (f"{name}_{number}" for number in count(2)))
        relation = next(r for each in names if (r := Relation(types[0], each, types[1])) not in self._names)
        self._names[relation] = None
        if self._options.take and relation.name not in self._options.take:
            return
        entry = entry or EdgesConfig(name, table.name, *types)
        attributes, weight = entry.attributes or [], entry.weight
        rows, options = self._rows[table.name], self._options
        own = dict.fromkeys(chain(*(end.columns for end in ends)))
        ids = [_ids(rows, end.columns, options) for end in ends]
        complete = pc.and_(*(each.is_valid() for each in ids))
        rows, ids = rows.filter(complete), [each.filter(complete) for each in ids]
        for at, end in enumerate(ends):
            key = self._keys.get(end.table, end.referred)
            if end.referred != key:  # it refers to other columns of the nodes than their ids
                nodes, given = self._rows[end.table], ids[at].cast(pa.string())
                row_of_node = pc.index_in(given, value_set=_ids(nodes, end.referred, options).cast(pa.string()))
                ids[at] = _ids(nodes, key, options).take(row_of_node)
                if ids[at].null_count:
                    row = pc.index(ids[at].is_null(), True).as_py()
                    place = DatabaseRows(rows, table.name, self._title, own).place(row)
                    raise unknown_end(place, types[at], given[row].as_py(), ids[at].null_count)
        chosen = choose_columns(
            ArrowTable(rows.select(attributes), table.name, table.name), (), kinds=_kinds(table, entry)
        )
        self._notes += chosen.notes(table.name)
        content = rows.append_column(_SOURCE, ids[0]).append_column(_TARGET, ids[1])
        if weight is not None:
            is_truth = pa.types.is_boolean(rows[weight].type)  # which weighs 1 or 0
            content = content.append_column(_WEIGHT, rows[weight].cast(pa.int64()) if is_truth else rows[weight])
        columns = existing(source=_SOURCE, target=_TARGET, weight=weight and _WEIGHT)
        where = "under [[edges]] in graph.toml"
        selection = Selection(
            DatabaseRows(content, table.name, self._title, own), columns, chosen.columns, kinds=chosen.kinds,
            declared_in=where,
        )  # fmt: skip
        is_directed = not entry.undirected and relation.name not in options.undirected
        self._edges.append(EdgePlan(replace(relation, directed=is_directed), selection))


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


def _without_own_key(table: DatabaseTable) -> DatabaseTable:
    """Return a table of links without the numbers of its rows."""
    used = {column for fk in table.foreign_keys for column in fk.columns}
    kinds = {column: kind for column, kind in table.columns.items() if column in used or column not in table.key}
    return replace(table, columns=kinds)


def _column(table: DatabaseTable, name: str) -> str:
    """Return the name of a column that graph.toml names; raise if the table has none."""
    if name not in table.columns:
        raise SourceError(
            f"the table {table.name} has no column {name!r}, which graph.toml names (it has "
            f"{listed(table.columns)}){did_you_mean(name, table.columns)}"
        )
    return name


def _kinds(table: DatabaseTable, entry: NodesConfig | EdgesConfig) -> dict[str, str]:
    """Return what graph.toml says that columns are."""
    return {_column(table, column): checked_kind(column, word) for column, word in entry.attribute_types.items()}


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
    return "".join(split_words(word.lower())) in singulars("".join(split_words(table)))


def _foreign_key_name(fk: ForeignKey, source: str, target: str) -> str:
    """Name a relation: manager_id gives manager; customer_id of orders, which says no more than its table, both."""
    word = entity(fk.columns[0]) if len(fk.columns) == 1 else None
    if word is None or _is_singular(word, fk.table) or are_alike(word, target):
        return f"{source}_{target}" if target != source else word or target
    return _joined_words(word)


def _link_name(table: str, source: str, target: str) -> str:
    """Name the relation of a table: user_rates_movie gives rates; others are called as the table is.

    >>> [_link_name(table, "user", "movie") for table in ("user_rates_movie", "user_movie", "ratings")]
    ['rates', 'user_movie', 'ratings']
    """
    words = split_words(table)
    both = len(words) > 2 and are_alike(words[0], source) and are_alike(words[-1], target)
    return "_".join(words[1:-1]) if both else _joined_words(table)


# ---- Ids -----------------------------------------------------------------------------------------
_BETWEEN = "|"
"""Between the parts of an id of several columns."""


def _ids(rows: pa.Table, columns: Sequence[str], options: ReadOptions) -> pa.Array:
    """Return ids as integers or texts; those of several columns are joined, and null if one of them is."""
    parts = [
        clean_ids(_as_id(rows[column].combine_chunks()), options.missing_ids or (), bool(options.fold_ids))
        for column in columns
    ]
    if len(parts) == 1:
        return parts[0]
    texts = [part.cast(pa.string()) for part in parts]
    for mark in ("\\", _BETWEEN):  # different keys give different ids
        if any(pc.any(pc.match_substring(text, _BETWEEN), min_count=0).as_py() for text in texts):
            texts = [pc.replace_substring(text, mark, f"\\{mark}") for text in texts]
    return pc.binary_join_element_wise(*texts, _BETWEEN)


def _as_id(column: pa.Array) -> pa.Array:
    """Return integers as such, also those that pandas wrote as fractions beside nulls, and all else as text."""
    if pa.types.is_floating(column.type):
        column = pc.if_else(pc.is_nan(column), None, column)
    if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
        with suppress(pa.ArrowInvalid):  # an unsigned one may be too large, and another have a fraction
            return column.cast(pa.int64())
    return column.cast(pa.string())


def _in_order(rows: pa.Table, key: Sequence[str], options: ReadOptions) -> pa.Table:
    """Sort rows by their key, numbers by value and texts by bytes; graph.toml may leave out or merge some."""
    if options.missing_ids or options.fold_ids:
        ids = _ids(rows, key, options)
        rows, codes = rows.filter(ids.is_valid()), ids.drop_null().dictionary_encode().indices
        if options.fold_ids:
            rows = rows.take(pa.array(np.sort(np.unique(codes, return_index=True)[1])))
    return rows.take(pc.sort_indices(rows, sort_keys=[(column, "ascending") for column in key]))

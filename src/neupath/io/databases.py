"""Read a graph from a database: tables with a key are node types, and foreign keys are relations.

`plan_graph` decides what the tables are: node types, or relations that link two of them. `database_drivers` opens the
databases and reads the tables, all in one read-only transaction, so that they fit together and nothing is written.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neupath._runtime.progress import Progress, no_progress
from neupath.errors import SourceError, did_you_mean, listed
from neupath.graph.hin import HIN, Duplicates
from neupath.graph.metapath import Relation
from neupath.graph.notations import toml_key
from neupath.io.assembly import EdgeTable, NodeTable, RawAttributes, assemble, first_rows
from neupath.io.columns import are_alike, entity, is_own_role, singular, singulars, split_words
from neupath.io.config import Config
from neupath.io.database_drivers import Database, DatabaseTable, ForeignKey, open_database
from neupath.io.detection import options_of, usual_name
from neupath.io.edge_columns import attributes_in_memory, checked_kind
from neupath.io.export import quoted
from neupath.io.plan import Place, ReadOptions, Selection, clean_ids, unknown_end
from neupath.io.tables import ArrowTable


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


_ALL_TABLES, _NO_SETTINGS = TableChoice(), Config()


def read_database(
    source: str | Path,
    choice: TableChoice = _ALL_TABLES,
    settings: Config = _NO_SETTINGS,
    duplicates: Duplicates | None = None,
    progress: Progress = no_progress,
) -> HIN:
    """Read the tables of a database as a graph.

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
        tables, notes = _pick(database, choice.names, settings)
        plan = plan_graph(tables, settings, notes)
        if not plan.edges:
            raise _no_relation(database.title, tables)
        read = [(table, plan.columns(table)) for table in tables]
        rows = {
            table.name: database.read(replace(table, id_columns=plan.id_columns(table)), columns, progress)
            for table, columns in read
            if columns
        }
    return _assemble(plan, rows, database.title, settings, duplicates)


def _pick(database: Database, names: list[str] | None, settings: Config) -> tuple[list[DatabaseTable], list[str]]:
    """Return the tables to read, and notes on the others: the named ones, or else all but views."""
    every = database.tables()
    by_name = {table.name: table for table in every}
    if not by_name:
        raise SourceError(f"{database.title} has no tables{database.other_schemas()}")
    if names is None:
        kept = [table for table in every if table.name not in settings.ignore]
        views = [table.name for table in kept if table.is_view and table.name not in settings.files]
        note = _note(views, "view", "a view has no keys; name it in `tables` to read it by its column names")
        tables = [table for table in kept if table.name not in views]
        return tables, [*([note] if note else []), *_note_computed(tables)]
    folded = {name.lower(): name for name in by_name}
    for name in names:
        if name not in by_name and name.lower() not in folded:
            raise SourceError(
                f"{database.title} has no table {name!r} (it has {listed(by_name)}){did_you_mean(name, by_name)}",
                parameter="tables",
                allowed=by_name,
            )
    wanted = {name if name in by_name else folded[name.lower()] for name in names}
    chosen = [table for table in every if table.name in wanted]
    return chosen, _note_computed(chosen)


def _note_computed(tables: Sequence[DatabaseTable]) -> list[str]:
    """Return a note for each table with columns that are left out."""
    return [
        f"the generated {'columns' if len(table.computed) > 1 else 'column'} {listed(table.computed)} of the table "
        f"{table.name} {'were' if len(table.computed) > 1 else 'was'} left out: SQLite computes such values as they "
        f"are read; declare them STORED to read them"
        for table in tables
        if table.computed
    ]


def _note(names: Sequence[str], what: str, why: str) -> str | None:
    if not names:
        return None
    return f"the {what}{'s' * (len(names) > 1)} {listed(names)} {'were' if names[1:] else 'was'} left out: {why}"


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
        f"{_suggestion(tables)}"
    )


def _suggestion(tables: Sequence[DatabaseTable]) -> str:
    """Return a line of graph.toml that reads two columns of a table as edges, those called ids where there are two."""
    choices = []
    for table in tables:
        ids = [column for column in table.columns if entity(column) not in (None, column)]
        others = [column for column in table.columns if column not in ids]
        choices.append((len(ids) >= 2, len(table.columns) >= 2, table, [*ids, *others]))
    _, _, table, columns = max(choices, key=lambda choice: choice[:2])
    first, second = (columns * 2)[:2]
    source, target = (singular(entity(column) or table.name) for column in (first, second))
    text = {"name": table.name, "file": table.name, "source": source, "target": target}
    pairs = ", ".join(f"{key} = {quoted(value)}" for key, value in text.items())
    return f"edges = [{{{pairs}, columns = [{quoted(first)}, {quoted(second)}]}}]"


# ---- What the tables are -------------------------------------------------------------------------
@dataclass(frozen=True)
class KeyEnd:
    """The columns of a table that hold the ids of one end of a relation."""

    columns: tuple[str, ...]
    node_type: str
    referred: tuple[str, ...] = ()
    """The columns of the node type's table that they refer to, where these are not its key."""


@dataclass(frozen=True)
class NodePlan:
    """A table of the nodes of one type."""

    node_type: str
    table: str
    key: tuple[str, ...]
    name: str | None
    attributes: tuple[str, ...]
    kinds: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class EdgePlan:
    """A table whose rows are edges: the columns of both ends, and perhaps of the weight."""

    relation: Relation
    table: str
    source: KeyEnd
    target: KeyEnd
    weight: str | None = None
    attributes: tuple[str, ...] = ()
    kinds: Mapping[str, str] = field(default_factory=dict)
    """An attribute -> what graph.toml says that it is."""


@dataclass(frozen=True)
class GraphPlan:
    """The node types and relations of a database, and notes on what is not read."""

    nodes: Sequence[NodePlan]
    edges: Sequence[EdgePlan]
    notes: Sequence[str] = ()

    def columns(self, table: DatabaseTable) -> list[str]:
        """Return the columns of a table that are read, in its own order."""
        wanted: set[str] = set()
        for node in self.nodes:
            if node.table == table.name:
                wanted |= {*node.key, *node.attributes, *([node.name] if node.name else [])}
        for edge in self.edges:
            if edge.table == table.name:
                wanted |= {*edge.source.columns, *edge.target.columns, *([edge.weight] if edge.weight else [])}
                wanted |= set(edge.attributes)
            for end in (edge.source, edge.target):
                if self.table_of.get(end.node_type) == table.name:
                    wanted |= set(end.referred)
        return [column for column in table.columns if column in wanted]

    def id_columns(self, table: DatabaseTable) -> frozenset[str]:
        """Return the columns of a table that hold ids of nodes, its own or those of others."""
        ids = {column for node in self.nodes if node.table == table.name for column in node.key}
        for edge in self.edges:
            for end in (edge.source, edge.target):
                ids |= set(end.columns) if edge.table == table.name else set()
                ids |= set(end.referred) if self.table_of.get(end.node_type) == table.name else set()
        return frozenset(ids)

    @property
    def table_of(self) -> dict[str, str]:
        return {node.node_type: node.table for node in self.nodes}


def plan_graph(tables: Sequence[DatabaseTable], settings: Config, notes: Sequence[str] = ()) -> GraphPlan:
    """Decide which tables are node types and which are relations.

    A table with a key is a node type, and each of its foreign keys a relation. A table is a relation between two
    others (`_is_link`) if it has two foreign keys and nothing else that makes it a thing of its own.
    """
    known, more = _with_keys(tables)
    configured = {entry.file for entry in settings.edges}
    planner = _Planner(known, settings)
    for table in known:
        if table.name in configured and planner.is_configured_node(table) is None:
            continue
        if planner.is_configured_node(table) is None and _is_link(table, known):
            planner.add_link(table)
        elif table.key or planner.is_configured_node(table) is not None:
            planner.add_nodes(table)
        else:
            planner.leave_out(table)
    planner.add_configured()
    return GraphPlan(planner.nodes, planner.edges, [*notes, *more, *planner.notes()])


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


class _Planner:
    """Collects the node types, relations and notes of a database."""

    def __init__(self, tables: Sequence[DatabaseTable], settings: Config) -> None:
        self._tables = {table.name: table for table in tables}
        self._settings = settings
        self._types = _type_names(tables, settings)
        self.nodes: list[NodePlan] = []
        self.edges: list[EdgePlan] = []
        self._left_out: list[str] = []
        self._notes: list[str] = []
        for name in settings.files:
            if name not in self._tables:
                raise SourceError(
                    f"graph.toml names the table {name!r}, but the database has {listed(self._tables)}"
                    f"{did_you_mean(name, self._tables)}"
                )

    def is_configured_node(self, table: DatabaseTable) -> str | None:
        """Return the node type that graph.toml gives to a table."""
        return next((kind for kind, entry in self._settings.nodes.items() if entry.file == table.name), None)

    def add_nodes(self, table: DatabaseTable) -> None:
        """Add the node type of a table, and a relation for each of its foreign keys."""
        node_type = self._types[table.name]
        entry = self._settings.nodes.get(node_type)
        key = (self._column(table, entry.id),) if entry and entry.id else table.key
        if not key:
            raise SourceError(f'the table {table.name} has no primary key; name its ids in graph.toml as id = "…"')
        linked: set[str] = set()
        for fk in table.foreign_keys:
            target = self._end(table, fk)
            if target is None:
                continue
            linked |= set(fk.columns)
            name = self._foreign_key_name(node_type, fk)
            relation = self._relation(node_type, name, target.node_type)
            self.edges.append(EdgePlan(relation, table.name, KeyEnd(key, node_type), target))
        others = [column for column in table.columns if column not in {*key, *linked}]
        name_column = usual_name([column for column in others if not table.is_measure(column)], node_type)
        if entry and entry.name is not None:
            name_column = self._column(table, entry.name) if entry.name else None
        attributes = [column for column in others if column != name_column]
        if entry and entry.attributes is not None:
            attributes = [self._column(table, column) for column in entry.attributes]
        types = entry.attribute_types if entry else {}
        kinds = {self._column(table, column): checked_kind(column, word) for column, word in types.items()}
        kinds = {column: word for column, word in kinds.items() if column in attributes}
        self.nodes.append(NodePlan(node_type, table.name, key, name_column, tuple(attributes), kinds))

    def add_link(self, table: DatabaseTable) -> None:
        """Add the relation that a table of two foreign keys is."""
        source, target = (self._end(table, fk) for fk in table.foreign_keys)
        if source is None or target is None:
            return
        used = {*source.columns, *target.columns}
        weight = next((c for c in table.columns if c.lower() == "weight" and c not in used), None)
        name = _link_name(table.name, source.node_type, target.node_type)
        relation = self._relation(source.node_type, name, target.node_type)
        own_key = table.key and not set(table.key) <= used
        others = tuple(column for column in table.columns if column not in {*used, weight, *table.key})
        self.edges.append(EdgePlan(relation, table.name, source, target, weight, others))
        if own_key:
            self._notes.append(
                f"{table.name} is read as a relation, because it links two tables and no other refers to it; to read "
                f'it as nodes, name it in graph.toml as [nodes.{self._types[table.name]}] file = "{table.name}"'
            )
        if weight is None and any(map(table.is_measure, others)):
            self._notes.append(
                f"{table.name}: {listed(others, 8)} {'are attributes' if others[1:] else 'is an attribute'} of edges, "
                f"and each edge weighs 1; if one is the weight, name it in graph.toml under [[edges]]"
            )

    def leave_out(self, table: DatabaseTable) -> None:
        self._left_out.append(table.name)

    def add_configured(self) -> None:
        """Add the relations that graph.toml describes."""
        for entry in self._settings.edges:
            table = self._tables[entry.file]
            if entry.columns is None or len(entry.columns) != 2:
                raise SourceError(
                    f"relation {entry.name!r} in graph.toml needs two id columns of {table.name}: columns = "
                    f"[…, …] (it has {listed(table.columns)})"
                )
            first, second = (self._column(table, column) for column in entry.columns)
            ends = KeyEnd((first,), entry.source), KeyEnd((second,), entry.target)
            weight = self._column(table, entry.weight) if entry.weight else None
            relation = Relation(entry.source, entry.name, entry.target, directed=not entry.undirected)
            attributes = tuple(self._column(table, column) for column in entry.attributes or ())
            if entry.attributes is None and self.is_configured_node(table) is None:
                used = {first, second, *table.key, *([weight] if weight and weight.lower() == "weight" else [])}
                attributes = tuple(column for column in table.columns if column not in used)
            kinds = {self._column(table, column): word for column, word in entry.attribute_types.items()}
            self.edges.append(EdgePlan(relation, table.name, *ends, weight, attributes, kinds))

    def notes(self) -> list[str]:
        """Return the notes on what is decided by rule or not read."""
        why = "without a primary key it needs two foreign keys; name two columns in graph.toml under [[edges]]"
        left_out = _note(self._left_out, "table", why)
        return [*([left_out] if left_out else []), *self._notes]

    def _end(self, table: DatabaseTable, fk: ForeignKey) -> KeyEnd | None:
        """Return what a foreign key refers to, or None with a note if that table is not read."""
        target = self._tables.get(fk.table)
        if target is None or not target.key or not set(fk.referred) <= set(target.columns):
            self._notes.append(f"{table.name}.{'+'.join(fk.columns)} is no relation: {fk.table} is not read as nodes")
            return None
        alternate = fk.referred if fk.referred and fk.referred != target.key else ()
        return KeyEnd(fk.columns, self._types[fk.table], alternate)

    def _foreign_key_name(self, node_type: str, fk: ForeignKey) -> str:
        """Name a relation: manager_id gives manager; customer_id of orders, which says no more than its table, both."""
        target = self._types[fk.table]
        word = entity(fk.columns[0]) if len(fk.columns) == 1 else None
        if word is None or _names_table(word, fk.table) or are_alike(word, target):
            return f"{node_type}_{target}" if target != node_type else word or target
        return _plain(word)

    def _relation(self, source: str, name: str, target: str) -> Relation:
        """Return a relation, numbered if there is one of that name between these types."""
        names = (name, *(f"{name}_{number}" for number in range(2, len(self.edges) + 3)))
        taken = {edge.relation for edge in self.edges}
        return next(r for r in (Relation(source, each, target) for each in names) if r not in taken)

    def _column(self, table: DatabaseTable, name: str) -> str:
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
    words: dict[str, list[str]] = {table.name: list(table.key[:1]) for table in tables}
    for table in tables:
        for fk in table.foreign_keys:
            if len(fk.columns) == 1 and fk.table in words:
                words[fk.table].append(fk.columns[0])
    types = {t.name: named.get(t.name) or _spelled(t.name, words[t.name]) for t in tables}
    counts = Counter(types.values())
    return {name: node_type if counts[node_type] == 1 or name in named else name for name, node_type in types.items()}


def _spelled(table: str, columns: Iterable[str]) -> str:
    """Return the first entity of some id columns that the table may be the plural of."""
    entities = (entity(column) for column in columns)
    return _plain(next((e for e in entities if e and _names_table(e, table)), None) or singular(_plain(table)))


def _plain(name: str) -> str:
    """Join the words of a name by underscores: dashes and spaces have a meaning in meta-paths."""
    return "_".join(split_words(name)) or name


def _names_table(word: str, table: str) -> bool:
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
    return "_".join(words[1:-1]) if both else _plain(table)


# ---- Keys that are not declared ------------------------------------------------------------------
def _with_keys(tables: Sequence[DatabaseTable]) -> tuple[list[DatabaseTable], list[str]]:
    """Complete the keys of tables: those that foreign keys refer to, and if none is declared, those that names show."""
    known = {table.name: table for table in tables}
    for table in tables:
        for fk in table.foreign_keys:
            target = known.get(fk.table)
            if target is not None and not target.key and fk.referred:  # it refers to unique columns
                known[fk.table] = replace(target, key=fk.referred)
    declared = any(table.foreign_keys for table in tables)
    unknown = {table.name for table in tables if table.is_view or not declared}
    keyed = [
        replace(table, key=_key_by_name(table)) if table.name in unknown and not table.key else table
        for table in known.values()
    ]
    named = [
        replace(table, foreign_keys=_foreign_keys_by_name(table, keyed)) if table.name in unknown else table
        for table in keyed
    ]
    joined = [
        f"{table.name}.{fk.columns[0]} -> {fk.table}.{fk.referred[0]}"
        for table in named
        if table.name in unknown
        for fk in table.foreign_keys
    ]
    if not joined:
        return named, _note_undeclared(named)
    return named, [f"these foreign keys are not declared, but found by their names: {listed(joined, 20)}"]


def _note_undeclared(tables: Sequence[DatabaseTable]) -> list[str]:
    """Note the columns that are named after a table but not declared to refer to it."""
    columns = [
        f"{table.name}.{fk.columns[0]}"
        for table in tables
        for fk in _foreign_keys_by_name(table, tables)
        if table.key and fk.columns[0] not in {*table.key, *(c for other in table.foreign_keys for c in other.columns)}
    ]
    if not columns:
        return []
    why = "declared as no foreign key, so read as an attribute; name it in graph.toml under [[edges]] to join by it"
    return [f"{listed(columns)}: named after a table, but {why}"]


def _key_by_name(table: DatabaseTable) -> tuple[str, ...]:
    """Return the column that is called id, or after the table, as movie_id in movies."""
    columns = [c for c in table.columns if c.lower() == "id"]
    columns += [c for c in table.columns if (word := entity(c)) and word != c and _names_table(word, table.name)]
    return tuple(columns[:1])


def _foreign_keys_by_name(table: DatabaseTable, tables: Sequence[DatabaseTable]) -> tuple[ForeignKey, ...]:
    """Return the columns that are named after a table's key, as venue_id or first_venue_id after that of venues."""
    keys = []
    for column in table.columns:
        word = entity(column)
        if (column,) == table.key or word is None or word == column:
            continue
        target = _named_table(word, table, [t for t in tables if len(t.key) == 1])
        if target is not None:
            keys.append(ForeignKey((column,), target.name, target.key))
    return tuple(keys)


def _named_table(word: str, own: DatabaseTable, tables: Sequence[DatabaseTable]) -> DatabaseTable | None:
    """Return the table that a word names as a whole, or else with its last words; parent and the like name its own."""
    if is_own_role(word) and len(own.key) == 1:
        return own
    words = split_words(word)
    for start in range(len(words)):
        for table in tables:
            if _names_table("_".join(words[start:]), table.name):
                return table
    return None


# ---- Rows become nodes and edges -----------------------------------------------------------------
_BETWEEN = "|"
"""Between the parts of an id of several columns."""


def _assemble(
    plan: GraphPlan, rows: Mapping[str, pa.Table], title: str, settings: Config, duplicates: Duplicates | None
) -> HIN:
    """Build the graph. Nodes are in order of their ids, since the rows of a database have no order."""
    options = options_of(settings, duplicates)
    ordered = _with_clean_ids(plan, rows, options)
    nodes = []
    notes = list(plan.notes)
    for node in plan.nodes:
        table = ordered[node.table] = _in_order(ordered[node.table], node.key)
        ids = _ids(table, node.key)
        names = None if node.name is None else _as_text(table[node.name].combine_chunks())
        place = _place(title, node.table, table, node.key)
        where = f"under [nodes.{toml_key(node.node_type)}] in graph.toml"
        columns = ArrowTable(table.select(node.attributes), node.table, node.table)
        selection = Selection(columns, {}, node.attributes, kinds=node.kinds, declared_in=where)
        known, more = attributes_in_memory(selection, place)
        notes += more
        nodes.append(NodeTable(node.node_type, ids, place, names, known, typed=True))
    keys = {node.node_type: (ordered[node.table], node.key) for node in plan.nodes}
    options.check_names([edge.relation.name for edge in plan.edges])
    edges = [
        _edge_table(edge, ordered[edge.table], keys, title, edge.relation.name in options.undirected)
        for edge in plan.edges
        if not options.take or edge.relation.name in options.take
    ]
    return assemble(nodes, edges, replace(options, notes=notes))


def _with_clean_ids(plan: GraphPlan, rows: Mapping[str, pa.Table], options: ReadOptions) -> dict[str, pa.Table]:
    """Return the rows with their ids as graph.toml says: without those that mean none, and in one spelling."""
    if not (options.missing_ids or options.fold_ids):
        return dict(rows)
    tables = dict(rows)
    columns = {(node.table, column) for node in plan.nodes for column in node.key}
    of_type = {node.node_type: node.table for node in plan.nodes}
    for edge in plan.edges:
        for end in (edge.source, edge.target):
            columns |= {(edge.table, column) for column in end.columns}
            columns |= {(of_type[end.node_type], column) for column in end.referred or ()}
    for name, column in columns:
        ids = clean_ids(
            _as_id(tables[name][column].combine_chunks()), options.missing_ids or (), bool(options.fold_ids)
        )
        tables[name] = tables[name].set_column(tables[name].column_names.index(column), column, ids)
    for node in plan.nodes:
        ids = _ids(tables[node.table], node.key)
        kept = np.flatnonzero(ids.is_valid().to_numpy(zero_copy_only=False))
        if options.fold_ids:
            kept = np.intersect1d(kept, first_rows(ids))
        tables[node.table] = tables[node.table].take(pa.array(kept))
    return tables


def _edge_table(
    edge: EdgePlan, rows: pa.Table, keys: Mapping[str, tuple[pa.Table, tuple[str, ...]]], title: str, undirected: bool
) -> EdgeTable:
    """Return the edges of a relation; a row in which a foreign key is null is no edge."""
    ends = [_ids(rows, end.columns) for end in (edge.source, edge.target)]
    place = _place(title, edge.table, rows, (*edge.source.columns, *edge.target.columns))
    weights = None if edge.weight is None else rows[edge.weight].combine_chunks()
    attributes = rows.select(edge.attributes)
    complete = pc.and_(*(pc.is_valid(ids) for ids in ends))
    if not pc.all(complete, min_count=0).as_py():
        kept = np.flatnonzero(complete.to_numpy(zero_copy_only=False))
        ends = [ids.take(pa.array(kept)) for ids in ends]
        weights = None if weights is None else weights.take(pa.array(kept))
        attributes = attributes.take(pa.array(kept)) if edge.attributes else attributes
        whole = place
        place = lambda row: whole(int(kept[row]))  # noqa: E731
    for number, end in enumerate((edge.source, edge.target)):
        if end.referred:
            table, key = keys[end.node_type]
            ends[number] = _translate(ends[number], _ids(table, end.referred), _ids(table, key), end.node_type, place)
    relation = replace(edge.relation, directed=False) if undirected else edge.relation
    raw = RawAttributes.of(attributes, edge.table, edge.kinds, "under [[edges]] in graph.toml")
    return EdgeTable(relation, ends[0], ends[1], place, weights, raw)


def _translate(values: pa.Array, referred: pa.Array, ids: pa.Array, node_type: str, place: Place) -> pa.Array:
    """Return the ids of the nodes whose other unique columns have these values."""
    same = values.type == referred.type
    rows = pc.index_in(values if same else _as_text(values), value_set=referred if same else _as_text(referred))
    if rows.null_count:
        first = int(np.flatnonzero(pc.is_null(rows).to_numpy(zero_copy_only=False))[0])
        raise unknown_end(place(first), node_type, values[first].as_py(), rows.null_count)
    return ids.take(rows)


def _ids(rows: pa.Table, columns: Sequence[str]) -> pa.Array:
    """Return ids as integers or texts; those of several columns are joined, and null if one of them is."""
    parts = [_as_id(rows[column].combine_chunks()) for column in columns]
    if len(parts) == 1:
        return parts[0]
    return pc.binary_join_element_wise(*(_escaped(_as_text(part)) for part in parts), _BETWEEN)


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
    return _as_text(column)


def _as_text(column: pa.Array) -> pa.Array:
    return column.cast(pa.string())


def _in_order(rows: pa.Table, key: Sequence[str]) -> pa.Table:
    """Sort rows by their key: numbers by value, texts by their bytes."""
    if len(key) == 1 and pa.types.is_integer(rows[key[0]].type) and not rows[key[0]].null_count:
        numbers = rows[key[0]].to_numpy()
        if (numbers[1:] >= numbers[:-1]).all():
            return rows
    return rows.take(pc.sort_indices(rows, sort_keys=[(column, "ascending") for column in key]))


def _place(title: str, table: str, rows: pa.Table, columns: Sequence[str]) -> Place:
    """Return a function that finds a row by the values of its ids, since rows of a database have no numbers."""

    def find(row: int) -> str:
        values = ", ".join(f"{column} {rows[column][row].as_py()!r}" for column in dict.fromkeys(columns))
        return f"{title}, table {table}, the row with {values}"

    return find

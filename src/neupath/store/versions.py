"""Versions of a store: read one as a graph, check an update against the newest one, and write it as the next."""

import json
import logging
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field, replace
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from neupath._runtime.disk_cache import DiskCache
from neupath._runtime.files import locked
from neupath._runtime.lazy_mapping import LazyMapping
from neupath.errors import GraphError, SchemaError, SourceError, WriteError, did_you_mean, first_line, listed
from neupath.graph.edge_attributes import attribute_value, kind_of
from neupath.graph.edges import EdgeTables, in_both_directions
from neupath.graph.hin import HIN, Csr, Edges, Floats
from neupath.graph.metapath import Relation
from neupath.graph.nodes import Id, Mask, Nodes, Rows
from neupath.store import database, snapshots
from neupath.store.database import (
    StoreLayout,
    VersionFacts,
    attribute_columns,
    edge_row_schema,
    edge_row_table,
    edges_of_rows,
    read_edge_rows,
    read_facts,
    read_layout,
    run,
)
from neupath.store.snapshots import (
    Snapshot,
    Triplets,
    checksum_of_node,
    edge_checksum,
    row_checksum,
)
from neupath.store.update import Edge, Node, Update

_log = logging.getLogger("neupath.store")


# ---- Reading a version ---------------------------------------------------------------------------
_REPAIR_LOCK = ".repair.lock"


Reopen = Callable[[], AbstractContextManager[Any]]


def read_version(connection: Any, folder: Path, version: int | None = None, reopen: Reopen | None = None) -> HIN:
    """Return the graph at a version, by default the newest.

    Where `reopen` lends another connection later, each part of the snapshot is verified when it is first used; if it is
    damaged, the version is read again. Without it, all of the snapshot is verified now.
    """
    facts, layout = read_facts(connection, version), read_layout(connection)
    state = _read_state(connection, folder, layout, facts, reopen)
    return replace(to_hin(layout, state), disk_cache=disk_cache(folder, facts))


def disk_cache(folder: Path, facts: VersionFacts) -> DiskCache:
    """Return the cache of arrays derived from a version: the folder `cache` of the store."""
    return DiskCache(folder.absolute() / "cache", json.dumps(asdict(facts)))


def _read_state(
    connection: Any, folder: Path, layout: StoreLayout, facts: VersionFacts, reopen: Reopen | None = None
) -> Snapshot:
    """Return a version with its nodes numbered by key, from the newest usable snapshot and the changes after it.

    A damaged snapshot is rebuilt. All of it is verified first, or with `reopen` each part when it is first asked for;
    a damaged part is then read with another connection.
    """
    base_facts = _newest_snapshot(connection, folder, layout, facts.version)
    if base_facts is None:
        return rebuild(connection, layout, facts.version)
    path = snapshots.snapshot_path(folder, base_facts.version)
    try:
        base = snapshots.map_snapshot(path, layout, base_facts, verify=reopen is None)
    except SourceError as damage:
        base = _repair(connection, folder, layout, base_facts, str(damage))
    state = _advanced(connection, layout, base, facts.version)
    if reopen is None:
        return state.loaded()
    reread: LazyMapping[None, Snapshot] = LazyMapping([None], lambda _: _reread(folder, facts, reopen))

    def guarded(name: str) -> LazyMapping[int, Any]:
        def make(number: int) -> Any:
            try:
                return getattr(state, name)[number]
            except SourceError as damage:
                try:
                    return getattr(reread[None], name)[number]
                except SourceError as error:
                    raise SourceError(f"{damage}, and cannot be rebuilt: {error}") from error

        return LazyMapping(getattr(state, name), make)

    return Snapshot(facts.version, guarded("matrices"), guarded("nodes"), guarded("edge_rows"))


def _newest_snapshot(connection: Any, folder: Path, layout: StoreLayout, version: int) -> VersionFacts | None:
    """Return the facts of the newest usable snapshot for a version.

    A snapshot older than the last compaction is not usable: compaction deletes the changes after it.
    """
    usable = [at for at in snapshots.snapshots_of(folder) if layout.base_version <= at <= version]
    return read_facts(connection, max(usable)) if usable else None


def _reread(folder: Path, facts: VersionFacts, reopen: Reopen) -> Snapshot:
    """Read a version again, verifying all of it; raise if the store has another version of this number now, or none."""
    with reopen() as connection:
        if read_facts(connection, facts.version) != facts:
            raise SourceError(f"the store {folder} was replaced while it was open; open it again")
        return _read_state(connection, folder, read_layout(connection), facts)


def _repair(connection: Any, folder: Path, layout: StoreLayout, facts: VersionFacts, damage: str) -> Snapshot:
    """Return a version from the database, and write its snapshot again; raise if the database is damaged too."""
    snapshot = rebuild(connection, layout, facts.version, f"{damage}, and so is the database")
    try:  # DuckDB's lock keeps writers out while this reads; other readers may be here
        with locked(folder / _REPAIR_LOCK, "another process is writing it"):
            snapshots.write_snapshot(folder, snapshot, facts)
        _log.warning("%s; it was rebuilt from the database", damage)
    except (OSError, WriteError) as error:
        _log.warning("%s; the database was read instead, and the snapshot is left as it is: %s", damage, error)
    return snapshot


def wrong_sums(connection: Any, layout: StoreLayout, facts: VersionFacts, state: Snapshot) -> list[str]:
    """Compare a version with the counts and checksums that were written with it; return a sentence per difference."""
    problems, counted = [], snapshots.facts_of(connection, layout, state)
    for what in ("edge", "node"):
        count, expected = getattr(counted, f"{what}s"), getattr(facts, f"{what}s")
        if count != expected:
            problems.append(f"there are {count:,} {what}s where {expected:,} were counted")
        if getattr(counted, f"{what}_checksum") != getattr(facts, f"{what}_checksum"):
            problems.append(f"the checksum of the {what}s differs from the one written with them")
    return problems


def rebuild(
    connection: Any, layout: StoreLayout, version: int, refusal: str = "the database of the store is damaged"
) -> Snapshot:
    """Return a version from the database alone; raise unless it has the counts and checksums written with it."""
    facts = read_facts(connection, version)
    try:
        snapshot = rebuild_unchecked(connection, layout, version)
    except (
        ValueError,
        IndexError,
        TypeError,
        OverflowError,
        pa.ArrowException,
    ) as error:  # as of ends beyond all nodes
        raise SourceError(f"{refusal}: {first_line(error)}; restore the store from a copy") from error
    if problems := wrong_sums(connection, layout, facts, snapshot):
        raise SourceError(f"{refusal}: {problems[0]}; restore the store from a copy")
    return snapshot


def rebuild_unchecked(connection: Any, layout: StoreLayout, version: int) -> Snapshot:
    """Return a version from the database alone, whatever its counts and checksums."""
    base = layout.base_version
    types = range(len(layout.schema.node_types))
    nodes = {number: _as_of(_read_nodes(connection, number), base) for number in types}
    matrices = {}
    for number, relation in enumerate(layout.schema.relations):
        edges = _fetch(connection, f"SELECT source, target, weight FROM edges_{number}", [])  # noqa: S608
        matrices[number] = Edges(relation, *edges).matrix(_shape(layout, number, nodes))
    rows = {n: read_edge_rows(connection, n, layout, snapshots.ALIVE, [base]) for n in layout.described_relations}
    return _advanced(connection, layout, Snapshot(base, matrices, nodes, rows), version).loaded()


def _shape(layout: StoreLayout, number: int, nodes: Mapping[int, pa.Table]) -> tuple[int, int]:
    source, target = layout.ends(number)
    return len(nodes[source]), len(nodes[target])


def _advanced(connection: Any, layout: StoreLayout, base: Snapshot, version: int) -> Snapshot:
    """Return a version after `base`: its parts are made of those of `base`, and of what this reads, on demand."""
    ((last,),) = run(connection, "SELECT max(version) FROM versions")
    read = {} if base.version == last else _later_nodes(connection, base)
    nodes = LazyMapping(
        base.nodes, lambda number: _as_of(read[number] if number in read else base.nodes[number], version)
    )
    if base.version == version:
        return Snapshot(version, base.matrices, nodes, base.edge_rows)
    changes = {number: _read_changes(connection, number, base.version, version) for number in base.matrices}

    def matrix(number: int) -> Csr:
        enlarged = snapshots.enlarged(base.matrices[number], _shape(layout, number, nodes))
        directed = layout.schema.relations[number].directed
        return snapshots.overlaid(enlarged, *in_both_directions(*changes[number], directed))

    later_rows = {n: _later_rows(connection, layout, n, base.version, version) for n in base.edge_rows}
    rows = LazyMapping(base.edge_rows, lambda number: _with_rows(base.edge_rows[number], *later_rows[number]))
    return Snapshot(version, LazyMapping(base.matrices, matrix), nodes, rows)


def _later_rows(
    connection: Any, layout: StoreLayout, number: int, after: int, version: int
) -> tuple[list[int], pa.Table]:
    """Return the single edges of a relation that were removed between two versions, by number, and the new ones."""
    gone = f"SELECT row FROM edge_rows_{number} WHERE died > $1 AND died <= $2 AND born <= $1"  # noqa: S608
    removed = [row for (row,) in run(connection, gone, [after, version])]
    new = "born > $1 AND born <= $2 AND (died IS NULL OR died > $2)"
    return removed, read_edge_rows(connection, number, layout, new, [after, version])


def _with_rows(rows: pa.Table, removed: list[int], added: pa.Table) -> pa.Table:
    if removed:
        rows = rows.filter(pa.array(~np.isin(rows["row"].to_numpy(), removed)))
    return pa.concat_tables([rows, added]).unify_dictionaries() if len(added) else rows


def _later_nodes(connection: Any, base: Snapshot) -> dict[int, pa.Table]:
    """Return the newest node tables of the types of which nodes were added or removed since."""
    tables = {}
    for number in base.nodes:
        query = f"SELECT count(*) FROM nodes_{number} WHERE born > $1 OR died > $1"  # noqa: S608
        ((changed,),) = run(connection, query, [base.version])
        if changed:
            tables[number] = _read_nodes(connection, number)
    return tables


def _as_of(table: pa.Table, version: int) -> pa.Table:
    """Return the nodes born up to a version, dead ones too."""
    born = table["born"]
    if not len(born) or born[-1].as_py() <= version:  # `to_numpy` of a whole column would import pandas
        return table
    return table.slice(0, int(np.searchsorted(born.to_numpy(), version + 1)))


def _read_nodes(connection: Any, number: int) -> pa.Table:
    return connection.sql(f"SELECT * FROM nodes_{number} ORDER BY key").to_arrow_table()  # noqa: S608


def _read_changes(connection: Any, number: int, after: int, until: int) -> Triplets:
    """Return the last weight of each edge of a relation that changed between two versions."""
    query = """
        SELECT source, target, arg_max("after", version) FROM changes
        WHERE relation = ? AND version > ? AND version <= ? GROUP BY source, target
    """
    return _fetch(connection, query, [number, after, until])


def _fetch(connection: Any, query: str, values: list[Any]) -> Triplets:
    columns = connection.sql(query, params=values).to_arrow_table().columns
    sources, targets, weights = (column.to_numpy() for column in columns)
    return sources, targets, weights


def to_hin(layout: StoreLayout, state: Snapshot) -> HIN:
    """Return a version as a graph: rows number the nodes that are alive, in the order of their keys.

    Its parts are made of those of the version when they are first used.
    """
    types = layout.type_numbers
    relations = {relation: number for number, relation in enumerate(layout.schema.relations)}
    alive = LazyMapping(types, lambda node_type: snapshots.alive_nodes(state.nodes[types[node_type]], state.version))

    def nodes(node_type: str) -> Nodes:
        return to_nodes(layout, types[node_type], state.nodes[types[node_type]], alive[node_type])

    def matrix(relation: Relation) -> Csr:
        return snapshots.restricted(state.matrices[relations[relation]], alive[relation.source], alive[relation.target])

    def edges(relation: Relation) -> Edges:
        return _edges_of_rows(relation, state.edge_rows[relations[relation]], attributes[relation], alive)

    attributes = {layout.schema.relations[number]: layout.edge_attributes[number] for number in state.edge_rows}
    tables = EdgeTables(attributes, edges)
    return HIN(layout.schema, LazyMapping(types, nodes), LazyMapping(relations, matrix), layout.notes, tables)


def _edges_of_rows(relation: Relation, rows: pa.Table, schema: pa.Schema, alive: Mapping[str, Mask]) -> Edges:
    """Return the single edges of a relation that the rows of a store hold."""
    edges = edges_of_rows(relation, rows, schema.names)
    sources, targets = alive[relation.source], alive[relation.target]
    return replace(edges, sources=_rows_of_keys(edges.sources, sources), targets=_rows_of_keys(edges.targets, targets))


def _rows_of_keys(keys: Rows, alive: Mask) -> Rows:
    """Return the rows of nodes with these keys: keys number all nodes, rows those that are alive."""
    if alive.all():
        return keys
    rows: Rows = (np.cumsum(alive) - 1)[keys]
    return rows


def to_nodes(layout: StoreLayout, number: int, table: pa.Table, alive: Mask) -> Nodes:
    """Return the alive nodes of a table, with the attribute names and types of the layout."""
    kept = table if alive.all() else table.take(pa.array(np.flatnonzero(alive)))
    schema = layout.attributes[number]
    columns = [kept[name].cast(field.type) for name, field in zip(attribute_columns(len(schema)), schema, strict=True)]
    ids = kept["id"].combine_chunks()
    return Nodes(
        layout.schema.node_types[number],
        ids if pa.types.is_int64(ids.type) else ids.cast(pa.string()),
        kept["name"].combine_chunks().cast(pa.string()) if layout.named[number] else None,
        pa.table(columns, schema=schema) if columns else pa.table({}),
        distinct=True,
    )


# ---- Changes and the head ------------------------------------------------------------------------
Pair = tuple[int, int]  # keys of the two ends of an edge


@dataclass(frozen=True)
class EdgeChange:
    """Changed edges of one relation: keys of the ends of each, its weight before and after (0: no edge)."""

    sources: Rows
    targets: Rows
    before: Floats
    after: Floats

    def weights_after(self) -> dict[Pair, float]:
        pairs = zip(self.sources.tolist(), self.targets.tolist(), strict=True)
        return dict(zip(pairs, self.after.tolist(), strict=True))


@dataclass(frozen=True)
class RowsChange:
    """Changed single edges of one relation, rows of `edge_row_table`: those that end, and those that come."""

    removed: pa.Table
    added: pa.Table


@dataclass(frozen=True)
class Change:
    """One version by keys: what the database writes and the live graph follows. The second shape of an update."""

    facts: VersionFacts
    edges: Mapping[int, EdgeChange]  # by number of the relation
    new_nodes: Mapping[int, pa.Table]  # by number of the node type: the new rows of its table
    removed_nodes: Mapping[int, Sequence[int]]  # by number of the node type: keys
    layout: StoreLayout
    edge_rows: Mapping[int, RowsChange] = field(default_factory=dict)  # by number of the relation, if it has attributes

    @property
    def version(self) -> int:
        return self.facts.version

    def nodes(self) -> dict[str, Nodes]:
        types = self.layout.schema.node_types
        return {
            types[number]: to_nodes(self.layout, number, table, np.ones(len(table), dtype=np.bool_))
            for number, table in self.new_nodes.items()
        }

    def keys(self) -> dict[str, Rows]:
        """Return the keys of the new nodes by type, in the order of `nodes`."""
        types = self.layout.schema.node_types
        return {types[number]: table["key"].to_numpy() for number, table in self.new_nodes.items()}


class Head:
    """The newest version in memory: keys by id and weights by edge, so that an update costs only what it changes.

    It does not see what others commit: for a store, only the holder of the writer lock may have one.
    """

    def __init__(self, layout: StoreLayout, facts: VersionFacts, state: Snapshot, changes: int = 0) -> None:
        self.layout, self.facts, self.changes = layout, facts, changes
        self._state = state
        self._keys: dict[int, dict[Id, int]] = {}
        self.sizes = [len(table) for table in self._state.nodes.values()]
        self._new: list[dict[int, tuple[Id, str | None]]] = [{} for _ in self._state.nodes]
        self._weights: list[dict[Pair, float]] = [{} for _ in self._state.matrices]
        self.single_edges = {
            number: SingleEdges(rows, layout.schema.relations[number]) for number, rows in state.edge_rows.items()
        }

    @classmethod
    def read(cls, connection: Any, folder: Path) -> "Head":
        layout, facts = read_layout(connection), read_facts(connection)
        ((changes,),) = run(connection, "SELECT count(*) FROM changes")
        head = cls(layout, facts, _read_state(connection, folder, layout, facts), changes)
        for number, single in head.single_edges.items():
            ((last,),) = run(connection, f"SELECT max(row) FROM edge_rows_{number}")  # noqa: S608  also of ended ones
            single.next_row = 0 if last is None else last + 1
        return head

    @classmethod
    def of(cls, hin: HIN, version: int) -> "Head":
        """Return the head of a graph without a store: keys are rows, and counts and checksums are not known."""
        tables = [database.node_table(nodes.ids, nodes.names, nodes.attributes) for nodes in hin.nodes.values()]
        matrices = (hin.matrices[relation] for relation in hin.schema.relations)
        ordered = [m if m.has_sorted_indices else m.sorted_indices() for m in matrices]  # `weight` bisects rows
        layout = StoreLayout.of(hin)
        rows = {n: edge_row_table(hin.edge_tables[hin.schema.relations[n]]) for n in layout.described_relations}
        state = Snapshot(version, dict(enumerate(ordered)), dict(enumerate(tables)), rows)
        return cls(layout, VersionFacts(version, 0, 0, 0, 0), state)

    def columns(self, number: int) -> pa.Schema:
        return self._state.nodes[number].schema

    def key(self, number: int, id_: Id) -> int | None:
        if number not in self._keys:  # a type that no update names is never hashed
            table = self._state.nodes[number]
            alive = table.filter(table["died"].is_null()) if table["died"].null_count < len(table) else table
            self._keys[number] = dict(zip(alive["id"].to_pylist(), alive["key"].to_pylist(), strict=True))
        return self._keys[number].get(id_)

    def node(self, number: int, key: int) -> tuple[Id, str | None]:
        if key in self._new[number]:
            return self._new[number][key]
        table = self._state.nodes[number]
        return table["id"][key].as_py(), table["name"][key].as_py()

    def weight(self, number: int, pair: Pair) -> float:
        changed = self._weights[number].get(pair)
        if changed is not None:
            return changed
        matrix, (source, target) = self._state.matrices[number], pair
        if source >= matrix.shape[0]:
            return 0.0
        start, end = int(matrix.indptr[source]), int(matrix.indptr[source + 1])
        place = start + int(np.searchsorted(matrix.indices[start:end], target))
        return float(matrix.data[place]) if place < end and matrix.indices[place] == target else 0.0

    def pairs_at(self, number: int, end: int, keys: Iterable[int]) -> set[Pair]:
        """Return the edges at some nodes, as source (end 0) or target (end 1), with removed edges."""
        matrix, wanted = self._state.matrices[number], set(keys)
        if end == 0:
            rows = [key for key in wanted if key < matrix.shape[0]]
            pairs = {(row, int(c)) for row in rows for c in matrix.indices[matrix.indptr[row] : matrix.indptr[row + 1]]}
        else:
            positions = np.flatnonzero(np.isin(matrix.indices, list(wanted)))
            rows = (np.searchsorted(matrix.indptr, positions, side="right") - 1).tolist()
            pairs = set(zip(rows, matrix.indices[positions].tolist(), strict=True))
        if not self.layout.schema.relations[number].directed:  # the matrix has both directions, all else one
            pairs = {pair for pair in pairs if pair[0] <= pair[1]}
        return pairs | {pair for pair in self._weights[number] if pair[end] in wanted}

    def advance(self, change: Change) -> None:
        for number, keys in change.removed_nodes.items():
            for key in keys:
                self._keys[number].pop(self.node(number, key)[0], None)
        for number, table in change.new_nodes.items():
            keys, ids, names = (table[name].to_pylist() for name in ("key", "id", "name"))
            self._keys[number].update(zip(ids, keys, strict=True))
            self._new[number].update(zip(keys, zip(ids, names, strict=True), strict=True))
            self.sizes[number] += len(keys)
        for number, edges in change.edges.items():
            self._weights[number].update(edges.weights_after())
            self.changes += len(edges.sources)
        for number, rows in change.edge_rows.items():
            self.single_edges[number].advance(rows)
        self.facts = change.facts


class SingleEdges:
    """The single edges of one relation by the pair that they join, so that an update costs only what it changes.

    Parameters
    ----------
    rows : the edges of a version, rows of `edge_row_table`.
    relation : their relation; a pair is as `Relation.pair` has it.
    """

    def __init__(self, rows: pa.Table, relation: Relation) -> None:
        self._rows, self._relation = rows, relation
        self._by_pair: tuple[Rows, Rows, Rows] | None = None  # sources, targets and positions, once a pair is looked up
        self._added: dict[Pair, list[pa.Table]] = {}
        self._removed: set[Pair] = set()  # pairs of which no row of the version is left
        self.next_row = len(rows)

    def at(self, pairs: Sequence[Pair]) -> pa.Table:
        """Return the edges that join some pairs, those of each pair in the order in which they came.

        The numbers of rows do not tell that order in a live graph: a compaction numbers its new base from 0, and what
        came while it was built keeps the numbers that it had.
        """
        before = np.sort(self._positions([pair for pair in pairs if pair not in self._removed])).tolist()
        tables = [self._rows.slice(position, 1) for position in before]  # `take` would copy all chunks
        tables += [rows for pair in pairs for rows in self._added.get(pair, ())]
        if not tables:
            return self._rows.slice(0, 0)
        return pa.concat_tables(tables).unify_dictionaries().combine_chunks()

    def _positions(self, pairs: Sequence[Pair]) -> Rows:
        if not pairs:
            return np.empty(0, dtype=np.int64)
        if self._by_pair is None:
            ends = Edges(self._relation, *(self._rows[end].to_numpy() for end in ("source", "target"))).ends_in_order()
            order = np.lexsort(ends[::-1]).astype(np.int64)
            self._by_pair = ends[0][order], ends[1][order], order
        sources, targets, order = self._by_pair
        positions = []
        for source, target in pairs:
            low, high = np.searchsorted(sources, [source, source + 1])
            first, last = low + np.searchsorted(targets[low:high], [target, target + 1])
            positions.append(order[first:last])
        return np.concatenate(positions)

    def advance(self, change: RowsChange) -> None:
        for pair in self._pairs(change.removed):
            self._removed.add(pair)
            self._added.pop(pair, None)
        for at, pair in enumerate(self._pairs(change.added)):
            self._added.setdefault(pair, []).append(change.added.slice(at, 1))
        self.next_row += len(change.added)

    def _pairs(self, rows: pa.Table) -> list[Pair]:
        return list(map(self._relation.pair, rows["source"].to_pylist(), rows["target"].to_pylist()))


# ---- Checking an update --------------------------------------------------------------------------
_NO_ATTRIBUTES = pa.schema([])
_MAX_PROBLEMS = 20
_MAX_LETTERS = 100


class Validator:
    """Checks one update against the newest version: looks up relations, types and ids, and collects all problems."""

    def __init__(self, head: Head) -> None:
        self._head, self._layout = head, head.layout
        self._place = ""  # of the line that is being checked
        # By the number of a relation: the weights to add to each pair, the new single edges, and the pairs to remove,
        # each with its name for errors.
        self._added: dict[int, dict[Pair, list[float]]] = defaultdict(dict)
        self._new_rows: dict[int, list[dict[str, Any]]] = defaultdict(list)
        self._removed: dict[int, dict[Pair, str]] = defaultdict(dict)
        # By the number of a node type: the new rows of its table, their keys, and the keys to remove with their places.
        self._new: dict[int, list[dict[str, Any]]] = defaultdict(list)
        self._new_keys: dict[int, dict[Id, int]] = defaultdict(dict)
        self._dead: dict[int, dict[int, str]] = defaultdict(dict)
        self._problems: list[str] = []

    def check(self, update: Update) -> Change:
        """Return the update as a change of keys, or raise one error that lists the problems with their lines."""
        checks: dict[str, Callable[[Any], None]] = {
            "remove_edges": self._remove_edge, "remove_nodes": self._remove_node, "add_nodes": self._add_node,
            "add_edges": self._add_edge,
        }  # fmt: skip
        for field_name, check in checks.items():
            for self._place, line in update.located(field_name):
                check(line)
        edges = {
            number: self._edge_change(number)
            for number in range(len(self._layout.schema.relations))
            if number in self._added or number in self._removed
        }
        self._find_dangling(edges)
        if self._problems:
            more = len(self._problems) - _MAX_PROBLEMS
            shown = self._problems[:_MAX_PROBLEMS] + ([f"and {more:,} more bad lines"] if more > 0 else [])
            raise GraphError(f"nothing was changed: {'; '.join(shown)}")
        new = {
            number: pa.Table.from_pylist(rows, schema=self._head.columns(number))
            for number, rows in sorted(self._new.items())
        }
        removed = {number: list(keys) for number, keys in sorted(self._dead.items())}
        rows = {number: self._rows_change(number) for number in edges if number in self._head.single_edges}
        return Change(self._next_facts(edges, rows), edges, new, removed, self._layout, rows)

    def _rows_change(self, number: int) -> RowsChange:
        single, schema = self._head.single_edges[number], edge_row_schema(self._layout.edge_attributes[number])
        added = [{"row": single.next_row + at} | row for at, row in enumerate(self._new_rows[number])]
        removed = single.at(list(self._removed[number]))
        return RowsChange(removed, pa.Table.from_pylist(added, schema=schema))

    def _problem(self, text: str) -> None:
        self._problems.append(f"{self._place}: {text}")

    def _remove_node(self, node: Node) -> None:
        number = self._type_number(node)
        if number is None:
            return
        key = self._key(number, node.id)
        if key is None:
            self._problem(f"no {node.node_type} with the id {_shown(node.id)} to remove")
        elif key in self._dead[number]:
            self._problem(f"{node.node_type} {_shown(node.id)} is removed a second time")
        else:
            self._dead[number][key] = self._place

    def _add_node(self, node: Node) -> None:
        number = self._type_number(node)
        if number is None:
            return
        id_ = self._as_id(number, node.id)
        problem = self._node_problem(number, node, id_)
        attributes = None if problem else self._attributes(number, node)
        if problem or attributes is None or id_ is None:
            types = self._layout.attributes[number].types
            self._problem(problem or f"its attributes {dict(node.attributes)} are not of the types {types}")
            return
        rows = self._new[number]
        key, version = self._head.sizes[number] + len(rows), self._head.facts.version + 1
        rows.append({"key": key, "born": version, "id": id_, "name": node.name, **attributes})
        self._new_keys[number][id_] = key

    def _node_problem(self, number: int, node: Node, id_: Id | None) -> str | None:
        known, names = self._key(number, node.id), self._layout.attributes[number].names
        unknown = [name for name in node.attributes if name not in names]
        if id_ in (None, ""):
            return f"{_shown(node.id)} cannot be the id of a {node.node_type}"
        if known is not None and known not in self._dead[number]:
            return f"{node.node_type} {_shown(node.id)} is there already"
        if unknown:
            return f"{node.node_type} has no attribute {listed(unknown)} (it has {listed(names) or 'none'})"
        if node.name is not None and not self._layout.named[number]:
            return f"nodes of type {node.node_type} have no names, and {_shown(node.name)} is given"
        if node.name is not None and not (isinstance(node.name, str) and _is_text(node.name)):
            return f"{_shown(node.name)} is not valid text, and cannot be the name of a {node.node_type}"
        return None

    def _attributes(self, number: int, node: Node) -> dict[str, object] | None:
        """Return the attributes by column, cast to its type; None if one cannot be cast."""
        schema = self._layout.attributes[number]
        try:
            return {
                column: pa.scalar(node.attributes.get(field.name)).cast(field.type).as_py()
                for column, field in zip(attribute_columns(len(schema)), schema, strict=True)
            }
        except (pa.ArrowException, UnicodeError, OverflowError):
            return None

    def _type_number(self, node: Node) -> int | None:
        types = self._layout.schema.node_types
        if node.node_type in types:
            return types.index(node.node_type)
        self._problem(f"no node type {_shown(node.node_type)} in this graph (it has {listed(types)})")
        return None

    def _key(self, number: int, id_: Id) -> int | None:
        cast_id = self._as_id(number, id_)
        if cast_id is None:
            return None
        own = self._new_keys[number].get(cast_id)
        return self._head.key(number, cast_id) if own is None else own

    def _as_id(self, number: int, id_: Id) -> Id | None:
        """Return an id in the type of the other ids of its node type, or None if it cannot be cast."""
        if not isinstance(id_, str | Integral):
            return None
        if not pa.types.is_int64(self._head.columns(number).field("id").type):
            return str(id_) if _is_text(str(id_)) else None
        try:
            value = int(id_)
        except ValueError:
            return None
        return value if abs(value) < 2**63 and str(value) == str(id_).strip() else None

    def _add_edge(self, edge: Edge) -> None:
        number = self._relation_number(edge)
        if number is None:
            return
        if not _is_weight(edge.weight):
            self._problem(f"weight {_shown(edge.weight)} is not allowed; weights are finite numbers above 0")
        elif (ends := self._ends(edge, number)) is not None:
            pair = self._layout.schema.relations[number].pair(*ends)
            self._added[number].setdefault(pair, []).append(float(edge.weight))
            self._add_row(edge, number, ends)

    def _add_row(self, edge: Edge, number: int, ends: Pair) -> None:
        """Add the single edge, with the ends as they are given, or the problems of its attributes."""
        relation = self._layout.schema.relations[number]
        schema = self._layout.edge_attributes.get(number, _NO_ATTRIBUTES)
        unknown = [str(name) for name in edge.attributes if name not in schema.names]
        if unknown:
            known = f"they have {listed(schema.names)}" if len(schema) else "they have none"
            hint = did_you_mean(unknown[0], [*schema.names, "weight"])
            self._problem(f"edges of '{relation}' have no attribute {_shown(unknown[0])} ({known}){hint}")
        if not len(schema) or unknown:
            return
        row: dict[str, Any] = {"source": ends[0], "target": ends[1], "weight": float(edge.weight)}
        for column, attribute in zip(attribute_columns(len(schema)), schema, strict=True):
            value = edge.attributes.get(attribute.name)
            try:
                row[column] = attribute_value(value, attribute.type)
            except (pa.ArrowException, UnicodeError, OverflowError, ValueError):
                kind = {"integer": "an integer"}.get(word := kind_of(attribute.type), f"a {word}")
                self._problem(f"the attribute {attribute.name} of '{relation}' must be {kind}, not {_shown(value)}")
        self._new_rows[number].append(row)

    def _remove_edge(self, edge: Edge) -> None:
        number = self._relation_number(edge)
        if number is None or (ends := self._ends(edge, number)) is None:
            return
        relation, removed = self._layout.schema.relations[number], self._removed[number]
        shown = f"from {_shown(edge.source)} to {_shown(edge.target)}"
        if relation.pair(*ends) in removed:
            self._problem(f"the edge {shown} is removed a second time")
        else:
            removed[relation.pair(*ends)] = f"{self._place}: '{relation}' {shown}"

    def _relation_number(self, edge: Edge) -> int | None:
        """Return the number of the relation with a name or full spelling."""
        try:
            return self._layout.schema.relations.index(self._layout.schema.relation(edge.relation))
        except SchemaError as error:
            self._problem(str(error))
            return None

    def _ends(self, edge: Edge, number: int) -> Pair | None:
        """Return the keys of both ends."""
        relation = self._layout.schema.relations[number]
        source, target = self._end(relation.source, edge.source), self._end(relation.target, edge.target)
        return None if source is None or target is None else (source, target)

    def _end(self, node_type: str, id_: Id) -> int | None:
        key = self._key(self._layout.schema.node_types.index(node_type), id_)
        if key is None:
            self._problem(f"no {node_type} with the id {_shown(id_)}")
        return key

    def _edge_change(self, number: int) -> EdgeChange:
        added, removed = self._added[number], self._removed[number]
        pairs = list(dict.fromkeys([*removed, *added]))
        before = [self._head.weight(number, pair) for pair in pairs]
        kept = [0.0 if pair in removed else old for pair, old in zip(pairs, before, strict=True)]
        if number in self._head.single_edges:  # the weight of a pair is that of its edges, added up one by one
            after = [sum(added.get(pair, ()), old) for pair, old in zip(pairs, kept, strict=True)]
        else:
            after = [old + sum(added.get(pair, ()), 0.0) for pair, old in zip(pairs, kept, strict=True)]
        for pair, old in zip(pairs, before, strict=True):
            if pair in removed and not old:
                self._problems.append(f"{removed[pair]}: there is no such edge to remove")
        relation = self._layout.schema.relations[number]
        self._problems += [f"the weight of an edge of '{relation}' would be {w}" for w in after if not np.isfinite(w)]
        keys = np.array(pairs, dtype=np.int64).reshape(-1, 2)
        return EdgeChange(keys[:, 0], keys[:, 1], np.array(before), np.array(after))

    def _find_dangling(self, edges: Mapping[int, EdgeChange]) -> None:
        """Report every removed node that still has an edge."""
        head, schema = self._head, self._layout.schema
        for number, dead in self._dead.items():
            node_type = schema.node_types[number]
            for relation_number, relation in enumerate(schema.relations):
                after = edges[relation_number].weights_after() if relation_number in edges else {}
                for end in (end for end, name in enumerate((relation.source, relation.target)) if name == node_type):
                    pairs = head.pairs_at(relation_number, end, dead) | after.keys()
                    joined = {p for p in pairs if (after[p] if p in after else head.weight(relation_number, p)) > 0}
                    self._problems += [
                        f"{dead[key]}: {node_type} {head.node(number, key)[0]!r} cannot be removed: it still "
                        f"has edges of '{relation}'; remove them in the same update"
                        for key in sorted(dead.keys() & {pair[end] for pair in joined})
                    ]

    def _next_facts(self, edges: Mapping[int, EdgeChange], edge_rows: Mapping[int, RowsChange]) -> VersionFacts:
        facts = self._head.facts
        nodes, node_total, count, total = facts.nodes, facts.node_checksum, facts.edges, facts.edge_checksum
        for number, rows in self._new.items():
            nodes += len(rows)
            node_total += sum(checksum_of_node(number, row["key"], row["id"], row["name"]) for row in rows)
        for number, dead in self._dead.items():
            nodes -= len(dead)
            node_total -= sum(checksum_of_node(number, key, *self._head.node(number, key)) for key in dead)
        for number, change in edges.items():
            count += int(np.count_nonzero(change.after)) - int(np.count_nonzero(change.before))
            for weights, sign in ((change.after, 1), (change.before, -1)):
                there = weights > 0
                summed = edge_checksum(number, change.sources[there], change.targets[there], weights[there])
                total = snapshots.add_checksums(total, sign * summed)
        for number, changed in edge_rows.items():
            summed = row_checksum(number, changed.added) - row_checksum(number, changed.removed)
            total = snapshots.add_checksums(total, summed)
        return VersionFacts(facts.version + 1, nodes, count, node_total, total)


def _is_weight(value: object) -> bool:
    """Whether a value is a finite number above 0; an integer may be beyond all floats."""
    try:
        return isinstance(value, Real) and math.isfinite(value) and float(value) > 0
    except OverflowError:
        return False


def _is_text(text: str) -> bool:
    """Whether a text can be encoded; half of a surrogate pair, which JSON may hold, cannot."""
    return text.isprintable() or not any("\ud800" <= letter <= "\udfff" for letter in text)


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _MAX_LETTERS else f"{text[:_MAX_LETTERS]}…"


# ---- Writing versions ----------------------------------------------------------------------------
def write_updates(connection: Any, folder: Path, head: Head, updates: Sequence[Update]) -> list[Change | BaseException]:
    """Write updates in one transaction, each as its own version; return the change or the error of each.

    The changes are on disk when this returns. If it raises, `head` is ahead of the database and must be dropped.
    """
    outcomes: list[Change | BaseException] = []
    for update in updates:
        try:
            change = Validator(head).check(update)
        except Exception as error:
            outcomes.append(error)
        else:
            head.advance(change)
            outcomes.append(change)
    changes = [outcome for outcome in outcomes if isinstance(outcome, Change)]
    if changes:
        with database.transaction(connection, folder):
            _write(connection, changes)
    return outcomes


def _write(connection: Any, changes: Sequence[Change]) -> None:
    """Insert all new nodes before removing any: a node may come and go within one group of changes."""
    edges = [_change_table(change.version, *changed) for change in changes for changed in change.edges.items()]
    if edges:
        database.insert(connection, "changes", pa.concat_tables(edges))
    for change in changes:
        for number, rows in change.edge_rows.items():
            database.end(connection, f"edge_rows_{number}", "row", rows.removed["row"].to_pylist(), change.version)
            if len(rows.added):
                database.insert_edge_rows(connection, number, rows.added, change.version)
    for change in changes:
        for number, table in change.new_nodes.items():
            database.insert(connection, f"nodes_{number}", table)
    for change in changes:
        for number, keys in change.removed_nodes.items():
            database.end(connection, f"nodes_{number}", "key", keys, change.version)
    database.write_facts(connection, *(change.facts for change in changes))


def _change_table(version: int, number: int, change: EdgeChange) -> pa.Table:
    size = len(change.sources)
    return pa.table(
        {
            "version": np.full(size, version, np.int64), "relation": np.full(size, number, np.int32),
            "source": change.sources, "target": change.targets, "before": change.before, "after": change.after,
        }
    )  # fmt: skip

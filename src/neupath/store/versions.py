"""Versions of a store: reading one as a graph, and the newest one in memory for the writer."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa

from neupath.graph.hin import HIN, Csr, Floats
from neupath.graph.metapath import Relation
from neupath.graph.nodes import Id, Mask, Nodes, Rows
from neupath.store.database import (
    StoreLayout,
    VersionFacts,
    node_columns,
    node_table,
    read_facts,
    read_layout,
    run,
)
from neupath.store.edge_matrices import Triplets, enlarged, from_edges, in_both_directions, overlaid, restricted
from neupath.store.snapshots import Snapshot, read_snapshot, versions_of


# ---- Reading a version ---------------------------------------------------------------------------
def read_version(connection: Any, folder: Path, version: int | None = None) -> HIN:
    """Return the graph at a version, by default the newest."""
    facts = read_facts(connection, version)
    layout = read_layout(connection)
    return to_hin(layout, read_state(connection, folder, layout, facts.version))


def read_state(connection: Any, folder: Path, layout: StoreLayout, version: int) -> Snapshot:
    """Return a version by keys: the last usable snapshot with the changes since, or all from the database.

    A snapshot older than the last compaction is of no use, since the changes after it are gone.
    """
    usable = {at: path for at, path in versions_of(folder).items() if layout.base_version <= at <= version}
    base = read_snapshot(usable[max(usable)]) if usable else rebuild(connection, layout, layout.base_version)
    return advanced(connection, layout, base, version)


def rebuild(connection: Any, layout: StoreLayout, version: int) -> Snapshot:
    """Return a version from the database alone."""
    types = range(len(layout.schema.node_types))
    nodes = tuple(_as_of(_read_nodes(connection, number), layout.base_version) for number in types)
    sizes = dict(zip(layout.schema.node_types, map(len, nodes), strict=True))
    matrices = []
    for number, relation in enumerate(layout.schema.relations):
        shape = sizes[relation.source], sizes[relation.target]
        edges = _fetch(connection, f"SELECT source, target, weight FROM edges_{number}", [])  # noqa: S608
        matrices.append(from_edges(*edges, shape, relation.directed))
    return advanced(connection, layout, Snapshot(layout.base_version, tuple(matrices), nodes), version)


def advanced(connection: Any, layout: StoreLayout, base: Snapshot, version: int) -> Snapshot:
    """Return a later version: its nodes, and the edges with the changes in between."""
    ((last,),) = run(connection, "SELECT max(version) FROM versions")
    nodes = base.nodes if base.version == last else _later_nodes(connection, base)
    nodes = tuple(_as_of(table, version) for table in nodes)
    sizes = dict(zip(layout.schema.node_types, map(len, nodes), strict=True))
    matrices = []
    for number, relation in enumerate(layout.schema.relations):
        matrix = enlarged(base.matrices[number], (sizes[relation.source], sizes[relation.target]))
        changed = in_both_directions(*_read_changes(connection, number, base.version, version), relation.directed)
        matrices.append(overlaid(matrix, *changed))
    return Snapshot(version, tuple(matrices), nodes)


def _later_nodes(connection: Any, base: Snapshot) -> tuple[pa.Table, ...]:
    """Return the node tables, read from the database only where nodes were added or removed since."""
    tables = []
    for number, table in enumerate(base.nodes):
        query = f"SELECT count(*) FROM nodes_{number} WHERE born > $1 OR died > $1"  # noqa: S608
        ((changed,),) = run(connection, query, [base.version])
        tables.append(_read_nodes(connection, number) if changed else table)
    return tuple(tables)


def _as_of(table: pa.Table, version: int) -> pa.Table:
    """Return the nodes born up to a version, also those that had died."""
    born = table["born"].to_numpy()
    return table if not len(born) or born[-1] <= version else table.slice(0, int(np.searchsorted(born, version + 1)))


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
    """Return a version as a graph: rows number the nodes that are alive, in the order of their keys."""
    alive = [_alive(table, state.version) for table in state.nodes]
    masks = dict(zip(layout.schema.node_types, alive, strict=True))
    nodes = {
        node_type: to_nodes(layout, number, state.nodes[number], masks[node_type])
        for number, node_type in enumerate(layout.schema.node_types)
    }
    matrices: dict[Relation, Csr] = {}
    for relation, matrix in zip(layout.schema.relations, state.matrices, strict=True):
        matrices[relation] = restricted(matrix, masks[relation.source], masks[relation.target])
    return HIN(layout.schema, MappingProxyType(nodes), MappingProxyType(matrices), layout.notes)


def _alive(table: pa.Table, version: int) -> Mask:
    died = table["died"]
    if died.null_count == len(died):
        return np.ones(len(died), dtype=np.bool_)
    return np.asarray(died.fill_null(version + 1).to_numpy() > version)


def to_nodes(layout: StoreLayout, number: int, table: pa.Table, alive: Mask) -> Nodes:
    """Return the alive nodes of a table, with the attribute names and types of the layout."""
    kept = table if alive.all() else table.take(pa.array(np.flatnonzero(alive)))
    schema = layout.attributes[number]
    columns = [kept[name].cast(field.type) for name, field in zip(node_columns(len(schema)), schema, strict=True)]
    ids = kept["id"].combine_chunks()
    return Nodes(
        layout.schema.node_types[number],
        ids if pa.types.is_int64(ids.type) else ids.cast(pa.string()),
        kept["name"].combine_chunks().cast(pa.string()) if layout.named[number] else None,
        pa.table(columns, schema=schema) if columns else pa.table({}),
        distinct=True,
    )


# ---- Changes and the head ------------------------------------------------------------------------
Pair = tuple[int, int]
"""Keys of the two ends of an edge."""


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
class Change:
    """One version by keys: what the database writes and the live graph follows. The second shape of an update.

    `edges`: by relation number, the changed edges. `new_nodes`, `removed_nodes`: by number of the node type, the new
    rows of its table, and the keys that leave it.
    """

    facts: VersionFacts
    edges: Mapping[int, EdgeChange]
    new_nodes: Mapping[int, pa.Table]
    removed_nodes: Mapping[int, Sequence[int]]
    layout: StoreLayout

    @property
    def version(self) -> int:
        return self.facts.version

    def nodes(self) -> dict[str, Nodes]:
        """Return the new nodes by type."""
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

    Only the writer of a store may have one, since it does not see what others write.
    """

    def __init__(self, layout: StoreLayout, facts: VersionFacts, state: Snapshot, changes: int = 0) -> None:
        self.layout, self.facts, self.changes = layout, facts, changes
        self._state = state
        self._keys: dict[int, dict[Id, int]] = {}
        self._sizes = [len(table) for table in self._state.nodes]
        self._new: list[dict[int, tuple[Id, str | None]]] = [{} for _ in self._state.nodes]
        self._weights: list[dict[Pair, float]] = [{} for _ in self._state.matrices]

    @classmethod
    def read(cls, connection: Any, folder: Path) -> "Head":
        """Read the newest version of a store."""
        layout, facts = read_layout(connection), read_facts(connection)
        ((changes,),) = run(connection, "SELECT count(*) FROM changes")
        return cls(layout, facts, read_state(connection, folder, layout, facts.version), changes)

    @classmethod
    def of(cls, hin: HIN, version: int) -> "Head":
        """Return the head of a graph without a store: keys are rows, and counts and checksums are not known."""
        tables = tuple(node_table(nodes.ids, nodes.names, nodes.attributes) for nodes in hin.nodes.values())
        state = Snapshot(version, tuple(hin.matrices[relation] for relation in hin.schema.relations), tables)
        return cls(StoreLayout.of(hin), VersionFacts(version, 0, 0, 0, 0), state)

    def columns(self, number: int) -> pa.Schema:
        """Return the columns of a node type's table."""
        return self._state.nodes[number].schema

    def has_integer_ids(self, number: int) -> bool:
        return bool(pa.types.is_int64(self.columns(number).field("id").type))

    def key(self, number: int, id_: Id) -> int | None:
        """Return the key of a node by its id, or None."""
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

    def next_key(self, number: int) -> int:
        return self._sizes[number]

    def weight(self, number: int, pair: Pair) -> float:
        """Return the weight of an edge, 0 if there is none."""
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
        """Return the pairs of a relation with one of some nodes as source (end 0) or target (1), with removed ones."""
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
        """Advance to the version of a change."""
        for number, keys in change.removed_nodes.items():
            for key in keys:
                self._keys[number].pop(self.node(number, key)[0], None)
        for number, table in change.new_nodes.items():
            keys, ids, names = (table[name].to_pylist() for name in ("key", "id", "name"))
            self._keys[number].update(zip(ids, keys, strict=True))
            self._new[number].update(zip(keys, zip(ids, names, strict=True), strict=True))
            self._sizes[number] += len(keys)
        for number, edges in change.edges.items():
            self._weights[number].update(edges.weights_after())
            self.changes += len(edges.sources)
        self.facts = change.facts

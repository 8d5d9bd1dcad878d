"""Import a graph into a store, its tables in batches, so that it may be larger than memory.

This is the second of three readers (see `io.sources`): where `io.assembly` numbers ids and merges parallel edges in
memory, a database does it here, on disk. The store is the same.
"""

# ruff: noqa: S608  the names of tables and columns in statements are made here, never given by users

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neupath._runtime.progress import Progress, no_progress
from neupath.errors import QueryError
from neupath.graph.hin import Duplicates, Floats, check_sums, repeated_edge
from neupath.graph.nodes import Id, Rows
from neupath.graph.schema import Relation, Schema
from neupath.io.assembly import INTEGERS, empty_cell
from neupath.io.load import find_tables, load
from neupath.io.out_of_core.staging import (
    EndNodes,
    JoinTerms,
    KeyedEdges,
    StagedEdges,
    StagedNodes,
    StagedType,
    Staging,
    join_ids,
)
from neupath.io.sources import EdgeSource, RelationTables, SelectedRows, Selection, TableSource, TripleTables
from neupath.store import BulkWriter, Entries, StoreLayout, fetch, fetch_entries, new_store, node_table, write_store


# ---- Importing -----------------------------------------------------------------------------------
def import_store(
    source: Any,
    to: str | Path,
    *,
    config: str | Path | None = None,
    duplicates: Duplicates | None = None,
    data: str | Path | None = None,
    memory_limit: str | None = None,
    progress: Progress = no_progress,
) -> Path:
    """Write a graph as a new store, the same one that `write_store(load(source), to)` writes.

    Tables are streamed through a database that uses the disk beyond its memory limit. Other sources, and the few
    tables that batches would change, are read whole.

    Parameters
    ----------
    source, config, duplicates, data
        The graph, as `load` takes it.
    to
        The folder of the store; it must not exist yet.
    memory_limit
        Memory of the database, such as 2GiB; by default half of the machine's. The process needs about half a GiB more.
    progress
        Called with the stage, how much of it is done, and how much there is.

    Returns
    -------
    Path
        The folder of the store.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as parent:
    ...     load(import_store("toy", parent + "/store")).num_nodes("author")
    5

    """
    tables = find_tables(source, config, duplicates, data) if isinstance(source, str | os.PathLike) else None
    if tables is None or not _can_stream(tables):
        if memory_limit is not None:
            raise QueryError(f"{source} is not read in batches, so ‹memory_limit› cannot be kept; leave it out")
        hin = load(source, config=config, duplicates=duplicates, data=data, progress=progress)
        return write_store(hin, to, progress)
    with new_store(Path(to), memory_limit) as writer:
        _stream_tables(tables, writer, progress)
    return Path(to)


def _can_stream(source: TableSource) -> bool:
    """Whether the tables of a source give the same store in batches as they do whole.

    They do not if attributes of Parquet have dictionaries, which differ from batch to batch, or if types and relations
    are numbers.
    """
    if isinstance(source, RelationTables):
        return not any(_has_dictionary(node.selection) for node in source.nodes)
    nodes = [source.nodes] if source.nodes is not None else []
    words = [(edges, "relation") for edges in source.edges] + [(n, "type") for n in nodes if "type" in n.columns]
    return not any(map(_has_dictionary, nodes)) and all(
        selection.all_text or pa.types.is_string(selection.declared_types[selection.columns[word]])
        for selection, word in words
    )


def _has_dictionary(selection: Selection) -> bool:
    types = selection.declared_types
    return any("dictionary" in str(types[name]) for name in selection.attributes if name in types)


def _stream_tables(source: TableSource, writer: BulkWriter, progress: Progress) -> None:
    """Stream the tables of a source into a new store."""
    staging = Staging(writer.connection, progress)
    stream: RelationStream | TripleStream
    stream = RelationStream(staging, source) if isinstance(source, RelationTables) else TripleStream(staging, source)
    types, edges = stream.stage()
    options = source.options
    schema = Schema(tuple(t.node_type for t in types), tuple(e.relation for e in edges), options.abbreviations)
    stream.write_nodes(writer, types)
    for number, keyed in enumerate(edges):
        if options.duplicates == "error":
            _refuse_parallel(staging, keyed, {t.node_type: t for t in types})
        merged = merge(_entries(staging, keyed), options.duplicates)
        writer.write_edges(number, _checked(keyed.relation, merged))
    named, attributes = tuple(t.named for t in types), tuple(t.attributes for t in types)
    writer.finish(StoreLayout(schema, named, attributes, tuple(options.notes)))


def _checked(relation: Relation, batches: Iterable[Entries]) -> Iterator[Entries]:
    """Pass edges on; raise if the weights of parallel edges add up to infinity."""
    for entries in batches:
        check_sums(relation, entries[2])
        yield entries


def _entries(staging: Staging, edges: KeyedEdges) -> Iterator[Entries]:
    """Yield the sorted edges of a relation in batches, and report progress."""
    done = 0
    for entries in fetch_entries(staging.connection, f"SELECT source, target, weight FROM {edges.query}"):
        yield entries
        done += len(entries[0])
        staging.progress(f"writing {edges.relation.name}", done, edges.rows)


# ---- One table per relation ----------------------------------------------------------------------
class RelationStream:
    """One table per relation: number the nodes of each type, then join each edge table with its two types."""

    def __init__(self, staging: Staging, source: RelationTables) -> None:
        self._staging = staging
        self._source = source
        self._selections = {node.node_type: node.selection for node in source.nodes}

    def stage(self) -> tuple[list[StagedType], list[KeyedEdges]]:
        """Put all tables into the database; raise at the first bad row."""
        edges = [
            self._staging.stage_edges(f"scratch.edges_{number}", [edge.selection])
            for number, edge in enumerate(self._source.edges)
        ]
        nodes = self._stage_nodes(edges)
        types = {}
        for node_type, staged in nodes.items():
            self._staging.refuse_repeats(staged)
            types[node_type] = self._to_type(node_type, staged)
        joined = [self._join(number, edge, edges[number], types) for number, edge in enumerate(self._source.edges)]
        return list(types.values()), joined

    def _stage_nodes(self, edges: Sequence[StagedEdges]) -> dict[str, StagedNodes]:
        nodes: dict[str, StagedNodes] = {}
        for node_type, selection in self._selections.items():
            nodes[node_type] = self._staging.stage_nodes(f"scratch.ids_{len(nodes)}", selection)
        ends = [
            (node_type, staged, column)
            for edge, staged in zip(self._source.edges, edges, strict=True)
            for node_type, column in ((edge.relation.source, "source"), (edge.relation.target, "target"))
        ]
        for node_type in dict.fromkeys(end for end, _, _ in ends if end not in nodes):
            columns = [(staged, column) for end, staged, column in ends if end == node_type]
            nodes[node_type] = self._staging.stage_ends(f"scratch.ids_{len(nodes)}", columns)
        return nodes

    def _to_type(self, node_type: str, staged: StagedNodes) -> StagedType:
        query = f"(SELECT id, rowid AS key FROM {staged.name})"
        selection = self._selections.get(node_type)
        typed = selection is not None and selection.file.is_parquet
        named = selection is not None and "name" in selection.columns
        return _staged_type(self._staging, node_type, query, staged, typed=typed, named=named)

    def _join(self, number: int, edge: EdgeSource, staged: StagedEdges, types: dict[str, StagedType]) -> KeyedEdges:
        first, second = (
            EndNodes(types[end].query, types[end].kind, types[end].count, end)
            for end in (edge.relation.source, edge.relation.target)
        )
        name = f"scratch.joined_{number}"
        undirected = "false" if edge.relation.directed else "true"
        join_ids(self._staging, name, staged, (first, second), JoinTerms(undirected=undirected))
        return KeyedEdges(edge.relation, name, staged.rows)

    def write_nodes(self, writer: BulkWriter, types: Sequence[StagedType]) -> None:
        """Write the nodes of each type, from their table or else from the ids in edges."""
        for number, node_type in enumerate(types):
            selection = self._selections.get(node_type.node_type)
            if selection is None:
                _write_ids(writer, number, node_type)
            else:
                _write_selected(writer, self._staging, selection, {number: node_type})


# ---- One table of all edges ----------------------------------------------------------------------
_OPEN_FILES = 100
"""How many types are written at a time, each into its own file."""


class TripleStream:
    """One table of all edges: number the nodes within their types, then join the edges with all nodes at once."""

    def __init__(self, staging: Staging, source: TripleTables) -> None:
        self._staging = staging
        self._source = source

    def stage(self) -> tuple[list[StagedType], list[KeyedEdges]]:
        """Put all tables into the database; raise at the first bad row."""
        edges = self._staging.stage_edges("scratch.edges", self._source.edges)
        nodes = self._stage_nodes(edges)
        self._staging.refuse_repeats(nodes)
        type_names, relation_names = self._type_names(nodes), self._distinct(edges.name, "relation")
        self._number_nodes(nodes, type_names)
        no_relation = self._staging.first_empty(edges, "relation")
        self._join(edges, nodes, type_names, relation_names)
        no_type = self._staging.first_empty(nodes, "type") if "type" in nodes.kinds else None
        for what, row, place in (("type", no_type, nodes.place), ("relation", no_relation, edges.place)):
            if row is not None:
                raise empty_cell(place(row), what)
        self._source.options.check_names(relation_names)
        joined = self._split(type_names, relation_names)
        return [self._to_type(code, name, nodes) for code, name in enumerate(type_names)], joined

    def _stage_nodes(self, edges: StagedEdges) -> StagedNodes:
        if self._source.nodes is None:
            return self._staging.stage_ends("scratch.nodes", [(edges, "source"), (edges, "target")])
        return self._staging.stage_nodes("scratch.nodes", self._source.nodes)

    def _type_names(self, nodes: StagedNodes) -> list[str]:
        if "type" in nodes.kinds:
            return self._distinct(nodes.name, "type")
        return [self._source.node_type] if nodes.rows else []

    def _distinct(self, table: str, column: str) -> list[str]:
        """Return the distinct values of a column in order of appearance."""
        query = f"SELECT {column} FROM {table} GROUP BY {column} ORDER BY min(rowid)"
        return [word for (word,) in self._staging.run(query)]

    def _number_nodes(self, nodes: StagedNodes, type_names: Sequence[str]) -> None:
        """Write the type of each node, and its key among the nodes of that type."""
        kind = "VARCHAR" if pa.types.is_string(nodes.kinds["id"]) else "BIGINT"
        self._staging.run(f"CREATE TABLE scratch.keys (id {kind}, type INTEGER, key BIGINT)")
        typed = "type IS NOT DISTINCT FROM ?" if "type" in nodes.kinds else "? IS NOT NULL"
        for code, name in enumerate(type_names):
            numbered = f"SELECT id, {code}, row_number() OVER () - 1 FROM {nodes.name} WHERE {typed}"
            self._staging.run(f"INSERT INTO scratch.keys {numbered}", name)

    def _join(
        self, edges: StagedEdges, nodes: StagedNodes, type_names: Sequence[str], relation_names: Sequence[str]
    ) -> None:
        codes = pa.table({"name": pa.array(relation_names, pa.string()), "code": np.arange(len(relation_names))})
        self._staging.put("scratch.relations", [codes])
        undirected = [str(relation_names.index(n)) for n in self._source.options.undirected if n in relation_names]
        terms = JoinTerms(
            kind=f"(r.code * {len(type_names)} + a.type) * {len(type_names)} + b.type",
            undirected=f"a.type = b.type AND r.code IN ({', '.join(undirected) or 'NULL'})",
            join="LEFT JOIN scratch.relations r ON e.relation = r.name",
        )
        end = EndNodes("scratch.keys", nodes.kinds["id"], nodes.rows, "node", "nodes table")
        join_ids(self._staging, "scratch.joined", edges, (end, end), terms)

    def _split(self, type_names: Sequence[str], relation_names: Sequence[str]) -> list[KeyedEdges]:
        """Return the edges of each relation between each two types, in their order."""
        options, joined = self._source.options, []
        for kind, rows in self._staging.run("SELECT kind, count(*) FROM scratch.joined GROUP BY kind ORDER BY kind"):
            shape = len(relation_names), len(type_names), len(type_names)
            relation, source, target = (int(code) for code in np.unravel_index(kind, shape))
            name = relation_names[relation]
            if options.take and name not in options.take:
                continue
            directed = not (name in options.undirected and source == target)
            keyed = Relation(type_names[source], name, type_names[target], directed)
            joined.append(KeyedEdges(keyed, f"(SELECT * FROM scratch.joined WHERE kind = {kind})", rows))
        return joined

    def _to_type(self, code: int, name: str, nodes: StagedNodes) -> StagedType:
        query = f"(SELECT id, key FROM scratch.keys WHERE type = {code})"
        named = self._source.nodes is not None and "name" in self._source.nodes.columns
        return _staged_type(self._staging, name, query, nodes, typed=False, named=named)

    def write_nodes(self, writer: BulkWriter, types: Sequence[StagedType]) -> None:
        """Write the nodes of all types, from their table or else from the ids in edges."""
        selection = self._source.nodes
        if selection is None:
            for number, node_type in enumerate(types):
                _write_ids(writer, number, node_type)
            return
        for first in range(0, len(types), _OPEN_FILES):
            batch = dict(enumerate(types[first : first + _OPEN_FILES], first))
            _write_selected(writer, self._staging, selection, batch)


# ---- Writing nodes -------------------------------------------------------------------------------
def _staged_type(
    staging: Staging, node_type: str, query: str, staged: StagedNodes, *, typed: bool, named: bool
) -> StagedType:
    """Describe the nodes of a type; ids are integers if all read as integers, unless their table declares types."""
    kind = staged.kinds["id"]
    inferred = pa.types.is_string(kind) and not typed
    whole = f"count(*) FILTER (WHERE regexp_full_match(id, '{INTEGERS}'))" if inferred else "0"
    ((count, integers),) = staging.run(f"SELECT count(*), {whole} FROM {query}")
    return StagedType(node_type, query, kind, count, 0 < count == integers, named, staged.attributes)


def _write_ids(writer: BulkWriter, number: int, node_type: StagedType) -> None:
    """Write the nodes of a type that has no table."""
    with writer.writing_nodes(number, _schema(node_type)) as out:
        first = 0
        for batch in fetch(writer.connection, f"SELECT id FROM {node_type.query} ORDER BY key"):
            ids = _ids(batch.column(0), node_type)
            out.write_table(node_table(ids, None, pa.table({}), first))
            first += len(ids)


def _write_selected(
    writer: BulkWriter, staging: Staging, selection: Selection, types: Mapping[int, StagedType]
) -> None:
    """Write the nodes of a file, each under the number of its type."""
    attributes = next(iter(types.values())).attributes
    kinds = {name: attributes.field(name).type for name in selection.inferred_attributes}
    next_keys = dict.fromkeys(types, 0)
    with ExitStack() as stack:
        out = {n: stack.enter_context(writer.writing_nodes(n, _schema(types[n]))) for n in types}
        for batch in staging.read("writing", selection, kinds):
            for number, rows in _rows_by_type(batch, types):
                ids = _ids(batch.columns["id"].take(rows), types[number])
                names = batch.columns["name"].take(rows) if "name" in batch.columns else None
                out[number].write_table(node_table(ids, names, batch.attributes.take(rows), next_keys[number]))
                next_keys[number] += len(ids)


def _rows_by_type(batch: SelectedRows, types: Mapping[int, StagedType]) -> Iterator[tuple[int, pa.Array]]:
    """Yield the number of each type in a batch, with its rows."""
    if "type" not in batch.columns:
        yield next(iter(types)), pa.array(np.arange(len(batch)))
        return
    for number, node_type in types.items():
        rows = np.flatnonzero(pc.equal(batch.columns["type"], node_type.node_type).to_numpy(zero_copy_only=False))
        if len(rows):
            yield number, pa.array(rows)


def _ids(ids: pa.Array, node_type: StagedType) -> pa.Array:
    return ids.cast(pa.int64() if node_type.integers else node_type.kind)


def _schema(node_type: StagedType) -> pa.Schema:
    ids = _ids(pa.array([], node_type.kind), node_type)
    return node_table(ids, None, node_type.attributes.empty_table()).schema


# ---- Parallel edges ------------------------------------------------------------------------------
def merge(batches: Iterable[Entries], duplicates: Duplicates) -> Iterator[Entries]:
    """Yield every pair of ends once, with the sum of its weights (`count`) or else the first weight.

    `batches` are sorted by ends. Weights add up in the order of the stream. Edges of weight 0 are dropped.

    >>> ends, weights = np.array([3, 3]), np.array([0.5, 1.0])
    >>> [w.tolist() for _, _, w in merge([(ends, ends, weights), (ends, ends, weights)], "count")]
    [[], [], [3.0]]
    """
    last: Entries = (np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))
    for batch in batches:
        sources, targets, weights = (np.concatenate(both) for both in zip(last, batch, strict=True))
        if not len(sources):
            continue
        new = np.ones(len(sources), dtype=np.bool_)
        new[1:] = (sources[1:] != sources[:-1]) | (targets[1:] != targets[:-1])
        summed = duplicates == "count"
        merged = np.bincount(np.cumsum(new) - 1, weights=weights).astype(float) if summed else weights[new]
        sources, targets = sources[new], targets[new]
        last = sources[-1:], targets[-1:], merged[-1:]  # its edges may continue in the next batch
        yield _positive(sources[:-1], targets[:-1], merged[:-1])
    yield _positive(*last)


def _positive(sources: Rows, targets: Rows, weights: Floats) -> Entries:
    positive = weights > 0
    return sources[positive], targets[positive], weights[positive]


def _refuse_parallel(staging: Staging, edges: KeyedEdges, types: Mapping[str, StagedType]) -> None:
    """Raise at the first edge that repeats another."""
    repeated = f"SELECT source, target, min(row) AS first FROM {edges.query} GROUP BY ALL HAVING count(*) > 1"
    later = f"FROM {edges.query} JOIN ({repeated}) USING (source, target) WHERE row > first"
    ((row, source, target),) = staging.run(f"SELECT min(row), arg_min(source, row), arg_min(target, row) {later}")
    if row is not None:
        ((before,),) = staging.run(f"SELECT count(*) FROM {edges.query} WHERE row < ?", row)
        ends = (types[edges.relation.source], source), (types[edges.relation.target], target)
        first, second = (_id(staging, end, key) for end, key in ends)
        raise repeated_edge(edges.relation, first, second, before + 1)


def _id(staging: Staging, nodes: StagedType, key: int) -> Id:
    ((value,),) = staging.run(f"SELECT id FROM {nodes.query} WHERE key = ?", key)
    return int(value) if nodes.integers else value

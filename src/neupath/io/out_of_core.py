"""Import a graph into a store, its tables in batches, so that it may be larger than memory.

This is the second of three readers (see `io.plan`): where `io.assembly` numbers ids and merges parallel edges in
memory, a database does it here, on disk. The store is the same.
"""

# ruff: noqa: S608  the names of tables and columns in statements are made here, never given by users

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.ipc

from neupath._runtime.progress import Progress, no_progress
from neupath.errors import GraphError, QueryError
from neupath.graph.edge_attributes import TEXT, TIME, UNIX_UNITS, common_type, kept_type, to_attribute, unix_unit
from neupath.graph.hin import Duplicates, Floats, check_counts, check_sums, repeated_edge
from neupath.graph.metapath import Relation, Schema
from neupath.graph.nodes import Id, Rows
from neupath.graph.notations import kind_named
from neupath.io.column_types import ColumnType, convert
from neupath.io.edge_columns import (
    TextType,
    attribute_name,
    column_of,
    converted,
    declared_values,
    left_out_note,
    may_be_unix,
    note_texts,
    unix_note,
    without_empty,
)
from neupath.io.load import load, show_notes
from neupath.io.plan import (
    INTEGERS,
    EdgePlan,
    Place,
    Plan,
    ReadOptions,
    SelectedRows,
    Selection,
    TableSource,
    TripleTables,
    empty_cell,
    empty_end,
    empty_id,
    empty_looking,
    note_empty_ids,
    note_fractions,
    note_twins,
    place_in_files,
    repeated_id,
    similar_id,
    to_weights,
    unknown_end,
)
from neupath.io.recognition import find_tables
from neupath.store import BulkWriter, StoreLayout, Triplets, fetch, fetch_entries, new_store, node_table, write_store
from neupath.store.bulk_writer import BATCH_ROWS
from neupath.store.database import attribute_columns, run, run_on


# ---- Importing -----------------------------------------------------------------------------------
def import_store(
    source: Any,
    to: str | Path,
    *,
    config: str | Path | None = None,
    duplicates: Duplicates | None = None,
    data: str | Path | None = None,
    schema: str | None = None,
    tables: str | Sequence[str] | None = None,
    memory_limit: str | None = None,
    progress: Progress = no_progress,
) -> Path:
    """Write a graph as a new store, the same one that `write_store(load(source), to)` writes.

    Tables are streamed through a database that uses the disk beyond its memory limit. Other sources, and the few
    tables that batches would change, are read whole.

    Parameters
    ----------
    source, config, duplicates, data, schema, tables
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
    by_name = isinstance(source, str | os.PathLike) and schema is None and tables is None
    files = find_tables(source, config, duplicates, data) if by_name else None
    if files is None or not _can_stream(files):
        if memory_limit is not None:
            raise QueryError(f"{source} is not read in batches, so ‹memory_limit› has no effect; leave it out")
        options: dict[str, Any] = {"config": config, "duplicates": duplicates, "data": data, "progress": progress}
        return write_store(load(source, schema=schema, tables=tables, **options), to, progress)
    with new_store(Path(to), memory_limit) as writer:
        notes = _stream_tables(files, writer, progress)
    show_notes(source, notes)
    return Path(to)


def _can_stream(source: TableSource) -> bool:
    """Whether the tables of a source give the same store in batches as they do whole.

    They do not if attributes of Parquet have dictionaries, which differ from batch to batch, or if types and relations
    are numbers, or if types have to be worked out from ids or cells.
    """
    if source.options.fold_ids:
        return False
    if isinstance(source, Plan):
        return not any(_has_dictionary(node.selection) for node in source.nodes)
    nodes = [source.nodes] if source.nodes is not None else []
    words = [(edges, "relation") for edges in source.edges] + [(n, "type") for n in nodes if "type" in n.columns]
    return (
        source.is_plain
        and not any(map(_has_dictionary, nodes))
        and all(
            selection.all_text or pa.types.is_string(selection.declared_types[selection.columns[word]])
            for selection, word in words
        )
    )


def _has_dictionary(selection: Selection) -> bool:
    types = selection.declared_types
    return any("dictionary" in str(types[name]) for name in selection.attributes if name in types)


def _stream_tables(source: TableSource, writer: BulkWriter, progress: Progress) -> Sequence[str]:
    """Write the tables of a source; return the notes on them."""
    staging = Staging(writer.connection, writer.scratch, progress)
    stream: RelationStream | TripleStream
    stream = RelationStream(staging, source) if isinstance(source, Plan) else TripleStream(staging, source)
    types, edges = stream.stage()
    check_counts(len(types), len(edges))
    options = source.options
    schema = Schema(tuple(t.node_type for t in types), tuple(e.relation for e in edges), options.abbreviations)
    for number, node_type in enumerate(types):
        _write_nodes(writer, staging, number, node_type)
    type_named = {t.node_type: t for t in types}
    for number, keyed in enumerate(edges):
        if options.duplicates == "error":
            _refuse_parallel(staging, keyed, type_named)
        writer.write_edges(number, _merged(staging, keyed, options.duplicates))
    staging.notes += [note for each in types for note in _note_ids(staging, each, edges, options)]
    described = {}
    for number, keyed in enumerate(edges):
        attributes = keyed.attributes
        if len(attributes):
            described[number] = attributes
            writer.write_edge_rows(number, attributes, _single_edges(staging, keyed, options.duplicates))
    named, known = tuple("name" in t.nodes.columns for t in types), tuple(t.nodes.attributes for t in types)
    notes = tuple(dict.fromkeys([*options.notes, *staging.notes]))
    writer.finish(StoreLayout(schema, named, known, notes, edge_attributes=described))
    return notes


# ---- Tables in the database ----------------------------------------------------------------------
@dataclass(frozen=True)
class StagedTable:
    """A table in the database; its rowid counts the rows of its source from 0."""

    name: str
    kinds: Mapping[str, pa.DataType]
    rows: int
    place: Place


@dataclass(frozen=True)
class StagedEdges(StagedTable):
    """Edges by ids, with weights, and the error of the first bad weight."""

    weight_error: GraphError | None = None
    attributes: "StagedAttributes | None" = None
    lengths: Sequence[int] = ()
    """How many edges each file has."""


@dataclass(frozen=True)
class StagedNodes(StagedTable):
    """Nodes by ids; their other columns, if a table has them, are in the file `spool`."""

    spool: Path | None = None
    columns: Sequence[str] = ("id",)
    """The first columns of the spool, of id, type and name; its other columns are attributes."""
    attributes: pa.Schema = field(default_factory=lambda: pa.schema([]))
    typed: bool = False
    """Whether the table declares which ids are integers; in text tables their looks decide."""
    kinds_declared: Mapping[str, str] = field(default_factory=dict)
    """What graph.toml says that attributes are."""
    texts: Mapping[str, TextType] = field(default_factory=dict)
    """The attributes of a typed table that hold texts, and whether all of them are dates or times."""

    def attribute(self, field_: pa.Field, values: pa.Array, rows: Rows) -> pa.Array:
        """Return the values of an attribute in some rows as the store keeps them."""
        name = field_.name
        if name in self.kinds_declared:
            word, place = self.kinds_declared[name], self.place
            return declared_values(values, word, name, lambda row: place(int(rows[row])), typed=self.typed)
        if name in self.texts and field_.type != pa.string():
            return self.texts[name].convert(values)
        return convert(values, field_.type)


@dataclass(frozen=True)
class StagedType:
    """The nodes of a type: the staged nodes they are among, and a query for their ids and keys."""

    node_type: str
    nodes: StagedNodes
    query: str
    count: int
    integers: bool

    @property
    def kind(self) -> pa.DataType:
        return self.nodes.kinds["id"]


class Staging:
    """Puts tables into the scratch database of a store that is being written, and other columns into files there."""

    def __init__(self, connection: Any, folder: Path, progress: Progress) -> None:
        self.connection = connection
        self.folder = folder
        self.progress = progress
        self.notes: list[str] = []

    def run(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        """Run a statement and return its rows."""
        return run(self.connection, statement, values)

    def put(self, name: str, tables: Iterable[pa.Table]) -> tuple[dict[str, pa.DataType], int]:
        """Write tables one after the other into one of scratch; return its columns' types and its number of rows."""
        schema, rows = None, 0
        for table in _in_batches(tables):
            verb = f"CREATE TABLE scratch.{name} AS" if schema is None else f"INSERT INTO scratch.{name}"
            run_on(self.connection, table, f"{verb} SELECT * FROM given")
            schema, rows = table.schema, rows + len(table)
        assert schema is not None, "there is at least one table"
        return dict(zip(schema.names, schema.types, strict=True)), rows

    def _read(self, selection: Selection, types: Mapping[str, pa.DataType]) -> Iterator[SelectedRows]:
        return selection.read_batches(types, self.progress, f"reading {selection.table.label}")

    def stage_edges(self, name: str, selections: Sequence[Selection]) -> StagedEdges:
        """Write the edges of one or several files; if one has weights, all need them."""
        weighted = any("weight" in selection.columns for selection in selections)
        lengths: list[int] = []
        errors: list[GraphError] = []
        place = place_in_files([each.place for each in selections], lengths)
        attributes = StagedAttributes(name, selections, self.folder)

        def tables() -> Iterator[pa.Table]:
            for selection, spool in zip(selections, attributes.spools, strict=True):
                lengths.append(0)
                for rows in spool.copy(self._read(selection, spool.read_types)):
                    before = sum(lengths)
                    lengths[-1] += len(rows)
                    yield _with_weights(rows, weighted, errors, lambda row, before=before: place(before + row))  # type: ignore[misc]

        kinds, rows = self.put(name, tables())
        error = errors[0] if errors else None
        return StagedEdges(
            f"scratch.{name}", kinds, rows, place, error, attributes if attributes.names else None, lengths
        )

    def stage_nodes(self, name: str, selection: Selection) -> StagedNodes:
        """Write the ids and types of nodes, spool all their columns, and infer the types of their attributes.

        The type of a text column is known only after its last value, so the spool holds its values as bytes.
        """
        inferred = {attribute: ColumnType() for attribute in selection.inferred_attributes}
        declared = selection.declared_types
        typed = [c for c in selection.attributes if selection.table.typed and c not in selection.kinds]
        texts = {column: TextType() for column in typed if pa.types.is_string(declared[column])}
        stored = [column for column in ("id", "type") if column in selection.columns]
        spool = self.folder / f"{name}.arrow"

        def tables() -> Iterator[pa.Table]:
            batches = self._read(selection, dict.fromkeys(inferred, pa.binary()))
            schema = _to_spool(next(batches)).schema  # the first batch is empty
            yield pa.table({column: schema.empty_table()[column] for column in stored})
            with pa.OSFile(str(spool), "wb") as file, pa.ipc.new_stream(file, schema) as out:
                for rows in batches:
                    for attribute, column_type in inferred.items():
                        column_type.update(rows.attributes[attribute].combine_chunks())
                    for attribute, text_type in texts.items():
                        text_type.update(rows.attributes[attribute].combine_chunks())
                    out.write_table(_to_spool(rows))
                    yield pa.table({column: rows.columns[column] for column in stored})

        kinds, count = self.put(name, tables())
        types = declared | {attribute: column_type.type for attribute, column_type in inferred.items()}
        read = {attribute: types[attribute] for attribute in selection.attributes}
        at = {attribute: place for place, attribute in enumerate(selection.attributes, len(selection.columns))}
        self.notes += note_texts(selection, read, lambda column: _spooled(spool, at[column]))
        types |= {attribute: text_type.type for attribute, text_type in texts.items()}
        types |= {column: kind_named(word) for column, word in selection.kinds.items()}
        plain = [(column, pa.string() if types[column] == TEXT else types[column]) for column in selection.attributes]
        return StagedNodes(
            f"scratch.{name}", kinds, count, selection.place, spool, list(selection.columns), pa.schema(plain),
            selection.table.typed, selection.kinds, texts,
        )  # fmt: skip

    def stage_ends(self, name: str, columns: Sequence[tuple[StagedTable, str]]) -> StagedNodes:
        """Write the distinct ids of some columns of edges, in order of appearance."""
        kinds = {table.kinds[column] for table, column in columns}
        kind = kinds.pop() if len(kinds) == 1 else pa.string()
        parts, before = [], 0
        for table, column in columns:
            id_ = _as_text(column, table.kinds[column]) if kind == pa.string() else column
            not_empty = f"WHERE NOT {_is_empty(column, table.kinds[column])}"
            parts.append(f"SELECT {id_} AS id, rowid + {before} AS place FROM {table.name} {not_empty}")
            before += table.rows
        first = f"SELECT id, min(place) AS place FROM ({' UNION ALL '.join(parts)}) GROUP BY id"
        self.run(f"CREATE TABLE scratch.{name} AS SELECT id FROM ({first}) ORDER BY place")
        ((rows,),) = self.run(f"SELECT count(*) FROM scratch.{name}")
        return StagedNodes(f"scratch.{name}", {"id": kind}, rows, lambda row: f"row {row + 1}")

    def describe(self, node_type: str, nodes: StagedNodes, query: str, typed: bool = False) -> StagedType:
        """Describe the nodes of a type; ids are integers if all read as integers, unless their table is `typed`."""
        inferred = pa.types.is_string(nodes.kinds["id"]) and not typed
        whole = f"count(*) FILTER (WHERE regexp_full_match(id, '{INTEGERS}'))" if inferred else "0"
        ((count, integers),) = self.run(f"SELECT count(*), {whole} FROM {query}")
        return StagedType(node_type, nodes, query, count, 0 < count == integers)

    def rows_of(self, node_type: StagedType) -> Iterator[SelectedRows]:
        """Yield the nodes of a type in batches, from the spool or, if no table has them, the ids in edges."""
        nodes = node_type.nodes
        if nodes.spool is None:
            for batch in fetch(self.connection, f"SELECT id FROM {node_type.query} ORDER BY key"):
                yield SelectedRows({"id": batch.column(0)}, pa.table({}))
            return
        first = 0
        with pa.memory_map(str(nodes.spool)) as file:
            for batch in pa.ipc.open_stream(file):
                rows = np.arange(len(batch))
                if "type" in nodes.columns:
                    is_own = pc.equal(batch.column(nodes.columns.index("type")), node_type.node_type)
                    rows = np.flatnonzero(pc.fill_null(is_own, False).to_numpy(zero_copy_only=False))
                if len(rows):
                    own = batch if len(rows) == len(batch) else batch.take(pa.array(rows))
                    places = first + rows
                    values = zip(own.columns[len(nodes.columns) :], nodes.attributes, strict=True)
                    attributes = [nodes.attribute(attribute, column, places) for column, attribute in values]
                    columns = dict(zip(nodes.columns, own.columns, strict=False))
                    yield SelectedRows(columns, pa.Table.from_arrays(attributes, schema=nodes.attributes))
                first += len(batch)

    def refuse_repeats(self, nodes: StagedNodes) -> None:
        """Raise at the first node without an id, or else at the first with a repeated id."""
        empty = self.first_empty(nodes, "id")
        if empty is not None:
            raise empty_id(nodes.place(empty))
        repeated = f"SELECT id, min(rowid) AS first FROM {nodes.name} GROUP BY id HAVING count(*) > 1"
        query = f"SELECT min(n.rowid), arg_min(id, n.rowid) FROM {nodes.name} n JOIN ({repeated}) USING (id)"
        ((row, value),) = self.run(f"{query} WHERE n.rowid > first")
        if row is not None:
            raise repeated_id(nodes.place(row), value)

    def first_empty(self, table: StagedTable, column: str) -> int | None:
        """Return the first row in which a column is empty."""
        query = f"SELECT min(rowid) FROM {table.name} WHERE {_is_empty(column, table.kinds[column])}"
        row: int | None = self.run(query)[0][0]
        return row


def _spooled(spool: Path, column: int) -> Iterator[pa.Array]:
    """Yield the values of a column of a spool, batch by batch."""
    if not spool.exists():
        return
    with pa.memory_map(str(spool)) as file:
        for batch in pa.ipc.open_stream(file):
            values = batch.column(column)
            yield values.cast(pa.string()) if pa.types.is_binary(values.type) else values


def _in_batches(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Combine small tables into batches, which the database inserts faster."""
    batch: list[pa.Table] = []
    for table in tables:
        batch.append(table)
        if sum(map(len, batch)) >= BATCH_ROWS:
            yield pa.concat_tables(batch)
            batch = []
    if batch:
        yield pa.concat_tables(batch)


def _with_weights(rows: SelectedRows, weighted: bool, errors: list[GraphError], place: Place) -> pa.Table:
    columns = {name: column for name, column in rows.columns.items() if name != "weight"}
    weights: Floats | None = np.ones(len(rows))
    if weighted and not errors:
        texts = rows.columns.get("weight", pa.nulls(len(rows), pa.string()))
        try:
            weights = to_weights(texts, place)
        except GraphError as error:  # raised after the ends of all edges are checked, as in memory
            errors.append(error)
    return pa.table(columns | {"weight": pa.array(weights)})


def _to_spool(rows: SelectedRows) -> pa.Table:
    columns = [*rows.columns.values(), *rows.attributes.columns]
    return pa.Table.from_arrays(columns, [*rows.columns, *rows.attributes.column_names])


def _as_text(column: str, kind: pa.DataType) -> str:
    return column if pa.types.is_string(kind) else f"CAST({column} AS VARCHAR)"


def _is_empty(column: str, kind: pa.DataType) -> str:
    return f"({column} IS NULL OR {column} = '')" if pa.types.is_string(kind) else f"({column} IS NULL)"


# ---- Edges by ids become edges by keys -----------------------------------------------------------
@dataclass(frozen=True)
class JoinTerms:
    """SQL expressions of a join: the kind of an edge, whether it is undirected, and a further join."""

    kind: str = "0"
    undirected: str = "false"
    join: str = ""
    nodes_called: str | None = None
    """What errors call the table of nodes; by default the node table of the type."""


@dataclass(frozen=True)
class KeyedEdges:
    """The edges of a relation: a query for their keys, rows and weights, sorted by keys, then rows."""

    relation: Relation
    query: str
    rows: int
    attributes: pa.Schema = field(default_factory=lambda: pa.schema([]))
    """The attributes of the edges, if they have any."""
    described: str = ""
    """A query for the edges with their attributes: columns c0, c1, …"""
    columns: Sequence[str] = ()
    """Those of its columns that hold the attributes."""


def join_ids(
    staging: Staging, name: str, edges: StagedEdges, ends: tuple[StagedType, StagedType], terms: JoinTerms
) -> None:
    """Write edges by the keys of their ends into a new, sorted table; raise at the first bad edge.

    The source of an undirected edge is the smaller key.
    """
    swapped = f"({terms.undirected}) AND a.key > b.key"
    first, second = (f"CAST({key} AS {_narrow(end.count)})" for key, end in zip(("a.key", "b.key"), ends, strict=True))
    joins = []
    for letter, column, end in zip("ab", ("source", "target"), ends, strict=True):
        own, other = f"e.{column}", f"{letter}.id"
        if edges.kinds[column] != end.kind:
            own, other = _as_text(own, edges.kinds[column]), _as_text(other, end.kind)
        joins.append(f"LEFT JOIN {end.query} {letter} ON {own} = {other}")
    stage = f"sorting {edges.name.removeprefix('scratch.')}"
    staging.progress(stage, 0, 1)
    staging.run(f"""
        CREATE TABLE {name} AS SELECT
            {terms.kind} AS kind,
            CASE WHEN {swapped} THEN {second} ELSE {first} END AS source,
            CASE WHEN {swapped} THEN {first} ELSE {second} END AS target,
            CAST(e.rowid AS {_narrow(edges.rows)}) AS row, e.weight AS weight, {swapped} AS swapped
        FROM {edges.name} e {" ".join(joins)} {terms.join} ORDER BY 1, 2, 3, 4
    """)
    staging.progress(stage, 1, 1)
    for column, end in zip(("source", "target"), ends, strict=True):
        empty = staging.first_empty(edges, column)
        if empty is not None:
            raise empty_end(edges.place(empty), end.node_type)
        ((row, count),) = staging.run(f"SELECT min(row), count(*) FROM {name} WHERE {column} IS NULL")
        if count:
            ((value,),) = staging.run(f"SELECT {column} FROM {edges.name} WHERE rowid = ?", row)
            similar = _similar_id(staging, end, value)
            raise unknown_end(edges.place(row), end.node_type, value, count, terms.nodes_called, similar)
    if edges.weight_error is not None:
        raise edges.weight_error
    staging.run(f"DROP TABLE {edges.name}")


def _narrow(count: int) -> str:
    """Return the narrowest integer type for a count; narrow integers sort in half the time."""
    return "INTEGER" if count < 2**31 else "BIGINT"


# ---- One table per relation ----------------------------------------------------------------------
class RelationStream:
    """One table per relation: number the nodes of each type, then join each edge table with its two types."""

    def __init__(self, staging: Staging, source: Plan) -> None:
        self._staging = staging
        self._source = source

    def stage(self) -> tuple[list[StagedType], list[KeyedEdges]]:
        """Put all tables into the database; raise at the first bad row."""
        edges = [
            self._staging.stage_edges(f"edges_{number}", [edge.selection])
            for number, edge in enumerate(self._source.edges)
        ]
        types = {}
        for node_type, nodes in self._stage_nodes(edges).items():
            self._staging.refuse_repeats(nodes)
            query = f"(SELECT id, rowid AS key FROM {nodes.name})"
            types[node_type] = self._staging.describe(node_type, nodes, query, nodes.typed)
        joined = [self._join(number, edge, edges[number], types) for number, edge in enumerate(self._source.edges)]
        return list(types.values()), joined

    def _stage_nodes(self, edges: Sequence[StagedEdges]) -> dict[str, StagedNodes]:
        nodes: dict[str, StagedNodes] = {}
        for source in self._source.nodes:
            nodes[source.node_type] = self._staging.stage_nodes(f"ids_{len(nodes)}", source.selection)
        ends = [
            (node_type, staged, column)
            for edge, staged in zip(self._source.edges, edges, strict=True)
            for node_type, column in ((edge.relation.source, "source"), (edge.relation.target, "target"))
        ]
        for node_type in dict.fromkeys(end for end, _, _ in ends if end not in nodes):
            columns = [(staged, column) for end, staged, column in ends if end == node_type]
            nodes[node_type] = self._staging.stage_ends(f"ids_{len(nodes)}", columns)
        return nodes

    def _join(self, number: int, edge: EdgePlan, staged: StagedEdges, types: dict[str, StagedType]) -> KeyedEdges:
        ends = types[edge.relation.source], types[edge.relation.target]
        undirected = "false" if edge.relation.directed else "true"
        name = f"scratch.joined_{number}"
        join_ids(self._staging, name, staged, ends, JoinTerms(undirected=undirected))
        if staged.attributes is None:
            return KeyedEdges(edge.relation, name, staged.rows)
        attributes = describe_edges(self._staging, f"scratch.described_{number}", name, staged)
        columns = [f"c{at}" for at in range(len(attributes))]
        return KeyedEdges(edge.relation, name, staged.rows, attributes, f"scratch.described_{number}", columns)


# ---- One table of all edges ----------------------------------------------------------------------
class TripleStream:
    """One table of all edges: number the nodes within their types, then join the edges with all nodes at once."""

    def __init__(self, staging: Staging, source: TripleTables) -> None:
        self._staging = staging
        self._source = source

    def stage(self) -> tuple[list[StagedType], list[KeyedEdges]]:
        """Put all tables into the database; raise at the first bad row."""
        edges = self._staging.stage_edges("edges", self._source.edges)
        if self._source.nodes is None:
            nodes = self._staging.stage_ends("nodes", [(edges, "source"), (edges, "target")])
        else:
            nodes = self._staging.stage_nodes("nodes", self._source.nodes)
        self._staging.refuse_repeats(nodes)
        one_type = [self._source.node_type] if nodes.rows else []
        type_names = self._distinct(nodes.name, "type") if "type" in nodes.kinds else one_type
        relation_names = self._distinct(edges.name, "relation")
        check_counts(len(type_names), len(relation_names))
        self._number_nodes(nodes, type_names)
        no_relation = self._staging.first_empty(edges, "relation")
        self._join(edges, nodes, type_names, relation_names)
        no_type = self._staging.first_empty(nodes, "type") if "type" in nodes.kinds else None
        for what, row, place in (("type", no_type, nodes.place), ("relation", no_relation, edges.place)):
            if row is not None:
                raise empty_cell(place(row), what)
        self._source.options.check_names(relation_names)
        query = "(SELECT id, key FROM scratch.keys WHERE type = {})"
        types = [self._staging.describe(name, nodes, query.format(code)) for code, name in enumerate(type_names)]
        attributes = pa.schema([])
        if edges.attributes is not None:
            attributes = describe_edges(self._staging, "scratch.described", "scratch.joined", edges)
        return types, self._split(type_names, relation_names, attributes)

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
        self._staging.put("relations", [codes])
        undirected = [str(relation_names.index(n)) for n in self._source.options.undirected if n in relation_names]
        terms = JoinTerms(
            kind=f"(r.code * {len(type_names)} + a.type) * {len(type_names)} + b.type",
            undirected=f"a.type = b.type AND r.code IN ({', '.join(undirected) or 'NULL'})",
            join="LEFT JOIN scratch.relations r ON e.relation = r.name",
            nodes_called="nodes table",
        )
        end = StagedType("node", nodes, "scratch.keys", nodes.rows, integers=False)
        join_ids(self._staging, "scratch.joined", edges, (end, end), terms)

    def _split(
        self, type_names: Sequence[str], relation_names: Sequence[str], attributes: pa.Schema
    ) -> list[KeyedEdges]:
        """Return the edges of each relation between each two types, in their order, with the attributes they have."""
        joined = []
        shape = len(relation_names), len(type_names), len(type_names)
        columns = [f"c{at}" for at in range(len(attributes))]
        filled: dict[int, tuple[int, ...]] = {}
        if columns:
            counts = ", ".join(f"count({column})" for column in columns)
            rows_by_kind = self._staging.run(f"SELECT kind, {counts} FROM scratch.described GROUP BY kind")
            filled = {kind: tuple(at for at, n in enumerate(own) if n) for kind, *own in rows_by_kind}
        for kind, rows in self._staging.run("SELECT kind, count(*) FROM scratch.joined GROUP BY kind ORDER BY kind"):
            code, source, target = np.unravel_index(kind, shape)
            relation = self._source.options.relation(type_names[source], relation_names[code], type_names[target])
            if relation is not None:
                own = filled.get(kind, ())
                joined.append(
                    KeyedEdges(
                        relation, f"(SELECT * FROM scratch.joined WHERE kind = {kind})", rows,
                        pa.schema([attributes.field(at) for at in own]),
                        f"(SELECT * FROM scratch.described WHERE kind = {kind})", [columns[at] for at in own],
                    )
                )  # fmt: skip
        return joined


# ---- Attributes of edges -------------------------------------------------------------------------
class EdgeSpool:
    """The attributes of one file's edges as they are read, in a file; their types are known after the last value."""

    def __init__(self, path: Path, selection: Selection) -> None:
        self._path, self.selection = path, selection
        weight = selection.columns.get("weight")
        self.columns = [column for column in selection.attributes if column != weight]
        self._inferred = {c: ColumnType() for c in selection.inferred_attributes if c in self.columns}
        self._texts: dict[str, TextType] = {}
        self._lost: set[str] = set()

    @property
    def read_types(self) -> dict[str, pa.DataType]:
        """The types in which columns are read whose types follow from their values."""
        return dict.fromkeys(self._inferred, pa.binary())

    def copy(self, batches: Iterator[SelectedRows]) -> Iterator[SelectedRows]:
        """Yield batches of rows, and write their attributes to the file."""
        if not self.columns:
            yield from batches
            return
        first = next(batches)  # it is empty
        schema = self._kept(first).schema
        yield first
        with pa.OSFile(str(self._path), "wb") as file, pa.ipc.new_stream(file, schema) as out:
            for rows in batches:
                for column, column_type in self._inferred.items():
                    column_type.update(rows.attributes[column].combine_chunks())
                out.write_table(self._kept(rows))
                yield rows

    def _kept(self, rows: SelectedRows) -> pa.Table:
        columns = {}
        for column in self.columns:
            values = rows.attributes[column]
            if not self.selection.table.typed or column in self.selection.kinds:
                columns[column] = values
                continue
            kept = to_attribute(values)
            if kept is None:
                self._lost.add(column)
                kind = kept_type(values.type) or pa.string()
                kept = pa.nulls(len(values), kind)
            if kept.type == TEXT:
                kept = kept.dictionary_decode()
                self._texts.setdefault(column, TextType()).update(kept)
            columns[column] = kept
        return pa.table(columns)

    def kind(self, column: str) -> pa.DataType | None:
        """Return the type of an attribute of this file, or None if it has no values that can be kept."""
        if column not in self.columns:
            return pa.float64()  # the weight
        if column in self._lost:
            return None
        if column in self.selection.kinds:
            return kind_named(self.selection.kinds[column])
        if column in self._inferred:
            return kept_type(self._inferred[column].type)
        if column in self._texts and self._texts[column].type != pa.string():
            return kept_type(self._texts[column].type)
        return kept_type(self.selection.declared_types[column])

    def notes(self) -> list[str]:
        """Return the notes on texts that are numbers or dates."""
        declared = self.selection.declared_types
        read = {c: self._inferred[c].type if c in self._inferred else declared[c] for c in self.columns}
        return note_texts(self.selection, read, lambda column: _spooled(self._path, self.columns.index(column)))

    def batches(self) -> Iterator[pa.Table]:
        if self.columns and self._path.exists():
            with pa.memory_map(str(self._path)) as file:
                yield from (pa.Table.from_batches([batch]) for batch in pa.ipc.open_stream(file))

    def values(self, column: str, values: pa.ChunkedArray, kind: pa.DataType, place: Place) -> pa.Array:
        """Return some values of an attribute as `kind`, which fits all files."""
        own = self.kind(column)
        if own is None:
            return pa.nulls(len(values), kind)
        if column in self.selection.kinds:
            part = converted(self.selection, column, values, place)
        elif column in self._inferred:
            written = pa.string() if kind == TEXT else self._inferred[column].type
            part = to_attribute(without_empty(pa.chunked_array([convert(values.combine_chunks(), written)])))
        elif column in self._texts and kind != TEXT:
            part = self._texts[column].convert(values.combine_chunks())
        else:
            part = to_attribute(values)
        assert part is not None
        if part.type != kind:
            part = to_attribute(part.cast(pa.string())) if kind == TEXT else part.cast(kind)
        return part


class StagedAttributes:
    """The attributes of edges that are read from one or several files."""

    def __init__(self, name: str, selections: Sequence[Selection], folder: Path) -> None:
        self.selections = selections
        self.spools = [EdgeSpool(folder / f"{name}-{at}.arrow", each) for at, each in enumerate(selections)]
        self.names = list(dict.fromkeys(attribute_name(c) for each in selections for c in each.attributes))

    def kinds(self, notes: list[str]) -> dict[str, pa.DataType]:
        """Return the types of the attributes that can be kept; append notes on the others."""
        kinds = {}
        for name in self.names:
            own = [spool.kind(column) for spool in self.spools if (column := column_of(spool.selection, name))]
            known = [kind for kind in own if kind is not None]
            if known:
                kinds[name] = common_type(known)
            else:
                notes.append(left_out_note(self.selections, name))
        return kinds

    def tables(self, kinds: Mapping[str, pa.DataType], lengths: Sequence[int], place: Place) -> Iterator[pa.Table]:
        """Yield the rows of all files with the attributes c0, c1, …; that of a weight stays empty here."""
        before = 0
        for spool, length in zip(self.spools, lengths, strict=True):
            done = 0
            for batch in spool.batches():
                yield self._table(spool, batch, kinds, before + done, place)
                done += len(batch)
            while done < length:  # it has no other attributes than its weight, or those of other files
                empty = pa.table({"": pa.nulls(min(BATCH_ROWS, length - done))})
                yield self._table(spool, empty, kinds, before + done, place)
                done += len(empty)
            before += length

    def _table(
        self, spool: EdgeSpool, batch: pa.Table, kinds: Mapping[str, pa.DataType], first: int, place: Place
    ) -> pa.Table:
        columns: dict[str, Any] = {"row": pa.array(np.arange(first, first + len(batch)))}
        for at, (name, kind) in enumerate(kinds.items()):
            column = column_of(spool.selection, name)
            if column is None or column not in batch.column_names:
                values = pa.nulls(len(batch), kind)
            else:
                values = spool.values(column, batch[column], kind, lambda row: place(first + row))
            columns[f"c{at}"] = values.cast(pa.string()) if kind == TEXT else values
        return pa.table(columns)

    def is_weight(self, name: str) -> bool:
        """Whether an attribute is the weight, under the name of its column."""
        columns = ((each, column_of(each, name)) for each in self.selections)
        return any(column is not None and column == each.columns.get("weight") for each, column in columns)


def describe_edges(staging: Staging, name: str, joined: str, edges: StagedEdges) -> pa.Schema:
    """Write edges by keys with their attributes into a new table, in the order of their files; return these."""
    attributes = edges.attributes
    assert attributes is not None
    kinds = attributes.kinds(staging.notes)
    if not kinds:
        return pa.schema([])
    table = f"{name.removeprefix('scratch.')}_values"
    staging.put(table, attributes.tables(kinds, edges.lengths, edges.place))
    terms = []
    for at, (attribute, kind) in enumerate(list(kinds.items())):
        term = f"a.c{at}"
        if attributes.is_weight(attribute):
            term = "j.weight"
        elif may_be_unix(attributes.selections, attribute, kind):
            unit = _unix_unit(staging, f"scratch.{table}", f"c{at}")
            if unit is not None:
                kinds[attribute] = TIME
                term = f"make_timestamp({term} * {1_000_000 // UNIX_UNITS[unit]})"
                staging.notes.append(unix_note(attributes.selections, attribute, unit))
        terms.append(f"{term} AS c{at}")
    for spool in attributes.spools:
        staging.notes += spool.notes()
    first = "CASE WHEN j.swapped THEN j.target ELSE j.source END"
    second = "CASE WHEN j.swapped THEN j.source ELSE j.target END"
    staging.run(f"""
        CREATE TABLE {name} AS SELECT j.kind, j.row, {first} AS source, {second} AS target, j.weight,
            row_number() OVER (PARTITION BY j.kind, j.source, j.target ORDER BY j.row) = 1 AS is_first,
            {", ".join(terms)}
        FROM {joined} j JOIN scratch.{table} a ON j.row = a.row ORDER BY j.kind, j.row
    """)
    staging.run(f"DROP TABLE scratch.{table}")
    return pa.schema(list(kinds.items()))


def _unix_unit(staging: Staging, table: str, column: str) -> str | None:
    """Return the unit of a column of integers that are plainly Unix times, as `unix_unit_of` does."""
    digits = f"({column} // 1000000 % 100 BETWEEN 1 AND 12 AND {column} // 10000 % 100 BETWEEN 1 AND 31 AND "
    digits += f"{column} // 100 % 100 <= 23 AND {column} % 100 <= 59 AND {column} < 10000000000)"
    ((low, high, others),) = staging.run(
        f"SELECT min({column}), max({column}), count(*) FILTER (WHERE NOT {digits}) FROM {table}"
    )
    return unix_unit(low, high, all_digits_of_dates=not others)


def _single_edges(staging: Staging, edges: KeyedEdges, duplicates: Duplicates) -> Iterator[pa.Table]:
    """Yield the single edges of a relation with their attributes, as rows of a store's table."""
    columns = ", ".join(f"{column} AS {name}" for column, name in zip(
        edges.columns, attribute_columns(len(edges.columns)), strict=True
    ))  # fmt: skip
    kept = "weight > 0 AND is_first" if duplicates == "drop" else "weight > 0"
    query = f"SELECT source, target, weight, {columns} FROM {edges.described} WHERE {kept} ORDER BY row"
    done = 0
    for batch in fetch(staging.connection, query):
        numbers = pa.array(np.arange(done, done + len(batch)))
        yield pa.Table.from_batches([batch]).add_column(0, "row", numbers)
        done += len(batch)
        staging.progress(f"writing the attributes of {edges.relation.name}", done, edges.rows)


# ---- Writing nodes -------------------------------------------------------------------------------
def _write_nodes(writer: BulkWriter, staging: Staging, number: int, node_type: StagedType) -> None:
    id_type = pa.int64() if node_type.integers else node_type.kind
    schema = node_table(pa.array([], id_type), None, node_type.nodes.attributes.empty_table()).schema
    with writer.writing_nodes(number, schema) as out:
        done = 0
        for rows in staging.rows_of(node_type):
            ids = rows.columns["id"].cast(id_type)
            out.write_table(node_table(ids, rows.columns.get("name"), rows.attributes, done))
            done += len(ids)
            staging.progress(f"writing {node_type.node_type}", done, node_type.count)


# ---- Parallel edges ------------------------------------------------------------------------------
def merge(batches: Iterable[Triplets], duplicates: Duplicates) -> Iterator[Triplets]:
    """Yield every pair of ends once, with the sum of its weights (`count`) or else the first weight.

    `batches` are sorted by ends. Weights add up in the order of the stream. Edges of weight 0 are dropped.

    >>> ends, weights = np.array([3, 3]), np.array([0.5, 1.0])
    >>> [w.tolist() for _, _, w in merge([(ends, ends, weights), (ends, ends, weights)], "count")]
    [[], [], [3.0]]
    """
    last: Triplets = (np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))
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


def _positive(sources: Rows, targets: Rows, weights: Floats) -> Triplets:
    positive = weights > 0
    return sources[positive], targets[positive], weights[positive]


def _merged(staging: Staging, edges: KeyedEdges, duplicates: Duplicates) -> Iterator[Triplets]:
    """Yield the edges of a relation, each once; raise if the weights of parallel edges add up to infinity."""
    for entries in merge(_entries(staging, edges), duplicates):
        check_sums(edges.relation, entries[2])
        yield entries


def _entries(staging: Staging, edges: KeyedEdges) -> Iterator[Triplets]:
    done = 0
    for entries in fetch_entries(staging.connection, f"SELECT source, target, weight FROM {edges.query}"):
        yield entries
        done += len(entries[0])
        staging.progress(f"writing {edges.relation.name}", done, edges.rows)


def _refuse_parallel(staging: Staging, edges: KeyedEdges, types: Mapping[str, StagedType]) -> None:
    """Raise at the first edge that repeats another."""
    repeated = f"SELECT source, target, min(row) AS first FROM {edges.query} GROUP BY ALL HAVING count(*) > 1"
    later = f"FROM {edges.query} JOIN ({repeated}) USING (source, target) WHERE row > first"
    ((row, source, target),) = staging.run(f"SELECT min(row), arg_min(source, row), arg_min(target, row) {later}")
    if row is not None:
        ((before,),) = staging.run(f"SELECT count(*) FROM {edges.query} WHERE row < ?", row)
        first = _id_of(staging, types[edges.relation.source], source)
        second = _id_of(staging, types[edges.relation.target], target)
        raise repeated_edge(edges.relation, first, second, before + 1)


def _similar_id(staging: Staging, nodes: StagedType, value: object) -> str | None:
    """Return the first id of a type that is a value but for case or spaces."""
    ids = fetch(staging.connection, f"SELECT CAST(id AS VARCHAR) AS id FROM {nodes.query} ORDER BY key")
    return next(filter(None, (similar_id(value, batch.column(0)) for batch in ids)), None)


_FOLDED = r"trim(regexp_replace(lower(id), '[\s\x{a0}\x{2000}-\x{200b}\x{202f}\x{3000}\x{feff}]+', ' ', 'g'))"


def _note_ids(staging: Staging, nodes: StagedType, edges: Sequence[KeyedEdges], options: ReadOptions) -> list[str]:
    """Note the ids of a type that look empty, and those that differ from others only by case or spaces."""
    if nodes.integers or not pa.types.is_string(nodes.kind):
        return []
    found: dict[str, int] = {}
    counts, count, pair = {}, 0, []
    if options.missing_ids is None:
        for batch in fetch(staging.connection, f"SELECT id, key FROM {nodes.query} ORDER BY key"):
            rows = pa.array(empty_looking(batch.column(0)))
            found |= dict(zip(*(batch.column(at).take(rows).to_pylist() for at in (0, 1)), strict=True))
    for name, key in found.items():
        ends = [(each, end) for each in edges for end in ("source", "target") if _is_end(nodes, each, end)]
        queries = [f"SELECT count(*) FROM {each.query} WHERE {end} = ?" for each, end in ends]
        counts[name] = sum(staging.run(query, key)[0][0] for query in queries)
    if options.fold_ids is None:
        folded = f"SELECT {_FOLDED} AS folded, count(*) AS ids, min(key) AS first FROM {nodes.query} GROUP BY ALL"
        ((count, first),) = staging.run(f"SELECT sum(ids - 1), min(first) FROM ({folded}) WHERE ids > 1")
        if count:
            same = f"SELECT {_FOLDED} FROM {nodes.query} WHERE key = ?"
            twins = staging.run(f"SELECT id FROM {nodes.query} WHERE {_FOLDED} = ({same}) ORDER BY key LIMIT 2", first)
            pair = [value for (value,) in twins]
    fractions = []
    if options.fold_ids is None:
        whole = f"SELECT id FROM {nodes.query}"
        fractions = staging.run(
            f"SELECT id FROM {nodes.query} WHERE regexp_full_match(id, '[0-9]+\\.0') "
            f"AND left(id, length(id) - 2) IN ({whole}) ORDER BY key"
        )
    return [
        *note_empty_ids(nodes.node_type, counts, options),
        *note_twins(nodes.node_type, int(count or 0), pair, options),
        *note_fractions(nodes.node_type, len(fractions), str(fractions[0][0]) if fractions else "", options),
    ]


def _is_end(nodes: StagedType, edges: KeyedEdges, end: str) -> bool:
    return bool(getattr(edges.relation, end) == nodes.node_type)


def _id_of(staging: Staging, nodes: StagedType, key: int) -> Id:
    ((value,),) = staging.run(f"SELECT id FROM {nodes.query} WHERE key = ?", key)
    return int(value) if nodes.integers else value

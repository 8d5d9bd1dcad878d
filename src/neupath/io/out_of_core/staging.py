"""Staging tables in a database, where ids are numbered and edges joined and sorted without being in memory."""

# ruff: noqa: S608  the names of tables and columns in statements are made here, never given by users

import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv

from neupath._runtime.progress import Progress
from neupath.errors import GraphError
from neupath.graph.schema import Relation
from neupath.io.assembly import empty_end, empty_id, repeated_id, to_weights, unknown_end
from neupath.io.sources import Place, SelectedRows, Selection, place_in_files
from neupath.store.bulk_writer import BATCH
from neupath.store.database import run, run_on


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


@dataclass(frozen=True)
class StagedNodes(StagedTable):
    """Nodes by ids, and the types of their attributes."""

    attributes: pa.Schema = field(default_factory=lambda: pa.schema([]))


class Staging:
    """Puts tables into the scratch database of a store that is being written."""

    def __init__(self, connection: Any, progress: Progress) -> None:
        self.connection = connection
        self.progress = progress

    def run(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        """Run a statement and return its rows."""
        return run(self.connection, statement, values)

    def put(self, name: str, tables: Iterable[pa.Table]) -> tuple[pa.Schema, int]:
        """Write tables one after the other into one; return its schema and its number of rows."""
        schema, rows = None, 0
        for table in _in_batches(tables):
            verb = f"CREATE TABLE {name} AS" if schema is None else f"INSERT INTO {name}"
            run_on(self.connection, table, f"{verb} SELECT * FROM given")
            schema, rows = table.schema, rows + len(table)
        assert schema is not None, "there is at least one table"
        return schema, rows

    def read(self, verb: str, selection: Selection, types: Mapping[str, pa.DataType]) -> Iterator[SelectedRows]:
        """Read a file in batches and report progress; `types` gives the types of its inferred attributes."""
        return selection.read_batches(types, self.progress, f"{verb} {selection.file.path.name}")

    def stage_edges(self, name: str, selections: Sequence[Selection]) -> StagedEdges:
        """Write the edges of one or several files; if one has weights, all need them."""
        weighted = any("weight" in selection.columns for selection in selections)
        lengths: list[int] = []
        errors: list[GraphError] = []
        place = place_in_files(selections, lengths)

        def tables() -> Iterator[pa.Table]:
            for selection in selections:
                lengths.append(0)
                for rows in self.read("reading", selection, {}):
                    before = sum(lengths)
                    lengths[-1] += len(rows)
                    yield _with_weights(rows, weighted, errors, lambda row, before=before: place(before + row))  # type: ignore[misc]

        schema, rows = self.put(name, tables())
        return StagedEdges(name, _kinds(schema), rows, place, errors[0] if errors else None)

    def stage_nodes(self, name: str, selection: Selection) -> StagedNodes:
        """Write the ids and types of nodes, and infer the types of their attributes.

        The attributes themselves are read a second time, when the nodes are written: the type of a text column is
        known only after its last value.
        """
        inferred = {attribute: ColumnType() for attribute in selection.inferred_attributes}
        first_pass = replace(selection, attributes=list(inferred))

        def tables() -> Iterator[pa.Table]:
            for rows in self.read("reading", first_pass, dict.fromkeys(inferred, pa.binary())):
                for attribute, column_type in inferred.items():
                    column_type.update(rows.attributes[attribute].combine_chunks())
                yield pa.table({column: rows.columns[column] for column in ("id", "type") if column in rows.columns})

        schema, count = self.put(name, tables())
        types = selection.declared_types | {name: column_type.type for name, column_type in inferred.items()}
        attributes = pa.schema([(attribute, types[attribute]) for attribute in selection.attributes])
        return StagedNodes(name, _kinds(schema), count, selection.file.place, attributes)

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
        self.run(f"CREATE TABLE {name} AS SELECT id FROM ({first}) ORDER BY place")
        ((rows,),) = self.run(f"SELECT count(*) FROM {name}")
        return StagedNodes(name, {"id": kind}, rows, lambda row: f"row {row + 1}")

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


def _in_batches(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Combine small tables into batches, which the database inserts faster."""
    batch: list[pa.Table] = []
    for table in tables:
        batch.append(table)
        if sum(map(len, batch)) >= BATCH:
            yield pa.concat_tables(batch)
            batch = []
    if batch:
        yield pa.concat_tables(batch)


def _with_weights(rows: SelectedRows, weighted: bool, errors: list[GraphError], place: Place) -> pa.Table:
    columns = {name: column for name, column in rows.columns.items() if name != "weight"}
    if weighted:
        texts = rows.columns.get("weight", pa.nulls(len(rows), pa.string()))
        try:
            weights = np.zeros(len(rows)) if errors else to_weights(texts, place)
        except GraphError as error:  # raised after the ends of all edges are checked, as in memory
            errors.append(error)
            weights = np.zeros(len(rows))
        columns["weight"] = pa.array(weights)
    else:
        columns["weight"] = pa.array(np.ones(len(rows)))
    return pa.table(columns)


def _kinds(schema: pa.Schema) -> dict[str, pa.DataType]:
    return dict(zip(schema.names, schema.types, strict=True))


def _as_text(column: str, kind: pa.DataType) -> str:
    return column if pa.types.is_string(kind) else f"CAST({column} AS VARCHAR)"


def _is_empty(column: str, kind: pa.DataType) -> str:
    return f"({column} IS NULL OR {column} = '')" if pa.types.is_string(kind) else f"({column} IS NULL)"


# ---- Edges by ids become edges by keys -----------------------------------------------------------
@dataclass(frozen=True)
class StagedType:
    """The nodes of a type: a query for their ids and keys, and what is known about their columns."""

    node_type: str
    query: str
    kind: pa.DataType
    count: int
    integers: bool
    named: bool
    attributes: pa.Schema


@dataclass(frozen=True)
class EndNodes:
    """The nodes that one end of an edge may name: a query for them, the type of their ids, and their number."""

    query: str
    kind: pa.DataType
    count: int
    node_type: str
    where: str | None = None
    """What errors call the table of these nodes; by default the node table of the type."""


@dataclass(frozen=True)
class JoinTerms:
    """SQL expressions of a join: the kind of an edge, whether it is undirected, and a further join."""

    kind: str = "0"
    undirected: str = "false"
    join: str = ""


@dataclass(frozen=True)
class KeyedEdges:
    """The edges of a relation: a query for their keys, rows and weights, sorted by keys, then rows."""

    relation: Relation
    query: str
    rows: int


def join_ids(
    staging: Staging, name: str, edges: StagedEdges, ends: tuple[EndNodes, EndNodes], terms: JoinTerms
) -> None:
    """Write edges by the keys of their ends into a new, sorted table; raise at the first bad edge.

    The source of an undirected edge is the smaller key.
    """
    swapped = f"({terms.undirected}) AND a.key > b.key"
    first, second = (f"CAST({key} AS {_narrow(end.count)})" for key, end in zip(("a.key", "b.key"), ends, strict=True))
    source, target = (
        f"LEFT JOIN {end.query} {letter} ON {_same(f'e.{column}', edges.kinds[column], f'{letter}.id', end.kind)}"
        for letter, column, end in zip("ab", ("source", "target"), ends, strict=True)
    )
    stage = f"sorting {edges.name.removeprefix('scratch.')}"
    staging.progress(stage, 0, 1)
    staging.run(f"""
        CREATE TABLE {name} AS SELECT
            {terms.kind} AS kind,
            CASE WHEN {swapped} THEN {second} ELSE {first} END AS source,
            CASE WHEN {swapped} THEN {first} ELSE {second} END AS target,
            CAST(e.rowid AS {_narrow(edges.rows)}) AS row, e.weight AS weight
        FROM {edges.name} e {source} {target} {terms.join} ORDER BY 1, 2, 3, 4
    """)
    staging.progress(stage, 1, 1)
    for column, end in zip(("source", "target"), ends, strict=True):
        _refuse_unknown(staging, name, edges, column, end)
    if edges.weight_error is not None:
        raise edges.weight_error
    staging.run(f"DROP TABLE {edges.name}")


def _narrow(count: int) -> str:
    """Return the narrowest integer type for a count; narrow integers sort in half the time."""
    return "INTEGER" if count < 2**31 else "BIGINT"


def _same(first: str, first_kind: pa.DataType, second: str, second_kind: pa.DataType) -> str:
    if first_kind == second_kind:
        return f"{first} = {second}"
    return f"{_as_text(first, first_kind)} = {_as_text(second, second_kind)}"


def _refuse_unknown(staging: Staging, name: str, edges: StagedEdges, column: str, end: EndNodes) -> None:
    """Raise at the first edge with an empty end, or else at the first with an unknown one."""
    empty = staging.first_empty(edges, column)
    if empty is not None:
        raise empty_end(edges.place(empty), end.node_type)
    ((row, count),) = staging.run(f"SELECT min(row), count(*) FROM {name} WHERE {column} IS NULL")
    if count:
        ((value,),) = staging.run(f"SELECT {column} FROM {edges.name} WHERE rowid = ?", row)
        raise unknown_end(edges.place(row), end.node_type, value, count, end.where)


# ---- The type of a text column -------------------------------------------------------------------
_TEXT = (pa.string(), pa.binary())
_LADDER = (
    pa.null(), pa.int64(), pa.bool_(), pa.date32(), pa.time32("s"), pa.timestamp("s"), pa.timestamp("s", "UTC"),
    pa.timestamp("ns"), pa.timestamp("ns", "UTC"), pa.float64(), *_TEXT,
)  # fmt: skip
"""In Arrow's order: a column gets the first type that all its values fit."""


class ColumnType:
    """The type of a text column, inferred batch by batch as Arrow infers it from a whole table.

    >>> year = ColumnType()
    >>> year.update(pa.array([b"1999", b""]))
    >>> year.update(pa.array([b"about 2000"]))
    >>> year.type
    DataType(string)
    """

    def __init__(self) -> None:
        self._candidates = list(_LADDER)

    @property
    def type(self) -> pa.DataType:
        return self._candidates[0]

    def update(self, texts: pa.Array) -> None:
        """Rule out the types that some values, given as bytes, do not fit."""
        if self.type == pa.binary() or not len(texts):
            return
        try:
            strings = texts.cast(pa.string())
        except pa.ArrowInvalid:
            self._candidates = [pa.binary()]
            return
        if self.type not in _TEXT:
            written = _as_csv(strings)
            self._candidates = [kind for kind in self._candidates if kind in _TEXT or _fits(written, kind)]


def _as_csv(strings: pa.Array) -> bytes:
    """Write values as a table, so that the rules of tables decide what is missing and what is true."""
    sink = io.BytesIO()
    options = pa.csv.WriteOptions(include_header=False, quoting_style="all_valid")
    pa.csv.write_csv(pa.table({"value": strings}), sink, options)
    return sink.getvalue()


def _fits(written: bytes, kind: pa.DataType) -> bool:
    try:
        pa.csv.read_csv(
            io.BytesIO(written),
            read_options=pa.csv.ReadOptions(column_names=["value"]),
            parse_options=pa.csv.ParseOptions(newlines_in_values=True),
            convert_options=pa.csv.ConvertOptions(column_types={"value": kind}),
        )
    except pa.ArrowInvalid:
        return False
    return True

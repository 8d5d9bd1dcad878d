"""Edges by ids become edges by keys, in the database: joined with the nodes, sorted, and checked."""

# ruff: noqa: S608  the names of tables and columns in statements are made here, never given

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from neupath.datasets.faults import empty_end, lost_end
from neupath.datasets.streaming.staging import StagedEdges, Staging, as_text
from neupath.graph import repeated_edge
from neupath.nodes import Id
from neupath.schema import Relation


@dataclass(frozen=True)
class StagedType:
    """The nodes of a type: a query for their ids and keys, whether ids are integers, their names and attributes."""

    node_type: str
    query: str
    kind: pa.DataType
    count: int
    integers: bool
    named: bool
    attributes: pa.Schema


@dataclass(frozen=True)
class Ends:
    """The nodes that one end of an edge may be: a query for them, the type of ids, their number, and their name."""

    query: str
    kind: pa.DataType
    count: int
    node_type: str
    where: str


@dataclass(frozen=True)
class Terms:
    """What else a join does: number the kinds of edges, and say which have no direction."""

    kind: str = "0"
    undirected: str = "false"
    join: str = ""


@dataclass(frozen=True)
class Joined:
    """The edges of a relation: a query for their keys, rows and weights, sorted by keys and then rows."""

    relation: Relation
    query: str
    rows: int


def join(staging: Staging, name: str, edges: StagedEdges, ends: tuple[Ends, Ends], terms: Terms) -> None:
    """Write edges by the keys of their ends, sorted, into a new table; refuse the first that is wrong.

    An edge without a direction has the smaller key as its source.
    """
    swapped = f"({terms.undirected}) AND a.key > b.key"
    first, second = (f"CAST({key} AS {_narrow(end.count)})" for key, end in zip(("a.key", "b.key"), ends, strict=True))
    source, target = (
        f"LEFT JOIN {end.query} {letter} ON {_same(f'e.{column}', edges.kinds[column], f'{letter}.id', end.kind)}"
        for letter, column, end in zip("ab", ("source", "target"), ends, strict=True)
    )
    title = f"sorting {edges.name.removeprefix('room.')}"
    staging.stages(title, 0.0)
    staging.run(f"""
        CREATE TABLE {name} AS SELECT
            {terms.kind} AS kind,
            CASE WHEN {swapped} THEN {second} ELSE {first} END AS source,
            CASE WHEN {swapped} THEN {first} ELSE {second} END AS target,
            CAST(e.rowid AS {_narrow(edges.rows)}) AS row, e.weight AS weight
        FROM {edges.name} e {source} {target} {terms.join} ORDER BY 1, 2, 3, 4
    """)
    staging.stages(title, 1.0)
    for column, end in zip(("source", "target"), ends, strict=True):
        _refuse_lost(staging, name, edges, column, end)
    if edges.fault is not None:
        raise edges.fault
    staging.run(f"DROP TABLE {edges.name}")


def _narrow(count: int) -> str:
    """Return the integers that can count something; narrow ones are sorted in half the time."""
    return "INTEGER" if count < 2**31 else "BIGINT"


def _same(first: str, first_kind: pa.DataType, second: str, second_kind: pa.DataType) -> str:
    if first_kind == second_kind:
        return f"{first} = {second}"
    return f"{as_text(first, first_kind)} = {as_text(second, second_kind)}"


def _refuse_lost(staging: Staging, name: str, edges: StagedEdges, column: str, end: Ends) -> None:
    """Refuse the first edge that names no end, or else the first whose end is not there."""
    empty = staging.first_empty(edges, column)
    if empty is not None:
        raise empty_end(edges.place(empty), end.node_type)
    ((row, count),) = staging.run(f"SELECT min(row), count(*) FROM {name} WHERE {column} IS NULL")
    if count:
        ((value,),) = staging.run(f"SELECT {column} FROM {edges.name} WHERE rowid = ?", row)
        raise lost_end(edges.place(row), end.node_type, value, end.where, count)


def refuse_parallel(staging: Staging, joined: Joined, types: Mapping[str, StagedType]) -> None:
    """Refuse the first edge whose ends have been joined before."""
    repeated = f"SELECT source, target, min(row) AS first FROM {joined.query} GROUP BY ALL HAVING count(*) > 1"
    later = f"FROM {joined.query} JOIN ({repeated}) USING (source, target) WHERE row > first"
    ((row, source, target),) = staging.run(f"SELECT min(row), arg_min(source, row), arg_min(target, row) {later}")
    if row is not None:
        ((before,),) = staging.run(f"SELECT count(*) FROM {joined.query} WHERE row < ?", row)
        ends = (types[joined.relation.source], source), (types[joined.relation.target], target)
        first, second = (_id(staging, end, key) for end, key in ends)
        raise repeated_edge(joined.relation, first, second, before + 1)


def _id(staging: Staging, of: StagedType, key: int) -> Id:
    ((found,),) = staging.run(f"SELECT id FROM {of.query} WHERE key = ?", key)
    return int(found) if of.integers else found

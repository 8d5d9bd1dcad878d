"""Tables of a source in a database, where they are numbered, joined and sorted without being in memory."""

import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv

from neupath._runtime.progress import Progress
from neupath.errors import GraphError
from neupath.io.assembly import Place, to_weights
from neupath.io.row_errors import empty_id, repeated_id
from neupath.io.sources import FilePart, Selection, place_in_parts
from neupath.store.bulk_writer import BATCH
from neupath.store.database import run, run_on

# ---- The type of a text column, found block by block as Arrow finds it for a whole table


_TEXT = (pa.string(), pa.binary())
_LADDER = (
    pa.null(), pa.int64(), pa.bool_(), pa.date32(), pa.time32("s"), pa.timestamp("s"), pa.timestamp("s", "UTC"),
    pa.timestamp("ns"), pa.timestamp("ns", "UTC"), pa.float64(), *_TEXT,
)  # fmt: skip
"""In Arrow's order: a column gets the first type that all its values fit."""


class ColumnType:
    """The type that a column gets, as far as its values have been seen.

    >>> year = ColumnType()
    >>> year.see(pa.array([b"1999", b""]))
    >>> year.see(pa.array([b"about 2000"]))
    >>> year.found
    DataType(string)
    """

    def __init__(self) -> None:
        self._left = list(_LADDER)

    @property
    def found(self) -> pa.DataType:
        return self._left[0]

    def see(self, texts: pa.Array) -> None:
        """Go through some values, given as bytes."""
        if self.found == pa.binary() or not len(texts):
            return
        try:
            strings = texts.cast(pa.string())
        except pa.ArrowInvalid:
            self._left = [pa.binary()]
            return
        if self.found not in _TEXT:
            written = _as_csv(strings)
            self._left = [kind for kind in self._left if kind in _TEXT or _fit(written, kind)]


def _as_csv(strings: pa.Array) -> bytes:
    """Write values as a table, so that they are read by the very rules of tables: what is missing, what is true."""
    sink = io.BytesIO()
    options = pa.csv.WriteOptions(include_header=False, quoting_style="all_valid")
    pa.csv.write_csv(pa.table({"value": strings}), sink, options)
    return sink.getvalue()


def _fit(written: bytes, kind: pa.DataType) -> bool:
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


# ---- Tables of a source in a database, where they are numbered, joined and sorted without being in memory


# ruff: noqa: S608  the names of tables and columns in statements are made here, never given


@dataclass(frozen=True)
class StagedTable:
    """A table in the database, whose rowid counts the rows of its source from 0."""

    name: str
    kinds: Mapping[str, pa.DataType]
    rows: int
    place: Place


@dataclass(frozen=True)
class StagedEdges(StagedTable):
    """Edges by ids, with weights, and what is wrong with the first weight that is none."""

    fault: GraphError | None = None


@dataclass(frozen=True)
class StagedNodes(StagedTable):
    """Nodes by ids, and the types of their attributes."""

    attributes: pa.Schema = field(default_factory=lambda: pa.schema([]))


class Staging:
    """Puts tables into the room of a store in the making."""

    def __init__(self, connection: Any, progress: Progress) -> None:
        self.connection = connection
        self.progress = progress

    def run(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        """Run a statement and return what it finds."""
        return run(self.connection, statement, values)

    def put(self, name: str, tables: Iterable[pa.Table]) -> tuple[pa.Schema, int]:
        """Write tables one after the other as one; return their schema and how many rows there are."""
        schema, rows = None, 0
        for table in _gathered(tables):
            made = f"CREATE TABLE {name} AS" if schema is None else f"INSERT INTO {name}"
            run_on(self.connection, table, f"{made} SELECT * FROM given")
            schema, rows = table.schema, rows + len(table)
        assert schema is not None, "there is at least one table"
        return schema, rows

    def read(self, verb: str, selection: Selection, types: Mapping[str, pa.DataType]) -> Iterator[FilePart]:
        """Go through a file, showing how far it is; `types` are those of its attributes, where it does not say them."""
        title = f"{verb} {selection.file.path.name}"
        return selection.read_batches(types, lambda share: self.progress(title, round(1000 * share), 1000))

    def stage_edges(self, name: str, selections: Sequence[Selection]) -> StagedEdges:
        """Write edges of one file or several; all of them need weights where one has."""
        weighted = any("weight" in selection.columns for selection in selections)
        lengths: list[int] = []
        faults: list[GraphError] = []
        place = place_in_parts(selections, lengths)

        def tables() -> Iterator[pa.Table]:
            for selection in selections:
                lengths.append(0)
                for part in self.read("reading", selection, {}):
                    before = sum(lengths)
                    lengths[-1] += len(part)
                    yield _with_weights(part, weighted, faults, lambda row, before=before: place(before + row))  # type: ignore[misc]

        schema, rows = self.put(name, tables())
        return StagedEdges(name, _kinds(schema), rows, place, faults[0] if faults else None)

    def stage_nodes(self, name: str, selection: Selection) -> StagedNodes:
        """Write the ids of nodes, and their types where they have; find out the types of their attributes."""
        found = {attribute: ColumnType() for attribute in selection.guessed}
        seen = replace(selection, attributes=list(found))

        def tables() -> Iterator[pa.Table]:
            for part in self.read("reading", seen, dict.fromkeys(found, pa.binary())):
                for attribute, kind in found.items():
                    kind.see(part.attributes[attribute].combine_chunks())
                yield pa.table({column: part.columns[column] for column in ("id", "type") if column in part.columns})

        schema, rows = self.put(name, tables())
        types = selection.told_types | {attribute: kind.found for attribute, kind in found.items()}
        attributes = pa.schema([(attribute, types[attribute]) for attribute in selection.attributes])
        return StagedNodes(name, _kinds(schema), rows, selection.file.place, attributes)

    def stage_named(self, name: str, columns: Iterable[tuple[StagedTable, str]]) -> StagedNodes:
        """Write the distinct ids that some columns of edges name, in order of appearance."""
        given = list(columns)
        kinds = {table.kinds[column] for table, column in given}
        kind = kinds.pop() if len(kinds) == 1 else pa.string()
        parts, before = [], 0
        for table, column in given:
            id_ = as_text(column, table.kinds[column]) if kind == pa.string() else column
            told = f"WHERE NOT {is_empty(column, table.kinds[column])}"
            parts.append(f"SELECT {id_} AS id, rowid + {before} AS place FROM {table.name} {told}")
            before += table.rows
        appeared = f"SELECT id, min(place) AS place FROM ({' UNION ALL '.join(parts)}) GROUP BY id"
        self.run(f"CREATE TABLE {name} AS SELECT id FROM ({appeared}) ORDER BY place")
        ((rows,),) = self.run(f"SELECT count(*) FROM {name}")
        return StagedNodes(name, {"id": kind}, rows, lambda row: f"row {row + 1}")

    def refuse_repeats(self, nodes: StagedNodes) -> None:
        """Refuse the first node without an id, or else the first with the id of another."""
        empty = self.first_empty(nodes, "id")
        if empty is not None:
            raise empty_id(nodes.place(empty))
        repeated = f"SELECT id, min(rowid) AS first FROM {nodes.name} GROUP BY id HAVING count(*) > 1"
        query = f"SELECT min(n.rowid), arg_min(id, n.rowid) FROM {nodes.name} n JOIN ({repeated}) USING (id)"
        ((row, value),) = self.run(f"{query} WHERE n.rowid > first")
        if row is not None:
            raise repeated_id(nodes.place(row), value)

    def first_empty(self, table: StagedTable, column: str) -> int | None:
        """Return the first row where a column is empty."""
        query = f"SELECT min(rowid) FROM {table.name} WHERE {is_empty(column, table.kinds[column])}"
        found: int | None = self.run(query)[0][0]
        return found


def _gathered(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Put small tables together, up to a batch, which the database takes in better."""
    held: list[pa.Table] = []
    for table in tables:
        held.append(table)
        if sum(map(len, held)) >= BATCH:
            yield pa.concat_tables(held)
            held = []
    if held:
        yield pa.concat_tables(held)


def _with_weights(part: FilePart, weighted: bool, faults: list[GraphError], place: Place) -> pa.Table:
    columns = {name: column for name, column in part.columns.items() if name != "weight"}
    if weighted:
        given = part.columns.get("weight", pa.nulls(len(part), pa.string()))
        try:
            weights = np.zeros(len(part)) if faults else to_weights(given, place)
        except GraphError as fault:  # told when the ends of all edges have been looked at
            faults.append(fault)
            weights = np.zeros(len(part))
        columns["weight"] = pa.array(weights)
    else:
        columns["weight"] = pa.array(np.ones(len(part)))
    return pa.table(columns)


def _kinds(schema: pa.Schema) -> dict[str, pa.DataType]:
    return dict(zip(schema.names, schema.types, strict=True))


def as_text(column: str, kind: pa.DataType) -> str:
    """Return a column as an expression that is text."""
    return column if pa.types.is_string(kind) else f"CAST({column} AS VARCHAR)"


def is_empty(column: str, kind: pa.DataType) -> str:
    """Return the condition that a column holds no id."""
    return f"({column} IS NULL OR {column} = '')" if pa.types.is_string(kind) else f"({column} IS NULL)"

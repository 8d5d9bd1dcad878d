"""The database of a store: its tables, its connections, and what it says when something is wrong."""

import json
import os
import time
from base64 import b64decode, b64encode
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from neupath.errors import MissingExtraError, SourceError, WriteError, first_line
from neupath.graph.hin import HIN
from neupath.graph.metapath import Relation, Schema

# ---- Where things lie in a store's folder --------------------------------------------------------
MARKER = "store.json"
DATABASE = "graph.duckdb"
SNAPSHOT = "snapshot-"
FORMAT = 1


def is_store(path: Path) -> bool:
    """Whether a folder is a store."""
    return (path / MARKER).is_file()


def check_marker(folder: Path) -> None:
    """Refuse a folder that is no store, or one of another format."""
    try:
        found = json.loads((folder / MARKER).read_text(encoding="utf-8"))
        written = found["format"]
    except FileNotFoundError as error:
        raise SourceError(f"{folder} is not a store; make one with 'neupath import'") from error
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise SourceError(f"{folder / MARKER} cannot be read: {error}; the store is damaged") from error
    if written != FORMAT:
        raise SourceError(f"the store {folder} has format {written!r}, and this neupath reads format {FORMAT}")


def write_marker(folder: Path) -> None:
    """Make a folder a store, as the last thing that is written into it."""
    (folder / MARKER).write_text(json.dumps({"format": FORMAT}) + "\n", encoding="utf-8")
    sync(folder / MARKER)


def sync(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


# ---- The database of a store ---------------------------------------------------------------------
PATIENCE = 10.0
"""Seconds to wait for another process that has the store open for writing."""
LOG_BYTES = 1 << 24
"""What the log of a database may hold before it goes into its tables."""
_AT_ONCE = 64
"""Rows of one statement; more of them are better given as a table."""
_TABLES = """
CREATE TABLE facts (content VARCHAR NOT NULL);
CREATE TABLE versions (version BIGINT, nodes BIGINT, edges BIGINT, node_sum VARCHAR, edge_sum VARCHAR);
CREATE TABLE changes (
    version BIGINT, relation INTEGER, source BIGINT, target BIGINT, "before" DOUBLE, "after" DOUBLE
);
"""


@dataclass(frozen=True)
class StoreLayout:
    """What the tables of a store hold: its schema, and for each node type its names and the types of its attributes.

    Node type i is the table nodes_i (key, born, died, id, name, a0, a1, …) and relation j the table edges_j (source,
    target, weight). Keys count the nodes of a type from 0 and are never used again; `born` and `died` are versions.
    The edges are those of version `folded`; what came later stands in `changes`, with the weight after each change.
    """

    schema: Schema
    named: tuple[bool, ...]
    attributes: tuple[pa.Schema, ...]
    notes: tuple[str, ...] = ()
    folded: int = 0

    @classmethod
    def of(cls, hin: HIN) -> "StoreLayout":
        """Return the layout of a graph."""
        return cls(
            hin.schema,
            tuple(nodes.names is not None for nodes in hin.nodes.values()),
            tuple(nodes.attributes.schema for nodes in hin.nodes.values()),
            hin.notes,
        )

    def to_json(self) -> str:
        return json.dumps(
            {
                "node_types": self.schema.node_types,
                "relations": [[r.source, r.name, r.target, r.directed] for r in self.schema.relations],
                "abbreviations": dict(self.schema.abbreviations),
                "named": self.named,
                "attributes": [b64encode(schema.serialize().to_pybytes()).decode() for schema in self.attributes],
                "notes": self.notes,
                "folded": self.folded,
            }
        )

    @classmethod
    def from_json(cls, text: str) -> "StoreLayout":
        found = json.loads(text)
        relations = tuple(Relation(*parts) for parts in found["relations"])
        return cls(
            Schema(tuple(found["node_types"]), relations, found["abbreviations"]),
            tuple(found["named"]),
            tuple(pa.ipc.read_schema(pa.py_buffer(b64decode(schema))) for schema in found["attributes"]),
            tuple(found["notes"]),
            found["folded"],
        )


@dataclass(frozen=True)
class VersionFacts:
    """What is true of one version: how many nodes and edges there are, and sums over all of them."""

    version: int
    nodes: int
    edges: int
    node_sum: int
    edge_sum: int


def run(connection: Any, statement: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
    """Run a statement to its end and return all rows; a connection does one thing at a time."""
    try:
        found: list[tuple[Any, ...]] = connection.execute(statement, list(values)).fetchall()
    except RuntimeError as error:
        if "interrupted" in str(error):  # which is how DuckDB tells of Ctrl-C
            raise KeyboardInterrupt from error
        raise
    return found


def run_on(connection: Any, given: pa.Table, statement: str) -> None:
    """Run a statement that reads rows from `given`."""
    connection.register("given", given)
    run(connection, statement)
    connection.unregister("given")


def create_tables(connection: Any, layout: StoreLayout) -> None:
    """Make the tables that every store has."""
    run(connection, _TABLES)
    run(connection, "INSERT INTO facts VALUES (?)", [layout.to_json()])


def node_columns(count: int) -> list[str]:
    """Return the names of the attribute columns in the database; the layout holds their own names."""
    return [f"a{number}" for number in range(count)]


def node_table(ids: pa.Array, names: pa.Array | None, attributes: pa.Table, first: int = 0) -> pa.Table:
    """Return nodes of a type as their table in the database has them, with keys from `first` on."""
    count = len(ids)
    columns = {
        "key": pa.array(np.arange(first, first + count)),
        "born": pa.array(np.zeros(count, dtype=np.int64)),
        "died": pa.nulls(count, pa.int64()),
        "id": ids,
        "name": pa.nulls(count, pa.string()) if names is None else names.cast(pa.string()),
    }
    columns_of_attributes = (attributes[name] for name in attributes.column_names)
    return pa.table(columns | dict(zip(node_columns(attributes.num_columns), columns_of_attributes, strict=True)))


def read_layout(connection: Any) -> StoreLayout:
    """Return what the tables hold."""
    return StoreLayout.from_json(run(connection, "SELECT content FROM facts")[0][0])


def write_layout(connection: Any, layout: StoreLayout) -> None:
    """Write down that the tables hold something else now."""
    run(connection, "UPDATE facts SET content = ?", [layout.to_json()])


def read_facts(connection: Any, version: int | None = None) -> VersionFacts:
    """Return the facts of a version, or of the last one."""
    where, values = ("ORDER BY version DESC LIMIT 1", []) if version is None else ("WHERE version = ?", [version])
    is_number = version is None or abs(version) < 2**63  # which the database can look for
    found = run(connection, f"SELECT * FROM versions {where}", values) if is_number else []  # noqa: S608
    if not found:
        ((oldest, newest),) = run(connection, "SELECT min(version), max(version) FROM versions")
        raise SourceError(f"version {version} is not kept; the store has versions {oldest} to {newest}")
    return VersionFacts(*(int(value) for value in found[0]))


def write_facts(connection: Any, *versions: VersionFacts) -> None:
    """Write down what is true of new versions."""
    rows = [(facts.version, facts.nodes, facts.edges, str(facts.node_sum), str(facts.edge_sum)) for facts in versions]
    insert_rows(connection, "versions", rows)


def insert_rows(connection: Any, table: str, rows: Sequence[tuple[object, ...]]) -> None:
    """Add rows of numbers and texts to a table, some at a time: a statement costs more than a row does."""
    for start in range(0, len(rows), _AT_ONCE):
        some = rows[start : start + _AT_ONCE]
        marks = ", ".join([f"({', '.join('?' * len(some[0]))})"] * len(some))
        run(connection, f"INSERT INTO {table} VALUES {marks}", [value for row in some for value in row])  # noqa: S608


def insert_table(connection: Any, table: str, rows: pa.Table) -> None:
    """Add the rows of an Arrow table to one of the same columns."""
    connection.register("given", rows)
    run(connection, f"INSERT INTO {table} BY NAME SELECT * FROM given")  # noqa: S608
    connection.unregister("given")


def duckdb() -> Any:
    """Import DuckDB, which comes with the extra `store`."""
    try:
        import duckdb as found
    except ImportError as error:
        raise MissingExtraError("duckdb", "neupath[store]") from error
    return found


def connect(folder: Path, *, write: bool = False) -> Any:
    """Open the database, waiting a little for a process that is writing to it."""
    library, path = duckdb(), folder / DATABASE
    if not path.is_file():
        raise SourceError(f"the store {folder} has no {DATABASE}: it is damaged; import it again")
    if write and not (os.access(path, os.W_OK) and os.access(folder, os.W_OK)):
        raise WriteError(f"cannot write to the store {folder}: no permission")
    until = time.monotonic() + PATIENCE
    while True:
        try:
            connection = library.connect(str(path), read_only=not write)
            run(connection, "SET enable_progress_bar = false")
            if write:  # a checkpoint of its own would fail a commit that is on disk; see `checkpoint_if_due`
                run(connection, "SET wal_autocheckpoint = '1TB'")
                run(connection, "PRAGMA disable_checkpoint_on_shutdown")  # see `Store.close`
            return connection
        except library.Error as error:
            user = _user_of(str(error))
            if user is None:
                raise SourceError(f"cannot open the store {folder}: {first_line(error)}") from error
            if time.monotonic() > until:
                raise SourceError(f"the store {folder} is being written to by {user}") from error
            time.sleep(0.02)


def _user_of(told: str) -> str | None:
    """Return who has a database open, where that is why another cannot open it."""
    if "different configuration" in told:
        return "this process, or was to be while it reads; close it there, or use the store that is open"
    return "another process; try again" if "set lock" in told else None  # not "block", of which one may be damaged


@contextmanager
def reading(folder: Path) -> Iterator[Any]:
    """Lend a connection for reading one consistent state."""
    connection = connect(folder)
    try:
        with telling_reads(folder):
            run(connection, "BEGIN TRANSACTION")
            yield connection
    finally:
        connection.close()


@contextmanager
def telling_reads(folder: Path) -> Iterator[None]:
    """Say in one sentence that a store could not be read."""
    try:
        yield
    except duckdb().Error as error:
        raise SourceError(f"cannot read the store {folder}: {first_line(error)}") from error


@contextmanager
def transaction(connection: Any, folder: Path) -> Iterator[None]:
    """Write all or nothing; what was committed is on disk."""
    with telling_writes(folder):
        run(connection, "BEGIN TRANSACTION")
        yield
        run(connection, "COMMIT")


@contextmanager
def telling_writes(folder: Path) -> Iterator[None]:
    """Say in one sentence that a store could not be written to."""
    try:
        yield
    except (duckdb().Error, OSError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or first_line(error)
        raise WriteError(f"cannot write to the store {folder}: {reason}; nothing was changed") from error


def checkpoint_if_due(connection: Any, folder: Path) -> None:
    """Write what was committed from the log into the tables, where it has become much; it is on disk either way."""
    log = folder / f"{DATABASE}.wal"
    if log.exists() and log.stat().st_size > LOG_BYTES:
        with telling_writes(folder):
            run(connection, "CHECKPOINT")

"""The DuckDB database of a store: its tables, its connections, and its errors as ours."""

import json
import logging
import os
import re
import shutil
import time
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pyarrow as pa

from neupath._runtime.files import sync
from neupath.errors import MissingExtraError, SourceError, WriteError, first_line
from neupath.graph.edge_attributes import KINDS, TEXT, kind_of, to_attribute, to_attributes
from neupath.graph.hin import HIN, Edges, Floats
from neupath.graph.metapath import Relation, Schema
from neupath.graph.nodes import Rows

_logger = logging.getLogger("neupath.store")

# ---- Files of a store ----------------------------------------------------------------------------
MARKER = "store.json"
DATABASE = "graph.duckdb"
LOG = f"{DATABASE}.wal"
ACKNOWLEDGED = "acknowledged"
SNAPSHOT = "snapshot-"
FORMAT, ATTRIBUTES_FORMAT = 1, 2
"""The format of a store, and of one whose edges have attributes, which an older neupath would lose."""


def is_store(path: Path) -> bool:
    """Whether a folder is a store."""
    return (path / MARKER).is_file()


def check_marker(folder: Path) -> None:
    """Raise if a folder is not a store, has another format, or holds links."""
    check_no_links(folder)
    try:
        written = json.loads((folder / MARKER).read_text(encoding="utf-8"))["format"]
    except (FileNotFoundError, NotADirectoryError) as error:
        raise SourceError(f"{folder} is not a store; make one with 'neupath import'") from error
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise SourceError(f"{folder / MARKER} cannot be read: {error}; the store is damaged") from error
    if written not in (FORMAT, ATTRIBUTES_FORMAT):
        raise SourceError(
            f"the store {folder} has format {written!r}, and this neupath reads formats {FORMAT} and "
            f"{ATTRIBUTES_FORMAT}"
        )


def check_no_links(folder: Path) -> None:
    """Raise if a store or one of its snapshots holds anything but files and folders.

    Updates, compactions and the cache write to files and remove them: by a link, to files outside of the store.
    """
    with suppress(OSError):  # what is missing or not readable is reported by whoever reads it
        for entry in sorted(folder.iterdir()):
            is_folder = entry.is_dir() and not entry.is_symlink()
            for path in [entry, *(entry.iterdir() if is_folder and entry.name.startswith(SNAPSHOT) else ())]:
                if path.is_symlink() or not (path.is_file() or path.is_dir()):
                    kind = "a symbolic link" if path.is_symlink() else "neither a file nor a folder"
                    raise SourceError(
                        f"{path} is {kind}, and a store is read and written in its own folder only; put the file "
                        f"itself there, or import the graph again"
                    )


def write_marker(folder: Path, layout: "StoreLayout") -> None:
    """Mark a folder as a store; this is the last file written into it."""
    written = ATTRIBUTES_FORMAT if layout.described_relations else FORMAT
    (folder / MARKER).write_text(json.dumps({"format": written}) + "\n", encoding="utf-8")
    sync(folder / MARKER)


# ---- Tables --------------------------------------------------------------------------------------
PATIENCE = 10.0  # seconds to wait for another writer
LOG_BYTES = 1 << 24  # size of the write-ahead log at which a checkpoint is due
ROWS_PER_INSERT = 64  # rows that one statement writes as values; more are faster as a table
Columns = Mapping[str, str]
"""The columns of a table, and the type of each in the database."""
_LIVES = {"born": "BIGINT", "died": "BIGINT"}
_PAIR = {"source": "BIGINT", "target": "BIGINT"}
EDGE_COLUMNS: Columns = {**_PAIR, "weight": "DOUBLE"}
_TABLES: Mapping[str, Columns] = {
    "facts": {"content": "VARCHAR"},
    "versions": {
        "version": "BIGINT", "nodes": "BIGINT", "edges": "BIGINT", "node_sum": "VARCHAR", "edge_sum": "VARCHAR",
    },
    "changes": {"version": "BIGINT", "relation": "INTEGER", **_PAIR, "before": "DOUBLE", "after": "DOUBLE"},
}  # fmt: skip
"""The tables that every store has."""


@dataclass(frozen=True)
class StoreLayout:
    """What the tables of a store hold: the schema, and for each node type whether it has names, and its attributes.

    Node type i is the table nodes_i (key, born, died, id, name, a0, a1, …), and relation j the table edges_j (source,
    target, weight). Keys number the nodes of a type from 0 and are never reused; `born` and `died` are versions. The
    edge tables hold version `base_version`; later edges are rows of `changes`, with the weight after each change.

    If the edges of relation j have attributes, its single edges are also the table edge_rows_j (row, born, died,
    source, target, weight, a0, a1, …), parallel ones apart; `row` numbers them in the order in which they came.
    """

    schema: Schema
    named: tuple[bool, ...]
    attributes: tuple[pa.Schema, ...]
    notes: tuple[str, ...] = ()
    base_version: int = 0
    edge_attributes: Mapping[int, pa.Schema] = field(default_factory=dict)
    """By number of the relation: the attributes of its edges, if they have any."""

    @property
    def described_relations(self) -> list[int]:
        """The numbers of the relations whose edges have attributes."""
        return sorted(self.edge_attributes)

    @cached_property
    def type_numbers(self) -> Mapping[str, int]:
        return {node_type: number for number, node_type in enumerate(self.schema.node_types)}

    def ends(self, number: int) -> tuple[int, int]:
        """Return the numbers of the node types that a relation joins."""
        relation = self.schema.relations[number]
        return self.type_numbers[relation.source], self.type_numbers[relation.target]

    @classmethod
    def of(cls, hin: HIN) -> "StoreLayout":
        return cls(
            hin.schema,
            tuple(nodes.names is not None for nodes in hin.nodes.values()),
            tuple(nodes.attributes.schema for nodes in hin.nodes.values()),
            hin.notes,
            edge_attributes={
                number: to_attributes(hin.edge_tables[relation].attributes.slice(0, 0)).schema
                for number, relation in enumerate(hin.schema.relations)
                if relation in hin.edge_tables
            },
        )

    def to_json(self) -> str:
        return json.dumps(
            {
                "node_types": self.schema.node_types,
                "relations": [[r.source, r.name, r.target, r.directed] for r in self.schema.relations],
                "abbreviations": dict(self.schema.abbreviations),
                "named": self.named,
                "attributes": list(map(_schema_text, self.attributes)),
                "notes": self.notes,
                "folded": self.base_version,
                "edge_attributes": {number: _schema_text(schema) for number, schema in self.edge_attributes.items()},
            }
        )

    @classmethod
    def from_json(cls, text: str) -> "StoreLayout":
        content = json.loads(text)
        relations = tuple(Relation(*parts) for parts in content["relations"])
        return cls(
            Schema(tuple(content["node_types"]), relations, content["abbreviations"]),
            tuple(content["named"]),
            tuple(map(_read_schema, content["attributes"])),
            tuple(content["notes"]),
            content["folded"],
            {int(number): _read_schema(schema) for number, schema in content.get("edge_attributes", {}).items()},
        )


def _schema_text(schema: pa.Schema) -> str:
    return b64encode(schema.serialize().to_pybytes()).decode()


def _read_schema(text: str) -> pa.Schema:
    return pa.ipc.read_schema(pa.py_buffer(b64decode(text)))


@dataclass(frozen=True)
class VersionFacts:
    """The number of a version, its counts of nodes and edges, and checksums over both."""

    version: int
    nodes: int
    edges: int
    node_checksum: int
    edge_checksum: int


def run(connection: Any, statement: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
    """Run a statement and return all rows."""
    try:
        rows: list[tuple[Any, ...]] = connection.execute(statement, list(values)).fetchall()
    except RuntimeError as error:
        if "interrupted" in str(error):  # DuckDB's word for Ctrl-C
            raise KeyboardInterrupt from error
        raise
    return rows


def hide_progress_bar(connection: Any) -> None:
    """Turn off the progress bar of DuckDB; in a notebook without ipywidgets it is off, and setting it raises."""
    if run(connection, "SELECT current_setting('enable_progress_bar')") == [(True,)]:
        run(connection, "SET enable_progress_bar = false")


def run_on(connection: Any, given: pa.Table, statement: str) -> None:
    """Run a statement that reads an Arrow table as `given`."""
    connection.register("given", given)
    run(connection, statement)
    connection.unregister("given")


def create_tables(connection: Any, layout: StoreLayout) -> None:
    """Create the tables that every store has."""
    for table, columns in _TABLES.items():
        create_table(connection, table, columns)
    run(connection, "INSERT INTO facts VALUES (?)", [layout.to_json()])


def create_table(connection: Any, table: str, columns: Columns) -> None:
    """Create an empty table."""
    written = ", ".join(f'"{name}" {kind}' for name, kind in columns.items())
    run(connection, f"CREATE TABLE {table} ({written})")


_SQL_TYPES = {
    "integer": "BIGINT",
    "number": "DOUBLE",
    "boolean": "BOOLEAN",
    "text": "VARCHAR",
    "date": "DATE",
    "time": "TIMESTAMP",
}


def attribute_columns(count: int) -> list[str]:
    """Return the names of attribute columns in the database; the layout holds the users' names."""
    return [f"a{number}" for number in range(count)]


def node_table(ids: pa.Array, names: pa.Array | None, attributes: pa.Table, first: int = 0) -> pa.Table:
    """Return nodes of a type as rows of their table, with keys from `first` on."""
    count = len(ids)
    columns = {
        "key": pa.array(np.arange(first, first + count)),
        "born": pa.array(np.zeros(count, dtype=np.int64)),
        "died": pa.nulls(count, pa.int64()),
        "id": ids,
        "name": pa.nulls(count, pa.string()) if names is None else names.cast(pa.string()),
    }
    return pa.table(columns | dict(zip(attribute_columns(attributes.num_columns), attributes.columns, strict=True)))


def edge_row_table(edges: Edges, first: int = 0) -> pa.Table:
    """Return single edges as rows of their table, numbered from `first` on, with attributes as edges keep them."""
    count = len(edges.sources)
    attributes = to_attributes(edges.attributes)
    lost = [name for name in edges.attributes.column_names if name not in attributes.column_names]
    if lost:
        raise WriteError(
            f"the attribute {lost[0]!r} of '{edges.relation}' holds {edges.attributes[lost[0]].type} values, which a "
            f"store cannot keep; leave it out"
        )
    columns = {
        "row": pa.array(np.arange(first, first + count)),
        "source": pa.array(edges.sources, pa.int64()),
        "target": pa.array(edges.targets, pa.int64()),
        "weight": pa.array(np.ones(count) if edges.weights is None else edges.weights, pa.float64()),
    }
    return pa.table(columns | dict(zip(attribute_columns(attributes.num_columns), attributes.columns, strict=True)))


def edge_row_schema(attributes: pa.Schema) -> pa.Schema:
    """Return the columns of `edge_row_table` for edges with these attributes."""
    numbers = [(name, pa.int64()) for name in ("row", "source", "target")]
    kinds = zip(attribute_columns(len(attributes)), attributes.types, strict=True)
    return pa.schema([*numbers, ("weight", pa.float64()), *kinds])


def edge_row_columns(attributes: pa.Schema) -> Columns:
    """Return the columns of the table of the single edges of a relation."""
    kinds = (_SQL_TYPES[kind_of(kind)] for kind in attributes.types)
    own = dict(zip(attribute_columns(len(attributes)), kinds, strict=True))
    return {"row": "BIGINT", **_LIVES, **EDGE_COLUMNS, **own}


def edges_of_rows(relation: Relation, rows: pa.Table, attributes: Sequence[str]) -> Edges:
    """Return rows of `edge_row_table` as edges, with the names of their attributes."""
    sources, targets, weights = (rows[name].to_numpy() for name in EDGE_COLUMNS)
    own = rows.select(rows.column_names[len(EDGE_COLUMNS) + 1 :])
    return Edges(relation, sources, targets, weights, own.rename_columns(list(attributes)))


def insert_edge_rows(connection: Any, number: int, rows: pa.Table, born: int = 0) -> None:
    """Insert single edges of a relation that come with a version."""
    lives = {"born": pa.array(np.full(len(rows), born)), "died": pa.nulls(len(rows), pa.int64())}
    for name, column in lives.items():
        rows = rows.append_column(name, column)
    insert(connection, f"edge_rows_{number}", rows)


def read_edge_rows(connection: Any, number: int, layout: StoreLayout, where: str, values: Sequence[object]) -> pa.Table:
    """Return single edges of a relation in the order in which they came, as `edge_row_table` does."""
    schema = edge_row_schema(layout.edge_attributes[number])
    query = f"SELECT {', '.join(schema.names)} FROM edge_rows_{number} WHERE {where} ORDER BY row"  # noqa: S608
    return as_edge_rows(connection.sql(query, params=list(values)).to_arrow_table(), schema)


def as_edge_rows(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return what the database holds of single edges in the types of `edge_row_table`."""
    columns = [(field.type, to_attribute(table[field.name])) for field in schema]
    return pa.table([column.cast(kind) for kind, column in columns if column is not None], schema=schema)


def read_layout(connection: Any) -> StoreLayout:
    """Read the layout."""
    rows = run(connection, "SELECT content FROM facts")
    if not rows:
        raise SourceError("the database of the store lost its schema; restore the store from a copy")
    try:
        return StoreLayout.from_json(rows[0][0])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, pa.ArrowException) as error:
        raise SourceError(
            f"the schema in the database of the store cannot be read ({first_line(error)}); restore the store from a "
            f"copy"
        ) from error


def write_layout(connection: Any, layout: StoreLayout) -> None:
    """Replace the layout."""
    run(connection, "UPDATE facts SET content = ?", [layout.to_json()])


def read_facts(connection: Any, version: int | None = None) -> VersionFacts:
    """Return the facts of a version, by default the newest; raise for one that is not retained."""
    where, values = ("ORDER BY version DESC LIMIT 1", []) if version is None else ("WHERE version = ?", [version])
    fits = version is None or abs(version) < 2**63  # in a BIGINT
    rows = run(connection, f"SELECT * FROM versions {where}", values) if fits else []  # noqa: S608
    if not rows:
        ((oldest, newest),) = run(connection, "SELECT min(version), max(version) FROM versions")
        if newest is None:
            raise SourceError("the database of the store lost its versions; restore the store from a copy")
        raise SourceError(f"version {version} is not kept; the store has versions {oldest} to {newest}")
    return VersionFacts(*(int(value) for value in rows[0]))


def write_facts(connection: Any, *versions: VersionFacts) -> None:
    """Insert the facts of new versions."""
    rows = [(v.version, v.nodes, v.edges, str(v.node_checksum), str(v.edge_checksum)) for v in versions]
    columns = zip(_TABLES["versions"], zip(*rows, strict=True), strict=True)
    insert(connection, "versions", pa.table({name: list(values) for name, values in columns}))


def insert(connection: Any, table: str, rows: pa.Table) -> None:
    """Insert rows into a table with the same columns: few of plain numbers and texts as values, which takes less."""
    if 0 < len(rows) <= ROWS_PER_INSERT and all(kind in _PLAIN_TYPES for kind in rows.schema.types):
        marks = ", ".join([f"({', '.join('?' * rows.num_columns)})"] * len(rows))
        names = ", ".join(f'"{name}"' for name in rows.column_names)
        values = zip(*(column.to_pylist() for column in rows.columns), strict=True)
        run(connection, f"INSERT INTO {table} ({names}) VALUES {marks}", [each for row in values for each in row])  # noqa: S608
    else:
        plain = [column.cast(pa.string()) if column.type == TEXT else column for column in rows.columns]
        given = pa.table(plain, names=rows.column_names)
        run_on(connection, given, f"INSERT INTO {table} BY NAME SELECT * FROM given")  # noqa: S608


_PLAIN_TYPES = {*KINDS.values(), pa.string(), pa.int32()}


def end(connection: Any, table: str, column: str, numbers: Sequence[int], version: int) -> None:
    """Let rows with some numbers in a column end with a version."""
    if not numbers:
        return
    statement = f"UPDATE {table} SET died = {version} WHERE {column} IN"  # noqa: S608
    if len(numbers) <= ROWS_PER_INSERT:
        run(connection, f"{statement} ({', '.join(map(str, numbers))})")
    else:
        run_on(connection, pa.table({"number": np.array(numbers, dtype=np.int64)}), f"{statement} (FROM given)")


def replace_table(connection: Any, table: str, rows: pa.Table) -> None:
    """Create or replace a table, with the columns and rows of an Arrow table."""
    run_on(connection, rows, f"CREATE OR REPLACE TABLE {table} AS SELECT * FROM given")  # noqa: S608


def edge_table(sources: Rows, targets: Rows, weights: Floats) -> pa.Table:
    """Return edges of a relation as rows of their table."""
    return pa.table(dict(zip(EDGE_COLUMNS, (sources, targets, weights), strict=True)))


# ---- Connections ---------------------------------------------------------------------------------
_SETTINGS = {
    "enable_external_access": "false",  # which cannot be turned on again while the file is open
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "python_enable_replacements": "false",  # a view could name variables of this process
}


def duckdb() -> Any:
    """Import DuckDB, which comes with the extra `store`."""
    try:
        import duckdb as library
    except ModuleNotFoundError as error:
        raise MissingExtraError("duckdb", "neupath[store]") from error
    return library


def open_duckdb(path: Path, *, write: bool = False) -> Any:
    """Open a DuckDB file that anyone may have made: no statement reads or writes another file, or loads code."""
    return duckdb().connect(str(path), read_only=not write, config=_SETTINGS)


_CATALOGS = {
    "views": ("view_name", "view"),
    "functions": ("function_name", "macro"),
    "types": ("type_name", "type"),
    "sequences": ("sequence_name", "sequence"),
    "indexes": ("index_name", "index"),
}
"""What no store has: the name of each, and what it is, by the table function of DuckDB that lists it."""


def check_tables(connection: Any) -> None:
    """Raise unless the database holds the tables of its layout, as plain columns, and nothing else.

    A view or a macro would run statements of whoever made the file. The functions that list them are asked in DuckDB's
    own schema, since those of the file go before.
    """
    others = " UNION ALL ".join(
        f"SELECT '{kind}', {name} FROM system.main.duckdb_{catalog}() "  # noqa: S608
        + ("" if catalog in ("sequences", "indexes") else "WHERE NOT internal")
        for catalog, (name, kind) in _CATALOGS.items()
    )
    triggers = "SELECT 'trigger', trigger_name FROM system.main.duckdb_triggers()"
    with suppress(duckdb().CatalogException):  # DuckDB before version 2 has none
        _refuse(run(connection, triggers))
    _refuse(run(connection, others))
    columns = "table_name, column_index, column_name, data_type, column_default, schema_name"
    listed = run(connection, f"SELECT {columns} FROM system.main.duckdb_columns() WHERE NOT internal")  # noqa: S608
    tables: dict[str, dict[str, str]] = {}
    for table, _, column, kind, default, schema in sorted(listed, key=lambda row: row[:2]):
        if default is not None or schema != "main":
            _refuse(
                [("default or generated column" if default is not None else "schema", f"{schema}.{table}.{column}")]
            )
        tables.setdefault(table, {})[column] = kind
    if tables.get("facts") != {"content": "VARCHAR"}:
        raise SourceError("the database of the store lost its schema; restore the store from a copy")
    expected = _expected_tables(read_layout(connection))
    for table in sorted(tables.keys() | expected.keys()):
        wanted, there = expected.get(table), tables.get(table)
        if wanted is None or there is None or list(wanted) != list(there):
            what = "is missing" if there is None else "belongs to no store" if wanted is None else "has other columns"
            raise SourceError(f"the table {table} of the store's database {what}; restore the store from a copy")
        for column, kinds in wanted.items():
            if kinds and there[column] not in kinds:
                raise SourceError(
                    f"the column {column} of the table {table} of the store's database holds {there[column]} instead "
                    f"of {' or '.join(kinds)}; restore the store from a copy"
                )


def _refuse(objects: Sequence[tuple[Any, ...]]) -> None:
    for kind, name in objects:
        raise SourceError(
            f"the database of the store holds the {kind} {name!r}, which neupath never writes; somebody changed the "
            f"file: restore the store from a copy, or import the graph again"
        )


def _expected_tables(layout: StoreLayout) -> dict[str, dict[str, tuple[str, ...]]]:
    """Return the tables of a store, and of each column the types that it may have; none for attributes of nodes."""
    tables = dict(_TABLES) | {f"edges_{number}": EDGE_COLUMNS for number in range(len(layout.schema.relations))}
    for number, attributes in layout.edge_attributes.items():
        tables[f"edge_rows_{number}"] = edge_row_columns(attributes)
    expected: dict[str, dict[str, tuple[str, ...]]] = {
        table: {name: (kind,) for name, kind in columns.items()} for table, columns in tables.items()
    }
    numbers: tuple[str, ...] = ("BIGINT",)
    for number, attributes in enumerate(layout.attributes):
        fixed = {"key": numbers, "born": numbers, "died": numbers, "id": ("BIGINT", "VARCHAR"), "name": ("VARCHAR",)}
        expected[f"nodes_{number}"] = fixed | dict.fromkeys(attribute_columns(len(attributes)), ())
    return expected


def connect(folder: Path, *, write: bool = False) -> Any:
    """Open the database, and wait up to `PATIENCE` seconds for another writer; raise if it lost updates."""
    connection = _open(folder, write)
    try:
        with raising_source_errors(folder):
            _check_acknowledged(folder, read_facts(connection))
    except BaseException:
        connection.close()
        raise
    return connection


_checked: dict[Path, tuple[tuple[int, ...], ...]] = {}
"""The stamps that databases had when this process checked their tables, which takes as long as opening them."""


def _stamp(folder: Path) -> tuple[tuple[int, ...], ...]:
    """Return what changes with every write to a database or its log."""
    stamps = []
    for name in (DATABASE, LOG):
        with suppress(FileNotFoundError):  # there is not always a log
            file = (folder / name).stat()
            stamps.append((file.st_dev, file.st_ino, file.st_size, file.st_mtime_ns, file.st_ctime_ns))
    return tuple(stamps)


def _open(folder: Path, write: bool) -> Any:
    library, path = duckdb(), folder / DATABASE
    if not path.is_file():
        raise SourceError(f"the store {folder} has no {DATABASE}: it is damaged; import it again")
    if write and not (os.access(path, os.W_OK) and os.access(folder, os.W_OK)):
        raise WriteError(f"cannot write to the store {folder}: no permission")
    until = time.monotonic() + PATIENCE
    while True:
        stamp = _stamp(folder)
        try:
            connection = open_duckdb(path, write=write)
            try:
                hide_progress_bar(connection)
                if write:  # DuckDB's own could fail after a commit is durable; see `checkpoint_if_due`
                    run(connection, "SET wal_autocheckpoint = '1TB'")
                    run(connection, "PRAGMA disable_checkpoint_on_shutdown")  # see `Store.close`
                if _checked.get(path.absolute()) != stamp:
                    check_tables(connection)
                    _checked[path.absolute()] = stamp
            except BaseException:
                connection.close()
                raise
            return connection
        except library.Error as error:
            user = _user_of(str(error))
            if user is None:
                advice = _loss_advice(folder) if LOG in str(error) else "restore the store from a copy"
                if isinstance(error, library.OutOfMemoryException):
                    advice = "free some memory, or raise the limit of the process (ulimit -v) if it has one"
                raise SourceError(f"cannot open the store {folder}: {first_line(error)}; {advice}") from error
            if time.monotonic() > until:
                raise SourceError(f"the store {folder} is being written to by {user}") from error
            time.sleep(0.02)


def _user_of(message: str) -> str | None:
    """Return which process has the database open, if the error of DuckDB names one."""
    if "different configuration" in message:
        return "this process, or was to be while it reads; close it there, or use the store that is open"
    if "set lock" not in message:  # "lock" alone is part of "block"
        return None
    return (
        "another process, such as neupath serve --writable; ask that service, or try again when the process has ended"
    )


@contextmanager
def reading(folder: Path) -> Iterator[Any]:
    """Lend a connection that reads one version, whatever is written meanwhile."""
    connection = connect(folder)
    try:
        with raising_source_errors(folder):
            run(connection, "BEGIN TRANSACTION")
            yield connection
    finally:
        connection.close()


@contextmanager
def raising_source_errors(folder: Path) -> Iterator[None]:
    """Raise errors of DuckDB as SourceError."""
    try:
        yield
    except duckdb().Error as error:
        raise SourceError(f"cannot read the store {folder}: {first_line(error)}") from error


@contextmanager
def transaction(connection: Any, folder: Path) -> Iterator[None]:
    """Write all or nothing; the commit is durable."""
    with raising_write_errors(folder):
        run(connection, "BEGIN TRANSACTION")
        yield
        run(connection, "COMMIT")


@contextmanager
def raising_write_errors(folder: Path) -> Iterator[None]:
    """Raise errors of DuckDB and the disk as WriteError."""
    try:
        yield
    except (duckdb().Error, OSError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or first_line(error)
        raise WriteError(f"cannot write to the store {folder}: {reason}; nothing was changed") from error


def checkpoint_if_due(connection: Any, folder: Path) -> None:
    """Move the write-ahead log into the tables when it is long; it is durable either way."""
    try:
        size = (folder / LOG).stat().st_size
    except FileNotFoundError:
        return
    if size > LOG_BYTES:
        with raising_write_errors(folder):
            run(connection, "CHECKPOINT")


# ---- Acknowledged versions -----------------------------------------------------------------------
# DuckDB takes some damage within its log for the end of it, and drops all that follows. The facts of the newest version
# that was acknowledged are therefore also in a file: one line of fixed length, written over the last one after each
# commit. It may lag behind the database but is never ahead of it.
_LINE = 160


def write_acknowledged(folder: Path, facts: VersionFacts) -> None:
    """Write down a version that is committed.

    This waits for no disk, which would take as long as the commit. It starts the writing, and the next commit of the
    database flushes the disk. A killed process loses nothing of it; a power failure may lose the last lines.
    """
    text = " ".join(map(str, vars(facts).values()))
    line = f"{text} {crc32(text.encode()):08x}".ljust(_LINE - 1) + "\n"
    descriptor = os.open(folder / ACKNOWLEDGED, os.O_WRONLY | os.O_CREAT, 0o666)
    try:
        os.write(descriptor, line.encode())  # from the start: the file was opened just now
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)  # starts the writing
    finally:
        os.close(descriptor)


def _read_acknowledged(folder: Path) -> VersionFacts | None:
    """Return the facts of the newest acknowledged version; None for stores from before, and if they are damaged."""
    path = folder / ACKNOWLEDGED
    try:
        text, _, checksum = path.read_bytes()[:_LINE].decode().strip().rpartition(" ")
        if f"{crc32(text.encode()):08x}" == checksum:
            return VersionFacts(*map(int, text.split()))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError):
        pass
    _logger.warning("%s is damaged, and cannot tell whether updates are lost; the next update writes it again", path)
    return None


def _check_acknowledged(folder: Path, newest: VersionFacts) -> None:
    """Raise if the newest version of the database is older than the one that was acknowledged, or another."""
    acknowledged = _read_acknowledged(folder)
    if acknowledged is None:
        return
    if newest.version < acknowledged.version:
        raise SourceError(
            f"the store {folder} lost updates: version {acknowledged.version} was acknowledged, and its database ends "
            f"at version {newest.version}; {_loss_advice(folder)}"
        )
    if newest.version == acknowledged.version and newest != acknowledged:
        raise SourceError(
            f"version {newest.version} in the database of the store {folder} is not the one that was acknowledged; "
            f"{_loss_advice(folder)}"
        )


def _loss_advice(folder: Path) -> str:
    return f"restore the store from a copy, or go on with what is left of it by 'neupath check {folder} --accept-loss'"


_DAMAGED_ENTRY = re.compile(r"entry at byte position (\d+)")  # how DuckDB says from where on it cannot read its log


def accept_loss(folder: Path) -> None:
    """Take what the database still has for the newest version, without the part of its log that cannot be read."""
    acknowledged = _read_acknowledged(folder)
    with raising_write_errors(folder):
        connection = _open_up_to_damage(folder)
        try:
            run(connection, "CHECKPOINT")  # nothing may follow a damaged place in the log
            newest = read_facts(connection)
            write_acknowledged(folder, newest)
        finally:
            connection.close()
    if acknowledged is not None and newest.version < acknowledged.version:
        lost = f"{newest.version + 1} to {acknowledged.version}"
        _logger.warning("versions %s of the store %s were acknowledged and are lost", lost, folder)


def _open_up_to_damage(folder: Path) -> Any:
    """Open the database for writing; cut its log where it cannot be read, and keep a copy of the whole log."""
    log = folder / LOG
    try:
        return _open(folder, write=True)
    except SourceError as error:
        if LOG not in str(error):
            raise
        damage = _DAMAGED_ENTRY.search(str(error))
    shutil.copyfile(log, folder / f"{LOG}.damaged")
    if damage is not None:
        os.truncate(log, int(damage[1]))
        with suppress(SourceError):
            return _open(folder, write=True)
    log.unlink()
    return _open(folder, write=True)

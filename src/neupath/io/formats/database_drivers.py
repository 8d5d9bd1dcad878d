"""Open databases and read their tables: SQLite, DuckDB, PostgreSQL, and what else SQLAlchemy connects to.

Every database is read in one read-only transaction. Errors of drivers become sentences without the password.
"""

# ruff: noqa: S608  names in statements are those that the database lists, and are quoted

import re
import warnings
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from neupath._runtime.progress import Progress
from neupath.errors import MissingExtraError, SourceError, did_you_mean, hide_password, listed
from neupath.store.database import open_duckdb

if TYPE_CHECKING:
    import sqlite3

# ---- Which sources are databases -----------------------------------------------------------------
_URL = re.compile(r"(?P<kind>[A-Za-z][A-Za-z0-9]*)(?:\+\w+)?://")
_NOT_DATABASES = ("s3", "gs", "gcs", "http", "https", "ftp", "file", "hdfs", "abfs", "abfss", "az")
DATABASE_SUFFIXES = (".db", ".sqlite", ".sqlite3", ".duckdb")
_SQLITE_MAGIC, _DUCKDB_MAGIC = b"SQLite format 3\0", b"DUCK"


def is_database_url(source: object) -> bool:
    """Whether a source is the address of a database, such as postgresql://host/shop.

    >>> [is_database_url(source) for source in ("sqlite:///shop.db", "postgresql+psycopg://host/shop", "s3://b", "a/b")]
    [True, True, False, False]
    """
    match = _URL.match(source) if isinstance(source, str) else None
    return match is not None and match["kind"].lower() not in _NOT_DATABASES


def database_format(path: Path) -> str | None:
    """Return "sqlite" or "duckdb" for a database file, by its first bytes, or None."""
    if not path.is_file():
        return None
    with path.open("rb") as stream:
        start = stream.read(16)
    if start == _SQLITE_MAGIC:
        return "sqlite"
    if start[8:12] == _DUCKDB_MAGIC:
        return "duckdb"
    if path.suffix.lower() in DATABASE_SUFFIXES:
        what = "is not a SQLite or DuckDB database" if start else "is empty"
        raise SourceError(f"{path} is named {path.suffix} but {what}; give the file of a database")
    return None


# ---- Tables and their rows -----------------------------------------------------------------------
_MEASURES = re.compile(
    r"((big|small|tiny|medium|huge|u|unsigned )*int|real|float|double|num|dec|bool|bit|date|time|interval|year|money)",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class ForeignKey:
    """Columns whose values are those of some columns of another table, its key by default."""

    columns: tuple[str, ...]
    table: str = ""
    referred: tuple[str, ...] = ()


@dataclass(frozen=True)
class DatabaseTable:
    """A table or view: its columns with their types, its key and its foreign keys."""

    name: str
    columns: Mapping[str, str]
    """Column -> its type as the database writes it."""
    key: tuple[str, ...] = ()
    foreign_keys: tuple[ForeignKey, ...] = ()
    is_view: bool = False
    computed: tuple[str, ...] = ()
    """Columns that are left out, since the database computes them as they are read."""

    def is_measure(self, column: str) -> bool:
        """Whether a column is declared to hold numbers, truth values or times."""
        return bool(_MEASURES.match(self.columns[column]))


class Database(ABC):
    """An open database, in a read-only transaction; `title` is what messages call it, without the password."""

    def __init__(self, title: str, connection: Any, schema: str) -> None:
        self.title = title
        self._connection = connection
        self._schema = schema

    def tables(self) -> list[DatabaseTable]:
        """List the tables and views, in order of their names, with foreign keys in order of their columns."""
        tables = {table.name: table for table in self._tables()}
        return [replace(each, foreign_keys=_complete_keys(each, tables)) for _, each in sorted(tables.items())]

    def read(self, table: DatabaseTable, columns: Sequence[str], ids: set[str], progress: Progress) -> pa.Table:
        """Read some columns of a table: integers, floats, truth values, dates, timestamps, and all else as text.

        A decimal becomes a float, which may round it, but one of `ids` an integer or a text with all its digits.
        """
        batches: list[pa.RecordBatch] = []
        done = 0
        for batch in self._batches(table, columns, ids):
            batches.append(batch)
            done += len(batch)
            progress(f"reading {table.name}", done, None)
        rows = {column: _join_batches([batch[column] for batch in batches]) for column in columns}
        return pa.table({c: _as_declared(rows[c], table.columns[c].upper(), c in ids) for c in columns})

    def other_schemas(self) -> str:
        """Return the end of a sentence that names the other schemas."""
        names = [name for name in self.schemas() if name not in (self._schema, "information_schema")]
        return f" in this schema; choose one of {listed(names)} with ‹schema›" if names else ""

    @abstractmethod
    def schemas(self) -> list[str]:
        """List the schemas."""

    @abstractmethod
    def _tables(self) -> Iterable[DatabaseTable]:
        """List the tables and views as the database declares them."""

    @abstractmethod
    def _batches(self, table: DatabaseTable, columns: Sequence[str], ids: set[str]) -> Iterator[pa.RecordBatch]:
        """Read some columns of a table batch by batch, whose types may differ."""


def _complete_keys(table: DatabaseTable, tables: Mapping[str, DatabaseTable]) -> tuple[ForeignKey, ...]:
    """Return the foreign keys of a table, spelled as the tables are: in SQLite case makes no difference."""
    keys = []
    for fk in table.foreign_keys:
        (name,) = as_spelled([fk.table], tables)
        other = tables.get(name)
        referred = as_spelled(fk.referred or other.key, other.columns) if other else fk.referred
        keys.append(ForeignKey(as_spelled(fk.columns, table.columns), name, referred))
    places = {column: place for place, column in enumerate(table.columns)}
    keys = [fk for fk in dict.fromkeys(keys) if places.keys() >= {*fk.columns}]
    return tuple(sorted(keys, key=lambda fk: places[fk.columns[0]]))


def as_spelled(names: Iterable[str], known: Collection[str]) -> tuple[str, ...]:
    """Return names as they are among the known ones, which they may differ from by case; others stay as they are."""
    spelled = {name.lower(): name for name in known}
    return tuple(name if name in known else spelled.get(name.lower(), name) for name in names)


# ---- Opening a database --------------------------------------------------------------------------
@contextmanager
def open_database(source: str | Path, schema: str | None) -> Iterator[Database]:
    """Open a database by its URL or its file; errors of its driver become sentences without the password."""
    kind, path = _file_of(source)
    title = hide_password(str(source)) if path is None else str(path)
    with _driver_errors(title, source):
        if path is None:
            opened = _open_server(str(source), schema, title)
        else:
            opened = _open_sqlite(path) if kind == "sqlite" else _open_duckdb(path, schema)
        with opened as database:
            if schema is not None and schema not in (schemas := database.schemas()):
                raise SourceError(
                    f"{title} has no schema {schema!r} (it has {listed(schemas)}){did_you_mean(schema, schemas)}",
                    parameter="schema",
                    allowed=schemas,
                )
            yield database


def _file_of(source: str | Path) -> tuple[str | None, Path | None]:
    """Return the kind and the file of a database that is a file."""
    if not is_database_url(source):
        return database_format(Path(source)), Path(source)
    kind, _, name = str(source).partition("://")
    kind = kind.partition("+")[0].lower()
    if kind not in ("sqlite", "duckdb"):
        return None, None
    if not name.startswith("/") or name in ("/", "/:memory:") or "?" in name:
        raise SourceError(
            f"{source} is no address of a file; write {kind}:///shop.db for a file of this folder, "
            f"{kind}:////data/shop.db for any other, and no parameters behind a question mark"
        )
    path = Path(unquote(name[1:]))
    if not path.is_file():
        raise SourceError(f"no such file: {path}" if not path.exists() else f"{path} is not a file")
    actual = database_format(path)
    if actual != kind:
        raise SourceError(f"{path} is not a {kind} database{f', but a {actual} one' if actual else ''}")
    return kind, path


_DRIVERS = ("sqlite3", "duckdb", "_duckdb", "sqlalchemy", "psycopg", "pyarrow")


@contextmanager
def _driver_errors(title: str, source: str | Path) -> Iterator[None]:
    """Turn errors of a driver into one sentence; their chain is cut, because it may hold the password."""
    try:
        yield
    except Exception as error:
        if getattr(error, "sqlite_errorcode", None) == _SQLITE_INTERRUPT:
            raise KeyboardInterrupt from None
        if type(error).__module__.partition(".")[0] not in _DRIVERS and not isinstance(error, OSError | UnicodeError):
            raise
        raise SourceError(f"cannot read {title}: {_reason(error, source)}") from None


def _reason(error: Exception, source: str | Path) -> str:
    """Return the first line of a driver's message without the password, as the URL writes it or decoded."""
    text = str(getattr(error, "orig", None) or getattr(error, "strerror", None) or error)
    line = next((line.strip() for line in text.splitlines() if line.strip()), type(error).__name__)
    written = re.findall(r"://[^:/?#]*:(.*)@", str(source)) + re.findall(r"[?&]\w*pass\w*=([^&]*)", str(source))
    for password in sorted({*written, *map(unquote, written)} - {""}, key=len, reverse=True):
        line = line.replace(password, "***")
    return hide_password(line)


# ---- Values of drivers as Arrow columns ----------------------------------------------------------
_BATCH_ROWS, _BLOCK_BYTES = 1 << 16, 1 << 20


def _to_batch(columns: Sequence[str], rows: Sequence[Sequence[object]], ids: set[str]) -> pa.RecordBatch:
    """Return rows of Python values as a batch."""
    values = zip(columns, zip(*rows, strict=True), strict=True)
    return pa.record_batch({column: _to_array(column_values, column in ids) for column, column_values in values})


def _to_array(values: Sequence[object], is_id: bool) -> pa.Array:
    """Return Python values as numbers, truth values or times, or else, as where they are of several types, as text."""
    with suppress(pa.ArrowException, OverflowError, TypeError):
        array = pa.array(values)
        kind = array.type
        if pa.types.is_primitive(kind) or pa.types.is_string(kind) or pa.types.is_null(kind):
            return array
        if pa.types.is_decimal(kind) and not is_id:
            if kind.scale == 0 and kind.precision <= 18:
                return array.cast(pa.int64())
            return pa.array([None if value is None else float(value) for value in array.to_pylist()], pa.float64())
    return pa.array(list(map(_text, values)), pa.string())


def _text(value: object) -> str | None:
    if value is None:
        return None
    if isinstance(value, Decimal):
        return f"{value:f}"  # without an exponent
    return value.hex() if isinstance(value, bytes | memoryview) else str(value)


def _join_batches(parts: Sequence[pa.Array]) -> pa.ChunkedArray:
    """Join the arrays of a column, whose types may differ from batch to batch."""
    types = {part.type for part in parts if not pa.types.is_null(part.type)}
    if len(types) > 1:
        with suppress(pa.ArrowInvalid):  # integers that no float can hold
            if types == {pa.int64(), pa.float64()}:
                return pa.chunked_array([part.cast(pa.float64()) for part in parts])
        return pa.chunked_array([pa.array(list(map(_text, part.to_pylist())), pa.string()) for part in parts])
    kind = types.pop() if types else pa.string()
    return pa.chunked_array([part.cast(kind) for part in parts], kind)


def _as_declared(column: pa.ChunkedArray, kind: str, is_id: bool) -> pa.ChunkedArray:
    """Return truth values, dates, timestamps and ids as what they are declared, where they came as integers or text."""
    if kind.startswith("BOOL") and pa.types.is_integer(column.type):
        is_truth = pc.all(pc.is_in(column.drop_null(), pa.array([0, 1])), min_count=0).as_py()
        return column.cast(pa.bool_()) if is_truth else column
    if not pa.types.is_string(column.type):
        return column
    if is_id and kind.startswith(("NUM", "DEC")):  # decimals that are equal give the same text
        whole = pc.replace_substring_regex(column, r"^(-?\d+)\.0*$", r"\1")
        column, wanted = pc.replace_substring_regex(whole, r"^(-?\d+\.\d*[1-9])0+$", r"\1"), pa.int64()
    elif kind == "DATE":
        wanted = pa.date32()
    else:
        wanted = pa.timestamp("us") if kind.startswith(("TIMESTAMP", "DATETIME")) else pa.string()
    with suppress(pa.ArrowInvalid):  # such as a fraction, infinity, or more digits than an integer has
        return column.cast(wanted)
    return column


def _quoted(*names: str) -> str:
    return ".".join('"' + name.replace('"', '""') + '"' for name in names)


# ---- SQLite --------------------------------------------------------------------------------------
_SQLITE_INTERRUPT = 9
_LONGEST_VALUE = 1 << 24
"""Bytes of the longest text or blob that is read: as many as the characters of the longest line of a table."""
_STEPS = 100_000
"""Steps of SQLite between two looks for an interrupt."""


@contextmanager
def _open_sqlite(path: Path) -> Iterator[Database]:
    import sqlite3

    with closing(_connect_sqlite(path)) as connection:
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST_VALUE)
        connection.set_progress_handler(lambda: 0, _STEPS)  # Python code, so that Ctrl-C interrupts a statement
        for pragma in ("query_only = 1", "trusted_schema = 0", "cell_size_check = 1"):
            connection.execute(f"PRAGMA {pragma}")
        connection.execute("BEGIN")
        ((verdict, *_), *_) = connection.execute("PRAGMA quick_check(1)").fetchall()
        if verdict != "ok":
            reason = " ".join(str(verdict).split())
            raise SourceError(f"{path} is damaged: {reason}; restore it, or save what is left by sqlite3's .recover")
        yield _SQLite(str(path), connection, "main")


def _connect_sqlite(path: Path) -> "sqlite3.Connection":
    """Open a file read-only; one with a write-ahead log in a folder that cannot be written needs `immutable`."""
    import sqlite3

    address = f"file:{quote(str(path.resolve()))}?mode=ro"
    connection = sqlite3.connect(address, uri=True, isolation_level=None)
    try:
        connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchall()
    except sqlite3.OperationalError:
        connection.close()
        log = path.resolve().with_name(f"{path.resolve().name}-wal")
        if log.exists() and log.stat().st_size:
            raise
        connection = sqlite3.connect(f"{address}&immutable=1", uri=True, isolation_level=None)
    return connection


class _SQLite(Database):
    """A SQLite file."""

    def schemas(self) -> list[str]:
        return ["main"]

    def _tables(self) -> Iterator[DatabaseTable]:
        listing = self._rows(
            "SELECT name, type, sql FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite\\_%' "
            "ESCAPE '\\'"
        )
        indexes = [name for name, _, sql in listing if re.match(r"\s*create\s+virtual", sql or "", re.IGNORECASE)]
        for name, kind, _ in listing:
            # the tables of a full-text or spatial index hold its own data
            if name in indexes or any(name.startswith(f"{index}_") for index in indexes):
                continue
            columns = self._rows(f"PRAGMA table_xinfo({_quoted(name)})")
            # a virtual generated column (2) is computed as it is read, and may make gigabytes of nothing
            kinds = {column: declared for _, column, declared, *_, hidden in columns if hidden not in (1, 2)}
            computed = [column for _, column, *_, hidden in columns if hidden == 2]
            key = [column for _, column, *_, place, _ in sorted(columns, key=lambda row: row[5]) if place]
            foreign = []
            parts = self._rows(f"PRAGMA foreign_key_list({_quoted(name)})")
            for _, group in groupby(sorted(parts, key=lambda part: part[:2]), key=lambda part: part[0]):
                _, _, (table, *_), own, referred, *_ = zip(*group, strict=True)
                foreign.append(ForeignKey(own, table, () if None in referred else referred))
            yield DatabaseTable(name, kinds, tuple(key), tuple(foreign), kind == "view", tuple(computed))

    def _rows(self, statement: str) -> list[tuple[Any, ...]]:
        rows: list[tuple[Any, ...]] = self._connection.execute(statement).fetchall()
        return rows

    def _batches(self, table: DatabaseTable, columns: Sequence[str], ids: set[str]) -> Iterator[pa.RecordBatch]:
        cursor = self._connection.execute(f"SELECT {', '.join(map(_quoted, columns))} FROM {_quoted(table.name)}")
        while rows := cursor.fetchmany(_BATCH_ROWS):
            yield _to_batch(columns, rows, ids)


# ---- DuckDB --------------------------------------------------------------------------------------
_DUCKDB_TYPES = r"U?(BIG|SMALL|TINY)INT|U?INTEGER|DOUBLE|FLOAT|BOOLEAN|VARCHAR|DATE|TIMESTAMP"
"""Types that Arrow holds as they are; others are read as text."""


@contextmanager
def _open_duckdb(path: Path, schema: str | None) -> Iterator[Database]:
    with closing(open_duckdb(path)) as connection:
        connection.execute("BEGIN TRANSACTION READ ONLY")
        yield _DuckDB(str(path), connection, schema or "main")


class _DuckDB(Database):
    """A DuckDB file."""

    def schemas(self) -> list[str]:
        query = "SELECT schema_name FROM duckdb_schemas() WHERE NOT internal ORDER BY schema_name"
        return list(dict.fromkeys(["main", *(name for (name,) in self._connection.execute(query).fetchall())]))

    def _tables(self) -> Iterator[DatabaseTable]:
        columns: dict[str, dict[str, str]] = {}
        for table, column, kind in self._catalog("columns", "table_name, column_name, data_type", "column_index"):
            columns.setdefault(table, {})[column] = kind
        what = "table_name, constraint_type, constraint_column_names, referenced_table, referenced_column_names"
        constraints = self._catalog("constraints", what, "constraint_index")
        views = {name for (name,) in self._catalog("views", "view_name", "view_name")}
        for name, kinds in columns.items():
            own = [row[1:] for row in constraints if row[0] == name]
            key = next((tuple(names) for kind, names, *_ in own if kind == "PRIMARY KEY"), ())
            foreign = [ForeignKey(tuple(r[1]), r[2], tuple(r[3])) for r in own if r[0] == "FOREIGN KEY" and r[2]]
            yield DatabaseTable(name, kinds, key, tuple(foreign), name in views)

    def _catalog(self, what: str, columns: str, order: str) -> list[tuple[Any, ...]]:
        query = f"SELECT {columns} FROM duckdb_{what}() WHERE schema_name = ? AND database_name = current_database()"
        rows: list[tuple[Any, ...]] = self._connection.execute(f"{query} ORDER BY {order}", [self._schema]).fetchall()
        return rows

    def read(self, *arguments: Any) -> pa.Table:
        with ThreadPoolExecutor(1) as pool:
            rows = pool.submit(super().read, *arguments)
            try:
                while not rows.done():  # in turns: Polars has waits restarted after a signal, so Ctrl-C ends none
                    wait([rows], timeout=0.1)
                return rows.result()
            except KeyboardInterrupt:  # in the thread of a statement it is noticed late
                while not rows.done():
                    self._connection.interrupt()  # without effect before the statement runs
                    wait([rows], timeout=0.1)
                raise

    def _batches(self, table: DatabaseTable, columns: Sequence[str], ids: set[str]) -> Iterator[pa.RecordBatch]:
        chosen = [
            _duckdb_expression(table.columns[column].upper(), _quoted(column), column in ids) for column in columns
        ]
        names = [f"{expression} AS {_quoted(column)}" for expression, column in zip(chosen, columns, strict=True)]
        statement = f"SELECT {', '.join(names)} FROM {_quoted(self._schema, table.name)}"
        reader = self._connection.sql(statement).to_arrow_reader(_BATCH_ROWS)
        yield pa.RecordBatch.from_pylist([], reader.schema)
        yield from reader


def _duckdb_expression(kind: str, column: str, is_id: bool) -> str:
    """Return a column as what it is read as: numbers, truth values, dates, timestamps, and all else as text."""
    if kind == "BLOB":
        return f"lower(hex({column}))"
    if decimal := re.fullmatch(r"DECIMAL\((\d+),(\d+)\)", kind):
        is_integer = decimal[2] == "0" and int(decimal[1]) <= 18
        return f"{column}::{'BIGINT' if is_integer else 'VARCHAR' if is_id else 'DOUBLE'}"
    return column if re.fullmatch(_DUCKDB_TYPES, kind) else f"{column}::VARCHAR"


# ---- PostgreSQL and other servers, by SQLAlchemy -------------------------------------------------
_WELL_FORMED = re.compile(r"\w+(\+\w+)?://([^\s:/?#@]*(:[^\s:/?#@]*)?@)?[^\s@?#]*(\?[^\s@]*)?$")
_PACKAGES = {"MySQLdb": "mysqlclient", "psycopg2": "psycopg2-binary", "psycopg": "neupath[io]"}
"""Modules that come in a package of another name."""


@contextmanager
def _open_server(url: str, schema: str | None, title: str) -> Iterator[Database]:
    try:
        import sqlalchemy as sa
    except ModuleNotFoundError as error:
        raise MissingExtraError("SQLAlchemy", "neupath[io]") from error
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sa.exc.SAWarning)  # about types that are read as text
        with _connect_server(url, title) as connection:
            dialect = connection.dialect
            postgres = dialect.name == "postgresql"
            options: dict[str, Any] = {"postgresql_readonly": True} if postgres else {}
            with suppress(NotImplementedError):
                if "REPEATABLE READ" in dialect.get_isolation_level_values(connection.connection.dbapi_connection):
                    options["isolation_level"] = "REPEATABLE READ"  # one snapshot for all tables
            kind = _PostgreSQL if postgres and dialect.driver == "psycopg" else _Server
            try:
                yield kind(title, connection.execution_options(**options), schema)
                connection.rollback()
            except BaseException:
                with suppress(Exception):  # a statement may still run, and the connection is of no use until it ends
                    connection.connection.dbapi_connection.cancel()
                connection.invalidate()
                raise


def _connect_server(url: str, title: str) -> Any:
    """Connect to a server by SQLAlchemy; postgresql:// without a driver means psycopg."""
    import sqlalchemy as sa

    if not _WELL_FORMED.match(url):
        raise SourceError(
            "the URL of the database is not well formed; it is DATABASE://USER:PASSWORD@HOST:PORT/NAME, with %40 for "
            "an @ in the password, %2F for a /, %3A for a : and %20 for a space"
        )
    try:
        parsed = sa.engine.make_url(re.sub(r"^postgres(ql)?://", "postgresql+psycopg://", url))
        return sa.create_engine(parsed, poolclass=sa.pool.NullPool).connect()
    except ModuleNotFoundError as error:
        module = str(error.name)
        raise MissingExtraError(module, _PACKAGES.get(module, module)) from None
    except sa.exc.NoSuchModuleError:
        raise SourceError(
            f"SQLAlchemy knows no database {url.partition(':')[0]!r}, which {title} begins with; URLs begin with "
            f"postgresql://, sqlite:///, duckdb:/// or the name of another database whose driver is installed"
        ) from None
    except (sa.exc.SQLAlchemyError, OSError, ValueError) as error:
        raise SourceError(
            f"cannot open {title}: {_reason(error, url)}; check host, port, database, user and password"
        ) from None


class _Server(Database):
    """A database that SQLAlchemy connects to; rows are streamed."""

    def __init__(self, title: str, connection: Any, schema: str | None) -> None:
        import sqlalchemy as sa

        self._inspector = sa.inspect(connection)
        super().__init__(title, connection, schema or self._inspector.default_schema_name)

    def schemas(self) -> list[str]:
        return list(self._inspector.get_schema_names())

    def _tables(self) -> Iterator[DatabaseTable]:
        from sqlalchemy.engine.reflection import ObjectKind

        options = {"schema": self._schema, "kind": ObjectKind.ANY}
        keys = self._inspector.get_multi_pk_constraint(**options)
        foreign = self._inspector.get_multi_foreign_keys(**options)
        names = set(self._inspector.get_table_names(schema=self._schema))
        for place, columns in self._inspector.get_multi_columns(**options).items():
            name = place[1]
            kinds = {column["name"]: str(column["type"]) for column in columns}
            key = (keys.get(place) or {}).get("constrained_columns") or ()
            found = map(self._foreign_key, foreign.get(place, ()))
            yield DatabaseTable(name, kinds, tuple(key), tuple(found), name not in names)

    def _foreign_key(self, found: Mapping[str, Any]) -> ForeignKey:
        schema, table = found.get("referred_schema"), found["referred_table"]
        elsewhere = schema is not None and schema != self._schema
        columns, referred = tuple(found["constrained_columns"]), tuple(found["referred_columns"])
        return ForeignKey(columns, f"{schema}.{table}" if elsewhere else table, referred)

    def _batches(self, table: DatabaseTable, columns: Sequence[str], ids: set[str]) -> Iterator[pa.RecordBatch]:
        import sqlalchemy as sa

        source = sa.table(table.name, *map(sa.column, columns), schema=self._schema)
        streamed = self._connection.execution_options(stream_results=True, yield_per=_BATCH_ROWS)
        for rows in streamed.execute(sa.select(*source.columns)).partitions():
            yield _to_batch(columns, rows, ids)


_POSTGRESQL_SETTINGS = (
    "datestyle = 'ISO'", "client_encoding = 'UTF8'", "extra_float_digits = 1", "timezone = 'UTC'",
    "synchronize_seqscans = off",  # a large table that others read, too, comes in the same order
)  # fmt: skip
_COPIED_TYPES = (
    (r"INTEGER|BIGINT|SMALLINT|NUMERIC\((\d|1[0-8]), 0\)", "{}", pa.int64()),
    (r"(NUMERIC|FLOAT|DOUBLE PRECISION|REAL)(\(.*\))?", "{}", pa.float64()),
    (r"BOOLEAN", "{}", pa.bool_()),
    (r"BYTEA", "encode({}, 'hex')", pa.string()),
    (r"TIMESTAMP.*WITH TIME ZONE", "({} AT TIME ZONE 'UTC')::text", pa.string()),
    (r".*", "{}::text", pa.string()),
)
"""A type of PostgreSQL, how COPY writes its values, and as what they are parsed; the first that fits holds."""


class _PostgreSQL(_Server):
    """A PostgreSQL server; rows come as CSV by COPY, which Arrow parses much faster than Python takes tuples."""

    def __init__(self, title: str, connection: Any, schema: str | None) -> None:
        super().__init__(title, connection, schema)
        for setting in _POSTGRESQL_SETTINGS:
            connection.exec_driver_sql(f"SET LOCAL {setting}")
        query = (
            "SELECT c.relname, c.relkind, c.relispartition FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n "
            "ON n.oid = c.relnamespace WHERE n.nspname = %(schema)s"
        )
        rows = connection.exec_driver_sql(query, {"schema": self._schema}).fetchall()
        self._parts = {name for name, _, is_part in rows if is_part}
        self._plain = {name for name, kind, _ in rows if kind == "r"}

    def _tables(self) -> Iterator[DatabaseTable]:
        """List the tables without the partitions of others, which hold the same rows, nor references to these."""
        for table in super()._tables():
            if table.name not in self._parts:
                yield replace(table, foreign_keys=tuple(fk for fk in table.foreign_keys if fk.table not in self._parts))

    def _batches(self, table: DatabaseTable, columns: Sequence[str], ids: set[str]) -> Iterator[pa.RecordBatch]:
        chosen, types = [], {}
        for column in columns:
            kind = table.columns[column].upper()
            written, parsed = next(rule for pattern, *rule in _COPIED_TYPES if re.fullmatch(pattern, kind))
            is_exact = column in ids and kind.startswith("NUMERIC") and pa.types.is_floating(parsed)
            chosen.append(written.format(_quoted(column)))
            types[column] = pa.string() if is_exact else parsed
        # without ONLY the rows of tables that inherit from this one would come, too
        place = f"{'ONLY ' if table.name in self._plain else ''}{_quoted(self._schema, table.name)}"
        statement = f"COPY (SELECT {', '.join(chosen)} FROM {place}) TO STDOUT (FORMAT csv, ENCODING 'UTF8')"
        yield pa.RecordBatch.from_pylist([], pa.schema(list(types.items())))
        cursor = self._connection.connection.dbapi_connection.cursor()
        with cursor, cursor.copy(statement) as copy:
            for block in _blocks(copy):
                yield from _parse_csv(block, types).to_batches()


def _blocks(copy: Iterable[bytes]) -> Iterator[bytearray]:
    """Collect the rows that COPY sends, one at a time, into blocks of whole rows.

    They are copied at once, because psycopg gives views of its buffers, and many of these at a time are slow.
    """
    block = bytearray()
    for row in copy:
        block += row
        if len(block) >= _BLOCK_BYTES:
            yield block
            block = bytearray()
    if block:
        yield block


def _parse_csv(content: bytearray, types: Mapping[str, pa.DataType]) -> pa.Table:
    """Parse PostgreSQL's CSV: an empty cell is null, and a quoted empty one an empty text."""
    return pa.csv.read_csv(
        pa.BufferReader(content),
        read_options=pa.csv.ReadOptions(column_names=list(types)),
        parse_options=pa.csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False),
        convert_options=pa.csv.ConvertOptions(
            column_types=dict(types), null_values=[""], true_values=["t"], false_values=["f"],
            strings_can_be_null=True, quoted_strings_can_be_null=False,
        ),
    )  # fmt: skip

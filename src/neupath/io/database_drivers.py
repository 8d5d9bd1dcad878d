"""Open databases and read their tables: SQLite, DuckDB, PostgreSQL, and what else SQLAlchemy connects to.

`Database` is what each of them offers: its tables with their keys, and the rows of some columns. Every database is read
in one read-only transaction. Errors of drivers become sentences without the password.
"""

# ruff: noqa: S608  names in statements are those that the database lists, and are quoted

import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast
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


# ---- Tables, keys and foreign keys ---------------------------------------------------------------
_MEASURES = re.compile(
    r"((big|small|tiny|medium|huge|u|unsigned )*int|real|float|double|num|dec|bool|bit|date|time|interval|year|money)",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class ForeignKey:
    """Columns whose values are those of some columns of another table, its key by default."""

    columns: tuple[str, ...]
    table: str
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
    id_columns: frozenset[str] = frozenset()
    """Columns that are read as ids: a decimal with all its digits, where that of an attribute may become a float."""
    computed: tuple[str, ...] = ()
    """Columns that are left out, since the database computes them as they are read."""

    def is_measure(self, column: str) -> bool:
        """Whether a column is declared to hold numbers, truth values or times."""
        return bool(_MEASURES.match(self.columns[column]))


class Database(Protocol):
    """An open database, in a read-only transaction."""

    title: str
    """What to call it in messages; never has the password."""

    def tables(self) -> list[DatabaseTable]:
        """List the tables and views, in order of their names."""

    def other_schemas(self) -> str:
        """Return the end of a sentence that names the other schemas."""

    def read(self, table: DatabaseTable, columns: Sequence[str], progress: Progress) -> pa.Table:
        """Read some columns of a table: integers, floats, truth values, dates, timestamps, and all else as text."""


# ---- Opening a database --------------------------------------------------------------------------
@contextmanager
def open_database(source: str | Path, schema: str | None) -> Iterator[Database]:
    """Open a database by its URL or its file; errors of its driver become sentences without the password."""
    kind, path = _file_of(source)
    title = hide_password(str(source)) if path is None else str(path)
    with _driver_errors(title, source):
        if kind == "sqlite":
            opened: AbstractContextManager[Database] = _open_sqlite(cast(Path, path), schema)
        elif kind == "duckdb":
            opened = _open_duckdb(cast(Path, path), schema)
        else:
            opened = _open_server(str(source), schema, title)
        with opened as database:
            yield database


def _file_of(source: str | Path) -> tuple[str | None, Path | None]:
    """Return the kind and the file of a database that is a file."""
    if not is_database_url(source):
        return database_format(Path(source)), Path(source)
    kind, _, rest = str(source).partition("://")
    kind = kind.partition("+")[0].lower()
    if kind not in ("sqlite", "duckdb"):
        return None, None
    name = unquote(rest.removeprefix("/").partition("?")[0])
    if not rest.startswith("/") or not name or name == ":memory:":
        raise SourceError(
            f"{source} names no file; write {kind}:///shop.db for a file of this folder, {kind}:////data/shop.db for "
            f"any other"
        )
    if "?" in rest:
        raise SourceError(f"{source} has parameters, and a file takes none; leave out what follows the question mark")
    path = Path(name)
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
    """Return the first line of a driver's message without the password."""
    text = str(getattr(error, "orig", None) or getattr(error, "strerror", None) or error)
    line = next((line.strip() for line in text.splitlines() if line.strip()), type(error).__name__)
    for password in _passwords(str(source)):
        line = line.replace(password, "***")
    return hide_password(line)


def _passwords(url: str) -> list[str]:
    """Return the texts of a URL that may be a password, as written and decoded."""
    found = re.findall(r"://[^:/?#]*:(.*)@", url) + re.findall(r"[?&]\w*pass\w*=([^&]*)", url)
    return sorted({*found, *map(unquote, found)} - {""}, key=len, reverse=True)


# ---- Values of drivers as Arrow columns ----------------------------------------------------------
_BATCH_ROWS, _BLOCK_BYTES = 1 << 16, 1 << 20


def _to_table(
    columns: Sequence[str],
    batches: Iterable[Sequence[Sequence[object]]],
    report: Callable[[int], object],
    id_columns: frozenset[str] = frozenset(),
) -> pa.Table:
    """Collect rows of Python values; a column of values of several types becomes text."""
    parts: list[list[pa.Array]] = [[] for _ in columns]
    done = 0
    for batch in batches:
        for column, part, values in zip(columns, parts, zip(*batch, strict=True), strict=True):
            has_decimals = column in id_columns and any(isinstance(value, Decimal) for value in values)
            part.append(_decimal_ids(pa.array(list(map(_text, values)))) if has_decimals else _to_array(values))
        done += len(batch)
        report(done)
    return pa.table({column: _unite(part) for column, part in zip(columns, parts, strict=True)})


def _to_array(values: Sequence[object]) -> pa.Array:
    try:
        array = pa.array(values)
    except (pa.ArrowException, OverflowError, TypeError):
        return pa.array(list(map(_text, values)), pa.string())
    kind = array.type
    if pa.types.is_decimal(kind):
        if kind.scale == 0 and kind.precision <= 18:
            return array.cast(pa.int64())
        return pa.array([None if value is None else float(cast(Decimal, value)) for value in values], pa.float64())
    simple = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)
    if simple or pa.types.is_string(kind) or pa.types.is_temporal(kind) or pa.types.is_null(kind):
        return array
    return pa.array(list(map(_text, values)), pa.string())


def _text(value: object) -> str | None:
    if value is None:
        return None
    if isinstance(value, Decimal):
        return f"{value:f}"  # without an exponent
    return value.hex() if isinstance(value, bytes | memoryview) else str(value)


def _decimal_ids(texts: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Return decimals that are ids as integers if all are, else as texts: numbers that are equal give the same text."""
    shortened = pc.replace_substring_regex(texts, r"(\.\d*?)0+$", r"\1")
    shortened = pc.replace_substring_regex(shortened, r"\.$", "")
    with suppress(pa.ArrowInvalid):  # a fraction, or more digits than an integer has
        return shortened.cast(pa.int64())
    return shortened


def _is_decimal(kind: str) -> bool:
    return kind.startswith(("NUMERIC", "DECIMAL"))


def _with_decimal_ids(rows: pa.Table, table: DatabaseTable) -> pa.Table:
    """Return rows with the decimals that are ids as `_decimal_ids` has them, where they were read as text."""
    for number, field in enumerate(rows.schema):
        if (
            field.name in table.id_columns
            and field.type == pa.string()
            and _is_decimal(table.columns[field.name].upper())
        ):
            rows = rows.set_column(number, field.name, _decimal_ids(rows[field.name]))
    return rows


def _unite(parts: Sequence[pa.Array]) -> pa.ChunkedArray:
    """Join the arrays of a column, whose types may differ from batch to batch."""
    types = {part.type for part in parts if not pa.types.is_null(part.type)}
    if len(types) > 1:
        with suppress(pa.ArrowInvalid):  # integers that no float can hold
            if types == {pa.int64(), pa.float64()}:
                return pa.chunked_array([part.cast(pa.float64()) for part in parts])
        return pa.chunked_array([pa.array(list(map(_text, part.to_pylist())), pa.string()) for part in parts])
    kind = types.pop() if types else pa.string()
    return pa.chunked_array([part.cast(kind) for part in parts], kind)


def _quoted(*names: str) -> str:
    return ".".join('"' + name.replace('"', '""') + '"' for name in names)


# ---- SQLite --------------------------------------------------------------------------------------
_SQLITE_INTERRUPT = 9
_LONGEST_VALUE = 1 << 24
"""Bytes of the longest text or blob that is read: as many as the characters of the longest line of a table."""
_STEPS = 100_000
"""Steps of SQLite between two looks for an interrupt."""


@contextmanager
def _open_sqlite(path: Path, schema: str | None) -> Iterator[Database]:
    if schema not in (None, "main"):
        raise SourceError(f"{path} is a SQLite database, which has no schemas; leave out ‹schema› {schema!r}")
    import sqlite3

    connection = _connect_sqlite(path)
    try:
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST_VALUE)
        connection.set_progress_handler(lambda: 0, _STEPS)  # Python code, so that Ctrl-C interrupts a statement
        for pragma in ("query_only = 1", "trusted_schema = 0", "cell_size_check = 1"):
            connection.execute(f"PRAGMA {pragma}")
        connection.execute("BEGIN")
        ((verdict, *_), *_) = connection.execute("PRAGMA quick_check(1)").fetchall()
        if verdict != "ok":
            reason = " ".join(str(verdict).split())
            raise SourceError(f"{path} is damaged: {reason}; restore it, or save what is left by sqlite3's .recover")
        yield _SQLite(path, connection)
    finally:
        connection.close()


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


class _SQLite:
    """A SQLite file."""

    def __init__(self, path: Path, connection: "sqlite3.Connection") -> None:
        self.title = str(path)
        self._connection = connection

    def tables(self) -> list[DatabaseTable]:
        listing = self._connection.execute(
            "SELECT type, name, sql FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite\\_%' "
            "ESCAPE '\\' ORDER BY name"
        ).fetchall()
        virtual = [name for _, name, sql in listing if re.match(r"\s*create\s+virtual", sql or "", re.IGNORECASE)]
        # the tables of a full-text or spatial index hold its own data
        shadows = {name for _, name, _ in listing for index in virtual if name.startswith(f"{index}_")}
        names = {name.lower(): name for _, name, _ in listing}
        return [
            self._describe(name, kind == "view", names)
            for kind, name, _ in listing
            if name not in virtual and name not in shadows
        ]

    def _describe(self, name: str, is_view: bool, names: Mapping[str, str]) -> DatabaseTable:
        columns = self._pragma("table_xinfo", name)
        # a virtual generated column (2) is computed as it is read, and may make gigabytes of nothing
        kinds = {column: str(kind) for _, column, kind, _, _, _, hidden in columns if hidden not in (1, 2)}
        computed = tuple(column for _, column, *_, hidden in columns if hidden == 2)
        key = tuple(row[1] for row in sorted((row for row in columns if row[5]), key=lambda row: row[5]))
        foreign: dict[int, list[tuple[Any, ...]]] = {}
        for row in self._pragma("foreign_key_list", name):
            foreign.setdefault(row[0], []).append(row)
        keys = [self._foreign_key(parts, kinds, names) for parts in foreign.values()]
        own = [fk for fk in keys if kinds.keys() >= {*fk.columns}]
        return DatabaseTable(name, kinds, key, _in_column_order(own, kinds), is_view, computed=computed)

    def _foreign_key(
        self, parts: Sequence[tuple[Any, ...]], kinds: Mapping[str, str], names: Mapping[str, str]
    ) -> ForeignKey:
        """Read the parts of a foreign key; SQLite keeps the spelling of the statement, whatever the tables have."""
        ordered = sorted(parts, key=lambda part: part[1])
        table = names.get(ordered[0][2].lower(), ordered[0][2])
        spelled = {column.lower(): column for column in kinds}
        columns = tuple(spelled.get(part[3].lower(), part[3]) for part in ordered)
        others = self._pragma("table_xinfo", table) if table.lower() in names else []
        other_spelled = {row[1].lower(): row[1] for row in others}
        key = [row[1] for row in sorted((row for row in others if row[5]), key=lambda row: row[5])]
        referred = [part[4] for part in ordered]
        if None in referred:
            return ForeignKey(columns, table, tuple(key))
        return ForeignKey(columns, table, tuple(other_spelled.get(name.lower(), name) for name in referred))

    def _pragma(self, pragma: str, table: str) -> list[tuple[Any, ...]]:
        return self._connection.execute(f"PRAGMA {pragma}({_quoted(table)})").fetchall()

    def other_schemas(self) -> str:
        return ""

    def read(self, table: DatabaseTable, columns: Sequence[str], progress: Progress) -> pa.Table:
        cursor = self._connection.execute(f"SELECT {', '.join(map(_quoted, columns))} FROM {_quoted(table.name)}")
        batches = iter(lambda: cursor.fetchmany(_BATCH_ROWS), [])
        rows = _to_table(columns, batches, lambda done: progress(f"reading {table.name}", done, None))
        return pa.table({column: _as_declared(rows[column], table.columns[column].upper()) for column in columns})


def _as_declared(column: pa.ChunkedArray, kind: str) -> pa.ChunkedArray:
    """Return truth values, dates and timestamps as what they are declared; SQLite has no types of its own for them."""
    if kind.startswith("BOOL") and pa.types.is_integer(column.type):
        is_truth = pc.all(pc.is_in(column.drop_null(), pa.array([0, 1])), min_count=0).as_py()
        return column.cast(pa.bool_()) if is_truth else column
    return _as_time(column, "TIMESTAMP" if kind == "DATETIME" else kind) if pa.types.is_string(column.type) else column


# ---- DuckDB --------------------------------------------------------------------------------------
@contextmanager
def _open_duckdb(path: Path, schema: str | None) -> Iterator[Database]:
    connection = open_duckdb(path)
    try:
        connection.execute("BEGIN TRANSACTION READ ONLY")
        yield _DuckDB(path, connection, schema or "main")
    finally:
        connection.close()


class _DuckDB:
    """A DuckDB file."""

    def __init__(self, path: Path, connection: Any, schema: str) -> None:
        self.title = str(path)
        self._connection = connection
        self._schema = schema
        schemas = self._schemas()
        if schema not in schemas:
            raise _no_schema(self.title, schema, schemas)

    def _schemas(self) -> list[str]:
        query = "SELECT schema_name FROM duckdb_schemas() WHERE NOT internal ORDER BY schema_name"
        return list(dict.fromkeys(["main", *(name for (name,) in self._connection.execute(query).fetchall())]))

    def tables(self) -> list[DatabaseTable]:
        columns: dict[str, dict[str, str]] = {}
        for table, column, kind in self._catalog("columns", "table_name, column_name, data_type", "column_index"):
            columns.setdefault(table, {})[column] = kind
        what = "table_name, constraint_type, constraint_column_names, referenced_table, referenced_column_names"
        constraints = self._catalog("constraints", what, "constraint_index")
        views = {name for (name,) in self._catalog("views", "view_name", "view_name")}
        tables = []
        for name, kinds in sorted(columns.items()):
            own = [row[1:] for row in constraints if row[0] == name]
            key = next((tuple(names) for kind, names, *_ in own if kind == "PRIMARY KEY"), ())
            foreign = [ForeignKey(tuple(r[1]), r[2], tuple(r[3])) for r in own if r[0] == "FOREIGN KEY" and r[2]]
            tables.append(DatabaseTable(name, kinds, key, _in_column_order(foreign, kinds), name in views))
        return tables

    def _catalog(self, what: str, columns: str, order: str) -> list[tuple[Any, ...]]:
        query = f"SELECT {columns} FROM duckdb_{what}() WHERE schema_name = ? AND database_name = current_database()"
        rows: list[tuple[Any, ...]] = self._connection.execute(f"{query} ORDER BY {order}", [self._schema]).fetchall()
        return rows

    def other_schemas(self) -> str:
        return _other_schemas([name for name in self._schemas() if name != self._schema])

    def read(self, table: DatabaseTable, columns: Sequence[str], progress: Progress) -> pa.Table:
        chosen = ", ".join(f"{self._expression(table, column)} AS {_quoted(column)}" for column in columns)
        statement = f"SELECT {chosen} FROM {_quoted(self._schema, table.name)}"
        with ThreadPoolExecutor(1) as pool:
            rows = pool.submit(self._fetch, statement, lambda done: progress(f"reading {table.name}", done, None))
            try:
                while not rows.done():  # in turns: Polars has waits restarted after a signal, so Ctrl-C ends none
                    wait([rows], timeout=0.1)
                return _with_decimal_ids(rows.result(), table)
            except KeyboardInterrupt:  # in the thread of a statement it is noticed late
                while not rows.done():
                    self._connection.interrupt()  # without effect before the statement runs
                    wait([rows], timeout=0.1)
                raise

    def _fetch(self, statement: str, report: Callable[[int], object]) -> pa.Table:
        reader = self._connection.sql(statement).to_arrow_reader(_BATCH_ROWS)
        batches, done = [], 0
        for batch in reader:
            batches.append(batch)
            done += len(batch)
            report(done)
        return pa.Table.from_batches(batches, reader.schema)

    @staticmethod
    def _expression(table: DatabaseTable, column: str) -> str:
        kind, name = table.columns[column].upper(), _quoted(column)
        if kind == "BLOB":
            return f"lower(hex({name}))"
        if decimal := re.fullmatch(r"DECIMAL\((\d+),(\d+)\)", kind):
            is_integer = decimal[2] == "0" and int(decimal[1]) <= 18
            return f"{name}::{'BIGINT' if is_integer else 'VARCHAR' if column in table.id_columns else 'DOUBLE'}"
        return name if kind in _DUCKDB_TYPES else f"{name}::VARCHAR"


_DUCKDB_TYPES = (
    "BIGINT", "INTEGER", "SMALLINT", "TINYINT", "UBIGINT", "UINTEGER", "USMALLINT", "UTINYINT", "DOUBLE", "FLOAT",
    "BOOLEAN", "VARCHAR", "DATE", "TIMESTAMP",
)  # fmt: skip
"""Types that Arrow holds as they are; others are read as text."""


def _in_column_order(keys: Iterable[ForeignKey], columns: Mapping[str, str]) -> tuple[ForeignKey, ...]:
    order = {column: place for place, column in enumerate(columns)}
    return tuple(sorted(dict.fromkeys(keys), key=lambda fk: order[fk.columns[0]]))


def _no_schema(title: str, schema: str, schemas: Sequence[str]) -> SourceError:
    return SourceError(
        f"{title} has no schema {schema!r} (it has {listed(schemas)}){did_you_mean(schema, schemas)}",
        parameter="schema",
        allowed=schemas,
    )


def _other_schemas(names: Sequence[str]) -> str:
    return f" in this schema; choose one of {listed(names)} with ‹schema›" if names else ""


# ---- PostgreSQL and other servers, by SQLAlchemy -------------------------------------------------
_WELL_FORMED = re.compile(r"\w+(\+\w+)?://([^\s:/?#@]*(:[^\s:/?#@]*)?@)?[^\s@?#]*(\?[^\s@]*)?$")
_PACKAGES = {"MySQLdb": "mysqlclient", "psycopg2": "psycopg2-binary"}
"""Modules that come in a package of another name."""


@contextmanager
def _open_server(url: str, schema: str | None, title: str) -> Iterator[Database]:
    try:
        import sqlalchemy as sa
    except ModuleNotFoundError as error:
        raise MissingExtraError("SQLAlchemy", "neupath[io]") from error
    engine = _make_engine(url, title)
    postgres = engine.dialect.name == "postgresql"
    options: dict[str, Any] = {"postgresql_readonly": True} if postgres else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sa.exc.SAWarning)  # about types that are read as text
        try:
            connection = engine.connect()
        except (sa.exc.SQLAlchemyError, OSError, ValueError) as error:
            raise SourceError(
                f"cannot open {title}: {_reason(error, url)}; check host, port, database, user and password"
            ) from None
        with connection:
            with suppress(NotImplementedError):
                levels = engine.dialect.get_isolation_level_values(connection.connection.dbapi_connection)
                if "REPEATABLE READ" in levels:
                    options["isolation_level"] = "REPEATABLE READ"  # one snapshot for all tables
            connection = connection.execution_options(**options)
            kind = _PostgreSQL if postgres and engine.dialect.driver == "psycopg" else _Server
            try:
                yield kind(title, connection, schema)
                connection.rollback()
            except BaseException:
                _abandon(connection)
                raise


def _abandon(connection: Any) -> None:
    """End a statement that may still run, and close a connection that cannot be used until it has ended."""
    with suppress(Exception):
        connection.connection.dbapi_connection.cancel()
    connection.invalidate()


def _make_engine(url: str, title: str) -> Any:
    """Make an engine of SQLAlchemy; postgresql:// without a driver means psycopg."""
    import sqlalchemy as sa

    if not _WELL_FORMED.match(url):
        raise SourceError(
            "the URL of the database is not well formed; it is DATABASE://USER:PASSWORD@HOST:PORT/NAME, with %40 for "
            "an @ in the password, %2F for a /, %3A for a : and %20 for a space"
        )
    try:
        parsed = sa.engine.make_url(re.sub(r"^postgres(ql)?://", "postgresql+psycopg://", url))
        return sa.create_engine(parsed, poolclass=sa.pool.NullPool)
    except ModuleNotFoundError as error:
        module = str(error.name)
        extra = "neupath[io]" if module == "psycopg" else _PACKAGES.get(module, module)
        raise MissingExtraError(module, extra) from None
    except sa.exc.NoSuchModuleError:
        raise SourceError(
            f"SQLAlchemy knows no database {url.partition(':')[0]!r}, which {title} begins with; URLs begin with "
            f"postgresql://, sqlite:///, duckdb:/// or the name of another database whose driver is installed"
        ) from None
    except ValueError as error:
        raise SourceError(f"cannot open {title}: {_reason(error, url)}; check host, port and database") from None


class _Server:
    """A database that SQLAlchemy connects to; rows are streamed."""

    def __init__(self, title: str, connection: Any, schema: str | None) -> None:
        import sqlalchemy as sa

        self.title = title
        self._connection = connection
        self._inspector = sa.inspect(connection)
        self._schema = schema or self._inspector.default_schema_name
        if schema is not None and schema not in self._inspector.get_schema_names():
            raise _no_schema(title, schema, self._inspector.get_schema_names())

    def tables(self) -> list[DatabaseTable]:
        from sqlalchemy.engine.reflection import ObjectKind

        inspector, options = self._inspector, {"schema": self._schema, "kind": ObjectKind.ANY}
        columns = inspector.get_multi_columns(**options)
        keys = inspector.get_multi_pk_constraint(**options)
        foreign = inspector.get_multi_foreign_keys(**options)
        names = set(inspector.get_table_names(schema=self._schema))
        tables = []
        for place in sorted(columns, key=lambda place: place[1]):
            name = place[1]
            kinds = {column["name"]: self._kind(column["type"]) for column in columns[place]}
            key = tuple((keys.get(place) or {}).get("constrained_columns") or ())
            found = [self._foreign_key(each) for each in foreign.get(place, ())]
            tables.append(DatabaseTable(name, kinds, key, _in_column_order(found, kinds), name not in names))
        return tables

    def _foreign_key(self, found: Mapping[str, Any]) -> ForeignKey:
        schema = found.get("referred_schema")
        elsewhere = schema is not None and schema != self._schema
        table = f"{schema}.{found['referred_table']}" if elsewhere else found["referred_table"]
        return ForeignKey(tuple(found["constrained_columns"]), table, tuple(found["referred_columns"]))

    def _kind(self, kind: Any) -> str:
        """Return a type of SQLAlchemy as text; some have none of their own."""
        try:
            return str(kind.compile(dialect=self._connection.dialect))
        except Exception:
            return type(kind).__name__

    def other_schemas(self) -> str:
        hidden = (self._schema, "information_schema")
        return _other_schemas([name for name in self._inspector.get_schema_names() if name not in hidden])

    def read(self, table: DatabaseTable, columns: Sequence[str], progress: Progress) -> pa.Table:
        import sqlalchemy as sa

        source = sa.table(table.name, *(sa.column(column) for column in columns), schema=self._schema)
        streamed = self._connection.execution_options(stream_results=True, yield_per=_BATCH_ROWS)
        batches = streamed.execute(sa.select(*source.columns)).partitions()
        return _to_table(columns, batches, lambda done: progress(f"reading {table.name}", done, None), table.id_columns)


_POSTGRESQL_SETTINGS = (
    "datestyle = 'ISO'", "client_encoding = 'UTF8'", "extra_float_digits = 1", "timezone = 'UTC'",
    "synchronize_seqscans = off",  # a large table that others read, too, comes in the same order
)  # fmt: skip


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

    def tables(self) -> list[DatabaseTable]:
        """List the tables without the partitions of others, which hold the same rows, nor references to these."""
        return [
            replace(table, foreign_keys=tuple(fk for fk in table.foreign_keys if fk.table not in self._parts))
            for table in super().tables()
            if table.name not in self._parts
        ]

    def read(self, table: DatabaseTable, columns: Sequence[str], progress: Progress) -> pa.Table:
        kinds = {column: table.columns[column].upper() for column in columns}
        for column in table.id_columns & kinds.keys():
            if _is_decimal(kinds[column]) and pa.types.is_floating(_copied_type(kinds[column])):
                kinds[column] = "TEXT"
        chosen = ", ".join(_copied(kind, _quoted(column)) for column, kind in kinds.items())
        # without ONLY the rows of tables that inherit from this one would come, too
        only = "ONLY " if table.name in self._plain else ""
        place = _quoted(self._schema, table.name)
        statement = f"COPY (SELECT {chosen} FROM {only}{place}) TO STDOUT (FORMAT csv, ENCODING 'UTF8')"
        types = {column: _copied_type(kind) for column, kind in kinds.items()}
        parsed, done = [_parse_csv(b"", types)], 0
        cursor = self._connection.connection.dbapi_connection.cursor()
        with cursor, cursor.copy(statement) as copy:
            for block in _blocks(copy):
                parsed.append(_parse_csv(block, types))
                done += len(parsed[-1])
                progress(f"reading {table.name}", done, None)
        rows = _with_decimal_ids(pa.concat_tables(parsed), table)
        return pa.table({column: _as_time(rows[column], kind) for column, kind in kinds.items()})


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


def _parse_csv(content: bytes | bytearray, types: Mapping[str, pa.DataType]) -> pa.Table:
    """Parse PostgreSQL's CSV: an empty cell is null, and a quoted empty one an empty text."""
    if not content:
        return pa.schema(list(types.items())).empty_table()
    return pa.csv.read_csv(
        pa.BufferReader(content),
        read_options=pa.csv.ReadOptions(column_names=list(types)),
        parse_options=pa.csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False),
        convert_options=pa.csv.ConvertOptions(
            column_types=dict(types), null_values=[""], true_values=["t"], false_values=["f"],
            strings_can_be_null=True, quoted_strings_can_be_null=False,
        ),
    )  # fmt: skip


def _copied(kind: str, column: str) -> str:
    """Return a column as COPY writes it: numbers, truth values, and all else as text."""
    if kind == "BYTEA":
        return f"encode({column}, 'hex')"
    if kind.startswith("TIMESTAMP") and "WITH TIME ZONE" in kind:
        return f"({column} AT TIME ZONE 'UTC')::text"
    if kind.startswith("NUMERIC") and pa.types.is_floating(_copied_type(kind)):
        return f"{column}::float8"
    return column if not pa.types.is_string(_copied_type(kind)) else f"{column}::text"


def _copied_type(kind: str) -> pa.DataType:
    if kind in ("INTEGER", "BIGINT", "SMALLINT"):
        return pa.int64()
    if kind.startswith("NUMERIC"):
        whole = re.fullmatch(r"NUMERIC\((\d+), 0\)", kind)
        return pa.int64() if whole and int(whole[1]) <= 18 else pa.float64()
    if kind.startswith(("FLOAT", "DOUBLE", "REAL")):
        return pa.float64()
    return pa.bool_() if kind == "BOOLEAN" else pa.string()


def _as_time(column: pa.ChunkedArray, kind: str) -> pa.ChunkedArray:
    """Turn texts into dates or timestamps, unless one is beyond what these can hold, such as infinity."""
    wanted = pa.date32() if kind == "DATE" else pa.timestamp("us") if kind.startswith("TIMESTAMP") else None
    if wanted is not None:
        with suppress(pa.ArrowInvalid):
            return column.cast(wanted)
    return column

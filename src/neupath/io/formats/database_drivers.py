"""Open databases and read their tables: SQLite, DuckDB, PostgreSQL, and what else SQLAlchemy connects to.

One function opens each kind, in a read-only transaction, and yields a `Database`. Errors of drivers become sentences
without the password.
"""

# ruff: noqa: S608  names in statements are those that the database lists, and are quoted

import re
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property, partial
from io import BytesIO
from itertools import groupby, islice
from operator import itemgetter
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from neupath._runtime.progress import Progress
from neupath.errors import MissingExtraError, SourceError, did_you_mean, hide_password, listed
from neupath.graph.edge_attributes import decimals_to_floats
from neupath.store.database import open_duckdb

# ---- Which sources are databases -----------------------------------------------------------------
_URL = re.compile(r"(?P<kind>[A-Za-z][A-Za-z0-9]*)(?:\+\w+)?://")
_NOT_DATABASES = ("s3", "gs", "gcs", "http", "https", "ftp", "file", "hdfs", "abfs", "abfss", "az")
DATABASE_SUFFIXES = (".db", ".sqlite", ".sqlite3", ".duckdb")


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
    if start == b"SQLite format 3\0":
        return "sqlite"
    if start[8:12] == b"DUCK":
        return "duckdb"
    if path.suffix.lower() in DATABASE_SUFFIXES:
        what = "is not a SQLite or DuckDB database" if start else "is empty"
        raise SourceError(f"{path} is named {path.suffix} but {what}; give the file of a database")
    return None


# ---- Tables and their rows -----------------------------------------------------------------------
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
    """Columns that are left out: the database computes them as they are read, which may make gigabytes of nothing."""

    @cached_property
    def types(self) -> dict[str, pa.DataType | None]:
        """What `value_type` says that the columns are read as."""
        return {column: value_type(declared) for column, declared in self.columns.items()}

    def is_measure(self, column: str) -> bool:
        """Whether a column is declared to hold numbers, truth values or times."""
        return bool(_MEASURES.match(self.columns[column]))


@dataclass(frozen=True)
class Database:
    """An open database, in a read-only transaction."""

    title: str
    """What messages call it, without the password."""
    schema: str
    schemas: Sequence[str]
    tables: Sequence[DatabaseTable]
    read_parts: Callable[[DatabaseTable], Iterable[pa.Table]]
    """Read a table in parts, whose types may differ."""

    def read(self, table: DatabaseTable, ids: Collection[str], progress: Progress) -> pa.Table:
        """Read a table: integers, floats, truth values, dates, timestamps, and all else as text.

        A decimal becomes an integer or else a float, which may round it; one of `ids` is never rounded.
        """
        parts = [pa.table({column: pa.nulls(0) for column in table.columns})]
        done = 0
        for part in self.read_parts(table):
            parts.append(part)
            done += len(part)
            progress(f"reading {table.name}", done, None)
        return pa.table({c: _convert(_join([p[c] for p in parts]), table.types[c], c in ids) for c in table.columns})


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
    with driver_errors(title, source):
        if path is None:
            opened = _open_server(str(source), title, schema)
        else:
            opened = _open_sqlite(path) if kind == "sqlite" else _open_duckdb(path, schema)
        with opened as database:
            if schema is not None and schema not in database.schemas:
                raise SourceError(
                    f"{title} has no schema {schema!r} (it has {listed(database.schemas)})"
                    f"{did_you_mean(schema, database.schemas)}",
                    parameter="schema",
                    allowed=database.schemas,
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
    path = Path(unquote(name[1:]))
    if not name.startswith("/") or not path.is_file():
        raise SourceError(
            f"no such file: {source}; write {kind}:///shop.db for a file of this folder, {kind}:////data/shop.db for "
            f"any other, and no parameters behind a question mark"
        )
    if (actual := database_format(path)) != kind:
        raise SourceError(f"{path} is not a {kind} database{f', but a {actual} one' if actual else ''}")
    return kind, path


_DRIVERS = ("sqlite3", "duckdb", "_duckdb", "sqlalchemy", "psycopg", "pyarrow")
_SQLITE_INTERRUPT = 9


@contextmanager
def driver_errors(title: str, source: str | Path, action: str = "read") -> Iterator[None]:
    """Turn errors of a driver into one sentence; their chain is cut, because it may hold the password."""
    try:
        yield
    except Exception as error:
        if getattr(error, "sqlite_errorcode", None) == _SQLITE_INTERRUPT:
            raise KeyboardInterrupt from None
        if type(error).__module__.partition(".")[0] not in _DRIVERS and not isinstance(error, OSError | UnicodeError):
            raise
        raise SourceError(f"cannot {action} {title}: {_reason(error, source)}") from None


def _reason(error: Exception, source: str | Path) -> str:
    """Return the first line of a driver's message without the password, as the URL writes it or decoded."""
    text = str(getattr(error, "orig", None) or getattr(error, "strerror", None) or error)
    line = next((line.strip() for line in text.splitlines() if line.strip()), type(error).__name__)
    written = re.findall(r"://[^:/?#]*:(.*)@", str(source)) + re.findall(r"[?&]\w*pass\w*=([^&]*)", str(source))
    for password in sorted({*written, *map(unquote, written)} - {""}, key=len, reverse=True):
        line = line.replace(password, "***")
    return hide_password(line)


# ---- What values are read as ---------------------------------------------------------------------
_MEASURES = re.compile(
    r"((big|small|tiny|medium|huge|u|unsigned )*int|real|float|double|num|dec|bool|bit|date|time|interval|year|money)",
    re.IGNORECASE,
)
_EXACT, _TIME = pa.decimal128(38), pa.timestamp("us")
_VALUE_TYPES = (
    (r"U?(BIG|SMALL|TINY)?INT(EGER)?", pa.int64()),
    (r"(NUM(ERIC|BER)?|DEC(IMAL)?)\b[^[]*|U?HUGEINT", _EXACT),
    (r"(FLOAT|DOUBLE|REAL)\b[^[]*", pa.float64()),
    (r"BOOL(EAN)?", pa.bool_()),
    (r"DATE", pa.date32()),
    (r"(TIMESTAMP|DATETIME)[^[]*", _TIME),
)
"""A declared type, and what its values are read as; those of `_EXACT` come as text, with digits that no float has."""


def value_type(declared: str) -> pa.DataType | None:
    """Return what the values of a declared type are read as, or None for text; SQLite may hold others.

    >>> [str(value_type(declared)) for declared in ("BIGINT", "NUMERIC(20, 2)", "INTEGER[]")]
    ['int64', 'decimal128(38, 0)', 'None']
    """
    return next((kind for pattern, kind in _VALUE_TYPES if re.fullmatch(pattern, declared.upper())), None)


def _convert(column: pa.ChunkedArray, kind: pa.DataType | None, is_id: bool) -> pa.ChunkedArray:
    """Return values as what they are declared, where they came as integers, as text, or in a time zone."""
    if pa.types.is_null(column.type):
        return column.cast(pa.string() if kind in (None, _EXACT) else kind)
    if kind == pa.bool_() and pa.types.is_integer(column.type):
        is_truth = pc.all(pc.is_in(column, pa.array([0, 1, None])), min_count=0).as_py()
        return column.cast(kind) if is_truth else column
    if pa.types.is_timestamp(column.type):
        return column.cast(_TIME)
    if kind == _EXACT and not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        return _convert_decimals(column, is_id)
    if pa.types.is_string(column.type) and kind in (pa.date32(), _TIME):
        with suppress(pa.ArrowInvalid):  # such as infinity
            return column.cast(kind)
    return column


def _convert_decimals(column: pa.ChunkedArray, is_id: bool) -> pa.ChunkedArray:
    """Return decimals without places as integers, other ids as texts that are the same for equal ones, or floats."""
    if pa.types.is_decimal(column.type) and column.type.scale and not is_id:
        return decimals_to_floats(column)
    texts = column.cast(pa.string())
    if is_id:
        texts = pc.replace_substring_regex(texts, r"^(-?\d+(\.\d*[1-9])?)\.?0*$", r"\1")
    for kind in (pa.int64(), pa.string() if is_id else pa.float64()):
        with suppress(pa.ArrowInvalid):  # such as a fraction, or more digits than an integer has
            return texts.cast(kind)
    return texts


def _join(parts: Sequence[pa.ChunkedArray]) -> pa.ChunkedArray:
    """Join the parts of a column; those of several types become text, integers beside fractions floats."""
    with suppress(pa.ArrowInvalid, pa.ArrowTypeError):  # such as integers that no float can hold
        return pa.concat_tables([pa.table([p], ["x"]) for p in parts], promote_options="permissive")["x"]
    return pa.chunked_array([pa.array(map(_text, part.to_pylist()), pa.string()) for part in parts])


def _to_tables(batches: Iterable[Sequence[Sequence[object]]], columns: Collection[str]) -> Iterator[pa.Table]:
    """Return batches of rows of Python values as tables."""
    for rows in batches:
        yield pa.table(dict(zip(columns, map(_to_array, zip(*rows, strict=True)), strict=True)))


def _to_array(values: Sequence[Any]) -> pa.Array:
    """Return Python values as numbers, truth values or times; decimals, and values of several types, as text."""
    with suppress(pa.ArrowException, OverflowError, TypeError):
        array = pa.array(values)
        if pa.types.is_primitive(array.type) or pa.types.is_string(array.type) or pa.types.is_null(array.type):
            return array
    return pa.array(map(_text, values), pa.string())


def _text(value: object) -> str | None:
    if value is None:
        return None
    if isinstance(value, Decimal):
        return f"{value:f}"  # without an exponent
    return value.hex() if isinstance(value, bytes | memoryview) else str(value)


def _select(table: DatabaseTable, place: str) -> str:
    """Return the statement of DuckDB or PostgreSQL that reads a table so that Arrow understands its values."""
    columns = []
    for name, kind in table.types.items():
        column, declared = _quoted(name), table.columns[name].upper()
        if declared in ("BLOB", "BYTEA"):
            column = f"lower(hex({column}))" if declared == "BLOB" else f"encode({column}, 'hex')"
        elif kind == _TIME:
            column += " AT TIME ZONE 'UTC'" if declared.endswith("WITH TIME ZONE") else "::timestamp"
        elif kind is None or (kind == _EXACT and not declared.startswith("DECIMAL")):  # which Arrow has, too
            column += "::text"
        columns.append(f"{column} AS {_quoted(name)}")
    return f"SELECT {', '.join(columns)} FROM {place}"


def _quoted(*names: str) -> str:
    return ".".join('"' + name.replace('"', '""') + '"' for name in names)


# ---- SQLite --------------------------------------------------------------------------------------
_BATCH_ROWS = 1 << 16
_LONGEST_VALUE = 1 << 24
"""Bytes of the longest text or blob that is read: as many as the characters of the longest line of a table."""
_STEPS = 100_000
"""Steps of SQLite between two looks for an interrupt."""


@contextmanager
def _open_sqlite(path: Path) -> Iterator[Database]:
    import sqlite3

    def read(table: DatabaseTable) -> Iterator[pa.Table]:
        cursor = connection.execute(f"SELECT {', '.join(map(_quoted, table.columns))} FROM {_quoted(table.name)}")
        return _to_tables(iter(partial(cursor.fetchmany, _BATCH_ROWS), []), table.columns)

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
        yield Database(str(path), "main", ["main"], list(_sqlite_tables(connection)), read)


def _connect_sqlite(path: Path) -> Any:
    """Open a file read-only; one with a write-ahead log in a folder that cannot be written needs `immutable`."""
    import sqlite3

    file = path.resolve()
    log = file.with_name(f"{file.name}-wal")
    for options in ("mode=ro", "mode=ro&immutable=1"):
        connection = sqlite3.connect(f"file:{quote(str(file))}?{options}", uri=True, isolation_level=None)
        try:
            connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchall()
        except sqlite3.OperationalError:
            connection.close()
            if "immutable" in options or (log.exists() and log.stat().st_size):
                raise
        else:
            break
    return connection


def _sqlite_tables(connection: Any) -> Iterator[DatabaseTable]:
    query = "SELECT name, type, sql FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite!_%'"
    listing = connection.execute(f"{query} ESCAPE '!'").fetchall()
    # the tables of a full-text or spatial index hold its own data
    indexes = [name for name, _, sql in listing if re.match(r"\s*create\s+virtual", sql or "", re.IGNORECASE)]
    for name, kind, _ in listing:
        if name in indexes or name.startswith(tuple(f"{index}_" for index in indexes)):
            continue
        columns = connection.execute(f"PRAGMA table_xinfo({_quoted(name)})").fetchall()
        kinds = {column: declared for _, column, declared, *_, hidden in columns if hidden not in (1, 2)}
        computed = tuple(column for _, column, *_, hidden in columns if hidden == 2)  # virtual generated ones
        key = tuple(column for _, column, *_, place, _ in sorted(columns, key=lambda row: row[5]) if place)
        parts = sorted(connection.execute(f"PRAGMA foreign_key_list({_quoted(name)})").fetchall())
        foreign = []
        for _, group in groupby(parts, key=itemgetter(0)):
            _, _, (table, *_), own, referred, *_ = zip(*group, strict=True)
            foreign.append(ForeignKey(own, table, () if None in referred else referred))
        yield DatabaseTable(name, kinds, key, tuple(foreign), kind == "view", computed)


# ---- DuckDB --------------------------------------------------------------------------------------
@contextmanager
def _open_duckdb(path: Path, schema: str | None) -> Iterator[Database]:
    place = schema or "main"

    def read(table: DatabaseTable) -> Iterator[pa.Table]:
        yield _query_duckdb(connection, _select(table, _quoted(place, table.name)))

    with closing(open_duckdb(path)) as connection:
        connection.execute("BEGIN TRANSACTION READ ONLY")
        query = "SELECT schema_name FROM duckdb_schemas() WHERE NOT internal ORDER BY schema_name"
        schemas = dict.fromkeys(["main", *(name for (name,) in connection.execute(query).fetchall())])
        yield Database(str(path), place, list(schemas), list(_duckdb_tables(connection, place)), read)


def _duckdb_tables(connection: Any, schema: str) -> Iterator[DatabaseTable]:
    def catalog(what: str, columns: str, order: str) -> list[tuple[Any, ...]]:
        query = f"SELECT {columns} FROM duckdb_{what}() WHERE schema_name = ? AND database_name = current_database()"
        rows: list[tuple[Any, ...]] = connection.execute(f"{query} ORDER BY {order}", [schema]).fetchall()
        return rows

    statements = dict(catalog("tables", "table_name, sql", "table_name"))
    what = "table_name, constraint_type, constraint_column_names, referenced_table, referenced_column_names"
    constraints = catalog("constraints", what, "constraint_index")
    columns = catalog("columns", "table_name, column_name, data_type", "table_name, column_index")
    for name, group in groupby(columns, key=itemgetter(0)):
        kinds = {column: kind for _, column, kind in group}
        computed = [c for c, kind in kinds.items() if _is_generated(c, kind, statements.get(name, ""))]
        own = [row[1:] for row in constraints if row[0] == name]
        key = next((tuple(names) for kind, names, *_ in own if kind == "PRIMARY KEY"), ())
        foreign = [ForeignKey(tuple(r[1]), r[2], tuple(r[3])) for r in own if r[0] == "FOREIGN KEY" and r[2]]
        stored = {column: kind for column, kind in kinds.items() if column not in computed}
        yield DatabaseTable(name, stored, key, tuple(foreign), name not in statements, tuple(computed))


def _is_generated(column: str, kind: str, statement: str) -> bool:
    """Whether a column is generated, by the statement that makes its table: the catalogue says so from version 2 on."""
    written = rf"[(,] ?({re.escape(_quoted(column))}|{re.escape(column)}) {re.escape(kind)} GENERATED ALWAYS AS"
    return re.search(written, statement) is not None


def _query_duckdb(connection: Any, statement: str) -> pa.Table:
    """Return the rows of a statement, which runs in a thread so that Ctrl-C ends it."""
    with ThreadPoolExecutor(1) as pool:
        rows = pool.submit(lambda: connection.sql(statement).to_arrow_table())
        try:
            while not rows.done():  # in turns: Polars has waits restarted after a signal, so Ctrl-C ends none
                wait([rows], timeout=0.1)
            return rows.result()
        except KeyboardInterrupt:  # in the thread of a statement it is noticed late
            while not rows.done():
                connection.interrupt()  # without effect before the statement runs
                wait([rows], timeout=0.1)
            raise


# ---- PostgreSQL and other servers, by SQLAlchemy -------------------------------------------------
_WELL_FORMED = re.compile(r"\w+(\+\w+)?://([^\s:/?#@]*(:[^\s:/?#@]*)?@)?[^\s@?#]*(\?[^\s@]*)?$")
_PACKAGES = {"MySQLdb": "mysqlclient", "psycopg2": "psycopg2-binary", "psycopg": "neupath[io]"}
"""Modules that come in a package of another name."""


@contextmanager
def _open_server(url: str, title: str, schema: str | None) -> Iterator[Database]:
    try:
        import sqlalchemy as sa
    except ModuleNotFoundError as error:
        raise MissingExtraError("SQLAlchemy", "neupath[io]") from error
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sa.exc.SAWarning)  # about types that are read as text
        with connect_server(url, title) as plain:
            dialect = plain.dialect
            options: dict[str, Any] = {"postgresql_readonly": True} if dialect.name == "postgresql" else {}
            with suppress(NotImplementedError):
                if "REPEATABLE READ" in dialect.get_isolation_level_values(plain.connection.dbapi_connection):
                    options["isolation_level"] = "REPEATABLE READ"  # one snapshot for all tables
            connection = plain.execution_options(**options)
            try:
                inspector = sa.inspect(connection)
                place = schema or inspector.default_schema_name
                tables, read = list(_server_tables(inspector, place)), partial(_fetch_rows, connection, place)
                database = Database(title, place, inspector.get_schema_names(), tables, read)
                yield _with_copy(database, connection) if _can_copy(dialect) else database
                connection.rollback()
            except BaseException:
                with suppress(Exception):  # a statement may still run, and the connection is of no use until it ends
                    connection.connection.dbapi_connection.cancel()
                connection.invalidate()
                raise


def connect_server(url: str, title: str) -> Any:
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


def _server_tables(inspector: Any, schema: str) -> Iterator[DatabaseTable]:
    from sqlalchemy.engine.reflection import ObjectKind

    options = {"schema": schema, "kind": ObjectKind.ANY}
    keys, foreign = inspector.get_multi_pk_constraint(**options), inspector.get_multi_foreign_keys(**options)
    names = set(inspector.get_table_names(schema=schema))
    for place, columns in inspector.get_multi_columns(**options).items():
        kinds = {column["name"]: str(column["type"]) for column in columns}
        key = (keys.get(place) or {}).get("constrained_columns") or ()
        found = []
        for each in foreign.get(place, ()):
            other, table = each.get("referred_schema"), each["referred_table"]
            name = table if other in (None, schema) else f"{other}.{table}"
            found.append(ForeignKey(tuple(each["constrained_columns"]), name, tuple(each["referred_columns"])))
        yield DatabaseTable(place[1], kinds, tuple(key), tuple(found), place[1] not in names)


def _fetch_rows(connection: Any, schema: str, table: DatabaseTable) -> Iterator[pa.Table]:
    import sqlalchemy as sa

    source = sa.table(table.name, *map(sa.column, table.columns), schema=schema)
    streamed = connection.execution_options(stream_results=True, yield_per=_BATCH_ROWS)
    return _to_tables(streamed.execute(sa.select(*source.columns)).partitions(), table.columns)


# ---- PostgreSQL's rows as CSV by COPY, which Arrow parses four times as fast as Python takes tuples ---
_POSTGRESQL_SETTINGS = (
    "datestyle = 'ISO'", "client_encoding = 'UTF8'", "extra_float_digits = 1", "timezone = 'UTC'",
    "synchronize_seqscans = off",  # a large table that others read, too, comes in the same order
)  # fmt: skip
_COPY_ROWS = 1 << 14


def _can_copy(dialect: Any) -> bool:
    return bool(dialect.name == "postgresql" and dialect.driver == "psycopg")


def _with_copy(database: Database, connection: Any) -> Database:
    """Return a database whose rows come by COPY, and without the partitions of tables, which hold the same rows."""
    for setting in _POSTGRESQL_SETTINGS:
        connection.exec_driver_sql(f"SET LOCAL {setting}")
    query = (
        "SELECT relname, relkind, relispartition FROM pg_catalog.pg_class WHERE relnamespace = "
        "(SELECT oid FROM pg_catalog.pg_namespace WHERE nspname = %(schema)s)"
    )
    rows = connection.exec_driver_sql(query, {"schema": database.schema}).fetchall()
    partitions = {name for name, _, is_partition in rows if is_partition}
    tables = [
        replace(table, foreign_keys=tuple(fk for fk in table.foreign_keys if fk.table not in partitions))
        for table in database.tables
        if table.name not in partitions
    ]
    plain = {name for name, kind, _ in rows if kind == "r"}
    return replace(database, tables=tables, read_parts=partial(_copy_rows, connection, database.schema, plain))


def _copy_rows(connection: Any, schema: str, plain: Collection[str], table: DatabaseTable) -> Iterator[pa.Table]:
    parsable = (pa.int64(), pa.float64(), pa.bool_())
    parsed = {column: kind if kind in parsable else pa.string() for column, kind in table.types.items()}
    options = {
        "read_options": pa.csv.ReadOptions(column_names=list(parsed)),
        "parse_options": pa.csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False),
        "convert_options": pa.csv.ConvertOptions(  # an empty cell is null, and a quoted empty one an empty text
            column_types=parsed, null_values=[""], true_values=["t"], false_values=["f"], strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    }  # fmt: skip
    # without ONLY the rows of tables that inherit from this one would come, too
    rows = _select(table, f"{'ONLY ' if table.name in plain else ''}{_quoted(schema, table.name)}")
    statement = f"COPY ({rows}) TO STDOUT (FORMAT csv, ENCODING 'UTF8')"
    with connection.connection.dbapi_connection.cursor() as cursor, cursor.copy(statement) as copy:
        while True:
            block = BytesIO()
            block.writelines(islice(copy, _COPY_ROWS))  # psycopg gives views of its buffers: each is copied at once
            if not block.tell():
                break
            yield pa.csv.read_csv(pa.BufferReader(block.getbuffer()), **options)

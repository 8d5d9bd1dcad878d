"""Write the pairs of a join into a table of a database: a DuckDB file, or a PostgreSQL server."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset

from neupath._runtime.progress import Progress, no_progress
from neupath.errors import QueryError, WriteError, hide_password
from neupath.io.formats.database_drivers import connect_server, driver_errors, is_database_url
from neupath.store.database import open_duckdb

_ROWS = 1 << 16  # that are sent at a time
_POSTGRES_TYPES = {"int64": "bigint", "string": "text", "double": "double precision"}


def write_pairs(
    pairs: str | Path, database: str | Path, table: str = "similar_pairs", *, progress: Progress = no_progress
) -> int:
    """Write the result of a join into a table, which is replaced as a whole; return the number of its rows.

    Parameters
    ----------
    pairs
        The Parquet file of a join, or its folder of Parquet files.
    database
        A file that ends in .duckdb, which is made if there is none, or postgresql://user:password@host/name.
    table
        The name of the table. A table of this name that no join made is not replaced.
    progress
        Called with "writing pairs", the number of rows written, and of all.

    >>> from tempfile import TemporaryDirectory
    >>> from neupath import PathSim, join, load
    >>> with TemporaryDirectory() as folder:
    ...     joined = join(load("toy"), PathSim("APVPA"), f"{folder}/top.parquet", k=2)
    ...     write_pairs(joined.path, f"{folder}/results.duckdb")
    9
    """
    source = pa.dataset.dataset(Path(pairs), format="parquet")
    total = source.count_rows()

    def batches() -> Iterator[pa.RecordBatch]:
        done = 0
        for batch in source.to_batches(batch_size=_ROWS):
            progress("writing pairs", done, total)
            yield batch
            done += batch.num_rows
        progress("writing pairs", done, total)

    check_database(database)
    if is_database_url(database):
        _write_to_postgres(str(database), table, source.schema, batches())
    else:
        _write_to_duckdb(Path(database), table, source.schema, batches())
    return int(total)


def check_database(database: str | Path) -> None:
    """Raise unless pairs can go into a database of this kind."""
    kind = str(database).partition(":")[0].partition("+")[0]
    if is_database_url(database) and kind not in ("postgres", "postgresql"):
        raise QueryError(f"pairs go into PostgreSQL or a DuckDB file, and {kind} is neither", parameter="into")
    if not is_database_url(database) and Path(database).suffix != ".duckdb":
        raise QueryError(
            f"{database} is no database to write to; give a name that ends in .duckdb, or postgresql://…",
            parameter="into",
        )


def _write_to_duckdb(path: Path, table: str, schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> None:
    with driver_errors(str(path), path, "write"), open_duckdb(path, write=True) as connection:
        rows = pa.RecordBatchReader.from_batches(schema, batches)
        connection.register("neupath_pairs", rows)
        known = connection.execute(
            "SELECT list(column_name ORDER BY column_index) FROM duckdb_columns() WHERE table_name = ?", [table]
        ).fetchone()
        _check_replaceable(table, str(path), known[0] if known else None)
        connection.execute(f"CREATE OR REPLACE TABLE {_quoted(table)} AS SELECT * FROM neupath_pairs")  # noqa: S608


def _write_to_postgres(url: str, table: str, schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> None:
    title, new = hide_password(url), _quoted(table)
    columns = ", ".join(f"{_quoted(each.name)} {_POSTGRES_TYPES[str(each.type)]}" for each in schema)
    with driver_errors(title, url, "write"), connect_server(url, title) as session:
        connection: Any = session.connection.driver_connection
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT array_agg(attname::text ORDER BY attnum) FROM pg_attribute WHERE attrelid = to_regclass(%s) "
                "AND attnum > 0 AND NOT attisdropped", [new]
            )  # fmt: skip
            _check_replaceable(table, title, cursor.fetchone()[0])
            cursor.execute(f"DROP TABLE IF EXISTS {new}")
            cursor.execute(f"CREATE TABLE {new} ({columns})")
            with cursor.copy(f"COPY {new} FROM STDIN") as copy:
                for batch in batches:
                    for row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                        copy.write_row(row)
        connection.commit()


def _check_replaceable(table: str, database: str, columns: list[str] | None) -> None:
    """Raise if a table that is there does not have the columns of pairs."""
    if columns and columns[:4] != ["query", "rank", "target", "score"]:
        raise WriteError(
            f"{database} has a table {table!r} already, with the columns {', '.join(columns)}, which no join wrote; "
            f"give another name for the table"
        )


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'

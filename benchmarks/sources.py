"""Measure the time and memory of loading the same edges from Parquet, N-Triples, SQLite, DuckDB and PostgreSQL.

    python benchmarks/sources.py [--edges 1e7] [--sources parquet,ntriples,postgresql,sqlite,duckdb]

The graph has users, movies and the edges between them, with integer ids. Each source is written once and loaded in a
process of its own, which reports its time and its peak memory, and a digest of the degrees: all must agree. The
PostgreSQL server runs in a temporary folder; its memory and processor time are not counted.
"""

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

sys.path.insert(0, str(Path(__file__).parents[1]))  # for the server that the tests use
from tests.postgres import Server, run_postgres

LOAD = """
import sys, time
from pathlib import Path
import neupath, numpy as np
began, computed = time.perf_counter(), time.process_time()
hin = neupath.load(sys.argv[1])
seconds, processor = time.perf_counter() - began, time.process_time() - computed
status = Path("/proc/self/status").read_text()
peak = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))
(matrix,) = hin.matrices.values()
degrees = [np.sort(matrix.sum(axis=axis)).tolist() for axis in (0, 1)]
import hashlib, json
print(json.dumps({"s": seconds, "cpu": processor, "mib": peak / 1024, "edges": int(matrix.nnz),
                  "weight": float(matrix.sum()), "digest": hashlib.sha256(json.dumps(degrees).encode()).hexdigest()}))
"""
PIECE = 1 << 20
SCRIPT = """
CREATE TABLE users (id integer PRIMARY KEY);
CREATE TABLE movies (id integer PRIMARY KEY);
CREATE TABLE user_movie (user_id integer REFERENCES users (id), movie_id integer REFERENCES movies (id));
"""


def make_edges(count: int, seed: int = 0) -> dict[str, pa.Table]:
    """Make a graph of `count` distinct edges, some movies with many users."""
    rng = np.random.default_rng(seed)
    users, movies = max(10, count // 20), max(10, count // 100)
    keys = np.empty(0, dtype=np.int64)
    while len(keys) < count:
        popular = (movies * rng.random(count) ** 2).astype(np.int64)
        keys = np.unique(np.concatenate([keys, rng.integers(users, size=count) * movies + popular]))
    chosen = rng.permutation(keys)[:count]
    edges = pa.table({"user_id": (chosen // movies).astype(np.int32), "movie_id": (chosen % movies).astype(np.int32)})
    nodes = {"users": pa.table({"id": np.arange(users, dtype=np.int32)})}
    return nodes | {"movies": pa.table({"id": np.arange(movies, dtype=np.int32)}), "user_movie": edges}


def write_parquet(tables: dict[str, pa.Table], folder: Path) -> str:
    place = folder / "parquet"
    place.mkdir()
    for name, table in tables.items():
        pq.write_table(table, place / f"{name}.parquet")
    return str(place)


def write_ntriples(tables: dict[str, pa.Table], folder: Path) -> str:
    path = folder / "graph.nt"
    kind, base = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>", "http://example.org"
    with path.open("w", encoding="ascii") as stream:
        for name, of in (("users", "user"), ("movies", "movie")):
            ids = tables[name]["id"].to_pylist()
            stream.writelines(f"<{base}/{of}/{id}> {kind} <{base}/{of}> .\n" for id in ids)
        for users, movies in _pieces(tables["user_movie"]):
            pairs = zip(users, movies, strict=True)
            stream.writelines(f"<{base}/user/{u}> <{base}/rated> <{base}/movie/{m}> .\n" for u, m in pairs)
    return str(path)


def write_sqlite(tables: dict[str, pa.Table], folder: Path) -> str:
    import sqlite3

    connection = sqlite3.connect(folder / "graph.db")
    connection.executescript(SCRIPT)
    for name, table in tables.items():
        marks = ", ".join("?" * table.num_columns)
        for columns in _pieces(table):
            connection.executemany(f"INSERT INTO {name} VALUES ({marks})", zip(*columns, strict=True))  # noqa: S608
    connection.commit()
    connection.close()
    return str(folder / "graph.db")


def write_duckdb(tables: dict[str, pa.Table], folder: Path) -> str:
    import duckdb

    connection = duckdb.connect(str(folder / "graph.duckdb"))
    connection.execute(SCRIPT)
    for name, table in tables.items():
        connection.register("given", table)
        connection.execute(f"INSERT INTO {name} SELECT * FROM given")  # noqa: S608
    connection.close()
    return str(folder / "graph.duckdb")


def write_postgresql(tables: dict[str, pa.Table], server: Server) -> str:
    url = server.create("CREATE TABLE made (id integer)")
    with server.connect(url.rpartition("/")[2]) as connection:
        connection.execute(re.sub(r" REFERENCES \w+ \(id\)", "", SCRIPT))
        for name, table in tables.items():
            with connection.cursor().copy(f"COPY {name} FROM STDIN (FORMAT csv)") as copy:
                for batch in table.to_batches(PIECE):
                    sink = pa.BufferOutputStream()
                    pa.csv.write_csv(batch, sink, pa.csv.WriteOptions(include_header=False))
                    copy.write(sink.getvalue().to_pybytes())
        for column, table in (("user_id", "users"), ("movie_id", "movies")):  # faster than row by row
            connection.execute(f"ALTER TABLE user_movie ADD FOREIGN KEY ({column}) REFERENCES {table} (id)")
        connection.execute("DROP TABLE made; ANALYZE")
    return url


def _pieces(table: pa.Table) -> Iterator[list[list[Any]]]:
    for batch in table.to_batches(PIECE):
        yield [column.to_pylist() for column in batch.columns]


def measure(source: str) -> dict[str, Any]:
    shown = subprocess.run([sys.executable, "-c", LOAD, source], capture_output=True, text=True, check=False)
    if shown.returncode:
        raise SystemExit(shown.stderr)
    result: dict[str, Any] = json.loads(shown.stdout)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--edges", type=float, default=1e7)
    parser.add_argument("--sources", default="parquet,ntriples,postgresql,sqlite,duckdb")
    arguments = parser.parse_args()
    tables = make_edges(int(arguments.edges))
    writers: dict[str, Callable[[dict[str, pa.Table], Path], str]] = {
        "parquet": write_parquet, "ntriples": write_ntriples, "sqlite": write_sqlite, "duckdb": write_duckdb
    }  # fmt: skip
    digests = set()
    print("| source | load, s | processor time, s | peak memory, MiB | edges |\n|---|---:|---:|---:|---:|")
    for name in arguments.sources.split(","):
        with ExitStack() as stack:
            folder = Path(stack.enter_context(TemporaryDirectory(prefix="neupath-sources-")))
            if name == "postgresql":
                source = write_postgresql(tables, stack.enter_context(run_postgres()))
            else:
                source = writers[name](tables, folder)
            result = measure(source)
        digests.add(result["digest"])
        assert result["edges"] == result["weight"] == len(tables["user_movie"]), result
        times = f"{result['s']:.1f} | {result['cpu']:.1f}"
        print(f"| {name} | {times} | {result['mib']:,.0f} | {result['edges']:,} |", flush=True)
    assert len(digests) == 1, "the graphs differ"


if __name__ == "__main__":
    main()

"""Measure how long it takes to load graphs, beside polars and pandas and other versions of neupath, in turns.

    python benchmarks/loading.py --data DATA [--edges 1e7] [--imports 1e7] [--others NAME=SRC ...] [--repeats 5]

Cases: the graphs `stdlib`, `imdb`, `kg20c` and `hetionet` of DATA, `--edges` edges between users and movies as Parquet
and as CSV, and the import of `--imports` of them into a store. Of hetionet, polars and pandas make the same: they read
both tables and number the ends of edges by two joins.

Every run is a process of its own, which first loads a small table (or imports its library), and reports processor time
and peak memory. A round runs each contender once; the table has medians over all rounds, and ratios to
the first contender. Others are the `src` folders of other versions, such as BEFORE=../before/src.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

START = """
import sys, time, warnings
from pathlib import Path
warnings.simplefilter("ignore")
source, small = sys.argv[1], sys.argv[2]
"""
END = """
import json
status = open("/proc/self/status").read()
peak = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))
print(json.dumps({"cpu": spent, "mib": peak / 1024}))
"""
LOAD = """
import neupath
neupath.load(small)
began = time.process_time()
neupath.load(source)
spent = time.process_time() - began
"""
IMPORT = """
import tempfile
from neupath.io import import_store
with tempfile.TemporaryDirectory(dir=Path(source).parent) as folder:
    import_store(small, folder + "/small")
    began = time.process_time()
    import_store(source, folder + "/store")
    spent = time.process_time() - began
"""
POLARS = """
import polars as pl
began = time.process_time()
options = {"separator": "\\t", "quote_char": None, "infer_schema": False}
nodes, edges = (pl.read_csv(f"{source}/{name}.tsv.gz", **options) for name in ("nodes", "edges"))
nodes = nodes.with_row_index("row")
ids = nodes.select("id", "row")
joined = edges.join(ids, left_on="source", right_on="id").join(ids, left_on="target", right_on="id", suffix="_target")
spent = time.process_time() - began
assert len(joined) == len(edges)
"""
PANDAS = """
import csv
import pandas as pd
began = time.process_time()
options = {"sep": "\\t", "quoting": csv.QUOTE_NONE, "keep_default_na": False, "dtype": str}
nodes, edges = (pd.read_csv(f"{source}/{name}.tsv.gz", **options) for name in ("nodes", "edges"))
ids = nodes[["id"]].reset_index(names="row")
joined = edges.merge(ids, left_on="source", right_on="id").merge(ids, left_on="target", right_on="id")
spent = time.process_time() - began
assert len(joined) == len(edges)
"""


def write_edges(folder: Path, count: int, format_: str) -> Path:
    """Write a table of edges with integer ids, and return its folder."""
    path = folder / f"{format_}_{count}"
    path.mkdir()
    rng = np.random.default_rng(0)
    users, movies = rng.integers(count // 20, size=count), (count // 100 * rng.random(count) ** 2).astype(np.int64)
    table = pa.table({"user_id": users, "movie_id": movies})
    if format_ == "parquet":
        pq.write_table(table, path / "user_movie.parquet")
    else:
        pa.csv.write_csv(table, path / "user_movie.csv")
    return path


def measure(body: str, source: str, tree: str, small: str) -> dict[str, float]:
    environment = os.environ | {"PYTHONPATH": tree, "POLARS_MAX_THREADS": "1", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", START + body + END, source, small]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode:
        raise SystemExit(f"a run of {source} failed:\n{done.stderr}")
    return dict(json.loads(done.stdout.splitlines()[-1]))


def compare(name: str, contenders: dict[str, tuple[str, str]], source: Path | str, repeats: int, small: str) -> None:
    """Run the code of each contender with its version of neupath in turns, and print a row for each."""
    runs: dict[str, list[dict[str, float]]] = {contender: [] for contender in contenders}
    for _ in range(repeats):
        for contender, (code, tree) in contenders.items():
            runs[contender].append(measure(code, str(source), tree, small))
    medians = {c: {key: statistics.median(run[key] for run in own) for key in own[0]} for c, own in runs.items()}
    first = next(iter(medians.values()))
    for contender, own in medians.items():
        spread = f"{min(run['cpu'] for run in runs[contender]):.2f} to {max(run['cpu'] for run in runs[contender]):.2f}"
        ratios = f"{own['cpu'] / first['cpu']:.2f} | {own['mib'] / first['mib']:.2f}"
        print(f"| {name} | {contender} | {own['cpu']:.2f} ({spread}) | {own['mib']:,.0f} | {ratios} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=os.environ.get("NEUPATH_DATA"), help="the folder of the graphs")
    parser.add_argument("--edges", type=float, default=1e7, help="edges of the tables to load; 0 leaves them out")
    parser.add_argument("--imports", type=float, default=1e7, help="edges of the table to import; 0 leaves it out")
    parser.add_argument("--others", nargs="*", default=[], metavar="NAME=SRC", help="other versions of neupath")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--folder", type=Path, help="where tables and stores are written for a while")
    options = parser.parse_args()
    trees = {"neupath": str(Path(__file__).parents[1] / "src")} | dict(each.split("=", 1) for each in options.others)
    loads = {version: (LOAD, tree) for version, tree in trees.items()}
    peers = {"polars": (POLARS, ""), "pandas": (PANDAS, "")}
    print("| case | who | processor seconds (least to most) | peak MiB | ratio of seconds | of memory |")
    print("|---|---|---:|---:|---:|---:|")
    with TemporaryDirectory(dir=options.folder) as name:
        folder, small = Path(name), str(write_edges(Path(name), 100, "csv"))
        for graph in ("stdlib", *(("imdb", "kg20c", "hetionet") if options.data else ())):
            source = graph if graph == "stdlib" else options.data / graph
            compare(f"load {graph}", loads | (peers if graph == "hetionet" else {}), source, options.repeats, small)
        for format_ in ("parquet", "csv") if options.edges else ():
            source = write_edges(folder, int(options.edges), format_)
            compare(f"load {options.edges:.0e} edges, {format_}", loads, source, options.repeats, small)
        if options.imports:
            imports = {version: (IMPORT, tree) for version, tree in trees.items()}
            (folder / "import").mkdir()
            source = write_edges(folder / "import", int(options.imports), "csv")
            compare(f"import {options.imports:.0e} edges, csv", imports, source, options.repeats, small)


if __name__ == "__main__":
    main()

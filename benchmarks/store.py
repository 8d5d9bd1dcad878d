"""Measure the time and memory of importing tables into a store, out of core and in memory, and of the first query.

`python benchmarks/store.py` writes tables of ten million edges with text ids, imports them under a memory limit, and
again in memory with `load`, compares the two stores, and searches once; every step runs in its own process.
`--keep FOLDER` keeps the stores there.

`python benchmarks/store.py --open STORE` only opens, describes and searches a store, and prints the medians of seconds
and CPU seconds. `--against SRC OTHER` does so in turns with the neupath in the folder SRC and its store OTHER.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from contextlib import nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from powerlaw import powerlaw

from neupath import HIN

PART = 1 << 20
SUFFIXES = (".parquet", ".csv")
WHOLE = "from sys import argv; from neupath import load, store; store.write_store(load(argv[1]), argv[2])"
SAME = (
    "import sys, neupath; from neupath.graph.hin import digest;"
    " first, second = (digest(neupath.load(store)) for store in sys.argv[1:]); assert first == second"
)

OPEN = """
import sys, time
from tempfile import TemporaryDirectory
from neupath import load
from neupath.graph.hin import digest
from neupath.store import write_store
with TemporaryDirectory() as folder:
    digest(load(write_store(load("toy"), folder + "/toy.store")))  # imports what opening needs
began, cpu = time.perf_counter(), time.process_time()
load(sys.argv[1])
print(time.perf_counter() - began, time.process_time() - cpu)
"""


def write_tables(hin: HIN, folder: Path, suffix: str) -> None:
    """Write two tables of nodes and two of edges, in parts."""
    folder.mkdir()
    for node_type in ("author", "paper"):
        rows = np.arange(hin.num_nodes(node_type))
        ids = _texts(node_type, rows)
        columns = {f"{node_type}_id": ids, "name": _texts(f"{node_type} number ", rows), "year": 1950 + rows % 75}
        _write(folder / f"{node_type}s{suffix}", [pa.table(columns)])
    for relation, matrix in hin.matrices.items():
        entries = matrix.tocoo()
        ends = {relation.source: entries.row, relation.target: entries.col}
        order = np.random.default_rng(0).permutation(entries.nnz)
        parts = (
            pa.table({f"{end}_id": _texts(end, rows[order[i : i + PART]]) for end, rows in ends.items()})
            for i in range(0, entries.nnz, PART)
        )
        _write(folder / f"{relation.source}_{relation.name}_{relation.target}{suffix}", parts)


def _texts(word: str, rows: np.ndarray) -> pa.Array:
    return pa.compute.binary_join_element_wise(word, pa.array(rows).cast(pa.string()), "")


def _write(path: Path, parts: object) -> None:
    writer = None
    for part in parts:  # type: ignore[attr-defined]
        if writer is None:
            kind = pa.parquet.ParquetWriter if path.suffix == ".parquet" else pa.csv.CSVWriter
            writer = kind(str(path), part.schema)
        writer.write_table(part)
    writer.close()  # type: ignore[union-attr]


def make(edges: int, folder: Path) -> None:
    """Write the tables of a graph as Parquet and as CSV."""
    hin = powerlaw(edges)
    for suffix in SUFFIXES:
        write_tables(hin, folder / suffix[1:], suffix)


def run_measured(*command: object) -> dict[str, float]:
    """Run a process; return its wall seconds, CPU seconds and peak memory in MiB."""
    began = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, *map(str, command)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{command} failed")
    seconds, cpu_seconds = time.perf_counter() - began, usage.ru_utime + usage.ru_stime
    return {"seconds": round(seconds, 1), "cpu_seconds": round(cpu_seconds, 1), "peak_mib": usage.ru_maxrss // 1024}


def measure_opening(stores: list[tuple[Path, Path]], rounds: int) -> None:
    """Open, describe and search stores, each with the neupath of its folder, in turns; print the medians."""
    times: dict[tuple[str, Path], list[tuple[float, float]]] = {}
    for _ in range(rounds + 1):  # the first warms caches up
        for source, store in stores:
            for step, arguments in _opening_steps(store).items():
                times.setdefault((step, source), []).append(_time_step(source, *arguments))
    for (step, source), pairs in times.items():
        seconds, cpu_seconds = (round(statistics.median(each), 4) for each in zip(*pairs[1:], strict=True))
        print(json.dumps({"step": step, "src": str(source), "seconds": seconds, "cpu_seconds": cpu_seconds}))


def _opening_steps(store: Path) -> dict[str, tuple[object, ...]]:
    command = ("-m", "neupath.cli")
    return {
        "open": ("-c", OPEN, store),
        "info": (*command, "info", store),
        "first query": (*command, "search", store, "author7", "--metapath", "author-paper-author"),
    }


def _time_step(source: Path, *command: object) -> tuple[float, float]:
    """Run a process with the neupath of a folder; return seconds and CPU seconds, those that it prints if any."""
    environment = {**os.environ, "PYTHONPATH": str(source), "PYTHONDONTWRITEBYTECODE": ""}
    began = time.perf_counter()
    process = subprocess.Popen([sys.executable, *map(str, command)], env=environment, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    printed = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{command} failed")
    if command[0] == "-c":
        seconds, cpu_seconds = map(float, printed.split())
        return seconds, cpu_seconds
    return time.perf_counter() - began, usage.ru_utime + usage.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--edges", type=float, default=1e7)
    parser.add_argument("--memory-limit", default="256MiB")
    parser.add_argument("--whole", action=argparse.BooleanOptionalAction, default=True, help="import in memory as well")
    parser.add_argument("--make", type=Path, help="only write the tables, to this folder")
    parser.add_argument("--keep", type=Path, help="keep the tables and stores in this new folder")
    parser.add_argument("--open", type=Path, metavar="STORE", help="only open, describe and search a store")
    parser.add_argument(
        "--against", type=Path, nargs=2, action="append", default=[], metavar=("SRC", "OTHER"), help="another neupath"
    )
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    if options.open:
        own = Path(__file__).parents[1] / "src", options.open
        measure_opening([own, *map(tuple, options.against)], options.rounds)
        return
    if options.make:
        make(int(options.edges), options.make)
        return
    if options.keep:
        options.keep.mkdir()
    with nullcontext(options.keep) if options.keep else TemporaryDirectory() as parent:
        # a process inherits its parent's peak memory, so this process must stay small
        run_measured(__file__, "--make", parent, "--edges", options.edges)
        for suffix in SUFFIXES:
            measure(Path(parent) / suffix[1:], options.memory_limit, options.whole)


def measure(folder: Path, limit: str, whole: bool) -> None:
    """Import tables out of core and in memory, compare the stores, and search the first."""
    store, other = folder.with_suffix(".store"), folder.with_suffix(".whole")
    size = sum(path.stat().st_size for path in folder.iterdir()) / 2**20
    print(json.dumps({"tables": folder.name, "mib": round(size), "limit": limit}), flush=True)
    command = ("-m", "neupath.cli")
    steps: dict[str, tuple[object, ...]] = {
        "import": (*command, "import", folder, "--to", store, "--memory-limit", limit),
        "whole": ("-c", WHOLE, folder, other),
        "same": ("-c", SAME, store, other),
        **_opening_steps(store),
    }
    for step, arguments in steps.items():
        if whole or step not in ("whole", "same"):
            print(json.dumps({"step": step, **run_measured(*arguments)}), flush=True)


if __name__ == "__main__":
    main()

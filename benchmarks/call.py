"""Measure what a user's call costs: one search through the public API, the first calls of a process, and start-up.

    python benchmarks/call.py [calls] [first] [start-up] [--data DATA] [--rounds 15] [--out FILE]

`calls` times `PathSim(path).fit(hin).top_k(query)` by id and by name, without and with reading the ids of the hits,
beside the compiled kernel alone with everything prepared, and beside ten lines of scipy that return ids and scores.
All run in interleaved rounds on one thread; the median of the rounds is reported, in CPU time of the thread, so that
other programs disturb it little. Before, all must return the same scores.

`first` times the first calls of a fresh process, where numba has compiled and cached the kernels before, or has not, in
CPU time of the process with all its threads.

`start-up` runs commands ten times each, in turns with an import of numpy and scipy.sparse alone.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import neupath as npth
from neupath import HIN
from neupath.engine import index_kernels, product_kernels
from neupath.engine.formula import Normalisation, formula_of
from neupath.engine.index import index_of
from neupath.engine.products import Factors
from neupath.engine.topk import borrow_scratch

K, QUERIES = 10, 200
DICE = formula_of(Normalisation.DICE)
HEAVY = 2000
"""The additions of an average query from which on the engine takes its index, as in `neupath.engine.topk`."""


# ---- Calls ---------------------------------------------------------------------------------------
class Case:
    """A graph and a meta-path: the queries, and the contenders that answer one of them."""

    def __init__(self, name: str, hin: HIN, path: str) -> None:
        self.name, self.path = name, path
        self.scorer = npth.PathSim(path).fit(hin)
        factors = self.scorer.factors_
        if not isinstance(factors, Factors):
            raise MemoryError(f"the half-path matrix of {path} on {name} does not fit into memory")
        self.factors, self.nodes = factors, hin.nodes[self.scorer.source_type]
        related = np.flatnonzero(np.diff(factors.left.indptr) > 0)
        self.rows = np.random.default_rng(0).choice(related, min(QUERIES, len(related)), replace=False).tolist()
        self.ids = [self.nodes.id(row) for row in self.rows]
        self.id_array = self.nodes.ids.to_numpy(zero_copy_only=False)
        self.row_of = {node_id: row for row, node_id in enumerate(self.id_array.tolist())}
        every = [] if self.nodes.names is None else self.nodes.names.to_pylist()
        count = {name: every.count(name) for name in {every[row] for row in self.rows if every}}
        self.names = [every[row] for row in self.rows if every and every[row] and count[every[row]] == 1]

    def by_scipy(self, query: Any) -> tuple[Any, Any]:
        """Return the ids and scores of the K best, as a user would write it with scipy."""
        x, norms = self.row_of[query], self.factors.left_norms
        products = self.factors.left[[x]] @ self.factors.right
        targets, m = products.indices, products.data
        scores = 2 * m / (norms[x] + norms[targets])
        scores[targets == x] = -1
        best = np.argpartition(-scores, K - 1)[:K] if len(scores) > K else np.arange(len(scores))
        best = best[np.argsort(-scores[best])]
        best = best[scores[best] > 0]
        return self.id_array[targets[best]], scores[best]

    def kernel(self) -> Callable[[int], Any]:
        """Return the compiled search for one query, given as a row, with all its arrays prepared."""
        factors = self.factors
        if factors.work >= HEAVY:
            return self._index_kernel()
        width = len(factors.right_norms)
        queries = {row: np.array([row]) for row in self.rows}
        best = np.empty((1, min(K, width)), dtype=np.int64), np.empty((1, min(K, width)))
        prepared = np.zeros(0, dtype=np.bool_), borrow_scratch(width), *best

        def search(row: int) -> Any:
            return product_kernels.top_k(*factors.arrays, DICE, queries[row], queries[row], *prepared)

        return search

    def _index_kernel(self) -> Callable[[int], Any]:
        index = index_of(self.factors)
        scratch = borrow_scratch(index.num_labels)
        ends = np.empty(index.widest, dtype=np.int64), np.empty(index.widest, dtype=np.int64)
        groups = {row: index.group_of[[row]] for row in self.rows}
        best = np.empty((1, K + 1), dtype=np.int64), np.empty((1, K + 1))
        state, targets = (*scratch[:2], *ends), index.targets(K + 1)

        def search(row: int) -> Any:
            return index_kernels.rank_groups(
                index.left, index.left_norms, index.postings, targets, DICE, True, groups[row], state, *best
            )

        return search

    def contenders(self) -> dict[str, tuple[Callable[[Any], Any], list[Any]]]:
        """Return each way to answer, and its queries."""
        top_k = self.scorer.top_k
        ways: dict[str, tuple[Callable[[Any], Any], list[Any]]] = {
            "kernel": (self.kernel(), self.rows),
            "top_k(id)": (top_k, self.ids),
            "top_k(id).ids": (lambda query: top_k(query).ids, self.ids),
        }
        if isinstance(self.ids[0], int):
            ways["top_k(text)"] = top_k, list(map(str, self.ids))
            ways["top_k(numpy)"] = top_k, list(np.array(self.ids))
        if self.names:
            ways["top_k(name)"] = top_k, self.names
        return ways | {"scipy": (self.by_scipy, self.ids)}

    def check(self) -> None:
        """Raise unless scipy's scores are those of the public call."""
        for query in self.ids:
            hits, (_, scores) = self.scorer.top_k(query), self.by_scipy(query)
            np.testing.assert_allclose(hits.scores, scores, rtol=1e-12)


def cases_of(data: Path | None) -> Iterator[Case]:
    yield Case("stdlib", npth.load("stdlib"), "class-method-class")
    if data is not None:
        from neupath_paper.protocol import load_graph

        imdb, kg20c, hetionet = load_graph("imdb", data), load_graph("kg20c", data), npth.load(data / "hetionet")
        yield Case("imdb", imdb, "MAM")
        yield Case("kg20c", kg20c, "APA")
        yield Case("kg20c", kg20c, "APCPA")
        yield Case("hetionet", hetionet, "Disease-Gene-Disease")
        yield Case("hetionet", hetionet, "Gene-Anatomy-Gene")


def measure_calls(case: Case, rounds: int) -> dict[str, Any]:
    """Return the median microseconds of a call, by contender."""
    ways = case.contenders()
    for search, queries in ways.values():  # ids and names are hashed, the index is built
        for query in queries:
            search(query)
    case.check()
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, (search, queries) in ways.items():
            began = time.thread_time()
            for query in queries:
                search(query)
            times[name].append((time.thread_time() - began) / len(queries) * 1e6)
    return {"graph": case.name, "path": case.path, "us": {name: median(values) for name, values in times.items()}}


def show_calls(results: list[dict[str, Any]]) -> str:
    lines = [
        "| graph, meta-path | kernel, µs | top_k(id) | with its ids | id as text | id of numpy | top_k(name) | "
        "scipy, µs | id / kernel | name / kernel | scipy / id | scipy / name |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for result in results:
        us = result["us"]
        ways = ("kernel", "top_k(id)", "top_k(id).ids", "top_k(text)", "top_k(numpy)", "top_k(name)", "scipy")
        kernel, by_id, ids, text, numpy_id, name, scipy = map(us.get, ways)
        cells = [kernel, by_id, ids, text, numpy_id, name, scipy, by_id / kernel, name and name / kernel, scipy / by_id]
        cells += [name and scipy / name]
        lines.append(f"| {result['graph']}, {result['path']} | " + " | ".join(map(_cell, cells)) + " |")
    return "\n".join(lines)


def _cell(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"


# ---- The first calls of a process ----------------------------------------------------------------
FIRST = """
import time
import neupath as npth
hin = npth.load("stdlib")
scorer = npth.PathSim("class-method-class")
began = time.process_time()
scorer.fit(hin)
fitted = time.process_time()
queries = hin.nodes["class"].ids.to_pylist()[:1000]
ends = []
for query in queries:
    scorer.top_k(query)
    ends.append(time.process_time())
print(fitted - began, ends[0] - fitted, ends[9] - fitted, ends[-1] - fitted, ends[-1] - ends[-101])
"""


def measure_first(rounds: int) -> dict[str, list[float]]:
    """Return the seconds of fit, of the first 1, 10 and 1,000 calls, and of the last 100: with and without a cache."""
    runs: dict[str, list[list[float]]] = {"compiled before": [], "not yet compiled": []}
    for _ in range(rounds):
        with TemporaryDirectory() as folder:
            for name in reversed(runs):
                environment = os.environ | {"NUMBA_CACHE_DIR": folder}
                process = subprocess.run(
                    [sys.executable, "-c", FIRST], capture_output=True, text=True, check=True, env=environment
                )
                runs[name].append([float(text) for text in process.stdout.split()])
    return {name: [median(column) for column in zip(*rows, strict=True)] for name, rows in runs.items()}


def show_first(result: dict[str, list[float]]) -> str:
    lines = ["| kernels | fit, ms | first call, ms | first 10, ms | first 1,000, ms | a call of the last 100, µs |"]
    lines.append("|---|---:|---:|---:|---:|---:|")
    for name, (fit, one, ten, thousand, last) in result.items():
        cells = fit * 1e3, one * 1e3, ten * 1e3, thousand * 1e3, last * 1e4
        lines.append(f"| {name} | " + " | ".join(f"{cell:.1f}" for cell in cells) + " |")
    return "\n".join(lines)


# ---- Start-up ------------------------------------------------------------------------------------
COMMANDS = {
    "python -c 'import numpy, scipy.sparse'": ["-c", "import numpy, scipy.sparse"],
    "neupath --help": ["-m", "neupath.cli", "--help"],
    "neupath search toy Mike -p APVPA": ["-m", "neupath.cli", "search", "toy", "Mike", "-p", "APVPA"],
    "neupath explain toy Mike Mary -p APVPA": ["-m", "neupath.cli", "explain", "toy", "Mike", "Mary", "-p", "APVPA"],
}


def measure_start_up(runs: int) -> dict[str, tuple[float, float]]:
    """Return the median seconds of each command, elapsed and of CPU time."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in COMMANDS}
    for number in range(runs + 1):
        for name, arguments in COMMANDS.items():
            began, before = time.perf_counter(), os.times()
            subprocess.run([sys.executable, *arguments], capture_output=True, check=True, env=environment)
            after = os.times()
            used = after.children_user + after.children_system - before.children_user - before.children_system
            if number:  # the first run writes bytecode
                times[name].append((time.perf_counter() - began, used))
    return {name: (median(t for t, _ in values), median(t for _, t in values)) for name, values in times.items()}


def show_start_up(result: dict[str, tuple[float, float]]) -> str:
    base = next(iter(result.values()))
    lines = ["| command | elapsed, s | CPU, s | times numpy and scipy (CPU) |", "|---|---:|---:|---:|"]
    for name, (elapsed, used) in result.items():
        lines.append(f"| `{name}` | {elapsed:.2f} | {used:.2f} | {used / base[1]:.2f} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", default=["calls", "first", "start-up"], metavar="PART")
    parser.add_argument("--data", default=os.environ.get("NEUPATH_DATA"))
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--out", type=Path, default=None, help="write the figures to this JSON file, too")
    arguments = parser.parse_args()
    figures: dict[str, Any] = {}
    if "calls" in arguments.parts:
        data = Path(arguments.data) if arguments.data else None
        figures["calls"] = [measure_calls(case, arguments.rounds) for case in cases_of(data)]
        print(show_calls(figures["calls"]), end="\n\n", flush=True)
    if "first" in arguments.parts:
        figures["first"] = measure_first(3)
        print(show_first(figures["first"]), end="\n\n", flush=True)
    if "start-up" in arguments.parts:
        figures["start-up"] = measure_start_up(10)
        print(show_start_up(figures["start-up"]), flush=True)
    if arguments.out is not None:
        arguments.out.write_text(json.dumps(figures, indent=2), encoding="utf-8")


if __name__ == "__main__":
    main()

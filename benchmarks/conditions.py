"""What conditions cost: meta-paths with and without them in one run, the first call and later ones.

Times are those of the processor, the least of some rounds in which all paths take turns, so that other work on the
machine counts little. "first" fits PathSim or PathCount to a graph whose cache is empty, "again" to one whose cache is
full, and "query" is the median of a search for 10 hits. "kept" is the share of the path's edges that count.

python benchmarks/conditions.py --data DATA                    imdb, hetionet, and a graph of 1e7 edges
python benchmarks/conditions.py --data DATA --edges 1e6        with a smaller one
"""

import argparse
import os
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa

import neupath as npth
from neupath import HIN
from neupath.engine.cache import graph_cache
from neupath.engine.products import adjacency
from neupath.graph.hin import Edges
from neupath.measures.path_measure import PathMeasure

sys.path.insert(0, str(Path(__file__).parent))
from powerlaw import powerlaw

PATHS = {
    "imdb": [
        ("pathcount", "movie-actor-movie"),
        ("pathcount", "movie[year >= 2000]-actor-movie"),
        ("pathsim", "movie-actor-movie"),
        ("pathsim", "movie[year >= 2000]-actor-movie[year >= 2000]"),
    ],
    "hetionet": [
        ("pathsim", "Disease-Gene-Disease"),
        ("pathsim", "Disease-Gene{TP53}-Disease"),
        ("pathsim", "Compound-Gene-Anatomy-Gene-Compound"),
        ("pathsim", "Compound-Gene{TP53}-Anatomy-Gene{TP53}-Compound"),
    ],
    "powerlaw": [
        ("pathsim", "author-paper-author"),
        ("pathsim", "author-paper[year >= 2015 and year <= 2020]-author"),
        (
            "pathsim",
            "author -writes[day >= 2015-01-01 and day < 2021-01-01]-> paper "
            "<-writes[day >= 2015-01-01 and day < 2021-01-01]- author",
        ),
        ("pathsim", "author-paper[weight: decay(year, 2024, 5)]-author"),
        ("pathsim", "author-paper-venue-paper-author"),
        ("pathsim", "author-paper[year >= 2015 and year <= 2020]-venue-paper[year >= 2015 and year <= 2020]-author"),
    ],
}


def timed(call: Callable[[], Any]) -> float:
    began = time.process_time()
    call()
    return time.process_time() - began


def with_times(hin: HIN, seed: int = 0) -> HIN:
    """Return a graph whose papers have a year, and whose edges to authors have a day, of 2000 to 2024."""
    rng = np.random.default_rng(seed)
    years = pa.table({"year": rng.integers(2000, 2025, hin.num_nodes("paper"))})
    nodes = MappingProxyType({**hin.nodes, "paper": replace(hin.nodes["paper"], attributes=years, distinct=True)})
    writes = hin.schema.relations[0]
    entries = hin.matrices[writes].tocoo()
    first = (date(2000, 1, 1) - date(1970, 1, 1)).days
    days = pa.array(rng.integers(first, first + 25 * 365, entries.nnz).astype(np.int32), pa.date32())
    ends = entries.row.astype(np.int64), entries.col.astype(np.int64)
    return replace(hin, nodes=nodes, edge_tables={writes: Edges(writes, *ends, entries.data, pa.table({"day": days}))})


def fit(hin: HIN, measure: str, path: str) -> PathMeasure:
    return npth.measures.measure_named(measure, hin.metapath(path)).fit(hin)


def first_and_again(hin: HIN, measure: str, path: str) -> tuple[float, float]:
    graph_cache(hin).clear()
    return timed(lambda: fit(hin, measure, path)), timed(lambda: fit(hin, measure, path))


def median_query(scorer: PathMeasure, queries: Sequence[Any]) -> float:
    return statistics.median(timed(partial(scorer.top_k, query, 10)) for query in queries)


def share_kept(hin: HIN, path: str) -> float:
    steps = hin.metapath(path).steps
    plain = sum(adjacency(hin, step).nnz for step in hin.metapath(path).plain().steps)
    return sum(adjacency(hin, step).nnz for step in steps) / plain


def run(name: str, hin: HIN, rounds: int) -> None:
    print(f"\n{name}\n{'first':>10} {'again':>9} {'query':>9} {'kept':>7}  measure, meta-path")
    cases = PATHS[name]
    times: list[list[tuple[float, float]]] = [[] for _ in cases]
    for _ in range(rounds):
        for own, case in zip(times, cases, strict=True):
            own.append(first_and_again(hin, *case))
    rng = np.random.default_rng(0)
    for own, (measure, path) in zip(times, cases, strict=True):
        scorer = fit(hin, measure, path)
        ids = hin.nodes[scorer.source_type].ids
        queries = [ids[int(row)].as_py() for row in rng.integers(len(ids), size=200)]
        scorer.top_k(queries[:10])  # loads the kernels
        median_query(scorer, queries[:40])
        first, again = (min(each) for each in zip(*own, strict=True))
        figures = f"{1e3 * first:7.1f} ms {1e6 * again:6.0f} µs {1e6 * median_query(scorer, queries):6.0f} µs"
        print(f"{figures} {100 * share_kept(hin, path):5.1f} %  {measure}, {path}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=os.environ.get("NEUPATH_DATA"), help="the folder of imdb and hetionet")
    parser.add_argument("--edges", type=float, default=1e7, help="edges of the graph of a power law")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    for name in ("imdb", "hetionet"):
        run(name, npth.load(name, data=options.data), options.rounds)
    run("powerlaw", with_times(powerlaw(int(options.edges))), options.rounds)


if __name__ == "__main__":
    main()

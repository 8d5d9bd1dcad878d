"""Measure what sets, exclusions and diversity cost, beside the search for one node.

    python benchmarks/sets.py --data DATA [--rounds 9] [--graphs imdb,hetionet]

For each graph and meta-path, a search for one node, for sets of 1, 5 and 100 members (their mean, and with half of the
weights negative), for one node without what another meta-path relates to it, and for diverse hits. All go through
`Scorer.top_k`, k = 10, and run in interleaved rounds on one thread over the same queries, with kernels compiled and the
index built; the median of the rounds is reported, in microseconds of CPU time of the thread, and its ratio to one node.
"""

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import neupath as npth
from neupath import HIN
from neupath.engine.topk import load_kernels
from neupath_paper.protocol import load_graph

CASES = {
    "imdb": [("movie-actor-movie", "movie-director-movie")],
    "hetionet": [("Disease-Gene-Disease", "Disease-Symptom-Disease"), ("Gene-Anatomy-Gene", "Gene-Disease-Gene")],
}
QUERIES, K, WARM_UP = 20, 10, 3


def ways_to_search(hin: HIN, path: str, unless: str) -> dict[str, Callable[[int], Any]]:
    """Return each way to search, given the number of a query."""
    scorer = npth.PathSim(path).fit(hin)
    factors: Any = scorer.factors_
    related = np.flatnonzero(np.diff(factors.left.indptr) > 0)
    nodes = hin.nodes[scorer.source_type]
    rng = np.random.default_rng(0)

    def draw(size: int) -> list[list[Any]]:
        some = [rng.choice(related, min(size, len(related)), replace=False) for _ in range(QUERIES)]
        return [[nodes.id(row) for row in rows.tolist()] for rows in some]

    ways: dict[str, Callable[[int], Any]] = {}
    alone = [ids[0] for ids in draw(1)]
    ways["one node"] = lambda q: scorer.top_k(alone[q], K)
    for size in (1, 5, 100):
        members = draw(size)
        ways[f"set of {size}"] = lambda q, members=members: scorer.top_k(members[q], K, together=True)  # type: ignore[misc]
        if size > 1:
            signed = [{node: (-1.0) ** i for i, node in enumerate(ids)} for ids in members]
            ways[f"set of {size}, half negative"] = lambda q, signed=signed: scorer.top_k(signed[q], K)  # type: ignore[misc]
    ways[f"unless {unless}"] = lambda q: scorer.top_k(alone[q], K, unless=unless)
    ways["diverse 0.5"] = lambda q: scorer.top_k(alone[q], K, diverse=0.5)
    return ways


def measure(ways: dict[str, Callable[[int], Any]], rounds: int) -> dict[str, float]:
    """Return the median microseconds of a search, by way."""
    times: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(WARM_UP + rounds):
        for name, search in ways.items():
            began = time.thread_time()
            for q in range(QUERIES):
                search(q)
            if turn >= WARM_UP:
                times[name].append((time.thread_time() - began) / QUERIES * 1e6)
    return {name: median(values) for name, values in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the folder that holds imdb and hetionet")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--graphs", default="imdb,hetionet")
    options = parser.parse_args()
    load_kernels()
    print("| graph, meta-path | search | µs | to one node |")
    print("|---|---|---:|---:|")
    for graph in options.graphs.split(","):
        hin = npth.load(options.data / graph) if graph == "hetionet" else load_graph(graph, options.data)
        for path, unless in CASES[graph]:
            times = measure(ways_to_search(hin, path, unless), options.rounds)
            for name, value in times.items():
                print(f"| {graph}, {path} | {name} | {value:,.1f} | {value / times['one node']:.2f} |", flush=True)


if __name__ == "__main__":
    main()

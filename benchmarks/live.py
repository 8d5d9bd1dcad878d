"""What one changed edge costs a live graph, beside a rebuild, and what its records cost the queries.

`python benchmarks/live.py` measures both, interleaved in one process, at a million edges.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable

import numpy as np
from powerlaw import powerlaw

from neupath import HIN, Edges, PathSim
from neupath.live import LiveGraph

PATHS = ("author-paper-author", "author-paper-venue-paper-author")
WARM = 3000
"""Edges before the others, in which rows of hubs are copied once; the first 50 compile."""
SHARES = (0.01, 0.05, 0.2)


def timed(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def rebuild(hin: HIN, path: str) -> PathSim:
    """Make the graph and its half-path matrix from edges, as a change would need without a live graph."""
    edges = []
    for relation, matrix in hin.matrices.items():
        entries = matrix.tocoo()
        edges.append(Edges(relation, entries.row.astype(np.int64), entries.col.astype(np.int64), entries.data))
    return PathSim(path).fit(HIN.build(list(hin.nodes.values()), edges))


def random_edges(hin: HIN, rng: np.random.Generator, count: int) -> list[tuple[object, int, int, float]]:
    """Draw edges author-paper as the graph has them: ends of its own edges, and a weight that adds or removes."""
    writes = hin.schema.relations[0]
    entries = hin.matrices[writes].tocoo()
    sources = entries.row[rng.integers(0, entries.nnz, count)].tolist()
    targets = entries.col[rng.integers(0, entries.nnz, count)].tolist()
    weights = rng.integers(0, 3, count).astype(float).tolist()
    return [(writes, *edge) for edge in zip(sources, targets, weights, strict=True)]


def measure_cost(hin: HIN, path: str, rounds: int, rng: np.random.Generator) -> dict[str, object]:
    """Time single edges and rebuilds in turn."""
    live = LiveGraph(hin, share=float("inf"))
    live.fit(PathSim(path))
    first = [timed(lambda edge=edge: live.put([edge])) for edge in random_edges(hin, rng, WARM)]  # type: ignore[misc]
    edge_times, rebuild_times = [], []
    for _ in range(rounds):
        edges = random_edges(hin, rng, 200)
        edge_times += [timed(lambda edge=edge: live.put([edge])) for edge in edges]  # type: ignore[misc]
        rebuild_times.append(timed(lambda: rebuild(hin, path)))
    edge_time, rebuild_time = statistics.median(edge_times), statistics.median(rebuild_times)
    return {
        "path": path,
        "first_edges_us_mean": round(statistics.mean(first[50:]) * 1e6, 1),
        "edge_us_p50": round(edge_time * 1e6, 1),
        "edge_us_mean": round(statistics.mean(edge_times) * 1e6, 1),
        "edge_us_p99": round(float(np.quantile(edge_times, 0.99)) * 1e6, 1),
        "rebuild_ms": round(rebuild_time * 1e3, 1),
        "times_cheaper_p50": round(rebuild_time / edge_time),
        "times_cheaper_mean": round(rebuild_time / statistics.mean(edge_times)),
    }


def measure_queries(hin: HIN, path: str, queries: int, rng: np.random.Generator) -> list[dict[str, object]]:
    """Time queries over the records beside the same ones over a rebuilt graph, one after the other."""
    found: list[dict[str, object]] = []
    live = LiveGraph(hin, share=float("inf"))
    live.fit(PathSim(path))
    for share in SHARES:
        while live.share < share:
            live.put(random_edges(hin, rng, 200))
        view = live.view()
        over, fresh = view.fit(PathSim(path)), rebuild(view.hin, path)
        rows = rng.choice(hin.num_nodes("author"), queries, replace=False)
        both: tuple[list[float], list[float]] = ([], [])
        for row in rows:
            given = np.array([row])
            for times, scorer in zip(both, (over, fresh), strict=True):
                times.append(timed(lambda s=scorer, g=given: s.rank_rows(g, g, 10, None, 1)))  # type: ignore[misc]
        live_ms, rebuilt_ms = (statistics.mean(times) * 1e3 for times in both)
        found.append(
            {
                "path": path,
                "share": share,
                "live_ms": round(live_ms, 4),
                "rebuilt_ms": round(rebuilt_ms, 4),
                "times": round(live_ms / rebuilt_ms, 2),
            }
        )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--edges", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--queries", type=int, default=500)
    options = parser.parse_args()
    hin = powerlaw(options.edges)
    rng = np.random.default_rng(0)
    for path in PATHS:
        print(json.dumps(measure_cost(hin, path, options.rounds, rng)))
    for path in PATHS:
        for row in measure_queries(hin, path, options.queries, rng):
            print(json.dumps(row))


if __name__ == "__main__":
    main()

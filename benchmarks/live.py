"""Compare updating a live graph by one edge with a rebuild, and measure what rows that changed cost queries.

`python benchmarks/live.py` measures this interleaved in one process, at a million edges, and prints one JSON object per
line, with the share of changed rows at which compaction pays; `--figure docs/live.svg` draws the query times.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from powerlaw import powerlaw

from neupath import HIN, PathSim
from neupath._runtime.files import write_whole
from neupath.engine.scorer import RowChange, RowEdge, Scorer
from neupath.engine.topk import load_kernels
from neupath.graph.hin import Edges
from neupath.live import LiveGraph
from neupath.live.live_graph import COMPACTION_SHARE

PATHS = ("author-paper-author", "author-paper-venue-paper-author")
WARM = 100
"""Edges written before timing."""
CLOCKS: dict[str, Callable[[], float]] = {"wall": time.perf_counter, "processor": time.thread_time}
"""CPU time leaves out other programs' work."""
SHARES = (0.05, 0.1, 0.2, 0.4)
PARTS = 5
"""Groups of queries; the figure shows the deviation between them."""
TURNS = 3
"""Repeats of each query, live and rebuilt in turn; the best counts, because the machine has other work."""


@dataclass(frozen=True)
class Cost:
    """Seconds of queries and of a compaction, at some share of entries in rows that changed."""

    path: str
    share: float
    live: tuple[float, ...]
    rebuilt: tuple[float, ...]
    compaction: float
    size: int

    @property
    def times(self) -> float:
        return statistics.mean(self.live) / statistics.mean(self.rebuilt)


def timed(work: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    start = clock()
    work()
    return clock() - start


def rebuild(hin: HIN, path: str) -> PathSim:
    """Build the graph and its half-path matrix from edges, as every change would require without a live graph."""
    edges = []
    for relation, matrix in hin.matrices.items():
        entries = matrix.tocoo()
        edges.append(Edges(relation, entries.row.astype(np.int64), entries.col.astype(np.int64), entries.data))
    return PathSim(path).fit(HIN.build(list(hin.nodes.values()), edges))


def random_edges(hin: HIN, rng: np.random.Generator, count: int) -> list[RowEdge]:
    """Draw edges author-paper, their ends by degree, and a weight that sets or removes the edge."""
    writes = hin.schema.relations[0]
    entries = hin.matrices[writes].tocoo()
    sources = entries.row[rng.integers(0, entries.nnz, count)].tolist()
    targets = entries.col[rng.integers(0, entries.nnz, count)].tolist()
    weights = rng.integers(0, 3, count).astype(float).tolist()
    return [(writes, *edge) for edge in zip(sources, targets, weights, strict=True)]


def measure_edges(hin: HIN, path: str, rounds: int, rng: np.random.Generator, clock: str) -> dict[str, object]:
    """Time single edges and rebuilds in turn, by one of the clocks."""
    time_of = CLOCKS[clock]
    live, measure = LiveGraph(hin, compaction_share=float("inf")), PathSim(path)
    live.attach(measure)

    def put(edge: RowEdge) -> float:
        return timed(lambda: live.apply(RowChange(live.view().version + 1, [edge])), time_of)

    def search() -> float:
        """Time the first search of a version, which sorts out what all its searches need."""
        row = np.array([rng.integers(hin.num_nodes("author"))])
        return timed(lambda: live.view().scorer(measure).rank_rows(row, row, 10, None, 1), time_of)

    first = [put(edge) for edge in random_edges(hin, rng, WARM)]
    edge_times, search_times, rebuild_times = [], [], []
    live.compact()
    for _ in range(rounds):
        for edge in random_edges(hin, rng, 100):
            edge_times.append(put(edge))
            search_times.append(search())
        live.compact()
        rebuild_times.append(timed(lambda: rebuild(hin, path), time_of))
    edge_time, rebuild_time = statistics.median(edge_times), statistics.median(rebuild_times)
    return {
        "path": path,
        "clock": clock,
        "first_edges_us_mean": round(statistics.mean(first) * 1e6, 1),
        "edge_us_p50": round(edge_time * 1e6, 1),
        "edge_us_mean": round(statistics.mean(edge_times) * 1e6, 1),
        "edge_us_p99": round(float(np.quantile(edge_times, 0.99)) * 1e6, 1),
        "first_search_us_p50": round(statistics.median(search_times) * 1e6, 1),
        "first_search_us_mean": round(statistics.mean(search_times) * 1e6, 1),
        "rebuild_ms_p50": round(rebuild_time * 1e3, 1),
        "rebuild_ms_mean": round(statistics.mean(rebuild_times) * 1e3, 1),
        "times_cheaper_p50": round(rebuild_time / edge_time),
        "times_cheaper_mean": round(statistics.mean(rebuild_times) / statistics.mean(edge_times)),
    }


def time_query(scorer: Scorer, row: int) -> float:
    """Time one query without an index, because a live graph has none."""
    if isinstance(scorer, PathSim):
        scorer.factors_.answered = 0  # type: ignore[union-attr]
    rows = np.array([row])
    return timed(lambda: scorer.rank_rows(rows, rows, 10, None, 1))


def best_times(scorers: Sequence[Scorer], rows: Sequence[int]) -> list[list[float]]:
    """Time each query with every scorer in turn, TURNS times, and keep the best of each."""
    turns = ([[time_query(scorer, row) for scorer in scorers] for _ in range(TURNS)] for row in rows)
    best = [[min(times) for times in zip(*turn, strict=True)] for turn in turns]
    return [list(times) for times in zip(*best, strict=True)]


def measure_share(live: LiveGraph, path: str, share: float, queries: int, rng: np.random.Generator) -> Cost:
    """Change edges up to a share of rows; time queries on the live and on the rebuilt graph, and a compaction."""
    hin = live.view().hin
    while live.changed_share < share:
        live.apply(RowChange(live.view().version + 1, random_edges(hin, rng, 5)))
    view, share = live.view(), live.changed_share
    attached, rebuilt = view.scorer(PathSim(path)), rebuild(view.hin, path)
    rows = rng.choice(hin.num_nodes("author"), queries, replace=False).tolist()
    best_times((attached, rebuilt), rows[:50])
    parts = [
        [statistics.mean(times) for times in best_times((attached, rebuilt), rows[i::PARTS])] for i in range(PARTS)
    ]
    live_times, rebuilt_times = zip(*parts, strict=True)
    size = rebuilt.factors_.left.nnz  # type: ignore[union-attr]
    return Cost(path, share, live_times, rebuilt_times, timed(live.compact), size)


def best_share(costs: Sequence[Cost], queries_per_edge: float) -> float:
    """Return the share s that minimises C / (s·N) + q·t·a·s / 2, with a by least squares; see docs/live.md."""
    slope = float(np.polyfit([cost.share for cost in costs], [cost.times for cost in costs], 1)[0])
    query = statistics.mean(statistics.mean(cost.rebuilt) for cost in costs)
    compaction, size = (
        statistics.mean(values) for values in zip(*((c.compaction, c.size) for c in costs), strict=True)
    )
    return float(np.sqrt(2 * compaction / (size * queries_per_edge * query * slope)))


def draw(costs: Sequence[Cost], target: Path) -> None:
    """Draw query time relative to a rebuilt graph against the share of rows that changed."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    from neupath_paper.reports import COLOURS

    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "neupath", "font.size": 9}):
        figure = Figure(figsize=(6, 3.6), layout="constrained")
        axes = figure.add_subplot()
        for path, colour, mark in zip(PATHS, COLOURS, "os", strict=False):
            path_costs = [cost for cost in costs if cost.path == path]
            spread = [float(np.std(np.divide(cost.live, cost.rebuilt), ddof=1)) for cost in path_costs]
            percents, times = [100 * cost.share for cost in path_costs], [cost.times for cost in path_costs]
            axes.errorbar(percents, times, yerr=spread, color=colour, marker=mark, ms=4, capsize=2, label=path)
        axes.axhline(1.0, color=COLOURS[-1], linewidth=0.8, label="rebuilt")
        axes.axvline(100 * COMPACTION_SHARE, color=COLOURS[-1], linewidth=0.8, linestyle=":", label="compaction")
        axes.set_xscale("log")
        axes.set_xticks([100 * share for share in SHARES], [f"{100 * share:g}" for share in SHARES])
        axes.minorticks_off()
        axes.set(
            xlabel="entries of rows that changed (% of the base)",
            ylabel="time of a query (times rebuilt)",
            ylim=(0, None),
        )
        axes.grid(alpha=0.3)
        axes.legend(frameon=False, loc="lower right")
        write_whole(target, lambda temporary: figure.savefig(temporary, metadata={"Date": None}, facecolor="white"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--edges", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--queries", type=int, default=500, help="0 measures edges only")
    parser.add_argument("--load", type=float, default=1.0, help="queries per written edge")
    parser.add_argument("--figure", type=Path)
    options = parser.parse_args()
    load_kernels()
    hin = powerlaw(options.edges)
    rng = np.random.default_rng(0)
    for path in PATHS:
        for clock in CLOCKS:
            print(json.dumps(measure_edges(hin, path, options.rounds, rng, clock)), flush=True)
    all_costs: list[Cost] = []
    for path in PATHS if options.queries else ():
        live = LiveGraph(hin, compaction_share=float("inf"))
        live.attach(PathSim(path))
        costs = [measure_share(live, path, share, options.queries, rng) for share in SHARES]
        for cost in costs:
            print(json.dumps(asdict(cost) | {"times": round(cost.times, 2)}), flush=True)
        print(json.dumps({"path": path, "best_share": round(best_share(costs, options.load), 4)}), flush=True)
        all_costs += costs
    if options.figure:
        draw(all_costs, options.figure)


if __name__ == "__main__":
    main()

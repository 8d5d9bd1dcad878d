"""Measure how time and memory grow with the edges of a graph, and what a join's memory depends on.

    python benchmarks/growth.py [--edges 1e5,1e6,1e7] [--queries 20000] [--out FOLDER]

Each row is measured in its own process on the seeded power-law graph (`powerlaw.py`), because peak memory is per
process: `graph` is the memory once the graph is built, `join` the peak from then on, with the product, its index and
the top K of up to --queries random queries. Writes growth.json, growth.md and growth.svg to --out.
"""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

PATHS = {"APA": "author-paper-author", "APVPA": "author-paper-venue-paper-author"}
COLUMNS = {
    "edges": "edges", "path": "path", "k": "K", "block": "block", "queries": "queries", "entries": "W entries",
    "product_s": "W, s", "index_s": "index, s", "one_ms": "one query, ms", "join_s": "join, s",
    "graph_mib": "graph, MiB", "join_mib": "join, MiB",
}  # fmt: skip


def run(edges: int, path: str, k: int, block: int, max_queries: int) -> dict[str, Any]:
    """Measure one join in this process."""
    import numpy as np
    from powerlaw import powerlaw

    import neupath as npth
    from neupath.engine.index import index_of
    from neupath.engine.join import join
    from neupath.engine.products import Factors

    warm_up = npth.PathSim(PATHS[path]).fit(powerlaw(20_000))
    for count in (2000, 2000):  # compile the kernels
        warm_up.rank_rows(np.arange(count), np.arange(count), k, None, None)
    hin = powerlaw(edges)
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # reset the peak
    row: dict[str, Any] = {"edges": edges, "path": path, "k": k, "block": block, "graph_mib": _peak()}
    row["product_s"], scorer = _timed(lambda: npth.PathSim(PATHS[path]).fit(hin))
    assert isinstance(scorer.factors_, Factors)
    row["entries"] = int(scorer.factors_.left.nnz)
    rng = np.random.default_rng(0)
    queries = np.sort(rng.choice(hin.num_nodes("author"), min(max_queries, hin.num_nodes("author")), replace=False))
    row["queries"] = len(queries)
    if scorer.factors_.work >= 2000:
        row["index_s"], _ = _timed(lambda: index_of(scorer.factors_))
    single = queries[:: max(1, len(queries) // 40)]
    scorer.rank_rows(single[:1], single[:1], k, None, None)
    seconds, _ = _timed(lambda: [scorer.rank_rows(q[None], q[None], k, None, None) for q in single])
    row["one_ms"] = 1e3 * seconds / len(single)
    with TemporaryDirectory() as folder:
        out, ids = Path(folder) / "top.parquet", hin.nodes["author"].ids.take(queries).to_pylist()
        row["join_s"], _ = _timed(lambda: join(hin, scorer, out, k, queries=ids, block=block))
    return row | {"join_mib": _peak()}


def _peak() -> float:
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))


def _timed(work: Any) -> tuple[float, Any]:
    began = time.perf_counter()
    result = work()
    return time.perf_counter() - began, result


def show(results: list[dict[str, Any]]) -> str:
    """Format the results as a Markdown table."""
    lines = ["| " + " | ".join(COLUMNS.values()) + " |", "|" + "---|" * len(COLUMNS)]
    for result in results:
        cells = [result.get(name, "-") for name in COLUMNS]
        lines.append("| " + " | ".join(_plain(cell) for cell in cells) + " |")
    return "\n".join(lines)


def _plain(value: object) -> str:
    if isinstance(value, float) and value < 100:
        return f"{value:.3g}"
    return f"{value:,.0f}" if isinstance(value, (int, float)) else str(value)


def draw(results: list[dict[str, Any]], path: Path) -> None:
    """Draw the time of a query and the peak memory over the number of edges."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.8), layout="constrained")
    FigureCanvasAgg(figure)
    time_axes, memory_axes = figure.subplots(1, 2)
    marks = {"APA": ("o", "#0072B2"), "APVPA": ("s", "#D55E00")}
    for name, (mark, colour) in marks.items():
        rows = [r for r in results if r["path"] == name and (r["k"], r["block"]) == (10, 4096)]
        edges = [r["edges"] for r in rows]
        time_axes.plot(edges, [1e6 * r["join_s"] / r["queries"] for r in rows], f"{mark}-", color=colour,
                       label=f"{name}, many queries")  # fmt: skip
        time_axes.plot(edges, [1e3 * r["one_ms"] for r in rows], f"{mark}:", color=colour, label=f"{name}, one query")
        memory_axes.plot(edges, [r["join_mib"] for r in rows], f"{mark}-", color=colour, label=f"{name}, join")
        memory_axes.plot(edges, [r["graph_mib"] for r in rows], f"{mark}:", color=colour, label=f"{name}, graph alone")
    for axes, label in ((time_axes, "microseconds per query"), (memory_axes, "peak memory, MiB")):
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel("edges author-paper")
        axes.set_ylabel(label)
        axes.grid(alpha=0.3)
        axes.legend(fontsize=8)
    figure.savefig(path, dpi=140)


def main() -> None:
    """Measure each size in its own process."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--edges", default="1e5,1e6,1e7")
    parser.add_argument("--queries", type=int, default=20_000)
    parser.add_argument("--out", default=None)
    parser.add_argument("--one", default=None, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(run(**json.loads(arguments.one))))
        return
    sizes = [int(float(text)) for text in arguments.edges.split(",")]
    cases = [(size, path, 10, 4096) for size in sizes for path in PATHS]
    cases += [(max(sizes), "APA", k, block) for k, block in ((100, 4096), (10, 512), (10, 20_000), (100, 20_000))]
    results = []
    for edges, path, k, block in cases:
        settings = {"edges": edges, "path": path, "k": k, "block": block, "max_queries": arguments.queries}
        command = [sys.executable, __file__, "--one", json.dumps(settings)]
        results.append(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))
        print(json.dumps(results[-1]), file=sys.stderr, flush=True)
    print(show(results))
    if arguments.out:
        folder = Path(arguments.out)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "growth.json").write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
        (folder / "growth.md").write_text(show(results) + "\n", encoding="utf-8")
        draw(results, folder / "growth.svg")


if __name__ == "__main__":
    main()

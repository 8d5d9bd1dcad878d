"""What a join on a cluster of processes takes against one process with as many threads, and its memory.

    python benchmarks/cluster.py [--edges 1e5,1e6] [--paths APA,APVPA] [--workers 2] [--queries N] [--out FILE.json]
    python benchmarks/cluster.py --edges 1e7 --paths APAPA --queries 20000 --half --rounds 1      half of W's bytes each
    python benchmarks/cluster.py --edges 1e7 --paths APVPA --queries 20000 --total 4GiB --rounds 1  all processes, 4 GiB

Each row is a process of its own on the seeded power-law graph (`powerlaw.py`), written as Parquet tables and read back.
`local` and `cluster` are wall times of the product and the join, medians of interleaved rounds after both have compiled
what they need; `start` is that of the workers. Peaks are the highest resident memory of a process: of this one and of
the largest worker.
"""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

PATHS = {
    "APA": "author-paper-author",
    "APVPA": "author-paper-venue-paper-author",
    "APAPA": "author-paper-author-paper-author",
}
COLUMNS = {
    "edges": "edges", "path": "path", "queries": "queries", "load_s": "read, s", "entries": "W entries",
    "local_s": "local, s", "cluster_s": "cluster, s", "start_s": "start, s", "limit_mib": "limit a worker, MiB",
    "driver_mib": "this process, MiB", "worker_mib": "largest worker, MiB", "same": "same",
}  # fmt: skip


def run(edges: int, path: str, workers: int, most: int, half: bool, total: str | None, rounds: int) -> dict[str, Any]:
    """Measure one join on the cluster and, unless memory is limited, in this process."""
    import numpy as np

    from neupath import PathSim, join, load
    from neupath.chains import multiply_chain
    from neupath.cluster import Dask
    from neupath.cluster.workers import connect, parse_memory
    from neupath.halfpath import adjacencies

    found: dict[str, Any] = {"edges": edges, "path": path}
    with TemporaryDirectory() as name:
        folder = Path(name)
        subprocess.run([sys.executable, __file__, "--make", str(edges), str(folder / "graph")], check=True)
        found["load_s"], hin = _timed(lambda: load(folder / "graph"))
        every = hin.num_nodes("author")
        queries = np.sort(np.random.default_rng(0).choice(every, min(most, every), replace=False))
        found["queries"] = len(queries)
        limit = None if total is None else (int(parse_memory(total) or 0) - (1 << 30)) // workers
        if half:
            whole = multiply_chain(adjacencies(hin, hin.metapath(PATHS[path]).half()))[0]
            found["entries"], limit = int(whole.nnz), int(whole.nnz) * 12 // 2
            del whole
        found["limit_mib"] = "-" if limit is None else limit >> 20
        block = max(64, min(4096, len(queries) // (4 * workers)))
        options: dict[str, Any] = {"k": 10, "queries": queries, "block": block}
        here, there = folder / "here.parquet", folder / "there.parquet"
        _warm(join, PathSim)
        began = time.perf_counter()
        with connect(None, workers, limit, folder) as cluster:
            found["start_s"] = time.perf_counter() - began
            engine = Dask(cluster.client.scheduler.address)  # type: ignore[union-attr]
            _warm(join, PathSim, engine)
            times: dict[str, list[float]] = {"local_s": [], "cluster_s": []}
            for _ in range(rounds):
                if total is None:
                    alone = PathSim(PATHS[path])
                    times["local_s"].append(_join_here(alone, folder / "graph", here, workers, options))
                    found["entries"] = int(alone.factors_.left.nnz)  # type: ignore[union-attr]
                times["cluster_s"].append(_join_there(PathSim(PATHS[path]).bind(hin), there, engine, options))
            found |= {name: float(np.median(spent)) for name, spent in times.items() if spent}
            found["worker_mib"] = max(cluster.client.run(_peak).values())
        found["driver_mib"] = _peak()
        if total is None:
            found["same"] = here.read_bytes() == there.read_bytes()
    return found


def _join_here(measure: Any, graph: Path, out: Path, threads: int, options: dict[str, Any]) -> float:
    """Join in this process, over a graph of which nothing is known yet; return the seconds it took."""
    from neupath import join, load

    hin = load(graph)
    return _timed(lambda: join(measure.fit(hin), out, threads=threads, **options))[0]


def _join_there(bound: Any, out: Path, engine: Any, options: dict[str, Any]) -> float:
    from neupath import join

    return _timed(lambda: join(bound, out, engine=engine, progress=_told, **options))[0]


def _told(done: int, total: int) -> None:
    print(f"{done:,} of {total:,}", end="\r", file=sys.stderr, flush=True)


def _warm(join: Any, measure: Any, engine: Any = None) -> None:
    """Compile what is to be compiled, here or on every worker."""
    import numpy as np
    from powerlaw import powerlaw

    hin = powerlaw(20_000)
    for name in ("APA", "APVPA"):
        with TemporaryDirectory() as folder:
            scorer = measure(PATHS[name]).fit(hin)
            join(scorer, Path(folder) / "warm.parquet", 10, queries=np.arange(2000), block=100, engine=engine)


def _peak() -> float:
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))


def _timed(work: Any) -> tuple[float, Any]:
    began = time.perf_counter()
    result = work()
    return time.perf_counter() - began, result


def make(edges: int, folder: str) -> None:
    """Write a graph as Parquet tables."""
    from powerlaw import powerlaw

    from neupath import write_folder

    write_folder(powerlaw(edges), folder)


def show(results: list[dict[str, Any]]) -> str:
    """Return the table."""
    lines = ["| " + " | ".join(COLUMNS.values()) + " |", "|" + "---|" * len(COLUMNS)]
    lines += ["| " + " | ".join(_plain(result.get(name, "-")) for name in COLUMNS) + " |" for result in results]
    return "\n".join(lines)


def _plain(value: object) -> str:
    if isinstance(value, float):
        return f"{value:,.2f}" if value < 100 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def main() -> None:
    """Measure each size in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--edges", default="1e5,1e6")
    parser.add_argument("--paths", default="APA,APVPA")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--queries", type=int, default=10**9)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--half", action="store_true")
    parser.add_argument("--total", default=None)
    parser.add_argument("--out", default=None)
    parser.add_argument("--one", default=None, help=argparse.SUPPRESS)
    parser.add_argument("--make", nargs=2, default=None, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.make:
        make(int(arguments.make[0]), arguments.make[1])
        return
    if arguments.one:
        print(json.dumps(run(**json.loads(arguments.one))))
        return
    results = []
    for edges in arguments.edges.split(","):
        for path in arguments.paths.split(","):
            asked = {
                "edges": int(float(edges)), "path": path, "workers": arguments.workers, "most": arguments.queries,
                "half": arguments.half, "total": arguments.total, "rounds": arguments.rounds,
            }  # fmt: skip
            command = [sys.executable, __file__, "--one", json.dumps(asked)]
            results.append(json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout))
            print(json.dumps(results[-1]), file=sys.stderr, flush=True)
    print(show(results))
    if arguments.out:
        Path(arguments.out).write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

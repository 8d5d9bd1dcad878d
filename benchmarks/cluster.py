"""Compare a join on a cluster of processes with one process and as many threads, in time and memory.

    python benchmarks/cluster.py [--edges 1e5,1e6] [--metapaths APA,APVPA] [--workers 2] [--queries N]
        [--out FILE.json]
    python benchmarks/cluster.py --edges 3e6 --metapaths APAPA --queries 500 --half    # half of W's bytes per worker
    python benchmarks/cluster.py --edges 1e7 --metapaths APVPA --queries 20000 --total 4GiB    # of all processes
    python benchmarks/cluster.py --fit FILE.json                 # the cost model of docs/scale.md

Each row is measured in its own process on the seeded power-law graph (`powerlaw.py`), written as Parquet tables in
parts and imported into a store by another process. `store` is the time to open that store, whose files are mapped, and
to join it on the workers; with --half or --total only this is measured. `local` and `cluster` are wall times of product
and join over the graph in this process: the shortest of interleaved rounds, after compilation. `start` is the time to
start the workers. Memory is the peak resident memory of a process, which counts the pages of mapped files. Core seconds
are those of all processes together; other work on the machine changes them less than wall times. With --half, the limit
of a worker is half of W's bytes, plus what an idle worker takes (320 MiB).
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
    "edges": "edges", "path": "path", "queries": "queries", "entries": "W entries", "local_s": "local, s",
    "cluster_s": "cluster, s", "times": "times", "local_cpu": "local, core s", "cluster_cpu": "cluster, core s",
    "start_s": "start, s", "import_s": "import, s", "store_s": "store, s", "store_cpu": "store, core s",
    "limit_mib": "limit per worker, MiB", "driver_mib": "this process, MiB", "worker_mib": "largest worker, MiB",
    "same": "same",
}  # fmt: skip
_IDLE_BYTES = 320 << 20
"""Memory of an idle worker."""
_PARTS = 8


def run(
    edges: int, path: str, workers: int, max_queries: int, half: bool, total: str | None, rounds: int
) -> dict[str, Any]:
    """Measure one join on the cluster and, unless memory is limited, in this process."""
    from neupath.cluster import Dask
    from neupath.cluster.workers import connect, parse_memory

    row: dict[str, Any] = {"edges": edges, "path": path}
    with TemporaryDirectory() as name:
        folder = Path(name)
        process = subprocess.run(
            [sys.executable, __file__, "--make", str(edges), str(folder / "graph"), PATHS[path]],
            check=True, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        began = time.perf_counter()
        subprocess.run(
            [sys.executable, __file__, "--import-to", str(folder / "graph"), str(folder / "store")], check=True
        )
        row["import_s"] = time.perf_counter() - began
        row |= json.loads(process.stdout)
        limit = None if total is None else (int(parse_memory(total) or 0) - (1 << 29)) // workers
        limit = _IDLE_BYTES + row["entries"] * 12 // 2 if half else limit
        row |= {"limit_mib": "-" if limit is None else limit >> 20, "queries": min(max_queries, row["authors"])}
        began = time.perf_counter()
        with connect(None, workers, limit, folder) as cluster, _certificates(cluster.client):
            row["start_s"] = time.perf_counter() - began
            engine = Dask(cluster.client.scheduler.address)  # type: ignore[union-attr]
            _warm(folder, engine)
            row |= _join_store(folder, PATHS[path], engine, row["queries"], workers, cluster)
            row["driver_mib"] = _peak()
            if limit is None:
                row |= _compare(folder, PATHS[path], engine, workers, row["queries"], rounds, cluster)
            row["worker_mib"] = max(cluster.client.run(_peak).values())
        if limit is None:
            files = [(folder / f"{name}.parquet").read_bytes() for name in ("local", "cluster", "store")]
            row["same"] = files[0] == files[1] == files[2]
    return row


def _certificates(client: Any) -> Any:
    """Let the clients of this process use the certificates of one."""
    import dask

    names = {"ca-file": "tls_ca_file", "client.cert": "tls_client_cert", "client.key": "tls_client_key"}
    values = {f"distributed.comm.tls.{key}": getattr(client.security, name) for key, name in names.items()}
    return dask.config.set(values)


def _compare(
    folder: Path, path: str, engine: Any, workers: int, queries: int, rounds: int, cluster: Any
) -> dict[str, float]:
    """Join in this process and on the workers in turn, each time over a newly loaded graph without cached products."""
    import numpy as np

    from neupath import PathSim, join, load

    options: dict[str, Any] = {"k": 10, "block": _block(queries, workers)}
    times: dict[str, list[tuple[float, float]]] = {"local": [], "cluster": []}
    for _ in range(rounds):
        for name, seconds in times.items():
            hin = load(folder / "graph")
            engine_options = {"threads": workers} if name == "local" else {"engine": engine}
            start, cpu_start = time.perf_counter(), _cpu_seconds(cluster)
            ids = hin.nodes[hin.metapath(path).source].ids[:queries].to_pylist()
            join(hin, PathSim(path), folder / f"{name}.parquet", queries=ids, **options, **engine_options)
            seconds.append((time.perf_counter() - start, _cpu_seconds(cluster) - cpu_start))
    best = {name: np.min(seconds, axis=0).tolist() for name, seconds in times.items()}
    return {
        "local_s": best["local"][0], "cluster_s": best["cluster"][0], "times": best["cluster"][0] / best["local"][0],
        "local_cpu": best["local"][1], "cluster_cpu": best["cluster"][1],
    }  # fmt: skip


def _join_store(folder: Path, path: str, engine: Any, queries: int, workers: int, cluster: Any) -> dict[str, float]:
    """Time opening a store and joining it on the workers."""
    from neupath import PathSim, join, load

    start, cpu_start = time.perf_counter(), _cpu_seconds(cluster)
    hin = load(folder / "store")
    ids = hin.nodes[hin.metapath(path).source].ids[:queries].to_pylist()
    block = _block(queries, workers)
    join(hin, PathSim(path), folder / "store.parquet", 10, queries=ids, block=block, engine=engine)
    return {"store_s": time.perf_counter() - start, "store_cpu": _cpu_seconds(cluster) - cpu_start}


def _cpu_seconds(cluster: Any) -> float:
    """Return the CPU seconds of this process and all workers so far."""
    return time.process_time() + float(sum(cluster.client.run(time.process_time).values()))


def _block(queries: int, workers: int) -> int:
    return max(64, min(4096, queries // (4 * workers)))


def _warm(folder: Path, engine: Any) -> None:
    """Compile the kernels, here and on every worker."""
    import numpy as np
    from powerlaw import powerlaw

    from neupath import PathSim, join

    hin = powerlaw(20_000)
    for name in ("APA", "APVPA"):
        for chosen in (None, engine):
            options: dict[str, Any] = {"queries": np.arange(2000), "block": 100, "engine": chosen}
            join(hin, PathSim(PATHS[name]), folder / "warm.parquet", 10, **options)


def _peak() -> float:
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))


def make(edges: int, target: str, path: str) -> None:
    """Write a graph as Parquet tables in parts; print the size of its half-path matrix."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq
    from powerlaw import powerlaw

    from neupath.engine.products import adjacencies, multiply_chain

    hin, folder = powerlaw(edges), Path(target)
    for node_type, nodes in hin.nodes.items():
        (folder / f"{node_type}s").mkdir(parents=True)
        pq.write_table(pa.table({f"{node_type}_id": nodes.ids}), folder / f"{node_type}s" / "part-0.parquet")
    for relation, matrix in hin.matrices.items():
        table, coo = folder / f"{relation.source}_{relation.target}", matrix.tocoo()
        table.mkdir()
        for part, at in enumerate(np.array_split(np.arange(coo.nnz), _PARTS)):
            columns = {f"{relation.source}_id": coo.row[at], f"{relation.target}_id": coo.col[at]}
            pq.write_table(pa.table(columns), table / f"part-{part}.parquet")
    whole = multiply_chain(adjacencies(hin, hin.metapath(path).half()))[0]
    additions = float((np.bincount(whole.indices).astype(float) ** 2).sum()) / whole.shape[0]
    print(json.dumps({"entries": int(whole.nnz), "additions": additions, "authors": whole.shape[0]}))


def fit(file: str) -> None:
    """Fit the core seconds of measured rows by non-negative least squares."""
    import numpy as np
    from scipy.optimize import nnls

    rows = json.loads(Path(file).read_text(encoding="utf-8"))
    names = "fixed, per entry of W, per query, per addition"
    parts = np.array([[1.0, r["entries"], r["queries"], r["queries"] * r["additions"]] for r in rows])
    seconds = np.array([row["store_cpu"] for row in rows])
    weights = 1 / seconds  # minimise relative errors, so that fast rows count as much as slow ones
    coefficients, _ = nnls(parts * weights[:, None], seconds * weights)
    print(f"{names}: " + ", ".join(f"{value:.3g} s" for value in coefficients))
    for row, guess, measured in zip(rows, parts @ coefficients, seconds, strict=True):
        text = f"{measured:8.2f} s measured {guess:8.2f} s fitted {guess / measured - 1:+.0%}"
        print(f"  {row['edges']:>11,} {row['path']:6} {row['queries']:>9,} queries {text}")


def show(results: list[dict[str, Any]]) -> str:
    """Format the results as a Markdown table."""
    lines = ["| " + " | ".join(COLUMNS.values()) + " |", "|" + "---|" * len(COLUMNS)]
    lines += ["| " + " | ".join(_plain(result.get(name, "-")) for name in COLUMNS) + " |" for result in results]
    return "\n".join(lines)


def _plain(value: object) -> str:
    if isinstance(value, float):
        return f"{value:,.2f}" if value < 100 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def main() -> None:
    """Measure each size and meta-path in its own process."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--edges", default="1e5,1e6")
    parser.add_argument("--metapaths", default="APA,APVPA")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--queries", type=int, default=10**9)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--half", action="store_true", help="limit a worker to half of W's bytes")
    parser.add_argument("--total", default=None, help="limit the memory of all processes together, such as 4GiB")
    parser.add_argument("--out", default=None, help="write the rows to this JSON file")
    parser.add_argument("--fit", default=None, help="fit the cost model to the rows of a JSON file")
    parser.add_argument("--one", default=None, help=argparse.SUPPRESS)
    parser.add_argument("--make", nargs=3, default=None, help=argparse.SUPPRESS)
    parser.add_argument("--import-to", nargs=2, default=None, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.make:
        make(int(arguments.make[0]), *arguments.make[1:])
        return
    if arguments.import_to:
        from neupath.io import import_store

        import_store(*arguments.import_to)
        return
    if arguments.fit:
        fit(arguments.fit)
        return
    if arguments.one:
        print(json.dumps(run(**json.loads(arguments.one))))
        return
    results = []
    for edges in arguments.edges.split(","):
        for path in arguments.metapaths.split(","):
            settings = {
                "edges": int(float(edges)), "path": path, "workers": arguments.workers,
                "max_queries": arguments.queries, "half": arguments.half,
                "total": arguments.total, "rounds": arguments.rounds,
            }  # fmt: skip
            command = [sys.executable, __file__, "--one", json.dumps(settings)]
            results.append(json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout))
            print(json.dumps(results[-1]), file=sys.stderr, flush=True)
    print(show(results))
    if arguments.out:
        Path(arguments.out).write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

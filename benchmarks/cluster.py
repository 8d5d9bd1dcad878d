"""Compare joins over one prepared index: this process, and the workers of Dask, Spark and Ray.

    python benchmarks/cluster.py [--edges 1e7] [--path APA] [--queries 10000,all] [--workers 1,2]
        [--engines dask,spark,ray] [--rounds 3]

The graph is the seeded power law of `powerlaw.py`. `local` has as many threads as there are workers. Every file is
compared with that of the first local join. Each row is the median of interleaved rounds, local, then each engine, over
workers that run already; `cold` is the first join on an engine, with the start of its workers and what they import and
load. `over` is how much longer than local a warm join takes.
"""

import argparse
import os
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from powerlaw import powerlaw

from neupath import PathSim, open_index, prepare
from neupath.cluster import Cluster, connect

PATHS = {"APA": "author-paper-author", "APVPA": "author-paper-venue-paper-author"}


@contextmanager
def running(engine: str, workers: int) -> Iterator[Cluster]:
    """Start the workers of an engine, which serve every join of the block."""
    with ExitStack() as stack:
        if engine == "dask":
            from distributed import LocalCluster

            local: Any = LocalCluster(  # type: ignore[no-untyped-call]
                workers, threads_per_worker=1, dashboard_address="127.0.0.1:0", silence_logs=50
            )
            yield connect("dask", stack.enter_context(local).scheduler_address)
        elif engine == "ray":
            import ray

            ray.init(num_cpus=workers, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
            stack.callback(ray.shutdown)
            yield connect("ray", workers=workers)
        else:
            from pyspark.sql import SparkSession

            os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
            os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
            master = f"local-cluster[{workers},1,2048]"  # processes, as on a cluster
            builder = SparkSession.builder.master(master).config("spark.ui.enabled", "false")
            session = builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()
            session.sparkContext.setLogLevel("OFF")
            stack.callback(session.stop)
            yield connect("spark", workers=workers)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--edges", type=float, default=1e7)
    parser.add_argument("--path", choices=PATHS, default="APA")
    parser.add_argument("--queries", default="10000,all")
    parser.add_argument("--workers", default="1,2")
    parser.add_argument("--engines", default="dask,spark,ray")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with TemporaryDirectory() as name:
        folder = Path(name)
        hin = powerlaw(int(options.edges))
        index = open_index(prepare(hin, PathSim(PATHS[options.path]), folder / "index"))
        ids = hin.nodes["author"].ids.to_pylist()
        del hin
        print(
            f"{'queries':>8} {'workers':>7} {'engine':>6} {'cold, s':>8} {'warm, s':>8} {'over':>7}  same", flush=True
        )
        for workers in map(int, options.workers.split(",")):
            for text in options.queries.split(","):
                chosen = ids if text == "all" else ids[: int(text)]
                _compare(index, chosen, workers, options.engines.split(","), options.rounds, folder)


def _compare(index: Any, queries: list[Any], workers: int, engines: list[str], rounds: int, folder: Path) -> None:
    """Print a row per engine for some queries and a number of workers."""
    expected = b""
    for engine in engines:
        warm: dict[str, list[float]] = {"local": [], engine: []}
        start = time.perf_counter()
        with running(engine, workers) as cluster:
            how: dict[str, dict[str, Any]] = {"local": {"threads": workers}, engine: {"engine": cluster}}
            _join(index, queries, folder / "cold.parquet", how[engine])
            cold = time.perf_counter() - start
            same = True
            for _ in range(rounds):
                for name, times in warm.items():
                    began = time.perf_counter()
                    content = _join(index, queries, folder / "out.parquet", how[name])
                    times.append(time.perf_counter() - began)
                    expected = expected or content
                    same = same and content == expected
        local, own = (median(times) for times in warm.values())
        print(
            f"{len(queries):>8,} {workers:>7} {'local':>6} {'':>8} {local:>8.2f}\n"
            f"{len(queries):>8,} {workers:>7} {engine:>6} {cold:>8.2f} {own:>8.2f} {own / local - 1:>+7.0%}  {same}",
            flush=True,
        )


def _join(index: Any, queries: list[Any], out: Path, how: dict[str, Any]) -> bytes:
    index.join(out, 10, queries=queries, **how)
    content = out.read_bytes()
    out.unlink()
    return content


if __name__ == "__main__":
    main()

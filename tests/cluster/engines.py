"""Engines for tests: a scheduler of Dask with workers over TCP, Ray, and Spark on a cluster of processes."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Thread

import pytest

from neupath.cluster import Cluster, connect, joining
from tests.patience import PATIENCE, wait_until
from tests.processes import run_process

KINDS = ("dask", "ray", "spark")


def need(kind: str) -> None:
    """Skip a test where an engine is not installed."""
    module = {"dask": "distributed", "spark": "pyspark"}.get(kind, kind)
    extra = {"dask": "cluster"}.get(kind, kind)
    pytest.importorskip(module, reason=f"{kind} is not installed; pip install 'neupath[{extra}]'")
    if kind == "spark" and shutil.which("java") is None:
        pytest.skip("Spark needs Java; install openjdk-17-jre-headless or a newer one")


@contextmanager
def running(kind: str, folder: Path) -> Iterator[Cluster]:
    """Start an engine with two workers, and yield what runs tasks there."""
    with {"dask": _running_dask, "ray": _running_ray, "spark": _running_spark}[kind](folder) as address:
        yield connect(kind, address)


@contextmanager
def _running_dask(folder: Path) -> Iterator[str]:
    with start_scheduler(folder, workers=2) as (address, _):
        yield address


@contextmanager
def _running_ray(_: Path) -> Iterator[None]:
    import ray

    ray.init("local", num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        yield
    finally:
        ray.shutdown()


@contextmanager
def _running_spark(_: Path) -> Iterator[None]:
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.master("local-cluster[2,1,1024]").config("spark.ui.enabled", "false")
    session = builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    try:
        yield
    finally:
        session.stop()


@contextmanager
def start_scheduler(folder: Path, workers: int) -> Iterator[tuple[str, list[subprocess.Popen[str]]]]:
    """Start a scheduler of Dask and some workers; yield its address and the processes of the workers."""
    from distributed import Client
    from distributed.utils import json_load_robust

    address_file = folder / "scheduler.json"
    own = ["--scheduler-file", str(address_file), "--host", "127.0.0.1", "--no-dashboard"]
    single = ["--no-nanny", "--nthreads", "1", "--memory-limit", "1GiB", "--local-directory", str(folder)]
    with ExitStack() as stack:

        def start(*command: str) -> subprocess.Popen[str]:
            # workers cannot import what tests/ defines, and their log is not for the reader of the tests
            output = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
            return stack.enter_context(run_process([sys.executable, "-m", "dask", *command], cwd=folder, **output))

        start("scheduler", "--port", "0", *own)
        processes = [start("worker", *own, *single) for _ in range(workers)]
        address: str = json_load_robust(address_file, timeout=PATIENCE)["address"]
        with Client(address, timeout=PATIENCE) as client:
            if workers:
                client.wait_for_workers(workers, timeout=PATIENCE)
        yield address, processes


# ---- Workers that die ----------------------------------------------------------------------------
@contextmanager
def killing_a_worker(kind: str, events: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Kill the worker that ranks block 1 of a join while it does; yield the processes that were killed.

    The task waits until it is killed. Engines send such a function by its code, so workers need not import it.
    """
    whole, killed = joining.write_block, []

    def wait_to_be_killed(spec: joining.BlockSpec, number: int) -> None:
        import os
        import time

        if number == 1 and not (events / "killed").exists():
            # the parent of a Python worker of Spark is a daemon of the executor
            daemon = int(Path(f"/proc/{os.getppid()}/stat").read_text().rpartition(")")[2].split()[1])
            (events / "new").write_text(str(daemon if kind == "spark" else os.getpid()))
            (events / "new").rename(events / "started")
            while not (events / "killed").exists():
                time.sleep(0.05)
        whole(spec, number)

    def kill() -> None:
        wait_until((events / "started").exists, "no worker has begun block 1")
        killed.append(int((events / "started").read_text()))
        os.kill(killed[0], signal.SIGKILL)
        wait_until(lambda: not _is_alive(killed[0]), "the worker lives")
        (events / "killed").touch()

    monkeypatch.setattr(joining, "write_block", wait_to_be_killed)
    killer = Thread(target=kill, daemon=True)
    killer.start()
    yield killed
    killer.join(PATIENCE)


def _is_alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def in_a_thread(work: Callable[[], object]) -> Thread:
    thread = Thread(target=work, daemon=True)
    thread.start()
    return thread


__all__ = ["KINDS", "in_a_thread", "killing_a_worker", "need", "running", "start_scheduler"]

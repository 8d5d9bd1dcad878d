import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

pytest.importorskip("distributed", reason="the cluster extra is not installed")

from neupath import HIN, Edges, Nodes, Relation
from neupath.cluster import dask_engine as engine
from neupath.cluster.workers import clear_cache

WORKERS = 4


class InlineWorkers:
    """Workers that run tasks in this process."""

    count, memory = 2, 1 << 34

    def each(self, work: Callable, arguments: Sequence[tuple], on_done: Callable = lambda _: None) -> list[Any]:
        results = []
        for at, values in enumerate(arguments):
            results.append(work(*values))
            on_done(at)
        return results

    def clear_caches(self) -> None:
        clear_cache()


@pytest.fixture
def inline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the tasks of the engine in this process."""

    @contextmanager
    def connect(*_: object) -> Iterator[InlineWorkers]:
        yield InlineWorkers()

    monkeypatch.setattr(engine, "connect", connect)


@pytest.fixture(scope="session")
def weighted() -> HIN:
    """Authors, papers and venues with fractional weights, ties, a hub, and nodes without edges."""
    rng = np.random.default_rng(5)
    sizes = {"author": 300, "paper": 400, "venue": 12}
    authors, papers = rng.integers(0, 290, 1500), rng.integers(0, 390, 1500)
    authors[:150] = 7  # a tenth of the edges
    return HIN.build(
        [Nodes(name, pa.array([f"{name}{i}" for i in range(size)])) for name, size in sizes.items()],
        [
            Edges(Relation("author", "writes", "paper"), authors, papers, rng.choice([0.1, 0.7, 1.0, 3.3], 1500)),
            Edges(Relation("paper", "at", "venue"), np.arange(390), rng.integers(0, 12, 390)),
        ],
    )


@pytest.fixture(scope="session")
def scheduler(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A scheduler and some workers, each a process of its own, over TCP."""
    with start_cluster(tmp_path_factory.mktemp("dask"), WORKERS) as (address, _):
        yield address


@contextmanager
def start_cluster(folder: Path, workers: int) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """Start a scheduler and some workers; yield its address and their processes."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"tcp://127.0.0.1:{port}"
    command = [sys.executable, "-m", "dask"]
    own = ["--host", "127.0.0.1", "--no-dashboard"]
    processes = [_start([*command, "scheduler", "--port", str(port), *own], folder)]
    try:
        worker = [*command, "worker", address, *own, "--no-nanny", "--nthreads", "1", "--memory-limit", "1GiB"]
        processes += [_start([*worker, "--local-directory", str(folder)], folder) for _ in range(workers)]
        yield address, processes[1:]
    finally:
        for process in processes:
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
            process.wait()


def _start(command: list[str], folder: Path) -> subprocess.Popen[bytes]:
    # workers cannot import what tests/ defines, and their log is not for the reader of the tests
    return subprocess.Popen(
        command, cwd=folder, env=dict(os.environ), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )

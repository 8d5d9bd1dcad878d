"""Clusters for tests: workers in this process, and a scheduler with workers in processes of their own."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

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

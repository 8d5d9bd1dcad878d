"""Clusters for tests: workers in this process, and a scheduler with workers in processes of their own."""

import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any

import dask
from distributed import Client
from distributed.security import Security
from distributed.utils import json_load_robust

from neupath.cluster.workers import clear_cache
from tests.patience import PATIENCE
from tests.processes import run_process


def using(security: Security) -> AbstractContextManager[None]:
    """Let the clients of this process use some certificates, as if Dask's configuration named them."""
    prefix = "distributed.comm.tls"
    return dask.config.set(
        {
            f"{prefix}.ca-file": security.tls_ca_file,
            f"{prefix}.client.cert": security.tls_client_cert,
            f"{prefix}.client.key": security.tls_client_key,
        }
    )


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
def start_cluster(folder: Path, workers: int) -> Iterator[tuple[str, list[subprocess.Popen[str]]]]:
    """Start a scheduler and some workers; yield its address and the processes of the workers, which are connected."""
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
            client.wait_for_workers(workers, timeout=PATIENCE)
        yield address, processes

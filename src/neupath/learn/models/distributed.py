"""Distributed training: several processes train one model, each on its share of the queries of every batch.

All processes add up their gradients, weighted as in the whole batch, and so take the same step: the one that a single
process would take, but for rounding.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import Tensor, distributed

from neupath._runtime.resources import count_cores
from neupath.errors import NeuPathError, QueryError
from neupath.graph.nodes import Rows

_CONNECT_TIMEOUT = timedelta(seconds=300)
_EXIT_SECONDS = 10


@dataclass(frozen=True)
class ProcessGroup:
    """The rank of this process, and the number of processes that train together."""

    rank: int = 0
    size: int = 1

    def share(self, queries: Rows) -> Rows:
        """Return this process's part of the queries of a batch."""
        return queries[self.rank :: self.size]

    def add_up(self, tensors: Sequence[Tensor]) -> None:
        """Replace each tensor by its sum over all processes."""
        if self.size == 1:
            return
        flat = torch.cat([tensor.reshape(-1) for tensor in tensors])
        distributed.all_reduce(flat)
        sums = torch.split(flat, [tensor.numel() for tensor in tensors])
        for tensor, total in zip(tensors, sums, strict=True):
            tensor.copy_(total.reshape(tensor.shape))


ALONE = ProcessGroup()
Work = Callable[[Any, ProcessGroup, torch.device], None]
"""What a process runs: takes the arguments, the process group and its device."""
Workers = list[tuple[SpawnProcess, Connection]]


def run_distributed(work: Work, arguments: Any, processes: int, device: torch.device, here: Work) -> None:
    """Run `work` in new processes, and `here` in this one, which has rank 0; raise the first error as one sentence."""
    if device.type == "cuda" and (count := torch.cuda.device_count()) < processes:
        message = f"‹processes› is {processes}, and there are {count} CUDA devices, one for each; use fewer"
        raise QueryError(message, parameter="processes")
    context = get_context("spawn")
    with TemporaryDirectory() as folder:
        rendezvous = (Path(folder) / "rendezvous").as_uri()
        workers: Workers = []
        try:
            for rank in range(1, processes):
                connection, worker_connection = context.Pipe()
                group = ProcessGroup(rank, processes)
                settings = worker_connection, work, arguments, group, _device_of(rank, device), rendezvous
                process = context.Process(target=_run_worker, args=settings, daemon=True)
                process.start()
                worker_connection.close()
                workers.append((process, connection))
            _wait_until_started(workers)
            with _joined(ProcessGroup(0, processes), _device_of(0, device), rendezvous):
                here(arguments, ProcessGroup(0, processes), _device_of(0, device))
        except RuntimeError as error:  # raised here when another process has ended
            message = _worker_error(workers) or f"training on {processes} processes failed: {error}"
            raise NeuPathError(message) from error
        finally:
            _stop(workers)


def _device_of(rank: int, device: torch.device) -> torch.device:
    return torch.device("cuda", rank) if device.type == "cuda" else device


@contextmanager
def _joined(group: ProcessGroup, device: torch.device, rendezvous: str) -> Iterator[None]:
    """Connect to the other processes, and divide the cores among them."""
    threads = torch.get_num_threads()
    torch.set_num_threads(max(1, count_cores() // group.size))
    backend = "nccl" if device.type == "cuda" else "gloo"
    distributed.init_process_group(backend, rendezvous, _CONNECT_TIMEOUT, world_size=group.size, rank=group.rank)
    try:
        yield
    finally:
        distributed.destroy_process_group()
        torch.set_num_threads(threads)


def _run_worker(
    connection: Connection, work: Work, arguments: Any, group: ProcessGroup, device: torch.device, rendezvous: str
) -> None:
    """Send an empty message at the start, and the text of an error if there is one."""
    connection.send_bytes(b"")
    try:
        with _joined(group, device, rendezvous):
            work(arguments, group, device)
    except Exception as error:
        connection.send_bytes(f"{error}".encode())
        raise SystemExit(1) from None


def _wait_until_started(workers: Workers) -> None:
    for process, connection in workers:
        wait([connection, process.sentinel])
        if not connection.poll():
            raise RuntimeError(f"a process could not start (exit code {process.exitcode})")
        connection.recv_bytes()


def _worker_error(workers: Workers) -> str | None:
    for rank, (process, connection) in enumerate(workers, 1):
        process.join(_EXIT_SECONDS)
        try:
            message = connection.recv_bytes().decode() if connection.poll() else ""
        except EOFError:
            message = ""
        if message or process.exitcode:
            reason = message or f"exit code {process.exitcode}"
            again = "run the same again to go on from the last epoch"
            return f"process {rank} of {len(workers) + 1} stopped ({reason}); {again}"
    return None


def _stop(workers: Workers) -> None:
    for process, connection in workers:
        process.join(_EXIT_SECONDS if process.exitcode is None and not connection.closed else 0)
        if process.is_alive():
            process.kill()
            process.join()
        connection.close()

"""Team: processes that train one model together, each on its share of the queries of every batch.

Each adds up the gradient of its share, weighted as in the whole batch, with those of the others, so that all take the
same step: the one that a process alone would take, but for rounding.
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

_SECONDS_TO_MEET = 300
_SECONDS_TO_END = 10


@dataclass(frozen=True)
class ProcessGroup:
    """The place of this process among those that train together."""

    rank: int = 0
    size: int = 1

    def share(self, queries: Rows) -> Rows:
        """Return the queries that this process takes."""
        return queries[self.rank :: self.size]

    def add_up(self, tensors: Sequence[Tensor]) -> None:
        """Put the sum over all processes into each tensor."""
        if self.size == 1:
            return
        flat = torch.cat([tensor.reshape(-1) for tensor in tensors])
        distributed.all_reduce(flat)
        summed = torch.split(flat, [tensor.numel() for tensor in tensors])
        for tensor, total in zip(tensors, summed, strict=True):
            tensor.copy_(total.reshape(tensor.shape))


ALONE = ProcessGroup()
Work = Callable[[Any, ProcessGroup, torch.device], None]
"""What each process does: with what it is given, its place and its device."""


def run_together(work: Work, given: Any, processes: int, device: torch.device, here: Work) -> None:
    """Do some work in new processes, and `here` in this one, the first; an error of any is raised, as one sentence."""
    _check(processes, device)
    context = get_context("spawn")
    with TemporaryDirectory() as folder:
        meeting = (Path(folder) / "meeting").as_uri()
        others: list[tuple[SpawnProcess, Connection]] = []
        try:
            for rank in range(1, processes):
                own, other = context.Pipe()
                place = ProcessGroup(rank, processes), _device(device, rank), meeting
                process = context.Process(target=_follow, args=(other, work, given, *place), daemon=True)
                process.start()
                other.close()
                others.append((process, own))
            _await(others)
            with _meeting(ProcessGroup(0, processes), _device(device, 0), meeting):
                here(given, ProcessGroup(0, processes), _device(device, 0))
        except RuntimeError as error:  # what is raised here when another process is gone
            raise NeuPathError(_reason(others) or f"training on {processes} processes failed: {error}") from error
        finally:
            _end(others)


def _check(processes: int, device: torch.device) -> None:
    if device.type == "cuda" and torch.cuda.device_count() < processes:
        raise QueryError(
            f"processes is {processes}, and there are {torch.cuda.device_count()} CUDA devices, one for each; use fewer"
        )


def _device(device: torch.device, rank: int) -> torch.device:
    return torch.device("cuda", rank) if device.type == "cuda" else device


@contextmanager
def _meeting(team: ProcessGroup, device: torch.device, meeting: str) -> Iterator[None]:
    """Meet the other processes, and share the cores with them."""
    threads = torch.get_num_threads()
    torch.set_num_threads(max(1, count_cores() // team.size))
    distributed.init_process_group(
        "nccl" if device.type == "cuda" else "gloo",
        init_method=meeting,
        rank=team.rank,
        world_size=team.size,
        timeout=timedelta(seconds=_SECONDS_TO_MEET),
    )
    try:
        yield
    finally:
        distributed.destroy_process_group()
        torch.set_num_threads(threads)


def _follow(
    connection: Connection, work: Work, given: Any, team: ProcessGroup, device: torch.device, meeting: str
) -> None:
    """Do the work of another process than the first; tell that it begins, and what went wrong."""
    connection.send_bytes(b"")
    try:
        with _meeting(team, device, meeting):
            work(given, team, device)
    except Exception as error:
        connection.send_bytes(f"{error}".encode())
        raise SystemExit(1) from None


def _await(others: Sequence[tuple[SpawnProcess, Connection]]) -> None:
    """Wait until the others are there; one that ended instead is an error, for which nobody should wait."""
    for process, connection in others:
        wait([connection, process.sentinel])
        if not connection.poll():
            raise RuntimeError(f"a process could not start (exit code {process.exitcode})")
        connection.recv_bytes()


def _reason(others: Sequence[tuple[SpawnProcess, Connection]]) -> str | None:
    """Say what another process told last, or how it ended."""
    for rank, (process, connection) in enumerate(others, 1):
        process.join(_SECONDS_TO_END)
        told = _told(connection)
        if told or process.exitcode:
            return (
                f"process {rank} of {len(others) + 1} stopped ({told or f'exit code {process.exitcode}'}); "
                f"run the same again to go on from the last epoch"
            )
    return None


def _told(connection: Connection) -> str:
    try:
        return connection.recv_bytes().decode() if connection.poll() else ""
    except EOFError:
        return ""


def _end(others: Sequence[tuple[SpawnProcess, Connection]]) -> None:
    for process, connection in others:
        process.join(_SECONDS_TO_END if process.exitcode is None and not connection.closed else 0)
        if process.is_alive():
            process.kill()
            process.join()
        connection.close()

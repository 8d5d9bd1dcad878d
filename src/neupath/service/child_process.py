"""Processes that the service starts for jobs and measures: limited in memory, killed at will, ended with it."""

import os
import signal
from collections.abc import Callable
from contextlib import suppress
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from multiprocessing.process import BaseProcess
from threading import Thread

from neupath._runtime import log_to_stderr
from neupath._runtime.resources import free_memory, limit_memory

_LEAST = 1 << 29  # bytes of memory without which no process is worth its start


def memory_for_child(most: int) -> int:
    """Return how many bytes a new process may take: half of what is free, so that searches have the rest, or `most`."""
    return max(min(_LEAST, most), min(most, free_memory() // 2))


def start_child(target: Callable[..., None], *arguments: object) -> tuple[SpawnProcess, Connection]:
    """Start a process that calls `target(connection, *arguments)`; return it, and this end of its connection."""
    context = get_context("spawn")
    own, others = context.Pipe()
    process = context.Process(target=target, args=(others, *arguments), daemon=True)
    process.start()
    others.close()
    return process, own


def begin_child(memory: int) -> None:
    """Limit this process to so many bytes more than it has now, and end it when the service has ended."""
    log_to_stderr()
    parent = parent_process()
    if parent is not None:
        _kill_at_end_of(parent.sentinel)
        Thread(target=_end_with, args=(parent,), daemon=True).start()
    limit_memory(memory)


def _kill_at_end_of(pipe: int) -> None:
    """Let the system kill this process when a pipe ends: a library that holds Python's lock stops all threads."""
    with suppress(ImportError, OSError):  # a system without it ends the process when the library returns
        import fcntl

        fcntl.fcntl(pipe, fcntl.F_SETOWN, os.getpid())
        if hasattr(fcntl, "F_SETSIG"):
            fcntl.fcntl(pipe, fcntl.F_SETSIG, signal.SIGKILL)
        fcntl.fcntl(pipe, fcntl.F_SETFL, fcntl.fcntl(pipe, fcntl.F_GETFL) | os.O_ASYNC)


def _end_with(parent: BaseProcess) -> None:
    """End this process when the service has ended, however that was, also before the system was asked to."""
    parent.join()
    os._exit(1)

"""Tasks on Dask."""

import logging
import signal
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing import resource_tracker
from threading import current_thread, main_thread
from time import monotonic
from typing import Any

from neupath.cluster.joining import Cluster, apply
from neupath.engine.tasks import Each
from neupath.errors import MissingExtraError, NeuPathError, QueryError

logger = logging.getLogger("neupath")
_SECONDS_TO_CONNECT, _SECONDS_BETWEEN_LOOKS, _PATIENCE = 20, 0.2, 120
_GREETING, _LONGEST_GREETING = 8, 1 << 20  # bytes
_CONFIG = {"distributed.worker.memory.target": False, "distributed.worker.memory.spill": False}
"""The tasks write files, so there is nothing to spill."""


@dataclass(frozen=True)
class Dask(Cluster):
    """Run tasks on the workers of a scheduler such as tcp://10.0.0.1:8786, or on workers that are started here.

    A script that starts workers needs the usual `if __name__ == "__main__":`.
    """

    @contextmanager
    def _connected(self) -> Iterator[Each]:
        try:
            import cryptography  # noqa: F401  for the certificates of workers that are started here
            import dask
            import distributed  # noqa: F401
        except ModuleNotFoundError as error:
            raise MissingExtraError("Dask and cryptography", "neupath[cluster]") from error
        with _without_log(), dask.config.set(_CONFIG), ExitStack() as stack:
            client = self._start_workers(stack) if self.address is None else _client_of(self.address, stack)
            yield partial(_run, client)

    def _start_workers(self, stack: ExitStack) -> Any:
        from distributed import Client, LocalCluster

        with _uninterrupted():
            cluster = LocalCluster(
                n_workers=self.num_workers, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0",
                security=True,  # else any user of this machine could run code in the workers
                silence_logs=logging.CRITICAL + 1,
            )  # fmt: skip
            return stack.enter_context(Client(stack.enter_context(cluster)))


def _client_of(address: str, stack: ExitStack) -> Any:
    """Connect to a scheduler; raise unless it answers and has workers."""
    from distributed import Client

    _check_answers(address)
    try:
        client = Client(address, timeout=_SECONDS_TO_CONNECT)
    except (OSError, ValueError) as error:
        raise _no_answer(address) from error
    stack.callback(_close, client)
    try:
        client.wait_for_workers(1, timeout=_SECONDS_TO_CONNECT)
    except TimeoutError as error:
        raise QueryError(
            f"the scheduler at {address} has no workers; start some with `dask worker {address}`", parameter="address"
        ) from error
    return client


def _close(client: Any) -> None:
    """Close a client in silence: one whose scheduler is gone may fail to close."""
    with suppress(Exception):
        client.close()


def _check_answers(address: str) -> None:
    """Raise unless a Dask scheduler answers; `Client` has no timeout for a server that speaks something else.

    A scheduler speaks first: the length of its greeting, as 8 bytes. Over TLS, `Client` checks what answers.
    """
    from distributed.comm.addressing import parse_address, parse_host_port
    from distributed.security import Security

    try:
        scheme, place = parse_address(address)
        if scheme == "tls" and Security().get_connection_args("client").get("ssl_context") is None:
            raise QueryError(
                f"the scheduler at {address!r} needs certificates; name them in Dask's configuration "
                f"(distributed.comm.tls)",
                parameter="address",
            )
        if scheme != "tcp":
            return
        with socket.create_connection(parse_host_port(place, 8786), timeout=_SECONDS_TO_CONNECT) as connection:
            greeting = connection.recv(_GREETING, socket.MSG_WAITALL)
        if len(greeting) < _GREETING:
            raise ConnectionError("it closed the connection")
    except (OSError, ValueError) as error:
        raise _no_answer(address) from error
    if int.from_bytes(greeting, "little") > _LONGEST_GREETING:
        raise QueryError(
            f"what answers at {address!r} is no Dask scheduler; give as ‹address› what `dask scheduler` prints",
            parameter="address",
        )


def _no_answer(address: str) -> QueryError:
    return QueryError(
        f"no Dask scheduler answers at {address!r}; start one with `dask scheduler`, and give the ‹address› it prints",
        parameter="address",
    )


def _run(
    client: Any, task: Callable[..., object], arguments: Sequence[tuple[Any, ...]], on_done: Callable[[int], object]
) -> None:
    """Run a task for each tuple of arguments; one whose worker dies runs again on another."""
    from distributed import as_completed

    patience = _Patience(client)
    # Dask prints an error when a future is freed whose making was interrupted, and Python drops a KeyboardInterrupt
    # that is raised while an object is freed
    with _delayed() as interrupts:
        futures = [client.submit(apply, task, own, pure=False) for own in arguments]
        numbers = {future.key: number for number, future in enumerate(futures)}
        try:
            # the caller may have a client of its own, whose event loop Dask would take and never wake up
            completed = as_completed(futures, loop=client.loop, with_results=True)
            while not (interrupts or completed.is_empty()):
                if not completed.has_ready():
                    patience.look()
                    with completed.thread_condition:
                        completed.thread_condition.wait(_SECONDS_BETWEEN_LOOKS)
                    continue
                future, result = next(completed)
                if isinstance(result, BaseException):  # Dask returns lost tasks as results
                    raise NeuPathError("the scheduler of Dask lost its tasks, or is gone; run it again") from result
                on_done(numbers[future.key])
        finally:
            if client.status == "running":
                client.cancel([future for future in futures if not future.done()])


class _Patience:
    """Waits for other workers where all are gone, and gives up after a while."""

    def __init__(self, client: Any) -> None:
        self._client, self._last, self._gone_since = client, monotonic(), 0.0

    def look(self) -> None:
        """Raise if all workers have been gone for long."""
        now = monotonic()
        if now - self._last < 1:
            return
        self._last = now
        if self._client.status != "running" or self._client.nthreads():
            self._gone_since = 0.0
        elif not self._gone_since:
            self._gone_since = now
            logger.warning("all workers of Dask are gone; waiting %d seconds for others", _PATIENCE)
        elif now - self._gone_since > _PATIENCE:
            raise NeuPathError(
                f"all workers of Dask were gone for {_PATIENCE} seconds; start some, and run it again: it resumes with "
                f"what is missing"
            )


# ---- The log and Ctrl-C --------------------------------------------------------------------------
@contextmanager
def _without_log() -> Iterator[None]:
    """Stop the log of Dask, which prints tracebacks of failed tasks and lost schedulers: an error here says so."""
    levels = {own: own.level for own in map(logging.getLogger, ("distributed", "distributed.client"))}
    try:
        for own in levels:
            own.setLevel(logging.CRITICAL + 1)
        yield
    finally:
        for own, level in levels.items():
            own.setLevel(level)


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Delay Ctrl-C while workers are started, and hide it from the processes and threads that start meanwhile."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    resource_tracker.ensure_running()  # started with the first process, it would unblock the signal
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        with _delayed():
            yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


@contextmanager
def _delayed() -> Iterator[list[int]]:
    """Record Ctrl-C, which another thread may let through, and raise it at the end."""
    received: list[int] = []
    before = signal.getsignal(signal.SIGINT)
    if current_thread() is not main_thread() or not callable(before):
        yield received
        return
    signal.signal(signal.SIGINT, lambda number, _: received.append(number))
    try:
        yield received
    finally:
        signal.signal(signal.SIGINT, before)
        if received:
            signal.raise_signal(signal.SIGINT)

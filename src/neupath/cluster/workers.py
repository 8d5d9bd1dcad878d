"""Workers: the processes of a Dask cluster, connected to or started here, and the tasks that run on them."""

import logging
import signal
import socket
from collections.abc import Callable, Hashable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import resource_tracker
from pathlib import Path
from threading import current_thread, get_ident, main_thread
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeVar, cast

from neupath._runtime.resources import count_cores, total_memory
from neupath.errors import MissingExtraError, NeuPathError, QueryError

if TYPE_CHECKING:
    from distributed import Client

T = TypeVar("T")
logger = logging.getLogger("neupath")


# ---- Cache on a worker ---------------------------------------------------------------------------
# One entry per thread. An LRU would hold the old entry while the new one is built, and two may not fit into memory.
_last: dict[int, tuple[Hashable, object]] = {}


def cache_last(key: Hashable, build: Callable[[], T]) -> T:
    """Return what this thread built last if the key is the same; otherwise drop that, and build."""
    thread = get_ident()
    if thread not in _last or _last[thread][0] != key:
        _last.pop(thread, None)
        _last[thread] = key, build()
    return cast(T, _last[thread][1])


def clear_cache() -> None:
    """Drop what all threads cached; the worker may live on after the join."""
    _last.clear()


# ---- Watchdog ------------------------------------------------------------------------------------
PATIENCE = 120.0
"""Seconds without any worker after which a join gives up."""
_SECONDS_BETWEEN_CHECKS = 1.0
_SECONDS_TO_ANSWER = 5.0
_SECONDS_TO_WAIT = 0.1


class WorkerWatchdog:
    """Raises `CancelledError` when a cluster has had no workers for long."""

    def __init__(self, client: "Client", patience: float) -> None:
        self._client, self._patience = client, patience
        self._last_check = monotonic()
        self._gone_since: float | None = None

    def check(self) -> None:
        """Ask the scheduler for its workers, unless it was asked a moment ago."""
        now = monotonic()
        if now - self._last_check < _SECONDS_BETWEEN_CHECKS:
            return
        self._last_check = now
        if self._has_workers():
            self._gone_since = None
        elif self._gone_since is None:
            self._gone_since = now
            logger.warning("all workers are gone; waiting %.0f seconds for others", self._patience)
        elif now - self._gone_since >= self._patience:
            raise CancelledError(f"all workers were gone for {self._patience:.0f} seconds")

    def _has_workers(self) -> bool:
        try:
            return bool(self._client.nthreads(callback_timeout=_SECONDS_TO_ANSWER))
        except TimeoutError:  # a scheduler that hangs gives nobody work
            return False
        except (OSError, CancelledError):  # a scheduler that is gone ends the tasks by itself
            return True


# ---- Workers -------------------------------------------------------------------------------------
_dask_logger = logging.getLogger("distributed")
_SILENT = logging.CRITICAL + 1
_SECONDS_TO_CONNECT = 20
_LONGEST_GREETING = 1 << 20  # bytes
_CONFIG = {
    # blocks are files, so there is nothing to spill, and pausing would only stall
    "distributed.worker.memory.target": False,
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.pause": False,
    "distributed.worker.memory.terminate": 0.95,
    "distributed.worker.profile.enabled": False,  # it samples the stack a hundred times a second
}


@dataclass(frozen=True)
class Workers:
    """A connection to a scheduler, and the number of tasks that its workers run at once."""

    client: "Client"
    count: int
    memory: int  # bytes per task, including its share of the process
    patience: float  # seconds to wait for new workers when all are gone

    def each(
        self,
        work: Callable[..., T],
        arguments: Sequence[tuple[Any, ...]],
        on_done: Callable[[int], None] = lambda _: None,
    ) -> list[T]:
        """Run a task for each tuple of arguments; return the results in order, and call `on_done` as each task ends.

        A task whose worker dies runs again elsewhere; without workers for long, all are cancelled.
        """
        from distributed import KilledWorker, as_completed

        results: list[Any] = [None] * len(arguments)
        watchdog = WorkerWatchdog(self.client, self.patience)
        # Dask prints an error when a future is freed whose making was interrupted, and Python drops a KeyboardInterrupt
        # that is raised while an object is freed
        with _delayed() as interrupts:
            futures = [self.client.submit(work, *values, pure=False) for values in arguments]
            number = {future.key: at for at, future in enumerate(futures)}
            try:
                # the caller may have a client of its own, whose event loop Dask would take and never wake up
                completed = as_completed(futures, loop=self.client.loop, with_results=True)
                while not (interrupts or completed.is_empty()):
                    watchdog.check()
                    if not completed.has_ready():
                        with completed.thread_condition:
                            completed.thread_condition.wait(_SECONDS_TO_WAIT)
                        continue
                    future, result = next(completed)
                    if isinstance(result, BaseException):  # Dask returns lost tasks as results
                        raise CancelledError("the scheduler lost its tasks, or is gone") from result
                    at = number[future.key]
                    results[at] = result
                    futures[at].release()
                    on_done(at)
                if interrupts:
                    raise KeyboardInterrupt
            except (KilledWorker, MemoryError) as error:
                raise NeuPathError(
                    "a task took more memory than a worker has, four times over; give a larger ‹memory_limit› or a "
                    "smaller ‹block›",
                    parameter="memory_limit",
                ) from error
            except (CancelledError, OSError) as error:
                raise NeuPathError(
                    f"the join on the cluster failed ({error}); run it again: it resumes with the missing blocks"
                ) from error
            finally:
                if self.client.status == "running":
                    self.client.cancel([future for future in futures if not future.done()])
        return results

    def clear_caches(self) -> None:
        """Free the blocks that workers keep; the join is done by now, so that no failure here may fail it."""
        if self.client.status == "running":
            try:
                self.client.run(clear_cache, on_error="ignore")  # a worker that is gone has no cache
            except Exception as error:  # Dask's connections may break in any way when a worker dies
                logger.info("the caches of the workers were not cleared: %r", error)


@contextmanager
def connect(
    scheduler: str | None, count: int | None, memory_limit: int | None, folder: Path, patience: float = PATIENCE
) -> Iterator[Workers]:
    """Connect to a scheduler, or start one here with workers of its own; raise unless all see a folder."""
    try:
        import cryptography  # noqa: F401  for the certificates of workers that are started here
        import dask
        from distributed import Client, LocalCluster
        from distributed.security import Security

        security = Security.temporary() if scheduler is None else None
    except ModuleNotFoundError as error:
        raise MissingExtraError("Dask and cryptography", "neupath[cluster]") from error
    if scheduler is not None:
        with _client_of(scheduler) as client:
            yield _workers_of(client, folder, patience)
        return
    cores = count_cores()
    with ExitStack() as stack:
        stack.enter_context(_without_log())
        stack.enter_context(dask.config.set(_CONFIG))
        with uninterrupted():
            cluster = LocalCluster(
                n_workers=count or cores,
                threads_per_worker=1,
                memory_limit=memory_limit or "auto",
                dashboard_address="127.0.0.1:0",  # any free port, since several joins may run at once
                host="127.0.0.1",
                security=security,  # else any user of this machine could run code in the workers
                silence_logs=_SILENT,
            )
            client = stack.enter_context(Client(stack.enter_context(cluster)))
        client.wait_for_workers(count or cores)
        yield _workers_of(client, folder, patience)


@contextmanager
def _client_of(scheduler: str) -> Iterator["Client"]:
    from distributed import Client

    _check_answers(scheduler)
    try:
        with _without_log():
            client = Client(scheduler, timeout=_SECONDS_TO_CONNECT)
    except (OSError, ValueError) as error:
        raise _no_answer(scheduler) from error
    with _without_log(), ExitStack() as stack:
        stack.callback(_close, client)
        try:
            client.wait_for_workers(1, timeout=_SECONDS_TO_CONNECT)
        except TimeoutError as error:
            raise QueryError(
                f"the scheduler at {scheduler} has no workers; start some with `dask worker {scheduler}`"
            ) from error
        yield client


def _close(client: "Client") -> None:
    """Close a client in silence: one whose scheduler is gone may fail to close."""
    with suppress(Exception):
        client.close()


def _check_answers(scheduler: str) -> None:
    """Raise unless a Dask scheduler answers; `Client` has no timeout for a server that speaks something else.

    A scheduler speaks first: the length of its greeting, as 8 bytes. Over TLS, `Client` checks what answers.
    """
    from distributed.comm.addressing import parse_address, parse_host_port
    from distributed.security import Security

    try:
        scheme, place = parse_address(scheduler)
        if scheme not in ("tcp", "tls"):
            return
        if scheme == "tls" and Security().get_connection_args("client").get("ssl_context") is None:
            raise QueryError(
                f"the ‹scheduler› at {scheduler!r} needs certificates; name them in Dask's configuration "
                f"(distributed.comm.tls)",
                parameter="scheduler",
            )
        with socket.create_connection(parse_host_port(place, 8786), timeout=_SECONDS_TO_CONNECT) as connection:
            greeting = connection.recv(8, socket.MSG_WAITALL) if scheme == "tcp" else bytes(8)
        if len(greeting) < 8:
            raise ConnectionError("it closed the connection")
    except (OSError, ValueError) as error:
        raise _no_answer(scheduler) from error
    if int.from_bytes(greeting, "little") > _LONGEST_GREETING:
        raise QueryError(
            f"what answers at {scheduler!r} is not a Dask scheduler; give the address that `dask scheduler` prints as "
            f"‹scheduler›",
            parameter="scheduler",
        )


def _no_answer(scheduler: str) -> QueryError:
    return QueryError(
        f"no ‹scheduler› answers at {scheduler!r}; start one with `dask scheduler`, and give the address it prints",
        parameter="scheduler",
    )


@contextmanager
def _without_log() -> Iterator[None]:
    """Stop the log of Dask, which prints tracebacks of failed tasks and lost schedulers: an error here says so."""
    levels = {logger: logger.level for logger in (_dask_logger, logging.getLogger("distributed.client"))}
    try:
        for logger in levels:
            logger.setLevel(_SILENT)
        yield
    finally:
        for logger, level in levels.items():
            logger.setLevel(level)


def _workers_of(client: "Client", folder: Path, patience: float) -> Workers:
    """Ask every worker for its threads and memory, and whether it sees the folder."""
    try:
        workers = client.run(_describe, str(folder))
    except ImportError as error:
        raise QueryError(f"a worker cannot import neupath ({error}); install it where the workers run") from error
    if not workers:
        raise QueryError("all workers are gone; start some, and run the join again")
    blind = [address for address, (sees, _, _) in workers.items() if not sees]
    if blind:
        raise QueryError(
            f"the worker {blind[0]} does not see {folder}; give an ‹out› in a folder that all machines share",
            parameter="out",
        )
    threads = sum(threads for _, threads, _ in workers.values())
    return Workers(client, threads, min(memory // threads for _, threads, memory in workers.values()), patience)


def _describe(folder: str, dask_worker: Any) -> tuple[bool, int, int]:
    memory = dask_worker.memory_manager.memory_limit or total_memory()
    return Path(folder).is_dir(), dask_worker.state.nthreads, memory


def parse_memory(limit: str | int | None) -> int | None:
    """Return a memory limit such as "2GiB" in bytes."""
    if limit is None:
        return None
    try:
        from dask.utils import parse_bytes
    except ModuleNotFoundError as error:
        raise MissingExtraError("Dask", "neupath[cluster]") from error
    try:
        size = int(parse_bytes(limit))
    except ValueError:
        size = 0
    if size < 1:
        raise QueryError(f"‹memory_limit› is {limit!r}; give a number of bytes, such as 2GiB", parameter="memory_limit")
    return size


# ---- Ctrl-C --------------------------------------------------------------------------------------
@contextmanager
def uninterrupted() -> Iterator[None]:
    """Delay Ctrl-C while a cluster is started, and hide it from the processes and threads that start meanwhile."""
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

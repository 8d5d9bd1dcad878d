"""Workers: the processes of a Dask cluster, one that is given or one that is started here, and tasks run on them."""

import logging
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import resource_tracker
from pathlib import Path
from threading import Event, Thread, current_thread, main_thread
from time import monotonic
from typing import TYPE_CHECKING, Any, Self, TypeVar

from neupath._runtime.resources import count_cores, total_memory
from neupath.cluster.tiles import forget
from neupath.errors import MissingExtraError, NeuPathError, QueryError

if TYPE_CHECKING:
    from distributed import Client, Future


# ---- Starting processes that Ctrl-C in a terminal does not reach ---------------------------------
@contextmanager
def uninterrupted() -> Iterator[None]:
    """Put off Ctrl-C while a cluster is started, and keep it from the processes and threads that this starts."""
    resource_tracker.ensure_running()  # which would let the signal through when the first process is started
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        with _put_off():
            yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


@contextmanager
def _put_off() -> Iterator[None]:
    """Hear of the signal, which another thread may let through, and pass it on at the end."""
    if current_thread() is not main_thread():
        yield
        return
    heard: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: heard.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if heard:
            signal.raise_signal(signal.SIGINT)


# ---- Absence -------------------------------------------------------------------------------------
logger = logging.getLogger("neupath")
PATIENCE = 120.0
"""Seconds without any worker after which a join gives up."""
_BETWEEN_LOOKS = 1.0
_TO_ANSWER = 5.0


class WorkerWatchdog:
    """Looks every second, while tasks are waited for, whether there are workers; without any for long, cancels them."""

    def __init__(self, client: "Client", futures: "Sequence[Future[Any]]", patience: float) -> None:
        self.too_long = False
        self._client, self._futures, self._patience = client, futures, patience
        self._over = Event()
        self._thread = Thread(target=self._watch, name="neupath-absence", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join(_TO_ANSWER)  # no longer than it may wait for an answer

    def _watch(self) -> None:
        since: float | None = None
        while not self._over.wait(_BETWEEN_LOOKS):
            if self._is_anyone_there():
                since = None
            elif since is None:
                since = monotonic()
                logger.warning("all workers are gone; waiting %.0f seconds for others", self._patience)
            elif monotonic() - since >= self._patience:
                self.too_long = True
                self._client.cancel(self._futures)
                return

    def _is_anyone_there(self) -> bool:
        try:
            return bool(self._client.nthreads(callback_timeout=_TO_ANSWER))
        except TimeoutError:  # a scheduler that hangs gives nobody work
            return False
        except (OSError, CancelledError):  # one that is gone itself ends the tasks
            return True


# ---- Workers -------------------------------------------------------------------------------------
T = TypeVar("T")
_logger = logging.getLogger("distributed")
_SECONDS_TO_ANSWER = 20
_CONFIG = {
    # blocks lie in files and not in Dask's memory, so that there is nothing to spill, and pausing would only stall
    "distributed.worker.memory.target": False,
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.pause": False,
    "distributed.worker.memory.terminate": 0.95,
    "distributed.worker.profile.enabled": False,  # it samples what workers do, a hundred times a second
}


@dataclass(frozen=True)
class Workers:
    """A connection to a scheduler, and how many tasks its workers run at once."""

    client: "Client"
    count: int
    memory: int
    """Bytes that a task may take with its process; a process with several threads shares them."""
    patience: float
    """Seconds to wait for workers once all are gone."""

    def each(
        self, work: Callable[..., T], arguments: Sequence[tuple[Any, ...]], told: Callable[[int], None] = lambda _: None
    ) -> list[T]:
        """Run a task for each tuple of arguments; return the results in order, and tell of each task as it ends.

        A task whose worker dies is run again elsewhere; with no worker left for long, it is given up.
        """
        from distributed import KilledWorker, as_completed

        futures = [self.client.submit(work, *given, pure=False) for given in arguments]
        number = {future.key: at for at, future in enumerate(futures)}
        results: list[Any] = [None] * len(futures)
        absence = WorkerWatchdog(self.client, futures, self.patience)
        try:
            with absence:
                for future, result in as_completed(futures, with_results=True):
                    if isinstance(result, BaseException):  # Dask does not raise that tasks are lost
                        raise CancelledError("the scheduler lost its tasks, or is gone") from result
                    at = number[future.key]
                    results[at] = result
                    futures[at].release()
                    told(at)
        except (KilledWorker, MemoryError) as error:
            raise NeuPathError(
                "a task took more memory than a worker has, four times over; give a larger ‹memory_limit› "
                "or a smaller ‹block›"
            ) from error
        except (CancelledError, OSError) as error:
            reason = f"all workers were gone for {self.patience:.0f} seconds" if absence.too_long else error
            raise NeuPathError(
                f"the work on the cluster was broken off ({reason}); give the same command again: it goes on with the "
                f"blocks that are missing"
            ) from error
        finally:
            if self.client.status == "running":
                self.client.cancel([future for future in futures if not future.done()])
        return results

    def free(self) -> None:
        """Let every worker forget what it kept for the next task."""
        if self.client.status == "running":
            with suppress(OSError):  # a worker that is gone keeps nothing
                self.client.run(forget)


@contextmanager
def connect(
    scheduler: str | None, count: int | None, memory_limit: int | None, folder: Path, patience: float = PATIENCE
) -> Iterator[Workers]:
    """Connect to a scheduler, or start one here with workers of its own, who must all see a folder."""
    try:
        import dask
        from distributed import Client, LocalCluster
    except ImportError as error:
        raise MissingExtraError("Dask", "neupath[cluster]") from error
    if scheduler is not None:
        with _answering(scheduler) as client:
            yield _described(client, folder, patience)
        return
    cores = count_cores()
    with ExitStack() as stack:
        stack.callback(_logger.setLevel, _logger.level)
        stack.enter_context(dask.config.set(_CONFIG))
        with uninterrupted():
            cluster = LocalCluster(
                n_workers=count or cores,
                threads_per_worker=1,
                memory_limit=memory_limit or "auto",
                dashboard_address="127.0.0.1:0",  # any free port: several joins may run at once
                host="127.0.0.1",
                silence_logs=logging.CRITICAL,  # what fails in a task is raised here
            )
            client = stack.enter_context(Client(stack.enter_context(cluster)))
            stack.push(_hush)
        client.wait_for_workers(count or cores)
        yield _described(client, folder, patience)


def _hush(error: type[BaseException] | None, *_: object) -> None:
    """Let nothing be logged of a cluster that ends in the middle of its work: an error says what happened."""
    if error is not None:
        _logger.setLevel(logging.CRITICAL + 1)


@contextmanager
def _answering(scheduler: str) -> Iterator["Client"]:
    from distributed import Client

    try:
        client = Client(scheduler, timeout=_SECONDS_TO_ANSWER)
    except (OSError, ValueError) as error:
        raise QueryError(
            f"no scheduler answers at {scheduler!r}; start one with `dask scheduler`, and give the address it tells"
        ) from error
    with client:
        try:
            client.wait_for_workers(1, timeout=_SECONDS_TO_ANSWER)
        except TimeoutError as error:
            raise QueryError(
                f"the scheduler at {scheduler} has no workers; start some with `dask worker {scheduler}`"
            ) from error
        yield client


def _described(client: "Client", folder: Path, patience: float) -> Workers:
    """Ask every worker what it has, and whether it sees the folder."""
    try:
        told = client.run(_describe, str(folder))
    except ImportError as error:
        raise QueryError(f"a worker cannot import neupath ({error}); install it where the workers run") from error
    if not told:
        raise QueryError("all workers are gone; start some, and give the same command again")
    blind = [address for address, (sees, _, _) in told.items() if not sees]
    if blind:
        raise QueryError(
            f"the worker {blind[0]} does not see {folder}; give an ‹out› in a folder that all machines share"
        )
    threads = sum(threads for _, threads, _ in told.values())
    return Workers(client, threads, min(memory // threads for _, threads, memory in told.values()), patience)


def _describe(folder: str, dask_worker: Any) -> tuple[bool, int, int]:
    limit = dask_worker.memory_manager.memory_limit
    memory = limit or total_memory()
    return Path(folder).is_dir(), dask_worker.state.nthreads, memory


def parse_memory(given: str | int | None) -> int | None:
    """Read a number of bytes such as 2GiB."""
    if given is None:
        return None
    try:
        from dask.utils import parse_bytes
    except ImportError as error:
        raise MissingExtraError("Dask", "neupath[cluster]") from error
    try:
        found = int(parse_bytes(given))
    except ValueError as error:
        raise QueryError(f"memory_limit is {given!r}; give a number of bytes, such as 2GiB") from error
    if found < 1:
        raise QueryError(f"memory_limit is {given!r}; give a number of bytes, such as 2GiB")
    return found

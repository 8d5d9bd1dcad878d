"""A service in a process of its own, watched while something happens to it: its health, its memory, its log."""

import http.client
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import PIPE, Popen
from tempfile import NamedTemporaryFile
from threading import Event, Thread
from time import perf_counter
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from tests.patience import PATIENCE
from tests.processes import run_process

INTERVAL = 0.05
"""Seconds from one look at the service to the next."""
_GIVE_UP = min(PATIENCE, 120.0)
"""Seconds after which health counts as not answered."""


@dataclass
class ObservedService:
    """A service that runs: where, and what was seen of it so far."""

    process: Popen[str]
    url: str
    log: Path
    """The file that has its stderr."""
    seconds: list[float] = field(default_factory=list)
    """How long each answer of /api/health took, over a new connection each time."""
    unanswered: int = 0
    """How often /api/health was not answered, or not with 200."""
    first_bytes: int = 0
    """Bytes of memory of the process and its children when it was ready."""
    most_bytes: int = 0
    _asked: float | None = None

    @property
    def address(self) -> tuple[str, int]:
        parts = urlsplit(self.url)
        return str(parts.hostname), int(parts.port or 80)

    @property
    def is_alive(self) -> bool:
        return self.process.poll() is None

    def read_log(self) -> str:
        """Return what the service wrote to stderr."""
        return self.log.read_text(errors="replace")

    def ask_health(self) -> int:
        """Ask for /api/health over a new connection; return the status."""
        connection = http.client.HTTPConnection(*self.address, timeout=_GIVE_UP)
        try:
            connection.request("GET", "/api/health")
            return connection.getresponse().status
        finally:
            connection.close()

    def time_health(self) -> None:
        """Ask for health once."""
        self._asked = perf_counter()
        try:
            self.unanswered += self.ask_health() != 200
        except (OSError, http.client.HTTPException):
            self.unanswered += 1
        else:
            self.seconds += self._waited()
        self._asked = None

    def _waited(self) -> list[float]:
        """Return how long the present question has waited, and those that it kept from being asked would have."""
        return [] if self._asked is None else np.arange(perf_counter() - self._asked, 0, -INTERVAL).tolist()

    def weigh(self) -> None:
        """Read the memory once."""
        self.most_bytes = max(self.most_bytes, self.memory())

    def memory(self) -> int:
        """Return the resident bytes of the process and its children."""
        return sum(map(_resident_bytes, _family(self.process.pid)))

    def figures(self) -> dict[str, Any]:
        """Return what was seen, for a report."""
        times = np.array([*self.seconds, *self._waited()] or [0.0]) * 1000
        p50, p99, most = (round(float(time), 1) for time in np.percentile(times, [50, 99, 100]))
        return {
            "health_ms": {"p50": p50, "p99": p99, "max": most},
            "health_answers": len(self.seconds),
            "health_unanswered": self.unanswered,
            "memory_mb": {"first": self.first_bytes >> 20, "peak": self.most_bytes >> 20},
            "alive": self.is_alive,
            "tracebacks": self.read_log().count("Traceback"),
        }


def _family(process: int) -> Iterator[int]:
    """Yield a process and all that it started, of those that still run."""
    yield process
    with suppress(OSError):
        for children in Path(f"/proc/{process}/task").glob("*/children"):
            for child in children.read_text().split():
                yield from _family(int(child))


def _resident_bytes(process: int) -> int:
    with suppress(OSError):  # it has ended meanwhile
        return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return 0


@contextmanager
def observe_service(*arguments: str | Path, files: int | None = None) -> Iterator[ObservedService]:
    """Run `neupath serve` with some arguments while the block runs, and watch it; `files` limits its open files."""
    command: Sequence[str | Path] = [sys.executable, "-m", "neupath.cli", "serve", *arguments, "--port", "0"]
    if files is not None:
        command = ["sh", "-c", f'ulimit -n {files} && exec "$@"', "sh", *command]
    environment = os.environ | {"PYTHONUNBUFFERED": "1"}
    with NamedTemporaryFile() as log, run_process(command, stdout=PIPE, stderr=log, env=environment) as process:
        assert process.stdout is not None
        banner = process.stdout.readline()
        assert " at http" in banner, f"the service does not start: {banner}{Path(log.name).read_text()}"
        service = ObservedService(process, banner.partition(" at ")[2].split()[0], Path(log.name))
        service.first_bytes = service.most_bytes = service.memory()
        with _watched(service):
            yield service


@contextmanager
def _watched(service: ObservedService) -> Iterator[None]:
    over = Event()

    def repeat(look: Callable[[], None]) -> None:
        while not over.wait(INTERVAL):
            look()

    threads = [Thread(target=repeat, args=(look,)) for look in (service.time_health, service.weigh)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join()

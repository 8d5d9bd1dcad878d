"""Tasks on Ray."""

import logging
import re
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from neupath.cluster.joining import Cluster, apply
from neupath.engine.tasks import Each
from neupath.errors import MissingExtraError, QueryError, first_line

_SECONDS_TO_CONNECT, _SECONDS_TO_ANSWER, _SECONDS_TO_END = 20, 60, 10
_RETRIES = 3  # of a task whose worker died
_HEAD = re.compile(r"(?P<host>[^:/]+|\[[0-9a-fA-F:]+\]):(?P<port>[0-9]{1,5})")


@dataclass(frozen=True)
class Ray(Cluster):
    """Run tasks on a cluster such as ray://10.0.0.1:10001, or on workers that are started here.

    In a program that is connected to a cluster already, as a job of Ray may be, the tasks run there.
    """

    @contextmanager
    def _connected(self) -> Iterator[Each]:
        try:
            import ray
        except ModuleNotFoundError as error:
            raise MissingExtraError("Ray", "neupath[ray]") from error
        if ray.is_initialized():
            yield partial(_run, ray)
            return
        self._initialise(ray)
        try:
            yield partial(_run, ray)
        finally:
            ray.shutdown()

    def _initialise(self, ray: Any) -> None:
        own = {} if self.address else {"num_cpus": self.num_workers, "include_dashboard": False}
        try:
            if self.address:
                _check_answers(self.address)
            ray.init(self.address or "local", log_to_driver=False, logging_level=logging.CRITICAL, **own)
        except (OSError, RuntimeError, ValueError, ImportError, subprocess.SubprocessError) as error:
            raise QueryError(
                f"no Ray cluster answers at {self.address} ({first_line(error)[:300]}); start one with "
                f"`ray start --head`, and give its ‹address›",
                parameter="address",
            ) from error


def _check_answers(address: str) -> None:
    """Raise unless a Ray cluster answers at host:port; `ray.init` would hang, or end the process."""
    place = _HEAD.fullmatch(address)
    if place is None:
        return
    socket.create_connection((place["host"].strip("[]"), int(place["port"])), _SECONDS_TO_CONNECT).close()
    command = [sys.executable, "-m", "ray.scripts.scripts", "health-check", "--address", address]
    answer = subprocess.run(command, capture_output=True, timeout=_SECONDS_TO_ANSWER, check=False)
    if answer.returncode:
        raise ConnectionError("what answers there is no Ray cluster")


def _run(
    ray: Any, task: Callable[..., object], arguments: Sequence[tuple[Any, ...]], on_done: Callable[[int], object]
) -> None:
    """Run a task for each tuple of arguments; one whose worker dies runs again on another."""
    run = ray.remote(max_retries=_RETRIES)(apply)
    pending = {run.remote(task, own): number for number, own in enumerate(arguments)}
    try:
        while pending:
            done, _ = ray.wait(list(pending))
            for future in done:
                ray.get(future)
                on_done(pending.pop(future))
    except ray.exceptions.RayTaskError as error:
        raise error.cause from error
    finally:
        for future in pending:
            ray.cancel(future, force=True)
        for future in pending:  # Ray prints the error of a task that nobody has asked for
            with suppress(Exception):
                ray.get(future, timeout=_SECONDS_TO_END)

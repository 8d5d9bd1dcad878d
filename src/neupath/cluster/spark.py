"""Tasks on Spark."""

import os
import re
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, wait
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from neupath.cluster.joining import Cluster
from neupath.engine.tasks import Each
from neupath.errors import MissingExtraError, NeuPathError, QueryError, first_line

_SECONDS_BETWEEN_LOOKS, _SECONDS_TO_CONNECT = 0.2, 20
_GROUP = "neupath"
_TASKS_PER_CORE = 8  # each does several blocks: a worker that starts opens and verifies the index first
_MASTER = re.compile(r"spark://(?P<host>[^:/,]+):(?P<port>[0-9]{1,5})")
_REASON = re.compile(r"^(?:Caused by: )?((?:[A-Z]\w*|[a-z]\w*\.[\w.]*)(?:Error|Exception): .+)$", re.MULTILINE)


@dataclass(frozen=True)
class Spark(Cluster):
    """Run tasks on a master such as spark://10.0.0.1:7077 or yarn, or on threads of a Spark that is started here.

    In a program that has a Spark session already, as one that was submitted, the tasks run in that session.
    """

    @contextmanager
    def _connected(self) -> Iterator[Each]:
        session, is_own = self._session()
        try:
            yield partial(_run, session.sparkContext)
        finally:
            if is_own:
                session.stop()

    def _session(self) -> tuple[Any, bool]:
        """Return the session of the program, or a new one, and whether it is new."""
        try:
            from pyspark import SparkContext
            from pyspark.sql import SparkSession
        except ModuleNotFoundError as error:
            raise MissingExtraError("PySpark", "neupath[spark]") from error
        if SparkContext._active_spark_context is not None:
            return SparkSession.builder.getOrCreate(), False
        if self.address is not None:
            _check_answers(self.address)
        is_submitted = self.address is None and "PYSPARK_GATEWAY_PORT" in os.environ  # and has its settings
        master = self.address or f"local[{self.num_workers}]"
        builder = SparkSession.builder.appName(_GROUP)
        if not is_submitted:
            os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
            builder = builder.master(master).config("spark.ui.enabled", "false")
            if master.startswith("local"):
                os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        try:
            session = builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()
        except Exception as error:  # of Java, which may be missing, or of the master
            raise QueryError(
                f"Spark did not start with the master {master} ({first_line(error)[:300]}); it needs Java 17 or newer, "
                f"and as ‹address› the master that spark-submit takes",
                parameter="address",
            ) from error
        session.sparkContext.setLogLevel("OFF")
        return session, True


def _run(
    context: Any, task: Callable[..., object], arguments: Sequence[tuple[Any, ...]], on_done: Callable[[int], object]
) -> None:
    """Run one Spark task for each tuple of arguments, and report those that the driver knows to have ended."""
    if not arguments:
        return
    from pyspark import AccumulatorParam, InheritableThread

    class Ended(AccumulatorParam):  # type: ignore[misc]
        """The numbers of tasks that have ended, and what is wrong with those that cannot succeed."""

        def zero(self, value: dict[int, str]) -> dict[int, str]:  # noqa: ARG002
            return {}

        def addInPlace(self, some: dict[int, str], more: dict[int, str]) -> dict[int, str]:  # noqa: N802
            return some | more

    ended = context.accumulator({}, Ended())
    result: Future[None] = Future()

    def work(numbered: tuple[int, tuple[Any, ...]]) -> None:
        number, own = numbered
        try:
            task(*own)
            ended.add({number: ""})
        except NeuPathError as error:  # which is the same each time
            ended.add({number: str(error.args[0])})

    def run() -> None:
        context.setJobGroup(_GROUP, "blocks of neupath", interruptOnCancel=True)
        try:
            slices = min(len(arguments), _TASKS_PER_CORE * context.defaultParallelism)
            context.parallelize(list(enumerate(arguments)), slices).foreach(work)
            result.set_result(None)
        except BaseException as error:  # raised by the thread that waits
            result.set_exception(error)

    InheritableThread(target=run, daemon=True).start()
    reported: set[int] = set()
    try:
        while len(reported) < len(arguments):
            wait([result], timeout=_SECONDS_BETWEEN_LOOKS)
            is_over = result.done()
            if is_over:
                _raise_reason(result)
            known = dict(ended.value)
            for message in filter(None, known.values()):
                raise NeuPathError(message)
            for number in sorted(({*range(len(arguments))} if is_over else {*known}) - reported):
                reported.add(number)
                on_done(number)
    finally:
        if not result.done():
            context.cancelJobGroup(_GROUP)


def _raise_reason(result: "Future[None]") -> None:
    """Raise the error of a task rather than the pages that Java says of it."""
    try:
        result.result()
    except Exception as error:
        reasons = _REASON.findall(str(error))
        if reasons:
            raise RuntimeError(reasons[-1]) from error
        raise


def _check_answers(address: str) -> None:
    """Raise unless something answers at spark://host:port; Spark asks for more than a minute."""
    place = _MASTER.match(address)
    if place is None:
        return
    try:
        socket.create_connection((place["host"], int(place["port"])), _SECONDS_TO_CONNECT).close()
    except OSError as error:
        raise QueryError(
            f"no Spark master answers at {address} ({first_line(error)}); give as ‹address› the master that "
            f"spark-submit takes",
            parameter="address",
        ) from error

"""Measures over the whole graph in processes of their own, which can be killed while they compute.

On large graphs they prepare for seconds to minutes, some parts of it without a chance to stop.
"""

from contextlib import ExitStack
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from threading import Lock
from typing import Any, Self
from weakref import finalize

from neupath._runtime.progress import check_cancelled
from neupath._runtime.resources import reserve_memory, resident_bytes
from neupath.engine.scorer import Scorer
from neupath.engine.topk import Ranking
from neupath.errors import NeuPathError, QueryError
from neupath.graph.hin import HIN, Floats
from neupath.graph.nodes import Mask, Rows
from neupath.measures import GraphMeasure
from neupath.service.child_process import begin_child, memory_for_child, start_child
from neupath.service.schemas import RequestError

_MOST_SECONDS = 0.5  # of preparation in the service itself; a process takes longer to start
_POLL = 0.1  # seconds between two looks whether somebody still waits for the answer


def needs_process(measure: Scorer, hin: HIN) -> bool:
    """Whether a measure may compute for long without a chance to stop."""
    return isinstance(measure, GraphMeasure) and measure.expected_seconds(hin) > _MOST_SECONDS


class ProcessScorer(Scorer):
    """A measure over the whole graph, fitted and asked in another process; the answers are the same to the bit.

    The process ends with this object, and when the work that waits for it is cancelled.
    """

    def __init__(self, measure: GraphMeasure, most_memory: int) -> None:
        self.name = measure.name  # type: ignore[misc]
        self._measure, self._most_memory = measure, most_memory
        self._asking = Lock()

    def fit(self, hin: HIN) -> Self:
        self.hin_, self._node_type = hin, hin.schema.node_type(self._measure.node_type)
        memory, stack = memory_for_child(self._most_memory), ExitStack()
        reservation = stack.enter_context(reserve_memory(memory, self.name))
        self._memory = memory
        try:
            self._process, self._connection = start_child(_answer, self._measure, hin, memory)
        except BaseException:
            stack.close()
            raise
        self.end = finalize(self, _end, self._process, self._connection, stack)
        reservation.process = self._process.pid
        self.error_ = self._call()
        self.exact = self.error_ == 0
        reservation.size = self.num_bytes = resident_bytes(self._process.pid or 0)  # answers take little more
        return self

    @property
    def is_alive(self) -> bool:
        return self.end.alive

    @property
    def source_type(self) -> str:
        return self._node_type

    def params(self) -> dict[str, object]:
        return self._measure.params() | {"node_type": self._node_type}

    def score_rows(self, queries: Rows) -> Floats:
        scores: Floats = self._ask("score_rows", queries)
        return scores

    def rank_rows(self, queries: Rows, skipped: Rows, k: int, candidates: Mask | None, threads: int | None) -> Ranking:
        ranking: Ranking = self._ask("rank_rows", queries, skipped, k, candidates, threads)
        return ranking

    def _ask(self, method: str, *arguments: object) -> Any:
        """Call a method of the measure in its process, one thread at a time."""
        while not self._asking.acquire(timeout=_POLL):
            check_cancelled()
        try:
            return self._call((method, arguments))
        finally:
            self._asking.release()

    def _call(self, question: object = None) -> Any:
        """Return what the process answers, or raise its error; end the process where nobody waits any more."""
        try:
            if question is not None:
                self._connection.send(question)
            while not self._connection.poll(_POLL):
                check_cancelled()
            answer = self._connection.recv()
        except (EOFError, OSError):
            self.end()
            size = f"{self._memory / 2**30:.1f} GiB"
            raise RequestError(
                503, f"the process of {self.name} has ended: a request that used it was stopped, or it has run out of "
                f"the {size} of memory that it may take (the limit job_bytes); try again",
            ) from None  # fmt: skip
        except BaseException:
            self.end()
            raise
        if isinstance(answer, NeuPathError):
            raise answer
        return answer


def _end(process: SpawnProcess, connection: Connection, stack: ExitStack) -> None:
    with stack:
        connection.close()
        process.kill()
        process.join()
        process.close()


def _answer(connection: Connection, measure: GraphMeasure, hin: HIN, memory: int) -> None:
    """Fit a measure, then answer questions until the service closes the connection."""
    begin_child(memory)
    work: Any = measure.fit
    arguments: Any = (hin,)
    while True:
        try:
            answer = work(*arguments)
        except NeuPathError as error:
            answer = error
        except MemoryError:
            answer = QueryError(
                f"{measure.name} takes more than the {memory / 2**30:.1f} GiB of memory that it may take here; use a "
                f"smaller graph or another measure, or raise the limit job_bytes"
            )
        try:
            connection.send(measure.error_ if answer is measure else answer)
            method, arguments = connection.recv()
        except (EOFError, OSError):
            return
        work = getattr(measure, method)

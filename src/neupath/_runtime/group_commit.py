"""Group commit: one thread processes the items of all waiting threads as one batch."""

from collections.abc import Callable
from dataclasses import dataclass
from threading import Condition, Thread, current_thread, main_thread
from typing import Generic, TypeVar

T = TypeVar("T")
R = TypeVar("R")
_SECONDS = 0.5  # of one wait; Ctrl-C is noticed between two where Polars has waits restarted after a signal


@dataclass
class _Ticket(Generic[T, R]):
    item: T
    outcome: R | BaseException | None = None


class GroupCommit(Generic[T, R]):
    """Processes one batch at a time. Threads that call meanwhile wait; one of them then processes all waiting items.

    Ctrl-C reaches only the main thread, which therefore processes only its own item: an interrupt fails no other.

    Parameters
    ----------
    work
        Takes a batch of items; returns the result or the error of each.

    >>> GroupCommit(lambda items: [item * 2 for item in items])(21)
    42
    """

    def __init__(self, work: Callable[[list[T]], list[R | BaseException]]) -> None:
        self._work = work
        self._waiting: list[_Ticket[T, R]] = []
        self._worker: Thread | None = None
        self._changed = Condition()

    def __call__(self, item: T) -> R:
        """Process an item, or wait until another thread has processed it; return its result or raise its error."""
        ticket: _Ticket[T, R] = _Ticket(item)
        try:
            self._wait_or_work(ticket)
        finally:
            self._release()
        if isinstance(ticket.outcome, BaseException):
            raise ticket.outcome
        return ticket.outcome  # type: ignore[return-value]

    def _wait_or_work(self, ticket: _Ticket[T, R]) -> None:
        with self._changed:
            self._waiting.append(ticket)
            try:
                while self._worker is not None and ticket.outcome is None:
                    self._changed.wait(_SECONDS)
            except BaseException:  # an interrupted caller must not have its item processed later
                self._withdraw(ticket)
                raise
            tickets = [] if ticket.outcome is not None else self._take(ticket)
        if tickets:
            self._process(tickets)

    def _release(self) -> None:
        """Let the next thread work, even if this one failed."""
        with self._changed:
            if self._worker is current_thread():
                self._worker = None
                self._changed.notify_all()

    def _withdraw(self, ticket: _Ticket[T, R]) -> None:
        self._waiting = [other for other in self._waiting if other is not ticket]

    def _take(self, ticket: _Ticket[T, R]) -> list[_Ticket[T, R]]:
        """Return the batch that this thread processes."""
        self._worker = current_thread()
        if current_thread() is main_thread():
            self._withdraw(ticket)
            return [ticket]
        taken, self._waiting = self._waiting, []
        return taken

    def _process(self, tickets: list[_Ticket[T, R]]) -> None:
        outcomes: list[R | BaseException]
        try:
            outcomes = self._work([ticket.item for ticket in tickets])
        except BaseException as error:  # so that no thread waits forever
            outcomes = [error] * len(tickets)
        with self._changed:
            for ticket, outcome in zip(tickets, outcomes, strict=True):
                ticket.outcome = outcome

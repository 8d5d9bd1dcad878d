"""Group commit: one thread does the work of all that wait."""

from collections.abc import Callable
from dataclasses import dataclass
from threading import Condition, Thread, current_thread, main_thread
from typing import Generic, TypeVar

T = TypeVar("T")
R = TypeVar("R")


@dataclass
class _Ticket(Generic[T, R]):
    item: T
    outcome: R | BaseException | None = None


class GroupCommit(Generic[T, R]):
    """Does one batch of work at a time. Threads that arrive meanwhile wait, and the first of them does all that wait.

    Ctrl-C reaches the main thread alone. It therefore does its own item only: an interrupt costs no other thread.

    Parameters
    ----------
    work
        Takes several items, and returns a result for each, or an error for one that is refused.

    >>> GroupCommit(lambda items: [item * 2 for item in items])(21)
    42
    """

    def __init__(self, work: Callable[[list[T]], list[R | BaseException]]) -> None:
        self._work = work
        self._waiting: list[_Ticket[T, R]] = []
        self._worker: Thread | None = None
        self._changed = Condition()

    def __call__(self, item: T) -> R:
        """Do an item, or wait until another thread has done it, and return its result."""
        ticket: _Ticket[T, R] = _Ticket(item)
        try:
            self._settle(ticket)
        finally:
            self._release()
        if isinstance(ticket.outcome, BaseException):
            raise ticket.outcome
        return ticket.outcome  # type: ignore[return-value]

    def _settle(self, ticket: _Ticket[T, R]) -> None:
        with self._changed:
            self._waiting.append(ticket)
            try:
                while self._worker is not None and ticket.outcome is None:
                    self._changed.wait()
            except BaseException:  # an item that nobody has begun must not be done later
                self._withdraw(ticket)
                raise
            tickets = [] if ticket.outcome is not None else self._take(ticket)
        if tickets:
            self._do(tickets)

    def _release(self) -> None:
        """Let the next thread work, however this thread's work ended."""
        with self._changed:
            if self._worker is current_thread():
                self._worker = None
                self._changed.notify_all()

    def _withdraw(self, ticket: _Ticket[T, R]) -> None:
        self._waiting = [other for other in self._waiting if other is not ticket]

    def _take(self, ticket: _Ticket[T, R]) -> list[_Ticket[T, R]]:
        """Take the items that this thread does; all others wait for it."""
        self._worker = current_thread()
        if current_thread() is main_thread():
            self._withdraw(ticket)
            return [ticket]
        taken, self._waiting = self._waiting, []
        return taken

    def _do(self, tickets: list[_Ticket[T, R]]) -> None:
        outcomes: list[R | BaseException]
        try:
            outcomes = self._work([ticket.item for ticket in tickets])
        except BaseException as error:  # whatever it is, no thread waits forever
            outcomes = [error] * len(tickets)
        with self._changed:
            for ticket, outcome in zip(tickets, outcomes, strict=True):
                ticket.outcome = outcome

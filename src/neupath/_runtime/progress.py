"""Long work: how it reports its progress, and how it is cancelled.

The command line shows progress as a bar, a job of the service keeps a record of it.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import local
from typing import Protocol, TypeVar

T = TypeVar("T")


class Progress(Protocol):
    """Takes the stage of the work, how much of it is done, and how much there is (None: not known)."""

    def __call__(self, stage: str, done: int, total: int | None, /) -> object: ...


def no_progress(_stage: str, _done: int, _total: int | None, /) -> None:
    """Report nothing."""


def track(items: Sequence[T], stage: str, progress: Progress) -> Iterator[T]:
    """Yield the items, and report after each how many are done."""
    for done, item in enumerate(items):
        progress(stage, done, len(items))
        yield item
    progress(stage, len(items), len(items))


# ---- Cancellation --------------------------------------------------------------------------------
class WorkCancelled(BaseException):
    """Ends work that nobody waits for; no `except Exception` on the way may keep it going."""


class Cancellation:
    """Cancels the work of the thread that runs it (`cancelled_by`); any other thread may call `cancel`."""

    is_cancelled = False

    def cancel(self) -> None:
        self.is_cancelled = True


current = local()
"""Its attribute `cancellation` is what cancels the work of each thread."""


@contextmanager
def cancelled_by(cancellation: Cancellation) -> Iterator[None]:
    """Let a cancellation end what this thread does in the block."""
    current.cancellation = cancellation
    try:
        yield
    finally:
        current.cancellation = None


def check_cancelled() -> None:
    """Raise WorkCancelled if this thread's work was cancelled; long work calls it about once a second.

    >>> check_cancelled()  # nothing cancels it outside of `cancelled_by`
    """
    cancellation: Cancellation | None = getattr(current, "cancellation", None)
    if cancellation is not None and cancellation.is_cancelled:
        raise WorkCancelled

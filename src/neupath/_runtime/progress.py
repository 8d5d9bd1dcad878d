"""How long work reports its progress: the command line shows a bar, a job of the service keeps a record."""

from collections.abc import Iterator, Sequence
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

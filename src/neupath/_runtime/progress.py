"""Progress: how long work reports how far it is; the command line shows a bar, a job of the service keeps a record."""

from collections.abc import Iterable, Iterator, Sequence
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


# ---- Old protocols; each room replaces its uses of them with Progress, then this section goes ----
class IterableProgress(Protocol):
    """Wraps a sequence so that going through it is shown under a title."""

    def __call__(self, items: Sequence[T], title: str, /) -> Iterable[T]: ...


def silent(items: Sequence[T], _title: str, /) -> Iterable[T]:
    """Show nothing."""
    return items


class Stages(Protocol):
    """Is told which share of a stage of the work is done, by the title of the stage."""

    def __call__(self, title: str, share: float, /) -> object: ...


def unseen(_title: str, _share: float, /) -> None:
    """Show nothing."""

"""How long work shows its progress: a function around an iterable, which the command line fills with a bar."""

from collections.abc import Iterable, Sequence
from typing import Protocol, TypeVar

T = TypeVar("T")


class Progress(Protocol):
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

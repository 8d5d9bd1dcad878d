"""Independent tasks of a long work, run one after the other here, or by an engine such as Dask, Spark or Ray."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from neupath._runtime.progress import check_cancelled


class Each(Protocol):
    """Runs a task for each tuple of arguments, in any order, and reports each that has ended by its number.

    A task may run twice, as when the worker that ran it died. So it writes a file under another name, and renames it.
    """

    def __call__(
        self, task: Callable[..., object], arguments: Sequence[tuple[Any, ...]], on_done: Callable[[int], object], /
    ) -> None: ...


def in_this_process(
    task: Callable[..., object], arguments: Sequence[tuple[Any, ...]], on_done: Callable[[int], object]
) -> None:
    """Run the tasks one after the other, in this thread."""
    for number, own in enumerate(arguments):
        check_cancelled()
        task(*own)
        on_done(number)

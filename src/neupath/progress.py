"""Progress: bars on a terminal for work that takes time."""

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)

T = TypeVar("T")


class ProgressBars:
    """Progress bars on a console, gone when the work is done; nothing where the console is not a terminal."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def over(self, items: Sequence[T], title: str, /) -> Iterable[T]:
        """Go through items with a bar and the time left."""
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        with self._progress(*columns) as progress:
            yield from progress.track(items, description=title)

    def epochs(self, title: str) -> "EpochBar":
        """Return a bar for training, to be used with `with`."""
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        return EpochBar(self._progress(*columns), title)

    def counter(self, title: str) -> "CountBar":
        """Return a bar that is told how many of how many are done, to be used with `with`."""
        return CountBar(self._progress(TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()), title)

    def download(self) -> "DownloadBar":
        """Return a bar for downloads, to be used with `with`."""
        return DownloadBar(self._progress(TextColumn("{task.description}"), BarColumn(), DownloadColumn()))

    def stages(self) -> "StageBar":
        """Return a bar for work in stages, to be used with `with`."""
        columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
        return StageBar(self._progress(*columns))

    def _progress(self, *columns: ProgressColumn) -> Progress:
        return Progress(*columns, console=self._console, transient=True, disable=not self._console.is_terminal)


class EpochBar:
    """A bar over epochs with the errors of the last one."""

    def __init__(self, progress: Progress, title: str) -> None:
        self._progress = progress
        self._title = title
        self._task = progress.add_task(title, total=None)

    def __enter__(self) -> "EpochBar":
        self._progress.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._progress.stop()

    def __call__(self, epoch: Any, total: int) -> None:
        told = f"{self._title}: RMSE {epoch.train_rmse:.4f}, validation {epoch.validation_rmse:.4f}"
        self._progress.update(self._task, completed=epoch.epoch, total=total, description=told)


class CountBar:
    """A bar over things that are counted as they are done."""

    def __init__(self, progress: Progress, title: str) -> None:
        self._progress = progress
        self._task = progress.add_task(title, total=None)

    def __enter__(self) -> "CountBar":
        self._progress.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._progress.stop()

    def __call__(self, done: int, total: int) -> None:
        self._progress.update(self._task, completed=done, total=total)


class DownloadBar:
    """One bar a file of a download."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._tasks: dict[str, int] = {}

    def __enter__(self) -> "DownloadBar":
        self._progress.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._progress.stop()

    def __call__(self, name: str, done: int, total: int) -> None:
        if name not in self._tasks:
            self._tasks[name] = self._progress.add_task(name, total=total or None)
        self._progress.update(self._tasks[name], completed=done)  # type: ignore[arg-type]


class StageBar:
    """One bar a stage, by the share of it that is done; shown from the first one on."""

    def __init__(self, progress: Progress) -> None:
        self._bars = DownloadBar(progress)
        self._shown = False

    def __enter__(self) -> "StageBar":
        return self

    def __exit__(self, *error: object) -> None:
        if self._shown:
            self._bars.__exit__(*error)

    def __call__(self, title: str, share: float) -> None:
        if not self._shown:
            self._bars.__enter__()
            self._shown = True
        self._bars(title, round(1000 * share), 1000)

"""Reproduction: a plan of runs carried out, each kept as it is done, then tables and figures of all of them."""

import json
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from time import perf_counter

from neupath._runtime.files import check_folder, write_text
from neupath._runtime.progress import Progress, no_progress
from neupath._runtime.resources import count_cores
from neupath.errors import QueryError, SourceError, WriteError, did_you_mean, listed
from neupath.learn.reproduce.protocol import FULL, QUICK, QUICK_COLUMNS, Preset, columns_in
from neupath.learn.reproduce.reports import REPORTS
from neupath.learn.reproduce.runs import CLASSICAL, EXACT, INFERRED, LEARNED, PARTS, Question, Run, execute

ABOUT, RUNS = "reproduction.json", "runs.jsonl"
_SLOW = ("nbfnet", "hgt", "han", "neupath", "rgcn", "node2vec")


@dataclass(frozen=True)
class Reproduced:
    """What a reproduction wrote."""

    folder: Path
    runs: int
    resumed: int
    """Runs that were done before."""
    seconds: float
    files: tuple[Path, ...]

    def to_dict(self) -> dict[str, object]:
        """Return what `reproduce --json` prints."""
        return {
            "folder": str(self.folder), "runs": self.runs, "resumed": self.resumed, "seconds": self.seconds,
            "files": [str(path) for path in self.files],
        }  # fmt: skip


def reproduce(
    parts: Sequence[str] = (),
    out: str | Path = "reproduced",
    *,
    data: str | Path | None = None,
    quick: bool = False,
    seeds: int | None = None,
    architectures: Sequence[str] | None = None,
    jobs: int = 1,
    device: str | None = None,
    progress: Progress = no_progress,
) -> Reproduced:
    """Train and test what the parts of the paper need, all of them by default, and write their tables and figures.

    Each run is kept in the folder `out` as it is done, so that an interrupted reproduction goes on. `quick` takes a
    minute on the built-in graph; otherwise `data` is a folder with the paper's graphs. `architectures`
    restricts what is compared: architectures, measures, "infer".
    Three seeds, or one if quick, unless said.
    """
    for part in parts:
        if part not in PARTS:
            raise QueryError(f"no part {part!r} (there are {listed(PARTS)}){did_you_mean(part, PARTS)}")
    known = (*LEARNED, INFERRED, *CLASSICAL, EXACT)
    for model in architectures or ():
        if model not in known:
            raise QueryError(f"no architecture {model!r} (there are {listed(known, 30)}){did_you_mean(model, known)}")
    if (seeds is not None and seeds < 1) or jobs < 1:
        raise QueryError(f"seeds is {seeds} and jobs is {jobs}; both must be at least 1")
    folder, source = Path(out), None if quick or data is None else Path(data)
    columns = QUICK_COLUMNS if quick else columns_in(source)
    question = Question(columns, range(seeds or (1 if quick else 3)), QUICK if quick else FULL, architectures)
    wanted = list(parts) or list(PARTS)
    plans = {part: list(PARTS[part][1](question)) for part in wanted}
    for part, plan in plans.items():
        if not plan:
            raise QueryError(f"the part {part!r} has none of {listed(architectures or ())}; leave out either")
    every = list({run.key: run for plan in plans.values() for run in plan}.values())
    _open(folder, question.scale)
    began = perf_counter()
    results = _read(folder)
    waiting = sorted((run for run in every if run.key not in results), key=_patience)
    done = len(every) - len(waiting)
    progress("runs", done, len(every))
    for run, found in _carry_out(waiting, question.scale, source, jobs, device):
        results[run.key] = found
        _append(folder, {"run": run.key, **found})
        progress("runs", len(every) - sum(each.key not in results for each in waiting), len(every))
    files = [path for part in wanted for path in REPORTS[part]([results[r.key] for r in plans[part]], question, folder)]
    return Reproduced(folder, len(every), done, perf_counter() - began, tuple(files))


def _open(folder: Path, scale: Preset) -> None:
    """Make the folder of results, or see that it holds results of this scale."""
    check_folder(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise WriteError(f"cannot write to {folder}: {error.strerror}") from error
    about = json.dumps(scale.to_dict(), indent=1) + "\n"
    path = folder / ABOUT
    if not path.is_file():
        write_text(path, about)
    elif path.read_text(encoding="utf-8") != about:
        raise SourceError(f"{folder} holds results of another scale; give another ‹out›, or remove it")


def _carry_out(
    runs: Sequence[Run], scale: Preset, data: Path | None, jobs: int, device: str | None
) -> Iterator[tuple[Run, dict[str, object]]]:
    """Carry out runs, in some processes, and yield each result as it comes; what is timed has the machine to itself."""
    alone = [run for run in runs if run.timed or jobs == 1]
    together = [run for run in runs if not (run.timed or jobs == 1)]
    if together:
        yield from _side_by_side(together, scale, data, jobs, device)
    for run in alone:
        yield run, execute(run, scale, data, device)


def _side_by_side(
    runs: Sequence[Run], scale: Preset, data: Path | None, jobs: int, device: str | None
) -> Iterator[tuple[Run, dict[str, object]]]:
    threads = max(1, count_cores() // jobs)
    with ProcessPoolExecutor(jobs, get_context("spawn"), _start, (threads,)) as pool:
        waiting = {pool.submit(execute, run, scale, data, device): run for run in runs}
        try:
            for finished in as_completed(waiting):
                yield waiting[finished], finished.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _patience(run: Run) -> tuple[int, int]:
    """Put what takes long first, so that nothing is left to run alone at the end."""
    return -run.column.layers, _SLOW.index(run.model) if run.model in _SLOW else len(_SLOW)


def _start(threads: int) -> None:
    """Give each process its share of the cores."""
    os.environ["OMP_NUM_THREADS"] = str(threads)
    import torch

    torch.set_num_threads(threads)


def _append(folder: Path, line: dict[str, object]) -> None:
    """Keep a result: a line of its own, also after one that was cut off."""
    try:
        with (folder / RUNS).open("a", encoding="utf-8") as file:
            file.write(f"\n{json.dumps(line)}\n")
    except OSError as error:
        raise WriteError(f"cannot write {folder / RUNS}: {error.strerror}") from error


def _read(folder: Path) -> dict[str, dict[str, object]]:
    """Return the results that are kept, by run; a line that was cut off is a run that was not finished."""
    path = folder / RUNS
    found = {}
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines() if path.is_file() else []
    for line in filter(None, lines):
        try:
            result = json.loads(line)
            found[str(result.pop("run"))] = result
        except (ValueError, KeyError, AttributeError, TypeError):
            continue
    return found

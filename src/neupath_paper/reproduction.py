"""Reproduction: carries out a plan of runs, saves each result at once, and writes tables and figures."""

import json
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path
from time import perf_counter

from neupath._runtime.files import check_folder, write_text
from neupath._runtime.progress import Progress, no_progress
from neupath._runtime.resources import count_cores
from neupath.errors import MissingExtraError, QueryError, SourceError, WriteError, did_you_mean, listed

try:
    import lightgbm  # noqa: F401
    import matplotlib  # noqa: F401
    import safetensors  # noqa: F401
    import torch
except ModuleNotFoundError as error:
    raise MissingExtraError(str(error.name), "neupath[paper]") from error

from neupath_paper.protocol import FULL, QUICK, QUICK_COLUMNS, Preset, columns_in
from neupath_paper.reports import REPORTS
from neupath_paper.runs import CLASSICAL, EXACT, INFERRED, LEARNED, PARTS, Run, Study, execute

ABOUT, RUNS = "reproduction.json", "runs.jsonl"
_SLOW = ("nbfnet", "hgt", "han", "neupath-paper", "neupath", "rgcn", "node2vec")


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
    """Train and test what some parts of the paper need, and write their tables and figures.

    Each result is saved as soon as its run ends, so that an interrupted reproduction resumes.

    Parameters
    ----------
    parts
        Names in `PARTS`; all unless given.
    out
        The folder for results, tables and figures.
    data
        A folder with the paper's graphs.
    quick
        Whether to run for a minute on the built-in graph instead.
    seeds
        How many seeds; 3, or 1 if quick, unless given.
    architectures
        Restricts what is compared: architectures, measures, "infer".
    jobs
        How many processes run at the same time.
    device
        "cpu" or "cuda"; CUDA where there is one, unless given.
    progress
        Receives how many runs are done, of how many.

    """
    for part in parts:
        if part not in PARTS:
            raise QueryError(f"no part {part!r} (there are {listed(PARTS)}){did_you_mean(part, PARTS)}")
    known = (*LEARNED, INFERRED, *CLASSICAL, EXACT)
    for model in architectures or ():
        if model not in known:
            raise QueryError(f"no architecture {model!r} (there are {listed(known, 30)}){did_you_mean(model, known)}")
    if (seeds is not None and seeds < 1) or jobs < 1:
        raise QueryError(f"‹seeds› is {seeds} and ‹jobs› is {jobs}; both must be at least 1")
    folder, source = Path(out), None if quick or data is None else Path(data)
    columns = QUICK_COLUMNS if quick else columns_in(source)
    study = Study(columns, range(seeds or (1 if quick else 3)), QUICK if quick else FULL, architectures)
    plans = {part: list(PARTS[part][1](study)) for part in parts or PARTS}
    for part, plan in plans.items():
        if not plan:
            raise QueryError(f"the part {part!r} has none of {listed(architectures or ())}; leave out either")
    runs = list({run.key: run for plan in plans.values() for run in plan}.values())
    _open(folder, study.preset)
    began = perf_counter()
    results = _read(folder)
    missing = sorted((run for run in runs if run.key not in results), key=_patience)
    done = len(runs) - len(missing)
    progress("runs", done, len(runs))
    for run, result in _carry_out(missing, study.preset, source, jobs, device):
        results[run.key] = result
        _append(folder, {"run": run.key, **result})
        progress("runs", len(runs) - sum(each.key not in results for each in missing), len(runs))
    files = [path for part in plans for path in REPORTS[part]([results[r.key] for r in plans[part]], study, folder)]
    return Reproduced(folder, len(runs), done, perf_counter() - began, tuple(files))


def _open(folder: Path, preset: Preset) -> None:
    """Make the folder of results, or check that it holds results of this preset."""
    check_folder(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise WriteError(f"cannot write to {folder}: {error.strerror}") from error
    about = json.dumps(asdict(preset), indent=1) + "\n"
    path = folder / ABOUT
    if not path.is_file():
        write_text(path, about)
    elif path.read_text(encoding="utf-8") != about:
        raise SourceError(f"{folder} holds results of another preset; give another ‹out›, or remove it")


def _carry_out(
    runs: Sequence[Run], preset: Preset, data: Path | None, jobs: int, device: str | None
) -> Iterator[tuple[Run, dict[str, object]]]:
    """Execute runs in some processes and yield each result as it comes; timed runs have the machine to themselves."""
    together = [run for run in runs if jobs > 1 and not run.timed]
    if together:
        threads = max(1, count_cores() // jobs)
        with ProcessPoolExecutor(jobs, get_context("spawn"), _limit_threads, (threads,)) as pool:
            waiting = {pool.submit(execute, run, preset, data, device): run for run in together}
            try:
                for finished in as_completed(waiting):
                    yield waiting[finished], finished.result()
            finally:
                pool.shutdown(wait=False, cancel_futures=True)
    for run in runs:
        if jobs == 1 or run.timed:
            yield run, execute(run, preset, data, device)


def _patience(run: Run) -> tuple[int, int]:
    """Order long runs first, so that none is left to run alone at the end."""
    return -run.column.layers, _SLOW.index(run.model) if run.model in _SLOW else len(_SLOW)


def _limit_threads(threads: int) -> None:
    os.environ["OMP_NUM_THREADS"] = str(threads)
    torch.set_num_threads(threads)


def _append(folder: Path, line: dict[str, object]) -> None:
    try:  # on a line of its own, even after a line that was cut off
        with (folder / RUNS).open("a", encoding="utf-8") as file:
            file.write(f"\n{json.dumps(line)}\n")
    except OSError as error:
        raise WriteError(f"cannot write {folder / RUNS}: {error.strerror}") from error


def _read(folder: Path) -> dict[str, dict[str, object]]:
    """Return the saved results by run key; a line that was cut off counts as not run."""
    path = folder / RUNS
    results = {}
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines() if path.is_file() else ():
        with suppress(ValueError, KeyError, AttributeError, TypeError):
            result = json.loads(line)
            results[str(result.pop("run"))] = result
    return results

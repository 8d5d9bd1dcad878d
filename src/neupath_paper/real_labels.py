"""Real labels: every learner and `auto` on relations, classes and areas that are withheld from public graphs."""

import json
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import numpy as np
from scipy.sparse import csr_array

from neupath._runtime.files import check_folder, write_text
from neupath._runtime.progress import Progress, no_progress
from neupath.engine.scorer import Scorer
from neupath.errors import NeuPathError, QueryError, SourceError, SourceWarning, listed
from neupath.graph.hin import HIN, Csr, Edges, Floats
from neupath.graph.nodes import Rows
from neupath.io import load
from neupath.learn import auto
from neupath.learn.auto import Allowance, find_device, takes_too_long, train_auto
from neupath.learn.evaluation import auc, bootstrap_interval, ndcg
from neupath.learn.labels import Pairs
from neupath.learn.registry import load_scorer

TRAIN_QUERIES, TEST_QUERIES = 60, 40
SIMILAR, OTHERS = 5, 10
"""Labels of each training query that say yes, and that say no."""
_TESTED = 100
"""Random targets that the AUC of a test query compares with its similar ones."""
RUNS = "real.jsonl"
LEARNERS = auto.LEARNERS | {"gat": auto.learner("gat", dim=64, epochs=40, attributes=True)}
"""What is compared: the learners that `auto` tries, and a rival of theirs."""


# ---- Tasks ---------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Withheld:
    """A graph without what is asked for, and which targets are similar to each query; shape (queries, targets)."""

    hin: HIN
    truth: Csr
    node_type: str
    target_type: str


def _without(hin: HIN, relations: Sequence[str], attributes: Sequence[str] = ()) -> HIN:
    """Return a graph without some relations and attributes."""
    nodes = []
    for own in hin.nodes.values():
        kept = [name for name in own.attributes.column_names if name not in attributes]
        nodes.append(replace(own, attributes=own.attributes.select(kept)))
    edges = []
    for relation, matrix in hin.matrices.items():
        if relation.name not in relations:
            entries = matrix.tocoo()
            edges.append(Edges(relation, entries.row.astype(np.int64), entries.col.astype(np.int64), entries.data))
    return HIN.build(nodes, edges)


def _matrix(hin: HIN, name: str) -> Csr:
    return next(matrix for relation, matrix in hin.matrices.items() if relation.name == name)


def _related(matrix: Csr) -> Csr:
    """Return the pairs of one type that a relation joins, in either direction."""
    return _others(csr_array(matrix + matrix.T))


def _sharing(matrix: Csr, least: int = 1) -> Csr:
    """Return the pairs of nodes that share some neighbours."""
    binary = csr_array((np.ones(matrix.nnz), matrix.indices, matrix.indptr), shape=matrix.shape)
    shared = csr_array(binary @ binary.T)
    shared.data = (shared.data >= least).astype(np.float64)
    return _others(shared)


def _others(matrix: Csr) -> Csr:
    """Leave out the diagonal and zeros."""
    entries = matrix.tocoo()
    kept = (entries.row != entries.col) & (entries.data > 0)
    places = entries.row[kept], entries.col[kept]
    return csr_array((np.ones(int(kept.sum())), places), shape=matrix.shape)


def _areas(hin: HIN) -> Withheld:
    areas = np.array([str(area) for area in hin.nodes["paper"].attributes["area"].to_pylist()])
    codes = np.unique(areas, return_inverse=True)[1]
    member = csr_array((np.ones(len(codes)), (np.arange(len(codes)), codes)))
    return Withheld(_without(hin, (), ("area", "split")), _sharing(member), "paper", "paper")


def _relation(name: str, node_type: str) -> Callable[[HIN], Withheld]:
    return lambda hin: Withheld(_without(hin, (name,)), _related(_matrix(hin, name)), node_type, node_type)


def _classes(name: str, node_type: str, *, least: int = 1, reverse: bool = False) -> Callable[[HIN], Withheld]:
    def withhold(hin: HIN) -> Withheld:
        matrix = _matrix(hin, name)
        shared = _sharing(csr_array(matrix.T) if reverse else matrix, least)
        return Withheld(_without(hin, (name,)), shared, node_type, node_type)

    return withhold


def _treats(hin: HIN) -> Withheld:
    return Withheld(_without(hin, ("CtD",)), _matrix(hin, "CtD"), "Compound", "Disease")


TASKS: dict[str, tuple[str, Callable[[HIN], Withheld]]] = {
    "compounds that resemble each other": ("hetionet", _relation("CrC", "Compound")),
    "diseases that resemble each other": ("hetionet", _relation("DrD", "Disease")),
    "compounds of one pharmacologic class": ("hetionet", _classes("PCiC", "Compound", reverse=True)),
    "diseases that a compound treats": ("hetionet", _treats),
    "papers of one domain": ("kg20c", _classes("paper_in_domain", "paper")),
    "papers of one area": ("acm_hgb", _areas),
    "movies that share two genres": ("imdb", _classes("movie_genre", "movie", least=2)),
}
"""The graph of each task, and what is withheld from it."""


# ---- Labels and tests ----------------------------------------------------------------------------
def draw_labels(task: Withheld, seed: int) -> tuple[Pairs, Rows]:
    """Return labels of the training queries, and the test queries."""
    rng = np.random.default_rng(seed)
    known = np.flatnonzero(np.diff(task.truth.indptr) > 0)
    queries = rng.permutation(known)
    cut = min(TRAIN_QUERIES, len(queries) * 3 // 5)
    rows: list[tuple[int, int, float]] = []
    for query in queries[:cut].tolist():
        similar = task.truth.indices[task.truth.indptr[query] : task.truth.indptr[query + 1]]
        chosen = rng.choice(similar, min(SIMILAR, len(similar)), replace=False)
        rows += [(query, int(target), 1.0) for target in chosen]
        rows += [(query, int(target), 0.0) for target in _strangers(task, query, OTHERS, rng)]
    columns = np.array(rows)
    ends = columns[:, 0].astype(np.int64), columns[:, 1].astype(np.int64)
    return Pairs(task.node_type, *ends, columns[:, 2], target_type=task.target_type), queries[cut : cut + TEST_QUERIES]


def _strangers(task: Withheld, query: int, count: int, rng: np.random.Generator) -> Rows:
    """Return random targets that are not similar to a query."""
    similar = task.truth.indices[task.truth.indptr[query] : task.truth.indptr[query + 1]]
    excluded = np.append(similar, query) if task.node_type == task.target_type else similar
    others = np.setdiff1d(np.arange(task.truth.shape[1]), excluded)
    return rng.choice(others, min(count, len(others)), replace=False)


def judge(task: Withheld, scorer: Scorer, labels: Pairs, queries: Rows, seed: int) -> tuple[list[float], list[float]]:
    """Return the AUC and the nDCG@20 of each test query; pairs whose mirror image was a label are left out."""
    rng = np.random.default_rng(seed + 1)
    aucs, ndcgs = [], []
    for query in queries.tolist():
        scores: Floats = scorer.score_rows(np.array([query]))[0]
        truth = task.truth[[query]].toarray()[0]
        keep = np.ones(len(truth), dtype=np.bool_)
        if task.node_type == task.target_type:
            keep[query] = False
            keep[labels.queries[labels.targets == query]] = False
        if not truth[keep].any():
            continue
        some = np.append(np.flatnonzero(keep & (truth > 0)), _strangers(task, query, _TESTED, rng))
        some = some[keep[some]]
        aucs.append(auc(truth[some], scores[some]))
        ndcgs.append(ndcg(truth[keep], scores[keep]))
    return aucs, ndcgs


# ---- All learners --------------------------------------------------------------------------------
@dataclass(frozen=True)
class RealRun:
    """One learner on one task."""

    task: str
    learner: str
    seconds: float
    auc: list[float]
    ndcg: list[float]
    note: str = ""


def reproduce_real(
    out: Path,
    data: Path | None,
    *,
    budget: float = 600.0,
    tasks: Sequence[str] | None = None,
    learners: Sequence[str] | None = None,
    seed: int = 0,
    device: str | None = None,
    progress: Progress = no_progress,
) -> list[RealRun]:
    """Train every learner, and `auto`, or some, on each task within a budget, and test them; write real.jsonl and .md.

    Each learner has its share of the budget by itself. Networks are trained on `device`, or on CUDA where there is one.
    What is finished is kept, and not made again; what was left out is tried again.
    """
    if data is None or not data.is_dir():
        raise SourceError("no data is given; set ‹data› to a folder with hetionet, kg20c, acm_hgb and imdb")
    wanted = list(TASKS if tasks is None else tasks)
    for name in wanted:
        if name not in TASKS:
            raise QueryError(f"no task {name!r} (there are {listed(TASKS, 10)})")
    learners = tuple(learners or (*LEARNERS, "auto"))
    for name in learners:
        if name not in (*LEARNERS, "auto"):
            raise QueryError(f"no learner {name!r} (there are {listed((*LEARNERS, 'auto'), 10)})")
    allowed = Allowance(seed, budget, find_device(device, LEARNERS if "auto" in learners else learners))
    check_folder(out)
    out.mkdir(parents=True, exist_ok=True)
    runs = [run for run in _read(out) if run.auc]
    for number, name in enumerate(wanted):
        missing = [learner for learner in learners if not any((r.task, r.learner) == (name, learner) for r in runs)]
        if not missing:
            continue
        folder, withhold = TASKS[name]
        if not (data / folder).is_dir():
            raise SourceError(f"{data} lacks {folder}; `neupath datasets` tells where it comes from")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SourceWarning)
            task = withhold(load(data / folder))
        for place, learner in enumerate(missing):
            progress(f"{name}: {learner}", number * len(learners) + place, len(wanted) * len(learners))
            runs.append(_carry_out(name, task, learner, allowed))
            with (out / RUNS).open("a", encoding="utf-8") as file:
                file.write(json.dumps(vars(runs[-1])) + "\n")
    shown = [run for run in runs if run.task in wanted]
    tables = make_table(shown, "auc", "AUC"), make_table(shown, "ndcg", "nDCG@20"), make_comparison([shown])
    write_text(out / "real.md", "\n".join(tables))
    return shown


def _carry_out(name: str, task: Withheld, learner: str, allowed: Allowance) -> RealRun:
    seed, budget = allowed.seed, allowed.seconds
    share = replace(allowed, seconds=budget / len(LEARNERS))
    labels, queries = draw_labels(task, seed)
    began = perf_counter()
    note = ""
    if takes_too_long(learner, task.hin, share):
        return RealRun(name, learner, 0.0, [], [], f"left out: the graph has too many edges for {budget:g} s")
    try:
        if learner == "auto":
            with TemporaryDirectory() as folder:
                report = train_auto(task.hin, labels, folder, budget=budget, seed=seed, device=allowed.device)
                scorer = load_scorer(folder, task.hin, "cpu" if allowed.device == "cpu" else None)
            weights = {each.learner: each.weight for each in report.tried}
            parts = [f"{weights[name]:.2f} {name}" for name in report.chosen]
            note = " + ".join(parts) if len(parts) > 1 else report.chosen[0]
        else:
            scorer = LEARNERS[learner](task.hin, labels, share)
        seconds = perf_counter() - began
        return RealRun(name, learner, seconds, *judge(task, scorer, labels, queries, seed), note)
    except NeuPathError as error:
        return RealRun(name, learner, perf_counter() - began, [], [], f"left out: {error}")


def _read(out: Path) -> list[RealRun]:
    file = out / RUNS
    lines = file.read_text(encoding="utf-8").splitlines() if file.is_file() else []
    return [RealRun(**json.loads(line)) for line in lines if line.strip()]


def make_table(runs: Sequence[RealRun], metric: str, title: str) -> str:
    """Return one metric of all runs as Markdown: means with 95 % intervals by bootstrap over queries, best in bold."""
    learners = list(dict.fromkeys(run.learner for run in runs))
    lines = [f"**{title}**", "", f"| labels | {' | '.join(learners)} |", "|---|" + "---:|" * len(learners)]
    by_learner: dict[str, list[float]] = {}
    for task in dict.fromkeys(run.task for run in runs):
        own = {run.learner: run for run in runs if run.task == task}
        means = {name: float(np.mean(getattr(run, metric))) for name, run in own.items() if getattr(run, metric)}
        cells = []
        for name in learners:
            if name not in means:
                cells.append("-")
                continue
            by_learner.setdefault(name, []).append(means[name])
            low, high = bootstrap_interval(np.array(getattr(own[name], metric)))
            mean = f"**{means[name]:.3f}**" if means[name] == max(means.values()) else f"{means[name]:.3f}"
            cells.append(f"{mean} ({low:.2f} to {high:.2f})")
        lines.append(f"| {task} | {' | '.join(cells)} |")
    tasks = len(dict.fromkeys(run.task for run in runs))
    whole = {name: np.mean(values) for name, values in by_learner.items() if len(values) == tasks}
    lines.append(f"| mean | {' | '.join(f'{whole[name]:.4f}' if name in whole else '-' for name in learners)} |")
    return "\n".join(lines) + "\n"


def make_comparison(seeds: Sequence[Sequence[RealRun]], learner: str = "auto") -> str:
    """Return how far a learner is ahead of each other one that has all rows, in the mean over rows, as Markdown.

    Parameters
    ----------
    seeds
        The runs of one seed or of several; each task of each seed is a row.
    learner
        The one that is compared with the others. Intervals are by paired bootstrap over the queries of each row.

    """
    rows = [
        {run.learner: run for run in runs if run.task == task and run.auc}
        for runs in seeds
        for task in dict.fromkeys(run.task for run in runs)
    ]
    complete = [
        name for name in dict.fromkeys(name for row in rows for name in row) if all(name in row for row in rows)
    ]
    lines = [f"| {learner} minus | AUC | nDCG@20 |", "|---|---:|---:|"]
    for other in complete if learner in complete else ():
        if other != learner:
            cells = []
            for metric in ("auc", "ndcg"):
                leads = [np.subtract(getattr(row[learner], metric), getattr(row[other], metric)) for row in rows]
                cells.append("{:+.4f} ({:+.4f} to {:+.4f})".format(*_mean_of_rows(leads)))
            lines.append(f"| {other} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _mean_of_rows(rows: Sequence[Floats], draws: int = 2000) -> tuple[float, float, float]:
    """Return the mean of the means of rows, and its 95 % interval by bootstrap over the values of each row."""
    rng = np.random.default_rng(0)
    means = np.mean([row[rng.integers(0, len(row), (draws, len(row)))].mean(axis=1) for row in rows], axis=0)
    low, high = np.quantile(means, [0.025, 0.975])
    return float(np.mean([row.mean() for row in rows])), float(low), float(high)

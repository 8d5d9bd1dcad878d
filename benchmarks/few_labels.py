"""Measure what learners make of few labels: AUC and nDCG@20 of single ones and of auto at 30, 300 and 3,000 labels.

    python benchmarks/few_labels.py --data DATA --out FILE [--labels 30,300] [--seeds 0,1,2] [--tasks a,b,c]
    python benchmarks/few_labels.py --out FILE --table

Three sets of labels, each made by a rule that no single meta-path spells:

a. movies of `imdb` (yes or no): the same director, or else the same set of genres and years at most five apart;
b. papers of `acm_4019` (yes or no): the same area, which is not in the graph;
c. papers of `kg20c` (graded): [the same venue] · PathSim(paper, domain, paper). A label is this plus normal noise of
   standard deviation 0.1, cut to 0 to 1; tests are by the value without noise, and similar is what is above 0.

And three sets to develop with, so that a setting need not be chosen on the sets that it is reported on:

d. movies of `imdb`: they share an actor or three keywords;
e. papers of `acm_hgb`: the same area, which is withheld;
f. papers of `kg20c` (graded): [an affiliation of authors shared, or a citation] · PathSim(paper, domain, paper), the
   same noise.

Of each training query there are ten labels, five at 30: two fifths are similar targets, three tenths other targets that
share a neighbour with it ("hard"), the rest random others. Each of 50 test queries, none a training query, is judged by
the AUC of all its similar targets against 100 random others and up to 50 hard ones, and by nDCG@20 against all targets.
A test target whose pair in the other direction was a label is left out. The seed decides queries, labels and targets.

Every finished run is a line of JSON in FILE, with the values of each query, and is not made again. The table has means
over the queries of all seeds with 95 % intervals by bootstrap over queries, and linear and auto minus pathboost, paired
by query.
Of auto alone, networks are members. To measure another version, set PYTHONPATH to its `src` and name another FILE.
"""

import argparse
import json
import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import numpy as np
import pyarrow.csv
from scipy.sparse import csr_array

from neupath import HIN, load, load_scorer
from neupath.engine.scorer import Scorer
from neupath.errors import SourceWarning
from neupath.graph.hin import Edges
from neupath.graph.nodes import Nodes
from neupath.learn.auto import LEARNERS, Allowance, train_auto
from neupath.learn.evaluation import auc, bootstrap_interval, ndcg
from neupath.learn.labels import Pairs

TEST_QUERIES, RANDOM, HARD = 50, 100, 50
NOISE = 0.1


# ---- Tasks ---------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Task:
    """A graph, how similar the nodes of one type are, and which share a neighbour; shape (nodes, nodes) each."""

    hin: HIN
    node_type: str
    truth: csr_array
    near: csr_array
    is_graded: bool = False


def read(data: Path, name: str) -> HIN:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SourceWarning)
        return load(data / name)


def links(hin: HIN, name: str) -> csr_array:
    """Return the edges of a relation as ones."""
    matrix = next(matrix for relation, matrix in hin.matrices.items() if relation.name == name)
    return csr_array((np.ones(matrix.nnz), matrix.indices, matrix.indptr), shape=matrix.shape)


def pairs_of(matrix: csr_array, least: float = 1.0) -> csr_array:
    """Return the pairs of different nodes with at least some value, as ones."""
    entries = matrix.tocoo()
    kept = (entries.row != entries.col) & (entries.data >= least)
    return csr_array((np.ones(int(kept.sum())), (entries.row[kept], entries.col[kept])), shape=matrix.shape)


def pathsim_of(half: csr_array) -> csr_array:
    """Return PathSim along a half path there and back, without the diagonal."""
    shared, size = csr_array(half @ half.T).tocoo(), np.asarray(half.multiply(half).sum(axis=1)).ravel()
    kept = shared.row != shared.col
    rows, columns = shared.row[kept], shared.col[kept]
    return csr_array((2 * shared.data[kept] / (size[rows] + size[columns]), (rows, columns)), shape=shared.shape)


def any_of(*matrices: csr_array) -> csr_array:
    return pairs_of(csr_array(sum(matrices[1:], matrices[0])))


def same_of(groups: np.ndarray) -> csr_array:
    """Return the pairs of different nodes of one group."""
    codes = np.unique(groups, return_inverse=True)[1]
    member = csr_array((np.ones(len(codes)), (np.arange(len(codes)), codes)))
    return pairs_of(csr_array(member @ member.T))


def near_in(hin: HIN, *relations: str) -> csr_array:
    """Return the pairs that share a neighbour along one of some relations."""
    halves = [links(hin, name) for name in relations]
    return any_of(*(pairs_of(csr_array(half @ half.T)) for half in halves))


def movies(data: Path) -> Task:
    hin = read(data, "imdb")
    years = np.array(hin.nodes["movie"].attributes["year"].to_numpy(zero_copy_only=False), dtype=np.float64)
    genres = pairs_of(pathsim_of(links(hin, "movie_genre")), 1 - 1e-9).tocoo()
    close = np.abs(years[genres.row] - years[genres.col]) <= 5
    alike = csr_array((np.ones(int(close.sum())), (genres.row[close], genres.col[close])), shape=genres.shape)
    near = near_in(hin, "movie_director", "movie_genre")
    return Task(hin, "movie", any_of(near_in(hin, "movie_director"), alike), near)


def papers_of_one_area(data: Path) -> Task:
    hin = read(data, "acm_4019")
    table = pyarrow.csv.read_csv(
        data / "acm_4019" / "paper_label.tsv.gz", parse_options=pyarrow.csv.ParseOptions(delimiter="\t")
    )
    paper, area = (table.column(number).to_pylist() for number in range(2))
    known = dict(zip(map(str, paper), map(str, area), strict=True))
    areas = np.array([known[str(each)] for each in hin.nodes["paper"].ids.to_pylist()])
    return Task(hin, "paper", same_of(areas), near_in(hin, "paper_author", "paper_subject"))


def papers_of_one_venue(data: Path) -> Task:
    hin = read(data, "kg20c")
    domain = pathsim_of(links(hin, "paper_in_domain"))
    truth = csr_array(domain.multiply(near_in(hin, "paper_in_venue")))
    return Task(hin, "paper", truth, near_in(hin, "paper_in_venue", "paper_in_domain"), is_graded=True)


def movies_of_one_cast(data: Path) -> Task:
    hin = read(data, "imdb")
    keywords = links(hin, "movie_keyword")
    truth = any_of(near_in(hin, "movie_actor"), pairs_of(csr_array(keywords @ keywords.T), 3))
    return Task(hin, "movie", truth, near_in(hin, "movie_actor", "movie_keyword"))


def papers_of_a_withheld_area(data: Path) -> Task:
    whole = read(data, "acm_hgb")
    areas = np.array([str(area) for area in whole.nodes["paper"].attributes["area"].to_pylist()])
    nodes: list[Nodes] = []
    for own in whole.nodes.values():
        kept = [name for name in own.attributes.column_names if name not in ("area", "split")]
        nodes.append(replace(own, attributes=own.attributes.select(kept)))
    edges = []
    for relation, matrix in whole.matrices.items():
        entries = matrix.tocoo()
        edges.append(Edges(relation, entries.row.astype(np.int64), entries.col.astype(np.int64), entries.data))
    hin = HIN.build(nodes, edges)
    return Task(hin, "paper", same_of(areas), near_in(hin, "paper_author", "paper_subject"))


def papers_of_one_place(data: Path) -> Task:
    hin = read(data, "kg20c")
    places = csr_array(links(hin, "author_write_paper").T @ links(hin, "author_in_affiliation"))
    cites = links(hin, "paper_cite_paper")
    related = any_of(pairs_of(csr_array(places @ places.T)), pairs_of(csr_array(cites + cites.T)))
    truth = csr_array(pathsim_of(links(hin, "paper_in_domain")).multiply(related))
    return Task(hin, "paper", truth, near_in(hin, "paper_in_domain"), is_graded=True)


TASKS: dict[str, Callable[[Path], Task]] = {
    "a": movies,
    "b": papers_of_one_area,
    "c": papers_of_one_venue,
    "d": movies_of_one_cast,
    "e": papers_of_a_withheld_area,
    "f": papers_of_one_place,
}


# ---- Labels and tests ----------------------------------------------------------------------------
def row_of(matrix: csr_array, query: int) -> np.ndarray:
    return matrix.indices[matrix.indptr[query] : matrix.indptr[query + 1]]


def strangers(task: Task, query: int, count: int, rng: np.random.Generator, *, hard: bool) -> np.ndarray:
    """Return random targets that are not similar to a query; the hard ones share a neighbour with it."""
    pool = row_of(task.near, query) if hard else np.arange(task.truth.shape[1])
    pool = np.setdiff1d(pool, np.append(row_of(task.truth, query), query))
    return rng.choice(pool, min(count, len(pool)), replace=False)


def draw_labels(task: Task, count: int, seed: int) -> tuple[Pairs, np.ndarray]:
    """Return the labels of the training queries, and the test queries."""
    rng = np.random.default_rng(seed)
    each = 5 if count <= 30 else 10
    order = rng.permutation(np.flatnonzero(np.diff(task.truth.indptr) > 0))
    rows: list[tuple[int, int]] = []
    for query in order[: count // each].tolist():
        similar = row_of(task.truth, query)
        chosen = rng.choice(similar, min(2 * each // 5, len(similar)), replace=False)
        hard = np.setdiff1d(strangers(task, query, 3 * each // 10, rng, hard=True), chosen)
        others = np.setdiff1d(strangers(task, query, 2 * each, rng, hard=False), hard)
        others = rng.permutation(others)[: each - len(chosen) - len(hard)]
        rows += [(query, int(target)) for part in (chosen, hard, others) for target in part]
    queries, targets = np.array(rows).T
    scores = np.asarray(task.truth[queries, targets]).ravel()
    if task.is_graded:
        scores = np.clip(scores + rng.normal(0, NOISE, len(scores)), 0, 1)
    return Pairs(task.node_type, queries, targets, scores), order[count // each :][:TEST_QUERIES]


def judge(task: Task, scorer: Scorer, labels: Pairs, queries: np.ndarray, seed: int) -> tuple[list[float], list[float]]:
    """Return the AUC and the nDCG@20 of each test query."""
    rng = np.random.default_rng(seed + 1_000)
    aucs, ndcgs = [], []
    for query in queries.tolist():
        others = [strangers(task, query, RANDOM, rng, hard=False), strangers(task, query, HARD, rng, hard=True)]
        scores = scorer.score_rows(np.array([query]))[0]
        truth = task.truth[[query]].toarray()[0]
        keep = np.ones(len(truth), dtype=np.bool_)
        keep[np.append(labels.queries[labels.targets == query], query)] = False
        if not truth[keep].any():
            continue
        some = np.unique(np.concatenate([np.flatnonzero(truth > 0), *others]))
        some = some[keep[some]]
        aucs.append(auc((truth[some] > 0).astype(np.float64), scores[some]))
        ndcgs.append(ndcg(truth[keep], scores[keep]))
    return aucs, ndcgs


def carry_out(task: Task, learner: str, count: int, seed: int, budget: float) -> dict[str, object]:
    """Train one learner and test it."""
    labels, queries = draw_labels(task, count, seed)
    began = perf_counter()
    if learner == "auto":
        with TemporaryDirectory() as folder:
            report = train_auto(task.hin, labels, folder, budget=budget, seed=seed, device="cpu")
            scorer: Scorer = load_scorer(folder, task.hin, "cpu")
        weights = {each.learner: each.weight for each in report.tried}
        note = " + ".join(f"{weights[name]:.2f} {name}" for name in report.chosen)
    else:
        scorer, note = LEARNERS[learner](task.hin, labels, Allowance(seed, budget)), ""
    seconds = perf_counter() - began
    aucs, ndcgs = judge(task, scorer, labels, queries, seed)
    return {"seconds": round(seconds, 1), "note": note, "auc": aucs, "ndcg": ndcgs}


# ---- Runs and tables -----------------------------------------------------------------------------
def read_runs(out: Path) -> dict[tuple[str, int, int, str], dict[str, list[float]]]:
    lines = out.read_text(encoding="utf-8").splitlines() if out.is_file() else []
    runs = [json.loads(line) for line in lines if line.strip()]
    return {(run["task"], run["labels"], run["seed"], run["learner"]): run for run in runs}


def make_table(runs: dict[tuple[str, int, int, str], dict[str, list[float]]]) -> str:
    """Return the means of all runs as Markdown, with 95 % intervals by bootstrap over queries."""
    learners = list(dict.fromkeys(key[3] for key in runs))
    lines = []
    for metric, title in (("auc", "AUC"), ("ndcg", "nDCG@20")):
        rivals = [name for name in ("linear", "auto") if {name, "pathboost"} <= set(learners)]
        columns = [*learners, *(f"{name} minus pathboost" for name in rivals)]
        lines += [f"| {title} | labels | seeds | {' | '.join(columns)} |"]
        lines += ["|---|---:|---:|" + "---:|" * len(columns)]
        for task, count in sorted({key[:2] for key in runs}):
            seeds = [
                seed
                for seed in sorted({key[2] for key in runs})
                if all((task, count, seed, name) in runs for name in learners)
            ]
            if not seeds:
                continue
            values = {
                name: np.concatenate([runs[task, count, seed, name][metric] for seed in seeds]) for name in learners
            }
            cells = [describe(values[name], "{:.3f} ({:.2f} to {:.2f})") for name in learners]
            leads = [values[name] - values["pathboost"] for name in rivals]
            cells += [describe(lead, "{:+.3f} ({:+.3f} to {:+.3f})") for lead in leads]
            lines.append(f"| {task} | {count:,} | {len(seeds)} | {' | '.join(cells)} |")
        lines.append("")
    return "\n".join(lines)


def describe(values: np.ndarray, layout: str) -> str:
    return layout.format(float(values.mean()), *bootstrap_interval(values))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=os.environ.get("NEUPATH_DATA"))
    parser.add_argument("--out", type=Path, required=True, help="the file of the runs, one line of JSON each")
    parser.add_argument("--tasks", default="a,b,c")
    parser.add_argument("--labels", default="30,300,3000")
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--learners", default="pathboost,infer,linear,auto")
    parser.add_argument("--budget", type=float, default=60.0, help="the seconds of auto")
    parser.add_argument("--table", action="store_true", help="print the table of FILE, and run nothing")
    options = parser.parse_args()
    done = read_runs(options.out)
    seeds = [int(seed) for seed in options.seeds.split(",")]
    for count in () if options.table else [int(count) for count in options.labels.split(",")]:
        for name in options.tasks.split(","):
            task = TASKS[name](Path(options.data))
            for seed in seeds:
                for learner in options.learners.split(","):
                    key = (name, count, seed, learner)
                    if key in done:
                        continue
                    run = dict(zip(("task", "labels", "seed", "learner"), key, strict=True))
                    run |= carry_out(task, learner, count, seed, options.budget)
                    with options.out.open("a", encoding="utf-8") as file:
                        file.write(json.dumps(run) + "\n")
                    shown = [float(np.mean(run[metric])) for metric in ("auc", "ndcg")]
                    print(*key, *(f"{value:.3f}" for value in shown), f"{run['seconds']} s", run["note"], flush=True)
    print(make_table(read_runs(options.out)))


if __name__ == "__main__":
    main()

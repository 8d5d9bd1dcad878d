"""Compare NeuPath with its rivals on the paper's columns, choosing settings on validation queries alone.

    python benchmarks/neupath_variants.py table --data DATA --out FOLDER --jobs 16 --device cuda --seconds 500
    python benchmarks/neupath_variants.py run --data DATA --out FOLDER --model neupath:paths=3,dim=64 --model nbfnet
    python benchmarks/neupath_variants.py report --out FOLDER

`table` trains every row of `ROWS` on every column: each of its three learning rates for `--trial-steps` steps with the
first seed, then the one that ranks the validation queries best for `--steps` steps with every seed. `run` trains the
given models with the given settings. A run has 400 training queries with 5 best and 5 random labels. It appends a line
to FOLDER/runs.jsonl: the nDCG@20 of each validation and of each test query against all targets. Targets y of a test
query x are left out if (y, x) was a training label. Runs that are there are not made again, so the same command goes on
after `--seconds`. `report` takes, per column, each row's setting with the best mean over validation queries, and prints
the mean over test queries with its deviation over seeds, a 95 % bootstrap interval, and how far NeuPath is ahead
(paired).

`--study` changes what is learned and tested: "paper" labels each query's ten best and adds RMSEs; "labels=0.05" takes a
share of the training queries, at the same number of steps; "unseen" removes a fifth of the nodes of the ranked type
from the training graph and tests on queries among them, in the whole graph (for rows that bind to other graphs);
"other" trains on a graph with one half of these nodes, and tests on the graph with the other half. Several are joined
by a plus sign: "paper+labels=0.05".
"""

import argparse
import gzip
import json
import math
import os
import sys
import warnings
from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import cache, lru_cache
from multiprocessing import get_context
from pathlib import Path
from time import monotonic, perf_counter
from typing import Any

import numpy as np

from neupath import HIN
from neupath.engine.scorer import Scorer
from neupath.errors import SourceWarning
from neupath.graph.hin import Edges
from neupath.graph.nodes import Id, Nodes
from neupath.learn.evaluation import Split, bootstrap_interval, evaluate, ndcg, split_queries
from neupath.learn.inference import infer
from neupath.learn.labels import Pairs, Protocol, draw_pairs
from neupath.learn.registry import ARCHITECTURES, make_model
from neupath.measures import PathSim
from neupath_paper.protocol import BUILT_IN, IMDB, Column, acm_columns, load_graph

TRIAL = "trial"
COLUMNS = {column.metapath: column for column in (*IMDB, *acm_columns("kg20c"))}
COLUMNS["toy"] = Column(BUILT_IN, "class-method-class", 2, 2, ())
DEFAULT = ("APCPA", "PAFAP", "MAMAM", "DMAMD", "APA", "PCP", "MAM")  # the slowest first


WALK_LENGTH, WALKS, VISITS_PER_STEP = 100, 1000, 10_000
"""metapath2vec's walks as in its paper, and the cap on how many nodes all walks together visit, per step of the others:
1,000 walks of 100 nodes from each of 10,000 nodes would visit a billion, and 2,000 steps allow 20 million."""
_BLOCK = 64


# ---- The metric ----------------------------------------------------------------------------------
def ndcg_by_query(
    scorer: Scorer, teacher: Scorer, queries: Sequence[Id], seen: Pairs | None = None
) -> list[float | None]:
    """Return the graded nDCG@20 of each query against all targets but itself; None where no target is related.

    Parameters
    ----------
    scorer
        The scorer to judge.
    teacher
        The exact measure, fitted to the same graph.
    queries
        Ids of the queries to test on.
    seen
        The labels that the scorer learned from. A symmetric measure gives (x, y) and (y, x) one score, so a target y of
        a query x is left out if (y, x) was among them.
    """
    rows = scorer.hin_.nodes[scorer.source_type].find_many(list(queries))
    values: list[float | None] = []
    for start in range(0, len(rows), _BLOCK):
        block = rows[start : start + _BLOCK]
        for row, scores, truth in zip(block, scorer.score_rows(block), teacher.score_rows(block), strict=True):
            keep = np.ones(len(truth), dtype=np.bool_)
            if scorer.source_type == scorer.target_type:
                keep[row] = False
                if seen is not None:
                    keep[seen.queries[seen.targets == row]] = False
            related = truth[keep].max(initial=0.0) > 0
            values.append(ndcg(truth[keep], scores[keep]) if related else None)
    return values


# ---- Rows of the table ---------------------------------------------------------------------------
@dataclass(frozen=True)
class Row:
    """A row: an architecture, its settings beside the learning rate, and the rates to choose among."""

    model: str
    settings: str = ""
    rates: tuple[float, ...] = (5e-4, 1e-3, 5e-3)
    epochs: int | None = None
    """Its own number of epochs, instead of equal steps."""

    def variants(self) -> list[str]:
        """Return its settings with each learning rate."""
        return [",".join(filter(None, (self.settings, f"learning_rate={rate:g}"))) for rate in self.rates]


ROWS = {
    "neupath": Row("neupath", "", (1e-3, 3e-3, 5e-3)),
    "neupath-no-channels": Row("neupath", "channels=0", ()),
    "neupath-counts": Row("neupath", "features=counts", ()),
    "neupath-ratio": Row("neupath", "features=ratio", ()),
    "neupath-paper": Row("neupath", "variant=paper,paths=3"),
    "neupath-as-printed": Row("neupath", "variant=paper,paths=2,shared=true", epochs=10),
    **{name: Row(name) for name in ("mlp", "gcn", "gat", "sage", "gin", "rgcn", "han", "hgt", "gtn")},
    **{name: Row(name) for name in ("simplehgn", "lightgcn")},
    "nbfnet": Row("nbfnet", "", (1e-3, 5e-3, 1e-2)),
    "nbfnet-pna": Row("nbfnet", "aggregation=pna", (1e-3, 5e-3, 1e-2)),
    "countpath": Row("countpath", "", (0.03, 0.1, 0.3)),
    "metapath2vec": Row("metapath2vec", f"length={WALK_LENGTH},window=7,dim=128,epochs=1", (0.0025, 0.01, 0.025)),
    "infer": Row("infer", "", ()),
}
"""All rows of the corrected table. HAN has one layer, as in its paper."""


def row_of(run: dict[str, Any]) -> str:
    """Return the name of the row that a run is of."""
    for name, row in ROWS.items():
        if run["model"] == row.model and run["settings"] in (*row.variants(), row.settings):
            return name
    return f"{run['model']}-paper" if "variant=paper" in run["settings"] else str(run["model"])


@dataclass(frozen=True)
class Job:
    """One model with one setting on one column and seed."""

    model: str
    settings: str
    column: str
    seed: int
    study: str = "strict"

    @classmethod
    def of(cls, run: dict[str, Any]) -> "Job":
        return cls(run["model"], run["settings"], run["column"], run["seed"], run.get("study", "strict"))

    @property
    def key(self) -> str:
        return json.dumps([*vars(self).values()])


def read_settings(text: str) -> dict[str, Any]:
    """Read name=value,name=value; values are JSON or plain words."""
    settings: dict[str, Any] = {}
    for part in filter(None, text.split(",")):
        name, _, value = part.partition("=")
        try:
            settings[name] = json.loads(value)
        except ValueError:
            settings[name] = value
    return settings


# ---- Runs ----------------------------------------------------------------------------------------
@cache
def teacher_of(column: str, data: str | None) -> PathSim:
    known = COLUMNS[column]
    return PathSim(known.metapath).fit(load_graph(known.graph, data and Path(data)))


@lru_cache(maxsize=4)
def parts_of(column: str, data: str | None, seed: int, share: float) -> tuple[PathSim, PathSim]:
    """Return the measure over the graph without a share of the ranked nodes, and over that with these alone."""
    whole = teacher_of(column, data)
    count = whole.hin_.num_nodes(whole.source_type)
    order = np.random.default_rng(seed).permutation(count)
    cut = int(count * share)
    parts = [keep_nodes(whole.hin_, whole.source_type, np.sort(rows)) for rows in (order[cut:], order[:cut])]
    rest, removed = (PathSim(COLUMNS[column].metapath).fit(part) for part in parts)
    return rest, removed


def keep_nodes(hin: HIN, node_type: str, kept: Any) -> HIN:
    """Return a graph with only some nodes of one type, and their edges."""
    nodes = [Nodes(name, own.ids.take(kept) if name == node_type else own.ids) for name, own in hin.nodes.items()]
    edges = []
    for relation, whole in hin.matrices.items():
        matrix = whole[kept] if relation.source == node_type else whole
        entries = (matrix[:, kept] if relation.target == node_type else matrix).tocoo()
        edges.append(Edges(relation, entries.row.astype(np.int64), entries.col.astype(np.int64), entries.data))
    return HIN.build(nodes, edges, abbreviations=hin.schema.abbreviations)


def execute(job: Job, sizes: tuple[int, int, int], steps: int, data: str | None, device: str) -> dict[str, Any]:
    """Train and test one model; of a trial, only the validation queries are ranked."""
    import torch

    torch.set_num_threads(1)
    warnings.simplefilter("ignore", SourceWarning)
    teacher = whole = teacher_of(job.column, data)
    studied = dict(part.partition("=")[::2] for part in job.study.split("+"))
    protocol: Protocol = "paper" if "paper" in studied else "strict"
    split = split_queries(whole.hin_, whole.source_type, sizes, seed=job.seed)
    if studied.keys() & {"unseen", "other"}:
        teacher, removed = parts_of(job.column, data, job.seed, 0.2 if "unseen" in studied else 0.5)
        own = split_queries(teacher.hin_, teacher.source_type, sizes, seed=job.seed)
        unseen = np.random.default_rng(job.seed).permutation(removed.hin_.nodes[removed.source_type].ids.to_pylist())
        split = Split(own.train, own.validation, tuple(unseen[: sizes[2]].tolist()))
        whole = removed if "other" in studied else whole
    if "labels" in studied:
        count = max(1, round(float(studied["labels"]) * len(split.train)))
        split = Split(split.train[:count], split.validation, split.test)
    began = perf_counter()
    model, taken = fit(job, teacher, split, protocol, steps, device)
    trained = perf_counter() - began
    seen = draw_pairs(teacher, split.train, protocol, seed=job.seed) if teacher is whole else None
    began = perf_counter()
    validation = ndcg_by_query(model, teacher, split.validation, seen)
    model = model if teacher is whole else model.bind(whole.hin_)
    test = [] if job.study == TRIAL else ndcg_by_query(model, whole, split.test, seen)
    scored = perf_counter() - began
    errors = evaluate(model, whole, split.test, protocol).to_dict() if protocol == "paper" else {}
    if device == "cuda":
        torch.cuda.empty_cache()  # the memory of recorded steps, which the other processes need
    return vars(job) | {
        "steps": taken, "train_seconds": trained, "score_seconds": scored, **errors,
        "validation_rmse": getattr(model, "validation_rmse_", None),
        "validation": rounded(validation), "test": rounded(test),
    }  # fmt: skip


def rounded(values: list[float | None]) -> list[float | None]:
    return [value and round(value, 6) for value in values]


def fit(
    job: Job, teacher: PathSim, split: Split, protocol: Protocol, steps: int, device: str
) -> tuple[Scorer, int | None]:
    """Train a model; return it with the number of steps it took, if it takes any."""
    hin, column = teacher.hin_, COLUMNS[job.column]
    if job.model == "infer":
        return infer(hin, draw_pairs(teacher, split.train, protocol, seed=job.seed), max_length=4).scorer, None
    settings: dict[str, Any] = {"seed": job.seed, "device": "cpu" if job.model == "countpath" else device}
    if ARCHITECTURES[job.model].learns_from != "labels":
        settings["metapath"] = column.metapath
        if job.settings.startswith(f"length={WALK_LENGTH}"):
            visits = WALK_LENGTH * hin.num_nodes(teacher.source_type)
            settings["walks"] = max(1, min(WALKS, VISITS_PER_STEP * steps // visits))
        embedding: Scorer = make_model(job.model, **settings | read_settings(job.settings)).fit(hin)
        return embedding, None
    settings["layers"] = {"countpath": 2, "han": 1}.get(job.model, column.layers)
    if job.model == "han":
        settings["metapaths"] = list(column.candidates) or None
    model = make_model(job.model, **settings | read_settings(job.settings))
    batches = math.ceil(len(split.train) / (model.batch_size or model.queries_per_batch))
    row = ROWS.get(row_of(vars(job)))
    model.epochs = row.epochs if row and row.epochs else max(1, steps // batches)
    model.fit(hin, teacher=teacher, queries=split.train, validation=split.validation, protocol=protocol)
    return model, len(model.log_) * batches


def run(args: argparse.Namespace) -> None:
    """Train the given models with the given settings."""
    carry_out(args, [
        Job(model.partition(":")[0], model.partition(":")[2], column, seed, args.study)
        for seed in read_seeds(args)
        for column in args.columns.split(",")
        for model in args.model
    ])  # fmt: skip


def table(args: argparse.Namespace) -> None:
    """Train all rows: every learning rate in a trial, then the best one with all seeds."""
    rows = [(name, ROWS[name]) for name in (args.rows.split(",") if args.rows else ROWS)]
    columns, end, steps = args.columns.split(","), monotonic() + args.seconds, args.steps
    args.steps = args.trial_steps
    trials = [
        Job(row.model, settings, column, read_seeds(args)[0], TRIAL)
        for column in columns
        for _, row in rows
        for settings in row.variants()
        if len(row.rates) > 1
    ]
    if not carry_out(args, trials):
        return
    args.steps, args.seconds = steps, max(1.0, end - monotonic())
    known = {Job.of(one): mean(one["validation"]) for one in read_runs(Path(args.out))}
    chosen = []
    for seed in read_seeds(args):
        for name, row in rows:
            for column in columns:
                own = [job for job in trials if job in known and job.column == column and row_of(vars(job)) == name]
                best = max(own, key=lambda job: known[job]).settings if own else row.settings
                chosen.append(Job(row.model, best, column, seed, args.study))
    carry_out(args, chosen)


def read_seeds(args: argparse.Namespace) -> list[int]:
    return [int(seed) for seed in args.seeds.split(",")]


def carry_out(args: argparse.Namespace, wanted: list[Job]) -> bool:
    """Carry out the jobs that are not done yet, several at a time; append a line for each; say if time sufficed."""
    out = Path(args.out)
    out.mkdir(parents=True, exist_ok=True)
    done = {Job.of(one) for one in read_runs(out)}
    jobs = [job for job in wanted if job not in done]
    train, validation, test = (int(size) for size in args.queries.split(","))
    sizes = (train, validation, test)
    print(f"{len(jobs)} of {len(wanted)} runs to make", flush=True)
    end = monotonic() + args.seconds
    with (
        ProcessPoolExecutor(args.jobs, mp_context=get_context("spawn")) as pool,
        (out / "runs.jsonl").open("a", encoding="utf-8") as file,
    ):
        futures = {pool.submit(execute, job, sizes, args.steps, args.data, args.device): job for job in jobs}
        try:
            for future in as_completed(futures, timeout=args.seconds):
                job = futures[future]
                if (error := future.exception()) is not None:
                    print(f"{job.key}: {type(error).__name__}: {error}", flush=True)
                    continue
                result = future.result()
                file.write(json.dumps(result) + "\n")
                file.flush()
                figures = f"validation {mean(result['validation']):.4f}, test {mean(result['test']):.4f}"
                times = f"{result['train_seconds']:.0f} + {result['score_seconds']:.0f} s"
                print(f"{job.key}: {figures}, {times}; {end - monotonic():.0f} s left", flush=True)
        except TimeoutError:
            print("out of time; the same command goes on", flush=True)
            for process in list(pool._processes.values()):
                process.terminate()
            return False
    return True


# ---- Report --------------------------------------------------------------------------------------
def read_runs(out: Path) -> Iterator[dict[str, Any]]:
    """Yield the runs of a folder, or of one file of them, which may be packed."""
    file = out / "runs.jsonl" if out.is_dir() else out
    text = gzip.decompress(file.read_bytes()).decode() if file.suffix == ".gz" else read_text(file)
    for line in text.splitlines():
        yield json.loads(line)


def read_text(file: Path) -> str:
    return file.read_text(encoding="utf-8") if file.is_file() else ""


def mean(values: list[float | None]) -> float:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else math.nan


def report(args: argparse.Namespace) -> None:
    """Print each row's best setting per column by validation, its test score, and NeuPath's lead."""
    runs: dict[tuple[str, str], dict[str, dict[int, dict[str, Any]]]] = defaultdict(lambda: defaultdict(dict))
    for one in read_runs(Path(args.out)):
        if one.get("study", "strict") == args.study and one["test"]:
            runs[one["column"], row_of(one)][one["settings"]][one["seed"]] = one
    if not runs:
        sys.exit(f"{args.out} has no finished runs of the study {args.study}; `table` makes them")
    details = ["| column | row | setting | seeds | validation | test | 95 % interval | NeuPath ahead by |"]
    details.append("|---|---|---|---:|---:|---:|---|---|")
    cells: dict[str, dict[str, str]] = defaultdict(dict)
    for column in COLUMNS:
        chosen = {}
        for row in sorted({row for where, row in runs if where == column}):
            by_setting = runs[column, row]
            most = max(map(len, by_setting.values()))
            full = {setting: own for setting, own in by_setting.items() if len(own) == most}
            scores = {s: float(np.mean([mean(r["validation"]) for r in own.values()])) for s, own in full.items()}
            best = max(scores, key=lambda setting: scores[setting])
            chosen[row] = (best, scores[best], full[best])
            if args.all:
                for setting, own in full.items():
                    tests = float(np.mean([mean(r["test"]) for r in own.values()]))
                    details.append(
                        f"| {column} | {row} | {setting} | {len(own)} | {scores[setting]:.4f} | {tests:.4f} | | |"
                    )
        for row, (setting, score, own) in chosen.items():
            values, by_seed = flat(own, own), [mean(one["test"]) for one in own.values()]
            low, high = bootstrap_interval(values)
            ahead = ""
            if row != "neupath" and "neupath" in chosen:
                both = sorted(set(own) & set(chosen["neupath"][2]))
                difference = flat(chosen["neupath"][2], both) - flat(own, both)
                least, most_ = bootstrap_interval(difference)
                ahead = f"{difference.mean():+.4f} ({least:+.4f} to {most_:+.4f})"
            spread = f" ± {np.std(by_seed, ddof=1):.4f}" if len(by_seed) > 1 else ""
            cells[row][column] = f"{np.mean(by_seed):.4f}{spread}"
            shown = (column, row, f"**{setting or 'default'}**", len(own), f"{score:.4f}", f"{values.mean():.4f}")
            details.append("| " + " | ".join(map(str, shown)) + f" | {low:.4f} to {high:.4f} | {ahead} |")
    columns = [column for column in COLUMNS if any(column in own for own in cells.values())]
    print(f"| row | {' | '.join(columns)} |\n|---|" + "---:|" * len(columns))
    for row in [*(name for name in ROWS if name in cells), *(name for name in cells if name not in ROWS)]:
        print(f"| {row} | " + " | ".join(cells[row].get(column, "-") for column in columns) + " |")
    print("\n" + "\n".join(details))


def flat(runs: dict[int, dict[str, Any]], seeds: Any) -> Any:
    """Return the test scores of some seeds' queries in one array."""
    return np.array([value for seed in sorted(seeds) for value in runs[seed]["test"] if value is not None])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = {"table": table, "run": run, "report": report}
    parser.add_argument("command", choices=commands)
    parser.add_argument("--out", required=True)
    parser.add_argument("--data", default=os.environ.get("NEUPATH_DATA"))
    parser.add_argument("--model", action="append", default=[], help="name, or name:setting=value,…; several times")
    parser.add_argument("--rows", default="", help="of `table`: some rows, separated by commas")
    parser.add_argument("--study", default="strict", help="strict, paper, labels=SHARE, unseen or other, joined by +")
    parser.add_argument("--columns", default=",".join(DEFAULT))
    parser.add_argument("--seeds", default="0,1,2,3,4")
    parser.add_argument("--queries", default="400,100,400", help="training, validation and test queries")
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--trial-steps", type=int, default=500, help="of `table`: to compare learning rates by")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seconds", type=float, default=86_400.0, help="stop after so long")
    parser.add_argument("--all", action="store_true", help="report every setting, not the chosen ones alone")
    args = parser.parse_args()
    commands[args.command](args)


if __name__ == "__main__":
    main()

"""Compare settings of NeuPath and its rivals on the paper's columns, choosing settings on validation queries alone.

    python benchmarks/neupath_variants.py run --data DATA --out FOLDER --jobs 14 --device cuda \
        --model neupath:paths=3,dim=64 --model neupath:paths=8,dim=128,channels=0 --model nbfnet --seeds 0
    python benchmarks/neupath_variants.py report --out FOLDER

`run` trains every model with every setting on every column and seed: 400 training queries with 5 best and 5 random
labels each, `--steps` steps for all. It appends a line to FOLDER/runs.jsonl per run: the nDCG@20 of each validation and
of each test query against all targets. Targets y of a test query x are left out if (y, x) was a training label. Runs
that are there are not made again. `report` takes, per column, each model's setting with the best mean over validation
queries, and prints the mean over test queries with a 95 % bootstrap interval, and how far NeuPath is ahead (paired).
"""

import argparse
import json
import math
import os
import warnings
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from time import monotonic, perf_counter
from typing import Any

import numpy as np

from neupath.errors import SourceWarning
from neupath.learn.evaluation import bootstrap_interval, ndcg_by_query, split_queries
from neupath.learn.labels import draw_pairs
from neupath.learn.registry import make_model
from neupath.learn.reproduce.protocol import BUILT_IN, IMDB, Column, acm_columns, load_graph
from neupath.measures import PathSim

COLUMNS = {column.metapath: column for column in (*IMDB, *acm_columns("kg20c"))}
COLUMNS["toy"] = Column(BUILT_IN, "class-method-class", 2, 2, ())
DEFAULT = ("APCPA", "PAFAP", "MAMAM", "DMAMD", "APA", "PCP", "MAM")  # the slowest first


@dataclass(frozen=True)
class Job:
    """One model with one setting on one column and seed."""

    model: str
    settings: str
    column: str
    seed: int

    @property
    def key(self) -> str:
        return json.dumps([self.model, self.settings, self.column, self.seed])


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


def execute(job: Job, sizes: tuple[int, int, int], steps: int, data: str | None, device: str) -> dict[str, Any]:
    """Train and test one model."""
    import torch

    torch.set_num_threads(1)
    warnings.simplefilter("ignore", SourceWarning)
    column, teacher = COLUMNS[job.column], teacher_of(job.column, data)
    hin = teacher.hin_
    split = split_queries(hin, teacher.source_type, sizes, seed=job.seed)
    settings = {"layers": column.layers, "seed": job.seed, "device": device} | read_settings(job.settings)
    if job.model == "countpath":
        settings["layers"] = 2
    if job.model == "han":
        settings["metapaths"] = list(column.candidates)
    model = make_model(job.model, **settings)
    batches = math.ceil(len(split.train) / (model.batch_size or model.queries_per_batch))
    model.epochs = max(1, steps // batches)
    began = perf_counter()
    model.fit(hin, teacher=teacher, queries=split.train, validation=split.validation)
    trained = perf_counter() - began
    seen = draw_pairs(teacher, split.train, "strict", seed=job.seed)
    began = perf_counter()
    validation = ndcg_by_query(model, teacher, split.validation, seen)
    test = ndcg_by_query(model, teacher, split.test, seen)
    scored = perf_counter() - began
    return vars(job) | {
        "steps": len(model.log_) * batches, "train_seconds": trained, "score_seconds": scored,
        "validation_rmse": model.validation_rmse_, "validation": validation, "test": test,
    }  # fmt: skip


def run(args: argparse.Namespace) -> None:
    out = Path(args.out)
    out.mkdir(parents=True, exist_ok=True)
    done = {Job(r["model"], r["settings"], r["column"], r["seed"]).key for r in read_runs(out)}
    seeds = [int(seed) for seed in args.seeds.split(",")]
    wanted = [
        Job(model.partition(":")[0], model.partition(":")[2], column, seed)
        for seed in seeds
        for column in args.columns.split(",")
        for model in args.model
    ]
    jobs = [job for job in wanted if job.key not in done]
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
        for process in pool._processes.values() if monotonic() > end else ():
            process.terminate()


# ---- Report --------------------------------------------------------------------------------------
def read_runs(out: Path) -> Iterator[dict[str, Any]]:
    file = out / "runs.jsonl"
    for line in file.read_text(encoding="utf-8").splitlines() if file.is_file() else ():
        yield json.loads(line)


def mean(values: list[float | None]) -> float:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else math.nan


def report(args: argparse.Namespace) -> None:
    """Print each model's best setting per column by validation, its test score, and NeuPath's lead."""
    runs: dict[tuple[str, str], dict[str, dict[int, dict[str, Any]]]] = defaultdict(lambda: defaultdict(dict))
    for one in read_runs(Path(args.out)):
        model = f"{one['model']} (paper)" if "variant=paper" in one["settings"] else one["model"]
        runs[one["column"], model][one["settings"]][one["seed"]] = one
    print("| column | model | setting | seeds | validation | test | 95 % interval | NeuPath ahead by |")
    print("|---|---|---|---:|---:|---:|---|---|")
    for column in COLUMNS:
        chosen = {}
        for model in sorted({model for where, model in runs if where == column}):
            by_setting = runs[column, model]
            most = max(map(len, by_setting.values()))
            full = {setting: own for setting, own in by_setting.items() if len(own) == most}
            scores = {s: float(np.mean([mean(r["validation"]) for r in own.values()])) for s, own in full.items()}
            best = max(scores, key=lambda setting: scores[setting])
            chosen[model] = (best, scores[best], full[best])
            if args.all:
                for setting, own in full.items():
                    tests = float(np.mean([mean(r["test"]) for r in own.values()]))
                    print(f"| {column} | {model} | {setting} | {len(own)} | {scores[setting]:.4f} | {tests:.4f} | | |")
        for model, (setting, score, own) in chosen.items():
            values = flat(own, own)
            low, high = bootstrap_interval(values)
            ahead = ""
            if model != "neupath" and "neupath" in chosen:
                both = sorted(set(own) & set(chosen["neupath"][2]))
                difference = flat(chosen["neupath"][2], both) - flat(own, both)
                least, most_ = bootstrap_interval(difference)
                ahead = f"{difference.mean():+.4f} ({least:+.4f} to {most_:+.4f})"
            cells = (column, model, f"**{setting or 'default'}**", len(own), f"{score:.4f}", f"{values.mean():.4f}")
            print("| " + " | ".join(map(str, cells)) + f" | {low:.4f} to {high:.4f} | {ahead} |")


def flat(runs: dict[int, dict[str, Any]], seeds: Any) -> Any:
    """Return the test scores of some seeds' queries in one array."""
    return np.array([value for seed in sorted(seeds) for value in runs[seed]["test"] if value is not None])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("run", "report"))
    parser.add_argument("--out", required=True)
    parser.add_argument("--data", default=os.environ.get("NEUPATH_DATA"))
    parser.add_argument("--model", action="append", default=[], help="name, or name:setting=value,…; several times")
    parser.add_argument("--columns", default=",".join(DEFAULT))
    parser.add_argument("--seeds", default="0")
    parser.add_argument("--queries", default="400,100,400", help="training, validation and test queries")
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seconds", type=float, default=86_400.0, help="stop after so long")
    parser.add_argument("--all", action="store_true", help="report every setting, not the chosen ones alone")
    args = parser.parse_args()
    (run if args.command == "run" else report)(args)


if __name__ == "__main__":
    main()

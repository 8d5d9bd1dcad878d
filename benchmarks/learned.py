"""NeuPath and CountPath on the eight columns of the paper's tables, under both protocols, mean of some seeds.

    python benchmarks/learned.py --data DATA [--seeds 3] [--jobs 1] [--device cuda] [--out results.json]

DATA holds `imdb` and `kg20c`. Labels: 400 queries with 10 each; 100 more choose the best epoch; 400 others are tested
against all targets. No model is told the meta-path.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from statistics import mean

CONFIGS = {
    "imdb": 'ignore = ["movie_genre*", "movie_keyword*", "movie_metadata*"]\n',
    "kg20c": 'take = ["author_write_paper", "author_in_affiliation", "paper_in_venue"]\n'
    '[abbreviations]\nF = "affiliation"\nA = "author"\n',
}
COLUMNS = [  # graph, meta-path, layers, paths, the paper's RMSE and nDCG (kg20c: of its ACM)
    ("imdb", "MAM", 2, 2, 0.3001, 0.5832),
    ("imdb", "MAMAM", 4, 3, 0.3111, 0.4309),
    ("imdb", "DMD", 2, 2, 0.1101, 0.1821),
    ("imdb", "DMAMD", 4, 3, 0.2506, 0.5998),
    ("kg20c", "APA", 2, 2, 0.1902, 0.6115),
    ("kg20c", "APCPA", 4, 3, 0.0210, 0.2301),
    ("kg20c", "PCP", 2, 2, 0.0005, 0.2441),
    ("kg20c", "PAFAP", 4, 3, 0.1955, 0.2405),
]


def run(data: str, column: int, model: str, protocol: str, seed: int, device: str | None) -> dict[str, object]:
    """Train and evaluate one model on one column."""
    import torch

    import neupath as npth
    from neupath.evaluation import evaluate, split_queries
    from neupath.labels import Protocol

    chosen: Protocol = "paper" if protocol == "paper" else "strict"
    torch.set_num_threads(max(1, len(os.sched_getaffinity(0)) // int(os.environ["NEUPATH_JOBS"])))
    graph, path, layers, paths, *_ = COLUMNS[column]
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as config:
        config.write(CONFIGS[graph])
        config.flush()
        hin = npth.load(Path(data) / graph, config=config.name)
    teacher = npth.PathSim(path).fit(hin)
    split = split_queries(hin.num_nodes(teacher.source_type), seed=seed)
    if model == "neupath":
        scorer = npth.NeuPath(layers=layers, paths=paths, epochs=40, seed=seed, device=device)
    else:
        scorer = npth.CountPath(half_length=2, seed=seed, device="cpu")
    began = time.perf_counter()
    scorer.fit(hin, teacher=teacher, queries=split.train, validation=split.validation, protocol=chosen)
    seconds = time.perf_counter() - began
    found = evaluate(scorer, teacher, split.test, chosen).to_dict()
    return found | {"graph": graph, "path": path, "model": model, "seed": seed, "train_seconds": seconds}


def main() -> None:
    """Run every column and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=os.environ.get("NEUPATH_DATA"))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--device", default=None)
    parser.add_argument("--models", default="neupath,countpath")
    parser.add_argument("--out", default=None)
    arguments = parser.parse_args()
    os.environ["NEUPATH_JOBS"] = str(arguments.jobs)
    wanted = list(
        product(range(arguments.seeds), range(len(COLUMNS)), arguments.models.split(","), ("strict", "paper"))
    )
    results: list[dict[str, object]] = []
    with ProcessPoolExecutor(arguments.jobs, mp_context=get_context("spawn")) as pool:
        waiting = [
            pool.submit(run, arguments.data, column, model, protocol, seed, arguments.device)
            for seed, column, model, protocol in wanted
        ]
        for done in as_completed(waiting):
            results.append(done.result())
            print(json.dumps(results[-1]), file=sys.stderr, flush=True)
            if arguments.out:
                Path(arguments.out).write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    print_table(results)


def print_table(results: list[dict[str, object]]) -> None:
    """Print one row a model and column, means over seeds."""
    head = "paper's RMSE / nDCG | RMSE top 10 / nDCG as released | strict nDCG@20 | RMSE all | non-zero | train"
    print(f"| graph | path | model | {head} |")
    print("|---|---|---|---|---|---|---|---|---|")
    for graph, path, _, _, rmse, ndcg in COLUMNS:
        for model in ("neupath", "countpath"):
            rows = [r for r in results if (r["graph"], r["path"], r["model"]) == (graph, path, model)]
            strict, paper = ([r for r in rows if r["protocol"] == p] for p in ("strict", "paper"))
            if strict and paper:
                cells = [f"{average(paper, 'rmse_top')} / {average(paper, 'ndcg_released')}"]
                cells += [average(strict, key) for key in ("ndcg@20", "rmse_all", "rmse_nonzero")]
                theirs = f"{rmse} / {ndcg}"
                cells.append(f"{average(strict, 'train_seconds', 0)} s")
                print(f"| {graph} | {path} | {model} | {theirs} | {' | '.join(cells)} |")


def average(rows: list[dict[str, object]], key: str, digits: int = 4) -> str:
    """Return the mean of a metric, or a dash where it is not defined."""
    values = [float(str(row[key])) for row in rows if row[key] is not None]
    return f"{mean(values):.{digits}f}" if values else "-"


if __name__ == "__main__":
    main()

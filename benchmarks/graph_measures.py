"""Measures over the whole graph: what the first and the second query take, and by how much scores are wrong.

python benchmarks/graph_measures.py --data DATA                    stdlib, imdb, kg20c, hetionet; default tolerances
python benchmarks/graph_measures.py --data DATA --json today.json  the same, also as JSON
python benchmarks/graph_measures.py --data DATA --stores FOLDER    also the first query of a new process, with stores
python benchmarks/graph_measures.py --compare today.json now.json  two such files side by side
python benchmarks/graph_measures.py --push 8000000                 PPR with and without local push, generated graph

Each measure runs in a process of its own, with compiled kernels in numba's cache. Times are those of the processor, all
threads together, so that other work on the machine counts little; "wall" is the time on the clock. The first query
includes the preparation, which the second does not need. The error is the largest difference between the scores of the
second query and those with the tolerance --reference, 0 for exact ones where that does not take too long. An earlier
version can be measured, too, with PYTHONPATH.
"""

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import neupath as npth
from neupath.errors import SourceWarning
from neupath.measures import PPR, RWR, CommuteTime, SimRank
from neupath.store import write_store

GRAPHS = {"stdlib": "class", "imdb": "movie", "kg20c": "author", "hetionet": "Gene"}
MEASURES: dict[str, Any] = {"ppr": PPR, "rwr": RWR, "simrank": SimRank, "commutetime": CommuteTime}
FIRST, SECOND = 10, 11  # rows of the queries


def load(data: Path, graph: str) -> npth.HIN:
    return npth.load(data / graph if (data / graph).is_dir() else graph)


def measure_one(data: Path, graph: str, name: str, tolerance: float | None, seed: int | None) -> dict[str, Any]:
    """Time two queries; return also the scores of the second."""
    warnings.simplefilter("ignore", SourceWarning)
    hin, node_type = load(data, graph), GRAPHS[graph]
    toy = MEASURES[name]("author").fit(npth.load("toy"))
    toy.top_k("Mike")  # loads libraries and kernels
    settings: dict[str, Any] = {} if tolerance is None else {"tolerance": tolerance}
    settings |= {} if seed is None or "seed" not in MEASURES[name].settings else {"seed": seed}
    result: dict[str, Any] = {"graph": graph, "measure": name}
    measure: Any = MEASURES[name](node_type, **settings)
    for label, row in (("first", FIRST), ("second", SECOND)):
        query = hin.nodes[node_type].id(row)
        began, began_wall = time.process_time(), time.perf_counter()
        hits = (measure.fit(hin) if label == "first" else measure).top_k(query, 10)
        result |= {label: time.process_time() - began, f"{label}_wall": time.perf_counter() - began_wall}
    result |= {"exact": hits.exact, "bound": getattr(measure, "error_", None), "top": list(hits.ids)}
    return result | {"scores": measure.scores(query).tolist()}


def run_one(data: Path, graph: str, name: str, tolerance: float | None, seed: int | None = None) -> dict[str, Any]:
    command = [sys.executable, __file__, "--data", str(data), "--one", graph, name]
    command += [] if tolerance is None else ["--tolerance", str(tolerance)]
    command += [] if seed is None else ["--seed", str(seed)]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    result: dict[str, Any] = json.loads(printed.splitlines()[-1])
    return result


def compare_push(edges: int, queries: int = 6, rounds: int = 1) -> None:
    """Time PPR and RWR with and without local push, query by query in turns, on a graph with power-law degrees."""
    from powerlaw import powerlaw

    from neupath.measures import restart_walk

    hin = powerlaw(edges)
    rows = np.random.default_rng(0).integers(0, hin.num_nodes("author"), queries)
    print(
        "| measure | tolerance | entries of N | with push, ms | without, ms | without / with, least to most | queries |"
    )
    print("|---|---:|---:|---:|---:|---:|---:|")
    for name in ("ppr", "rwr"):
        for tolerance in (1e-4, 1e-6):
            measure = MEASURES[name]("author", tolerance=tolerance).fit(hin)
            times: dict[bool, list[list[float]]] = {True: [], False: []}
            answers: dict[bool, Any] = {}
            for row in rows:
                for pushes in (True, False):
                    restart_walk._LOCAL = 0 if pushes else sys.maxsize
                    took = []
                    for _ in range(rounds):
                        began = time.process_time()
                        answers[pushes] = measure.score_rows(np.array([row]))
                        took.append(time.process_time() - began)
                    times[pushes].append(took)
                np.testing.assert_allclose(answers[True], answers[False], atol=2 * tolerance)
            best = {pushes: 1e3 * np.array(took).min(axis=1) for pushes, took in times.items()}
            ratios = best[False] / best[True]
            print(
                f"| `{name}` | {tolerance:g} | {measure.transitions_.nnz:,} | {np.median(best[True]):.0f} | "
                f"{np.median(best[False]):.0f} | {ratios.min():.2f} to {ratios.max():.2f} | "
                f"{np.mean(best[True] < best[False]):.0%} |",
                flush=True,
            )


def add_error(result: dict[str, Any], reference: dict[str, Any], tolerance: float) -> None:
    """Compare with more exact scores."""
    difference = np.abs(np.array(result["scores"]) - np.array(reference["scores"]))
    result |= {"error": float(difference.max()), "reference": tolerance, "reference_first": reference["first"]}
    result["same_top"] = len(set(result["top"]) & set(reference["top"]))


def print_row(result: dict[str, Any]) -> None:
    bound = result["bound"]
    stated = "" if bound is None else "exact" if bound == 0 else f"{bound:.2g}"
    error = f"{result['error']:.1g} ({result['same_top']}/10)" if "error" in result else ""
    if "reopened" in result:
        error += f"new process {1e3 * result['reopened']:.3g} ms ({1e3 * result['reopened_wall']:.3g})"
    print(
        f"| {result['graph']} | {result['measure']} | {result['first']:.3g} s ({result['first_wall']:.3g}) | "
        f"{1e3 * result['second']:.3g} ms ({1e3 * result['second_wall']:.3g}) | {stated} | {error} |",
        flush=True,
    )


def compare(before: Path, after: Path) -> None:
    """Print the files of two versions side by side; the later one has the more exact scores."""
    earlier = {(r["graph"], r["measure"]): r for r in json.loads(before.read_text())}
    print("| graph | measure | first, before | now | second, before | now | error, before | now | stated |")
    print("|---|---|---:|---:|---:|---:|---:|---:|---:|")
    for now in json.loads(after.read_text()):
        was = earlier.get((now["graph"], now["measure"]))
        if was is None:
            continue
        scores = np.array(now.get("reference_scores", now["scores"]))
        was_error = f"{np.abs(np.array(was['scores']) - scores).max():.1g}"
        error = f"{now['error']:.1g}" if "error" in now else "-"
        print(
            f"| {now['graph']} | `{now['measure']}` | {was['first']:.3g} s | {now['first']:.3g} s | "
            f"{1e3 * was['second']:.3g} ms | {1e3 * now['second']:.3g} ms | {was_error} | {error} | "
            f"{'exact' if now['bound'] == 0 else format(now['bound'], '.2g')} |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=os.environ.get("NEUPATH_DATA"))
    parser.add_argument("--graphs", default=",".join(GRAPHS))
    parser.add_argument("--measures", default=",".join(MEASURES))
    parser.add_argument("--tolerance", type=float, help="instead of the default ones")
    parser.add_argument("--reference", type=float, help="the tolerance of the scores to compare with, 0 for exact ones")
    parser.add_argument("--json", type=Path, help="add the results to this file")
    parser.add_argument("--compare", type=Path, nargs=2, metavar=("BEFORE", "AFTER"))
    parser.add_argument("--seed", type=int, help="of measures that have one")
    parser.add_argument("--stores", type=Path, help="a folder for stores of the graphs, which keep what is prepared")
    parser.add_argument("--push", type=int, metavar="EDGES", help="compare PPR with and without local push")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.compare:
        compare(*given.compare)
        return
    if given.push:
        compare_push(given.push)
        return
    if given.data is None:
        sys.exit("give --data, the folder that holds imdb, kg20c and hetionet")
    if given.one:
        graph, name = given.one
        print(json.dumps(measure_one(Path(given.data), graph, name, given.tolerance, given.seed)))
        return
    print("| graph | measure | first query (wall) | second query (wall) | stated error | measured error (same hits) |")
    print("|---|---|---:|---:|---:|---:|")
    for graph in given.graphs.split(","):
        if given.stores and not (given.stores / graph).exists():
            write_store(load(Path(given.data), graph), given.stores / graph)
        for name in given.measures.split(","):
            result = run_one(given.stores or Path(given.data), graph, name, given.tolerance)
            if given.stores:
                again = run_one(given.stores, graph, name, given.tolerance)
                if again["scores"] != result["scores"]:
                    sys.exit(f"{graph}, {name}: the state on disk gives other scores")
                result |= {"reopened": again["first"], "reopened_wall": again["first_wall"]}
            if given.reference is not None and result["bound"] != 0:
                reference = run_one(Path(given.data), graph, name, given.reference, seed=1)  # errors of its own
                add_error(result, reference, given.reference)
                result["reference_scores"] = reference["scores"]
            print_row(result)
            if given.json:
                known = json.loads(given.json.read_text()) if given.json.exists() else []
                others = [r for r in known if (r["graph"], r["measure"]) != (graph, name)]
                given.json.write_text(json.dumps([*others, result]))


if __name__ == "__main__":
    main()

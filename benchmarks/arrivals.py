"""Trained models over a live IMDB: what one edge costs them, and how well they rank for movies that came later.

    python benchmarks/arrivals.py --data DATA

Cost: single edges come and go while a NeuPath is followed, and in turn the model is bound to the graph from scratch;
and how long it then takes to be ready for the next query. On IMDB, and on a power-law graph of a million edges.

Arrivals: a twentieth of the movies is held out, with their edges and the people that only they bring. Models learn on
the rest, with the settings of `neupath reproduce`; the movies arrive ten at a time, and nothing is learned again. Then
strict nDCG@20 and RMSE of the new movies as queries, and of old ones that training never asked for, against exact
PathSim on the whole graph.
"""

import argparse
import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import mean, median
from typing import Any

import numpy as np
import pyarrow as pa
from powerlaw import powerlaw

from neupath import HIN, CountPath, Edges, NeuPath, Nodes, PathSim
from neupath.engine.scorer import RowChange, RowEdge
from neupath.learn.evaluation import evaluate, split_queries
from neupath.learn.models import PairModel
from neupath.learn.reproduce.protocol import FULL, IMDB, Column, load_graph
from neupath.live import LiveGraph

ROUNDS, EDGES, WARM = 5, 100, 20
AT_ONCE = 10
SHARE = 20
"""One movie in so many is held out."""


def timed(work: Callable[[], object]) -> float:
    """Return the processor's seconds, which others on the machine don't lengthen; everything here is one thread's."""
    began = time.thread_time()
    work()
    return time.thread_time() - began


def set_edges(live: LiveGraph, edges: list[RowEdge], nodes: dict[str, Nodes] | None = None) -> None:
    live.apply(RowChange(live.view().version + 1, edges, nodes or {}))


def measure_cost(hin: HIN, example: HIN, path: str, layers: int) -> dict[str, object]:
    """Time single edges and bindings in turn, of a model that was trained on another graph like this one."""
    model = NeuPath(dim=16, layers=layers, epochs=1, device="cpu")
    teacher = PathSim(path).fit(example)
    model.fit(example, teacher=teacher, queries=example.nodes[teacher.source_type].ids[:20].to_pylist())
    live, edges = LiveGraph(hin, share=float("inf")), changing_edges(hin, np.random.default_rng(0))
    live.attach(model)
    for _ in range(WARM):
        set_edges(live, [next(edges)])
        live.view().scorer(model)
    puts, fits, binds = [], [], []
    for _ in range(ROUNDS):
        for _ in range(EDGES):
            edge = next(edges)
            puts.append(timed(lambda edge=edge: set_edges(live, [edge])))  # type: ignore[misc]
            fits.append(timed(lambda: live.view().scorer(model)))
        binds.append(timed(lambda: model.bind(hin)))
    both = [put + fit for put, fit in zip(puts, fits, strict=True)]
    return {
        "edges": sum(hin.num_edges(relation) for relation in hin.schema.relations),
        "layers": layers,
        "edge_us_p50": round(median(puts) * 1e6),
        "edge_us_mean": round(mean(puts) * 1e6),
        "ready_us_p50": round(median(both) * 1e6),
        "bind_ms": round(median(binds) * 1e3, 1),
        "times_cheaper_p50": round(median(binds) / median(puts)),
        "times_cheaper_mean": round(median(binds) / mean(puts)),
        "times_cheaper_ready": round(median(binds) / median(both)),
    }


def changing_edges(hin: HIN, rng: np.random.Generator) -> Iterator[RowEdge]:
    """Yield in turn an edge that is not there, its ends drawn as the graph has them, and one to be taken away."""
    relation = hin.schema.relations[0]
    entries = hin.matrices[relation].tocoo()
    there = set(zip(entries.row.tolist(), entries.col.tolist(), strict=True))
    for gone in rng.permutation(entries.nnz):
        pair = int(rng.choice(entries.row)), int(rng.choice(entries.col))
        if pair not in there:
            there.add(pair)
            yield relation, *pair, 1.0
            yield relation, int(entries.row[gone]), int(entries.col[gone]), 0.0


def hold_out(hin: HIN, seed: int) -> tuple[HIN, dict[str, np.ndarray]]:
    """Return the graph without some movies, and the rows of each type in the order they come: old ones, new ones."""
    movies = np.random.default_rng(seed).permutation(hin.num_nodes("movie"))
    new = {"movie": np.sort(movies[: len(movies) // SHARE])}
    old = {"movie": np.sort(movies[len(movies) // SHARE :])}
    for node_type in (name for name in hin.schema.node_types if name != "movie"):
        [relation] = [relation for relation in hin.schema.relations if relation.target == node_type]
        matrix = hin.matrices[relation]
        comes = (matrix[new["movie"]].sum(axis=0) > 0) & (matrix[old["movie"]].sum(axis=0) == 0)
        new[node_type], old[node_type] = np.flatnonzero(comes), np.flatnonzero(~comes)
    nodes = [Nodes(name, rows.ids.take(pa.array(old[name]))) for name, rows in hin.nodes.items()]
    edges = []
    for relation, matrix in hin.matrices.items():
        entries = matrix[old[relation.source]][:, old[relation.target]].tocoo()
        edges.append(Edges(relation, entries.row.astype(np.int64), entries.col.astype(np.int64), entries.data))
    return HIN.build(nodes, edges), {name: np.concatenate([old[name], new[name]]) for name in old}


def arrive(live: LiveGraph, hin: HIN, order: dict[str, np.ndarray]) -> list[float]:
    """Let all movies come that the live graph lacks, some at a time, with their people; return the seconds of each."""
    row_of = {name: np.argsort(rows) for name, rows in order.items()}  # where a row of the whole graph comes
    times = []
    for start in range(live.view().hin.num_nodes("movie"), hin.num_nodes("movie"), AT_ONCE):
        movies = order["movie"][start : start + AT_ONCE]
        wanted, edges = {"movie": start + len(movies)}, []
        for relation, matrix in hin.matrices.items():
            entries = matrix[movies].tocoo()
            targets = row_of[relation.target][entries.col].tolist()
            edges += [
                (relation, start + row, column, 1.0) for row, column in zip(entries.row.tolist(), targets, strict=True)
            ]
            wanted[relation.target] = max([0, *targets]) + 1
        nodes = {}
        for name, count in wanted.items():
            rows = order[name][live.view().hin.num_nodes(name) : count]
            if len(rows):
                nodes[name] = Nodes(name, hin.nodes[name].ids.take(pa.array(rows)))
        times.append(timed(lambda edges=edges, nodes=nodes: set_edges(live, edges, nodes)))  # type: ignore[misc]
    return times


def learn(column: Column, kind: str, hin: HIN, seed: int, options: argparse.Namespace) -> PairModel:
    """Train a model as `neupath reproduce` does."""
    settings: dict[str, Any] = FULL.settings_of(kind) | {"seed": seed, "device": options.device}
    settings |= {"epochs": options.epochs} if options.epochs else {}
    if kind == "countpath":
        model: PairModel = CountPath(**{k: v for k, v in settings.items() if k != "dim"})
    else:
        model = NeuPath(layers=column.layers, paths=column.paths, **settings)
    split = split_queries(hin, "movie", FULL.queries, seed=seed)
    return model.fit(hin, teacher=PathSim(column.metapath).fit(hin), queries=split.train, validation=split.validation)


def measure_arrivals(hin: HIN, column: Column, kind: str, seed: int, options: argparse.Namespace) -> dict[str, object]:
    """Train without some movies, let them arrive, and rank for them and for old ones."""
    part, order = hold_out(hin, seed)
    model, live = learn(column, kind, part, seed, options), LiveGraph(part)
    live.attach(model)
    times = arrive(live, hin, order)
    view, old = live.view(), split_queries(part, "movie", FULL.queries, seed=seed).test
    bound, teacher = view.scorer(model), PathSim(column.metapath).fit(view.hin)
    few = np.array([0, hin.num_nodes("movie") - 1])
    np.testing.assert_allclose(bound.score_rows(few), model.bind(view.hin).score_rows(few), rtol=1e-5, atol=1e-5)
    batch_ms = round(median(times) * 1e3, 2)
    found: dict[str, object] = {"path": column.metapath, "model": kind, "seed": seed, "batch_ms": batch_ms}
    for name, queries in (("new", view.hin.nodes["movie"].ids[part.num_nodes("movie") :].to_pylist()), ("old", old)):
        tested = evaluate(bound, teacher, queries[: options.most])
        found |= {f"{name}_queries": tested.ranked_queries, f"{name}_ndcg@20": round(tested.ndcg or 0.0, 4)}
        found |= {f"{name}_rmse_all": round(tested.rmse_all, 5)}
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=os.environ.get("NEUPATH_DATA"))
    parser.add_argument("--edges", type=int, default=1_000_000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, help="those of `neupath reproduce` unless said")
    parser.add_argument("--most", type=int, default=400, help="queries of each kind at most")
    parser.add_argument("--paths", nargs="*", default=["MAM", "MAMAM"])
    parser.add_argument("--models", nargs="*", default=["countpath", "neupath"])
    parser.add_argument("--device", help="cpu or cuda; cuda where there is one unless said")
    parser.add_argument("--no-cost", action="store_true", help="arrivals alone")
    options = parser.parse_args()
    hin = load_graph("imdb", Path(options.data))
    if not options.no_cost:
        for layers in (2, 4):
            print(json.dumps(measure_cost(hin, hin, "MAM", layers)), flush=True)
        for layers in (2, 4):
            print(json.dumps(measure_cost(powerlaw(options.edges), powerlaw(5000), "APA", layers)), flush=True)
    for column in (column for column in IMDB if column.metapath in options.paths):
        for kind in options.models:
            for seed in range(options.seeds):
                print(json.dumps(measure_arrivals(hin, column, kind, seed, options)), flush=True)


if __name__ == "__main__":
    main()

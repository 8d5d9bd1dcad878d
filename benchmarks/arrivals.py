"""Measure trained models attached to a live graph: the cost of one edge, and the quality for movies added later.

    python benchmarks/arrivals.py --data DATA

Cost: single edges are added and removed while a NeuPath is attached, interleaved with binding the model to the whole
graph. Also the time until the attached model can answer the next query. On IMDB, and on a power-law graph of a million
edges.

Arrivals: a twentieth of the movies is held out, with their edges and the people that only they name. Models are trained
on the rest, with the settings of `neupath reproduce`. The movies are then added ten at a time, without training again.
Reported are strict nDCG@20 and RMSE with new movies as queries, and with old test movies, against exact PathSim on the
whole graph.
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

from neupath import HIN, NeuPath, PathSim
from neupath.engine.scorer import RowChange, RowEdge
from neupath.graph.hin import Edges
from neupath.graph.nodes import Nodes
from neupath.learn.evaluation import evaluate, split_queries
from neupath.learn.models import PairModel
from neupath.live import LiveGraph
from neupath_paper.countpath import CountPath
from neupath_paper.protocol import FULL, IMDB, Column, load_graph

ROUNDS, EDGES, WARM = 5, 100, 20
BATCH = 10
"""Movies added at a time."""
HELD_OUT = 20
"""One movie in this many is held out."""


def timed(work: Callable[[], object]) -> float:
    """Return the CPU seconds of this thread, which other work on the machine does not lengthen."""
    began = time.thread_time()
    work()
    return time.thread_time() - began


def set_edges(live: LiveGraph, edges: list[RowEdge], nodes: dict[str, Nodes] | None = None) -> None:
    live.apply(RowChange(live.view().version + 1, edges, nodes or {}))


def measure_cost(hin: HIN, training_graph: HIN, metapath: str, layers: int) -> dict[str, object]:
    """Time single edges and bindings in turn, with a model that was trained on a similar, smaller graph."""
    model = NeuPath(dim=16, layers=layers, epochs=1, variant="paper", device="cpu")
    teacher = PathSim(metapath).fit(training_graph)
    model.fit(
        training_graph,
        teacher=teacher,
        queries=training_graph.nodes[teacher.source_type].ids[:20].to_pylist(),
    )
    live, edges = LiveGraph(hin, compaction_share=float("inf")), draw_edges(hin, np.random.default_rng(0))
    live.attach(model)
    for _ in range(WARM):
        set_edges(live, [next(edges)])
        live.view().scorer(model)
    edge_times, scorer_times, bind_times = [], [], []
    for _ in range(ROUNDS):
        for _ in range(EDGES):
            edge = next(edges)
            edge_times.append(timed(lambda edge=edge: set_edges(live, [edge])))  # type: ignore[misc]
            scorer_times.append(timed(lambda: live.view().scorer(model)))
        bind_times.append(timed(lambda: model.bind(hin)))
    ready_times = [sum(times) for times in zip(edge_times, scorer_times, strict=True)]
    return {
        "edges": sum(hin.num_edges(relation) for relation in hin.schema.relations),
        "layers": layers,
        "edge_us_p50": round(median(edge_times) * 1e6),
        "edge_us_mean": round(mean(edge_times) * 1e6),
        "ready_us_p50": round(median(ready_times) * 1e6),
        "bind_ms": round(median(bind_times) * 1e3, 1),
        "times_cheaper_p50": round(median(bind_times) / median(edge_times)),
        "times_cheaper_mean": round(median(bind_times) / mean(edge_times)),
        "times_cheaper_ready": round(median(bind_times) / median(ready_times)),
    }


def draw_edges(hin: HIN, rng: np.random.Generator) -> Iterator[RowEdge]:
    """Yield in turn an edge to add, its ends drawn by degree, and an existing edge to remove."""
    relation = hin.schema.relations[0]
    entries = hin.matrices[relation].tocoo()
    existing = set(zip(entries.row.tolist(), entries.col.tolist(), strict=True))
    for removed in rng.permutation(entries.nnz):
        pair = int(rng.choice(entries.row)), int(rng.choice(entries.col))
        if pair not in existing:
            existing.add(pair)
            yield relation, *pair, 1.0
            yield relation, int(entries.row[removed]), int(entries.col[removed]), 0.0


def hold_out(hin: HIN, seed: int) -> tuple[HIN, dict[str, np.ndarray]]:
    """Return the graph without some movies, and the rows of each type: first the old ones, then the new ones."""
    movies = np.random.default_rng(seed).permutation(hin.num_nodes("movie"))
    new = {"movie": np.sort(movies[: len(movies) // HELD_OUT])}
    old = {"movie": np.sort(movies[len(movies) // HELD_OUT :])}
    for node_type in (name for name in hin.schema.node_types if name != "movie"):
        [relation] = [relation for relation in hin.schema.relations if relation.target == node_type]
        matrix = hin.matrices[relation]
        is_new = (matrix[new["movie"]].sum(axis=0) > 0) & (matrix[old["movie"]].sum(axis=0) == 0)
        new[node_type], old[node_type] = np.flatnonzero(is_new), np.flatnonzero(~is_new)
    nodes = [Nodes(name, rows.ids.take(pa.array(old[name]))) for name, rows in hin.nodes.items()]
    edges = []
    for relation, matrix in hin.matrices.items():
        entries = matrix[old[relation.source]][:, old[relation.target]].tocoo()
        edges.append(Edges(relation, entries.row.astype(np.int64), entries.col.astype(np.int64), entries.data))
    return HIN.build(nodes, edges), {name: np.concatenate([old[name], new[name]]) for name in old}


def add_movies(live: LiveGraph, hin: HIN, order: dict[str, np.ndarray]) -> list[float]:
    """Add the held-out movies and their people to the live graph, in batches; return the seconds of each batch."""
    new_row = {name: np.argsort(rows) for name, rows in order.items()}  # row in the live graph
    times = []
    for start in range(live.view().hin.num_nodes("movie"), hin.num_nodes("movie"), BATCH):
        movies = order["movie"][start : start + BATCH]
        counts, edges = {"movie": start + len(movies)}, []
        for relation, matrix in hin.matrices.items():
            entries = matrix[movies].tocoo()
            targets = new_row[relation.target][entries.col].tolist()
            edges += [
                (relation, start + row, column, 1.0) for row, column in zip(entries.row.tolist(), targets, strict=True)
            ]
            counts[relation.target] = max([0, *targets]) + 1
        nodes = {}
        for name, count in counts.items():
            rows = order[name][live.view().hin.num_nodes(name) : count]
            if len(rows):
                nodes[name] = Nodes(name, hin.nodes[name].ids.take(pa.array(rows)))
        times.append(timed(lambda edges=edges, nodes=nodes: set_edges(live, edges, nodes)))  # type: ignore[misc]
    return times


def train(column: Column, architecture: str, hin: HIN, seed: int, options: argparse.Namespace) -> PairModel:
    """Train a model as `neupath reproduce` does."""
    preset = "neupath-paper" if architecture == "neupath" else architecture
    settings: dict[str, Any] = FULL.settings_of(preset) | {"seed": seed, "device": options.device}
    settings |= {"epochs": options.epochs} if options.epochs else {}
    if architecture == "countpath":
        model: PairModel = CountPath(**{k: v for k, v in settings.items() if k != "dim"})
    else:
        model = NeuPath(layers=column.layers, paths=column.paths, variant="paper", **settings)
    split = split_queries(hin, "movie", FULL.queries, seed=seed)
    return model.fit(hin, teacher=PathSim(column.metapath).fit(hin), queries=split.train, validation=split.validation)


def measure_arrivals(
    hin: HIN, column: Column, architecture: str, seed: int, options: argparse.Namespace
) -> dict[str, object]:
    """Train without some movies, add them, and evaluate with new and with old movies as queries."""
    part, order = hold_out(hin, seed)
    model, live = train(column, architecture, part, seed, options), LiveGraph(part)
    live.attach(model)
    times = add_movies(live, hin, order)
    view, old = live.view(), split_queries(part, "movie", FULL.queries, seed=seed).test
    bound, teacher = view.scorer(model), PathSim(column.metapath).fit(view.hin)
    checked = np.array([0, hin.num_nodes("movie") - 1])
    np.testing.assert_allclose(
        bound.score_rows(checked), model.bind(view.hin).score_rows(checked), rtol=1e-5, atol=1e-5
    )
    batch_ms = round(median(times) * 1e3, 2)
    row: dict[str, object] = {"path": column.metapath, "model": architecture, "seed": seed, "batch_ms": batch_ms}
    for name, queries in (("new", view.hin.nodes["movie"].ids[part.num_nodes("movie") :].to_pylist()), ("old", old)):
        metrics = evaluate(bound, teacher, queries[: options.max_queries])
        row |= {f"{name}_queries": metrics.ranked_queries, f"{name}_ndcg@20": round(metrics.ndcg or 0.0, 4)}
        row |= {f"{name}_rmse_all": round(metrics.rmse_all, 5)}
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=os.environ.get("NEUPATH_DATA"))
    parser.add_argument("--edges", type=int, default=1_000_000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, help="by default those of `neupath reproduce`")
    parser.add_argument("--max-queries", type=int, default=400, help="the most new and the most old queries")
    parser.add_argument("--metapaths", nargs="*", default=["MAM", "MAMAM"])
    parser.add_argument("--architectures", nargs="*", default=["countpath", "neupath"])
    parser.add_argument("--device", help="cpu or cuda; by default CUDA if there is one")
    parser.add_argument("--no-cost", action="store_true", help="measure arrivals only")
    options = parser.parse_args()
    hin = load_graph("imdb", Path(options.data))
    if not options.no_cost:
        for layers in (2, 4):
            print(json.dumps(measure_cost(hin, hin, "MAM", layers)), flush=True)
        for layers in (2, 4):
            print(json.dumps(measure_cost(powerlaw(options.edges), powerlaw(5000), "APA", layers)), flush=True)
    for column in (column for column in IMDB if column.metapath in options.metapaths):
        for architecture in options.architectures:
            for seed in range(options.seeds):
                print(json.dumps(measure_arrivals(hin, column, architecture, seed, options)), flush=True)


if __name__ == "__main__":
    main()

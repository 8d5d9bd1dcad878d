"""Compute the upper bound of NeuPath: its metrics if it knew the mean true score of every class of nodes.

    python benchmarks/upper_bound.py --data DATA

Targets that a query-conditioned GNN with T-max pooling cannot distinguish form one class and get one score, whatever
its weights. The mean true score of each class, over the test queries themselves, is the least-squares optimum of
all such models.
"""

import argparse
import os
from pathlib import Path

import numpy as np

import neupath as npth
from neupath.learn.evaluation import ndcg, ndcg_released, split_queries
from neupath.learn.models.class_table import ClassTable
from neupath.learn.models.flat_graph import FlatGraph
from neupath_paper.protocol import columns_in, load_graph

QUERIES = 150


def ties(data: Path) -> str:
    """Return the released metric of exact APA scores with noise of 1e-6 on the zeros."""
    hin = load_graph("kg20c", data)
    teacher, rng = npth.PathSim("APA").fit(hin), np.random.default_rng(0)
    queries, scores = hin.nodes["author"].find_many(split_queries(hin, "author").test), []
    for query, row in zip(queries, teacher.score_rows(queries), strict=True):
        truth = np.delete(row, query)
        if truth.max() > 0:
            noise = np.where(truth == 0, rng.normal(0, 1e-6, len(truth)), 0)
            scores.append(ndcg_released(truth, truth + noise))
    return f"exact APA scores with noise of 1e-6 on the zeros: nDCG as released {np.mean(scores):.4f}"


def upper_bound(data: Path, graph: str, path: str, paths: int) -> str:
    """Return strict nDCG@20 and RMSE of the class means on one column."""
    hin = load_graph(graph, data)
    teacher = npth.PathSim(path).fit(hin)
    count, flat = hin.num_nodes(teacher.source_type), FlatGraph.of(hin)
    first = flat.numbering.first(teacher.source_type)
    table = ClassTable(len(hin.schema.node_types), len(path) - 1, paths)
    background = table.background(flat)
    reach = table.reach(flat, np.arange(first, first + count))
    queries = hin.nodes[teacher.source_type].find_many(split_queries(hin, teacher.source_type).test[:QUERIES])
    class_rows = [table.trace(flat, background, first + int(q), reach)[-1][first : first + count] for q in queries]
    truth, classes = teacher.score_rows(queries), np.stack(class_rows)
    others = np.ones(classes.shape, dtype=bool)
    others[np.arange(len(queries)), queries] = False
    _, which = np.unique(classes, return_inverse=True)
    which = which.reshape(classes.shape)
    totals = np.bincount(which[others], truth[others], which.max() + 1)
    best = (totals / np.maximum(np.bincount(which[others], minlength=which.max() + 1), 1))[which]
    kept = [(b[o], s[o]) for b, s, o in zip(truth, best, others, strict=True) if b[o].max() > 0]
    ranking = f"{np.mean([ndcg(b, s) for b, s in kept]):.4f}" if kept else "-"
    error = np.sqrt(np.mean((best - truth)[others & (truth > 0)] ** 2)) if kept else 0.0
    return f"| {graph} | {path} | {paths} | {ranking} | {error:.4f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=os.environ.get("NEUPATH_DATA"))
    arguments = parser.parse_args()
    print("| graph | path | T | strict nDCG@20 | RMSE non-zero |\n|---|---|---|---|---|")
    for column in columns_in(Path(arguments.data)):
        print(upper_bound(Path(arguments.data), column.graph, column.metapath, column.paths), flush=True)
    print(ties(Path(arguments.data)))


if __name__ == "__main__":
    main()

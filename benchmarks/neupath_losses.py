"""Try two additions to NeuPath's training: harder negatives, and a listwise term in the loss.

    python benchmarks/neupath_losses.py columns --data DATA --steps 250
    python benchmarks/neupath_losses.py real --data DATA --seeds 10,11

Variants: "plain" is NeuPath as it is. "hard" draws the random half of the labels among targets with a score of 0 that
share a neighbour with the query, along any relation, as far as there are some. "listwise" adds the cross-entropy
between the labels of a query, divided by their sum, and the softmax of its scores, at a temperature of 0.2. The best
epoch is chosen by squared error on every fifth query. `columns` learns the paper's columns from few steps, so that
there is something to gain, and prints strict nDCG@20 on 400 unseen queries; pairs whose mirror image is a label of any
variant are left out. `real` learns labels that people made (`neupath reproduce real`), whose targets that are not
similar are known already.
"""

import argparse
import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
from neupath_variants import ndcg_by_query
from torch import Tensor

from neupath import load
from neupath.errors import SourceWarning
from neupath.graph.hin import HIN
from neupath.learn.evaluation import split_queries
from neupath.learn.labels import Pairs, draw_pairs
from neupath.learn.models import NeuPath
from neupath.learn.models.model import weighted_error
from neupath.measures import PathSim
from neupath_paper.protocol import IMDB, acm_columns, load_graph
from neupath_paper.real_labels import TASKS, draw_labels, judge

COLUMNS = {column.metapath: column for column in (*IMDB, *acm_columns("kg20c"))}
REAL = ("papers of one domain", "papers of one area", "movies that share two genres")
SIZES = (400, 100, 400)
BATCH, LEARNED = 8, 320
"""Queries a step, and queries that are learned from: every fifth of the training queries chooses the best epoch."""
TEMPERATURE = 0.2


class ListwiseNeuPath(NeuPath):
    """NeuPath with `share` times the listwise term added to its loss."""

    share = 0.0

    def _labelled_batch(self, part: Pairs, *rest: Any) -> Any:
        batch = super()._labelled_batch(part, *rest)
        _, groups = np.unique(part.queries, return_inverse=True)
        object.__setattr__(batch, "groups", torch.from_numpy(groups))
        return batch

    def _loss(self, batch: Any) -> Tensor:
        if not self.share or not torch.is_grad_enabled():  # the validation loss stays comparable
            return super()._loss(batch)
        scores = self._score_batch(batch)
        return weighted_error(scores, batch.labels) + self.share * listwise(scores, batch.labels[0], batch.groups)


def listwise(scores: Tensor, labels: Tensor, groups: Tensor) -> Tensor:
    """Return the mean cross-entropy between labels and the softmax of scores, over queries with a label above 0."""
    losses = []
    for group in range(int(groups.max()) + 1):
        own = groups == group
        if (total := labels[own].sum()) > 0:
            losses.append(-(labels[own] / total * torch.log_softmax(scores[own] / TEMPERATURE, dim=0)).sum())
    return torch.stack(losses).mean() if losses else 0 * scores.sum()


def harden(pairs: Pairs, teacher: PathSim, seed: int) -> Pairs:
    """Replace the random half of a query's labels by unrelated targets that share a neighbour with it."""
    rng, targets, scores = np.random.default_rng(seed), pairs.targets.copy(), pairs.scores.copy()
    for query in np.unique(pairs.queries):
        own = np.flatnonzero(pairs.queries == query)
        best, rest = own[: len(own) // 2], own[len(own) // 2 :]
        near = np.setdiff1d(neighbours(teacher.hin_, teacher.source_type, int(query)), [*pairs.targets[best], query])
        exact = teacher.score_rows(np.array([query]))[0]
        near = near[exact[near] == 0]
        chosen = rng.choice(near, min(len(rest), len(near)), replace=False)
        targets[rest[: len(chosen)]], scores[rest[: len(chosen)]] = chosen, exact[chosen]
    return Pairs(pairs.node_type, pairs.queries, targets, scores)


def neighbours(hin: HIN, node_type: str, row: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return the nodes of one type that share a neighbour with a node, along any relation."""
    reached = [np.zeros(0, dtype=np.int64)]
    for relation, matrix in hin.matrices.items():
        if relation.source == node_type:
            reached.append((matrix[[row]] @ matrix.T).indices.astype(np.int64))
        if relation.target == node_type:
            reached.append((matrix.T.tocsr()[[row]] @ matrix).indices.astype(np.int64))
    return np.unique(np.concatenate(reached))


def mean(values: list[float | None]) -> float:
    return float(np.mean([value for value in values if value is not None]))


def columns(args: argparse.Namespace) -> None:
    print("| column | seed | " + " | ".join(args.variants) + " |\n|---|---:|" + "---:|" * len(args.variants))
    for name in args.columns.split(","):
        column = COLUMNS[name]
        teacher = PathSim(column.metapath).fit(load_graph(column.graph, args.data))
        for seed in args.seeds:
            split = split_queries(teacher.hin_, teacher.source_type, SIZES, seed=seed)
            pairs = draw_pairs(teacher, split.train, "strict", seed=seed)
            hard = harden(pairs, teacher, seed)
            queries, targets, scores = (
                np.concatenate([getattr(one, name) for one in (pairs, hard)])
                for name in ("queries", "targets", "scores")
            )
            seen = Pairs(pairs.node_type, queries, targets, scores)
            cells = []
            for variant in args.variants:
                model = ListwiseNeuPath(
                    layers=column.layers, seed=seed, device="cpu", epochs=max(1, args.steps * BATCH // LEARNED)
                )
                model.share = args.share if "listwise" in variant else 0.0
                model.fit(teacher.hin_, hard if "hard" in variant else pairs)
                cells.append(f"{mean(ndcg_by_query(model, teacher, split.test, seen)):.4f}")
            print(f"| {name} | {seed} | " + " | ".join(cells) + " |", flush=True)


def real(args: argparse.Namespace) -> None:
    variants = [variant for variant in args.variants if "hard" not in variant]
    print("| labels, AUC / nDCG@20 | seed | " + " | ".join(variants) + " |\n|---|---:|" + "---:|" * len(variants))
    for name in REAL:
        folder, withhold = TASKS[name]
        task = withhold(load(args.data / folder))
        for seed in args.seeds:
            labels, queries = draw_labels(task, seed)
            cells = []
            for variant in variants:
                model = ListwiseNeuPath(dim=32, paths=2, epochs=20, seed=seed, device="cpu")
                model.share = args.share if "listwise" in variant else 0.0
                model.fit(task.hin, labels)
                aucs, ndcgs = judge(task, model, labels, queries, seed)
                cells.append(f"{np.mean(aucs):.3f} / {np.mean(ndcgs):.3f}")
            print(f"| {name} | {seed} | " + " | ".join(cells) + " |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = {"columns": columns, "real": real}
    parser.add_argument("command", choices=commands)
    parser.add_argument("--data", type=Path, default=os.environ.get("NEUPATH_DATA"))
    parser.add_argument("--columns", default="MAMAM,APA,PAFAP")
    parser.add_argument("--seeds", type=lambda text: [int(seed) for seed in text.split(",")], default=[0])
    parser.add_argument(
        "--variants", type=lambda text: text.split(","), default=["plain", "hard", "listwise", "hard+listwise"]
    )
    parser.add_argument("--steps", type=int, default=250)
    parser.add_argument("--share", type=float, default=0.1, help="of the listwise term in the loss")
    args = parser.parse_args()
    if args.data is None:
        parser.error("no data is given; set --data or NEUPATH_DATA to a folder with imdb, kg20c and acm_hgb")
    args.data = Path(args.data)
    warnings.simplefilter("ignore", SourceWarning)
    torch.set_num_threads(1)
    commands[args.command](args)


if __name__ == "__main__":
    main()

"""Explanations: groups beside enumerated paths for the pair with most paths, and `relate` for random pairs of hetionet.

Times are those of the processor, one core, so that other work on the machine does not count.

python benchmarks/explain.py groups --data DATA                    Gene-Anatomy-Gene of hetionet, APCPA of kg20c
python benchmarks/explain.py relate --data DATA --pairs 200        all meta-paths of up to 4 steps, checked one by one
"""

import argparse
import gc
import os
import statistics
import sys
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TypeVar

import numpy as np
from scipy.sparse import csr_array, diags_array

import neupath as npth
from neupath import HIN
from neupath.engine.products import Halves, adjacencies, multiplications
from neupath.errors import SourceWarning
from neupath.evidence.explanation import explain
from neupath.evidence.groups import Grouped, Walks
from neupath.evidence.relate import BUDGET, Related, RelatedPath, relate
from neupath.graph.hin import Csr
from neupath.graph.nodes import Id
from neupath.measures import MEASURES, PathCount

T = TypeVar("T")
GROUPS = (
    ("kg20c", "author-paper-conference-paper-author"),
    ("hetionet", "Gene-Anatomy-Gene"),
    ("hetionet", "Gene-Anatomy-Gene-Anatomy-Gene"),
)


def timed(call: Callable[[], T]) -> tuple[T, float]:
    began = time.process_time()
    result = call()
    return result, time.process_time() - began


# ---- Groups --------------------------------------------------------------------------------------
def pair_with_most_paths(hin: HIN, metapath: str) -> tuple[int, int]:
    """Find the pair of different nodes with the largest M[x,y], rows with the largest norms first.

    By Cauchy-Schwarz, M[x,y] is at most the root of M[x,x]·M[y,y], so the search ends early.
    """
    factors = PathCount(metapath).fit(hin).factors_
    order = np.argsort(-factors.left_norms, kind="stable")
    norms = factors.left_norms[order]
    best, pair = 0.0, (0, 1)
    for at, x in enumerate(order[:-1]):
        if np.sqrt(norms[at] * norms[at + 1]) <= best:
            break
        row = factors.rows(np.array([x])).toarray()[0]
        row[x] = 0
        if row.max() > best:
            best, pair = float(row.max()), (int(x), int(row.argmax()))
    return pair


Edges = list[tuple[list[int], list[int], list[float]]]


def edge_lists(matrices: list[Csr], y: int) -> Edges:
    """Return the edges of each step as lists, without those to nodes from which no path leads to y."""
    leads, edges = np.zeros(matrices[-1].shape[1]), []
    leads[y] = 1
    for matrix in reversed(matrices):
        kept = csr_array(matrix @ diags_array(leads))
        kept.eliminate_zeros()
        edges.append((kept.indptr.tolist(), kept.indices.tolist(), kept.data.tolist()))
        leads = (np.diff(kept.indptr) > 0).astype(np.float64)
    return edges[::-1]


def enumerate_groups(edges: Edges, x: int, step: int) -> tuple[int, dict[int, float]]:
    """List every path from x, depth first, and add up its weight at the node after some steps."""
    count, last = 0, len(edges) - 1
    sums: dict[int, float] = defaultdict(float)

    def walk(depth: int, row: int, weight: float, through: int) -> None:
        nonlocal count
        starts, columns, weights = edges[depth]
        for at in range(starts[row], starts[row + 1]):
            column = columns[at]
            here = column if depth + 1 == step else through
            if depth == last:
                count += 1
                sums[here] += weight * weights[at]
            else:
                walk(depth + 1, column, weight * weights[at], here)

    walk(0, x, 1.0, x)
    return count, sums


def run_groups(data: Path, rounds: int) -> None:
    print(
        "| graph, meta-path | paths | groups | explain, ms | groups, ms | enumerated, ms | times | largest difference |"
    )
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    for name, text in GROUPS:
        hin = npth.load(data / name)
        path = hin.metapath(text)
        x, y = pair_with_most_paths(hin, text)
        ids = hin.nodes[path.source].id(x), hin.nodes[path.target].id(y)
        matrices, middle = adjacencies(hin, path), len(path) // 2
        back = [csr_array(matrix.T) for matrix in matrices]
        edges = edge_lists(matrices, y)  # not counted: it takes as long as the groups
        why = explain(hin, path, *ids)  # the product of the meta-path is cached from now on
        gc.freeze()  # the lists of edges, so that no collection looks at them
        whole, groups = [], []
        slow: list[float] = []
        for _ in range(rounds):
            whole.append(timed(lambda: explain(hin, path, *ids))[1])  # noqa: B023
            (walks, grouped), seconds = timed(lambda: split(matrices, back, x, y, middle))  # noqa: B023
            groups.append(seconds)
            if not slow or slow[0] < 1:
                (count, sums), seconds = timed(lambda: enumerate_groups(edges, x, middle))  # noqa: B023
                slow.append(seconds)
        rows, total = walks.rows[middle][grouped.places].tolist(), sum(sums.values())
        assert count == why.num_instances
        assert set(rows) == set(sums)
        apart = max(abs(sums[row] / total - share) for row, share in zip(rows, grouped.shares, strict=True))
        print(
            f"| {name}, {text} | {count:,} | {why.num_groups:,} | {1e3 * min(whole):.1f} | {1e3 * min(groups):.1f} | "
            f"{1e3 * min(slow):.1f} | {min(slow) / min(groups):.1f} | {apart:.1e} |",
            flush=True,
        )


def split(matrices: list[Csr], back: list[Csr], x: int, y: int, step: int) -> tuple[Walks, Grouped]:
    walks = Walks.between(matrices, back, x, y)
    degrees = np.zeros(matrices[step - 1].shape[1], np.int64)  # ties stay in the order of rows
    return walks, Grouped.of(walks, step, degrees)


# ---- relate --------------------------------------------------------------------------------------
Node = tuple[str, Id]
MOST_WORK = 30_000_000
"""Multiplications of both halves of a meta-path up to which it is fitted to check a rank."""


def random_pairs(hin: HIN, count: int, seed: int = 0) -> list[tuple[Node, Node]]:
    """Draw pairs of different nodes, of any types, from all that have an edge."""
    linked = []
    for node_type in hin.schema.node_types:
        degrees = np.zeros(hin.num_nodes(node_type))
        for link in hin.schema.links_from(node_type):
            degrees += np.diff(hin.matrix(link).indptr)
        linked += [(node_type, hin.nodes[node_type].id(row)) for row in np.flatnonzero(degrees).tolist()]
    rng = np.random.default_rng(seed)
    return [(linked[a], linked[b]) for a, b in (rng.choice(len(linked), 2, replace=False) for _ in range(count))]


def run_relate(data: Path, count: int, checked: int, rounds: int) -> None:
    hin = npth.load(data / "hetionet")
    asked: list[tuple[Node, Node, RelatedPath]] = []
    passes = [("all meta-paths, nothing cached", None), ("all meta-paths again", None), ("default budget", BUDGET)]
    for what, budget in passes[:rounds]:
        times, joining, unranked = [], [], 0
        for query, target in random_pairs(hin, count):
            related, seconds = timed(lambda: ask(hin, query, target, budget))  # noqa: B023
            times.append(seconds)
            joining.append(related.joining)
            unranked += related.unranked
            if what == "all meta-paths, nothing cached":
                assert related.complete
                assert related.unranked == 0
                asked += [(query, target, path) for path in related.metapaths]
        print(
            f"{what}: {count} pairs, {sum(joining):,} joining meta-paths (median {statistics.median(joining):.0f}, "
            f"most {max(joining):,}), {unranked:,} of them not ranked; {sum(times):.1f} s in all, a pair median "
            f"{1e3 * statistics.median(times):.0f} ms, mean {1e3 * statistics.mean(times):.0f} ms, "
            f"worst {max(times):.2f} s",
            flush=True,
        )
    check_each(hin, asked, checked)


def ask(hin: HIN, query: Node, target: Node, budget: int | None) -> Related:
    return relate(hin, query[1], target[1], query_type=query[0], target_type=target[0], limit=1 << 40, budget=budget)


def check_each(hin: HIN, asked: list[tuple[Node, Node, RelatedPath]], count: int) -> None:
    """Ask some meta-paths one by one: fit the measure, search, explain; compare everything that `relate` said.

    Where a measure is too large to fit, compare the score alone, from the rows of the two nodes.
    """
    rng = np.random.default_rng(1)
    chosen = [asked[at] for at in rng.choice(len(asked), min(count, len(asked)), replace=False)]
    same_rank, too_large, worst, seconds = 0, 0, 0.0, 0.0
    for query, target, path in sorted(chosen, key=lambda each: each[2].metapath):
        metapath = hin.metapath(path.metapath)
        halves = MEASURES[path.measure](metapath).halves(hin, metapath)
        if half_work(halves) > MOST_WORK:
            too_large += 1
            score = score_alone(halves, hin.row(*query), hin.row(*target), path.measure)
            worst = max(worst, abs(score - path.score) / score)
            continue
        why, taken = timed(lambda: explain(hin, metapath, query[1], target[1], measure=path.measure, k=None))  # noqa: B023
        seconds += taken
        worst = max(worst, abs(why.score - path.score) / why.score, abs(why.groups[0].share - path.group.share))
        assert (why.num_instances, why.num_targets) == (path.paths, path.targets)
        if why.rank == path.rank:
            same_rank += 1
            continue
        scores = MEASURES[path.measure](metapath).fit(hin).scores(query[1])
        scores = np.sort(np.delete(scores, hin.row(*query)) if query[0] == target[0] else scores)[::-1]
        assert why.rank is not None
        between = scores[sorted((why.rank - 1, path.rank - 1))]
        assert np.ptp(between) <= 1e-12 * between.max(), f"{path} has rank {why.rank}"
    fitted = len(chosen) - too_large
    print(
        f"asked one by one: {len(chosen)} of {len(asked):,} meta-paths; scores and largest shares differ by at most "
        f"{worst:.1e}; of the {fitted} that could be fitted (in {seconds:.1f} s), paths and targets are the same, the "
        f"rank is the same for {same_rank}, and among scores equal up to rounding for the other {fitted - same_rank}"
    )


def score_alone(halves: Halves, x: int, y: int, measure: str) -> float:
    """Return the score of two rows, from the product of their half-path rows."""
    left = row_along(halves.lefts, x)
    back = halves.lefts if halves.rights is None else [csr_array(matrix.T) for matrix in reversed(halves.rights)]
    right = row_along(back, y)
    m, dx, dy = (float(a.multiply(b).sum()) for a, b in ((left, right), (left, left), (right, right)))
    return 2 * m / (dx + dy) if measure == "pathsim" else m / float(np.sqrt(dx * dy))


def row_along(matrices: Sequence[Csr], row: int) -> Csr:
    product = csr_array(matrices[0][[row]])
    for matrix in matrices[1:]:
        product = csr_array(product @ matrix)
    return product


def half_work(halves: Halves) -> int:
    """Count the multiplications of both halves of a meta-path of up to 4 steps."""
    return sum(multiplications(a, b) for half in (halves.lefts, halves.rights or ()) for a, b in pairwise(half))


# ---- Command line --------------------------------------------------------------------------------
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("groups", "relate"))
    parser.add_argument("--data", type=Path, default=os.environ.get("NEUPATH_DATA"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--pairs", type=int, default=200)
    parser.add_argument("--check", type=int, default=1000, help="how many meta-paths to ask one by one")
    options = parser.parse_args()
    if options.data is None:
        sys.exit("give --data, the folder that holds kg20c and hetionet")
    warnings.simplefilter("ignore", SourceWarning)
    if options.what == "groups":
        run_groups(Path(options.data), options.rounds)
    else:
        run_relate(Path(options.data), options.pairs, options.check, options.rounds)


if __name__ == "__main__":
    main()

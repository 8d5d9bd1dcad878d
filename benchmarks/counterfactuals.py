"""Counterfactuals: as small as exhaustive search finds them on small graphs, and how long they take on real ones.

    python benchmarks/counterfactuals.py small [--count 500]
    python benchmarks/counterfactuals.py real --data DATA [--count 20]

DATA holds `imdb`, `kg20c` and `hetionet`. Times are those of the processor, one core. Every size is that of a set which
was verified by changing the graph and searching again.
"""

import argparse
import os
import sys
import time
import warnings
from collections import Counter
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import neupath as npth
from neupath import HIN, PathSim
from neupath.errors import SourceWarning
from neupath.evidence import counterfactuals
from neupath.evidence.counterfactual_problem import without_edges
from neupath.evidence.counterfactuals import rank_and_score, what_if
from neupath.graph.hin import Edges
from neupath.graph.metapath import Relation
from neupath.graph.nodes import Nodes, Rows
from neupath.measures import measure_named
from neupath_paper.protocol import load_graph

LARGEST = 4  # sets that exhaustive search tries
PATHS = {"pathsim": ["a-b-a", "a-b-c-b-a"], "joinsim": ["a-b-a", "a-b-c-b-a"]}
ANY_PATHS = ["a-b-a", "a-b-c-b-a", "a-b-b-a"]
CASES = [
    ("imdb", "MAM", "edges"), ("imdb", "MAM", "actor"), ("kg20c", "APA", "paper"), ("kg20c", "APCPA", "edges"),
    ("kg20c", "APCPA", "paper"), ("hetionet", "Disease-Gene-Disease", "edges"),
    ("hetionet", "Disease-Gene-Disease", "Gene"), ("hetionet", "Gene-Anatomy-Gene", "edges"),
]  # fmt: skip


# ---- Small graphs --------------------------------------------------------------------------------
def random_graph(rng: np.random.Generator) -> HIN:
    sizes = {"a": int(rng.integers(3, 6)), "b": int(rng.integers(2, 5)), "c": int(rng.integers(1, 4))}
    relations = Relation("a", "r", "b"), Relation("b", "t", "c"), Relation("b", "near", "b", directed=False)
    is_weighted = rng.random() < 0.3
    edges = []
    for relation, most in zip(relations, (int(rng.integers(5, 11)), 4, 2), strict=True):
        width = sizes[relation.target]
        most_edges = sizes[relation.source] * width
        places = rng.choice(most_edges, min(most, most_edges), replace=False)
        weights = rng.choice([1.0, 2.0, 0.5], len(places)) if is_weighted else np.ones(len(places))
        edges.append(Edges(relation, places // width, places % width, weights))
    return HIN.build([Nodes(t, pa.array([f"{t}{i}" for i in range(n)])) for t, n in sizes.items()], edges)


def elements_of(hin: HIN, relations: list[Relation], by: str, kept: set[int]) -> list[dict[Relation, Rows]]:
    """Return the edges that go with each edge, or with each node of a type; shape (edges, 2)."""
    ends = {relation: np.argwhere(hin.matrices[relation].toarray()) for relation in relations}
    if by == "edges":
        return [{r: pair[None]} for r in relations for pair in ends[r] if r.directed or pair[0] <= pair[1]]
    return [
        {
            r: ends[r][((ends[r][:, 0] == n) & (r.source == by)) | ((ends[r][:, 1] == n) & (r.target == by))]
            for r in relations
        }
        for n in range(hin.num_nodes(by))
        if n not in kept
    ]


def try_all(hin: HIN, measure: str, path: str, by: str, x: int, y: int, k: int) -> int | None:
    """Return the size of the smallest set by exhaustive search, or None."""
    scorer = measure_named(measure, path).fit(hin)
    relations = list(dict.fromkeys(link.relation for step in scorer.metapath_.steps for link in step.links))
    elements = elements_of(hin, relations, by, {x, y} if by == "a" else set())
    for size in range(1, min(LARGEST, len(elements)) + 1):
        for chosen in combinations(elements, size):
            gone = {}
            for relation in relations:
                parts = [element[relation] for element in chosen if relation in element]
                if parts:
                    pairs = np.concatenate(parts)
                    gone[relation] = pairs[:, 0], pairs[:, 1]
            rank, _ = rank_and_score(scorer.bind(without_edges(hin, gone)), x, y)
            if rank is None or rank > k:
                return size
    return None


def run_small(count: int) -> None:
    greedy_sizes: list[int | None] = []
    search = counterfactuals._ChangeSearch._greedy

    def recording(self: counterfactuals._ChangeSearch, *arguments: Any) -> list[int] | None:
        found = search(self, *arguments)
        greedy_sizes.append(None if found is None else len(found))
        return found

    counterfactuals._ChangeSearch._greedy = recording  # type: ignore[method-assign, assignment]
    sizes: Counter[int | None] = Counter()
    outcomes: Counter[str] = Counter()
    seed = asked = 0
    while asked < count:
        rng = np.random.default_rng(seed)
        seed += 1
        hin = random_graph(rng)
        measure = str(rng.choice(["pathsim", "joinsim", "pathcount", "pcrw", "dwpc", "hetesim"]))
        path = str(rng.choice(PATHS.get(measure, ANY_PATHS)))
        by = str(rng.choice(["edges", "edges", *dict.fromkeys(path.split("-"))]))
        k, x = int(rng.integers(1, 4)), int(rng.integers(hin.num_nodes("a")))
        hits = measure_named(measure, path).fit(hin).top_k(f"a{x}", k)
        if not len(hits):
            continue
        asked += 1
        y = int(str(hits.ids[int(rng.integers(len(hits)))])[1:])
        expected = try_all(hin, measure, path, by, x, y, k)
        greedy_sizes.clear()
        answer = what_if(hin, path, f"a{x}", f"a{y}", measure=measure, k=k, remove=by)
        size = None if answer.smallest is None else len(answer.smallest.elements)
        agrees = size == expected or (expected is None and size is not None and size > LARGEST)
        outcomes["equal" if agrees else "different"] += 1
        outcomes["proven smallest"] += answer.optimal
        outcomes["greedy search needed"] += bool(greedy_sizes)
        if greedy_sizes and size is not None:
            outcomes["greedy not smallest"] += greedy_sizes[0] is None or greedy_sizes[0] > size
        sizes[size] += 1
    print(f"{asked} graphs: {dict(outcomes)}")
    print(f"sizes of the smallest sets: {dict(sorted(sizes.items(), key=lambda item: (item[0] is None, item[0])))}")


# ---- Real graphs ---------------------------------------------------------------------------------
def run_real(data: Path, count: int) -> None:
    print("| graph | meta-path | remove | queries | median s | worst s | median size | largest | proven smallest |")
    print("|---|---|---|---|---:|---:|---:|---:|---:|")
    what_if(npth.load("toy"), "APVPA", "Mike", "Mary", k=2, remove="edges")  # compiles the kernels
    for graph, path, by in CASES:
        hin = npth.load(data / graph) if graph == "hetionet" else load_graph(graph, data)
        scorer = PathSim(path).fit(hin)
        for which in ("any", "busiest"):
            print(f"| {graph} | {path} | {by} | {which} | {ask(scorer, path, by, which, count)} |", flush=True)


def ask(scorer: PathSim, path: str, by: str, which: str, count: int) -> str:
    """Ask of a random hit of some queries: any that have ten hits, or of the twentieth with the most paths."""
    rng, hin = np.random.default_rng(0), scorer.hin_
    norms = scorer.factors_.left_norms
    rows = np.arange(len(norms)) if which == "any" else np.argsort(-norms)[: max(count, len(norms) // 20)]
    times: list[float] = []
    sizes, proven = [], 0
    for row in rng.permutation(rows).tolist():
        hits = scorer.top_k_rows(np.array([row]), 10)[0]
        if len(hits) < 10 or len(times) == count:
            continue
        target = hits.ids[int(rng.integers(10))]
        began = time.process_time()
        answer = what_if(hin, path, hits.query_id, target, k=10, remove=by)
        times.append(time.process_time() - began)
        proven += answer.optimal
        sizes.append(0 if answer.smallest is None else len(answer.smallest.elements))
    return (
        f"{np.median(times):.2f} | {max(times):.2f} | {np.median(sizes):.0f} | {max(sizes)} | {proven} of {len(times)}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=["small", "real"])
    parser.add_argument("--data", type=Path, default=os.environ.get("NEUPATH_DATA"))
    parser.add_argument("--count", type=int, help="graphs, or questions per graph")
    given = parser.parse_args()
    warnings.simplefilter("ignore", SourceWarning)
    if given.part == "small":
        run_small(given.count or 500)
    elif given.data is None:
        sys.exit("give --data, the folder that holds imdb, kg20c and hetionet")
    else:
        run_real(Path(given.data), given.count or 20)


if __name__ == "__main__":
    main()

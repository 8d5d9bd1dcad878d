"""Search by example on real graphs: which meta-path and measure labels mean, from how few, and how fast.

    python benchmarks/inference.py --data DATA [PART ...]

DATA holds `imdb`, `kg20c` and `hetionet`. Parts: columns (the paper's eight meta-paths, from 400 and from 10 queries),
noise, mixture, measures, hetionet, random, people. Without any, all of them.
"""

import argparse
import os
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa

import neupath as npth
from neupath import HIN
from neupath.learn.evaluation import evaluate, split_queries
from neupath.learn.inference.binary_labels import auc
from neupath.learn.labels import Pairs, Protocol, draw_pairs
from neupath.learn.reproduce.protocol import columns_in, load_graph
from neupath.measures import measure_named


def columns(data: Path) -> None:
    """Find each of the paper's meta-paths from the labels of 400 and of 10 queries."""
    print("| graph | path | labels | queries | found | weight | seconds | RMSE all | strict nDCG@20 | as good |")
    print("|---|---|---|---:|---|---:|---:|---:|---:|---|")
    for column in columns_in(data):
        graph, path = column.graph, column.metapath
        hin = load_graph(graph, data)
        teacher = npth.PathSim(path).fit(hin)
        split = split_queries(hin, teacher.source_type)
        for protocol, count in (("strict", 400), ("strict", 10), ("paper", 400), ("paper", 10)):
            chosen: Protocol = "paper" if protocol == "paper" else "strict"
            pairs = draw_pairs(teacher, split.train[:count], chosen)
            began = time.perf_counter()
            found = npth.infer(hin, pairs)
            seconds = time.perf_counter() - began
            tested = evaluate(found.scorer, teacher, split.test)
            right = found.measure == "pathsim" and found.parts[0].metapath == teacher.metapath_text
            ndcg = "-" if tested.ndcg is None else f"{tested.ndcg:.4f}"
            others = "; ".join(map(str, found.alternatives[:3])) or "-"
            print(
                f"| {graph} | {path} | {protocol} | {count} | "
                f"{'yes' if right else f'{found.parts[0].metapath} by {found.measure}'} | "
                f"{found.parts[0].weight:.3f} | "
                f"{seconds:.1f} | {tested.rmse_all:.1e} | {ndcg} | {others} |",
                flush=True,
            )


def noise(data: Path) -> None:
    """Add noise of 0.05 to the labels of 10 queries."""
    for column in columns_in(data):
        graph, path = column.graph, column.metapath
        hin = load_graph(graph, data)
        teacher = npth.PathSim(path).fit(hin)
        pairs = noisy(draw_pairs(teacher, split_queries(hin, teacher.source_type).train[:10]), 0.05)
        found = npth.infer(hin, pairs)
        first = found.parts[0]
        print(
            f"noise 0.05, 10 queries, {graph} {path}: "
            f"{'right' if first.metapath == teacher.metapath_text else 'WRONG'}: "
            f"{first.metapath} by {found.measure}, weight {first.weight:.3f} [{first.low:.3f}, {first.high:.3f}], "
            f"{len(found.parts) - 1} more paths, held-out R² {found.held_out_r2:.3f}",
            flush=True,
        )


def noisy(pairs: Pairs, deviation: float) -> Pairs:
    """Return the pairs with Gaussian noise on their scores."""
    scores = pairs.scores + np.random.default_rng(0).normal(0, deviation, len(pairs))
    return Pairs(pairs.node_type, pairs.queries, pairs.targets, scores)


def mixture(data: Path) -> None:
    """Find the weights of three paths in a mixture."""
    for graph, paths in (
        ("imdb", ("movie-actor-movie", "movie-director-movie", "movie-actor-movie-actor-movie")),
        ("kg20c", ("author-paper-author", "author-affiliation-author", "author-paper-conference-paper-author")),
    ):
        hin = load_graph(graph, data)
        weights = dict(zip((str(hin.metapath(p)) for p in paths), (0.5, 0.3, 0.2), strict=True))
        teacher = npth.Combination([npth.measures.Part("pathsim", p, w) for p, w in weights.items()]).fit(hin)
        train = split_queries(hin, teacher.source_type).train
        for name, queries, deviation in (("no noise", 40, 0.0), ("noise 0.05", 40, 0.05)):
            pairs = draw_pairs(teacher, train[:queries])
            found = npth.infer(hin, noisy(pairs, deviation) if deviation else pairs)
            got = {part.metapath: part.weight for part in found.parts}
            worst = max(abs(got.get(path, 0.0) - weight) for path, weight in weights.items())
            told = ", ".join(f"{path} {weight:.3f}" for path, weight in got.items())
            print(f"mixture 0.5/0.3/0.2, {graph}, {name}, {queries} queries: off by {worst:.3f}: {told}", found.measure)


def measures(data: Path) -> None:
    """Find which measure made the labels."""
    for graph, path in (("imdb", "MAM"), ("imdb", "MAMAM"), ("kg20c", "APA"), ("kg20c", "APCPA")):
        hin = load_graph(graph, data)
        for measure in ("hetesim", "joinsim", "pcrw", "pathsim"):
            teacher = measure_named(measure, path).fit(hin)
            train = split_queries(hin, teacher.source_type).train
            found = npth.infer(hin, draw_pairs(teacher, train[:10]))
            print(
                f"labels by {measure} on {graph} {path}: {standing(found, measure, str(teacher.metapath_text))}: "
                f"{found.parts[0].metapath} by {found.measure}, weight {found.parts[0].weight:.3f}; "
                f"{len(found.alternatives)} as good",
                flush=True,
            )


def standing(found: npth.Inferred, measure: str, path: str) -> str:
    """Say whether a path under a measure was named first, as equally good, or not at all."""
    if (found.measure, found.parts[0].metapath) == (measure, path):
        return "first"
    equal = any((other.measure, other.weights[0][0]) == (measure, path) for other in found.alternatives)
    return "named as equally good" if equal else "MISSED"


def hetionet(data: Path) -> None:
    """Find a meta-path of half-length 3 among those of Hetionet."""
    hin = npth.load(data / "hetionet")
    disease = next(t for t in hin.schema.node_types if t.lower() == "disease")
    every = [p for p in npth.enumerate_metapaths(hin.schema, disease, 6) if len(p) == 6]
    rng = np.random.default_rng(0)
    for path in (every[int(at)] for at in rng.choice(len(every), 4, replace=False)):
        teacher = npth.PathSim(path).fit(hin)
        for deviation in (0.0, 0.05):
            pairs = draw_pairs(teacher, hin.nodes[disease].ids[10:30].to_pylist())
            began = time.perf_counter()
            found = npth.infer(hin, noisy(pairs, deviation) if deviation else pairs)
            seconds = time.perf_counter() - began
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
            print(
                f"hetionet, noise {deviation}: {standing(found, 'pathsim', str(path))}: {path} -> "
                f"{found.parts[0].metapath} by {found.measure} {found.parts[0].weight:.3f}, {seconds:.1f} s, "
                f"tried {found.searched.tried:,} of {found.searched.total:,}, peak {peak:.2f} GiB, "
                f"{len(found.alternatives)} as good",
                flush=True,
            )


def random(data: Path) -> None:
    """Give labels that no path explains."""
    hin = load_graph("imdb", data)
    rng = np.random.default_rng(0)
    count = hin.num_nodes("movie")
    queries = np.repeat(rng.choice(count, 40, replace=False), 10)
    targets = (queries + 1 + rng.integers(0, count - 1, 400)) % count
    teacher = npth.PathSim("MAMAM").fit(hin)
    related = draw_pairs(teacher, hin.nodes["movie"].ids.take(np.unique(queries)).to_pylist())
    for name, pairs in (
        ("random pairs", Pairs("movie", queries, targets, rng.random(400))),
        ("related pairs", Pairs("movie", related.queries, related.targets, rng.random(len(related)))),
    ):
        found = npth.infer(hin, pairs)
        told = ", ".join(f"{p.metapath} {p.weight:.3f} [{p.low:.3f}, {p.high:.3f}]" for p in found.parts)
        print(f"random scores on {name}: {found.verdict}; R² {found.r2:.3f}; {told}")


def people(data: Path) -> None:
    """Learn "shares at least two genres" from yes/no labels, with genres withheld from the graph."""
    whole = npth.load(data / "imdb", config=None)
    genres = next(
        matrix for relation, matrix in whole.matrices.items() if "genre" in (relation.source + relation.target)
    )
    kept = [t for t in whole.schema.node_types if t != "genre"]
    edges = [
        npth.Edges(r, m.tocoo().row.astype(np.int64), m.tocoo().col.astype(np.int64), m.tocoo().data)
        for r, m in whole.matrices.items()
        if "genre" not in (r.source, r.target)
    ]
    hin = HIN.build([whole.nodes[t] for t in kept], edges)
    shared = (genres @ genres.T).tocsr()
    rng = np.random.default_rng(0)
    count = hin.num_nodes("movie")

    def draw(queries: np.ndarray) -> Pairs:
        """Draw five similar and five other movies for each query."""
        rows: list[tuple[int, int, float]] = []
        for query in queries:
            score = shared[[query]].toarray().ravel() >= 2
            score[query] = False
            yes, no = np.flatnonzero(score), np.setdiff1d(np.flatnonzero(~score), [query])
            for label, pool in ((1.0, yes), (0.0, no)):
                rows += [(int(query), int(t), label) for t in rng.choice(pool, min(5, len(pool)), replace=False)]
        q, t, s = zip(*rows, strict=True)
        return Pairs("movie", np.array(q), np.array(t), np.array(s))

    order = rng.permutation(count)
    train, test = draw(order[:400]), draw(order[400:800])
    found = npth.infer(hin, train, max_length=2)

    def judge(scorer: npth.Combination | npth.PathSim) -> float:
        predicted = np.concatenate(
            [scorer.score_rows(np.array([q]))[0][test.targets[test.queries == q]] for q in np.unique(test.queries)]
        )
        labels = np.concatenate([test.scores[test.queries == q] for q in np.unique(test.queries)])
        return auc(labels, predicted)

    told = ", ".join(f"{part.metapath} {part.weight:.3f}" for part in found.parts)
    print(f"people's notion, held-out AUC: learned combination ({found.measure}: {told}) {judge(found.scorer):.4f}")
    for path in npth.enumerate_metapaths(hin.schema, "movie", 2):
        print(f"people's notion, held-out AUC: {path} alone {judge(npth.PathSim(path).fit(hin)):.4f}")
    longer = npth.infer(hin, train, max_length=4)
    told = ", ".join(f"{part.metapath} {part.weight:.3f}" for part in longer.parts)
    print(
        f"people's notion, held-out AUC: paths of up to 4 steps ({longer.measure}: {told}) {judge(longer.scorer):.4f}"
    )


PARTS: dict[str, Callable[[Path], None]] = {
    part.__name__: part for part in (columns, noise, mixture, measures, hetionet, random, people)
}


def main() -> None:
    """Run the parts asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=[[], *PARTS])
    parser.add_argument("--data", default=os.environ.get("NEUPATH_DATA"))
    arguments = parser.parse_args()
    if arguments.data is None:
        sys.exit("say where the graphs are with --data or NEUPATH_DATA")
    for part in arguments.parts or PARTS:
        PARTS[part](Path(arguments.data))


if __name__ == "__main__":
    pa.set_cpu_count(1)
    main()

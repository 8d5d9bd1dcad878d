"""Measure search by example on real graphs: whether it finds the meta-path and measure, from how few labels, how fast.

    python benchmarks/inference.py --data DATA [PART ...]

DATA holds `imdb`, `kg20c` and `hetionet`. Parts: columns (the paper's eight meta-paths, from 400 and from 10 queries),
noise, mixture, measures, hetionet, random, people. By default all of them.
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
from neupath.graph.hin import Edges
from neupath.graph.metapath import enumerate_metapaths
from neupath.learn.evaluation import auc, evaluate, split_queries
from neupath.learn.inference import Inferred
from neupath.learn.labels import Pairs, Protocol, draw_pairs
from neupath.measures import measure_named
from neupath_paper.protocol import columns_in, load_graph


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
            protocol_name: Protocol = "paper" if protocol == "paper" else "strict"
            pairs = draw_pairs(teacher, split.train[:count], protocol_name)
            began = time.perf_counter()
            inferred = npth.infer(hin, pairs)
            seconds = time.perf_counter() - began
            metrics = evaluate(inferred.scorer, teacher, split.test)
            right = inferred.measure == "pathsim" and inferred.parts[0].metapath == teacher.metapath_text
            ndcg = "-" if metrics.ndcg is None else f"{metrics.ndcg:.4f}"
            others = "; ".join(map(str, inferred.alternatives[:3])) or "-"
            print(
                f"| {graph} | {path} | {protocol} | {count} | "
                f"{'yes' if right else f'{inferred.parts[0].metapath} by {inferred.measure}'} | "
                f"{inferred.parts[0].weight:.3f} | "
                f"{seconds:.1f} | {metrics.rmse_all:.1e} | {ndcg} | {others} |",
                flush=True,
            )


def noise(data: Path) -> None:
    """Find each of the paper's meta-paths from 10 queries with noise of 0.05 on the labels."""
    for column in columns_in(data):
        graph, path = column.graph, column.metapath
        hin = load_graph(graph, data)
        teacher = npth.PathSim(path).fit(hin)
        pairs = noisy(draw_pairs(teacher, split_queries(hin, teacher.source_type).train[:10]), 0.05)
        inferred = npth.infer(hin, pairs)
        first = inferred.parts[0]
        print(
            f"noise 0.05, 10 queries, {graph} {path}: "
            f"{'right' if first.metapath == teacher.metapath_text else 'WRONG'}: "
            f"{first.metapath} by {inferred.measure}, weight {first.weight:.3f} [{first.low:.3f}, {first.high:.3f}], "
            f"{len(inferred.parts) - 1} more paths, held-out R² {inferred.held_out_r2:.3f}",
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
            inferred = npth.infer(hin, noisy(pairs, deviation) if deviation else pairs)
            weight_of = {part.metapath: part.weight for part in inferred.parts}
            worst = max(abs(weight_of.get(path, 0.0) - weight) for path, weight in weights.items())
            text = ", ".join(f"{path} {weight:.3f}" for path, weight in weight_of.items())
            print(
                f"mixture 0.5/0.3/0.2, {graph}, {name}, {queries} queries: off by {worst:.3f}: {text}", inferred.measure
            )


def measures(data: Path) -> None:
    """Find which measure the labels come from."""
    for graph, path in (("imdb", "MAM"), ("imdb", "MAMAM"), ("kg20c", "APA"), ("kg20c", "APCPA")):
        hin = load_graph(graph, data)
        for measure in ("hetesim", "joinsim", "pcrw", "pathsim"):
            teacher = measure_named(measure, path).fit(hin)
            train = split_queries(hin, teacher.source_type).train
            inferred = npth.infer(hin, draw_pairs(teacher, train[:10]))
            print(
                f"labels by {measure} on {graph} {path}: {place_of(inferred, measure, str(teacher.metapath_text))}: "
                f"{inferred.parts[0].metapath} by {inferred.measure}, weight {inferred.parts[0].weight:.3f}; "
                f"{len(inferred.alternatives)} as good",
                flush=True,
            )


def place_of(inferred: Inferred, measure: str, path: str) -> str:
    """Say whether infer returned a path and measure first, as equally good, or not at all."""
    if (inferred.measure, inferred.parts[0].metapath) == (measure, path):
        return "first"
    equal = any((other.measure, other.weights[0][0]) == (measure, path) for other in inferred.alternatives)
    return "named as equally good" if equal else "MISSED"


def hetionet(data: Path) -> None:
    """Find a meta-path of half-length 3 among those of Hetionet."""
    hin = npth.load(data / "hetionet")
    disease = next(t for t in hin.schema.node_types if t.lower() == "disease")
    metapaths = [p for p in enumerate_metapaths(hin.schema, disease, 6) if len(p) == 6]
    rng = np.random.default_rng(0)
    for path in (metapaths[int(at)] for at in rng.choice(len(metapaths), 4, replace=False)):
        teacher = npth.PathSim(path).fit(hin)
        for deviation in (0.0, 0.05):
            pairs = draw_pairs(teacher, hin.nodes[disease].ids[10:30].to_pylist())
            began = time.perf_counter()
            inferred = npth.infer(hin, noisy(pairs, deviation) if deviation else pairs)
            seconds = time.perf_counter() - began
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
            print(
                f"hetionet, noise {deviation}: {place_of(inferred, 'pathsim', str(path))}: {path} -> "
                f"{inferred.parts[0].metapath} by {inferred.measure} {inferred.parts[0].weight:.3f}, {seconds:.1f} s, "
                f"tried {inferred.searched.tried:,} of {inferred.searched.total:,}, peak {peak:.2f} GiB, "
                f"{len(inferred.alternatives)} as good",
                flush=True,
            )


def random(data: Path) -> None:
    """Infer from random labels, which no path explains."""
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
        inferred = npth.infer(hin, pairs)
        text = ", ".join(f"{p.metapath} {p.weight:.3f} [{p.low:.3f}, {p.high:.3f}]" for p in inferred.parts)
        print(f"random scores on {name}: {inferred.verdict}; R² {inferred.r2:.3f}; {text}")


def people(data: Path) -> None:
    """Learn "shares at least two genres" from yes/no labels, with genres withheld from the graph."""
    whole = npth.load(data / "imdb", config=None)
    genres = next(
        matrix for relation, matrix in whole.matrices.items() if "genre" in (relation.source + relation.target)
    )
    kept = [t for t in whole.schema.node_types if t != "genre"]
    edges = [
        Edges(r, m.tocoo().row.astype(np.int64), m.tocoo().col.astype(np.int64), m.tocoo().data)
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
    inferred = npth.infer(hin, train, max_length=2)

    def held_out_auc(scorer: npth.Combination | npth.PathSim) -> float:
        predicted = np.concatenate(
            [scorer.score_rows(np.array([q]))[0][test.targets[test.queries == q]] for q in np.unique(test.queries)]
        )
        labels = np.concatenate([test.scores[test.queries == q] for q in np.unique(test.queries)])
        return auc(labels, predicted)

    text = ", ".join(f"{part.metapath} {part.weight:.3f}" for part in inferred.parts)
    name = f"learned combination ({inferred.measure}: {text})"
    print(f"people's notion, held-out AUC: {name} {held_out_auc(inferred.scorer):.4f}")
    for path in enumerate_metapaths(hin.schema, "movie", 2):
        print(f"people's notion, held-out AUC: {path} alone {held_out_auc(npth.PathSim(path).fit(hin)):.4f}")
    longer = npth.infer(hin, train, max_length=4)
    text = ", ".join(f"{part.metapath} {part.weight:.3f}" for part in longer.parts)
    name = f"paths of up to 4 steps ({longer.measure}: {text})"
    print(f"people's notion, held-out AUC: {name} {held_out_auc(longer.scorer):.4f}")


PARTS: dict[str, Callable[[Path], None]] = {
    part.__name__: part for part in (columns, noise, mixture, measures, hetionet, random, people)
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=[[], *PARTS])
    parser.add_argument("--data", default=os.environ.get("NEUPATH_DATA"))
    arguments = parser.parse_args()
    if arguments.data is None:
        sys.exit("name the folder of graphs with --data or NEUPATH_DATA")
    for part in arguments.parts or PARTS:
        PARTS[part](Path(arguments.data))


if __name__ == "__main__":
    pa.set_cpu_count(1)
    main()

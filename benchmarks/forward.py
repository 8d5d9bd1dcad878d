"""Compare NeuPath's forward pass over classes with the plain one over all nodes and edges; test it inductively.

    python benchmarks/forward.py --data DATA
    python benchmarks/forward.py --data DATA --cost

On IMDB, with the same weights and the same scores (checked to 1e-5), interleaved in one run, medians of 5, on the CPU.
The plain pass is a full-graph GNN forward for one query: products per node, messages for every edge, T rounds of a
scatter maximum. In the inductive test the model is trained without a fifth of the movies and their edges, and tested on
queries among them in the whole graph. On CUDA only training is timed, with the Triton kernel and without. All this is
of the model as published; `--cost` compares the improved variant with it, in CPU seconds of one thread.
"""

import argparse
import os
import resource
import time
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
from torch import Tensor

import neupath as npth
from neupath import HIN
from neupath.learn.evaluation import evaluate, split_queries
from neupath.learn.models import neupath as neupath_module
from neupath.learn.models.neupath import Encoder, EncoderLayer
from neupath.learn.reproduce.protocol import load_graph

ROUNDS, QUERIES = 5, 20


def plain_scores(model: npth.NeuPath, query: int) -> Tensor:
    """Score every node for one query by a pass over the whole graph."""
    graph, encoder = model.graph_, model.network_[0]
    assert isinstance(encoder, Encoder)
    count, slots, dim = len(graph.types), encoder.slots, encoder.dim
    targets = torch.from_numpy(np.repeat(np.arange(count), graph.last - graph.first))
    sources, kinds, types = (torch.from_numpy(a) for a in (graph.sources, graph.kinds, graph.types))
    h = torch.zeros(count, slots, dim)
    h[:, 0, 1] = 1
    h[query, 0, 0], h[query, 0, 1] = 1, 0
    filled = torch.zeros(count, slots, dtype=torch.bool)
    filled[:, 0] = True
    for layer in encoder.layers:
        assert isinstance(layer, EncoderLayer)
        projected = torch.zeros_like(h)
        for node_type, matrix in enumerate(layer.project):
            rows = types == node_type
            projected[rows] = h[rows] @ matrix
        message = layer.extract_source(projected)[sources] + layer.extract_target(projected)[targets]
        message = (message + layer.edge[kinds].unsqueeze(1)).masked_fill(~filled[sources].unsqueeze(-1), -torch.inf)
        flat, to = message.reshape(-1, dim), targets.repeat_interleave(slots)
        pooled = []
        for _ in range(slots):
            best = torch.full((count, dim), -torch.inf).scatter_reduce(0, to[:, None].expand_as(flat), flat, "amax")
            pooled.append(best)
            hit = flat == best[to]
            first = torch.full((count, dim), len(flat)).scatter_reduce(
                0, to[:, None].expand_as(flat), torch.where(hit, torch.arange(len(flat))[:, None], len(flat)), "amin"
            )
            flat = flat.masked_fill(torch.arange(len(flat))[:, None] == first[to], -torch.inf)
        q = torch.stack(pooled, dim=1)
        number = torch.zeros(count, dtype=torch.long).index_add(0, targets, filled[sources].sum(1))
        filled = filled | (torch.arange(slots) < number[:, None])
        h = layer.update(torch.cat([h, q.masked_fill(q == -torch.inf, 0.0)], dim=-1)) * filled.unsqueeze(-1)
    scores: Tensor = model.network_[1](h)
    return scores


def compare(hin: HIN, layers: int, paths: int) -> None:
    """Time both passes on the same queries, in turn."""
    model = npth.NeuPath(layers=layers, paths=paths, variant="paper", epochs=1, device="cpu")
    teacher = npth.PathSim("MAM").fit(hin)
    model.fit(hin, teacher=teacher, queries=hin.nodes["movie"].ids[:40].to_pylist())
    queries = np.random.default_rng(0).choice(hin.num_nodes("movie"), QUERIES, replace=False)
    first = model.graph_.numbering.first("movie")
    ours, plain, background = [], [], []
    with torch.no_grad():
        for round_number in range(ROUNDS):
            began = time.perf_counter()
            scores = np.concatenate([model.score_rows(np.array([query])) for query in queries])
            ours.append((time.perf_counter() - began) / QUERIES)
            began = time.perf_counter()
            few = queries[:3] if layers > 2 else queries[:8]
            expected = [plain_scores(model, first + int(query))[first : first + scores.shape[1]] for query in few]
            plain.append((time.perf_counter() - began) / len(few))
            began = time.perf_counter()
            model.bind(hin)
            background.append(time.perf_counter() - began)
            if round_number == 0:
                np.testing.assert_allclose(scores[: len(few)], np.stack(expected), atol=1e-5, rtol=1e-5)
    a, b, c = median(ours), median(plain), median(background)
    print(
        f"L = {layers}, T = {paths}: {1e3 * a:.2f} ms per query over classes, {1e3 * b:.1f} ms over the whole graph, "
        f"{b / a:.0f} times; the background, once per graph, {1e3 * c:.0f} ms"
    )


def inductive(hin: HIN) -> None:
    """Train without a fifth of the movies, test on them in the whole graph."""
    count = hin.num_nodes("movie")
    order = np.random.default_rng(0).permutation(count)
    removed, kept = np.sort(order[: count // 5]), np.sort(order[count // 5 :])
    part = keep_movies(hin, kept)
    whole_teacher, part_teacher = npth.PathSim("MAM").fit(hin), npth.PathSim("MAM").fit(part)
    split = split_queries(part, "movie")
    queries = hin.nodes["movie"].ids.take(np.random.default_rng(1).choice(removed, 400, replace=False)).to_pylist()
    queries_of: Any = {"queries": split.train, "validation": split.validation}
    seen = npth.NeuPath(variant="paper", device="cpu").fit(hin, teacher=whole_teacher, **queries_of)
    unseen = npth.NeuPath(variant="paper", device="cpu").fit(part, teacher=part_teacher, **queries_of)
    for name, model in (("trained on all movies", seen), ("trained without a fifth, then bound", unseen.bind(hin))):
        metrics = evaluate(model, whole_teacher, queries)
        print(
            f"{name}: strict nDCG@20 {metrics.ndcg:.4f}, RMSE all {metrics.rmse_all:.4f} on 400 of the removed movies"
        )


def keep_movies(hin: HIN, kept: np.ndarray) -> HIN:
    """Return the graph with only some movies and their edges."""
    import pyarrow as pa

    nodes = [npth.Nodes(t, n.ids.take(pa.array(kept)) if t == "movie" else n.ids) for t, n in hin.nodes.items()]
    edges = []
    for relation, matrix in hin.matrices.items():
        entries = matrix[kept].tocoo()
        edges.append(npth.Edges(relation, entries.row.astype(np.int64), entries.col.astype(np.int64)))
    return HIN.build(nodes, edges)


def train_time(hin: HIN) -> None:
    """Time training on IMDB MAM with the paper's settings: d = 256, 400 queries, 10 epochs."""
    teacher = npth.PathSim("MAM").fit(hin)
    split = split_queries(hin, "movie")
    began = time.perf_counter()
    model = npth.NeuPath(epochs=10, learning_rate=1e-3, variant="paper").fit(
        hin, teacher=teacher, queries=split.train, validation=split.validation
    )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"training IMDB MAM, 10 epochs on {model.device}: {time.perf_counter() - began:.1f} s, peak {peak:.0f} MiB")


def pooling_time(hin: HIN, path: str, layers: int, paths: int) -> None:
    """Time epochs with the Triton kernel for T-max pooling and with torch alone, in turn; CUDA only."""
    teacher = npth.PathSim(path).fit(hin)
    split = split_queries(hin, teacher.source_type)
    times: dict[bool, list[float]] = {True: [], False: []}
    has_triton = neupath_module._has_triton
    for _ in range(3):
        for with_triton in (True, False):
            neupath_module._has_triton = lambda known=with_triton: known  # type: ignore[assignment]
            settings: Any = {"epochs": 10, "learning_rate": 1e-3, "variant": "paper", "device": "cuda"}
            model = npth.NeuPath(layers=layers, paths=paths, **settings)
            model.fit(hin, teacher=teacher, queries=split.train, validation=split.validation)
            times[with_triton].append(sum(epoch.seconds for epoch in model.log_))
    neupath_module._has_triton = has_triton
    triton, torch_alone = (median(times[kind]) for kind in (True, False))
    print(f"10 epochs of {path} on CUDA: {triton:.1f} s with the Triton kernel, {torch_alone:.1f} s with torch alone")


def cost(data: Path, graph: str, path: str, layers: int) -> None:
    """Compare the improved variant with the published one: CPU seconds of an epoch and of a query, in turn."""
    hin = load_graph(graph, data)
    teacher = npth.PathSim(path).fit(hin)
    split = split_queries(hin, teacher.source_type, (80, 20, 40))
    models, epochs = {}, {}
    for variant in ("paper", "improved"):
        model = npth.NeuPath(layers=layers, paths=3, dim=64, variant=variant, epochs=2, device="cpu")
        began = time.process_time()
        models[variant] = model.fit(hin, teacher=teacher, queries=split.train, validation=split.validation)
        epochs[variant] = (time.process_time() - began) / 2
    rows = hin.nodes[teacher.source_type].find_many(split.test)
    queries: dict[str, list[float]] = {variant: [] for variant in models}
    began = time.process_time()
    models["improved"].score_rows(rows[:1])
    first = time.process_time() - began
    for row in rows[:10]:
        for variant, model in models.items():
            began = time.process_time()
            model.score_rows(np.array([row]))
            queries[variant].append(time.process_time() - began)
    times = {variant: f"{1e3 * min(own):.1f} / {1e3 * median(own):.1f} ms" for variant, own in queries.items()}
    print(
        f"{graph} {path}, L = {layers}, T = 3, d = 64: an epoch of 80 queries {epochs['paper']:.2f} s as published, "
        f"{epochs['improved']:.2f} s improved; a query (least / median of 10) {times['paper']} and "
        f"{times['improved']}; the first one, which counts the walks of all targets, {first:.2f} s",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=os.environ.get("NEUPATH_DATA"))
    parser.add_argument("--cost", action="store_true", help="compare NeuPath's two variants alone")
    arguments = parser.parse_args()
    if arguments.cost:
        for graph, path, layers in (
            ("imdb", "MAM", 2),
            ("kg20c", "APA", 2),
            ("imdb", "MAMAM", 4),
            ("kg20c", "APCPA", 4),
        ):
            cost(Path(arguments.data), graph, path, layers)
        return
    hin = load_graph("imdb", Path(arguments.data))
    train_time(hin)
    if torch.cuda.is_available():
        train_time(hin)  # the first run includes the start of CUDA
        pooling_time(hin, "MAM", 2, 2)
        pooling_time(hin, "MAMAM", 4, 3)
        return
    compare(hin, 2, 2)
    compare(hin, 4, 2)
    inductive(hin)


if __name__ == "__main__":
    main()

"""Compare NeuPath's forward pass over classes with the plain one over all nodes and edges; test it inductively.

    python benchmarks/forward.py --data DATA
    python benchmarks/forward.py --data DATA --cost

On IMDB, with the same weights and the same scores (checked to 1e-5), interleaved in one run, medians of 5, on the CPU.
The plain pass is a full-graph GNN forward for one query: products per node, messages for every edge, T rounds of a
scatter maximum. In the inductive test the model is trained without a fifth of the movies and their edges, and tested on
queries among them in the whole graph. On CUDA only training is timed, with the Triton kernel and without. All this is
of the model as published; `--cost` compares the improved variant with it, in turn, in CPU time of one thread, and the
peak memory of a process for each. On hetionet the labels are random: they do not change what a step costs.
"""

import argparse
import os
import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
from torch import Tensor

import neupath as npth
from neupath import HIN
from neupath.errors import SourceWarning
from neupath.graph.hin import Edges
from neupath.graph.nodes import Nodes
from neupath.learn.evaluation import evaluate, split_queries
from neupath.learn.labels import Pairs, draw_pairs
from neupath.learn.models import neupath as neupath_module
from neupath.learn.models.neupath import EncoderLayer, Variant
from neupath_paper.protocol import load_graph

ROUNDS, QUERIES = 5, 20


def plain_scores(model: npth.NeuPath, query: int) -> Tensor:
    """Score every node for one query by a pass over the whole graph."""
    graph, encoder = model.graph_, model.network_.encoder
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
    scores: Tensor = model.network_.decoder(h)
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

    nodes = [Nodes(t, n.ids.take(pa.array(kept)) if t == "movie" else n.ids) for t, n in hin.nodes.items()]
    edges = []
    for relation, matrix in hin.matrices.items():
        entries = matrix[kept].tocoo()
        edges.append(Edges(relation, entries.row.astype(np.int64), entries.col.astype(np.int64)))
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
    has_triton = vars(neupath_module)["has_triton"]
    for _ in range(3):
        for with_triton in (True, False):
            vars(neupath_module)["has_triton"] = lambda known=with_triton: known
            settings: Any = {"epochs": 10, "learning_rate": 1e-3, "variant": "paper", "device": "cuda"}
            model = npth.NeuPath(layers=layers, paths=paths, **settings)
            model.fit(hin, teacher=teacher, queries=split.train, validation=split.validation)
            times[with_triton].append(sum(epoch.seconds for epoch in model.log_))
    vars(neupath_module)["has_triton"] = has_triton
    triton, torch_alone = (median(times[kind]) for kind in (True, False))
    print(f"10 epochs of {path} on CUDA: {triton:.1f} s with the Triton kernel, {torch_alone:.1f} s with torch alone")


# ---- What the improved variant costs -------------------------------------------------------------
@dataclass(frozen=True)
class Case:
    """A graph, a meta-path or a node type to draw labels for, and L; how many queries are learned from and tested."""

    graph: str
    labels: str
    layers: int
    queries: int = 40
    tested: int = 10
    rounds: int = ROUNDS


CASES = {
    "imdb MAM": Case("imdb", "MAM", 2),
    "kg20c APA": Case("kg20c", "APA", 2),
    "imdb MAMAM": Case("imdb", "MAMAM", 4),
    "kg20c APCPA": Case("kg20c", "APCPA", 4),
    "hetionet": Case("hetionet", "Compound", 4, queries=2, tested=1, rounds=1),
}
VARIANTS: tuple[Variant, ...] = ("paper", "improved")


def prepare(
    case: Case, variant: Variant, data: Path, hin: HIN | None = None
) -> tuple[Any, list[Any], np.ndarray, float]:
    """Return a model, its batches of labels, rows to test, and the CPU seconds that batches took to prepare."""
    warnings.simplefilter("ignore", SourceWarning)
    if hin is None:
        hin = npth.load(data / case.graph) if case.graph == "hetionet" else load_graph(case.graph, data)
    rng = np.random.default_rng(0)
    if case.labels in hin.schema.node_types:  # random labels: what they say does not change the cost
        node_type, count = case.labels, hin.num_nodes(case.labels)
        queries = np.repeat(rng.choice(count, case.queries, replace=False), 10)
        pairs = Pairs(node_type, queries, rng.integers(0, count, len(queries)), rng.random(len(queries)))
    else:
        teacher = npth.PathSim(case.labels).fit(hin)
        node_type = teacher.source_type
        pairs = draw_pairs(teacher, split_queries(hin, node_type, (case.queries, 1, 1)).train)
    model = npth.NeuPath(layers=case.layers, paths=3, dim=64, variant=variant, device="cpu")
    model.node_type_, model.target_type_ = node_type, node_type
    began = time.process_time()
    model._set_network(hin)
    batches = model._batches(pairs)
    return model, batches, rng.choice(hin.num_nodes(node_type), case.tested, replace=False), time.process_time() - began


def step(model: Any, batch: Any) -> None:
    """Compute the loss of a batch and its gradients."""
    model.network_.zero_grad()
    model._loss(batch).backward()


def cost(name: str, data: Path) -> None:
    """Compare the two variants: CPU seconds of a step and of a query in turn, and peak memory."""
    case, models = CASES[name], {}
    hin = None
    for variant in VARIANTS:
        models[variant] = prepare(case, variant, data, hin)
        hin = models[variant][0].hin_
    steps: dict[str, list[float]] = {variant: [] for variant in VARIANTS}
    queries: dict[str, list[float]] = {variant: [] for variant in VARIANTS}
    first = {}
    for variant, (model, _, rows, _) in models.items():
        first[variant] = cpu_seconds(model.score_rows, rows[:1])
    for number in range(case.rounds):
        for variant, (model, batches, _, _) in models.items():
            steps[variant].append(cpu_seconds(step, model, batches[number % len(batches)]))
    for row in models["paper"][2]:
        for variant, (model, *_) in models.items():
            queries[variant].append(cpu_seconds(model.score_rows, np.array([row])))
    print(f"{name}, L = {case.layers}, T = 3, d = 64, CPU time of one thread; published / improved", flush=True)
    size = min(8, case.queries)
    show(f"  prepare batches of {size} queries, each", [m[3] / len(m[1]) for m in models.values()])
    show(f"  a step over {size} queries, least of {case.rounds}", [min(own) for own in steps.values()])
    show("  the first query", list(first.values()))
    show(f"  a query, least of {case.tested}", [min(own) for own in queries.values()])
    show(f"  a query, median of {case.tested}", [median(own) for own in queries.values()])
    command = [sys.executable, __file__, "--data", str(data), "--case", name, "--peak"]
    peaks = [subprocess.check_output([*command, variant], text=True).split() for variant in VARIANTS]
    print(f"  peak memory, graph alone {peaks[0][0]} MiB: {' / '.join(peak[1] for peak in peaks)} MiB", flush=True)


def show(what: str, seconds: list[float]) -> None:
    published, improved = seconds
    print(f"{what}: {1e3 * published:.1f} / {1e3 * improved:.1f} ms, {improved / published:.2f} times", flush=True)


def cpu_seconds(call: Callable[..., object], *arguments: object) -> float:
    """Return the CPU time of a call: a busy machine stretches wall time, and this less."""
    began = time.process_time()
    call(*arguments)
    return time.process_time() - began


def peak(name: str, variant: Variant, data: Path) -> None:
    """Print the memory of this process with the graph alone, and its peak in up to three steps and two queries; MiB."""
    case = CASES[name]
    hin = npth.load(data / case.graph) if case.graph == "hetionet" else load_graph(case.graph, data)
    Path("/proc/self/clear_refs").write_text("5")  # so that the peak counts from here, not from reading the files
    alone = peak_mebibytes()
    model, batches, rows, _ = prepare(case, variant, data, hin)
    for number in range(min(3, case.rounds)):
        step(model, batches[number % len(batches)])
    model.score_rows(rows[:2])
    print(alone, peak_mebibytes())


def peak_mebibytes() -> int:
    """Return the peak memory of this process since it was last reset; on Linux."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) // 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=os.environ.get("NEUPATH_DATA"))
    parser.add_argument("--cost", action="store_true", help="compare NeuPath's two variants alone")
    parser.add_argument("--case", choices=CASES, help="of --cost: one case alone")
    parser.add_argument("--peak", choices=VARIANTS, help="print the peak memory of a case with one variant")
    arguments = parser.parse_args()
    if arguments.cost or arguments.peak:
        torch.set_num_threads(1)
        warnings.simplefilter("ignore", SourceWarning)
    if arguments.peak:
        peak(arguments.case, arguments.peak, Path(arguments.data))
        return
    if arguments.cost:
        for name in [arguments.case] if arguments.case else CASES:
            cost(name, Path(arguments.data))
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

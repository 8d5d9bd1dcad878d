"""Every way to the same answer: joins of measures, indices and engines, and searches, against dense matrices."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from neupath import HIN, join, open_index, prepare
from neupath.cluster import Cluster
from neupath.engine import topk as ranking
from neupath.engine.join import JoinEngine, LocalEngine
from neupath.engine.tasks import Each, in_this_process
from neupath.errors import GraphError
from neupath.graph.hin import Edges
from neupath.graph.metapath import MetaPath, Relation, enumerate_metapaths
from neupath.graph.nodes import Nodes
from neupath.measures import measure_named
from neupath.measures import prepare as preparing

RELATIONS = (
    Relation("a", "r", "b"),
    Relation("a", "s", "b"),
    Relation("c", "t", "b"),
    Relation("a", "cites", "a"),
    Relation("b", "near", "b", directed=False),
)
RankedRows = list[tuple[int, float]]


class InThisProcess(Cluster):
    """An engine whose tasks run in this process."""

    @contextmanager
    def _connected(self) -> Iterator[Each]:
        yield in_this_process


def draw_graph(rng: np.random.Generator) -> HIN:
    """Draw a graph with ties, hubs, rows that are alike, nodes and relations without edges, and weights that add up."""
    sizes = {node_type: int(rng.choice([0, 1, 5, 20, 40])) for node_type in "abc"} | {"b": int(rng.integers(1, 30))}
    edges = []
    for relation in RELATIONS:
        rows, columns = sizes[relation.source], sizes[relation.target]
        count = int(rng.integers(0, 3 * max(rows, columns))) if rows and columns and rng.random() > 0.2 else 0
        sources, targets = rng.integers(0, max(1, rows), count), rng.integers(0, max(1, columns // 3), count)
        sources[: count // 10] = 0
        edges.append(Edges(relation, sources, targets, rng.choice([0.0, 0.25, 0.5, 1.0, 2.0], count)))
    ids = {node_type: pa.array([f"{node_type}{i}" for i in range(n)], pa.string()) for node_type, n in sizes.items()}
    return HIN.build([Nodes(node_type, own) for node_type, own in ids.items()], edges)


def score_densely(hin: HIN, path: MetaPath, measure: str) -> np.ndarray:
    """Return the score of every pair by the formula; all products of these weights are exact."""
    steps = [sum(hin.matrix(link).toarray() for link in step.links) for step in path.steps]
    if measure == "pathcount":
        return np.linalg.multi_dot(steps) if len(steps) > 1 else steps[0]
    half = steps[: len(steps) // 2]
    w = np.linalg.multi_dot(half) if len(half) > 1 else half[0]
    m = w @ w.T
    d = np.diag(m)
    below = d[:, None] + d if measure == "pathsim" else np.sqrt(d[:, None] * d)
    return np.where(m > 0, (2.0 if measure == "pathsim" else 1.0) * m / np.where(below > 0, below, 1), 0.0)


def best(scores: np.ndarray, skipped: int, k: int | None, least: float, among: np.ndarray | None = None) -> RankedRows:
    """Return the related targets of a query, best first, ties in node order."""
    allowed = [y for y in range(len(scores)) if y != skipped and (among is None or y in among)]
    ranked = sorted((-scores[y], y) for y in allowed if scores[y] > 0 and scores[y] >= least)
    return [(y, -score) for score, y in ranked[:k]]


@pytest.mark.parametrize("seed", range(24))
@pytest.mark.parametrize("measure", ["pathsim", "joinsim", "pathcount"])
@pytest.mark.slow
def test_engines_and_search_agree_with_the_formula(
    seed: int, measure: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng([seed, len(measure)])
    hin = draw_graph(rng)
    paths = list(enumerate_metapaths(hin.schema, str(rng.choice(list("abc"))), 4, symmetric=measure != "pathcount"))
    path = paths[rng.integers(len(paths))]
    if rng.random() < 0.5:  # as where queries are heavy and many: by the index
        for module, limits in (
            (ranking, ("_HEAVY", "_BUILD", "HEAVY_ENOUGH_FOR_INDEX")),
            (preparing, ("HEAVY_ENOUGH_FOR_INDEX",)),
        ):
            for limit in limits:
                monkeypatch.setattr(module, limit, 0)
    monkeypatch.setattr(preparing, "_BLOCK_WORK", int(rng.choice([5, 40, 10**6])))
    scorer, scores = measure_named(measure, path).fit(hin), score_densely(hin, path, measure)
    index = open_index(prepare(hin, scorer, tmp_path / "index"))
    k, least = (None, 0.5) if rng.random() < 0.3 else (int(rng.choice([1, 3, 200])), float(rng.choice([0, 0.5, 1])))
    own = range(len(scores)) if path.source == path.target else [-1] * len(scores)
    expected = [best(row, skipped, k, least) for row, skipped in zip(scores, own, strict=True)]

    sources, targets = (hin.nodes[node_type].ids.to_pylist() for node_type in (path.source, path.target))
    block = int(rng.choice([1, 7, 4096]))
    engines: list[JoinEngine] = [LocalEngine(1), LocalEngine(2), InThisProcess()]
    files = [
        join(each.hin_, each, tmp_path / f"{name}{number}.parquet", k, min_score=least, block=block, engine=engine).path
        for number, engine in enumerate(engines)
        for name, each in (("graph", scorer), ("index", index))
    ]
    rows = [
        (sources[x], rank, targets[y], score)
        for x, hits in enumerate(expected)
        for rank, (y, score) in enumerate(hits, 1)
    ]
    assert list(zip(*pq.read_table(files[0]).to_pydict().values(), strict=True)) == rows
    assert len({file.read_bytes() for file in files}) == 1

    among = rng.permutation(len(targets))[: rng.integers(1, len(targets) + 1)] if targets else None
    options = {} if among is None else {"among": [targets[y] for y in among]}
    for each in (scorer, index):
        hit_lists = each.top_k(sources, k or 5, threads=2, **options)
        assert hit_lists == [each.top_k(source, k or 5, threads=1, **options) for source in sources]
        for hits, row, skipped in zip(hit_lists, scores, own, strict=True):
            assert [(targets.index(hit.id), hit.score) for hit in hits] == best(row, skipped, k or 5, 0, among)


@pytest.mark.parametrize("engine", [LocalEngine(1), InThisProcess()])
@pytest.mark.parametrize(("measure", "path"), [("pathsim", "a-p-v-p-a"), ("pathcount", "a-p-v-p-v")])
def test_engines_refuse_weights_whose_product_a_float_cannot_hold(
    tmp_path: Path, engine: JoinEngine, measure: str, path: str
) -> None:
    ends, weights = np.arange(2), np.full(2, 1e-200)
    nodes = [Nodes(node_type, pa.array([f"{node_type}{i}" for i in ends])) for node_type in "apv"]
    relations = Relation("a", "writes", "p"), Relation("p", "at", "v")
    hin = HIN.build(nodes, [Edges(relation, ends, ends, weights) for relation in relations])
    with pytest.raises(GraphError, match="may have the weight 1e-401"):
        join(hin, measure_named(measure, path), tmp_path / "pairs.parquet", engine=engine)

"""Measures over the whole graph against networkx, dense formulas and each other."""

import networkx as nx
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings

import neupath as npth
from neupath import HIN, Edges, Nodes, Relation
from neupath._runtime.progress import Cancellation, WorkCancelled, cancelled_by
from neupath.errors import QueryError
from neupath.measures import (
    GRAPH_MEASURES,
    PPR,
    RWR,
    SCAN,
    CommuteTime,
    SimRank,
    commutetime,
    graph_measure,
    graph_measure_named,
    measure_named,
    restart_walk,
)
from neupath.measures import simrank as simrank_module
from neupath.measures.graph_measure import whole_adjacency
from tests.graphs import hins


def every_score(measure, hin: HIN) -> np.ndarray:
    fitted = measure.fit(hin)
    return fitted.score_rows(np.arange(hin.num_nodes(fitted.source_type)))


def nodes_of(hin: HIN, node_type: str) -> list[int]:
    before = 0
    for name in hin.schema.node_types:
        if name == node_type:
            return list(range(before, before + hin.num_nodes(name)))
        before += hin.num_nodes(name)
    raise KeyError(node_type)


def two_parts() -> HIN:
    """Two components and an isolated node, with weights."""
    return HIN.build(
        [Nodes("a", pa.array(["x", "y", "z", "u", "alone"])), Nodes("b", pa.array(["p", "q", "r"]))],
        [
            Edges(
                Relation("a", "r", "b"),
                np.array([0, 0, 1, 2, 3, 3]),
                np.array([0, 1, 1, 1, 2, 2]),
                np.array([2.0, 1.0, 0.5, 3.0, 1.0, 4.0]),
            ),
            Edges(Relation("a", "cites", "a"), np.array([0]), np.array([1])),
        ],
    )


def random_graph(size: int, edges: int, *, weighted: bool = False) -> HIN:
    """A graph with a few hubs, loops, small components and isolated nodes."""
    rng = np.random.default_rng(size)
    ends = (size * rng.random((2, edges)) ** 2).astype(np.int64)
    weights = rng.integers(1, 5, edges).astype(np.float64) if weighted else np.ones(edges)
    return HIN.build(
        [Nodes("a", pa.array([f"a{i}" for i in range(size)])), Nodes("b", pa.array([f"b{i}" for i in range(size)]))],
        [
            Edges(Relation("a", "r", "b"), ends[0], ends[1], weights),
            Edges(Relation("a", "cites", "a"), ends[1, : edges // 4], ends[0, : edges // 4]),
        ],
    )


def test_the_whole_graph_has_every_edge_both_ways() -> None:
    hin = two_parts()
    dense = whole_adjacency(hin).toarray()
    assert np.array_equal(dense, dense.T)
    assert dense[0, 1] == 1.0
    assert dense[3, 7] == 5.0
    assert dense.sum() == 2 * (11.5 + 1)


def test_an_undirected_relation_counts_once() -> None:
    near = Edges(Relation("a", "near", "a", directed=False), np.array([0]), np.array([1]))
    hin = HIN.build([Nodes("a", pa.array(["x", "y"]))], [near])
    assert whole_adjacency(hin).toarray().tolist() == [[0, 1], [1, 0]]


@pytest.mark.parametrize("make", [two_parts, lambda: npth.load("toy")])
def test_ppr_is_that_of_networkx(make) -> None:
    hin = make()
    graph = nx.from_scipy_sparse_array(whole_adjacency(hin))
    for node_type in hin.schema.node_types:
        own = nodes_of(hin, node_type)
        for query, row in zip(own, every_score(PPR(node_type, damping=0.7), hin), strict=True):
            if graph.degree(query):
                visits = nx.pagerank(graph, alpha=0.7, personalization={query: 1}, tol=1e-13, max_iter=1000)
                np.testing.assert_allclose(row, [visits[node] for node in own], atol=1e-8)


@settings(max_examples=40)
@given(hin=hins())
def test_ppr_and_rwr_solve_their_equations(hin: HIN) -> None:
    a = whole_adjacency(hin).toarray()
    degrees = np.where(a.sum(axis=0) > 0, a.sum(axis=0), 1.0)
    for measure, steps in ((PPR("a"), a / degrees), (RWR("a"), a / np.sqrt(np.outer(degrees, degrees)))):
        every = every_score(measure, hin)
        whole = (1 - measure.damping) * np.linalg.inv(np.eye(len(a)) - measure.damping * steps)
        own = nodes_of(hin, "a")
        np.testing.assert_allclose(every, whole.T[np.ix_(own, own)], atol=1e-8)


def test_simrank_is_that_of_networkx(toy: HIN) -> None:
    graph = nx.from_scipy_sparse_array(whole_adjacency(toy))
    limit = nx.simrank_similarity(graph, importance_factor=0.6, max_iterations=1000, tolerance=1e-12)
    own = nodes_of(toy, "author")
    expected = np.array([[limit[x][y] for y in own] for x in own])
    measure = SimRank("author")
    np.testing.assert_allclose(every_score(measure, toy), expected, atol=2e-6)
    assert (measure.exact, measure.error_) == (True, 0.0)


def simrank(a: np.ndarray, decay: float) -> np.ndarray:
    """SimRank as its authors define it, over all pairs."""
    u = np.divide(a, a.sum(axis=1, keepdims=True), out=np.zeros_like(a), where=a.sum(axis=1, keepdims=True) > 0)
    s = np.eye(len(a))
    for _ in range(170):  # 0.8^170 is less than a float holds beside 1
        s = decay * u @ s @ u.T
        np.fill_diagonal(s, 1)
    return s


@settings(max_examples=40)
@given(hin=hins())
def test_simrank_equals_all_pairs(hin: HIN) -> None:
    own = nodes_of(hin, "b")
    expected = simrank(whole_adjacency(hin).toarray(), 0.8)[np.ix_(own, own)]
    np.testing.assert_allclose(every_score(SimRank("b", decay=0.8), hin), expected, atol=1e-12)


@settings(max_examples=40)
@given(hin=hins())
def test_scan_counts_shared_neighbours(hin: HIN) -> None:
    a = whole_adjacency(hin).toarray() > 0
    around = [set(np.flatnonzero(row)) | {node} for node, row in enumerate(a)]
    own = nodes_of(hin, "b")
    expected = [[len(around[x] & around[y]) / np.sqrt(len(around[x]) * len(around[y])) for y in own] for x in own]
    np.testing.assert_allclose(every_score(SCAN("b"), hin), np.array(expected).reshape(len(own), len(own)), atol=1e-12)


@pytest.mark.parametrize("make", [two_parts, lambda: npth.load("toy")])
def test_commute_time_is_the_resistance_of_networkx(make) -> None:
    hin = make()
    graph = nx.from_scipy_sparse_array(whole_adjacency(hin))
    parts = [graph.subgraph(nodes) for nodes in nx.connected_components(graph)]
    near = {}
    for part in parts:
        near |= nx.resistance_distance(part, weight="weight", invert_weight=False)
    for node_type in hin.schema.node_types:
        own = nodes_of(hin, node_type)
        scores = every_score(CommuteTime(node_type), hin)
        for i, x in enumerate(own):
            expected = [1 / (1 + near[x][y]) if y in near[x] else 0.0 for y in own]
            assert scores[i].tolist() == pytest.approx(expected, abs=1e-9)


@settings(max_examples=60)
@given(hin=hins())
def test_commute_time_equals_the_pseudo_inverse(hin: HIN) -> None:
    a = whole_adjacency(hin).toarray()
    inverse = np.linalg.pinv(np.diag(a.sum(axis=1)) - a, hermitian=True)
    diagonal = np.diag(inverse)
    resistance = diagonal[:, None] + diagonal - 2 * inverse
    joined = np.linalg.matrix_power(np.eye(len(a)) + (a > 0), max(1, len(a))) > 0
    own = nodes_of(hin, "a")
    expected = np.where(joined, 1 / (1 + resistance), 0.0)[np.ix_(own, own)]
    np.testing.assert_allclose(every_score(CommuteTime("a"), hin), expected, atol=1e-9)


# ---- Estimates -----------------------------------------------------------------------------------
def estimating(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the measures estimate on small graphs, too, where they are exact otherwise."""
    monkeypatch.setattr(restart_walk, "_LIGHT", 0.0)
    monkeypatch.setattr(restart_walk, "_LOCAL", 0)
    monkeypatch.setattr(simrank_module, "_LIGHT", 0.0)
    monkeypatch.setattr(simrank_module, "_ALL_KEPT", 0)
    monkeypatch.setattr(simrank_module, "_SKETCHES", (128, 128))
    monkeypatch.setattr(commutetime, "_MOST_CORE", -1)


ESTIMATES = [(PPR, 1e-3), (PPR, 1e-7), (RWR, 0.02), (RWR, 1e-7), (SimRank, 0.03), (SimRank, 1e-3), (CommuteTime, 0.02)]


@pytest.mark.parametrize(("measure", "tolerance"), ESTIMATES)
@pytest.mark.slow
def test_estimates_are_within_their_error(measure, tolerance: float, monkeypatch: pytest.MonkeyPatch) -> None:
    hin = random_graph(300, 900)
    expected = every_score(measure("a", tolerance=0), hin)
    estimating(monkeypatch)
    estimate = measure("a", tolerance=tolerance)
    scores = every_score(estimate, hin)
    assert not estimate.exact
    assert 0 < estimate.error_ <= tolerance
    assert 0 < np.abs(scores - expected).max() <= estimate.error_
    assert not estimate.top_k("a0").exact


@pytest.mark.slow
def test_two_dense_parts_that_one_edge_joins_are_far_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    rng, size = np.random.default_rng(1), 300
    sources = np.concatenate([np.tile(np.arange(size) + at, 10) for at in (0, size)] + [[0]])
    targets = np.concatenate([rng.permutation(size) + at for at in (0, size) for _ in range(10)] + [[size]])
    hin = HIN.build([Nodes("a", pa.array(np.arange(2 * size)))], [Edges(Relation("a", "r", "a"), sources, targets)])
    expected = every_score(CommuteTime("a", tolerance=0), hin)
    estimating(monkeypatch)
    estimate = CommuteTime("a", tolerance=0.01)
    assert np.abs(every_score(estimate, hin) - expected).max() <= estimate.error_ <= 0.01


@pytest.mark.parametrize("tolerance", [0.0, 0.01])
@pytest.mark.slow
def test_similarity_that_fades_slowly_is_walked_to_its_end(tolerance: float) -> None:
    path = HIN.build(
        [Nodes("a", pa.array(["x", "y", "z"]))],
        [Edges(Relation("a", "r", "a"), np.array([0, 1]), np.array([1, 2]), np.array([1.0, 1e9]))],
    )
    measure = SimRank("a", decay=0.99, tolerance=tolerance).fit(path)
    assert measure.score("x", "z") == pytest.approx(0.99, abs=measure.error_ + 1e-12)


@settings(max_examples=40)
@given(hin=hins())
@pytest.mark.slow
def test_estimates_are_within_their_error_on_any_graph(hin: HIN) -> None:
    exact = [every_score(measure("a", tolerance=0), hin) for measure, _ in ESTIMATES]
    with pytest.MonkeyPatch.context() as monkeypatch:
        estimating(monkeypatch)
        for (measure, tolerance), expected in zip(ESTIMATES, exact, strict=True):
            estimate = measure("a", tolerance=tolerance)
            scores = every_score(estimate, hin)
            assert np.abs(scores - expected).max(initial=0.0) <= estimate.error_ + 1e-12
            assert estimate.error_ <= tolerance


@pytest.mark.parametrize(("measure", "tolerance"), ESTIMATES)
@pytest.mark.slow
def test_estimates_depend_neither_on_the_batch_nor_on_the_run(
    measure, tolerance: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    estimating(monkeypatch)
    estimate = measure("a", tolerance=tolerance).fit(random_graph(200, 500))
    rows = np.arange(200)
    scores = estimate.score_rows(rows)
    assert np.array_equal(scores, np.concatenate([estimate.score_rows(rows[at : at + 1]) for at in rows]))
    for cores in (1, 3):
        monkeypatch.setattr(simrank_module, "count_cores", lambda cores=cores: cores)
        monkeypatch.setattr(commutetime, "count_cores", lambda cores=cores: cores)
        again = measure("a", tolerance=tolerance).fit(random_graph(200, 500))
        assert np.array_equal(scores, again.score_rows(rows))
        assert again.error_ == estimate.error_


@pytest.mark.parametrize("measure", [PPR, RWR])
def test_walks_need_no_push(measure, monkeypatch: pytest.MonkeyPatch) -> None:
    hin = random_graph(300, 900)
    expected = every_score(measure("a", tolerance=0), hin)
    monkeypatch.setattr(restart_walk, "_LIGHT", 0.0)
    assert 0 < np.abs(every_score(measure("a", tolerance=1e-5), hin) - expected).max() <= 1e-5


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.slow
def test_a_factored_graph_has_the_same_commute_times_as_one_that_is_solved(
    weighted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    hin = random_graph(200, 500, weighted=weighted)
    factored = every_score(CommuteTime("a"), hin)
    monkeypatch.setattr(commutetime, "_MOST_EXACT_CORE", -1)
    solved = CommuteTime("a", tolerance=0)
    np.testing.assert_allclose(every_score(solved, hin), factored, atol=1e-9)
    assert solved.exact


def test_a_graph_that_would_fill_up_is_not_factored() -> None:
    adjacency = commutetime._without_loops(whole_adjacency(random_graph(400, 6000)))
    factors = commutetime._factor(adjacency, 800)
    assert factors is not None
    assert 100 < len(factors.core_nodes) < 600
    assert commutetime._factor(adjacency, 50) is None


def test_the_preparation_is_cached_and_reports_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    estimating(monkeypatch)
    monkeypatch.setattr(graph_measure, "_LONG", 0.0)
    hin = random_graph(200, 500)
    for measure, stage in ((SimRank, "sketching walks"), (CommuteTime, "sketching resistances")):
        stages: list[str] = []
        measure("a").fit(hin, lambda name, *_: stages.append(name))  # noqa: B023
        assert stages[0] == f"preparing {measure.name}, about 0 s"
        assert stage in stages
        stages.clear()
        measure("b").fit(hin, lambda name, *_: stages.append(name))  # noqa: B023
        assert stages == []


@pytest.mark.parametrize("measure", [SimRank, CommuteTime])
def test_the_preparation_ends_when_it_is_cancelled(measure, monkeypatch: pytest.MonkeyPatch) -> None:
    estimating(monkeypatch)
    cancellation = Cancellation()
    hin = random_graph(200, 500)
    with cancelled_by(cancellation), pytest.raises(WorkCancelled):
        measure("a").fit(hin, lambda *_: cancellation.cancel())
    assert measure("a").fit(hin).error_ > 0


def test_large_graphs_are_expected_to_take_longer() -> None:
    small, large = random_graph(200, 500), random_graph(2000, 20_000)
    for measure in (SimRank("a"), CommuteTime("a")):
        assert 0 <= measure.expected_seconds(small) < measure.expected_seconds(large)
    assert PPR("a").expected_seconds(large) == 0


def test_by_name() -> None:
    assert isinstance(graph_measure_named("PPR", "author"), PPR)
    with pytest.raises(QueryError, match="pathsim needs a meta-path; give one, or use a measure of the whole graph"):
        graph_measure_named("pathsim", "author")
    with pytest.raises(QueryError, match="simrank looks at the whole graph and takes no meta-path; leave it out"):
        measure_named("simrank", "APA")
    with pytest.raises(QueryError, match="no measure 'simrnk' .*did you mean 'simrank'?"):
        graph_measure_named("simrnk", "author")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: PPR("author", damping=1.0), "damping is 1.0; it must lie between 0 and 1"),
        (lambda: RWR("author", tolerance=-1e-6), "tolerance is -1e-06; it must be 0, for exact scores, or lie between"),
        (lambda: SimRank("author", decay=2.0), "decay is 2.0; it must lie between 0 and 1"),
        (lambda: CommuteTime("author", tolerance=1.0), "tolerance is 1.0; it must be 0, for exact scores, or lie"),
    ],
)
def test_bad_settings(make, message: str) -> None:
    with pytest.raises(QueryError, match=message):
        make()


@pytest.mark.parametrize("name", list(GRAPH_MEASURES))
def test_an_unknown_node_type(name: str, toy: HIN) -> None:
    with pytest.raises(npth.NeuPathError, match="no node type 'venu' in this graph .*did you mean 'venue'"):
        graph_measure_named(name, "venu").fit(toy)

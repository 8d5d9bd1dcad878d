"""Measures over the whole graph against networkx, dense formulas and each other."""

from fractions import Fraction

import networkx as nx
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import neupath as npth
from neupath import HIN
from neupath._runtime.progress import Cancellation, WorkCancelled, cancelled_by
from neupath.errors import GraphError, QueryError
from neupath.measures import (
    GRAPH_MEASURES,
    MEASURES,
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
from tests.graphs import graph_of, hins


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
    weighted = [(0, 0, 2.0), (0, 1, 1.0), (1, 1, 0.5), (2, 1, 3.0), (3, 2, 1.0), (3, 2, 4.0)]
    nodes = {"a": ["x", "y", "z", "u", "alone"], "b": ["p", "q", "r"]}
    return graph_of(nodes, {"a -r-> b": weighted, "a -cites-> a": [(0, 1)]})


def random_graph(size: int, edges: int, *, weighted: bool = False) -> HIN:
    """A graph with a few hubs, loops, small components and isolated nodes."""
    rng = np.random.default_rng(size)
    ends = (size * rng.random((2, edges)) ** 2).astype(np.int64).T
    weights = rng.integers(1, 5, edges).astype(np.float64) if weighted else np.ones(edges)
    nodes = {node_type: [f"{node_type}{i}" for i in range(size)] for node_type in "ab"}
    return graph_of(nodes, {"a -r-> b": np.c_[ends, weights], "a -cites-> a": ends[: edges // 4, ::-1]})


def test_the_whole_graph_has_every_edge_both_ways_and_undirected_ones_once() -> None:
    dense = whole_adjacency(two_parts()).toarray()
    assert np.array_equal(dense, dense.T)
    assert dense[0, 1] == 1.0
    assert dense[3, 7] == 5.0
    assert dense.sum() == 2 * (11.5 + 1)
    near = graph_of({"a": ["x", "y"]}, {"a -near- a": [(0, 1)]})
    assert whole_adjacency(near).toarray().tolist() == [[0, 1], [1, 0]]


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
@pytest.mark.slow
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
@pytest.mark.slow
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
@pytest.mark.slow
def test_commute_time_equals_the_pseudo_inverse(hin: HIN) -> None:
    a = whole_adjacency(hin).toarray()
    inverse = np.linalg.pinv(np.diag(a.sum(axis=1)) - a, hermitian=True)
    diagonal = np.diag(inverse)
    resistance = diagonal[:, None] + diagonal - 2 * inverse
    joined = np.linalg.matrix_power(np.eye(len(a)) + (a > 0), max(1, len(a))) > 0
    own = nodes_of(hin, "a")
    expected = np.where(joined, 1 / (1 + resistance), 0.0)[np.ix_(own, own)]
    np.testing.assert_allclose(every_score(CommuteTime("a"), hin), expected, atol=1e-9)


def fractions_of(edges: list[tuple[int, int, float]], count: int) -> list[list[Fraction]]:
    """Return all resistances of a connected graph in rational numbers, by the inverse of L without its last node."""
    size = count - 1
    rows = [[Fraction(0)] * count + [Fraction(int(i == j)) for j in range(size)] for i in range(size)]
    for u, v, weight in edges:
        for x, y in ((u, v), (v, u)):
            if x < size:
                rows[x][x] += Fraction(weight)
                if y < size:
                    rows[x][y] -= Fraction(weight)
    for i in range(size):
        pivot = next(j for j in range(i, size) if rows[j][i])
        rows[i], rows[pivot] = rows[pivot], rows[i]
        rows[i] = [value / rows[i][i] for value in rows[i]]
        for j in range(size):
            if j != i and rows[j][i]:
                rows[j] = [a - rows[j][i] * b for a, b in zip(rows[j], rows[i], strict=True)]
    inverse = [[*row[count:], Fraction(0)] for row in rows] + [[Fraction(0)] * count]
    return [[inverse[x][x] + inverse[y][y] - 2 * inverse[x][y] for y in range(count)] for x in range(count)]


@settings(max_examples=30)
@given(
    exponents=st.lists(st.integers(-14, 14), min_size=8, max_size=8),
    chords=st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7), st.integers(-14, 14)), max_size=14),
)
@example(exponents=[0, 0, 0, 0, -10, -1, 0, 0], chords=[])
@example(exponents=[0, 13, 0, 13, 0, 13, 0, 0], chords=[(0, 7, 13), (2, 5, 0)])
@example(exponents=[-13, 0, 0, -13, 0, 0, -13, 0], chords=[(0, 2, 0), (3, 6, 0)])
@example(exponents=[0, 3, 2, 11, 0, 2, -1, 4], chords=[(0, 5, 3), (2, 5, 3), (3, 4, -4), (3, 7, 12)])
def test_commute_time_says_where_rounding_shows(exponents: list[int], chords: list[tuple[int, int, int]]) -> None:
    edges = [(at, at + 1, 10.0**e) for at, e in enumerate(exponents)]
    edges += [(u, v, 10.0**e) for u, v, e in chords if u != v]
    hin = graph_of({"a": 9}, {"a -r-> a": edges})
    measure = CommuteTime("a")
    try:
        scores = every_score(measure, hin)
    except GraphError as error:
        assert "scale them closer together" in str(error)
        return
    expected = [[float(1 / (1 + r)) for r in row] for row in fractions_of(edges, 9)]
    assert measure.exact == (measure.error_ == 0)
    assert np.abs(scores - expected).max() <= max(measure.error_, 1e-9)


@pytest.mark.parametrize("far", [1.0, 1e-3, 1e-5, 1e-8, 1e-10, 1e-12, 1e5, 1e12])
def test_weights_of_one_component_leave_the_scores_of_another(far: float) -> None:
    edges = [(0, 1, 1), (1, 2, 1), (0, 2, 1), (3, 4, far), (4, 5, far)]
    measure = CommuteTime("a").fit(graph_of({"a": 6}, {"a -r- a": edges}))
    assert measure.score(0, 1) == pytest.approx(0.6, abs=1e-9)
    assert measure.exact


def random_part(rng: np.random.Generator) -> tuple[list[tuple[int, int, float]], int]:
    """Return the edges of a connected graph, whose weights are up to 24 powers of ten apart, and its size."""
    size, most = int(rng.integers(3, 9)), float(rng.choice([1, 6, 12]))
    pairs = [(node, int(rng.integers(0, node))) for node in range(1, size)]
    pairs += [(u, v) for u, v in rng.integers(0, size, (int(rng.integers(0, 12)), 2)).tolist() if u != v]
    weights = 10.0 ** rng.uniform(-most, most, len(pairs))
    return [(u, v, float(weight)) for (u, v), weight in zip(pairs, weights, strict=True)], size


def check_commute_time(rng: np.random.Generator) -> CommuteTime | None:
    """Compare every score on a graph of two parts with exact fractions; return None if it is refused."""
    edges, size = [], 0
    expected = np.zeros((16, 16))
    for _ in range(2):
        own, count = random_part(rng)
        edges += [(size + u, size + v, weight) for u, v, weight in own]
        scores = [[float(1 / (1 + r)) for r in row] for row in fractions_of(own, count)]
        expected[size : size + count, size : size + count] = scores
        size += count
    measure = CommuteTime("a")
    try:
        scores = every_score(measure, graph_of({"a": size}, {"a -r- a": edges}))
    except GraphError as error:
        assert "scale them closer together" in str(error)
        return None
    assert np.abs(scores - expected[:size, :size]).max() <= max(measure.error_, 1e-9)
    assert measure.exact or np.ptp(np.log10([weight for *_, weight in edges])) > 3
    return measure


@pytest.mark.slow
def test_the_error_of_a_commute_time_holds_on_graphs_of_any_weights() -> None:
    rng = np.random.default_rng(0)
    measures = [check_commute_time(rng) for _ in range(120)]
    assert sum(measure is not None for measure in measures) > 100
    assert 0 < sum(measure is not None and measure.exact for measure in measures) < 120


def test_commute_times_do_not_depend_on_the_unit_of_weights() -> None:
    ends = np.array([(0, 1), (1, 2), (2, 3), (3, 4), (0, 5), (1, 3), (5, 4)])
    weights = np.array([1.0, 2.0, 1.7, 1.3, 3.0, 0.6, 1.1])
    orders = []
    for scale in (1.0, 1e10, 1e-10):
        hits = CommuteTime("a").fit(graph_of({"a": 6}, {"a -r-> a": np.c_[ends, scale * weights]})).top_k(0)
        assert hits.exact
        assert len(set(hits.scores)) == 5
        orders.append(hits.ids)
    assert orders[0] == orders[1] == orders[2]


@settings(max_examples=40)
@given(hin=hins(), least=st.integers(1, 4))
def test_the_core_is_that_of_networkx(hin: HIN, least: int) -> None:
    from neupath.measures import graph_kernels

    adjacency = commutetime._without_loops(whole_adjacency(hin))
    expected = len(nx.k_core(nx.from_scipy_sparse_array(adjacency), least))
    assert graph_kernels.count_core(adjacency.indptr, adjacency.indices, least) == expected


def test_far_nodes_have_a_score_that_rounding_hides() -> None:
    path = graph_of({"a": 122}, {"a -r-> a": [(step, step + 1) for step in range(120)]})
    for measure in (PPR("a"), RWR("a")):
        hits = measure.fit(path).top_k(0, k=121)
        assert min(hits.scores) > 1e-18
        assert list(hits.ids) == list(range(1, len(hits) + 1))
        assert hits.shortfall is not None
        assert hits.shortfall.endswith("are related; the others have score 0, or one that rounding hides")
        assert 121 not in hits.ids


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
    hin = graph_of({"a": 2 * size}, {"a -r-> a": np.c_[sources, targets]})
    expected = every_score(CommuteTime("a", tolerance=0), hin)
    estimating(monkeypatch)
    estimate = CommuteTime("a", tolerance=0.01)
    assert np.abs(every_score(estimate, hin) - expected).max() <= estimate.error_ <= 0.01


@pytest.mark.parametrize(("bridge", "most_stated"), [(1.0, 0.0), (1e-3, 1e-4), (1e-6, 1.0)])
def test_commute_times_of_a_graph_that_does_not_fit_state_what_the_solver_leaves(
    bridge: float, most_stated: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = 60
    own = np.argwhere(np.triu(np.random.default_rng(0).random((size, size)) < 0.2, 1))
    ends = np.concatenate([own, own + size, [(0, size)]])
    hin = graph_of({"a": 2 * size}, {"a -r- a": np.c_[ends, [*np.ones(2 * len(own)), bridge]]})
    (matrix,) = hin.matrices.values()
    weights = matrix.toarray()
    mean = np.full(weights.shape, 1 / len(weights))
    inverse = np.linalg.inv(np.diag(weights.sum(axis=1)) - weights + mean) - mean
    resistances = np.diag(inverse)[:, None] + np.diag(inverse) - 2 * inverse
    estimating(monkeypatch)
    monkeypatch.setattr(commutetime, "_MOST_EXACT_CORE", -1)
    estimate, measure = CommuteTime("a").fit(hin), CommuteTime("a", tolerance=0).fit(hin)
    for each in (estimate, measure):
        wrong = np.abs(each.score_rows(np.arange(2 * size)) - 1 / (1 + resistances)).max()
        assert wrong <= each.error_ + 1e-9
    assert measure.error_ <= most_stated
    assert estimate.error_ <= 0.01 or bridge < 1e-3
    assert measure.exact == (bridge == 1.0)
    assert wrong <= 1e-8 or bridge < 1e-3


@pytest.mark.parametrize("tolerance", [0.0, 0.01])
@pytest.mark.slow
def test_similarity_that_fades_slowly_is_walked_to_its_end(tolerance: float) -> None:
    path = graph_of({"a": ["x", "y", "z"]}, {"a -r-> a": [(0, 1, 1.0), (1, 2, 1e9)]})
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


def simrank_by_equations(adjacency: np.ndarray, decay: float) -> np.ndarray:
    """Return the fixed point of SimRank as the solution of its linear equations, one for each pair of nodes."""
    count, degrees = len(adjacency), adjacency.sum(axis=1, keepdims=True)
    steps = np.divide(adjacency, degrees, out=np.zeros_like(adjacency), where=degrees > 0)
    is_same = np.eye(count, dtype=bool).ravel()
    equations = np.eye(count**2) - np.where(is_same[:, None], 0.0, decay * np.kron(steps, steps))
    return np.linalg.solve(equations, is_same.astype(float)).reshape(count, count)


@st.composite
def extreme_graphs(draw: st.DrawFn) -> HIN:
    """Stars, long paths, cliques on stalks, with weights far apart."""
    size = draw(st.integers(3, 18))
    nodes = np.arange(size)
    star, path = (np.zeros(size - 1, int), nodes[1:]), (nodes[:-1], nodes[1:])
    clique = tuple(np.triu_indices(size // 2, 1))
    shapes = st.sampled_from([[star], [path], [path, clique], [star, path], [clique]])
    ends = np.concatenate([np.stack(each, axis=1) for each in draw(shapes)])
    exponents = draw(st.lists(st.integers(-6, 6), min_size=len(ends), max_size=len(ends)))
    weights = 10.0 ** np.array(exponents) if draw(st.booleans()) else np.ones(len(ends))
    return graph_of({"a": size}, {"a -r-> a": np.c_[ends, weights]})


@pytest.mark.slow
@settings(max_examples=25)
@given(
    hin=extreme_graphs(),
    decay=st.sampled_from([0.3, 0.6, 0.9, 0.99]),
    tolerance=st.sampled_from([0.0, 0.05, 0.01, 1e-3]),
)
def test_simrank_is_within_its_error_of_the_fixed_point(hin: HIN, decay: float, tolerance: float) -> None:
    expected = simrank_by_equations(whole_adjacency(hin).toarray(), decay)
    with pytest.MonkeyPatch.context() as monkeypatch:
        estimating(monkeypatch)
        measure = SimRank("a", decay=decay, tolerance=tolerance)
        scores = every_score(measure, hin)
    assert measure.error_ <= tolerance
    assert np.abs(scores - expected).max() <= measure.error_ + 1e-11


@pytest.mark.slow
@settings(max_examples=40)
@given(
    hin=extreme_graphs(), decay=st.sampled_from([0.3, 0.6, 0.9]), noise=st.floats(1e-6, 0.5), seed=st.integers(0, 99)
)
def test_a_wrong_diagonal_makes_scores_wrong_by_that_share(hin: HIN, decay: float, noise: float, seed: int) -> None:
    """The inequality that the bound of SimRank rests on: |Ŝ - S| ≤ max |diagonal of Ŝ - 1| · S."""
    fitted = SimRank("a", decay=decay, tolerance=0).fit(hin)
    wrong = fitted.correction_ * (1 + noise * np.random.default_rng(seed).uniform(-1, 1, len(fitted.correction_)))
    out, term = fitted.out_.toarray(), np.diag(wrong)
    total = np.zeros_like(term)
    for _ in range(fitted.steps_):
        total += term
        term = decay * out @ term @ out.T
    exact = simrank_by_equations(whole_adjacency(hin).toarray(), decay)
    share = np.abs(np.diag(total) - 1).max()
    assert (np.abs(total - exact) <= share * exact + 1e-11).all()


@pytest.mark.parametrize(("measure", "tolerance"), ESTIMATES)
@pytest.mark.slow
def test_estimates_depend_neither_on_the_batch_nor_on_the_run(
    measure, tolerance: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    estimating(monkeypatch)
    estimate = measure("a", tolerance=tolerance).fit(random_graph(100, 250))
    rows = np.arange(100)
    scores = estimate.score_rows(rows)
    assert np.array_equal(scores, np.concatenate([estimate.score_rows(rows[at : at + 1]) for at in rows]))
    for cores in (1, 3):
        monkeypatch.setattr(simrank_module, "count_cores", lambda cores=cores: cores)
        monkeypatch.setattr(commutetime, "count_cores", lambda cores=cores: cores)
        again = measure("a", tolerance=tolerance).fit(random_graph(100, 250))
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


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: graph_measure_named("pathsim", "author"), "pathsim needs a meta-path; give one, or use a measure of"),
        (lambda: measure_named("simrank", "APA"), "simrank looks at the whole graph and takes no meta-path; leave it"),
        (lambda: graph_measure_named("simrnk", "author"), "no measure 'simrnk' .*did you mean 'simrank'?"),
        (lambda: PPR("author", damping=1.0), "damping is 1.0; it must lie between 0 and 1"),
        (lambda: RWR("author", tolerance=-1e-6), "tolerance is -1e-06; it must be 0, for exact scores, or lie between"),
        (lambda: SimRank("author", decay=2.0), "decay is 2.0; it must lie between 0 and 1"),
        (lambda: CommuteTime("author", tolerance=1.0), "tolerance is 1.0; it must be 0, for exact scores, or lie"),
    ],
)
def test_bad_settings(make, message: str) -> None:
    with pytest.raises(QueryError, match=message):
        make()


SETTINGS = [
    (name, setting) for name, measure in [*MEASURES.items(), *GRAPH_MEASURES.items()] for setting in measure.settings
]
EXTREMES = (
    "nan", "inf", "-inf", "-1", "-0.0", "0", "1", "2", "7", "0.5", "1e308", "5e-324", "1e-300", "1e-13", "1e-9", "1e5",
    "0.9999999999999999", "true", "false", "abc", "", "0x10", str(2**63), "9" * 400, "9" * 5000, "-" + "9" * 400,
)  # fmt: skip


@pytest.mark.parametrize(("name", "setting"), SETTINGS)
@pytest.mark.parametrize("is_small", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_every_setting_is_taken_or_refused_in_a_sentence(
    name: str, setting: str, is_small: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    hin = random_graph(20, 40)
    if not is_small:
        estimating(monkeypatch)
    for value in EXTREMES:
        text = f"{name}:{setting}={value}"
        try:
            measure = graph_measure_named(text, "a") if name in GRAPH_MEASURES else measure_named(text, "a-b-a")
            scores = measure.fit(hin).score_rows(np.arange(20))
        except QueryError as error:
            assert setting in str(error), text
            assert "\n" not in str(error), text
            assert len(str(error)) < 700, text
        else:
            assert np.isfinite(scores).all(), text
            assert measure.params()[setting] == float(value), text


def test_settings_in_a_text_mean_what_they_mean_in_python(monkeypatch: pytest.MonkeyPatch) -> None:
    hin = random_graph(60, 120)
    estimating(monkeypatch)
    for measure in (SimRank, CommuteTime):
        by_text = graph_measure_named(f"{measure.name}:seed=3,tolerance=0.02", "a")
        scores = every_score(by_text, hin)  # first: the other would put what it estimates into the cache
        np.testing.assert_array_equal(every_score(measure("a", seed=3, tolerance=0.02), hin), scores)
        assert by_text.params() == measure("a", seed=3, tolerance=0.02).params()


@pytest.mark.parametrize(("name", "setting"), SETTINGS)
def test_values_that_are_no_numbers_are_refused(name: str, setting: str) -> None:
    kind, over = (GRAPH_MEASURES[name], "a") if name in GRAPH_MEASURES else (MEASURES[name], "a-b-a")
    for value in ("0.5", None, True, 10**400, 1 + 2j, [1]):
        with pytest.raises(QueryError, match=setting):
            kind(over, **{setting: value})


@pytest.mark.parametrize("name", list(GRAPH_MEASURES))
def test_an_unknown_node_type(name: str, toy: HIN) -> None:
    with pytest.raises(npth.NeuPathError, match="no node type 'venu' in this graph .*did you mean 'venue'"):
        graph_measure_named(name, "venu").fit(toy)

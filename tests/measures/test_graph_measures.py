"""Measures over the whole graph against networkx, dense formulas and each other."""

import networkx as nx
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings

import neupath as npth
from neupath import HIN, Edges, Nodes, Relation
from neupath.errors import QueryError
from neupath.measures import GRAPH_MEASURES, PPR, RWR, SCAN, CommuteTime, SimRank, graph_measure_named, measure_named
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


def test_simrank_is_within_its_bound_of_networkx(toy: HIN) -> None:
    graph = nx.from_scipy_sparse_array(whole_adjacency(toy))
    limit = nx.simrank_similarity(graph, importance_factor=0.6, max_iterations=1000, tolerance=1e-12)
    own = nodes_of(toy, "author")
    expected = np.array([[limit[x][y] for y in own] for x in own])
    for iterations in (2, 5, 25):
        scores = every_score(SimRank("author", iterations=iterations), toy)
        assert np.abs(scores - expected).max() <= 0.6 ** (iterations + 1)
    np.testing.assert_allclose(scores, expected, atol=2e-6)


def simrank(a: np.ndarray, decay: float, iterations: int) -> np.ndarray:
    """SimRank as its authors define it, over all pairs."""
    u = np.divide(a, a.sum(axis=1, keepdims=True), out=np.zeros_like(a), where=a.sum(axis=1, keepdims=True) > 0)
    s = np.eye(len(a))
    for _ in range(iterations):
        s = decay * u @ s @ u.T
        np.fill_diagonal(s, 1)
    return s


@settings(max_examples=40)
@given(hin=hins())
def test_simrank_equals_all_pairs(hin: HIN) -> None:
    own = nodes_of(hin, "b")
    expected = simrank(whole_adjacency(hin).toarray(), 0.8, 4)[np.ix_(own, own)]
    np.testing.assert_allclose(every_score(SimRank("b", decay=0.8, iterations=4), hin), expected, atol=1e-12)


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
        (lambda: RWR("author", tolerance=0.0), "tolerance is 0.0; it must lie between 0 and 1"),
        (lambda: SimRank("author", decay=2.0), "decay is 2.0; it must lie between 0 and 1"),
        (lambda: SimRank("author", iterations=0), "iterations is 0; it must be at least 1"),
    ],
)
def test_bad_settings(make, message: str) -> None:
    with pytest.raises(QueryError, match=message):
        make()


@pytest.mark.parametrize("name", list(GRAPH_MEASURES))
def test_an_unknown_node_type(name: str, toy: HIN) -> None:
    with pytest.raises(npth.NeuPathError, match="no node type 'venu' in this graph .*did you mean 'venue'"):
        graph_measure_named(name, "venu").fit(toy)

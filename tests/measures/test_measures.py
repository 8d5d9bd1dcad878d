"""Every measure against walks listed one by one, published values, dense formulas and another library."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import neupath as npth
from neupath import HIN, MetaPath
from neupath.errors import MetaPathError, QueryError, SourceError
from neupath.measures import MEASURES, measure_named
from tests.graphs import hins_with_path
from tests.walks import Walker, by_walks, every_score

pytestmark = pytest.mark.filterwarnings("ignore:.*torch.*:UserWarning")


@pytest.mark.parametrize("name", list(MEASURES))
@settings(max_examples=60)
@given(case=hins_with_path(symmetric=True))
def test_equals_the_walks_on_symmetric_paths(name: str, case: tuple[HIN, MetaPath]) -> None:
    hin, path = case
    np.testing.assert_allclose(every_score(name, hin, path), by_walks(name, hin, path), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", ["pathcount", "hetesim", "pcrw", "dwpc"])
@settings(max_examples=60)
@given(case=hins_with_path(symmetric=False, max_length=3))
def test_equals_the_walks_on_any_path(name: str, case: tuple[HIN, MetaPath]) -> None:
    hin, path = case
    np.testing.assert_allclose(every_score(name, hin, path), by_walks(name, hin, path), rtol=1e-9, atol=1e-12)


@settings(max_examples=60)
@given(case=hins_with_path(symmetric=True))
def test_pathsim_and_hetesim_equal_dense_numpy(case: tuple[HIN, MetaPath]) -> None:
    hin, path = case
    steps = [sum(hin.matrix(link).toarray() for link in step.links) for step in path.half().steps]
    w = np.linalg.multi_dot([np.eye(steps[0].shape[0]), *steps]) if len(steps) > 1 else steps[0]
    m = w @ w.T
    d = np.diag(m)
    dice = np.divide(2 * m, d[:, None] + d[None, :], out=np.zeros_like(m), where=m > 0)
    np.testing.assert_allclose(every_score("pathsim", hin, path), dice, rtol=1e-9, atol=1e-12)

    def walk(step: np.ndarray) -> np.ndarray:
        sums = step.sum(axis=1, keepdims=True)
        return np.divide(step, sums, out=np.zeros_like(step), where=sums > 0)

    u = walk(steps[0])
    for step in steps[1:]:
        u = u @ walk(step)
    dots, norms = u @ u.T, np.linalg.norm(u, axis=1)
    cosine = np.divide(dots, np.outer(norms, norms), out=np.zeros_like(dots), where=dots > 0)
    np.testing.assert_allclose(every_score("hetesim", hin, path), cosine, rtol=1e-9, atol=1e-12)


@settings(max_examples=15)
@given(case=hins_with_path(symmetric=False, max_length=3))
def test_path_counts_equal_torch_geometric(case: tuple[HIN, MetaPath]) -> None:
    torch = pytest.importorskip("torch")
    transforms = pytest.importorskip("torch_geometric.transforms")
    hin, path = case
    assume(len(path) > 1 and all(len(step.links) == 1 for step in path.steps))
    assume(all(hin.num_nodes(node_type) for node_type in path.node_types))
    data = npth.to_pyg(hin)
    for kind in data.edge_types:  # both directions, as AddMetaPaths walks forward only
        store = data[kind]
        weight = store.get("edge_weight", torch.ones(store.edge_index.shape[1], dtype=torch.float64)).double()
        store.edge_weight = weight
        data[kind[2], f"rev_{kind[1]}", kind[0]].edge_index = store.edge_index.flip(0)
        data[kind[2], f"rev_{kind[1]}", kind[0]].edge_weight = weight
    wanted = [
        (link.source, f"rev_{link.relation.name}" if link.reverse else link.relation.name, link.target)
        for link in (step.links[0] for step in path.steps)
    ]
    added = transforms.AddMetaPaths([wanted], weighted=True)(data)["metapath_0"]
    theirs = torch.zeros(hin.num_nodes(path.source), hin.num_nodes(path.target), dtype=torch.float64)
    theirs.index_put_(tuple(added.edge_index), added.edge_weight.double(), accumulate=True)
    np.testing.assert_allclose(every_score("pathcount", hin, path), theirs.numpy(), rtol=1e-6, atol=1e-9)


def test_pathsim_of_the_published_example(toy: HIN) -> None:
    scores = npth.PathSim("author-paper-venue-paper-author").fit(toy).scores("Mike")
    assert dict(zip(toy.nodes["author"].ids.to_pylist(), scores.round(4).tolist(), strict=True)) == {
        "Mike": 1.0,
        "Jim": 0.0826,
        "Mary": 0.8,
        "Bob": 1.0,
        "Ann": 0.0,
    }


@given(case=hins_with_path(symmetric=True), name=st.sampled_from(["pathsim", "joinsim", "hetesim"]))
def test_similarities_are_symmetric_and_between_0_and_1(case: tuple[HIN, MetaPath], name: str) -> None:
    scores = every_score(name, *case)
    assert np.array_equal(scores, scores.T)
    assert scores.min(initial=0.0) >= 0
    assert scores.max(initial=0.0) <= 1 + 1e-12


@pytest.mark.parametrize("name", ["pathsim", "joinsim"])
def test_refuses_an_asymmetric_path(toy: HIN, name: str) -> None:
    with pytest.raises(
        MetaPathError, match="'author-paper-venue' is not symmetric; use 'author-paper-venue-paper-author'"
    ):
        measure_named(name, "author-paper-venue").fit(toy)


def test_refuses_a_symmetric_path_of_odd_length() -> None:
    hin = HIN.build(
        [npth.Nodes("gene", npth.load("toy").nodes["author"].ids)],
        [npth.Edges(npth.Relation("gene", "binds", "gene", directed=False), np.array([0]), np.array([1]))],
    )
    with pytest.raises(MetaPathError, match="'gene-gene' has an odd number of steps; use 'gene-gene-gene'"):
        npth.PathSim("gene-gene").fit(hin)


def test_unknown_measure_and_bad_damping() -> None:
    with pytest.raises(QueryError, match="no measure 'pathsin' .*; did you mean 'pathsim'"):
        measure_named("pathsin", "APA")
    with pytest.raises(QueryError, match="damping is 2"):
        npth.DWPC("APA", damping=2)


def test_damping_zero_counts_paths(toy: HIN) -> None:
    damped = npth.DWPC("APVPA", damping=0.0).fit(toy).scores("Mike")
    np.testing.assert_array_equal(damped, npth.PathCount("APVPA").fit(toy).scores("Mike"))


@settings(max_examples=60)
@given(case=hins_with_path(symmetric=False, max_length=4), damping=st.sampled_from([0.0, 0.4]))
def test_dwpc_without_repeats_equals_the_paths(case: tuple[HIN, MetaPath], damping: float) -> None:
    hin, path = case
    walker, scorer = Walker(hin, path), npth.DWPC(path, damping, repeats=False).fit(hin)
    shape = (hin.num_nodes(path.source), hin.num_nodes(path.target))
    expected = [[walker.dwpc(x, y, damping, repeats=False) for y in range(shape[1])] for x in range(shape[0])]
    scores = scorer.score_rows(np.arange(shape[0]))
    np.testing.assert_allclose(scores, np.array(expected).reshape(shape), rtol=1e-9, atol=1e-12)
    ranking = scorer.rank_rows(np.arange(shape[0]), np.full(shape[0], -1), 3, None, None)
    assert (ranking.scores[:, :1] == scores.max(axis=1, initial=0.0)[:, None]).all() or not shape[1]


def test_dwpc_without_repeats_is_saved_and_refuses_what_needs_products(tmp_path, toy: HIN) -> None:
    scorer = npth.DWPC("APVPA", repeats=False).fit(toy)
    again = npth.load_scorer(scorer.save(tmp_path / "m"), toy)
    assert again.top_k("Mike", 3) == scorer.top_k("Mike", 3)
    assert scorer.score("Mike", "Mike") == 0
    with pytest.raises(QueryError, match="dwpc without repeated nodes cannot be explained"):
        npth.explain(toy, "APVPA", "Mike", "Mary", measure=scorer)
    with pytest.raises(QueryError, match="leaves walks out, so what-if cannot follow it"):
        npth.what_if(toy, "APVPA", "Mike", "Mary", measure=scorer)


def test_a_saved_measure_of_another_kind_is_refused(tmp_path, toy: HIN) -> None:
    npth.PathSim("APA").fit(toy).save(tmp_path / "m")
    (tmp_path / "m" / "config.json").write_text('{"scorer": "nonsense", "params": {}}')
    with pytest.raises(SourceError, match="holds a scorer named 'nonsense'"):
        npth.load_scorer(tmp_path / "m", toy)
    (tmp_path / "m" / "config.json").write_text('{"scorer": "pathsim", "params": {"metapath": "APA", "x": 1}}')
    with pytest.raises(SourceError, match="parameters that it does not take: x"):
        npth.load_scorer(tmp_path / "m", toy)
    (tmp_path / "m" / "config.json").write_text("{")
    with pytest.raises(SourceError, match="is not a saved scorer"):
        npth.load_scorer(tmp_path / "m", toy)
    with pytest.raises(SourceError, match="no saved scorer in"):
        npth.load_scorer(tmp_path, toy)


@pytest.mark.parametrize("path", ["a-b-a", "a-b"])
@pytest.mark.parametrize("measure", [npth.PCRW, npth.HeteSim])
def test_weights_whose_sum_is_no_float_are_refused(measure, path: str) -> None:
    nodes = [npth.Nodes("a", pa.array(["x", "y"])), npth.Nodes("b", pa.array([0, 1]))]
    weights = np.array([1.7e308, 1.7e308, 1.0])
    edges = npth.Edges(npth.Relation("a", "r", "b"), np.array([0, 0, 1]), np.array([0, 1, 1]), weights)
    with pytest.raises(npth.NeuPathError, match="the weights of a node add up to more than a float can hold"):
        measure(path).fit(npth.HIN.build(nodes, [edges]))

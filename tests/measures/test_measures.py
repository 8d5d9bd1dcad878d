"""Every measure against walks listed one by one, published values, dense formulas and another library."""

import os

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import neupath as npth
from neupath import HIN
from neupath.errors import MetaPathError, QueryError, SourceError
from neupath.evidence.model_explanation import explain_model
from neupath.graph.metapath import MetaPath, enumerate_metapaths
from neupath.io import from_triples, to_pyg
from neupath.measures import (
    DWPC,
    MEASURES,
    PCRW,
    AvgSim,
    DWPCNoRepeats,
    HeteSim,
    Overlap,
    PathCount,
    RelSim,
    measure_named,
)
from tests.graphs import graph_of, hins_with_path
from tests.walks import Walker, by_walks, every_score

pytestmark = pytest.mark.filterwarnings("ignore:.*torch.*:UserWarning")


@pytest.mark.parametrize("name", [*MEASURES, "tversky:alpha=0.9,beta=0.05", "tversky:alpha=2,beta=1"])
@settings(max_examples=60)
@given(case=hins_with_path(symmetric=True))
@pytest.mark.slow
def test_equals_the_walks_on_symmetric_paths(name: str, case: tuple[HIN, MetaPath]) -> None:
    hin, path = case
    np.testing.assert_allclose(every_score(name, hin, path), by_walks(name, hin, path), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", ["pathcount", "hetesim", "pcrw", "dwpc"])
@settings(max_examples=60)
@given(case=hins_with_path(symmetric=False, max_length=3))
@pytest.mark.slow
def test_equals_the_walks_on_any_path(name: str, case: tuple[HIN, MetaPath]) -> None:
    hin, path = case
    np.testing.assert_allclose(every_score(name, hin, path), by_walks(name, hin, path), rtol=1e-9, atol=1e-12)


@settings(max_examples=15)
@given(case=hins_with_path(symmetric=False, max_length=3))
@pytest.mark.slow
def test_path_counts_equal_torch_geometric(case: tuple[HIN, MetaPath]) -> None:
    torch = pytest.importorskip("torch")
    transforms = pytest.importorskip("torch_geometric.transforms")
    hin, path = case
    assume(len(path) > 1 and all(len(step.links) == 1 for step in path.steps))
    assume(all(hin.num_nodes(node_type) for node_type in path.node_types))
    data = to_pyg(hin)
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
    scores = npth.PathSim("author-paper-venue-paper-author").fit(toy).scores("Mike").round(4).tolist()
    assert toy.nodes["author"].ids.to_pylist() == ["Mike", "Jim", "Mary", "Bob", "Ann"]
    assert scores == [1.0, 0.0826, 0.8, 1.0, 0.0]


@given(case=hins_with_path(symmetric=True), name=st.sampled_from(["pathsim", "joinsim", "hetesim"]))
@settings(max_examples=50)
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
    hin = graph_of({"gene": 5}, {"gene -binds- gene": [(0, 1)]})
    with pytest.raises(MetaPathError, match="'gene-gene' has an odd number of steps; use 'gene-gene-gene'"):
        npth.PathSim("gene-gene").fit(hin)


def test_damping_zero_counts_paths(toy: HIN) -> None:
    damped = DWPC("APVPA", damping=0.0).fit(toy).scores("Mike")
    np.testing.assert_array_equal(damped, PathCount("APVPA").fit(toy).scores("Mike"))


@settings(max_examples=60)
@given(case=hins_with_path(symmetric=False, max_length=4), damping=st.sampled_from([0.0, 0.4]))
@pytest.mark.slow
def test_dwpc_without_repeats_equals_the_paths(case: tuple[HIN, MetaPath], damping: float) -> None:
    hin, path = case
    walker, scorer = Walker(hin, path), DWPCNoRepeats(path, damping).fit(hin)
    shape = (hin.num_nodes(path.source), hin.num_nodes(path.target))
    expected = [[walker.dwpc(x, y, damping, repeats=False) for y in range(shape[1])] for x in range(shape[0])]
    scores = scorer.score_rows(np.arange(shape[0]))
    np.testing.assert_allclose(scores, np.array(expected).reshape(shape), rtol=1e-9, atol=1e-12)
    ranking = scorer.rank_rows(np.arange(shape[0]), np.full(shape[0], -1), 3, None, None)
    assert (ranking.scores[:, :1] == scores.max(axis=1, initial=0.0)[:, None]).all() or not shape[1]


def test_dwpc_without_repeats_is_saved_and_refuses_what_needs_products(tmp_path, toy: HIN) -> None:
    scorer = DWPCNoRepeats("APVPA").fit(toy)
    again = npth.load_scorer(scorer.save(tmp_path / "m"), toy)
    assert again.top_k("Mike", 3) == scorer.top_k("Mike", 3)
    assert scorer.score("Mike", "Mike") == 0
    with pytest.raises(QueryError, match="dwpc-no-repeats lists paths instead of multiplying matrices"):
        scorer.halves(toy, scorer.metapath_)
    with pytest.raises(QueryError, match="what-if follows walks, and dwpc-no-repeats leaves some out; use dwpc"):
        npth.what_if(toy, "APVPA", "Mike", "Mary", measure=scorer)


def test_dwpc_without_repeats_refuses_queries_with_too_many_walks(toy: HIN, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("neupath.measures.dwpc._MOST_WALKS", 1000)
    scorer = DWPCNoRepeats("APVPA").fit(toy)
    assert len(scorer.top_k("Mike")) == 3
    message = "'Jim' has 3,240 walks along author-paper-venue-paper-author, and dwpc-no-repeats follows them one by one"
    with pytest.raises(QueryError, match=message):
        scorer.top_k(["Mike", "Jim"])


def test_a_saved_measure_of_another_kind_is_refused(tmp_path, toy: HIN) -> None:
    config = npth.PathSim("APA").fit(toy).save(tmp_path / "m") / "config.json"
    for content, message in (
        ('{"scorer": "nonsense", "params": {}}', "holds a scorer named 'nonsense'"),
        ('{"scorer": "pathsim", "params": {"metapath": "APA", "x": 1}}', "parameters that it does not take: x"),
        ("{", "is not a saved scorer"),
    ):
        config.write_text(content)
        with pytest.raises(SourceError, match=message):
            npth.load_scorer(tmp_path / "m", toy)
    with pytest.raises(SourceError, match="no saved scorer in"):
        npth.load_scorer(tmp_path, toy)
    config.unlink()
    os.mkfifo(config)
    with pytest.raises(SourceError, match="config.json of the saved scorer is no file"):
        npth.load_scorer(tmp_path / "m", toy)


@pytest.mark.parametrize("path", ["a-b-a", "a-b"])
@pytest.mark.parametrize("measure", [PCRW, HeteSim])
def test_weights_whose_sum_is_no_float_are_refused(measure, path: str) -> None:
    hin = graph_of({"a": 2, "b": 2}, {"a -r-> b": [(0, 0, 1.7e308), (0, 1, 1.7e308), (1, 1, 1.0)]})
    with pytest.raises(npth.NeuPathError, match="the weights of a node add up to more than a float can hold"):
        measure(path).fit(hin)


# ---- Measures of sets ----------------------------------------------------------------------------
def test_without_counts_they_are_the_measures_of_sets() -> None:
    sets = {"a": {1, 2, 3, 4}, "b": {3, 4, 5}, "c": {4}, "d": {6}}
    triples = [(node, "has", m) for node, own in sets.items() for m in map(str, own)]
    hin = from_triples(triples, dict.fromkeys(sets, "node") | dict.fromkeys(map(str, range(1, 7)), "middle"))
    for name, formula in {
        "jaccard": lambda x, y: len(x & y) / len(x | y),
        "overlap": lambda x, y: len(x & y) / min(len(x), len(y)),
        "tversky:alpha=0.8,beta=0.3": lambda x, y: len(x & y) / (len(x & y) + 0.8 * len(x - y) + 0.3 * len(y - x)),
        "dice": lambda x, y: 2 * len(x & y) / (len(x) + len(y)),
        "cosine": lambda x, y: len(x & y) / (len(x) * len(y)) ** 0.5,
    }.items():
        scorer = measure_named(name, "node-middle-node").fit(hin)
        for x, own in sets.items():
            for y, other in sets.items():
                assert scorer.score(x, y) == pytest.approx(formula(own, other), abs=1e-15)


def test_the_overlap_of_counts_may_exceed_1(toy: HIN) -> None:
    assert Overlap("APVPA").fit(toy).score("Mike", "Jim") == 24.0


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("tversky:alpha=-1", "‹alpha› is -1; give a number from 0 to 1000"),
        ("tversky:alpha=inf", "‹alpha› is inf; give a number from 0 to 1000"),
        ("tversky:alpha=0,beta=0", "‹alpha› and ‹beta› are 0, so that all related nodes score 1; raise one"),
        ("tversky:alpha=3,beta=0", "‹alpha› 3 and ‹beta› 0 are so far apart that a denominator can be 0; "
         "bring them nearer, or let them add up to at most 1"),
        ("tversky:gamma=1", "'gamma=1' is no setting of tversky; its settings are alpha, beta, as in "
         "tversky:alpha=0.5"),
        ("tversky:alpha", "'alpha' is no setting of tversky; its settings are alpha, beta, as in tversky:alpha=0.5"),
        ("tversky:alpha=1,alpha=1", "'alpha=1' is no setting of tversky; its settings are alpha, beta, as in "
         "tversky:alpha=0.5"),
        ("tversky:alpha=x", "alpha of tversky is 'x'; give a number, or true or false"),
        ("tversky:", "'' is no setting of tversky; its settings are alpha, beta, as in tversky:alpha=0.5"),
        ("dwpc:damping=2", "damping is 2"),
        ("pathsin", "did you mean 'pathsim'"),
        ("pathsim:alpha=1", "'alpha=1' is no setting of pathsim; it has no settings, as in pathsim"),
        ("jacard", "did you mean 'jaccard'"),
        ("cosin", "did you mean 'cosine'"),
    ],
)  # fmt: skip
def test_bad_settings_are_refused(name: str, message: str) -> None:
    with pytest.raises(QueryError) as error:
        measure_named(name, "APA")
    assert message in str(error.value.args[0])


# ---- Sums over several products ------------------------------------------------------------------
@settings(max_examples=20)
@given(case=hins_with_path(symmetric=False, max_length=3))
def test_avgsim_is_the_mean_of_the_walks_there_and_back(case: tuple[HIN, MetaPath]) -> None:
    hin, path = case
    there, back = Walker(hin, path), Walker(hin, path.reversed())
    scores = AvgSim(path).fit(hin).score_rows(np.arange(hin.num_nodes(path.source)))
    for x, row in enumerate(scores):
        expected = [(there.pcrw(x, y) + back.pcrw(y, x)) / 2 for y in range(len(row))]
        assert row.tolist() == pytest.approx(expected, rel=1e-9, abs=1e-12)


@settings(max_examples=20)
@given(case=hins_with_path(symmetric=True), weights=st.tuples(*[st.sampled_from([0.0, 0.3, 1.0, 2.0])] * 2))
def test_relsim_counts_the_walks_of_all_metapaths(case: tuple[HIN, MetaPath], weights: tuple[float, float]) -> None:
    hin, path = case
    others = [p for p in enumerate_metapaths(hin.schema, path.source, 2) if p != path]
    assume(others)
    relsim = RelSim([path, others[0]], weights).fit(hin)
    walkers = [Walker(hin, path), Walker(hin, others[0])]
    for x in range(hin.num_nodes(path.source)):
        for y in range(hin.num_nodes(path.source)):
            m, dx, dy = (
                sum(w * walker.count(*ends) for w, walker in zip(weights, walkers, strict=True))
                for ends in ((x, y), (x, x), (y, y))
            )
            score = float(relsim.score_rows(np.array([x]))[0][y])
            assert score == pytest.approx(2 * m / (dx + dy) if m else 0.0, rel=1e-9, abs=1e-12)
            if m and x != y:
                ids = (hin.nodes[path.source].id(x), hin.nodes[path.source].id(y))
                assert explain_model(relsim, *ids).score == pytest.approx(score, rel=1e-9)


def test_relsim_refuses_weights_below_0() -> None:
    with pytest.raises(QueryError, match="the weight of APA is -1; relsim takes weights of 0 and more"):
        RelSim(["APVPA", "APA"], [2, -1])

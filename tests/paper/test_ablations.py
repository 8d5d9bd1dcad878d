"""NeuPath with other poolings, or without types, against a plain pass over all nodes and edges."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("torch")

import neupath as npth
from neupath import HIN, NeuPath, NeuPathError
from neupath.live import LiveGraph
from neupath_paper.ablations import AblatedNeuPath, MeanLayer, SumLayer
from tests.graphs import hins
from tests.learn.models.plain_neupath import assert_same_scores_and_gradients, by_classes, network, score_all
from tests.learn.models.small_graphs import users

LABELS = [("Mike", "Bob", 1.0), ("Mike", "Mary", 0.8), ("Mike", "Ann", 0.0)]
POOLS = {
    SumLayer: lambda candidates, _: candidates.sum(dim=0, keepdim=True),
    MeanLayer: lambda candidates, _: candidates.mean(dim=0, keepdim=True),
}


@settings(max_examples=15)
@given(hin=hins(), layer=st.sampled_from(list(POOLS)), layers=st.integers(1, 3), seed=st.integers(0, 1000))
@pytest.mark.slow
def test_sums_and_means_equal_the_plain_forward(hin: HIN, layer: type, layers: int, seed: int) -> None:
    encoder, decoder, graph = network(hin, 6, layers, 1, seed, layer)
    if not len(graph.types):
        return
    query = seed % len(graph.types)
    scores = by_classes(encoder, decoder, graph, query, cap=0)
    expected = score_all(encoder, decoder, graph, query, POOLS[layer])
    assert_same_scores_and_gradients(scores, expected, [*encoder.parameters(), *decoder.parameters()])


@pytest.mark.parametrize(
    "left_out", [{"pooling": "mean"}, {"pooling": "sum"}, {"node_types": False}, {"edge_types": False}]
)
def test_it_trains_and_shows_no_paths(hin: HIN, teacher: npth.PathSim, left_out) -> None:
    model = AblatedNeuPath(dim=8, epochs=1, device="cpu", **left_out).fit(hin, teacher=teacher, queries=users(20))
    assert np.isfinite(model.scores("u1")).all()
    with pytest.raises(NeuPathError, match="an ablation of NeuPath shows no paths"):
        model.attention_paths("u1", "u2")
    assert LiveGraph(hin).attach(model).top_k("u1", k=3) == model.top_k("u1", k=3)


@pytest.mark.parametrize(("left_out", "paths"), [({}, 2), ({"pooling": "max"}, 1)])
def test_with_all_of_it_it_is_neupath_and_max_pooling_is_one_path(toy: HIN, left_out, paths: int) -> None:
    model = AblatedNeuPath(dim=8, epochs=2, device="cpu", **left_out).fit(toy, LABELS)
    published = NeuPath(dim=8, epochs=2, paths=paths, variant="paper", device="cpu").fit(toy, LABELS)
    np.testing.assert_array_equal(model.scores("Mike"), published.scores("Mike"))


def test_bad_settings() -> None:
    with pytest.raises(NeuPathError, match="pooling is 'median'; it can be tmax, max, mean, sum"):
        AblatedNeuPath(pooling="median")


def test_saved_models_of_before_open_and_ablations_say_what_to_do(toy: HIN, tmp_path: Path) -> None:
    model = NeuPath(dim=8, epochs=1, device="cpu").fit(toy, LABELS)
    model.save(tmp_path)
    usual = {"pooling": "tmax", "node_types": True, "edge_types": True}
    for changed, refused in ((usual, False), (usual | {"pooling": "mean"}, True)):
        config = {"scorer": "neupath", "params": model.params() | changed}
        (tmp_path / "config.json").write_text(json.dumps(config))
        if refused:
            with pytest.raises(NeuPathError, match="an ablation of NeuPath, with pooling='mean'; train it again"):
                npth.load_scorer(tmp_path, toy)
        else:
            np.testing.assert_array_equal(npth.load_scorer(tmp_path, toy, "cpu").scores("Mike"), model.scores("Mike"))

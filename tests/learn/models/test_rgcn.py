"""RGCN against its dense formula and torch_geometric, and the features that it gives nodes."""

import numpy as np
import pyarrow as pa
import pytest

pytest.importorskip("torch")

import torch

from neupath import HIN, NeuPathError
from neupath.graph.nodes import Nodes
from neupath.learn.attributes import node_features
from neupath.learn.models.flat_graph import GraphTensors
from neupath.learn.registry import make_model
from tests.learn.models.small_graphs import dense_kinds, start_of, tangled

LABELS = [("Mike", "Bob", 1.0), ("Mike", "Mary", 0.8), ("Mike", "Ann", 0.0)]


def rgcn(layer, x, kinds):
    total = x @ layer.root.detach().double().numpy() + layer.bias.detach().numpy()
    for a, weight in zip(kinds, layer.weight.detach().double().numpy(), strict=True):
        total += a / np.maximum(1, a.sum(1, keepdims=True)) @ x @ weight
    return total


def test_vectors_follow_the_formula(toy: HIN) -> None:
    model = make_model("rgcn", dim=4, layers=2, epochs=1, device="cpu").fit(toy, LABELS)
    network, kinds = model.network_, dense_kinds(toy)
    h = start_of(network)
    for number, layer in enumerate(network.encoder.layers):
        h = rgcn(layer, np.maximum(h, 0) if number else h, kinds)
    np.testing.assert_allclose(network.represent().detach(), h[network.rows], atol=1e-4)


@pytest.mark.slow
def test_a_layer_equals_that_of_torch_geometric() -> None:
    """With the same weights, which have the same names; results and gradients."""
    layers = pytest.importorskip("torch_geometric.nn")
    graph = GraphTensors.of(tangled(), torch.device("cpu"))
    torch.manual_seed(1)
    ours = make_model("rgcn", dim=8, layers=1, device="cpu")._make_encoder(graph).layers[0]
    theirs = layers.RGCNConv(8, 8, len(ours.weight))
    theirs.load_state_dict(ours.state_dict())
    inputs = torch.randn(graph.numbering.total, 8, requires_grad=True)
    results = ours(inputs), theirs(inputs, graph.edges, graph.kinds)
    torch.testing.assert_close(*results, atol=1e-5, rtol=1e-5)
    direction = torch.randn_like(results[0])
    gradients = [torch.autograd.grad(result, inputs, direction)[0] for result in results]
    torch.testing.assert_close(*gradients, atol=1e-5, rtol=1e-5)


def test_features_come_from_the_seed_and_are_not_trained(toy: HIN) -> None:
    make = lambda seed, epochs: (  # noqa: E731
        make_model("rgcn", dim=4, epochs=epochs, seed=seed, device="cpu").fit(toy, LABELS).network_.features
    )
    assert torch.equal(make(0, 1), make(0, 5))
    assert not torch.equal(make(0, 1), make(1, 1))
    assert make(0, 1).std().item() == pytest.approx(1, abs=0.1)


def test_features_of_a_node_do_not_depend_on_other_categories_and_missing_values_are_zero() -> None:
    def features(words: list, seed: int = 0) -> np.ndarray:
        table = pa.table({"colour": pa.array(words, pa.string())})
        return node_features(Nodes("thing", pa.array(range(len(words))), attributes=table), 8, seed)

    few, many = features(["red", "blue", None]), features(["red", "amber", None])
    np.testing.assert_array_equal(few[0], many[0])
    assert not few[2].any()
    assert not np.allclose(few[0], few[1])
    assert not np.allclose(few[0], features(["red"], seed=1)[0])
    years = pa.table({"year": pa.array([1990, 2000, None, 2010])})
    old, middle, unknown, new = node_features(Nodes("movie", pa.array(range(4)), attributes=years), 8)
    np.testing.assert_allclose(old - middle, middle - new, atol=1e-5)
    assert not unknown.any()
    assert not node_features(Nodes("thing", pa.array([1])), 8).any()


def test_models_without_node_features_refuse_attributes() -> None:
    with pytest.raises(NeuPathError, match="a neupath model has no attributes"):
        make_model("neupath", attributes=True)

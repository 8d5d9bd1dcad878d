"""Baselines that give each node a vector, against dense formulas."""

import sys

import numpy as np
import pytest

pytest.importorskip("torch")

import torch

from neupath import HIN, NeuPathError
from neupath.learn.registry import make_model
from tests.learn.models.small_graphs import dense_kinds

LABELS = [("Mike", "Bob", 1.0), ("Mike", "Mary", 0.8), ("Mike", "Ann", 0.0)]


def gcn(layer, x, kinds):
    a = (sum(kinds) > 0).astype(float) + np.eye(len(x))
    roots = 1 / np.sqrt(a.sum(1))
    return roots[:, None] * a * roots @ x @ layer.lin.weight.detach().double().numpy().T + layer.bias.detach().numpy()


def sage(layer, x, kinds):
    a = sum(kinds)
    mean = a / a.sum(1, keepdims=True) @ x
    own = x @ layer.lin_r.weight.detach().double().numpy().T
    return mean @ layer.lin_l.weight.detach().double().numpy().T + layer.lin_l.bias.detach().numpy() + own


def gin(layer, x, kinds):
    summed = (1 + layer.eps.item()) * x + sum(kinds) @ x
    return layer.nn(torch.tensor(summed, dtype=torch.float32)).detach().numpy()


def rgcn(layer, x, kinds):
    total = x @ layer.root.detach().double().numpy() + layer.bias.detach().numpy()
    for a, weight in zip(kinds, layer.weight.detach().double().numpy(), strict=True):
        total += a / np.maximum(1, a.sum(1, keepdims=True)) @ x @ weight
    return total


def mlp(layer, x, _kinds):
    return x @ layer.weight.detach().double().numpy().T + layer.bias.detach().numpy()


@pytest.mark.parametrize("formula", [gcn, sage, gin, rgcn, mlp], ids=lambda formula: formula.__name__)
def test_vectors_follow_the_formula(formula, toy: HIN) -> None:
    model = make_model(formula.__name__, dim=4, layers=2, epochs=1, device="cpu").fit(toy, LABELS)
    network = model.network_
    kinds = dense_kinds(toy)
    weights = network.project.detach().double().numpy()
    types = network.graph.types.numpy()
    h = np.stack([x @ weights[t] for x, t in zip(network.features.double().numpy(), types, strict=True)])
    for number, layer in enumerate(network.encoder.layers):
        h = formula(layer, np.maximum(h, 0) if number else h, kinds)
    np.testing.assert_allclose(network.represent().detach(), h[network.rows], atol=1e-4)


def test_features_come_from_the_seed_and_are_not_trained(toy: HIN) -> None:
    make = lambda seed, epochs: (  # noqa: E731
        make_model("gcn", dim=4, epochs=epochs, seed=seed, device="cpu").fit(toy, LABELS).network_.features
    )
    assert torch.equal(make(0, 1), make(0, 5))
    assert not torch.equal(make(0, 1), make(1, 1))
    assert make(0, 1).std().item() == pytest.approx(1, abs=0.1)


def test_without_torch_geometric(toy: HIN, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch_geometric", None)
    with pytest.raises(NeuPathError, match=r"needs torch_geometric, which is not installed; run: pip install"):
        make_model("gcn", dim=4, device="cpu").fit(toy, LABELS)
    make_model("gtn", dim=4, epochs=1, device="cpu").fit(toy, LABELS)

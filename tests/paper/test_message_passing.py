"""Baselines that give each node a vector, against dense formulas."""

from copy import deepcopy

import numpy as np
import pyarrow as pa
import pytest

pytest.importorskip("torch")

import torch

import neupath as npth
from neupath import HIN, NeuPathError, PathSim
from neupath.graph.hin import Edges
from neupath.graph.metapath import Relation
from neupath.graph.nodes import Nodes
from neupath.learn.models.flat_graph import GraphTensors, RowIndex, edge_kinds
from neupath.learn.registry import make_model
from neupath_paper.metapath_gnns import HANLayer
from tests.learn.models.small_graphs import dense_kinds, start_of, tangled, users

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


def mlp(layer, x, _kinds):
    return x @ layer.weight.detach().double().numpy().T + layer.bias.detach().numpy()


@pytest.mark.parametrize("formula", [gcn, sage, gin, mlp], ids=lambda formula: formula.__name__)
def test_vectors_follow_the_formula(formula, toy: HIN) -> None:
    model = make_model(formula.__name__, dim=4, layers=2, epochs=1, device="cpu").fit(toy, LABELS)
    network = model.network_
    kinds = dense_kinds(toy)
    h = start_of(network)
    for number, layer in enumerate(network.encoder.layers):
        h = formula(layer, np.maximum(h, 0) if number else h, kinds)
    np.testing.assert_allclose(network.represent().detach(), h[network.rows], atol=1e-4)


# ---- Against torch_geometric ---------------------------------------------------------------------
PYG_LAYERS = {
    "gcn": lambda nn, dim, _: nn.GCNConv(dim, dim),
    "gat": lambda nn, dim, _: nn.GATConv(dim, dim // 4, 4),
    "sage": lambda nn, dim, _: nn.SAGEConv(dim, dim),
    "gin": lambda nn, _, layer: nn.GINConv(deepcopy(layer.nn), train_eps=True),
}


@pytest.mark.parametrize("name", PYG_LAYERS)
@pytest.mark.slow
def test_layers_equal_those_of_torch_geometric(name: str) -> None:
    """With the same weights, which have the same names; results and gradients."""
    layers = pytest.importorskip("torch_geometric.nn")
    graph = GraphTensors.of(tangled(), torch.device("cpu"))
    torch.manual_seed(1)
    ours = make_model(name, dim=8, layers=1, device="cpu")._make_encoder(graph).layers[0]
    theirs = PYG_LAYERS[name](layers, 8, ours)
    theirs.load_state_dict(ours.state_dict())
    inputs = [torch.randn(graph.numbering.total, 8, requires_grad=True) for _ in range(1)] * 2
    results = ours(inputs[0]), theirs(inputs[1], graph.edges)
    torch.testing.assert_close(*results, atol=1e-5, rtol=1e-5)
    direction = torch.randn_like(results[0])
    gradients = [torch.autograd.grad(result, inputs[0], direction)[0] for result in results]
    torch.testing.assert_close(*gradients, atol=1e-5, rtol=1e-5)


@pytest.mark.slow
def test_hgt_equals_that_of_torch_geometric() -> None:
    layers = pytest.importorskip("torch_geometric.nn")
    graph = GraphTensors.of(tangled(), torch.device("cpu"))
    types, kinds = graph.schema.node_types, edge_kinds(graph.schema)
    torch.manual_seed(1)
    ours = make_model("hgt", dim=8, layers=1, device="cpu")._make_encoder(graph).layers[0]
    for parameter in (ours.prior, ours.skip):
        torch.nn.init.normal_(parameter)
    names = [(link.source, f"{number}", link.target) for number, link in enumerate(kinds)]
    theirs = layers.HGTConv(8, 8, (list(types), names), heads=4)
    numbering = graph.numbering
    edges = {
        name: graph.edges[:, graph.kinds == number]
        - torch.tensor([[numbering.first(name[0])], [numbering.first(name[2])]])
        for number, name in enumerate(names)
    }
    x = torch.randn(numbering.total, 8)
    with torch.no_grad():
        theirs(graph.by_type(x), edges)  # makes its weights
        for number, name in enumerate(types):
            parts = ours.key, ours.query, ours.value
            theirs.kqv_lin.lins[name].weight.copy_(torch.cat([part.weight[number].T for part in parts]))
            theirs.kqv_lin.lins[name].bias.copy_(torch.cat([part.bias[number] for part in parts]))
            theirs.out_lin.lins[name].weight.copy_(ours.out.weight[number].T)
            theirs.out_lin.lins[name].bias.copy_(ours.out.bias[number])
            theirs.skip[name].copy_(ours.skip[number])
        for rel, own in ((theirs.k_rel, ours.key_of_kind), (theirs.v_rel, ours.value_of_kind)):
            rel.weight.copy_(own.transpose(0, 1).flatten(0, 1))  # by head, then by kind
        for number, name in enumerate(names):
            theirs.p_rel["__".join(name)].copy_(ours.prior[number])
        expected = theirs(graph.by_type(x), edges)
        for name, own in graph.by_type(x).items():
            result = ours(x)[numbering.rows(name)]
            torch.testing.assert_close(result, own if expected.get(name) is None else expected[name])


@pytest.mark.slow
def test_han_equals_that_of_torch_geometric() -> None:
    layers = pytest.importorskip("torch_geometric.nn")
    torch.manual_seed(1)
    ends = [torch.randint(0, 9, (2, count)) for count in (20, 12)]
    indices = [(RowIndex(sources, 9), RowIndex(targets, 9)) for sources, targets in ends]
    ours = HANLayer(8, slice(2, 11), indices)
    names = [("a", "0", "a"), ("a", "1", "a")]
    theirs = layers.HANConv(8, 8, (["a"], names), heads=4)
    with torch.no_grad():
        theirs.proj["a"].load_state_dict(ours.project.state_dict())
        theirs.k_lin.load_state_dict(ours.weigh.state_dict())
        theirs.q.copy_(ours.preference)
        for number, name in enumerate(names):
            theirs.lin_src["__".join(name)].copy_(ours.source[number])
            theirs.lin_dst["__".join(name)].copy_(ours.target[number])
        x = torch.randn(12, 8)
        expected = theirs({"a": x[2:11]}, dict(zip(names, ends, strict=True)))["a"]
        torch.testing.assert_close(ours(x), torch.cat([x[:2], expected, x[11:]]))


def test_lightgcn_follows_the_formula(toy: HIN) -> None:
    model = make_model("lightgcn", dim=4, layers=3, epochs=3, device="cpu").fit(toy, LABELS)
    network, kinds = model.network_, dense_kinds(toy)
    gates, shares = (part.detach().double().numpy() for part in (network.encoder.gates(), network.encoder.shares()))
    assert np.unique(gates).size > 1, "the gates are trained"
    roots = 1 / np.sqrt(sum(kinds).sum(1, keepdims=True))
    h = start_of(network)
    total = shares[0] * h
    for share, gate in zip(shares[1:], gates, strict=True):
        h = roots * (sum(g * a for g, a in zip(gate, kinds, strict=True)) @ (roots * h))
        total = total + share * h
    np.testing.assert_allclose(network.represent().detach(), total[network.rows], atol=1e-5)


def test_simplehgn_follows_the_formula(toy: HIN) -> None:
    """By loops over nodes, edges and heads."""
    model = make_model("simplehgn", dim=8, layers=3, epochs=3, residual=0.3, device="cpu").fit(toy, LABELS)
    network = model.network_
    h, kinds = start_of(network), [*dense_kinds(toy), np.eye(len(network.features))]
    before: dict = {}
    for number, layer in enumerate(network.encoder.layers):
        h = np.where(h > 0, h, np.expm1(h)) if number else h
        w, keep, w_kind = (m.weight.detach().double().numpy() for m in (layer.project, layer.keep, layer.project_kind))
        (a, b, c), r = layer.ends.detach().double().numpy(), layer.kind.weight.detach().double().numpy()
        after = h @ keep.T
        projected, of_kinds = (h @ w.T).reshape(len(h), 4, 2), (r @ w_kind.T).reshape(len(r), 4, 2)
        for t in range(len(h)):
            edges = [(k, s) for k, matrix in enumerate(kinds) for s in np.flatnonzero(matrix[t])]
            for head in range(4):
                logits = np.array([
                    a[head] @ projected[s, head] + b[head] @ projected[t, head] + c[head] @ of_kinds[k, head]
                    for k, s in edges
                ])  # fmt: skip
                weights = np.exp(np.where(logits > 0, logits, 0.05 * logits))
                weights /= weights.sum()
                for (k, s), weight in zip(edges, weights, strict=True):
                    own = 0.7 * weight + 0.3 * before[head, k, s, t] if number else weight
                    before[head, k, s, t] = own
                    after[t, 2 * head : 2 * head + 2] += own * projected[s, head]
        h = after
    h /= np.linalg.norm(h, axis=1, keepdims=True)
    np.testing.assert_allclose(network.represent().detach(), h[network.rows], atol=1e-5)


def test_simplehgn_refuses_a_residual_of_one() -> None:
    with pytest.raises(NeuPathError, match="residual is 1.0; it must be at least 0 and below 1"):
        make_model("simplehgn", residual=1.0)


@pytest.mark.parametrize("name", ["simplehgn", "lightgcn"])
@pytest.mark.slow
def test_learns_and_repeats(name: str, hin: HIN, teacher: PathSim) -> None:
    def fit(epochs: int) -> object:
        model = make_model(name, dim=16, epochs=epochs, batch_size=10, learning_rate=1e-2, device="cpu")
        return model.fit(hin, teacher=teacher, queries=users(60), validation=users(60, 70))

    model = fit(20)
    assert model.log_[-1].train_rmse < 0.8 * model.log_[0].train_rmse
    np.testing.assert_array_equal(fit(1).scores("u1"), fit(1).scores("u1"))


# ---- Attributes ----------------------------------------------------------------------------------
def coloured(count: int = 40) -> HIN:
    """Things of four colours, in a graph that says nothing of them."""
    colours = pa.table({"colour": [f"c{i % 4}" for i in range(count)]})
    things = Nodes("thing", pa.array([f"x{i}" for i in range(count)]), attributes=colours)
    one = Edges(Relation("thing", "in", "box"), np.arange(count), np.zeros(count, dtype=np.int64))
    return HIN.build([things, Nodes("box", pa.array(["b"]))], [one])


COLOUR_LABELS = [(f"x{i}", f"x{j}", float(i % 4 == j % 4)) for i in range(24) for j in range(i + 1, 24)]


@pytest.mark.slow
def test_attributes_are_features(tmp_path) -> None:
    hin = coloured()

    def fit(attributes: bool):
        model = make_model("mlp", dim=16, epochs=20, attributes=attributes, learning_rate=1e-2, device="cpu")
        return model.fit(hin, COLOUR_LABELS)

    with_attributes = fit(True)
    assert {int(hit.id[1:]) % 4 for hit in with_attributes.top_k("x30", k=5)} == {30 % 4}, "a node without a label"
    assert {int(hit.id[1:]) % 4 for hit in fit(False).top_k("x30", k=5)} != {30 % 4}
    loaded = npth.load_scorer(with_attributes.save(tmp_path), hin, device="cpu")
    np.testing.assert_array_equal(loaded.scores("x1"), with_attributes.scores("x1"))
    np.testing.assert_array_equal(fit(True).scores("x1"), with_attributes.scores("x1"))

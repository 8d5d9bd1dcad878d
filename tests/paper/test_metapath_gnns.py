"""GTN against products of dense matrices; HAN's candidate meta-paths and neighbourhoods."""

from typing import cast

import numpy as np
import pytest
from hypothesis import given, settings

pytest.importorskip("torch")

import torch

from neupath import HIN, NeuPathError, PathSim
from neupath.engine.products import symmetric_product
from neupath.learn.models.embedding_baseline import EmbeddingNetwork
from neupath.learn.models.flat_graph import GraphTensors
from neupath_paper.metapath_gnns import GTN, HAN, SoftChains, sample_neighbours
from tests.graphs import hins
from tests.learn.models.small_graphs import dense_kinds, library


@settings(max_examples=30)
@given(hin=hins())
@pytest.mark.slow
def test_gtn_equals_dense_products(hin: HIN) -> None:
    torch.manual_seed(1)
    graph = GraphTensors.of(hin, torch.device("cpu"))
    chains = SoftChains(graph, dim=3, steps=3, channels=2)
    x = torch.randn(graph.numbering.total, 3)
    gates = chains.gates().detach().numpy().astype(float)
    one = np.eye(graph.numbering.total)
    projected = chains.project(x).detach().numpy().reshape(-1, 2, 3)
    parts = []
    for channel in range(2):
        product = one
        for gate in gates[:, :, channel]:
            product = product @ sum((w * a for w, a in zip(gate, [*dense_kinds(hin), one], strict=True)))
        whole = product + one
        parts.append(np.maximum(0, whole / whole.sum(1, keepdims=True) @ projected[:, channel]))
    joined = torch.tensor(np.concatenate(parts, axis=1), dtype=torch.float32)
    torch.testing.assert_close(chains(x), chains.combine(joined), atol=1e-5, rtol=0)


@pytest.mark.slow
def test_gtn_gates_come_to_choose(toy: HIN) -> None:
    everyone = toy.nodes["author"].ids.to_pylist()
    model = GTN(dim=16, layers=4, epochs=100, device="cpu")
    model.fit(toy, teacher=PathSim("APVPA").fit(toy), queries=everyone, validation=everyone)
    gates = cast(SoftChains, cast(EmbeddingNetwork, model.network_).encoder).gates()
    assert gates.max() > 10 * gates.min(), "one kind of edge is preferred to another"


LABELS = [("u1", "u2", 1.0), ("u1", "u3", 0.5), ("u2", "u4", 0.0)]


def test_neighbours_are_the_pairs_a_path_joins(toy: HIN) -> None:
    factors = symmetric_product(toy, toy.metapath("APVPA"))
    sources, targets = sample_neighbours(factors, limit=100, seed=0)
    expected = (factors.left @ factors.right).toarray() > 0
    is_joined = np.zeros_like(expected)
    is_joined[targets, sources] = True
    assert np.array_equal(is_joined, expected)
    assert len(sources) == expected.sum()


def test_too_many_neighbours_are_drawn_from() -> None:
    hin = library(users=300)  # more rows than are looked at at once
    factors = symmetric_product(hin, hin.metapath("user-item-tag-item-user"))
    joined = (factors.left @ factors.right).toarray() > 0
    sources, targets = sample_neighbours(factors, limit=7, seed=0)
    assert np.array_equal(np.bincount(targets, minlength=300), np.minimum(joined.sum(1), 7))
    assert joined[targets, sources].all()
    assert len({*zip(sources.tolist(), targets.tolist(), strict=True)}) == len(sources)
    for one, other in ((u, v) for u in range(40) for v in range(u) if np.array_equal(joined[u], joined[v])):
        assert np.array_equal(sources[targets == one], sources[targets == other]), "who has the same keeps the same"
    assert np.array_equal(sample_neighbours(factors, 7, 0), np.stack([sources, targets]))
    assert not np.array_equal(sample_neighbours(factors, 7, 1)[0], sources)


def test_candidates_are_the_short_symmetric_paths_unless_given() -> None:
    model = HAN(dim=8, epochs=1, device="cpu").fit(library(), LABELS)
    assert [str(path) for path in model.candidate_metapaths()] == [
        "user-item-user",
        "user-item-user-item-user",
        "user-item-tag-item-user",
    ]
    told = HAN(dim=8, epochs=1, metapaths=["user-item-user"], device="cpu").fit(library(), LABELS)
    assert told.params()["metapaths"] == ["user-item-user"]


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("item-user-item", "item-user-item joins item nodes, and the labels are of user nodes"),
        ("user-item-tag", "HAN needs a symmetric meta-path of even length"),
    ],
)
def test_bad_candidates(path: str, message: str) -> None:
    with pytest.raises(NeuPathError, match=message):
        HAN(dim=8, epochs=1, metapaths=[path], device="cpu").fit(library(), LABELS)

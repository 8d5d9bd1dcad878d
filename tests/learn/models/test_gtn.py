"""GTN against products of dense matrices, and whether it chooses."""

from typing import cast

import numpy as np
import pytest
from hypothesis import given, settings

torch = pytest.importorskip("torch", reason="the learn extra is not installed")

from neupath import HIN, PathSim  # noqa: E402
from neupath.learn.models.embedding_baseline import EmbeddingNetwork  # noqa: E402
from neupath.learn.models.flat_graph import GraphTensors  # noqa: E402
from neupath.learn.models.metapath_gnns import GTN, SoftChains  # noqa: E402
from tests.graphs import hins  # noqa: E402
from tests.learn.models.test_graph_tensors import dense_kinds  # noqa: E402


@settings(max_examples=30)
@given(hin=hins())
def test_equals_dense_products(hin: HIN) -> None:
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


def test_gates_come_to_choose(toy: HIN) -> None:
    everyone = toy.nodes["author"].ids.to_pylist()
    model = GTN(dim=16, layers=4, epochs=100, device="cpu")
    model.fit(toy, teacher=PathSim("APVPA").fit(toy), queries=everyone, validation=everyone)
    gates = cast(SoftChains, cast(EmbeddingNetwork, model.network_).encoder).gates()
    assert gates.max() > 10 * gates.min(), "one kind of edge is preferred to another"

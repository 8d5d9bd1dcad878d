"""GTN against products of dense matrices."""

import numpy as np
import pytest
from hypothesis import given, settings

torch = pytest.importorskip("torch", reason="the learn extra is not installed")

from neupath import HIN  # noqa: E402
from neupath.models.graph_tensors import GraphTensors  # noqa: E402
from neupath.models.gtn import SoftChains  # noqa: E402
from tests.graphs import hins  # noqa: E402
from tests.models.test_graph_tensors import dense_kinds  # noqa: E402


@settings(max_examples=30)
@given(hin=hins())
def test_equals_dense_products(hin: HIN) -> None:
    torch.manual_seed(1)
    graph = GraphTensors.of(hin, torch.device("cpu"))
    chains = SoftChains(graph, dim=3, steps=3, channels=2)
    x = torch.randn(graph.num_nodes, 3)
    gates = chains.gates.detach().softmax(1).numpy().astype(float)
    one = np.eye(graph.num_nodes)
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

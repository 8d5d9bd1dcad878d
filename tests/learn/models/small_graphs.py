"""Small graphs that the tests of models share, and what networks start from on them, as dense matrices."""

import numpy as np
import pyarrow as pa

from neupath import HIN
from neupath.graph.nodes import Nodes
from neupath.learn.models.flat_graph import edge_kinds
from tests.graphs import graph_of


def library(seed: int = 5, users: int = 80) -> HIN:
    rng = np.random.default_rng(seed)
    ids, names = ([f"{word}{i}" for i in range(users)] for word in ("u", "User "))
    nodes = {"user": Nodes("user", pa.array(ids), pa.array(names)), "item": 60, "tag": [f"t{i}" for i in range(12)]}
    buys = np.c_[rng.integers(0, users - 1, 220), rng.integers(0, 60, 220)]
    has = np.c_[np.arange(60), rng.integers(0, 12, 60)]
    return graph_of(nodes, {"user -buys-> item": buys, "item -has-> tag": has}, duplicates="drop")


def users(*bounds: int) -> list[str]:
    return [f"u{i}" for i in range(*bounds)]


def dense_kinds(hin: HIN) -> list[np.ndarray]:
    """Which nodes each kind of edge joins, (to, from), all nodes in one numbering."""
    sizes = np.cumsum([0, *(hin.num_nodes(name) for name in hin.schema.node_types)])
    first = dict(zip(hin.schema.node_types, sizes, strict=False))
    matrices = []
    for link in edge_kinds(hin.schema):
        whole = np.zeros((sizes[-1], sizes[-1]))
        for x, y in zip(*hin.matrix(link).nonzero(), strict=True):
            whole[first[link.target] + y, first[link.source] + x] = 1.0
        matrices.append(whole)
    return matrices


def tangled() -> HIN:
    """Parallel edges of two kinds, edges of a node to itself, nodes without edges, a type that no edge leads to."""
    rng = np.random.default_rng(0)
    ends = rng.integers(0, 6, (2, 14)).T
    knows = np.append(rng.integers(0, 8, (2, 9)), [[1], [1]], axis=1).T
    nodes = {name: [f"{name}{i}" for i in range(count)] for name, count in zip("abc", (9, 7, 3), strict=True)}
    return graph_of(nodes, {"a -likes-> b": ends, "a -owns-> b": ends, "a -knows-> a": knows})


def start_of(network) -> np.ndarray:
    """What the encoder starts from; shape (nodes, d)."""
    weights, types = network.project.detach().double().numpy(), network.graph.types.numpy()
    return np.stack([x @ weights[t] for x, t in zip(network.features.double().numpy(), types, strict=True)])

"""Small graphs that the tests of models share, and what networks start from on them, as dense matrices."""

import numpy as np
import pyarrow as pa

from neupath import HIN
from neupath.graph.hin import Edges
from neupath.graph.metapath import Relation
from neupath.graph.nodes import Nodes
from neupath.learn.models.flat_graph import edge_kinds


def library(seed: int = 5, users: int = 80) -> HIN:
    rng = np.random.default_rng(seed)
    return HIN.build(
        [
            Nodes("user", pa.array([f"u{i}" for i in range(users)]), pa.array([f"User {i}" for i in range(users)])),
            Nodes("item", pa.array(np.arange(60))),
            Nodes("tag", pa.array([f"t{i}" for i in range(12)])),
        ],
        [
            Edges(Relation("user", "buys", "item"), rng.integers(0, users - 1, 220), rng.integers(0, 60, 220)),
            Edges(Relation("item", "has", "tag"), np.arange(60), rng.integers(0, 12, 60)),
        ],
        duplicates="drop",
    )


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
    nodes = [
        Nodes(name, pa.array([f"{name}{i}" for i in range(count)]))
        for name, count in zip("abc", (9, 7, 3), strict=True)
    ]
    ends = rng.integers(0, 6, (2, 14))
    return HIN.build(
        nodes,
        [
            Edges(Relation("a", "likes", "b"), *ends),
            Edges(Relation("a", "owns", "b"), *ends),
            Edges(Relation("a", "knows", "a"), *np.append(rng.integers(0, 8, (2, 9)), [[1], [1]], axis=1)),
        ],
    )


def start_of(network) -> np.ndarray:
    """What the encoder starts from; shape (nodes, d)."""
    weights, types = network.project.detach().double().numpy(), network.graph.types.numpy()
    return np.stack([x @ weights[t] for x, t in zip(network.features.double().numpy(), types, strict=True)])

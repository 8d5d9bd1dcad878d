"""Small graphs that the tests of models share, and their edges as dense matrices."""

import numpy as np
import pyarrow as pa

from neupath import HIN, Edges, Nodes, Relation
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

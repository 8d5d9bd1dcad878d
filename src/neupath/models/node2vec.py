"""node2vec (Grover, Leskovec, KDD 2016), over the whole graph."""

from typing import Any

import numpy as np
from numpy.random import Generator
from scipy.sparse import csr_array

from neupath.errors import QueryError
from neupath.graph import HIN
from neupath.models.flat_graph import Ints
from neupath.models.random_walks import wander
from neupath.models.soft_paths import whole_matrices
from neupath.models.walk_embedding import WalkEmbedding

_MOST = 16
"""How much more or less often a walk may go back, or out; where that is much, walks are drawn again and again."""


class Node2Vec(WalkEmbedding):
    """Learn vectors from walks over the whole graph, types forgotten, that turn back or go on as they are told.

    `back` is node2vec's p, `out` its q: what less likely means for going back, and for going on to nodes that are no
    neighbours of the last.

    >>> from neupath import load
    >>> model = Node2Vec("author", dim=16, seed=1).fit(load("toy"))
    >>> len(model.top_k("Mike", k=2))
    2
    """

    name = "node2vec"
    own = ("node_type", "back", "out")

    def __init__(self, node_type: str, *, back: float = 1.0, out: float = 1.0, **rest: Any) -> None:
        super().__init__(**rest)
        for what, value in (("back", back), ("out", out)):
            if not 1 / _MOST <= value <= _MOST:
                raise QueryError(f"{what} is {value}; it must lie between 1/{_MOST} and {_MOST}")
        self.node_type, self.back, self.out = node_type, back, out

    def _find_type(self, hin: HIN) -> str:
        return hin.schema.node_type(self.node_type)

    def _walk(self, hin: HIN, rng: Generator) -> Ints:
        size = sum(len(nodes) for nodes in hin.nodes.values())
        total = csr_array(sum(whole_matrices(hin), start=csr_array((size, size))))
        total.sort_indices()
        starts = rng.permuted(np.tile(np.arange(size), (self.walks, 1)), axis=1).ravel()
        return wander(starts, total, self.length, self.back, self.out, rng)

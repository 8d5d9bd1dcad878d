"""metapath2vec (Dong, Chawla, Swami, KDD 2017)."""

from typing import Any

import numpy as np
from numpy.random import Generator
from scipy.sparse import coo_array

from neupath.errors import MetaPathError
from neupath.graph import HIN, Csr
from neupath.halfpath import adjacency
from neupath.metapath import MetaPath, Step
from neupath.models.flat_graph import FlatGraph, Ints
from neupath.models.random_walks import follow
from neupath.models.walk_embedding import WalkEmbedding


class MetaPath2Vec(WalkEmbedding):
    """Learn vectors from walks that follow a meta-path, again and again.

    >>> from neupath import load
    >>> model = MetaPath2Vec("author-paper-venue-paper-author", dim=16, seed=1).fit(load("toy"))
    >>> len(model.top_k("Mike", k=2))
    2
    """

    name = "metapath2vec"
    own = ("metapath",)

    def __init__(self, metapath: str | MetaPath, **rest: Any) -> None:
        super().__init__(**rest)
        self.metapath = str(metapath)

    @property
    def metapath_text(self) -> str:
        return str(self._fitted().metapath(self.metapath))

    def _find_type(self, hin: HIN) -> str:
        path = hin.metapath(self.metapath)
        if path.source != path.target:
            raise MetaPathError(
                f"'{path}' ends at {path.target}, and metapath2vec must be able to go on from there; "
                f"use a path that ends at {path.source}"
            )
        return path.source

    def _walk(self, hin: HIN, rng: Generator) -> Ints:
        graph = FlatGraph.of(hin)
        at = hin.schema.node_types.index(self.node_type_)
        everyone = np.arange(graph.start[at], graph.start[at + 1])
        starts = rng.permuted(np.tile(everyone, (self.walks, 1)), axis=1).ravel()
        steps = [_over_all_nodes(hin, step, graph.start) for step in hin.metapath(self.metapath).steps]
        return follow(starts, steps, self.length, rng)


def _over_all_nodes(hin: HIN, step: Step, start: Ints) -> Csr:
    """Return the weights of a step, all nodes in one numbering; shape (nodes, nodes), sparse."""
    first = dict(zip(hin.schema.node_types, start[:-1], strict=True))
    entries = adjacency(hin, step).tocoo()
    places = (entries.row + first[step.source], entries.col + first[step.target])
    return coo_array((entries.data, places), shape=(start[-1], start[-1])).tocsr()

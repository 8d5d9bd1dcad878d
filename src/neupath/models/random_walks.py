"""Random walks over sparse matrices, many at once: what embeddings of nodes are learned from."""

from collections.abc import Sequence

import numpy as np
from numpy.random import Generator

from neupath.graph import Csr, Floats
from neupath.models.flat_graph import Ints
from neupath.nodes import Mask


def follow(starts: Ints, steps: Sequence[Csr], length: int, rng: Generator) -> Ints:
    """Walk from each start, taking the steps in turn and again; -1 where a walk has ended; shape (starts, length).

    Each step is a matrix of weights over all nodes; the next node is drawn in proportion to them.
    """
    walks = np.full((len(starts), length), -1, dtype=np.int64)
    walks[:, 0] = starts
    for at in range(1, length):
        walks[:, at] = _next_nodes(steps[(at - 1) % len(steps)], walks[:, at - 1], rng)
    return walks


def wander(starts: Ints, matrix: Csr, length: int, back: float, out: float, rng: Generator) -> Ints:
    """Walk from each start as node2vec does; -1 where a walk has ended; shape (starts, length).

    From v, come from u, the weight of going to x is that of the edge times 1/back where x is u, 1 where x is a
    neighbour of u, and 1/out elsewhere. Nodes are drawn by weight alone, and drawn again as often as the factor says.
    """
    walks = np.full((len(starts), length), -1, dtype=np.int64)
    walks[:, 0] = starts
    size = matrix.shape[0]
    joined = np.repeat(np.arange(size), np.diff(matrix.indptr)) * size + matrix.indices
    most = max(1.0, 1 / back, 1 / out)
    for at in range(1, length):
        open_ = np.flatnonzero(walks[:, at - 1] >= 0)
        while len(open_):
            drawn = _next_nodes(matrix, walks[open_, at - 1], rng)
            factor = np.full(len(open_), most)
            if at > 1:
                before = walks[open_, at - 2]
                near = _is_in(before * size + drawn, joined)
                factor = np.where(drawn == before, 1 / back, np.where(near, 1.0, 1 / out))
            taken = (rng.random(len(open_)) * most < factor) | (drawn < 0)
            walks[open_[taken], at] = drawn[taken]
            open_ = open_[~taken]
    return walks


def _next_nodes(matrix: Csr, nodes: Ints, rng: Generator) -> Ints:
    """Draw a neighbour of each node in proportion to the weights; -1 where there is none."""
    totals: Floats = np.asarray(matrix.sum(axis=1)).repeat(np.diff(matrix.indptr))
    sums = np.concatenate([[0.0], np.cumsum(matrix.data / totals)])  # each row adds 1, so that none drowns another
    first, last = matrix.indptr[nodes], matrix.indptr[nodes + 1]
    wanted = sums[first] + rng.random(len(nodes)) * (sums[last] - sums[first])
    place = np.clip(np.searchsorted(sums, wanted, side="right") - 1, first, np.maximum(first, last - 1))
    found = np.full(len(nodes), -1, dtype=np.int64)
    going = (nodes >= 0) & (last > first)
    found[going] = matrix.indices[place[going]]
    return found


def _is_in(values: Ints, ascending: Ints) -> Mask:
    found: Mask = ascending[np.minimum(np.searchsorted(ascending, values), len(ascending) - 1)] == values
    return found

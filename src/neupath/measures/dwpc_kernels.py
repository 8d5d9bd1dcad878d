"""Numba kernel of DWPC without repeated nodes: the paths of one query, depth first."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from neupath._runtime.kernels import numba_function as compiled
from neupath.graph.hin import Csr


def steps_and_types(matrices: Sequence[Csr], node_types: Sequence[str]) -> tuple[tuple[Any, ...], NDArray[np.int64]]:
    """Return the matrices of steps and the node types at each position as `add_paths` takes them."""
    steps = tuple((matrix.indptr, matrix.indices, matrix.data) for matrix in matrices)
    return steps, np.array([node_types.index(node_type) for node_type in node_types])


@compiled
def add_paths(steps, types, query, position, sums):
    """Add the weight of every path from a query to the sum of its node at a position; a path visits no node twice.

    `steps`: (indptr, indices, data) of each step's matrix. `types`: the type at each position, as a number.
    """
    length = len(steps)
    nodes, weights = np.zeros(length + 1, dtype=np.int64), np.ones(length + 1)
    places, ends = np.zeros(length + 1, dtype=np.int64), np.zeros(length + 1, dtype=np.int64)
    nodes[0], depth = query, 0
    places[0], ends[0] = steps[0][0][query], steps[0][0][query + 1]
    while depth >= 0:
        if places[depth] == ends[depth]:
            depth -= 1
            continue
        _, indices, data = steps[depth]
        at = places[depth]
        places[depth] += 1
        node, weight = indices[at], weights[depth] * data[at]
        is_repeated = False
        for earlier in range(depth + 1):
            is_repeated |= types[earlier] == types[depth + 1] and nodes[earlier] == node
        if is_repeated:
            continue
        nodes[depth + 1] = node
        if depth + 1 == length:
            sums[nodes[position]] += weight
            continue
        depth += 1
        weights[depth] = weight
        places[depth], ends[depth] = steps[depth][0][node], steps[depth][0][node + 1]

"""Numba kernel of DWPC without repeated nodes: the paths of one query, depth first."""

import numpy as np

from neupath.engine.product_kernels import compiled


@compiled
def add_paths(steps, types, query, scores):
    """Add the weight of every path from a query to the score of its end; a path visits no node twice.

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
        for position in range(depth + 1):
            is_repeated |= types[position] == types[depth + 1] and nodes[position] == node
        if is_repeated:
            continue
        if depth + 1 == length:
            scores[node] += weight
            continue
        depth += 1
        nodes[depth], weights[depth] = node, weight
        places[depth], ends[depth] = steps[depth][0][node], steps[depth][0][node + 1]

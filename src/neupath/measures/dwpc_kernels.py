"""The kernel of DWPC without repeated nodes: the paths of one query, depth first."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from neupath._runtime.kernels import kernel
from neupath.graph.hin import Csr, Floats


def steps_and_types(matrices: Sequence[Csr], node_types: Sequence[str]) -> tuple[tuple[Any, ...], NDArray[np.int64]]:
    """Return the matrices of steps and the node types at each position as `add_paths` takes them.

    The matrices are put together, so that a path of any length has arguments of the same types.
    """
    sizes = np.cumsum([0, *(matrix.nnz for matrix in matrices)])
    indptrs = [matrix.indptr + size for matrix, size in zip(matrices, sizes[:-1], strict=True)]
    steps = (
        np.cumsum([0, *(len(indptr) for indptr in indptrs)]),
        np.concatenate(indptrs).astype(np.int64, copy=False),
        np.concatenate([matrix.indices for matrix in matrices]).astype(np.int64, copy=False),
        np.concatenate([matrix.data for matrix in matrices]),
    )
    return steps, np.array([node_types.index(node_type) for node_type in node_types])


def count_walks(matrices: Sequence[Csr]) -> Floats:
    """Return the number of walks from each row along a chain of matrices."""
    counts = np.ones(matrices[-1].shape[1])
    for matrix in reversed(matrices):
        counts = np.asarray((matrix > 0).astype(np.float64) @ counts)
    return counts


_STEPS = "const int64[:]", "const int64[:]", "const int64[:]", "const float64[:]"


@kernel(_STEPS, "const int64[:]", "int64", "int64", "float64[:]")
def add_paths(steps, types, query, position, sums):
    """Add the weight of every path from a query to the sum of its node at a position; a path visits no node twice.

    `steps`: (firsts, indptr, indices, data) of all steps' matrices one after the other: the rows of a step begin at its
    place of `firsts` in `indptr`. `types`: the type at each position, as a number.
    """
    firsts, indptr, indices, data = steps
    length = len(firsts) - 1
    nodes, weights = np.zeros(length + 1, dtype=np.int64), np.ones(length + 1)
    places, ends = np.zeros(length + 1, dtype=np.int64), np.zeros(length + 1, dtype=np.int64)
    nodes[0], depth = query, 0
    places[0], ends[0] = indptr[query], indptr[query + 1]
    while depth >= 0:
        if places[depth] == ends[depth]:
            depth -= 1
            continue
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
        row = firsts[depth] + node
        places[depth], ends[depth] = indptr[row], indptr[row + 1]

"""Walks that start again: the series behind personalised PageRank and random walk with restart."""

from math import ceil, log

import numpy as np
from scipy.sparse import csr_array, diags_array

from neupath.graph import Csr, Floats
from neupath.nodes import Rows


def walk_with_restart(matrix: Csr, nodes: Rows, damping: float, tolerance: float) -> Floats:
    """Return (1 - damping)·Σ_k (damping·matrix)^k·e_q for each node q, as columns; shape (nodes, queries).

    The sum ends where what is left of it is less than the tolerance, for a matrix of norm 1.
    """
    start = np.zeros((matrix.shape[0], len(nodes)))
    start[nodes, np.arange(len(nodes))] = 1.0
    found = start
    for _ in range(ceil(log(tolerance) / log(damping))):
        found = damping * (matrix @ found) + (1 - damping) * start
    return found


def degree_power(adjacency: Csr, power: float) -> Csr:
    """Return the degrees to a power as a diagonal matrix; a degree of 0 stays 0."""
    degrees = np.asarray(adjacency.sum(axis=1), dtype=np.float64)
    powers = np.zeros_like(degrees)
    np.power(degrees, power, out=powers, where=degrees > 0)
    return csr_array(diags_array(powers))

"""Sums over all edges and nodes that tell whether one was lost; a change costs only itself, in any order."""

from hashlib import md5
from typing import Any

import numpy as np
from numpy.typing import NDArray

from neupath.graph import Floats
from neupath.nodes import Id, Rows
from neupath.store.database import run

_WORD = 1 << 64


def edge_sum(relation: int, sources: Rows, targets: Rows, weights: Floats) -> int:
    """Return the sum, modulo 2⁶⁴, of 64 scattered bits for each edge.

    >>> one, two = np.array([1]), np.array([2])
    >>> edge_sum(0, one, two, np.array([1.0])) == edge_sum(0, two, one, np.array([1.0]))
    False
    """
    mixed = np.full(len(sources), relation, dtype=np.uint64)
    bits = np.asarray(weights, dtype=np.float64).view(np.uint64)
    with np.errstate(over="ignore"):
        for part in (sources.astype(np.uint64), targets.astype(np.uint64), bits):
            mixed = _scattered(mixed + np.uint64(0x9E3779B97F4A7C15) ^ part)
        return int(mixed.sum(dtype=np.uint64))


def _scattered(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Scatter the bits of 64-bit numbers (the finaliser of splitmix64)."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def add(total: int, more: int, less: int = 0) -> int:
    """Add to a sum of edges and take away from it."""
    return (total + more - less) % _WORD


def node_sum(connection: Any, node_type: int, where: str, values: list[Any]) -> int:
    """Return the sum over some nodes of 64 bits of the MD5 of each one's type, key, id and name."""
    row = f"concat_ws('\x1f', '{node_type}', key, id, name)"
    query = f"SELECT coalesce(sum(md5_number_lower({row})), 0)::VARCHAR FROM nodes_{node_type} WHERE {where}"  # noqa: S608
    return int(run(connection, query, values)[0][0])


def one_node_sum(node_type: int, key: int, id_: Id, name: str | None) -> int:
    """Return what one node adds to the sum that the database makes of all of them."""
    parts = (str(node_type), str(key), str(id_), *(() if name is None else (name,)))
    digest = md5("\x1f".join(parts).encode(), usedforsecurity=False).digest()
    return int.from_bytes(digest[8:], "little")

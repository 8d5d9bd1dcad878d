"""Checksums over edges and nodes, and matrices of edges by key."""

from hashlib import md5
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array

from neupath._runtime.hashing import mix64
from neupath.graph.hin import Csr, Floats, freeze
from neupath.graph.nodes import Id, Mask, Rows
from neupath.store.database import run

Triplets = tuple[Rows, Rows, Floats]
"""Entries of a sparse matrix: rows, columns, values; or edges: sources, targets, weights."""

# ---- Checksums -----------------------------------------------------------------------------------
# A checksum is a sum of hashes (modulo 2⁶⁴ for edges): any order gives the same, and an update costs what it changes.
_WORD = 1 << 64


def edge_checksum(relation: int, sources: Rows, targets: Rows, weights: Floats) -> int:
    """Return the checksum of some edges of a relation.

    >>> one, two = np.array([1]), np.array([2])
    >>> edge_checksum(0, one, two, np.array([1.0])) == edge_checksum(0, two, one, np.array([1.0]))
    False
    """
    mixed = np.full(len(sources), relation, dtype=np.uint64)
    bits = np.asarray(weights, dtype=np.float64).view(np.uint64)
    with np.errstate(over="ignore"):
        for part in (sources.astype(np.uint64), targets.astype(np.uint64), bits):
            mixed = mix64(mixed + np.uint64(0x9E3779B97F4A7C15) ^ part)
        return int(mixed.sum(dtype=np.uint64))


def add_checksums(total: int, more: int, less: int = 0) -> int:
    """Add to a checksum of edges, and subtract from it."""
    return (total + more - less) % _WORD


def node_checksum(connection: Any, node_type: int, where: str, values: list[Any]) -> int:
    """Return the checksum of some nodes: 64 bits of the MD5 of type, key, id and name each."""
    row = f"concat_ws('\x1f', '{node_type}', key, id, name)"
    query = f"SELECT coalesce(sum(md5_number_lower({row})), 0)::VARCHAR FROM nodes_{node_type} WHERE {where}"  # noqa: S608
    return int(run(connection, query, values)[0][0])


def checksum_of_node(node_type: int, key: int, id_: Id, name: str | None) -> int:
    """Return what one node adds to `node_checksum`."""
    parts = (str(node_type), str(key), str(id_), *(() if name is None else (name,)))
    digest = md5("\x1f".join(parts).encode(), usedforsecurity=False).digest()
    return int.from_bytes(digest[8:], "little")


# ---- Matrices of edges ---------------------------------------------------------------------------
def to_matrix(indptr: NDArray[np.integer], indices: NDArray[np.integer], data: Floats, shape: tuple[int, int]) -> Csr:
    """Return a matrix over sorted arrays, which may be memory-mapped, without a copy."""
    if len(indptr) != shape[0] + 1 or len(indices) != len(data) or int(indptr[-1]) != len(data):
        raise ValueError(f"arrays of {len(indptr)}, {len(indices)} and {len(data)} do not make a matrix of {shape}")
    matrix = csr_array((data, indices, indptr), shape=shape, copy=False)
    matrix.has_sorted_indices = True
    return matrix


def from_edges(sources: Rows, targets: Rows, weights: Floats, shape: tuple[int, int], directed: bool) -> Csr:
    """Return the matrix of edges, each listed once; those of an undirected relation go both ways."""
    rows, columns, values = in_both_directions(sources, targets, weights, directed)
    return freeze(coo_array((values, (rows, columns)), shape=shape).tocsr())


def in_both_directions(sources: Rows, targets: Rows, weights: Floats, directed: bool) -> Triplets:
    """Return edges, those of an undirected relation in both directions."""
    if directed:
        return sources, targets, weights
    other = sources != targets
    rows, columns = np.concatenate([sources, targets[other]]), np.concatenate([targets, sources[other]])
    return rows, columns, np.concatenate([weights, weights[other]])


def edges_of(matrix: Csr, directed: bool) -> Triplets:
    """List the edges of a matrix in order, those of an undirected relation once."""
    entries = matrix.tocoo()
    rows, columns, weights = entries.row.astype(np.int64), entries.col.astype(np.int64), entries.data
    if directed:
        return rows, columns, weights
    kept = rows <= columns
    return rows[kept], columns[kept], weights[kept]


def enlarged(matrix: Csr, shape: tuple[int, int]) -> Csr:
    """Return the matrix with empty rows and columns added at its end."""
    if matrix.shape == shape:
        return matrix
    indptr = np.concatenate([matrix.indptr, np.full(shape[0] - matrix.shape[0], matrix.indptr[-1])])
    return to_matrix(indptr.astype(matrix.indptr.dtype), matrix.indices, matrix.data, shape)


def overlaid(matrix: Csr, rows: Rows, columns: Rows, weights: Floats) -> Csr:
    """Return the matrix with some entries replaced, each listed once; weight 0 removes an entry."""
    if not len(rows):
        return matrix
    pattern = csr_array((np.ones(len(rows)), (rows, columns)), shape=matrix.shape)
    cleared = csr_array(matrix - matrix.multiply(pattern))
    result = csr_array(cleared + csr_array((weights, (rows, columns)), shape=matrix.shape))
    result.eliminate_zeros()
    return freeze(result)


def restricted(matrix: Csr, rows: Mask, columns: Mask) -> Csr:
    """Return the matrix of the marked rows and columns."""
    if not rows.all():
        matrix = csr_array(matrix[np.flatnonzero(rows)])
    if not columns.all():
        matrix = csr_array(matrix[:, np.flatnonzero(columns)])
    return freeze(matrix) if matrix.data.flags.writeable else matrix

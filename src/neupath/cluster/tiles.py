"""Tiles: a sparse matrix cut by rows and by columns, a file a tile, of which a process holds a strip at a time.

Rows and columns are cut, never sums: an entry of a product of strips is added up in the same order as in the product of
the whole matrices, and is the same to the bit.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array, hstack, vstack

from neupath.cluster.arrays import read_arrays, write_arrays
from neupath.graph import Csr, Floats, freeze

Cut = tuple[int, ...]
"""Where stretches of rows or columns begin, and where the last one ends."""


_AN_ENTRY = 12
"""Bytes of an entry in a file: its value and its column."""


@dataclass(frozen=True)
class Tiles:
    """A matrix on disk: tile (i, j) has the rows rows[i] to rows[i+1] and the columns columns[j] to columns[j+1]."""

    folder: Path
    rows: Cut
    columns: Cut

    @property
    def shape(self) -> tuple[int, int]:
        """How many tiles there are, down and across."""
        return len(self.rows) - 1, len(self.columns) - 1

    def row_strip(self, i: int) -> Csr:
        """Return some rows of the matrix."""
        return freeze(csr_array(hstack([self.read(i, j) for j in range(self.shape[1])], format="csr")))

    def column_strip(self, j: int) -> Csr:
        """Return some columns of the matrix."""
        return freeze(csr_array(vstack([self.read(i, j) for i in range(self.shape[0])], format="csr")))

    def row_groups(self, most: int) -> list[range]:
        """Take neighbouring strips of rows together that have about `most` entries."""
        return group([sum(self._entries(i, j) for j in range(self.shape[1])) for i in range(self.shape[0])], most)

    def column_groups(self, most: int) -> list[range]:
        """Take neighbouring strips of columns together that have about `most` entries."""
        return group([sum(self._entries(i, j) for i in range(self.shape[0])) for j in range(self.shape[1])], most)

    def rows_in(self, strips: range) -> Csr:
        """Return the rows of some neighbouring strips."""
        return freeze(csr_array(vstack([self.row_strip(i) for i in strips], format="csr")))

    def columns_in(self, strips: range) -> Csr:
        """Return the columns of some neighbouring strips."""
        return freeze(csr_array(hstack([self.column_strip(j) for j in strips], format="csr")))

    def _entries(self, i: int, j: int) -> int:
        """Return about how many entries a tile has, by the size of its file."""
        return self._path(i, j).stat().st_size // _AN_ENTRY

    def write(self, i: int, j: int, tile: Csr) -> None:
        write_arrays(self._path(i, j), tile.indptr, tile.indices, tile.data)

    def write_strip(self, i: int, strip: Csr) -> None:
        """Write some rows of the matrix as tiles."""
        if self.shape[1] == 1:
            self.write(i, 0, strip)
            return
        by_column = strip.tocsc()  # of which stretches of columns are cheap to take
        for j, (left, right) in enumerate(pairwise(self.columns)):
            self.write(i, j, csr_array(by_column[:, left:right].tocsr()))

    def read(self, i: int, j: int) -> Csr:
        """Read one tile."""
        indptr, indices, data = read_arrays(self._path(i, j))
        shape = self.rows[i + 1] - self.rows[i], self.columns[j + 1] - self.columns[j]
        return csr_array((data, indices, indptr), shape=shape)

    def _path(self, i: int, j: int) -> Path:
        return self.folder / f"{i:04}-{j:04}"


def cut_matrix(matrix: Csr, folder: Path, rows: Cut, columns: Cut) -> Tiles:
    """Write a matrix as tiles."""
    folder.mkdir(parents=True, exist_ok=True)
    tiles = Tiles(folder, rows, columns)
    for i, (first, last) in enumerate(pairwise(rows)):
        tiles.write_strip(i, csr_array(matrix[first:last]))
    return tiles


def group(sizes: Sequence[int], most: int) -> list[range]:
    """Take neighbours together that have at most `most` in all, or one alone that has more.

    >>> group([2, 2, 3, 9, 1], 5)
    [range(0, 2), range(2, 3), range(3, 4), range(4, 5)]
    """
    found, first, held = [], 0, 0
    for at, size in enumerate(sizes):
        if at > first and held + size > most:
            found.append(range(first, at))
            first, held = at, 0
        held += size
    return [*found, range(first, len(sizes))] if len(sizes) else []


def cut_evenly(weights: Floats, count: int) -> Cut:
    """Cut a row of nodes into at most `count` stretches of about the same weight; a heavy node may be one of its own.

    >>> cut_evenly(np.array([1.0, 1.0, 1.0, 9.0, 1.0, 1.0]), 3)
    (0, 3, 4, 6)
    """
    edges = np.concatenate([[0.0], np.cumsum(weights)])
    marks = edges[-1] * np.arange(1, count) / count
    after = np.searchsorted(edges, marks)
    before = np.maximum(after - 1, 0)
    nearest = np.unique(np.where(marks - edges[before] < edges[after] - marks, before, after))
    return (0, *(int(place) for place in nearest if 0 < place < len(weights)), len(weights))

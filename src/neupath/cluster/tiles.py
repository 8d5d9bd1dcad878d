"""Tiles: a sparse matrix cut by rows and by columns, a file a tile, of which a process holds a strip at a time.

Rows and columns are cut, never sums: an entry of a product of strips is added up in the same order as in the product of
the whole matrices, and is the same to the bit.
"""

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array, hstack, load_npz, save_npz, vstack

from neupath.files import write_whole
from neupath.graph import Csr, Floats, freeze

Cut = tuple[int, ...]
"""Where stretches of rows or columns begin, and where the last one ends."""


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
        return freeze(csr_array(hstack([self._read(i, j) for j in range(self.shape[1])], format="csr")))

    def column_strip(self, j: int) -> Csr:
        """Return some columns of the matrix."""
        return freeze(csr_array(vstack([self._read(i, j) for i in range(self.shape[0])], format="csr")))

    def write(self, i: int, j: int, tile: Csr) -> None:
        write_whole(self._path(i, j), lambda temporary: save_npz(temporary, tile, compressed=False))

    def _read(self, i: int, j: int) -> Csr:
        return csr_array(load_npz(self._path(i, j)))

    def _path(self, i: int, j: int) -> Path:
        return self.folder / f"{i:04}-{j:04}.npz"


def cut_matrix(matrix: Csr, folder: Path, rows: Cut, columns: Cut) -> Tiles:
    """Write a matrix as tiles."""
    folder.mkdir(parents=True, exist_ok=True)
    tiles = Tiles(folder, rows, columns)
    for i, (first, last) in enumerate(pairwise(rows)):
        strip = matrix[first:last]
        if len(columns) == 2:
            tiles.write(i, 0, csr_array(strip))
            continue
        by_column = strip.tocsc()  # of which stretches of columns are cheap to take
        for j, (left, right) in enumerate(pairwise(columns)):
            tiles.write(i, j, csr_array(by_column[:, left:right].tocsr()))
    return tiles


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

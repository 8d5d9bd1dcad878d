"""Tiles: a sparse matrix cut by rows and by columns into files, of which a process holds a strip at a time.

Rows and columns are cut, but never sums: an entry of a product of strips is added up in the same order as in the
product of the whole matrices, and so is equal to the bit.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array, hstack, vstack

from neupath._runtime.files import write_whole
from neupath.graph.hin import Csr, Floats, freeze

Cut = tuple[int, ...]  # where stretches of rows or columns begin, and where the last one ends
_PER_ENTRY = 12  # bytes of an entry in a file: its value and its column


@dataclass(frozen=True)
class Tiles:
    """A matrix on disk: tile (i, j) has the rows rows[i] to rows[i+1] and the columns columns[j] to columns[j+1]."""

    folder: Path
    rows: Cut
    columns: Cut

    @property
    def shape(self) -> tuple[int, int]:
        """The number of tiles down and across."""
        return len(self.rows) - 1, len(self.columns) - 1

    def row_strip(self, i: int) -> Csr:
        return freeze(csr_array(hstack([self.read(i, j) for j in range(self.shape[1])], format="csr")))

    def column_strip(self, j: int) -> Csr:
        return freeze(csr_array(vstack([self.read(i, j) for i in range(self.shape[0])], format="csr")))

    def row_groups(self, most: int) -> list[range]:
        """Group neighbouring strips of rows with about `most` entries."""
        return group([sum(self._entries(i, j) for j in range(self.shape[1])) for i in range(self.shape[0])], most)

    def column_groups(self, most: int) -> list[range]:
        """Group neighbouring strips of columns with about `most` entries."""
        return group([sum(self._entries(i, j) for i in range(self.shape[0])) for j in range(self.shape[1])], most)

    def rows_in(self, strips: range) -> Csr:
        return freeze(csr_array(vstack([self.row_strip(i) for i in strips], format="csr")))

    def columns_in(self, strips: range) -> Csr:
        return freeze(csr_array(hstack([self.column_strip(j) for j in strips], format="csr")))

    def _entries(self, i: int, j: int) -> int:
        """Estimate the entries of a tile by the size of its file."""
        return self._path(i, j).stat().st_size // _PER_ENTRY

    def write(self, i: int, j: int, tile: Csr) -> None:
        """Write a tile atomically, since a task that was lost may run a second time."""

        def write_arrays(temporary: Path) -> None:
            with temporary.open("wb") as stream:
                for array in (tile.indptr, tile.indices, tile.data):
                    np.save(stream, array, allow_pickle=False)

        write_whole(self._path(i, j), write_arrays)

    def write_strip(self, i: int, strip: Csr) -> None:
        if self.shape[1] == 1:
            self.write(i, 0, strip)
            return
        by_column = strip.tocsc()  # cheap to cut by columns
        for j, (left, right) in enumerate(pairwise(self.columns)):
            self.write(i, j, csr_array(by_column[:, left:right].tocsr()))

    def read(self, i: int, j: int) -> Csr:
        with self._path(i, j).open("rb") as stream:
            indptr, indices, data = (np.load(stream) for _ in range(3))
        shape = self.rows[i + 1] - self.rows[i], self.columns[j + 1] - self.columns[j]
        return csr_array((data, indices, indptr), shape=shape)

    def _path(self, i: int, j: int) -> Path:
        return self.folder / f"{i:04}-{j:04}"


def cut_matrix(matrix: Csr, folder: Path, rows: Cut, columns: Cut) -> Tiles:
    """Write a matrix as tiles."""
    folder.mkdir(parents=True, exist_ok=True)
    tiles = Tiles(folder, rows, columns)
    for i, (first, last) in enumerate(pairwise(rows)):
        tiles.write_strip(i, matrix if last - first == matrix.shape[0] else csr_array(matrix[first:last]))
    return tiles


def group(sizes: Sequence[int], most: int) -> list[range]:
    """Group neighbours of a total size of at most `most`; a larger one is a group of its own.

    >>> group([2, 2, 3, 9, 1], 5)
    [range(0, 2), range(2, 3), range(3, 4), range(4, 5)]
    """
    groups, first, total = [], 0, 0
    for at, size in enumerate(sizes):
        if at > first and total + size > most:
            groups.append(range(first, at))
            first, total = at, 0
        total += size
    return [*groups, range(first, len(sizes))] if len(sizes) else []


def cut_evenly(weights: Floats, count: int) -> Cut:
    """Cut a row of nodes into at most `count` stretches of similar weight; a heavy node is a stretch of its own.

    >>> cut_evenly(np.array([1.0, 1.0, 1.0, 9.0, 1.0, 1.0]), 3)
    (0, 3, 4, 6)
    """
    edges = np.concatenate([[0.0], np.cumsum(weights)])
    marks = edges[-1] * np.arange(1, count) / count
    after = np.searchsorted(edges, marks)
    before = np.maximum(after - 1, 0)
    nearest = np.unique(np.where(marks - edges[before] < edges[after] - marks, before, after))
    return (0, *(int(place) for place in nearest if 0 < place < len(weights)), len(weights))

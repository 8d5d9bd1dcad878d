"""Tiles: a sparse matrix cut by rows and by columns, a file a tile, of which a process holds a strip at a time."""

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from threading import get_ident
from typing import Any, BinaryIO, TypeVar, cast

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray
from scipy.sparse import csr_array, hstack, vstack

from neupath._runtime.files import write_whole
from neupath.graph.hin import Csr, Floats, freeze

# ---- What each thread of a worker read last, for its next task; one at a time, so that its memory is bounded
T = TypeVar("T")
_last: dict[int, tuple[Hashable, object]] = {}


def keep_last(key: Hashable, build: Callable[[], T]) -> T:
    """Return what this thread was asked for last, if the key is the same, or build it."""
    thread = get_ident()
    if thread not in _last or _last[thread][0] != key:
        _last.pop(thread, None)  # what was kept goes before the next one comes
        _last[thread] = key, build()
    return cast(T, _last[thread][1])


def forget() -> None:
    """Keep nothing any more: the work is done, and the worker may live on."""
    _last.clear()


# ---- Several arrays in one file, one after the other in NumPy's own format, of which a stretch can be read alone
Array = NDArray[Any]


def write_arrays(path: Path, *arrays: Array) -> None:
    """Write arrays of one dimension to a file, whole or not at all."""

    def write(temporary: Path) -> None:
        with temporary.open("wb") as stream:
            for array in arrays:
                npy.write_array(stream, array, version=(1, 0), allow_pickle=False)

    write_whole(path, write)


def read_arrays(path: Path, first: int = 0, last: int | None = None) -> list[Array]:
    """Read all arrays of a file, or the same stretch of each."""
    with path.open("rb") as stream:
        return list(_read(stream, path.stat().st_size, first, last))


def _read(stream: BinaryIO, size: int, first: int, last: int | None) -> Iterator[Array]:
    while stream.tell() < size:
        npy.read_magic(stream)
        (count,), _, kind = npy.read_array_header_1_0(stream)
        begins = stream.tell()
        stream.seek(begins + first * kind.itemsize)
        yield np.fromfile(stream, kind, (count if last is None else last) - first)
        stream.seek(begins + count * kind.itemsize)


# ---- Tiles ---------------------------------------------------------------------------------------
# Rows and columns are cut, never sums: an entry of a product of strips is added up in the same order as in the product of
# the whole matrices, and is the same to the bit.
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

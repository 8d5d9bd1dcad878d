"""Products: the two factors of a path, multiplied tile by tile on the workers, in the order one machine takes."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from neupath.chains import contract, tidy
from neupath.cluster.kept_block import keep_last
from neupath.cluster.tiles import Cut, Tiles, cut_evenly, cut_matrix
from neupath.cluster.workers import Workers
from neupath.graph import Csr, Floats
from neupath.halfpath import Halves, column_norms, squared_norms

Counts = NDArray[np.int64]
_MOST_STRIPS = 64
"""Tiles are at most this many squared: a file each, and a task."""


@dataclass
class _Counted:
    """A matrix on disk, and how many entries each row and each column of it has."""

    tiles: Tiles
    row_counts: Counts
    column_counts: Counts


@dataclass(frozen=True)
class Multiplied:
    """The factors of a path on disk, and their norms; without `right`, it is `left` transposed."""

    left: Tiles
    right: Tiles | None
    left_norms: Floats
    right_norms: Floats
    entries: Counts
    """Of each strip of targets."""

    @property
    def targets(self) -> Cut:
        """Where the strips of targets begin and end."""
        return self.left.rows if self.right is None else self.right.columns


def multiply_halves(halves: Halves, folder: Path, workers: Workers, most: int) -> Multiplied:
    """Multiply both halves of a path, with about `most` entries of a matrix in a strip."""
    left = _multiply(halves.lefts, folder / "left", workers, most, is_left=True)
    row_norms = np.concatenate(workers.each(_row_norms, [(left.tiles, i) for i in range(left.tiles.shape[0])]))
    if halves.rights is None:
        return Multiplied(left.tiles, None, row_norms, row_norms, _added_up(left.row_counts, left.tiles.rows))
    right = _multiply(halves.rights, folder / "right", workers, most, is_left=False)
    norms = np.concatenate(workers.each(_column_norms, [(right.tiles, j) for j in range(right.tiles.shape[1])]))
    return Multiplied(left.tiles, right.tiles, row_norms, norms, _added_up(right.column_counts, right.tiles.columns))


def _multiply(steps: Sequence[Csr], folder: Path, workers: Workers, most: int, *, is_left: bool) -> _Counted:
    """Multiply a chain as `chains.multiply_chain` does, so that sums run in the same order."""
    chain = [
        _Counted(
            cut_matrix(step, folder / f"step-{number}", rows, columns),
            np.diff(step.indptr).astype(np.int64),
            np.bincount(step.indices, minlength=step.shape[1]),
        )
        for number, (step, (rows, columns)) in enumerate(zip(steps, _cuts(steps, most, is_left), strict=True))
    ]

    def cost(at: int) -> int:
        return int(chain[at].column_counts @ chain[at + 1].row_counts)

    def multiply(at: int, _: int) -> _Counted:
        a, b = chain[at], chain[at + 1]
        return _multiply_pair(a, b, folder / f"product-{len(chain)}", workers)

    contract(chain, cost, multiply)
    return chain[0]


def _multiply_pair(a: _Counted, b: _Counted, folder: Path, workers: Workers) -> _Counted:
    folder.mkdir(parents=True, exist_ok=True)
    tiles = Tiles(folder, a.tiles.rows, b.tiles.columns)
    places = list(product(range(tiles.shape[1]), range(tiles.shape[0])))  # those of a column strip together
    found = workers.each(_multiply_tile, [(a.tiles, b.tiles, tiles, i, j) for j, i in places])
    row_counts, column_counts = np.zeros(tiles.rows[-1], np.int64), np.zeros(tiles.columns[-1], np.int64)
    for (j, i), (rows, columns) in zip(places, found, strict=True):
        row_counts[tiles.rows[i] : tiles.rows[i + 1]] += rows
        column_counts[tiles.columns[j] : tiles.columns[j + 1]] += columns
    return _Counted(tiles, row_counts, column_counts)


def _multiply_tile(left: Tiles, right: Tiles, made: Tiles, i: int, j: int) -> tuple[Counts, Counts]:
    """Write one tile of a product; return how many entries its rows and columns have."""
    columns = keep_last((right, j), lambda: right.column_strip(j))
    tile = tidy(csr_array(left.row_strip(i) @ columns))
    made.write(i, j, tile)
    return np.diff(tile.indptr).astype(np.int64), np.bincount(tile.indices, minlength=tile.shape[1])


def _row_norms(tiles: Tiles, i: int) -> Floats:
    return squared_norms(tiles.row_strip(i))


def _column_norms(tiles: Tiles, j: int) -> Floats:
    return column_norms(tiles.column_strip(j))


def _added_up(counts: Counts, cut: Cut) -> Counts:
    return np.array([counts[first:last].sum() for first, last in pairwise(cut)], dtype=np.int64)


def _cuts(steps: Sequence[Csr], most: int, is_left: bool) -> list[tuple[Cut, Cut]]:
    """Cut the rows and columns of each step, so that a strip of a step or a product has about `most` entries.

    What a product will have is bounded by its paths and its width. Of the first step only strips of rows are read, of
    the last only strips of columns: these are not cut the other way.
    """
    down = [_bound_rows(steps[at:]) for at in range(len(steps))]
    across = [_bound_columns(steps[:at]) for at in range(1, len(steps) + 1)]
    largest = max(float(bound.sum()) for bound in (*down, *across))
    count = min(_MOST_STRIPS, max(1, int(np.ceil(largest / most))))
    weights = [down[0], *(a + b for a, b in zip(across[:-1], down[1:], strict=True)), across[-1]]
    cuts = list(pairwise(cut_evenly(weight, count) for weight in weights))
    if is_left or len(steps) > 1:
        cuts[0] = cuts[0][0], (0, steps[0].shape[1])
    if not is_left or len(steps) > 1:
        cuts[-1] = (0, steps[-1].shape[0]), cuts[-1][1]
    return cuts


def _bound_rows(steps: Sequence[Csr]) -> Floats:
    """Bound the entries of each row of a chain's product."""
    paths = np.ones(steps[-1].shape[1])
    for step in reversed(steps):
        sums = np.concatenate([[0.0], np.cumsum(paths[step.indices])])
        paths = np.minimum(sums[step.indptr[1:]] - sums[step.indptr[:-1]], steps[-1].shape[1])
    return paths


def _bound_columns(steps: Sequence[Csr]) -> Floats:
    """Bound the entries of each column of a chain's product."""
    paths = np.ones(steps[0].shape[0])
    for step in steps:
        sums = np.bincount(step.indices, np.repeat(paths, np.diff(step.indptr)), step.shape[1])
        paths = np.minimum(sums, steps[0].shape[0])
    return paths

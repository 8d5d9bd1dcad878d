"""Steps: the matrices of a half of a path in tiles, cut so that strips of their products fit into a worker."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from neupath.cluster.tiles import Cut, Tiles, cut_evenly, cut_matrix
from neupath.cluster.workers import Workers
from neupath.graph import Csr, Floats

Counts = NDArray[np.int64]
_MOST_STRIPS = 1024
_MOST_SQUARED = 64
"""Strips of a step in the middle of a half, which is cut both ways: as many tiles, squared."""


class Counted:
    """A matrix on disk, and how many entries each row and each column of it has, counted when it is asked for."""

    def __init__(self, tiles: Tiles, rows: Counts | None = None, columns: Counts | None = None) -> None:
        self.tiles = tiles
        self._rows, self._columns = rows, columns

    def row_counts(self, workers: Workers) -> Counts:
        if self._rows is None:
            strips = range(self.tiles.shape[0])
            self._rows = np.concatenate(workers.each(count_rows, [(self.tiles, i) for i in strips]))
        return self._rows

    def column_counts(self, workers: Workers) -> Counts:
        if self._columns is None:
            strips = range(self.tiles.shape[1])
            self._columns = np.concatenate(workers.each(count_columns, [(self.tiles, j) for j in strips]))
        return self._columns


def count_rows(tiles: Tiles, i: int) -> Counts:
    """Count the entries of each row of a strip, a tile at a time."""
    counts = (np.diff(tiles.read(i, j).indptr) for j in range(tiles.shape[1]))
    return sum(counts, np.zeros(tiles.rows[i + 1] - tiles.rows[i], np.int64))


def count_columns(tiles: Tiles, j: int) -> Counts:
    """Count the entries of each column of a strip, a tile at a time."""
    width = tiles.columns[j + 1] - tiles.columns[j]
    counts = (np.bincount(tiles.read(i, j).indices, minlength=width) for i in range(tiles.shape[0]))
    return sum(counts, np.zeros(width, np.int64))


def cut_steps(steps: Sequence[Csr], folder: Path, most: int, *, is_left: bool) -> list[Counted]:
    """Write the steps of a half, which this process holds, as tiles."""
    down = [_bound_rows(steps[at:]) for at in range(len(steps))]
    across = [_bound_columns(steps[:at]) for at in range(1, len(steps) + 1)]
    cuts = find_cuts(down, across, most, is_left)
    return [
        Counted(
            cut_matrix(step, folder / f"step-{number}", rows, columns),
            np.diff(step.indptr).astype(np.int64),
            np.bincount(step.indices, minlength=step.shape[1]),
        )
        for number, (step, (rows, columns)) in enumerate(zip(steps, cuts, strict=True))
    ]


def find_cuts(down: Sequence[Floats], across: Sequence[Floats], most: int, is_left: bool) -> list[tuple[Cut, Cut]]:
    """Cut the rows and columns of each step, so that a strip of a step or a product has about `most` entries.

    `down` bounds the entries of each row of the product of a step and all that follow, `across` those of each column of
    the product of a step and all before it. Of the first step only strips of rows are read, of the last only strips of
    columns: these are not cut the other way.
    """
    largest = max(float(bound.sum()) for bound in (*down, *across))
    count = min(_MOST_STRIPS if len(down) <= 2 else _MOST_SQUARED, max(1, int(np.ceil(largest / most))))
    weights = [down[0], *(a + b for a, b in zip(across[:-1], down[1:], strict=True)), across[-1]]
    cuts = list(pairwise(cut_evenly(weight, count) for weight in weights))
    if is_left or len(cuts) > 1:
        cuts[0] = cuts[0][0], (0, cuts[0][1][-1])
    if not is_left or len(cuts) > 1:
        cuts[-1] = (0, cuts[-1][0][-1]), cuts[-1][1]
    return cuts


def _bound_rows(steps: Sequence[Csr]) -> Floats:
    """Bound the entries of each row of a chain's product by its paths and its width."""
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

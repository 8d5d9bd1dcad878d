"""Products: the two factors of a path, multiplied tile by tile on the workers, in the order one machine takes."""

from dataclasses import dataclass
from itertools import pairwise, product
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array

from neupath.chains import contract, tidy
from neupath.cluster.kept_block import keep_last
from neupath.cluster.steps import Counted, Counts, cut_steps
from neupath.cluster.tiles import Cut, Tiles
from neupath.cluster.workers import Workers
from neupath.graph import Floats
from neupath.halfpath import Halves, column_norms, squared_norms


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
    left = cut_steps(halves.lefts, folder / "left", most, is_left=True)
    right = None if halves.rights is None else cut_steps(halves.rights, folder / "right", most, is_left=False)
    return multiply_tiles(left, right, folder, workers)


def multiply_tiles(lefts: list[Counted], rights: list[Counted] | None, folder: Path, workers: Workers) -> Multiplied:
    """Multiply both halves of a path, which lie in tiles."""
    left = _multiply(lefts, folder / "left", workers)
    row_norms = np.concatenate(workers.each(_row_norms, [(left.tiles, i) for i in range(left.tiles.shape[0])]))
    if rights is None:
        return Multiplied(left.tiles, None, row_norms, row_norms, _added_up(left.row_counts, left.tiles.rows))
    right = _multiply(rights, folder / "right", workers)
    norms = np.concatenate(workers.each(_column_norms, [(right.tiles, j) for j in range(right.tiles.shape[1])]))
    return Multiplied(left.tiles, right.tiles, row_norms, norms, _added_up(right.column_counts, right.tiles.columns))


def _multiply(chain: list[Counted], folder: Path, workers: Workers) -> Counted:
    """Multiply a chain as `chains.multiply_chain` does, so that sums run in the same order."""

    def cost(at: int) -> int:
        return int(chain[at].column_counts @ chain[at + 1].row_counts)

    def multiply(at: int, _: int) -> Counted:
        a, b = chain[at], chain[at + 1]
        return _multiply_pair(a, b, folder / f"product-{len(chain)}", workers)

    contract(chain, cost, multiply)
    return chain[0]


def _multiply_pair(a: Counted, b: Counted, folder: Path, workers: Workers) -> Counted:
    folder.mkdir(parents=True, exist_ok=True)
    tiles = Tiles(folder, a.tiles.rows, b.tiles.columns)
    places = list(product(range(tiles.shape[1]), range(tiles.shape[0])))  # those of a column strip together
    found = workers.each(_multiply_tile, [(a.tiles, b.tiles, tiles, i, j) for j, i in places])
    row_counts, column_counts = np.zeros(tiles.rows[-1], np.int64), np.zeros(tiles.columns[-1], np.int64)
    for (j, i), (rows, columns) in zip(places, found, strict=True):
        row_counts[tiles.rows[i] : tiles.rows[i + 1]] += rows
        column_counts[tiles.columns[j] : tiles.columns[j + 1]] += columns
    return Counted(tiles, row_counts, column_counts)


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

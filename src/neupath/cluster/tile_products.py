"""Products of tiles on workers: cut the legs of a path into tiles, multiply each half, one strip per task."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, hstack, vstack

from neupath.cluster.tiles import Cut, Tiles, cut_evenly, cut_matrix
from neupath.cluster.workers import Workers, cache_last
from neupath.engine.products import Halves, column_norms, contract, row_norms, tidy
from neupath.graph.hin import Csr, Floats, freeze

# ---- Cutting steps into tiles --------------------------------------------------------------------
Counts = NDArray[np.int64]
_BLOCK_ENTRIES = 1 << 20
_MOST_STRIPS = 1024
_MOST_STRIPS_PER_SIDE = 64  # of a step inside a half, which is cut by rows and by columns


class CountedTiles:
    """A matrix in tiles, and the number of entries of each row and column, counted when first needed."""

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


def cut_steps(steps: Sequence[Csr], folder: Path, most: int, *, is_left: bool) -> list[CountedTiles]:
    """Write the steps of a half as tiles, so that a strip of a step or of a product has about `most` entries.

    Tasks read only strips of rows of the first step and only strips of columns of the last, so these two are cut one
    way.
    """
    down, across = _bound_products(steps)
    largest = max(float(bound.sum()) for bound in (*down, *across))
    count = min(_MOST_STRIPS if len(steps) <= 2 else _MOST_STRIPS_PER_SIDE, max(1, int(np.ceil(largest / most))))
    weights = [down[0], *(a + b for a, b in zip(across[:-1], down[1:], strict=True)), across[-1]]
    cuts = list(pairwise(cut_evenly(weight, count) for weight in weights))
    if is_left or len(cuts) > 1:
        cuts[0] = cuts[0][0], (0, cuts[0][1][-1])
    if not is_left or len(cuts) > 1:
        cuts[-1] = (0, cuts[-1][0][-1]), cuts[-1][1]
    chain = []
    for number, (step, (row_cut, column_cut)) in enumerate(zip(steps, cuts, strict=True)):
        tiles = cut_matrix(step, folder / f"step-{number}", row_cut, column_cut)
        column_counts = (np.bincount(block.indices, minlength=step.shape[1]) for _, block in _row_blocks(step))
        columns = sum(column_counts, np.zeros(step.shape[1], np.int64))
        chain.append(CountedTiles(tiles, np.diff(step.indptr).astype(np.int64), columns))
    return chain


def _bound_products(steps: Sequence[Csr]) -> tuple[list[Floats], list[Floats]]:
    """Bound the entries of products along a chain of steps, by the paths they add up and by their width.

    Returns, for each step, bounds for each row of the product of it and all later steps, and for each column of the
    product of it and all earlier ones.
    """
    height, width = steps[0].shape[0], steps[-1].shape[1]
    down, across = [np.ones(width)], [np.ones(height)]
    for step in reversed(steps):
        paths = [block @ down[0] for _, block in _row_blocks(step)]
        down.insert(0, np.minimum(np.concatenate([np.zeros(0), *paths]), width))
    for step in steps:
        sums = (block.T @ across[-1][rows] for rows, block in _row_blocks(step))
        across.append(np.minimum(sum(sums, np.zeros(step.shape[1])), height))
    return down[:-1], across[1:]


def _row_blocks(step: Csr) -> Iterator[tuple[slice, Any]]:
    """Yield blocks of rows, with 1 for each entry, so that nothing as large as a mapped matrix is held in memory."""
    most = max(_BLOCK_ENTRIES, step.shape[1])  # as a number per column is held anyway, and added to for each block
    starts = np.searchsorted(step.indptr, np.arange(most, step.nnz, most))
    for first, last in pairwise(np.unique([0, *starts, step.shape[0]]).tolist()):
        begin, end = step.indptr[first], step.indptr[last]
        arrays = np.ones(end - begin), step.indices[begin:end], step.indptr[first : last + 1] - begin
        yield slice(first, last), csr_array(arrays, shape=(last - first, step.shape[1]))


# ---- Multiplying tiles ---------------------------------------------------------------------------
@dataclass(frozen=True)
class TiledProduct:
    """The factors of a path in tiles, and their norms; where `right` is None, it is `left` transposed."""

    left: Tiles
    right: Tiles | None
    left_norms: Floats
    right_norms: Floats
    row_counts: Counts  # the entries of each row of `left`
    entries: Counts  # the entries of each strip of targets


def multiply_halves(halves: Halves, folder: Path, workers: Workers, most: int) -> TiledProduct:
    """Multiply both halves, with about `most` entries in a strip."""
    left = _multiply(halves.lefts, folder / "left", workers, most, is_left=True)
    left_norms = np.concatenate(workers.each(_strip_row_norms, [(left.tiles, i) for i in range(left.tiles.shape[0])]))
    counts = left.row_counts(workers)
    if halves.rights is None:
        return TiledProduct(left.tiles, None, left_norms, left_norms, counts, _sum_stretches(counts, left.tiles.rows))
    right = _multiply(halves.rights, folder / "right", workers, most, is_left=False)
    norms = np.concatenate(workers.each(_strip_column_norms, [(right.tiles, j) for j in range(right.tiles.shape[1])]))
    entries = _sum_stretches(right.column_counts(workers), right.tiles.columns)
    return TiledProduct(left.tiles, right.tiles, left_norms, norms, counts, entries)


def _multiply(steps: Sequence[Csr], folder: Path, workers: Workers, most: int, *, is_left: bool) -> CountedTiles:
    """Multiply the steps of a half in the order of `engine.products.multiply_chain`, so that sums are equal to the bit.

    The first matrix of a chain is only read by strips of rows and the last by strips of columns, so a product at either
    end is cut one way, and a task computes a strip of it.
    """
    chain = cut_steps(steps, folder, most, is_left=is_left)

    def cost(at: int) -> int:
        return int(chain[at].column_counts(workers) @ chain[at + 1].row_counts(workers))

    def multiply(at: int, _: int) -> CountedTiles:
        a, b = chain[at].tiles, chain[at + 1].tiles
        place = folder / f"product-{len(chain)}"
        place.mkdir(parents=True, exist_ok=True)
        if at == 0 and (is_left or len(chain) > 2):
            product = Tiles(place, a.rows, (0, b.columns[-1]))
            rows = workers.each(multiply_rows, [(a, b, product, i, most) for i in range(a.shape[0])])
            return CountedTiles(product, rows=np.concatenate(rows))
        if at == len(chain) - 2:
            product = Tiles(place, (0, a.rows[-1]), b.columns)
            columns = workers.each(multiply_columns, [(a, b, product, j, most) for j in range(b.shape[1])])
            return CountedTiles(product, columns=np.concatenate(columns))
        product = Tiles(place, a.rows, b.columns)
        across, down = range(product.shape[1]), range(product.shape[0])
        workers.each(multiply_tile, [(a, b, product, i, j) for j in across for i in down])  # neighbours share a strip
        return CountedTiles(product)

    contract(chain, cost, multiply)
    return chain[0]


def multiply_rows(left: Tiles, right: Tiles, product: Tiles, i: int, most: int) -> Counts:
    """Write some rows of a product; return the entries of each."""
    rows = left.row_strip(i)
    parts = [tidy(csr_array(rows @ _cached_strips(right, own, Tiles.columns_in))) for own in right.column_groups(most)]
    strip = parts[0] if len(parts) == 1 else freeze(csr_array(hstack(parts, format="csr")))
    product.write(i, 0, strip)
    return np.diff(strip.indptr).astype(np.int64)


def multiply_columns(left: Tiles, right: Tiles, product: Tiles, j: int, most: int) -> Counts:
    """Write some columns of a product; return the entries of each."""
    columns = right.column_strip(j)
    parts = [tidy(csr_array(_cached_strips(left, own, Tiles.rows_in) @ columns)) for own in left.row_groups(most)]
    strip = parts[0] if len(parts) == 1 else freeze(csr_array(vstack(parts, format="csr")))
    product.write(0, j, strip)
    return np.bincount(strip.indices, minlength=strip.shape[1])


def _cached_strips(tiles: Tiles, strips: range, read: Callable[[Tiles, range], Csr]) -> Csr:
    # `read` is a plain function: each task has its own copy of the tiles, and their bound methods are unequal
    return cache_last((tiles, strips, read), lambda: read(tiles, strips))


def multiply_tile(left: Tiles, right: Tiles, product: Tiles, i: int, j: int) -> None:
    """Write one tile of a product."""
    columns = cache_last((right, j), lambda: right.column_strip(j))
    product.write(i, j, tidy(csr_array(left.row_strip(i) @ columns)))


def _strip_row_norms(tiles: Tiles, i: int) -> Floats:
    return row_norms(tiles.row_strip(i))


def _strip_column_norms(tiles: Tiles, j: int) -> Floats:
    return column_norms(tiles.column_strip(j))


def _sum_stretches(counts: Counts, cut: Cut) -> Counts:
    return np.array([counts[first:last].sum() for first, last in pairwise(cut)], dtype=np.int64)

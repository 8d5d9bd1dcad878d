"""Products of tiles on workers: cut the legs of a path into tiles, multiply each half, one strip per task."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, hstack, vstack

from neupath.cluster.ingestion import TiledGraph
from neupath.cluster.tiles import Cut, Tiles, cut_evenly, cut_matrix
from neupath.cluster.workers import Workers, cache_last
from neupath.engine.products import Halves, column_norms, contract, row_norms, tidy
from neupath.graph.hin import Csr, Floats, freeze
from neupath.graph.metapath import Link
from neupath.measures.path_measure import Leg

# ---- Cutting steps into tiles --------------------------------------------------------------------
Counts = NDArray[np.int64]
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
    """Cut the steps of a half, which are in memory, into tiles and write them."""
    down = [_bound_rows(steps[at:]) for at in range(len(steps))]
    across = [_bound_columns(steps[:at]) for at in range(1, len(steps) + 1)]
    cuts = find_cuts(down, across, most, is_left)
    return [
        CountedTiles(
            cut_matrix(step, folder / f"step-{number}", rows, columns),
            np.diff(step.indptr).astype(np.int64),
            np.bincount(step.indices, minlength=step.shape[1]),
        )
        for number, (step, (rows, columns)) in enumerate(zip(steps, cuts, strict=True))
    ]


def find_cuts(down: Sequence[Floats], across: Sequence[Floats], most: int, is_left: bool) -> list[tuple[Cut, Cut]]:
    """Cut the rows and columns of each step, so that a strip of a step or a product has about `most` entries.

    `down` bounds the entries of each row of the product of a step and all after it, `across` those of each column of
    the product of a step and all before it. Tasks read only strips of rows of the first step and only strips of
    columns of the last, so these two are cut one way.
    """
    largest = max(float(bound.sum()) for bound in (*down, *across))
    count = min(_MOST_STRIPS if len(down) <= 2 else _MOST_STRIPS_PER_SIDE, max(1, int(np.ceil(largest / most))))
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
    """Multiply both halves, given as matrices in memory, with about `most` entries in a strip."""
    left = cut_steps(halves.lefts, folder / "left", most, is_left=True)
    right = None if halves.rights is None else cut_steps(halves.rights, folder / "right", most, is_left=False)
    return multiply_tiles(left, right, folder, workers, most)


def multiply_tiles(
    lefts: list[CountedTiles], rights: list[CountedTiles] | None, folder: Path, workers: Workers, most: int
) -> TiledProduct:
    """Multiply both halves, given as tiles."""
    left = _multiply(lefts, folder / "left", workers, most, is_left=True)
    row_norms = np.concatenate(workers.each(_strip_row_norms, [(left.tiles, i) for i in range(left.tiles.shape[0])]))
    counts = left.row_counts(workers)
    if rights is None:
        return TiledProduct(left.tiles, None, row_norms, row_norms, counts, _sum_stretches(counts, left.tiles.rows))
    right = _multiply(rights, folder / "right", workers, most, is_left=False)
    norms = np.concatenate(workers.each(_strip_column_norms, [(right.tiles, j) for j in range(right.tiles.shape[1])]))
    entries = _sum_stretches(right.column_counts(workers), right.tiles.columns)
    return TiledProduct(left.tiles, right.tiles, row_norms, norms, counts, entries)


def _multiply(chain: list[CountedTiles], folder: Path, workers: Workers, most: int, *, is_left: bool) -> CountedTiles:
    """Multiply a chain in the order of `engine.products.multiply_chain`, so that sums run in the same order.

    The first matrix of a chain is only read by strips of rows and the last by strips of columns, so a product at either
    end is cut one way, and a task computes a strip of it.
    """

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


# ---- Cutting the legs of a graph in tiles --------------------------------------------------------
_ROW_SUMS, _COLUMN_SUMS = "row-sums.npy", "column-sums.npy"
Linked = tuple[tuple[Tiles, bool], ...]  # the tiles of each link of a step, and whether they are to be transposed


class LegCutter:
    """Cuts the legs of a path into tiles on the workers, where the graph itself is tiles."""

    def __init__(self, graph: TiledGraph, folder: Path, workers: Workers, most: int) -> None:
        self.graph, self.folder, self.workers, self.most = graph, folder, workers, most

    def cut(self, legs: Sequence[Leg], name: str, *, is_left: bool) -> list[CountedTiles]:
        down, across = self._bound(legs)
        cuts = find_cuts(down, across, self.most, is_left)
        return [
            self._cut_leg(leg, Tiles(self.folder / name / f"step-{number}", rows, columns))
            for number, (leg, (rows, columns)) in enumerate(zip(legs, cuts, strict=True))
        ]

    def _bound(self, legs: Sequence[Leg]) -> tuple[list[Floats], list[Floats]]:
        """Bound the entries of rows and columns of products along some legs, by their paths and their width."""
        first, last = (len(self.graph.ids[t]) for t in (legs[0].step.source, legs[-1].step.target))
        down, across = [np.ones(last)], [np.ones(first)]
        for leg in reversed(legs):
            down.append(np.minimum(self._count(leg.step.links, down[-1]), last))
        for leg in legs:
            across.append(np.minimum(self._count(leg.step.reversed().links, across[-1]), first))
        return down[:0:-1], across[1:]

    def _count(self, links: Sequence[Link], paths: Floats) -> Floats:
        """Return how many paths start at each row; `paths` is the number that start at each column."""
        file = self.folder / "paths.npy"
        np.save(file, paths)
        total = np.zeros(len(self.graph.ids[links[0].source]))
        for tiles, transposed in self.graph.links(tuple(links)):
            strips = range(tiles.shape[1] if transposed else tiles.shape[0])
            total += np.concatenate(self.workers.each(count_paths, [(tiles, transposed, s, file) for s in strips]))
        return total

    def _cut_leg(self, leg: Leg, tiles: Tiles) -> CountedTiles:
        """Write the matrix of a leg by strips of rows, or by strips of columns where only these are cut."""
        tiles.folder.mkdir(parents=True)
        out, back = (self.graph.links(step.links) for step in (leg.step, leg.step.reversed()))
        if leg.row_power:
            self._save_sums(_ROW_SUMS, out, axis=1)
        if leg.column_power:
            self._save_sums(_COLUMN_SUMS, back, axis=0)
        if tiles.shape[0] > 1 or tiles.shape[1] == 1:
            rows = self.workers.each(write_rows, [(out, leg, self.folder, tiles, i) for i in range(tiles.shape[0])])
            return CountedTiles(tiles, rows=np.concatenate(rows))
        columns = self.workers.each(write_columns, [(back, leg, self.folder, tiles, j) for j in range(tiles.shape[1])])
        return CountedTiles(tiles, columns=np.concatenate(columns))

    def _save_sums(self, name: str, linked: Linked, axis: int) -> None:
        tiles, transposed = linked[0]
        strips = pairwise(tiles.columns if transposed else tiles.rows)
        sums = self.workers.each(sum_strip, [(linked, *strip, axis) for strip in strips])
        np.save(self.folder / name, np.concatenate(sums))


def count_paths(tiles: Tiles, transposed: bool, strip: int, file: Path) -> Floats:
    """Add up, for each row of a strip, the paths from its columns on."""
    paths = np.load(file, mmap_mode="r")
    cut = tiles.rows if transposed else tiles.columns
    total: Floats = np.zeros(0)
    for at, (first, last) in enumerate(pairwise(cut)):
        tile = tiles.read(at, strip).T if transposed else tiles.read(strip, at)
        tile.data = np.ones(tile.nnz)
        counts = tile @ paths[first:last]
        total = counts if at == 0 else total + counts
    return total


def sum_strip(linked: Linked, first: int, last: int, axis: int) -> Floats:
    """Return the row sums of a strip, or for axis 0 its column sums, added in the order of the whole matrix."""
    strip = _rows(linked, first, last)
    sums: Floats = strip.sum(axis=1) if axis else csr_array(strip.T.tocsr()).sum(axis=0)
    return sums


def write_rows(out: Linked, leg: Leg, folder: Path, tiles: Tiles, i: int) -> Counts:
    """Write some rows of a leg's matrix as tiles; return the entries of each."""
    first, last = tiles.rows[i : i + 2]
    strip = _scale(leg, folder, _rows(out, first, last), slice(first, last), slice(None))
    tiles.write_strip(i, strip)
    return np.diff(strip.indptr).astype(np.int64)


def write_columns(back: Linked, leg: Leg, folder: Path, tiles: Tiles, j: int) -> Counts:
    """Write some columns of a leg's matrix, given their transpose, as one tile; return the entries of each."""
    first, last = tiles.columns[j : j + 2]
    columns = freeze(csr_array(_rows(back, first, last).T.tocsr()))
    strip = _scale(leg, folder, columns, slice(None), slice(first, last))
    tiles.write(0, j, strip)
    return np.bincount(strip.indices, minlength=last - first)


def _scale(leg: Leg, folder: Path, weights: Csr, rows: slice, columns: slice) -> Csr:
    """Scale some rows and columns of a step's weights by the saved sums."""
    return leg.scale(
        weights,
        lambda: np.load(folder / _ROW_SUMS, mmap_mode="r")[rows],
        lambda: np.load(folder / _COLUMN_SUMS, mmap_mode="r")[columns],
    )


def _rows(linked: Linked, first: int, last: int) -> Csr:
    """Return some rows of a step's matrix; a step over several relations adds them up."""
    total = _rows_of(*linked[0], first, last)
    for tiles, transposed in linked[1:]:
        total = csr_array(total + _rows_of(tiles, transposed, first, last))
    return freeze(total)


def _rows_of(tiles: Tiles, transposed: bool, first: int, last: int) -> Csr:
    cut, width = (tiles.columns, tiles.rows[-1]) if transposed else (tiles.rows, tiles.columns[-1])
    parts = [csr_array((0, width))]
    for strip, (begin, end) in enumerate(pairwise(cut)):
        if begin < last and end > first:
            whole = cache_last((tiles, transposed, strip), partial(_strip, tiles, transposed, strip))
            parts.append(whole[max(first, begin) - begin : min(last, end) - begin])
    return csr_array(vstack(parts, format="csr"))


def _strip(tiles: Tiles, transposed: bool, strip: int) -> Csr:
    return freeze(csr_array(tiles.column_strip(strip).T.tocsr())) if transposed else tiles.row_strip(strip)

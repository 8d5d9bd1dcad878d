"""Products: the two factors of a path, multiplied tile by tile on the workers, in the order one machine takes."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array, hstack, vstack

from neupath.chains import contract, tidy
from neupath.cluster.kept_block import keep_last
from neupath.cluster.steps import Counted, Counts, cut_steps
from neupath.cluster.tiles import Cut, Tiles
from neupath.cluster.workers import Workers
from neupath.graph import Csr, Floats, freeze
from neupath.halfpath import Halves, column_norms, squared_norms


@dataclass(frozen=True)
class Multiplied:
    """The factors of a path on disk, and their norms; without `right`, it is `left` transposed."""

    left: Tiles
    right: Tiles | None
    left_norms: Floats
    right_norms: Floats
    row_counts: Counts
    """Entries of each row of `left`."""
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
    return multiply_tiles(left, right, folder, workers, most)


def multiply_tiles(
    lefts: list[Counted], rights: list[Counted] | None, folder: Path, workers: Workers, most: int
) -> Multiplied:
    """Multiply both halves of a path, which lie in tiles."""
    left = _multiply(lefts, folder / "left", workers, most, is_left=True)
    row_norms = np.concatenate(workers.each(_row_norms, [(left.tiles, i) for i in range(left.tiles.shape[0])]))
    counts = left.row_counts(workers)
    if rights is None:
        return Multiplied(left.tiles, None, row_norms, row_norms, counts, _added_up(counts, left.tiles.rows))
    right = _multiply(rights, folder / "right", workers, most, is_left=False)
    norms = np.concatenate(workers.each(_column_norms, [(right.tiles, j) for j in range(right.tiles.shape[1])]))
    entries = _added_up(right.column_counts(workers), right.tiles.columns)
    return Multiplied(left.tiles, right.tiles, row_norms, norms, counts, entries)


def _multiply(chain: list[Counted], folder: Path, workers: Workers, most: int, *, is_left: bool) -> Counted:
    """Multiply a chain as `chains.multiply_chain` does, so that sums run in the same order.

    What comes first in a chain is only read by strips of rows, and what comes last by strips of columns: so it is cut
    but once, and a task makes a strip of it.
    """

    def cost(at: int) -> int:
        return int(chain[at].column_counts(workers) @ chain[at + 1].row_counts(workers))

    def multiply(at: int, _: int) -> Counted:
        a, b = chain[at].tiles, chain[at + 1].tiles
        place = folder / f"product-{len(chain)}"
        place.mkdir(parents=True, exist_ok=True)
        if at == 0 and (is_left or len(chain) > 2):
            made = Tiles(place, a.rows, (0, b.columns[-1]))
            rows = workers.each(multiply_rows, [(a, b, made, i, most) for i in range(a.shape[0])])
            return Counted(made, rows=np.concatenate(rows))
        if at == len(chain) - 2:
            made = Tiles(place, (0, a.rows[-1]), b.columns)
            columns = workers.each(multiply_columns, [(a, b, made, j, most) for j in range(b.shape[1])])
            return Counted(made, columns=np.concatenate(columns))
        made = Tiles(place, a.rows, b.columns)
        across, down = range(made.shape[1]), range(made.shape[0])
        workers.each(multiply_tile, [(a, b, made, i, j) for j in across for i in down])  # a column strip's together
        return Counted(made)

    contract(chain, cost, multiply)
    return chain[0]


def multiply_rows(left: Tiles, right: Tiles, made: Tiles, i: int, most: int) -> Counts:
    """Write some rows of a product; return how many entries each has."""
    rows = left.row_strip(i)
    parts = [tidy(csr_array(rows @ _kept(right, own, Tiles.columns_in))) for own in right.column_groups(most)]
    strip = parts[0] if len(parts) == 1 else freeze(csr_array(hstack(parts, format="csr")))
    made.write(i, 0, strip)
    return np.diff(strip.indptr).astype(np.int64)


def multiply_columns(left: Tiles, right: Tiles, made: Tiles, j: int, most: int) -> Counts:
    """Write some columns of a product; return how many entries each has."""
    columns = right.column_strip(j)
    parts = [tidy(csr_array(_kept(left, own, Tiles.rows_in) @ columns)) for own in left.row_groups(most)]
    strip = parts[0] if len(parts) == 1 else freeze(csr_array(vstack(parts, format="csr")))
    made.write(0, j, strip)
    return np.bincount(strip.indices, minlength=strip.shape[1])


def _kept(tiles: Tiles, strips: range, read: Callable[[Tiles, range], Csr]) -> Csr:
    """Read some strips, or keep them from the last task, which had the same where they are all there are."""
    # a bound method as key would equal none of another task, whose tiles are copies
    return keep_last((tiles, strips, read), lambda: read(tiles, strips))


def multiply_tile(left: Tiles, right: Tiles, made: Tiles, i: int, j: int) -> None:
    """Write one tile of a product."""
    columns = keep_last((right, j), lambda: right.column_strip(j))
    made.write(i, j, tidy(csr_array(left.row_strip(i) @ columns)))


def _row_norms(tiles: Tiles, i: int) -> Floats:
    return squared_norms(tiles.row_strip(i))


def _column_norms(tiles: Tiles, j: int) -> Floats:
    return column_norms(tiles.column_strip(j))


def _added_up(counts: Counts, cut: Cut) -> Counts:
    return np.array([counts[first:last].sum() for first, last in pairwise(cut)], dtype=np.int64)

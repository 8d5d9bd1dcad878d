"""Legs: the factors of a half of a path made by the workers, of a graph in tiles that no process holds."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array, vstack

from neupath.cluster.ingestion import TiledGraph
from neupath.cluster.kept_block import keep_last
from neupath.cluster.steps import Counted, Counts, find_cuts
from neupath.cluster.tiles import Tiles
from neupath.cluster.workers import Workers
from neupath.graph import Csr, Floats, freeze
from neupath.measures.path_measure import Leg, scale
from neupath.schema import Link

Linked = tuple[tuple[Tiles, bool], ...]
"""The tiles of each link of a step, and whether they are to be transposed."""


class LegCutter:
    """Cuts legs of a graph into tiles, on the workers."""

    def __init__(self, graph: TiledGraph, folder: Path, workers: Workers, most: int) -> None:
        self.graph, self.folder, self.workers, self.most = graph, folder, workers, most

    def cut(self, legs: Sequence[Leg], name: str, *, is_left: bool) -> list[Counted]:
        """Write the matrices of a half as tiles."""
        down, across = self._bound(legs)
        cuts = find_cuts(down, across, self.most, is_left)
        return [
            self._cut_leg(leg, Tiles(self.folder / name / f"step-{number}", rows, columns))
            for number, (leg, (rows, columns)) in enumerate(zip(legs, cuts, strict=True))
        ]

    def _bound(self, legs: Sequence[Leg]) -> tuple[list[Floats], list[Floats]]:
        """Bound the entries of rows and columns of products along some legs by their paths and their width."""
        first, last = (len(self.graph.ids[t]) for t in (legs[0].step.source, legs[-1].step.target))
        down, across = [np.ones(last)], [np.ones(first)]
        for leg in reversed(legs):
            down.append(np.minimum(self._count(leg.step.links, down[-1]), last))
        for leg in legs:
            across.append(np.minimum(self._count(leg.step.reversed().links, across[-1]), first))
        return down[:0:-1], across[1:]

    def _count(self, links: Sequence[Link], paths: Floats) -> Floats:
        """Add up, for each row, the paths that lead on from its columns."""
        file = self.folder / "paths.npy"
        np.save(file, paths)
        total = np.zeros(len(self.graph.ids[links[0].source]))
        for tiles, transposed in self.graph.links(tuple(links)):
            strips = range(tiles.shape[1] if transposed else tiles.shape[0])
            total += np.concatenate(self.workers.each(count_paths, [(tiles, transposed, s, file) for s in strips]))
        return total

    def _cut_leg(self, leg: Leg, tiles: Tiles) -> Counted:
        """Write the matrix of a leg by strips of rows, or by strips of columns where only these are cut."""
        tiles.folder.mkdir(parents=True)
        out, back = (self.graph.links(step.links) for step in (leg.step, leg.step.reversed()))
        row_sums, column_sums = self.folder / "row-sums.npy", self.folder / "column-sums.npy"
        if leg.row_power:
            self._save_sums(row_sums, sum_rows, out)
        if leg.column_power:
            self._save_sums(column_sums, sum_columns, back)
        scaling = Scaling(leg.row_power, leg.column_power, row_sums, column_sums)
        if tiles.shape[0] > 1 or tiles.shape[1] == 1:
            rows = self.workers.each(write_rows, [(out, scaling, tiles, i) for i in range(tiles.shape[0])])
            return Counted(tiles, rows=np.concatenate(rows))
        columns = self.workers.each(write_columns, [(back, scaling, tiles, j) for j in range(tiles.shape[1])])
        return Counted(tiles, columns=np.concatenate(columns))

    def _save_sums(self, file: Path, work: Callable[[Linked, int, int], Floats], linked: Linked) -> None:
        tiles, transposed = linked[0]
        strips = pairwise(tiles.columns if transposed else tiles.rows)
        np.save(file, np.concatenate(self.workers.each(work, [(linked, *strip) for strip in strips])))


@dataclass(frozen=True)
class Scaling:
    """By which powers of their sums rows and columns are multiplied, and where the sums lie."""

    row_power: float
    column_power: float
    row_sums: Path
    column_sums: Path

    def apply(self, matrix: Csr, rows: slice, columns: slice) -> Csr:
        """Scale some rows and columns of a leg's matrix."""
        return scale(
            matrix,
            self.row_power,
            self.column_power,
            lambda: np.load(self.row_sums, mmap_mode="r")[rows],
            lambda: np.load(self.column_sums, mmap_mode="r")[columns],
        )


def count_paths(tiles: Tiles, transposed: bool, strip: int, file: Path) -> Floats:
    """Add up, for each row of a strip, the paths that lead on from its columns."""
    paths = np.load(file, mmap_mode="r")
    cut = tiles.rows if transposed else tiles.columns
    total: Floats = np.zeros(0)
    for at, (first, last) in enumerate(pairwise(cut)):
        tile = tiles.read(at, strip).T if transposed else tiles.read(strip, at)
        tile.data = np.ones(tile.nnz)
        found = tile @ paths[first:last]
        total = found if at == 0 else total + found
    return total


def sum_rows(out: Linked, first: int, last: int) -> Floats:
    """Add up some rows of a step."""
    sums: Floats = _rows(out, first, last).sum(axis=1)
    return sums


def sum_columns(back: Linked, first: int, last: int) -> Floats:
    """Add up some columns of a step, given the way back, in the order in which those of a whole matrix add up."""
    sums: Floats = csr_array(_rows(back, first, last).T.tocsr()).sum(axis=0)
    return sums


def write_rows(out: Linked, scaling: Scaling, tiles: Tiles, i: int) -> Counts:
    """Write some rows of a leg's matrix as tiles; return how many entries each has."""
    first, last = tiles.rows[i : i + 2]
    strip = scaling.apply(_rows(out, first, last), slice(first, last), slice(None))
    tiles.write_strip(i, strip)
    return np.diff(strip.indptr).astype(np.int64)


def write_columns(back: Linked, scaling: Scaling, tiles: Tiles, j: int) -> Counts:
    """Write some columns of a leg's matrix, given the way back, as one tile; return how many entries each has."""
    first, last = tiles.columns[j : j + 2]
    columns = freeze(csr_array(_rows(back, first, last).T.tocsr()))
    strip = scaling.apply(columns, slice(None), slice(first, last))
    tiles.write(0, j, strip)
    return np.bincount(strip.indices, minlength=last - first)


def _rows(linked: Linked, first: int, last: int) -> Csr:
    """Return some rows of a step's matrix; a step over several relations adds them up."""
    total: Csr | None = None
    for tiles, transposed in linked:
        found = _rows_of(tiles, transposed, first, last)
        total = found if total is None else csr_array(total + found)
    assert total is not None
    return freeze(total)


def _rows_of(tiles: Tiles, transposed: bool, first: int, last: int) -> Csr:
    cut, width = (tiles.columns, tiles.rows[-1]) if transposed else (tiles.rows, tiles.columns[-1])
    found = [csr_array((0, width))]
    for strip, (begin, end) in enumerate(pairwise(cut)):
        if begin < last and end > first:
            whole = keep_last((tiles, transposed, strip), partial(_strip, tiles, transposed, strip))
            found.append(whole[max(first, begin) - begin : min(last, end) - begin])
    return csr_array(vstack(found, format="csr"))


def _strip(tiles: Tiles, transposed: bool, strip: int) -> Csr:
    return freeze(csr_array(tiles.column_strip(strip).T.tocsr())) if transposed else tiles.row_strip(strip)

"""Strips: a sparse matrix as files of some rows each, and products of such matrices on workers.

They are equal to the bit to products of the whole matrices, since every entry is added up in the same order.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, hstack, vstack

from neupath._runtime.files import write_whole
from neupath.cluster.workers import Workers, cache_last
from neupath.engine.products import Halves, check_smallest, column_norms, contract, row_norms, tidy
from neupath.graph.hin import Csr, Floats, freeze

Counts = NDArray[np.int64]
Cut = tuple[int, ...]  # where stretches of rows begin, and where the last one ends
_PER_ENTRY = 12  # bytes of an entry in a file: its value and its column
_BLOCK_ENTRIES = 1 << 20
_MOST_STRIPS = 1024


# ---- Matrices in files ---------------------------------------------------------------------------
@dataclass(frozen=True)
class Strips:
    """A matrix on disk: file i has the rows cut[i] to cut[i+1]."""

    folder: Path
    cut: Cut
    width: int

    @property
    def numbers(self) -> range:
        return range(len(self.cut) - 1)

    def rows_of(self, strips: range) -> slice:
        """Return the rows that neighbouring strips have."""
        return slice(self.cut[strips.start], self.cut[strips.stop])

    def read(self, strips: range) -> Csr:
        """Read neighbouring strips as one matrix."""
        return freeze(csr_array(vstack([self._read_one(i) for i in strips], format="csr")))

    def _read_one(self, i: int) -> Csr:
        with self._path(i).open("rb") as stream:
            indptr, indices, data = (np.load(stream) for _ in range(3))
        return csr_array((data, indices, indptr), shape=(len(indptr) - 1, self.width))

    def write(self, i: int, strip: Csr) -> None:
        """Write a strip atomically, since a task that was lost may run a second time."""

        def write_arrays(temporary: Path) -> None:
            with temporary.open("wb") as stream:
                for array in (strip.indptr, strip.indices, strip.data):
                    np.save(stream, array, allow_pickle=False)

        write_whole(self._path(i), write_arrays)

    def groups(self, most: int) -> list[range]:
        """Group neighbouring strips with about `most` entries, which the sizes of their files tell."""
        return group([self._path(i).stat().st_size // _PER_ENTRY for i in self.numbers], most)

    def _path(self, i: int) -> Path:
        return self.folder / f"{i:04}"


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


# ---- Factors of a product ------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class Factor:
    """A matrix in strips, and the number of entries of each row."""

    strips: Strips
    row_counts: Counts

    @cached_property
    def column_counts(self) -> Counts:
        """Read all strips, one at a time: only the order in which three or more matrices are multiplied needs this."""
        counts = np.zeros(self.strips.width, np.int64)
        for i in self.strips.numbers:
            counts += np.bincount(self.strips.read(range(i, i + 1)).indices, minlength=self.strips.width)
        return counts


def cut_steps(steps: Sequence[Csr], folder: Path, most: int) -> Iterator[Factor]:
    """Write each step of a half as strips; one of it, or of its product with later steps, has about `most` entries."""
    bounds = _bound_products(steps)
    count = max(1, int(np.ceil(max(float(bound.sum()) for bound in bounds) / most)))
    for number, (step, bound) in enumerate(zip(steps, bounds, strict=True)):
        strips = Strips(folder / f"step-{number}", cut_evenly(bound, min(_MOST_STRIPS, count)), step.shape[1])
        strips.folder.mkdir(parents=True)
        for i in strips.numbers:
            strips.write(i, csr_array(step[strips.rows_of(range(i, i + 1))]))
        yield Factor(strips, np.diff(step.indptr).astype(np.int64))


def _bound_products(steps: Sequence[Csr]) -> list[Floats]:
    """Bound, for each step, the entries in each row of it and of its products with later steps.

    A row of a product has as many entries as paths at most, and as the product has columns.
    """
    bounds: list[Floats] = []
    widths: list[int] = []
    paths = np.ones((steps[-1].shape[1], 0))
    for step in reversed(steps):
        widths = [step.shape[1], *widths]
        paths = np.column_stack([np.ones(len(paths)), paths])
        paths = np.concatenate([np.zeros((0, len(widths))), *(block @ paths for block in _row_blocks(step))])
        paths = np.minimum(paths, widths)
        bounds.insert(0, paths.max(axis=1))
    return bounds


def _row_blocks(step: Csr) -> Iterator[Any]:
    """Yield blocks of rows, with 1 for each entry, so that nothing as large as a mapped matrix is held in memory."""
    starts = np.searchsorted(step.indptr, np.arange(_BLOCK_ENTRIES, step.nnz, _BLOCK_ENTRIES))
    for first, last in pairwise(np.unique([0, *starts, step.shape[0]]).tolist()):
        begin, end = step.indptr[first], step.indptr[last]
        arrays = np.ones(end - begin), step.indices[begin:end], step.indptr[first : last + 1] - begin
        yield csr_array(arrays, shape=(last - first, step.shape[1]))


# ---- Multiplying ---------------------------------------------------------------------------------
@dataclass(frozen=True)
class StripProduct:
    """The factors of a path, the right one transposed, so that both have a row per node."""

    left: Strips
    right: Strips
    """Equal to `left` where the path is symmetric."""
    left_norms: Floats
    right_norms: Floats
    row_counts: Counts  # the entries of each row of `left`
    entries: Counts  # the entries of each strip of targets


def multiply_halves(halves: Halves, folder: Path, workers: Workers, most: int) -> StripProduct:
    """Multiply both halves, with about `most` entries in a strip."""
    left = right = _multiply(halves.lefts, folder / "left", workers, most)
    left_norms = right_norms = _norms(left.strips, workers)
    if halves.rights is not None:
        right = _multiply(halves.rights, folder / "right", workers, most, transposed=True)
        right_norms = _norms(right.strips, workers, transposed=True)
    stretches = (right.row_counts[first:last] for first, last in pairwise(right.strips.cut))
    entries = np.array([stretch.sum() for stretch in stretches], dtype=np.int64)
    return StripProduct(left.strips, right.strips, left_norms, right_norms, left.row_counts, entries)


def _multiply(steps: Sequence[Csr], folder: Path, workers: Workers, most: int, *, transposed: bool = False) -> Factor:
    """Multiply the steps of a half in the order of `engine.products.multiply_chain`, so that sums are equal to the bit.

    The product is transposed by transposing each step: (A·B)ᵀ = Bᵀ·Aᵀ adds up the same numbers in the same order.
    """
    check_smallest(steps)
    ordered = [freeze(csr_array(step.T.tocsr())) for step in reversed(steps)] if transposed else steps
    chain = list(cut_steps(ordered, folder, most))[:: -1 if transposed else 1]

    def factors(at: int) -> list[Factor]:
        return chain[at : at + 2][:: -1 if transposed else 1]

    def cost(at: int) -> int:
        left, right = factors(at)
        return int(left.column_counts @ right.row_counts) if len(chain) > 2 else 0

    def multiply(at: int, _: int) -> Factor:
        left, right = (factor.strips for factor in factors(at))
        product = Strips(folder / f"product-{len(chain)}", left.cut, right.width)
        product.folder.mkdir()
        rows = workers.each(multiply_strip, [(left, right, product, i, most) for i in left.numbers])
        return Factor(product, np.concatenate(rows))

    contract(chain, cost, multiply)
    return chain[0]


def multiply_strip(left: Strips, right: Strips, product: Strips, i: int, most: int) -> Counts:
    """Write a strip of a product, which adds up over groups of strips on the right; return the entries of each row."""
    rows = left.read(range(i, i + 1))
    total = csr_array((rows.shape[0], right.width))
    for strips in right.groups(most):
        own = rows[:, right.rows_of(strips)]
        if own.nnz:
            factor = cache_last((right, strips), lambda strips=strips: right.read(strips))  # type: ignore[misc]
            total = _add_product(total, own, factor) if total.nnz else csr_array(own @ factor)
    strip = tidy(total)
    product.write(i, strip)
    return np.diff(strip.indptr).astype(np.int64)


def _add_product(total: Csr, left: Csr, right: Csr) -> Csr:
    """Return total + left·right, where the numbers of an entry are added to its total one by one, not as their sum."""
    columns, places = np.unique(total.indices, return_inverse=True)
    narrow = csr_array((total.data, places, total.indptr), shape=(total.shape[0], len(columns)))
    ones, ends = np.ones(len(columns)), np.arange(len(columns) + 1)
    widen = csr_array((ones, columns, ends), shape=(len(columns), right.shape[1]))
    return csr_array(hstack([narrow, left], format="csr") @ vstack([widen, right], format="csr"))


def _norms(strips: Strips, workers: Workers, *, transposed: bool = False) -> Floats:
    return np.concatenate(workers.each(_strip_norms, [(strips, i, transposed) for i in strips.numbers]))


def _strip_norms(strips: Strips, i: int, transposed: bool) -> Floats:
    """Return the norms of a strip of rows, or of the columns that it is the transpose of, added up in their order."""
    strip = strips.read(range(i, i + 1))
    return column_norms(csr_array(strip.T.tocsr())) if transposed else row_norms(strip)

"""Sparse matrices and products of one version: the rows of a base, and those that replace some of them.

A version never changes. A later one has other rows in place of some, and shares all else with those before it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from neupath.engine.formula import Formula, normalised
from neupath.engine.products import CombinedRow, Factors
from neupath.engine.topk import add_up, borrow_scratch, return_scratch, top_k_of_combined_row
from neupath.graph.hin import Csr, Floats, freeze
from neupath.graph.nodes import Mask, Rows

_NO_ROWS = np.zeros(0, dtype=np.int64)


# ---- Rows of matrices ----------------------------------------------------------------------------
class Row(NamedTuple):
    """A row of a matrix: its columns, ascending, the values there, and ‖row‖², which only half-paths need."""

    columns: NDArray[Any]
    values: Floats
    norm: float = 0.0


def add_up_entries(keys: Rows, values: Floats, shape: tuple[int, int]) -> Csr:
    """Return the matrix of the sums of some values, each added in order to the entry at row·width + column."""
    height, width = shape
    if height * width <= 16 * len(keys):  # sorting would take longer
        sums: Floats = np.asarray(np.bincount(keys, weights=values, minlength=height * width), dtype=np.float64)
        distinct = np.flatnonzero(sums)
        sums = sums[distinct]
    else:
        distinct, place = np.unique(keys, return_inverse=True)
        sums = np.asarray(np.bincount(place, weights=values, minlength=len(distinct)), dtype=np.float64)
        distinct, sums = distinct[sums != 0], sums[sums != 0]
    indptr = np.searchsorted(distinct, np.arange(height + 1) * width)
    columns = distinct - np.repeat(np.arange(height) * width, np.diff(indptr))
    return _csr(columns, sums, indptr, shape)


def _csr(columns: NDArray[Any], values: Floats, indptr: Rows, shape: tuple[int, int]) -> Csr:
    matrix: Csr = csr_array((values, columns, indptr.astype(columns.dtype, copy=False)), shape=shape)
    matrix.has_sorted_indices = True
    return matrix


def _with_entries(row: Row, entries: Mapping[int, float]) -> Row:
    """Return a row with other values in some columns; 0 removes an entry."""
    columns, values, _ = row
    for column, value in entries.items():
        at = int(np.searchsorted(columns, column))
        after = at + (at < len(columns) and int(columns[at]) == column)
        new = [column] if value else [], [value] if value else []
        columns, values = (
            np.concatenate([old[:at], np.array(own, dtype=old.dtype), old[after:]])
            for old, own in zip((columns, values), new, strict=True)
        )
    return Row(columns, values)


_RATIO = 16
"""A block becomes one with the next where it has at most so many times its rows: there are few blocks."""
_LIGHT_ENTRIES, _MANY_SEARCHES = 5000, 6  # of a block, up to which its transpose is not worth it


class Block:
    """Rows of a version by number, in place of those of a base; they never change.

    Parameters
    ----------
    rows
        The rows by number.
    num_entries
        How many entries they have.
    """

    def __init__(self, rows: Mapping[int, Row], num_entries: int) -> None:
        self.rows, self.num_entries = rows, num_entries
        self._searches = 0

    @cached_property
    def numbers(self) -> Rows:
        """The numbers of the rows, ascending."""
        return np.array(sorted(self.rows), dtype=np.int64)

    @cached_property
    def norms(self) -> Floats:
        """‖row‖² of each of `numbers`."""
        return np.array([self.rows[number].norm for number in self.numbers.tolist()])

    @property
    def num_bytes(self) -> int:
        return 16 * self.num_entries

    @cached_property
    def _matrix(self) -> Csr:
        """The rows in the order of `numbers`, as wide as they need."""
        rows = [self.rows[number] for number in self.numbers.tolist()]
        indptr = np.cumsum([0, *(len(row.values) for row in rows)])
        width = 1 + max((int(row.columns[-1]) for row in rows if len(row.columns)), default=-1)
        columns, values = np.concatenate([row.columns for row in rows]), np.concatenate([row.values for row in rows])
        return freeze(_csr(columns, values, indptr, (len(rows), width)))

    @cached_property
    def _factors(self) -> Factors:
        return Factors(self._matrix, freeze(self._matrix.T.tocsr()), self.norms, self.norms)

    def products(self, row: CombinedRow) -> Floats:
        """Return M[x,y] for the row of a query x and each y of `numbers`, added up in the order of the row."""
        width = self._matrix.shape[1]
        row = row.before(width)
        self._searches += 1
        if self._matrix.nnz > _LIGHT_ENTRIES and self._searches > _MANY_SEARCHES:
            return add_up(self._factors, row)
        scratch = borrow_scratch(width)
        dense = scratch[0][:width]
        dense[row.middles] = row.values
        total: Floats = np.asarray(self._matrix @ dense)
        dense[row.middles] = 0.0
        return_scratch(scratch)
        return total


@dataclass(frozen=True, eq=False)
class Overlay:
    """A matrix of one version: the rows of a base, but for those that are in a block; the newest block counts.

    Parameters
    ----------
    base
        The matrix of the base, with sorted rows.
    shape
        Its shape and that of the nodes that were added.
    may_differ
        Which rows may be in a block of some version over the same base; the last mark is for those of new nodes. All
        versions share this, since a mark too many costs time alone.
    blocks
        The newest last; each has many times the rows of the next.
    """

    base: Csr
    shape: tuple[int, int]
    may_differ: Mask
    blocks: tuple[Block, ...] = ()

    @classmethod
    def over(cls, base: Csr) -> "Overlay":
        matrix = base if base.has_sorted_indices else base.sorted_indices()
        return cls(matrix, matrix.shape, np.arange(matrix.shape[0] + 1) == matrix.shape[0])

    @property
    def num_changed(self) -> int:
        """The entries of the rows that are not those of the base."""
        return sum(block.num_entries for block in self.blocks)

    def grown(self, num_rows: int, num_columns: int) -> "Overlay":
        """Return the matrix with empty rows and columns added at its end."""
        return self if self.shape == (num_rows, num_columns) else replace(self, shape=(num_rows, num_columns))

    def find(self, number: int) -> Row | None:
        """Return a row that is not that of the base, or None."""
        for block in reversed(self.blocks):
            row = block.rows.get(number)
            if row is not None:
                return row
        return None

    def row(self, number: int) -> Row:
        row = self.find(number)
        if row is not None:
            return row
        base, height = self.base, self.base.shape[0]
        span = slice(base.indptr[number], base.indptr[number + 1]) if number < height else slice(0)
        return Row(base.indices[span], base.data[span])

    def take(self, rows: Rows) -> Csr:
        """Return some rows, in the order in which they are given."""
        if len(rows) == 1:
            row = self.row(int(rows[0]))
            return _csr(row.columns, row.values, np.array([0, len(row.values)]), (1, self.shape[1]))
        base, height = self.base, self.base.shape[0]
        within = np.minimum(rows, height)
        starts = base.indptr[within].astype(np.int64)
        counts = base.indptr[np.minimum(rows + 1, height)] - starts
        own = {}
        for place in np.flatnonzero(self.may_differ[within]).tolist():
            replacement = self.find(int(rows[place]))
            if replacement is not None:
                own[place], counts[place] = replacement, len(replacement.values)
        indptr = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(counts)])
        at, of_base = (
            np.arange(indptr[-1]) + np.repeat(starts - indptr[:-1], counts),
            np.ones(len(rows), dtype=np.bool_),
        )
        of_base[list(own)] = False
        to = np.flatnonzero(np.repeat(of_base, counts)) if own else slice(None)
        indices, data = np.empty(indptr[-1], dtype=base.indices.dtype), np.empty(indptr[-1])
        indices[to], data[to] = base.indices[at[to]], base.data[at[to]]
        for place, row in own.items():
            span = slice(indptr[place], indptr[place + 1])
            indices[span], data[span] = row.columns, row.values
        return _csr(indices, data, indptr, (len(rows), self.shape[1]))

    def replaced(self, rows: Mapping[int, Row]) -> "Overlay":
        """Return the matrix with other rows in place of some."""
        height, blocks = self.base.shape[0], list(self.blocks)
        for number in rows:
            self.may_differ[min(number, height)] = True
        num_entries = sum(len(row.values) for row in rows.values())
        while blocks and len(blocks[-1].rows) <= _RATIO * len(rows):
            last = blocks.pop()
            replaced = sum(len(last.rows[number].values) for number in last.rows.keys() & rows.keys())
            num_entries, rows = last.num_entries - replaced + num_entries, {**last.rows, **rows}
        return replace(self, blocks=(*blocks, Block(rows, num_entries)))

    def with_entries(self, entries: Mapping[int, Mapping[int, float]]) -> "Overlay":
        """Return the matrix with other values in some columns of some rows; 0 removes an entry."""
        return self.replaced({number: _with_entries(self.row(number), own) for number, own in entries.items()})

    def matrix(self) -> Csr:
        """Return the matrix by itself; the base where nothing has changed."""
        if not self.blocks and self.shape == self.base.shape:
            return self.base
        return freeze(self.take(np.arange(self.shape[0])))


# ---- Products ------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class OverlaidFactors:
    """A product M = L·Rᵀ of one version, and the squared norms of the rows of both halves.

    `base` are the factors of the base. `left` has the rows of queries and `right` those of targets; they are the same
    where M = L·Lᵀ. A search ranks the targets whose rows are those of the base by its factors, adds up the others, and
    merges both. Every sum runs in the order of the query's row, so scores are those of factors that are made anew.
    """

    base: Factors
    left: Overlay
    right: Overlay

    @property
    def num_targets(self) -> int:
        return self.right.shape[0]

    @cached_property
    def _blocks(self) -> list[tuple[Block, Mask]]:
        """The blocks of targets, the newest last, and which of their rows no newer block has."""
        parts = []
        for place, block in enumerate(self.right.blocks):
            is_newest = np.ones(len(block.rows), dtype=np.bool_)
            for newer in self.right.blocks[place + 1 :]:
                is_newest[np.searchsorted(block.numbers, list(block.rows.keys() & newer.rows.keys()))] = False
            parts.append((block, is_newest))
        return parts

    @cached_property
    def _is_of_base(self) -> Mask:
        """Which targets of the base have its rows."""
        is_of_base = np.ones(len(self.base.right_norms), dtype=np.bool_)
        for block in self.right.blocks:
            is_of_base[block.numbers[: np.searchsorted(block.numbers, len(is_of_base))]] = False
        return is_of_base

    @cached_property
    def _norms(self) -> Floats:
        norms = np.zeros(self.num_targets)
        norms[: len(self.base.right_norms)] = self.base.right_norms
        for block in self.right.blocks:
            norms[block.numbers] = block.norms
        return norms

    def row(self, number: int) -> tuple[CombinedRow, float]:
        """Return L[x,:] and ‖L[x,:]‖² of a query x."""
        row = self.left.find(number)
        if row is not None:
            return CombinedRow(row.columns, row.values), row.norm
        columns, values, _ = self.left.row(number)
        return CombinedRow(columns, values), float(self.base.left_norms[number]) if len(values) else 0.0

    def additions(self, number: int) -> float:
        """Count the additions that a query needs along the base."""
        middles = self.row(number)[0].before(self.base.right.shape[0]).middles
        starts = self.base.right.indptr
        return float((starts[middles + 1] - starts[middles]).sum())

    def top_k(
        self, formula: Formula, row: CombinedRow, norm: float, k: int, candidates: Mask | None = None
    ) -> tuple[Rows, Floats]:
        """Return the k best targets of a row of L without negative values, of those related, and their scores."""
        allowed = self._is_of_base if candidates is None else self._is_of_base & candidates[: len(self._is_of_base)]
        rows, scores = top_k_of_combined_row(self.base, formula, row.before(self.base.right.shape[0]), norm, k, allowed)
        parts = [(rows, scores)]
        for block, is_newest in self._blocks:
            m = block.products(row)
            (met,) = (m * is_newest).nonzero()
            if candidates is not None:
                met = met[candidates[block.numbers[met]]]
            if not len(met):
                continue
            own = normalised(formula, m[met], norm, block.norms[met])
            best = own >= scores[-1] if len(scores) == k else slice(None)
            parts.append((block.numbers[met][best], own[best]))
        if len(parts) == 1:
            return parts[0]
        rows, scores = (np.concatenate(part) for part in zip(*parts, strict=True))
        order = np.lexsort((rows, -scores))[:k]
        return rows[order], scores[order]

    def scores(self, formula: Formula, row: CombinedRow, norm: float) -> Floats:
        """Return the score of every target with a row of L; what negative values take away is added up apart."""
        m = self._add_up(row.part(1.0)) - self._add_up(row.part(-1.0))
        met = np.flatnonzero(m)
        scores = np.zeros(len(m))
        scores[met] = normalised(formula, m[met], norm, self._norms[met])
        return scores

    def _add_up(self, row: CombinedRow) -> Floats:
        total = np.zeros(self.num_targets)
        total[: len(self.base.right_norms)] = add_up(self.base, row.before(self.base.right.shape[0]))
        for block, _ in self._blocks:
            total[block.numbers] = block.products(row)
        return total

"""Walk along a chain of matrices from some rows: the half-path walk of search, evidence, inference and what-if.

`walk_rows` adds up all walks to each end, as one sparse row per start. `leave_row` keeps the entries that the walks of
one row follow, which split a score over nodes and paths. Three others stay apart, since they carry something else:
`relate` a vector over all nodes, `learn.inference` rows under three scalings at once, and what-if each single walk with
the edges that it needs.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from neupath._runtime.progress import check_cancelled
from neupath.graph.hin import Csr, Floats
from neupath.graph.nodes import Rows


def walk_rows(matrices: Sequence[Csr], rows: Rows) -> Csr:
    """Return some rows of a chain's product, without the product: what walks from them add up to at each end."""
    check_cancelled()
    product = csr_array(matrices[0][rows])
    for matrix in matrices[1:]:
        product = csr_array(product @ matrix)
    return product


# ---- The entries that the walks of one row follow ------------------------------------------------
class StepEdges(NamedTuple):
    """The edges of one step, by the places of both ends in `Walks.rows`, in the order of sources and targets."""

    sources: Rows
    targets: Rows
    weights: Floats
    starts: Rows
    """Where the edges of each source begin; every source has one."""


class StepEntries(NamedTuple):
    """Entries of some rows of a matrix, row by row."""

    own: Rows
    """The place of each entry's row among these rows."""
    columns: Rows
    weights: Floats
    width: int
    """The number of columns of the matrix."""

    @property
    def _is_dense(self) -> bool:
        """Whether an array with an element per column takes less time than sorting the columns."""
        return 8 * len(self.columns) > self.width

    def distinct_columns(self) -> Rows:
        """Return the columns in ascending order, each once."""
        if not self._is_dense:
            return np.unique(self.columns).astype(np.int64)
        has_entry = np.zeros(self.width, np.bool_)
        has_entry[self.columns] = True
        return np.flatnonzero(has_entry)

    def places_in(self, columns: Rows) -> Rows:
        """Return the place of each entry's column among some columns in ascending order, -1 where it is not there."""
        if self._is_dense:
            place_of_column = np.full(self.width, -1)
            place_of_column[columns] = np.arange(len(columns))
            return place_of_column[self.columns]
        places = np.searchsorted(columns, self.columns)
        places[places == len(columns)] = -1
        places[columns[places] != self.columns] = -1
        return places

    def to(self, rows: Rows, columns: Rows) -> tuple[Rows, StepEdges]:
        """Return those of the rows that have an entry in some of the columns, and these entries as edges."""
        places = self.places_in(columns) if len(columns) else np.full(len(self.own), -1)
        kept = np.flatnonzero(places >= 0)
        own = self.own[kept]
        starts = np.flatnonzero(np.diff(own, prepend=-1))
        ends = np.append(starts[1:], len(own)) if len(own) else starts
        sources = np.repeat(np.arange(len(starts)), ends - starts)
        edges = StepEdges(sources, places[kept], self.weights[kept], np.append(starts, len(own)))
        return rows[own[starts]], edges


def leave_row(chain: Sequence[Csr], start: int) -> tuple[list[Rows], list[StepEntries]]:
    """Return the rows that walks from a row reach before and after each step, and the entries that they follow."""
    rows: list[Rows] = [np.array([start])]
    entries: list[StepEntries] = []
    for matrix in chain:
        starts = matrix.indptr[rows[-1]]
        counts = matrix.indptr[rows[-1] + 1] - starts
        own = np.repeat(np.arange(len(counts)), counts)
        at = np.arange(len(own)) + np.repeat(starts - np.cumsum(counts) + counts, counts)
        entries.append(StepEntries(own, matrix.indices[at], matrix.data[at], matrix.shape[1]))
        rows.append(entries[-1].distinct_columns())
    return rows, entries

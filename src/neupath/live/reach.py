"""Reach: which entries of a half-path matrix an edge can change, and what they are then, entry by entry."""

from collections.abc import Sequence

import numpy as np

from neupath.graph import Floats
from neupath.live import edge_kernels as kernels
from neupath.live.steps import LiveStep, Pair
from neupath.nodes import Rows

Entries = tuple[Rows, Rows, Floats]
"""Rows and columns, ascending, and values."""


class Reach:
    """The entries of W = S that edges are."""

    def __init__(self, step: LiveStep) -> None:
        self._step, self._edges = step, step.forward

    def entries(self, pairs: Sequence[Pair]) -> Entries | None:
        """Return the entries that may be others after some edges changed, as they are now; None if there is none."""
        ends = self._step.ends(pairs)
        if not ends:
            return None
        rows, columns = np.array(ends if len(ends) == 1 else sorted(set(ends))).T.copy()
        values = kernels.weights_of(self._edges[0].fields, rows, columns)
        for edges in self._edges[1:]:
            values += kernels.weights_of(edges.fields, rows, columns)
        return rows, columns, values


class ReachOfTwo:
    """The entries of W = S1·S2 on paths over an edge: of S1, a row and what it leads to; of S2, a column."""

    def __init__(self, first: LiveStep, second: LiveStep) -> None:
        self._steps = first, second
        (self._out,), (self._in,) = first.forward, first.backward
        (self._forward,), (self._back,) = second.forward, second.backward

    def entries(self, pairs: Sequence[Pair]) -> Entries | None:
        """Return the entries that may be others after some edges changed, as they are now; None if there is none."""
        first, second = (step.ends(pairs) for step in self._steps)
        parts = [self._of_row(*end) for end in first] + [self._of_column(*end) for end in second]
        return _joined(parts) if len(parts) > 1 else parts[0] if parts else None

    def _of_row(self, row: int, middle: int) -> Entries:
        out, back = self._out.fields, self._back.fields
        columns = kernels.reached(self._forward.fields, middle)
        rows = np.full(len(columns), row)
        if len(columns) > 1 and kernels.is_whole_cheaper(out, back, row, columns, self._forward.mean_size):
            return rows, columns, _picked(columns, *self._steps[1].multiply(*self._steps[0].row(row)))
        return rows, columns, kernels.multiply_entries(out, back, rows, columns)

    def _of_column(self, middle: int, column: int) -> Entries:
        rows = kernels.reached(self._in.fields, middle)
        columns = np.full(len(rows), column)
        return rows, columns, kernels.multiply_entries(self._out.fields, self._back.fields, rows, columns)


def reach_of(steps: Sequence[LiveStep]) -> Reach | ReachOfTwo | None:
    """Return the reach of edges over some steps; None where only whole rows can be computed."""
    if any(step.is_scaled for step in steps):
        return None
    if len(steps) == 1:
        return Reach(steps[0])
    return ReachOfTwo(*steps) if len(steps) == 2 and all(len(step.step.links) == 1 for step in steps) else None


def _picked(columns: Rows, found: Rows, values: Floats) -> Floats:
    """Return the values of some columns of a sparse row."""
    picked = np.zeros(len(columns))
    _, here, there = np.intersect1d(columns, found, assume_unique=True, return_indices=True)
    picked[here] = values[there]
    return picked


def _joined(parts: Sequence[Entries]) -> Entries:
    """Return all entries, each once, ascending."""
    rows, columns, values = (np.concatenate(part) for part in zip(*parts, strict=True))
    width = int(columns.max(initial=0)) + 1
    _, kept = np.unique(rows * width + columns, return_index=True)
    return rows[kept], columns[kept], values[kept]

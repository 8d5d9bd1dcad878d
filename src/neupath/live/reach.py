"""Reach: which entries of a half-path matrix an edge can change, and what they are then, entry by entry."""

from collections.abc import Sequence

import numpy as np

from neupath.graph import Floats
from neupath.live import edge_kernels as kernels
from neupath.live.steps import LiveStep
from neupath.nodes import Rows
from neupath.schema import Link

Entries = tuple[Rows, Rows, Floats]
"""Rows and columns, ascending, and values."""


class Reach:
    """The entries of W = S1 or W = S1·S2 on paths over an edge, where the weights of steps are those of edges."""

    def __init__(self, steps: Sequence[LiveStep]) -> None:
        self._steps = steps
        if len(steps) > 1:
            (self._out,), (self._in,) = steps[0].forward, steps[0].backward
            (self._forward,), (self._back,) = steps[1].forward, steps[1].backward

    @staticmethod
    def is_known(steps: Sequence[LiveStep]) -> bool:
        """Whether entries over such steps can be computed one by one."""
        plain = not any(step.is_scaled for step in steps)
        return plain and (len(steps) == 1 or (len(steps) == 2 and all(len(step.step.links) == 1 for step in steps)))

    def entries(self, pairs: Sequence[tuple[Link, int, int]]) -> Entries:
        """Return the entries that may be others after some edges changed, as they are now."""
        parts = [part for number, step in enumerate(self._steps) for part in self._parts(number, step.ends(pairs))]
        if not parts:
            return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64), np.empty(0)
        rows, columns = parts[0] if len(parts) == 1 else _joined(parts)
        return rows, columns, self._values(rows, columns)

    def _parts(self, number: int, ends: Sequence[tuple[int, int]]) -> list[tuple[Rows, Rows]]:
        """Return what entries of one step reach: all rows that lead to their rows, with all columns behind them."""
        if len(self._steps) == 1:
            return [(np.array([row]), np.array([column])) for row, column in ends]
        if number == 0:
            return [_alone(row, kernels.reached(self._forward.arrays, column)) for row, column in ends]
        return [_alone(column, kernels.reached(self._in.arrays, row))[::-1] for row, column in ends]

    def _values(self, rows: Rows, columns: Rows) -> Floats:
        if len(self._steps) == 1:
            weights: Floats = sum(kernels.weights_of(edges.arrays, rows, columns) for edges in self._steps[0].forward)
            return weights
        out, forward, back = (edges.arrays for edges in (self._out, self._forward, self._back))
        found: Floats = kernels.multiply_entries(
            out, forward, back, rows, columns, self._forward.mean_size, *self._steps[1].scratch()
        )
        return found


def _alone(one: int, many: Rows) -> tuple[Rows, Rows]:
    return np.full(len(many), one), many


def _joined(parts: Sequence[tuple[Rows, Rows]]) -> tuple[Rows, Rows]:
    """Return pairs of rows and columns, each once, ascending."""
    rows, columns = np.unique(np.concatenate([np.stack(part) for part in parts], axis=1), axis=1)
    return np.ascontiguousarray(rows), np.ascontiguousarray(columns)

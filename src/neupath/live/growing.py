"""Arrays that grow: room for twice as much whenever it runs out, and the old array left as it was for its readers."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

NOWHERE = np.iinfo(np.int64).max


class Rows(NamedTuple):
    """Rows of edges that change in place: a base of which the weights change, and for each row the edges it lacks."""

    indptr: NDArray[Any]
    indices: NDArray[Any]
    data: NDArray[Any]
    spans: NDArray[Any]  # by row: where its further edges are, see `edge_kernels.span_of`, or -1
    columns: NDArray[Any]  # by further edge: its column, ascending in its row, or NOWHERE where there is none yet
    values: NDArray[Any]


VERSION = np.int32
"""Versions count from that of the base, and are kept short: a query takes as long as what it reads."""
NEVER = np.iinfo(VERSION).max
ENTRY = np.dtype([("place", np.int64), ("value", np.float64), ("born", VERSION), ("died", VERSION)])
"""A value at a place of a line, the version it is there from, or NEVER if it is not written yet, and is gone from."""
NORM = np.dtype([("value", np.float64), ("born", VERSION), ("previous", np.int32)])
"""A norm, the version it holds from, and where the one before it is, or -1."""


class Lines(NamedTuple):
    """The rows of a matrix, or its columns: a base, and entries that replace some of it, each from a version on."""

    indptr: NDArray[Any]
    indices: NDArray[Any]
    data: NDArray[Any]
    replaced: NDArray[Any]  # by place in the base: the version that replaces it
    spans: NDArray[Any]  # by line: where its entries are, see `edge_kernels.span_of`, or -1 where it never changed
    entries: NDArray[Any]


class Norms(NamedTuple):
    """‖row‖² of every row: at some version, and as it was changed since, which is never much."""

    base: NDArray[Any]
    heads: NDArray[Any]  # by row: its last norm since, or -1
    since: NDArray[Any]


class Half(NamedTuple):
    """A half-path matrix by row and by column, with the norms of its rows, over a base of some version."""

    rows: Lines
    columns: Lines
    norms: Norms
    version: int


def grown(array: NDArray[Any], wanted: int, fill: Any = None) -> NDArray[Any]:
    """Return an array of at least `wanted` entries that begins like this one and goes on with `fill`.

    It is the same one where that is long enough.

    >>> grown(np.array([1, 2]), 3, -1)
    array([ 1,  2, -1, -1])
    """
    if wanted <= len(array):
        return array
    longer = np.empty(max(wanted, 2 * len(array)), dtype=array.dtype)
    longer[: len(array)] = array
    if fill is not None:
        longer[len(array) :] = fill
    return longer

"""Arrays that grow: room for twice as much whenever it runs out, and the old array left as it was for its readers."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Rows(NamedTuple):
    """Rows of edges that change in place: a base, and for rows that changed their place, size and room in a pool."""

    indptr: NDArray[Any]
    indices: NDArray[Any]
    data: NDArray[Any]
    start: NDArray[Any]
    size: NDArray[Any]
    room: NDArray[Any]
    columns: NDArray[Any]
    values: NDArray[Any]


class Half(NamedTuple):
    """A half-path matrix: a base by row and by column, and entries that replace some of it, each from a version on."""

    indptr: NDArray[Any]
    indices: NDArray[Any]
    data: NDArray[Any]
    column_indptr: NDArray[Any]
    column_indices: NDArray[Any]
    column_data: NDArray[Any]
    base_norms: NDArray[Any]
    row_replaced: NDArray[Any]  # by place in the base: the version that replaces it
    column_replaced: NDArray[Any]
    changed: NDArray[Any]  # by column: the first version that changes it
    row_heads: NDArray[Any]  # by row: its last entry, or -1
    column_heads: NDArray[Any]
    norm_heads: NDArray[Any]
    rows: NDArray[Any]  # by entry
    columns: NDArray[Any]
    values: NDArray[Any]
    born: NDArray[Any]
    died: NDArray[Any]
    row_next: NDArray[Any]
    column_next: NDArray[Any]
    norm_values: NDArray[Any]  # by change of a norm
    norm_born: NDArray[Any]
    norm_previous: NDArray[Any]


def grown(array: NDArray[Any], wanted: int, fill: int | None = None) -> NDArray[Any]:
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

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


class Records(NamedTuple):
    """Rows that replace those of a base from a version on, and their entries, linked by column."""

    latest: NDArray[Any]  # by row: its last record, or -1
    heads: NDArray[Any]  # by column: its last entry, or -1
    starts: NDArray[Any]  # by record: its first entry, and so on
    ends: NDArray[Any]
    norms: NDArray[Any]
    born: NDArray[Any]
    died: NDArray[Any]
    previous: NDArray[Any]
    owners: NDArray[Any]
    columns: NDArray[Any]  # by entry
    values: NDArray[Any]
    record_of: NDArray[Any]
    following: NDArray[Any]


def grown(array: NDArray[Any], wanted: int, fill: float = 0) -> NDArray[Any]:
    """Return an array of at least `wanted` entries that begins like this one: itself where it is long enough.

    >>> grown(np.array([1, 2]), 3, -1)
    array([ 1,  2, -1, -1])
    """
    if wanted <= len(array):
        return array
    longer = np.full(max(wanted, 2 * len(array)), fill, dtype=array.dtype)
    longer[: len(array)] = array
    return longer

"""Parallel edges become one, in a stream of edges that is sorted by their ends."""

from collections.abc import Iterable, Iterator

import numpy as np

from neupath.graph import Duplicates, Floats
from neupath.nodes import Rows
from neupath.store import Entries


def merge(batches: Iterable[Entries], duplicates: Duplicates) -> Iterator[Entries]:
    """Yield every pair of ends once: with the sum of its weights (`count`), or the first of them.

    Sums run in the order of the stream. An edge of weight 0 is none, and is left out.

    >>> ends, weights = np.array([3, 3]), np.array([0.5, 1.0])
    >>> [w.tolist() for _, _, w in merge([(ends, ends, weights), (ends, ends, weights)], "count")]
    [[], [], [3.0]]
    """
    held: Entries = (np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))
    for batch in batches:
        sources, targets, weights = (np.concatenate(both) for both in zip(held, batch, strict=True))
        if not len(sources):
            continue
        new = np.ones(len(sources), dtype=np.bool_)
        new[1:] = (sources[1:] != sources[:-1]) | (targets[1:] != targets[:-1])
        summed = duplicates == "count"
        each = np.bincount(np.cumsum(new) - 1, weights=weights).astype(float) if summed else weights[new]
        sources, targets = sources[new], targets[new]
        held = sources[-1:], targets[-1:], each[-1:]  # its edges may go on in the next batch
        yield _kept(sources[:-1], targets[:-1], each[:-1])
    yield _kept(*held)


def _kept(sources: Rows, targets: Rows, weights: Floats) -> Entries:
    kept = weights > 0
    return sources[kept], targets[kept], weights[kept]

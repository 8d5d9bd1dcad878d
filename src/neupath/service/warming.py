"""Warming: what the first requests would wait for, done before the service starts, and then left alone."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

from neupath.datasets import load
from neupath.live import LiveGraph
from neupath.measures import PathSim


def load_kernels() -> None:
    """Search the smallest graph, and change it, so that no request waits for the kernels."""
    hin, measure = load("toy"), PathSim("author-paper-author")
    measure.fit(hin).top_k("Mike")
    live = LiveGraph(hin)
    live.fit(measure)
    live.put([(hin.schema.relations[0], 0, 3, 1.0)])
    live.view().fit(measure).top_k("Mike")


@contextmanager
def collecting_little() -> Iterator[None]:
    """Keep Python's collector of garbage away from all that is there already.

    The libraries alone are so many objects that to look at them all takes a tenth of a second, in which nobody is
    answered; updates leave enough behind for that to happen every few seconds.
    """
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()

"""Seeded graph of any size whose degrees follow a power law."""

import numpy as np
import pyarrow as pa

from neupath import HIN
from neupath.graph.hin import Edges
from neupath.graph.metapath import Relation
from neupath.graph.nodes import Nodes


def powerlaw(edges: int, seed: int = 0, *, mean_degree: float = 10.0, exponent: float = 0.75) -> HIN:
    """Make `edges` edges author-paper, a tenth as many authors and as many papers, and one venue per paper.

    Ends are drawn with probability proportional to rank^-exponent. Parallel edges are dropped, so a few less remain.
    """
    rng = np.random.default_rng(seed)
    count = max(10, int(edges / mean_degree))
    venues = max(5, int(count**0.5))
    papers = rng.permutation(count)[_draw_ranks(rng, count, edges, exponent / 2)]
    authors = rng.permutation(count)[_draw_ranks(rng, count, edges, exponent)]
    places = rng.permutation(venues)[_draw_ranks(rng, venues, count, exponent)]
    nodes = [
        Nodes(name, pa.array(np.arange(n))) for name, n in (("author", count), ("paper", count), ("venue", venues))
    ]
    return HIN.build(
        nodes,
        [
            Edges(Relation("author", "writes", "paper"), authors, papers),
            Edges(Relation("paper", "at", "venue"), np.arange(count), places),
        ],
        duplicates="drop",
    )


def _draw_ranks(rng: np.random.Generator, count: int, size: int, exponent: float) -> np.ndarray:
    """Draw numbers below `count`, small ones more often, by inverting the integral of rank^-exponent."""
    share = rng.random(size)
    return np.minimum((count * share ** (1 / (1 - exponent))).astype(np.int64), count - 1)

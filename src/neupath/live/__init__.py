"""The graph in memory that follows updates: scores are exact after every one, without a rebuild.

`LiveGraph` holds the newest version, `LiveStore` the same over a store on disk. `attach` lets a measure or a model
follow the updates. `view` returns a version that never changes, and `View.scorer` the scorer over it. `live_product`
computes the rows of a half-path matrix that an edge changes, and `overlay` puts them in place of those of the base.

May import measures, engine, store, graph, _runtime and errors.
"""

from neupath.live.live_graph import LiveGraph, LiveStore, View
from neupath.live.live_product import LiveScorer

__all__ = ["LiveGraph", "LiveScorer", "LiveStore", "View"]

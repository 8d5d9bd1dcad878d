"""The live graph: half-path matrices that follow every edge, exact at once, over a store or in memory alone."""

from neupath.live.live_graph import LiveGraph, LiveStore
from neupath.live.state import View

__all__ = ["LiveGraph", "LiveStore", "View"]

"""The measures by name: a new one is its import and its entry here; CONTRIBUTING.md lists tests, exports and docs."""

from neupath.errors import QueryError, did_you_mean, listed
from neupath.graph.metapath import MetaPath
from neupath.measures.commutetime import CommuteTime
from neupath.measures.dwpc import DWPC, DWPCNoRepeats
from neupath.measures.graph_measure import GraphMeasure
from neupath.measures.hetesim import HeteSim
from neupath.measures.joinsim import JoinSim
from neupath.measures.path_measure import PathMeasure
from neupath.measures.pathcount import PathCount
from neupath.measures.pathsim import PathSim
from neupath.measures.pcrw import PCRW
from neupath.measures.ppr import PPR
from neupath.measures.rwr import RWR
from neupath.measures.scan import SCAN
from neupath.measures.simrank import SimRank

MEASURES: dict[str, type[PathMeasure]] = {
    measure.name: measure for measure in (PathSim, JoinSim, HeteSim, PathCount, PCRW, DWPC, DWPCNoRepeats)
}
"""Measures over a meta-path."""
WALK_MEASURES = tuple(name for name, measure in MEASURES.items() if measure.counts_walks)
"""Those that count every walk, so that they are products of matrices."""
GRAPH_MEASURES: dict[str, type[GraphMeasure]] = {
    measure.name: measure for measure in (PPR, RWR, SimRank, SCAN, CommuteTime)
}
"""Measures over the whole graph, which take a node type instead of a meta-path."""


def measure_named(name: str, metapath: str | MetaPath) -> PathMeasure:
    """Make the measure of a name, one of `MEASURES` in any case, over a meta-path.

    >>> type(measure_named("PathSim", "APA")).__name__
    'PathSim'
    """
    if name.lower() in MEASURES:
        return MEASURES[name.lower()](metapath)
    if name.lower() in GRAPH_MEASURES:
        raise QueryError(
            f"{name.lower()} looks at the whole graph and takes no meta-path; leave it out, or use one of "
            f"{listed(MEASURES)}"
        )
    raise _unknown(name)


def graph_measure_named(name: str, node_type: str) -> GraphMeasure:
    """Make the measure of a name, one of `GRAPH_MEASURES` in any case, between nodes of a type.

    >>> type(graph_measure_named("SimRank", "author")).__name__
    'SimRank'
    """
    if name.lower() in GRAPH_MEASURES:
        return GRAPH_MEASURES[name.lower()](node_type)
    if name.lower() in MEASURES:
        raise QueryError(
            f"{name.lower()} needs a meta-path; give one, or use a measure of the whole graph: {listed(GRAPH_MEASURES)}"
        )
    raise _unknown(name)


def _unknown(name: str) -> QueryError:
    names = [*MEASURES, *GRAPH_MEASURES]
    return QueryError(f"no measure {name!r} (there are {listed(names)}){did_you_mean(name, names)}")

"""The measures by name."""

from neupath.errors import QueryError, did_you_mean, listed
from neupath.graph.metapath import MetaPath
from neupath.measures.commutetime import CommuteTime
from neupath.measures.dwpc import DWPC
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
    measure.name: measure for measure in (PathSim, JoinSim, HeteSim, PathCount, PCRW, DWPC)
}


GRAPH_MEASURES: dict[str, type[GraphMeasure]] = {
    measure.name: measure for measure in (PPR, RWR, SimRank, SCAN, CommuteTime)
}
"""Those that look at the whole graph, and take a node type instead of a meta-path."""


def measure_named(name: str, metapath: str | MetaPath) -> PathMeasure:
    """Make the measure with this name over a meta-path.

    >>> type(measure_named("PathSim", "APA")).__name__
    'PathSim'
    """
    found = MEASURES.get(name.lower())
    if found is not None:
        return found(metapath)
    if name.lower() in GRAPH_MEASURES:
        raise QueryError(
            f"{name.lower()} looks at the whole graph and takes no meta-path; leave it out, or use one of "
            f"{listed(MEASURES)}"
        )
    raise _unknown(name)


def graph_measure_named(name: str, node_type: str) -> GraphMeasure:
    """Make the measure with this name over the whole graph.

    >>> type(graph_measure_named("SimRank", "author")).__name__
    'SimRank'
    """
    found = GRAPH_MEASURES.get(name.lower())
    if found is not None:
        return found(node_type)
    if name.lower() in MEASURES:
        raise QueryError(
            f"{name.lower()} needs a meta-path; give one, or use a measure of the whole graph: {listed(GRAPH_MEASURES)}"
        )
    raise _unknown(name)


def _unknown(name: str) -> QueryError:
    every = [*MEASURES, *GRAPH_MEASURES]
    return QueryError(f"no measure {name!r} (there are {listed(every)}){did_you_mean(name, every)}")

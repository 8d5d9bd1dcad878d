"""The measures by name."""

from neupath.errors import QueryError, did_you_mean, listed
from neupath.measures.dwpc import DWPC
from neupath.measures.hetesim import HeteSim
from neupath.measures.joinsim import JoinSim
from neupath.measures.path_measure import PathMeasure
from neupath.measures.pathcount import PathCount
from neupath.measures.pathsim import PathSim
from neupath.measures.pcrw import PCRW
from neupath.metapath import MetaPath

MEASURES: dict[str, type[PathMeasure]] = {
    measure.name: measure for measure in (PathSim, JoinSim, HeteSim, PathCount, PCRW, DWPC)
}


def measure_named(name: str, metapath: str | MetaPath) -> PathMeasure:
    """Make the measure with this name over a meta-path.

    >>> type(measure_named("PathSim", "APA")).__name__
    'PathSim'
    """
    found = MEASURES.get(name.lower())
    if found is None:
        raise QueryError(f"no measure {name!r} (there are {listed(MEASURES)}){did_you_mean(name, MEASURES)}")
    return found(metapath)

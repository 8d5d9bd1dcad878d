"""Exact scorers, one file a formula."""

from pathlib import Path

from neupath.errors import QueryError, SourceError, did_you_mean, listed
from neupath.measures.dwpc import DWPC
from neupath.measures.hetesim import HeteSim
from neupath.measures.joinsim import JoinSim
from neupath.measures.path_measure import PathMeasure
from neupath.measures.pathcount import PathCount
from neupath.measures.pathsim import PathSim
from neupath.measures.pcrw import PCRW
from neupath.metapath import MetaPath
from neupath.scorer import read_saved

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


def load_measure(folder: str | Path) -> PathMeasure:
    """Read a measure that was saved; `fit` it to a graph to use it."""
    name, params = read_saved(folder)
    if name not in MEASURES:
        raise SourceError(f"{folder} holds a scorer named {name!r}, which is not one of {listed(MEASURES)}")
    try:
        return MEASURES[name](**params)  # type: ignore[arg-type]
    except TypeError as error:
        raise SourceError(f"{folder} holds {name} with parameters it does not take: {listed(params)}") from error


__all__ = [
    "DWPC",
    "MEASURES",
    "PCRW",
    "HeteSim",
    "JoinSim",
    "PathCount",
    "PathMeasure",
    "PathSim",
    "load_measure",
    "measure_named",
]

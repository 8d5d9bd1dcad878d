"""Exact scorers, one file a formula."""

from pathlib import Path

from neupath.engine.scorer import read_saved
from neupath.errors import QueryError, SourceError, listed
from neupath.measures.combination import Combination, Part
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
from neupath.measures.registry import GRAPH_MEASURES, MEASURES, graph_measure_named, measure_named
from neupath.measures.rwr import RWR
from neupath.measures.scan import SCAN
from neupath.measures.simrank import SimRank

Measure = PathMeasure | GraphMeasure | Combination


def load_measure(folder: str | Path) -> Measure:
    """Read a measure, or a combination of some, that was saved; `fit` it to a graph to use it."""
    name, params = read_saved(folder)
    known: dict[str, type[Measure]] = {**MEASURES, **GRAPH_MEASURES, Combination.name: Combination}
    if name not in known:
        raise SourceError(f"{folder} holds a scorer named {name!r}, which is not one of {listed(known)}")
    try:
        return known[name](**params)  # type: ignore[arg-type]
    except QueryError as error:
        raise SourceError(f"{folder} holds a {name} that cannot be used: {error}") from error
    except TypeError as error:
        raise SourceError(f"{folder} holds {name} with parameters it does not take: {listed(params)}") from error


__all__ = [
    "DWPC",
    "GRAPH_MEASURES",
    "MEASURES",
    "PCRW",
    "PPR",
    "RWR",
    "SCAN",
    "Combination",
    "CommuteTime",
    "GraphMeasure",
    "HeteSim",
    "JoinSim",
    "Part",
    "PathCount",
    "PathMeasure",
    "PathSim",
    "SimRank",
    "graph_measure_named",
    "load_measure",
    "measure_named",
]

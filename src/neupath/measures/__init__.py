"""Exact scorers, one file a formula."""

from pathlib import Path

from neupath.errors import QueryError, SourceError, listed
from neupath.measures.combination import Combination, Part
from neupath.measures.dwpc import DWPC
from neupath.measures.hetesim import HeteSim
from neupath.measures.joinsim import JoinSim
from neupath.measures.named import MEASURES, measure_named
from neupath.measures.path_measure import PathMeasure
from neupath.measures.pathcount import PathCount
from neupath.measures.pathsim import PathSim
from neupath.measures.pcrw import PCRW
from neupath.scorer import read_saved


def load_measure(folder: str | Path) -> PathMeasure | Combination:
    """Read a measure, or a combination of some, that was saved; `fit` it to a graph to use it."""
    name, params = read_saved(folder)
    known: dict[str, type[PathMeasure | Combination]] = {**MEASURES, Combination.name: Combination}
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
    "MEASURES",
    "PCRW",
    "Combination",
    "HeteSim",
    "JoinSim",
    "Part",
    "PathCount",
    "PathMeasure",
    "PathSim",
    "load_measure",
    "measure_named",
]

"""The measures by name: a new one is its import and its entry here; CONTRIBUTING.md lists tests, exports and docs."""

import re
from typing import Any

from neupath._runtime.plugins import Plugins, Registry
from neupath.errors import QueryError, did_you_mean, excerpt, listed
from neupath.graph.metapath import MetaPath
from neupath.measures.commutetime import CommuteTime
from neupath.measures.dwpc import DWPC, DWPCNoRepeats
from neupath.measures.graph_measure import GraphMeasure
from neupath.measures.hetesim import HeteSim
from neupath.measures.jaccard import Jaccard
from neupath.measures.joinsim import JoinSim
from neupath.measures.overlap import Overlap
from neupath.measures.path_measure import PathMeasure
from neupath.measures.pathcount import PathCount
from neupath.measures.pathsim import PathSim
from neupath.measures.pcrw import PCRW
from neupath.measures.ppr import PPR
from neupath.measures.rwr import RWR
from neupath.measures.scan import SCAN
from neupath.measures.simrank import SimRank
from neupath.measures.tversky import Tversky

_PATH_MEASURES: dict[str, type[PathMeasure]] = {
    measure.name: measure
    for measure in (PathSim, JoinSim, HeteSim, PathCount, PCRW, DWPC, DWPCNoRepeats, Jaccard, Overlap, Tversky)
}
_GRAPH_MEASURES: dict[str, type[GraphMeasure]] = {
    measure.name: measure for measure in (PPR, RWR, SimRank, SCAN, CommuteTime)
}
ALIASES = {"cosine": "joinsim", "dice": "pathsim"}
"""Names by which people look for a measure that has another one here."""
COMBINED = ("combination", "relsim", "avgsim", "pathranker", "stack")
"""Names of saved scorers that are made of several measures."""


_WHOLE = re.compile(r"[+-]?[0-9]+")


def _check_plugin(name: str, measure: Any) -> str | None:
    if not isinstance(measure, type) or not issubclass(measure, PathMeasure | GraphMeasure):
        return "it is no subclass of PathMeasure or GraphMeasure"
    own = getattr(measure, "name", None)
    return None if own == name else f"the attribute name of its class is {own!r}, and must be the same"


PLUGINS = Plugins("neupath.measures", _check_plugin, (*_PATH_MEASURES, *_GRAPH_MEASURES, *ALIASES, *COMBINED))
"""Measures of installed packages."""
MEASURES: Registry[type[PathMeasure]] = Registry(_PATH_MEASURES, PLUGINS, lambda kind: issubclass(kind, PathMeasure))
"""Measures over a meta-path."""
GRAPH_MEASURES: Registry[type[GraphMeasure]] = Registry(
    _GRAPH_MEASURES, PLUGINS, lambda kind: issubclass(kind, GraphMeasure)
)
"""Measures over the whole graph, which take a node type instead of a meta-path."""


def walk_measures() -> tuple[str, ...]:
    """Return the measures over a meta-path that count every walk, so that they are products of matrices.

    >>> "dwpc-no-repeats" in walk_measures()
    False
    """
    return tuple(name for name, measure in MEASURES.items() if measure.counts_walks)


def read_measure(text: str) -> tuple[str, dict[str, float | bool]]:
    """Read the name of a measure, in any case, and the settings after it.

    >>> read_measure("Tversky:alpha=0.9,beta=0.1")
    ('tversky', {'alpha': 0.9, 'beta': 0.1})
    >>> read_measure("cosine")
    ('joinsim', {})
    """
    name, colon, rest = text.partition(":")
    name = ALIASES.get(name.strip().lower(), name.strip().lower())
    known: type[PathMeasure | GraphMeasure] | None = MEASURES.get(name) or GRAPH_MEASURES.get(name)
    if known is None:
        raise _unknown(name)
    settings: dict[str, float | bool] = {}
    for part in rest.split(",") if colon else ():
        setting, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or setting not in known.settings or setting in settings:
            example = f"{name}:{known.settings[0]}=0.5" if known.settings else name
            has = f"its settings are {listed(known.settings)}" if known.settings else "it has no settings"
            raise QueryError(f"{part.strip()!r} is no setting of {name}; {has}, as in {example}", parameter="measure")
        settings[setting] = _value(name, setting, value)
    return name, settings


def _value(name: str, setting: str, text: str) -> float | bool:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    try:
        return int(text) if _WHOLE.fullmatch(text) else float(text)
    except ValueError:
        raise QueryError(
            f"{setting} of {name} is {excerpt(text, 0)!r}; give a number, or true or false", parameter="measure"
        ) from None


def measure_named(name: str, metapath: str | MetaPath, *, device: str = "cpu") -> PathMeasure:
    """Make the measure of a name, one of `MEASURES` in any case, over a meta-path; see `read_measure` for settings.

    >>> type(measure_named("PathSim", "APA")).__name__
    'PathSim'
    """
    known, settings = read_measure(name)
    if known in GRAPH_MEASURES:
        raise QueryError(
            f"{known} looks at the whole graph and takes no meta-path; leave it out, or use one of {listed(MEASURES)}"
        )
    return MEASURES[known](metapath, **settings, device=device)


def graph_measure_named(name: str, node_type: str) -> GraphMeasure:
    """Make the measure of a name, one of `GRAPH_MEASURES` in any case, between nodes of a type.

    >>> type(graph_measure_named("SimRank", "author")).__name__
    'SimRank'
    """
    known, settings = read_measure(name)
    if known in MEASURES:
        raise QueryError(
            f"{known} needs a meta-path; give one, or use a measure of the whole graph: {listed(GRAPH_MEASURES)}"
        )
    return GRAPH_MEASURES[known](node_type, **settings)


def _unknown(name: str) -> QueryError:
    names = [*MEASURES, *GRAPH_MEASURES]
    return QueryError(
        f"no measure {name[:100]!r} (there are {listed(names)}){did_you_mean(name[:100], [*names, *ALIASES])}"
    )

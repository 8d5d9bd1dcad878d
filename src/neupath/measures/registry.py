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


def find_measure(name: str) -> type[PathMeasure] | type[GraphMeasure] | None:
    """Return the measure of a name in any case, built in or of a plug-in; None where there is none.

    >>> find_measure("Cosine").__name__
    'JoinSim'
    """
    known = ALIASES.get(name.strip().lower(), name.strip().lower())
    return MEASURES.built_in.get(known) or GRAPH_MEASURES.built_in.get(known) or PLUGINS.find(known)


def is_graph_measure(measure: str | None) -> bool:
    """Whether a measure looks at the whole graph, and takes a node type instead of a meta-path."""
    kind = None if measure is None else find_measure(measure.partition(":")[0])
    return kind is not None and issubclass(kind, GraphMeasure)


def read_measure(text: str) -> tuple[type[PathMeasure] | type[GraphMeasure], dict[str, float | bool]]:
    """Read a measure by its name, in any case, and the settings after it.

    >>> read_measure("Tversky:alpha=0.9,beta=0.1")
    (<class 'neupath.measures.tversky.Tversky'>, {'alpha': 0.9, 'beta': 0.1})
    """
    name, colon, rest = text.partition(":")
    kind = find_measure(name)
    if kind is None:
        raise _unknown(name.strip().lower())
    settings: dict[str, float | bool] = {}
    for part in rest.split(",") if colon else ():
        setting, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or setting not in kind.settings or setting in settings:
            example = f"{kind.name}:{kind.settings[0]}=0.5" if kind.settings else kind.name
            has = f"its settings are {listed(kind.settings)}" if kind.settings else "it has no settings"
            raise QueryError(
                f"{part.strip()!r} is no setting of {kind.name}; {has}, as in {example}", parameter="measure"
            )
        settings[setting] = _value(kind.name, setting, value)
    return kind, settings


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
    kind, settings = read_measure(name)
    if not issubclass(kind, PathMeasure):
        raise QueryError(
            f"{kind.name} looks at the whole graph and takes no meta-path; leave it out, or use one of "
            f"{listed(MEASURES)}"
        )
    return kind(metapath, **settings, device=device)


def graph_measure_named(name: str, node_type: str) -> GraphMeasure:
    """Make the measure of a name, one of `GRAPH_MEASURES` in any case, between nodes of a type.

    >>> type(graph_measure_named("SimRank", "author")).__name__
    'SimRank'
    """
    kind, settings = read_measure(name)
    if not issubclass(kind, GraphMeasure):
        raise QueryError(
            f"{kind.name} needs a meta-path; give one, or use a measure of the whole graph: {listed(GRAPH_MEASURES)}"
        )
    return kind(node_type, **settings)


def _unknown(name: str) -> QueryError:
    names = [*MEASURES, *GRAPH_MEASURES]
    return QueryError(
        f"no measure {name[:100]!r} (there are {listed(names)}){did_you_mean(name[:100], [*names, *ALIASES])}"
    )

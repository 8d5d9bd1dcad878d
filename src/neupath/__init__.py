"""neupath: similarity search in heterogeneous information networks."""

from typing import TYPE_CHECKING, Any

from neupath.engine.hits import Hit, Hits
from neupath.engine.join import Joined, join
from neupath.errors import NeuPathError
from neupath.explain.explanation import Explanation, explain
from neupath.graph.hin import HIN, Edges
from neupath.graph.metapath import MetaPath, enumerate_metapaths
from neupath.graph.nodes import Nodes
from neupath.graph.schema import Relation, Schema
from neupath.io import from_networkx, from_pyg, from_tables, from_triples, load, to_networkx, to_pyg, write_folder
from neupath.learn.inference import Inferred, PathRanker, infer
from neupath.learn.registry import load_scorer
from neupath.measures import (
    DWPC,
    PCRW,
    PPR,
    RWR,
    SCAN,
    Combination,
    CommuteTime,
    HeteSim,
    JoinSim,
    PathCount,
    PathSim,
    SimRank,
)

if TYPE_CHECKING:
    from neupath.learn.models import CountPath as CountPath
    from neupath.learn.models import NeuPath as NeuPath

_LEARNED = ("CountPath", "NeuPath")  # not in __all__: a star import must not need torch


def __getattr__(name: str) -> Any:
    """Import the learned models when they are first asked for: they need torch."""
    if name in _LEARNED:
        from neupath.learn import models

        return getattr(models, name)
    raise AttributeError(f"module 'neupath' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LEARNED})


__version__ = "0.1.0"

__all__ = [
    "DWPC",
    "HIN",
    "PCRW",
    "PPR",
    "RWR",
    "SCAN",
    "Combination",
    "CommuteTime",
    "Edges",
    "Explanation",
    "HeteSim",
    "Hit",
    "Hits",
    "Inferred",
    "JoinSim",
    "Joined",
    "MetaPath",
    "NeuPathError",
    "Nodes",
    "PathCount",
    "PathRanker",
    "PathSim",
    "Relation",
    "Schema",
    "SimRank",
    "enumerate_metapaths",
    "explain",
    "from_networkx",
    "from_pyg",
    "from_tables",
    "from_triples",
    "infer",
    "join",
    "load",
    "load_scorer",
    "to_networkx",
    "to_pyg",
    "write_folder",
]

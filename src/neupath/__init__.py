"""neupath: similarity search in heterogeneous information networks."""

from typing import TYPE_CHECKING, Any

from neupath.datasets import from_networkx, from_pyg, from_tables, from_triples, load, to_networkx, to_pyg, write_folder
from neupath.errors import NeuPathError
from neupath.explanation import Explanation, explain
from neupath.graph import HIN, Edges
from neupath.inference import Inferred, PathRanker, infer, suggest_pairs
from neupath.join import Joined, join
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
    load_measure,
)
from neupath.metapath import MetaPath, enumerate_metapaths
from neupath.nodes import Nodes
from neupath.saved import load_scorer
from neupath.schema import Relation, Schema
from neupath.search import Hit, Hits

if TYPE_CHECKING:
    from neupath.models import CountPath as CountPath
    from neupath.models import NeuPath as NeuPath

_LEARNED = ("CountPath", "NeuPath")  # not in __all__: a star import must not need torch


def __getattr__(name: str) -> Any:
    """Import the learned models when they are first asked for: they need torch."""
    if name in _LEARNED:
        from neupath import models

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
    "load_measure",
    "load_scorer",
    "suggest_pairs",
    "to_networkx",
    "to_pyg",
    "write_folder",
]

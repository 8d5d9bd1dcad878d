"""Similarity search in heterogeneous information networks: `load` a graph, `fit` a scorer, ask for its `top_k`.

`dir(neupath)` lists the public API. It loads neither torch, the web stack, numba, pandas nor matplotlib: `NeuPath` and
`CountPath`, which need torch, are imported when they are first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from neupath.engine.hits import Hit, Hits
from neupath.engine.join import Joined, join
from neupath.engine.scorer import Scorer
from neupath.errors import NeuPathError, SourceWarning
from neupath.explain.counterfactuals import WhatIf, what_if
from neupath.explain.explanation import Explanation, explain
from neupath.explain.significance import Significance, significance
from neupath.explain.stability import Stability, stability
from neupath.graph.hin import HIN, Edges
from neupath.graph.metapath import MetaPath, Relation, Schema, enumerate_metapaths
from neupath.graph.nodes import Nodes
from neupath.io import from_networkx, from_pyg, from_tables, from_triples, load, to_networkx, to_pyg, write_folder
from neupath.learn.evaluation import evaluate, evaluate_pairs, split_queries
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
    Part,
    PathCount,
    PathSim,
    SimRank,
)

if TYPE_CHECKING:
    from neupath.learn.models import CountPath as CountPath
    from neupath.learn.models import NeuPath as NeuPath

__version__ = "0.1.0"
_NEED_TORCH = ("CountPath", "NeuPath")  # not in __all__: a star import must not need torch


def __getattr__(name: str) -> Any:
    if name in _NEED_TORCH:
        return getattr(import_module("neupath.learn.models"), name)
    raise AttributeError(f"module 'neupath' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *_NEED_TORCH, "__version__"])


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
    "Part",
    "PathCount",
    "PathRanker",
    "PathSim",
    "Relation",
    "Schema",
    "Scorer",
    "Significance",
    "SimRank",
    "SourceWarning",
    "Stability",
    "WhatIf",
    "enumerate_metapaths",
    "evaluate",
    "evaluate_pairs",
    "explain",
    "from_networkx",
    "from_pyg",
    "from_tables",
    "from_triples",
    "infer",
    "join",
    "load",
    "load_scorer",
    "significance",
    "split_queries",
    "stability",
    "to_networkx",
    "to_pyg",
    "what_if",
    "write_folder",
]

"""Similarity search in heterogeneous information networks: `load` a graph, `fit` a scorer, ask for its `top_k`.

`dir(neupath)` lists the public API. Each name is imported when it is first used, so that a command starts with what it
needs: only `NeuPath` loads torch, only `SimilarityFeatures` loads scikit-learn, and nothing loads the
web stack, pandas or matplotlib.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from neupath.engine.hits import Hit, Hits
    from neupath.engine.join import Joined, join
    from neupath.engine.scorer import Scorer
    from neupath.errors import NeuPathError, SourceWarning
    from neupath.evidence.comparison import RankComparison, compare
    from neupath.evidence.counterfactuals import WhatIf, what_if
    from neupath.evidence.explanation import Explanation, SetExplanation, explain, explain_set
    from neupath.evidence.relate import Related, relate
    from neupath.evidence.significance import Significance, significance
    from neupath.evidence.stability import Stability, stability
    from neupath.graph.hin import HIN, Edges
    from neupath.graph.metapath import MetaPath, Relation, Schema, enumerate_metapaths
    from neupath.graph.nodes import Nodes
    from neupath.io import from_networkx, from_pyg, from_tables, from_triples, load, to_networkx, to_pyg, write_folder
    from neupath.learn.auto import train_auto as train_auto
    from neupath.learn.evaluation import evaluate, evaluate_pairs, split_queries
    from neupath.learn.inference import Inferred, infer
    from neupath.learn.models import NeuPath as NeuPath
    from neupath.learn.registry import load_scorer
    from neupath.learn.similarity_features import SimilarityFeatures as SimilarityFeatures
    from neupath.measures import (
        DWPC,
        PCRW,
        PPR,
        RWR,
        SCAN,
        AvgSim,
        Combination,
        CommuteTime,
        DWPCNoRepeats,
        HeteSim,
        Jaccard,
        JoinSim,
        Overlap,
        Part,
        PathCount,
        PathSim,
        RelSim,
        SimRank,
        Tversky,
    )

__version__ = "0.1.0"
_MODULES = {
    "neupath.engine.hits": ("Hit", "Hits"),
    "neupath.engine.join": ("Joined", "join"),
    "neupath.engine.scorer": ("Scorer",),
    "neupath.errors": ("NeuPathError", "SourceWarning"),
    "neupath.evidence.comparison": ("RankComparison", "compare"),
    "neupath.evidence.counterfactuals": ("WhatIf", "what_if"),
    "neupath.evidence.explanation": ("Explanation", "SetExplanation", "explain", "explain_set"),
    "neupath.evidence.relate": ("Related", "relate"),
    "neupath.evidence.significance": ("Significance", "significance"),
    "neupath.evidence.stability": ("Stability", "stability"),
    "neupath.graph.hin": ("HIN", "Edges"),
    "neupath.graph.metapath": ("MetaPath", "Relation", "Schema", "enumerate_metapaths"),
    "neupath.graph.nodes": ("Nodes",),
    "neupath.io": (
        "from_networkx", "from_pyg", "from_tables", "from_triples", "load", "to_networkx", "to_pyg", "write_folder",
    ),
    "neupath.learn.auto": ("train_auto",),
    "neupath.learn.evaluation": ("evaluate", "evaluate_pairs", "split_queries"),
    "neupath.learn.inference": ("Inferred", "infer"),
    "neupath.learn.models": ("NeuPath",),
    "neupath.learn.registry": ("load_scorer",),
    "neupath.learn.similarity_features": ("SimilarityFeatures",),
    "neupath.measures": (
        "DWPC", "PCRW", "PPR", "RWR", "SCAN", "AvgSim", "Combination", "CommuteTime", "DWPCNoRepeats", "HeteSim",
        "Jaccard", "JoinSim", "Overlap", "Part", "PathCount", "PathSim", "RelSim", "SimRank", "Tversky",
    ),
}  # fmt: skip
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}
_ROOMS = ("engine", "errors", "graph", "io", "learn", "measures", "store")  # as in `neupath.errors.GraphError`
_NEED_EXTRAS = ("NeuPath", "SimilarityFeatures", "train_auto")
"""Not in __all__: a star import must need neither torch nor scikit-learn."""
_GONE = {
    "CountPath": "it is a row of the paper's tables: from neupath_paper.countpath import CountPath",
    "PathRanker": "it is gone: use infer(hin, pairs).scorer, or train_auto(hin, pairs, folder)",
}
"""Names of before 0.1.0, and what to use instead."""


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return import_module(f"neupath.{name}")
    if name in _GONE:
        raise ImportError(f"neupath has no {name} any more; {_GONE[name]}")
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'neupath' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_MODULE_OF[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, *_NEED_EXTRAS, "__version__"])


__all__ = [
    "DWPC",
    "HIN",
    "PCRW",
    "PPR",
    "RWR",
    "SCAN",
    "AvgSim",
    "Combination",
    "CommuteTime",
    "DWPCNoRepeats",
    "Edges",
    "Explanation",
    "HeteSim",
    "Hit",
    "Hits",
    "Inferred",
    "Jaccard",
    "JoinSim",
    "Joined",
    "MetaPath",
    "NeuPathError",
    "Nodes",
    "Overlap",
    "Part",
    "PathCount",
    "PathSim",
    "RankComparison",
    "RelSim",
    "Related",
    "Relation",
    "Schema",
    "Scorer",
    "SetExplanation",
    "Significance",
    "SimRank",
    "SourceWarning",
    "Stability",
    "Tversky",
    "WhatIf",
    "compare",
    "enumerate_metapaths",
    "evaluate",
    "evaluate_pairs",
    "explain",
    "explain_set",
    "from_networkx",
    "from_pyg",
    "from_tables",
    "from_triples",
    "infer",
    "join",
    "load",
    "load_scorer",
    "relate",
    "significance",
    "split_queries",
    "stability",
    "to_networkx",
    "to_pyg",
    "what_if",
    "write_folder",
]

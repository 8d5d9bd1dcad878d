"""Similarity search in heterogeneous information networks: `load` a graph, `fit` a scorer, ask for its `top_k`.

`dir(neupath)` lists what users import first; the rest is in its room, such as `neupath.measures` or `neupath.io`. Each
name is imported when it is first used, so that a command starts with what it needs: only `NeuPath` loads torch, and
nothing loads the web stack, pandas or matplotlib.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from neupath.engine.join import join
    from neupath.engine.prepared import open_index
    from neupath.engine.scorer import Scorer
    from neupath.errors import NeuPathError
    from neupath.evidence.comparison import compare
    from neupath.evidence.counterfactuals import what_if
    from neupath.evidence.explanation import explain
    from neupath.evidence.relate import relate
    from neupath.evidence.significance import significance
    from neupath.evidence.stability import stability
    from neupath.graph.hin import HIN
    from neupath.graph.metapath import MetaPath
    from neupath.io import from_tables, load
    from neupath.learn.auto import train_auto as train_auto
    from neupath.learn.evaluation import evaluate
    from neupath.learn.inference import infer
    from neupath.learn.models import NeuPath as NeuPath
    from neupath.learn.registry import load_scorer
    from neupath.measures import Combination, Part, PathSim
    from neupath.measures.prepare import prepare

__version__ = "0.1.0"
_MODULE_OF = {
    "Combination": "neupath.measures",
    "HIN": "neupath.graph.hin",
    "MetaPath": "neupath.graph.metapath",
    "NeuPath": "neupath.learn.models",
    "NeuPathError": "neupath.errors",
    "Part": "neupath.measures",
    "PathSim": "neupath.measures",
    "Scorer": "neupath.engine.scorer",
    "compare": "neupath.evidence.comparison",
    "evaluate": "neupath.learn.evaluation",
    "explain": "neupath.evidence.explanation",
    "from_tables": "neupath.io",
    "infer": "neupath.learn.inference",
    "join": "neupath.engine.join",
    "load": "neupath.io",
    "load_scorer": "neupath.learn.registry",
    "open_index": "neupath.engine.prepared",
    "prepare": "neupath.measures.prepare",
    "relate": "neupath.evidence.relate",
    "significance": "neupath.evidence.significance",
    "stability": "neupath.evidence.stability",
    "train_auto": "neupath.learn.auto",
    "what_if": "neupath.evidence.counterfactuals",
}
_ROOMS = ("engine", "errors", "graph", "io", "learn", "measures", "store")  # as in `neupath.errors.GraphError`
_MOVED = {
    "neupath.engine.hits": "Hit Hits",
    "neupath.engine.join": "Joined",
    "neupath.errors": "SourceWarning",
    "neupath.evidence.comparison": "RankComparison",
    "neupath.evidence.counterfactuals": "WhatIf",
    "neupath.evidence.explanation": "Explanation SetExplanation explain_set",
    "neupath.evidence.relate": "Related",
    "neupath.evidence.significance": "Significance",
    "neupath.evidence.stability": "Stability",
    "neupath.graph.hin": "Edges",
    "neupath.graph.metapath": "Relation Schema enumerate_metapaths",
    "neupath.graph.nodes": "Nodes",
    "neupath.io": "from_networkx from_pyg from_triples to_networkx to_pyg write_folder",
    "neupath.learn.evaluation": "evaluate_pairs split_queries",
    "neupath.learn.inference": "Inferred",
    "neupath.learn.similarity_features": "SimilarityFeatures",
    "neupath.measures": (
        "AvgSim CommuteTime DWPC DWPCNoRepeats HeteSim Jaccard JoinSim Overlap PCRW PPR PathCount RWR RelSim SCAN "
        "SimRank Tversky"
    ),
}
"""Names that version 0.1 still finds here, with a warning that says where each one is."""
_GONE = {
    "CountPath": "it is a row of the paper's tables: from neupath_paper.countpath import CountPath",
    "PathRanker": "it is gone: use infer(hin, pairs).scorer, or train_auto(hin, pairs, folder)",
}


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return import_module(f"neupath.{name}")
    if name in _MODULE_OF:
        value = globals()[name] = getattr(import_module(_MODULE_OF[name]), name)
        return value
    for module, names in _MOVED.items():
        if name in names.split():
            from warnings import warn

            warn(f"neupath.{name} goes in version 0.2; write: from {module} import {name}", DeprecationWarning, 2)
            return getattr(import_module(module), name)
    if name in _GONE:
        raise ImportError(f"neupath has no {name} any more; {_GONE[name]}")
    raise AttributeError(f"module 'neupath' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*_MODULE_OF, "__version__"])


__all__ = [
    "HIN",
    "Combination",
    "MetaPath",
    "NeuPathError",
    "Part",
    "PathSim",
    "Scorer",
    "compare",
    "evaluate",
    "explain",
    "from_tables",
    "infer",
    "join",
    "load",
    "load_scorer",
    "open_index",
    "prepare",
    "relate",
    "significance",
    "stability",
    "what_if",
]
"""Without `NeuPath` and `train_auto`: a star import must not need torch."""

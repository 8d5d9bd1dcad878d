"""Search by example: labelled pairs in, weighted meta-paths out."""

from neupath.inference.explaining import CombinedExplanation, LookedAt, explain_combination, explain_model
from neupath.inference.inferred import Alternative, Inferred, InferredPart, suggest_pairs
from neupath.inference.inferring import infer
from neupath.inference.path_ranker import PathRanker, load_path_ranker
from neupath.inference.suggestions import Suggestion

__all__ = [
    "Alternative",
    "CombinedExplanation",
    "Inferred",
    "InferredPart",
    "LookedAt",
    "PathRanker",
    "Suggestion",
    "explain_combination",
    "explain_model",
    "infer",
    "load_path_ranker",
    "suggest_pairs",
]

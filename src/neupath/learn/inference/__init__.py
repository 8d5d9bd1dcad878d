"""Search by example: labelled pairs in, weighted meta-paths out."""

from neupath.explain.explanation import AttentionExplanation, CombinedExplanation, explain_combination, explain_model
from neupath.learn.inference.infer import Alternative, Inferred, InferredPart, infer, suggest_pairs
from neupath.learn.inference.path_ranker import PathRanker
from neupath.learn.inference.suggestions import Suggestion

__all__ = [
    "Alternative",
    "AttentionExplanation",
    "CombinedExplanation",
    "Inferred",
    "InferredPart",
    "PathRanker",
    "Suggestion",
    "explain_combination",
    "explain_model",
    "infer",
    "suggest_pairs",
]

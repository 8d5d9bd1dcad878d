"""Why two nodes are similar: path instances, meta-paths of a combination, attention of a model, and drawings.

`explain` splits the score of a measure over the paths between two nodes; `explain_model` does it for a combination or a
learned model. `drawing` draws an explanation with matplotlib, and is imported only where a picture is asked for.

May import measures, engine, graph, _runtime and errors.
"""

from neupath.explain.explanation import (
    AttentionExplanation,
    CombinedExplanation,
    ExplainedPart,
    Explanation,
    PathInstance,
    PathNode,
    explain,
    explain_combination,
    explain_model,
)

__all__ = [
    "AttentionExplanation",
    "CombinedExplanation",
    "ExplainedPart",
    "Explanation",
    "PathInstance",
    "PathNode",
    "explain",
    "explain_combination",
    "explain_model",
]

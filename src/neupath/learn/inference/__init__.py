"""Search by example: labelled pairs in, weighted meta-paths out.

`infer` searches `candidates`, computes their `features`, fits weights to them (`fitting` for scores, `binary_labels`
for yes/no labels) and returns an `Inferred`, which also suggests the pairs to label next.
"""

from neupath.learn.inference.infer import Alternative, Inferred, InferredPart, infer
from neupath.learn.inference.suggestions import Suggestion

__all__ = ["Alternative", "Inferred", "InferredPart", "Suggestion", "infer"]

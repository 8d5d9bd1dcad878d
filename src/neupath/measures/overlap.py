"""Overlap: what half-path rows share, of what the smaller one has."""

from neupath.engine.formula import Normalisation
from neupath.measures.path_measure import PathMeasure


class Overlap(PathMeasure):
    """Count the paths between two nodes, relative to those that the less connected one has to itself.

        s(x, y) = M[x,y] / min(M[x,x], M[y,y]),    M = W·Wᵀ,    W = A1·A2·…·Al

    Where W holds 0 and 1 only, s = |X ∩ Y| / min(|X|, |Y|) of the sets X and Y of middle nodes that x and y reach, so
    that a subset scores 1. With counts and weights s can exceed 1, up to √(max / min) of both norms.
    Szymkiewicz 1934; Simpson, American Journal of Science 1960.

    >>> from neupath import load
    >>> Overlap("author-paper-venue-paper-author").fit(load("toy")).score("Mike", "Mary")
    0.8
    """

    name = "overlap"
    normalisation = Normalisation.OVERLAP
    symmetric_only = True
    inferred_by_default = False
    bounded = False

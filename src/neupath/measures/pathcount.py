"""Path count: how many path instances join two nodes."""

from neupath.measures.path_measure import PathMeasure


class PathCount(PathMeasure):
    """Count the path instances between two nodes, or add up their weights; any meta-path.

        s(x, y) = M[x,y],    M = A1·A2·…·An

    >>> from neupath import load
    >>> PathCount("author-paper-venue").fit(load("toy")).score("Jim", "SIGMOD")
    50.0
    """

    name = "pathcount"
    bounded = False

"""PCRW, the path-constrained random walk."""

from neupath.measures.path_measure import PathMeasure


class PCRW(PathMeasure):
    """Give the probability that a random walk along the meta-path, from the query, ends at the target; any meta-path.

        s(x, y) = (U1·U2·…·Un)[x,y],    Ui = Ai with every row divided by its sum

    It is not symmetric: s(x, y) and s(y, x) differ. Lao, Cohen, Machine Learning 2010.

    >>> from neupath import load
    >>> round(PCRW("author-paper-venue").fit(load("toy")).score("Mike", "SIGMOD"), 4)
    0.6667
    """

    name = "pcrw"
    row_power = -1.0

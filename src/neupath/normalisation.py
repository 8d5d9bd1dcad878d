"""Normalisation: how a number of paths becomes a score."""

from enum import IntEnum


class Normalisation(IntEnum):
    """What is made of m = M[x,y], the paths between two nodes, by dx and dy, the paths of each to itself."""

    NONE = 0
    """s = m"""
    DICE = 1
    """s = 2·m / (dx + dy)"""
    COSINE = 2
    """s = m / √(dx·dy)"""

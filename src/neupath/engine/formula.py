"""The formula of a score, and the rank that scores give: s follows from m = M[x,y] and the squared norms dx and dy.

    s = m / (α·dx + β·dy + (1 - α - β)·m)

This is Tversky's index. With α = β = ½ it is the Dice coefficient, 2·m / (dx + dy), which is PathSim; with α = β = 1 it
is Jaccard's. The cosine and the overlap coefficient divide by something else, and a path count by nothing. Targets rank
by their scores, and ties are in node order.
"""

from enum import IntEnum
from typing import Any

import numpy as np

from neupath.graph.hin import Floats
from neupath.graph.nodes import Mask, Rows


class Normalisation(IntEnum):
    """What m is divided by.

    `denominator` computes it, in numpy and in compiled code. `gpu_kernels.cu` has the formula in its own language, and
    `index_kernels` and `counterfactual_kernels` have bounds on it.
    """

    NONE = 0  # s = m
    DICE = 1  # s = 2·m / (dx + dy), Tversky's with α = β = ½
    COSINE = 2  # s = m / √(dx·dy)
    JACCARD = 3  # s = m / (dx + dy - m), Tversky's with α = β = 1
    OVERLAP = 4  # s = m / min(dx, dy)
    TVERSKY = 5  # s = m / (α·dx + β·dy + (1 - α - β)·m)


Formula = tuple[int, float, float]
"""A normalisation as the kernels take it: NONE, COSINE, OVERLAP or TVERSKY, and α and β, which Tversky's reads."""

_WEIGHTS = {Normalisation.DICE: (0.5, 0.5), Normalisation.JACCARD: (1.0, 1.0)}
NONE, COSINE = int(Normalisation.NONE), int(Normalisation.COSINE)
OVERLAP, TVERSKY = int(Normalisation.OVERLAP), int(Normalisation.TVERSKY)
"""The kinds of formulas as compiled code takes them."""


def formula_of(normalisation: int | Formula) -> Formula:
    """Return a normalisation as the kernels take it.

    >>> formula_of(Normalisation.DICE), formula_of(Normalisation.COSINE)
    ((5, 0.5, 0.5), (2, 1.0, 1.0))
    """
    if isinstance(normalisation, tuple):
        return normalisation
    weights = _WEIGHTS.get(Normalisation(normalisation))
    return (int(normalisation), 1.0, 1.0) if weights is None else (TVERSKY, *weights)


def denominator(formula: Any, m: Any, dx: Any, dy: Any) -> Any:
    """Return what m is divided by, but for the cosine: of arrays in numpy, of numbers in compiled code."""
    kind, alpha, beta = formula
    if kind == OVERLAP:
        return np.minimum(dx, dy)
    return alpha * dx + beta * dy + (1.0 - alpha - beta) * m


def normalised(normalisation: int | Formula, m: Floats, dx: Floats | float, dy: Floats) -> Floats:
    """Return the scores of products; `product_kernels.normalised` does so for one, compiled.

    Only rounding can make a denominator 0 or less where m is above 0.

    >>> normalised(Normalisation.DICE, np.array([5.0]), 5.0, np.array([5.0]))
    array([1.])
    """
    formula = formula_of(normalisation)
    if formula[0] == NONE:
        return m
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        below = _root_of_product(dx, dy) if formula[0] == COSINE else denominator(formula, m, dx, dy)
        return np.divide(m, below, out=np.zeros(len(m)), where=below > 0)


def _root_of_product(dx: Floats | float, dy: Floats) -> Floats:
    """Return √(dx·dy), also where dx·dy nears the limits of a float, though its root does not."""
    product = dx * dy
    is_safe = (product > 1e-290) & (product < 1e290)
    return np.where(is_safe, np.sqrt(product), np.sqrt(dx) * np.sqrt(dy))


def write_formula(normalisation: int | Formula, numerator: float, query_norm: float, target_norm: float) -> str:
    """Write a score as a calculation.

    >>> write_formula(Normalisation.JACCARD, 5, 6, 7)
    '5 / (6 + 7 - 5)'
    """
    m, dx, dy = (f"{value:.6g}" for value in (numerator, query_norm, target_norm))
    formula = _, alpha, beta = formula_of(normalisation)
    written = {
        formula_of(Normalisation.NONE): m,
        formula_of(Normalisation.DICE): f"2 × {m} / ({dx} + {dy})",
        formula_of(Normalisation.COSINE): f"{m} / √({dx} × {dy})",
        formula_of(Normalisation.JACCARD): f"{m} / ({dx} + {dy} - {m})",
        formula_of(Normalisation.OVERLAP): f"{m} / min({dx}, {dy})",
    }
    return written.get(formula, f"{m} / ({m} + {alpha:.6g} × ({dx} - {m}) + {beta:.6g} × ({dy} - {m}))")


# ---- Ranks ---------------------------------------------------------------------------------------
_NO_ROWS = np.zeros(0, dtype=np.int64)


def best_first(scores: Floats, rows: Rows) -> Rows:
    """Return some rows, which ascend, by their scores, the highest first.

    >>> best_first(np.array([0.5, 0.9, 0.5]), np.array([0, 1, 2])).tolist()
    [1, 0, 2]
    """
    return rows[np.argsort(-scores[rows], kind="stable")]


def related(scores: Floats, left_out: Rows = _NO_ROWS, candidates: Mask | None = None) -> Rows:
    """Return the rows that a search ranks: those with a score above 0, but for some; ascending."""
    is_ranked = scores > 0 if candidates is None else (scores > 0) & candidates
    is_ranked[left_out] = False
    return np.flatnonzero(is_ranked)


def rank_of(scores: Floats, target: int, left_out: Rows = _NO_ROWS, rounding: float = 0.0) -> tuple[int | None, int]:
    """Return the rank of a target in a search, None if it is not among the hits, and the number of hits.

    Parameters
    ----------
    scores
        The score of every target.
    target
        The row of the target.
    left_out
        Rows that the search leaves out, such as the query.
    rounding
        Scores that differ by no more than this fraction count as equal.

    >>> rank_of(np.array([0.5, 0.9, 0.5, 0.0]), 2), rank_of(np.array([0.5, 0.0]), 1)
    ((3, 3), (None, 1))
    """
    rows = related(scores, left_out)
    at = int(np.searchsorted(rows, target))
    if at == len(rows) or rows[at] != target:
        return None, len(rows)
    own, others = scores[target], scores[rows]
    is_higher = others > own * (1 + rounding)
    is_tied_before = ~is_higher[:at] & (others[:at] >= own * (1 - rounding))
    return 1 + int(np.count_nonzero(is_higher)) + int(np.count_nonzero(is_tied_before)), len(rows)

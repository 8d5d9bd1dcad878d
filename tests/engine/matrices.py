"""Matrices that are hard to search, and the hits of all their rows by sorting all scores."""

import numpy as np
from hypothesis import strategies as st
from scipy.sparse import csr_array

from neupath.engine.formula import Formula, Normalisation, formula_of
from neupath.engine.products import Factors
from neupath.engine.topk import score_product
from neupath.graph.hin import freeze

KINDS = st.sampled_from(["ones", "counts", "tiny", "floats", "equal rows", "few rows", "one hub"])
_TVERSKY = [(1.0, 0.0), (0.0, 1.0), (0.9, 0.1), (0.2, 0.3), (2.0, 1.5), (0.5, 2.0), (0.3, 0.0)]
FORMULAS = st.sampled_from(
    [*map(formula_of, Normalisation), *((int(Normalisation.TVERSKY), *weights) for weights in _TVERSKY)]
)
"""All normalisations, and Tversky's with weights that bound its scores from one side, from both and above 1."""


def matrix(kind: str, seed: int, rows: int = 300, columns: int = 12) -> csr_array:
    """Return a random matrix that is hard to search in one way."""
    rng = np.random.default_rng(seed)
    dense = (rng.random((rows, columns)) < 0.4).astype(float)
    if kind == "counts":
        dense *= rng.integers(1, 40, dense.shape)
    elif kind == "tiny":
        dense *= 10.0 ** rng.integers(-90, -60, dense.shape)
    elif kind == "floats":
        dense *= rng.random(dense.shape)
    elif kind == "equal rows":
        dense[:] = dense[0]
    elif kind == "few rows":
        dense = dense[rng.integers(0, 9, rows)]
    elif kind == "one hub":
        dense[:, 0], dense[rng.integers(0, rows, 5)] = 1.0, 0.0
    return freeze(csr_array(dense))


def expected(factors: Factors, normalisation: int | Formula, k: int) -> list[list[tuple[int, float]]]:
    """Return the k best targets of every query without itself, by sorting all scores."""
    count = factors.left.shape[0]
    scores = score_product(factors, normalisation, np.arange(count))
    hits = []
    for query, row in enumerate(scores):
        order = np.lexsort((np.arange(len(row)), -row))
        hits.append([(int(y), float(row[y])) for y in order if row[y] > 0 and y != query][:k])
    return hits

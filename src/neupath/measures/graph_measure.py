"""GraphMeasure, the base class of measures over the whole graph, and the adjacency matrix that they share."""

from abc import abstractmethod
from collections.abc import Hashable
from math import log, log1p
from numbers import Integral, Real
from typing import ClassVar, Self

import numpy as np
from scipy.sparse import coo_array, csr_array, diags_array

from neupath._runtime.progress import Progress, no_progress
from neupath.engine.cache import cached, is_cached
from neupath.engine.scorer import Scorer
from neupath.engine.topk import Ranking, without_zeros
from neupath.errors import QueryError, excerpt
from neupath.graph.hin import HIN, Csr, Floats, check_graph, freeze
from neupath.graph.nodes import Mask, Rows

_QUERIES_PER_BLOCK = 64
_FAILURE = 1e-6  # the probability that any of the sketches of a graph is wrong by more than its bound
_LONG = 2.0  # expected seconds that are worth telling
ROUNDING = 1e-17
"""A share of a score that a float does not hold."""


class GraphMeasure(Scorer):
    """A measure over all paths of the graph at once, between nodes of one type.

    A[u,v] is the weight of all edges between two nodes of any types: relations are added up, and every edge can be
    walked both ways, so that A is symmetric.

    Parameters
    ----------
    node_type
        The type of queries and targets.
    """

    exact = False  # until `fit` knows better
    settings: ClassVar[tuple[str, ...]] = ()  # the parameters of the constructor besides the node type
    error_: float
    """No score differs by more than this from its exact value; 0 where only rounding makes a difference."""

    def __init__(self, node_type: str) -> None:
        self.node_type = node_type

    def fit(self, hin: HIN, progress: Progress = no_progress) -> Self:
        """Prepare to answer queries over a graph; return self.

        Parameters
        ----------
        hin
            The graph.
        progress
            Takes the stage of a long preparation, how much of it is done, and how much there is.
        """
        check_graph(hin)
        self.node_type_ = hin.schema.node_type(self.node_type)
        self.hin_ = hin
        self.rows_ = hin.numbering.rows(self.node_type_)
        self.error_ = self._prepare(progress)
        self.exact = self.error_ == 0
        return self

    @abstractmethod
    def _prepare(self, progress: Progress) -> float:
        """Compute what all queries need, or take it from the caches of the graph; return `error_`."""

    def _adjacency(self) -> Csr:
        """Return A, shape (nodes, nodes), sparse."""
        return _cached_adjacency(self.hin_)

    @abstractmethod
    def _score_nodes(self, nodes: Rows) -> Floats:
        """Return the score of some nodes with every node of the type; shape (queries, targets)."""

    def expected_seconds(self, hin: HIN) -> float:
        """Return about how many seconds of one core `fit` to a graph takes: 0 where a cache has what it prepares.

        >>> from neupath import load
        >>> from neupath.measures import SimRank
        >>> SimRank("author").expected_seconds(load("toy")) < 1
        True
        """
        key = self._prepared_key()
        return 0.0 if key is not None and is_cached(hin, key) else self._expected_seconds(_cached_adjacency(hin))

    def _prepared_key(self) -> Hashable | None:
        """Return the key under which what takes long to prepare is cached."""
        return None

    def _expected_seconds(self, adjacency: Csr) -> float:  # noqa: ARG002
        return 0.0

    def _announce(self, adjacency: Csr, progress: Progress) -> None:
        """Tell how long a preparation takes that is about to start."""
        seconds = self._expected_seconds(adjacency)
        if seconds >= _LONG:
            progress(f"preparing {self.name}, about {seconds:.0f} s", 0, None)

    @property
    def source_type(self) -> str:
        self._fitted()
        return self.node_type_

    def params(self) -> dict[str, object]:
        node_type = {"node_type": getattr(self, "node_type_", self.node_type)}
        return node_type | {name: getattr(self, name) for name in self.settings}

    def score_rows(self, queries: Rows) -> Floats:
        nodes = self.rows_.start + np.asarray(queries, dtype=np.int64)
        starts = range(0, len(nodes), _QUERIES_PER_BLOCK)
        blocks = [self._score_nodes(nodes[start : start + _QUERIES_PER_BLOCK]) for start in starts]
        return np.concatenate([np.zeros((0, self.rows_.stop - self.rows_.start)), *blocks])

    def rank_rows(self, queries: Rows, skipped: Rows, k: int, candidates: Mask | None, threads: int | None) -> Ranking:
        return without_zeros(super().rank_rows(queries, skipped, k, candidates, threads))


_LEAST_TOLERANCE = 1e-12
"""Rounding may hide whether an estimate is closer."""


def check_share(name: str, value: float, margin: float = 1e-6) -> float:
    """Return the value of a parameter; raise if it is not between 0 and 1, or is so near to them that steps run out."""
    if not _is_number(value) or not margin <= value <= 1 - margin:
        raise QueryError(
            f"{name} is {_shown(value)}; it must lie between 0 and 1, at least {margin:g} from both", parameter=name
        )
    return float(value)


def check_tolerance(value: float) -> float:
    """Return a tolerance; raise if it is not 0, for exact scores, or between the least one and 1."""
    if not _is_number(value) or not (value == 0 or _LEAST_TOLERANCE <= value < 1):
        raise QueryError(
            f"tolerance is {_shown(value)}; it must be 0, for exact scores, or lie between {_LEAST_TOLERANCE:g} and 1",
            parameter="tolerance",
        )
    return float(value)


def check_seed(value: int) -> int:
    """Return a seed; raise if it is not a whole number from 0 on."""
    if isinstance(value, bool) or not isinstance(value, Integral) or not 0 <= value < 2**63:
        raise QueryError(f"seed is {_shown(value)}; give a whole number from 0 to 2^63 - 1", parameter="seed")
    return int(value)


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _shown(value: object) -> str:
    """Return the value of a parameter for a sentence; an integer of many digits as a power of two."""
    if isinstance(value, int) and abs(value) >= 2**64:
        return f"about {'-' if value < 0 else ''}2^{value.bit_length()}"
    return str(value) if isinstance(value, Real) else excerpt(repr(value), 0)


def sketch_error(count: int, vectors: int) -> float:
    """Return by which share of itself the estimate of any of `count` squared norms from random vectors may be wrong.

    An estimate is the mean of so many squares of normal variables, or of weighted sums of such squares, which stray
    less. It is below 1 - s of the norm with a probability of at most e^(vectors/2·(s + ln(1 - s))), Chernoff's bound of
    a chi-squared variable, and as far above with a lower one.

    >>> round(sketch_error(1000, 256), 2)
    0.9
    """
    exponent = 2 * log(2 * max(count, 1) / _FAILURE) / vectors
    low, high = 0.0, 1.0 - 1e-12
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if -middle - log1p(-middle) < exponent else (low, middle)
    return high / (1 - high)


def whole_adjacency(hin: HIN) -> Csr:
    """Return A over all nodes in one numbering; shape (nodes, nodes), sparse."""
    size = hin.numbering.total
    total = csr_array((size, size), dtype=np.float64)
    for relation, matrix in hin.matrices.items():
        entries = matrix.tocoo()
        places = (
            entries.row + hin.numbering.first(relation.source),
            entries.col + hin.numbering.first(relation.target),
        )
        forth = coo_array((entries.data, places), shape=(size, size)).tocsr()
        back = forth.T - diags_array(forth.diagonal()) if relation.directed else csr_array((size, size))  # loops once
        total = total + forth + back
    return freeze(csr_array(total))


def _cached_adjacency(hin: HIN) -> Csr:
    return cached(hin, "A", lambda: whole_adjacency(hin))


def normalised_adjacency(adjacency: Csr) -> tuple[Csr, Floats]:
    """Return N = D^-½·A·D^-½, and the roots of the degrees, 1 for a node without edges."""
    degrees = np.asarray(adjacency.sum(axis=1), dtype=np.float64)
    roots = np.sqrt(np.where(degrees > 0, degrees, 1.0))
    scale = csr_array(diags_array(1 / roots))
    matrix = csr_array(scale @ adjacency @ scale)
    matrix.sort_indices()
    return freeze(matrix), roots

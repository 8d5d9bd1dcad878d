"""RestartWalk, the base class of PPR and RWR."""

from abc import abstractmethod
from functools import partial
from math import ceil, log, sqrt

import numpy as np

from neupath._runtime.disk_cache import Arrays
from neupath._runtime.progress import Progress, check_cancelled
from neupath.engine.cache import FileForm, cached, check_lengths, pack_matrix, unpack_matrix
from neupath.engine.products import csr_arrays
from neupath.graph.hin import Csr, Floats
from neupath.graph.nodes import Rows
from neupath.measures import graph_kernels as kernels
from neupath.measures.graph_measure import ROUNDING, GraphMeasure, check_share, check_tolerance, normalised_adjacency

_LIGHT = 1e8  # additions per query below which the exact scores are worth their time
_LOCAL = 10_000_000  # entries of N from which on local push is tried; below, loading its kernel takes longer
_PUSHED = 1  # passes over the edges that local push may cost before the rest is left to the global iteration


class RestartWalk(GraphMeasure):
    """The base of `PPR` and `RWR`: z = damping·N·z + (1 - damping)·e_q, with N = D^-½·A·D^-½.

    RWR is z itself, and PPR of v is z[v]·√(d_v / d_q).

    Chebyshev iteration starts with a residual r = e_q. After k steps z is wrong by at most 2·ρ^k·‖r‖, ρ = damping /
    (1 + √(1 - damping²)), since all eigenvalues of N lie between -1 and 1. On a graph where a query takes about a tenth
    of a second, it iterates until only rounding is left.

    On a large graph, local push comes first (Andersen, Chung, Lang, FOCS 2006). It moves a share of one node's residual
    to the result and the rest to its neighbours, as long as a node has r[u] > θ·√d_u; then no z[v] lacks more than
    θ·√d_v. Where the tolerance needs so small a θ that this is no longer local, it stops, and the iteration solves for
    the residual that is left.
    """

    settings = ("damping", "tolerance")
    others = "have score 0, or one that rounding hides"

    def __init__(self, node_type: str, *, damping: float, tolerance: float) -> None:
        super().__init__(node_type)
        self.damping = check_share("damping", damping)
        self.tolerance = check_tolerance(tolerance)

    @abstractmethod
    def _scale(self, roots: Floats, query: int) -> Floats:
        """Return what turns z into scores, from the roots of the degrees of the targets."""

    def _prepare(self, progress: Progress) -> float:  # noqa: ARG002
        form = FileForm(_pack, partial(_unpack, size=self.hin_.numbering.total))
        self.transitions_, self.roots_ = cached(self.hin_, "N", lambda: normalised_adjacency(self._adjacency()), form)
        rho = self.damping / (1 + sqrt(1 - self.damping**2))
        self.steps_ = ceil(log(ROUNDING / 2) / log(rho))
        is_light = self.steps_ * self.transitions_.nnz <= _LIGHT
        return 0.0 if is_light else self.tolerance

    def _score_nodes(self, nodes: Rows) -> Floats:
        if self.exact:
            start = np.zeros((self.transitions_.shape[0], len(nodes)))
            start[nodes, np.arange(len(nodes))] = 1.0
            walks = self._iterate(start, self.steps_)[self.rows_].T
        else:
            walks = np.stack([self._estimate(int(node)) for node in nodes])
        targets = self.roots_[self.rows_]
        scales = np.stack([self._scale(targets, int(node)) for node in nodes])
        return np.where(walks > ROUNDING, walks * scales, 0.0)  # an iteration ends near a score that is all but 0

    def set_scores(self, members: Rows, weights: Floats) -> Floats:
        """Add up the scores: a walk that restarts at the members of a set, as often as they weigh, is that sum."""
        return np.asarray(weights @ self.score_rows(members))

    def _estimate(self, query: int) -> Floats:
        """Return z of one query at the targets, close enough for the tolerance."""
        matrix, targets = self.transitions_, self.roots_[self.rows_]
        allowed = self.tolerance / self._scale(targets, query)  # error of each z
        rest = np.zeros(len(self.roots_))
        scores: Floats = np.zeros(len(targets))
        rest[query] = 1.0
        if matrix.nnz > _LOCAL:
            least = float((allowed / targets).min())
            walks, rest, threshold = kernels.push(
                *csr_arrays(matrix), self.roots_, self.damping, query, least,
                _PUSHED * matrix.nnz,
            )  # fmt: skip
            scores = walks[self.rows_]
            if threshold <= least:
                return scores
        rho = self.damping / (1 + sqrt(1 - self.damping**2))
        excess = 2 * float(np.linalg.norm(rest)) / float(allowed.min())
        steps = max(1, ceil(log(excess) / -log(rho)))
        return scores + self._iterate(rest[:, None], steps)[self.rows_, 0]

    def _iterate(self, start: Floats, steps: int) -> Floats:
        """Solve z = damping·N·z + (1 - damping)·start by Chebyshev iteration; shape of start (nodes, queries)."""
        first = (1 - self.damping) * start
        before, now, weight = np.zeros_like(first), first, 1.0
        for step in range(1, steps):
            check_cancelled()
            weight = 1 / (1 - self.damping**2 * weight / (2 if step == 1 else 4))
            after: Floats = np.asarray(self.transitions_ @ now)
            after *= self.damping
            after += first
            after -= before
            after *= weight
            after += before
            before, now = now, after
        return now


def _pack(walk: tuple[Csr, Floats]) -> Arrays:
    matrix, roots = walk
    return Arrays(pack_matrix("n", matrix) | {"roots": roots})


def _unpack(entry: Arrays, size: int) -> tuple[Csr, Floats]:
    check_lengths(entry, roots=size)
    return unpack_matrix("n", entry, (size, size)), entry.arrays["roots"]

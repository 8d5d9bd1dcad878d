"""SimRank, one query at a time."""

from collections.abc import Hashable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from math import ceil, log

import numpy as np
from scipy.sparse import csr_array, diags_array, eye_array

from neupath._runtime.disk_cache import Arrays
from neupath._runtime.progress import Progress, check_cancelled
from neupath._runtime.resources import count_cores
from neupath.engine.cache import FileForm, cached, check_lengths, pack_matrix, unpack_matrix
from neupath.engine.products import csr_arrays
from neupath.engine.topk import in_blocks
from neupath.graph.hin import Csr, Floats
from neupath.graph.nodes import Rows
from neupath.measures import graph_kernels as kernels
from neupath.measures.graph_measure import (
    ROUNDING,
    GraphMeasure,
    check_seed,
    check_share,
    check_tolerance,
    sketch_error,
)

_FEW = 8  # edges of a node
_LIGHT = 3e8  # additions below which the exact correction is worth its time
_ENTRIES = 1 << 22  # numbers that the walks of a block of queries may take
_SKETCHES = 256, 2048  # the least and the most random vectors; a smaller tolerance takes more
_COLUMNS = 64  # random vectors that are multiplied at a time
_SMALL = 1e-7  # an entry of the meetings that is not kept, but added to the others of its row
_ALL_KEPT = 4096  # nodes of a graph of which all entries are kept
_ROWS = 2048  # nodes whose walks are computed between two reports of progress
_ROUNDED = (
    4e-15  # the error that rounding leaves in a term of the correction; terms add up to 1/(1 - decay) of the first
)
_NEAREST = 1e-3  # to 0 and 1 of the decay: each step of so many that count takes a number for every node
_MOST_ATTEMPTS = 20  # each with a better guess of C


class SimRank(GraphMeasure):
    """Two nodes are similar where their neighbours are.

        s(x, y) = decay·mean_{i ~ x, j ~ y} s(i, j),    s(x, x) = 1

    The mean weighs neighbours by their edges. So s is the expected decay^t, t being the step at which two random walks
    from x and y first meet. Jeh, Widom, KDD 2002.

    With U = D⁻¹·A, S = decay·U·S·Uᵀ + C, where the diagonal C, the correction, restores the ones (Maehara, Kusumoto,
    Kawarabayashi, 2014). So a query needs one vector, multiplied out and back, and no matrix of all pairs:

        S·e_q = Σ_j decay^j·U^j·C·(Uᵀ)^j·e_q

    C is computed once per graph: C = 1 - Σ_{j≥1} decay^j·(U^j∘U^j)·C. The first steps j of each node are walked
    exactly, as many as it needs. What the later ones add is the squared norm of a row of U^j·√C, which random
    vectors estimate. If this leaves a diagonal of 1 ± ε, a score is wrong by at most ε times itself: the error of S is
    harmonic off the diagonal as S is, so it is the expected decay^t times the error at the node where the walks meet.
    The page on measures has the proof, and what goes into ε.

    Parameters
    ----------
    node_type
        The type of queries and targets.
    decay
        How much similarity each step away loses, between 0 and 1.
    tolerance
        The most by which a score may be wrong, but for one preparation in a million; 0 for exact scores. On small
        graphs all are exact: see `error_`.
    seed
        Of the random vectors.

    >>> from neupath import load
    >>> hits = SimRank("author").fit(load("toy")).top_k("Mike", k=2)
    >>> [(hit.id, round(hit.score, 4)) for hit in hits]
    [('Jim', 0.0879), ('Bob', 0.0785)]
    """

    name = "simrank"
    settings = ("decay", "tolerance", "seed")

    def __init__(self, node_type: str, *, decay: float = 0.6, tolerance: float = 0.01, seed: int = 0) -> None:
        super().__init__(node_type)
        self.decay = check_share("decay", decay, _NEAREST)
        self.tolerance, self.seed = check_tolerance(tolerance), check_seed(seed)

    def _prepare(self, progress: Progress) -> float:
        size = self.hin_.numbering.total
        walks = FileForm(_pack_walks, partial(_unpack_walks, size=size))
        self.out_, self.back_ = cached(self.hin_, "U", lambda: _walk_matrices(self._adjacency()), walks)
        correction = FileForm(_pack_correction, partial(_unpack_correction, size=size))
        self.correction_, error = cached(
            self.hin_, self._prepared_key(), partial(self._find_correction, progress), correction
        )
        self.steps_ = _steps(self.decay, ROUNDING if self._is_exact(self.out_) else self.tolerance / 10)
        return error

    def _prepared_key(self) -> Hashable:
        return self.name, self.decay, self.tolerance, self.seed

    def _expected_seconds(self, adjacency: Csr) -> float:
        degrees = np.diff(adjacency.indptr)
        if self._is_exact(adjacency):
            return 2e-9 * adjacency.nnz * int(np.count_nonzero(degrees)) * _steps(self.decay, ROUNDING)
        sketching = 0.4e-9 * adjacency.nnz * _vectors(self.tolerance) * _steps(self.decay, self.tolerance / 10)
        around = np.divide(adjacency.astype(np.bool_) @ degrees, degrees, out=np.zeros(len(degrees)), where=degrees > 0)
        is_remote = (degrees > 0) & (degrees <= _FEW) & (around <= _FEW**2)  # walks from there spread late
        return float(sketching + max(2e-9, 1e-11 / self.tolerance) * adjacency.nnz * is_remote.sum())

    def _is_exact(self, adjacency: Csr) -> bool:
        work = adjacency.nnz * adjacency.shape[0] * _steps(self.decay, ROUNDING)
        return self.tolerance == 0 or work <= _LIGHT

    def _find_correction(self, progress: Progress) -> tuple[Floats, float]:
        """Return C, and by how much it makes scores wrong."""
        self._announce(self.out_, progress)
        if self._is_exact(self.out_):
            diagonal, error = _Correction(self.out_, self.decay, 0.0, self.seed, progress).find()
            return diagonal, 0.0 if error <= _ROUNDED / (1 - self.decay) else error
        cut = self.decay ** (_steps(self.decay, self.tolerance / 10) + 1)  # of S, what a query leaves out
        allowed = (self.tolerance - cut) / (self.decay + cut)  # two walks meet after a step at the earliest
        diagonal, error = _Correction(self.out_, self.decay, allowed, self.seed, progress).find()
        return diagonal, self.decay * error + cut * (1 + error)

    def _score_nodes(self, nodes: Rows) -> Floats:
        size = max(1, _ENTRIES // (self.out_.shape[0] * self.steps_))
        blocks = [self._score_block(nodes[at : at + size]) for at in range(0, len(nodes), size)]
        return np.concatenate(blocks)

    def _score_block(self, nodes: Rows) -> Floats:
        columns = np.arange(len(nodes))
        start = np.zeros((self.out_.shape[0], len(nodes)))
        start[nodes, columns] = 1.0
        walks: list[Floats] = [start]
        for _ in range(self.steps_):
            check_cancelled()
            walks.append(np.asarray(self.back_ @ walks[-1]))
        scores = self.correction_[:, None] * walks.pop()
        while walks:
            check_cancelled()
            scores = self.decay * np.asarray(self.out_ @ scores) + self.correction_[:, None] * walks.pop()
        scores[nodes, columns] = 1.0
        return np.clip(scores[self.rows_].T, 0.0, 1.0)


def _steps(decay: float, rest: float) -> int:
    """Return after how many steps less than a rest of the score is left: decay^(steps + 1) ≤ rest."""
    return max(1, ceil(log(rest) / log(decay)) - 1)


def _walk_matrices(adjacency: Csr) -> tuple[Csr, Csr]:
    """Return U = D⁻¹·A, and its transpose by rows."""
    degrees = np.asarray(adjacency.sum(axis=1), dtype=np.float64)
    shares = np.divide(1.0, degrees, out=np.zeros_like(degrees), where=degrees > 0)
    out = csr_array(diags_array(shares) @ adjacency)
    return out, csr_array(out.T)


# ---- On disk -------------------------------------------------------------------------------------
def _pack_walks(walks: tuple[Csr, Csr]) -> Arrays:
    return Arrays(pack_matrix("out", walks[0]) | pack_matrix("back", walks[1]))


def _unpack_walks(entry: Arrays, size: int) -> tuple[Csr, Csr]:
    return unpack_matrix("out", entry, (size, size)), unpack_matrix("back", entry, (size, size))


def _pack_correction(correction: tuple[Floats, float]) -> Arrays:
    return Arrays({"diagonal": correction[0]}, {"error": correction[1]})


def _unpack_correction(entry: Arrays, size: int) -> tuple[Floats, float]:
    check_lengths(entry, diagonal=size)
    return entry.arrays["diagonal"], float(entry.facts["error"])


# ---- The correction ------------------------------------------------------------------------------
@dataclass(frozen=True)
class _Meetings:
    """Where two walks from a node meet: I + Σ_{j ≤ depth} decay^j·(U^j∘U^j), without its small entries."""

    matrix: Csr
    left_out: Floats  # the small entries of each row times a guess of C
    left_out_share: Floats  # the small entries of each row


def _vectors(allowed: float) -> int:
    """Return how many random vectors there are."""
    fewest, most = _SKETCHES
    return int(np.clip(2.56 / allowed, fewest, most)) // _COLUMNS * _COLUMNS


class _Correction:
    """Finds C such that the diagonal of S is 1 within `allowed`; 0 is for all that a float can hold."""

    def __init__(self, out: Csr, decay: float, allowed: float, seed: int, progress: Progress) -> None:
        self.out, self.decay, self.allowed, self.seed, self.progress = out, decay, allowed, seed, progress
        self.count = out.shape[0]
        self.steps = _steps(decay, allowed / 10 if allowed else ROUNDING)

    def find(self) -> tuple[Floats, float]:
        """Return C, and by how much the diagonal of S may differ from 1."""
        one_step = csr_array(self.decay * self.out.multiply(self.out)) + _identity(self.count)
        guess = _solve(one_step, np.ones(self.count), self.decay)
        cut = self.decay ** (self.steps + 1)
        vectors = _vectors(self.allowed) if self.allowed else 0
        # all depths and attempts count, because the estimates decide which of them are taken
        estimates = self.count * (self.steps + 1) * _MOST_ATTEMPTS
        over = sketch_error(estimates, vectors) if vectors else 0.0
        if vectors:  # a better guess saves a second round
            guess = _solve(one_step, 1 - self._sketch(guess, _SKETCHES[0], _MOST_ATTEMPTS)[1], self.decay)
            guess = np.clip(guess, 1 - self.decay, 1.0)  # as C is, also where the sketch is far off
        depths = np.full(self.count, 1 if self.allowed else self.steps)
        tail = np.zeros(self.count)
        for attempt in range(_MOST_ATTEMPTS):
            if vectors:
                tails = self._sketch(guess, vectors, attempt)
                is_deep = (over + 0.2 * (1 + over)) * tails + cut <= 0.9 * self.allowed  # 0.2 for a better guess of C
                depths = np.maximum(depths, np.argmax(is_deep, axis=0))
                tail = tails[depths, np.arange(self.count)]
            meetings = self._meet(guess, depths)
            known = 1 - meetings.left_out - tail
            diagonal = _solve(meetings.matrix, known, self.decay)
            change = float(np.abs(diagonal / guess - 1).max(initial=0.0))
            rest = np.abs(known - meetings.matrix @ diagonal)
            error = (over + change * (1 + over)) * tail + change * meetings.left_out_share + rest
            worst = (float(error.max(initial=0.0)) + cut) / (1 - cut)
            if worst <= max(self.allowed, _ROUNDED):
                break
            guess = np.clip(diagonal, 1 - self.decay, 1.0)
        return diagonal, worst

    def _sketch(self, guess: Floats, vectors: int, attempt: int) -> Floats:
        """Estimate Σ_{i>j} decay^i·(U^i∘U^i)·C for each depth j; shape (steps + 1, nodes)."""
        out, roots = self.out.astype(np.float32), np.sqrt(guess).astype(np.float32)[:, None]

        def square_norms(block: int) -> Floats:
            rng = np.random.default_rng([self.seed, attempt, block])
            walks = roots * rng.standard_normal((self.count, _COLUMNS), dtype=np.float32)
            norms = np.zeros((self.steps + 1, self.count))
            for step in range(1, self.steps + 1):
                walks = out @ walks
                norms[step] = np.einsum("ij,ij->i", walks, walks)
            return norms

        total = np.zeros((self.steps + 1, self.count))
        blocks = range(vectors // _COLUMNS)
        with ThreadPoolExecutor(count_cores()) as threads:
            for block, norms in enumerate(threads.map(square_norms, blocks)):
                check_cancelled()
                total += norms
                self.progress("sketching walks", block + 1, len(blocks))
        total *= self.decay ** np.arange(self.steps + 1)[:, None] / vectors
        tails = np.zeros_like(total)
        tails[:-1] = np.cumsum(total[:0:-1], axis=0)[::-1]
        return tails

    def _meet(self, guess: Floats, depths: Rows) -> _Meetings:
        """Walk from every node, as many steps as its depth."""
        least = 0.0 if self.count <= _ALL_KEPT else max(1e-3 * self.allowed, _SMALL)
        parts: dict[int, tuple[Rows, Rows, Floats, Floats, Floats]] = {}

        def walk(block: slice, first: int, last: int) -> None:
            start = first + block.start
            parts[start] = kernels.meetings(
                *csr_arrays(self.out), self.decay, start,
                depths[first:last][block], guess, least,
            )  # fmt: skip

        for first in range(0, max(self.count, 1), _ROWS):
            last = min(first + _ROWS, self.count)
            in_blocks(partial(walk, first=first, last=last), last - first, None, self.out.nnz)
            self.progress("walking", last, self.count)
        blocks = zip(*(parts[at] for at in sorted(parts)), strict=True)
        sizes, columns, values, left_out, share = map(np.concatenate, blocks)
        indptr = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(sizes)])
        matrix = csr_array((values, columns, indptr), shape=self.out.shape) + _identity(self.count)
        return _Meetings(matrix, left_out, share)


def _identity(count: int) -> Csr:
    return csr_array(eye_array(count, format="csr"))


def _solve(matrix: Csr, known: Floats, decay: float) -> Floats:
    """Solve for C by Richardson iteration: the eigenvalues lie between about 1 / (1 + decay) and 1 / (1 - decay)."""
    solution = known.copy()
    for _ in range(2 * _steps(decay, ROUNDING)):
        rest = known - np.asarray(matrix @ solution)
        if np.abs(rest).max(initial=0.0) <= 1e-16:
            break
        solution += (1 - decay**2) * rest
    return solution

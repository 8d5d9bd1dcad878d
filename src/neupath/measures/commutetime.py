"""Commute time, by effective resistance."""

from collections import ChainMap
from collections.abc import Hashable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields, replace
from functools import partial
from math import ceil, log10
from typing import Any

import numpy as np
from scipy.sparse import coo_array, csr_array, diags_array, triu

from neupath._runtime.disk_cache import Arrays
from neupath._runtime.progress import Progress, check_cancelled
from neupath._runtime.resources import count_cores
from neupath.engine.cache import FileForm, cached, check_lengths, pack_matrix, unpack_matrix
from neupath.errors import GraphError
from neupath.graph.hin import Csr, Floats
from neupath.graph.nodes import Rows
from neupath.measures.graph_measure import GraphMeasure, check_seed, check_tolerance, normalised_adjacency, sketch_error

_MOST_CORE = 8192  # nodes of a dense matrix: 512 MB, inverted within half a minute
_MOST_EXACT_CORE = 16_384  # where exact scores are asked for: 2 GB, inverted within minutes
_SKETCHES = 256  # random vectors
_COLUMNS = 16  # vectors that are solved for at a time
_CLOSE, _FINE = (
    1e-9,
    1e-12,
)  # the share of a right-hand side that a solver may leave: two parts joined by few edges are far
_ROUNDED = 1e-9  # an error of scores that does not show in nine digits
_MOST_ITERATIONS = 10_000
_EDGES = 1 << 17  # whose random numbers are drawn at a time


class CommuteTime(GraphMeasure):
    """Rank targets by how soon a random walk gets there from the query and back.

        s(x, y) = 1 / (1 + r(x, y)),    r(x, y) = L⁺[x,x] + L⁺[y,y] - 2·L⁺[x,y],    L = D - A

    r is the effective resistance: the expected time there and back, divided by the sum of all degrees, which is the
    same for all pairs. Nodes without a path between them score 0. Fouss, Pirotte, Renders, Saerens, TKDE 2007.

    A graph whose nodes have few neighbours is factored once: its nodes are eliminated, fewest neighbours first, until a
    dense core remains, and the diagonal of the inverse comes from the factors. All scores are exact then. In a graph
    that is dense itself, conjugate gradients solve for the query, and for y

        L⁺[y,y] = (1 - 2·π_y² + ‖row y of N·(I - N)^{+½}‖²) / d_y,    N = D^-½·A·D^-½,  π_y² = d_y / Σd

    where 256 random vectors estimate the norm, which is small (Spielman, Srivastava, STOC 2008). The few nodes for
    which this is not close enough are solved for. r is rounded to nine digits of the largest L⁺[y,y], so that nodes in
    equivalent places of a factored graph score the same on every machine. Where weights differ so much that rounding
    shows in these digits, `error_` says by how much, and `exact` is False.

    Parameters
    ----------
    node_type
        The type of queries and targets.
    tolerance
        The most by which a score may be wrong, but for one preparation in a million; 0 for exact scores. Where a graph
        can be factored, all are exact: see `error_`.
    seed
        Of the random vectors.

    >>> from neupath import load
    >>> hits = CommuteTime("author").fit(load("toy")).top_k("Mike", k=2)
    >>> [(hit.id, round(hit.score, 4)) for hit in hits]
    [('Jim', 0.5898), ('Bob', 0.4286)]
    """

    name = "commutetime"
    settings = ("tolerance", "seed")

    def __init__(self, node_type: str, *, tolerance: float = 0.01, seed: int = 0) -> None:
        super().__init__(node_type)
        self.tolerance, self.seed = check_tolerance(tolerance), check_seed(seed)

    def _prepare(self, progress: Progress) -> float:
        form = FileForm(_pack, partial(_unpack, size=self.hin_.numbering.total))
        self.prepared_ = cached(self.hin_, self._prepared_key(), partial(self._factor_or_sketch, progress), form)
        return self.prepared_.error

    def _prepared_key(self) -> Hashable:
        return self.name, self.tolerance, self.seed

    def _factor_or_sketch(self, progress: Progress) -> "_Factors | _Sketch":
        adjacency = _without_loops(self._adjacency())
        self._announce(adjacency, progress)
        factors = _factor(adjacency, self._most_core) if _expected_core(adjacency) <= self._most_core else None
        return factors or _sketch(adjacency, self.tolerance, self.seed, progress)

    @property
    def _most_core(self) -> int:
        return _MOST_CORE if self.tolerance else _MOST_EXACT_CORE

    def _expected_seconds(self, adjacency: Csr) -> float:
        """Return the time of elimination, or of conjugate gradients in a graph without parts that few edges join."""
        core = _expected_core(adjacency)
        if core <= self._most_core:
            return 6e-11 * core**3
        columns = np.count_nonzero(np.diff(adjacency.indptr)) if self.tolerance == 0 else 2 * _SKETCHES
        return 3e-8 * columns * adjacency.nnz

    def _score_nodes(self, nodes: Rows) -> Floats:
        return np.stack([self._score_node(int(node)) for node in nodes])

    def _score_node(self, node: int) -> Floats:
        check_cancelled()
        components = self.prepared_.components
        unit = self.prepared_.unit
        resistance = np.maximum(unit * np.round(self.prepared_.resistances(node)[self.rows_] / unit), 0.0)
        if self.rows_.start <= node < self.rows_.stop:
            resistance[node - self.rows_.start] = 0.0
        is_connected = components[self.rows_] == components[node]
        return np.where(is_connected, 1 / (1 + resistance), 0.0)


def _without_loops(adjacency: Csr) -> Csr:
    """Return A without the weights between a node and itself, which L does not have, and without zeros."""
    others = csr_array(adjacency - diags_array(adjacency.diagonal()))
    others.eliminate_zeros()
    others.sort_indices()
    return others


def _find_components(adjacency: Csr) -> Rows:
    from scipy.sparse.csgraph import connected_components

    return np.asarray(connected_components(adjacency, directed=False)[1], dtype=np.int64)


def _expected_core(adjacency: Csr) -> float:
    """Return about how many nodes elimination leaves: 0.42 of those that have five neighbours among each other."""
    from neupath.measures import graph_kernels as kernels  # loads numba

    return 0.42 * float(kernels.count_core(adjacency.indptr, adjacency.indices, 5))


# ---- On disk -------------------------------------------------------------------------------------
_MATRICES = ("transitions", "stationary")


def _pack(prepared: "_Factors | _Sketch") -> Arrays:
    values = {field.name: getattr(prepared, field.name) for field in fields(prepared)}
    error = values.pop("error")
    matrices = [pack_matrix(name, values.pop(name)) for name in _MATRICES if name in values]
    return Arrays(dict(ChainMap(values, *matrices)), {"error": error})


def _unpack(entry: Arrays, size: int) -> "_Factors | _Sketch":
    arrays, error = dict(entry.arrays), float(entry.facts["error"])
    check_lengths(entry, components=size, diagonal=size)
    if "roots" in arrays:
        check_lengths(entry, roots=size)
        count = int(arrays["components"].max(initial=-1)) + 1
        stationary = unpack_matrix("stationary", entry, (count, size))
        transitions = unpack_matrix("transitions", entry, (size, size))
        return _Sketch(arrays["components"], transitions, arrays["roots"], stationary, arrays["diagonal"], error)
    factors = _Factors(**arrays, error=error)
    core, steps, edges = len(factors.core_nodes), len(factors.order), len(factors.nodes)
    check_lengths(entry, core_nodes=core, order=steps, pivots=steps, starts=steps + 1, nodes=edges, shares=edges)
    starts, rows = factors.starts, (factors.core_nodes, factors.order, factors.nodes)
    is_inside = all(part.min(initial=0) >= 0 and part.max(initial=0) < max(size, 1) for part in rows)
    if not is_inside or (np.diff(starts) < 0).any() or starts[0] != 0 or starts[-1] > edges:
        raise ValueError("the factors are not those of this graph")
    if factors.core.shape != (core, core):
        raise ValueError(f"the core has shape {factors.core.shape} instead of ({core}, {core})")
    return factors


# ---- Exactly, by elimination ---------------------------------------------------------------------
@dataclass(frozen=True)
class _Factors:
    """L without one node of each component, its ground, as eliminated nodes and the inverse of the rest."""

    components: Rows
    diagonal: Floats  # of the inverse, (nodes,)
    error: float  # of scores, by rounding
    core_nodes: Rows
    core: Floats  # the inverse of what remains: nodes that all but form a clique, so that it is dense
    order: Rows  # eliminated nodes
    pivots: Floats  # of these
    starts: Rows  # of the neighbours of each in `nodes` and `shares`
    nodes: Rows
    shares: Floats

    @property
    def unit(self) -> float:
        """The last digit of r."""
        return _last_digit(self.diagonal)

    def resistances(self, query: int) -> Floats:
        """Return r(query, y) of every node y in its component; shape (nodes,)."""
        from neupath.measures import graph_kernels as kernels  # loads numba

        column = kernels.solve(
            self.order, self.pivots, self.starts, self.nodes, self.shares, self.core_nodes, self.core,
            len(self.diagonal), query,
        )  # fmt: skip
        total: Floats = self.diagonal[query] + self.diagonal - 2 * column
        return total


def _factor(adjacency: Csr, most_core: int) -> _Factors | None:
    """Factor L; return None where this leaves more than so many nodes in the core."""
    from neupath.measures import graph_kernels as kernels  # loads numba

    count, components = adjacency.shape[0], _find_components(adjacency)
    by_degree = np.lexsort((-np.diff(adjacency.indptr), components))  # without its hub, a component has sparse factors
    is_ground = np.zeros(count, dtype=np.bool_)
    is_ground[by_degree[np.unique(components[by_degree], return_index=True)[1]]] = True
    eliminated = kernels.eliminate(adjacency.indptr, adjacency.indices, adjacency.data, is_ground, most_core)
    factors, (is_gone, *remaining_rows, is_small) = eliminated[:5], eliminated[5:]
    core_nodes = np.flatnonzero(~is_gone & ~is_ground)
    if not is_small:
        return None
    check_cancelled()
    place = np.full(count, -1, dtype=np.int64)
    place[core_nodes] = np.arange(len(core_nodes))
    matrix = kernels.core_matrix(core_nodes, place, is_ground, is_gone, *remaining_rows)
    degrees = matrix.diagonal().copy()
    core = _inverse(matrix)
    diagonal = kernels.inverse_diagonal(*factors, place, core)
    if not np.isfinite(diagonal).all():
        least, most = adjacency.data.min(), adjacency.data.max()
        raise GraphError(
            f"cannot compute commute times with weights from {least:g} to {most:g}; scale them closer together"
        )
    strongest = float(np.asarray(adjacency.sum(axis=1)).max(initial=0.0))
    error = _rounding_error(diagonal, degrees, core) / (1 + 1 / strongest) ** 2 if strongest else 0.0
    # 1 / (1 + r) changes by 1 / (1 + r)² of what r does, and r is at least that of all edges of a node side by side
    return _Factors(components, diagonal, 0.0 if error <= _ROUNDED else min(1.0, error), core_nodes, core, *factors)


def _rounding_error(diagonal: Floats, degrees: Floats, core: Floats) -> float:
    """Return by how much rounding may make r wrong.

    Elimination only adds positive numbers, so that each entry of the inverse is right to its last digits, and the
    difference of entries that is r to some digits of the largest. A Cholesky factorisation loses as many more as the
    condition number of the core has, scaled to a diagonal of ones (Demmel, 1989). This is at most twice the trace of
    the scaled inverse, and r has four entries of the inverse: two of the diagonal, and twice one beside it.
    """
    trace = float(degrees @ core.diagonal())
    return float(np.finfo(np.float64).eps * diagonal.max(initial=0.0) * (16 + 4 * 2 * trace))


def _last_digit(diagonal: Floats) -> float:
    """Return the power of ten that is the ninth digit of the largest entry."""
    most = float(diagonal.max(initial=0.0))
    return 10.0 ** (ceil(log10(most)) - 10) if most > 0 else 1.0


def _inverse(matrix: Floats) -> Floats:
    """Return the inverse of a positive definite matrix, in place; NaN where rounding makes it indefinite."""
    from scipy.linalg.lapack import dpotrf, dpotri

    if not len(matrix):
        return matrix
    triangle, failure = dpotrf(matrix.T, overwrite_a=True)
    if not failure:
        triangle, failure = dpotri(triangle, overwrite_c=True)
    if failure:
        return np.full_like(matrix, np.nan)
    rows = triangle.T  # the lower triangle, by rows
    for row in range(len(rows)):
        rows[row, row + 1 :] = rows[row + 1 :, row]
    return np.ascontiguousarray(rows)


# ---- Within a tolerance, by conjugate gradients --------------------------------------------------
@dataclass(frozen=True)
class _Sketch:
    """I - N, and the diagonal of its pseudo-inverse, of which most entries are estimates."""

    components: Rows
    transitions: Csr  # N
    roots: Floats  # of the degrees, (nodes,)
    stationary: Csr  # π of each component, (components, nodes)
    diagonal: Floats
    error: float  # of scores

    @property
    def unit(self) -> float:
        """The last digit of r."""
        return _last_digit(self.diagonal / self.roots**2)

    def resistances(self, query: int) -> Floats:
        """Return r(query, y) of every node y in its component; shape (nodes,)."""
        start = np.zeros((len(self.roots), 1))
        start[query] = 1.0
        column = self.solve(start, _FINE)[:, 0]
        degrees = self.roots**2
        parts = column[query] / degrees[query] + self.diagonal / degrees
        total: Floats = parts - 2 * column / (self.roots * self.roots[query])
        return np.maximum(total, 1 / degrees)  # all current to y passes its own edges

    def solve(self, known: Floats, rest: float) -> Floats:
        """Solve (I - N)·x = known for each column, up to a share of it, and without its part along π."""
        enough = rest**2 * _squares(known)
        remainder = self._without_stationary(known)
        solution, direction, size = np.zeros_like(remainder), remainder.copy(), _squares(remainder)
        for _ in range(_MOST_ITERATIONS):
            if (size <= enough).all():
                break
            check_cancelled()
            image = np.asarray(self.transitions @ direction)
            np.subtract(direction, image, out=image)
            step = np.where(size > enough, _ratio(size, np.einsum("ij,ij->j", direction, image)), 0.0)
            solution += step * direction
            image *= step
            remainder -= image
            before, size = size, _squares(remainder)
            direction *= _ratio(size, before)
            direction += remainder
        return self._without_stationary(solution)

    def _without_stationary(self, values: Floats) -> Floats:
        along: Floats = np.asarray(self.stationary.T @ (self.stationary @ values))
        return values - along


def _squares(values: Floats) -> Floats:
    sums: Floats = np.einsum("ij,ij->j", values, values)
    return sums


def _ratio(above: Floats, below: Floats) -> Floats:
    return np.divide(above, below, out=np.zeros_like(above), where=below > 0)


def _sketch(adjacency: Csr, tolerance: float, seed: int, progress: Progress) -> _Sketch:
    """Estimate the diagonal of (I - N)⁺, and solve for the nodes where the estimate is not close enough."""
    components = _find_components(adjacency)
    transitions, roots = normalised_adjacency(adjacency)
    shares = roots / np.sqrt(np.bincount(components, roots**2))[components]
    size = int(components.max(initial=-1)) + 1, len(roots)
    stationary = csr_array((shares, (components, np.arange(len(roots)))), shape=size)
    solver = _Sketch(components, transitions, roots, stationary, np.ones(len(roots)), 0.0)
    if tolerance == 0:
        norms, error = np.zeros(len(roots)), np.full(len(roots), np.inf)
    else:
        norms = _sketch_norms(adjacency, solver, seed, progress)
        degrees = roots**2
        # r is at least 1/d, so that a score changes by less than r does
        error = sketch_error(len(roots), _SKETCHES) * norms * degrees / (1 + degrees) ** 2
    diagonal = 1 - 2 * shares**2 + norms
    inexact = np.flatnonzero((error > tolerance) & (np.diff(adjacency.indptr) > 0))
    for at in range(0, len(inexact), _COLUMNS):
        nodes = inexact[at : at + _COLUMNS]
        start = np.zeros((len(roots), len(nodes)))
        start[nodes, np.arange(len(nodes))] = 1.0
        # the error of this entry is the square of that of the solution
        diagonal[nodes] = solver.solve(start, _FINE if tolerance == 0 else _CLOSE)[nodes, np.arange(len(nodes))]
        error[nodes] = 0.0 if tolerance == 0 else _ROUNDED
        progress("solving for nodes", at + len(nodes), len(inexact))
    return replace(solver, diagonal=diagonal, error=float(error[np.diff(adjacency.indptr) > 0].max(initial=0.0)))


def _sketch_norms(adjacency: Csr, solver: _Sketch, seed: int, progress: Progress) -> Floats:
    """Estimate ‖row y of N·(I - N)^{+½}‖² of every node: (I - N)⁺ is F·Fᵀ, F = (I - N)⁺·D^-½·Bᵀ, B by edges."""
    edges = coo_array(triu(adjacency, 1))
    parts = [_incidence(edges, slice(at, at + _EDGES)) for at in range(0, edges.nnz, _EDGES)]

    def square_norms(block: int) -> Floats:
        rng = np.random.default_rng([seed, block])
        flows = np.zeros((len(solver.roots), _COLUMNS))
        for part in parts:
            flows += part @ rng.standard_normal((part.shape[1], _COLUMNS), dtype=np.float32)
        rows = np.asarray(solver.transitions @ solver.solve(flows / solver.roots[:, None], _CLOSE))
        norms: Floats = np.einsum("ij,ij->i", rows, rows)
        return norms

    total, blocks = np.zeros(len(solver.roots)), range(_SKETCHES // _COLUMNS)
    with ThreadPoolExecutor(count_cores()) as threads:
        for block, norms in enumerate(threads.map(square_norms, blocks)):
            check_cancelled()
            total += norms
            progress("sketching resistances", block + 1, len(blocks))
    return total / _SKETCHES


def _incidence(edges: Any, part: slice) -> Csr:
    """Return Bᵀ of some edges, the roots of their weights; shape (nodes, edges)."""
    sources, targets, weights = edges.row[part], edges.col[part], np.sqrt(edges.data[part]).astype(np.float32)
    columns = np.tile(np.arange(len(weights)), 2)
    signed = np.concatenate([weights, -weights])
    return csr_array((signed, (np.concatenate([sources, targets]), columns)), shape=(edges.shape[0], len(weights)))

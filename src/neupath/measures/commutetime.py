"""Commute time, by effective resistance."""

from collections import ChainMap
from collections.abc import Hashable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields, replace
from functools import partial
from math import log10
from typing import Any

import numpy as np
from scipy.sparse import coo_array, csr_array, diags_array, triu

from neupath._runtime.disk_cache import Arrays
from neupath._runtime.progress import Progress, check_cancelled
from neupath._runtime.resources import count_cores
from neupath.engine.cache import FileForm, cached, check_lengths, pack_matrix, unpack_matrix
from neupath.engine.products import csr_arrays
from neupath.errors import GraphError
from neupath.graph.hin import Csr, Floats
from neupath.graph.nodes import Rows
from neupath.measures import graph_kernels as kernels
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
_TRUSTED = 1e-3  # the share of an inverse that rounding may take before nothing is known of it
_SHARE_OF_NORMS = 0.9999  # of the tolerance; the solver may use the rest
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
    which this is not close enough are solved for. r is rounded to nine digits of the largest L⁺[y,y] of its component,
    so that nodes in equivalent places of a factored graph score the same on every machine; to more digits where this
    would show in a score. Where weights differ so much that rounding shows all the same, `error_` says by how much, and
    `exact` is False.

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
        return self.name, "digits by component", self.tolerance, self.seed

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
        unit = self.prepared_.units[components[node]]
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
    return 0.42 * float(kernels.count_core(*csr_arrays(adjacency)[:2], 5))


# ---- On disk -------------------------------------------------------------------------------------
_MATRICES = ("transitions", "stationary")


def _pack(prepared: "_Factors | _Sketch") -> Arrays:
    values = {field.name: getattr(prepared, field.name) for field in fields(prepared)}
    error = values.pop("error")
    matrices = [pack_matrix(name, values.pop(name)) for name in _MATRICES if name in values]
    return Arrays(dict(ChainMap(values, *matrices)), {"error": error})


def _unpack(entry: Arrays, size: int) -> "_Factors | _Sketch":
    arrays, error = dict(entry.arrays), float(entry.facts["error"])
    count = int(arrays["components"].max(initial=-1)) + 1
    check_lengths(entry, components=size, diagonal=size, units=count)
    if "roots" in arrays:
        check_lengths(entry, roots=size)
        stationary = unpack_matrix("stationary", entry, (count, size))
        transitions = unpack_matrix("transitions", entry, (size, size))
        parts = arrays["roots"], stationary, arrays["diagonal"], arrays["units"]
        return _Sketch(arrays["components"], transitions, *parts, error)
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
    units: Floats  # the last digit of r in each component
    error: float  # of scores, by rounding
    core_nodes: Rows
    core: Floats  # the inverse of what remains: nodes that all but form a clique, so that it is dense
    order: Rows  # eliminated nodes
    pivots: Floats  # of these
    starts: Rows  # of the neighbours of each in `nodes` and `shares`
    nodes: Rows
    shares: Floats

    def resistances(self, query: int) -> Floats:
        """Return r(query, y) of every node y in its component; shape (nodes,)."""
        column = kernels.solve(
            self.order, self.pivots, self.starts, self.nodes, self.shares, self.core_nodes, self.core,
            len(self.diagonal), query,
        )  # fmt: skip
        total: Floats = self.diagonal[query] + self.diagonal - 2 * column
        return total


def _factor(adjacency: Csr, most_core: int) -> _Factors | None:
    """Factor L; return None where this leaves more than so many nodes in the core."""
    count, components = adjacency.shape[0], _find_components(adjacency)
    by_degree = np.lexsort((-np.diff(adjacency.indptr), components))  # without its hub, a component has sparse factors
    is_ground = np.zeros(count, dtype=np.bool_)
    is_ground[by_degree[np.unique(components[by_degree], return_index=True)[1]]] = True
    eliminated = kernels.eliminate(*csr_arrays(adjacency), is_ground, most_core)
    factors, (is_gone, *remaining_rows, is_small) = eliminated[:5], eliminated[5:]
    core_nodes = np.flatnonzero(~is_gone & ~is_ground)
    if not is_small:
        return None
    check_cancelled()
    place = np.full(count, -1, dtype=np.int64)
    place[core_nodes] = np.arange(len(core_nodes))
    matrix = kernels.core_matrix(core_nodes, place, is_ground, is_gone, *remaining_rows)
    degrees = matrix.diagonal().copy()
    core = np.ascontiguousarray(_inverse(matrix))
    diagonal = kernels.inverse_diagonal(*factors, place, core)
    if not np.isfinite(diagonal).all():
        least, most = adjacency.data.min(), adjacency.data.max()
        raise GraphError(
            f"cannot compute commute times with weights from {least:g} to {most:g}; scale them closer together"
        )
    size = int(components.max(initial=-1)) + 1
    depths = _most_by(components, kernels.elimination_depths(*factors[:1], *factors[2:4], count), size)
    trace = np.bincount(components[core_nodes], degrees * core.diagonal(), size).astype(np.float64)
    noise = _rounding_error(_most_by(components, diagonal, size), depths, trace)
    units, error = _digits(components, diagonal, adjacency, noise)
    return _Factors(components, diagonal, units, error, core_nodes, core, *factors)


def _most_by(components: Rows, values: Floats, size: int) -> Floats:
    """Return the largest value of each component."""
    order = np.argsort(components, kind="stable")
    starts = np.searchsorted(components, np.arange(size), sorter=order)
    return np.maximum.reduceat(values[order], starts) if size else np.zeros(0)


def _rounding_error(largest: Floats, depths: Floats, trace: Floats) -> Floats:
    """Return by how much rounding may make r wrong in each component.

    Elimination only adds positive numbers, so that each entry of the inverse is right to its last digits, of which each
    level of elimination takes a share, and the difference of entries that is r to some digits of the largest. A
    Cholesky factorisation loses as many more as the condition number of the core has, scaled to a diagonal of ones
    (Demmel, 1989). This is at most twice the trace of the scaled inverse, and r has four entries of the inverse: two of
    the diagonal, and twice one beside it. Where the core keeps less than three digits, weights may have vanished in its
    diagonal beside larger ones, and with them what the trace would tell: nothing is known then.
    """
    relative = np.finfo(np.float64).eps * (16 + 4 * depths + 4 * 2 * trace)
    return np.where(relative < _TRUSTED, relative * largest, np.inf)


def _digits(components: Rows, diagonal: Floats, adjacency: Csr, noise: Floats) -> tuple[Floats, float]:
    """Return the last digit of r in each component, a power of ten, and by how much scores may be wrong.

    It is the ninth of the largest resistance, or a later one where that would show in scores and r has it.
    """
    largest = _most_by(components, diagonal, len(noise))
    strongest = _most_by(components, np.asarray(adjacency.sum(axis=1)).ravel(), len(noise))
    units, some = np.ones(len(noise)), np.flatnonzero((largest > 0) & (strongest > 0))
    if not len(some):
        return units, 0.0
    least, lost = 1 / strongest[some], noise[some]  # r is at least that of all edges of a node side by side
    ninth = 10.0 ** (np.ceil(np.log10(largest[some])) - 10)
    enough = 10.0 ** np.floor(log10(_ROUNDED) + 2 * np.log10(1 + least))
    had = 10.0 ** np.ceil(np.log10(np.maximum(lost, np.finfo(np.float64).tiny)))
    units[some] = np.minimum(ninth, np.where(lost > enough, had, enough))
    wrong = lost + units[some] / 2
    # of two scores 1 / (1 + r), the difference is that of r divided by both 1 + r
    shown = np.minimum(wrong / (1 + least) / (1 + np.maximum(least - wrong, 0.0)), 1.0)
    error = float(shown.max())
    return units, 0.0 if error <= _ROUNDED else error


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
    units: Floats  # the last digit of r in each component
    error: float  # of scores

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
            # along π nothing is solved for, and what rounding leaves there grows until it is all there is
            remainder = self._without_stationary(remainder - image)
            before, size = size, _squares(remainder)
            direction *= _ratio(size, before)
            direction += remainder
        return self._without_stationary(solution)

    def rest(self, known: Floats, solution: Floats) -> Floats:
        """Return what (I - N)·x leaves of the right-hand sides."""
        left: Floats = self._without_stationary(known) - solution + np.asarray(self.transitions @ solution)
        return left

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
    solver = _Sketch(components, transitions, roots, stationary, np.ones(len(roots)), np.ones(size[0]), 0.0)
    if tolerance == 0:
        norms, error = np.zeros(len(roots)), np.full(len(roots), np.inf)
    else:
        norms = _sketch_norms(adjacency, solver, seed, progress)
        degrees = roots**2
        # r is at least 1/d, so that a score changes by less than r does
        error = sketch_error(len(roots), _SKETCHES) * norms * degrees / (1 + degrees) ** 2
    diagonal = 1 - 2 * shares**2 + norms
    solved, left = np.zeros(len(roots)), np.zeros(len(roots))  # squares of solutions, and of what they leave
    inexact = np.flatnonzero((error > _SHARE_OF_NORMS * tolerance) & (np.diff(adjacency.indptr) > 0))
    for at in range(0, len(inexact), _COLUMNS):
        nodes = inexact[at : at + _COLUMNS]
        start = np.zeros((len(roots), len(nodes)))
        start[nodes, np.arange(len(nodes))] = 1.0
        # the error of this entry is the square of that of the solution
        solutions = solver.solve(start, _FINE if tolerance == 0 else _CLOSE)
        diagonal[nodes] = solutions[nodes, np.arange(len(nodes))]
        error[nodes] = 0.0 if tolerance == 0 else _ROUNDED
        if tolerance == 0:
            solved[nodes], left[nodes] = _squares(solutions), _squares(solver.rest(start, solutions))
        progress("solving for nodes", at + len(nodes), len(inexact))
    inverse = np.divide(diagonal, roots**2, out=np.zeros(len(roots)), where=roots > 0)
    units, rounded = _digits(components, inverse, adjacency, np.zeros(size[0]))
    estimated = float(error[np.diff(adjacency.indptr) > 0].max(initial=0.0))
    if tolerance == 0:
        most = np.sqrt(_most_by(components, left, size[0]))
        error_of_solver = _solver_error(_norms_of_all(components, solved, left), most)
    else:
        trace = np.bincount(components, np.maximum(diagonal, 0.0)).astype(np.float64)
        error_of_solver = _solver_error(trace, _left_of_far(solver, diagonal))
    return replace(solver, diagonal=diagonal, units=units, error=min(1.0, estimated + rounded + error_of_solver))


def _solver_error(norms: Floats, left: Floats) -> float:
    """Return by how much scores may be wrong, by a bound of ‖(I - N)⁺‖ and what solutions leave in each component.

    A column is wrong by at most the product; and r(x, y) by what the columns are, times 1/d_x + 1/d_y + 2/√(d_x·d_y).
    As r is at least 1/d_x and 1/d_y, a score is wrong by at most as much as a column.
    """
    error = float((norms * np.maximum(left, _FINE)).max(initial=0.0))
    return 0.0 if error <= _ROUNDED else error


def _norms_of_all(components: Rows, solved: Floats, left: Floats) -> Floats:
    """Bound ‖(I - N)⁺‖ of each component by all its entries, from the squares of solutions and of what they leave."""
    shares, norms = np.sqrt(np.bincount(components, left)), np.sqrt(np.bincount(components, solved))
    bounds: Floats = np.divide(norms, 1 - shares, out=np.full(len(norms), np.inf), where=shares < 1)
    return bounds


def _left_of_far(solver: _Sketch, diagonal: Floats) -> Floats:
    """Return what solutions leave in each component, from the node that is farthest from the others."""
    order = np.lexsort((diagonal, solver.components))
    start = np.zeros((len(diagonal), 1))
    start[order[np.diff(solver.components[order], append=-1) != 0]] = 1.0
    rest = solver.rest(start, solver.solve(start, _FINE))[:, 0]
    return np.sqrt(np.bincount(solver.components, rest**2))


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

"""Products of sparse matrices along a meta-path: two factors with their norms, or a chain where these are too large.

The half-path matrix of a symmetric meta-path is W = A1·A2·…·Al, and its product M = W·Wᵀ (`symmetric_product`). Other
measures multiply the two `Halves` of a path. `topk` ranks the targets of a query by M, normalised.
"""

import logging
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from math import floor, fsum, log2, log10
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, eye_array, vstack

from neupath._runtime.progress import check_cancelled
from neupath._runtime.resources import count_cores, free_memory, reserve_memory
from neupath.engine.cache import cached, graph_cache
from neupath.engine.product_kernels import transpose_columns
from neupath.engine.walk import walk_rows
from neupath.errors import GraphError, NotEnoughMemoryError
from neupath.graph.edges import index_type
from neupath.graph.hin import HIN, Csr, Floats, freeze
from neupath.graph.metapath import Link, MetaPath, Step
from neupath.graph.nodes import Rows

logger = logging.getLogger("neupath")


# ---- Factors and chains --------------------------------------------------------------------------
@dataclass
class Factors:
    """A product M = left·right in two factors, and the squared norms that normalise it.

    `left` has shape (sources, middle) and `right` (middle, targets). `left_norms[x]` is ‖left[x,:]‖² and
    `right_norms[y]` is ‖right[:,y]‖²; for W·Wᵀ both are the diagonal of M.
    """

    left: Csr
    right: Csr
    left_norms: Floats
    right_norms: Floats
    answered: int = 0  # the number of queries answered so far
    work: float = field(init=False)  # the number of additions that a query takes on average
    index: Any = None  # the index for many queries, built once it pays; see `index`
    on_device: Any = None  # its copy on a GPU, for many queries; see `gpu`
    is_cut: bool = False  # whether rows of `right` are missing, so that equal columns may have different norms

    def __post_init__(self) -> None:
        if self.right_norms is self.left_norms:  # right is left transposed, so its lengths count left's columns as well
            lengths = np.diff(self.right.indptr).astype(np.int64)
            additions = int(lengths @ lengths)
        else:
            additions = multiplications(self.left, self.right)
        self.work = additions / max(1, self.left.shape[0])

    @cached_property
    def fits_single(self) -> bool:
        """Whether all values of `right` are the same in single precision, in which an index then has them."""
        with np.errstate(over="ignore"):
            return bool(np.array_equal(self.right.data.astype(np.float32), self.right.data))

    @cached_property
    def index_type(self) -> str:
        """The type in which the kernels read the columns of both factors, one of `product_kernels.INDEX_TYPES`."""
        return str(np.result_type(*(array.dtype for m in (self.left, self.right) for array in (m.indptr, m.indices))))

    @cached_property
    def arrays(self) -> tuple[Any, ...]:
        """What the kernels read: (indptr, indices, data) of both factors, and the norms."""
        left, right = (csr_arrays(matrix, self.index_type) for matrix in (self.left, self.right))
        return left, right, self.left_norms, self.right_norms

    def rows(self, queries: Rows) -> Csr:
        """Return some rows of M."""
        return csr_array(self.left[queries] @ self.right)

    @property
    def all_rows(self) -> Rows:
        return np.arange(len(self.left_norms))

    @cached_property
    def bounds_are_safe(self) -> bool:
        """Whether bounds on scores hold: all norms are well within a float's range, and those of whole columns."""
        if self.is_cut:
            return False
        norms = np.concatenate([self.left_norms, self.right_norms])
        return bool(((norms == 0) | ((norms > 1e-200) & (norms < 1e200))).all())


@dataclass
class Chain:
    """A product whose factors do not fit into memory: its rows are propagated through the matrices, query by query.

    `matrices` lead from the sources to the targets. The norms are those of the two factors, which are never built.
    Sums run in another order than with factors, so scores of weighted paths may differ in their last digit.
    """

    matrices: Sequence[Csr]
    left_norms: Floats
    right_norms: Floats

    @cached_property
    def _identity(self) -> Csr:
        return identity(len(self.right_norms))

    @property
    def is_exact(self) -> bool:
        """Whether all weights are whole numbers, whose sums are the same in any order."""
        return all(is_whole(matrix) for matrix in self.matrices)

    def rows(self, queries: Rows) -> Csr:
        return walk_rows(self.matrices, queries)

    def blocks(self, queries: Rows) -> Iterator[tuple[slice, Factors]]:
        """Yield the rows of some queries block by block, each as the left factor of a product with the identity."""
        for block in _row_blocks(len(queries), self.matrices):
            rows = freeze(self.rows(queries[block]))
            yield block, Factors(rows, self._identity, self.left_norms[queries[block]], self.right_norms)


Product = Factors | Chain


def csr_arrays(matrix: Csr, index_type: str | None = None) -> tuple[NDArray[Any], NDArray[Any], Floats]:
    """Return a matrix as the kernels read it: (indptr, indices, data), the first two of one type."""
    kind = np.result_type(matrix.indptr, matrix.indices) if index_type is None else np.dtype(index_type)
    return matrix.indptr.astype(kind, copy=False), matrix.indices.astype(kind, copy=False), matrix.data


def symmetric_factors(left: Csr) -> Factors:
    """Return the factors of left·leftᵀ."""
    norms = row_norms(left)
    return Factors(left, _transposed(left), norms, norms)


def make_factors(left: Csr, right: Csr) -> Factors:
    """Return the factors of left·right."""
    return Factors(left, right, row_norms(left), column_norms(right))


# ---- Products along a meta-path ------------------------------------------------------------------
@dataclass(frozen=True)
class Halves:
    """The matrices of both halves of a path; `rights` is None where the second half is the first one transposed."""

    lefts: Sequence[Csr]
    rights: Sequence[Csr] | None = None

    def product(self) -> Product:
        return _product_of(multiply_chain(self.lefts), None if self.rights is None else multiply_chain(self.rights))


def symmetric_product(hin: HIN, metapath: MetaPath) -> Product:
    """Return W·Wᵀ of a symmetric meta-path, W = A1·A2·…·Al its first half; cached for all measures that need it."""
    half = metapath.half()
    return cached(hin, ("W·Wᵀ", half), lambda: _product_of(_multiply_steps(hin, half), None))


def link_matrix(hin: HIN, link: Link) -> Csr:
    """Return the weights of one link; those of a link with conditions are cached, each way it is walked."""
    if not link.is_filtered:
        return hin.matrix(link)
    if link.reverse:
        return cached(hin, ("link", link), lambda: freeze(link_matrix(hin, link.reversed()).T.tocsr()))
    return cached(hin, ("link", link), lambda: hin.matrix(link))


def adjacency(hin: HIN, step: Step) -> Csr:
    """Return the weights of one step; a step over several relations adds them up."""
    total = link_matrix(hin, step.links[0])
    for link in step.links[1:]:
        total = total + link_matrix(hin, link)
    return freeze(total) if len(step.links) > 1 else total


def adjacencies(hin: HIN, metapath: MetaPath) -> list[Csr]:
    """Return the weights of every step of a meta-path."""
    return [adjacency(hin, step) for step in metapath.steps]


def _multiply_steps(hin: HIN, metapath: MetaPath) -> list[Csr]:
    """Multiply the steps of a meta-path, reusing cached products of the same steps in other meta-paths.

    Reuse changes the order of multiplications. That changes the last digits unless all weights are whole numbers, and
    only then are products reused. One step alone has nothing to multiply.
    """
    steps, matrices = metapath.steps, adjacencies(hin, metapath)
    if len(matrices) == 1 or not all(is_whole(matrix) for matrix in matrices):
        return multiply_chain(matrices)

    def key(span: Span) -> Hashable:
        return "product", steps[slice(*span)]

    return multiply_chain(
        matrices,
        lambda span, build: cached(hin, key(span), build),
        lambda span: graph_cache(hin).find(key(span)) is not None,
    )


def _product_of(left: list[Csr], right: list[Csr] | None) -> Product:
    """Return the product of two multiplied halves; without `right`, it is `left` transposed."""
    if len(left) == 1 and (right is None or len(right) == 1):
        return symmetric_factors(left[0]) if right is None else make_factors(left[0], right[0])
    _warn_of_size(left if right is None or len(left) > 1 else right)
    norms = _chain_norms(left)
    back = [freeze(matrix.T.tocsr()) for matrix in reversed(left if right is None else right)]
    if right is None:
        return Chain([*left, *back], norms, norms)
    return Chain([*left, *right], norms, _chain_norms(back))


class CombinedRow(NamedTuple):
    """w = Σ c·left[x,:] over the members x of a set with their weights c: its middle nodes, ascending, and values."""

    middles: Rows
    values: Floats

    @property
    def norm(self) -> float:
        """‖w‖²."""
        return (
            float(_checked(np.add.reduceat(self.values**2, [0]), np.zeros(1, np.int64))[0]) if len(self.values) else 0.0
        )

    def before(self, middle: int) -> "CombinedRow":
        """Return the entries at the middle nodes before one."""
        if not len(self.middles) or self.middles[-1] < middle:
            return self
        count = np.searchsorted(self.middles, middle)
        return CombinedRow(self.middles[:count], self.values[:count])

    def part(self, sign: float) -> "CombinedRow":
        """Return the entries of one sign, as positive numbers."""
        chosen = self.values * sign > 0
        return CombinedRow(self.middles[chosen], self.values[chosen] * sign)


def combined_row(lines: Iterable[tuple[Rows, Floats]], weights: Floats) -> CombinedRow:
    """Add up rows, given as middle nodes and values, times their weights; sums run in the order of the rows."""
    rows = [(middles, weight * values) for (middles, values), weight in zip(lines, weights.tolist(), strict=True)]
    middles, values = np.concatenate([row[0] for row in rows]), np.concatenate([row[1] for row in rows])
    if len(rows) > 1 and len(middles):
        order = np.argsort(middles, kind="stable")
        middles, values = middles[order], values[order]
        firsts = np.flatnonzero(np.concatenate([[True], middles[1:] != middles[:-1]]))
        middles, values = middles[firsts], np.add.reduceat(values, firsts)
        if not values.all():
            middles, values = middles[values != 0], values[values != 0]
    return CombinedRow(middles, values)


def rows_of(left: Csr, members: Rows) -> list[tuple[Any, Floats]]:
    """Return some rows of a matrix, each as its columns and values."""
    spans = [slice(left.indptr[row], left.indptr[row + 1]) for row in members.tolist()]
    return [(left.indices[span], left.data[span]) for span in spans]


# ---- Chain multiplication ------------------------------------------------------------------------
_ENTRY = 12  # bytes of one entry of a product: its value and its column
_COPIES = 4  # a product takes this many times its size until it can be searched
_SMALL = 1 << 28  # bytes of a product below which it is neither reserved nor cancelled
_LARGE = 1 << 28  # bytes of a transpose from which on they are reserved
_BAND = 1 << 25  # entries of the columns that a thread transposes at once
_BLOCK = 1 << 26  # bytes of a block of rows on its way through a chain
_PART = 1 << 24  # entries of a part of a matrix's arrays
_BLOCK_WORK = 1 << 26  # multiplications of a block of rows of a large product: less than a second

_SMALLEST_EXPONENT = -1022  # of the smallest float with full precision

T = TypeVar("T")
Span = tuple[int, int]  # some neighbours in a chain: the first, and the one after the last
Reuse = Callable[[Span, Callable[[], Csr]], Csr]  # returns a known product of neighbours, or builds it


def multiply_chain(
    matrices: Sequence[Csr],
    reuse: Reuse = lambda _, build: build(),
    is_known: Callable[[Span], bool] = lambda _: False,
) -> list[Csr]:
    """Multiply a chain, always the neighbours that take the fewest multiplications; known products take none.

    The result is one matrix, or several where their products would not fit into memory.
    """
    chain = list(matrices)
    spans = [(i, i + 1) for i in range(len(chain))]
    check_smallest(chain)

    def cost(at: int) -> int:
        return 0 if is_known((spans[at][0], spans[at + 1][1])) else multiplications(chain[at], chain[at + 1])

    def multiply(at: int, work: int) -> Csr | None:
        a, b = chain[at : at + 2]
        span = spans[at][0], spans[at + 1][1]
        try:
            product = reuse(span, lambda: _multiply(a, b, work or multiplications(a, b)))
        except NotEnoughMemoryError:
            return None
        spans[at : at + 2] = [span]
        return product

    contract(chain, cost, multiply)
    return [tidy(matrix) for matrix in chain]


def check_smallest(chain: Sequence[Csr]) -> None:
    """Raise if a product of the smallest weights of a chain underflows, since its path would be lost."""
    if len(chain) < 2:
        return
    smallest = [
        min((float(np.min(part, where=part > 0, initial=np.inf)) for part in _parts(matrix.data)), default=np.inf)
        for matrix in chain
    ]
    exponent = fsum(map(log2, smallest))
    if exponent < _SMALLEST_EXPONENT:
        weight = f"1e{floor(exponent * log10(2))}"
        raise GraphError(
            f"a path along this meta-path may have the weight {weight}, the product of the smallest weights of "
            f"{len(smallest)} steps, less than a float can hold; shorten the meta-path, or scale the weights up"
        )


def contract(chain: list[T], cost: Callable[[int], int], multiply: Callable[[int, int], T | None]) -> None:
    """Replace two neighbours of a chain by their product, always the cheapest, until one is left.

    `cost(at)` is the work of multiplying the factors `at` and `at + 1`. `multiply(at, work)` returns their product, or
    None to stop.
    """
    work = [cost(at) for at in range(len(chain) - 1)]
    while work:
        at = int(np.argmin(work))
        product = multiply(at, work[at])
        if product is None:
            return
        chain[at : at + 2] = [product]
        del work[at]
        for changed in (at - 1, at):
            if 0 <= changed < len(work):
                work[changed] = cost(changed)


def multiplications(a: Csr, b: Csr) -> int:
    """Count the multiplications of a sparse product a·b exactly: Σⱼ nnz(a[:,j])·nnz(b[j,:])."""
    lengths = np.diff(b.indptr).astype(np.int64)
    return sum(int(lengths[part].sum()) for part in _parts(a.indices))


def _multiply(a: Csr, b: Csr, work: int) -> Csr:
    """Multiply two matrices; a large product, of so many multiplications, reserves its memory and can be cancelled."""
    if work * _ENTRY < _SMALL:
        return tidy(a @ b)
    size = _COPIES * _max_entries(a, b) * _ENTRY  # with its transpose and temporary copies
    parts = []
    with reserve_memory(size, "the product of this meta-path") as reservation:
        for rows in _blocks_of_work(a, b):
            check_cancelled()
            parts.append(tidy(a[rows] @ b))
            reservation.taken += parts[-1].nnz * _ENTRY
        return freeze(csr_array(vstack(parts, format="csr")))


def _blocks_of_work(a: Csr, b: Csr) -> Iterator[slice]:
    """Cut the rows of a product into blocks of about equal work."""
    done = np.cumsum(_row_lengths(a, b)) // _BLOCK_WORK
    ends = [*(np.flatnonzero(np.diff(done)) + 1).tolist(), a.shape[0]]
    return (slice(first, last) for first, last in pairwise([0, *ends]))


def _row_lengths(a: Csr, b: Csr) -> NDArray[np.int64]:
    """Count the multiplications of each row of a·b."""
    lengths = np.concatenate([[0], np.cumsum(np.diff(b.indptr).astype(np.int64)[a.indices])])
    result: NDArray[np.int64] = lengths[a.indptr[1:]] - lengths[a.indptr[:-1]]
    return result


def _max_entries(a: Csr, b: Csr) -> int:
    """Return an upper bound on the entries of a·b."""
    return int(np.minimum(_row_lengths(a, b), b.shape[1]).sum())


def _warn_of_size(chain: Sequence[Csr]) -> None:
    entries = min(_max_entries(a, b) for a, b in pairwise(chain))
    logger.warning(
        "paths along this meta-path join up to %s pairs of nodes, %.0f GiB with copies, and %.0f GiB are free: "
        "rows are propagated query by query instead, which is slower",
        f"{entries:,}", _COPIES * entries * _ENTRY / 2**30, free_memory() / 2**30,
    )  # fmt: skip


def _row_blocks(count: int, matrices: Sequence[Csr]) -> Iterator[slice]:
    """Cut `count` rows into blocks that take a bounded memory on their way through a chain."""
    widest = max(matrix.shape[1] for matrix in matrices)
    step = max(1, _BLOCK // (_ENTRY * max(1, widest)))
    return (slice(start, min(start + step, count)) for start in range(0, count, step))


# ---- Matrices and norms --------------------------------------------------------------------------
HEAVY_ENOUGH_FOR_INDEX = 500
"""Additions of an average query from which on an index for many queries may pay."""
LARGEST = 2.0**1022  # the largest norm of which a float can hold the sum of two


def identity(size: int) -> Csr:
    """Return the identity matrix, the product of a half without steps."""
    return freeze(csr_array(eye_array(size, format="csr")))


def tidy(matrix: Csr) -> Csr:
    """Return the matrix sorted and read-only, without the zeros that products of tiny weights leave."""
    if not matrix.data.flags.writeable:
        return matrix
    result = csr_array(matrix)
    if not result.data.all():
        result.eliminate_zeros()
    return freeze(result)


def _transposed(matrix: Csr) -> Csr:
    if matrix.nnz * _ENTRY < _LARGE:
        return freeze(matrix.T.tocsr())
    check_cancelled()
    with reserve_memory(2 * matrix.nnz * _ENTRY, "the product of this meta-path"):
        return _transposed_on_threads(matrix)


def _transposed_on_threads(matrix: Csr) -> Csr:
    height, width = matrix.shape
    kind = index_type(matrix.shape, matrix.nnz)
    indices, data = np.empty(matrix.nnz, dtype=kind), np.empty(matrix.nnz)
    indptr = transpose_into(matrix, indices, data)
    result = csr_array((data, indices, indptr.astype(kind, copy=False)), shape=(width, height))
    result.has_sorted_indices = True
    return freeze(result)


def transpose_into(
    matrix: Csr,
    indices: NDArray[Any],
    data: Floats,
    report: Callable[[int, int], object] = lambda _done, _total: None,
) -> NDArray[np.int64]:
    """Write the transpose of a large matrix to its arrays, which may be mapped files; return where its rows begin.

    Each thread reads all of the matrix and writes some of the columns, so that none is shared. Columns of more entries
    than a thread should write to at once, as into a file, are written in several rounds.
    """
    width, threads = matrix.shape[1], count_cores()
    counts = np.zeros(width, dtype=np.int64)
    for part in _parts(matrix.indices):
        counts += np.bincount(part, minlength=width)
    indptr = np.zeros(width + 1, dtype=np.int64)
    np.cumsum(counts, out=indptr[1:])
    ends, arrays = indptr[:-1].copy(), csr_arrays(matrix, str(indices.dtype))
    rounds = max(1, -(-matrix.nnz // (threads * _BAND)))
    cuts = np.searchsorted(indptr, np.linspace(0, matrix.nnz, rounds * threads + 1), side="right") - 1
    cuts[0], cuts[-1] = 0, width
    bands = list(pairwise(cuts.tolist()))
    with ThreadPoolExecutor(threads) as pool:
        for at in range(0, len(bands), threads):
            check_cancelled()
            report(at, len(bands))
            own = bands[at : at + threads]
            list(pool.map(lambda band: transpose_columns(*arrays, *band, ends, indices, data), own))
    return indptr


def is_whole(matrix: Csr) -> bool:
    """Whether all entries are whole numbers."""
    return not any(np.any(part != np.rint(part)) for part in _parts(matrix.data))


def _parts(array: NDArray[Any]) -> Iterator[NDArray[Any]]:
    """Cut an array into parts, so that what is computed from one takes little memory beside it."""
    return (array[start : start + _PART] for start in range(0, len(array), _PART))


def row_norms(matrix: Csr) -> Floats:
    """Return ‖matrix[x,:]‖² for every row x."""
    norms = np.zeros(matrix.shape[0])
    filled = np.flatnonzero(np.diff(matrix.indptr))
    starts = matrix.indptr[filled]
    ends = np.searchsorted(starts, np.arange(_PART, matrix.nnz, _PART))  # rows are not cut: a long one is a part
    with np.errstate(over="ignore"):  # `_checked` raises on overflow
        for first, last in pairwise(np.unique([0, *ends, len(filled)]).tolist()):
            begin, end = int(starts[first]), int(matrix.indptr[filled[last - 1] + 1])
            norms[filled[first:last]] = np.add.reduceat(matrix.data[begin:end] ** 2, starts[first:last] - begin)
    return _checked(norms, filled)


def column_norms(matrix: Csr) -> Floats:
    """Return ‖matrix[:,y]‖² for every column y."""
    with np.errstate(over="ignore"):
        norms = np.bincount(matrix.indices, matrix.data**2, matrix.shape[1]).astype(np.float64)
    return _checked(norms, matrix.indices)


def _chain_norms(matrices: Sequence[Csr]) -> Floats:
    """Return ‖row‖² for every row of a chain's product, which is computed block by block."""
    count = matrices[0].shape[0]
    blocks = (np.arange(count)[block] for block in _row_blocks(count, matrices))
    norms = np.concatenate([np.zeros(0), *(row_norms(walk_rows(matrices, rows)) for rows in blocks)])
    norms.flags.writeable = False
    return norms


def _checked(norms: Floats, filled: NDArray[np.integer]) -> Floats:
    """Raise if 2·norm overflows, or if half the norm of a non-empty row underflows: formulas take both."""
    if not (norms <= LARGEST).all():
        raise GraphError(
            "paths along this meta-path add up to more than a float can hold; shorten it, or scale the weights down"
        )
    if not (0.5 * norms[filled] > 0).all():
        raise GraphError(
            "paths along this meta-path add up to less than a float can hold; shorten it, or scale the weights up"
        )
    norms.flags.writeable = False
    return norms

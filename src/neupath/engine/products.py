"""Products along a MetaPath in two factors, or as a chain where these don't fit into memory, with their norms."""

import logging
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, eye_array

from neupath._runtime.resources import free_memory
from neupath.engine.cache import cached, graph_cache
from neupath.errors import GraphError
from neupath.graph.hin import HIN, Csr, Floats, freeze
from neupath.graph.metapath import MetaPath, Step
from neupath.graph.nodes import Rows


# ---- Normalisation -------------------------------------------------------------------------------
class Normalisation(IntEnum):
    """What is made of m = M[x,y], the paths between two nodes, by dx and dy, the paths of each to itself."""

    NONE = 0
    """s = m"""
    DICE = 1
    """s = 2·m / (dx + dy)"""
    COSINE = 2
    """s = m / √(dx·dy)"""


# ---- Chains --------------------------------------------------------------------------------------
_ENTRY = 12
"""Bytes of one entry of a product: its value and its column."""
_COPIES = 4
"""How many times its size a product takes until it can be searched."""
_SMALL = 1 << 28
"""Bytes that a product may take without asking how much memory is free."""
_BLOCK = 1 << 28
"""Bytes that a block of rows may take on its way through a chain."""

T = TypeVar("T")
Span = tuple[int, int]
"""Some neighbours in a chain: the first, and the one after the last."""
Reuse = Callable[[Span, Callable[[], Csr]], Csr]
"""Returns the product of some neighbours: one that is known, or else the one that is built."""


def multiply_chain(
    matrices: Sequence[Csr],
    reuse: Reuse = lambda _, build: build(),
    is_known: Callable[[Span], bool] = lambda _: False,
) -> list[Csr]:
    """Multiply a chain, always the neighbours next that take the fewest multiplications; known products take none.

    One matrix is left, or those whose products would not fit into memory.

    >>> from scipy.sparse import csr_array
    >>> wide, tall = csr_array(np.ones((1, 3))), csr_array(np.ones((3, 1)))
    >>> [product.toarray() for product in multiply_chain([wide, tall, wide])]
    [array([[3., 3., 3.]])]
    """
    chain = list(matrices)
    spans = [(i, i + 1) for i in range(len(chain))]

    def cost(at: int) -> int:
        return 0 if is_known((spans[at][0], spans[at + 1][1])) else multiplications(chain[at], chain[at + 1])

    def multiply(at: int, work: int) -> Csr | None:
        a, b = chain[at : at + 2]
        if work and not _fits(a, b, work):
            return None
        spans[at : at + 2] = [(spans[at][0], spans[at + 1][1])]
        return reuse(spans[at], lambda: tidy(a @ b))

    contract(chain, cost, multiply)
    return [tidy(matrix) for matrix in chain]


def contract(chain: list[T], cost: Callable[[int], int], multiply: Callable[[int, int], T | None]) -> None:
    """Put the product of two neighbours in their place, always the cheapest next, until one is left or none comes.

    `cost` says what the product of the factor at a place with the next one takes, and `multiply` makes it.
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


def propagate(matrices: Sequence[Csr], rows: np.ndarray) -> Csr:
    """Return some rows of a chain's product, never the whole."""
    found = csr_array(matrices[0][rows])
    for matrix in matrices[1:]:
        found = csr_array(found @ matrix)
    return found


def row_blocks(count: int, matrices: Sequence[Csr]) -> Iterator[slice]:
    """Cut `count` rows into blocks that fit into a bounded memory on their way through a chain."""
    widest = max(matrix.shape[1] for matrix in matrices)
    step = max(1, _BLOCK // (_ENTRY * max(1, widest)))
    return (slice(start, min(start + step, count)) for start in range(0, count, step))


def describe_size(chain: Sequence[Csr]) -> str:
    """Say how large the next product of a chain would be, and how much memory there is."""
    entries = min(_entries(a, b) for a, b in pairwise(chain))
    return (
        f"paths along this meta-path join up to {entries:,} pairs of nodes, {entries * _ENTRY / 2**30:,.0f} GiB, "
        f"and {free_memory() / 2**30:,.0f} GiB are free"
    )


def _fits(a: Csr, b: Csr, work: int) -> bool:
    """Whether a product of so many multiplications fits into memory, with its transpose and what making it takes."""
    return work * _ENTRY < _SMALL or _COPIES * _entries(a, b) * _ENTRY <= free_memory()


def _entries(a: Csr, b: Csr) -> int:
    """Bound the entries of a product."""
    lengths = np.concatenate([[0], np.cumsum(np.diff(b.indptr).astype(np.int64)[a.indices])])
    return int(np.minimum(lengths[a.indptr[1:]] - lengths[a.indptr[:-1]], b.shape[1]).sum())


def multiplications(a: Csr, b: Csr) -> int:
    """Count the multiplications of a sparse product a·b exactly: Σⱼ nnz(a[:,j])·nnz(b[j,:])."""
    return int(np.diff(b.indptr).astype(np.int64)[a.indices].sum())


def tidy(matrix: Csr) -> Csr:
    """Return the matrix without the zeros that products of tiny weights leave, sorted and read-only."""
    if not matrix.data.flags.writeable:
        return matrix
    kept = csr_array(matrix)
    if not kept.data.all():
        kept.eliminate_zeros()
    return freeze(kept)


# ---- Products along a MetaPath in two factors, or as a chain where these don't fit into memory, with their norms
logger = logging.getLogger("neupath")
LARGEST = 2.0**1022
"""The largest norm of which a float can hold the sum of two."""


@dataclass
class Factors:
    """A product M = left·right in two factors, and the squared norms that normalise it.

    `left` has shape (sources, middle) and `right` (middle, targets). `left_norms[x]` is ‖left[x,:]‖² and
    `right_norms[y]` is ‖right[:,y]‖²: for a path walked out and back, both are the diagonal of M.
    """

    left: Csr
    right: Csr
    left_norms: Floats
    right_norms: Floats
    answered: int = 0
    """How many queries were answered."""
    work: float = field(init=False)
    """How many additions a mean query takes."""
    index: Any = None
    """The product arranged for many queries, once it pays; see `index`."""

    def __post_init__(self) -> None:
        self.work = multiplications(self.left, self.right) / max(1, self.left.shape[0])

    @cached_property
    def arrays(self) -> tuple[Any, ...]:
        """What the kernels read: (indptr, indices, data) of both factors, and the norms."""
        left, right = ((matrix.indptr, matrix.indices, matrix.data) for matrix in (self.left, self.right))
        return left, right, self.left_norms, self.right_norms

    def rows(self, queries: Rows) -> Csr:
        """Return some rows of M."""
        return csr_array(self.left[queries] @ self.right)

    @property
    def every_query(self) -> Rows:
        return np.arange(len(self.left_norms))

    @cached_property
    def is_moderate(self) -> bool:
        """Whether all norms are well within a float's range, so that bounds on scores can be trusted."""
        norms = np.concatenate([self.left_norms, self.right_norms])
        return bool(((norms == 0) | ((norms > 1e-200) & (norms < 1e200))).all())


@dataclass
class Chain:
    """A product whose factors would not fit into memory: rows of it are propagated through the matrices, as asked for.

    `matrices` lead from the sources to the targets. Norms are those of the factors that are never made. Sums run in
    another order than with factors, so that scores of weighted paths may differ in their last digit.
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
        """Return some rows of M."""
        return propagate(self.matrices, queries)

    def blocks(self, queries: Rows) -> Iterator[tuple[slice, Factors]]:
        """Yield the rows of some queries, a block at a time, each as the left factor of a product with the identity."""
        for block in row_blocks(len(queries), self.matrices):
            rows = freeze(self.rows(queries[block]))
            yield block, Factors(rows, self._identity, self.left_norms[queries[block]], self.right_norms)


Product = Factors | Chain


@dataclass(frozen=True)
class Halves:
    """A path in two halves that meet in its middle, before they are multiplied; without `rights`, `lefts` and back."""

    lefts: Sequence[Csr]
    rights: Sequence[Csr] | None = None

    def product(self) -> Product:
        """Multiply each half."""
        return mirrored_chain(self.lefts) if self.rights is None else joined_chains(self.lefts, self.rights)


def adjacency(hin: HIN, step: Step) -> Csr:
    """Return the weights of one step; a step over several relations adds them up."""
    total = hin.matrix(step.links[0])
    for link in step.links[1:]:
        total = total + hin.matrix(link)
    return freeze(total) if len(step.links) > 1 else total


def adjacencies(hin: HIN, metapath: MetaPath) -> list[Csr]:
    """Return the weights of every step of a meta-path."""
    return [adjacency(hin, step) for step in metapath.steps]


def symmetric_product(hin: HIN, metapath: MetaPath) -> Product:
    """Return W·Wᵀ of a symmetric meta-path, W = A1·A2·…·Al its first half; the same for every measure that uses it."""
    half = metapath.half()
    return cached(hin, ("W·Wᵀ", half), lambda: mirrored_chain(_counted(hin, half)))


def _counted(hin: HIN, metapath: MetaPath) -> list[Csr]:
    """Multiply the steps of a meta-path as far as memory goes, with the products that other meta-paths made.

    Those change the order of multiplications, and with it the last digits, unless all weights are whole numbers.
    """
    steps, matrices = metapath.steps, adjacencies(hin, metapath)
    if not all(is_whole(matrix) for matrix in matrices):
        return multiply_chain(matrices)

    def key(span: Span) -> Hashable:
        return "product", steps[slice(*span)]

    return multiply_chain(
        matrices,
        lambda span, build: cached(hin, key(span), build),
        lambda span: graph_cache(hin).find(key(span)) is not None,
    )


def is_whole(matrix: Csr) -> bool:
    """Whether all entries are whole numbers."""
    return not np.any(matrix.data != np.rint(matrix.data))


def mirrored_chain(matrices: Sequence[Csr]) -> Product:
    """Return the product of a chain walked out and back."""
    out = multiply_chain(matrices)
    if len(out) == 1:
        return mirrored(out[0])
    _tell(out)
    norms = _chain_norms(out)
    return Chain([*out, *_backwards(out)], norms, norms)


def joined_chains(lefts: Sequence[Csr], rights: Sequence[Csr]) -> Product:
    """Return the product of two chains, which meet in the middle."""
    left, right = multiply_chain(lefts), multiply_chain(rights)
    if len(left) == 1 and len(right) == 1:
        return joined(left[0], right[0])
    _tell(left if len(left) > 1 else right)
    return Chain([*left, *right], _chain_norms(left), _chain_norms(_backwards(right)))


def identity(size: int) -> Csr:
    """Return the matrix that changes nothing, for a half that has no step."""
    return freeze(csr_array(eye_array(size, format="csr")))


def mirrored(left: Csr) -> Factors:
    """Return the factors of left·leftᵀ."""
    norms = squared_norms(left)
    return Factors(left, freeze(left.T.tocsr()), norms, norms)


def joined(left: Csr, right: Csr) -> Factors:
    """Return two matrices as the factors of their product."""
    return Factors(left, right, squared_norms(left), column_norms(right))


def squared_norms(matrix: Csr) -> Floats:
    """Return ‖matrix[x,:]‖² for every row x."""
    norms = np.zeros(matrix.shape[0])
    filled = np.flatnonzero(np.diff(matrix.indptr))
    with np.errstate(over="ignore"):  # what is too large is refused
        if len(filled):
            norms[filled] = np.add.reduceat(matrix.data**2, matrix.indptr[filled])
    return _checked(norms, filled)


def column_norms(matrix: Csr) -> Floats:
    """Return ‖matrix[:,y]‖² for every column y."""
    with np.errstate(over="ignore"):
        norms = np.bincount(matrix.indices, matrix.data**2, matrix.shape[1]).astype(np.float64)
    return _checked(norms, matrix.indices)


def _chain_norms(matrices: Sequence[Csr]) -> Floats:
    """Return ‖row‖² for every row of a chain's product, which is made and forgotten block by block."""
    count = matrices[0].shape[0]
    blocks = (np.arange(count)[block] for block in row_blocks(count, matrices))
    norms = np.concatenate([np.zeros(0), *(squared_norms(propagate(matrices, rows)) for rows in blocks)])
    norms.flags.writeable = False
    return norms


def _backwards(matrices: Sequence[Csr]) -> list[Csr]:
    return [freeze(matrix.T.tocsr()) for matrix in reversed(matrices)]


def _tell(chain: Sequence[Csr]) -> None:
    logger.warning("%s: rows are propagated query by query instead, which is slower", describe_size(chain))


def _checked(norms: Floats, filled: NDArray[np.integer]) -> Floats:
    """Refuse norms that a float cannot hold, twice over, or of `filled` rows that are nothing to it."""
    if not (norms <= LARGEST).all():
        raise GraphError(
            "paths along this meta-path add up to more than a float can hold; shorten it, or scale the weights down"
        )
    if not (norms[filled] > 0).all():
        raise GraphError(
            "paths along this meta-path add up to less than a float can hold; shorten it, or scale the weights up"
        )
    norms.flags.writeable = False
    return norms

"""Chains: products of several sparse matrices, in the order that takes least work, as far as memory goes."""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import TypeVar

import numpy as np
from scipy.sparse import csr_array

from neupath.graph import Csr, freeze
from neupath.machine import free_memory

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

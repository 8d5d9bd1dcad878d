"""Sparse chain products along a MetaPath: half-path matrices, their transposes and norms, and the one cache of them."""

import resource
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from threading import RLock
from typing import Any, TypeVar, cast
from weakref import WeakKeyDictionary

import numpy as np
from scipy.sparse import csr_array, eye_array

from neupath.errors import GraphError
from neupath.graph import HIN, Csr, Floats, freeze
from neupath.metapath import MetaPath, Step

T = TypeVar("T")
_ENTRY = 12
"""Bytes of one entry of a product: its value and its column."""
_SMALL = 1 << 30
"""Bytes that a product may take without asking how much memory is free."""
MOST_HELD = 4 << 30
"""Bytes of products that are kept for each graph."""
_cache: WeakKeyDictionary[HIN, dict[Hashable, object]] = WeakKeyDictionary()
_building = RLock()


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
    """How many queries were answered without an index."""
    work: float = field(init=False)
    """How many additions a mean query takes."""
    index: Any = None
    """The product arranged for many queries, once it pays; see `index.py`."""

    def __post_init__(self) -> None:
        self.work = multiplications(self.left, self.right) / max(1, self.left.shape[0])

    @cached_property
    def is_moderate(self) -> bool:
        """Whether all norms are well within a float's range, so that bounds on scores can be trusted."""
        norms = np.concatenate([self.left_norms, self.right_norms])
        return bool(((norms == 0) | ((norms > 1e-200) & (norms < 1e200))).all())


def adjacency(hin: HIN, step: Step) -> Csr:
    """Return the weights of one step; a step over several relations adds them up."""
    total = hin.matrix(step.links[0])
    for link in step.links[1:]:
        total = total + hin.matrix(link)
    return freeze(total) if len(step.links) > 1 else total


def adjacencies(hin: HIN, metapath: MetaPath) -> list[Csr]:
    """Return the weights of every step of a meta-path."""
    return [adjacency(hin, step) for step in metapath.steps]


def half_path(hin: HIN, metapath: MetaPath) -> Csr:
    """Return W = A1·A2·…·Al of a symmetric meta-path, so that path counts are W·Wᵀ; shape (sources, middle)."""
    half = metapath.half()
    return cached(hin, ("W", half), lambda: chain_product(adjacencies(hin, half)))


def out_and_back(hin: HIN, metapath: MetaPath) -> Factors:
    """Return the factors of W·Wᵀ for a symmetric meta-path, the same for every measure that uses them."""
    return cached(hin, ("W·Wᵀ", metapath.half()), lambda: mirrored(half_path(hin, metapath)))


def mirrored(left: Csr) -> Factors:
    """Return the factors of left·leftᵀ."""
    norms = squared_norms(left)
    return Factors(left, freeze(left.T.tocsr()), norms, norms)


def halved(matrices: Sequence[Csr]) -> Factors:
    """Return the factors of a chain, cut in its middle."""
    middle = max(1, len(matrices) // 2)
    left = chain_product(matrices[:middle])
    right = matrices[middle:] or [freeze(eye_array(left.shape[1], format="csr"))]
    return joined(left, chain_product(right))


def joined(left: Csr, right: Csr) -> Factors:
    """Return two matrices as the factors of their product."""
    column_norms: Floats = np.bincount(right.indices, right.data**2, right.shape[1]).astype(np.float64)
    return Factors(left, right, squared_norms(left), _checked(column_norms))


def squared_norms(matrix: Csr) -> Floats:
    """Return ‖matrix[x,:]‖² for every row x."""
    norms = np.asarray(matrix.multiply(matrix).sum(axis=1), dtype=np.float64).ravel()
    return _checked(norms)


def _checked(norms: Floats) -> Floats:
    if not np.isfinite(norms).all():
        raise GraphError(
            "paths along this meta-path add up to more than a float can hold; shorten it, or scale the weights down"
        )
    norms.flags.writeable = False
    return norms


def chain_product(matrices: Sequence[Csr]) -> Csr:
    """Multiply a chain, always the neighbours next that take the fewest multiplications.

    >>> from scipy.sparse import csr_array
    >>> wide, tall = csr_array(np.ones((1, 3))), csr_array(np.ones((3, 1)))
    >>> chain_product([wide, tall, wide]).toarray()
    array([[3., 3., 3.]])
    """
    chain = list(matrices)
    work = [multiplications(a, b) for a, b in pairwise(chain)]
    while work:
        at = int(np.argmin(work))
        _check_memory(chain[at], chain[at + 1], work[at])
        chain[at : at + 2] = [chain[at] @ chain[at + 1]]
        del work[at]
        if at > 0:
            work[at - 1] = multiplications(chain[at - 1], chain[at])
        if at < len(work):
            work[at] = multiplications(chain[at], chain[at + 1])
    return freeze(csr_array(_without_zeros(chain[0])))


def _check_memory(a: Csr, b: Csr, work: int) -> None:
    """Refuse a product that would not fit into memory; `work` is its number of multiplications."""
    if work * _ENTRY < _SMALL:
        return
    lengths = np.concatenate([[0], np.cumsum(np.diff(b.indptr).astype(np.int64)[a.indices])])
    entries = int(np.minimum(lengths[a.indptr[1:]] - lengths[a.indptr[:-1]], b.shape[1]).sum())
    if entries * _ENTRY > free_memory():
        raise GraphError(
            f"paths along this meta-path join up to {entries:,} pairs of nodes, {entries * _ENTRY / 2**30:,.0f} GiB, "
            f"and {free_memory() / 2**30:,.0f} GiB are free; use a shorter meta-path, or one past fewer hubs"
        )


def free_memory() -> int:
    """Return how many bytes of memory are free, or a lot where that is not known."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        free = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable"))
        return min(free, resource.getrlimit(resource.RLIMIT_AS)[0]) if _has_limit() else free
    except (OSError, StopIteration, ValueError):
        return 1 << 62


def _has_limit() -> bool:
    return resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY


def multiplications(a: Csr, b: Csr) -> int:
    """Count the multiplications of a sparse product a·b exactly: Σⱼ nnz(a[:,j])·nnz(b[j,:])."""
    return int(np.diff(b.indptr).astype(np.int64)[a.indices].sum())


def _without_zeros(matrix: Csr) -> Csr:
    if matrix.data.all():
        return matrix
    kept = matrix.copy()
    kept.eliminate_zeros()
    return kept


def cached(hin: HIN, key: Hashable, build: Callable[[], T]) -> T:
    """Return what was built for this graph under this key, building it the first time.

    The oldest is forgotten when all together takes more memory than a process that is asked for ever new meta-paths
    should hold.
    """
    entries = _cache.get(hin)
    if entries is not None and key in entries:
        return cast(T, entries[key])
    with _building:  # two threads that ask for the same build it once
        entries = _cache.get(hin, {})
        if key in entries:
            return cast(T, entries[key])
        value = build()
        kept = {**_cache.get(hin, {}), key: value}  # a new dictionary: others read the old one without a lock
        held = sum(map(bytes_of, kept.values()))
        while held > MOST_HELD and len(kept) > 1:
            held -= bytes_of(kept.pop(next(iter(kept))))
        _cache[hin] = kept
        return value


def bytes_of(value: object) -> int:
    """Return how many bytes the matrices of a cached value take."""
    if isinstance(value, Factors):
        return bytes_of(value.left) + bytes_of(value.right)
    if isinstance(value, list | tuple):
        return sum(map(bytes_of, value))
    return value.nnz * _ENTRY if isinstance(value, csr_array) else 0

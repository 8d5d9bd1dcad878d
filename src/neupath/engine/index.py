"""Inverted index of a product for many queries: equal rows are grouped, and targets are ordered by their norm.

Rows of a half-path matrix repeat: authors with papers at the same venues, movies with the same cast. Equal targets have
equal scores, so they form one label with several members, and equal queries form one group with one answer. Labels
ascend by norm, and the postings of a middle node list its labels in order. So the labels that can still reach the k-th
score are a stretch of the postings (Cauchy-Schwarz), found by binary search.
"""

from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property
from threading import RLock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from neupath._runtime.resources import reserve_memory
from neupath.engine import index_kernels as kernels
from neupath.engine.products import Factors, csr_arrays
from neupath.graph.hin import Csr, Floats

Ints = NDArray[np.int64]
_indexing = RLock()
_BYTES_PER_ENTRY = 40  # of an index while it is built: rows and postings, and copies of them
_SMALL = 1 << 28  # bytes of an index below which they are not reserved


@dataclass(frozen=True)
class Index:
    """See the module. `group_of` is by query row, `left` and `left_norms` by group, the other arrays by label."""

    group_of: Ints
    left: tuple[Any, ...]  # (indptr, indices, data), one row per group
    left_norms: Floats
    postings: tuple[Any, ...]  # (starts, labels, values), one stretch per middle node; no values: all are 1
    norms: Floats
    first_rows: Ints
    members: tuple[Ints, Ints]  # (starts, rows)
    label_of: NDArray[np.int32]  # of each target row; -1 where no path leads to it
    widest: int  # the most entries of a row of `left`

    @property
    def num_labels(self) -> int:
        return len(self.norms)

    @property
    def repeats(self) -> bool:
        """Whether most queries are equal to another one."""
        return 3 * len(self.left_norms) < len(self.group_of)

    def targets(self, wanted: int) -> tuple[Any, ...]:
        """Return what the kernel needs of targets: norms, first rows, numbers of rows, labels, number wanted."""
        return self.norms, self.first_rows, self.counts, self.label_of, wanted

    @cached_property
    def value_type(self) -> str:
        """The type of the values of postings, one of `index_kernels.VALUE_TYPES`."""
        return str(self.postings[2].dtype)

    @cached_property
    def counts(self) -> Ints:
        """The number of rows of each label."""
        return np.diff(self.members[0])


def index_of(factors: Factors) -> Index:
    """Return the index of a product, building it the first time."""
    with _indexing:
        if factors.index is None:
            size = _BYTES_PER_ENTRY * factors.left.nnz
            with nullcontext() if size < _SMALL else reserve_memory(size, "the index of this meta-path's product"):
                factors.index = build_index(factors)
        index: Index = factors.index
    return index


def build_index(factors: Factors) -> Index:
    """Build the index of a product."""
    is_symmetric = factors.right_norms is factors.left_norms
    targets = factors.left if is_symmetric else factors.right.T.tocsr()
    if not is_symmetric:
        targets.sort_indices()
    query_groups, query_first = _group(factors.left)
    target_groups, target_first = (query_groups, query_first) if is_symmetric else _group(targets)
    order = np.lexsort((target_first, factors.right_norms[target_first]))
    label_of_group = np.full(len(order) + 1, -1, dtype=np.int32)  # the last entry, at -1, is for rows in no group
    label_of_group[order] = np.arange(len(order), dtype=np.int32)
    label_of = label_of_group[target_groups]
    return Index(
        group_of=query_groups,
        left=_rows(factors.left, query_first),
        left_norms=factors.left_norms[query_first],
        postings=_postings(targets, target_first[order]),
        norms=factors.right_norms[target_first[order]],
        first_rows=target_first[order],
        members=_members(label_of, len(order)),
        label_of=label_of,
        widest=int(np.diff(factors.left.indptr).max(initial=0)),
    )


def _group(matrix: Csr) -> tuple[Ints, Ints]:
    """Return a group for each row, the same for equal rows and -1 for empty ones, and the first row of each group."""
    arrays = csr_arrays(matrix)
    hashes = kernels.hash_rows(*arrays)
    order = np.argsort(hashes, kind="stable")
    groups, first = kernels.group_rows(*arrays, order, hashes)
    return groups, first


def _rows(matrix: Csr, rows: Ints) -> tuple[Any, ...]:
    taken = matrix[rows]
    return taken.indptr.astype(np.int64), taken.indices.astype(np.int32), taken.data


def _postings(targets: Csr, rows: Ints) -> tuple[Any, ...]:
    """Return the postings, with values in single precision where that loses no digit."""
    transposed = targets[rows].T.tocsr()
    starts, labels, values = transposed.indptr.astype(np.int64), transposed.indices, transposed.data
    labels = labels.astype(np.uint32)  # unsigned, so that the kernels need no check for negative values
    if (values == 1.0).all():
        return starts, labels, np.zeros(0, dtype=np.float32)
    with np.errstate(over="ignore"):
        small = values.astype(np.float32)
    return starts, labels, small if np.array_equal(small.astype(np.float64), values) else values


def _members(label_of: NDArray[np.int32], count: int) -> tuple[Ints, Ints]:
    known = np.flatnonzero(label_of >= 0)
    rows = known[np.argsort(label_of[known], kind="stable")]
    starts = np.zeros(count + 1, dtype=np.int64)
    np.cumsum(np.bincount(label_of[known], minlength=count), out=starts[1:])
    return starts, rows.astype(np.int64)

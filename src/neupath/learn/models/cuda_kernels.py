"""Triton kernels: T-max pooling and sums of rows on CUDA. A file of its own, because Triton may not be installed."""

import torch
import triton  # type: ignore[import-not-found,unused-ignore]
import triton.language as tl  # type: ignore[import-not-found,unused-ignore]
from torch import Tensor

from neupath.learn.models.class_table import Stage


# ---- T-max pooling, one program per class --------------------------------------------------------
def find_tmax_cuda(source: Tensor, target: Tensor, edge: Tensor, stage: Stage) -> Tensor:
    """Find the same candidates as `find_tmax_torch`; (K, T, d)."""
    (size, slots), dim = stage.filled.shape, source.shape[1]
    tmax = torch.empty((size, slots, dim), dtype=torch.int64, device=source.device)
    block = min(256, triton.next_power_of_2(dim))
    _find_tmax[size, triton.cdiv(dim, block)](
        source.contiguous(), target.contiguous(), edge.contiguous(), stage.source, stage.target, stage.kind,
        stage.candidates, stage.indptr, tmax, len(stage.source), dim, slots, BLOCK=block,
    )  # fmt: skip
    return tmax


@triton.jit  # type: ignore[untyped-decorator,unused-ignore]
def _find_tmax(  # type: ignore[no-untyped-def]
    source, target, edge, source_of, target_of, kind_of,
    candidates, indptr, tmax, none, dim, slots, BLOCK: tl.constexpr,  # noqa: N803
):  # fmt: skip
    """Write the candidates of one class for one block of elements.

    Candidates are ordered by descending value and, among equal ones, by place. Each of T rounds looks for the first one
    after that of the round before.
    """
    k = tl.program_id(0).to(tl.int64)
    element = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = element < dim
    begin, end = tl.load(indptr + k), tl.load(indptr + k + 1)
    last_value = tl.full([BLOCK], float("inf"), tl.float32)
    last_place = tl.full([BLOCK], -1, tl.int64)
    for slot in range(slots):
        value = tl.full([BLOCK], float("-inf"), tl.float32)
        place = tl.full([BLOCK], -1, tl.int64)
        for at in range(begin, end):
            candidate = tl.load(candidates + at)
            a = tl.load(source + tl.load(source_of + candidate) * dim + element, mask=inside, other=0.0)
            b = tl.load(target + tl.load(target_of + candidate) * dim + element, mask=inside, other=0.0)
            c = tl.load(edge + tl.load(kind_of + candidate) * dim + element, mask=inside, other=0.0)
            new = (a + b + c).to(tl.float32)
            left = (new < last_value) | ((new == last_value) & (at > last_place))
            better = left & (new > value)
            value = tl.where(better, new, value)
            place = tl.where(better, at, place)
        chosen = tl.load(candidates + place, mask=place >= 0, other=0)
        tl.store(tmax + (k * slots + slot) * dim + element, tl.where(place >= 0, chosen, none), mask=inside)
        last_value, last_place = value, place


# ---- Sums of rows, one program per sum -----------------------------------------------------------
def add_rows(x: Tensor, rows: Tensor, offsets: Tensor) -> Tensor:
    """Return the sum of x[rows[offsets[i]:offsets[i+1]]] for each i, added up in this order; (sums, d)."""
    count, dim = len(offsets) - 1, x.shape[1]
    sums = torch.empty((count, dim), dtype=x.dtype, device=x.device)
    block = min(256, triton.next_power_of_2(dim))
    if count and dim:
        _add_rows[count, triton.cdiv(dim, block)](x.contiguous(), rows, offsets, sums, dim, BLOCK=block)
    return sums


@triton.jit  # type: ignore[untyped-decorator,unused-ignore]
def _add_rows(x, rows, offsets, sums, dim, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]  # noqa: N803
    """Write one block of elements of one sum."""
    i = tl.program_id(0).to(tl.int64)
    element = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = element < dim
    total = tl.zeros([BLOCK], tl.float32)
    for at in range(tl.load(offsets + i), tl.load(offsets + i + 1)):
        total += tl.load(x + tl.load(rows + at) * dim + element, mask=inside, other=0.0)
    tl.store(sums + i * dim + element, total, mask=inside)

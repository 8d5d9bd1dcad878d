"""The winners on CUDA: one Triton kernel for all classes, whatever their number of candidates."""

import torch
import triton  # type: ignore[import-not-found,unused-ignore]
import triton.language as tl  # type: ignore[import-not-found,unused-ignore]
from torch import Tensor

from neupath.learn.models.class_table import Stage


def find_tmax_cuda(source: Tensor, target: Tensor, edge: Tensor, stage: Stage) -> Tensor:
    """Find the winners; (K, T, d)."""
    (size, slots), dim = stage.filled.shape, source.shape[1]
    winners = torch.empty((size, slots, dim), dtype=torch.int64, device=source.device)
    block = min(256, triton.next_power_of_2(dim))
    _find_winners[size, triton.cdiv(dim, block)](
        source.contiguous(), target.contiguous(), edge.contiguous(), stage.source, stage.target, stage.kind,
        stage.candidates, stage.indptr, winners, len(stage.source), dim, slots, BLOCK=block,
    )  # fmt: skip
    return winners


@triton.jit  # type: ignore[untyped-decorator,unused-ignore]
def _find_winners(  # type: ignore[no-untyped-def]  # noqa: ANN202
    source, target, edge, source_of, target_of, kind_of,  # noqa: ANN001
    candidates, indptr, winners, nobody, dim, slots, BLOCK: tl.constexpr,  # noqa: ANN001, N803
):  # fmt: skip
    """Write the winners of one class for one block of elements.

    Each of T rounds looks for the largest value that comes after the last winner, where candidates are ordered by
    falling value and, among equal ones, by their place.
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
        found = tl.load(candidates + place, mask=place >= 0, other=0)
        tl.store(winners + (k * slots + slot) * dim + element, tl.where(place >= 0, found, nobody), mask=inside)
        last_value, last_place = value, place

"""Winners: which candidates have the T largest values of each class, element by element.

In torch, for any device; on CUDA, where Triton is there, one kernel for all classes at once (`winners_cuda.py`), which
agrees with it to the last index.
"""

from functools import cache

import torch
from torch import Tensor

from neupath.models.batches import Stage

_MOST_AT_ONCE = 1 << 26
"""Numbers compared at once, to bound memory."""


def find_winners(source: Tensor, target: Tensor, edge: Tensor, stage: Stage) -> Tensor:
    """Return the T largest candidates of each class, element by element; (K, T, d), the number of candidates for none.

    The value of a candidate is source + target + edge; of equal values the first candidate wins.
    """
    with torch.no_grad():
        if source.is_cuda and _has_triton():
            from neupath.models.winners_cuda import find_winners_cuda

            return find_winners_cuda(source, target, edge, stage)
        return find_winners_torch(source, target, edge, stage)


@cache
def _has_triton() -> bool:
    try:
        import triton  # type: ignore[import-not-found,unused-ignore]  # noqa: F401
    except ImportError:
        return False
    return True


def find_winners_torch(source: Tensor, target: Tensor, edge: Tensor, stage: Stage) -> Tensor:
    """Find the winners bucket by bucket, with T maxima each."""
    (size, slots), dim = stage.filled.shape, source.shape[1]
    nobody = len(stage.source)
    winners = torch.full((size, slots, dim), nobody, device=source.device)
    for classes, candidates in stage.buckets:
        step = max(1, _MOST_AT_ONCE // (candidates.shape[1] * dim))
        for at in range(0, len(classes), step):
            places = candidates[at : at + step]  # (n, width)
            known = places.clamp(max=nobody - 1)
            values = source[stage.source[known]] + target[stage.target[known]] + edge[stage.kind[known]]
            values.masked_fill_((places == nobody).unsqueeze(-1), -torch.inf)  # (n, width, d)
            winners[classes[at : at + step]] = _argmax_each(values, places, slots, nobody)
    return winners


def _argmax_each(values: Tensor, places: Tensor, slots: int, nobody: int) -> Tensor:
    """Return, element by element, which candidates have the T largest values; (n, width, d) to (n, T, d)."""
    found = []
    for slot in range(slots):
        best, at = values.max(dim=1, keepdim=True)  # (n, 1, d)
        which = places.gather(1, at.squeeze(1)).masked_fill(best.squeeze(1) == -torch.inf, nobody)
        found.append(which)
        if slot + 1 < slots:
            values.scatter_(1, at, -torch.inf)
    return torch.stack(found, dim=1)

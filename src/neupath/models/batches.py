"""Batches: the classes that some targets need, layer by layer, as tensors."""

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from neupath.models.classes import ClassTable
from neupath.models.definitions import Members
from neupath.models.flat_graph import Ints


@dataclass(frozen=True)
class Stage:
    """What one layer works on: K classes after it, J before it, and their C candidates.

    A candidate is a path slot of a neighbour; those of class k are `candidates[indptr[k]:indptr[k+1]]`, each as often
    as there are neighbours alike, at most T times. Each bucket holds classes with about as many: (classes (n,),
    candidates (n, width)), where C stands for none.
    """

    before: Tensor  # (K,) what each class was, as a row among the J
    rows_of_type: tuple[Tensor, ...]  # the rows among the J of each node type
    source: Tensor  # (C,) row · T + slot among the J·T, where the path comes from
    target: Tensor  # (C,) row · T + slot among the J·T, of the class it leads to, before the layer
    kind: Tensor  # (C,) the kind of edge it follows
    count: Tensor  # (C,) how many neighbours are alike
    to: Tensor  # (C,) row among the K
    filled: Tensor  # (K, T) which slots hold a path after this layer
    candidates: Tensor  # (N,)
    indptr: Tensor  # (K + 1,)
    buckets: tuple[tuple[Tensor, Tensor], ...]


@dataclass(frozen=True)
class Batch:
    """Everything needed to score some classes: the classes before the first layer, and the stages."""

    queries: Tensor  # (J,) whether each class before the first layer is the query itself
    stages: tuple[Stage, ...]
    classes: tuple[Ints, ...]  # the classes before and after each stage, as the table numbers them

    def to(self, device: torch.device | str) -> "Batch":
        """Return the batch with its tensors on a device."""
        stages = (Stage(**{f.name: _moved(getattr(s, f.name), device) for f in fields(Stage)}) for s in self.stages)
        return replace(self, queries=self.queries.to(device), stages=tuple(stages))


def _moved(value: Any, device: torch.device | str) -> Any:
    return value.to(device) if isinstance(value, Tensor) else tuple(_moved(part, device) for part in value)


def build_batch(table: ClassTable, targets: Ints, slots: int) -> Batch:
    """Gather what is needed to compute some classes of the last layer, in the order given."""
    wanted = [np.asarray(targets, dtype=np.int64)]
    members: list[Members] = []
    for layer in reversed(table.layers):
        members.insert(0, layer.take(wanted[0]))
        wanted.insert(0, np.unique(np.concatenate([members[0].own, members[0].classes])))
    types = wanted[0] // 2
    filled = np.zeros((len(types), slots), dtype=np.bool_)
    filled[:, 0] = True
    stages = []
    for rows, part in zip(wanted, members, strict=False):
        own = np.searchsorted(rows, part.own)
        stage = _build_stage(part, own, np.searchsorted(rows, part.classes), types, filled, table.num_types)
        stages.append(stage)
        types, filled = types[own], stage.filled.numpy()
    return Batch(torch.from_numpy(wanted[0] % 2 == 1), tuple(stages), tuple(wanted))


def _build_stage(
    part: Members, own: Ints, origin: Ints, types: Ints, filled: NDArray[np.bool_], num_types: int
) -> Stage:
    slots = filled.shape[1]
    edge, slot = np.nonzero(filled[origin])  # (C,) each filled slot of each neighbour is a candidate
    to = part.to[edge]
    copies = np.minimum(part.counts[edge], slots)
    number = np.bincount(to, weights=copies, minlength=len(own)).astype(np.int64)
    candidates = np.repeat(np.arange(len(to)), copies)
    return Stage(
        before=torch.from_numpy(own),
        rows_of_type=tuple(torch.from_numpy(np.flatnonzero(types == t)) for t in range(num_types)),
        source=torch.from_numpy(origin[edge] * slots + slot),
        target=torch.from_numpy(own[to] * slots + slot),
        kind=torch.from_numpy(part.kinds[edge]),
        count=torch.from_numpy(part.counts[edge]),
        to=torch.from_numpy(to),
        filled=torch.from_numpy(filled[own] | (np.arange(slots) < number[:, None])),
        candidates=torch.from_numpy(candidates),
        indptr=torch.from_numpy(np.concatenate([[0], np.cumsum(number)])),
        buckets=_buckets(candidates, number, slots, len(to)),
    )


def _buckets(candidates: Ints, number: Ints, slots: int, nobody: int) -> tuple[tuple[Tensor, Tensor], ...]:
    """Put classes with about as many candidates together."""
    first = np.cumsum(number) - number
    width = np.maximum(slots, 2 ** np.ceil(np.log2(np.maximum(number, 1))).astype(np.int64))
    found = []
    for size in np.unique(width[number > 0]):
        classes = np.flatnonzero((width == size) & (number > 0))
        columns = np.arange(size)
        inside = columns < number[classes][:, None]
        at = np.where(inside, first[classes][:, None] + columns, 0)
        found.append((torch.from_numpy(classes), torch.from_numpy(np.where(inside, candidates[at], nobody))))
    return tuple(found)

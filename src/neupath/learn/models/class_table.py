"""Batches: the classes that some targets need, layer by layer, as tensors."""

import copy
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from neupath.engine.product_kernels import compiled
from neupath.graph.nodes import Mask
from neupath.learn.models.flat_graph import FlatGraph, Ints, positions

# ---- Definitions ---------------------------------------------------------------------------------
Key = tuple[int, int]
"""The 128 bits that stand for a class."""


@dataclass(frozen=True)
class Members:
    """Some classes after a layer.

    Class k was `own[k]`, and has `counts[i]` neighbours of class `classes[i]` along edges of kind `kinds[i]`, for every
    i with `to[i]` = k; `to` ascends.
    """

    own: Ints
    to: Ints
    kinds: Ints
    classes: Ints
    counts: Ints


class Definitions:
    """The definitions of classes, in arrays that only grow: what is there never changes."""

    def __init__(self) -> None:
        self._size, self._used = 0, 0
        self._own, self._first, self._last, self._kinds, self._classes, self._counts = np.zeros((6, 16), dtype=np.int64)

    def __len__(self) -> int:
        return self._size

    def add(self, new: Members) -> None:
        """Define classes that follow those known so far."""
        ends = self._used + np.cumsum(np.bincount(new.to, minlength=len(new.own)))
        begins = np.concatenate([[self._used], ends])[:-1]
        size, used = self._size + len(new.own), self._used + len(new.to)
        for name, values in (("_own", new.own), ("_first", begins), ("_last", ends)):
            self._write(name, self._size, values)
        for name, values in (("_kinds", new.kinds), ("_classes", new.classes), ("_counts", new.counts)):
            self._write(name, self._used, values)
        self._size, self._used = size, used

    def _write(self, name: str, at: int, values: Ints) -> None:
        array, end = getattr(self, name), at + len(values)
        if end > len(array):
            array = np.resize(array, max(end, 2 * len(array)))  # a longer copy; the old one stays with its readers
            setattr(self, name, array)
        array[at:end] = values

    def take(self, classes: Ints) -> Members:
        """Return the definitions of some classes, numbered in the order given."""
        first = self._first[classes]
        to, at = positions(first, self._last[classes] - first)
        return Members(self._own[classes], to, self._kinds[at], self._classes[at], self._counts[at])


class Layer:
    """Every class met after one layer, in the order they were met: perhaps those of another layer, and then its own."""

    def __init__(self, known: "Layer | None" = None) -> None:
        self._known = known
        self._before = 0 if known is None else len(known)
        self._numbers: dict[Key, int] = {}
        self._own = Definitions()
        self._kept: Layer | None = None

    def __len__(self) -> int:
        return self._before + len(self._own)

    def snapshot(self) -> "Layer":
        """Return a layer that never changes, and knows what this one knows now; the same one until there is more."""
        if self._kept is None or len(self._kept) != len(self):
            kept = copy.copy(self)
            kept._own, kept._kept = copy.copy(self._own), None
            self._kept = kept
        return self._kept

    def fork(self) -> "Layer":
        """Return a layer that knows the same classes and may learn others on its own."""
        return Layer(self.snapshot())

    def find(self, keys: list[Key]) -> Ints:
        """Return the numbers of some classes, -1 for those not met yet."""
        get = self._numbers.get
        found = np.array([get(key, -1) for key in keys], dtype=np.int64)
        found[found >= len(self)] = -1  # what the layer that this one was has learned since
        missing = np.flatnonzero(found < 0)
        if self._known is not None and len(missing):
            found[missing] = self._known.find([keys[i] for i in missing.tolist()])
        return found

    def add(self, keys: list[Key], new: Members) -> Ints:
        """Define classes that were not met before; return their numbers."""
        found = np.arange(len(self), len(self) + len(keys))
        self._own.add(new)
        self._numbers.update(zip(keys, found.tolist(), strict=True))
        return found

    def take(self, classes: Ints) -> Members:
        """Return the definitions of some classes, numbered in the order given."""
        if self._known is None:
            return self._own.take(classes)
        old = classes < self._before
        which = np.flatnonzero(old), np.flatnonzero(~old)
        parts = self._known.take(classes[old]), self._own.take(classes[~old] - self._before)
        own = np.empty(len(classes), dtype=np.int64)
        own[which[0]], own[which[1]] = parts[0].own, parts[1].own
        to = np.concatenate([places[part.to] for places, part in zip(which, parts, strict=True)])
        order = np.argsort(to, kind="stable")
        names = [field.name for field in fields(Members)][2:]
        rest = (np.concatenate([getattr(part, name) for part in parts])[order] for name in names)
        return Members(own, to[order], *rest)


# ---- Classes -------------------------------------------------------------------------------------
# Before any layer a node is known by its type and by whether it is the query. After layer l it is known by what it was
# before, and by how many neighbours of each class it has along each kind of edge: exactly what the layer computes on. So
# nodes of one class have one embedding, in any graph with the same schema and for any query. Where pooling looks at the T
# largest candidates, more than T neighbours of one class are as good as T.
# Only the ball of nodes within l hops of the query differs from the background, the classes of a graph without a query,
# and only what lies within reach of the targets matters.
class ClassTable:
    """The classes of every layer; it grows with the graphs and queries it is shown.

    `cap` is how many neighbours of one class still make a difference; 0 means any number does.
    """

    def __init__(self, num_types: int, num_layers: int, cap: int) -> None:
        self.num_types = num_types
        self.cap = cap
        self.layers = [Layer() for _ in range(num_layers)]

    def fork(self) -> "ClassTable":
        """Return a table that knows the same classes and may learn others on its own."""
        return self._with([layer.fork() for layer in self.layers])

    def snapshot(self) -> "ClassTable":
        """Return a table that never changes, and knows what this one knows now."""
        return self._with([layer.snapshot() for layer in self.layers])

    def _with(self, layers: list[Layer]) -> "ClassTable":
        copied = ClassTable(self.num_types, 0, self.cap)
        copied.layers = layers
        return copied

    def background(self, graph: FlatGraph) -> list[Ints]:
        """Return the class of every node before and after each layer in a graph without a query."""
        found = [2 * graph.types]
        for layer in self.layers:
            found.append(self.refine(graph, layer, np.arange(len(graph.types)), found[-1]))
        return found

    def reach(self, graph: FlatGraph, targets: Ints) -> list[Mask]:
        """Mark, before and after each layer, the nodes whose embeddings the targets depend on."""
        marks = [np.zeros(len(graph.types), dtype=np.bool_)]
        marks[0][targets] = True
        for _ in self.layers:
            marks.insert(0, graph.with_neighbours(marks[0]))
        return marks

    def classes_of(self, graph: FlatGraph, background: Sequence[Ints], query: int, reach: Sequence[Mask]) -> Ints:
        """Return the classes after the last layer for a query, true for the nodes that `reach` marks there."""
        return self.trace(graph, background, query, reach)[-1]

    def trace(self, graph: FlatGraph, background: Sequence[Ints], query: int, reach: Sequence[Mask]) -> list[Ints]:
        """Return the classes before and after each layer for a query, true for the nodes that `reach` marks."""
        ball = np.zeros(len(graph.types), dtype=np.bool_)
        ball[query] = True
        now = background[0].copy()
        now[query] += 1
        found = [now]
        for number, layer in enumerate(self.layers):
            ball = graph.with_neighbours(ball)
            nodes = np.flatnonzero(ball & reach[number + 1])
            after = self.refine(graph, layer, nodes, now)
            now = background[number + 1].copy()
            now[nodes] = after
            found.append(now)
        return found

    def refine(self, graph: FlatGraph, layer: Layer, nodes: Ints, classes: Ints) -> Ints:
        """Return the classes of some nodes after a layer, given those of all nodes before it."""
        keys = _signatures(graph.first, graph.last, graph.sources, graph.kinds, nodes, classes, self.cap)
        packed = keys.view([("a", "u8"), ("b", "u8")]).ravel()
        found = layer.find(packed.tolist()) if len(layer) else np.full(len(packed), -1)
        missing = np.flatnonzero(found < 0)
        if len(missing):
            distinct, first, where = np.unique(packed[missing], return_index=True, return_inverse=True)
            new = layer.add(distinct.tolist(), self._define(graph, nodes[missing[first]], classes))
            found[missing] = new[where.ravel()]
        return found

    def _define(self, graph: FlatGraph, nodes: Ints, classes: Ints) -> Members:
        """Say what the classes of some nodes are made of."""
        position, edges = graph.edges_of(nodes)
        kinds, neighbours = graph.kinds[edges], classes[graph.sources[edges]]
        order = np.lexsort((neighbours, kinds, position))
        position, kinds, neighbours = position[order], kinds[order], neighbours[order]
        changes = (np.diff(position) != 0) | (np.diff(kinds) != 0) | (np.diff(neighbours) != 0)
        begins = np.flatnonzero(np.concatenate([[True], changes])[: len(position)])
        counts = np.diff(np.append(begins, len(position)))
        return Members(
            classes[nodes],
            position[begins],
            kinds[begins],
            neighbours[begins],
            np.minimum(counts, self.cap) if self.cap else counts,
        )


@compiled
def reached(first, last, sources, joined, changed):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """Return the nodes whose classes after a layer may be others, ascending.

    These are nodes whose edges changed, nodes whose class before the layer did, and the neighbours of the latter.
    """
    length = len(joined) + len(changed)
    for v in changed:
        length += last[v] - first[v]
    nodes = np.empty(length, dtype=np.int64)
    nodes[: len(joined)] = joined
    nodes[len(joined) : len(joined) + len(changed)] = changed
    at = len(joined) + len(changed)
    for v in changed:
        for edge in range(first[v], last[v]):
            nodes[at] = sources[edge]
            at += 1
    return np.unique(nodes)


@compiled
def _mixed(value):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Scatter the bits of a 64-bit number (the finaliser of splitmix64)."""
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


@compiled
def _signatures(first, last, sources, kinds, nodes, classes, cap):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Return 128 bits for each node that stand for its class and its neighbours' kinds, classes and capped counts."""
    keys = np.empty((len(nodes), 2), dtype=np.uint64)
    for n in range(len(nodes)):
        v = nodes[n]
        degree = last[v] - first[v]
        codes = np.empty(degree, dtype=np.int64)
        for i in range(degree):
            edge = first[v] + i
            codes[i] = kinds[edge] * np.int64(1 << 40) + classes[sources[edge]]
        codes.sort()
        one = _mixed(np.uint64(classes[v]) + np.uint64(0x9E3779B97F4A7C15))
        two = _mixed(np.uint64(classes[v]) ^ np.uint64(0xD1B54A32D192ED03))
        i = 0
        while i < degree:
            j = i
            while j < degree and codes[j] == codes[i]:
                j += 1
            count = j - i if cap == 0 else min(j - i, cap)
            one += _mixed(_mixed(np.uint64(codes[i]) + np.uint64(0x2545F4914F6CDD1D)) + np.uint64(count))
            two += _mixed(_mixed(np.uint64(codes[i]) ^ np.uint64(0xA0761D6478BD642F)) ^ np.uint64(count << 32))
            i = j
        keys[n, 0], keys[n, 1] = one, two
    return keys


# ---- Batches -------------------------------------------------------------------------------------
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
class ClassBatch:
    """Everything needed to score some classes: the classes before the first layer, and the stages."""

    queries: Tensor  # (J,) whether each class before the first layer is the query itself
    stages: tuple[Stage, ...]
    classes: tuple[Ints, ...]  # the classes before and after each stage, as the table numbers them

    def to(self, device: torch.device | str) -> "ClassBatch":
        """Return the batch with its tensors on a device."""
        stages = (Stage(**{f.name: _moved(getattr(s, f.name), device) for f in fields(Stage)}) for s in self.stages)
        return replace(self, queries=self.queries.to(device), stages=tuple(stages))


def _moved(value: Any, device: torch.device | str) -> Any:
    return value.to(device) if isinstance(value, Tensor) else tuple(_moved(part, device) for part in value)


def build_batch(table: ClassTable, targets: Ints, slots: int) -> ClassBatch:
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
    return ClassBatch(torch.from_numpy(wanted[0] % 2 == 1), tuple(stages), tuple(wanted))


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

"""Nodes that NeuPath cannot tell apart form a class, with one number and one embedding for all graphs and queries.

Before the first layer, the class of a node is its type τ and whether it is the query. After a layer, it is the node's
class before, and how many neighbours of each class it has along each kind of edge φ: exactly what the layer computes
on. So nodes of one class have one embedding, in any graph with the same schema and for any query. Where pooling takes
the T largest candidates, more than T neighbours of one class count as T.

Two facts keep this cheap. Only nodes within l hops of the query (its ball) differ after l layers from the background,
the classes of the graph without a query. And only nodes from which a target can be reached matter.
"""

import copy
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from neupath._runtime.kernels import kernel
from neupath._runtime.kernels import part as kernel_part
from neupath.graph.edges import mix64
from neupath.graph.nodes import Mask
from neupath.learn.models.flat_graph import FlatGraph, Ints, expand_ranges

# ---- The classes after one layer -----------------------------------------------------------------
Key = tuple[int, int]
"""A 128-bit hash of a class's definition."""


@dataclass(frozen=True)
class Definitions:
    """What some classes after a layer consist of.

    Class k was `own[k]` before the layer, and has `counts[i]` neighbours of class `classes[i]` along edges of kind
    `kinds[i]`, for every i with `to[i]` = k; `to` ascends.
    """

    own: Ints
    to: Ints
    kinds: Ints
    classes: Ints
    counts: Ints


class DefinitionList:
    """Definitions in arrays that only grow, so that copies of the list share them."""

    def __init__(self) -> None:
        self._size, self._used = 0, 0
        self._own, self._first, self._last, self._kinds, self._classes, self._counts = np.zeros((6, 16), dtype=np.int64)

    def __len__(self) -> int:
        return self._size

    def append(self, new: Definitions) -> None:
        """Add classes; their numbers follow those so far."""
        ends = self._used + np.cumsum(np.bincount(new.to, minlength=len(new.own)))
        begins = np.concatenate([[self._used], ends])[:-1]
        for name, values in (("_own", new.own), ("_first", begins), ("_last", ends)):
            self._write(name, self._size, values)
        for name, values in (("_kinds", new.kinds), ("_classes", new.classes), ("_counts", new.counts)):
            self._write(name, self._used, values)
        self._size, self._used = self._size + len(new.own), self._used + len(new.to)

    def _write(self, name: str, at: int, values: Ints) -> None:
        array, end = getattr(self, name), at + len(values)
        if end > len(array):
            array = np.resize(array, max(end, 2 * len(array)))  # a longer copy; readers keep the old one
            setattr(self, name, array)
        array[at:end] = values

    def take(self, classes: Ints) -> Definitions:
        """Return the definitions of some classes, numbered in the order given."""
        first = self._first[classes]
        to, at = expand_ranges(first, self._last[classes] - first)
        return Definitions(self._own[classes], to, self._kinds[at], self._classes[at], self._counts[at])


class LayerClasses:
    """The classes after one layer, numbered as they are met. With a parent, it knows the parent's, and adds its own."""

    def __init__(self, parent: "LayerClasses | None" = None) -> None:
        self._parent = parent
        self._inherited = 0 if parent is None else len(parent)
        self._numbers: dict[Key, int] = {}
        self._own = DefinitionList()
        self._snapshot: LayerClasses | None = None

    def __len__(self) -> int:
        return self._inherited + len(self._own)

    def snapshot(self) -> "LayerClasses":
        """Return a copy that never changes; the same one until a class is added."""
        if self._snapshot is None or len(self._snapshot) != len(self):
            frozen = copy.copy(self)
            frozen._own, frozen._snapshot = copy.copy(self._own), None
            self._snapshot = frozen
        return self._snapshot

    def find(self, keys: list[Key]) -> Ints:
        """Return the numbers of some classes, -1 for those not met yet."""
        get = self._numbers.get
        numbers = np.array([get(key, -1) for key in keys], dtype=np.int64)
        numbers[numbers >= len(self)] = -1  # added since this snapshot was made, which shares the dict
        missing = np.flatnonzero(numbers < 0)
        if self._parent is not None and len(missing):
            numbers[missing] = self._parent.find([keys[i] for i in missing.tolist()])
        return numbers

    def add(self, keys: list[Key], new: Definitions) -> Ints:
        """Add classes that were not met before; return their numbers."""
        numbers = np.arange(len(self), len(self) + len(keys))
        self._own.append(new)
        self._numbers.update(zip(keys, numbers.tolist(), strict=True))
        return numbers

    def take(self, classes: Ints) -> Definitions:
        if self._parent is None:
            return self._own.take(classes)
        inherited = classes < self._inherited
        which = np.flatnonzero(inherited), np.flatnonzero(~inherited)
        parts = self._parent.take(classes[inherited]), self._own.take(classes[~inherited] - self._inherited)
        own = np.empty(len(classes), dtype=np.int64)
        own[which[0]], own[which[1]] = parts[0].own, parts[1].own
        to = np.concatenate([places[part.to] for places, part in zip(which, parts, strict=True)])
        order = np.argsort(to, kind="stable")
        names = ("kinds", "classes", "counts")
        rest = (np.concatenate([getattr(part, name) for part in parts])[order] for name in names)
        return Definitions(own, to[order], *rest)


# ---- The classes of all layers -------------------------------------------------------------------
class ClassTable:
    """The classes after every layer; it grows with the graphs and queries it sees.

    `cap` is how many neighbours of one class still make a difference: T for T-max pooling, 0 if any number does.
    """

    def __init__(self, num_types: int, num_layers: int, cap: int) -> None:
        self.num_types, self.cap = num_types, cap
        self.layers = [LayerClasses() for _ in range(num_layers)]

    def fork(self) -> "ClassTable":
        """Return a table that knows the same classes, and can add others without changing this one."""
        return self._with([LayerClasses(layer.snapshot()) for layer in self.layers])

    def snapshot(self) -> "ClassTable":
        return self._with([layer.snapshot() for layer in self.layers])

    def _with(self, layers: list[LayerClasses]) -> "ClassTable":
        copied = copy.copy(self)
        copied.layers = layers
        return copied

    def background(self, graph: FlatGraph) -> list[Ints]:
        """Return the class of every node before and after each layer, in a graph without a query."""
        classes = [2 * graph.types]
        for layer in self.layers:
            classes.append(self.refine(graph, layer, np.arange(len(graph.types)), classes[-1]))
        return classes

    def reach(self, graph: FlatGraph, targets: Ints) -> list[Mask]:
        """Mark, before and after each layer, the nodes whose embeddings the targets depend on."""
        marks = [np.zeros(len(graph.types), dtype=np.bool_)]
        marks[0][targets] = True
        for _ in self.layers:
            marks.insert(0, graph.with_neighbours(marks[0]))
        return marks

    def trace(self, graph: FlatGraph, background: Sequence[Ints], query: int, reach: Sequence[Mask]) -> list[Ints]:
        """Return the classes before and after each layer for a query; right for the nodes that `reach` marks."""
        ball = np.zeros(len(graph.types), dtype=np.bool_)
        ball[query] = True
        classes = background[0].copy()
        classes[query] += 1
        trace = [classes]
        for number, layer in enumerate(self.layers):
            ball = graph.with_neighbours(ball)
            nodes = np.flatnonzero(ball & reach[number + 1])
            refined = self.refine(graph, layer, nodes, classes)
            classes = background[number + 1].copy()
            classes[nodes] = refined
            trace.append(classes)
        return trace

    def refine(self, graph: FlatGraph, layer: LayerClasses, nodes: Ints, classes: Ints) -> Ints:
        """Return the classes of some nodes after a layer, given those of all nodes before it."""
        keys = _hash_definitions(graph.first, graph.last, graph.sources, graph.kinds, nodes, classes, self.cap)
        packed = keys.view([("a", "u8"), ("b", "u8")]).ravel()
        refined = layer.find(packed.tolist()) if len(layer) else np.full(len(packed), -1)
        missing = np.flatnonzero(refined < 0)
        if len(missing):
            distinct, first, where = np.unique(packed[missing], return_index=True, return_inverse=True)
            new = layer.add(distinct.tolist(), self._define(graph, nodes[missing[first]], classes))
            refined[missing] = new[where.ravel()]
        return refined

    def _define(self, graph: FlatGraph, nodes: Ints, classes: Ints) -> Definitions:
        to, edges = graph.edges_of(nodes)
        kinds, neighbours = graph.kinds[edges], classes[graph.sources[edges]]
        order = np.lexsort((neighbours, kinds, to))
        to, kinds, neighbours = to[order], kinds[order], neighbours[order]
        changes = (np.diff(to) != 0) | (np.diff(kinds) != 0) | (np.diff(neighbours) != 0)
        begins = np.flatnonzero(np.concatenate([[True], changes])[: len(to)])
        counts = np.diff(np.append(begins, len(to)))
        capped = np.minimum(counts, self.cap) if self.cap else counts
        return Definitions(classes[nodes], to[begins], kinds[begins], neighbours[begins], capped)


_mix64 = kernel_part(mix64)


@kernel(*["const int64[:]"] * 6, "int64")
def _hash_definitions(first, last, sources, kinds, nodes, classes, cap):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Return a 128-bit hash of each node's class and its neighbours' kinds, classes and capped counts; (nodes, 2)."""
    keys = np.empty((len(nodes), 2), dtype=np.uint64)
    for n in range(len(nodes)):
        v = nodes[n]
        degree = last[v] - first[v]
        codes = np.empty(degree, dtype=np.int64)
        for i in range(degree):
            edge = first[v] + i
            codes[i] = kinds[edge] * np.int64(1 << 40) + classes[sources[edge]]
        codes.sort()
        one = _mix64(np.uint64(classes[v]) + np.uint64(0x9E3779B97F4A7C15))
        two = _mix64(np.uint64(classes[v]) ^ np.uint64(0xD1B54A32D192ED03))
        i = 0
        while i < degree:
            j = i
            while j < degree and codes[j] == codes[i]:
                j += 1
            count = j - i if cap == 0 else min(j - i, cap)
            one += _mix64(_mix64(np.uint64(codes[i]) + np.uint64(0x2545F4914F6CDD1D)) + np.uint64(count))
            two += _mix64(_mix64(np.uint64(codes[i]) ^ np.uint64(0xA0761D6478BD642F)) ^ np.uint64(count << 32))
            i = j
        keys[n, 0], keys[n, 1] = one, two
    return keys


# ---- Batches of classes, as tensors --------------------------------------------------------------
@dataclass(frozen=True)
class Stage:
    """The input of one layer: J classes before it, K classes after it, and C candidates.

    A candidate is a filled path slot of a neighbour. Those of class k are `candidates[indptr[k]:indptr[k+1]]`; one that
    several neighbours share occurs once for each, at most T times. A bucket holds classes with about as many
    candidates: (classes (n,), candidates (n, width)), where C stands for no candidate.
    """

    before: Tensor  # (K,) the class before the layer, as a row among the J
    rows_of_type: tuple[Tensor, ...]  # the rows among the J of each node type τ
    source: Tensor  # (C,) row · T + slot among the J·T: h_s[i]
    target: Tensor  # (C,) row · T + slot among the J·T: h_t[i]
    kind: Tensor  # (C,) the kind of edge φ
    count: Tensor  # (C,) how many neighbours share it
    to: Tensor  # (C,) row among the K
    filled: Tensor  # (K, T) the slots that hold a path after the layer
    candidates: Tensor  # (N,)
    indptr: Tensor  # (K + 1,)
    buckets: tuple[tuple[Tensor, Tensor], ...]


@dataclass(frozen=True)
class ClassBatch:
    """The input of the encoder for some classes: the classes before the first layer, and the stages."""

    queries: Tensor  # (J,) whether each class before the first layer is the query
    stages: tuple[Stage, ...]
    classes: tuple[Ints, ...]  # before and after each stage, as the table numbers them

    def to(self, device: torch.device | str) -> "ClassBatch":
        stages = (Stage(**{f.name: _moved(getattr(s, f.name), device) for f in fields(Stage)}) for s in self.stages)
        return replace(self, queries=self.queries.to(device), stages=tuple(stages))


def _moved(value: Any, device: torch.device | str) -> Any:
    return value.to(device) if isinstance(value, Tensor) else tuple(_moved(part, device) for part in value)


def build_batch(table: ClassTable, targets: Ints, slots: int) -> ClassBatch:
    """Collect all classes that some classes after the last layer depend on; keep the order of the latter."""
    classes = [np.asarray(targets, dtype=np.int64)]
    definitions: list[Definitions] = []
    for layer in reversed(table.layers):
        definitions.insert(0, layer.take(classes[0]))
        classes.insert(0, np.unique(np.concatenate([definitions[0].own, definitions[0].classes])))
    types = classes[0] // 2
    filled = np.zeros((len(types), slots), dtype=np.bool_)
    filled[:, 0] = True
    stages = []
    for rows, part in zip(classes, definitions, strict=False):
        own = np.searchsorted(rows, part.own)
        stage = _build_stage(part, own, np.searchsorted(rows, part.classes), types, filled, table.num_types)
        stages.append(stage)
        types, filled = types[own], stage.filled.numpy()
    return ClassBatch(torch.from_numpy(classes[0] % 2 == 1), tuple(stages), tuple(classes))


def _build_stage(part: Definitions, own: Ints, origin: Ints, types: Ints, filled: Mask, num_types: int) -> Stage:
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
        buckets=_make_buckets(candidates, number, slots, len(to)),
    )


def _make_buckets(candidates: Ints, number: Ints, slots: int, none: int) -> tuple[tuple[Tensor, Tensor], ...]:
    first = np.cumsum(number) - number
    width = np.maximum(slots, 2 ** np.ceil(np.log2(np.maximum(number, 1))).astype(np.int64))
    buckets = []
    for size in np.unique(width[number > 0]):
        classes = np.flatnonzero((width == size) & (number > 0))
        columns = np.arange(size)
        inside = columns < number[classes][:, None]
        at = np.where(inside, first[classes][:, None] + columns, 0)
        buckets.append((torch.from_numpy(classes), torch.from_numpy(np.where(inside, candidates[at], none))))
    return tuple(buckets)

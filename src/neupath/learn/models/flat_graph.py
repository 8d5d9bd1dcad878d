"""A typed graph as models see it: all nodes in one numbering, every edge in both directions, no edge weights."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array
from torch import Tensor

from neupath.graph.hin import HIN, Csr, NodeNumbering
from neupath.graph.metapath import Link, Schema
from neupath.graph.nodes import Mask

# ---- In numpy ------------------------------------------------------------------------------------
Ints = NDArray[np.int64]


def edge_kinds(schema: Schema) -> list[Link]:
    """List the kinds of edges φ: each relation forward, then backward unless it is undirected."""
    forward = [Link(relation) for relation in schema.relations]
    return [way for link in forward for way in dict.fromkeys((link, link.reversed()))]


@dataclass(frozen=True)
class FlatGraph:
    """The edges into each node.

    Node v has the neighbours `sources[first[v]:last[v]]`, along edges of the kinds `kinds[first[v]:last[v]]`.
    """

    numbering: NodeNumbering
    types: Ints  # (nodes,) τ
    first: Ints  # (nodes,)
    last: Ints  # (nodes,)
    sources: Ints  # (E,)
    kinds: Ints  # (E,) φ, as `edge_kinds` lists them

    @classmethod
    def of(cls, hin: HIN, capacity: Mapping[str, int] | None = None) -> "FlatGraph":
        """Sort the edges of a graph by the node they lead to.

        With a `capacity` for more nodes of each type than there are, the spare numbers are nodes without edges.
        """
        names = hin.schema.node_types
        numbering = NodeNumbering.of({name: capacity[name] for name in names}) if capacity else hin.numbering
        parts = [(np.zeros(0, np.int64),) * 3]
        for kind, link in enumerate(edge_kinds(hin.schema)):
            entries = hin.matrix(link).tocoo()
            ends = entries.row.astype(np.int64), entries.col.astype(np.int64)
            firsts = numbering.first(link.source), numbering.first(link.target)
            parts.append((ends[0] + firsts[0], ends[1] + firsts[1], np.full(entries.nnz, kind)))
        sources, targets, kinds = (np.concatenate(column).astype(np.int64) for column in zip(*parts, strict=True))
        order = np.lexsort((sources, kinds, targets))
        last = np.cumsum(np.bincount(targets, minlength=numbering.total)).astype(np.int64)
        first = np.concatenate([[0], last])[:-1]
        return cls(numbering, numbering.types(), first, last, sources[order], kinds[order])

    def edges_of(self, nodes: Ints) -> tuple[Ints, Ints]:
        """Return the edges into some nodes: the position of each edge's node in `nodes`, and the edge's number."""
        first = self.first[nodes]
        return expand_ranges(first, self.last[nodes] - first)

    def with_neighbours(self, nodes: Mask) -> Mask:
        """Mark some nodes and all their neighbours; shape (nodes,)."""
        marked = nodes.copy()
        marked[self.sources[self.edges_of(np.flatnonzero(nodes))[1]]] = True
        return marked


def expand_ranges(first: Ints, lengths: Ints) -> tuple[Ints, Ints]:
    """List the numbers in some ranges: for each the position of its range, and the number itself.

    >>> expand_ranges(np.array([5, 2]), np.array([2, 1]))
    (array([0, 0, 1]), array([5, 6, 2]))
    """
    which = np.repeat(np.arange(len(first)), lengths)
    return which, np.arange(len(which)) - (np.cumsum(lengths) - lengths - first)[which]


def over_all_nodes(matrix: Csr, source: str, target: str, numbering: NodeNumbering) -> Csr:
    """Return a matrix between two node types as one between all nodes; shape (nodes, nodes), sparse."""
    entries = matrix.tocoo()
    places = (entries.row + numbering.first(source), entries.col + numbering.first(target))
    return csr_array((entries.data, places), shape=(numbering.total, numbering.total))


# ---- In torch ------------------------------------------------------------------------------------
# On CUDA, torch adds up in any order, or sorts every number first. Here the entries of a row are added up from first to
# last, in chunks: a hub of thousands of edges would keep one thread busy while all others wait. On the CPU, sums of
# torch have a fixed order.
_CHUNK = 32
_MAX_ENTRIES = 1 << 28
"""Numbers held at once while rows are added up, to bound memory."""


class RowIndex:
    """The row that each of E entries belongs to: takes a row for each entry, and adds entries up by row.

    Each is the other's gradient.

    >>> index = RowIndex(torch.tensor([0, 2, 0]), 3)
    >>> index.take(torch.tensor([[1.0], [2.0], [3.0]])).flatten().tolist()
    [1.0, 3.0, 1.0]
    >>> index.add_up(torch.tensor([[1.0], [2.0], [3.0]])).flatten().tolist()
    [4.0, 0.0, 2.0]
    """

    def __init__(self, rows: Tensor, count: int) -> None:
        self.rows, self.count = rows, count
        is_sorted = bool((rows[1:] >= rows[:-1]).all())
        self.order = None if is_sorted else torch.argsort(rows, stable=True)
        self.sizes = torch.bincount(rows, minlength=count)
        self.chunks = _chunk_offsets(self.sizes)

    def take(self, x: Tensor) -> Tensor:
        """Return the row of each entry; (rows, ...) to (E, ...)."""
        taken: Tensor = _Take.apply(x, self)  # type: ignore[no-untyped-call]
        return taken

    def add_up(self, entries: Tensor) -> Tensor:
        """Return the sum of the entries of each row; (E, ...) to (rows, ...)."""
        summed: Tensor = _AddUp.apply(entries, self)  # type: ignore[no-untyped-call]
        return summed

    def softmax(self, logits: Tensor) -> Tensor:
        """Return the softmax over the entries of each row; shape (E, ...)."""
        weights = (logits - self.largest(logits.detach())[self.rows]).exp()
        return weights / self.take(self.add_up(weights))

    def largest(self, entries: Tensor) -> Tensor:
        """Return the largest entry of each row, without gradients; (E, ...) to (rows, ...)."""
        largest = entries if self.order is None else entries[self.order]
        for offsets in self.chunks:
            largest = torch.segment_reduce(largest, "max", offsets=offsets, axis=0, unsafe=True)
        return largest


class _Take(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, index: RowIndex) -> Tensor:
        ctx.index = index
        return x[index.rows]

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        return _add_entries(grads[0], ctx.index), None


class _AddUp(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, entries: Tensor, index: RowIndex) -> Tensor:
        ctx.index = index
        return _add_entries(entries, index)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        return grads[0][ctx.index.rows], None


def _add_entries(entries: Tensor, index: RowIndex) -> Tensor:
    if not entries.is_cuda:
        flat = entries.flatten(1)  # torch adds up matrices faster than tensors of more dimensions
        summed = flat.new_zeros(index.count, flat.shape[1]).index_add(0, index.rows, flat)
        return summed.view(index.count, *entries.shape[1:])
    return add_in_chunks(entries if index.order is None else entries[index.order], index.chunks)


def _chunk_offsets(sizes: Tensor) -> list[Tensor]:
    """Return where each chunk of the entries begins and ends, then each chunk of these chunks, until a row is one.

    >>> [offsets.tolist() for offsets in _chunk_offsets(torch.tensor([70, 0, 1]))]
    [[0, 32, 64, 70, 71], [0, 3, 3, 4]]
    """
    levels = []
    while len(sizes) and int(sizes.max()) > _CHUNK:
        chunks = (sizes + _CHUNK - 1) // _CHUNK
        lengths = sizes.new_full((int(chunks.sum()),), _CHUNK)
        last = (chunks.cumsum(0) - 1)[chunks > 0]
        lengths[last] = (sizes - (chunks - 1) * _CHUNK)[chunks > 0]
        levels.append(_offsets(lengths))
        sizes = chunks
    return [*levels, _offsets(sizes)]


def _offsets(sizes: Tensor) -> Tensor:
    return torch.cat([sizes.new_zeros(1), sizes.cumsum(0)])


def add_in_chunks(entries: Tensor, chunks: Sequence[Tensor]) -> Tensor:
    """Return the sum of each row's entries, which are sorted by row; (E, ...) to (rows, ...)."""
    summed = entries
    for offsets in chunks:
        summed = torch.segment_reduce(summed, "sum", offsets=offsets, axis=0, unsafe=True)
    return summed


class EdgeMatrix:
    """A sparse matrix of ones (targets, sources), which adds up the rows of a dense one, with gradients."""

    def __init__(self, sources: Tensor, targets: Tensor, shape: tuple[int, int]) -> None:
        self.shape, self.degrees = shape, torch.bincount(targets, minlength=shape[0])
        self._ways = (_SumOfRows(targets, sources, shape), _SumOfRows(sources, targets, shape[::-1]))

    def sum(self, x: Tensor) -> Tensor:
        """Return the sum over the sources of each target; (sources, ...) to (targets, ...)."""
        summed: Tensor = _SparseProduct.apply(x.flatten(1), self._ways)  # type: ignore[no-untyped-call]
        return summed.view(-1, *x.shape[1:])

    def mean(self, x: Tensor) -> Tensor:
        """Return the mean over the sources of each target, 0 where there are none; (sources, d) to (targets, d)."""
        return self.sum(x) / self.degrees.clamp(min=1)[:, None]


class _SparseProduct(torch.autograd.Function):
    """Both directions are sums of rows; the matrix gets no gradient."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, ways: "tuple[_SumOfRows, _SumOfRows]") -> Tensor:
        ctx.back = ways[1]
        return ways[0].of(x)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        return ctx.back.of(grads[0]), None


class _SumOfRows:
    """A sparse matrix of ones in one direction."""

    def __init__(self, rows: Tensor, columns: Tensor, shape: tuple[int, int]) -> None:
        order = torch.argsort(rows * shape[1] + columns, stable=True)
        self.rows, self.columns, self.shape = rows[order], columns[order], shape
        self.chunks = _chunk_offsets(torch.bincount(rows, minlength=shape[0]))

    @cached_property
    def matrix(self) -> Tensor:
        """The matrix in CSR format, where parallel edges are one entry."""
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Sparse CSR tensor support is in beta")  # only products are used
            warnings.filterwarnings("ignore", "Sparse invariant checks are implicitly disabled")  # enabled here
            places, ones = torch.stack([self.rows, self.columns]), torch.ones(len(self.rows), device=self.rows.device)
            entries = torch.sparse_coo_tensor(places, ones, self.shape, check_invariants=True)
            return entries.coalesce().to_sparse_csr()

    def of(self, x: Tensor) -> Tensor:
        """Return the product with a dense matrix; (columns, d) to (rows, d)."""
        if not x.is_cuda:
            return self.matrix @ x
        if has_triton():
            from neupath.learn.models.cuda_kernels import add_rows

            return add_in_chunks(add_rows(x, self.columns, self.chunks[0]), self.chunks[1:])
        return self.add_gathered(x)

    def add_gathered(self, x: Tensor) -> Tensor:
        """Return the same product by taking the rows of all entries, a slice of columns at a time."""
        step = max(1, _MAX_ENTRIES // max(1, len(self.columns)))
        starts = range(0, max(1, x.shape[1]), step)
        parts = [add_in_chunks(x[:, start : start + step][self.columns], self.chunks) for start in starts]
        return torch.cat(parts, dim=1)


@cache
def has_triton() -> bool:
    """Return whether kernels can be compiled by Triton, which comes with torch for CUDA."""
    return find_spec("triton") is not None


@dataclass(frozen=True)
class GraphTensors:
    """The edges of a graph on a device, as a list and as sparse matrices."""

    schema: Schema
    numbering: NodeNumbering
    types: Tensor  # (nodes,)
    edges: Tensor  # (2, E) from, to; sorted by the node they lead to
    kinds: Tensor  # (E,)

    @classmethod
    def of(cls, hin: HIN, device: torch.device) -> "GraphTensors":
        flat = FlatGraph.of(hin)
        targets = np.repeat(np.arange(len(flat.types)), flat.last - flat.first)
        edges = np.stack([flat.sources, targets])
        types, ends, kinds = (torch.from_numpy(part).to(device) for part in (flat.types, edges, flat.kinds))
        return cls(hin.schema, flat.numbering, types, ends, kinds)

    def by_type(self, x: Tensor) -> dict[str, Tensor]:
        """Cut a tensor of all nodes into one of each node type; shape of x (nodes, ...)."""
        return {name: x[self.numbering.rows(name)] for name in self.schema.node_types}

    @cached_property
    def adjacency(self) -> EdgeMatrix:
        """All edges, whatever their kind."""
        return EdgeMatrix(self.edges[0], self.edges[1], (self.numbering.total, self.numbering.total))

    @cached_property
    def edges_with_loops(self) -> Tensor:
        """All edges between different nodes and one from each node to itself, by the node they lead to; (2, E')."""
        between = self.edges[:, self.edges[0] != self.edges[1]]
        loops = torch.arange(self.numbering.total, device=self.edges.device).expand(2, -1)
        edges = torch.cat([between, loops], dim=1)
        return edges[:, torch.argsort(edges[1], stable=True)]

    @cached_property
    def blocks(self) -> list[tuple[Link, EdgeMatrix]]:
        """Each kind of edge with its matrix between two node types."""
        blocks = []
        for kind, link in enumerate(edge_kinds(self.schema)):
            here, there = self.numbering.rows(link.source), self.numbering.rows(link.target)
            sources, targets = self.edges[:, self.kinds == kind]
            shape = (there.stop - there.start, here.stop - here.start)
            blocks.append((link, EdgeMatrix(sources - here.start, targets - there.start, shape)))
        return blocks

    def spread(self, h: Tensor, weights: Tensor) -> Tensor:
        """Return Σ_φ weights[φ]·A_φ·h, what each node receives along its edges; shape of h (nodes, ...).

        `weights[φ]` is a number, or whatever can be multiplied with the h of one node.
        """
        received = {name: torch.zeros_like(part) for name, part in self.by_type(h).items()}
        for weight, (link, matrix) in zip(weights, self.blocks, strict=True):
            summed = matrix.sum(h[self.numbering.rows(link.source)])
            received[link.target] = received[link.target] + summed * weight
        return torch.cat(list(received.values()))

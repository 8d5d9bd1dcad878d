"""A typed graph as models see it: all nodes in one numbering, every edge in both directions, no edge weights."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

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
_MAX_ENTRIES = 1 << 28
"""Numbers held at once while rows are added up, to bound memory."""


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
    def blocks(self) -> list[tuple[Link, Tensor, Tensor]]:
        """Each kind of edge with its matrix (targets, sources) between two node types, and the transposed matrix."""
        blocks = []
        for link, (sources, targets) in zip(edge_kinds(self.schema), self.edges_by_kind().values(), strict=True):
            here, there = self.numbering.rows(link.source), self.numbering.rows(link.target)
            shape = (there.stop - there.start, here.stop - here.start)
            matrices = _csr_of_ones(targets, sources, shape), _csr_of_ones(sources, targets, shape[::-1])
            blocks.append((link, *matrices))
        return blocks

    def spread(self, h: Tensor, weights: Tensor) -> Tensor:
        """Return Σ_φ weights[φ]·A_φ·h, what each node receives along its edges; shape of h (nodes, ...).

        `weights[φ]` is a number, or whatever can be multiplied with the h of one node.
        """
        received = {name: torch.zeros_like(part) for name, part in self.by_type(h).items()}
        for weight, (link, matrix, transposed) in zip(weights, self.blocks, strict=True):
            sent = h[self.numbering.rows(link.source)]
            summed: Tensor = _SparseProduct.apply(matrix, transposed, sent.flatten(1))  # type: ignore[no-untyped-call]
            received[link.target] = received[link.target] + summed.view(-1, *h.shape[1:]) * weight
        return torch.cat(list(received.values()))

    def edges_by_kind(self) -> dict[tuple[str, str, str], Tensor]:
        """Return the edges of each kind as torch_geometric wants them: rows within their types; shape (2, edges)."""
        edges = {}
        for kind, link in enumerate(edge_kinds(self.schema)):
            first = torch.tensor([[self.numbering.first(link.source)], [self.numbering.first(link.target)]])
            key = (link.source, f"{kind}", link.target)
            edges[key] = self.edges[:, self.kinds == kind] - first.to(self.edges.device)
        return edges


def _csr_of_ones(rows: Tensor, columns: Tensor, shape: tuple[int, int]) -> Tensor:
    order = torch.argsort(rows, stable=True)
    counts = torch.bincount(rows, minlength=shape[0])
    indptr = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sparse CSR tensor support is in beta")  # only products are used
        warnings.filterwarnings("ignore", "Sparse invariant checks are implicitly disabled")  # they are enabled here
        ones = torch.ones(len(columns), device=columns.device)
        return torch.sparse_csr_tensor(indptr, columns[order], ones, shape, check_invariants=True)


class _SparseProduct(torch.autograd.Function):
    """Sparse times dense, both of whose directions are sparse products; the sparse matrix gets no gradient."""

    @staticmethod
    def forward(ctx: object, matrix: Tensor, transposed: Tensor, x: Tensor) -> Tensor:
        ctx.transposed = transposed  # type: ignore[attr-defined]
        return _multiply(matrix, x)

    @staticmethod
    def backward(ctx: object, *grads: Tensor) -> tuple[None, None, Tensor]:
        return None, None, _multiply(ctx.transposed, grads[0])  # type: ignore[attr-defined]


def _multiply(matrix: Tensor, x: Tensor) -> Tensor:
    return add_in_order(matrix, x) if x.is_cuda else matrix @ x  # CUDA's own product adds in no fixed order


def add_in_order(matrix: Tensor, x: Tensor) -> Tensor:
    """Return matrix·x for a sparse matrix of ones, each row added up from its first entry to its last."""
    indptr, columns = matrix.crow_indices(), matrix.col_indices()
    step = max(1, _MAX_ENTRIES // max(1, len(columns)))
    product = x.new_empty(matrix.shape[0], x.shape[1])
    for start in range(0, x.shape[1], step):
        entries = x[:, start : start + step][columns]
        sums = torch.segment_reduce(entries, "sum", offsets=indptr, axis=0, unsafe=True)
        product[:, start : start + step] = sums
    return product

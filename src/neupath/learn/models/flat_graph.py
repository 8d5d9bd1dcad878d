"""GraphTensors: a typed graph as torch sees it, all nodes in one numbering and every edge in both directions."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from neupath.graph.hin import HIN
from neupath.graph.nodes import Mask
from neupath.graph.schema import Link, Schema

# ---- FlatGraph -----------------------------------------------------------------------------------
Ints = NDArray[np.int64]


def edge_kinds(schema: Schema) -> list[Link]:
    """List the kinds of edges: each relation forward, then backward unless it has no direction."""
    forward = [Link(relation) for relation in schema.relations]
    return [way for link in forward for way in dict.fromkeys((link, link.reversed()))]


@dataclass(frozen=True)
class FlatGraph:
    """A graph with all nodes in one numbering, type after type, and the edges into each node.

    Node v is reached from `sources[first[v]:last[v]]` along edges of kinds `kinds[...]`. `start[t]` is the first node
    of the t-th type; one more entry ends the last.
    """

    start: Ints
    types: Ints
    first: Ints
    last: Ints
    sources: Ints
    kinds: Ints

    @classmethod
    def of(cls, hin: HIN, room: Mapping[str, int] | None = None) -> "FlatGraph":
        """Number the nodes of a graph and sort its edges by the node they lead to.

        Where there is `room` for more nodes of a type than there are, the numbers left over are nodes without edges.
        """
        names = hin.schema.node_types
        sizes = np.array([room[name] if room else hin.num_nodes(name) for name in names], dtype=np.int64)
        start = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        begin = dict(zip(names, start[:-1], strict=True))
        parts = [(np.zeros(0, np.int64),) * 3]
        for kind, link in enumerate(edge_kinds(hin.schema)):
            entries = hin.matrix(link).tocoo()
            parts.append(
                (entries.row + begin[link.source], entries.col + begin[link.target], np.full(entries.nnz, kind))
            )
        sources, targets, kinds = (np.concatenate(column).astype(np.int64) for column in zip(*parts, strict=True))
        order = np.lexsort((sources, kinds, targets))
        last = np.cumsum(np.bincount(targets, minlength=start[-1])).astype(np.int64)
        types = np.repeat(np.arange(len(names)), sizes).astype(np.int64)
        return cls(start, types, np.concatenate([[0], last])[:-1], last, sources[order], kinds[order])

    def edges_of(self, nodes: Ints) -> tuple[Ints, Ints]:
        """Return the edges into some nodes: for each the position of its node among those given, and its number."""
        first = self.first[nodes]
        return positions(first, self.last[nodes] - first)

    def with_neighbours(self, nodes: Mask) -> Mask:
        """Mark some nodes and all their neighbours; shape (nodes,)."""
        marked = nodes.copy()
        marked[self.sources[self.edges_of(np.flatnonzero(nodes))[1]]] = True
        return marked


def positions(first: Ints, lengths: Ints) -> tuple[Ints, Ints]:
    """List the places of some stretches: for each place the number of its stretch, and the place itself.

    >>> positions(np.array([5, 2]), np.array([2, 1]))
    (array([0, 0, 1]), array([5, 6, 2]))
    """
    which = np.repeat(np.arange(len(first)), lengths)
    return which, np.arange(len(which)) - (np.cumsum(lengths) - lengths - first)[which]


# ---- GraphTensors --------------------------------------------------------------------------------
Block = tuple[Link, Tensor, Tensor]
"""A kind of edges, its matrix (targets, sources), and the same transposed, which the gradient needs."""

_MOST_AT_ONCE = 1 << 28
"""Numbers that wait to be added up at once, to bound memory."""


@dataclass(frozen=True)
class GraphTensors:
    """Which nodes are joined, and by what kind of edge; weights are not seen.

    Nodes are numbered type after type: those of the t-th type are `start[t]` to `start[t + 1]`.
    """

    schema: Schema
    start: list[int]
    types: Tensor  # (nodes,)
    edges: Tensor  # (2, E) from, to; sorted by the node they lead to
    kinds: Tensor  # (E,) as `edge_kinds` lists them

    @classmethod
    def of(cls, hin: HIN, device: torch.device) -> "GraphTensors":
        """Number the nodes of a graph, and move its edges to a device."""
        flat = FlatGraph.of(hin)
        targets = np.repeat(np.arange(len(flat.types)), flat.last - flat.first)
        edges = np.stack([flat.sources, targets])
        types, ends, kinds = (torch.from_numpy(part).to(device) for part in (flat.types, edges, flat.kinds))
        return cls(hin.schema, flat.start.tolist(), types, ends, kinds)

    @property
    def num_nodes(self) -> int:
        return self.start[-1]

    def rows_of(self, node_type: str) -> slice:
        """Return where the nodes of a type stand."""
        at = self.schema.node_types.index(node_type)
        return slice(self.start[at], self.start[at + 1])

    def by_type(self, x: Tensor) -> dict[str, Tensor]:
        """Cut what belongs to nodes into what belongs to the nodes of each type; shape of x (nodes, ...)."""
        return {name: x[self.rows_of(name)] for name in self.schema.node_types}

    @cached_property
    def blocks(self) -> list[Block]:
        """The edges of each kind as a sparse matrix between the nodes of two types."""
        found = []
        for kind, link in enumerate(edge_kinds(self.schema)):
            sources, targets = self.edges[:, self.kinds == kind]
            here, there = self.rows_of(link.source), self.rows_of(link.target)
            shape = (there.stop - there.start, here.stop - here.start)
            rows, columns = targets - there.start, sources - here.start
            back = sparse_rows(*_by_first(columns, rows), shape[::-1])
            found.append((link, sparse_rows(*_by_first(rows, columns), shape), back))
        return found

    def spread(self, h: Tensor, weights: Tensor) -> Tensor:
        """Add up what each node receives along its edges, that of each kind times a weight; shape of h (nodes, ...).

        `weights[kind]` is a number, or whatever can be multiplied with the h of a node.
        """
        received = {name: torch.zeros_like(part) for name, part in self.by_type(h).items()}
        for weight, (link, matrix, transposed) in zip(weights, self.blocks, strict=True):
            sent = h[self.rows_of(link.source)]
            summed = multiply(matrix, transposed, sent.flatten(1)).view(-1, *h.shape[1:])
            received[link.target] = received[link.target] + summed * weight
        return torch.cat(list(received.values()))

    def edges_by_kind(self) -> dict[tuple[str, str, str], Tensor]:
        """Return the edges of each kind as torch_geometric wants them: rows within their types; shape (2, edges)."""
        found = {}
        for kind, link in enumerate(edge_kinds(self.schema)):
            first = torch.tensor([[self.rows_of(link.source).start], [self.rows_of(link.target).start]])
            key = (link.source, f"{kind}", link.target)
            found[key] = self.edges[:, self.kinds == kind] - first.to(self.edges.device)
        return found


def sparse_rows(rows: Tensor, columns: Tensor, shape: tuple[int, int]) -> Tensor:
    """Make a sparse matrix of ones, given by rows in ascending order."""
    counts = torch.bincount(rows, minlength=shape[0])
    indptr = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sparse CSR tensor support is in beta")  # products are all that is used
        warnings.filterwarnings("ignore", "Sparse invariant checks are implicitly disabled")  # they are on, here
        ones = torch.ones(len(columns), device=columns.device)
        return torch.sparse_csr_tensor(indptr, columns, ones, shape, check_invariants=True)


def _by_first(rows: Tensor, columns: Tensor) -> tuple[Tensor, Tensor]:
    order = torch.argsort(rows, stable=True)
    return rows[order], columns[order]


def multiply(matrix: Tensor, transposed: Tensor, x: Tensor) -> Tensor:
    """Return matrix·x, sparse times dense, without a gradient for the matrix; shape of x (columns, width).

    The matrix is one of ones, as `sparse_rows` makes it.
    """
    found: Tensor = _Product.apply(matrix, transposed, x)  # type: ignore[no-untyped-call]
    return found


class _Product(torch.autograd.Function):
    """A sparse matrix times a dense one; the gradient is the transposed matrix times what comes back."""

    @staticmethod
    def forward(ctx: object, matrix: Tensor, transposed: Tensor, x: Tensor) -> Tensor:
        ctx.transposed = transposed  # type: ignore[attr-defined]
        return _add_rows(matrix, x)

    @staticmethod
    def backward(ctx: object, *grads: Tensor) -> tuple[None, None, Tensor]:
        return None, None, _add_rows(ctx.transposed, grads[0])  # type: ignore[attr-defined]


def _add_rows(matrix: Tensor, x: Tensor) -> Tensor:
    return add_in_order(matrix, x) if x.is_cuda else matrix @ x  # CUDA's own product adds in no fixed order


def add_in_order(matrix: Tensor, x: Tensor) -> Tensor:
    """Return matrix·x for a matrix of ones, each row added up from its first entry to its last."""
    places, columns = matrix.crow_indices(), matrix.col_indices()
    step = max(1, _MOST_AT_ONCE // max(1, len(columns)))
    found = x.new_empty(matrix.shape[0], x.shape[1])
    for at in range(0, x.shape[1], step):
        entries = x[:, at : at + step][columns]
        found[:, at : at + step] = torch.segment_reduce(entries, "sum", offsets=places, axis=0, unsafe=True)
    return found

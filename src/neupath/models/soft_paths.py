"""Soft paths: half-paths from a type, what they count between labelled nodes, and products along gated steps."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array, eye_array

from neupath.errors import QueryError
from neupath.graph import HIN, Csr, Floats, freeze
from neupath.models.flat_graph import FlatGraph, edge_kinds
from neupath.nodes import Rows
from neupath.parsing import arrow

_MOST_PATHS = 150


@dataclass(frozen=True)
class HalfPath:
    """A half-path that exists in the schema: its kinds of edges, and the gate entries that spell it.

    `spellings` has shape (n, steps): each row names one gate entry a step, "stay" in different places.
    """

    kinds: tuple[int, ...]
    spellings: tuple[tuple[int, ...], ...]


def whole_matrices(hin: HIN) -> list[Csr]:
    """Return the edges of each kind over all nodes in one numbering; shape (nodes, nodes) each, sparse."""
    graph = FlatGraph.of(hin)
    first = dict(zip(hin.schema.node_types, graph.start[:-1], strict=True))
    size = int(graph.start[-1])
    found = []
    for link in edge_kinds(hin.schema):
        entries = hin.matrix(link).tocoo()
        places = (entries.row + first[link.source], entries.col + first[link.target])
        found.append(csr_array((entries.data, places), shape=(size, size)))
    return found


def half_paths(hin: HIN, node_type: str, steps: int) -> list[HalfPath]:
    """List the half-paths of up to some steps that start at a type, each with its spellings."""
    kinds = edge_kinds(hin.schema)
    stay = len(kinds)
    spelled: dict[tuple[int, ...], list[tuple[int, ...]]] = {}
    frontier: list[tuple[tuple[int, ...], str]] = [((), node_type)]
    for _ in range(steps):
        frontier = [
            ((*spelling, entry), kinds[entry].target if entry < stay else here)
            for spelling, here in frontier
            for entry in range(stay + 1)
            if entry == stay or kinds[entry].source == here
        ]
    for spelling, _ in frontier:
        spelled.setdefault(tuple(entry for entry in spelling if entry < stay), []).append(spelling)
    if len(spelled) > _MOST_PATHS:
        raise QueryError(
            f"there are {len(spelled):,} half-paths of up to {steps} steps from {node_type}, more than the "
            f"{_MOST_PATHS} this model weighs at once; use a smaller half_length, or leave out relations"
        )
    return [HalfPath(kinds_used, tuple(spellings)) for kinds_used, spellings in spelled.items()]


def walk(hin: HIN, nodes: Rows, path: HalfPath, node_type: str) -> tuple[str, Csr]:
    """Return where a half-path ends, and W_p of some nodes; shape (nodes, nodes of the end type)."""
    kinds = edge_kinds(hin.schema)
    here, w = node_type, csr_array(eye_array(hin.num_nodes(node_type), format="csr"))[nodes]
    for kind in path.kinds:
        here, w = kinds[kind].target, csr_array(w @ hin.matrix(kinds[kind]))
    return here, w


def gram(rows: list[tuple[str, Csr]], first: Rows, second: Rows) -> Floats:
    """Return ⟨W_p[x], W_q[y]⟩ for every pair (x, y) and half-paths p, q; shape (pairs, P, P)."""
    found = np.zeros((len(first), len(rows), len(rows)))
    for p, (end, w) in enumerate(rows):
        for q, (other_end, v) in enumerate(rows):
            if end == other_end:
                found[:, p, q] = row_dots(w[first], v[second])
    return found


def row_dots(a: Csr, b: Csr) -> Floats:
    """Return ⟨a[i], b[i]⟩ for every row i."""
    return np.asarray(a.multiply(b).sum(axis=1), dtype=np.float64).ravel()


def gated_product(hin: HIN, gate: Floats, node_type: str) -> Csr:
    """Return W of one channel for the nodes of a type; shape (nodes of the type, all nodes)."""
    matrices = whole_matrices(hin)
    graph = FlatGraph.of(hin)
    number = hin.schema.node_types.index(node_type)
    identity = csr_array(eye_array(int(graph.start[-1]), format="csr"))
    w = identity[int(graph.start[number]) : int(graph.start[number + 1])]
    for shares in gate:
        walked = shares[-1] * w
        for share, matrix in zip(shares[:-1], matrices, strict=True):
            if share > 0:
                walked = walked + share * (w @ matrix)
        w = csr_array(walked)
        w.eliminate_zeros()
    return freeze(w)


def round_trip(hin: HIN, node_type: str, links: list[Any]) -> str | None:
    """Write half-path links, walked out and back, as a meta-path; nothing where there are none or they do not join."""
    text, here = node_type, node_type
    for link in (*links, *(link.reversed() for link in reversed(links))):
        if link.source != here:
            return None
        text += f" {arrow((link,))} {link.target}"
        here = link.target
    return str(hin.metapath(text)) if links else None


def spell(hin: HIN, node_type: str, links: list[Any]) -> str:
    """Write half-path links as a meta-path, or else say what they are."""
    nowhere = f"{node_type} {' '.join(arrow((part,)) for part in links)} (leads nowhere)"
    return round_trip(hin, node_type, links) or (nowhere if links else f"{node_type} (itself)")

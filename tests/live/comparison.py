"""Compare a live graph with one built from scratch, and change it by rows as its writer does."""

from collections.abc import Mapping, Sequence

import numpy as np

from neupath import HIN
from neupath.engine.scorer import RowChange, RowEdge, Scorer
from neupath.graph.hin import Edges
from neupath.graph.nodes import Nodes
from neupath.live import LiveGraph


def set_edges(live: LiveGraph, edges: Sequence[RowEdge], nodes: Mapping[str, Nodes] | None = None) -> int:
    """Set weights of edges by rows and add nodes; return the new version."""
    version = live.view().version + 1
    live.apply(RowChange(version, edges, nodes or {}))
    return version


def rebuilt(hin: HIN) -> HIN:
    """Return the same graph, sharing no memory."""
    edges = []
    for relation, matrix in hin.matrices.items():
        entries = matrix.tocoo()
        kept = np.arange(entries.nnz) if relation.directed else np.flatnonzero(entries.row <= entries.col)
        rows, columns = (ends[kept].astype(np.int64) for ends in (entries.row, entries.col))
        edges.append(Edges(relation, rows, columns, entries.data[kept]))
    nodes = [Nodes(t, each.ids, each.names, each.attributes) for t, each in hin.nodes.items()]
    return HIN.build(nodes, edges)


def assert_equal(live: Scorer, scratch: Scorer, count: int, k: int = 3) -> None:
    """Compare scores and rankings of all queries, to the last bit."""
    rows, nobody = np.arange(count), np.full(count, -1)
    assert live.score_rows(rows).tolist() == scratch.score_rows(rows).tolist()
    ours, theirs = (s.rank_rows(rows, nobody, k, None, 1) for s in (live, scratch))
    assert ours.sizes.tolist() == theirs.sizes.tolist()
    for q, size in enumerate(ours.sizes):
        assert ours.rows[q, :size].tolist() == theirs.rows[q, :size].tolist()
        assert ours.scores[q, :size].tolist() == theirs.scores[q, :size].tolist()


def assert_same(live: Scorer, scratch: Scorer, count: int) -> None:
    """Compare scores and rankings of all queries, up to rounding."""
    rows, nobody = np.arange(count), np.full(count, -1)
    np.testing.assert_allclose(live.score_rows(rows), scratch.score_rows(rows), rtol=1e-12, atol=1e-300)
    ours, theirs = (s.rank_rows(rows, nobody, 3, None, 1) for s in (live, scratch))
    assert ours.sizes.tolist() == theirs.sizes.tolist()
    for q, size in enumerate(ours.sizes):
        np.testing.assert_allclose(ours.scores[q, :size], theirs.scores[q, :size], rtol=1e-12)

"""The encoder over classes against the plain forward pass over all nodes and edges."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch", reason="the learn extra is not installed")

import neupath as npth  # noqa: E402
from neupath import HIN  # noqa: E402
from neupath.learn.models.class_table import (
    ClassTable,
    build_batch,
)
from neupath.learn.models.neupath import Decoder, Encoder  # noqa: E402
from tests.graphs import hins  # noqa: E402
from tests.reference import network, score_all  # noqa: E402

CAPS = {"max": 1, "mean": 0, "sum": 0}


def by_classes(encoder: Encoder, decoder: Decoder, graph, query: int):
    """Scores of every node, each class computed once."""
    cap = CAPS.get(encoder.pooling, encoder.slots)
    table = ClassTable(int(graph.types.max(initial=0)) + 1, len(encoder.layers), cap)
    table.num_types = len(encoder.layers[0].project)
    every = np.arange(len(graph.types))
    classes = table.classes_of(graph, table.background(graph), query, table.reach(graph, every))
    distinct, which = np.unique(classes, return_inverse=True)
    batch = build_batch(table, distinct, encoder.slots)
    return decoder(encoder(batch))[torch.from_numpy(which)]


@settings(max_examples=25)
@given(
    hin=hins(),
    pooling=st.sampled_from(["tmax", "tmax", "max", "mean", "sum"]),
    layers=st.integers(1, 3),
    slots=st.integers(1, 3),
    seed=st.integers(0, 1000),
)
def test_scores_and_gradients_equal_the_plain_forward(
    hin: HIN, pooling: str, layers: int, slots: int, seed: int
) -> None:
    slots = slots if pooling == "tmax" else 1
    encoder, decoder, graph = network(hin, 6, layers, slots, pooling, seed)
    if not len(graph.types):
        return
    query = seed % len(graph.types)
    parameters = [*encoder.parameters(), *decoder.parameters()]
    found, expected = by_classes(encoder, decoder, graph, query), score_all(encoder, decoder, graph, query)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)
    ours = torch.autograd.grad((found**2).sum(), parameters, allow_unused=True)
    theirs = torch.autograd.grad((expected**2).sum(), parameters, allow_unused=True)
    for mine, plain, parameter in zip(ours, theirs, parameters, strict=True):
        found, expected = (torch.zeros_like(parameter) if g is None else g for g in (mine, plain))
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("layers", "slots"), [(2, 2), (4, 3)])
def test_scores_equal_the_plain_forward_on_imdb(data: Path, layers: int, slots: int) -> None:
    """On the movies around one movie: the plain pass over the whole graph would take minutes."""
    hin = npth.load(data / "imdb")
    keep = np.unique(hin.matrices[hin.metapath("MA").steps[0].links[0].relation][:400].indices)[:200]
    actor = hin.nodes["actor"].ids.take(keep).to_pylist()
    part = around(hin, actor)
    encoder, decoder, graph = network(part, 8, layers, slots, "tmax", 0)
    for query in (0, 17):
        torch.testing.assert_close(
            by_classes(encoder, decoder, graph, query), score_all(encoder, decoder, graph, query), rtol=1e-5, atol=1e-5
        )


def around(hin: HIN, actors: list[int]) -> HIN:
    """The graph of the movies of some actors."""
    relation = hin.metapath("AM").steps[0].links[0].relation
    rows = np.flatnonzero(np.asarray(hin.matrices[relation][:, actors].sum(axis=1)).ravel())[:150]
    nodes = [npth.Nodes(node_type, hin.nodes[node_type].ids) for node_type in ("movie", "actor", "director")]
    edges = []
    for name in ("movie_actor", "movie_director"):
        kept = next(r for r in hin.schema.relations if r.name == name)
        entries = hin.matrices[kept][rows].tocoo()
        edges.append(npth.Edges(kept, rows[entries.row], entries.col.astype(np.int64)))
    return shrink(nodes, edges)


def shrink(nodes: list, edges: list) -> HIN:
    """Leave out nodes without edges."""
    kept = {}
    for node in nodes:
        ends = [e.sources for e in edges if e.relation.source == node.node_type]
        ends += [e.targets for e in edges if e.relation.target == node.node_type]
        kept[node.node_type] = np.unique(np.concatenate(ends))
    small = [npth.Nodes(n.node_type, n.ids.take(kept[n.node_type])) for n in nodes]
    moved = [
        npth.Edges(
            e.relation,
            np.searchsorted(kept[e.relation.source], e.sources),
            np.searchsorted(kept[e.relation.target], e.targets),
        )
        for e in edges
    ]
    return HIN.build(small, moved)

"""Single edges of a live graph: the tables of every version, and the edges of a pair at the newest one."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neupath import HIN, PathSim
from neupath.graph.hin import Edges
from neupath.graph.metapath import Relation
from neupath.graph.nodes import Nodes
from neupath.live import LiveGraph, LiveScorer, live_graph
from neupath.store import Edge, Update
from tests.live.comparison import assert_equal, set_edges

LIKES = Relation("user", "likes", "item")
KNOWS = Relation("user", "knows", "user", directed=False)
Row = tuple[int, int, float, tuple[Any, ...]]


def graph() -> HIN:
    ends = np.array([0, 0, 2]), np.array([1, 1, 0])
    return HIN.build(
        [Nodes("user", pa.array([0, 1, 2])), Nodes("item", pa.array([0, 1]))],
        [
            Edges(LIKES, *ends, np.array([1.0, 2.0, 3.0]), pa.table({"n": [1, 2, 3], "word": ["a", None, "b"]})),
            Edges(KNOWS, *ends, None, pa.table({"n": [4, 5, 6]})),
        ],
    )


PATHS = (
    "user -likes[n >= 3]-> item <-likes[n >= 3]- user",
    "user -likes[n >= 3; weight: n * weight]-> item <-likes[n >= 3; weight: n * weight]- user",
    'user -likes[word = "a" or n < 5]-> item <-likes[word = "a" or n < 5]- user',
    "user -knows[n != 4]- user -likes-> item <-likes- user -knows[n != 4]- user",
)


def from_rows(model: Mapping[Relation, Sequence[Row]]) -> HIN:
    edges = []
    for relation, own in model.items():
        names = graph().edge_tables[relation].attributes.schema
        columns = list(zip(*(row[3] for row in own), strict=True)) or [()] * len(names)
        table = pa.table(
            [pa.array(column, kind) for column, kind in zip(columns, names.types, strict=True)], schema=names
        )
        ends = [np.array([row[at] for row in own], dtype=np.int64) for at in (0, 1)]
        edges.append(Edges(relation, *ends, np.array([row[2] for row in own]), table))
    return HIN.build(graph().nodes.values(), edges)


def rows(edges: Edges) -> list[Row]:
    values = zip(*(edges.attributes[name].to_pylist() for name in edges.attributes.column_names), strict=True)
    weights = np.asarray(edges.weights).tolist()
    return list(zip(edges.sources.tolist(), edges.targets.tolist(), weights, values, strict=True))


def pair(relation: Relation, source: int, target: int) -> tuple[int, int]:
    return (source, target) if relation.directed else (min(source, target), max(source, target))


_STEP = st.tuples(
    st.sampled_from([LIKES, KNOWS]), st.booleans(), st.integers(0, 2), st.integers(0, 1), st.sampled_from([0.5, 2.0]),
    st.integers(0, 9),
)  # fmt: skip


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(st.lists(st.lists(_STEP, max_size=3), max_size=8), st.integers(0, 8))
def test_tables_and_pairs_equal_a_plain_model(steps: Sequence[Sequence[Any]], compacted: int) -> None:
    live = LiveGraph(graph())
    measures = [PathSim(path) for path in PATHS]
    for measure in measures:
        live.attach(measure)
    model = {relation: rows(table) for relation, table in graph().edge_tables.items()}
    views = [(live.view(), {relation: list(own) for relation, own in model.items()})]
    for number, step in enumerate(steps):
        gone: dict[Relation, set[tuple[int, int]]] = {LIKES: set(), KNOWS: set()}
        for relation, is_removed, source, target, *_ in step:
            ends = pair(relation, source, target)
            if is_removed and any(pair(relation, *row[:2]) == ends for row in model[relation]):
                gone[relation].add(ends)
        added = [(relation, s, t, w, n) for relation, is_removed, s, t, w, n in step if not is_removed]
        live.update(
            Update(
                add_edges=[Edge(relation.name, s, t, w, {"n": n}) for relation, s, t, w, n in added],
                remove_edges=[Edge(relation.name, *ends) for relation, own in gone.items() for ends in own],
            )
        )
        for relation, own in gone.items():
            model[relation] = [row for row in model[relation] if pair(relation, *row[:2]) not in own]
        for relation, s, t, w, n in added:
            model[relation].append((s, t, w, (n, None) if relation is LIKES else (n,)))
        views.append((live.view(), {relation: list(own) for relation, own in model.items()}))
        for relation in (LIKES, KNOWS):
            ends = pair(relation, 0, 1)
            between = live._state.newest_edges.between(relation, [ends])
            assert rows(between) == [row for row in model[relation] if pair(relation, *row[:2]) == ends]
        scratch = from_rows(model)
        for measure in measures:
            scorer = live.view().scorer(measure)
            assert isinstance(scorer, LiveScorer)
            assert_equal(scorer, measure.bind(scratch), 3)
        if number == compacted:
            live.compact()
    for view, expected in views:
        assert {relation: rows(table) for relation, table in view.hin.edge_tables.items()} == expected


def test_edges_that_come_while_a_base_is_built_stay_before_later_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """The new base numbers its edges from 0, and what came in the meantime keeps a larger number than the next one."""
    live = LiveGraph(graph(), compaction_share=1e9)  # none but the one below
    live.update(Update(remove_edges=[Edge("knows", 0, 1)]))

    def add(weight: float, n: int) -> None:
        live.update(Update(add_edges=[Edge("knows", 0, 1, weight, {"n": n})]))

    def build(hin: HIN) -> HIN:
        add(2.0, 4)
        return materialised(hin)

    materialised = live_graph._materialised
    monkeypatch.setattr(live_graph, "_materialised", build)
    live.compact()
    add(0.5, 1)
    expected = [(0, 1, 2.0, (4,)), (0, 1, 0.5, (1,))]
    assert rows(live._state.newest_edges.between(KNOWS, [(0, 1)])) == expected
    assert rows(live.view().hin.edge_tables[KNOWS])[1:] == expected


def test_a_table_that_a_change_does_not_tell_of_is_dropped() -> None:
    live = LiveGraph(graph())
    set_edges(live, [(LIKES, 1, 1, 2.0)])
    assert set(live.view().hin.edge_tables) == {KNOWS}
    live.compact()
    assert set(live.view().hin.edge_tables) == {KNOWS}

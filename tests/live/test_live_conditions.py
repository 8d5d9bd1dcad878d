"""Measures over meta-paths with conditions follow a live graph as if they were fitted from scratch."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import neupath as npth
from neupath import HIN, Nodes, Relation
from neupath.engine.scorer import RowEdge
from neupath.errors import NeuPathError
from neupath.live import LiveGraph, LiveScorer, LiveStore
from neupath.store import Edge, Node, Update, write_store
from tests.conditioned import Case
from tests.graphs import RELATIONS
from tests.live.comparison import assert_same, rebuilt, set_edges


def _random_edges(case: Case, hin: HIN) -> list[RowEdge]:
    relation = case.pick(RELATIONS)
    ends = (int(case.rng.integers(hin.num_nodes(t))) for t in (relation.source, relation.target))
    return [(relation, *ends, float(case.rng.choice([0.0, 0.25, 1.0, 2.0, 3.0])))]


def _new_nodes(case: Case, hin: HIN) -> dict[str, Nodes]:
    node_type = case.pick("abc")
    ids = pa.array([f"{node_type}{hin.num_nodes(node_type)}"])
    return {node_type: Nodes(node_type, ids, attributes=case.table(1, "year"))}


@pytest.mark.slow
@settings(max_examples=6)
@given(seed=st.integers(0, 2**32))
def test_answers_as_from_scratch(seed: int) -> None:
    case = Case(seed, edge_tables=False)
    paths = [case.path(symmetric=True) for _ in range(4)] + [case.path(symmetric=False, max_length=3) for _ in range(2)]
    measures = [npth.PathSim(path) for path in paths[:4]] + [npth.PCRW(path) for path in paths]
    live = LiveGraph(case.hin, compaction_share=float("inf"))
    for measure in measures:
        live.attach(measure)
    followed = sum(isinstance(live.view().scorer(measure), LiveScorer) for measure in measures)
    assert followed >= 8, "paths of more than one step follow"
    for number in range(6):
        hin = live.view().hin
        set_edges(live, _random_edges(case, hin), _new_nodes(case, hin) if number % 3 == 1 else None)
        if number == 3:
            live.compact()
        view = live.view()
        scratch = rebuilt(view.hin)
        for measure in measures:
            scorer = view.scorer(measure)
            assert_same(scorer, type(measure)(measure.metapath).fit(scratch), scratch.num_nodes(scorer.source_type))


def _shop() -> HIN:
    users = Nodes("user", pa.array(["u", "v"]))
    films = Nodes("film", pa.array(["f", "g"]), pa.array(["Heat", "Up"]), pa.table({"year": [1995, 2009]}))
    relation, ends = Relation("user", "rates", "film"), (np.array([0, 1, 1]), np.array([0, 0, 1]))
    return HIN.build([users, films], [npth.Edges(relation, *ends, np.array([5.0, 4, 2]))])


def test_a_weight_that_becomes_infinite_stops_nothing() -> None:
    live = LiveGraph(_shop())
    path = "user -rates[weight: 1 / (weight - 3)]-> film <-rates[weight: 1 / (weight - 3)]- user"
    measure = npth.PathSim(path)
    assert live.attach(measure).top_k("u").ids == ("v",)
    live.update(Update(remove_edges=[Edge("rates", "u", "f")], add_edges=[Edge("rates", "u", "f", 3.0)]))
    with pytest.raises(NeuPathError, match="is inf for the edge 'u' to 'f' of"):
        live.view().scorer(measure)
    live.update(Update(add_edges=[Edge("rates", "u", "f", 1.0)]))
    assert live.attach(measure).top_k("u").ids == ("v",)


def test_a_pinned_node_that_is_removed_stops_nothing(tmp_path) -> None:
    pinned, year = npth.PathSim("user-film{Up}-user"), npth.PathSim("user-film[year < 2000]-user")
    with LiveStore(write_store(_shop(), tmp_path / "shop.store")) as live:
        assert live.attach(pinned).top_k("v").ids == ()
        assert live.attach(year).top_k("u").ids == ("v",)
        live.update(Update(add_nodes=[Node("film", "h", "Up"), Node("film", "i", "Old", {"year": 1950})]))
        live.update(Update(add_edges=[Edge("rates", user, film) for user in "uv" for film in "hi"]))
        assert live.view().scorer(year).top_k("u")[0].score == pytest.approx(2 * 21 / (26 + 17))
        live.update(Update(remove_edges=[Edge("rates", "v", "g")], remove_nodes=[Node("film", "g")]))
        live.update(Update(remove_edges=[Edge("rates", user, "h") for user in "uv"], remove_nodes=[Node("film", "h")]))
        with pytest.raises(NeuPathError, match="at character 11: no film with the id or name 'Up'"):
            live.view().scorer(pinned)
        assert live.view().scorer(year).top_k("u")[0].score == pytest.approx(2 * 21 / (26 + 17))


def test_texts_are_not_compared_with_dates_on_a_live_store(tmp_path) -> None:
    users, items = Nodes("user", pa.array(["u", "v"])), Nodes("item", pa.array(["a", "b"]))
    days = pa.table({"day": ["31.12.2019", "01.02.2026"]})
    bought = npth.Edges(Relation("user", "bought", "item"), np.array([0, 1]), np.array([0, 0]), attributes=days)
    write_store(HIN.build([users, items], [bought]), tmp_path / "store")
    with LiveStore(tmp_path / "store") as live:
        for options in ({"since": "2026-01-01"}, {"until": "2020-12-31"}, {"half_life": "30d"}):
            with pytest.raises(
                NeuPathError, match=r"attribute 'day' holds text.*\{day = \"%d\.%m\.%Y\"\} in graph\.toml"
            ):
                live.view().hin.metapath("user-item-user", time="day", **options)
        with pytest.raises(NeuPathError, match="attribute 'day' holds text"):
            path = "user -bought[day > 2026-01-01]-> item <-bought[day > 2026-01-01]- user"
            live.attach(npth.PathSim(path))

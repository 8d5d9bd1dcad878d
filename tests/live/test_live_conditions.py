"""Measures over meta-paths with conditions follow a live graph as if they were fitted from scratch."""

from contextlib import suppress

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import neupath as npth
from neupath import HIN
from neupath.engine.scorer import RowEdge
from neupath.errors import NeuPathError
from neupath.graph.hin import Edges
from neupath.graph.metapath import Relation
from neupath.graph.nodes import Nodes
from neupath.live import LiveGraph, LiveScorer, LiveStore
from neupath.measures import PCRW, PathCount
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
    measures = [npth.PathSim(path) for path in paths[:4]] + [PCRW(path) for path in paths]
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
    return HIN.build([users, films], [Edges(relation, *ends, np.array([5.0, 4, 2]))])


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


def _cinema() -> HIN:
    """Three users of two films; what a pinned node means depends on ids, names and their spelling."""
    users, films = (
        Nodes("user", pa.array(["u", "v", "w"])),
        Nodes("film", pa.array(["f1", "f2"]), pa.array(["Heat", "Up"])),
    )
    return HIN.build(
        [users, films], [Edges(Relation("user", "sees", "film"), np.array([0, 1, 1]), np.array([0, 0, 1]))]
    )


def _scores_or_refusal(make, hin: HIN):
    try:
        return make().score_rows(np.arange(hin.num_nodes("user"))).tolist()
    except NeuPathError as error:
        return str(error)


@pytest.mark.parametrize(
    ("pin", "node"),
    [
        ("Heat", Node("film", "Heat", "Other")),  # an id goes before a name
        ("Heat", Node("film", "f3", "Heat")),  # a name that two nodes have is refused
        ("heat", Node("film", "f3", "heat")),  # the same spelling goes before another case
        ("heat", Node("film", "heat", "Other")),
        ("heat", Node("film", "f3", "HEAT")),
        ("f1", Node("film", "f3", "f1")),  # an id stays what it is
    ],
)
def test_a_new_node_that_a_pin_may_mean_is_read_as_from_scratch(tmp_path, pin: str, node: Node) -> None:
    measure = PathCount(f"user-film{{{pin}}}-user")
    with LiveStore(write_store(_cinema(), tmp_path / "cinema.store"), compaction_share=float("inf")) as live:
        live.attach(measure)
        live.update(Update([Edge("sees", user, node.id) for user in "vw"], add_nodes=[node]))
        view = live.view()
        kept = live.view(as_of=0)
        ours = _scores_or_refusal(lambda: view.scorer(measure), view.hin)
        assert _scores_or_refusal(lambda: kept.scorer(measure), kept.hin)[0] == [1.0, 1.0, 0.0]
    again = npth.load(tmp_path / "cinema.store")
    assert ours == _scores_or_refusal(lambda: measure.fit(again), again)


def _attach(live: LiveStore, measure: PathCount) -> None:
    with suppress(NeuPathError):  # what it pins may not be there, or be ambiguous
        live.attach(measure)


_TEXTS = ("Heat", "heat", "HÉAT", "Up", "up", "f1", "f2")


@pytest.mark.slow
@settings(max_examples=15)
@given(seed=st.integers(0, 2**32))
def test_pinned_paths_follow_every_update_as_from_scratch(tmp_path_factory, seed: int) -> None:
    rng = np.random.default_rng(seed)
    pins = [str(pin) for pin in rng.choice(_TEXTS, 3)]
    paths = [f"user-film{{{pin}}}-user" for pin in pins]
    paths += [f"user-film{{{pins[0]}, {pins[1]}}}-user", f"user-film{{{pins[2]}}}-user-film{{{pins[0]}}}-user"]
    measures = [PathCount(path) for path in paths]
    folder = tmp_path_factory.mktemp("live") / "cinema.store"
    with LiveStore(write_store(_cinema(), folder), compaction_share=float("inf")) as live:
        for number in range(8):
            view = live.view()
            hin = rebuilt(view.hin)
            for measure in measures:
                if number % 2 == 0:
                    _attach(live, measure)
                expected = _scores_or_refusal(lambda measure=measure, hin=hin: measure.fit(hin), hin)
                assert _scores_or_refusal(lambda measure=measure, view=view: view.scorer(measure), hin) == expected
            live.update(_random_update(rng, view.hin))
        hin = live.view().hin
        newest = [_scores_or_refusal(lambda measure=measure: live.view().scorer(measure), hin) for measure in measures]
    again = npth.load(folder)
    assert newest == [_scores_or_refusal(lambda measure=measure: measure.fit(again), again) for measure in measures]


def _random_update(rng: np.random.Generator, hin: HIN) -> Update:
    """Remove a film with its edges, or add one with an edge or two, under texts that also pin."""
    films = hin.nodes["film"]
    ids = films.ids.to_pylist()
    free = [text for text in (*_TEXTS, "f3", "f4") if text not in ids]
    if len(ids) > 1 and (not free or rng.random() < 0.3):
        gone = int(rng.integers(len(ids)))
        (matrix,) = hin.matrices.values()
        users = [str(hin.nodes["user"].ids[int(row)]) for row in np.flatnonzero(matrix.toarray()[:, gone])]
        return Update(remove_edges=[Edge("sees", u, ids[gone]) for u in users], remove_nodes=[Node("film", ids[gone])])
    new = str(rng.choice(free))
    name = None if rng.random() < 0.3 else str(rng.choice(_TEXTS))
    users = rng.choice(["u", "v", "w"], int(rng.integers(1, 3)), replace=False)
    return Update([Edge("sees", str(user), new) for user in users], add_nodes=[Node("film", new, name)])


def test_a_new_node_without_a_weight_stops_nothing() -> None:
    live = LiveGraph(_shop())
    measure = npth.PathSim("user-film[weight: 1 / (year - 2000)]-user")
    live.attach(measure)
    live.update(Update([Edge("rates", "u", "h")], add_nodes=[Node("film", "h", "New", {"year": 2000})]))
    with pytest.raises(NeuPathError, match="is inf for"):
        live.view().scorer(measure)


def test_texts_are_not_compared_with_dates_on_a_live_store(tmp_path) -> None:
    users, items = Nodes("user", pa.array(["u", "v"])), Nodes("item", pa.array(["a", "b"]))
    days = pa.table({"day": ["31.12.2019", "01.02.2026"]})
    bought = Edges(Relation("user", "bought", "item"), np.array([0, 1]), np.array([0, 0]), attributes=days)
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

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import neupath as npth
from neupath import HIN, MetaPath, NeuPathError, explain
from neupath.errors import QueryError
from neupath.measures import MEASURES
from tests.graphs import graph_of, hins_with_path
from tests.walks import Walker


@settings(max_examples=50)
@given(hins_with_path(symmetric=True), st.sampled_from(sorted(MEASURES)), st.data())
@pytest.mark.slow
def test_shares_of_all_paths_sum_to_the_score(case: tuple[HIN, MetaPath], measure: str, data: st.DataObject) -> None:
    hin, path = case
    ids = hin.nodes[path.source].ids.to_pylist()
    if not ids:
        return
    a, b = data.draw(st.sampled_from(ids)), data.draw(st.sampled_from(ids))
    why = explain(hin, path, a, b, measure=measure, limit=100_000)
    score = npth.measures.measure_named(measure, path).fit(hin).score(a, b)
    assert why.score == score
    assert why.num_instances == len(why.instances)
    assert sum(i.share for i in why.instances) == pytest.approx(score)
    assert sum(i.weight for i in why.instances) == pytest.approx(why.numerator)
    weights = [i.weight for i in why.instances]
    assert weights == sorted(weights, reverse=True) or np.allclose(weights, sorted(weights, reverse=True))


@settings(max_examples=50)
@given(hins_with_path(symmetric=True), st.integers(0, 3), st.data())
@pytest.mark.slow
def test_the_paths_are_the_walks_heaviest_first(case: tuple[HIN, MetaPath], limit: int, data: st.DataObject) -> None:
    hin, path = case
    ids = hin.nodes[path.source].ids.to_pylist()
    if not ids:
        return
    x, y = (data.draw(st.integers(0, len(ids) - 1)) for _ in range(2))
    walks = [w for w in Walker(hin, path).walks(x) if w.rows[-1] == y]
    expected = sorted((-float(np.prod(w.weights)), w.rows) for w in walks)[:limit]
    why = explain(hin, path, ids[x], ids[y], limit=limit)
    shown = [(-i.weight, tuple(hin.row(n.node_type, n.id) for n in i.nodes)) for i in why.instances]
    assert shown == expected
    assert why.num_instances == len(walks)
    assert why.num_hidden == len(walks) - len(expected)
    assert sum(i.share for i in why.instances) + why.hidden_share == pytest.approx(why.score)
    assert sum(i.weight for i in why.instances) + why.hidden_weight == pytest.approx(why.numerator)


def test_the_published_example(toy: HIN) -> None:
    why = explain(toy, "APVPA", "Mike", "Jim", limit=1)
    assert (why.numerator, why.query_norm, why.target_norm) == (120, 5, 2900)
    assert why.formula == "2 × 120 / (5 + 2900)"
    assert why.num_instances == 120
    assert why.to_dict()["more"] == {"instances": 119, "weight": 119.0, "share": pytest.approx(2 * 119 / 2905)}
    assert why.instances[0].links == ("-writes->", "-appears_at->", "<-appears_at-", "<-writes-")


def test_formulas_of_the_other_normalisations(toy: HIN) -> None:
    assert explain(toy, "APVPA", "Mike", "Mary", measure="joinsim").formula == "4 / √(5 × 5)"
    count = explain(toy, "APVPA", "Mike", "Mary", measure="pathcount")
    assert count.formula == "4"
    assert count.to_dict()["denominators"] == []


@pytest.mark.parametrize(
    ("measure", "hops", "message"),
    [
        ("pathsim", 200, "more than a float can hold"),
        ("hetesim", 200, "joined by more paths than can be counted"),
        ("hetesim", 400, r"may have the weight 1e-\d+, the product of .* 401 steps, less than a float can hold"),
    ],
)
@pytest.mark.slow
def test_more_paths_than_can_be_counted(toy: HIN, measure: str, hops: int, message: str) -> None:
    metapath = "author-" + "paper-author-" * hops + "paper-author"
    with pytest.raises(NeuPathError, match=message):
        explain(toy, metapath, "Jim", "Jim", measure=measure)


def test_nodes_that_no_path_joins(toy: HIN) -> None:
    why = explain(toy, "APVPA", "Mike", "Ann")
    assert (why.score, why.numerator, why.instances, why.num_instances) == (0, 0, (), 0)


def test_parallel_edges_multiply_the_weight() -> None:
    edges = {"a -r-> b": [(0, 0), (0, 0), (1, 0), (0, 1), (1, 1)]}
    why = explain(graph_of({"a": ["x", "y"], "b": ["m", "n"]}, edges), "a-b-a", "x", "y")
    assert [(i.nodes[1].id, i.weight) for i in why.instances] == [("m", 2.0), ("n", 1.0)]


def test_a_step_over_several_relations_names_those_that_join() -> None:
    hin = graph_of({"a": ["x", "y"], "b": ["m"]}, {"a -r-> b": [(0, 0), (1, 0)], "a -s-> b": [(1, 0)]})
    why = explain(hin, "a-b-a", "x", "y")
    assert why.instances[0].links == ("-r->", "<-r|s-")
    assert why.instances[0].weight == 2


@pytest.mark.slow
def test_millions_of_paths_are_counted_not_listed() -> None:
    n = 2000
    edges = {"a -r-> b": np.argwhere(np.ones((2, n))), "b -s-> c": [(row, 0) for row in range(n)]}
    why = explain(graph_of({"a": ["x", "y"], "b": n, "c": ["hub"]}, edges), "a-b-c-b-a", "x", "y", limit=3)
    assert why.num_instances == n * n
    assert [[node.id for node in i.nodes] for i in why.instances] == [["x", 0, "hub", i, "y"] for i in range(3)]
    assert why.score == 1.0


def test_hits_and_matches_are_named_by_their_ids(toy: HIN) -> None:
    first, match = npth.PathSim("APVPA").fit(toy).top_k("Mike", 1)[0], toy.find("Mike", 1)[0]
    assert npth.explain(toy, "APVPA", match, first) == npth.explain(toy, "APVPA", "Mike", "Bob")
    assert npth.relate(toy, match, first) == npth.relate(toy, "Mike", "Bob")
    assert npth.what_if(toy, "APVPA", match, first, k=1) == npth.what_if(toy, "APVPA", "Mike", "Bob", k=1)
    with pytest.raises(QueryError, match="both nodes are author 'Mike'; give two different nodes"):
        npth.relate(toy, match, "Mike")


@pytest.mark.parametrize(
    ("path", "target", "options", "message"),
    [
        (npth.PathSim("APA"), "Bob", {}, "a meta-path is a text such as 'author-paper-author', got PathSim"),
        ("APVPA", "Jim", {"limit": -1}, "limit is -1; give a whole number of at least 0"),
        ("APVPA", "Jimm", {}, "no author with the id 'Jimm' among 5; did you mean 'Jim'"),
    ],
)
def test_bad_input(toy: HIN, path: Any, target: str, options: dict, message: str) -> None:
    with pytest.raises(NeuPathError, match=message):
        explain(toy, path, "Mike", target, **options)

"""Sets as queries, exclusions and diverse hits: against walks listed one by one, in memory and live."""

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import neupath as npth
from neupath import HIN
from neupath.engine import topk
from neupath.engine.hits import Hit, QuerySet
from neupath.engine.products import Factors
from neupath.engine.scorer import Scorer
from neupath.errors import QueryError
from neupath.evidence.explanation import explain_set
from neupath.graph.metapath import MetaPath, enumerate_metapaths
from neupath.live import LiveGraph
from neupath.measures import PPR, Combination, Part, PathCount, SimRank, measure_named
from tests.graphs import hins_with_path
from tests.live.comparison import rebuilt, set_edges
from tests.walks import Walker, set_score

MEASURES = ("pathsim", "joinsim", "jaccard", "overlap", "tversky", "pathcount", "pcrw", "hetesim")
WEIGHTS = st.sampled_from([1.0, 0.5, 2.0, -1.0, -0.25])
NEAR = 1e-9


@st.composite
def sets_of_nodes(draw: st.DrawFn) -> tuple[HIN, MetaPath, dict[int, float]]:
    """Return a graph, a symmetric meta-path, and rows with weights, at least one of them above 0; or no rows."""
    hin, path = draw(hins_with_path(symmetric=True))
    rows = list(range(hin.num_nodes(path.source)))
    chosen = draw(st.lists(st.sampled_from(rows), unique=True, max_size=4)) if rows else []
    weights = {x: draw(WEIGHTS) for x in chosen}
    if weights and max(weights.values()) < 0:
        weights[chosen[0]] = 1.0
    return hin, path, weights


def ids_of(hin: HIN, path: MetaPath, members: dict[int, float]) -> dict[str, float]:
    return {str(hin.nodes[path.source].id(x)): weight for x, weight in members.items()}


def by_walks(hin: HIN, path: MetaPath, measure: str, members: dict[int, float]) -> dict[str, float]:
    """Return the scores above 0 of all targets but the members."""
    walker, nodes = Walker(hin, path), hin.nodes[path.target]
    scores = {y: set_score(walker, measure, members, y) for y in range(len(nodes)) if y not in members}
    return {str(nodes.id(y)): score for y, score in scores.items() if score > NEAR}


def assert_hits(scorer: Scorer, members: dict[str, float], expected: dict[str, float]) -> None:
    """Compare hits with scores; where members cancel each other, rounding may leave a score that is all but 0."""
    hits = scorer.top_k(members, k=20)
    found = {hit.id: hit.score for hit in hits if hit.score > NEAR}
    assert found.keys() == expected.keys()
    assert all(found[y] == pytest.approx(expected[y], rel=1e-9, abs=1e-12) for y in expected)
    pairs = [(-hit.score, hin_row(scorer, hit.id)) for hit in hits]
    assert pairs == sorted(pairs)
    assert hits.query == QuerySet(tuple(members), tuple(members.values()))


def hin_row(scorer: Scorer, node: object) -> int:
    return scorer.hin_.row(scorer.target_type, node)  # type: ignore[arg-type]


# ---- Sets ----------------------------------------------------------------------------------------
@pytest.mark.parametrize("measure", MEASURES)
@settings(max_examples=12)
@given(case=sets_of_nodes())
def test_a_set_scores_as_the_sum_of_its_walks(measure: str, case: tuple[HIN, MetaPath, dict[int, float]]) -> None:
    hin, path, members = case
    if members:
        scorer = measure_named(measure, path).fit(hin)
        assert_hits(scorer, ids_of(hin, path, members), by_walks(hin, path, measure, members))


@settings(max_examples=10)
@given(case=sets_of_nodes(), data=st.data())
def test_live_after_updates(case: tuple[HIN, MetaPath, dict[int, float]], data: st.DataObject) -> None:
    hin, path, members = case
    measure = data.draw(st.sampled_from(["pathsim", "pcrw", "jaccard", "hetesim"]))
    live = LiveGraph(hin)
    live.attach(measure_named(measure, path))
    relations = [r for r in hin.schema.relations if hin.num_nodes(r.source) and hin.num_nodes(r.target)]
    for _ in range(data.draw(st.integers(0, 3)) if relations else 0):
        relation = data.draw(st.sampled_from(relations))
        row, column = (data.draw(st.integers(0, hin.num_nodes(t) - 1)) for t in (relation.source, relation.target))
        set_edges(live, [(relation, row, column, data.draw(st.sampled_from([0.0, 1.0, 2.0])))])
    view = live.view()
    if members:
        scratch = rebuilt(view.hin)
        assert_hits(
            view.scorer(measure_named(measure, path)), ids_of(hin, path, members),
            by_walks(scratch, path, measure, members),
        )  # fmt: skip


@pytest.mark.parametrize("measure", MEASURES)
def test_a_set_of_one_scores_as_its_node_to_the_bit(measure: str, toy: HIN) -> None:
    scorer = measure_named(measure, "APVPA").fit(toy)
    for ways in range(2):
        alone, of_set = scorer.top_k("Mike", k=4), scorer.top_k(["Mike"], k=4, together=True)
        assert (alone.ids, alone.scores) == (of_set.ids, of_set.scores)
        if not ways:
            topk.load_kernels()


def test_the_mean_of_equals_scores_like_one_of_them(toy: HIN) -> None:
    scorer = npth.PathSim("APVPA").fit(toy)
    assert scorer.score("Mike", "Bob") == 1
    both = scorer.top_k(["Mike", "Bob"], together=True)
    assert dict(zip(both.ids, both.scores, strict=True)) == pytest.approx(
        {hit.id: hit.score for hit in scorer.top_k("Mike") if hit.id != "Bob"}
    )


def test_many_members_and_candidates_by_kernel_and_by_scipy() -> None:
    from tests.engine.matrices import matrix

    factors = topk_factors(matrix("counts", 3, rows=200))
    members, weights = np.arange(0, 60, 3), np.full(20, 0.05)
    allowed = np.arange(200) % 2 == 0
    for candidates in (None, allowed):
        fast = topk.top_k_of_set(factors, 1, members, weights, members, 9, candidates)
        scores = topk.score_set(factors, 1, members, weights)
        slow = topk.best_of(scores, members, 9, candidates)
        assert fast[0].tolist() == slow[0].tolist()
        assert fast[1].tolist() == slow[1].tolist()
        assert not set(fast[0].tolist()) & set(members.tolist())


def topk_factors(left: object) -> Factors:
    from neupath.engine.products import symmetric_factors

    topk.load_kernels()
    return symmetric_factors(left)  # type: ignore[arg-type]


def test_sums_of_measures_and_walks_with_restarts_take_sets(toy: HIN) -> None:
    members = {"Mike": 1.0, "Mary": 0.5}
    parts = [Part("pathsim", "APVPA", 2.0), Part("pathcount", "APVPA", 0.1)]
    combined = Combination(parts).fit(toy).top_k(members)
    each = [measure_named(part.measure, "APVPA").fit(toy).top_k(members) for part in parts]
    expected: dict[object, float] = {}
    for part, hits in zip(parts, each, strict=True):
        for hit in hits:
            expected[hit.id] = expected.get(hit.id, 0.0) + part.weight * hit.score
    assert {hit.id: hit.score for hit in combined} == pytest.approx(expected)
    ppr = PPR("author").fit(toy)
    own = {hit.id: hit.score for hit in ppr.top_k(["Mike", "Mary"], together=True, include_query=True)}
    for target, score in own.items():
        assert score == pytest.approx((ppr.score("Mike", target) + ppr.score("Mary", target)) / 2)


def test_zeros_fill_up_with_scores_of_0_only(toy: HIN) -> None:
    hits = npth.PathSim("APVPA").fit(toy).top_k({"Mike": 1, "Jim": -0.05}, k=5, zeros=True)
    assert (hits.ids, hits.scores) == (("Ann",), (0.0,))  # Mary and Bob score below 0
    assert hits.shortfall == "1 of 3 author nodes score 0 or more; the others score less"


def test_zeros_of_a_sum_with_negative_weights(toy: HIN) -> None:
    combined = Combination([Part("pathsim", "APVPA", 1.0), Part("pathcount", "APVPA", -0.1)]).fit(toy)
    scores = dict(zip(toy.nodes["author"].ids.to_pylist(), combined.scores("Mike").tolist(), strict=True))
    hits = combined.top_k("Mike", k=5, zeros=True)
    assert {hit.id: hit.score for hit in hits} == {y: s for y, s in scores.items() if s >= 0 and y != "Mike"}
    assert hits.shortfall is not None
    assert hits.shortfall.endswith("score 0 or more; the others score less")
    assert "have score 0 or less" in str(combined.top_k("Mike", k=5).shortfall)
    assert combined.top_k("Mike", k=5, zeros=True, unless="APVPA").ids == ("Ann",)


def test_the_json_of_a_set_names_its_members(toy: HIN) -> None:
    hits = npth.PathSim("APVPA").fit(toy).top_k({"Mike": 2, "Mary": 1}, k=1)
    assert json.loads(hits.to_json()) == hits.to_dict()
    assert hits.to_dict()["query"] == [{"id": "Mike", "weight": 2.0}, {"id": "Mary", "weight": 1.0}]


# ---- Explanations --------------------------------------------------------------------------------
@pytest.mark.parametrize("measure", ["pathsim", "overlap", "pcrw", "hetesim"])
@settings(max_examples=10)
@given(case=sets_of_nodes())
def test_members_and_nodes_between_add_up_to_the_score(
    measure: str, case: tuple[HIN, MetaPath, dict[int, float]]
) -> None:
    hin, path, members = case
    if not members:
        return
    named = ids_of(hin, path, members)
    hits = measure_named(measure, path).fit(hin).top_k(named, k=20)
    for hit in hits:
        why = explain_set(hin, path, named, hit.id, measure=measure, limit=50)
        assert why.score == pytest.approx(hit.score, abs=1e-12)
        assert why.rank == hit.rank
        if abs(why.numerator) > NEAR:
            assert sum(member.score for member in why.members) == pytest.approx(why.score, abs=1e-12)
            assert sum(group.score or 0.0 for group in why.groups) == pytest.approx(why.score, abs=1e-12)
            for member in why.members:
                assert sum(group.score or 0.0 for group in member.groups) == pytest.approx(member.score, abs=1e-12)
                walks = Walker(hin, path)
                if measure == "pathsim":
                    row = hin.row(path.source, member.node.id), hin.row(path.target, hit.id)
                    assert member.numerator == pytest.approx(walks.count(*row))


# ---- Exclusions, candidates and diversity --------------------------------------------------------
@settings(max_examples=15)
@given(case=hins_with_path(symmetric=True), data=st.data())
def test_unless_leaves_out_what_the_other_paths_reach(case: tuple[HIN, MetaPath], data: st.DataObject) -> None:
    hin, path = case
    others = [p for p in enumerate_metapaths(hin.schema, path.source, 3, symmetric=False) if p.target == path.target]
    unless = data.draw(st.lists(st.sampled_from(others), max_size=2, unique_by=str)) if others else []
    scorer = npth.PathSim(path).fit(hin)
    queries = [str(node) for node in hin.nodes[path.source].ids.to_pylist()]
    plain, filtered = scorer.top_k(queries, k=50), scorer.top_k(queries, k=3, unless=unless)
    for x, (every, hits) in enumerate(zip(plain, filtered, strict=True)):
        reached = {walk.rows[-1] for p in unless for walk in Walker(hin, p).walks(x)}
        kept = [hit for hit in every if hin.row(path.target, hit.id) not in reached]
        assert [(hit.id, hit.score) for hit in kept[:3]] == list(zip(hits.ids, hits.scores, strict=True))
        assert hits == scorer.top_k(queries[x], k=3, unless=unless)
        if unless and len(hits) < 3 and hits.shortfall:
            left = len(reached - {x})
            assert (f"{left} are left out, related by" in hits.shortfall) == bool(left)


def test_no_unless_is_none(toy: HIN) -> None:
    scorer = npth.PathSim("APVPA").fit(toy)
    assert scorer.top_k("Mike", unless=None) == scorer.top_k("Mike")  # type: ignore[arg-type]


def test_a_query_that_excludes_many_has_candidates_of_its_own(monkeypatch: pytest.MonkeyPatch, toy: HIN) -> None:
    scorer = npth.PathSim("APVPA").fit(toy)
    few = scorer.top_k(["Mike", "Jim"], unless="APVPA")
    monkeypatch.setattr("neupath.engine.scorer._FEW_EXCLUDED", 2)
    assert scorer.top_k(["Mike", "Jim"], unless="APVPA") == few


@settings(max_examples=10)
@given(case=hins_with_path(symmetric=True), share=st.sampled_from([0.3, 0.7, 1.0]))
def test_diverse_hits_are_those_of_the_definition(case: tuple[HIN, MetaPath], share: float) -> None:
    hin, path = case
    scorer = npth.PathSim(path).fit(hin)
    for query in hin.nodes[path.source].ids.to_pylist():
        pool = list(scorer.top_k(query, k=100))
        chosen: list[Hit] = []
        while len(chosen) < 3 and len(chosen) < len(pool):
            left = [hit for hit in pool if hit not in chosen]
            values = [
                share * hit.score - (1 - share) * max((scorer.score(z.id, hit.id) for z in chosen), default=0.0)
                for hit in left
            ]
            chosen.append(left[values.index(max(values))])
        hits = scorer.top_k(query, k=3, diverse=share)
        assert hits.ids == tuple(hit.id for hit in chosen)
        if share == 1:
            assert hits == scorer.top_k(query, k=3)


def test_filters_of_a_join_are_those_of_a_search(toy: HIN, tmp_path: Path) -> None:
    scorer = npth.PathSim("APVPA").fit(toy)
    filters = {"among": ["Bob", "Jim", "Ann"], "where": "id != Ann", "unless": ["APA"]}
    joined = npth.join(toy, scorer, tmp_path / "top.parquet", k=2, where_query="id ~ m", **filters)
    rows = pq.read_table(joined.path).to_pylist()
    asked = ["Mike", "Jim", "Mary"]
    expected = [(q, hit.rank, hit.id, hit.score) for q in asked for hit in scorer.top_k(q, k=2, **filters)]
    assert [tuple(row[name] for name in ("query", "rank", "target", "score")) for row in rows] == expected
    assert joined.queries == 3
    above = npth.join(toy, scorer, tmp_path / "above.parquet", k=None, min_score=0.5, unless="APVPA").to_table()
    assert above.num_rows == 0
    every = npth.join(toy, scorer, tmp_path / "all.parquet", k=None, min_score=0.5, among=["Bob"]).to_table()
    assert every["target"].to_pylist() == ["Bob", "Bob"]


# ---- Bad input -----------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("query", "options", "message"),
    [
        ([], {"together": True}, "‹query› is an empty set; name at least one node"),
        ({}, {}, "‹query› is an empty set; name at least one node"),
        (["Mike", "Mike"], {"together": True}, "‹query› names 'Mike' twice; name it once, with its whole weight"),
        ({"Mike": 0}, {}, "the weight of 'Mike' is 0; give a number between 1e-9 and 1e9, with a minus to count"),
        ({"Mike": float("nan")}, {}, "the weight of 'Mike' is nan; give a number between 1e-9 and 1e9"),
        ({"Mike": float("inf")}, {}, "the weight of 'Mike' is inf; give a number"),
        ({"Mike": 1e300}, {}, "the weight of 'Mike' is 1e+300; give a number"),
        ({"Mike": "2"}, {}, "the weight of 'Mike' is '2'; give a number"),
        ({"Mike": True}, {}, "the weight of 'Mike' is True; give a number"),
        ({"Mike": None}, {}, "the weight of 'Mike' is None; give a number"),
        ({"Mike": -1, "Jim": -2}, {}, "all weights of ‹query› are below 0, so that nothing can score above 0"),
        ({"Mike": 1, "nobody": 1}, {}, "no author with the id 'nobody'"),
        ({"Mike": 1}, {"k": 0}, "‹k› is 0; give a whole number of at least 1"),
        ("Mike", {"unless": "author-paper"}, "‹unless› is author-paper, which leads from author to paper; this search "
         "leads from author to author, so give a meta-path that does as well"),
        ("Mike", {"unless": "author-movie"}, "movie"),
        ("Mike", {"unless": 3}, "‹unless› is 3; give a meta-path, or a list of them"),
        ("Mike", {"diverse": 0}, "‹diverse› is 0; give a number above 0"),
        ("Mike", {"diverse": 1.5}, "‹diverse› is 1.5; give a number above 0"),
        ("Mike", {"diverse": True}, "‹diverse› is True; give a number above 0"),
        ("Mike", {"diverse": 0.5, "zeros": True}, "‹diverse› chooses among related targets, and ‹zeros› adds others"),
        ({"Mike": 1}, {"among": ["nobody"]}, "no author with the id 'nobody'"),
        ({"Mike": 1}, {"where": "age > 3"}, "author has no attribute 'age'"),
    ],
)  # fmt: skip
def test_bad_sets_and_filters_are_refused(query: object, options: dict[str, object], message: str, toy: HIN) -> None:
    with pytest.raises(npth.NeuPathError) as error:
        npth.PathSim("APVPA").fit(toy).top_k(query, **options)  # type: ignore[call-overload]
    assert message in str(error.value.args[0])


def test_where_a_set_or_diversity_means_nothing(toy: HIN) -> None:
    with pytest.raises(QueryError, match="simrank compares nodes one by one, and has no rows to add up for a set"):
        SimRank("author").fit(toy).top_k({"Mike": 1, "Jim": 1})
    simrank = SimRank("author").fit(toy)
    assert simrank.top_k({"Mike": 1}).scores == simrank.top_k("Mike").scores  # a node is a set of one
    with pytest.raises(QueryError, match="compares hits with each other, but pathcount here compares author with"):
        PathCount("author-paper-venue").fit(toy).top_k("Mike", diverse=0.5)
    hits = npth.PathSim("APVPA").fit(toy).top_k({"Mike": 1})
    with pytest.raises(QueryError, match="these are the hits of a set of nodes"):
        npth.stability(npth.PathSim("APVPA").fit(toy), hits)

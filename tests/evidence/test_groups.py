"""Groups equal those of enumerated walks, for every measure, step and length; the step to group by; sentences."""

from collections import defaultdict
from math import prod

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neupath import HIN, MetaPath, explain
from neupath.errors import QueryError
from neupath.evidence.explanation import explain_set
from neupath.evidence.groups import PathGroup, PathNode, describe_groups, percent, position_to_group_by
from neupath.evidence.model_explanation import explain_combination
from neupath.measures import DWPC, MEASURES, Combination, Part
from tests.graphs import graph_of, hins, hins_with_path
from tests.walks import Walk, Walker


def path_weight(walker: Walker, walk: Walk, measure: str) -> float:
    """Return what a walk adds to the numerator of a measure, by the formula of its paper."""
    weights, length = list(walk.weights), len(walk.weights)
    for step, (u, v) in enumerate(zip(walk.rows, walk.rows[1:], strict=False)):
        if measure == "pcrw":
            weights[step] /= walker.out(step, u)
        elif measure.startswith("dwpc"):
            weights[step] *= (walker.out(step, u) * walker.into(step, v)) ** -0.4
        elif measure == "hetesim":
            weights[step] /= walker.out(step, u) if step < (length + 1) // 2 else 1.0
            weights[step] /= walker.into(step, v) if step >= length // 2 else 1.0
    return prod(weights)


CASES = st.one_of(hins_with_path(symmetric=True), hins_with_path(symmetric=False))


@settings(max_examples=60)
@given(CASES, st.sampled_from(sorted(MEASURES)), st.data())
@pytest.mark.slow
def test_groups_are_those_of_all_walks(case: tuple[HIN, MetaPath], measure: str, data: st.DataObject) -> None:
    hin, path = case
    sizes = hin.num_nodes(path.source), hin.num_nodes(path.target)
    if not all(sizes) or (MEASURES[measure].symmetric_only and not path.is_round_trip):
        return
    x, y = (data.draw(st.integers(0, size - 1)) for size in sizes)
    step = data.draw(st.integers(0, len(path)))
    ids = hin.nodes[path.source].id(x), hin.nodes[path.target].id(y)
    why = explain(hin, path, *ids, measure=measure, by=step, limit=100_000, paths=2, k=None)

    walker = Walker(hin, path)
    own: dict[int, list[float]] = defaultdict(list)
    for walk in walker.walks(x):
        nodes = list(zip(path.node_types, walk.rows, strict=True))
        if walk.rows[-1] == y and (MEASURES[measure].counts_walks or len(set(nodes)) == len(nodes)):
            own[walk.rows[step]].append(path_weight(walker, walk, measure))
    total = sum(map(sum, own.values()))
    assert why.num_groups == len(own)
    assert sum(group.share for group in why.groups) == pytest.approx(1.0 if own else 0.0, rel=1e-12)
    assert sum(group.score for group in why.groups) == pytest.approx(why.score, rel=1e-12)
    for group in why.groups:
        row = hin.row(path.node_types[step], group.node.id)
        assert group.paths == len(own[row])
        assert group.share == pytest.approx(sum(own[row]) / total, rel=1e-12)
        assert group.score == pytest.approx(sum(own[row]) / total * why.score, rel=1e-12)
        assert [i.weight for i in group.instances] == pytest.approx(sorted(own[row], reverse=True)[:2])
        assert all(i.nodes[step] == group.node for i in group.instances)
    order = [(-round(group.share, 12), hin.row(group.node.node_type, group.node.id)) for group in why.groups]
    assert order == sorted(order)


@given(hins(), st.data())
@settings(max_examples=25)
@pytest.mark.slow
def test_groups_of_a_combination_sum_to_its_score(hin: HIN, data: st.DataObject) -> None:
    if not hin.num_nodes("a"):
        return
    metapaths = {"pathsim": "a-b-a", "hetesim": "a -cites-> a <-cites- a", "dwpc": "a-b-c-b-a"}
    parts = [
        Part(measure, text, weight) for (measure, text), weight in zip(metapaths.items(), (0.5, 2, 1), strict=True)
    ]
    x, y = (data.draw(st.sampled_from(hin.nodes["a"].ids.to_pylist())) for _ in range(2))
    combination = Combination(parts).fit(hin)
    why = explain_combination(combination, x, y, limit=1000, by="b")
    assert why.score == pytest.approx(combination.score(x, y), rel=1e-12)
    groups = [group for part in why.to_dict()["parts"] for group in part["groups"]]
    assert sum(group["score"] for group in groups) == pytest.approx(why.score, rel=1e-12)
    assert sum(group["share"] for group in groups) == pytest.approx(1.0 if why.score else 0.0, rel=1e-12)
    assert [part.explanation.step for part in why.parts if part.explanation.metapath == "a-b-c-b-a"] == [1]


def test_hidden_groups_are_counted_and_summed(toy: HIN) -> None:
    why = explain(toy, "APVPA", "Mike", "Jim", limit=1)
    assert [(group.node.id, group.paths) for group in why.groups] == [("SIGMOD", 100)]
    rest = {"groups": 1, "paths": 20, "score": pytest.approx(2 * 20 / 2905), "share": pytest.approx(1 / 6)}
    assert why.more_groups == rest
    assert explain(toy, "APVPA", "Mike", "Jim").more_groups == {"groups": 0, "paths": 0, "score": 0.0, "share": 0.0}


def test_paths_below_a_group_run_through_its_node(toy: HIN) -> None:
    why = explain(toy, "APVPA", "Mike", "Jim", by="paper", limit=3, paths=2)
    assert why.to_dict()["by"] == {"node_type": "paper", "step": 1}
    for group in why.groups:
        assert len(group.instances) == 2
        assert {instance.nodes[1] for instance in group.instances} == {group.node}
    assert explain(toy, "APVPA", "Mike", "Jim", paths=0).groups[0].instances == ()


def test_the_step_that_a_type_means(toy: HIN) -> None:
    def positions(text: str, *by: str | int | None) -> list[int]:
        return [position_to_group_by(toy.metapath(text), each) for each in by]

    assert positions("APVPA", None, "VENUE", "paper", "author", 3, "3") == [2, 2, 1, 0, 3, 3]
    assert positions("author-paper-venue", None) == [1]
    assert positions("author-paper-venue-paper", None, "paper") == [1, 1]
    assert positions("author-paper", None) == [1]
    message = "but the nodes on author-paper-author are of type author, paper; .*or a number of steps .*, 0 to 2"
    for by in ("tag", 3):
        with pytest.raises(QueryError, match=f"by is {by!r}, {message}"):
            explain(toy, "APA", "Mike", "Jim", by=by)


def hub_graph(weights: list[int]) -> HIN:
    """Two nodes that are joined through as many others as there are weights."""
    edges = [(end, club, weight) for end in (0, 1) for club, weight in enumerate(weights)]
    return graph_of(
        {"person": ["x", "y"], "club": [f"c{i}" for i in range(len(weights))]}, {"person -in-> club": edges}
    )


@pytest.mark.parametrize(
    ("weights", "sentence"),
    [
        ([1], "Both connect through c0 alone."),
        ([3, 1], "Both connect through c0 (90 %) and c1 (10 %)."),
        ([1, 1, 1], "Both connect through c0 (33 %), c1 (33 %) and c2 (33 %)."),
        ([9, 1, 1, 1], "Both connect mostly through c0 (96 %), of 4 nodes of type club in all."),
        ([2, 2, 1, 1], "Both connect mostly through c0 (40 %) and c1 (40 %), of 4 nodes of type club in all."),
        ([1] * 50, "Both connect through 50 nodes of type club, each with 2.0 %."),
        ([2, *[1] * 50], "Both connect through 51 nodes of type club, the heaviest of which is c0 (7.4 %)."),
    ],
)
def test_the_sentence(weights: list[int], sentence: str) -> None:
    why = explain(hub_graph(weights), "person-club-person", "x", "y", limit=1)
    assert why.summary == sentence
    assert why.to_dict()["summary"] == sentence


def test_the_sentence_where_groups_are_at_an_end_and_where_no_path_joins(toy: HIN) -> None:
    why = explain(toy, "author-paper", "Jim", "Jim-SIGMOD-1", measure="pcrw")
    assert why.summary == "1 path joins Jim and Jim-SIGMOD-1."
    assert explain(toy, "APVPA", "Mike", "Jim", by="author").summary == "120 paths join Mike and Jim."
    assert explain(toy, "APA", "Mike", "Ann").summary == "No author-paper-author path joins Mike and Ann."


def test_long_names_are_cut_in_sentences() -> None:
    group = PathGroup(PathNode("club", 1, "n" * 500 + "end"), 1, 1.0, 1.0)
    assert describe_groups([group], 1) == f"Both connect through {'n' * 39}…{'n' * 17}end alone."


def test_percentages() -> None:
    shares = (0.0, 1e-9, 0.0004, 0.0005, 0.0994, 0.0996, 0.994, 0.9951, 1.0)
    assert [percent(share) for share in shares] == [
        "0.0 %", "under 0.1 %", "under 0.1 %", "0.1 %", "9.9 %", "10 %", "99 %", "over 99 %", "100 %",
    ]  # fmt: skip


def test_what_the_denominator_costs(toy: HIN) -> None:
    assert explain(toy, "APVPA", "Mike", "Jim").cost == "Mike has 5 paths to itself, Jim has 2,900."
    assert explain(toy, "APVPA", "Mike", "Jim", measure="pathcount").cost is None
    assert explain(toy, "APVPA", "Mike", "Jim", measure="hetesim").cost == (
        "The paths of Mike to itself weigh 0.5556, those of Jim 0.5918."
    )


def test_a_measure_with_damping(toy: HIN) -> None:
    measure = DWPC("APVPA", damping=0.9)
    why = explain(toy, "APVPA", "Mike", "Jim", measure=measure)
    assert sum(group.score for group in why.groups) == pytest.approx(measure.fit(toy).score("Mike", "Jim"), rel=1e-12)


def test_of_equal_shares_the_rarest_node_comes_first() -> None:
    """Three genes are shared; the last has the fewest edges, the first the most."""
    pairs = [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (2, 0), (3, 0), (4, 1)]
    hin = graph_of({"disease": list("abcde"), "gene": ["often", "some", "rare"]}, {"disease -has-> gene": pairs})
    assert hin.degrees("gene").tolist() == [4, 3, 2]
    for limit in (1, 3):
        why = explain(hin, "disease-gene-disease", "a", "b", limit=limit)
        assert [group.node.id for group in why.groups] == ["rare", "some", "often"][:limit]
    together = explain_set(hin, "disease-gene-disease", ["a", "c"], "b", limit=3)
    assert [group.node.id for group in together.groups] == ["often", "rare", "some"]

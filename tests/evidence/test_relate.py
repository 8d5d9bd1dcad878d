"""relate gives what one gets by asking each meta-path, best first, within its budget; why_not names what is missing."""

import sys
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array, random_array

from neupath import HIN, explain, relate
from neupath._runtime.progress import Cancellation, WorkCancelled, cancelled_by
from neupath.errors import GraphError, NeuPathError, QueryError
from neupath.evidence.relate import chain_norms
from neupath.graph.metapath import enumerate_metapaths
from neupath.measures import DWPC, MEASURES, walk_measures
from tests.graphs import graph_of, hins, shop_graph

relate_module = sys.modules["neupath.evidence.relate"]


@given(hins(), st.sampled_from([None, *sorted(walk_measures())]), st.integers(1, 3), st.data())
@settings(max_examples=30)
@pytest.mark.slow
def test_it_is_what_each_meta_path_says(hin: HIN, measure: str | None, max_steps: int, data: st.DataObject) -> None:
    types = [node_type for node_type in "abc" if hin.num_nodes(node_type)]
    if not types:
        return
    ends = [data.draw(st.sampled_from(types)) for _ in range(2)]
    x, y = (data.draw(st.sampled_from(hin.nodes[node_type].ids.to_pylist())) for node_type in ends)
    if x == y:
        return
    check_against_each_meta_path(hin, (x, y), (ends[0], ends[1]), measure, max_steps)


@pytest.mark.parametrize("measure", [None, "hetesim", "dwpc"])
@pytest.mark.parametrize(("target", "max_steps"), [("u1", 6), ("t3", 4), (7, 5)])
def test_it_is_what_each_long_meta_path_says(measure: str | None, target: Any, max_steps: int) -> None:
    target_type = {"u1": "user", "t3": "tag", 7: "item"}[target]
    check_against_each_meta_path(shop_graph(), ("u0", target), ("user", target_type), measure, max_steps)


def check_against_each_meta_path(
    hin: HIN, pair: tuple[Any, Any], ends: tuple[str, str], measure: str | None, max_steps: int
) -> None:
    x, y = pair
    related = relate(hin, x, y, measure=measure, max_steps=max_steps, limit=1_000_000, budget=None)
    asked, candidates = {}, 0
    for path in enumerate_metapaths(hin.schema, ends[0], max_steps, symmetric=False):
        used = measure or ("pathsim" if path.is_round_trip else "hetesim")
        if path.target != ends[1] or (MEASURES[used].symmetric_only and not path.is_round_trip):
            continue
        candidates += 1
        why = explain(hin, path, x, y, measure=used, limit=1, k=None)
        if why.num_instances:
            asked[str(path), used] = why
    assert related.candidates == candidates
    assert related.joining == len(related.metapaths) == len(asked)
    for path in related.metapaths:
        why = asked.pop((path.metapath, path.measure))
        assert path.score == pytest.approx(why.score, rel=1e-12)
        assert (path.paths, path.targets) == (why.num_instances, why.num_targets)
        scores = MEASURES[path.measure](path.metapath).fit(hin).scores(x)
        rows = [row for row in np.flatnonzero(scores) if (ends[0], row) != (ends[1], hin.row(ends[0], x))]
        own = scores[hin.row(ends[1], y)]
        higher = sum(scores[row] > own * (1 + 1e-9) for row in rows)
        tied = sum(scores[row] > own * (1 - 1e-9) for row in rows)
        assert higher < path.rank <= tied
        assert path.percentile == pytest.approx(100 * (len(rows) - path.rank + 1) / len(rows))
        assert path.group.share == pytest.approx(why.groups[0].share, rel=1e-12)
        assert path.group.score == pytest.approx(why.groups[0].score, rel=1e-12)
    assert not asked
    order = [(len(hin.metapath(path.metapath)), path.rank) for path in related.metapaths]
    assert order == sorted(order)


@given(st.integers(0, 2**32 - 1), st.integers(0, 3), st.booleans())
@settings(max_examples=40)
def test_norms_of_a_chain(seed: int, length: int, weighted: bool) -> None:
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 40, length + 1)
    shapes = list(pairwise(sizes.tolist()))
    chain = [csr_array(random_array(shape, density=0.3, rng=rng)) for shape in shapes]
    weights = rng.random(sizes[-1]) if weighted or not chain else None
    product = np.eye(sizes[0])
    for matrix in chain:
        product = product @ matrix.toarray()
    expected = (product**2) @ (np.ones(sizes[-1]) if weights is None else weights)
    assert np.allclose(chain_norms(chain, weights), expected, rtol=1e-12)


def test_one_measure_along_all_meta_paths_that_it_is_defined_on(toy: HIN) -> None:
    related = relate(toy, "Mike", "Jim", measure=DWPC("APA", damping=0.5), max_steps=4)
    assert {path.measure for path in related.metapaths} == {"dwpc"}
    score = DWPC("APVPA", damping=0.5).fit(toy).score("Mike", "Jim")
    assert related.metapaths[0].score == pytest.approx(score, rel=1e-12)
    assert relate(toy, "Mike", "SIGMOD", measure="pathsim").candidates == 0


def test_nodes_of_different_types(toy: HIN) -> None:
    related = relate(toy, "Mike", "SIGMOD", max_steps=2)
    assert [(path.metapath, path.measure, path.paths) for path in related.metapaths] == [
        ("author-paper-venue", "hetesim", 2)
    ]
    assert related.metapaths[0].group.node.id == "Mike-SIGMOD-1"
    assert (related.joining, related.candidates, related.left_out) == (1, 1, None)


def test_a_direct_edge_comes_before_longer_paths_along_which_the_target_ranks_higher() -> None:
    kinds = {"disease": ["asthma", "flu"], "symptom": ["cough"], "compound": ["aspirin", "zinc"]}
    treats, shows = [(0, 0), (0, 1), (1, 0), (1, 1)], [(0, 0), (1, 0)]
    edges = {"compound -treats-> disease": treats, "disease -shows-> symptom": shows}
    hin = graph_of(kinds, edges | {"compound -eases-> symptom": [(1, 0)]})
    related = relate(hin, "asthma", "zinc", max_steps=3)
    ranks = {path.metapath: path.rank for path in related.metapaths}
    assert (ranks["disease-compound"], ranks["disease-symptom-compound"]) == (2, 1)
    assert list(ranks)[:2] == ["disease-compound", "disease-symptom-compound"]
    assert related.summary.startswith("An edge joins asthma and zinc directly: disease-compound, one of ")
    lengths = [len(hin.metapath(metapath)) for metapath in ranks]
    assert lengths == sorted(lengths)


def test_why_not_names_the_meta_paths_along_which_the_target_ranks_highest() -> None:
    """Whatever the order in which `relate` lists them."""
    rng = np.random.default_rng(3)
    types = {kind: [f"{kind}{place}" for place in range(12)] for kind in "abcdefg"}
    hin = graph_of(types, {f"a -r{kind}-> {kind}": np.argwhere(rng.random((12, 12)) < 0.3) for kind in "bcdefg"})
    compared = 0
    for target in (f"a{place}" for place in range(1, 12)):
        reason = explain(hin, "a-b-a", "a0", target, k=4).why_not
        every = relate(hin, "a0", target, measure="pathsim", limit=1000)
        best = sorted(path.rank for path in every.metapaths if path.rank <= 4 and path.metapath != "a-b-a")
        if reason is not None and len(best) > 3:
            assert [path.rank for path in reason.metapaths] == best[:3]
            compared += 1
    assert compared


def test_nothing_joins_them(toy: HIN) -> None:
    related = relate(toy, "Mike", "Ann", max_steps=2)
    assert related.metapaths == ()
    assert related.summary == (
        "No meta-path of up to 2 steps, each over one relation, gives Mike and Ann a score above 0."
    )


def test_what_is_left_out_is_said() -> None:
    hin = shop_graph()
    every = relate(hin, "u0", "u1", max_steps=6, budget=None)
    few = relate(hin, "u0", "u1", max_steps=6, limit=1)
    assert every.left_out is None
    assert few.metapaths == every.metapaths[:1]
    assert (
        few.left_out
        == f"Not listed: {every.joining - 1} meta-paths that are longer or along which User 1 ranks no higher."
    )
    assert relate(hin, "u0", "u1", max_steps=2, limit=0).summary == "1 meta-path joins User 0 and User 1."


def test_a_budget_ranks_short_meta_paths_with_high_scores_first() -> None:
    rng = np.random.default_rng(0)
    ends = np.c_[rng.integers(0, 150, 9000), rng.integers(0, 150, 9000)]
    hin = graph_of({"a": 150, "b": 150}, {"a -r-> b": ends})
    ask = partial(relate, hin, 0, 1, query_type="a", target_type="a", max_steps=6)
    every = ask(budget=None)
    by_length = sorted(every.metapaths, key=lambda path: path.metapath.count("-"))
    assert [path.metapath.count("-") for path in by_length] == [2, 4, 6]
    for budget, ranked in ((1_000_000, 2), (1_000_000_000, 3)):
        related = ask(budget=budget)
        assert related.complete
        assert (related.joining, related.unranked) == (3, 3 - ranked)
        assert set(related.metapaths) == set(by_length[:ranked])
        assert ("that the budget was not enough to rank" in str(related.left_out)) == (ranked < 3)
    some = ask(budget=500_000)  # not enough for all half-paths, and yet both ends were walked
    assert not some.complete
    assert [path.metapath for path in some.metapaths] == ["a-b-a"]
    nothing = relate(hin, 0, 1, query_type="a", target_type="a", budget=1)
    assert not nothing.complete
    assert nothing.left_out == "Not listed: meta-paths that were not looked at."
    assert nothing.summary == "No meta-path that was looked at joins 0 and 1."


def complete_relations(number: int) -> HIN:
    """Make a graph of 6 nodes with several relations, each between all of them."""
    every = np.argwhere(np.ones((6, 6)))
    return graph_of({"x": [f"x{i}" for i in range(6)]}, {f"x -r{i}-> x": every for i in range(number)})


def test_many_half_paths_stay_within_the_budget_and_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    hin, sizes, argwhere = complete_relations(40), [0], np.argwhere
    monkeypatch.setattr(np, "argwhere", lambda array: sizes.append(array.size) or argwhere(array))
    related = relate(hin, "x0", "x1", limit=1, budget=50_000_000)
    assert 10_000 < max(sizes) < 50_000  # not the square of the 500 half-paths from each end
    assert not related.complete
    assert f", one of at least {related.joining:,} meta-paths that join them." in related.summary
    assert str(related.left_out).endswith(" and meta-paths that were not looked at.")
    none_listed = relate(hin, "x0", "x1", limit=0, budget=20_000_000)
    assert none_listed.summary == f"At least {none_listed.joining} meta-paths join x0 and x1."


def test_meta_paths_without_a_score_are_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[object] = []
    over = relate_module.over
    monkeypatch.setattr(relate_module, "over", lambda *arguments: tried.append(arguments) or over(*arguments))
    related = relate(complete_relations(6), "x0", "x1", measure="pathsim", limit=1)
    assert related.complete
    assert related.joining == related.candidates == 12 + 12**2
    assert len(tried) <= related.joining + 1


def test_it_can_be_cancelled_while_half_paths_meet(monkeypatch: pytest.MonkeyPatch) -> None:
    cancellation = Cancellation()
    monkeypatch.setattr(relate_module._MetaPathSearch, "_count_candidates", lambda _: cancellation.cancel() or 0)
    with cancelled_by(cancellation), pytest.raises(WorkCancelled):
        relate(complete_relations(2), "x0", "x1", max_steps=1)


@pytest.mark.parametrize(
    ("query", "target", "options", "message"),
    [
        ("Mike", "Mike", {}, "both nodes are author 'Mike'; give two different nodes"),
        ("Nobody", "Mike", {}, "no node type has 'Nobody': no author with"),
        *(("Mike", "Jim", {each: -1}, f"{each} is -1") for each in ("max_steps", "limit", "budget")),
        *(
            ("Mike", "Jim", {each: number}, f"{each} is {number}; give a whole number")
            for each in ("max_steps", "limit", "budget")
            for number in (2.5, float("nan"))
        ),
        ("Mike", "Jim", {"max_steps": 21}, "max_steps is 21; give a whole number from 1 to 20"),
        ("Mike", "Jim", {"measure": "SimRank"}, r"simrank looks at the whole graph.*; relate takes one of pathsim"),
        ("Mike", "Jim", {"measure": "dwpc-no-repeats"}, "dwpc-no-repeats would list the paths along every meta-path, "
         "which takes too long for relate; use dwpc"),
    ],
)  # fmt: skip
def test_bad_input(toy: HIN, query: str, target: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(NeuPathError, match=message):
        relate(toy, query, target, **options)


@pytest.mark.parametrize(
    ("weight", "bound"), [(1e100, "more than a float can hold"), (1e-100, "less than a float can hold")]
)
def test_weights_that_overflow(weight: float, bound: str) -> None:
    edges = [(0, 0, weight), (1, 0, weight), (2, 1, weight)]
    hin = graph_of({"a": ["x", "y", "z"], "b": ["m", "n"]}, {"a -r-> b": edges})
    with pytest.raises(GraphError, match=f"paths along a-b-a-b-a add up to {bound}; allow fewer steps"):
        relate(hin, "x", "y")
    assert relate(hin, "x", "y", max_steps=2).metapaths[0].score == 1.0
    assert reason_of(hin, "a-b-a", "x", "z")[1] == "x reaches 1 node of type b and z reaches 1, but they share none."


def test_ids_that_several_types_have() -> None:
    hin = graph_of({"a": [1, 2], "b": [1, 3]}, {"a -r-> b": [(0, 0), (1, 0)]})
    with pytest.raises(QueryError, match="1 could be of type a or b; say which with query_type"):
        relate(hin, 1, 2)
    assert relate(hin, 1, 2, query_type="a").metapaths[0].metapath == "a-b-a"
    assert relate(hin, 2, 1, target_type="B").metapaths[0].metapath == "a-b"


# ---- Why not -------------------------------------------------------------------------------------
def test_a_target_among_the_best_needs_no_reason(toy: HIN) -> None:
    why = explain(toy, "APVPA", "Mike", "Jim", k=3)
    assert (why.rank, why.num_targets, why.why_not) == (3, 3, None)
    assert explain(toy, "APVPA", "Mike", "Mike").why_not is None
    assert explain(toy, "APVPA", "Mike", "Jim", k=None).why_not is None


def reason_of(hin: HIN, path: str, query: str, target: str, **options: int) -> tuple[str, str, list[tuple[str, int]]]:
    """Return why a target is not among the best: in a word, in a sentence, and the meta-paths that bring it in."""
    reason = explain(hin, path, query, target, **options).why_not
    assert reason is not None
    assert reason.complete
    return reason.reason, reason.sentence, [(path.metapath, path.rank) for path in reason.metapaths]


def test_the_reasons_why_a_target_is_missing(toy: HIN) -> None:
    assert reason_of(toy, "APVPA", "Mike", "Jim", k=2)[:2] == (
        "outweighed", "Jim ranks 3 of 3 targets of Mike: Mike shares 120 paths with it and 4 with Mary at rank 2, "
        "but Jim has 2,900 paths to itself and Mary has 5.",
    )  # fmt: skip
    assert reason_of(toy, "APA", "Mike", "Jim") == (
        "nothing shared", "Mike reaches 3 nodes of type paper and Jim reaches 70, but they share none.",
        [("author-paper-venue-paper-author", 3)],
    )  # fmt: skip
    assert reason_of(shop_graph(), "user-item-user", "u0", "u39") == (
        "no paths", "User 39 has no path along user-item-user to a node of type item.", [],
    )  # fmt: skip
    pairs = [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (2, 0), (2, 1), (3, 0), (4, 0)]
    hin = graph_of({"a": list("xpqyz"), "b": list("uvw")}, {"a -r-> b": pairs})
    assert reason_of(hin, "a-b-a", "x", "y", k=2)[:2] == (
        "fewer paths", "y ranks 3 of 4 targets of x: x shares 1 path with it and 2 with q at rank 2.",
    )  # fmt: skip
    assert reason_of(hin, "a-b-a", "x", "q", k=1)[:2] == (
        "tied", "q ranks 2 of 4 targets of x: it scores as high as p at rank 1, and ties are in node order.",
    )  # fmt: skip


@given(hins(), st.sampled_from(sorted(walk_measures())), st.data())
@settings(max_examples=40)
@pytest.mark.slow
def test_the_rank_is_that_of_a_search(hin: HIN, measure: str, data: st.DataObject) -> None:
    if not hin.num_nodes("a"):
        return
    x, y = (data.draw(st.sampled_from(hin.nodes["a"].ids.to_pylist())) for _ in range(2))
    hits = MEASURES[measure]("a-b-a").fit(hin).top_k(x, 100)
    why = explain(hin, "a-b-a", x, y, measure=measure, k=1)
    assert why.num_targets == len(hits)
    assert why.rank == (hits.ids.index(y) + 1 if y in hits.ids else None)
    assert (why.why_not is None) == (x == y or why.rank == 1)

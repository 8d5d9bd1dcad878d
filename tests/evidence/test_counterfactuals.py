"""Counterfactuals: as small as exhaustive search finds them, and true when the graph is really changed."""

from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from neupath import HIN, load, what_if
from neupath.errors import NodeError, QueryError, SchemaError
from neupath.evidence import counterfactual_kernels, counterfactuals
from neupath.evidence.counterfactual_problem import without_edges
from neupath.evidence.counterfactuals import WhatIf, rank_and_score
from neupath.graph.metapath import Relation
from neupath.measures import PCRW, SimRank, measure_named
from tests.graphs import coauthors, graph_of

PATHS = {
    "pathsim": ("a-b-a", "a-b-c-b-a", "a-b-b-b-a"),
    "joinsim": ("a-b-a", "a-b-c-b-a"),
    "pathcount": ("a-b-a", "a-b-b-a", "a-b-c-b-a"),
    "pcrw": ("a-b-a", "a-b-b-a"),
    "dwpc": ("a-b-a", "a-b-c-b-a"),
    "hetesim": ("a-b-a", "a-b-b-a", "a-b-c-b-a"),
}


@st.composite
def questions(draw: st.DrawFn) -> tuple[HIN, str, str, str, int, int, int]:
    """A small graph, a measure, a meta-path, what to remove, a query, one of its best targets, and k."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    sizes = {"a": rng.integers(3, 6), "b": rng.integers(2, 5), "c": rng.integers(1, 4)}
    is_weighted = draw(st.booleans())
    edges = {}
    for relation, most in {"a -r-> b": 7, "b -t-> c": 3, "b -near- b": 2}.items():
        ends = sizes[relation[0]], sizes[relation[-1]]
        places = rng.choice(ends[0] * ends[1], min(most, ends[0] * ends[1]), replace=False)
        weights = rng.choice([1.0, 2.0, 0.5], len(places)) if is_weighted else np.ones(len(places))
        edges[relation] = np.c_[places // ends[1], places % ends[1], weights]
    hin = graph_of({t: [f"{t}{i}" for i in range(n)] for t, n in sizes.items()}, edges)
    measure = draw(st.sampled_from(sorted(PATHS)))
    path, k = draw(st.sampled_from(PATHS[measure])), draw(st.integers(1, 2))
    by = draw(st.sampled_from(["edges", *dict.fromkeys(path.split("-"))]))
    query = draw(st.integers(0, int(sizes["a"]) - 1))
    hits = measure_named(measure, path).fit(hin).top_k(f"a{query}", k)
    assume(len(hits))
    return hin, measure, path, by, query, int(str(hits.ids[-1])[1:]), k


def removals(hin: HIN, relations: list[Relation], by: str, kept: set[int]) -> list[dict[Relation, np.ndarray]]:
    """Every edge, or node of a type, as the edges that go with it; shape of these (edges, 2)."""
    ends = {relation: np.argwhere(hin.matrices[relation].toarray()) for relation in relations}
    if by == "edges":
        return [{r: pair[None]} for r in relations for pair in ends[r] if r.directed or pair[0] <= pair[1]]
    return [
        {
            r: ends[r][
                ((ends[r][:, 0] == node) & (r.source == by)) | ((ends[r][:, 1] == node) & (r.target == by))
            ]
            for r in relations
        }
        for node in range(hin.num_nodes(by))
        if node not in kept
    ]  # fmt: skip


def smallest_by_trying_all(
    hin: HIN, measure: str, path: str, by: str, x: int, y: int, k: int, most: int = 3
) -> int | None:
    scorer = measure_named(measure, path).fit(hin)
    relations = list(dict.fromkeys(link.relation for step in scorer.metapath_.steps for link in step.links))
    elements = removals(hin, relations, by, {x, y} if by == "a" else set())
    for size in range(1, min(most, len(elements)) + 1):
        for chosen in combinations(elements, size):
            gone = {
                r: tuple(np.concatenate([element[r] for element in chosen if r in element]).T)
                for r in relations
                if any(r in element for element in chosen)
            }
            rank, _ = rank_and_score(scorer.bind(without_edges(hin, gone)), x, y)
            if rank is None or rank > k:
                return size
    return None


@settings(max_examples=40)
@given(questions())
@pytest.mark.slow
def test_no_smaller_set_is_found_by_trying_all(question: tuple[HIN, str, str, str, int, int, int]) -> None:
    hin, measure, path, by, x, y, k = question
    expected = smallest_by_trying_all(hin, measure, path, by, x, y, k)
    answer = what_if(hin, path, f"a{x}", f"a{y}", measure=measure, k=k, remove=by, limit=2)
    size = None if answer.smallest is None else len(answer.smallest.elements)
    if expected is None:
        assert size is None or size > 3
        return
    assert (size, answer.optimal) == (expected, True)
    assert answer.smallest is not None
    assert answer.smallest.rank is None or answer.smallest.rank > k


def with_empty_relations(seed: int) -> HIN:
    """Two relations from a to b, one from b to c and one among b, each with no edges or a few."""
    rng = np.random.default_rng(seed)
    sizes = {"a": 3, "b": int(rng.integers(0, 3)), "c": int(rng.integers(0, 2))}
    edges = {}
    for relation in ("a -r-> b", "a -s-> b", "b -t-> c", "b -near- b"):
        ends = sizes[relation[0]], sizes[relation[-1]]
        most = ends[0] * ends[1]
        places = rng.choice(most, int(rng.integers(0, most + 1)), replace=False) if most and rng.random() < 0.5 else []
        edges[relation] = np.c_[np.divmod(np.array(places, dtype=np.int64), max(1, ends[1]))]
    return graph_of({t: pa.array([f"{t}{i}" for i in range(n)], pa.string()) for t, n in sizes.items()}, edges)


@pytest.mark.slow
@settings(max_examples=20)
@given(seed=st.integers(0, 2**32), measure=st.sampled_from(sorted(PATHS)))
def test_relations_without_edges_have_an_answer(seed: int, measure: str) -> None:
    hin = with_empty_relations(seed)
    for path in {"a -s-> b <-s- a", *PATHS[measure]}:
        for change in ({}, {"remove": "edges"}, {"remove": "b"}, {"add": "edges"}, {"add": "b"}):
            answer = what_if(hin, path, "a0", "a1", measure=measure, k=1, **change)
            assert answer.smallest is not None or answer.reason
            for found in (*answer.singles, *([answer.smallest] if answer.smallest else [])):
                assert (found.rank, found.score) != (answer.rank, answer.score)
            if answer.change == "remove" and answer.rank == 1:
                size = smallest_by_trying_all(hin, measure, path, answer.by, 0, 1, 1)
                assert size is None or (answer.smallest is not None and len(answer.smallest.elements) == size)


def test_edges_are_added_to_relations_that_have_none() -> None:
    nodes = {"author": ["x", "y"], "paper": ["p"]}
    empty = graph_of(nodes, {"author -writes-> paper": []})
    answer = what_if(empty, "APA", "x", "y")
    assert (answer.change, answer.rank, answer.smallest) == ("add", None, None)
    assert answer.reason
    assert shown(what_if(empty, "APA", "x", "y", add="paper")) == (["new paper 1 with y, x"], 1)
    both = graph_of(nodes, {"author -reads-> paper": [], "author -writes-> paper": [(0, 0), (1, 0)]})
    assert shown(what_if(both, "APA", "x", "y"))[0] == ["x -writes- p"]


def shown(answer: WhatIf) -> tuple[list[str], int | None]:
    """Return the smallest set of an answer as texts, and the rank that it makes."""
    assert answer.smallest is not None
    return [str(element) for element in answer.smallest.elements], answer.smallest.rank


@pytest.mark.slow
def test_a_single_removal_names_what_is_lost() -> None:
    answer = what_if(coauthors(), "APA", "Ann", "Bob", k=1, remove="paper")
    assert (answer.rank, answer.optimal, answer.at_least) == (1, True, 1)
    assert shown(answer) == (["p1"], 2)
    assert [(str(single.elements[0]), single.rank) for single in answer.singles][:2] == [("p1", 2), ("p2", 2)]


def test_one_joint_paper_brings_an_author_in() -> None:
    answer = what_if(coauthors(), "APA", "Ann", "Dan", k=2, add="paper")
    assert (answer.rank, answer.change, answer.is_smallest_tried) == (None, "add", True)
    papers, rank = shown(answer)
    assert (papers[0], rank) == ("new paper 1 with Dan, Ann", 2)
    assert shown(what_if(coauthors(), "APVPA", "Ann", "Dan", k=1, add="paper"))[1] == 1


def test_added_edges_lead_to_what_the_query_reaches() -> None:
    answer = what_if(coauthors(), "APA", "Ann", "Dan", k=3, add="edges")
    assert shown(answer)[0] == ["Dan -writes- p1"]
    assert {str(single.elements[0]) for single in answer.singles} == {f"Dan -writes- p{i}" for i in (1, 2, 3)}


def test_the_change_follows_from_the_rank_by_default() -> None:
    assert what_if(coauthors(), "APA", "Ann", "Bob").change == "remove"
    assert what_if(coauthors(), "APA", "Ann", "Dan").change == "add"
    already = what_if(coauthors(), "APA", "Ann", "Bob", add="edges")
    assert already.smallest is None
    assert already.reason == "Bob is among the 10 best of Ann already, at rank 1"
    not_yet = what_if(coauthors(), "APA", "Ann", "Dan", remove="edges")
    assert not_yet.reason == "Dan is not among the 10 best of Ann: it has no path to it"


def test_an_answer_that_is_not_proven_says_so() -> None:
    toy = load("toy")
    answer = what_if(toy, "APVPA", "Mike", "Mary", k=2, remove="edges", budget=1000)
    assert answer.smallest is not None
    assert (len(answer.smallest.elements), answer.optimal, answer.at_least) == (2, False, 1)
    assert answer.to_dict()["optimal"] is False
    none = what_if(toy, "APVPA", "Mike", "Mary", k=2, remove="edges", budget=1)
    assert (none.smallest, none.singles, none.at_least) == (None, (), 1)
    assert none.reason == "no set was found with a budget of 1; a larger one may find one"


@pytest.mark.slow
def test_the_budget_bounds_all_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of 40 authors wrote 20 of 60 papers; evaluations go on one by one until the budget ends."""
    rng = np.random.default_rng(0)
    writes = np.concatenate([np.c_[np.full(20, a), rng.choice(60, 20, replace=False)] for a in range(40)])
    hin = graph_of({"author": 40, "paper": 60}, {"author -writes-> paper": writes})
    work = []
    run = counterfactual_kernels.evaluate_each.run
    monkeypatch.setattr(counterfactuals, "_WORK_AT_ONCE", 1)
    monkeypatch.setattr(
        counterfactual_kernels.evaluate_each, "run", lambda *arguments: work.append(run(*arguments)) or work[-1]
    )
    target = measure_named("pathsim", "APA").fit(hin).top_k(0, 1).ids[0]
    found = what_if(hin, "APA", 0, target, k=20, remove="edges", limit=5)
    assert found.smallest is not None
    assert len(found.singles) == 5
    unbounded, budget = sum(work), 100_000
    work.clear()
    answer = what_if(hin, "APA", 0, target, k=20, remove="edges", limit=100, budget=budget)
    assert sum(work) < budget + 2 * max(work) < unbounded
    assert 0 < len(answer.singles) < 100
    monkeypatch.undo()
    assert what_if(hin, "APA", 0, target, k=20, remove="edges", limit=5) == found


def test_additions_claim_only_what_was_tried() -> None:
    """An edge of the query, which is not tried, would do it alone."""
    writes = [(0, 0), (0, 1), (1, 2), (2, 0), (2, 1), (2, 3), (2, 4), (2, 5)]
    hin = graph_of({"author": 3, "paper": 6}, {"author -writes-> paper": writes})
    answer = what_if(hin, "APA", 0, 1, k=1, add="edges")
    assert len(shown(answer)[0]) == 2
    assert (answer.optimal, answer.is_smallest_tried, answer.at_least) == (False, True, 2)


@pytest.mark.parametrize("path", ["APAPA", "author-knows-author-knows-author-knows-author"])
def test_a_new_node_has_each_edge_once(path: str) -> None:
    """An end of the new node may be the query or the target, which it is linked to anyway."""
    writes = [(0, 0), (1, 0), (1, 1), (2, 1), (3, 2), (0, 3)]
    edges = {"author -writes-> paper": writes, "author -knows- author": [(0, 1), (1, 2)]}
    hin = graph_of({t: [f"{t[0]}{i}" for i in range(4)] for t in ("author", "paper")}, edges)
    by, measure = ("paper", "pathsim") if path == "APAPA" else ("author", "pathcount")
    answer = what_if(hin, path, "a0", "a3", k=2, add=by, measure=measure)
    assert answer.singles
    for single in answer.singles:
        [node] = single.elements
        ends = [frozenset((edge.source, edge.target)) for edge in node.edges]
        assert len(set(ends)) == len(ends)
    assert len({frozenset(single.elements[0].edges) for single in answer.singles}) == len(answer.singles)


def test_more_hits_than_there_are_targets() -> None:
    answer = what_if(coauthors(), "APA", "Ann", "Bob", k=10**20, remove="paper")
    papers, rank = shown(answer)
    assert (len(papers), rank, answer.optimal) == (2, None, True)


def test_new_nodes_next_to_the_largest_id() -> None:
    nodes = {"author": ["Ann", "Bob"], "paper": [0, 2**63 - 1]}
    hin = graph_of(nodes, {"author -writes-> paper": [(0, 0), (1, 1)]})
    assert shown(what_if(hin, "APA", "Ann", "Bob", add="paper"))[1] == 1


def test_a_measure_with_parameters_and_json() -> None:
    answer = what_if(coauthors(), "APA", "Ann", "Bob", measure=PCRW("APA"), k=1).to_dict()
    assert answer["measure"] == "pcrw"
    assert set(answer) == {
        "query", "target", "metapath", "measure", "k", "change", "by", "rank", "score", "smallest", "optimal",
        "at_least", "reason", "singles",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"remove": "venue"}, QueryError, "venue is not on author-paper-author; give edges, or one of author, paper"),
        ({"remove": 3}, QueryError, "3 is not on author-paper-author; give edges, or one of author, paper"),
        ({"measure": "SimRank"}, QueryError, "use one of pathsim, joinsim, hetesim, pathcount, pcrw, dwpc"),
        ({"measure": SimRank("author")}, QueryError, "which simrank is not made of; use one of pathsim, joinsim"),
        ({"remove": "conference"}, SchemaError, "no node type 'conference'"),
        ({"remove": "edges", "add": "edges"}, QueryError, "give either remove or add"),
        ({"k": 0}, QueryError, "a whole number of at least 1"),
        ({"limit": -1}, QueryError, "limit is -1"),
        ({"budget": 0}, QueryError, "budget is 0"),
        ({"target": "Ann"}, QueryError, "both the query and the target"),
        ({"target": "Eve"}, NodeError, "Eve"),
        (
            {"target": "Dan", "add": "author"},
            QueryError,
            "a new author cannot join author nodes along author-paper",
        ),
    ],
)
def test_errors_say_what_is_possible(options: dict, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        what_if(coauthors(), "APA", "Ann", **{"target": "Bob"} | options)

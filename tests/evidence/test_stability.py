"""Stability: intervals of ranks, against graphs that are really changed."""

import numpy as np
import pytest

from neupath import HIN, PathSim, stability
from neupath.errors import QueryError
from neupath.evidence.counterfactuals import rank_and_score
from neupath.evidence.stability import thinned
from tests.graphs import coauthors


def test_a_jackknife_holds_the_rank_without_each_node(toy: HIN) -> None:
    scorer = PathSim("APVPA").fit(toy)
    hits = scorer.top_k("Mike", k=3)
    result = stability(scorer, hits, by="venue")
    relation = next(relation for relation in toy.schema.relations if relation.target == "venue")
    for target, (low, high) in zip(hits.ids, result.intervals, strict=True):
        ranks = []
        for venue in range(toy.num_nodes("venue")):
            changed = toy.matrices[relation].toarray()
            changed[:, venue] = 0
            matrices = {r: m if r != relation else type(m)(changed) for r, m in toy.matrices.items()}
            scorer_without = scorer.bind(HIN(toy.schema, toy.nodes, matrices))
            ranks.append(rank_and_score(scorer_without, toy.row("author", "Mike"), toy.row("author", target))[0])
        assert high == (None if None in ranks else max(r for r in ranks if r is not None))
        assert low == min(r for r in ranks if r is not None)


def test_samples_follow_the_seed_and_hold_the_rank_of_a_steady_hit(toy: HIN) -> None:
    scorer = PathSim("APVPA").fit(toy)
    hits = scorer.top_k("Mike", k=3)
    first, again = (stability(scorer, hits, seed=4, samples=30) for _ in range(2))
    assert first == again
    assert first != stability(scorer, hits, seed=5, samples=30, share=0.5)
    assert all(low is not None and low <= hit.rank for (low, _), hit in zip(first.intervals, hits, strict=True))
    assert first.to_dict() == {"by": "edges", "samples": 30, "share": 0.1, "seed": 4}
    assert first.columns()["ranks"][0] == list(first.intervals[0])


def test_thinned_graphs_lose_a_share_of_both_directions(toy: HIN) -> None:
    graph = thinned(toy, toy.schema.relations[:1], 0.5, np.random.default_rng(0))
    kept, other = (graph.num_edges(relation) for relation in toy.schema.relations)
    assert 20 < kept < 60
    assert other == 81


@pytest.mark.parametrize("options", [{"among": ["Jim", "Ann"]}, {"include_query": True}, {"k": 5, "zeros": True}])
def test_hits_that_are_not_the_best_of_all_targets_are_refused(toy: HIN, options: dict[str, object]) -> None:
    scorer = PathSim("APVPA").fit(toy)
    hits = scorer.top_k("Mike", **{"k": 3} | options)  # type: ignore[arg-type]
    for by in (None, "paper"):
        with pytest.raises(QueryError, match="and stability ranks all targets; search without filters"):
            stability(scorer, hits, by=by)


def test_filters_that_change_nothing_are_accepted(toy: HIN) -> None:
    scorer = PathSim("APVPA").fit(toy)
    hits = scorer.top_k("Mike", k=2, among=["Mary", "Bob"])
    assert stability(scorer, hits, samples=9) == stability(scorer, scorer.top_k("Mike", k=2), samples=9)
    assert stability(scorer, scorer.top_k("Mike", among=["Ann"])).intervals == ()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"share": 1}, "share is 1"),
        ({"samples": 0}, "samples is 0"),
        ({"samples": 2.5}, "samples is 2.5; give a whole number of at least 1"),
        ({"by": "venue"}, "venue is not on author-paper-author"),
    ],
)
def test_what_is_refused(options: dict, message: str) -> None:
    scorer = PathSim("APA").fit(coauthors())
    with pytest.raises(QueryError, match=message):
        stability(scorer, scorer.top_k("Ann", k=2), **options)

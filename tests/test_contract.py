"""The contract of every scorer. A new scorer is one line in SCORERS."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import neupath as npth
from neupath import HIN
from neupath.engine.scorer import Scorer
from neupath.errors import MissingExtraError, NodeError, QueryError
from neupath.evidence.model_explanation import explain_model
from neupath.measures import GRAPH_MEASURES, MEASURES, AvgSim, Combination, Part, RelSim
from tests.graphs import shop_graph

try:
    import neupath.learn.models
    from neupath.learn.registry import ARCHITECTURES, make_model
except MissingExtraError:
    ARCHITECTURES = {}

PATH = "user-item-tag-item-user"
PARTS = [Part("pathsim", PATH, 0.7), Part("joinsim", "user-item-user", 0.3)]
LABELS = [(f"u{query}", f"u{target}", (query + target) % 5 / 4) for query in range(6) for target in range(10, 16)]
SCORERS: dict[str, Callable[[], Scorer]] = {
    name: lambda measure=measure: measure(PATH) for name, measure in MEASURES.items()
}
SCORERS |= {"combination": lambda: Combination(PARTS)}
SCORERS |= {"relsim": lambda: RelSim([PATH, "user-item-user"], [0.7, 0.3]), "avgsim": lambda: AvgSim(PATH)}
SCORERS |= {name: lambda measure=measure: measure("user") for name, measure in GRAPH_MEASURES.items()}
SCORERS |= {
    name: lambda name=name: make_model(
        name, **SMALL.get(name, {"dim": 8}), **OTHER.get(name, FROM[ARCHITECTURES[name].learns_from]), device="cpu"
    )
    for name in ARCHITECTURES
}
SOURCE = {name: known.learns_from for name, known in ARCHITECTURES.items()}
FROM = {
    "labels": {"epochs": 2},
    "metapath": {"metapath": PATH, "walks": 2},
    "node_type": {"node_type": "user", "walks": 2},
}
SMALL = {
    "countpath": {"layers": 1, "channels": 2},
    "nbfnet": {"dim": 8, "learning_rate": 0.1},
    "pathboost": {},
    "linear": {},
}
OTHER = {"pathboost": {"trees": 3}, "linear": {"seed": 1}}
SYMMETRIC = (
    "pathsim", "joinsim", "hetesim", "pathcount", "dwpc", "jaccard", "overlap", "combination", "relsim", "scan",
)  # fmt: skip
NOT_SYMMETRIC = ("pcrw", "ppr", "neupath", "nbfnet", "pathboost", "linear")
"""All others are symmetric but for rounding."""
RELATES_ALL = tuple(name for name in ARCHITECTURES if name not in ("pathboost", "linear"))
"""What scores any two nodes that paths of some length join; the score 0 means nothing to it."""
UNBOUNDED = tuple(name for name, measure in MEASURES.items() if not measure.bounded)


def fit(name: str, hin: HIN) -> Scorer:
    scorer = SCORERS[name]()
    return scorer.fit(hin, LABELS) if SOURCE.get(name) == "labels" else scorer.fit(hin)


@pytest.fixture(scope="module")
def hin() -> HIN:
    return shop_graph()


@pytest.fixture(scope="module", params=list(SCORERS))
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def scorer(name: str, hin: HIN) -> Scorer:
    return fit(name, hin)


def test_batch_equals_single(scorer: Scorer) -> None:
    queries = ["u5", "u0", "u39", "User 7"]
    assert scorer.top_k(queries, 7) == [scorer.top_k(query, 7) for query in queries]
    assert scorer.top_k((), 7) == []


def test_k_above_n_gives_every_related_target(name: str, scorer: Scorer) -> None:
    hits = scorer.top_k("u0", 10_000)
    scores = np.delete(scorer.scores("u0"), 0)
    related = 39 if name in RELATES_ALL else np.count_nonzero(scores)
    assert len(hits) == related
    assert hits.shortfall is not None


def test_scores_descend_and_ties_are_in_node_order(scorer: Scorer) -> None:
    hits = scorer.top_k("u0", 40)
    pairs = [(-hit.score, int(str(hit.id)[1:])) for hit in hits]
    assert pairs == sorted(pairs)


def test_an_isolated_node_has_no_hits(name: str, scorer: Scorer) -> None:
    assert len(scorer.top_k("u39")) == 0
    scores = scorer.scores("u39")
    assert not scores[:39].any()
    assert (scores[39] > 0) == (name in GRAPH_MEASURES), "a walk that goes nowhere is at home"


@pytest.mark.parametrize("name", list(ARCHITECTURES), scope="module")
def test_explaining_an_isolated_node_says_that_no_path_leads_from_it(scorer: Scorer) -> None:
    why = explain_model(scorer, "u39", "u0")
    assert (why.score, why.rank) == (0.0, None)
    assert why.to_dict()["summary"].startswith("No path of any length leads from User 39 to any other user, so it has")


def test_a_hit_and_a_match_stand_for_their_id(scorer: Scorer, hin: HIN) -> None:
    hit, match = scorer.top_k("u0", 1)[0], hin.find("User 7", 1)[0]
    assert scorer.top_k([hit, match], 3) == scorer.top_k([hit.id, "u7"], 3)
    assert scorer.top_k(hit, 3) == scorer.top_k(hit.id, 3)
    assert scorer.score(match, hit) == scorer.score("u7", hit.id)
    assert scorer.top_k("u0", among=[hit]).ids == scorer.top_k("u0", among=hit).ids == (hit.id,)  # type: ignore[arg-type]


def test_only_a_loaded_graph_fits(name: str, tmp_path: Path) -> None:
    with pytest.raises(
        QueryError, match=r"^hin is 'films', which is no loaded graph; give what neupath\.load\('films'\)"
    ):
        fit(name, "films")  # type: ignore[arg-type]
    for other in (tmp_path, [("a", "b")], None):
        with pytest.raises(QueryError, match="which is no loaded graph; give what neupath.load"):
            fit(name, other)  # type: ignore[arg-type]


def test_a_graph_scorer_or_hits_in_the_wrong_place_are_named(hin: HIN) -> None:
    """`join` takes the graph and the scorer, `compare` and `significance` take scorers alone."""
    scorer = npth.PathSim(PATH).fit(hin)
    misplaced: list[tuple[Callable[..., object], tuple[object, ...], str]] = [
        (npth.join, (scorer, hin, "a.parquet"), r"hin is PathSim\(.*, which is no loaded graph; give what"),
        (npth.compare, (hin, "u0"), "scorers is <HIN.*; give a list of two or more fitted"),
        (npth.compare, (scorer, "u0"), "scorers is PathSim.*; give a list of two or more fitted"),
        (npth.significance, (scorer, scorer.top_k("u0")), r"hits is the hits of one query; .* such as \[hits\]"),
    ]
    for function, arguments, message in misplaced:
        with pytest.raises(QueryError, match=f"^{message}"):
            function(*arguments)


def test_unknown_nodes_are_refused(scorer: Scorer) -> None:
    with pytest.raises(NodeError, match="no user with the id or name 'nobody'"):
        scorer.top_k("nobody")
    with pytest.raises(NodeError, match="no user with the id or name 'nobody'"):
        scorer.score("u0", "nobody")


def test_one_pair_equals_the_row(scorer: Scorer) -> None:
    row = scorer.scores("u3")
    assert row.shape == (40,)
    assert scorer.score("u3", "User 11") == row[11]


def test_symmetry_and_range(name: str, scorer: Scorer) -> None:
    scores = np.stack([scorer.scores(f"u{i}") for i in range(40)])
    if name in SYMMETRIC:
        assert np.array_equal(scores, scores.T)
    else:
        reaching = scores.any(axis=1)  # a node that reaches nothing may have a score as a target
        joined = scores[reaching][:, reaching]
        assert np.allclose(joined, joined.T, rtol=0, atol=1e-6) == (name not in NOT_SYMMETRIC)
    if name not in ARCHITECTURES or name == "countpath":  # what is learned may leave the range of its labels
        assert scores.min() >= 0
        assert name in UNBOUNDED or scores.max() <= 1 + 1e-12


def test_same_scores_on_the_same_graph_built_again(name: str, scorer: Scorer) -> None:
    assert fit(name, shop_graph()).top_k("u1", 40) == scorer.top_k("u1", 40)


def test_save_load_same_scores(scorer: Scorer, tmp_path: Path) -> None:
    folder = scorer.save(tmp_path / "saved")
    reloaded = npth.load_scorer(folder, shop_graph(), device="cpu")
    np.testing.assert_array_equal(reloaded.scores("u2"), scorer.scores("u2"))
    assert reloaded.params() == scorer.params()


def test_needs_a_graph_first(name: str) -> None:
    with pytest.raises(QueryError, match=r"has no graph yet; call fit\(hin\) first"):
        SCORERS[name]().top_k("u0")


def test_leaves_the_graph_untouched(name: str) -> None:
    hin = shop_graph()
    before = {relation: matrix.copy() for relation, matrix in hin.matrices.items()}
    fit(name, hin).top_k(["u0", "u1"])
    for relation, matrix in hin.matrices.items():
        assert (matrix != before[relation]).nnz == 0

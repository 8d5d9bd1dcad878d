"""What every scorer promises. A new one is a line in SCORERS."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import neupath as npth
from neupath import HIN, Edges, Nodes, Relation
from neupath.errors import NodeError, QueryError
from neupath.inference import PathRanker
from neupath.measures import MEASURES, Combination, Part
from neupath.scorer import Scorer

PATH = "user-item-tag-item-user"
SCORERS: dict[str, Callable[[], Scorer]] = {name: lambda made=made: made(PATH) for name, made in MEASURES.items()}
PARTS = [Part("pathsim", PATH, 0.7), Part("joinsim", "user-item-user", 0.3)]
SCORERS |= {"combination": lambda: Combination(PARTS), "pathranker": lambda: PathRanker(parts=PARTS)}
SYMMETRIC = ("pathsim", "joinsim", "hetesim", "pathcount", "dwpc", "combination", "pathranker")
BETWEEN_0_AND_1 = ("pathsim", "joinsim", "hetesim", "pcrw", "combination", "pathranker")


@pytest.fixture
def hin() -> HIN:
    return build()


def build() -> HIN:
    rng = np.random.default_rng(3)
    names = pa.array([f"User {i}" for i in range(40)])
    return HIN.build(
        [
            Nodes("user", pa.array([f"u{i}" for i in range(40)]), names),  # u39 has no edge
            Nodes("item", pa.array(np.arange(30))),
            Nodes("tag", pa.array([f"t{i}" for i in range(8)])),
        ],
        [
            Edges(
                Relation("user", "buys", "item"), rng.integers(0, 39, 120), rng.integers(0, 30, 120), rng.random(120)
            ),
            Edges(Relation("item", "has", "tag"), rng.integers(0, 30, 60), rng.integers(0, 8, 60)),
        ],
    )


@pytest.fixture(params=list(SCORERS))
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def scorer(name: str, hin: HIN) -> Scorer:
    return SCORERS[name]().fit(hin)


def test_batch_equals_single(scorer: Scorer) -> None:
    queries = ["u5", "u0", "u39", "User 7"]
    assert scorer.top_k(queries, 7) == [scorer.top_k(query, 7) for query in queries]
    assert scorer.top_k((), 7) == []


def test_k_above_n_gives_every_related_target(scorer: Scorer) -> None:
    hits = scorer.top_k("u0", 10_000)
    assert len(hits) == np.count_nonzero(scorer.scores("u0")) - 1
    assert hits.shortfall is not None


def test_scores_descend_and_ties_are_in_node_order(scorer: Scorer) -> None:
    hits = scorer.top_k("u0", 40)
    pairs = [(-hit.score, int(str(hit.id)[1:])) for hit in hits]
    assert pairs == sorted(pairs)


def test_an_isolated_node_has_no_hits(scorer: Scorer) -> None:
    assert len(scorer.top_k("u39")) == 0
    assert not scorer.scores("u39").any()


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
    every = np.stack([scorer.scores(f"u{i}") for i in range(40)])
    assert np.array_equal(every, every.T) == (name in SYMMETRIC)
    assert every.min() >= 0
    if name in BETWEEN_0_AND_1:
        assert every.max() <= 1 + 1e-12


def test_same_scores_on_the_same_graph_built_again(name: str, scorer: Scorer) -> None:
    assert SCORERS[name]().fit(build()).top_k("u1", 40) == scorer.top_k("u1", 40)


def test_save_load_same_scores(scorer: Scorer, tmp_path: Path) -> None:
    folder = scorer.save(tmp_path / "saved")
    again = npth.load_scorer(folder, build())
    np.testing.assert_array_equal(again.scores("u2"), scorer.scores("u2"))
    assert again.params() == scorer.params()


def test_needs_a_graph_first(name: str) -> None:
    with pytest.raises(QueryError, match=r"has no graph yet; call fit\(hin\) first"):
        SCORERS[name]().top_k("u0")


def test_leaves_the_graph_untouched(name: str, hin: HIN) -> None:
    before = {relation: matrix.copy() for relation, matrix in hin.matrices.items()}
    SCORERS[name]().fit(hin).top_k(["u0", "u1"])
    for relation, matrix in hin.matrices.items():
        assert (matrix != before[relation]).nnz == 0

"""Random walks: where they go and how often. node2vec and metapath2vec: nodes that walks meet together are similar."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from scipy.sparse import csr_array

pytest.importorskip("torch")


import neupath as npth
from neupath import HIN, NeuPathError
from neupath.graph.hin import Edges
from neupath.graph.metapath import Relation
from neupath.graph.nodes import Nodes
from neupath_paper.walk_embeddings import MetaPath2Vec, Node2Vec, walk_node2vec, walk_steps

DENSE = np.array([[0, 1, 3, 0, 0], [1, 0, 1, 0, 0], [3, 1, 0, 2, 0], [0, 0, 2, 0, 0], [0, 0, 0, 0, 0]], dtype=float)


def test_walks_follow_edges_in_proportion_to_their_weights() -> None:
    walks = walk_steps(np.zeros(20_000, dtype=np.int64), [csr_array(DENSE)], 4, np.random.default_rng(0))
    for at in range(3):
        assert (DENSE[walks[:, at], walks[:, at + 1]] > 0).all()
    assert np.bincount(walks[:, 1], minlength=5) / 20_000 == pytest.approx([0, 0.25, 0.75, 0, 0], abs=0.02)


def test_steps_are_taken_in_turn_and_walks_end_where_nothing_goes_on() -> None:
    there = csr_array(np.array([[0, 1, 0], [0, 0, 0], [0, 0, 0]], dtype=float))
    back = csr_array(np.array([[0, 0, 0], [1, 0, 0], [0, 0, 0]], dtype=float))
    walks = walk_steps(np.array([0, 2]), [there, back], 5, np.random.default_rng(0))
    assert walks.tolist() == [[0, 1, 0, 1, 0], [2, -1, -1, -1, -1]]


@pytest.mark.parametrize(("p", "q"), [(1.0, 1.0), (4.0, 0.25), (0.1, 2.0)])
def test_node2vec_turns_back_as_often_as_p_and_q_say(p: float, q: float) -> None:
    walks = walk_node2vec(np.full(40_000, 0), csr_array(DENSE), 3, p, q, np.random.default_rng(1))
    via = walks[walks[:, 1] == 2]  # from 0 by way of 2: back to 0, on to its neighbour 1, or on to 3
    weights = np.array([3 / p, 1, 0, 2 / q, 0])
    assert np.bincount(via[:, 2], minlength=5) / len(via) == pytest.approx(weights / weights.sum(), abs=0.02)


def test_a_node_without_edges_stays_alone() -> None:
    walks = walk_node2vec(np.array([4]), csr_array(DENSE), 3, 1.0, 1.0, np.random.default_rng(0))
    assert walks.tolist() == [[4, -1, -1]]


def communities() -> HIN:
    """Two groups of authors, each writing its own papers; venues join everything."""
    rng = np.random.default_rng(0)
    authors = np.repeat(np.arange(40), 6)
    papers = np.where(authors < 20, rng.integers(0, 30, 240), rng.integers(30, 60, 240))
    return HIN.build(
        [Nodes(name, pa.array(np.arange(size))) for name, size in (("author", 40), ("paper", 60), ("venue", 3))],
        [
            Edges(Relation("author", "writes", "paper"), authors, papers),
            Edges(Relation("paper", "at", "venue"), np.arange(60), rng.integers(0, 3, 60)),
        ],
    )


@pytest.mark.parametrize("make", [lambda **s: Node2Vec("author", **s), lambda **s: MetaPath2Vec("APA", **s)])
@pytest.mark.slow
def test_groups_come_apart(make) -> None:
    scores = make(dim=16, epochs=15, device="cpu").fit(communities()).score_rows(np.arange(40))
    together, apart = scores[:20, :20].mean() + scores[20:, 20:].mean(), 2 * scores[:20, 20:].mean()
    assert together > apart + 0.4
    np.testing.assert_allclose(np.diag(scores), 1.0)


def test_a_model_belongs_to_its_nodes(toy: HIN, tmp_path: Path) -> None:
    model = MetaPath2Vec("APVPA", dim=8, device="cpu").fit(toy)
    assert model.metapath_text == "author-paper-venue-paper-author"
    folder = model.save(tmp_path)
    with pytest.raises(NeuPathError, match="does not have the schema"):
        npth.load_scorer(folder, communities())
    more = HIN.build(
        [Nodes("author", pa.array(["Eve"])), *(toy.nodes[name] for name in ("paper", "venue"))],
        [Edges(relation, np.zeros(0, np.int64), np.zeros(0, np.int64)) for relation in toy.schema.relations],
    )
    with pytest.raises(NeuPathError, match="a metapath2vec model knows each node by features of its own"):
        npth.load_scorer(folder, more)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Node2Vec("author", p=0), "p is 0; it must lie between 1/16 and 16"),
        (lambda: Node2Vec("author", dim=0), "dim is 0; give a whole number of at least 1"),
        (lambda: Node2Vec("autor").fit(communities()), "no node type 'autor'"),
        (
            lambda: MetaPath2Vec("AP").fit(communities()),
            "'author-paper' ends at paper, and metapath2vec must",
        ),
        (lambda: MetaPath2Vec("APA", seed=-1).fit(communities()), "seed is -1"),
    ],
)
def test_bad_settings(make, message: str) -> None:
    with pytest.raises(NeuPathError, match=message):
        make()

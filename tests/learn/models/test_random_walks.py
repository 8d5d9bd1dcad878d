"""Walks against what they may do, and how often."""

import numpy as np
import pytest
from scipy.sparse import csr_array

pytest.importorskip("torch", reason="the learn extra is not installed")

from neupath.learn.models.walk_embeddings import walk_node2vec, walk_steps

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

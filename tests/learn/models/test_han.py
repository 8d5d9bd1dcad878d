"""HAN's candidate meta-paths and neighbourhoods."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the learn extra is not installed")

from neupath import HIN, NeuPathError  # noqa: E402
from neupath.engine.products import symmetric_product  # noqa: E402
from neupath.learn.models import HAN  # noqa: E402
from neupath.learn.models.metapath_gnns import sample_neighbours  # noqa: E402
from tests.learn.models.test_models import library  # noqa: E402

LABELS = [("u1", "u2", 1.0), ("u1", "u3", 0.5), ("u2", "u4", 0.0)]


def test_neighbours_are_the_pairs_a_path_joins(toy: HIN) -> None:
    factors = symmetric_product(toy, toy.metapath("APVPA"))
    sources, targets = sample_neighbours(factors, limit=100, seed=0)
    expected = (factors.left @ factors.right).toarray() > 0
    found = np.zeros_like(expected)
    found[targets, sources] = True
    assert np.array_equal(found, expected)
    assert len(sources) == expected.sum()


def test_too_many_neighbours_are_drawn_from() -> None:
    hin = library(users=300)  # more rows than are looked at at once
    factors = symmetric_product(hin, hin.metapath("user-item-tag-item-user"))
    joined = (factors.left @ factors.right).toarray() > 0
    sources, targets = sample_neighbours(factors, limit=7, seed=0)
    assert np.array_equal(np.bincount(targets, minlength=300), np.minimum(joined.sum(1), 7))
    assert joined[targets, sources].all()
    assert len({*zip(sources.tolist(), targets.tolist(), strict=True)}) == len(sources)
    for one, other in ((u, v) for u in range(40) for v in range(u) if np.array_equal(joined[u], joined[v])):
        assert np.array_equal(sources[targets == one], sources[targets == other]), "who has the same keeps the same"
    assert np.array_equal(sample_neighbours(factors, 7, 0), np.stack([sources, targets]))
    assert not np.array_equal(sample_neighbours(factors, 7, 1)[0], sources)


def test_candidates_are_the_short_symmetric_paths_unless_given() -> None:
    model = HAN(dim=8, epochs=1, device="cpu").fit(library(), LABELS)
    assert [str(path) for path in model.candidate_metapaths()] == [
        "user-item-user",
        "user-item-user-item-user",
        "user-item-tag-item-user",
    ]
    told = HAN(dim=8, epochs=1, metapaths=["user-item-user"], device="cpu").fit(library(), LABELS)
    assert told.params()["metapaths"] == ["user-item-user"]


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("item-user-item", "item-user-item joins item nodes, and the labels are of user nodes"),
        ("user-item-tag", "HAN needs a symmetric meta-path of even length"),
    ],
)
def test_bad_candidates(path: str, message: str) -> None:
    with pytest.raises(NeuPathError, match=message):
        HAN(dim=8, epochs=1, metapaths=[path], device="cpu").fit(library(), LABELS)

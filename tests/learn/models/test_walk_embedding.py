"""node2vec and metapath2vec: nodes that walks keep together have like vectors."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

torch = pytest.importorskip("torch", reason="the learn extra is not installed")

import neupath as npth  # noqa: E402
from neupath import HIN, Edges, NeuPathError, Nodes, Relation  # noqa: E402
from neupath.learn.models import MetaPath2Vec, Node2Vec  # noqa: E402


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
        (lambda: Node2Vec("author", dim=0), "dim is 0; it must be at least 1"),
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

"""PathBoost: what it learns, that it is reproducible, and how it explains itself."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

pytest.importorskip("lightgbm")

import neupath as npth
from neupath import HIN, NeuPathError
from neupath.engine.hits import Hit
from neupath.evidence.html_report import render_html
from neupath.evidence.model_explanation import AttentionExplanation, explain_model
from neupath.graph.nodes import Nodes
from neupath.learn.attributes import NodeAttributes, PairAttributes
from neupath.learn.evaluation import auc
from neupath.learn.labels import Pairs
from neupath.learn.pathboost import PathBoost
from tests.graphs import graph_of


def shops(seed: int = 1, users: int = 60) -> HIN:
    """Users who buy items and have an age, a town and a name."""
    rng = np.random.default_rng(seed)
    facts = pa.table({"age": rng.integers(20, 70, users), "town": [f"town {i % 3}" for i in range(users)]})
    ids = pa.array([f"u{i}" for i in range(users)])
    names = pa.array([f"Ann Smith {i}" if i % 2 else f"Bob Jones {i}" for i in range(users)])
    buys = np.c_[rng.integers(0, users, 240), rng.integers(0, 20, 240)]
    nodes = {"user": Nodes("user", ids, names, facts), "item": 20}
    return graph_of(nodes, {"user -buys-> item": buys}, duplicates="drop")


def labels_of(hin: HIN, queries: int = 24) -> Pairs:
    """Yes for users who share an item and are of one town: no sum of paths says that."""
    shared = npth.PathSim("user-item-user").fit(hin)
    towns = hin.nodes["user"].attributes["town"].to_pylist()
    rows = []
    for query in range(queries):
        scores = shared.score_rows(np.array([query]))[0]
        drawn = np.random.default_rng(query).permutation(hin.num_nodes("user"))[:20].tolist()
        similar = [(target, float(scores[target] > 0 and towns[query] == towns[target])) for target in drawn]
        rows += [(query, target, label) for target, label in similar if target != query]
    queries_, targets, scores_ = zip(*rows, strict=True)
    return Pairs("user", np.array(queries_), np.array(targets), np.array(scores_))


@pytest.fixture(scope="module")
def hin() -> HIN:
    return shops()


@pytest.fixture(scope="module")
def model(hin: HIN) -> PathBoost:
    return PathBoost(max_length=2, trees=60).fit(hin, labels_of(hin))


def held_out(model: PathBoost, hin: HIN) -> float:
    labels = labels_of(hin, 50)
    rest = labels.of_queries(range(24, 50))
    scores = [model.score_rows(np.array([q]))[0][t] for q, t in zip(rest.queries, rest.targets, strict=True)]
    return auc(rest.scores, np.array(scores))


def test_learns_what_holds_of_paths_and_attributes_together(hin: HIN, model: PathBoost) -> None:
    alone = PathBoost(max_length=2, trees=60, attributes=False).fit(hin, labels_of(hin))
    assert held_out(model, hin) > 0.97
    assert held_out(model, hin) > held_out(alone, hin) + 0.05


def test_saved_as_text_and_reproducible(hin: HIN, model: PathBoost, tmp_path: Path) -> None:
    folder = model.save(tmp_path)
    assert sorted(file.name for file in folder.iterdir()) == ["config.json", "trees.txt"]
    loaded = npth.load_scorer(folder, hin)
    np.testing.assert_array_equal(loaded.scores("u5"), model.scores("u5"))
    again = PathBoost(max_length=2, trees=60).fit(hin, labels_of(hin))
    assert again.fingerprint() == model.fingerprint()
    other = shops(seed=2, users=70)
    np.testing.assert_array_equal(model.bind(other).scores("u69"), npth.load_scorer(folder, other).scores("u69"))


def test_damaged_models_are_refused(hin: HIN, model: PathBoost, tmp_path: Path) -> None:
    folder = model.save(tmp_path)
    params = json.loads((folder / "config.json").read_text())["params"]
    for file, content, message in (
        ("trees.txt", "tree\nnonsense", "trees.txt is missing or damaged"),
        ("config.json", json.dumps({"scorer": "pathboost", "params": params}), "holds no trees that LightGBM can read"),
        ("config.json", '{"scorer": "pathboost", "params": {"learned": {}}}', "holds no pathboost model that can be"),
    ):
        (folder / file).write_text(content)
        with pytest.raises(NeuPathError, match=message):
            npth.load_scorer(folder, hin)


def test_explained_by_paths_and_attributes(model: PathBoost) -> None:
    hit = model.top_k("u1", k=1)[0]
    contributions = {each.name: each.value for each in model.contributions("u1", hit.id)}
    assert contributions["user-item-user"] > 0
    assert contributions["town: equal"] > 0
    paths = model.attention_paths("u1", hit.id, 50)
    assert sum(path.weight for path in paths) == pytest.approx(1.0)
    assert {(path.nodes[0].id, path.nodes[-1].id) for path in paths} == {("u1", hit.id)}
    assert "paths" in explain_model(model, "u1", hit.id).summary


def test_all_that_decides_a_score_is_shown_with_its_sign(model: PathBoost) -> None:
    """Two users with the same paths, one of another town: what lowers the score is not left out."""
    hits = model.top_k("u1", k=100)
    assert all(hit.score > 0 for hit in hits), "what no path reaches is not found"
    (unreached, *_) = (node for node in model.hin_.nodes["user"].ids.to_pylist() if node not in (*hits.ids, "u1"))
    sentences = {}
    for hit in (*hits, Hit(None, unreached, None, 0.0)):
        why = explain_model(model, "u1", hit.id)
        assert isinstance(why, AttentionExplanation)
        assert why.score == hit.score
        assert why.rank == hit.rank
        if not hit.score:
            assert (why.contributions, why.margin) == ((), None)
            assert "no path that it follows reaches it" in why.summary
            continue
        assert why.margin == pytest.approx(np.log(why.score / (1 - why.score)), rel=1e-6)
        assert why.to_dict()["contributions"] == [vars(each) for each in model.contributions("u1", hit.id)]
        towns = {each.name: each.value for each in why.contributions}["town: equal"]
        sentences[hit.id] = towns, why.summary
        raised, _, lowered = why.summary.partition(", lowered by ")
        assert f"town: equal ({towns:+.2f})" in (raised if towns > 0 else lowered)
        assert f"{towns:+.2f}" in render_html(why)
        assert f"{towns:+.2f}" in repr(why)
        assert f"{towns:+.2f}" in why._repr_html_()
    best, worst = max(sentences.values()), min(sentences.values())
    assert worst[0] < -1 < 1 < best[0]
    assert worst[1] != best[1]


def test_more_paths_never_lower_the_score(model: PathBoost) -> None:
    names = model.feature_names_
    rising = [number for number, name in enumerate(names) if name.startswith(("pathsim", "pcrw"))]
    matrix = np.random.default_rng(0).random((40, len(names)))
    for column in rising:
        low, high = matrix.copy(), matrix.copy()
        low[:, column], high[:, column] = 0.0, 1.0
        assert (model.booster_.predict(high) >= model.booster_.predict(low)).all()


def test_graded_labels_and_two_types(hin: HIN) -> None:
    bought = hin.matrices[hin.schema.relations[0]]
    labels = [(f"u{u}", i, float(min(5, bought[u, i] * 5))) for u in range(12) for i in range(10)]
    model = PathBoost(max_length=3, trees=10).fit(hin, labels, query_type="user", target_type="item")
    assert (model.source_type, model.target_type) == ("user", "item")
    assert len(model.top_k("u30", k=3)) == 3
    graded = [(f"u{q}", f"u{t}", (q + t) % 4 / 3) for q in range(8) for t in range(20, 30)]
    ranked = PathBoost(max_length=2, trees=5).fit(hin, graded)
    assert (ranked.learned_ or {})["objective"] == "lambdarank"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: PathBoost(trees=0), "trees is 0; give a whole number of at least 1"),
        (lambda: PathBoost(device="cuda"), "pathboost runs on the CPU alone"),
        (lambda: PathBoost().fit(shops()), "give either labelled pairs or a teacher"),
        (lambda: PathBoost().fit(shops(), [("u1", "u2", 1.0)] * 2), "^all labels are 1, which leaves nothing"),
    ],
)
def test_refusals(make, message: str) -> None:
    with pytest.raises(NeuPathError, match=message):
        make()


def test_attributes_of_pairs() -> None:
    facts = pa.table({"year": [1990, 2000, None], "kind": ["a", "b", None], "note": ["abc", "abc", "xyz"]})
    nodes = Nodes("film", pa.array([1, 2, 3]), pa.array(["The Ship", "The Ships", None]), facts)
    pairs = PairAttributes(nodes, nodes)
    first, second = pairs.of_pairs(np.array([0, 0]), np.array([1, 2]))
    by_name = dict(zip(pairs.names, first.tolist(), strict=True))
    assert by_name["year: difference"] == 10
    assert by_name["kind: equal"] == 0.0
    assert 0.5 < by_name["name: alike"] < 1
    assert np.isnan(second[list(pairs.names).index("kind: equal")])
    assert set(NodeAttributes.of(nodes).categories) == {"kind", "note"}

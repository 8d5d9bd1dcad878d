"""Linear: that its weights are those of the formula, signed and reproducible, and that they explain its scores."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from scipy.optimize import minimize

import neupath as npth
from neupath import HIN, NeuPathError
from neupath.engine.hits import Hit
from neupath.evidence.model_explanation import AttentionExplanation, explain_model
from neupath.graph.hin import Edges
from neupath.graph.metapath import Relation
from neupath.graph.nodes import Nodes
from neupath.learn.evaluation import auc
from neupath.learn.labels import Pairs
from neupath.learn.linear import Linear, fit_logistic


def graph(seed: int = 1, users: int = 60) -> HIN:
    """Users who like items and dislike others."""
    rng = np.random.default_rng(seed)
    nodes = [Nodes("user", pa.array([f"u{i}" for i in range(users)])), Nodes("item", pa.array(np.arange(30)))]
    edges = [
        Edges(Relation("user", name, "item"), rng.integers(0, users, 180), rng.integers(0, 30, 180))
        for name in ("likes", "dislikes")
    ]
    return HIN.build(nodes, edges, duplicates="drop")


def labels_of(hin: HIN, queries: range = range(30)) -> Pairs:
    """Yes for users who like the same, unless one dislikes what the other likes."""
    likes, dislikes = (matrix.toarray() for matrix in hin.matrices.values())
    shared, clash = likes @ likes.T, likes @ dislikes.T + dislikes @ likes.T
    rows = np.array(
        [(q, t) for q in queries for t in range(hin.num_nodes("user")) if q != t and shared[q, t] + clash[q, t]]
    )
    return Pairs("user", rows[:, 0], rows[:, 1], (shared - clash)[rows[:, 0], rows[:, 1]].clip(0, 1))


@pytest.fixture(scope="module")
def hin() -> HIN:
    return graph()


@pytest.fixture(scope="module")
def model(hin: HIN) -> Linear:
    return Linear(max_length=2).fit(hin, labels_of(hin))


def test_a_path_can_count_against_a_pair(hin: HIN, model: Linear) -> None:
    """A sum with weights of 0 or more cannot say it."""
    rest = labels_of(hin, range(30, 60))
    scores = [model.score_rows(np.array([q]))[0][t] for q, t in zip(rest.queries, rest.targets, strict=True)]
    assert auc(rest.scores, np.array(scores)) > 0.95
    assert {weight > 0 for _, weight in model.weights_[:4]} == {True, False}


def test_weights_minimise_the_loss_of_the_docstring() -> None:
    rng = np.random.default_rng(0)
    matrix, scores, counts = rng.normal(size=(40, 5)), rng.random(40).round(1), rng.integers(1, 4, 40).astype(float)

    def loss(at: np.ndarray) -> float:
        chances = 1 / (1 + np.exp(-(at[0] + matrix @ at[1:])))
        losses = -(scores * np.log(chances) + (1 - scores) * np.log(1 - chances))
        return float(counts @ losses / counts.sum() + 0.05 * (at[1:] ** 2).sum() / 2)

    solution = fit_logistic(matrix, scores, counts, 0.05)
    np.testing.assert_allclose(solution, minimize(loss, np.zeros(6), tol=1e-12).x, atol=1e-5)
    np.testing.assert_allclose(fit_logistic(matrix, scores, counts, 0.05, np.full(6, 3.0)), solution, atol=1e-6)


def test_labels_that_a_feature_separates_have_finite_weights() -> None:
    solution = fit_logistic(np.array([[-1.0], [1.0]] * 10), np.array([0.0, 1.0] * 10), np.ones(20), 1e-4)
    assert np.isfinite(solution).all()
    assert 5 < solution[1] < 50


def test_saved_as_json_alone_and_reproducible(hin: HIN, model: Linear, tmp_path: Path) -> None:
    folder = model.save(tmp_path)
    assert [file.name for file in folder.iterdir()] == ["config.json"]
    np.testing.assert_array_equal(npth.load_scorer(folder, hin).scores("u5"), model.scores("u5"))
    assert Linear(max_length=2).fit(hin, labels_of(hin)).fingerprint() == model.fingerprint()
    other = graph(seed=2, users=70)
    np.testing.assert_array_equal(model.bind(other).scores("u69"), npth.load_scorer(folder, other).scores("u69"))


@pytest.mark.parametrize(
    "learned",
    [{}, {"weights": [1.0]}, {"weights": None}, {"weights": ["x"] * 6}, {"base": float("inf")}, {"base": [0.0]}],
)
def test_damaged_models_are_refused(hin: HIN, model: Linear, tmp_path: Path, learned: dict[str, object]) -> None:
    folder = model.save(tmp_path)
    content = json.loads((folder / "config.json").read_text())
    params = content["params"] | {"learned": content["params"]["learned"] | learned if learned else {}}
    (folder / "config.json").write_text(json.dumps({"scorer": "linear", "params": params}))
    with pytest.raises(NeuPathError, match="holds no linear model that can be read"):
        npth.load_scorer(folder, hin)


def test_weights_times_features_add_up_to_the_margin(model: Linear) -> None:
    hits = model.top_k("u1", k=100)
    assert len(hits) > 3
    (unreached, *_) = (node for node in model.hin_.nodes["user"].ids.to_pylist() if node not in (*hits.ids, "u1"))
    for hit in (*hits[:3], hits[-1], Hit(None, unreached, None, 0.0)):
        why = explain_model(model, "u1", hit.id)
        assert isinstance(why, AttentionExplanation)
        assert why.score == hit.score
        if not hit.score:
            assert (why.contributions, why.margin) == ((), None)
            continue
        assert why.margin == pytest.approx(np.log(why.score / (1 - why.score)), rel=1e-6)
        assert [vars(each) for each in why.contributions] == [vars(each) for each in model.contributions("u1", hit.id)]
    best = model.contributions("u1", hits[0].id)
    assert best[0].value > 0
    assert sum(path.weight for path in model.attention_paths("u1", hits[0].id, 50)) == pytest.approx(1.0)


def test_two_types_and_examples_alone(hin: HIN) -> None:
    likes = hin.matrices[hin.schema.relations[0]]
    examples = [(f"u{u}", int(i)) for u in range(20) for i in likes[[u]].indices]
    model = Linear(max_length=3).fit(hin, examples, query_type="user", target_type="item")
    assert (model.source_type, model.target_type) == ("user", "item")
    assert set(model.top_k("u40", k=1).ids) <= set(likes[[40]].indices.tolist())


def test_features_that_say_nothing_have_no_weight(hin: HIN) -> None:
    """Of one query there is nothing to hold out; a constant feature, such as a path that joins no pair, is not used."""
    one = Pairs("user", np.zeros(2, dtype=np.int64), np.array([1, 2]), np.array([1.0, 0.0]))
    model = Linear(max_length=2).fit(hin, one)
    assert len(model.learned["used"]) < len(model.learned["weights"])
    assert np.isfinite(model.scores("u0")).all()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Linear(max_length=0), "max_length is 0; give a whole number of at least 1"),
        (lambda: Linear(device="cuda"), "linear runs on the CPU alone"),
        (lambda: Linear().fit(graph()), "give either labelled pairs or a teacher"),
        (lambda: Linear().fit(graph(), [("u1", "u2", 1.0)] * 2), "^all labels are 1, which leaves nothing"),
    ],
)
def test_refusals(make, message: str) -> None:
    with pytest.raises(NeuPathError, match=message):
        make()


def test_settings_are_read_and_set_as_scikit_learn_does(model: Linear) -> None:
    assert repr(model) == "Linear(max_length=2, candidates=5000, seed=0)"
    assert Linear().set_params(seed=3).get_params() == {"max_length": 4, "candidates": 5000, "seed": 3}


def test_an_unknown_option_names_the_known_ones() -> None:
    with pytest.raises(
        TypeError, match=r"Linear\(\) got an unexpected keyword argument 'trees' \(it takes candidates,"
    ):
        Linear(trees=3)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"fit\(\) got an unexpected keyword argument 'node_typ'"):
        Linear().fit(graph(), [("u1", "u2", 1.0)], node_typ="user")  # type: ignore[call-arg]

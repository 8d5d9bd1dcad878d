"""auto: what it chooses, its report, the stack, and that a killed run continues."""

import json
import os
import signal
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import neupath as npth
from neupath import NeuPathError
from neupath.engine.scorer import Scorer
from neupath.errors import SourceWarning
from neupath.evidence.html_report import render_html
from neupath.evidence.model_explanation import explain_model
from neupath.learn import auto
from neupath.learn.auto import STATE, train_auto
from neupath.learn.evaluation import evaluate_pairs
from neupath.learn.held_out import HeldOut
from neupath.learn.labels import Pairs, draw_pairs
from neupath.learn.registry import make_model
from neupath.learn.stack import Stack
from neupath.live import LiveGraph
from neupath.measures import Combination, Part
from neupath.store import Node, Update
from tests.graphs import shop_graph


def labels_of(path: str = "user-item-user", queries: int = 16) -> Pairs:
    return draw_pairs(npth.PathSim(path).fit(shop_graph()), [f"u{i}" for i in range(queries)], per_query=8)


def along(path: str):
    """A learner that knows one path, whatever the labels."""
    return lambda hin, _pairs, _allowed: Combination([Part("pathsim", path, 1.0)]).fit(hin)


Know = Callable[..., dict[str, Callable[..., Scorer]]]


@pytest.fixture
def know(monkeypatch: pytest.MonkeyPatch) -> Know:
    """Let auto know these learners and no others."""

    def learners(**known: Callable[..., Scorer]) -> dict[str, Callable[..., Scorer]]:
        monkeypatch.setattr(auto, "LEARNERS", known)
        return known

    return learners


@pytest.fixture
def learners(know: Know) -> dict[str, Callable[..., Scorer]]:
    return know(near=along("user-item-user"), far=along("user-item-tag-item-user"))


@pytest.mark.usefixtures("learners")
def test_takes_the_best_and_says_why(tmp_path: Path) -> None:
    hin = shop_graph()
    report = train_auto(hin, labels_of(), tmp_path)
    assert report.chosen == ("near",)
    assert report.reason == "near makes no mistake on held-out labels"
    assert [each.weight for each in report.tried] == [1.0, 0.0]
    scores = {each.learner: each.score for each in report.tried}
    assert scores["near"] == 1.0 > scores["far"]
    assert all(each.low <= each.score <= each.high for each in report.tried)
    assert json.loads((tmp_path / "auto.json").read_text())["chosen"] == ["near"]
    assert not (tmp_path / STATE).exists()
    loaded = npth.load_scorer(tmp_path, hin)
    assert loaded.top_k("u20", k=3) == npth.Combination([Part("pathsim", "user-item-user", 1.0)]).fit(hin).top_k(
        "u20", k=3
    )


def test_no_mistake_on_few_queries_does_not_decide(know: Know, tmp_path: Path) -> None:
    """A learner that is right on six queries may be lucky; on sixteen it is taken alone."""
    right = np.zeros(shop_graph().num_nodes("user"))
    right[:4] = [0.9, 0.8, 0.7, 0.5]
    other = np.append([0.9, 0.8, 0.4, 0.5], right[4:])
    know(pathboost=rank_by(right), infer=rank_by(other))
    labels = three_of_four()
    few = train_auto(shop_graph(), labels.of_queries(np.unique(labels.queries)[:6]), tmp_path / "few")
    assert few.tried[0].score == 1.0 > few.tried[1].score
    assert len(few.chosen) == 2
    assert "no other mix is better on held-out queries by two standard errors" in few.reason
    many = train_auto(shop_graph(), labels, tmp_path / "many")
    assert (many.chosen, many.reason) == (("pathboost",), "pathboost makes no mistake on held-out labels")


@pytest.mark.usefixtures("learners")
def test_stacks_what_helps(tmp_path: Path) -> None:
    hin = shop_graph()
    near, far = (npth.PathSim(path).fit(hin) for path in ("user-item-user", "user-item-tag-item-user"))
    rows = np.repeat(np.arange(30), 12), np.tile(np.arange(12), 30)
    truth = [sum(s.score_rows(rows[0][[i]])[0][rows[1][i]] / s.score_rows(np.arange(30)).std() for s in (near, far))
             for i in range(360)]  # fmt: skip
    keep = rows[0] != rows[1]
    labels = Pairs("user", rows[0][keep], rows[1][keep], np.array(truth)[keep] / max(truth))
    report = train_auto(hin, labels, tmp_path)
    assert set(report.chosen) == {"near", "far"}
    assert "% of the way from near alone to the mix that is best on held-out queries, which leads by" in report.reason
    weights = {each.learner: each.weight for each in report.tried}
    assert sum(weights.values()) == pytest.approx(1)
    assert list(report.chosen) == sorted(weights, key=lambda name: -weights[name])
    stack = npth.load_scorer(tmp_path, hin)
    assert isinstance(stack, Stack)
    assert stack.as_combination() is not None
    np.testing.assert_array_equal(stack.bind(hin).scores("u3"), stack.scores("u3"))


@pytest.mark.slow
def test_the_standard_mix_is_a_scorer_like_any_other(tmp_path: Path) -> None:
    """With labels that no learner can order without mistakes; the same seed gives the same scores."""
    pytest.importorskip("lightgbm")
    hin = shop_graph()
    rng = np.random.default_rng(0)
    queries, targets = np.repeat(np.arange(20), 12), np.tile(np.arange(20, 32), 20)
    near = npth.PathSim("user-item-user").fit(hin).score_rows(np.arange(20))[queries, targets] > 0
    labels = Pairs("user", queries, targets, np.where(rng.random(len(near)) < 0.2, ~near, near).astype(np.float64))
    report = train_auto(hin, labels, tmp_path / "first", learners=["pathboost", "infer"])
    assert report.chosen == ("pathboost", "infer")
    stack = npth.load_scorer(tmp_path / "first", hin)
    assert isinstance(stack, Stack)
    best = stack.top_k("u3", k=1).ids[0]
    assert stack.attention_paths("u3", best)[0].nodes[-1].id == best
    assert LiveGraph(hin).attach(stack).top_k("u3", k=5) == stack.top_k("u3", k=5)
    train_auto(hin, labels, tmp_path / "second", learners=["pathboost", "infer"])
    np.testing.assert_array_equal(npth.load_scorer(tmp_path / "second", hin).scores("u3"), stack.scores("u3"))


def test_a_stack_explains_its_own_score_by_all_learners() -> None:
    hin = shop_graph()
    near, far = (along(path)(hin, None, None) for path in ("user-item-user", "user-item-tag-item-user"))
    silent = rank_by(np.linspace(0, 1, hin.num_nodes("user")))(None, None, None).fit(hin)
    scales = [(0.3, 0.1, 0.2), (0.6, 0.4, 0.3), (0.1, 0.5, 0.4)]
    members = [dict(zip(("weight", "mean", "spread"), scale, strict=True)) for scale in scales]
    stack = Stack.of([near, far, silent], members)
    hits = stack.top_k("u3", k=1000)
    for hit in (hits[0], hits[7], hits[-1]):
        why = explain_model(stack, "u3", hit.id)
        assert (why.score, why.rank, why.num_targets) == (hit.score, hit.rank, len(hits))
        assert sum(learner.share for learner in why.learners) == pytest.approx(why.score, abs=1e-12)
        assert [(learner.name, learner.weight) for learner in why.learners] == [
            ("infer", 0.6), ("infer", 0.3), ("fixed", 0.1),
        ]  # fmt: skip
        assert [learner.score for learner in why.learners] == [each.score("u3", hit.id) for each in (far, near, silent)]
        assert why.learners[2].explanation is None
        for learner in why.learners:
            words = f"{learner.name} (weight {learner.weight:.2f}) adds {learner.share:+.2f}"
            assert words in why.summary
            for text in (repr(why), render_html(why), why._repr_html_()):
                assert words in text
        content = json.loads(json.dumps(why.to_dict()))
        assert content["rank"] == hit.rank
        assert [each["share"] for each in content["learners"]] == [learner.share for learner in why.learners]
        assert sum(group["share"] for group in content["groups"]) == pytest.approx(float(far.score("u3", hit.id) > 0))
    with pytest.raises(NeuPathError, match="shop"):
        explain_model(stack, "u3", hits[0].id, by="shop")


@pytest.mark.slow
def test_only_the_networks_of_a_stack_have_a_device(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    hin = shop_graph()
    settings = {"dim": 4, "epochs": 1, "seed": 0, "device": "cpu"}
    scorers = [along("user-item-user")(hin, None, None), make_model("gcn", **settings).fit(hin, labels_of())]
    Stack.of(scorers, [{"weight": 0.5, "mean": 0.0, "spread": 1.0}] * 2).save(tmp_path)
    devices = []

    def spy(path: Path, hin, device: str | None) -> Scorer:
        devices.append(device)
        return npth.load_scorer(path, hin)

    monkeypatch.setattr("neupath.learn.stack.load_scorer", spy)
    assert npth.load_scorer(tmp_path, hin, "cuda").top_k("u3", k=1)
    assert devices == [None, "cuda"]


def rank_by(scores_of_query):
    """A learner that gives targets the same scores for every query."""

    class Fixed(Scorer):
        name = "fixed"
        source_type = target_type = "user"

        def params(self) -> dict[str, object]:
            return {}

        def fit(self, hin) -> Scorer:
            self.hin_ = hin
            return self

        bind = fit

        def score_rows(self, queries):
            return np.tile(scores_of_query, (len(queries), 1))

    return lambda hin, _pairs, _allowed: Fixed().fit(hin)


def three_of_four() -> Pairs:
    """Of sixteen queries, three similar targets and one other: too few others to judge the top of a ranking by."""
    return Pairs("user", np.repeat(np.arange(6, 22), 4), np.tile([0, 1, 2, 3], 16), np.tile([1.0, 1.0, 1.0, 0.0], 16))


@pytest.mark.parametrize(("strangers", "weights"), [(0.0, [0.6, 0.4]), (5.0, [1.0, 0.0])])
def test_a_stack_must_not_cost_the_top(strangers: float, weights: list[float], know: Know, tmp_path: Path) -> None:
    """Together the learners order all labels, but the second may put targets without a label above these."""
    hin = shop_graph()
    users = hin.num_nodes("user")
    labels = three_of_four()
    first, second = np.zeros(users), np.full(users, strangers)
    first[:4], second[:4] = [1.0, 0.6, 0.3, 0.5], [0.3, 0.6, 1.0, 0.5]
    know(first=rank_by(first), second=rank_by(second))
    report = train_auto(hin, labels, tmp_path)
    assert [each.weight for each in report.tried] == pytest.approx(weights)


def test_of_equal_learners_the_one_with_the_better_top(know: Know, tmp_path: Path) -> None:
    """Both order two thirds of the labels; one puts targets without a label above them."""
    hin = shop_graph()
    labels = three_of_four()
    low, high = np.full(hin.num_nodes("user"), 5.0), np.zeros(hin.num_nodes("user"))
    low[:4] = high[:4] = [1.0, 0.6, 0.3, 0.5]
    know(low=rank_by(low), high=rank_by(high))
    report = train_auto(hin, labels, tmp_path)
    assert report.chosen == ("high",)
    assert report.tried[0].score == report.tried[1].score
    assert report.tried[0].ndcg < report.tried[1].ndcg < 1


def test_without_clear_evidence_the_standard_mix(know: Know, tmp_path: Path) -> None:
    far = along("user-item-tag-item-user")
    know(infer=far, nbfnet=far, pathboost=far)
    report = train_auto(shop_graph(), labels_of(), tmp_path)
    assert report.chosen == ("pathboost", "infer")
    weights = {each.learner: each.weight for each in report.tried}
    assert weights == pytest.approx({"infer": 3 / 11, "nbfnet": 0.0, "pathboost": 8 / 11}), "the mix of what finished"
    assert report.reason.startswith("0.27 infer + 0.73 pathboost: no other mix is better on held-out queries")


def test_moves_towards_what_is_clearly_better(know: Know, tmp_path: Path) -> None:
    hin = shop_graph()
    worse, better = np.random.default_rng(0).normal(size=(2, hin.num_nodes("user")))
    worse[:4], better[:4] = [0.9, 0.8, 0.5, 0.7], [9.0, 8.0, 5.0, 7.0]  # two of three above the other in each query
    know(pathboost=rank_by(worse), infer=rank_by(worse), nbfnet=rank_by(better))
    labels = three_of_four()
    report = train_auto(hin, labels, tmp_path)
    assert report.chosen[0] == "nbfnet"
    assert report.tried[2].weight > 0.5
    assert "% of the way from 0.73 pathboost + 0.27 infer to the mix that is best on held-out" in report.reason


def test_mixes_are_all_weights_in_fifths() -> None:
    mixes = auto.list_mixes(3)
    assert len(np.unique(mixes, axis=0)) == len(mixes) == 21
    np.testing.assert_allclose(mixes.sum(axis=1), 1)
    np.testing.assert_array_equal(mixes[:3], np.eye(3))


def test_weights_are_averaged_over_samples_of_the_queries() -> None:
    """A clear winner takes all; two that differ by luck share; equally good ones leave it to the first."""
    mixes, rng = np.eye(2), np.random.default_rng(0)
    noise = rng.normal(size=(2, 40))
    clear = auto.average_best_mix(mixes, noise + np.array([[9.0], [0.0]]), seed=0)
    np.testing.assert_array_equal(clear, [1, 0])
    level = noise - noise.mean(axis=1, keepdims=True)
    shared = auto.average_best_mix(mixes, level, seed=0)
    assert 0.3 < shared[0] < 0.7
    np.testing.assert_array_equal(auto.average_best_mix(mixes, np.ones((2, 40)), seed=0), [1, 0])
    np.testing.assert_array_equal(shared, auto.average_best_mix(mixes, level, seed=0))


def test_metric_fits_the_labels() -> None:
    yes_no = Pairs("user", np.array([0, 0, 1]), np.array([1, 2, 3]), np.array([1.0, 0.0, 1.0]))
    assert HeldOut.of(yes_no, 9, 0).metric == "AUC"
    assert HeldOut.of(labels_of(), 9, 0).metric == "concordance"
    by_query = HeldOut.of(yes_no, 9, 0).order_by_query(np.array([0.5, 0.5, 0.1]))
    assert by_query[0] == 0.5
    assert np.isnan(by_query[1])


def test_labels_that_train_nothing(tmp_path: Path) -> None:
    report = train_auto(npth.load("toy"), [("Mike", "Bob", 1.0), ("Mike", "Jim", 0.1)], tmp_path)
    assert report.chosen == ("infer",)
    assert report.reason.startswith("2 labels of 1 query: too few to train a model on")
    assert report.reason.endswith("so nothing could be held out: infer it is")
    labels = [(f"u{query}", f"u{target}", 0.0) for query in range(12) for target in range(20, 25)]
    with pytest.raises(NeuPathError, match="^all labels are 0, and none says what is similar"):
        train_auto(shop_graph(), labels, tmp_path)


def test_learners_that_cannot_be_used_are_named(learners, tmp_path: Path) -> None:
    def refuse(*_: object) -> Scorer:
        raise NeuPathError("nothing to see")

    learners["refusing"] = refuse
    report = train_auto(shop_graph(), labels_of(), tmp_path)
    assert {each.learner: each.note for each in report.tried}["refusing"] == "left out: nothing to see"
    for options, message in (
        ({"learners": ["magic"]}, "auto knows no learner 'magic'; it tries near, far, refusing"),
        ({"budget": 0}, "budget is 0; it must be more than 0 seconds"),
        ({"learners": ["refusing"]}, "no learner finished within 600 s"),
        ({"device": "tpu"}, "device is 'tpu'; it can be 'cpu' or 'cuda'"),
    ):
        with pytest.raises(NeuPathError, match=message):
            train_auto(shop_graph(), labels_of(), tmp_path / "none", **options)


def test_the_first_that_can_be_used_finishes_whatever_the_budget(learners, tmp_path: Path) -> None:
    """A busy machine cannot starve the learner that comes first."""
    report = train_auto(shop_graph(), labels_of(), tmp_path, budget=1e-9)
    assert report.chosen == ("near",)
    assert {each.learner: each.note for each in report.tried} == {"near": "", "far": "left out: the budget was spent"}
    assert next(iter(learners)) == "near"


def test_networks_get_the_device(know: Know, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """CUDA if there is one, unless another is given; here there seems to be one."""
    model = pytest.importorskip("neupath.learn.models.model")
    devices = []

    def spy(hin, pairs, allowed):
        devices.append(allowed.device)
        return along("user-item-user")(hin, pairs, allowed)

    know(nbfnet=spy)
    with monkeypatch.context() as patch:
        patch.setattr(model, "choose_device", lambda device: device or "cuda")
        train_auto(shop_graph(), labels_of(), tmp_path, device="cpu")
        train_auto(shop_graph(), labels_of(), tmp_path)
    assert devices == ["cpu"] * 4 + ["cuda"] * 4, "three parts and what is chosen"


def test_without_torch_networks_are_left_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in sys.modules if name.startswith("neupath.learn.models")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "torch", None)
    report = train_auto(shop_graph(), labels_of(), tmp_path, learners=["infer", "nbfnet"])
    assert report.chosen == ("infer",)
    assert report.tried[1].note.startswith("left out: this needs torch")


def test_a_member_that_fails_at_the_end_is_left_out(know: Know, tmp_path: Path) -> None:
    hin, labels = shop_graph(), labels_of()

    def full(hin, pairs, allowed):
        if len(pairs) == len(labels):
            raise NeuPathError("the GPU is full")
        return along("user-item-tag-item-user")(hin, pairs, allowed)

    far = along("user-item-tag-item-user")
    know(pathboost=far, infer=far, neupath=full)
    report = train_auto(hin, labels, tmp_path)
    assert report.chosen == ("pathboost", "infer")
    assert [each.weight for each in report.tried] == pytest.approx([8 / 11, 3 / 11, 0.0])
    assert report.tried[2].note == "left out: the GPU is full"
    assert (
        npth.load_scorer(tmp_path, hin).top_k("u20", k=3).ids
        == npth.PathSim("user-item-tag-item-user").fit(hin).top_k("u20", k=3).ids
    )
    know(neupath=full)
    with pytest.raises(NeuPathError, match="the GPU is full"):
        train_auto(hin, labels, tmp_path / "none")


# ---- Held-out labels -----------------------------------------------------------------------------
def both_directions(seed: int = 0) -> Pairs:
    """Coin flips for 120 pairs of 24 users, each written in both directions."""
    rng = np.random.default_rng(seed)
    chosen = rng.permutation(276)[:120]
    first, second = (side[chosen] for side in np.triu_indices(24, 1))
    coins = (rng.random(120) < 0.5).astype(np.float64)
    return Pairs("user", np.append(first, second), np.append(second, first), np.append(coins, coins))


def test_a_label_is_not_held_out_while_its_mirror_image_is_learned_from(know: Know, tmp_path: Path) -> None:
    """A learner that repeats what it was told of a pair, in either direction, knows nothing of held-out labels."""

    def repeat(hin, pairs, _allowed) -> Scorer:
        told = np.full((hin.num_nodes("user"),) * 2, 0.5)
        told[pairs.queries, pairs.targets] = told[pairs.targets, pairs.queries] = pairs.scores
        scorer = rank_by(told[0])(hin, None, None)
        scorer.score_rows = lambda queries: told[queries]
        return scorer

    know(repeat=repeat)
    assert train_auto(shop_graph(), both_directions(), tmp_path).tried[0].score == 0.5


@pytest.mark.slow
def test_coin_flips_in_both_directions_are_not_predicted(tmp_path: Path) -> None:
    pytest.importorskip("lightgbm")
    hin = shop_graph()
    runs = [train_auto(hin, both_directions(seed), tmp_path / f"{seed}", learners=["pathboost"]) for seed in range(6)]
    assert np.mean([run.tried[0].score for run in runs]) == pytest.approx(0.5, abs=0.05)


def test_a_learner_at_chance_has_no_weight(know: Know, tmp_path: Path) -> None:
    """`infer` and `pathboost` have standard weights, but one of them ranks held-out labels the wrong way round."""
    hin = shop_graph()
    good = np.zeros(hin.num_nodes("user"))
    good[:4] = [0.9, 0.8, 0.5, 0.7]
    know(pathboost=rank_by(-good), infer=rank_by(good))
    report = train_auto(hin, three_of_four(), tmp_path)
    assert report.chosen == ("infer",)
    assert report.reason == "infer alone ranks held-out labels better than chance"
    assert report.tried[0].note == "no weight: AUC not above chance by a standard error"
    assert report.tried[0].score < 0.5 < report.tried[1].score


def test_where_all_learners_are_at_chance_the_standard_mix_without_networks(know: Know, tmp_path: Path) -> None:
    hin = shop_graph()
    scores = np.random.default_rng(0).normal(size=(2, hin.num_nodes("user")))
    scores[:, :4] = [0.0, 0.0, 0.0, 1.0]
    first, second = map(rank_by, scores)
    know(neupath=first, infer=second, pathboost=first)
    report = train_auto(hin, three_of_four(), tmp_path)
    assert report.chosen == ("pathboost", "infer")
    assert "no learner ranks held-out labels better than chance by a standard error" in report.reason
    assert {each.note for each in report.tried} == {"AUC not above chance by a standard error"}, "two have a weight"


def test_networks_need_labels_of_fifteen_queries(know: Know, tmp_path: Path) -> None:
    far = along("user-item-tag-item-user")
    know(pathboost=far, neupath=far)
    few = train_auto(shop_graph(), labels_of(queries=14), tmp_path / "few")
    assert few.tried[1].note == "left out: networks take labels of 15 queries or more, and these are of 14"
    assert train_auto(shop_graph(), labels_of(queries=15), tmp_path / "more").tried[1].score is not None
    with pytest.raises(
        NeuPathError, match="the labels are of 14 queries, and networks such as neupath take 15 or more"
    ):
        train_auto(shop_graph(), labels_of(queries=14), tmp_path / "none", learners=["neupath"])


def test_targets_without_a_label_count_as_dissimilar_only_where_that_is_said(know: Know, tmp_path: Path) -> None:
    """With enough labels that say no, the nDCG is among labels alone; it is not lost to targets nobody judged."""
    hin = shop_graph()
    strangers_first = np.full(hin.num_nodes("user"), 9.0)
    strangers_first[:4] = [0.9, 0.8, 0.5, 0.7]
    know(infer=rank_by(strangers_first))
    one_no = three_of_four()
    said = train_auto(hin, one_no, tmp_path / "said")
    assert "random targets without a label count as dissimilar" in said.unlabelled
    assert said.tried[0].ndcg < 0.5
    half_no = Pairs("user", one_no.queries, one_no.targets, np.tile([1.0, 1.0, 0.0, 0.0], 16))
    judged = train_auto(hin, half_no, tmp_path / "judged")
    assert judged.unlabelled == ""
    assert judged.tried[0].ndcg > 0.9


def test_examples_alone_say_what_they_are_compared_with(tmp_path: Path) -> None:
    """The counts are those of the labels that were given."""
    examples = [(f"u{query}", f"u{target}") for query in range(20, 26) for target in range(3)]
    report = train_auto(shop_graph(), examples, tmp_path, learners=["infer"])
    assert (report.labels, report.queries) == (18, 6)
    assert "90 beside the examples, in training and in AUC" in report.unlabelled


def test_the_mix_is_judged_as_its_members_are(know: Know, tmp_path: Path) -> None:
    hin = shop_graph()
    first, second = np.zeros((2, hin.num_nodes("user")))
    first[:4], second[:4] = [1.0, 0.6, 0.3, 0.5], [0.3, 0.6, 1.0, 0.5]
    know(first=rank_by(first), second=rank_by(second))
    report = train_auto(hin, three_of_four(), tmp_path)
    assert report.mix is not None
    assert report.mix.score == 1.0 > max(each.score for each in report.tried)
    assert report.to_dict()["mix"] == json.loads((tmp_path / "auto.json").read_text())["mix"]
    assert report.mix.ndcg >= max(each.ndcg for each in report.tried)


def test_equal_values_of_few_queries_are_no_certainty(know: Know, tmp_path: Path) -> None:
    """Sixteen queries without a mistake do not show that there are none: a fifth of all queries could have one."""
    hin = shop_graph()
    right = np.zeros(hin.num_nodes("user"))
    right[:3] = 1.0
    know(infer=rank_by(right))
    (tried,) = train_auto(hin, three_of_four(), tmp_path).tried
    assert (tried.score, tried.high) == (1.0, 1.0)
    assert 0.75 < tried.low < 0.85


# ---- Stacks over changed graphs ------------------------------------------------------------------
@pytest.fixture
def stack() -> Stack:
    """A stack of a path, which fits any graph with this schema, and of a network that knows the nodes one by one."""
    pytest.importorskip("torch")
    hin = shop_graph()
    network = make_model("gcn", dim=4, epochs=1, seed=0, device="cpu").fit(hin, labels_of())
    parts = [{"weight": 0.75, "mean": 0.0, "spread": 0.5}, {"weight": 0.25, "mean": 0.0, "spread": 1.0}]
    return Stack.of([along("user-item-user")(hin, None, None), network], parts)


def with_one_more_tag() -> npth.HIN:
    live = LiveGraph(shop_graph())
    live.update(Update(add_nodes=[Node("tag", "t99")]))
    return live.view().hin


ALONE = "gcn of the stack combination \\+ gcn is left out, and the weights of the others are scaled up"


@pytest.mark.slow
def test_a_stack_leaves_out_what_does_not_fit_a_changed_graph(stack: Stack, tmp_path: Path) -> None:
    hin, changed = shop_graph(), with_one_more_tag()
    expected = along("user-item-user")(changed, None, None).top_k("u3").ids
    with pytest.warns(SourceWarning, match=ALONE):
        bound = stack.bind(changed)
    assert bound.top_k("u3").ids == expected
    assert bound.members == [{"weight": 1.0}]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert stack.bind(changed).left_out == ("gcn",), "said once"
        np.testing.assert_array_equal(stack.bind(hin).scores("u3"), stack.scores("u3"))
        again = npth.load_scorer(stack.save(tmp_path), hin)
    assert again.left_out == ()
    np.testing.assert_allclose(again.scores("u3"), stack.scores("u3"))
    with pytest.warns(SourceWarning, match=ALONE):
        loaded = npth.load_scorer(tmp_path, changed)
    np.testing.assert_array_equal(loaded.scores("u3"), bound.scores("u3"))


@pytest.mark.slow
def test_a_stack_follows_a_live_graph(stack: Stack) -> None:
    live = LiveGraph(shop_graph())
    live.attach(stack)
    assert live.view().scorer(stack).left_out == ()
    for tag in ("t98", "t99"):
        live.update(Update(add_nodes=[Node("tag", tag)]))
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            found = live.view().scorer(stack)
        assert found.left_out == ("gcn",)
        assert len(said) == (tag == "t98")
        assert found.top_k("u3", k=3).ids == npth.PathSim("user-item-user").fit(live.view().hin).top_k("u3", k=3).ids


@pytest.mark.slow
def test_a_stack_of_which_nothing_fits_says_so(stack: Stack, tmp_path: Path) -> None:
    networks = Stack.of(stack.scorers_[1:], stack.members[1:])
    for bind in (networks.bind, lambda hin: npth.load_scorer(networks.save(tmp_path), hin)):
        with pytest.raises(NeuPathError, match="no member of this stack fits the graph: gcn knows each node"):
            bind(with_one_more_tag())


@pytest.mark.slow
def test_a_node_from_which_no_path_leads_has_no_hits(stack: Stack) -> None:
    """A network has an opinion on any pair of nodes, also on those of a node without edges."""
    assert stack.top_k("u3")
    assert stack.top_k("u39").ids == ()
    assert not stack.scores("u39").any()
    why = explain_model(stack, "u39", "u3")
    assert why.summary.startswith("No path of any length leads from User 39 to any other user, so it has no hits")
    assert [learner.share for learner in why.learners] == [0.0] * len(why.learners)
    assert why.shares_text in render_html(why)


def test_targets_that_no_member_relates_have_the_score_0() -> None:
    hin = shop_graph()
    paths = [along(path)(hin, None, None) for path in ("user-item-user", "user-item-tag-item-user")]
    together = Stack.of(paths, [{"weight": 0.5, "mean": 0.4, "spread": 0.3}] * 2)
    related = sum(path.scores("u3") for path in paths) > 0
    np.testing.assert_array_equal(together.scores("u3") > 0, related)
    assert not together.scores("u3")[~related].any()


@pytest.mark.slow
def test_a_stack_is_evaluated_by_its_ranking(stack: Stack) -> None:
    labels = labels_of()
    evaluation = evaluate_pairs(stack, labels)
    assert evaluation.rmse is evaluation.r2 is None
    assert evaluation.auc > 0.5
    assert (
        evaluation.note == "the scores of a stack come from ranks and estimate no labels, so RMSE and R² are left out"
    )
    alone = evaluate_pairs(stack.scorers_[0], labels)
    assert (alone.rmse, alone.r2, alone.note) == (pytest.approx(0.0), pytest.approx(1.0), None)


KILLED = """
import os, signal, sys
from neupath.evidence.model_explanation import explain_model
from neupath.evidence.html_report import render_html
from neupath.learn import auto
from tests.graphs import shop_graph
from tests.learn.test_auto import along, labels_of

calls = 0

def dies(hin, pairs, allowed):
    global calls
    calls += 1
    if calls == 2 and sys.argv[2] == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    return along("user-item-tag-item-user")(hin, pairs, allowed)

auto.LEARNERS = {"near": along("user-item-user"), "far": dies}
report = auto.train_auto(shop_graph(), labels_of(), sys.argv[1])
print(calls, report.chosen, [round(each.score, 9) for each in report.tried])
"""


@pytest.mark.slow
@pytest.mark.usefixtures("learners")
def test_a_killed_run_continues(tmp_path: Path) -> None:
    """The second run makes only what the first did not finish, and has the result of a run that was not killed."""

    def run(how: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", KILLED, str(tmp_path / "killed"), how]
        return subprocess.run(command, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[2],
                              env=os.environ)  # fmt: skip

    assert run("die").returncode == -signal.SIGKILL
    assert json.loads((tmp_path / "killed" / STATE).read_text())["folds"] == {"near": 3, "far": 1}
    again = run("live")
    assert again.returncode == 0, again.stderr
    whole = train_auto(shop_graph(), labels_of(), tmp_path / "whole")
    assert again.stdout.strip() == f"2 {whole.chosen} {[round(each.score, 9) for each in whole.tried]}"

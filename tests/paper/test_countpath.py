"""CountPath: which meta-paths it finds, and how exact it becomes."""

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")


import neupath as npth
from neupath import HIN
from neupath.errors import QueryError
from neupath.evidence.model_explanation import CombinedExplanation, explain_model
from neupath.learn.evaluation import evaluate
from neupath_paper.countpath import CountPath
from tests.learn.models.small_graphs import users


@pytest.mark.parametrize("path", ["user-item-user", "user-item-tag-item-user"])
@pytest.mark.slow
def test_finds_the_meta_path_and_is_exact(hin: HIN, path: str) -> None:
    teacher = npth.PathSim(path).fit(hin)
    model = CountPath(device="cpu").fit(hin, teacher=teacher, queries=users(50))
    assert model.rounded_
    assert model.metapaths() == [(path, pytest.approx(1.0))]
    evaluation = evaluate(model, teacher, users(55, 79))
    assert evaluation.rmse_all < 1e-9
    assert evaluation.ndcg == pytest.approx(1.0)


def test_scores_split_over_the_nodes_at_which_paths_meet(hin: HIN) -> None:
    model = CountPath(epochs=2, device="cpu").fit(
        hin, teacher=npth.PathSim("user-item-user").fit(hin), queries=users(9)
    )
    assert model.rounded_
    for target in ("u2", "u3", "u1"):
        why = explain_model(model, "u1", target, limit=10_000)
        assert isinstance(why, CombinedExplanation)
        assert why.score == pytest.approx(model.score("u1", target), rel=1e-12)
        groups = [group for part in why.parts for group in part.groups(why.score)]
        assert sum(group.score for group in groups) == pytest.approx(why.score, rel=1e-12)
        assert sum(group.share for group in groups) == pytest.approx(1.0 if why.score else 0.0, rel=1e-12)
        assert sum(group.paths for part in why.parts for group in part.explanation.groups) == sum(
            part.explanation.num_instances for part in why.parts
        )
        hits = model.top_k("u1", 1000)
        assert why.rank == (
            hits.ids.index(target) + 1 if target != "u1" and hits.scores[hits.ids.index(target)] else None
        )


def test_labels_that_no_path_explains_leave_an_error(hin: HIN) -> None:
    rng = np.random.default_rng(0)
    rows = [(f"u{q}", f"u{t}", float(rng.random())) for q in range(20) for t in range(30, 40)]
    noise = CountPath(epochs=5, device="cpu").fit(hin, rows)
    teacher = npth.PathSim("user-item-user").fit(hin)
    explained = [(query, target, teacher.score(query, target)) for query, target, _ in rows]
    exact = CountPath(epochs=5, device="cpu").fit(hin, explained)
    assert noise.validation_rmse_ > 0.25
    assert exact.validation_rmse_ < 1e-6


@pytest.mark.slow
def test_fitting_again_forgets_the_first_fit(hin: HIN) -> None:
    model = CountPath(device="cpu")
    for path in ("user-item-user", "user-item-tag-item-user"):
        teacher = npth.PathSim(path).fit(hin)
        model.fit(hin, teacher=teacher, queries=users(50))
        np.testing.assert_allclose(model.scores("u60"), teacher.scores("u60"), atol=1e-9)
    assert model.top_k([]) == []


def test_too_few_queries_for_validation_is_said(hin: HIN) -> None:
    model = CountPath(epochs=2).fit(hin, [("u1", "u2", 1.0), ("u1", "u3", 0.5), ("u2", "u4", 0.0)])
    assert model.validation_rmse_ is None


def test_labels_that_are_all_zero(hin: HIN) -> None:
    model = CountPath().fit(hin, [("u1", "u2", 0.0), ("u1", "u3", 0.0)])
    assert model.metapaths() == []
    assert not model.scores("u1").any()
    with pytest.raises(QueryError, match="the saved countpath shows no paths of its own"):
        explain_model(model, "u1", "u2")


def test_reports_the_error_of_the_rounded_gates(hin: HIN, tmp_path: Path) -> None:
    teacher = npth.PathSim("user-item-user").fit(hin)
    model = CountPath().fit(hin, teacher=teacher, queries=users(40))
    assert model.rounded_
    assert model.validation_rmse_ == pytest.approx(0.0, abs=1e-9)
    assert npth.load_scorer(model.save(tmp_path), hin).rounded_

"""Real labels: what is withheld is gone from the graph, and all learners are judged on queries they have not seen."""

import json
from pathlib import Path

import numpy as np
import pytest

import neupath as npth
from neupath import HIN, NeuPathError
from neupath_paper import real_labels
from neupath_paper.real_labels import (
    TASKS,
    RealRun,
    Withheld,
    draw_labels,
    judge,
    make_comparison,
    make_table,
    reproduce_real,
)
from tests.graphs import shop_graph


def withhold(hin: HIN) -> Withheld:
    return real_labels._classes("has", "item")(hin)


def test_withheld_relations_are_gone() -> None:
    task = withhold(shop_graph())
    assert [relation.name for relation in task.hin.schema.relations] == ["buys"]
    tags = shop_graph().matrices[shop_graph().schema.relations[1]]
    for query, target in ((0, 1), (3, 7), (5, 5)):
        shared = bool(set(tags[[query]].indices) & set(tags[[target]].indices)) and query != target
        assert bool(task.truth[query, target]) == shared


def test_labels_and_tests_share_no_query() -> None:
    task = withhold(shop_graph())
    labels, queries = draw_labels(task, seed=0)
    assert not set(labels.queries) & set(queries)
    assert set(labels.scores) == {0.0, 1.0}
    perfect = npth.PathSim("item-tag-item").fit(shop_graph())
    aucs, ndcgs = judge(task, perfect, labels, queries, 0)
    assert min(aucs) > 0.99
    assert np.mean(ndcgs) > 0.99


@pytest.mark.slow
def test_every_learner_and_auto_are_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "shop").mkdir()
    monkeypatch.setattr(real_labels, "TASKS", {"items of one tag": ("shop", withhold)})
    monkeypatch.setattr(real_labels, "LEARNERS", {"infer": real_labels.LEARNERS["infer"]})
    monkeypatch.setattr(real_labels, "load", lambda _: shop_graph())
    monkeypatch.setattr("neupath.learn.auto.LEARNERS", {"infer": real_labels.LEARNERS["infer"]})
    runs = reproduce_real(tmp_path / "out", tmp_path, budget=60)
    assert [run.learner for run in runs] == ["infer", "auto"]
    assert runs[1].note == "infer"
    assert runs[0].auc == runs[1].auc
    lines = (tmp_path / "out" / "real.jsonl").read_text().splitlines()
    assert [json.loads(line)["learner"] for line in lines] == ["infer", "auto"]
    again = reproduce_real(tmp_path / "out", tmp_path, budget=60)
    assert again == runs, "what is finished is not made again"
    table = make_table(runs, "auc", "AUC")
    assert "| labels | infer | auto |" in table
    assert table.count("**") >= 4
    with pytest.raises(NeuPathError, match="no task 'x'"):
        reproduce_real(tmp_path / "out", tmp_path, tasks=["x"])
    with pytest.raises(NeuPathError, match="no learner 'magic'"):
        reproduce_real(tmp_path / "out", tmp_path, learners=["magic"])
    alone = reproduce_real(tmp_path / "alone", tmp_path, budget=60, learners=["auto"])
    assert [run.learner for run in alone] == ["auto"]
    with pytest.raises(NeuPathError, match="no data is given"):
        reproduce_real(tmp_path / "out", None)
    with pytest.raises(NeuPathError, match="device is 'tpu'"):
        reproduce_real(tmp_path / "refused", tmp_path, device="tpu")
    assert not (tmp_path / "refused").exists()


def test_what_was_left_out_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "shop").mkdir()
    monkeypatch.setattr(real_labels, "TASKS", {"items of one tag": ("shop", withhold)})
    monkeypatch.setattr(real_labels, "load", lambda _: shop_graph())
    known = real_labels.LEARNERS["infer"]

    def fails(*_: object) -> None:
        raise NeuPathError("no")

    monkeypatch.setattr(real_labels, "LEARNERS", {"infer": fails})
    first = reproduce_real(tmp_path / "out", tmp_path, learners=["infer"])
    assert [run.note for run in first] == ["left out: no"]
    monkeypatch.setattr(real_labels, "LEARNERS", {"infer": known})
    assert [bool(run.auc) for run in reproduce_real(tmp_path / "out", tmp_path, learners=["infer"])] == [True]


def test_paired_differences() -> None:
    """Rows count alike, however many queries they have; a learner without a row is left out."""
    runs = [
        RealRun("a", "infer", 0.0, [0.5, 0.5], [0.1, 0.3]), RealRun("a", "auto", 0.0, [0.6, 0.6], [0.1, 0.3]),
        RealRun("b", "infer", 0.0, [0.5], [0.2]), RealRun("b", "auto", 0.0, [0.9], [0.1]),
        RealRun("a", "gat", 0.0, [0.5], [0.2]), RealRun("b", "gat", 0.0, [], []),
    ]  # fmt: skip
    assert make_comparison([runs]).splitlines()[2:] == [
        "| infer | +0.2500 (+0.2500 to +0.2500) | -0.0500 (-0.0500 to -0.0500) |"
    ]


@pytest.mark.parametrize("name", TASKS)
@pytest.mark.slow
def test_public_graphs_have_what_is_withheld(data: Path, name: str) -> None:
    if TASKS[name][0] == "hetionet":
        pytest.skip("hetionet takes some 10 s to read; neupath reproduce real reads it")
    task = TASKS[name][1](npth.load(data / TASKS[name][0]))
    assert task.truth.nnz > 1000

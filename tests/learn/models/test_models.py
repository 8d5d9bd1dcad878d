"""The learned scorers: what they promise besides the contract of all scorers."""

import json
import signal
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

torch = pytest.importorskip("torch", reason="the learn extra is not installed")
pytest.importorskip("safetensors", reason="the learn extra is not installed")

import neupath as npth  # noqa: E402
from neupath import HIN, Edges, NeuPathError, Nodes, Relation  # noqa: E402
from neupath.learn.evaluation import evaluate  # noqa: E402
from neupath.learn.models import CountPath, NeuPath  # noqa: E402
from neupath.learn.models.training import CHECKPOINT, LOG  # noqa: E402


def library(seed: int = 5, users: int = 80) -> HIN:
    rng = np.random.default_rng(seed)
    return HIN.build(
        [
            Nodes("user", pa.array([f"u{i}" for i in range(users)]), pa.array([f"User {i}" for i in range(users)])),
            Nodes("item", pa.array(np.arange(60))),
            Nodes("tag", pa.array([f"t{i}" for i in range(12)])),
        ],
        [
            Edges(Relation("user", "buys", "item"), rng.integers(0, users - 1, 220), rng.integers(0, 60, 220)),
            Edges(Relation("item", "has", "tag"), np.arange(60), rng.integers(0, 12, 60)),
        ],
        duplicates="drop",
    )


def users(*bounds: int) -> list[str]:
    return [f"u{i}" for i in range(*bounds)]


@pytest.fixture(scope="module")
def hin() -> HIN:
    return library()


@pytest.fixture(scope="module")
def teacher(hin: HIN) -> npth.PathSim:
    return npth.PathSim("user-item-user").fit(hin)


def small(name: str, **settings):
    if name == "neupath":
        return NeuPath(dim=16, layers=2, paths=2, epochs=settings.pop("epochs", 4), device="cpu", **settings)
    return CountPath(layers=2, channels=2, epochs=settings.pop("epochs", 4), device="cpu", **settings)


@pytest.fixture(params=["neupath", "countpath"])
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def model(name: str, hin: HIN, teacher: npth.PathSim):
    return small(name).fit(hin, teacher=teacher, queries=users(40))


def test_batch_equals_single_and_k_above_n(model) -> None:
    queries = ["u5", "u0", "u79", "User 7"]
    assert model.top_k(queries, 7) == [model.top_k(query, 7) for query in queries]
    assert len(model.top_k("u0", 1000)) == 79
    assert "u0" not in model.top_k("u0", 1000).ids
    assert model.top_k("u0", 3, among=["u1", "u2"]).exact is False


def test_ranks_by_score_with_ties_in_node_order(model) -> None:
    scores = model.scores("u3")
    expected = [row for row in np.lexsort((np.arange(80), -scores)) if row != 3]
    assert model.top_k("u3", 80).ids == tuple(f"u{row}" for row in expected)


def test_same_seed_same_scores(name: str, model, hin: HIN, teacher: npth.PathSim) -> None:
    again = small(name).fit(library(), teacher=teacher, queries=users(40))
    np.testing.assert_array_equal(again.scores("u2"), model.scores("u2"))
    other = small(name, seed=1).fit(hin, teacher=teacher, queries=users(40))
    assert not np.array_equal(other.scores("u2"), model.scores("u2")) or other.name == "countpath"


def test_save_load_same_scores(model, tmp_path: Path) -> None:
    folder = model.save(tmp_path / "model")
    again = npth.load_scorer(folder, library())
    np.testing.assert_array_equal(again.scores("u2"), model.scores("u2"))


def test_files_that_are_not_models(model, hin: HIN, toy: HIN, tmp_path: Path) -> None:
    folder = model.save(tmp_path / "model")
    with pytest.raises(
        NeuPathError, match="does not have the schema the model was trained on .*missing: user, item, tag"
    ):
        npth.load_scorer(folder, toy)
    weights = folder / "weights.safetensors"
    whole = weights.read_bytes()
    weights.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(NeuPathError, match="weights.safetensors is not a .* model that can be read"):
        npth.load_scorer(folder, hin)
    weights.write_bytes(b"hello")
    with pytest.raises(NeuPathError, match="is not a .* model that can be read"):
        npth.load_scorer(folder, hin)
    weights.unlink()
    with pytest.raises(NeuPathError, match="is not a .* model that can be read"):
        npth.load_scorer(folder, hin)
    with pytest.raises(NeuPathError, match="no saved scorer in"):
        npth.load_scorer(tmp_path, hin)


def test_bind_scores_nodes_never_seen(model, toy: HIN) -> None:
    tomorrow = library(seed=9, users=100)
    bound = model.bind(tomorrow)
    assert bound.scores("u99").shape == (100,)
    assert model.scores("u3").shape == (80,), "the model itself stays where it was"
    with pytest.raises(NeuPathError, match="does not have the schema"):
        model.bind(toy)


def test_training_on_pairs_from_people(name: str, hin: HIN, teacher: npth.PathSim) -> None:
    rows = [(f"u{q}", f"u{t}", teacher.score(f"u{q}", f"u{t}")) for q in range(12) for t in range(20, 24)]
    learned = small(name).fit(hin, rows)
    assert learned.source_type == "user"
    with pytest.raises(NeuPathError, match="give either labelled pairs or a teacher"):
        small(name).fit(hin)
    with pytest.raises(NeuPathError, match="a teacher needs the ids of the queries"):
        small(name).fit(hin, teacher=teacher)


def test_a_run_that_was_stopped_ends_the_same(name: str, hin: HIN, teacher: npth.PathSim, tmp_path: Path) -> None:
    class StopError(Exception): ...

    def stop(epoch, _total) -> None:
        if epoch.epoch == 2:
            raise StopError

    labels = {"teacher": teacher, "queries": users(40)}
    with pytest.raises(StopError):
        small(name).fit(hin, **labels, folder=tmp_path, on_epoch=stop)
    resumed = small(name).fit(hin, **labels, folder=tmp_path)
    straight = small(name).fit(hin, **labels)
    assert [e.epoch for e in resumed.log_] == [1, 2, 3, 4]
    np.testing.assert_array_equal(resumed.scores("u1"), straight.scores("u1"))
    assert len((tmp_path / LOG).read_text().splitlines()) == 4
    with pytest.raises(
        NeuPathError, match="is of a run with another graph, other labels or settings; remove it to start anew"
    ):
        small(name).fit(hin, teacher=teacher, queries=users(30), folder=tmp_path)
    (tmp_path / CHECKPOINT).write_bytes(b"junk")
    with pytest.raises(NeuPathError, match="is not a checkpoint that can be resumed"):
        small(name).fit(hin, **labels, folder=tmp_path)


def test_a_killed_command_goes_on_where_it_was(tmp_path: Path) -> None:
    """Kill -9 during training, the same command again: the same weights as without the kill."""
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    pairs = tmp_path / "pairs.csv"
    pairs.write_text("query,target,score\nMike,Bob,1\nMike,Mary,0.8\nJim,Mike,0.0826\nMary,Ann,0.2857\nBob,Ann,0\n")
    settings = ["--layers", "4", "--dim", "32", "--epochs", "30", "--device", "cpu"]
    command = [sys.executable, "-m", "neupath.cli", "train", "toy", "--pairs", str(pairs), *settings]
    subprocess.run([*command, "--out", whole], check=True, capture_output=True)
    with subprocess.Popen([*command, "--out", killed], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        for _ in range(6000):
            if (killed / CHECKPOINT).exists() or process.poll() is not None:
                break
            time.sleep(0.01)
        assert (killed / CHECKPOINT).exists()
        assert process.poll() is None
        process.send_signal(signal.SIGKILL)
    subprocess.run([*command, "--out", killed], check=True, capture_output=True)
    assert (killed / "weights.safetensors").read_bytes() == (whole / "weights.safetensors").read_bytes()
    logs = [
        [json.loads(line)["validation_rmse"] for line in (f / LOG).read_text().splitlines()] for f in (whole, killed)
    ]
    assert logs[0] == logs[1]


def test_neupath_learns(hin: HIN, teacher: npth.PathSim) -> None:
    model = NeuPath(dim=64, layers=2, paths=2, epochs=40, learning_rate=2e-3, device="cpu")
    model.fit(hin, teacher=teacher, queries=users(50))
    found = evaluate(model, teacher, users(55, 79))
    assert found.ndcg is not None
    assert found.ndcg > 0.9
    assert model.log_[-1].train_rmse < 0.3 * model.log_[0].train_rmse


@pytest.mark.parametrize("path", ["user-item-user", "user-item-tag-item-user"])
def test_countpath_finds_the_meta_path_and_is_exact(hin: HIN, path: str) -> None:
    teacher = npth.PathSim(path).fit(hin)
    model = CountPath(device="cpu").fit(hin, teacher=teacher, queries=users(50))
    assert model.rounded_
    assert model.metapaths() == [(path, pytest.approx(1.0))]
    found = evaluate(model, teacher, users(55, 79))
    assert found.rmse_all < 1e-9
    assert found.ndcg == pytest.approx(1.0)


def test_countpath_on_labels_no_path_explains(hin: HIN) -> None:
    rng = np.random.default_rng(0)
    rows = [(f"u{q}", f"u{t}", float(rng.random())) for q in range(20) for t in range(30, 40)]
    model = CountPath(epochs=5, device="cpu").fit(hin, rows)
    assert model.log_[-1].validation_rmse > 0.2


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: NeuPath(dim=1), "dim is 1; it must be at least 2"),
        (lambda: NeuPath(layers=0), "layers is 0"),
        (lambda: NeuPath(pooling="median"), "pooling is 'median'; it can be tmax, max, mean, sum"),
        (lambda: NeuPath(device="tpu9"), "device is 'tpu9'"),
        (lambda: NeuPath(batch_size=0), "batch_size is 0; it must be at least 1"),
        (lambda: CountPath(batch_size=0), "batch_size is 0; it must be at least 1"),
        (lambda: NeuPath(device="meta"), "device is 'meta'; it can be 'cpu' or 'cuda'"),
        (lambda: CountPath(seed=-1).fit(library(), [("u1", "u2", 0.5)]), "seed is -1"),
        (lambda: CountPath(channels=0), "channels is 0"),
        (
            lambda: NeuPath(epochs=0).fit(library(), [("u1", "u2", 0.5)] * 3),
            "epochs is 0; it must be more than 0, and finite",
        ),
    ],
)
def test_bad_settings(make, message: str) -> None:
    with pytest.raises(NeuPathError, match=message):
        make()


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_cuda_without_cuda() -> None:
    with pytest.raises(NeuPathError, match="device is 'cuda', but no CUDA device is available here; use 'cpu'"):
        NeuPath(device="cuda")


@pytest.mark.parametrize(
    "ablation", [{"pooling": "mean"}, {"pooling": "sum"}, {"node_types": False}, {"edge_types": False}]
)
def test_ablations_train(hin: HIN, teacher: npth.PathSim, ablation) -> None:
    model = NeuPath(dim=8, epochs=1, device="cpu", **ablation).fit(hin, teacher=teacher, queries=users(20))
    assert np.isfinite(model.scores("u1")).all()


def test_neupath_shows_the_paths_it_looked_at(hin: HIN, teacher: npth.PathSim) -> None:
    model = NeuPath(dim=32, layers=2, paths=2, epochs=20, learning_rate=2e-3, device="cpu")
    model.fit(hin, teacher=teacher, queries=users(50))
    pairs = [(f"u{q}", str(teacher.top_k(f"u{q}", k=1)[0].id)) for q in range(55, 70) if len(teacher.top_k(f"u{q}"))]
    for query, target in pairs:
        looks = model.attention_paths(query, target, limit=10_000)
        assert sum(look.weight for look in looks) == pytest.approx(1.0, abs=1e-3)
        weights = [look.weight for look in looks]
        assert weights == sorted(weights, reverse=True)
        for look in looks:
            assert look.nodes[-1].id == target
            assert look.from_query == (look.nodes[0].id == query)
            for link, (here, there) in zip(look.links, pairwise(look.nodes), strict=True):
                assert joined(hin, here, there), f"{here} {link} {there} is no edge"
    used = model.used_metapaths(pairs)
    assert sum(share for _, share in used) == pytest.approx(1.0)
    assert used[0][0] == "user -buys-> item <-buys- user"
    with pytest.raises(NeuPathError, match="a model that pools by mean picks no paths"):
        NeuPath(dim=8, epochs=1, pooling="mean", device="cpu").fit(
            hin, teacher=teacher, queries=users(9)
        ).attention_paths("u1", "u2")


def joined(hin: HIN, here, there) -> bool:
    rows = hin.find(here.node_type, here.id), hin.find(there.node_type, there.id)
    return any(hin.matrix(link)[rows] > 0 for link in hin.schema.links(here.node_type, there.node_type))


def test_teachers_that_cannot_teach(name: str, hin: HIN) -> None:
    with pytest.raises(
        NeuPathError, match="user-item ranks item nodes for a user; a model learns from pairs of one type"
    ):
        small(name).fit(hin, teacher=npth.PCRW("user-item").fit(hin), queries=users(5))
    with pytest.raises(NeuPathError, match="pathcount gives scores up to .*; a model learns scores between 0 and 1"):
        small(name).fit(hin, teacher=npth.PathCount("user-item-tag-item-user").fit(hin), queries=users(20))
    with pytest.raises(NeuPathError, match="there are no queries to draw labels for"):
        small(name).fit(hin, teacher=npth.PathSim("user-item-user").fit(hin), queries=[])


def test_fitting_again_forgets_the_first_fit(hin: HIN) -> None:
    model = CountPath(device="cpu")
    for path in ("user-item-user", "user-item-tag-item-user"):
        teacher = npth.PathSim(path).fit(hin)
        model.fit(hin, teacher=teacher, queries=users(50))
        np.testing.assert_allclose(model.scores("u60"), teacher.scores("u60"), atol=1e-9)
    assert model.top_k([]) == []


@pytest.mark.parametrize("name", ["neupath", "countpath"])
def test_a_batch_larger_than_the_labels(name: str, hin: HIN) -> None:
    labels = [("u1", "u2", 1.0), ("u1", "u3", 0.5), ("u2", "u4", 0.0)]
    make = {"neupath": NeuPath, "countpath": CountPath}[name]
    with pytest.raises(
        NeuPathError, match="batch_size is 9 queries, and the labels to learn from are of 2; use at mos"
    ):
        make(batch_size=9).fit(hin, labels)


def test_too_few_queries_for_validation_is_said(hin: HIN) -> None:
    model = CountPath(epochs=2).fit(hin, [("u1", "u2", 1.0), ("u1", "u3", 0.5), ("u2", "u4", 0.0)])
    assert model.validation_rmse_ is None


def test_labels_that_are_all_zero(hin: HIN) -> None:
    model = CountPath().fit(hin, [("u1", "u2", 0.0), ("u1", "u3", 0.0)])
    assert model.metapaths() == []
    assert not model.scores("u1").any()


def test_countpath_reports_the_error_of_what_it_became(hin: HIN, tmp_path: Path) -> None:
    teacher = npth.PathSim("user-item-user").fit(hin)
    model = CountPath().fit(hin, teacher=teacher, queries=users(40))
    assert model.rounded_
    assert model.validation_rmse_ == pytest.approx(0.0, abs=1e-9)
    assert npth.load_scorer(model.save(tmp_path), hin).rounded_

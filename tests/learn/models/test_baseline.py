"""What every baseline promises besides the contract of all scorers."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

torch = pytest.importorskip("torch", reason="the learn extra is not installed")

import neupath as npth  # noqa: E402
from neupath import HIN, Edges, NeuPathError, Nodes, Relation  # noqa: E402
from neupath.learn.models import GCN, GTN, HAN, NBFNet  # noqa: E402
from neupath.learn.registry import learning_from, make_model  # noqa: E402
from tests.learn.models.test_models import library, users  # noqa: E402

BASELINES = learning_from("labels", baseline=True)


@pytest.fixture(scope="module")
def hin() -> HIN:
    return library()


@pytest.fixture(scope="module")
def teacher(hin: HIN) -> npth.PathSim:
    return npth.PathSim("user-item-user").fit(hin)


@pytest.mark.parametrize("name", BASELINES)
def test_learns_its_labels(name: str, hin: HIN, teacher: npth.PathSim) -> None:
    model = make_model(name, dim=32, epochs=25, learning_rate=1e-2, batch_size=10, device="cpu")
    model.fit(hin, teacher=teacher, queries=users(30))
    assert model.log_[-1].train_rmse < 0.6 * model.log_[0].train_rmse
    assert model.validation_rmse_ == min(epoch.validation_rmse for epoch in model.log_)
    assert model.source_type == "user"


@pytest.mark.parametrize("name", BASELINES)
def test_knows_whether_it_fits_other_nodes(name: str, hin: HIN, toy: HIN, tmp_path: Path) -> None:
    labels = [("u1", "u2", 1.0), ("u1", "u3", 0.5), ("u2", "u4", 0.0)]
    model = make_model(name, dim=8, epochs=1, device="cpu").fit(hin, labels)
    folder = model.save(tmp_path)
    tomorrow = library(seed=9, users=100)
    if model.inductive:
        assert model.bind(tomorrow).scores("u99").shape == (100,)
        np.testing.assert_array_equal(
            npth.load_scorer(folder, tomorrow).scores("u3"), model.bind(tomorrow).scores("u3")
        )
    else:
        told = f"a {name} model knows each node by features of its own, and this graph has other nodes"
        with pytest.raises(NeuPathError, match=told):
            model.bind(tomorrow)
        with pytest.raises(NeuPathError, match=told):
            npth.load_scorer(folder, tomorrow)
        moved = model.bind(library(seed=9))  # the same nodes, other edges
        assert name == "mlp" or not np.array_equal(moved.scores("u3"), model.scores("u3"))
    with pytest.raises(NeuPathError, match="does not have the schema the model was trained on"):
        model.bind(toy)


@pytest.mark.parametrize("name", BASELINES)
def test_a_run_that_was_stopped_ends_the_same(name: str, hin: HIN, teacher: npth.PathSim, tmp_path: Path) -> None:
    class StopError(Exception): ...

    def stop(epoch, _total) -> None:
        if epoch.epoch == 2:
            raise StopError

    labels = {"teacher": teacher, "queries": users(20)}
    make = lambda: make_model(name, dim=8, epochs=4, batch_size=5, device="cpu")  # noqa: E731
    with pytest.raises(StopError):
        make().fit(hin, **labels, folder=tmp_path, on_epoch=stop)
    resumed = make().fit(hin, **labels, folder=tmp_path)
    np.testing.assert_array_equal(resumed.scores("u1"), make().fit(hin, **labels).scores("u1"))


@pytest.mark.parametrize("name", BASELINES)
def test_types_without_edges_do_no_harm(name: str) -> None:
    relation = Relation("user", "knows", "user", directed=False)
    hin = HIN.build(
        [
            Nodes("user", pa.array(["a", "b", "c"])),
            Nodes("tag", pa.array(["t"])),
            Nodes("none", pa.array([], pa.string())),
        ],
        [Edges(relation, np.array([0]), np.array([1]))],
    )
    model = make_model(name, dim=8, epochs=2, device="cpu").fit(hin, [("a", "b", 1.0), ("a", "c", 0.0)])
    assert np.isfinite(model.score_rows(np.arange(3))).all()


def test_vectors_are_those_of_the_last_fit(hin: HIN) -> None:
    model = GCN(dim=8, epochs=2, device="cpu").fit(hin, [("u1", "u2", 1.0)])
    first = model.scores("u1")
    again = model.fit(hin, [("u1", "u2", 0.0), ("u1", "u5", 1.0)]).scores("u1")
    assert not np.array_equal(first, again)


def test_a_file_of_other_weights(hin: HIN, tmp_path: Path) -> None:
    labels = [("u1", "u2", 1.0), ("u1", "u3", 0.5)]
    for dim in (8, 16):
        GCN(dim=dim, epochs=1, device="cpu").fit(hin, labels).save(tmp_path / str(dim))
    weights = "weights.safetensors"
    (tmp_path / "8" / weights).write_bytes((tmp_path / "16" / weights).read_bytes())
    with pytest.raises(NeuPathError, match="does not hold the weights that .*config.json describes"):
        npth.load_scorer(tmp_path / "8", hin)
    (tmp_path / "8" / "config.json").write_text('{"scorer": "gnc", "params": {}}')
    with pytest.raises(
        NeuPathError, match="a scorer named 'gnc', which is not one of pathsim, .*, neupath, countpath, mlp"
    ):
        npth.load_scorer(tmp_path / "8", hin)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: GCN(dim=0), "dim is 0; it must be at least 1"),
        (lambda: GCN(layers=0), "layers is 0"),
        (lambda: GTN(channels=0), "channels is 0"),
        (lambda: HAN(neighbours=0), "neighbours is 0; it must be at least 1"),
        (lambda: NBFNet(batch_size=0), "batch_size is 0"),
        (lambda: GCN(batch_size=9).fit(library(), [("u1", "u2", 1.0)]), "batch_size is 9 queries"),
    ],
)
def test_bad_settings(make, message: str) -> None:
    with pytest.raises(NeuPathError, match=message):
        make()

"""What every model promises besides the contract of all scorers: NeuPath, the other networks and those of plug-ins."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

pytest.importorskip("torch")

import torch

import neupath as npth
from neupath import HIN, NeuPathError
from neupath.errors import NotEnoughMemoryError
from neupath.learn.labels import Pairs, draw_pairs
from neupath.learn.models import RGCN, NBFNet, NeuPath
from neupath.learn.models.model import names_full_gpu, split_labels
from neupath.learn.registry import learning_from, make_model
from neupath.measures import PCRW, PathCount
from tests.graphs import graph_of
from tests.learn.models.small_graphs import library, users

OTHERS = tuple(name for name in learning_from("labels") if name not in ("neupath", "countpath", "pathboost", "linear"))


def small(name: str, **settings):
    if name == "neupath":
        return NeuPath(dim=16, layers=2, paths=2, epochs=settings.pop("epochs", 4), device="cpu", **settings)
    return NBFNet(dim=8, layers=2, epochs=settings.pop("epochs", 4), device="cpu", **settings)


@pytest.fixture(scope="module", params=["neupath", "nbfnet"])
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def model(name: str, hin: HIN, teacher: npth.PathSim):
    return small(name).fit(hin, teacher=teacher, queries=users(40))


def test_same_seed_same_scores(name: str, model, hin: HIN, teacher: npth.PathSim) -> None:
    again = small(name).fit(library(), teacher=teacher, queries=users(40))
    np.testing.assert_array_equal(again.scores("u2"), model.scores("u2"))
    assert again.fingerprint() == model.fingerprint()
    other = small(name, seed=1).fit(hin, teacher=teacher, queries=users(40))
    assert not torch.equal(first_weight(other), first_weight(model)), "other seeds draw other weights"


def first_weight(model) -> "torch.Tensor":
    return next(model.network_.parameters())


@pytest.mark.slow
def test_files_that_are_not_models(model, hin: HIN, toy: HIN, tmp_path: Path) -> None:
    folder = model.save(tmp_path / "model")
    with pytest.raises(NeuPathError, match="does not have the schema the model was trained on .*missing: user, item"):
        npth.load_scorer(folder, toy)
    weights = folder / "weights.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1])
    with pytest.raises(NeuPathError, match="weights.safetensors is missing or damaged: it does not fit its checksum"):
        npth.load_scorer(folder, hin)
    describe(folder)  # as versions without checksums have saved it
    for damage in (lambda: None, lambda: weights.write_bytes(b"hello"), weights.unlink):
        damage()
        with pytest.raises(NeuPathError, match="weights.safetensors is not a .* model that can be read"):
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
    assert small(name).fit(hin, rows).source_type == "user"


@pytest.mark.parametrize(
    ("teach", "message"),
    [
        (lambda _: {}, "give either labelled pairs or a teacher"),
        (lambda hin: {"teacher": PCRW("user-item-user").fit(hin)}, "a teacher needs the ids of the queries"),
        (lambda hin: {"teacher": PCRW("user-item").fit(hin), "queries": users(5)},
         "user-item ranks item nodes for a user; a model learns from pairs of one type"),
        (lambda hin: {"teacher": PathCount("user-item-tag-item-user").fit(hin), "queries": users(20)},
         "pathcount gives scores up to .*; a model learns scores between 0 and 1"),
        (lambda hin: {"teacher": npth.PathSim("user-item-user").fit(hin), "queries": []},
         "there are no queries to draw labels for"),
    ],
)  # fmt: skip
def test_teachers_that_cannot_teach(name: str, hin: HIN, teach: Callable[[HIN], dict], message: str) -> None:
    with pytest.raises(NeuPathError, match=message):
        small(name).fit(hin, **teach(hin))


FEW = [("u1", "u2", 1.0), ("u1", "u3", 0.5), ("u2", "u4", 0.0)]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: NeuPath(dim=1), "dim is 1; give a whole number of at least 2"),
        (lambda: NeuPath(layers=0), "layers is 0"),
        (lambda: NeuPath(device="tpu9"), "device is 'tpu9'"),
        (lambda: NeuPath(device="meta"), "device is 'meta'; it can be 'cpu' or 'cuda'"),
        (lambda: NeuPath(channels=-1), "channels is -1"),
        (lambda: NeuPath(epochs=0).fit(library(), FEW), "epochs is 0; it must be more than 0, and finite"),
        (lambda: RGCN(dim=0), "dim is 0; give a whole number of at least 1"),
        (lambda: RGCN(layers=0), "layers is 0"),
        (lambda: RGCN(seed=-1).fit(library(), FEW), "seed is -1"),
        *((lambda kind=kind: kind(batch_size=0), "batch_size is 0; give a whole number of at least 1")
          for kind in (NeuPath, NBFNet, RGCN)),
        *((lambda kind=kind: kind(batch_size=9).fit(library(), FEW),
           "batch_size is 9 queries, and the labels to learn from are of 2; use at most")
          for kind in (NeuPath, NBFNet, RGCN)),
    ],
)  # fmt: skip
def test_bad_settings(make, message: str) -> None:
    with pytest.raises(NeuPathError, match=message):
        make()


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device; CUDA_VISIBLE_DEVICES= make test")
def test_cuda_without_cuda() -> None:
    with pytest.raises(NeuPathError, match="device is 'cuda', but no CUDA device is available here; use 'cpu'"):
        NeuPath(device="cuda")


def test_a_gpu_that_is_full_is_one_sentence() -> None:
    """What torch raises then, raised by hand: there need not be a GPU."""
    said = "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has 7.79 GiB of which 1.10 GiB is free."
    with pytest.raises(NotEnoughMemoryError) as caught, names_full_gpu():
        raise torch.OutOfMemoryError(f"{said} Process 564 has 66.00 MiB memory in use.")
    step = "free some of its memory, or set CUDA_VISIBLE_DEVICES=-1 to use the CPU"
    assert str(caught.value) == f"the GPU is full ({said[:-1]}); {step}"
    for other in (RuntimeError("a device-side assert"), RuntimeError()):
        with pytest.raises(RuntimeError) as raised, names_full_gpu():
            raise other
        assert raised.value is other


@pytest.mark.parametrize("name", ["neupath", "rgcn"])
def test_a_gpu_that_fills_up_in_training_scoring_or_loading(
    name: str, hin: HIN, teacher: npth.PathSim, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = make_model(name, epochs=1, dim=8, device="cpu").fit(hin, draw_pairs(teacher, users(0, 6)))
    model.save(tmp_path)

    def fill(*_: object, **__: object) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")

    monkeypatch.setattr(type(model), "_make_network", fill)
    for work in (
        lambda: make_model(name, epochs=1, dim=8, device="cpu").fit(hin, draw_pairs(teacher, users(0, 6))),
        lambda: npth.load_scorer(tmp_path, hin),
    ):
        with pytest.raises(NotEnoughMemoryError, match="the GPU is full"):
            work()
    monkeypatch.setattr(torch, "no_grad", fill)
    with pytest.raises(NotEnoughMemoryError, match="the GPU is full"):
        model.score_rows(np.array([0]))


def test_a_label_does_not_choose_the_epoch_while_its_mirror_image_is_learned_from() -> None:
    first, second = (side[::3] for side in np.triu_indices(20, 1))
    both = Pairs("user", np.append(first, second), np.append(second, first), np.tile(np.linspace(0, 1, len(first)), 2))
    for seed in range(5):
        learn, check = split_labels(both, seed)
        assert len(np.unique(check.queries)) == 4
        learned = set(zip(learn.queries.tolist(), learn.targets.tolist(), strict=True))
        assert not learned & set(zip(check.targets.tolist(), check.queries.tolist(), strict=True))
        assert not set(learn.queries.tolist()) & set(check.queries.tolist())


def test_labels_of_one_node_in_both_directions_leave_none_to_choose_the_epoch(hin: HIN) -> None:
    labels = [(*pair, number % 2) for number in range(1, 9) for pair in (("u0", f"u{number}"), (f"u{number}", "u0"))]
    for seed in range(8):
        model = make_model("gcn", epochs=1, dim=8, seed=seed, device="cpu").fit(hin, labels)
        assert len(model.log_) == 1
        assert np.isfinite(model.scores("u0")).all()


# ---- Baselines -----------------------------------------------------------------------------------
@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.slow
def test_learns_its_labels(name: str, hin: HIN, teacher: npth.PathSim) -> None:
    model = make_model(name, dim=32, epochs=25, learning_rate=1e-2, batch_size=10, device="cpu")
    model.fit(hin, teacher=teacher, queries=users(30))
    assert model.log_[-1].train_rmse < 0.6 * model.log_[0].train_rmse
    assert model.validation_rmse_ == min(epoch.validation_rmse for epoch in model.log_)
    assert model.source_type == "user"


@pytest.mark.parametrize("name", OTHERS)
def test_knows_whether_it_fits_other_nodes(name: str, hin: HIN, toy: HIN, tmp_path: Path) -> None:
    model = make_model(name, dim=8, epochs=1, device="cpu").fit(hin, FEW)
    folder = model.save(tmp_path)
    tomorrow = library(seed=9, users=100)
    if model.inductive:
        assert model.bind(tomorrow).scores("u99").shape == (100,)
        np.testing.assert_array_equal(
            npth.load_scorer(folder, tomorrow, device="cpu").scores("u3"), model.bind(tomorrow).scores("u3")
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


@pytest.mark.parametrize("name", OTHERS)
def test_types_without_edges_do_no_harm(name: str) -> None:
    nodes = {"user": ["a", "b", "c"], "tag": ["t"], "none": pa.array([], pa.string())}
    hin = graph_of(nodes, {"user -knows- user": [(0, 1)]})
    model = make_model(name, dim=8, epochs=2, device="cpu").fit(hin, [("a", "b", 1.0), ("a", "c", 0.0)])
    assert np.isfinite(model.score_rows(np.arange(3))).all()


def test_vectors_are_those_of_the_last_fit(hin: HIN) -> None:
    model = RGCN(dim=8, epochs=2, device="cpu").fit(hin, [("u1", "u2", 1.0)])
    first = model.scores("u1")
    again = model.fit(hin, [("u1", "u2", 0.0), ("u1", "u5", 1.0)]).scores("u1")
    assert not np.array_equal(first, again)


def describe(folder: Path, **changes: object) -> None:
    """Write the description of a saved model as earlier versions did, without checksums, with other parameters."""
    content = json.loads((folder / "config.json").read_text())
    params = content["params"] | changes
    (folder / "config.json").write_text(json.dumps({"scorer": content["scorer"], "params": params}))


@pytest.mark.parametrize(
    "architecture", [name for name in learning_from("labels") if name not in ("pathboost", "linear")]
)
def test_models_of_earlier_versions_load_and_impossible_sizes_are_refused(hin: HIN, tmp_path, architecture) -> None:
    size = {} if architecture == "countpath" else {"dim": 8}
    model = make_model(architecture, epochs=1, device="cpu", **size).fit(hin, [("u1", "u2", 1.0), ("u1", "u3", 0.5)])
    model.save(tmp_path)
    describe(tmp_path)
    assert np.array_equal(npth.load_scorer(tmp_path, hin, "cpu").scores("u1"), model.scores("u1"))
    sizes = {"layers"} if architecture == "countpath" else {"dim", "layers", "paths", "channels"} & set(model.params())
    for name in sizes:
        model.save(tmp_path)
        describe(tmp_path, **{name: 10**9})
        with pytest.raises(NeuPathError, match="does not hold the weights that .*config.json describes"):
            npth.load_scorer(tmp_path, hin, "cpu")


def test_a_file_of_other_weights(hin: HIN, tmp_path: Path) -> None:
    labels = [("u1", "u2", 1.0), ("u1", "u3", 0.5)]
    for dim in (8, 16):
        RGCN(dim=dim, epochs=1, device="cpu").fit(hin, labels).save(tmp_path / str(dim))
    weights = "weights.safetensors"
    (tmp_path / "8" / weights).write_bytes((tmp_path / "16" / weights).read_bytes())
    for folder, dim, message in (
        ("8", 8, "does not hold the weights that .*config.json describes"),
        ("8", 10**9, "dim is 1000000000, and no dimension of the weights is larger than"),
    ):
        describe(tmp_path / folder, dim=dim)
        with pytest.raises(NeuPathError, match=message):
            npth.load_scorer(tmp_path / folder, hin)
    (tmp_path / "8" / "config.json").write_text('{"scorer": "gnc", "params": {}}')
    with pytest.raises(
        NeuPathError,
        match="a scorer named 'gnc', which is not one of pathsim, .*, neupath, pathboost, linear, rgcn, nbfnet",
    ):
        npth.load_scorer(tmp_path / "8", hin)


def test_a_node_type_tells_which_nodes_the_pairs_name() -> None:
    hin = graph_of({"a": ["x", "y", "z"], "b": ["x", "y", "z"]}, {"a -likes-> b": [(0, 0), (1, 1), (2, 1)]})
    pairs, model = [("x", "y", 1.0), ("y", "z", 0.0)], RGCN(dim=4, epochs=1, device="cpu")
    with pytest.raises(NeuPathError, match="the pairs could be of type a or b; say which with node_type"):
        model.fit(hin, pairs)
    assert model.fit(hin, pairs, node_type="b").node_type_ == "b"
    columns = dict(zip(("query", "target", "score"), zip(*pairs, strict=True), strict=True))
    typed = columns | {"query_type": ["b", "b"], "target_type": ["b", "b"]}
    assert model.fit(hin, typed).node_type_ == "b"
    with pytest.raises(NeuPathError, match="a rgcn model ranks the nodes of one type, and these pairs go from a"):
        model.fit(hin, pairs, node_type=("a", "b"))

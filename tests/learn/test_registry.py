"""A new architecture is one class and one line of the registry: everything else finds it by its name."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")

import torch

import neupath as npth
from neupath import HIN, NeuPathError
from neupath.learn.models.flat_graph import GraphTensors
from neupath.learn.models.model import TRAINING_PARAMS, PairModel, PairNetwork
from neupath.learn.registry import ARCHITECTURES, Architecture, learning_from, make_model, make_scorer
from neupath.live import LiveGraph
from neupath.measures import PPR
from tests.command_line import Run

LABELS = [("Mike", "Bob", 1.0), ("Mike", "Mary", 0.8), ("Mike", "Ann", 0.0), ("Mary", "Ann", 0.3)]


class DegreeNet(PairModel):
    """Score a pair by the difference of its degrees: σ(a·|log deg q - log deg t| + b)."""

    name = "degreenet"
    param_names = ("scale", *TRAINING_PARAMS)

    def __init__(self, scale: float = 1.0, **training) -> None:
        super().__init__(**training)
        self.scale = scale

    def _make_network(self, hin: HIN) -> PairNetwork:
        return DegreeNetwork(GraphTensors.of(hin, self.device), self.node_type_, self.scale)


class DegreeNetwork(PairNetwork):
    def __init__(self, graph: GraphTensors, node_type: str, scale: float) -> None:
        super().__init__()
        degrees = torch.bincount(graph.edges[1], minlength=graph.numbering.total)
        self.degrees = scale * degrees[graph.numbering.rows(node_type)].float().log1p()
        self.weights = torch.nn.Parameter(torch.randn(2))

    def forward(self, queries: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        difference = (self.degrees[queries] - self.degrees[targets]).abs()
        return torch.sigmoid(self.weights[0] * difference + self.weights[1])

    def score_all(self, queries: Sequence[int]) -> torch.Tensor:
        return self(torch.tensor(queries, dtype=torch.long)[:, None], torch.arange(len(self.degrees))[None, :])


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ARCHITECTURES, "degreenet", Architecture(f"{__name__}:DegreeNet"))


def test_a_new_architecture_trains_saves_loads_and_searches(toy: HIN, tmp_path: Path) -> None:
    model = make_model("degreenet", scale=2.0, epochs=3, learning_rate=0.1, seed=7, device="cpu").fit(toy, LABELS)
    assert [epoch.epoch for epoch in model.log_] == [1, 2, 3]
    loaded = npth.load_scorer(model.save(tmp_path / "model"), toy)
    assert isinstance(loaded, DegreeNet)
    assert loaded.params() == {"scale": 2.0, "epochs": 3, "batch_size": None, "learning_rate": 0.1, "seed": 7}
    rows = np.arange(toy.num_nodes("author"))
    np.testing.assert_array_equal(loaded.score_rows(rows), model.score_rows(rows))
    assert make_scorer(toy, model=tmp_path / "model").top_k("Mike", k=3) == model.top_k("Mike", k=3)


def test_a_new_architecture_is_offered_and_checked_by_name() -> None:
    assert "degreenet" in learning_from("labels")
    with pytest.raises(NeuPathError, match=r"no architecture 'degreene' .*; did you mean 'degreenet'\?"):
        make_model("degreene")
    with pytest.raises(NeuPathError, match="a degreenet model has no dim; it has batch_size, device, epochs"):
        make_model("degreenet", dim=8)


def test_a_new_architecture_joins_and_attaches_to_a_live_graph(toy: HIN, tmp_path: Path) -> None:
    model = DegreeNet(epochs=2, device="cpu").fit(toy, LABELS)
    assert npth.join(toy, model, tmp_path / "pairs.parquet", k=2).pairs == 2 * toy.num_nodes("author")
    assert LiveGraph(toy).attach(model).top_k("Mike", k=2) == model.top_k("Mike", k=2)


def test_the_command_line_trains_and_searches_a_new_architecture(tmp_path: Path, run: Run) -> None:
    pairs, out = tmp_path / "pairs.csv", tmp_path / "model"
    pairs.write_text("query,target,score\n" + "".join(f"{q},{t},{s}\n" for q, t, s in LABELS))
    options = ("--pairs", pairs, "--architecture", "degreenet", "--epochs", 2, "--out", out, "--json")
    trained = run("train", "toy", *options)
    assert trained.code == 0, trained.err
    printed = run("search", "toy", "Mike", "--model", out, "--json").json
    assert printed["measure"] == "degreenet"
    assert len(printed["hits"]) == 4


@pytest.mark.parametrize("architecture", learning_from("labels"))
def test_settings_that_an_architecture_lacks_are_declared(architecture: str) -> None:
    known = make_model(architecture).params()
    settings = ("layers", "epochs", "dim", "paths", "learning_rate")
    assert tuple(setting for setting in settings if setting not in known) == ARCHITECTURES[architecture].lacks


def test_a_saved_path_ranker_opens_as_the_combination_that_it_is(toy: HIN, tmp_path: Path) -> None:
    learned = npth.Combination([npth.Part("pathsim", "APVPA", 0.7), npth.Part("joinsim", "APA", 0.3)]).fit(toy)
    params = learned.params() | {"max_length": 4, "seed": 0}
    (tmp_path / "config.json").write_text(json.dumps({"scorer": "pathranker", "params": params}))
    assert npth.load_scorer(tmp_path, toy).top_k("Mike") == learned.top_k("Mike")


def test_the_device_of_a_saved_measure_is_checked(toy: HIN, tmp_path: Path) -> None:
    path = npth.PathSim("APVPA").fit(toy).save(tmp_path / "path")
    assert npth.load_scorer(path, toy, "cpu").top_k("Mike", k=1).ids == ("Bob",)
    with pytest.raises(NeuPathError, match="device is 'tpu'; it can be 'cpu' or 'cuda'"):
        npth.load_scorer(path, toy, "tpu")
    whole = PPR("author").fit(toy).save(tmp_path / "whole")
    with pytest.raises(NeuPathError, match="ppr runs on the CPU alone"):
        npth.load_scorer(whole, toy, "cuda")

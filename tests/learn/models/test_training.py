"""Training runs that stop and go on."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

import torch

import neupath as npth
from neupath import HIN, NeuPathError
from neupath.learn.models.training import CHECKPOINT, LOG
from neupath.learn.registry import ARCHITECTURES, learning_from, make_model
from tests.command_line import Run
from tests.learn.models.small_graphs import users
from tests.patience import wait_until
from tests.processes import run_process

OTHERS = tuple(name for name in learning_from("labels") if name not in ("neupath", "countpath", "pathboost", "linear"))


@pytest.mark.parametrize("name", ["neupath", *OTHERS])
@pytest.mark.slow
def test_a_run_that_was_stopped_ends_the_same(name: str, hin: HIN, teacher: npth.PathSim, tmp_path: Path) -> None:
    class StopError(Exception): ...

    def stop(epoch, _total) -> None:
        if epoch.epoch == 2:
            raise StopError

    def fit(queries: int = 20, **options: Any) -> npth.Scorer:
        model = make_model(name, dim=8, epochs=4, batch_size=5, device="cpu")
        return model.fit(hin, teacher=teacher, queries=users(queries), **options)

    with pytest.raises(StopError):
        fit(folder=tmp_path, on_epoch=stop)
    resumed = fit(folder=tmp_path)
    assert [epoch.epoch for epoch in resumed.log_] == [1, 2, 3, 4]
    np.testing.assert_array_equal(resumed.scores("u1"), fit().scores("u1"))
    assert len((tmp_path / LOG).read_text().splitlines()) == 4
    with pytest.raises(NeuPathError, match="is of a run with another graph, other labels or settings; remove it to st"):
        fit(15, folder=tmp_path)
    (tmp_path / CHECKPOINT).write_bytes(b"junk")
    with pytest.raises(NeuPathError, match="is not a checkpoint that can be resumed"):
        fit(folder=tmp_path)


STALLS = """
import sys, threading
from neupath.cli import main
from neupath.learn.models import training

def stall(run, batches):
    return take_steps(run, batches) if run.state.epoch < 3 else threading.Event().wait()

take_steps, training._Run.take_steps = training._Run.take_steps, stall
main(sys.argv[1:])
"""


@pytest.mark.slow
def test_a_killed_command_goes_on_where_it_was(run: Run, tmp_path: Path) -> None:
    """Kill -9 during training, the same command again: the same weights as without the kill."""
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    pairs = tmp_path / "pairs.csv"
    pairs.write_text("query,target,score\nMike,Bob,1\nMike,Mary,0.8\nJim,Mike,0.0826\nMary,Ann,0.2857\nBob,Ann,0\n")
    settings = ["--architecture", "neupath", "--layers", "4", "--dim", "32", "--epochs", "8", "--device", "cpu"]
    command = ["train", "toy", "--pairs", str(pairs), *settings, "--out"]
    stalling = [sys.executable, "-c", STALLS, *command, killed]
    with run_process(stalling, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        wait_until(lambda: (killed / CHECKPOINT).exists() or process.poll() is not None, "no checkpoint is written")
        assert process.poll() is None, "it ended before it could be killed"
        process.kill()
    assert run(*command, killed).code == 0
    assert run(*command, whole).code == 0
    assert (killed / "weights.safetensors").read_bytes() == (whole / "weights.safetensors").read_bytes()
    logs = [
        [json.loads(line)["validation_rmse"] for line in (f / LOG).read_text().splitlines()] for f in (whole, killed)
    ]
    assert logs[0] == logs[1]


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device; run the tests on a machine with one")
@pytest.mark.parametrize("name", [*OTHERS, "neupath"])
def test_recorded_steps_end_the_same_as_launched_ones(
    name: str, hin: HIN, teacher: npth.PathSim, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fit() -> np.ndarray:
        model = make_model(name, dim=16, layers=2, epochs=5, batch_size=5, device="cuda")
        return model.fit(hin, teacher=teacher, queries=users(20), validation=users(20, 30)).scores("u1")

    recorded = fit()
    monkeypatch.setattr(ARCHITECTURES[name].import_class(), "records_steps", False)
    np.testing.assert_array_equal(fit(), recorded)

"""Training on several processes: the losses of one, and errors as one sentence."""

import os
import signal
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")

import neupath as npth
from neupath import HIN, NeuPathError
from neupath.learn.models.distributed import ProcessGroup
from neupath.learn.registry import make_model

pytestmark = pytest.mark.slow
PATH = "class-method-class"


@pytest.fixture(scope="module")
def hin() -> HIN:
    return npth.load("stdlib")


def neupath(epochs: int = 3, **settings):
    return npth.NeuPath(dim=8, layers=2, epochs=epochs, seed=1, device="cpu", **settings)


def losses(model) -> np.ndarray:
    return np.array([(epoch.train_rmse, epoch.validation_rmse) for epoch in model.log_])


def test_two_processes_have_the_losses_of_one(hin: HIN) -> None:
    labels = {"teacher": npth.PathSim(PATH).fit(hin), "queries": hin.nodes["class"].ids.to_pylist()[0:50:2]}
    alone = neupath(batch_size=3).fit(hin, **labels)
    together = neupath(batch_size=3).fit(hin, **labels, processes=2)
    assert len(alone.log_) == 3
    np.testing.assert_allclose(losses(together), losses(alone), rtol=0, atol=1e-5)
    queries = np.arange(3)
    np.testing.assert_allclose(together.score_rows(queries), alone.score_rows(queries), rtol=0, atol=1e-4)
    assert together.process_group == ProcessGroup()


def test_a_run_can_go_on_with_more_processes(hin: HIN, tmp_path: Path) -> None:
    labels = {"teacher": npth.PathSim(PATH).fit(hin), "queries": hin.nodes["class"].ids[:10].to_pylist()}

    def stop(epoch, _: int) -> None:
        if epoch.epoch == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        neupath().fit(hin, **labels, folder=tmp_path, on_epoch=stop)
    together = neupath().fit(hin, **labels, folder=tmp_path, processes=2)
    np.testing.assert_allclose(losses(together), losses(neupath().fit(hin, **labels)), rtol=0, atol=1e-5)


def test_a_process_that_dies_is_one_sentence(hin: HIN) -> None:
    from multiprocessing import active_children

    def kill(*_: object) -> None:
        for child in active_children():
            os.kill(child.pid, signal.SIGKILL)

    labels = {"teacher": npth.PathSim(PATH).fit(hin), "queries": hin.nodes["class"].ids[:10].to_pylist()}
    with pytest.raises(NeuPathError, match=r"process 1 of 2 stopped \(exit code -9\); run the same again"):
        neupath(20).fit(hin, **labels, on_epoch=kill, processes=2)
    assert not active_children()


@pytest.mark.parametrize(
    ("model", "processes", "message"),
    [
        ("neupath", 0, "processes is 0; use at least 1"),
        ("gcn", 2, "a gcn model learns in one process; leave out processes"),
    ],
)
def test_bad_input(hin: HIN, model: str, processes: int, message: str) -> None:
    pairs = [("argparse.Action", "argparse.ArgumentParser", 0.5)]
    with pytest.raises(NeuPathError, match=message):
        make_model(model, dim=8, device="cpu").fit(hin, pairs, processes=processes, node_type="class")

"""The cache of fitted scorers, and what is done before the service starts."""

import gc
from pathlib import Path

import pytest

import neupath as npth
from neupath.engine import product_kernels as kernels
from neupath.engine import topk
from neupath.engine.cache import bytes_of
from neupath.service.graph_registry import (
    FittedScorer,
    GraphHandle,
    GraphRegistry,
    frozen_garbage_collection,
)
from neupath.service.limits import Limits
from tests.service.conftest import Start


def test_the_cache_stays_within_its_bytes() -> None:
    toy = GraphHandle("toy", npth.load("toy"))
    one = FittedScorer(toy, npth.PathSim("APA").fit(toy.hin)).bytes
    assert one > 0
    registry = GraphRegistry({"toy": toy}, Limits(scorer_bytes=one))
    registry.measure("toy", "pathsim", "APA")
    assert (len(registry.cache), registry.cache.bytes) == (1, one)
    registry.measure("toy", "pathsim", "APVPA")
    assert registry.cache.bytes <= one


def test_a_memory_error_clears_the_cache(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    running = start()
    assert running.get("/api/graphs/toy/search?query=Mike&metapath=APA").status_code == 200
    assert len(running.service.registry.cache) == 1

    def fail(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr("neupath.service.handlers.search", fail)
    response = running.get("/api/graphs/toy/search?query=Mike&metapath=APVPA")
    assert (response.status_code, response.headers["retry-after"]) == (503, "5")
    assert response.json() == {"error": "there is not enough memory for this now; try again, or ask for less"}
    assert len(running.service.registry.cache) == 0


@pytest.mark.slow
def test_garbage_collection_skips_what_existed_before() -> None:
    with frozen_garbage_collection():
        assert gc.get_freeze_count() > 0
        assert len(gc.get_objects()) < gc.get_freeze_count()
    assert gc.get_freeze_count() == 0


def test_the_kernels_of_a_search_are_loaded() -> None:
    topk.load_kernels()
    assert "int32" in kernels.top_k_of_row.code


def test_models_leave_the_cache_and_come_back(tmp_path: Path) -> None:
    toy = GraphHandle("toy", npth.load("toy"))
    saved = npth.PathSim("APVPA").fit(toy.hin).save(tmp_path / "saved")
    registry = GraphRegistry({"toy": toy}, Limits(scorers=1))
    registry.add_model("saved", saved)
    bound = registry.model("toy", "saved")
    assert registry.model("toy", "saved") is bound
    registry.measure("toy", "pathsim", "APA")
    assert len(registry.cache) == 1
    again = registry.model("toy", "saved")
    assert again is not bound
    assert again.scorer.top_k("Mike") == bound.scorer.top_k("Mike")
    assert [model["name"] for model in registry.describe_models()] == ["saved"]


def test_tensors_count_in_the_cache() -> None:
    torch = pytest.importorskip("torch")
    module = torch.nn.Linear(10, 5)
    assert bytes_of(module) == bytes_of([module.weight, module.bias]) == 4 * 55

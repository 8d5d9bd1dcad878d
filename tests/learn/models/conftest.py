"""The graph and the exact measure that most models learn from."""

import pytest

import neupath as npth
from neupath import HIN

pytest.importorskip("torch")

from tests.learn.models.small_graphs import library


@pytest.fixture(scope="module")
def hin() -> HIN:
    return library()


@pytest.fixture(scope="module")
def teacher(hin: HIN) -> npth.PathSim:
    return npth.PathSim("user-item-user").fit(hin)

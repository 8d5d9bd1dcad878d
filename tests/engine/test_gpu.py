"""Ranking on a GPU against the CPU: equal rows and scores, to the bit."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from neupath.engine import gpu
from neupath.engine.gpu import rank_on_gpu
from neupath.engine.products import Factors, Normalisation, symmetric_factors
from neupath.engine.topk import top_k_of_product
from tests.engine.emulated_cuda import COMPILER, EmulatedDevice
from tests.engine.matrices import KINDS, matrix

NORMALISATIONS = st.sampled_from([Normalisation.NONE, Normalisation.DICE, Normalisation.COSINE])


@pytest.fixture(scope="module")
def emulated(tmp_path_factory: pytest.TempPathFactory) -> EmulatedDevice:
    if COMPILER is None:
        pytest.skip("no g++, which compiles the kernels for the CPU; apt-get install g++")
    return EmulatedDevice(tmp_path_factory.mktemp("kernels"))


@pytest.fixture(autouse=True)
def _emulate(emulated: EmulatedDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu, "cuda_device", lambda: emulated)


def assert_equal(factors: Factors, normalisation: Normalisation, k: int) -> None:
    queries = factors.all_rows
    ranking = rank_on_gpu(factors, normalisation, queries, queries, k)
    expected = top_k_of_product(factors, normalisation, queries, queries, k)
    assert ranking is not None
    assert np.array_equal(ranking.sizes, expected.sizes)
    assert np.array_equal(ranking.rows, expected.rows)
    assert np.array_equal(ranking.scores, expected.scores)


@given(
    KINDS.filter(lambda kind: kind != "tiny"), st.integers(0, 99), NORMALISATIONS, st.sampled_from([1, 3, 10, 60, 64])
)
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_rows_and_scores_are_those_of_the_cpu(kind: str, seed: int, normalisation: Normalisation, k: int) -> None:
    assert_equal(symmetric_factors(matrix(kind, seed)), normalisation, k)

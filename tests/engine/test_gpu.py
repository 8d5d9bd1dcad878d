"""Ranking on a GPU against the CPU: equal rows and scores, to the bit. The kernels run on fibers of the CPU here."""

import logging
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array, random_array

import neupath as npth
from neupath.engine import gpu
from neupath.engine.formula import Formula, Normalisation
from neupath.engine.gpu import Device, Shape, rank_on_gpu, to_device
from neupath.engine.products import Chain, Factors, make_factors, symmetric_factors
from neupath.engine.topk import FEW, top_k_of_product
from neupath.errors import MissingExtraError, QueryError
from neupath.graph.hin import Edges, freeze
from neupath.graph.metapath import Relation
from neupath.graph.nodes import Nodes
from tests.engine.emulated_cuda import COMPILER, EmulatedDevice
from tests.engine.matrices import FORMULAS, KINDS, matrix

FIND_DEVICE = gpu.cuda_device


@pytest.fixture(scope="module")
def emulated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmulatedDevice]:
    if COMPILER is None:
        pytest.skip("no g++, which compiles the kernels for the CPU; apt-get install g++")
    device = EmulatedDevice(tmp_path_factory.mktemp("kernels"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gpu, "cuda_device", lambda: device)
        yield device


@pytest.fixture
def warnings(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    gpu.log_refusal.cache_clear()
    caplog.set_level(logging.WARNING, "neupath")
    return caplog


def assert_equal(factors: Factors, normalisation: int | Formula, k: int, queries: np.ndarray | None = None) -> None:
    """Compare all rows and scores with those of the CPU."""
    queries = factors.all_rows if queries is None else queries
    skipped = queries if factors.left_norms is factors.right_norms else np.full(len(queries), -1)
    ranking = rank_on_gpu(factors, normalisation, queries, skipped, k)
    expected = top_k_of_product(factors, normalisation, queries, skipped, k)
    assert ranking is not None
    assert np.array_equal(ranking.sizes, expected.sizes)
    assert np.array_equal(ranking.rows, expected.rows)
    assert np.array_equal(ranking.scores, expected.scores)


def random(shape: tuple[int, int], density: float, weights: str, seed: int = 0) -> csr_array:
    rng = np.random.default_rng(seed)
    result = csr_array(random_array(shape, density=density, rng=rng, format="csr"))
    if weights != "floats":
        result.data[:] = rng.integers(1, {"ones": 2, "counts": 40, "large": 10**6}[weights], result.nnz)
    return freeze(result)


# ---- Rows and scores -----------------------------------------------------------------------------
@given(KINDS.filter(lambda kind: kind != "tiny"), st.integers(0, 99), FORMULAS, st.sampled_from([1, 3, 10, 60, 64]))
@settings(max_examples=10, deadline=None)
@pytest.mark.usefixtures("emulated")
@pytest.mark.slow
def test_rows_and_scores_are_those_of_the_cpu(kind: str, seed: int, normalisation: int | Formula, k: int) -> None:
    factors = symmetric_factors(matrix(kind, seed))
    assume(factors.left.nnz)  # a GPU refuses a product without entries
    assert_equal(factors, normalisation, k)


@pytest.mark.parametrize(
    ("weights", "kernel"), [("counts", "rank_whole"), ("floats", "rank_ordered"), ("large", "rank_ordered")]
)
@pytest.mark.parametrize(("middle", "entries", "targets"), [(30, 5, 9), (20_000, 18, 2)])
@pytest.mark.slow
def test_light_and_heavy_rows_between_two_types(
    emulated: EmulatedDevice, weights: str, kernel: str, middle: int, entries: int, targets: int
) -> None:
    left, right = random((150, middle), entries / middle, weights), random((middle, 1100), targets / 1100, weights, 1)
    factors = make_factors(left, right)
    emulated.launched.clear()
    assert_equal(factors, Normalisation.DICE, 10)
    assert set(emulated.launched) == {"rank_light", kernel}
    has_table = not isinstance(factors.on_device.targets[4], np.uint64)
    assert has_table == (middle == 30), "few middle nodes have a table of where their tiles begin"


@pytest.mark.usefixtures("emulated")
@pytest.mark.slow
def test_many_short_lists_of_fractional_weights_are_left_to_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu, "_LISTS", 16)
    factors = symmetric_factors(random((300, 40), 0.2, "floats"))
    assert_equal(factors, Normalisation.COSINE, 5)
    slow = int(factors.on_device.is_slow.sum())
    assert 0 < slow < 300


@pytest.mark.usefixtures("emulated")
@pytest.mark.slow
def test_any_batch_gives_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu, "_QUERIES", 7)
    factors = symmetric_factors(matrix("counts", 3))
    assert_equal(factors, Normalisation.DICE, 10, np.random.default_rng(0).permutation(300)[:40])


@pytest.mark.parametrize("most", [2.0**15.9, 2.0**16.1])
@pytest.mark.slow
def test_sums_of_more_than_32_bits_are_added_in_order(emulated: EmulatedDevice, most: float) -> None:
    weights = np.full(4, np.rint(most))
    factors = symmetric_factors(freeze(csr_array((weights, ([0, 1, 2, 2], [0, 0, 0, 1])), shape=(3, 2))))
    is_small = weights[0] ** 2 * 2 < 2**32 and weights[0] < 2**16
    assert to_device(factors, emulated).heavy_kernel == ("rank_whole" if is_small else "rank_ordered")


# ---- A join --------------------------------------------------------------------------------------
@pytest.mark.slow
def test_a_join_on_the_gpu_is_the_same_to_the_byte(emulated: EmulatedDevice, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    nodes = [Nodes("movie", pa.array(np.arange(90))), Nodes("actor", pa.array(np.arange(15)))]
    cast = Edges(Relation("movie", "with", "actor"), rng.integers(0, 90, 400), rng.integers(0, 15, 400))
    hin, path = npth.HIN.build(nodes, [cast]), "movie-actor-movie"
    scorer = npth.PathSim(path, device="cuda").fit(hin)
    emulated.launched.clear()
    on_gpu = npth.join(hin, scorer, tmp_path / "gpu.parquet", block=40)
    assert emulated.launched
    on_cpu = npth.join(hin, npth.PathSim(path), tmp_path / "cpu.parquet", block=40)
    assert on_gpu.path.read_bytes() == on_cpu.path.read_bytes()
    assert scorer.bind(hin).device == "cuda"
    assert scorer.params() == {"metapath": path}, "where it runs is no part of what it computes"


# ---- What the CPU does instead -------------------------------------------------------------------
@pytest.mark.slow
def test_few_queries_stay_on_the_cpu(emulated: EmulatedDevice) -> None:
    factors, rows = symmetric_factors(matrix("ones", 0)), np.arange(FEW)
    emulated.launched.clear()
    assert rank_on_gpu(factors, Normalisation.DICE, rows, rows, 10) is None
    assert not emulated.launched


@pytest.mark.usefixtures("emulated")
@pytest.mark.slow
def test_more_hits_than_the_gpu_keeps(warnings: pytest.LogCaptureFixture) -> None:
    factors = symmetric_factors(matrix("ones", 0))
    for _ in range(2):
        assert rank_on_gpu(factors, Normalisation.DICE, factors.all_rows, factors.all_rows, 65) is None
    assert warnings.messages == ["k is 65, and a GPU keeps at most 64 hits of a query: the CPU ranks instead"]


def test_a_product_that_does_not_fit(
    emulated: EmulatedDevice, warnings: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(emulated, "free_memory", lambda: 1000)
    factors = symmetric_factors(matrix("ones", 0))
    assert rank_on_gpu(factors, Normalisation.DICE, factors.all_rows, factors.all_rows, 10) is None
    assert "0.0 GiB are free: the CPU ranks instead" in warnings.text


@pytest.mark.usefixtures("emulated")
def test_weights_without_bounds_and_chains(warnings: pytest.LogCaptureFixture) -> None:
    factors = symmetric_factors(freeze(csr_array(np.full((20, 2), 1e-120))))
    chain = Chain([factors.left, factors.right], factors.left_norms, factors.right_norms)
    for product in (factors, chain):
        assert rank_on_gpu(product, Normalisation.DICE, np.arange(20), np.arange(20), 10) is None
    assert ["too large or too small" in line for line in warnings.messages] == [True, False]
    assert "does not fit into memory" in warnings.messages[1]


@pytest.mark.usefixtures("emulated")
def test_a_range_is_found_by_the_cpu(warnings: pytest.LogCaptureFixture) -> None:
    scorer = npth.PathSim("APVPA", device="cuda").fit(npth.load("toy"))
    assert len(scorer.range_rows(np.arange(5), np.arange(5), 0.5).rows)
    assert "no k is given: the CPU ranks instead" in warnings.text


# ---- The device ----------------------------------------------------------------------------------
def test_an_unknown_device_is_refused() -> None:
    with pytest.raises(QueryError, match="device is 'tpu'; it can be 'cpu' or 'cuda'"):
        npth.PathSim("APA", device="tpu")


@pytest.mark.skipif(find_spec("cupy") is not None, reason="CuPy is installed; run the tests without the extra gpu")
def test_without_cupy_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu, "cuda_device", FIND_DEVICE)
    with pytest.raises(MissingExtraError, match=r"this needs CuPy, .* pip install .*\[gpu\]'"):
        npth.PathSim("APVPA", device="cuda").fit(npth.load("toy"))


def test_blocks_fit_into_the_shared_memory_of_common_gpus() -> None:
    shape = Shape()
    assert max(map(shape.shared_bytes, ("rank_whole", "rank_ordered"))) <= 99 << 10  # Ampere and Ada without the A100
    assert shape.shared_bytes("rank_light") <= 227 << 10  # Hopper
    assert shape.whole_tile <= 2**16
    assert not shape.whole_tile % (4 * shape.threads)
    assert not shape.ordered_tile % (4 * shape.threads)


def _fake_cupy(devices: int, shared_bytes: int) -> ModuleType:
    """A CuPy that knows how many devices there are, and the shared memory of a block."""
    cupy = ModuleType("cupy")
    cupy.cuda = SimpleNamespace(  # type: ignore[attr-defined]
        runtime=SimpleNamespace(
            CUDARuntimeError=OSError,
            getDevice=lambda: 0,
            getDeviceCount=lambda: devices,
            deviceGetAttribute=lambda attribute, device: {(97, 0): shared_bytes}[attribute, device],
        )
    )
    return cupy


@pytest.mark.parametrize(
    ("devices", "shared_bytes", "message"),
    [
        (0, 0, "device is 'cuda', but no CUDA device is available here; use 'cpu'"),
        (1, 64 << 10, "a block of this GPU has 64 KiB of shared memory, and 83 are needed; use 'cpu'"),
    ],
)
def test_a_gpu_that_cannot_rank_is_refused(
    devices: int, shared_bytes: int, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "cupy", _fake_cupy(devices, shared_bytes))
    with pytest.raises(QueryError, match=message):
        FIND_DEVICE.__wrapped__()


@pytest.mark.parametrize(("shared_bytes", "warps"), [(99 << 10, 6), (227 << 10, 14)])
def test_a_small_gpu_gets_smaller_blocks(shared_bytes: int, warps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", _fake_cupy(1, shared_bytes))
    shape = FIND_DEVICE.__wrapped__().shape
    assert shape.light_warps == warps
    assert shape.shared_bytes("rank_light") <= shared_bytes


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> Device:
    cupy = pytest.importorskip("cupy", reason="no CuPy; pip install 'neupath[gpu]' on a machine with a CUDA device")
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError:
        count = 0
    if not count:
        pytest.skip("no CUDA device; run the tests on a machine with one")
    monkeypatch.setattr(gpu, "cuda_device", FIND_DEVICE)
    return FIND_DEVICE()


@pytest.mark.parametrize("weights", ["ones", "counts", "floats", "large"])
@pytest.mark.parametrize("normalisation", list(Normalisation))
@pytest.mark.usefixtures("cuda")
def test_a_real_gpu_ranks_as_the_cpu(weights: str, normalisation: int | Formula) -> None:
    for density in (0.002, 0.05):
        for k in (1, 10, 256):
            assert_equal(symmetric_factors(random((3000, 800), density, weights)), normalisation, k)

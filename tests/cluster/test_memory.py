"""Memory limits: a join whose product is larger than a worker stays below its limit, and an error says what cannot."""

import time
from collections.abc import Iterator
from pathlib import Path

import dask
import numpy as np
import pyarrow as pa
import pytest
from distributed.security import Security

import neupath as npth
from neupath import HIN, NeuPathError, join
from neupath.cluster import Dask, workers
from neupath.cluster.join_tasks import MemoryBudget, memory_budget
from neupath.cluster.workers import Workers, connect
from neupath.engine.join import JoinJob, JoinSide
from neupath.graph.hin import Edges
from neupath.graph.metapath import Relation
from neupath.graph.nodes import Nodes
from tests.cluster.clusters import using
from tests.patience import PATIENCE

pytestmark = pytest.mark.slow
LIMIT = 480 << 20


@pytest.fixture(scope="module")
def small_worker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workers]:
    folder = tmp_path_factory.mktemp("dask")
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        connect(None, 1, LIMIT, folder) as workers,
        using(workers.client.security),
    ):
        yield workers


def test_workers_started_here_refuse_clients_without_their_certificate(small_worker: Workers, monkeypatch) -> None:
    address = small_worker.client.scheduler.address
    assert address.startswith("tls://127.0.0.1:")
    with workers._client_of(address):
        monkeypatch.setattr(workers, "_SECONDS_TO_CONNECT", 1)
    for stranger in (address, address.replace("tls", "tcp")):
        with (
            using(Security.temporary()),
            pytest.raises(NeuPathError, match="no scheduler answers at"),
            workers._client_of(stranger),
        ):
            pytest.fail("a stranger is connected")


def peak() -> int:
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM"))


def test_a_product_larger_than_a_worker_stays_below_its_limit(small_worker: Workers, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    authors, papers = rng.integers(0, 2000, 30_000), rng.integers(0, 300, 30_000)
    nodes = [Nodes("author", pa.array(np.arange(2000))), Nodes("paper", pa.array(np.arange(300)))]
    hin = HIN.build(nodes, [Edges(Relation("author", "writes", "paper"), authors, papers)])
    measure = npth.PathSim("author-paper-author-paper-author")
    options = {"queries": range(0, 2000, 50), "block": 10}
    engine = Dask(small_worker.client.scheduler.address)
    join(hin, measure, tmp_path / "there.parquet", 5, engine=engine, **options)
    assert max(small_worker.client.run(peak).values()) < 0.95 * LIMIT
    join(hin, measure.fit(hin), tmp_path / "here.parquet", 5, **options)
    assert memory_budget(LIMIT).entries < measure.factors_.left.nnz  # as a whole, it would not have fit
    assert (tmp_path / "here.parquet").read_bytes() == (tmp_path / "there.parquet").read_bytes()


def test_the_hits_of_a_block_are_counted(tmp_path: Path) -> None:
    def job(k: int | None, block: int) -> JoinJob:
        side = JoinSide("a", pa.array([str(i) for i in range(10_000)]))
        return JoinJob(tmp_path / "a.parquet", np.arange(10_000), k, 0.5, block, side, side)

    assert memory_budget(LIMIT, job(None, 4096)) == MemoryBudget(memory_budget(LIMIT).entries, 0)
    few, many = memory_budget(LIMIT, job(10, 500)), memory_budget(LIMIT, job(1000, 500))
    assert many.entries < few.entries < memory_budget(LIMIT).entries
    assert (few.hits, many.hits) == (10 * 10_000, 1000 * 500)  # of all blocks, and of one, which is more than a quarter
    with pytest.raises(NeuPathError, match=r"480 MiB .* 844 for a block of 4,096 queries with 1,000 hits each;"):
        memory_budget(LIMIT, job(1000, 4096))


def test_many_hits_stay_below_the_limit(small_worker: Workers, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    ids = pa.array([f"author-{number:08}" for number in range(3000)])
    edges = Edges(Relation("author", "writes", "paper"), np.repeat(np.arange(3000), 20), rng.integers(0, 100, 60_000))
    hin = HIN.build([Nodes("author", ids), Nodes("paper", pa.array(np.arange(100)))], [edges])
    engine = Dask(small_worker.client.scheduler.address)
    join(hin, npth.PathSim("author-paper-author"), tmp_path / "a.parquet", 1000, engine=engine, block=900)
    assert max(small_worker.client.run(peak).values()) < 0.95 * LIMIT


def test_a_task_that_does_not_fit_raises_one_sentence(small_worker: Workers) -> None:
    with pytest.raises(NeuPathError, match=r"a task took more memory than a worker has, .* give a larger memory_limit"):
        small_worker.each(lambda: (np.ones(10**8), time.sleep(PATIENCE)), [()])


def test_tasks_that_the_scheduler_lost_raise_an_error(small_worker: Workers) -> None:
    with pytest.raises(NeuPathError, match=r"the join on the cluster failed \(the scheduler lost its tasks"):
        small_worker.each(time.sleep, [(0,), (PATIENCE,)], lambda _: small_worker.client.restart(timeout=PATIENCE))


def test_a_file_that_a_task_cannot_read_raises_one_sentence(small_worker: Workers, tmp_path: Path) -> None:
    with pytest.raises(NeuPathError, match="the join on the cluster failed .*No such file or directory"):
        small_worker.each(np.load, [(tmp_path / "gone.npy",)])

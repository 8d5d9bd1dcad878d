"""Joins on a cluster: the same to the byte as in one process, whatever is cut, killed or interrupted."""

import logging
import os
import re
import signal
import socketserver
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from threading import Event, Thread

import numpy as np
import pyarrow.parquet as pq
import pytest
from distributed import Client, as_completed

import neupath as npth
from neupath import HIN, NeuPathError, cluster, join
from neupath.cluster import Dask, workers
from neupath.cluster import join_tasks as ranking
from neupath.cluster.join_tasks import merge_hits
from neupath.engine.join import discard
from neupath.engine.topk import hit_lists, top_k_of_scores
from neupath.io import write_folder
from neupath.measures import PPR, HeteSim, measure_named, walk_measures
from tests.cluster.clusters import start_cluster
from tests.command_line import Run
from tests.conditioned import Case
from tests.patience import PATIENCE, wait_until
from tests.processes import run_process
from tests.walks import by_walks

APVPA = "author-paper-venue-paper-author"
WORKERS = 3  # one of them is killed


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A scheduler and some workers, each a process of its own, over TCP; they end early, as idle ones cost time."""
    with start_cluster(tmp_path_factory.mktemp("dask"), WORKERS) as (address, _):
        yield address


def same(scorer, folder: Path, engine: Dask, k: int | None = 5, **options) -> bool:
    """Whether a join on the cluster writes the very file that one in this process does."""
    here, there = folder / "here.parquet", folder / "there.parquet"
    join(scorer.hin_, scorer, here, k, **options)
    join(scorer.hin_, measure_named(scorer.name, scorer.metapath_), there, k, engine=engine, **options)
    assert sorted(folder.iterdir()) == [here, there]
    return here.read_bytes() == there.read_bytes()


@pytest.mark.usefixtures("inline")
@pytest.mark.parametrize("measure", walk_measures())
@pytest.mark.parametrize("strip", [300, 1200, None])
@pytest.mark.slow
def test_any_measure_in_any_strips(weighted: HIN, tmp_path: Path, measure: str, strip: int | None) -> None:
    assert same(measure_named(measure, APVPA).fit(weighted), tmp_path, Dask(strip=strip), block=64)


@pytest.mark.usefixtures("inline")
@pytest.mark.parametrize("seed", range(4))
def test_conditions_count_as_in_one_process(tmp_path: Path, seed: int) -> None:
    case = Case(seed)
    for number in range(2):
        path, folder = case.path(symmetric=True), tmp_path / str(number)
        folder.mkdir()
        for measure in ("pathsim", "dwpc"):
            assert same(measure_named(measure, path).fit(case.hin), folder, Dask(strip=20), block=3)
            scores = by_walks(measure, case.hin, path)
            for pair in pq.read_table(folder / "there.parquet").to_pylist():
                row, column = (case.hin.row(path.source, pair[end]) for end in ("query", "target"))
                assert pair["score"] == pytest.approx(scores[row, column], rel=1e-9)
            for file in folder.iterdir():
                file.unlink()


@pytest.mark.usefixtures("inline")
def test_some_queries_in_any_order(weighted: HIN, tmp_path: Path) -> None:
    queries = np.random.default_rng(0).permutation(weighted.nodes["author"].ids.to_pylist())[:90].tolist()
    assert same(npth.PathSim(APVPA).fit(weighted), tmp_path, Dask(strip=300), queries=queries, block=20)


@pytest.mark.usefixtures("inline")
@pytest.mark.parametrize("measure", ["pathsim", "hetesim"])
@pytest.mark.parametrize("k", [None, 3])
def test_a_minimal_score(weighted: HIN, tmp_path: Path, measure: str, k: int | None) -> None:
    assert same(measure_named(measure, APVPA).fit(weighted), tmp_path, Dask(strip=300), k, min_score=0.4, block=50)


@pytest.mark.usefixtures("inline")
def test_targets_of_another_type(weighted: HIN, tmp_path: Path) -> None:
    assert same(HeteSim("author-paper-venue-paper").fit(weighted), tmp_path, Dask(strip=15_000), block=100)


@pytest.mark.usefixtures("inline")
def test_an_interrupted_join_resumes(weighted: HIN, tmp_path: Path) -> None:
    def stop(_: str, done: int, __: int | None) -> None:
        if done > 100:
            raise KeyboardInterrupt

    scorer = npth.PathSim(APVPA)
    with pytest.raises(KeyboardInterrupt):
        join(weighted, scorer, tmp_path / "there.parquet", 5, block=10, engine=Dask(strip=300), progress=stop)
    joined = join(weighted, scorer, tmp_path / "there.parquet", 5, block=10, engine=Dask(strip=400))
    assert 0 < joined.resumed < joined.blocks
    join(weighted, scorer, tmp_path / "here.parquet", 5, block=10)
    assert (tmp_path / "here.parquet").read_bytes() == (tmp_path / "there.parquet").read_bytes()


def test_hits_merge_exactly() -> None:
    rng = np.random.default_rng(1)
    scores = rng.integers(0, 5, (50, 40)).astype(float)  # many ties
    nobody = np.full(50, -1)
    first, second = (hit_lists(top_k_of_scores(part, nobody, 6), 0) for part in (scores[:, :25], scores[:, 25:]))
    merged = merge_hits([first, replace(second, rows=second.rows + 25)], 6)
    whole = hit_lists(top_k_of_scores(scores, nobody, 6), 0)
    for name in ("starts", "rows", "scores"):
        assert np.array_equal(getattr(merged, name), getattr(whole, name))


@pytest.mark.slow
def test_workers_clear_their_caches_after_a_join(scheduler: str, weighted: HIN, tmp_path: Path) -> None:
    join(weighted, npth.PathSim(APVPA), tmp_path / "a.parquet", 5, engine=Dask(scheduler))
    with Client(scheduler) as client:
        kept = client.run(lambda: len(__import__("neupath.cluster.workers", fromlist=["_last"])._last))
    assert set(kept.values()) == {0}


@pytest.mark.parametrize("measure", ["pathsim", "joinsim", "hetesim", "pathcount", "pcrw"])
@pytest.mark.slow
def test_workers_over_tcp(scheduler: str, weighted: HIN, tmp_path: Path, measure: str) -> None:
    assert same(measure_named(measure, APVPA).fit(weighted), tmp_path, Dask(scheduler, strip=400), block=16)


@pytest.mark.slow
def test_results_arrive_on_the_event_loop_of_the_join(scheduler: str, weighted: HIN, tmp_path, monkeypatch) -> None:
    """On the loop of another client, which is the current one here, they were sometimes never seen."""

    class Watched(as_completed):
        def update(self, futures: list) -> None:
            assert {future.client.loop for future in futures} == {self.loop}
            super().update(futures)

    monkeypatch.setattr("distributed.as_completed", Watched)
    with Client(scheduler):
        join(weighted, npth.PathSim("paper-author-paper"), tmp_path / "top.parquet", 5, engine=Dask(scheduler))


@pytest.mark.slow
def test_a_killed_worker_loses_nothing_but_time(scheduler: str, weighted: HIN, tmp_path: Path) -> None:
    killed: list[str] = []
    with Client(scheduler) as client:
        process = client.run(os.getpid)

        def kill(_: str, done: int, total: int) -> None:
            if 0 < done < total and not killed:
                tasks = client.processing()
                killed.append(max(tasks, key=lambda worker: len(tasks[worker])))
                os.kill(process[killed[0]], signal.SIGKILL)

        scorer = npth.PathSim("paper-author-paper")
        join(weighted, scorer, tmp_path / "there.parquet", 5, block=2, engine=Dask(scheduler, strip=300), progress=kill)
        assert killed[0] not in client.run(os.getpid)
    join(weighted, scorer, tmp_path / "here.parquet", 5, block=2)
    assert (tmp_path / "here.parquet").read_bytes() == (tmp_path / "there.parquet").read_bytes()


@pytest.mark.slow
def test_a_finished_join_does_not_fail_for_caches_that_cannot_be_cleared(
    scheduler: str, weighted: HIN, tmp_path, monkeypatch
) -> None:
    def break_off(client: Client, work: object, *arguments: object, **options: object) -> object:
        assert work is not workers.clear_cache, "a connection broke"
        return run(client, work, *arguments, **options)

    run = Client.run
    monkeypatch.setattr(Client, "run", break_off)
    joined = join(weighted, npth.PathSim("paper-author-paper"), tmp_path / "top.parquet", 5, engine=Dask(scheduler))
    assert joined.path.exists()


@pytest.mark.slow
def test_without_workers_a_join_gives_up_and_keeps_finished_blocks(tmp_path: Path, weighted: HIN, caplog) -> None:
    scorer, out = npth.PathSim("paper-author-paper"), tmp_path / "there.parquet"
    (tmp_path / "dask").mkdir()
    with start_cluster(tmp_path / "dask", 1) as (address, [worker]):

        def kill(_: str, done: int, __: int | None) -> None:
            if done:
                worker.kill()

        with pytest.raises(NeuPathError, match=r"failed \(all workers were gone for 1 seconds\); run it again"):
            join(weighted, scorer, out, 5, block=2, engine=Dask(address, patience=1), progress=kill)
    assert "all workers are gone; waiting 1 seconds for others" in caplog.text
    assert join(weighted, scorer, out, 5, block=2).resumed > 0


@pytest.mark.slow
def test_a_client_whose_scheduler_is_gone_closes_in_silence(scheduler: str, monkeypatch, caplog) -> None:
    def fail(client: Client) -> None:
        logging.getLogger("distributed.client").error("a traceback")
        close(client)
        raise RuntimeError("dictionary changed size during iteration")

    close = Client.close
    monkeypatch.setattr(Client, "close", fail)
    with pytest.raises(NeuPathError, match="the scheduler is gone"), workers._client_of(scheduler):
        raise NeuPathError("the scheduler is gone")
    assert not caplog.records


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.slow
def test_ctrl_c_while_an_object_is_freed_ends_the_join(scheduler: str, weighted: HIN, tmp_path: Path) -> None:
    class Freed:
        def __del__(self) -> None:
            signal.raise_signal(signal.SIGINT)

    objects = [Freed()]

    def free(_: str, done: int, __: int | None) -> None:
        if done:
            objects.clear()  # Python drops the exception that is raised here

    with pytest.raises(KeyboardInterrupt):
        join(weighted, npth.PathSim(APVPA), tmp_path / "a.parquet", 5, block=50, engine=Dask(scheduler), progress=free)


@pytest.mark.slow
def test_ctrl_c_says_what_is_kept(tmp_path: Path) -> None:
    options = ["--metapath", "class-method-class", "--block", "1", "--engine", "dask", "--workers", "1"]
    command = [sys.executable, "-m", "neupath.cli", "join", "stdlib", "--out", "top.parquet", *options]
    with run_process(command, cwd=tmp_path, stderr=subprocess.PIPE) as process:
        blocks = "top.parquet.parts/0*.parquet"
        wait_until(lambda: list(tmp_path.glob(blocks)) or process.poll() is not None, "no block is written")
        assert process.poll() is None, "it ended before it could be interrupted"
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does, which interrupts the workers, too
        message = process.communicate(timeout=PATIENCE)[1]
    assert process.returncode == 130
    # Python itself may have said before that the interrupt came while an object was freed
    last = message.splitlines()[-1]
    assert re.fullmatch(r"error: interrupted; \d+ finished blocks are kept in top.parquet.parts, and .*", last), message
    assert [path.name for path in tmp_path.iterdir()] == ["top.parquet.parts"]
    assert not list(tmp_path.glob("top.parquet.parts/work-*"))


@pytest.mark.usefixtures("inline")
def test_names_of_queries_and_targets(weighted: HIN, tmp_path: Path) -> None:
    assert same(npth.PathSim(APVPA).fit(weighted), tmp_path, Dask(), block=64)
    assert pq.read_schema(tmp_path / "here.parquet").names[4:] == ["query_name", "target_name"]


@pytest.mark.usefixtures("inline")
def test_a_task_that_outlives_its_join_writes_no_block(weighted: HIN, tmp_path: Path, monkeypatch) -> None:
    def write(*arguments: object) -> None:
        discard(next(tmp_path.glob("a.parquet.parts/work-*")))  # the join is over, and another may use its folder
        whole(*arguments)

    whole = ranking.write_hits
    monkeypatch.setattr(ranking, "write_hits", write)
    with pytest.raises(NeuPathError, match="cannot write .*000000.parquet: .*No such file or directory"):
        join(weighted, npth.PathSim(APVPA), tmp_path / "a.parquet", 5, engine=Dask())
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_a_store_is_mapped_and_joined_by_workers_of_the_command(run: Run, weighted: HIN, tmp_path: Path) -> None:
    tables, store = write_folder(weighted, tmp_path / "tables"), tmp_path / "store"
    assert run("import", tables, "--to", store).code == 0
    for name, *engine in (("there", "--engine", "dask", "--workers", 2), ("here",)):
        out = tmp_path / f"{name}.parquet"
        result = run("join", store, "--metapath", APVPA, "-k", 5, "--block", 64, *engine, "--out", out, "--json")
        assert result.code == 0, result.err
        assert result.json["queries"] == 300
    join(npth.load(tables), npth.PathSim(APVPA), tmp_path / "loaded.parquet", 5, block=64)
    here, there, loaded = ((tmp_path / f"{name}.parquet").read_bytes() for name in ("here", "there", "loaded"))
    assert here == there == loaded
    matrices = dict(npth.load(store).matrices)
    assert matrices.keys() == weighted.matrices.keys()
    assert str(store) in Path("/proc/self/maps").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--patience", 9], "--patience only works with a cluster; give --engine dask, too"),
        (["--engine", "dask", "--patience", 0], "--patience is 0.0; wait for some seconds, such as 120"),
        (["--workers", 2], "--workers only works with a cluster; give --engine dask, too"),
        (
            ["--engine", "dask", "--ingest", "cluster"],
            "--ingest is gone, since workers no longer read tables; import the",
        ),
        (["--engine", "dask", "--threads", 2], "leave out --threads, --device and --model"),
        (["--engine", "dask", "--workers", 0], "--workers is 0; use at least 1"),
        (["--engine", "dask", "--memory-limit", "much"], "--memory-limit is 'much'; give a number of bytes"),
        (["--engine", "dask", "--memory-limit", "200MiB"], "a worker has 200 MiB of memory, and needs at least"),
        (["--engine", "dask", "--scheduler", "nowhere"], "no --scheduler answers at 'nowhere'"),
        (["--engine", "dask", "--scheduler", "tcp://h:1", "--workers", 2], "a scheduler has workers of its own"),
    ],
)
def test_bad_input(run: Run, tmp_path: Path, options: list, message: str) -> None:
    result = run("join", "toy", "--metapath", "APVPA", "--out", tmp_path / "top.parquet", *options)
    assert result.code == 2
    assert message in result.err


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", r"what answers at 'tcp://.*' is not a Dask scheduler; give the address"),
        (b"", "no scheduler answers at 'tcp://.*'; start one"),
    ],
)
@pytest.mark.slow
def test_a_server_that_is_no_scheduler_is_refused(tmp_path: Path, monkeypatch, answer: bytes, message: str) -> None:
    class Answer(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            self.request.sendall(answer)
            self.request.recv(1 << 20)
            finished.wait(PATIENCE)

    finished = Event()
    if not answer:
        monkeypatch.setattr(workers, "_SECONDS_TO_CONNECT", 0.2)
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Answer) as server:
        Thread(target=server.serve_forever).start()
        try:
            address = f"tcp://127.0.0.1:{server.server_address[1]}"
            with pytest.raises(NeuPathError, match=message):
                join(npth.load("toy"), npth.PathSim("APVPA"), tmp_path / "a.parquet", engine=Dask(address))
        finally:
            finished.set()
            server.shutdown()
    assert not list(tmp_path.iterdir())


def test_a_scheduler_that_needs_certificates_says_so(tmp_path: Path) -> None:
    with pytest.raises(NeuPathError, match=r"the scheduler at 'tls://.*' needs certificates; name them in Dask's conf"):
        join(npth.load("toy"), npth.PathSim("APVPA"), tmp_path / "a.parquet", engine=Dask("tls://127.0.0.1:1"))


def test_joins_of_tables_that_workers_read_say_what_to_do_instead(tmp_path: Path) -> None:
    for name in ("join_folder", "join_plan", "plan_folder"):
        with pytest.raises(NeuPathError, match=r"workers no longer read tables; import the folder into a store once"):
            getattr(cluster, name)(npth.PathSim(APVPA), tmp_path, out=tmp_path / "a.parquet")


def test_other_scorers_are_refused(tmp_path: Path) -> None:
    scorer = PPR("author").fit(npth.load("toy"))
    with pytest.raises(NeuPathError, match="ppr cannot be joined on a cluster, only measures over a meta-path can"):
        join(scorer.hin_, scorer, tmp_path / "a.parquet", 2, engine=Dask())


@pytest.mark.parametrize("package", ["distributed", "cryptography"])
def test_a_missing_extra_is_one_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, package: str) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(NeuPathError, match=r"this needs Dask and cryptography, .* pip install .*\[cluster\]'"):
        join(npth.load("toy"), npth.PathSim("APVPA"), tmp_path / "a.parquet", 2, engine=Dask())

"""Joins on a cluster: the same to the byte as in one process, whatever is cut, killed or interrupted."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from distributed import Client

import neupath as npth
from neupath import HIN, NeuPathError, join
from neupath.cluster import Dask
from neupath.cluster import join_tasks as ranking
from neupath.cluster.join_tasks import merge_rankings
from neupath.engine.join import discard
from neupath.engine.topk import Ranking, top_k_of_scores
from neupath.measures import MEASURES, measure_named
from tests.cluster.clusters import WORKERS, start_cluster
from tests.command_line import Run
from tests.processes import run_process

APVPA = "author-paper-venue-paper-author"


def same(scorer, folder: Path, engine: Dask, k: int | None = 5, **options) -> bool:
    """Whether a join on the cluster writes the very file that one in this process does."""
    here, there = folder / "here.parquet", folder / "there.parquet"
    join(scorer.hin_, scorer, here, k, **options)
    join(scorer.hin_, measure_named(scorer.name, scorer.metapath_), there, k, engine=engine, **options)
    assert sorted(folder.iterdir()) == [here, there]
    return here.read_bytes() == there.read_bytes()


@pytest.mark.usefixtures("inline")
@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("strip", [300, 1200, None])
def test_any_measure_in_any_strips(weighted: HIN, tmp_path: Path, measure: str, strip: int | None) -> None:
    assert same(measure_named(measure, APVPA).fit(weighted), tmp_path, Dask(strip=strip), block=64)


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
    assert same(npth.HeteSim("author-paper-venue-paper").fit(weighted), tmp_path, Dask(strip=15_000), block=100)


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


def test_rankings_merge_exactly() -> None:
    rng = np.random.default_rng(1)
    scores = rng.integers(0, 5, (50, 40)).astype(float)  # many ties
    nobody = np.full(50, -1)
    first, second = (top_k_of_scores(part, nobody, 6) for part in (scores[:, :25], scores[:, 25:]))
    merged = merge_rankings(first, Ranking(second.rows + 25, second.scores, second.sizes), 6)
    whole = top_k_of_scores(scores, nobody, 6)
    assert np.array_equal(merged.rows, whole.rows)
    assert np.array_equal(merged.scores, whole.scores)


def test_workers_clear_their_caches_after_a_join(scheduler: str, weighted: HIN, tmp_path: Path) -> None:
    join(weighted, npth.PathSim(APVPA), tmp_path / "a.parquet", 5, engine=Dask(scheduler))
    with Client(scheduler) as client:
        kept = client.run(lambda: len(__import__("neupath.cluster.workers", fromlist=["_last"])._last))
    assert set(kept.values()) == {0}


@pytest.mark.parametrize("measure", ["pathsim", "joinsim", "hetesim", "pathcount", "pcrw"])
def test_workers_over_tcp(scheduler: str, weighted: HIN, tmp_path: Path, measure: str) -> None:
    assert same(measure_named(measure, APVPA).fit(weighted), tmp_path, Dask(scheduler, strip=400), block=16)


def test_a_killed_worker_loses_nothing_but_time(scheduler: str, weighted: HIN, tmp_path: Path) -> None:
    killed: list[str] = []
    with Client(scheduler) as client:
        client.wait_for_workers(WORKERS, timeout=30)
        process = client.run(os.getpid)

        def kill(_: str, done: int, total: int) -> None:
            busy = [worker for worker, tasks in client.processing().items() if tasks]
            if 0 < done < total and busy and not killed:
                killed.append(busy[0])
                os.kill(process[busy[0]], signal.SIGKILL)

        scorer = npth.PathSim("paper-author-paper")
        join(weighted, scorer, tmp_path / "there.parquet", 5, block=2, engine=Dask(scheduler, strip=300), progress=kill)
        assert killed[0] not in client.run(os.getpid)
    join(weighted, scorer, tmp_path / "here.parquet", 5, block=2)
    assert (tmp_path / "here.parquet").read_bytes() == (tmp_path / "there.parquet").read_bytes()


def test_without_workers_a_join_gives_up_and_keeps_finished_blocks(tmp_path: Path, weighted: HIN, caplog) -> None:
    scorer, out = npth.PathSim("paper-author-paper"), tmp_path / "there.parquet"
    (tmp_path / "dask").mkdir()
    with start_cluster(tmp_path / "dask", 1) as (address, workers):

        def kill(_: str, done: int, __: int | None) -> None:
            if done:
                workers[0].kill()

        with pytest.raises(NeuPathError, match=r"failed \(all workers were gone for 1 seconds\); run it again"):
            join(weighted, scorer, out, 5, block=2, engine=Dask(address, patience=1), progress=kill)
    assert "all workers are gone; waiting 1 seconds for others" in caplog.text
    assert join(weighted, scorer, out, 5, block=2).resumed > 0


def test_ctrl_c_says_what_is_kept(tmp_path: Path) -> None:
    options = ["--metapath", "class-method-class", "--block", "1", "--engine", "dask", "--workers", "1"]
    command = [sys.executable, "-m", "neupath.cli", "join", "stdlib", "--out", "top.parquet", *options]
    with run_process(command, cwd=tmp_path, stderr=subprocess.PIPE, start_new_session=True) as process:
        while not list(tmp_path.glob("top.parquet.parts/0*.parquet")):
            assert process.poll() is None, "it ended before it could be interrupted"
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does, which interrupts the workers, too
        message = process.communicate()[1]
    assert process.returncode == 130
    assert re.fullmatch(r"error: interrupted; \d+ finished blocks are kept in top.parquet.parts, and .*\n", message)
    assert [path.name for path in tmp_path.iterdir()] == ["top.parquet.parts"]
    assert not list(tmp_path.glob("top.parquet.parts/work-*"))


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


def test_the_command_starts_workers_of_its_own(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "top.parquet"
    result = run("join", "toy", "--metapath", "APVPA", "--engine", "dask", "--workers", 1, "--out", out, "--json")
    assert result.code == 0
    assert result.json["queries"] == 5
    join(npth.load("toy"), npth.PathSim("APVPA"), tmp_path / "here.parquet", 10)
    assert out.read_bytes() == (tmp_path / "here.parquet").read_bytes()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--patience", 9], "--patience only works with a cluster; give --engine dask, too"),
        (["--engine", "dask", "--patience", 0], "--patience is 0.0; wait for some seconds, such as 120"),
        (["--workers", 2], "--workers only works with a cluster; give --engine dask, too"),
        (["--engine", "dask", "--threads", 2], "leave out --threads and --model"),
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


def test_other_scorers_are_refused(tmp_path: Path) -> None:
    scorer = npth.PPR("author").fit(npth.load("toy"))
    with pytest.raises(NeuPathError, match="ppr cannot be joined on a cluster, only measures over a meta-path can"):
        join(scorer.hin_, scorer, tmp_path / "a.parquet", 2, engine=Dask())


def test_a_missing_extra_is_one_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(NeuPathError, match=r"this needs Dask, .* pip install 'neupath\[cluster\]'"):
        join(npth.load("toy"), npth.PathSim("APVPA"), tmp_path / "a.parquet", 2, engine=Dask())

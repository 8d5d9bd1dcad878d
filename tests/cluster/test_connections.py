"""Connecting to engines, and starting them here: one sentence says what does not answer, and Ctrl-C ends all."""

import logging
import os
import signal
import socketserver
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event

import pytest

import neupath as npth
from neupath import HIN, NeuPathError, join
from neupath.cluster import ENGINES, connect, dask, ray, spark
from neupath.errors import MissingExtraError, QueryError
from neupath.measures import PPR
from tests.cluster.engines import in_a_thread, need, start_scheduler
from tests.patience import PATIENCE, wait_until
from tests.processes import run_process

# ---- Workers that are started here ---------------------------------------------------------------
OWN_WORKERS = """
import sys
from pathlib import Path
import neupath as npth
from neupath.cluster import connect

if __name__ == "__main__":
    hin, measure, out = npth.load("toy"), npth.PathSim("APVPA"), Path(sys.argv[2])
    npth.join(hin, measure, out / "there.parquet", 3, block=2, engine=connect(sys.argv[1], workers=2))
    npth.join(hin, measure, out / "here.parquet", 3, block=2)
"""


@pytest.mark.slow
def test_workers_are_started_and_stopped(kind: str, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(OWN_WORKERS)
    (tmp_path / "out").mkdir()
    with run_process([sys.executable, script, kind, tmp_path / "out"], cwd=tmp_path, stderr=subprocess.PIPE) as process:
        message = process.communicate(timeout=PATIENCE)[1]
    assert process.returncode == 0, message
    here, there = (tmp_path / "out" / f"{name}.parquet" for name in ("here", "there"))
    assert here.read_bytes() == there.read_bytes()
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["here.parquet", "there.parquet"]
    assert "Traceback" not in message


INTERRUPTED = """
import sys
from pathlib import Path
import neupath as npth
from neupath.cluster import connect

if __name__ == "__main__":
    hin = npth.load("stdlib")
    npth.join(hin, npth.PathSim("class-method-class"), sys.argv[2], 3, block=1, engine=connect(sys.argv[1], workers=1))
"""


@pytest.mark.slow
def test_ctrl_c_keeps_finished_blocks(kind: str, tmp_path: Path) -> None:
    script, out = tmp_path / "script.py", tmp_path / "top.parquet"
    script.write_text(INTERRUPTED)
    with run_process([sys.executable, script, kind, out], cwd=tmp_path, stderr=subprocess.PIPE) as process:
        blocks = "top.parquet.parts/0*.parquet"
        wait_until(lambda: list(tmp_path.glob(blocks)) or process.poll() is not None, "no block is written")
        assert process.poll() is None, "it ended before it could be interrupted"
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does, which interrupts the workers, too
        message = process.communicate(timeout=PATIENCE)[1]
    assert process.returncode in (1, 130, -signal.SIGINT), message
    assert "KeyboardInterrupt" in message
    assert list(tmp_path.glob(blocks))
    assert not out.exists()
    assert not list(tmp_path.glob("top.parquet.parts/work-*"))


# ---- Addresses -----------------------------------------------------------------------------------
@contextmanager
def answering(answer: bytes) -> Iterator[str]:
    """Serve something that is no engine; yield host:port."""

    class Answer(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            self.request.sendall(answer)
            finished.wait(PATIENCE)

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads, block_on_close = True, False

    finished = Event()
    with Server(("127.0.0.1", 0), Answer) as server:
        thread = in_a_thread(server.serve_forever)
        try:
            yield f"127.0.0.1:{server.server_address[1]}"
        finally:
            finished.set()
            server.shutdown()
            thread.join(PATIENCE)


def refuse(engine, tmp_path: Path, message: str) -> None:
    with pytest.raises(QueryError, match=message) as refused:
        join(npth.load("toy"), npth.PathSim("APVPA"), tmp_path / "a.parquet", engine=engine)
    assert "\n" not in str(refused.value)
    assert refused.value.parameter == "address"
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("address", "message"),
    [
        (
            "tcp://127.0.0.1:1",
            "no Dask scheduler answers at 'tcp://127.0.0.1:1'; start one with `dask scheduler`, and ",
        ),
        ("nowhere", "no Dask scheduler answers at 'nowhere'"),
        ("http://127.0.0.1:1", "no Dask scheduler answers at 'http://127.0.0.1:1'"),
        ("tls://127.0.0.1:1", "the scheduler at 'tls://127.0.0.1:1' needs certificates; name them in Dask's config"),
    ],
)
def test_where_no_scheduler_of_dask_is(address: str, message: str, tmp_path: Path) -> None:
    need("dask")
    refuse(dask.Dask(address), tmp_path, message)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", r"what answers at 'tcp://.*' is no Dask scheduler; give as address what"),
        (b"", "no Dask scheduler answers at 'tcp://.*'; start one"),
    ],
)
def test_what_answers_is_no_scheduler_of_dask(answer: bytes, message: str, tmp_path: Path, monkeypatch) -> None:
    need("dask")
    if not answer:
        monkeypatch.setattr(dask, "_SECONDS_TO_CONNECT", 0.2)
    with answering(answer) as place:
        refuse(dask.Dask(f"tcp://{place}"), tmp_path, message)


@pytest.mark.parametrize("address", ["127.0.0.1:1", "localhost:1"])
def test_where_no_cluster_of_ray_is(address: str, tmp_path: Path) -> None:
    need("ray")
    refuse(
        ray.Ray(address), tmp_path, f"no Ray cluster answers at {address} .*; start one with `ray start --head`, and"
    )


@pytest.mark.slow
@pytest.mark.parametrize("answer", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b""])
def test_what_answers_is_no_cluster_of_ray(answer: bytes, tmp_path: Path, monkeypatch) -> None:
    need("ray")
    monkeypatch.setattr(ray, "_SECONDS_TO_ANSWER", 5)
    with answering(answer) as place:
        refuse(
            ray.Ray(place), tmp_path, f"no Ray cluster answers at {place} .*; start one with `ray start --head`, and"
        )


@pytest.mark.parametrize("address", ["spark://127.0.0.1:1", "spark://localhost:1,localhost:2"])
def test_where_no_master_of_spark_is(address: str, tmp_path: Path) -> None:
    need("spark")
    refuse(spark.Spark(address), tmp_path, f"no Spark master answers at {address} .*; give as address the master")


@pytest.mark.slow
def test_a_master_that_spark_does_not_know(tmp_path: Path) -> None:
    need("spark")
    refuse(
        spark.Spark("nonsense"), tmp_path, "Spark did not start with the master nonsense .*; it needs Java 17 or newer"
    )


# ---- Dask alone ----------------------------------------------------------------------------------
@pytest.mark.slow
def test_a_scheduler_without_workers(tmp_path: Path, monkeypatch) -> None:
    need("dask")
    monkeypatch.setattr(dask, "_SECONDS_TO_CONNECT", 5)
    (tmp_path / "dask").mkdir()
    with (
        start_scheduler(tmp_path / "dask", 0) as (address, _),
        pytest.raises(QueryError, match="has no workers; start some"),
    ):
        join(npth.load("toy"), npth.PathSim("APVPA"), tmp_path / "a.parquet", engine=dask.Dask(address))


@pytest.mark.slow
def test_without_workers_a_join_gives_up_and_keeps_finished_blocks(
    weighted: HIN, tmp_path: Path, monkeypatch, caplog
) -> None:
    need("dask")
    monkeypatch.setattr(dask, "_PATIENCE", 1)
    scorer, out = npth.PathSim("paper-author-paper"), tmp_path / "there.parquet"
    (tmp_path / "dask").mkdir()
    with start_scheduler(tmp_path / "dask", 1) as (address, [worker]):

        def kill(_: str, done: int, __: int | None) -> None:
            if done:
                worker.kill()

        with pytest.raises(
            NeuPathError, match=r"all workers of Dask were gone for 1 seconds; start some, and run it ag"
        ):
            join(weighted, scorer, out, 5, block=2, engine=dask.Dask(address), progress=kill)
    assert "all workers of Dask are gone; waiting 1 seconds for others" in caplog.text
    assert join(weighted, scorer, out, 5, block=2).resumed > 0


@pytest.mark.slow
def test_ctrl_c_while_an_object_is_freed_ends_the_join(weighted: HIN, tmp_path: Path) -> None:
    need("dask")

    class Freed:
        def __del__(self) -> None:
            signal.raise_signal(signal.SIGINT)

    objects = [Freed()]

    def free(_: str, done: int, __: int | None) -> None:
        if done:
            objects.clear()  # Python drops the exception that is raised here

    (tmp_path / "dask").mkdir()
    with start_scheduler(tmp_path / "dask", 1) as (address, _), pytest.raises(KeyboardInterrupt):
        join(
            weighted, npth.PathSim("paper-author-paper"), tmp_path / "a.parquet", 5, block=5,
            engine=dask.Dask(address), progress=free,
        )  # fmt: skip
    assert logging.getLogger("distributed").level <= logging.CRITICAL


# ---- Bad input -----------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ENGINES)
def test_bad_options(name: str, tmp_path: Path) -> None:
    for workers, message in (
        (0, "workers is 0; start at least 1"),
        (True, "workers is True; start"),
        ("2", "is '2'; st"),
    ):
        with pytest.raises(QueryError, match=message):
            connect(name, workers=workers)  # type: ignore[arg-type]
    with pytest.raises(QueryError, match="the workers at tcp://h:1 run already; leave out workers"):
        connect(name, "tcp://h:1", 2)
    scorer = PPR("author").fit(npth.load("toy"))
    with pytest.raises(QueryError, match="ppr cannot be joined on a cluster, only an index or a measure along a meta"):
        join(scorer.hin_, scorer, tmp_path / "a.parquet", 2, engine=connect(name))
    with pytest.raises(QueryError, match="an index has no .*; leave out unless"):
        join(npth.load("toy"), npth.PathSim("APVPA"), tmp_path / "a.parquet", unless="APA", engine=connect(name))


def test_an_unknown_engine() -> None:
    with pytest.raises(QueryError, match="engine is 'slurm'; it can be local, dask, ray, spark"):
        connect("slurm")


@pytest.mark.parametrize(
    ("name", "package", "message"),
    [
        ("dask", "distributed", r"this needs Dask and cryptography, .*\[cluster\]"),
        ("dask", "cryptography", r"this needs Dask and cryptography, .*\[cluster\]"),
        ("ray", "ray", r"this needs Ray, .*\[ray\]"),
        ("spark", "pyspark", r"this needs PySpark, .*\[spark\]"),
    ],
)
def test_a_missing_extra_is_one_sentence(name: str, package: str, message: str, tmp_path: Path, monkeypatch) -> None:
    for known in [module for module in sys.modules if module.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, known)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=message):
        join(npth.load("toy"), npth.PathSim("APVPA"), tmp_path / "a.parquet", 2, engine=connect(name))
    assert not list(tmp_path.iterdir())

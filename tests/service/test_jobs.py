"""Jobs: started, followed, resumed, cancelled, refused; what they leave behind, and what a restart finds."""

import errno
import io
import json
import threading
from dataclasses import replace
from multiprocessing import Pipe
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pyarrow.parquet as pq
import pytest

import neupath as npth
from neupath import HIN
from neupath.client import read_events
from neupath.errors import QueryError, SourceError, WriteError
from neupath.service import job_process, jobs
from neupath.service.job_process import JobSpec, do_job, run_job
from neupath.service.jobs import Job, read_jobs
from neupath.service.limits import Limits
from tests.graphs import graph_of, shop_graph
from tests.patience import PATIENCE, wait_until
from tests.service.conftest import Running, Start

JOIN = {"kind": "join", "graph": "toy", "metapath": "APVPA", "k": 2}
WHAT_IF = {"kind": "whatif", "graph": "toy", "metapath": "APA", "query": "Mike", "target": "Bob"}
CHANCE = {"kind": "significance", "graph": "toy", "queries": ["Mike"], "metapath": "APA"}
TRAIN = {"kind": "train", "graph": "toy", "metapath": "APA"}
LABELS = {"kind": "train", "graph": "toy", "pairs": [{"query": "Mike", "target": "Bob", "score": 1}]}
PAIRS = [
    {"query": "Mike", "target": "Bob", "score": 1.0},
    {"query": "Mike", "target": "Mary", "score": 0.8},
    {"query": "Mary", "target": "Ann", "score": 2 / 7},
]


def wait_for(running: Running, job: str, state: str) -> dict[str, Any]:
    def status_in_state() -> dict[str, Any] | None:
        status: dict[str, Any] = running.get(f"/api/jobs/{job}").json()
        if status["state"] == state:
            return status
        assert status["state"] in ("waiting", "running"), status
        return None

    return wait_until(status_in_state, f"{job} did not become {state}")


def wait_for_all(running: Running) -> None:
    """Wait until the service has tidied up after its jobs."""
    wait_until(lambda: not running.service.jobs._active, "a job is still active")


@pytest.fixture(scope="module")
def large() -> HIN:
    """A graph on which a join takes a while."""
    rng = np.random.default_rng(0)
    ends = np.c_[rng.integers(0, 20_000, 400_000), rng.integers(0, 300, 400_000)]
    return graph_of({"a": 20_000, "b": 300}, {"a -r-> b": ends})


SLOW = {"kind": "join", "graph": "large", "metapath": "ABA", "k": 1000}


@pytest.mark.slow
def test_a_join_job_has_events_and_a_result(running: Running) -> None:
    started = running.post("/api/jobs", JOIN)
    assert started.status_code == 202
    job = started.json()["id"]
    text = running.get(f"/api/jobs/{job}/events").text
    events = list(read_events(line.encode() for line in text.split("\n")))
    assert [event.name for event in events][:2] == ["state", "state"]
    assert events[-1].name == "end"
    assert events[-1].data["state"] == "done"
    assert events[-1].data["summary"] == {"queries": 5, "pairs": 9}
    response = running.get(f"/api/jobs/{job}/result")
    assert response.headers["content-type"] == "application/vnd.apache.parquet"
    table = pq.read_table(io.BytesIO(response.content))
    assert table.slice(0, 2).to_pydict()["target"] == ["Bob", "Mary"]
    resumed = running.get(f"/api/jobs/{job}/events", headers={"last-event-id": str(events[-2].number)}).text
    assert [e.name for e in read_events(line.encode() for line in resumed.split("\n"))] == ["end"]
    for after in (str(events[-1].number), "999999"):  # who has heard the end, and who heard an earlier service
        again = running.get(f"/api/jobs/{job}/events", headers={"last-event-id": after}).text
        assert list(read_events(line.encode() for line in again.split("\n")))[-1].name == "end"
    assert job in [entry["id"] for entry in running.get("/api/jobs").json()]
    assert running.client.post(f"/api/jobs/{job}/cancel").json()["state"] == "done"  # too late, and nothing is lost
    url = f"/api/jobs/{job}/result"
    assert running.get(url).status_code == 200
    assert running.get(url, headers={"range": "bytes=0-3"}).content == b"PAR1"
    for header, status, message in (
        ("bytes=99999999-", 416, "the range 'bytes=99999999-' is not in the result, which has"),
        ("bytes=x", 400, "the range 'bytes=x' cannot be read; write it as bytes=0-"),
    ):
        refused = running.get(url, headers={"range": header})
        assert refused.status_code == status
        assert refused.json()["error"].startswith(message)
    assert running.client.delete(f"/api/jobs/{job}").status_code == 200
    assert running.get(f"/api/jobs/{job}").status_code == 404
    assert running.client.delete(f"/api/jobs/{job}").status_code == 404


@pytest.mark.slow
def test_an_infer_job_makes_a_model(running: Running) -> None:
    body = {"pairs": PAIRS, "max_length": 4, "node_type": "author"}
    started = running.post("/api/jobs", body | {"kind": "infer", "graph": "toy"}).json()
    job = started["id"]
    assert started["title"] == "meta-paths from 3 pairs of author"
    wait_for(running, job, "done")
    assert running.get(f"/api/jobs/{job}/result").json() == running.post("/api/graphs/toy/infer", body).json()
    models = {model["name"]: (model["title"], model["created"]) for model in running.get("/api/models").json()}
    assert (models[job], models["saved"]) == ((started["title"], started["created"]), ("saved", None))
    result = running.get(f"/api/graphs/toy/search?query=Mike&model={job}").json()
    assert [hit["id"] for hit in result["hits"]] == ["Bob", "Mary", "Jim"]
    joined = running.post("/api/jobs", {"kind": "join", "graph": "toy", "model": job}).json()["id"]
    assert wait_for(running, joined, "done")["summary"]["queries"] == 5
    running.client.delete(f"/api/jobs/{job}")
    assert running.get(f"/api/graphs/toy/search?query=Mike&model={job}").status_code == 404


@pytest.mark.slow
def test_a_trained_model_is_served(start: Start) -> None:
    pytest.importorskip("torch")
    running = start(graphs={"shop": shop_graph()})
    body = {"kind": "train", "graph": "shop", "architecture": "countpath", "metapath": "user-item-user", "epochs": 2}
    job = running.post("/api/jobs", body).json()["id"]
    done = wait_for(running, job, "done")
    assert done["progress"]["done"] == 2
    assert running.get(f"/api/jobs/{job}/result").json() == done["summary"]
    assert "folder" not in done["summary"]
    assert running.get("/api/models").json()[0]["measure"] == "countpath"
    assert running.get(f"/api/graphs/shop/search?query=u0&model={job}").json()["exact"] is False


@pytest.mark.slow
def test_pairs_say_the_types_of_ids_that_types_share(start: Start) -> None:
    pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    buys = rng.integers(0, 20, (60, 2))
    running = start(graphs={"shared": graph_of({"user": 20, "item": 20}, {"user -buys-> item": buys})})
    pairs = [{"query": q, "target": t, "score": s} for q, t, s in ((1, 2, 1.0), (3, 4, 0.0), (5, 1, 1.0))]
    body = {"kind": "train", "graph": "shared", "architecture": "countpath", "epochs": 1, "pairs": pairs}
    refused = running.post("/api/jobs", body)
    assert refused.status_code == 422
    assert "say which with node_type, or write query_type and target_type beside each pair" in refused.json()["error"]
    typed = [pair | {"query_type": "item", "target_type": "item"} for pair in pairs]
    for given in (body | {"node_type": "item"}, body | {"pairs": typed}):
        job = running.post("/api/jobs", given).json()["id"]
        assert wait_for(running, job, "done")["summary"]["architecture"] == "countpath"
    across = [pair | {"query_type": "user", "target_type": "item"} for pair in pairs]
    answer = running.post("/api/graphs/shared/infer", {"pairs": across, "max_length": 3}).json()
    assert answer["metapaths"][0]["metapath"].startswith("user")
    assert "ranks the nodes of one type" in running.post("/api/jobs", body | {"pairs": across}).json()["error"]


@pytest.mark.slow
def test_a_failed_job_has_an_error(running: Running) -> None:
    body = {"kind": "infer", "graph": "toy", "pairs": PAIRS, "measures": ["simrank"]}
    job = running.post("/api/jobs", body).json()["id"]
    failed = wait_for(running, job, "failed")
    assert failed["error"].startswith("'simrank' cannot be inferred")
    response = running.get(f"/api/jobs/{job}/result")
    assert response.status_code == 409
    assert response.json() == {"error": f"the job {job} is failed, and has no result: {failed['error']}"}


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        ({"kind": "dance"}, 422, "input tag 'dance' found using 'kind' does not match any of the expected tags"),
        (JOIN | {"graph": "x"}, 404, "no graph 'x' is served"),
        (JOIN | {"metapath": "APX"}, 422, "letter 3, 'X', is not the initial of a node type"),
        (JOIN | {"metapath": "APV"}, 422, "PathSim needs a symmetric meta-path"),
        (JOIN | {"k": 1001}, 422, "at most 1,000 hits"),
        (JOIN | {"out": "/etc/passwd"}, 422, "join.out is not a parameter or field of this request"),
        (JOIN | {"model": "saved"}, 422, "give either model or metapath"),
        ({"kind": "join", "graph": "toy", "model": "saved", "measure": "pcrw"}, 422, "give either model or measure"),
        ({"kind": "join", "graph": "toy", "measure": "simrank"}, 422, "simrank looks at the whole graph"),
        ({"kind": "join", "graph": "toy", "model": "../../etc"}, 404, "no model '../../etc' is served"),
        (WHAT_IF | {"target": "x"}, 404, "no author with the id 'x'"),
        (WHAT_IF | {"budget": 10**12}, 422, "at most 10,000,000,000"),
        (WHAT_IF | {"remove": "nonsense"}, 404, "no node type 'nonsense'"),
        (WHAT_IF | {"remove": "venue"}, 422, "venue is not on author-paper-author"),
        (WHAT_IF | {"add": "author"}, 422, "a new author cannot join"),
        (WHAT_IF | {"remove": "edges", "add": "edges"}, 422, "give either remove or add, not both"),
        (WHAT_IF | {"target": "Mike"}, 422, "'Mike' is both the query and the target"),
        ({"kind": "significance", "graph": "toy", "queries": ["Mike"]}, 422, "no meta-path is given"),
        (CHANCE | {"permutations": 10**6}, 422, "at most 1,000"),
        (CHANCE | {"stability_by": "x"}, 404, "no node type 'x' in this graph"),
        (CHANCE | {"stability_by": "venue"}, 422, "venue is not on author-paper-author; give one of author, paper"),
        (CHANCE | {"stability": True, "stability_by": "paper"}, 422, "give either stability, for edges, or stability_"),
        ({"kind": "train", "graph": "toy"}, 422, "give either metapath, to draw labels from a measure, or pairs"),
        (TRAIN | {"epochs": 9999}, 422, "at most 200 epochs"),
        (TRAIN | {"architecture": "node2vec"}, 422, "no architecture 'node2"),
        (TRAIN | {"architecture": "countpath", "dim": 8}, 422, "a countpath model has no dim; leave it out"),
        (TRAIN | {"architecture": "gcn", "paths": 2}, 422, "a gcn model has no paths; leave it out"),
        (TRAIN | {"learning_rate": True}, 422, "train.learning_rate is True: input should be a valid number"),
        ({"kind": "infer", "graph": "toy", "pairs": [{"query": "Mike", "target": "x"}]}, 404, "no node type has all"),
        (LABELS | {"pairs": [{"query": "Mike", "target": "KDD", "score": 1}], "architecture": "gcn"}, 422,
         "a gcn model ranks the nodes of one type, and these pairs go from author to venue nodes; neupath"),
        (LABELS | {"layers": 4}, 422, "auto chooses the settings of what it tries; leave out layers"),
        (LABELS | {"budget": 1e5}, 422, "budget is 100000"),
        (LABELS | {"architecture": "gcn", "budget": 5}, 422, "budget is for auto, and the architecture is gcn"),
        (LABELS | {"node_type": "author", "query_type": "author"}, 422, "node_type is 'author' and query_type is"),
        (LABELS | {"node_type": "venue"}, 404, "no venue with the id"),
        (TRAIN | {"architecture": "auto"}, 422, "auto judges learners by labels of your own; give pairs"),
        (LABELS | {"pairs": [{"query": "Mike", "target": "Bob", "score": "high"}]}, 422,
         "the score 'high'; scores are finite numbers, or words such as yes and no"),
    ],
)  # fmt: skip
def test_invalid_jobs_are_errors_at_once(running: Running, body: object, status: int, message: str) -> None:
    response = running.post("/api/jobs", body)
    assert response.status_code == status
    assert message in response.json()["error"]


@pytest.mark.slow
def test_a_full_queue_cancelling_and_removing(start: Start, large: HIN, tmp_path: Path) -> None:
    running = start(graphs={"large": large}, waiting_jobs=1)
    first = running.post("/api/jobs", SLOW).json()["id"]
    with httpx.stream("GET", f"{running.url}/api/jobs/{first}/events") as stream:
        for _ in zip(range(3), stream.iter_raw(), strict=False):
            pass  # a client that leaves
    wait_for(running, first, "running")
    second = running.post("/api/jobs", SLOW).json()
    assert second["state"] == "waiting"
    refused = running.post("/api/jobs", SLOW)
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "10")
    assert refused.json() == {"error": "1 jobs are waiting already; try again when one is done"}
    assert running.get(f"/api/jobs/{first}/result").status_code == 409
    searched = running.get("/api/graphs/large/search?query=1&metapath=ABA&k=3")
    assert searched.status_code == 200  # while it runs
    assert running.client.delete(f"/api/jobs/{first}").json() == {
        "error": f"the job {first} is running; cancel it first: POST /api/jobs/{first}/cancel"
    }
    for _ in range(2):  # whoever asks twice is told the same
        assert running.client.post(f"/api/jobs/{first}/cancel").json()["state"] == "cancelled"
    assert running.get(f"/api/jobs/{first}").json()["state"] == "cancelled"
    wait_for(running, second["id"], "running")
    process = next(iter(running.service.jobs._active.values())).process
    heard: list[str] = []
    hears = threading.Event()

    def listen() -> None:
        with httpx.stream("GET", f"{running.url}/api/jobs/{second['id']}/events", timeout=PATIENCE) as stream:
            for text in stream.iter_text():
                heard.append(text)
                hears.set()

    listening = threading.Thread(target=listen)
    listening.start()
    assert hears.wait(PATIENCE)
    running.stop()
    listening.join(PATIENCE)
    assert "event: end" in "".join(heard)
    assert "the service was stopped" in "".join(heard)
    if process is not None:
        with pytest.raises(ValueError, match="closed"):
            process.is_alive()  # it was ended, and its end awaited
    records = [json.loads(path.read_text()) for path in (tmp_path / "state").glob("*/job.json")]
    assert {record["state"] for record in records} == {"cancelled"}


@pytest.mark.slow
def test_a_restarted_service_has_the_finished_jobs(start: Start, tmp_path: Path) -> None:
    before, state = start(), tmp_path / "state"
    job = before.post("/api/jobs", {"kind": "infer", "graph": "toy", "pairs": PAIRS, "max_length": 4}).json()["id"]
    wait_for(before, job, "done")
    before.stop()
    (state / "broken-off").mkdir()
    record = json.loads((state / job / "job.json").read_text()) | {"id": "broken-off", "state": "running"}
    (state / "broken-off" / "job.json").write_text(json.dumps(record))
    after = start()
    assert after.get(f"/api/jobs/{job}").json()["state"] == "done"
    assert "event: end" in after.get(f"/api/jobs/{job}/events").text
    assert after.get(f"/api/graphs/toy/search?query=Mike&model={job}").status_code == 200
    broken = after.get("/api/jobs/broken-off").json()
    resumed = after.get("/api/jobs/broken-off/events", headers={"last-event-id": "57"}).text
    assert "event: end" in resumed
    assert (broken["state"], broken["error"]) == ("failed", "the service ended before the job did")


def test_a_process_has_the_limits_of_the_service(start: Start) -> None:
    running = start(pairs=2)
    body = {"kind": "infer", "graph": "toy", "pairs": PAIRS}
    assert running.post("/api/jobs", body).json() == {"error": "3 pairs are given; this service takes at most 2 a call"}
    spec = JobSpec(npth.load("toy"), json.dumps(body), running.service.jobs._folder, None, Limits(pairs=2))
    with pytest.raises(QueryError, match="at most 2 a call"):
        do_job(spec, None)  # type: ignore[arg-type]


@pytest.mark.parametrize("body", [JOIN, {"kind": "join", "graph": "toy", "metapath": "APVPA", "min_score": 1e-9}])
@pytest.mark.slow
def test_a_join_with_too_many_pairs_fails_and_removes_its_files(start: Start, body: dict[str, object]) -> None:
    running = start(rows=8)
    job = running.post("/api/jobs", body).json()["id"]
    assert wait_for(running, job, "failed")["error"] == (
        "this join has more than 8 pairs, the most that this service writes; ask for a smaller k or a higher "
        "min_score, or use 'neupath join'"
    )
    assert running.get(f"/api/jobs/{job}/result").status_code == 409
    folder = running.service.jobs.jobs[job].folder
    wait_for_all(running)
    assert [path.name for path in folder.iterdir()] == ["job.json"]


@pytest.mark.parametrize(
    ("cause", "message"),
    [
        (OSError(errno.ENOSPC, "Error writing bytes"), "no space left on device"),
        (RuntimeError("the database is full"), "the service's disk took no more"),
        (None, "the service's files were moved, or it may not write to them"),
    ],
)
def test_write_errors_of_a_job_do_not_show_paths(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, cause: Exception | None, message: str
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise WriteError("cannot write /home/service/secret") from cause

    monkeypatch.setattr(job_process, "join", fail)
    receiver, sender = Pipe(duplex=False)
    with receiver, sender:
        run_job(sender, JobSpec(npth.load("toy"), json.dumps(JOIN), tmp_path, None, Limits()))
        assert json.loads(receiver.recv_bytes()) == {"failed": f"the job's result cannot be written: {message}"}


@pytest.mark.slow
def test_after_an_internal_error_the_next_job_runs(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    running = start()
    run_process = jobs._run_process

    def fail(*_: object) -> None:
        monkeypatch.setattr(jobs, "_run_process", run_process)
        raise OSError("no more processes")

    monkeypatch.setattr(jobs, "_run_process", fail)
    monkeypatch.setattr(jobs.shutil, "rmtree", fail_to_remove)
    first, second = (running.post("/api/jobs", JOIN).json()["id"] for _ in range(2))
    failed = wait_for(running, first, "failed")
    assert failed["error"] == "something went wrong in the service; its log has the details"
    wait_for(running, second, "done")


def fail_to_remove(*_: object, **__: object) -> None:
    raise PermissionError("not yours")


def test_a_job_without_a_result_is_not_done(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    running = start()
    monkeypatch.setattr(jobs, "_run_process", lambda *_: 0)
    job = running.post("/api/jobs", JOIN).json()["id"]
    assert "exit code 0" in wait_for(running, job, "failed")["error"]


@pytest.mark.slow
def test_a_result_that_was_removed_below_the_service_is_gone(start: Start) -> None:
    running = start()
    job = running.post("/api/jobs", JOIN).json()["id"]
    wait_for(running, job, "done")
    running.service.jobs.find(job).result.unlink()
    response = running.get(f"/api/jobs/{job}/result")
    assert response.status_code == 410
    assert response.json()["error"] == f"the result of the job {job} was removed from its folder; start the job again"


@pytest.mark.slow
def test_a_job_cancelled_while_its_model_is_bound_leaves_no_model(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = start()
    began, cancelled = threading.Event(), threading.Event()
    finished = running.service.jobs._on_finished

    def slow(job: Job) -> None:
        began.set()
        assert cancelled.wait(PATIENCE)
        finished(job)

    monkeypatch.setattr(running.service.jobs, "_on_finished", slow)
    job = running.post("/api/jobs", {"kind": "infer", "graph": "toy", "pairs": PAIRS, "max_length": 4}).json()["id"]
    assert began.wait(PATIENCE)
    assert running.client.post(f"/api/jobs/{job}/cancel").json()["state"] == "cancelled"  # its process is closed by now
    cancelled.set()
    wait_for_all(running)
    assert running.get("/api/models").json() == []
    assert running.get(f"/api/jobs/{job}").json()["state"] == "cancelled"


def test_a_job_is_called_by_what_it_is_about(start: Start) -> None:
    running = start(running_jobs=0)  # none begins
    pairs = {"kind": "infer", "graph": "toy", "pairs": PAIRS, "node_type": "author"}
    titles = [running.post("/api/jobs", body).json()["title"] for body in (WHAT_IF, CHANCE, pairs)]
    assert titles == ["Mike and Bob", "hits of Mike", "meta-paths from 3 pairs of author"]


def test_a_damaged_job_record_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "job.json").write_text('{"id": 1}')
    with pytest.raises(SourceError, match="is not the record of a job"):
        read_jobs(tmp_path)


@pytest.mark.slow
def test_a_killed_process_fails_its_job(start: Start, large: HIN) -> None:
    running = start(graphs={"large": large})
    job = running.post("/api/jobs", SLOW).json()["id"]
    wait_for(running, job, "running")
    process = wait_until(lambda: running.service.jobs._active[job].process, "the job has no process")
    process.kill()
    assert "ended with exit code -9" in wait_for(running, job, "failed")["error"]


def test_the_default_width_of_a_model_is_limited(start: Start) -> None:
    running = start(width=100)
    response = running.post("/api/jobs", {"kind": "train", "graph": "toy", "metapath": "APA"})
    assert (response.status_code, response.json()["error"][:10]) == (422, "dim is 256")


@pytest.mark.slow
def test_auto_trains_from_labels_across_types(running: Running) -> None:
    rows = [("Mike", "SIGMOD", "yes"), ("Mike", "KDD", "no"), ("Mary", "SIGMOD", "yes"), ("Ann", "SIGMOD", "no")]
    pairs = [{"query": query, "target": target, "score": score, "weight": 2} for query, target, score in rows]
    body = {"kind": "train", "graph": "toy", "pairs": pairs, "query_type": "author", "target_type": "venue"}
    job = running.post("/api/jobs", body | {"budget": 30}).json()["id"]
    summary = wait_for(running, job, "done")["summary"]
    assert (summary["architecture"], summary["chosen"]) == ("auto", ["infer"])
    found = running.get(f"/api/graphs/toy/search?query=Mike&model={job}&k=1").json()
    assert found["hits"][0]["id"] == "SIGMOD"


# ---- Limits of time, memory and disk -------------------------------------------------------------
@pytest.mark.slow
def test_a_job_has_a_time_limit(start: Start, large: HIN) -> None:
    running = start(graphs={"large": large}, job_seconds=0.2)
    job = running.post("/api/jobs", SLOW).json()["id"]
    error = wait_for(running, job, "failed")["error"]
    assert error == "the job took longer than 0.2 seconds (the limit job_seconds); ask for less"


@pytest.mark.slow
def test_the_time_limit_of_a_job_may_be_longer_than_the_system_waits(start: Start) -> None:
    running = start(job_seconds=1e15)
    job = running.post("/api/jobs", JOIN).json()["id"]
    wait_until(lambda: running.get(f"/api/jobs/{job}").json()["state"] in ("done", "failed"), "the job goes on")
    assert running.get(f"/api/jobs/{job}").json()["error"] is None


@pytest.mark.slow
def test_a_job_has_a_memory_limit(start: Start, large: HIN) -> None:
    running = start(graphs={"large": large}, job_bytes=1 << 20)
    job = running.post("/api/jobs", SLOW).json()["id"]
    error = wait_for(running, job, "failed")["error"]
    assert "memory" in error


def test_the_oldest_results_go_when_all_are_too_large(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    def write_result(task: Any, *_: object) -> int:
        task.job.result.write_bytes(b"x" * 1000)
        task.job.summary = {}
        return 0

    monkeypatch.setattr(jobs, "_run_process", write_result)
    running = start(result_bytes=1500)
    first, second = (running.post("/api/jobs", JOIN).json()["id"] for _ in range(2))
    wait_for(running, second, "done")
    wait_until(lambda: running.get(f"/api/jobs/{first}").status_code == 404, "the oldest result stays")
    queue = running.service.jobs
    queue._limits = replace(queue._limits, result_bytes=900)
    third = running.post("/api/jobs", JOIN).json()["id"]
    error = wait_for(running, third, "failed")["error"]
    assert error.startswith("the result has 1,000 bytes, and this service keeps 900 in all")


@pytest.mark.slow
def test_p_values_are_those_of_the_filtered_list(running: Running) -> None:
    search = {"metapath": "APVPA", "queries": ["Mike"], "k": 1, "where": ["id != Bob"], "unless": ["APA"]}
    body = search | {"kind": "significance", "graph": "toy", "permutations": 9}
    job = running.post("/api/jobs", body).json()
    running.get(f"/api/jobs/{job['id']}/events")
    (result,) = running.get(f"/api/jobs/{job['id']}/result").json()["results"]
    (listed,) = running.post("/api/graphs/toy/search", search).json()
    assert [each["id"] for each in result["hits"]] == [each["id"] for each in listed["hits"]] == ["Mary"]
    assert 0 < result["hits"][0]["p_value"] <= 1
    wrong = running.post("/api/jobs", body | {"where": ["year >"]})
    assert wrong.status_code == 422

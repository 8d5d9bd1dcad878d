"""Measures over the whole graph in a process of their own: the same answers, and an end when nobody waits."""

import os
import sys
from pathlib import Path
from subprocess import PIPE
from threading import Thread

import numpy as np
import pytest

import neupath as npth
from neupath._runtime import resources
from neupath._runtime.progress import Cancellation, WorkCancelled, cancelled_by
from neupath.measures import PPR, CommuteTime, SimRank
from neupath.service import measure_process
from neupath.service.graph_registry import GraphHandle, GraphRegistry
from neupath.service.limits import Limits
from neupath.service.measure_process import ProcessScorer
from neupath.service.schemas import RequestError
from tests.graphs import graph_of
from tests.patience import PATIENCE, wait_until
from tests.processes import run_process

IDS = ["Mike", "Jim", "Mary", "Bob", "Ann"]


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def test_small_graphs_and_light_measures_need_no_process() -> None:
    toy, rng = npth.load("toy"), np.random.default_rng(0)
    assert not measure_process.needs_process(CommuteTime("author"), toy)
    assert not measure_process.needs_process(SimRank("author"), toy)
    dense = graph_of({"a": 10_000}, {"a -r-> a": rng.integers(0, 10_000, (300_000, 2))})
    assert measure_process.needs_process(CommuteTime("a"), dense)
    assert measure_process.needs_process(SimRank("a"), dense)
    assert not measure_process.needs_process(PPR("a"), dense)


@pytest.mark.parametrize("measure", ["commutetime", "simrank"])
@pytest.mark.slow
def test_answers_are_the_same_and_the_process_ends(measure: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure_process, "_MOST_SECONDS", -1.0)
    toy, before = npth.load("toy"), set(resources._reservations)
    registry = GraphRegistry({"toy": GraphHandle("toy", toy)}, Limits())
    scorer = registry.measure("toy", measure, None, "author").scorer
    assert isinstance(scorer, ProcessScorer)
    assert registry.measure("toy", measure, None, "author").scorer is scorer
    expected = npth.learn.registry.make_scorer(toy, measure=measure, node_type="author")
    assert [hits.to_json() for hits in scorer.top_k(IDS)] == [hits.to_json() for hits in expected.top_k(IDS)]
    assert scorer.top_k("Mike", where="id != Jim") == expected.top_k("Mike", where="id != Jim")
    assert (scorer.scores("Mike") == expected.scores("Mike")).all()
    assert (scorer.params(), scorer.source_type) == (expected.params(), "author")
    assert (scorer.exact, scorer.error_) == (True, 0.0)
    process = scorer._process.pid
    assert process is not None
    assert set(resources._reservations) > before
    assert _is_running(process)
    registry.clear_cache()
    del scorer
    assert not _is_running(process)
    assert set(resources._reservations) == before


@pytest.mark.slow
def test_the_process_of_cancelled_work_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    cancellation, outcome, begun = Cancellation(), [], []
    start = measure_process.start_child
    monkeypatch.setattr(measure_process, "start_child", lambda *a: begun.append(start(*a)) or begun[0])
    scorer = ProcessScorer(CommuteTime("class"), 1 << 30)

    def fit() -> None:
        with cancelled_by(cancellation):
            try:
                scorer.fit(npth.load("stdlib"))
            except WorkCancelled:
                outcome.append("cancelled")

    thread = Thread(target=fit)
    thread.start()
    wait_until(lambda: begun, "no process starts")
    process = begun[0][0].pid
    cancellation.cancel()
    thread.join(PATIENCE)
    assert (outcome, scorer.is_alive) == (["cancelled"], False)
    assert not _is_running(process)


@pytest.mark.slow
def test_a_process_that_ended_by_itself_is_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure_process, "_MOST_SECONDS", -1.0)
    registry = GraphRegistry({"toy": GraphHandle("toy", npth.load("toy"))}, Limits())
    scorer = registry.measure("toy", "commutetime", None, "author").scorer
    assert isinstance(scorer, ProcessScorer)
    expected = scorer.top_k("Mike")
    scorer._process.kill()
    scorer._process.join()
    with pytest.raises(RequestError, match="the process of commutetime has ended: .* try again"):
        scorer.top_k("Mike")
    again = registry.measure("toy", "commutetime", None, "author").scorer
    assert again is not scorer
    assert again.top_k("Mike") == expected


@pytest.mark.slow
def test_a_process_that_waits_for_questions_reserves_no_memory() -> None:
    scorer = ProcessScorer(CommuteTime("author"), 1 << 30).fit(npth.load("toy"))
    assert scorer.top_k("Mike")
    assert all(reservation.outstanding < 1 << 28 for reservation in resources._reservations)


_SERVICE = """
import ctypes, os, signal
from neupath.service.child_process import begin_child, start_child

def hold_the_lock(connection):
    begin_child(1 << 29)
    connection.send("holds it")
    ctypes.PyDLL(None).sleep(3600)  # holds Python's lock, as some solvers do

if __name__ == "__main__":
    process, connection = start_child(hold_the_lock)
    print(connection.recv(), flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux kills a process when a pipe ends")
@pytest.mark.slow
def test_a_process_ends_with_a_killed_service_even_where_a_library_holds_the_lock(tmp_path: Path) -> None:
    script = tmp_path / "service.py"
    script.write_text(_SERVICE)
    with run_process([sys.executable, script], stdout=PIPE) as service:
        printed, _ = service.communicate(timeout=PATIENCE)  # returns when both have ended
        assert printed == "holds it\n"

"""Worker threads: work that nobody waits for any more ends."""

from threading import Event

import pytest

from neupath._runtime.progress import WorkCancelled, check_cancelled
from tests.patience import PATIENCE, wait_until
from tests.service.conftest import Start


class _EndlessWork:
    """A handler whose work ends when it is cancelled."""

    def __init__(self) -> None:
        self.began, self.ended = Event(), Event()

    def __call__(self, *_: object) -> None:
        self.began.set()
        try:
            while True:
                check_cancelled()
        except WorkCancelled:
            self.ended.set()
            raise


@pytest.fixture
def endless(monkeypatch: pytest.MonkeyPatch) -> _EndlessWork:
    work = _EndlessWork()
    monkeypatch.setattr("neupath.service.handlers.search", work)
    monkeypatch.setattr("neupath.service.limits._LONG", 0.01)
    return work


def test_work_ends_when_its_request_has_timed_out(start: Start, endless: _EndlessWork) -> None:
    running = start(seconds=0.2)
    response = running.get("/api/graphs/toy/search?query=Mike&metapath=APA")
    assert response.status_code == 504
    assert "this takes longer than 0.2 seconds and was stopped; ask for less, or" in response.json()["error"]
    assert endless.ended.wait(PATIENCE)
    wait_until(lambda: running.service.workers.busy == 0, "the thread is busy after its work was cancelled")


def test_the_advice_for_relate_names_no_job(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    work = _EndlessWork()
    monkeypatch.setattr("neupath.service.handlers.relate_nodes", work)
    response = start(seconds=0.2).get("/api/graphs/toy/relate?query=Mike&target=Jim")
    message = "this takes longer than 0.2 seconds and was stopped; lower max_steps"
    assert (response.status_code, response.json()) == (504, {"error": message})
    assert work.ended.wait(PATIENCE)


def test_work_ends_when_its_client_has_gone(start: Start, endless: _EndlessWork) -> None:
    running = start(seconds=PATIENCE)
    with running.connect() as connection:
        connection.sendall(b"GET /api/graphs/toy/search?query=Mike&metapath=APA HTTP/1.1\r\nhost: localhost\r\n\r\n")
        assert endless.began.wait(PATIENCE)
    assert endless.ended.wait(PATIENCE)
    wait_until(lambda: running.service.workers.busy == 0, "the thread is busy after its client has gone")

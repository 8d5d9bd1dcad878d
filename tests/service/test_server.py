"""The server: what it finishes when it stops."""

import threading
import time

import httpx

from tests.service.conftest import Start


def test_running_requests_finish_when_the_server_stops(start: Start) -> None:
    running = start()
    began = threading.Event()
    original = running.service.registry.measure

    def slow(*arguments: str) -> object:
        began.set()
        time.sleep(0.5)
        return original(*arguments)

    running.service.registry.measure = slow  # type: ignore[method-assign, assignment]
    responses: list[httpx.Response] = []
    thread = threading.Thread(
        target=lambda: responses.append(running.get("/api/graphs/toy/search?query=Mike&metapath=APVPA&measure=joinsim"))
    )
    thread.start()
    assert began.wait(10)
    running.server.should_exit = True
    thread.join(20)
    assert responses[0].status_code == 200
    running.thread.join(20)
    assert not running.thread.is_alive()

"""The server: what it finishes when it stops."""

import threading
import time

import httpx

from tests.service.conftest import Start


def test_running_requests_are_finished_at_the_end(start: Start) -> None:
    running = start()
    began = threading.Event()
    original = running.service.registry.measure

    def slow(*arguments: str) -> object:
        began.set()
        time.sleep(0.5)
        return original(*arguments)

    running.service.registry.measure = slow  # type: ignore[method-assign, assignment]
    found: list[httpx.Response] = []
    asking = threading.Thread(
        target=lambda: found.append(running.get("/api/graphs/toy/search?query=Mike&metapath=APVPA&measure=joinsim"))
    )
    asking.start()
    assert began.wait(10)
    running.server.should_exit = True
    asking.join(20)
    assert found[0].status_code == 200
    running.thread.join(20)
    assert not running.thread.is_alive()

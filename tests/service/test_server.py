"""The server: what it finishes when it stops."""

import threading

import httpx

from tests.patience import PATIENCE, wait_until
from tests.service.conftest import Running, Start


def refuses_connections(running: Running) -> bool:
    try:
        running.connect().close()
    except ConnectionRefusedError:
        return True
    return False


def test_running_requests_finish_when_the_server_stops(start: Start) -> None:
    running = start()
    began, go_on = threading.Event(), threading.Event()
    original = running.service.registry.measure

    def slow(*arguments: str) -> object:
        began.set()
        assert go_on.wait(PATIENCE)
        return original(*arguments)

    running.service.registry.measure = slow  # type: ignore[method-assign, assignment]
    responses: list[httpx.Response] = []
    thread = threading.Thread(
        target=lambda: responses.append(running.get("/api/graphs/toy/search?query=Mike&metapath=APVPA&measure=joinsim"))
    )
    thread.start()
    assert began.wait(PATIENCE)
    running.server.should_exit = True
    wait_until(lambda: refuses_connections(running), "the server still accepts connections")
    go_on.set()
    thread.join(PATIENCE)
    assert responses[0].status_code == 200
    running.thread.join(PATIENCE)
    assert not running.thread.is_alive()
